"""Writes a transformers model as a GGUF file of F32 tensors, with the names and keys that GGUF models in the wild have."""
import math

import gguf
import numpy as np
from tiny_vocab import write_bpe, write_spm

LAYER_NAMES = {  # of a llama-like layer; gemma's four norms are renamed in tensor_name()
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
}
GEMMA_NORMS = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
               "post_feedforward_layernorm": "post_ffw_norm"}


def tensor_name(name, is_gemma):
    stem, kind = name.rsplit(".", 1)
    if not stem.startswith("model.layers."):
        return {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}[stem] + "." + kind
    layer, part = stem[len("model.layers."):].split(".", 1)
    names = {**LAYER_NAMES, **GEMMA_NORMS} if is_gemma else LAYER_NAMES
    return f"blk.{layer}.{names[part]}.{kind}"


def interleave_halves(weight, n_heads):
    """Rows of each head from (all first members of the rotated pairs, all second members) to pair after pair."""
    rows, columns = weight.shape
    return weight.reshape(n_heads, 2, rows // n_heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def llama3_factors(rope, head_dim):
    """Divisors of the rotation frequencies: 1 for short wavelengths, `factor` for long ones, a blend between."""
    trained = rope["original_max_position_embeddings"]
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    out = []
    for i in range(0, head_dim, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / head_dim)
        blend = min(max((trained / wavelength - low) / (high - low), 0.0), 1.0)
        out.append(1 / ((1 - blend) / factor + blend))
    return np.array(out, dtype=np.float32)


def write_shape(writer, arch, config):
    head_dim = getattr(config, "head_dim", None)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if head_dim and arch not in ("qwen2", "phi3"):
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if arch == "llama":
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(head_dim or config.hidden_size // config.num_attention_heads)
    if arch in ("gemma2", "gemma3", "phi3"):
        writer.add_sliding_window(config.sliding_window or 0)
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def write_rope(writer, arch, config):
    rope = config.rope_parameters
    if arch == "gemma3":
        local, rope = rope["sliding_attention"], rope["full_attention"]
        if local["rope_theta"] != 10000:  # the default; older files never have the key
            writer.add_float32("gemma3.rope.freq_base_swa", local["rope_theta"])
    if arch != "gemma2":  # gemma2 files carry no rope keys: the base is always 10000
        writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, config.hidden_size // config.num_attention_heads))
    if arch == "phi3":
        write_phi3_rope(writer, config, rope)


def write_phi3_rope(writer, config, rope):
    head_dim = config.hidden_size // config.num_attention_heads
    writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1.0)))
    trained = config.original_max_position_embeddings
    writer.add_rope_scaling_orig_ctx_len(trained)
    if rope["rope_type"] == "longrope":
        growth = config.max_position_embeddings / trained
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(growth) / math.log(trained)))
        writer.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], dtype=np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], dtype=np.float32))


def write_tensors(writer, arch, config, state):
    is_gemma = arch.startswith("gemma")
    for name, tensor in state.items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        data = tensor.detach().numpy().astype(np.float32)
        if is_gemma and name.endswith("norm.weight"):
            data = data + np.float32(1)  # gemma multiplies by (1 + weight); files hold the sum
        if arch == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            data = interleave_halves(data, heads)
        writer.add_tensor(tensor_name(name, is_gemma), np.ascontiguousarray(data))


def write_model(path, name, arch, vocab, config, state):
    """vocab: "spm", or the name of the pre-tokenizer of a byte-level BPE."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name(f"tiny {name}")
    write_shape(writer, arch, config)
    if vocab == "spm":
        write_spm(writer, add_space_prefix=not arch.startswith("gemma"))
    else:
        write_bpe(writer, vocab)
    write_rope(writer, arch, config)
    write_tensors(writer, arch, config, state)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
