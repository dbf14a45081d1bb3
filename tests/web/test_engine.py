"""The engine as WebAssembly under Node, as the page's worker drives it: small models, replies like those of this machine, refusals."""
import glob
import os
import tempfile
import unittest

from webtest import DATA, SITE, ask, native, need_site, node

SCRIPTED = os.path.join(DATA, "cases", "_common", "scripted.gguf")
TINY = sorted(glob.glob(os.path.join(DATA, "tiny", "*.gguf")))
TURN = {"messages": [{"role": "user", "content": "E"}]}  # answered with "Hi", a smile and "!"


def turn(**more):
    return {**TURN, "temperature": 0, **more}


class Replies(unittest.TestCase):
    def test_tiny_models(self):
        self.assertGreater(len(TINY), 5)
        for path in TINY:
            want, _ = native(path, "-p", "hello", "-n", 12, "--no-chat", "--ignore-eos", "--temp", 0)
            for variant in ("simd128", "relaxed"):
                with self.subTest(model=os.path.basename(path), variant=variant):
                    _, reply = ask(path, [{"prompt": "hello", "max_tokens": 12, "temperature": 0, "ignore_eos": True}], variant)
                    self.assertEqual(reply["tokens"], want)

    def test_conversation(self):
        """A second turn computes only what is new."""
        want, text = native(SCRIPTED, "-p", "E", "--temp", 0)
        self.assertEqual(text, "Hi \U0001F642!")
        info, first, second = ask(SCRIPTED, [turn(), turn()])
        self.assertEqual((first["tokens"], first["text"]), (want, text))
        self.assertEqual((second["tokens"], second["text"]), (want, text))
        self.assertEqual(first["result"]["cached_n"], 0)
        self.assertTrue(info["chat"])
        self.assertEqual(first["result"]["stop_reason"], "eos")
        self.assertEqual(first["result"]["gen_n"], len(want))

    def test_seed(self):
        path = os.path.join(DATA, "tiny", "llama.gguf")
        want, _ = native(path, "-p", "hello", "-n", 40, "--no-chat", "--ignore-eos", "--seed", 7, "--temp", 1.5)
        base = {"prompt": "hello", "max_tokens": 40, "ignore_eos": True, "temperature": 1.5}
        _, same, other, fresh = ask(path, [{**base, "seed": 7}, {**base, "seed": 8}, base], "relaxed")
        self.assertEqual(same["tokens"], want)
        self.assertNotEqual(other["tokens"], want)
        self.assertGreaterEqual(fresh["result"]["seed"], 0)

    def test_sets(self):
        for variant, kernels in (("simd128", "simd128"), ("relaxed", "relaxed"), ("simd128", "portable")):
            info, reply = ask(SCRIPTED, [turn()], variant, options={"kernels": kernels})
            self.assertEqual(info["kernels"], kernels)
            self.assertEqual(reply["result"]["stop_reason"], "eos")

    def test_cancel(self):
        path = os.path.join(DATA, "tiny", "llama.gguf")
        base = {"prompt": "hello", "max_tokens": 50, "ignore_eos": True, "temperature": 0}
        _, cut, whole = ask(path, [{**base, "cancel_after": 5}, base])
        self.assertEqual((cut["result"]["stop_reason"], len(cut["tokens"])), ("cancelled", 5))
        self.assertEqual(whole["tokens"][:5], cut["tokens"])
        self.assertEqual(len(whole["tokens"]), 50)

    def test_context_full(self):
        path = os.path.join(DATA, "tiny", "llama.gguf")
        info, reply, refused = ask(path, [{"prompt": "hello", "temperature": 0, "ignore_eos": True}, {"prompt": "hello " * 80}],
                                   options={"context": 64})
        self.assertEqual(info["context"], 64)
        self.assertEqual(reply["result"]["stop_reason"], "context")
        self.assertEqual(reply["result"]["prompt_n"] + reply["result"]["gen_n"], 64)
        self.assertEqual(refused["error"]["code"], "MICA_CONTEXT_FULL")


class Refusals(unittest.TestCase):
    def refused(self, model, code, words, **more):
        (answer,) = ask(model, [], **more)
        self.assertEqual(answer["error"]["code"], code, answer)
        self.assertRegex(answer["error"]["message"], words)

    def test_no_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            for content in (b"This is a text, and no model of any kind.", b"GGUF", b""):
                with open(path, "wb") as f:
                    f.write(content)
                self.refused(path, "MICA_BAD_FILE", "GGUF|byte")
            with open(SCRIPTED, "rb") as whole, open(path, "wb") as f:
                f.write(whole.read()[:-1000])
            self.refused(path, "MICA_BAD_FILE", "byte")

    def test_another_length_than_was_said(self):
        self.refused(SCRIPTED, "FETCH", "ended after", bytes=os.path.getsize(SCRIPTED) + 1)
        self.refused(SCRIPTED, "FETCH", "more than", bytes=os.path.getsize(SCRIPTED) - 1)

    def test_too_large(self):
        self.refused(SCRIPTED, "MICA_OUT_OF_MEMORY", "no memory for a model of 4294000000 bytes", bytes=4294000000)
        self.refused(SCRIPTED, "MICA_OVER_BUDGET", "more memory than can be addressed",
                     options={"context": 60000000})

    def test_options(self):
        self.refused(SCRIPTED, "MICA_BAD_KERNELS", "unknown kernel set", options={"kernels": "avx2"})
        self.refused(SCRIPTED, "MICA_INVALID_ARGUMENT", "contxt", options={"contxt": 5})

    def test_requests(self):
        for request, words in (({}, "either"), ({"prompt": "a", **TURN}, "either"), ({"prompt": 5}, "string"),
                               ({"prompt": "a", "tempreature": 0}, "tempreature"), ({"prompt": "a", "temperature": -1}, "temperature")):
            _, answer, after = ask(SCRIPTED, [request, turn()])
            self.assertEqual(answer["error"]["code"], "MICA_INVALID_ARGUMENT", answer)
            self.assertRegex(answer["error"]["message"], words)
            self.assertEqual(after["result"]["stop_reason"], "eos")


class Site(unittest.TestCase):
    def test_sizes(self):
        """What a visitor fetches before the model."""
        for name in ("mica-simd128.wasm", "mica-relaxed.wasm"):
            self.assertLess(os.path.getsize(os.path.join(SITE, name)), 1536 << 10)


if __name__ == "__main__":
    need_site()
    node()
    unittest.main()
