"""Makes the two lists of this folder from a checkout of Android's C library (platform/bionic of the Android Open Source Project).

    python3 -B make_lists.py BIONIC_DIR COMMIT

syscalls-arm64.txt       the system calls that the seccomp filter of app processes lets through on arm64: libc/SYSCALLS.TXT and
                         SECCOMP_ALLOWLIST_{COMMON,APP}.TXT without SECCOMP_BLOCKLIST_{COMMON,APP}.TXT
symbols-api26-arm64.txt  what libc.so, libm.so and libdl.so of Android 8.0 (API level 26) export on arm64: their .map.txt files
"""
import os
import re
import sys

API = 26


def text(bionic, name):
    with open(os.path.join(bionic, name), encoding="utf-8") as f:
        return f.read()


def calls(content):
    """{(function, call): ...} of the lines that are for arm64; a line is FUNC[|ALIASES][:CALL[:ID]](PARAMETERS) ARCHITECTURES."""
    found = set()
    for line in content.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, arches = re.fullmatch(r"([^(]+)\(.*\)\s*(\S+)", line).groups()
        if {"all", "lp64", "arm64"} & set(arches.split(",")):
            function, *call = name.strip().split(":")
            found.add(call[0] if call else function.split("|")[0])
    return found


def syscalls(bionic):
    allowed, blocked = calls(text(bionic, "libc/SYSCALLS.TXT")), set()
    for who in ("COMMON", "APP"):
        allowed |= calls(text(bionic, f"libc/SECCOMP_ALLOWLIST_{who}.TXT"))
        blocked |= calls(text(bionic, f"libc/SECCOMP_BLOCKLIST_{who}.TXT"))
    return allowed - blocked


def is_there(tags):
    """Whether what has these tags is on arm64 at API level 26. A tag is an architecture, or introduced[-ARCHITECTURE]=LEVEL, or other."""
    arches = {"arm", "arm64", "x86", "x86_64", "riscv64"} & set(tags)
    levels = [int(t.split("=")[1]) for t in tags if re.fullmatch(r"introduced(-arm64)?=\d+", t)]
    return (not arches or "arm64" in arches) and all(level <= API for level in levels) and "apex" not in tags and "llndk" not in tags


def symbols(content):
    found, section = set(), False
    for line in content.splitlines():
        line, _, comment = (part.strip() for part in line.partition("#"))
        if line.endswith("{"):
            section = is_there(comment.split()) and not re.search("PRIVATE|PLATFORM|DEPRECATED", line)
        elif section and re.fullmatch(r"\w+;", line) and is_there(comment.split()):
            found.add(line[:-1])
    return found


def write(name, what, commit, entries):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# {what}. From platform/bionic of the Android Open Source Project,\n# commit {commit}, by make_lists.py.\n")
        f.writelines(entry + "\n" for entry in sorted(entries))


def main():
    bionic, commit = sys.argv[1:]
    write("syscalls-arm64.txt", "System calls that Android lets apps make on arm64", commit, syscalls(bionic))
    maps = ("libc/libc.map.txt", "libm/libm.map.txt", "libdl/libdl.map.txt")
    write(f"symbols-api{API}-arm64.txt", f"What Android's libc, libm and libdl export on arm64 at API level {API}", commit,
          set().union(*(symbols(text(bionic, m)) for m in maps)))


main()
