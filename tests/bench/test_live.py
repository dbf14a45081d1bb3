"""What long runs show at a terminal, and what they ask there."""
import json
import os
import re

from bench_case import PROTOCOL, BenchCase
from climica import SCRIPTED, main, mica
from terminal import at_terminal

SPARK = re.compile("[\u2581-\u2588]{2,}")
LINE = re.compile(r"\[[#-]{30}\] +(\d+\.\d) %  (.*)")


class Live(BenchCase):
    def setUp(self):
        super().setUp()
        phases = [dict(p, **({"min_s": 2.5} if p["kind"] == "decode" else {})) for p in PROTOCOL["phases"]]
        self.protocol = self.write("long.json", dict(PROTOCOL, phases=phases))

    def parts(self, shown, width):
        """The lines that were drawn, each a percentage and a text; none is wider than the terminal but for its last column."""
        self.assertTrue(shown.lines, shown)
        found = []
        for line in shown.lines:
            self.assertLess(len(line), width, line)
            match = LINE.fullmatch(line)
            self.assertTrue(match, line)
            found.append((float(match.group(1)), match.group(2)))
        self.assertTrue(all(0 <= part <= 100 for part, _ in found), found)
        return found

    def test_bench(self):
        self.fake()
        shown = at_terminal(*self.arguments("fake"))
        self.assertEqual(shown.code, 0, shown)
        parts = self.parts(shown, 110)
        decode = [(part, text) for part, text in parts if "  decode" in text]
        self.assertGreater(len(decode), 5, shown)
        for part, text in decode[3:]:
            self.assertRegex(text, r"^fake runtime  decode  \d+\.\d tok/s.*  \d+ s left$")
        self.assertTrue(any(SPARK.search(text) for _, text in decode), decode)
        self.assertLess(decode[0][0], decode[-1][0])  # it moves
        self.assertGreater(decode[-1][0], 60)
        last = shown.text.rindex("tok/s")
        self.assertIn("\r\x1b[K", shown.text[shown.text.rindex("  decode"):last + 200])  # and is gone before the table comes
        self.assertIn("fake runtime cpu", shown.text[last - 2000:])

    def test_several_runtimes_are_counted(self):
        self.fake()
        self.fake(name="other")
        self.protocol = self.path("short.json")
        shown = at_terminal(*self.arguments("fake,other"))
        self.assertEqual(shown.code, 0, shown)
        texts = [text for _, text in self.parts(shown, 110)]
        self.assertTrue(any(t.startswith("1 of 2: fake") for t in texts) and any(t.startswith("2 of 2: fake") for t in texts), texts)

    def test_a_narrow_terminal(self):
        self.fake()
        for columns in (80, 45):
            shown = at_terminal(*self.arguments("fake"), columns=columns)
            self.assertEqual(shown.code, 0, shown)
            self.assertGreater(len(shown.lines), 3)
            for line in shown.lines:
                self.assertLess(len(line), columns, line)

    def test_a_terminal_without_unicode(self):
        self.fake()
        shown = at_terminal(*self.arguments("fake"), LC_ALL="C")
        self.assertEqual(shown.code, 0, shown)
        self.parts(shown, 110)
        self.assertTrue(shown.seen.isascii())
        self.assertRegex(shown.text, r"decode  \d+\.\d tok/s  [_.~=+*#-]{2,}  \d+ s left")

    def test_no_terminal(self):
        self.fake()
        done = self.ok(self.bench())
        self.assertNotIn("\x1b", done.message)
        self.assertNotIn("\r", done.message)
        self.assertEqual([line.split(", ")[1] for line in done.message.splitlines()], ["hello", "load_warm", "warmup", "ttft_200", "ttft_16", "decode"])

    def test_compare(self):
        self.fake()
        self.fake(name="other")
        shown = at_terminal("compare", "-m", SCRIPTED, "--adapters", self.folder, "--runtime", "fake,other", "--rounds", "8")
        self.assertEqual(shown.code, 0, shown)
        texts = [text for _, text in self.parts(shown, 110)]
        self.assertTrue(texts[0].startswith("loading, round 1 of 8"), texts)
        later = [t for t in texts if t.startswith("round 8 of 8")]
        self.assertTrue(later, texts)
        self.assertRegex(later[0], r"A \d+\.\d, B \d+\.\d tok/s")
        self.assertTrue(SPARK.search(later[-1]), later)
        self.assertIn("s left", later[0])
        self.assertIn("decode_tps", shown.text)


class Questions(BenchCase):
    """What no sensor tells is asked once for all runtimes, at a terminal, where the machine has to be cool."""

    def setUp(self):
        super().setUp()
        self.fake()
        self.fake(name="other")
        cool = {"kind": "cooldown", "within_c": 50, "settle_s": 0, "max_s": 0.05, "blind_s": 0.05, "poll_s": 0.01}
        self.protocol = self.write("cool.json", dict(PROTOCOL, phases=[PROTOCOL["phases"][0], cool, *PROTOCOL["phases"][1:]]))
        self.variables = {"XDG_DATA_HOME": self.path("data")}

    def ask(self, *answers, options=(), runtimes="fake,other", protocol=None):
        self.protocol, kept = protocol or self.protocol, self.protocol
        if os.path.exists(self.db):
            os.unlink(self.db)
        shown = at_terminal(*self.arguments(runtimes), *options, answers=answers, **self.variables)
        self.protocol = kept
        self.assertEqual(shown.code, 0, shown)
        runs = json.loads(self.ok(mica("report", self.db, "--format", "json")).text)["runs"]
        return shown, [run["head"]["conditions"] for run in runs]

    def test_once_and_kept(self):
        first = {"ambient_c": "21.5", "case": "off", "airplane_mode": "on"}
        shown, conditions = self.ask("21.5", "", "off", "on", "-")
        self.assertEqual(conditions, [first, first])
        self.assertEqual(shown.text.count("temperature of the room"), 1)
        shown, conditions = self.ask("23", "", "", "-", "40", runtimes="fake")
        self.assertIn("temperature of the room in degrees C [21.5]: ", shown.text)
        self.assertIn("case of the device (on, off) [off]: ", shown.text)
        self.assertEqual(conditions, [{"ambient_c": "23", "case": "off", "brightness": "40"}])

    def test_nobody_is_asked_elsewhere(self):
        for options in (["--condition", "ambient_c=20"], ["--no-questions"]):
            shown, conditions = self.ask(options=options, runtimes="fake")
            self.assertNotIn("temperature of the room", shown.text)
            self.assertEqual(conditions, [{"ambient_c": "20"} if "--condition" in options else None])
        shown, _ = self.ask(runtimes="fake", protocol=self.path("short.json"))  # it does not cool down
        self.assertNotIn("temperature of the room", shown.text)
        self.assertNotIn("temperature of the room", self.ok(self.bench()).message)  # no terminal


if __name__ == "__main__":
    main()
