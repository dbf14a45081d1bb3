"""Many machines, of which any may die: whatever is killed or lost, the totals are those of the manifest, and the tokens those of a campaign that
ran on one machine undisturbed."""
import os
import random
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import main  # noqa: E402
from nats import SERVER, Client, NatsCase  # noqa: E402


class Losses(NatsCase):
    def test_everything_is_killed(self):
        """Four workers, of which 30 % die again and again with kill -9; the coordinator dies; the server dies."""
        seed = random.SystemRandom().randrange(2**32)
        draw = random.Random(seed)
        manifest = self.manifest(tokens=180000, shards={"tokens": 3000})
        server = self.serve()
        workers = {f"w{i}": self.worker(server, f"w{i}") for i in range(4)}
        lead = self.lead(server, manifest)
        deaths, events = 0, [("lead", 6), ("server", 14), ("lead", 24), ("server", 34)]
        deadline = time.monotonic() + 240
        while lead.poll() is None:
            self.assertLess(time.monotonic(), deadline, f"seed {seed}\n" + self.log("lead")[-2000:])
            time.sleep(draw.uniform(0.05, 0.4))
            if draw.random() < 0.3 * len(workers) / 2:
                name = draw.choice(sorted(workers))
                workers[name].kill()
                workers[name].wait()
                deaths += 1
                workers[name] = self.worker(server, name)
            if events and self.done() >= events[0][1]:
                what = events.pop(0)[0]
                if what == "lead":
                    lead.kill()
                    lead.wait()
                    time.sleep(draw.uniform(0, 0.5))
                    lead = self.lead(server, manifest)
                else:
                    server.kill(draw.choice((signal.SIGKILL, signal.SIGTERM)))
                    time.sleep(draw.uniform(0, 1))
                    server.start()
        self.assertEqual(lead.returncode, 0, f"seed {seed}\n" + self.log("lead"))
        self.assertEqual(events, [], "it was done before everything had been killed")
        self.assertGreaterEqual(deaths, 3, f"seed {seed}")
        shards = self.check(manifest)
        print(f"seed {seed}: {len(shards)} shards, {deaths} workers killed; {self.log('lead').count('came twice')} notes", file=sys.stderr)

    def test_the_server_loses_its_disk(self):
        server, manifest = self.serve(), self.manifest(tokens=60000, shards={"tokens": 1500})
        self.worker(server)
        lead = self.lead(server, manifest)
        self.until(lambda: self.done() >= 5)
        server.kill()
        server.lose_disk()
        server.start()
        self.wait(lead)
        self.check(manifest)
        self.assertIn("were lost and queued again", self.log("lead"))

    def test_a_worker_that_stops_is_replaced(self):
        """SIGSTOP: it neither dies nor tells. Its shard goes to another one; when it wakes, its result is a duplicate or not wanted."""
        server, manifest = self.serve(), self.manifest(tokens=90000, shards={"tokens": 30000})
        first = self.worker(server, "first")
        lead = self.lead(server, manifest)
        self.until(lambda: "campaign" in self.log("first"))
        first.send_signal(signal.SIGSTOP)
        self.worker(server, "second")
        self.until(lambda: self.done() >= 2)
        first.send_signal(signal.SIGCONT)
        self.wait(lead)
        self.check(manifest)

    def test_interrupted_twice_a_worker_gives_its_shard_back(self):
        server, manifest = self.serve(), self.manifest(tokens=3000000, shards={"tokens": 1500000})
        lead = self.lead(server, manifest, ack_wait=600)
        worker = self.worker(server)
        client = Client(server.port)
        self.addCleanup(client.close)

        def consumer(what):
            subjects = client.api("STREAM.INFO.MICA_WORK", subjects_filter="mica.work.>").get("state", {}).get("subjects") or {}
            return sum(client.api(f"CONSUMER.INFO.MICA_WORK.work-{s.split('.')[2]}").get(what, 0) for s in list(subjects)[:1])

        self.until(lambda: consumer("num_ack_pending") == 1)
        worker.send_signal(signal.SIGINT)
        self.until(lambda: "stopping after the shard in work" in self.log("w"))
        worker.send_signal(signal.SIGINT)
        self.wait(worker, code=130, name="w")
        self.assertIn("was given up; another worker gets it", self.log("w"))
        self.assertEqual(consumer("num_redelivered"), 0)
        self.worker(server, "next")
        self.until(lambda: consumer("num_redelivered") == 1)  # at once, not after ten minutes of silence
        lead.send_signal(signal.SIGINT)
        self.wait(lead, code=130)


if __name__ == "__main__":
    if not SERVER:
        print("skipped: nats-server is not there", file=sys.stderr)
        sys.exit(77)
    main()
