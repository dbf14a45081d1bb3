"""mica convert: Hugging Face folders made from the tiny models of tests/data become those models again; what is damaged, or would be
computed differently, is refused with a sentence."""
import copy
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import BIN, DATA, TestCase, environment, has_address_sanitizer, main, mica  # noqa: E402
import hf_folder  # noqa: E402
from gguf_read import floats, read  # noqa: E402

TINY = os.path.join(DATA, "tiny")
MODELS = ("llama", "llama3-rope", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "gemma3-linear", "phi3", "phi3-longrope", "phi4-mini")
# Keys that may differ: the name is the folder's; scores only order pieces; the files of tests/data/tiny say these where they need not.
FREE = {"general.name", "tokenizer.ggml.scores", "phi3.rope.scaling.original_context_length", "phi3.attention.sliding_window"}
TEXT = "The sheriff  is in the inn, and\nthe 3 others:\tnot here\u2026 \U0001F642 caf\u00e9 12345 don't"
MAX_RSS_KB = 64 << 10
SPLIT = {"Regex": "[a-z]+|."}


def tiny(name):
    return os.path.join(TINY, name + ".gguf")


class Folders(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = folder.name
        self.folder, self.out = self.path("model"), self.path("out.gguf")

    def path(self, name):
        return os.path.join(self.top, name)

    def edit(self, file, change):
        """Changes a JSON file of the folder: change(value)."""
        path = os.path.join(self.folder, file)
        with open(path, encoding="utf-8") as f:
            value = json.load(f)
        change(value)
        hf_folder.write_json(self.folder, file, value)

    def update(self, file, **changes):
        self.edit(file, lambda value: value.update(changes))

    def convert(self, *options):
        self.ok(mica("convert", self.folder, self.out, *options))
        return read(self.out)

    def refuses(self, *wanted, code=1):
        self.fails(mica("convert", self.folder, self.out), *wanted, code=code)
        self.assertEqual(os.listdir(self.top), ["model"])


class RoundTrip(Folders):
    def check_keys(self, source, keys):
        for key, value in source.keys.items():
            if key not in FREE:
                self.assertEqual(keys.get(key), value, key)
        self.assertEqual(keys["general.name"], "model")

    def check_scores(self, source, keys):
        """Pieces that others are joined to have the same order as before."""
        if source.token("model") != "llama":
            return self.assertNotIn("tokenizer.ggml.scores", keys)
        joined = {"".join(m) for m in hf_folder.tokenizer(source)["model"]["merges"]}
        ids = [i for i, piece in enumerate(source.token("tokens")) if piece in joined]
        scores, before = keys["tokenizer.ggml.scores"], source.token("scores")
        self.assertEqual(sorted(ids, key=lambda i: -scores[i]), sorted(ids, key=lambda i: (-before[i], i)))
        return self.assertGreater(len(ids), 10)

    def check_tensors(self, source, tensors):
        self.assertEqual(set(tensors), set(source.tensors))
        for name, tensor in source.tensors.items():
            if source.gemma and name.endswith("norm.weight"):  # what was in the folder, plus 1, rounded once
                tensor = tensor[:2] + (struct.pack(f"<{len(tensor[2]) // 4}f", *(x + 1 for x in floats(
                    ("F32", None, hf_folder.pack(hf_folder.hf_values(source, name), "F32"))))),)
            self.assertEqual(tensors[name], tensor, name)

    def test_every_architecture(self):
        for name in MODELS:
            for style, parts in (("new", 1), ("old", 3)):
                with self.subTest(model=name, style=style):
                    self.folder = self.path(f"{name}-{style}/model")
                    source = hf_folder.write(tiny(name), self.folder, parts=parts, style=style)
                    keys, tensors = self.convert()
                    self.check_keys(source, keys)
                    self.check_scores(source, keys)
                    self.check_tensors(source, tensors)

    def test_greedy(self):
        """The tokens that transformers gave when the tiny models were made, and the same tokens for a text."""
        with open(os.path.join(TINY, "index.json"), encoding="utf-8") as f:
            runs = {m["name"]: m["runs"][0] for m in json.load(f)["models"]}
        for name in ("llama", "qwen2", "gemma3"):
            hf_folder.write(tiny(name), self.folder)
            self.convert()
            run = runs[name]
            got = mica("run", "-m", self.out, "--temp", "0", "--ignore-eos", "-n", len(run["greedy"]), "--ctx", run["n_ctx"], "--token-ids",
                       ",".join(map(str, run["tokens"])))
            want = mica("detokenize", "-m", tiny(name), "--ids", ",".join(map(str, run["greedy"])))
            self.assertGreater(len(self.ok(want).out), 8)
            self.assertEqual(self.ok(got).text.rstrip("\n"), want.text.rstrip("\n"), name)
            ids = [json.loads(self.ok(mica("tokenize", "-m", m, "-p", TEXT)).out) for m in (tiny(name), self.out)]
            self.assertEqual(ids[0], ids[1], name)


class Types(Folders):
    def test_what_is_stored(self):
        for dtype in ("F16", "BF16"):
            source = hf_folder.write(tiny("llama"), self.folder, dtype)
            stored = hf_folder.tensors(source, dtype)
            _, tensors = self.convert()
            self.assertEqual(tensors["blk.1.ffn_up.weight"], (dtype, [64, 96], stored["model.layers.1.mlp.up_proj.weight"][2]))
            self.assertEqual({t[0] for name, t in tensors.items() if "norm" in name}, {"F32"})
            _, wide = self.convert("--type", "f32")
            self.assertEqual(hf_folder.pack(floats(wide["blk.0.attn_q.weight"]), dtype), tensors["blk.0.attn_q.weight"][2])

    def test_quantised(self):
        """The same bytes as in two steps; keys and formats as mica quantize writes them."""
        hf_folder.write(tiny("qwen2"), self.folder)
        for name in ("Q8_0", "q4_k_m", "F16", "BF16", "Q6_K"):
            step = self.path("step.gguf")
            keys, tensors = self.convert("--type", name)
            self.ok(mica("quantize", tiny("qwen2"), step, name))
            want_keys, want = read(step)
            self.assertEqual(tensors, want, name)
            self.assertEqual(keys["general.file_type"], want_keys["general.file_type"])
        done = self.ok(mica("convert", self.folder, self.out, "--type", "q4_k_m", "--json"))
        said = json.loads(done.out)
        self.assertEqual((said["architecture"], said["type"], said["tensors"], said["bytes_out"]), ("qwen2", "Q4_K_M", 26, os.path.getsize(self.out)))
        self.assertIn("warning", done.message)
        self.fails(mica("convert", self.folder, self.out, "--type", "Q9"), "Q9", "Q4_K_M", code=2)

    def test_data_anywhere(self):
        """Old files do not align the data."""
        source = hf_folder.write(tiny("gemma3"), self.folder)
        _, want = self.convert()
        for dtype in ("F32", "BF16"):
            entries = hf_folder.tensors(source, dtype)
            data = hf_folder.safetensors(entries)
            n = struct.unpack("<Q", data[:8])[0]
            with open(os.path.join(self.folder, "model.safetensors"), "wb") as f:
                f.write(struct.pack("<Q", n + 1) + data[8:8 + n] + b" " + data[8 + n:])
            _, tensors = self.convert("--type", "f32")
            if dtype == "F32":
                self.assertEqual(tensors, want)

    def test_memory(self):
        """A matrix of 64 MB, three times: memory does not follow."""
        if has_address_sanitizer():
            self.skipTest("its own memory is more")
        source = hf_folder.write(tiny("llama"), self.folder)
        self.update("config.json", hidden_size=1024, head_dim=256, intermediate_size=16384, num_hidden_layers=1, num_key_value_heads=4)
        shapes = {"model.embed_tokens.weight": [288, 1024], "lm_head.weight": [288, 1024], "model.norm.weight": [1024]}
        layer = {"input_layernorm": [1024], "post_attention_layernorm": [1024], "mlp.gate_proj": [16384, 1024], "mlp.up_proj": [16384, 1024],
                 "mlp.down_proj": [1024, 16384], **{f"self_attn.{x}_proj": [1024, 1024] for x in "qkvo"}}
        shapes.update({f"model.layers.0.{k}.weight": v for k, v in layer.items()})
        header, at = {}, 0
        for name, shape in shapes.items():
            n = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
            at += n
        text = json.dumps(header).encode()
        with open(os.path.join(self.folder, "model.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            f.truncate(8 + len(text) + at)
        self.assertEqual(source.arch, "llama")
        p = subprocess.Popen([BIN, "convert", self.folder, self.out, "--type", "q4_0"], env=environment(), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(p.returncode, 0)
        self.assertLess(usage.ru_maxrss, MAX_RSS_KB)
        self.assertGreater(at, 3 * MAX_RSS_KB << 10)


class Variants(Folders):
    def test_padded_and_dropped(self):
        """The embedding has more rows than there are tokens, or fewer than there are added ones."""
        source = hf_folder.write(tiny("qwen2"), self.folder)
        self.edit("tokenizer.json", lambda t: t["added_tokens"].append({"id": 288, "content": "<image>", "special": True}))
        keys, _ = self.convert()
        self.assertEqual(keys["tokenizer.ggml.tokens"], source.token("tokens"))
        entries = hf_folder.tensors(source, "F32")
        dtype, (rows, cols), raw = entries["model.embed_tokens.weight"]
        entries["model.embed_tokens.weight"] = (dtype, [rows + 2, cols], raw + bytes(2 * cols * 4))
        hf_folder.write_weights(self.folder, entries)
        keys, _ = self.convert()
        self.assertEqual(keys["tokenizer.ggml.tokens"][287:], ["<|pad|>", "<image>", "[PAD289]"])
        self.assertEqual(keys["tokenizer.ggml.token_type"][287:], [3, 3, 5])
        self.ok(mica("run", "-m", self.out, "-p", "the", "-n", 2, "--no-chat"))

    def test_part_of_more(self):
        """Gemma 3 with a part for images, which is left out."""
        source = hf_folder.write(tiny("gemma3"), self.folder)
        want = self.convert()
        with open(os.path.join(self.folder, "config.json"), encoding="utf-8") as f:
            text = json.load(f)
        for body, head in (("language_model.model.", "language_model.lm_head"), ("model.language_model.", "lm_head")):
            entries = {name.replace("model.", body, 1): t for name, t in hf_folder.tensors(source, "F32").items()}
            entries["vision_tower.patch.weight"] = ("F32", [2], bytes(8))
            entries[head + ".weight"] = entries[body + "embed_tokens.weight"]  # tied: the embedding once more
            hf_folder.write_weights(self.folder, entries)
            hf_folder.write_json(self.folder, "config.json", {"model_type": "gemma3", "text_config": text, "vision_config": {}})
            self.assertEqual(self.convert(), want)

    def test_window_pattern(self):
        hf_folder.write(tiny("gemma3"), self.folder)
        types = ["full_attention" if i in (1, 4) else "sliding_attention" for i in range(7)]
        self.update("config.json", layer_types=types)
        self.assertEqual(self.convert()[0]["gemma3.attention.sliding_window_pattern"], [t[0] == "s" for t in types])
        self.update("config.json", layer_types=None, sliding_window_pattern=3)
        self.assertEqual(self.convert()[0]["gemma3.attention.sliding_window_pattern"], [(i + 1) % 3 != 0 for i in range(7)])

    def test_templates_and_ends(self):
        hf_folder.write(tiny("qwen2"), self.folder)
        named = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
        self.update("tokenizer_config.json", chat_template=named, add_bos_token=True)
        hf_folder.write_json(self.folder, "generation_config.json", {"eos_token_id": [286, 5]})
        keys, _ = self.convert()
        self.assertEqual((keys["tokenizer.chat_template"], keys["tokenizer.chat_template.tool_use"]), ("D", "T"))
        self.assertEqual((keys["tokenizer.ggml.eot_token_id"], keys["tokenizer.ggml.add_bos_token"]), (5, True))
        with open(os.path.join(self.folder, "chat_template.jinja"), "w", encoding="utf-8") as f:
            f.write("J")
        self.assertEqual(self.convert()[0]["tokenizer.chat_template"], "J")

    def test_merges_that_are_not_sentencepieces(self):
        """A merge is missing: scores would join what the tokenizer does not. Without a space in front, merges can be kept."""
        hf_folder.write(tiny("gemma3"), self.folder)
        self.edit("tokenizer.json", lambda t: t["model"]["merges"].remove(["t", "h"]))
        keys, _ = self.convert()
        self.assertEqual(keys["tokenizer.ggml.model"], "gemma4")
        self.assertNotIn("t h", keys["tokenizer.ggml.merges"])
        ids = json.loads(self.ok(mica("tokenize", "-m", self.out, "-p", "eth")).out)
        self.assertEqual(ids[-2:], [keys["tokenizer.ggml.tokens"].index(c) for c in "th"])
        self.update("tokenizer.json", normalizer={"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]})
        os.unlink(self.out)
        self.refuses("merges are not those of a SentencePiece vocabulary")


class Refusals(Folders):
    def test_config(self):
        hf_folder.write(tiny("llama"), self.folder)
        with open(os.path.join(self.folder, "config.json"), encoding="utf-8") as f:
            good = json.load(f)
        for changes, wanted in (
                ({"model_type": "mamba"}, 'model_type "mamba"'), ({"model_type": None}, "model_type"),
                ({"hidden_act": "relu"}, '"relu"'), ({"num_hidden_layers": None}, "num_hidden_layers is missing"),
                ({"num_hidden_layers": 0}, "from 1 to"), ({"num_hidden_layers": "2"}, "not a whole number"),
                ({"num_key_value_heads": 3}, "do not fit together"), ({"rms_norm_eps": "small"}, "rms_norm_eps is not a number"),
                ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, 'RoPE scaling "yarn"'),
                ({"rope_parameters": None, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, '"dynamic"'),
                ({"rope_parameters": {"rope_type": "linear"}}, "factor is missing"),
                ({"rope_parameters": {"rope_type": "default", "rope_theta": -1}}, "rope_theta is -1"),
                ({"sliding_window": 32}, "sliding window"), ({"attn_logit_softcapping": 5.0}, "attn_logit_softcapping"),
                ({"partial_rotary_factor": 0.5}, "part of each head"),
                ({"num_hidden_layers": 1}, "has no place in the architecture llama with 1 layers"),
                ({"num_hidden_layers": 3}, "model.layers.2.input_layernorm.weight is missing"),
                ({"intermediate_size": 95}, "shape 96 x 64 (2 dimensions) where 95 x 64 is needed"),
                ({"tie_word_embeddings": None, "rope_theta": "x"}, "rope_theta is not a number")):
            with self.subTest(changes):
                hf_folder.write_json(self.folder, "config.json", {**good, **changes})
                self.refuses(wanted)

    def test_gemma(self):
        hf_folder.write(tiny("gemma3"), self.folder)
        with open(os.path.join(self.folder, "config.json"), encoding="utf-8") as f:
            good = json.load(f)
        for changes, wanted in (({"query_pre_attn_scalar": 64}, "query_pre_attn_scalar is 64; the engine computes with 16"),
                                ({"layer_types": ["full_attention"]}, "one entry for each of the 7 layers"),
                                ({"layer_types": ["chunked_attention"] * 7}, "chunked_attention"),
                                ({"model_type": "gemma3"}, "text_config is missing")):
            with self.subTest(changes):
                hf_folder.write_json(self.folder, "config.json", {**good, **changes})
                self.refuses(wanted)

    def test_tokenizer(self):
        hf_folder.write(tiny("qwen2"), self.folder)
        with open(os.path.join(self.folder, "tokenizer.json"), encoding="utf-8") as f:
            good = json.load(f)

        def model(**changes):
            return lambda t: t["model"].update(changes)

        for change, wanted in (
                (model(type="Unigram"), '"Unigram"'), (model(type="WordPiece"), '"WordPiece"'), (model(vocab=[]), "no vocab"),
                (model(merges="x"), "no merges"), (model(merges=["ab"]), "merge 0 is not a pair"), (model(merges=[["a", ""]]), "merge 0 is not a pair"),
                (model(merges=[["a b", "c"]]), "a piece with a space"), (model(ignore_merges=True), "no name for the way"),
                (model(vocab={"a": 288}), '"a" has the id 288, but the embedding has 288 rows'),
                (model(vocab={"a": 1, "b": 1}), "both have the id 1"), (model(vocab={"a": "1"}), 'the id of the token "a" is no number'),
                (lambda t: t.update(normalizer={"type": "Lowercase"}), "splits text: Lowercase;split"),
                (lambda t: t.update(pre_tokenizer={"type": "Split", "pattern": SPLIT, "behavior": "Isolated", "invert": False}), "[a-z]+"),
                (lambda t: t.update(pre_tokenizer=None), "no name for the way"),
                (lambda t: t["added_tokens"].append({"content": "x"}), "added_tokens")):
            changed = copy.deepcopy(good)
            change(changed)
            hf_folder.write_json(self.folder, "tokenizer.json", changed)
            with self.subTest(wanted):
                self.refuses(wanted)
        os.unlink(os.path.join(self.folder, "tokenizer.json"))
        self.refuses("tokenizer.json")

    def test_no_byte_fallback(self):
        hf_folder.write(tiny("llama"), self.folder)
        self.edit("tokenizer.json", lambda t: t["model"].update(byte_fallback=False))
        self.refuses("without byte_fallback")

    def test_what_was_there_stays(self):
        hf_folder.write(tiny("llama"), self.folder)
        with open(self.out, "w", encoding="ascii") as f:
            f.write("mine")
        self.update("config.json", model_type="other")
        self.fails(mica("convert", self.folder, self.out), "other")
        with open(self.out, encoding="ascii") as f:
            self.assertEqual(f.read(), "mine")


def raw(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(**changes):
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


HOSTILE = (  # bytes of model.safetensors, what the sentence says
    (b"", "empty"), (b"1234567", "7 bytes"), (b"\xff" * 16, "the file is shorter"), (struct.pack("<Q", 1000) + b"{}", "the file is shorter"),
    (struct.pack("<Q", 1 << 63) + b"{}", "should have 9223372036854775808 bytes"),
    (raw(b"[]"), "no JSON object"), (raw(b"{"), "no JSON object"), (raw(b'{"a": ' + b"[" * 100000), "no JSON object"),
    (raw(b'{"\xff": 1}'), "no JSON object"), (raw(b'{"a":' + json.dumps(one()).encode() + b',"a":' + json.dumps(one()).encode() + b"}", bytes(8)), "duplicate"),
    (raw({"a": 1}), 'the type ""'), (raw({"a": one(dtype="F99")}, bytes(8)), '"F99"'), (raw({"a": one(dtype=3)}, bytes(8)), 'the type ""'),
    (raw({"a": one(shape=None)}, bytes(8)), "not an array"), (raw({"a": one(shape=[1] * 9)}, bytes(8)), "at most 8"),
    (raw({"a": one(shape=[-2])}, bytes(8)), "impossible"), (raw({"a": one(shape=[1 << 40, 1 << 40])}, bytes(8)), "impossible"),
    (raw({"a": one(shape=["2"])}, bytes(8)), "impossible"), (raw({"a": one(shape=[3])}, bytes(8)), "has 8 bytes where its shape and type need 12"),
    (raw({"a": one(data_offsets=[8, 0])}, bytes(8)), "not two offsets"), (raw({"a": one(data_offsets=[-8, 0])}, bytes(8)), "not two offsets"),
    (raw({"a": one(data_offsets=[0])}, bytes(8)), "not two offsets"), (raw({"a": one(data_offsets=[0, 8, 16])}, bytes(8)), "not two offsets"),
    (raw({"a": one()}, bytes(7)), "ends at byte 8 of the data, of which there are 7"),
    (raw({"a": one(), "b": one()}, bytes(8)), "overlap"), (raw({"a": one(), "b": one(data_offsets=[4, 12])}, bytes(12)), "overlap"),
    (raw({"a": one(data_offsets=[4, 12])}, bytes(12)), "4 bytes before tensor a"), (raw({"a": one()}, bytes(12)), "the last 4 bytes"),
    (raw({}), "embed_tokens.weight is missing"), (raw({"__metadata__": {"x": "y"}}), "embed_tokens.weight is missing"))


class Hostile(Folders):
    def setUp(self):
        super().setUp()
        self.source = hf_folder.write(tiny("llama"), self.folder)
        self.weights = os.path.join(self.folder, "model.safetensors")

    def test_one_file(self):
        for data, wanted in HOSTILE:
            with self.subTest(wanted, data=data[:80]):
                with open(self.weights, "wb") as f:
                    f.write(data)
                self.refuses(wanted)

    def test_cut_off_anywhere(self):
        with open(self.weights, "rb") as f:
            data = f.read()
        for n in (1, 9, 100, len(data) // 2, len(data) - 1):
            with open(self.weights, "wb") as f:
                f.write(data[:n])
            self.refuses("model.safetensors")

    def test_weights(self):
        for name, (dtype, value), wanted in (("model.norm.weight", ("F32", struct.pack("<f", float("nan"))), "not finite"),
                                             ("model.norm.weight", ("F32", struct.pack("<f", float("inf"))), "not finite"),
                                             ("model.norm.weight", ("I32", bytes(4)), "is I32; F32, F16 and BF16")):
            entries = hf_folder.tensors(self.source, "F32")
            entries[name] = (dtype, [64], value * 64)
            hf_folder.write_weights(self.folder, entries)
            self.refuses("model.norm.weight", wanted)
        entries = hf_folder.tensors(self.source, "F32")
        entries["model.layers.0.mlp.up_proj.weight"] = ("F32", [96, 64], struct.pack("<f", 70000.0) * 96 * 64)
        hf_folder.write_weights(self.folder, entries)
        self.fails(mica("convert", self.folder, self.out, "--type", "f16"), "F16 cannot hold")
        self.ok(mica("convert", self.folder, self.out, "--type", "bf16"))

    def test_index(self):
        os.unlink(self.weights)
        self.refuses("neither model.safetensors nor model.safetensors.index.json")
        hf_folder.write_weights(self.folder, hf_folder.tensors(self.source, "F32"), 2)
        first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
        index = "model.safetensors.index.json"
        with open(os.path.join(self.folder, index), encoding="utf-8") as f:
            good = json.load(f)
        for change, wanted in ((lambda m: m.update(x="../" + first), "no file name"), (lambda m: m.update(x="/etc/passwd"), "no file name"),
                               (lambda m: m.update(x=7), "no file name"), (lambda m: m.update(x=first), "tensor x is not in " + first),
                               (lambda m: m.update({"lm_head.weight": second if m["lm_head.weight"] == first else first}), "lm_head.weight is not in"),
                               (lambda m: m.update(x="missing.safetensors"), "missing.safetensors"), (dict.clear, "no weight_map")):
            changed = copy.deepcopy(good)
            change(changed["weight_map"])
            hf_folder.write_json(self.folder, index, changed)
            with self.subTest(wanted):
                self.refuses(wanted)
        hf_folder.write_json(self.folder, index, good)
        with open(os.path.join(self.folder, first), "rb") as f, open(os.path.join(self.folder, second), "wb") as g:
            g.write(f.read())
        self.refuses("is in", first, second)


if __name__ == "__main__":
    main()
