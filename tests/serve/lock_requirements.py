"""Makes requirements.txt of requirements.in: exact versions, and the hashes of the wheels for Linux.

    python3 tests/serve/lock_requirements.py [--upgrade] [FOLDER]       FOLDER: another one that has such files, as tests/python

Needs uv (pip install uv) and Python 3.11 or later. Versions stay as they are unless --upgrade is given or requirements.in wants
others. Packages that have no wheel are refused: nothing is built where the tests run.
"""
import os
import re
import subprocess
import sys
import tempfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
# lm-eval's data sets, metrics and tables: half a gigabyte, and three packages without wheels. Its client imports none of them.
LEFT_OUT = ["datasets", "dill", "evaluate", "more-itertools", "pytablewriter", "rouge-score", "sacrebleu", "scikit-learn", "sqlitedict",
            "word2number"]
# lm-eval takes these for granted, as parts of what is left out.
ADDED = ["pyyaml"]
OLDEST = 11  # versions of Python 3: Debian 12's, and those after it whose wheels are there
NEWEST = 13


def resolve(source, lock, upgrade):
    """The lock as uv writes it, with every file of every package."""
    added, without = (ADDED, LEFT_OUT) if source == HERE else ([], [])
    with tempfile.TemporaryDirectory() as folder:
        def write(name, lines):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            return path
        wanted, left_out = write("added.in", added), write("left-out.txt", [f"{n}; python_version < '0'" for n in without])
        kept = [] if upgrade or not os.path.exists(lock) else ["--constraint", lock]
        target = os.path.join(folder, "pylock.toml")
        subprocess.run(["uv", "pip", "compile", "--quiet", "--no-config", "--universal", "--python-version", f"3.{OLDEST}",
                        "--only-binary", ":all:", "--format", "pylock.toml", "--override", left_out, *kept, "-o", target,
                        os.path.join(source, "requirements.in"), wanted], check=True)
        with open(target, "rb") as f:
            return tomllib.load(f)["packages"]


def fits(name):
    """Whether a wheel of this name can be installed by one of the Pythons on 64-bit Linux, x86 or ARM."""
    python, abi, platform = name[:-len(".whl")].split("-")[-3:]
    versions = [re.fullmatch(r"(?:cp|py)3(\d*)", p) for p in python.split(".")]
    numbers = [int(v[1] or 0) for v in versions if v]
    good = any(OLDEST <= n <= NEWEST or (n < OLDEST and abi in ("abi3", "none")) for n in numbers) and abi[-1] != "t"
    return good and (platform == "any" or re.search(r"manylinux\S*_(x86_64|aarch64)$", platform) is not None)


def main():
    folders = [a for a in sys.argv[1:] if a != "--upgrade"]
    source = os.path.abspath(folders[0]) if folders else HERE
    lock = os.path.join(source, "requirements.txt")
    lines = [f"# Made by lock_requirements.py for Python 3.{OLDEST} to 3.{NEWEST}; installed by scripts/"
             f"{'fetch-clients' if source == HERE else 'fetch-python'}."]
    for package in resolve(source, lock, "--upgrade" in sys.argv[1:]):
        if re.search("sys_platform == '(?!linux)", package.get("marker", "")):
            continue
        wheels = [w for w in package.get("wheels", []) if fits(w.get("name") or w["url"].rsplit("/", 1)[1])]
        if not wheels:
            sys.exit(f"{package['name']} {package['version']} has no wheel for these versions of Python on Linux")
        hashes = sorted({w["hashes"]["sha256"] for w in wheels})
        lines.append(" \\\n".join([f"{package['name']}=={package['version']}"] + [f"    --hash=sha256:{h}" for h in hashes]))
    with open(lock, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print(f"{lock}: {len(lines) - 1} packages")


if __name__ == "__main__":
    main()
