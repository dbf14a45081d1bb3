"""With a real model: the reply of the command, the interpreter's lock is free while the engine computes, and a cancel in the prompt."""
import json
import os
import re
import threading
import time

import numpy
import pytest

import mica
from conftest import DATA

LONG = "The quick brown fox jumps over the lazy dog. " * 150


CLOSE = 0.6  # of the two best logits: nearer ones may come out either way in another arithmetic


def test_gold_replies(smollm2):
    """Greedy replies up to the first close decision, as an independent implementation gives them."""
    with open(os.path.join(DATA, "gold", "logits-smollm2-135m-instruct-q4_1.json"), encoding="utf-8") as f:
        prompts = json.load(f)["prompts"]
    compared = 0
    with smollm2.session(n_ctx=1024) as session:
        for prompt in prompts:
            sure = next((i for i, m in enumerate(prompt["top1_top2_logit_margin"]) if m < CLOSE), len(prompt["greedy_ids"]))
            if 0 < len(prompt["ids_prompt"]) < 500 and sure:
                stream = session.generate(prompt["ids_prompt"], temperature=0, max_tokens=sure, ignore_eos=True)
                found = [e.token for e in stream.events() if isinstance(e, mica.Token)]
                assert found == prompt["greedy_ids"][:sure], prompt["name"]
                compared += sure
    assert compared > 30


def test_the_lock_is_free(smollm2):
    """ctypes gives the interpreter's lock away for the call: other threads run."""
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    with smollm2.session(n_ctx=2048) as session:
        worker = threading.Thread(target=tick)
        worker.start()
        begun = time.monotonic()
        session.sync(LONG)
        ended = time.monotonic()
        done.set()
        worker.join()
    inside = sum(begun < t < ended for t in ticks)
    assert inside >= 5, (inside, ended - begun)


def test_mob_04_cancel_in_the_prompt(smollm2):
    """From another thread while the prompt is computed: it ends within one chunk, and a new generation works."""
    with smollm2.session(n_ctx=2048, prefill_chunk=32) as session:
        n = len(smollm2.tokenize(LONG))
        assert n > 1400
        stream = session.generate(LONG, temperature=0, max_tokens=100_000)
        waiter = threading.Thread(target=lambda: (time.sleep(0.05), session.cancel()))
        waiter.start()
        with pytest.raises(mica.Cancelled) as caught:
            next(stream)
        waiter.join()
        assert stream.result is None
        done, total = map(int, re.fullmatch(r"cancelled after (\d+) of (\d+) prompt tokens", str(caught.value)).groups())
        assert done < total == n
        assert len(session.generate("Once upon a time", temperature=0, max_tokens=3).text()) > 3


def test_cached_beginning(smollm2):
    """A conversation goes on in its session: what was computed is not computed again, and the reply is the same."""
    first = [{"role": "user", "content": "Name a colour."}]
    with smollm2.session(n_ctx=512) as session:
        reply = session.generate(first, temperature=0, max_tokens=12).text()
        more = [*first, {"role": "assistant", "content": reply}, {"role": "user", "content": "Another one."}]
        stream = session.generate(more, temperature=0, max_tokens=12)
        text = stream.text()
        assert stream.result.cached_n > 10
    assert text == smollm2.generate(more, n_ctx=512, temperature=0, max_tokens=12).text()


def test_logits_are_the_same_bits_everywhere(smollm2):
    """As docs/numerics.md promises, through the binding."""
    rows = set()
    for chunk, threads in ((1, 1), (7, 2), (256, 1)):
        with smollm2.session(n_ctx=64, prefill_chunk=chunk, n_threads=threads) as session:
            session.sync("The capital of France is")
            rows.add(session.logits().tobytes())
    assert len(rows) == 1
    assert int(numpy.frombuffer(rows.pop(), dtype=numpy.float32).argmax()) == smollm2.tokenize(" Paris", add_bos=False)[0]


def test_score_is_what_generation_says(smollm2):
    """The log-probabilities of a greedy reply, told while it was made and computed afterwards."""
    with smollm2.session(n_ctx=128) as session:
        prompt = smollm2.tokenize("The capital of France is")
        events = list(session.generate(prompt, temperature=0, max_tokens=8, top_logprobs=1).events())
        told = [e for e in events if isinstance(e, mica.Token)]
        scores = session.score(prompt + [t.token for t in told], len(prompt))
    assert all(s.greedy for s in scores)
    assert [s.logprob for s in scores] == pytest.approx([t.logprob for t in told], abs=1e-4)
