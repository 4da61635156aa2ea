"""The drawing of a round: the values that templates draw, from the public view of the ruleset only."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from msgspec import Struct

from daemon.console.games import GAMES, family_of
from daemon.views import TableView
from daemon.words import words
from drivers import DRIVERS
from protocols.contract.events import MachineIdentified
from protocols.contract.facts import (
    BaccaratFacts,
    BlackjackFacts,
    CardFacts,
    CheminFacts,
    CrapsFacts,
    DiceFacts,
    FantanFacts,
    FrenchBankFacts,
    RouletteFacts,
    RoundFacts,
    ShakenDiceFacts,
    StudPokerFacts,
    UnbankedPokerFacts,
    of_kind,
)
from protocols.contract.results import Result
from rules.angola.gaming_machines import MachineFacts
from rules.facts import facts_of_result

__all__ = [
    "Card",
    "Chip",
    "Duty",
    "Hand",
    "RoundShape",
    "chip",
    "device_icon",
    "doubt",
    "duties",
    "game_icon",
    "hand_words",
    "icon_names",
    "pips",
    "round_shape",
]

SUITS = {"S": ("♠", "spades"), "H": ("♥", "hearts"), "D": ("♦", "diamonds"), "C": ("♣", "clubs")}
MOST_DIGITS = 6
BUST = 21
# The places of the pips of a die, on a square of 3 by 3.
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
    """One hand: `kind` player, banker, dealer, board or seat; `seat` and `number` where it is a seat's."""

    kind: str
    cards: tuple[Card, ...]
    total: int | None = None
    seat: int = 0
    number: int = 0
    note: str = ""


class Duty(Struct, frozen=True):
    """A duty of the house by the clock: its name, its article, and when it is due."""

    name: str
    law: str
    at: datetime


class Chip(Struct, frozen=True):
    """A result in a word or a number; `kind`: its colour, or `void`."""

    text: str
    kind: str = ""
    title: str = ""


class PotShape(Struct, frozen=True):
    """One pot of poker: its chips, the seats that play for it, and how much of all pots it is, in per cent."""

    amount: int
    among: tuple[int, ...]
    part: int


class RoundShape(Struct, frozen=True):
    """The values that are drawn of a round, for every game."""

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
    duties: tuple[Duty, ...] = ()
    pots: tuple[PotShape, ...] = ()
    rake: int = 0
    amounts: tuple[tuple[str, int], ...] = ()
    bank: int = 0
    covered: int = 0


def card(code: str) -> Card:
    """ "TD" is the ten of diamonds."""
    rank, suit = code[:-1], code[-1:]
    if suit not in SUITS or not rank:
        return Card("")
    return Card({"T": "10"}.get(rank, rank), SUITS[suit][0], suit in "HD", SUITS[suit][1])


def device_icon(driver: str) -> str:
    """The icon of a device, by its driver."""
    kind = DRIVERS.get(driver)
    return "device" if kind is None else kind.icon


def game_icon(ruleset: str) -> str:
    """The icon of a table, by its game."""
    family = family_of(ruleset)
    return family if family in icon_names() else "table"


@cache
def icon_names() -> tuple[str, ...]:
    """All icons of the sprite."""
    text = Path(__file__).with_name("templates").joinpath("_icons.html").read_text(encoding="utf-8")
    return tuple(re.findall(r'<symbol id="i-([a-z_-]+)"', text))


def pips(face: int) -> tuple[tuple[int, int], ...]:
    """The places of the pips of `face`: column and row, each 0 to 2."""
    return PIPS.get(face, ())


def colour_of(outcome: RouletteFacts) -> str:
    """The colour of a roulette pocket; a zero, which has none in the facts, is green."""
    return outcome.colour or "green"


def round_shape(detail: RoundFacts, lang: words.Lang) -> RoundShape:
    """The drawing of the present round, or of an outcome."""
    spin, dice, heap = of_kind(RouletteFacts, detail), of_kind(DiceFacts, detail), of_kind(FantanFacts, detail)
    return RoundShape(
        hands=tuple(_hands(detail)),
        dice=dice.faces,
        figures=of_kind(ShakenDiceFacts, detail).figures,
        pocket=spin.pocket,
        colour=colour_of(spin) if spin.pocket else "",
        number=heap.number,
        count=heap.count,
        total=dice.total,
        say=detail.say.get(lang) or detail.say.get("en", ""),
        reason=words.reason(lang, detail.reason),
        facts=tuple((key, ", ".join(map(str, value))) for key, value in _facts(detail, lang).items() if value),
        duties=duties(detail, lang),
        pots=_pots(of_kind(UnbankedPokerFacts, detail)),
        rake=of_kind(UnbankedPokerFacts, detail).rake or of_kind(CheminFacts, detail).percentage,
        amounts=tuple((key, value) for key, value in of_kind(MachineFacts, detail).counted.items() if key != "games"),
        bank=of_kind(CheminFacts, detail).bank,
        covered=of_kind(CheminFacts, detail).covered,
    )


def _pots(poker: UnbankedPokerFacts) -> tuple[PotShape, ...]:
    whole = sum(one.amount for one in poker.pots)
    return tuple(PotShape(one.amount, one.among, 100 * one.amount // whole) for one in poker.pots if whole)


def _hands(detail: RoundFacts) -> Iterator[Hand]:
    cards, stud = of_kind(CardFacts, detail), of_kind(StudPokerFacts, detail)
    notes = {**stud.combinations, **(stud.seats if isinstance(stud.seats, dict) else {})}
    for name, hand in cards.hands.items():
        yield _hand(name, hand, cards.totals.get(name), notes)
    poker = of_kind(UnbankedPokerFacts, detail)
    if poker.board:
        yield Hand("board", tuple(map(card, poker.board)))
    for name, hand in poker.hands.items():
        yield _hand(name, hand, None, poker.combinations)
    if stud.open:  # the cards of the dealer that lie open
        yield _hand("dealer", stud.open, None, {})


def _facts(detail: RoundFacts, lang: words.Lang) -> dict[str, Sequence[object]]:
    """The facts beside the drawing, by the keys of their words."""
    match detail:
        case StudPokerFacts():
            return {
                "antes": detail.antes,
                "raised": detail.raised,
                "folded": detail.folded,
                "undecided": detail.undecided,
                "missing": [hand_words(name, lang) for name in detail.missing],
            }
        case UnbankedPokerFacts():
            return {
                "folded": detail.folded,
                "won": [seat.removeprefix("seat_") for seat, fate in detail.seats.items() if fate == "wins"],
            }
        case MachineFacts():
            return _machine(detail, lang)
        case CheminFacts():
            return {
                "banker": (detail.banker,) if detail.banker else (),
                "partner": (detail.partner,) if detail.partner else (),
                "punter": (detail.punter,) if detail.punter else (),
                "claim": (words.say(lang, f"claim.{detail.claim}"),) if detail.claim else (),
            }
        case CrapsFacts():
            return {
                "point": (detail.point,) if detail.point else (),
                "shooter": (detail.shooter,) if detail.shooter else (),
            }
        case _:
            return {}


def _machine(detail: MachineFacts, lang: words.Lang) -> dict[str, Sequence[object]]:
    """The characteristics and return of a gaming machine, and all that two supervisors must approve."""
    is_ = detail.machine or MachineIdentified()
    measured = (f"{detail.measured_bp / 100:.2f} % ± {detail.bound_bp / 100:.2f} % ({detail.measured_games})",)
    return {
        "machine": [one for one in (is_.serial, is_.game, is_.paytable, is_.signature) if one],
        "plan": (f"{detail.return_bp / 100:.2f} %",) if detail.return_bp else (),
        "measured": measured if detail.measured_games else (),
        "games": (detail.counted.get("games", 0),) if detail.counted else (),
        "waits": [words.reason(lang, one) for one in detail.waits],
        "approved_by": (detail.approved_by,) if detail.approved_by else (),
    }


def duties(detail: RoundFacts, lang: words.Lang) -> tuple[Duty, ...]:
    """The duties of the house by the clock, the next first."""
    named = [Duty(words.value(lang, "duty", one.code), one.law, one.at) for one in detail.duties if one.at is not None]
    return tuple(sorted(named, key=lambda one: one.at))


def doubt(view: TableView, detail: RoundFacts, lang: words.Lang) -> tuple[str, str]:
    """Why the open round waits for a person, with the remedy; otherwise why the last decision was refused.

    `detail`: the facts of the view, decoded.
    """
    if view.phase != "suspended":
        return (words.say(lang, f"irregular.{detail.refused}"), "") if detail.refused else ("", "")
    alert = view.alerts.get("round-suspended")  # the state of a round has no remedy
    return words.reason(lang, detail.reason), words.reason(lang, alert.to_do if alert is not None else None)


def _hand(name: str, cards: tuple[str, ...], total: int | None, notes: dict[str, str]) -> Hand:
    drawn = tuple(map(card, cards))
    note = notes.get(name, "")
    if name in ("player", "banker", "dealer"):
        return Hand(name, drawn, total, note=note)
    seat, _, number = name.removeprefix("seat_").replace("_", ".").partition(".")
    return Hand("seat", drawn, total, _number(seat), _number(number), note)


def hand_words(name: str, lang: words.Lang) -> str:
    """A hand in words: "seat_3_2" is the second hand of seat 3."""
    if not name.startswith("seat_"):
        return words.say(lang, f"round.{name}")
    seat, _, number = name.removeprefix("seat_").partition("_")
    text = words.say(lang, "round.seat", n=seat)
    return f"{text} · {number}" if number else text


def _number(word: str) -> int:
    return int(word) if word.isdecimal() and len(word) < MOST_DIGITS else 0


def chip(result: Result, lang: words.Lang) -> Chip:
    """The shortest word for a result; `title`: its announcement, or else the meaning of the short word."""
    title = words.announced(lang, result.announcements)
    if result.void is not None:
        return Chip("–", "void", words.sentence(words.reason(lang, result.void.reason)))
    outcome = facts_of_result(result)
    match outcome:
        case RouletteFacts():
            return Chip(outcome.pocket or "?", colour_of(outcome), title)
        case BaccaratFacts():
            ponto = result.ruleset.startswith("angola.")
            letters = {"en": "PBT", "pt": "PBE" if ponto else "JBE", "zh-Hant": "閒莊和"}[lang]
            known = dict(zip(("player", "banker", "tie"), letters, strict=True))
            return Chip(known.get(outcome.winner, "?"), outcome.winner, title)
        case ShakenDiceFacts():
            return Chip(_or(outcome.total, "?"), "triple" if outcome.triple else "", title)
        case FrenchBankFacts():
            letters = {"en": "ASB", "pt": "APG", "zh-Hant": "么小大"}[lang]
            known = dict(zip(("aces", "small", "big"), letters, strict=True))
            return Chip(known.get(outcome.chance, "?"), "", title)
        case CrapsFacts():
            return Chip(_or(outcome.total, "?"), "red" if outcome.series == "seven_out" else "", title)
        case BlackjackFacts():
            total = outcome.totals.get("dealer")
            if total is not None and total > BUST:
                return Chip(words.say(lang, "chip.bust"), "bust", title or words.say(lang, "chip.dealer", n=total))
            return Chip(_or(total, "–"), "", title or (words.say(lang, "chip.dealer", n=total) if total else ""))
        case StudPokerFacts():
            key = "chip.opens" if outcome.opens else "chip.opens_not"
            return Chip("●" if outcome.opens else "○", "", title or words.say(lang, key))
        case _:
            word = GAMES[result.ruleset].chip if result.ruleset in GAMES else None
            return Chip("✓" if word is None else word(outcome), "", title)


def _or(number: int | None, else_: str) -> str:
    return else_ if number is None else str(number)
