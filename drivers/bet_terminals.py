"""Driver for betting terminals: one link for all terminals of a table, requests in, answers out, one JSON line each.

Evidence: our own document (docs/how-to/connect-a-betting-terminal.md). Over MQTT the link hears `table/<table>/wager`
and says `table/<table>/wager/result`.

A valid request becomes one event, in one transaction with its id: a repeated request is not kept again, also after a
restart. Whether the bet counts is decided by the rules, and they answer. The driver answers only what it does not keep.
At least all ids that have not expired are remembered. A request that was not kept does not count, so nothing that
counts can be missed: the device is always online as continuous.
"""

import asyncio
import struct
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Annotated, ClassVar, Final

from msgspec import Meta, Struct, json

from drivers.driver import Emit, Evidence, Link, Sighting, decode_memory
from drivers.faults import Fault, Faults, Standing
from protocols.contract.commands import Command
from protocols.contract.events import DeviceOnline, Event, Seat, TerminalId, Told, WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import Reason, say
from protocols.contract.wagers import (
    Decoder,
    PlaceWager,
    Unreadable,
    WagerAnswer,
    WagerRequest,
    WithdrawWager,
    encode,
)
from protocols.link import Chunk

MODEL: Final = "betting terminals"
MOST_IDS: Final = 1024
"""Ids that are remembered. Those that have not expired are never forgotten."""
MOST_ANSWERS: Final = 100
"""Messages a second. What comes beyond them is dropped without an answer."""
QUIET_S: Final = 30.0
"""Seconds without another occurrence after which a fault ends."""

MALFORMED = Fault(
    "terminals.malformed",
    "a message on the wager topic is no request",
    "compare the terminal's messages with docs/how-to/connect-a-betting-terminal.md: feltd command … trace shows them",
    "by itself",
    "goes on without this bet; the terminal was answered",
)
FLOOD = Fault(
    "terminals.flood",
    "more requests come than are taken: some were dropped",
    "find the terminal that repeats too fast, and switch it off; look who else may write on the wager topic",
    "by itself",
    "goes on; a dropped request does not count before it is repeated and accepted",
    "error",
)


class TerminalOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`seats`: the seats of the table, from 1. `terminals`: by the name of each known terminal the seats for which it
    may bet; where it is empty, any terminal may bet for any seat. `longest`: the longest time to its expiry that a
    request may have, in seconds. `per_second`: new requests that one terminal may send in a second.
    """

    seats: Annotated[int, Meta(ge=1, le=99)] = 9
    terminals: dict[TerminalId, tuple[Seat, ...]] = {}
    longest: Annotated[float, Meta(ge=1, le=600)] = 120.0
    per_second: Annotated[int, Meta(ge=1, le=MOST_ANSWERS)] = 20


class Memory(Struct, frozen=True):
    """`ids`: the requests that were kept, from the oldest: id, content and expiry, in 16 bytes each."""

    ids: bytes = b""
    standing: Standing = Standing()


class _Known(Struct, frozen=True):
    """A request that was kept."""

    content: bytes
    expires: int


_RECORD: Final = struct.Struct(">8s4sI")


class BetTerminals:
    """One session with the terminals of a table."""

    name: ClassVar[str] = "bet_terminals"
    title: ClassVar[str] = "Betting terminals, MQTT"
    emits: ClassVar[tuple[Told, ...]] = (WagerPlaced, WagerWithdrawn)
    evidence: ClassVar[tuple[Evidence, ...]] = ("reference protocol",)
    Options: ClassVar[type[TerminalOptions]] = TerminalOptions
    faults: ClassVar[tuple[Fault, ...]] = (MALFORMED, FLOOD)
    commands: ClassVar[tuple[type[Command], ...]] = ()
    tells_cards: ClassVar[bool] = False

    def __init__(self, options: TerminalOptions, memory: bytes | None = None) -> None:
        """Continue with the ids of the last session."""
        self._options = options
        kept = decode_memory(memory, Memory) or Memory()
        self._faults = Faults(self.faults, kept.standing)
        self._ids = dict(_unpacked(kept.ids))
        self._refused: dict[bytes, WagerAnswer] = {}
        """Final refusals of this session: a repeated request is refused again, whatever the clock says now."""
        self._second = -1
        self._heard = 0
        self._by_terminal: dict[str, int] = {}
        self._last_seen: dict[str, float] = {}

    async def run(self, link: Link, emit: Emit) -> None:
        """Keep requests until LinkLost or DeviceRefused."""
        decoder = Decoder()
        chunk = link.stamp()
        self._last_seen = dict.fromkeys(self._faults.standing.open, chunk.tick)
        await self._emit(emit, [DeviceOnline(continuous=True, model=MODEL)], b"", chunk)
        while True:
            try:
                async with asyncio.timeout(self._until_quiet(link.stamp().tick)):
                    chunk = await link.read()
            except TimeoutError:
                chunk = link.stamp()
            for message in decoder.feed(chunk.data):
                answer = await self._take(message, chunk, emit)
                if answer is not None:
                    await link.write(encode(answer) + b"\n")
            await self._emit(emit, self._ended(chunk.tick), b"", chunk)

    # ---- one message

    async def _take(
        self, message: WagerRequest | WagerAnswer | Unreadable, chunk: Chunk, emit: Emit
    ) -> WagerAnswer | None:
        """Keep a request. Returns the answer where it is not kept."""
        if not self._has_room(chunk.tick):
            await self._emit(emit, self._struck(FLOOD, f"more than {MOST_ANSWERS} a second", chunk.tick), b"", chunk)
            return None
        match message:
            case PlaceWager() | WithdrawWager():
                return await self._request(message, chunk, emit)
            case WagerAnswer(id_, terminal):
                unread = Unreadable("an answer is no request", encode(message), id_, terminal)
            case Unreadable() as unread:
                pass
        await self._emit(emit, self._struck(MALFORMED, unread.text, chunk.tick), unread.raw, chunk)
        return _refusal(
            unread, say("request_malformed", text=unread.text), f"the request cannot be read: {unread.text}"
        )

    async def _request(self, request: WagerRequest, chunk: Chunk, emit: Emit) -> WagerAnswer | None:
        key, content = _digests(request)
        known = self._ids.get(key)
        if known is not None:
            if known.content == content:
                return None  # kept before; the rules answer it again
            return _refusal(request, say("request_id_used"), "this id was used for another request; draw a new one")
        if key in self._refused:
            return self._refused[key]
        count = self._by_terminal.get(request.terminal, 0) + 1
        self._by_terminal[request.terminal] = count
        if count > self._options.per_second or not self._make_room(chunk.at):
            text = "too many requests: repeat this one with the same id"
            return WagerAnswer(
                request.id, request.terminal, "failed", "too_many_requests", say("too_many_requests"), text
            )
        if refusal := self._refusal(request, chunk.at):
            while len(self._refused) >= MOST_IDS:
                del self._refused[next(iter(self._refused))]
            self._refused[key] = refusal
            return refusal
        self._ids[key] = _Known(content, int(request.expires.timestamp()) + 1)
        await self._emit(emit, [_event(request)], encode(request), chunk)
        return None

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
        if options.terminals and request.terminal not in options.terminals:
            text = f"no terminal {request.terminal} at this table"
            return _refusal(request, say("terminal_unknown", terminal=request.terminal), text)
        if request.seat > options.seats or request.seat not in options.terminals.get(request.terminal, (request.seat,)):
            text = f"this terminal cannot bet for seat {request.seat}"
            return _refusal(request, say("seat_unknown", seat=request.seat), text)
        return None

    def _has_room(self, tick: float) -> bool:
        """Count one message of this second."""
        if int(tick) != self._second:
            self._second, self._heard = int(tick), 0
            self._by_terminal.clear()
        self._heard += 1
        return self._heard <= MOST_ANSWERS

    def _make_room(self, now: datetime) -> bool:
        """Whether one more id can be remembered. The oldest expired ids are forgotten for it."""
        if len(self._ids) < MOST_IDS:
            return True
        moment = now.timestamp()
        oldest = next((key for key, known in self._ids.items() if known.expires < moment), None)
        if oldest is None:
            return False
        del self._ids[oldest]
        return True

    # ---- faults and memory

    def _struck(self, fault: Fault, detail: str, tick: float) -> Sequence[Event]:
        self._last_seen[fault.code] = tick
        return self._faults.begin(fault.code, detail)

    def _until_quiet(self, tick: float) -> float | None:
        """Seconds until an open fault ends."""
        due = [self._last_seen[code] + QUIET_S - tick for code in self._faults.standing.open]
        return max(min(due), 0.01) if due else None  # a clock that rounds must not be asked for ever

    def _ended(self, tick: float) -> Sequence[Event]:
        quiet = [code for code in self._faults.standing.open if tick - self._last_seen[code] >= QUIET_S]
        return self._faults.end(*quiet)

    async def _emit(self, emit: Emit, events: Sequence[Event], wire: bytes, chunk: Chunk) -> None:
        if events:
            memory = Memory(b"".join(_packed(self._ids)), self._faults.standing)
            await emit([Sighting(event, wire, chunk) for event in events], json.encode(memory))


def _event(request: WagerRequest) -> Event:
    match request:
        case PlaceWager(id_, terminal, _, seat, bet, amount, round_):
            return WagerPlaced(seat, bet, amount, id_, terminal, round=round_)
        case WithdrawWager(id_, terminal, _, seat, bet, amount, round_):
            return WagerWithdrawn(seat, bet, amount, id_, terminal, round=round_)


def _refusal(request: WagerRequest | Unreadable, reason: Reason, text: str) -> WagerAnswer:
    return WagerAnswer(request.id, request.terminal, "refused", reason.code, reason, text)


def _digests(request: WagerRequest) -> tuple[bytes, bytes]:
    """Of who asked under which id, and of what was asked. A terminal that repeats may give a new expiry."""
    name, what = f"{request.terminal} {request.id}", f"{type(request).__name__} {request.seat} {request.amount} "
    content = (what + request.bet + (f"\n{request.round}" if request.round else "")).encode()
    return blake2b(name.encode(), digest_size=8).digest(), blake2b(content, digest_size=4).digest()


def _packed(ids: dict[bytes, _Known]) -> Iterator[bytes]:
    return (_RECORD.pack(key, known.content, min(known.expires, 2**32 - 1)) for key, known in ids.items())


def _unpacked(stored: bytes) -> Iterator[tuple[bytes, _Known]]:
    whole = stored[: len(stored) // _RECORD.size * _RECORD.size]
    return ((key, _Known(content, expires)) for key, content, expires in _RECORD.iter_unpack(whole))
