"""Money at every ruleset: each wager has one settlement, nothing is rounded away, no number is too large for JSON.

The tables are those of the corpus's dealers, with losses, late events and corrections, and with amounts of any size.
"""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from functools import cache
from typing import Any

import corpus
import msgspec
import pytest
from helpers import MACHINES, at_length, house_net
from hypothesis import given, settings, strategies as st
from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import MOST, Event, SeatActed, WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import Value
from protocols.contract.results import Corrected, Resolved, Result, Settlement, Verdict, Voided
from protocols.contract.topics import Envelope
from rules import RULESETS
from rules.engine.money import settle
from rules.engine.rounds import Round
from rules.engine.ruleset import Wager, Win, judge, options_from

every_game = pytest.mark.parametrize("name", sorted(set(RULESETS) - {MACHINES}))
EVENTS = at_length(150, 3_000)
TABLES = at_length(3, 1_000)
"""Sets of options of each ruleset."""
"""Events of each table."""


@cache
def option_sets(name: str) -> list[dict[str, Any]]:
    """Each option of a ruleset with each of its values."""
    return corpus.option_sets(name)


def scaled(event: Event, factor: int) -> Event:
    """An event whose amounts are so many times as large, up to the largest number."""
    if isinstance(event, WagerPlaced | WagerWithdrawn | SeatActed) and event.amount:
        return replace(event, amount=min(event.amount * factor, MOST))
    return event


class Step(Struct, frozen=True):
    """One event of a table: the states around it and what was said."""

    before: Any
    event: Event
    after: Any
    said: tuple[Verdict, ...]

    @property
    def ends(self) -> list[Result]:
        return [one.result for one in self.said if isinstance(one, Resolved | Voided | Corrected)]


def steps(name: str, options: dict[str, Any], seed: str, events: int, factor: int = 1) -> Iterator[Step]:
    rng = random.Random(f"{seed} {name} {corpus.written(options)}")
    ruleset = RULESETS[name](options_from(RULESETS[name], options))
    dealer = corpus.happenings(corpus.SAMPLES[name].dealer(rng, options), rng)
    state, at, event = ruleset.start("t-1"), corpus.START, next(dealer)
    for number in range(1, events + 1):
        at += timedelta(milliseconds=rng.choice((0, 250, 1_000, 4_000, 20_000)))
        told = scaled(event, factor)
        after, said = judge(ruleset, state, Envelope(f"e{number}", corpus.SOURCE, at, told, number))
        yield Step(state, told, after, said)
        state = after
        event = dealer.send(msgspec.to_builtins(ruleset.view(state)))


def rounds(value: object) -> Iterator[Round]:
    """The rounds of a state, however deep."""
    if isinstance(value, Round):
        yield value
    elif isinstance(value, Struct):
        for field in value.__struct_fields__:
            yield from rounds(getattr(value, field))


def numbers(value: object) -> Iterator[int]:
    """All whole numbers of a document."""
    match value:
        case bool():
            return
        case int():
            yield value
        case dict():
            for one in value.values():
                yield from numbers(one)
        case list() | tuple():
            for one in value:
                yield from numbers(one)
        case _:
            return


# ---- one settlement for each wager


def laid_before(step: Step, result: Result) -> Counter[tuple[int, str, int, int]]:
    """The wagers of the round as they lay before its end, without those that the result leaves on the table."""
    left = {*result.stands, *result.moves}
    found: dict[tuple[int, str, int], Wager] = {}
    for round_ in rounds(step.before):
        if round_.id == result.round:
            found |= {(one.seat, one.bet, one.hand): one for one in round_.wagers if one.bet not in left}
    return Counter((one.seat, one.bet, one.hand, one.amount) for one in found.values())


def given_back(result: Result) -> set[tuple[Value, Value]]:
    """The places whose bets, or some of them, went back when the bets closed."""
    codes = ("bet_outside_limits", "bet_not_in_steps")
    named = [one.reason.values for one in result.irregularities if one.code in codes]
    return {(one["seat"], one["bet"]) for one in named}


def key(one: Settlement) -> tuple[int, str, int, int]:
    return one.seat, one.bet, one.hand, one.stake


UNBANKED = ("angola.chemin-de-fer", "angola.holdem", "angola.omaha", "angola.synthetic-poker")
"""The players play each other: bets are chips of the pot, tests/rules/test_poker_oracle.py counts them seat by seat."""
OTHERS = ("baccarat", "blackjack", "stud-poker", *UNBANKED, MACHINES)
SINGLE = sorted(name for name in RULESETS if not any(word in name for word in OTHERS))


@every_game
def test_each_wager_of_a_round_has_exactly_one_settlement(name: str) -> None:
    seen, empty = 0, 0
    for options in option_sets(name)[-TABLES:]:
        for step in steps(name, options, "settlements", EVENTS):
            for result in step.ends:
                places = [(one.seat, one.bet, one.hand) for one in result.settlements]
                assert len(places) == len(set(places)), result
                stands = result.void is not None and result.void.bets != "returned"
                if stands or not result.settlements:
                    empty += 1
                    assert not (stands and result.settlements)
                    continue
                if name in UNBANKED:
                    kept = result.outcome.get("rake", result.outcome.get("percentage", 0))
                    assert house_net(result) == (kept if result.void is None else 0), result
                if name in SINGLE and not isinstance(step.event, WagerPlaced):
                    back = given_back(result)
                    settled = Counter(key(one) for one in result.settlements if (one.seat, one.bet) not in back)
                    laid = laid_before(step, result)
                    assert settled == Counter({one: n for one, n in laid.items() if one[:2] not in back}), result
                seen += 1
    assert seen


@every_game
def test_a_settlement_is_a_whole_number_and_its_exact_amount_stands_beside_it(name: str) -> None:
    tables: list[dict[str, Any]] = [{}, {"rounding": "up", "smallest_chip": 25}, {"smallest_chip": 25}]
    for options in tables:
        chip, up = options.get("smallest_chip", 1), options.get("rounding") == "up"
        for step in steps(name, options, "rounding", EVENTS):
            for result in step.ends:
                for one in result.settlements:
                    free = name in UNBANKED and one.returned > 0  # who laid nothing can win the others' first bets
                    assert one.stake > 0 or free
                    assert one.returned >= 0, (one, options)
                    if not one.exact:
                        continue
                    off = one.returned - Fraction(one.exact)
                    parts = 9 if name == "angola.american-roulette" else 1  # each chip of an announced bet
                    assert (0 if up else -chip * parts) < off < (chip * parts if up else 0), (one, options)
                returned, stakes = (
                    sum(getattr(one, what) for one in result.settlements) for what in ("returned", "stake")
                )
                assert house_net(result) == stakes - returned


@every_game
def test_a_void_round_gives_back_what_its_article_says(name: str) -> None:
    voids = 0
    for options in option_sets(name)[:TABLES]:
        for step in steps(name, options, "void", 6 * EVENTS):
            for result in step.ends:
                if result.void is None:
                    continue
                voids += 1
                if result.void.bets == "returned":
                    assert all(one.returned == one.stake for one in result.settlements), result
                    assert house_net(result) == 0
                else:
                    assert result.settlements == ()
    assert voids


# ---- no number is too large


@every_game
@settings(max_examples=at_length(8, 200), deadline=None)
@given(
    seed=st.integers(0, 10**9),
    factor=st.sampled_from([10**9, 10**11, 10**13, MOST // 333, MOST]),
    pick=st.integers(0, 99),
)
def test_no_number_is_larger_than_json_can_hold(name: str, seed: int, factor: int, pick: int) -> None:
    sets = option_sets(name)
    for step in steps(name, sets[pick % len(sets)], f"enormous {seed}", 100, factor):
        assert max(map(abs, numbers(msgspec.json.decode(msgspec.json.encode(step.said)))), default=0) <= MOST
        msgspec.json.encode(step.after)
        for round_ in rounds(step.after):
            assert sum(one.amount for one in round_.wagers) <= MOST
        for result in step.ends:
            assert sum(one.returned for one in result.settlements) <= MOST
            assert abs(house_net(result)) <= MOST


@pytest.mark.parametrize(
    ("win", "returned"),
    [
        (Win("main", "1"), 6),
        (Win("main", "1", seat=1), 6),
        (Win("main", "1", seat=1, hand=2), 6),
        (Win("main", "1", seat=1, hand=1), 0),
        (Win("main", "1", seat=2), 0),
    ],
)
def test_a_win_is_everybodys_or_of_a_seat_or_of_a_hand(win: Win, returned: int) -> None:
    [one] = settle([Wager(1, "main", 3, hand=2)], [win], ())
    assert (one.returned, one.exact) == (returned, "")
