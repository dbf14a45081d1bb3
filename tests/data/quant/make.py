#!/usr/bin/env python3
"""Writes the expected data of tests/unit/test_quant.c with gguf-py, an implementation independent of ours.

Needs numpy and gguf (PyPI); run by hand, only when a format is added: python3 make.py
The files are raw and little-endian:

NAME.blocks   blocks of random bytes, with scales from a list of extremes in turn
NAME.floats   what they decode to, 4 bytes a weight
input.floats  weights for the encoders: ordinary, and chosen to hit ties, extremes and zeros
NAME.encoded  their blocks, for the formats whose reference encoder leaves no choice
"""
import pathlib
import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

HERE = pathlib.Path(__file__).parent
# name -> byte offsets of the halves in a block
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
    "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
}
EXACT = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]
# zeros, denormals (smallest, largest), smallest normal, 1 and neighbour, largest, infinities, NaN; of both signs
EXTREMES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC01, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00,
            0x7E00]


def random_blocks(name, rng):
    weights, size = GGML_QUANT_SIZES[T[name]]
    count = 240 if weights == 32 else 48
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    blocks[0], blocks[1], blocks[2], blocks[3] = 0x00, 0xFF, 0x55, 0xAA
    # every byte value in every field: a counter runs through one block, and backwards through the next
    flat = blocks[4:4 + 2 * (512 // size + 1)].reshape(-1)
    flat[:256], flat[256:512] = np.arange(256), np.arange(255, -1, -1)
    for i in range(8, count):
        for k, at in enumerate(HALVES[name]):
            scale = rng.normal(0, 0.05)
            half = EXTREMES[(i // 2 + 7 * k) % len(EXTREMES)] if i % 2 else int(np.float16(scale).view(np.uint16))
            blocks[i, at:at + 2] = half & 255, half >> 8
    bits = np.unpackbits(blocks, axis=1)
    assert bits.any(axis=0).all() and not bits.all(axis=0).any() and len(np.unique(blocks)) == 256
    return blocks


def float_rows(name, rng):
    """F32, F16, BF16: random bits, which hold denormals, infinities and NaN of every kind."""
    size = GGML_QUANT_SIZES[T[name]][1]
    return rng.integers(0, 256, (1, 2048 * size), dtype=np.uint8)


def rounding_rows(rng, levels, count):
    """Rows in which the reference's rounding (in double, then to float) and a plain one in float choose other levels."""
    largest = rng.normal(0, 1, (4000, 1)).astype(np.float32)
    inverse = np.float32(1) / (largest / np.float32(-levels))
    n = rng.integers(1, 2 * levels, (4000, 32))  # x * inverse + levels + 0.5 is half a unit of float below the integer n
    x = ((n - levels - 0.5 - np.spacing(np.float32(n - 0.5)) / 2.0) / inverse).astype(np.float32)
    x[:, :1] = largest
    in_float = np.trunc(x * inverse + np.float32(levels + 0.5))
    in_double = np.trunc((x.astype(np.float64) * inverse.astype(np.float64) + (levels + 0.5)).astype(np.float32))
    rows = x[(in_float != in_double).any(axis=1)]
    assert len(rows) >= count
    return rows[:count]


def encoder_input(rng):
    """32 weights a row. No row mixes +0 and -0, or is so small that 1 / d overflows: there numpy's results vary."""
    rows = [rng.normal(0, 0.02, (64, 32)), rng.standard_t(3, (32, 32))]
    for exponent in (-30, -24, -18, -12, 10, 16, 20, 60, 100):
        rows.append(rng.normal(0, 1, (2, 32)) * 2.0**exponent)
    ties = rng.integers(-16, 17, (24, 32)) / 2.0  # with -8 the scale is 1 (Q4_0), with -16 it is 1 (Q5_0): halves are ties
    ties[:, 5], ties[8:, 5], ties[16:, 5] = -8, -16, 127
    ties[16:] *= 1.0 + (ties[16:] != 127) * rng.integers(0, 7, (8, 32))
    ties[16:] = np.clip(ties[16:], -126.5, 127)
    rows += [ties, np.zeros((1, 32)), np.full((1, 32), 0.75), np.full((1, 32), -3.0), np.abs(rng.normal(0, 1, (4, 32))),
             -np.abs(rng.normal(0, 1, (4, 32)))]
    spike = np.zeros((4, 32))
    spike[[0, 1, 2, 3], [0, 31, 7, 16]] = [1.0, -1.0, 1000.0, -1e-3]
    both = np.full((2, 32), 0.5)  # largest magnitude twice, with both signs: the first one counts
    both[0, 3], both[0, 20], both[1, 3], both[1, 20] = 2.0, -2.0, -2.0, 2.0
    rows += [spike, both, rounding_rows(rng, 8, 4), rounding_rows(rng, 16, 4)]
    return np.concatenate(rows).astype(np.float32)


def main():
    rng = np.random.default_rng(20240607)
    np.seterr(all="ignore")
    for name in ["F32", "F16", "BF16", *HALVES]:
        data = random_blocks(name, rng) if name in HALVES else float_rows(name, rng)
        floats = quants.dequantize(data, T[name])
        (HERE / f"{name}.blocks").write_bytes(data.tobytes())
        (HERE / f"{name}.floats").write_bytes(floats.astype("<f4", copy=False).tobytes())
    rows = encoder_input(rng)
    (HERE / "input.floats").write_bytes(rows.tobytes())
    for name in EXACT:
        (HERE / f"{name}.encoded").write_bytes(quants.quantize(rows, T[name]).tobytes())


if __name__ == "__main__":
    main()
