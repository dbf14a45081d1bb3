"""Tests of scripts/fetch_schema_suite.py without a network: pip is pointed at an archive made here.

    python3 tests/scripts/test_fetch_schema.py        exit status 77 (skipped) where python3 has no pip
"""
import contextlib
import importlib.util
import io
import os
import sys
import tarfile
import tempfile
import shutil
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import fetch_archive  # noqa: E402
import fetch_common  # noqa: E402
import fetch_schema_suite as suite  # noqa: E402
from fetch_common import Failure  # noqa: E402

FILES = {
    "json/tests/draft2020-12/type.json": ("tests", "type.json"),
    "json/tests/draft2020-12/optional/bignum.json": ("optional", "bignum.json"),
    "json/tests/draft2020-12/optional/format/date.json": ("format", "date.json"),
    "json/tests/draft7/type.json": None,
    "json/tests/draft2020-12/../../escape.json": None,
    "json/remotes/draft2020-12/integer.json": None,
}


class SchemaSuite(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.cache = os.path.join(self.folder, "cache")
        archive = os.path.join(self.folder, suite.SUITE.name)
        with tarfile.open(archive, "w:gz") as tar:
            for name in FILES:
                info = tarfile.TarInfo(f"jsonschema-{suite.SUITE.version}/{name}")
                info.size = len(name)
                tar.addfile(info, io.BytesIO(name.encode()))
        settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.folder, "PIP_CONFIG_FILE": os.devnull,
                    "MICA_SCHEMA_SUITE_DIR": self.cache}
        for patch in (mock.patch.dict(os.environ, settings), mock.patch.object(fetch_archive, "say", lambda text: None),
                      mock.patch.object(suite.SUITE, "size", os.path.getsize(archive)),
                      mock.patch.object(suite.SUITE, "sha256", fetch_common.sha256_of(archive))):
            patch.start()
            self.addCleanup(patch.stop)

    def fetch(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(suite.main([]), 0)
        self.assertEqual(out.getvalue(), self.cache + "\n")

    def test_layout(self):
        self.fetch()
        for name, place in FILES.items():
            if place:
                with open(os.path.join(self.cache, *place), encoding="ascii") as f:
                    self.assertEqual(f.read(), name)
        found = sum(len(os.listdir(os.path.join(self.cache, name))) for name in suite.SUITE.members)
        self.assertEqual(found, 3)
        self.assertNotIn(suite.SUITE.name, os.listdir(self.cache))

    def test_once(self):
        self.fetch()
        with mock.patch.object(suite.SUITE, "replace", side_effect=AssertionError("fetched again")):
            self.fetch()

    def test_checksum(self):
        with mock.patch.object(suite.SUITE, "sha256", "0" * 64), self.assertRaisesRegex(Failure, "wrong checksum"):
            self.fetch()
        self.assertFalse(suite.SUITE.is_installed(self.cache))
        self.fetch()


if __name__ == "__main__":
    if not importlib.util.find_spec("pip"):
        print("python3 has no pip: skipped")
        sys.exit(77)
    unittest.main()
