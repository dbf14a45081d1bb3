"""Receipts and conditions over HTTP ("x_mica"), for whole answers and streams; and that C, program and server say the same of one
request. docs/receipt.md."""
import os
import subprocess
import tempfile
import unittest

from receiving import CTX, THREADS, Receipts
from serving import BIN, SCRIPTED, ServeTest, Server, chunks, events, main

# What is never the same twice: the time, and what the machine did meanwhile.
CHANGES = ("times", "machine", "energy", "throttled", "peak_rss_bytes")


def unchanging(receipt):
    assert set(CHANGES) <= set(receipt), receipt
    return {k: v for k, v in receipt.items() if k not in CHANGES}


class SameEverywhere(Receipts):
    def test_one_object(self):
        """C, mica run, mica chat's route and both forms of /v1/completions: the same object for the same request."""
        with tempfile.TemporaryDirectory() as folder:
            cache = os.path.join(folder, "mica", "hashes")
            os.mkdir(os.path.dirname(cache))
            env = {"XDG_CACHE_HOME": folder}
            in_c = self.from_c(cache)  # the first one reads the file
            in_c = self.from_c(cache)
            program = self.from_program(folder)
            server = Server("--ctx", CTX, "-t", THREADS, "--parallel", 1, env=env)
            try:
                whole = self.from_server(server, False)
                stream = self.from_server(server, True)
            finally:
                self.assertEqual(server.stop(), 0)
        self.assertEqual(in_c["model"]["sha256_from"], "cache")
        self.assertEqual(in_c["tokens"]["gen_n"], 8)
        for other in (program, whole, stream):
            self.assertEqual(unchanging(other), unchanging(in_c))
            self.assertEqual(list(other), list(in_c))
            for name in ("times", "machine"):
                self.assertEqual(set(other[name]), set(in_c[name]))


class Requests(ServeTest):
    arguments = ("--ctx", CTX, "-t", THREADS)

    def body(self, prompt="E", **more):
        return {"messages": [{"role": "user", "content": prompt}], "temperature": 0, **more}

    def test_only_if_asked(self):
        self.assertNotIn("receipt", self.server.chat(self.body()).json()["mica"])
        self.assertNotIn("receipt", self.server.chat(self.body(x_mica={"receipt": False})).json()["mica"])
        self.assertNotIn("receipt", self.server.chat(self.body(x_mica={"require": ["no_drop"]})).json()["mica"])

    def test_every_route(self):
        ask = {"receipt": True}
        self.assertEqual(self.server.chat(self.body(x_mica=ask)).json()["mica"]["receipt"]["tokens"]["gen_n"], 8)
        last = chunks(self.server.chat(self.body(x_mica=ask, stream=True)))[-1]
        self.assertEqual(last["mica"]["receipt"]["stop_reason"], "eos")
        answer = self.server.post("/v1/responses", {"input": "E", "temperature": 0, "x_mica": ask})
        self.assertEqual(answer.json()["mica"]["receipt"]["stop_reason"], "eos")
        answer = self.server.post("/v1/responses", {"input": "E", "temperature": 0, "stream": True, "x_mica": ask})
        name, done = events(answer.text)[-1]
        self.assertEqual(name, "response.completed")
        self.assertEqual(done["response"]["mica"]["receipt"]["stop_reason"], "eos")

    def test_several_choices(self):
        receipts = self.server.chat(self.body(n=3, x_mica={"receipt": True})).json()["mica"]["receipts"]
        self.assertEqual([r["tokens"]["gen_n"] for r in receipts], [8, 8, 8])
        self.assertGreaterEqual(max(r["replies_at_once"] for r in receipts), 1)

    def test_conditions(self):
        good = self.server.chat(self.body(x_mica={"require": ["threads>=2", "kv=f16", "no_drop"]}))
        self.assertEqual(good.status, 200, good)
        for condition, says in (("kernels=sse9", "the kernel set is"), ("threads>=60", "2 threads"), ("ctx>=100000", "tokens of context")):
            answer = self.server.chat(self.body(x_mica={"require": [condition]}))
            error = self.refused(answer, 412, "x_mica.require", "requirement_not_met", says)
            self.assertIn(condition, error["message"])
        self.assertEqual(self.server.chat(self.body()).status, 200)

    def test_conditions_of_streams(self):
        """Known before the stream begins: a status. Known only then: no text, one error."""
        answer = self.server.chat(self.body(stream=True, x_mica={"require": ["kv=q4_0"]}))
        self.refused(answer, 412, "x_mica.require", "requirement_not_met", "f16")
        answer = self.server.chat(self.body(stream=True, x_mica={"require": ["threads>=60"]}))
        found = [data for _, data in events(answer.text)]
        errors = [data["error"] for data in found if data != "[DONE]" and "error" in data]
        self.assertEqual([e["code"] for e in errors], ["requirement_not_met"])
        self.assertFalse([data for data in found if data != "[DONE]" and data.get("choices")])

    def test_malformed(self):
        self.refused(self.server.chat(self.body(x_mica=[])), 400, "x_mica")
        self.refused(self.server.chat(self.body(x_mica={"receipt": "yes"})), 400)
        self.refused(self.server.chat(self.body(x_mica={"require": "no_drop"})), 400, "x_mica.require")
        self.refused(self.server.chat(self.body(x_mica={"require": [1]})), 400, "x_mica.require")
        self.refused(self.server.chat(self.body(x_mica={"require": ["nonsense"]})), 400, "x_mica.require", says="kernels=NAME")
        self.refused(self.server.chat(self.body(x_mica={"require": ["no_drop"] * 33})), 400, "x_mica.require")


class ServerConditions(unittest.TestCase):
    def test_of_every_request(self):
        server = Server("--ctx", CTX, "-t", 2, "--require", "threads<=2", "--require", "kv=q8_0")
        try:
            answer = server.chat({"messages": [{"role": "user", "content": "E"}]})
            self.assertEqual((answer.status, answer.json()["error"]["code"]), (412, "requirement_not_met"))
        finally:
            self.assertEqual(server.stop(), 0)

    def test_malformed(self):
        done = subprocess.run([BIN, "serve", "-m", SCRIPTED, "--port", "0", "--require", "nonsense"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(b"nonsense", done.stderr)


if __name__ == "__main__":
    main()
