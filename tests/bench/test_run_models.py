"""mica bench on a real model, for seconds: figures are of the right size, and the record can be verified."""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import TestCase, main_with_models, mica, models_dir, write_temporary  # noqa: E402

MODEL = "smollm2-135m-instruct-q4_1.gguf"
ROOT = os.path.dirname(os.path.dirname(HERE))


class RealModel(TestCase):
    def test_smoke(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.ok(mica("bench", "-m", os.path.join(models_dir(), MODEL), "--format", "json",
                                "--protocol", os.path.join(ROOT, "share", "mica", "protocols", "smoke.json"),
                                "--db", os.path.join(folder, "bench.db")))
        run = json.loads(done.text)
        s = run["summary"]
        self.assertEqual(run["head"]["state"], "done")
        self.assertEqual(s["problems"], [])
        self.assertGreater(s["ttft_128_ms"], 1.2 * s["ttft_32_ms"])
        self.assertGreater(s["decode_tps"], 0.2)
        self.assertGreaterEqual(s["decode_s"], 1)
        self.assertAlmostEqual(s["tpot_ms"] * s["decode_tps"], 1000, delta=1)
        self.assertEqual(s["file_bytes"], os.path.getsize(os.path.join(models_dir(), MODEL)))
        self.assertGreater(s["peak_rss_bytes"], s["weight_bytes"] / 2)
        self.assertFalse(s["sustained"])
        for series in run["series"]:
            self.assertEqual(series["cached_n"], 0)
            self.assertEqual(series["prompt_n"], series["prompt_asked"])
        self.ok(mica("verify", write_temporary(self, done.out)))


if __name__ == "__main__":
    main_with_models(MODEL)
