"""Simulated devices: the devices' own side of each wire, by the driver that speaks with them.

Each module of `simulators/devices` is one; it is loaded when it is asked for.
"""

from collections.abc import MutableMapping
from pkgutil import iter_modules

from protocols.on_demand import OnDemand, class_named, whole_modules
from simulators import devices
from simulators.devices.device import Device

__all__ = ["SIMULATORS"]

_SHARED = {"compare", "device", "fdl_device", "line"}
_NAMES = whole_modules(one.name for one in iter_modules(devices.__path__) if one.name not in _SHARED)

SIMULATORS: MutableMapping[str, type[Device]] = OnDemand(
    _NAMES, lambda name: class_named(f"simulators.devices.{name}", name)
)
