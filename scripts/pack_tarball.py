"""Packs a program that needs nothing beside it, its data, pages and licences into mica-VERSION-linux-ARCH.tar.gz, and writes SHA256SUMS
over all such files of the folder. The same files give the same bytes, whatever their times, owners and modes.

    python3 scripts/pack_tarball.py --program FILE --arch ARCH --runs FILE --epoch SECONDS --out DIR [--licences DIR]

--runs is a program of the same commands that runs here, and writes the manual page and the completions; --licences a folder with those of
what is linked in.
"""
import argparse
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOC = "share/doc/mica"
NOTE = """mica for Linux, {arch}: one static program, for any distribution.

    bin/mica run -m MODEL.gguf -p "Hello"
    bin/mica help

The folder can lie anywhere. It has the everyday commands; not in it are those that need further libraries: serve, route, pull, models, and
what measures and makes files (mica-ops). A build from source has them all: {doc}/docs/building.md.
"""
COMPLETIONS = {"bash": "share/bash-completion/completions/mica", "zsh": "share/zsh/site-functions/_mica",
               "fish": "share/fish/vendor_completions.d/mica.fish"}


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        return re.search(r"^project\(mica VERSION (\S+)", f.read(), re.MULTILINE).group(1)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def tree(folder, at, ending=""):
    """(name in the archive, bytes) of the files below `folder`."""
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(ending):
                whole = os.path.join(path, name)
                yield os.path.join(at, os.path.relpath(whole, folder)), read(whole)


def says(program, *args):
    return subprocess.run([program, *args], stdout=subprocess.PIPE, check=True).stdout


def contents(a):
    yield "README.txt", NOTE.format(arch=a.arch, doc=DOC).encode()
    yield "bin/mica", read(a.program)
    yield from tree(os.path.join(ROOT, "share"), "share")
    yield from tree(os.path.join(ROOT, "tests", "data", "tasks"), "share/mica/tasks/eval", ".jsonl")
    yield "share/man/man1/mica.1", says(a.runs, "help", "--man")
    for shell, path in COMPLETIONS.items():
        yield path, says(a.runs, "help", "--completion", "--shell", shell)
    for name in ("README.md", "CHANGELOG.md", "LICENSE"):
        yield f"{DOC}/{name}", read(os.path.join(ROOT, name))
    yield from tree(os.path.join(ROOT, "docs"), f"{DOC}/docs", ".md")
    if a.licences:
        yield from tree(a.licences, f"{DOC}/licences")


def archive(name, files, epoch):
    """A tar file, gzipped: entries in order of their names, of root, at one time."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=epoch) as z:
        with tarfile.open(fileobj=z, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path, data in sorted(files):
                entry = tarfile.TarInfo(f"{name}/{path}")
                entry.size, entry.mtime = len(data), epoch
                entry.mode = 0o755 if path.startswith("bin/") else 0o644
                entry.uname = entry.gname = "root"
                tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def write_sums(folder):
    names = sorted(name for name in os.listdir(folder) if name.endswith(".tar.gz"))
    with open(os.path.join(folder, "SHA256SUMS"), "w", encoding="ascii") as f:
        f.writelines(f"{hashlib.sha256(read(os.path.join(folder, name))).hexdigest()}  {name}\n" for name in names)


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "arch", "runs", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--licences")
    a = parser.parse_args()
    if not 0 <= a.epoch < 1 << 32:
        sys.exit(f"pack_tarball: {a.epoch} is no time that gzip can note")
    name = f"mica-{version()}-linux-{a.arch}"
    packed = archive(name, contents(a), a.epoch)
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, name + ".tar.gz")
    with open(path, "wb") as f:
        f.write(packed)
    write_sums(a.out)
    print(path)


if __name__ == "__main__":
    main()
