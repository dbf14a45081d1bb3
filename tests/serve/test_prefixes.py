"""The KV memory that all replies share: what was computed is found again, over restarts too; too little of it only costs time."""
import concurrent.futures
import os
import re
import tempfile
import unittest

from serving import DATA, Server, main

MODEL = os.path.join(DATA, "tiny", "llama.gguf")
CTX = 256


def body(number, length=120, **more):
    """Prompts of token ids, which begin differently."""
    return {"prompt": [3 + (7 * i + 11 * number) % 200 for i in range(length)], "max_tokens": 40, "temperature": 0.9, "seed": number,
            "ignore_eos": True, **more}


def ask(server, *args, **more):
    answer = server.post("/v1/completions", body(*args, **more))
    if answer.status != 200:
        raise AssertionError(answer)
    return answer.json()


def text_of(reply):
    return reply["choices"][0]["text"]


def cached(reply):
    return reply["usage"]["prompt_tokens_details"]["cached_tokens"]


class Prefixes(unittest.TestCase):
    def test_any_slot(self):
        """A prompt that was answered is there for whichever slot comes next, but for the token whose logits are wanted."""
        server = Server("--parallel", 3, "--ctx", CTX, model=MODEL)
        try:
            first = ask(server, 1)
            self.assertEqual(cached(first), 0)
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                for reply in pool.map(lambda _: ask(server, 1), range(6)):
                    self.assertEqual(cached(reply), 119)
                    self.assertEqual(text_of(reply), text_of(first))
            metrics = server.metrics()
            self.assertGreater(metrics["mica_kv_cached_tokens"], 120)
            self.assertEqual(metrics["mica_kv_tokens"], 0)
            self.assertEqual(metrics["mica_kv_capacity_tokens"], 3 * CTX)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_a_request_may_do_without(self):
        """cache_prompt false: nothing of the prompt comes from the memory, alone or beside others with the same one."""
        server = Server("--parallel", 3, "--ctx", CTX, model=MODEL)
        try:
            first = ask(server, 1)
            self.assertEqual(cached(ask(server, 1)), 119)
            computed = server.metrics()["mica_cached_tokens_total"]
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                for reply in pool.map(lambda _: ask(server, 1, cache_prompt=False), range(6)):
                    self.assertEqual(cached(reply), 0)
                    self.assertEqual(text_of(reply), text_of(first))
            self.assertEqual(server.metrics()["mica_cached_tokens_total"], computed)
            self.assertEqual(cached(ask(server, 1, cache_prompt=True)), 119)  # they left it as it was
            self.assertEqual(server.metrics()["mica_kv_tokens"], 0)
            answer = server.post("/v1/completions", body(1, cache_prompt="no"))
            self.assertEqual((answer.status, answer.json()["error"]["param"]), (400, "cache_prompt"))
        finally:
            self.assertEqual(server.stop(), 0)

    def test_choices_share(self):
        """The choices of one request compute their prompt once."""
        server = Server("--parallel", 4, "--ctx", CTX, model=MODEL)
        try:
            alone = [text_of(ask(server, 5, seed=5 + i)) for i in range(3)]
            before = server.metrics()["mica_cached_tokens_total"]
            ask(server, 6, n=3)
            self.assertGreaterEqual(server.metrics()["mica_cached_tokens_total"] - before, 2 * 96)
            self.assertEqual([c["text"] for c in ask(server, 5, n=3)["choices"]], alone)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_over_a_restart(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prefixes")
            options = ("--parallel", 2, "--ctx", CTX, "--prefixes", path)
            server = Server(*options, model=MODEL)
            first = [ask(server, i) for i in range(2)]
            self.assertEqual(server.stop(), 0)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            server = Server(*options, model=MODEL)
            again = [ask(server, i) for i in range(2)]
            self.assertEqual(server.stop(), 0)
            self.assertRegex(server.log(), r"\d+ tokens of prefixes are there")
            for a, b in zip(first, again):
                self.assertEqual((cached(a), cached(b)), (0, 119))
                self.assertEqual(text_of(a), text_of(b))
            with open(path, "r+b") as f: # a damaged one is not used, and replaced
                f.seek(5000)
                f.write(b"damage")
            server = Server(*options, model=MODEL)
            self.assertIn("is damaged", server.log())
            self.assertEqual(cached(ask(server, 0)), 0)
            self.assertEqual(server.stop(), 0)
            server = Server(*options, model=MODEL)
            self.assertEqual(cached(ask(server, 0)), 119)
            self.assertEqual(server.stop(), 0)

    def test_little_memory(self):
        """Twelve replies that need 160 tokens each, in a memory of 256: each is what it is alone."""
        server = Server("--parallel", 6, "--ctx", CTX, model=MODEL)
        alone = [text_of(ask(server, i)) for i in range(12)]
        self.assertEqual(server.stop(), 0)
        server = Server("--parallel", 6, "--ctx", CTX, "--kv-tokens", CTX, model=MODEL)
        try:
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                self.assertEqual([text_of(r) for r in pool.map(lambda i: ask(server, i), range(12))], alone)
            with concurrent.futures.ThreadPoolExecutor(12) as pool: # short prompts that grow together
                replies = list(pool.map(lambda i: ask(server, i, 10, max_tokens=100), range(12)))
            self.assertEqual([r["usage"]["completion_tokens"] for r in replies], [100] * 12)
            metrics = server.metrics()
            self.assertEqual(metrics["mica_kv_capacity_tokens"], CTX)
            self.assertGreater(metrics["mica_kv_evictions_total"], 0)
            self.assertGreater(metrics["mica_suspensions_total"], 0)
            answer = server.post("/v1/completions", body(0, 300)) # never fits
            self.assertEqual(answer.status, 400)
            self.assertTrue(re.search(r"256.*300", answer.json()["error"]["message"]), answer)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_options(self):
        with self.assertRaisesRegex(AssertionError, "does not hold one context of 256"):
            Server("--ctx", CTX, "--kv-tokens", 100, model=MODEL)


if __name__ == "__main__":
    main()
