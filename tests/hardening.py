"""Checks that built programs and libraries have what cmake/hardening.cmake asks for, as their ELF headers tell it.

    python3 tests/hardening.py --readelf READELF --cc CC --build-type TYPE --static libmica.a FILE...

First a program without any of it is made, which must fail every check: a check that finds nothing there finds nothing anywhere.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

BARE = """#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[64];
    strcpy(text, argv[argc - 1]);
    return puts(text) < 0;
}
"""
BARE_FLAGS = ["-O2", "-no-pie", "-fno-pie", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-Wl,-z,norelro", "-Wl,-z,lazy",
              "-Wl,-z,execstack", "-w"]
# Functions of which glibc has a checked form, and which so small a program as this uses.
FORTIFIED = ("__snprintf_chk", "__vsnprintf_chk", "__fprintf_chk", "__memcpy_chk", "__read_chk", "__printf_chk")


class Elf:
    """What readelf says of a file."""

    def __init__(self, readelf, path):
        def ask(*options):
            return subprocess.run([readelf, "--wide", *options, path], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
        self.header, self.segments, self.dynamic = ask("--file-header"), ask("--program-headers"), ask("--dynamic")
        self.symbols = ask("--dyn-syms")
        self.is_program = "INTERP" in self.segments

    def segment_flags(self, name):
        """"RW", "R E" ... of each segment of this kind."""
        rows = re.findall(rf"^ +{name} +(?:0x[0-9a-f]+ +){{5}}([RWE ]{{3}})", self.segments, re.MULTILINE)
        return [row.strip() for row in rows]

    def imports(self, name):
        return re.search(rf"UND {name}(@|$| )", self.symbols, re.MULTILINE) is not None


def position_independent(e):
    return "DYN (" in e.header and (not e.is_program or re.search(r"FLAGS_1.*\bPIE\b", e.dynamic) is not None)


def full_relro(e):
    now = re.search(r"FLAGS_1\).*\bNOW\b|\(FLAGS\).*\bBIND_NOW\b|\(BIND_NOW\)", e.dynamic)
    return bool(e.segment_flags("GNU_RELRO")) and now is not None


def stack_not_executable(e):
    return e.segment_flags("GNU_STACK") == ["RW"]


def nothing_written_and_executed(e):
    """No page is both, and the loader writes into no code."""
    loads = e.segment_flags("LOAD")
    return bool(loads) and not any("W" in f and "E" in f for f in loads + e.segment_flags("GNU_STACK")) and "TEXTREL" not in e.dynamic


def stack_protected(e):
    return e.imports("__stack_chk_fail")


def fortified(e):
    return any(e.imports(name) for name in FORTIFIED)


CHECKS = [(position_independent, "is not position independent"), (full_relro, "has no full RELRO (-z relro -z now)"),
          (stack_not_executable, "has an executable stack"),
          (nothing_written_and_executed, "has pages that are written and executed"), (stack_protected, "has no stack protector"),
          (fortified, "has no checked libc functions (_FORTIFY_SOURCE)")]


def check_bare(readelf, cc, folder):
    """Each check must fail for a program built without all of it."""
    source, program = os.path.join(folder, "bare.c"), os.path.join(folder, "bare")
    with open(source, "w", encoding="ascii") as f:
        f.write(BARE)
    subprocess.run([cc, *BARE_FLAGS, source, "-o", program], check=True)
    e = Elf(readelf, program)
    return [f"{check.__name__} finds nothing wrong with a program that was built without it" for check, _ in CHECKS if check(e)]


def check_control_flow(readelf, archive):
    """Each object of ours is fit for shadow stacks (x86: CET) or signed return addresses (arm64). The linker marks a program only if all it links is,
    the C library's own files among it, which those of Debian 12 for x86-64 are not: so the objects are asked."""
    said = subprocess.run([readelf, "--wide", "--notes", archive], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True).stdout
    members = re.split(r"^File: ", said, flags=re.MULTILINE)[1:]
    bare = [m.split("(")[-1].split(")")[0] for m in members if not re.search(r"x86 feature:.*SHSTK|AArch64 feature:.*PAC", m)]
    print(f"{len(members) - len(bare)} of {len(members)} objects are marked for control-flow protection")
    return [f"{name} is not marked for control-flow protection" for name in bare] if members else [f"{archive} has no objects"]


def main():
    parser = argparse.ArgumentParser()
    for name in ("readelf", "cc", "build-type", "static"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("files", nargs="+")
    a = parser.parse_args()
    checks = [row for row in CHECKS if row[0] is not fortified or a.build_type in ("Release", "MinSizeRel", "RelWithDebInfo")]
    with tempfile.TemporaryDirectory() as folder:
        errors = check_bare(a.readelf, a.cc, folder) + check_control_flow(a.readelf, a.static)
    for path in a.files:
        e = Elf(a.readelf, path)
        errors += [f"{os.path.basename(path)} {what}" for check, what in checks if not check(e)]
        print(f"{os.path.basename(path)}: {', '.join(check.__name__ for check, _ in checks if check(e))}")
    for line in errors:
        print(line)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
