"""The page with a real model: a reply is typed, streamed, stopped; a schema gives JSON."""
import json
import os

from browser import PageTest
from serving import main_with_models, models_dir, wait_until

MODEL = "smollm2-135m-instruct-q4_1.gguf"
LONG = "Tell me a very long story about a lighthouse keeper and the sea, with many chapters."


class Real(PageTest):
    arguments = ("--parallel", 1, "--ctx", 2048)
    model = os.path.join(models_dir(), MODEL)

    def begin(self):
        """A reply that is being written."""
        self.page.fill("[name=temperature]", "0")
        self.say(LONG)
        body = self.page.locator(".running .body")
        self.wait_for("document.querySelector('.running .body')?.innerText.length > 40")
        return body

    def idle(self):
        return self.server.metrics()["mica_running"] == 0

    def test_typed_and_streamed(self):
        """The text grows while the reply is being written, and is in the end what the API gives."""
        self.page.fill("[name=temperature]", "0")
        self.page.fill("[name=max_tokens]", "60")
        self.page.evaluate("""() => { window.lengths = [];
            new MutationObserver(() => { const b = document.querySelector(".running .body"); if (b) window.lengths.push(b.innerText.length); })
                .observe(document.getElementById("log"), { subtree: true, childList: true, characterData: true }); }""")
        self.page.focus("#prompt")
        self.page.keyboard.type("What is the capital of France?", delay=5)
        self.page.keyboard.press("Enter")
        shown = self.wait_reply()
        lengths = self.page.evaluate("window.lengths")
        self.assertGreaterEqual(len(set(lengths)), 4, lengths)
        self.assertGreater(len(shown), 20)
        self.assertEqual(" ".join(shown.split()), " ".join(self.server.ask("What is the capital of France?", max_tokens=60).split()))

    def test_esc_stops(self):
        left = self.server.metrics()["mica_clients_left_total"]
        body = self.begin()
        self.page.keyboard.press("Escape")
        stopped = self.wait_reply()
        self.assertIn("stopped", self.page.locator(".foot").inner_text())
        self.assertTrue(wait_until(self.idle, 5), "the slot is not free")
        self.assertEqual(self.server.metrics()["mica_clients_left_total"], left + 1)
        self.page.wait_for_timeout(300)
        self.assertEqual(self.page.locator(".assistant .body").inner_text(), stopped)
        self.assertEqual(body.count(), 0)
        self.page.fill("[name=max_tokens]", "8")
        self.assertNotEqual(self.ask("Thanks.", 2), "")

    def test_the_button_stops(self):
        self.begin()
        self.assertFalse(self.page.locator("#send").is_visible())
        self.page.click("#stop")
        self.wait_reply()
        self.assertIn("stopped", self.page.locator(".foot").inner_text())
        self.assertTrue(self.page.locator("#send").is_visible())
        self.assertTrue(wait_until(self.idle, 5), "the slot is not free")

    def test_a_new_chat_stops_what_runs(self):
        self.begin()
        self.page.click("#new")
        self.assertEqual(self.page.locator(".message").count(), 0)
        self.assertTrue(wait_until(self.idle, 5), "the slot is not free")
        self.page.wait_for_timeout(300)
        self.assertEqual(self.page.locator(".message").count(), 0)
        self.page.fill("[name=max_tokens]", "8")
        self.assertNotEqual(self.ask("Hello."), "")

    def test_tokens_per_second_live(self):
        """Charts move while a reply is being written, not only after it."""
        self.begin()
        rate = "parseFloat(document.querySelector('.chart b').textContent) > 0 && document.querySelector('.running') !== null"
        self.wait_for(rate)
        self.page.get_by_text("1 of 1 running").wait_for()
        self.page.keyboard.press("Escape")
        self.wait_reply()

    def test_a_schema_gives_json(self):
        self.set_schema(json.dumps({
            "type": "object", "additionalProperties": False, "required": ["name", "age", "pets"],
            "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
                           "pets": {"type": "array", "items": {"enum": ["cat", "dog"]}, "maxItems": 3}}}))
        self.say("Invent a person.")
        self.wait_reply()
        shown = self.page.locator(".assistant pre code").inner_text()
        person = json.loads(shown)
        self.assertEqual(set(person), {"name", "age", "pets"})
        self.assertIsInstance(person["age"], int)
        self.assertTrue(set(person["pets"]) <= {"cat", "dog"})
        self.assertEqual(shown, json.dumps(person, indent=2, ensure_ascii=False) if person["pets"] else shown)


if __name__ == "__main__":
    main_with_models(MODEL)
