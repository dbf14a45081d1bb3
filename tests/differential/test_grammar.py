"""Grammars in GBNF and regular expressions against a slow reference: random ones, and every text of a small alphabet up to a length.

The language of a rule is the least set of texts, up to that length, that its body makes out of the sets of the rules it names; a
pattern is also tried with Python's re."""
import itertools
import re

from differential import Constraint, Difference, MicaError, run

ALPHABET = "abé"
LENGTH = 4
TEXTS = ["".join(t) for n in range(LENGTH + 1) for t in itertools.product(ALPHABET, repeat=n)]


def joined(left, right):
    return {x + y for x in left for y in right if len(x) + len(y) <= LENGTH}


class Literal:
    def __init__(self, rng):
        self.text = "".join(rng.choice(ALPHABET) for _ in range(rng.choice((0, 1, 1, 1, 2))))

    def gbnf(self):
        return '"' + self.text.replace("é", "\\u00e9") + '"' if "é" in self.text and len(self.text) > 1 else f'"{self.text}"'

    def regex(self):
        return self.text or "(?:)"

    def texts(self, _):
        return {self.text}


class Class:
    def __init__(self, rng):
        self.negated, self.members = rng.random() < 0.3, "".join(sorted(rng.sample(ALPHABET, rng.randrange(1, 3))))
        self.any = rng.random() < 0.15

    def gbnf(self):
        return "." if self.any else f"[{'^' if self.negated else ''}{'a-b' if self.members == 'ab' else self.members}]"

    regex = gbnf

    def texts(self, _):
        return {c for c in ALPHABET if self.any or (c in self.members) != self.negated}


class Rule:
    def __init__(self, name):
        self.name = name

    def gbnf(self):
        return self.name

    def texts(self, sets):
        return sets[self.name]


class Several:
    """Parts one after the other, or one of them."""

    def __init__(self, parts, sequence):
        self.parts, self.sequence = parts, sequence

    def gbnf(self):
        return "(" + (" " if self.sequence else " | ").join(p.gbnf() for p in self.parts) + ")"

    def regex(self):
        return "(?:" + ("" if self.sequence else "|").join(p.regex() for p in self.parts) + ")"

    def texts(self, sets):
        if not self.sequence:
            return set().union(*(p.texts(sets) for p in self.parts))
        found = {""}
        for p in self.parts:
            found = joined(found, p.texts(sets))
        return found


class Repeat:
    FORMS = (("?", 0, 1), ("*", 0, None), ("+", 1, None), ("{2}", 2, 2), ("{1,2}", 1, 2), ("{2,}", 2, None), ("{0,3}", 0, 3), ("{0}", 0, 0))

    def __init__(self, rng, part):
        self.part, (self.form, self.low, self.high) = part, rng.choice(self.FORMS)

    def gbnf(self):
        return f"({self.part.gbnf()}){self.form}"

    def regex(self):
        return f"(?:{self.part.regex()}){self.form}"

    def texts(self, sets):
        one, found, last = self.part.texts(sets), set(), {""}
        for i in range((LENGTH + self.low if self.high is None else self.high) + 1):
            if i >= self.low:
                found |= last
            last = joined(last, one)
        return found


def node(rng, depth, rules):
    if depth <= 0 or rng.random() < 0.2:
        if rules and rng.random() < 0.45:
            return Rule(rng.choice(rules))
        return Literal(rng) if rng.random() < 0.6 else Class(rng)
    if rng.random() < 0.35:
        return Repeat(rng, node(rng, depth - 1, rules))
    return Several([node(rng, depth - 1, rules) for _ in range(rng.randrange(1, 4))], rng.random() < 0.6)


def language(bodies):
    """The sets of all rules, by going round until nothing is added."""
    sets = {name: set() for name in bodies}
    while True:
        new = {name: body.texts(sets) for name, body in bodies.items()}
        if new == sets:
            return sets
        sets = new


def compare(constraint, want, what):
    for text in TEXTS:
        got, prefix = constraint.match(text)
        if got != (text in want):
            raise Difference(f"{what}\ntext {text!r}: the reference says {text in want}, mica {got}")
        length = len(text.encode())
        if any(x.startswith(text) for x in want) and prefix != length or prefix > length:
            raise Difference(f"{what}\ntext {text!r}: {prefix} of its bytes are said to be a beginning, but all {length} are one")


def grammar(rng, tally):
    rules = ["root", "one", "two"][:rng.randrange(1, 4)]
    bodies = {name: node(rng, rng.randrange(1, 4), rules) for name in rules}
    text = "".join(f"{name} ::= {body.gbnf()}\n" for name, body in bodies.items())
    want = language(bodies)["root"]
    try:
        constraint = Constraint.gbnf(None, text)
    except MicaError as e:
        tally.add("left recursion" if "left-recursive" in str(e) else "that nothing satisfies")
        if "no text satisfies" in str(e) and want:
            raise Difference(f"{text}{e}, but {min(want)!r} does") from e
        return
    tally.add("grammars")
    tally.add("texts of them", len(want))
    compare(constraint, want, text)


def pattern(rng, tally):
    body = node(rng, rng.randrange(1, 4), [])
    text = body.regex()
    want, compiled = body.texts({}), re.compile(text)
    if want != {t for t in TEXTS if compiled.fullmatch(t)}:
        raise Difference(f"{text}: the reference and Python's re do not agree")
    try:
        constraint = Constraint.regex(None, text)
    except MicaError as e:
        tally.add("patterns refused")
        if want:
            raise Difference(f"{text}: {e}") from e
        return
    tally.add("patterns")
    compare(constraint, want, text)


def case(rng, tally):
    (grammar if rng.random() < 0.6 else pattern)(rng, tally)


def check(tally):
    assert tally.share("grammars", ("grammars", "left recursion", "that nothing satisfies")) > 0.3, tally
    assert tally.counts["patterns"] > 0, tally


if __name__ == "__main__":
    run("grammar", case, check, 2500)
