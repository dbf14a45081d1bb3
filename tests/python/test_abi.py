"""The structures, constants and functions of the package against the headers, through the compiler: the binding cannot drift."""
import ctypes
import os
import re
import subprocess

from conftest import ROOT

from mica import _abi
from mica import device, errors

HEADERS = ("mica", "mica_tools", "mica_device")
INCLUDE = os.path.join(ROOT, "include")


def header_text():
    text = ""
    for name in HEADERS:
        with open(os.path.join(INCLUDE, "mica", name + ".h"), encoding="utf-8") as f:
            text += f.read()
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def run_c(tmp_path, lines):
    """The lines that a program of these statements prints."""
    source, program = tmp_path / "check.c", tmp_path / "check"
    includes = "".join(f'#include "mica/{name}.h"\n' for name in HEADERS)
    source.write_text(f"#include <stdio.h>\n{includes}int main(void)\n{{\n" + "\n".join(lines) + "\n    return 0;\n}\n")
    cc = os.environ.get("MICA_CC", "cc")
    subprocess.run([cc, "-std=c11", "-I", INCLUDE, str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def test_layouts(tmp_path):
    """Size and alignment of every structure, and place and size of every field."""
    lines, expected = [], []
    for name, structure in _abi.STRUCTURES:
        lines.append(f'printf("{name} %zu %zu\\n", sizeof({name}), _Alignof({name}));')
        expected.append(f"{name} {ctypes.sizeof(structure)} {ctypes.alignment(structure)}")
        for field, *_ in structure._fields_:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
            place = getattr(structure, field)
            expected.append(f"{name}.{field} {place.offset} {place.size}")
    assert run_c(tmp_path, lines) == expected
    assert len(expected) > 200


def declared_fields(name, text):
    """The names of a structure's fields in the header, in order."""
    body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (name, name), text, re.DOTALL).group(1)
    found = []
    for statement in body.split(";"):
        pointer = re.search(r"\(\*(\w+)\)\(", statement)
        if pointer:
            found.append(pointer.group(1))
        elif statement.strip():
            found += [re.search(r"(\w+)(\[\w+\])?$", part.strip()).group(1) for part in statement.split(",")]
    return found


def test_no_field_is_missing():
    """Also none that would lie in padding, where sizes do not show it."""
    text = header_text()
    for name, structure in _abi.STRUCTURES:
        assert [field for field, *_ in structure._fields_] == declared_fields(name, text), name


def test_constants(tmp_path):
    values = dict(_abi.CONSTANTS)
    values.update({f"MICA_{s.name}": int(s) for s in errors.Status})
    for prefix, kind in (("THERMAL", device.Thermal), ("BATTERY", device.Battery), ("TRIM", device.Trim), ("THROTTLE", device.Throttle)):
        values.update({f"MICA_{prefix}_{e.name}": int(e) for e in kind})
    found = run_c(tmp_path, [f'printf("{name} %d\\n", (int){name});' for name in values])
    assert found == [f"{name} {value}" for name, value in values.items()]


def test_every_status_has_its_exception():
    declared = re.findall(r"\bMICA_(\w+) = (\d+),", re.search(r"typedef enum mica_status \{(.*?)\}", header_text(), re.DOTALL).group(1))
    assert {name: int(value) for name, value in declared} == {s.name: int(s) for s in errors.Status}
    assert set(errors._CLASSES) == set(errors.Status) - {errors.Status.OK}
    for status, kind in errors._CLASSES.items():
        assert kind.status == status


SCALARS = {"int": "i4", "int32_t": "i4", "unsigned": "u4", "int64_t": "i8", "size_t": "u8", "bool": "b1", "mica_status": "i4",
           "mica_pooling": "i4", "void": "none", "mica_batch": "?"}


def kind_in_c(declaration):
    declaration = declaration.strip()
    if "*" in declaration or "(" in declaration or "[" in declaration:
        return "pointer"
    words = [w for w in declaration.split() if w not in ("const", "struct")]
    return SCALARS.get(words[0]) or f"struct {words[0]}"


def kind_in_python(t):
    names = {structure: name for name, structure in _abi.STRUCTURES}
    if t is None:
        return "none"
    if t in names:
        return f"struct {names[t]}"
    code = {ctypes.c_int: "i4", ctypes.c_int32: "i4", ctypes.c_uint: "u4", ctypes.c_int64: "i8", ctypes.c_size_t: "u8",
            ctypes.c_bool: "b1"}
    return code.get(t, "pointer")


def split_arguments(text):
    """At the commas that are in no bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [p for p in parts if p.strip() != "void"]


def test_functions():
    """Number and kind of arguments, and what is returned."""
    text = header_text()
    for name, result, arguments in _abi.FUNCTIONS:
        found = re.search(r"MICA_API ([^;]*?)\b%s\((.*?)\);" % name, text, re.DOTALL)
        assert found, name
        assert kind_in_c(found.group(1)) == kind_in_python(result), name
        assert [kind_in_c(a) for a in split_arguments(found.group(2))] == [kind_in_python(a) for a in arguments], name


def test_a_drift_is_found(tmp_path):
    """The check itself: a field moved is a difference."""
    class Moved(ctypes.Structure):
        _fields_ = list(reversed(_abi.MemoryPlan._fields_))
    line = run_c(tmp_path, ['printf("%zu\\n", offsetof(mica_memory_plan, peak_bytes));'])[0]
    assert int(line) == _abi.MemoryPlan.peak_bytes.offset != Moved.peak_bytes.offset
