"""What the tests of mica pull share: a server with faults, folders of their own, registry files."""
import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import BIN, CASES, SCRIPTED, Done, TestCase, environment, main, mica  # noqa: E402,F401

FAULTY = os.path.join(CASES, "dl-common", "faulty_http.py")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


def content(n, seed=1):
    return random.Random(seed).randbytes(n)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def flip(path, at):
    """Changes a byte in place."""
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1]))


class Faulty:
    """The cases' server, in a process of its own."""

    def __init__(self, test, path):
        self.port = free_port()
        self.process = subprocess.Popen([sys.executable, "-B", FAULTY, path, str(self.port)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        test.addCleanup(self.stop)
        for _ in range(200):
            try:
                self.log()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server did not start")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def url(self, mode, name="name.gguf"):
        return f"http://127.0.0.1:{self.port}/{mode}/{name}"

    def get(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}{path}", timeout=20) as f:
            return f.read()

    def log(self):
        return [json.loads(line) for line in self.get("/log").splitlines()]


class PullCase(TestCase):
    SIZE = 200000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.models = os.path.join(self.folder, "cache", "mica", "models")
        self.data = content(self.SIZE)
        self.sum = sum_of(self.data)
        self.out = self.path("out.gguf")
        self.part = self.out + ".part"

    def path(self, name):
        return os.path.join(self.folder, name)

    def serve(self, data=None):
        return Faulty(self, write(self.path("served"), self.data if data is None else data))

    def env(self, **more):
        env = {k: v for k, v in environment().items() if not k.lower().endswith("_proxy") and k != "SSL_CERT_FILE"}
        del env["MICA_MODELS_DIR"]
        env.update(XDG_CACHE_HOME=self.path("cache"), XDG_DATA_HOME=self.path("data"), HOME=self.folder, **more)
        return env

    def mica(self, *args, env=None, **more):
        return mica(*args, env=env or self.env(), **more)

    def pull(self, what, *args, **more):
        return self.mica("pull", what, *args, **more)

    def pull_out(self, server, mode, *args, **more):
        """To self.out, with the right checksum."""
        return self.pull(server.url(mode), "--sha256", self.sum, "-o", self.out, *args, **more)

    def is_whole(self, done, data=None):
        self.ok(done)
        self.assertEqual(read(self.out), self.data if data is None else data)
        self.assertEqual(sorted(n for n in os.listdir(self.folder) if n.startswith("out.gguf")), ["out.gguf"])

    def is_refused(self, done, *wanted):
        """The last line says why; there is no file of the name."""
        self.assertEqual(done.code, 1, done)
        last = done.message.splitlines()[-1]
        self.assertTrue(last.startswith("mica: "), done)
        for text in wanted:
            self.assertIn(text, last, done)
        self.assertFalse(os.path.exists(self.out))

    def start(self, *args, env=None):
        """Runs mica beside the test."""
        process = subprocess.Popen([BIN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env or self.env())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def wait_for_size(self, path, size):
        for _ in range(400):
            if os.path.exists(path) and os.path.getsize(path) >= size:
                return
            time.sleep(0.02)
        self.fail(f"{path} did not reach {size} bytes")

    def entry(self, urls, chunk=0, **more):
        """Writes a registry file and returns its path."""
        entry = {"schema": 1, "name": "tiny", "urls": urls, "bytes": len(self.data), "sha256": self.sum}
        if chunk:
            parts = [self.data[i:i + chunk] for i in range(0, len(self.data), chunk)]
            entry.update(chunk_bytes=chunk, chunks=[sum_of(p) for p in parts])
        entry.update(more)
        return write(self.path("tiny.json"), json.dumps(entry).encode())
