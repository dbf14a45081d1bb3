"""Telemetry of requests that a router carried out: which rung answered and why, one event each, no text. docs/telemetry.md."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "serve")]
from rungs import Fake, RoutingTest, local, main, policy, remote, says, status  # noqa: E402
from serving import SCRIPTED, Server, wait_until  # noqa: E402

SECRET = "xylophone-4711"


class Telemetry(RoutingTest):
    def setUp(self):
        super().setUp()
        self.telemetry = os.path.join(self.dir, "t.jsonl")

    def events(self):
        if not os.path.exists(self.telemetry):
            return []
        with open(self.telemetry, encoding="utf-8") as f:
            text = f.read()
        self.assertNotIn("xylophone", text)
        return [json.loads(line) for line in text.splitlines()]

    def test_rung_and_reason(self):
        with Fake(says("alpha", " beta")) as fake:
            done = self.ask(policy(remote("far", fake.url)), SECRET, "--telemetry", self.telemetry)
        self.assertEqual(done.code, 0, done)
        event = self.events()[0]
        self.assertEqual((event["rung"], event["model"], event["stop_reason"], event["error"]), ("far", "fake-model", "stop", None))
        self.assertEqual(event["gen_n"], 3)
        self.assertIn(", by ", event["reason"])
        self.assertGreater(event["duration_ms"], 0)

    def test_next_rung(self):
        with Fake(status(500)) as bad, Fake(says("alpha")) as good:
            self.ask(policy(remote("first", bad.url), remote("second", good.url)), SECRET, "--telemetry", self.telemetry)
        self.assertEqual([e["rung"] for e in self.events()], ["second"])

    def test_nobody_answers(self):
        with Fake(status(400)) as bad:
            done = self.ask(policy(remote("far", bad.url)), SECRET, "--telemetry", self.telemetry)
        self.assertNotEqual(done.code, 0)
        self.assertTrue(self.events()[0]["error"].startswith("MICA_"))

    def test_server(self):
        """A rung in the server's own batch is one event, not two; a request for the model itself has no rung."""
        with Fake(says("alpha", " beta")) as fake:
            path = self.write("policy.json", policy(local("batch", SCRIPTED), remote("far", fake.url)))
            server = Server("--route", path, "--network", "up", "--queue-file", self.queue, "--log", self.log, "--telemetry",
                            self.telemetry, env={"XDG_DATA_HOME": os.path.join(self.dir, "data")})
            try:
                for model in ("batch", "far", "scripted"):
                    body = {"model": model, "messages": [{"role": "user", "content": "S"}], "temperature": 0}
                    self.assertEqual(server.chat(body).status, 200)
                self.assertTrue(wait_until(lambda: len(self.events()) >= 3))
            finally:
                self.assertEqual(server.stop(), 0, server.log())
        self.assertEqual([e["rung"] for e in self.events()], ["batch", "far", None])

    def test_conditions_are_not_for_rungs(self):
        """What a rung would not keep is refused, not forgotten."""
        with Fake(says("alpha")) as fake:
            path = self.write("policy.json", policy(remote("far", fake.url)))
            server = Server("--route", path, "--network", "up", "--queue-file", self.queue, env={"XDG_DATA_HOME": self.dir})
            try:
                for ours in ({"require": ["no_drop"]}, {"receipt": True}):
                    body = {"model": "auto", "messages": [{"role": "user", "content": "S"}], "x_mica": ours}
                    answer = server.chat(body)
                    self.assertEqual((answer.status, answer.json()["error"]["param"]), (400, "x_mica"))
                body["model"] = "scripted"
                self.assertEqual(server.chat(body).status, 200)
            finally:
                self.assertEqual(server.stop(), 0, server.log())
            self.assertEqual(fake.requests, [])


if __name__ == "__main__":
    main()
