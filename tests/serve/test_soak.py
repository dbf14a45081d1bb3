"""The server under mixed load, every reply checked: memory, descriptors and threads do not grow, replies do not become slower. Here
for MICA_SOAK_SECONDS, and with loose bounds; scripts/soak takes half an hour, and the bounds of docs/security.md."""
import json
import os
import random
import sys
import unittest

import soak
from serving import SCRIPTED, Server, main

SECONDS = int(os.environ.get("MICA_SOAK_SECONDS", "60"))
WINDOWS = int(os.environ.get("MICA_SOAK_WINDOWS", "12"))
MODEL = os.environ.get("MICA_SOAK_MODEL") or SCRIPTED
OUT = os.environ.get("MICA_SOAK_OUT")
RSS, LATENCY = (float(os.environ.get(f"MICA_SOAK_{name}", default)) for name, default in (("RSS", "0.05"), ("LATENCY", "2")))


def rows(n, **more):
    """Windows in which nothing grows, but what `more` says of the i-th."""
    rng = random.Random(3)
    same = {"requests": lambda i: 100, "rss_kib": lambda i: 10000 + rng.randrange(20), "fds": lambda i: 12, "threads": lambda i: 5,
            "p99_ms": lambda i: 50 + rng.random() * 20, "cpu_ms_per_request": lambda i: 2 + rng.random() * 0.1, **more}
    return [{k: f(i) for k, f in same.items()} for i in range(n)]


class Judging(unittest.TestCase):
    """The bounds find what they are for."""

    def wrong(self, **more):
        return " ".join(soak.judge(rows(30, **more), 0.01, 0.1)[1])

    def test_nothing(self):
        self.assertEqual(self.wrong(), "")
        self.assertEqual(self.wrong(rss_kib=lambda i: 10000 + 3000 * (i < 5)), "")  # less is no growth
        self.assertEqual(self.wrong(rss_kib=lambda i: 9000 if i < 5 else 10000), "")  # nor is the warm-up
        self.assertEqual(self.wrong(p99_ms=lambda i: 400 if i == 20 else 50), "")  # a single bad window

    def test_growth(self):
        self.assertIn("memory", self.wrong(rss_kib=lambda i: 10000 + 6 * i))
        self.assertIn("memory", self.wrong(rss_kib=lambda i: 10000 if i < 20 else 10200))
        self.assertIn("descriptors", self.wrong(fds=lambda i: 12 + i // 10))
        self.assertIn("threads", self.wrong(threads=lambda i: 5 + i // 20))
        self.assertIn("p99", self.wrong(p99_ms=lambda i: 50 + i % 3 + 0.4 * i))
        self.assertIn("cpu", self.wrong(cpu_ms_per_request=lambda i: 2 + 0.02 * i))

    def test_curve(self):
        lines = soak.curve([1, 2, 3, 4], height=4)
        self.assertEqual([line.index("*") - line.index("|") for line in lines], [4, 3, 2, 1])
        self.assertEqual(len(soak.curve([7, 7])), 1)


class Soak(unittest.TestCase):
    def test_mixed_load(self):
        server = Server("--parallel", 4, "--ctx", 512, model=MODEL)
        try:
            def tell(row):
                print(json.dumps(row), file=sys.stderr, flush=True)
            found = soak.run(server, SECONDS, WINDOWS, kinds=soak.kinds_for(MODEL), tell=tell if SECONDS > 60 else None)
            log = server.log()
        finally:
            self.assertEqual(server.stop(), 0, server.log()[-2000:])
        figures, wrong = soak.judge(found, RSS, LATENCY)
        print(soak.report(found, figures, wrong), file=sys.stderr)
        if OUT:
            with open(OUT, "w", encoding="utf-8") as f:
                json.dump({"seconds": SECONDS, "figures": figures, "wrong": wrong, "windows": found}, f, indent=1)
        self.assertEqual(wrong, [], log[-2000:])


if __name__ == "__main__":
    main()
