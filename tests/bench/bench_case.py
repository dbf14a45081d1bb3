"""What the tests of mica bench share: the fake adapter in a folder of its own, a short protocol, a database."""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import SCRIPTED, TestCase, mica  # noqa: E402

PROTOCOL = {"version": 1, "name": "short", "description": "for tests", "n_ctx": 256, "cold_s": 0.01,
            "steady_s": 0.01, "sample_s": 0.05,
            "phases": [{"kind": "load", "cache": "warm"}, {"kind": "warmup", "prompt": 16, "reply": 4, "repeat": 1},
                       {"kind": "ttft", "prompt": 200, "reply": 2, "repeat": 3},
                       {"kind": "ttft", "prompt": 16, "reply": 2, "repeat": 3},
                       {"kind": "decode", "prompt": 16, "reply": 40, "min_s": 0.2}]}


class BenchCase(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.db = self.path("bench.db")
        self.protocol = self.write("short.json", PROTOCOL)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, value):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            json.dump(value, f)
        return self.path(name)

    def fake(self, mode="good", name="fake"):
        self.write(os.path.join(name, "manifest.json"), {"name": name, "protocol": 1, "command": [
            sys.executable, "-B", os.path.join(HERE, "fake_adapter.py"), mode]})
        return name

    def bench(self, *args, runtime="fake", **more):
        return mica(*self.arguments(runtime), *args, **more)

    def arguments(self, runtime="fake"):
        return ["bench", "-m", SCRIPTED, "--adapters", self.folder, "--runtime", runtime, "--protocol", self.protocol,
                "--db", self.db]
