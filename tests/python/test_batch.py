"""Batches: every reply is the one that a session alone gives."""
import threading

import pytest

import mica

STARTS = ["E", "C", "S", "R", "X", "D"]


def test_equal_to_sessions(model):
    replies = mica.generate_batch(model, STARTS * 3, temperature=0, max_tokens=20, max_sessions=4)
    assert [r.text for r in replies] == [model.generate(s, temperature=0, max_tokens=20).text() for s in STARTS] * 3
    assert all(r.done and r.error is None and r.result.gen_n for r in replies)


def test_real_model(smollm2):
    prompts = ["The capital of France is", "Once upon a time", "2 + 2 ="]
    replies = mica.generate_batch(smollm2, prompts, n_ctx=128, temperature=0, max_tokens=12)
    for prompt, reply in zip(prompts, replies):
        assert reply.text == smollm2.generate(prompt, n_ctx=128, temperature=0, max_tokens=12).text()


def test_events_and_steps(model):
    told = []
    with mica.Batch(model, max_sessions=2) as batch:
        reply = batch.submit("X", temperature=0, max_tokens=5, on_event=told.append)
        left = []
        while batch.step():
            left.append(reply.text)
        assert batch.step() == 0
    assert left == sorted(left, key=len) and reply.text == "xxxxx"
    assert "".join(e.text for e in told if isinstance(e, mica.Text)) == "xxxxx"
    assert sum(isinstance(e, mica.Token) for e in told) == 5


def test_one_fails_alone(model):
    def fail(_):
        raise KeyError("of the user")
    with mica.Batch(model, max_sessions=4) as batch:
        broken = batch.submit("X", on_event=fail)
        wrong = batch.submit("X", temperature=-1)
        too_long = batch.submit([1] * 600)
        cancelled = batch.submit("X", temperature=0, max_tokens=400)
        good = batch.submit("E", temperature=0)
        batch.step()
        cancelled.cancel()
        batch.run()
    assert isinstance(broken.error, KeyError)
    assert isinstance(wrong.error, mica.InvalidArgument)
    assert isinstance(too_long.error, mica.ContextFull)
    assert isinstance(cancelled.error, mica.Cancelled) and len(cancelled.text) < 400
    assert (good.text, good.error) == ("Hi \U0001f642!", None)


def test_constraint(model):
    with mica.Constraint.choices(model, ["red fox", "red hen"]) as constraint:
        reply, = mica.generate_batch(model, ["R"], temperature=0, constraint=constraint)
    assert reply.text == "red fox"


def test_closed(model):
    batch = mica.Batch(model, max_sessions=1)
    running, waiting = batch.submit("X", temperature=0), batch.submit("E")
    batch.step()
    batch.close()
    for reply in (running, waiting):
        assert reply.done and isinstance(reply.error, mica.Cancelled)
    with pytest.raises(mica.Closed):
        batch.step()


def test_busy(model):
    errors = []
    with mica.Batch(model) as batch:
        def step(_):
            worker = threading.Thread(target=try_step)
            worker.start()
            worker.join()

        def try_step():
            try:
                batch.step()
            except mica.Busy as e:
                errors.append(e)
        batch.submit("E", temperature=0, max_tokens=1, on_event=step)
        batch.run()
    assert errors
