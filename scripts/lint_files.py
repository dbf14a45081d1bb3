"""Prints the C files of the tree that a build compiles, from its root, each once.

    lint_files.py COMPILE_COMMANDS
"""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def files_of(commands):
    with open(commands, encoding="utf-8") as f:
        paths = {os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT) for entry in json.load(f)}
    return sorted(path for path in paths if path.startswith(("src/", "programs/", "bindings/")))


if __name__ == "__main__":
    print("\n".join(files_of(sys.argv[1])))
