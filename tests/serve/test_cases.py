"""The cases of the area server that need only the scripted model, by their ids."""
import json
import os
import signal
import tempfile
import unittest

from serving import CASES, ServeTest, Server, case_json, chunks, joined, main, post_bytes, read_all, wait_until

CHAT = "/v1/chat/completions"


class Text(ServeTest):
    def both(self, request):
        """(content as a stream, content as a whole, whole answer, chunks)"""
        plain = self.server.chat({**request, "stream": False})
        parts = chunks(self.server.chat({**request, "stream": True}))
        whole = plain.json()
        for part in parts:
            self.assertNotIn("\ufffd" if "V" not in json.dumps(request["messages"]) else "\x00", json.dumps(part, ensure_ascii=False))
        return joined(parts), whole["choices"][0]["message"]["content"], whole, parts

    def test_srv_01_emoji_over_four_tokens(self):
        for request, text, tokens in zip(case_json("srv-01-emoji-over-four-tokens")[::2], ("Hi 🙂!", "zh你試#"), (8, 9)):
            stream, plain, whole, _ = self.both(request)
            self.assertEqual((stream, plain), (text, text))
            self.assertEqual(whole["usage"]["completion_tokens"], tokens)

    def test_srv_03_invalid_byte_in_output(self):
        plain, stream, logprobs = case_json("srv-03-invalid-byte-in-output")
        self.assertEqual(self.server.chat(plain).json()["choices"][0]["message"]["content"], "ok\ufffdgo")
        self.assertEqual(joined(chunks(self.server.chat(stream))), "ok\ufffdgo")
        content = self.server.chat(logprobs).json()["choices"][0]["logprobs"]["content"]
        self.assertEqual([e["bytes"] for e in content], [list(b"ok"), [255], list(b"go")])
        self.assertTrue(all(len(e["top_logprobs"]) == 2 for e in content))
        parts = chunks(self.server.chat({**logprobs, "stream": True}))
        told = [e for p in parts for c in p["choices"] for e in (c["logprobs"] or {"content": []})["content"]]
        self.assertEqual(told, content)

    def test_srv_04_stop_over_token_borders(self):
        wanted = ["alpha ", "alpha ", "alpha be", "alpha ", ""]
        for request, text in zip(case_json("srv-04-stop-over-token-borders"), wanted):
            stream, plain, whole, parts = self.both(request)
            self.assertEqual((stream, plain), (text, text))
            self.assertEqual(whole["choices"][0]["finish_reason"], "stop")
            self.assertEqual(parts[-1]["choices"][0]["finish_reason"], "stop")

    def test_srv_05_held_back_text_is_flushed(self):
        requests = case_json("srv-05-held-back-text-is-flushed")
        for request, text in zip(requests, ["alpha beta gamma delta"] * 3 + ["Hi 🙂!"]):
            self.assertEqual(joined(chunks(self.server.chat(request))), text)
        # The last one's stop string is longer than the 1,024 bytes that are possible: as long as that it works, longer is refused
        longest = {**requests[4], "stop": [requests[4]["stop"][0][:1024]]}
        self.assertEqual(joined(chunks(self.server.chat(longest))), "alpha beta gamma delta")
        if len(requests[4]["stop"][0]) > 1024:
            self.refused(self.server.chat(requests[4]), 400, "stop")

    def test_srv_06_stop_inside_a_token(self):
        for request in case_json("srv-06-stop-inside-a-token"):
            stream, plain, whole, _ = self.both(request)
            self.assertEqual((stream, plain), ("Mars?", "Mars?"))
            self.assertEqual(whole["choices"][0]["finish_reason"], "stop")

    def test_srv_08_usage_in_stream(self):
        without, with_usage, off, plain = case_json("srv-08-usage-in-stream")
        wanted = self.server.chat({k: v for k, v in plain.items() if k != "stream_options"}).json()["usage"]
        for request in (without, off):
            for part in chunks(self.server.chat(request)):
                self.assertEqual(len(part["choices"]), 1)
                self.assertIsNone(part.get("usage"))
        parts = chunks(self.server.chat(with_usage))
        self.assertEqual(parts[-1]["choices"], [])
        usage = parts[-1]["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self.assertEqual(usage[key], wanted[key])
        self.assertEqual([p["choices"][0]["finish_reason"] for p in parts[:-1]], [None] * (len(parts) - 2) + ["stop"])
        self.assertTrue(all(p["usage"] is None for p in parts[:-1]))
        self.assertEqual(self.server.chat(plain).status, 200)

    def test_srv_09_sse_bytes(self):
        for request, text in zip(case_json("srv-09-sse-bytes"), ("Hi 🙂!", "Mars?\nBob")):
            parts = chunks(self.server.chat(request))
            self.assertEqual(joined(parts), text)
            for key in ("id", "created", "model", "object"):
                self.assertEqual(len({p[key] for p in parts}), 1)
            self.assertEqual((parts[0]["object"], parts[0]["model"]), ("chat.completion.chunk", "scripted"))
            self.assertTrue(parts[0]["id"])
            self.assertEqual(["role" in p["choices"][0]["delta"] for p in parts], [True] + [False] * (len(parts) - 1))
            self.assertEqual(sum(p["choices"][0]["finish_reason"] is not None for p in parts), 1)

    def test_srv_12_malformed_bodies(self):
        folder = os.path.join(CASES, "srv-12-malformed-bodies")
        loose = {"dup_key", "utf8_bom", "nul_escape", "lone_surrogate", "bad_role", "model_number"}
        names = sorted(os.listdir(folder))
        self.assertEqual(len(names), 30)
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                answer = self.server.post(CHAT, f.read())
            with self.subTest(name):
                if name[:-5] not in loose or answer.status != 200:
                    self.refused(answer, 400)
        self.assertEqual(self.server.ask("E"), "Hi 🙂!")

    def test_srv_18_end_tokens(self):
        two, red, on = (self.server.chat(r).json()["choices"][0] for r in case_json("srv-18-end-tokens"))
        self.assertEqual((two["message"]["content"], two["finish_reason"]), ("two", "stop"))
        self.assertEqual((red["message"]["content"], red["finish_reason"]), ("red fox", "stop"))
        self.assertEqual(on["finish_reason"], "length")
        self.assertEqual(self.server.chat(case_json("srv-18-end-tokens")[2]).json()["usage"]["completion_tokens"], 12)

    def test_srv_20_think_split_off(self):
        for request in case_json("srv-20-think-split"):
            stream, plain, whole, parts = self.both(request)
            self.assertEqual((stream, plain), ("<think>hm</think>yes",) * 2)
            self.assertNotIn("reasoning_content", whole["choices"][0]["message"])
            self.assertEqual(joined(parts, field="reasoning_content"), "")
            self.assertEqual(whole["usage"]["completion_tokens"], 5)

    def test_srv_21_n_and_echo(self):
        two, three, many, echo, empty, outside = case_json("srv-21-n-and-echo")
        answer = self.server.chat(two).json()
        self.assertEqual([(c["index"], c["message"]["content"]) for c in answer["choices"]], [(0, "Hi 🙂!"), (1, "Hi 🙂!")])
        self.assertEqual((answer["usage"]["completion_tokens"], answer["usage"]["prompt_tokens"]), (16, 1))
        self.assertEqual(len(self.server.chat(three).json()["choices"]), 3)
        again = [[c["message"]["content"] for c in self.server.chat({**three, "n": 8}).json()["choices"]] for _ in range(2)]
        self.assertEqual(again[0], again[1])
        self.assertGreater(len(set(again[0])), 1)
        path = many["_path"]
        self.assertEqual([c["text"] for c in self.server.post(path, many).json()["choices"]], ["Hi 🙂!", "red fox"])
        self.assertEqual(self.server.post(path, echo).json()["choices"][0]["text"], "EHi 🙂!")
        parts = chunks(self.server.post(path, {**echo, "stream": True}))
        self.assertEqual("".join(p["choices"][0]["text"] for p in parts), "EHi 🙂!")
        self.refused(self.server.post(path, empty), 400, "prompt")
        self.refused(self.server.post(path, outside), 400, "prompt", says="99999999")


class ThinkSplit(ServeTest):
    arguments = ("--reasoning", "split")

    def test_srv_20_think_split_on(self):
        plain, stream = case_json("srv-20-think-split")
        whole = self.server.chat(plain).json()
        message = whole["choices"][0]["message"]
        self.assertEqual((message["reasoning_content"], message["content"]), ("hm", "yes"))
        parts = chunks(self.server.chat(stream))
        self.assertEqual((joined(parts, field="reasoning_content"), joined(parts)), ("hm", "yes"))
        self.assertEqual(whole["usage"]["completion_tokens"], 5)
        off = self.server.chat({**plain, "reasoning_format": "none"}).json()["choices"][0]["message"]
        self.assertEqual(off["content"], "<think>hm</think>yes")


class Routes(ServeTest):
    def test_srv_19_routes_and_methods(self):
        self.assertEqual(self.server.get("/health").json(), {"status": "ok"})
        models = self.server.get("/v1/models").json()
        self.assertEqual((models["object"], [m["id"] for m in models["data"]]), ("list", ["scripted"]))
        wrong = self.server.get(CHAT)
        self.refused(wrong, 405)
        self.assertIn("POST", wrong.headers["allow"])
        self.refused(self.server.get("/nope"), 404)
        self.refused(self.server.post("/health", {}), 405)
        head = self.server.request("HEAD", "/health")
        self.assertEqual((head.status, head.body), (200, b""))
        body = {"messages": [{"role": "user", "content": "E"}], "temperature": 0, "model": "another", "no_such_field": [1]}
        self.assertEqual(self.server.chat(body).json()["model"], "scripted")

    def test_srv_19_expect_continue(self):
        body = json.dumps({"messages": [{"role": "user", "content": "E"}], "temperature": 0}).encode()
        s = self.server.socket(post_bytes(CHAT, b"", "Expect: 100-continue", "Connection: close").replace(
            b"Content-Length: 0", b"Content-Length: %d" % len(body)))
        self.assertEqual(s.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
        s.sendall(body)
        self.assertIn("Hi 🙂!".encode(), read_all(s))

    def test_srv_19_two_requests_on_one_connection(self):
        def body(text):
            return {"messages": [{"role": "user", "content": text}], "temperature": 0}
        s = self.server.socket(post_bytes(CHAT, body("E")) + post_bytes(CHAT, body("R"), "Connection: close"))
        answer = read_all(s).decode()
        self.assertEqual(answer.count("HTTP/1.1 200 OK"), 2)
        self.assertLess(answer.index("Hi 🙂!"), answer.index("red fox"))

    def test_srv_19_chunked_body(self):
        body = json.dumps({"messages": [{"role": "user", "content": "E"}], "temperature": 0}).encode()
        pieces = b"".join(b"%x;x=y\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7]) for i in range(0, len(body), 7))
        head = (f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n").encode()
        s = self.server.socket()
        for byte in head + pieces + b"0\r\nTrailer: x\r\n\r\n":  # in the smallest pieces
            s.sendall(bytes([byte]))
        self.assertIn("Hi 🙂!".encode(), read_all(s))


class Waiting(ServeTest):
    arguments = ("--parallel", 1)

    def test_srv_11_client_leaves_while_waiting(self):
        body = {"messages": [{"role": "user", "content": "X"}], "temperature": 0, "max_tokens": 480}
        before = self.server.metrics()
        active = self.server.socket(post_bytes(CHAT, {**body, "n": 16}, "Connection: close"))  # one slot: one after the other
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_running"] == 1))
        gone = [self.server.socket(post_bytes(CHAT, body)) for _ in range(2)]
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_queue_length"] == 2))
        for s in gone:
            s.close()
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_queue_length"] == 0))
        self.assertEqual(self.server.metrics()["mica_running"], 1)
        self.assertEqual(self.server.ask("E"), "Hi 🙂!")
        answer = json.loads(read_all(active).split(b"\r\n\r\n", 1)[1])
        self.assertEqual([c["message"]["content"] for c in answer["choices"]], ["x" * 480] * 16)
        after = self.server.metrics()
        made = after["mica_generated_tokens_total"] - before["mica_generated_tokens_total"]
        self.assertEqual(made, 16 * 480 + 8)  # nothing for those who left
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_running"] == 0))
        self.assertEqual(after["mica_clients_left_total"] - before["mica_clients_left_total"], 2)


class Keys(unittest.TestCase):
    def start(self, *args, key="K-123456"):
        f = tempfile.NamedTemporaryFile("w", delete=False)
        self.addCleanup(os.unlink, f.name)
        with f:
            f.write(f"# keys\n\n  {key}  \n")
        server = Server("--api-key-file", f.name, *args)
        self.addCleanup(server.stop)
        return server, f.name

    def test_srv_14_cors_and_key(self):
        server, _ = self.start("--cors-origin", "http://app.test")
        asked = {"Origin": "http://app.test", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization,content-type"}
        allowed = server.request("OPTIONS", CHAT, headers=asked)
        self.assertEqual(allowed.status, 204)
        self.assertEqual(allowed.headers["access-control-allow-origin"], "http://app.test")
        self.assertIn("POST", allowed.headers["access-control-allow-methods"])
        for name in ("authorization", "content-type"):
            self.assertIn(name, allowed.headers["access-control-allow-headers"])
        body = {"messages": [{"role": "user", "content": "E"}], "temperature": 0}
        origin = {"Origin": "http://app.test"}
        for headers, status in ((origin, 401), ({**origin, "Authorization": "Bearer K-12345"}, 401),
                                ({**origin, "Authorization": "Bearer K-1234567"}, 401), ({**origin, "Authorization": "K-123456"}, 401),
                                ({**origin, "Authorization": "Bearer K-123456"}, 200)):
            answer = server.chat(body, headers=headers)
            self.assertEqual(answer.status, status)
            self.assertEqual(answer.headers["access-control-allow-origin"], "http://app.test")
        other = server.chat(body, headers={"Origin": "http://evil.test", "Authorization": "Bearer K-123456"})
        self.assertNotIn("access-control-allow-origin", other.headers)
        self.assertEqual(server.get("/health").status, 200)
        self.assertEqual(server.get("/v1/models").status, 401)
        self.assertNotIn("K-123456", server.log())

    def test_reload(self):
        server, path = self.start()
        with open(path, "w", encoding="ascii") as f:
            f.write("new-key\n")
        server.signal(signal.SIGHUP)
        self.assertTrue(server.wait_log("1 API keys were reloaded"))
        self.assertEqual(server.get("/v1/models", headers={"Authorization": "Bearer K-123456"}).status, 401)
        self.assertEqual(server.get("/v1/models", headers={"Authorization": "Bearer new-key"}).status, 200)
        os.truncate(path, 0)
        server.signal(signal.SIGHUP)
        self.assertTrue(server.wait_log("stay as they were"))
        self.assertEqual(server.get("/v1/models", headers={"Authorization": "Bearer new-key"}).status, 200)

    def test_key_from_the_environment(self):
        server = Server(env={"MICA_API_KEY": "secret"})
        self.addCleanup(server.stop)
        self.assertEqual(server.get("/v1/models").status, 401)
        self.assertEqual(server.get("/v1/models", headers={"Authorization": "bearer secret"}).status, 200)

    def test_other_machines_need_a_key(self):
        with self.assertRaisesRegex(AssertionError, "needs an API key"):
            Server("--host", "0.0.0.0")
        server = Server("--host", "0.0.0.0", env={"MICA_API_KEY": "secret"})
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    main()
