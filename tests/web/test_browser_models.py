"""A real model in Chromium: the token ids of this machine, streamed, stopped; the speed is told, not judged."""
import os
import sys

from site_page import SiteTest
from webtest import REAL, gold_prompts, native
from serving import main_with_models, models_dir

MODEL = os.path.join(models_dir(), REAL[0] + ".gguf")
URL = "models/smollm2.gguf"


class Real(SiteTest):
    models = {"smollm2.gguf": MODEL}

    def test_ids(self):
        for variant in ("simd128", "relaxed"):
            (prompt,) = gold_prompts(REAL[0], 1)
            request = {"prompt": prompt, "max_tokens": 64, "temperature": 0, "ignore_eos": True}
            reply = self.reply(request, model=URL, context=1024, variant=variant)
            want, text = native(MODEL, "-p", prompt, "-n", 64, "--no-chat", "--ignore-eos", "--temp", 0)
            self.assertEqual((reply["tokens"], reply["text"]), (want, text))
            self.assertEqual(reply["info"]["kernels"], variant)
            self.assertGreater(reply["pieces"], 20)
            print(f"Chromium, {variant}: {reply['result']['decode_tps']:.1f} tokens/s, loaded in {reply['loaded']:.0f} ms", file=sys.stderr)

    def test_chat(self):
        """The file is chosen as a person would; text appears while the page stays alive; the stop button ends it."""
        self.load(file=MODEL)
        self.assertRegex(self.note(), r"^Loaded in ")
        self.say("Tell me a very long story about a lighthouse keeper and the sea, with many chapters.")
        self.wait_for("document.querySelector('.message.assistant')?.textContent.length > 40")
        early = len(self.last_reply())
        self.wait_for(f"document.querySelector('.message.assistant').textContent.length > {early + 20}")
        self.assertTrue(self.page.locator("#stop").is_visible())
        frames = self.page.evaluate("""() => new Promise((resolve) => {
            let n = 0;
            const end = performance.now() + 500, count = () => (++n, performance.now() < end ? requestAnimationFrame(count) : resolve(n));
            requestAnimationFrame(count);
        })""")
        self.assertGreater(frames, 4, "the page does not answer while a reply is computed")
        self.page.click("#stop")
        self.wait_for("document.getElementById('stop').hidden", 20)
        self.assertRegex(self.note(), "^stopped · ")
        stopped = self.last_reply()
        self.page.wait_for_timeout(300)
        self.assertEqual(self.last_reply(), stopped)
        self.assertNotEqual(self.ask("What is the capital of France? Answer with one word."), "")
        self.assertRegex(self.note(), "^done · ")


if __name__ == "__main__":
    main_with_models(REAL[0] + ".gguf")
