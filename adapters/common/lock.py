"""Writes the lock file of an environment anew for the Python and the platform that run it.

    adapters/common/lock NAME [ENVIRONMENT]      all environments of the adapter, or one

pip resolves the manifest's `packages` (nothing is installed); every package it chose is written with its version and the
SHA-256 of its file. Packages named in `without` are left out: what another environment brings, and what is not needed on a CPU.
"""
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

import installer
import places


def resolve(packages, options):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run",
                   "--ignore-installed", "--report", report, *options, *packages]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
        if done.returncode != 0:
            raise installer.SetupError("pip found no set of packages that fit together")
        with open(report, encoding="utf-8") as f:
            return json.load(f)["install"]


def plain(name):
    """A package's name as all indexes spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lines_of(installs, without):
    pattern = re.compile("|".join(f"(?:{w})" for w in without) or r"(?!)")
    for item in sorted(installs, key=lambda i: plain(i["metadata"]["name"])):
        name, version = plain(item["metadata"]["name"]), item["metadata"]["version"]
        if pattern.fullmatch(name):
            continue
        digest = item["download_info"]["archive_info"]["hash"]
        if not digest.startswith("sha256="):
            raise installer.SetupError(f"the index gives no SHA-256 for {name}")
        yield f"{name}=={version} --hash={digest.replace('=', ':')}\n"


def write_lock(path, packages, options, without):
    lines = list(lines_of(resolve(packages, options), without))
    head = (f"# Made by adapters/common/lock for CPython {sys.version_info[0]}.{sys.version_info[1]}, {platform.system()} "
            f"{platform.machine()}. Do not edit.\n")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines([head, *lines])
    print(f"{os.path.relpath(path)}: {len(lines)} packages", file=sys.stderr)


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__)
    name = arguments[0]
    for environment, entry in places.manifest(name)["environments"].items():
        if arguments[1:] and environment != arguments[1]:
            continue
        folder = os.path.join(places.ROOT, name)
        if "build_lock" in entry:
            write_lock(os.path.join(folder, entry["build_lock"]), entry["build_packages"], [], [])
        write_lock(os.path.join(folder, entry["lock"]), entry["packages"], entry.get("resolve_options", []),
                   entry.get("without", []))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except installer.SetupError as error:
        sys.exit(f"lock: {error}")
