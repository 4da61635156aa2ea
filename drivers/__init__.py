"""The drivers: each module is one, with its parts beside it (`sas_machine_faults`). The edge runs them.

A driver is loaded at its first use: all of them together take 6 MiB and a fifth of a second, and an edge needs
those of its devices.
"""

from collections.abc import Mapping, MutableMapping
from pkgutil import iter_modules

from drivers.driver import Driver
from protocols.on_demand import OnDemand, class_named, whole_modules

__all__ = ["CHOICES", "DRIVERS", "FAULTS"]

_SHARED = {"driver", "faults", "fdl_session", "spin_counter"}
_NAMES = whole_modules(one.name for one in iter_modules(__path__) if one.name not in _SHARED)

DRIVERS: MutableMapping[str, type[Driver]] = OnDemand(_NAMES, lambda name: class_named(f"drivers.{name}", name))
"""The driver classes by name: that of the module and the `name` of the class."""

FAULTS: Mapping[str, tuple[str, ...]] = OnDemand(
    _NAMES, lambda name: tuple(fault.code for fault in DRIVERS[name].faults)
)
"""By driver, the codes of the faults that it may report."""

CHOICES: Mapping[str, Mapping[tuple[str, str], tuple[str, ...]]] = OnDemand(
    _NAMES, lambda name: getattr(DRIVERS[name], "choices", {})
)
"""By driver, command and field: the values that it accepts in a text field of a command."""
