"""Charts, tests, alarms and shoes: the values that fairness counts and finds, and that pages and alerts show."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from daemon.words import words
from protocols.contract.documents import Alert
from protocols.contract.facts import CardFacts, CrapsFacts, DiceFacts, FrenchBankFacts, RouletteFacts, RoundFacts
from protocols.contract.reasons import Reason

__all__ = [
    "AMERICAN_WHEEL",
    "CARD_PLACE",
    "DECK",
    "SPANS",
    "WHEEL",
    "Alarm",
    "Chart",
    "Phase",
    "Ranges",
    "Shoe",
    "Span",
    "Test",
    "counted",
    "shown",
]

RANGES: Final = 200


# What makes a game unfair; the rest is wear.
GRAVE: Final = frozenset(("fairness.wheel", "fairness.dice", "fairness.cards", "fairness.too_often"))


# The pockets of a wheel with one zero, clockwise, in the French order.
WHEEL: Final = (
    *("0", "32", "15", "19", "4", "21", "2", "25", "17", "34", "6", "27", "13", "36", "11", "30", "8", "23", "10"),
    *("5", "24", "16", "33", "1", "20", "14", "31", "9", "22", "18", "29", "7", "28", "12", "35", "3", "26"),
)
# The American order of Decreto Executivo 261/22 art. 1(2), the option `order` of `angola.american-roulette`.
AMERICAN_WHEEL: Final = (
    *("0", "28", "9", "26", "30", "11", "7", "20", "32", "17", "5", "22", "34", "15", "3", "24", "36", "13", "1"),
    *("27", "10", "25", "29", "12", "8", "19", "31", "18", "6", "21", "33", "16", "4", "23", "35", "14", "2"),
)


DECK: Final = tuple(rank + suit for suit in "SHDC" for rank in "A23456789TJQK")


_SIGNS: Final = {"S": "♠", "H": "♥", "D": "♦", "C": "♣"}


FACES: Final = 6
CARD_PLACE: Final = {card: place for place, card in enumerate(DECK)}


Phase: TypeAlias = Literal["betting", "spin", "shake", "count", "play", "round"]


Span: TypeAlias = Literal["today", "week", "month", "service", "all"]


SPANS: Final[tuple[Span, ...]] = ("service", "today", "week", "month", "all")


class Chart(Struct, frozen=True, order=True):
    """One chart: `name` is wheel, dice, cards, reads, shuffles, shuffle, phase.spin …

    `device` is empty where it is unknown, and for the phases of a round.
    """

    table: str
    name: str
    device: str = ""


class Test(Struct, frozen=True):
    """The bet against fairness since the last service: now, its highest value, and its alarm threshold (logarithms)."""

    n: int
    log_e: float
    peak: float
    threshold: float

    @property
    def alarmed(self) -> bool:
        """Whether the test has alarmed: an alarm stays until the device's next service."""
        return self.peak >= self.threshold

    @property
    def odds(self) -> float:
        """The value of a stake of 1 now."""
        return math.exp(min(self.log_e, 700.0))

    @property
    def alarm(self) -> float:
        """The value of a stake of 1 at which the test alarms."""
        return math.exp(self.threshold)


class Alarm(Struct, frozen=True):
    """A finding that is not chance: `code` is stable, `key` its text with `values`."""

    table: str
    device: str
    code: str
    key: str
    values: dict[str, str | int]

    @property
    def remedy(self) -> str:
        """The words for what to do."""
        return f"fair.do_{self.code.partition('.')[2]}"

    @property
    def name(self) -> str:
        """The name of the alarm at its table."""
        code = self.code.replace(".", "-")
        return f"{self.device}-{code}" if self.device else code

    @property
    def alert(self) -> Alert:
        """The alarm as an alert."""
        severity = "error" if self.code in GRAVE else "warning"
        why, to_do = Reason(self.key.partition(".")[2], self.values), Reason(self.remedy.partition(".")[2])
        return words.alert(self.code, why, to_do, severity=severity, device=self.device)


class Shoe(Struct, frozen=True):
    """The cards of one shoe as far as results showed them, in the order of DECK; `decks` is 0 if unknown."""

    name: str
    day: str
    decks: int
    counts: tuple[int, ...]

    @property
    def drawn(self) -> int:
        """The number of known cards."""
        return sum(self.counts)

    @property
    def impossible(self) -> list[str]:
        """The cards that came more often than its decks have them, unless there are too many in all: two shoes in
        one.
        """
        if not self.decks or self.drawn > 52 * self.decks:
            return []
        return [card for card, count in zip(DECK, self.counts, strict=True) if count > self.decks]


class Ranges:
    """The used numbers as ranges. Bounded: with too many gaps, the oldest one is closed."""

    def __init__(self, text: str = "") -> None:
        """Parse `text`, which `str` wrote."""
        pairs = [one.split("-") for one in text.split(",") if one]
        self._spans = [(int(first), int(last)) for first, last in pairs]

    def take(self, number: int) -> int | None:
        """The distance to the highest number (negative: it fills a gap), or None if it was used or its gap closed."""
        spans = self._spans
        if not spans:
            spans.append((number, number))
            return 1
        first, last = spans[-1]
        beyond = number - last
        if beyond == 1:
            spans[-1] = first, number
            return 1
        place = bisect_right(spans, (number, math.inf))
        before = spans[place - 1] if place else None
        if before is not None and before[1] >= number:
            return None
        if not place and len(spans) >= RANGES:
            return None  # its gap was closed
        new = (number, number)
        if before is not None and before[1] == number - 1:
            place -= 1
            new = (before[0], number)
            del spans[place]
        if place < len(spans) and spans[place][0] == number + 1:
            new = (new[0], spans[place][1])
            del spans[place]
        spans.insert(place, new)
        if len(spans) > RANGES:
            spans[:2] = [(spans[0][0], spans[1][1])]
        return beyond

    def __str__(self) -> str:
        return ",".join(f"{first}-{last}" for first, last in self._spans)


def shown(card: str) -> str:
    """A card as people write it: 10♥."""
    return card[0].replace("T", "10") + _SIGNS[card[1]]


def counted(outcome: RoundFacts, *, void: bool) -> dict[str, dict[str, int]]:
    """The counts of a result, by the name of the chart: the pocket, the faces, the cards.

    A round of French bank has many throws. The deciding one is no fair sample of the dice, but all of them (`shown`)
    are. At craps they are not reported. The cards of a void round count, because they came out of the shoe.
    """
    found: Iterable[str]
    match outcome:
        case CardFacts(hands=hands):
            name, found = "cards", [card for hand in hands.values() for card in hand if card in CARD_PLACE]
        case _ if void:
            return {}
        case RouletteFacts(pocket=pocket) if pocket in WHEEL:
            name, found = "wheel", (pocket,)
        case FrenchBankFacts(shown=shown):
            whole = len(shown) == FACES and min(shown) >= 0 < sum(shown)
            return {"dice": {str(face): count for face, count in enumerate(shown, 1) if count}} if whole else {}
        case CrapsFacts():
            return {}
        case DiceFacts(faces=faces) if all(1 <= face <= FACES for face in faces):
            name, found = "dice", map(str, faces)
        case _:
            return {}
    counts = Counter(found)
    return {name: dict(counts)} if counts else {}
