"""Writes python.json: what Python's re says about random patterns, for tests/unit/test_regular.c.

    python3 tests/data/regex/make.py > tests/data/regex/python.json

Patterns and texts keep to what means the same in ECMA-262 and in Python with re.ASCII: no line ends in the texts (there `$`
and `.` differ), no blanks beyond ASCII.
"""
import json
import random
import re

ATOMS = ["a", "b", "c", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"[a-c\d]", r"[^\s]", "é", "[à-ÿ]",
         r"\u00e9", "[^b-y]", "€", "😀", "[€-😀]", r"\.", r"\n", '"', r"\\", r'[\\"]', r"\x41",
         "-", r"\/", "1", "_", r"[^\W_]", "$", "^", "^", "$", ""]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "{0}"]
CHARACTERS = ["a", "a", "a", "b", "b", "c", "1", "é", "ÿ", "€", "😀", '"', "\\",
              "-", "/", "A", "_", " ", ".", "\0", "\x1f", "\x7f", "\t"]
N_PATTERNS, N_TEXTS = 300, 60


def pattern(rng, depth):
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(ATOMS)
    if kind < 0.55:
        return pattern(rng, depth - 1) + pattern(rng, depth - 1)
    if kind < 0.7:
        return "(" + pattern(rng, depth - 1) + "|" + pattern(rng, depth - 1) + ")"
    if kind < 0.8:
        return pattern(rng, depth - 1) + "|" + pattern(rng, depth - 1)
    return "(?:" + pattern(rng, depth - 1) + ")" + rng.choice(QUANTIFIERS)


def bits(answers):
    return "".join("1" if answer else "0" for answer in answers)


def main():
    rng = random.Random(20240601)
    texts = [""] + ["".join(rng.choice(CHARACTERS) for _ in range(rng.randint(1, 6))) for _ in range(N_TEXTS - 1)]
    rows = {}
    while len(rows) < N_PATTERNS:
        p = pattern(rng, 4)
        if len(p) > 2 and p not in rows:
            compiled = re.compile(p, re.ASCII)
            rows[p] = [p, bits(compiled.fullmatch(t) for t in texts), bits(compiled.search(t) for t in texts)]
    print('{"texts": [')
    print(",\n".join(json.dumps([t, json.dumps(t, ensure_ascii=False)[1:-1]], ensure_ascii=False) for t in texts))
    print('],\n"patterns": [')
    print(",\n".join(json.dumps(row, ensure_ascii=False) for row in rows.values()))
    print("]}")


main()
