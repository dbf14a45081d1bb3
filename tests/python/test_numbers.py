"""Models, tokens, logits, scores, embeddings, snapshots."""
import array
import json
import math
import subprocess
import sys

import numpy
import pytest

import mica
from conftest import SCRIPTED
from mica import floats


def test_info_and_metadata(model):
    info = model.info
    assert (info.architecture, info.name, info.n_embd, info.n_ctx_train) == ("llama", "scripted", 128, 512)
    assert info.has_chat_template == bool(info.chat_template)
    assert model.metadata()["general.architecture"] == "llama"
    assert "blk.*.ffn_down.weight F32" in model.explain_kernels()
    with mica.Model(SCRIPTED, kernels="portable") as portable:
        assert portable.info.kernels == "portable"


def test_progress_and_its_exceptions():
    seen = []
    mica.Model(SCRIPTED, on_progress=seen.append).close()
    assert seen == sorted(seen) and seen[-1] == 1.0

    def fail(_):
        raise KeyError("from the callback")
    with pytest.raises(KeyError, match="from the callback"):
        mica.Model(SCRIPTED, on_progress=fail)


def test_tokens(model):
    tokens = model.tokenize("E D", add_bos=False)
    assert model.detokenize(tokens).strip() == "E D"
    assert model.detokenize([]) == ""
    assert model.tokenize("") in ([], [model.info.bos_token])
    with pytest.raises(mica.InvalidArgument):
        model.detokenize([10 ** 6])
    with pytest.raises(mica.InvalidArgument, match="32 bits"):
        model.detokenize([1 << 40])


def test_chat(smollm2):
    messages = [{"role": "user", "content": "Hi <|im_end|> there"}]
    text = smollm2.render_chat(messages)
    assert text.endswith("<|im_start|>assistant\n")
    tokens = smollm2.chat_tokens(messages)
    end = smollm2.tokenize("<|im_end|>", add_bos=False, parse_special=True)
    assert len(end) == 1 and end[0] in tokens  # the template's
    assert tokens.count(end[0]) == smollm2.tokenize(text, parse_special=True).count(end[0]) - 1  # what the user typed stays text
    assert smollm2.prompt_tokens(messages) == tokens == smollm2.prompt_tokens({"messages": messages})


def test_prompts(model):
    assert model.prompt_tokens("E") == model.tokenize("E")
    assert model.prompt_tokens([1, 2]) == [1, 2]
    for wrong in (["text"], [1, "text"], [{"role": "user"}, 3]):
        with pytest.raises(mica.InvalidArgument, match="a prompt is"):
            model.prompt_tokens(wrong)
    with pytest.raises(mica.MicaError, match="messages"):
        model.generate({"messages": 5})


def test_logits(session):
    with pytest.raises(mica.InvalidArgument, match="sync"):
        session.logits()
    assert session.sync("D") == len(session.tokens) == 1
    logits = session.logits()
    assert isinstance(logits, numpy.ndarray) and logits.dtype == numpy.float32
    assert logits.shape == (session.model.info.n_vocab,)
    p = numpy.exp(logits - logits.max())
    assert sorted(p / p.sum())[-3:] == pytest.approx([0.1, 0.3, 0.6], abs=1e-5)
    copy = logits.copy()
    session.sync("E")
    assert (logits == copy).all()  # a copy of its own


def test_score(session):
    tokens = session.model.tokenize("Dp2")
    score, = session.score(tokens)
    assert score == mica.TokenScore(tokens[1], pytest.approx(math.log(0.3), abs=1e-5), False)
    with pytest.raises(mica.InvalidArgument, match="first is 0"):
        session.score(tokens, 0)
    with pytest.raises(mica.InvalidArgument, match="no token 99999"):
        session.score([tokens[0], 99999])


def test_log_probability_in_both_ways():
    row = numpy.random.default_rng(1).normal(0, 5, 2000).astype(numpy.float32)
    row[7] = row[1500] = row.max() + 1  # a tie: the lower id
    plain = array.array("f", row.tobytes())
    for token in (0, 7, 1500, 1999):
        fast, slow = floats.log_probability(row, token), floats.log_probability_plain(plain, token)
        assert fast[0] == pytest.approx(slow[0], rel=1e-12)
        assert fast[1] == slow[1] == (token == 7)


def test_without_numpy():
    """The same bytes as array.array, and the same scores."""
    script = ("import sys; sys.modules['numpy'] = None\n"
              "import mica, json\n"
              "m = mica.Model(sys.argv[1]); s = m.session(); s.sync('D'); row = s.logits()\n"
              "print(json.dumps([type(row).__name__, row.typecode, len(row), max(row), s.score(m.tokenize('Dp2'))[0].logprob,"
              " type(s.embed('D')).__name__]))")
    done = subprocess.run([sys.executable, "-B", "-c", script, SCRIPTED], check=True, stdout=subprocess.PIPE, text=True)
    with mica.Model(SCRIPTED) as model, model.session() as session:
        session.sync("D")
        row = session.logits()
        logprob = session.score(model.tokenize("Dp2"))[0].logprob
    assert json.loads(done.stdout) == ["array", "f", len(row), float(row.max()), pytest.approx(logprob, abs=1e-9), "array"]


def test_embeddings(smollm2):
    texts = ["a cat sat on the mat", "a kitten sat on the rug", "stock markets fell sharply"]
    a, b, c = smollm2.embed(texts, n_ctx=64)
    assert a.shape == (smollm2.info.n_embd,)
    assert float(numpy.linalg.norm(a)) == pytest.approx(1, abs=1e-5)
    assert float(a @ b) > float(a @ c)
    again = smollm2.embed(texts[:1], n_ctx=64)[0]
    assert a.tobytes() == again.tobytes()
    with pytest.raises(mica.InvalidArgument, match="pooling"):
        smollm2.embed(["x"], pooling="max", n_ctx=64)
    with pytest.raises(mica.InvalidArgument, match="list of texts"):
        smollm2.embed("x")


def test_snapshots(model, tmp_path):
    with model.session() as first, model.session() as second:
        first.sync("xxx")
        second.restore_bytes(first.snapshot())
        assert second.tokens == first.tokens
        assert second.logits().tobytes() == first.logits().tobytes()
        first.save(tmp_path / "state")
        second.reset()
        assert second.tokens == []
        second.restore(tmp_path / "state")
        assert second.tokens == first.tokens
        with pytest.raises(mica.BadFile):
            second.restore_bytes(b"not a snapshot")
        assert second.tokens == first.tokens


def test_plan_and_options(model):
    plan = model.plan(n_ctx=128, kv_type="q8_0")
    assert plan.n_ctx == 128 and plan.kv_bytes < model.plan(n_ctx=128).kv_bytes
    with pytest.raises(TypeError, match="no option 'n_context'"):
        model.session(n_context=5)
    with pytest.raises(TypeError, match="temprature"):
        model.generate("E", temprature=0)
    with pytest.raises(mica.InvalidArgument, match="kv_type"):
        model.session(kv_type="q2")
    with pytest.raises(mica.OverBudget) as caught:
        model.session(memory_budget=1)
    assert "1" in str(caught.value)


def test_threads_do_not_change_a_bit(model):
    rows = []
    for n in (1, 2):
        with model.session(n_threads=n) as session:
            session.sync("xxxxxxx")
            rows.append(session.logits().tobytes())
            session.set_threads(2)
            session.sync("xxxxxxx")
            rows.append(session.logits().tobytes())
    assert len(set(rows)) == 1


def test_errors():
    with pytest.raises(mica.IOFailure) as caught:
        mica.Model("/no/such/file.gguf")
    assert caught.value.status == mica.Status.IO_ERROR and "/no/such/file.gguf" in str(caught.value)
    with pytest.raises(mica.BadFile):
        mica.Model(__file__)
    with pytest.raises(mica.BadKernels):
        mica.Model(SCRIPTED, kernels="abacus")
    assert issubclass(mica.InvalidArgument, ValueError)


def test_closed(tmp_path):
    model = mica.Model(SCRIPTED)
    session = model.session()
    model.close()
    model.close()
    with pytest.raises(mica.Closed, match="the model is closed"):
        model.tokenize("E")
    assert session.sync([1]) == 1  # a session holds the model
    session.close()
    for use in (session.logits, session.reset, session.snapshot, lambda: session.sync([1]), lambda: session.save(tmp_path / "s")):
        with pytest.raises(mica.Closed):
            use()
    session.cancel()  # harmless
