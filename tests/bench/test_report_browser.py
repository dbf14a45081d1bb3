"""The page of mica report in a browser: its charts are drawn, it fits a phone, the dark and a sheet of paper, and it does without a script."""
import json
import os
import tempfile
import unittest

from report_browser import DESKTOP, PHONE, chromium  # first: it may start another Python
import records
from climica import TestCase, main, mica

CHARTS = ("rate", "itl", "memory", "roofline")
# The colours of a chart's pixels, by how often they occur; what is not opaque is left out.
COLOURS = """(id) => {
  const canvas = document.querySelector(`#chart-${id} canvas`);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = {};
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) found[`${data[i]},${data[i + 1]},${data[i + 2]}`] = (found[`${data[i]},${data[i + 1]},${data[i + 2]}`] ?? 0) + 1;
  return found;
}"""
# What a name of a colour in the style means now.
COLOUR = """(name) => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const [, list] = /rgb\\(([^)]*)\\)/.exec(getComputedStyle(probe).color);
  probe.remove();
  return list.replaceAll(" ", "");
}"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class ReportPage(TestCase):
    window, archives, script = DESKTOP, None, True
    scheme = "light"

    @classmethod
    def setUpClass(cls):
        chromium()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.runs, cls.html = os.path.join(folder.name, "runs.json"), os.path.join(folder.name, "report.html")
        archives = cls.archives or [records.run("steady cpu", energy_w=10.0), records.run("hot npu", rate=30.0, throttle_at=240, seed=2)]
        with open(cls.runs, "w", encoding="utf-8") as f:
            f.write(records.lines(*archives))
        done = mica("report", cls.runs, "--out", cls.html)
        assert done.code == 0, done

    def setUp(self):
        self.asked, self.errors = [], []
        self.context = chromium().new_context(color_scheme=self.scheme, java_script_enabled=self.script, accept_downloads=True, **self.window)
        self.addCleanup(self.context.close)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60000)
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.goto("file://" + self.html)

    def tearDown(self):
        self.assertEqual([u[:100] for u in self.asked if u != "file://" + self.html and not u.startswith("data:application/json")], [])
        self.assertEqual(self.errors, [])

    def colours(self, chart):
        return self.page.evaluate(COLOURS, chart)

    def colour(self, name):
        return self.page.evaluate(COLOUR, name)


class Desktop(ReportPage):
    def test_charts_are_drawn(self):
        self.assertEqual(self.page.locator("#plots canvas").count(), len(CHARTS))
        for chart in CHARTS:
            found = self.colours(chart)
            for run in ("--c0", "--c1"):
                self.assertGreater(found.get(self.colour(run), 0), 15, (chart, run))
        self.assertEqual(self.page.locator("#legend li").all_inner_texts(), ["steady cpu", "hot npu"])

    def test_the_step_is_marked(self):
        self.assertGreater(self.colours("rate").get(self.colour("--bad"), 0), 50)
        self.assertEqual(self.colours("memory").get(self.colour("--bad"), 0), 0)
        self.assertRegex(self.page.inner_text("#chart-rate figcaption"), r"Throttled: hot npu, 2\d\.\d % slower from 2[34]\d s on\.")

    def test_values_under_the_cursor(self):
        self.page.hover("#chart-rate .u-over")
        self.assertRegex(self.page.inner_text("#chart-rate .read"), r"^\d+(\.\d+)? s: steady cpu \d+(\.\d+)?, hot npu \d+")

    def test_charts_follow_the_window(self):
        before = self.page.locator("#chart-rate canvas").bounding_box()["width"]
        self.page.set_viewport_size({"width": 700, "height": 800})
        self.page.wait_for_timeout(500)
        figure, canvas = (self.page.locator(s).bounding_box() for s in ("#chart-rate", "#chart-rate canvas"))
        self.assertNotEqual(canvas["width"], before)
        self.assertLessEqual(canvas["x"] + canvas["width"], figure["x"] + figure["width"])
        self.assertLessEqual(self.page.evaluate(OVERFLOW), 0)

    def test_the_dark(self):
        light = self.colour("--back"), self.colour("--c0")
        self.page.emulate_media(color_scheme="dark")
        self.page.wait_for_timeout(300)
        dark = self.colour("--back"), self.colour("--c0")
        self.assertNotEqual(light, dark)
        self.assertLess(sum(map(int, dark[0].split(","))), 150)
        found = self.colours("rate")
        self.assertGreater(found.get(dark[1], 0), 15)
        self.assertEqual(found.get(light[1], 0), 0)

    def test_paper(self):
        self.page.emulate_media(color_scheme="dark", media="print")
        self.page.wait_for_timeout(300)
        self.assertGreater(sum(map(int, self.colour("--back").split(","))), 600)  # light, whatever the screen was
        self.assertLessEqual(self.page.locator("#chart-rate canvas").bounding_box()["width"], 650)
        self.assertFalse(self.page.locator(".download").first.is_visible())
        pdf = self.page.pdf(format="A4")
        self.assertTrue(pdf.startswith(b"%PDF-") and len(pdf) > 20000)

    def test_raw_samples_are_downloaded(self):
        with self.page.expect_download() as waiting:
            self.page.locator(".download a").nth(1).click()
        with open(waiting.value.path(), encoding="utf-8") as f:
            run = json.load(f)
        self.assertEqual((run["format"], run["head"]["name"]), ("mica-bench-run", "hot npu"))
        self.assertEqual(waiting.value.suggested_filename, f"mica-{run['head']['id']}.json")

    def test_text_is_readable(self):
        """WCAG AA: text against its ground, in the light and in the dark."""
        def luminance(colour):
            parts = [c / 255 for c in map(int, colour.split(","))]
            return sum(w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for w, c in zip((0.2126, 0.7152, 0.0722), parts))
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme)
            for name in ("--text", "--soft", "--mark", "--bad"):
                for ground in ("--back", "--card"):
                    a, b = sorted((luminance(self.colour(name)), luminance(self.colour(ground))), reverse=True)
                    self.assertGreaterEqual((a + 0.05) / (b + 0.05), 4.5, (scheme, name, ground))


class Short(ReportPage):
    archives = [records.run("brief", seconds=20), records.run("long", seconds=300, seed=2)]

    def test_what_cannot_be_told_is_not_called_good(self):
        self.assertEqual(self.page.inner_text("#chart-rate figcaption"), "No throttling was found. Too short to tell: brief.")


class Phone(ReportPage):
    window = PHONE

    def test_nothing_sticks_out(self):
        self.assertLessEqual(self.page.evaluate(OVERFLOW), 0)
        for chart in CHARTS:
            box = self.page.locator(f"#chart-{chart} canvas").bounding_box()
            self.assertGreater(box["width"], 200, chart)
            self.assertLessEqual(box["x"] + box["width"], 360, chart)
        wide = self.page.evaluate("""[...document.querySelectorAll("table")].filter((t) => t.scrollWidth > t.parentElement.clientWidth + 1).map((t) => t.className)""")
        self.assertEqual(wide, [])

    def test_rows_are_cards_with_labels(self):
        label = self.page.evaluate("getComputedStyle(document.querySelector('#summary td'), '::before').content")
        self.assertIn("TTFT 512", label)
        self.assertFalse(self.page.locator("#summary thead").is_visible())

    def test_text_is_large_enough(self):
        small = self.page.evaluate("""[...document.querySelectorAll("body *")].filter((e) => e.offsetParent && e.innerText?.trim() && !e.closest(".plot") &&
            parseFloat(getComputedStyle(e).fontSize) < 12).map((e) => e.tagName + "." + e.className)""")
        self.assertEqual(small, [])


class WithoutScript(ReportPage):
    script = False

    def test_tables(self):
        text = self.page.inner_text("body")
        for wanted in ("Summary", "TTFT 512", "hot npu", "The charts need JavaScript", "slower by", "Raw samples", "What ran where"):
            self.assertIn(wanted, text)
        self.assertFalse(self.page.locator("#charts").is_visible())


HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


class Hostile(ReportPage):
    archives = [records.run(HOSTILE, seconds=120, throttle_at=60, reason=HOSTILE, conditions={HOSTILE: HOSTILE}), records.run("good", seconds=120, seed=2)]

    def test_its_texts_stay_texts(self):
        self.assertEqual(self.page.title(), "mica: benchmark report")
        self.assertEqual(self.page.locator("img").count(), 0)
        self.assertEqual(self.page.locator("script").count(), 2)
        self.assertEqual(self.page.locator("#legend li").first.inner_text(), HOSTILE)
        self.page.hover("#chart-rate .u-over")
        self.assertIn("<img src=x", self.page.inner_text("#chart-rate .read"))
        self.assertLessEqual(self.page.evaluate(OVERFLOW), 0)

    def test_the_policy_forbids_scripts_of_others(self):
        self.page.evaluate("""() => { const s = document.createElement("script"); window.seen = [];
            document.addEventListener("securitypolicyviolation", (e) => window.seen.push(e.effectiveDirective));
            try { s.textContent = "document.title = 'taken'"; document.body.append(s); } catch { window.seen.push("thrown"); } }""")
        self.page.wait_for_timeout(200)
        self.assertEqual(self.page.title(), "mica: benchmark report")
        self.assertTrue(self.page.evaluate("window.seen.length > 0"))
        self.errors.clear()  # the console told it, as it should


class Many(ReportPage):
    """More runs than colours, and one of which nothing is known."""
    archives = [records.run(f"runtime {i}", rate=10.0 + i, seconds=60, seed=i) for i in range(11)] + [
        {**records.run("broken", state="failed", reason="it broke", memory=None, roofline=None, partition=None, loads=[]), "series": [], "samples": []}]
    window = PHONE

    def test_it_is_all_there(self):
        self.assertEqual(self.page.locator("#legend li").count(), 12)
        self.assertEqual(self.page.locator("#plots canvas").count(), len(CHARTS))
        self.assertLessEqual(self.page.evaluate(OVERFLOW), 0)
        self.assertIn("failed", self.page.locator("#summary tbody tr").nth(11).inner_text())


class Nothing(ReportPage):
    archives = [{**records.run("broken", state="failed", roofline=None), "series": [], "samples": []}]

    def test_charts_of_nothing(self):
        self.assertEqual(self.page.locator("#plots canvas").count(), 0)
        self.assertEqual(self.page.locator("#plots figcaption").all_inner_texts(), ["Not known of any run."] * len(CHARTS))


if __name__ == "__main__":
    main()
