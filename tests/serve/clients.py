"""Whether the clients that a test drives are there. scripts/fetch-clients installs them and MICA_CLIENTS_DIR says where: with it a test
that lacks something fails; without it the test takes what happens to be installed, or is skipped."""
import importlib
import os
import shutil
import sys

FOLDER = os.environ.get("MICA_CLIENTS_DIR")


def lack(what):
    if FOLDER:
        sys.exit(f"{what} is missing, though MICA_CLIENTS_DIR is set")
    print(f"skipped: {what} is missing (scripts/fetch-clients)", file=sys.stderr)
    sys.exit(77)


def need_modules(*names):
    """Goes on in the environment's Python. Call it before the test does anything."""
    if FOLDER and "MICA_CLIENTS_INSIDE" not in os.environ:
        python = os.path.join(FOLDER, "venv", "bin", "python3")
        if not os.access(python, os.X_OK):
            lack(python)
        os.execve(python, [python, "-B", *sys.argv], {**os.environ, "MICA_CLIENTS_INSIDE": "1"})
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as e:
            lack(f"the Python package of {name} ({e})")


def need_program(*names):
    """The path of the first of these programs that is there."""
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    return lack(names[0])


def need_npm():
    """The folder of the npm packages."""
    folder = os.path.join(FOLDER or "", "node_modules")
    return folder if FOLDER and os.path.isdir(os.path.join(folder, "openai")) else lack("the npm package openai")
