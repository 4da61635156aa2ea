"""Simulated devices: the devices' own side of each wire, registered here by the driver that speaks with them."""

from simulators.devices.alpha_sign import Sign
from simulators.devices.bee_tek_shoe import Shoe
from simulators.devices.bet_terminals import BetTerminals
from simulators.devices.billy_iii import Billy
from simulators.devices.cammegh_ss2 import Wheel
from simulators.devices.device import Device
from simulators.devices.fdl_bets import BetSensors
from simulators.devices.fdl_buttons import ButtonCounter
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_continuous import ContinuousShuffler
from simulators.devices.fdl_lamps import Lamps
from simulators.devices.fdl_peek import PeekReader
from simulators.devices.fdl_shaker import Shaker
from simulators.devices.fdl_shuffler import Shuffler
from simulators.devices.fdl_timer import Timer
from simulators.devices.hid_shoe import HidShoe
from simulators.devices.idp_dice import Recogniser
from simulators.devices.sas_machine import Machine
from simulators.devices.tcs_saturn import Saturn

SIMULATORS: dict[str, type[Device]] = {
    device.name: device
    for device in (
        Wheel,
        Shoe,
        HidShoe,
        ContinuousShuffler,
        Shuffler,
        Shaker,
        Console,
        BetSensors,
        Lamps,
        PeekReader,
        Timer,
        ButtonCounter,
        Sign,
        Saturn,
        Machine,
        Billy,
        Recogniser,
        BetTerminals,
    )
}
