"""mica quantize, mica imatrix and mica compare-quants: what is in the files that they write."""
import json
import math
import os
import random
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import COMMON, DATA, TestCase, main, mica  # noqa: E402
sys.path.insert(0, COMMON)
import ggufw  # noqa: E402
from gguf_read import floats, read  # noqa: E402

LLAMA = os.path.join(DATA, "tiny", "llama.gguf")
TEXT = os.path.join(DATA, "gold", "ppl-text.txt")
BITS = {"F32": 32, "F16": 16, "BF16": 16, "Q8_0": 8.5, "Q6_K": 6.5625, "Q5_K_M": 5.5, "Q5_1": 6, "Q5_0": 5.5, "Q4_K_M": 4.5, "Q4_1": 5,
        "Q4_0": 4.5, "IQ4_NL": 4.5, "IQ4_XS": 4.25, "Q3_K_S": 3.4375, "Q2_K": 2.625}
# relative errors of Gaussian weights, a little above what the encoders reach (tests/unit/test_quant_error.c)
ERRORS = {"F16": 3e-4, "BF16": 2e-3, "Q8_0": .0056, "Q6_K": .019, "Q5_K_M": .037, "Q4_K_M": .075, "Q4_0": .09, "Q3_K_S": .15, "Q2_K": .28}


class Files(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_model(self, tensors, extra=()):
        """No model that runs: matrices and vectors with names."""
        keys = [ggufw.kv("general.architecture", ggufw.STR, "llama"), ggufw.kv("llama.block_count", ggufw.U32, 8),
                ggufw.kv("general.alignment", ggufw.U32, 32), ggufw.kv("general.file_type", ggufw.U32, 0), *extra]
        path = self.path("in.gguf")
        with open(path, "wb") as f:
            f.write(ggufw.model(keys, tensors))
        return path

    def gaussian(self, n, seed=1):
        rng = random.Random(seed)
        return struct.pack(f"<{n}f", *(rng.gauss(0, 0.02) for _ in range(n)))

    def layer_model(self):
        names = [f"blk.{i}.{role}.weight" for i in range(8) for role in ("attn_q", "attn_v", "ffn_down")]
        tensors = [(n, [256, 4], ggufw.GGML_F32, self.gaussian(1024, n)) for n in names]
        tensors += [("token_embd.weight", [256, 4], ggufw.GGML_F32, self.gaussian(1024)),
                    ("output.weight", [256, 4], ggufw.GGML_F32, self.gaussian(1024)),
                    ("output_norm.weight", [256], ggufw.GGML_F32, self.gaussian(256))]
        return self.write_model(tensors, [ggufw.kv("x.words", ggufw.ARR, (ggufw.STR, ["one", "", "\u00e9"]))])

    def types(self, path):
        return {name: t[0] for name, t in read(path)[1].items()}


class Quantize(Files):
    def test_every_type(self):
        """Formats, sizes, errors; and back again: the weights are those that the first file has."""
        source = self.write_model([("blk.0.attn_q.weight", [512, 64], ggufw.GGML_F32, self.gaussian(1 << 15)),
                                   ("blk.0.attn_norm.weight", [512], ggufw.GGML_F16, b"\0\x3c" * 512)])
        want = floats(read(source)[1]["blk.0.attn_q.weight"])
        size = math.sqrt(sum(x * x for x in want))
        for name, bits in BITS.items():
            out, back = self.path("out.gguf"), self.path("back.gguf")
            self.ok(mica("quantize", source, out, name.lower()))
            keys, tensors = read(out)
            self.assertEqual(tensors["blk.0.attn_norm.weight"][0], "F32", name)
            self.assertEqual(floats(tensors["blk.0.attn_norm.weight"]), (1.0,) * 512)
            self.assertEqual(len(tensors["blk.0.attn_q.weight"][2]) * 8 / (1 << 15), bits, name)
            self.assertNotIn("general.alignment", keys)
            self.ok(mica("quantize", out, back, "F32"))
            got = floats(read(back)[1]["blk.0.attn_q.weight"])
            error = math.sqrt(sum((a - b) ** 2 for a, b in zip(want, got))) / size
            if name == "F32":
                self.assertEqual(got, want)
            else:
                self.assertGreater(error, 1e-5, name)
                self.assertLess(error, ERRORS.get(name, .09), name)

    def test_mix(self):
        """Q4_K_M: the sensitive layers of attn_v and ffn_down, and the output, have more bits; keys are as they were."""
        out = self.path("out.gguf")
        done = json.loads(self.ok(mica("quantize", self.layer_model(), out, "Q4_K_M", "--json")).out)
        types, (keys, _) = self.types(out), read(out)
        sensitive = {i for i in range(8) if i < 1 or i >= 7 or (i - 1) % 3 == 2}
        for i in range(8):
            self.assertEqual(types[f"blk.{i}.attn_q.weight"], "Q4_K")
            for role in ("attn_v", "ffn_down"):
                self.assertEqual(types[f"blk.{i}.{role}.weight"], "Q6_K" if i in sensitive else "Q4_K", (i, role))
        self.assertEqual((types["output.weight"], types["token_embd.weight"], types["output_norm.weight"]), ("Q6_K", "Q4_K", "F32"))
        self.assertEqual(keys["x.words"], ["one", "", "\u00e9"])
        self.assertEqual((keys["general.file_type"], keys["general.quantization_version"]), (15, 2))
        self.assertEqual(done["bytes_out"], os.path.getsize(out))
        self.assertEqual((done["weights"], done["encoded"], done["copied"]), (26 * 1024, 26, 1))

    def test_overrides(self):
        source, out = self.layer_model(), self.path("out.gguf")
        self.ok(mica("quantize", source, out, "Q4_0", "--tensor", "blk.0.*=Q8_0", "--tensor", "attn_v=F16", "--tensor", "*.attn_?.weight=Q5_1"))
        types = self.types(out)
        self.assertEqual([types[f"blk.{n}.weight"] for n in ("0.attn_v", "1.attn_v", "1.attn_q", "1.ffn_down")], ["Q8_0", "F16", "Q5_1", "Q4_0"])
        os.unlink(out)
        self.fails(mica("quantize", source, out, "Q4_0", "--tensor", "nothing=Q8_0"), "nothing", "no matrix")
        self.fails(mica("quantize", source, out, "Q4_0", "--tensor", "attn_v"), "PATTERN=TYPE", code=2)
        self.fails(mica("quantize", source, out, "Q4_0", "--tensor", "attn_v=Q9"), "Q9", "Q8_0", code=2)
        self.fails(mica("quantize", source, out, "Q9"), "Q9", "Q4_K_M", code=2)
        self.assertEqual(os.listdir(self.folder), ["in.gguf"])

    def test_rows_without_whole_blocks(self):
        source = self.write_model([("blk.0.attn_q.weight", [96, 4], ggufw.GGML_F32, self.gaussian(384)),
                                   ("blk.0.attn_k.weight", [20, 4], ggufw.GGML_F32, self.gaussian(80))])
        done = self.ok(mica("quantize", source, self.path("out.gguf"), "Q4_K_S"))
        self.assertIn("warning: 2 matrices", done.message)
        self.assertEqual(self.types(self.path("out.gguf")), {"blk.0.attn_q.weight": "Q5_0", "blk.0.attn_k.weight": "F16"})

    def test_threads_do_not_matter(self):
        source, files = self.layer_model(), []
        for threads in ("1", "3"):
            self.ok(mica("quantize", source, self.path(threads), "Q3_K_M", "-t", threads))
            with open(self.path(threads), "rb") as f:
                files.append(f.read())
        self.assertEqual(files[0], files[1])

    def test_refusals(self):
        """What was there stays, and nothing is left beside it."""
        out = self.path("out.gguf")
        with open(out, "w", encoding="ascii") as f:
            f.write("mine")
        for value, kind in ((math.nan, "Q8_0"), (math.inf, "F32"), (1e5, "F16")):
            raw = self.gaussian(63) + struct.pack("<f", value)
            source = self.write_model([("blk.0.attn_q.weight", [32, 2], ggufw.GGML_F32, raw)])
            if kind == "F32":  # what is F32 already is copied; from there it goes no further
                kind = "BF16"
            self.fails(mica("quantize", source, out, kind), "blk.0.attn_q.weight", "finite")
        self.fails(mica("quantize", self.path("none.gguf"), out, "Q8_0"), "none.gguf")
        with open(out, encoding="ascii") as f:
            self.assertEqual(f.read(), "mine")
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.gguf", "out.gguf"])

    def test_again(self):
        """From one block format to another is worth a warning; to floats it is not."""
        source, q4, out = self.layer_model(), self.path("q4.gguf"), self.path("out.gguf")
        self.ok(mica("quantize", source, q4, "Q4_0"))
        self.assertIn("quantised already", mica("quantize", q4, out, "Q5_0").message)
        self.assertEqual(mica("quantize", q4, out, "F16").message, "")


class Imatrix(Files):
    def collect(self, *args):
        out = self.path("im.gguf")
        self.ok(mica("imatrix", "-m", LLAMA, "-f", TEXT, "--out", out, "--window", "32", "--chunks", "3", *args))
        return out

    def test_inputs_of_the_first_layer(self):
        """They can be computed by hand: the embeddings, normed."""
        keys, tensors = read(self.collect())
        self.assertEqual((keys["general.type"], keys["imatrix.chunk_count"], keys["imatrix.chunk_size"]), ("imatrix", 3, 32))
        model_keys, model = read(LLAMA)
        ids = json.loads(mica("tokenize", "-m", LLAMA, "-f", TEXT).out)[:96]
        for i in (0, 32, 64):
            ids[i] = model_keys["tokenizer.ggml.bos_token_id"]
        rows, norm = floats(model["token_embd.weight"]), floats(model["blk.0.attn_norm.weight"])
        want = [0.0] * 64
        for token in ids:
            x = rows[64 * token:64 * token + 64]
            scale = 1 / math.sqrt(sum(v * v for v in x) / 64 + 1e-5)
            for i in range(64):
                want[i] += (x[i] * scale * norm[i]) ** 2
        for role in ("attn_q", "attn_k", "attn_v"):
            got = floats(tensors[f"blk.0.{role}.weight.in_sum2"])
            self.assertEqual(floats(tensors[f"blk.0.{role}.weight.counts"]), (96.0,))
            for a, b in zip(got, want):
                self.assertAlmostEqual(a, b, delta=1e-3 * b + 1e-6)
        self.assertEqual(tensors["blk.1.ffn_gate.weight.in_sum2"], tensors["blk.1.ffn_up.weight.in_sum2"])
        self.assertEqual(len(floats(tensors["blk.1.ffn_down.weight.in_sum2"])), 96)
        self.assertTrue(all(v > 0 for v in floats(tensors["blk.1.ffn_down.weight.in_sum2"])))
        self.assertEqual(len(tensors), 2 * 14)

    def test_threads_do_not_matter(self):
        with open(self.collect("-t", "1"), "rb") as f:
            one = f.read()
        with open(self.collect("-t", "2"), "rb") as f:
            self.assertEqual(f.read(), one)

    def test_it_is_used(self):
        """The error that it weighs gets smaller; what is not about this model is refused."""
        im, sums = self.collect(), {}
        weights = {k[:-8]: floats(v) for k, v in read(im)[1].items() if k.endswith(".in_sum2")}
        model = read(LLAMA)[1]
        for name, args in (("without", ()), ("with", ("--imatrix", im))):
            q, back = self.path("q.gguf"), self.path("back.gguf")
            self.ok(mica("quantize", LLAMA, q, "Q4_0", *args))
            self.ok(mica("quantize", q, back, "F32"))
            got, total = read(back)[1], 0.0
            for matrix, w in weights.items():
                a, b, cols = floats(model[matrix]), floats(got[matrix]), len(w)
                total += sum(w[i % cols] * (a[i] - b[i]) ** 2 for i in range(len(a)))
            sums[name] = total
        self.assertLess(sums["with"], 0.9 * sums["without"])
        other = self.write_model([("blk.0.attn_q.weight", [32, 2], ggufw.GGML_F32, self.gaussian(64))])
        self.fails(mica("quantize", other, self.path("o"), "Q4_0", "--imatrix", im), "another model")
        self.fails(mica("quantize", other, self.path("o"), "Q4_0", "--imatrix", LLAMA), "not an importance matrix")
        self.fails(mica("imatrix", "-m", LLAMA, "-f", TEXT), "--out", code=2)


class CompareQuants(Files):
    def test_against_the_best(self):
        q8, q2 = self.path("q8.gguf"), self.path("q2.gguf")
        self.ok(mica("quantize", LLAMA, q8, "Q8_0"))
        self.ok(mica("quantize", LLAMA, q2, "Q4_0"))
        args = ("-f", TEXT, "--window", "64", "--chunks", "2", "-t", "1")
        done = json.loads(self.ok(mica("compare-quants", q2, LLAMA, q8, *args, "--json")).out)
        low, best, high = done["files"]
        self.assertEqual([f["reference"] for f in done["files"]], [False, True, False])
        self.assertEqual((best["kl"], best["same_top_percent"], best["weight_error"]), (0, 100, 0))
        self.assertTrue(0 < high["kl"] < low["kl"], done)
        self.assertTrue(0 < high["weight_error"] < low["weight_error"] < 0.12, done)
        self.assertTrue(high["bytes"] == os.path.getsize(q8) and low["decode_tps"] > 0 and low["prefill_tps"] > 0, done)
        self.assertEqual(done["scored_tokens"], 2 * 31)
        for f in done["files"]:
            alone = json.loads(mica("perplexity", "-m", f["file"], *args, "--json").out)
            self.assertAlmostEqual(f["mean_nll"], alone["mean_nll"], delta=1e-5, msg=f["file"])
        text = self.ok(mica("compare-quants", LLAMA, q8, *args)).text
        self.assertIn("100.00%", text)
        self.assertIn(f"Against {LLAMA}", text)

    def test_not_one_model(self):
        other = os.path.join(DATA, "tiny", "qwen2.gguf")
        self.fails(mica("compare-quants", LLAMA, other, "-f", TEXT), "different tokens")


if __name__ == "__main__":
    main()
