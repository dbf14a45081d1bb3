"""Runs of mica bench made by hand, so that what a report must show of them is known: the archive's form of src/bench/archive.c and pack.c."""
import base64
import json
import random

PROTOCOL = {"version": 1, "name": "by hand", "description": "for tests", "n_ctx": 32768, "cold_s": 60, "steady_s": 180, "sample_s": 1,
            "phases": [{"kind": "load", "cache": "warm"}, {"kind": "ttft", "prompt": 512, "reply": 2, "repeat": 5},
                       {"kind": "ttft", "prompt": 32, "reply": 2, "repeat": 5}, {"kind": "decode", "prompt": 32, "reply": 20000, "min_s": 480}]}
S = 10 ** 9


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zstd(data):
    """A frame of blocks that are stored as they are, which is a valid one."""
    out = bytearray(b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little"))  # one segment, content size of 4 bytes
    parts = [data[i:i + 100000] for i in range(0, len(data), 100000)]
    for i, part in enumerate(parts):
        out += (len(part) << 3 | (i == len(parts) - 1)).to_bytes(3, "little") + part
    return bytes(out)


def pack(values):
    out, before = bytearray(varint(len(values))), 0
    for v in values:
        difference = v - before
        out += varint(difference << 1 if difference >= 0 else (-difference << 1) - 1)
        before = v
    return base64.b64encode(zstd(bytes(out))).decode()


def reply(phase, prompt, started, ttft_ms, gaps):
    """One series; times are whole nanoseconds."""
    times = [started + round(ttft_ms * 1e6)]
    for gap in gaps:
        times.append(times[-1] + round(gap * S))
    return {"phase": phase, "exact": True, "prompt_asked": prompt, "n_asked": len(times), "seed": 1, "started_ns": started,
            "done_ns": times[-1] + 1000, "prompt_n": prompt, "cached_n": 0, "gen_n": len(times), "reason": "length",
            "times": pack(times), "tokens": pack([-1] * len(times))}


def gaps_of(rate, seconds, throttle_at, depth, rng):
    gaps, t = [], 0.0
    while t < seconds:
        now = rate * (1 - depth) if throttle_at is not None and t > throttle_at else rate
        gaps.append((1 / now) * rng.uniform(0.97, 1.03))
        t += gaps[-1]
    return gaps


def run(name="fake cpu", rate=20.0, seconds=500, throttle_at=None, depth=0.25, energy_w=None, seed=1, **head):
    """A whole run without a summary: reading it, mica report computes one. energy_w: what the counter shows, in W."""
    rng = random.Random(seed)
    series, at = [], 1000 * S
    for prompt, ttft in ((512, 400.0), (32, 40.0)):
        for k in range(5):
            series.append(reply(f"ttft_{prompt}", prompt, at, ttft + k, [1 / rate]))
            at = series[-1]["done_ns"] + S // 10
    series.append(reply("decode", 32, at, 40.0, gaps_of(rate, seconds, throttle_at, depth, rng)))
    samples, end = [], series[-1]["done_ns"]
    for t in range(1000 * S, end + S, S):
        samples.append({"t_ns": t, "cpu_busy": 1.0, "cpu_process": 1.0, "cpu_other": 0.01, "rss_bytes": 200_000_000 + 30_000_000 * seed + min(t - 1000 * S, 60 * S) // 1000,
                        "swap_pages": 0})
        if energy_w is not None:
            samples[-1].update(energy_uj=[round((t - 1000 * S) / 1000 * energy_w)], energy_range_uj=[1 << 40])
    mib = 1 << 20
    full = {"record_version": 1, "id": f"{rng.getrandbits(128):032x}", "created": "2026-01-02T03:04:05Z", "created_unix": 1767323045, "state": "done",
            "name": name, "harness": {"mica": "0.1.0", "numerics": 1}, "backend": "cpu",
            "machine": {"cpu": "A processor", "cores": 4, "memory_bytes": 8 << 30, "system": "Linux", "kernel": "6.1", "architecture": "x86_64"},
            "protocol": PROTOCOL, "loads": [{"cache": "warm", "ms": 75.5, "own_ms": 75.0, "resident_before": None}], "conditions": {"ambient_c": "21"},
            "model": {"path": "/models/small.gguf", "sha256": "ab" * 32},
            "runtime": {"adapter": "fake", "name": "fake", "version": "1.2", "labels": "", "exact": True, "other_clock": False},
            "loaded": {"backend": "cpu", "device": "4 threads", "kv_type": "f16", "file": "/models/small.gguf", "file_bytes": 100 * mib,
                       "weight_bytes": 98 * mib, "bits_per_weight": 4.5, "context_limit": 32768, "threads": 4},
            "partition": {"known": True, "unit": "layers", "total": 30, "fallback": 2, "note": "two are too wide",
                          "parts": [{"backend": "npu", "n": 28, "what": "attention"}, {"backend": "cpu", "n": 2, "what": "output"}]},
            "fallback": False, "memory": {"peak_bytes": 300 * mib, "rss_bytes": 250 * mib, "anon_bytes": 150 * mib, "file_bytes": 100 * mib,
                                          "shared_bytes": 0},
            "roofline": {"read_bytes_per_s": 5e9, "threads": 4, "decode_bytes": 1.2e8, "depth": 1000}, "fault": None, "reason": None}
    full.update(head)
    return {"format": "mica-bench-run", "version": 1, "head": full, "summary": None, "series": series, "samples": samples}


def lines(*archives):
    return "".join(json.dumps(a) + "\n" for a in archives)
