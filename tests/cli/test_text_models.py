"""mica tokenize, detokenize and template on real models (MICA_MODELS_DIR): the cases tok-* and tpl-20, and recorded tokens."""
import json
import os
import subprocess
import time

from climica import BIN, DATA, TestCase, case, case_json, case_lines, environment, main_with_models, mica, models_dir

SMOLLM2, QWEN, GEMMA = "smollm2-135m-instruct-q4_1.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "gemma-3-270m-q4_k_m.gguf"
LONG = {"a": "a" * 1000000, "space": " " * 1000000, "nl": "\n" * 200000, "abc": "abcdefghij " * 90000}


def path(model):
    return os.path.join(models_dir(), model)


class Tokens(TestCase):
    def ids(self, model, text, *args):
        return json.loads(self.ok(mica("tokenize", "-m", path(model), *args, "--stdin", stdin=text)).out)

    def back(self, model, ids, *args):
        return self.ok(mica("detokenize", "-m", path(model), "--stdin", *args, stdin=json.dumps(ids))).out

    def check_cases(self, name):
        for c in case_lines(name):
            args = [] if c.get("add_bos") else ["--no-bos"]
            with self.subTest(model=c["model"], text=c["text"]):
                ids = self.ids(c["model"], c["text"], *args, *(["--special"] if c["parse_special"] else []))
                self.assertEqual(ids, c["ids"])
                self.assertEqual(self.back(c["model"], ids, *(["--special"] if c["parse_special"] else [])).decode(), c["text"])

    def test_qwen_pretokenizer(self):
        self.check_cases("tok-01-qwen-pretokenizer")

    def test_gemma_space_runs(self):
        self.check_cases("tok-03-gemma-space-runs")

    def test_special_text(self):
        self.check_cases("tok-05-special-text-not-parsed")

    def test_unicode_zoo(self):
        self.check_cases("tok-06-unicode-zoo")

    def test_invalid_utf8(self):
        """Case tok-08: every model says where the text is broken."""
        nul = {SMOLLM2: [81, 190, 82], QWEN: [64, 188, 65], GEMMA: [236746, 238, 236763]}
        for model in (SMOLLM2, QWEN, GEMMA):
            for file in sorted(os.listdir(case("tok-08-invalid-utf8-input"))):
                with open(case("tok-08-invalid-utf8-input", file), "rb") as f:
                    data = f.read()
                done = mica("tokenize", "-m", path(model), "--no-bos", "--stdin", stdin=data)
                if file == "nul.bin":
                    self.assertEqual(json.loads(self.ok(done).out), nul[model])
                else:
                    self.assertRegex(self.fails(done, "UTF-8").message, r"byte \d+")

    def test_double_bos(self):
        """Case tok-09."""
        self.assertEqual(self.ids(GEMMA, "<bos>text", "--special"), [2, 1005])
        self.assertEqual(self.ids(GEMMA, "text"), [2, 1005])
        self.assertNotIn(1, self.ids(SMOLLM2, "text"))

    def test_ids_that_are_none(self):
        """Case tok-11, its ends; every id is decoded by the library's own tests."""
        self.assertEqual(self.back(GEMMA, [238]), b"\0")
        self.assertEqual(self.back(GEMMA, [248]), b"\n")
        self.assertEqual(self.back(SMOLLM2, [198]), b"\n")
        for model, n_vocab in ((SMOLLM2, 49152), (QWEN, 151936), (GEMMA, 262144)):
            for bad in (-1, n_vocab, 2**31 - 1):
                self.fails(mica("detokenize", "-m", path(model), "--ids", f"[{bad}]"), str(bad))

    def test_long_runs(self):
        """Case tok-12."""
        counts = case_json("tok-12-long-runs", "counts.json")
        for model, file in (("smollm2", SMOLLM2), ("qwen2.5", QWEN)):
            for kind, want in counts[model].items():
                begin = time.monotonic()
                done = self.ok(mica("tokenize", "-m", path(file), "--no-bos", "--stdin", stdin=LONG[kind]))
                self.assertEqual(done.out.count(b",") + 1, want, (model, kind))
                self.assertLess(time.monotonic() - begin, 20, (model, kind))

    def test_pieces(self):
        got = json.loads(self.ok(mica("tokenize", "-m", path(SMOLLM2), "-p", "Hi <|im_end|>é", "--special", "--json")).out)
        self.assertEqual((len(got["tokens"]), "".join(got["pieces"])), (got["n"], "Hi <|im_end|>é"))

    def test_recorded_prompts(self):
        for model in (SMOLLM2, QWEN, GEMMA):
            with open(os.path.join(DATA, "gold", f"tokens-{model[:-5]}.jsonl"), encoding="utf-8") as f:
                for line in list(f)[:6]:
                    entry = json.loads(line)
                    self.assertEqual(self.ids(model, entry["prompt"], "--no-bos"), entry["ids_plain"])
                    self.assertEqual(self.ids(model, entry["prompt"], "--no-bos", "--special"), entry["ids_parse_special"])

    def test_closed_pipe(self):
        p = subprocess.Popen([BIN, "tokenize", "-m", path(SMOLLM2), "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment())
        p.stdout.close()
        p.stdin.write(LONG["abc"].encode())
        p.stdin.close()
        self.assertEqual(p.wait(60), 1)
        self.assertIn(b"Broken pipe", p.stderr.read())
        p.stderr.close()


class Templates(TestCase):
    def test_qwen(self):
        """Case tpl-20."""
        entries = case_json("tpl-20-qwen-template-in-model", "cases.json")
        for entry in entries:
            done = mica("template", "-m", path(QWEN), "--request", "-", stdin=json.dumps(entry["request"]))
            self.assertEqual(self.ok(done).text, entry["expect"])
        self.assertGreater(len(entries), 3)

    def test_model_without_template(self):
        """Case tpl-23."""
        self.fails(mica("template", "-m", path(GEMMA), "--request", "-", stdin='{"messages": []}'), "--chat-template")
        self.fails(mica("chat", "-m", path(GEMMA)), "--chat-template")


if __name__ == "__main__":
    main_with_models(SMOLLM2, QWEN, GEMMA)
