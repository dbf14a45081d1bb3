"""mica report: every format can be read, every figure is the one that mica verify computes, and no text of a run gets out of its place."""
import base64
import csv
import hashlib
import html.parser
import io
import json
import os
import re
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
import records  # noqa: E402
from climica import SCRIPTED, TestCase, main, mica, write_temporary  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "src", "bench", "report_page")
VOID = {"meta", "br", "link", "img", "hr", "input"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&|`[a](b)\n=cmd\u202e\u0001"


class Page(html.parser.HTMLParser):
    """The elements of a page with their attributes, its text by element, and whether every element is closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.texts, self.faults = [], [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag, _ in self.open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")
        else:
            self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.texts.append(([t for t, _ in self.open], self.open[-1][1], data))

    def all(self, tag, **attrs):
        return [a for t, a in self.elements if t == tag and all(a.get(k.rstrip("_")) == v for k, v in attrs.items())]

    def inside(self, tag):
        return "".join(data for tags, _, data in self.texts if tag in tags)

    def data(self):
        return json.loads("".join(d for t, a, d in self.texts if t[-1] == "script" and a.get("id") == "data"))


class ReportCase(TestCase):
    def report(self, text, form="html", *args):
        return self.ok(mica("report", write_temporary(self, text), "--format", form, *args)).text

    def has(self, pattern, text):
        """assertRegex() of a page, whose whole text nobody wants to read."""
        self.assertTrue(re.search(pattern, text), f"{pattern} is not in the {len(text)} characters")

    def complete(self, *archives):
        """The same runs with the summaries that belong to them."""
        runs = json.loads(self.report(records.lines(*archives), "json"))["runs"]
        for archive, run in zip(archives, runs):
            extra = ("energy_joules_per_token", "energy_wh_per_million", "energy_usd_per_million", "hours_per_million")
            archive["summary"] = {k: v for k, v in run["figures"].items() if k not in extra}
        return records.lines(*archives)


class Html(ReportCase):
    @classmethod
    def setUpClass(cls):
        cls.archives = [records.run("steady cpu", energy_w=10.0), records.run("hot npu", rate=30.0, throttle_at=240, depth=0.25, seed=2)]

    def setUp(self):
        self.text = self.complete(*self.archives)
        self.html = self.report(self.text)
        self.page = Page(self.html)

    def test_structure(self):
        self.assertEqual(self.page.faults, [])
        self.assertTrue(self.html.startswith("<!doctype html>\n<html lang"))
        for name in ("summary", "charts", "energy", "runs", "run-1", "run-2"):
            self.assertEqual(len([a for _, a in self.page.elements if a.get("id") == name]), 1, name)
        ids = [a["id"] for _, a in self.page.elements if "id" in a]
        self.assertEqual(len(ids), len(set(ids)))
        for link in self.page.all("a"):
            if link["href"].startswith("#"):
                self.assertIn(link["href"][1:], ids)
        rows = re.findall(r"<tr>(.*?)</tr>", self.html[self.html.index('id="summary"'):self.html.index('id="charts"')], re.DOTALL)
        self.assertEqual(len(rows), 3)
        self.assertEqual(rows[0].count("<th"), rows[1].count("<td") + 1)
        self.assertEqual(rows[1].count("<td"), rows[2].count("<td"))

    def test_nothing_is_asked_from_elsewhere(self):
        policy = self.page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
        rules = {p.split()[0]: p.split()[1:] for p in policy.split(";")}
        self.assertEqual(rules["default-src"], ["'none'"])
        self.assertNotIn("unsafe", policy)
        for directive, tag in (("script-src", "script"), ("style-src", "style")):
            bodies = ["".join(d for t, a, d in self.page.texts if t[-1] == tag and "type" not in a)]
            self.assertEqual(rules[directive], ["'sha256-%s'" % base64.b64encode(hashlib.sha256(b.encode()).digest()).decode() for b in bodies])
        for tag, attrs in self.page.elements:
            for name in ("src", "action", "srcset", "poster", "style"):
                self.assertNotIn(name, attrs, tag)
            self.assertFalse([n for n in attrs if n.startswith("on")], tag)
            if "href" in attrs:
                self.assertTrue(attrs["href"].startswith(("#", "data:application/json;base64,")), attrs["href"][:80])
        self.assertEqual({t for t, _ in self.page.elements} & {"link", "img", "iframe", "object", "embed", "form", "base"}, set())
        self.assertEqual(re.findall(r"@import|url\(", self.page.inside("style")), [])
        script = "".join(d for t, a, d in self.page.texts if t[-1] == "script" and "type" not in a)
        self.assertEqual(re.findall(r"https?://|fetch\(|XMLHttpRequest|WebSocket|\beval\(|import\(|new Function", script), [])
        self.has("Permission is hereby granted", script)  # uPlot's licence goes with it

    def test_figures_are_those_of_verify(self):
        """The table's numbers are those of the summary that mica verify finds good."""
        good = self.ok(mica("verify", write_temporary(self, self.text))).text
        self.assertEqual(len(re.findall(r"^good ", good, re.MULTILINE)), 2)
        for i, archive in enumerate(self.archives):
            row = re.findall(r"<tr>(.*?)</tr>", self.html[self.html.index('id="summary"'):], re.DOTALL)[i + 1]
            cells = dict(re.findall(r'<td data-label="([^"]*)">([^<]*)</td>', row))
            s = archive["summary"]
            self.assertEqual(cells["TTFT 512, median / p95 (ms)"], f"{s['ttft_512_ms']:.1f} / {s['ttft_512_p95_ms']:.1f}")
            self.assertEqual(cells["steady (tok/s)"], f"{s['steady_tps']:.1f}")
            self.assertEqual(cells["cold (tok/s)"], f"{s['cold_tps']:.1f}")
            self.assertEqual(cells["TPOT (ms)"], f"{s['tpot_ms']:.2f}")
            self.assertEqual(cells["peak RSS (MiB)"], "300")
            self.assertEqual(cells["anon. / file (MiB)"], "150 / 100")
            self.assertEqual(cells["load, cold / warm (ms)"], "– / 76")
            self.assertEqual(cells["roofline (%)"], f"{s['roofline_pct']:.0f}")
        self.assertFalse("does not verify" in self.html)
        # What was put in comes out: 20 tokens/s at 10 W are 0.5 J a token, 0.1389 Wh per 1000; without a sensor there is nothing.
        self.assertAlmostEqual(self.archives[0]["summary"]["energy_wh_per_1k"], 0.1389, delta=0.002)
        self.assertIsNone(self.archives[1]["summary"]["energy_wh_per_1k"])
        self.has("no sensor: not known", self.html)

    def test_the_step_is_told(self):
        charts = self.page.data()["runs"]
        self.assertIsNone(charts[0]["throttle"])
        step = charts[1]["throttle"]
        self.assertAlmostEqual(step["start_s"], 240, delta=10)
        self.assertAlmostEqual(step["depth_pct"], 25, delta=2)
        self.assertEqual(self.html.count("<h4>Throttling</h4>"), 1)
        rates = charts[1]["rate"]
        self.assertAlmostEqual(rates["values"][10], 30, delta=1)
        self.assertAlmostEqual(rates["values"][-10], 22.5, delta=1)
        self.assertLessEqual(len(rates["values"]), 400)

    def test_charts_hold_every_token_and_the_highest_memory(self):
        for run, archive in zip(self.page.data()["runs"], self.archives):
            self.assertEqual(sum(run["itl"]["counts"]), archive["summary"]["decode_tokens"] - 1)
            edges = [10 ** ((run["itl"]["first"] + k) / run["itl"]["per_decade"]) for k in (0, len(run["itl"]["counts"]))]
            self.assertLessEqual(edges[0], archive["summary"]["itl_p50_ms"])
            self.assertGreater(edges[1], archive["summary"]["itl_p99_ms"])
            self.assertEqual(max(run["memory"]["rss_bytes"]), max(s["rss_bytes"] for s in archive["samples"]))
            self.assertLessEqual(len(run["memory"]["t_s"]), 401)

    def test_partition_conditions_and_flags(self):
        text = self.page.inside("article")
        for wanted in ("attention", "2 of 30 fell back", "two are too wide", "ambient_c", "21", "ab" * 32):
            self.assertIn(wanted, text)
        self.has(r'<ul class="flags">\s*<li><bdi>throttled: 2\d\.\d % slower', self.html)

    def test_raw_samples_can_be_taken_out_and_verified(self):
        links = [a for a in self.page.all("a") if "download" in a]
        self.assertEqual([a["download"] for a in links], [f"mica-{a['head']['id']}.json" for a in self.archives])
        for link, archive in zip(links, self.archives):
            data = base64.b64decode(link["href"].split(",", 1)[1], validate=True)
            out = json.loads(data)
            self.assertEqual((out["head"], out["samples"]), (archive["head"], archive["samples"]))
            self.ok(mica("verify", write_temporary(self, data)))

    def test_the_same_runs_give_the_same_bytes(self):
        self.assertTrue(self.report(self.text) == self.html)

    def test_a_forgery_is_told(self):
        forged = json.loads(self.text.splitlines()[0])
        forged["summary"]["steady_tps"] = 99.0
        text = self.report(records.lines(forged))
        self.has("does not verify", text)
        self.has(r'<ul class="complaints bad">\s*<li><bdi>steady_tps: reported 99\.0, computed (19|20)\.', text)
        row = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)[1]
        self.assertRegex(row, r'data-label="steady \(tok/s\)">(19|20)\.\d<')  # the computed one is shown
        self.has("does not verify", self.report(records.lines(forged), "md"))


class Hostile(ReportCase):
    """A run of someone who means ill, in every text that it has."""

    def hostile(self):
        run = records.run(HOSTILE, seconds=60)
        head = run["head"]
        for holder, names in ((head, ("created", "state", "reason", "backend")), (head["runtime"], ("name", "version", "labels")),
                              (head["loaded"], ("backend", "device", "kv_type")), (head["model"], ("path", "sha256")),
                              (head["machine"], ("cpu", "system", "kernel")), (head["partition"], ("unit", "note")),
                              (head["partition"]["parts"][0], ("backend", "what")), (head["harness"], ("mica", "build"))):
            for name in names:
                holder[name] = HOSTILE
        head["id"] = '"><script>alert(3)</script>'
        head["conditions"] = {HOSTILE: HOSTILE}
        head["cooldown"] = {"state": "blind", "why": HOSTILE, "waited_s": 1}
        head["loads"].append({"cache": HOSTILE, "ms": HOSTILE})
        return run

    def setUp(self):
        self.text = records.lines(self.hostile())

    def test_html(self):
        text = self.report(self.text)
        page, plain = Page(text), Page(self.report(records.lines(records.run("x", seconds=60))))
        self.assertEqual(page.faults, [])
        for tag in ("script", "style", "img", "a", "article"):
            self.assertEqual(len(page.all(tag)), len(plain.all(tag)), tag)
        known = {"id", "class", "href", "download", "data-label", "hidden", "scope", "type", "http-equiv", "content", "name", "charset", "lang"}
        self.assertEqual({n for _, a in page.elements for n in a} - known, set())
        self.assertEqual(page.data()["runs"][0]["name"], HOSTILE)
        self.assertFalse("\x01" in text)
        self.assertIn("<img src=x onerror=alert(2)>", page.inside("bdi"))  # as text

    def test_markdown(self):
        lines = self.report(self.text, "md").splitlines()
        self.assertEqual({len(re.findall(r"(?<!\\)\|", line)) for line in lines[:3]}, {len(re.findall(r"\|", lines[1]))})
        self.assertEqual(lines[3], "")
        self.assertNotRegex("\n".join(lines), r"<[a-z/!]|(?<!\\)\[a\]|(?<!\\)`")
        self.assertTrue(all(line.startswith("- ") for line in lines[4:]), lines[4:])

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.report(self.text, "csv"))))
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]["name"], HOSTILE)
        self.assertNotIn(None, rows[0])
        run = records.run("=1+1", seconds=60)
        self.assertEqual(next(csv.DictReader(io.StringIO(self.report(records.lines(run), "csv"))))["name"], " =1+1")

    def test_openmetrics(self):
        families = openmetrics(self.report(self.text, "openmetrics"))
        self.assertEqual([s[1]["name"] for s in families["mica_bench_decode_tps"]], [HOSTILE])


def openmetrics(text):
    """{family: [(sample's name, labels, value)]}, by the rules of the format; what breaks one is an AssertionError."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-2:]
    families, current, kind = {}, None, None
    label = r'([a-zA-Z_]\w*)="((?:[^"\\]|\\["\\n])*)"'
    for line in lines[:-2]:
        about = re.fullmatch(r"# (TYPE|HELP) ([a-z][a-z0-9_]*) (.+)", line)
        if about and about[1] == "TYPE":
            assert about[2] not in families, f"{about[2]} twice"
            current, kind, families[about[2]] = about[2], about[3], []
            assert kind in ("gauge", "info"), line
        elif about:
            assert about[2] == current and not families[current], line
        else:
            sample = re.fullmatch(rf"([a-z][a-z0-9_]*)\{{({label}(?:,{label})*)\}} (\S+)", line)
            assert sample and sample[1] == current + ("_info" if kind == "info" else ""), line
            labels = {n: re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], v) for n, v in re.findall(label, sample[2])}
            value = float(sample[7])
            assert value == value and (kind != "info" or value == 1), line
            families[current].append((sample[1], labels, value))
    return families


class Formats(ReportCase):
    def setUp(self):
        self.runs = [records.run("one cpu", seconds=90), records.run("two cpu", seconds=90, rate=10.0, seed=2)]
        self.text = self.complete(*self.runs)

    def test_markdown(self):
        lines = self.report(self.text, "md").splitlines()
        self.assertTrue(lines[0].startswith("| runtime | TTFT 512, median / p95 (ms) | TTFT 32, "), lines[0])
        self.assertEqual(len({line.count("|") for line in lines[:4]}), 1)
        self.assertIn(f" {self.runs[1]['summary']['decode_tps']:.1f} |", lines[3])
        self.assertIn("- two cpu: 1.2; 4 threads; A processor; by hand; 2026-01-02T03:04:05Z; done", lines)

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.report(self.text, "csv"))))
        for row, run in zip(rows, self.runs, strict=True):
            self.assertEqual((row["id"], row["complaints"]), (run["head"]["id"], "0"))
            for name, value in run["summary"].items():
                if isinstance(value, float):
                    self.assertEqual(float(row[name]), value, name)
            self.assertEqual(row["steady_tps"], "")  # 90 s are no 8 minutes: unknown is empty, never 0

    def test_json(self):
        report = json.loads(self.report(self.text, "json", "--usd-per-kwh", "0.25"))
        self.assertEqual((report["format"], report["version"], report["usd_per_kwh"]), ("mica-report", 1, 0.25))
        for run, own in zip(report["runs"], self.runs, strict=True):
            self.assertEqual((run["head"], run["complaints"]), (own["head"], []))
            self.assertEqual({k: run["figures"][k] for k in own["summary"]}, own["summary"])

    def test_openmetrics(self):
        families = openmetrics(self.report(self.text, "openmetrics"))
        ids = [r["head"]["id"] for r in self.runs]
        self.assertEqual([s[1]["run"] for s in families["mica_bench_run"]], ids)
        self.assertEqual([s[2] for s in families["mica_bench_decode_tps"]], [r["summary"]["decode_tps"] for r in self.runs])
        self.assertNotIn("mica_bench_steady_tps", families)  # not known of any run
        self.assertEqual([s[2] for s in families["mica_bench_sustained"]], [0, 0])

    def test_costs(self):
        """0.5 J a token at 0.25 $ a kWh: 500,000 J a million, 138.9 Wh, 0.0347 $; at 20 tokens/s 13.9 hours."""
        text = records.lines(records.run(energy_w=10.0, seconds=90))
        figures = json.loads(self.report(text, "json", "--usd-per-kwh", "0.25"))["runs"][0]["figures"]
        self.assertAlmostEqual(figures["energy_joules_per_token"], 0.5, delta=0.01)
        self.assertAlmostEqual(figures["energy_wh_per_million"], 138.9, delta=2)
        self.assertAlmostEqual(figures["energy_usd_per_million"], 0.0347, delta=0.0005)
        self.assertAlmostEqual(figures["hours_per_million"], 13.9, delta=0.1)
        self.has(r"Electricity at \$0\.25 per kWh, <bdi>as given", self.report(text, "html", "--usd-per-kwh", "0.25"))
        unknown = json.loads(self.report(self.text, "json"))["runs"][0]["figures"]
        self.assertIsNone(unknown["energy_usd_per_million"])

    def test_which_runs(self):
        file = write_temporary(self, self.text)
        one = self.runs[1]["head"]["id"]
        for args, ids in ((["--run", one[:6]], [one]), ([], [r["head"]["id"] for r in self.runs])):
            self.assertEqual([r["id"] for r in json.loads(self.ok(mica("report", file, "--format", "json", *args)).text)["runs"]], ids)
        self.assertEqual(len(json.loads(self.ok(mica("report", file, file, "--format", "json")).text)["runs"]), 4)
        self.fails(mica("report", file, "--run", "nosuch"), "no run")

    def test_out(self):
        file = write_temporary(self, self.text)
        out = write_temporary(self, "old")
        self.assertEqual(self.ok(mica("report", file, "--out", out)).out, b"")
        with open(out, encoding="utf-8") as f:
            self.assertTrue(f.read() == self.report(self.text))
        self.fails(mica("report", file, "--out", os.path.join(out, "x")), "cannot create a file beside")
        self.fails(mica("report", file, "--out", file), "is the file that is read", code=2)

    def test_wrong_files(self):
        self.fails(mica("report"), "a word is missing", code=2)
        self.fails(mica("report", "/nonexistent"), "nonexistent")
        self.fails(mica("report", write_temporary(self, "{}\n")), "no run of mica bench")
        self.fails(mica("report", write_temporary(self, self.text), "--format", "pdf"), "not one of", code=2)


class Spoilt(ReportCase):
    """Runs of which there is little to show are in the report too."""

    def test_nothing_measured(self):
        run = records.run(state="failed", reason="it broke", partition=None, loads=[], memory=None, roofline=None, loaded=None)
        run["series"], run["samples"] = [], []
        for form in ("html", "md", "csv", "json", "openmetrics"):
            self.report(records.lines(run), form)
        text = self.report(records.lines(run))
        self.assertEqual(Page(text).faults, [])
        self.has("it broke", text)
        self.has("The runtime does not tell", text)

    def test_samples_that_contradict_each_other(self):
        run = records.run(seconds=20)
        run["series"][-1]["times"] = records.pack([5 * records.S, 3 * records.S, 9 * records.S])
        run["series"][-1]["tokens"] = records.pack([1, 2, 3])
        text = self.report(records.lines(run))
        self.assertEqual(Page(text).faults, [])
        self.has("time runs backwards", text)

    def test_events_that_are_no_tokens(self):
        run = records.run(seconds=60)
        for series in run["series"]:
            series["exact"] = False
        data = Page(self.report(records.lines(run))).data()["runs"][0]
        self.assertIsNone(data["itl"])
        self.assertIsNone(data["figures"]["itl_p50_ms"])
        self.assertIsNotNone(data["rate"])


class Details(ReportCase):
    def test_runs_of_one_name_are_told_apart(self):
        other = {"path": "/models/large.gguf", "sha256": "cd" * 32}
        runs = [records.run("a", seconds=40), records.run("b", seconds=40), records.run("a", seconds=40, model=other), records.run("b", seconds=40)]
        names = [r["name"] for r in Page(self.report(records.lines(*runs))).data()["runs"]]
        self.assertEqual(names, ["a, small.gguf", "b, run 2", "a, large.gguf", "b, run 4"])

    def test_memory_after_the_last_reply_is_not_of_the_model(self):
        run = records.run(seconds=60)
        highest = max(s["rss_bytes"] for s in run["samples"][:-1])
        last = run["samples"][-1]["t_ns"]
        run["samples"] += [{"t_ns": last + k * records.S, "rss_bytes": 10 ** 12} for k in (2, 3, 4)]
        for clock, wanted in ((False, highest), (True, 10 ** 12)):
            run["head"]["runtime"]["other_clock"] = clock
            memory = Page(self.report(records.lines(run))).data()["runs"][0]["memory"]
            self.assertEqual(max(memory["rss_bytes"]), wanted)

    def test_short_peaks_of_memory_are_kept(self):
        run = records.run(seconds=1000)
        self.assertGreater(len(run["samples"]), 900)
        run["samples"][501]["rss_bytes"] = 10 ** 10
        memory = Page(self.report(records.lines(run))).data()["runs"][0]["memory"]
        self.assertLessEqual(len(memory["t_s"]), 400)
        self.assertEqual(max(memory["rss_bytes"]), 10 ** 10)


class Measured(ReportCase):
    """A run of our own engine, from measuring to the page."""

    def test_database_and_json(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        db = os.path.join(folder.name, "bench.db")
        protocol = dict(records.PROTOCOL, n_ctx=256, cold_s=0.01, steady_s=0.01, sample_s=0.05, phases=[
            {"kind": "load", "cache": "warm"}, {"kind": "ttft", "prompt": 100, "reply": 2, "repeat": 3},
            {"kind": "ttft", "prompt": 16, "reply": 2, "repeat": 3}, {"kind": "decode", "prompt": 16, "reply": 40, "min_s": 0.2}])
        run = mica("bench", "-m", SCRIPTED, "--protocol", write_temporary(self, json.dumps(protocol), ".json"), "--db", db, "--format", "json")
        if b"time to first token" not in run.err:  # a model this small may answer 100 tokens as fast as 16: kept as failed, shown all the same
            self.ok(run)
        for source in (db, write_temporary(self, run.out)):
            report = json.loads(self.ok(mica("report", source, "--format", "json")).text)["runs"]
            self.assertEqual(len(report), 1)
            self.assertEqual(report[0]["complaints"], [])
            page = Page(self.ok(mica("report", source)).text)
            self.assertEqual(page.faults, [])
            self.assertIn("mica cpu", page.inside("bdi"))
            self.assertGreater(len(page.data()["runs"][0]["rate"]["values"]), 0)


class Built(unittest.TestCase):
    def test_the_embedded_files_are_of_these_sources(self):
        """As bundle.mjs counts them. Whether the bytes are right, tests/serve/page/test_build.py says."""
        names = sorted(n for n in os.listdir(PAGE) if re.search(r"\.(js|mjs|css|html)$|^package(-lock)?\.json$", n))
        hashed = hashlib.sha256()
        for name in names:
            with open(os.path.join(PAGE, name), "rb") as f:
                hashed.update(name.encode() + b"\0" + f.read() + b"\0")
        with open(os.path.join(PAGE, "assets.h"), encoding="utf-8") as f:
            self.assertIn(f'"{hashed.hexdigest()}"', f.read(), "run src/serve/page/build")


if __name__ == "__main__":
    main()
