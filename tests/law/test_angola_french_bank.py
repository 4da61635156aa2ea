"""Angola French bank, paragraph by paragraph: Decreto Executivo 261/22, article 3."""

from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction
from itertools import product
from typing import Any

import msgspec
import pytest
from helpers import game_of, only, play, results, script
from hypothesis import given, strategies as st

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DealerRelieved,
    DeviceOnline,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceSeized,
    DiceThrown,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from protocols.fdl.console import THROW_REASONS
from rules.angola.french_bank import DUTIES, FAMILIES, FrenchBank
from rules.engine.duties import HOUR, Duty
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
    Void,
    Voided,
    options_from,
)

LAW = "angola.french-bank"
TEXT = "Decreto Executivo 261/22 art. "
Dice = tuple[int, int, int]
THROWS: list[Dice] = list(product(range(1, 7), range(1, 7), range(1, 7)))
NINE, SIX, FIFTEEN, THREE = (DiceThrown(faces) for faces in ((1, 2, 6), (1, 2, 3), (4, 5, 6), (1, 1, 1)))
READ_NINE, READ_SIX = DiceRead((2, 1, 6)), DiceRead((3, 2, 1))
FIRST: list[tuple[float, Event]] = [(0, BetsOpened()), (1, WagerPlaced(1, "small", 10)), (9, BetsClosed())]
OPEN: tuple[Event, ...] = (BetsOpened(),)


game = game_of(FrenchBank)


def bets(**amounts: int) -> list[Event]:
    return [WagerPlaced(1, bet, amount) for bet, amount in amounts.items()]


def null(reason: str) -> DiceThrown:
    return DiceThrown((), valid=False, reason=reason)


def timed(events: Iterable[tuple[float, Event]]) -> list[Envelope]:
    """Events at their seconds."""
    events = list(events)
    return [
        msgspec.structs.replace(seen, time=seen.time.replace(microsecond=0) + timedelta(seconds=at - n))
        for n, (seen, (at, _)) in enumerate(zip(script([event for _, event in events]), events, strict=True))
    ]


def told(ruleset: FrenchBank, seen: Iterable[Envelope]) -> tuple[list[Verdict], str]:
    """The verdicts, and the last phase."""
    state, said = ruleset.start("t-1"), list[Verdict]()
    for one in seen:
        state, verdicts = ruleset.apply(state, one)
        said += verdicts
    return said, ruleset.view(state).phase


def notes(result: Result) -> list[tuple[str, str]]:
    return [(note.code, note.law.removeprefix(TEXT)) for note in result.irregularities]


def settled(result: Result) -> list[tuple[str, int, int]]:
    return [(one.bet, one.stake, one.returned) for one in result.settlements]


# ---- 3(9), 3(10), 3(12), 3(13): bets and prizes


@pytest.mark.article("3(9)a", "3(9)b", "3(9)c", "3(7)a")
def test_each_of_the_216_throws_decides_its_chance_or_nothing() -> None:
    chances = {"aces": (3,), "small": (5, 6, 7), "big": (14, 15, 16)}
    decided = 0
    for faces in THROWS:
        found = results(play(game(), [*OPEN, DiceThrown(faces)]))
        expected = [chance for chance, totals in chances.items() if sum(faces) in totals]
        assert [result.outcome["chance"] for result in found] == expected
        for result in found:
            decided += 1
            assert {win.bet for win in result.winners} == {
                *expected,
                *(f"{one}_line" for one in expected if one != "aces"),
            }
    assert decided == 1 + 31 + 31


@pytest.mark.article("3(12)a", "3(12)b", "3(12)c", "3(13)")
@pytest.mark.parametrize(
    ("letter", "bet", "throw", "pays"), [("a", "aces", THREE, 61), ("b", "small", SIX, 1), ("c", "big", FIFTEEN, 1)]
)
def test_printed_odds_and_the_stake_comes_back(letter: str, bet: str, throw: Event, pays: int) -> None:
    result = only(play(game(), [*OPEN, *bets(**{bet: 500}), BetsClosed(), throw]))
    assert settled(result) == [(bet, 500, 500 + 500 * pays)]
    (row,) = [row for row in game().bets() if row.id == bet]
    assert f"3(9){letter}" in row.law
    assert f"3(12){letter}" in row.law


@pytest.mark.article("3(10)a", "3(10)b", "3(10)c")
@pytest.mark.parametrize(("line", "wins", "loses"), [("small_line", SIX, FIFTEEN), ("big_line", FIFTEEN, SIX)])
def test_chips_on_a_line_play_for_half(line: str, wins: Event, loses: Event) -> None:
    for throw, returned in ((wins, 150), (loses, 50), (THREE, 50)):
        result = only(play(game(), [*OPEN, *bets(**{line: 100}), throw]))
        assert settled(result) == [(line, 100, returned)]
        assert TEXT + "3(10)" in result.law
    odd = only(play(game(), [*OPEN, *bets(**{line: 101}), loses]))
    assert [(one.returned, one.exact) for one in odd.settlements] == [(50, "101/2")]
    up = only(play(game(rounding="up"), [*OPEN, *bets(**{line: 101}), loses]))
    assert [one.returned for one in up.settlements] == [51]


@pytest.mark.article("3(9)a", "3(9)b", "3(9)c")
def test_a_total_that_decides_nothing_leaves_the_bets_on_the_cloth() -> None:
    events = [*OPEN, *bets(small=10, aces=1), BetsClosed(), NINE, DiceThrown((6, 6, 6)), SIX]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    result = only(verdicts)
    assert (result.outcome["throws"], result.outcome["null_throws"], result.stands) == (3, 0, ())
    assert settled(result) == [("aces", 1, 0), ("small", 10, 20)]
    assert notes(result) == []
    assert result.announcements == {"pt": "Pequeno", "zh-Hant": "小", "en": "Small"}


@pytest.mark.article("3(9)a")
@pytest.mark.parametrize("bell", [[], [BetsClosed()]])
def test_bets_are_not_moved_between_the_throws(bell: list[Event]) -> None:
    moved: list[Event] = [WagerPlaced(1, "big", 5), WagerWithdrawn(1, "small")]
    result = only(play(game(), [*OPEN, *bets(small=10), *bell, NINE, *moved, SIX]))
    assert notes(result) == [("late_bet", "3(9)"), ("late_bet", "3(9)")]
    assert settled(result) == [("small", 10, 20)]


def test_the_result_counts_the_faces_of_every_valid_throw() -> None:
    def shown(*tellings: tuple[float, Event]) -> tuple[int, ...]:
        verdicts, _ = told(game(), timed([*FIRST, *tellings]))
        faces: tuple[int, ...] = only(verdicts).outcome["shown"]
        return faces

    six, both = (1, 1, 1, 0, 0, 0), (2, 2, 1, 0, 0, 1)
    assert shown((20, SIX)) == six
    assert shown((20, NINE), (40, SIX)) == both
    assert shown((20, READ_NINE), (22, NINE), (60, READ_SIX)) == both  # one throw, told twice
    assert shown((20, READ_NINE), (22, null("foreign_object")), (60, SIX)) == six  # it was null
    assert shown((20, READ_NINE), (22, SIX), (30, SIX)) == six  # misread


def test_a_house_may_let_bets_move_between_the_throws() -> None:
    ruleset = game(between_throws="bets_may_change", minimum=10)
    moved: list[Event] = [WagerPlaced(1, "big", 50), WagerWithdrawn(1, "small")]
    again: list[Event] = [BetsOpened(), WagerPlaced(1, "aces", 56), WagerPlaced(1, "aces", 5)]
    late: list[Event] = [BetsClosed(), WagerPlaced(1, "big", 1)]
    events = [*OPEN, *bets(small=20), BetsClosed(), NINE, *moved, null("foreign_object"), *again, NINE, FIFTEEN]
    verdicts = play(ruleset, events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    assert settled(only(verdicts)) == [("aces", 56, 0), ("big", 50, 100)]
    assert notes(only(verdicts)) == [("null_throw", "3(8)"), ("bet_outside_limits", "3(16)")]
    assert told(ruleset, script(events[:4]))[1] == "betting"
    closed = only(play(ruleset, [*OPEN, *bets(small=20), NINE, *late, SIX]))
    assert notes(closed) == [("late_bet", "3(9)")]
    assert settled(closed) == [("small", 20, 40)]


def test_a_payment_while_no_throw_has_decided_waits_for_the_throw_that_did() -> None:
    ruleset = game()
    events: list[Event] = [*OPEN, *bets(small=10), BetsClosed(), NINE]
    verdicts = play(ruleset, [*events, RoundPaid()])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]
    assert settled(only(play(ruleset, [*events, RoundPaid(), SIX, SIX, RoundPaid()]))) == [("small", 10, 20)]
    # Told late, of another round, or before any throw it says nothing of this one.
    for other in (RoundPaid(overtaken=500), RoundPaid("t-1:2026-11-20:9")):
        assert settled(only(play(ruleset, [*events, other, SIX]))) == [("small", 10, 20)]
    assert settled(only(play(ruleset, [*events[:-1], RoundPaid(), SIX]))) == [("small", 10, 20)]


def test_the_view_follows_the_throws() -> None:
    ruleset, seen = game(), []
    state = ruleset.start("t-1")
    assert ruleset.view(state).phase == "idle"
    for one in script([*OPEN, BetsClosed(), NINE, null("foreign_object"), FIFTEEN, RoundPaid()]):
        state, _ = ruleset.apply(state, one)
        view = ruleset.view(state)
        seen.append((view.phase, view.detail.get("throws"), view.detail.get("null_throws"), view.detail.get("total")))
    assert seen == [
        ("betting", 0, 0, None),
        ("closed", 0, 0, None),
        ("closed", 1, 0, 9),
        ("closed", 2, 1, None),
        ("paying", 3, 1, 15),
        ("idle", None, None, None),
    ]


@pytest.mark.article("3(1)")
def test_seats_of_both_halves_of_a_double_table_bet_on_one_throw() -> None:
    result = only(play(game(), [*OPEN, WagerPlaced(1, "big", 5), WagerPlaced(20, "big", 7), FIFTEEN]))
    assert [(one.seat, one.returned) for one in result.settlements] == [(1, 10), (20, 14)]


# ---- 3(7), 3(8): null throws


@pytest.mark.article("3(7)b", "3(8)")
@pytest.mark.parametrize("reason", [reason for code, reason in THROW_REASONS.items() if 0 < code < 8])
def test_each_null_throw_is_named_and_the_bets_stand(reason: str) -> None:
    events: list[Event] = [*OPEN, *bets(small=10), null(reason), DiceReplaced(), SIX]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    result = only(verdicts)
    (note,) = result.irregularities
    law = "3(7)b" if reason == "a_die_not_flat_and_alone" else "3(8)"
    assert (note.code, note.reason, note.law) == ("null_throw", say(reason), TEXT + law)
    assert (result.outcome["throws"], result.outcome["null_throws"]) == (2, 1)
    assert TEXT + "3(8)" in result.law
    assert settled(result) == [("small", 10, 20)]


@pytest.mark.article("3(8)", "3(2)a")
@pytest.mark.parametrize("reason", [reason for code, reason in THROW_REASONS.items() if 0 < code < 8])
def test_the_set_must_be_replaced_after_three_of_them(reason: str) -> None:
    due = reason in ("a_die_on_the_floor", "a_die_off_the_table", "a_die_with_a_defect_or_a_foreign_substance")
    result = only(play(game(), [*OPEN, null(reason), NINE, SIX]))
    assert ("set_not_replaced", "3(8)") in notes(result) if due else len(notes(result)) == 1
    assert len(notes(result)) == 1 + due
    # A null throw with the dealer's own words needs no other set.
    own = notes(only(play(game(), [*OPEN, null("dropped too early"), SIX])))
    assert own == [("null_throw", "3(8)"), ("null_not_named", "3(8)")]


@pytest.mark.article("3(8)")
@pytest.mark.parametrize("reason", ["", "short_of_the_middle", "dropped too early"])
def test_a_null_throw_for_a_reason_that_is_not_printed_is_irregular(reason: str) -> None:
    result = only(play(game(), [*OPEN, *bets(small=10), null(reason), SIX]))
    assert notes(result)[1:] == [("null_not_named", "3(8)")]
    assert settled(result) == [("small", 10, 20)]


@pytest.mark.article("3(7)b")
@pytest.mark.parametrize("reading", [DiceRead((1, 2, 3), stacked=1), DiceRead((1, 2, 3), leaning=1)])
def test_dice_that_are_not_flat_and_alone_are_a_null_throw(reading: Event) -> None:
    verdicts, _ = told(game(), timed([*FIRST, (20, reading), (60, DiceRead((4, 5, 6)))]))
    result = only(verdicts)
    assert notes(result) == [("null_throw", "3(7)b")]
    assert result.outcome["chance"] == "big"


@pytest.mark.article("3(7)a", "3(7)c")
@pytest.mark.parametrize("faces", [(), (1,), (1, 2), (1, 1, 1, 1)])
def test_another_number_of_dice_waits_until_the_throw_is_entered_twice_alike(faces: tuple[int, ...]) -> None:
    wrong = [*OPEN, *bets(small=10), DiceThrown(faces)]
    assert told(game(), script([*wrong, SIX]))[1] == "suspended"
    result = only(play(game(), [*wrong, SIX, SIX]))
    assert settled(result) == [("small", 10, 20)]
    assert told(game(), script([*wrong, DiceThrown(faces)]))[1] == "suspended"


# ---- 3(7)d: the dealer touches the dice

TOUCHED: list[Event] = [*OPEN, *bets(aces=1, small=10, big=20, big_line=30), BetsClosed()]


@pytest.mark.article("3(7)d")
def test_where_the_dealer_touched_the_dice_winners_win_and_the_others_do_not_lose() -> None:
    before = only(play(game(), [*TOUCHED, DiceDisturbed(), SIX]))
    verdicts = play(game(), [*TOUCHED, SIX, DiceDisturbed(), DiceDisturbed(), RoundPaid()])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Corrected]
    after = verdicts[-1].result if isinstance(verdicts[-1], Corrected) else before
    for result in (before, after):
        assert settled(result) == [("aces", 1, 1), ("small", 10, 20), ("big", 20, 20), ("big_line", 30, 30)]
        assert result.pushes == ("aces", "big", "big_line")
        assert TEXT + "3(7)d" in result.law
        assert result.outcome["disturbed"] is True
    assert after.supersedes == after.round


@pytest.mark.article("3(7)d")
@pytest.mark.parametrize("told_again", [READ_NINE, NINE])
def test_touched_dice_that_are_told_once_more_are_not_those_of_the_next_throw(told_again: Event) -> None:
    first = NINE if isinstance(told_again, DiceRead) else READ_NINE
    result = only(play(game(), [*TOUCHED, first, DiceDisturbed(), told_again, SIX]))
    assert (result.outcome["disturbed"], result.pushes) == (False, ())


@pytest.mark.article("3(7)d")
def test_touched_dice_of_a_throw_that_decides_nothing_change_nothing() -> None:
    result = only(play(game(), [*TOUCHED, DiceDisturbed(), NINE, SIX]))
    assert (result.pushes, result.outcome["disturbed"]) == ((), False)
    paid = play(game(), [*TOUCHED, SIX, RoundPaid(), DiceDisturbed()])
    assert [type(verdict) for verdict in paid] == [Opened, Closed, Resolved]


def test_touched_dice_stay_touched_through_a_dispute() -> None:
    disputes: list[list[Event]] = [[SIX, DiceDisturbed(), FIFTEEN], [SIX, FIFTEEN, DiceDisturbed()]]
    for events in disputes:
        *_, last = play(game(), [*TOUCHED, *events, RoundPaid()])
        assert isinstance(last, Corrected)
        assert last.result.outcome["disturbed"] is True
        assert last.result.outcome["faces"] == (1, 2, 3)


# ---- 3(11), 3(14): the order of payment


@pytest.mark.article("3(11)", "3(14)")
def test_losers_are_collected_from_aces_then_prizes_are_paid() -> None:
    laid: list[Event] = [
        *(WagerPlaced(1, "big", 5), WagerPlaced(2, "small_line", 8), WagerPlaced(3, "small", 5)),
        *(WagerPlaced(4, "big_line", 8), WagerPlaced(5, "aces", 1), WagerPlaced(6, "small", 2)),
    ]
    big = only(play(game(), [*OPEN, *laid, FIFTEEN]))
    assert [(one.seat, one.bet) for one in big.settlements] == [
        *((5, "aces"), (3, "small"), (6, "small"), (2, "small_line")),
        *((1, "big"), (4, "big_line")),
    ]
    aces = only(play(game(), [*OPEN, *laid, THREE]))
    assert [one.bet for one in aces.settlements] == ["small", "small", "small_line", "big", "big_line", "aces"]


# ---- 3(16), 3(10)c: limits


@pytest.mark.article("3(16)a", "3(16)b", "3(10)c")
@pytest.mark.parametrize(
    ("options", "bet", "allowed", "law"),
    [
        ({}, "aces", (10, 60), "3(16)"),
        ({}, "small", (10, 2000), "3(16)"),
        ({}, "big", (10, 2000), "3(16)"),
        ({}, "small_line", (20, 4000), "3(10)c"),
        ({"maximum_aces": 30}, "aces", (10, 30), "3(16)"),
        ({"maximum_small_big": 500}, "big", (10, 500), "3(16)"),
        ({"maximum_small_big": 500}, "big_line", (20, 1000), "3(10)c"),
    ],
)
@pytest.mark.parametrize("bell", [[], [BetsClosed()]])
def test_a_bet_outside_the_limits_is_refused(
    options: dict[str, int], bet: str, allowed: tuple[int, int], law: str, bell: list[Event]
) -> None:
    ruleset = game(minimum=10, **options)
    for amount in (*allowed, allowed[0] - 1, allowed[1] + 1):
        result = only(play(ruleset, [*OPEN, *bets(**{bet: amount}), *bell, NINE, SIX]))
        outside = amount not in allowed
        assert notes(result) == ([("bet_outside_limits", law)] if outside else [])
        assert [one.stake for one in result.settlements] == ([] if outside else [amount])
        if outside:
            reason = say("stake_limits", seat=1, bet=bet, amount=amount, least=allowed[0], most=allowed[1])
            assert result.irregularities[0].reason == reason
    unwatched = only(play(game(), [*OPEN, *bets(**{bet: 1_000_000}), SIX]))
    assert notes(unwatched) == []


@pytest.mark.article("3(16)a", "3(16)b")
@pytest.mark.parametrize(
    ("given_options", "says"),
    [
        ({"minimum": 10, "maximum_aces": 61}, "maximum_aces: art. 3(16)a: up to 6 times the minimum: 10 to 60"),
        ({"minimum": 10, "maximum_aces": 9}, "10 to 60"),
        ({"minimum": 10, "maximum_small_big": 2001}, "maximum_small_big: art. 3(16)b: up to 200 times"),
        ({"maximum_small_big": 2000}, "give `minimum` too"),
        ({"minimum": -1}, "minimum"),
        ({"reading_seconds": 61}, "reading_seconds"),
        ({"between_throws": "never"}, "bets_stand | bets_may_change"),
        ({"bets_offered": ["tie"]}, "art. 3(9) has no bet 'tie'"),
        ({"smallest_chip": 0}, "smallest_chip"),
        ({"rounding": "near"}, "down | up"),
        ({"dice": 3}, "no option 'dice'"),
    ],
)
def test_what_the_text_excludes_is_refused_with_its_article(given_options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(FrenchBank, given_options)
    assert says in str(refused.value)


def test_the_largest_proportions_are_accepted() -> None:
    options_from(FrenchBank, {"minimum": 10, "maximum_aces": 60, "maximum_small_big": 2000})


def test_bets_offered_leaves_the_others_out() -> None:
    ruleset = game(bets_offered=("aces", "small"))
    assert [bet.id for bet in ruleset.bets()] == ["aces", "small"]
    result = only(play(ruleset, [*OPEN, *bets(big=5), SIX]))
    assert notes(result) == [("bet_not_offered", "3(9)")]
    assert FAMILIES == ("aces", "small", "big", "small_line", "big_line")


# ---- 3(4), 3(17): duties; 3(5): seized dice


@pytest.mark.article("3(4)", "3(17)")
def test_the_sets_and_the_thrower_change_every_hour() -> None:
    assert (
        Duty("dice_change", TEXT + "3(4)", (DiceReplaced,), HOUR),
        Duty("thrower_relief", TEXT + "3(17)", (DealerRelieved,), HOUR),
    ) == DUTIES
    result = only(play(game(), [*OPEN, NINE, DiceReplaced(), DealerRelieved(), SIX]))
    assert notes(result) == []


@pytest.mark.article("3(5)", "3(2)a")
@pytest.mark.parametrize("place", range(4))
def test_seized_dice_suspend_play_until_another_set_is_in_play(place: int) -> None:
    events: list[Event] = [*OPEN, *bets(small=10), NINE]
    seized = [*events[:place], DiceSeized(), *events[place:]]
    if place == len(events):
        assert told(game(), script(seized))[1] == "suspended"
        verdicts = play(game(), [*seized, DiceReplaced(), SIX])
        assert [type(one) for one in verdicts] == [Opened, Closed, Suspended, Resolved]
        assert settled(only(verdicts)) == [("small", 10, 20)]
    else:  # thrown with dice that are not in play: the throw stands when it is entered again with the other set
        verdicts, phase = told(game(), script([*seized, DiceReplaced()]))
        assert phase == "suspended"
        assert sum(isinstance(one, Suspended) for one in verdicts) == 1
        assert not results(play(game(), [*seized, NINE, NINE, SIX]))
        assert settled(only(play(game(), [*seized, DiceReplaced(), NINE, SIX]))) == [("small", 10, 20)]


# ---- two sources


@pytest.mark.article("3(7)c")
@pytest.mark.parametrize(
    ("tellings", "throws"),
    [
        ([(20, READ_SIX)], 1),
        ([(20, READ_NINE), (60, READ_SIX)], 2),
        ([(20, READ_NINE), (25, NINE), (60, READ_SIX)], 2),  # confirmed by hand
        ([(20, NINE), (22, READ_NINE), (23, READ_NINE), (60, SIX)], 2),  # and by the recogniser
        ([(20, NINE), (60, READ_SIX)], 2),
        ([(20, READ_NINE), (22, null("foreign_object")), (60, READ_SIX)], 2),  # the dealer says that it is null
        ([(20, null("foreign_object")), (60, READ_SIX)], 2),
        ([(20, READ_SIX), (22, SIX)], 1),
        ([(20, READ_NINE), (24, DiceReplaced()), (40, SIX)], 2),
    ],
)
def test_a_throw_may_be_told_by_both_sources(tellings: list[tuple[float, Event]], throws: int) -> None:
    verdicts, _ = told(game(), timed([*FIRST, *tellings]))
    assert [type(one) for one in verdicts] == [Opened, Closed, Resolved]
    assert only(verdicts).outcome["throws"] == throws
    assert only(verdicts).outcome["chance"] == "small"


@pytest.mark.article("3(7)c")
@pytest.mark.parametrize(
    "tellings",
    [
        [(20, READ_NINE), (25, SIX)],
        [(20, READ_NINE), (90, SIX)],
        [(20, NINE), (25, READ_SIX)],
        [(20, READ_NINE), (24, READ_SIX)],  # one request, two readings
        [(20, READ_NINE), (21, NINE), (24, READ_SIX)],
        [(20, null("foreign_object")), (22, READ_SIX)],
        [(20, null("a_die_on_the_floor")), (24, DiceReplaced()), (27, READ_SIX)],
    ],
)
def test_two_tellings_that_differ_suspend_the_round_until_one_is_entered_again(
    tellings: list[tuple[float, Event]],
) -> None:
    verdicts, phase = told(game(), timed([*FIRST, *tellings]))
    assert phase == "suspended"
    assert [type(one) for one in verdicts] == [Opened, Closed, Suspended]
    mended, _ = told(game(), timed([*FIRST, *tellings, (100, SIX)]))
    assert only(mended).outcome["throws"] == 1
    assert only(mended).outcome["chance"] == "small"
    # Read again it is not the dealer's word; entered otherwise it is told once.
    assert told(game(), timed([*FIRST, *tellings, (100, READ_SIX)]))[1] == "suspended"
    assert told(game(), timed([*FIRST, *tellings, (100, FIFTEEN)]))[1] == "suspended"
    twice, _ = told(game(), timed([*FIRST, *tellings, (100, FIFTEEN), (110, FIFTEEN)]))
    assert only(twice).outcome["chance"] == "big"
    # After a loss nothing is entered into this round.
    assert told(game(), timed([*FIRST, *tellings, (90, EventsMissed(1)), (100, SIX), (110, SIX)]))[1] == "suspended"


def test_a_late_reading_of_the_round_before_decides_nothing_of_the_next() -> None:
    first: list[tuple[float, Event]] = [*FIRST, (20.0, READ_SIX), (22.0, RoundPaid()), (23.0, BetsOpened())]
    first += [(24.0, WagerPlaced(1, "small", 10))]
    later: list[tuple[float, Event]] = [
        (25.0, DiceRead((4, 5, 6))),
        (26.0, WagerPlaced(1, "big", 5)),
        (60.0, DiceRead((4, 5, 6))),
    ]
    verdicts, _ = told(game(), timed([*first, *later]))
    _, second = results(verdicts)
    assert settled(second) == [("small", 10, 0), ("big", 5, 10)]
    assert notes(second) == [("throw_without_round", "3(9)")]


def test_the_time_of_a_reading_is_the_house_s_choice() -> None:
    tellings = [*FIRST, (20.0, READ_NINE), (26.0, READ_SIX)]
    assert told(game(), timed(tellings))[1] == "suspended"
    assert told(game(reading_seconds=5.0), timed(tellings))[1] == "paying"


def test_a_second_telling_of_the_throw_that_decided_disputes_the_result() -> None:
    for other in (FIFTEEN, NINE, null("foreign_object"), DiceRead((4, 5, 6))):
        events = [*OPEN, *bets(small=10), READ_SIX, other]
        verdicts, phase = told(game(), script(events))
        assert ([type(one) for one in verdicts], phase) == ([Opened, Closed, Resolved, Suspended], "suspended")
        paid = [one.result for one in play(game(), [*events, RoundPaid()]) if isinstance(one, Corrected)]
        assert [settled(one) for one in paid] == ([[("small", 10, 20)]] if isinstance(other, DiceRead) else [])
        *_, void = play(game(), [*events, RoundVoided("")])
        assert isinstance(void, Corrected)
        assert void.result.void == Void(say("declared"), "returned")


@pytest.mark.article("3(8)")
@pytest.mark.parametrize("said", [[null("foreign_object"), THREE], [FIFTEEN], [DiceRead((4, 5, 6)), FIFTEEN]])
def test_a_payment_does_not_confirm_a_reading_that_the_dealer_contradicted(said: list[Event]) -> None:
    events = [*OPEN, *bets(small=10), READ_SIX, *said, RoundPaid()]
    assert told(game(), script(events))[1] == "suspended"
    (ended,) = [one.result for one in play(game(), [*events, BetsOpened()]) if isinstance(one, Corrected)]
    assert settled(ended) == [("small", 10, 10)]
    (entered,) = [one.result for one in play(game(), [*events[:-1], SIX, RoundPaid()]) if isinstance(one, Corrected)]
    assert settled(entered) == [("small", 10, 20)]


def test_a_payment_confirms_what_the_dealer_entered_first() -> None:
    for other in (FIFTEEN, DiceRead((4, 5, 6))):
        *_, paid = play(game(), [*OPEN, *bets(small=10), SIX, other, RoundPaid()])
        assert isinstance(paid, Corrected)
        assert settled(paid.result) == [("small", 10, 20)]


# ---- the round


@pytest.mark.article("3(9)a")
def test_bets_opened_after_an_undecided_throw_end_the_round_without_a_result() -> None:
    void, good = results(play(game(), [*OPEN, *bets(small=10), NINE, BetsOpened(), *bets(big=5), FIFTEEN]))
    assert void.void == Void(say("never_decided"), "returned")
    assert settled(void) == [("small", 10, 10)]
    assert settled(good) == [("big", 5, 10)]
    reopened = only(play(game(), [*OPEN, BetsClosed(), BetsOpened(), SIX]))
    assert notes(reopened) == [("bets_reopened", "3(9)")]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (SIX, "throw_without_round"),
        (READ_SIX, "throw_without_round"),
        (BetsClosed(), "bell_without_round"),
        (WagerPlaced(1, "small", 5), "bet_without_round"),
        (RoundVoided(), "void_without_round"),
    ],
)
def test_what_needs_a_round_is_noted_where_there_is_none(event: Event, code: str) -> None:
    (verdict,) = play(game(), [event])
    assert isinstance(verdict, Noted)
    assert verdict.irregularity.code == code


@pytest.mark.parametrize("lost", [EventsMissed(1), DeviceOnline(continuous=False)])
def test_a_round_with_lost_events_gives_no_result_and_the_next_one_counts(lost: Event) -> None:
    verdicts = play(game(), [*OPEN, *bets(small=10), NINE, lost, SIX, *OPEN, *bets(big=5), FIFTEEN])
    void, good = results(verdicts)
    assert void.void == Void(say("round_events"), "returned")
    assert settled(good) == [("big", 5, 10)]
    assert [type(one) for one in verdicts] == [Opened, Closed, Suspended, Voided, Opened, Closed, Resolved]


# ---- properties

TELLINGS = st.lists(
    st.builds(DiceThrown, st.tuples(*[st.integers(1, 6)] * 3))
    | st.sampled_from([null(reason) for reason in THROW_REASONS.values() if reason]),
    max_size=12,
)


@given(st.lists(TELLINGS, max_size=4))
def test_by_hand_alone_the_first_throw_with_a_chance_decides(rounds: list[list[DiceThrown]]) -> None:
    events: list[Event] = []
    expected: list[Dice] = []
    for throws in rounds:
        events += [BetsOpened()]
        for throw in throws:
            events += [throw]
            if throw.valid and sum(throw.faces) in (3, 5, 6, 7, 14, 15, 16):
                expected.append(tuple(sorted(throw.faces)))  # type: ignore[arg-type]
                break
        events += [RoundPaid()]
    found = [result.outcome["faces"] for result in results(play(game(), events)) if result.void is None]
    assert found == expected


def test_house_edge() -> None:
    """Of one unit, by the 63 throws that decide: 1.587 % on each."""
    deciding = [
        only(play(game(), [*OPEN, *bets(aces=1, small=1, big=1), DiceThrown(faces)]))
        for faces in THROWS
        if (sum(faces) in (3, 5, 6, 7, 14, 15, 16))
    ]
    for bet in ("aces", "small", "big"):
        back = sum(one.returned for result in deciding for one in result.settlements if one.bet == bet)
        assert 1 - Fraction(back, len(deciding)) == Fraction(1, 63)


@pytest.mark.article("3(9)a", "3(9)b", "3(9)c")
@pytest.mark.parametrize("again", [DiceThrown((6, 2, 1)), DiceRead((6, 2, 1))])
def test_the_same_undecided_throw_told_twice_leaves_the_bets_open(again: Event) -> None:
    ruleset = game(between_throws="bets_may_change")
    events = [*OPEN, WagerPlaced(1, "small", 10), DiceRead((1, 2, 6)), again]
    assert told(ruleset, script(events))[1] == "betting"
    moved = only(play(ruleset, [*events, WagerPlaced(1, "small", 5), SIX]))
    assert settled(moved) == [("small", 15, 30)]
    assert notes(moved) == []


@pytest.mark.article("3(9)a", "3(9)b", "3(9)c")
def test_the_bell_between_two_tellings_of_a_throw_still_closes_the_bets() -> None:
    ruleset = game(between_throws="bets_may_change")
    events = [*OPEN, WagerPlaced(1, "small", 10), DiceRead((1, 2, 6)), BetsClosed(), DiceThrown((6, 2, 1))]
    assert told(ruleset, script(events))[1] == "closed"
