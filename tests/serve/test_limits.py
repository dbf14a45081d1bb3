"""What the server refuses and survives: limits, malformed HTTP, slow and leaving clients, signals, a truncated model."""
import json
import os
import shutil
import signal
import socket
import tempfile
import time
import unittest

from serving import SCRIPTED, TIMEOUT, ServeTest, Server, events, joined, main, post_bytes, read_all, wait_until

CHAT = "/v1/chat/completions"
E = {"messages": [{"role": "user", "content": "E"}], "temperature": 0}
X = {"messages": [{"role": "user", "content": "X"}], "temperature": 0, "max_tokens": 480}


class Fields(ServeTest):
    """Wrong types and ranges are 400 with the field's name; null is absent; the unknown is ignored."""

    def test_types_and_ranges(self):
        wrong = {"temperature": ["x", True, 2.1, -0.1], "top_p": ["1", 1.5], "n": [0, 17, 1.5, "2"], "max_tokens": ["5", 1.5, -2],
                 "max_completion_tokens": [[]], "seed": ["1", 1.5], "stop": [5, [""], [1], {}, ["a"] * 33], "stream": ["yes", 1],
                 "logprobs": [1, "true"], "top_logprobs": [21, -1, "1"], "presence_penalty": [3, "0"], "frequency_penalty": [-3],
                 "logit_bias": [[], {"x": 1}, {"374": 1}, {"1": 101}, {"1": "x"}, {"-1": 1}], "stream_options": [5],
                 "response_format": [5, {}, {"type": "yaml"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {}}],
                 "tools": [{}, [5], [{"type": "function"}]], "tool_choice": ["required", 5], "user": [7], "model": [7],
                 "messages": [None, {}, [], [[]], [{"role": "user", "content": [{"type": "image_url"}]}],
                              [{"role": "user", "content": []}]], "reasoning_format": ["x", 1], "top_k": [-1], "ignore_eos": [0],
                 "priority": ["1", 1.5, True, 101, -101], "parallel_tool_calls": [1, "no"],
                 "chat_template_kwargs": [[]]}
        for name, values in wrong.items():
            for value in values:
                with self.subTest(name, value=value):
                    error = self.refused(self.server.chat({**E, name: value}), 400)
                    self.assertTrue((error["param"] or "").startswith(name), error)

    def test_null_is_absent_and_the_unknown_is_ignored(self):
        nulls = {k: None for k in ("max_tokens", "stop", "seed", "logit_bias", "tools", "tool_choice", "response_format", "stream",
                                   "stream_options", "n", "top_p", "logprobs", "top_logprobs", "user", "priority")}
        answer = self.server.chat({**E, **nulls, "store": True, "metadata": {"a": "b"}, "service_tier": "auto"})
        self.assertEqual(answer.json()["choices"][0]["message"]["content"], "Hi 🙂!")

    def test_completions_and_responses(self):
        for body, param in (({}, "prompt"), ({"prompt": 5}, "prompt"), ({"prompt": [[]]}, "prompt"), ({"prompt": [1, "x"]}, "prompt"),
                            ({"prompt": ["x"] * 65}, "prompt"), ({"prompt": ["x"] * 20, "n": 16}, "n"),
                            ({"prompt": "E", "echo": 1}, "echo"), ({"prompt": "E", "suffix": "x"}, "suffix"),
                            ({"prompt": "E", "best_of": 2}, "best_of"), ({"prompt": "E", "logprobs": True}, "logprobs"),
                            ({"prompt": "E", "logprobs": 21}, "logprobs")):
            with self.subTest(body=body):
                self.refused(self.server.post("/v1/completions", body), 400, param)
        for body, param in (({}, "input"), ({"input": 5}, "input"), ({"input": "E", "previous_response_id": "x"}, "previous_response_id"),
                            ({"input": "E", "tools": [{}]}, "tools"), ({"input": "E", "text": 5}, "text"),
                            ({"input": "E", "max_output_tokens": 0}, "max_output_tokens")):
            with self.subTest(body=body):
                self.refused(self.server.post("/v1/responses", body), 400, param)

    def test_context(self):
        """The counts are in the message."""
        error = self.refused(self.server.post("/v1/completions", {"prompt": "a" * 600}), 400, "prompt", "context_length_exceeded")
        self.assertIn("512", error["message"])
        self.assertIn("600", error["message"])
        answer = self.server.chat({**X, "max_tokens": 5000}).json()
        self.assertEqual((answer["choices"][0]["finish_reason"], answer["usage"]["total_tokens"]), ("length", 512))

    def test_json(self):
        for body in (b"[" * 100000, b'{"messages":' + b"[" * 65 + b"]" * 65 + b"}", b'{"a":1e999}', b'{"a":' + b"9" * 400 + b"}", b"{" * 65,
                     b'{"\xff":1}', b"\x00"):
            self.refused(self.server.post(CHAT, body), 400)
        self.refused(self.server.post("/tokenize", b'{"content":"\xed\xa0\x80"}'), 400)
        self.refused(self.server.post("/tokenize", {"content": 5}), 400, "content")
        self.refused(self.server.post("/detokenize", {"tokens": [1, 400]}), 400, "tokens", says="400")

    def test_structured(self):
        """The scripted model says what it is made to say."""
        schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
        self.assertEqual(json.loads(self.server.ask("J", response_format=form)), {"a": 1})
        self.assertIsInstance(json.loads(self.server.ask("J", response_format={"type": "json_object"}, max_tokens=50, close=True)), dict)
        self.assertEqual(self.server.ask("E", response_format={"type": "text"}), "Hi 🙂!")
        bad = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}, "strict": True}}
        self.refused(self.server.chat({**E, "response_format": bad}), 400, "response_format")
        answer = self.server.post("/v1/responses", {"input": "J", "temperature": 0, "text": {"format": {
            "type": "json_schema", "name": "x", "schema": schema, "strict": True}}}).json()
        self.assertEqual(json.loads(answer["output"][0]["content"][0]["text"]), {"a": 1})

    def test_logit_bias_and_penalties(self):
        ids = {"Hi": 351, "ok": 352}
        self.assertEqual(self.server.ask("E", logit_bias={str(ids["ok"]): 100}, max_tokens=1), "ok")
        self.assertNotEqual(self.server.ask("E", logit_bias={str(ids["Hi"]): -100}, max_tokens=1), "Hi")
        self.assertNotEqual(self.server.ask("X", presence_penalty=2, frequency_penalty=2, max_tokens=30), "x" * 30)

    def test_responses_stream(self):
        answer = self.server.post("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "E"}]}],
                                                    "instructions": "none", "temperature": 0, "stream": True})
        told = events(answer.text)
        self.assertEqual([name for name, e in told], [e["type"] for name, e in told])
        self.assertEqual([e["sequence_number"] for _, e in told], list(range(len(told))))
        self.assertEqual("".join(e["delta"] for n, e in told if n == "response.output_text.delta"), "Hi 🙂!")
        self.assertEqual((told[0][0], told[-1][0]), ("response.created", "response.completed"))
        self.assertEqual(told[-1][1]["response"]["output"][0]["content"][0]["text"], "Hi 🙂!")


class Http(ServeTest):
    def raw(self, data):
        """(status, headers and body) of the answer to these bytes."""
        s = self.server.socket(data)
        answer = read_all(s).decode("latin-1")
        s.close()
        self.assertTrue(answer.startswith("HTTP/1.1 "), answer)
        return int(answer[9:12]), answer

    def test_malformed(self):
        host = b"Host: localhost\r\n"
        wrong = [(b"GET\r\n\r\n", 400), (b"GET /health\r\n\r\n", 400), (b"GET /health HTTP/2.0\r\n" + host + b"\r\n", 505),
                 (b"GET health HTTP/1.1\r\n" + host + b"\r\n", 400), (b"G@T /health HTTP/1.1\r\n" + host + b"\r\n", 400),
                 (b"GET /health HTTP/1.1\r\n\r\n", 400), (b"GET /health HTTP/1.1\r\n" + host * 2 + b"\r\n", 400),
                 (b"GET /health HTTP/1.1\r\n" + host + b"x y: z\r\n\r\n", 400), (b"GET /health HTTP/1.1\r\n" + host + b" x: z\r\n\r\n", 400),
                 (b"GET /health HTTP/1.1\n" + host + b"\r\n", 400), (b"GET /health HTTP/1.1\r\n" + host + b"x: \x01\r\n\r\n", 400),
                 (b"GET /h\x00 HTTP/1.1\r\n" + host + b"\r\n", 400),
                 (b"POST / HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n", 400),
                 (b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
                 (b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
                 (b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip\r\n\r\n", 501),
                 (b"POST /tokenize HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
                 (b"POST /tokenize HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n", 400),
                 (b"POST /tokenize HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 413),
                 (b"POST /tokenize HTTP/1.1\r\n" + host + b"Content-Length: 99999999999999999999\r\n\r\n", 413),
                 (b"POST /tokenize HTTP/1.1\r\n" + host + b"Expect: magic\r\n\r\n", 417),
                 (b"GET /health HTTP/1.1\r\n" + host + b"x: y\r\n" * 65 + b"\r\n", 431),
                 (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n" + host + b"\r\n", 431)]
        for data, status in wrong:
            with self.subTest(data=data[:60]):
                got, answer = self.raw(data)
                self.assertEqual(got, status, answer)
                body = json.loads(answer.split("\r\n\r\n", 1)[1])
                self.assertEqual(set(body["error"]), {"message", "type", "param", "code"})
        self.assertEqual(self.server.ask("E"), "Hi 🙂!")

    def test_body_limit(self):
        size = 8 << 20
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size + 1}\r\n\r\n".encode()
        s = self.server.socket(head)
        self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 413 "))  # at once, unread
        s.close()
        body = json.dumps({"messages": [{"role": "user", "content": "a" * 1000000}]}).encode()
        self.refused(self.server.post(CHAT, body), 400, "messages", "context_length_exceeded")

    def test_http_1_0(self):
        status, answer = self.raw(b"GET /health HTTP/1.0\r\n\r\n")
        self.assertEqual((status, answer.endswith('{"status":"ok"}')), (200, True))
        body = json.dumps({**E, "stream": True}).encode()
        status, answer = self.raw(b"POST %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (CHAT.encode(), len(body), body))
        self.assertNotIn("chunked", answer)
        told = [e for _, e in events(answer.split("\r\n\r\n", 1)[1].encode("latin-1").decode())]
        self.assertEqual(joined(told[:-1]), "Hi 🙂!")

    def test_who_may_ask_without_a_key(self):
        """A page in a browser on this machine, which is no user of it."""
        for headers, status in (({"Host": "evil.test"}, 403), ({"Host": "evil.test:8080", "Origin": "http://evil.test:8080"}, 403),
                                ({"Origin": "http://evil.test"}, 403), ({"Origin": "null"}, 403), ({"Host": "localhost"}, 200),
                                ({"Host": "127.0.0.1:1"}, 200), ({"Host": "[::1]"}, 200), ({"Host": "localhost.evil.test"}, 403),
                                ({"Host": "localhost:9", "Origin": "http://localhost:9"}, 200)):
            with self.subTest(headers=headers):
                self.assertEqual(self.server.get("/v1/models", headers=headers).status, status)

    def test_half_closed(self):
        """A client that closes its side has left, as one that closes both."""
        before = self.server.metrics()["mica_clients_left_total"]
        s = self.server.socket(post_bytes(CHAT, {**X, "n": 16}))
        s.shutdown(socket.SHUT_WR)
        self.assertEqual(read_all(s), b"")
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_running"] == 0))
        self.assertEqual(self.server.metrics()["mica_clients_left_total"], before + 1)

    def test_bytes_while_the_reply_is_made(self):
        s = self.server.socket(post_bytes(CHAT, {**X, "n": 16}))
        for _ in range(20):
            s.sendall(b"garbage " * 100)
            time.sleep(0.005)
        s.shutdown(socket.SHUT_WR)
        s.close()
        self.assertEqual(self.server.ask("E"), "Hi 🙂!")


class Slow(unittest.TestCase):
    def test_slow_loris(self):
        """Headers that never end are a 408 after 10 s, however busily bytes trickle; others do not notice."""
        server = Server()
        self.addCleanup(server.stop)
        begin = time.monotonic()
        slow = [server.socket(b"GET /health HTTP/1.1\r\nHost: localhost\r\n") for _ in range(30)]
        silent = server.socket()
        while time.monotonic() - begin < 9:
            for s in slow:
                s.sendall(b"X-a: b\r\n")
            self.assertEqual(server.ask("E"), "Hi 🙂!")
            time.sleep(0.5)
        answers = [read_all(s) for s in slow]
        self.assertTrue(all(a.startswith(b"HTTP/1.1 408 ") for a in answers), answers)
        self.assertEqual(read_all(silent), b"")
        self.assertLess(time.monotonic() - begin, 20)

    def test_slow_reader(self):
        """A stream that is not read is dropped; others go on, the slot is free."""
        server = Server("--parallel", 2)
        self.addCleanup(server.stop)
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(server.address)
        body = {**X, "n": 16, "stream": True, "logprobs": True, "top_logprobs": 20, "max_tokens": 500}
        s.sendall(post_bytes(CHAT, body))
        while server.metrics()["mica_slow_readers_total"] == 0:
            self.assertEqual(server.ask("E"), "Hi 🙂!")
        self.assertTrue(server.wait_log("has not read"))
        self.assertTrue(wait_until(lambda: server.metrics()["mica_running"] == 0))
        s.close()


class Full(unittest.TestCase):
    def test_queue(self):
        server = Server("--parallel", 1, "--queue", 2)
        self.addCleanup(server.stop)
        held = [server.socket(post_bytes(CHAT, {**X, "n": 16})) for _ in range(3)]
        self.assertTrue(wait_until(lambda: server.metrics()["mica_queue_length"] == 2))
        answer = server.chat(E)
        self.assertEqual(answer.status, 429, answer)
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        self.assertEqual(answer.json()["error"]["code"], "queue_full")
        self.assertEqual(server.get("/health").status, 200)
        for s in held:
            s.close()
        self.assertTrue(wait_until(lambda: server.metrics()["mica_queue_length"] == 0))
        self.assertEqual(server.ask("E"), "Hi 🙂!")
        self.assertEqual(server.metrics()["mica_queue_refusals_total"], 1)

    def test_connections(self):
        server = Server("--connections", 5)
        self.addCleanup(server.stop)
        held = [server.socket() for _ in range(5)]
        self.assertTrue(wait_until(lambda: read_one(server) == 503))
        for s in held:
            s.close()
        self.assertTrue(wait_until(lambda: read_one(server) == 200))


def read_one(server):
    try:
        return server.get("/health").status
    except OSError:
        return 0


class Signals(unittest.TestCase):
    def test_drain(self):
        server = Server("--parallel", 1)
        s = server.socket(post_bytes(CHAT, {**X, "n": 16, "stream": True}))
        waiting = server.socket(post_bytes(CHAT, E))
        idle = server.socket()
        self.assertTrue(wait_until(lambda: server.metrics()["mica_queue_length"] == 1))
        server.signal(signal.SIGTERM)
        self.assertTrue(server.wait_log("shutting down"))
        self.assertEqual(read_all(idle), b"")
        with self.assertRaises(OSError):
            server.socket()
        self.assertIn(b"data: [DONE]\n\n", read_all(s))
        self.assertIn("Hi 🙂!".encode(), read_all(waiting))
        for client in (s, waiting, idle):
            client.close()
        self.assertEqual(server.process.wait(TIMEOUT), 0)
        server.stop()

    def test_second_signal(self):
        server = Server("--parallel", 1)
        held = [server.socket(post_bytes(CHAT, {**X, "n": 16})) for _ in range(20)]
        self.assertTrue(wait_until(lambda: server.metrics()["mica_queue_length"] == 19))
        server.signal(signal.SIGTERM)
        self.assertTrue(server.wait_log("shutting down"))
        server.signal(signal.SIGTERM)
        self.assertNotEqual(server.stop(), 0)
        for s in held:
            s.close()

    def test_truncated_model(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "model.gguf")
        shutil.copy(SCRIPTED, path)
        server = Server(model=path)
        self.assertEqual(server.ask("E"), "Hi 🙂!")
        os.truncate(path, 4096)
        with self.assertRaises((OSError, AssertionError)):
            server.ask("R")
        self.assertEqual(server.stop(), 1)
        self.assertIn(f"the file {path} was truncated", server.log())


class Prefix(ServeTest):
    arguments = ("--parallel", 2)

    def cached(self, text):
        answer = self.server.post("/v1/completions", {"prompt": text, "max_tokens": 1, "temperature": 0}).json()
        return answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    def test_longest_prefix(self):
        """Two conversations go on in turn, and a third one takes nothing from them: there is memory for all."""
        first, second, third = "abcdefgh" * 20, "zyxwvuts" * 20, "mnopqrst" * 20
        for text in (first, second, third):
            self.assertEqual(self.cached(text), 0)
        for text in (first + "ab", second + "zy", third, second, first):
            self.assertGreaterEqual(self.cached(text), 159)


if __name__ == "__main__":
    main()
