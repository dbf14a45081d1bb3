"""The kernels of WebAssembly against the portable ones, bit by bit (tests/unit/test_kernels.c), and fused multiply-adds (fma.c), under
Node."""
import unittest

from webtest import SETS, node, run_module


class Kernels(unittest.TestCase):
    def test_bits(self):
        for name, sets in SETS.items():
            code, lines = run_module("kernels-" + name)
            self.assertEqual(code, 0, "\n".join(lines[-5:]))
            for kernels in sets:
                self.assertIn(f"{kernels}: native", lines)
            self.assertEqual(len([line for line in lines if line.startswith("passed: ")]), 12)

    def test_fused_multiply_add(self):
        for name in SETS:
            code, lines = run_module("fma-" + name)
            self.assertEqual((code, lines), (0, ["passed: test_many", "passed: test_denormal"]))


if __name__ == "__main__":
    node()
    unittest.main()
