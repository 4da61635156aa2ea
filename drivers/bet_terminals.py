"""Driver for betting terminals: one link for all terminals of a table, requests in, answers out, one line each.

Evidence: our own document (docs/how-to/connect-a-betting-terminal.md). Over MQTT the link subscribes to
`table/<table>/wager/<terminal>` and publishes `table/<table>/wager/<terminal>/result`; the terminal's name is put in
front of each line. A request in the name of another terminal is refused. Each terminal has its own quota and its own
table of ids: one that exceeds its quota is refused alone.

A valid request becomes one event, in one transaction with its id: a repeated request is not kept again, also after a
restart. The rules decide whether the bet counts, and answer it. The driver answers only the requests that it does not
keep. At least all ids that have not expired are kept. A request that was not kept does not count, so nothing that
counts can be missed: the device is always online as continuous.
"""

import asyncio
import struct
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import chain
from typing import Annotated, ClassVar, Final

from msgspec import Meta, Struct, json

from drivers.driver import Emit, Evidence, Link, Sighting, WireDecoder, decode_memory
from drivers.faults import Fault, Faults, Standing
from protocols.contract.commands import Command
from protocols.contract.events import (
    DeviceOnline,
    Event,
    PlayerActed,
    Seat,
    TerminalId,
    Told,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import Reason, say
from protocols.contract.wagers import (
    Act,
    Decoder,
    PlaceWager,
    Unreadable,
    WagerAnswer,
    WagerRequest,
    WithdrawWager,
    encode,
    encode_line,
)
from protocols.link import Chunk

MODEL: Final = "betting terminals"
MOST_TERMINALS: Final = 99
MOST_IDS: Final = 128
"""Ids of one terminal that are kept. Those that have not expired are never deleted."""
MOST_EARLIER: Final = 4096
EARLIER_S: Final = 3600
"""Seconds after its expiry for which an id of an older version, or of a removed terminal, is kept."""
MOST_ANSWERS: Final = 100
"""Messages of one terminal in a second. What comes beyond them is dropped without an answer."""
STRANGER: Final = "a terminal that is not listed"
QUIET_S: Final = 30.0
"""Seconds without another occurrence after which a fault ends."""

MALFORMED = Fault(
    "terminals.malformed",
    "a message on the wager topic is no request",
    "record the terminal's messages (feltd command … trace) and compare them with "
    "docs/how-to/connect-a-betting-terminal.md",
    "by itself",
    "goes on without this bet; the terminal was answered",
)
FLOOD = Fault(
    "terminals.flood",
    "a terminal sends more requests than its quota: the excess requests are not accepted",
    "switch off the terminal that is named; find out what repeats its requests; then change its password on the broker",
    "by itself",
    "goes on; other terminals bet as before; an excess request counts only once it is accepted",
    "error",
)
IMPOSTOR = Fault(
    "terminals.impostor",
    "a terminal sent a request with the name of a different terminal: refused",
    "check the terminal that is named first: its configured name is wrong, or a different device uses its password",
    "by itself",
    "goes on; the bets of the other terminal stand as they were",
    "error",
)


class TerminalOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`seats`: the seats of the table, from 1. `terminals`: by the name of each terminal the seats for which it may
    bet and act; where it is empty, the terminals are t-1, t-2 and so on, one for each seat. `longest`: the longest time
    to its expiry that a request may have, in seconds. `per_second`: new requests that a terminal may send in a second.
    """

    seats: Annotated[int, Meta(ge=1, le=99)] = 9
    terminals: dict[TerminalId, tuple[Seat, ...]] = {}
    longest: Annotated[float, Meta(ge=1, le=600)] = 120.0
    per_second: Annotated[int, Meta(ge=1, le=MOST_ANSWERS)] = 20

    def __post_init__(self) -> None:
        """Raise ValueError for too many terminals, or for one without a seat or with one beyond `seats`."""
        if len(self.terminals) > MOST_TERMINALS:
            raise ValueError(f"terminals: {len(self.terminals)} are listed, a table has at most {MOST_TERMINALS}")
        for name, seats in self.terminals.items():
            if not seats:
                raise ValueError(f"terminals: {name} has no seat; write {name} = [1]")
            if max(seats) > self.seats:
                raise ValueError(f"terminals: {name} has seat {max(seats)}, and seats = {self.seats}")

    @property
    def seats_by_terminal(self) -> dict[str, tuple[int, ...]]:
        """The terminals of the table with the seats for which each may bet."""
        return dict(self.terminals) or {f"t-{seat}": (seat,) for seat in range(1, self.seats + 1)}


class Memory(Struct, frozen=True):
    """The requests that were kept, from the oldest: id, content and expiry, in 16 bytes each.

    `terminals`: by terminal. `ids`: those that an older version kept for all terminals, and those of removed terminals.
    """

    ids: bytes = b""
    standing: Standing = Standing()
    terminals: dict[str, bytes] = {}


class _Known(Struct, frozen=True):
    """A request that was kept."""

    content: bytes
    expires: int


class _Terminal:
    """What is kept of one terminal."""

    def __init__(self, ids: dict[bytes, _Known]) -> None:
        """Continue with the ids of the last session."""
        self.ids = ids
        self.refused: dict[bytes, WagerAnswer] = {}
        """Final refusals of this session: a repeated request is refused again, whatever the time is now."""
        self._second = -1
        self._messages = 0
        self._requests = 0

    def has_room(self, tick: float) -> bool:
        """Count one message of this second."""
        if int(tick) != self._second:
            self._second, self._messages, self._requests = int(tick), 0, 0
        self._messages += 1
        return self._messages <= MOST_ANSWERS

    def is_within(self, per_second: int) -> bool:
        """Count one new request of this second."""
        self._requests += 1
        return self._requests <= per_second

    def make_room(self, now: datetime) -> bool:
        """Whether one more id can be kept. The oldest expired id is deleted for it."""
        if len(self.ids) < MOST_IDS:
            return True
        moment = now.timestamp()
        oldest = next((key for key, known in self.ids.items() if known.expires < moment), None)
        if oldest is None:
            return False
        del self.ids[oldest]
        return True

    def refuse(self, key: bytes, refusal: WagerAnswer) -> WagerAnswer:
        """Store a final refusal."""
        while len(self.refused) >= MOST_IDS:
            del self.refused[next(iter(self.refused))]
        self.refused[key] = refusal
        return refusal


_RECORD: Final = struct.Struct(">8s4sI")


class BetTerminals:
    """One session with the terminals of a table."""

    name: ClassVar[str] = "bet_terminals"
    title: ClassVar[str] = "Betting terminals, MQTT"
    icon: ClassVar[str] = "bets"
    decoder: ClassVar[WireDecoder | None] = Decoder
    emits: ClassVar[tuple[Told, ...]] = (WagerPlaced, WagerWithdrawn, PlayerActed)
    evidence: ClassVar[tuple[Evidence, ...]] = ("reference protocol",)
    Options: ClassVar[type[TerminalOptions]] = TerminalOptions
    faults: ClassVar[tuple[Fault, ...]] = (MALFORMED, FLOOD, IMPOSTOR)
    commands: ClassVar[tuple[type[Command], ...]] = ()
    tells_cards: ClassVar[bool] = False

    def __init__(self, options: TerminalOptions, memory: bytes | None = None) -> None:
        """Continue with the ids of the last session."""
        self._options = options
        kept = decode_memory(memory, Memory) or Memory()
        self._faults = Faults(self.faults, kept.standing)
        self._seats = options.seats_by_terminal
        self._terminals = {name: _Terminal(dict(_unpacked(kept.terminals.get(name, b"")))) for name in self._seats}
        self._strangers = _Terminal({})
        """The quota that all unlisted terminals share; their requests are not kept."""
        removed = (_unpacked(ids) for name, ids in kept.terminals.items() if name not in self._seats)
        self._earlier = dict(chain(_unpacked(kept.ids), *removed))
        self._last_seen: dict[str, float] = {}
        self._named: dict[str, dict[str, None]] = {}
        """The terminals that each open fault names."""

    async def run(self, link: Link, emit: Emit) -> None:
        """Keep requests until LinkLost or DeviceRefused."""
        decoder = Decoder()
        chunk = link.stamp()
        self._last_seen = dict.fromkeys(self._faults.standing.open, chunk.tick)
        past = chunk.at.timestamp() - EARLIER_S
        self._earlier = dict([one for one in self._earlier.items() if one[1].expires > past][-MOST_EARLIER:])
        await self._emit(emit, [DeviceOnline(continuous=True, model=MODEL)], b"", chunk)
        while True:
            try:
                async with asyncio.timeout(self._until_quiet(link.stamp().tick)):
                    chunk = await link.read()
            except TimeoutError:
                chunk = link.stamp()
            for one in decoder.feed(chunk.data):
                answer = await self._take(one.terminal, one.message, chunk, emit)
                if answer is not None and one.terminal:
                    await link.write(encode_line(one.terminal, answer))
            await self._emit(emit, self._ended(chunk.tick), b"", chunk)

    # ---- one message

    async def _take(
        self, terminal: str, message: WagerRequest | WagerAnswer | Unreadable, chunk: Chunk, emit: Emit
    ) -> WagerAnswer | None:
        """Keep a request. Returns the answer where it is not kept."""
        if not self._terminals.get(terminal, self._strangers).has_room(chunk.tick):
            await self._strike(FLOOD, terminal, f"more than {MOST_ANSWERS} messages a second", b"", chunk, emit)
            return None
        match message:
            case PlaceWager() | WithdrawWager() | Act() if message.terminal == terminal:
                return await self._request(message, chunk, emit)
            case PlaceWager() | WithdrawWager() | Act():
                named = message.terminal
                await self._strike(IMPOSTOR, terminal, f"in the name of {named}", encode(message), chunk, emit)
                reason = say("terminal_not_own", terminal=terminal, named=named)
                text = f"terminal {terminal} cannot send requests in the name of {named}"
                return WagerAnswer(message.id, terminal, "refused", reason.code, reason, text)
            case WagerAnswer(id_):
                unread = Unreadable("an answer is no request", encode(message), id_, terminal)
            case Unreadable() as unread:
                pass
        await self._strike(MALFORMED, terminal, unread.text, unread.raw, chunk, emit)
        reason = say("request_malformed", text=unread.text)
        text = f"the request cannot be read: {unread.text}"
        return WagerAnswer(unread.id, terminal, "refused", reason.code, reason, text)

    async def _request(self, request: WagerRequest, chunk: Chunk, emit: Emit) -> WagerAnswer | None:
        asking = self._terminals.get(request.terminal)
        if asking is None:
            text = f"no terminal {request.terminal} at this table"
            return _refusal(request, say("terminal_unknown", terminal=request.terminal), text)
        key, content = _digests(request)
        known = asking.ids.get(key) or self._earlier.get(key)
        if known is not None:
            if known.content == content:
                return None  # kept before; the rules answer it again
            return _refusal(request, say("request_id_used"), "this id was used for another request; use a new one")
        if key in asking.refused:
            return asking.refused[key]
        if not asking.is_within(self._options.per_second):
            return await self._too_many(request, f"more than {self._options.per_second} a second", chunk, emit)
        if not asking.make_room(chunk.at):
            return await self._too_many(request, f"{MOST_IDS} have not expired", chunk, emit)
        if refusal := self._refusal(request, chunk.at):
            return asking.refuse(key, refusal)
        asking.ids[key] = _Known(content, int(request.expires.timestamp()) + 1)
        await self._emit(emit, [_event(request)], encode(request), chunk)
        return None

    async def _too_many(self, request: WagerRequest, detail: str, chunk: Chunk, emit: Emit) -> WagerAnswer:
        await self._strike(FLOOD, request.terminal, f"requests: {detail}", b"", chunk, emit)
        reason, text = say("too_many_requests"), "too many requests: repeat this one with the same id"
        return WagerAnswer(request.id, request.terminal, "failed", reason.code, reason, text)

    def _refusal(self, request: WagerRequest, now: datetime) -> WagerAnswer | None:
        options = self._options
        if request.expires <= now:
            at = request.expires.isoformat()  # as the terminal wrote it: UTC has no year 0 or 10000
            return _refusal(request, say("request_expired", at=at), f"the request expired at {at}, before it came")
        if request.expires > now + timedelta(seconds=options.longest):
            seconds = int(options.longest)
            late = f"the request expires too late: at most {seconds} s from now"
            text = f"{late}; compare the terminal's clock with the edge's"
            return _refusal(request, say("request_expires_too_late", seconds=seconds), text)
        if request.seat not in self._seats[request.terminal]:
            text = f"this terminal cannot bet for seat {request.seat}"
            return _refusal(request, say("seat_unknown", seat=request.seat), text)
        return None

    # ---- faults and memory

    async def _strike(self, fault: Fault, terminal: str, detail: str, wire: bytes, chunk: Chunk, emit: Emit) -> None:
        """Report a fault with the terminals that have it: once for each of them while it is open."""
        self._last_seen[fault.code] = chunk.tick
        names = self._named.setdefault(fault.code, {})
        name = terminal if terminal in self._terminals else STRANGER
        if name not in names:
            names[name] = None
            await self._emit(emit, self._faults.strike(fault.code, f"{', '.join(names)}: {detail}"), wire, chunk)

    def _until_quiet(self, tick: float) -> float | None:
        """Seconds until an open fault ends."""
        due = [self._last_seen[code] + QUIET_S - tick for code in self._faults.standing.open]
        return max(min(due), 0.01) if due else None  # not zero: a clock that rounds would make the loop spin

    def _ended(self, tick: float) -> Sequence[Event]:
        quiet = [code for code in self._faults.standing.open if tick - self._last_seen[code] >= QUIET_S]
        for code in quiet:
            self._named.pop(code, None)
        return self._faults.end(*quiet)

    async def _emit(self, emit: Emit, events: Sequence[Event], wire: bytes, chunk: Chunk) -> None:
        if events:
            ids = {name: b"".join(_packed(one.ids)) for name, one in self._terminals.items() if one.ids}
            memory = Memory(b"".join(_packed(self._earlier)), self._faults.standing, ids)
            await emit([Sighting(event, wire, chunk) for event in events], json.encode(memory))


def _event(request: WagerRequest) -> Event:
    match request:
        case PlaceWager(id_, terminal, _, seat, bet, amount, round_):
            return WagerPlaced(seat, bet, amount, id_, terminal, round=round_)
        case WithdrawWager(id_, terminal, _, seat, bet, amount, round_):
            return WagerWithdrawn(seat, bet, amount, id_, terminal, round=round_)
        case Act(id_, terminal, _, seat, act, round_, amount):
            return PlayerActed(seat, act, amount, id_, terminal, round=round_)


def _refusal(request: WagerRequest, reason: Reason, text: str) -> WagerAnswer:
    return WagerAnswer(request.id, request.terminal, "refused", reason.code, reason, text)


def _digests(request: WagerRequest) -> tuple[bytes, bytes]:
    """Digests of terminal and id, and of the content without the expiry, which may change in a repeated request."""
    name, what = f"{request.terminal} {request.id}", f"{type(request).__name__} {request.seat} {request.amount} "
    bet = request.act if isinstance(request, Act) else request.bet
    content = (what + bet + (f"\n{request.round}" if request.round else "")).encode()
    return blake2b(name.encode(), digest_size=8).digest(), blake2b(content, digest_size=4).digest()


def _packed(ids: dict[bytes, _Known]) -> Iterator[bytes]:
    return (_RECORD.pack(key, known.content, min(known.expires, 2**32 - 1)) for key, known in ids.items())


def _unpacked(stored: bytes) -> Iterator[tuple[bytes, _Known]]:
    whole = stored[: len(stored) // _RECORD.size * _RECORD.size]
    return ((key, _Known(content, expires)) for key, content, expires in _RECORD.iter_unpack(whole))
