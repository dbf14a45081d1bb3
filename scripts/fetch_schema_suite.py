"""Gets the official JSON-Schema-Test-Suite (draft 2020-12), which the Python package jsonschema has in its source archive.

    fetch-schema-suite      prints the folder that holds tests/, optional/ and format/; fetches them if need be

The data stay out of this repository. They go to $MICA_SCHEMA_SUITE_DIR, by default
${XDG_CACHE_HOME:-$HOME/.cache}/mica/schema-suite. The package is found through pip's own settings, as in fetch-suites.
"""
import argparse
import importlib.util
import os
import re
import shutil

from fetch_common import cache_dir, locked, make_folder, run

PACKAGE, VERSION = "jsonschema", "4.26.0"
ARCHIVE = "jsonschema-4.26.0.tar.gz"
ARCHIVE_BYTES = 366583
ARCHIVE_SHA256 = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"
UNPACKED_BYTES = 4 << 20
STAMP = ".complete"

ROOT = re.escape("jsonschema-4.26.0/json/tests/draft2020-12/")
# folder here -> members of the archive, of which the last path element is kept
MEMBERS = {
    "tests": re.compile(ROOT + r"([^/]+\.json)"),
    "optional": re.compile(ROOT + r"optional/([^/]+\.json)"),
    "format": re.compile(ROOT + r"optional/format/([^/]+\.json)"),
}
PINNED = ("PACKAGE", "VERSION", "ARCHIVE", "ARCHIVE_BYTES", "ARCHIVE_SHA256", "UNPACKED_BYTES", "MEMBERS")


def archive_fetcher():
    """fetch_suites.py again, as a module of its own with this archive's data: it downloads, checks and unpacks."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fetch_suites.py")
    spec = importlib.util.spec_from_file_location("fetch_schema_archive", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in PINNED:
        setattr(module, name, globals()[name])
    return module


def install(folder):
    fetcher = archive_fetcher()
    archive = fetcher.checked_archive(folder)
    staging = os.path.join(folder, ".partial")
    shutil.rmtree(staging, ignore_errors=True)
    fetcher.unpack(archive, staging)
    for name in MEMBERS:
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        os.rename(os.path.join(staging, name), os.path.join(folder, name))
    shutil.rmtree(staging)
    with open(os.path.join(folder, STAMP), "w", encoding="ascii") as f:
        f.write(ARCHIVE_SHA256 + "\n")
    os.remove(archive)


def is_installed(folder):
    try:
        with open(os.path.join(folder, STAMP), encoding="ascii") as f:
            return f.read().strip() == ARCHIVE_SHA256 and all(os.path.isdir(os.path.join(folder, name)) for name in MEMBERS)
    except OSError:
        return False


def main(arguments):
    parser = argparse.ArgumentParser(prog="fetch-schema-suite", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    folder = cache_dir("MICA_SCHEMA_SUITE_DIR", "schema-suite")
    if not is_installed(folder):
        make_folder(folder)
        with locked(folder):
            if not is_installed(folder):
                install(folder)
    print(folder)
    return 0


if __name__ == "__main__":
    run("fetch-schema-suite", main)
