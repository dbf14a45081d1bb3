"""The forward pass of every supported architecture in float32 numpy, read from a GGUF file alone.

A second opinion, written for clarity: it shares no code with the engine, nor with `transformers`. It serves make_reference.py,
and, run as a program, checks that the tiny models' files say the same as transformers' logits in index.json:

    python3 forward.py        needs gguf and numpy; exit status 1 and the model's name where they differ

It also writes NAME.kv16.bin beside NAME.logits.bin: the logits with keys and values rounded to F16, as the engine's cache holds
them. That rounding alone moves logits by up to 1e-3 of their range; against these files the engine can be held to far less.
"""
import json
import os
import sys

import gguf
import numpy as np

F = np.float32


class Model:
    """Keys and tensors of a file. A tensor is decoded each time it is asked for: memory stays small, layers are used once."""

    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)
        self.tensors = {t.name: t for t in self.reader.tensors}
        self.arch = self.key("general.architecture")
        self.n_layers = self.own("block_count")
        self.n_heads = self.own("attention.head_count")
        self.n_kv_heads = self.own("attention.head_count_kv", self.n_heads)
        self.head_dim = self.own("attention.key_length", self.own("embedding_length") // self.n_heads)
        self.rope_dim = self.own("rope.dimension_count", self.head_dim)
        self.window = self.own("attention.sliding_window", 0) if self.arch in ("gemma2", "gemma3") else 0
        self.is_gemma = self.arch.startswith("gemma")

    def key(self, name, default=None):
        return self.reader.fields[name].contents() if name in self.reader.fields else default

    def own(self, name, default=None):
        return self.key(f"{self.arch}.{name}", default)

    def tensor(self, name):
        t = self.tensors[name]
        return gguf.quants.dequantize(t.data, t.tensor_type).astype(F)

    def rows(self, name, indices):
        t = self.tensors[name]
        return gguf.quants.dequantize(t.data[indices], t.tensor_type).astype(F)

    def norm(self, x, name):
        eps = F(self.own("attention.layer_norm_rms_epsilon"))
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * self.tensor(name + ".weight")

    def linear(self, x, name):
        y = x @ self.tensor(name + ".weight").T
        return y + self.tensor(name + ".bias") if name + ".bias" in self.tensors else y

    def is_local(self, layer):
        """Whether a layer sees the sliding window only. Gemma 2: every second from 0; Gemma 3: all but every sixth."""
        return bool(self.window) and (layer + 1) % {"gemma2": 2, "gemma3": 6}[self.arch] != 0


def rotation(m, layer, n, n_ctx):
    """cos and sin, [position][pair]; both carry the attention factor of longrope."""
    base, scale = m.own("rope.freq_base", 10000.0), 1.0
    if m.own("rope.scaling.type") == "linear":
        scale = 1.0 / m.own("rope.scaling.factor")
    if m.arch == "gemma3" and m.is_local(layer):
        base, scale = m.own("rope.freq_base_swa", 10000.0), 1.0
    factors = np.ones(m.rope_dim // 2)
    if "rope_freqs.weight" in m.tensors:
        factors = m.tensor("rope_freqs.weight").astype(np.float64)
    if "rope_factors_long.weight" in m.tensors:
        kind = "long" if n_ctx > m.own("rope.scaling.original_context_length") else "short"
        factors = m.tensor(f"rope_factors_{kind}.weight").astype(np.float64)
    frequency = scale / (float(base) ** (np.arange(0, m.rope_dim, 2) / m.rope_dim) * factors)
    angle = np.arange(n)[:, None] * frequency
    gain = m.own("rope.scaling.attn_factor", 1.0)
    return (gain * np.cos(angle)).astype(F), (gain * np.sin(angle)).astype(F)


def rotate(m, x, cos, sin):
    """x: [position][head][dimension]. llama files hold each pair side by side, all others a half apart."""
    half = m.rope_dim // 2
    out = x.copy()
    first = slice(0, m.rope_dim, 2) if m.arch == "llama" else slice(0, half)
    second = slice(1, m.rope_dim, 2) if m.arch == "llama" else slice(half, m.rope_dim)
    a, b, c, s = x[..., first], x[..., second], cos[:, None, :], sin[:, None, :]
    out[..., first], out[..., second] = a * c - b * s, b * c + a * s
    return out


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def soft_cap(x, cap):
    return F(cap) * np.tanh(x / F(cap)) if cap else x


def attention(m, x, layer, n_ctx, cache):
    n, p = len(x), f"blk.{layer}."
    if p + "attn_qkv.weight" in m.tensors:
        parts = np.split(m.linear(x, p + "attn_qkv"), np.cumsum([m.n_heads, m.n_kv_heads])[:2] * m.head_dim, axis=1)
    else:
        parts = [m.linear(x, p + name) for name in ("attn_q", "attn_k", "attn_v")]
    q, k, v = (part.reshape(n, -1, m.head_dim) for part in parts)
    if p + "attn_q_norm.weight" in m.tensors:
        q, k = m.norm(q, p + "attn_q_norm"), m.norm(k, p + "attn_k_norm")
    cos, sin = rotation(m, layer, n, n_ctx)
    q, k = rotate(m, q, cos, sin), rotate(m, k, cos, sin)
    k, v = k.astype(cache).astype(F), v.astype(cache).astype(F)
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    hidden = (distance < 0) | ((distance >= m.window) if m.is_local(layer) else False)
    out = np.empty_like(q)
    for head in range(m.n_heads):
        group = head // (m.n_heads // m.n_kv_heads)
        scores = soft_cap(q[:, head] @ k[:, group].T / F(np.sqrt(m.head_dim)), m.own("attn_logit_softcapping"))
        out[:, head] = softmax(np.where(hidden, F(-np.inf), scores)) @ v[:, group]
    return m.linear(out.reshape(n, -1), p + "attn_output")


def feed_forward(m, x, layer):
    p = f"blk.{layer}."
    if p + "ffn_gate.weight" in m.tensors:
        gate, up = m.linear(x, p + "ffn_gate"), m.linear(x, p + "ffn_up")
    else:
        gate, up = np.split(m.linear(x, p + "ffn_up"), 2, axis=1)
    if m.is_gemma:
        gate = F(0.5) * gate * (1 + np.tanh(F(np.sqrt(2 / np.pi)) * (gate + F(0.044715) * gate ** 3)))
    else:
        gate = gate / (1 + np.exp(-gate))
    return m.linear(gate * up, p + "ffn_down")


def forward(m, tokens, n_ctx, n_last=None, cache=F):
    """Logits, [position][vocabulary], of the last n_last positions (all by default); keys and values are rounded to `cache`."""
    x = m.rows("token_embd.weight", tokens)
    if m.is_gemma:
        x = x * F(np.sqrt(m.own("embedding_length")))
    for layer in range(m.n_layers):
        p = f"blk.{layer}."
        y = attention(m, m.norm(x, p + "attn_norm"), layer, n_ctx, cache)
        x = x + (m.norm(y, p + "post_attention_norm") if m.is_gemma else y)
        y = feed_forward(m, m.norm(x, p + "ffn_norm"), layer)
        x = x + (m.norm(y, p + "post_ffw_norm") if m.is_gemma else y)
    x = m.norm(x[-n_last if n_last else None:], "output_norm")
    logits = m.linear(x, "output" if "output.weight" in m.tensors else "token_embd")
    return soft_cap(logits, m.own("final_logit_softcapping"))


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "index.json"), encoding="ascii") as f:
        entries = json.load(f)["models"]
    failed = []
    for entry in entries:
        model = Model(os.path.join(folder, entry["file"]))
        rows = np.fromfile(os.path.join(folder, entry["logits"]), "<f4").reshape(-1, entry["vocab"])
        rounded = [forward(model, run["tokens"], run["n_ctx"], cache=np.float16) for run in entry["runs"]]
        np.concatenate(rounded).astype("<f4").tofile(os.path.join(folder, entry["name"] + ".kv16.bin"))
        for run in entry["runs"]:
            expected = rows[run["first_row"]:run["first_row"] + len(run["tokens"])]
            distance = float(np.abs(forward(model, run["tokens"], run["n_ctx"]) - expected).max())
            largest = np.abs(expected).max()
            print(f"{entry['name']:14} n_ctx {run['n_ctx']:3}  largest difference {distance:.2e} of {largest:.1f}")
            if not distance < 1e-3:
                failed.append(entry["name"])
    print("differ: " + ", ".join(failed) if failed else f"{len(entries)} models agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
