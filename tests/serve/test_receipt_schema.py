"""The published JSON Schema of receipts (share/mica/schemas/receipt.schema.json) against real ones of C, the program and the server, and
against changed ones, which it refuses. Needs the Python package jsonschema; skipped without it."""
import copy
import json
import os
import shutil
import sys
import tempfile

from receiving import CTX, THREADS, Receipts
from serving import HERE, Server, main

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("skipped: the Python package jsonschema is not there", file=sys.stderr)
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "device"))
import fakesys  # noqa: E402

SHARE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "share", "mica")
SCHEMA = os.path.join(SHARE, "schemas", "receipt.schema.json")


def objects(value, path=()):
    """All objects inside, but for "parts", whose members are free."""
    if isinstance(value, dict) and path[-1:] != ("parts",):
        yield path
        for key, inner in value.items():
            yield from objects(inner, path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


class Schema(Receipts):
    def setUp(self):
        with open(SCHEMA, encoding="utf-8") as f:
            schema = json.load(f)
        Draft202012Validator.check_schema(schema)
        self.schema = Draft202012Validator(schema)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def tree(self, profile):
        root = os.path.join(self.folder, profile)
        fakesys.emit(profile, root, 60.0, set())
        return root

    def test_c(self):
        os.mkdir(os.path.join(self.folder, "mica"))
        self.schema.validate(self.from_c(os.path.join(self.folder, "mica", "hashes")))

    def test_program(self):
        for more in ((), ("--type-k", "q8_0", "--type-v", "q4_0"), ("--speculate", "lookup"), ("--governor", os.path.join(SHARE, "governor", "sustained.json")),
                     ("--sysroot", self.tree("phone")), ("--sysroot", self.tree("laptop")),
                     ("--sysroot", self.tree("server"))):
            self.schema.validate(self.from_program(self.folder, *more))

    def test_server(self):
        server = Server("--ctx", CTX, "-t", THREADS, env={"XDG_CACHE_HOME": self.folder})
        try:
            for stream in (False, True):
                self.schema.validate(self.from_server(server, stream))
            chat = {"messages": [{"role": "user", "content": "E"}], "temperature": 0, "x_mica": {"receipt": True}}
            self.schema.validate(server.chat(chat).json()["mica"]["receipt"])
            answer = server.post("/v1/responses", {"input": "E", "temperature": 0, "x_mica": {"receipt": True}})
            self.schema.validate(answer.json()["mica"]["receipt"])
        finally:
            self.assertEqual(server.stop(), 0)

    def test_what_is_none(self):
        """Of a good one without any member, with one more, or with one of another type."""
        good, n = self.from_program(self.folder, "--sysroot", self.tree("laptop")), 0
        for path in objects(good):
            for key in at(good, path):
                for change in (lambda o: o.pop(key), lambda o: o.update({key: []} if key not in ("require", "cpus") else {key: 5}),
                               lambda o: o.update({key + "x": 1})):
                    bad = copy.deepcopy(good)
                    change(at(bad, path))
                    self.assertFalse(self.schema.is_valid(bad), (path, key))
                    n += 1
        self.assertGreater(n, 150)
        for key, value in (("receipt", 2), ("status", "OK"), ("replies_at_once", 0), ("peak_rss_bytes", 0)):
            self.assertFalse(self.schema.is_valid({**good, key: value}), key)


if __name__ == "__main__":
    main()
