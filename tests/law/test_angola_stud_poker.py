"""Stud poker of Angola, article by article: Decreto Executivo 261/22, article 9."""

import random
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from helpers import at_length, game_of, only, play, results, script
from hypothesis import given, settings, strategies as st

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardExposed,
    CardJammed,
    CardsLoaded,
    CardUnreadable,
    DealCorrected,
    Event,
    EventsMissed,
    HandDispensed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeStarted,
    ShuffleFailed,
    SupervisorKeyed,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from rules import RULESETS
from rules.angola.stud_poker import StudPoker, value
from rules.engine.rounds import Round, declared
from rules.engine.ruleset import (
    Award,
    BadOption,
    Corrected,
    Noted,
    Opened,
    Push,
    Resolved,
    Result,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    Wager,
    Win,
    judge,
    options_from,
)
from rules.games.cards import DECK
from rules.games.poker import CATEGORIES, classes
from rules.games.stud_poker import Deal
from rules.games.stud_poker_game import OPENING, combination
from rules.games.stud_poker_round import StudPokerState

LAW = "angola.stud-poker"

LOW = "2S 3H 5D 7C 9S"
OPENS = "AD KD 9H 8C 7H"
CLOSED = "AD QD 9H 8C 7H"
PAIR = "8S 8H 6D 4C 2C"
BURNT = CardDrawn("2D")


game = game_of(StudPoker)


def shoe(*hands: str) -> list[Event]:
    """The hands in the order of the deal, the bank's last, card by card."""
    laid = [hand.split() for hand in hands]
    return [CardDrawn(cards[turn]) for turn in range(5) for cards in laid]


def antes(*seats: int, amount: int = 100) -> list[Event]:
    return [WagerPlaced(seat, "ante", amount) for seat in seats]


def raises(*seats: int) -> list[Event]:
    return [SeatActed(seat, "raise") for seat in seats]


def jackpot(*seats: int) -> list[Event]:
    return [WagerPlaced(seat, "jackpot", 10) for seat in seats]


def showdown(hands: Mapping[int, str], bank: str, *bets: Event, fold: Iterable[int] = ()) -> list[Event]:
    """A regular round dealt by hand: all lay 100 and go on, except those who pass."""
    acts = [SeatActed(seat, "fold" if seat in fold else "raise") for seat in sorted(hands)]
    deal = shoe(*(hands[seat] for seat in sorted(hands)), bank)
    return [BetsOpened(), *antes(*sorted(hands)), *bets, BetsClosed(), BURNT, *deal, *acts]


def packets(seats: Sequence[int], *bets: Event) -> list[Event]:
    """The same from a shuffler, before the decisions."""
    dealt: list[Event] = [HandDispensed(5) for _ in (*seats, "dealer")]
    return [BetsOpened(), *antes(*seats), *bets, BetsClosed(), HandDispensed(1), *dealt]


def told(**hands: str) -> DealCorrected:
    return DealCorrected({name: tuple(cards.split()) for name, cards in hands.items()})


def cited(article: str) -> str:
    return f"Decreto Executivo 261/22 art. {article}"


def notes(result: Result) -> list[tuple[str, str]]:
    return [(note.code, note.law.removeprefix(cited(""))) for note in result.irregularities]


def run(ruleset: StudPoker, events: Iterable[Event]) -> tuple[StudPokerState, list[Verdict]]:
    state: Any = ruleset.start("t-1")
    verdicts: list[Verdict] = []
    for seen in script(events):
        state, new = ruleset.apply(state, seen)
        verdicts += new
    return state, verdicts


def view(events: Iterable[Event], **options: Any) -> View:
    ruleset = game(**options)
    return ruleset.view(run(ruleset, events)[0])


def returned(result: Result) -> dict[tuple[int, str], int]:
    return {(one.seat, one.bet): one.returned for one in result.settlements}


def compared(one: str, other: str, **reading: bool) -> int:
    """1: the first hand is higher, -1: the other one, 0: they push."""
    mine, others = (value(tuple(hand.split()), **reading) for hand in (one, other))
    return (mine > others) - (mine < others)


# ---- 9(7), 9(9): which hand is higher

HIGHER = [
    ("9(7)(a)", "AS KS QS JS TS", "KD QD JD TD 9D"),
    ("9(7)(b)", "6D 5D 4D 3D 2D", "AS AH AC AD KS"),
    ("9(9)(c)", "KD QD JD TD 9D", "QS JS TS 9S 8S"),
    ("9(9)(c)", "6D 5D 4D 3D 2D", "5S 4S 3S 2S AS"),
    ("9(7)(c)", "2S 2H 2C 2D 3S", "AS AH AC KS KH"),
    ("9(9)(a)", "3S 3H 3C 3D 2S", "2D 2H 2C 2S AS"),
    ("9(7)(d)", "2S 2H 2C 3S 3D", "AS KS QS JS 9S"),
    ("9(9)(b)", "3S 3H 3D 2C 2D", "2S 2H 2C AS AD"),
    ("9(7)(e)", "7D 5D 4D 3D 2D", "AS KH QD JC TS"),
    ("9(9)(d)", "TD 9D 7D 5D 3D", "9S 8S 6S 5S 2S"),
    ("9(7)(f)", "5D 4S 3S 2S AD", "AS AH AC KS QS"),
    ("9(9)(c)", "6D 5S 4S 3S 2S", "5D 4H 3H 2H AH"),
    ("9(7)(g)", "2S 2H 2D 3C 4D", "AS AH KS KH QS"),
    ("9(9)(e)", "3S 3H 3D 2C 4D", "2S 2H 2D AC KD"),
    ("9(7)(h)", "3C 3D 2S 2H 4S", "AS AH KS QS JS"),
    ("9(9)(f)", "AD AC 3D 3C 2S", "KS KH QS QH AS"),
    ("9(9)(f)", "TD TC 6D 6C 2S", "TS TH 5S 5H AS"),
    ("9(9)(f)", "TD TC 6D 6C 5S", "TS TH 6S 6H 4S"),
    ("9(7)(i)", "2C 2D 3S 4S 5S", "AS KS QS JS 9H"),
    ("9(9)(g)", "TD TC 4D 3C 2S", "9S 9H AS KS QS"),
    ("9(9)(g)", "TD TC 9D 3C 2S", "TS TH 8S 7S 6S"),
    ("9(7)(j)", "AD KC 4D 3S 2S", "AS QS JS TS 8H"),
    ("9(7)(j)", "AD KC QD JS 3S", "AS KS QS JC 2H"),
]


@pytest.mark.article("9(7)", "9(7)(a)", "9(7)(b)", "9(7)(c)", "9(7)(d)", "9(7)(e)", "9(7)(f)", "9(7)(g)", "9(7)(h)")
@pytest.mark.article("9(7)(i)", "9(7)(j)", "9(9)", "9(9)(a)", "9(9)(b)", "9(9)(c)", "9(9)(d)", "9(9)(e)", "9(9)(f)")
@pytest.mark.article("9(9)(g)", "9(8)")
@pytest.mark.parametrize(("article", "higher", "lower"), HIGHER)
def test_the_higher_hand_wins(article: str, higher: str, lower: str) -> None:
    assert (compared(higher, lower), compared(lower, higher)) == (1, -1)
    # And so at the table, where one deck can hold both and the bank plays.
    if set(higher.split()) & set(lower.split()) or value(tuple(lower.split())) < OPENING:
        return
    result = only(play(game(), showdown({2: higher}, lower)))
    assert result.outcome["seats"] == {"seat_2": "wins"}
    assert {cited(article), cited("9(8)"), cited("9(28)")} <= set(result.law)
    lost = only(play(game(), showdown({2: lower}, higher)))
    assert lost.outcome["seats"] == {"seat_2": "loses"}
    assert {cited(article), cited("9(29)")} <= set(lost.law)


EQUAL = [
    "AS KS QS JS TS|AH KH QH JH TH",
    "9S 8S 7S 6S 5S|9D 8D 7D 6D 5D",
    "TS 9S 7S 5S 2S|TH 9H 7H 5H 2H",
    "TH 9D 8D 7D 6D|TC 9S 8S 7S 6S",
    "5H 4D 3D 2D AD|5D 4S 3S 2S AS",
    "TS TD 6D 6C 5D|TH TC 6S 6H 5S",
    "TS TD 9D 7D 3D|TH TC 9S 7S 3S",
]


@pytest.mark.article("9(8)", "9(29)")
@pytest.mark.parametrize("hands", EQUAL)
def test_equal_hands_push_ante_and_raise(hands: str) -> None:
    mine, banks = hands.split("|")
    assert compared(mine, banks) == 0
    result = only(play(game(), showdown({4: mine}, banks)))
    assert result.outcome["seats"] == {"seat_4": "ties"}
    assert (result.winners, result.pushes) == ((), (Push("ante", 4), Push("raise", 4)))
    assert returned(result) == {(4, "ante"): 100, (4, "raise"): 200}
    assert {cited("9(8)"), cited("9(29)")} <= set(result.law)
    assert result.announcements["pt"].endswith("lugar 4 empata")


@pytest.mark.article("9(7)(j)")
@pytest.mark.parametrize(
    ("mine", "banks", "wins"),
    [
        ("AS KS 9S 8D 7D", "AH KH 9D 8C 7C", 1),  # three of one suit against none
        ("AS KS 9S 8S 7D", "AH KH 9D 8C 7C", 1),  # four hold three
        ("AH KH 9D 8C 7C", "AS KS 9S 8D 7D", -1),
        ("AS KS 9S 8D 7D", "AH KH 9H 8C 7C", 0),  # both
        ("AS KS 9H 8H 7D", "AH KD 9D 8C 7C", 0),  # neither
        ("AS KS 9S 8D 7D", "AH KH TD 8C 7C", -1),  # the ranks come first
    ],
)
def test_three_of_one_suit_decide_between_equal_odd_cards(mine: str, banks: str, wins: int) -> None:
    assert compared(mine, banks) == wins
    result = only(play(game(), showdown({1: mine}, banks)))
    assert result.outcome["seats"] == {"seat_1": {1: "wins", 0: "ties", -1: "loses"}[wins]}
    assert cited("9(7)(j)") in result.law


@pytest.mark.article("9(7)(j)")
def test_three_of_one_suit_decide_nothing_between_pairs() -> None:
    assert compared("8S 8H KS 9S 2D", "8C 8D KH 9D 2C") == 0


@pytest.mark.article("9(9)(d)", "9(9)(g)")
@pytest.mark.parametrize(
    ("one", "other", "full"),
    [
        ("TD 9D 7D 5D 3D", "TS 9S 7S 5S 2S", 1),
        ("TD TC 9D 7C 3S", "TS TH 9S 7S 2S", 1),
        ("TD TC 9D 3C 2S", "TS TH 8S 7S 6S", 1),
        ("TD 9D 7D 5D 3D", "TS 9S 7S 4S 3S", 1),
        ("TD 9D 7D 5D 3D", "TS 9S 6S 5S 3S", 1),
        ("TD 9D 7D 5D 3D", "TS 7S 6S 5S 3S", 1),
        ("TD 6D 5D 4D 2D", "9S 8S 7S 6S 4S", 1),
        ("TD TC 9D 7C 3S", "TS TH 9S 6S 3H", 1),
        ("TD TC 9D 9C 3S", "TS TH 8S 8H 2S", 1),
        ("TD TC TH 9C 3S", "9S 9H 9D 8S 2S", 1),
    ],
)
def test_a_flush_and_a_pair_by_the_letter_go_by_one_card(one: str, other: str, full: int) -> None:
    assert compared(one, other) == full
    by_letter = 1 if "8S" in other else 0
    assert compared(one, other, letter=True) == by_letter
    fates = [
        only(play(game(tie_break=reading), showdown({1: one}, other))).outcome["seats"]["seat_1"]
        for reading in ("full", "letter")
    ]
    assert fates == ["wins", "wins" if by_letter else "ties"]


# ---- 9(7): prizes

PRINTED = [
    ("9(7)(j)", "AS KS JC TC 9C", 1),
    ("9(7)(i)", PAIR, 1),
    ("9(7)(h)", "TS TC 8H 8S 6C", 2),
    ("9(7)(g)", "TS TC TH 8S 6C", 3),
    ("9(7)(f)", "TS 9C 8H 7S 6C", 4),
    ("9(7)(e)", "TS 9S 8S 7S 2S", 5),
    ("9(7)(d)", "TS TC TH 6S 6C", 7),
    ("9(7)(c)", "TS TC TH TD 6C", 20),
    ("9(7)(b)", "TS 9S 8S 7S 6S", 50),
    ("9(7)(a)", "AS KS QS JS TS", 100),
]


@pytest.mark.article("9(7)(a)", "9(7)(b)", "9(7)(c)", "9(7)(d)", "9(7)(e)", "9(7)(f)", "9(7)(g)", "9(7)(h)")
@pytest.mark.article("9(7)(i)", "9(7)(j)", "9(27)", "9(28)")
@pytest.mark.parametrize(("article", "hand", "pays"), PRINTED)
def test_printed_odds(article: str, hand: str, pays: int) -> None:
    result = only(play(game(), showdown({6: hand}, OPENS)))
    assert result.winners == (Win("ante", "1", seat=6), Win("raise", str(pays), seat=6))
    assert returned(result) == {(6, "ante"): 200, (6, "raise"): 200 + 200 * pays}
    assert {cited(article), cited("9(27)"), cited("9(28)")} <= set(result.law)


@pytest.mark.article("9(26)")
@pytest.mark.parametrize(
    ("bank", "plays"),
    [("AD KD 4H 3C 2H", True), ("2D 2H 3C 4C 5C", True), ("AD QD JH TC 9H", False), ("KD QD JH TC 8H", False)],
)
def test_the_bank_plays_with_an_ace_and_a_king_or_better(bank: str, plays: bool) -> None:
    result = only(play(game(), showdown({3: "9S 6S 4S 3S 2S"}, bank)))
    assert result.outcome["opens"] is plays
    if not plays:
        assert (result.winners, result.pushes) == ((Win("ante", "1", seat=3),), (Push("raise", 3),))
        assert returned(result) == {(3, "ante"): 200, (3, "raise"): 200}
        assert result.announcements["pt"].startswith("A banca não vai a jogo")


@pytest.mark.article("9(16)")
def test_all_prizes_of_a_round_together_have_a_maximum() -> None:
    hands = {1: "TS TC TH TD 6C", 2: "5S 5C 3C 3S 4C", 3: LOW}  # 100 + 20*200, 100 + 2*200: 4600
    events = showdown(hands, OPENS)
    for most, raised in ((4599, False), (4600, True), (4601, True)):
        winners = only(play(game(maximum_prizes=most), events)).winners
        assert (Win("raise", "20", seat=1) in winners) is raised, most
    for most in (0, 4600, 9999):
        assert returned(only(play(game(maximum_prizes=most), events)))[1, "raise"] == 4200
    capped = only(play(game(maximum_prizes=2300), events))
    assert capped.winners == (
        *(Win("ante", "1/2", "1", seat=1), Win("raise", "10", "20", seat=1)),
        *(Win("ante", "1/2", "1", seat=2), Win("raise", "1", "2", seat=2)),
    )
    paid = sum(one.returned - one.stake for one in capped.settlements if one.returned)
    assert paid == 2300
    untold = [SeatOpened(1), BetsOpened(), BetsClosed(), BURNT, *shoe(hands[1], OPENS), *raises(1)]
    assert only(play(game(maximum_prizes=1), untold)).winners[1] == Win("raise", "20", seat=1)


@pytest.mark.article("9(16)")
@pytest.mark.parametrize("smallest_chip", [1, 100, 300])
def test_prizes_under_the_maximum_are_never_rounded_above_it(smallest_chip: int) -> None:
    events = showdown({1: "TS TC TH TD 6C", 2: "5S 5C 3C 3S 4C"}, OPENS)
    ruleset = game(maximum_prizes=2317, smallest_chip=smallest_chip, rounding="up")
    result = only(play(ruleset, events))
    assert 0 < sum(one.returned - one.stake for one in result.settlements if one.returned) <= 2317


@pytest.mark.article("9(16)")
def test_of_a_prize_whose_bet_was_not_told_the_exact_part_stands() -> None:
    ruleset = game(maximum_prizes=10, rounding="up")
    prizes = (Win("ante", "4", seat=1), Win("ante", "1/3", seat=2))
    cut = ruleset.capped(Deal(), Round("1", wagers=(Wager(1, "ante", 10),)), prizes)
    assert [win.pays for win in cut] == ["1", "1/12"]


@pytest.mark.article("9(25)", "9(23)(c)")
def test_to_go_on_is_twice_the_ante_and_to_pass_loses_it() -> None:
    result = only(play(game(), showdown({1: "AS KS QS JS TS", 2: LOW}, CLOSED, fold=[1])))
    assert returned(result) == {(1, "ante"): 0, (2, "ante"): 200, (2, "raise"): 200}
    assert cited("9(25)") in result.law
    events = showdown({1: PAIR}, OPENS)[:-1]
    wrong = only(play(game(), [*events, SeatActed(1, "raise", amount=150)]))
    assert notes(wrong) == [("raise_not_double", "9(25)")]
    assert only(play(game(), showdown({1: PAIR}, OPENS, fold=[1]))).announcements["pt"] == "Todos passam"


# ---- 9(3)-(6), 9(14)(d), 9(15), 9(18)-(23): bets and deal


@pytest.mark.article("9(1)", "9(6)", "9(18)")
def test_equipment_and_seats_that_the_text_does_not_have_are_noted() -> None:
    for event, code, article in (
        (ShoeStarted(2), "wrong_number_of_decks", "9(1)"),
        (SeatOpened(8), "no_such_seat", "9(6)"),
        (SeatActed(8, "raise"), "no_such_seat", "9(6)"),
        (SeatActed(3, "raise", hand=2), "one_hand_only", "9(6)"),
    ):
        (note,) = play(game(), [event])
        assert isinstance(note, Noted)
        assert (note.irregularity.code, note.irregularity.law) == (code, cited(article))
    by_hand, by_shuffler = showdown({1: PAIR}, OPENS), [*packets([1]), *raises(1), told(dealer=OPENS, seat_1=PAIR)]
    for dealing, events, noted in (
        ("either", by_hand, []),
        ("either", by_shuffler, []),
        ("shoe", by_shuffler, [("wrong_equipment", "9(18)")]),
        ("shuffler", by_hand, [("wrong_equipment", "9(18)")]),
    ):
        assert notes(only(play(game(dealing=dealing), events))) == noted


@pytest.mark.article("9(6)")
def test_seven_hands_play() -> None:
    deal = random.Random(2).sample([card for card in DECK if card != "2D"], 40)
    events = [BetsOpened(), *antes(*range(1, 8)), BetsClosed(), BURNT, *map(CardDrawn, deal), *raises(*range(1, 8))]
    assert len(only(play(game(), events)).outcome["seats"]) == 7


@pytest.mark.article("9(14)(d)", "9(15)", "9(10)")
def test_bets_outside_the_limits_are_noted() -> None:
    limits = game(minimum=50, maximum=1000, jackpot_bet=10)
    events = [BetsOpened(), *antes(1, amount=40), *antes(2, amount=1001), *antes(3, amount=1000), *antes(4, amount=25)]
    events += [*antes(4, amount=25), *jackpot(3), WagerPlaced(4, "jackpot", 11), BetsClosed(), RoundVoided()]
    assert notes(only(play(limits, events))) == [
        ("outside_limits", "9(14)(d)"),
        ("outside_limits", "9(14)(d)"),
        ("outside_limits", "9(10)"),
    ]
    assert notes(only(play(game(), events))) == []


@pytest.mark.article("9(20)", "9(22)")
def test_antes_are_laid_before_the_bell() -> None:
    events = showdown({1: PAIR}, OPENS)
    late = only(play(game(), [*events[:3], *antes(2), *events[3:]]))
    assert notes(late) == [("late_bet", "9(22)")]
    nobody = only(play(game(), [BetsOpened(), BetsClosed(), *events[1:]]))
    assert notes(nobody) == [("no_ante", "9(20)")]


@pytest.mark.article("9(3)", "9(21)", "9(22)")
def test_the_jackpot_is_bet_upon_beside_an_ante_and_before_the_bell() -> None:
    late = showdown({1: PAIR}, OPENS)
    late[3:3] = jackpot(1)
    assert notes(only(play(game(), late))) == [("late_bet", "9(22)")]
    alone = only(play(game(), showdown({1: PAIR}, OPENS, *jackpot(2))))
    assert notes(alone) == [("jackpot_without_ante", "9(21)")]
    assert returned(alone)[2, "jackpot"] == 10


@pytest.mark.article("9(3)", "9(5)")
def test_a_house_marks_the_jackpot_by_hand_or_has_none() -> None:
    events = showdown({1: "TS TC TH 6S 6C"}, CLOSED, *jackpot(1))
    for marking in ("automatic", "manual"):
        assert len(only(play(game(jackpot=marking), events)).jackpots) == 1
    without = game(jackpot="none")
    assert [bet.id for bet in without.bets()] == ["ante", "raise"]
    result = only(play(without, events))
    assert (result.jackpots, notes(result)) == ((), [("bet_not_offered", "9(20)")])
    assert only(play(without, [*events[:6], RoundVoided()])).void == Void(say("declared"), "returned")


@pytest.mark.article("9(19)", "9(22)")
def test_one_card_is_burnt_before_the_deal_and_belongs_to_no_hand() -> None:
    whole = showdown({2: PAIR, 5: LOW}, OPENS)
    without = [event for event in whole if event != BURNT]
    orders = [
        whole,
        [without[0], BURNT, *without[1:]],  # while bets are laid: it does not close them
        [BURNT, *without],
        [*without[:4], CardUnreadable(), *without[4:]],  # whichever it is
    ]
    for events in orders:
        result = only(play(game(), events))
        assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
        assert (notes(result), result.outcome["hands"]["dealer"]) == ([], tuple(OPENS.split()))
    assert only(play(game(burn="unseen"), without)).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}


@pytest.mark.article("9(19)")
def test_a_card_more_or_less_than_the_burnt_one_gives_no_result() -> None:
    whole = showdown({2: PAIR, 5: LOW}, OPENS)
    state, verdicts = run(game(), [event for event in whole if event != BURNT])  # none burnt: one short
    assert (results(verdicts), game().view(state).phase) == ([], "dealing")
    # the next round's burnt card does not complete the deal
    state, verdicts = run(game(), [*(event for event in whole if event != BURNT), CardDrawn("3D")])
    assert (results(verdicts), game().view(state).phase) == ([], "suspended")
    twice = [*whole[:5], CardDrawn("3D"), *whole[5:]]
    assert results(play(game(), twice)) == []
    assert view(twice).phase == "suspended"


@pytest.mark.article("9(19)")
def test_after_a_result_the_next_card_is_burnt_for_the_next_round() -> None:
    whole = showdown({2: PAIR, 5: LOW}, OPENS)
    again = [event for event in whole if event != BURNT]
    for between in ([RoundPaid(), BURNT], [BURNT], [RoundPaid(), CardDrawn("KC")]):
        both = results(play(game(), [*whole, *between, *again]))
        assert [one.outcome["seats"] for one in both] == 2 * [{"seat_2": "wins", "seat_5": "loses"}]


@pytest.mark.article("9(23)", "9(23)(a)", "9(23)(b)", "9(19)")
def test_a_shuffler_gives_out_the_burnt_card_and_then_five_at_a_time() -> None:
    hands = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
    result = only(play(game(), [*packets([2, 5]), *raises(2, 5), hands]))
    assert (notes(result), result.outcome["seats"]) == ([], {"seat_2": "wins", "seat_5": "loses"})
    assert cited("9(23)(b)") in result.law
    unburnt = [event for event in packets([2, 5]) if event != HandDispensed(1)]
    noted = only(play(game(), [*unburnt, *raises(2, 5), hands]))
    assert notes(noted) == [("not_burnt", "9(19)")]
    assert notes(only(play(game(burn="unseen"), [*unburnt, *raises(2, 5), hands]))) == []
    for early in (unburnt, packets([2, 5])):  # before the bets are opened; and one more that was of another deal
        assert notes(only(play(game(), [HandDispensed(1), *early, *raises(2, 5), hands]))) == []


@pytest.mark.article("9(22)")
def test_the_banks_last_card_lies_open() -> None:
    events = showdown({2: PAIR}, OPENS)
    events[-2] = CardDrawn("7H", "up")
    assert view(events[:-1]).detail["open"] == ("7H",)
    assert only(play(game(), events)).irregularities == ()
    assert view([*packets([2]), told(dealer="7H")]).detail["open"] == ("7H",)


# ---- 9(11)-(14): the jackpot

ROYAL = "AS KS QS JS TS"
ROYAL_H = "AH KH QH JH TH"
STRAIGHT_FLUSH = "9C 8C 7C 6C 5C"
STRAIGHT_FLUSH_D = "8D 7D 6D 5D 4D"
FOUR = "2S 2H 2C 2D 8H"
FULL = "3S 3C 3D 4S 4H"
FLUSH = "KC QC JC TC 4C"
STRAIGHT = "TS 9C 8H 7S 6C"


def award(name: str, article: str, pays: Any, *among: int, share: str = "", after: str = "") -> Award:
    return Award("progressive", name, pays, cited(article), share, among, after)


@pytest.mark.article("9(11)", "9(14)(a)", "9(14)(c)")
@pytest.mark.parametrize("bank", ["AD KD 9H 8S 7H", "AD QD 9H 8S 7H"])
@pytest.mark.parametrize(
    ("hand", "awards"),
    [
        (ROYAL, [award("royal_flush", "9(14)(a)", "pool", 4, after="straight_flush")]),
        (STRAIGHT_FLUSH, [award("straight_flush", "9(14)(c)", "pool", 4, share="1/10")]),
        ("TS TC TH TD 6C", [award("four_of_a_kind", "9(11)", "fixed", 4)]),
        ("TS TC TH 6S 6C", [award("full_house", "9(11)", "fixed", 4)]),
        ("TS 9S 4S 3S 2S", [award("flush", "9(11)", "fixed", 4)]),
        (STRAIGHT.replace("8H", "8D").replace("7S", "7D"), []),
    ],
)
def test_the_jackpot_is_paid_whether_the_bank_plays_or_not(bank: str, hand: str, awards: list[Award]) -> None:
    result = only(play(game(), showdown({4: hand}, bank, *jackpot(4))))
    assert result.jackpots == tuple(awards)
    assert returned(result)[4, "jackpot"] == 0
    if awards:
        assert result.outcome["hands"]["seat_4"] == tuple(hand.split())
        assert awards[0].law in result.law


@pytest.mark.article("9(11)")
def test_the_house_chooses_the_combinations_of_the_jackpot() -> None:
    straight = showdown({4: "TS 9C 8D 7D 6C"}, CLOSED, *jackpot(4))
    added = game(jackpot_pays=("royal_flush", "straight_flush", "straight"))
    assert [one.combination for one in only(play(added, straight)).jackpots] == ["straight"]
    flush = showdown({4: FLUSH}, CLOSED, *jackpot(4))
    assert (only(play(added, flush)).jackpots, len(only(play(game(), flush)).jackpots)) == ((), 1)


@pytest.mark.article("9(14)", "9(14)(a)", "9(14)(b)", "9(14)(c)")
def test_prizes_are_paid_from_the_smallest_up_and_equal_ones_shared() -> None:
    hands = {1: ROYAL, 2: FULL, 4: STRAIGHT_FLUSH, 5: ROYAL_H, 6: STRAIGHT_FLUSH_D, 7: FOUR}
    result = only(play(game(), showdown(hands, "AD QD 9S 9H 7S", *jackpot(*hands))))
    assert [(one.combination, one.among, one.share, one.after) for one in result.jackpots] == [
        ("full_house", (2,), "", ""),
        ("four_of_a_kind", (7,), "", ""),
        ("straight_flush", (4, 6), "1/10", ""),
        ("royal_flush", (1, 5), "", "straight_flush"),
    ]
    untold = [SeatOpened(seat) for seat in hands]
    deal = shoe(*hands.values(), "AD QD 9S 9H 7S")
    nobody = only(play(game(), [*untold, BetsOpened(), BetsClosed(), BURNT, *deal, *raises(*hands)]))
    assert [one.combination for one in nobody.jackpots] == [one.combination for one in result.jackpots]
    assert {one.among for one in nobody.jackpots} == {()}


@pytest.mark.article("9(25)", "9(24)")
def test_a_folded_hand_has_lost_the_jackpot() -> None:
    assert only(play(game(), showdown({1: FULL, 2: LOW}, CLOSED, *jackpot(1), fold=[1]))).jackpots == ()


# ---- 9(24), 9(30), 9(31): errors of the deal, cards that are seen

TWO = showdown({2: PAIR, 5: LOW}, OPENS, *jackpot(2))
ALL_HANDS = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
BETS = {(2, "ante"): 100, (5, "ante"): 100, (2, "jackpot"): 10}


def assert_void(result: Result, text: str) -> None:
    assert result.void == Void(declared(text), "returned", "returned")
    assert result.law == (cited("9(30)"),)
    assert (result.winners, result.jackpots) == ((), ())
    assert all(one.returned == one.stake for one in result.settlements)


@pytest.mark.article("9(30)")
@pytest.mark.parametrize("cards", [1, 4, 6, 10])
def test_a_packet_of_a_wrong_number_makes_the_round_void(cards: int) -> None:
    events = packets([2, 5], *jackpot(2))
    for place in (6, 7, 8):
        result = only(play(game(), [*events[:place], HandDispensed(cards)]))
        assert_void(result, "wrong_number_of_cards")
        assert returned(result) == BETS


@pytest.mark.article("9(30)")
def test_one_card_of_a_player_seen_during_the_deal_makes_the_round_void() -> None:
    card_by_card, by_packets = TWO, packets([2, 5], *jackpot(2))
    for events in (card_by_card[:9], by_packets[:7]):
        for exposed in (CardExposed("seat_2", "8S"), CardExposed("5")):
            result = only(play(game(), [*events, exposed]))
            assert_void(result, "card_exposed_dealing")
            assert notes(result) == [("card_exposed", "9(30)")]
            assert returned(result) == BETS
    events = list(TWO)
    card = events[6]
    assert isinstance(card, CardDrawn)
    events[6] = CardDrawn(card.card, "up")
    assert_void(only(play(game(), events)), "card_exposed_dealing")


@pytest.mark.article("9(30)")
def test_the_banks_card_seen_before_its_last_is_the_open_one() -> None:
    events = list(TWO)
    assert events[8] == CardDrawn("AD")
    events[8] = CardDrawn("AD", "up")
    assert view(events[:-2]).detail["open"] == ("AD",)
    result = only(play(game(), events))
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    assert notes(result) == [("card_exposed", "9(30)")]
    assert cited("9(30)") in result.law
    packet = packets([2, 5])
    shown = [*packet, CardExposed("dealer", "AD"), *raises(2)]
    assert view(shown).detail["open"] == ("AD",)
    assert only(play(game(), [*shown, *raises(5), ALL_HANDS])).void is None


@pytest.mark.article("9(30)")
def test_a_second_card_of_the_bank_makes_the_round_void() -> None:
    events = list(TWO)
    events[8], events[-3] = CardDrawn("AD", "up"), CardDrawn("7H", "up")
    packet = [*packets([2, 5], *jackpot(2)), told(dealer="7H")]
    for seen in (
        events[:-2],
        [*TWO[:-2], CardExposed("dealer", "AD")],
        [*packet, CardExposed("dealer", "AD")],
        [*packet, *raises(2), CardExposed("dealer", "AD")],
    ):
        assert_void(only(play(game(), seen)), "card_exposed_dealing")
    assert only(play(game(), [*packet, CardExposed("dealer", "7H"), *raises(2, 5), ALL_HANDS])).irregularities == ()
    unknown = play(game(), [*packet, CardExposed("dealer")])
    assert isinstance(unknown[-1], Suspended)
    assert unknown[-1].reason == say("one_or_two")


@pytest.mark.article("9(30)")
def test_another_open_card_told_after_one_was_seen_is_in_doubt() -> None:
    """The card that was seen is the open one; were there two, the round would be void."""
    seen = [*packets([2, 5], *jackpot(2)), CardExposed("dealer", "AD")]
    told_other = [*seen, told(dealer="7H"), *raises(2, 5)]
    verdicts = play(game(), told_other)
    (waits,) = [one for one in verdicts if isinstance(one, Suspended)]
    assert (waits.reason, results(verdicts)) == (say("one_or_two"), [])
    assert view(told_other).detail["open"] == ("AD",)
    for said in (told(dealer="AD"), ALL_HANDS):
        assert only(play(game(), [*told_other, said, ALL_HANDS])).void is None
    assert_void(only(play(game(), [*told_other, RoundVoided("two open cards")])), "two open cards")
    assert view([*seen, told(dealer="AD")]).phase == "deciding"


@pytest.mark.article("9(24)", "9(31)(b)")
@pytest.mark.parametrize("dealt", [TWO[:-2], packets([2, 5], *jackpot(2))])
def test_a_player_who_shows_cards_before_the_time_loses_all_bets(dealt: list[Event]) -> None:
    for events, stakes in (
        ([*dealt, CardExposed("seat_2", "8S"), *raises(5)], 1),
        ([*dealt, *raises(2), CardExposed("seat_2", "8S"), *raises(5)], 2),
        ([*dealt, SeatActed(2, "fold"), CardExposed("seat_2", "8S"), *raises(5)], 1),
        ([*dealt, CardExposed("seat_2", "8S"), CardExposed("seat_2", "8S"), *raises(5)], 1),
        ([*dealt, CardExposed("2"), CardExposed("2"), CardExposed("seat_2", "8H"), *raises(5)], 1),
    ):
        result = only(play(game(), [*events, *([ALL_HANDS] if HandDispensed(5) in dealt else [])]))
        assert result.outcome["seats"] == {"seat_2": "forfeited", "seat_5": "loses"}
        assert notes(result) == [("cards_shown", "9(24)")]
        assert {key: back for key, back in returned(result).items() if key[0] == 2} == {
            (2, "ante"): 0,
            (2, "jackpot"): 0,
            **({(2, "raise"): 0} if stakes == 2 else {}),
        }
        assert cited("9(24)") in result.law
        assert cited("9(30)") not in result.law


@pytest.mark.article("9(24)")
def test_a_forfeited_hand_wins_no_jackpot() -> None:
    events = showdown({2: FULL, 5: LOW}, CLOSED, *jackpot(2))
    result = only(play(game(), [*events[:-1], CardExposed("seat_2", "3S"), events[-1]]))
    assert (result.jackpots, result.outcome["seats"]["seat_2"]) == ((), "forfeited")


@pytest.mark.article("9(24)")
def test_a_raise_told_of_a_forfeited_hand_is_in_doubt_until_it_is_told_again() -> None:
    events = [*TWO[:-2], CardExposed("seat_2", "8S"), *raises(2)]
    assert isinstance(play(game(), [*events, *raises(5)])[-1], Suspended)
    back = only(play(game(), [*events, *raises(2, 5)]))
    assert back.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    stays = only(play(game(), [*events, SeatActed(2, "fold"), *raises(5)]))
    assert stays.outcome["seats"] == {"seat_2": "forfeited", "seat_5": "loses"}


@pytest.mark.article("9(24)", "9(30)")
def test_a_card_seen_where_no_device_tells_the_deal_waits_for_a_person() -> None:
    events = [BetsOpened(), *antes(2, 5), BetsClosed(), CardExposed("seat_2", "8S")]
    verdicts = play(game(), events)
    assert isinstance(verdicts[-1], Suspended)
    assert verdicts[-1].remedy == say("do_which_fault")
    assert only(play(game(), [*events, RoundVoided("dealing error")])).void is not None
    decided = only(play(game(), [*events, SeatActed(2, "fold"), *raises(5), told(dealer=OPENS, seat_5=LOW)]))
    assert decided.outcome["seats"] == {"seat_2": "folded", "seat_5": "loses"}


@pytest.mark.article("9(26)")
def test_hands_uncovered_after_the_last_decision_are_in_order() -> None:
    events = [*packets([2, 5]), *raises(2, 5), CardExposed("dealer", "AD"), CardExposed("seat_2", "8S"), ALL_HANDS]
    result = only(play(game(), events))
    assert (result.irregularities, result.outcome["seats"]) == ((), {"seat_2": "wins", "seat_5": "loses"})


@pytest.mark.article("9(30)")
def test_a_hand_dealt_without_a_bet_makes_the_round_void_once_it_is_named() -> None:
    events = [*packets([2, 5], *jackpot(2)), HandDispensed(5)]
    assert isinstance(play(game(), events)[-1], Suspended)
    result = only(play(game(), [*events, DealCorrected({"seat_4": ()})]))
    assert result.void == Void(say("hand_without_bet", hand="seat_4"), "returned", "returned")
    assert notes(result) == [("hand_without_bet", "9(30)")]
    # a packet more whose ante is late is no error
    late = [*events, msgspec.structs.replace(antes(4)[0], overtaken=9_000), *raises(2, 5), SeatActed(4, "fold")]
    state, verdicts = game().start("t-1"), list[Verdict]()
    for seen in script(late):
        state, new = judge(game(), state, seen)
        verdicts += new
    assert results(verdicts) == []


@pytest.mark.article("9(20)", "9(30)")
@pytest.mark.parametrize("dealt", [[], packets([2])[3:]])
def test_a_seat_that_decided_and_has_cards_may_have_laid_an_ante(dealt: list[Event]) -> None:
    """Its hand is told with all others at the showdown: that is no word of a hand without a bet."""
    events = [BetsOpened(), *antes(2), BetsClosed(), *dealt, *raises(2), SeatActed(5, "fold"), ALL_HANDS]
    verdicts = play(game(), events)
    assert (results(verdicts), isinstance(verdicts[-1], Suspended)) == ([], True)
    plays = only(play(game(), [*events, SeatActed(5, "ante")]))
    assert plays.outcome["seats"] == {"seat_2": "wins", "seat_5": "folded"}
    dealt_without = only(play(game(), [*events, DealCorrected({"seat_5": ()})]))
    assert dealt_without.void == Void(say("hand_without_bet", hand="seat_5"), "returned", "returned")


@pytest.mark.article("9(30)")
def test_an_error_is_declared_and_all_bets_come_back() -> None:
    for end in (6, 10, len(TWO) - 1, len(TWO)):
        last = play(game(), [*TWO[:end], RoundVoided("dealing error")])[-1]
        assert isinstance(last, Voided | Corrected)
        assert_void(last.result, "dealing error")
        assert BETS.items() <= returned(last.result).items()
    again = results(play(game(), [*TWO[:9], RoundVoided(), *showdown({2: FULL}, CLOSED)]))[-1]
    assert again.jackpots == ()  # its bet came back


@pytest.mark.article("9(18)")
@pytest.mark.parametrize("fault", [CardJammed("outfeed"), ShuffleFailed(1, 52, "jam")])
def test_a_shuffler_that_fails_during_the_deal_lets_the_round_wait(fault: Event) -> None:
    events = packets([2, 5])
    verdicts = play(game(), [*events[:7], fault])
    assert isinstance(verdicts[-1], Suspended)
    assert verdicts[-1].remedy == say("do_deal_on")
    goes_on = only(play(game(), [*events[:7], fault, *events[7:], *raises(2, 5), ALL_HANDS]))
    assert (goes_on.void, notes(goes_on)) == (None, [("shuffler_failed", "9(18)")])
    assert only(play(game(), [*events[:7], fault, RoundVoided()])).void is not None


# ---- options


@pytest.mark.article("9(3)", "9(11)", "9(12)", "9(14)", "9(15)")
@pytest.mark.parametrize(
    ("given_options", "says"),
    [
        ({"minimum": 50, "maximum": 1001}, "art. 9(15)"),
        ({"minimum": 50, "maximum": 49}, "art. 9(15)"),
        ({"minimum": 50}, "art. 9(15)"),
        ({"maximum": 50}, "art. 9(15)"),
        ({"jackpot_bet": 10, "jackpot_seed": 99_999}, "art. 9(12)"),
        ({"jackpot_seed": 9_999}, "art. 9(12)"),
        ({"jackpot_pays": ["royal_flush", "straight_flush", "one_pair"]}, "art. 9(11)"),
        ({"jackpot_pays": ["flush"]}, "art. 9(14)(a), (c)"),
        ({"jackpot": "none", "jackpot_bet": 10}, "art. 9(3)"),
        ({"tie_break": "suits"}, "full | letter"),
        ({"burn": "two"}, "counted | unseen"),
        ({"maximum_prizes": -1}, "at least 0"),
        ({"smallest_chip": 0}, "at least 1"),
        ({"rounding": "even"}, "down | up"),
        ({"royal_flush_pays": 50}, "no option 'royal_flush_pays'"),
    ],
)
def test_what_the_text_excludes_is_refused_with_its_article(given_options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(StudPoker, given_options)
    assert says in str(refused.value)


@pytest.mark.article("9(12)", "9(15)")
def test_the_ratios_of_the_text_are_allowed_to_their_ends() -> None:
    made = options_from(StudPoker, {"minimum": 50, "maximum": 1000, "jackpot_bet": 10, "jackpot_seed": 100_000})
    assert (made.maximum, made.jackpot_seed) == (1000, 100_000)


# ---- any deal


@settings(max_examples=at_length(25, 400))
@given(st.permutations(DECK), st.sets(st.integers(1, 7), min_size=1, max_size=7), st.data())
def test_any_deal_is_settled_by_the_hands(deck: list[str], seats: set[int], data: st.DataObject) -> None:
    order = sorted(seats)
    count = len(order) + 1
    acts = {seat: data.draw(st.sampled_from(("raise", "fold"))) for seat in order}
    events: list[Event] = [BetsOpened(), *antes(*order), BetsClosed(), *map(CardDrawn, deck[: 5 * count + 1])]
    result = only(play(game(), [*events, *(SeatActed(seat, action) for seat, action in acts.items())]))
    hands = [tuple(deck[1 + place : 5 * count + 1 : count]) for place in range(count)]
    bank = value(hands[-1])
    paid = returned(result)
    for seat, hand in zip(order, hands[:-1], strict=True):
        mine = value(hand)
        if acts[seat] == "fold":
            expected: dict[str, int] = {"ante": 0}
        elif bank < OPENING:
            expected = {"ante": 200, "raise": 200}
        elif mine == bank:
            expected = {"ante": 100, "raise": 200}
        elif mine > bank:
            pays = (1, 1, 2, 3, 4, 5, 7, 20, 50, 100)[CATEGORIES.index(combination(mine))]
            expected = {"ante": 200, "raise": 200 + 200 * pays}
        else:
            expected = {"ante": 0, "raise": 0}
        assert {bet: back for (one, bet), back in paid.items() if one == seat} == expected


@settings(max_examples=at_length(25, 400))
@given(st.permutations(DECK), st.integers(1, 7), st.data())
def test_an_event_lost_gives_the_truth_or_no_result(deck: list[str], seats: int, data: st.DataObject) -> None:
    """Whatever one event of the deal is missing, silently or with its loss told, and a burnt card follows."""
    order = list(range(1, seats + 1))
    deal: list[Event] = [CardDrawn(card) for card in deck[: 5 * (seats + 1) + 1]]
    events = [BetsOpened(), *antes(*order), BetsClosed(), *deal, *raises(*order)]
    truth = only(play(game(), events))
    lost = data.draw(st.integers(seats + 2, len(events) - 1))
    loss = data.draw(st.sampled_from(([], [EventsMissed(1)])))
    after = [*events[:lost], *loss, *events[lost + 1 :], CardDrawn(deck[-1])]
    for result in results(play(game(), after)):
        assert (result.void is not None) or result.outcome == truth.outcome
    if not loss:
        assert results(play(game(), after)) == []


@settings(max_examples=at_length(25, 400))
@given(st.permutations(DECK), st.sets(st.integers(1, 7), min_size=1, max_size=6), st.data())
def test_no_card_that_lies_face_down_is_shown(deck: list[str], seats: set[int], data: st.DataObject) -> None:
    """Neither the burnt card nor a hand: before the result only the bank's open card."""
    order = sorted(seats)
    dealt = 5 * (len(order) + 1)
    events: list[Event] = [BetsOpened(), *antes(*order), BetsClosed(), *map(CardDrawn, deck[: dealt + 1])]
    events += [SeatActed(seat, data.draw(st.sampled_from(("raise", "fold")))) for seat in order]
    ruleset = game()
    state = ruleset.start("t-1")
    for seen in script(events):
        state, verdicts = ruleset.apply(state, seen)
        said = msgspec.json.encode((ruleset.view(state), verdicts)).decode()
        ended = any(isinstance(one, Resolved) for one in verdicts)
        shown = {card for card in DECK if f'"{card}"' in said}
        assert deck[0] not in shown
        assert ended or shown <= {deck[dealt]}


def test_the_state_survives_being_written_down() -> None:
    events = [*packets([2, 5]), CardExposed("seat_2", "8S"), *raises(5), told(dealer=OPENS), BetsOpened()]
    ruleset = game()
    state = ruleset.start("t-1")
    opened = 0
    for seen in script([*events, *showdown({1: PAIR}, OPENS), RoundPaid(), CardDrawn("2C")]):
        kept = msgspec.json.decode(msgspec.json.encode(state), type=StudPokerState)
        assert kept == state
        state, verdicts = ruleset.apply(kept, seen)
        opened += sum(isinstance(one, Opened) for one in verdicts)
    assert (opened, state.position.loose) == (2, 1)


def test_the_bank_plays_as_often_as_published() -> None:
    opening = sum(ways for found, ways in classes() if found << 2 >= OPENING)
    assert Fraction(opening, 2_598_960) == Fraction(1_463_700, 2_598_960)


# ---- 9(23)(c): a fold is final


FOLDED = [*showdown({2: PAIR, 5: LOW}, OPENS, fold=[2])[:-1]]
KEY_ON, KEY_OFF = SupervisorKeyed(present=True), SupervisorKeyed(present=False)


@pytest.mark.article("9(23)(c)")
@pytest.mark.parametrize("later", [SeatActed(2, "raise"), WagerPlaced(2, "raise", 200)])
def test_a_fold_is_not_taken_back_by_a_raise(later: Event) -> None:
    result = only(play(game(), [*FOLDED, later, later, SeatActed(5, "raise")]))
    assert result.outcome["seats"] == {"seat_2": "folded", "seat_5": "loses"}
    assert notes(result) == [("fold_is_final", "9(23)(c)")] * 2
    assert (2, "raise") not in returned(result)


@pytest.mark.article("9(23)(c)")
def test_chips_laid_after_a_fold_are_taken_away_again_without_a_note() -> None:
    chips: list[Event] = [WagerPlaced(2, "raise", 200), WagerWithdrawn(2, "raise", 200)]
    result = only(play(game(), [*FOLDED, *chips, SeatActed(5, "raise")]))
    assert notes(result) == [("fold_is_final", "9(23)(c)")]


@pytest.mark.article("9(23)(c)")
@pytest.mark.parametrize("word", [SeatActed(2, "raise"), WagerPlaced(2, "raise", 200)])
def test_a_supervisor_reverses_a_fold_with_the_article(word: Event) -> None:
    result = only(play(game(), [*FOLDED, KEY_ON, word, KEY_OFF, SeatActed(5, "raise")]))
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    assert notes(result) == [("fold_reversed", "9(23)(c)")]


@pytest.mark.article("9(23)(c)")
def test_a_resolved_round_is_corrected_by_the_supervisor_alone() -> None:
    resolved_ = [*FOLDED[:-1], SeatActed(5, "raise"), SeatActed(2, "fold")]
    verdicts = play(game(), [*resolved_, SeatActed(2, "raise")])
    assert [type(one) for one in verdicts][-2:] == [Resolved, Noted]
    *_, corrected = play(game(), [*resolved_, KEY_ON, SeatActed(2, "raise")])
    assert isinstance(corrected, Corrected)
    assert corrected.result.outcome["seats"]["seat_2"] != "folded"


@pytest.mark.article("9(23)(c)")
def test_after_a_raise_and_a_fold_only_the_fold_or_the_supervisor_ends_the_doubt() -> None:
    doubt = [*FOLDED[:-1], SeatActed(2, "raise"), SeatActed(2, "fold"), SeatActed(5, "raise")]
    assert view([*doubt, SeatActed(2, "raise")]).phase == "suspended"
    folded = only(play(game(), [*doubt, SeatActed(2, "raise"), SeatActed(2, "fold")]))
    assert folded.outcome["seats"]["seat_2"] == "folded"
    assert notes(folded) == [("fold_is_final", "9(23)(c)")]
    raised = only(play(game(), [*doubt, KEY_ON, SeatActed(2, "raise")]))
    assert raised.outcome["seats"]["seat_2"] == "wins"
    assert notes(raised) == [("fold_reversed", "9(23)(c)")]


@pytest.mark.article("9(25)")
def test_a_limit_of_raises_is_refused_when_it_is_configured() -> None:
    with pytest.raises(BadOption, match="raise is as large as the text makes it"):
        options_from(StudPoker, {"limits": ["raise=10-20"]})


# ---- 9(34), 9(36): who sits out, and a damaged deck


def idle_notes(verdicts: Iterable[Verdict]) -> list[tuple[str, dict[str, Any]]]:
    found = [one.irregularity for one in verdicts if isinstance(one, Noted)]
    assert {one.law for one in found} <= {cited("9(34)")}
    return [(one.code, one.reason.values) for one in found]


@pytest.mark.article("9(34)")
@pytest.mark.parametrize(
    ("between", "rounds", "named"),
    [
        ([], 2, 0),
        ([], 3, 1),
        ([], 5, 1),
        ([SeatClosed(3)], 3, 0),
        ([EventsMissed(1)], 2, 0),
        ([SeatClosed(3), SeatOpened(3)], 2, 0),
        ([SeatClosed(3), SeatOpened(3)], 3, 1),
        ([RoundVoided()], 2, 0),
        ([RoundVoided()], 3, 1),
    ],
)
def test_who_sits_out_three_rounds_is_named_once(between: list[Event], rounds: int, named: int) -> None:
    one = [*showdown({2: PAIR}, OPENS), RoundPaid()]
    events = [SeatOpened(2), SeatOpened(3), *one[: -1 if RoundVoided() in between else None], *between, *one * rounds]
    if not between:
        events = [SeatOpened(2), SeatOpened(3), *one * rounds]
    assert idle_notes(play(game(), events)) == [("seat_idle", {"seat": 3, "rounds": 3})] * named


@pytest.mark.article("9(34)")
def test_who_bets_in_between_is_not_named() -> None:
    out, bets = [*showdown({2: PAIR}, OPENS), RoundPaid()], [*showdown({2: PAIR, 3: LOW}, OPENS), RoundPaid()]
    events = [SeatOpened(2), SeatOpened(3), *out * 2, *bets, *out * 2]
    assert idle_notes(play(game(), events)) == []


@pytest.mark.article("9(36)")
def test_a_deck_with_a_damaged_card_is_replaced_before_the_next_round() -> None:
    ruleset = RULESETS[LAW](RULESETS[LAW].Options())
    one: list[Event] = [*showdown({2: PAIR}, OPENS), RoundPaid()]
    late = [("deck_replacement_late", cited("9(36)"))]
    for events, found in (
        ([*one, *one], []),
        ([*one, CardDamaged(), *one, *one], late),
        ([*one, CardDamaged(), ShoeStarted(1), *one], []),
        ([*one, CardDamaged(), CardsLoaded(52), *one], []),
    ):
        verdicts = [one.irregularity for one in play(ruleset, events) if isinstance(one, Noted)]
        assert [(one.code, one.law) for one in verdicts] == found
