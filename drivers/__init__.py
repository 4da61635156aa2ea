"""The drivers: one file each, registered here."""

from drivers.cammegh_ss2 import CammeghSS2
from drivers.driver import Driver

DRIVERS: dict[str, type[Driver]] = {
    CammeghSS2.name: CammeghSS2,
}
