"""What the tests of the device layer share: fake machines, and a reader of them by a clock of the test's own."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
for folder in (HERE, os.path.join(os.path.dirname(HERE), "cli")):
    sys.path.insert(0, folder)
import fakesys  # noqa: E402

READER = os.environ.get("MICA_DEVICE_READER", "device_reader")


def tree(case, profile, t=0.0, quirks=()):
    """A folder that stands for the machine at that time."""
    root = tempfile.mkdtemp(prefix="mica-fakesys-")
    case.addCleanup(shutil.rmtree, root, ignore_errors=True)
    fakesys.emit(profile, root, float(t), set(quirks))
    return root


class Machine:
    """A fake machine that is read at given times: its state, a dict, None for what is unknown."""

    def __init__(self, case, profile, quirks=(), reader=(READER,)):
        self.profile, self.quirks = profile, set(quirks)
        self.root = tree(case, profile, 0.0, quirks)
        self.process = subprocess.Popen([*reader, self.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        case.addCleanup(self.close)

    def at(self, t):
        fakesys.emit(self.profile, self.root, float(t), self.quirks)
        return self.read(t)

    def read(self, t):
        """Without touching the tree."""
        self.process.stdin.write(b"%f\n" % t)
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def over(self, t0, t1, step):
        """Reads from t0 to t1; the first and the last state."""
        first = state = self.at(t0)
        t = t0
        while t < t1:
            t = min(t + step, t1)
            state = self.at(t)
        return first, state

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
