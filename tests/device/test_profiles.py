"""Every profile and quirk of fakesys.py, at several times, against its own truth; what a machine does not tell is None."""
import os
import pwd
import shutil
import subprocess
import tempfile
import unittest

from fakemachine import READER, Machine, fakesys

TRIP, COOLING, LIMIT = 4, 1, 2  # bits of MICA_THROTTLE_*


def energy(case, machine, t0, t1, step):
    first, last = machine.over(t0, t1, step)
    case.assertEqual(first["energy_epoch"], last["energy_epoch"])
    return last["energy_j"] - first["energy_j"], last


class Phone(unittest.TestCase):
    def test_states_over_time(self):
        machine = Machine(self, "phone")
        for t in (0, 30, 120, 200, 240, 260, 280, 400, 600):
            with self.subTest(t=t):
                truth = fakesys.MODELS.setdefault("phone", fakesys.Model("phone")).at(t)
                state = machine.at(t)
                self.assertAlmostEqual(state["skin"], truth["skin"], delta=0.001)
                self.assertAlmostEqual(state["soc"], truth["soc"] + 6, delta=0.001)
                self.assertAlmostEqual(state["battery_temp"], truth["skin"] - 1.5, delta=0.051)
                self.assertEqual(state["max"], state["soc"])
                self.assertAlmostEqual(state["watts"], truth["p"], delta=0.03 * truth["p"])
                hot = truth["skin"] >= 43.0
                self.assertEqual(bool(state["throttle"] & TRIP), hot)
                self.assertEqual(bool(state["throttle"] & COOLING), round(6 * truth["frac"]) > 0)
                self.assertEqual(state["thermal"], "moderate" if hot else "light" if state["throttle"] & COOLING else "none")
                self.assertAlmostEqual(state["cooling"], round(6 * truth["frac"]) / 12, delta=1e-6)
                rooms = [1 - (43 - truth["skin"]) / 30, 1 - (95 - truth["soc"] - 6) / 30]  # of the zones with a passive trip point
                self.assertAlmostEqual(state["headroom"], max(rooms), delta=0.001)
                self.assertEqual((state["battery"], state["on_mains"]), ("discharging", False))

    def test_the_step_is_seen(self):
        truth = fakesys.truth("phone", 60, 600)
        machine = Machine(self, "phone")
        onset = truth["throttle_onset_s"]
        before, after = machine.at(onset - 5), machine.at(onset + 60)
        self.assertEqual(before["throttle"] & (TRIP | COOLING), 0)
        self.assertTrue(after["throttle"] & TRIP and after["throttle"] & COOLING and after["throttle"] & LIMIT)
        self.assertAlmostEqual(before["clock"] - after["clock"], 0.26, delta=0.05)  # of the weighed mean
        self.assertLess(after["clock_limit"], 0.9)
        self.assertGreater(after["headroom"], 0.99)

    def test_energy_is_the_truth(self):
        joules, last = energy(self, Machine(self, "phone"), 0, 600, 1)
        self.assertAlmostEqual(joules, fakesys.truth("phone", 0, 600)["soc_energy_J"], delta=0.005 * joules)
        self.assertEqual(last["energy_source"], "battery:power")
        self.assertEqual(last["energy_reason"], "")

    def test_signs_and_units_of_the_current(self):
        for quirk in ("current-positive", "current-ma"):
            with self.subTest(quirk=quirk):
                joules, last = energy(self, Machine(self, "phone", [quirk]), 0, 300, 2)
                self.assertAlmostEqual(joules, fakesys.truth("phone", 0, 300)["soc_energy_J"], delta=0.01 * joules)
                self.assertEqual(last["energy_source"], "battery:power")

    def test_a_gauge_without_current(self):
        machine = Machine(self, "phone", ["no-current"])
        self.assertIsNone(machine.at(0)["watts"])
        joules, last = energy(self, machine, 10, 310, 5)
        self.assertAlmostEqual(joules, fakesys.truth("phone", 10, 310)["soc_energy_J"], delta=0.01 * joules)
        self.assertEqual(last["energy_source"], "battery:charge")

    def test_a_counter_in_steps_of_a_hundredth(self):
        machine = Machine(self, "phone", ["no-current", "coarse-counter"])
        joules, last = energy(self, machine, 0, 1200, 5)
        truth = fakesys.truth("phone", 0, 1200)["soc_energy_J"]
        self.assertAlmostEqual(last["energy_step_j"], 0.05 * 3600 * 4.1, delta=30)  # 50 mAh at 4.1 V
        self.assertLess(abs(joules - truth), 1.05 * last["energy_step_j"])
        joules, last = energy(self, Machine(self, "phone", ["coarse-counter"]), 0, 100, 1)
        self.assertEqual(last["energy_source"], "battery:power")  # with a current the counter is not needed
        self.assertAlmostEqual(joules, fakesys.truth("phone", 0, 100)["soc_energy_J"], delta=0.005 * joules)

    def test_zones_in_other_units(self):
        machine = Machine(self, "phone", ["zone-units"])
        for t in (5, 100, 300):
            truth = fakesys.MODELS["phone"].at(t)
            state = machine.at(t)
            self.assertAlmostEqual(state["soc"], truth["soc"] + 6, delta=0.51)  # whole degrees
            self.assertAlmostEqual(state["skin"], truth["skin"], delta=0.001)

    def test_a_zone_without_a_file(self):
        state = Machine(self, "phone", ["zone-missing"]).at(50)
        self.assertIsNotNone(state["battery_temp"])  # the battery's own
        self.assertIsNotNone(state["skin"])

    def test_memory(self):
        state = Machine(self, "phone").at(30)
        self.assertEqual((state["total"], state["available"]), (7800000 * 1024, 2700000 * 1024))
        self.assertIsNone(state["limit"])


class PhoneOnCharger(unittest.TestCase):
    def test_no_energy_is_told(self):
        first, last = Machine(self, "phone-charging").over(0, 60, 5)
        for state in (first, last):
            self.assertIsNone(state["watts"])
            self.assertIsNone(state["energy_j"])
            self.assertEqual(state["energy_source"], "")
            self.assertIn("on external power (usb)", state["energy_reason"])
            self.assertEqual((state["battery"], state["on_mains"]), ("charging", True))
        self.assertFalse(fakesys.truth("phone-charging", 0, 60)["energy_measurable"])


class Laptop(unittest.TestCase):
    def test_energy_across_a_wrap(self):
        truth = fakesys.truth("laptop", 0, 300)
        self.assertEqual(truth["rapl_wraps"], 1)
        joules, last = energy(self, Machine(self, "laptop"), 0, 300, 10)
        self.assertEqual(last["energy_source"], "rapl:package+dram")
        self.assertAlmostEqual(joules, 1.11 * truth["soc_energy_J"], delta=0.01)

    def test_amd_has_no_memory_domain(self):
        joules, last = energy(self, Machine(self, "laptop-amd"), 100, 260, 20)
        self.assertEqual(last["energy_source"], "rapl:package")
        self.assertAlmostEqual(joules, fakesys.truth("laptop-amd", 100, 260)["soc_energy_J"], delta=0.01)
        self.assertEqual((last["battery"], last["on_mains"]), ("none", True))
        self.assertAlmostEqual(last["soc"], fakesys.MODELS["laptop-amd"].at(260)["soc"], delta=0.001)  # of the chip: acpitz is a constant

    def test_the_rest(self):
        state = Machine(self, "laptop").at(100)
        a = fakesys.MODELS["laptop"].at(100)
        self.assertAlmostEqual(state["soc"], a["soc"], delta=0.001)
        self.assertAlmostEqual(state["watts"], 1.35 * a["p"], delta=0.001)
        self.assertAlmostEqual(state["level"], (45e6 - a["e"] * 1.35 / 3600 * 1e6) / 57e6, delta=0.011)
        self.assertAlmostEqual(state["clock"], fakesys.MODELS["laptop"].freq(a) / 4200000, delta=1e-6)
        self.assertEqual((state["battery"], state["on_mains"], state["cooling"]), ("discharging", False, 0.0))
        self.assertIsNone(state["skin"])

    def test_counters_that_only_root_may_read(self):
        machine = Machine(self, "laptop", ["rapl-denied"])
        nobody = self.without_privileges()
        os.chmod(machine.root, 0o755)
        done = subprocess.run([self.readable_reader(), machine.root], input=b"0\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, **nobody)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'"energy_source":"battery:power"', done.stdout)  # what is left
        shutil.rmtree(os.path.join(machine.root, "sys/class/power_supply/BAT0"))
        done = subprocess.run([self.readable_reader(), machine.root], input=b"0\n", stdout=subprocess.PIPE, check=True, **nobody)
        self.assertIn(b"this user may not read the energy counters", done.stdout)
        self.assertIn(b'"energy_j":null', done.stdout)

    def without_privileges(self):
        if os.geteuid() != 0:
            return {}  # files of mode 000 are closed to us already
        user = pwd.getpwnam("nobody")
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def readable_reader(self):
        """The build folder may be closed to others."""
        folder = tempfile.mkdtemp(prefix="mica-reader-")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        return shutil.copy(READER, folder)


class Bare(unittest.TestCase):
    def test_a_server_tells_next_to_nothing(self):
        state = Machine(self, "server").at(10)
        for name in ("soc", "skin", "battery_temp", "max", "headroom", "cooling", "clock", "clock_limit", "level", "watts", "on_mains", "energy_j",
                     "energy_error", "energy_step_j", "limit", "quota"):
            self.assertIsNone(state[name], name)
        self.assertEqual((state["thermal"], state["battery"], state["energy_source"], state["throttle"]), ("unknown", "unknown", "", 0))
        self.assertTrue(state["energy_reason"])
        self.assertEqual(state["psi_some"], 0.0)  # this one it does tell
        self.assertEqual(state["total"], 24600000 * 1024)

    def test_a_container_has_a_limit_and_pressure(self):
        machine = Machine(self, "container")
        calm, pressed = machine.at(10), machine.at(40)
        self.assertEqual(calm["limit"], 2147483648)
        self.assertEqual(calm["available"], 2147483648 - int(1.9e9))
        self.assertEqual((calm["psi_some"], pressed["psi_some"], pressed["psi_full"]), (0.0, 12.5, 4.1))
        self.assertIsNone(pressed["energy_j"])

    def test_the_first_version_of_control_groups(self):
        state = Machine(self, "cgroup1").at(0)
        self.assertEqual(state["limit"], 4294967296)
        self.assertLessEqual(state["available"], 4294967296)


class AllProfiles(unittest.TestCase):
    def test_nothing_unknown_becomes_zero(self):
        """Files go one after the other; whatever is left, an answer is the one of before or None, and the reader lives."""
        for profile in fakesys.PROFILES:
            with self.subTest(profile=profile):
                machine = Machine(self, profile)
                full = machine.read(0)
                files = [os.path.join(folder, name) for folder, _, names in os.walk(machine.root) for name in names]
                for i, path in enumerate(sorted(files)):
                    os.remove(path)
                    state = machine.read(i + 1)
                    for name in ("soc", "skin", "watts", "level", "total", "available", "clock"):
                        if full[name] is None:
                            self.assertIsNone(state[name], f"{name} after {path}")
                        elif state[name] is not None:
                            self.assertNotEqual(state[name], 0, f"{name} after {path}")
                for name in ("soc", "skin", "watts", "level", "total", "available", "clock", "cooling", "headroom", "energy_j"):
                    self.assertIsNone(state[name], name)

    def test_garbage_in_every_file(self):
        for content in (b"", b"\xff\xfe\x00garbage\n", b"-99999999999999999999\n", b"9" * 5000, b"\n\n\n"):
            for profile in ("phone", "laptop", "container"):
                machine = Machine(self, profile)
                for folder, _, names in os.walk(machine.root):
                    for name in names:
                        with open(os.path.join(folder, name), "wb") as f:
                            f.write(content)
                state = machine.read(1)
                for name in ("soc", "skin", "watts", "level", "total", "clock", "cooling", "energy_j"):
                    self.assertIsNone(state[name], f"{name} with {content[:10]!r}")


if __name__ == "__main__":
    unittest.main()
