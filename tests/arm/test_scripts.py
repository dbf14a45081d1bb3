"""scripts/build-android as far as it goes without an NDK: what it says when there is none, or none of what it is shown."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "build-android")


def build_android(*args, **env):
    base = {k: v for k, v in os.environ.items() if k != "ANDROID_NDK" and not k.startswith("MICA_")}
    done = subprocess.run([SCRIPT, *args], env={**base, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
                          universal_newlines=True)
    return done.returncode, done.stdout, done.stderr


class BuildAndroid(unittest.TestCase):
    def test_without_ndk(self):
        code, out, err = build_android()
        self.assertEqual((code, out), (77, ""))
        self.assertRegex(err, "^build-android: skipped: ANDROID_NDK is not set")

    def test_folder_that_is_no_ndk(self):
        code, _, err = build_android(ANDROID_NDK="/nowhere")
        self.assertEqual(code, 1)
        self.assertIn("android.toolchain.cmake is not there", err)

    def test_unknown_abi(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, err = build_android("riscv64", ANDROID_NDK=self.ndk(folder))
        self.assertEqual(code, 1)
        self.assertIn("unknown ABI riscv64", err)

    def ndk(self, folder):
        path = os.path.join(folder, "ndk", "build", "cmake")
        os.makedirs(path)
        with open(os.path.join(path, "android.toolchain.cmake"), "w", encoding="ascii"):
            pass
        return os.path.join(folder, "ndk")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
