"""What fetch_models.py and fetch_suites.py share: the cache folder, checksums, the lock, errors of a full disk.

Only Python's standard library, 3.8 or later. Everything for people goes to stderr; stdout carries paths only.
"""
import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import sys

CHUNK = 1 << 20


class Failure(Exception):
    """One sentence for the person who ran the script."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def cache_dir(variable, name):
    """The folder named by the environment variable, else NAME in mica's part of the user's cache."""
    chosen = os.environ.get(variable)
    if chosen:
        return os.path.abspath(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "mica", name)


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(CHUNK), b""):
            digest.update(block)
    return digest.hexdigest()


def copy_stream(source, target):
    for block in iter(lambda: source.read(CHUNK), b""):
        target.write(block)


def make_folder(path):
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        raise Failure(f"cannot make the folder {path}: {e.strerror}") from e


def require_space(folder, needed):
    """Refuses before the download what would fail in the middle of it."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Failure(f"not enough space in {folder}: {needed >> 20} MiB needed, {free >> 20} MiB free")


@contextlib.contextmanager
def locked(folder):
    """One fetch at a time in a folder; a second one waits, and then finds the work done."""
    with open(os.path.join(folder, ".lock"), "w", encoding="ascii") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"waiting for another fetch into {folder}")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


def run(name, main):
    """Runs main(arguments) and turns failures into one line and exit status 1."""
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as e:
        say(f"{name}: {e}")
    except KeyboardInterrupt:
        say(f"{name}: interrupted; run it again to go on")
    except OSError as e:
        if e.errno == errno.ENOSPC:
            say(f"{name}: the disk is full; make room and run it again, finished parts are kept")
        else:
            say(f"{name}: {e.filename or ''}: {e.strerror or e}")
    sys.exit(1)
