"""Every allocation of a command refused, one after the other, and from one on all: an error that says so, or the work is done; nothing
half-written; and the same command works when there is memory again."""
import errno
import json
import unittest

import subjects
from faults import Fault, main, pick, sweep

CALLS = ("alloc", "thread")
WORDS = ("memory", "thread")


class Memory(unittest.TestCase):
    def judge(self, run, s, fault, done):
        self.assertIn(done.code, (0, 1, 2), f"{fault}: {done}")
        if done.code != 0:  # 2: while the command line was read, or of mica grammar
            self.assertTrue(any(w in done.last_line() for w in WORDS), f"{fault}: {done}")
        else:
            self.assertEqual(s.result(done), run.expected, f"{fault}: {done}")
        self.assertEqual(s.temporaries(), [], fault)
        run.check_state(s, fault, done)

    def refuse(self, kinds, most):
        for kind in kinds:
            sweep(self, kind, CALLS, errno.ENOMEM, "memory", most, self.judge)

    def test_texts(self):
        self.refuse(subjects.TEXTS, 12)

    def test_replies(self):
        self.refuse(subjects.REPLIES, 14)

    def test_files(self):
        self.refuse(subjects.FILES, 12)

    def test_routes(self):
        self.refuse(subjects.ROUTES, 12)

    def test_pull(self):
        self.refuse([subjects.Pull], 12)

    def test_measuring(self):
        self.refuse(subjects.SLOW, 5)

    def test_no_more_memory(self):
        """From the n-th allocation on there is none: the message that needs some comes all the same."""
        for kind in (subjects.Run, subjects.Quantize, subjects.Decide):
            with kind() as s:
                fault = Fault(CALLS)
                s.run(fault)
                fault.end()
            for number in pick(fault.seen, 12):
                with kind() as s, self.subTest(subject=kind.name, number=number):
                    fault = Fault(CALLS, first=number, last=2**62)
                    done = s.run(fault)
                    fault.end()
                    self.assertIn(done.code, (0, 1), f"{fault}: {done}")
                    if done.code == 1:
                        self.assertTrue(any(w in done.last_line() for w in WORDS), f"{fault}: {done}")
                    self.assertEqual(s.temporaries(), [], fault)


class Server(unittest.TestCase):
    def judge(self, run, s, fault, done):
        """It does not start, and says why; or it goes on: one answer may be an error in OpenAI's form, the others are right."""
        answers = json.loads(done.out)
        if not answers:
            self.assertEqual(done.code, 1, f"{fault}: {done}")
            self.assertTrue(any(w in done.last_line() for w in WORDS), f"{fault}: {done}")
            return
        self.assertEqual(done.code, 0, f"{fault}: {done}")
        wrong = [a for a in answers if a != json.loads(run.expected)[0]]
        self.assertLessEqual(len(wrong), 1, f"{fault}: {done}")
        for status, body in wrong:
            self.assertIn(status, (500, 503, 0), f"{fault}: {done}")  # 0: the connection was closed
            if status:
                self.assertIn("memory", body["error"]["message"], f"{fault}: {done}")
        self.assertEqual(s.temporaries(), [], fault)

    def test_serve(self):
        sweep(self, subjects.Serve, CALLS, errno.ENOMEM, "memory", 16, self.judge)


if __name__ == "__main__":
    main()
