"""Control groups around a real model: a limit on memory at the predicted need and below it, and a quota of processor time that changes in the
middle of tokens. Needs the right to make groups."""
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import BIN, TestCase, environment, main_with_models, mica, models_dir, write_temporary  # noqa: E402,F401
from test_governor_quota_models import Group  # noqa: E402

SMOLLM2 = "smollm2-135m-instruct-q4_1.gguf"
CTX = 512


class MemoryGroup(Group):
    """One whose memory is limited: version 2, or 1."""

    def __init__(self, limit):
        self.path = None
        for mount, controller, name in (("/sys/fs/cgroup", "", "memory.max"), ("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes")):
            if not self.make(mount, controller, "memory"):
                continue
            try:
                self.write(name, limit)
                with open(os.path.join(self.path, name), encoding="utf-8") as f:
                    if int(f.read()) <= limit:
                        return
            except (OSError, ValueError):
                pass
            self.remove()
        raise OSError("no group with a limit on memory can be made here")


def in_group(group, *args):
    """A process is in the group before it is the program."""
    procs = os.path.join(group.path, "cgroup.procs")
    p = subprocess.run(["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', procs, BIN, *map(str, args)], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), timeout=240, check=False)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


class Groups(TestCase):
    def setUp(self):
        self.path = os.path.join(models_dir(), SMOLLM2)
        self.args = ("run", "-m", self.path, "-p", "What is the capital of France?", "-n", 16, "--temp", 0, "--ctx", CTX, "--no-tuned", "-t", 1)

    def group(self, kind, *args):
        try:
            group = kind(*args)
        except OSError as e:
            self.skipTest(str(e))
        self.addCleanup(group.remove)
        return group

    def test_memory(self):
        plan = json.loads(self.ok(mica("inspect", self.path, "--json", "--ctx", CTX, "--threads", 1)).text)["memory"]
        expected = self.ok(mica(*self.args)).text
        for percent, good in ((130, True), (100, True), (90, False)):
            with self.subTest(percent=percent):
                limit = plan["peak_bytes"] * percent // 100 * 101 // 100 // 4096 * 4096  # 1 %: what two programs are apart
                group = self.group(MemoryGroup, limit)
                code, out, err = in_group(group, *self.args, "--memory-budget", "100%", "--memory-limit", "100%")
                group.remove()
                print(f"{percent} % of {plan['peak_bytes']} bytes: exit {code}")
                if good:
                    self.assertEqual((code, out), (0, expected), err)
                else:
                    self.assertEqual((code, out), (1, ""), err)
                    self.assertRegex(err, r"mica: a context of 512 needs [\d.]+ MiB at its peak .*over the budget of [\d.]+ MiB")

    def test_memory_by_force(self):
        """At 90 % with a budget that is said to be larger: the weights' pages come and go, and the text is the same; or the system ends the
        process, and nothing else is lost."""
        plan = json.loads(self.ok(mica("inspect", self.path, "--json", "--ctx", CTX, "--threads", 1)).text)["memory"]
        expected = self.ok(mica(*self.args)).text
        group = self.group(MemoryGroup, plan["peak_bytes"] * 9 // 10 // 4096 * 4096)
        code, out, err = in_group(group, *self.args, "--memory-budget", plan["peak_bytes"] * 2, "--memory-limit", plan["peak_bytes"] * 2)
        self.assertIn(code, (0, 1, -9, 137), err)
        if code == 0:
            self.assertEqual(out, expected)

    def test_quota(self):
        """One CPU, a twentieth, and back, several times within a token."""
        expected = self.ok(mica(*self.args)).text
        group = self.group(Group)
        ended = threading.Event()

        def change():
            cut = False
            while not ended.wait(0.015):
                cut = not cut
                group.allow(0.05 if cut else 1)
                if cut:
                    time.sleep(0.03)

        thread = threading.Thread(target=change, daemon=True)
        thread.start()
        try:
            code, out, err = in_group(group, *self.args)
        finally:
            ended.set()
            thread.join()
        self.assertEqual((code, out), (0, expected), err)


if __name__ == "__main__":
    main_with_models(SMOLLM2)
