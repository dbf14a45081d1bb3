"""The Swift sources: read by tree-sitter's grammar without an error, and every C name in them is in the headers. Nothing compiles them."""
import glob
import os
import re

import pytest

from conftest import ROOT

tree_sitter = pytest.importorskip("tree_sitter")
tree_sitter_swift = pytest.importorskip("tree_sitter_swift")
FOLDER = os.path.join(ROOT, "bindings", "swift")
SOURCES = sorted(glob.glob(os.path.join(FOLDER, "**", "*.swift"), recursive=True))


def errors_of(data):
    """Places that the grammar does not know."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_swift.language()))
    found, todo = [], [parser.parse(data).root_node]
    while todo:
        node = todo.pop()
        if node.type == "ERROR" or node.is_missing:
            found.append((node.start_point[0] + 1, node.type))
        todo += node.children
    return found


def read(path):
    with open(path, "rb") as f:
        return f.read()


@pytest.mark.parametrize("path", SOURCES, ids=os.path.basename)
def test_syntax(path):
    assert errors_of(read(path)) == []


def test_an_error_is_found():
    data = read(os.path.join(FOLDER, "Sources", "Mica", "NativeSession.swift"))
    assert errors_of(data.replace(b"throws -> Metrics {", b"throws -> -> Metrics (", 1))


def test_names_of_the_headers():
    """Functions, types, constants and fields that the sources name are those of the C interface."""
    headers = ""
    for name in ("mica", "mica_device", "mica_tools"):
        with open(os.path.join(ROOT, "include", "mica", name + ".h"), encoding="utf-8") as f:
            headers += f.read()
    known = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", " ", headers, flags=re.DOTALL)))
    used = set()
    for path in SOURCES:
        text = read(path).decode()
        used |= set(re.findall(r"\b(?:mica|MICA)_\w+", text))
        used |= set(re.findall(r"\b(?:native|options|result|report|state|sampling|error)\.([a-z]+_[a-z_]+)\b", text))
    assert len(used) > 30
    assert used - known == set()


def test_layout_of_the_package():
    names = {os.path.relpath(p, FOLDER) for p in glob.glob(os.path.join(FOLDER, "**", "*"), recursive=True) if os.path.isfile(p)}
    assert {"Package.swift", "Sources/CMica/module.modulemap", "Sources/CMica/shim.h"} <= names
    for header in re.findall(r'#include "(.+)"', read(os.path.join(FOLDER, "Sources", "CMica", "shim.h")).decode()):
        assert os.path.exists(os.path.join(ROOT, "include", header))
