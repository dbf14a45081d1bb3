"""Where things are: adapters, their environments and their models. Only Python's standard library, 3.8 or later.

    $XDG_CACHE_HOME/mica/adapters/NAME/run/          the environment of the driver
    $XDG_CACHE_HOME/mica/adapters/NAME/convert/      the environment of the converter, where that is another one
    $XDG_CACHE_HOME/mica/adapters/NAME/models/       what convert made, and STEM.recipe.json beside it
    $XDG_CACHE_HOME/mica/adapters/common/            environments and Hugging Face folders that adapters share
"""
import hashlib
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def cache(name, *more):
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "mica", "adapters", name, *more)


def manifest(name):
    file = "environments.json" if name == "common" else "manifest.json"  # common is no adapter
    with open(os.path.join(ROOT, name, file), encoding="utf-8") as f:
        return json.load(f)


def python_of(name, environment):
    return os.path.join(cache(name, environment), "bin", "python")


def is_set_up(name, environment="run"):
    """True if the environment was finished for the lock files that the tree has now."""
    try:
        with open(cache(name, environment + ".json"), encoding="utf-8") as f:
            made_for = json.load(f)["locks_sha256"]
        return made_for == locks_digest(name, environment) and os.path.exists(python_of(name, environment))
    except (OSError, ValueError, KeyError):
        return False


def lock_files(name, environment):
    entry = manifest(name)["environments"][environment]
    return [os.path.join(ROOT, name, entry[key]) for key in ("build_lock", "lock") if key in entry]


def locks_digest(name, environment):
    """Of all that an environment is made from. What was built for one processor is not for another."""
    entry = manifest(name)["environments"][environment]
    paths = lock_files(name, environment) + [os.path.join(ROOT, name, file) for file in entry.get("built_with", [])]
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            digest.update(f.read())
    if "variables_from" in entry:
        digest.update(processor().encode())
    return digest.hexdigest()


def processor():
    """The features of this machine's processor, as Linux lists them."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            lines = [line for line in f if line.startswith(("flags", "Features"))]
    except OSError:
        lines = []
    return lines[0] if lines else ""


def enter(name, environment="run"):
    """Goes on in the adapter's own environment: replaces this process unless it runs there already. False: not set up."""
    if os.path.realpath(sys.prefix) == os.path.realpath(cache(name, environment)):
        return True
    if not is_set_up(name, environment):
        return False
    python = python_of(name, environment)
    variables = dict(os.environ, PYTHONNOUSERSITE="1", PYTHONDONTWRITEBYTECODE="1")
    variables.pop("PYTHONPATH", None)
    os.execve(python, [python, *sys.argv], variables)
    raise AssertionError("not reached")


def stem_of(path):
    name = os.path.basename(os.path.normpath(path))
    return name[:-5] if name.endswith(".gguf") else name


def size_of(path):
    """Bytes of a file, or of all files in a folder."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names
               if os.path.isfile(os.path.join(folder, name)) and not os.path.islink(os.path.join(folder, name)))


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
