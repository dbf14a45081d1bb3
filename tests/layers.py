"""Checks that every file includes only its own layer and those below it (ARCHITECTURE.md, "Layers").

    python3 tests/layers.py ROOT
"""
import os
import re
import sys

# What each folder of src/ may include besides itself. device stands beside the chain: it knows only base, and only the
# session asks it.
CHAIN = ["base", "quant", "kern", "model", "text", "constraint", "session", "tool", "task", "serve"]
ALLOWED = {layer: set(CHAIN[:i]) for i, layer in enumerate(CHAIN)}
ALLOWED["device"] = {"base"}
ALLOWED["session"].add("device")
ALLOWED["serve"].add("device")
# Measuring stands on the public interface, and on kernels and files for the roofline.
ALLOWED["router"] = {"base", "device"}
ALLOWED["pull"] = {"base"}
ALLOWED["bench"] = {"base", "device", "quant", "kern", "model", "router"}
ALLOWED["convert"] = {"base", "quant", "kern", "model"}
ALLOWED["serve"].add("router")
PUBLIC = ("mica/mica.h", "mica/mica_tools.h", "mica/mica_tasks.h", "mica/mica_ops.h",
          "mica/mica_device.h", "mica/mica_router.h", "mica/mica_governor.h", "mica/mica_telemetry.h", "mica/mica_receipt.h",
          "mica/mica_memory.h")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def files_below(folder):
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.join(path, name)


def complaint(src, layer, target):
    """Why a file of `layer` may not include `target`, or None."""
    if target in PUBLIC:
        return None
    if not os.path.isfile(os.path.join(src, target)):
        return "is no path from src/ (write the whole of it: \"layer/name.h\")"
    other = target.split("/")[0]
    if other == layer or other in ALLOWED[layer]:
        return None
    return f"is of the layer {other}, which {layer} must not know"


def check(root):
    src = os.path.join(root, "src")
    errors, count = [], 0
    for path in files_below(src):
        layer = os.path.relpath(path, src).split(os.sep)[0]
        name = os.path.relpath(path, root)
        if layer not in ALLOWED:
            errors.append(f"{name}: {layer} is no layer; tests/layers.py and ARCHITECTURE.md list them")
            continue
        with open(path, encoding="utf-8") as f:
            targets = INCLUDE.findall(f.read())
        count += len(targets)
        for target in targets:
            why = complaint(src, layer, target)
            if why:
                errors.append(f"{name}: \"{target}\" {why}")
    return errors, count


def main():
    errors, count = check(sys.argv[1])
    for line in errors:
        print(line)
    if count == 0:
        sys.exit("no includes found: is this the root of the source tree?")
    print(f"{count} includes checked, {len(errors)} against the layers")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
