"""Runs clang-tidy or gcc's analyzer over files of a build and prints what they find, but for what the list of known mistakes has.

    lint_compilers.py tidy|analyzer [--jobs N] COMPILE_COMMANDS KNOWN [FILE...]

KNOWN has a line for each mistake of a tool: FILE CHECK, then the reason. A line of this tool that no finding meets any more is reported, too, when
all files are looked at.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

from lint_files import ROOT, files_of

FINDING = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?:warning|error): (?P<what>.*) \[(?:-W(?:error=)?)?(?P<check>[\w.-]+)[^\]]*\]$")
STATUS = ["-include", os.path.join(ROOT, "scripts", "lint-status.h")]
OF_ANALYZER = "analyzer-"  # gcc's checks begin so


def read_known(path):
    """{(file, check): reason}"""
    known = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split(None, 2)
            if words and not line.startswith("#"):
                known[tuple(words[:2])] = words[2].strip()
    return known


def commands_of(path):
    """{file: (folder, compiler's command without its output)}"""
    with open(path, encoding="utf-8") as f:
        entries = json.load(f)
    found = {}
    for entry in entries:
        words = shlex.split(entry["command"])
        words = words[1:] if "ccache" in os.path.basename(words[0]) else words
        out = words.index("-o")
        found[os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)] = (entry["directory"], words[:out] + words[out + 2:])
    return found


def analyzer(path, command, _):
    # Without optimisation: with it gcc takes calls away before its analyzer sees them, free() twice among them.
    return [*command, *STATUS, "-O0", "-U_FORTIFY_SOURCE", "-fanalyzer", "-Wno-error", "-fdiagnostics-plain-output", "-fdiagnostics-path-format=none", "-o", os.devnull]


def tidy(path, _, build):
    extra = [f"--extra-arg={word}" for word in [*STATUS, "-Wno-error", "-Wno-unused-value"]]
    return ["clang-tidy", "-p", build, "--quiet", *extra, os.path.join(ROOT, path)]


def findings(tool, path, command, build):
    """[(file, check, line, what)] of one file."""
    directory, words = command
    env = dict(os.environ, LC_ALL="C")
    done = subprocess.run(tool(path, words, build), cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          env=env, check=False)
    found = set()
    for line in (done.stdout + done.stderr).splitlines():
        m = FINDING.match(line)
        if m and (tool is tidy or m["check"].startswith(OF_ANALYZER)):
            found.add((os.path.relpath(os.path.join(directory, m["file"]), ROOT), m["check"], int(m["line"]), m["what"]))
    if done.returncode and not found:
        found.add((path, "failed", 0, done.stderr.strip()[-400:]))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", choices=["tidy", "analyzer"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("commands")
    parser.add_argument("known")
    parser.add_argument("files", nargs="*")
    a = parser.parse_args()
    tool = {"tidy": tidy, "analyzer": analyzer}[a.tool]
    commands, known = commands_of(a.commands), read_known(a.known)
    everything = files_of(a.commands)
    # error.c is what lint-status.h stands for.
    files = [path for path in a.files or everything if path != "src/base/error.c"]
    build, found = os.path.dirname(os.path.abspath(a.commands)), set()
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for some in pool.map(lambda path: findings(tool, path, commands[path], build), files):
            found |= some
    bad = sorted(row for row in found if row[:2] not in known)
    for path, check, line, what in bad:
        print(f"{path}:{line}: {what} [{check}]")
    met = {row[:2] for row in found}
    ours = {row for row in known if row[1].startswith(OF_ANALYZER) == (tool is analyzer)}
    stale = sorted(ours - met) if len(files) >= len(everything) - 1 else []
    for row in stale:
        print(f"{a.known}: nothing is found any more for {' '.join(row)}")
    print(f"{len(files)} files, {len(bad)} findings, {len(met & ours)} known mistakes of the tool", file=sys.stderr)
    sys.exit(1 if bad or stale else 0)


if __name__ == "__main__":
    main()
