"""mica cost and mica roofline: the cases cost-01 and cost-03, the steps shown, what is refused."""
import json
import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from climica import DATA, SCRIPTED, TestCase, case_json, environment, main, mica, write_temporary  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(DATA))
PRICES = os.path.join(ROOT, "share", "mica", "prices.json")
OPTIONS = {"watts": "--watts", "tok_s": "--tok-s", "usd_per_kwh": "--usd-per-kwh", "battery_wh": "--battery-wh", "tokens": "--tokens",
           "usd_per_million": "--usd-per-million", "wh_per_million": "--wh-per-million", "input_tokens": "--input-tokens",
           "output_tokens": "--output-tokens", "usd_in": "--usd-in", "usd_out": "--usd-out"}
USUAL = ["--watts", "4", "--tok-s", "12", "--device-usd", "400", "--duty", "0.2", "--prices", PRICES]


def cost(*args):
    return json.loads(mica("cost", *args, "--json").out)


class Cases(TestCase):
    def run_case(self, name, entries):
        numbers = 0
        for entry in case_json(name, "cases.json"):
            args = [part for key, value in entry.items() if key != "expect" for part in (OPTIONS[key], repr(value))]
            got = json.loads(self.ok(mica("cost", *args, "--json")).out)
            for key, wanted in entry["expect"].items():
                self.assertTrue(math.isclose(got[key], wanted, rel_tol=0.005, abs_tol=1e-12), (entry, key, got[key]))
                numbers += 1
        self.assertEqual(numbers, entries)

    def test_energy(self):
        """Case cost-01."""
        self.run_case("cost-01-energy", 11)

    def test_totals(self):
        """Case cost-03."""
        self.run_case("cost-03-totals", 7)

    def test_nothing_divides_by_zero(self):
        """Case cost-03: a rate of 0 or negative inputs are errors, not infinity."""
        for args in (["--tok-s", "0", "--watts", "4"], ["--tok-s", "-1"], ["--tok-s", "12", "--watts", "-4"], ["--tokens", "-1"],
                     ["--usd-per-million", "-1"], ["--battery-wh", "0"], ["--duty", "0"], ["--duty", "1.5"], ["--years", "0"],
                     ["--usd-per-kwh", "-0.1"], ["--idle-watts", "-1"], ["--device-usd", "-1"], ["--wh-per-million", "-1"]):
            self.fails(mica("cost", *args), args[-2] if args[-2] != "--watts" else "--", code=2)


class Cost(TestCase):
    def test_the_whole_sum(self):
        got = cost(*USUAL, "--tokens", "100000000", "--battery-wh", "13.9")
        self.assertAlmostEqual(got["usd_per_million"], 1.7617 + 0.0185, delta=0.0005)
        self.assertAlmostEqual(got["device_total_usd"], 178.02, delta=0.05)
        self.assertAlmostEqual(got["days"], 96.45 / 0.2, delta=0.1)
        self.assertAlmostEqual(got["lifetime_tokens"], 227.06e6, delta=0.01e6)
        self.assertAlmostEqual(got["charges"], 666.1, delta=0.1)
        rows = {row["name"]: row for row in got["cloud"]}
        self.assertAlmostEqual(rows["gpt-4o-mini"]["total_usd"], 26.25)
        self.assertAlmostEqual(rows["claude-3.5-haiku"]["usd_per_million"], 1.60)
        self.assertIsNone(rows["gpt-4o-mini"]["break_even"]["duty"])
        self.assertAlmostEqual(rows["claude-3.5-haiku"]["break_even"]["duty"], 0.2 * 1.7617 / (1.60 - 0.018519), delta=1e-4)
        self.assertGreater(rows["gpt-4o-mini"]["own_device_ratio"], 6)

    def test_an_owned_device_costs_its_energy(self):
        got = cost("--watts", "4", "--tok-s", "30", "--tokens", "100000000", "--prices", PRICES)
        self.assertAlmostEqual(got["device_total_usd"], 0.7407, delta=0.0001)
        self.assertEqual(got["usd_hardware_per_million"], 0)
        self.assertTrue(all(row["break_even"]["duty"] == 0 for row in got["cloud"]))

    def test_what_is_not_known_is_null(self):
        got = cost("--tok-s", "12", "--prices", PRICES)
        for key in ("j_per_token", "wh_per_million", "usd_per_million", "total_usd", "charges", "days", "tokens"):
            self.assertIsNone(got[key], key)
        self.assertNotIn("nan", mica("cost", "--tok-s", "12", "--prices", PRICES).text.lower())
        self.assertNotIn("inf", mica("cost", "--tok-s", "12", "--prices", PRICES).text.lower())

    def test_blends(self):
        def price(*args):
            return cost("--usd-in", "1", "--usd-out", "5", *args)["blended_usd_per_million"]
        self.assertAlmostEqual(price(), 2.0)
        self.assertAlmostEqual(price("--blend", "1:1"), 3.0)
        self.assertAlmostEqual(price("--blend", "0:1"), 5.0)
        self.assertAlmostEqual(price("--input-tokens", "0", "--output-tokens", "0"), 2.0)
        for blend in ("3", "3:", ":1", "0:0", "-1:2", "a:b", "1:2:3"):
            self.fails(mica("cost", "--usd-in", "1", "--usd-out", "5", "--blend", blend), "--blend", code=2)

    def test_steps(self):
        text = self.ok(mica("cost", *USUAL, "--tokens", "100000000", "--battery-wh", "13.9", "--explain", "--cloud", "gpt-4o-mini")).text
        for step in ("4 W / 12 tokens/s = 0.333333 J/token", "x 1000000 / 3600 J/Wh = 92.5926 Wh per million tokens",
                     "92.5926 Wh / 1000 x $0.2 per kWh = $0.0185185 per million tokens", "92.5926 Wh / 13.9 Wh = 6.66134 charges",
                     "12 tokens/s x 86400 s x 365 x 3 years x duty 0.2 = 227.059 million tokens", "$400 / 227.059 million = $1.76166",
                     "= 482.253 days", "(3 x $0.15 + 1 x $0.6) / 4 = $0.2625", "$0.2625 x 100 million = $26.25"):
            self.assertIn(step, text)
        self.assertNotIn("claude", text)
        text = self.ok(mica("cost", *USUAL, "--idle-watts", "1", "--explain")).text
        self.assertIn("idle: 1 W x (1 - 0.2) / 0.2 = 4 W beside the work", text)

    def test_curves(self):
        text = self.ok(mica("cost", *USUAL, "--break-even")).text
        rows = re.findall(r"^ +(\d[\d.]*) +((?: *[\d.]+ [a-d.]{4})+)$", text, re.MULTILINE)
        self.assertEqual([float(rate) for rate, _ in rows], [6, 12, 24, 48, 96, 192])
        totals = [[float(x) for x in re.findall(r"(\d+\.\d{4}) ", cells + " ")] for _, cells in rows]
        for line in totals:
            self.assertEqual(len(line), 5)
            self.assertEqual(line, sorted(line, reverse=True))  # a higher duty is cheaper
        for column in zip(*totals):
            self.assertEqual(list(column), sorted(column, reverse=True))  # a higher rate too
        self.assertAlmostEqual(totals[1][2], 1.7802, delta=0.0001)
        self.assertIn("a  gpt-4o-mini, $0.2625", text)
        self.assertTrue(rows[-1][1].strip().endswith("abcd"), rows[-1])  # at 192 tokens/s and full duty cheaper than all four
        self.assertTrue(rows[0][1].split()[1] == "....", rows[0])

    def test_tables_of_ones_own(self):
        table = {"date": "2031-05-06", "electricity_usd_per_kwh": 0.5, "blend": {"input": 1, "output": 1},
                 "prices": [{"name": "mine", "provider": "me", "date": "2031-05-06", "input": 2, "output": 4}]}
        path = write_temporary(self, json.dumps(table))
        got = cost("--prices", path, "--watts", "4", "--tok-s", "30")
        self.assertEqual((got["prices_date"], got["cloud"][0]["usd_per_million"], got["usd_per_kwh"]), ("2031-05-06", 3, 0.5))
        folder = os.path.dirname(path)
        self.fails(mica("cost", "--prices", path, "--cloud", "gpt-4o-mini"), "gpt-4o-mini")
        self.fails(mica("cost", "--prices", os.path.join(folder, "nothing-there.json")), "nothing-there.json")
        self.fails(mica("cost", "--prices", write_temporary(self, "{}")), "price table")
        self.fails(mica("cost", "--cloud", "x", env=dict(environment(), XDG_DATA_HOME="/nowhere")), "x")

    def test_contradictions(self):
        for args, wanted in ((["--watts", "4"], "--tok-s"), (["--device-usd", "4"], "--tok-s"), (["--usd-in", "1"], "--usd-out"),
                             (["--usd-per-million", "1", "--usd-in", "1", "--usd-out", "1"], "--usd-per-million"),
                             (["--wh-per-million", "1", "--watts", "1", "--tok-s", "1"], "--wh-per-million"),
                             (["--input-tokens", "1"], "--output-tokens"),
                             (["--input-tokens", "1", "--output-tokens", "1", "--tokens", "2"], "--tokens")):
            self.fails(mica("cost", *args), wanted, code=2)


class Roofline(TestCase):
    def test_a_model(self):
        got = json.loads(self.ok(mica("roofline", SCRIPTED, "--seconds", "0.2", "-t", "1", "--depth", "100", "--decode-tps", "50", "--json")).out)
        self.assertEqual((got["threads"], got["depth"], got["prompt_tokens"], got["layers"]), (1, 100, 512, 1))
        self.assertAlmostEqual(got["decode_bytes"], got["streamed_bytes"] + 4 * 128 * 100, delta=4096)
        self.assertAlmostEqual(got["decode_ceiling_tps"], got["read_bytes_per_s"] / got["decode_bytes"], delta=1e-6 * got["decode_ceiling_tps"])
        self.assertAlmostEqual(got["decode_part"], 50 / got["decode_ceiling_tps"], delta=1e-9)
        self.assertEqual(got["prefill_ops"], got["prefill_linear_ops"] + got["prefill_attention_ops"])

    def test_text(self):
        text = self.ok(mica("roofline", "-m", SCRIPTED, "--seconds", "0.2", "-t", "2", "--decode-tps", "10")).text
        for part in ("2 threads", "GB/s", "Ceilings", "of the decode ceiling"):
            self.assertIn(part, text)
        self.fails(mica("roofline", "/nowhere/x.gguf", "--seconds", "0.1"), "/nowhere/x.gguf")
        self.fails(mica("roofline", SCRIPTED, "--seconds", "0"), "--seconds", code=2)


if __name__ == "__main__":
    main()
