"""What a phone's loader asks of programs and libraries: case mob-02-16k-alignment, and no text relocations or executable stack.

    python3 tests/arm/test_elf.py --arch ARCH [--symbols LIST] FILE...

--symbols: a list of names; what the shared libraries among the FILEs need from elsewhere must be on it. Copies that were spoilt one
way each must be refused, so that the checks are known to look.
"""
import argparse
import struct
import sys

import elf

sys.dont_write_bytecode = True

# What the C library of the build calls by another name than Android's. The compiled code is otherwise the same.
NAMES = {"__errno_location": "__errno", "__xpg_strerror_r": "strerror_r"}


def spoilt(e):
    """(what, bytes) of copies that must not pass."""
    load = next(i for i, s in enumerate(e.segments) if s.type == elf.PT_LOAD)
    stack = next(i for i, s in enumerate(e.segments) if s.type == elf.PT_GNU_STACK)
    yield "aligned", patch(e.data, e.segment_at[load] + 48, "<Q", 0x1000)
    yield "stack", patch(e.data, e.segment_at[stack] + 4, "<I", 7)
    yield "written and executed", patch(e.data, e.segment_at[load] + 4, "<I", 7)
    if e.dynamic:
        yield "text relocations", patch(e.data, e.dynamic_at[0], "<Q", elf.DT_TEXTREL)


def patch(data, at, form, value):
    copy = bytearray(data)
    struct.pack_into(form, copy, at, value)
    return bytes(copy)


def check(path, arch, allowed):
    with open(path, "rb") as f:
        e = elf.Elf(f.read())
    found = elf.faults(e)
    if e.machine != arch:
        found.append(f"it is for {e.machine}, not {arch}")
    for what, data in spoilt(e):
        if not any(what in fault for fault in elf.faults(elf.Elf(data))):
            found.append(f"a copy that was spoilt ({what}) passes: the check does not look")
    missing = e.undefined()
    if allowed is not None and e.type == elf.ET_DYN and e.needed():
        found += [f"{name} is not in the C library of Android 8.0" for name in sorted({NAMES.get(n, n) for n in missing} - allowed)]
        if not {"malloc", "pthread_create"} <= missing:
            found.append("it needs no malloc or no pthread_create from elsewhere: this is no libmica.so")
    aligned = min((s.align for s in e.segments if s.type == elf.PT_LOAD), default=0)
    print(f"{path}: {e.machine}, segments aligned to {aligned >> 10} KiB, {len(missing)} undefined symbols, needs {e.needed()}")
    return [f"{path}: {fault}" for fault in found]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", required=True)
    parser.add_argument("--symbols")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    allowed = None
    if args.symbols:
        with open(args.symbols, encoding="ascii") as f:
            allowed = {line.strip() for line in f if not line.startswith("#")}
    found = [fault for path in args.files for fault in check(path, args.arch, allowed)]
    for fault in found:
        print(fault)
    sys.exit(1 if found else 0)


main()
