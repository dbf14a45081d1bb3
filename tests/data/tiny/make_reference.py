"""Records what the three real test models compute when nothing but their weights is quantised.

    python3 make_reference.py --models FOLDER [--out ../reference]      needs gguf and numpy, about 3 GB of memory

The weights are decoded to float32 and the architecture is run in float32 (forward.py). An engine that quantises activations as
well differs from this by its own rounding; one that decodes weights to floats should agree to about 1e-3. Each model gives
NAME.json:

    tokens       the prompt, begin-of-text included where the model has one
    top          [id, logit] of the 50 largest logits after the last token, falling
    sampled      ids: 64 evenly spaced vocabulary ids; rows: the logits at these ids after each of the last 4 tokens
    range        [smallest, largest] logit after the last token
    log_sum_exp  of all logits after the last token: log-probability = logit - log_sum_exp
    nll          negative log-likelihood of tokens[1], tokens[2], ... given those before
"""
import argparse
import json
import os

import numpy as np
from forward import Model, forward

PROMPT = '{"name": "mica", "version": "0.1.0", "deps": [1, 2.5e-3, null, true'
TOKENS = {  # of PROMPT
    "smollm2-135m-instruct-q4_1": [
        39428, 1245, 1799, 476, 93, 4127, 1002, 476, 5903, 1799, 476, 32, 30, 33, 30, 32, 1002, 476, 6617, 99, 1799, 933, 33,
        28, 216, 34, 30, 37, 85, 29, 35, 28, 10034, 28, 2629],
    "gemma-3-270m-q4_k_m": [
        2, 14937, 1201, 1083, 623, 117757, 827, 623, 4406, 1083, 623, 236771, 236761, 236770, 236761, 236771, 827, 623, 157618,
        1083, 870, 236770, 236764, 236743, 236778, 236761, 236810, 236744, 236772, 236800, 236764, 2303, 236764, 1847],
    "qwen2.5-coder-0.5b-instruct-q4_k_m": [
        4913, 606, 788, 330, 76, 3001, 497, 330, 4366, 788, 330, 15, 13, 16, 13, 15, 497, 330, 72587, 788, 508, 16, 11, 220, 17,
        13, 20, 68, 12, 18, 11, 845, 11, 830],
}
TOP, SAMPLES, LAST = 50, 64, 4


def rounded(values):
    return [round(float(v), 5) for v in values]


def log_sum_exp(logits):
    logits = logits.astype(np.float64)
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max())


def record(name, path):
    tokens = TOKENS[name]
    logits = forward(Model(path), tokens, n_ctx=512)
    final = logits[-1]
    top = np.argsort(-final, kind="stable")[:TOP]
    ids = np.arange(SAMPLES) * (logits.shape[1] // SAMPLES)
    return {
        "model": name + ".gguf", "prompt": PROMPT, "tokens": tokens, "vocab": logits.shape[1],
        "top": [[int(i), round(float(final[i]), 5)] for i in top],
        "sampled": {"ids": [int(i) for i in ids], "rows": [rounded(row[ids]) for row in logits[-LAST:]]},
        "range": rounded([final.min(), final.max()]), "log_sum_exp": round(log_sum_exp(final), 5),
        "nll": rounded(log_sum_exp(row) - row[token] for row, token in zip(logits, tokens[1:])),
    }


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", required=True, help="folder of the models that scripts/fetch-models all fetches")
    parser.add_argument("--out", default=os.path.join(here, "..", "reference"))
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for name in TOKENS:
        entry = record(name, os.path.join(options.models, name + ".gguf"))
        with open(os.path.join(options.out, name + ".json"), "w", encoding="ascii") as f:
            json.dump(entry, f, separators=(", ", ": "))
            f.write("\n")


if __name__ == "__main__":
    main()
