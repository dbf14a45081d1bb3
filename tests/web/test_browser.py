"""The page in Chromium with a small model: a file is chosen or fetched, replies are shown, mistakes are told."""
import os
import tempfile
import unittest

from site_page import SiteTest
from webtest import DATA, native

SCRIPTED = os.path.join(DATA, "cases", "_common", "scripted.gguf")
LLAMA = os.path.join(DATA, "tiny", "llama.gguf")
TURN = {"messages": [{"role": "user", "content": "E"}], "temperature": 0}


class Page(SiteTest):
    models = {"scripted.gguf": SCRIPTED, "llama.gguf": LLAMA}

    def test_a_chosen_file(self):
        self.load(file=SCRIPTED)
        self.assertRegex(self.note(), r"^Loaded in [0-9.]+ s")
        self.assertRegex(self.page.locator("#model").inner_text(), r"context 2048 · (relaxed|simd128)$")
        self.assertEqual(self.ask("E"), "Hi \U0001F642!")
        self.assertRegex(self.note(), r"^done · [0-9]+ tokens, [0-9.]+ a second · prompt [0-9]+ tokens")
        self.assertEqual(self.page.locator(".message").count(), 2)

    def test_an_address(self):
        for path in ("models/scripted.gguf", "unsaid/scripted.gguf"):
            self.load(url=path)
            self.assertRegex(self.note(), r"^Loaded in ")
        self.assertEqual(self.ask("R"), "red fox")

    def test_mistakes(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as f:
            f.write(b"no model at all")
            f.flush()
            self.load(file=f.name)
        self.assertIn("GGUF", self.note())
        self.assertFalse(self.page.locator("#composer").is_visible())
        self.page.set_input_files("#file", [])
        self.load()
        self.assertIn("Choose a file", self.note())
        self.load(url="models/none.gguf")
        self.assertIn("HTTP 404", self.note())
        self.load(url="models/scripted.gguf")
        self.assertEqual(self.ask("R"), "red fox")

    def test_modules(self):
        """Both modules, and all kernel sets, give the same."""
        want, text = native(SCRIPTED, "-p", "E", "--temp", 0)
        for variant, kernels in (("simd128", "simd128"), ("relaxed", "relaxed"), ("relaxed", "simd128"), ("simd128", "portable")):
            reply = self.reply(TURN, model="models/scripted.gguf", variant=variant, kernels=kernels)
            self.assertEqual(reply["info"]["kernels"], kernels)
            self.assertEqual((reply["tokens"], reply["text"]), (want, text))

    def test_leaving_a_loop_stops(self):
        """What is not read any more is not computed any more; the next reply is whole."""
        cut, whole = self.page.evaluate("""async () => {
            const { Mica } = await import("./mica.js");
            const mica = new Mica(), texts = [], request = { prompt: "hello", max_tokens: 400, temperature: 0, ignore_eos: true };
            await mica.load({ url: "models/llama.gguf" }, {});
            for await (const piece of mica.generate(request)) break;
            const cut = mica.tokens.length;
            for await (const piece of mica.generate({ ...request, max_tokens: 20 })) texts.push(piece);
            return [cut, mica.tokens.length];
        }""")
        self.assertLess(cut, 400)
        self.assertEqual(whole, 20)

    def test_refusals_reach_the_page(self):
        message = self.page.evaluate("""async () => {
            const { Mica } = await import("./mica.js");
            const mica = new Mica();
            const told = [];
            const attempt = async () => {
                try {
                    for await (const piece of mica.generate({ prompt: "a", max_tokens: -7 })) told.push(piece);
                } catch (e) {
                    told.push(e.message);
                }
            };
            await attempt();
            await mica.load({ url: "models/llama.gguf" }, {});
            await attempt();
            return told;
        }""")
        self.assertEqual(len(message), 2)
        self.assertIn("no model is loaded", message[0])
        self.assertIn("max_tokens", message[1])


if __name__ == "__main__":
    unittest.main()
