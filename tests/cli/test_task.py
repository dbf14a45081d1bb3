"""mica task and mica eval, without a real model: rules, the scripted model, files of tasks, and what is refused."""
import glob
import json
import os
import re
import tempfile

from climica import DATA, SCRIPTED, TestCase, environment, main, mica, write_temporary

ROOT = os.path.dirname(os.path.dirname(DATA))
TASKS = os.path.join(ROOT, "share", "mica", "tasks")
SCHEMA = os.path.join(ROOT, "share", "mica", "schemas", "task.schema.json")
SETS = os.path.join(DATA, "tasks")

# After "D" the scripted model says p1, p2 and p3 with 0.6, 0.3 and 0.1.
THREE = {"version": 1, "kind": "route", "name": "three", "prompt": {"text": "{input}D", "chat": False}, "label_prefix": "",
         "labels": ["p3", "p1", "p2"], "threshold": 0.5}


def write_task(test, task):
    return write_temporary(test, json.dumps(task), ".json")


def conforms(value, schema, root):
    """As much of JSON Schema as the schema of tasks uses."""
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema:
        return conforms(value, root["$defs"][schema["$ref"].split("/")[-1]], root)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(isinstance(value, kinds[k]) and (k == "boolean" or not isinstance(value, bool)) for k in wanted):
        return False
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        return False
    if any(k in schema and sum(conforms(value, s, root) for s in schema[k]) not in counts
           for k, counts in (("oneOf", [1]), ("anyOf", range(1, 100)))):
        return False
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30) and \
            bool(re.search(schema.get("pattern", ""), value))
    if isinstance(value, list):
        return schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1 << 30) and \
            all(conforms(item, schema.get("items", True), root) for item in value)
    if isinstance(value, dict):
        known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
        return all(k in value for k in schema.get("required", [])) and len(value) >= schema.get("minProperties", 0) and \
            all(conforms(v, known.get(k, other), root) for k, v in value.items())
    return schema.get("minimum", value) <= value <= schema.get("maximum", value)


class Definitions(TestCase):
    def test_all_conform_to_the_schema(self):
        with open(SCHEMA, encoding="utf-8") as f:
            schema = json.load(f)
        files = glob.glob(os.path.join(TASKS, "*.json"))
        self.assertGreaterEqual(len(files), 7)
        for path in files:
            with open(path, encoding="utf-8") as f:
                task = json.load(f)
            self.assertTrue(conforms(task, schema, schema), path)
            self.assertEqual(task["name"] + ".json", os.path.basename(path))
            self.assertFalse(conforms(dict(task, colour="red"), schema, schema), path)
            self.assertFalse(conforms({k: v for k, v in task.items() if k != "version"}, schema, schema), path)
            other = "complete" if task["kind"] != "complete" else "classify"
            self.assertFalse(conforms(dict(task, kind=other), schema, schema), path)
        self.assertTrue(conforms(THREE, schema, schema))

    def test_the_program_refuses_what_the_schema_does(self):
        for change in ({"colour": "red"}, {"version": 2}, {"threshold": 2}, {"labels": ["one"]}, {"prompt": {"text": "none"}},
                       {"stop": []}, {"normalise": 1}, {"none": ""}):
            path = write_task(self, dict(THREE, **change))
            self.fails(mica("task", path, "-m", SCRIPTED, "-p", "x"), path)

    def test_list(self):
        names = [line.split()[0] for line in self.ok(mica("task", "--tasks", TASKS)).text.splitlines()]
        self.assertEqual(names, sorted(names))
        for name in ("classify", "complete", "extract", "redact", "route", "summarise"):
            self.assertIn(name, names)

    def test_where_they_are_looked_for(self):
        with tempfile.TemporaryDirectory() as data:
            folder = os.path.join(data, "mica", "tasks")
            os.makedirs(folder)
            with open(os.path.join(folder, "mine.json"), "w", encoding="utf-8") as f:
                json.dump({"version": 1, "kind": "redact", "name": "mine", "detect": ["ip"]}, f)
            env = dict(environment(), XDG_DATA_HOME=data)
            self.assertEqual(self.ok(mica("task", "mine", "-p", "a 10.0.0.1 a@b.de", env=env)).text, "a [IP] a@b.de")
            self.fails(mica("task", "mine", "--tasks", TASKS, "-p", "x", env=env), "no task mine", TASKS)
            self.fails(mica("task", "yours", "-p", "x", env=env), "no task yours", folder)

    def test_broken_files(self):
        self.fails(mica("task", write_temporary(self, "{", ".json"), "-p", "x"), "not JSON")
        self.fails(mica("task", write_temporary(self, "[]", ".json"), "-p", "x"), "no task")
        self.fails(mica("task", "/nowhere/x.json", "-p", "x"), "/nowhere/x.json")


class Rules(TestCase):
    def redact(self, text, *more):
        return self.ok(mica("task", "redact", "--tasks", TASKS, "--rules-only", *more, stdin=text))

    def test_bytes_outside_stay(self):
        text = b"Mail a@b.de\r\n\ttel. +44 20 7946 0958 \x00 [EMAIL] \xc3\xa4\n\n"
        self.assertEqual(self.redact(text).out, b"Mail [EMAIL]\r\n\ttel. [PHONE] \x00 [EMAIL] \xc3\xa4\n\n")

    def test_spans(self):
        result = json.loads(self.redact("ä 10.0.0.1", "--json").text)
        self.assertEqual(result["text"], "ä [IP]")
        self.assertEqual(result["spans"], [{"type": "IP", "source": "rule", "start": 3, "end": 11, "char_start": 2,
                                            "char_end": 10}])

    def test_lines(self):
        self.assertEqual(self.redact("a@b.de\r\n\nx 1.2.3.4", "--lines").text, "[EMAIL]\n\nx [IP]\n")

    def test_bad_utf8(self):
        self.fails(mica("task", "redact", "--tasks", TASKS, "--rules-only", stdin=b"a\xff"), "UTF-8", "byte 1")

    def test_labelled_set(self):
        """The rules find all that the set has of their types, and nothing else."""
        data = os.path.join(SETS, "redact.jsonl")
        done = self.ok(mica("eval", "redact", "--tasks", TASKS, "--rules-only", "--json", "--data", data))
        for c in json.loads(done.text)["classes"]:
            if c["name"] not in ("NAME", "ADDRESS"):
                self.assertEqual((c["wrong"], c["missed"]), (0, 0), c)
                self.assertGreaterEqual(c["hits"], 7)


class Scripted(TestCase):
    def test_route(self):
        path = write_task(self, THREE)
        self.assertEqual(self.ok(mica("task", path, "-m", SCRIPTED, "-p", "x")).text, "p1\n")
        self.assertEqual(self.ok(mica("task", path, "-m", SCRIPTED, "-p", "x", "--threshold", "0.7")).text, "none\n")
        self.assertEqual(self.ok(mica("task", path, "-m", SCRIPTED, "-p", "x", "--label", "p2", "--label", "p3")).text, "p2\n")
        scores = json.loads(self.ok(mica("task", path, "-m", SCRIPTED, "-p", "x", "--json")).text)["scores"]
        self.assertEqual([s["label"] for s in scores], ["p1", "p2", "p3"])
        for score, wanted in zip(scores, (0.6, 0.3, 0.1)):
            self.assertAlmostEqual(score["probability"], wanted, places=4)

    def test_extract(self):
        path = write_task(self, {"version": 1, "kind": "extract", "name": "x", "prompt": {"text": "{input}", "chat": False},
                                 "schema": True})
        schema = '{"type":"object","properties":{"n":{"const":"Bob"}},"required":["n"],"additionalProperties":false}'
        self.assertEqual(json.loads(self.ok(mica("task", path, "-m", SCRIPTED, "--schema", schema, "-p", "bob")).text),
                         {"n": "Bob"})
        self.fails(mica("task", path, "-m", SCRIPTED, "--schema", '{"type":"objekt"}', "-p", "bob"), "type")

    def test_complete(self):
        path = write_task(self, {"version": 1, "kind": "complete", "name": "x", "stop": ["\n"], "token_healing": False})
        self.assertEqual(self.ok(mica("task", path, "-m", SCRIPTED, "-p", "aQ")).text, "Mars?\n")

    def test_prefix_is_kept_between_lines(self):
        path = write_task(self, dict(THREE, prompt={"text": "a long beginning that is common to all {input}D", "chat": False}))
        done = self.ok(mica("task", path, "-m", SCRIPTED, "--lines", "--json", stdin="one\ntwo\n"))
        first, second = (json.loads(line)["usage"] for line in done.text.splitlines())
        self.assertEqual(first["cached_tokens"], 0)
        self.assertGreater(second["cached_tokens"], 20)
        self.assertLess(second["computed_tokens"], first["computed_tokens"] / 3)


class Evaluation(TestCase):
    def evaluate(self, items, *more):
        data = write_temporary(self, "".join(json.dumps(item) + "\n" for item in items), ".jsonl")
        return mica("eval", write_task(self, THREE), "-m", SCRIPTED, "--data", data, *more)

    def test_counts(self):
        items = [{"input": "a", "label": "p1"}, {"input": "b", "label": "p1"}, {"input": "c", "label": "p2"}, {"input": "d",
                                                                                                               "label": "p3"}]
        result = json.loads(self.ok(self.evaluate(items, "--json")).text)
        self.assertEqual((result["n"], result["accuracy"]), (4, 0.5))
        classes = {c["name"]: c for c in result["classes"]}
        self.assertEqual((classes["p1"]["precision"], classes["p1"]["recall"]), (0.5, 1.0))
        self.assertAlmostEqual(classes["p1"]["f1"], 2 / 3)
        self.assertEqual((classes["p2"]["hits"], classes["p2"]["missed"]), (0, 1))
        self.assertGreater(result["ms_p95"], 0)
        self.assertEqual(json.loads(self.ok(self.evaluate(items, "--json", "--items", "2")).text)["accuracy"], 1.0)
        self.assertIn("accuracy: 0.500 of 4 items", self.ok(self.evaluate(items)).text)

    def test_broken_sets(self):
        self.fails(self.evaluate([{"input": "a"}]), "line 1", "\"label\"")
        self.fails(self.evaluate([{"label": "p1"}]), "line 1", "\"input\"")
        self.fails(self.evaluate([]), "no items")
        self.fails(mica("eval", write_task(self, THREE), "-m", SCRIPTED), "--data")

    def test_every_set_is_large_and_complete(self):
        fields = {"classify": "label", "sentiment": "label", "route": "label", "extract": "data", "redact": "spans",
                  "summarise": "facts",
                  "complete": "expected"}
        for name, field in fields.items():
            with open(os.path.join(SETS, name + ".jsonl"), encoding="utf-8") as f:
                items = [json.loads(line) for line in f]
            self.assertGreaterEqual(len(items), 100, name)
            self.assertEqual(len({(item["input"], item.get("suffix")) for item in items}), len(items), name)
            self.assertTrue(all(field in item for item in items), name)


class Usage(TestCase):
    def test_options_of_other_kinds(self):
        path = write_task(self, THREE)
        self.fails(mica("task", path, "-m", SCRIPTED, "-p", "x", "--suffix", "y"), "--suffix", code=2)
        self.fails(mica("task", path, "-m", SCRIPTED, "-p", "x", "--schema", "{}"), "--schema", code=2)
        self.fails(mica("task", "redact", "--tasks", TASKS, "--rules-only", "-p", "x", "--label", "a"), "--label", code=2)
        self.fails(mica("task", "redact", "--tasks", TASKS, "--rules-only", "-p", "x", "--threshold", "0.1"), "--threshold",
                   code=2)
        self.fails(mica("task", "classify", "--tasks", TASKS, "-p", "x"), "no model")


if __name__ == "__main__":
    main()
