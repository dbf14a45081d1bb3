"""Gets what builds and tests the Python package, in a virtual environment: bindings/python/build_wheel and tests/python use it.

    fetch-python        prints the folder that holds venv/; makes it if need be

What is installed, by version and checksum: tests/python/requirements.txt. The folder is $MICA_PYTHON_DIR, by default one in
${XDG_CACHE_HOME:-$HOME/.cache}/mica/python whose name is the state of that file. Nothing is built by an installation: wheels only.
"""
import argparse
import hashlib
import os
import platform
import sys

from fetch_clients import REQUIREMENTS, install_once, install_python
from fetch_common import cache_dir, run

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "python")
SPACE = 512 << 20  # twice what lies there in the end: pip unpacks beside the wheels


def state(source=SOURCE):
    """What the folder depends on: the lock, and the Python whose packages they are."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {platform.machine()}".encode())
    with open(os.path.join(source, REQUIREMENTS), "rb") as f:
        digest.update(f.read())
    return digest.hexdigest()[:16]


def install(folder, source=SOURCE):
    install_once(folder, state(source), SPACE, "what the Python package needs", ("venv",), (lambda: install_python(source, folder),))


def main(arguments):
    parser = argparse.ArgumentParser(prog="fetch-python", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    folder = cache_dir("MICA_PYTHON_DIR", os.path.join("python", state()))
    install(folder)
    print(folder)
    return 0


if __name__ == "__main__":
    run("fetch-python", main)
