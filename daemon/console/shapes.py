"""How a round looks: the values that templates draw. Only what the ruleset's own view shows is known here."""

from typing import Any

from msgspec import Struct

from daemon.console import words

__all__ = ["Card", "Chip", "Hand", "RoundShape", "chip", "pips", "round_shape"]

SUITS = {"S": ("♠", "spades"), "H": ("♥", "hearts"), "D": ("♦", "diamonds"), "C": ("♣", "clubs")}
FACTS = ("antes", "raised", "folded", "undecided", "missing")
# Where the pips of a die stand, on a square of 3 by 3.
PIPS = {
    1: ((1, 1),),
    2: ((0, 0), (2, 2)),
    3: ((0, 0), (1, 1), (2, 2)),
    4: ((0, 0), (2, 0), (0, 2), (2, 2)),
    5: ((0, 0), (2, 0), (1, 1), (0, 2), (2, 2)),
    6: ((0, 0), (2, 0), (0, 1), (2, 1), (0, 2), (2, 2)),
}


class Card(Struct, frozen=True):
    """One card face up: rank, suit's sign, colour, and the suit's key for words. An unknown one has no rank."""

    rank: str
    suit: str = ""
    red: bool = False
    key: str = ""


class Hand(Struct, frozen=True):
    """One hand: `kind` player, banker, dealer or seat; `seat` and `number` where it is a seat's."""

    kind: str
    cards: tuple[Card, ...]
    total: int | None = None
    seat: int = 0
    number: int = 0
    note: str = ""


class Chip(Struct, frozen=True):
    """A result in a word or a number, with its colour; `void` stands for itself."""

    text: str
    kind: str = ""
    title: str = ""


class RoundShape(Struct, frozen=True):
    """What is drawn of a round, whatever the game."""

    hands: tuple[Hand, ...] = ()
    dice: tuple[int, ...] = ()
    figures: tuple[str, ...] = ()
    pocket: str = ""
    colour: str = ""
    number: int | None = None
    count: int | None = None
    total: int | None = None
    say: str = ""
    reason: str = ""
    facts: tuple[tuple[str, str], ...] = ()


def card(code: Any) -> Card:
    """ "TD" is the ten of diamonds."""
    text = str(code)
    rank, suit = text[:-1], text[-1:]
    if suit not in SUITS or not rank:
        return Card("")
    return Card({"T": "10"}.get(rank, rank), SUITS[suit][0], suit in "HD", SUITS[suit][1])


def pips(face: int) -> tuple[tuple[int, int], ...]:
    """Where the pips of `face` stand: column and row, each 0 to 2."""
    return PIPS.get(face, ())


def colour_of(outcome: dict[str, Any]) -> str:
    """Of the pocket of a roulette outcome: which are red the house says, and a zero has no colour there."""
    return str(outcome.get("colour", "")) or "green"


def round_shape(detail: dict[str, Any], lang: words.Lang) -> RoundShape:
    """The drawing of `round/state`'s detail, or of a result's outcome."""
    say = detail.get("say")
    pocket = str(detail.get("pocket", ""))
    totals = detail.get("totals") or {}
    notes = {**(detail.get("combinations") or {}), **(detail.get("seats") or {})} if _are_words(detail) else {}
    hands = [_hand(name, cards, totals.get(name), notes) for name, cards in (detail.get("hands") or {}).items()]
    if detail.get("open"):  # the cards of the dealer that lie open
        hands.append(_hand("dealer", detail["open"], None, {}))
    return RoundShape(
        tuple(hands),
        tuple(face for face in detail.get("faces", ()) if isinstance(face, int)),
        tuple(map(str, detail.get("figures", ()))),
        pocket,
        colour_of(detail) if pocket else "",
        detail.get("number"),
        detail.get("count"),
        detail.get("total"),
        str(say.get(lang) or say.get("en", "")) if isinstance(say, dict) else "",
        str(detail.get("reason", "")),
        tuple(
            (key, _list(detail[key]))
            for key in ("antes", "raised", "folded", "undecided", "missing")
            if detail.get(key)
        ),
    )


def _are_words(detail: dict[str, Any]) -> bool:
    return isinstance(detail.get("combinations"), dict) or isinstance(detail.get("seats"), dict)


def _list(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _hand(name: str, cards: Any, total: Any, notes: dict[str, Any]) -> Hand:
    drawn = tuple(card(one) for one in cards)
    note = str(notes.get(name, ""))
    total = total if isinstance(total, int) else None
    if name in ("player", "banker", "dealer"):
        return Hand(name, drawn, total, note=note)
    seat, _, number = name.removeprefix("seat_").replace("_", ".").partition(".")
    return Hand("seat", drawn, total, int(seat) if seat.isdigit() else 0, int(number) if number.isdigit() else 0, note)


def chip(result: dict[str, Any], lang: words.Lang) -> Chip:
    """The shortest word for a result."""
    title = str((result.get("announcements") or {}).get(lang, ""))
    if result.get("void") is not None:
        return Chip("–", "void", str(result["void"].get("reason", "")))
    outcome = result.get("outcome") or {}
    match str(result.get("ruleset", "")).removeprefix("macau."):
        case "roulette":
            return Chip(str(outcome.get("pocket", "?")), colour_of(outcome), title)
        case "baccarat":
            winner = str(outcome.get("winner", ""))
            letters = {"en": "PBT", "pt": "JBE", "zh-Hant": "閒莊和"}.get(lang, "PBT")
            index = ("player", "banker", "tie").index(winner) if winner in ("player", "banker", "tie") else -1
            return Chip(letters[index] if index >= 0 else "?", winner, title)
        case "cussec" | "fish-prawn-crab":
            return Chip(str(outcome.get("total", "?")), "triple" if outcome.get("triple") else "", title)
        case "fantan":
            return Chip(str(outcome.get("number", "?")), "", title)
        case "blackjack":
            return Chip(str((outcome.get("totals") or {}).get("dealer", "–")), "", title)
        case "stud-poker":
            return Chip("●" if outcome.get("opens") else "○", "", title)
        case _:
            return Chip("✓", "", title)
