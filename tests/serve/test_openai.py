"""The official Python client end to end, against the scripted model."""
import asyncio
import json
import math

import clients

clients.need_modules("openai")
import openai  # noqa: E402

from openai_client import AUTH, KEY, ClientTest, metric, user  # noqa: E402
from serving import main, wait_until  # noqa: E402

# Takes seconds, if nobody ends it.
LONG = {"prompt": ["X"] * 64, "max_tokens": 480, "temperature": 0}


class OpenAI(ClientTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=cls.url, api_key=KEY, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        super().tearDownClass()

    def chat(self, text, **more):
        return self.client.chat.completions.create(model=self.name, messages=user(text), temperature=0, **more)


class Replies(OpenAI):
    def test_models(self):
        listed = self.client.models.list().data
        self.assertEqual([(m.id, m.object) for m in listed], [("scripted", "model")])

    def test_chat(self):
        reply = self.chat("E", n=2)
        self.assertEqual([c.message.content for c in reply.choices], ["Hi 🙂!"] * 2)
        self.assertEqual((reply.choices[0].finish_reason, reply.usage.completion_tokens, reply.model), ("stop", 16, "scripted"))
        self.assertEqual(reply.usage.prompt_tokens_details.cached_tokens, 0)

    def test_limits_and_stop_strings(self):
        cut = self.chat("X", max_completion_tokens=7).choices[0]
        self.assertEqual((cut.message.content, cut.finish_reason), ("x" * 7, "length"))
        stopped = self.chat("S", stop=["gamma"]).choices[0]
        self.assertEqual((stopped.message.content, stopped.finish_reason), ("alpha beta ", "stop"))

    def test_stream(self):
        parts = list(self.chat("S", stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(p.choices[0].delta.content or "" for p in parts if p.choices), "alpha beta gamma delta")
        self.assertEqual(parts[-1].usage.completion_tokens, 6)
        self.assertEqual(len({p.id for p in parts}), 1)

    def test_logprobs(self):
        first = self.chat("D", logprobs=True, top_logprobs=3).choices[0].logprobs.content[0]
        self.assertEqual([t.token for t in first.top_logprobs], ["p1", "p2", "p3"])
        self.assertAlmostEqual(first.logprob, math.log(0.6), places=5)

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
        strict = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
        for text in "JE":  # what the model would say by itself, and what it would not
            reply = self.chat(text, response_format=strict, max_tokens=60)
            self.assertEqual(json.loads(reply.choices[0].message.content), {"a": 1})

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

    def test_async(self):
        """Many requests of one asynchronous client: each gets its own reply."""
        expected = {"E": "Hi 🙂!", "R": "red fox", "S": "alpha beta gamma delta", "C": "zh你試#"}

        async def ask(client, text):
            reply = await client.chat.completions.create(model=self.name, messages=user(text), temperature=0)
            return reply.choices[0].message.content

        async def everything():
            async with openai.AsyncOpenAI(base_url=self.url, api_key=KEY, max_retries=0) as client:
                return await asyncio.gather(*(ask(client, text) for text in list(expected) * 8))
        self.assertEqual(asyncio.run(everything()), list(expected.values()) * 8)


class Scoring(OpenAI):
    """Prompts scored as by the old completions API: `echo` together with `logprobs`."""

    def ids(self, text):
        return self.server.post("/tokenize", {"content": text}, headers=AUTH).json()["tokens"]

    def score(self, prompt, **more):
        reply = self.client.completions.create(model=self.name, prompt=prompt, echo=True, temperature=0, **{"max_tokens": 0, **more})
        return reply.choices

    def test_text(self):
        choice, = self.score("Dp2", logprobs=3)
        found = choice.logprobs
        self.assertEqual((choice.text, found.tokens, found.text_offset), ("Dp2", ["D", "p2"], [0, 1]))
        self.assertEqual((found.token_logprobs[0], found.top_logprobs[0]), (None, None))
        self.assertAlmostEqual(found.token_logprobs[1], math.log(0.3), places=5)
        self.assertEqual(sorted(found.top_logprobs[1]), ["p1", "p2", "p3"])
        self.assertAlmostEqual(found.top_logprobs[1]["p1"], math.log(0.6), places=5)

    def test_lists(self):
        """Token ids, texts, and lists of either: a choice for each, in order."""
        prompts = ["Dp1", "EHi", "Dp3"]
        scored = self.score(prompts, logprobs=1)
        self.assertEqual([(c.index, c.text) for c in scored], list(enumerate(prompts)))
        self.assertEqual([c.logprobs for c in self.score([self.ids(p) for p in prompts], logprobs=1)], [c.logprobs for c in scored])
        self.assertEqual(self.score(self.ids("Dp3"), logprobs=1)[0].logprobs, scored[2].logprobs)
        self.assertAlmostEqual(scored[2].logprobs.token_logprobs[1], math.log(0.1), places=5)

    def test_prompt_and_reply(self):
        """The scored prompt, then the reply's tokens; what a prompt has been scored as does not depend on it."""
        choice, = self.score("EHi", logprobs=1, max_tokens=1)
        self.assertEqual((choice.text, choice.logprobs.tokens), ("EHi ", ["E", "Hi", " "]))
        self.assertEqual(choice.logprobs.text_offset, [0, 1, 3])
        self.assertEqual(self.score("EHi", logprobs=1)[0].logprobs.token_logprobs, choice.logprobs.token_logprobs[:2])


class Refusals(OpenAI):
    def test_bad_requests(self):
        for wrong, param in (({"messages": []}, "messages"), ({"messages": user("E"), "temperature": "hot"}, "temperature")):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.client.chat.completions.create(model=self.name, **wrong)
            self.assertEqual((caught.exception.status_code, caught.exception.param), (400, param))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model=self.name, prompt="a" * 600)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.embeddings.create(model=self.name, input=["E", ""])
        self.assertEqual(caught.exception.param, "input")

    def test_wrong_key(self):
        with self.assertRaises(openai.AuthenticationError) as caught:
            self.client.with_options(api_key="wrong").models.list()
        self.assertEqual((caught.exception.status_code, caught.exception.code), (401, "invalid_api_key"))

    def test_unknown_route(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.files.list()


class Leaving(OpenAI):
    def left(self):
        return metric(self.server, "mica_clients_left_total")

    def check_free(self, before):
        self.assertTrue(wait_until(lambda: metric(self.server, "mica_running") == 0))
        self.assertEqual(self.left(), before + 1)
        self.assertEqual(self.chat("E").choices[0].message.content, "Hi 🙂!")

    def test_closed_stream(self):
        before = self.left()
        stream = self.client.completions.create(model=self.name, stream=True, **LONG)
        self.assertEqual(next(iter(stream)).choices[0].text, "x")
        stream.close()
        self.check_free(before)

    def test_time_out_of_the_client(self):
        before = self.left()
        with self.assertRaises(openai.APITimeoutError):
            self.client.with_options(timeout=openai.Timeout(60, read=0.1)).completions.create(model=self.name, **LONG)
        self.check_free(before)

    def test_cancelled_task(self):
        before = self.left()

        async def leave():
            async with openai.AsyncOpenAI(base_url=self.url, api_key=KEY, max_retries=0) as client:
                task = asyncio.create_task(client.completions.create(model=self.name, **LONG))
                while metric(self.server, "mica_running") == 0 and not task.done():
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
        asyncio.run(leave())
        self.check_free(before)


if __name__ == "__main__":
    main()
