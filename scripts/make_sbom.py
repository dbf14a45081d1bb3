"""Writes the bill of materials, share/mica/sbom.cdx.json (CycloneDX 1.5): everything that is not of this tree and that mica is linked with, carries
in itself, fetches for measuring, or is built and tested with.

    make-sbom [--out FILE] [--environments DIR...]

C libraries are those of the pkg_check_modules() lines of the build files; their versions are those of this machine. All else comes from files
with exact versions: npm's locks, Python's locks, the Maven project, scripts/zig.txt. Licences of Python packages stand in the environments that the
locks make (--environments, default the caches of mica); for a package that is not installed here the licence of the file as it was is kept.
"""
import argparse
import email.parser
import glob
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

from fetch_common import Failure, run

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "share", "mica", "sbom.cdx.json")
# pkg-config's name: licence as SPDX writes it, Debian's package at run time. From each library's own licence file.
LIBRARIES = {
    "jansson": ("MIT", "libjansson4"), "libpcre2-8": ("BSD-3-Clause", "libpcre2-8-0"), "libutf8proc": ("MIT", "libutf8proc2"),
    "libevent_core": ("BSD-3-Clause", "libevent-core-2.1-7"), "sqlite3": ("blessing", "libsqlite3-0"), "libcurl": ("curl", "libcurl4"),
    "libzstd": ("BSD-3-Clause", "libzstd1"), "libsodium": ("ISC", "libsodium23"), "libnats": ("Apache-2.0", "libnats3.4"),
    "libpq": ("PostgreSQL", "libpq5"), "libedit": ("BSD-3-Clause", "libedit2"), "cmocka": ("Apache-2.0", "libcmocka0"),
}
# What the libraries are linked into, by the folder whose build file asks for them.
USES = {"": "libmica, mica, mica-ops", "src/serve": "mica", "src/pull": "mica, mica-ops", "src/router": "mica, mica-ops", "src/bench": "mica-ops",
        "programs": "mica, mica-ops", "tests": "tests", "web": "the WebAssembly module"}
MAVEN = {"org.jetbrains.kotlin": "Apache-2.0", "org.jetbrains.kotlinx": "Apache-2.0", "app.cash.turbine": "Apache-2.0",
         "org.junit.jupiter": "EPL-2.0", "org.apache.maven.plugins": "Apache-2.0"}
# Names of licences in Python's metadata that are not SPDX's, in small letters.
SPDX = {"mit license": "MIT", "mit": "MIT", "apache 2.0": "Apache-2.0", "apache-2.0": "Apache-2.0", "apache license 2.0": "Apache-2.0",
        "apache 2.0 license": "Apache-2.0", "apache software license": "Apache-2.0", "apache license, version 2.0": "Apache-2.0",
        "apache": "Apache-2.0", "apache license version 2.0": "Apache-2.0", "apache 2": "Apache-2.0",
        "bsd-3-clause": "BSD-3-Clause", "3-clause bsd license": "BSD-3-Clause",
        "new bsd": "BSD-3-Clause", "bsd 3-clause license": "BSD-3-Clause", "bsd-2-clause": "BSD-2-Clause", "isc license (iscl)": "ISC",
        "python software foundation license": "PSF-2.0", "psf": "PSF-2.0", "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
        "mpl-2.0": "MPL-2.0", "the unlicense (unlicense)": "Unlicense", "isc": "ISC", "psf-2.0": "PSF-2.0"}


def spdx(text):
    """An identifier or expression of SPDX as CycloneDX has it."""
    if re.fullmatch(r"[A-Za-z0-9.+-]+", text):
        return {"license": {"id": text}}
    return {"expression": text[1:-1] if re.fullmatch(r"\([^()]*\)", text) else text}


def component(kind, name, version, licence, scope, used_by, purl, **more):
    c = {"type": kind, "name": name, "version": version, "scope": scope, "purl": purl}
    if licence:
        c["licenses"] = [licence if isinstance(licence, dict) else spdx(licence)]
    properties = {"mica:used-by": used_by, **more}
    c["properties"] = [{"name": k, "value": v} for k, v in sorted(properties.items())]
    return c


# ---- C ----

def modules():
    """{pkg-config name: folders whose build files ask for it}, from every build file of the tree that does."""
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "**", "CMakeLists.txt"), recursive=True)):
        folder = os.path.dirname(os.path.relpath(path, ROOT))  # "" for the root
        if folder.startswith("build"):
            continue
        with open(path, encoding="utf-8") as f:
            for words in re.findall(r"^ *pkg_check_modules\(\w+ (?:REQUIRED )?IMPORTED_TARGET ([^)]*)\)", f.read(), re.MULTILINE):
                for word in words.split():
                    found.setdefault(re.split("[<>=]", word)[0], set()).add(folder)
    return found


def pkg_config(*arguments):
    done = subprocess.run(["pkg-config", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    if done.returncode:
        raise Failure(f"pkg-config {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def c_libraries():
    found = []
    for name, folders in sorted(modules().items()):
        if name not in LIBRARIES:
            raise Failure(f"the build links {name}, whose licence scripts/make_sbom.py does not know: add it to LIBRARIES there")
        unknown = folders - set(USES)
        if unknown:
            raise Failure(f"{sorted(unknown)[0]} links {name}: say in USES of scripts/make_sbom.py what for")
        licence, package = LIBRARIES[name]
        version = pkg_config("--modversion", name)
        libraries = " ".join(re.findall(r"(?:^|\s)-l(\S+)", pkg_config("--libs-only-l", name)))
        uses = ", ".join(sorted({use for folder in folders for use in USES[folder].split(", ")}))
        found.append(component("library", name, version, licence, "excluded" if folders == {"tests"} else "required", uses,
                               f"pkg:deb/debian/{package}@{version}", **{"mica:libraries": libraries}))
    version = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    found.append(component("library", "glibc", version, "LGPL-2.1-or-later", "required", USES[""], f"pkg:deb/debian/libc6@{version}",
                           **{"mica:libraries": "c m"}))
    return found


# ---- npm, Maven ----

def npm(lock, required, dev):
    """Packages of a lock file; what is only for building is of the use `dev`."""
    with open(os.path.join(ROOT, lock), encoding="utf-8") as f:
        packages = json.load(f)["packages"]
    found = []
    for path, entry in sorted(packages.items()):
        if not path:
            continue
        name = path.split("node_modules/")[-1]
        only_builds = entry.get("dev") or entry.get("optional") or not required
        found.append(component("library", name, entry["version"], entry.get("license"), "excluded" if only_builds else "required",
                               dev if only_builds else required, f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"))
    return found


def maven():
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    pom = ET.parse(os.path.join(ROOT, "bindings", "kotlin", "pom.xml")).getroot()
    properties = {e.tag.split("}")[1]: e.text for e in pom.find("m:properties", space)}

    def value(element, name):
        text = element.findtext(f"m:{name}", default="", namespaces=space)
        return re.sub(r"\$\{([^}]+)\}", lambda m: properties[m.group(1)], text)
    found = []
    for element in pom.findall(".//m:dependency", space) + pom.findall(".//m:plugin", space):
        group, name, version = value(element, "groupId"), value(element, "artifactId"), value(element, "version")
        if group not in MAVEN:
            raise Failure(f"bindings/kotlin/pom.xml: the licence of {group}:{name} is unknown: add it to MAVEN in scripts/make_sbom.py")
        needed = element.tag.endswith("}dependency") and value(element, "scope") != "test"
        found.append(component("library", f"{group}:{name}", version, MAVEN[group], "optional" if needed else "excluded",
                               "the Kotlin binding" if needed else "tests of the Kotlin binding",
                               f"pkg:maven/{group}/{name}@{version}"))
    return found


# ---- Python, tools ----

def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def licence_of(metadata):
    """By SPDX where the metadata is clear, else the classifier's words ("BSD License" is more than one), else None."""
    if metadata.get("License-Expression"):
        return spdx(metadata["License-Expression"])
    classifiers = [c.split("::")[-1].strip() for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    for text in [metadata.get("License") or "", *classifiers]:
        if text.strip().lower() in SPDX:
            return spdx(SPDX[text.strip().lower()])
    return {"license": {"name": classifiers[0]}} if classifiers else None


def installed_licences(folders):
    """{name: licence} of every package in these environments."""
    found = {}
    for folder in folders:
        for path in glob.glob(os.path.join(folder, "**", "*.dist-info", "METADATA"), recursive=True):
            with open(path, encoding="utf-8", errors="replace") as f:
                metadata = email.parser.Parser().parse(f, headersonly=True)
            licence = licence_of(metadata)
            if licence and metadata["Name"]:
                found[normal(metadata["Name"])] = licence
    return found


def known_licences():
    """{purl without version: licence} of the file as it is."""
    if not os.path.exists(OUT):
        return {}
    with open(OUT, encoding="utf-8") as f:
        components = json.load(f)["components"]
    return {c["purl"].rsplit("@", 1)[0]: c["licenses"][0] for c in components if "licenses" in c}


def python_locks():
    """{(name, version): lock files, from the root of the tree}."""
    found = {}
    paths = [*glob.glob(os.path.join(ROOT, "adapters", "*", "lock*.txt")), *glob.glob(os.path.join(ROOT, "tests", "*", "requirements.txt")),
             os.path.join(ROOT, "scripts", "zig.txt")]
    for path in sorted(paths):
        with open(path, encoding="utf-8") as f:
            for name, version in re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", f.read(), re.MULTILINE):
                found.setdefault((normal(name), version), []).append(os.path.relpath(path, ROOT))
    return found


def python_packages(environments):
    licences, known, found = installed_licences(environments), known_licences(), []
    for (name, version), locks in sorted(python_locks().items()):
        purl = f"pkg:pypi/{name}"
        adapters = sorted({lock.split("/")[1] for lock in locks if lock.startswith("adapters/")})
        used_by = ", ".join([f"adapter {a}" if a != "common" else "adapters" for a in adapters] +
                            sorted({"tests" if lock.startswith("tests/") else "builds for other systems" for lock in locks
                                    if not lock.startswith("adapters/")}))
        found.append(component("library", name, version, licences.get(name) or known.get(purl), "optional" if adapters else "excluded",
                               used_by, f"{purl}@{version}"))
    return found


def bill(environments):
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        version = re.search(r"^project\(mica VERSION (\S+)", f.read(), re.MULTILINE).group(1)
    components = c_libraries() + npm("src/serve/page/package-lock.json", "the page of mica serve, mica report", "building the page")
    components += npm("tests/serve/npm/package-lock.json", None, "tests") + maven() + python_packages(environments)
    main_component = {"type": "application", "name": "mica", "version": version, "licenses": [{"license": {"id": "MIT"}}]}
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": main_component},
            "components": components}


def main(arguments):
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mica")
    parser = argparse.ArgumentParser(prog="make-sbom", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=OUT)
    parser.add_argument("--environments", nargs="*", default=[cache], metavar="DIR")
    o = parser.parse_args(arguments)
    made = bill(o.environments)
    lines = [json.dumps(c, ensure_ascii=False) for c in made.pop("components")]
    head = json.dumps(made, ensure_ascii=False)
    with open(o.out, "w", encoding="utf-8") as f:
        f.write(head[:-1] + ', "components": [\n' + ",\n".join(lines) + "\n]}\n")
    without = sum("licenses" not in json.loads(line) for line in lines)
    print(f"{len(lines)} components, {without} of them with no licence that is known", file=sys.stderr)


if __name__ == "__main__":
    run("make-sbom", main)
