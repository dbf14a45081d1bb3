"""What gcc's counters of a build say, as a table by folder: coverage_table.py ROOT BUILD. See scripts/coverage."""
import json
import os
import subprocess
import sys

PROGRAMS_ONLY = ("serve", "bench", "router", "pull", "convert")  # libraries beside the engine
AT_ONCE = 50


def counts_of(build):
    """{path: {line: times}} of all files that were compiled; a file or line that several programs have counts once."""
    notes = sorted(os.path.join(folder, f) for folder, _, files in os.walk(build) for f in files if f.endswith(".gcno"))
    found = {}
    for i in range(0, len(notes), AT_ONCE):
        done = subprocess.run(["gcov", "--json-format", "--stdout", *notes[i:i + AT_ONCE]], cwd=build, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in done.stdout.splitlines():
            for file in json.loads(line)["files"] if line.startswith(b"{") else ():
                lines = found.setdefault(file["file"], {})
                for entry in file["lines"]:
                    lines[entry["line_number"]] = lines.get(entry["line_number"], 0) + entry["count"]
    return found


def share(lines):
    return f"{100 * sum(n > 0 for n in lines) / max(1, len(lines)):5.1f} % of {len(lines)}"


def main():
    root, build = (os.path.realpath(p) for p in sys.argv[1:])
    folders, missed = {}, []
    for path, lines in sorted(counts_of(build).items()):
        name = os.path.relpath(os.path.realpath(os.path.join(build, path)), root)
        if not name.startswith("src" + os.sep):
            continue
        folders.setdefault(name.split(os.sep)[1], []).extend(lines.values())
        missed += [f"{name}:{n}" for n, times in sorted(lines.items()) if not times]
    with open(os.path.join(build, "missed.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(missed) + "\n")
    for name, lines in sorted(folders.items()):
        print(f"src/{name:12} {share(lines)} lines")
    engine = [n for name, lines in folders.items() if name not in PROGRAMS_ONLY for n in lines]
    print(f"the engine       {share(engine)} lines\nall of src/      {share([n for lines in folders.values() for n in lines])} lines")
    if not folders:
        sys.exit("nothing was counted: is it a build of the coverage preset?")


if __name__ == "__main__":
    main()
