"""Installs the build into a new folder and builds and runs the example of README.md against it, in the three ways that a program
may find the library: pkg-config, pkg-config with the static library, and CMake's find_package.

    python3 tests/install.py --build DIR --source DIR --cmake CMAKE --cc CC --version VERSION --libdir LIBDIR --generator NAME
"""
import argparse
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.22)
project(example C)
find_package(mica {version} REQUIRED)
add_executable(example example.c)
target_link_libraries(example PRIVATE mica::mica)
"""
# Against the static library behind mica_ops.h: what is in mica_ops, and what that takes from mica_router.
OPS_EXAMPLE = """#include <math.h>
#include <stdio.h>
#include <mica/mica_ops.h>
int main(void)
{
    const double x[] = {3, 1, 2};
    mica_device_cost cost;
    mica_device_cost_input in = {.rate = {30}, .power = {4}, .electricity = {0.2}, .life = {3}, .duty = {1},
                                 .battery = {NAN}, .measured_energy = {NAN}};
    if (mica_cost_device(&in, &cost, NULL) != MICA_OK)
        return 1;
    printf("%g %.4f\\n", mica_stat_median(x, 3), cost.total.v);
    return 0;
}
"""
OPS_ANSWER = "2 0.0074"
# tests/data/cases/_common/scripted.py: after "E" this model says these pieces, the emoji as four byte tokens, and ends.
PROMPT, ANSWER = "E", "Hi \U0001F642!"


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def example_of(readme):
    with open(readme, encoding="utf-8") as f:
        blocks = re.findall(r"^```c\n(.*?)^```", f.read(), re.MULTILINE | re.DOTALL)
    if len(blocks) != 1:
        sys.exit(f"{readme} has {len(blocks)} blocks of C; the example must be the only one")
    return blocks[0]


def check_files(prefix, libdir, version):
    wanted = {"bin": ["mica"], "include/mica": ["mica.h", "mica_tools.h", "mica_tasks.h", "mica_device.h"], "share/man/man1": ["mica.1"],
              "share/bash-completion/completions": ["mica"], "share/zsh/site-functions": ["_mica"],
              "share/fish/vendor_completions.d": ["mica.fish"],
              "share/mica/tasks": ["classify.json", "eval/classify.jsonl"], "share/mica/schemas": ["task.schema.json"],
              libdir: ["libmica.a", "libmica.so", "libmica.so.0", f"libmica.so.{version}", "pkgconfig/mica.pc",
                      "cmake/mica/mica-config.cmake"], "share/doc/mica": ["README.md", "LICENSE", "CHANGELOG.md"]}
    if os.path.exists(os.path.join(prefix, "libexec", "mica", "mica-ops")):  # built with MICA_OPS
        wanted["include/mica"].append("mica_ops.h")
        wanted["share/mica"] = ["prices.json", "protocols/sustained.json", "adapters/README.md", "adapters/openai/driver",
                                "adapters/common/adapter.py"]
        wanted[libdir] += ["libmica_ops.a", "libmica_router.a", "pkgconfig/mica-ops.pc"]
    missing = [f"{folder}/{name}" for folder, names in wanted.items() for name in names
               if not os.path.exists(os.path.join(prefix, folder, name))]
    if missing:
        sys.exit("not installed: " + ", ".join(missing))


def debian_patterns(source):
    for path in sorted(glob.glob(os.path.join(source, "debian", "*.install"))):
        with open(path, encoding="ascii") as f:
            for line in f.read().split():
                yield line


def check_debian(source, prefix, libdir):
    """Each file that is installed is in one Debian package, and each line of debian/*.install has files."""
    if not os.path.exists(os.path.join(prefix, "libexec", "mica", "mica-ops")):
        return
    patterns = list(debian_patterns(source))
    used, errors = set(), []
    for folder, _, names in os.walk(prefix):
        for name in names:
            path = "usr/" + os.path.relpath(os.path.join(folder, name), prefix)
            path = path.replace("zsh/site-functions", "zsh/vendor-completions").replace(f"usr/{libdir}/", "usr/lib/any/")
            found = [p for p in patterns if fnmatch.fnmatchcase(path, p) or fnmatch.fnmatchcase(path, p + "/*")]
            used.update(found)
            if len(found) != 1 and not path.endswith("/LICENSE"):  # that is debian/copyright
                errors.append(f"{path} is in {len(found)} Debian packages")
    errors += [f"debian/*.install: nothing is installed as {p}" for p in patterns if p not in used]
    if errors:
        sys.exit("\n".join(errors))


def check_run(how, program, model, libraries):
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries)
    said = run(program, model, PROMPT, env=environment)
    if said.strip() != ANSWER:
        sys.exit(f"{how}: the example said {said!r}, not {ANSWER!r}")
    print(f"{how}: {said.strip()}")


def with_pkg_config(a, folder, lib, model):
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(lib, "pkgconfig"))
    found = run("pkg-config", "--modversion", "mica", env=environment).strip()
    if found != a.version:
        sys.exit(f"pkg-config says version {found}, not {a.version}")
    source, warnings = os.path.join(folder, "example.c"), ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    flags = run("pkg-config", "--cflags", "--libs", "mica", env=environment).split()
    program = os.path.join(folder, "dynamic")
    run(a.cc, *warnings, source, "-o", program, *flags)
    check_run("pkg-config", program, model, lib)
    flags = run("pkg-config", "--static", "--cflags", "--libs", "mica", env=environment).split()
    flags = [os.path.join(lib, "libmica.a") if flag == "-lmica" else flag for flag in flags]
    program = os.path.join(folder, "static")
    run(a.cc, *warnings, source, "-o", program, *flags)
    check_run("static library", program, model, "")


def with_ops(a, folder, prefix, lib, model):
    """The installed programs find their files, in a tree that was moved; and the library behind mica_ops.h can be linked."""
    if not os.path.exists(os.path.join(prefix, "libexec", "mica", "mica-ops")):
        return print("mica-ops: not built")
    moved = os.path.join(folder, "moved")
    shutil.copytree(prefix, moved, symlinks=True)
    mica = os.path.join(moved, "bin", "mica")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MICA_")}
    environment.update(XDG_DATA_HOME=os.path.join(folder, "data"), XDG_CACHE_HOME=os.path.join(folder, "cache"))
    said = run(mica, "cost", "--watts", "4", "--tok-s", "30", "--json", env=environment)
    if '"prices_date"' not in said or "gpt-4o-mini" not in said:
        sys.exit(f"the installed mica cost does not find its prices: {said}")
    bench = [mica, "bench", "-m", model, "--protocol", "smoke", "--db", os.path.join(folder, "bench.db")]
    done = subprocess.run([*bench, "--runtime", "mediapipe"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                          universal_newlines=True)
    if done.returncode != 1 or "LLM Inference" not in done.stderr:  # the adapter was found, and says what it is about
        sys.exit(f"the installed mica bench and an adapter: status {done.returncode}, {done.stderr}")
    made = [os.path.join(at, name) for at, folders, names in os.walk(moved) for name in folders + names if name == "__pycache__"]
    if made:
        sys.exit(f"an adapter wrote into the installed tree: {made}")
    source, program = os.path.join(folder, "ops.c"), os.path.join(folder, "ops")
    with open(source, "w", encoding="utf-8") as f:
        f.write(OPS_EXAMPLE)
    flags = run("pkg-config", "--cflags", "--libs", "mica-ops",
                env=dict(os.environ, PKG_CONFIG_PATH=os.path.join(moved, a.libdir, "pkgconfig"))).split()
    run(a.cc, "-std=c11", "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags)
    said = run(program).strip()
    if said != OPS_ANSWER:
        sys.exit(f"mica-ops: the example said {said!r}, not {OPS_ANSWER!r}")
    print(f"mica-ops: {said}")


def with_find_package(a, folder, prefix, lib, model):
    major_minor = ".".join(a.version.split(".")[:2])
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as f:
        f.write(PROJECT.format(version=major_minor))
    build = os.path.join(folder, "build")
    run(a.cmake, "-S", folder, "-B", build, "-G", a.generator, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={a.cc}")
    run(a.cmake, "--build", build)
    check_run("find_package", os.path.join(build, "example"), model, lib)


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "source", "cmake", "cc", "version", "libdir", "generator"):
        parser.add_argument("--" + name, required=True)
    a = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="mica-install-")
    try:
        prefix = os.path.join(folder, "prefix")
        run(a.cmake, "--install", a.build, "--prefix", prefix)
        check_files(prefix, a.libdir, a.version)
        check_debian(a.source, prefix, a.libdir)
        with open(os.path.join(folder, "example.c"), "w", encoding="utf-8") as f:
            f.write(example_of(os.path.join(a.source, "README.md")))
        model = os.path.join(a.source, "tests/data/cases/_common/scripted.gguf")
        lib = os.path.join(prefix, a.libdir)
        with_pkg_config(a, folder, lib, model)
        with_find_package(a, folder, prefix, lib, model)
        with_ops(a, folder, prefix, lib, model)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
