"""A model's file that is truncated, removed or replaced while it is in use: truncated, the command ends with the file's name; removed or
replaced by another one under its name, it goes on as if nothing had happened."""
import os
import shutil
import subprocess
import unittest

from faults import BIN, SCRIPTED, TIMEOUT, Subject, main
from subjects import LLAMA, wait_until


class Chat(Subject):
    """A conversation with two threads, held line by line."""

    def begin(self):
        self.model = self.path("model.gguf")
        shutil.copy(SCRIPTED, self.model)
        self.process = subprocess.Popen([BIN, "chat", "-m", self.model, "--temp", "0", "--threads", "2"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, cwd=self.folder)

    def ask(self, text):
        """The reply, which is one line."""
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self):
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        self.process.wait()
        super().end()


class Mapped(unittest.TestCase):
    def ends_with_its_name(self, process, path):
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 1, err)
        self.assertEqual(err.decode().splitlines()[-1], f"mica: the file {path} was truncated or cannot be read any more", out)

    def test_truncated(self):
        for size in (0, 4096, 400000):
            with Chat() as c, self.subTest(size=size):
                self.assertEqual(c.ask(b"E"), "Hi 🙂!\n".encode())
                os.truncate(c.model, size)
                c.process.stdin.write(b"S\n")
                c.process.stdin.flush()
                self.ends_with_its_name(c.process, c.model)
                notes = os.path.join(c.folder, "state", "mica", "loads")
                self.assertEqual(os.listdir(notes) if os.path.isdir(notes) else [], [])  # no load that was killed

    def test_overwritten_in_place(self):
        """As `cp` does it: shorter."""
        with Chat() as c:
            c.ask(b"E")
            with open(c.model, "wb") as f:
                f.write(b"GGUF, but another")
            c.process.stdin.write(b"S\n")
            c.process.stdin.flush()
            self.ends_with_its_name(c.process, c.model)

    def test_removed_and_replaced(self):
        with Chat() as plain:
            expected = [plain.ask(t) for t in (b"E", b"S", b"R")]
        for change in (os.unlink, lambda path: os.replace(shutil.copy(LLAMA, path + ".new"), path)):
            with Chat() as c:
                first = c.ask(b"E")
                change(c.model)
                self.assertEqual([first, c.ask(b"S"), c.ask(b"R")], expected)

    def test_before_the_first_token(self):
        """Truncated between the loading and the prompt, which comes late."""
        with Subject() as s:
            model = shutil.copy(SCRIPTED, s.path("model.gguf"))
            for args in (("run", "-m", model, "--temp", "0", "--threads", "2"), ("embed", "-m", model, "--threads", "2")):
                shutil.copy(SCRIPTED, model)
                p = subprocess.Popen([BIN, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=s.env)
                self.addCleanup(p.kill)
                self.assertTrue(wait_until(lambda: is_mapped(p.pid, model)))
                os.truncate(model, 8192)
                out, err = p.communicate(b"E\n", timeout=TIMEOUT)
                self.assertEqual(p.returncode, 1, (out, err))
                self.assertIn(f"mica: the file {model} was truncated", err.decode())


def is_mapped(pid, path):
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            return path in f.read()
    except OSError:
        return False


if __name__ == "__main__":
    main()
