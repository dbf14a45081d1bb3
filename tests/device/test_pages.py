"""mem-05: nothing takes pages for 4096 bytes, and a model that cannot be mapped is refused with its size."""
import errno
import os
import shutil
import subprocess
import sys
import tempfile

import fakemachine  # noqa: F401  (the path to climica)
from climica import SCRIPTED, TestCase, environment, main, mica

PAGES = os.environ.get("MICA_TEST_PAGES", "")


class Pages(TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mica-pages-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = os.path.join(self.folder, "log")

    def env(self, **more):
        return {**environment(), "LD_PRELOAD": PAGES, "MICA_TEST_PAGES_LOG": self.log, **{k: str(v) for k, v in more.items()}}

    def calls(self):
        with open(self.log, encoding="ascii") as f:
            return f.read().splitlines()

    def test_larger_pages(self):
        args = ("run", "-m", SCRIPTED, "-p", "E", "--temp", "0", "-n", "20", "--no-chat")
        usual = self.ok(mica(*args))
        self.assertTrue(usual.out)
        for size in (4096, 16384, 65536):
            with self.subTest(size=size):
                done = self.ok(mica(*args, env=self.env(MICA_TEST_PAGE_SIZE=size)))
                self.assertEqual(done.out, usual.out)
                calls = self.calls()
                self.assertTrue([c for c in calls if c.startswith("mmap ") and c.endswith(f" {os.path.getsize(SCRIPTED)}")], calls)
                self.assertEqual([c for c in calls if c.startswith("BAD")], [])
                os.remove(self.log)

    def test_a_fault_would_be_found(self):
        """The tool itself: a map that does not begin at a page is BAD with large pages, and refused."""
        code = ("import ctypes, os, sys; c = ctypes.CDLL(None, use_errno=True); c.mmap.restype = ctypes.c_void_p; "
                "c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]; "
                "got = c.mmap(None, 4096, 1, 1, os.open(sys.argv[1], os.O_RDONLY), 8192); print(got == 2 ** 64 - 1, ctypes.get_errno())")
        done = subprocess.run([sys.executable, "-c", code, SCRIPTED], env=self.env(MICA_TEST_PAGE_SIZE=65536), stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.split(), [b"True", str(errno.EINVAL).encode()])
        self.assertIn("BAD mmap 0x2000 4096", self.calls())

    def test_less_room(self):
        big = os.path.join(self.folder, "big.gguf")
        shutil.copy(SCRIPTED, big)
        os.truncate(big, (1 << 30) + 4096)  # sparse: what is behind the tensors is nobody's
        self.ok(mica("run", "-m", SCRIPTED, "-p", "E", "--temp", "0", "-n", "2", env=self.env(MICA_TEST_MAP_LIMIT=1 << 30)))
        done = mica("run", "-m", big, "-p", "E", "--temp", "0", "-n", "2", env=self.env(MICA_TEST_MAP_LIMIT=1 << 30))
        self.fails(done, str((1 << 30) + 4096), "big.gguf")
        self.assertEqual(done.out, b"")


if __name__ == "__main__":
    if not os.path.exists(PAGES):
        print("skipped: this build has no MICA_TEST_PAGES (sanitizers come first in a program)", file=sys.stderr)
        sys.exit(77)
    main()
