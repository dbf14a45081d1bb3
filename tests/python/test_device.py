"""The device monitor: what is not told is None, and what an app reports comes back."""
import pytest

import mica


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_nothing_is_known(tmp_path):
    with mica.Device(sysroot=str(tmp_path)) as device:
        state = device.read()
    assert state.temp_max is None and state.battery_level is None and state.energy_j is None and state.memory_total is None
    assert (state.thermal, state.battery, state.on_mains) == (mica.Thermal.UNKNOWN, mica.Battery.UNKNOWN, None)
    assert state.energy_source == "" and state.energy_reason
    assert state.throttle == mica.Throttle(0) and state.reported_ns is None


def test_files(tmp_path):
    write(tmp_path, "sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n")
    write(tmp_path, "sys/class/thermal/thermal_zone0/temp", "61500\n")
    write(tmp_path, "proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n")
    with mica.Device(sysroot=str(tmp_path)) as device:
        state = device.read()
    assert state.temp_soc == state.temp_max == 61.5
    assert state.memory_total == 2048 * 1024


def test_report(tmp_path):
    with mica.Device(sysroot=str(tmp_path), min_interval_ms=0) as device:
        device.report(thermal=mica.Thermal.SEVERE, headroom=0.9, power_save=True, battery_level=0.25,
                      battery=mica.Battery.DISCHARGING, trim=mica.Trim.LOW)
        state = device.read()
        assert (state.thermal, state.headroom, state.power_save, state.battery_level) == (mica.Thermal.SEVERE, 0.9, True, 0.25)
        assert (state.battery, state.trim, state.foreground) == (mica.Battery.DISCHARGING, mica.Trim.LOW, None)
        assert mica.Throttle.REPORTED in state.throttle and state.reported_ns
        device.report(foreground=False)
        state = device.read()
        assert state.foreground is False and state.thermal == mica.Thermal.SEVERE


def test_this_machine():
    with mica.Device() as device:
        assert device.read().memory_total > 0
    with pytest.raises(mica.Closed):
        device.read()
    with pytest.raises(mica.MicaError):
        mica.Device(sysroot="/no/such/folder")
