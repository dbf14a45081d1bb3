"""Tests of scripts/eval-tasks with a program in mica's place that says what it was asked.

    python3 tests/scripts/test_eval_tasks.py
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "eval-tasks")
TASKS = ["classify", "sentiment", "route", "extract", "redact", "summarise", "complete"]
FAKE = """#!/bin/sh
echo "$*" >>"$LOG"
if [ "$2" = "$BROKEN" ]; then echo '{"task": '; exit 1; fi
n=$(wc -l <"$LOG")
echo '{"task": "'"$2"'", "kind": "classify", "n": '"$n"', "accuracy": 0.5, "ms_p50": 1, "ms_p95": 2,'
echo '"macro": {"precision": 0.25, "recall": 0.5, "f1": 1}}'
"""


class EvalTasks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.mica, self.log, self.keep = (os.path.join(self.folder, name) for name in ("mica", "log", "keep"))
        with open(self.mica, "w", encoding="ascii") as f:
            f.write(FAKE)
        os.chmod(self.mica, 0o755)
        self.models = [os.path.join(self.folder, name + ".gguf") for name in ("one", "two words")]
        for model in self.models:
            with open(model, "w", encoding="ascii") as f:
                f.write("x")

    def run_script(self, *args, code=0, broken="", **more):
        env = dict(os.environ, MICA_BIN=self.mica, LOG=self.log, BROKEN=broken, **more)
        p = subprocess.run(["sh", SCRIPT, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                           universal_newlines=True, timeout=240)
        self.assertEqual(p.returncode, code, p.stderr)
        return p

    def calls(self):
        """(task, rest of the command line) of all runs since the last time."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as f:
            lines = [line.strip().split(None, 2)[1:] for line in f]
        os.unlink(self.log)
        return lines

    def rows(self, p):
        return [[cell.strip() for cell in line.split("|")[1:4]] for line in p.stdout.splitlines()[2:]]

    def test_whole_table(self):
        rows = self.rows(self.run_script(*self.models))
        self.assertEqual([(task, model) for task, model, _ in rows],
                         [(task, model) for task in TASKS
                          for model in (["rules only"] if task == "redact" else []) + ["one", "two words"]])
        calls = self.calls()
        self.assertEqual(len(calls), 15)
        self.assertEqual(sum("--rules-only" in rest for _, rest in calls), 1)
        self.run_script("--task", "route", *self.models[:1])
        self.assertEqual(len(self.calls()), 1)  # nothing is kept if not asked for

    def test_goes_on(self):
        """Stopped in the middle, in pieces, and whole: each is measured once."""
        self.run_script("--keep", self.keep, *self.models, code=1, broken="route")
        self.assertEqual([task for task, _ in self.calls()], ["classify", "classify", "sentiment", "sentiment", "route"])
        self.assertFalse([name for name in os.listdir(self.keep) if name.startswith("route") and name.endswith(".json")])
        self.run_script("--keep", self.keep, "--task", "extract", "--task", "redact", self.models[1])
        self.assertEqual([task for task, _ in self.calls()], ["extract", "redact", "redact"])
        rows = self.rows(self.run_script("--keep", self.keep, *self.models))
        self.assertEqual([task for task, _ in self.calls()],
                         ["route", "route", "extract", "redact", "summarise", "summarise", "complete", "complete"])
        self.assertEqual(len(rows), 15)
        self.assertEqual(self.rows(self.run_script("--keep", self.keep, *self.models)), rows)
        self.assertEqual(self.calls(), [])
        for name in os.listdir(self.keep):
            if name.endswith(".json"):
                with open(os.path.join(self.keep, name), encoding="utf-8") as f:
                    json.load(f)

    def test_other_options_and_models(self):
        arguments = ("--keep", self.keep, "--task", "route", self.models[0])
        self.run_script(*arguments)
        self.run_script(*arguments, EVAL_OPTIONS="--items 3")
        self.assertEqual([rest.endswith("--items 3") for _, rest in self.calls()], [False, True])
        with open(self.models[0], "a", encoding="ascii") as f:
            f.write("more")
        self.run_script(*arguments)
        self.assertEqual(len(self.calls()), 1)

    def test_refused(self):
        for args, part in ((["--task", "fly"], "fly"), (["--task"], "needs"), (["--keep"], "needs"), (["--quick"], "--quick"),
                           ([os.path.join(self.folder, "no.gguf")], "no.gguf")):
            self.assertIn(part, self.run_script(*args, code=1).stderr)
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    unittest.main()
