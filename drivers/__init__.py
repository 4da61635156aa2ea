"""The drivers: one file each, registered here."""

from collections.abc import Mapping

from drivers import cammegh_ss2, sas_machine, tcs_saturn
from drivers.alpha_sign import AlphaSign
from drivers.bee_tek_shoe import BeeTekShoe
from drivers.bet_terminals import BetTerminals
from drivers.billy_iii import BillyIII
from drivers.cammegh_ss2 import CammeghSS2
from drivers.driver import Driver
from drivers.fdl_bets import FdlBets
from drivers.fdl_buttons import FdlButtons
from drivers.fdl_console import FdlConsole
from drivers.fdl_continuous import FdlContinuous
from drivers.fdl_lamps import FdlLamps
from drivers.fdl_peek import FdlPeek
from drivers.fdl_shaker import FdlShaker
from drivers.fdl_shuffler import FdlShuffler
from drivers.fdl_timer import FdlTimer
from drivers.hid_shoe import HidShoe
from drivers.idp_dice import IdpDice
from drivers.sas_machine import SasMachine
from drivers.tcs_saturn import TcsSaturn

DRIVERS: dict[str, type[Driver]] = {
    driver.name: driver
    for driver in (
        CammeghSS2,
        BeeTekShoe,
        HidShoe,
        FdlContinuous,
        FdlShuffler,
        FdlShaker,
        FdlConsole,
        FdlBets,
        FdlLamps,
        FdlPeek,
        FdlTimer,
        FdlButtons,
        AlphaSign,
        TcsSaturn,
        SasMachine,
        BillyIII,
        IdpDice,
        BetTerminals,
    )
}

FAULTS: dict[str, tuple[str, ...]] = {
    name: tuple(fault.code for fault in kind.faults) for name, kind in DRIVERS.items()
}
"""By driver, the codes of the faults it may tell of."""

CHOICES: Mapping[str, Mapping[tuple[str, str], tuple[str, ...]]] = {
    "cammegh_ss2": {("ask", "what"): cammegh_ss2.ASKS, ("set-parameter", "name"): cammegh_ss2.SETTABLE},
    "tcs_saturn": {("ask", "what"): tcs_saturn.ASKS},
    "sas_machine": {("ask", "what"): ("meters", *sas_machine.ASKABLE)},
}
"""By driver, the words that it takes in a field of a command, where the field is a text: by command and field."""
