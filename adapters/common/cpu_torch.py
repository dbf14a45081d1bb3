"""Lets the PyTorch wheel of the package index, which is built for CUDA, work on a machine without CUDA's packages.

    cpu_torch.py SITE_PACKAGES

There is no wheel for CPUs only under this name for x86-64 Linux, and the CUDA libraries that this one is linked against take
3 GB. Converters compute on the CPU. So each missing library is replaced by a small one that defines the symbols and symbol
versions that torch's libraries ask for; every function in them returns 100 ("no device", cudaErrorNoDevice), which torch
takes for a machine without a GPU. Needs gcc and binutils (readelf, nm).
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

SYSTEM = ("libc.so", "libm.so", "libpthread", "libdl", "librt", "libgcc_s", "libstdc++", "ld-linux", "libgomp", "libutil")
# Functions without a symbol version that belong to CUDA's libraries, by the prefixes that these use.
CUDA = re.compile(r"(cu[A-Z]|cuda|cublas|cudnn|cufft|cusparse|cusolver|curand|nccl|nvrtc|nvJitLink|nvshmem|nvtx|nvml|cupti|"
                  r"__cuda|_ZNK?5cudnn|_ZN4cudn|_ZN6nvshmem)")
NO_DEVICE = 100


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def missing_libraries(libraries):
    have = {os.path.basename(path) for path in libraries}
    needed = {}
    for path in libraries:
        for name in re.findall(r"NEEDED\).*\[(.+?)\]", output("readelf", "-d", "-W", path)):
            needed[name] = True
    return [name for name in needed if name not in have and not name.startswith(SYSTEM)]


def symbols(libraries):
    """-> names that the libraries define, and {name: version or ""} of those that they lack."""
    defined, wanted = set(), {}
    for path in libraries:
        for line in output("nm", "-D", "--defined-only", path).splitlines():
            defined.add(line.split()[-1].split("@")[0])
        for line in output("nm", "-D", "--undefined-only", path).splitlines():
            kind, symbol = line.split()[-2:]
            if kind == "U":
                name, _, version = symbol.partition("@")
                wanted[name] = version.strip("@")
    return {name: version for name, version in wanted.items() if name not in defined}


def versions_by_library(libraries, missing):
    """{library: versions that it must define}, from the version needs of the others."""
    versions = {name: set() for name in missing}
    for path in libraries:
        current = None
        for line in output("readelf", "-V", "-W", path).splitlines():
            file = re.search(r"File: (\S+)", line)
            current = file.group(1) if file else current
            version = re.search(r"Name: (\S+)", line)
            if version and current in versions:
                versions[current].add(version.group(1))
    return versions


def assign(wanted, versions):
    """{library: {version or "": symbols}}. What has no version goes to the runtime library: any will do."""
    runtime = next(name for name in versions if name.startswith("libcudart"))
    plan = {name: {version: [] for version in known} for name, known in versions.items()}
    for symbol, version in sorted(wanted.items()):
        owner = next((name for name, known in versions.items() if version and version in known), None)
        if owner is None and not CUDA.match(symbol):
            continue
        owner, version = (owner, version) if owner else (runtime, "")
        plan[owner].setdefault(version, []).append(symbol)
    return plan


def build(path, nodes, folder):
    source, script = os.path.join(folder, "stand_in.c"), os.path.join(folder, "versions.map")
    names = [symbol for group in nodes.values() for symbol in group]
    with open(source, "w", encoding="ascii") as f:
        for i, symbol in enumerate(names):
            f.write(f'int f{i}(void) __asm__("{symbol}");\nint f{i}(void) {{ return {NO_DEVICE}; }}\n')
    with open(script, "w", encoding="ascii") as f:
        for version, group in nodes.items():
            if version:
                listed = "global: " + "".join(symbol + "; " for symbol in group) if group else ""
                f.write(f"{version} {{ {listed}}};\n")
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", path, "-Wl,-soname," + os.path.basename(path), source]
    if any(nodes):
        command.append("-Wl,--version-script=" + script)
    subprocess.run(command, check=True)


def main(site_packages):
    torch = os.path.join(site_packages, "torch")
    libraries = sorted(glob.glob(os.path.join(torch, "lib", "*.so*")) + glob.glob(os.path.join(torch, "_C*.so")))
    missing = missing_libraries(libraries)
    plan = assign(symbols(libraries), versions_by_library(libraries, missing))
    with tempfile.TemporaryDirectory() as folder:
        for name in missing:
            build(os.path.join(torch, "lib", name), plan[name], folder)
    print(f"{len(missing)} libraries replaced: {', '.join(missing)}")


if __name__ == "__main__":
    main(sys.argv[1])
