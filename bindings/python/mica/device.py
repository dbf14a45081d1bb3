"""The machine under the model: docs/device.md. What it does not tell is None, never zero."""
import ctypes
import enum
import math
from dataclasses import dataclass
from typing import Any, Dict, Optional

from . import _abi
from ._handle import Handle, Owner
from ._library import lib
from .errors import check, new_error, ref


class Thermal(enum.IntEnum):
    UNKNOWN = -1
    NONE = 0
    LIGHT = 1
    MODERATE = 2
    SEVERE = 3
    CRITICAL = 4
    EMERGENCY = 5
    SHUTDOWN = 6


class Battery(enum.IntEnum):
    UNKNOWN = -1
    NONE = 0
    DISCHARGING = 1
    CHARGING = 2
    FULL = 3
    IDLE = 4


class Trim(enum.IntEnum):
    UNKNOWN = -1
    NONE = 0
    MODERATE = 1
    LOW = 2
    CRITICAL = 3


class Throttle(enum.IntFlag):
    """What shows that the machine holds itself back."""
    COOLING = 1
    LIMIT = 2
    TRIP = 4
    COUNTER = 8
    REPORTED = 16
    QUOTA = 32


@dataclass(frozen=True)
class DeviceState:
    """mica_device_state, with temperatures in degrees Celsius."""
    time_ns: int
    reported_ns: Optional[int]
    temp_max: Optional[float]
    temp_soc: Optional[float]
    temp_skin: Optional[float]
    temp_battery: Optional[float]
    thermal: Thermal
    headroom: Optional[float]
    cooling: Optional[float]
    clock: Optional[float]
    clock_limit: Optional[float]
    throttle: Throttle
    battery_level: Optional[float]
    battery_w: Optional[float]
    battery: Battery
    on_mains: Optional[bool]
    power_save: Optional[bool]
    foreground: Optional[bool]
    energy_j: Optional[float]
    energy_error: Optional[float]
    energy_step_j: Optional[float]
    energy_source: str
    energy_reason: str
    energy_epoch: int
    memory_total: Optional[int]
    memory_available: Optional[int]
    memory_limit: Optional[int]
    trim: Trim
    psi_memory_some10: Optional[float]
    psi_memory_full10: Optional[float]
    psi_cpu_some10: Optional[float]
    psi_io_some10: Optional[float]
    cpu_quota: Optional[float]


_ENUMS = {"thermal": Thermal, "battery": Battery, "trim": Trim, "throttle": Throttle}
_ANSWERS = ("on_mains", "power_save", "foreground")
_BYTES = ("memory_total", "memory_available", "memory_limit")
_UNKNOWN_MC = -(1 << 31)


def state_of(raw: _abi.DeviceState) -> DeviceState:
    values: Dict[str, Any] = {}
    for name, *_ in raw._fields_:
        value = getattr(raw, name)
        if name.endswith("_mc"):
            values[name[:-3]] = None if value == _UNKNOWN_MC else value / 1000
        elif name in _ENUMS:
            values[name] = _ENUMS[name](value)
        elif name in _ANSWERS:
            values[name] = None if value < 0 else bool(value)
        elif name in _BYTES:
            values[name] = None if value < 0 else value
        elif isinstance(value, bytes) or value is None:
            values[name] = (value or b"").decode("utf-8", "replace")
        elif isinstance(value, float):
            values[name] = None if math.isnan(value) else value
        elif name != "struct_size":
            values[name] = value
    values["reported_ns"] = values["reported_ns"] or None
    return DeviceState(**values)


class Device(Owner):
    """A monitor of the machine; may be used from any number of threads. `sysroot` is a prefix of every read of /proc and /sys."""

    def __init__(self, *, sysroot: Optional[str] = None, min_interval_ms: Optional[int] = None) -> None:
        o, out, error = lib.mica_device_options_default(), ctypes.c_void_p(), new_error()
        o.sysroot = sysroot.encode() if sysroot else None
        if min_interval_ms is not None:
            o.min_interval_ms = min_interval_ms
        check(lib.mica_device_open(ref(o), ref(out), ref(error)), error)
        self._handle = Handle("the device monitor", out, lib.mica_device_close)

    def read(self) -> DeviceState:
        raw, error = _abi.DeviceState(), new_error()
        with self._handle as native:
            check(lib.mica_device_read(native, ref(raw), ref(error)), error)
        return state_of(raw)

    def report(self, *, thermal: Optional[Thermal] = None, headroom: Optional[float] = None, power_save: Optional[bool] = None,
               foreground: Optional[bool] = None, trim: Optional[Trim] = None, battery_level: Optional[float] = None,
               battery: Optional[Battery] = None, on_mains: Optional[bool] = None) -> None:
        """What only the app knows of its system. None: not said, so what was reported before stays."""
        said = {"thermal": thermal, "headroom": headroom, "power_save": power_save, "foreground": foreground, "trim": trim,
                "battery_level": battery_level, "battery": battery, "on_mains": on_mains}
        o, error = lib.mica_app_report_default(), new_error()
        for name, value in said.items():
            if value is not None:
                setattr(o, name, value)
        with self._handle as native:
            check(lib.mica_device_report(native, ref(o), ref(error)), error)
