"""Builds the library for one architecture and one weight format, for size, and compares it with the library of this build: it is small,
says the same ids, refuses what it is without by a sentence that names the choice, and exports nothing new.

    python3 tests/selective.py --source DIR --work DIR --full libmica.so --ids selective_ids --logits logits --nm NM --cc CC --generator NAME
"""
import argparse
import os
import re
import subprocess
import sys

from abi import exported
from size import stripped

LIMIT = 300 * 1024


def fail(why):
    sys.exit(f"FAILED: {why}")


def say(ids, library, model):
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(library))
    return subprocess.run([ids, model], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)


def check_size(a, library):
    size = stripped(library, a.work)
    print(f"libmica.so, one architecture, one format, mica.h without constraints and templates: {size} bytes of {LIMIT}")
    if size > LIMIT:
        fail("it is too large")


def check_ids(a, library, models):
    """The two libraries agree on every model that both can run."""
    seen = set()
    for name in ("random-Q4_0.gguf", "random-Q8_0.gguf", "random-F16.gguf"):
        small, full = (say(a.ids, which, os.path.join(models, name)) for which in (library, a.full))
        if small.returncode or full.returncode:
            fail(f"{name}: {small.stderr}{full.stderr}")
        ids, of_full = small.stdout.splitlines()[0], full.stdout.splitlines()[0]
        if ids != of_full or len(ids.split()) != 49:
            fail(f"{name}: this build says {of_full}, the small one {ids}")
        seen.add(ids)
        for part, option in (("constraints", "MICA_CONSTRAINTS=OFF"), ("templates", "MICA_TEMPLATES=OFF")):
            line = next(x for x in small.stdout.splitlines() if x.startswith(part))
            if option not in line or f"{part}: there" not in full.stdout:
                fail(f"{part}: the small build says {line!r}, this one {full.stdout!r}")
    if len(seen) < 3:
        fail("all models say the same: the comparison shows nothing")
    print("the same ids from three models")


def check_refusals(a, library, models):
    tiny = os.path.join(a.source, "tests", "data", "tiny")
    for path, wanted in ((os.path.join(models, "random-Q6_K.gguf"), r"has type Q6_K, which this build cannot read: it was made with MICA_TYPES=Q4_0 "),
                         (os.path.join(tiny, "gemma2.gguf"),
                          r"this build has no architecture \"gemma2\": it was made with MICA_ARCHS=llama$")):
        done = say(a.ids, library, path)
        if done.returncode != 1 or not re.search(wanted, done.stderr.strip()):
            fail(f"{path}: status {done.returncode}, {done.stderr!r}; wanted is {wanted}")
        if say(a.ids, a.full, path).returncode:
            fail(f"{path}: this build does not run it either")
    print("another format and another architecture are refused by name")


def check_unknown_names(a):
    for option, wanted in (("MICA_TYPES=Q9_9", 'MICA_TYPES: there is no "q9_9"; there are f32, '),
                           ("MICA_ARCHS=llama,eliza", 'MICA_ARCHS: there is no "eliza"; there are llama, '),
                           ("MICA_KERNELS=mmx", 'MICA_KERNELS: there is no "mmx"; there are portable, ')):
        done = subprocess.run(["cmake", "-S", a.source, "-B", os.path.join(a.work, "unknown"), "-G", a.generator, f"-DCMAKE_C_COMPILER={a.cc}",
                               *[f"-D{name}=all" for name in ("MICA_TYPES", "MICA_ARCHS", "MICA_KERNELS")], f"-D{option}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        if done.returncode == 0 or wanted not in " ".join(done.stdout.split()):
            fail(f"-D{option}: {done.stdout}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "work", "full", "ids", "logits", "nm", "cc", "generator"):
        parser.add_argument("--" + name, required=True)
    a = parser.parse_args()
    sys.path.insert(0, os.path.join(a.source, "scripts"))
    import build_sizes
    models = os.path.join(a.work, "models")
    os.makedirs(models, exist_ok=True)
    subprocess.run([a.logits, "write", models], check=True)
    check_unknown_names(a)
    folder = os.path.join(a.work, "small")
    build_sizes.build("bare-small", folder, "-G", a.generator, f"-DCMAKE_C_COMPILER={a.cc}", targets=["mica_shared"])
    library = os.path.join(folder, "libmica.so.0")
    check_size(a, library)
    more = set(exported(a.nm, library)) - set(exported(a.nm, a.full))
    if more:
        fail(f"the small library exports {sorted(more)}")
    check_ids(a, library, models)
    check_refusals(a, library, models)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
