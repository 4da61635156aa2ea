"""Simulated devices: the devices' own side of each wire, registered here by the driver that speaks with them."""

from simulators.alpha_sign import Sign
from simulators.bee_tek_shoe import Shoe
from simulators.billy_iii import Billy
from simulators.cammegh_ss2 import Wheel
from simulators.device import Device
from simulators.fdl_bets import BetSensors
from simulators.fdl_buttons import ButtonCounter
from simulators.fdl_console import Console
from simulators.fdl_continuous import ContinuousShuffler
from simulators.fdl_lamps import Lamps
from simulators.fdl_peek import PeekReader
from simulators.fdl_shaker import Shaker
from simulators.fdl_shuffler import Shuffler
from simulators.fdl_timer import Timer
from simulators.hid_shoe import HidShoe
from simulators.idp_dice import Recogniser
from simulators.sas_machine import Machine
from simulators.tcs_saturn import Saturn

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
    )
}
