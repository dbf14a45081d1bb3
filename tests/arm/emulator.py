"""What the tests of ARM programs share: the emulator, the cores it imitates, running mica on one of them."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "data")
TINY = os.path.join(DATA, "tiny", "llama.gguf")
TIMEOUT = 1500
# The core, and the kernels that mica must choose on it.
CORES = {"cortex-a53": "neon", "cortex-a76": "neon_dotprod", "max": "neon_i8mm", "max,sve-default-vector-length=32": "neon_i8mm"}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def qemu(arch="aarch64"):
    name = f"qemu-{arch}-static"
    return shutil.which(name) or skip(f"{name} is not here (Debian: qemu-user-static)")


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("MICA_")}
    return {**env, "MICA_MODELS_DIR": os.devnull}


def run(command, **more):
    """(exit code, standard output, standard error), as text."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT,
                              check=False, env=environment(), **more)
    except subprocess.TimeoutExpired:
        fail(f"{' '.join(command)}: still running after {TIMEOUT} s")
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
