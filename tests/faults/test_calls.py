"""Calls of the system that fail, one after the other: a clear error that names the file, what was there is unchanged, nothing is left behind,
and the same command works afterwards. What is only interrupted or short is done again or continued, and nobody notices."""
import errno
import os
import re
import unittest

import subjects
from faults import ALL, SHORT, main, sweep

HARD = (("open", errno.EMFILE), ("open", errno.EIO), ("read", errno.EIO), ("write", errno.EIO), ("write", errno.ENOSPC), ("sync", errno.EIO),
        ("sync", errno.ENOSPC), ("rename", errno.EIO), ("map", errno.ENODEV), ("truncate", errno.EIO), ("stat", errno.EIO), ("close", errno.EIO),
        ("seek", errno.EIO), ("unlink", errno.EIO))
SOFT = ((("read", "write", "sync", "truncate", "close"), errno.EINTR), (("read", "write"), SHORT))
EVERY = (*subjects.TEXTS[:2], *subjects.REPLIES, *subjects.FILES, *subjects.ROUTES, subjects.Pull)
HARD_KINDS = EVERY if ALL else (subjects.RunKept, subjects.Quantize, subjects.Hold, subjects.Pull)


def plain(path):
    """A file's name without what SQLite and we add to it for a while."""
    return re.sub(r"(\.tmp-\w+|-wal|-shm|-journal|\.part|\.part\.from|\.ok|\.lock)$", "", os.path.basename(path.removesuffix(" (deleted)")))


class Calls(unittest.TestCase):
    def judge_hard(self, run, s, fault, done):
        self.assertIn(done.code, (0, 1), f"{fault}: {done}")
        if done.code == 1:
            self.assertTrue(done.last_line(), f"{fault}: {done}")
            if fault.path.startswith(s.folder + "/"):
                self.assertIn(plain(fault.path), done.last_line(), f"{fault}: {done}")
        else:
            self.assertEqual(s.result(done), run.expected, f"{fault}: {done}")
        if fault.call not in ("unlink", "unlinkat"):
            self.assertEqual(s.temporaries(), [], fault)
        run.check_state(s, fault, done)

    def judge_soft(self, run, s, fault, done):
        self.assertEqual((done.code, s.result(done)), (0, run.expected), f"{fault}: {done}")
        self.assertEqual(s.temporaries(), [], fault)
        run.check_state(s, fault, done)

    def fail_hard(self, kinds, most):
        for kind in kinds:
            for call, error in HARD:
                sweep(self, kind, (call,), error, "calls", most, self.judge_hard)

    def test_hard(self):
        self.fail_hard(HARD_KINDS, 2)

    def test_soft(self):
        for kind in EVERY:
            for calls, error in SOFT:
                sweep(self, kind, calls, error, "calls", 4, self.judge_soft)

    def test_measuring(self):
        for kind in subjects.SLOW:
            sweep(self, kind, ("write",), errno.ENOSPC, "calls", 3, self.judge_hard)
            sweep(self, kind, ("sync",), errno.EIO, "calls", 2, self.judge_hard)
            sweep(self, kind, ("read", "write"), SHORT, "calls", 2, self.judge_soft)


if __name__ == "__main__":
    main()
