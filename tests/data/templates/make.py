#!/usr/bin/env python3
"""Writes the expected results of the template tests with Python's jinja2 as the reference.

    make.py DIR_OF_TEMPLATES        (needs jinja2 3.1.6; only for developers, the results are kept in the repository)

  snippets.json        small templates of snippets.py with their output, or null where jinja2 raises
  conversations.json   the requests that every published template is rendered with
  expected.jsonl       a line for each template: its own hash, and length and hash of each output (null where jinja2 raises)

Only hashes of the output of published templates are kept, because the output has their text in it. The hash is FNV-1a, 64 bits.
"""
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

from conversations import CONVERSATIONS
from snippets import SNIPPETS, VARIABLES

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2025, 3, 9, 14, 5, 6)


class Generation(jinja2.ext.Extension):
    """{% generation %}: transparent, but with a scope of its own, as in transformers."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(lineno)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: NOW.strftime(format)
    return env


ENV = environment()


def compile_template(text):
    try:
        return ENV.from_string(text)
    except Exception:
        return None


def render(template, request):
    """The output, or None if jinja2 raises."""
    variables = {"tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    variables.update({k: v for k, v in request.items() if k != "chat_template_kwargs"})
    variables.update(request.get("chat_template_kwargs") or {})
    if template is None:
        return None
    try:
        return template.render(**variables)
    except Exception:
        return None


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h


def write_snippets():
    request = {"messages": [], **VARIABLES}
    rows, seen = [], set()
    for text in SNIPPETS:
        if text in seen:
            sys.exit(f"snippet appears twice: {text!r}")
        seen.add(text)
        out = render(compile_template(text), request)
        if out is not None and " at 0x" in out:
            sys.exit(f"the output has an address in it: {text!r}")
        rows.append([text, out])
    with open(HERE / "snippets.json", "w", encoding="utf-8") as f:
        f.write('{"request": ' + json.dumps(request, ensure_ascii=False) + ',\n "snippets": [\n')
        f.write(",\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
        f.write("\n]}\n")
    print(len(rows), "snippets,", sum(r[1] is None for r in rows), "of them errors")


def write_conversations(directory):
    with open(HERE / "conversations.json", "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in CONVERSATIONS) + "\n]\n")
    n, errors = 0, 0
    with open(HERE / "expected.jsonl", "w", encoding="utf-8") as f:
        for path in sorted(pathlib.Path(directory).glob("*.jinja")):
            text = path.read_bytes().decode("utf-8")
            template = compile_template(text)
            results = []
            for c in CONVERSATIONS:
                out = render(template, c["request"])
                data = None if out is None else out.encode("utf-8")
                results.append(None if data is None else [len(data), fnv(data)])
                n += 1
                errors += data is None
            row = {"template": path.name, "hash": fnv(text.encode("utf-8")), "results": results}
            f.write(json.dumps(row, separators=(",", ":")) + "\n")
    print(n, "renderings,", errors, "of them errors")


if __name__ == "__main__":
    write_snippets()
    if len(sys.argv) > 1:
        write_conversations(sys.argv[1])
