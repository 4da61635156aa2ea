"""Tables of the simulated slot machine: faults, meters, validations and bills. Written from the public facts of SAS."""

from simulators.devices.device import Ailment


def _stays(text: str, code: str) -> Ailment:
    return Ailment(text, (code,), "none", person=True)


TROUBLE: dict[str, tuple[int, tuple[int, ...], Ailment]] = {
    "slot_door": (0x11, (0x12,), _stays("the slot door is open", "machine.slot_door")),
    "drop_door": (0x13, (0x14,), _stays("the drop door is open", "machine.drop_door")),
    "card_cage": (0x15, (0x16,), _stays("the logic cage is open", "machine.card_cage")),
    "cashbox_door": (0x19, (0x1A,), _stays("the cashbox door is open", "machine.cashbox_door")),
    "cashbox_removed": (0x1B, (0x1C,), _stays("the cashbox is taken out", "machine.cashbox_removed")),
    "belly_door": (0x1D, (0x1E,), _stays("the belly door is open", "machine.belly_door")),
    "tilt": (0x20, (), _stays("the machine is in tilt", "machine.tilt")),
    "coin_in_tilt": (0x21, (), _stays("a coin is stuck in the acceptor", "machine.coin_in_tilt")),
    "coin_out_tilt": (0x22, (), _stays("a coin hangs in the hopper's exit", "machine.coin_out_tilt")),
    "extra_coin": (0x24, (), _stays("the hopper paid one coin too many", "machine.extra_coin")),
    "diverter": (0x25, (), _stays("the diverter sticks", "machine.diverter")),
    "reverse_coin": (0x2D, (), _stays("a coin is pulled back on a string", "machine.reverse_coin")),
    "coin_lockout": (0x79, (), _stays("the coin lockout does not release", "machine.coin_lockout")),
    "hopper_empty": (0x23, (), _stays("the hopper is empty", "machine.hopper_empty")),
    "hopper_low": (0x81, (), _stays("the hopper is nearly empty", "machine.hopper_low")),
    "hopper_full": (0x80, (), _stays("the hopper is full", "machine.hopper_full")),
    "cashbox_full": (0x27, (0x1B, 0x1C), _stays("the cashbox is full", "machine.cashbox_full")),
    "cashbox_near_full": (0x2E, (0x1B, 0x1C), _stays("the cashbox is nearly full", "machine.cashbox_near_full")),
    "bill_jam": (0x28, (0x48,), _stays("a bill is jammed", "machine.bill_jam")),
    "bill_hardware": (0x29, (0x48,), _stays("the bill acceptor failed", "machine.bill_hardware")),
    "bill_reversed": (0x2A, (0x48,), _stays("a bill is pulled back on a string", "machine.bill_reversed")),
    "ram_error": (0x32, (), _stays("the memory lost its data", "machine.ram")),
    "ram_device": (0x33, (), _stays("a memory chip is broken", "machine.ram_device")),
    "eeprom": (0x34, (), _stays("the EEPROM holds wrong data", "machine.eeprom")),
    "program": (0x37, (0x15, 0x16), _stays("the program's checksum is wrong", "machine.program")),
    "low_battery": (0x3B, (0x15, 0x16), _stays("the backup battery is low", "machine.battery")),
    "reel_tilt": (0x41, (), _stays("reel 1 is blocked", "machine.reel_tilt")),
    "reel_disconnected": (0x46, (), _stays("a reel is disconnected", "machine.reel_disconnected")),
    "printer_comms": (0x60, (0x3D,), _stays("the printer does not answer", "machine.printer_comms")),
    "paper_out": (0x61, (0x3D,), _stays("the printer has no paper", "machine.paper_out")),
    "paper_low": (0x74, (0x11, 0x12), _stays("the printer's paper is low", "machine.paper_low")),
    "printer_off": (0x75, (0x76,), _stays("the printer is switched off", "machine.printer_off")),
    "printer_ribbon": (0x77, (0x11, 0x12), _stays("the printer's ribbon is worn", "machine.printer_ribbon")),
    "printer_jam": (0x78, (0x3D,), _stays("the printer is jammed", "machine.printer_jam")),
    "out_of_service": (0x86, (), _stays("the machine is out of service", "machine.out_of_service")),
    "door_while_off": (0x99, (), _stays("the slot door was opened in the dark", "machine.opened_while_off")),
}
"""Exception of its beginning, those of its repair, and what the host must report. A test game follows each repair."""

METERS: dict[int, tuple[str, ...]] = {
    0x0F: ("cancelled_credits", "coin_in", "coin_out", "drop", "jackpot", "games_played"),
    0x10: ("cancelled_credits",),
    0x11: ("coin_in",),
    0x12: ("coin_out",),
    0x13: ("drop",),
    0x14: ("jackpot",),
    0x15: ("games_played",),
    0x16: ("games_won",),
    0x17: ("games_lost",),
    0x19: ("coin_in", "coin_out", "drop", "jackpot", "games_played"),
    0x1A: ("credits",),
    0x1C: (
        "coin_in",
        "coin_out",
        "drop",
        "jackpot",
        "games_played",
        "games_won",
        "door_opens",
        "power_resets",
    ),
    0x1E: ("bills_1", "bills_5", "bills_10", "bills_20", "bills_50", "bills_100"),
    0x20: ("bills_value",),
    0x2A: ("true_coin_in",),
    0x2B: ("true_coin_out",),
    0x31: ("bills_1",),
    0x32: ("bills_2",),
    0x33: ("bills_5",),
    0x34: ("bills_10",),
    0x35: ("bills_20",),
    0x36: ("bills_50",),
    0x37: ("bills_100",),
    0x46: ("bills_in_credits",),
}
"""Polls that read meters of four bytes."""
BY_CODE = {
    0x00: ("coin_in", 4),
    0x01: ("coin_out", 4),
    0x02: ("jackpot", 4),
    0x03: ("hand_paid", 4),
    0x04: ("cancelled_credits", 4),
    0x05: ("games_played", 4),
    0x06: ("games_won", 4),
    0x07: ("games_lost", 4),
    0x0B: ("bills_in_credits", 4),
    0x0C: ("credits", 4),
    0x0D: ("tickets_in", 5),
    0x0E: ("tickets_out", 5),
    0x0F: ("restricted_in", 5),
    0x10: ("restricted_out", 5),
    0x11: ("tickets_in_count", 4),
    0x12: ("tickets_out_count", 4),
    0x13: ("restricted_in_count", 4),
    0x14: ("restricted_out_count", 4),
}
"""Meters by the codes of polls 2F, 6F and AF, and their bytes."""
VALIDATIONS = {0x00: "tickets_out", 0x01: "restricted_out", 0x80: "tickets_in", 0x81: "restricted_in"}
NO_RECORDS = (0x02, 0x03, 0x04, 0x10, 0x20, 0x40, 0x60, 0x82)  # kinds of validation that this machine never makes
STYLES = {"standard": 0, "system": 1, "secure": 2}
BILLS = {1: (0x47, 0x00), 2: (0x4D, 0x01), 5: (0x48, 0x02), 10: (0x49, 0x03), 20: (0x4A, 0x04), 50: (0x4B, 0x06)}
"""Value of a bill to its exception and its denomination code."""
OF_TICKETS = frozenset({0x3D, 0x4C, 0x4D, 0x50, 0x7B})
OF_A_GAME = (0x2D, 0x2F, 0x52, 0x53, 0x6F, 0x83, 0xA0, 0xAF)
HOPPER = ("hopper_empty", "hopper_low", "hopper_full")
NEEDS_CLEAR = ("ram_error", "ram_device", "eeprom", "meter_back")
