"""Streams: what they tell, and that closing them stops the native work."""
import gc
import os
import subprocess
import sys
import threading
import time

import pytest

import mica
import mica.stream
from conftest import SCRIPTED
from mica import Done, Text, Token


def threads():
    return [t for t in threading.enumerate() if t.name == "mica-generate"]


@pytest.mark.parametrize("start, reply", [("E", "Hi \U0001f642!"), ("C", "zh\u4f60\u8a66#"), ("S", "alpha beta gamma delta"),
                                          ("V", "ok\ufffdgo"), ("R", "red fox")])
def test_text(model, start, reply):
    """Whole characters only, whichever tokens they come in."""
    pieces = list(model.generate(start, temperature=0))
    assert "".join(pieces) == reply
    assert all(pieces)


def test_events(session):
    events = list(session.generate("D", temperature=0, top_logprobs=3).events())
    assert [type(e) for e in events] == [Token, Text, Token, Done]
    assert [t for t, _ in events[0].top] == [events[0].token, events[0].token + 1, events[0].token + 2]
    assert events[0].top[1][1] == pytest.approx(-1.2039728, abs=1e-5)  # log 0.3
    assert events[1].text == "p1"
    result = events[-1].result
    assert (result.stop_reason, result.prompt_n, result.gen_n) == ("eos", 1, 2)
    assert result.kernels == session.model.info.kernels


def test_result_after_the_text(session):
    stream = session.generate("X", temperature=0, max_tokens=7)
    assert stream.result is None
    assert stream.text() == "x" * 7
    assert stream.result.stop_reason == "length"
    assert list(stream) == []  # and stays at its end


def test_nothing_runs_before_it_is_asked_for(session):
    stream = session.generate("X")
    assert not threads()
    stream.close()
    assert stream.result is None
    assert session.generate("E", temperature=0).text()


def test_stop_strings_and_seed(session):
    assert session.generate("S", temperature=0, stop="ga").text() == "alpha beta "
    first = [session.generate("D", temperature=1.0, top_k=0, top_p=1, min_p=0, seed=s).text() for s in range(20)]
    assert first == [session.generate("D", temperature=1.0, top_k=0, top_p=1, min_p=0, seed=s).text() for s in range(20)]
    assert len(set(first)) > 1
    assert session.generate("D", temperature=0, logit_bias={session.model.tokenize("p1", add_bos=False)[0]: float("-inf")}).text() == "p2"


def tokens_after(monkeypatch, stop):
    """Runs `stop` beside an endless reply; returns how many tokens were chosen after it began."""
    chosen = []
    told = mica.stream.token_of

    def spy(event, with_logprobs):
        chosen.append(time.monotonic_ns())
        return told(event, with_logprobs)

    monkeypatch.setattr(mica.stream, "token_of", spy)
    begun = stop()
    return sum(t > begun for t in chosen), chosen


def test_mob_04_close_stops_the_native_work(endless, monkeypatch):
    """100,000 tokens asked for, five taken: closing the generator ends the native loop within one token; nothing comes later; the
    session goes on."""
    def stop():
        stream = endless.generate("X", temperature=0, max_tokens=100_000)
        for _ in range(5):
            next(stream)
        begun = time.monotonic_ns()
        stream.close()
        assert stream.result.stop_reason == "cancelled"
        assert stream.result.gen_n < 5 + 2 * mica.stream.AHEAD
        return begun

    after, chosen = tokens_after(monkeypatch, stop)
    assert after <= 1
    assert not threads()
    n = len(chosen)
    time.sleep(0.05)
    assert len(chosen) == n
    assert endless.generate("E", temperature=0).text() == "Hi \U0001f642!"


def test_leaving_the_loop_and_dropping(endless):
    """A `for` that is left drops the stream, and an events() generator that is closed closes it."""
    for _ in endless.generate("X", temperature=0):
        break
    gc.collect()
    assert not threads()
    events = endless.generate("X", temperature=0).events()
    next(events)
    events.close()
    assert not threads()
    with endless.generate("X", temperature=0) as stream:
        next(stream)
    assert not threads()


def test_back_pressure(endless):
    """Who does not take events stops the work."""
    stream = endless.generate("X", temperature=0)
    next(stream)
    time.sleep(0.2)
    waiting = stream._queue.qsize()
    assert waiting <= mica.stream.AHEAD
    time.sleep(0.1)
    assert stream._queue.qsize() == waiting
    stream.close()


def test_cancel_from_another_thread(endless):
    stream = endless.generate("X", temperature=0)
    next(stream)
    threading.Timer(0.05, endless.cancel).start()
    with pytest.raises(mica.Cancelled) as caught:
        for _ in stream:
            pass
    assert caught.value.status == mica.Status.CANCELLED
    assert not threads()
    assert endless.generate("E", temperature=0).text() == "Hi \U0001f642!"


def test_session_closed_while_it_generates(model):
    session = model.session(full_policy="shift")
    stream = session.generate("X", temperature=0)
    next(stream)
    session.close()
    with pytest.raises(mica.Cancelled):
        stream.text()
    with pytest.raises(mica.Closed, match="the session is closed"):
        session.generate("E").text()


def test_busy(session):
    stream = session.generate("X", temperature=0, max_tokens=400)
    next(stream)
    for use in (lambda: session.sync("E"), session.logits, lambda: session.tokens, lambda: session.generate("E").text()):
        with pytest.raises(mica.Busy, match="close it"):
            use()
    stream.close()
    assert session.sync("E") == 1


def test_context_full_is_an_exception_after_the_text(model):
    with model.session(n_ctx=16) as session:
        stream, text = session.generate("X", temperature=0), ""
        with pytest.raises(mica.ContextFull) as caught:
            for piece in stream:
                text += piece
        assert text and set(text) == {"x"}
        assert stream.result.stop_reason == "context"
        assert "16" in str(caught.value)


def test_context_trimmed_is_told(model):
    with model.session(n_ctx=32, full_policy="shift") as session:
        events = list(session.generate("X", temperature=0, max_tokens=80).events())
    trimmed = [e for e in events if isinstance(e, mica.ContextTrimmed)]
    assert trimmed and all(e.dropped_count > 0 for e in trimmed)
    assert events[-1].result.dropped_n == sum(e.dropped_count for e in trimmed)


def test_many_random_cancels(endless):
    """Streams closed after any number of pieces leave nothing behind."""
    for i in range(200):
        stream = endless.generate("X", temperature=0)
        for _ in range(i % 37):
            next(stream)
        stream.close()
    assert not threads()
    assert endless.generate("E", temperature=0).text() == "Hi \U0001f642!"


def test_two_sessions_in_two_threads(model):
    expected = model.generate("X", temperature=0, max_tokens=300).text()
    found = {}

    def work(i):
        with model.session() as session:
            found[i] = [session.generate("X", temperature=0, max_tokens=300).text() for _ in range(5)]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert found == {0: [expected] * 5, 1: [expected] * 5}


def run_script(script, **more):
    return subprocess.run([sys.executable, "-B", "-c", script, SCRIPTED], timeout=60, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **more)


def test_interpreter_ends_with_an_open_stream():
    done = run_script("import mica, sys\n"
                      "s = mica.Model(sys.argv[1]).session(full_policy='shift')\n"
                      "stream = s.generate('X', temperature=0)\n"
                      "print(next(stream))\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "x\n", "")


def test_keyboard_interrupt_stops_the_reply():
    done = run_script("import mica, sys, signal, threading\n"
                      "s = mica.Model(sys.argv[1]).session(full_policy='shift')\n"
                      "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
                      "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
                      "stream = s.generate('X', temperature=0)\n"
                      "try:\n"
                      "    for piece in stream: pass\n"
                      "except KeyboardInterrupt:\n"
                      "    stream.close()\n"
                      "    print(stream.result.stop_reason, [t.name for t in threading.enumerate()])\n")
    assert (done.returncode, done.stdout) == (0, "cancelled ['MainThread']\n"), done.stderr


def test_memory_comes_back(model):
    """Sessions and streams that are made and dropped leave no native memory behind."""
    def resident():
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def rounds(n):
        for _ in range(n):
            model.generate("E", temperature=0).text()
        gc.collect()
        return resident()

    before = rounds(100)
    assert rounds(300) - before < 4 << 20
