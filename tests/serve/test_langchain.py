"""LangChain's OpenAI client, against the scripted model."""
import math

import clients

clients.need_modules("langchain_openai")
from langchain_openai import ChatOpenAI, OpenAIEmbeddings  # noqa: E402

from openai_client import KEY, ClientTest  # noqa: E402
from serving import main  # noqa: E402


class Scripted(ClientTest):
    def chat(self, **more):
        return ChatOpenAI(model=self.name, base_url=self.url, api_key=KEY, temperature=0, max_retries=0, **more)

    def test_chat(self):
        reply = self.chat().invoke("E")
        self.assertEqual(reply.content, "Hi 🙂!")
        self.assertEqual(reply.usage_metadata["output_tokens"], 8)
        self.assertEqual(reply.response_metadata["finish_reason"], "stop")

    def test_batch(self):
        self.assertEqual([r.content for r in self.chat().batch(["E", "R", "S"])], ["Hi 🙂!", "red fox", "alpha beta gamma delta"])

    def test_stream(self):
        parts = list(self.chat(stream_usage=True).stream("S"))
        self.assertGreater(len(parts), 3)
        self.assertEqual("".join(p.content for p in parts), "alpha beta gamma delta")
        self.assertEqual([p.usage_metadata["output_tokens"] for p in parts if p.usage_metadata], [6])

    def test_structured(self):
        schema = {"title": "x", "description": "One number.", "type": "object", "properties": {"a": {"const": 1}}, "required": ["a"],
                  "additionalProperties": False}
        model = self.chat(max_tokens=60).with_structured_output(schema, method="json_schema", strict=True)
        self.assertEqual(model.invoke("E"), {"a": 1})

    def test_embeddings(self):
        model = OpenAIEmbeddings(model=self.name, base_url=self.url, api_key=KEY, check_embedding_ctx_length=False, max_retries=0)
        first, second = model.embed_documents(["E", "S R"])
        self.assertEqual(len(first), len(second))
        self.assertTrue(math.isclose(sum(x * x for x in first), 1, abs_tol=1e-4))
        self.assertTrue(all(math.isclose(x, y, abs_tol=1e-6) for x, y in zip(model.embed_query("E"), first)))


if __name__ == "__main__":
    main()
