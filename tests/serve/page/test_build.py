"""src/serve/page/build gives assets.h as it is in the tree, byte for byte. Skipped without npm, or where its packages cannot be had."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import clients  # noqa: E402

BUILD = os.path.join(HERE, "..", "..", "..", "src", "serve", "page", "build")


def check():
    return subprocess.run([BUILD, "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    for program in ("npm", "node"):
        clients.need_program(program)
    if "MICA_PAGE_WORK" not in os.environ:
        os.environ["MICA_PAGE_WORK"] = tempfile.mkdtemp()
    result = check()
    print(result.stdout)
    if result.returncode and not os.path.exists(os.path.join(os.environ["MICA_PAGE_WORK"], "node_modules", ".mica-lock")):
        clients.lack("what npm should install")
    sys.exit(1 if result.returncode else 0)


if __name__ == "__main__":
    main()
