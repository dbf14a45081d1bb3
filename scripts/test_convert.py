"""Compares what mica convert makes with `transformers`: logits and tokens of random models of every architecture, and of a real one.

    scripts/test-convert BUILD [--folder FOLDER --gold LOGITS.json --tokens TOKENS.jsonl]

BUILD is a folder of a build with bin/mica and libmica.so. The Python that MICA_PYTHON names (default python3) needs torch, transformers and
tokenizers: pip install torch transformers. Without them the exit code is 77. Each model is made with save_pretrained(), its tokenizer
trained on the documentation with the library `tokenizers`; then mica convert, and for some texts the same tokens, and logits whose
largest difference is at most 1/1000 of their range (an F16 cache, which transformers does not have, makes most of it).

--folder: a real model, converted to F16. --gold and --tokens are files of tests/data/gold: how often the token that they name is the most
probable, and whether texts have their tokens.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOUND = 1e-3
LENGTH = 40
PREFIX = "\u2581"
TEXTS = ["The sheriff  is in the inn.\n\n\tand 12345 others, don't you know?", "caf\u00e9 na\u00efve \u6771\u4eac \U0001F642\U0001F468\u200D\U0001F469\u200D\U0001F467 e\u0301 \u00a0x",
         "def f(x):\n    return x ** 2  # it's\r\n\r\n", " leading, trailing ", "I'LL we'Ve A1B22C333 $%^&*() ..."]
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def libraries():
    try:
        import tokenizers
        import torch
        import transformers
        return torch, transformers, tokenizers
    except ImportError as e:
        print(f"skipped: {e} (pip install torch transformers)", file=sys.stderr)
        return sys.exit(77)


# ---- Tokenizers ----

def corpus():
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
        with open(path, encoding="utf-8") as f:
            yield from f


def byte_level(lib, normalizer, splits, whole):
    words = lib.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not any(isinstance(s, lib.pre_tokenizers.Split) for s in splits))
    tokenizer = lib.Tokenizer(lib.models.BPE(ignore_merges=whole))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = lib.pre_tokenizers.Sequence([*splits, words]) if splits else words
    tokenizer.decoder = lib.decoders.ByteLevel()
    trainer = lib.trainers.BpeTrainer(vocab_size=600, special_tokens=["<s>", "</s>"], show_progress=False,
                                      initial_alphabet=lib.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def sentencepiece(lib, prefix):
    """As converters of SentencePiece models make it: every way to put a piece together, the best pieces first."""
    spaces = lib.normalizers.Replace(" ", PREFIX)
    learner = lib.Tokenizer(lib.models.BPE())
    learner.normalizer = spaces
    learner.pre_tokenizer = lib.pre_tokenizers.Split(lib.Regex(PREFIX + "*[^" + PREFIX + "]+"), "isolated")
    learner.train_from_iterator(corpus(), lib.trainers.BpeTrainer(vocab_size=500, show_progress=False))
    pieces = [p for p, _ in sorted(learner.get_vocab().items(), key=lambda x: x[1])]
    vocab = {p: i for i, p in enumerate(["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *pieces])}
    merges = [(p[:k], p[k:]) for p in pieces for k in range(1, len(p)) if p[:k] in vocab and p[k:] in vocab]
    tokenizer = lib.Tokenizer(lib.models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = lib.normalizers.Sequence([lib.normalizers.Prepend(PREFIX), spaces]) if prefix else spaces
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = lib.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def make_tokenizer(lib, kind):
    split = lib.pre_tokenizers.Split
    digits = lib.pre_tokenizers.Digits(individual_digits=True)
    return {"gpt-2": lambda: byte_level(lib, None, [], False), "smollm": lambda: byte_level(lib, None, [digits], False),
            "llama-3": lambda: byte_level(lib, None, [split(lib.Regex(CL100K % "{1,3}"), "isolated")], True),
            "qwen": lambda: byte_level(lib, lib.normalizers.NFC(), [split(lib.Regex(CL100K % ""), "isolated")], False),
            "llama-2": lambda: sentencepiece(lib, True), "gemma": lambda: sentencepiece(lib, False)}[kind]()


# ---- Models ----

def configurations(tf, vocab):
    base = dict(vocab_size=vocab, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=None, initializer_range=0.2)
    gemma = dict(base, head_dim=16, query_pre_attn_scalar=16, sliding_window=16, num_hidden_layers=7, tie_word_embeddings=True)
    llama3 = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 64}
    long = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 32, "short_factor": [1.0 + i / 10 for i in range(8)],
            "long_factor": [1.5 + i * 3 / 4 for i in range(8)]}
    return {
        "llama": ("smollm", lambda: tf.LlamaConfig(**base, tie_word_embeddings=False, attention_bias=False)),
        "llama, SentencePiece": ("llama-2", lambda: tf.LlamaConfig(**base, tie_word_embeddings=True)),
        "llama 3": ("llama-3", lambda: tf.LlamaConfig(**base, tie_word_embeddings=True, rope_parameters=llama3)),
        "mistral": ("llama-2", lambda: tf.MistralConfig(**base, head_dim=24, sliding_window=None)),
        "qwen2": ("qwen", lambda: tf.Qwen2Config(**base, tie_word_embeddings=True)),
        "qwen3": ("qwen", lambda: tf.Qwen3Config(**base, head_dim=32)),
        "gemma2": ("gemma", lambda: tf.Gemma2Config(**gemma, attn_logit_softcapping=5.0, final_logit_softcapping=8.0)),
        "gemma3": ("gemma", lambda: tf.Gemma3TextConfig(**gemma)),
        "phi3": ("gpt-2", lambda: tf.Phi3Config(**base, sliding_window=None)),
        "phi3, longrope": ("gpt-2", lambda: tf.Phi3Config(**base, sliding_window=None, original_max_position_embeddings=32, rope_parameters=long)),
    }


def build(torch, tf, config):
    torch.manual_seed(0)
    model = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:  # norms that all say 1 hide mistakes
            parameter += 0.25 * torch.randn_like(parameter)
    return model


class Tool:
    """A build: its program, and its library through the Python package."""

    def __init__(self, folder):
        self.program = os.path.join(folder, "bin", "mica")
        os.environ["MICA_LIBRARY"] = os.path.join(folder, "libmica.so")
        sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
        import mica
        self.mica = mica

    def convert(self, folder, out, *options):
        p = subprocess.run([self.program, "convert", folder, out, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if p.returncode:
            sys.exit(f"mica convert {folder}: {p.stderr.strip()}")
        return p.stdout.strip()


def worst_difference(torch, model, converted, tokens):
    want = model(torch.tensor([tokens]), use_cache=False).logits[0]
    worst = 0.0
    with converted.session(n_ctx=64) as session:
        for i in range(len(tokens)):
            session.sync(tokens[:i + 1])
            worst = max(worst, float((torch.tensor(list(session.logits())) - want[i]).abs().max()))
    return worst / float(want.max() - want.min())


def compare_tokens(tokenizer, converted):
    return sum(tokenizer.encode(text).ids == converted.tokenize(text) for text in TEXTS)


def check_model(tool, torch, tf, lib, folder, name, kind, make_config, dtype):
    tokenizer = make_tokenizer(lib, kind)
    config = make_config(tokenizer.get_vocab_size())
    build(torch, tf, config).to(dtype).save_pretrained(folder, max_shard_size="100KB")
    model = tf.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    out = os.path.join(folder, "out.gguf")
    tool.convert(folder, out, "--type", "f32")
    parts = len(glob.glob(os.path.join(folder, "*.safetensors")))
    rng = random.Random(1)
    tokens = [1] + [rng.randrange(3, config.vocab_size) for _ in range(LENGTH - 1)]
    with tool.mica.Model(out) as converted:
        same = compare_tokens(tokenizer, converted)
        worst = worst_difference(torch, model, converted, tokens)
    good = worst <= BOUND and same == len(TEXTS)
    print(f"{name:22} {str(dtype)[6:]:9} {parts:5}  {kind:8} {same} of {len(TEXTS)}  {worst:.1e}{'' if good else '  WRONG'}", flush=True)
    return good


def check_random(tool):
    torch, tf, lib = libraries()
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    tf.logging.set_verbosity_error()
    tf.logging.disable_progress_bar()
    print(f"torch {torch.__version__.split('+')[0]}, transformers {tf.__version__}, tokenizers {lib.__version__}")
    print("model                  weights   parts  splits   tokens  difference of logits, part of their range")
    good = True
    for i, name in enumerate(configurations(tf, 1)):
        kind = configurations(tf, 1)[name][0]
        with tempfile.TemporaryDirectory() as folder:
            good &= check_model(tool, torch, tf, lib, folder, name, kind, lambda vocab, name=name: configurations(tf, vocab)[name][1](),
                                (torch.float32, torch.bfloat16, torch.float16)[i % 3])
    return good


# ---- A real model ----

def check_real(tool, folder, gold, tokens):
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "real.gguf")
        print(tool.convert(folder, out, "--type", "f16").replace(out, "real.gguf"))
        with tool.mica.Model(out) as model:
            same, n = real_tokens(model, tokens)
            print(f"texts with the tokens of {os.path.basename(tokens)}: {same} of {n}")
            top, total = real_top(model, gold)
    print(f"tokens of {os.path.basename(gold)} that are the most probable: {top} of {total} ({100 * top / total:.1f} %)")
    return same == n and top >= 0.95 * total


def real_tokens(model, path):
    with open(path, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f if line.strip()]
    return sum(model.tokenize(r["prompt"], add_bos=False) == r["ids_plain"] for r in rows), len(rows)


def real_top(model, path):
    with open(path, encoding="utf-8") as f:
        prompts = json.load(f)["prompts"]
    top = total = 0
    with model.session(n_ctx=2048) as session:
        for p in prompts:
            if not p["ids_prompt"]:  # nothing to predict the first token from
                continue
            scores = session.score(p["ids_prompt"] + p["greedy_ids"], len(p["ids_prompt"]))
            top += sum(s.greedy for s in scores)
            total += len(scores)
    return top, total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--folder")
    parser.add_argument("--gold")
    parser.add_argument("--tokens")
    o = parser.parse_args()
    tool = Tool(os.path.abspath(o.build))
    good = check_random(tool) if not o.folder else check_real(tool, o.folder, o.gold, o.tokens)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
