"""A simulated shoe with a barcode scanner in its lip: cards slide out, the scanner types their codes.

The dealer is the caller, as for every shoe (`bee_tek_shoe`): `draw`, `shuffle`, `left`, `drawn`, `strays`. The codes
are suit then rank, `H10`, unless another table is passed; the cut card has its own code, and for an unreadable card the
scanner types NO_READ.

A fault waits for the next card; `stray_reports` come at once.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar, Literal

from protocols.hid_cards import ENTER, RELEASED, REPORT, code_of, press, strokes_of
from simulators.devices.bee_tek_shoe import Cards
from simulators.devices.device import Ailment

__all__ = ["HidShoe"]

GAP = 0.008  # seconds between two reports: the polling interval of a full-speed keyboard
READING_S = 0.05  # from the card's first edge to its code
REBOOT_S = 2.0
REREAD = 0.25  # seconds after which a scanner reads a card before it again
SECOND_CARD = 0.1
CUT, NO_READ, FOREIGN = "CUT", "NOREAD", "4901234567894"
WAITING = 512  # unread reports; the oldest are lost

_DOUBT = "card.unreadable"


class HidShoe(Cards):
    """The device."""

    name: ClassVar[str] = "hid_shoe"
    faults: ClassVar[Mapping[str, Ailment]] = {
        "unreadable": Ailment(
            "a card's code is scratched: the scanner types NOREAD", (_DOUBT, "shoe.unreadable"), "suspended"
        ),
        "wrong_code": Ailment(
            "a card of another house, or a sticker: a code that belongs to no card",
            (_DOUBT, "shoe.unknown_code"),
            "suspended",
        ),
        "missing_card": Ailment(
            "a card leaves the shoe unseen: only the count of the coup can show it, in three of four cases",
            (),
            "suspended",
        ),
        "double_draw": Ailment(
            "a second card is pulled before the first was accepted", (_DOUBT, "shoe.misscan"), "suspended"
        ),
        "repeat_scan": Ailment("a card is read twice", (_DOUBT, "shoe.repeated"), "suspended"),
        "half_code": Ailment("the scanner stops in the middle of a code", (_DOUBT, "shoe.unfinished"), "suspended"),
        "no_enter": Ailment("the scanner omits the Enter after a code", (_DOUBT, "shoe.unfinished"), "suspended"),
        "stray_reports": Ailment("reports that no keyboard sends", (_DOUBT, "shoe.unreadable"), "suspended"),
        "power_loss": Ailment(
            f"the scanner starts again in the middle of a code and reads nothing for {REBOOT_S:g} s",
            (_DOUBT, "shoe.unfinished"),
            "suspended",
        ),
        "stuck_key": Ailment(
            "a key stays down after the next code: the codes that follow cannot be trusted",
            ("shoe.key_stuck", _DOUBT),
            "suspended",
            person=True,
        ),
        "stuck_card": Ailment(
            "the next card stays under the window and is read again and again",
            (_DOUBT, "shoe.repeated"),
            "suspended",
            person=True,
        ),
        "dirty_window": Ailment(
            "no card is read until somebody wipes the window", (_DOUBT, "shoe.unreadable"), "suspended", person=True
        ),
    }
    line: ClassVar[Mapping[str, Ailment]] = {
        "garbage": Ailment("noise before the next report", (_DOUBT, "shoe.unreadable"), "suspended"),
        "half_frame": Ailment("half of the next report is lost", (_DOUBT, "shoe.unreadable"), "suspended"),
        "repeated": Ailment("the next reports come twice: a key that is down goes down once", (), "counts"),
        "silence": Ailment("nothing passes for a while: cards drawn meanwhile are unseen", (), "counts"),
        "slow_drip": Ailment("bytes come one by one", (), "counts"),
        "wrong_baud": Ailment(
            "bytes are scrambled for a while: a card drawn meanwhile is reported as unreadable", (), "counts"
        ),
        "unplugged": Ailment("the plug is pulled", ("device.offline",), "suspended"),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (("draw", 2.0),)

    def __init__(
        self, rng: Random, decks: int = 8, *, codes: Mapping[str, str] | None = None, ten: Literal["10", "T"] = "10"
    ) -> None:
        """`decks` shuffled decks. `codes`: card to code, if the cards carry other codes; `ten`: how the ten is
        written.
        """
        super().__init__(rng, decks)
        self._codes = codes or {card: code_of(card, ten=ten) for card in set(self._cards)}
        self._line: deque[tuple[float, bytes]] = deque(maxlen=WAITING)  # each report with the second of its poll
        self._faults: deque[str] = deque(maxlen=16)
        self._blind_until = float("-inf")
        self._held: tuple[int, ...] = ()
        self._dirty = False
        self._lying = ""
        self._reread_at = float("inf")

    def draw(self, now: float) -> str:
        """The dealer takes the next card. Raises ValueError where none is left."""
        card = self.take()
        code = self._codes[card]
        fault = self._faults.popleft() if self._faults else ""
        if now < self._blind_until:
            return card
        start = now + READING_S
        match fault:
            case _ if self._dirty:
                self._type(NO_READ, start)
            case "unreadable":
                self._type(NO_READ, start)
            case "wrong_code":
                self._type(FOREIGN, start)
            case "missing_card":
                pass
            case "repeat_scan":
                self._type(code, start)
                self._type(code, start + REREAD)
            case "double_draw" if other := self.stray(card):
                self._type(code, start)
                self._type(self._codes[other], start + SECOND_CARD)
            case "no_enter":
                self._type(code, start, enter=False)
            case "half_code" | "power_loss":
                self._type(code[: self._rng.randrange(1, len(code))], start, enter=False)
                if fault == "power_loss":
                    self._blind_until = now + REBOOT_S
            case "stuck_key":
                self._type(code, start)
                self._held = (strokes_of(code)[0][1],)
                self._send(press(self._held[0]), start)
            case "stuck_card":
                self._type(code, start)
                self._lying, self._reread_at = code, start + REREAD
            case _:
                self._type(code, start)
        return card

    def draw_cut(self, now: float) -> None:
        """The cut card comes out."""
        if now >= self._blind_until:
            self._type(CUT, now + READING_S)

    def _type(self, code: str, start: float, *, enter: bool = True) -> None:
        up = press(self._held[0]) if self._held else RELEASED
        for modifiers, key in [*strokes_of(code), *([(0, ENTER)] if enter else [])]:
            if key not in self._held:
                self._send(press(key, modifiers, *self._held), start)
                self._send(up, start)

    def _send(self, report: bytes, start: float) -> None:
        """The next report, GAP after the one before and not before `start`."""
        last = self._line[-1][0] if self._line else float("-inf")
        self._line.append((max(start, last) + GAP, report))

    def due(self) -> float:
        """Seconds of the next report, or of the next reading of a card that lies before the scanner."""
        return min(self._line[0][0] if self._line else float("inf"), self._reread_at)

    def wake(self, now: float) -> bytes:
        """The reports of the time until `now`."""
        while self._reread_at <= now:
            self._type(self._lying, self._reread_at)
            self._reread_at += REREAD
        said = b""
        while self._line and self._line[0][0] <= now:
            said += self._line.popleft()[1]
        return said

    def hear(self, data: bytes, now: float) -> bytes:  # noqa: ARG002 - as every device
        """Ignore bytes: a scanner has no input."""
        return b""

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """The hand of a dealer. Drawing from an empty shoe shuffles first."""
        return {"draw": self._pull, "cut_card": self.draw_cut, "shuffle": self.shuffle}

    def _pull(self, now: float) -> str:
        if not self.left:
            self.shuffle(now)
        return self.draw(now)

    def inject(self, fault: str, now: float) -> None:
        """Begin one of `faults`. Raises ValueError for a fault it does not have."""
        match fault:
            case "stray_reports":
                for _ in range(5):
                    self._send(bytes((0, self._rng.randrange(1, 256))) + self._rng.randbytes(REPORT - 2), now)
            case "dirty_window":
                self._dirty = True
            case _ if fault in self.faults:
                self._faults.append(fault)
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}, only {', '.join(self.faults)}")

    def repair(self, now: float) -> None:
        """Plug the scanner in again, pull out the card before it, wipe the window."""
        if self._held:
            self._held = ()
            self._send(RELEASED, now)
        self._dirty = False
        self._lying, self._reread_at = "", float("inf")
