"""mica route decide, explain, replay, check, train and test: what a user sees. rt-01-ladder is a public case (tests/data/cases)."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import DATA, TestCase, case_json, mica  # noqa: E402

SHARE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "share", "mica")
SMALL = os.path.join(SHARE, "router", "policies", "small.json")
REMOTE = os.path.join(SHARE, "router", "policies", "remote.json")
PHONE = {"device": {"ram_bytes": 8000000000, "thermal": "none", "battery": 0.8, "on_battery": True, "power_save": False},
         "network": True, "rungs": [{"name": n, "file": True} for n in ("3b", "1.5b", "1b")]}


class RouteTest(TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, value):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def decide(self, policy, request, state, *more):
        done = mica("route", "decide", "--policy", policy, "--request", self.write("request.json", request), "--state",
                    self.write("state.json", state), "--json", *more)
        record = json.loads(done.text) if done.text else None
        return done, record


def rt_01_policy(case):
    """The case's policy in our words."""
    rungs = []
    for name in case["ladder"]:
        if name in case["models"]:
            model = case["models"][name]
            rungs.append({"name": name, "kind": "local", "file": f"{name}.gguf", "weights_bytes": model["bytes"],
                          "min_ram_bytes": model["min_ram"], "context": 4096})
        else:
            rungs.append({"name": name, "kind": "remote", "context": 100000, "endpoint": {"url": "http://127.0.0.1:9/v1"}})
    limits, a_class = case["limits"], {"order": "ladder", "output_tokens": 100}
    return {"schema": 1, "name": "rt-01", "version": "1", "bytes_per_token": 4, "memory": {"ram_fraction": limits["ram_fraction"]},
            "allow_egress": case["network_allowed"], "hops": case["max_hops"],
            "ladder": {"schema": 1, "name": "rt-01", "version": "1", "rungs": rungs},
            "classes": {"narrow": a_class, "complex": a_class, "unknown": a_class},
            "when": [{"name": "hot", "thermal_at_least": "severe", "forbid": "local"},
                     {"name": "low", "on_battery": True, "battery_below": limits["battery_min"] / 100, "forbid": "local"}]}


def rt_01_state(device, ladder):
    return {"device": {"ram_bytes": device["ram"], "battery": device["battery"] / 100, "on_battery": not device["charging"],
                       "power_save": device["power_save"], "thermal": device["thermal"]}, "network": device["network"],
            "rungs": [{"name": n, "file": n in device["files"], "resident": n == device["resident"]} for n in ladder[:-1]]}


class Decide(RouteTest):
    def test_rt_01_ladder(self):
        case = case_json("rt-01-ladder", "policy.json")
        rows = case_json("rt-01-ladder", "cases.json")
        policy = self.write("policy.json", rt_01_policy(case))
        self.assertEqual(len(rows), 8)
        for row in rows:
            done, record = self.decide(policy, row["request"], rt_01_state(row["device"], case["ladder"]))
            chosen = (record["decision"]["order"] or ["none"])[0]
            self.assertEqual(chosen, row["expect"], record["decision"]["message"])
            self.assertEqual(done.code, 1 if row["expect"] == "none" else 0)
            passed_over = case["ladder"][:case["ladder"].index(chosen)] if chosen != "none" else case["ladder"]
            for name in passed_over:
                candidate = next(c for c in record["decision"]["candidates"] if c["rung"] == name)
                self.assertNotEqual(candidate["reason"], "fits")
                self.assertGreater(len(candidate["why"]), 10)
                if chosen == "none":
                    self.assertIn(f"{name} {candidate['why']}", record["decision"]["message"])

    def test_a_phone_under_the_shipped_policies(self):
        for text, private, wanted in (("Is this review positive or negative? It broke.", False, ["1.5b", "3b", "server"]),
                                      ("Design a database that survives the loss of a data centre, and prove it.", False,
                                       ["server", "3b", "1.5b", "1b"]),
                                      ("Design a database that survives the loss of a data centre, and prove it.", True,
                                       ["3b", "1.5b", "1b"]),
                                      ("Design a login, prove that it is safe, and explain what my password hash 5f4d means for it.",
                                       False, ["3b", "1.5b", "1b"])):
            _, record = self.decide(REMOTE, {"text": text, "private": private}, PHONE)
            self.assertEqual(record["decision"]["order"], wanted, record["decision"]["message"])
        done, record = self.decide(os.path.join(SHARE, "router", "policies", "default.json"), {"task": "math"}, PHONE)
        self.assertEqual(record["decision"]["order"], ["3b", "1.5b", "1b"])
        self.assertEqual(record["decision"]["candidates"][3]["reason"], "egress_denied")

    def test_chat_body_and_options(self):
        body = {"messages": [{"role": "user", "content": "x" * 400}], "max_tokens": 50, "route": {"task": "classify"}}
        _, record = self.decide(REMOTE, body, PHONE, "--deadline", "100", "--private", "-n", "20")
        self.assertEqual(record["request"], {"task": "classify", "prompt_bytes": 400, "output_tokens": 20, "private": True, "deadline_ms": 100})
        self.assertEqual(record["decision"]["prompt_tokens"], 100)
        self.assertEqual(record["decision"]["action"], "refuse")
        self.assertEqual({c["reason"] for c in record["decision"]["candidates"]}, {"too_slow", "low_quality", "private"})

    def test_this_machine(self):
        done = self.ok(mica("route", "decide", "--policy", self.local_policy(), "--models", self.folder.name, "--json", "-p", "Hello"))
        record = json.loads(done.text)
        self.assertGreater(record["state"]["device"]["ram_bytes"], 100000000)
        self.assertEqual(record["decision"]["order"], ["here"])
        self.assertEqual(record["state"]["rungs"][0], {"name": "here", "file": True, "resident": False})
        self.assertEqual(record["state"]["rungs"][1]["file"], False)

    def local_policy(self):
        self.write("here.gguf", "x")
        rung = {"kind": "local", "weights_bytes": 1, "min_ram_bytes": 1, "context": 4096}
        a_class = {"order": "ladder", "output_tokens": 10}
        return self.write("policy.json", {
            "schema": 1, "name": "here", "version": "1", "bytes_per_token": 4, "memory": {"ram_fraction": 0.5},
            "ladder": {"schema": 1, "name": "here", "version": "1", "rungs": [{"name": "here", "file": "here.gguf", **rung},
                                                                             {"name": "gone", "file": "gone.gguf", **rung}]},
            "classes": {"narrow": a_class, "complex": a_class, "unknown": a_class}})

    def test_errors(self):
        policy = self.local_policy()
        self.fails(mica("route", "decide", "-p", "x"), "--policy", code=2)
        self.fails(mica("route", "decide", "--policy", "nowhere.json", "-p", "x"), "nowhere.json")
        self.fails(mica("route", "decide", "--policy", self.write("bad.json", "{"), "-p", "x"), "bad.json is not JSON")
        self.fails(mica("route", "decide", "--policy", policy, "--request", self.write("r.json", '{"private": "yes"}')),
                   "the request: /private must be true or false")
        self.fails(mica("route", "decide", "--policy", policy, "-p", "x", "--rung", "moon"), "moon")
        self.fails(mica("route", "decide", "--policy", policy, "-p", "x", "--state", self.write("s.json", '{"network": 5}')),
                   "the state: /network")
        self.fails(mica("route", "fly"), "decide", code=2)


class Log(RouteTest):
    def make_log(self):
        log = os.path.join(self.folder.name, "log.jsonl")
        state = self.write("state.json", PHONE)
        for i, task in enumerate(["classify", "math", "math"]):
            request = self.write("request.json", {"task": task, "id": f"id-{i}", "prompt_tokens": 100, "output_tokens": 50})
            self.ok(mica("route", "decide", "--policy", REMOTE, "--request", request, "--state", state, "--log", log))
        with open(log, "a", encoding="utf-8") as f:
            f.write(json.dumps({"record": "outcome", "schema": 1, "id": "id-1", "outcome": {
                "ok": True, "rung": "server", "total_ms": 2500, "usd": 0.0001, "prompt_tokens": 100, "output_tokens": 60}}) + "\n")
        return log

    def test_explain(self):
        log = self.make_log()
        done = self.ok(mica("route", "explain", log))
        self.assertEqual(done.text.count("request id-"), 3)
        self.assertIn("not 1b: its quality for this is 0.49, wanted is 0.60", done.text)
        self.assertIn("complex by the rule \"complex-task\", so server, then 3b", done.text)
        done = self.ok(mica("route", "explain", log, "id-1"))
        self.assertEqual(done.text.count("request id-"), 1)
        self.fails(mica("route", "explain", log, "id-9"), "id-9")
        self.fails(mica("route", "explain", self.write("empty", "")), "no record")

    def test_replay(self):
        log = self.make_log()
        report = json.loads(self.ok(mica("route", "replay", log, "--policy", REMOTE, "--json")).text)
        self.assertEqual((report["records"], report["with_outcome"], report["same_choice"]), (3, 1, 3))
        for dimension in report["dimensions"]:
            self.assertEqual(dimension["difference"] or 0, 0)
        local = os.path.join(SHARE, "router", "policies", "default.json")
        report = json.loads(self.ok(mica("route", "replay", log, "--policy", local, "--json")).text)
        self.assertEqual(report["same_choice"], 1)
        self.assertIn({"log": "server", "new": "3b", "records": 2}, report["moves"])
        by_name = {d["name"]: d for d in report["dimensions"]}
        self.assertGreater(by_name["total_ms"]["difference"], 0)  # 3B on a phone is slower
        self.assertLess(by_name["quality"]["difference"], 0)
        self.assertGreater(by_name["quality"]["new_regret"], by_name["quality"]["log_regret"])
        words = self.ok(mica("route", "replay", log, "--policy", local)).text
        self.assertIn("3 records, 1 with an outcome, under the policy default 1: 1 chosen as before", words)
        self.fails(mica("route", "replay", self.write("not", "x\n"), "--policy", local), "no record of a decision")
        self.fails(mica("route", "replay", log), "--policy", code=2)


class Policies(RouteTest):
    def test_check(self):
        for name, words in (("default", "nothing leaves the device"), ("remote", "may leave the device"), ("small", "4 rungs")):
            self.assertIn(words, self.ok(mica("route", "check", os.path.join(SHARE, "router", "policies", name + ".json"))).text)
        info = json.loads(self.ok(mica("route", "check", SMALL, "--json")).text)
        self.assertEqual([r["name"] for r in info["rungs"]], ["qwen-0.5b", "gemma-270m", "smollm2-135m", "server"])

    def test_train_and_test(self):
        model = os.path.join(self.folder.name, "c.json")
        examples, hand = (os.path.join(DATA, "router", n) for n in ("examples.jsonl", "hand.jsonl"))
        report = json.loads(self.ok(mica("route", "train", examples, "--out", model, "--json")).text)
        with open(model, encoding="utf-8") as f, open(os.path.join(SHARE, "router", "classifier.json"), encoding="utf-8") as g:
            made, shipped = json.load(f), json.load(g)
        self.assertEqual(made["trained_on"], shipped["trained_on"])  # what comes with the program is made of these examples
        self.assertLess(max(abs(a - b) for a, b in zip(made["weights"], shipped["weights"])), 50)  # exp() differs between machines
        self.assertGreater(report["on_held_out"]["accuracy"], 0.9)
        report = json.loads(self.ok(mica("route", "test", model, hand, "--json")).text)
        self.assertEqual(report["n"], 125)
        self.assertIn("reliability", self.ok(mica("route", "test", model, hand)).text)
        self.fails(mica("route", "train", examples), "--out", code=2)
        self.fails(mica("route", "train", self.write("x", "{}\n"), "--out", model), "line 1: /text is missing")

    def test_examples_are_what_the_generator_writes(self):
        made = subprocess.run([sys.executable, "-B", os.path.join(DATA, "router", "make_examples.py")], stdout=subprocess.PIPE,
                              check=True).stdout
        with open(os.path.join(DATA, "router", "examples.jsonl"), "rb") as f:
            self.assertEqual(made, f.read())


if __name__ == "__main__":
    unittest.main()
