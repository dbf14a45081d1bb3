"""What waits for the network: kept, listed, drained once, also when the process that sends is killed."""
import os
import random
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rungs import Fake, RoutingTest, cut, local, main, policy, remote, says, slow, status, unused_port

GOOD = says("alpha", " beta")


class Queue(RoutingTest):
    def queueing(self, url, *more, **settings):
        return policy(*more, remote("far", url), offline="queue", **settings)

    def hold(self, n, url):
        for i in range(n):
            reply, done = self.ask_json(self.queueing(url), f"question {i}", network="down")
            self.assertEqual((done.code, reply["held"], reply["action"]), (0, i + 1, "queue"), done)

    def test_without_a_network_it_waits(self):
        with Fake(GOOD) as fake:
            self.hold(2, fake.url)
            self.assertEqual(fake.requests, [])
            rows = self.rows()
            self.assertEqual([(r["id"], r["state"], r["attempts"]) for r in rows], [(1, "waiting", 0), (2, "waiting", 0)])
            done = self.run_route("queue drain", "--network", "up", policy=self.queueing(fake.url))
            self.assertEqual(done.code, 0, done)
            self.assertIn("2 answered, 0 waiting", done.err)
            rows = self.rows()
            self.assertEqual([(r["state"], r["reply"]["text"], r["reply"]["rung"]) for r in rows], [("done", "alpha beta", "far")] * 2)
            self.assertEqual([b["messages"][0]["content"] for _, _, b in fake.requests], ["question 0", "question 1"])
            self.assertEqual([h["idempotency-key"] for _, h, _ in fake.requests], [r["key"] for r in rows])
            again = self.run_route("queue drain", "--network", "up", policy=self.queueing(fake.url))
            self.assertIn("0 answered, 0 waiting", again.err)
            self.assertEqual(len(fake.requests), 2)

    def test_explained(self):
        with Fake(GOOD) as fake:
            reply, done = self.ask_json(self.queueing(fake.url), "Hello", "--log", self.log, network="down")
        self.assertEqual((done.code, reply["held"]), (0, 1), done)
        told = self.run_route("explain", self.log)
        self.assertIn("outcome: held in the queue as 1 until the network returns", told.out)
        self.assertNotIn("failed", told.out)

    def test_a_server_that_cannot_be_reached_is_no_network(self):
        port = unused_port()
        made = self.queueing(f"http://127.0.0.1:{port}/v1", run={"retries": 0})
        reply, done = self.ask_json(made, "Hello")
        self.assertEqual((done.code, reply["held"], self.results(reply)), (0, 1, [("far", "no_connection"), ("queue", "held")]), done)
        drained = self.run_route("queue drain", "--network", "up", policy=made)
        self.assertIn("0 answered, 1 waiting", drained.err)
        row = self.rows()[0]
        self.assertEqual((row["state"], row["attempts"], row["maybe_sent"]), ("waiting", 1, False))
        with Fake(GOOD, port=port) as fake:
            drained = self.run_route("queue drain", "--network", "up", policy=made)
            self.assertIn("1 answered, 0 waiting", drained.err)
            self.assertEqual(len(fake.requests), 1)

    def test_a_server_that_fails_is_not_no_network(self):
        with Fake(status(500)) as fake:
            reply, done = self.ask_json(self.queueing(fake.url, run={"retries": 0}), "Hello")
            self.assertEqual((done.code, reply["held"]), (1, 0), done)
            self.assertEqual(self.rows(), [])

    def test_the_same_key_waits_once(self):
        with Fake(GOOD) as fake:
            ids = [self.ask_json(self.queueing(fake.url), "Hello", "--key", "order-7", network="down")[0]["held"] for _ in range(2)]
            self.assertEqual(ids, [1, 1])
            self.run_route("queue drain", "--network", "up", policy=self.queueing(fake.url))
            self.assertEqual([h["idempotency-key"] for _, h, _ in fake.requests], ["order-7"])

    def test_private_requests_never_wait_for_a_server(self):
        with Fake(GOOD) as fake:
            reply, done = self.ask_json(self.queueing(fake.url), "Hello", "--private", network="down")
            self.assertEqual((done.code, reply["held"]), (1, 0), done)
            self.assertEqual(self.rows(), [])

    def test_an_answer_that_was_lost_is_marked(self):
        with Fake(cut("alp"), GOOD) as fake:
            self.hold(1, fake.url)
            made = self.queueing(fake.url, run={"retries": 0})
            self.run_route("queue drain", "--network", "up", policy=made)
            row = self.rows()[0]
            self.assertEqual((row["state"], row["maybe_sent"]), ("waiting", True), row)
            self.assertNotIn("reply", row)
            self.run_route("queue drain", "--network", "up", policy=made)
            self.assertEqual(self.rows()[0]["reply"]["text"], "alpha beta")
            self.assertEqual(len({h["idempotency-key"] for _, h, _ in fake.requests}), 1)

    def test_drop_and_bad_words(self):
        with Fake(GOOD) as fake:
            self.hold(1, fake.url)
        self.assertEqual(self.run_route("queue drop 1").code, 0)
        self.assertEqual(self.rows(), [])
        self.assertEqual(self.run_route("queue drop 1").code, 1)
        self.assertEqual(self.run_route("queue drop").code, 2)
        self.assertEqual(self.run_route("queue burn").code, 2)

    def test_two_that_drain_send_once(self):
        with Fake(slow(0.3, GOOD)) as fake:
            self.hold(2, fake.url)
            command = self.command("queue drain", "--network", "up", policy=self.queueing(fake.url))
            both = [subprocess.Popen(command, stderr=subprocess.PIPE, env=self.environment()) for _ in range(2)]
            said = [p.communicate(timeout=60)[1] for p in both]
            self.assertEqual(sorted(p.returncode for p in both)[0], 0, said)
            self.assertEqual(len(fake.requests), 2)
            self.assertEqual([r["state"] for r in self.rows()], ["done", "done"])

    def test_killed_at_random(self):
        """kill -9 at random moments, then on: every request is answered once in the queue, and a server that honours the key did its
        work once for each."""
        random.seed(5)
        with Fake(slow(0.02, GOOD)) as fake:
            self.hold(6, fake.url)
            command = self.command("queue drain", "--network", "up", policy=self.queueing(fake.url))
            kills = 0
            for _ in range(12):
                p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment())
                try:
                    p.wait(random.uniform(0.01, 0.15))
                except subprocess.TimeoutExpired:
                    p.kill()
                    kills += p.wait() == -signal.SIGKILL
            done = self.run_route("queue drain", "--network", "up", policy=self.queueing(fake.url))
            self.assertEqual(done.code, 0, done)
            rows = self.rows()
            self.assertEqual([(r["state"], r["reply"]["text"]) for r in rows], [("done", "alpha beta")] * 6)
            keys = [h["idempotency-key"] for _, h, _ in fake.requests]
            self.assertEqual(set(keys), {r["key"] for r in rows})
            self.assertLessEqual(len(keys) - len(set(keys)), kills)
            for r in rows:  # what went twice is marked
                self.assertTrue(keys.count(r["key"]) == 1 or r["maybe_sent"], r)


if __name__ == "__main__":
    main()
