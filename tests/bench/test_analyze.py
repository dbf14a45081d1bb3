"""mica analyze: the cases of the area bench that are arithmetic, and traces that are wrong."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from climica import TestCase, case, generate, main, mica, write_temporary  # noqa: E402


def analyze(*traces):
    return json.loads(mica("analyze", *traces, "--json").out)


def lines(*events):
    return "".join(json.dumps(e) + "\n" for e in events)


class Cases(TestCase):
    def near(self, got, wanted):
        self.assertAlmostEqual(got, wanted, delta=0.001 * wanted)

    def test_decode_rate(self):
        """Case bench-01."""
        name = "bench-01-decode-rate"
        got = analyze(case(name, "t.jsonl"))
        self.near(got["ttft_ms"], 2000)
        self.near(got["prefill_tps"], 256)
        self.near(got["decode_tps"], 10.0)
        self.near(got["tpot_ms"], 100)
        self.assertEqual((got["tokens"], got["n_prompt"], got["status"]), (101, 512, "ok"))
        self.assertIsNone(analyze(case(name, "one.jsonl"))["decode_tps"])
        self.near(analyze(case(name, "two.jsonl"))["decode_tps"], 4.0)
        got = analyze(case(name, "none.jsonl"))
        self.assertEqual(got["status"], "error")
        for key in ("ttft_ms", "prefill_tps", "decode_tps", "tpot_ms", "cold_tps", "steady_tps", "headline_tps"):
            self.assertIsNone(got[key], key)

    def test_step_throttle(self):
        """Case bench-03."""
        with tempfile.TemporaryDirectory() as folder:
            generate("bench-03-step-throttle", "gen.py", folder)
            got = analyze(os.path.join(folder, "t.jsonl"))
            text = mica("analyze", os.path.join(folder, "t.jsonl")).text
        step = got["throttle"]
        self.assertTrue(step["throttled"])
        self.assertTrue(235 <= step["start_s"] <= 275, step)
        self.assertTrue(step["start_s"] < step["end_s"] <= 300, step)
        self.assertAlmostEqual(step["depth_percent"], 31.8, delta=2)
        self.assertAlmostEqual(got["cold_tps"], 22.0, delta=0.4)
        self.assertAlmostEqual(got["steady_tps"], 15.0, delta=0.3)
        self.assertEqual(got["headline_tps"], got["steady_tps"])
        self.assertAlmostEqual(got["decode_tps"], 18.0, delta=0.3)  # the mean of the whole run, which is not the headline
        self.assertIn("throttle: from 22.0 to 15.0 tokens/s (-31.", text)

    def test_first_run_is_discarded(self):
        """Case bench-05."""
        runs = [case("bench-05-warm-up-discarded", f"run{i}.jsonl") for i in range(4)]
        got = analyze(*runs)
        self.assertAlmostEqual(got["mean_tps"], 14.00, delta=0.005)
        self.assertEqual((got["runs"], got["discarded"], len(got["traces"])), (3, 1, 4))
        self.assertEqual([t["discarded"] for t in got["traces"]], [True, False, False, False])
        self.near(got["traces"][0]["decode_tps"], 9.0)
        got = analyze(*runs, "--keep-first")
        self.assertAlmostEqual(got["mean_tps"], 12.75, delta=0.005)
        self.assertEqual((got["runs"], got["discarded"]), (4, 0))
        self.assertIn("mean of 3 runs: 14.00 tokens/s, 1 discarded", mica("analyze", *runs).text)

    def test_percentiles(self):
        """Case bench-06: nine gaps of 10 ms, nine of 20, one of 100, one of 1000; the rule is named, its values are exact."""
        got = analyze(case("bench-06-percentiles", "t.jsonl"))
        gaps = sorted([10] * 9 + [20] * 9 + [100, 1000])
        itl = got["itl_ms"]
        self.assertIn("linear interpolation", itl["rule"])
        for key, p in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1)):
            h = 19 * p
            low = min(int(h), 18)
            wanted = gaps[low] + (h - low) * (gaps[low + 1] - gaps[low])
            self.assertAlmostEqual(itl[key], wanted, delta=1e-6, msg=key)
        self.assertAlmostEqual(got["tpot_ms"], 68.5, delta=1e-6)

    def test_conditions(self):
        """Case bench-08."""
        name = "bench-08-conditions-recorded"
        cap, eos = analyze(case(name, "cap.jsonl")), analyze(case(name, "eos.jsonl"))
        self.assertEqual((cap["reason"], cap["max_tokens"], cap["tokens"]), ("length", 16, 16))
        self.assertEqual((eos["reason"], eos["max_tokens"], eos["tokens"]), ("stop", 128, 5))
        self.assertIsNone(cap["temperature_c"])
        self.assertEqual(cap["temperature_reason"], "not readable")
        self.assertEqual((eos["temperature_c"], eos["temperature_reason"]), (31.5, None))
        self.assertIsNone(cap["energy_wh"])
        self.assertIn("external power", cap["energy_reason"])
        self.assertTrue(eos["few_tokens"])
        self.assertTrue(any("too few tokens for a decode rate" in flag and "32" in flag for flag in eos["flags"]), eos)


class Traces(TestCase):
    START = {"ev": "start", "t_ns": 5}

    def refuse(self, text, *wanted):
        self.fails(mica("analyze", write_temporary(self, text)), *wanted)

    def test_wrong_lines(self):
        self.refuse("", "start")
        self.refuse("hello\n", "line 1")
        self.refuse(lines(self.START) + "\n[1]\n", "line 3")
        self.refuse(lines({"ev": "token", "t_ns": 5}), "line 1", "start")
        self.refuse(lines(self.START, {"ev": "fly", "t_ns": 5}), "line 2", "ev")
        self.refuse(lines(self.START, {"t_ns": 5}), "line 2")
        self.refuse(lines(self.START, {"ev": "token"}), "line 2", "t_ns")
        self.refuse(lines(self.START, {"ev": "token", "t_ns": 1.5}), "line 2", "t_ns")
        self.refuse(lines(self.START, {"ev": "token", "t_ns": -1}), "line 2", "t_ns")
        self.refuse(lines(self.START, {"ev": "token", "t_ns": 6, "n": 10 ** 12}), "line 2")
        self.refuse(lines({"ev": "meta", "n_prompt": "x"}, self.START), "line 1", "n_prompt")
        self.refuse(lines(self.START, {"ev": "token", "t_ns": 4}), "backwards")
        self.refuse(lines(self.START, {"ev": "token", "t_ns": 9}, {"ev": "token", "t_ns": 8}), "backwards at token 1")
        self.fails(mica("analyze", "/nowhere"), "/nowhere")
        self.fails(mica("analyze"), code=2)

    def test_tokens_of_one_event_share_its_time(self):
        path = write_temporary(self, lines(self.START, {"ev": "token", "t_ns": 1000000005, "n": 1},
                                           {"ev": "token", "t_ns": 3000000005, "n": 4}))
        got = analyze(path)
        self.assertEqual(got["tokens"], 5)
        self.assertAlmostEqual(got["decode_tps"], 2.0)
        self.assertAlmostEqual(got["ttft_ms"], 1000.0)
        self.assertIsNone(got["reason"])
        self.assertTrue(any("no end" in flag for flag in got["flags"]))


if __name__ == "__main__":
    main()
