"""Every adapter that is set up on this machine, end to end on SmolLM2-135M. One that is not is skipped by its name.

scripts/test-runtimes sets all of them up; the llama.cpp adapter takes minutes, the others' converters take longer.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "cli"),
                os.path.join(os.path.dirname(os.path.dirname(HERE)), "adapters", "common")]
from climica import TestCase, main_with_models, models_dir  # noqa: E402
import adapter as shared  # noqa: E402
import client  # noqa: E402
import models  # noqa: E402
import places  # noqa: E402

SMOL = "smollm2-135m-instruct-q4_1.gguf"
NAMES = ("llamacpp", "onnxruntime-genai", "executorch", "mlx", "litert-lm")
ENDINGS = {"litert-lm": ".litertlm"}
SLOW = ("mlx",)  # a second a token: shorter prompts


def model_of(name):
    return os.path.join(models_dir(), SMOL)


def ready(name):
    """-> why this adapter cannot run here, or None"""
    if not places.is_set_up(name):
        return f"adapters/{name}/setup has not been run"
    if name != "llamacpp":
        try:
            models.find(name, model_of(name), ENDINGS.get(name, ""))
        except shared.Failure as e:
            return str(e)
    return None


class Runtimes(TestCase):
    def run_one(self, name):
        why = ready(name)
        if why:
            self.skipTest(why)
        long = 64 if name in SLOW else 256
        found = client.check(name, model_of(name), long=long, reply=8)
        print(f"{name}: {found['hello']['runtime_version']}, ttft {found['ttft_ms']} ms at {long} tokens, "
              f"{found['ttft_32_ms']} ms at 32, {found['decode_tps']} tokens/s, {found['peak_rss_mib']} MiB", file=sys.stderr)
        self.assertEqual(found["loaded"]["backend"], "cpu")
        self.assertGreaterEqual(found["loaded"]["context_limit"], 1024)
        self.assertIn(found["cached_n"], (0, None))
        # The second time the same prompt, which a prefix cache would answer at once; the slack is for busy machines.
        self.assertGreater(max(found["ttft_ms"], found["ttft_again_ms"]), found["ttft_32_ms"])
        self.assertGreater(found["ttft_again_ms"], found["ttft_32_ms"] / 2, "a prefix cache?")
        self.assertTrue(3 < found["loaded"]["bits_per_weight"] < 9, found["loaded"])
        self.assertEqual((found["gen_n"], found["reason"]), (8, "length"))
        return found

    def test_llamacpp(self):
        found = self.run_one("llamacpp")
        self.assertEqual((found["partition"]["unit"], found["partition"]["fallback"]), ("layers", 0))
        self.assertEqual(found["partition"]["total"], 31)  # 30 layers and the output

    def test_onnxruntime_genai(self):
        found = self.run_one("onnxruntime-genai")
        self.assertEqual((found["partition"]["unit"], found["partition"]["fallback"]), ("operators", 0))
        self.assertGreater(found["partition"]["total"], 100)

    def test_executorch(self):
        self.run_one("executorch")

    def test_mlx(self):
        found = self.run_one("mlx")
        if sys.platform == "linux":
            self.assertEqual(found["hello"]["labels"], ["reference BLAS"])

    def test_litert_lm(self):
        found = self.run_one("litert-lm")
        self.assertEqual(found["hello"]["token_events"], "chunk")


class LlamaCpp(TestCase):
    """What only a runtime that takes token ids can be asked."""

    def setUp(self):
        why = ready("llamacpp")
        if why:
            self.skipTest(why)
        self.a = client.Adapter(client.command_of("llamacpp"), stderr=subprocess.DEVNULL)
        self.addCleanup(self.a.__exit__)
        self.a.hello()

    def load(self, n_ctx=64):
        return self.a.ask("load", model=model_of("llamacpp"), backend="cpu", n_ctx=n_ctx, threads=2)[0]

    def test_the_context_ends_a_reply(self):
        limit = self.load(256)["context_limit"]
        done, ids, _ = self.a.generate({"tokens": list(range(1000, 1000 + limit - 4))}, 32, True, ignore_eos=True)
        self.assertEqual((done["reason"], done["prompt_n"], done["gen_n"], len(ids)), ("context", limit - 4, 5, 5))
        with self.assertRaises(client.Refused) as caught:
            self.a.generate({"tokens": [1000] * limit}, 1, True)
        self.assertEqual(caught.exception.code, "context")

    def test_counters_at_odd_lengths(self):
        self.load(1024)
        for size in (1, 2, 512, 513):  # pieces of a prompt have 512 tokens
            for n in (1, 3):
                done, _, _ = self.a.generate({"tokens": list(range(1000, 1000 + size))}, n, True, ignore_eos=True)
                self.assertEqual((done["prompt_n"], done["gen_n"]), (size, n), size)

    def test_seeds(self):
        self.load(256)
        sampling = {"temperature": 1.0, "top_k": 50, "top_p": 0.95, "seed": 5}
        prompt = {"text": "Once upon a time there was"}
        first = self.a.generate(prompt, 16, True, sampling=sampling)[1]
        self.assertEqual(self.a.generate(prompt, 16, True, sampling=sampling)[1], first)
        self.assertNotEqual(self.a.generate(prompt, 16, True, sampling={**sampling, "seed": 6})[1], first)

    def test_errors(self):
        for model, backend, code in (("/none.gguf", "cpu", "model"), (os.path.abspath(__file__), "cpu", "model"),
                                     (model_of("llamacpp"), "npu", "backend")):
            with self.assertRaises(client.Refused) as caught:
                self.a.ask("load", model=model, backend=backend, n_ctx=64, threads=2)
            self.assertEqual(caught.exception.code, code)
        self.load()
        with self.assertRaises(client.Refused) as caught:
            self.a.generate({"tokens": [49152]}, 1, True)
        self.assertEqual(caught.exception.code, "bad_request")


if __name__ == "__main__":
    if all(ready(name) for name in NAMES):
        print("skipped: no runtime is set up: run scripts/test-runtimes, or adapters/NAME/setup and convert", file=sys.stderr)
        sys.exit(77)
    main_with_models(SMOL)
