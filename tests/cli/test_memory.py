"""The memory contract of the program: budgets from fake and real limits, loads that were killed, locked weights (mem-03)."""
import ctypes
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from climica import BIN, HERE, SCRIPTED, TestCase, environment, has_address_sanitizer, main, mica, run

FAKESYS = os.path.join(os.path.dirname(HERE), "device", "fakesys.py")
KV_TOKEN = 2 * 4 * 32 * 2  # bytes of a token in the scripted model's cache


def fake_tree(test, profile):
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    subprocess.run([sys.executable, "-B", FAKESYS, "at", "--profile", profile, "--root", folder.name, "--t", "0"], check=True)
    return folder.name


class Budget(TestCase):
    def refused(self, *args, says, **more):
        """A refusal with advice that holds: the context that it names runs."""
        done = run("-p", "E", *args, **more)
        self.fails(done, *says)
        found = re.search(r"what fits: a context of (\d+)", done.message)
        self.assertTrue(found, done)
        words = [found.group(1) if i > 0 and args[i - 1] == "--ctx" else word for i, word in enumerate(args)]
        self.ok(run("-p", "E", *words, **more))
        return int(found.group(1))

    def test_profiles(self):
        """A phone, a container and a job in a v1 group, each with its own bound."""
        phone = self.refused("--sysroot", fake_tree(self, "phone"), "--ctx", 8600000, says=["55 % of MemTotal"])
        self.assertLess(phone * KV_TOKEN, 7800000 * 1024 * 0.55)
        job = self.refused("--sysroot", fake_tree(self, "cgroup1"), "--ctx", 6000000, says=["job7/memory.limit_in_bytes"])
        self.assertLess(job * KV_TOKEN, 4294967296 * 0.55)
        # 236 MiB are left of the container's 2 GiB: what is free now is less than the budget
        left = self.refused("--sysroot", fake_tree(self, "container"), "--ctx", 1000000,
                            says=["only 247483648 bytes are available now", "memory.max"])
        self.assertLess(left * KV_TOKEN, 247483648)

    def test_options(self):
        tree = fake_tree(self, "phone")
        asked = ("-p", "E", "--sysroot", tree, "--ctx", "9500000")
        self.fails(run(*asked), "over the budget", "ask for a memory budget of")
        # more than 55 %, less than 70 %, if it is asked for; 3.7 GiB are free there, which a limit in bytes does not ask
        self.fails(run(*asked, "--memory-budget", "69%"), "available now")
        self.ok(run(*asked, "--memory-budget", 5400000000, "--memory-limit", 5500000000))
        self.fails(run(*asked, "--memory-budget", "71%"), "hard limit")
        self.fails(run("-p", "E", "--memory-budget", "1000000"), "over the budget of 1000000 bytes", "smaller model")
        for bad in ("", "0", "-1", "101%", "0%", "5x", "%", "99999999999999999999"):
            self.fails(run("-p", "E", f"--memory-budget={bad}"), "--memory-budget", code=2)
        self.fails(run("-p", "E", "--memory-limit", "many"), "--memory-limit", code=2)

    def test_address_space(self):
        """A real limit of the process."""
        if has_address_sanitizer():
            self.skipTest("the address sanitizer takes all address space")

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        fits = self.refused("--ctx", 1500000, says=["Max address space"], preexec_fn=limit)
        self.assertLess(fits * KV_TOKEN, (1 << 30) * 0.55)

    def test_real_group(self):
        """A real control group, where this user may make one: refused, not killed."""
        root = "/sys/fs/cgroup/memory" if os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes") else "/sys/fs/cgroup"
        group = os.path.join(root, f"mica-test-{os.getpid()}")
        name = "memory.limit_in_bytes" if root.endswith("/memory") else "memory.max"
        try:
            os.mkdir(group)
            self.addCleanup(os.rmdir, group)
            with open(os.path.join(group, name), "w", encoding="ascii") as f:
                f.write(str(96 << 20))
        except OSError as e:
            self.skipTest(f"no control group for the test: {e}")

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write("0")
        fits = self.refused("--ctx", 300000, says=[name], preexec_fn=enter)
        self.assertLess(fits * KV_TOKEN, (96 << 20) * 0.55)

    def test_inspect(self):
        memory = json.loads(self.ok(mica("inspect", SCRIPTED, "--json", "--ctx", 4096)).out)["memory"]
        self.assertEqual(memory["kv_bytes"], 4096 * KV_TOKEN)
        parts = ("touched_bytes", "kv_bytes", "workspace_bytes", "fixed_bytes")
        self.assertEqual(memory["peak_bytes"], sum(memory[p] for p in parts))
        self.assertIn("peak ", self.ok(mica("inspect", SCRIPTED)).text)


class Killed(TestCase):
    """Loads that die are remembered."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.env = dict(environment(), XDG_STATE_HOME=folder.name)
        self.notes = os.path.join(folder.name, "mica", "loads", "*")

    def end_loading(self, number, *more):
        """A run that waits for its prompt, with the model open, gets a signal."""
        p = subprocess.Popen([BIN, "run", "-m", SCRIPTED, "--temp", "0", *more], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env)
        end, before = time.monotonic() + 60, len(glob.glob(self.notes))
        while len(glob.glob(self.notes)) == before or not self.has_mapped(p.pid):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        p.send_signal(number)
        p.wait()
        p.stdin.close()
        return p.returncode

    def has_mapped(self, pid):
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
            return "scripted.gguf" in f.read()

    def test_kill(self):
        self.ok(run("-p", "E", env=self.env))
        self.assertEqual(glob.glob(self.notes), [])
        for n in (1, 2):
            self.assertEqual(self.end_loading(signal.SIGKILL), -signal.SIGKILL)
            self.assertEqual(len(glob.glob(self.notes)), n)
        self.fails(run("-p", "E", env=self.env), "were killed before their first token", "--force-load")
        self.ok(run("-p", "E", "--ctx", 128, env=self.env))
        self.fails(run("-p", "E", env=self.env), "--force-load")
        self.assertEqual(self.ok(run("-p", "E", "--force-load", env=self.env)).text, "Hi 🙂!")
        self.assertEqual(glob.glob(self.notes), [])
        self.ok(run("-p", "E", env=self.env))

    def test_once(self):
        """One death may be chance, and a load that goes well clears it."""
        self.end_loading(signal.SIGKILL)
        self.ok(run("-p", "E", env=self.env))
        self.assertEqual(glob.glob(self.notes), [])

    def test_ends(self):
        """To end a program is no crash."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.assertEqual(self.end_loading(number), -number)
            self.assertEqual(glob.glob(self.notes), [])
        self.fails(run("-p", "E", "--memory-limit", "1000", env=self.env), "budget")
        self.assertEqual(glob.glob(self.notes), [])

    def test_no_place(self):
        """Where notes cannot be kept, models are loaded all the same."""
        env = dict(self.env, XDG_STATE_HOME="/dev/null")
        done = self.ok(run("-p", "E", env=env))
        self.assertIn("mica: warning: cannot make the folder", done.message)
        del env["XDG_STATE_HOME"], env["HOME"]
        self.assertNotIn("warning", self.ok(run("-p", "E", env=env)).message)


def lock_little():
    """What `ulimit -l 64` is to a user without privileges, even where the test runs with them."""
    ctypes.CDLL(None).prctl(24, 14, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_IPC_LOCK
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 10, 64 << 10))


class Lock(TestCase):
    def last(self, done):
        return json.loads(self.ok(done).text.splitlines()[-1])

    def test_refused(self):
        """Case mem-03: loads and answers all the same; one warning with both sizes; the result says that nothing is locked."""
        if has_address_sanitizer():
            self.skipTest("the address sanitizer locks nothing, and says that it did")
        plain = self.last(run("-p", "E", "--json"))
        self.assertNotIn("mlock", plain)
        done = run("-p", "E", "--json", "--mlock", preexec_fn=lock_little)
        result = self.last(done)
        self.assertIs(result["mlock"], False)
        self.assertEqual(result["text"], plain["text"])
        warnings = [line for line in done.message.splitlines() if "warning" in line]
        self.assertEqual(len(warnings), 1, done)
        self.assertIn(str(os.path.getsize(SCRIPTED)), warnings[0])
        self.assertIn(str(64 << 10), warnings[0])

    def test_allowed(self):
        if os.geteuid() != 0 and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < 1 << 20:
            self.skipTest("this user may not lock a mebibyte")
        done = run("-p", "E", "--json", "--mlock")
        self.assertIs(self.last(done)["mlock"], True)
        self.assertNotIn("warning", done.message)


if __name__ == "__main__":
    main()
