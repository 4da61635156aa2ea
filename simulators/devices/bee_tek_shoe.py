"""A simulated USPC Bee-Tek electronic shoe: decks of cards, and a 9600 baud line that reports each drawn card.

The dealer is the caller: `draw` takes a card, and the shoe reads it as it slides out. `drawn` is what the dealer dealt
since the last shuffle, `strays` what left the shoe besides; the wire may differ from both.

A fault waits for the next draw; a dirty window stays until it is cleaned.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from random import Random
from typing import Any, ClassVar

from protocols import bee_tek_text
from protocols.bee_tek_shoe import CR_LF, FRAME_LENGTH, Drawn, Other, encode, encode_echo
from simulators.devices.device import Ailment

__all__ = ["Cards", "Shoe", "TextShoe"]

BYTE_S = 10 / 9600  # start, eight bits, stop
READING_S = 0.04  # from the card's first edge to its line
REBOOT_S = 3.0
WAITING = 4096  # unread bytes on the line; the oldest are lost, as in a UART


class Cards:
    """Decks of cards in a shoe with any reader, and a dealer's hand."""

    def __init__(self, rng: Random, decks: int) -> None:
        """`decks` shuffled decks."""
        self._rng = rng
        self._decks = decks
        self.shuffle(0.0)

    def shuffle(self, now: float) -> None:  # noqa: ARG002 - as every act
        """All cards back into the shoe, in a new order. The shoe does not report it."""
        self._cards = [rank + suit for _ in range(self._decks) for rank, suit in product("A23456789TJQK", "SHDC")]
        self._rng.shuffle(self._cards)
        self.drawn: list[str] = []
        self.strays: list[str] = []

    def fill(self, cards: Iterable[str]) -> None:
        """Only these cards, in a new order, for games that are dealt from one deck."""
        self._cards = list(cards)
        self._rng.shuffle(self._cards)
        self.drawn, self.strays = [], []

    @property
    def left(self) -> int:
        """How many cards are in the shoe."""
        return len(self._cards)

    def take(self) -> str:
        """The dealer takes the next card. Raises ValueError where none is left."""
        if not self._cards:
            raise ValueError("the shoe is empty")
        card = self._cards.pop()
        self.drawn.append(card)
        return card

    def stray(self, card: str) -> str | None:
        """The next card that is not `card` of another deck slides out too; None where there is none."""
        other = next((other for other in reversed(self._cards) if other != card), None)
        if other is not None:
            self._cards.remove(other)
            self.strays.append(other)
        return other


class Shoe(Cards):
    """The device."""

    name: ClassVar[str] = "bee_tek_shoe"
    faults: ClassVar[Mapping[str, Ailment]] = {
        "unreadable": Ailment(
            "a card's code is damaged: its line has a wrong checksum",
            ("card.unreadable", "shoe.unreadable"),
            "suspended",
        ),
        "cut_short": Ailment(
            "the shoe stops in the middle of a card's line", ("card.unreadable", "shoe.unreadable"), "suspended"
        ),
        "missing_card": Ailment(
            "a card leaves the shoe unseen: only the count of the coup can show it, in three of four cases",
            (),
            "suspended",
        ),
        "repeat_frame": Ailment("a card is sent twice", ("card.unreadable", "shoe.repeated"), "suspended"),
        "double_draw": Ailment(
            "a second card slides out with the first", ("card.unreadable", "shoe.misscan"), "suspended"
        ),
        "unknown_message": Ailment(
            "a message that is not documented, before the next card", ("shoe.unknown_message",), "counts"
        ),
        "power_loss": Ailment(
            f"the power fails in the middle of a card's line; cards of the next {REBOOT_S:g} s are unseen",
            ("card.unreadable", "shoe.unreadable"),
            "suspended",
        ),
        "dirty_window": Ailment(
            "dust before the reader: no card is read right until somebody wipes it",
            ("card.unreadable", "shoe.unreadable"),
            "suspended",
            person=True,
        ),
    }
    line: ClassVar[Mapping[str, Ailment]] = {
        "garbage": Ailment("noise before the next card's line", ("card.unreadable", "shoe.unreadable"), "suspended"),
        "half_frame": Ailment(
            "half of the next card's line is lost", ("card.unreadable", "shoe.unreadable"), "suspended"
        ),
        "repeated": Ailment("the next lines come twice", ("card.unreadable", "shoe.repeated"), "suspended"),
        "silence": Ailment("nothing passes for a while: cards drawn meanwhile are unseen", (), "counts"),
        "slow_drip": Ailment("bytes come one by one", (), "counts"),
        "wrong_baud": Ailment(
            "bytes are scrambled for a while: a card drawn meanwhile is reported as unreadable", (), "counts"
        ),
        "unplugged": Ailment("the cable is pulled", ("device.offline",), "suspended"),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (("draw", 2.0),)

    def __init__(self, rng: Random, decks: int = 8, *, game_mode: bool = False) -> None:
        """`decks` shuffled decks; `game_mode` repeats each card's two digits after its line."""
        super().__init__(rng, decks)
        self._game_mode = game_mode
        self._line: deque[tuple[float, int]] = deque(maxlen=WAITING)  # each byte with the second of its end
        self._faults: deque[str] = deque(maxlen=16)
        self._mute_until = float("-inf")
        self._dirty = False

    def draw(self, now: float) -> str:
        """The dealer takes the next card. Raises ValueError where none is left."""
        card = self.take()
        if now < self._mute_until:
            return card
        frame = self._frame(card)
        if self._dirty:
            frame = self._misread(frame)
        match self._faults.popleft() if self._faults else "":
            case "cut_short":
                frame = self._cut(frame)
            case "power_loss":
                frame = self._cut(frame)
                self._mute_until = now + REBOOT_S
            case "unreadable" if not self._dirty:
                frame = self._misread(frame)
            case "missing_card":
                frame = b""
            case "repeat_frame":
                frame += frame
            case "double_draw" if other := self.stray(card):
                frame += self._frame(other)
            case "unknown_message":
                frame = self._unknown() + frame
            case fault:
                frame = self._besides(fault) + frame
        self._say(frame, now + READING_S)
        return card

    def _frame(self, card: str) -> bytes:
        return encode(Drawn(card)) + (encode_echo(card) + CR_LF if self._game_mode else b"")

    def _cut(self, frame: bytes) -> bytes:
        return frame[: self._rng.randrange(1, FRAME_LENGTH)]

    def _unknown(self) -> bytes:
        return encode(Other("0E", "31"))

    def _besides(self, fault: str) -> bytes:  # noqa: ARG002 - this wire has no further messages
        return b""

    def _misread(self, frame: bytes) -> bytes:
        return frame[:5] + b"%02X" % (int(frame[5:FRAME_LENGTH], 16) ^ self._rng.randrange(1, 256)) + CR_LF

    def _say(self, data: bytes, start: float) -> None:
        if self._line:
            start = max(start, self._line[-1][0])
        self._line.extend((start + n * BYTE_S, byte) for n, byte in enumerate(data, 1))

    def due(self) -> float:
        """When the last byte on the line has been sent."""
        return self._line[-1][0] if self._line else float("inf")

    def wake(self, now: float) -> bytes:
        """The bytes sent by `now`, also parts of frames."""
        said = bytearray()
        while self._line and self._line[0][0] <= now:
            said.append(self._line.popleft()[1])
        return bytes(said)

    def hear(self, data: bytes, now: float) -> bytes:  # noqa: ARG002 - as every device
        """It has no input: bytes are ignored."""
        return b""

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """The hand of a dealer. Drawing from an empty shoe shuffles first."""
        return {"draw": self._pull, "shuffle": self.shuffle}

    def _pull(self, now: float) -> str:
        if not self.left:
            self.shuffle(now)
        return self.draw(now)

    def inject(self, fault: str, now: float) -> None:  # noqa: ARG002 - as every device
        """Begin one of `faults`, with the next card. Raises ValueError for a fault it does not have."""
        if fault not in self.faults:
            raise ValueError(f"{self.name} has no fault {fault!r}, only {', '.join(self.faults)}")
        if fault == "dirty_window":
            self._dirty = True
        else:
            self._faults.append(fault)

    def repair(self, now: float) -> None:  # noqa: ARG002 - as every device
        """Wipe the window."""
        self._dirty = False


class TextShoe(Shoe):
    """The same shoe in the mode that sends text."""

    faults: ClassVar[Mapping[str, Ailment]] = {
        **Shoe.faults,
        "unreadable": Ailment(
            "a card's code is damaged: the shoe reports that it did not read it, by a line, an alarm or both",
            ("card.unreadable", "shoe.unreadable"),
            "suspended",
        ),
        "alarm": Ailment("an alarm whose code is not published, before the next card", ("shoe.alarm",), "counts"),
        "warning": Ailment("a warning, before the next card", ("shoe.warning",), "counts"),
    }

    def __init__(self, rng: Random, decks: int = 8, *, operation: str = bee_tek_text.GAME, ten: str = "T") -> None:
        """`operation`: what its key switch and display are set to. `ten`: how it writes that rank."""
        super().__init__(rng, decks)
        self._operation = operation
        self._ten = ten

    def _frame(self, card: str) -> bytes:
        line_end = self._rng.choice((b"\r\n", b"\n", b""))
        return bee_tek_text.encode(Drawn(card, b"", self._operation), ten=self._ten, line_end=line_end)

    def _cut(self, frame: bytes) -> bytes:
        return frame[: self._rng.randrange(2, frame.index(b">"))]

    def _misread(self, frame: bytes) -> bytes:  # noqa: ARG002 - the card is not in it
        failed = bee_tek_text.encode(bee_tek_text.NotRead(self._operation))
        alarm = bee_tek_text.encode(bee_tek_text.Alarm("GameAlarm", "E3", "Card Not Read"))
        return self._rng.choice((failed, alarm, failed + alarm, alarm + failed))

    def _unknown(self) -> bytes:
        return bee_tek_text.encode(Other("Shuffle Check", "Done"))

    def _besides(self, fault: str) -> bytes:
        match fault:
            case "alarm":
                return bee_tek_text.encode(bee_tek_text.Alarm("GameAlarm", "E9", "Door Open"))
            case "warning":
                return bee_tek_text.encode(bee_tek_text.Warned("0x01"))
            case _:
                return b""
