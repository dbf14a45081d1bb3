"""Builds mica with more and less in it (docs/building.md, "Less in it") and prints how large the files are, stripped.

    scripts/build-sizes [NAME...]      default: all of the table below

The builds are kept in build/sizes. tests/selective.py builds the smallest of them.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from size import stripped  # noqa: E402

ONE = ["-DMICA_ARCHS=llama", "-DMICA_TYPES=Q4_0"]
LIBRARY = ["-DMICA_PROGRAMS=OFF", "-DMICA_SERVER=OFF", "-DMICA_ROUTER=OFF", "-DMICA_PULL=OFF", "-DMICA_OPS=OFF", "-DMICA_JNI=OFF"]
BARE = ["-DMICA_CONSTRAINTS=OFF", "-DMICA_TEMPLATES=OFF", "-DMICA_HEADERS=mica.h"]
SMALL = ["-DCMAKE_BUILD_TYPE=MinSizeRel"]
# Name: what it is, options.
BUILDS = {
    "everything": ("everything", []),
    "everything-small": ("everything, for size", SMALL),
    "no-server": ("without the server, the router and what measures", ["-DMICA_SERVER=OFF", "-DMICA_ROUTER=OFF", "-DMICA_OPS=OFF"]),
    "one-type": ("one architecture, one format", ONE + LIBRARY),
    "one-type-small": ("the same, for size", ONE + LIBRARY + SMALL),
    "no-constraints-small": ("the same without constraints", ONE + LIBRARY + SMALL + BARE[:1]),
    "bare-small": ("the same without chat templates, and with what `mica.h` declares only", ONE + LIBRARY + SMALL + BARE),
    "bare-avx2-small": ("the same with the kernels for AVX2 only", ONE + LIBRARY + SMALL + BARE + ["-DMICA_KERNELS=avx2"]),
}
FILES = ["libmica.so", "bin/mica", "bin/mica-ops"]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stdout}")


def build(name, folder, *more, targets=()):
    """Builds in `folder`; `more` are further arguments of cmake."""
    options = BUILDS[name][1]
    kind = [] if any("CMAKE_BUILD_TYPE" in o for o in options) else ["-DCMAKE_BUILD_TYPE=Release"]
    run("cmake", "-S", ROOT, "-B", folder, "-DMICA_TESTS=OFF", *kind, *options, *more)
    run("cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1), *[part for t in targets for part in ("--target", t)])


def sizes(folder):
    with tempfile.TemporaryDirectory() as work:
        return {file: stripped(path, work) for file in FILES for path in [os.path.join(folder, file)] if os.path.exists(path)}


def main():
    names = sys.argv[1:] or list(BUILDS)
    unknown = [name for name in names if name not in BUILDS]
    if unknown:
        sys.exit(f"build-sizes: there is no build {unknown[0]}; there are {', '.join(BUILDS)}")
    print("| build | options | `libmica.so` | `mica` | `mica-ops` |\n|---|---|---|---|---|")
    for name in names:
        folder = os.path.join(ROOT, "build", "sizes", name)
        build(name, folder, "-G", "Ninja")
        found = sizes(folder)
        shown = [o for o in BUILDS[name][1] if o not in LIBRARY]
        cells = [f"{found[file]:,}" if file in found else "" for file in FILES]
        print(f"| {BUILDS[name][0]} | {' '.join(f'`{o}`' for o in shown)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
