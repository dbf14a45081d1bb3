"""Tests of scripts/fetch_clients.py without a network: pip is pointed at packages made here, npm is one made here too.

    python3 tests/scripts/test_fetch_clients.py        exit status 77 (skipped) where python3 has no pip
"""
import contextlib
import io
import os
import re
import subprocess
import sys
import unittest
from unittest import mock

from test_fetch import Base, write_wheel

import fetch_clients
import fetch_common
from fetch_common import Failure

NPM = """#!/bin/sh
[ "$1" = ci ] || exit 1
grep -q broken package-lock.json && { echo "npm says why"; exit 1; }
mkdir -p node_modules/openai
"""


class Clients(Base):
    def setUp(self):
        super().setUp()
        self.source = os.path.join(self.folder, "source")
        os.makedirs(os.path.join(self.source, "npm"))
        for name in fetch_clients.NPM_FILES:
            self.write(os.path.join(self.source, "npm", name), "{}")
        write_wheel(self.packages, "mica_test_client", "mica_test_client.py", b"answer = 42\n")
        self.lock()
        programs = os.path.join(self.folder, "bin")
        os.mkdir(programs)
        self.write(os.path.join(programs, "npm"), NPM)
        os.chmod(os.path.join(programs, "npm"), 0o755)
        for patch in (mock.patch.dict(os.environ, {"PATH": programs + ":/usr/bin:/bin"}), mock.patch.object(fetch_clients, "say"),
                      mock.patch.object(fetch_clients, "SPACE", 1 << 20)):
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, path, text):
        with open(path, "w", encoding="ascii") as f:
            f.write(text)

    def lock(self, digest=None, requirement="mica-test-client==1.0"):
        digest = digest or fetch_common.sha256_of(os.path.join(self.packages, "mica_test_client-1.0-py3-none-any.whl"))
        self.write(os.path.join(self.source, "requirements.txt"), f"{requirement} --hash=sha256:{digest}\n")

    def install(self):
        fetch_clients.install(self.cache, self.source)

    def refused(self, says):
        with self.assertRaisesRegex(Failure, says):
            self.install()
        self.assertFalse(os.path.exists(os.path.join(self.cache, fetch_clients.STAMP)))

    def test_both_kinds_are_installed(self):
        self.install()
        done = subprocess.run([fetch_clients.python_of(self.cache), "-c", "import mica_test_client; print(mica_test_client.answer)"],
                              stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout, "42\n")
        self.assertTrue(os.path.isdir(os.path.join(self.cache, "node_modules", "openai")))
        with mock.patch.object(fetch_clients, "call", side_effect=AssertionError("installed again")):
            self.install()

    def test_a_new_lock_makes_it_anew_and_touches_nothing_else(self):
        self.install()
        self.write(os.path.join(self.cache, "kept"), "")
        os.mkdir(os.path.join(self.cache, "node_modules", "old"))
        self.write(os.path.join(self.source, "npm", "package-lock.json"), "{ }")
        self.install()
        self.assertTrue(os.path.exists(os.path.join(self.cache, "kept")))
        self.assertEqual(os.listdir(os.path.join(self.cache, "node_modules")), ["openai"])

    def test_a_python_that_is_gone(self):
        self.install()
        python = fetch_clients.python_of(self.cache)
        os.remove(python)
        os.symlink("/nowhere/python3", python)
        self.install()
        self.assertTrue(os.access(python, os.X_OK))

    def test_wrong_checksum(self):
        self.lock(digest="0" * 64)
        self.refused("DO NOT MATCH THE HASHES|hashes")

    def test_absent_package(self):
        self.lock(requirement="mica-test-absent==1.0")
        self.refused("mica-test-absent")

    def test_no_npm(self):
        with mock.patch.object(fetch_clients.shutil, "which", return_value=None):
            self.refused("npm is missing; install it")

    def test_npm_fails(self):
        self.write(os.path.join(self.source, "npm", "package-lock.json"), "broken")
        self.refused("npm says why")
        self.write(os.path.join(self.source, "npm", "package-lock.json"), "{}")
        self.install()


class Locks(unittest.TestCase):
    def test_every_package_has_its_version_and_checksums(self):
        with open(os.path.join(fetch_clients.SOURCE, fetch_clients.REQUIREMENTS), encoding="ascii") as f:
            lines = [line.rstrip(" \\\n") for line in f if not line.startswith("#")]
        names = [line for line in lines if not line.startswith(" ")]
        self.assertGreater(len(names), 10)
        for line, following in zip(lines, lines[1:] + ["end"]):
            if line.startswith(" "):
                self.assertRegex(line, r"^    --hash=sha256:[0-9a-f]{64}$")
            else:
                self.assertRegex(line, r"^[a-z0-9-]+==[0-9][0-9a-z.]*$")
                self.assertTrue(following.startswith("    --hash"), line)
        wanted = {"openai", "langchain-openai", "playwright", "lm-eval"}
        self.assertEqual(wanted - {re.sub("==.*", "", name) for name in names}, set())

    def test_the_folder_depends_on_the_locks(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, mock.patch.object(fetch_clients, "install"), \
                mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "/cache"}):
            os.environ.pop("MICA_CLIENTS_DIR", None)
            fetch_clients.main([])
        self.assertEqual(out.getvalue(), f"/cache/mica/clients/{fetch_clients.state()}\n")


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      check=False).returncode != 0:
        print("skipped: this python3 has no pip")
        sys.exit(77)
    unittest.main()
