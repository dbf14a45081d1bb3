"""mica bench beside a fake machine that lives: the energy of a run is what the machine gave, or null with its reason."""
import json
import os
import shutil
import sys
import tempfile
import threading
import time

from bench_case import HERE, BenchCase
from climica import main

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "device"))
import fakesys  # noqa: E402

PROTOCOL = {"version": 1, "name": "energy", "description": "for tests", "n_ctx": 256, "cold_s": 0.5, "steady_s": 0.5, "sample_s": 0.2,
            "phases": [{"kind": "load", "cache": "warm"}, {"kind": "warmup", "prompt": 16, "reply": 4, "repeat": 1},
                       {"kind": "decode", "prompt": 16, "reply": 40, "min_s": 3}]}


class Player:
    """Carries a fake machine forward in place, in real time, while the block runs."""

    def __init__(self, profile, quirks=(), start=100.0):
        self.profile, self.quirks, self.start = profile, set(quirks), start
        self.root = tempfile.mkdtemp(prefix="mica-fakesys-")
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.play)

    def play(self):
        begin = time.monotonic()
        while not self.over.wait(0.05):
            fakesys.emit(self.profile, self.root, round(self.start + time.monotonic() - begin, 1), self.quirks)

    def __enter__(self):
        fakesys.emit(self.profile, self.root, self.start, self.quirks)
        self.thread.start()
        return self.root

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()
        shutil.rmtree(self.root)


class Energy(BenchCase):
    def summary(self, profile, quirks=()):
        self.protocol = self.write("energy.json", PROTOCOL)
        with Player(profile, quirks) as root:
            done = self.ok(self.bench("--format", "json", "--sysroot", root, "-t", "1", runtime="mica"))
        return json.loads(done.text)["summary"]

    def test_a_phone_on_battery(self):
        got = self.summary("phone")
        self.assertAlmostEqual(got["power_w"], 8.5, delta=0.5)
        self.assertGreater(got["energy_wh_per_1k"], 0)
        self.assertIn("battery, power out of it", got["energy_source"])
        self.assertAlmostEqual(got["energy_error_pct"], 5, delta=0.1)

    def test_a_phone_without_a_current(self):
        got = self.summary("phone", ["no-current"])
        self.assertAlmostEqual(got["power_w"], 8.5, delta=1.5)
        self.assertIn("steps of the charge", got["energy_source"])

    def test_a_phone_on_its_charger_has_no_watt_hours(self):
        got = self.summary("phone-charging")
        self.assertIsNone(got["energy_wh_per_1k"])
        self.assertIsNone(got["power_w"])
        self.assertIsNone(got["energy_source"])
        self.assertTrue([f for f in got["flags"] if "the battery was in the state Charging" in f], got["flags"])

    def test_a_laptop_by_its_counters(self):
        got = self.summary("laptop")
        self.assertAlmostEqual(got["power_w"], 28 * 1.11, delta=2)
        self.assertIn("RAPL, processor packages and memory", got["energy_source"])


if __name__ == "__main__":
    main()
