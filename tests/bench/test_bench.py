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
import time

from bench_case import HERE, PROTOCOL, BenchCase
from climica import BIN, SCRIPTED, TestCase, environment, main, mica, write_temporary

ROOT = os.path.dirname(os.path.dirname(HERE))


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
        with open(os.path.join(os.path.dirname(os.path.realpath(BIN)), "mica-ops"), "rb") as f:
            self.assertIn(bytes.fromhex(run["head"]["harness"]["build"]), f.read())  # the id that the linker gave it
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
    def test_a_power_saver_is_flagged(self):
        self.fake()
        root = self.path("root", "sys", "firmware", "acpi")
        os.makedirs(root)
        for profile, flagged in (("low-power", True), ("balanced", False)):
            with open(os.path.join(root, "platform_profile"), "w", encoding="ascii") as f:
                f.write(profile + "\n")
            done = self.ok(self.bench("--sysroot", self.path("root"), "--format", "json"))
            run = json.loads(done.text)
            self.assertEqual((run["head"]["power_save"], "the system was in its power saver" in run["summary"]["flags"]), (flagged, flagged))
            self.ok(mica("verify", write_temporary(self, done.out)))

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

    def test_traces_too(self):
        """mica bench analyze is mica analyze."""
        trace = write_temporary(self, '{"ev": "start", "t_ns": 0}\n{"ev": "token", "t_ns": 5000000}\n{"ev": "end", "t_ns": 6000000}\n')
        done = self.ok(mica("bench", "analyze", trace, "--json"))
        self.assertEqual(done.out, self.ok(mica("analyze", trace, "--json")).out)
        self.assertEqual(json.loads(done.text)["ttft_ms"], 5)
        self.fails(mica("bench", "analyze"), "a trace is missing", code=2)
        self.fails(mica("bench", "synthesize", trace), "one word too many", code=2)
        self.fails(mica("bench", "--keep-first"), "--keep-first", code=2)

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
    def test_limits_match_their_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not there")
        with open(os.path.join(ROOT, "share", "mica", "schemas", "limits.schema.json"), encoding="utf-8") as f:
            validator = jsonschema.Draft202012Validator(json.load(f))
        validator.validate({"version": 1, "limits": [{"metric": "steady_tps", "min": 20}, {"metric": "tpot_ms", "min": 0, "max": 9.5}]})
        # What the program refuses, the schema refuses too.
        for bad in ({}, [], {"version": 2, "limits": [{"metric": "a", "min": 1}]}, {"version": 1}, {"version": 1, "limits": []},
                    {"version": 1, "limits": [{"metric": "a"}]}, {"version": 1, "limits": [{"min": 1}]}, {"version": 1, "limits": [1]},
                    {"version": 1, "limits": [{"metric": "a", "max": "1"}]}, {"version": 1, "limits": [{"metric": "a" * 61, "max": 1}]},
                    {"version": 1, "limits": [{"metric": "a", "max": 1, "mean": 1}]}):
            self.assertFalse(validator.is_valid(bad), bad)
            done = mica("bench", "-m", SCRIPTED, "--protocol", os.path.join(ROOT, "share", "mica", "protocols", "smoke.json"), "--slo",
                        write_temporary(self, json.dumps(bad), ".json"), "--db", os.devnull)
            self.fails(done, "limit")

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
