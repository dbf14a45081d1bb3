"""Which system calls the program makes, against the filter that Android puts before apps; a call outside it kills the process.

    python3 tests/arm/test_syscalls.py --mica FILE [--model FILE]

FILE is mica for 64-bit ARM, static on musl (scripts/build-musl aarch64); it runs under qemu, which writes down its calls. The list is
tests/data/android/syscalls-arm64.txt. --model: a file of at least 8 MiB, of which huge pages are asked for.
"""
import argparse
import os
import re
import tempfile

from emulator import DATA, TINY, fail, qemu, run

# Without these the trace is not that of a program that mapped a model, started threads and answered.
MUST_SEE = {"openat", "mmap", "read", "clone", "futex", "madvise", "exit_group"}
NEVER = {"io_uring_setup", "openat2", "mbind", "set_mempolicy", "rseq", "set_robust_list"}


def allowed_calls():
    with open(os.path.join(DATA, "android", "syscalls-arm64.txt"), encoding="ascii") as f:
        allowed = {line.strip() for line in f if not line.startswith("#")}
    if not 150 < len(allowed) < 400 or allowed & NEVER:
        fail("syscalls-arm64.txt is no list of what the filter allows")
    return allowed


def calls(trace):
    """Names in a trace; a call that qemu has no name for is there by its number. Calls of two threads may share a line."""
    found = set(re.findall(r"^\d+ (\w+)\(", trace, re.M)) | set(re.findall(r"= \?.*?\b\d+ (\w+)\(", trace))
    return found | {f"number {n}" for n in re.findall(r"Unknown syscall (\d+)", trace)}


def check_reader(allowed):
    sample = "7 openat(AT_FDCWD,\"x\",O_RDONLY) = 3\n7 set_robust_list(1,2) = 0\n8 Unknown syscall 293\n"
    if calls(sample) - allowed != {"set_robust_list", "number 293"}:
        fail(f"of the sample trace, {sorted(calls(sample) - allowed)} are outside the filter: the check does not look")


def trace(mica, folder, words):
    log = os.path.join(folder, "trace")
    code, out, err = run([qemu(), "-strace", "-D", log, mica, *words])
    if code:
        fail(f"mica {' '.join(words)}: exit status {code}\n{out}{err}")
    with open(log, encoding="utf-8", errors="replace") as f:
        return calls(f.read())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mica", required=True)
    parser.add_argument("--model", default=TINY)
    args = parser.parse_args()
    allowed = allowed_calls()
    check_reader(allowed)
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        session, receipt = os.path.join(folder, "session"), os.path.join(folder, "receipt")
        reply = ["run", "-m", args.model, "--no-chat", "-p", "hello", "-n", "3", "-t", "2", "--ignore-eos"]
        for words in (["--version"], ["inspect", args.model], [*reply, "--save-session", session, "--receipt", receipt],
                      [*reply, "--load-session", session], ["tokenize", "-m", args.model, "-p", "hello"]):
            seen |= trace(args.mica, folder, words)
    if not MUST_SEE <= seen:
        fail(f"the traces lack {sorted(MUST_SEE - seen)}; seen: {sorted(seen)}")
    if seen - allowed:
        fail(f"outside the filter of Android's apps: {sorted(seen - allowed)}")
    print(f"{len(seen)} system calls, all within the filter of Android's apps: {' '.join(sorted(seen))}")


main()
