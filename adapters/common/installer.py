"""Makes the environments of an adapter: a virtual environment, and packages from a lock file with hashes.

    adapters/NAME/setup [run | convert | all]      default: run, what the driver needs
    adapters/NAME/setup --force ...                from nothing, though it is there
    adapters/NAME/setup --where ...                prints the folder, makes nothing; status 1 if it is not set up

Nothing is installed outside the cache folder, and no package whose SHA-256 is not in the tree. ENVIRONMENT.json beside each
environment says what was installed, how large it is, and how long it took. Only Python's standard library, 3.8 or later.
"""
import argparse
import contextlib
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import time

import places

BASE = "common"  # environments that adapters share: `source` (GGUF files) and `torch`


class SetupError(Exception):
    """One sentence for the person who ran the script."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def require_platform(entry, name):
    """Lock files hold the hashes of one platform's packages."""
    wanted = entry.get("platform")
    here = {"system": platform.system(), "machine": platform.machine(), "python": "%d.%d" % sys.version_info[:2]}
    for key, value in (wanted or {}).items():
        if here[key] != value:
            raise SetupError(f"the lock file of {name} is for {key} {value}, this is {here[key]}: "
                             f"make another one with adapters/common/lock {name}")


@contextlib.contextmanager
def locked(folder):
    """One setup at a time in a folder; a second one waits, and then finds the work done."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def run(command, log, variables=None):
    """Runs a command with its output in a log file, whose end becomes the message if it fails."""
    with open(log, "ab") as out:
        out.write((" ".join(command) + "\n").encode())
        out.flush()
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
                              env=dict(os.environ, **(variables or {})))
    if done.returncode != 0:
        with open(log, encoding="utf-8", errors="replace") as f:
            tail = "\n  ".join(f.read().strip().splitlines()[-6:])
        raise SetupError(f"{os.path.basename(command[0])} failed (all of its output is in {log}):\n  {tail}")


def variables_of(name, entry):
    """Environment variables for building packages, which may depend on the machine."""
    if "variables_from" not in entry:
        return {}
    done = subprocess.run([sys.executable, "-B", os.path.join(places.ROOT, name, entry["variables_from"])],
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def pip_install(python, lock, log, variables=None, more=()):
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps", "--require-hashes",
               "--requirement", lock, *more]
    run(command, log, {"PYTHONNOUSERSITE": "1", **(variables or {})})


def link_base(name, environment, base):
    """Packages of a shared environment become visible in this one, behind its own."""
    with open(os.path.join(site_packages(places.cache(name, environment)), f"{base}.pth"), "w", encoding="utf-8") as f:
        f.write(site_packages(places.cache(BASE, base)) + "\n")


def site_packages(prefix):
    return os.path.join(prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")


def install(name, environment, entry, log):
    prefix, locks = places.cache(name, environment), places.lock_files(name, environment)
    run([sys.executable, "-m", "venv", prefix], log)
    python = places.python_of(name, environment)
    more = []
    if "build_lock" in entry:  # what builds the package is pinned too, so pip may not fetch its own
        pip_install(python, locks[0], log)
        more = ["--no-build-isolation"]
    if "variables_from" in entry:
        more = [*more, "--no-cache-dir"]  # pip would take what it once built with other variables
    pip_install(python, locks[-1], log, variables_of(name, entry), more)
    if "base" in entry:
        link_base(name, environment, entry["base"])
    if "after" in entry:
        run([python, "-B", os.path.join(places.ROOT, name, entry["after"]), site_packages(prefix)], log)
    run([python, "-c", entry["check"]], log)


def versions(lock):
    with open(lock, encoding="utf-8") as f:
        return dict(line.split()[0].split("==") for line in f if "==" in line and not line.startswith(("#", " ")))


def set_up(name, environment, force=False):
    """Makes an environment unless it is there; -> what its JSON file says."""
    entry = places.manifest(name)["environments"].get(environment)
    if entry is None:
        raise SetupError(f"{name} has no environment \"{environment}\"")
    record = places.cache(name, environment + ".json")
    if "base" in entry:
        set_up(BASE, entry["base"])
    with locked(places.cache(name)):
        if force or not places.is_set_up(name, environment):
            require_platform(entry, name)
            remake(name, environment, entry, record)
    with open(record, encoding="utf-8") as f:
        return json.load(f)


def remake(name, environment, entry, record):
    prefix, log = places.cache(name, environment), places.cache(name, environment + ".log")
    say(f"setup: installing {name}/{environment}")
    with contextlib.suppress(FileNotFoundError):
        os.remove(record)
    shutil.rmtree(prefix, ignore_errors=True)
    with open(log, "wb"):
        pass
    start, cpu = time.monotonic(), os.times()
    install(name, environment, entry, log)
    seconds, after = time.monotonic() - start, os.times()
    facts = {"locks_sha256": places.locks_digest(name, environment), "seconds": round(seconds, 1),
             "cpu_seconds": round(after.children_user + after.children_system - cpu.children_user - cpu.children_system, 1),
             "bytes": places.size_of(prefix), "python": platform.python_version(),
             "packages": versions(places.lock_files(name, environment)[-1])}
    with open(record + ".new", "w", encoding="utf-8") as f:
        json.dump(facts, f, indent=1)
    os.replace(record + ".new", record)
    say(f"setup: {name}/{environment}: {facts['bytes'] / 1e6:.0f} MB in {seconds:.0f} s")


def main(name):
    parser = argparse.ArgumentParser(prog=f"adapters/{name}/setup", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="run", help="run, convert or all")
    parser.add_argument("--force", action="store_true", help="from nothing")
    parser.add_argument("--where", action="store_true", help="print the folder only")
    options = parser.parse_args()
    environments = list(places.manifest(name)["environments"])
    chosen = environments if options.what == "all" else [options.what] if options.what in environments else []
    if options.what == "run" and not environments:
        say(f"setup: {name} needs nothing but Python")
        return 0
    try:
        if not chosen and options.what != "all":
            raise SetupError(f"{name} has no environment \"{options.what}\"; it has {', '.join(environments) or 'none'}")
        status = 0
        for environment in chosen:
            if options.where:
                status |= not places.is_set_up(name, environment)
            else:
                set_up(name, environment, options.force)
            print(places.cache(name, environment))
        return status
    except SetupError as e:
        say(f"setup: {e}")
        return 1
