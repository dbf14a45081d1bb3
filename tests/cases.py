"""docs/cases.md against the tree: every case of tests/data/cases/ids.txt has a row, and every test that a row names is in its file.

    python3 tests/cases.py ROOT
"""
import os
import re
import sys

ROW = re.compile(r"^\| ([a-z]+-\d\d-[a-z0-9-]+) \| (.+?) \| (.+) \|$", re.MULTILINE)
FILE = re.compile(r"`([A-Za-z0-9_./-]+\.(?:c|py|kt))`: ((?:`\w+`(?:, )?)+)")
# How a test begins in C (a function, which is an error if nobody calls it, or one of a macro in the list at the end), Python, Kotlin.
BEGIN = {".c": r"^(?:static void {0}\(void \*\*|int {0}\(|.*cmocka_unit_test\({0}\))", ".py": r"def {0}\(", ".kt": r"fun {0}\("}


def check_row(root, name, tests):
    errors, files = [], FILE.findall(tests)
    if not files:
        errors.append(f"{name}: no test")
    for path, functions in files:
        try:
            with open(os.path.join(root, path), encoding="utf-8") as f:
                text = f.read()
        except OSError:
            errors.append(f"{name}: there is no {path}")
            continue
        for function in re.findall(r"`(\w+)`", functions):
            if not re.search(BEGIN[os.path.splitext(path)[1]].format(function), text, re.MULTILINE):
                errors.append(f"{name}: {path} has no test {function}")
    return errors


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "docs", "cases.md"), encoding="utf-8") as f:
        rows = ROW.findall(f.read())
    with open(os.path.join(root, "tests", "data", "cases", "ids.txt"), encoding="ascii") as f:
        ids = f.read().split()
    errors = [f"docs/cases.md has no row {i}" for i in ids if i not in [r[0] for r in rows]]
    errors += [f"docs/cases.md has a row {r[0]}, which is no case" for r in rows if r[0] not in ids]
    for name, _, tests in rows:
        errors += check_row(root, name, tests)
    for line in errors:
        print(line)
    print(f"{len(rows)} cases, {len(ids)} ids")
    sys.exit(1 if errors or not rows else 0)


if __name__ == "__main__":
    main()
