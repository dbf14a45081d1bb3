"""Runs the kernel test, and whole models, on processors that are not at hand: which instructions a machine has must not
change a result.

    python3 tests/emulated.py arm64 --source DIR --work DIR
    python3 tests/emulated.py avx512 --source DIR --work DIR --cc CC
    python3 tests/emulated.py old_x86 --source DIR --work DIR --cc CC --test test_kernels --mica mica
    python3 tests/emulated.py logits_arm64 --source DIR --work DIR --logits logits
    python3 tests/emulated.py logits_old_x86 --source DIR --work DIR --logits logits

arm64    builds the kernels with the cross compiler, in one command without any -m flag, and runs them under qemu on cores with
         NEON alone, with dotprod, with dotprod and i8mm, and with wide vector registers
avx512   builds the AVX-VNNI, AVX-512 and AMX kernels over SIMDe, which spells them in AVX2 (and tiles of our own, in C), and runs them on this machine
old_x86  runs the program and the kernel test of this build under qemu on a processor without AVX and on one with AVX2 but
         without AVX-512: no instruction may be met that the processor lacks
logits_* compares the hashes of all logits of the tiny models in tests/data and of a random model of each weight type, each with
         every cache type (tests/logits.c), between this machine and the emulated ones

Each run must report as emulated exactly the sets that it is for. Exit status 77 (skipped) where a tool is missing. Emulation
shows that results are right; it says nothing about speed.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys

FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off"]
SHIMMED = ["-O1", "-mavx2", "-mfma", "-mf16c", "-DMICA_NO_TARGET"]  # -O1: SIMDe's functions take a minute with -O2
CANARY = """#include <immintrin.h>
__attribute__((target("avx"))) int main(void)
{
    volatile float in[8] = {1.0f}, out[8];
    _mm256_storeu_ps((float *)out, _mm256_loadu_ps((const float *)in));
    return out[0] != 1.0f;
}
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def tool(name, package):
    found = shutil.which(name)
    return found or skip(f"{name} is not here (Debian: {package})")


def run(command, errors=subprocess.STDOUT, **env):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, check=False, env={**os.environ, **env})
    return done.returncode, done.stdout.decode("utf-8", "replace")


def build(command):
    code, output = run(command)
    if code:
        fail(f"{' '.join(command)}\n{output}")


def can_link(cc, work, text, *libraries):
    """Whether a program with these headers and libraries can be built; tells a missing package from a fault of ours."""
    probe = os.path.join(work, "probe.c")
    with open(probe, "w", encoding="ascii") as f:
        f.write(text + "\nint main(void) { return 0; }\n")
    return run([cc, "-mavx2" if "simde" in text else "-O0", probe, "-o", probe + ".out", *libraries])[0] == 0


def sources(root, *patterns):
    found = [path for pattern in patterns for path in sorted(glob.glob(os.path.join(root, pattern)))]
    return found or fail(f"no sources {patterns} in {root}")


def includes(root):
    return [f"-I{root}/include", f"-I{root}/src"]


def check_sets(command, emulator, expected):
    """Runs test_kernels; it must pass, and report exactly the sets `expected` as emulated."""
    code, output = run(command, MICA_EMULATED=emulator)
    for line in sorted(set(re.findall(r"^\w+: (?:native|emulated|this CPU).*$", output, re.M))):
        print(f"  {line}")
    ran = set(re.findall(r"^(\w+): emulated", output, re.M))
    if code:
        fail(f"{' '.join(command)}: exit status {code}\n{output}")
    if ran != set(expected):
        fail(f"{' '.join(command)}: ran {sorted(ran)}, not {sorted(expected)}\n{output}")
    print(f"passed: {' '.join(expected) or 'no set but portable'} on {emulator}", flush=True)


def arm64(args):
    cc = tool("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    qemu = tool("qemu-aarch64-static", "qemu-user-static")
    header = "#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>"
    if not can_link(cc, args.work, header, "-lcmocka"):
        skip("cmocka is not here for arm64 (Debian: libcmocka-dev:arm64)")
    test = os.path.join(args.work, "test_kernels_arm64")
    build([cc, *FLAGS, *includes(args.source), "-o", test, "-Wall", "-Wextra", "-Werror",
           *sources(args.source, "src/kern/*.c", "src/kern/*/*.c", "src/quant/*.c", "src/base/error.c",
                    "src/base/buf.c", "tests/unit/test_kernels.c"), "-lcmocka", "-lm"])
    for cpu, sets in (("cortex-a53", ["neon"]), ("cortex-a76", ["neon", "neon_dotprod"]),
                      ("max", ["neon", "neon_dotprod", "neon_i8mm"]),
                      ("max,sve-default-vector-length=32", ["neon", "neon_dotprod", "neon_i8mm"])):
        check_sets([qemu, "-cpu", cpu, test], f"qemu {cpu}", sets)


def avx512(args):
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        flags = re.search(r"^flags\s*:(.*)$", f.read(), re.M)
    if not flags or not {"avx2", "fma", "f16c"} <= set(flags.group(1).split()):
        skip("SIMDe's AVX-512 needs a processor with AVX2, FMA and F16C")
    if not can_link(args.cc, args.work, "#include <simde/x86/avx512.h>"):
        skip("SIMDe is not here (Debian: libsimde-dev)")
    shim = os.path.join(args.source, "tests/simde")
    objects = []
    for source in sources(args.source, "src/kern/x86/*.c"):
        objects.append(os.path.join(args.work, os.path.basename(source) + ".o"))
        build([args.cc, *FLAGS, *SHIMMED, f"-I{shim}", *includes(args.source), "-c", source, "-o", objects[-1]])
    code = subprocess.run(["objdump", "-d", *objects], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    if re.search("%zmm|vpdpbusd|tdpb", code):
        fail("the kernels over SIMDe contain the instructions themselves: nothing is emulated")
    test = os.path.join(args.work, "test_kernels_avx512")
    build([args.cc, *FLAGS, *includes(args.source), "-o", test, *objects, os.path.join(shim, "cpu.c"),
           *sources(args.source, "src/kern/kern.c", "src/kern/check.c", "src/kern/ref/*.c", "src/quant/*.c", "src/base/error.c",
                    "src/base/buf.c", "tests/unit/test_kernels.c"), "-lcmocka", "-lm"])
    check_sets([test], "avxvnni,avx512,amx:SIMDe", ["avxvnni", "avx512", "amx"])


def check_canary(args, qemu):
    """The emulated old processor must refuse AVX, else the runs on it show nothing."""
    canary = os.path.join(args.work, "canary")
    with open(canary + ".c", "w", encoding="ascii") as f:
        f.write(CANARY)
    build([args.cc, "-O2", canary + ".c", "-o", canary])
    if run([qemu, "-cpu", "Nehalem", canary])[0] in (0, 1):
        fail("qemu runs AVX on a processor without it")
    if run([qemu, "-cpu", "Haswell", canary])[0] != 0:
        skip("this qemu cannot run AVX (7.2 can)")


def check_program(args, qemu):
    """The program starts, chooses the portable kernels, and says what it says on this processor."""
    emulated = [qemu, "-cpu", "Nehalem", args.mica]
    code, output = run([*emulated, "--version"])
    if code or not re.search(r"^kernels portable( \w+ \(not on this CPU\))*$", output, re.M):
        fail(f"mica --version on Nehalem: exit status {code}\n{output}")
    model = os.path.join(args.source, "tests/data/tiny/llama.gguf")
    words = ["run", "-m", model, "--no-chat", "-p", "hello", "-n", "24", "--temp", "0", "--ignore-eos"]
    here, there = (run([*mica, *words], subprocess.DEVNULL) for mica in ([args.mica], emulated))
    if here[0] or not here[1] or here != there:
        fail(f"mica {' '.join(words)}: {here} here, {there} on Nehalem")
    print("passed: mica on qemu Nehalem, with the portable kernels and the same text as here", flush=True)


def old_x86(args):
    qemu = tool("qemu-x86_64-static", "qemu-user-static")
    check_canary(args, qemu)
    check_program(args, qemu)
    check_sets([qemu, "-cpu", "Nehalem", args.test], "qemu Nehalem", [])
    check_sets([qemu, "-cpu", "Haswell", args.test], "qemu Haswell", ["avx2"])


def hashes(command, kernels):
    """The lines of tests/logits.c by model, cache type and prompt; the set that ran must be `kernels`, if that is given."""
    code, output = run(command)
    lines = output.splitlines()
    if code or not lines or not lines[0].startswith("kernels "):
        fail(f"{' '.join(command)}: exit status {code}\n{output}")
    if kernels and lines[0] != f"kernels {kernels}":
        fail(f"{' '.join(command)}: {lines[0]}, not {kernels}")
    return dict(line.rsplit(": ", 1) for line in lines[1:])


def compare_logits(args, machines):
    """machines: (name, command of the program there, the set it must choose)"""
    folder = os.path.join(args.work, "models")
    os.makedirs(folder, exist_ok=True)
    build([args.logits, "write", folder])
    files = sources(args.source, "tests/data/tiny/*.gguf") + sources(folder, "random-*.gguf")
    want = hashes([args.logits, "hash", "best", *files], None)
    caches = {key.split()[1] for key in want}
    if len(want) < 3 * len(files) / 2 or len(set(want.values())) != len(want) or caches != {"F16", "Q8_0", "Q4_0"}:
        fail(f"these are no hashes of {len(files)} models in three cache types:\n{want}")
    for name, command, kernels in machines:
        got = hashes([*command, "hash", "best", *files], kernels)
        wrong = [f"{key}: {want.get(key)} here, {got.get(key)} there" for key in sorted({*want, *got})
                 if want.get(key) != got.get(key)]
        if wrong:
            fail(f"logits on {name} ({kernels}) differ from those here:\n" + "\n".join(wrong))
        print(f"passed: {kernels} on {name}: {len(got)} hashes of logits, {len(files)} models, equal to those here", flush=True)


def logits_arm64(args):
    cc = tool("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    qemu = tool("qemu-aarch64-static", "qemu-user-static")
    if not can_link(cc, args.work, "#include <utf8proc.h>", "-lutf8proc"):
        skip("utf8proc is not here for arm64 (Debian: libutf8proc-dev:arm64)")
    program = os.path.join(args.work, "logits_arm64")
    build([cc, *FLAGS, *includes(args.source), "-o", program, os.path.join(args.source, "tests/logits.c"),
           *sources(args.source, "src/base/*.c", "src/quant/*.c", "src/kern/*.c", "src/kern/*/*.c", "src/model/*.c",
                    "src/model/*/*.c"), "-lutf8proc", "-lm", "-lpthread"])
    compare_logits(args, [(f"qemu {cpu}", [qemu, "-cpu", cpu, program], kernels) for cpu, kernels in
                          (("cortex-a53", "neon"), ("cortex-a76", "neon_dotprod"), ("max", "neon_i8mm"))])


def logits_old_x86(args):
    qemu = tool("qemu-x86_64-static", "qemu-user-static")
    compare_logits(args, [("qemu Nehalem", [qemu, "-cpu", "Nehalem", args.logits], "portable")])


def main():
    parser = argparse.ArgumentParser()
    runs = {"arm64": arm64, "avx512": avx512, "old_x86": old_x86, "logits_arm64": logits_arm64,
            "logits_old_x86": logits_old_x86}
    parser.add_argument("what", choices=sorted(runs))
    for name in ("source", "work", "cc", "test", "mica", "logits"):
        parser.add_argument(f"--{name}")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    runs[args.what](args)


main()
