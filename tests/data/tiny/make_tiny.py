"""Makes the tiny random-weight models of this folder, and what the `transformers` library computes with them.

    python3 make_tiny.py [--out FOLDER]    needs torch, transformers, gguf, numpy; the files are committed, the tests need none

For each model: NAME.gguf (F32 weights), NAME.logits.bin (little-endian float32, [row][vocabulary], one row for each prompt
position, runs after one another) and an entry in index.json:

    name, arch, file, logits      file names
    vocab                         columns of a row
    runs[]: n_ctx                 context length to open the session with (decides long or short factors in phi3's longrope)
            tokens                the prompt; row i holds the logits after tokens[0..i]
            first_row             of this run in the .bin
            greedy, greedy_margin tokens that follow at temperature 0, and the smallest distance of the best to the second logit

The dimensions are small, but every switch matters: windows are shorter than the prompt, weights are large enough that attention
is peaked and soft caps bend, norm weights differ from 1, rope scaling starts within the prompt, one epsilon is
large.
"""
import argparse
import json
import os

import numpy as np
import torch
import transformers as tf
from tiny_gguf import write_model
from tiny_vocab import SIZE

PROMPT_LENGTH, SHORT_LENGTH, GREEDY_LENGTH = 48, 19, 12  # 19 + 12 stay below the 32 of the short contexts
MIN_MARGIN, PROMPT_TRIES = 0.05, 40
BASE = dict(vocab_size=SIZE, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5, attention_dropout=0.0,
            pad_token_id=None, bos_token_id=None, eos_token_id=None)
GEMMA = dict(BASE, hidden_size=32, intermediate_size=64, head_dim=16, query_pre_attn_scalar=16, sliding_window=8,
             rms_norm_eps=1e-6, tie_word_embeddings=True)


def rope(kind="default", theta=10000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def long_rope(n, **more):
    return rope("longrope", original_max_position_embeddings=32, short_factor=[1.0 + 0.1 * i for i in range(n)],
                long_factor=[1.5 + 0.75 * i for i in range(n)], **more)


def gemma3_rope(full, local_theta=10000.0):
    return {"sliding_attention": rope(theta=local_theta), "full_attention": full}


LLAMA3_ROPE = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
LONG = dict(BASE, max_position_embeddings=256, original_max_position_embeddings=32)

# Other seeds than the running number: an F16 cache moves the logits of these weights by less than 1e-3 of their range.
SEEDS = {"phi4-mini": 116}

# name: (GGUF architecture, vocabulary, configuration, context lengths: one run each)
MODELS = {
    "llama": ("llama", "spm", lambda: tf.LlamaConfig(**BASE, tie_word_embeddings=False, rope_parameters=rope()), [64]),
    "llama3-rope": ("llama", "llama-bpe", lambda: tf.LlamaConfig(**BASE, tie_word_embeddings=True, rope_parameters=LLAMA3_ROPE),
                    [64]),
    "mistral": ("llama", "spm", lambda: tf.MistralConfig(**BASE, head_dim=24, sliding_window=None, tie_word_embeddings=False,
                                                         rope_parameters=rope(theta=1e6)), [64]),
    "qwen2": ("qwen2", "qwen2", lambda: tf.Qwen2Config(**dict(BASE, rms_norm_eps=1e-2), tie_word_embeddings=True,
                                                       rope_parameters=rope(theta=1e6)), [64]),
    "qwen3": ("qwen3", "qwen2", lambda: tf.Qwen3Config(**BASE, head_dim=32, tie_word_embeddings=True,
                                                       rope_parameters=rope(theta=1e6)), [64]),
    "gemma2": ("gemma2", "spm", lambda: tf.Gemma2Config(**dict(GEMMA, num_hidden_layers=4), attn_logit_softcapping=5.0,
                                                        final_logit_softcapping=8.0, rope_parameters=rope()), [64]),
    "gemma3": ("gemma3", "spm", lambda: tf.Gemma3TextConfig(**dict(GEMMA, num_hidden_layers=7),
                                                            rope_parameters=gemma3_rope(rope(theta=1e6))), [64]),
    "gemma3-linear": ("gemma3", "spm", lambda: tf.Gemma3TextConfig(
        **dict(GEMMA, num_hidden_layers=7), rope_parameters=gemma3_rope(rope("linear", 1e4, factor=8.0), 500.0)), [64]),
    "phi3": ("phi3", "spm", lambda: tf.Phi3Config(**BASE, original_max_position_embeddings=256, sliding_window=None,
                                                  tie_word_embeddings=False, rope_parameters=rope()), [64]),
    "phi3-longrope": ("phi3", "spm", lambda: tf.Phi3Config(**LONG, tie_word_embeddings=False, rope_parameters=long_rope(8)),
                      [64, 32]),
    "phi4-mini": ("phi3", "gpt-2", lambda: tf.Phi3Config(**LONG, tie_word_embeddings=True,
                                                         rope_parameters=long_rope(6, partial_rotary_factor=0.75)), [64, 32]),
}


def random_weight(name, shape, is_gemma, rng):
    values = rng.standard_normal(shape)
    if name.endswith("norm.weight") or "layernorm" in name:
        # what a layer adds must outweigh the embedding, or tied models only repeat their input
        center = 3 if is_gemma and "post_" in name else 1
        return 0.25 * values + center - (1 if is_gemma else 0)
    if name.endswith("bias"):
        return 0.5 * values
    if "embed_tokens" in name:
        return 0.5 * values  # also the output matrix of tied models: logits of standard deviation 0.5 * sqrt(hidden)
    gains = {"lm_head": 4.0, "q_proj": 1.6, "k_proj": 1.6, "qkv_proj": 1.6, "o_proj": 2.0, "down_proj": 2.0}
    return gains.get(name.split(".")[-2], 1.0) / np.sqrt(shape[1]) * values


def build(config, is_gemma, seed):
    model = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    rng = np.random.default_rng(seed)
    state = model.state_dict()
    for name in state:
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        state[name].copy_(torch.from_numpy(random_weight(name, tuple(state[name].shape), is_gemma, rng).astype(np.float32)))
    model.tie_weights()
    return model


def logits_of(model, tokens):
    """One whole pass without a cache: longrope picks its factors by the length of the pass."""
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()


def greedy(model, tokens):
    tokens, out, margin = list(tokens), [], np.inf
    for _ in range(GREEDY_LENGTH):
        row = logits_of(model, tokens)[-1]
        best, second = np.argsort(-row, kind="stable")[:2]
        margin = min(margin, float(row[best] - row[second]))
        out.append(int(best))
        tokens.append(int(best))
    return out, round(margin, 6)


def record(model, prompt, contexts):
    """One run for each context length: the whole prompt where it fits, else its beginning, with room for the greedy tokens."""
    runs, rows = [], []
    for n_ctx in contexts:
        tokens = prompt if n_ctx > PROMPT_LENGTH else prompt[:SHORT_LENGTH]
        following, margin = greedy(model, tokens)
        first_row = sum(len(r) for r in rows)
        runs.append(dict(n_ctx=n_ctx, tokens=tokens, first_row=first_row, greedy=following, greedy_margin=margin))
        rows.append(logits_of(model, tokens))
    return runs, np.concatenate(rows)


def is_telling(run):
    """Greedy tokens that differ among themselves, and that rounding (of an F16 cache, say) does not flip."""
    return run["greedy_margin"] >= MIN_MARGIN and len(set(run["greedy"])) >= 4


def make(name, out, seed):
    arch, vocab, make_config, contexts = MODELS[name]
    config = make_config()
    model = build(config, arch.startswith("gemma"), seed)
    write_model(os.path.join(out, name + ".gguf"), name, arch, vocab, config, model.state_dict())
    rng = np.random.default_rng(seed + 1000)
    bos = 1 if vocab == "spm" else SIZE - 4
    for _ in range(PROMPT_TRIES):
        prompt = [bos] + [int(t) for t in rng.integers(3, SIZE - 4, PROMPT_LENGTH - 1)]
        runs, rows = record(model, prompt, contexts)
        if all(is_telling(run) for run in runs):
            break
    else:
        raise SystemExit(f"{name}: none of {PROMPT_TRIES} prompts has a telling continuation")
    rows.astype("<f4").tofile(os.path.join(out, name + ".logits.bin"))
    return dict(name=name, arch=arch, file=name + ".gguf", logits=name + ".logits.bin", vocab=SIZE, runs=runs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)  # layers are initialised before their weights are replaced
    torch.set_grad_enabled(False)
    entries = [make(name, options.out, SEEDS.get(name, seed)) for seed, name in enumerate(MODELS)]
    made_with = f"torch {torch.__version__.split('+')[0]}, transformers {tf.__version__}, numpy {np.__version__}"
    with open(os.path.join(options.out, "index.json"), "w", encoding="ascii") as f:
        f.write(f'{{"made_with": {json.dumps(made_with)}, "models": [\n')
        f.write(",\n".join(json.dumps(e) for e in entries) + "\n]}\n")


if __name__ == "__main__":
    main()
