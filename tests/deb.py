"""Unpacks the Debian packages of scripts/build-deb into one folder, as an installation would lie, and tries them: the programs, their pages
and completions, the symbols that the library promises, and the example of README.md against the headers.

    python3 tests/deb.py --debs DIR --source DIR
"""
import argparse
import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile

from install import ANSWER, PROMPT, example_of, run


def deb_of(folder, package):
    found = glob.glob(os.path.join(folder, f"{package}_*.deb"))
    if len(found) != 1:
        sys.exit(f"{folder} has {len(found)} packages {package}")
    return found[0]


def check_programs(root, model, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MICA_")}
    environment.update(XDG_DATA_HOME=os.path.join(folder, "data"), XDG_CACHE_HOME=os.path.join(folder, "cache"))
    mica = os.path.join(root, "usr/bin/mica")
    said = subprocess.run([mica, "run", "-m", model, "-p", PROMPT, "--temp", "0"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True).stdout.decode().strip()
    if said != ANSWER:
        sys.exit(f"mica run said {said!r}, not {ANSWER!r}")
    if "classify" not in run(mica, "task", env=environment):
        sys.exit("mica task does not find its tasks")
    if "gpt-4o-mini" not in run(mica, "cost", "--watts", "4", "--tok-s", "30", "--json", env=environment):
        sys.exit("mica cost, which mica-ops does, does not find its prices")
    page = os.path.join(root, "usr/share/man/man1/mica.1.gz")
    with gzip.open(page, "rb") as f:
        same = f.read().decode() == run(mica, "help", "--man", env=environment)
    for shell, path in (("bash", "bash-completion/completions/mica"), ("zsh", "zsh/vendor-completions/_mica"),
                        ("fish", "fish/vendor_completions.d/mica.fish")):
        with open(os.path.join(root, "usr/share", path), encoding="utf-8") as f:
            same = same and f.read() == run(mica, "help", "--completion", "--shell", shell, env=environment)
    if not same:
        sys.exit("the manual page or a completion is not what the program says")


def check_symbols(deb, source, folder):
    control = os.path.join(folder, "control")
    run("dpkg-deb", "-e", deb, control)
    with open(os.path.join(control, "symbols"), encoding="ascii") as f:
        promised = re.findall(r"^ (\w+)@Base \d", f.read(), re.MULTILINE)
    with open(os.path.join(source, "tests/data/abi/symbols.txt"), encoding="ascii") as f:
        listed = f.read().split()
    if sorted(promised) != sorted(listed):
        sys.exit(f"the symbols file has {sorted(set(promised) ^ set(listed))} more or less than the list of the interface")


def check_example(root, source, model, folder):
    lib = os.path.dirname(glob.glob(os.path.join(root, "usr/lib/*/libmica.so"))[0])
    program, text = os.path.join(folder, "example"), os.path.join(folder, "example.c")
    with open(text, "w", encoding="utf-8") as f:
        f.write(example_of(os.path.join(source, "README.md")))
    flags = run("pkg-config", "--cflags", "--libs", "mica", env=dict(os.environ, PKG_CONFIG_PATH=os.path.join(lib, "pkgconfig"))).split()
    run("gcc", "-std=c11", text, "-o", program, *flags)
    said = run(program, model, PROMPT, env=dict(os.environ, LD_LIBRARY_PATH=lib)).strip()
    if said != ANSWER:
        sys.exit(f"the example said {said!r}, not {ANSWER!r}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("debs", "source"):
        parser.add_argument("--" + name, required=True)
    a = parser.parse_args()
    model = os.path.join(a.source, "tests/data/cases/_common/scripted.gguf")
    with tempfile.TemporaryDirectory(prefix="mica-deb-") as folder:
        root = os.path.join(folder, "root")
        for package in ("mica", "mica-ops", "libmica0", "libmica-dev"):
            run("dpkg-deb", "-x", deb_of(a.debs, package), root)
        check_programs(root, model, folder)
        check_symbols(deb_of(a.debs, "libmica0"), a.source, folder)
        check_example(root, a.source, model, folder)
    print("the packages work")


if __name__ == "__main__":
    main()
