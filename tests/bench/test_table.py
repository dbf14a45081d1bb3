"""Tests of scripts/bench-table: its table from runs whose figures are known, and that it measures in turn, once, and goes on where it stopped.

    MICA_BIN=build/release/bin/mica python3 tests/bench/test_table.py
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import records  # noqa: E402

SCRIPT = os.path.join(ROOT, "scripts", "bench-table")
MICA = os.environ.get("MICA_BIN") or os.path.join(ROOT, "build", "release", "bin", "mica")
MODEL = os.path.join(ROOT, "tests", "data", "cases", "_common", "scripted.gguf")
PROTOCOL = {"version": 1, "name": "tiny", "description": "for tests", "n_ctx": 128, "cold_s": 0.01, "steady_s": 0.01, "sample_s": 0.05,
            "phases": [{"kind": "load", "cache": "warm"}, {"kind": "warmup", "prompt": 8, "reply": 4, "repeat": 1},
                       {"kind": "ttft", "prompt": 32, "reply": 2, "repeat": 3}, {"kind": "decode", "prompt": 8, "reply": 40, "min_s": 0.05}]}


class BenchTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def run_script(self, *args, code=0):
        env = dict(os.environ, XDG_DATA_HOME=self.folder, XDG_CACHE_HOME=self.folder)
        p = subprocess.run([SCRIPT, "--mica", MICA, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, check=False, timeout=240,
                           universal_newlines=True)
        self.assertEqual(p.returncode, code, p.stderr + p.stdout)
        return p

    def with_summaries(self, runs):
        """As mica bench would have stored them: a report's figures but for what it adds."""
        added = ("energy_joules_per_token", "energy_wh_per_million", "energy_usd_per_million", "hours_per_million")
        done = subprocess.run([MICA, "report", self.put("raw.jsonl", records.lines(*runs)), "--format", "json"], stdout=subprocess.PIPE, check=True)
        return [dict(run, summary={k: v for k, v in found["figures"].items() if k not in added})
                for run, found in zip(runs, json.loads(done.stdout)["runs"])]

    def cells(self, text):
        """{runtime: {title: cell}}"""
        rows = [[c.strip() for c in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")]
        return {row[0]: dict(zip(rows[0], row)) for row in rows[1:]}

    def test_medians_labels_and_reasons(self):
        reference = {"runtime": {"adapter": "mlx", "name": "MLX", "version": "0.32", "labels": "reference BLAS", "exact": True, "other_clock": False}}
        foreign = {"read_bytes_per_s": 5e9, "threads": 4, "decode_bytes": None}
        runs = [records.run("quick cpu", rate=r, seed=i) for i, r in enumerate((20.0, 22.0, 24.0))]
        runs += [records.run("slow cpu", rate=4.0, seed=9, roofline=foreign, **reference),
                 records.run("broken cpu", state="failed", reason="it broke\nin two lines", seed=10)]
        p = self.run_script("--from", self.put("runs.jsonl", records.lines(*self.with_summaries(runs))), code=1)
        cells = self.cells(p.stdout)
        self.assertEqual(set(cells), {"**quick cpu**", "**slow cpu** (reference BLAS)"})
        quick, slow = cells["**quick cpu**"], cells["**slow cpu** (reference BLAS)"]
        self.assertAlmostEqual(float(quick["steady, tok/s"]), 22, delta=0.3)
        self.assertAlmostEqual(float(slow["cold, tok/s"]), 4, delta=0.1)
        self.assertEqual((quick["TTFT 512, ms (p95)"], quick["peak RSS, MiB"], quick["file, MiB"], quick["bits a weight"], quick["runs"]),
                         ("402 (404)", "300", "100", "4.50", "3"))
        self.assertEqual((quick["load cold, ms"], quick["warm, ms"]), ("–", "76"))
        self.assertAlmostEqual(float(quick["% of roofline"]), 100 * 22 * 1.2e8 / 5e9, delta=1)
        self.assertEqual(slow["% of roofline"], f"≤ {100 * 4 * 98 * 2 ** 20 / 5e9:.0f}")
        self.assertIn("CPU: A processor, 4 cores; threads: 4", p.stdout)
        self.assertIn("Protocol: by hand. 2026-01-02, `scripts/bench-table --mica", p.stdout)
        self.assertIn("- **broken cpu** is not in the table: it broke in two lines", p.stdout)
        self.assertIn("- quick cpu, slow cpu: not sustained figures", p.stdout)
        self.assertEqual(p.stdout.count("reference BLAS"), 1)

    def fake(self, mode):
        """An adapter's folder that has the name of the mode."""
        os.mkdir(os.path.join(self.folder, mode))
        command = [sys.executable, "-B", os.path.join(ROOT, "tests", "bench", "fake_adapter.py"), mode]
        self.put(os.path.join(mode, "manifest.json"), json.dumps({"name": mode, "protocol": 1, "command": command}))

    def test_it_measures_in_turn_and_goes_on(self):
        protocol, out = self.put("tiny.json", json.dumps(PROTOCOL)), os.path.join(self.folder, "out")
        args = ["--model", MODEL, "--protocol", protocol, "--threads", "1", "--output", out, "--adapters", self.folder]
        self.fake("good")
        self.fake("refuses")
        p = self.run_script(*args, "--runtime", "mica", "--rounds", "1")
        self.assertEqual(self.cells(p.stdout)["**mica cpu**"]["runs"], "1")
        with open(os.path.join(out, "table.md"), encoding="utf-8") as f:
            self.assertEqual(f.read(), p.stdout)
        p = self.run_script(*args, "--runtime", "mica,good,refuses", "--rounds", "2", code=1)
        self.assertEqual(p.stderr.splitlines(), ["bench-table: round 1 of 2: good", "bench-table: round 1 of 2: refuses",
                                                 "bench-table: round 2 of 2: good", "bench-table: round 2 of 2: mica"])
        cells = self.cells(p.stdout)
        self.assertEqual((cells["**mica cpu**"]["runs"], cells["**fake runtime cpu** (a fake)"]["runs"]), ("2", "2"))
        self.assertRegex(p.stdout, r"- \*\*refuses\*\* is not in the table: .*this is no model of mine")
        self.assertEqual(self.run_script(*args, "--runtime", "mica", "--rounds", "2").stderr, "")  # all is there

    def test_wrong_words(self):
        p = self.run_script("--runtime", "mica,nobody", code=2)
        self.assertIn('unknown runtime "nobody"', p.stderr)
        self.run_script("--rounds", "0", code=2)


if __name__ == "__main__":
    if not os.path.exists(MICA):
        print(f"skipped: {MICA} is not there", file=sys.stderr)
        sys.exit(77)
    unittest.main()
