"""src/serve/page/build gives assets.h as it is in the tree, byte for byte. Skipped without npm, or where its packages cannot be had."""
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "src", "serve", "page", "build")


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(77)


def check():
    return subprocess.run([BUILD, "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    if not shutil.which("npm") or not shutil.which("node"):
        skip("there is no npm")
    if "MICA_PAGE_WORK" not in os.environ:
        os.environ["MICA_PAGE_WORK"] = tempfile.mkdtemp()
    result = check()
    print(result.stdout)
    if result.returncode and not os.path.exists(os.path.join(os.environ["MICA_PAGE_WORK"], "node_modules", ".mica-lock")):
        skip("npm cannot install the packages")
    sys.exit(1 if result.returncode else 0)


if __name__ == "__main__":
    main()
