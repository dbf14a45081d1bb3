"""mica run --governor, mica tune: the text stays the same, policies are read strictly, the device decides, what was tuned is used."""
import json
import os
import re
import tempfile

from climica import DATA, TestCase, environment, main, mica, run

ROOT = os.path.dirname(os.path.dirname(DATA))
SHARE = os.path.join(ROOT, "share", "mica")
SCHEMA = os.path.join(SHARE, "schemas", "governor.schema.json")
MODEL = os.path.join(DATA, "tiny", "llama.gguf")
NAMES = ("sustained", "efficient", "burst", "off")


def shipped(name):
    return os.path.join(SHARE, "governor", name + ".json")


def final(done):
    return json.loads(done.text.splitlines()[-1])


class Base(TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.env = dict(environment(), XDG_DATA_HOME=os.path.join(self.folder.name, "data"))

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        return path

    def tree(self, files):
        """A root of /proc and /sys with these files, and two CPUs."""
        files = {"sys/devices/system/cpu/online": "0-1", "proc/self/status": "Name:\tmica\nCpus_allowed_list:\t0-1", **files}
        for name, text in files.items():
            self.write(os.path.join("tree", name), text + "\n")
        return os.path.join(self.folder.name, "tree")

    def policy(self, **members):
        return self.write("policy.json", {"version": 1, "objective": "sustained", **members})

    def reply(self, *args, code=0, **more):
        done = run("-p", "abc", "-n", "30", "--ignore-eos", "--no-chat", *args, model=MODEL, env=self.env, **more)
        self.assertEqual(done.code, code, done)
        return done


class Governor(Base):
    def test_same_text(self):
        want = self.reply().out
        for name in NAMES:
            done = self.reply("--governor", shipped(name))
            self.assertEqual(done.out, want, name)
            self.assertIn(f"\ngovernor={name};objective={name};", done.message)
        quick = self.policy(period_s=0.05, probe_s=0.1, trial_s=0.5, dwell_s=1, yield_us=2000, hot_chunk=1, hot_draft=0)
        self.assertEqual(self.reply("--governor", quick).out, want)
        self.assertEqual(self.reply("--governor", quick, "--speculate", "lookup").out, want)
        self.assertEqual(self.reply("--governor", quick, "-t", "2").out, want)

    def test_json(self):
        end = final(self.reply("--json", "--governor", shipped("sustained")))
        self.assertEqual(end["governor"]["policy"], "sustained")
        self.assertGreaterEqual(end["governor"]["fast"], 1)
        self.assertIs(end["tuned"], False)
        self.assertNotIn("governor", final(self.reply("--json")))

    def test_named_policies(self):
        """A name is looked up beside the program's other data, the user's place first."""
        self.write("data/mica/governor/calm.json", {"version": 1, "objective": "efficient", "name": "calm"})
        self.assertIn("governor=calm;objective=efficient;", self.reply("--governor", "calm").message)
        self.fails(self.reply("--governor", "nothing", code=1), "nothing", "share/mica/governor")

    def test_wrong_policies(self):
        for members, word in (({"keep": 2}, '"keep"'), ({"speed": 1}, '"speed"'), ({"objective": "fast"}, '"objective"'),
                              ({"version": 2}, "version"), ({"hot_draft": 64}, '"hot_draft"')):
            self.fails(self.reply("--governor", self.policy(**members), code=1), word)
        self.fails(self.reply("--governor", self.write("broken.json", "{"), code=1), "JSON")
        self.fails(self.reply("--governor", os.path.join(self.folder.name, "none.json"), code=1), "none.json")
        done = run("-p", "a", "--governor", shipped("burst"), "--cpus", "0", model=MODEL, env=self.env)
        self.fails(done, "--cpus", code=2)

    def test_schema(self):
        """The schema and what the program accepts agree, at the ends of every range and just beyond."""
        with open(SCHEMA, encoding="utf-8") as f:
            members = json.load(f)["properties"]
        with open(os.path.join(ROOT, "src", "device", "policy.c"), encoding="utf-8") as f:
            fields = set(re.findall(r'^    \{"(\w+)", [A-Z]+, offsetof', f.read(), re.MULTILINE))
        self.assertEqual(fields, set(members) - {"version", "description", "$schema"})
        for name, rule in members.items():
            if "minimum" not in rule:
                continue
            step = 1 if rule["type"] == "integer" else 1e-3 * max(1, abs(rule["maximum"]))
            for value, code in ((rule["minimum"], 0), (rule["maximum"], 0), (rule["minimum"] - step, 1), (rule["maximum"] + step, 1)):
                if name == "max_tokens" and value == 0 or name == "yield_us" and value > 0 and code == 0:
                    continue  # no token, or a second a token
                done = run("-p", "a", "-n", "1", "--no-chat", "--governor", self.policy(**{name: value}), model=MODEL, env=self.env)
                self.assertEqual(done.code, code, (name, value, done))
        for name in NAMES:
            with open(shipped(name), encoding="utf-8") as f:
                self.assertLessEqual(set(json.load(f)), set(members), name)

    def test_yield(self):
        """A pause between tokens is time, and nothing else."""
        want, slow = self.reply("--json"), self.reply("--json", "--governor", self.policy(yield_us=10000))
        self.assertEqual(final(want)["text"], final(slow)["text"])
        self.assertGreater(final(slow)["tpot_ms"], 10)

    def test_cap(self):
        end = final(self.reply("--json", "--governor", self.policy(max_tokens=7)))
        self.assertEqual((end["gen_n"], end["stop_reason"] if "stop_reason" in end else "length"), (7, "length"))
        self.assertTrue(final(self.reply("--json"))["text"].startswith(end["text"]))

    def test_severe_heat(self):
        zone = {"type": "cpu-thermal", "trip_point_0_type": "hot", "trip_point_0_temp": "90000"}
        hot = self.tree({f"sys/class/thermal/thermal_zone0/{k}": v for k, v in dict(zone, temp="95000").items()})
        policy = self.policy(severe_refuse=20, severe_max_tokens=5)
        self.fails(self.reply("--governor", policy, "--sysroot", hot, code=1), "too hot", "30 tokens")
        self.reply("--sysroot", hot)  # without a governor nobody refuses
        end = final(self.reply("--json", "--governor", self.policy(severe_refuse=-1, severe_max_tokens=5), "--sysroot", hot))
        self.assertEqual(end["gen_n"], 5)
        self.assertIs(end["governor"]["lower_rung"], True)
        cool = self.tree({"sys/class/thermal/thermal_zone0/temp": "60000"})
        self.reply("--governor", policy, "--sysroot", cool)

    def test_low_battery(self):
        def objective(level, status):
            supply = {"type": "Battery", "present": "1", "status": status, "capacity": str(level)}
            root = self.tree({f"sys/class/power_supply/battery/{k}": v for k, v in supply.items()})
            return final(self.reply("--json", "--governor", self.policy(), "--sysroot", root))["governor"]["objective"]
        self.assertEqual(objective(19, "Discharging"), "efficient")
        self.assertEqual(objective(21, "Discharging"), "sustained")
        self.assertEqual(objective(19, "Charging"), "sustained")


class Tune(Base):
    """mica tune keeps what it finds, and run uses it."""

    def test_tune(self):
        done = self.ok(mica("tune", "-m", MODEL, "--json", env=self.env))
        found = json.loads(done.text)
        self.assertLessEqual(found["probing_s"], 20.5)
        rates = {(level["fast"], level["efficient"]): level["tps"] for level in found["levels"]}
        best = max(rates.values())
        self.assertEqual(found["fastest"]["tps"], best)
        chosen = found["chosen"]
        self.assertGreaterEqual(chosen["cold_tps"], 0.97 * best)
        self.assertGreater(chosen["sustained_tps"], 0)
        threads = chosen["fast"] + chosen["efficient"]
        store = os.path.join(self.folder.name, "data", "mica", "device.json")
        with open(store, encoding="utf-8") as f:
            kept = list(json.load(f)["models"].values())
        self.assertEqual([k["tuned_threads"] for k in kept], [threads])

        done = self.reply()
        self.assertIn(f"threads={threads};", done.message)
        self.assertIn(f"\ntuned={threads}\n", done.message)
        self.assertIn("as mica tune found", self.reply("--explain-kernels").message)
        self.assertIs(final(self.reply("--json"))["tuned"], True)
        for other in (["--no-tuned"], ["-t", "2"], ["--cpus", "0"]):
            self.assertNotIn("tuned=", self.reply(*other).message, other)

        def change(name, value):
            with open(store, encoding="utf-8") as f:
                figures = json.load(f)
            for model in figures["models"].values():
                model[name] = value
            with open(store, "w", encoding="utf-8") as f:
                json.dump(figures, f)
        change("tuned_threads", 3)
        self.assertIn("threads=3;", self.reply().message)
        change("build", "another")  # found by another build: it may be another story now
        self.assertNotIn("tuned=", self.reply().message)
        with open(store, "w", encoding="utf-8") as f:
            f.write("{")
        done = self.reply()
        self.assertIn("what mica tune found is not used", done.message)
        self.assertNotIn("tuned=", done.message)


if __name__ == "__main__":
    main()
