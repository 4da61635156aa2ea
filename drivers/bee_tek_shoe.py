"""Driver for the USPC Bee-Tek electronic shoe.

The shoe sends one message for each drawn card, on one of two wires; the driver detects which. It has no counter and
takes no request, so a lost message cannot be detected and the shoe never comes online as continuous. A whole message
is accepted at once. Any other bytes may have been a card and are reported as an unreadable card. A session that begins
with noise alone ends: the cause is a wrong speed or a bad cable.

The text wire also reports that a card was not read, and it raises an alarm for the same card, before or after: the two
are one unreadable card. Its other alarms and its warnings are faults with the shoe's own text until the next card
comes.

Our assumption, not the vendor's: a hand cannot draw two cards within `repeat` seconds. The same frame within that time
is a repetition by the shoe or two cards stuck together; another frame is a second card pulled with the first. Both are
reported as an unreadable card with a fault that names the cause. No card is counted twice or left out, and a person
enters what lies on the table.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from drivers.driver import Chunk, Emit, Evidence, Link, LinkLost, Sighting, WireDecoder
from drivers.faults import Fault, Faults, Standing
from protocols import bee_tek_text
from protocols.bee_tek_shoe import Broken, Drawn, Echo, Garbage, Other
from protocols.bee_tek_text import Alarm, Either, EitherDecoder, NotRead, Warned
from protocols.contract.commands import Command
from protocols.contract.events import CardDrawn, CardUnreadable, DeviceOnline, Event, Told

MODEL = "USPC Bee-Tek"
GOOD_RUN = 20  # consecutive good cards that end a fault cycle
BYTE_S = 10 / 9600
JOIN_S = 1.0  # an alarm and a failed read within this time are of one card
QUIET_S = 0.2  # a frame takes 10 ms, and two cards are further apart
CHECK_THE_LINE = "check cable, ground and adapter, and that the port is set to 9600 8N1"
ASK_THE_TABLE = "look at the card with the supervisor and correct the coup at the console"

UNREADABLE = "shoe.unreadable"
REPEATED = "shoe.repeated"
MISSCAN = "shoe.misscan"
UNKNOWN_MESSAGE = "shoe.unknown_message"
ALARM = "shoe.alarm"
WARNING = "shoe.warning"


class ShoeOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`settle`: seconds to listen for noise first. `noise_limit`: bytes without a good frame before the line is lost.

    `repeat`: seconds within which no second card can come; 0 accepts every frame.
    """

    settle: Annotated[float, Meta(ge=0.1, le=30)] = 1.0
    noise_limit: Annotated[int, Meta(ge=16, le=65536)] = 256
    repeat: Annotated[float, Meta(ge=0, le=0.2)] = 0.03


class _Memory(Struct, frozen=True):
    """What survives a session."""

    faults: Standing = Standing()
    wire: Literal["", "text"] = ""


class BeeTekShoe:
    """The driver."""

    name: ClassVar[str] = "bee_tek_shoe"
    title: ClassVar[str] = "Bee-Tek (USPC) card-reading shoe, serial"
    icon: ClassVar[str] = "shoe"
    decoder: ClassVar[WireDecoder | None] = EitherDecoder
    emits: ClassVar[tuple[Told, ...]] = (CardDrawn, CardUnreadable)
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    Options: ClassVar[type[ShoeOptions]] = ShoeOptions
    commands: ClassVar[tuple[type[Command], ...]] = ()
    tells_cards: ClassVar[bool] = True
    faults: ClassVar[tuple[Fault, ...]] = (
        Fault(
            UNREADABLE,
            "a card may have left the shoe, but the bytes received are no whole card",
            f"{ASK_THE_TABLE}; wipe the reader's window; check cable and ground",
            "by itself",
            "waits for a person",
        ),
        Fault(
            REPEATED,
            "the same card was reported again faster than a hand can deal",
            f"{ASK_THE_TABLE}: one card reported twice, or two like cards stuck together",
            "by itself",
            "waits for a person",
        ),
        Fault(
            MISSCAN,
            "a second card was pulled with the first",
            f"{ASK_THE_TABLE}: two cards are out; check that the lip of the shoe lets only one card through",
            "by itself",
            "waits for a person",
        ),
        Fault(
            UNKNOWN_MESSAGE,
            "the shoe sends messages that this version does not support; cards are read as before",
            "record the line while the shoe is used and send the capture to the maintainers",
            "by itself",
            "counts",
        ),
        Fault(
            ALARM,
            "the shoe raises an alarm; cards are read as before",
            "read the shoe's display; look up the code in its manual",
            "by itself",
            "counts",
        ),
        Fault(
            WARNING,
            "the shoe shows a warning; cards are read as before",
            "read the shoe's display; look up the code in its manual",
            "by itself",
            "counts",
        ),
    )

    def __init__(self, options: ShoeOptions, memory: bytes | None = None) -> None:
        """`memory`: the open faults and the wire. The shoe has no counter to compare."""
        self._options = options
        kept = msgspec.json.decode(memory, type=_Memory) if memory else _Memory()
        self._faults = Faults(self.faults, kept.faults)
        self._wire: Literal["", "text"] = kept.wire
        self._written = kept
        self._good = 0
        self._framed = False
        self._last = b""
        self._last_tick = float("-inf")
        self._noise = 0
        self._noise_tick: float | None = None
        self._failed: type[NotRead | Alarm] | None = None
        self._failed_tick = float("-inf")

    async def run(self, link: Link, emit: Emit) -> None:
        """Listen for noise, come online, then report every card."""
        decoder = EitherDecoder(self._wire)
        chunk = link.stamp()
        early: list[Sighting] = []
        try:
            async with asyncio.timeout(self._options.settle):
                while not self._framed:
                    chunk = await link.read()
                    early += self._hear(decoder.feed(chunk.data), chunk)
                    self._check_noise()
        except TimeoutError:
            if early:
                raise LinkLost(
                    f"noise on the line, and no whole frame in {self._options.settle:g} s: {CHECK_THE_LINE}"
                ) from None
        model = f"{MODEL}, text wire" if decoder.wire == "text" else MODEL
        online = Sighting(DeviceOnline(False, model), b"", early[0].chunk if early else link.stamp())
        await emit([online, *early], self._memory())
        while True:
            try:
                async with asyncio.timeout(QUIET_S if decoder.waiting else None):
                    chunk = await link.read()
            except TimeoutError:
                messages = decoder.quiet()
            except LinkLost:
                await self._tell(emit, decoder.quiet(), chunk)
                raise
            else:
                messages = decoder.feed(chunk.data)
            await self._tell(emit, messages, chunk)
            self._check_noise()

    async def _tell(self, emit: Emit, messages: Sequence[Either], chunk: Chunk) -> None:
        if sightings := [*self._hear(messages, chunk)]:
            await emit(sightings, self._memory())

    def _memory(self) -> bytes | None:
        """The memory, if it changed since it was last written."""
        memory = _Memory(self._faults.standing, self._wire)
        if memory == self._written:
            return None
        self._written = memory
        return msgspec.json.encode(memory)

    def _hear(self, messages: Sequence[Either], chunk: Chunk) -> Iterator[Sighting]:
        for message in messages:
            match message:
                case Drawn(card, raw, operation):
                    self._wire = "text" if operation else ""
                    self._failed = None
                    on_the_line_s = len(raw) * BYTE_S if operation else 0.0
                    pause_s = max(0.0, chunk.tick - self._last_tick - on_the_line_s)  # 0 within one chunk
                    soon = pause_s < self._options.repeat
                    again = raw == self._last
                    self._last, self._last_tick = raw, chunk.tick
                    self._good_frame()
                    events = self._doubt(REPEATED if again else MISSCAN) if soon else self._drawn(card, operation)
                case Other(kind, _, raw):
                    self._good_frame()
                    events = self._unknown(kind)
                case NotRead(_, raw) | Alarm(_, bee_tek_text.NOT_READ_ALARM, _, raw):
                    self._good_frame()
                    if self._is_same_failure(message, chunk):
                        continue
                    events = self._doubt(UNREADABLE, "the shoe could not read it")
                case Alarm(_, code, text, raw):
                    self._good_frame()
                    events = iter(self._faults.begin(ALARM, f"{code} {text}".strip()))
                case Warned(code, raw):
                    self._good_frame()
                    events = iter(self._faults.begin(WARNING, code))
                case Echo():
                    continue
                case Broken(raw) | Garbage(raw):
                    quiet = self._noise_tick is None or chunk.tick - self._noise_tick >= QUIET_S
                    self._noise += len(raw)
                    self._noise_tick = chunk.tick
                    if not quiet:
                        continue
                    events = self._doubt(UNREADABLE, f"it sent {len(raw)} bytes")
            yield from (Sighting(event, raw, chunk) for event in events)

    def _is_same_failure(self, message: NotRead | Alarm, chunk: Chunk) -> bool:
        """Whether `message` is the other report of a card that failed a moment ago."""
        other = self._failed not in (None, type(message)) and chunk.tick - self._failed_tick < JOIN_S
        self._failed, self._failed_tick = None if other else type(message), chunk.tick
        return other

    def _drawn(self, card: str, operation: str) -> Iterator[Event]:
        yield CardDrawn(card, operation=operation)
        yield from self._faults.end(UNREADABLE, REPEATED, MISSCAN, ALARM, WARNING)
        self._good += 1
        if self._good >= GOOD_RUN:
            self._good = 0
            yield from self._faults.end(UNKNOWN_MESSAGE)
            self._faults.good_cycle()

    def _doubt(self, code: str, detail: str = "") -> Iterator[Event]:
        """A doubtful card and the reason. It is not named: it may lie face down, and all readers get faults."""
        self._good = 0
        yield CardUnreadable()
        yield from self._faults.strike(code, detail)

    def _unknown(self, kind: str) -> Iterator[Event]:
        self._good = 0
        yield from self._faults.begin(UNKNOWN_MESSAGE, f"type {kind!r}")

    def _good_frame(self) -> None:
        self._framed = True
        self._noise = 0
        self._noise_tick = None

    def _check_noise(self) -> None:
        if self._noise > self._options.noise_limit:
            raise LinkLost(f"noise on the line: {self._noise} bytes without a whole frame: {CHECK_THE_LINE}")
