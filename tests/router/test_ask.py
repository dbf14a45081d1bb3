"""mica route ask against servers that misbehave: what makes the next rung, what is tried again, what is an error."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rungs import (BIN, DONE, SECRET, TLS, Fake, RoutingTest, cut, event, local, main, policy, raw, remote, says,
                   slow, stall, status, unused_port, whole)

GOOD = says("alpha", " beta")


def raw_then_stall(data):
    def behave(h):
        h.head()
        h.say(data)
        h.wait(60)
    return behave


class Remote(RoutingTest):
    def test_streams_and_says_who_answered(self):
        with Fake(GOOD) as fake:
            done = self.ask(policy(remote("far", fake.url)), "Hello")
            self.assertEqual((done.code, done.out), (0, "alpha beta"), done)
            self.assertIn("answered by far (fake-model), 3 tokens", done.err)
            path, headers, body = fake.requests[0]
            self.assertEqual(path, "/v1/chat/completions")
            self.assertEqual(body["model"], "far-model")
            self.assertEqual(body["messages"], [{"role": "user", "content": "Hello"}])
            self.assertIs(body["stream"], True)
            self.assertNotIn("route", body)
            self.assertNotIn("authorization", headers)
            self.assertEqual(len(headers["idempotency-key"]), 32)

    def test_whole_reply(self):
        for answer in (whole("alpha"), GOOD):
            with Fake(answer) as fake:
                reply, done = self.ask_json(policy(remote("far", fake.url, stream=False)), "Hello")
                self.assertEqual(done.code, 0, done)
                self.assertTrue(reply["text"].startswith("alpha"))
                self.assertIs(fake.requests[0][2]["stream"], False)

    def test_text_comes_before_the_end(self):
        with Fake(stall("first")) as fake:
            p = subprocess.Popen(self.command("ask", "-p", "x", "--network", "up", policy=policy(remote("far", fake.url))),
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment())
            self.assertEqual(p.stdout.read(5), b"first")
            p.terminate()
            p.wait()
            p.stdout.close()

    def test_interrupted(self):
        with Fake(stall("first")) as fake:
            command = self.command("ask", "-p", "x", "--network", "up", policy=policy(remote("far", fake.url), local("near")))
            p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
            self.assertEqual(p.stdout.read(5), b"first")
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=10)
            self.assertEqual((p.returncode, out), (130, b""), err)  # and no other rung goes on with it

    def test_key_from_environment_and_file(self):
        key_file = self.write("key", SECRET + "\n")
        for more in ({"key_env": "TEST_KEY"}, {"key_file": key_file}):
            with Fake(GOOD) as fake:
                done = self.ask(policy(remote("far", fake.url, **more)), "Hello", "--log", self.log)
                self.assertEqual(done.code, 0, done)
                self.assertEqual(fake.requests[0][1]["authorization"], "Bearer " + SECRET)
                with open(self.log, encoding="utf-8") as f:
                    self.assertNotIn(SECRET, f.read() + done.err + done.out)

    def test_what_servers_say_is_not_in_the_log(self):
        """They may repeat the prompt. The caller sees it all the same."""
        in_stream = raw(b"data: {\"error\": {\"message\": \"BLUEBIRD\"}}\n\n")
        for behave in (status(500, "you said BLUEBIRD"), in_stream, raw(b"data: BLUEBIRD\n\n")):
            with Fake(behave) as fake:
                for log_text in (False, True):
                    made = policy(remote("far", fake.url), run={"retries": 0}, log_text=log_text)
                    done = self.ask(made, "BLUEBIRD?", "--log", self.log)
                    self.assertIn("BLUEBIRD", done.err)
                    with open(self.log, encoding="utf-8") as f:
                        self.assertEqual("BLUEBIRD" in f.read(), log_text)
                    os.remove(self.log)

    def test_long_words_of_a_server_are_cut_between_characters(self):
        words = "\u00e9\U0001f642" * 200
        end = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}], "model": "a" + words}
        stream = b"data: " + json.dumps(end, ensure_ascii=False).encode() + b"\n\n"
        with Fake(status(400, "a" + words)) as bad, Fake(raw(stream)) as good:
            made = policy(remote("bad", bad.url), remote("good", good.url), log_text=True)
            reply, done = self.ask_json(made, "Hello", "--log", self.log)
            self.assertEqual((done.code, reply["text"]), (0, "x"), done)
            self.assertEqual(self.records()[0]["outcome"]["rung"], "good")

    def test_no_key_is_no_request(self):
        with Fake(GOOD) as fake:
            for more in ({"key_env": "NOT_SET"}, {"key_file": os.path.join(self.dir, "none")}):
                reply, done = self.ask_json(policy(remote("far", fake.url, **more)), "Hello")
                self.assertEqual((done.code, self.results(reply)), (1, [("far", "no_key")]), done)
            self.assertEqual(fake.requests, [])

    def test_a_key_is_not_sent_in_the_clear(self):
        done = self.ask(policy(remote("far", "http://192.0.2.1/v1", key_env="TEST_KEY")), "Hello")
        self.assertEqual(done.code, 1)
        self.assertIn("without https://", done.err)

    def test_redirects_are_not_followed(self):
        with Fake(GOOD) as other, Fake(status(307, Location=other.url + "/chat/completions")) as fake:
            reply, done = self.ask_json(policy(remote("far", fake.url, key_env="TEST_KEY")), "Hello")
            self.assertEqual((done.code, self.results(reply)), (1, [("far", "http_307")]), done)
            self.assertEqual(other.requests, [])

    def test_proxies_of_the_environment_are_not_used(self):
        with Fake(GOOD) as fake:
            done = self.ask(policy(remote("far", fake.url)), "Hello", env=dict.fromkeys(("http_proxy", "ALL_PROXY"), "http://127.0.0.1:9"))
            self.assertEqual(done.code, 0, done)

    def test_tool_calls_in_pieces(self):
        call = lambda **f: event(None).replace(b'"delta": {}', b'"delta": ' + json.dumps({"tool_calls": [f]}).encode())
        data = (call(index=0, id="call_1", type="function", function={"name": "look", "arguments": ""}) +
                call(index=0, function={"arguments": "{\"a\""}) + call(index=0, function={"arguments": ":1}"}) +
                event(finish="tool_calls") + DONE)
        body = {"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {"name": "look"}}]}
        with Fake(raw(data)) as fake:
            reply, done = self.ask_body(policy(remote("far", fake.url)), body)
            self.assertEqual(done.code, 0, done)
            self.assertEqual(reply["finish"], "tool_calls")
            self.assertEqual(reply["tool_calls"][0]["function"], {"name": "look", "arguments": "{\"a\":1}"})


class Tls(RoutingTest):
    def setUp(self):
        super().setUp()
        self.ca = os.path.join(TLS, "ca.pem")

    def result(self, certificate, **more):
        with Fake(GOOD, certificate=certificate) as fake:
            reply, done = self.ask_json(policy(remote("far", fake.url, **more), run={"retries": 0}), "Hello")
            return self.results(reply), len(fake.requests)

    def test_own_authority(self):
        self.assertEqual(self.result("server", ca_file=self.ca), ([("far", "ok")], 1))

    def test_unknown_authority(self):
        self.assertEqual(self.result("server"), ([("far", "bad_tls")], 0))

    def test_other_authority(self):
        self.assertEqual(self.result("server", ca_file=os.path.join(TLS, "other-ca.pem")), ([("far", "bad_tls")], 0))

    def test_name_of_another_host(self):
        self.assertEqual(self.result("wrong-name", ca_file=self.ca), ([("far", "bad_tls")], 0))

    def test_ca_file_that_is_not_there(self):
        self.assertEqual(self.result("server", ca_file=os.path.join(self.dir, "none.pem")), ([("far", "bad_tls")], 0))


class NextRung(RoutingTest):
    """Everything that goes wrong before the first text is silent: the next rung answers."""

    def falls(self, behave, result, run=None, seconds=20, **endpoint):
        with Fake(behave) as bad, Fake(GOOD) as good:
            made = policy(remote("bad", bad.url, **endpoint), remote("good", good.url), run={"retries": 0, **(run or {})})
            reply, done = self.ask_json(made, "Hello", "--log", self.log)
            self.assertEqual(done.code, 0, done)
            self.assertEqual(self.results(reply), [("bad", result), ("good", "ok")])
            self.assertEqual((reply["rung"], reply["text"]), ("good", "alpha beta"))
            self.assertLess(done.seconds, seconds)
            outcome = self.records()[-1]["outcome"]
            self.assertEqual([a["result"] for a in outcome["attempts"]], [result, "ok"])
            return bad

    def test_statuses(self):
        for code in (400, 401, 404, 429, 500, 502, 503):
            self.falls(status(code), f"http_{code}")

    def test_refused_connection(self):
        made = policy(remote("bad", f"http://127.0.0.1:{unused_port()}/v1"), local("near"), run={"retries": 0})
        reply, done = self.ask_json(made, "S")
        self.assertEqual(self.results(reply), [("bad", "no_connection"), ("near", "ok")], done)
        self.assertEqual(reply["text"], "alpha beta gamma delta")

    def test_slow_first_byte(self):
        self.falls(slow(30, GOOD), "timeout", first_ms=300)

    def test_stall_before_the_first_text(self):
        self.falls(stall(), "timeout", first_ms=300)
        self.falls(raw_then_stall(b": a comment\n\n"), "timeout", idle_ms=300)

    def test_total_time(self):
        def drips(h):
            h.head()
            while not h.server.fake.ended.wait(0.05):
                h.say(b": still here\n\n")
        self.falls(drips, "timeout", total_ms=400)

    def test_stream_without_an_end(self):
        self.falls(cut(), "cut")

    def test_garbage(self):
        for data in (b"data: {not json}\n\n", b"data: 17\n\n", b"data: {\"choices\": 1}\n\n", b"data: {\"choices\": [{}]}\n\n",
                     b"data: {\"choices\": [{\"delta\": {\"content\": 5}}]}\n\n", b"data: {}\n\n"):
            self.falls(raw(data), "garbage")

    def test_no_event_stream(self):
        self.falls(raw(b"<html>hello</html>", "text/html"), "garbage")
        self.falls(raw(b"[]", "application/json"), "garbage")
        self.falls(raw(b"{\"choices\": [{\"message\": {\"content\": \"x\"}}]}", "application/json"), "garbage")

    def test_error_in_the_stream(self):
        self.falls(raw(b"data: {\"error\": {\"message\": \"out of memory\"}}\n\n"), "server_error")

    def test_huge_line(self):
        def huge(h):
            h.head()
            for _ in range(64):
                h.say(b"data: " + b"x" * 65536)
        self.falls(huge, "too_long")

    def test_server_that_hangs_up(self):
        def hang_up(h):
            h.close_connection = True
        self.falls(hang_up, "cut")


class Again(RoutingTest):
    def test_a_passing_error_is_tried_again_under_the_same_key(self):
        with Fake(status(500), GOOD) as fake:
            reply, done = self.ask_json(policy(remote("far", fake.url)), "Hello")
            self.assertEqual(self.results(reply), [("far", "http_500"), ("far", "ok")], done)
            keys = {headers["idempotency-key"] for _, headers, _ in fake.requests}
            self.assertEqual(len(keys), 1)

    def test_retries_have_a_budget(self):
        with Fake(status(500)) as a, Fake(status(500)) as b:
            made = policy(remote("a", a.url), remote("b", b.url), run={"retries": 5, "retry_budget": 6, "breaker_failures": 100})
            reply, done = self.ask_json(made, "Hello")
            self.assertEqual(done.code, 1)
            self.assertEqual((len(a.requests), len(b.requests)), (6, 2), done)
            self.assertIn("no rung answered", done.err)

    def test_retry_after_is_waited_for(self):
        with Fake(status(429, Retry_After=1), GOOD) as fake:
            reply, done = self.ask_json(policy(remote("far", fake.url)), "Hello")
            self.assertEqual(self.results(reply), [("far", "http_429"), ("far", "ok")], done)
            self.assertGreaterEqual(reply["attempts"][1]["start_ms"] - reply["attempts"][0]["end_ms"], 950)

    def test_a_long_retry_after_is_the_next_rung(self):
        with Fake(status(429, Retry_After=60)) as fake:
            reply, done = self.ask_json(policy(remote("far", fake.url), local("near")), "S")
            self.assertEqual(self.results(reply), [("far", "http_429"), ("near", "ok")], done)
            self.assertLess(done.seconds, 20)

    def test_a_bad_request_is_not_tried_again(self):
        with Fake(status(400)) as fake:
            self.ask_json(policy(remote("far", fake.url), run={"retries": 5}), "Hello")
            self.assertEqual(len(fake.requests), 1)

    def test_deadline_ends_all(self):
        with Fake(slow(30, GOOD)) as fake:
            reply, done = self.ask_json(policy(remote("a", fake.url), remote("b", fake.url)), "Hello", "--deadline", 500)
            self.assertEqual((done.code, self.results(reply)), (1, [("a", "timeout")]), done)
            self.assertLess(done.seconds, 10)


class Text(RoutingTest):
    def test_rt_03_no_splice_mid_stream(self):
        with Fake(cut("alpha be")) as bad, Fake(says("alpha beta gamma delta")) as good:
            done = self.ask(policy(remote("bad", bad.url), remote("good", good.url)), "Hello", "--log", self.log)
            self.assertEqual((done.code, done.out), (1, "alpha be"), done)
            self.assertIn("broke off", done.err)
            self.assertEqual(good.requests, [])
            self.assertEqual(self.records()[-1]["outcome"]["attempts"][0]["result"], "cut")

    def test_rt_03_a_buffered_reply_may_be_replaced(self):
        for behave, result in ((cut("alpha be"), "cut"), (raw(event("alpha be") + b"data: {\"error\": \"x\"}\n\n"), "server_error")):
            with Fake(behave) as bad, Fake(says("alpha beta gamma delta")) as good:
                made = policy(remote("bad", bad.url), remote("good", good.url), run={"buffer": True, "retries": 0})
                reply, done = self.ask_json(made, "Hello")
                self.assertEqual(reply["text"], "alpha beta gamma delta", done)
                self.assertEqual(self.results(reply), [("bad", result), ("good", "ok")])

    def test_idle_in_the_middle(self):
        with Fake(stall("alpha be")) as bad, Fake(GOOD) as good:
            done = self.ask(policy(remote("bad", bad.url, idle_ms=300), remote("good", good.url)), "Hello")
            self.assertEqual((done.code, done.out), (1, "alpha be"), done)
            self.assertEqual(good.requests, [])

    def test_structured_output_is_checked(self):
        schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                  "required": ["name", "age"], "additionalProperties": False}
        body = {"messages": [{"role": "user", "content": "x"}],
                "response_format": {"type": "json_schema", "json_schema": {"name": "p", "strict": True, "schema": schema}}}
        good = says('{ "age": 7,\n "name": "Ada"', ' }')
        for bad in ('{"name": "Ada"}', '{"name": 1, "age": 2}', "Sure! {}", '{"name": "Ada", "age": 7, "x": 1}'):
            with Fake(says(bad)) as first, Fake(good) as second:
                reply, done = self.ask_body(policy(remote("a", first.url), remote("b", second.url)), body)
                self.assertEqual(self.results(reply), [("a", "invalid_output"), ("b", "ok")], (bad, done))
                self.assertEqual(json.loads(reply["text"]), {"name": "Ada", "age": 7})

    def test_degraded_prompt_without_a_network(self):
        made = policy(local("near"), remote("far", "http://127.0.0.1:9/v1"), offline="degrade", degraded="Be brief.")
        reply, done = self.ask_json(made, "S", network="down")
        self.assertEqual((done.code, reply["rung"]), (0, "near"), done)


class Redaction(RoutingTest):
    TEXT = "Write to ada@example.org and bob@example.org, then to ada@example.org"

    def far(self, fake, redact):
        return policy(remote("far", fake.url, redact=redact))

    def test_what_leaves_is_masked(self):
        with Fake(says("Dear [EMA", "IL_1] and [EMAIL_2], [NOTE] [EMAIL_9")) as fake:
            done = self.ask(self.far(fake, "mask"), self.TEXT)
            self.assertEqual(done.code, 0, done)
            sent = json.dumps(fake.requests[0][2])
            self.assertNotIn("example.org", sent)
            self.assertIn("Write to [EMAIL_1] and [EMAIL_2], then to [EMAIL_1]", sent)
            self.assertEqual(done.out, "Dear [EMAIL_1] and [EMAIL_2], [NOTE] [EMAIL_9")

    def test_what_comes_back_is_restored(self):
        with Fake(says("Dear [EMA", "IL_1] and [EMAIL_2], [NOTE] [EMAIL_9")) as fake:
            done = self.ask(self.far(fake, "restore"), self.TEXT)
            self.assertEqual(done.out, "Dear ada@example.org and bob@example.org, [NOTE] [EMAIL_9", done)

    def test_marks_of_the_user_are_not_used(self):
        with Fake(says("[EMAIL_1] [EMAIL_2]")) as fake:
            done = self.ask(self.far(fake, "restore"), "The mark [EMAIL_1] is not ada@example.org")
            self.assertIn("[EMAIL_1] is not [EMAIL_2]", json.dumps(fake.requests[0][2]))
            self.assertEqual(done.out, "[EMAIL_1] ada@example.org", done)

    def test_without_the_task_nothing_is_sent(self):
        import shutil
        program = shutil.copy(BIN, os.path.join(self.dir, "mica-alone"))  # no share folder beside it, and none of the user's
        with Fake(GOOD) as fake:
            command = [program, *self.command("ask", "-p", "x", "--network", "up", policy=self.far(fake, "mask"))[1:]]
            p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(XDG_DATA_HOME=self.dir),
                               timeout=60, check=False)
            self.assertEqual(p.returncode, 1, p)
            self.assertIn(b"takes personal data out", p.stderr)
            self.assertEqual(fake.requests, [])


class Hedge(RoutingTest):
    RUN = {"hedge_ms": 200}

    def test_the_second_answers_and_the_first_is_dropped(self):
        with Fake(slow(30, GOOD)) as a, Fake(says("second")) as b:
            reply, done = self.ask_json(policy(remote("a", a.url), remote("b", b.url), run=self.RUN), "Hello")
            self.assertEqual((reply["text"], reply["rung"]), ("second", "b"), done)
            self.assertEqual(sorted(self.results(reply)), [("a", "lost"), ("b", "ok")])
            self.assertEqual([x["hedge"] for x in sorted(reply["attempts"], key=lambda x: x["rung"])], [False, True])
            self.assertLess(done.seconds, 20)

    def test_a_quick_first_is_alone(self):
        with Fake(GOOD) as a, Fake(GOOD) as b:
            reply, done = self.ask_json(policy(remote("a", a.url), remote("b", b.url), run={"hedge_ms": 10000}), "Hello")
            self.assertEqual((self.results(reply), len(b.requests)), ([("a", "ok")], 0), done)
            self.assertLess(done.seconds, 10)  # nobody waits for the pause to end

    def test_the_first_may_win_after_all(self):
        with Fake(slow(0.5, says("first"))) as a, Fake(slow(30, GOOD)) as b:
            reply, done = self.ask_json(policy(remote("a", a.url), remote("b", b.url), run=self.RUN), "Hello")
            self.assertEqual(reply["text"], "first", done)
            self.assertEqual(sorted(self.results(reply)), [("a", "ok"), ("b", "lost")])

    def test_both_fail_and_the_third_answers(self):
        with Fake(slow(0.4, status(500))) as a, Fake(status(500)) as b:
            made = policy(remote("a", a.url), remote("b", b.url), local("near"), run=self.RUN)
            reply, done = self.ask_json(made, "S")
            self.assertEqual((reply["rung"], reply["text"]), ("near", "alpha beta gamma delta"), done)


class Local(RoutingTest):
    def test_streams(self):
        done = self.ask(policy(local("near"), egress=False), "S")
        self.assertEqual((done.code, done.out), (0, "alpha beta gamma delta"), done)
        self.assertIn("answered by near", done.err)

    def test_files_that_are_no_models_are_passed_over(self):
        bad = self.write("bad.gguf", "GGUF" + "x" * 100)
        reply, done = self.ask_json(policy(local("bad", bad), local("near"), egress=False), "S")
        self.assertEqual(self.results(reply), [("bad", "no_model"), ("near", "ok")], done)

    def test_what_does_not_fit_the_context(self):
        made = policy(local("small", context=8), local("near"), egress=False, bytes_per_token=100)
        reply, done = self.ask_json(made, "S " * 40 + "S")
        self.assertEqual([r for r, _ in self.results(reply)][-1], "near", done)

    def test_no_memory_is_the_next_rung(self):
        with Fake(GOOD) as fake:
            made = policy(local("near"), remote("far", fake.url))
            reply, done = self.ask_json(made, "S", "--memory-budget", 100000, "--log", self.log)
            self.assertEqual(self.results(reply), [("far", "ok")], done)  # the decision knows it
            near = self.records()[-1]["decision"]["candidates"][0]
            self.assertEqual((near["rung"], near["reason"]), ("near", "over_budget"))
            self.assertIn("over the budget of", near["why"])

    def test_a_slow_local_rung_is_the_next_rung(self):
        with Fake(GOOD) as fake:
            made = policy(local("near"), remote("far", fake.url), run={"total_ms": 1, "retries": 0, "buffer": True})
            reply, done = self.ask_json(made, "X", "-n", 400)  # this one says x for ever
            self.assertEqual(self.results(reply), [("near", "timeout"), ("far", "ok")], done)
            self.assertEqual(reply["text"], "alpha beta")

    def test_a_schema_is_kept(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        body = {"messages": [{"role": "user", "content": "J"}], "temperature": 0,
                "response_format": {"type": "json_schema", "json_schema": {"strict": True, "schema": schema}}}
        reply, done = self.ask_body(policy(local("near"), egress=False), body)
        self.assertEqual((done.code, reply["text"]), (0, '{"a":1}'), done)

    def test_rung_by_name(self):
        with Fake(GOOD) as fake:
            made = policy(local("near"), remote("far", fake.url))
            reply, done = self.ask_json(made, "S", "--rung", "far")
            self.assertEqual(reply["rung"], "far", done)

    def test_bad_requests(self):
        made = policy(local("near"), egress=False)
        asked = [{"role": "user", "content": "x"}]
        for body, says_what in (({"messages": []}, "messages"), ({"messages": [{"content": "x"}]}, "role"),
                                ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "no text"),
                                ({"messages": asked, "n": 2}, "\"n\""),
                                ({"messages": asked, "logprobs": True}, "log-probabilities"),
                                ({"messages": asked, "response_format": {"type": "xml"}}, "response_format")):
            _, done = self.ask_body(made, body)
            self.assertEqual(done.code, 1, done)
            self.assertIn(says_what, done.err)


if __name__ == "__main__":
    main()
