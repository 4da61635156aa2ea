"""Driver for a slot machine with a SAS 6.x port: exceptions, meters and prizes as events.

Exceptions. The machine repeats an exception until another poll implies its acknowledgement, so nothing is lost unless
its queue of twenty overflows, which it reports. An exception is one byte without a checksum. It must be read twice in a
row; it is then made durable, and the next long poll, after which the machine forgets it, must bring an answer with a
good checksum. Only then is it reported. An exception without that confirmation is reported as doubtful. The same
applies to an exception that may equal the one before: read again after a session that ended before the report, or
repeated after a report without confirmation; and to what another machine than the last one left unreported. The two
bytes that mean busy have no checksum and count as a good answer. For some time after damage on the line an exception
must be read three times, and the answer that there is none twice.

Addresses and echoes. A machine that hears no host sends its own address (the loop break indication), and a line may
echo our polls. An exception with such a value counts only if the machine answers with a checksum. A line that echoes is
refused.

Handpays. The payment of a handpay names no amount: the oldest one is reported. If a payment, a cancelled request or an
unreadable one leaves open which one it was, the next payment is doubtful, and those after it are certain again.

Real-time mode. A machine that another host left in this mode sends an exception in place of an answer, forgets it with
any other poll, and may not answer general polls. Poll 0E 00 ends the mode. An exception that was under way when a
session ended before that may be missing, so such a machine does not come back as continuous.

Tickets. feltd reads what a machine printed and validates nothing. Poll 4D looks at a record before it is marked as
read, so that none is lost or reported twice; poll 3D serves machines without records. A machine that asks its host for
a ticket's number (exception 57), has no validation id (3F) or holds a ticket that the host must approve (67) would
refuse tickets silently: each is a fault. Only the last four digits of a ticket's number are reported, and of the
validation id only whether there is one, because they allow tickets to be forged.

An answer with a good checksum and unknown content is reported once a session. It is no damage.

Our assumptions, or from one source only: the denomination codes; hopper status 0 is well. SAS reports the end of open
doors and of the printer's switch, but not of tilts, jams and memory errors. Those end when the machine plays, takes a
bill or prints again, or when a person opened the place of the repair (as the fault's entry says); the machine repeats
what is still wrong.

Meters are absolute, in minor units (games, bills, tickets, doors and power resets: counts). Games and credits are read
every few seconds; bills, tickets and validations one after the other within a minute. A meter that runs backwards
without a cleared memory is a fault. No meters are reported until they exceed the last good ones or the memory was
cleared: a difference is never computed from a faulty meter.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from drivers.driver import (
    Chunk,
    CommandFailed,
    CommandRefused,
    DeviceRefused,
    Emit,
    Evidence,
    Link,
    LinkLost,
    Sighting,
)
from drivers.faults import Fault, Faults, Standing
from protocols.contract.commands import Ask, Command, EnableMachine, ReadMeters, ResetHandpay, ShowAmount
from protocols.contract.events import (
    MOST,
    DeviceOnline,
    Event,
    JackpotPaid,
    JackpotWon,
    MachineMeters,
    MachineReported,
    Pool,
)
from protocols.sas.frames import (
    HostDecoder,
    broadcast,
    encode,
    meters_poll,
)
from protocols.sas.messages import (
    Ack,
    Answer,
    Bill,
    Body,
    Busy,
    Clock,
    ExtendedMeters,
    Features,
    GameInfo,
    Garbage,
    GeneralPoll,
    Handpay,
    HandpayReset,
    Happened,
    Hopper,
    Identity,
    LongPoll,
    Meters,
    Nack,
    Poll,
    RealTime,
    Reply,
    SelectedMeters,
    Ticket,
    Unknown,
    Validation,
    ValidationId,
    ValidationMeters,
    ValidationStatus,
    Win,
    Wins,
)
from protocols.sas.tables import (
    CANCELLED_CREDITS,
    DENOMINATIONS,
    EXCEPTIONS,
    METER_CODES,
    METERS,
    VALIDATIONS,
    names,
)

TRIES = 3
ROLLED = 10**6  # a meter that wraps around has not advanced further than this meanwhile
COUNTED = {"games_played", "games_won", "games_lost", "door_opens", "power_resets"}  # no money
UP_AND_DOWN = "credits"
REDEMPTION, NO_TICKET = 0x20, 0xFFFF
ROUND = 24  # polls: about as many are read one by one
BILLS = {0x47: 0x31, 0x4D: 0x32, 0x48: 0x33, 0x49: 0x34, 0x4A: 0x35, 0x4B: 0x36, 0x4C: 0x37, 0x4E: 0x38, 0x50: 0x3A}
"""Which poll counts the bills that an exception tells of."""
CODES = (0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x14, 0x0B, 0x03, 0x17, 0x18)
"""Meters that no other poll reads: twelve of 6F, the first ten of 2F."""
KINDS = {
    0x00: "validated_cashable_out",
    0x01: "validated_restricted_out",
    0x10: "validated_cancelled_receipt",
    0x20: "validated_jackpot_receipt",
    0x40: "validated_cancelled",
    0x60: "validated_jackpot",
    0x80: "validated_cashable_in",
    0x81: "validated_restricted_in",
    0x82: "validated_nonrestricted_in",
}
"""Names of the meters of poll 50, by kind."""
MINOR = {*KINDS.values(), *(name for name, width in METER_CODES.values() if width == 5)}  # minor units, not credits
ENABLED = {
    0x0001: "the printer pays",
    0x0002: "handpay receipts",
    0x0004: "handpays are validated",
    0x0008: "restricted tickets",
    0x0010: "foreign restricted tickets",
    0x0020: "redemption",
    0x8000: "secure numbers",
}
SECRET = frozenset({0x3D, 0x4C, 0x4D})  # polls whose answers allow tickets to be forged
BUSY_LIMIT = 10.0
DAMAGED_LIMIT = 8  # answers in a row
SILENT_BROADCAST = 12.0
PATIENCE = 5  # polls: where they are seldom, one damaged answer is no silence
CLEAN = 3  # this many equal harmless answers in a row are no noise
CHIRPING = 0.5  # seconds in which a machine that hears no host sends at least two loop break indications
WARY = 50  # polls after damage until the line counts as good again
KEPT = 16
SEEN = 64  # exceptions that interrupted sessions may leave
LOST = 0x70
COMMAND_LIMIT = 8.0
ASK_SELDOM = 600.0  # seconds between attempts of a poll that a machine may never answer
DOUBT = 2.0  # seconds until a meter that ran backwards is read once more, or a machine is told again to close
QUEUED = 32
NOTHING = frozenset({0x00, 0x1F})
FIRST_RECORD = 10.0  # seconds until the first of the polls that are asked one by one
ASKABLE = {
    "version": 0x54,
    "game": 0x1F,
    "last-bill": 0x48,
    "features": 0xA0,
    "meters": 0x0F,
    "validation": 0x7B,
    "clock": 0x7E,
}
DATA = {0xA0: bytes(2), 0x4C: bytes(6), 0x7B: bytes(8), 0x4D: b"\xff", 0x0E: b"\0"}
"""What polls carry that ask and change nothing: the whole machine, no id, no mask, look ahead; 0E: the mode's end."""


class MachineOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`address`: 1 to 127, as set in the machine's menu. `pool`: the jackpot of its prizes.

    `group`: of the progressive, if amounts are shown. `interval`: seconds between polls. `answer`: seconds until the
    first byte of an answer, adapter included; `gap`: the pause that ends a message. `silence`: seconds without a good
    answer until the link is lost, at least PATIENCE intervals. `meters`: seconds between readings; `records`: seconds
    within which bills, tickets, validations and enabled features are all read again. `broadcast`: seconds within which
    each amount is repeated, at most 5. `close_faulty`: shut the machine down when a meter runs backwards.
    """

    address: Annotated[int, Meta(ge=1, le=127)] = 1
    pool: Pool = "machine"
    group: Annotated[int, Meta(ge=1, le=255)] = 1
    interval: Annotated[float, Meta(ge=0.04, le=2)] = 0.2
    answer: Annotated[float, Meta(ge=0.02, le=1)] = 0.1
    gap: Annotated[float, Meta(ge=0.005, le=0.5)] = 0.04
    silence: Annotated[float, Meta(ge=2, le=60)] = 5.0
    meters: Annotated[float, Meta(ge=1, le=3600)] = 5.0
    records: Annotated[float, Meta(ge=10, le=3600)] = 60.0
    broadcast: Annotated[float, Meta(ge=0.5, le=5)] = 2.0
    close_faulty: bool = False


class Hit(Struct, frozen=True):
    """A reported progressive win: what it was, which polls have shown it, and whether it was paid.

    A paid one is kept while another poll may still show it.
    """

    level: int
    amount: int
    seen: tuple[int, ...] = ()
    paid: bool = False


class Memory(Struct, frozen=True):
    """What survives a session.

    `meters`: the last good ones, in minor units by `factor`. `back`: those that ran backwards since. `cleared`: the
    machine reported a cleared memory, and no meter has shown it yet.

    `seen`: exceptions that were read and not reported, oldest first; the machine may have forgotten them. `sure`:
    places in

    `seen` of those read while a checksum was seen, with no loop break or echo after it.

    `real_time`: the machine has sent exceptions in place of answers. `mute`: it did not answer general polls.

    `owed`: polls that an exception requires and that are not answered yet. `prizes`: (level, minor units) to be paid by
    hand, oldest first. `levels`: amounts to be shown.

    `unproved`: the last answered poll, if the machine may not know that we received it. `blind`: the exception that was
    reported without that confirmation. `again`: such a one that the machine may still repeat. `doubted`: polls whose
    next answer may therefore repeat one of the `past` wins.

    `unlisted`: progressive wins that were reported and paid without poll 87: it may still list them. `unsure`: one of
    the

    `prizes` may be over, and it is open which. `undescribed`: that is so only since a handpay was not described, which
    the machine may still do.

    `games_from`: games played at the last reading; None if the present open faults began after it. `owes_close`: the
    machine was told to shut down and has not confirmed it.

    `features`: the flags of poll A0; `status`: the content of 7B, as last reported; `has_id`: whether it has a
    validation id.

    `tickets`: records of tickets may wait. `looked`: one was looked at and is not marked as read. `record`: the last
    reported one.
    """

    serial: str = ""
    factor: int | None = None
    meters: dict[str, int] = {}
    back: tuple[str, ...] = ()
    cleared: bool = False
    standing: Standing = Standing()
    seen: tuple[int, ...] = ()
    sure: tuple[int, ...] = ()
    real_time: bool = False
    mute: bool = False
    owed: tuple[int, ...] = ()
    prizes: tuple[tuple[int, int], ...] = ()
    hits: tuple[Hit, ...] = ()
    levels: dict[int, int] = {}
    unproved: int = 0
    blind: int = 0
    again: int = 0
    doubted: tuple[int, ...] = ()
    past: tuple[tuple[int, int], ...] = ()
    unlisted: tuple[tuple[int, int], ...] = ()
    unsure: bool = False
    undescribed: bool = False
    games_from: int | None = None
    owes_close: bool = False
    features: str = ""
    status: str = ""
    has_id: bool | None = None
    tickets: bool = False
    looked: bool = False
    record: str = ""


def _fault(code: str, text: str, remedy: str, *, person: bool = True, severe: bool = False) -> Fault:
    clears = "by a person" if person else "by itself"
    return Fault(code, text, remedy, clears, "none", "error" if severe else "warning")  # type: ignore[arg-type]


_SEEN_PLAYING = "; it is over when the next game is played"
_SEEN_BILL = "; it is over when the next bill is taken"
_SEEN_PRINT = "; it is over when the next ticket is printed"
_DOOR_CLOSED = "; over when the slot door was closed again"

_MACHINE_FAULTS = (
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
    _fault("machine.tilt", "the machine tilts", f"read its display, reset it with the attendant's key{_SEEN_PLAYING}"),
    _fault(
        "machine.coin_in_tilt",
        "a coin hangs in the acceptor",
        f"clear the coin path, reset with the key{_SEEN_PLAYING}",
    ),
    _fault(
        "machine.coin_out_tilt",
        "a coin hangs at the hopper's exit or sensor",
        f"clear the hopper's exit, clean its sensor, reset with the key{_SEEN_PLAYING}",
    ),
    _fault(
        "machine.extra_coin",
        "the hopper paid a coin too many",
        f"check the hopper's brake and sensor, note the amount{_SEEN_PLAYING}",
        severe=True,
    ),
    _fault(
        "machine.diverter", "coins do not go where the diverter should send them", f"free the diverter{_SEEN_PLAYING}"
    ),
    _fault(
        "machine.reverse_coin",
        "a coin moved backwards in the acceptor",
        f"look for a string, call surveillance, reset with the key{_SEEN_PLAYING}",
        severe=True,
    ),
    _fault("machine.coin_lockout", "the coin lockout fails", f"check the lockout coil and its plug{_SEEN_PLAYING}"),
    _fault("machine.hopper_empty", "the hopper is empty", "fill the hopper, or free the coins that bridge in it"),
    _fault("machine.hopper_low", "the hopper is nearly empty", "fill the hopper"),
    _fault("machine.hopper_full", "the hopper is full", "empty the hopper, check the diverter"),
    _fault("machine.cashbox_full", "the cashbox is full", "change the cashbox"),
    _fault("machine.cashbox_near_full", "the cashbox is nearly full", "change the cashbox soon"),
    _fault("machine.bill_jam", "a bill is jammed", f"open the bill acceptor, take the bill out{_SEEN_BILL}"),
    _fault("machine.bill_hardware", "the bill acceptor failed", f"switch it off and on, else replace it{_SEEN_BILL}"),
    _fault(
        "machine.bill_reversed",
        "a bill moved backwards in the acceptor",
        f"look for a string or tape, call surveillance{_SEEN_BILL}",
        severe=True,
    ),
    _fault(
        "machine.ram",
        "the machine's memory lost its data",
        "close the machine, take the meters from the last reading, clear the memory as its manual says",
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
        "the checksum of the machine's program is not as it was",
        "close the machine, verify the program's signature; over when the logic cage was opened and closed",
        severe=True,
    ),
    _fault(
        "machine.battery",
        "the memory's battery is low",
        "change it with the power on; over when the logic cage was opened and closed",
    ),
    _fault(
        "machine.reel_tilt", "a reel does not turn as it should", f"free the reel, reset with the key{_SEEN_PLAYING}"
    ),
    _fault("machine.reel_disconnected", "a reel is disconnected", f"check the reel's plug{_SEEN_PLAYING}"),
    _fault("machine.printer_comms", "the printer does not answer", f"check its plug and power{_SEEN_PRINT}"),
    _fault("machine.paper_out", "the printer has no paper", f"put paper in{_SEEN_PRINT}"),
    _fault("machine.paper_low", "the printer's paper is low", f"put paper in{_DOOR_CLOSED}"),
    _fault("machine.printer_ribbon", "the printer's ribbon is worn", f"replace the ribbon{_DOOR_CLOSED}"),
    _fault("machine.printer_off", "the printer is switched off", "switch the printer on"),
    _fault("machine.printer_jam", "the printer's carriage is jammed", f"clear the paper path{_SEEN_PRINT}"),
    _fault("machine.out_of_service", "the machine took itself out of service", f"read its display{_SEEN_PLAYING}"),
)
_HOST_FAULTS = (
    _fault(
        "sas.doubtful",
        "the machine reported something that could not be read for sure",
        "look at the machine; if it happens again check cable, ground and adapter",
        person=False,
    ),
    _fault(
        "sas.damaged",
        "the machine's answers arrive damaged",
        "check cable, ground and adapter, 19200 baud, and that no other host polls this machine",
        person=False,
    ),
    _fault("sas.busy", "the machine is busy and does nothing we ask", "wait; if it stays, restart it", person=False),
    _fault(
        "sas.deaf",
        "the machine answers general polls only",
        "check in its menu that this SAS port is the reporting one, and the adapter's wakeup bit (mark parity)",
        person=False,
    ),
    _fault(
        "sas.exceptions_lost",
        "the machine's queue overflowed: things happened that it can no longer tell",
        "look at the machine's own event log",
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
        "sas.progressive_silent",
        "the machine hears no jackpot amounts",
        "check that the jackpot controller sends amounts, and that group and level are those of the machine",
        person=False,
    ),
    _fault(
        "sas.host_validation",
        "the machine waits for a host to validate its tickets: it prints none",
        "connect its validation port to the ticket system, or set it to secure or standard validation; over when a "
        "ticket is printed or it makes the numbers itself",
        severe=True,
    ),
    _fault(
        "sas.host_redemption",
        "the machine waits for a host to approve a ticket: it gives each ticket back",
        "connect its validation port to the ticket system, or switch redemption off in its menu; over when it says "
        "that redemption is off",
        severe=True,
    ),
    _fault(
        "sas.denomination",
        "the machine's denomination is not known, its meters are told in credits",
        "send the machine's denomination and the code in this text to the maintainers",
    ),
)

_BEGINS: dict[int, str] = {
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
_BILL_TAKEN = ("machine.bill_jam", "machine.bill_hardware", "machine.bill_reversed")
_ENDS: dict[int, tuple[str, ...]] = {
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
    **dict.fromkeys((0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C, 0x4D, 0x4E, 0x4F, 0x50), _BILL_TAKEN),
}
_PLAYS_AGAIN = (
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
_HOPPER = ("machine.hopper_empty", "machine.hopper_low", "machine.hopper_full")
_NO_PLAY = ("machine.ram", "machine.ram_device", "machine.eeprom", "machine.program", "sas.meter_back")
_OWES = {0x51: 0x1B, 0x54: 0x84, 0x56: 0x87}
_CLEARED = frozenset({0x32, 0x3A, 0x7A})
_PRIZE_OVER = frozenset({0x52, 0x55, LOST})
_NOBODY = "perhaps only an address, or our own poll"
_SAY_WHICH = (0x3F, 0x57, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x41, 0x42, 0x43, 0x44, 0x45, 0x98, 0x99, 0x9A, 0x9B)
_TELL_ALWAYS = (0x3A, 0x3D, 0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C, 0x4D, 0x4E, 0x4F, 0x50)


class _Work(Struct, eq=False):
    """A long poll to send. `done`, if a command waits for it, gets the answer or None."""

    poll: LongPoll
    done: "asyncio.Future[Answer | None] | None" = None
    tries: int = 0

    def settle(self, answer: Answer | None) -> None:
        """Answer the waiting command, if there is one."""
        if self.done is not None and not self.done.done():
            self.done.set_result(answer)


def _of_ours(work: _Work, command: int) -> bool:
    """No command waits for it."""
    return work.poll.command == command and work.done is None


class SasMachine:
    """The driver."""

    name: ClassVar[str] = "sas_machine"
    title: ClassVar[str] = "slot machine with a SAS 6.x port"
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    Options: ClassVar[type[MachineOptions]] = MachineOptions
    faults: ClassVar[tuple[Fault, ...]] = (*_MACHINE_FAULTS, *_HOST_FAULTS)
    commands: ClassVar[tuple[type[Command], ...]] = (EnableMachine, ReadMeters, ResetHandpay, ShowAmount, Ask)
    tells_cards: ClassVar[bool] = False

    def __init__(self, options: MachineOptions, memory: bytes | None = None) -> None:
        """Continue from the last session."""
        self._options = options
        self._me = options.address
        self._mine = frozenset({self._me, 0x80 | self._me})  # the loop break indication, and our own poll
        self._memory = _recalled(memory) if memory else Memory()
        self._kept = self._memory  # as it was made durable last
        self._known = memory is not None
        self._faults = Faults(self.faults, self._memory.standing)
        self._decoder = HostDecoder(self._me)
        self._wire = b""
        self._queue: deque[_Work] = deque()
        self._unresolved = False  # a general poll was asked, and what it brings may not be called heard yet
        self._retrying = False  # a long poll goes out again: the machine must see the same poll twice in a row
        self._long_next = False
        self._readings: list[int] = []
        self._believed: Chunk | None = None
        self._harmless: deque[int] = deque(maxlen=CLEAN)
        self._damaged = 0
        self._garbled: Counter[int] = Counter()  # answers to a long poll that could not be read
        self._wary = 0  # polls left until a single byte is believed again to mean nothing
        self._echoes = 0
        self._answer: Answer | None = None  # the last one
        self._checked = False  # one had a checksum
        self._strange = False  # a loop break indication or an echo came in this session
        self._general = False  # general polls are answered
        self._silent = 0  # general polls in a row that were not
        self._supported: set[int] = set()
        self._unsupported: set[int] = set()
        self._suspect: int | None = None  # not answered, and not known yet whether others are
        self._unheard = False  # nor was one that was answered before
        self._undescribed = False  # a handpay that the machine does not describe was told
        self._clock_told = False
        self._strange_told: set[int] = set()  # polls whose answers were said to be unknown
        self._round: deque[LongPoll] = deque()  # polls that are asked one by one
        self._factor: int | None = self._memory.factor
        self._factor_due = float("-inf")
        self._factor_wait = self._options.meters
        self._doubt_back: dict[str, int] = {}  # meters that ran backwards once, and the poll that said so
        self._fresh: dict[str, int] = {}  # read in this round of meters, and not told yet
        self._fresh_wire = b""
        self._first: dict[str, int] = {}  # meters never read before, told when all of their round are read
        self._chirps = 0
        self._unasked = False  # it sent a loop break indication before our last poll
        self._left = 0  # how many of what is seen earlier sessions left
        self._online = False
        self._busy_since: float | None = None
        self._last_silent = float("-inf")

    # ---- the session

    async def run(self, link: Link, emit: Emit) -> None:
        """Find the machine, come online, then poll for ever."""
        self._link, self._emit = link, emit
        self._chunk = link.stamp()
        self._slot = self._alive = self._meters_due = self._broadcast_due = self._close_due = self._chunk.tick
        self._forgive_due = self._chunk.tick + ASK_SELDOM
        self._record_due = self._chunk.tick + FIRST_RECORD
        self._mode_due = self._chunk.tick
        try:
            await self._start()
            while True:
                await self._turn()
        finally:
            self._online = False
            for work in self._queue:
                work.settle(None)
            self._queue.clear()

    async def _start(self) -> None:
        """Request an exception that was under way when the last session ended, before any implied acknowledgement."""
        left = self._left = self._left_once()
        if self._memory.unproved:
            self._memory = replace(self._memory, unproved=0, doubted=(*self._memory.doubted, self._memory.unproved))
        await self._rescue()
        identity = await self._insist(0x54)
        game = await self._insist(0x1F)
        if not self._checked:
            await self._find()
        events: list[Event] = []
        serial, version, same = "", "", False
        if isinstance(identity, Identity):
            serial, version = identity.serial, identity.version
            same = self._known and serial == self._memory.serial
            if self._known and not same:
                events += self._exchanged(left)
                left = 0
            self._memory = replace(self._memory, serial=serial)
        model = f"SAS {version[:1]}.{version[1:]}" if version else "SAS"
        if isinstance(game, GameInfo):
            model = f"{model} {game.game_id} {game.paytable}".rstrip()
            events += self._denominated(game)
        lost = self._memory.real_time or self._memory.mute or LOST in self._memory.seen
        events += self._left_behind(left)
        self._believed = None
        await self._tell([DeviceOnline(same and not lost, model, serial), *events])
        self._online = True
        self._queue.append(_Work(self._poll(0xA0)))
        self._queue.append(_Work(self._poll(0x19)))

    def _poll(self, command: int) -> LongPoll:
        """A poll that changes nothing."""
        return LongPoll(self._me, command, DATA.get(command, b""))

    def _ask_once(self, command: int) -> None:
        """Queue it, unless it is queued or is known to be unanswered."""
        if command not in self._unsupported and not any(work.poll.command == command for work in self._queue):
            self._queue.append(_Work(self._poll(command)))

    def _left_once(self) -> int:
        """Exceptions of earlier sessions. An address or an echo is repeated for ever: once is enough."""
        kept: list[int] = []
        sure: list[int] = []
        for n, code in enumerate(self._memory.seen):
            if n in self._memory.sure:
                sure.append(len(kept))
            elif code in self._mine and kept[-1:] == [code] and len(kept) - 1 not in sure:
                continue
            kept.append(code)
        self._memory = replace(self._memory, seen=tuple(kept), sure=tuple(sure))
        return len(kept)

    def _exchanged(self, left: int) -> list[Event]:
        """Another machine: nothing of the old one is reported for it, nor converted with its credits."""
        old, new = self._memory.seen[:left], self._memory.seen[left:]
        sure = tuple(n - left for n in self._memory.sure if n >= left)
        in_real_time = self._memory.real_time and bool(new)  # else it was the old one that was
        self._memory = Memory(levels=self._memory.levels, seen=new, sure=sure, real_time=in_real_time)
        self._factor = None
        ended = self._faults.end(*self._faults.standing.open)
        doubt = self._faults.strike("sas.doubtful", f"{names(old)}, of the machine before") if old else []
        return [*ended, *doubt]

    def _left_behind(self, left: int) -> list[Event]:
        """Exceptions that were seen and not reported, the first `left` of them in interrupted sessions.

        The first one that the next session reads may be the last one of the session before, or a new equal one.
        """
        sure = self._memory.sure
        seen = self._take_seen()
        now = self._checksum_seen() and not self._strange
        events: list[Event] = []
        for n, code in enumerate(seen):
            known = n in sure or n >= left or (n == left - 1 and seen[left : left + 1] == (code,))
            if code in self._mine and not (now and known):
                if seen[n - 1 : n] != (code,) or n - 1 in sure:
                    events += self._doubt([code], _NOBODY)
            elif 0 < n <= left and code == seen[n - 1]:
                events += self._doubtful_again(code)
            else:
                events += self._exception(code)
        return events

    async def _rescue(self) -> None:
        """Read the exception that the machine may be repeating.

        A lost answer is requested again, because any other poll would let the machine forget it. A machine that was not
        polled for long answers only after it has seen a poll to another address.
        """
        unanswered = 0
        while unanswered < TRIES:
            match await self._exchange(GeneralPoll(self._me)):
                case Happened(code) if self._nothing(code) or self._is_loop_break(code):
                    break
                case Happened(code) if self._twice(code):
                    self._believe(code)
                    return
                case Happened(code):
                    self._reading(code)
                case RealTime(_, code):
                    await self._see_in_real_time(code)
                    break
                case _:
                    unanswered += 1
        self._readings.clear()
        await self._nobody()

    async def _insist(self, command: int) -> Body | None:
        """The body of the answer to an R poll while the machine starts; None if there is none."""
        began = self._link.stamp().tick
        tries = 0
        while tries < TRIES:
            match await self._exchange(LongPoll(self._me, command)):
                case Reply(_, _, body):
                    self._supported.add(command)
                    return body
                case Busy() if self._link.stamp().tick - began < BUSY_LIMIT:
                    pass
                case Unknown(_, heard) if heard == command:
                    return None
                case RealTime(_, code):
                    await self._see_in_real_time(code)
                    await self._nobody()
                    tries += self._link.stamp().tick - began >= BUSY_LIMIT
                case _:
                    tries += 1
                    await self._nobody()
        return None

    async def _find(self) -> None:
        """It answers no long poll: find out whether a machine is there. Raises LinkLost if not."""
        while len(self._harmless) < CLEAN:
            match await self._exchange(GeneralPoll(self._me)):
                case Happened(code) if code in NOTHING or code in self._mine:
                    await self._nobody()
                case Happened(code) if code in EXCEPTIONS and self._twice(code):
                    self._unresolved = True
                    return
                case Happened(code):
                    self._reading(code)
                case RealTime(_, code):
                    await self._see_in_real_time(code)
                    await self._nobody()
                    return
                case _:
                    pass

    async def _see_in_real_time(self, code: int) -> None:
        """During the start: the exception has a checksum, and any other poll lets the machine forget it."""
        self._memory = replace(self._memory, real_time=True)
        self._see(code)
        await self._keep()

    async def _nobody(self) -> None:
        """Implied acknowledgement of the last answer: a poll to an unused address."""
        await self._say(GeneralPoll(0))

    async def _say(self, poll: Poll) -> None:
        """Any poll may let the machine forget what it sent, so the memory is made durable before."""
        await self._keep()
        await self._link.write(encode(poll))

    # ---- one poll and its answer

    async def _exchange(self, poll: Poll) -> Answer | None:
        """The answer to `poll`, or None, in the next slot. Raises LinkLost after too much silence."""
        await self._until_slot(poll)
        self._decoder.expect(poll)
        await self._say(poll)
        self._wire = b""
        answers: list[Answer] = []
        patience = self._options.answer
        try:
            while not answers:
                async with asyncio.timeout(patience):
                    self._chunk = await self._link.read()
                self._wire += self._chunk.data
                answers = self._decoder.feed(self._chunk.data)
                patience = self._options.gap
        except TimeoutError:
            answers = self._decoder.quiet()
        answer = answers[0] if answers else None
        if answer is None and self._wire:
            answer = Garbage(self._wire)
        if isinstance(poll, LongPoll) and self._is_echo(encode(poll), answer):
            answer = Garbage(self._wire)
        asked = poll.command if isinstance(poll, LongPoll) else None
        if asked in SECRET or (isinstance(answer, Reply | Unknown) and answer.command in SECRET):
            self._wire = self._wire[:2]  # it goes into the journal
        self._judge(answer, asked)
        self._answer = answer
        return answer

    def _is_echo(self, sent: bytes, answer: Answer | None) -> bool:
        """Our poll came back, alone or before an answer. Raises DeviceRefused after three long polls in a row."""
        alone = self._wire == sent and sent[1] != 0x4C  # a machine without a validation id answers what was asked
        back = alone or (isinstance(answer, Garbage) and self._wire.startswith(sent + sent[:2]))
        self._echoes = self._echoes + 1 if back else 0
        if back:
            self._suspect_line()
        if self._echoes >= TRIES:
            raise DeviceRefused(
                "the line echoes: TX and RX are joined, or the adapter is half duplex and hears itself; "
                "check the wires to the machine, or switch the adapter's echo off"
            )
        return back

    def _judge(self, answer: Answer | None, asked: int | None) -> None:
        """Judge whether the machine is there and the line is good. `asked`: the command of the long poll."""
        now = self._link.stamp().tick
        self._wary = max(self._wary - 1, 0)
        match answer:
            case Happened(code) if code in (*self._readings[-1:], *list(self._harmless)[-1:]):  # one byte may be noise
                self._general = True
            case RealTime():
                self._general = False
            case _:
                pass
        self._checked = self._checked or isinstance(answer, Reply | Unknown | RealTime)
        match answer:
            case Reply() | Unknown() | Busy() | RealTime():
                self._alive = now
                self._damaged = 0
            case Happened(code) if code in NOTHING and (
                code not in self._mine or self._checksum_seen() or not self._unasked
            ):
                self._harmless.append(code)
                if len(self._harmless) == CLEAN:
                    self._alive = now
            case Garbage(raw) if raw != bytes((self._me,)):
                self._damaged += 1
                if not self._unreadable(asked):
                    self._wary = WARY
                self._harmless.clear()
            case Garbage():
                self._chirps += 1
                self._suspect_line()
                self._harmless.clear()
            case Happened(code) if self._is_loop_break(code) or (code == self._me and not self._checksum_seen()):
                self._chirps += 1
                self._harmless.clear()
            case _:
                self._harmless.clear()
        silence = max(self._options.silence, PATIENCE * self._options.interval)
        if now - self._alive >= silence:
            what = "no answer that can be read" if self._damaged else "no answer"
            chirps = "; it chirps, so it does not hear us: check the wire to it" if self._chirps >= TRIES else ""
            raise LinkLost(f"{what} from machine {self._me} for {silence:g} s{chirps}")

    def _unreadable(self, asked: int | None) -> bool:
        """A machine that answers other polls never answered this one well: the line is not the cause."""
        if asked is None or asked in self._supported or not self._supported:
            return False
        self._garbled[asked] += 1
        return self._garbled[asked] > TRIES

    def _is_loop_break(self, code: int) -> bool:
        """Its own address, if that is no exception: sent by a machine that hears no host."""
        return code == self._me and code not in EXCEPTIONS and code not in NOTHING

    def _checksum_seen(self) -> bool:
        """An answer with a checksum has shown that the machine hears us.

        Otherwise a byte like its address may be a loop break indication, and one like our poll an echo.
        """
        return self._checked and not self._unheard

    def _nothing(self, code: int) -> bool:
        """No exception. One wrong bit can turn an exception into this: after damage it must be read twice."""
        return code in NOTHING and (self._readings[-1:] == [code] or not (self._readings or self._wary))

    def _twice(self, code: int) -> bool:
        """Read twice in a row, after damage three times: a wrong bit may be repeated."""
        times = 2 if self._wary else 1
        return self._readings[-times:] == [code] * times

    def _reading(self, code: int) -> None:
        """To be read again. A different answer to the same poll shows that the line is bad.

        Not after the answer that there is no exception: a new one may have occurred since.
        """
        if self._readings and self._readings[-1] != code and self._readings[-1] not in NOTHING:
            self._wary = WARY
        self._readings = [*self._readings[-7:], code]

    async def _until_slot(self, poll: Poll) -> None:
        """Wait for the next slot. Unexpected bytes answer nothing, but a lone address is a loop break indication.

        If an idle machine answers with the same byte, only the time tells them apart: wait for it.
        """
        counted = isinstance(poll, GeneralPoll) and bool(self._harmless)
        alike = counted and self._me in NOTHING and not self._checksum_seen()
        interval = max(self._options.interval, CHIRPING) if alike else self._options.interval
        self._slot = max(self._slot + interval, self._link.stamp().tick)
        unasked = b""
        while (left := self._slot - self._link.stamp().tick) > 0:
            try:
                async with asyncio.timeout(left):
                    unasked += (await self._link.read()).data[:2]
            except TimeoutError:
                break
        self._unasked = set(unasked) == {self._me}
        if self._unasked:
            self._chirps += 1
            self._suspect_line()

    # ---- a turn is one poll

    async def _turn(self) -> None:
        self._plan()
        if not self._unresolved and not self._retrying and not self._memory.seen:
            await self._say_amounts()
        if not self._unresolved and (self._memory.seen or (self._queue and self._long_next)):
            self._long_next = False
            await self._ask()
        else:
            self._long_next = True
            await self._listen()
        events: list[Event] = []
        if self._damaged >= DAMAGED_LIMIT:
            events += self._faults.begin("sas.damaged")
        if self._unheard and isinstance(self._answer, Happened) and self._answer.code not in self._mine:
            events += self._faults.begin("sas.deaf")
        if self._link.stamp().tick - self._last_silent >= SILENT_BROADCAST:
            events += self._faults.end("sas.progressive_silent")
        await self._tell(events)

    def _plan(self) -> None:
        """Queue due polls: those required by an exception first, a progressive's own poll before the payment's."""
        now = self._link.stamp().tick
        if now >= self._forgive_due:
            self._forgive_due = now + ASK_SELDOM
            self._unsupported.clear()
        if now >= self._meters_due and not self._queue:
            self._meters_due = now + self._options.meters
            commands = self._meter_polls()
            if self._factor is None and now >= self._factor_due and not self._supported.isdisjoint(METERS):
                self._factor_wait = min(self._factor_wait * 2, ASK_SELDOM)
                self._factor_due = now + self._factor_wait
                commands.insert(0, 0x1F)
            if 0x4F not in self._unsupported and any(self._faults.is_open(code) for code in _HOPPER):
                commands.append(0x4F)
            self._queue.extend(_Work(self._poll(command)) for command in commands)
        self._plan_records(now)
        if (self._memory.real_time or self._memory.mute) and now >= self._mode_due:
            self._mode_due = now + DOUBT
            self._ask_once(0x0E)
        if self._memory.owes_close and not self._faults.is_open("sas.meter_back"):
            self._memory = replace(self._memory, owes_close=False)
            self._retrying = self._retrying and not _of_ours(self._queue[0], 0x01)
            self._queue = deque(work for work in self._queue if not _of_ours(work, 0x01))
        if self._memory.owes_close and self._options.close_faulty and now >= self._close_due:
            self._close_due = now + DOUBT
            if not any(work.poll.command == 0x01 for work in self._queue):
                self._queue.append(_Work(LongPoll(self._me, 0x01)))
        if not self._retrying:
            waiting = {work.poll.command for work in self._queue}
            for command in sorted(self._memory.owed, key=(0x84, 0x1B, 0x85, 0x87).index):
                if command not in waiting:
                    self._queue.appendleft(_Work(LongPoll(self._me, command)))

    def _plan_records(self, now: float) -> None:
        """A printed ticket at once, and the next of the slow readings."""
        if self._suspect is not None:
            return
        if self._memory.tickets and not self._queue and (poll := self._ticket_poll()) is not None:
            self._queue.append(_Work(poll))
        if now >= self._record_due and not self._queue:
            if not self._round:
                self._round.extend(self._records())
            if self._round:
                self._queue.append(_Work(self._round.popleft()))
            self._record_due = now + self._options.records / ROUND

    def _ticket_poll(self) -> LongPoll | None:
        """The poll for a printed ticket: the waiting record, or the last ticket of a machine without records."""
        standard = self._validation() == "standard" or 0x4D in self._unsupported
        if standard and 0x3D in self._unsupported:
            self._memory = replace(self._memory, tickets=False)
            return None
        if standard:
            return self._poll(0x3D)
        return LongPoll(self._me, 0x4D, b"\0" if self._memory.looked else b"\xff")

    def _validation(self) -> str:
        """The kind of validation, as last reported."""
        return Features(0, bytes.fromhex(self._memory.features)).validation if self._memory.features else ""

    def _records(self) -> list[LongPoll]:
        """The slow readings: bills, tickets, validations, enabled features."""
        codes = meters_poll(self._me, 0x6F, CODES)
        if 0x6F in self._unsupported:
            codes = meters_poll(self._me, 0x2F, CODES[:10])
        polls = [self._poll(command) for command in (0xA0, 0x7B, 0x4C, *([] if self._clock_told else [0x7E]))]
        polls += [codes, *(self._poll(command) for command in range(0x31, 0x38))]
        polls += [LongPoll(self._me, 0x50, bytes((kind,))) for kind in KINDS]
        return [poll for poll in polls if poll.command not in self._unsupported]

    def _meter_polls(self) -> list[int]:
        """Those that are not known to be unanswered."""
        wanted = (0x19, 0x1C, 0x1A) if 0x0F in self._unsupported else (0x0F, 0x1C, 0x1A)
        return [command for command in wanted if command not in self._unsupported]

    async def _listen(self) -> None:
        """A general poll."""
        self._unresolved = True
        answer = await self._exchange(GeneralPoll(self._me))
        self._silent = self._silent + 1 if answer is None else 0
        match answer:
            case Happened(code) if self._nothing(code):
                said = [one for one in self._readings if one not in NOTHING]
                if len(set(said)) == 1 and said[0] in EXCEPTIONS:
                    await self._tell(self._doubt(said, "then nothing"))
                await self._tell(self._faults.end("sas.exceptions_lost"))
                self._memory = replace(self._memory, again=0, mute=self._memory.mute and not self._general)
                await self._heard()
            case Happened(code) if self._is_loop_break(code):
                pass
            case Happened(code) if self._twice(code):
                self._believe(code)
                if self._faults.is_open("sas.deaf") or not self._supported:
                    if code not in self._mine:
                        self._alive = self._link.stamp().tick
                    await self._report_unconfirmed()
                    await self._heard()
            case Happened(code):
                self._reading(code)
            case RealTime(_, code):
                await self._tell_in_real_time(code)
                await self._heard()
            case None if self._silent >= TRIES and self._checksum_seen() and not self._general:
                # In real-time mode it has no answer where nothing happened: only long polls show that it is there.
                self._silent = 0
                self._unresolved = False
                self._memory = replace(self._memory, mute=True)
                if not self._queue:
                    self._queue.append(self._proof())
            case _:
                pass

    async def _heard(self) -> None:
        """What the machine sent is durable, or was nothing: it may continue."""
        self._readings.clear()
        self._unresolved = False
        await self._nobody()

    def _believe(self, code: int) -> None:
        """Read twice: made durable before the next long poll, whose answer confirms it."""
        self._see(code)
        self._believed = self._chunk
        self._readings.clear()
        self._unresolved = False

    def _see(self, code: int) -> None:
        """To be reported. Without room the last entry says that the queue overflowed, as the machine would.

        An unconfirmed address or echo is repeated for ever: once is enough.
        """
        seen, proven = self._memory.seen, self._checksum_seen()
        if len(seen) < SEEN and (code not in self._mine or proven or seen[self._left :][-1:] != (code,)):
            sure = (*self._memory.sure, len(seen)) if proven else self._memory.sure
            self._memory = replace(self._memory, seen=(*seen, code if len(seen) < SEEN - 1 else LOST), sure=sure)

    def _take_seen(self) -> tuple[int, ...]:
        """Remove and return the exceptions that were seen."""
        seen, self._memory = self._memory.seen, replace(self._memory, seen=(), sure=())
        self._left = 0
        return seen

    def _suspect_line(self) -> None:
        """A loop break indication, or our own poll: what was read before may have been one, too."""
        self._strange = True
        self._memory = replace(self._memory, sure=())

    async def _report_confirmed(self) -> None:
        if seen := self._take_seen():
            at, self._believed = self._believed or self._link.stamp(), None
            events = [event for code in seen for event in self._exception(code)]
            await self._tell(events, Chunk(bytes(seen), at.at, at.tick))
            await self._keep()

    async def _report_unconfirmed(self) -> None:
        """Without an answer that has a checksum: a possible address or echo is doubtful."""
        mine = [] if self._checksum_seen() else [code for code in self._memory.seen if code in self._mine]
        if mine:
            seen = self._take_seen()
            self._memory = replace(self._memory, seen=tuple(one for one in seen if one not in mine))
            await self._tell(self._doubt(mine, _NOBODY, once=True))
        await self._report_confirmed()

    async def _tell_in_real_time(self, code: int) -> None:
        """It has a checksum, and confirms what was sent before it."""
        await self._report_confirmed()
        self._memory = replace(self._memory, real_time=True)
        await self._tell(self._exception(code))
        await self._keep()

    async def _ask(self) -> None:
        """Send the next long poll: one that is known to be answered if an exception waits for confirmation."""
        first = self._queue[0].poll.command if self._queue else None
        # Not before what is owed: the next win would take the place of the one that it names.
        known = first in self._supported or first in self._memory.owed or not self._supported
        unproved = bool(self._memory.seen) and (first in self._unsupported or not known)
        unproved = unproved or (self._suspect is not None and first not in self._supported)
        if first is None or (unproved and not self._retrying):
            self._queue.appendleft(self._proof())
        work = self._queue[0]
        work.tries += 1
        answer = await self._exchange(work.poll)
        self._retrying = False
        match answer:
            case Busy():
                work.tries -= 1
                await self._report_confirmed()
                await self._busy()
            case RealTime(_, code):
                work.tries -= 1
                await self._tell_in_real_time(code)
                await self._nobody()
            case Reply(_, command, body):
                self._drop(work)
                self._supported.add(command)
                self._unsupported.discard(command)
                over = await self._proved_by(command)
                await self._tell([*over, *self._meant(work.poll, body)])
                work.settle(answer)
            case Unknown(_, command, data) if command == work.poll.command:
                self._drop(work)
                await self._tell([*await self._proved_by(command), *self._not_understood(command, data)])
                await self._unavailable(command)
                work.settle(answer)
            case Ack():
                self._drop(work)
                if work.poll.command == 0x01:
                    self._memory = replace(self._memory, owes_close=False)
                elif work.poll.command == 0x0E:
                    self._memory = replace(self._memory, real_time=False, mute=False)
                work.settle(answer)
            case Nack():
                self._drop(work)
                if work.poll.command not in {0x01, 0x50}:  # it is asked again; another kind of validation may be known
                    await self._unavailable(work.poll.command)
                work.settle(answer)
            case _ if work.tries >= TRIES:
                self._drop(work)
                await self._given_up(work.poll.command, ours=work.done is None)
                work.settle(None)
            case _:
                self._retrying = self._long_next = True

    async def _proved_by(self, command: int) -> list[Event]:
        """An answer with a good checksum: the machine hears long polls, which confirms what it sent before."""
        if command != self._memory.unproved:  # it heard that poll, so it knows that it was heard before
            self._memory = replace(self._memory, unproved=0)
        if self._suspect is not None and self._suspect != command:  # it answers this one, and not that one
            self._unsupported.add(self._suspect)
        self._suspect = None
        self._unheard = False
        self._busy_since = None
        self._chirps = 0
        await self._report_confirmed()
        over = ["sas.busy", "sas.deaf", "sas.damaged"]
        if not self._general:  # in real-time mode what waits to be told would have come instead
            over.append("sas.exceptions_lost")
        return [*self._faults.end(*over)]

    def _not_understood(self, command: int, data: bytes) -> list[Event]:
        """Reported once a session for each poll."""
        if command in self._strange_told:
            return []
        self._strange_told.add(command)
        what = "" if command in SECRET or not data else f" ({len(data)} bytes: {data[:32].hex(' ')})"
        text = f"an answer to poll {command:02X} that this version does not understand{what}"
        return [MachineReported(f"LP{command:02X}", text)]

    def _proof(self) -> _Work:
        """A poll that is known to be answered, if there is one."""
        if self._supported == {0xA0}:
            return _Work(self._poll(0xA0))
        known = self._supported & {0x1F, 0x54, *METERS}  # others do something, or carry more than an address
        return _Work(LongPoll(self._me, 0x1A if 0x1A in known else min(known, default=0x1A)))

    def _drop(self, work: _Work) -> None:
        """Answered, given up, or no longer wanted."""
        if work in self._queue:
            self._queue.remove(work)

    async def _given_up(self, command: int, *, ours: bool) -> None:
        """No good answer three times. Machines do not answer unsupported polls; nor does a dead line."""
        known = command in self._supported and command not in SECRET  # those come and go with the kind of validation
        was_answered = known or (not self._supported and bool(self._memory.meters))
        if was_answered and not self._damaged:
            self._unheard, self._suspect = True, None
        if self._memory.seen and self._damaged:
            await self._tell(self._doubt(self._take_seen(), "on a bad line"))
        else:
            self._memory = replace(self._memory, blind=self._memory.seen[-1] if self._memory.seen else 0)
            await self._report_unconfirmed()
        if not (self._damaged or was_answered):
            sure = not self._supported or self._unheard or self._faults.is_open("sas.deaf") or not ours
            await self._unavailable(command, silent=True, suspect=not sure)

    async def _unavailable(self, command: int, *, silent: bool = False, suspect: bool = False) -> None:
        """A poll without a result. An unanswered one (`silent`) is a `suspect` until another poll is answered."""
        if command == 0x87 and command in self._memory.owed:
            owed = tuple(0x85 if one == 0x87 else one for one in self._memory.owed)
            self._memory = replace(self._memory, owed=owed)
            await self._keep()
        elif command in self._memory.owed:
            self._no_longer_owed(command)
            self._keep_hits(self._memory.hits)
            await self._tell(self._not_described(command))
        elif suspect:
            self._suspect = command
        elif not silent:
            self._unsupported.add(command)

    def _not_described(self, command: int) -> list[Event]:
        """A handpay is repeated until its poll is answered: it is reported once until one is paid."""
        handpay = command == 0x1B
        if handpay and self._undescribed:
            return []
        if handpay:
            self._undescribed = True
            unsure = bool(self._memory.prizes)
            only = unsure and (not self._memory.unsure or self._memory.undescribed)
            self._memory = replace(self._memory, unsure=unsure, undescribed=only)
        what = "a handpay" if handpay else "a progressive win"
        return [*self._faults.strike("sas.doubtful", f"{what}, and the machine does not say which")]

    async def _busy(self) -> None:
        now = self._link.stamp().tick
        self._busy_since = now if self._busy_since is None else self._busy_since
        if now - self._busy_since >= BUSY_LIMIT:
            await self._tell(self._faults.begin("sas.busy"))

    # ---- what it means

    def _exception(self, code: int) -> list[Event]:  # noqa: C901 - what each exception code adds, in order
        """A confirmed exception. Changes the memory; the caller makes it durable."""
        text = EXCEPTIONS.get(code, "an exception that this version does not know")
        events: list[Event] = [*self._faults.end(*_ENDS.get(code, ()))]
        told = bool(events) or code in _OWES
        if code in _CLEARED:
            self._memory = replace(self._memory, cleared=True, back=())
        if code in {0x7E, 0x7F}:
            events += self._played()
        if code == 0x53:
            self._last_silent = self._link.stamp().tick
        if code == LOST and self._memory.prizes:
            self._memory = replace(self._memory, unsure=True, undescribed=False)
        if _BEGINS.get(code) in _PLAYS_AGAIN:
            self._memory = replace(self._memory, games_from=None)
        if code == 0x3C:
            for command in (0x1F, 0xA0, 0x7B):
                self._ask_once(command)
        if code in BILLS:
            self._ask_once(BILLS[code])
        if code in {0x3D, 0x3E}:
            self._memory = replace(self._memory, tickets=True)
        blind, again = code == self._memory.blind, code == self._memory.again
        self._memory = replace(self._memory, blind=0, again=code if blind and code not in _OWES else 0)
        if code in _OWES and blind:
            self._memory = replace(self._memory, doubted=(*self._memory.doubted, _OWES[code]))
        if code in _OWES:
            self._memory = replace(self._memory, owed=tuple(dict.fromkeys((*self._memory.owed, _OWES[code]))))
        if again:
            events += self._doubtful_again(code)
        elif code == 0x53:  # each five seconds, until amounts are heard
            events += self._faults.begin(_BEGINS[code])
        elif (fault := _BEGINS.get(code)) is not None:
            events += self._faults.strike(fault, text if code in _SAY_WHICH else "")
        elif code == 0x52:
            events += self._paid_by_hand()
        elif code == 0x55:
            events += self._cancelled()
        elif not told or code in _TELL_ALWAYS:
            events.append(MachineReported(f"{code:02X}", text))
        return events

    def _doubt(self, codes: Sequence[int], how: str, *, once: bool = False) -> list[Event]:
        """Reported as doubtful; its effects on open faults and prizes are applied all the same."""
        if not _CLEARED.isdisjoint(codes):
            self._memory = replace(self._memory, cleared=True)
        if not _PRIZE_OVER.isdisjoint(codes):
            self._undescribed = False
            unsure = self._memory.unsure or bool(self._memory.prizes)
            self._memory = replace(self._memory, unsure=unsure, undescribed=False)
        tell = self._faults.begin if once else self._faults.strike
        return [*tell("sas.doubtful", f"{names(codes)}, {how}")]

    def _doubtful_again(self, code: int) -> list[Event]:
        return self._doubt([code], "perhaps the same again")

    def _played(self) -> list[Event]:
        events: list[Event] = [*self._faults.end(*_PLAYS_AGAIN)]
        if not self._faults.standing.open:
            self._faults.good_cycle()
        return events

    def _meant(self, poll: LongPoll, body: Body) -> list[Event]:  # noqa: C901 - a case for each answer
        """The events of an answer. Changes the memory; the caller makes it durable."""
        command = poll.command
        match body:
            case Meters(meters):
                return self._metered(command, meters)
            case SelectedMeters(_, chosen) | ExtendedMeters(_, chosen):
                if max(chosen.values(), default=0) > MOST // (self._factor or 1):
                    return self._not_understood(command, b"")
                return self._metered(0x6F, {METER_CODES[code][0]: chosen[code] for code in CODES if code in chosen})
            case ValidationMeters(kind, count, amount) if kind in KINDS:
                return self._metered(0x5000 | kind, {KINDS[kind]: amount, f"{KINDS[kind]}_count": count})
            case Features():
                return self._featured(body)
            case ValidationStatus():
                return self._enabled(body)
            case ValidationId(machine):
                return self._identified(bool(machine))
            case Validation():
                return self._validated(body, looking=poll.data != b"\0")
            case Ticket(number, amount):
                return self._last_ticket(number, amount)
            case Clock(at):
                told, self._clock_told = self._clock_told, True
                return [] if told else [MachineReported("LP7E", f"its clock: {at}")]
            case Hopper(0):
                return [*self._faults.end(*_HOPPER)]
            case GameInfo():
                return self._denominated(body) if command == 0x1F else []
            case Handpay(_, level, amount):
                return self._handpay(level, amount, again=self._answered(command))
            case Wins(_, wins):
                owed = command in self._memory.owed
                again = self._answered(command)
                if not wins and owed:
                    return self._unnamed(0x87)
                return [event for level, amount in wins for event in self._hit(level, amount, 0x87, again=again)]
            case Win(_, level, amount):
                owed = command in self._memory.owed
                again = self._answered(command)
                if not amount and owed:
                    return self._unnamed(0x84 if command == 0x84 else 0x87)
                return self._progressive(command, level, amount, again=again)
            case _:
                return []

    def _featured(self, features: Features) -> list[Event]:
        """Reported if it changed."""
        flags = features.flags.hex()
        told = flags == self._memory.features
        self._memory = replace(self._memory, features=flags)
        redemption = "on" if features.redemption else "off"
        text = f"validation {features.validation}, redemption {redemption}, flags {flags}"
        events: list[Event] = [] if told else [MachineReported("LPA0", text)]
        if not told:  # what it left unanswered it may answer now
            self._unsupported -= SECRET
            self._ask_once(0x4C)
        if not features.redemption:
            events += self._faults.end("sas.host_redemption")
        return [*events, *self._makes_numbers()]

    def _makes_numbers(self) -> list[Event]:
        """The machine reports that it needs no host for its tickets any more."""
        style = self._validation()
        alone = style == "standard" or (style == "secure" and self._memory.has_id is True)
        return [*self._faults.end("sas.host_validation")] if alone else []

    def _enabled(self, status: ValidationStatus) -> list[Event]:
        """Reported if it changed."""
        enabled = ", ".join(word for bit, word in ENABLED.items() if status.bits & bit) or "nothing"
        days = f"tickets expire after {status.cashable_days} days, restricted ones after {status.restricted_days}"
        text = f"asset {status.asset}; enabled: {enabled}; {days}"
        told = text == self._memory.status
        self._memory = replace(self._memory, status=text)
        events: list[Event] = [] if told else [MachineReported("LP7B", text)]
        return [*events, *([] if status.bits & REDEMPTION else self._faults.end("sas.host_redemption"))]

    def _identified(self, has_id: bool) -> list[Event]:
        """Reports only whether it has an id: with the id the numbers of its tickets can be computed."""
        told = has_id == self._memory.has_id
        self._memory = replace(self._memory, has_id=has_id)
        text = "it has a validation id" if has_id else "it has no validation id"
        return [*([] if told else [MachineReported("LP4C", text)]), *self._makes_numbers()]

    def _validated(self, record: Validation, *, looking: bool) -> list[Event]:
        """A record is read, made durable, and then marked as read: none is lost or reported twice."""
        if not record.index:
            self._memory = replace(self._memory, tickets=False, looked=False)
            return []
        which = f"{record.index} {record.at} {record.ticket} {record.amount} {record.number[-4:]}"
        told = which == self._memory.record
        self._memory = replace(self._memory, record=which, looked=looking)
        kind = VALIDATIONS.get(record.kind, f"validation of kind {record.kind:02X}")
        ticket = f" {record.ticket:04}" if record.ticket != NO_TICKET else ""
        text = f"{kind}{ticket}: {record.amount}, number ending in {record.number[-4:]}, {record.at}"
        return [] if told else [MachineReported("LP4D", text)]

    def _last_ticket(self, number: str, amount: int) -> list[Event]:
        """The last ticket of a machine without records."""
        self._memory = replace(self._memory, tickets=False)
        return [MachineReported("LP3D", f"ticket: {amount}, number ending in {number[-4:]}")] if amount else []

    def _no_longer_owed(self, command: int) -> None:
        self._memory = replace(self._memory, owed=tuple(one for one in self._memory.owed if one != command))

    def _answered(self, command: int) -> bool:
        """A poll that an exception required was answered. Returns whether it may repeat an earlier report."""
        self._no_longer_owed(command)
        twins = {command, 0x85, 0x87} if command in {0x85, 0x87} else {command}
        again = not twins.isdisjoint(self._memory.doubted)
        left = tuple(one for one in self._memory.doubted if one not in twins)
        self._memory = replace(self._memory, unproved=command, doubted=left)
        return again

    def _unnamed(self, source: int) -> list[Event]:
        """A win was announced, and the poll that should name it names none: fine if another poll has named it."""
        hits = list(self._memory.hits)
        for n, hit in enumerate(hits):
            if source not in hit.seen:
                hits[n] = replace(hit, seen=(*hit.seen, source))
                self._keep_hits(hits)
                return []
        return [*self._faults.strike("sas.doubtful", "a progressive win, and the machine can no longer say which")]

    def _doubtful(self, level: int, amount: int) -> list[Event]:
        what = f"level {level}, {amount} was said again: perhaps the same win"
        return [*self._faults.strike("sas.doubtful", what)]

    def _handpay(self, level: int, amount: int, *, again: bool) -> list[Event]:
        if not amount:
            self._memory = replace(self._memory, unsure=bool(self._memory.prizes), undescribed=False)
            return [*self._faults.strike("sas.doubtful", "a handpay was pending and can no longer be read")]
        self._undescribed = False
        if self._memory.undescribed:
            self._memory = replace(self._memory, unsure=False, undescribed=False)
        if again and (level, amount) in self._memory.prizes[-1:]:
            return self._doubtful(level, amount)
        self._memory = replace(self._memory, prizes=(*self._memory.prizes, (level, amount))[-KEPT:])
        if level == CANCELLED_CREDITS:
            return [MachineReported("51", f"{amount} of cancelled credits are to be paid by hand")]
        return self._hit(level if level <= 32 else 0, amount, 0x1B, again=again)

    def _paid_by_hand(self) -> list[Event]:
        """The oldest one. If one of several may be over, none is reported, nor taken for a later one."""
        self._undescribed = False
        if not self._memory.prizes:
            return [MachineReported("52", EXCEPTIONS[0x52])]
        (level, amount), *rest = self._memory.prizes
        if rest and self._memory.unsure:
            self._memory = replace(self._memory, prizes=(), unsure=False, undescribed=False)
            return self._doubt([0x52], f"and it is not sure which of {len(rest) + 1}")
        unsure = self._memory.unsure and bool(rest)
        self._memory = replace(self._memory, prizes=tuple(rest), unsure=unsure, undescribed=False)
        if level == CANCELLED_CREDITS:
            return [MachineReported("52", f"{amount} of cancelled credits were paid by hand")]
        return self._paid(level if level <= 32 else 0, amount)

    def _cancelled(self) -> list[Event]:
        """No exception says which request it was; the one that is being read may be over."""
        self._undescribed = False
        asked = [n for n, (level, _) in enumerate(self._memory.prizes) if level == CANCELLED_CREDITS]
        being_read = 0x1B in self._memory.owed
        unsure = self._memory.unsure or len(asked) > 1 or being_read
        self._memory = replace(self._memory, unsure=unsure, undescribed=False)
        if not asked:
            return [MachineReported("55", EXCEPTIONS[0x55])]
        prizes = list(self._memory.prizes)
        _, amount = prizes.pop(asked[-1])
        self._memory = replace(self._memory, prizes=tuple(prizes), unsure=unsure and (being_read or bool(prizes)))
        return [MachineReported("55", f"{amount} of cancelled credits are no longer to be paid by hand")]

    def _progressive(self, command: int, level: int, amount: int, *, again: bool) -> list[Event]:
        if not amount or level > 32:
            return []
        source = 0x84 if command == 0x84 else 0x87
        if source == 0x84 and not self._waits(level, amount) and (level, amount) in self._memory.past:
            late = None if again else next(filter(_unpaid, self._memory.hits), None)
            if late is not None:  # the latest win is named, whichever was paid: where that one is over, one before it
                level, amount = late.level, late.amount
            elif again or not {0x85, 0x87} <= self._unsupported:  # a win of the same amount would have been listed
                return self._doubtful(level, amount)
        told = any((hit.level, hit.amount) == (level, amount) and source in hit.seen for hit in self._memory.hits)
        events = self._hit(level, amount, source, again=again)
        return [*events, *self._paid(level, amount)] if command == 0x84 and not (again and told) else events

    def _waits(self, level: int, amount: int) -> bool:
        """Whether a win of this amount was reported that poll 84 has not shown yet."""
        return any((hit.level, hit.amount) == (level, amount) and 0x84 not in hit.seen for hit in self._memory.hits)

    def _hit(self, level: int, amount: int, source: int, *, again: bool) -> list[Event]:
        """A win that another poll has shown is not repeated: 87 (or 85), then 1B or 84, show it once each."""
        hits = list(self._memory.hits)
        for n, hit in enumerate(hits):
            if (hit.level, hit.amount) == (level, amount) and source not in hit.seen:
                hits[n] = replace(hit, seen=(*hit.seen, source))
                self._keep_hits(hits)
                return []
        if source == 0x87 and (level, amount) in self._memory.unlisted:
            unlisted = list(self._memory.unlisted)
            unlisted.remove((level, amount))
            self._memory = replace(self._memory, unlisted=tuple(unlisted))
            return self._doubtful(level, amount)
        if again and (level, amount) in (*self._memory.past, *((hit.level, hit.amount) for hit in hits)):
            return self._doubtful(level, amount)
        self._memory = replace(self._memory, hits=(*hits, Hit(level, amount, (source,)))[-KEPT:])
        return [JackpotWon(self._options.pool, level, amount=amount)]

    def _paid(self, level: int, amount: int) -> list[Event]:
        """Paid: the next one of the same amount is another one."""
        hits = list(self._memory.hits)
        same = [n for n, hit in enumerate(hits) if (hit.level, hit.amount, hit.paid) == (level, amount, False)]
        if same:
            hits[same[0]] = replace(hits[same[0]], paid=True)
            self._memory = replace(self._memory, past=(*self._memory.past, (level, amount))[-KEPT:])
            self._keep_hits(hits)
        return [JackpotPaid(self._options.pool, level, amount=amount)]

    def _keep_hits(self, hits: Sequence[Hit]) -> None:
        """All except those that are over; the list of poll 87 may hold one that it has not shown."""
        over = [hit for hit in hits if self._over(hit)]
        unlisted = [(hit.level, hit.amount) for hit in over if hit.level and 0x87 not in hit.seen]
        self._memory = replace(
            self._memory,
            hits=tuple(hit for hit in hits if hit not in over),
            unlisted=(*self._memory.unlisted, *unlisted)[-KEPT:],
        )

    def _over(self, hit: Hit) -> bool:
        """Paid, and no further report is expected."""
        return hit.paid and (0x87 in hit.seen or not {0x85, 0x87} & set(self._memory.owed))

    # ---- meters

    def _denominated(self, game: GameInfo) -> list[Event]:
        """The value of a credit. Meters in another denomination cannot be compared."""
        self._factor = DENOMINATIONS.get(game.denomination)
        if self._factor != self._memory.factor:
            self._memory = replace(self._memory, factor=self._factor, meters={}, back=())
            self._fresh, self._fresh_wire, self._first = {}, b"", {}
            self._doubt_back = {}
        return [*self._faults.watch("sas.denomination", self._factor is None, f"code {game.denomination:02X}")]

    def _metered(self, command: int, raw: dict[str, int]) -> list[Event]:
        poll = 0x0F if command == 0x19 else command  # the same meters
        factor = self._factor or 1
        suffix = "" if self._factor else "_credits"
        new = {name if _unit(name, 0) else name + suffix: value * _unit(name, factor) for name, value in raw.items()}
        old = {**self._memory.meters, **self._fresh, **self._first}
        back = {name for name in new if name in old and not _forward(name, old[name], new[name], factor)}
        if back and self._memory.cleared:  # a new beginning
            self._memory = replace(self._memory, meters={}, cleared=False)
            self._fresh, self._fresh_wire, self._first = {}, b"", {}
            self._doubt_back = {}
            old, back = {}, set()
        elif self._memory.cleared and (command == 0x1C or (poll == 0x0F and 0x1C in self._unsupported)):
            self._memory = replace(self._memory, cleared=False)
        again = any(self._doubt_back.get(name) == poll for name in back)
        if back and not again and not self._memory.back:
            # Somebody may have cleared the memory, and the machine not have got round to saying so.
            self._doubt_back = {**dict.fromkeys(back, poll), **self._doubt_back}
            self._meters_due = self._link.stamp().tick + DOUBT
            if poll not in {0x0F, 0x1A, 0x1C}:
                self._round.clear()
                self._record_due = self._meters_due
            return []
        self._doubt_back = {name: by for name, by in self._doubt_back.items() if by != poll or name not in new}
        still = (set(self._memory.back) - set(new)) | back
        self._memory = replace(self._memory, back=tuple(sorted(still)))
        if back:
            detail = ", ".join(f"{name} from {old[name]} to {new[name]}" for name in sorted(back))
            told = self._faults.begin("sas.meter_back", detail)
            if told and self._options.close_faulty:
                self._memory = replace(self._memory, owes_close=True)
            return [*told]
        if still:
            return []
        events: list[Event] = [*self._faults.end("sas.meter_back")]
        if poll == 0x0F:
            events += self._faults.end("sas.doubtful")
        if (games := new.get("games_played")) is not None:
            before, self._memory = self._memory.games_from, replace(self._memory, games_from=games)
            if before is not None and games > before:
                events += self._played()
        if self._round and poll not in {0x0F, 0x1A, 0x1C}:
            self._first |= {name: value for name, value in new.items() if name not in self._memory.meters}
            new = {name: value for name, value in new.items() if name in self._memory.meters}
        elif not self._round:
            new, self._first = {**self._first, **new}, {}
        self._fresh, self._fresh_wire = {**self._fresh, **new}, self._fresh_wire + self._wire
        if any(work.poll.command in METERS for work in self._queue):
            return events  # told together with what is read next
        fresh, self._wire = self._fresh, self._fresh_wire
        self._fresh, self._fresh_wire = {}, b""
        if fresh.items() <= self._memory.meters.items():
            return events
        self._memory = replace(self._memory, meters={**self._memory.meters, **fresh})
        return [*events, MachineMeters(dict(self._memory.meters))]

    # ---- amounts

    async def _say_amounts(self) -> None:
        now = self._link.stamp().tick
        if self._memory.levels and now >= self._broadcast_due:
            self._broadcast_due = now + self._options.broadcast
            await self._say(broadcast(self._options.group, self._memory.levels))

    # ---- commands

    async def obey(self, command: Command) -> dict[str, Any]:
        """Execute it between two polls. Raises CommandRefused, CommandFailed."""
        if not self._online:
            raise CommandRefused("the machine is not online")
        match command:
            case EnableMachine(on):
                return await self._enable(on)
            case ReadMeters():
                return await self._figures()
            case ResetHandpay():
                return await self._reset_handpay()
            case ShowAmount(amount, level):
                return await self._show(level, amount)
            case Ask(what):
                return await self._tell_figure(what)
            case _:
                raise CommandRefused("this machine knows no such command")

    async def _enable(self, on: bool) -> dict[str, Any]:
        if on and (wrong := [code for code in _NO_PLAY if self._faults.is_open(code)]):
            raise CommandRefused(f"not while {', '.join(wrong)} stands: mend that first")
        match await self._wait(self._work(LongPoll(self._me, 0x02 if on else 0x01))):
            case Ack():
                return {"enabled": on}
            case _:
                raise CommandRefused("the machine refused")

    async def _figures(self) -> dict[str, Any]:
        if not (wanted := self._meter_polls()):
            raise CommandRefused("the machine answers no poll for its meters")
        works = [self._work(LongPoll(self._me, command)) for command in wanted]
        try:
            for work in works:
                await self._wait(work)
        finally:
            for work in works:
                self._drop(work)
        if self._doubt_back or self._memory.back:
            raise CommandFailed("a meter ran backwards: the figures are not to be trusted")
        return {"meters": {**self._memory.meters, **self._fresh}}

    async def _reset_handpay(self) -> dict[str, Any]:
        work = self._work(LongPoll(self._me, 0x94))
        match await self._wait(work):
            case Reply(body=HandpayReset(0)):
                return {"reset": True}
            case Reply(body=HandpayReset(2)) if work.tries > 1:
                raise CommandFailed("no handpay is pending now, but an answer was lost before: watch for jackpot.paid")
            case Reply(body=HandpayReset(2)):
                raise CommandRefused("no handpay is pending")
            case Reply():
                raise CommandRefused("the machine says that it cannot reset the handpay now")
            case _:
                raise CommandRefused("the machine refused")

    async def _show(self, level: int, amount: int) -> dict[str, Any]:
        """A broadcast is never answered: it is only known that it was sent."""
        try:
            broadcast(self._options.group, {level: amount})
        except ValueError as error:
            raise CommandRefused(f"no broadcast can carry level {level}, {amount}: {error}") from error
        self._memory = replace(self._memory, levels={**self._memory.levels, level: amount})
        await self._keep()
        self._broadcast_due = self._link.stamp().tick
        return {"group": self._options.group, "level": level, "amount": amount}

    async def _tell_figure(self, what: str) -> dict[str, Any]:
        if what == "meters":
            return await self._figures()
        if what not in ASKABLE:
            raise CommandRefused(f"no figure {what!r}; known: {', '.join(ASKABLE)}")
        match await self._wait(self._work(self._poll(ASKABLE[what]))):
            case Reply(body=Identity(version, serial)):
                return {"sas": f"{version[:1]}.{version[1:]}", "serial": serial}
            case Reply(body=Bill(country, denomination, count)):
                return {"country": country, "denomination": denomination, "count": count}
            case Reply(body=Features(game, flags) as told):
                how = {"validation": told.validation, "redemption": told.redemption}
                return {"game": game, "flags": flags.hex(), **how}
            case Reply(body=ValidationStatus() | Clock() as told):
                return msgspec.structs.asdict(told)
            case Reply(body=GameInfo() as told):
                return {**msgspec.structs.asdict(told), "credit": DENOMINATIONS.get(told.denomination)}
            case Unknown(_, command, data):
                raise CommandFailed(f"the answer to poll {command:02X} is not understood: {data[:32].hex(' ')}")
            case _:
                raise CommandRefused("the machine refused")

    def _work(self, poll: LongPoll) -> _Work:
        if len(self._queue) >= QUEUED:
            raise CommandRefused("too many commands wait already")
        work = _Work(poll, asyncio.get_running_loop().create_future())
        self._queue.append(work)
        return work

    async def _wait(self, work: _Work) -> Answer:
        assert work.done is not None
        try:
            async with asyncio.timeout(COMMAND_LIMIT):
                answer = await work.done
        except TimeoutError:
            busy = f"the machine was busy for {COMMAND_LIMIT:g} s"
            if work.tries:
                lost = "an earlier try was not answered: whether it was done is not known"
                raise CommandFailed(f"{busy}, and {lost}") from None
            raise CommandFailed(f"{busy}: nothing was done") from None
        finally:
            self._drop(work)
        if answer is None:
            raise CommandFailed("the machine did not answer: whether it did it is not known")
        return answer

    # ---- telling

    async def _tell(self, events: Sequence[Event], chunk: Chunk | None = None) -> None:
        """Durable when it returns, with the memory."""
        if events:
            seen = chunk or (self._chunk if self._wire else self._link.stamp())
            wire = seen.data if chunk is not None else self._wire
            await self._commit([Sighting(event, wire, seen) for event in events])

    async def _keep(self) -> None:
        """Durable when it returns, if the memory changed."""
        if replace(self._memory, standing=self._faults.standing) != self._kept:
            await self._commit([])

    async def _commit(self, sightings: Sequence[Sighting]) -> None:
        memory = self._memory = replace(self._memory, standing=self._faults.standing)
        await self._emit(sightings, msgspec.json.encode(memory))
        self._kept = memory


def _recalled(memory: bytes) -> Memory:
    """The memory of a session. An earlier version stored at most one exception: a number, or null."""
    left = msgspec.json.decode(memory, type=dict[str, Any])
    if not isinstance(seen := left.get("seen"), list):
        left["seen"] = [] if seen is None else [seen]
    return msgspec.convert(left, Memory, str_keys=True)


def _unpaid(hit: Hit) -> bool:
    """Reported, and neither the machine nor a person reported its payment."""
    return not hit.paid and not {0x84, 0x1B} & set(hit.seen)


def _unit(name: str, factor: int) -> int:
    """The value of one unit of a meter: `factor` minor units for a credit, one for counts and minor units."""
    counted = name in COUNTED or name.endswith("_count") or (name.startswith("bills_") and name[6:].isdecimal())
    return 1 if counted or name in MINOR else factor


def _forward(name: str, old: int, new: int, factor: int) -> bool:
    """Not backwards; a meter of eight or ten digits may wrap around."""
    unit = _unit(name, factor)
    rollover = 10 ** (10 if name in MINOR else 8)
    return name.startswith(UP_AND_DOWN) or new >= old or (new - old) % (rollover * unit) <= ROLLED * unit
