"""Simulated devices: the devices' own side of each wire, registered here by the driver that speaks with them."""

from simulators.bee_tek_shoe import Shoe
from simulators.cammegh_ss2 import Wheel
from simulators.device import Device
from simulators.fdl_console import Console
from simulators.fdl_shaker import Shaker

SIMULATORS: dict[str, type[Device]] = {device.name: device for device in (Wheel, Shoe, Shaker, Console)}
