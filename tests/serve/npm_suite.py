"""Runs a suite of npm/ in node against a server. Skipped or failed, as clients.py says, where node or the npm packages are missing."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import clients
from serving import HERE, SCRIPTED, TIMEOUT, Server

NODE = clients.need_program("node", "nodejs")
MODULES = clients.need_npm()


class NpmSuite(unittest.TestCase):
    suite, model, arguments = None, SCRIPTED, ("--parallel", 2)

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.arguments, model=cls.model, env={"MICA_API_KEY": "key"})

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, (code, cls.server.log())

    def test_suite(self):
        """node's closing lines must count tests that passed, and none that did not."""
        environment = {**os.environ, "MICA_URL": "http://{}:{}".format(*self.server.address), "MICA_KEY": "key",
                       "MICA_NODE_MODULES": MODULES}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([NODE, "--test-reporter=tap", os.path.join(HERE, "npm", self.suite)], env=environment, cwd=folder,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                  timeout=5 * TIMEOUT)
        print(done.stdout, file=sys.stderr)
        counts = {name: int(number) for name, number in re.findall(r"^# (\w+) (\d+)$", done.stdout, re.MULTILINE)}
        self.assertEqual(done.returncode, 0)
        self.assertGreaterEqual(counts["pass"], 1)
        self.assertEqual((counts["pass"], counts["fail"], counts["skipped"], counts["todo"]), (counts["tests"], 0, 0, 0))
