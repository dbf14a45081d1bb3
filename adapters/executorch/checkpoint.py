"""A Hugging Face folder under the names that ExecuTorch's exporter reads: model.pth and params.json.

    checkpoint.py HF_FOLDER OUTPUT_FOLDER

The exporter's own readers for these models want another package (torchtune). Rows of Q and K stay in Hugging Face's order,
which the exporter follows with use_hf_rope.
"""
import json
import os
import re
import sys

import torch
from safetensors.torch import load_file

TOP = {"model.embed_tokens.weight": "tok_embeddings.weight", "model.norm.weight": "norm.weight",
       "lm_head.weight": "output.weight"}
LAYER = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
         "self_attn.o_proj": "attention.wo", "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2", "mlp.up_proj": "feed_forward.w3"}


def renamed(name):
    if name in TOP:
        return TOP[name]
    index, part, kind = re.fullmatch(r"model\.layers\.(\d+)\.(.+)\.(weight|bias)", name).groups()
    return f"layers.{index}.{LAYER[part]}.{kind}"


def main(folder, output):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        c = json.load(f)
    weights = {renamed(name): value for name, value in load_file(os.path.join(folder, "model.safetensors")).items()}
    weights.setdefault("output.weight", weights["tok_embeddings.weight"])
    torch.save(weights, os.path.join(output, "model.pth"))
    params = {"dim": c["hidden_size"], "hidden_dim": c["intermediate_size"], "ffn_dim_multiplier": 1,
              "n_heads": c["num_attention_heads"], "n_kv_heads": c["num_key_value_heads"], "head_dim": c["head_dim"],
              "n_layers": c["num_hidden_layers"], "norm_eps": c["rms_norm_eps"], "rope_theta": c["rope_theta"],
              "use_scaled_rope": False, "vocab_size": c["vocab_size"], "use_hf_rope": True,
              "attention_qkv_bias": any(name.endswith("wq.bias") for name in weights)}
    with open(os.path.join(output, "params.json"), "w", encoding="utf-8") as f:
        json.dump(params, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
