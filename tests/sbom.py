"""Checks that the bill of materials is that of the tree, and that what was built needs no library that is not in it.

    python3 tests/sbom.py --source DIR --readelf READELF FILE...

What scripts/make-sbom makes now is compared with share/mica/sbom.cdx.json; versions of Debian's libraries may differ, those of lock files may not.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

LOADER = re.compile(r"^ld-linux")


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def key(component):
    """What must be the same: a Debian library by its name, all else with its version."""
    purl = component["purl"]
    return purl.rsplit("@", 1)[0] if purl.startswith("pkg:deb/") else purl


def value(component, name):
    return next((p["value"] for p in component["properties"] if p["name"] == name), "")


def without_versions(component):
    return {k: v for k, v in component.items() if k not in ("version", "purl")}


def check_tree(source, kept):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "sbom.json")
        subprocess.run([os.path.join(source, "scripts", "make-sbom"), "--out", out, "--environments"], check=True, stderr=subprocess.DEVNULL)
        now = {key(c): c for c in read(out)["components"]}
    then = {key(c): c for c in kept["components"]}
    errors = [f"{name} is missing" for name in sorted(set(now) - set(then))] + [f"{name} is too much" for name in sorted(set(then) - set(now))]
    errors += [f"{name}: {without_versions(then[name])} should be {without_versions(now[name])}" for name in sorted(set(now) & set(then))
               if without_versions(now[name]) != without_versions(then[name])]
    return [f"share/mica/sbom.cdx.json: {e}; scripts/make-sbom makes it anew" for e in errors]


def check_form(kept):
    """What CycloneDX asks for, and a licence for all that mica is linked with or carries."""
    errors = [] if (kept["bomFormat"], kept["specVersion"]) == ("CycloneDX", "1.5") else ["the bill is no CycloneDX 1.5"]
    purls = [c["purl"] for c in kept["components"]]
    errors += [f"{purl} is there twice" for purl in sorted({p for p in purls if purls.count(p) > 1})]
    for c in kept["components"]:
        if not re.fullmatch(r"pkg:(deb/debian|npm|maven|pypi)/[^@]+@\S+", c["purl"]) or c["scope"] not in ("required", "optional", "excluded"):
            errors.append(f"{c['name']}: {c['purl']}, {c['scope']}")
        if c["scope"] == "required" and "licenses" not in c:
            errors.append(f"{c['name']} has no licence")
    return errors


def check_needed(readelf, files, kept):
    there = {library for c in kept["components"] if c["scope"] == "required" for library in value(c, "mica:libraries").split()}
    errors, count = [], 0
    for path in files:
        said = subprocess.run([readelf, "--wide", "--dynamic", path], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
        for soname in re.findall(r"NEEDED.*\[(.*)\]", said):
            count += 1
            name = re.sub(r"\.so.*$", "", soname)[3:]
            if not LOADER.match(soname) and not {name, re.sub(r"-[0-9.]+$", "", name)} & there:  # libevent_core-2.1.so.7 is -levent_core
                errors.append(f"{os.path.basename(path)} needs {soname}, which is not in the bill")
    print(f"{count} libraries of {len(files)} files found in the bill")
    return errors if count else ["no file needs a library: is this what was built?"]


def check_document(source, kept):
    """The table of docs/security.md has all that mica is linked with or carries, with its licence."""
    with open(os.path.join(source, "docs", "security.md"), encoding="utf-8") as f:
        rows = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|", f.read(), re.MULTILINE))
    wanted = {c["name"]: c["licenses"][0].get("expression") or c["licenses"][0]["license"]["id"]
              for c in kept["components"] if c["scope"] == "required"}
    return [f"docs/security.md: {name} is {licence}, the table has {rows.get(name)}" for name, licence in wanted.items()
            if rows.get(name) != licence]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--readelf", required=True)
    parser.add_argument("files", nargs="+")
    a = parser.parse_args()
    kept = read(os.path.join(a.source, "share", "mica", "sbom.cdx.json"))
    errors = check_tree(a.source, kept) + check_form(kept) + check_needed(a.readelf, a.files, kept) + check_document(a.source, kept)
    for line in errors:
        print(line)
    print(f"{len(kept['components'])} components")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
