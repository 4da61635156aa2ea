"""USPC Bee-Tek electronic shoe: from its lines to cards.

The shoe speaks only when a card is drawn, has no counter and takes no question: silence says nothing, and nothing ever
proves that no card was missed, so it never comes online as continuous. A frame has a checksum and is believed at once;
anything else on the line may have been a card, and is told as unreadable, never left out. A session that begins with
noise alone is no session: a wrong speed or a bad cable looks like that.

Our reading, not the vendor's: nobody draws two cards within `repeat` seconds, so the same frame again that soon is the
shoe stammering or two cards stuck together. It is told as unreadable, so that no card is ever counted twice.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from drivers.driver import Chunk, Emit, Evidence, Link, LinkLost, Sighting
from protocols.bee_tek_shoe import Broken, Decoder, Drawn, Echo, Garbage, Message, Other
from protocols.events import CardDrawn, CardUnreadable, DeviceFaulted, DeviceOnline

MODEL = "USPC Bee-Tek"
QUIET = 0.2  # seconds: a frame takes 10 ms, two cards are further apart than this
CHECK_THE_LINE = "check cable, ground and adapter, and that the port is set to 9600 8N1"


class ShoeOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`settle`: seconds to listen for noise first. `noise_limit`: bytes without a good frame before the line is lost.

    `repeat`: seconds within which the same frame cannot be another card; 0 believes every frame.
    """

    settle: Annotated[float, Meta(ge=0.1, le=30)] = 1.0
    noise_limit: Annotated[int, Meta(ge=16, le=65536)] = 256
    repeat: Annotated[float, Meta(ge=0, le=0.2)] = 0.03


class BeeTekShoe:
    """The driver."""

    name: ClassVar[str] = "bee_tek_shoe"
    title: ClassVar[str] = "Bee-Tek (USPC) card-reading shoe, serial"
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    Options: ClassVar[type[ShoeOptions]] = ShoeOptions

    def __init__(self, options: ShoeOptions, memory: bytes | None = None) -> None:  # noqa: ARG002 - as every driver
        """No memory: the shoe has no counter to compare with."""
        self._options = options
        self._framed = False
        self._last = b""
        self._last_tick = 0.0
        self._noise = 0
        self._noise_tick: float | None = None
        self._told_unknown = False

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
        await emit([online, *early])
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
            await emit(sightings)

    def _hear(self, messages: Sequence[Message], chunk: Chunk) -> Iterator[Sighting]:
        for message in messages:
            match message:
                case Drawn(card, raw):
                    again = raw == self._last and chunk.tick - self._last_tick < self._options.repeat
                    self._last, self._last_tick = raw, chunk.tick
                    self._good_frame()
                    yield Sighting(CardUnreadable() if again else CardDrawn(card), raw, chunk)
                case Other(kind, _, raw):
                    self._good_frame()
                    if not self._told_unknown:
                        self._told_unknown = True
                        yield Sighting(_unknown(kind), raw, chunk)
                case Echo():
                    pass
                case Broken(raw) | Garbage(raw):
                    quiet = self._noise_tick is None or chunk.tick - self._noise_tick >= QUIET
                    self._noise += len(raw)
                    self._noise_tick = chunk.tick
                    if quiet:
                        yield Sighting(CardUnreadable(), raw, chunk)

    def _good_frame(self) -> None:
        self._framed = True
        self._noise = 0
        self._noise_tick = None

    def _check_noise(self) -> None:
        if self._noise > self._options.noise_limit:
            raise LinkLost(f"noise on the line: {self._noise} bytes without a whole frame: {CHECK_THE_LINE}")


def _unknown(kind: str) -> DeviceFaulted:
    return DeviceFaulted(
        "shoe.unknown_message",
        f"the shoe sends messages of type {kind!r}, which this version does not know; cards are read as before",
        "warning",
        "record the line while the shoe is used and send the capture to the maintainers",
    )
