"""Driver for a shoe with a HID barcode scanner that reads the cards as they slide out.

Evidence: public code of live studios reads such scanners and codes. It does not show how long a scanner takes, which
code is on the cut card, or what a scanner types when it cannot read. `quiet`, `repeat`, `cut_cards` and `no_read` are
our assumptions and settings of the house. The codes of the cards are given by `order`, or by `codes` for any other
scheme.

A scanner types only when it reads a code. It has no counter and answers no question, so a lost code cannot be detected
and the shoe never comes online as continuous. Which face was up is unknown.

A hand cannot deal two cards within `repeat` seconds. The same code within that time is a card read twice or two equal
cards stuck together; another code is a second card pulled too early. Both are reported as an unreadable card with a
fault that names the cause. No card is counted twice or left out, and a person enters what lies on the table. The same
code again and again, from a card that stays under the window, is reported once.
"""

from asyncio import timeout
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from drivers.driver import Chunk, Emit, Evidence, Link, LinkLost, Sighting, WireDecoder
from drivers.faults import Fault, Faults, Standing
from protocols.contract.commands import Command
from protocols.contract.events import Card, CardDrawn, CardUnreadable, CutCardDrawn, DeviceOnline, Event, Told
from protocols.hid_cards import Broken, Code, Decoder, Message, Order, card_in

MODEL = "HID card scanner"
GOOD_RUN = 20  # consecutive good cards that end a fault cycle
ASK_THE_TABLE = "look at the card with the supervisor and correct the coup at the console"

Text = Annotated[str, Meta(min_length=1, max_length=64)]

UNREADABLE = "shoe.unreadable"
UNFINISHED = "shoe.unfinished"
UNKNOWN_CODE = "shoe.unknown_code"
REPEATED = "shoe.repeated"
MISSCAN = "shoe.misscan"
KEY_STUCK = "shoe.key_stuck"


class HidShoeOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`order`: the order of suit and rank in a card's code. `codes`: each code and its card, instead of `order`.

    `cut_cards`: codes of the cut card. `no_read`: what the scanner types for a card without a readable code.
    `ignore_case`: `sa` is `SA`. `quiet`: seconds without a report that end a code. `repeat`: seconds within which no
    second card can come; 0 accepts every code. `stuck`: seconds that no key is held. `noise_limit`: bytes without a
    good code before the line is lost.
    """

    order: Order = "suit-rank"
    codes: dict[Text, Card] = {}
    cut_cards: tuple[Text, ...] = ("CUT",)
    no_read: tuple[Text, ...] = ("NOREAD",)
    ignore_case: bool = True
    quiet: Annotated[float, Meta(ge=0.05, le=2)] = 0.2
    repeat: Annotated[float, Meta(ge=0, le=2)] = 0.4
    stuck: Annotated[float, Meta(ge=0.5, le=60)] = 1.0
    noise_limit: Annotated[int, Meta(ge=64, le=65536)] = 4096

    def __post_init__(self) -> None:
        """Raise ValueError for a code with two meanings."""
        meanings = [*self.codes, *self.cut_cards, *self.no_read]
        folded = [code.upper() for code in meanings] if self.ignore_case else meanings
        twice = sorted({code for code in folded if folded.count(code) > 1})
        if not self.codes:
            twice += sorted(code for code in folded if card_in(code, self.order))
        if twice:
            raise ValueError(f"the code {twice[0]!r} has two meanings: write each code once")


class _Memory(Struct, frozen=True):
    """What survives a session."""

    faults: Standing = Standing()


class HidShoe:
    """The driver."""

    name: ClassVar[str] = "hid_shoe"
    title: ClassVar[str] = "Shoe with a HID barcode scanner, USB"
    icon: ClassVar[str] = "shoe"
    decoder: ClassVar[WireDecoder | None] = Decoder
    emits: ClassVar[tuple[Told, ...]] = (CardDrawn, CardUnreadable, CutCardDrawn)
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    caveat: ClassVar[str] = "its timing is assumed"
    Options: ClassVar[type[HidShoeOptions]] = HidShoeOptions
    commands: ClassVar[tuple[type[Command], ...]] = ()
    tells_cards: ClassVar[bool] = True
    faults: ClassVar[tuple[Fault, ...]] = (
        Fault(
            UNREADABLE,
            "the scanner detected a card but could not read its code",
            f"{ASK_THE_TABLE}; wipe the scanner's window; take the card out if its code is scratched, bent or dirty",
            "by itself",
            "waits for a person",
        ),
        Fault(
            UNFINISHED,
            "the scanner did not finish a code",
            f"{ASK_THE_TABLE}; check the plug of the scanner and that it is set to end each code with Enter",
            "by itself",
            "waits for a person",
        ),
        Fault(
            UNKNOWN_CODE,
            "the scanner read a code that belongs to no card",
            f"{ASK_THE_TABLE}; check that these are the house's cards and that `order` or `codes` fit them",
            "by itself",
            "waits for a person",
        ),
        Fault(
            REPEATED,
            "the same code was read again faster than a hand can deal",
            f"{ASK_THE_TABLE}: one card read twice, or two cards stuck together",
            "by itself",
            "waits for a person",
        ),
        Fault(
            MISSCAN,
            "a second card was pulled before the first was accepted",
            f"{ASK_THE_TABLE}: two cards are out; check that the lip of the shoe lets only one card through",
            "by itself",
            "waits for a person",
        ),
        Fault(
            KEY_STUCK,
            "the scanner holds a key down: its codes may be wrong",
            "unplug the scanner and plug it in again; if it happens again, replace scanner or cable",
            "by a person",
            "waits for a person at the next card",
        ),
    )

    def __init__(self, options: HidShoeOptions, memory: bytes | None = None) -> None:
        """`memory`: the open faults."""
        self._options = options
        kept = msgspec.json.decode(memory, type=_Memory) if memory else _Memory()
        self._faults = Faults(self.faults, kept.faults)
        self._standing = self._faults.standing
        fold: Callable[[str], str] = str.upper if options.ignore_case else str
        self._fold = fold
        self._codes = {fold(code): card for code, card in options.codes.items()}
        self._cut_cards = {fold(code) for code in options.cut_cards}
        self._no_read = {fold(code) for code in options.no_read}
        self._decoder = Decoder()
        self._last = ""
        self._last_tick = float("-inf")
        self._again = False
        self._held_since: float | None = None
        self._noise = 0
        self._good = 0

    async def run(self, link: Link, emit: Emit) -> None:
        """Come online, then report every card."""
        chunk = link.stamp()
        await emit([Sighting(DeviceOnline(continuous=False, model=MODEL), b"", chunk)])
        decoder = self._decoder
        while True:
            try:
                async with timeout(self._patience(link.stamp().tick)):
                    fresh = await link.read()
            except TimeoutError:
                chunk = link.stamp()
                await self._tell(emit, decoder.quiet() if decoder.waiting else [], chunk)
                continue
            except LinkLost:
                await self._tell(emit, decoder.quiet(), chunk)
                raise
            # Further reports may have arrived while the last card was made durable: their times separate the cards.
            if decoder.waiting and fresh.tick - chunk.tick >= self._options.quiet:
                await self._tell(emit, decoder.quiet(), chunk)
            chunk = fresh
            await self._tell(emit, decoder.feed(chunk.data), chunk)
            if self._noise > self._options.noise_limit:
                raise LinkLost(
                    f"{self._noise} bytes and no code among them: is this the scanner, set to type as a keyboard?"
                )

    def _patience(self, now: float) -> float | None:
        """Seconds to wait for the next report before the next check."""
        if self._decoder.waiting:
            return self._options.quiet
        if self._held_since is not None and not self._faults.is_open(KEY_STUCK):
            return max(self._held_since + self._options.stuck - now, 0.0)
        return None

    async def _tell(self, emit: Emit, messages: Sequence[Message], chunk: Chunk) -> None:
        """Emit the events of these messages in one transaction, with the faults that are open afterwards."""
        sightings = [
            Sighting(event, message.raw, chunk) for message in messages for event in self._hear(message, chunk)
        ]
        sightings += [Sighting(event, b"", chunk) for event in self._keys(chunk.tick)]
        standing = self._faults.standing
        if not sightings:
            return
        memory = None if standing == self._standing else msgspec.json.encode(_Memory(standing))
        self._standing = standing
        await emit(sightings, memory)

    def _hear(self, message: Message, chunk: Chunk) -> Iterator[Event]:
        match message:
            case Code(text):
                self._noise = 0
                yield from self._read(self._fold(text), chunk.tick)
            case Broken(why, text, raw):
                self._noise += len(raw)
                self._last_tick = float("-inf")
                code, said = {
                    "unfinished": (UNFINISHED, f"it typed {len(text)} characters"),
                    "garbage": (UNREADABLE, "the typed code was garbled"),
                    "held": (KEY_STUCK, f"it typed {len(text)} characters"),
                    "long": (UNREADABLE, "the typed code has no end"),
                }[why]
                yield from self._doubt(code, said)

    def _read(self, code: str, tick: float) -> Iterator[Event]:
        """A complete code."""
        soon = tick - self._last_tick < self._options.repeat
        again = code == self._last
        self._last, self._last_tick = code, tick
        if not (soon and again):
            self._again = False
        if code in self._no_read:
            yield from self._doubt(UNREADABLE, f"it typed {code}")
            return
        card = self._codes.get(code) if self._codes else card_in(code, self._options.order)
        if card is None and code not in self._cut_cards:
            yield from self._doubt(UNKNOWN_CODE, f"one of {len(code)} characters; the journal contains the typed code")
            return
        if soon and again:
            if not self._again:
                self._again = True
                yield from self._doubt(REPEATED)
            return
        if soon and card is not None:
            yield from self._doubt(MISSCAN)
            return
        yield CutCardDrawn() if card is None else CardDrawn(card)
        yield from self._faults.end(UNREADABLE, UNFINISHED, UNKNOWN_CODE, REPEATED, MISSCAN, KEY_STUCK)
        self._good += 1
        if self._good >= GOOD_RUN:
            self._good = 0
            self._faults.good_cycle()

    def _doubt(self, code: str, detail: str = "") -> Iterator[Event]:
        """A doubtful card and the reason. It is not named: it may lie face down, and all readers get faults."""
        self._good = 0
        yield CardUnreadable()
        yield from self._faults.strike(code, detail)

    def _keys(self, tick: float) -> Iterator[Event]:
        """Watch how long a key is held."""
        held = self._decoder.held
        if not held:
            if self._held_since is not None:
                yield from self._faults.end(KEY_STUCK)
            self._held_since = None
        elif self._held_since is None:
            self._held_since = tick
        elif tick >= self._held_since + self._options.stuck and not self._faults.is_open(KEY_STUCK):
            self._good = 0
            yield from self._faults.strike(KEY_STUCK, f"the key {held}")
