"""Turns the answers of a slot machine into events: exceptions, handpays and prizes, tickets, meters.

The base of the driver: it keeps the machine's answers and open requests, and sends nothing itself.

Handpays. The payment of a handpay names no amount: the oldest one is reported. If a payment, a cancelled request or an
unreadable one leaves open which one it was, the next payment is doubtful, and those after it are certain again.

Tickets. feltd reads what a machine printed and validates nothing. Poll 4D reads a record before it is marked as read,
so that none is lost or reported twice; poll 3D serves machines without records. A machine that asks its host for
a ticket's number (exception 57), has no validation id (3F) or holds a ticket that the host must approve (67) would
refuse tickets without a report: each is a fault. Only the last four digits of a ticket's number are reported, and of
the validation id only whether there is one, because they allow tickets to be forged.

An answer with a good checksum and unknown content is reported once a session. It is no damage.

Assumed, or from one source only: the denomination codes, that hopper status 0 is no fault, that a program's signature
has two bytes, and that a hopper's level may be missing. SAS reports the end of open doors and of the printer's switch,
but not of tilts, jams and memory errors. Those end when the machine plays, takes a bill or prints again, or when a
person opened the place of the repair (as the fault's entry states); the machine repeats what is still wrong.

Meters are absolute, in minor units (games, bills, tickets, doors and power resets: counts). Games and credits are read
every few seconds; bills, tickets and validations one after the other within a minute. A meter that runs backwards
without a cleared memory is a fault. No meters are reported until they reach the last good ones or the memory was
cleared: a difference is never computed from a faulty meter.
"""

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from drivers.driver import Evidence, Link, WireDecoder
from drivers.faults import Faults
from drivers.sas_machine_faults import (
    BEGINS,
    ENDS,
    HOPPER,
    HOST_FAULTS,
    MACHINE_FAULTS,
    PLAYS_AGAIN,
    UNRELIABLE,
)
from drivers.sas_machine_memory import Hit, MachineOptions, Memory, recalled
from protocols.contract.events import (
    MOST,
    Event,
    JackpotContributed,
    JackpotPaid,
    JackpotWon,
    MachineIdentified,
    MachineMeters,
    MachineReported,
    MachineUnreliable,
    Told,
)
from protocols.sas.messages import (
    Answer,
    Body,
    Clock,
    ExtendedMeters,
    Features,
    GameInfo,
    GameMeters,
    Handpay,
    Hopper,
    LongPoll,
    Meters,
    SelectedMeters,
    Signature,
    Ticket,
    Validation,
    ValidationId,
    ValidationMeters,
    ValidationStatus,
    Win,
    Wins,
)
from protocols.sas.tables import CANCELLED_CREDITS, DENOMINATIONS, EXCEPTIONS, METER_CODES, METERS, VALIDATIONS, names

# A meter that wraps around has not advanced further than this meanwhile: bets, and prizes with a jackpot among them.
ROLLED, ROLLED_BY_PRIZES = 10**6, 10**7
PRIZES = ("coin_out", "jackpot", "hand_paid")
WRAPS = 10**8  # credits at which coin in begins at zero again
COUNTED = {"games_played", "games_won", "games_lost", "door_opens", "power_resets"}  # no money
UP_AND_DOWN = "credits"
REDEMPTION, NO_TICKET = 0x20, 0xFFFF
BILLS = {0x47: 0x31, 0x4D: 0x32, 0x48: 0x33, 0x49: 0x34, 0x4A: 0x35, 0x4B: 0x36, 0x4C: 0x37, 0x4E: 0x38, 0x50: 0x3A}
"""The poll that counts the bills of an exception."""
CODES = (0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x14, 0x0B, 0x03, 0x17, 0x18)
"""Meters that no other poll reads: twelve of 6F or its twin AF, the first ten of 2F."""
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
KEPT = 16
SENT = 16  # amounts of a level: those of the last seconds, of which the machine may report one
LOST = 0x70
DOUBT = 2.0  # seconds until a doubted meter is read again, or closing or the end of real-time mode is sent again
DATA = {0xA0: bytes(2), 0x4C: bytes(6), 0x7B: bytes(8), 0x4D: b"\xff", 0x0E: b"\0"}
"""The data of polls without effects: the whole machine, no id, no mask, look ahead; 0E ends real-time mode."""

_OWES = {0x51: 0x1B, 0x54: 0x84, 0x56: 0x87}
_CLEARED = frozenset({0x32, 0x3A, 0x7A})
_PRIZE_OVER = frozenset({0x52, 0x55, LOST})
_SAY_WHICH = (0x3F, 0x57, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x41, 0x42, 0x43, 0x44, 0x45, 0x98, 0x99, 0x9A, 0x9B)
_TELL_ALWAYS = (0x3A, 0x3D, 0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C, 0x4D, 0x4E, 0x4F, 0x50)


class Work(Struct, eq=False):
    """A long poll to send. `done`, if a command waits for it, gets the answer or None."""

    poll: LongPoll
    done: "asyncio.Future[Answer | None] | None" = None
    tries: int = 0

    def of_ours(self, command: int) -> bool:
        """Whether it is this poll, without a command that waits for it."""
        return self.poll.command == command and self.done is None

    def settle(self, answer: Answer | None) -> None:
        """Answer the waiting command, if there is one."""
        if self.done is not None and not self.done.done():
            self.done.set_result(answer)


class MachineReader:
    """Keeps what the machine reported so far, and derives events from its answers."""

    decoder: ClassVar[WireDecoder | None] = None
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    caveat: ClassVar[str] = "the ninth bit is untested on hardware"
    emits: ClassVar[tuple[Told, ...]] = (
        JackpotContributed,
        JackpotPaid,
        JackpotWon,
        MachineIdentified,
        MachineMeters,
        MachineReported,
        MachineUnreliable,
    )
    _link: Link
    _meters_due: float
    _record_due: float

    def __init__(self, options: MachineOptions, memory: bytes | None = None) -> None:
        """Continue from what a session stored."""
        self._options = options
        self._me = options.address
        self._memory = recalled(memory) if memory else Memory()
        self._faults = Faults((*MACHINE_FAULTS, *HOST_FAULTS), self._memory.standing)
        self._wire = b""
        self._queue: deque[Work] = deque()
        self._unsupported: set[int] = set()
        self._undescribed = False  # a handpay that the machine does not describe was reported
        self._clock_told = False
        self._strange_told: set[int] = set()  # polls whose unknown answers were reported
        self._round: deque[LongPoll] = deque()  # polls that are asked one by one
        self._factor: int | None = self._memory.factor
        self._doubt_back: dict[str, int] = {}  # meters that ran backwards once, each with its poll
        self._fresh: dict[str, int] = {}  # read in this round of meters, and not reported yet
        self._fresh_wire = b""
        self._first: dict[str, int] = {}  # meters read for the first time, reported when all of their round are read
        self._last_silent = float("-inf")
        self._coin_in: dict[int, int] = {}  # the last reading, by game; in this session
        self._confirmed: dict[int, int] = {}  # the last reading that a later one has confirmed
        self._began = 0.0
        self._renewed: dict[int, float] = {}  # when an amount was sent again, by level; in this session

    # ---- interpretation

    def _exception(self, code: int) -> list[Event]:  # noqa: C901 - what each exception code adds, in order
        """A confirmed exception. Changes the memory; the caller makes it durable."""
        text = EXCEPTIONS.get(code, "an unknown exception")
        events: list[Event] = [*self._faults.end(*ENDS.get(code, ()))]
        told = bool(events) or code in _OWES
        if code in _CLEARED:
            self._memory = replace(self._memory, cleared=True, back=())
            self._count_no_step(text)
        if (why := UNRELIABLE.get(code)) is not None:
            events.append(MachineUnreliable(why=why, text=text))
        if code in {0x7E, 0x7F}:
            events += self._played()
        if (code == 0x7F and self._options.feeds) or code in {0x51, 0x52}:  # a handpay locks or frees it
            self._meters_due = self._link.stamp().tick
        if code == 0x53:
            self._last_silent = self._link.stamp().tick
        if code == LOST and self._memory.prizes:
            self._memory = replace(self._memory, unsure=True, undescribed=False)
        if BEGINS.get(code) in PLAYS_AGAIN:
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
        elif code == 0x53:  # each five seconds, until the machine receives amounts
            events += self._faults.begin(BEGINS[code])
        elif (fault := BEGINS.get(code)) is not None:
            events += self._faults.strike(fault, text if code in _SAY_WHICH else "")
        elif code == 0x52:
            events += self._paid_by_hand()
        elif code == 0x55:
            events += self._cancelled()
        elif not told or code in _TELL_ALWAYS:
            events.append(MachineReported(f"{code:02X}", text))
        return events

    def _doubt(self, codes: Sequence[int], how: str, *, once: bool = False) -> list[Event]:
        """Report an exception as doubtful; its effects on meters and prizes apply all the same."""
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
        events: list[Event] = [*self._faults.end(*PLAYS_AGAIN)]
        if not self._faults.standing.open:
            self._faults.good_cycle()
        return events

    def _meant(self, poll: LongPoll, body: Body) -> list[Event]:  # noqa: C901 - a case for each answer
        """The events of an answer. Changes the memory; the caller makes it durable."""
        command = poll.command
        match body:
            case Meters(meters):
                self._read_coin_in(0, meters.get("coin_in"))
                return self._metered(command, meters)
            case GameMeters(game, coin_in):
                self._read_coin_in(game, coin_in)
                return self._contributions()
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
                return [*self._faults.end(*HOPPER)]
            case GameInfo():
                return [*self._denominated(body), *self._described(body)] if command == 0x1F else []
            case Signature():
                return self._described(None, body)
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
        if not told:  # it may now answer polls that it left unanswered
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
        return [*self._faults.strike("sas.doubtful", "a progressive win whose level the machine can no longer report")]

    def _doubtful(self, level: int, amount: int) -> list[Event]:
        what = f"level {level}, {amount} was reported again: perhaps the same win"
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
        """The payment of the oldest handpay. If it is open which of several was paid, no amount is reported."""
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
        """A cancelled request. The exception does not name it; the request that is being read may be over."""
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
            if late is not None:  # poll 84 names the latest win: if that is over, an earlier one was paid
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
        sent = self._memory.sent.get(level, ())
        shown = amount if amount in sent else sent[-1] if sent else 0
        if not level:
            return [JackpotWon(self._options.pool, level, amount=amount)]
        won = level if self._options.stale else 0  # the pool sends another amount for it
        left = {one: told for one, told in self._memory.levels.items() if one != won}
        self._memory = replace(self._memory, levels=left, sent={**self._memory.sent, level: ()})
        win = JackpotWon(self._options.pool_of(level), level, seat=1, amount=amount, shown=shown)  # it has one seat
        if shown in (0, amount):
            return [win]
        return [win, *self._faults.strike("sas.win_differs", f"level {level}: {amount}, and {shown} was sent last")]

    def _paid(self, level: int, amount: int) -> list[Event]:
        """Mark a win as paid: the next one of the same amount is another win."""
        hits = list(self._memory.hits)
        same = [n for n, hit in enumerate(hits) if (hit.level, hit.amount, hit.paid) == (level, amount, False)]
        if same:
            hits[same[0]] = replace(hits[same[0]], paid=True)
            self._memory = replace(self._memory, past=(*self._memory.past, (level, amount))[-KEPT:])
            self._keep_hits(hits)
        return [JackpotPaid(self._options.pool_of(level), level, amount=amount)]

    def _keep_hits(self, hits: Sequence[Hit]) -> None:
        """Keep the hits that are not over; poll 87 may still list one that it has not shown."""
        over = [hit for hit in hits if self._over(hit)]
        unlisted = [(hit.level, hit.amount) for hit in over if hit.level and 0x87 not in hit.seen]
        self._memory = replace(
            self._memory,
            hits=tuple(hit for hit in hits if hit not in over),
            unlisted=(*self._memory.unlisted, *unlisted)[-KEPT:],
        )

    def _over(self, hit: Hit) -> bool:
        """Whether it is paid, and no further report is expected."""
        return hit.paid and (0x87 in hit.seen or not {0x85, 0x87} & set(self._memory.owed))

    # ---- meters

    def _denominated(self, game: GameInfo) -> list[Event]:
        """The value of a credit. Meters in another denomination cannot be compared."""
        known, self._factor = self._factor, DENOMINATIONS.get(game.denomination)
        unknown = self._factor is None or self._faults.is_open("sas.denomination")
        if unknown or known not in (None, self._factor):
            self._count_no_step("another denomination")
        if self._factor != self._memory.factor:
            self._memory = replace(self._memory, factor=self._factor, meters={}, back=())
            self._fresh, self._fresh_wire, self._first = {}, b"", {}
            self._doubt_back = {}
        unknown_code = self._faults.watch("sas.denomination", self._factor is None, f"code {game.denomination:02X}")
        if not self._options.least_return or not re.fullmatch("[0-9]{4}", game.percent):
            return [*unknown_code]
        low = int(game.percent) < 100 * self._options.least_return
        percent = f"{game.percent[:2].lstrip('0') or 0}.{game.percent[2:]}% with {game.paytable}"
        return [*unknown_code, *self._faults.watch("machine.plan_return", low, percent)]

    def _described(self, game: GameInfo | None, signature: Body | None = None) -> list[Event]:
        """The machine's characteristics, if they changed."""
        now = replace(self._memory.identified or MachineIdentified(), serial=self._memory.serial)
        if isinstance(signature, Signature):
            now = replace(now, signature=f"{signature.value:04x}")
        if game is not None:
            credit = DENOMINATIONS.get(game.denomination, 0)
            now = replace(
                now,
                game=f"{game.game_id} {game.additional_id}".strip(),
                paytable=game.paytable,
                return_bp=int(game.percent) if re.fullmatch("[0-9]{4}", game.percent) else 0,
                credit=credit,
                max_bet=credit * game.max_bet,
                options=f"{game.options:04x}",
            )
        approved = dict(one.split("=", 1) for one in self._options.approved)
        wrong = {name: value for name, value in approved.items() if str(getattr(now, name)) != value}
        now = replace(now, differs=tuple(wrong))
        detail = ", ".join(f"{name} {getattr(now, name) or '-'}, approved {value}" for name, value in wrong.items())
        events: list[Event] = [] if now == self._memory.identified else [now]
        self._memory = replace(self._memory, identified=now)
        return [*events, *self._faults.watch("machine.not_approved", bool(wrong), detail)]

    def _metered(self, command: int, raw: dict[str, int]) -> list[Event]:
        poll = 0x0F if command == 0x19 else command  # the same meters
        factor = self._factor or 1
        suffix = "" if self._factor else "_credits"
        new = {name if _unit(name, 0) else name + suffix: value * _unit(name, factor) for name, value in raw.items()}
        old = {**self._memory.meters, **self._fresh, **self._first}
        back = {name for name in new if name in old and not _forward(name, old[name], new[name], factor)}
        if back and self._memory.cleared:  # a new beginning
            self._memory = replace(self._memory, meters={}, cleared=False)
            self._count_no_step("the memory was cleared")
            self._fresh, self._fresh_wire, self._first = {}, b"", {}
            self._doubt_back = {}
            old, back = {}, set()
        elif self._memory.cleared and (command == 0x1C or (poll == 0x0F and 0x1C in self._unsupported)):
            self._memory = replace(self._memory, cleared=False)
        again = any(self._doubt_back.get(name) == poll for name in back)
        if back and not again and not self._memory.back:
            # The memory may have been cleared, and the machine may not have reported it yet.
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
            self._count_no_step("a meter ran backwards")
            return [*told, *([MachineUnreliable(why="backwards", text=detail)] if told else [])]
        if still:
            return []
        events: list[Event] = [*self._faults.end("sas.meter_back")]
        events += self._contributions()
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
            return events  # reported together with the next readings
        fresh, self._wire = self._fresh, self._fresh_wire
        self._fresh, self._fresh_wire = {}, b""
        if fresh.items() <= self._memory.meters.items():
            return events
        self._memory = replace(self._memory, meters={**self._memory.meters, **fresh})
        return [*events, MachineMeters(dict(self._memory.meters))]

    # ---- amounts

    def _renew(self, level: int, amount: int) -> list[Event]:
        """The amount of a level was sent. Changes the memory; the caller makes it durable."""
        sent = self._memory.sent.get(level, ())
        sent = sent if sent[-1:] == (amount,) else (*sent, amount)[-SENT:]
        levels, all_sent = {**self._memory.levels, level: amount}, {**self._memory.sent, level: sent}
        self._memory = replace(self._memory, levels=levels, sent=all_sent)
        self._renewed[level] = self._link.stamp().tick
        return [*self._faults.end("sas.win_differs")]

    def _is_stale(self, level: int) -> bool:
        """Whether the amount was not sent again in time: the pool may have another amount now."""
        renewed = self._renewed.get(level, self._began)
        return bool(self._options.stale) and self._link.stamp().tick - renewed >= self._options.stale

    def _stale_amounts(self) -> list[Event]:
        stale = ", ".join(f"level {level}" for level in self._memory.levels if self._is_stale(level))
        return [*self._faults.watch("sas.amount_stale", bool(stale), stale)]

    # ---- contributions

    def _read_coin_in(self, game: int, credits_: int | None) -> None:
        """Keep a reading. It confirms the reading before if it is not lower, and at most `jump` credits higher."""
        if credits_ is None or game not in (self._options.games or (0,)):
            return
        before = self._coin_in.get(game)
        self._coin_in[game] = credits_
        if before is not None and (credits_ - before) % WRAPS <= self._options.jump:
            self._confirmed[game] = before
        else:
            self._confirmed.pop(game, None)

    def _count_no_step(self, why: str) -> None:
        """Count no bets up to the next reading: coin in is not comparable with the reading before."""
        self._memory = replace(self._memory, uncounted=dict.fromkeys(self._memory.counted, why))
        self._coin_in, self._confirmed = {}, {}

    def _contributions(self) -> list[Event]:
        """The bets since the last contribution. Changes the memory; the caller makes both durable."""
        if not self._options.feeds:
            self._memory = replace(self._memory, counted={}, uncounted={})
            return []
        events: list[Event] = []
        counted, uncounted = dict(self._memory.counted), dict(self._memory.uncounted)
        for game, now in self._confirmed.items():
            before = counted.setdefault(game, now)
            if self._factor is None:
                continue
            step = (now - before) % WRAPS
            why = uncounted.pop(game, "a step that no play can make" if step > self._options.jump else "")
            if step and why:
                which = f"game {game}: " if game else ""
                events += self._faults.strike("sas.bets_unknown", f"{which}coin in from {before} to {now}: {why}")
            elif step:
                events += [JackpotContributed(pool, step * self._factor) for pool in self._options.feeds]
            counted[game] = now
        self._memory = replace(self._memory, counted=counted, uncounted=uncounted)
        return events

    def _poll(self, command: int) -> LongPoll:
        """A poll that changes nothing."""
        data = self._options.signature_seed.to_bytes(2, "little") if command == 0x21 else DATA.get(command, b"")
        return LongPoll(self._me, command, data)

    def _ask_once(self, command: int) -> None:
        """Queue a poll, unless it is queued already or the machine is known not to answer it."""
        if command not in self._unsupported and not any(work.poll.command == command for work in self._queue):
            self._queue.append(Work(self._poll(command)))

    def _validation(self) -> str:
        """The kind of validation, as last reported."""
        return Features(0, bytes.fromhex(self._memory.features)).validation if self._memory.features else ""

    def _not_understood(self, command: int, data: bytes) -> list[Event]:
        """Reported once a session for each poll."""
        if command in self._strange_told:
            return []
        self._strange_told.add(command)
        what = "" if command in SECRET or not data else f" ({len(data)} bytes: {data[:32].hex(' ')})"
        text = f"an answer to poll {command:02X} that this version cannot decode{what}"
        return [MachineReported(f"LP{command:02X}", text)]

    def _exchanged(self, left: int) -> list[Event]:
        """Begin with another machine: nothing of the old one is reported for it or converted with its credits."""
        old, new = self._memory.seen[:left], self._memory.seen[left:]
        sure = tuple(n - left for n in self._memory.sure if n >= left)
        in_real_time = self._memory.real_time and bool(new)  # otherwise only the old machine was in that mode
        gone = ", ".join(map(str, self._memory.counted.values())) if self._options.feeds else ""
        kept = self._memory.levels, self._memory.sent
        self._memory = Memory(levels=kept[0], sent=kept[1], seen=new, sure=sure, real_time=in_real_time)
        self._factor = None
        ended: list[Event] = [*self._faults.end(*self._faults.standing.open)]
        if gone:
            ended += self._faults.strike("sas.bets_unknown", f"the previous machine was counted up to coin in {gone}")
        doubt = self._faults.strike("sas.doubtful", f"{names(old)}, of the previous machine") if old else []
        return [*ended, *doubt]

    def _not_described(self, command: int) -> list[Event]:
        """A handpay is repeated until its poll is answered: reported once until one is read, paid or cancelled."""
        handpay = command == 0x1B
        if handpay and self._undescribed:
            return []
        if handpay:
            self._undescribed = True
            unsure = bool(self._memory.prizes)
            only = unsure and (not self._memory.unsure or self._memory.undescribed)
            self._memory = replace(self._memory, unsure=unsure, undescribed=only)
        what = "a handpay" if handpay else "a progressive win"
        return [*self._faults.strike("sas.doubtful", f"{what}, and the machine does not report which")]


def _unpaid(hit: Hit) -> bool:
    """Whether it is not paid, and no poll showed that the machine pays it (84) or a person must (1B)."""
    return not hit.paid and not {0x84, 0x1B} & set(hit.seen)


def _unit(name: str, factor: int) -> int:
    """The value of one unit of a meter: `factor` minor units for a credit, one for counts and minor units."""
    counted = name in COUNTED or name.endswith("_count") or (name.startswith("bills_") and name[6:].isdecimal())
    return 1 if counted or name in MINOR else factor


def _forward(name: str, old: int, new: int, factor: int) -> bool:
    """Whether the meter did not run backwards; a meter of eight or ten digits may wrap around."""
    unit = _unit(name, factor)
    rollover = 10 ** (10 if name in MINOR else 8)
    most = ROLLED_BY_PRIZES if name.startswith(PRIZES) else ROLLED
    return name.startswith(UP_AND_DOWN) or new >= old or (new - old) % (rollover * unit) <= most * unit
