"""mica run on the scripted model, whose replies are known exactly: streaming, ends, stop strings, context, JSON."""
import json
import os
import re
import subprocess
import tempfile

from climica import BIN, COMMON, SCRIPTED, TestCase, environment, main, mica, run, scripted_module, write_temporary

with open(os.path.join(COMMON, "scripted.json"), encoding="utf-8") as f:
    IDS = json.load(f)["ids"]
METRICS = re.compile(r"^ttft_ms=[\d.]+;tpot_ms=[\d.]+;prompt_n=(\d+);gen_n=(\d+);prefill_tps=[\d.]+;decode_tps=[\d.]+;"
                     r"peak_rss=\d+;threads=\d+;kernels=\w+;stop=(\w+)$")


def lines_of(done):
    return [json.loads(line) for line in done.text.splitlines()]


class Replies(TestCase):
    def reply(self, want, *args, stop="eos", **more):
        done = self.ok(run(*args, **more))
        self.assertEqual(done.text, want, done)
        lines = done.message.splitlines()
        match = METRICS.match(lines[-1])
        self.assertTrue(match, done)
        self.assertEqual(match.group(3), stop, done)
        return lines, int(match.group(1)), int(match.group(2))

    def test_scripts(self):
        for prompt, want in (("E", "Hi 🙂!"), ("C", "zh你試#"), ("S", "alpha beta gamma delta"), ("Q", "Mars?\nBob"),
                             ("T", "<think>hm</think>yes"), ("J", '{"a":1}'), ("2", "two"), ("R", "red fox")):
            lines, prompt_n, _ = self.reply(want, "-p", prompt)
            self.assertEqual((len(lines), prompt_n), (1, 1))
            self.reply(want, "-p", prompt, "--no-chat")

    def test_byte_that_is_no_utf8(self):
        self.reply("ok\ufffdgo", "-p", "V")

    def test_prompt_sources(self):
        self.reply("Hi 🙂!", stdin="E")
        self.reply("Hi 🙂!", stdin="E\n")
        self.reply("Hi 🙂!", stdin="E\r\n")
        self.reply("Hi 🙂!", "-f", write_temporary(self, "E\n"))
        self.reply("Hi 🙂!", "--token-ids", str(IDS["E"]))
        _, prompt_n, _ = self.reply("Hi 🙂!", "--token-ids", f"[{IDS['x']}, {IDS['E']}]")
        self.assertEqual(prompt_n, 2)

    def test_lengths(self):
        _, _, gen_n = self.reply("", "-p", "E", "-n", "0", stop="length")
        self.assertEqual(gen_n, 0)
        self.reply("Hi", "-p", "E", "-n", "1", stop="length")
        self.reply("Hi 🙂", "-p", "E", "-n", "6", stop="length")
        _, _, gen_n = self.reply("x" * 40, "-p", "X", "-n", "40", stop="length")
        self.assertEqual(gen_n, 40)
        self.assertGreater(len(run("-p", "E", "--ignore-eos", "-n", "30", "--full", "stop").out), 0)

    def test_stop_strings(self):
        self.reply("alpha b", "-p", "S", "--stop", "eta ga", stop="stop")
        self.reply("al", "-p", "S", "--stop", "pha be", "--stop", "delta", stop="stop")
        self.reply("Mars", "-p", "Q", "--stop", "?", stop="stop")
        self.reply("Mars?", "-p", "Q", "--stop", "\n", stop="stop")
        self.reply("Hi ", "-p", "E", "--stop", "🙂", stop="stop")
        self.reply("alpha beta gamma delta", "-p", "S", "--stop", "delta!")
        self.reply("", "-p", "S", "--stop", "a", stop="stop")

    def test_streaming(self):
        """The first token is there long before the reply has ended: this reply does not end by itself."""
        p = subprocess.Popen([BIN, "run", "-m", SCRIPTED, "-p", "X", "--temp", "0", "--full", "shift"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment())
        self.assertEqual(p.stdout.read(5), b"xxxxx")
        p.kill()
        p.communicate()

    def test_context_stop(self):
        lines, _, gen_n = self.reply("x" * 63, "-p", "X", "--ctx", "64", stop="context")
        self.assertEqual((len(lines), gen_n), (2, 63))
        self.assertTrue(lines[0].startswith("mica: context full: "))
        self.assertIn("--ctx 65", lines[0])

    def test_context_error(self):
        done = self.fails(run("-p", "X", "--ctx", "16", "--full", "error"), "16", "17")
        self.assertEqual(done.text, "x" * 15)

    def test_context_shift(self):
        lines, _, gen_n = self.reply("x" * 50, "-p", "X", "--ctx", "16", "--full", "shift", "--keep", "2", "-n", "50",
                                     stop="length")
        self.assertEqual(gen_n, 50)
        self.assertEqual(set(lines[:-1]), {"mica: context full: dropped 7 tokens from position 2"})

    def test_prompt_too_long(self):
        """Case ctx-01."""
        for n in (200, 64):
            self.fails(run("-p", "x" * (n - 1) + "E", "--ctx", "64"), str(n), "64")
        _, prompt_n, gen_n = self.reply("Hi", "-p", "x" * 62 + "E", "--ctx", "64", stop="context")
        self.assertEqual((prompt_n, gen_n), (63, 1))

    def test_context_sizes(self):
        """Case ctx-03: the sizes that are good; test_usage has the others."""
        for ctx, n_ctx in (("0", 512), ("7", 7), ("512", 512)):
            plan = json.loads(self.ok(mica("inspect", SCRIPTED, "--json", "--ctx", ctx)).out)
            self.assertEqual(plan["memory"]["n_ctx"], n_ctx)
        self.reply("xxxxxx", "-p", "X", "--ctx", "7", stop="context")

    def test_paths_agree(self):
        want = run("-p", "S", "--json", "--logprobs", "5")
        for args in (["--threads", "2"], ["--chunk", "1"], ["--kernels", "portable"], ["--cpus", "0"], ["--ctx", "33"]):
            got = run("-p", "S", "--json", "--logprobs", "5", *args)
            for a, b in zip(lines_of(want)[:-1], lines_of(got)[:-1]):
                a.pop("t_ms"), b.pop("t_ms")
                self.assertEqual(a, b, args)

    def test_explain_kernels(self):
        lines, _, _ = self.reply("Hi 🙂!", "-p", "E", "--explain-kernels")
        text = "\n".join(lines)
        self.assertRegex(text, r"(?m)^blk\.\*\.ffn_down\.weight F32: GEMM \w+, GEMV \w+$")
        for group in ("norms and sums", "activation", "quantisation", "attention", "KV cache"):
            self.assertRegex(text, rf"(?m)^{group}: \w+ \(\w+.*\)$")
        lines, _, _ = self.reply("Hi 🙂!", "-p", "E", "--explain-kernels", "--kernels", "portable")
        for line in lines[:-1]:  # the last has the metrics
            self.assertRegex(line, r": portable \(|: GEMM portable, GEMV portable$|: rows decoded by portable code$")

    def test_kernels_of_the_environment(self):
        """MICA_KERNELS forces a set; --kernels wins over it; an empty one is none."""
        def ran(value, *args):
            done = self.ok(run("-p", "E", "--json", *args, env=dict(environment(), MICA_KERNELS=value)))
            return lines_of(done)[-1]["kernels"]

        best = lines_of(self.ok(run("-p", "E", "--json")))[-1]["kernels"]
        self.assertEqual(ran("portable"), "portable")
        self.assertEqual(ran(""), best)
        self.assertEqual(ran("portable", "--kernels", best), best)
        self.assertEqual(ran("magic", "--kernels", "portable"), "portable")
        self.fails(run("-p", "E", env=dict(environment(), MICA_KERNELS="magic")), "magic")


class Json(TestCase):
    def test_tokens(self):
        lines = lines_of(self.ok(run("-p", "E", "--json")))
        self.assertEqual([x["token"] for x in lines[:-1]],
                         [IDS[t] for t in ("Hi", "▁", "<0xF0>", "<0x9F>", "<0x99>", "<0x82>", "!", "</s>")])
        self.assertEqual([x["text"] for x in lines[:-1]], ["Hi", " ", "", "", "", "🙂", "!", ""])
        times = [x["t_ms"] for x in lines[:-1]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(set(lines[0]), {"token", "text", "t_ms"})

    def test_end(self):
        end = lines_of(run("-p", "E", "--json", "--seed", "7"))[-1]
        self.assertEqual((end["done"], end["ok"], end["chat"], end["text"], end["stop_reason"], end["seed"]),
                         (True, True, True, "Hi 🙂!", "eos", 7))
        self.assertEqual((end["prompt_n"], end["gen_n"], end["cached_n"], end["dropped_n"]), (1, 8, 0, 0))
        for key in ("load_ms", "ttft_ms", "tpot_ms", "tpot_p50_ms", "tpot_p95_ms", "prefill_ms", "prefill_tps", "decode_tps"):
            self.assertGreater(end[key], 0, key)
        self.assertGreater(end["peak_rss_bytes"], 1 << 20)
        self.assertIs(lines_of(run("-p", "E", "--json", "--no-chat"))[-1]["chat"], False)

    def test_held_back_text_comes(self):
        lines = lines_of(run("-p", "S", "--json", "--stop", "delta!"))
        self.assertEqual("".join(x["text"] for x in lines[:-1]), "alpha beta gamma delta")
        lines = lines_of(run("-p", "S", "--json", "--stop", "eta ga"))
        self.assertEqual("".join(x["text"] for x in lines[:-1]), "alpha b")
        self.assertEqual((lines[-1]["text"], lines[-1]["stop_reason"]), ("alpha b", "stop"))

    def test_logprobs(self):
        first = lines_of(run("-p", "D", "--json", "--logprobs", "3", "-n", "1"))[0]
        self.assertEqual([t["token"] for t in first["top"]], [IDS["p1"], IDS["p2"], IDS["p3"]])
        for t, p in zip(first["top"], (0.6, 0.3, 0.1)):
            self.assertAlmostEqual(2.718281828459045 ** t["logprob"], p, places=5)
        self.assertAlmostEqual(first["logprob"], first["top"][0]["logprob"])

    def test_no_tokens(self):
        lines = lines_of(run("-p", "E", "--json", "-n", "0"))
        self.assertEqual((len(lines), lines[0]["text"], lines[0]["gen_n"]), (1, "", 0))


class Templates(TestCase):
    def make(self, **more):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "m.gguf")
        scripted_module().make(path, **more)
        return path

    def prompt_n(self, done):
        return int(METRICS.match(self.ok(done).message.splitlines()[-1]).group(1))

    def test_no_template(self):
        model = self.make(template=None)
        self.assertEqual(self.ok(run("-p", "E", model=model)).text, "Hi 🙂!")
        self.fails(run("-p", "E", "--system", "S", model=model), "chat template")
        self.fails(mica("chat", "-m", model), "chat template")
        self.assertEqual(self.ok(run("-p", "E", "--chat-template", write_temporary(self, "xx{{ messages[0].content }}"),
                                     model=model)).text, "Hi 🙂!")

    def test_broken_template(self):
        model = self.make(template="{% fly %}")
        self.fails(run("-p", "E", model=model), "fly")
        self.assertEqual(self.ok(run("-p", "E", "--no-chat", model=model)).text, "Hi 🙂!")

    def test_refusal(self):
        template = write_temporary(self, "{{ raise_exception('no\\nthanks') }}")
        self.fails(run("-p", "E", "--chat-template", template), "no thanks")

    def test_system(self):
        template = write_temporary(self, "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}E")
        self.assertEqual(self.prompt_n(run("-p", "ab", "--system", "xyz", "--chat-template", template)),
                         len("[system]xyz[user]abE"))

    def test_control_tokens_of_users_are_text(self):
        """A control token counts one; its spelling counts each character (the scripted vocabulary has no merges here)."""
        template = write_temporary(self, "<s>{% for m in messages %}{{ m.content | trim }}<|eot|>{% endfor %}E")
        plain = self.prompt_n(run("-p", "abc", "--chat-template", template))
        self.assertEqual(plain, 1 + 3 + 1 + 1)
        self.assertEqual(self.prompt_n(run("-p", "  a</s>c ", "--chat-template", template)), 1 + len("a</s>c") + 1 + 1)
        self.assertEqual(self.prompt_n(run("-p", "a</s>c", "--parse-special", "--chat-template", template)), 1 + 3 + 1 + 1)
        both = run("-p", "<s>", "--system", "<|eot|>", "--chat-template", template)
        self.assertEqual(self.prompt_n(both), 1 + len("<|eot|>") + 1 + len("<s>") + 1 + 1)

    def test_bos_is_put_once(self):
        model = self.make(extra_kv=())
        with open(model, "rb") as f:
            data = f.read()
        key = b"tokenizer.ggml.add_bos_token" + (7).to_bytes(4, "little")
        self.assertEqual(data.count(key + b"\0"), 1)
        model = write_temporary(self, data.replace(key + b"\0", key + b"\1"))
        template = write_temporary(self, "{{ bos_token }}{{ messages[0].content }}E")
        for text, n in (("ab", 2), ("a</s>", 5)):
            self.assertEqual(self.prompt_n(run("-p", text, "--chat-template", template, model=model)), 1 + n + 1, text)
            self.assertEqual(self.prompt_n(run("-p", text, model=model)), 1 + n, text)
            self.assertEqual(self.prompt_n(run("-p", text, "--no-bos", model=model)), n, text)
            self.assertEqual(self.prompt_n(run("-p", text, "--no-chat", model=model)), 1 + n, text)


if __name__ == "__main__":
    main()
