"""USPC Bee-Tek electronic shoe, simulated: decks of cards, and a 9600 baud line that says each one drawn.

The dealer is the caller: `draw` takes a card and the shoe reads it as it slides out. `drawn` is what the dealer dealt
since the last shuffle, `strays` what left the shoe beside that; what the wire says of them is another matter.

Faults: `garbage` comes at once; `silence` loses everything for a while; the others wait, one for each next draw:
`half_frame` (cut short), `unreadable` (wrong checksum), `missing_card` (leaves unseen), `repeat_frame` (said twice),
`double_draw` (a second card slides out with the first).
"""

from collections import deque
from itertools import product
from random import Random
from typing import ClassVar

from protocols.bee_tek_shoe import CR_LF, FRAME_LENGTH, Drawn, encode, encode_echo

BYTE = 10 / 9600  # seconds: start, eight bits, stop
READING = 0.04  # seconds from the card's first edge to its line
SILENCE = 20.0
WAITING = 4096  # bytes on a line that nobody reads; the oldest are lost, as in a UART


class Shoe:
    """The device."""

    name: ClassVar[str] = "bee_tek_shoe"
    faults: ClassVar[tuple[str, ...]] = (
        "garbage",
        "half_frame",
        "unreadable",
        "silence",
        "double_draw",
        "missing_card",
        "repeat_frame",
    )

    def __init__(self, rng: Random, decks: int = 8, *, game_mode: bool = False) -> None:
        """`decks` shuffled decks; `game_mode` repeats each card's two digits after its line."""
        self._rng = rng
        self._decks = decks
        self._game_mode = game_mode
        self._line: deque[tuple[float, int]] = deque(maxlen=WAITING)  # each byte with the second it is over
        self._faults: deque[str] = deque(maxlen=16)
        self._mute_until = float("-inf")
        self.shuffle(0.0)

    def shuffle(self, now: float) -> None:  # noqa: ARG002 - as every shoe
        """All cards back into the shoe, in a new order. It says nothing about that."""
        self._cards = [rank + suit for _ in range(self._decks) for rank, suit in product("A23456789TJQK", "SHDC")]
        self._rng.shuffle(self._cards)
        self.drawn: list[str] = []
        self.strays: list[str] = []

    @property
    def left(self) -> int:
        """How many cards are in the shoe."""
        return len(self._cards)

    def draw(self, now: float) -> str:
        """The dealer takes the next card. Raises ValueError where none is left."""
        if not self._cards:
            raise ValueError("the shoe is empty")
        card = self._cards.pop()
        self.drawn.append(card)
        frame = self._frame(card)
        match self._faults.popleft() if self._faults else "":
            case "half_frame":
                frame = frame[: self._rng.randrange(1, FRAME_LENGTH)]
            case "unreadable":
                frame = frame[:5] + b"%02X" % (int(frame[5:FRAME_LENGTH], 16) ^ self._rng.randrange(1, 256)) + CR_LF
            case "missing_card":
                frame = b""
            case "repeat_frame":
                frame += frame
            case "double_draw" if other := self._another(card):
                self._cards.remove(other)
                self.strays.append(other)
                frame += self._frame(other)
            case _:
                pass
        self._say(frame, now + READING)
        return card

    def _frame(self, card: str) -> bytes:
        return encode(Drawn(card)) + (encode_echo(card) + CR_LF if self._game_mode else b"")

    def _another(self, card: str) -> str | None:
        """The next card that is not the same one of another deck."""
        return next((other for other in reversed(self._cards) if other != card), None)

    def _say(self, data: bytes, start: float) -> None:
        if start < self._mute_until:
            return
        if self._line:
            start = max(start, self._line[-1][0])
        self._line.extend((start + n * BYTE, byte) for n, byte in enumerate(data, 1))

    def due(self) -> float:
        """When the last byte on the line is over."""
        return self._line[-1][0] if self._line else float("inf")

    def wake(self, now: float) -> bytes:
        """The bytes that are over by `now`, whole frames or not."""
        said = bytearray()
        while self._line and self._line[0][0] <= now:
            said.append(self._line.popleft()[1])
        return bytes(said)

    def hear(self, data: bytes, now: float) -> bytes:  # noqa: ARG002 - as every device
        """It does not listen."""
        return b""

    def inject(self, fault: str, now: float) -> None:
        """Begin one of `faults`. Raises ValueError for a fault it does not have."""
        match fault:
            case "garbage":
                self._say(self._rng.randbytes(self._rng.randrange(3, 20)), now)
            case "silence":
                self._line.clear()
                self._mute_until = now + SILENCE
            case _ if fault in self.faults:
                self._faults.append(fault)
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}, only {', '.join(self.faults)}")
