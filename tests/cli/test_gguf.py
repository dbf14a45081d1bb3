"""mica inspect, and mica run on files that are damaged or odd: the cases gguf-*."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from climica import BIN, CASES, SCRIPTED, TestCase, case, environment, generate, main, mica, run, write_temporary

# Files of the cases that inspect accepts; all others are refused. Where a case leaves the choice (a hole, a zero dimension, an
# alignment of 1 or 4, bool bytes beyond 1) this is what this reader does.
ACCEPTED = {
    "gguf-01-truncated-header": {"ok.gguf"},
    "gguf-13-duplicate-tensor": {"case_differs.gguf"},
    "gguf-16-versions": {"v2.gguf", "v3.gguf"},
}
EITHER = {
    "gguf-07-too-many-dims": {"nd0.gguf"},
    "gguf-08-dim-product-wrap": {"d_zero.gguf"},
    "gguf-09-bad-alignment": {"al_1.gguf", "al_4.gguf"},
    "gguf-11-offset-unaligned": {"hole.gguf"},
    "gguf-24-bool-and-enum-bytes": {"bool2.gguf", "bool255.gguf", "emptykey.gguf", "badutf8.gguf"},
}
NAMED = {  # what the message must say
    "gguf-02-not-a-gguf": {"redirect.gguf": "HTML", "lfs.gguf": "LFS", "ggml.gguf": "GGML"},
    "gguf-13-duplicate-tensor": {"dup.gguf": "w"},
    "gguf-15-big-endian": {"be.gguf": "big-endian"},
    "gguf-16-versions": {"v1.gguf": "1", "v99.gguf": "99"},
    "gguf-17-removed-or-unknown-type": {"type31.gguf": "type id 31", "type250.gguf": "type id 250"},
}


def memory_growth(*args):
    """Peak resident bytes of a run."""
    code = "import resource, subprocess, sys; p = subprocess.run(sys.argv[1:], stdout=-3, stderr=-3); " \
           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    out = subprocess.run(["python3", "-c", code, BIN, *args], stdout=subprocess.PIPE, check=True, env=environment()).stdout
    return int(out) * 1024


class Cases(TestCase):
    def check_file(self, name, path):
        file = os.path.basename(path)
        begin = time.monotonic()
        done = mica("inspect", path)
        if file in ACCEPTED.get(name, ()):
            self.ok(done)
        elif file not in EITHER.get(name, ()):
            self.assertIn(NAMED.get(name, {}).get(file, ""), self.fails(done, file).message)
        self.assertIn(done.code, (0, 1), done)
        self.assertLess(time.monotonic() - begin, 5)
        if done.code == 0:
            json.loads(self.ok(mica("inspect", path, "--json")).out)
        self.fails(mica("run", "-m", path, "-p", "x", "-n", "1"), file)

    def test_files(self):
        count = 0
        for name in sorted(os.listdir(CASES)):
            if not re.match(r"gguf-\d+-", name) or name.startswith("gguf-25"):
                continue
            for file in sorted(os.listdir(case(name))):
                if file.endswith(".gguf"):
                    with self.subTest(name=name, file=file):
                        self.check_file(name, case(name, file))
                    count += 1
        self.assertGreater(count, 60)

    def test_positions(self):
        """Damage is told with the byte where it is."""
        for name in ("gguf-03-huge-kv-count", "gguf-05-huge-string", "gguf-07-too-many-dims", "gguf-10-offset-out-of-file"):
            for file in os.listdir(case(name)):
                done = mica("inspect", case(name, file))
                if done.code:
                    self.assertRegex(done.message, r"byte \d+", f"{name}/{file}")

    def test_memory(self):
        normal = memory_growth("inspect", case("gguf-01-truncated-header", "ok.gguf"))
        for name in ("gguf-03-huge-kv-count", "gguf-05-huge-string", "gguf-08-dim-product-wrap"):
            for file in os.listdir(case(name)):
                self.assertLess(memory_growth("inspect", case(name, file)), normal + (64 << 20), file)

    def test_truncated_data(self):
        """Case gguf-12."""
        with open(SCRIPTED, "rb") as f:
            data = f.read()
        for bad in (data[:-1], data[:len(data) // 2]):
            path = write_temporary(self, bad)
            self.fails(mica("inspect", path), "tensor")
            self.fails(run("-p", "E", model=path), "tensor")
        self.assertEqual(self.ok(run("-p", "E", model=write_temporary(self, data + b"\0"))).text, "Hi 🙂!")

    def test_split(self):
        """Case gguf-25."""
        folder = case("gguf-25-split-files")
        for part in ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf"):
            done = self.ok(mica("inspect", "--json", os.path.join(folder, "good", part)))
            self.assertEqual(json.loads(done.out)["tensors"], ["a", "b"])
        for name in ("missing", "swapped", "count", "short", "dup"):
            self.fails(mica("inspect", "--json", os.path.join(folder, name, "m-00001-of-00002.gguf")))
        self.fails(mica("inspect", "--json", os.path.join(folder, "missing", "m-00001-of-00002.gguf")), "m-00002-of-00002.gguf")
        self.fails(mica("inspect", "--json", os.path.join(folder, "renamed", "model.gguf")))

    def test_generated(self):
        """Cases gguf-20, gguf-21, gguf-27."""
        with tempfile.TemporaryDirectory() as out:
            for name in ("gguf-20-array-length-mismatch", "gguf-21-special-id-out-of-range", "gguf-27-missing-or-extra-tensor"):
                generate(name, "gen.py", out)
            self.fails(run("-p", "x", "-n", "1", model=f"{out}/scores_short.gguf"), "373", "374")
            self.fails(run("-p", "x", "-n", "1", model=f"{out}/types_short.gguf"), "3", "374")
            for file, wanted in (("bos_oob", "1000000"), ("eos_max", "4294967295")):
                done = run("-p", "E", "-n", "20", model=f"{out}/{file}.gguf")
                if done.code == 0:
                    self.assertTrue(done.text.startswith("Hi "), done)
                    self.assertIn(wanted, done.message)
                else:
                    self.fails(done, wanted)
            done = self.fails(run("-p", "E", "-n", "4", model=f"{out}/missing.gguf"), "blk.0.ffn_up.weight")
            self.assertNotIn("truncat", done.message)
            done = self.ok(run("-p", "E", "-n", "20", model=f"{out}/extra.gguf"))
            self.assertEqual(done.text, "Hi 🙂!")
            warnings = [line for line in done.message.splitlines() if line.startswith("mica: warning: ")]
            self.assertEqual(len(warnings), 1, done)
            self.assertIn("vision.patch.weight", warnings[0])


class Inspect(TestCase):
    def test_json(self):
        info = json.loads(self.ok(mica("inspect", SCRIPTED, "--json", "--ctx", "100", "--chunk", "8", "--threads", "2")).out)
        self.assertEqual((info["file"], info["version"], info["runnable"]), (SCRIPTED, 3, True))
        self.assertEqual(info["file_bytes"], os.path.getsize(SCRIPTED))
        meta = info["metadata"]
        self.assertEqual((meta["general.architecture"], meta["llama.block_count"], meta["tokenizer.ggml.add_bos_token"]),
                         ("llama", 1, False))
        self.assertAlmostEqual(meta["llama.attention.layer_norm_rms_epsilon"], 1e-6)
        self.assertEqual(meta["tokenizer.ggml.tokens"]["count"], 374)
        self.assertEqual(meta["tokenizer.ggml.tokens"]["first"][:3], ["<unk>", "<s>", "</s>"])
        self.assertEqual((len(info["tensors"]), info["tensors"][0]), (12, "token_embd.weight"))
        memory = info["memory"]
        self.assertEqual((memory["n_ctx"], memory["prefill_chunk"], memory["n_threads"]), (100, 8, 2))
        self.assertEqual(memory["kv_bytes"], 4 * 128 * 100)
        self.assertEqual(memory["total_bytes"], memory["weights_bytes"] + memory["kv_bytes"] + memory["workspace_bytes"])
        self.assertEqual(memory["weights_bytes"], sum(t["bytes"] for t in info["types"].values()))
        self.assertEqual(info["types"]["F32"]["count"], 12)

    def test_tensors(self):
        tensors = json.loads(self.ok(mica("inspect", "-m", SCRIPTED, "--json", "--tensors")).out)["tensors"]
        self.assertEqual(tensors[0], {"name": "token_embd.weight", "type": "F32", "dims": [128, 374], "bytes": 4 * 128 * 374})
        text = self.ok(mica("inspect", SCRIPTED, "--tensors")).text
        self.assertIn("F32    token_embd.weight  128 x 374  191488 bytes", text)
        self.assertIn("general.name = scripted", text)
        self.assertIn("Memory for a context of 512 tokens", text)
        self.assertNotIn("token_embd.weight", self.ok(mica("inspect", SCRIPTED)).text)

    def test_what_cannot_run(self):
        path = case("gguf-01-truncated-header", "ok.gguf")
        info = json.loads(self.ok(mica("inspect", path, "--json")).out)
        self.assertEqual((info["runnable"], info["memory"]), (False, None))
        self.assertTrue(info["reason"])
        self.assertIn("Not runnable here: ", self.ok(mica("inspect", path)).text)

    def test_wrong_options(self):
        self.fails(mica("inspect", SCRIPTED, "--ctx", "1"), "1")
        self.fails(mica("inspect", SCRIPTED, "--cpus", "x"), "--cpus", code=2)

    def test_odd_bytes(self):
        """Text of the file reaches neither terminal nor JSON as it is."""
        with open(SCRIPTED, "rb") as f:
            data = f.read()
        for odd in (b"\xff\xfe\x1b[2Jxx", b"a\nb\0c\"\\\x7f"):
            self.assertEqual(len(odd), 8)
            path = write_temporary(self, data.replace(b"scripted", odd, 1))
            value = json.loads(self.ok(mica("inspect", path, "--json")).out)["metadata"]["general.name"]
            self.assertIn(value, ("\\xff\\xfe\x1b[2Jxx", "a\nb\0c\"\\\x7f"))
            out = self.ok(mica("inspect", path)).out
            self.assertNotIn(b"\x1b", out)
            self.assertNotIn(b"\0", out)
        path = write_temporary(self, data.replace(b"general.name", b"general.na\n\x1b", 1))
        done = mica("inspect", path)
        self.assertNotIn(b"\x1b", done.out + done.err)


if __name__ == "__main__":
    main()
