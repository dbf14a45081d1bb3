"""Turns a GGUF file into a Hugging Face folder with the same weights, which the converters of other runtimes read.

    gguf_to_hf.py MODEL.gguf FOLDER

Every tensor is decoded to 32-bit floats, which hold the values of all GGUF formats exactly; nothing is rounded. What the file
format changed is undone: the order of rows in Q and K (llama), the 1 added to norms (gemma3). Needs gguf and numpy.
"""
import json
import os
import struct
import sys

import gguf
import numpy as np

import gguf_tokenizer

SHARED = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
          "output.weight": "lm_head.weight"}
LAYER = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "attn_norm": "input_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
# What ffn_norm is called depends on whether there is a norm behind the attention, too.
LAYER_NORMS = {"llama": {"ffn_norm": "post_attention_layernorm"}, "qwen2": {"ffn_norm": "post_attention_layernorm"},
               "gemma3": {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
                          "post_ffw_norm": "post_feedforward_layernorm"}}
CLASSES = {"llama": ("LlamaForCausalLM", "llama"), "qwen2": ("Qwen2ForCausalLM", "qwen2"),
           "gemma3": ("Gemma3ForCausalLM", "gemma3_text")}
# An output matrix this close to the embedding (cosine of the same rows) is the same matrix in another format.
SAME_MATRIX = 0.98


class ConversionError(Exception):
    """One sentence for the person who ran the script."""


class Source:
    """Metadata and tensors of a GGUF file."""

    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)
        self.arch = self.get("general.architecture")
        if self.arch not in CLASSES:
            raise ConversionError(f"the architecture {self.arch} is not known here; there are {', '.join(CLASSES)}")
        self.tensors = {t.name: t for t in self.reader.tensors}

    def get(self, key, default=None):
        field = self.reader.fields.get(key.replace("{arch}", getattr(self, "arch", "")))
        return default if field is None else field.contents()

    def need(self, key):
        value = self.get(key)
        if value is None:
            raise ConversionError(f"the file has no {key}")
        return value

    def values(self, name):
        """-> float32 [rows, columns] or [columns]"""
        tensor = self.tensors[name]
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)


def hf_name(name, arch):
    if name in SHARED:
        return SHARED[name]
    block, index, part, kind = name.split(".")
    table = {**LAYER, **LAYER_NORMS[arch]}
    if block != "blk" or part not in table or kind not in ("weight", "bias"):
        raise ConversionError(f"the tensor {name} is not known here")
    return f"model.layers.{index}.{table[part]}.{kind}"


def undo_changes(source, name, values):
    if source.arch == "llama" and name.endswith(("attn_q.weight", "attn_k.weight")):
        # The file pairs rows 2i and 2i+1 for rotation; Hugging Face pairs i with i + head_dim / 2.
        key = "{arch}.attention.head_count" if "attn_q" in name else "{arch}.attention.head_count_kv"
        heads, (rows, columns) = source.need(key), values.shape
        return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
    if source.arch == "gemma3" and name.endswith("norm.weight"):
        return values - np.float32(1)
    return values


def same_matrix(source):
    """True if output.weight is the embedding in another format: the cosine of 512 rows spread over the vocabulary."""
    a, b = source.values("token_embd.weight"), source.values("output.weight")
    rows = np.linspace(0, len(a) - 1, 512).astype(int)
    a, b = a[rows], b[rows]
    cosine = (a * b).sum(1) / np.maximum(np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1), 1e-20)
    return float(np.median(cosine)) > SAME_MATRIX


def plan_tensors(source):
    """-> {name in the folder: name in the file}, and whether the output matrix is the embedding."""
    plan = {hf_name(name, source.arch): name for name in source.tensors if name != "rope_freqs.weight"}
    if "rope_freqs.weight" in source.tensors:
        raise ConversionError("scaled rotation (rope_freqs) cannot be expressed here")
    tied = "lm_head.weight" not in plan
    if not tied and same_matrix(source):
        # Some runtimes read one matrix for both. The output's format is the more precise one.
        plan["model.embed_tokens.weight"] = plan.pop("lm_head.weight")
        tied = True
    return plan, tied


def write_safetensors(path, source, plan):
    """The format: 8 bytes of length, a JSON header with offsets, the data. One tensor is in memory at a time."""
    header, offset = {}, 0
    for target in sorted(plan):
        tensor = source.tensors[plan[target]]
        shape = [int(n) for n in reversed(tensor.shape)]
        size = 4 * int(np.prod(shape))
        header[target] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for target in sorted(plan):
            values = undo_changes(source, plan[target], source.values(plan[target]))
            f.write(np.ascontiguousarray(values, dtype="<f4").tobytes())


def make_config(source, plan, tied):
    heads = source.need("{arch}.attention.head_count")
    hidden = source.need("{arch}.embedding_length")
    theta = float(source.get("{arch}.rope.freq_base", 10000.0))
    architecture, model_type = CLASSES[source.arch]
    config = {
        "architectures": [architecture], "model_type": model_type, "hidden_size": hidden,
        "num_hidden_layers": source.need("{arch}.block_count"), "num_attention_heads": heads,
        "num_key_value_heads": source.get("{arch}.attention.head_count_kv", heads),
        "head_dim": source.get("{arch}.attention.key_length", hidden // heads),
        "intermediate_size": source.need("{arch}.feed_forward_length"),
        "rms_norm_eps": float("%.7g" % source.need("{arch}.attention.layer_norm_rms_epsilon")),
        "max_position_embeddings": source.need("{arch}.context_length"), "rope_theta": theta,
        "vocab_size": int(source.tensors["token_embd.weight"].shape[1]), "tie_word_embeddings": tied,
        "attention_bias": source.arch == "llama" and any(name.endswith("q_proj.bias") for name in plan),
        "attention_dropout": 0.0, "hidden_act": "silu", "initializer_range": 0.02, "use_cache": True, "dtype": "float32",
        "torch_dtype": "float32", **gguf_tokenizer.special_ids(source)}
    if source.arch == "gemma3":
        config.update(gemma3_config(source, config))
    else:
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}
        config["mlp_bias"] = False
    return config


def gemma3_config(source, config):
    """Five layers that see a window, then one that sees all: Gemma 3's fixed pattern, which the file does not repeat."""
    layers = config["num_hidden_layers"]
    local, full = {"rope_type": "default", "rope_theta": 10000.0}, {"rope_type": "default", "rope_theta": config["rope_theta"]}
    return {"hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": config["head_dim"],
            "sliding_window": source.need("{arch}.attention.sliding_window"), "sliding_window_pattern": 6,
            "rope_local_base_freq": 10000.0, "rope_parameters": {"sliding_attention": local, "full_attention": full},
            "layer_types": ["sliding_attention" if (i + 1) % 6 else "full_attention" for i in range(layers)],
            "attn_logit_softcapping": None, "final_logit_softcapping": None}


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")


def convert(path, folder):
    """-> facts for the recipe"""
    source = Source(path)
    plan, tied = plan_tensors(source)
    os.makedirs(folder, exist_ok=True)
    config = make_config(source, plan, tied)
    write_json(folder, "config.json", config)
    ids = gguf_tokenizer.special_ids(source)
    write_json(folder, "generation_config.json", {"do_sample": False, **ids})
    for name, value in gguf_tokenizer.files(source).items():
        write_json(folder, name, value)
    write_safetensors(os.path.join(folder, "model.safetensors"), source, plan)
    facts = {"architecture": source.arch, "tied": tied,
             "untied_in_file": "output.weight" in source.tensors,
             "parameters": int(sum(np.prod(source.tensors[name].shape) for name in plan.values())),
             "vocab_size": config["vocab_size"]}
    write_json(folder, "mica_source.json", facts)
    return facts


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    try:
        print(json.dumps(convert(*arguments)))
    except ConversionError as e:
        sys.exit(f"gguf_to_hf: {e}")


if __name__ == "__main__":
    main(sys.argv[1:])
