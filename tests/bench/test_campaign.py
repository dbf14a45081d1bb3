"""mica campaign with a model of 850 KB and the fake adapter: what is planned is what the manifest says, what is stored adds up, and no kill
takes or doubles anything."""
import csv
import hashlib
import io
import json
import math
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
sys.path.insert(0, HERE)
from climica import BIN, SCRIPTED, TestCase, environment, main, mica, write_temporary  # noqa: E402
import campaign_plan  # noqa: E402
from terminal import at_terminal  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
SHARE = os.path.join(ROOT, "share", "mica")
PROMPTS = [f"This is text {i} of a few, and it says nothing that anyone would miss." for i in range(9)]
KILLS = 24


class CampaignCase(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.db = self.path("c.db")
        lines = "".join(json.dumps({"text": t}) + "\n" for t in PROMPTS)
        self.prompts_sha256 = self.put("prompts.jsonl", lines)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def put(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return hashlib.sha256(text.encode()).hexdigest()

    def manifest(self, file="m.json", **changes):
        self.source = {"version": 1, "name": "test", "model": {"file": SCRIPTED}, "prompts": {"file": "prompts.jsonl", "sha256": self.prompts_sha256},
                       "lengths": {"prompt": {"min": 5, "max": 40}, "reply": [{"tokens": 3}, {"min": 8, "max": 20, "weight": 2}]},
                       "n_ctx": 128, "batch": 4, "seed": 3, "tokens": 1500, "shards": {"tokens": 400}}
        self.source.update(changes)
        self.put(file, json.dumps(self.source))
        return self.path(file)

    def campaign(self, *args, manifest=None, **more):
        return mica("campaign", "run", manifest or self.manifest(), "--db", self.db, *args, **more)

    def status(self, *args, db=None):
        return json.loads(self.ok(mica("campaign", "status", *args, "--db", db or self.db, "--format", "json")).text)

    def export(self, db=None):
        """(head, shards) of the only campaign."""
        lines = [json.loads(line) for line in self.ok(mica("campaign", "export", "--db", db or self.db)).text.splitlines()]
        return lines[0], lines[1:]

    def check_whole(self, head, shards, source=None, n_prompts=len(PROMPTS)):
        """Everything that the manifest asks for is there, once, and is what an independent reading of the manifest gives."""
        source = source or self.source
        wanted = list(campaign_plan.items(source, n_prompts))
        answers = [a for s in shards for a in s["answers"]]
        self.assertEqual([s["shard"] for s in shards], list(range(len(shards))))
        self.assertEqual([a["item"] for a in answers], [i[0] for i in wanted])
        self.assertEqual([(a["prompt_n"], a["gen_n"]) for a in answers], [(i[2], i[3]) for i in wanted])
        self.assertEqual(sum(a["prompt_n"] + a["gen_n"] for a in answers), source["tokens"])
        self.assertEqual(head["tokens"], source["tokens"])
        self.assertEqual((head["state"], head["part"], head["left_s"]), ("done", 1, 0))
        self.assertEqual(head["items"], len(wanted))
        self.assertEqual(head["campaign"], campaign_plan.campaign_id(source, head["model_sha256"]))
        for s in shards:
            its = [wanted[a["item"]] for a in s["answers"]]
            self.assertEqual((s["id"], s["input"]), campaign_plan.shard(head["campaign"], s["shard"], its))
            self.assertEqual(s["planned"], sum(i[2] + i[3] for i in its))
            for a in s["answers"]:
                self.assertEqual((len(a["times"]), len(a["tokens"]), a["reason"]), (a["gen_n"], a["gen_n"], "length"))
                self.assertEqual(a["times"], sorted(a["times"]))
                self.assertTrue(a["started_ns"] <= a["times"][0] and a["times"][-1] <= a["done_ns"])


class Running(CampaignCase):
    def test_a_campaign(self):
        done = self.ok(self.campaign())
        self.assertRegex(done.text, r"^test  100\.0 %  done\n")
        self.assertIn("tokens    1500 of 1500: ", done.text)
        self.assertNotIn("\r", done.message)  # no terminal: a line a shard
        self.assertRegex(done.message, r"^mica: shard 1 done in [\d.]+ s, [\d.]+ tok/s; \d+ of 1500 tokens, [\d.]+ %, .* left\n")
        head, shards = self.export()
        self.check_whole(head, shards)
        self.assertEqual(len(shards), len(done.message.splitlines()))
        self.assertTrue(all(s["head"]["runtime"] == "mica" and s["head"]["machine"]["cpu"] for s in shards))
        self.assertTrue(all(s["samples"] and s["samples"][0]["rss_bytes"] > 0 for s in shards))
        again = self.ok(self.campaign())  # nothing is left to do
        self.assertEqual(again.text, done.text)
        self.assertEqual(again.err, b"")
        self.assertEqual(self.export()[1], shards)

    def test_measured_shards(self):
        """Without a size the first shard is a round, the next ones follow the rate, at most eight times as large."""
        self.ok(self.campaign(manifest=self.manifest(tokens=8000, shards={"seconds": 0.5})))
        head, shards = self.export()
        self.check_whole(head, shards)
        self.assertLessEqual(shards[0]["planned"], 4 * 60)
        for a, b in zip(shards, shards[1:]):
            self.assertLessEqual(b["planned"], 8 * a["planned"])

    def test_the_batch_changes_nothing(self):
        texts = []
        for batch in (1, 7):
            db = self.path(f"b{batch}.db")
            self.ok(mica("campaign", "run", self.manifest(batch=batch), "--db", db))
            texts.append([a["tokens"] for s in self.export(db)[1] for a in s["answers"]])
        self.assertEqual(texts[0], texts[1])

    def test_sampling_is_repeatable(self):
        texts = []
        for name in ("1.db", "2.db"):
            self.ok(mica("campaign", "run", self.manifest(sampling={"temperature": 1.5, "top_k": 0, "top_p": 1}), "--db", self.path(name)))
            texts.append([a["tokens"] for s in self.export(self.path(name))[1] for a in s["answers"]])
        self.assertEqual(texts[0], texts[1])

    def test_two_campaigns_in_one_database(self):
        self.ok(self.campaign())
        self.ok(self.campaign(manifest=self.manifest(name="other", seed=4)))
        self.assertEqual(self.ok(mica("campaign", "status", "--db", self.db)).text.count("100.0 %  done"), 2)
        self.assertEqual(self.status("other")["name"], "other")
        self.assertEqual(self.status(self.status("test")["campaign"][:12])["name"], "test")
        self.fails(mica("campaign", "status", "nosuch", "--db", self.db), "no campaign nosuch")

    def test_limit(self):
        manifest = self.manifest(tokens=10**7, shards={"seconds": 0.3})
        start = time.monotonic()
        done = self.ok(self.campaign("--limit-seconds", "1.5", manifest=manifest))
        self.assertLess(time.monotonic() - start, 30)
        self.assertIn("the time limit is reached; the same command goes on from here", done.message)
        self.assertIn("once it is started again", done.text)
        first = self.status()
        self.assertEqual(first["state"], "stopped")
        self.assertGreater(first["tokens"], 0)
        self.ok(self.campaign("--limit-seconds", "1", manifest=manifest))
        self.assertGreater(self.status()["shards"], first["shards"])


class Crashes(CampaignCase):
    def start(self, manifest, db=None):
        return subprocess.Popen([BIN, "campaign", "run", manifest, "--db", db or self.db], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=environment())

    def test_kill_9_again_and_again(self):
        """Killed at random moments: from before the database is open to the middle of a commit."""
        seed = random.SystemRandom().randrange(2**32)
        draw = random.Random(seed)
        manifest, kills, lives = self.manifest(tokens=40000, shards={"tokens": 500}), 0, 0
        whole = self.path("whole.db")
        self.ok(mica("campaign", "run", manifest, "--db", whole))
        seconds = self.status(db=whole)["seconds"] / self.status(db=whole)["shards"]
        while kills < KILLS:
            process = self.start(manifest)
            for _ in range(draw.choice((0, 0, 1, 1, 2))):  # so many shards first
                self.assertIn(b"shard", process.stderr.readline(), f"seed {seed}")
            time.sleep(draw.uniform(0, 2.5 * seconds))
            process.kill()
            process.communicate()
            kills += process.returncode == -signal.SIGKILL
            lives += 1
            self.assertLess(lives, 3 * KILLS, f"it was done before it could be killed so often; seed {seed}")
            if os.path.exists(self.db) and lives % 6 == 0:  # and at any moment what is stored adds up
                state = mica("campaign", "status", "--db", self.db, "--format", "json")
                if state.code == 0:
                    state = json.loads(state.text)
                    self.assertEqual(state["tokens"], state["tokens_planned"], f"seed {seed}")
                    self.assertEqual(sum(len(s["answers"]) for s in self.export()[1]), state["items"], f"seed {seed}")
        self.ok(self.campaign(manifest=manifest))
        head, shards = self.export()
        self.check_whole(head, shards)
        self.assertEqual([s["started_unix"] <= t["started_unix"] for s, t in zip(shards, shards[1:])], [True] * (len(shards) - 1))
        # It is the campaign that nobody had killed, token for token.
        other = self.export(whole)[1]
        self.assertEqual([(s["id"], s["input"]) for s in shards], [(s["id"], s["input"]) for s in other])
        self.assertEqual([a["tokens"] for s in shards for a in s["answers"]], [a["tokens"] for s in other for a in s["answers"]])

    def test_interrupt_ends_after_the_shard(self):
        manifest = self.manifest(tokens=400000, shards={"tokens": 1500})
        process = self.start(manifest)
        self.assertIn(b"shard 1 done", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"stopped; the same command goes on from here", err)
        self.assertRegex(out, rb"^test +[\d.]+ %  stopped\n")
        head, shards = self.export()
        self.assertEqual(head["tokens"], sum(s["planned"] for s in shards))
        connection = sqlite3.connect(self.db)
        self.assertEqual(connection.execute("SELECT count(*) FROM shard WHERE state = 'pending'").fetchone(), (0,))  # none was given up
        connection.close()

    def test_a_second_interrupt_gives_the_shard_up(self):
        process = self.start(self.manifest(tokens=4000000, shards={"tokens": 2000000}))
        deadline = time.monotonic() + 60
        while self.pending() != 1:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        self.assertIn(b"stopping after the running shard", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"shard 0 was given up", err)
        self.assertEqual(self.status()["shards"], 0)

    def pending(self):
        try:
            connection = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
            try:
                return connection.execute("SELECT count(*) FROM shard WHERE state = 'pending'").fetchone()[0]
            finally:
                connection.close()
        except sqlite3.Error:
            return 0

    def test_one_process_at_a_time(self):
        manifest = self.manifest(tokens=400000, shards={"tokens": 1500})
        process = self.start(manifest)
        self.assertIn(b"shard 1 done", process.stderr.readline())
        self.fails(self.campaign(manifest=manifest), "another process runs a campaign")
        self.assertEqual(self.status()["state"], "running")
        process.kill()
        process.communicate()
        self.assertEqual(self.status()["state"], "stopped")


class Adapters(CampaignCase):
    def fake(self, mode="good"):
        self.put("fake/manifest.json", json.dumps({"name": "fake", "protocol": 1, "command": [
            sys.executable, "-B", os.path.join(HERE, "fake_adapter.py"), mode]}))

    def test_another_runtime(self):
        self.fake()
        manifest = self.manifest(runtime="fake", tokens=500, shards={"tokens": 200})
        self.ok(self.campaign("--adapters", self.folder, manifest=manifest))
        head, shards = self.export()
        self.check_whole(head, shards)
        self.assertEqual(shards[0]["head"]["runtime"], "fake runtime")

    def test_a_runtime_that_dies(self):
        self.fake("dying")
        manifest = self.manifest(runtime="fake", tokens=500)
        done = self.campaign("--adapters", self.folder, manifest=manifest)
        self.assertEqual(done.code, 1, done)
        self.assertIn("out of luck", done.message)
        self.assertIn("stopped", done.text)  # how far it is
        self.fake()
        self.ok(self.campaign("--adapters", self.folder, manifest=manifest))
        self.check_whole(*self.export())

    def test_a_lying_backend(self):
        self.fake("lying_backend")
        manifest = self.manifest(runtime="fake", backend="npu", tokens=100)
        self.assertIn("--allow-fallback", self.campaign("--adapters", self.folder, manifest=manifest).message)
        self.ok(self.campaign("--adapters", self.folder, "--allow-fallback", manifest=manifest))
        self.assertEqual(self.export()[1][0]["head"]["backend"], "npu (fell back to cpu)")


class Output(CampaignCase):
    def test_formats(self):
        self.ok(self.campaign())
        rows = list(csv.DictReader(io.StringIO(self.ok(mica("campaign", "export", "--db", self.db, "--format", "csv")).text)))
        self.assertEqual(sum(int(r["planned_tokens"]) for r in rows), 1500)
        self.assertEqual({r["state"] for r in rows}, {"done"})
        md = self.ok(mica("campaign", "status", "--db", self.db, "--format", "md")).text.splitlines()
        self.assertEqual(md[1], "|---|---|")
        self.assertEqual({line.count("|") for line in md}, {3})
        self.assertIsNone(self.status()["energy_wh"] if not os.path.exists("/sys/class/powercap/intel-rapl:0") else None)

    def test_cost(self):
        self.ok(self.campaign())
        args = ["campaign", "status", "--db", self.db, "--format", "json", "--watts", "36", "--usd-per-kwh", "0.5", "--device-usd", "1000", "--years", "2"]
        state = json.loads(self.ok(mica(*args)).text)
        if state["energy_wh"] is None:
            self.assertAlmostEqual(state["energy_usd"], 36 * state["seconds"] / 3600 / 1000 * 0.5, delta=1e-9)
        self.assertAlmostEqual(state["hardware_usd"], 1000 * state["seconds"] / (2 * 365 * 86400), delta=1e-9)
        self.assertAlmostEqual(state["usd"], state["energy_usd"] + state["hardware_usd"], delta=1e-9)
        self.assertAlmostEqual(state["tps"], 1500 / state["seconds"], delta=1e-3)

    def test_forged_sums_are_found(self):
        self.ok(self.campaign())
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE shard SET reply_tokens = reply_tokens + 1 WHERE seq = 1")
        connection.commit()
        connection.close()
        done = mica("campaign", "export", "--db", self.db)
        self.assertEqual(done.code, 1)
        self.assertIn("the sums of shard 1 are not those of its raw samples", done.message)

    def test_a_terminal_gets_a_bar(self):
        shown = at_terminal("campaign", "run", self.manifest(), "--db", self.db)
        self.assertEqual(shown.code, 0, shown)
        self.assertRegex(shown.seen, rb"\r\x1b\[K\[#+-*\] +[\d.]+ %  shard \d")
        self.assertRegex(shown.seen, rb"test  \[#{30}\] 100\.0 %  done")

    def test_a_terminal_gets_a_sparkline(self):
        """A point a second: this one is stopped after the shard in which three are there, however quick the machine is."""
        shown = at_terminal("campaign", "run", self.manifest(tokens=4000000, shards={"seconds": 3}), "--limit-seconds", "5", "--db", self.db)
        self.assertEqual(shown.code, 0, shown)
        self.assertRegex(shown.lines[-1], "^\\[[#-]{30}\\] +\\d+\\.\\d %  shard \\d+  \\d+\\.\\d tok/s  [\u2581-\u2588]{2,}  .* left$")


class Limits(CampaignCase):
    def limits(self, *limits):
        self.put("limits.json", json.dumps({"version": 1, "limits": limits}))
        return self.path("limits.json")

    def test_they_are_kept_or_named(self):
        good = self.limits({"metric": "decode_tps", "min": 0.1}, {"metric": "ttft_p95_ms", "max": 1e6}, {"metric": "itl_p95_ms", "max": 1e6},
                           {"metric": "peak_rss_bytes", "max": 4e9})
        self.ok(self.campaign("--slo", good))
        self.ok(mica("campaign", "status", "--db", self.db, "--slo", good))
        bad = self.limits({"metric": "tpot_ms", "max": 1e-6}, {"metric": "steady_tps", "min": 1}, {"metric": "no_such_figure", "max": 1})
        for done in (self.campaign("--slo", bad, manifest=self.path("m.json")), mica("campaign", "status", "--db", self.db, "--slo", bad)):
            self.assertEqual(done.code, 1, done)
            self.assertIn("done", done.text)  # how far it is is told all the same
            self.assertRegex(done.message, r"mica: test breaks a limit: tpot_ms is [\d.e-]+, above 1e-06\n")
            self.assertIn("steady_tps is not known", done.message)  # less than 8 minutes of computing
            self.assertIn("no_such_figure is not known", done.message)

    def test_a_fault_in_them_is_told_at_once(self):
        self.put("limits.json", "{}")
        self.fails(self.campaign("--slo", self.path("limits.json")), "limits.json", "version")
        self.fails(self.campaign("--slo", self.path("none.json")), "none.json")
        self.assertFalse(os.path.exists(self.db))
        self.fails(mica("campaign", "export", "--db", self.db, "--slo", self.limits({"metric": "tps", "min": 1})), "run and status", code=2)

    def test_the_figures_are_those_of_the_raw_samples(self):
        """Within the 0.54 % of a bin, and by the nearest rank."""
        self.ok(self.campaign())
        answers = [a for s in self.export()[1] for a in s["answers"]]
        ttft = sorted((a["times"][0] - a["started_ns"]) / 1e6 for a in answers)
        itl = sorted(max((t - s) / 1e6, 1e-3) for a in answers for s, t in zip(a["times"], a["times"][1:]))
        state = self.status()
        wanted = {"ttft_p50_ms": ttft[-(-len(ttft) // 2) - 1], "ttft_p95_ms": ttft[math.ceil(0.95 * len(ttft)) - 1],
                  "itl_p50_ms": itl[-(-len(itl) // 2) - 1], "itl_p95_ms": itl[math.ceil(0.95 * len(itl)) - 1], "tpot_ms": sum(itl) / len(itl),
                  "tps": state["tokens"] / state["seconds"], "decode_tps": state["reply_tokens"] / state["seconds"]}
        for metric, value in wanted.items():
            self.ok(mica("campaign", "status", "--db", self.db, "--slo", self.limits({"metric": metric, "min": 0.994 * value, "max": 1.006 * value})))
            done = mica("campaign", "status", "--db", self.db, "--slo", self.limits({"metric": metric, "max": 0.99 * value}))
            self.assertEqual(done.code, 1, (metric, value, done))


class WrongUses(CampaignCase):
    def test_command_line(self):
        self.fails(mica("campaign"), "a word is missing", code=2)
        self.fails(mica("campaign", "run"), "the manifest is missing", code=2)
        self.fails(mica("campaign", "walk", "x"), "the verbs are run, status and export", code=2)
        self.fails(mica("campaign", "run", "nosuch", "--db", self.db), "no campaign nosuch")
        self.fails(mica("campaign", "run", self.path("none.json"), "--db", self.db), "none.json")
        self.fails(mica("campaign", "status", "--db", self.path("none.db")), "none.db")
        self.fails(self.campaign("--format", "csv"), "export", code=2)
        self.fails(mica("campaign", "status", "--db", self.db, "--format", "csv"), "export", code=2)
        self.fails(mica("campaign", "export", "--db", self.db, "--format", "md"), "csv", code=2)
        self.fails(self.campaign("--limit-seconds", "0"), "--limit-seconds", code=2)

    def test_files(self):
        self.fails(self.campaign(manifest=write_temporary(self, "{}", ".json")), "version")
        self.fails(self.campaign(manifest=self.manifest(model={"file": "nosuch.gguf"})), "nosuch.gguf", "-m FILE")
        self.fails(self.campaign(manifest=self.manifest(model={"file": SCRIPTED, "sha256": "0" * 64})), "its SHA-256 is")
        self.fails(self.campaign(manifest=self.manifest(prompts={"file": "prompts.jsonl", "sha256": "0" * 64})), self.prompts_sha256)
        self.fails(self.campaign(manifest=self.manifest(runtime="mica,mica")), "one name")
        self.fails(self.campaign(manifest=self.manifest(runtime="nobody")), "no adapter nobody")
        self.put("db", "no database, but long enough to look like one" * 30)
        self.fails(mica("campaign", "run", self.manifest(), "--db", self.path("db")), "database")

    def test_a_database_of_someone_else(self):
        connection = sqlite3.connect(self.db)
        connection.execute("CREATE TABLE shard (x)")
        connection.commit()
        connection.close()
        self.fails(self.campaign(), "another program")

    def test_what_the_store_says_must_be_what_the_manifest_says(self):
        self.assertIn("is not GGUF", self.campaign("-m", self.path("prompts.jsonl")).message)
        connection = sqlite3.connect(self.db)
        self.assertEqual(connection.execute("SELECT count(*) FROM shard").fetchone(), (0,))
        connection.close()
        process = subprocess.Popen([BIN, "campaign", "run", self.manifest(tokens=40000, shards={"tokens": 20000}), "--db", self.db],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        deadline = time.monotonic() + 60
        while Crashes.pending(self) != 1:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.kill()
        process.wait()
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE shard SET input = replace(input, '1', '2')")
        connection.commit()
        connection.close()
        done = self.campaign(manifest=self.path("m.json"))
        self.assertEqual(done.code, 1, done)
        self.assertIn("was cut from other items", done.message)


class Data(TestCase):
    def test_the_prompts_are_those_of_their_script(self):
        made = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "scripts", "make-campaign-prompts")], stdout=subprocess.PIPE, check=True).stdout
        with open(os.path.join(SHARE, "campaigns", "prompts.jsonl"), "rb") as f:
            self.assertEqual(f.read(), made)
        digest = hashlib.sha256(made).hexdigest()
        texts = [json.loads(line)["text"] for line in made.decode().splitlines()]
        self.assertEqual(len(set(texts)), len(texts))
        for name in self.manifests():
            self.assertEqual(self.read(name)["prompts"]["sha256"], digest, name)

    def manifests(self):
        return sorted(n for n in os.listdir(os.path.join(SHARE, "campaigns")) if n.endswith(".json"))

    def read(self, name):
        with open(os.path.join(SHARE, "campaigns", name), encoding="utf-8") as f:
            return json.load(f)

    def test_the_model_is_the_one_that_is_fetched(self):
        with open(os.path.join(ROOT, "scripts", "models.sha256"), encoding="utf-8") as f:
            known = {name: digest for digest, name in (line.split() for line in f)}
        for name in self.manifests():
            model = self.read(name)["model"]
            self.assertEqual(known[model["file"]], model["sha256"])

    def test_manifests_match_their_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not there")
        with open(os.path.join(SHARE, "schemas", "campaign.schema.json"), encoding="utf-8") as f:
            validator = jsonschema.Draft202012Validator(json.load(f))
        self.assertEqual(self.manifests(), ["million.json", "trial.json"])
        for name in self.manifests():
            validator.validate(self.read(name))
        good = self.read("trial.json")
        # What the program refuses, the schema refuses too.
        for change in ({"version": 2}, {"extra": 1}, {"tokens": 1}, {"tokens": 2.5}, {"name": ""}, {"runtime": ""}, {"backend": "tpu"}, {"n_ctx": 15},
                       {"batch": 257}, {"seed": -1}, {"ignore_eos": 1}, {"model": {}}, {"model": {"file": "x", "sha256": "A" * 64}},
                       {"prompts": {"file": "x"}}, {"lengths": {}}, {"shards": {"seconds": 0}}, {"shards": {"minutes": 1}},
                       {"sampling": {"temperature": 0}}, {"sampling": {"top_p": 1.1}},
                       {"lengths": {"prompt": {"tokens": 1, "min": 1}, "reply": {"tokens": 1}}},
                       {"lengths": {"prompt": [], "reply": {"tokens": 1}}}):
            bad = dict(good, **change)
            self.assertFalse(validator.is_valid(bad), change)
            done = mica("campaign", "run", write_temporary(self, json.dumps(bad), ".json"), "--db", os.devnull)
            self.assertEqual(done.code, 1, change)
            self.assertIn("the campaign's manifest", done.message, change)


if __name__ == "__main__":
    main()
