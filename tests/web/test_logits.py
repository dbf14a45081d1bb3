"""All logits of the tiny models, and of a random model of each weight type with each type of cache (tests/logits.c): those of this machine,
by their hashes."""
import glob
import os
import subprocess
import tempfile
import unittest

from webtest import DATA, SETS, node, run_module, skip

LOGITS = os.environ.get("MICA_LOGITS", "")


class Logits(unittest.TestCase):
    def test_hashes(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([LOGITS, "write", folder], check=True)
            files = sorted(glob.glob(os.path.join(DATA, "tiny", "*.gguf")) + glob.glob(os.path.join(folder, "*.gguf")))
            self.assertGreater(len(files), 20)
            here = subprocess.run([LOGITS, "hash", "best", *files], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
            for name, sets in SETS.items():
                for kernels in sets:
                    with self.subTest(module=name, kernels=kernels):
                        code, lines = run_module("logits-" + name, "hash", kernels, *files)
                        self.assertEqual((code, lines[0]), (0, f"kernels {kernels}"))
                        self.assertEqual(lines[1:], here[1:])


if __name__ == "__main__":
    if not os.path.exists(LOGITS):
        skip("the program logits is not built here")
    node()
    unittest.main()
