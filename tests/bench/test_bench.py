"""mica bench, compare and verify, with the fake adapter and a model of 850 KB: what is printed can be read, what is stored
can be checked."""
import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import BIN, SCRIPTED, TestCase, environment, main, mica, write_temporary  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
PROTOCOL = {"version": 1, "name": "short", "description": "for tests", "n_ctx": 256, "cold_s": 0.01,
            "steady_s": 0.01, "sample_s": 0.05,
            "phases": [{"kind": "load", "cache": "warm"}, {"kind": "warmup", "prompt": 16, "reply": 4, "repeat": 1},
                       {"kind": "ttft", "prompt": 200, "reply": 2, "repeat": 3},
                       {"kind": "ttft", "prompt": 16, "reply": 2, "repeat": 3},
                       {"kind": "decode", "prompt": 16, "reply": 40, "min_s": 0.2}]}


class BenchCase(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.db = self.path("bench.db")
        self.protocol = self.write("short.json", PROTOCOL)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, value):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            json.dump(value, f)
        return self.path(name)

    def fake(self, mode="good", name="fake"):
        self.write(os.path.join(name, "manifest.json"), {"name": name, "protocol": 1, "command": [
            sys.executable, "-B", os.path.join(HERE, "fake_adapter.py"), mode]})
        return name

    def bench(self, *args, runtime="fake", **more):
        return mica(*self.arguments(runtime), *args, **more)

    def arguments(self, runtime="fake"):
        return ["bench", "-m", SCRIPTED, "--adapters", self.folder, "--runtime", runtime, "--protocol", self.protocol,
                "--db", self.db]


class Formats(BenchCase):
    def test_table_and_markdown(self):
        self.fake()
        done = self.ok(self.bench())
        self.assertRegex(done.text, r"fake runtime cpu +-/\d+ +[\d.]+/[\d.]+ ")
        self.assertIn("not sustained figures: the protocol short: it decodes for less than 8 minutes", done.text)
        self.assertIn("a fake", done.text)
        lines = self.ok(self.bench("--format", "md")).text.splitlines()
        for line, start in zip(lines, ("| runtime", "|---|", "| fake runtime cpu")):
            self.assertTrue(line.startswith(start), line)
        self.assertEqual(len({line.count("|") for line in lines[:3]}), 1)

    def test_csv(self):
        self.fake()
        self.fake("chunk", "other")
        rows = list(csv.DictReader(io.StringIO(self.ok(self.bench("--format", "csv", runtime="fake,other")).text)))
        self.assertEqual([r["name"] for r in rows], ["fake runtime cpu"] * 2)
        self.assertGreater(float(rows[0]["decode_tps"]), 1)
        self.assertEqual(rows[1]["itl_p50_ms"], "")  # unknown is empty, never 0
        self.assertNotIn(None, rows[0])

    def test_json_is_verified_and_forgeries_are_found(self):
        self.fake()
        done = self.ok(self.bench("--format", "json", "--condition", "ambient_c=21.5"))
        run = json.loads(done.text)
        self.assertEqual(run["head"]["conditions"], {"ambient_c": "21.5"})
        self.assertEqual(run["head"]["protocol"], PROTOCOL)
        file = write_temporary(self, done.out)
        self.assertRegex(self.ok(mica("verify", file)).text,
                         r"^good  [0-9a-f]{32}  fake runtime cpu, done: \d+ figures from \d+ replies")
        run["summary"]["decode_tps"] *= 1.1
        bad = mica("verify", write_temporary(self, json.dumps(run)))
        self.assertEqual(bad.code, 1)
        self.assertRegex(bad.text, r"BAD .*\n +decode_tps: reported [\d.]+, computed [\d.]+")
        for series in run["series"]:
            if series["phase"] == "decode":
                series["times"] = run["series"][0]["times"]  # faster ones in their place
        self.assertEqual(mica("verify", write_temporary(self, json.dumps(run))).code, 1)

    def test_database_is_verified(self):
        self.fake()
        self.fake("dying", "dying")
        self.fails_but_prints(self.bench(runtime="fake,dying"))
        text = self.ok(mica("verify", self.db)).text
        self.assertEqual(len(re.findall(r"^good ", text, re.MULTILINE)), 2)
        self.assertIn("failed", text)
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE run SET summary = json_set(summary, '$.decode_tps', 99999)")
        connection.commit()
        connection.close()
        self.assertEqual(mica("verify", self.db).code, 1)

    def fails_but_prints(self, done):
        self.assertEqual(done.code, 1, done)
        self.assertIn("out of luck", done.message)
        self.assertIn("fake runtime cpu", done.text)
        return done


class Rules(BenchCase):
    def test_a_fallback_fails_unless_allowed(self):
        self.fake("lying_backend")
        done = self.bench("--backend", "npu")
        self.assertEqual(done.code, 1, done)
        self.assertIn("--allow-fallback", done.message)
        done = self.ok(self.bench("--backend", "npu", "--allow-fallback"))
        self.assertIn("fake runtime npu (fell back to cpu)", done.text)

    def test_the_own_engine_has_no_gpu(self):
        done = self.bench("--backend", "gpu", runtime="mica")
        self.assertEqual(done.code, 1, done)
        self.assertIn("computes on the cpu", done.message)

    def test_limits(self):
        self.fake()
        good = self.write("good.json", {"version": 1, "limits": [{"metric": "decode_tps", "min": 1, "max": 501}]})
        bad = self.write("bad.json", {"version": 1, "limits": [{"metric": "decode_tps", "min": 1000},
                                                               {"metric": "power_w", "max": 5}]})
        self.ok(self.bench("--slo", good))
        done = self.bench("--slo", bad)
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.message, r"breaks a limit: decode_tps is [\d.]+, below 1000")
        self.assertIn("power_w is not known", done.message)
        self.fails(self.bench("--slo", self.write("x.json", {"limits": []})), "version")

    def test_our_own_engine_beside_another(self):
        self.fake()
        done = self.ok(self.bench("--format", "csv", runtime="mica,fake"))
        self.assertEqual([r["name"] for r in csv.DictReader(io.StringIO(done.text))], ["mica cpu", "fake runtime cpu"])

    def test_wrong_uses(self):
        self.fake()
        self.fails(self.bench(runtime="nobody"), "no adapter")
        self.fails(self.bench(runtime="fake,,fake"), "empty", code=2)
        self.fails(self.bench("--condition", "novalue"), "NAME=TEXT", code=2)
        self.fails(self.bench("--protocol", "nosuch"), "no protocol nosuch")
        self.fails(self.bench("--protocol", write_temporary(self, "{}", ".json")), "version")
        self.fails(mica("verify", write_temporary(self, "")), "holds no run")
        self.fails(mica("verify", write_temporary(self, "[]\n")), "no run of mica bench")
        self.fails(mica("verify", write_temporary(self, "x\n")), "not JSON")

    def test_interrupt_keeps_what_there_is(self):
        self.fake("late_token")
        process = subprocess.Popen([BIN, *self.arguments()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        lines = b""
        while b"decode" not in lines:  # the replies before have fewer than 6 tokens, this one's sixth is late
            line = process.stderr.readline()
            self.assertTrue(line, lines)
            lines += line
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, (lines, err))
        self.assertIn(b"interrupted", out)
        self.ok(mica("verify", self.db))

    def test_kill_9_keeps_what_there_is(self):
        self.fake("late_token")
        process = subprocess.Popen([BIN, *self.arguments()], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   env=environment())
        lines = b""
        while b"decode" not in lines:
            line = process.stderr.readline()
            self.assertTrue(line, lines)
            lines += line
        process.kill()
        process.communicate()
        text = self.ok(mica("verify", self.db)).text
        self.assertRegex(text, r"^open  [0-9a-f]{32}  .*: not finished, 7 replies")


class Compare(BenchCase):
    def test_live(self):
        self.fake()
        self.fake("flat_ttft", "flat")
        args = ["compare", "-m", SCRIPTED, "--adapters", self.folder, "--runtime", "fake,flat", "--rounds", "6"]
        result = json.loads(self.ok(mica(*args, "--json")).text)
        metrics = {m["metric"]: m for m in result["metrics"]}
        self.assertEqual(metrics["ttft_512_ms"]["better"], "b")
        self.assertEqual(len(metrics["ttft_512_ms"]["a"]), 6)
        self.assertLess(metrics["ttft_512_ms"]["high"], 1)
        self.assertIn("B is better", self.ok(mica(*args)).text)
        args[args.index("fake,flat")] = "flat,fake"
        self.assertEqual(mica(*args, "--fail-if-worse").code, 1)
        self.fails(mica(*args[:-4], "--runtime", "fake"), "two runtimes", code=2)

    def test_stored(self):
        self.fake()
        files = [write_temporary(self, self.ok(self.bench("--format", "json")).out) for _ in range(2)]
        text = self.ok(mica("compare", *files)).text
        self.assertRegex(text, r"ttft_200_ms .* (A is better|B is better|inside the noise|too few values)")
        self.ok(mica("compare", self.db, self.db))
        self.fails(mica("compare", files[0]), "second file", code=2)


class Schema(TestCase):
    def test_protocols_match_their_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not there")
        share = os.path.join(ROOT, "share", "mica")
        with open(os.path.join(share, "schemas", "protocol.schema.json"), encoding="utf-8") as f:
            validator = jsonschema.Draft202012Validator(json.load(f))
        names = sorted(os.listdir(os.path.join(share, "protocols")))
        self.assertEqual(names, ["quick.json", "smoke.json", "sustained.json"])
        for name in names:
            with open(os.path.join(share, "protocols", name), encoding="utf-8") as f:
                validator.validate(json.load(f))
        validator.validate(PROTOCOL)
        # What the program refuses, the schema refuses too.
        for change in ({"version": 2}, {"extra": 1}, {"phases": []}, {"n_ctx": 3}, {"phases": [{"kind": "nap"}]},
                       {"phases": [{"kind": "load", "cache": "lukewarm"}]}, {"phases": [{"kind": "bandwidth", "repeat": 0}]},
                       {"phases": [{"kind": "load", "cache": "warm"}, {"kind": "decode", "prompt": 8, "reply": 2}]}):
            bad = dict(PROTOCOL, **change)
            self.assertFalse(validator.is_valid(bad), change)
            self.assertEqual(mica("bench", "-m", SCRIPTED, "--protocol", write_temporary(self, json.dumps(bad), ".json"),
                                  "--db", os.devnull).code, 1, change)


if __name__ == "__main__":
    main()
