"""Simulated devices: the device's side of each wire, by the driver that communicates with it.

Each module of `simulators/devices` is one device; it is loaded at its first use.
"""

from collections import ChainMap
from collections.abc import MutableMapping
from importlib import import_module
from pkgutil import iter_modules

from protocols.on_demand import OnDemand, class_named, whole_modules
from simulators import devices
from simulators.devices.device import Device

__all__ = ["EACH_MODE", "OTHER_MODES", "SIMULATORS"]

_SHARED = {"compare", "device", "fdl_device", "line"}
_NAMES = whole_modules(one.name for one in iter_modules(devices.__path__) if one.name not in _SHARED)
_MODES = {"bee_tek_shoe_text": ("bee_tek_shoe", "TextShoe")}

SIMULATORS: MutableMapping[str, type[Device]] = OnDemand(
    _NAMES, lambda name: class_named(f"simulators.devices.{name}", name)
)
OTHER_MODES: MutableMapping[str, type[Device]] = OnDemand(
    _MODES, lambda name: getattr(import_module(f"simulators.devices.{_MODES[name][0]}"), _MODES[name][1])
)
"""A device of SIMULATORS in a mode with another wire, by the name that `feltd simulate` gives it."""
EACH_MODE = ChainMap(OTHER_MODES, SIMULATORS)
