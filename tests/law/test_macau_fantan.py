"""Macau fantan, article by article: Despacho 58/2004."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from helpers import START, at_length, codes, game_of, only, play, results, script
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    ButtonsUncovered,
    DeviceOnline,
    Event,
    EventsMissed,
    LampsLit,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
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
    Wager,
    options_from,
)
from rules.macau.fantan import CONTRADICT, FAMILIES, Fantan, FantanOptions, FantanState

LAW = "macau.fantan"
CITED = "Despacho 58/2004 art. "

HEAP: tuple[Event, ...] = (ButtonsSeparated(), BetsOpened())
BELL = BetsClosed()
PAID = RoundPaid()


game = game_of(Fantan)


def heap(count: int, *bets: Event, fragments: int = 0) -> list[Event]:
    """One regular round without its payment."""
    return [*HEAP, *bets, BELL, ButtonsCounted(count, fragments)]


def corrections(verdicts: Iterable[Verdict]) -> list[Result]:
    return [verdict.result for verdict in verdicts if isinstance(verdict, Corrected)]


def laws(result: Result) -> list[str]:
    return [note.law.removeprefix(CITED) for note in result.irregularities]


def noted(verdict: Verdict) -> tuple[str, str]:
    assert isinstance(verdict, Noted)
    return verdict.irregularity.code, verdict.irregularity.law.removeprefix(CITED)


def returned(result: Result) -> list[tuple[str, int, int]]:
    return [(one.bet, one.stake, one.returned) for one in result.settlements]


# ---- arts. 3, 6, 7, 8, 9: the board

# Every place of the board, what it brings on 1, 2, 3 and 4 beside the stake, before the commission: w, p (comes back)
# or - (loses). Written out by hand.
BOARD = {
    "kuoc:1-2": "ww--",
    "kuoc:1-3": "w-w-",
    "kuoc:1-4": "w--w",
    "kuoc:2-3": "-ww-",
    "kuoc:2-4": "-w-w",
    "kuoc:3-4": "--ww",
    "fan:1": "w---",
    "fan:2": "-w--",
    "fan:3": "--w-",
    "fan:4": "---w",
    "nim:1-2": "wp--",
    "nim:1-3": "w-p-",
    "nim:1-4": "w--p",
    "nim:2-1": "pw--",
    "nim:2-3": "-wp-",
    "nim:2-4": "-w-p",
    "nim:3-1": "p-w-",
    "nim:3-2": "-pw-",
    "nim:3-4": "--wp",
    "nim:4-1": "p--w",
    "nim:4-2": "-p-w",
    "nim:4-3": "--pw",
    "nga:1-2-3": "wwp-",
    "nga:1-2-4": "ww-p",
    "nga:1-3-2": "wpw-",
    "nga:1-3-4": "w-wp",
    "nga:1-4-2": "wp-w",
    "nga:1-4-3": "w-pw",
    "nga:2-3-1": "pww-",
    "nga:2-3-4": "-wwp",
    "nga:2-4-1": "pw-w",
    "nga:2-4-3": "-wpw",
    "nga:3-4-1": "p-ww",
    "nga:3-4-2": "-pww",
    "sesamhong:1-2-3": "www-",
    "sesamhong:1-2-4": "ww-w",
    "sesamhong:1-3-4": "w-ww",
    "sesamhong:2-3-4": "-www",
}
# Printed in art. 7, and what art. 9 leaves of it.
PRIZES = {
    "fan": ("3", "57/20"),
    "nim": ("2", "19/10"),
    "nga": ("1/2", "19/40"),
    "sesamhong": ("1/3", "19/60"),
    "kuoc": ("1", "19/20"),
}


def test_the_board_has_every_place_of_art_6() -> None:
    assert game().board == tuple(BOARD)
    assert [bet.id for bet in game().bets()] == ["kuoc:a-b", "fan:n", "nim:w-p", "nga:w1-w2-p", "sesamhong:a-b-c"]
    assert {bet.id.partition(":")[0]: bet.pays for bet in game().bets()} == {
        family: net for family, (_, net) in PRIZES.items()
    }


@pytest.mark.article("6(1)", "6(2)(1)", "6(2)(2)", "6(2)(3)", "6(2)(4)", "8")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("fours", [0, 1, 17])
def test_what_wins_and_what_comes_back_on_each_number(number: int, fours: int) -> None:
    result = only(play(game(), heap(4 * fours + number)))
    wins = {place for place, says in BOARD.items() if says[number - 1] == "w"}
    backs = [place for place, says in BOARD.items() if says[number - 1] == "p"]
    assert {win.bet for win in result.winners} == wins
    assert list(result.pushes) == backs
    assert len(result.winners) == len(wins)


@pytest.mark.article("7(1)(1)", "7(1)(2)", "7(1)(3)", "7(1)(4)", "7(2)", "9")
@pytest.mark.parametrize("place", BOARD)
def test_the_printed_prize_of_every_place_less_five_per_cent(place: str) -> None:
    family = place.partition(":")[0]
    gross, net = PRIZES[family]
    assert Fraction(net) == Fraction(gross) * Fraction(95, 100)
    for number, says in enumerate(BOARD[place], 1):
        # 1200 minor units: every prize and its commission are whole.
        result = only(play(game(), heap(40 + number, WagerPlaced(3, place, 1200))))
        paid = {win.bet: (win.pays, win.gross) for win in result.winners}
        assert paid.get(place) == ((net, gross) if says == "w" else None)
        back = {"w": 1200 + 1200 * Fraction(net), "p": 1200, "-": 0}[says]
        assert returned(result) == [(place, 1200, back)]


@pytest.mark.article("7")
@pytest.mark.parametrize(("place", "brings"), [("fan:2", 385), ("nim:2-1", 290), ("kuoc:1-2", 195), ("nga:1-2-3", 148)])
def test_whoever_wins_keeps_his_stake_beside_the_prize(place: str, brings: int) -> None:
    result = only(play(game(rounding="up"), heap(2, WagerPlaced(1, place, 100))))
    assert returned(result) == [(place, 100, brings)]


@pytest.mark.article("8")
@pytest.mark.parametrize(("place", "number"), [("nim:2-3", 3), ("nga:1-2-4", 4)])
def test_on_a_draw_the_bet_comes_back_whole(place: str, number: int) -> None:
    result = only(play(game(smallest_chip=1000), heap(number, WagerPlaced(1, place, 333))))
    assert place in result.pushes
    assert returned(result) == [(place, 333, 333)]
    assert CITED + "8" in result.law
    without = only(play(game(bets_offered=("fan", "kuoc", "sesamhong")), heap(number)))
    assert without.pushes == ()
    assert CITED + "8" not in without.law


@pytest.mark.parametrize(
    ("family", "edge"),
    [
        ("fan", Fraction(3, 80)),  # 3.75 %
        ("nim", Fraction(1, 40)),  # 2.5 %
        ("nga", Fraction(1, 80)),  # 1.25 %
        ("sesamhong", Fraction(1, 80)),
        ("kuoc", Fraction(1, 40)),
    ],
)
def test_house_edge(family: str, edge: Fraction) -> None:
    """Each number once; all of the edge is the commission."""
    endings = [only(play(game(), heap(number))) for number in (1, 2, 3, 4)]
    for place in (place for place in game().board if place.partition(":")[0] == family):
        gain = fair = Fraction()
        for result in endings:
            won = {win.bet: win for win in result.winners}
            lost = Fraction(0 if place in result.pushes else -1)
            gain += Fraction(won[place].pays) if place in won else lost
            fair += Fraction(won[place].gross) if place in won else lost
        assert (-gain / 4, fair) == (edge, Fraction(0)), place


# ---- art. 3: what is left


@pytest.mark.article("3(1)")
@given(st.integers(1, 60_000))
def test_the_number_is_what_is_left_when_the_buttons_go_by_fours(count: int) -> None:
    left = count
    while left > 4:  # an independent count, as the wand does it
        left -= 4
    result = only(play(game(), heap(count)))
    assert result.outcome == {"number": left, "count": count, "fragments": 0, "lamp": str(left)}
    assert f"fan:{left}" in {win.bet for win in result.winners}


@pytest.mark.article("3(2)")
@pytest.mark.parametrize("count", [4, 8, 100, 160])
def test_nothing_left_is_four(count: int) -> None:
    result = only(play(game(), heap(count)))
    assert result.outcome["number"] == 4
    assert "fan:4" in {win.bet for win in result.winners}
    assert CITED + "3(2)" in result.law
    assert CITED + "3(2)" not in only(play(game(), heap(count + 1))).law


@pytest.mark.article("5(3)")
@pytest.mark.parametrize("fragments", [1, 2, 7])
def test_fragments_are_not_counted(fragments: int) -> None:
    result = only(play(game(), heap(57, fragments=fragments)))
    whole = only(play(game(), heap(57)))
    assert (result.outcome["number"], result.outcome["count"], result.outcome["fragments"]) == (1, 57, fragments)
    assert (result.winners, result.pushes) == (whole.winners, whole.pushes)
    assert result.law == (*whole.law, CITED + "5(3)")


@pytest.mark.article("2")
def test_a_count_of_nothing_is_none() -> None:
    """The wire does not carry it: at least one button is under the cover."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"type": "buttons.counted", "count": 0}, ButtonsCounted)
    result = only(play(game(), [*HEAP, BELL, ButtonsCounted(0), ButtonsCounted(-3), ButtonsCounted(6)]))
    assert result.outcome["number"] == 2
    assert (codes(result), laws(result)) == (["nothing_counted"] * 2, ["2"] * 2)
    again = play(game(), [*heap(6), ButtonsCounted(0)])
    assert noted(again[-1]) == ("count_without_round", "5(1)")


# ---- a regular round


@pytest.mark.article("2", "4", "5(1)")
def test_a_regular_round() -> None:
    verdicts = play(game(), heap(58, WagerPlaced(2, "fan:2", 500), WagerPlaced(4, "nga:1-3-2", 100)))
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    result = only(verdicts)
    assert result.round == "t-1:2026-11-20:1"
    assert (result.ruleset, result.edition, result.demo, result.void) == ("macau.fantan", "2004", False, None)
    assert result.evidence == tuple(f"e{n}" for n in range(1, 7))
    assert result.law == tuple(CITED + article for article in ("3(1)", "5(1)", "6", "7", "8", "9"))
    assert (result.irregularities, result.supersedes) == ((), "")
    assert result.outcome == {"number": 2, "count": 58, "fragments": 0, "lamp": "2"}
    assert returned(result) == [("fan:2", 500, 500 + 1425), ("nga:1-3-2", 100, 100)]
    assert msgspec.json.decode(result.options, type=FantanOptions) == FantanOptions()


@pytest.mark.article("5(1)")
@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, {"pt": "Número premiado: um", "zh-Hant": "開一", "en": "One wins"}),
        (6, {"pt": "Número premiado: dois", "zh-Hant": "開二", "en": "Two wins"}),
        (3, {"pt": "Número premiado: três", "zh-Hant": "開三", "en": "Three wins"}),
        (40, {"pt": "Número premiado: quatro", "zh-Hant": "開四", "en": "Four wins"}),
    ],
)
def test_the_number_is_called_in_three_languages(count: int, words: dict[str, str]) -> None:
    assert only(play(game(), heap(count))).announcements == words


def test_rounds_are_counted_by_the_day() -> None:
    ruleset = game()
    state = ruleset.start("fan-1")
    rounds = []
    for n, day in enumerate((20, 20, 21)):
        for event in [*heap(9), PAID]:
            seen = Envelope(f"e{n}", "felt/1/s/table/fan-1/device/d", START.replace(day=day), event)
            state, verdicts = ruleset.apply(state, seen)
            rounds += [verdict.round for verdict in verdicts if isinstance(verdict, Opened)]
    assert rounds == ["fan-1:2026-11-20:1", "fan-1:2026-11-20:2", "fan-1:2026-11-21:1"]


@pytest.mark.article("9")
@pytest.mark.parametrize(("rounding", "prize"), [("down", 100), ("up", 200)])
def test_a_prize_less_its_commission_is_rounded_to_the_smallest_chip(rounding: str, prize: int) -> None:
    result = only(play(game(smallest_chip=100, rounding=rounding), heap(5, WagerPlaced(1, "kuoc:1-2", 200))))
    assert [(one.returned, one.exact) for one in result.settlements] == [(200 + prize, "390")]
    exact = only(play(game(smallest_chip=5), heap(5, WagerPlaced(1, "kuoc:1-2", 200))))
    assert [(one.returned, one.exact) for one in exact.settlements] == [(390, "")]


@pytest.mark.article("9")
def test_a_third_less_five_per_cent_is_an_exact_fraction() -> None:
    result = only(play(game(), heap(5, WagerPlaced(1, "sesamhong:1-2-3", 100))))
    assert [(one.returned, one.exact) for one in result.settlements] == [(131, "395/3")]


# ---- options


def test_bets_offered_leaves_the_others_out() -> None:
    ruleset = game(bets_offered=("nim", "fan"))
    assert [bet.id for bet in ruleset.bets()] == ["fan:n", "nim:w-p"]
    result = only(play(ruleset, heap(3, WagerPlaced(1, "kuoc:1-3", 5), WagerPlaced(1, "fan:3", 100))))
    assert [win.bet for win in result.winners] == ["fan:3", "nim:3-1", "nim:3-2", "nim:3-4"]
    assert result.pushes == ("nim:1-3", "nim:2-3", "nim:4-3")
    assert (codes(result), laws(result)) == (["bet_not_offered"], ["6"])
    assert returned(result) == [("fan:3", 100, 385)]


@pytest.mark.parametrize(
    "bet", ["fan:0", "fan:5", "fan", "kuoc:2-1", "nim:1-1", "nga:2-1-3", "nga:1-2-2", "sesamhong:1-2", "straight:1", ""]
)
def test_a_place_that_the_board_does_not_have_is_refused(bet: str) -> None:
    result = only(play(game(), heap(1, WagerPlaced(1, bet, 5))))
    assert (codes(result), result.settlements) == (["bet_not_offered"], ())


@pytest.mark.parametrize(
    ("given_options", "says"),
    [
        ({"bets_offered": ["tie"]}, "art. 6 has no bet 'tie'"),
        ({"bets_offered": ["fan:1"]}, "art. 6 has no bet 'fan:1'"),
        ({"smallest_chip": 0}, "1 or more"),
        ({"rounding": "half"}, "down | up"),
        ({"opening": "bell"}, "console | implied"),
        ({"boards": 2}, "no option 'boards'"),
    ],
)
def test_what_the_text_excludes_is_refused(given_options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(Fantan, given_options)
    assert says in str(refused.value)


def test_what_it_allows_is_accepted() -> None:
    options = options_from(Fantan, {"bets_offered": ",".join(FAMILIES), "opening": "implied"}, text=True)
    assert Fantan(options).board == game().board


# ---- art. 4 and 5(1): any other order that still counts


@pytest.mark.article("4")
@pytest.mark.parametrize(
    ("events", "irregularities"),
    [
        ([BetsOpened(), ButtonsSeparated(), BELL], ["bets_before_separation"]),
        (
            [BetsOpened(), WagerPlaced(1, "fan:3", 10), ButtonsSeparated(), BELL],
            ["bets_before_separation", "early_bet"],
        ),
        ([*HEAP, BELL, BetsOpened()], ["bets_reopened"]),
        # Nobody has to open the bets: the covered heap does.
        ([ButtonsSeparated(), BELL], []),
        ([ButtonsSeparated(), WagerPlaced(1, "fan:3", 10), BELL], []),
        # Another heap, before anybody could bet on the first.
        ([ButtonsSeparated(), ButtonsSeparated(), BetsOpened(), BELL], []),
        # Said twice.
        ([ButtonsSeparated(), ButtonsSeparated(), BetsOpened(), BetsOpened(), BELL, BELL], []),
    ],
)
def test_where_only_the_ceremony_was_off_the_round_counts(events: list[Event], irregularities: list[str]) -> None:
    verdicts = play(game(), [*events, ButtonsCounted(7)])
    result = only(verdicts)
    assert result.void is None
    assert "fan:3" in {win.bet for win in result.winners}
    assert (codes(result), laws(result)) == (irregularities, ["4"] * len(irregularities))
    assert all(one.returned == 38 for one in result.settlements)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    assert len(set(result.evidence)) == len(result.evidence) == len(events) + 1


# ---- what cannot count


@pytest.mark.article("4")
@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([*HEAP, WagerPlaced(1, "fan:1", 10), ButtonsCounted(57)], "counted_before_bell"),
        ([ButtonsSeparated(), ButtonsCounted(57)], "counted_before_bell"),
        ([BetsOpened(), ButtonsCounted(57)], "counted_before_bell"),
        ([BetsOpened(), WagerPlaced(1, "fan:1", 10), BELL], "not_separated"),
    ],
)
def test_no_bet_stands_that_may_have_been_made_knowing_the_count_or_before_any_heap(
    events: list[Event], reason: str
) -> None:
    verdicts = play(game(), events)
    result = only(verdicts)
    assert isinstance(verdicts[-1], Voided)
    assert result.void == Void(say(reason), "returned")
    assert (result.winners, result.outcome) == ((), {})
    assert all((one.bet, one.stake, one.returned) == ("fan:1", 10, 10) for one in result.settlements)
    assert bool(result.settlements) == any(isinstance(event, WagerPlaced) for event in events)
    assert result.law == (CITED + "4",)
    assert codes(result)[-1] == reason
    assert set(laws(result)) == {"4"}
    assert set(result.announcements) == {"pt", "zh-Hant", "en"}
    # What follows is noted and resolves nothing; the same heap is not played again.
    more = play(game(), [*events, BELL, ButtonsCounted(57), ButtonsCounted(58), PAID])
    assert results(more) == [result]
    assert {noted(verdict)[0] for verdict in more[len(verdicts) :]} == {"bell_without_round", "count_without_round"}
    again = play(game(), [*events, BetsOpened(), BELL, ButtonsCounted(57)])
    assert [one.void.reason.code for one in results(again) if one.void] == [reason, "not_separated"]


@pytest.mark.article("4")
@pytest.mark.parametrize(
    ("event", "code", "law"),
    [
        (BELL, "bell_without_round", "4"),
        (ButtonsCounted(5), "count_without_round", "5(1)"),
        (WagerPlaced(1, "fan:1", 5), "bet_without_round", "4"),
        (WagerWithdrawn(1, "fan:1"), "bet_without_round", "4"),
        (RoundVoided(), "void_without_round", "5(1)"),
    ],
)
def test_what_needs_a_round_is_noted_where_there_is_none(event: Event, code: str, law: str) -> None:
    ruleset = game()
    (seen,) = script([event])
    state, (verdict,) = ruleset.apply(ruleset.start("t-1"), seen)
    assert noted(verdict) == (code, law)
    chips = (Wager(event.seat, event.bet, event.amount),) if isinstance(event, WagerPlaced) else ()
    assert state == replace(ruleset.start("t-1"), refused=chips)
    # After a round that was paid it is the same.
    assert noted(play(game(), [*heap(6), PAID, event])[-1]) == (code, law)


@pytest.mark.article("4")
def test_bets_end_with_the_bell() -> None:
    late: list[Event] = [
        WagerPlaced(1, "fan:1", 5),
        BetsOpened(),
        WagerPlaced(1, "fan:1", 5),
        WagerWithdrawn(2, "fan:2"),
    ]
    result = only(play(game(), [*HEAP, WagerPlaced(2, "fan:2", 7), BELL, *late, ButtonsCounted(1)]))
    assert codes(result) == ["late_bet", "bets_reopened", "late_bet", "late_bet"]
    assert laws(result) == ["4"] * 4
    assert returned(result) == [("fan:2", 7, 0)]


def test_bets_may_be_taken_back_until_the_bell() -> None:
    bets: list[Event] = [WagerPlaced(1, "fan:1", 10), WagerPlaced(1, "kuoc:1-2", 20), WagerPlaced(1, "fan:1", 5)]
    taken: list[Event] = [WagerWithdrawn(1, "fan:1", 4), WagerWithdrawn(1, "kuoc:1-2")]
    result = only(play(game(), heap(2, *bets, *taken)))
    assert (returned(result), result.irregularities) == ([("fan:1", 11, 0)], ())


# ---- art. 2: a heap set apart again


@pytest.mark.article("2")
@pytest.mark.parametrize(
    ("options", "before"),
    [
        ({}, [*HEAP]),
        ({}, [ButtonsSeparated(), WagerPlaced(1, "fan:1", 10)]),
        ({"opening": "implied"}, [ButtonsSeparated()]),
    ],
)
def test_a_heap_set_apart_again_while_bets_could_lie_waits_for_a_person(
    options: dict[str, Any], before: list[Event]
) -> None:
    ruleset = game(**options)
    verdicts = play(ruleset, [*before, ButtonsSeparated(), BetsOpened(), BELL, ButtonsCounted(57), PAID])
    assert [type(verdict) for verdict in verdicts] == [Opened, Suspended, Closed]
    void = only(play(ruleset, [*before, ButtonsSeparated(), BELL, ButtonsCounted(57), RoundVoided("seen")]))
    assert void.void == Void(say("seen"), "returned")
    assert (codes(void), laws(void)) == (["separated_again"], ["4"])
    first, good = results(play(ruleset, [*before, ButtonsSeparated(), *heap(6)]))
    assert first.void is not None
    assert (first.void.bets, good.void, good.outcome["number"]) == ("returned", None, 2)


@pytest.mark.article("5(1)")
@pytest.mark.article("4", "5(1)")
@pytest.mark.parametrize("options", [{}, {"opening": "implied"}])
def test_a_heap_that_was_seen_before_the_bell_waits_for_a_person(options: dict[str, Any]) -> None:
    bet = WagerPlaced(1, "fan:3", 100)
    seen: list[Event] = [ButtonsSeparated(), BetsOpened(), ButtonsUncovered(), bet, BetsClosed(), ButtonsCounted(3)]
    verdicts = play(game(**options), seen)
    assert [type(one) for one in verdicts] == [Opened, Suspended, Closed]
    (void,) = results(play(game(**options), [*seen, RoundVoided("seen")]))
    assert returned(void) == [("fan:3", 100, 100)]


@pytest.mark.article("2", "4")
def test_a_heap_that_was_seen_before_any_bet_is_set_apart_again() -> None:
    """Where it is not, no heap was set apart: the bell makes the round void."""
    begun: list[Event] = [ButtonsSeparated(), ButtonsUncovered()]
    after: list[Event] = [BetsOpened(), WagerPlaced(1, "fan:3", 100), BetsClosed(), ButtonsCounted(3)]
    good = only(play(game(), [*begun, ButtonsSeparated(), *after]))
    assert (good.void, codes(good)) == (None, [])
    (void,) = results(play(game(), [*begun, *after]))
    assert void.void is not None
    assert void.void.reason.code == "not_separated"


@pytest.mark.article("5(1)")
def test_a_heap_that_was_lifted_after_the_bell_is_counted_by_hand() -> None:
    closed: list[Event] = [ButtonsSeparated(), BetsOpened(), BetsClosed()]
    assert only(play(game(), [*closed, ButtonsUncovered(), ButtonsCounted(3)])).void is None
    late = play(game(), [*closed, ButtonsUncovered(overtaken=900), ButtonsCounted(3)])
    assert isinstance(late[-1], Suspended)


def test_another_heap_before_the_count_ends_the_round_with_its_bets_returned() -> None:
    lost, good = results(play(game(), [*HEAP, WagerPlaced(1, "fan:1", 10), BELL, *heap(5)]))
    assert lost.void == Void(say("never_counted"), "returned")
    assert (codes(lost), laws(lost), returned(lost)) == (["separated_before_count"], ["5(1)"], [("fan:1", 10, 10)])
    assert (good.void, good.settlements, good.irregularities) == (None, (), ())


def test_the_next_heap_may_be_set_apart_before_the_prizes_are_paid() -> None:
    verdicts = play(game(), [*heap(5), *heap(6)[:2], PAID, *heap(6)[2:], PAID])
    assert [one.outcome["number"] for one in results(verdicts)] == [1, 2]
    assert [codes(one) for one in results(verdicts)] == [[], []]
    assert not corrections(verdicts)


# ---- declared void


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_round_declared_void_before_its_count_returns_the_bets(place: int) -> None:
    events: list[Event] = [*HEAP, BELL][:place]
    bet = WagerPlaced(1, "nim:1-2", 10)
    verdicts = play(game(), [ButtonsSeparated(), bet, *events[1:], RoundVoided("supervisor's decision")])
    result = only(verdicts)
    assert isinstance(verdicts[-1], Voided)
    assert result.void == Void(say("declared_for", text="supervisor's decision"), "returned")
    assert returned(result) == [("nim:1-2", 10, 10)]
    assert result.pushes == ("nim:1-2",)
    assert result.law == (CITED + "5(1)",)
    assert only(play(game(), [*events, RoundVoided()])).void == Void(say("declared"), "returned")


@pytest.mark.parametrize("between", [[], [ButtonsCounted(58)], [EventsMissed(1)]])
def test_a_round_declared_void_after_its_count_is_corrected(between: list[Event]) -> None:
    verdicts = play(game(), [*heap(57, WagerPlaced(1, "fan:1", 20)), *between, RoundVoided("foreign object")])
    first = only(verdicts)
    (corrected,) = corrections(verdicts)
    assert corrected.void == Void(say("declared_for", text="foreign object"), "returned")
    assert corrected.supersedes == corrected.round == first.round
    assert (returned(first), returned(corrected)) == ([("fan:1", 20, 77)], [("fan:1", 20, 20)])
    assert noted(play(game(), [*heap(57), PAID, RoundVoided()])[-1])[0] == "void_without_round"


# ---- two counts


@pytest.mark.article("5(1)")
@pytest.mark.parametrize("again", [ButtonsCounted(57), ButtonsCounted(57, 3), ButtonsCounted(1), ButtonsCounted(61)])
@pytest.mark.parametrize("paid", [[], [PAID]])
def test_a_count_of_the_same_number_changes_nothing(again: ButtonsCounted, paid: list[Event]) -> None:
    """A camera knows how many buttons there were, a dealer what was left."""
    ruleset = game()
    state = ruleset.start("t-1")
    *events, repeated = script([*heap(57), *paid, again])
    for seen in events:
        state, _ = ruleset.apply(state, seen)
    assert ruleset.apply(state, repeated) == (state, ())


@pytest.mark.article("5(1)")
@pytest.mark.parametrize("source", ["counter-1", "console-1"])
def test_a_count_entered_at_the_console_resolves_as_the_counters_does(source: str) -> None:
    ruleset = game()
    state = ruleset.start("t-1")
    verdicts: tuple[Verdict, ...] = ()
    for seen in script([*HEAP, BELL, ButtonsCounted(3)], device=source):
        state, verdicts = ruleset.apply(state, seen)
    assert only(verdicts).outcome["number"] == 3


DOUBT: list[Event] = [*heap(57, WagerPlaced(1, "fan:1", 20), WagerPlaced(1, "fan:2", 20)), ButtonsCounted(58)]


@pytest.mark.article("5(1)")
def test_two_counts_that_contradict_each_other_put_the_result_in_doubt() -> None:
    verdicts = play(game(), DOUBT)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Suspended]
    assert isinstance(verdicts[-1], Suspended)
    assert (verdicts[-1].round, verdicts[-1].reason) == (only(verdicts).round, CONTRADICT)
    # A third number settles nothing, and is not told again.
    assert play(game(), [*DOUBT, ButtonsCounted(59), ButtonsCounted(0)]) == verdicts


@pytest.mark.article("5(1)")
@pytest.mark.parametrize(
    ("then", "number", "brings"),
    [
        ([PAID], 1, [77, 0]),
        ([ButtonsCounted(58)], 2, [0, 77]),
        ([ButtonsCounted(2)], 2, [0, 77]),
        ([ButtonsCounted(57)], 1, [77, 0]),
        ([ButtonsCounted(59), ButtonsCounted(58)], 2, [0, 77]),
        ([ButtonsCounted(59), ButtonsCounted(59)], 3, [0, 0]),
        ([ButtonsCounted(59), PAID], 1, [77, 0]),
    ],
)
def test_a_result_in_doubt_stands_as_paid_or_as_counted_again(
    then: list[Event], number: int, brings: list[int]
) -> None:
    verdicts = play(game(), [*DOUBT, *then])
    (corrected,) = corrections(verdicts)
    assert isinstance(verdicts[-1], Corrected)
    assert corrected.supersedes == corrected.round == only(verdicts).round
    assert (corrected.outcome["number"], corrected.void) == (number, None)
    assert [one.returned for one in corrected.settlements] == brings
    assert (codes(corrected), laws(corrected)) == (["counts_contradict"], ["5(1)"])
    assert corrected.evidence[-1] == f"e{len(DOUBT) + len(then)}"
    # It is settled: the same number changes nothing any more, another begins anew.
    same = ButtonsCounted(40 + number)
    assert play(game(), [*DOUBT, *then, same]) == verdicts
    other = play(game(), [*DOUBT, *then, ButtonsCounted(41 + number)])
    assert isinstance(other[-1], Noted if then[-1] == PAID else Suspended)


@pytest.mark.parametrize("end", [ButtonsSeparated(), BetsOpened()])
def test_a_result_in_doubt_is_void_when_the_next_round_begins(end: Event) -> None:
    verdicts = play(game(), [*DOUBT, end])
    (corrected,) = corrections(verdicts)
    assert corrected.void == Void(CONTRADICT, "returned")
    assert [one.returned for one in corrected.settlements] == [20, 20]
    assert isinstance(verdicts[-1], Opened)


def test_a_contradicting_count_after_the_payment_is_noted() -> None:
    assert noted(play(game(), [*heap(57), PAID, ButtonsCounted(58)])[-1]) == ("count_without_round", "5(1)")


# ---- events lost

LOST = pytest.mark.parametrize("lost", [EventsMissed(1), DeviceOnline(continuous=False)])


@LOST
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_a_round_with_lost_events_waits_for_a_person(lost: Event, place: int) -> None:
    bet = WagerPlaced(1, "fan:1", 10)
    events: list[Event] = [ButtonsSeparated(), BetsOpened(), bet, BELL]
    rest = [*events[place:], ButtonsCounted(57)]
    doubtful = [*events[:place], lost, *rest]
    verdicts = play(game(), [*doubtful, ButtonsCounted(57), ButtonsCounted(57), lost, PAID])
    assert sum(isinstance(verdict, Suspended) for verdict in verdicts) == 1
    assert not results(verdicts)
    void = only(play(game(), [*doubtful, RoundVoided("")]))
    assert void.void == Void(say("declared"), "returned")
    assert returned(void) == [("fan:1", 10, 10)]
    first, good = results(play(game(), [*doubtful, *heap(6)]))
    assert first.void == Void(say("round_events"), "returned")
    assert good.outcome["number"] == 2


def test_a_device_that_lost_nothing_changes_nothing() -> None:
    result = only(play(game(), [*HEAP, DeviceOnline(continuous=True), BELL, ButtonsCounted(9)]))
    assert (result.void, result.irregularities) == (None, ())


def test_bets_opened_after_a_lost_end_begin_another_round() -> None:
    """The bell was seen: these bets are the next round's, of whose heap nobody knows whether it was set apart."""
    verdicts = play(game(), [*HEAP, BELL, EventsMissed(2), BetsOpened(), BELL, ButtonsCounted(9)])
    assert [one.void.reason for one in results(verdicts) if one.void] == [say("round_events")]
    assert [type(one) for one in verdicts[3:]] == [Voided, Opened, Suspended, Closed]


@pytest.mark.article("2", "4")
@LOST
@pytest.mark.parametrize("first", [[], [*HEAP, BELL, ButtonsCounted(9), RoundPaid()], [*HEAP, RoundVoided("")]])
def test_after_a_loss_a_heap_that_was_not_seen_is_not_called_missing(lost: Event, first: list[Event]) -> None:
    """It may have been set apart unseen: the round waits, its bets come back with the next heap."""
    bet = WagerPlaced(1, "fan:2", 20)
    waits = play(game(), [*first, lost, BetsOpened(), bet, BELL, ButtonsCounted(6)])
    assert isinstance(waits[-2], Suspended)
    assert waits[-2].reason == say("round_events")
    back, good = results(play(game(), [*first, lost, BetsOpened(), bet, BELL, ButtonsCounted(6), *heap(6)]))[-2:]
    assert (back.void, back.irregularities) == (Void(say("round_events"), "returned"), ())
    assert [(one.seat, one.returned) for one in back.settlements] == [(1, 20)]
    assert (good.void, good.irregularities) == (None, ())


@LOST
def test_after_a_loss_a_count_may_be_another_heaps(lost: Event) -> None:
    """The result stands as it was; nothing is made of the count."""
    verdicts = play(game(), [*heap(57), lost, ButtonsCounted(58), ButtonsCounted(57), LampsLit(("2",)), PAID])
    assert not corrections(verdicts)
    assert only(verdicts).outcome["number"] == 1
    assert [noted(verdict)[0] for verdict in verdicts[3:]] == ["count_without_round"] * 2
    # Nor is a result in doubt settled by what follows: only by a person's word.
    doubtful = play(game(), [*DOUBT, lost, ButtonsCounted(58), PAID])
    assert not corrections(doubtful)
    (corrected,) = corrections(play(game(), [*DOUBT, lost, ButtonsCounted(58), PAID, RoundVoided("look")]))
    assert corrected.void == Void(say("look"), "returned")
    assert noted(play(game(), [*heap(57), PAID, lost, ButtonsCounted(57)])[-1])[0] == "count_without_round"


# ---- art. 5(2): the lamp


@pytest.mark.article("5(2)")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_lamp_of_the_number_lights(number: int) -> None:
    result = only(play(game(), heap(40 + number)))
    assert result.outcome["lamp"] == str(number)
    ruleset = game()
    state = ruleset.start("t-1")
    for seen in script(heap(40 + number)):
        state, _ = ruleset.apply(state, seen)
    assert ruleset.view(state).detail["lamp"] == str(number)
    for lit in ((), (str(number),), ("bets", "5"), (str(number), "bets")):
        assert ruleset.apply(state, script([LampsLit(lit)])[0]) == (state, ())
    for lamp in {"1", "2", "3", "4"} - {str(number)}:
        for lit in ((lamp,), (str(number), lamp)):
            after, (verdict,) = ruleset.apply(state, script([LampsLit(lit)])[0])
            assert (noted(verdict), after) == (("wrong_lamp", "5(2)"), state)


def test_lamps_beside_no_result_say_nothing() -> None:
    verdicts = play(
        game(), [LampsLit(("1",)), *HEAP, LampsLit(("3",)), BELL, ButtonsCounted(2), PAID, LampsLit(("1",))]
    )
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]


# ---- what may be shown


def test_the_view_follows_the_round() -> None:
    ruleset = game()
    state = ruleset.start("t-1")
    shown = [ruleset.view(state)]
    for seen in script([*heap(57), ButtonsCounted(58), PAID]):
        state, _ = ruleset.apply(state, seen)
        shown.append(ruleset.view(state))
    phases = [view.phase for view in shown]
    assert phases == ["idle", "covered", "betting", "closed", "paying", "suspended", "idle"]
    assert shown[3].detail["say"]["en"] == "No more bets, counting"
    assert shown[4].detail["say"]["pt"] == "Número premiado: um"
    assert shown[5].detail["reason"] == CONTRADICT
    assert all(msgspec.json.encode(view) for view in shown)
    implied = game(opening="implied")
    state, _ = implied.apply(implied.start("t-1"), script([ButtonsSeparated()])[0])
    assert implied.view(state).phase == "betting"
    state, _ = implied.apply(state, script([EventsMissed(1)])[0])
    assert implied.view(state).phase == "suspended"


# ---- properties

STEPS: list[Event] = [
    ButtonsSeparated(),
    BetsOpened(),
    BetsClosed(),
    ButtonsCounted(57),
    ButtonsCounted(58),
    ButtonsCounted(4, 2),
    RoundPaid(),
    RoundVoided(""),
    EventsMissed(1),
    DeviceOnline(continuous=False),
    LampsLit(("1",)),
    *(WagerPlaced(seat, bet, 10) for seat in (1, 2) for bet in ("fan:1", "nim:2-1", "nothing")),
    *(WagerWithdrawn(seat, bet, amount) for seat in (1, 2) for bet, amount in (("fan:1", 0), ("nim:2-1", 4))),
]
PARTS = st.one_of(
    st.lists(st.sampled_from(STEPS), max_size=4),
    st.just(heap(57, WagerPlaced(1, "fan:1", 10))),
    st.just([*heap(8, WagerPlaced(2, "nga:1-2-4", 7)), PAID]),
    st.just([*HEAP, WagerPlaced(2, "kuoc:1-4", 7)]),
    st.just(DOUBT),
)
PLAY = st.lists(PARTS, max_size=8).map(lambda parts: [event for part in parts for event in part])
HOUSES = st.sampled_from([{}, {"opening": "implied"}, {"bets_offered": ("fan", "nga")}])


@given(PLAY, HOUSES)
@settings(max_examples=at_length(100, 2_000))
def test_no_chip_is_lost_or_made(events: list[Event], options: dict[str, Any]) -> None:
    """Every chip on the cloth was laid there, and leaves it when taken back or settled, once; a void gives it back."""
    ruleset = game(**options)
    state: FantanState = ruleset.start("t-1")
    on_cloth = 0
    settled: dict[str, int] = {}
    for seen in script(events):
        before = on_cloth
        state, verdicts = ruleset.apply(state, seen)
        on_cloth = sum(one.amount for one in state.round.wagers) if state.round else 0
        gone = 0
        for verdict in verdicts:
            match verdict:
                case Resolved(result=result) | Voided(result=result):
                    gone = settled[result.round] = sum(one.stake for one in result.settlements)
                    assert gone == before
                case Corrected(result=result):
                    assert sum(one.stake for one in result.settlements) == settled[result.round]
                case _:
                    continue
            if result.void:
                assert all(one.returned == one.stake for one in result.settlements)
            for one in result.settlements:
                won = {win.bet: Fraction(win.pays) for win in result.winners}
                push = one.bet in result.pushes
                exact = one.stake * (1 + won[one.bet]) if one.bet in won else one.stake if push else 0
                assert one.returned == int(exact)
        match seen.event:
            case WagerPlaced(amount=amount):
                assert on_cloth - before in (0, amount)
            case WagerWithdrawn():
                assert on_cloth <= before
            case _:
                assert on_cloth == before - gone


@given(PLAY, HOUSES)
@settings(max_examples=at_length(100, 2_000))
def test_a_round_resolves_only_where_nothing_was_known_before_the_bell(
    events: list[Event], options: dict[str, Any]
) -> None:
    """An independent watcher of the table: a heap, then the bell, then its first count, and nothing lost between."""
    ruleset = game(**options)
    state = ruleset.start("t-1")
    stage = ""
    for seen in script(events):
        state, verdicts = ruleset.apply(state, seen)
        resolves = [verdict.result for verdict in verdicts if isinstance(verdict, Resolved)]
        match seen.event:
            case ButtonsSeparated():
                stage = "covered"
            case BetsClosed():
                stage = "closed" if stage == "covered" else stage
            case ButtonsCounted(count=count):
                if resolves:
                    assert stage == "closed"
                    assert resolves[0].outcome["count"] == count
                stage = "" if stage == "covered" or resolves else stage
            case EventsMissed() | DeviceOnline() | RoundVoided():
                stage = ""
            case _:
                pass
        assert not resolves or isinstance(seen.event, ButtonsCounted)


ROUND = st.tuples(st.integers(1, 200), st.booleans(), st.booleans())


def night(rounds: Sequence[tuple[int, bool, bool]]) -> tuple[list[Event], list[int]]:
    """Regular rounds, some of them paid at the console, some counted by hand too; and which round each event is of."""
    events: list[Event] = []
    of: list[int] = []
    for n, (count, by_hand, paid) in enumerate(rounds):
        more: list[Event] = [ButtonsCounted(count % 4 or 4)] if by_hand else []
        round_ = [*heap(count, WagerPlaced(1, "fan:1", 10)), *more, *([PAID] if paid else [])]
        events += round_
        of += [n] * len(round_)
    return events, of


@given(st.lists(ROUND, min_size=1, max_size=5), st.data())
@settings(max_examples=at_length(100, 2_000))
def test_what_is_lost_and_proven_lost_makes_no_result_wrong(
    rounds: list[tuple[int, bool, bool]], data: st.DataObject
) -> None:
    """Any piece cut out: each result is that of the heap whose count made it, none is corrected to another's."""
    events, of = night(rounds)
    begin = data.draw(st.integers(0, len(events)))
    end = data.draw(st.integers(begin, len(events)))
    seen = [*zip(events[:begin], of, strict=False), (EventsMissed(1), -1), *zip(events[end:], of[end:], strict=True)]
    ruleset = game()
    state = ruleset.start("t-1")
    heaps: dict[str, int] = {}
    for (_, n), one in zip(seen, script([event for event, _ in seen]), strict=True):
        state, verdicts = ruleset.apply(state, one)
        for verdict in verdicts:
            match verdict:
                case Opened(round=round_):
                    heaps[round_] = n
                case Resolved(result=result) | Corrected(result=result) if result.void is None:
                    assert result.outcome["number"] == (rounds[heaps[result.round]][0] % 4 or 4)
                    assert heaps[result.round] == n
                case _:
                    pass


@given(st.lists(ROUND, min_size=1, max_size=4), st.data())
@settings(max_examples=at_length(50, 1_000))
def test_a_fact_told_twice_changes_no_result(rounds: list[tuple[int, bool, bool]], data: st.DataObject) -> None:
    events, _ = night(rounds)
    twice: list[Event] = []
    for event in events:
        chips = isinstance(event, WagerPlaced)  # a second chip is another chip
        twice += [event] * (1 if chips else data.draw(st.integers(1, 3)))

    def said(told: list[Event]) -> list[tuple[type[Verdict], str, Any, Any]]:
        return [
            (type(verdict), one.round, one.outcome, one.settlements)
            for verdict in play(game(), told)
            if isinstance(verdict, Resolved | Voided | Corrected) and (one := verdict.result)
        ]

    assert said(twice) == said(events)


@given(PLAY, HOUSES)
@settings(max_examples=at_length(50, 1_000))
def test_every_round_ends_once_and_a_state_may_be_read_back_at_any_point(
    events: list[Event], options: dict[str, Any]
) -> None:
    ruleset = game(**options)
    state = ruleset.start("t-1")
    open_: set[str] = set()
    ended: set[str] = set()
    for seen in script(events):
        state = msgspec.json.decode(msgspec.json.encode(state), type=FantanState)
        state, verdicts = ruleset.apply(state, seen)
        for verdict in verdicts:
            match verdict:
                case Opened(round=round_):
                    assert round_ not in open_ | ended
                    open_.add(round_)
                case Resolved(result=result) | Voided(result=result):
                    open_.remove(result.round)
                    ended.add(result.round)
                case Corrected(result=result):
                    assert result.supersedes == result.round
                    assert result.round in ended
                case _:
                    pass
        assert len(open_) <= 1
        assert len(state.told) <= 4
        assert msgspec.json.encode(ruleset.view(state))
