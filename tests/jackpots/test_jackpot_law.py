"""Every jackpot of the law from the cards to the books: bettors, prizes, their order, voids, resets.

Amounts are computed by hand. Half of each bet of 10 feeds the pool and a tenth the reserve.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from jackpot_books import Pit

from daemon.jackpots.book import Refused
from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    DealCorrected,
    Event,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatOpened,
    ShuffleFailed,
    WagerPlaced,
)
from protocols.contract.jackpots import Confirm, PoolTerms, Price, Prize, Reject, SetTerms
from rules.angola.blackjack import Blackjack, BlackjackOptions
from rules.angola.stud_poker import StudPoker as AngolaStudPoker, StudPokerOptions as AngolaStudPokerOptions
from rules.engine.ruleset import Ruleset
from rules.macau.baccarat import Baccarat, BaccaratOptions
from rules.macau.stud_poker import StudPoker, StudPokerOptions

TERMS = PoolTerms(
    seed=100_000,
    visible="1/2",
    hidden="1/10",
    prizes={
        "paradise_straight": Prize(25_000),
        "four_of_a_kind": Prize(5_000),
        "double_pairs": Prize(1_000),
        "three_of_a_kind": Prize(500),
        "single_pair": Prize(10),
        "six_same": Prize(9_000),
        "five_same": Prize(2_000),
        "double_three": Prize(1_500),
        "four_same": Prize(400),
        "three_same": Prize(40),
        "royal_flush": Prize(60_000),
        "straight_flush": Prize(6_000),
        "full_house": Prize(1_500),
        "flush": Prize(700),
        "AA/colour": Prize(300),
    },
)
TIE = "9S 9H TS TD"


def terms(**fields: Any) -> PoolTerms:
    return msgspec.structs.replace(TERMS, **fields)


def bet(seat: int, on: str = "jackpot", amount: int = 10) -> WagerPlaced:
    return WagerPlaced(seat, on, amount)


def drawn(cards: str) -> list[Event]:
    return [CardDrawn(card) for card in cards.split()]


# ---- Macau baccarat, Despacho 55/2004 in the words of 56/2018: arts. 13 and 17


def baccarat(which: Any, pool: PoolTerms = TERMS, *, by_sensors: bool = False, **options: Any) -> Pit:
    ruleset = Baccarat(BaccaratOptions(opening="bell", jackpot=which, **options))
    return Pit(pool, {"b-1": ruleset}, by_sensors=by_sensors)


def coup(cards: str, *bets: Event) -> list[Event]:
    return [BetsOpened(), *bets, BetsClosed(), *drawn(cards)]


def players(*seats: int) -> list[Event]:
    """Seats with a main bet and one on the jackpot."""
    return [one for seat in seats for one in (bet(seat, "player", 100), bet(seat))]


# Three bets feed the pool before it is decided: 100 015.
COUPS = [
    ("17(6)", "A", "AS KS QS JS TS 7H", "royal_flush", 33_338 * 3, 33_338, 1),
    ("17(6)", "B", "KS KH KD KC KS KH", "six_same", 33_338 * 3, 33_338, 1),
    ("17(7)", "A", "AH KS QS JS TS 7H", "paradise_straight", 8_333 * 3, 8_333, 1),
    ("17(8)", "A", "4S 4H 4D 4C", "four_of_a_kind", 1_666 * 3, 1_666, 2),
    ("17(8)", "A", "4S 2S 4H 2H", "double_pairs", 333 * 3, 333, 1),
    ("17(8)", "A", "9S 9H 9D TS", "three_of_a_kind", 166 * 3, 166, 2),
    ("17(8)", "A", "9S 2H 9D 4D", "single_pair", 9, 3, 1),
    ("17(9)", "B", "KS KH KD KC KS 7H", "five_same", 666 * 3, 666, 2),
    ("17(9)", "B", "2S 2H 2D AC AS AH", "double_three", 1_500, 500, 0),
    ("17(9)", "B", "KS KH KD KC 5S 7H", "four_same", 133 * 3, 133, 1),
    ("17(9)", "B", "KS KH KD JC 5S 7H", "three_same", 39, 13, 1),
    ("17(10)", "C", "KS KC KS KC KS KC", "six_same_colour", 33_338 * 3, 33_338, 1),
    ("17(11)", "C", "KS KC KS KC KS KH", "six_same", 3_333 * 3, 3_333, 2),  # a tenth, 10 001, is more than 9 000
    ("13(1) C iii", "C", "KS KC KS KC KS 7H", "five_same", 666 * 3, 666, 2),
    ("17(12)", "C", "2S 2C 2S AC AS AC", "double_three", 1_500, 500, 0),
    ("17(12)", "C", "KS KH KD KC 5S 7H", "four_same", 133 * 3, 133, 1),
    ("17(12)", "C", "KS KH KD JC 5S 7H", "three_same", 39, 13, 1),
]


@pytest.mark.parametrize(("paragraph", "which", "cards", "name", "amount", "each", "odd"), COUPS)
def test_baccarat_pays_each_combination_in_equal_parts(
    paragraph: str, which: str, cards: str, name: str, amount: int, each: int, odd: int
) -> None:
    pit = baccarat(which)
    (win,) = pit.play("b-1", coup(cards, *players(1, 4, 7)))
    assert (win.award.combination, win.amount, win.odd) == (name, amount, odd)
    assert win.shares == ((1, each), (4, each), (7, each))
    assert paragraph.removeprefix("17") in win.award.law or "C(iii)" in win.award.law
    whole = win.award.pays == "pool"
    # After the whole pool it begins again: what is left and the reserve, 3, and the house up to the seed.
    assert pit.shown("visible") == (100_000 if whole else 100_015 - amount,)
    assert pit.shown("hidden") == (0 if whole else 3,)
    assert pit.shown("players") == (-30,)
    assert sum(pit.shown("house")) == (-100_000 - (100_000 - odd - 3) if whole else -100_000)
    pit.pay(win.id)
    assert pit.shown("paid", "players") == (amount, -30)


def test_baccarat_17_7_and_17_11_the_larger_of_the_fixed_amount_and_the_share() -> None:
    """Paradise straight: 25 000 against a tenth of the pool; six of one value: 9 000 against a share of the house."""
    rich = baccarat("A", terms(seed=400_000))
    (win,) = rich.play("b-1", coup("AH KS QS JS TS 7H", *players(1)))
    assert win.amount == 40_000  # a tenth of 400 005, rounded down
    equal = baccarat("A", terms(seed=250_000))
    assert equal.play("b-1", coup("AH KS QS JS TS 7H", *players(1)))[0].amount == 25_000
    quarter = baccarat("C", c_six_share="1/4")
    assert quarter.play("b-1", coup("KS KC KS KC KS KH", *players(1)))[0].amount == 25_001
    whole = baccarat("C", c_six_share="1/1")
    assert whole.play("b-1", coup("KS KC KS KC KS KH", *players(1)))[0].amount == 100_005
    assert whole.book.amount == 100_000  # nothing was left: it begins again


def test_baccarat_13_3_a_bet_on_the_jackpot_stands_beside_a_main_bet_of_a_seat() -> None:
    pit = baccarat("A")
    bets = [bet(3, "player", 100), bet(3), bet(5, "player_pair", 100), bet(5), bet(4, "banker", 100)]
    (win,) = pit.play("b-1", coup("4S 4H 4D 4C", *bets))
    assert win.shares == ((3, 5_000),)
    assert pit.shown("players") == (-10,)


def test_baccarat_nobody_bets_on_the_jackpot_and_it_does_not_fall() -> None:
    pit = baccarat("A")
    assert pit.play("b-1", coup("AS KS QS JS TS 7H", bet(3, "player", 100))) == []
    assert pit.shown("visible") == (100_000,)


def test_baccarat_17_13_an_amount_that_is_not_approved_waits_for_two_people() -> None:
    """The share of 17(7) is known; a fixed amount below it is not the larger of both."""
    pit = baccarat("A", terms(prizes={}))
    (win,) = pit.play("b-1", coup("AH KS QS JS TS 7H", *players(1)))
    assert (win.unpriced, win.amount) == (True, 10_000)
    pit.play("b-1", [RoundPaid()])
    with pytest.raises(Refused, match="the share of the pool is 10000"):
        pit.change(Price(win.id, 9_999, "as announced"))
    pit.change(Price(win.id, 25_000, "as announced"))
    assert (pit.book.wins[0].amount, pit.shown("visible")) == (25_000, (75_005,))


@pytest.mark.parametrize("by_sensors", [False, True])
def test_baccarat_10_the_jackpot_bets_of_a_void_coup_come_back(by_sensors: bool) -> None:
    pit = baccarat("A", by_sensors=by_sensors)
    pit.play("b-1", [*coup("4S 4H", *players(1, 2)), RoundVoided()])
    assert pit.results[-1].void is not None
    assert pit.shown("players", "visible", "hidden", "margin") == (0, 100_000, 0, 0)
    pit.play("b-1", coup(TIE, *players(1)))
    assert pit.shown("players", "visible") == (-10, 100_005)


# ---- Macau stud poker, Despacho 61/2004: art. 10

LOW = "2S 3H 5D 7C 9S"
CLOSED = "AD QD 9H 8C 7H"
ROYAL, ROYAL_H = "AS KS QS JS TS", "AH KH QH JH TH"
STRAIGHT_FLUSH, STRAIGHT_FLUSH_D = "9C 8C 7C 6C 5C", "8D 7D 6D 5D 4D"
FOUR = "2S 2H 2C 2D 8H"
FULL = "3S 3C 3D 4S 4H"
FLUSH = "KC QC JC TC 4C"
DEALERS = "AD QD 9S 9H 7S"
Hands = Mapping[int, str]


def dealt(hands: Hands, dealer: str) -> list[Event]:
    laid = [hands[seat].split() for seat in sorted(hands)] + [dealer.split()]
    return [CardDrawn(cards[turn]) for turn in range(5) for cards in laid]


def stud_round(hands: Hands, dealer: str = DEALERS, *, on: Iterable[int] | None = None, burnt: str = "") -> list[Event]:
    """All lay 100 and raise; `on`: the seats that bet on the jackpot, without it all of them."""
    bets: list[Event] = [bet(seat, "ante", 100) for seat in sorted(hands)]
    bets += [bet(seat) for seat in (sorted(hands) if on is None else on)]
    acts = [SeatActed(seat, "raise") for seat in sorted(hands)]
    return [BetsOpened(), *bets, BetsClosed(), *drawn(burnt), *dealt(hands, dealer), *acts]


def untold_round(hands: Hands, dealer: str = DEALERS, burnt: str = "") -> list[Event]:
    """No bet is told at all."""
    acts = [SeatActed(seat, "raise") for seat in sorted(hands)]
    opened = [SeatOpened(seat) for seat in sorted(hands)]
    return [*opened, BetsOpened(), BetsClosed(), *drawn(burnt), *dealt(hands, dealer), *acts]


def stud(pool: PoolTerms = TERMS, *, by_sensors: bool = False, **options: Any) -> Pit:
    return Pit(pool, {"s-1": StudPoker(StudPokerOptions(**options))}, by_sensors=by_sensors)


def paid(pit: Pit) -> list[tuple[str, tuple[int, ...], int]]:
    """Combination, seats and amount, in the order of payment."""
    return [(one.award.combination, one.award.among, one.amount) for one in pit.book.wins]


def test_stud_10_1_a_bet_on_the_jackpot_asks_for_an_ante() -> None:
    pit = stud()
    pit.play("s-1", stud_round({1: LOW}, CLOSED, on=(1, 2)))
    assert pit.shown("players", "visible") == (-10, 100_005)  # seat 2 has no ante: its chip came back
    assert pit.play("s-1", stud_round({1: FULL, 2: LOW}, CLOSED, on=(2,))) == []


@pytest.mark.parametrize(
    ("item", "hand", "name", "amount"),
    [
        ("10(2)(1)", ROYAL, "royal_flush", 100_005),
        ("10(2)(2)", STRAIGHT_FLUSH_D, "straight_flush", 10_000),
        ("10(2)(3)", FOUR, "four_of_a_kind", 5_000),
        ("10(2)(4)", FULL, "full_house", 1_500),
        ("10(2)(5)", FLUSH, "flush", 700),
    ],
)
def test_stud_10_2_each_combination_and_its_prize(item: str, hand: str, name: str, amount: int) -> None:
    pit = stud()
    (win,) = pit.play("s-1", stud_round({4: hand}, CLOSED))
    assert (win.award.combination, win.amount, win.shares) == (name, amount, ((4, amount),))
    assert win.award.law.endswith(item)
    # 10(8): the pool falls by the prize, and begins again only when nothing is left
    assert pit.book.amount == (100_000 if name == "royal_flush" else 100_005 - amount)


@pytest.mark.parametrize(
    ("hand", "name", "amount"), [(ROYAL, "royal_flush", 60_000), (STRAIGHT_FLUSH_D, "straight_flush", 6_000)]
)
def test_stud_10_2_the_fixed_sum_where_it_is_larger_and_the_house_adds_what_the_pool_lacks(
    hand: str, name: str, amount: int
) -> None:
    pit = stud(terms(seed=2_000))
    (win,) = pit.play("s-1", stud_round({4: hand}, CLOSED))
    assert (win.award.combination, win.amount) == (name, amount)
    # the pool of 2 005 gives all; the reserve of 1 and the house begin it again at 2 000
    assert pit.shown("visible", "hidden", "house") == (2_000, 0, -2_000 - (amount - 2_005) - 1_999)


def test_stud_10_4_prizes_are_paid_from_the_dealers_left() -> None:
    pit = stud()
    pit.play("s-1", stud_round({2: FLUSH, 3: FULL, 6: FOUR}, "AD QD 9S 9H 7S"))
    assert paid(pit) == [("flush", (2,), 700), ("full_house", (3,), 1_500), ("four_of_a_kind", (6,), 5_000)]
    assert pit.book.amount == 100_015 - 7_200


@pytest.mark.parametrize(
    ("seed", "each", "left"),
    [(100_000, 50_005, 100_000), (20_001, 30_000, 20_001), (100_001, 50_005, 100_001)],
)
def test_stud_10_5_royal_flushes_share_the_pool_or_the_fixed_sum(seed: int, each: int, left: int) -> None:
    pit = stud(terms(seed=seed))
    (win,) = pit.play("s-1", stud_round({2: ROYAL_H, 5: ROYAL}, "AD QD 9C 8C 7H"))
    assert win.shares == ((2, each), (5, each))
    assert win.odd == (seed == 100_001)  # 100 011: one coin stays in the pool, which begins again with it
    assert pit.book.amount == left
    first = stud(terms(seed=100_001, odd="first"))
    (win,) = first.play("s-1", stud_round({2: ROYAL_H, 5: ROYAL}, "AD QD 9C 8C 7H"))
    assert (win.shares, win.odd) == (((2, 50_006), (5, 50_005)), 1)


def test_stud_10_6_every_straight_flush_has_its_tenth() -> None:
    pit = stud()
    pit.play("s-1", stud_round({2: STRAIGHT_FLUSH, 5: STRAIGHT_FLUSH_D}, "AS QD 9S 8H 7H"))
    assert paid(pit) == [("straight_flush", (2,), 10_001), ("straight_flush", (5,), 10_001)]
    assert pit.book.amount == 100_010 - 20_002


def test_stud_10_7_straight_flushes_are_paid_before_the_royal_flush() -> None:
    hands = {1: ROYAL, 2: FULL, 4: STRAIGHT_FLUSH, 5: ROYAL_H, 6: STRAIGHT_FLUSH_D, 7: FOUR}
    pit = stud()
    pit.play("s-1", stud_round(hands))
    assert paid(pit) == [
        ("full_house", (2,), 1_500),
        ("straight_flush", (4,), 10_003),
        ("straight_flush", (6,), 10_003),
        ("royal_flush", (1, 5), 80_024),  # 100 030 less the two tenths
        ("four_of_a_kind", (7,), 5_000),
    ]
    # the pool of 100 030 is not enough: the house adds the fixed amounts, 6 500, and begins the pool again (reserve: 6)
    assert pit.shown("visible", "house") == (100_000, -100_000 - 6_500 - 99_994)


def test_stud_10_7_holds_where_no_bet_is_told() -> None:
    pit = stud()
    pit.play("s-1", untold_round({1: ROYAL, 4: STRAIGHT_FLUSH}, DEALERS))
    assert paid(pit) == [("straight_flush", (), 10_000), ("royal_flush", (), 90_000)]


def test_stud_10_8_the_pool_begins_again_when_nothing_is_left() -> None:
    pit = stud(terms(seed=700, prizes={"flush": Prize(705), "full_house": Prize(1)}))
    pit.play("s-1", stud_round({4: FULL}, CLOSED))
    assert pit.book.amount == 704  # below nothing: it goes on
    pit.play("s-1", stud_round({4: FLUSH}, CLOSED))
    assert pit.shown("visible", "hidden") == (704 + 5 - 705, 2)
    pit.change(SetTerms(terms(seed=700, prizes={"flush": Prize(9)}), "lower"))
    pit.play("s-1", stud_round({4: FLUSH}, CLOSED))
    assert pit.shown("visible", "hidden") == (700, 0)  # 4 and 5 less 9: it begins again with the reserve, 3


@pytest.mark.parametrize("by_sensors", [False, True])
@pytest.mark.parametrize("voids", [1, 3])
def test_stud_11_jackpot_bets_of_void_rounds_are_those_of_the_next_one(voids: int, by_sensors: bool) -> None:
    pit = stud(by_sensors=by_sensors)
    events: list[Event] = stud_round({2: FULL, 5: LOW}, CLOSED, on=(2,))
    again = [one for one in events if not (isinstance(one, WagerPlaced) and one.bet == "jackpot")]
    for number in range(voids):
        cut = [*(events if number == 0 else again)][:8]
        pit.play("s-1", [*cut, RoundVoided()])
        assert (pit.results[-1].void, pit.book.wins) != (None, ())
        assert pit.shown("players") == (-10 if by_sensors else 0,)  # by the rules it is counted when it is decided
    pit.play("s-1", again)
    assert paid(pit) == [("full_house", (2,), 1_500)]
    assert pit.shown("players", "visible") == (-10, 100_005 - 1_500)


def test_stud_11_4_a_failed_shuffler_carries_the_jackpot_bets_too() -> None:
    pit = stud(dealing="shuffler")
    opened: list[Event] = [BetsOpened(), bet(2, "ante", 100), bet(2), BetsClosed()]
    pit.play("s-1", [*opened, ShuffleFailed()])
    void = pit.results[-1].void
    assert void is not None
    assert void.jackpot_bets == "carried"


def test_stud_prizes_of_each_holder_are_not_divided_where_the_bettors_are_named_by_a_person() -> None:
    """10(2)(5): a fixed sum for the player; 10(6): a tenth for each; 10(5): royal flushes share."""
    pit = stud()
    flush, straight = pit.play("s-1", untold_round({1: FLUSH, 4: STRAIGHT_FLUSH}, "AS QD 9S 8H 7H"))
    pit.pay(flush.id, 1, 3)
    pit.pay(straight.id, 4, 6)
    flush, straight = pit.book.wins
    assert (flush.amount, flush.shares) == (1_400, ((1, 700), (3, 700)))
    assert (straight.amount, straight.shares) == (20_000, ((4, 10_000), (6, 10_000)))
    assert pit.shown("visible", "paid") == (100_000 - 21_400, 21_400)
    royal = stud()
    (win,) = royal.play("s-1", untold_round({1: ROYAL}, DEALERS))
    royal.pay(win.id, 1, 6)
    assert royal.book.wins[0].shares == ((1, 50_000), (6, 50_000))


def test_a_prize_of_each_holder_that_the_pool_has_not_comes_from_the_house() -> None:
    pit = stud(terms(seed=1_000))
    (win,) = pit.play("s-1", untold_round({1: FLUSH}, DEALERS))
    pit.order(Confirm("ana", win.id, (1, 3)))
    assert pit.shown("visible", "house", "pending") == (1_000, -2_400, 1_400)


# ---- Angola blackjack, Decreto Executivo 261/22: art. 7

BLACKJACK: dict[str, Any] = {
    "jackpot": "automatic",
    "jackpot_bet": 10,
    "jackpot_seed": 100_000,
    "jackpot_prizes": ("AAAA/suit=pool", "AAAA=1/2", "777/suit=1/10", "AA/colour=fixed"),
}


def blackjack(pool: PoolTerms = TERMS, *, by_sensors: bool = False, **options: Any) -> Pit:
    return Pit(pool, {"j-1": Blackjack(BlackjackOptions(**BLACKJACK | options))}, by_sensors=by_sensors)


def act(seat: int, action: str, hand: int = 1) -> Event:
    return SeatActed(seat, action, hand)


def blackjack_round(
    hands: Hands, *then: Event | Sequence[Event], bank: str = "7H TD", on: Iterable[int] | None = None
) -> list[Event]:
    first, second = bank.split()
    laid = [hands[seat].split() for seat in sorted(hands)]
    cards = [*(one[0] for one in laid), first, *(one[1] for one in laid), second]
    bets = [bet(seat, "main", 100) for seat in sorted(hands)]
    bets += [bet(seat) for seat in (sorted(hands) if on is None else on)]
    more = [one for part in then for one in ([part] if not isinstance(part, Sequence) else part)]
    return [BetsOpened(), *bets, BetsClosed(), *drawn(" ".join(cards)), *more]


def test_blackjack_7_6_a_share_is_not_a_missing_amount() -> None:
    """The house defines combinations as a fixed amount or as a part of the pool; nobody has to price a part."""
    pit = blackjack()
    hand = blackjack_round({2: "7C 7C"}, act(2, "hit"), drawn("7C"))
    (win,) = pit.play("j-1", hand)
    assert (win.award.combination, win.amount, win.unpriced) == ("777/suit", 10_000, False)
    pit.pay(win.id)
    assert pit.shown("visible", "paid") == (90_005, 10_000)


def test_blackjack_7_8_and_7_10_one_chip_of_those_who_bet_on_their_hand() -> None:
    pit = blackjack()
    hands = blackjack_round({1: "AS AC", 2: "TS 9C"}, act(1, "stand"), act(2, "stand"), on=(1, 2, 3))
    hands.insert(1, bet(1))  # a second chip of seat 1 on the jackpot
    pit.play("j-1", hands)
    assert pit.shown("players") == (-10,)  # seat 1 lays two chips and seat 3 has no bet: both come back
    assert pit.book.wins == ()


def test_blackjack_7_13_the_smallest_prize_first_and_the_rest_of_the_pool_is_divided() -> None:
    hands = {1: "AS AS", 2: "7C 7C", 3: "AH AD", 4: "AD AD", 5: "7D 7D"}
    then = [act(1, "split"), *drawn("AS AS"), act(2, "hit"), *drawn("7C"), act(3, "stand")]
    then += [act(4, "split"), *drawn("AD AD"), act(5, "hit"), *drawn("7D")]
    pit = blackjack()
    pit.play("j-1", blackjack_round(hands, then))
    assert paid(pit) == [
        ("AA/colour", (3,), 300),
        ("777/suit", (2,), 10_002),  # a tenth of 100 025 each
        ("777/suit", (5,), 10_002),
        ("AAAA/suit", (1, 4), 79_720),  # 79 721 are left: one coin stays
    ]
    assert pit.book.wins[-1].shares == ((1, 39_860), (4, 39_860))
    assert pit.shown("visible", "hidden") == (100_000, 0)


def test_blackjack_void_rounds_return_the_chips_on_the_jackpot() -> None:
    for by_sensors in (False, True):
        pit = blackjack(by_sensors=by_sensors)
        pit.play("j-1", [*blackjack_round({1: "AS AC"}), RoundVoided()])
        assert pit.results[-1].void is not None
        assert pit.shown("players", "visible", "hidden", "margin") == (0, 100_000, 0, 0)


def test_blackjack_prizes_of_holders_that_a_person_names_are_not_divided() -> None:
    pit = blackjack()
    seats: list[Event] = [SeatOpened(1), SeatOpened(2)]
    events = blackjack_round({1: "AS AC", 2: "AH AD"}, act(1, "stand"), act(2, "stand"), on=())
    untold = [one for one in events if not isinstance(one, WagerPlaced)]
    (win,) = pit.play("j-1", [*seats, *untold])
    pit.pay(win.id, 1, 2)
    assert pit.book.wins[0].shares == ((1, 300), (2, 300))


# ---- Angola stud poker: art. 9


def angola(pool: PoolTerms = TERMS, *, by_sensors: bool = False, **options: Any) -> Pit:
    return Pit(pool, {"a-1": AngolaStudPoker(AngolaStudPokerOptions(**options))}, by_sensors=by_sensors)


@pytest.mark.parametrize(
    ("hand", "name", "amount"),
    [
        (ROYAL, "royal_flush", 100_005),
        (STRAIGHT_FLUSH_D, "straight_flush", 10_000),
        (FOUR, "four_of_a_kind", 5_000),
        (FULL, "full_house", 1_500),
        (FLUSH, "flush", 700),
    ],
)
@pytest.mark.parametrize("bank", [CLOSED, "AD KD 9H 8C 7H"])
def test_angola_stud_9_11_paid_whatever_the_bank_holds(hand: str, name: str, amount: int, bank: str) -> None:
    pit = angola()
    (win,) = pit.play("a-1", stud_round({4: hand}, bank, burnt="3H"))
    assert (win.award.combination, win.amount, win.unpriced) == (name, amount, False)
    assert pit.book.amount == (100_000 if name == "royal_flush" else 100_005 - amount)


def test_angola_stud_9_14_c_straight_flushes_divide_a_tenth_even_where_a_fixed_amount_is_configured() -> None:
    pit = angola(terms(prizes={"straight_flush": Prize(50_000)}))
    events = stud_round({2: STRAIGHT_FLUSH, 5: STRAIGHT_FLUSH_D}, "AS QD 9S 8H 7H", burnt="2H")
    (win,) = pit.play("a-1", events)
    assert (win.amount, win.shares, win.odd) == (10_000, ((2, 5_000), (5, 5_000)), 1)
    assert pit.book.amount == 90_010


def test_angola_stud_9_14_the_smallest_first_the_rest_to_the_royal_flushes() -> None:
    hands = {1: ROYAL, 2: FULL, 4: STRAIGHT_FLUSH, 5: ROYAL_H, 6: STRAIGHT_FLUSH_D, 7: FOUR}
    pit = angola()
    pit.play("a-1", stud_round(hands, burnt="TC"))
    assert paid(pit) == [
        ("full_house", (2,), 1_500),
        ("four_of_a_kind", (7,), 5_000),
        ("straight_flush", (4, 6), 10_002),  # a tenth of 100 030, one coin stays
        ("royal_flush", (1, 5), 83_528),  # all that is left
    ]
    assert pit.shown("visible", "hidden") == (100_000, 0)


def test_angola_stud_9_14_a_pool_that_is_too_small_leaves_the_royal_flush_nothing() -> None:
    """The smaller prizes are paid first, by the house where the pool lacks it; the royal flush has the rest."""
    pit = angola(terms(seed=6_000))
    pit.play("a-1", stud_round({1: ROYAL, 2: FULL, 7: FOUR}, burnt="TC"))
    assert [amount for _, _, amount in paid(pit)] == [1_500, 5_000, 0]
    assert pit.shown("visible", "house") == (6_000, -6_000 - 485 - 5_997)


def test_angola_stud_9_21_and_9_30_bets_without_an_ante_and_of_void_rounds_come_back() -> None:
    pit = angola()
    pit.play("a-1", stud_round({1: LOW}, CLOSED, on=(1, 2), burnt="2D"))
    assert pit.shown("players") == (-10,)
    for by_sensors in (False, True):
        pit = angola(by_sensors=by_sensors)
        pit.play("a-1", [*stud_round({1: LOW, 2: FULL}, CLOSED, burnt="2D")[:9], RoundVoided()])
        assert pit.results[-1].void is not None
        assert pit.shown("players", "visible", "hidden", "margin") == (0, 100_000, 0, 0)


# ---- corrected results, before and after the confirmation and the payment


def corrected(pit: Pit, hand: str) -> None:
    pit.play("s-1", [DealCorrected({"dealer": tuple(CLOSED.split()), "seat_4": tuple(hand.split())})])


@pytest.mark.parametrize("state", ["pending", "confirmed", "paid"])
def test_a_corrected_result_that_names_the_win_again_leaves_it(state: str) -> None:
    pit = stud()
    (win,) = pit.play("s-1", stud_round({4: FLUSH}, CLOSED))
    if state != "pending":
        pit.order(Confirm("ana", win.id))
    if state == "paid":
        pit.pay_only(win.id)
    before = pit.shown("visible", "house", "paid")
    corrected(pit, "KC QC JC TC 5C")  # another flush
    assert pit.amounts() == [("flush", 700, state)]
    assert pit.shown("visible", "house", "paid") == before


@pytest.mark.parametrize("state", ["pending", "confirmed", "paid"])
def test_new_terms_do_not_change_a_win_that_a_corrected_result_names_again(state: str) -> None:
    pit = stud()
    (win,) = pit.play("s-1", stud_round({4: FLUSH}, CLOSED))
    if state != "pending":
        pit.order(Confirm("ana", win.id))
    if state == "paid":
        pit.pay_only(win.id)
    pit.change(SetTerms(terms(prizes={"flush": Prize(900)}), "approved"))
    corrected(pit, "KC QC JC TC 5C")
    assert pit.amounts() == [("flush", 700, state)]


def test_a_priced_win_and_one_with_odd_coins_are_the_same_in_a_corrected_result() -> None:
    pit = stud(terms(prizes={}))
    (win,) = pit.play("s-1", stud_round({4: FLUSH}, CLOSED))
    pit.change(Price(win.id, 800, "as announced"))
    pit.pay(win.id)
    corrected(pit, "KC QC JC TC 5C")
    assert pit.amounts() == [("flush", 800, "paid")]
    odd = baccarat("B")
    (six,) = odd.play("b-1", coup("KS KH KD KC KS KH"))
    odd.pay(six.id, 1, 2, 3)
    odd.play("b-1", [DealCorrected({"player": ("KS", "KD", "KS"), "banker": ("KH", "KC", "KD")})])
    assert odd.amounts() == [("six_same", 99_999, "paid")]


@pytest.mark.parametrize(
    ("state", "then"),
    [("pending", "reversed"), ("confirmed", "reversed"), ("paid", "contested")],
)
def test_a_corrected_result_without_the_win_reverses_it_until_it_is_paid(state: str, then: str) -> None:
    pit = stud()
    (win,) = pit.play("s-1", stud_round({4: ROYAL}, CLOSED))
    assert pit.shown("visible", "hidden", "house") == (100_000, 0, -199_999)
    if state != "pending":
        pit.order(Confirm("ana", win.id))
    if state == "paid":
        pit.pay_only(win.id)
    corrected(pit, "AS KS QS JS 9S")
    paid_out = 100_005 if state == "paid" else 0
    flush = ("flush", 700, "pending")
    assert pit.amounts() == [("royal_flush", 100_005, then), flush]
    if state == "paid":  # no money moves by itself; the new win comes from the new pool
        assert pit.shown("visible", "paid") == (99_300, paid_out)
    else:  # as if the royal flush had never been: pool, reserve and house
        assert pit.shown("visible", "hidden", "house") == (100_005 - 700, 1, -100_000)
    corrected(pit, ROYAL)
    state_of = {win: state for win, _, state in pit.amounts() if state != "reversed"}
    assert state_of == {"royal_flush": "paid" if state == "paid" else "pending"}


def test_a_void_after_the_payment_contests_the_win_and_carries_the_bet() -> None:
    pit = stud()
    (win,) = pit.play("s-1", stud_round({4: FLUSH}, CLOSED))
    pit.pay(win.id)
    pit.play("s-1", [RoundVoided()])
    assert pit.amounts() == [("flush", 700, "contested")]
    assert pit.shown("players", "visible", "paid") == (0, 100_000 - 700, 700)


def test_a_rejected_win_gives_reserve_and_seed_back() -> None:
    pit = stud()
    (win,) = pit.play("s-1", stud_round({4: ROYAL}, CLOSED))
    pit.change(Reject(win.id, "a card was not of the deck"))
    assert pit.shown("visible", "hidden", "house") == (100_005, 1, -100_000)


# ---- linked tables of different games


def test_two_games_of_one_pool_have_prizes_of_their_own() -> None:
    prizes = {"four_of_a_kind": Prize(5_000), "A.four_of_a_kind": Prize(8_000)}
    tables: dict[str, Ruleset[Any]] = {
        "b-1": Baccarat(BaccaratOptions(opening="bell", jackpot="A")),
        "s-1": StudPoker(StudPokerOptions()),
        "j-1": Blackjack(BlackjackOptions(**BLACKJACK)),
    }
    pit = Pit(terms(prizes=prizes), tables)
    pit.play("s-1", stud_round({4: FOUR}, CLOSED))
    pit.play("b-1", coup("4S 4H 4D 4C", bet(1, "player", 100), bet(1, "jackpot", 50)))
    pit.play("j-1", blackjack_round({2: "7C 7C"}, act(2, "hit"), drawn("7C")))
    # bets of 10, 50 and 10; a tenth of the pool as it then stands: 100 000 + 5 - 5 000 + 25 - 8 000 + 5
    assert [amount for _, amount, _ in pit.amounts()] == [5_000, 8_000, 8_703]
    assert pit.shown("players") == (-70,)
