"""Running mica at a terminal: what it shows while it works, and what it asks."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from climica import BIN, TIMEOUT, environment  # noqa: E402


class Shown:
    """What a program did at a terminal: exit code, all bytes that it wrote, and the lines that it rewrote, as texts."""

    def __init__(self, code, seen):
        self.code, self.seen = code, seen
        self.text = seen.decode("utf-8", "replace")
        self.lines = [line for line in re.split(r"\r\x1b\[K|\r?\n", self.text) if line.startswith("[")]

    def __repr__(self):
        return f"exit {self.code}\n{self.text[-3000:]}"


def at_terminal(*args, columns=110, answers=(), **variables):
    """Runs mica with a terminal on all three sides. Each of `answers` is typed when a question, which ends with ": ", is there."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**environment(), "LC_ALL": "C.UTF-8", **variables}
    process = subprocess.Popen([BIN, *map(str, args)], stdin=child, stdout=child, stderr=child, env=env)
    os.close(child)
    seen, answers, asked = b"", list(answers), 0
    while select.select([parent], [], [], TIMEOUT)[0]:
        try:
            piece = os.read(parent, 65536)
        except OSError:  # EIO: the other end is closed
            break
        seen += piece
        if answers and seen[asked:].endswith(b": "):
            asked = len(seen)
            os.write(parent, answers.pop(0).encode() + b"\n")
    else:
        process.kill()
    process.wait()
    os.close(parent)
    return Shown(process.returncode, seen)
