"""mica run --receipt and --require, mica chat --receipt: where the line goes, what it says, what is refused. docs/receipt.md."""
import hashlib
import json
import os
import struct
import tempfile

from climica import SCRIPTED, TestCase, environment, main, mica, run

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of GGUF's kinds; 8: a string, 9: an array


def tokenizer_hash(path):
    """As docs/receipt.md defines it, with a reader of its own: the entries tokenizer.* but the templates, as they stand in the file."""
    with open(path, "rb") as f:
        data = f.read()
    at, total = 24, hashlib.sha256()

    def skip(kind, at):
        if kind == 8:
            return at + 8 + struct.unpack_from("<Q", data, at)[0]
        if kind != 9:
            return at + SIZES[kind]
        element, count = struct.unpack_from("<IQ", data, at)
        at += 12
        for _ in range(count if element == 8 else 0):
            at = skip(8, at)
        return at if element == 8 else at + SIZES[element] * count
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        start, length = at, struct.unpack_from("<Q", data, at)[0]
        key = data[at + 8:at + 8 + length]
        at += 8 + length
        at = skip(struct.unpack_from("<I", data, at)[0], at + 4)
        if key.startswith(b"tokenizer.") and not key.startswith(b"tokenizer.chat_template"):
            total.update(data[start:at])
    return total.hexdigest()


class Receipts(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = dict(environment(), XDG_CACHE_HOME=os.path.join(self.folder, "cache"))

    def path(self, name="receipts.jsonl"):
        return os.path.join(self.folder, name)

    def lines(self, path):
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def test_file_gets_a_line_a_run(self):
        for prompt in ("E", "S"):
            done = self.ok(run("-p", prompt, "--receipt", self.path(), "-t", 2, env=self.env))
            self.assertIn(done.text, ("Hi 🙂!", "alpha beta gamma delta"))
        first, second = self.lines(self.path())
        self.assertEqual(first["receipt"], 1)
        self.assertEqual((first["status"], first["stop_reason"]), ("MICA_OK", "eos"))
        self.assertEqual(first["tokens"], {"prompt_n": 1, "cached_n": 0, "gen_n": 8, "forced_n": 0})
        self.assertEqual(first["threads"]["n"], 2)
        self.assertEqual(first["model"]["sha256_from"], "file")
        self.assertEqual(second["model"]["sha256_from"], "cache")
        with open(SCRIPTED, "rb") as f:
            self.assertEqual(first["model"]["sha256"], hashlib.sha256(f.read()).hexdigest())
        self.assertEqual(second["model"]["sha256"], first["model"]["sha256"])
        self.assertEqual(first["model"]["tokenizer_sha256"], tokenizer_hash(SCRIPTED))

    def test_template_of_another_file(self):
        template = os.path.join(self.folder, "t.jinja")
        text = "{{ messages[0].content }}"
        with open(template, "w", encoding="utf-8") as f:
            f.write(text)
        self.ok(run("-p", "E", "--chat-template", template, "--receipt", self.path(), env=self.env))
        self.assertEqual(self.lines(self.path())[0]["model"]["template_sha256"], hashlib.sha256(text.encode()).hexdigest())

    def test_kernels_are_those_that_explain_lists(self):
        done = self.ok(run("-p", "E", "--explain-kernels", "--receipt", self.path(), env=self.env))
        parts = self.lines(self.path())[0]["kernels"]["parts"]
        for what, which in parts.items():
            self.assertIn(f"{what}: {which}", done.message.splitlines())

    def test_standard_output(self):
        done = self.ok(run("-p", "E", "--receipt", "-", env=self.env))
        text, line = done.text.rstrip("\n").split("\n")
        self.assertEqual(text, "Hi 🙂!")
        self.assertEqual(json.loads(line)["receipt"], 1)

    def test_json(self):
        done = self.ok(run("-p", "E", "--json", "--receipt", "-", env=self.env))
        last = json.loads(done.text.splitlines()[-1])
        self.assertEqual(last["receipt"]["tokens"]["gen_n"], last["gen_n"])

    def test_chat(self):
        self.ok(mica("chat", "-m", SCRIPTED, "--temp", 0, "--receipt", self.path(), stdin="E\nS\n", env=self.env))
        self.assertEqual(len(self.lines(self.path())), 2)

    def test_speculation_and_kv_types(self):
        self.ok(run("-p", "X", "-n", 40, "--speculate", "lookup", "--receipt", self.path(), env=self.env))
        speculation = self.lines(self.path())[0]["speculation"]
        self.assertEqual(speculation["mode"], "lookup")
        self.assertGreaterEqual(speculation["drafted_n"], speculation["accepted_n"])

    def test_refused(self):
        for condition, says in (("kernels=sse9", "the kernel set is"), ("threads>=60", "threads"), ("kv=q4_0", "f16"),
                                ("ctx>=1000000", "tokens of context")):
            done = self.fails(run("-p", "E", "--require", condition, "--receipt", self.path(), env=self.env), condition, says)
            self.assertEqual(done.out, b"")
        self.assertFalse(os.path.exists(self.path()))

    def test_no_drop(self):
        arguments = ("-p", "X", "-n", "200", "--ctx", "64", "--full", "shift", "--receipt", self.path())
        self.ok(run(*arguments, env=self.env))
        self.assertGreater(self.lines(self.path())[0]["context"]["dropped_n"], 0)
        done = run(*arguments, "--require", "no_drop", env=self.env)
        self.assertEqual(done.code, 1, done)
        self.assertIn("no_drop is required, but", done.message)
        self.assertEqual(self.lines(self.path())[1]["context"]["dropped_n"], 0)
        self.assertEqual(self.lines(self.path())[1]["status"], "MICA_REFUSED")

    def test_all_of_several_conditions(self):
        self.ok(run("-p", "E", "-t", 2, "--require", "threads=2", "--require", "no_drop", "--require", "kv=f16", env=self.env))
        self.fails(run("-p", "E", "-t", 2, "--require", "threads=2", "--require", "kv=q8_0", env=self.env), "kv=q8_0")

    def test_malformed(self):
        self.fails(run("-p", "E", "--require", "nonsense", env=self.env), "nonsense", "kernels=NAME")

    def test_a_file_that_cannot_be_written(self):
        done = run("-p", "E", "--receipt", os.path.join(self.folder, "no", "such", "folder"), env=self.env)
        self.assertEqual(done.code, 1)
        self.assertIn("the file of receipts", done.message)


if __name__ == "__main__":
    main()
