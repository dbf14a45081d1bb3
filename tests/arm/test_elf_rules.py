"""The checks of test_elf.py (case mob-02-16k-alignment) on small libraries that break one rule each: those must be refused for that
reason, and a sound one must pass.

    python3 tests/arm/test_elf_rules.py --cc CC
"""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elf  # noqa: E402

SOURCE = "#include <stdlib.h>\nint value = 3, zero;\nint *where(void) { return &value; }\nvoid *more(size_t n) { return malloc(n); }\n"
SOUND = ["-shared", "-fPIC", "-O1", "-Wl,-z,max-page-size=16384", "-Wl,-z,noexecstack"]
CC = "cc"


class Rules(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        with open(os.path.join(self.folder, "small.c"), "w", encoding="ascii") as f:
            f.write(SOURCE)

    def link(self, *flags):
        out = os.path.join(self.folder, "small.so")
        subprocess.run([CC, *flags, os.path.join(self.folder, "small.c"), "-o", out], check=True)
        with open(out, "rb") as f:
            return elf.Elf(f.read())

    def refused(self, why, *flags):
        found = elf.faults(self.link(*SOUND, *flags))
        self.assertTrue(any(why in fault for fault in found), found)

    def test_sound(self):
        e = self.link(*SOUND)
        self.assertEqual(elf.faults(e), [])
        self.assertEqual(e.needed(), ["libc.so.6"])
        self.assertEqual({name for name in e.undefined() if not name.startswith("_")}, {"malloc"})

    def test_small_pages(self):
        self.refused("aligned to 0x1000", "-Wl,-z,max-page-size=4096")
        self.refused("share a page of 16 KiB", "-Wl,-z,max-page-size=4096")

    def test_large_pages(self):
        self.assertEqual(elf.faults(self.link(*SOUND, "-Wl,-z,max-page-size=65536")), [])

    def test_stack(self):
        self.refused("stack is executable", "-Wl,-z,execstack")

    def test_hash_table(self):
        for style in ("sysv", "gnu", "both"):
            self.assertEqual(elf.faults(self.link(*SOUND, f"-Wl,--hash-style={style}")), [])

    def test_other_files(self):
        for data in (b"", b"\x7fELF\1\1" + bytes(60), b"!<arch>\n" + bytes(60)):
            self.assertRaises(ValueError, elf.Elf, data)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default=CC)
    CC = parser.parse_args().cc
    unittest.main(argv=sys.argv[:1])
