"""Real models as WebAssembly under Node: the token ids of this machine, from every kernel set."""
import os
import sys
import unittest

from webtest import OLD_NODE, REAL, ask, gold_prompts, native, need_site, node, node_options

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "serve"))
from serving import main_with_models, models_dir  # noqa: E402


def path_of(model):
    return os.path.join(models_dir(), model + ".gguf")


class Real(unittest.TestCase):
    def same(self, model, variant, tokens, prompts, **options):
        requests = [{"prompt": p, "max_tokens": tokens, "temperature": 0, "ignore_eos": True} for p in prompts]
        info, *replies = ask(path_of(model), requests, variant, options={"context": 1024, **options})
        for prompt, reply in zip(prompts, replies):
            want, _ = native(path_of(model), "-p", prompt, "-n", tokens, "--no-chat", "--ignore-eos", "--temp", 0)
            self.assertEqual(reply["tokens"], want, prompt)
        print(f"{model}, {info['kernels']}: {replies[-1]['result']['decode_tps']:.1f} tokens/s", file=sys.stderr)
        return info

    def test_smollm2(self):
        prompts = gold_prompts(REAL[0], 3)
        for variant in ("simd128", "relaxed"):
            self.assertEqual(self.same(REAL[0], variant, 48, prompts)["kernels"], variant)

    def test_portable(self):
        self.same(REAL[0], "simd128", 4, gold_prompts(REAL[0], 1), kernels="portable")

    def test_others(self):
        for model in REAL[1:]:
            self.same(model, "relaxed", 12, gold_prompts(model, 2))

    def test_faulty_instructions(self):
        """The quick compiler of old versions of Node gets products of bytes wrong, which the engine's own check finds."""
        if OLD_NODE != node_options():
            self.skipTest("this node has no such fault")
        path = path_of(REAL[0])
        info, reply = ask(path, [{"prompt": "The", "max_tokens": 4, "temperature": 0}], "relaxed", node(OLD_NODE[0]))
        self.assertEqual(info["kernels"], "simd128")
        self.assertRegex(info["refused"], "gem[vm] for [A-Z0-9_]+ of the set relaxed")
        self.assertEqual(reply["tokens"], native(path, "-p", "The", "-n", 4, "--no-chat", "--temp", 0)[0])
        (told,) = ask(path, [], "relaxed", node(OLD_NODE[0]), options={"kernels": "relaxed"})
        self.assertEqual(told["error"]["code"], "MICA_BAD_KERNELS")

    def test_long_prompt(self):
        """Prompts are computed 32 tokens at a time here, and 256 there."""
        self.same(REAL[0], "relaxed", 24, ["The lighthouse keeper counted the waves, and the waves counted him. " * 12])


if __name__ == "__main__":
    need_site()
    node()
    main_with_models(REAL[0] + ".gguf", *(model + ".gguf" for model in REAL[1:]))
