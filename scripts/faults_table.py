"""The table of what scripts/test-faults tried, in Markdown.

    python3 scripts/faults_table.py REPORT LIBRARY

REPORT: a line of JSON for each sweep (tests/faults/faults.py); LIBRARY: the output of the test of the library's allocations."""
import collections
import json
import platform
import re
import sys

AREAS = {"memory": "an allocation or a thread refused", "calls": "a call of the system fails, is interrupted or short", "kills": "kill -9 at a change on the disk"}


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        found = re.search(r"model name\s*: (.*)", f.read())
    return found.group(1) if found else platform.machine()


def main():
    areas = collections.OrderedDict((a, [set(), 0, 0, 0]) for a in AREAS)
    with open(sys.argv[1], encoding="utf-8") as f:
        for line in f:
            sweep = json.loads(line)
            row = areas[sweep["area"]]
            row[0].add(sweep["subject"])
            row[1] += sweep["points"]
            row[2] += sweep["tried"]
            row[3] += sweep["errors"]
    with open(sys.argv[2], encoding="utf-8") as f:
        library = [(m.group(1), int(m.group(2))) for m in re.finditer(r"^faults: memory, library, (\S+): (\d+)$", f.read(), re.MULTILINE)]
    print(f"{cpu()}; scripts/test-faults\n")
    print("| fault | on | points | tried | of these, ended with an error |")
    print("|---|---|---|---|---|")
    total = sum(n for _, n in library)
    print(f"| an allocation or a thread refused, once and from there on all | the library, {len(library)} uses | {total} | {total} | |")
    for area, (subjects, points, tried, errors) in areas.items():
        print(f"| {AREAS[area]} | {len(subjects)} commands | {points} | {tried} | {errors} |")
    sys.exit(0 if library and all(row[2] for row in areas.values()) else 1)


if __name__ == "__main__":
    main()
