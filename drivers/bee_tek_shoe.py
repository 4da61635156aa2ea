"""USPC Bee-Tek electronic shoe: from its lines to cards.

The shoe speaks only when a card is drawn, has no counter and takes no question: silence says nothing, and nothing ever
proves that no card was missed, so it never comes online as continuous. A frame has a checksum and is believed at once;
anything else on the line may have been a card, and is told as unreadable, never left out. A session that begins with
noise alone is no session: a wrong speed or a bad cable looks like that.

Our reading, not the vendor's: nobody draws two cards within `repeat` seconds, so the same frame again that soon is the
shoe stammering or two cards stuck together, and another frame that soon is a second card pulled with the first. Either
is told as unreadable, with a fault that names it: no card is ever counted twice, none is left out, and a person says
what lies there.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from drivers.driver import Chunk, Emit, Evidence, Link, LinkLost, Sighting
from drivers.faults import Fault, Faults, Standing
from protocols.bee_tek_shoe import Broken, Decoder, Drawn, Echo, Garbage, Message, Other
from protocols.contract.commands import Command
from protocols.contract.events import CardDrawn, CardUnreadable, DeviceOnline, Event

MODEL = "USPC Bee-Tek"
GOOD_RUN = 20  # cards read well one after the other: what comes next is a first time again
QUIET = 0.2  # seconds: a frame takes 10 ms, two cards are further apart than this
CHECK_THE_LINE = "check cable, ground and adapter, and that the port is set to 9600 8N1"
ASK_THE_TABLE = "look at the card with the supervisor and correct the coup at the console"

UNREADABLE = "shoe.unreadable"
REPEATED = "shoe.repeated"
MISSCAN = "shoe.misscan"
UNKNOWN_MESSAGE = "shoe.unknown_message"


class ShoeOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`settle`: seconds to listen for noise first. `noise_limit`: bytes without a good frame before the line is lost.

    `repeat`: seconds in which no second card can come; 0 believes every frame.
    """

    settle: Annotated[float, Meta(ge=0.1, le=30)] = 1.0
    noise_limit: Annotated[int, Meta(ge=16, le=65536)] = 256
    repeat: Annotated[float, Meta(ge=0, le=0.2)] = 0.03


class _Memory(Struct, frozen=True):
    """What outlives a session."""

    faults: Standing = Standing()


class BeeTekShoe:
    """The driver."""

    name: ClassVar[str] = "bee_tek_shoe"
    title: ClassVar[str] = "Bee-Tek (USPC) card-reading shoe, serial"
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    Options: ClassVar[type[ShoeOptions]] = ShoeOptions
    commands: ClassVar[tuple[type[Command], ...]] = ()
    tells_cards: ClassVar[bool] = True
    faults: ClassVar[tuple[Fault, ...]] = (
        Fault(
            UNREADABLE,
            "a card may have left the shoe, and what came on the line is no whole card",
            f"{ASK_THE_TABLE}; wipe the reader's window; check cable and ground",
            "by itself",
            "waits for a person",
        ),
        Fault(
            REPEATED,
            "the same card came again faster than a hand can deal",
            f"{ASK_THE_TABLE}: one card said twice, or two like cards stuck together",
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
            "the shoe sends messages that this version does not know; cards are read as before",
            "record the line while the shoe is used and send the capture to the maintainers",
            "by itself",
            "counts",
        ),
    )

    def __init__(self, options: ShoeOptions, memory: bytes | None = None) -> None:
        """`memory`: the faults that were open; the shoe has no counter to compare with."""
        self._options = options
        kept = msgspec.json.decode(memory, type=_Memory) if memory else _Memory()
        self._faults = Faults(self.faults, kept.faults)
        self._standing = self._faults.standing
        self._good = 0
        self._framed = False
        self._last = b""
        self._last_tick = float("-inf")
        self._noise = 0
        self._noise_tick: float | None = None

    async def run(self, link: Link, emit: Emit) -> None:
        """Settle, come online, then tell every card."""
        decoder = Decoder()
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
        online = Sighting(DeviceOnline(False, MODEL), b"", early[0].chunk if early else link.stamp())
        await emit([online, *early], self._memory())
        while True:
            try:
                async with asyncio.timeout(QUIET if decoder.waiting else None):
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

    async def _tell(self, emit: Emit, messages: Sequence[Message], chunk: Chunk) -> None:
        if sightings := [*self._hear(messages, chunk)]:
            await emit(sightings, self._memory())

    def _memory(self) -> bytes | None:
        """Where it is not what was told last."""
        standing = self._faults.standing
        if standing == self._standing:
            return None
        self._standing = standing
        return msgspec.json.encode(_Memory(standing))

    def _hear(self, messages: Sequence[Message], chunk: Chunk) -> Iterator[Sighting]:
        for message in messages:
            match message:
                case Drawn(card, raw):
                    soon = chunk.tick - self._last_tick < self._options.repeat
                    again = raw == self._last
                    self._last, self._last_tick = raw, chunk.tick
                    self._good_frame()
                    events = self._doubt(REPEATED if again else MISSCAN) if soon else self._drawn(card)
                case Other(kind, _, raw):
                    self._good_frame()
                    events = self._unknown(kind)
                case Echo():
                    continue
                case Broken(raw) | Garbage(raw):
                    quiet = self._noise_tick is None or chunk.tick - self._noise_tick >= QUIET
                    self._noise += len(raw)
                    self._noise_tick = chunk.tick
                    if not quiet:
                        continue
                    events = self._doubt(UNREADABLE, f"it sent {len(raw)} bytes")
            yield from (Sighting(event, raw, chunk) for event in events)

    def _drawn(self, card: str) -> Iterator[Event]:
        yield CardDrawn(card)
        yield from self._faults.end(UNREADABLE, REPEATED, MISSCAN)
        self._good += 1
        if self._good >= GOOD_RUN:
            self._good = 0
            yield from self._faults.end(UNKNOWN_MESSAGE)
            self._faults.good_cycle()

    def _doubt(self, code: str, detail: str = "") -> Iterator[Event]:
        """A card that nobody can be sure of, and why. Never which: it may lie face down, and all read a fault."""
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
