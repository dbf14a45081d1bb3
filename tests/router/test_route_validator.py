"""The published JSON Schemas against an independent validator, and against mica: what one takes the other takes, over files that come
with the program and random changes to one. Needs the Python package jsonschema; skipped without it."""
import copy
import json
import os
import random
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import TestCase, mica  # noqa: E402

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("skipped: the Python package jsonschema is not there", file=sys.stderr)
    sys.exit(77)

SHARE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "share", "mica")
CHANGES = 150
VALUES = [None, True, False, -1, 0, 1, 1.5, 2, 17, 1e13, "", "x", "a b", "narrow", "score", "local", "remote", [], {}, "y" * 3000, [1],
          ["t"], "https://h/v1"]
# What a schema cannot say: a name that must be in another part of the file.
CROSS = ("names no price table", "has no row", "/order \"score\"", "is the name of rung")


def read(*parts):
    with open(os.path.join(SHARE, *parts), encoding="utf-8") as f:
        return json.load(f)


def paths(value, path=()):
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, path + (key,))


def change(value, where, r):
    """Replaces, removes or adds a member. False: nothing to do there."""
    inner = value
    for key in where[:-1]:
        inner = inner[key]
    act = r.random()
    if act < 0.6:
        inner[where[-1]] = r.choice(VALUES)
    elif isinstance(inner, dict) and act < 0.8:
        del inner[where[-1]]
    elif isinstance(inner, dict):
        inner["zz"] = 1
    else:
        return False
    return True


class Schemas(TestCase):
    def setUp(self):
        self.schema = {}
        for name in ("route-policy", "route-ladder", "route-classifier", "prices"):
            schema = read("schemas", name + ".schema.json")
            Draft202012Validator.check_schema(schema)
            self.schema[name] = Draft202012Validator(schema)

    def test_shipped_files(self):
        for name in ("default", "remote", "small"):
            self.schema["route-policy"].validate(read("router", "policies", name + ".json"))
        for name in ("default", "small"):
            self.schema["route-ladder"].validate(read("router", name + ".json"))
        self.schema["route-classifier"].validate(read("router", "classifier.json"))
        self.schema["prices"].validate(read("prices.json"))

    def is_valid(self, policy):
        ladder, prices = policy.get("ladder"), policy.get("prices")
        return (self.schema["route-policy"].is_valid(policy) and
                (not isinstance(ladder, dict) or self.schema["route-ladder"].is_valid(ladder)) and
                (not isinstance(prices, dict) or self.schema["prices"].is_valid(prices)))

    def test_mica_agrees(self):
        r = random.Random(20261130)
        base = read("router", "policies", "remote.json")
        base["ladder"], base["prices"] = read("router", "default.json"), read("prices.json")
        del base["classifier"]  # a file's name
        where, taken, refused = list(paths(base)), 0, 0
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "policy.json")
            for _ in range(CHANGES):
                policy = copy.deepcopy(base)
                at = r.choice(where)
                if not change(policy, at, r) or isinstance(policy.get("ladder"), str) or isinstance(policy.get("prices"), str):
                    continue
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(policy, f)
                done = mica("route", "check", path)
                if done.code == 0 or not any(words in done.message for words in CROSS):
                    self.assertEqual(done.code == 0, self.is_valid(policy), f"{at}: {done.message}")
                taken, refused = taken + (done.code == 0), refused + (done.code != 0)
        self.assertGreater(min(taken, refused), 20)


if __name__ == "__main__":
    unittest.main()
