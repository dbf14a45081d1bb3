"""The model class for lm-eval, on what lm-eval hands over; tests/serve has the same numbers for its client of the server."""
import json
import math
import os
import subprocess
from types import SimpleNamespace

import pytest

from conftest import ROOT, SCRIPTED
from mica.lm_eval import MicaLM, windows

# Context, continuation, its probability under the model, whether each of its tokens is the most probable one.
SCORED = [("D", "p1", 0.6, True), ("D", "p2", 0.3, False), ("D", "p3", 0.1, False), ("xD", "p2", 0.3, False),
          ("E", "Hi \U0001f642!", 1.0, True), ("X", "xxx", 1.0, True)]


def requests_of(*arguments):
    return [SimpleNamespace(args=a) for a in arguments]


@pytest.fixture(scope="module")
def lm():
    return MicaLM(SCRIPTED)


def test_loglikelihood(lm):
    found = lm.loglikelihood(requests_of(*(s[:2] for s in SCORED)))
    assert found == [(pytest.approx(math.log(p), abs=1e-5), greedy) for _, _, p, greedy in SCORED]
    (score, greedy), = lm.loglikelihood(requests_of(("X", "p1")))
    assert -100 < score < -20 and not greedy


def test_context_is_cut_on_the_left(lm):
    (score, greedy), = lm.loglikelihood(requests_of(("x" * 2000 + "D", "p2")))
    assert (score, greedy) == (pytest.approx(math.log(0.3), abs=1e-5), False)


def test_rolling(lm):
    """A text longer than the context is scored in windows, every token once after the one before it, which is all that this model
    looks at."""
    first, pair, three = lm.loglikelihood_rolling(requests_of(("D",), ("Dp2",), ("Dp2D",)))
    assert first < -20
    assert pair - first == pytest.approx(math.log(0.3), abs=1e-4)
    long = first + 20 * (pair - first) + 19 * (three - pair)
    for max_length in (0, 18):
        found, = MicaLM(SCRIPTED, max_length=max_length).loglikelihood_rolling(requests_of(("Dp2" * 20,)))
        assert found == pytest.approx(long, abs=1e-2)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 12, 13])
def test_windows(n):
    seen = []
    for begin, first, end in windows(n, 5):
        assert 1 <= first and end - begin <= 6
        seen += range(begin + first, end)
    assert seen == list(range(1, n))


def test_generate_until(lm):
    asked = [("E", {"until": ["!"], "max_gen_toks": 20}), ("R", {"until": ["\n"], "max_gen_toks": 20}),
             ("X", {"until": [], "max_gen_toks": 5}), ("X", {"until": "xx", "max_gen_toks": 5})]
    assert lm.generate_until(requests_of(*asked)) == ["Hi \U0001f642", "red fox", "xxxxx", ""]


def test_arguments():
    lm = MicaLM.create_from_arg_string(f"path={SCRIPTED},max_length=64", {"batch_size": 1, "device": None})
    assert lm.max_length == 63
    assert lm.chat_template(False) == "" and lm.tokenizer_name == "scripted"


INSIDE = """
import json, sys
import mica.lm_eval
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import get_model
kind = get_model("mica")
assert issubclass(kind, LM)
lm = kind.create_from_arg_string("path=" + sys.argv[1], {"batch_size": 1})
ask = lambda how, *arguments: getattr(lm, how)([Instance(how, {}, a, i) for i, a in enumerate(arguments)])
print(json.dumps([ask("loglikelihood", ("D", "p2"), ("X", "xxx")), ask("loglikelihood_rolling", ("Dp2",)),
                  ask("generate_until", ("R", {"until": ["\\n"], "max_gen_toks": 20}))]))
"""


def test_inside_lm_eval(lm):
    """lm-eval itself, without its data sets, finds the model by its name and hands over its own requests."""
    folder = os.environ.get("MICA_CLIENTS_DIR")
    if not folder:
        pytest.skip("lm-eval is missing (scripts/fetch-clients, MICA_CLIENTS_DIR)")
    env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "bindings", "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([os.path.join(folder, "venv", "bin", "python3"), "-B", "-c", INSIDE, SCRIPTED], env=env, check=True, text=True,
                          stdout=subprocess.PIPE)
    scores, (rolling,), texts = json.loads(done.stdout)
    assert scores == [[pytest.approx(math.log(0.3), abs=1e-5), False], [pytest.approx(0, abs=1e-5), True]]
    assert rolling == pytest.approx(lm.loglikelihood_rolling(requests_of(("Dp2",)))[0], abs=1e-4)
    assert texts == ["red fox"]
