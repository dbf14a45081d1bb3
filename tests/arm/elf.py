"""Reads ELF files of 64-bit little-endian machines, as far as the tests need it: segments, the dynamic section, symbols."""
import collections
import struct

PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
PF_X, PF_W = 1, 2
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_TEXTREL, DT_FLAGS, DT_GNU_HASH = 1, 4, 5, 6, 22, 30, 0x6FFFFEF5
DF_TEXTREL = 4
ET_EXEC, ET_DYN = 2, 3
SHT_DYNSYM = 11
STB_WEAK = 2
MACHINES = {62: "x86_64", 183: "aarch64"}
PAGE_16K = 0x4000

Segment = collections.namedtuple("Segment", "type flags offset vaddr paddr filesz memsz align")
Section = collections.namedtuple("Section", "name type flags addr offset size link info align entsize")


class Elf:
    def __init__(self, data):
        self.data = data
        if data[:6] != b"\x7fELF\2\1":
            raise ValueError("no 64-bit little-endian ELF file")
        (self.type, self.machine, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, _) = \
            struct.unpack_from("<HHIQQQIHHHHHH", data, 16)
        self.machine = MACHINES.get(self.machine, str(self.machine))
        self.segments = [Segment(*struct.unpack_from("<IIQQQQQQ", data, phoff + i * phentsize)) for i in range(phnum)]
        self.segment_at = [phoff + i * phentsize for i in range(phnum)]
        self.sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * shentsize)) for i in range(shnum)]
        self.dynamic, self.dynamic_at = [], []
        for s in self.segments:
            for at in range(s.offset, s.offset + s.filesz, 16) if s.type == PT_DYNAMIC else ():
                self.dynamic.append(struct.unpack_from("<QQ", data, at))
                self.dynamic_at.append(at)
                if self.dynamic[-1][0] == 0:
                    break

    def tags(self, tag):
        return [value for t, value in self.dynamic if t == tag]

    def string(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode("ascii")

    def file_offset(self, address):
        for s in self.segments:
            if s.type == PT_LOAD and s.vaddr <= address < s.vaddr + s.filesz:
                return s.offset + address - s.vaddr
        raise ValueError(f"no segment holds {address:#x}")

    def needed(self):
        strings = self.file_offset(self.tags(DT_STRTAB)[0]) if self.tags(DT_STRTAB) else 0
        return [self.string(strings + at) for at in self.tags(DT_NEEDED)]

    def undefined(self):
        """Names that must come from elsewhere; those that may be missing (weak) are not among them."""
        names = set()
        for section in self.sections:
            if section.type != SHT_DYNSYM:
                continue
            strings = self.sections[section.link].offset
            for at in range(section.offset + 24, section.offset + section.size, 24):
                name, info, _, index = struct.unpack_from("<IBBH", self.data, at)
                if index == 0 and info >> 4 != STB_WEAK:
                    names.add(self.string(strings + name))
        return names


def faults(elf):
    """What keeps a phone from loading this file (case mob-02-16k-alignment), or makes it unsafe; one line each."""
    found = []
    loads = [s for s in elf.segments if s.type == PT_LOAD]
    for s in loads:
        if s.align % PAGE_16K or (s.vaddr - s.offset) % max(s.align, 1):
            found.append(f"the segment at {s.vaddr:#x} is aligned to {s.align:#x}: no multiple of {PAGE_16K:#x}")
        if s.flags & PF_W and s.flags & PF_X:
            found.append(f"the segment at {s.vaddr:#x} can be written and executed")
    # Two segments of different rights must not meet in one page of 16 KiB.
    for a, b in zip(loads, loads[1:]):
        if a.flags != b.flags and (a.vaddr + a.memsz - 1) // PAGE_16K == b.vaddr // PAGE_16K:
            found.append(f"the segments at {a.vaddr:#x} and {b.vaddr:#x} share a page of 16 KiB")
    if not loads:
        found.append("no segment is loaded")
    stack = [s for s in elf.segments if s.type == PT_GNU_STACK]
    if not stack or stack[0].flags & PF_X:
        found.append("the stack is executable")
    if elf.tags(DT_TEXTREL) or any(flags & DF_TEXTREL for flags in elf.tags(DT_FLAGS)):
        found.append("there are text relocations")
    if elf.type == ET_DYN and not elf.tags(DT_HASH) and not elf.tags(DT_GNU_HASH):
        found.append("there is no hash table of symbols")
    return found
