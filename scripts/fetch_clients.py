"""Gets the OpenAI clients that drive the server in its tests: a virtual environment of Python packages, and npm packages.

    fetch-clients       prints the folder that holds venv/ and node_modules/; makes it if need be

What is installed, by version and checksum: tests/serve/requirements.txt and tests/serve/npm/package-lock.json. The folder is
$MICA_CLIENTS_DIR, by default one in ${XDG_CACHE_HOME:-$HOME/.cache}/mica/clients whose name is the state of these files, so it is
made once for each. Nothing is built or run by an installation: wheels only, no scripts of npm packages.
"""
import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys

from fetch_common import Failure, cache_dir, locked, make_folder, require_space, run, say
from fetch_models import explain_pip

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "serve")
REQUIREMENTS = "requirements.txt"
NPM_FILES = ("package.json", "package-lock.json", ".npmrc")
STAMP = ".complete"
SPACE = 1 << 30  # twice what lies there in the end: pip unpacks beside the wheels


def state(source=SOURCE):
    """What the folder depends on: the locks, and the Python whose packages they are."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {platform.machine()}".encode())
    for name in (REQUIREMENTS, *(os.path.join("npm", n) for n in NPM_FILES)):
        with open(os.path.join(source, name), "rb") as f:
            digest.update(f.read())
    return digest.hexdigest()[:16]


def python_of(folder):
    return os.path.join(folder, "venv", "bin", "python3")


def is_complete(folder, wanted):
    """The stamp is right, and the Python that the environment points to has not been removed since."""
    try:
        with open(os.path.join(folder, STAMP), encoding="ascii") as f:
            return f.read() == wanted and os.access(python_of(folder), os.X_OK)
    except OSError:
        return False


def call(command, folder, explain):
    """pip's and npm's temporary files lie in the same folder, so one file system needs the room."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False, cwd=folder,
                          env=dict(os.environ, TMPDIR=folder))
    if done.returncode != 0:
        raise Failure(explain(done.stdout.decode("utf-8", "replace")))


def tail_of(output):
    return "\n  ".join(output.strip().splitlines()[-4:])


def install_python(source, folder):
    """The pip of this Python fills the environment, which needs none of its own."""
    lock = os.path.join(source, REQUIREMENTS)
    call([sys.executable, "-m", "venv", "--without-pip", "venv"], folder, lambda o: f"python3 -m venv failed:\n  {tail_of(o)}")
    call([sys.executable, "-m", "pip", "--python", python_of(folder), "install", "--quiet", "--no-deps", "--require-hashes",
          "--only-binary", ":all:", "--no-cache-dir", "--disable-pip-version-check", "--no-warn-script-location", "--retries", "2",
          "--requirement", lock], folder, lambda o: explain_pip("the packages of " + lock, o))


def install_npm(source, folder):
    npm = shutil.which("npm")
    if not npm:
        raise Failure("npm is missing; install it (Debian and Ubuntu: apt install nodejs npm)")
    for name in NPM_FILES:
        shutil.copy(os.path.join(source, "npm", name), folder)
    call([npm, "ci", "--silent", "--no-progress"], folder,
         lambda o: f"npm could not install what {os.path.join(source, 'npm', 'package-lock.json')} names; check the network and "
                   f"npm's settings (npm config list)\n  {tail_of(o)}")


def install_once(folder, wanted, space, what, parts, steps):
    """Fills the folder by `steps` unless it is complete in the state `wanted`; `parts` are its folders, which are made anew."""
    if is_complete(folder, wanted):
        return
    make_folder(folder)
    with locked(folder):
        if is_complete(folder, wanted):
            return
        require_space(folder, space)
        say(f"installing {what} in {folder}")
        for name in parts:  # of an older state, or cut off
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        for step in steps:
            step()
        with open(os.path.join(folder, STAMP), "w", encoding="ascii") as f:
            f.write(wanted)


def install(folder, source=SOURCE):
    install_once(folder, state(source), SPACE, "OpenAI clients", ("venv", "node_modules"),
                 (lambda: install_python(source, folder), lambda: install_npm(source, folder)))


def main(arguments):
    parser = argparse.ArgumentParser(prog="fetch-clients", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    folder = cache_dir("MICA_CLIENTS_DIR", os.path.join("clients", state()))
    install(folder)
    print(folder)
    return 0


if __name__ == "__main__":
    run("fetch-clients", main)
