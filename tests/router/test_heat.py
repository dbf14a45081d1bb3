"""Local rungs under a governor, in a heat that is told: mica route ask --governor, and the rung in the batch of mica serve."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "serve")]
import rungs  # noqa: E402
from rungs import Fake, RoutingTest, local, policy, remote, says  # noqa: E402
from serving import Server  # noqa: E402

GOOD = says("alpha", " beta")
TREE = {"sys/class/thermal/thermal_zone0/type": "cpu-thermal", "sys/class/thermal/thermal_zone0/trip_point_0_type": "hot",
        "sys/class/thermal/thermal_zone0/trip_point_0_temp": "90000", "sys/class/thermal/thermal_zone0/temp": "95000",
        "proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB", "sys/devices/system/cpu/online": "0-1",
        "proc/self/status": "Name:\tmica\nCpus_allowed_list:\t0-1"}


class Heat(RoutingTest):
    def setUp(self):
        super().setUp()
        for name, text in TREE.items():
            path = os.path.join(self.dir, "tree", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text + "\n")
        governor = self.write("governor.json", {"version": 1, "objective": "sustained", "severe_refuse": 30, "severe_max_tokens": 5})
        self.hot = ("--sysroot", os.path.join(self.dir, "tree"), "--governor", governor)

    def test_a_long_reply_goes_elsewhere(self):
        with Fake(GOOD) as fake:
            made = policy(local("near"), remote("far", fake.url))
            reply, done = self.ask_json(made, "S", "-n", 40, "--log", self.log, *self.hot)
            self.assertEqual((done.code, self.results(reply)), (0, [("near", "hot"), ("far", "ok")]), done)
            self.assertIn("too hot for a reply", reply["attempts"][0]["error"])
            reply, done = self.ask_json(made, "S", "-n", 20, *self.hot)
            self.assertEqual((done.code, self.results(reply)), (0, [("near", "ok")]), done)
            self.assertEqual(reply["output_tokens"], 5)  # the policy's cap
        told = self.run_route("explain", self.log)
        self.assertIn("tried near: hot", told.out)

    def test_nowhere_to_go(self):
        reply, done = self.ask_json(policy(local("near")), "S", "-n", 40, *self.hot)
        self.assertEqual((done.code, self.results(reply)), (1, [("near", "hot")]), done)
        self.assertIn("too hot", done.err)

    def test_wrong_governor(self):
        done = self.ask(policy(local("near")), "S", "--governor", self.write("bad.json", '{"version": 1, "objective": "fast"}'))
        self.assertEqual(done.code, 1, done)
        self.assertIn("objective", done.err)

    def serve(self, made, *args):
        server = Server("--route", self.write("policy.json", made), "--network", "up", "--queue-file", self.queue, "--log", self.log,
                        *self.hot, *args, env={"XDG_DATA_HOME": os.path.join(self.dir, "data")})
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0, server.log()))
        return server

    def chat(self, server, tokens, **more):
        return server.chat({"model": "auto", "messages": [{"role": "user", "content": "S"}], "temperature": 0, "max_tokens": tokens,
                            **more})

    def tried(self, answer):
        self.assertEqual(answer.status, 200, answer)
        return [(a["rung"], a["result"]) for a in answer.json()["x_mica"]["attempts"]]

    def test_the_served_rung(self):
        """Refused: the next rung, and the breaker stays closed. Then it is passed over for a while; a client that names it gets it."""
        with Fake(GOOD) as fake:
            server = self.serve(policy(local("batch"), remote("far", fake.url), run={"breaker_failures": 1}))
            self.assertEqual(self.tried(self.chat(server, 40)), [("batch", "hot"), ("far", "ok")])
            self.assertEqual(server.metrics()['mica_rung_open{rung="batch"}'], 0)
            self.assertEqual(self.tried(self.chat(server, 20)), [("far", "ok")])
            reasons = {c["rung"]: c["reason"] for c in self.records()[-1]["decision"]["candidates"]}
            self.assertEqual(reasons, {"batch": "hot", "far": "fits"})
            self.assertEqual(self.tried(self.chat(server, 20, model="batch")), [("batch", "ok")])

    def test_a_wish_for_a_lower_rung(self):
        """A short reply is allowed, but the governor asks for less: the next request goes elsewhere."""
        with Fake(GOOD) as fake:
            server = self.serve(policy(local("batch"), remote("far", fake.url)))
            self.assertEqual(self.tried(self.chat(server, 20)), [("batch", "ok")])
            self.assertEqual(self.tried(self.chat(server, 20)), [("far", "ok")])

    def test_the_client_is_told(self):
        server = self.serve(policy(local("batch")))
        answer = self.chat(server, 40)
        self.assertEqual((answer.status, answer.json()["error"]["code"]), (503, "device_too_hot"), answer)
        stream = self.chat(server, 40, stream=True)
        self.assertEqual(stream.status, 503, stream)


if __name__ == "__main__":
    rungs.main()
