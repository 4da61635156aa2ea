"""Tables of the SAS text: exceptions, denominations, meters, kinds of validation, and the shape of each poll."""

from collections.abc import Iterable

from msgspec import Struct

VARIABLE = -1
NO_ANSWER = -2  # only broadcasts, or a bare acknowledgement

EXCEPTIONS: dict[int, str] = {
    0x00: "nothing to report",
    0x11: "slot door opened",
    0x12: "slot door closed",
    0x13: "drop door opened",
    0x14: "drop door closed",
    0x15: "card cage opened",
    0x16: "card cage closed",
    0x17: "power applied",
    0x18: "power lost",
    0x19: "cashbox door opened",
    0x1A: "cashbox door closed",
    0x1B: "cashbox removed",
    0x1C: "cashbox installed",
    0x1D: "belly door opened",
    0x1E: "belly door closed",
    0x1F: "no activity, waiting for a player",
    0x20: "general tilt",
    0x21: "coin in tilt",
    0x22: "coin out tilt",
    0x23: "hopper empty",
    0x24: "extra coin paid",
    0x25: "diverter malfunction",
    0x27: "cashbox full",
    0x28: "bill jam",
    0x29: "bill acceptor hardware failure",
    0x2A: "reverse bill detected",
    0x2B: "bill rejected",
    0x2C: "counterfeit bill detected",
    0x2D: "reverse coin in",
    0x2E: "cashbox nearly full",
    0x31: "memory error, data recovered",
    0x32: "memory error, data not recovered",
    0x33: "memory error, bad device",
    0x34: "EEPROM data error",
    0x35: "EEPROM bad device",
    0x36: "program checksum changed",
    0x37: "program checksum bad",
    0x38: "partitioned program checksum changed",
    0x39: "partitioned program checksum bad",
    0x3A: "memory reset by the operator",
    0x3B: "backup battery low",
    0x3C: "options changed by the operator",
    0x3D: "ticket printed",
    0x3E: "handpay validated",
    0x3F: "validation id missing",
    0x40: "reel tilt",
    0x41: "reel 1 tilt",
    0x42: "reel 2 tilt",
    0x43: "reel 3 tilt",
    0x44: "reel 4 tilt",
    0x45: "reel 5 tilt",
    0x46: "reel mechanism disconnected",
    0x47: "bill of 1 accepted",
    0x48: "bill of 5 accepted",
    0x49: "bill of 10 accepted",
    0x4A: "bill of 20 accepted",
    0x4B: "bill of 50 accepted",
    0x4C: "bill of 100 accepted",
    0x4D: "bill of 2 accepted",
    0x4E: "bill of 500 accepted",
    0x4F: "bill accepted",
    0x50: "bill of 200 accepted",
    0x51: "handpay pending",
    0x52: "handpay reset",
    0x53: "no progressive broadcast for 5 s",
    0x54: "progressive win paid",
    0x55: "handpay request cancelled",
    0x56: "progressive level hit",
    0x57: "system validation requested",
    0x60: "printer does not answer",
    0x61: "printer out of paper",
    0x66: "cash out button pressed",
    0x67: "ticket inserted",
    0x68: "ticket transfer complete",
    0x69: "funds transfer complete",
    0x6A: "cash out by the host requested",
    0x6B: "cash out of a win by the host requested",
    0x6C: "registration for funds transfer requested",
    0x6D: "registration for funds transfer acknowledged",
    0x6E: "registration for funds transfer cancelled",
    0x6F: "locked for the host",
    0x70: "exception buffer overflowed",
    0x71: "change lamp on",
    0x72: "change lamp off",
    0x74: "printer paper low",
    0x75: "printer switched off",
    0x76: "printer switched on",
    0x77: "printer ribbon to be replaced",
    0x78: "printer carriage jammed",
    0x79: "coin lockout malfunction",
    0x7A: "soft meters reset",
    0x7B: "bill totals reset",
    0x7C: "bonus awarded",
    0x7E: "game started",
    0x7F: "game ended",
    0x80: "hopper full",
    0x81: "hopper low",
    0x82: "attendant menu entered",
    0x83: "attendant menu left",
    0x84: "self test entered",
    0x85: "self test left",
    0x86: "out of service",
    0x87: "player drew cards",
    0x88: "reel stopped",
    0x89: "credit wagered",
    0x8A: "game recall shown",
    0x8B: "card held",
    0x8C: "game selected",
    0x8E: "component list changed",
    0x8F: "authentication complete",
    0x98: "card cage opened while the power was off",
    0x99: "slot door opened while the power was off",
    0x9A: "cashbox door opened while the power was off",
    0x9B: "drop door opened while the power was off",
}
PRIORITY: frozenset[int] = frozenset(
    {0x3D, 0x3E, 0x3F, 0x51, 0x52, 0x55, 0x56, 0x57, 0x67, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x6F, 0x70, 0x8F}
)
"""Priority exceptions: sent before the queued ones, outside the queue."""

DENOMINATIONS: dict[int, int] = {
    0x01: 1,
    0x02: 5,
    0x03: 10,
    0x04: 25,
    0x05: 50,
    0x06: 100,
    0x07: 500,
    0x08: 1000,
    0x09: 2000,
    0x0A: 10000,
    0x0B: 20,
    0x0C: 200,
    0x0D: 250,
    0x0E: 2500,
    0x0F: 5000,
    0x17: 2,
}
"""Denomination code to minor units for one credit (assumed: one source)."""

METERS: dict[int, tuple[tuple[str, int], ...]] = {
    0x0F: tuple((name, 4) for name in ("cancelled_credits", "coin_in", "coin_out", "drop", "jackpot", "games_played")),
    0x10: (("cancelled_credits", 4),),
    0x11: (("coin_in", 4),),
    0x12: (("coin_out", 4),),
    0x13: (("drop", 4),),
    0x14: (("jackpot", 4),),
    0x15: (("games_played", 4),),
    0x16: (("games_won", 4),),
    0x17: (("games_lost", 4),),
    0x18: (("games_since_power_up", 2), ("games_since_door_closed", 2)),
    0x19: tuple((name, 4) for name in ("coin_in", "coin_out", "drop", "jackpot", "games_played")),
    0x1A: (("credits", 4),),
    0x1C: tuple(
        (name, 4)
        for name in (
            "coin_in",
            "coin_out",
            "drop",
            "jackpot",
            "games_played",
            "games_won",
            "door_opens",
            "power_resets",
        )
    ),
    0x1E: tuple((f"bills_{value}", 4) for value in (1, 5, 10, 20, 50, 100)),
    0x20: (("bills_value", 4),),
    **{
        command: ((f"bills_{value}", 4),)
        for command, value in zip(range(0x31, 0x3B), (1, 2, 5, 10, 20, 50, 100, 500, 1000, 200), strict=True)
    },
    0x2A: (("true_coin_in", 4),),
    0x2B: (("true_coin_out", 4),),
    0x46: (("bills_in_credits", 4),),
}
"""Polls that read meters: their names in order, and the bytes of BCD of each."""

METER_CODES: dict[int, tuple[str, int]] = {
    0x00: ("coin_in", 4),
    0x01: ("coin_out", 4),
    0x02: ("jackpot", 4),
    0x03: ("hand_paid_cancelled_credits", 4),
    0x04: ("cancelled_credits", 4),
    0x05: ("games_played", 4),
    0x06: ("games_won", 4),
    0x07: ("games_lost", 4),
    0x08: ("from_coin_acceptor", 4),
    0x09: ("paid_from_hopper", 4),
    0x0A: ("coins_to_drop", 4),
    0x0B: ("bills_in_credits", 4),
    0x0C: ("credits", 4),
    0x0D: ("tickets_in_cashable", 5),
    0x0E: ("tickets_out_cashable", 5),
    0x0F: ("tickets_in_restricted", 5),
    0x10: ("tickets_out_restricted", 5),
    0x11: ("tickets_in_cashable_count", 4),
    0x12: ("tickets_out_cashable_count", 4),
    0x13: ("tickets_in_restricted_count", 4),
    0x14: ("tickets_out_restricted_count", 4),
    0x15: ("tickets_in", 4),
    0x16: ("tickets_out", 4),
    0x17: ("electronic_in", 4),
    0x18: ("electronic_out", 4),
    0x19: ("restricted_played", 4),
    0x1A: ("nonrestricted_played", 4),
    0x1B: ("restricted_credits", 4),
}
"""Meters of polls 2F, 6F and AF by code: name, and bytes of BCD in 2F. Those of five bytes are in minor units."""

CANCELLED_CREDITS, NO_PROGRESSIVE = 0x80, 0x40
"""Levels of a handpay that is no progressive win."""

VALIDATIONS: dict[int, str] = {
    0x00: "cashable ticket",
    0x01: "restricted ticket",
    0x02: "cashable ticket from a transfer",
    0x03: "restricted ticket from a transfer",
    0x04: "debit ticket from a transfer",
    0x10: "cancelled credits paid by hand, receipt printed",
    0x20: "jackpot paid by hand, receipt printed",
    0x40: "cancelled credits paid by hand, no receipt",
    0x60: "jackpot paid by hand, no receipt",
    0x80: "cashable ticket redeemed",
    0x81: "restricted ticket redeemed",
    0x82: "nonrestricted ticket redeemed",
}
"""Kinds of validation records and their meters (polls 4D and 50)."""


class Shape(Struct, frozen=True):
    """`kind` R: no checksum and no data. `ask`, `answer`: bytes of data, `VARIABLE` with a length byte before them."""

    kind: str
    ask: int
    answer: int


SHAPES: dict[int, Shape] = {
    **{command: Shape("S", 0, NO_ANSWER) for command in (0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07)},
    0x0E: Shape("S", 1, NO_ANSWER),
    **{command: Shape("R", 0, sum(width for _, width in names)) for command, names in METERS.items()},
    0x1B: Shape("R", 0, 20),
    0x1F: Shape("R", 0, 20),
    0x21: Shape("S", 2, 2),
    0x2D: Shape("M", 2, 6),
    0x2F: Shape("M", VARIABLE, VARIABLE),
    0x3D: Shape("R", 0, 9),
    0x48: Shape("R", 0, 6),
    0x4C: Shape("S", 6, 6),
    0x4D: Shape("S", 1, 31),
    0x4F: Shape("R", 0, VARIABLE),
    0x50: Shape("S", 1, 10),
    0x51: Shape("R", 0, 2),
    0x52: Shape("M", 2, 18),
    0x53: Shape("M", 2, 22),
    0x54: Shape("R", 0, VARIABLE),
    0x55: Shape("R", 0, 2),
    0x56: Shape("R", 0, VARIABLE),
    0x6F: Shape("M", VARIABLE, VARIABLE),
    0x7B: Shape("S", VARIABLE, VARIABLE),
    0x7E: Shape("R", 0, 7),
    0x7F: Shape("S", 7, NO_ANSWER),
    0x80: Shape("S", 7, NO_ANSWER),
    0x83: Shape("M", 2, 6),
    0x84: Shape("R", 0, 7),
    0x85: Shape("R", 0, 7),
    0x86: Shape("S", VARIABLE, NO_ANSWER),
    0x87: Shape("R", 0, VARIABLE),
    0x94: Shape("S", 0, 1),
    0xA0: Shape("M", 2, 8),
    0xAF: Shape("M", VARIABLE, VARIABLE),
    0xB1: Shape("R", 0, 1),
    0xB3: Shape("R", 0, 1),
}


def names(codes: Iterable[int]) -> str:
    """Exception codes in words, for a fault's text."""
    return ", ".join(f"{code:02X} {EXCEPTIONS.get(code, 'unknown')}" for code in codes)
