"""mica serve under its seccomp profile (share/mica/seccomp/serve.json): other tests of the server are run again, each server killed at the first call that
the profile does not allow; what the profile forbids is forbidden; and the unit for systemd has the same list.

MICA_SANDBOX=module,module names other modules to run so.
"""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import sandbox
import serving

ROOT = os.path.dirname(os.path.dirname(serving.HERE))
PROFILE = os.path.join(ROOT, "share", "mica", "seccomp", "serve.json")
UNIT = os.path.join(ROOT, "share", "mica", "systemd", "mica.service")
# Requests of every kind, limits, leaving clients, signals, a truncated model; prefixes on the disk; the governor; a router's
# database, log and remote servers.
MODULES = ("test_limits", "test_prefixes", "test_governor", "test_responses", "test_receipt", "test_serve")
# What no server of ours has a use for, and what takes over a machine from inside.
NEVER = {"acct", "add_key", "bpf", "chroot", "clock_settime", "delete_module", "execveat", "fork", "init_module", "finit_module", "io_uring_setup",
         "io_uring_enter", "kcmp", "kexec_load", "keyctl", "mount", "move_mount", "name_to_handle_at", "open_by_handle_at", "open_tree", "perf_event_open",
         "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace", "reboot", "request_key", "setns", "settimeofday", "setuid", "swapon", "symlink",
         "umount2", "unshare", "userfaultfd", "vfork"}
PROT_READ, PROT_WRITE, PROT_EXEC, MAP_PRIVATE, MAP_ANONYMOUS = 1, 2, 4, 2, 32
AF_PACKET, SOCK_RAW, CLONE_NEWUSER, EPERM, ENOSYS = 17, 3, 0x10000000, 1, 38


def profile():
    return sandbox.read_profile(PROFILE)


def unit_lines(name):
    """All values of one setting of the unit; lines that end with a backslash go on."""
    with open(UNIT, encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    return [word for line in re.findall(rf"^{name}=(.*)$", text, re.MULTILINE) for word in line.split()]


def in_child(kill, call):
    """Runs call(libc) in a child under the profile: the errno that it left, 0 where it succeeded, or minus the signal that ended the child."""
    pid = os.fork()
    if pid == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        sandbox.install(profile(), kill)
        failed = call(libc) in (-1, ctypes.c_void_p(-1).value)
        os._exit(ctypes.get_errno() if failed else 0)
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def mapped(protection):
    return lambda libc: libc.mmap(None, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)


class Profile(unittest.TestCase):
    def test_what_is_forbidden(self):
        parent = os.getpid()
        self.assertEqual(in_child(False, lambda libc: libc.unshare(CLONE_NEWUSER)), EPERM)
        self.assertEqual(in_child(True, lambda libc: libc.unshare(CLONE_NEWUSER)), -signal.SIGSYS)
        self.assertEqual(in_child(False, lambda libc: libc.ptrace(0, 0, 0, 0)), EPERM)
        self.assertEqual(in_child(False, lambda libc: libc.kill(parent, signal.SIGTERM)), EPERM)
        self.assertEqual(in_child(False, lambda libc: libc.socket(AF_PACKET, SOCK_RAW, 0)), EPERM)
        self.assertEqual(in_child(False, lambda libc: libc.syscall(sandbox.numbers()["clone3"], None, 0)), ENOSYS)
        self.assertEqual(in_child(False, lambda libc: libc.syscall(sandbox.numbers()["clone"], CLONE_NEWUSER | 17, 0, 0, 0, 0)), EPERM)

    def test_memory_is_written_or_executed(self):
        self.assertEqual(in_child(True, mapped(PROT_READ | PROT_WRITE)), 0)
        self.assertEqual(in_child(True, mapped(PROT_READ | PROT_EXEC)), 0)
        self.assertEqual(in_child(False, mapped(PROT_READ | PROT_WRITE | PROT_EXEC)), EPERM)

    def test_what_is_allowed(self):
        parent = os.getpid()
        self.assertEqual(in_child(True, lambda libc: libc.getpid() * 0), 0)
        self.assertEqual(in_child(True, lambda libc: min(libc.socket(2, 1, 0), 0)), 0)
        self.assertEqual(in_child(True, lambda libc: libc.kill(parent, 0)), 0)

    def test_nothing_dangerous(self):
        allowed = sandbox.allowed_names(profile())
        self.assertEqual(NEVER & allowed, set())
        unknown = allowed - set(sandbox.numbers())
        self.assertLessEqual(unknown, {"fadvise64_64", "fstatat64", "sync_file_range2"})

    def test_same_list_for_systemd(self):
        allowed = sandbox.allowed_names(profile())
        self.assertEqual(set(unit_lines("SystemCallFilter")), allowed)
        self.assertEqual(unit_lines("SystemCallErrorNumber"), ["EPERM"])

    def test_systemd_reads_the_unit(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd here")
        with tempfile.TemporaryDirectory() as folder, open(UNIT, encoding="utf-8") as f:
            path = os.path.join(folder, "mica.service")
            with open(path, "w", encoding="utf-8") as out:
                out.write(f.read().replace("/usr/bin/mica ", serving.BIN_HERE + " "))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)


def load_tests(loader, tests, _):
    """The classes above, then those of the modules."""
    suite = unittest.TestSuite([tests])
    for name in (os.environ.get("MICA_SANDBOX") or ",".join(MODULES)).split(","):
        suite.addTests(loader.loadTestsFromName(name))
    return suite


def main():
    if not sandbox.numbers():
        print("skipped: the system's headers, which number the calls, are not here")
        sys.exit(77)
    with open(serving.BIN, "rb") as f:
        if b"__asan_init" in f.read():
            print("skipped: the sanitizers call what the program does not")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        wrapper = os.path.join(folder, "mica")
        serving.BIN_HERE = os.path.abspath(serving.BIN)
        with open(wrapper, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec "{sys.executable}" -B "{sandbox.__file__}" --kill "{PROFILE}" "{serving.BIN_HERE}" "$@"\n')
        os.chmod(wrapper, 0o755)
        serving.BIN = os.environ["MICA_BIN"] = wrapper  # whatever the modules start from now on
        sys.path.append(os.path.join(os.path.dirname(serving.HERE), "router"))
        unittest.main(warnings="ignore")


if __name__ == "__main__":
    main()
