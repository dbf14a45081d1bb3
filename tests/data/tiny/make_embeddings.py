"""Records the states after the last norm that the `transformers` library computes for the prompts of the tiny models.

    python3 make_embeddings.py      needs what make_tiny.py needs; after it

Writes embeddings.json: for each model the list of its runs, in the order of index.json, each with the states' mean over all tokens
and the last token's state. That the models rebuilt here are those of the .gguf files is checked by their logits.
"""
import json
import os

import make_tiny
import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def rounded(values):
    return [float(f"{v:.7g}") for v in values]


def states_of(model, tokens):
    with torch.no_grad():
        return model.model(torch.tensor([tokens]), use_cache=False).last_hidden_state[0].double().numpy()


def runs_of(entry, model):
    want = np.fromfile(os.path.join(HERE, entry["logits"]), "<f4").reshape(-1, entry["vocab"])
    for run in entry["runs"]:
        rows = want[run["first_row"]:run["first_row"] + len(run["tokens"])]
        if not np.allclose(make_tiny.logits_of(model, run["tokens"]), rows, atol=1e-4):
            raise SystemExit(f"{entry['name']}: this is another model than the one whose logits were recorded")
        states = states_of(model, run["tokens"])
        yield dict(mean=rounded(states.mean(axis=0)), last=rounded(states[-1]))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with open(os.path.join(HERE, "index.json"), encoding="ascii") as f:
        entries = {e["name"]: e for e in json.load(f)["models"]}
    lines = []
    for seed, name in enumerate(make_tiny.MODELS):
        arch, _, make_config, _ = make_tiny.MODELS[name]
        model = make_tiny.build(make_config(), arch.startswith("gemma"), make_tiny.SEEDS.get(name, seed))
        lines.append(f"{json.dumps(name)}: {json.dumps(list(runs_of(entries[name], model)))}")
    with open(os.path.join(HERE, "embeddings.json"), "w", encoding="ascii") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
