"""Too few descriptors, a full disk, a limit on the size of files: a clear error, what was there is unchanged, the server goes on."""
import errno
import json
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

import subjects
from faults import ALL, Done, Subject, execute, json_lines, main

FULL = "the disk is full"


def limited(subject, kind, value):
    """A run with a limit of setrlimit()."""
    p = subprocess.run([subjects.BIN, *map(str, subject.command())], input=subject.stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       env=subject.env, cwd=subject.folder, timeout=subjects.TIMEOUT, check=False,
                       preexec_fn=lambda: resource.setrlimit(kind, (value, value)))
    return Done(p.returncode, p.stdout, p.stderr)


class Descriptors(unittest.TestCase):
    def test_commands(self):
        """From few to enough: with three, which are in use already, no program is loaded."""
        more = (subjects.Run, subjects.Quantize, subjects.Decide) if ALL else ()
        for kind in (subjects.RunKept, subjects.Pull, subjects.Hold, *more):
            enough = 0
            for n in range(4, 40):
                with kind() as s, self.subTest(subject=kind.name, descriptors=n):
                    before = s.state()
                    done = limited(s, resource.RLIMIT_NOFILE, n)
                    self.assertIn(done.code, (0, 1), done)
                    if done.code == 1:
                        self.assertTrue(done.last_line(), done)
                        for name, value in s.state().items():
                            if name not in s.optional:
                                self.assertEqual(value, before[name], (name, done)) if name != "receipts" and name != "session" else None
                    self.assertEqual(s.temporaries(), [])
                    enough += done.code == 0
                if enough == 3:
                    break
            self.assertEqual(enough, 3, kind.name)

    def test_server(self):
        """More clients than descriptors: those that got in are served, and when the others have left everybody is."""
        with subjects.Serve() as s:
            p = subprocess.Popen([subjects.BIN, *map(str, s.command()), "--connections", "200"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 env=s.env, cwd=s.folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
            self.addCleanup(p.kill)
            for raw in p.stderr:
                if b" is served at " in raw:
                    break
            address = raw.rstrip().decode().rsplit(" ", 1)[1]
            port = int(address.rsplit(":", 1)[1])
            held = []
            for _ in range(80):
                try:
                    held.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                except OSError:
                    break
            self.assertGreater(len(held), 20)
            time.sleep(0.2)
            for c in held:
                c.close()
            self.assertTrue(subjects.wait_until(lambda: is_healthy(address)))
            self.assertEqual(s.post(address, s.ASK)[0], 200)
            p.terminate()
            _, rest = p.communicate(timeout=60)
            self.assertEqual(p.returncode, 0, rest)

    def test_server_with_few(self):
        """It says what is missing, or serves."""
        for n in range(4, 30, 3):
            with subjects.Serve() as s, self.subTest(descriptors=n):
                s.command = lambda n=n: ["serve", "-m", subjects.SCRIPTED, "--port", 0, "--parallel", 1, "--threads", 1]
                done = self.serve_limited(s, n)
                self.assertIn(done.code, (0, 1), done)
                if done.code == 1:
                    self.assertTrue(done.last_line(), done)

    @staticmethod
    def serve_limited(s, n):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        p = subprocess.Popen([subjects.BIN, *map(str, s.command())], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=s.env, cwd=s.folder,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        lines = []
        for raw in p.stderr:
            lines.append(raw)
            if b" is served at " in raw:
                p.terminate()
        p.wait(60)
        p.stderr.close()
        return Done(p.returncode, b"", b"".join(lines))


def is_healthy(address):
    try:
        with urllib.request.urlopen(address + "/health", timeout=5) as f:
            return f.status == 200
    except OSError:
        return False


class FullDisk(unittest.TestCase):
    """A file system of a few pages, where one can be mounted; else the process may write only so much to a file (RLIMIT_FSIZE)."""

    def mount(self, kilobytes):
        folder = tempfile.mkdtemp(prefix="mica-full-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder], stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        return folder

    def on_full_disk(self, kind, kilobytes):
        """The subject's folder is on a disk that becomes full: (before, done, after)."""
        disk = self.mount(4096)

        class Full(kind):
            name = kind.name

            def __init__(self):
                super().__init__()
                self.disk = disk

        with Full() as s:
            subprocess.run(["cp", "-a", s.folder + "/.", disk], check=True)
            shutil.rmtree(s.folder)
            old, s.folder = s.folder, disk
            s.env = {k: v.replace(old, disk) for k, v in s.env.items()}
            before = s.state()
            with open(os.path.join(disk, "filler"), "wb") as f:
                fill(f, leave=kilobytes * 1024)
            done = execute(s)
            left = s.temporaries()
            os.unlink(os.path.join(disk, "filler"))  # SQLite needs some room to look at a database, too
            after = s.state()
            again = execute(s)
            subprocess.run(["umount", "-l", disk], check=False)
            return before, done, after, left, again

    def check_full(self, kind, kilobytes=0):
        before, done, after, left, again = self.on_full_disk(kind, kilobytes)
        with self.subTest(subject=kind.name):
            self.assertEqual(done.code, 1, done)
            self.assertTrue("full" in done.last_line() or os.strerror(errno.ENOSPC) in done.last_line(), done)
            self.assertEqual(after, before, done)
            self.assertEqual(left, [])
            self.assertEqual(again.code, 0, again)

    def test_whole_files(self):
        for kind in (subjects.Chat, subjects.Quantize, subjects.Report, subjects.Signature):
            self.check_full(kind)

    def test_models(self):
        disk = self.mount(64)
        with subjects.Pull() as s:
            s.env["XDG_CACHE_HOME"] = disk
            done = execute(s)
            self.assertEqual(done.code, 1, done)
            self.assertIn("space", done.last_line())
            self.assertFalse(os.path.lexists(os.path.join(disk, "mica", "models", "tiny.gguf")))

    def test_databases(self):
        for kind in (subjects.Hold, subjects.Campaign):
            self.check_full(kind)

    def test_lines(self):
        """A line for which there is no room is not there at all, however much of it there was room for."""
        disk = self.mount(64)
        with subjects.Decide() as s:
            log = os.path.join(disk, "log.jsonl")
            s.command = lambda: ["route", "decide", "--policy", "policy.json", "-p", "hello", "--network", "up", "--log", log]
            self.assertEqual(execute(s).code, 0)
            codes = set()
            for _ in range(60):
                with open(os.path.join(disk, "filler"), "ab") as f:
                    fill(f, leave=0, most=1500)
                done = execute(s)
                codes.add(done.code)
                with open(log, "rb") as f:
                    self.assertRegex(json_lines(f.read()), r"^\d+ lines$", done)
                if done.code == 1:
                    self.assertIn(FULL, done.last_line())
                    break
            self.assertEqual(codes, {0, 1})

    def test_limit_of_a_file(self):
        for kind in (subjects.Quantize, subjects.RunKept, subjects.Report):
            with kind() as s, self.subTest(subject=kind.name):
                before = s.state()
                done = limited(s, resource.RLIMIT_FSIZE, 1024)
                self.assertEqual(done.code, 1, done)
                self.assertTrue(done.last_line(), done)
                after = s.state()
                for name in ("out", "session", "page"):
                    self.assertEqual(after.get(name), before.get(name), done)
                self.assertEqual(s.temporaries(), [])


def fill(f, leave, most=1 << 30):
    """Writes until so many bytes are left, at most `most`."""
    done = 0
    while done < most:
        fs = os.statvfs(f.fileno())
        free = fs.f_bavail * fs.f_frsize - leave
        if free <= 0:
            return
        n = min(free, most - done, 1 << 16)
        try:
            os.write(f.fileno(), b"\0" * n)
        except OSError:
            return
        done += n


if __name__ == "__main__":
    main()
