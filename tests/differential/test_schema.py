"""JSON Schemas against jsonschema: random schemas of the keywords that are enforced, and values near them. A text is accepted in some
order of its members exactly if the value is valid."""
import itertools
import json
import sys

try:
    import jsonschema
except ImportError:
    print("jsonschema is not installed: skipped (Debian and Ubuntu: apt install python3-jsonschema)")
    sys.exit(77)

from differential import Constraint, Difference, MicaError, run

NAMES = ("a", "b", "ab", "x1", "é")
TEXTS = ("", "a", "b", "ab", "abc", "aab", "x1", "x12", "é", "日本", "12", "a b", "\"\\", "true")
NUMBERS = (0, 1, -1, 2, 3, 5, 7, 10, 12, -5, 100, 0.5, -0.25, 2.75, 10.5, 99)
PATTERNS = ("^a", "b$", "^a+b?$", "[ab]{2}", "^(x|ab)[0-9]*$", "^.{2,3}$", "\\d", "^[^a]*$", "^(?:a|b)c?$", "")
VALUES = (None, True, False, 0, 1, 2.5, "a", "ab", [], [1], {}, {"a": 1})
ORDERS = 24  # of 4 members


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def some(self, chance=0.5):
        return self.rng.random() < chance

    def bounds(self, low, high, names, schema, chance=0.4):
        a, b = sorted((self.rng.randrange(low, high), self.rng.randrange(low, high)))
        if self.some(chance):
            schema[names[0]] = a
        if self.some(chance):
            schema[names[1]] = b

    def integer(self, kind):
        schema = {"type": kind}
        self.bounds(-6, 13, ("minimum", "maximum") if self.some(0.7) else ("exclusiveMinimum", "exclusiveMaximum"), schema)
        if self.some(0.2):
            schema["multipleOf"] = self.rng.choice((2, 3, 5))
        elif kind == "number" and self.some(0.3) and "minimum" in schema:
            schema["minimum"] -= 0.25
        return schema

    def string(self):
        schema = {"type": "string"}
        self.bounds(0, 5, ("minLength", "maxLength"), schema)
        if self.some(0.4):
            schema["pattern"] = self.rng.choice(PATTERNS)
        return schema

    def array(self, depth):
        schema = {"type": "array"}
        if self.some(0.4):
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(self.rng.randrange(1, 3))]
        if self.some(0.6):
            schema["items"] = self.schema(depth - 1) if self.some(0.8) else False
        self.bounds(0, 4, ("minItems", "maxItems"), schema)
        return schema

    def object(self, depth):
        names = self.rng.sample(NAMES, self.rng.randrange(0, 4))
        schema = {"type": "object", "properties": {n: self.schema(depth - 1) for n in names}}
        required = self.rng.sample(NAMES, self.rng.randrange(0, 3))
        if required and self.some():
            schema["required"] = required
        if self.some(0.7):
            schema["additionalProperties"] = False if self.some(0.7) else self.schema(depth - 1)
        if self.some(0.15):
            schema["patternProperties"] = {self.rng.choice(PATTERNS[:6]): self.schema(depth - 1)}
        if self.some(0.1):
            schema["propertyNames"] = {"maxLength": 2} if self.some() else {"pattern": "^[abx]"}
        if self.some(0.15):
            self.bounds(0, 4, ("minProperties", "maxProperties"), schema)
        return schema

    def combined(self, depth):
        key = self.rng.choice(("anyOf", "anyOf", "allOf", "oneOf"))
        schema = {key: [self.schema(depth - 1) for _ in range(self.rng.randrange(1, 4))]}
        if self.some(0.2):
            schema["type"] = self.rng.choice(("integer", "string", "object", ["string", "null"]))
        return schema

    def schema(self, depth):
        if depth <= 0:
            return self.rng.choice((self.integer("integer"), self.string(), {"type": "null"}, {"type": "boolean"}, {"const": self.rng.choice(VALUES)},
                                    {"enum": self.rng.sample(VALUES, 3)}))
        made = self.rng.randrange(12)
        if made < 2:
            return self.integer(self.rng.choice(("integer", "number")))
        if made < 4:
            return self.string()
        if made < 6:
            return self.array(depth)
        if made < 9:
            return self.object(depth)
        if made == 9:
            return {"$ref": "#/$defs/d"} if self.some(0.4) else {"type": self.rng.sample(("integer", "string", "null", "boolean", "array"), 2)}
        return self.combined(depth) if made == 10 else self.schema(0)

    def whole(self):
        schema = self.schema(self.rng.randrange(1, 4))
        if "$ref" in json.dumps(schema):
            schema["$defs"] = {"d": self.schema(1) if self.some(0.7) else {"type": "array", "items": {"$ref": "#/$defs/d"}, "maxItems": 2}}
        return schema

    # ---- values: now and then what the schema says, now and then anything ----

    def value(self, depth=2):
        kind = self.rng.randrange(8 if depth > 0 else 5)
        if kind < 2:
            return self.rng.choice(NUMBERS)
        if kind < 4:
            return self.rng.choice(TEXTS)
        if kind == 4:
            return self.rng.choice((None, True, False))
        if kind == 5:
            return [self.value(depth - 1) for _ in range(self.rng.randrange(0, 4))]
        return {n: self.value(depth - 1) for n in self.rng.sample(NAMES, self.rng.randrange(0, 4))}

    def near(self, schema, root, depth=6):
        if depth <= 0 or not isinstance(schema, dict) or self.some(0.08):
            return self.value(1)
        if "$ref" in schema:
            return self.near(root["$defs"]["d"], root, depth - 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                return self.near(self.rng.choice(schema[key]), root, depth - 1)
        kind = schema.get("type")
        kind = self.rng.choice(kind) if isinstance(kind, list) else kind
        if kind == "array":
            first = [self.near(s, root, depth - 1) for s in schema.get("prefixItems", [])]
            first = first[:self.rng.randrange(0, len(first) + 1)] if self.some(0.2) else first
            return first + [self.near(schema.get("items", {}), root, depth - 1) for _ in range(self.rng.randrange(0, 3))]
        if kind == "object":
            value = {n: self.near(s, root, depth - 1) for n, s in schema["properties"].items() if n in schema.get("required", ()) or self.some(0.6)}
            for n in (*schema.get("required", ()), *([self.rng.choice(NAMES)] if self.some(0.3) else [])):
                value.setdefault(n, self.near(schema.get("additionalProperties", {}), root, depth - 1))
            return value
        return {"integer": lambda: self.rng.randrange(-8, 15), "number": lambda: self.rng.choice(NUMBERS), "string": lambda: self.rng.choice(TEXTS),
                "null": lambda: None, "boolean": self.some}.get(kind, lambda: self.value(1))()


def text_of(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def orders(value):
    """The value with its members in every order."""
    if isinstance(value, list):
        for items in itertools.product(*(list(orders(v)) for v in value)):
            yield list(items)
    elif isinstance(value, dict):
        for keys in itertools.permutations(value):
            for items in itertools.product(*(list(orders(value[k])) for k in keys)):
                yield dict(zip(keys, items))
    else:
        yield value


def accepted(constraint, value):
    """None: more orders than are tried."""
    for i, one in enumerate(orders(value)):
        if i == 8 * ORDERS:
            return None
        if constraint.match(text_of(one))[0]:
            return True
    return False


def case(rng, tally):
    maker = Maker(rng)
    schema = maker.whole()
    validator = jsonschema.Draft202012Validator(schema)
    values = [maker.near(schema, schema) for _ in range(14)] + [maker.value() for _ in range(4)] + list(VALUES)
    try:
        constraint = Constraint.json_schema(None, schema)
    except MicaError as e:
        nothing = "nothing is valid" in str(e)
        tally.add("schemas that nothing satisfies" if nothing else "schemas refused")
        for value in values if nothing else ():
            if validator.is_valid(value):
                raise Difference(f"schema {text_of(schema)}\n{e}, but {text_of(value)} is valid") from e
        return
    tally.add("schemas")
    for value in values:
        want, got = validator.is_valid(value), accepted(constraint, value)
        if got is None:
            continue
        tally.add("valid" if want else "not valid")
        if want != got:
            raise Difference(f"schema {text_of(schema)}\nvalue {text_of(value)}\njsonschema {want}, mica {got}")


def check(tally):
    assert tally.share("schemas", ("schemas", "schemas refused", "schemas that nothing satisfies")) > 0.4, tally
    assert tally.share("valid", ("valid", "not valid")) > 0.15, tally


if __name__ == "__main__":
    run("schema", case, check, 1200)
