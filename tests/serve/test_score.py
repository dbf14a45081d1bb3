"""/v1/completions with "echo" and "logprobs": the prompt's log-probabilities, as programs want them that score texts."""
import json
import math
import os
import signal
import subprocess
import tempfile
import threading
import time

from serving import BIN, DATA, Server, ServeTest, chunks, main, post_bytes, wait_until

TINY = os.path.join(DATA, "tiny", "llama.gguf")
PATH = "/v1/completions"
LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
LONG = [[5 + (i * 7 + k * k) % 300 for k in range(500)] for i in range(64)]  # of the scripted model; a second of work


class Scores(ServeTest):
    def score(self, prompt, **more):
        body = {"prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": 0, "temperature": 0, **more}
        answer = self.server.post(PATH, body)
        self.assertEqual(answer.status, 200, answer)
        whole = answer.json()
        for choice in whole["choices"]:
            self.assertEqual(set(choice["logprobs"]), set(LISTS))
            self.assertEqual(len({len(choice["logprobs"][name]) for name in LISTS}), 1)
        return whole

    def one(self, prompt, **more):
        choices = self.score(prompt, **more)["choices"]
        self.assertEqual(len(choices), 1)
        return choices[0]

    def tokens(self, text):
        return self.server.post("/tokenize", {"content": text, "add_special": True}).json()["tokens"]


    def names(self):
        """{text: id} of the tokens that their text tells apart, and the ids of the others."""
        n = self.server.get("/v1/models").json()["data"][0]["meta"]["n_vocab"]
        texts = [self.server.post("/detokenize", {"tokens": [i]}).json()["content"] for i in range(n)]
        single = {t: i for i, t in enumerate(texts) if texts.count(t) == 1 and t and "\ufffd" not in t}
        return single, set(range(n)) - set(single.values())


class Scripted(Scores):
    def test_known_distribution(self):
        """After D comes p1 with 0.6, p2 with 0.3, p3 with 0.1."""
        d, p1, p2, p3 = (self.tokens(t)[-1] for t in ("D", "p1", "p2", "p3"))
        choices = self.score([[d, p1], [d, p2], [d, p3]], logprobs=3)["choices"]
        for i, (choice, text, p) in enumerate(zip(choices, ("p1", "p2", "p3"), (0.6, 0.3, 0.1))):
            told = choice["logprobs"]
            self.assertEqual((choice["index"], choice["finish_reason"], choice["text"]), (i, "length", "D" + text))
            self.assertEqual(told["tokens"], ["D", text])
            self.assertEqual((told["token_logprobs"][0], told["top_logprobs"][0]), (None, None))
            self.assertAlmostEqual(told["token_logprobs"][1], math.log(p), places=5)
            self.assertEqual(list(told["top_logprobs"][1]), ["p1", "p2", "p3"])
            self.assertEqual(told["top_logprobs"][1][text], told["token_logprobs"][1])
        both = self.one([d, p3], logprobs=2)["logprobs"]["top_logprobs"][1]
        self.assertEqual(list(both), ["p1", "p2", "p3"])  # the token's own is there, too
        self.assertIsNone(self.one([d, p3], logprobs=0)["logprobs"]["top_logprobs"][1])

    def test_forms(self):
        """A text, ids, and lists of both: the same numbers, one choice a prompt, in order."""
        texts = ["Esay red fox", "Rx", "Hi E"]
        ids = [self.tokens(t) for t in texts]
        answer = self.score(texts)
        self.assertEqual([c["index"] for c in answer["choices"]], [0, 1, 2])
        self.assertEqual([c["text"] for c in answer["choices"]], texts)
        self.assertEqual(answer["usage"]["prompt_tokens"], sum(map(len, ids)))
        self.assertEqual((answer["usage"]["completion_tokens"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]), (0, 0))
        numbers = [c["logprobs"]["token_logprobs"] for c in answer["choices"]]
        self.assertEqual([len(n) for n in numbers], [len(i) for i in ids])
        self.assertEqual([c["logprobs"]["token_logprobs"] for c in self.score(ids)["choices"]], numbers)
        self.assertEqual(self.one(texts[1])["logprobs"]["token_logprobs"], numbers[1])
        self.assertEqual(self.one(ids[2])["logprobs"]["token_logprobs"], numbers[2])
        self.assertGreater(answer["mica"]["prefill_ms"], 0)
        self.assertEqual(answer["mica"]["prompt_n"], answer["usage"]["prompt_tokens"])

    def test_offsets(self):
        """Of characters in the text that is returned."""
        text = "Hi é 🙂! ok zh你 alpha"
        told = self.one(text)["logprobs"]
        self.assertEqual(told["text_offset"][0], 0)
        self.assertEqual(told["text_offset"], sorted(told["text_offset"]))
        for token, at in zip(told["tokens"], told["text_offset"]):
            if not token.startswith("bytes:") and at > 0:
                self.assertEqual(text[at:at + len(token)], token)
        self.assertEqual(text[told["text_offset"][-1]:], told["tokens"][-1])

    def test_offsets_of_ids(self):
        """Bytes that are no text are U+FFFD in it; a character's later bytes begin behind it."""
        e, f0, x80, ff = self.tokens("E")[-1], 3 + 0xF0, 3 + 0x80, 3 + 0xFF
        smile = [3 + b for b in "\U0001f642".encode()]
        for ids, text, offsets in (([e, ff, e], "E\ufffdE", [0, 1, 2]), ([x80, e], "\ufffdE", [0, 1]),
                                   ([f0, e, 2, e], "\ufffdEE", [0, 1, 2, 2]), (smile + [e], "\U0001f642E", [0, 1, 1, 1, 1])):
            choice = self.one(ids)
            self.assertEqual((choice["text"], choice["logprobs"]["text_offset"]), (text, offsets))
            self.assertEqual(self.server.post(PATH, {"prompt": ids, "echo": True, "max_tokens": 0}).json()["choices"][0]["text"], text)
        self.assertEqual(self.one([ff, e])["logprobs"]["tokens"], ["bytes:\\xff", "E"])

    def test_one_token(self):
        """The token that is made comes behind the prompt's, even where it ends the text: who scores leaves the last one out."""
        names, _ = self.names()
        red_fox = [names["red"], names[" fox"]]
        end = self.one(red_fox, max_tokens=1)
        self.assertEqual((end["text"], end["finish_reason"]), ("red fox", "stop"))
        self.assertEqual(end["logprobs"]["tokens"][-1], "</s>")
        self.assertEqual(end["logprobs"]["text_offset"][-1], len("red fox"))
        without = self.one(red_fox)["logprobs"]
        self.assertEqual(end["logprobs"]["token_logprobs"][:-1], without["token_logprobs"])
        made = self.score("E", max_tokens=1, n=2)
        self.assertEqual([c["text"] for c in made["choices"]], ["EHi", "EHi"])
        self.assertEqual([c["logprobs"]["tokens"][-1] for c in made["choices"]], ["Hi", "Hi"])
        self.assertEqual(made["usage"]["completion_tokens"], 2)

    def test_longer_reply(self):
        """Prompt and reply follow each other, each as it is without the other."""
        prompt = self.one("xS", logprobs=2)["logprobs"]
        reply = self.server.post(PATH, {"prompt": "xS", "logprobs": 2, "temperature": 0}).json()["choices"][0]
        both = self.one("xS", logprobs=2, max_tokens=16)
        self.assertEqual((both["text"], both["finish_reason"]), ("xS" + reply["text"], "stop"))
        for name in ("tokens", "token_logprobs", "top_logprobs"):
            self.assertEqual(both["logprobs"][name][:-1], prompt[name] + reply["logprobs"][name])
        self.assertEqual(both["logprobs"]["tokens"][-1], "</s>")
        self.assertEqual(both["logprobs"]["text_offset"][:-1], prompt["text_offset"] + [2 + at for at in reply["logprobs"]["text_offset"]])

    def test_stream(self):
        for length in (0, 1, 16):
            body = {"prompt": ["xS", "R"], "echo": True, "logprobs": 2, "max_tokens": length, "temperature": 0}
            whole = self.server.post(PATH, body).json()["choices"]
            parts = chunks(self.server.post(PATH, {**body, "stream": True}))
            for i in range(2):
                mine = [c for p in parts for c in p["choices"] if c["index"] == i]
                self.assertEqual("".join(c["text"] for c in mine), whole[i]["text"])
                for name in LISTS:
                    self.assertEqual([e for c in mine for e in c["logprobs"][name]], whole[i]["logprobs"][name])
                self.assertEqual(mine[-1]["finish_reason"], whole[i]["finish_reason"])

    def test_refused(self):
        for body, param, says in (({"prompt": LONG, "logprobs": 20}, "logprobs", "672000"),
                                  ({"prompt": LONG[:20], "logprobs": 1, "stream": True}, "logprobs", "20000"),
                                  ({"prompt": "E", "logprobs": 1, "token_healing": True}, "token_healing", "echo"),
                                  ({"prompt": [5] * 512, "logprobs": 1}, "prompt", "512")):
            self.refused(self.server.post(PATH, {"echo": True, "max_tokens": 0, **body}), 400, param, says=says)


class Tiny(Scores):
    """A model whose every number counts."""
    model = TINY

    def test_as_generated(self):
        """What a token got when it was made it gets when it is scored, bit for bit."""
        ids, (names, others) = self.tokens("one fish two fish"), self.names()
        made = self.server.post(PATH, {"prompt": ids, "logprobs": 5, "max_tokens": 40, "temperature": 0.8, "seed": 3,
                                       "logit_bias": {str(i): -100 for i in others}}).json()["choices"][0]["logprobs"]
        self.assertEqual(len(made["tokens"]), 40)
        told = self.one(ids + [names[t] for t in made["tokens"]], logprobs=5)["logprobs"]
        self.assertEqual(told["tokens"][len(ids):], made["tokens"])
        self.assertEqual(told["token_logprobs"][len(ids):], made["token_logprobs"])
        self.assertEqual(told["top_logprobs"][len(ids):], made["top_logprobs"])

    def test_as_perplexity(self):
        """The mean that `mica perplexity` prints, from the single numbers."""
        text, window = "one fish two fish red fish blue fish " * 8, 64
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            f.write(text)
            f.flush()
            done = subprocess.run([BIN, "perplexity", "-m", TINY, "-f", f.name, "--window", str(window), "--json"], check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        want = json.loads(done.stdout)["windows"]
        ids = self.tokens(text)
        bos = ids[0]
        self.assertGreater(len(want), 1)
        for i, mean in enumerate(want):
            part = ids[i * window:(i + 1) * window]
            told = self.one([bos] + part[1:])["logprobs"]["token_logprobs"][window // 2 + 1:]
            self.assertAlmostEqual(-sum(told) / len(told), mean, places=6)

    def test_together_as_alone(self):
        prompt = [self.tokens("one fish two fish red fish " * k) for k in (1, 3, 5)]
        alone = [self.one(p, logprobs=3)["logprobs"] for p in prompt]
        stop, broken = threading.Event(), []

        def talk():
            while not stop.is_set():
                answer = self.server.post(PATH, {"prompt": "blue fish", "max_tokens": 30, "ignore_eos": True, "stream": True})
                if answer.status != 200:
                    broken.append(answer)
        threads = [threading.Thread(target=talk) for _ in range(3)]
        for t in threads:
            t.start()
        try:
            for _ in range(3):
                self.assertEqual([c["logprobs"] for c in self.score(prompt, logprobs=3)["choices"]], alone)
        finally:
            stop.set()
            for t in threads:
                t.join()
        self.assertEqual(broken, [])


class Company(Scores):
    """With streams and embeddings beside, leavers, and the end."""

    def test_replies_do_not_wait(self):
        want, answers = self.server.ask("S"), []
        body = {"prompt": LONG, "echo": True, "logprobs": 1, "max_tokens": 1}
        asker = threading.Thread(target=lambda: answers.append((self.server.post(PATH, body), time.monotonic())))
        asker.start()
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_queue_length"] > 0))
        self.assertEqual(self.server.ask("S"), want)
        ended = time.monotonic()
        asker.join()
        answer, scored = answers[0]
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(len(answer.json()["choices"]), len(LONG))
        self.assertLess(ended, scored)

    def test_embeddings_between(self):
        """One session serves both: neither spoils the other."""
        vector = self.server.post("/v1/embeddings", {"input": LONG[0]}).json()["data"]
        scores = self.one(LONG[0])["logprobs"]
        self.assertEqual(self.server.post("/v1/embeddings", {"input": LONG[0]}).json()["data"], vector)
        self.assertEqual(self.one(LONG[0])["logprobs"], scores)

    def test_those_who_leave(self):
        for stream in (False, True):
            for _ in range(3):
                body = {"prompt": LONG[:16] if stream else LONG, "echo": True, "logprobs": 0, "max_tokens": 5, "stream": stream}
                s = self.server.socket(post_bytes(PATH, body))
                self.assertTrue(wait_until(lambda: self.server.metrics()["mica_queue_length"] > 0))
                s.close()
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_queue_length"] == 0, 60))
        self.assertEqual(self.server.ask("E"), "Hi \U0001f642!")
        self.assertEqual(len(self.one("E")["logprobs"]["tokens"]), len(self.tokens("E")))


class Ends(Scores):
    arguments = ("--timeout", 1)

    def test_time(self):
        """Where the time is not enough that is said, and the session beside the slots goes on with the next one."""
        body = {"prompt": LONG, "n": 1, "echo": True, "logprobs": 3, "max_tokens": 1}
        asked = [threading.Thread(target=lambda: answers.append(self.server.post(PATH, body))) for _ in range(16)]
        answers = []
        for t in asked:
            t.start()
        for t in asked:
            t.join()
        late = [a for a in answers if a.status != 200]
        self.assertGreater(len(late), 0)
        for answer in late:
            self.refused(answer, 504, code="timeout", says="prompt")
        self.assertEqual(self.server.metrics()["mica_timeouts_total"], len(late))
        self.assertEqual(len(self.one("E")["logprobs"]["tokens"]), len(self.tokens("E")))

    def test_end(self):
        """A second signal does not wait for scores."""
        server = Server()
        body = {"prompt": LONG, "echo": True, "logprobs": 1, "max_tokens": 1}
        sockets = [server.socket(post_bytes(PATH, body)) for _ in range(16)]
        self.assertTrue(wait_until(lambda: server.metrics()["mica_queue_length"] > 0))
        server.signal(signal.SIGTERM)
        self.assertTrue(server.wait_log("shutting down"))
        server.signal(signal.SIGTERM)
        server.process.wait(60)
        for s in sockets:
            s.close()
        self.assertGreater(server.process.returncode, 0, server.log())  # no signal killed it
        server.reader.join(5)
        server.process.stderr.close()


if __name__ == "__main__":
    main()
