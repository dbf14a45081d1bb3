"""mica probe: fake machines in text and JSON, this machine with what is measured and kept."""
import json
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from fakemachine import fakesys, tree
from climica import BIN, SCRIPTED, TestCase, case, environment, main, mica


class Probe(TestCase):
    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="mica-data-")
        self.addCleanup(shutil.rmtree, self.data)
        self.env = {**environment(), "XDG_DATA_HOME": self.data}

    def probe(self, *args):
        return self.ok(mica("probe", *args, env=self.env))

    def json(self, *args):
        return json.loads(self.probe("--json", *args).text)

    def store(self):
        with open(os.path.join(self.data, "mica", "device.json"), encoding="utf-8") as f:
            return json.load(f)


class Fake(Probe):
    def test_all_profiles_and_quirks(self):
        quirks = [(), ("zone-units",), ("zone-missing",), ("current-positive",), ("current-ma",), ("no-current",), ("coarse-counter",)]
        runs = [(p, q) for p in fakesys.PROFILES for q in (quirks if p == "phone" else [()])]
        for profile, quirk in runs:
            with self.subTest(profile=profile, quirk=quirk):
                root = tree(self, profile, 70, quirk)
                got = self.json("--sysroot", root)
                text = self.probe("--sysroot", root).text
                self.assertEqual({line.split(" ")[0] for line in text.splitlines() if line[:1] != " "} & {"CPU", "memory", "heat", "battery", "draw"},
                                 {"CPU", "memory", "heat", "battery", "draw"})
                self.assertIsNone(got["bandwidth"])  # figures are of this machine, not of that one
                self.assertEqual(got["models"], [])
                self.assertFalse(os.path.exists(os.path.join(self.data, "mica", "device.json")))
                watts = {"phone": 8.5, "laptop": 1.35 * 28}.get(profile) if "no-current" not in quirk else None
                if watts is None:
                    self.assertIsNone(got["power"]["watts"])
                    self.assertTrue(got["power"]["reason"])
                else:
                    self.assertAlmostEqual(got["power"]["watts"], watts, delta=0.02 * watts)

    def test_a_phone(self):
        got = self.json("--sysroot", tree(self, "phone", 300))
        a = fakesys.MODELS["phone"].at(300)
        self.assertEqual([c["capacity"] for c in got["cpu"]["cpus"]], [390] * 7 + [1024])
        self.assertEqual((got["cpu"]["online"], got["cpu"]["usable"]), (8, 8))
        skin = [z for z in got["thermal"]["zones"] if z["name"] == "VIRTUAL-SKIN"][0]
        self.assertEqual(skin["kind"], "skin")
        self.assertAlmostEqual(skin["celsius"], a["skin"], delta=0.001)
        self.assertEqual(skin["trips"], [{"kind": "passive", "celsius": 43.0}, {"kind": "hot", "celsius": 53.0}, {"kind": "critical", "celsius": 58.0}])
        self.assertEqual([(c["name"], c["state"], c["highest"], c["processor"]) for c in got["thermal"]["cooling"]],
                         [("thermal-cpufreq-0", 6, 12, True), ("thermal-cpufreq-1", 3, 12, True), ("thermal-devfreq-0", 0, 8, False)])
        self.assertIn("cooling", got["thermal"]["throttle"])
        self.assertEqual(got["power"]["source"], "battery/current_now")
        self.assertEqual(got["energy"]["source"], "battery:power")
        self.assertEqual(got["memory"]["limit_bytes"], None)
        text = self.probe("--sysroot", tree(self, "phone", 300)).text
        self.assertRegex(text, r"VIRTUAL-SKIN \d\d\.\d C, passive at 43 C, hot at 53 C, critical at 58 C \(skin\)")

    def test_a_phone_on_its_charger_has_no_watts(self):
        got = self.json("--sysroot", tree(self, "phone-charging", 70))
        self.assertIsNone(got["power"]["watts"])
        self.assertIsNone(got["energy"]["source"])
        self.assertIn("on external power (usb)", got["energy"]["reason"])
        self.assertIs(got["power"]["external"], True)

    def test_a_laptop_and_a_container(self):
        got = self.json("--sysroot", tree(self, "laptop", 70))
        self.assertEqual([(c["name"], c["counted"]) for c in got["energy"]["counters"]],
                         [("package-0", True), ("core", False), ("uncore", False), ("dram", True), ("psys", False)])
        self.assertEqual([c["state"] for c in got["thermal"]["cooling"]], [0, None])  # powerclamp writes -1
        got = self.json("--sysroot", tree(self, "container", 70))
        self.assertEqual(got["memory"]["limit_bytes"], 2147483648)
        self.assertTrue(got["memory"]["limit_source"].endswith("memory.max"))
        self.assertEqual(got["memory"]["pressure"]["some10"], 12.5)

    def test_power_cases(self):
        """pow-01, pow-03 and pow-05 through the program."""
        expected = {"kernel_abi": 4.1433, "unsigned": 4.1433, "inverted_charging": None, "abi_charging": None, "full_on_usb": None}
        flows = {"inverted_charging": 6.6789, "abi_charging": 6.6789, "full_on_usb": 0.0037}
        for name, watts in expected.items():
            power = self.json("--sysroot", case("pow-01-sign-conventions", name))["power"]
            if watts is None:
                self.assertIsNone(power["watts"])
                self.assertIn("external", power["reason"])
                self.assertAlmostEqual(power["flow_watts"], flows[name], delta=max(0.001 * flows[name], 0.00005))
            else:
                self.assertAlmostEqual(power["watts"], watts, delta=0.001 * watts)
        for name in ("absent", "blank", "empty_dir", "mains_only", "no_dir", "overflow", "text"):
            root = case("pow-03-read-errors", name)
            os.makedirs(os.path.join(root, "sys/class"), exist_ok=True)
            power = self.json("--sysroot", root)["power"]
            self.assertEqual((power["watts"], power["flow_watts"], power["source"]), (None, None, None))
            self.assertTrue(power["reason"])
        self.assertAlmostEqual(self.json("--sysroot", case("pow-05-which-supply", "tree"))["power"]["watts"], 8.5, delta=1e-9)
        self.assertAlmostEqual(self.json("--sysroot", case("pow-05-which-supply", "bms"))["power"]["watts"], 4.0, delta=1e-9)


class Here(Probe):
    @classmethod
    def setUpClass(cls):
        """The machine's bandwidth is measured once for all."""
        cls.kept = tempfile.mkdtemp(prefix="mica-data-")
        cls.addClassCleanup(shutil.rmtree, cls.kept)
        cls.first = mica("probe", "--json", env={**environment(), "XDG_DATA_HOME": cls.kept})

    def setUp(self):
        super().setUp()
        self.ok(self.first)
        shutil.copytree(os.path.join(self.kept, "mica"), os.path.join(self.data, "mica"))

    def test_what_is_measured_is_kept_until_something_changes(self):
        first = json.loads(self.first.text)
        self.assertGreater(first["bandwidth"]["read_bytes_per_s"], 1e8)
        self.assertTrue(first["bandwidth"]["holds"])
        self.assertRegex(first["build"], r"^[0-9a-f]{16,64}$|^\d+\.\d+")
        start = time.monotonic()
        second = self.json()
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(second["bandwidth"], first["bandwidth"])
        store = self.store()
        store["machine"]["build"] = "another"
        store["machine"]["measured_unix"] = 5
        with open(os.path.join(self.data, "mica", "device.json"), "w", encoding="utf-8") as f:
            json.dump(store, f)
        stale = self.json("--no-measure")
        self.assertEqual((stale["bandwidth"]["measured_unix"], stale["bandwidth"]["holds"]), (5, False))
        again = self.json()
        self.assertGreater(again["bandwidth"]["measured_unix"], 5)
        self.assertTrue(again["bandwidth"]["holds"])

    def test_a_model_is_measured_once(self):
        args = ("-m", SCRIPTED, "--seconds", "0.5", "-t", "1")
        first = self.json(*args)
        self.assertGreater(first["model"]["decode_tps"], 1)
        self.assertGreater(first["model"]["prefill_tps"], 1)
        self.assertAlmostEqual(first["model"]["measured_s"], 0.5, delta=0.4)
        self.assertEqual((first["model"]["threads"], first["model"]["source"], first["model"]["holds"]), (1, "probe", True))
        self.assertEqual(first["model"]["model"], f"scripted.gguf@{os.path.getsize(SCRIPTED)}")
        self.assertEqual(first["models"], [first["model"]])
        self.assertIsNone(first["storage"]["bytes_per_s"])  # less than 4 MiB tell nothing of a disk
        self.assertTrue(first["storage"]["reason"])
        self.assertEqual(self.json(*args)["model"], first["model"])
        other = self.json(*args, "--kernels", "portable")["model"]
        self.assertEqual(other["kernels"], "portable")
        self.assertTrue(other["holds"])
        self.assertNotEqual(self.json(*args, "--measure")["model"], first["model"])
        self.assertIn("models     scripted.gguf@", self.probe("--no-measure").text)

    def test_a_disk_is_measured(self):
        big = os.path.join(self.data, "big.gguf")
        shutil.copy(SCRIPTED, big)
        with open(big, "ab") as f:
            f.write(os.urandom(16 << 20))  # bytes behind the tensors are nobody's
            os.fsync(f.fileno())
        storage = self.json("-m", big, "--seconds", "0.2")["storage"]
        if storage["bytes_per_s"] is None:
            self.assertIn("stay in memory", storage["reason"])  # a file system in memory
        else:
            self.assertGreater(storage["bytes_per_s"], 1e5)
            self.assertLess(storage["seconds"], 3)
            self.assertIn(storage["method"], ("O_DIRECT", "fadvise"))

    def test_models_in_memory(self):
        path = os.path.join(self.data, "held here.gguf")
        shutil.copy(SCRIPTED, path)
        with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as held:
            sum(held[::4096])
            found = [e for e in self.json("--no-measure")["resident"] if e["file"] == path]
            self.assertEqual([e["pid"] for e in found], [os.getpid()])
            size = os.path.getsize(path)
            self.assertGreaterEqual(found[0]["mapped_bytes"], size)
            self.assertGreaterEqual(found[0]["resident_bytes"], size)
        self.assertEqual([e for e in self.json("--no-measure")["resident"] if e["file"] == path], [])

    def test_a_damaged_store_is_told(self):
        with open(os.path.join(self.data, "mica", "device.json"), "w", encoding="utf-8") as f:
            f.write("{")
        done = mica("probe", "--json", env=self.env)
        self.fails(done, "remove it")
        with open(os.path.join(self.data, "mica", "device.json"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "{")

    def test_interrupted_measurements_leave_nothing(self):
        process = subprocess.Popen([BIN, "probe", "-m", SCRIPTED, "--seconds", "600", "--json"], env=self.env, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        for _ in range(600):  # until the model is what is measured
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as f:
                if "scripted.gguf" in f.read():
                    break
            time.sleep(0.1)
        time.sleep(0.5)
        process.send_signal(2)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, b""), err)
        self.assertNotIn("models", self.store())

    def test_wrong_uses(self):
        absent = os.path.join(self.data, "absent")
        self.fails(mica("probe", "--sysroot", absent, env=self.env), "absent")
        self.fails(mica("probe", "-m", absent, env=self.env), "absent")
        self.fails(mica("probe", "--measure", "--no-measure", env=self.env), "exclude", code=2)
        self.fails(mica("probe", "word", env=self.env), "one word too many", code=2)
        self.fails(mica("probe", "--seconds", "0", env=self.env), "--seconds", code=2)
        self.assertIsNotNone(re.search("device.json", mica("help", "probe").text))


if __name__ == "__main__":
    main()
