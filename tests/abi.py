"""Checks the built libraries: what libmica.so exports, and that the library keeps no state of its own.

    python3 tests/abi.py --nm NM --readelf READELF --shared libmica.so --static libmica.a --symbols FILE [--update]

--symbols names the list under version control: one exported symbol a line, sorted. A change of it is a change of the interface
and belongs in CHANGELOG.md; --update writes it anew.
"""
import argparse
import re
import subprocess
import sys

SONAME = "libmica.so.0"
# Sections whose contents a program may change. .data.rel.ro is constant once the loader has put addresses into it.
MUTABLE = re.compile(r"^\.(data(?!\.rel\.ro)|bss|tdata|tbss|ldata|lbss|sdata|sbss)|^\*COM\*$|^COMMON$")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def exported(nm, library):
    lines = output(nm, "--dynamic", "--defined-only", "--format=posix", library).splitlines()
    return sorted(line.split()[0] for line in lines if line.split()[1] != "A")


def check_symbols(nm, library, listed_in):
    found = exported(nm, library)
    with open(listed_in, encoding="ascii") as f:
        listed = f.read().split()
    errors = [f"{name} is exported but not in {listed_in}" for name in found if name not in listed]
    errors += [f"{name} is in {listed_in} but not exported" for name in listed if name not in found]
    errors += [f"{name} is exported and does not begin with mica_" for name in found if not name.startswith("mica_")]
    print(f"{len(found)} symbols exported")
    return errors


def check_soname(readelf, library):
    names = re.findall(r"SONAME.*\[(.*)\]", output(readelf, "--dynamic", "--wide", library))
    return [] if names == [SONAME] else [f"the soname is {names}, not {SONAME}"]


def check_globals(nm, archive):
    """Lines of nm's sysv format: name|value|class|type|size|line|section; files begin with "Symbols from"."""
    errors, count, member = [], 0, "?"
    for line in output(nm, "--defined-only", "--format=sysv", archive).splitlines():
        fields = [field.strip() for field in line.split("|")]
        named = re.search(r"([^/\[\] ]+\.o)\]?:$", line)
        if named:
            member = named.group(1)
        if len(fields) != 7 or fields[0] in ("", "Name"):
            continue
        count += 1
        if MUTABLE.match(fields[6]):
            errors.append(f"{member}: {fields[0]} can be changed (section {fields[6]}); the library has no global state")
    print(f"{count} symbols of the static library looked at")
    return errors if count else ["nm said nothing about the static library"]


def main():
    parser = argparse.ArgumentParser()
    for name in ("nm", "readelf", "shared", "static", "symbols"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--update", action="store_true")
    a = parser.parse_args()
    if a.update:
        with open(a.symbols, "w", encoding="ascii") as f:
            f.writelines(name + "\n" for name in exported(a.nm, a.shared))
    errors = check_symbols(a.nm, a.shared, a.symbols) + check_soname(a.readelf, a.shared) + check_globals(a.nm, a.static)
    for line in errors:
        print(line)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
