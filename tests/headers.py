"""Checks the public headers: each compiles alone, as C11, C17 and C++17, with gcc and clang; functions keep their C names in C++; and what
libmica.so offers, functions and types, is what the description under version control says.

    python3 tests/headers.py --include DIR --symbols FILE --abi FILE [--update]

--abi names the description of the interface of libmica.so that libabigail made of the headers: sizes, members and their places, values. Any
difference is reported, also one that programs built before would not notice; --update writes the description anew, and a line in CHANGELOG.md
says what changed. What such programs would notice also wants a new soname (tests/abi.py).

The library is not asked, but one made of its headers: each declared function with a body that traps, and debug information, which the real
library is built without. The real one's symbols are compared by tests/abi.py, and its own source includes these headers.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
LANGUAGES = [("c", "c11", ("gcc", "clang")), ("c", "c17", ("gcc", "clang")), ("c++", "c++17", ("g++", "clang++"))]
DECLARED = re.compile(r"^(MICA_API\s+)?((?:const\s+)?(?:struct\s+)?\w+[\s*]+(mica_\w+)\([^;{}]*\))\s*(?:__attribute__\(\(.*\)\))?;", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def headers_of(include):
    return sorted(glob.glob(os.path.join(include, "mica", "*.h")))


def declarations(include):
    """(exported by libmica.so, declaration, name) of each function."""
    found = []
    for path in headers_of(include):
        with open(path, encoding="utf-8") as f:
            text = COMMENT.sub(" ", f.read())
        found += [(bool(api), " ".join(declaration.split()), name) for api, declaration, name in DECLARED.findall(text)]
    return found


def compile_text(compiler, language, standard, include, text, *options):
    """What the compiler says of this text; empty where it has no complaint."""
    done = subprocess.run([compiler, "-x", language, f"-std={standard}", f"-I{include}", *options, "-"], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    return done.stdout if done.returncode else ""


def check_alone(include):
    """Each header alone, and all of them, some twice."""
    errors, missing, count = [], [], 0
    includes = [f"#include <mica/{os.path.basename(path)}>\n" for path in headers_of(include)]
    units = includes + ["".join(includes) + "".join(reversed(includes))]
    for language, standard, compilers in LANGUAGES:
        for compiler in compilers:
            if not shutil.which(compiler):
                missing.append(compiler)
                continue
            for unit in units:
                count += 1
                said = compile_text(compiler, language, standard, include, unit + "int main(void);\n", *WARNINGS)
                if said:
                    errors.append(f"{unit.splitlines()[0]} as {standard} with {compiler}:\n{said}")
    print(f"{count} units of headers compiled")
    return errors, missing


def check_names_in_cxx(include, folder):
    """Addresses of all functions, taken in C++: a name with parameters in it would be one that no library has."""
    if not shutil.which("g++"):
        return []
    names = sorted({name for _, _, name in declarations(include)})
    text = "".join(f"#include <mica/{os.path.basename(path)}>\n" for path in headers_of(include))
    text += "extern void *const all[];\nvoid *const all[] = {\n" + "".join(f"    (void *)&{name},\n" for name in names) + "};\n"
    out = os.path.join(folder, "names.o")
    said = compile_text("g++", "c++", "c++17", include, text, "-c", "-o", out)
    if said:
        return [said]
    listed = subprocess.run(["nm", "--undefined-only", "--format=posix", out], check=True, stdout=subprocess.PIPE,
                            universal_newlines=True).stdout
    undefined = {line.split()[0] for line in listed.splitlines()}
    print(f"{len(names)} functions named in C++")
    return [f"{name} has not this name in C++: its header lacks extern \"C\"" for name in names if name not in undefined]


def check_symbols(include, listed_in):
    with open(listed_in, encoding="ascii") as f:
        listed = set(f.read().split())
    declared = {name for api, _, name in declarations(include) if api}
    return [f"{name} is in {listed_in} but no header declares it with MICA_API" for name in sorted(listed - declared)] + \
           [f"{name} is declared with MICA_API but not in {listed_in}" for name in sorted(declared - listed)]


def stub_library(include, folder):
    text = "".join(f"#include <mica/{os.path.basename(path)}>\n" for path in headers_of(include))
    text += "".join(f"{declaration}\n{{\n    __builtin_trap();\n}}\n" for api, declaration, _ in declarations(include) if api)
    out = os.path.join(folder, "libmica.so.0")
    said = compile_text("gcc", "c", "c11", include, text, "-g", "-gdwarf-4", "-w", "-fno-eliminate-unused-debug-types", "-shared", "-fPIC",
                        "-fvisibility=hidden", "-Wl,-soname,libmica.so.0", "-nostdlib", "-o", out)
    if said:
        sys.exit("the headers make no library:\n" + said)
    return out


def describe(library, include):
    done = subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--short-locs", "--no-architecture",
                           "--type-id-style", "hash", "--load-all-types", "--headers-dir", include, "--drop-private-types", library],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    if done.returncode:
        sys.exit(f"abidw failed: {done.stderr}")
    return done.stdout


def check_abi(include, folder, description, update):
    library = stub_library(include, folder)
    if update:
        with open(description, "w", encoding="utf-8") as f:
            f.write(describe(library, include))
    new = os.path.join(folder, "new.abi")
    with open(new, "w", encoding="utf-8") as f:
        f.write(describe(library, include))
    done = subprocess.run(["abidiff", "--non-reachable-types", description, new], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False)
    if done.returncode & 3:
        return [f"abidiff failed: {done.stdout}"]
    if done.returncode & 8:
        return [f"a change that programs built before may not survive; it wants a new soname:\n{done.stdout}"]
    if done.returncode & 4:
        return [f"the interface has changed; after a look at the difference, --update and CHANGELOG.md, and a new soname if older programs break:\n{done.stdout}"]
    print(f"the interface is that of {os.path.basename(description)}")
    return []


def main():
    parser = argparse.ArgumentParser()
    for name in ("include", "symbols", "abi"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--update", action="store_true")
    a = parser.parse_args()
    errors, missing = check_alone(a.include)
    errors += check_symbols(a.include, a.symbols)
    with tempfile.TemporaryDirectory() as folder:
        errors += check_names_in_cxx(a.include, folder)
        tools = [tool for tool in ("abidw", "abidiff", "gcc") if not shutil.which(tool)]
        missing += tools
        if not tools:
            errors += check_abi(a.include, folder, a.abi, a.update)
    for line in errors:
        print(line)
    if errors:
        sys.exit(1)
    if missing:
        print(f"skipped in part: {', '.join(sorted(set(missing)))} not here (packages g++, clang, abigail-tools)")
        sys.exit(77)


if __name__ == "__main__":
    main()
