"""kill -9 before each write, sync, rename and removal of everything that is to last, and in the middle of each write: the next start finds
the old state or the new one, and what was acknowledged is there."""
import json
import os
import signal
import unittest

import subjects
from faults import KILL, KILL_HALF, main, sweep

CHANGES = ("write", "sync", "rename", "truncate", "unlink")


class Kills(unittest.TestCase):
    def judge(self, run, s, fault, done):
        """What is appended may end in the middle of a line after a kill in the middle: check_again finds all others whole."""
        self.assertIn(done.code, (-signal.SIGKILL, 0) if fault.error == KILL_HALF else (-signal.SIGKILL,), f"{fault}: {done}")
        for name, value in s.state().items():
            if fault.error == KILL_HALF and isinstance(value, str) and value.startswith("torn"):
                continue
            self.assertIn(value, (run.before[name], run.after[name]), f"{name} after {fault}: {done}")

    def kill(self, kinds, most):
        for kind in kinds:
            sweep(self, kind, CHANGES, KILL, "kills", most, self.judge)
            sweep(self, kind, ("write",), KILL_HALF, "kills", most, self.judge)

    def test_files(self):
        self.kill((subjects.RunKept, subjects.Chat, subjects.Quantize, subjects.Report, subjects.Signature), 5)

    def test_pull(self):
        self.kill((subjects.Pull,), 8)

    def test_routes(self):
        self.kill(subjects.ROUTES, 6)

    def test_measuring(self):
        self.kill(subjects.SLOW, 4)

    def test_what_was_acknowledged(self):
        """Requests that were said to be held are in the queue, whenever the next one's process is killed."""
        class Second(subjects.Hold):
            def begin(self):
                super().begin()
                self.held = json.loads(subjects.execute(self).out.splitlines()[-1])["held"]

        def judge(run, s, fault, done):
            ids = [r[0] for r in subjects.rows(s.path("queue.db"), "SELECT id FROM held ORDER BY id")]
            self.assertEqual(ids[:2], [1, s.held], f"{fault}: {done}")

        sweep(self, Second, CHANGES, KILL, "kills", 6, judge)

    def test_lines_of_a_killed_writer(self):
        """The next line does not continue the one that a killed process left."""
        with subjects.Decide() as s:
            s.put("log.jsonl", '{"record": "outcome"}\n{"record": "rou')
            self.assertEqual(s.run().code, 0)
            lines = s.read("log.jsonl").decode().split("\n")
            self.assertEqual((len(lines), lines[0], lines[1], lines[3]), (4, '{"record": "outcome"}', '{"record": "rou', ""))
            self.assertEqual(json.loads(lines[2])["record"], "route")

    def test_cleaning(self):
        """What a killed process left of a file that it wrote goes with the next one that writes it, and nothing else does."""
        with subjects.Quantize() as s:
            s.put("out.gguf.tmp-0a1b2c", "rest")
            s.put("out.gguf.tmp-mine", "a user's")
            s.put("other.gguf.tmp-0a1b2c", "of another")
            self.assertEqual(s.run().code, 0)
            self.assertEqual(sorted(n for n in os.listdir(s.folder) if "tmp" in n), ["other.gguf.tmp-0a1b2c", "out.gguf.tmp-mine"])


if __name__ == "__main__":
    main()
