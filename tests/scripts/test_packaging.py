"""The files of debian/ agree with the tree: the version, and the packages that a build needs."""
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOT_LINKED = {"libc6-dev", "libcmocka-dev"}  # in every build environment; for tests


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


class Packaging(unittest.TestCase):
    def test_version(self):
        version = re.search(r"^project\(mica VERSION (\S+)", read("CMakeLists.txt"), re.MULTILINE).group(1)
        self.assertRegex(read("debian", "changelog"), rf"^mica \({re.escape(version)}\) ")

    def test_build_dependencies(self):
        """Of the packages in scripts/common.sh the libraries; the others are tools, most of them for tests."""
        packages = set(re.search(r'^packages="([^"]*)"', read("scripts", "common.sh"), re.MULTILINE).group(1).split())
        field = re.search(r"^Build-Depends:(.*?)^\S", read("debian", "control"), re.MULTILINE | re.DOTALL).group(1)
        named = {re.match(r"\S+", entry.strip()).group() for entry in field.split(",")}
        self.assertEqual({p for p in packages if p.endswith("-dev")} - NOT_LINKED, {p for p in named if p.endswith("-dev")})
        self.assertLessEqual({"cmake", "ninja-build", "pkg-config"}, named & packages)

    def test_soname(self):
        soname = re.search(r'^SONAME = "libmica\.so\.(\d+)"', read("tests", "abi.py"), re.MULTILINE).group(1)
        self.assertIn(f"\nPackage: libmica{soname}\n", read("debian", "control"))
        self.assertIn(f"libmica.so.{soname} libmica{soname} ", read("debian", "rules"))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
