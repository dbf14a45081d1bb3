"""/v1/embeddings: forms of input and output, the same vectors as mica embed, errors, and company: streams, leavers, limits,
the end."""
import base64
import json
import os
import signal
import struct
import subprocess
import threading
import time

from serving import BIN, DATA, Server, ServeTest, chunks, main, post_bytes, wait_until

TINY = os.path.join(DATA, "tiny", "llama.gguf")
WIDTH = 64
PATH = "/v1/embeddings"
MANY = [[5 + (i * 7 + k * k) % 300 for k in range(500)] for i in range(1000)]  # of the scripted model; seconds of work


def command(*args):
    done = subprocess.run([BIN, "embed", "-m", TINY, *args], stdout=subprocess.PIPE, check=True, stdin=subprocess.DEVNULL)
    return [float(x) for x in done.stdout.split()]


def unpacked(text):
    return list(struct.unpack(f"<{WIDTH}f", base64.b64decode(text, validate=True)))


def single(values):
    return [struct.unpack("f", struct.pack("f", v))[0] for v in values]


class Vectors(ServeTest):
    model = TINY

    def embed(self, value, **more):
        answer = self.server.post(PATH, {"model": "any", "input": value, **more})
        self.assertEqual(answer.status, 200, answer)
        body = answer.json()
        self.assertEqual((body["object"], body["model"]), ("list", "llama"))
        self.assertEqual([d["index"] for d in body["data"]], list(range(len(body["data"]))))
        self.assertEqual({d["object"] for d in body["data"]}, {"embedding"})
        self.assertEqual(body["usage"]["total_tokens"], body["usage"]["prompt_tokens"])
        self.assertEqual(body["mica"]["prompt_n"], body["usage"]["prompt_tokens"])
        self.assertGreaterEqual(body["mica"]["total_ms"], body["mica"]["queue_ms"])
        return [d["embedding"] for d in body["data"]], body["usage"]["prompt_tokens"]

    def tokens(self, text, parse_special=False):
        body = {"content": text, "add_special": True, "parse_special": parse_special}
        return self.server.post("/tokenize", body).json()["tokens"]

    def test_forms(self):
        texts = ["one fish", "two fish", "red \u00e9 fish", "one fish"]
        want = [command("-p", t) for t in texts]
        vectors, n = self.embed(texts)
        self.assertEqual(vectors, want)
        ids = [self.tokens(t) for t in texts]
        self.assertEqual(n, sum(map(len, ids)))
        self.assertEqual(self.embed(texts[1]), ([want[1]], len(ids[1])))
        self.assertEqual(self.embed(ids), (want, n))
        self.assertEqual(self.embed(ids[2]), ([want[2]], len(ids[2])))
        packed, _ = self.embed(texts, encoding_format="base64")
        self.assertEqual([unpacked(p) for p in packed], [single(v) for v in want])
        self.assertEqual(self.embed(texts, encoding_format="float", dimensions=WIDTH, user="me", unknown=[])[0], want)

    def test_pooling(self):
        last = self.embed("a few words", pooling="last")[0][0]
        self.assertEqual(last, command("-p", "a few words", "--pooling", "last"))
        self.assertEqual(self.embed("a few words", pooling="mean")[0][0], command("-p", "a few words"))

    def test_text_stays_text(self):
        """A name of a control token is no control token."""
        plain = self.tokens("</s>")
        self.assertNotEqual(plain, self.tokens("</s>", parse_special=True))
        self.assertEqual(self.embed("</s>"), self.embed(plain))

    def test_whole_context_and_no_more(self):
        n_ctx = self.server.get("/v1/models").json()["data"][0]["meta"]["n_ctx"]
        ids = [5 + i % 200 for i in range(n_ctx)]
        self.assertEqual(self.embed(ids)[1], n_ctx)
        self.refused(self.server.post(PATH, {"input": [ids + [7]]}), 400, "input", "context_length_exceeded",
                     str(n_ctx + 1))

    def test_errors(self):
        for body, param, says in (({}, "input", "missing"), ({"input": None}, "input", "missing"),
                                  ({"input": 5}, "input", "string"),
                                  ({"input": ""}, "input", "empty"), ({"input": []}, "input", "empty"),
                                  ({"input": ["a", ""]}, "input", "empty"),
                                  ({"input": ["a", 5]}, "input", "string"), ({"input": [5, "a"]}, "input", "string"),
                                  ({"input": [[1], []]}, "input", "empty"), ({"input": [1, 288]}, "input", "288"),
                                  ({"input": [-1]}, "input", "-1"), ({"input": {"a": 1}}, "input", "string"),
                                  ({"input": ["a"] * 2049}, "input", "2049"), ({"input": [[[1]]]}, "input", "string"),
                                  ({"input": "a", "encoding_format": "hex"}, "encoding_format", "base64"),
                                  ({"input": "a", "encoding_format": 1}, "encoding_format", "string"),
                                  ({"input": "a", "pooling": "max"}, "pooling", "mean"),
                                  ({"input": "a", "model": 7}, "model", "string"), ({"input": "a", "user": 7}, "user", "string"),
                                  ({"input": "a", "dimensions": 32}, "dimensions", "64"),
                                  ({"input": "a", "dimensions": "64"}, "dimensions", "number")):
            with self.subTest(body=str(body)[:60]):
                self.refused(self.server.post(PATH, body), 400, param, says=says)
        self.refused(self.server.post(PATH, b"{"), 400)
        self.assertEqual(self.server.get(PATH).status, 405)

    def test_many(self):
        """As many as OpenAI takes, in one answer."""
        texts = [f"text {i}" for i in range(2048)]
        vectors, _ = self.embed(texts, encoding_format="base64")
        self.assertEqual(len(vectors), 2048)
        self.assertEqual(unpacked(vectors[1234]), single(command("-p", texts[1234])))


class Company(ServeTest):
    """The scripted model, with streams beside."""

    def idle(self):
        return self.server.metrics()["mica_queue_length"] == 0 and self.server.metrics()["mica_running"] == 0

    def test_replies_do_not_wait(self):
        """A reply that is asked for later ends first, and is the same."""
        want = self.server.ask("S")
        answers = []
        one = self.server.post(PATH, {"input": MANY[:1]}).json()["data"][0]["embedding"]
        asker = threading.Thread(target=lambda: answers.append((self.server.post(PATH, {"input": MANY}), time.monotonic())))
        asker.start()
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_queue_length"] > 0))
        stream = self.server.chat({"messages": [{"role": "user", "content": "S"}], "temperature": 0, "stream": True})
        ended = time.monotonic()
        asker.join()
        self.assertEqual("".join(c["choices"][0]["delta"].get("content") or "" for c in chunks(stream)), want)
        answer, embedded = answers[0]
        self.assertEqual(answer.status, 200)
        self.assertLess(ended, embedded)
        self.assertEqual(len(answer.json()["data"]), len(MANY))
        self.assertEqual(answer.json()["data"][0]["embedding"], one)

    def test_those_who_leave(self):
        for _ in range(5):
            s = self.server.socket(post_bytes(PATH, {"input": MANY}))
            self.assertTrue(wait_until(lambda: self.server.metrics()["mica_queue_length"] > 0))
            s.close()
        start = time.monotonic()
        self.assertTrue(wait_until(self.idle, 60))
        self.assertEqual(self.server.post(PATH, {"input": "E"}).status, 200)
        self.assertLess(time.monotonic() - start, 30)


class Limits(ServeTest):
    arguments = ("--timeout", 1)

    def test_time(self):
        answer = self.server.post(PATH, {"input": MANY + MANY})
        self.assertIn(answer.status, (503, 504), answer)
        self.refused(answer, answer.status, code="timeout")
        self.assertGreaterEqual(self.server.metrics()["mica_timeouts_total"], 1)
        self.assertEqual(self.server.post(PATH, {"input": "E"}).status, 200)

    def test_memory(self):
        """Without room beside the slots there are no embeddings, and all else works."""
        with self.assertRaisesRegex(AssertionError, "over the budget of 1000 bytes"):
            Server("--memory-limit", 1000)
        server = Server()
        need = server.get("/v1/mica/status").json()["memory"]["plan"]["peak_bytes"]
        self.assertEqual(server.stop(), 0)
        server = Server("--memory-limit", need + 400000)  # the program's own pages differ from start to start
        try:
            self.refused(server.post(PATH, {"input": "E"}), 500, says="budget")
            self.assertEqual(server.ask("E"), "Hi \U0001f642!")
        finally:
            self.assertEqual(server.stop(), 0)

    def test_end(self):
        """What runs ends before the server does; a second signal does not wait."""
        for signals in (1, 2):
            server, answers = Server(), []
            s = server.socket(post_bytes(PATH, {"input": MANY}))
            self.assertTrue(wait_until(lambda: server.metrics()["mica_queue_length"] > 0))  # pylint: disable=cell-var-from-loop
            server.signal(signal.SIGTERM)
            self.assertTrue(server.wait_log("shutting down"))
            if signals == 2:
                server.signal(signal.SIGTERM)
            s.settimeout(60)
            try:
                while block := s.recv(1 << 20):
                    answers.append(block)
            except ConnectionResetError:
                pass
            s.close()
            server.process.wait(60)
            if signals == 1:
                self.assertEqual(server.process.returncode, 0, server.log())
                body = b"".join(answers).split(b"\r\n\r\n", 1)[1]
                self.assertEqual(len(json.loads(body)["data"]), len(MANY))
            else:
                self.assertNotEqual(server.process.returncode, 0)
                self.assertGreater(server.process.returncode, 0, server.log())  # no signal killed it
            server.reader.join(5)
            server.process.stderr.close()


if __name__ == "__main__":
    main()
