"""The fault list of a slot machine with a SAS port, and which exceptions begin and end each fault."""

from typing import Literal

from drivers.faults import Fault


def _fault(code: str, text: str, remedy: str, *, person: bool = True, severe: bool = False) -> Fault:
    clears = "by a person" if person else "by itself"
    return Fault(code, text, remedy, clears, "none", "error" if severe else "warning")  # type: ignore[arg-type]


_SEEN_PLAYING = "; the fault ends when the next game is played"
_SEEN_BILL = "; the fault ends when the next bill is accepted"
_SEEN_PRINT = "; the fault ends when the next ticket is printed"
_DOOR_CLOSED = "; the fault ends when the slot door is closed again"
MACHINE_FAULTS = (
    _fault("machine.slot_door", "the slot door is open", "close and lock the slot door", severe=True),
    _fault("machine.drop_door", "the drop door is open", "close and lock the drop door", severe=True),
    _fault("machine.card_cage", "the logic cage is open", "close and lock the logic cage", severe=True),
    _fault("machine.cashbox_door", "the cashbox door is open", "close and lock the cashbox door", severe=True),
    _fault("machine.cashbox_removed", "the cashbox is taken out", "put a cashbox in until it clicks", severe=True),
    _fault("machine.belly_door", "the belly door is open", "close and lock the belly door", severe=True),
    _fault(
        "machine.opened_while_off",
        "a door was opened while the power was off",
        f"look for traces at the door and at the seals, note who opened it{_SEEN_PLAYING}",
        severe=True,
    ),
    _fault("machine.power_lost", "the machine lost its power", "check mains and power supply", person=False),
    _fault(
        "machine.tilt", "the machine is in tilt", f"read its display, reset it with the attendant's key{_SEEN_PLAYING}"
    ),
    _fault(
        "machine.coin_in_tilt",
        "a coin is stuck in the acceptor",
        f"clear the coin path, reset with the key{_SEEN_PLAYING}",
    ),
    _fault(
        "machine.coin_out_tilt",
        "a coin is stuck at the hopper's exit or sensor",
        f"clear the hopper's exit, clean its sensor, reset with the key{_SEEN_PLAYING}",
    ),
    _fault(
        "machine.extra_coin",
        "the hopper paid one coin too many",
        f"check the hopper's brake and sensor, note the amount{_SEEN_PLAYING}",
        severe=True,
    ),
    _fault("machine.diverter", "the diverter sends coins to the wrong place", f"free the diverter{_SEEN_PLAYING}"),
    _fault(
        "machine.reverse_coin",
        "a coin moved backwards in the acceptor",
        f"look for a string, call surveillance, reset with the key{_SEEN_PLAYING}",
        severe=True,
    ),
    _fault("machine.coin_lockout", "the coin lockout fails", f"check the lockout coil and its plug{_SEEN_PLAYING}"),
    _fault("machine.hopper_empty", "the hopper is empty", "fill the hopper, or free coins that are jammed in it"),
    _fault("machine.hopper_low", "the hopper is nearly empty", "fill the hopper"),
    _fault("machine.hopper_full", "the hopper is full", "empty the hopper, check the diverter"),
    _fault("machine.cashbox_full", "the cashbox is full", "change the cashbox"),
    _fault("machine.cashbox_near_full", "the cashbox is nearly full", "change the cashbox soon"),
    _fault("machine.bill_jam", "a bill is jammed", f"open the bill acceptor, take the bill out{_SEEN_BILL}"),
    _fault(
        "machine.bill_hardware",
        "the bill acceptor failed",
        f"switch it off and on; if that fails, replace it{_SEEN_BILL}",
    ),
    _fault(
        "machine.bill_reversed",
        "a bill moved backwards in the acceptor",
        f"look for a string or tape, call surveillance{_SEEN_BILL}",
        severe=True,
    ),
    _fault(
        "machine.ram",
        "the machine's memory lost its data",
        "close the machine, take the meters from the last reading, clear the memory as described in its manual",
        severe=True,
    ),
    _fault("machine.ram_device", "a memory chip is broken", "close the machine, replace the board", severe=True),
    _fault(
        "machine.eeprom",
        "the EEPROM is broken or holds wrong data",
        "close the machine, replace the EEPROM",
        severe=True,
    ),
    _fault(
        "machine.program",
        "the checksum of the machine's program is wrong or has changed",
        "close the machine, verify the program's signature; the fault ends when the logic cage has been opened and "
        "closed",
        severe=True,
    ),
    _fault(
        "machine.battery",
        "the memory's battery is low",
        "change it with the power on; the fault ends when the logic cage has been opened and closed",
    ),
    _fault("machine.reel_tilt", "a reel does not turn correctly", f"free the reel, reset with the key{_SEEN_PLAYING}"),
    _fault("machine.reel_disconnected", "a reel is disconnected", f"check the reel's plug{_SEEN_PLAYING}"),
    _fault("machine.printer_comms", "the printer does not answer", f"check its plug and power{_SEEN_PRINT}"),
    _fault("machine.paper_out", "the printer has no paper", f"put paper in{_SEEN_PRINT}"),
    _fault("machine.paper_low", "the printer's paper is low", f"put paper in{_DOOR_CLOSED}"),
    _fault("machine.printer_ribbon", "the printer's ribbon is worn", f"replace the ribbon{_DOOR_CLOSED}"),
    _fault("machine.printer_off", "the printer is switched off", "switch the printer on"),
    _fault("machine.printer_jam", "the printer's carriage is jammed", f"clear the paper path{_SEEN_PRINT}"),
    _fault(
        "machine.plan_return",
        "the machine's plan of payments returns a smaller share of the bets than prescribed",
        "close the machine, set the approved plan; the fault ends when the machine reports a plan that returns enough",
        severe=True,
    ),
    _fault(
        "machine.not_approved",
        "the machine differs from its approval",
        "close the machine, find out who changed it, restore the values named in the text, or enter newly approved "
        "values in `approved`; the fault ends when both agree",
        severe=True,
    ),
    _fault("machine.out_of_service", "the machine took itself out of service", f"read its display{_SEEN_PLAYING}"),
)
HOST_FAULTS = (
    _fault(
        "sas.doubtful",
        "a report of the machine could not be read reliably",
        "check the machine; if it happens again, check cable, ground and adapter",
        person=False,
    ),
    _fault(
        "sas.damaged",
        "the machine's answers arrive damaged",
        "check cable, ground and adapter, 19200 baud, and that no other host polls this machine",
        person=False,
    ),
    _fault(
        "sas.busy",
        "the machine is busy and executes no request",
        "wait; if the machine remains busy, restart it",
        person=False,
    ),
    _fault(
        "sas.deaf",
        "the machine answers general polls only",
        "check in its menu that this SAS port is the reporting one; check that the adapter sends the wakeup bit (mark "
        "parity)",
        person=False,
    ),
    _fault(
        "sas.exceptions_lost",
        "the machine's queue overflowed: some of its events are lost",
        "read the machine's own event log",
        person=False,
        severe=True,
    ),
    _fault(
        "sas.meter_back",
        "a meter of the machine ran backwards",
        "close the machine, compare its meters with the last reading, find out who cleared it",
        severe=True,
    ),
    _fault(
        "sas.bets_unknown",
        "bets of the machine are missing from its jackpot",
        "compare the machine's own meters with the last reading; let two people correct the pool by a change; the "
        "fault ends after the command read-meters",
        severe=True,
    ),
    _fault(
        "sas.win_differs",
        "the machine reports a jackpot of a different amount than was sent to it",
        "compare the machine's record with the books of the pool before you pay; the fault ends when an amount is "
        "displayed again",
        severe=True,
    ),
    _fault(
        "sas.amount_stale",
        "the jackpot amount is out of date: amounts are no longer sent to the machine",
        "check that `feltd jackpots` of the pool runs and that the brokers of both sites are connected",
        person=False,
    ),
    _fault(
        "sas.progressive_silent",
        "the machine receives no jackpot amounts",
        "check that the jackpot controller sends amounts, and that its group and level match the machine's",
        person=False,
    ),
    _fault(
        "sas.host_validation",
        "the machine waits for a host to validate its tickets and prints none",
        "connect its validation port to the ticket system, or set it to secure or standard validation; the fault ends "
        "when it prints a ticket or makes its own numbers",
        severe=True,
    ),
    _fault(
        "sas.host_redemption",
        "the machine waits for a host to approve a ticket and returns every ticket",
        "connect its validation port to the ticket system, or switch redemption off in its menu; the fault ends when "
        "the machine reports that redemption is off",
        severe=True,
    ),
    _fault(
        "sas.denomination",
        "the machine's denomination is unknown: its meters are reported in credits",
        "send the machine's denomination and the code in this text to the maintainers",
    ),
)
BEGINS: dict[int, str] = {
    0x11: "machine.slot_door",
    0x13: "machine.drop_door",
    0x15: "machine.card_cage",
    0x18: "machine.power_lost",
    0x19: "machine.cashbox_door",
    0x1B: "machine.cashbox_removed",
    0x1D: "machine.belly_door",
    0x20: "machine.tilt",
    0x21: "machine.coin_in_tilt",
    0x22: "machine.coin_out_tilt",
    0x23: "machine.hopper_empty",
    0x24: "machine.extra_coin",
    0x25: "machine.diverter",
    0x27: "machine.cashbox_full",
    0x28: "machine.bill_jam",
    0x29: "machine.bill_hardware",
    0x2A: "machine.bill_reversed",
    0x2D: "machine.reverse_coin",
    0x2E: "machine.cashbox_near_full",
    0x32: "machine.ram",
    0x33: "machine.ram_device",
    0x34: "machine.eeprom",
    0x35: "machine.eeprom",
    **dict.fromkeys((0x36, 0x37, 0x38, 0x39), "machine.program"),
    0x3B: "machine.battery",
    **dict.fromkeys((0x40, 0x41, 0x42, 0x43, 0x44, 0x45), "machine.reel_tilt"),
    0x3F: "sas.host_validation",
    0x46: "machine.reel_disconnected",
    0x53: "sas.progressive_silent",
    0x57: "sas.host_validation",
    0x60: "machine.printer_comms",
    0x61: "machine.paper_out",
    0x67: "sas.host_redemption",
    0x70: "sas.exceptions_lost",
    0x74: "machine.paper_low",
    0x75: "machine.printer_off",
    0x77: "machine.printer_ribbon",
    0x78: "machine.printer_jam",
    0x79: "machine.coin_lockout",
    0x80: "machine.hopper_full",
    0x81: "machine.hopper_low",
    0x86: "machine.out_of_service",
    **dict.fromkeys((0x98, 0x99, 0x9A, 0x9B), "machine.opened_while_off"),
}
BILL_TAKEN = ("machine.bill_jam", "machine.bill_hardware", "machine.bill_reversed")
ENDS: dict[int, tuple[str, ...]] = {
    0x12: ("machine.slot_door", "machine.paper_low", "machine.printer_ribbon"),
    0x14: ("machine.drop_door",),
    0x16: ("machine.card_cage", "machine.battery", "machine.program"),
    0x17: ("machine.power_lost",),
    0x1A: ("machine.cashbox_door",),
    0x1C: ("machine.cashbox_removed", "machine.cashbox_full", "machine.cashbox_near_full"),
    0x1E: ("machine.belly_door",),
    0x3A: ("machine.ram", "machine.eeprom", "sas.meter_back"),
    0x3D: (
        "machine.printer_comms",
        "machine.paper_out",
        "machine.printer_jam",
        "machine.printer_off",
        "sas.host_validation",
    ),
    0x76: ("machine.printer_off",),
    **dict.fromkeys((0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C, 0x4D, 0x4E, 0x4F, 0x50), BILL_TAKEN),
}
PLAYS_AGAIN = (
    "machine.tilt",
    "machine.coin_in_tilt",
    "machine.coin_out_tilt",
    "machine.extra_coin",
    "machine.diverter",
    "machine.reverse_coin",
    "machine.coin_lockout",
    "machine.ram",
    "machine.ram_device",
    "machine.eeprom",
    "machine.reel_tilt",
    "machine.reel_disconnected",
    "machine.out_of_service",
    "machine.opened_while_off",
)
HOPPER = ("machine.hopper_empty", "machine.hopper_low", "machine.hopper_full")
UNRELIABLE: dict[int, Literal["cleared", "memory", "program"]] = {
    **dict.fromkeys((0x3A, 0x7A), "cleared"),
    **dict.fromkeys((0x32, 0x33, 0x34, 0x35), "memory"),
    **dict.fromkeys((0x36, 0x37, 0x38, 0x39), "program"),
}
"""Exceptions after which the meters or the program may have changed."""
NO_PLAY = (
    *("machine.ram", "machine.ram_device", "machine.eeprom", "machine.program", "sas.meter_back"),
    *("machine.not_approved", "machine.plan_return"),
)
"""While one of these faults is open, the machine cannot be enabled by a command; `close_faulty` shuts it down."""
