"""One memory contract: what mica_budget_check() says of a rung's file, beside the model that is served. docs/router.md."""
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "serve")]
import rungs  # noqa: E402
from rungs import SCRIPTED, RoutingTest, local, policy  # noqa: E402
from serving import Server  # noqa: E402

CTX = 65536  # so that caches are most of it


class Memory(RoutingTest):
    def why(self, record, rung):
        return next((c["reason"], c["why"]) for c in record["decision"]["candidates"] if c["rung"] == rung)

    def test_the_sentence(self):
        made = policy(local("near"))
        done = self.run_route("decide", "-p", "S", "--json", "--memory-budget", 1000000, policy=made)
        self.assertEqual(done.code, 1, done)
        reason, why = self.why(json.loads(done.out), "near")
        self.assertEqual(reason, "over_budget")
        self.assertRegex(why, r"^a context of 512 needs \d+\.\d MiB at its peak \(weights .*\), over the budget of ")
        record = json.loads(self.run_route("decide", "-p", "S", "--json", policy=made).out)
        self.assertEqual(self.why(record, "near"), ("fits", "fits"))
        state = record["state"]["rungs"][0]
        self.assertGreater(state["memory_bytes"], state["free_bytes"])

    def test_the_served_model_counts(self):
        """A budget that is large enough for either is too small for both."""
        made = policy(local("own", shutil.copy(SCRIPTED, os.path.join(self.dir, "copy.gguf")), context=CTX))
        record = json.loads(self.run_route("decide", "-p", "S", "--json", policy=made).out)
        own, served = record["state"]["rungs"][0]["memory_bytes"], self.served_plan()
        budget = served["peak_bytes"] + served["total_bytes"] // 6
        self.assertLess(own, budget)
        found = {}
        for room in (0, 2 * served["total_bytes"]):
            server = Server("--ctx", CTX, "--parallel", 2, "--memory-budget", budget + room, "--route", self.write("policy.json", made),
                            "--network", "up", "--queue-file", self.queue, "--log", self.log,
                            env={"XDG_DATA_HOME": os.path.join(self.dir, "data")})
            try:
                answer = server.chat({"model": "own", "messages": [{"role": "user", "content": "S"}], "max_tokens": 2})
                found[room] = (answer.status, *self.why(self.records()[-1], "own"))
            finally:
                self.assertEqual(server.stop(), 0, server.log())
        self.assertEqual(found[0][:2], (503, "over_budget"), found)
        self.assertIn("over the budget of", found[0][2])
        self.assertEqual(found[2 * served["total_bytes"]][:2], (200, "fits"), found)

    def served_plan(self):
        """What the server says of its own model, with these options."""
        server = Server("--ctx", CTX, "--parallel", 2)
        try:
            return server.get("/v1/mica/status").json()["memory"]["plan"]
        finally:
            server.stop()


if __name__ == "__main__":
    rungs.main()
