"""Angola craps, paragraph by paragraph: Decreto Executivo 261/22, article 4."""

import random
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from itertools import islice, product
from typing import Any, Final

import msgspec
import pytest
from helpers import START, at_length, game_of, play, results, script
from hypothesis import given, settings, strategies as st

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    DiceRead,
    DiceReplaced,
    DiceThrown,
    Event,
    EventsMissed,
    HandPassed,
    LaidBet,
    RoundPaid,
    RoundVoided,
    SeriesStated,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.topics import Envelope
from rules import RULESETS
from rules.angola.craps import DUTIES, FAMILIES, Craps, CrapsOptions, CrapsState
from rules.engine.ruleset import (
    BadOption,
    Closed,
    Corrected,
    Noted,
    Opened,
    Resolved,
    Result,
    Suspended,
    Verdict,
    Voided,
    options_from,
)

LAW = "angola.craps"
CITED = "Decreto Executivo 261/22 art. 4"

OPEN, PAID, VOID = BetsOpened(), RoundPaid(), RoundVoided("supervisors_decision")
NULL = DiceThrown((), valid=False, reason="a_die_off_the_table")
POINTS = (4, 5, 6, 8, 9, 10)
EVERY_THROW = [*product(range(1, 7), repeat=2)]
# A throw for each total, none of them a pair where another way exists.
WAYS = {2: (1, 1), 3: (1, 2), 4: (1, 3), 5: (1, 4), 6: (1, 5), 7: (1, 6), 8: (2, 6), 9: (3, 6), 10: (4, 6), 11: (5, 6)}
WAYS[12] = (6, 6)


game = game_of(Craps)


def throw(total: int, *bets: Event) -> list[Event]:
    """One round without its payment."""
    return [OPEN, *bets, DiceThrown(WAYS[total])]


def series(*rounds: Sequence[Event]) -> list[Event]:
    """Rounds, each paid."""
    return [event for round_ in rounds for event in (*round_, PAID)]


def resolve(events: Sequence[Event], **options: Any) -> list[Result]:
    return results(play(game(**options), events))


def last(*rounds: Sequence[Event], **options: Any) -> Result:
    """The last result of these rounds."""
    return resolve(series(*rounds), **options)[-1]


def after(ruleset: Craps, events: Sequence[Event]) -> CrapsState:
    state = ruleset.start("t-1")
    for seen in script(events):
        state, _ = ruleset.apply(state, seen)
    return state


def bet(name: str, amount: int = 30, seat: int = 1) -> WagerPlaced:
    return WagerPlaced(seat, name, amount)


def paid(result: Result) -> dict[str, int]:
    """What each bet brings back, stake included."""
    return {one.bet: one.returned for one in result.settlements}


def odds(result: Result) -> dict[str, str]:
    return {win.bet: win.pays for win in result.winners}


def codes(result: Result) -> list[tuple[str, str]]:
    return [(note.code, note.law.removeprefix(CITED)) for note in result.irregularities]


def fate(name: str, total: int, point: int = 0, **options: Any) -> str:
    """What a throw does to a bet, whether or not anybody has laid it: w, p (comes back), s, m or l."""
    before = [throw(point)] if point else []
    result = last(*before, throw(total), **options)
    if name in odds(result):
        return "w"
    found = {"p": result.pushes, "s": result.stands, "m": tuple(result.moves)}
    return next((letter for letter, places in found.items() if name in places), "l")


def fates(name: str, point: int = 0, **options: Any) -> str:
    """On the totals 2 to 12."""
    return "".join(fate(name, total, point, **options) for total in range(2, 13))


# ---- an independent oracle: each bet by itself, straight from the article, in words of its own

ONE_THROW: Final[dict[str, dict[int, Fraction]]] = {
    "under_7": dict.fromkeys((2, 3, 4, 5, 6), Fraction(1)),
    "over_7": dict.fromkeys((8, 9, 10, 11, 12), Fraction(1)),
    "any_craps": dict.fromkeys((2, 3, 12), Fraction(7)),
    "seven": {7: Fraction(4)},
    "two": {2: Fraction(30)},
    "three": {3: Fraction(15)},
    "eleven": {11: Fraction(15)},
    "twelve": {12: Fraction(30)},
    "field": {**dict.fromkeys((3, 4, 9, 10, 11), Fraction(1)), 2: Fraction(2), 12: Fraction(2)},
}
FOR_NUMBER: Final = {4: Fraction(9, 5), 5: Fraction(7, 5), 6: Fraction(7, 6)}
FOR_NUMBER.update({14 - n: pays for n, pays in list(FOR_NUMBER.items())})
AGAINST_NUMBER: Final = {4: Fraction(5, 11), 5: Fraction(5, 8), 6: Fraction(10, 13)}
AGAINST_NUMBER.update({14 - n: pays for n, pays in list(AGAINST_NUMBER.items())})
TRUE_ODDS: Final = {4: Fraction(2), 5: Fraction(3, 2), 6: Fraction(6, 5)}
TRUE_ODDS.update({14 - n: pays for n, pays in list(TRUE_ODDS.items())})
HARD: Final = {"hard_4": 7, "hard_6": 9, "hard_8": 9, "hard_10": 7}


def oracle(name: str, point: int, a: int, b: int) -> Fraction | str | None:
    """What the bet brings back of one unit, stake included; None where it stays; its new name where it travels."""
    total = a + b
    if name in ONE_THROW:
        prize = ONE_THROW[name].get(total)
        return 1 + prize if prize is not None else Fraction(0)
    if name in HARD:
        wanted = int(name[5:])
        if total == wanted:
            return Fraction(1 + HARD[name]) if a == b else Fraction(0)
        return Fraction(0) if total == 7 else None
    kind, _, number = name.partition(":")
    mark = int(number) if number else int(kind[4:]) if kind in ("big_6", "big_8") else 0
    wins_on_seven = kind.startswith("dont") or kind == "place_lose"
    if kind in ("pass", "dont_pass", "pass_odds", "dont_pass_odds"):
        mark = point
    if not mark:
        return _first_throw(kind, total)
    if total not in (7, mark):
        return None
    if (total == 7) is not wins_on_seven:
        return Fraction(0)
    if kind == "place":
        return 1 + FOR_NUMBER[mark]
    if kind == "place_lose":
        return 1 + AGAINST_NUMBER[mark]
    if kind.endswith("odds"):
        return 1 + (1 / TRUE_ODDS[mark] if wins_on_seven else TRUE_ODDS[mark])
    return Fraction(2)


def _first_throw(kind: str, total: int) -> Fraction | str | None:
    """Of pass, come and the sides against them."""
    known = {7: 2, 11: 2, 2: 0, 3: 0, 12: 0}
    if kind.startswith("dont"):
        known = {2: 2, 3: 2, 12: 1, 7: 0, 11: 0}
    if total in known:
        return Fraction(known[total])
    return f"{kind}:{total}" if kind.endswith("come") else None


BETTABLE = [
    *("pass", "dont_pass", "come", "dont_come", "big_6", "big_8", "pass_odds", "dont_pass_odds", *ONE_THROW, *HARD),
    *(f"{kind}:{n}" for kind in ("come_odds", "dont_come_odds", "place", "place_lose") for n in POINTS),
]


def may_lay(cloth: dict[str, int], point: int, name: str) -> bool:
    """Whether the article takes this bet now, beside what lies there."""
    kind, _, number = name.partition(":")
    if kind in ("pass", "dont_pass"):
        return not point
    if kind in ("come", "dont_come"):
        return bool(point)
    if kind.endswith("_odds"):
        beside = kind.removesuffix("_odds") + (f":{number}" if number else "")
        return bool(number or point) and cloth.get(name, 0) + 1320 <= cloth.get(beside, 0)
    return True


@pytest.mark.article("13(b)")
def test_long_series_are_settled_as_a_straight_count_of_the_article_settles_them() -> None:
    """Random bets over many throws; 1320 is a multiple of all that is paid out in parts."""
    rng = random.Random("craps oracle")
    ruleset, state, number = game(), game().start("t-1"), 0
    cloth: dict[str, int] = {}
    point = settled = travelled = 0
    for _ in range(at_length(1500, 100_000)):
        events: list[Event] = [OPEN]
        for name in rng.choices(BETTABLE, k=rng.randint(0, 4)):
            if may_lay(cloth, point, name):
                events.append(WagerPlaced(1, name, 1320))
                cloth[name] = cloth.get(name, 0) + 1320
        a, b = rng.randint(1, 6), rng.randint(1, 6)
        events += [DiceThrown((a, b)), PAID]
        verdicts: list[Verdict] = []
        for event in events:
            number += 1
            state, told = ruleset.apply(state, Envelope(f"e{number}", "d-1", START, event, number))
            verdicts += told
        [result] = results(verdicts)
        assert result.irregularities == ()
        expected: dict[str, int] = {}
        left: dict[str, int] = {}
        for name, amount in cloth.items():
            match oracle(name, point, a, b):
                case None:
                    left[name] = amount
                case str(place):
                    left[place] = amount
                    travelled += 1
                case share:
                    expected[name] = int(amount * share)
        assert paid(result) == expected
        settled += len(expected)
        if point == 0 and a + b in POINTS:
            point = a + b
        elif a + b in (7, point):
            point = 0
        assert result.outcome["next_point"] == point
        cloth = left
    assert settled > 1000
    assert travelled > 30


@given(
    totals=st.lists(st.sampled_from(range(2, 13)), min_size=1, max_size=12),
    stakes=st.lists(st.integers(1, 9_999), min_size=1, max_size=6),
)
@settings(max_examples=at_length(40, 2_000))
def test_each_wager_is_settled_once_or_still_stands(totals: list[int], stakes: list[int]) -> None:
    names = ["pass", "dont_pass", "hard_6", "place:8", "place_lose:4", "big_6"]
    laid = [bet(name, stake) for name, stake in zip(names, stakes, strict=False)]
    state, seen = game().start("t-1"), script(series(throw(totals[0], *laid), *map(throw, totals[1:])))
    ended: list[str] = []
    for one in seen:
        state, verdicts = game().apply(state, one)
        ended += [settled.bet for result in results(verdicts) for settled in result.settlements]
    assert sorted([*ended, *(one.bet for one in state.standing)]) == sorted(one.bet for one in laid)
    assert {one.bet: one.amount for one in state.standing}.items() <= {one.bet: one.amount for one in laid}.items()


# ---- 4(10): simple chances


@pytest.mark.article("10(a)")
def test_pass_wins_on_7_and_11_loses_on_craps_and_then_waits_for_its_point() -> None:
    assert fates("pass") == "llssswssswl"
    for point in POINTS:
        assert {total for total in range(2, 13) if fate("pass", total, point) == "w"} == {point}
        assert {total for total in range(2, 13) if fate("pass", total, point) == "l"} == {7}
    assert paid(last(throw(7, bet("pass")))) == {"pass": 60}
    assert paid(last(throw(6, bet("pass")), throw(6))) == {"pass": 60}
    assert paid(last(throw(6, bet("pass")), throw(11), throw(7))) == {"pass": 0}


@pytest.mark.article("10(a)")
def test_the_point_stays_until_it_is_repeated_or_7_comes() -> None:
    told = resolve(series(*map(throw, (5, 9, 12, 5, 7, 8, 7))))
    assert [one.outcome["point"] for one in told] == [0, 5, 5, 5, 0, 0, 8]
    assert [one.outcome["next_point"] for one in told] == [5, 5, 5, 0, 0, 8, 0]
    assert [one.outcome["series"] for one in told] == [
        *("point_set", "point_continues", "point_continues", "point_made", "natural", "point_set", "seven_out"),
    ]
    assert [one.outcome["come_out"] for one in told] == [True, False, False, False, True, True, False]


@pytest.mark.article("10(b)")
def test_dont_pass_is_the_other_side_and_comes_back_on_the_bar() -> None:
    assert fates("dont_pass") == "wwssslssslp"
    assert fates("dont_pass", bar="2") == "pwssslssslw"
    for point in POINTS:
        assert {total for total in range(2, 13) if fate("dont_pass", total, point) == "w"} == {7}
        assert {total for total in range(2, 13) if fate("dont_pass", total, point) == "l"} == {point}
    assert paid(last(throw(12, bet("dont_pass")))) == {"dont_pass": 30}


@pytest.mark.article("10(c)")
def test_come_travels_to_its_total_and_waits_there_over_series() -> None:
    assert fates("come", 6) == "llmmmwmmmwl"
    assert fates("come") == "sssssssssss", "nothing lies there without a point"
    rounds = [throw(6), throw(5, bet("come")), throw(6), throw(8)]
    told = resolve(series(*rounds))
    assert told[1].moves == {"come": "come:5", "dont_come": "dont_come:5"}
    assert [paid(one) for one in told] == [{}] * 4
    assert paid(last(*rounds, throw(5))) == {"come:5": 60}
    assert paid(last(*rounds, throw(7))) == {"come:5": 0}


@pytest.mark.article("10(c)")
def test_a_number_pays_before_another_come_travels_to_it() -> None:
    rounds = [throw(6), throw(5, bet("come", 10)), throw(5, bet("come", 20))]
    assert paid(last(*rounds)) == {"come:5": 20}
    assert paid(last(*rounds, throw(5))) == {"come:5": 40}


@pytest.mark.article("10(c)")
def test_come_is_taken_with_a_point_up_alone() -> None:
    told = last(throw(7, bet("come"), bet("dont_come")))
    assert codes(told) == [("no_point", "(10)c)"), ("no_point", "(10)d)")]
    assert told.settlements == ()
    assert codes(last(throw(6), throw(5, bet("come:8")))) == [("bet_travels", "(10)c)")]


@pytest.mark.article("10(d)")
def test_dont_come_is_the_other_side_of_come() -> None:
    assert fates("dont_come", 6) == "wwmmmlmmmlp"
    assert fates("dont_come", 6, bar="2") == "pwmmmlmmmlw"
    rounds = [throw(6), throw(9, bet("dont_come"))]
    assert paid(last(*rounds, throw(7))) == {"dont_come:9": 60}
    assert paid(last(*rounds, throw(9))) == {"dont_come:9": 0}
    assert paid(last(throw(6), throw(12, bet("dont_come")))) == {"dont_come": 30}


@pytest.mark.article("10(e)")
@pytest.mark.article("10(f)")
def test_big_6_and_big_8_wait_for_their_total_or_7() -> None:
    assert fates("big_6") == "sssswlsssss"
    assert fates("big_8") == "ssssslwssss"
    assert paid(last(throw(6, bet("big_6"), bet("big_8")))) == {"big_6": 60}


@pytest.mark.article("10(g)")
@pytest.mark.article("10(h)")
def test_under_and_over_seven() -> None:
    assert fates("under_7") == "wwwwwllllll"
    assert fates("over_7") == "llllllwwwww"
    assert paid(last(throw(4, bet("under_7"), bet("over_7")))) == {"under_7": 60, "over_7": 0}


@pytest.mark.article("10(i)")
@pytest.mark.parametrize(
    "move", [WagerWithdrawn(1, "pass"), WagerWithdrawn(1, "pass", 10), bet("pass"), bet("dont_pass")]
)
def test_line_bets_are_fixed_after_the_first_throw(move: Event) -> None:
    told = last(throw(6, bet("pass")), throw(6, move))
    assert codes(told) == [("line_bet_fixed", "(10)i)")]
    assert paid(told) == {"pass": 60}


@pytest.mark.article("10(i)")
def test_travelled_bets_are_fixed_and_what_waits_for_its_first_throw_is_not() -> None:
    told = last(throw(6), throw(5, bet("come"), bet("dont_come", 7)), throw(5, WagerWithdrawn(1, "come:5")))
    assert codes(told) == [("line_bet_fixed", "(10)i)")]
    assert paid(told) == {"come:5": 60, "dont_come:5": 0}
    assert paid(last(throw(7, bet("pass"), WagerWithdrawn(1, "pass", 10)))) == {"pass": 40}
    assert paid(last(throw(6), throw(7, bet("come"), WagerWithdrawn(1, "come")))) == {}
    assert paid(last(throw(6, bet("pass")), throw(6), throw(11, bet("pass", 5)))) == {"pass": 10}, "a new series"


# ---- 4(11): multiple chances


@pytest.mark.article("11(a)")
@pytest.mark.parametrize(("point", "wins", "loses"), [(4, "2", "1/2"), (5, "3/2", "2/3"), (6, "6/5", "5/6")])
def test_odds_pay_what_the_point_is_worth_and_the_inverse_against_it(point: int, wins: str, loses: str) -> None:
    for mark in (point, 14 - point):
        made, lost = last(throw(mark), throw(mark)), last(throw(mark), throw(7))
        assert odds(made)["pass_odds"] == odds(made)[f"come_odds:{mark}"] == wins
        assert odds(lost)["dont_pass_odds"] == odds(lost)[f"dont_come_odds:{mark}"] == loses
        printed = last(throw(mark), throw(7), dont_odds="as_printed")
        assert odds(printed)["dont_pass_odds"] == odds(printed)[f"dont_come_odds:{mark}"] == wins


@pytest.mark.article("11(a)")
def test_odds_up_to_the_bet_that_they_stand_beside() -> None:
    begun = throw(4, bet("pass", 30), bet("dont_pass", 20, 2))
    told = last(begun, throw(4, bet("pass_odds", 30), bet("dont_pass_odds", 21, 2), bet("dont_pass_odds", 20, 2)))
    assert codes(told) == [("odds_over_bet", "(11)a)")]
    assert paid(told) == {"pass": 60, "dont_pass": 0, "pass_odds": 90, "dont_pass_odds": 0}
    assert codes(last(begun, throw(4, bet("pass_odds", 30), bet("pass_odds", 1)))) == [("odds_over_bet", "(11)a)")]
    assert codes(last(throw(7, bet("pass"), bet("pass_odds")))) == [("no_point", "(11)a)")]
    assert codes(last(begun, throw(4, bet("come_odds:6")))) == [("odds_over_bet", "(11)a)")]


@pytest.mark.article("11(a)")
def test_odds_beside_a_travelled_bet_work_on_every_throw() -> None:
    """They are never off: a 7 on the first throw of the next series takes them."""
    begun = [throw(6), throw(5, bet("come")), throw(6, bet("come_odds:5"), bet("dont_come_odds:5"))]
    assert codes(last(*begun)) == [("odds_over_bet", "(11)a)")], "no dont_come lies there"
    assert paid(last(*begun, throw(5))) == {"come:5": 60, "come_odds:5": 75}
    assert paid(last(*begun, throw(7))) == {"come:5": 0, "come_odds:5": 0}


@pytest.mark.article("11(a)")
def test_odds_may_be_taken_back_until_the_throw_and_have_a_highest_payment() -> None:
    begun = throw(4, bet("pass", 30))
    assert paid(last(begun, throw(4, bet("pass_odds"), WagerWithdrawn(1, "pass_odds", 10)))) == {
        "pass": 60,
        "pass_odds": 60,
    }
    assert paid(last(begun, throw(8, bet("pass_odds")), throw(7, WagerWithdrawn(1, "pass_odds")))) == {"pass": 0}
    told = last(begun, throw(4, bet("pass_odds", 26), bet("pass_odds", 25)), maximum_payment=50)
    assert codes(told) == [("odds_over_payment", "(11)a)")]
    assert paid(told) == {"pass": 60, "pass_odds": 75}


@pytest.mark.article("11(a)")
@pytest.mark.parametrize(
    ("point", "stake", "most", "refused"),
    [
        (4, 25, 50, False),  # 2 for 1
        (4, 25, 49, True),
        (4, 26, 51, True),
        (5, 20, 30, False),  # 3 for 2
        (5, 21, 31, True),  # 31.5
        (6, 25, 30, False),  # 6 for 5
        (6, 26, 31, True),  # 31.2
    ],
)
def test_the_highest_payment_of_odds_is_reached_and_not_passed(
    point: int, stake: int, most: int, refused: bool
) -> None:
    told = last(throw(point, bet("pass", 30)), throw(point, bet("pass_odds", stake)), maximum_payment=most)
    assert codes(told) == ([("odds_over_payment", "(11)a)")] if refused else [])
    assert ("pass_odds" in paid(told)) is not refused


@pytest.mark.article("11(a)")
def test_odds_are_as_large_as_the_bet_and_not_a_unit_larger() -> None:
    for stake, refused in ((29, False), (30, False), (31, True)):
        told = last(throw(4, bet("pass", 30)), throw(4, bet("pass_odds", stake)))
        assert codes(told) == ([("odds_over_bet", "(11)a)")] if refused else [])


@pytest.mark.article("11(a)")
def test_odds_may_be_taken_back_after_the_bell_until_the_throw() -> None:
    begun = throw(4, bet("pass"))
    laid: list[Event] = [OPEN, bet("pass_odds"), BetsClosed()]
    for taken, back in ((0, {}), (10, {"pass_odds": 0})):
        result = last(begun, [*laid, WagerWithdrawn(1, "pass_odds", taken), DiceThrown(WAYS[7])])
        assert (paid(result), codes(result)) == ({"pass": 0} | back, [])
        assert sum(one.stake for one in result.settlements) == (30 if not taken else 50)
    late: list[Event] = [bet("pass_odds"), bet("field"), WagerWithdrawn(1, "field"), WagerWithdrawn(1, "pass")]
    result = last(begun, [OPEN, bet("field"), BetsClosed(), *late, DiceThrown(WAYS[7])])
    assert codes(result) == [("late_bet", "(9)")] * 4
    assert paid(result) == {"pass": 0, "field": 0}


@pytest.mark.article("11(b)")
@pytest.mark.article("11(d)")
@pytest.mark.article("11(e)")
@pytest.mark.article("11(f)")
@pytest.mark.article("11(g)")
@pytest.mark.article("11(h)")
@pytest.mark.parametrize(
    ("name", "wins", "pays"),
    [
        ("any_craps", "wwllllllllw", "7"),
        ("seven", "lllllwlllll", "4"),
        ("two", "wllllllllll", "30"),
        ("three", "lwlllllllll", "15"),
        ("eleven", "lllllllllwl", "15"),
        ("twelve", "llllllllllw", "30"),
    ],
)
def test_bets_on_the_next_throw(name: str, wins: str, pays: str) -> None:
    assert fates(name) == fates(name, 6) == wins
    total = 2 + wins.index("w")
    assert odds(last(throw(total)))[name] == pays
    assert paid(last(throw(total, bet(name)))) == {name: 30 * (1 + int(pays))}
    [printed] = (one.text for one in game().bets() if one.id == name)
    assert printed == {"any_craps": "2, 3 or 12"}.get(name, str(total))


@pytest.mark.article("11(c)")
@pytest.mark.parametrize(("total", "pays"), [(4, 7), (6, 9), (8, 9), (10, 7)])
def test_a_hardway_wins_as_a_pair_and_loses_on_7_or_its_total_in_another_way(total: int, pays: int) -> None:
    name, pair = f"hard_{total}", DiceThrown((total // 2, total // 2))
    assert fates(name) == "".join("l" if one in (7, total) else "s" for one in range(2, 13))
    assert paid(last([OPEN, bet(name), pair])) == {name: 30 * (1 + pays)}
    assert paid(last(throw(total, bet(name)))) == paid(last(throw(7, bet(name)))) == {name: 0}
    assert paid(last(throw(11, bet(name)), [OPEN, pair])) == {name: 30 * (1 + pays)}


# ---- 4(12), 4(13)


@pytest.mark.article("12")
@pytest.mark.article("12(a)")
@pytest.mark.article("12(b)")
@pytest.mark.parametrize(
    ("total", "first", "second"),
    [
        (4, "9/5", "5/11"),
        (5, "7/5", "5/8"),
        (6, "7/6", "10/13"),
        (8, "7/6", "10/13"),
        (9, "7/5", "5/8"),
        (10, "9/5", "5/11"),
    ],
)
def test_numbers_before_7_and_7_before_numbers(total: int, first: str, second: str) -> None:
    assert fates(f"place:{total}") == "".join({7: "l", total: "w"}.get(one, "s") for one in range(2, 13))
    assert fates(f"place_lose:{total}") == "".join({7: "w", total: "l"}.get(one, "s") for one in range(2, 13))
    assert odds(last(throw(total)))[f"place:{total}"] == first
    assert odds(last(throw(7)))[f"place_lose:{total}"] == second
    printed = odds(last(throw(total), place_4_10="as_printed"))[f"place:{total}"]
    assert printed == ("9/15" if total in (4, 10) else first)


@pytest.mark.article("12")
def test_bets_on_numbers_are_multiples_of_the_minimum() -> None:
    assert [[*game(minimum=least).article_limits()] for least in (1, 2)] == [[], ["place", "place_lose"]]
    moves = (bet("place:6", 25), bet("place:6", 20), bet("place_lose:6", 15), WagerWithdrawn(1, "place:6", 10))
    told = last(throw(6, *moves), minimum=10)
    assert codes(told) == [("bet_not_in_steps", "(12)")] * 2
    assert [(one.bet, one.stake) for one in told.settlements] == [("place:6", 30), ("place_lose:6", 10)]
    for amount, left in ((9, []), (10, [10]), (11, [10]), (19, [10]), (20, [20])):
        told = last(throw(6, bet("place:6", amount)), minimum=10)
        assert ([one.stake for one in told.settlements], bool(codes(told))) == (left, left != [amount]), amount
    assert paid(last(throw(6, bet("place:6", 5), bet("place:6", 5)), minimum=10)) == {"place:6": 21}
    assert paid(last(throw(6, bet("place:6", 20), WagerWithdrawn(1, "place:6")), minimum=10)) == {}


@pytest.mark.article("13(a)")
def test_the_field_pays_double_on_2_and_12() -> None:
    assert fates("field") == "wwwllllwwww"
    assert {total: odds(last(throw(total)))["field"] for total in (2, 3, 4, 9, 10, 11, 12)} == {
        **dict.fromkeys((3, 4, 9, 10, 11), "1"),
        **dict.fromkeys((2, 12), "2"),
    }


@pytest.mark.article("13(c)i")
def test_what_the_stickman_calls() -> None:
    offered = ("pass", "dont_pass", "come", "place", "field")
    told = resolve(series(*map(throw, (6, 4, 6, 8, 7))), bets_offered=offered)
    said = [one.announcements["en"].split(". ") for one in told]
    assert said[0] == ["Total 6, the point is 6", "Win: come 6; place 6", "Lose: field", "Same shooter, same point"]
    assert said[1][:2] == ["Total 4, the point 6 goes on", "Win: come 4; place 4; field"]
    assert said[2][0::3] == ["Total 6, the point is made", "Same shooter, new point"]
    assert said[2][1:3] == ["Win: pass line; come 6; place 6", "Lose: don't pass line; field"]
    assert said[4] == [
        "Total 7, the point 8 loses",
        "Win: don't pass line; come",
        "Lose: pass line; come 4 5 6 8 9 10; place 4 5 6 8 9 10; field",
        "New shooter, new point",
    ]
    assert told[0].announcements["pt"].startswith("Total 6, o ponto é 6. Ganham: come 6; casa 6. ")
    assert told[-1].announcements["pt"].endswith("Novo deitador, novo ponto")
    [null] = results(play(game(), [OPEN, NULL]))
    assert null.announcements == {"pt": "Golpe nulo", "en": "No throw"}


@pytest.mark.article("13(c)ii")
def test_the_last_throw_is_a_duty_by_the_clock_of_an_option() -> None:
    [duty] = DUTIES
    assert (duty.code, duty.law.removeprefix(CITED)) == ("last_throw", "(13)c)ii")
    assert CrapsOptions(closes_at="02:30").closes_at == "02:30"
    for wrong in ("24:00", "2:30", "02:60", "noon"):
        with pytest.raises(ValueError, match=r"closes_at: art. 4\(13\)c\)ii"):
            CrapsOptions(closes_at=wrong)


@pytest.mark.article("13(c)ii")
def test_a_series_that_began_in_time_is_thrown_to_its_end() -> None:
    closing = (START + timedelta(minutes=10)).strftime("%H:%M")
    ruleset = RULESETS[LAW](CrapsOptions(closes_at=closing))
    rounds = {1: throw(6), 6: throw(8), 7: throw(6), 8: throw(5)}
    state, noted, n = ruleset.start("t-1"), [], 0
    for minute, events in rounds.items():
        for event in (*events, PAID):
            n += 1
            seen = Envelope(f"e{n}", "d-1", START + timedelta(minutes=minute), event)
            state, verdicts = ruleset.apply(state, seen)
            noted += [(minute, one.irregularity.code) for one in verdicts if isinstance(one, Noted)]
    assert noted == [(8, "last_throw_late")]


@pytest.mark.article("13(c)ii")
@pytest.mark.parametrize(("seconds", "late"), [(299, False), (300, False), (301, True), (360, True)])
def test_no_series_begins_in_the_last_five_minutes(seconds: int, late: bool) -> None:
    """`seconds` after ten minutes before the closing."""
    closing = START + timedelta(minutes=10)
    ruleset = RULESETS[LAW](CrapsOptions(closes_at=closing.strftime("%H:%M")))
    early = Envelope("e1", "d-1", closing - timedelta(minutes=10), OPEN)
    state, _ = ruleset.apply(ruleset.start("t-1"), early)
    state, _ = ruleset.apply(state, Envelope("e2", "d-1", early.time, DiceThrown((3, 4))))
    again = Envelope("e3", "d-1", closing - timedelta(minutes=10) + timedelta(seconds=seconds), OPEN)
    _, verdicts = ruleset.apply(state, again)
    noted = [one.irregularity.code for one in verdicts if isinstance(one, Noted)]
    assert noted == (["last_throw_late"] if late else [])


# ---- 4(4) to 4(8): the dice and the shooter


@pytest.mark.article("4")
def test_a_throw_is_two_dice_whoever_reads_them() -> None:
    assert resolve([OPEN, BetsClosed(), DiceRead((6, 1))])[0].outcome["faces"] == (1, 6)
    early = resolve([OPEN, DiceRead((6, 1)), BetsClosed(), DiceRead((2, 3))])
    assert [(one.outcome["total"], codes(one)) for one in early] == [(5, [("read_before_bell", "(4)")])]
    for wrong in (DiceThrown((3,)), DiceThrown((1, 2, 3)), DiceRead((1, 2, 3)), DiceRead((1, 2), stacked=1)):
        told = resolve([OPEN, wrong, DiceThrown((1, 6))])
        assert [codes(one) for one in told] == [[("throw_unreadable", "(4)")]]
        assert told[0].outcome["total"] == 7


@pytest.mark.article("5")
def test_a_shooter_without_a_bet_is_irregular() -> None:
    told = last([HandPassed(2), *throw(7, bet("pass"))])
    assert codes(told) == [("shooter_without_bet", "(5)")]
    assert told.outcome["shooter"] == 2
    assert codes(last([HandPassed(1), *throw(7, bet("pass"))])) == []
    assert codes(last([HandPassed(2), *throw(7)])) == [], "no bets are known at this table"


@pytest.mark.article("7")
@pytest.mark.parametrize("reason", ["a_die_off_the_table", "short_of_the_middle"])
def test_a_null_throw_leaves_the_bets_and_the_point(reason: str) -> None:
    null = DiceThrown((3, 4), valid=False, reason=reason)
    begun = throw(6, bet("pass"))
    told = resolve([*series(begun), OPEN, bet("field", 5), null, *throw(6)])
    assert [one.void.bets if one.void else "" for one in told] == ["", "stand", ""]
    assert told[1].void is not None
    assert told[1].void.reason.code == reason
    assert told[1].law == (f"{CITED}(7)",)
    assert told[1].settlements == ()
    assert told[1].irregularities == ()
    assert paid(told[2]) == {"pass": 60, "field": 0}
    [odd] = resolve([OPEN, DiceThrown((), valid=False, reason="a_die_stuck_in_the_cup")])
    assert codes(odd) == [("null_not_named", "(7)")]


@pytest.mark.article("7")
def test_a_die_that_left_the_table_is_replaced() -> None:
    """Where the console reports it."""
    assert codes(last([OPEN, NULL], throw(5), handling="console")) == [("die_not_replaced", "(7)")]
    assert codes(last([OPEN, NULL, DiceReplaced()], throw(5), handling="console")) == []
    assert codes(last([OPEN, NULL], throw(5))) == []


@pytest.mark.article("7")
def test_a_die_that_is_entered_as_off_the_table_after_another_throw_is_replaced() -> None:
    disputed = [*throw(6), NULL, NULL]
    assert codes(last(disputed, throw(5), handling="console")) == [("die_not_replaced", "(7)")]
    assert codes(last([*disputed, DiceReplaced()], throw(5), handling="console")) == []


@pytest.mark.article("7")
def test_a_payment_does_not_confirm_a_throw_that_the_stickman_called_null() -> None:
    events: list[Event] = [OPEN, bet("pass"), BetsClosed(), DiceRead((3, 4)), NULL, DiceThrown((1, 1)), PAID]
    assert not [one for one in play(game(), events) if isinstance(one, Corrected)]
    [ended] = [one.result for one in play(game(), [*events, OPEN]) if isinstance(one, Corrected)]
    assert paid(ended) == {"pass": 30}


@pytest.mark.article("8")
def test_the_dice_change_hands_after_a_seven_out() -> None:
    out = [throw(6), throw(7)]
    assert codes(last(*out, throw(5), handling="console")) == [("dice_not_passed", "(8)")]
    assert codes(last(*out, [HandPassed(3), *throw(5)], handling="console")) == []
    assert codes(last(throw(7), throw(5), handling="console")) == [], "7 on the first throw takes no pass bet"
    assert f"{CITED}(8)" in last(*out).law
    assert codes(last(*out, throw(5))) == []


# ---- 4(9): the whole board, and the house's choices


@pytest.mark.article("9")
def test_every_bet_of_the_board_is_decided_stands_or_moves_once() -> None:
    assert len(game().board) == 4 + 12 + 4 + 2 + 12 + 1 + 4 + 5 + 12 + 1
    for point in (0, *POINTS):
        for a, b in EVERY_THROW:
            result = resolve([*(throw(point) if point else ()), OPEN, DiceThrown((a, b))])[-1]
            named = [*odds(result), *map(str, result.pushes), *result.stands, *result.moves]
            assert len(named) == len(set(named))
            for place in game().board:
                expected = oracle(place, point, a, b)
                if not point and place in ("pass_odds", "dont_pass_odds", "come", "dont_come"):
                    expected = None  # nothing can lie there
                found = 1 + Fraction(odds(result)[place]) if place in odds(result) else Fraction(place in result.pushes)
                assert (place in result.stands) is (expected is None)
                assert result.moves.get(place) == (expected if isinstance(expected, str) else None)
                if isinstance(expected, Fraction):
                    assert found == expected


def test_bets_offered() -> None:
    offered = game(bets_offered=("pass", "place"))
    assert [one.id for one in offered.bets()] == ["pass", "place:n"]
    [told] = results(play(offered, throw(7, bet("field"), bet("pass"))))
    assert [note.code for note in told.irregularities] == ["bet_not_offered"]
    assert told.moves == {}
    with pytest.raises(BadOption, match=r"art. 4 has no bet 'red'"):
        options_from(Craps, {"bets_offered": ["red"]})
    with pytest.raises(BadOption, match=r"art. 4\(11\)a\): pass_odds stand beside pass"):
        options_from(Craps, {"bets_offered": ["pass_odds"]})
    assert len(FAMILIES) == 25


def test_a_prize_that_the_smallest_chip_cannot_pay_is_rounded() -> None:
    for rounding, amount in (("down", 60), ("up", 65)):
        told = last(throw(6, bet("place:6", 30)), smallest_chip=5, rounding=rounding)
        assert [(one.returned, one.exact) for one in told.settlements] == [(65, "")]
        told = last(throw(6, bet("place:6", 28)), smallest_chip=10, rounding=rounding)
        assert [(one.returned, one.exact) for one in told.settlements] == [
            (amount - 2 if rounding == "down" else 68, "182/3")
        ]


# ---- doubt


def verdicts_of(events: Sequence[Event], **options: Any) -> list[Verdict]:
    return play(game(**options), events)


BEGUN = [*series(throw(6, bet("pass"), bet("hard_8")))]


@pytest.mark.parametrize("loss", [EventsMissed(1), DeviceOnline(continuous=False)])
def test_after_a_loss_no_throw_is_resolved_until_a_person_ends_the_series(loss: Event) -> None:
    """Wherever it comes: neither the point nor the bets are known."""
    for before in ([*BEGUN, loss, OPEN], [*BEGUN, OPEN, loss], [*BEGUN[:-1], loss, OPEN]):
        events = [*before, DiceThrown((1, 5)), PAID, OPEN, DiceThrown((2, 4)), PAID]
        told = verdicts_of(events)
        assert [one.reason.code for one in told if isinstance(one, Suspended)] == ["series_unknown"]
        assert len(results(told)) == 1, "the throw before the loss"
        after = verdicts_of([*events, VOID, *throw(5, bet("pass", 7))])
        assert [type(one) for one in after[len(told) :]] == [Voided, Opened, Closed, Resolved]
        voided, resolved = results(after)[1:]
        assert voided.void is not None
        assert voided.void.bets == "returned"
        assert paid(voided) == {"pass": 30, "hard_8": 30}
        assert resolved.outcome["series"] == "point_set"
        assert resolved.settlements == ()


def test_after_a_loss_the_shooter_is_not_known() -> None:
    events = [HandPassed(2), *BEGUN, EventsMissed(1), OPEN, VOID, *throw(5, bet("pass"))]
    assert codes(resolve(events)[0]) == [("shooter_without_bet", "(5)")]
    assert codes(resolve(events)[-1]) == []
    assert game().view(after(game(), events[:-3])).detail["shooter"] == 0


def test_after_a_seven_out_the_shooter_is_not_known_until_that_is_told() -> None:
    begun = [HandPassed(2), *series(throw(6, bet("pass")), throw(7))]
    assert codes(resolve([*begun, *throw(5, bet("pass"))])[-1]) == []
    assert codes(resolve([*begun, HandPassed(3), *throw(5, bet("pass"))])[-1]) == [("shooter_without_bet", "(5)")]


def test_a_table_without_a_past_has_nothing_to_lose() -> None:
    told = verdicts_of([DeviceOnline(continuous=False), *throw(6)])
    assert [one.outcome["series"] for one in results(told)] == ["point_set"]


def test_a_round_that_a_person_declares_void_gives_all_bets_back_and_ends_the_series() -> None:
    told = resolve([*BEGUN, OPEN, bet("field", 5), VOID, *throw(8)])
    assert paid(told[1]) == {"pass": 30, "hard_8": 30, "field": 5}
    assert told[2].outcome["series"] == "point_set"
    after = verdicts_of([*BEGUN, *throw(6), VOID, *throw(8)])  # after the throw, before its payment
    [taken] = corrected(after)
    assert taken.void is not None
    assert paid(taken) == {"pass": 30, "hard_8": 30}
    assert results(after)[-1].outcome["series"] == "point_set"


def corrected(verdicts: Sequence[Verdict]) -> list[Result]:
    return [one.result for one in verdicts if isinstance(one, Corrected)]


def test_a_second_throw_disputes_the_first_until_one_of_them_is_entered_again_or_paid() -> None:
    disputed = [*BEGUN, *throw(6), DiceThrown((2, 3))]
    told = verdicts_of(disputed)
    assert [one.reason.code for one in told if isinstance(one, Suspended)] == ["throws"]
    [first] = corrected(verdicts_of([*disputed, PAID]))
    assert paid(first) == {"pass": 60}
    again = verdicts_of([*disputed, DiceThrown((3, 2)), PAID, *throw(7)])
    [second] = corrected(again)
    assert (second.outcome["total"], second.outcome["next_point"], paid(second)) == (5, 6, {})
    assert paid(results(again)[-1]) == {"pass": 0, "hard_8": 0}, "what the first one took from the table is back"
    nulled = verdicts_of([*BEGUN, *throw(6), NULL, NULL, PAID, *throw(6)])
    [null] = corrected(nulled)
    assert null.void is not None
    assert null.void.bets == "stand"
    assert paid(results(nulled)[-1]) == {"pass": 60}


def test_the_same_throw_told_twice_is_one() -> None:
    told = verdicts_of([*throw(6), DiceRead((5, 1)), PAID, DiceThrown((1, 5)), OPEN, NULL, NULL])
    assert [type(one) for one in told if not isinstance(one, Opened)][-1] is Voided
    assert len(results(told)) == 2
    assert not [one for one in told if isinstance(one, Noted)]


def test_a_dispute_that_is_left_gives_its_bets_back_and_the_next_throw_waits() -> None:
    told = verdicts_of([*BEGUN, *throw(6), DiceThrown((2, 3)), OPEN, DiceThrown((1, 5))])
    assert paid(corrected(told)[0]) == {"pass": 30, "hard_8": 30}
    assert [one.reason.code for one in told if isinstance(one, Suspended)] == ["throws", "series_unknown"]
    assert len(results(told)) == 2
    left = after(game(), [*BEGUN, *throw(6), DiceThrown((2, 3)), OPEN])
    assert (left.point, left.unknown) == (0, True)


def test_a_throw_while_no_bets_are_open_is_noted() -> None:
    [noted] = verdicts_of([DiceThrown((1, 6))])
    assert isinstance(noted, Noted)
    assert (noted.irregularity.code, noted.irregularity.law) == ("throw_without_round", f"{CITED}(6)")


# ---- what is shown


def test_the_view_follows_the_marker() -> None:
    ruleset = game()
    state, shown = ruleset.start("t-1"), []
    for seen in script([OPEN, BetsClosed(), DiceThrown((1, 5)), PAID, OPEN, EventsMissed(1)]):
        state, _ = ruleset.apply(state, seen)
        view = ruleset.view(state)
        shown.append((view.phase, view.detail.get("point"), view.detail.get("next_point")))
    assert shown == [
        ("betting", 0, None),
        ("closed", 0, None),
        ("paying", 0, 6),
        ("idle", 6, None),
        ("betting", 6, None),
        ("suspended", None, None),
    ]


def test_a_state_survives_json() -> None:
    ruleset, state = game(), game().start("t-1")
    for seen in script([*BEGUN, HandPassed(3), *throw(5, bet("come"))]):
        state, _ = ruleset.apply(state, seen)
    assert msgspec.json.decode(msgspec.json.encode(state), type=CrapsState) == state
    assert [(one.bet, one.amount) for one in state.standing] == [("pass", 30), ("hard_8", 30), ("come:5", 30)]


# ---- 4(10)i: two supervisors state the series after a loss


LAY = (LaidBet(1, "pass", 30), LaidBet(2, "come:5", 20))
LOST: list[Event] = [*series(throw(6, bet("pass"))), EventsMissed(1), OPEN]


def states(by: str, point: int = 6, bets: tuple[LaidBet, ...] = LAY) -> SeriesStated:
    return SeriesStated(by=by, point=point, bets=bets)


@pytest.mark.article("10(i)")
@pytest.mark.parametrize("before", [False, True])
def test_two_supervisors_state_the_point_and_the_bets_after_a_loss(before: bool) -> None:
    stated: list[Event] = [states("ana"), states("Rui", bets=LAY[::-1])]
    events = [*LOST[:-1], *stated, OPEN] if before else [*LOST, *stated]
    assert game().view(after(game(), events)).phase == "betting"
    made = resolve([*events, DiceThrown(WAYS[6])])[-1]
    assert paid(made) == {"pass": 60}
    assert "come:5" in made.stands
    if not before:
        assert codes(made) == [("series_stated", "(10)i)")]
        assert made.irregularities[0].reason.values == {"name": "ana", "other": "Rui"}
    fixed = resolve([*events, WagerWithdrawn(1, "pass"), DiceThrown(WAYS[6])])[-1]
    assert ("line_bet_fixed", "(10)i)") in codes(fixed)
    assert paid(fixed) == {"pass": 60}


@pytest.mark.article("10(i)")
@pytest.mark.parametrize(
    "stated",
    [
        [states("ana")],
        [states("ana"), states("ana")],
        [states("ana"), states("ANA ")],
        [states("ana"), states("rui", 8)],
        [states("ana"), states("rui", bets=LAY[:1])],
        [states("ana"), EventsMissed(1), states("rui")],
        [states("ana"), SeriesStated(by="rui", point=6, bets=LAY, round="another")],
        [states("ana"), SeriesStated(by="rui", point=6, bets=LAY, parts=2)],
        [states("ana"), SeriesStated(by="rui", point=6, bets=LAY, part=2, parts=2)],
        [states("ana", 7), states("rui", 7)],
        [states("ana", 6, (LAY[0], LAY[0])), states("rui", 6, (LAY[0], LAY[0]))],
        [states("ana", 0, (LaidBet(1, "come", 5),)), states("rui", 0, (LaidBet(1, "come", 5),))],
        [states("ana", 6, (LaidBet(1, "pass_odds", 5),)), states("rui", 6, (LaidBet(1, "pass_odds", 5),))],
        [states("ana", 6, (LaidBet(1, "no_bet", 5),)), states("rui", 6, (LaidBet(1, "no_bet", 5),))],
    ],
)
def test_what_one_supervisor_states_or_cannot_lie_there_changes_nothing(stated: list[Event]) -> None:
    events = [*LOST, *stated, DiceThrown(WAYS[6])]
    assert game().view(after(game(), events)).phase == "suspended"
    assert len(resolve(events)) == 1


@pytest.mark.article("10(i)")
def test_a_statement_of_another_round_is_noted_with_the_beginning_of_its_name() -> None:
    [voided] = resolve([*LOST, SeriesStated(by="rui", point=6, bets=LAY, round="r" * 81), VOID])[1:]
    assert [one.reason.values.get("round") for one in voided.irregularities] == ["r" * 80]


@pytest.mark.article("10(i)")
def test_after_a_difference_two_that_agree_count() -> None:
    stated = [states("ana"), states("rui", 8), states("ana", 8)]
    made = resolve([*LOST, *stated, DiceThrown(WAYS[8])])[-1]
    assert codes(made) == [("series_differs", "(10)i)"), ("series_stated", "(10)i)")]
    assert paid(made) == {"pass": 60}


@pytest.mark.article("10(i)")
def test_a_loss_between_two_statements_needs_both_again_and_says_so() -> None:
    """The bets may have changed in it: the second supervisor's word is the first one now."""
    lost = [*LOST, states("ana"), EventsMissed(1), states("rui")]
    assert game().view(after(game(), lost)).phase == "suspended"
    assert len(resolve([*lost, DiceThrown(WAYS[6])])) == 1
    made = resolve([*lost, states("ana"), DiceThrown(WAYS[6])])[-1]
    assert ("series_forgotten", "(10)i)") in codes(made)
    assert made.irregularities[-1].reason.values == {"name": "rui", "other": "ana"}
    assert paid(made) == {"pass": 60}


@pytest.mark.article("10(i)", "11(a)")
@pytest.mark.parametrize(("odds", "stands"), [(30, True), (31, False)])
def test_stated_odds_are_as_large_as_their_bet_and_not_a_unit_larger(odds: int, stands: bool) -> None:
    lie = (LaidBet(1, "pass", 30), LaidBet(1, "pass_odds", odds))
    assert stand_as_stated(*(states(by, 6, lie) for by in ("ana", "rui"))) == stands


def stand_as_stated(*stated: SeriesStated) -> bool:
    """Whether the next throw may come."""
    return game().view(after(game(), [*LOST, *stated])).phase == "betting"


@pytest.mark.article("10(i)", "11(a)")
@pytest.mark.parametrize(
    ("point", "bets", "stands"),
    [
        (0, {"pass": 30}, True),
        (1, {"pass": 30}, False),
        (6, {"pass_odds": 1}, False),
        # 2 x pass and 5 x seven may come back: 2^53 - 1 together, one more, and six more.
        (6, {"pass": (2**53 - 6) // 2, "seven": 1}, True),
        (6, {"pass": 2**52}, False),
        (6, {"pass": (2**53 - 10) // 2, "seven": 2}, False),
    ],
)
def test_what_two_supervisors_state_lies_there_where_it_can(point: int, bets: dict[str, int], stands: bool) -> None:
    lie = tuple(LaidBet(1, name, amount) for name, amount in bets.items())
    assert stand_as_stated(*(states(by, point, lie) for by in ("ana", "rui"))) == stands


@pytest.mark.article("10(i)")
@pytest.mark.parametrize(
    ("sizes", "numbers", "stands"),
    [
        ((128, 128), (1, 2), True),
        ((100, 100, 56), (1, 2, 3), True),
        ((128, 129), (1, 2), False),
        ((100, 56, 100), (1, 3, 2), False),
        ((128, 128), (1, 1), False),
    ],
)
def test_a_statement_in_parts_has_256_bets_at_most_in_order(
    sizes: tuple[int, ...], numbers: tuple[int, ...], stands: bool
) -> None:
    lie = iter([LaidBet(seat, name, 1) for seat in range(1, 100) for name in ("pass", "big_6", "big_8")])
    taken = [tuple(islice(lie, size)) for size in sizes]
    told = [
        SeriesStated(by=by, point=6, bets=bets, part=number, parts=len(sizes))
        for by in ("ana", "rui")
        for number, bets in zip(numbers, taken, strict=True)
    ]
    assert stand_as_stated(*told) == stands


@pytest.mark.article("10(i)")
def test_the_parts_of_a_statement_are_not_joined_over_a_loss() -> None:
    parts = [SeriesStated(by="rui", point=6, bets=(bet,), part=n, parts=2) for n, bet in enumerate(LAY, 1)]
    assert game().view(after(game(), [*LOST, states("ana"), *parts])).phase == "betting"
    assert game().view(after(game(), [*LOST, parts[0], EventsMissed(1), parts[1], states("ana")])).phase == "suspended"


@pytest.mark.article("10(i)")
def test_a_known_series_is_not_stated() -> None:
    noted_ = [
        one.irregularity.code for one in play(game(), [*series(throw(6)), states("ana")]) if isinstance(one, Noted)
    ]
    assert noted_ == ["series_is_known"]
    assert (
        codes(resolve([OPEN, states("ana"), states("rui"), DiceThrown(WAYS[7])])[-1])
        == [("series_is_known", "(10)i)")] * 2
    )


# ---- 4(5): who is offered the dice


@pytest.mark.article("5")
def test_the_dice_are_offered_from_the_stickmans_left_pass_line_bettors_first() -> None:
    laid = [bet("field", seat=1), bet("pass", seat=4), bet("pass", seat=3), bet("seven", seat=6)]

    def offered(*events: Event) -> Any:
        return game().view(after(game(), events)).detail.get("shooters")

    assert offered(OPEN, *laid) == (3, 4, 1, 6)
    assert offered(OPEN) == ()
    assert offered(HandPassed(3), OPEN, *laid) is None
    out = [*throw(6, *laid), PAID, *throw(7)]
    assert offered(HandPassed(3), *out, PAID, OPEN, *laid) == (4, 3, 6, 1)
    assert offered(*throw(6, *laid), PAID, OPEN) is None, "the dice stay while a point is up"
