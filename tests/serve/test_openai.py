"""The official Python client end to end. Skipped where the package openai is not installed."""
import json
import os
import sys
import time
import unittest

from serving import SCRIPTED, Server, main, models_dir

try:
    import openai
except ImportError:
    print("skipped: the Python package openai is not installed", file=sys.stderr)
    sys.exit(77)

QWEN = os.path.join(models_dir(), "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
ADD = {"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}


def user(text):
    return [{"role": "user", "content": text}]


class Client(unittest.TestCase):
    model = SCRIPTED

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--parallel", 2, model=cls.model, env={"MICA_API_KEY": "key"})
        host, port = cls.server.address
        cls.client = openai.OpenAI(base_url=f"http://{host}:{port}/v1", api_key="key", max_retries=0)
        cls.name = cls.client.models.list().data[0].id

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.stop() == 0, cls.server.log()


class Scripted(Client):
    def test_chat(self):
        reply = self.client.chat.completions.create(model=self.name, messages=user("E"), temperature=0, n=2)
        self.assertEqual([c.message.content for c in reply.choices], ["Hi 🙂!"] * 2)
        self.assertEqual((reply.choices[0].finish_reason, reply.usage.completion_tokens, reply.model), ("stop", 16, "scripted"))
        self.assertEqual(reply.usage.prompt_tokens_details.cached_tokens, 0)

    def test_stream(self):
        stream = self.client.chat.completions.create(model=self.name, messages=user("S"), temperature=0, stream=True,
                                                     stream_options={"include_usage": True})
        parts = list(stream)
        self.assertEqual("".join(p.choices[0].delta.content or "" for p in parts if p.choices), "alpha beta gamma delta")
        self.assertEqual(parts[-1].usage.completion_tokens, 6)

    def test_logprobs(self):
        reply = self.client.chat.completions.create(model=self.name, messages=user("D"), temperature=0, logprobs=True, top_logprobs=3)
        first = reply.choices[0].logprobs.content[0]
        self.assertEqual([t.token for t in first.top_logprobs], ["p1", "p2", "p3"])
        self.assertAlmostEqual(first.logprob, -0.5108256, places=5)

    def test_completions(self):
        reply = self.client.completions.create(model=self.name, prompt=["E", "R"], temperature=0, max_tokens=20, logprobs=1)
        self.assertEqual([c.text for c in reply.choices], ["Hi 🙂!", "red fox"])
        self.assertEqual(reply.choices[1].logprobs.tokens, ["red", " fox"])

    def test_responses(self):
        reply = self.client.responses.create(model=self.name, input="E", temperature=0)
        self.assertEqual((reply.output_text, reply.status), ("Hi 🙂!", "completed"))
        with self.client.responses.stream(model=self.name, input="E", temperature=0) as stream:
            text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
            self.assertEqual((text, stream.get_final_response().output_text), ("Hi 🙂!", "Hi 🙂!"))

    def test_structured(self):
        schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}
        reply = self.client.chat.completions.create(model=self.name, messages=user("J"), temperature=0, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}})
        self.assertEqual(json.loads(reply.choices[0].message.content), {"a": 1})

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model=self.name, messages=[])
        self.assertEqual(caught.exception.param, "messages")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model=self.name, prompt="a" * 600)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.AuthenticationError):
            self.client.with_options(api_key="wrong").models.list()
        with self.assertRaises(openai.NotFoundError):
            self.client.files.list()

    def test_embeddings(self):
        """The client asks for base64 by itself."""
        packed = self.client.embeddings.create(model=self.name, input=["E", "S R"])
        plain = self.client.embeddings.create(model=self.name, input=["E", "S R"], encoding_format="float")
        self.assertEqual([d.index for d in packed.data], [0, 1])
        self.assertGreater(packed.usage.prompt_tokens, 0)
        for a, b in zip(packed.data, plain.data):
            self.assertAlmostEqual(sum(x * x for x in a.embedding), 1.0, places=4)
            self.assertEqual(len(a.embedding), len(b.embedding))
            for x, y in zip(a.embedding, b.embedding):
                self.assertAlmostEqual(x, y, places=6)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.embeddings.create(model=self.name, input=["E", ""])
        self.assertEqual(caught.exception.param, "input")

    def test_cancel(self):
        stream = self.client.chat.completions.create(model=self.name, messages=user("X"), n=16, max_tokens=480, stream=True)
        next(iter(stream))
        stream.close()
        auth = {"Authorization": "Bearer key"}
        end = time.monotonic() + 20
        while "mica_running 0" not in self.server.get("/metrics", headers=auth).text and time.monotonic() < end:
            time.sleep(0.05)
        self.assertIn("mica_running 0", self.server.get("/metrics", headers=auth).text)


@unittest.skipUnless(os.path.exists(QWEN), "the model is not there")
class Tools(Client):
    model = QWEN

    def test_tools(self):
        ask = {"model": self.name, "messages": user("What is 2+3? Use the tool."), "tools": [ADD], "tool_choice": "required", "temperature": 0,
               "parallel_tool_calls": False, "seed": 7}
        call = self.client.chat.completions.create(**ask).choices[0].message.tool_calls[0]
        self.assertEqual((call.type, call.function.name), ("function", "add"))
        self.assertEqual(set(json.loads(call.function.arguments)), {"a", "b"})
        with self.client.chat.completions.stream(**ask) as stream:
            final = stream.get_final_completion().choices[0]
        self.assertEqual(final.message.tool_calls[0].function.arguments, call.function.arguments)
        self.assertEqual(final.finish_reason, "tool_calls")


if __name__ == "__main__":
    main()
