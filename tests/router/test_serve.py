"""mica serve --route: one OpenAI endpoint in front of local and remote rungs."""
import json
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "serve")]
import rungs  # noqa: E402
from rungs import (SECRET, Fake, RoutingTest, cut, event, local, policy, raw, remote, says, slow, stall, status,  # noqa: E402
                   unused_port)
from serving import SCRIPTED, Server, chunks, events, joined, post_bytes, wait_until  # noqa: E402

GOOD = says("alpha", " beta")


class Serving(RoutingTest):
    def setUp(self):
        super().setUp()
        self.forced = []  # servers that are ended at once

    def serve(self, made, *args, model=SCRIPTED):
        self.path = self.write("policy.json", made)
        server = Server("--route", self.path, "--network", "up", "--queue-file", self.queue, "--log", self.log, *args, model=model,
                        env={"XDG_DATA_HOME": os.path.join(self.dir, "data"), "TEST_KEY": SECRET})
        self.addCleanup(self.end, server)
        return server

    def end(self, server):
        code = server.stop()
        self.assertEqual(code == 0, server not in self.forced, server.log())

    def chat(self, server, text="S", **more):
        return server.chat({"model": "auto", "messages": [{"role": "user", "content": text}], "temperature": 0, **more})

    def told(self, answer):
        """(text, rung, [(rung, result)]) of an answer, whose header, model and record must agree."""
        self.assertEqual(answer.status, 200, answer)
        body = answer.json()
        self.assertEqual(answer.headers["x-mica-rung"], body["x_mica"]["rung"])
        record = next(r for r in self.records() if r["id"] == body["x_mica"]["decision"])
        self.assertEqual(record["outcome"]["rung"], body["x_mica"]["rung"])
        return (body["choices"][0]["message"]["content"], body["x_mica"]["rung"],
                [(a["rung"], a["result"]) for a in body["x_mica"]["attempts"]])


class Rungs(Serving):
    def test_all_kinds_of_rungs(self):
        other = self.write("other.gguf", "")
        os.remove(other)
        os.symlink(SCRIPTED, other)  # the same file: it is the model that is served, by whatever name
        import shutil
        copy = shutil.copy(SCRIPTED, os.path.join(self.dir, "copy.gguf"))
        with Fake(GOOD) as fake:
            server = self.serve(policy(local("batch", other), local("own", copy), remote("far", fake.url)))
            for rung, text, model in (("batch", "alpha beta gamma delta", "scripted"), ("own", "alpha beta gamma delta", None),
                                      ("far", "alpha beta", "fake-model")):
                answer = self.chat(server, model=rung)
                self.assertEqual(self.told(answer), (text, rung, [(rung, "ok")]))
                if model:
                    self.assertEqual(answer.json()["model"], model)
                stream = self.chat(server, model=rung, stream=True, stream_options={"include_usage": True})
                parts = chunks(stream)
                self.assertEqual(joined(parts), text)
                self.assertEqual(stream.headers["x-mica-rung"], rung)
                self.assertEqual(parts[0]["choices"][0]["delta"]["role"], "assistant")
                self.assertEqual(parts[-2]["choices"][0]["finish_reason"], "stop")
                self.assertEqual(parts[-2]["x_mica"]["rung"], rung)
                self.assertGreater(parts[-1]["usage"]["completion_tokens"], 0)
            plain = server.chat({"model": "scripted", "messages": [{"role": "user", "content": "S"}], "temperature": 0})
            self.assertNotIn("x_mica", plain.json())  # the model itself, as without a policy
            self.assertNotIn("x-mica-rung", plain.headers)
            ids = [m["id"] for m in server.get("/v1/models").json()["data"]]
            self.assertEqual(ids, ["scripted", "auto", "batch", "own", "far"])
            metrics = server.metrics()
            for rung in ("batch", "own", "far"):
                self.assertEqual(metrics[f'mica_rung_attempts_total{{rung="{rung}",result="answered"}}'], 2)
                self.assertGreater(metrics[f'mica_rung_tokens_total{{rung="{rung}"}}'], 0)

    def test_unknown_rungs_and_bad_requests(self):
        server = self.serve(policy(local("near")))
        answer = self.chat(server, model="gpt-9")
        self.assertEqual(answer.status, 400, answer)
        self.assertIn("gpt-9", answer.json()["error"]["message"])
        self.assertEqual(server.chat({"model": "auto", "messages": []}).status, 400)
        self.assertEqual(server.chat({"model": "auto", "messages": [{"role": "user", "content": "S"}], "n": 3}).status, 400)
        self.assertEqual(server.post("/v1/chat/completions", b"{").status, 400)

    def test_private_requests_stay(self):
        with Fake(GOOD) as fake:
            server = self.serve(policy(remote("far", fake.url), local("near")))
            self.assertEqual(self.told(self.chat(server, route={"private": True}))[1], "near")
            self.assertEqual(self.chat(server, model="far", route={"private": True}).status, 503)
            self.assertEqual(fake.requests, [])

    def test_tools_of_a_served_rung(self):
        server = self.serve(policy(local("near")))
        tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
        answer = self.chat(server, "S", tools=tools, tool_choice="required", max_tokens=60)
        body = answer.json()
        self.assertEqual(body["choices"][0]["finish_reason"], "tool_calls", answer)
        self.assertEqual(body["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "look")

    def test_many_at_a_time(self):
        with Fake(slow(1, GOOD)) as fake:
            server = self.serve(policy(remote("far", fake.url), local("near")))
            answers, start = [], time.monotonic()
            threads = [threading.Thread(target=lambda: answers.append(self.chat(server).json()["x_mica"]["rung"])) for _ in range(8)]
            for t in threads:
                t.start()
            self.assertEqual(self.chat(server, model="scripted").status, 200)  # the loop and the model go on meanwhile
            quick = time.monotonic() - start
            for t in threads:
                t.join()
            self.assertEqual(answers, ["far"] * 8)
            self.assertLess(time.monotonic() - start, 8)  # not one after the other
            self.assertLess(quick, 5)

    def test_client_that_leaves(self):
        with Fake(stall("alpha")) as fake:
            server = self.serve(policy(remote("far", fake.url)))
            body = json.dumps({"model": "auto", "stream": True, "messages": [{"role": "user", "content": "x"}]}).encode()
            s = server.socket(post_bytes("/v1/chat/completions", body))
            data = b""
            while b"alpha" not in data:
                data += s.recv(4096)
            s.close()
            found = 'mica_rung_attempts_total{rung="far",result="failed"}'
            self.assertTrue(wait_until(lambda: server.metrics().get(found, 0) == 1), server.metrics())
            self.assertEqual(self.records()[-1]["outcome"]["attempts"][0]["result"], "cancelled")

    def test_policy_is_reloaded(self):
        with Fake(GOOD) as fake:
            server = self.serve(policy(local("near")))
            self.assertEqual(self.told(self.chat(server))[1], "near")
            self.write("policy.json", policy(remote("far", fake.url)))
            server.signal(signal.SIGHUP)
            self.assertTrue(server.wait_log("the policy was reloaded"), server.log())
            self.assertEqual(self.told(self.chat(server))[1], "far")
            self.write("policy.json", "{}")
            server.signal(signal.SIGHUP)
            self.assertTrue(server.wait_log("the policy stays as it was"), server.log())
            self.assertEqual(self.told(self.chat(server))[1], "far")

    def test_ended_while_a_rung_is_waited_for(self):
        with Fake(stall()) as fake:
            server = self.serve(policy(remote("far", fake.url)))
            body = json.dumps({"model": "auto", "messages": [{"role": "user", "content": "x"}]}).encode()
            s = server.socket(post_bytes("/v1/chat/completions", body))
            self.assertTrue(wait_until(lambda: fake.requests))
            server.signal(signal.SIGTERM)
            self.assertTrue(server.wait_log("shutting down"))
            server.signal(signal.SIGTERM)
            self.forced.append(server)
            server.process.wait(10)
            s.close()


class Switching(Serving):
    """rt-05-switch-really-switches: the reply names who answered; without "fallback" the first rung's error is the answer."""

    def both(self, behave, result, code, **endpoint):
        for fallback in (True, False):
            with Fake(behave) as bad, Fake(GOOD) as good:
                made = policy(remote("bad", bad.url, **endpoint), remote("good", good.url),
                              run={"retries": 0, "fallback": fallback, "breaker_failures": 100})
                server = self.serve(made)
                answer = self.chat(server)
                if fallback:
                    self.assertEqual(self.told(answer), ("alpha beta", "good", [("bad", result), ("good", "ok")]))
                    self.assertEqual(answer.json()["model"], "fake-model")
                    self.assertEqual(joined(chunks(self.chat(server, stream=True))), "alpha beta")
                else:
                    self.assertEqual(answer.status, code, answer)
                    self.assertIn("bad", answer.json()["error"]["message"])
                    self.assertEqual(self.chat(server, stream=True).status, code)
                    self.assertEqual(good.requests, [])
                    self.assertEqual(self.records()[-1]["outcome"]["attempts"][-1]["result"], result)

    def test_rt_05_out_of_memory(self):
        self.both(status(500, "CUDA out of memory"), "http_500", 502)

    def test_rt_05_slow(self):
        self.both(slow(30, GOOD), "timeout", 504, first_ms=300)

    def test_rt_05_loading(self):
        self.both(status(503, "Loading model"), "http_503", 503)

    def test_rt_05_refused(self):
        url = f"http://127.0.0.1:{unused_port()}/v1"
        with Fake(GOOD) as good:
            for fallback in (True, False):
                server = self.serve(policy(remote("bad", url), remote("good", good.url), run={"retries": 0, "fallback": fallback}))
                answer = self.chat(server)
                if fallback:
                    self.assertEqual(self.told(answer)[1:], ("good", [("bad", "no_connection"), ("good", "ok")]))
                else:
                    self.assertEqual(answer.status, 502, answer)

    def test_rt_05_loading_is_waited_for(self):
        loading = status(503, "Loading model")
        with Fake(loading, loading, loading, says("ready")) as fake, Fake(GOOD) as good:
            server = self.serve(policy(remote("far", fake.url, loading_ms=20000), remote("good", good.url), run={"retries": 0}))
            self.assertEqual(self.told(self.chat(server))[:2], ("ready", "far"))
            self.assertEqual(good.requests, [])
        with Fake(loading) as fake, Fake(GOOD) as good:
            made = policy(remote("far", fake.url, loading_ms=300), remote("good", good.url), run={"retries": 0, "breaker_failures": 99})
            server = self.serve(made)
            start = time.monotonic()
            self.assertEqual(self.told(self.chat(server))[:2], ("alpha beta", "good"))
            self.assertGreater(time.monotonic() - start, 0.3)
            self.assertGreater(len(fake.requests), 1)

    def test_rt_03_no_splice_mid_stream(self):
        with Fake(cut("alpha be")) as bad, Fake(says("alpha beta gamma delta")) as good:
            server = self.serve(policy(remote("bad", bad.url), remote("good", good.url), run={"retries": 0}))
            answer = self.chat(server, stream=True)
            parts = [data for _, data in events(answer.text)]
            self.assertEqual(joined([p for p in parts if "choices" in p]), "alpha be")
            self.assertIn("broke off", parts[-1]["error"]["message"])
            self.assertNotIn("[DONE]", parts)
            whole = self.chat(server)
            self.assertEqual(whole.status, 502, whole)
            self.assertEqual(good.requests, [])

    def test_breaker_leaves_a_rung_alone_and_comes_back(self):
        with Fake(*[status(500)] * 3, GOOD) as far:
            run = {"retries": 0, "breaker_failures": 3, "breaker_open_ms": 2500}
            server = self.serve(policy(remote("far", far.url), local("near"), run=run))
            for _ in range(3):
                self.assertEqual(self.told(self.chat(server))[2], [("far", "http_500"), ("near", "ok")])
            self.assertEqual(server.metrics()['mica_rung_open{rung="far"}'], 1)
            self.assertEqual(self.told(self.chat(server))[1], "near")
            self.assertEqual(len(far.requests), 3)
            time.sleep(2.6)
            self.assertEqual(self.told(self.chat(server))[1], "far")
            self.assertEqual(server.metrics()['mica_rung_open{rung="far"}'], 0)


class Waiting(Serving):
    def test_held_while_the_breaker_is_open(self):
        made = policy(remote("far", f"http://127.0.0.1:{unused_port()}/v1"), offline="queue", run={"retries": 0, "breaker_failures": 1})
        server = self.serve(made)
        for i in range(3):  # the second and third one are not even tried
            answer = self.chat(server, "Hello")
            self.assertEqual((answer.status, answer.json().get("held")), (202, i + 1), answer)
        self.assertEqual(server.metrics()['mica_rung_attempts_total{rung="far",result="failed"}'], 1)

    def test_a_failing_server_is_no_missing_network(self):
        with Fake(status(500)) as fake:
            server = self.serve(policy(remote("bad", fake.url), offline="queue", run={"retries": 0, "breaker_failures": 1}))
            self.assertEqual([self.chat(server, "Hello").status for _ in range(3)], [502, 503, 503])

    def test_held_and_drained(self):
        port = unused_port()
        made = policy(remote("far", f"http://127.0.0.1:{port}/v1"), offline="queue", run={"retries": 0, "breaker_failures": 1000})
        server = self.serve(made)
        answer = self.chat(server, "Hello")
        self.assertEqual(answer.status, 202, answer)
        self.assertEqual((answer.json()["object"], answer.json()["held"]), ("mica.held", 1))
        body = {"model": "auto", "messages": [{"role": "user", "content": "Again"}]}
        for _ in range(2):  # a client that tries again under its key waits once
            answer = server.chat(body, headers={"Idempotency-Key": "order-8"})
            self.assertEqual(answer.json()["held"], 2)
        with Fake(GOOD, port=port) as fake:
            self.assertEqual(self.told(self.chat(server, "Now"))[1], "far")  # the server is back: what waits goes, too
            self.assertTrue(wait_until(lambda: [r["state"] for r in self.rows()] == ["done", "done"]), self.rows())
            self.assertEqual([r["reply"]["text"] for r in self.rows()], ["alpha beta"] * 2)
            self.assertEqual(fake.requests[2][1]["idempotency-key"], "order-8")
            self.assertEqual(len(fake.requests), 3)


if __name__ == "__main__":
    rungs.main()
