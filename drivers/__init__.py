"""The drivers: one file each, registered here.

A driver is loaded when it is asked for: all of them together take 6 MiB and a fifth of a second, and an edge needs
those of its devices.
"""

from collections.abc import Mapping, MutableMapping
from importlib import import_module
from typing import cast

from drivers.driver import Driver
from protocols.on_demand import OnDemand

__all__ = ["CHOICES", "DRIVERS", "FAULTS"]

# By the driver's name, which is that of its file, the class in it.
_CLASSES = {
    "cammegh_ss2": "CammeghSS2",
    "bee_tek_shoe": "BeeTekShoe",
    "hid_shoe": "HidShoe",
    "fdl_continuous": "FdlContinuous",
    "fdl_shuffler": "FdlShuffler",
    "fdl_shaker": "FdlShaker",
    "fdl_console": "FdlConsole",
    "fdl_bets": "FdlBets",
    "fdl_lamps": "FdlLamps",
    "fdl_peek": "FdlPeek",
    "fdl_timer": "FdlTimer",
    "fdl_buttons": "FdlButtons",
    "alpha_sign": "AlphaSign",
    "tcs_saturn": "TcsSaturn",
    "sas_machine": "SasMachine",
    "billy_iii": "BillyIII",
    "idp_dice": "IdpDice",
    "bet_terminals": "BetTerminals",
}


def _driver(name: str) -> type[Driver]:
    return cast("type[Driver]", getattr(import_module(f"drivers.{name}"), _CLASSES[name]))


def _choices(name: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
    if name == "cammegh_ss2":
        from drivers import cammegh_ss2

        return {("ask", "what"): cammegh_ss2.ASKS, ("set-parameter", "name"): cammegh_ss2.SETTABLE}
    if name == "tcs_saturn":
        from drivers import tcs_saturn

        return {("ask", "what"): tcs_saturn.ASKS}
    from drivers import sas_machine

    return {("ask", "what"): ("meters", *sas_machine.ASKABLE)}


DRIVERS: MutableMapping[str, type[Driver]] = OnDemand(_CLASSES, _driver)

FAULTS: Mapping[str, tuple[str, ...]] = OnDemand(
    _CLASSES, lambda name: tuple(fault.code for fault in DRIVERS[name].faults)
)
"""By driver, the codes of the faults it may tell of."""

CHOICES: Mapping[str, Mapping[tuple[str, str], tuple[str, ...]]] = OnDemand(
    ("cammegh_ss2", "tcs_saturn", "sas_machine"), _choices
)
"""By driver, the words that it takes in a field of a command, where the field is a text: by command and field."""
