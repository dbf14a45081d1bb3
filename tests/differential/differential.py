"""What the differential tests share: rounds of random cases for a time or a count, and the engine through its Python package.

    test_NAME.py [--seconds N | --count N] [--seed N]

Every case has a seed of its own, made of the run's and its number, so that one that fails can be had again with --seed S --only K."""
import argparse
import os
import random
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "bindings", "python"))
import mica  # noqa: E402  pylint: disable=wrong-import-position
from mica import Constraint, MicaError  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import


class Difference(Exception):
    """The engine and the reference do not agree."""


class Tally:
    def __init__(self):
        self.counts = {}

    def add(self, name, n=1):
        self.counts[name] = self.counts.get(name, 0) + n

    def share(self, name, of):
        return self.counts.get(name, 0) / max(1, sum(self.counts.get(x, 0) for x in of))

    def __str__(self):
        return ", ".join(f"{n} {name}" for name, n in self.counts.items())


def run(name, case, check, count):
    """case(rng, tally) raises Difference; check(tally) says in the end whether enough was tried of each kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    o = parser.parse_args()
    tally, end, i, differences = Tally(), time.monotonic() + (o.seconds or 0), 0, 0
    while o.only is None and (time.monotonic() < end if o.seconds else i < o.count) or o.only is not None and i == 0:
        number = i if o.only is None else o.only
        try:
            case(random.Random(f"{name} {o.seed} {number}"), tally)
        except Difference as e:
            differences += 1
            print(f"--- {name}, --seed {o.seed} --only {number}\n{e}", file=sys.stderr)
            if differences == 10:
                break
        i += 1
    print(f"{name}: {i} cases of seed {o.seed}: {tally}; {differences} differences")
    if differences:
        sys.exit(1)
    if o.only is None:
        check(tally)
