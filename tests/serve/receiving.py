"""Receipts of one request, from C, from the program and from the server."""
import json
import os
import subprocess
import unittest

from serving import BIN, SCRIPTED, chunks

CTX, THREADS = 256, 2
RECEIPT_C = os.environ.get("MICA_RECEIPT_C")


class Receipts(unittest.TestCase):
    def from_c(self, cache):
        if not RECEIPT_C:
            self.skipTest("MICA_RECEIPT_C is not set")
        done = subprocess.run([RECEIPT_C, SCRIPTED, "E", "30", str(CTX), str(THREADS), cache, "no_drop"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout)

    def from_program(self, folder, *more, code=0):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MICA_") or k == "MICA_KERNELS"}
        environment["XDG_CACHE_HOME"] = folder
        done = subprocess.run([BIN, "run", "-m", SCRIPTED, "-p", "E", "--no-chat", "-n", "30", "--temp", "0", "--seed", "7", "--ctx", str(CTX),
                               "-t", str(THREADS), "--full", "stop", "--require", "no_drop", "--json", "--receipt", "-", *map(str, more)],
                              capture_output=True, check=False, env=environment)
        self.assertEqual(done.returncode, code, done)
        return json.loads(done.stdout.decode().splitlines()[-1])["receipt"]

    def from_server(self, server, stream):
        body = {"prompt": "E", "max_tokens": 30, "temperature": 0, "seed": 7, "stream": stream, "cache_prompt": False,
                "x_mica": {"receipt": True, "require": ["no_drop"]}}
        answer = server.post("/v1/completions", body)
        if stream:
            return chunks(answer)[-1]["mica"]["receipt"]
        self.assertEqual(answer.status, 200, answer)
        return answer.json()["mica"]["receipt"]
