"""Many clients at once: no reply is lost or mixed, no slot stays taken. MICA_LOAD_SECONDS is the length of the longest test;
scripts/load-test runs that one for two minutes."""
import os
import random
import socket
import statistics
import sys
import threading
import time

from serving import ServeTest, chunks, joined, main, post_bytes, wait_until

CLIENTS = 200
SECONDS = int(os.environ.get("MICA_LOAD_SECONDS", "10"))
LEAVERS = 1000


class Load(ServeTest):
    arguments = ("--parallel", 8, "--queue", 400)

    def quiet(self):
        def check():
            m = self.server.metrics()
            return m["mica_running"] == 0 and m["mica_queue_length"] == 0
        self.assertTrue(wait_until(check, 60), self.server.metrics())

    def together(self, n, work):
        failures = []

        def run(i):
            try:
                work(i)
            except Exception as e:  # pylint: disable=broad-except
                failures.append(f"{i}: {e!r}")
        threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures[:3], [])

    def test_many_connections(self):
        """Each request carries a nonce, which its own reply must echo."""
        before, begin = self.server.metrics(), time.monotonic()
        end = begin + SECONDS
        times = [[] for _ in range(CLIENTS)]

        def work(i):
            rng = random.Random(i)
            while time.monotonic() < end:
                nonce = "".join(rng.choice("abcdefghij") for _ in range(12)) + "R"
                body = {"prompt": nonce, "echo": True, "max_tokens": 8, "temperature": 0, "stream": rng.random() < 0.5}
                start = time.monotonic()
                answer = self.server.post("/v1/completions", body)
                times[i].append(time.monotonic() - start)
                self.assertEqual(answer.status, 200, answer)
                text = "".join(c["choices"][0]["text"] for c in chunks(answer)) if body["stream"] else answer.json()["choices"][0]["text"]
                self.assertEqual(text, nonce + "red fox")
        self.together(CLIENTS, work)
        seconds = time.monotonic() - begin
        self.assertGreater(min(map(len, times)), 0)
        self.quiet()
        self.report(before, self.server.metrics(), sorted(t for one in times for t in one), seconds)

    def report(self, before, after, times, seconds):
        """The figures, and that the server counted what the clients saw."""
        kinds = ("mica_clients_left_total", "mica_timeouts_total", "mica_queue_refusals_total", "mica_connection_refusals_total",
                 "mica_slow_readers_total")
        self.assertEqual([after[k] - before[k] for k in kinds], [0] * len(kinds))
        self.assertGreaterEqual(after["mica_connections_total"] - before["mica_connections_total"], len(times))
        tail = statistics.quantiles(times, n=100)
        memory = [m["mica_anonymous_bytes"] / 2**20 for m in (before, after)]
        print(f"{CLIENTS} connections at a time, {seconds:.0f} s: {len(times)} replies, {len(times) / seconds:.0f}/s; "
              f"median {1000 * tail[49]:.0f} ms, 99 % {1000 * tail[98]:.0f} ms, slowest {1000 * times[-1]:.0f} ms; "
              f"server's own memory {memory[0]:.1f} to {memory[1]:.1f} MiB", file=sys.stderr)

    def test_same_alone_and_together(self):
        def body(i):
            return {"messages": [{"role": "user", "content": "DU"[i % 2]}], "temperature": 1, "seed": i, "n": 4, "max_tokens": 3}

        def texts(i):
            answer = self.server.chat(body(i))
            self.assertEqual(answer.status, 200, answer)
            return [c["message"]["content"] for c in answer.json()["choices"]]
        alone = [texts(i) for i in range(40)]
        self.assertGreater(len({tuple(x) for x in alone}), 5)
        found = [None] * 40

        def work(i):
            found[i] = texts(i)
        self.together(40, work)
        self.assertEqual(found, alone)

    def test_random_disconnects(self):
        before = self.server.metrics()

        def work(i):
            rng = random.Random(i)
            for _ in range(LEAVERS // 20):
                body = {"messages": [{"role": "user", "content": "X"}], "temperature": 0, "max_tokens": 400,
                        "stream": rng.random() < 0.7}
                data = post_bytes("/v1/chat/completions", body)
                whole = rng.random() < 0.8
                s = self.server.socket(data if whole else data[:rng.randrange(len(data) // 2, len(data))])
                time.sleep(rng.random() * 0.02)
                if whole and rng.random() < 0.3:
                    s.recv(rng.randrange(1, 2000))
                if rng.random() < 0.5:  # a reset instead of an end
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
                s.close()
        self.together(20, work)
        self.quiet()
        self.assertEqual(self.server.ask("E"), "Hi 🙂!")
        after = self.server.metrics()
        self.assertGreater(after["mica_clients_left_total"], before["mica_clients_left_total"])
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_connections"] == 1))

    def test_streams_while_others_come_and_go(self):
        def work(i):
            answer = self.server.chat({"messages": [{"role": "user", "content": "X"}], "temperature": 0, "max_tokens": 300 + i,
                                       "stream": True})
            parts = chunks(answer)
            self.assertEqual(joined(parts), "x" * (300 + i))
            self.assertEqual(parts[-1]["choices"][0]["finish_reason"], "length")
        self.together(60, work)
        self.quiet()


if __name__ == "__main__":
    main()
