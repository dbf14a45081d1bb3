"""Checks that the stripped library and program stay small (release builds only).

    python3 tests/size.py BUILD_TYPE LIBRARY PROGRAM
"""
import os
import subprocess
import sys
import tempfile

MIB = 1 << 20
LIMITS = [("libmica.so, all kernels", 1.0), ("mica", 1.5)]  # MiB


def stripped(path, folder):
    out = os.path.join(folder, "stripped")
    subprocess.run(["strip", "-o", out, path], check=True)
    return os.path.getsize(out)


def main():
    build_type, *files = sys.argv[1:]
    if build_type != "Release":
        print(f"skipped: sizes are those of Release builds, this is {build_type or 'none'}")
        sys.exit(77)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for (name, limit), path in zip(LIMITS, files):
            size = stripped(path, folder)
            failed |= size > limit * MIB
            print(f"{name}: {size} bytes, {size / MIB:.2f} of {limit} MiB{' - TOO LARGE' if size > limit * MIB else ''}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
