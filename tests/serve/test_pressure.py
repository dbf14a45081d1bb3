"""Lack of memory, played on a fake machine: cached prefixes are given up, new requests are refused, and all comes back."""
import glob
import os
import subprocess
import sys
import tempfile
import time
import unittest

from serving import DATA, HERE, Server, main, wait_until

MODEL = os.path.join(DATA, "tiny", "llama.gguf")
FAKESYS = os.path.join(os.path.dirname(HERE), "device", "fakesys.py")
BODY = {"prompt": [3 + (7 * i) % 200 for i in range(120)], "max_tokens": 8, "temperature": 0}


def stall(root, some):
    """What the kernel tells of the last ten seconds."""
    text = "".join(f"{who} avg10={percent:.2f} avg60=0.00 avg300=0.00 total=1\n"
                   for who, percent in (("some", some), ("full", some / 9)))
    path = os.path.join(root, "proc", "pressure", "memory")
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text)
    os.rename(path + ".new", path)


def ask(server):
    answer = server.post("/v1/completions", BODY)
    if answer.status != 200:
        raise AssertionError(answer)
    return answer.json()


def cached(reply):
    return reply["usage"]["prompt_tokens_details"]["cached_tokens"]


def text_of(reply):
    return reply["choices"][0]["text"]


class Pressure(unittest.TestCase):
    def serve(self, *args):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        subprocess.run([sys.executable, "-B", FAKESYS, "at", "--profile", "server", "--root", folder.name, "--t", "0"],
                       check=True)
        server = Server("--parallel", 2, "--ctx", 256, "--threads", 1, "--sysroot", folder.name, *args, model=MODEL)
        self.addCleanup(server.stop)
        return server, folder.name

    def level(self, server):
        return int(server.metrics()["mica_memory_pressure"])

    def test_up_and_down(self):
        """Two servers at a time: one that is pressed hard, and one with a prefix file that is pressed for a while."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        prefixes = os.path.join(folder.name, "prefixes")
        hard, hard_root = self.serve()
        soft, soft_root = self.serve("--prefixes", prefixes)
        first = ask(hard)
        self.assertEqual(text_of(ask(soft)), text_of(first))
        self.assertGreater(cached(ask(soft)), 100)
        self.assertEqual((self.level(hard), self.level(soft)), (0, 0))

        stall(hard_root, 50)
        stall(soft_root, 12.5)
        self.assertTrue(wait_until(lambda: self.level(hard) == 3), hard.log())
        answer = hard.post("/v1/completions", BODY)
        self.assertEqual(answer.status, 503, answer)
        error = answer.json()["error"]
        self.assertEqual((error["code"], error["type"]), ("memory_pressure", "server_error"))
        self.assertIn("tasks waited for memory 50 %", error["message"])
        self.assertEqual(answer.headers["retry-after"], "10")
        self.assertEqual(hard.get("/health").status, 200)
        self.assertTrue(wait_until(lambda: hard.metrics()["mica_kv_cached_tokens"] == 0), hard.metrics())
        self.assertGreater(hard.metrics()["mica_shed_tokens_total"], 100)
        self.assertIn("new requests are refused", hard.log())

        self.assertTrue(wait_until(lambda: self.level(soft) == 1), soft.log())
        self.assertTrue(wait_until(lambda: self.level(soft) == 2), soft.log())
        self.assertTrue(wait_until(lambda: os.path.exists(prefixes)), soft.log())
        stall(hard_root, 0)
        stall(soft_root, 0)
        began = time.monotonic()
        self.assertEqual(text_of(ask(soft)), text_of(first))  # only the last step refuses
        self.assertTrue(wait_until(lambda: self.level(hard) == 2, 30))
        self.assertGreater(time.monotonic() - began, 9)
        self.assertEqual(text_of(ask(hard)), text_of(first))
        self.assertTrue(wait_until(lambda: self.level(soft) == 0, 30))
        self.assertTrue(soft.wait_log("memory pressure is over"), soft.log())
        self.assertTrue(wait_until(lambda: soft.metrics()["mica_kv_cached_tokens"] > 100, 5), soft.log())
        again = ask(soft)
        self.assertGreater(cached(again), 100)
        self.assertEqual(text_of(again), text_of(first))


class Killed(unittest.TestCase):
    def test_killed_servers(self):
        """Two that were killed before their first reply are enough; one that replies clears that."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        notes = os.path.join(folder.name, "mica", "loads", "*")
        env = {"XDG_STATE_HOME": folder.name}
        for n in (1, 2):
            server = Server(model=MODEL, env=env)
            server.process.kill()
            server.stop()
            self.assertEqual(len(glob.glob(notes)), n)
        with self.assertRaisesRegex(AssertionError, "were killed before their first token.*--force-load"):
            Server(model=MODEL, env=env)
        server = Server("--force-load", model=MODEL, env=env)
        ask(server)
        self.assertTrue(wait_until(lambda: not glob.glob(notes)))
        self.assertEqual(server.stop(), 0)
        server = Server(model=MODEL, env=env)
        self.assertEqual(server.stop(), 0)  # to end it is no death
        self.assertEqual(glob.glob(notes), [])


if __name__ == "__main__":
    main()
