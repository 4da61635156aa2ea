"""Plays of each jackpot, from a shoe through the rules and the books, agree with its exact cost.

Each play is one bet in one round with cards from a full shoe. The functions that decide awards look at all cards; where
they find a combination the whole ruleset plays the round, and the win is confirmed and paid. What a play should be paid
follows exactly from the pool before it and the frequencies: the difference has a mean of zero and a known variance, so
it is compared with four standard errors, for each combination and for the sum.
"""

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from helpers import NIGHTLY, START, at_length, play, results
from msgspec import Struct
from msgspec.structs import replace

from daemon.jackpots.book import Book, Ended, Seen, Step
from daemon.jackpots.ledger import begin, end_of, end_round, unbalanced
from daemon.jackpots.orders import obey
from protocols.contract.events import BetsClosed, BetsOpened, CardDrawn, Event, SeatActed, WagerPlaced
from protocols.contract.jackpots import Confirm, Pay, PoolTerms, Prize
from protocols.contract.results import Award
from rules.angola.blackjack import Blackjack, BlackjackOptions
from rules.angola.stud_poker import StudPoker as AngolaStudPoker, StudPokerOptions as AngolaStudPokerOptions
from rules.engine.ruleset import Ruleset
from rules.games.baccarat import due
from rules.games.blackjack_jackpot import combinations, hit
from rules.games.cards import DECK
from rules.games.poker import category, strength
from rules.macau.baccarat import Baccarat, BaccaratOptions, combination_a, combination_bc
from rules.macau.stud_poker import StudPoker, StudPokerOptions
from simulators.lab.figures.jackpots import (
    ANGOLA_DECKS,
    BET,
    BLACKJACK_PRIZES,
    HOUSES,
    Cost,
    Hit,
    cost,
    cost_of,
    page,
    takes_another,
)

PLAYS: Final = at_length(6_000, 1_000_000)
PAGE: Final = Path(__file__).parents[2] / "docs/reference/jackpots.md"
BETS: Final = (WagerPlaced(1, "jackpot", BET),)


# ---- dealing


class Game(Struct, frozen=True):
    """How a jackpot is played here: the cards of a round, their combination, and the events of the round."""

    ruleset: Ruleset[Any]
    deal: Callable[[Random], tuple[str, ...]]
    named: Callable[[tuple[str, ...]], str]
    events: Callable[[tuple[str, ...]], list[Event]]


def drawn(cards: Iterable[str]) -> list[Event]:
    return [CardDrawn(card) for card in cards]


def baccarat(which: Any) -> Game:
    shoe = DECK * 8

    def deal(random: Random) -> tuple[str, ...]:
        cards = tuple(random.sample(shoe, 6))
        dealt = 4
        while due(cards[:dealt]) is not None:
            dealt += 1
        return cards[:dealt]

    def named(cards: tuple[str, ...]) -> str:
        return combination_a(cards, "points") if which == "A" else combination_bc(cards, colours=which == "C")

    def events(cards: tuple[str, ...]) -> list[Event]:
        return [BetsOpened(), WagerPlaced(1, "player", 100), *BETS, BetsClosed(), *drawn(cards)]

    return Game(Baccarat(BaccaratOptions(jackpot=which, opening="bell")), deal, named, events)


def stud(ruleset: Ruleset[Any], pays: Iterable[str], *, burns: bool) -> Game:
    paid = frozenset(pays)

    def named(cards: tuple[str, ...]) -> str:
        name = category(strength(cards[:5]))
        return name if name in paid else ""

    def events(cards: tuple[str, ...]) -> list[Event]:
        turns = [card for pair in zip(cards[:5], cards[5:10], strict=True) for card in pair]
        bets = [WagerPlaced(1, "ante", 100), *BETS]
        return [
            BetsOpened(),
            *bets,
            BetsClosed(),
            *drawn(cards[10:] if burns else ()),
            *drawn(turns),
            SeatActed(1, "raise"),
        ]

    return Game(ruleset, lambda random: tuple(random.sample(DECK, 11)), named, events)


def blackjack() -> Game:
    offered = combinations(BLACKJACK_PRIZES, 4)
    shoe = DECK * ANGOLA_DECKS
    options = {"jackpot": "automatic", "jackpot_bet": BET, "jackpot_seed": 10_000 * BET}

    def deal(random: Random) -> tuple[str, ...]:
        cards = tuple(random.sample(shoe, 4))
        dealt = 2
        while dealt < 4 and takes_another(cards[:dealt], offered):
            dealt += 1
        return cards[:dealt]

    def named(cards: tuple[str, ...]) -> str:
        found = hit(cards, offered)
        return found.name if found else ""

    def events(cards: tuple[str, ...]) -> list[Event]:
        first = [cards[0], "7H", cards[1], "TD"]
        then = [one for card in cards[2:] for one in (SeatActed(1, "hit"), CardDrawn(card))]
        stands = [] if cards[:3] == ("7S", "7S", "7S") else [SeatActed(1, "stand")]
        return [BetsOpened(), WagerPlaced(1, "main", 100), *BETS, BetsClosed(), *drawn(first), *then, *stands]

    made: Any = BlackjackOptions(jackpot_prizes=BLACKJACK_PRIZES, **options)  # type: ignore[arg-type]
    return Game(Blackjack(made), deal, named, events)


def game(name: str) -> Game:
    match name:
        case "stud-poker":
            return stud(StudPoker(StudPokerOptions()), (one.name for one in frequencies()[name]), burns=False)
        case "angola-stud-poker":
            ruleset = AngolaStudPoker(AngolaStudPokerOptions())
            return stud(ruleset, (one.name for one in frequencies()[name]), burns=True)
        case "angola-blackjack":
            return blackjack()
        case _:
            return baccarat(name[-1].upper())


# ---- the exact figures


@lru_cache
def frequencies() -> dict[str, tuple[Hit, ...]]:
    """As the page has them; a nightly test counts them again."""
    found: dict[str, tuple[Hit, ...]] = {}
    for name, part in zip(HOUSES, PAGE.read_text(encoding="utf-8").split("\n## ")[1:], strict=True):
        hits = []
        for row in re.findall(r"^\| (\S+) \| (\d+/\d+) \| \S+ \| (.*?) \| ", part, re.MULTILINE):
            share = Fraction(1) if row[2].startswith("the pool") else Fraction(0)
            if of := re.match(r"(\d+/\d+) of", row[2]):
                share = Fraction(of[1])
            fixed = int(row[2].rpartition(" ")[2]) if row[2][-1].isdigit() else 0
            hits.append(Hit(row[0], Fraction(row[1]), fixed, share))
        found[name] = tuple(hits)
    return found


@pytest.mark.skipif(not NIGHTLY, reason="counts every hand of the shoes: a minute")
def test_the_page_has_the_exact_figures() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "old: python -m simulators.lab.figures.jackpots > docs/reference/jackpots.md"
    )
    assert {name: cost_of(name).hits for name in HOUSES} == frequencies()


@pytest.mark.parametrize("name", HOUSES)
def test_every_coin_of_a_jackpot_is_accounted_for(name: str) -> None:
    """In the steady state players are paid what they and the house put in."""
    found = cost(frequencies()[name], HOUSES[name].terms)
    assert found.paid == found.contribution + found.reserve + found.seed
    assert all(one.share * found.level >= one.fixed for one in found.hits if one.share)
    fixed = sum(one.probability * one.fixed for one in found.hits if not one.share)
    assert fixed < found.contribution


# ---- the plays


class Till:
    """The books of one pool, whose wins two people confirm and pay at once."""

    def __init__(self, terms: PoolTerms) -> None:
        self.book: Book
        self.take(begin("pool", terms, START))
        self.number = 0
        self.paid: dict[str, int] = {}
        self.times: dict[str, int] = {}

    def take(self, step: Step) -> None:
        self.book = step[0]

    def end(self, ended: Ended) -> None:
        self.number += 1
        seen = Seen("rules/A/t-1", self.number, "e", START + timedelta(seconds=self.number))
        self.take(end_round(self.book, seen, ended))
        for win in [one for one in self.book.wins if one.state == "pending"] if ended.awards else ():
            self.take(obey(self.book, Confirm("ana", win.id), f"c{self.number}", START))
            self.take(obey(self.book, Pay("rui", win.id), f"p{self.number}", START))
            name = win.award.combination
            self.paid[name] = self.paid.get(name, 0) + win.amount
            self.times[name] = self.times.get(name, 0) + 1


class Expected:
    """What plays should be paid, from the pool before each: sums in integers, so that nothing is rounded."""

    def __init__(self, hits: tuple[Hit, ...]) -> None:
        self.hits = hits
        self.plays = 0
        self.prizes = dict.fromkeys((one.name for one in hits), 0)
        self.squares = dict.fromkeys((one.name for one in hits), 0)

    def play(self, pool: int) -> None:
        """A play of a pool of so many whole minor units, its own bet among them."""
        self.plays += 1
        for one in self.hits:
            part = pool * one.share.numerator // one.share.denominator
            prize = max(one.fixed, part)
            self.prizes[one.name] += prize
            self.squares[one.name] += prize * prize


def compared(till: Till, expected: Expected) -> tuple[float, float]:
    """Fails where a combination, or the sum, is four standard errors away; returns the mean paid and its error."""
    variance, mean = 0.0, Fraction(0)
    for one in expected.hits:
        wanted = one.probability * expected.prizes[one.name]
        spread = float(one.probability) * expected.squares[one.name]
        times = float(one.probability * expected.plays)
        assert abs(till.times.get(one.name, 0) - times) <= 4 * sqrt(times) + 1, one.name
        if times > 10:
            assert abs(till.paid.get(one.name, 0) - wanted) <= 4 * sqrt(spread), one.name
        mean += wanted
        variance += spread
    paid = sum(till.paid.values())
    assert abs(paid - mean) <= 4 * sqrt(variance), (paid, float(mean), sqrt(variance))
    return paid / expected.plays, sqrt(variance) / expected.plays


@pytest.mark.timeout(at_length(600, 3600))
@pytest.mark.parametrize("name", HOUSES)
def test_plays_agree_with_the_exact_cost(name: str, record_property: Callable[[str, object], None]) -> None:
    house, hits, played = HOUSES[name], frequencies()[name], game(name)
    random, till, expected = Random(f"jackpot {name}"), Till(house.terms), Expected(hits)
    step = int(BET * Fraction(house.terms.visible))
    for number in range(PLAYS):
        expected.play(till.book.amount + step)
        cards = played.deal(random)
        found = played.named(cards)
        ended = Ended(f"t-1:{number}", "t-1", stakes=((1, BET),))
        if found:
            (result,) = results(play(played.ruleset, played.events(cards)))
            ended = end_of(replace(result, round=ended.round), "t-1", "jackpot", "", by_rules=True)
            assert [one.combination for one in ended.awards] == [found]
            assert ended.stakes == ((1, BET),)
        till.end(ended)
    assert unbalanced(till.book) == ""
    mean, error = compared(till, expected)
    exact = mean_paid(cost(hits, house.terms), house.terms, PLAYS)
    assert abs(mean - exact) <= 4 * error
    record_property("paid a play, exact, standard error", (round(mean, 3), round(exact, 3), round(error, 3)))


def mean_paid(found: Cost, terms: PoolTerms, plays: int) -> float:
    """The mean payment of a play over the first `plays` of a new pool."""
    whole, step, reserve = float(found.whole), float(found.contribution), float(found.reserve)
    fixed = float(sum(one.probability * one.fixed for one in found.hits if not _of_pool(one, found)))
    parts = float(sum(one.probability * one.share for one in found.hits if _of_pool(one, found)))
    level = begins = float(terms.seed)
    held, alive, total = 0.0, 1.0, 0.0
    for number in range(1, plays + 1):
        # The reserve has grown for as many plays as there were since the last beginning, at most this many.
        now = max(float(terms.seed), reserve * number)
        begins += alive * (now - max(float(terms.seed), held))
        held, alive = reserve * number, alive * (1 - whole)
        decided = level + step
        total += fixed + parts * decided
        level = decided - fixed - parts * decided + whole * begins
    return total / plays


def _of_pool(one: Hit, found: Cost) -> bool:
    return bool(one.share) and one.share * found.level >= one.fixed


def test_the_formula_of_the_steady_state_is_what_the_books_do() -> None:
    """A pool that falls every fiftieth play on average, with a share, a fixed prize and a reserve."""
    hits = (
        Hit("pool", Fraction(1, 50), share=Fraction(1)),
        Hit("tenth", Fraction(1, 20), share=Fraction(1, 10)),
        Hit("fixed", Fraction(1, 10), fixed=500),
    )
    awards = {
        "pool": Award("p", "pool", "pool", "law", "", (1,)),
        "tenth": Award("p", "tenth", "pool", "law", "1/10", (1,)),
        "fixed": Award("p", "fixed", "fixed", "law", "", (1,)),
    }
    terms = PoolTerms(seed=20_000, visible="3/5", hidden="2/5", prizes={"fixed": Prize(500)})
    found = cost(hits, terms)
    random, till, expected = Random(7), Till(terms), Expected(hits)
    plays, levels = at_length(20_000, 200_000), 0
    for number in range(plays):
        level = till.book.amount + 600
        levels += level
        expected.play(level)
        (name,) = random.choices(["pool", "tenth", "fixed", ""], [20, 50, 100, 830])
        won = (awards[name],) if name else ()
        till.end(Ended(f"t-1:{number}", "t-1", won, stakes=((1, BET),)))
    mean, error = compared(till, expected)
    assert abs(mean - float(found.paid)) <= 4 * error
    assert abs(levels / plays / float(found.level) - 1) < at_length(0.1, 0.04)  # 400 or 4000 falls of the pool
