"""Checks what the documents say about the tree: links and paths exist, the changelog knows the version, the example is short.

    python3 tests/docs.py ROOT VERSION
"""
import glob
import os
import re
import sys

EXAMPLE_LINES = 15
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
# A path of the tree in backticks. Words in capitals (NAME) and patterns (*) stand for something else.
PATH = re.compile(r"`((?:\./)?(?:bench|cmake|docs|include|programs|scripts|src|tests)/[A-Za-z0-9_./-]+)`")


def is_there(path):
    """Programs are named without the .c that they are built from."""
    return os.path.exists(path) or os.path.isfile(path + ".c")


def check_document(root, path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    name, errors = os.path.relpath(path, root), []
    for target in LINK.findall(text):
        if "://" not in target and not os.path.exists(os.path.join(os.path.dirname(path), target)):
            errors.append(f"{name}: the link {target} leads nowhere")
    for target in PATH.findall(text):
        if not re.search(r"[A-Z]{3}", target.replace("CMakeLists", "")) and not is_there(os.path.join(root, target)):
            errors.append(f"{name}: there is no {target}")
    return errors


def check_example(root):
    with open(os.path.join(root, "README.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```c\n(.*?)^```", f.read(), re.MULTILINE | re.DOTALL)
    lines = [line for line in "".join(blocks).splitlines() if line.strip()]
    if len(blocks) != 1 or not 0 < len(lines) <= EXAMPLE_LINES:
        return [f"README.md: {len(blocks)} blocks of C with {len(lines)} lines; one with at most {EXAMPLE_LINES} is wanted"]
    return []


def main():
    root, version = sys.argv[1:]
    documents = glob.glob(os.path.join(root, "*.md")) + glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True)
    errors = check_example(root)
    for path in sorted(documents):
        errors += check_document(root, path)
    with open(os.path.join(root, "CHANGELOG.md"), encoding="utf-8") as f:
        if not re.search(rf"^## {re.escape(version)}\b", f.read(), re.MULTILINE):
            errors.append(f"CHANGELOG.md has no chapter \"## {version}\"")
    for line in errors:
        print(line)
    print(f"{len(documents)} documents checked")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
