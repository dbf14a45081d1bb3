"""Makes a Hugging Face folder from a small GGUF file of F32 tensors, for the tests of mica convert: the inverse of what that does, written
on its own. Standard library only."""
import json
import os
import struct

from gguf_read import floats, read

TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj"}
GEMMA = {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
TYPES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma2": "gemma2", "gemma3": "gemma3_text", "phi3": "phi3"}
FACTORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
CONTRACTIONS, SPACES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3_SPLIT = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+" + SPACES
QWEN_SPLIT = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+" + SPACES
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)


class Source:
    """A GGUF file: its keys, without the architecture's name in front."""

    def __init__(self, path):
        self.keys, self.tensors = read(path)
        self.arch = self.keys["general.architecture"]
        self.gemma = self.arch.startswith("gemma")

    def get(self, key, default=None):
        return self.keys.get(f"{self.arch}.{key}", default)

    def token(self, key, default=None):
        return self.keys.get("tokenizer.ggml." + key, default)


# ---- Weights ----

def hf_name(source, name):
    if not name.startswith("blk."):
        stem, kind = name.rsplit(".", 1)
        return f"{TOP[stem]}.{kind}"
    _, layer, part, kind = name.split(".")
    if source.arch == "phi3" and part == "ffn_up":
        return f"model.layers.{layer}.mlp.gate_up_proj.weight"
    return f"model.layers.{layer}.{(dict(LAYER, **GEMMA) if source.gemma else LAYER)[part]}.{kind}"


def hf_values(source, name):
    """The numbers of a tensor, outermost dimension first, without what the file format changed."""
    values, dims = list(floats(source.tensors[name])), source.tensors[name][1]
    if source.gemma and name.endswith("norm.weight"):
        return [x - 1 for x in values]
    if source.arch != "llama" or not name.split(".")[-2] in ("attn_q", "attn_k"):
        return values
    cols = dims[0] if len(dims) == 2 else 1
    rows = [values[i:i + cols] for i in range(0, len(values), cols)]
    size = source.get("attention.key_length", source.get("embedding_length") // source.get("attention.head_count"))
    heads = [rows[i:i + size] for i in range(0, len(rows), size)]
    return [x for head in heads for row in head[0::2] + head[1::2] for x in row]  # first members of the pairs, then the second ones


def pack(values, dtype):
    data = struct.pack(f"<{len(values)}f", *values)
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    return data if dtype == "F32" else b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))  # BF16, cut off


def tensors(source, dtype):
    """-> {name: (dtype, shape, bytes)}"""
    return {hf_name(source, name): (dtype, t[1][::-1], pack(hf_values(source, name), dtype))
            for name, t in source.tensors.items() if name not in FACTORS}


def safetensors(entries):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, raw) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write_weights(folder, entries, parts=1):
    if parts == 1:
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(safetensors(entries))
        return
    names, where = sorted(entries), {}
    for i in range(parts):
        file = f"model-{i + 1:05}-of-{parts:05}.safetensors"
        chosen = names[i::parts]
        where.update({name: file for name in chosen})
        with open(os.path.join(folder, file), "wb") as f:
            f.write(safetensors({name: entries[name] for name in chosen}))
    write_json(folder, "model.safetensors.index.json", {"metadata": {"total_size": 0}, "weight_map": where})


# ---- config.json ----

def rope(source, style):
    """Both ways of saying it: rope_parameters, or rope_theta and rope_scaling."""
    theta, scaling = source.get("rope.freq_base", 10000.0), {}
    if source.get("rope.scaling.type") == "linear":
        scaling = {"rope_type": "linear", "factor": source.get("rope.scaling.factor")}
    if "rope_freqs.weight" in source.tensors:  # what tests/data/tiny/make_tiny.py chose
        scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    if "rope_factors_long.weight" in source.tensors:
        scaling = {"rope_type": "longrope", **{key: list(floats(source.tensors[f"rope_factors_{key[:-7]}.weight"]))
                                               for key in ("long_factor", "short_factor")}}
    if style == "old":
        if scaling:
            scaling["type"] = scaling.pop("rope_type")
        return {"rope_theta": theta, "rope_scaling": scaling or None, "rope_local_base_freq": source.get("rope.freq_base_swa", 10000.0)}
    whole = {"rope_type": "default", "rope_theta": theta, **scaling}
    if source.arch == "gemma3":
        local = {"rope_type": "default", "rope_theta": source.get("rope.freq_base_swa", 10000.0)}
        return {"rope_parameters": {"full_attention": whole, "sliding_attention": local}}
    return {"rope_parameters": whole}


def config(source, style="new"):
    heads = source.get("attention.head_count")
    dim = source.get("attention.key_length", source.get("embedding_length") // heads)
    c = {"architectures": ["?"], "model_type": TYPES[source.arch], "hidden_size": source.get("embedding_length"),
         "num_hidden_layers": source.get("block_count"), "num_attention_heads": heads, "head_dim": dim,
         "num_key_value_heads": source.get("attention.head_count_kv"), "intermediate_size": source.get("feed_forward_length"),
         "rms_norm_eps": source.get("attention.layer_norm_rms_epsilon"), "max_position_embeddings": source.get("context_length"),
         "tie_word_embeddings": "output.weight" not in source.tensors, "hidden_act": "silu", "sliding_window": None, **rope(source, style)}
    if source.gemma:
        c.update(hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=dim, sliding_window=source.get("attention.sliding_window"))
        c.update(attn_logit_softcapping=source.get("attn_logit_softcapping"), final_logit_softcapping=source.get("final_logit_softcapping"))
    if source.arch == "phi3":
        c.update(original_max_position_embeddings=source.get("rope.scaling.original_context_length"),
                 partial_rotary_factor=source.get("rope.dimension_count") / dim)
    return c


# ---- Tokenizer ----

def bytes_step(words):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": words}


def split_step(pattern):
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}, bytes_step(False)]}


SPLITS = {"gpt-2": (None, bytes_step(True)), "llama-bpe": (None, split_step(LLAMA3_SPLIT)), "qwen2": ({"type": "NFC"}, split_step(QWEN_SPLIT))}


def merges_of_scores(pieces, types, scores):
    """Every way to put a piece together from two others, the best pieces first."""
    known, merges = set(pieces), []
    for i in sorted((i for i, t in enumerate(types) if t == NORMAL), key=lambda i: (-scores[i], i)):
        p = pieces[i]
        merges += [[p[:k], p[k:]] for k in range(1, len(p)) if p[:k] in known and p[k:] in known]
    return merges


def tokenizer(source):
    pieces, types = source.token("tokens"), source.token("token_type")
    added = [{"id": i, "content": p, "normalized": False, "special": types[i] != USER}
             for i, p in enumerate(pieces) if types[i] in (UNKNOWN, CONTROL, USER)]
    model = {"type": "BPE", "vocab": {p: i for i, p in enumerate(pieces)}, "unk_token": None, "byte_fallback": False}
    t = {"version": "1.0", "added_tokens": added, "model": model, "post_processor": None}
    if source.token("model") == "gpt2":
        t["normalizer"], t["pre_tokenizer"] = SPLITS[source.token("pre")]
        model.update(merges=source.token("merges"), ignore_merges=source.token("pre") == "llama-bpe")
        return t
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    prefix = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, spaces]}
    t["normalizer"], t["pre_tokenizer"] = (prefix if source.token("add_space_prefix") else spaces), None
    model.update(unk_token=pieces[source.token("unknown_token_id")], byte_fallback=True, fuse_unk=True,
                 merges=merges_of_scores(pieces, types, source.token("scores")))
    if source.token("add_bos_token"):
        bos = pieces[source.token("bos_token_id")]
        t["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos, "type_id": 0}},
                                                                        {"Sequence": {"id": "A", "type_id": 0}}]}
    return t


def tokenizer_config(source):
    pieces = source.token("tokens")
    c = {"model_max_length": 1000000000000000019884624838656, "chat_template": source.keys.get("tokenizer.chat_template")}
    for name, key in {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}.items():
        i = source.token(key + "_token_id")
        if i is not None:
            c[name] = pieces[i] if name != "eos_token" else {"content": pieces[i], "special": True}
    return c


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f)


def write(path, folder, dtype="F32", parts=1, style="new"):
    """The folder of a GGUF file; returns what was read of that."""
    source = Source(path)
    os.makedirs(folder, exist_ok=True)
    write_json(folder, "config.json", config(source, style))
    write_json(folder, "tokenizer.json", tokenizer(source))
    write_json(folder, "tokenizer_config.json", tokenizer_config(source))
    write_weights(folder, tensors(source, dtype), parts)
    return source
