"""Runs a program under a seccomp profile in the form of container engines (share/mica/seccomp/serve.json), without such an engine.

    python3 tests/serve/sandbox.py [--kill] PROFILE PROGRAM [ARGUMENT...]

The profile becomes a BPF program for the kernel; --kill ends a process at a call that the profile does not allow, instead of the profile's error.
Numbers of calls are those of the system's headers. Understood is what the profile needs: actions allow and errno, and arguments compared with
SCMP_CMP_EQ and SCMP_CMP_MASKED_EQ; anything else is refused, not left out.
"""
import ctypes
import glob
import json
import os
import platform
import re
import struct
import sys

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SCMP_ARCH = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}
LD, AND, JEQ, JGE, RET = 0x20, 0x54, 0x15, 0x35, 0x06  # BPF: load a word, and, jump if equal, if not below, return
ALLOW, ERRNO, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER_MODE = 38, 22, 2
X32_BIT = 0x40000000


def numbers():
    """{name: number} of this machine's system calls; nothing where the headers are not installed."""
    paths = glob.glob(HEADERS[platform.machine()])
    if not paths:
        return {}
    with open(paths[0], encoding="utf-8") as f:
        text = f.read()
    found = {name: int(number) for name, number in re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", text, re.MULTILINE)}
    return {**found, **({"newfstatat": found["fstatat"]} if "fstatat" in found else {})}


def action(rule, profile):
    if rule["action"] == "SCMP_ACT_ALLOW":
        return ALLOW
    if rule["action"] == "SCMP_ACT_ERRNO":
        return ERRNO | rule.get("errnoRet", profile.get("defaultErrnoRet", 1))
    raise ValueError(f"the action {rule['action']} is not understood")


def compare(index, mask, value):
    """Goes on where the argument, masked, has this value; else leaves through the last place, which the caller fills in."""
    code = []
    for word, shift in ((0, 0), (1, 32)):  # both machines are little-endian
        low = mask >> shift & 0xFFFFFFFF
        code.append((LD, 0, 0, 16 + 8 * index + 4 * word))
        code.append((AND, 0, 0, low))
        code.append((JEQ, 0, "end", value >> shift & 0xFFFFFFFF))
    return code


def conditions(args):
    code = []
    for arg in args:
        if arg["op"] == "SCMP_CMP_EQ":
            code += compare(arg["index"], (1 << 64) - 1, arg["value"])
        elif arg["op"] == "SCMP_CMP_MASKED_EQ":  # value is the mask, valueTwo what the masked argument must be
            code += compare(arg["index"], arg["value"], arg.get("valueTwo", 0))
        else:
            raise ValueError(f"the comparison {arg['op']} is not understood")
    return code


def block(number, args, result):
    """The instructions of one rule for one call; jumps to "end" leave it behind them."""
    code = [(LD, 0, 0, 0), (JEQ, 0, "end", number), *conditions(args), (RET, 0, 0, result)]
    return [(op, jt, len(code) - at - 1 if jf == "end" else jf, k) for at, (op, jt, jf, k) in enumerate(code)]


def allowed_names(profile):
    return {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}


def compile_profile(profile, kill):
    machine = platform.machine()
    if SCMP_ARCH[machine] not in profile["architectures"]:
        raise ValueError(f"the profile is not for {machine}")
    if profile["defaultAction"] != "SCMP_ACT_ERRNO":
        raise ValueError("the default of a profile must be an error")
    default = KILL_PROCESS if kill else ERRNO | profile.get("defaultErrnoRet", 1)
    code = [(LD, 0, 0, 4), (JEQ, 1, 0, AUDIT_ARCH[machine]), (RET, 0, 0, KILL_PROCESS)]
    code += [(LD, 0, 0, 0), (JGE, 0, 1, X32_BIT), (RET, 0, 0, KILL_PROCESS)]
    known = numbers()
    for rule in profile["syscalls"]:
        for name in rule["names"]:
            if name in known:  # some calls exist on one machine only
                code += block(known[name], rule.get("args", []), action(rule, profile))
    return code + [(RET, 0, 0, default)]


def install(profile, kill):
    """For this process, what it executes, and its children; for good."""
    code = compile_profile(profile, kill)
    packed = b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
    data = ctypes.create_string_buffer(packed, len(packed))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
    program = Program(len(code), ctypes.addressof(data))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel does not take the filter")


def read_profile(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def main():
    arguments = sys.argv[1:]
    kill = arguments[0] == "--kill"
    path, program, *rest = arguments[1:] if kill else arguments
    install(read_profile(path), kill)
    os.execv(program, [program, *rest])


if __name__ == "__main__":
    main()
