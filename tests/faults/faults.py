"""What the tests of faults share: a program run with a planned fault (inject.c), the points that are tried, what counts as good, and the
figures for docs/security.md.

MICA_FAULTS=all tries every point (scripts/test-faults); otherwise a part is tried, spread evenly. MICA_FAULTS_REPORT is a file that gets
a line of JSON for each sweep."""
import errno
import json
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import BIN, DATA, SCRIPTED, environment  # noqa: E402,F401

LIB = os.environ.get("MICA_FAULTS_LIB", "")
ALL = os.environ.get("MICA_FAULTS") == "all"
REPORT = os.environ.get("MICA_FAULTS_REPORT")
TIMEOUT = 120

# inject.h has the same
CALLS = ("alloc", "thread", "open", "read", "write", "sync", "rename", "map", "truncate", "stat", "close", "seek", "unlink", "clock")
PLAN = struct.Struct("<Iiqqqqq16s256s")
SHORT, KILL, KILL_HALF = -1, -2, -3
FAULT_NAMES = {SHORT: "short", KILL: "kill", KILL_HALF: "kill in the middle"}


def fault_name(error):
    return FAULT_NAMES.get(error) or errno.errorcode[error]


class Fault:
    """A plan: these calls, from the `first` to the `last` of them, fail with `error`. first=0 only counts."""

    def __init__(self, calls, error=errno.ENOMEM, first=0, last=None, jump_s=0):
        self.mask = sum(1 << CALLS.index(c) for c in calls)
        self.error, self.first, self.last, self.jump_s = error, first, first if last is None else last, jump_s
        self.seen = self.hit = 0
        self.call = self.path = ""
        folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(prefix="mica-fault-", dir=folder, delete=False) as f:
            f.write(PLAN.pack(self.mask, error, first, self.last, jump_s, 0, 0, b"", b""))
            self.file = f.name

    def environment(self, env):
        return dict(env, LD_PRELOAD=LIB, MICA_FAULTS_STATE=self.file)

    def read(self):
        with open(self.file, "rb") as f, mmap.mmap(f.fileno(), PLAN.size, access=mmap.ACCESS_READ) as m:
            values = PLAN.unpack(m[:])
        self.seen, self.hit = values[5], values[6]
        self.call, self.path = (v.split(b"\0")[0].decode("utf-8", "replace") for v in values[7:9])

    def end(self):
        self.read()
        os.unlink(self.file)

    def __str__(self):
        where = f" of {os.path.basename(self.path)}" if self.path else ""
        return f"{fault_name(self.error)} at {self.call}{where} (number {self.first} of {'+'.join(c for i, c in enumerate(CALLS) if self.mask >> i & 1)})"


class Done:
    """A run that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def last_line(self):
        lines = [line for line in self.err.splitlines() if line.startswith("mica: ") and not line.startswith("mica: warning: ")]
        return lines[-1] if lines else ""

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out[:1500]}\nstderr: {self.err[:1500]}"


def execute(subject, fault=None, prefix=(), timeout=TIMEOUT):
    env = fault.environment(subject.env) if fault else subject.env
    p = subprocess.run([*prefix, BIN, *map(str, subject.command())], input=subject.stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       env=env, cwd=subject.folder, timeout=timeout, check=False)
    return Done(p.returncode, p.stdout, p.stderr)


class Subject:
    """A command in a folder of its own, which holds what an earlier run left. state() is what is kept there, as {name: value}, each of
    which a fault must leave as it was or bring to what a good run brings."""
    name = "?"
    stdin = b""
    optional = ()  # state that may stay old though the command ends well: caches
    silent = ()    # files without which the command does its work: caches, notes

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mica-faults-")
        self.env = {k: v for k, v in environment().items() if not k.lower().endswith("_proxy")}
        self.env.update(HOME=self.folder, XDG_CACHE_HOME=self.path("cache"), XDG_DATA_HOME=self.path("data"),
                        XDG_STATE_HOME=self.path("state"), MALLOC_PERTURB_="165", LC_ALL="C")
        self.begin()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def put(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())

    def read(self, name):
        try:
            with open(self.path(name), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def begin(self):
        """Makes what is there before."""

    def command(self):
        raise NotImplementedError

    def run(self, fault=None):
        return execute(self, fault)

    def result(self, done):
        """What the user gets."""
        return done.out

    def state(self):
        return {}

    def temporaries(self):
        return [n for _, _, names in os.walk(self.folder) for n in names if ".tmp-" in n]

    def end(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def json_lines(data):
    """"N lines" of a file of whole JSON lines; what is wrong with it otherwise."""
    if data is None:
        return "0 lines"
    lines = data.split(b"\n")
    if lines.pop() != b"":
        return f"torn: {data[-80:]!r}"
    for line in lines:
        try:
            json.loads(line)
        except ValueError:
            return f"no JSON: {line[:80]!r}"
    return f"{len(lines)} lines"


def pick(total, most):
    """Numbers of 1..total, spread evenly, the first and the last among them; all of them with MICA_FAULTS=all."""
    if ALL or total <= most:
        return range(1, total + 1)
    return sorted({1 + i * (total - 1) // (most - 1) for i in range(most)})


class Sweep:
    """A subject's good run, and the points at which it is to fail."""

    def __init__(self, test, kind, calls, error, area):
        self.test, self.kind, self.calls, self.error, self.area = test, kind, calls, error, area
        self.tried, self.failed, self.start = 0, 0, time.monotonic()
        with kind() as s:
            self.before = s.state()
            fault = Fault(calls, error)
            done = s.run(fault)
            fault.end()
            test.assertEqual(done.code, 0, done)
            self.total, self.expected, self.after = fault.seen, s.result(done), s.state()

    def say(self):
        line = {"area": self.area, "fault": fault_name(self.error), "subject": self.kind.name, "points": self.total, "tried": self.tried,
                "errors": self.failed, "seconds": round(time.monotonic() - self.start, 2)}
        print(json.dumps(line), flush=True)
        if REPORT:
            with open(REPORT, "a", encoding="utf-8") as f:
                f.write(json.dumps(line) + "\n")

    def points(self, most, judge):
        """judge(subject, fault, done) for each point; then the same command without a fault must do its work."""
        for number in pick(self.total, most):
            with self.kind() as s:
                fault = Fault(self.calls, self.error, number)
                done = s.run(fault)
                fault.end()
                if fault.hit == 0:
                    continue  # threads of this run came along in another order
                self.tried += 1
                self.failed += done.code != 0
                with self.test.subTest(subject=self.kind.name, fault=str(fault)):
                    judge(s, fault, done)
                    self.check_again(s, fault)
        self.say()

    def check_state(self, s, fault, done):
        for name, value in s.state().items():
            allowed = [self.after[name]] if done.code == 0 and name not in s.optional else [self.before[name], self.after[name]]
            self.test.assertIn(value, allowed, f"{name} after {fault}: {done}")

    def check_again(self, s, fault):
        done = s.run()
        self.test.assertEqual((done.code, s.result(done)), (0, self.expected), f"the next run after {fault}: {done}")
        self.test.assertEqual(s.temporaries(), [], f"the next run after {fault}")


def sweep(test, kind, calls, error, area, most, judge):
    run = Sweep(test, kind, calls, error, area)
    run.points(most, lambda s, fault, done: judge(run, s, fault, done))
    return run


def main():
    if not os.path.exists(BIN) or not os.path.exists(LIB):
        sys.exit(f"{BIN} or {LIB or 'the library of faults'} is not there: set MICA_BIN and MICA_FAULTS_LIB")
    if not os.path.exists(SCRIPTED):
        print(f"skipped: {SCRIPTED} is not there", file=sys.stderr)
        sys.exit(77)
    unittest.main(warnings="ignore")
