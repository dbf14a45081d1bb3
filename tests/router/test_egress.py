"""Nothing leaves the device unless policy and request allow it: the program runs under a seccomp filter that kills it at its first
socket, and has random policies and requests to choose from."""
import ctypes
import json
import os
import platform
import random
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rungs import Fake, RoutingTest, local, main, policy, remote, says

# audit architecture, number of socket(2); io_uring_setup, which could make one unseen, is 425 everywhere
ARCH = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
KILL, ALLOW = 0x80000000, 0x7FFF0000
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def no_sockets():
    """In the child, before the program: from here on socket() is the end."""
    arch, socket = ARCH[platform.machine()]
    code = [(LOAD, 0, 0, 4), (JUMP_EQUAL, 0, 3, arch), (LOAD, 0, 0, 0), (JUMP_EQUAL, 1, 0, socket), (JUMP_EQUAL, 0, 1, 425),
            (RETURN, 0, 0, KILL), (RETURN, 0, 0, ALLOW)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = Program(len(code), ctypes.cast(text, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0):
        os._exit(99)


def under_filter(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=no_sockets, timeout=60, check=False,
                          **more)


class Egress(RoutingTest):
    def run_filtered(self, made, text, *args, body=None):
        command = self.command("ask", "--network", "up", "--json", *args, policy=made)
        command += ["--request", self.write("request.json", body)] if body else ["-p", text]
        return under_filter(command, env=self.environment())

    def test_the_filter_works(self):
        p = under_filter([sys.executable, "-c", "import socket; socket.socket()"])
        self.assertEqual(p.returncode, -signal.SIGSYS)
        self.assertEqual(under_filter([sys.executable, "-c", "print(1)"]).returncode, 0)

    def test_a_request_that_may_leave_opens_a_socket(self):
        with Fake(says("x")) as fake:
            p = self.run_filtered(policy(remote("far", fake.url), run={"retries": 0}), "S")
            self.assertEqual(p.returncode, -signal.SIGSYS, p)

    def test_random_policies_that_keep_it_here(self):
        rng = random.Random(11)
        answered = refused = 0
        with Fake(says("x")) as fake:
            for i in range(40):
                near = [local(f"near{k}") for k in range(rng.randrange(0, 3))]
                far = [remote(f"far{k}", fake.url) for k in range(rng.randrange(0, 3))]
                rungs = near + far
                rng.shuffle(rungs)
                if not rungs:
                    continue
                egress, private = rng.choice(((False, False), (False, True), (True, True)))
                made = policy(*rungs, egress=egress, offline=rng.choice(("run", "degrade", "queue")), degraded="Be brief.",
                              run={"retries": 0, "hedge_ms": rng.choice((0, 1)), "buffer": rng.choice((False, True)),
                                   "fallback": rng.choice((False, True))})
                args = ["--rung", rng.choice(rungs)["name"]] if rng.random() < 0.3 else []
                if rng.random() < 0.5:
                    body = {"messages": [{"role": "user", "content": "S"}], "temperature": 0,
                            "route": {"private": True} if private else {}}
                    p = self.run_filtered(made, None, *args, body=body)
                else:
                    p = self.run_filtered(made, "S", "--temp", 0, *(["--private"] if private else []), *args)
                self.assertIn(p.returncode, (0, 1), (i, made, p))
                reply = json.loads(p.stdout.decode().splitlines()[-1])
                self.assertFalse(reply["rung"].startswith("far"), (made, reply))
                self.assertEqual(reply["held"], 0)
                answered += p.returncode == 0
                refused += p.returncode == 1
            self.assertEqual(fake.requests, [])
        self.assertGreater(answered, 10)  # the property is not empty
        self.assertGreater(refused, 3)

    def test_local_only_policy_with_a_rule_that_makes_private(self):
        rule = {"name": "secret", "pattern": "password", "private": True}
        with Fake(says("x")) as fake:
            made = policy(remote("far", fake.url), local("near"), rules=[rule], run={"retries": 0})
            p = self.run_filtered(made, "my password is S")
            self.assertEqual(p.returncode, 0, p)
            self.assertEqual(json.loads(p.stdout)["rung"], "near")
            self.assertEqual(self.run_filtered(made, "S").returncode, -signal.SIGSYS)


if __name__ == "__main__":
    if platform.machine() not in ARCH:
        print(f"skipped: the filter is not written for {platform.machine()}", file=sys.stderr)
        sys.exit(77)
    main()
