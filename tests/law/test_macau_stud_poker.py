"""Macau stud poker, article by article: Despacho 61/2004."""

import random
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from helpers import START, at_length, codes, game_of, only, play, results, script
from hypothesis import given, settings, strategies as st

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardExposed,
    CardJammed,
    CardUnreadable,
    CutCardDrawn,
    DealCorrected,
    DeckMiscounted,
    DeviceOnline,
    Event,
    EventsMissed,
    HandDispensed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    ShuffleFailed,
    ShuffleFinished,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.rounds import declared
from rules.engine.ruleset import (
    Award,
    BadOption,
    Closed,
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
    Win,
    judge,
    options_from,
)
from rules.games.cards import DECK
from rules.games.poker import CATEGORIES, classes
from rules.games.stud_poker_game import OPENING, combination
from rules.games.stud_poker_round import StudPokerState
from rules.macau.stud_poker import StudPoker, value

LAW = "macau.stud-poker"

LOW = "2S 3H 5D 7C 9S"  # five odd cards that beat nothing
OPENS = "AD KD 9H 8C 7H"
CLOSED_HAND = "AD QD 9H 8C 7H"
PAIR = "8S 8H 6D 4C 2C"


game = game_of(StudPoker)


def shoe(*hands: str) -> list[Event]:
    """The hands in the order of the deal, the dealer's last, card by card."""
    laid = [hand.split() for hand in hands]
    return [CardDrawn(cards[turn]) for turn in range(5) for cards in laid]


def antes(*seats: int, amount: int = 100) -> list[Event]:
    return [WagerPlaced(seat, "ante", amount) for seat in seats]


def raises(*seats: int) -> list[Event]:
    return [SeatActed(seat, "raise") for seat in seats]


def showdown(hands: Mapping[int, str], dealer: str, *bets: Event, fold: Iterable[int] = ()) -> list[Event]:
    """A regular round from a shoe: everybody lays 100 and raises, but those who fold."""
    acts = [SeatActed(seat, "fold" if seat in fold else "raise") for seat in sorted(hands)]
    deal = shoe(*(hands[seat] for seat in sorted(hands)), dealer)
    return [BetsOpened(), *antes(*sorted(hands)), *bets, BetsClosed(), *deal, *acts]


def packets(seats: Sequence[int], *bets: Event) -> list[Event]:
    """The same from a shuffler, before the decisions."""
    dealt: list[Event] = [HandDispensed(5) for _ in (*seats, "dealer")]
    return [BetsOpened(), *antes(*seats), *bets, BetsClosed(), *dealt]


def told(**hands: str) -> DealCorrected:
    return DealCorrected({name: tuple(cards.split()) for name, cards in hands.items()})


def cited(article: str) -> str:
    return f"Despacho 61/2004 art. {article}"


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


def beats(winner: str, loser: str) -> bool:
    return value(tuple(winner.split())) > value(tuple(loser.split()))


# ---- arts. 4, 8: which hand is higher

# The article, a hand, and one that is just lower by that article.
HIGHER = [
    ("8(1)", "AS KS QS JS TS", "AH KH QH JH TH"),
    ("8(1)", "AH KH QH JH TH", "AC KC QC JC TC"),
    ("8(1)", "AC KC QC JC TC", "AD KD QD JD TD"),
    ("8(1)", "AD KD QD JD TD", "KS QS JS TS 9S"),
    ("8(2)", "KD QD JD TD 9D", "QS JS TS 9S 8S"),
    ("8(2)", "6D 5D 4D 3D 2D", "5S 4S 3S 2S AS"),
    ("8(2)", "9S 8S 7S 6S 5S", "9H 8H 7H 6H 5H"),
    ("8(2)", "5H 4H 3H 2H AH", "5D 4D 3D 2D AD"),
    ("8(2)", "5D 4D 3D 2D AD", "AS AH AC AD KS"),
    ("8(3)", "AS AH AC AD 2S", "KS KH KC KD AS"),
    ("8(3)", "3S 3H 3C 3D 2S", "2S 2H 2C 2D AS"),
    ("8(3)", "2S 2H 2C 2D 3S", "AS AH AC KS KH"),
    ("8(4)", "3S 3H 3D 2C 2D", "2S 2H 2C AS AD"),
    ("8(4)", "2S 2H 2C 3S 3D", "AS KS QS JS 9S"),
    ("8(5)", "AD 6D 4D 3D 2D", "KS QS JS TS 8S"),
    ("8(5)", "TD 9D 7D 5D 3D", "TS 9S 7S 5S 2S"),
    ("8(5)", "TS 9S 7S 5S 2S", "TH 9H 7H 5H 2H"),
    ("8(5)", "TC 9C 7C 5C 2C", "TD 9D 7D 5D 2D"),
    ("8(5)", "7D 5D 4D 3D 2D", "AS KH QD JC TS"),
    ("8(6)", "TD 9C 8H 7S 6S", "9S 8S 7H 6H 5H"),
    ("8(6)", "TH 9D 8D 7D 6D", "TC 9S 8S 7S 6S"),
    ("8(6)", "AH KD QD JD TD", "AC KS QS JS TS"),
    ("8(6)", "6D 5S 4S 3S 2S", "5S 4H 3H 2H AH"),
    ("8(6)", "5H 4D 3D 2D AD", "5D 4S 3S 2S AS"),
    ("8(6)", "5D 4S 3S 2S AD", "AS AH AC KS QS"),
    ("8(7)", "3S 3H 3D 2C 4D", "2S 2H 2D AC KD"),
    ("8(7)", "2S 2H 2D 3C 4D", "AS AH KS KH QS"),
    ("8(8)", "AD AC 3D 3C 2S", "KS KH QS QH AS"),
    ("8(8)", "TD TC 6D 6C 2S", "TS TH 5S 5H AS"),
    ("8(8)", "TD TC 6D 6C 5S", "TS TH 6S 6H 4S"),
    ("8(8)", "TS TD 6D 6C 5D", "TH TC 6S 6H 5S"),
    ("8(8)", "3C 3D 2S 2H 4S", "AS AH KS QS JS"),
    ("8(9)", "TD TC 4D 3C 2S", "9S 9H AS KS QS"),
    ("8(9)", "TD TC 9D 3C 2S", "TS TH 8S 7S 6S"),
    ("8(9)", "TD TC 9D 7C 2S", "TS TH 9S 6S 5S"),
    ("8(9)", "TD TC 9D 7C 3S", "TS TH 9S 7S 2S"),
    ("8(9)", "TS TD 9D 7D 3D", "TH TC 9S 7S 3S"),
    ("8(9)", "2C 2D 3S 4S 5S", "AS KS QS JS 9H"),
    ("8(10)", "AD 6C 4D 3D 2S", "KS QS JS TS 8H"),
    ("8(10)", "AD KC 4D 3D 2S", "AS QS JS TS 8H"),
    ("8(10)", "AD KC QD JD 3S", "AS KS QS JC 2H"),
    ("8(10)", "AS KD 9D 8D 7D", "AH KS 9S 8S 7S"),
    ("8(10)", "AC KD 9D 8D 7D", "AD KS 9S 8S 7S"),
]


@pytest.mark.article("4(1)", "4(2)", "4(3)", "8", "8(1)", "8(2)", "8(3)", "8(4)", "8(5)", "8(6)")
@pytest.mark.article("8(7)", "8(8)", "8(9)", "8(10)")
@pytest.mark.parametrize(("article", "higher", "lower"), HIGHER)
def test_the_higher_hand_wins(article: str, higher: str, lower: str) -> None:
    assert beats(higher, lower)
    assert not beats(lower, higher)
    # And so at the table, where one deck can hold both and the dealer opens.
    if set(higher.split()) & set(lower.split()) or value(tuple(lower.split())) < OPENING:
        return
    result = only(play(game(), showdown({2: higher}, lower)))
    assert result.outcome["seats"] == {"seat_2": "wins"}
    assert cited(article) in result.law
    lost = only(play(game(), showdown({2: lower}, higher)))
    assert lost.outcome["seats"] == {"seat_2": "loses"}


@pytest.mark.article("4(1)")
def test_the_suit_decides_last_and_is_then_cited() -> None:
    for higher, lower in (("AS KD 9D 8D 7D", "AH KS 9S 8S 7S"), ("TS TD 6D 6C 5D", "TH TC 6S 6H 5S")):
        assert cited("4(1)") in only(play(game(), showdown({1: higher}, lower))).law
        assert cited("4(1)") in only(play(game(), showdown({1: lower}, higher))).law
    assert cited("4(1)") not in only(play(game(), showdown({1: PAIR}, OPENS))).law


@pytest.mark.article("4(2)")
def test_ranks_descend_from_the_ace_to_two() -> None:
    order = [f"{rank}S {rank}H" for rank in "AKQJT98765432"]
    fill = ["3D 4C 6D", "7D 9C JC", "2D 5C QC"]
    for higher, lower in pairwise(order):
        kickers = next(some for some in fill if not {higher[0], lower[0]} & {card[0] for card in some.split()})
        assert beats(f"{higher} {kickers}", f"{lower} {kickers}")


@pytest.mark.article("8(3)", "8(4)", "8(7)")
def test_the_odd_cards_of_four_three_and_full_house_count_for_nothing() -> None:
    """Two such hands of one rank cannot come out of one deck; by the letter they would be equal but for the suit."""
    for one, other in (
        ("9S 9H 9C 9D AS", "9S 9H 9C 9D 2S"),
        ("9S 9H 9C AS AH", "9S 9H 9C 2S 2H"),
        ("9S 9H 9C AS KH", "9S 9H 9C 3S 2H"),
    ):
        assert value(tuple(one.split())) == value(tuple(other.split()))


@pytest.mark.article("8")
def test_no_two_hands_of_one_deck_are_equal() -> None:
    rng = random.Random(8)
    for _ in range(20_000):
        cards = rng.sample(DECK, 10)
        assert value(tuple(cards[:5])) != value(tuple(cards[5:]))


@pytest.mark.article("8")
def test_the_categories_stand_in_the_order_of_the_text() -> None:
    shown = [combination(value(tuple(hand.split()))) for hand in dict.fromkeys(higher for _, higher, _ in HIGHER)]
    assert list(dict.fromkeys(shown)) == list(reversed(CATEGORIES))


# ---- art. 9(1)-(4)


@pytest.mark.article("9(1)", "9(2)", "9(3)")
@pytest.mark.parametrize(
    ("dealer", "opens"),
    [
        ("AD KD 4H 3C 2H", True),
        ("AD KD QH JC 9H", True),
        ("2D 2H 3C 4C 5C", True),
        ("5D 4H 3C 2C AC", True),
        ("AD QD JH TC 9H", False),
        ("KD QD JH TC 8H", False),
        ("7D 5D 4H 3C 2H", False),
    ],
)
def test_the_dealer_opens_with_an_ace_and_a_king_or_better(dealer: str, opens: bool) -> None:
    for hand in ("7S 6H 4S 3S 2S", "TS TD 8S 8C 6C"):
        result = only(play(game(), showdown({4: hand}, dealer)))
        assert result.outcome["opens"] is opens
        fate = "not_opened" if not opens else "wins" if beats(hand, dealer) else "loses"
        assert result.outcome["seats"] == {"seat_4": fate}
        assert (cited("9(3)") in result.law, cited("9(2)") in result.law) == (opens, not opens)


@pytest.mark.article("9(1)")
def test_the_dealer_opens_as_often_as_published() -> None:
    """56.32 %: 1 463 700 of 2 598 960 hands, counted by classes."""
    opening = sum(ways for found, ways in classes() if found << 2 >= OPENING)
    assert Fraction(opening, 2_598_960) == Fraction(1_463_700, 2_598_960)
    assert round(100 * opening / 2_598_960, 2) == 56.32


@pytest.mark.article("9(2)", "5(1)", "5(3)")
@pytest.mark.parametrize("hand", [LOW, "AS KS QS JS TS"])
def test_the_dealer_does_not_open_antes_are_paid_and_raises_come_back(hand: str) -> None:
    result = only(play(game(), showdown({3: hand}, CLOSED_HAND)))
    assert (result.winners, result.pushes) == ((Win("ante", "1", seat=3),), (Push("raise", 3),))
    assert returned(result) == {(3, "ante"): 200, (3, "raise"): 200}
    assert "seat_3" not in result.outcome["hands"]
    assert result.announcements["en"] == "The dealer does not open: antes are paid, raises come back"


@pytest.mark.article("9(4)")
def test_the_dealer_is_higher_ante_and_raise_are_lost() -> None:
    result = only(play(game(), showdown({3: LOW}, OPENS)))
    assert (result.winners, result.pushes) == ((), ())
    assert returned(result) == {(3, "ante"): 0, (3, "raise"): 0}
    assert cited("9(4)") in result.law


# ---- art. 9(5): what a raise pays

PRINTED = [
    ("9(5)(1)", "AS KS JC TC 9C", "AD KD 9H 8C 7H", 1),
    ("9(5)(1)", PAIR, OPENS, 1),
    ("9(5)(2)", "TS TC 8H 8S 6C", OPENS, 2),
    ("9(5)(3)", "TS TC TH 8S 6C", OPENS, 3),
    ("9(5)(4)", "TS 9C 8H 7S 6C", OPENS, 4),
    ("9(5)(5)", "TS 9S 8S 7S 2S", OPENS, 5),
    ("9(5)(6)", "TS TC TH 6S 6C", OPENS, 7),
    ("9(5)(7)", "TS TC TH TD 6C", OPENS, 20),
    ("9(5)(8)", "TS 9S 8S 7S 6S", OPENS, 50),
    ("9(5)(9)", "AS KS QS JS TS", OPENS, 50),
]


@pytest.mark.article("9(5)", "9(5)(1)", "9(5)(2)", "9(5)(3)", "9(5)(4)", "9(5)(5)")
@pytest.mark.article("9(5)(6)", "9(5)(7)", "9(5)(8)", "9(5)(9)")
@pytest.mark.parametrize(("article", "hand", "dealer", "pays"), PRINTED)
def test_printed_odds(article: str, hand: str, dealer: str, pays: int) -> None:
    result = only(play(game(), showdown({6: hand}, dealer)))
    assert result.winners == (Win("ante", "1", seat=6), Win("raise", str(pays), seat=6))
    assert returned(result) == {(6, "ante"): 200, (6, "raise"): 200 + 200 * pays}
    assert cited(article) in result.law


@pytest.mark.article("9(5)(9)")
@pytest.mark.parametrize("pays", [50, 77, 100])
def test_the_house_chooses_what_a_royal_flush_pays(pays: int) -> None:
    result = only(play(game(royal_flush_pays=pays), showdown({1: "AS KS QS JS TS"}, OPENS)))
    assert result.winners[1] == Win("raise", str(pays), seat=1)
    flush = only(play(game(royal_flush_pays=pays), showdown({1: "KS QS JS TS 9S"}, OPENS)))
    assert flush.winners[1] == Win("raise", "50", seat=1)


@pytest.mark.article("9(5)(7)", "9(5)(8)", "9(5)(9)")
@pytest.mark.parametrize(
    ("hand", "most", "win", "paid"),
    [
        ("TS TC TH TD 6C", 3000, Win("raise", "15", "20", seat=2), 3000),
        ("TS TC TH TD 6C", 4000, Win("raise", "20", seat=2), 4000),
        ("TS 9S 8S 7S 6S", 4001, Win("raise", "4001/200", "50", seat=2), 4001),
        ("AS KS QS JS TS", 9999, Win("raise", "9999/200", "50", seat=2), 9999),
        # the lower combinations know no maximum
        ("TS TC TH 6S 6C", 1000, Win("raise", "7", seat=2), 1400),
        ("TS 9S 8S 7S 2S", 900, Win("raise", "5", seat=2), 1000),
    ],
)
def test_the_maximum_of_the_house(hand: str, most: int, win: Win, paid: int) -> None:
    result = only(play(game(maximum_prize=most), showdown({2: hand}, OPENS)))
    assert result.winners[1] == win
    assert returned(result)[2, "raise"] == 200 + paid


def test_without_amounts_nothing_is_capped() -> None:
    events = [SeatOpened(2), BetsOpened(), BetsClosed(), *shoe("TS TC TH TD 6C", OPENS), *raises(2)]
    result = only(play(game(maximum_prize=5), events))
    assert result.winners == (Win("ante", "1", seat=2), Win("raise", "20", seat=2))
    assert result.settlements == ()


def test_each_seat_is_settled_by_its_own_hand() -> None:
    hands = {1: "TS TC TH 6S 6C", 2: LOW, 5: "JS JC 3C 3D 5C", 7: "QS JD 5H 4H 2C"}
    result = only(play(game(), showdown(hands, OPENS, fold=[7])))
    assert result.outcome["seats"] == {"seat_1": "wins", "seat_2": "loses", "seat_5": "wins", "seat_7": "folded"}
    assert returned(result) == {
        (1, "ante"): 200,
        (1, "raise"): 1600,
        (2, "ante"): 0,
        (2, "raise"): 0,
        (5, "ante"): 200,
        (5, "raise"): 600,
        (7, "ante"): 0,
    }
    assert set(result.outcome["hands"]) == {"dealer", "seat_1", "seat_2", "seat_5"}
    assert result.announcements == {
        "pt": "Croupier: cinco cartas diferentes; lugar 1 ganha com trio-par; lugar 2 perde; "
        "lugar 5 ganha com dois pares",
        "zh-Hant": "莊家：五張散牌；1門贏，夫盧；2門輸；5門贏，兩對",
        "en": "Dealer: five odd cards; seat 1 wins with full house; seat 2 loses; seat 5 wins with two pairs",
    }


# ---- arts. 2, 5, 6: the bets


@pytest.mark.article("2(2)", "5(1)", "5(2)", "5(3)")
def test_three_bets_and_no_other() -> None:
    assert [bet.id for bet in game().bets()] == ["ante", "jackpot", "raise"]
    result = only(
        play(game(), showdown({3: PAIR}, OPENS, WagerPlaced(3, "any_pair", 5), WagerPlaced(3, "jackpot", 10)))
    )
    assert codes(result) == ["bet_not_offered"]
    assert [note.law.rpartition(" ")[2] for note in result.irregularities] == ["5"]
    assert {bet for _, bet in returned(result)} == {"ante", "jackpot", "raise"}


@pytest.mark.article("2(1)")
def test_there_are_seven_seats() -> None:
    deal = random.Random(2).sample(DECK, 40)
    events = [BetsOpened(), *antes(*range(1, 8)), BetsClosed(), *(CardDrawn(card) for card in deal)]
    result = only(play(game(), [*events, *raises(*range(1, 8))]))
    assert len(result.outcome["seats"]) == 7
    for event in (SeatOpened(8), WagerPlaced(8, "ante", 10), SeatActed(8, "raise")):
        (note,) = play(game(), [event])
        assert isinstance(note, Noted)
        assert (note.irregularity.code, note.irregularity.law) == ("no_such_seat", cited("2(1)"))


@pytest.mark.article("6(1)")
def test_a_seat_has_one_hand() -> None:
    events = [*showdown({3: PAIR}, OPENS)[:-1], SeatActed(3, "fold", hand=2), *raises(3)]
    result = only(play(game(), events))
    assert result.outcome["seats"] == {"seat_3": "wins"}
    assert [(note.code, note.law) for note in result.irregularities] == [("one_hand_only", cited("6(1)"))]


@pytest.mark.article("6(2)", "7(1)")
def test_only_who_has_laid_an_ante_plays() -> None:
    """Seat 4 is open and sits out: no card goes to it."""
    seats: list[Event] = [SeatOpened(2), SeatOpened(4), SeatOpened(6)]
    result = only(play(game(), [*seats, *showdown({2: PAIR, 6: LOW}, OPENS)]))
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_6": "loses"}
    assert result.outcome["hands"]["seat_6"] == tuple(LOW.split())


def test_where_no_ante_is_told_the_open_seats_play() -> None:
    events = [
        *(SeatOpened(5), SeatOpened(2), SeatOpened(3), SeatClosed(3), SeatOpened(2), BetsOpened(), BetsClosed()),
        *shoe(PAIR, LOW, OPENS),
        *raises(2, 5),
    ]
    assert only(play(game(), events)).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}


def test_an_ante_may_be_told_by_the_console() -> None:
    for before, stakes in (
        ([SeatActed(2, "ante", amount=50)], {(2, "ante"): 100, (2, "raise"): 200}),
        ([SeatActed(2, "ante", amount=50), WagerPlaced(2, "jackpot", 5)], None),
        ([WagerPlaced(2, "ante", 50), SeatActed(2, "ante", amount=50)], {(2, "ante"): 100, (2, "raise"): 200}),
        ([SeatActed(2, "ante", amount=50), WagerPlaced(2, "ante", 50)], {(2, "ante"): 100, (2, "raise"): 200}),
        ([SeatActed(2, "ante")], {}),
    ):
        result = only(play(game(), [SeatOpened(7), *before, BetsClosed(), *shoe(PAIR, OPENS), *raises(2)]))
        assert result.outcome["seats"] == {"seat_2": "wins"}
        if stakes is not None:
            assert returned(result) == stakes


CONSOLE: list[Event] = [SeatActed(2, "ante", amount=50)]
CHIPS: list[Event] = [WagerPlaced(2, "ante", 50)]


@pytest.mark.parametrize(
    ("words", "ante"),
    [
        ([*CONSOLE, *CONSOLE, *CHIPS, *CONSOLE], 50),
        ([*CONSOLE, *CHIPS, WagerPlaced(2, "ante", 10)], 60),  # more chips
        ([*CHIPS, *CONSOLE, *CHIPS], 100),
        ([*CONSOLE, *CHIPS, *CHIPS, SeatActed(2, "ante", amount=100)], 100),
        ([*CONSOLE, *CHIPS, WagerWithdrawn(2, "ante", 10)], 40),
        ([*CONSOLE, *CHIPS, WagerWithdrawn(2, "ante"), WagerPlaced(2, "ante", 40)], 40),
        ([*CONSOLE, WagerWithdrawn(2, "ante"), *CHIPS, *CHIPS], 100),
        ([*CONSOLE, BetsClosed(), *CHIPS], 50),  # the sensor was slow
        ([*CHIPS, BetsClosed(), *CONSOLE], 50),
        ([*CHIPS, BetsClosed(), SeatActed(2, "ante", amount=60)], 50),  # refused
        # Two words of one ante: nobody knows what lies there.
        ([*CONSOLE, WagerPlaced(2, "ante", 60)], None),
        ([*CONSOLE, WagerPlaced(2, "ante", 30), WagerPlaced(2, "ante", 20)], None),
        ([*CONSOLE, BetsClosed(), WagerPlaced(2, "ante", 60)], None),
        ([*CONSOLE, WagerWithdrawn(2, "ante", 60)], None),
        ([*CHIPS, SeatActed(2, "ante", amount=60)], None),
        ([*CONSOLE, SeatActed(2, "ante", amount=60)], None),
    ],
)
def test_the_console_and_the_chips_tell_the_same_ante(words: list[Event], ante: int | None) -> None:
    events = [BetsOpened(), *antes(5), *words, BetsClosed(), *shoe(PAIR, LOW, OPENS), *raises(2, 5)]
    result = only(play(game(), events))
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    settled = {(2, "ante"): 2 * (ante or 0), (2, "raise"): 4 * (ante or 0), (5, "ante"): 0, (5, "raise"): 0}
    assert returned(result) == ({} if ante is None else settled)
    late = BetsClosed() in words and words[-1] not in (*CONSOLE, *CHIPS)
    assert codes(result) == (["late_bet"] if late else [])
    void = only(play(game(), [BetsOpened(), *words, RoundVoided()]))
    assert returned(void) == ({} if ante is None else {(2, "ante"): ante})


@pytest.mark.article("6(6)")
def test_an_ante_told_by_both_is_doubled_by_one_raise() -> None:
    for words in ([*CONSOLE, *CHIPS], [*CHIPS, *CONSOLE]):
        events = [BetsOpened(), *words, BetsClosed(), *shoe(PAIR, OPENS), WagerPlaced(2, "raise", 100)]
        result = only(play(game(), events))
        assert (codes(result), returned(result)) == ([], {(2, "ante"): 100, (2, "raise"): 200})


@pytest.mark.article("6(2)")
def test_the_bell_before_any_ante_changes_nothing_but_is_noted() -> None:
    events = [BetsOpened(), BetsClosed(), *showdown({1: PAIR}, OPENS)[1:]]
    result = only(play(game(), events))
    assert codes(result) == ["no_ante"]
    assert result.outcome["seats"] == {"seat_1": "wins"}


@pytest.mark.article("6(2)")
@pytest.mark.parametrize("late", [WagerPlaced(2, "ante", 100), SeatActed(2, "ante", amount=100), SeatActed(2, "ante")])
def test_an_ante_after_the_bell_is_refused(late: Event) -> None:
    events = showdown({1: PAIR}, OPENS)
    result = only(play(game(), [*events[:3], late, *events[3:]]))
    assert codes(result) == ["late_bet"]
    assert result.outcome["seats"] == {"seat_1": "wins"}


@pytest.mark.article("6(3)")
def test_the_jackpot_may_be_bet_upon_until_the_first_card() -> None:
    events = showdown({1: PAIR}, OPENS)
    bet = WagerPlaced(1, "jackpot", 10)
    for place in (2, 3):  # before and after the bell
        result = only(play(game(), [*events[:place], bet, *events[place:]]))
        assert (codes(result), returned(result)[1, "jackpot"]) == ([], 0)
    for place in (4, 8, 13):
        result = only(play(game(), [*events[:place], bet, *events[place:]]))
        assert [(note.code, note.law) for note in result.irregularities] == [("late_bet", cited("6(3)"))]
        assert (1, "jackpot") not in returned(result)
    late = only(play(game(), [*packets([1])[:4], bet, HandDispensed(5), *raises(1), told(dealer=CLOSED_HAND)]))
    assert codes(late) == ["late_bet"]


@pytest.mark.article("6(3)")
def test_the_first_card_closes_the_bets_too() -> None:
    events = [event for event in showdown({1: PAIR}, OPENS) if event != BetsClosed()]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    assert only(verdicts).irregularities == ()
    by_packets = [event for event in packets([1]) if event != BetsClosed()]
    assert [type(verdict) for verdict in play(game(), by_packets)] == [Opened, Closed]


@pytest.mark.article("6(5)")
@pytest.mark.parametrize("early", [SeatActed(1, "raise"), SeatActed(1, "fold"), WagerPlaced(1, "raise", 200)])
def test_a_decision_before_the_deal_is_none(early: Event) -> None:
    events = showdown({1: PAIR}, OPENS)
    state, verdicts = run(game(), [*events[:2], early, *events[2:-1]])
    assert results(verdicts) == []
    assert state.open is not None
    assert [note.law for note in state.open.round.irregularities] == [cited("6(5)")]
    assert game().view(state).phase == "deciding"


@pytest.mark.article("6(5)")
def test_a_decision_before_all_cards_are_dealt_is_noted_and_waits_for_them() -> None:
    events = showdown({1: PAIR}, OPENS)
    verdicts = play(game(), [*events[:7], SeatActed(1, "raise"), *events[7:-1]])
    result = only(verdicts)
    assert codes(result) == ["decision_before_deal"]
    assert result.outcome["seats"] == {"seat_1": "wins"}


@pytest.mark.article("6(6)")
def test_a_raise_is_twice_the_ante() -> None:
    events = showdown({1: PAIR}, OPENS)[:-1]
    told_so: list[tuple[list[Event], list[str]]] = [
        ([SeatActed(1, "raise", amount=200)], []),
        ([WagerPlaced(1, "raise", 200)], []),
        ([WagerPlaced(1, "raise", 150), WagerPlaced(1, "raise", 50)], []),
        ([WagerPlaced(1, "raise", 150), WagerWithdrawn(1, "raise"), WagerPlaced(1, "raise", 200)], []),
        ([SeatActed(1, "raise", amount=150)], ["raise_not_double"]),
        ([SeatActed(1, "raise", amount=201)], ["raise_not_double"]),
        ([WagerPlaced(1, "raise", 250)], ["raise_not_double"]),
        ([WagerPlaced(1, "raise", 50), SeatActed(1, "raise")], ["raise_not_double"]),
    ]
    for acts, noted in told_so:
        result = only(play(game(), [*events, *acts]))
        assert codes(result) == noted
        assert all(note.law == cited("6(6)") for note in result.irregularities)
        assert returned(result)[1, "raise"] == 400
    unfinished: list[list[Event]] = [
        [WagerPlaced(1, "raise", 150)],
        [WagerPlaced(1, "raise", 199), WagerWithdrawn(1, "raise", 100)],
    ]
    for chips in unfinished:
        assert results(play(game(), [*events, *chips])) == []


@pytest.mark.article("6(6)")
def test_a_refused_raise_of_a_terminal_is_no_raise() -> None:
    events = showdown({1: PAIR}, OPENS)[:-1]
    refused = WagerPlaced(1, "raise", 250, "r-1", "t-1")
    assert results(play(game(), [*events, refused])) == []
    result = only(play(game(), [*events, refused, WagerPlaced(1, "raise", 200, "r-2", "t-1")]))
    assert codes(result) == ["raise_not_double"]
    assert returned(result)[1, "raise"] == 400
    folded = only(play(game(), [*events, refused, SeatActed(1, "fold")]))
    assert (1, "raise") not in returned(folded)


def test_the_console_and_the_chips_tell_the_same_raise() -> None:
    events = showdown({1: PAIR, 2: LOW}, OPENS)[:-2]
    orders: list[list[Event]] = [
        [SeatActed(1, "raise"), WagerPlaced(1, "raise", 200), SeatActed(2, "raise")],
        [WagerPlaced(1, "raise", 200), SeatActed(1, "raise", amount=200), SeatActed(2, "raise")],
        [SeatActed(1, "raise"), SeatActed(2, "raise"), WagerPlaced(1, "raise", 200)],
    ]
    for acts in orders:
        verdicts = play(game(), [*events, *acts])
        result = only(verdicts)
        assert (codes(result), returned(result)[1, "raise"]) == ([], 400)
        assert isinstance(verdicts[-1], Resolved)


@pytest.mark.article("6(5)")
def test_a_raise_cannot_be_taken_back() -> None:
    events = showdown({1: PAIR, 2: LOW}, OPENS)[:-2]
    result = only(play(game(), [*events, WagerPlaced(1, "raise", 200), WagerWithdrawn(1, "raise"), *raises(2)]))
    assert (codes(result), returned(result)[1, "raise"]) == (["bet_stands"], 400)


@pytest.mark.article("6(7)")
def test_a_folded_hand_loses_its_ante_whatever_the_dealer_holds() -> None:
    for dealer in (OPENS, CLOSED_HAND):
        result = only(play(game(), showdown({1: "AS KS QS JS TS", 2: LOW}, dealer, fold=[1])))
        assert returned(result)[1, "ante"] == 0
        assert result.outcome["seats"]["seat_1"] == "folded"
        assert "seat_1" not in result.outcome["hands"]
        assert cited("6(7)") in result.law


@pytest.mark.article("6(7)")
def test_when_all_fold_no_hand_is_opened() -> None:
    for events in (showdown({1: PAIR, 2: LOW}, OPENS, fold=[1, 2]), [*packets([1]), SeatActed(1, "fold")]):
        result = only(play(game(), events))
        assert set(result.outcome["seats"].values()) == {"folded"}
        assert result.outcome["hands"] == {}
        assert set(returned(result).values()) == {0}
        assert result.announcements["pt"] == "Todos desistem"


@pytest.mark.article("6(8)")
def test_nothing_is_decided_before_the_last_decision() -> None:
    events = showdown({1: PAIR, 2: LOW, 3: "JS JC 3C 3D 5C"}, OPENS)
    assert results(play(game(), events[:-1])) == []
    assert view(events[:-1]).detail["undecided"] == (3,)
    assert isinstance(play(game(), events)[-1], Resolved)


# ---- arts. 3, 7: the deal


@pytest.mark.article("7(1)", "1(2)")
def test_a_shoe_deals_one_card_at_a_time_from_left_to_right_the_dealer_last() -> None:
    deal = random.Random(7).sample(DECK, 20)
    events = [BetsOpened(), *antes(6, 1, 3), BetsClosed(), *(CardDrawn(card) for card in deal[:-1])]
    events += [CardDrawn(deal[-1], "up"), CutCardDrawn()]
    state, _ = run(game(), events)
    assert state.position.deal is not None
    assert state.position.deal.known() == {
        "seat_1": tuple(deal[0::4]),
        "seat_3": tuple(deal[1::4]),
        "seat_6": tuple(deal[2::4]),
        "dealer": tuple(deal[3::4]),
    }
    assert game().view(state).detail["open"] == (deal[-1],)


@pytest.mark.article("7(2)", "1(3)")
def test_a_shuffler_deals_five_cards_at_a_time_and_the_hands_are_told_at_the_showdown() -> None:
    events = [*packets([2, 5]), *raises(2, 5)]
    shown = view(events)
    assert (shown.phase, shown.detail["missing"]) == ("showdown", ("dealer",))
    opened = view([*events, told(dealer=OPENS)])
    assert (opened.phase, opened.detail["missing"]) == ("showdown", ("seat_2", "seat_5"))
    for tellings in (
        [told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)],
        [told(dealer=OPENS), told(seat_5=LOW), told(seat_2=PAIR)],
        [DealCorrected({"2": tuple(PAIR.split()), "5": tuple(LOW.split()), "dealer": tuple(OPENS.split())})],
    ):
        result = only(play(game(), [*events, *tellings]))
        assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
        assert cited("7(2)") in result.law
        assert cited("7(1)") not in result.law
    assert play(game(), events)[-1] == Closed("t-1:2026-11-20:1")


@pytest.mark.article("7(2)")
def test_the_dealers_open_card_may_be_told_for_the_display() -> None:
    events = [*packets([2]), told(dealer="AD")]
    assert view(events).detail["open"] == ("AD",)
    assert view(events).phase == "deciding"
    result = only(play(game(), [*events, *raises(2), told(dealer=OPENS, seat_2=PAIR)]))
    assert result.outcome["seats"] == {"seat_2": "wins"}
    state, verdicts = run(game(), [*events, *raises(2), told(dealer=PAIR)])
    assert isinstance(verdicts[-1], Suspended)
    assert results(verdicts) == []
    assert state.open is not None


def test_a_dealer_who_does_not_open_need_not_open_the_players_hands() -> None:
    result = only(play(game(), [*packets([2, 5]), *raises(2, 5), told(dealer=CLOSED_HAND)]))
    assert result.outcome["seats"] == {"seat_2": "not_opened", "seat_5": "not_opened"}
    waits = [*packets([2, 5], WagerPlaced(5, "jackpot", 10)), *raises(2, 5), told(dealer=CLOSED_HAND)]
    assert view(waits).detail["missing"] == ("seat_5",)
    assert len(only(play(game(), [*waits, told(seat_5="9S 9C 9D 2S 2C")])).jackpots) == 1


@pytest.mark.article("3(1)", "3(2)")
def test_the_house_may_deal_from_one_of_them_only() -> None:
    by_shoe, by_shuffler = showdown({1: PAIR}, OPENS), [*packets([1]), *raises(1), told(dealer=OPENS, seat_1=PAIR)]
    for dealing, events, law in (
        ("either", by_shoe, []),
        ("either", by_shuffler, []),
        ("shoe", by_shoe, []),
        ("shuffler", by_shuffler, []),
        ("shoe", by_shuffler, [cited("3(1)")]),
        ("shuffler", by_shoe, [cited("3(2)")]),
    ):
        result = only(play(game(dealing=dealing), events))
        assert [note.law for note in result.irregularities] == law
        assert result.outcome["seats"] == {"seat_1": "wins"}


@pytest.mark.article("1(1)")
def test_one_deck() -> None:
    for event in (ShoeStarted(2), ShuffleFinished(2, 104)):
        (note,) = play(game(), [event])
        assert isinstance(note, Noted)
        assert (note.irregularity.code, note.irregularity.law) == ("wrong_number_of_decks", cited("1(1)"))
    assert play(game(), [ShoeStarted(1), ShoeStarted(), ShuffleFinished(1, 52)]) == []
    events = showdown({1: PAIR}, OPENS)
    events[6] = events[4]  # one card came twice
    verdicts = play(game(), events)
    assert any(isinstance(verdict, Suspended) for verdict in verdicts)
    assert results(verdicts) == []


# ---- art. 10: the jackpot

ROYAL = "AS KS QS JS TS"
ROYAL_H = "AH KH QH JH TH"
STRAIGHT_FLUSH = "9C 8C 7C 6C 5C"
STRAIGHT_FLUSH_D = "8D 7D 6D 5D 4D"
FOUR = "2S 2H 2C 2D 8H"
FULL = "3S 3C 3D 4S 4H"
FLUSH = "KC QC JC TC 4C"
DEALER_LOW = "AD QD 9H 8S 7H"


def jackpot(*seats: int) -> list[Event]:
    return [WagerPlaced(seat, "jackpot", 10) for seat in seats]


def award(name: str, item: int, pays: Any, *among: int, share: str = "", after: str = "") -> Award:
    return Award("progressive", name, pays, cited(f"10(2)({item})"), share, among, after)


@pytest.mark.article("10(2)", "10(2)(1)", "10(2)(2)", "10(2)(3)", "10(2)(4)", "10(2)(5)")
@pytest.mark.parametrize("dealer", [OPENS, CLOSED_HAND, "AD AC 3S 4S 5H"])
@pytest.mark.parametrize(
    ("hand", "awards"),
    [
        (
            ROYAL,
            [award("royal_flush", 1, "larger_of_fixed_and_share", 4, share="1", after="straight_flush")],
        ),
        ("9S 8S 7S 6S 5S", [award("straight_flush", 2, "larger_of_fixed_and_share", 4, share="1/10")]),
        ("TS TC TH TD 6C", [award("four_of_a_kind", 3, "fixed", 4)]),
        ("TS TC TH 6S 6C", [award("full_house", 4, "fixed", 4)]),
        ("TS 9S 8S 7S 2S", [award("flush", 5, "fixed", 4)]),
        ("TS 9C 8H 7S 6C", []),
        ("TS TC TH 6S 2C", []),
    ],
)
def test_the_jackpot_is_paid_whatever_the_dealer_holds(dealer: str, hand: str, awards: list[Award]) -> None:
    if set(dealer.split()) & set(hand.split()):
        dealer = CLOSED_HAND.replace("8C", "3C")
    result = only(play(game(), showdown({4: hand}, dealer, *jackpot(4))))
    assert result.jackpots == tuple(awards)
    assert returned(result)[4, "jackpot"] == 0  # the stake is the pool's; the award is a ledger's
    if awards:
        assert result.outcome["hands"]["seat_4"] == tuple(hand.split())
        assert awards[0].law in result.law


@pytest.mark.article("10(1)")
def test_the_jackpot_asks_for_an_ante_and_a_bet_on_it() -> None:
    without_bet = only(play(game(), showdown({1: FULL, 2: LOW}, CLOSED_HAND, *jackpot(2))))
    assert without_bet.jackpots == ()
    without_ante = only(play(game(), showdown({1: LOW}, CLOSED_HAND, *jackpot(2))))
    assert [(note.code, note.law) for note in without_ante.irregularities] == [("jackpot_without_ante", cited("10(1)"))]
    assert returned(without_ante)[2, "jackpot"] == 10  # taken, and it cannot stand alone
    events = showdown({1: LOW}, CLOSED_HAND)
    after_bell = only(play(game(), [*events[:3], *jackpot(2), *events[3:]]))
    assert codes(after_bell) == ["jackpot_without_ante"]
    nobody_bet = only(play(game(), showdown({1: FULL}, CLOSED_HAND)))
    assert nobody_bet.jackpots == ()


def test_where_nobody_tells_the_bets_the_award_names_no_seat() -> None:
    events = [SeatOpened(1), BetsOpened(), BetsClosed(), *shoe(FULL, CLOSED_HAND), *raises(1)]
    result = only(play(game(), events))
    assert result.jackpots == (award("full_house", 4, "fixed"),)
    assert "seat_1" not in result.outcome["hands"]


@pytest.mark.article("10(1)", "6(7)")
def test_a_folded_hand_keeps_the_jackpot_by_option_only() -> None:
    events = showdown({1: FULL, 2: LOW}, DEALER_LOW, *jackpot(1, 2), fold=[1])
    assert only(play(game(), events)).jackpots == ()
    kept = only(play(game(folded_jackpot="kept"), events))
    assert kept.jackpots == (award("full_house", 4, "fixed", 1),)
    assert kept.outcome["hands"]["seat_1"] == tuple(FULL.split())
    assert kept.outcome["seats"]["seat_1"] == "folded"
    by_shuffler = [*packets([1], *jackpot(1)), SeatActed(1, "fold")]
    assert len(results(play(game(), by_shuffler))) == 1
    assert view(by_shuffler, folded_jackpot="kept").detail["missing"] == ("seat_1",)
    assert len(only(play(game(folded_jackpot="kept"), [*by_shuffler, told(seat_1=FULL)])).jackpots) == 1


@pytest.mark.article("10(4)")
def test_prizes_are_paid_from_the_dealers_left_on() -> None:
    hands = {2: FLUSH, 3: FULL, 6: FOUR}
    result = only(play(game(), showdown(hands, DEALER_LOW, *jackpot(6, 3, 2))))
    assert [(one.combination, one.among) for one in result.jackpots] == [
        ("flush", (2,)),
        ("full_house", (3,)),
        ("four_of_a_kind", (6,)),
    ]


@pytest.mark.article("10(5)")
def test_two_royal_flushes_share_one_prize() -> None:
    result = only(play(game(), showdown({2: ROYAL_H, 5: ROYAL}, "AD QD 9C 8C 7H", *jackpot(2, 5))))
    assert result.jackpots == (
        award("royal_flush", 1, "larger_of_fixed_and_share", 2, 5, share="1", after="straight_flush"),
    )
    one_bets = only(play(game(), showdown({2: ROYAL_H, 5: ROYAL}, "AD QD 9C 8C 7H", *jackpot(5))))
    assert one_bets.jackpots[0].among == (5,)


@pytest.mark.article("10(6)")
def test_two_straight_flushes_have_a_tenth_each() -> None:
    result = only(play(game(), showdown({2: STRAIGHT_FLUSH, 5: STRAIGHT_FLUSH_D}, DEALER_LOW, *jackpot(2, 5))))
    assert result.jackpots == tuple(
        award("straight_flush", 2, "larger_of_fixed_and_share", seat, share="1/10") for seat in (2, 5)
    )


@pytest.mark.article("10(7)", "10(4)")
def test_straight_flushes_are_paid_before_royal_flushes() -> None:
    hands = {1: ROYAL, 2: FULL, 4: STRAIGHT_FLUSH, 5: ROYAL_H, 6: STRAIGHT_FLUSH_D, 7: FOUR}
    result = only(play(game(), showdown(hands, "AD QD 9S 9H 7S", *jackpot(*hands))))
    assert [(one.combination, one.among, one.after) for one in result.jackpots] == [
        ("full_house", (2,), ""),
        ("straight_flush", (4,), ""),
        ("straight_flush", (6,), ""),
        ("royal_flush", (1, 5), "straight_flush"),
        ("four_of_a_kind", (7,), ""),
    ]


@pytest.mark.article("5(2)")
def test_a_house_may_leave_the_jackpot_out() -> None:
    ruleset = game(bets_offered=("ante", "raise"))
    assert [bet.id for bet in ruleset.bets()] == ["ante", "raise"]
    result = only(play(ruleset, showdown({1: FULL}, CLOSED_HAND, *jackpot(1))))
    assert (result.jackpots, codes(result)) == ((), ["bet_not_offered"])
    void = only(play(ruleset, [*showdown({1: FULL}, CLOSED_HAND)[:5], RoundVoided()]))
    assert void.void == Void(say("declared"), "returned")


# ---- art. 11: irregularities

TWO = showdown({2: PAIR, 5: LOW}, OPENS, *jackpot(2))


def assert_void(result: Result, text: str, article: str) -> None:
    assert result.void == Void(declared(text), "returned", "carried")
    assert result.law == (cited(article),)
    assert all(one.returned == one.stake for one in result.settlements)
    assert "jackpot" not in {one.bet for one in result.settlements}
    assert (result.winners, result.jackpots) == ((), ())


@pytest.mark.article("11(1)")
@pytest.mark.parametrize("cards", [1, 4, 6, 10])
def test_a_packet_of_a_wrong_number_makes_the_round_void(cards: int) -> None:
    events = packets([2, 5], *jackpot(2))
    for place in (5, 6, 7):
        result = only(play(game(), [*events[:place], HandDispensed(cards)]))
        assert_void(result, "wrong_number_of_cards", "11(1)")
        assert returned(result) == {(2, "ante"): 100, (5, "ante"): 100}


@pytest.mark.article("11(1)")
@pytest.mark.parametrize(
    "exposed",
    [
        [CardExposed("seat_2", "8S"), CardExposed("seat_5", "3H")],
        [CardExposed("seat_2", "8S"), CardExposed("seat_2", "8H")],
        [CardExposed("dealer", "AD"), CardExposed("5")],
        [CardExposed("dealer", "AD"), CardExposed("dealer", "KD")],
    ],
)
def test_two_exposed_cards_make_the_round_void(exposed: list[Event]) -> None:
    for events in (TWO, packets([2, 5], *jackpot(2))):
        result = only(play(game(), [*events[:-2], *exposed]))
        assert_void(result, "two_cards_exposed", "11(1)")
        assert [note.law for note in result.irregularities] == [cited("11(2)"), cited("11(1)")]
        assert "hands" not in result.outcome


@pytest.mark.article("11(1)")
def test_two_cards_that_leave_the_shoe_face_up_make_the_round_void() -> None:
    events = list(TWO)
    for place in (5, 7):
        card = events[place]
        assert isinstance(card, CardDrawn)
        events[place] = CardDrawn(card.card, "up")
    assert_void(only(play(game(), events[:9])), "two_cards_exposed", "11(1)")


@pytest.mark.article("11(1)")
def test_a_wrong_deal_is_declared_void_and_the_jackpot_bets_are_transferred() -> None:
    for end in (5, 9, len(TWO) - 1, len(TWO)):
        ruleset = game()
        state, verdicts = run(ruleset, [*TWO[:end], RoundVoided("dealing error")])
        last = verdicts[-1]
        assert isinstance(last, Voided | Corrected)
        assert isinstance(last, Corrected) == (end == len(TWO))
        assert_void(last.result, "dealing error", "11(1)")
        assert [(one.seat, one.bet, one.amount) for one in state.position.left] == [(2, "jackpot", 10)]


@pytest.mark.article("11(1)", "11(4)")
def test_a_transferred_jackpot_bet_is_the_next_rounds() -> None:
    void = [*TWO[:9], RoundVoided()]
    again = showdown({2: FULL, 5: LOW}, DEALER_LOW)
    for bets, noted in (
        ([], []),
        (jackpot(2), []),  # the sensor tells the chip that lies there once more
        ([WagerWithdrawn(2, "jackpot")], ["bet_stands"]),
    ):
        result = results(play(game(), [*void, *again[:3], *bets, *again[3:]]))[-1]
        assert [one.among for one in result.jackpots] == [(2,)]
        assert (codes(result), returned(result)[2, "jackpot"]) == (noted, 0)
        assert [one.stake for one in result.settlements if one.bet == "jackpot"] == [10]
    # twice void, twice carried
    twice = results(play(game(), [*void, *again[:6], RoundVoided(), *again]))
    assert [one.among for one in twice[-1].jackpots] == [(2,)]
    # who lays no ante cannot play for it
    absent = results(play(game(), [*void, *showdown({5: LOW}, DEALER_LOW)]))[-1]
    assert codes(absent) == ["jackpot_without_ante"]


@pytest.mark.article("11(1)")
def test_new_bets_and_a_new_deal_follow_a_void_round() -> None:
    verdicts = play(game(), [*TWO[:9], RoundVoided(), CardDrawn("2C"), *TWO])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Voided, Noted, Opened, Closed, Resolved]


@pytest.mark.article("11(2)")
def test_one_exposed_card_and_play_goes_on() -> None:
    for exposed in (CardExposed("seat_2", "8S"), CardExposed("seat_2"), CardExposed("5", "9S"), CardExposed("dealer")):
        for place in (6, 12, len(TWO) - 2, len(TWO) - 1):
            result = only(
                play(game(), [*TWO[:place], exposed, exposed if exposed.card else BetsClosed(), *TWO[place:]])
            )
            assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
            assert [(note.code, note.law) for note in result.irregularities] == [("card_exposed", cited("11(2)"))]
            assert cited("11(2)") in result.law


@pytest.mark.article("11(2)")
def test_an_exposed_card_of_the_dealer_stays_open_and_his_others_face_down() -> None:
    events = list(TWO)
    # opened, two antes, the jackpot, the bell; each turn is seat 2, seat 5, dealer
    events[7] = CardDrawn("AD", "up")
    shown = view(events[:-2])
    assert shown.detail["open"] == ("AD",)  # not 7H, his last
    assert shown.detail["exposed"] == ({"hand": "dealer", "card": "AD"},)
    assert only(play(game(), events)).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    events[-3] = CardDrawn("7H", "up")  # his last card face up is the second one
    assert_void(only(play(game(), events[:-2])), "two_cards_exposed", "11(1)")
    assert view(TWO[:-1]).detail["open"] == ("7H",)
    assert view([*TWO[:-2], CardExposed("dealer", "7H")]).detail["open"] == ("7H",)  # regularly so
    assert view([*TWO[:-1], CardExposed("dealer", "AD")]).detail["open"] == ("AD", "7H")  # seen after the deal


@pytest.mark.article("11(2)")
def test_the_dealers_last_card_lies_face_up_by_rule() -> None:
    events = list(TWO)
    for face in ("up", "down"):
        events[-3] = CardDrawn("7H", "up" if face == "up" else "down")
        result = only(play(game(), events))
        assert result.irregularities == ()
        assert view(events[:-2]).detail["open"] == (("7H",) if face == "up" else ())
        assert view(events[:-1]).detail["open"] == ("7H",)


def test_whether_one_card_was_seen_or_two_may_be_unknown() -> None:
    for exposed in (
        [CardExposed("seat_2"), CardExposed("seat_2")],
        [CardExposed("seat_2", "8S"), CardExposed("seat_2")],
        [CardExposed("seat_2"), CardExposed("seat_2", "8S")],
    ):
        events = [*TWO[:-2], *exposed, *TWO[-2:]]
        verdicts = play(game(), events)
        assert isinstance(verdicts[-1], Suspended)
        goes_on = play(game(), [*events, told(dealer=OPENS)])
        assert only(goes_on).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
        assert isinstance(play(game(), [*events, RoundVoided()])[-1], Voided)


def test_a_card_seen_elsewhere_than_where_it_was_dealt_is_a_contradiction() -> None:
    verdicts = play(game(), [*TWO[:-2], CardExposed("seat_5", "8S"), *TWO[-2:]])
    assert isinstance(verdicts[-1], Suspended)
    assert "8S" in verdicts[-1].reason.values.values()
    right = told(dealer=OPENS, seat_2="8D 8H 6D 4C 2C", seat_5="8S 3H 5D 7C 9S")
    assert only(play(game(), [*TWO[:-2], CardExposed("seat_5", "8S"), *TWO[-2:], right])).void is None


@pytest.mark.article("11(3)")
def test_a_hand_without_a_bet_is_dead_and_play_goes_on() -> None:
    """By a shuffler a packet too many; by a shoe five cards too many, and the dealer tells whose they are."""
    hands = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
    named = DealCorrected({"seat_4": ()})
    for events in (
        [*packets([2, 5], *jackpot(2)), HandDispensed(5), named, *raises(2, 5), hands],
        [*packets([2, 5], *jackpot(2)), HandDispensed(5), *raises(2, 5), named, hands],
        [
            *packets([2, 5], *jackpot(2)),
            HandDispensed(5),
            *raises(2, 5),
            told(dealer=OPENS, seat_2=PAIR, seat_5=LOW, seat_4=ROYAL),
        ],
        [*TWO[:4], BetsClosed(), *shoe(PAIR, ROYAL, LOW, OPENS), named, *raises(2, 5), hands],
    ):
        verdicts = play(game(), events)
        assert sum(isinstance(verdict, Suspended) for verdict in verdicts) == 1
        result = only(verdicts)
        assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
        assert set(result.outcome["hands"]) == {"dealer", "seat_2", "seat_5"}
        assert [(note.code, note.law) for note in result.irregularities] == [("hand_without_bet", cited("11(3)"))]


@pytest.mark.article("11(1)", "11(3)")
def test_a_packet_too_many_may_also_be_declared_void() -> None:
    assert_void(
        only(play(game(), [*packets([2, 5], *jackpot(2)), HandDispensed(5), RoundVoided("two packets to seat 2")])),
        "two packets to seat 2",
        "11(1)",
    )


@pytest.mark.article("11(4)")
@pytest.mark.parametrize("fault", [ShuffleFailed(1, 52, "jam"), CardJammed("outfeed"), ShuffleFailed(), CardJammed("")])
def test_a_shuffler_that_fails_during_the_deal_makes_the_round_void(fault: Event) -> None:
    events = packets([2, 5], *jackpot(2))
    for place in (5, 6, 7):
        ruleset = game()
        state, verdicts = run(ruleset, [*events[:place], fault])
        result = only(verdicts)
        assert_void(result, "shuffler_failed", "11(4)")
        assert [note.law for note in result.irregularities] == [cited("11(4)")]
        assert [(one.seat, one.bet) for one in state.position.left] == [(2, "jackpot")]
    # then a shoe, or another machine
    after = results(play(game(), [*events[:6], fault, *showdown({2: FULL, 5: LOW}, DEALER_LOW)]))[-1]
    assert [one.among for one in after.jackpots] == [(2,)]


@pytest.mark.article("11(4)")
@pytest.mark.parametrize("fault", [ShuffleFailed(1, 52, "jam"), CardJammed("infeed"), DeckMiscounted(52, 51)])
def test_a_shuffler_that_fails_outside_the_deal_touches_no_round(fault: Event) -> None:
    """Before the bell, after the last packet, or while a shoe deals: the machine shuffles the next deck."""
    hands = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
    dealt = packets([2, 5], *jackpot(2))
    whole = [*dealt, *raises(2, 5), hands]
    for place in (0, 1, 4, len(dealt), len(dealt) + 1, len(whole)):
        assert only(play(game(), [*whole[:place], fault, *whole[place:]])).void is None
    for place in (6, 12):
        assert only(play(game(), [*TWO[:place], fault, *TWO[place:]])).void is None
    assert only(play(game(dealing="shoe"), [*TWO[:5], fault, *TWO[5:]])).void is None
    mute = [event for event in whole if not isinstance(event, HandDispensed)]  # a machine that tells no packets
    assert only(play(game(), [*mute[:6], fault, *mute[6:]])).void is None


# ---- doubt: nothing is guessed

DOUBTS: list[Event] = [CardUnreadable(), DeviceOnline(continuous=False), EventsMissed(1)]


@pytest.mark.parametrize("doubt", DOUBTS)
@pytest.mark.parametrize("place", [5, 6, 19, 20, 21])
def test_a_doubtful_deal_waits_for_the_hands(doubt: Event, place: int) -> None:
    events = [*TWO[:place], doubt, *TWO[place:]]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]
    assert view(events).phase == "suspended"
    lost = not isinstance(doubt, CardUnreadable)
    hands = told(dealer="AD KD 9H 8C 7C", seat_2="8S 8H 6D 4C 2D", seat_5="JS JC 3C 3D 5C")  # what truly lies there
    result = only(play(game(), [*events, hands]))
    assert result.outcome["hands"]["dealer"] == ("AD", "KD", "9H", "8C", "7C")
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "wins"}
    assert (result.settlements == ()) == lost
    assert (codes(result), result.void) == ([], None)


def test_cards_that_nobody_has_laid_an_ante_for_end_in_a_void_only() -> None:
    events: list[Event] = [BetsOpened(), CardDrawn("4S"), told(dealer=OPENS, seat_2=PAIR)]
    assert results(play(game(), events)) == []
    assert view(events).phase == "suspended"
    assert isinstance(play(game(), [*events, RoundVoided()])[-1], Voided)


def test_a_correction_that_lacks_a_hand_waits_and_the_next_round_voids_it() -> None:
    """The dealer did not open, and now does: the hand that stayed closed must be told."""
    events = [*packets([2]), *raises(2), told(dealer=CLOSED_HAND), told(dealer=OPENS)]
    assert view(events).detail["missing"] == ("seat_2",)
    told_then = play(game(), [*events, told(seat_2=PAIR)])[-1]
    assert isinstance(told_then, Corrected)
    assert told_then.result.outcome["seats"] == {"seat_2": "wins"}
    paid = play(game(), [*events, RoundPaid()])[-1]
    assert isinstance(paid, Corrected)
    assert paid.result.outcome["seats"] == {"seat_2": "not_opened"}
    verdicts = play(game(), [*events, BetsOpened()])
    assert [type(verdict) for verdict in verdicts[-3:]] == [Resolved, Corrected, Opened]
    corrected = verdicts[-2]
    assert isinstance(corrected, Corrected)
    assert corrected.result.void == Void(say("not_completed_again"), "returned", "carried")


def test_hands_told_in_part_are_waited_for() -> None:
    events = [*TWO[:9], CardUnreadable(), *TWO[9:], told(seat_5=LOW)]
    assert view(events).phase == "showdown"
    assert view(events).detail["missing"] == ("dealer", "seat_2")
    assert results(play(game(), events)) == []
    assert only(play(game(), [*events, told(dealer=OPENS, seat_2=PAIR)])).outcome["seats"]["seat_2"] == "wins"


@pytest.mark.parametrize(
    "hands",
    [
        {},
        {"banker": tuple(OPENS.split())},
        {"seat_2": tuple(PAIR.split()[:4])},
        {"seat_2": (*PAIR.split(), "KS")},
        {"seat_2": tuple(PAIR.split()), "2": tuple(PAIR.split())},
        {"seat_2": tuple(PAIR.split()), "seat_5": tuple(PAIR.split())},
        {"seat_2": ("8S", "8S", "6D", "4C", "2C")},
        {"dealer": tuple(OPENS.split()), "seat_2": ("AD", *PAIR.split()[1:])},
        {"seat_9": tuple(PAIR.split())},
        {"dealer": ("8H",)},
        {"seat_2": ("1S", *PAIR.split()[1:])},
    ],
)
def test_hands_that_cannot_be_are_not_believed(hands: dict[str, tuple[str, ...]]) -> None:
    before = TWO[:-1]
    verdicts = play(game(), [*before, DealCorrected(hands), TWO[-1]])
    assert isinstance(verdicts[-1], Suspended)
    assert results(verdicts) == []
    told_right = play(game(), [*before, DealCorrected(hands), TWO[-1], told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)])
    assert only(told_right).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    after = play(game(), [*TWO, DealCorrected(hands)])
    assert isinstance(after[-1], Suspended)
    assert isinstance(play(game(), [*TWO, DealCorrected(hands), RoundPaid()])[-1], Corrected)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([*TWO[:-2], CardDrawn("4S")], "card_more"),
        ([*TWO[:8], HandDispensed(5)], "packet_then_shoe"),
        ([*packets([2, 5])[:6], CardDrawn("4S")], "shoe_then_packets"),
        ([*TWO[:8], ShoeStarted(1)], "new_shoe"),
        ([*TWO[:8], ShoeEmptied()], "shoe_empty_hands"),
        ([BetsOpened(), CardDrawn("4S")], "card_no_ante"),
        ([BetsOpened(), HandDispensed(5)], "card_no_ante"),
        ([*TWO[:-2], SeatActed(4, "raise")], "no_ante"),
        ([*TWO[:-2], WagerPlaced(4, "raise", 200)], "no_ante_raise"),
        ([*TWO[:-2], SeatActed(2, "raise"), SeatActed(2, "fold")], "raises_and_folds"),
        ([*TWO[:-2], SeatActed(2, "fold"), WagerPlaced(2, "raise", 200)], "raises_and_folds"),
        ([*TWO[:-2], WagerPlaced(2, "raise", 100), SeatActed(2, "fold")], "raises_and_folds"),
        ([*TWO[:-1], BetsOpened()], "bets_reopened_round"),
        ([*TWO[:-2], SeatActed(2, "raise"), RoundPaid()], "paid_decisions"),
        ([*packets([2]), *raises(2), RoundPaid()], "paid_hands"),
        ([*TWO[:3], EventsMissed(1), CardDrawn("8S")], "first_card"),
        ([*TWO[:3], EventsMissed(1), HandDispensed(5)], "first_card"),
    ],
)
def test_what_cannot_be_suspends_the_round(events: list[Event], reason: str) -> None:
    verdicts = play(game(), events)
    last = verdicts[-1]
    assert isinstance(last, Suspended)
    assert last.reason.code == reason
    assert last.remedy
    assert results(verdicts) == []
    # A second opening of the bets, or a word of the dealer, voids what is in doubt.
    for more in ([BetsOpened()], [RoundVoided()]):
        assert isinstance(play(game(), [*events, *more])[len(verdicts)], Voided)


def test_a_shoe_that_is_empty_or_new_after_the_deal_is_nothing() -> None:
    for event in (ShoeEmptied(), ShoeStarted(1), CutCardDrawn(), ShuffleFinished(1, 52, verified=True)):
        assert only(play(game(), [*TWO[:-1], event, TWO[-1]])).void is None


def test_the_third_word_decides_between_a_raise_and_a_fold() -> None:
    doubt = [*TWO[:-2], SeatActed(2, "raise"), SeatActed(2, "fold"), SeatActed(5, "raise")]
    for last, fate in (("fold", "folded"), ("raise", "wins")):
        result = only(play(game(), [*doubt, SeatActed(2, last)]))
        assert result.outcome["seats"] == {"seat_2": fate, "seat_5": "loses"}


def test_chips_on_a_folded_raise_go_back_when_the_fold_is_told_again() -> None:
    doubt = [*TWO[:-2], WagerPlaced(2, "raise", 150), SeatActed(2, "fold"), SeatActed(5, "raise")]
    assert results(play(game(), doubt)) == []
    result = only(play(game(), [*doubt, SeatActed(2, "fold")]))
    assert result.outcome["seats"] == {"seat_2": "folded", "seat_5": "loses"}
    assert (2, "raise") not in returned(result)
    void = only(play(game(), [*doubt, RoundVoided()]))
    assert returned(void) == {(2, "ante"): 100, (2, "raise"): 150, (5, "ante"): 100, (5, "raise"): 200}


def test_the_hands_told_complete_a_deal_that_the_shoe_did_not_tell_whole() -> None:
    hands = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
    for events in ([*TWO[:9], *TWO[10:], hands], [*TWO[:9], *TWO[10:-2], hands, *TWO[-2:]]):
        assert only(play(game(), events)).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}


@pytest.mark.article("11(3)")
def test_a_hand_without_a_bet_among_the_cards_of_a_shoe_leaves_it_unknown_whose_they_are() -> None:
    """The dealer left seat 5 out and dealt to seat 4: the number of cards is right, the hands are not."""
    events = [*TWO[:-2], DealCorrected({"seat_4": ()}), *TWO[-2:]]
    assert view(events).detail["missing"] == ("dealer", "seat_2")
    assert results(play(game(), events)) == []


def test_the_last_round_may_be_paid_after_the_bell_of_the_next() -> None:
    verdicts = play(game(), [*TWO, *TWO[:5], RoundPaid(), *TWO[5:]])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved] * 2


def test_another_decision_puts_a_resolved_round_in_doubt() -> None:
    doubt = [*TWO, SeatActed(2, "fold")]
    verdicts = play(game(), doubt)
    assert [type(verdict) for verdict in verdicts[-2:]] == [Resolved, Suspended]
    assert view(doubt).phase == "suspended"
    for more, fate in (([SeatActed(2, "fold")], "folded"), ([SeatActed(2, "raise")], "wins"), ([RoundPaid()], "wins")):
        last = play(game(), [*doubt, *more])[-1]
        assert isinstance(last, Corrected)
        assert last.result.outcome["seats"]["seat_2"] == fate
        assert last.result.supersedes == last.result.round
    assert play(game(), [*TWO, SeatActed(2, "raise")])[-1] == verdicts[-2]  # the same word again


def test_a_result_can_be_corrected_until_the_next_round() -> None:
    verdicts = play(game(), [*TWO, told(seat_2="JS JC 3C 3D 5C")])
    last = verdicts[-1]
    assert isinstance(last, Corrected)
    assert last.result.supersedes == "t-1:2026-11-20:1"
    assert Win("raise", "2", seat=2) in last.result.winners
    assert returned(last.result)[2, "raise"] == 600
    assert play(game(), [*TWO, told(seat_2=PAIR)]) == play(game(), TWO)  # what was known
    late = play(game(), [*TWO, BetsOpened(), told(seat_2="JS JC 3C 3D 5C")])
    assert not any(isinstance(verdict, Corrected) for verdict in late)


def test_a_jackpot_hand_told_after_the_result_is_a_correction() -> None:
    events = [SeatOpened(2), BetsOpened(), BetsClosed(), HandDispensed(5), HandDispensed(5), *raises(2)]
    last = play(game(), [*events, told(dealer=DEALER_LOW), told(seat_2=FULL)])[-1]
    assert isinstance(last, Corrected)
    assert [one.combination for one in last.result.jackpots] == ["full_house"]


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_loss_before_the_bell_costs_the_amounts_only(place: int) -> None:
    verdicts = play(game(), [*TWO[:place], EventsMissed(1), *TWO[place:]])
    result = only(verdicts)
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    assert not any(isinstance(verdict, Suspended) for verdict in verdicts)
    assert (result.settlements == ()) == (place > 0)  # before the opening nothing could be lost


def test_a_loss_before_a_round_that_its_first_bet_opens() -> None:
    events = TWO[1:]
    assert only(play(game(), [EventsMissed(1), *events])).settlements == ()
    assert only(play(game(), [EventsMissed(1), *events, *TWO][: len(events) + 1])).jackpots == ()
    second = results(play(game(), [EventsMissed(1), *events, *TWO]))[1]
    assert returned(second)


def test_bets_opened_again_after_a_loss_are_another_round() -> None:
    verdicts = play(game(), [*TWO[:3], EventsMissed(1), *TWO])
    assert [type(verdict) for verdict in verdicts] == [Opened, Voided, Opened, Closed, Resolved]
    assert results(verdicts)[0].settlements == ()


def test_after_a_loss_nobody_knows_all_bets_on_the_jackpot() -> None:
    void = [*TWO[:9], EventsMissed(1), RoundVoided()]
    result = results(play(game(), [*void, *showdown({2: FULL, 5: LOW}, DEALER_LOW)]))[-1]
    assert [(one.combination, one.among) for one in result.jackpots] == [("full_house", ())]
    assert returned(result)[2, "jackpot"] == 0  # told in the void round: it counts, and others may lie there
    assert codes(result) == ["jackpot_bets_unknown"]


def by_shuffler(*bets: Event, loss: Sequence[Event] = (EventsMissed(1),)) -> list[Event]:
    """Two raises against a dealer who does not open; something was lost before the bell."""
    dealt = packets([2, 5], *bets)
    bell_ = dealt.index(BetsClosed())
    return [*dealt[:bell_], *loss, *dealt[bell_:], *raises(2, 5), told(dealer=CLOSED_HAND)]


@pytest.mark.article("10(2)")
@pytest.mark.parametrize("bets", [[], jackpot(2), jackpot(2, 5)])
def test_after_a_loss_all_hands_that_may_have_won_the_jackpot_are_waited_for(bets: list[Event]) -> None:
    waits = by_shuffler(*bets)
    shown = view(waits)
    assert (shown.phase, shown.detail["missing"]) == ("showdown", ("seat_2", "seat_5"))
    assert view([*waits, told(seat_2=FULL)]).detail["missing"] == ("seat_5",)
    result = only(play(game(), [*waits, told(seat_2=FULL), told(seat_5="JS JC TH 4D 6C")]))
    assert result.jackpots == (award("full_house", 4, "fixed"),)
    assert result.outcome["seats"] == {"seat_2": "not_opened", "seat_5": "not_opened"}
    assert set(result.outcome["hands"]) == {"dealer"}
    # Without a loss only those are waited for who have bet on it; nor is any where the house has none.
    missing = tuple(f"seat_{bet.seat}" for bet in bets if isinstance(bet, WagerPlaced))
    assert view(by_shuffler(*bets, loss=[])).detail.get("missing", ()) == missing
    assert len(results(play(game(bets_offered=("ante", "raise")), waits))) == 1


@pytest.mark.article("10(2)")
def test_a_loss_before_the_bell_and_one_bet_on_the_jackpot_wait_for_its_hand() -> None:
    dealt = packets([2], *jackpot(2))
    events = [*dealt[:3], EventsMissed(1), *dealt[3:], *raises(2), told(dealer=CLOSED_HAND)]
    shown = view(events)
    assert (shown.phase, shown.detail["missing"]) == ("showdown", ("seat_2",))
    assert [one.combination for one in only(play(game(), [*events, told(seat_2=FULL)])).jackpots] == ["full_house"]
    assert only(play(game(), [*events, told(seat_2=PAIR)])).jackpots == ()


@pytest.mark.article("10(2)")
def test_after_a_loss_in_the_deal_all_raised_hands_are_waited_for_too() -> None:
    events = [*TWO[:9], EventsMissed(1), *TWO[9:], told(dealer=CLOSED_HAND.replace("8C", "3C"))]
    assert view(events).detail["missing"] == ("seat_2", "seat_5")
    assert [one.among for one in only(play(game(), [*events, told(seat_2=FLUSH, seat_5=LOW)])).jackpots] == [()]


@pytest.mark.article("10(1)", "6(7)")
def test_after_a_loss_folded_hands_that_keep_the_jackpot_are_waited_for() -> None:
    dealt = packets([2, 5])
    events = [*dealt[:3], EventsMissed(1), *dealt[3:], SeatActed(2, "fold"), SeatActed(5, "fold")]
    assert only(play(game(), events)).jackpots == ()
    assert view(events, folded_jackpot="kept").detail["missing"] == ("seat_2", "seat_5")
    result = only(play(game(folded_jackpot="kept"), [*events, told(seat_2=LOW, seat_5=FULL)]))
    assert [(one.combination, one.among) for one in result.jackpots] == [("full_house", ())]


@pytest.mark.article("10(2)", "11(1)")
def test_where_bets_on_the_jackpot_may_have_been_carried_unseen_all_raised_hands_are_waited_for() -> None:
    void = [*packets([2, 5])[:4], EventsMissed(1), RoundVoided()]
    events = [*void, *by_shuffler(*jackpot(5), loss=[])]
    assert view(events).detail["missing"] == ("seat_2", "seat_5")
    _, result = results(play(game(), [*events, told(seat_2=FULL, seat_5="JS JC TH 4D 6C")]))
    assert [(one.combination, one.among) for one in result.jackpots] == [("full_house", ())]
    assert {key: back for key, back in returned(result).items() if key[1] == "jackpot"} == {(5, "jackpot"): 0}


@pytest.mark.article("11(1)", "11(4)")
def test_after_a_void_round_with_a_loss_the_next_jackpot_bets_count_and_people_are_told() -> None:
    """They were taken and stood in no settlement: no pool counted them, and nobody was told."""
    void = [*packets([2, 5], *jackpot(2))[:4], EventsMissed(1), RoundVoided()]
    first, second = results(play(game(), [*void, *showdown({2: FULL, 5: LOW}, OPENS, *jackpot(5))]))
    assert (codes(first), codes(second)) == ([], ["jackpot_bets_unknown"])
    chips = {one.seat: (one.stake, one.returned) for one in second.settlements if one.bet == "jackpot"}
    assert chips == {2: (10, 0), 5: (10, 0)}  # the one that was told in the void round, and the new one
    assert [(one.combination, one.among) for one in second.jackpots] == [("full_house", ())]  # people name the seats
    (_, third) = results(play(game(), [*void, *showdown({2: FULL, 5: LOW}, OPENS), *showdown({2: LOW}, OPENS)]))[1:]
    assert (codes(third), returned(third).get((2, "jackpot"))) == ([], None)


def test_the_wait_for_a_hand_that_may_have_won_the_jackpot_has_an_end() -> None:
    waits = by_shuffler(*jackpot(2))
    hands = told(seat_2=LOW, seat_5="JS JC TH 4D 6C")
    assert isinstance(play(game(), [*waits, hands])[-1], Resolved)
    assert isinstance(play(game(), [*waits, RoundVoided()])[-1], Voided)
    paid = [*waits, RoundPaid()]
    held = play(game(), paid)[-1]
    assert isinstance(held, Suspended)
    assert held.remedy.code == "do_tell_hands"
    assert isinstance(play(game(), [*paid, hands])[-1], Resolved)
    assert [type(verdict) for verdict in play(game(), [*paid, BetsOpened()])[-2:]] == [Voided, Opened]


# ---- after a loss in the betting: which seats play

ALL_HANDS = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
PLAYS, NO_BET = SeatActed(5, "ante"), DealCorrected({"seat_5": ()})


def reasons(verdicts: Iterable[Verdict]) -> list[Reason]:
    return [one.reason for one in verdicts if isinstance(one, Suspended)]


def ante_lost(*dealt: Event, loss: Event) -> list[Event]:
    """Seats 2 and 5 play; the ante of seat 5 is among what was lost."""
    return [BetsOpened(), *antes(2), loss, BetsClosed(), *dealt]


FIVES: list[Event] = [HandDispensed(5)] * 3
SHOE: list[Event] = shoe(PAIR, LOW, OPENS)


@pytest.mark.article("6(2)", "11(3)")
@pytest.mark.parametrize("loss", [EventsMissed(1), DeviceOnline(continuous=False)])
@pytest.mark.parametrize(
    "told_",
    [
        [*raises(2), ALL_HANDS],  # nothing deals, or nothing is heard of it
        [*FIVES, *raises(2), ALL_HANDS],
        [*SHOE, *raises(2), ALL_HANDS],
        [*raises(2, 5), ALL_HANDS],
        [*FIVES, *raises(2, 5), ALL_HANDS],
        [*SHOE, *raises(2, 5), ALL_HANDS],
    ],
)
def test_a_seat_whose_ante_may_have_been_lost_is_not_left_out(loss: Event, told_: list[Event]) -> None:
    """A hand that has no ante may be dead by 11(3), or its ante was lost: the person says which."""
    events = ante_lost(*told_, loss=loss)
    verdicts = play(game(), events)
    assert results(verdicts) == []
    waits = next(one for one in verdicts if isinstance(one, Suspended) and one.reason.values.get("seat") == 5)
    assert waits.reason == say("ante_missing", seat=5)
    assert waits.remedy.code == "do_who_plays"
    decided = SeatActed(5, "raise") in told_
    plays = [*events, PLAYS] if decided else [*events, PLAYS, *raises(5)]
    result = only(play(game(), plays))
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    assert (result.settlements, codes(result)) == ((), [])
    dead = only(play(game(), [*events, NO_BET]))
    assert dead.outcome["seats"] == {"seat_2": "wins"}
    assert [(note.code, note.law) for note in dead.irregularities] == [("hand_without_bet", cited("11(3)"))]
    # Told again, the same hands ask nothing: it is known now that seat 5 does not play.
    assert not isinstance(play(game(), [*events, NO_BET, ALL_HANDS])[-1], Suspended)
    void = only(play(game(), [*events, RoundVoided()]))
    assert (void.void and void.void.bets, void.settlements) == ("returned", ())


@pytest.mark.article("6(2)", "6(7)")
def test_a_decision_of_a_seat_that_is_asked_for_is_kept() -> None:
    events = ante_lost(*raises(2), SeatActed(5, "fold"), told(dealer=OPENS, seat_2=PAIR), loss=EventsMissed(1))
    assert reasons(play(game(), events)) == [say("ante_missing", seat=5)]
    assert only(play(game(), [*events, PLAYS])).outcome["seats"] == {"seat_2": "wins", "seat_5": "folded"}
    assert only(play(game(), [*events, NO_BET])).outcome["seats"] == {"seat_2": "wins"}
    assert only(play(game(), [*events, NO_BET])).irregularities == (), "no card was dealt to it that anybody saw"
    both = [*events, *raises(5), PLAYS]  # what it decided is not known then
    assert view(both).detail["undecided"] == (5,)
    assert only(play(game(), [*both, SeatActed(5, "fold")])).outcome["seats"]["seat_5"] == "folded"


@pytest.mark.article("6(2)", "7(2)")
def test_a_packet_more_after_a_loss_asks_for_the_seat_that_plays() -> None:
    """It is one of a hand without a bet, or of a seat whose ante was lost."""
    waits = play(game(), ante_lost(*FIVES, loss=EventsMissed(1)))[-1]
    assert isinstance(waits, Suspended)
    assert (waits.reason, waits.remedy.code) == (say("packet_more"), "do_who_plays")
    plays = ante_lost(*FIVES, PLAYS, *raises(2, 5), ALL_HANDS, loss=EventsMissed(1))
    assert only(play(game(), plays)).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    dead = ante_lost(*FIVES, NO_BET, *raises(2), ALL_HANDS, loss=EventsMissed(1))
    assert only(play(game(), dead)).outcome["seats"] == {"seat_2": "wins"}
    # Without a loss it is 11(3), and nobody can lay an ante after the bell.
    sound = [*packets([2]), HandDispensed(5), PLAYS, *raises(2), ALL_HANDS]
    assert set(codes(only(play(game(), sound)))) == {"bet_while_waiting", "hand_without_bet"}


@pytest.mark.article("6(2)", "6(3)", "10(1)")
@pytest.mark.parametrize("late", [False, True])
def test_a_bet_on_the_jackpot_after_a_loss_asks_for_its_ante(late: bool) -> None:
    """It is not given back as a bet without an ante: the ante may be lost, and a void round carries the bet over."""
    chip = [] if late else jackpot(5)
    events = [BetsOpened(), *antes(2), *chip, EventsMissed(1), BetsClosed(), *(jackpot(5) if late else [])]
    waits = play(game(), events)[-1]
    assert isinstance(waits, Suspended)
    assert waits.reason == say("ante_missing", seat=5)
    rest: list[Event] = [*FIVES, *raises(2, 5), told(dealer=OPENS, seat_2=PAIR, seat_5=FULL)]
    won = only(play(game(), [*events, PLAYS, *rest]))
    assert [one.combination for one in won.jackpots] == ["full_house"]
    assert (won.outcome["seats"], codes(won)) == ({"seat_2": "wins", "seat_5": "wins"}, [])
    none = only(play(game(), [*events, NO_BET, *FIVES[1:], *raises(2), told(dealer=OPENS, seat_2=PAIR)]))
    assert (none.outcome["seats"], codes(none)) == ({"seat_2": "wins"}, ["jackpot_without_ante"])
    state, verdicts = run(game(), [*events, RoundVoided()])
    assert only(verdicts).irregularities == ()
    assert [(one.seat, one.bet) for one in state.position.left] == [(5, "jackpot")]
    # Answered after the first card: whose cards came is not known, and the hands are told.
    after = only(play(game(), [*events, *SHOE, PLAYS, *raises(2, 5), ALL_HANDS]))
    assert after.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}


@pytest.mark.article("6(2)")
@pytest.mark.parametrize("dealt", [[], FIVES, SHOE])
def test_a_bell_after_a_loss_of_all_antes_asks_for_the_seats(dealt: list[Event]) -> None:
    """It is not said that no seat has placed an ante."""
    events: list[Event] = [BetsOpened(), EventsMissed(2), BetsClosed()]
    verdicts = play(game(), events)
    assert [type(one) for one in verdicts] == [Opened, Closed, Suspended]
    assert verdicts[-1].remedy.code == "do_who_plays"  # type: ignore[union-attr]
    seats: list[Event] = [SeatActed(2, "ante"), PLAYS]
    rest: list[Event] = [*raises(2, 5), ALL_HANDS]
    for order in ([*seats, *dealt, *rest], [*dealt, *seats, *rest]):
        result = only(play(game(), [*events, *order]))
        assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
        assert (result.settlements, codes(result)) == ((), [])
    assert results(play(game(), [*events, *dealt, told(dealer=OPENS)])) == []


@pytest.mark.article("6(2)")
@pytest.mark.parametrize("opened", [[SeatOpened(2), SeatOpened(5), BetsOpened()], [BetsOpened(), *antes(2, 5)]])
def test_after_a_loss_a_seat_that_has_left_is_named_without_cards(opened: list[Event]) -> None:
    """It closed, or took its ante back, and that was lost: the round would wait for its decision."""
    events = [*opened, EventsMissed(1), BetsClosed(), *raises(2), told(dealer=OPENS, seat_2=PAIR)]
    assert results(play(game(), events)) == []
    left = only(play(game(), [*events, NO_BET]))
    assert (left.outcome["seats"], left.settlements, codes(left)) == ({"seat_2": "wins"}, (), [])
    # Who has decided plays: such a word cannot be.
    assert results(play(game(), [*events[:-1], *raises(5), NO_BET])) == []


@pytest.mark.article("6(2)")
def test_a_result_after_a_loss_is_in_doubt_where_a_hand_more_is_told() -> None:
    events = ante_lost(*raises(2), told(dealer=OPENS, seat_2=PAIR), loss=EventsMissed(1))
    first = only(play(game(), events))
    assert first.outcome["seats"] == {"seat_2": "wins"}
    doubted = [*events, told(seat_5=LOW)]
    assert reasons(play(game(), doubted)) == [say("ante_missing", seat=5)]
    both = play(game(), [*doubted, PLAYS, *raises(5)])[-1]
    assert isinstance(both, Corrected)
    assert both.result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    alone = play(game(), [*doubted, RoundPaid()])[-1]
    assert isinstance(alone, Corrected)
    assert alone.result.outcome["seats"] == {"seat_2": "wins"}


@pytest.mark.article("6(2)", "11(3)")
def test_an_ante_told_while_the_last_round_waited_may_be_of_the_next() -> None:
    """Its opening was lost and is told again by hand: the seat is asked for, not left out."""
    waits: list[Event] = [*packets([2]), EventsMissed(9), *antes(5), BetsOpened(), *antes(2), BetsClosed()]
    dealt: list[Event] = [*FIVES, *raises(2), ALL_HANDS]
    assert [one.void is None for one in results(play(game(), [*waits, *dealt]))] == [False]
    *_, both = results(play(game(), [*waits, *dealt, PLAYS, *raises(5)]))
    assert (both.outcome["seats"], both.settlements) == ({"seat_2": "wins", "seat_5": "loses"}, ())


@pytest.mark.parametrize("loss", [EventsMissed(9), DeviceOnline(continuous=False)])
def test_after_a_loss_hands_and_decisions_may_be_another_rounds(loss: Event) -> None:
    """Whatever was lost between two rounds: the result that was right stands, until the next round begins."""
    whole = [*packets([2, 5]), *raises(2, 5), ALL_HANDS]
    others: list[list[Event]] = [
        [told(dealer=CLOSED_HAND, seat_4=PAIR)],
        [told(dealer=CLOSED_HAND, seat_2=LOW, seat_5=PAIR)],
        [SeatActed(2, "fold"), SeatActed(5, "fold"), BetsOpened()],
        [HandDispensed(5)] * 3,
    ]
    for other in others:
        verdicts = play(game(), [*whole, loss, *other])
        assert not [one for one in verdicts if isinstance(one, Corrected | Suspended)]
        assert only(verdicts).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}


def test_each_seat_that_is_asked_for_is_named() -> None:
    hands = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW, seat_7="JS JC 3C 3D 5C")
    events = ante_lost(*raises(2), hands, loss=EventsMissed(1))
    assert reasons(play(game(), [*events, PLAYS])) == [
        say("ante_missing", seat=5),
        say("ante_missing", seat=7),
    ]
    result = only(play(game(), [*events, PLAYS, SeatActed(7, "ante"), *raises(5, 7)]))
    assert set(result.outcome["seats"]) == {"seat_2", "seat_5", "seat_7"}


@pytest.mark.parametrize("seat", [2, 5])
def test_a_lost_or_wrong_player_never_resolves_wrongly(seat: int) -> None:
    """Who truly plays is not who the table thinks: the decisions betray it."""
    thought: list[Event] = [SeatOpened(2), SeatOpened(5), BetsOpened(), BetsClosed()]
    others = {2: [4, 5], 5: [2, 4]}[seat]
    for true in ([other for other in (2, 5) if other != seat], others, [2, 4, 5]):
        hands = [PAIR, LOW, "JS JC 3C 3D 5C"][: len(true)]
        verdicts = play(game(), [*thought, *shoe(*hands, OPENS), *raises(*true)])
        assert results(verdicts) == []


# ---- repeated facts, late words


def test_repeated_facts_change_nothing() -> None:
    plain = only(play(game(), TWO))
    twice: list[Event] = []
    for event in TWO:
        twice += [event] if isinstance(event, CardDrawn | WagerPlaced) else [event, event]
    verdicts = play(game(), [SeatOpened(2), SeatOpened(2), *twice])
    again = only(verdicts)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    assert (again.outcome, again.winners, again.settlements) == (plain.outcome, plain.winners, plain.settlements)
    assert again.irregularities == ()


@pytest.mark.article("6(2)")
@pytest.mark.parametrize("place", [6, 9, 19, 20, 21])
def test_bets_opened_again_in_the_middle_of_a_sound_round_make_it_wait_for_the_hands(place: int) -> None:
    """A stray press, or the next round: the dealer says which, by the hands or by a void."""
    events = [*TWO[:place], BetsOpened(), *TWO[place:]]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]
    result = only(play(game(), [*events, told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)]))
    assert codes(result) == ["bets_reopened"]
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    part = [*events, told(dealer=OPENS)]
    assert (results(play(game(), part)), view(part).detail["missing"]) == ([], ("seat_2", "seat_5"))
    assert [type(verdict) for verdict in play(game(), [*events, BetsOpened()])[-2:]] == [Voided, Opened]
    assert isinstance(play(game(), [*events, RoundVoided()])[-1], Voided)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (BetsClosed(), "bell_without_round"),
        (CardDrawn("AS"), "card_without_round"),
        (HandDispensed(5), "packet_without_round"),
        (CardUnreadable(), "unreadable_without_round"),
        (CardExposed("dealer"), "card_exposed"),
        (SeatActed(1, "raise"), "decision_without_round"),
        (WagerPlaced(1, "raise", 5), "decision_without_round"),
        (SeatActed(1, "hit"), "no_such_decision"),
        (WagerWithdrawn(1, "ante"), "bet_without_round"),
        (WagerPlaced(1, "tie", 5), "bet_without_round"),
        (told(dealer=OPENS), "hands_without_round"),
        (RoundVoided(), "void_without_round"),
    ],
)
def test_what_comes_without_a_round_is_noted(event: Event, code: str) -> None:
    (note,) = play(game(), [event])
    assert isinstance(note, Noted)
    assert note.irregularity.code == code


@pytest.mark.parametrize("event", [RoundPaid(), EventsMissed(1), ShoeEmptied(), SeatClosed(3), CardJammed("infeed")])
def test_what_needs_no_round_says_nothing(event: Event) -> None:
    assert play(game(), [event]) == []


def test_what_comes_too_early_or_too_late_is_noted_and_decides_nothing() -> None:
    early = only(play(game(), [*TWO[:3], told(dealer=OPENS), CardExposed("seat_2", "8S"), *TWO[3:]]))
    assert codes(early) == ["hands_before_deal", "card_exposed"]
    late = play(game(), [*TWO, CardExposed("seat_2", "8S"), CardExposed("seat_2", "8H")])
    assert [type(verdict) for verdict in late[-3:]] == [Resolved, Noted, Noted]


def test_rounds_are_counted_by_the_day() -> None:
    ruleset = game()
    state = ruleset.start("st-1")
    rounds = []
    for n, day in enumerate((20, 20, 21)):
        for event in [*TWO, RoundPaid()]:
            seen = Envelope(f"e{n}", "felt/1/s/table/st-1/device/d", START.replace(day=day), event)
            state, verdicts = ruleset.apply(state, seen)
            rounds += [verdict.round for verdict in verdicts if isinstance(verdict, Opened)]
    assert rounds == ["st-1:2026-11-20:1", "st-1:2026-11-20:2", "st-1:2026-11-21:1"]


def test_a_prize_the_smallest_chip_cannot_pay_is_rounded_in_the_stated_direction() -> None:
    for rounding, paid in (("down", 7000), ("up", 7050)):
        options = {"smallest_chip": 50, "rounding": rounding, "maximum_prize": 7001}
        result = only(play(game(**options), showdown({1: ROYAL}, OPENS)))
        raised = next(one for one in result.settlements if one.bet == "raise")
        assert (raised.returned, raised.exact) == (200 + paid, "7201")


# ---- rounds that must not be mixed: words of one that are told in the next

HEARTS = "AH KH 9D 8D 7D"  # a dealer who opens
DEALT = ("2H 3D 5C 7S 9C", HEARTS)


def alone(*, amount: int = 100) -> list[Event]:
    """Seat 2 plays, and the bell has rung."""
    return [BetsOpened(), *antes(2, amount=amount), BetsClosed()]


def heard(*, shuffler: bool) -> list[Event]:
    """A round before, whose cards were told."""
    if shuffler:
        return [*packets([2]), *raises(2), told(dealer=OPENS, seat_2=PAIR), RoundPaid()]
    return [*alone(), *shoe(PAIR, OPENS), *raises(2), RoundPaid()]


LATE_HANDS = [told(seat_2=ROYAL), told(dealer=CLOSED_HAND, seat_2=ROYAL), told(dealer="7H")]


@pytest.mark.article("6(8)", "7(1)", "7(2)")
@pytest.mark.parametrize("late", LATE_HANDS)
def test_hands_told_between_the_bell_and_the_first_card_are_not_those_of_the_new_round(late: Event) -> None:
    """A late correction of the round before; it was paid as a royal flush, 10200 for 200."""
    by_shoe = play(game(), [*heard(shuffler=False), *alone(), late, *shoe(*DEALT), *raises(2)])
    result = results(by_shoe)[-1]
    assert not any(isinstance(verdict, Suspended) for verdict in by_shoe)
    assert (codes(result), result.outcome["seats"]) == (["hands_before_deal"], {"seat_2": "loses"})
    assert result.outcome["hands"]["seat_2"] == tuple(DEALT[0].split())
    dealt: list[Event] = [HandDispensed(5), HandDispensed(5)]
    by_packets = [*heard(shuffler=True), *alone(), late, *dealt, *raises(2)]
    assert len(results(play(game(), by_packets))) == 1
    assert (view(by_packets).phase, view(by_packets).detail["missing"]) == ("showdown", ("dealer",))
    right = results(play(game(), [*by_packets, told(dealer=HEARTS, seat_2=DEALT[0])]))[-1]
    assert (codes(right), right.outcome["seats"]) == (["hands_before_deal"], {"seat_2": "loses"})


@pytest.mark.article("7(1)", "7(2)")
@pytest.mark.parametrize("late", LATE_HANDS)
@pytest.mark.parametrize("dealt", [shoe(*DEALT), [HandDispensed(5), HandDispensed(5)]])
def test_hands_told_before_the_first_card_of_a_table_that_told_none_yet_are_dropped(
    dealt: list[Event], late: Event
) -> None:
    """Until a card is told it may be a table without a device, where hands are entered whole."""
    events = [*alone(), late, *dealt, *raises(2)]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]
    assert view(events).detail["open"] == ()
    result = only(play(game(), [*events, told(dealer=HEARTS, seat_2=DEALT[0])]))
    assert (result.void, result.outcome["seats"]) == (None, {"seat_2": "loses"})


@pytest.mark.article("7(1)")
def test_no_card_is_in_two_hands_of_which_one_was_told() -> None:
    dealt = shoe(LOW, PAIR, OPENS)
    verdicts = play(game(), [BetsOpened(), *antes(2, 3), BetsClosed(), told(seat_2=PAIR), *dealt, *raises(2, 3)])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]
    # A hand without a bet that was named beside them leaves it unknown whose the shoe's cards are.
    named = [*TWO[:20], DealCorrected({"seat_4": (), "seat_2": tuple(ROYAL.split())}), *TWO[20:], told(dealer=OPENS)]
    assert view(named).detail["missing"] == ("seat_2", "seat_5")
    # Whatever way it came there: it is looked for before each result.
    state, _ = run(game(), TWO[:-1])
    assert state.position.deal is not None
    mixed = msgspec.structs.replace(state.position.deal, told={"seat_2": ("3H", "8H", "6D", "4C", "2C")})
    position = msgspec.structs.replace(state.position, deal=mixed)
    _, ends = game().apply(msgspec.structs.replace(state, position=position), script(TWO)[-1])
    assert [type(verdict) for verdict in ends] == [Suspended]


def test_a_table_that_tells_no_cards_is_told_the_hands_whole() -> None:
    """Before the decisions or after them, in one round and in the next, whatever equipment the house deals from."""
    hands = told(dealer=OPENS, seat_2=PAIR)
    orders: list[list[Event]] = [
        *([hands, *raises(2)], [*raises(2), hands], [told(seat_2=PAIR), *raises(2), told(dealer=OPENS)]),
    ]
    for acts in orders:
        for dealing in ("either", "shoe", "shuffler"):
            verdicts = play(game(dealing=dealing), [*alone(), *acts, RoundPaid(), *alone(), *acts])
            assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved] * 2


@pytest.mark.parametrize("shuffler", [False, True])
def test_a_deal_that_is_not_heard_any_more_waits_for_the_hands(shuffler: bool) -> None:
    """One word before the first card is a late one. Two say that the device is dumb: the round is held, not lost."""
    hands = told(dealer=OPENS, seat_2=PAIR)
    acts: list[list[Event]] = [[*raises(2), *raises(2)], [*raises(2), hands], [hands, hands], [CardExposed("2")] * 2]
    for words in acts:
        events = [*heard(shuffler=shuffler), *alone(), *words]
        assert len(results(play(game(), events))) == 1
        assert view(events).phase == "suspended"
        dumb = [*events, *raises(2), hands]
        assert results(play(game(), dumb))[-1].outcome["seats"] == {"seat_2": "wins"}
        # Then nobody waits for its cards any more.
        after = play(game(), [*dumb, RoundPaid(), *alone(), *raises(2), hands])
        assert [type(verdict) for verdict in after[-3:]] == [Opened, Closed, Resolved]
    # A void before the first card says nothing of the device.
    void = [*heard(shuffler=shuffler), *alone(), RoundVoided(), *alone(), SeatActed(2, "fold")]
    assert len(results(play(game(), void))) == 2


@pytest.mark.article("6(5)", "6(7)")
def test_decisions_of_a_deal_that_is_not_heard_are_those_of_the_round() -> None:
    """All packets were lost: what two seats have decided is told once, and who folds by mistake is asked again."""
    hands = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
    bets: list[Event] = [BetsOpened(), *antes(2, 5), BetsClosed()]
    for acts, fates in (
        (raises(2, 5), {"seat_2": "wins", "seat_5": "loses"}),
        ([SeatActed(2, "fold"), *raises(5)], {"seat_2": "folded", "seat_5": "loses"}),
    ):
        events = [*heard(shuffler=True), *bets, *acts]
        assert isinstance(play(game(), events)[-1], Suspended)
        assert results(play(game(), [*events, hands]))[-1].outcome["seats"] == fates
        # It is proven only afterwards that packets are missing: the result stays.
        after = play(game(), [*events, hands, RoundPaid(), EventsMissed(3)])
        assert [type(verdict) for verdict in after[-2:]] == [Suspended, Resolved]
    both = [*heard(shuffler=True), *bets, SeatActed(2, "fold"), *raises(2, 5), hands]
    assert len(results(play(game(), both))) == 1
    assert results(play(game(), [*both, *raises(2)]))[-1].outcome["seats"]["seat_2"] == "wins"


@pytest.mark.article("11(1)", "11(2)")
def test_a_card_seen_before_the_first_card_is_not_one_of_the_two() -> None:
    seen = CardExposed("seat_2", "8S")
    befores: list[list[Event]] = [[], heard(shuffler=False)]
    for before in befores:
        events = [*before, *alone(), seen, *shoe(*DEALT), CardExposed("seat_2", "3D"), *raises(2)]
        result = results(play(game(), events))[-1]
        assert (result.void, codes(result)) == (None, ["card_exposed"] * 2)
        assert result.outcome["seats"] == {"seat_2": "loses"}
        dealers: list[Event] = [CardExposed("dealer", "8S"), *shoe(*DEALT)]
        assert view([*before, *alone(), *dealers, *raises(2)]).phase == "resolved"
        assert view([*before, *alone(), CardExposed("dealer", "8S"), *shoe(*DEALT[:1])]).detail["open"] == ()
    # Where no cards are told, two that were seen are two.
    assert_void(only(play(game(), [*alone(), seen, CardExposed("seat_2", "8H")])), "two_cards_exposed", "11(1)")


@pytest.mark.article("6(5)", "6(8)")
@pytest.mark.parametrize(
    "late",
    [
        told(seat_2=ROYAL),
        told(dealer=CLOSED_HAND, seat_2=ROYAL),
        told(dealer="3D AH KH 6S 4S", seat_2="2H AS KS QS 9C"),  # by chance with the cards that came first
    ],
)
@pytest.mark.parametrize("place", [1, 2, 4, 10])
def test_hands_told_before_the_first_decision_are_told_again(late: Event, place: int) -> None:
    """Nobody knows them while the cards go out, nor before somebody has decided: a correction of the round before."""
    by_shoe = [*alone(), *shoe(*DEALT)[:place], late, *shoe(*DEALT)[place:], *raises(2)]
    packs: list[Event] = [HandDispensed(5), HandDispensed(5)]
    by_packets = [*alone(), *packs[:place], late, *packs[place:], *raises(2)]
    lost = [*alone(), *shoe(*DEALT)[:place], EventsMissed(1), late, *raises(2)]
    for events in (by_shoe, by_packets, lost):
        doubts = [Suspended, Suspended] if events is lost else [Suspended]  # for the loss, and for the hands
        assert [type(verdict) for verdict in play(game(), events)] == [Opened, Closed, *doubts]
        right = only(play(game(), [*events, told(dealer=HEARTS, seat_2=DEALT[0])]))
        assert right.outcome["seats"] == {"seat_2": "loses"}


def test_hands_of_the_cards_that_the_shoe_gave_may_be_told_before_the_decisions() -> None:
    """One card was lost, or two were laid in the wrong order: they are those that lie there."""
    swapped = told(dealer=OPENS, seat_2=LOW, seat_5=PAIR)
    for dealt in (TWO[5:20], [*TWO[5:9], *TWO[10:20]]):
        events = [*TWO[:5], *dealt, swapped, *TWO[20:]]
        assert only(play(game(), events)).outcome["seats"] == {"seat_2": "loses", "seat_5": "wins"}


@pytest.mark.article("6(5)", "6(7)")
@pytest.mark.parametrize(
    "stray", [SeatActed(2, "fold"), SeatActed(2, "raise"), WagerPlaced(2, "raise", 1000), WagerPlaced(2, "raise", 10)]
)
@pytest.mark.parametrize("shuffler", [False, True])
def test_a_decision_between_the_bell_and_the_first_card_is_none(shuffler: bool, stray: Event) -> None:
    """A fold of the round before, pressed once more, lost 500 before a card was dealt: they were a royal flush."""
    dealt: list[Event] = [HandDispensed(5), HandDispensed(5)] if shuffler else shoe(ROYAL, HEARTS)
    hands: list[Event] = [told(dealer=HEARTS, seat_2=ROYAL)] if shuffler else []
    befores: list[list[Event]] = [heard(shuffler=shuffler), []]
    for before in befores:
        if stray == SeatActed(2, "fold") and not before:
            continue  # that ends a round of one player: see the next test
        events = [*before, *alone(amount=500), stray, *dealt]
        assert view(events).phase == "deciding"
        verdicts = play(game(), [*events, *raises(2), *hands])
        assert not any(isinstance(verdict, Suspended) for verdict in verdicts)
        result = results(verdicts)[-1]
        assert returned(result) == {(2, "ante"): 1000, (2, "raise"): 51000}
        noted = [note.law for note in result.irregularities]
        # Chips that are no raise yet, where no cards were told before, lie there when the seat raises.
        part = not before and stray == WagerPlaced(2, "raise", 10)
        assert noted == [cited("6(6)") if part else cited("6(5)")]


@pytest.mark.parametrize("amount", [1000, 10])
def test_chips_before_the_first_card_do_not_hold_the_round_however_often_they_are_moved(amount: int) -> None:
    moved: list[Event] = [WagerPlaced(2, "raise", amount), WagerWithdrawn(2, "raise"), WagerPlaced(2, "raise", amount)]
    events = [*heard(shuffler=False), *alone(amount=500), *moved, *shoe(ROYAL, HEARTS), *raises(2)]
    assert returned(results(play(game(), events))[-1])[2, "raise"] == 51000


@pytest.mark.article("6(5)")
@pytest.mark.parametrize("card", [*shoe(ROYAL, HEARTS)[:1], HandDispensed(5), CardUnreadable()])
def test_a_card_after_a_result_without_cards_puts_it_in_doubt(card: Event) -> None:
    """The first round of a table: whether its cards are told nobody can know before the first."""
    rest: list[Event] = [] if isinstance(card, HandDispensed) else shoe(ROYAL, HEARTS)[1:]
    early = [*alone(amount=500), SeatActed(2, "fold")]
    assert only(play(game(), early)).outcome["seats"] == {"seat_2": "folded"}
    events = [*early, card, *rest, *raises(2)]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Suspended]
    assert view(events).detail["raised"] == (2,)
    # A payment does not bring the first result back: it was given before the cards.
    paid = play(game(), [*events, RoundPaid()])
    assert paid == verdicts
    last = play(game(), [*events, told(dealer=HEARTS, seat_2=ROYAL)])[-1]
    assert isinstance(last, Corrected)
    assert returned(last.result) == {(2, "ante"): 1000, (2, "raise"): 51000}
    opened = play(game(), [*events, RoundPaid(), BetsOpened()])
    assert [type(verdict) for verdict in opened[-2:]] == [Corrected, Opened]
    # Nor where another decision has put the first result in doubt already.
    doubted = play(game(), [*early, *raises(2), card, *rest, *raises(2), RoundPaid()])
    assert [type(verdict) for verdict in doubted] == [Opened, Closed, Resolved, Suspended, Suspended]
    # Not where it was told late, nor after the payment, nor where hands were told because cards were lost.
    assert isinstance(play(game(), [*early, msgspec.structs.replace(card, overtaken=900)])[-1], Noted)
    assert isinstance(play(game(), [*early, RoundPaid(), card])[-1], Noted)
    held = [*alone(), EventsMissed(1), *raises(2), told(dealer=OPENS, seat_2=PAIR)]
    assert isinstance(play(game(), [*held, card])[-1], Noted)


ANTES_OF_TWO: list[Event] = [WagerPlaced(1, "ante", 100), WagerPlaced(2, "ante", 500)]


@pytest.mark.article("6(2)", "11(1)")
@pytest.mark.parametrize(
    "again",
    [
        antes(1, 2),
        [SeatActed(1, "ante", amount=100), SeatActed(2, "ante", amount=100)],
        [*jackpot(1), *antes(1, 2)],
    ],
)
@pytest.mark.parametrize("shuffler", [False, True])
def test_bets_opened_over_an_undecided_round_do_not_mix_it_with_the_next(again: list[Event], shuffler: bool) -> None:
    """The decision of seat 2 was never told; round 1 was resolved with the hands of round 2, and 1500 were lost."""
    dealt: list[Event] = [HandDispensed(5)] * 3 if shuffler else []
    hands = told(dealer=OPENS, seat_1=PAIR, seat_2=LOW)
    first = [BetsOpened(), *ANTES_OF_TWO, BetsClosed(), *dealt, *raises(1)]
    verdicts = play(game(), [*first, BetsOpened(), *again, BetsClosed(), *dealt, *raises(1, 2), hands])
    assert [type(verdict) for verdict in verdicts] == [
        *(Opened, Closed, Suspended, Voided, Opened, Closed, Resolved),
    ]
    void, second = results(verdicts)
    assert void.void == Void(say("bets_reopened_round"), "returned", "carried")
    assert returned(void) == {(1, "ante"): 100, (2, "ante"): 500, (1, "raise"): 200}
    assert second.outcome["seats"] == {"seat_1": "wins", "seat_2": "loses"}
    assert (returned(second)[1, "raise"], returned(second)[2, "ante"], codes(second)) == (400, 0, [])


def test_bets_opened_over_an_undecided_round_of_open_seats() -> None:
    """No ante is told: the bell, or a card where none is due, says that the next round was begun."""
    seats: list[Event] = [SeatOpened(2), SeatOpened(5), BetsOpened()]
    first = [*seats, BetsClosed(), *shoe(PAIR, LOW, OPENS), *raises(2), BetsOpened()]
    bells: list[list[Event]] = [[BetsClosed()], []]
    for bell in bells:
        verdicts = play(game(), [*first, *bell, *shoe(LOW, PAIR, OPENS), *raises(2, 5)])
        assert [type(verdict) for verdict in verdicts] == [
            *(Opened, Closed, Suspended, Voided, Opened, Closed, Resolved),
        ]
        assert results(verdicts)[-1].outcome["seats"] == {"seat_2": "loses", "seat_5": "wins"}
    # The dealer has said by the hands that it was a stray press: then a late bet is one, and no other round.
    stray = [*TWO[:9], BetsOpened(), *TWO[9:-1], told(dealer=OPENS, seat_2=PAIR, seat_5=LOW), *antes(3), TWO[-1]]
    assert codes(only(play(game(), stray))) == ["bets_reopened", "late_bet"]


@pytest.mark.article("6(2)")
def test_bets_opened_again_before_the_first_card_cost_the_amounts() -> None:
    """No hand is dealt, so no two rounds can be mixed; but nobody knows what was laid since."""
    events = [*TWO[:5], BetsOpened(), WagerPlaced(5, "ante", 300), BetsClosed(), *TWO[5:]]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    result = only(verdicts)
    assert (codes(result), result.settlements) == (["bets_reopened", "late_bet"], ())
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}


def test_a_payment_that_was_told_late_settles_no_doubt() -> None:
    late = RoundPaid(overtaken=500)
    doubts: list[Event] = [SeatActed(2, "fold"), DealCorrected({})]
    for doubt in doubts:
        events = [*TWO, doubt]
        verdicts = play(game(), events)
        assert play(game(), [*events, late]) == verdicts
        assert view([*events, late]).phase == "suspended"
        assert isinstance(play(game(), [*events, late, RoundPaid()])[-1], Corrected)
    # It may be the payment of the round before: it makes no doubt either, nor does it end the round.
    assert [type(one) for one in play(game(), [*TWO[:-1], late, TWO[-1], SeatActed(2, "fold")])] == [
        *(Opened, Closed, Resolved, Suspended),
    ]
    assert isinstance(play(game(), [*TWO, late, SeatActed(2, "fold")])[-1], Suspended)


@pytest.mark.article("11(4)")
@pytest.mark.parametrize("fault", [ShuffleFailed(), CardJammed("outfeed")])
def test_a_shuffler_that_fails_after_the_decisions_is_at_its_next_deck(fault: Event) -> None:
    """The last packet was lost: it is dealt and decided, and not in distribution any more."""
    dealt = packets([2, 5])
    hands = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
    proven = [*dealt[:-1], EventsMissed(1)]
    silent = dealt[:-1]
    for events in ([*proven, *raises(2, 5), fault], [*proven, fault, *raises(2, 5)], [*silent, *raises(2, 5), fault]):
        verdicts = play(game(), events)
        assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]
        result = only(play(game(), [*events, hands]))
        assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
        assert_void(only(play(game(), [*events, RoundVoided("no packet")])), "no packet", "11(1)")


@pytest.mark.article("11(1)")
def test_a_void_does_not_say_what_came_back_where_a_raise_is_in_doubt() -> None:
    """Whether the chips of the raise lay there, nobody knows: the ante alone would be half of the truth."""
    for acts in (["raise", "fold"], ["fold", "raise"]):
        events = [*packets([2, 5], *jackpot(2)), *(SeatActed(2, act) for act in acts)]
        state, verdicts = run(game(), [*events, RoundVoided()])
        assert returned(only(verdicts)) == {}
        assert ([one.seat for one in state.position.left], "carried" in state.position.doubts) == ([2], False)
        again = only(play(game(), [*events, SeatActed(2, "raise"), RoundVoided()]))
        assert returned(again) == {(2, "ante"): 100, (2, "raise"): 200, (5, "ante"): 100}
    chips = [*packets([2, 5]), WagerPlaced(2, "raise", 200), SeatActed(2, "fold"), RoundVoided()]
    assert returned(only(play(game(), chips))) == {(2, "ante"): 100, (2, "raise"): 200, (5, "ante"): 100}


@pytest.mark.article("6(5)")
def test_a_decision_after_the_payment_is_noted_and_voids_nothing() -> None:
    paids: list[list[Event]] = [[RoundPaid()], [RoundPaid(), RoundPaid()], [SeatActed(2, "fold"), RoundPaid()]]
    for paid in paids:
        before = play(game(), [*TWO, *paid])
        after = play(game(), [*TWO, *paid, SeatActed(2, "fold"), WagerPlaced(2, "raise", 200), BetsOpened()])
        assert after[: len(before)] == before
        note, opened = after[len(before) :]
        assert isinstance(note, Noted)
        assert (note.irregularity.code, note.irregularity.law) == ("decision_without_round", cited("6(5)"))
        assert isinstance(opened, Opened)
        # A correction may still be told, and a void declared.
        assert isinstance(play(game(), [*TWO, *paid, told(seat_2="JS JC 3C 3D 5C")])[-1], Corrected)
        assert isinstance(play(game(), [*TWO, *paid, RoundVoided()])[-1], Corrected)


# ---- what a change of the rules, a stray press or a late card must not cost


@pytest.mark.article("7(1)", "7(2)")
def test_a_card_after_a_round_that_had_its_cards_is_noted() -> None:
    by_shoe: list[Event] = [*TWO[:8], CardExposed("seat_2", "8S"), *TWO[8:]]
    by_packets: list[Event] = [*packets([2, 5]), *raises(2, 5), told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)]
    for night in (by_shoe, by_packets):
        for late in (CardDrawn("AS"), HandDispensed(5), CardUnreadable()):
            verdicts = play(game(), [*night, late, RoundPaid(), BetsOpened()])
            assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Noted, Opened]
        # Its cards are those of a table that tells them: in the next round they are waited for.
        late_hands = [*night, RoundPaid(), *alone(), told(seat_2=ROYAL), *shoe(*DEALT), *raises(2)]
        assert codes(results(play(game(), late_hands))[-1]) == ["hands_before_deal"]


DECISIONS = say("do_tell_all")


@pytest.mark.article("6(5)")
@pytest.mark.parametrize("card", [CardDrawn("2C"), HandDispensed(5), CardUnreadable()])
def test_a_card_after_a_result_asks_for_the_decisions_again(card: Event) -> None:
    """They were taken away; the hands alone were told in vain, and nothing said why."""
    hands = told(dealer=OPENS, seat_2=PAIR)
    events = [*alone(), *raises(2), hands, card]
    verdicts = play(game(), events)
    assert isinstance(verdicts[-1], Suspended)
    assert verdicts[-1].remedy == DECISIONS
    early = play(game(), [*events, hands, hands])
    assert isinstance(early[-1], Suspended)
    assert (early[-1].reason, early[-1].remedy) == (say("hands_early"), DECISIONS)
    assert len(early) == len(verdicts) + 1  # said once
    for words in ([*raises(2), hands], [hands, *raises(2), hands]):
        last = play(game(), [*events, *words])[-1]
        assert isinstance(last, Corrected)
        assert last.result.outcome["seats"] == {"seat_2": "wins"}
        assert returned(last.result) == {(2, "ante"): 200, (2, "raise"): 400}


@pytest.mark.article("6(5)")
def test_hands_that_are_told_too_early_ask_for_the_decisions() -> None:
    """Whether they make the doubt, or come to one that waits for hands."""
    hands = told(dealer=HEARTS, seat_2=DEALT[0])
    dealt: list[Event] = [HandDispensed(5)] * 2
    firsts: list[list[Event]] = [
        [*dealt, hands],
        [*dealt, EventsMissed(1), hands],
        [hands, *dealt],
        [hands, *shoe(LOW)],
    ]
    for first in firsts:
        said = [one for one in play(game(), [*alone(), *first]) if isinstance(one, Suspended)][-1]
        assert (said.reason, said.remedy) == (say("hands_early"), DECISIONS)
        assert isinstance(play(game(), [*alone(), *first, *raises(2), hands])[-1], Resolved)


@pytest.mark.article("6(6)", "11(1)")
def test_what_lies_on_a_raise_is_not_lost_with_a_decision_that_came_too_early() -> None:
    """A void gave 100 back of the 300 that lay there."""
    chips: list[Event] = [WagerPlaced(2, "raise", 200)]
    whole = {(2, "ante"): 100, (2, "raise"): 200}
    ends: list[list[Event]] = [[RoundVoided()], [WagerPlaced(2, "raise", 200), RoundVoided()]]
    for end in ends:
        events = [*alone(), *chips, *shoe(*DEALT)[:9], *end]
        assert returned(only(play(game(), events))) == whole
    part: list[Event] = [*alone(), WagerPlaced(2, "raise", 50), *shoe(*DEALT), RoundVoided()]
    assert returned(only(play(game(), part))) == {(2, "ante"): 100, (2, "raise"): 50}
    # Where no chips were told, or less than a raise, nobody knows what lay there, until it is told again.
    hands = told(dealer=OPENS, seat_2=PAIR)
    unknown: list[list[Event]] = [
        [*raises(2), *shoe(*DEALT)[:3]],
        [WagerPlaced(2, "raise", 50), *raises(2), *shoe(*DEALT)],
        [*raises(2), SeatActed(2, "fold"), *shoe(*DEALT)],
        [*raises(2), hands, CardDrawn("2C")],
    ]
    for first in unknown:
        void = play(game(), [*alone(), *first, RoundVoided()])[-1]
        assert isinstance(void, Voided | Corrected)
        assert (void.result.void is None, returned(void.result)) == (False, {})
    opened = play(game(), [*alone(), *unknown[-1], BetsOpened()])[-2]
    assert isinstance(opened, Corrected)
    assert returned(opened.result) == {}
    again = [*alone(), *raises(2), *shoe(*DEALT)[:9], *raises(2), RoundVoided()]
    assert returned(only(play(game(), again))) == whole
    folded = [*alone(), *raises(2), HandDispensed(5), HandDispensed(5), SeatActed(2, "fold")]
    assert only(play(game(), folded)).outcome["seats"] == {"seat_2": "folded"}


@pytest.mark.article("6(2)")
def test_the_bell_of_a_stray_opening_in_the_deal_voids_nothing() -> None:
    """The cards of the round are still due: the press was for the bell, which was told too."""
    seats: list[Event] = [SeatOpened(2), SeatOpened(5), BetsOpened(), BetsClosed()]
    by_shoe, by_packets = shoe(PAIR, LOW, OPENS), [HandDispensed(5)] * 3
    hands = told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)
    for dealt, place in ((by_shoe, 7), (by_packets, 1)):
        events = [*seats, *dealt[:place], BetsOpened(), BetsClosed(), *dealt[place:], *raises(2, 5)]
        verdicts = play(game(), events)
        assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]
        assert only(play(game(), [*events, hands])).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
        # After the last card it is the next round's.
        late = play(game(), [*seats, *dealt, BetsOpened(), BetsClosed()])
        assert [type(verdict) for verdict in late[-3:]] == [Voided, Opened, Closed]


@pytest.mark.article("11(4)")
@pytest.mark.parametrize("fault", [ShuffleFailed(), CardJammed("outfeed")])
def test_a_fault_of_the_shuffler_in_a_held_deal_is_kept_as_evidence(fault: Event) -> None:
    dealt = packets([2, 5])
    events = [*dealt[:-2], EventsMissed(1), fault, RoundVoided()]
    result = only(play(game(), events))
    assert codes(result) == ["shuffler_failed"]
    assert result.irregularities[0].law == cited("11(4)")
    assert result.irregularities[0].event in result.evidence
    # Where all packets are out it is at its next deck.
    assert codes(only(play(game(), [*dealt, EventsMissed(1), fault, RoundVoided()]))) == []


@pytest.mark.article("2(1)", "6(1)")
@pytest.mark.parametrize(
    ("event", "code"),
    [
        (WagerPlaced(50, "ante", 100), "no_such_seat"),
        (SeatActed(50, "ante"), "no_such_seat"),
        (SeatActed(2, "ante", hand=2), "one_hand_only"),
    ],
)
def test_a_bet_that_cannot_be_is_not_the_next_rounds(event: Event, code: str) -> None:
    events = [*TWO[:9], BetsOpened(), event, *TWO[9:], told(dealer=OPENS, seat_2=PAIR, seat_5=LOW)]
    verdicts = play(game(), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended, Resolved]
    assert codes(only(verdicts)) == ["bets_reopened", code]


@pytest.mark.article("7(1)")
def test_the_open_card_told_before_it_is_drawn_leaves_the_shoe_to_be_believed() -> None:
    shown = told(dealer="7H")
    for place in (9, len(TWO) - 4, len(TWO) - 3):
        events = [*TWO[:place], shown, *TWO[place:]]
        assert view(events[:-2]).detail["open"] == ("7H",)
        assert view(events[:-2]).phase == "deciding"
        verdicts = play(game(), events)
        assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
        assert only(verdicts).outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    wrong = play(game(), [*TWO[:-3], told(dealer="6H"), *TWO[-3:]])
    assert [type(verdict) for verdict in wrong] == [Opened, Closed, Suspended]


@pytest.mark.article("7(1)", "11(2)")
def test_the_dealers_last_card_seen_just_before_it_is_drawn_is_no_exposure() -> None:
    last = len(TWO) - 3
    seen = [*TWO[:last], CardExposed("dealer", "7H"), TWO[last]]
    assert view(seen).detail["open"] == ("7H",)
    assert "exposed" not in view(seen).detail
    assert only(play(game(), [*seen, *TWO[-2:]])).irregularities == ()
    one_ = only(play(game(), [*seen, CardExposed("dealer", "7H"), CardExposed("seat_5", "3H"), *TWO[-2:]]))
    assert (one_.void, codes(one_)) == (None, ["card_exposed"])
    before = [*TWO[:8], CardExposed("seat_5", "3H"), *TWO[8:last], CardExposed("dealer", "7H"), *TWO[last:]]
    assert codes(only(play(game(), before))) == ["card_exposed"]
    two = [*seen, CardExposed("seat_5", "3H"), CardExposed("seat_2", "8S")]
    assert_void(only(play(game(), two)), "two_cards_exposed", "11(1)")
    # Another of his, or two of them, are exposures; one that does not come is a contradiction.
    assert codes(only(play(game(), [*TWO[:last], CardExposed("dealer", "AD"), *TWO[last:]]))) == ["card_exposed"]
    both = [*TWO[:last], CardExposed("dealer", "AD"), CardExposed("dealer", "7H")]
    assert_void(only(play(game(), both)), "two_cards_exposed", "11(1)")
    other = play(game(), [*TWO[:last], CardExposed("dealer", "6H"), *TWO[last:]])
    assert [type(verdict) for verdict in other] == [Opened, Closed, Suspended]


# ---- what lies face down is seen nowhere


def faces(shown: Any) -> set[str]:
    """All cards that stand anywhere in it."""
    text = msgspec.json.encode(shown).decode()
    return {card for card in DECK if f'"{card}"' in text or f" {card}" in text or f"{card} " in text}


@settings(max_examples=50)
@given(
    st.permutations(DECK),
    st.sets(st.integers(1, 7), min_size=1),
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from([*DOUBTS, CardExposed("dealer"), RoundVoided()])), max_size=2
    ),
    st.data(),
)
def test_no_card_that_lies_face_down_is_ever_shown(
    deck: list[str], seats: set[int], between: list[tuple[int, Event]], data: st.DataObject
) -> None:
    order = sorted(seats)
    events: list[Event] = [BetsOpened(), *antes(*order), *jackpot(*order), BetsClosed()]
    events += [CardDrawn(card) for card in deck[: 5 * (len(order) + 1)]]
    events += [SeatActed(seat, data.draw(st.sampled_from(("raise", "fold")))) for seat in order]
    for place, event in between:
        events.insert(place, event)
    ruleset = game()
    state = ruleset.start("t-1")
    dealt = len(order) + 1
    open_card = deck[5 * dealt - 1]
    for seen in script(events):
        state, verdicts = ruleset.apply(state, seen)
        shown = ruleset.view(state)
        ended = [one.result for one in verdicts if isinstance(one, Resolved)]
        if shown.phase != "resolved":
            assert faces(shown) <= {open_card}
        for verdict in verdicts:
            if not isinstance(verdict, Resolved):
                assert faces(verdict) <= {open_card}
        for result in ended:
            hidden = {
                card
                for place, seat in enumerate(order)
                for card in deck[place : 5 * dealt : dealt]
                if f"seat_{seat}" not in result.outcome["hands"]
            }
            assert not faces(result) & hidden
            assert not faces(ruleset.view(state)) & hidden
            for seat in order:
                fate = result.outcome["seats"][f"seat_{seat}"]
                won = any(seat in one.among for one in result.jackpots)
                assert (f"seat_{seat}" in result.outcome["hands"]) == (fate in ("wins", "loses") or won)


def test_the_last_card_of_a_deal_is_not_shown_while_it_may_be_somebodys() -> None:
    """Seat 7 plays too, and nobody told: the card after which the deal seems complete is a player's."""
    deal = [CardDrawn(card) for card in DECK[:20]]
    events = [BetsOpened(), *antes(2, 5), BetsClosed(), *deal]
    for end in range(len(events) + 1):
        assert faces(view(events[:end])) == set()
    assert view(events).phase == "suspended"


def test_hands_told_before_the_showdown_are_not_shown_either() -> None:
    events = [*packets([2, 5]), told(dealer=OPENS, seat_2=PAIR), SeatActed(2, "raise")]
    assert faces(view(events)) == set()


# ---- options


@pytest.mark.parametrize(
    ("given_options", "says"),
    [
        ({"bets_offered": ["ante", "raise", "tie"]}, "art. 5 has no bet 'tie'"),
        ({"bets_offered": ["ante"]}, "art. 6(2), (5)"),
        ({"bets_offered": ["raise", "jackpot"]}, "art. 6(2), (5)"),
        ({"bets_offered": ["ante", "raise"], "folded_jackpot": "kept"}, "art. 10(1)"),
        ({"royal_flush_pays": 49}, "50..100"),
        ({"royal_flush_pays": 101}, "50..100"),
        ({"maximum_prize": -1}, "must be at least 0"),
        ({"dealing": "hand"}, "either | shoe | shuffler"),
        ({"tie_break": "full"}, "no option 'tie_break'"),
    ],
)
def test_what_the_text_excludes_is_refused_with_its_article(given_options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(StudPoker, given_options)
    assert says in str(refused.value)
    assert next(reversed(given_options)) in str(refused.value)


# ---- any stream of events

SEATS = st.integers(1, 8)
CARDS = st.sampled_from(DECK)
HANDS = st.dictionaries(
    st.sampled_from(("dealer", "seat_1", "2", "seat_3", "banker")), st.lists(CARDS, max_size=6).map(tuple), max_size=4
)
ANY = st.one_of(
    st.builds(CardDrawn, CARDS, st.sampled_from((None, "up", "down"))),
    st.builds(
        SeatActed,
        SEATS,
        st.sampled_from(("raise", "fold", "ante", "hit")),
        st.integers(1, 2),
        st.sampled_from((0, 200)),
    ),
    st.builds(WagerPlaced, SEATS, st.sampled_from(("ante", "jackpot", "raise", "tie")), st.sampled_from((100, 200))),
    st.builds(WagerWithdrawn, SEATS, st.sampled_from(("ante", "jackpot", "raise")), st.sampled_from((0, 100))),
    st.builds(HandDispensed, st.sampled_from((5, 5, 5, 4))),
    st.builds(DealCorrected, HANDS),
    st.builds(CardExposed, st.sampled_from(("dealer", "seat_1", "3", "board")), st.none() | CARDS),
    st.builds(SeatOpened, SEATS) | st.builds(SeatClosed, SEATS),
    st.sampled_from((BetsOpened(), BetsClosed(), RoundPaid(), RoundVoided(), CardUnreadable(), EventsMissed(1))),
    st.sampled_from(
        (ShuffleFailed(), CardJammed("outfeed"), ShoeStarted(1), ShoeEmptied(), DeviceOnline(continuous=False))
    ),
)
WHOLE: list[list[Event]] = [
    TWO,
    showdown({1: FULL, 2: LOW, 3: ROYAL}, DEALER_LOW, *jackpot(1, 3), fold=[2]),
    [*packets([1, 3], *jackpot(1)), *raises(1), SeatActed(3, "fold"), told(dealer=OPENS, seat_1=PAIR), RoundPaid()],
    [SeatOpened(1), SeatOpened(3), BetsOpened(), BetsClosed(), *shoe(PAIR, LOW, OPENS), *raises(1, 3)],
]


@st.composite
def nights(draw: st.DrawFn) -> list[Event]:
    """Rounds with cuts, repetitions and anything between."""
    night: list[Event] = []
    for _ in range(draw(st.integers(1, 4))):
        part = list(draw(st.sampled_from(WHOLE)))
        for _ in range(draw(st.integers(0, 3))):
            place = draw(st.integers(0, len(part) - 1))
            match draw(st.sampled_from(("cut", "repeat", "insert"))):
                case "cut":
                    part = part[:place] or part
                case "repeat":
                    part.insert(place, part[place])
                case _:
                    part.insert(place, draw(ANY))
        night += part
    return night


@settings(max_examples=at_length(25, 400))
@given(nights() | st.lists(ANY, max_size=60))
def test_any_night(night: list[Event]) -> None:
    """Never raises; each round ends once; the state survives being written down; settlements add up."""
    ruleset = game()
    state = ruleset.start("t-1")
    begun: list[str] = []
    ended: list[str] = []
    for seen in script(night):
        kept = msgspec.json.decode(msgspec.json.encode(state), type=StudPokerState)
        assert kept == state
        again = ruleset.apply(kept, seen)
        state, verdicts = ruleset.apply(state, seen)
        assert again == (state, verdicts)
        assert msgspec.json.encode(ruleset.view(state))
        assert len(msgspec.json.encode(state)) < 60_000
        for verdict in verdicts:
            match verdict:
                case Opened(round=round_):
                    begun.append(round_)
                case Resolved(result=result) | Voided(result=result):
                    ended.append(result.round)
                    check(result)
                case Corrected(result=result):
                    assert result.round in ended
                    check(result)
                case _:
                    pass
    assert ended == begun[: len(ended)]
    assert len(begun) - len(ended) == (state.open is not None and state.open.result is None)


def check(result: Result) -> None:
    """What a result says must fit together."""
    wins = {(win.seat, win.bet): Fraction(win.pays) for win in result.winners}
    backs = {(push.seat, push.bet) for push in result.pushes if isinstance(push, Push)}
    assert not wins.keys() & backs
    for one in result.settlements:
        key = (one.seat, one.bet)
        if result.void is not None:
            assert one.returned == one.stake
            assert one.bet != "jackpot" or key in backs  # carried, but for one without an ante
        else:
            assert one.returned == (one.stake * (1 + wins[key]) if key in wins else one.stake * (key in backs))
    antes_ = {one.seat: one.stake for one in result.settlements if one.bet == "ante"}
    for one in result.settlements:
        if one.bet == "raise" and one.seat in antes_ and result.void is None:
            assert one.stake == 2 * antes_[one.seat]
    if result.void is None:
        assert {int(hand[-1]) for hand, fate in result.outcome["seats"].items() if fate == "wins"} <= {
            win.seat for win in result.winners
        }
        cards = [card for hand in result.outcome["hands"].values() for card in hand]
        assert len(cards) == len(set(cards))


@settings(max_examples=at_length(25, 400))
@given(st.permutations(DECK), st.sets(st.integers(1, 7), min_size=1, max_size=7), st.data())
def test_an_event_lost_and_proven_lost_never_gives_a_wrong_result(
    deck: list[str], seats: set[int], data: st.DataObject
) -> None:
    """Whatever one event is missing, and wherever its loss is told after it: the truth, or no result at all."""
    order = sorted(seats)
    events: list[Event] = [BetsOpened(), *antes(*order), *jackpot(*order[:2]), BetsClosed()]
    events += [CardDrawn(card) for card in deck[: 5 * (len(order) + 1)]]
    events += [SeatActed(seat, data.draw(st.sampled_from(("raise", "fold")))) for seat in order]
    truth = only(play(game(), events))
    lost = data.draw(st.integers(0, len(events) - 1))
    proven = data.draw(st.integers(lost, len(events) - 1))
    loss = data.draw(st.sampled_from(DOUBTS[1:]))
    for result in results(play(game(), [*events[:lost], *events[lost + 1 : proven + 1], loss, *events[proven + 1 :]])):
        if result.void is None:
            assert (result.winners, result.pushes) == (truth.winners, truth.pushes)
            assert result.outcome["seats"] == truth.outcome["seats"]
            # A hand that has won a jackpot only is not shown where nobody knows who has bet on it.
            assert result.outcome["hands"].items() <= truth.outcome["hands"].items()
            assert {(one.seat, one.bet, one.returned) for one in result.settlements} <= {
                (one.seat, one.bet, one.returned) for one in truth.settlements
            }


@settings(max_examples=at_length(25, 400))
@given(st.permutations(DECK), st.integers(1, 7), st.data())
def test_a_silently_lost_card_or_decision_gives_no_result(deck: list[str], seats: int, data: st.DataObject) -> None:
    order = list(range(1, seats + 1))
    deal: list[Event] = [CardDrawn(card) for card in deck[: 5 * (seats + 1)]]
    events = [BetsOpened(), *antes(*order), BetsClosed(), *deal, *raises(*order)]
    lost = data.draw(st.integers(seats + 2, len(events) - 1))
    assert results(play(game(), [*events[:lost], *events[lost + 1 :]])) == []


# ---- the round that a person means


def named(
    event: DealCorrected | RoundVoided | RoundPaid | CardExposed, events: Sequence[Event], number: int = 1
) -> Any:
    """The event with the id of the round `number` of these events."""
    opened = [verdict.round for verdict in play(game(), events) if isinstance(verdict, Opened)]
    return msgspec.structs.replace(event, round=opened[number - 1])


# Seat 2 raised in the first round; then the rest of it and the next round up to its showdown are lost.
OVER_A_BOUNDARY: list[list[Event]] = [
    [*packets([2, 5]), *raises(2), EventsMissed(20), *raises(5)],
    [*packets([2, 5]), *raises(2), DeviceOnline(continuous=False), *raises(5)],
    [*packets([2, 5]), *raises(2, 5), EventsMissed(3), EventsMissed(3)],
    [BetsOpened(), *antes(2, 5), BetsClosed(), *raises(2, 5), EventsMissed(2)],  # nothing that deals is heard
    [*packets([2, 5]), EventsMissed(3), *raises(2), *antes(2, 5), *raises(5)],  # told before the first decision
    [*packets([2, 5]), *raises(2, 5), EventsMissed(1), BetsClosed()],  # the opening was lost alone
    [*packets([2, 5]), *raises(2, 5), EventsMissed(1), *antes(2, 5)],
    [*packets([2, 5]), *raises(2, 5), EventsMissed(1), HandDispensed(5)],
    [*TWO[:21], EventsMissed(30), *TWO[21:]],
]
OTHERS = told(dealer=CLOSED_HAND.replace("QD", "QS"), seat_2="TS JH 6C 4D 2D", seat_5="TH TC 3C 3D 5C")


@pytest.mark.article("6(8)", "7(2)")
@pytest.mark.parametrize("events", OVER_A_BOUNDARY)
def test_hands_after_a_loss_over_two_rounds_resolve_the_round_that_they_name(events: list[Event]) -> None:
    piece = DealCorrected({"dealer": OTHERS.hands["dealer"]})
    for told_ in ([OTHERS], [OTHERS, OTHERS], [piece, OTHERS]):
        verdicts = play(game(), [*events, *told_])
        assert results(verdicts) == []
        last = verdicts[-1]
        assert isinstance(last, Suspended)
        assert (last.reason, last.remedy) == (say("hands_next_round"), say("do_name_round"))
    mine = only(play(game(), [*events, OTHERS, named(ALL_HANDS, events)]))
    assert mine.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}
    assert only(play(game(), [*events, OTHERS, RoundVoided()])).void is not None
    assert [type(one) for one in play(game(), [*events, OTHERS, BetsOpened()])[-2:]] == [Voided, Opened]


@pytest.mark.article("6(8)")
@pytest.mark.parametrize(
    "events",
    [
        [*packets([2, 5]), *raises(2, 5), EventsMissed(1)],  # an opening and a bell are two
        [*packets([2, 5]), *raises(2, 5), EventsMissed(4)],  # and three packets are missing then, too
        [*packets([2, 5]), DeviceOnline(continuous=False), *raises(2, 5)],  # all that counts came after it
        [*TWO[:21], DeviceOnline(continuous=False), *TWO[21:]],  # the hands are those that the shoe dealt
        [*TWO[:21], EventsMissed(30), *TWO[21:]],
    ],
)
def test_hands_after_a_loss_within_a_round_need_no_name(events: list[Event]) -> None:
    result = only(play(game(), [*events, ALL_HANDS]))
    assert result.outcome["seats"] == {"seat_2": "wins", "seat_5": "loses"}


def test_hands_that_name_the_last_round_correct_it_after_a_loss_too() -> None:
    events = [*packets([2, 5]), *raises(2, 5), ALL_HANDS, EventsMissed(9)]
    assert isinstance(play(game(), [*events, OTHERS])[-1], Noted)
    corrected = play(game(), [*events, named(OTHERS, events)])[-1]
    assert isinstance(corrected, Corrected)
    assert corrected.result.outcome["hands"] == {"dealer": OTHERS.hands["dealer"]}


@pytest.mark.parametrize("word", [RoundVoided("error"), ALL_HANDS, CardExposed("seat_2", "8S")])
def test_a_word_that_names_another_round_is_noted_and_not_used(word: Any) -> None:
    events = [*TWO, RoundPaid(), *packets([2, 5]), *raises(2, 5)]
    before = play(game(), events)
    after = play(game(), [*events, named(word, events, 1)])
    assert after[: len(before)] == before
    assert after[len(before) :] == []  # an irregularity of the open round
    result = results(play(game(), [*events, named(word, events, 1), named(ALL_HANDS, events, 2)]))[-1]
    assert (codes(result), result.round) == (["round_unknown"], before[len(before) - 2].round)  # type: ignore[union-attr]


def test_a_payment_that_names_another_round_ends_no_doubt() -> None:
    events = [*TWO, RoundPaid(), *TWO, SeatActed(2, "fold")]
    assert isinstance(play(game(), [*events, named(RoundPaid(), events, 2)])[-1], Corrected)
    assert play(game(), [*events, named(RoundPaid(), events, 1)]) == play(game(), events)


@pytest.mark.article("6(2)", "6(7)", "11(3)")
@pytest.mark.parametrize("dealt", [[], FIVES[1:]])  # no packet was told, or as many as hands with a known ante
@pytest.mark.parametrize("decided", [[SeatActed(5, "fold")], raises(5)])
def test_a_seat_that_decided_and_has_cards_may_have_laid_an_ante(dealt: list[Event], decided: list[Event]) -> None:
    """Its hand is told with all others at the showdown: that is no word of a hand without a bet."""
    events = [*alone(), *dealt, *raises(2), *decided, ALL_HANDS]
    verdicts = play(game(), events)
    assert results(verdicts) == []
    assert reasons(verdicts)[-1] == say("ante_missing", seat=5)
    plays = only(play(game(), [*events, SeatActed(5, "ante")]))
    assert set(plays.outcome["seats"]) == {"seat_2", "seat_5"}
    dead = only(play(game(), [*events, DealCorrected({"seat_5": ()})]))
    assert set(dead.outcome["seats"]) == {"seat_2"}


@pytest.mark.article("6(2)", "6(7)", "11(3)")
@pytest.mark.parametrize("decided", [[SeatActed(5, "fold")], raises(5)])
@pytest.mark.parametrize(
    "dealt",
    [
        [EventsMissed(1), *FIVES],  # proven after the bell: the ante may have been laid before it
        [HandDispensed(5), msgspec.structs.replace(antes(5)[0], overtaken=8000), *FIVES[1:]],
        FIVES,  # the ante is late, and nothing says so yet
    ],
)
def test_a_seat_whose_ante_is_late_is_not_left_out(dealt: list[Event], decided: list[Event]) -> None:
    events = [*alone(), *dealt, *raises(2), *decided, ALL_HANDS]
    state, verdicts = game().start("t-1"), list[Verdict]()
    for seen in script(events):
        state, new = judge(game(), state, seen)
        verdicts += new
    assert results(verdicts) == []
    assert reasons(verdicts)[-1] == say("ante_missing", seat=5)
