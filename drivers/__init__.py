"""The drivers: one file each, registered here."""

from drivers.bee_tek_shoe import BeeTekShoe
from drivers.cammegh_ss2 import CammeghSS2
from drivers.driver import Driver
from drivers.fdl_console import FdlConsole
from drivers.fdl_shaker import FdlShaker

DRIVERS: dict[str, type[Driver]] = {driver.name: driver for driver in (CammeghSS2, BeeTekShoe, FdlShaker, FdlConsole)}
