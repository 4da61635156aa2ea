"""Chemin de fer, Angola: the coup, the bank's life and the faults, with numbers at their edges."""

import random
from itertools import combinations, product
from typing import Any

import pytest
from chemin_hands import CheminTable
from helpers import at_length

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardUnreadable,
    CutCardDrawn,
    EventsMissed,
    HandPassed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    WagerWithdrawn,
)
from protocols.contract.payouts import payout_order
from rules import RULESETS
from rules.angola.chemin_de_fer import CheminDeFer
from rules.engine.rounds import Round
from rules.engine.ruleset import BadOption, Settlement, Win, judge, options_from
from rules.games.baccarat import NO_CARD
from rules.games.cards import points
from rules.games.chemin_bank import rank
from rules.games.chemin_coup import (
    BY_HANDS,
    PRINTED,
    TABLE,
    Count,
    Coup,
    allowed,
    banker_rule,
    best_of,
    count,
    faulty,
    lowest_of,
    next_of,
    punter_rule,
)
from rules.games.chemin_decisions import LARGEST_BANK
from rules.games.chemin_table import Position, punter
from simulators.tables.chemin import by_the_text

LAW = "angola.chemin-de-fer"
WINS = "2S 9D 2H KD"
"""The punter has 4 and the banker 9: the bank wins."""
LOSES = "9S 2D KH 3D"
"""The punter shows 9 against 5."""
TIES = "9S 9D KH KD"


def won(table: CheminTable, *covers: str) -> CheminTable:
    """A coup that the bank wins."""
    table.opens(1000, *(covers or ("2 1000",)))
    table.coup(WINS, "draw")
    return table


def wins(times: int, **options: Any) -> CheminTable:
    table = CheminTable(**options)
    for _ in range(times):
        won(table, f"2 {table.bank.amount or 1000}")
    return table


def lost(table: CheminTable) -> CheminTable:
    table.opens(1000, "3 100" if table.bank.banker != 3 else "4 100")
    table.coup(LOSES, "show")
    return table


# ---- cards and shoe


@pytest.mark.article("12(4)")
def test_six_decks() -> None:
    table = CheminTable()
    table.tell(ShoeStarted(8))
    assert table.noted() == [("wrong_number_of_decks", "12(4)")]
    table.tell(ShoeStarted(6))
    assert len(table.noted()) == 1


@pytest.mark.article("12(5)")
def test_a_damaged_card_asks_for_other_decks() -> None:
    table = CheminTable()
    watched = RULESETS[LAW](table.ruleset.options)
    state = watched.start("t-1")
    table.tell(CardDamaged())
    table.opens(1000)
    said = []
    for seen in table.told:
        state, verdicts = judge(watched, state, seen)
        said += [getattr(one, "irregularity", None) for one in verdicts]
    notes = [one.law for one in said if one is not None]
    round_ = watched.view(state).round
    assert round_
    assert any("12(5)" in law for law in [*notes, *(one.law for one in state.game.open.round.irregularities)])


@pytest.mark.article("12(9)", "12(10)", "12(11)")
def test_ace_one_court_cards_nothing_only_what_exceeds_ten_or_twenty_counts() -> None:
    assert [points([card]) for card in ("AS", "2S", "9S", "TS", "JS", "QS", "KS")] == [1, 2, 9, 0, 0, 0, 0]
    assert [points(hand) for hand in (("5S", "5H"), ("9S", "9H"), ("9S", "9H", "9D"), ("KS", "QS", "TS"))] == [
        0,
        8,
        7,
        0,
    ]


@pytest.mark.article("12(13)")
@pytest.mark.parametrize(
    ("first", "burn", "more"),
    [
        ("KS", "inclusive", 0),
        ("AS", "inclusive", 0),
        ("7S", "inclusive", 6),
        ("TS", "inclusive", 9),
        ("KS", "additional", 0),
        ("AS", "additional", 1),
        ("TS", "additional", 10),
    ],
)
def test_so_many_cards_are_burnt_as_the_first_one_says(first: str, burn: str, more: int) -> None:
    table = CheminTable(burn=burn)
    table.new_shoe(first)
    for left in range(more, 0, -1):
        assert (table.view.phase, table.detail["burn"]) == ("burning", left)
        table.cards("2H")
    assert table.view.phase == "idle"
    table.cards("2H")
    assert table.noted() == [("card_without_round", "12(63)")]


@pytest.mark.article("12(13)")
def test_a_burn_that_is_not_whole_is_noted_at_the_bell() -> None:
    table = CheminTable()
    table.new_shoe("3S 2S")
    table.opens(1000, "2 100")
    table.coup(WINS, "draw")
    assert table.noted() == [("burn_incomplete", "12(13)")]


@pytest.mark.article("12(13)")
def test_after_an_unreadable_first_card_all_cards_before_the_bell_are_burnt() -> None:
    table = CheminTable()
    table.tell(ShoeStarted(6), CardUnreadable())
    table.cards("7H 2H")
    table.opens(1000, "2 100")
    table.cards("3H")
    table.coup(WINS, "draw")
    assert table.noted() == []
    assert table.result.outcome["winner"] == "banker"


@pytest.mark.article("12(14)")
def test_the_coup_of_the_warning_card_is_the_last() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal("2S 9D")
    table.tell(CutCardDrawn())
    table.cards("2H KD")
    table.says("player draw", "banker show", "player show")
    assert table.view.phase == "resolved"
    table.tell(BetsOpened())
    assert table.waits() == "last_coup"
    table.new_shoe()
    table.tell(BetsOpened())
    assert table.view.phase == "betting"


@pytest.mark.article("12(14)")
@pytest.mark.parametrize("opened", [False, True])
def test_a_warning_card_before_the_first_card_leaves_one_coup(opened: bool) -> None:
    table = CheminTable()
    if opened:
        table.opens(1000)
    table.tell(CutCardDrawn())
    table.opens(1000, "2 100")
    table.coup(WINS, "draw")
    table.tell(CutCardDrawn(), BetsOpened())
    assert table.waits() == "last_coup"


@pytest.mark.article("12(107)(d)")
@pytest.mark.parametrize(("cards", "valid"), [(4, False), (5, False), (6, True)])
def test_the_last_coup_needs_six_cards(cards: int, valid: bool) -> None:
    """The shoe is empty after so many cards of the coup."""
    table = CheminTable()
    table.opens(1000, "2 100")
    told = ["2S", "KD", "2H", "KH", "3S", "4S"]
    table.deal(" ".join(told[:4]))
    table.says("player draw", "banker show")
    table.cards(" ".join(told[4:cards]))
    table.tell(ShoeEmptied())
    if valid:
        table.says("player show")
        assert table.result.void is None
    else:
        assert table.result.void is not None
        assert table.result.law[-1].endswith("12(107)(d)")
        assert table.paid == {1: (1000, 1000), 2: (100, 100)}


@pytest.mark.article("12(107)(a)")
def test_a_card_that_leaves_the_shoe_face_up_is_burnt_and_no_bet_goes_back() -> None:
    table = CheminTable()
    table.opens(1000, "2 1000")
    table.deal("2S")
    table.tell(CardDrawn("9C", "up"), WagerWithdrawn(2, "cover", 0))
    table.cards("9D 2H KD")
    table.says("player draw", "banker show", "player show")
    assert ("card_face_up", "12(107)(a)") in table.noted()
    assert ("late_bet", "12(41)") in table.noted()
    assert table.result.outcome["totals"] == {"player": 4, "banker": 9}
    table.opens(1000, "2 100")
    table.deal("2S 9D 5C")
    table.acts("1 fault_107a")
    table.cards("2H KD")
    table.says("player draw", "banker show", "player show")
    assert table.result.outcome["totals"] == {"player": 4, "banker": 9}
    assert ("fault_107a", "12(107)(a)") in table.noted()


# ---- seats and the first bank


@pytest.mark.article("12(3)")
def test_nine_seats_and_standing_players_behind_them() -> None:
    table = CheminTable((1, 9, 11, 29))
    table.tell(SeatOpened(10))
    table.acts("20 bank 1000")
    assert table.noted() == [("no_such_seat", "12(3)")] * 2
    table.tell(SeatOpened(3), SeatOpened(4))
    table.opens(1000, "10 100", "99 100")
    assert table.noted()[2:] == [("no_such_seat", "12(3)")]
    assert table.detail["covered"] == 100


@pytest.mark.article("12(16)")
@pytest.mark.parametrize(("seats", "plays"), [((1, 2, 3), False), ((1, 2, 3, 14), False), ((1, 2, 3, 4), True)])
def test_four_seated_players_at_least(seats: tuple[int, ...], plays: bool) -> None:
    table = CheminTable(seats)
    table.tell(BetsOpened())
    assert table.view.phase == ("betting" if plays else "suspended")
    if not plays:
        assert table.waits() == "too_few_players"
        table.tell(SeatOpened(7), BetsOpened())
        assert table.view.phase == "betting"


@pytest.mark.article("12(29)", "12(30)")
def test_the_first_hand_is_that_of_the_first_seated_player_at_the_right_of_the_dealer() -> None:
    table = CheminTable((13, 7, 3, 5, 9))
    table.tell(BetsOpened())
    assert table.detail["banker"] == 3
    assert table.detail["due"] == {"kind": "decision", "hand": "banker", "seat": 3, "actions": ["bank"]}
    table.acts("3 bank 1000")
    table.covers("3 100")
    assert table.noted() == [("banker_bets", "12(30)")]


@pytest.mark.article("12(21)", "12(95)")
def test_an_absent_player_loses_his_seat_when_the_hand_is_due() -> None:
    table = CheminTable()
    table.tell(BetsOpened())
    table.acts("2 absent")
    assert table.noted() == [("not_the_banker", "12(95)")]
    table.acts("1 absent")
    assert table.detail["banker"] == 2
    assert table.detail["seated"] == [2, 3, 4, 5]
    assert ("seat_lost", "12(95)") in table.noted()
    table.acts("2 bank 1000")
    table.covers("3 100")
    table.coup(WINS, "draw")
    table.acts("2 absent")
    assert table.bank.banker == 2


@pytest.mark.article("12(32)")
def test_a_new_shoe_leaves_the_hand_where_the_last_coup_left_it() -> None:
    table = wins(1)
    table.new_shoe()
    table.tell(BetsOpened())
    assert (table.detail["banker"], table.detail["bank"]) == (1, 1950)
    table = lost(CheminTable())
    table.new_shoe()
    table.tell(BetsOpened())
    assert (table.detail["banker"], table.detail["bank"]) == (2, 0)


@pytest.mark.article("12(33)")
@pytest.mark.parametrize(("bank", "left"), [(2000, 1000), (2001, 1001), (1998, 0)])
def test_who_keeps_the_hand_over_a_new_shoe_may_halve_the_bank(bank: int, left: int) -> None:
    table = CheminTable(percentage=0)
    table.opens(bank, "2 100")
    table.coup(TIES, "show")
    table.acts("1 halve")
    assert table.bank.amount == bank
    table.new_shoe()
    table.acts("1 halve")
    assert table.bank.amount == (left or bank)
    assert table.bank.aside == (bank - left if left else 0)
    table.acts("1 halve")
    assert table.bank.amount == (left or bank)


@pytest.mark.article("12(31)")
def test_a_partner_lays_as_much_again_and_shares_and_decides_nothing() -> None:
    table = CheminTable()
    table.opens(1001)
    table.acts("3 association", "4 association", "1 association")
    assert (table.detail["bank"], table.detail["partner"]) == (2002, 3)
    table.covers("2 1501", "3 100", "2 1500")
    assert ("banker_bets", "12(31)") in table.noted()
    table.coup("2S 9D 2H KD", "draw")
    assert {(one.seat, one.bet): (one.stake, one.returned) for one in table.result.settlements} == {
        (1, "bank"): (1001, 1751),
        (3, "bank"): (1001, 1751),
        (2, "cover"): (1500, 0),
        (1, "percentage"): (38, 0),
        (3, "percentage"): (37, 0),
    }
    assert table.result.law[-2:] == tuple(f"Decreto Executivo 261/22 art. 12({n})" for n in (31, 48))
    table.acts("5 association")
    assert table.noted()[-3:] != []
    assert table.bank.partner == 3
    table.tell(SeatClosed(3))
    assert (table.bank.partner, table.bank.amount) == (0, 1714)


@pytest.mark.article("12(34)")
def test_after_the_third_won_coup_and_each_odd_one_half_may_be_laid_aside() -> None:
    table, may = CheminTable(percentage=0), []
    for _ in range(5):
        won(table, f"2 {table.bank.amount or 1000}")
        may.append("garage" in table.bank.may)
    assert may == [False, False, True, False, True]
    assert table.bank.amount == 32_000
    table.acts("2 garage", "1 garage", "1 garage")
    assert (table.bank.amount, table.bank.aside) == (16_000, 16_000)
    assert [one for one in table.noted() if one[1] == "12(34)"] == [
        ("not_the_banker", "12(34)"),
        ("no_reduction", "12(34)"),
    ]


@pytest.mark.article("12(34)")
def test_ties_do_not_count_and_a_new_banker_counts_anew() -> None:
    table = wins(2, percentage=0)
    table.opens(0, "2 100")
    table.coup(TIES, "show")
    assert (table.bank.won, table.bank.may) == (2, ())
    won(table)
    assert table.bank.won == 3
    lost(table)
    assert (table.bank.banker, table.bank.won) == (2, 0)


@pytest.mark.article("12(35)", "12(39)")
@pytest.mark.parametrize(("amount", "taken"), [(999, False), (1000, True), (2**51 - 1, True), (2**51, False)])
def test_a_bank_has_a_least_amount_and_no_largest(amount: int, taken: bool) -> None:
    """But that a number can hold."""
    table = CheminTable()
    table.tell(BetsOpened())
    table.covers("2 100")
    assert table.noted() == [("bank_not_told", "12(39)")]
    table.acts(f"1 bank {amount}")
    assert (table.detail["bank"] == amount) is taken
    assert (table.noted()[-1][1] == "12(35)") is not taken


@pytest.mark.article("12(39)")
def test_the_bank_is_told_by_the_banker_until_somebody_covers_it() -> None:
    table = CheminTable()
    table.opens(1000)
    table.acts("1 bank 2000", "2 bank 5000")
    assert table.detail["bank"] == 2000
    table.covers("2 100")
    table.acts("1 bank 3000")
    assert table.detail["bank"] == 2000
    assert table.noted() == [("hand_not_due", "12(39)")] * 2


# ---- bets


@pytest.mark.article("12(35)", "12(36)", "12(48)")
def test_a_house_that_chooses_nothing_has_these_minima_and_keeps_nothing() -> None:
    house = CheminDeFer(options_from(CheminDeFer, {})).options
    assert (house.minimum_bank, house.minimum_bet, house.percentage) == (1000, 100, 0)


@pytest.mark.article("12(36)")
@pytest.mark.parametrize(("amount", "taken"), [(99, 0), (100, 100), (150, 0), (200, 200), (1000, 1000)])
def test_bets_are_the_minimum_or_a_multiple(amount: int, taken: int) -> None:
    table = CheminTable()
    table.opens(1000, f"2 {amount}")
    assert table.detail.get("covered", 0) == taken
    assert table.noted() == ([] if taken else [("wrong_multiple", "12(36)")])


@pytest.mark.article("12(36)", "12(46)")
def test_what_is_left_of_the_bank_may_be_less_than_the_minimum() -> None:
    table = CheminTable()
    table.opens(1050, "2 1000", "3 100")
    assert table.detail["covered"] == 1050
    assert table.noted() == [("cover_cut", "12(46)")]


@pytest.mark.article("12(38)", "12(40)", "12(41)")
def test_bets_come_before_the_cards_and_the_bell_closes_them() -> None:
    table = CheminTable()
    table.covers("2 100")
    assert table.noted() == [("bet_without_round", "12(41)")]
    table.opens(1000, "2 100")
    table.tell(BetsClosed())
    table.covers("3 100")
    assert table.noted()[-1] == ("late_bet", "12(41)")
    assert table.detail["covered"] == 100


@pytest.mark.article("12(40)", "12(41)")
def test_no_card_before_the_bets_are_closed() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.cards("2S")
    assert table.waits() == "before_bell"
    table.lay(player="2S 2H KC", banker="9D KD")
    assert table.waits() == "hands_by_law" or table.view.phase == "suspended"
    table.lay(player="2S 2H", banker="9D KD")
    assert table.result.outcome["totals"] == {"player": 4, "banker": 9}


@pytest.mark.article("12(40)")
@pytest.mark.parametrize(("bank", "why"), [(True, "cover_missing"), (False, "bank_missing")])
def test_no_coup_without_bank_or_cover(bank: bool, why: str) -> None:
    table = CheminTable()
    table.tell(BetsOpened())
    if bank:
        table.acts("1 bank 1000")
    table.tell(BetsClosed())
    assert table.waits() == why
    table.tell(BetsOpened())
    assert table.view.phase == "betting"


@pytest.mark.article("12(44)")
def test_chips_on_the_line_play_half_of_their_value() -> None:
    table = CheminTable()
    table.opens(1000, "2 201 half", "2 200 half", "3 100")
    assert table.detail["covered"] == 200
    assert table.noted() == [("line_odd", "12(44)")]
    table.coup(LOSES, "show")
    assert table.paid == {1: (1000, 800), 2: (200, 300), 3: (100, 200)}
    assert any(law.endswith("12(44)") for law in table.result.law)
    assert [*table.result.winners] == [Win("cover", "1"), Win("half", "1/2"), Win("bank", "-1/5")]
    won(table, "3 100", "4 400 half")
    assert table.paid[4] == (400, 200)
    assert [*table.result.winners] == [Win("bank", "3/10"), Win("half", "-1/2")]


@pytest.mark.article("12(31)", "12(46)")
def test_the_result_says_what_comes_back_of_a_bank_that_two_hold_and_nobody_covers_whole() -> None:
    table = CheminTable()
    table.tell(BetsOpened())
    table.acts("1 bank 1000", "5 association")
    table.covers("2 301")
    assert table.noted() == [("wrong_multiple", "12(36)")]
    table.covers("2 300", "3 1700")
    table.coup(LOSES, "show")
    assert table.result.winners == (Win("cover", "1"),)  # a bank that was covered whole is lost whole
    table = CheminTable()
    table.tell(BetsOpened())
    table.acts("1 bank 1001", "5 association")
    table.covers("2 300")
    table.coup(LOSES, "show")
    assert table.paid[1] == (1001, 851)
    assert table.result.winners == (
        Win("cover", "1"),
        Win("bank", "-150/1001", seat=1),
        Win("bank", "-150/1001", seat=5),
    )


@pytest.mark.article("12(46)", "12(59)")
def test_several_cover_the_bank_up_to_it_and_no_further() -> None:
    table = CheminTable()
    table.opens(1000, "2 600", "3 500", "4 100")
    assert table.detail["covered"] == 1000
    assert table.noted() == [("cover_cut", "12(46)"), ("bank_covered", "12(46)")]
    table.tell(WagerWithdrawn(2, "cover", 300))
    assert table.detail["left"] == 300
    table.covers("4 300")
    table.coup(LOSES, "show")
    assert table.paid == {1: (1000, 0), 2: (300, 600), 3: (400, 800), 4: (300, 600)}


@pytest.mark.article("12(46)")
def test_banco_covers_the_whole_bank_and_other_bets_go_back() -> None:
    table = CheminTable()
    table.opens(1000, "2 600", "3 100")
    table.acts("3 banco")
    assert (table.detail["covered"], table.detail["punter"], table.detail["claim"]) == (1000, 3, "banco")
    table.covers("4 100")
    assert table.noted() == [("banco_made", "12(46)")]
    table.coup(WINS, "draw", "stand")
    assert table.paid == {1: (1000, 2000), 3: (1000, 0), 2: (600, 600)} | {1: (50, 0)}
    assert sum(one.returned - one.stake for one in table.result.settlements) == -50


@pytest.mark.article("12(47)")
@pytest.mark.parametrize(
    ("bank", "laid", "left"), [(1000, 400, 0), (1000, 500, 1000), (1000, 900, 1800), (1000, 1000, 0)]
)
def test_a_bank_that_was_not_covered_may_be_reduced_to_twice_its_takings(bank: int, laid: int, left: int) -> None:
    """Not below the least bank, and not where all was covered."""
    table = CheminTable(percentage=0)
    table.opens(bank, f"2 {laid}")
    table.coup(WINS, "draw")
    table.acts("1 reduce")
    assert table.bank.amount == (left or bank + laid)
    assert table.bank.aside == (bank + laid - left if left else 0)
    assert (("no_reduction", "12(47)") in table.noted()) is (left == 0)


@pytest.mark.article("12(47)", "12(48)")
def test_a_bank_is_not_raised_to_twice_its_takings_where_the_house_took_more_than_was_left_uncovered() -> None:
    table = CheminTable()
    table.opens(10_000, "2 9900")
    table.coup(WINS, "draw")
    assert table.bank.amount == 10_000 + 9900 - 495 < 2 * 9900
    assert table.detail.get("may", []) == []
    table.acts("1 reduce")
    assert (table.bank.amount, table.bank.aside) == (19_405, 0)


@pytest.mark.article("12(48)")
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize(("laid", "kept"), [(100, 0), (200, 10), (900, 40), (1000, 50)])
def test_the_house_keeps_its_percentage_of_what_the_bank_wins(laid: int, kept: int, outside: bool) -> None:
    table = CheminTable(smallest_chip=10)
    table.opens(1000)
    if outside:
        table.acts("2 outside", "1 outside")
    table.covers(f"2 {laid}")
    table.coup(WINS, "draw")
    assert table.bank.amount == 1000 + laid - (0 if outside else kept)
    assert table.result.outcome.get("percentage", 0) == kept
    assert [(one.seat, one.stake, one.returned) for one in table.result.settlements if one.bet == "percentage"] == (
        [(1, kept, 0)] if kept else []
    )
    table = lost(table)
    assert "percentage" not in table.result.outcome


# ---- banco: 12(49)-(58)


@pytest.mark.article("12(49)", "12(50)", "12(51)")
def test_seated_players_make_banco_in_order_then_standing_ones() -> None:
    table = CheminTable((1, 2, 3, 4, 5, 12, 13, 23))
    table.opens(1000, "5 1000")
    for seat, holds in ((23, 23), (13, 13), (12, 12), (5, 5), (3, 3), (4, 3), (11, 3), (2, 2)):
        table.acts(f"{seat} banco")
        assert table.detail["punter"] == holds
    assert table.noted() == [("banco_taken", "12(49)")] * 2
    assert [seat for _, _, seat in sorted(rank(seat, 4) for seat in (1, 2, 3, 5, 15, 25, 11, 14, 24))] == [
        *(5, 1, 2, 3, 15, 25, 11, 14, 24)
    ]


@pytest.mark.article("12(49)", "12(51)", "12(56)", "12(61)")
def test_what_gives_way_to_banco_goes_back_and_is_told() -> None:
    table = CheminTable((1, 2, 3, 4, 5, 14))
    table.opens(1000, "2 500", "5 300")
    assert table.detail["laid"] == {"seat_2": 500, "seat_5": 300}
    table.acts("14 banco_with_table 501")
    assert table.detail["laid"] == {"seat_14": 501, "seat_5": 300}  # 499 are left, and 500 is one too many
    table.acts("3 banco")
    assert (table.detail["laid"], table.detail["left"]) == ({"seat_3": 1000}, 0)
    table.coup(TIES, "show")
    back = [one for one in table.result.settlements if one.seat not in (1, 3)]
    assert sorted(back, key=lambda one: one.seat) == [
        *(Settlement(2, "cover", 500, 500), Settlement(5, "cover", 300, 300), Settlement(14, "cover", 501, 501))
    ]
    assert punter(Position(), Round("r")) == 0


@pytest.mark.article("12(53)")
@pytest.mark.parametrize("before", [(), ("1 cards_to",)])
def test_banco_suivi_takes_cards_that_nobody_has_seen_from_any_seat(before: tuple[str, ...]) -> None:
    table = CheminTable()
    table.opens(1000, "3 100")
    table.coup(LOSES, "show")
    assert table.detail["banker"] == 2
    table.opens(1000)
    table.acts("4 banco")
    table.coup(WINS, "draw", "stand")
    table.opens(0, "1 100")
    table.deal(WINS)
    assert table.detail["punter"] == 1
    table.acts(*before, "4 banco_suivi")
    assert table.detail["punter"] == 4


@pytest.mark.article("12(52)")
def test_banco_comes_before_the_cards_but_for_banco_suivi() -> None:
    table = CheminTable()
    table.opens(1000, "2 1000")
    table.tell(BetsClosed())
    table.acts("3 banco", "3 banco_suivi")
    assert table.noted() == [("banco_late", "12(52)"), ("no_suivi", "12(52)")]
    table.cards("2S 9D 2H KD")
    table.says("player draw", "banker show", "player show")
    table.opens()
    table.acts("4 banco")
    table.coup(WINS, "draw", "stand")
    assert table.bank.suivi == 4
    table.opens(0, "2 1000")
    table.deal(WINS)
    table.acts("4 banco_suivi")
    assert (table.detail["punter"], table.detail["covered"]) == (4, table.detail["bank"])
    table.says("player draw", "banker show", "banker stand", "player show")
    assert {one.seat: one.stake for one in table.result.settlements if one.bet == "cover"} == {2: 1000, 4: 3803}
    assert table.paid[2] == (1000, 1000)


@pytest.mark.article("12(52)", "12(53)")
def test_banco_suivi_goes_before_banco_and_ends_after_a_coup_without_it() -> None:
    table = CheminTable()
    table.opens()
    table.acts("4 banco")
    table.coup(WINS, "draw", "stand")
    table.opens()
    table.acts("2 banco", "4 banco_suivi", "3 banco")
    assert table.detail["punter"] == 4
    table.coup(TIES, "show")
    assert table.bank.suivi == 0


@pytest.mark.article("12(53)", "12(54)")
@pytest.mark.parametrize(
    ("before", "gets"),
    [((), True), (("2 looks",), False), (("3 looks",), True), (("2 show",), False)],
)
def test_cards_that_their_punter_has_seen_are_his(before: tuple[str, ...], gets: bool) -> None:
    """Who took up cards that were not his gives them back, unless a word was said."""
    table = CheminTable()
    table.opens()
    table.acts("4 banco")
    table.coup(WINS, "draw", "stand")
    table.opens(0, "2 1000", "3 100")
    table.deal(LOSES)
    table.acts(*before, "4 banco_suivi")
    assert (table.detail["punter"] == 4) is gets
    assert (("banco_late", "12(53)") in table.noted()) is not gets


@pytest.mark.article("12(55)")
def test_banco_suivi_outlasts_a_passed_hand() -> None:
    table = CheminTable()
    table.opens()
    table.acts("4 banco")
    table.coup(WINS, "draw", "stand")
    table.acts("1 pass", "3 take")
    table.opens()
    table.acts("2 banco", "4 banco_suivi")
    assert table.detail["punter"] == 4


@pytest.mark.article("12(56)")
@pytest.mark.parametrize(
    ("bank", "amount", "lies"), [(1001, 0, 501), (1001, 500, 0), (1001, 1001, 1001), (1000, 1100, 0)]
)
def test_banco_with_the_table_is_half_of_the_bank_at_least(bank: int, amount: int, lies: int) -> None:
    table = CheminTable()
    table.opens(bank, "3 1000")
    table.acts(f"12 banco_with_table {amount}")
    if lies:
        assert (table.detail["punter"], table.detail["claim"]) == (12, "table")
        table.covers("4 1000")
        assert table.detail["covered"] == bank
    else:
        assert table.detail["punter"] == 3
        assert table.noted() == [("below_half", "12(56)")]


@pytest.mark.article("12(56)")
def test_bets_that_find_no_room_beside_banco_with_the_table_go_back() -> None:
    table = CheminTable()
    table.opens(1000, "3 300", "4 400", "5 100")
    table.acts("2 banco_with_table 600")
    table.coup(LOSES, "show")
    covers = {one.seat: (one.stake, one.returned) for one in table.result.settlements if one.bet == "cover"}
    assert covers == {2: (600, 1200), 3: (300, 600), 4: (400, 400), 5: (100, 200)}


@pytest.mark.article("12(57)")
def test_seated_goes_before_standing_and_banco_alone_before_banco_with_the_table() -> None:
    table = CheminTable()
    table.opens(1000)
    for told, holds in (
        ("12 banco_with_table", 12),
        ("5 banco_with_table", 5),
        ("13 banco_with_table", 5),
        ("12 banco", 12),
        ("4 banco_with_table", 12),
        ("5 banco", 5),
    ):
        table.acts(told)
        assert table.detail["punter"] == holds, told
    assert table.noted() == [("banco_taken", "12(57)")] * 2


@pytest.mark.article("12(58)")
def test_banco_with_the_table_is_not_repeated_but_as_banco_alone_with_priority() -> None:
    table = CheminTable()
    table.opens(1000)
    table.acts("5 banco_with_table")
    table.coup(WINS, "draw")
    assert table.bank.table == 5
    table.opens()
    table.acts("5 banco_with_table", "2 banco", "5 banco", "3 banco")
    assert table.detail["punter"] == 5
    assert table.noted()[-2:] == [("may_not_claim", "12(58)"), ("banco_taken", "12(49)")]
    table.coup(WINS, "draw", "stand")
    assert table.bank.table == 0


@pytest.mark.article("12(61)", "12(62)")
def test_the_highest_seated_bet_gets_the_cards_equal_ones_by_the_right_of_the_banker() -> None:
    table = CheminTable((1, 2, 3, 4, 5, 12))
    lost(table)
    table.opens(2000, "12 1000")
    assert table.detail["punter"] == 12
    table.covers("5 200")
    assert table.detail["punter"] == 5
    table.covers("1 400")
    assert table.detail["punter"] == 1
    table.covers("4 400")
    assert table.detail["punter"] == 4


@pytest.mark.article("12(96)")
def test_bets_are_settled_from_the_right_of_the_banker() -> None:
    table = lost(CheminTable())
    table.opens(1000, "1 100", "12 100", "5 100", "3 100")
    table.coup(WINS, "draw")
    payout = payout_order(table.result)
    assert [one.seat for one in payout.settlements if one.bet == "cover"] == [3, 5, 1, 12]
    assert payout.law == ("Decreto Executivo 261/22 art. 12(96)",)


@pytest.mark.article("12(102)", "12(106)(e)")
def test_the_dealer_may_give_the_cards_to_another_bet() -> None:
    table = CheminTable()
    table.opens(1000, "2 600", "3 400")
    table.deal(LOSES)
    table.acts("4 cards_to", "3 cards_to")
    assert table.detail["punter"] == 3
    table.says("player show", "banker show")
    assert table.result.outcome["punter"] == 3


# ---- the coup


@pytest.mark.article("12(63)")
def test_two_cards_each_in_turn_the_punter_first() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.tell(BetsClosed())
    for side, card in (("player", "2S"), ("banker", "9D"), ("player", "2H"), ("banker", "KD")):
        assert table.detail["due"]["hand"] == side
        table.acts("2 draw")
        table.cards(card)
    assert table.noted() == [("too_early", "12(63)")] * 4
    table.says("player draw", "banker show", "player show")
    assert table.result.outcome["hands"] == {"player": ("2S", "2H"), "banker": ("9D", "KD")}


@pytest.mark.article("12(65)(a)", "12(65)(b)", "12(65)(c)", "12(65)(d)")
def test_the_punter_draws_below_five_as_he_likes_with_five_and_not_from_six() -> None:
    assert [punter_rule(total) for total in range(10)] == ["draws"] * 5 + ["free"] + ["stands"] * 4
    for total in range(10):
        cards = (f"{total}S" if total > 1 else ("KS", "AS")[total], "2D", "KH", "5D")
        for word in ("draw", "stand"):
            found = count(Coup((*cards, "2S"), (word,), word="stand"))
            drew = len(found.player) == 3
            assert drew is (total < 5 or (total in (5, 8, 9) and word == "draw")), (total, word)
    assert count(Coup(("8S", "2D", "KH", "KD"), ("show",))).winner == "player"


@pytest.mark.article("12(68)(a)", "12(68)(b)", "12(68)(c)", "12(68)(d)")
def test_the_table_of_the_banker() -> None:
    thirds = [*range(10), NO_CARD]
    assert all(banker_rule(total, third) == "draws" for total in range(3) for third in thirds)
    assert all(banker_rule(total, third) == "stands" for total in (7, 8, 9) for third in thirds)
    free = [(total, third) for total in range(10) for third in thirds if banker_rule(total, third) == "free"]
    assert free == [(3, 9), (5, 4)]
    draws = {total: [third for third in thirds if banker_rule(total, third) == "draws"] for total in range(3, 7)}
    assert draws == {
        3: [0, 1, 2, 3, 4, 5, 6, 7, NO_CARD],
        4: [2, 3, 4, 5, 6, 7, NO_CARD],
        5: [5, 6, 7, NO_CARD],
        6: [6, 7],
    }


@pytest.mark.article("12(68)(d)")
def test_each_printed_row_is_the_played_one_without_one_draw() -> None:
    """The print has lost one column of draws and the head 9."""
    for total, printed in PRINTED.items():
        cells, played = printed.split()[0], TABLE[total].split()[0]
        assert (len(cells), len(played)) == (9, 10)
        assert printed[-1] == TABLE[total][-1]
        assert cells in {played[:n] + played[n + 1 :] for n in range(10) if played[n] == "T"}
    lost_columns = [
        n for n in range(10) if all(row[:n] + row[n + 1 : 10] == PRINTED[total][:9] for total, row in TABLE.items())
    ]
    assert lost_columns == [6, 7]  # two equal ones


@pytest.mark.article("12(68)")
def test_nobody_draws_against_a_shown_hand_and_an_eight_or_nine_of_the_banker_ends_it() -> None:
    for mine, his in product((8, 9), range(10)):
        cards = (f"{mine}S", f"{his}D" if his > 1 else ("KD", "AD")[his], "KH", "KC")
        found = count(Coup((*cards,), ("show",)))
        assert (found.natural, found.due, found.totals) == (True, "", (mine, his))
    found = count(Coup(("2S", "8D", "KH", "KC"), ("draw",)))
    assert (found.natural, found.winner) == (True, "banker")


@pytest.mark.article("12(2)")
def test_the_higher_total_wins_and_equal_ones_are_null() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.coup("7S 7D KH KD", "stand")
    assert (table.result.outcome["winner"], table.result.pushes) == ("tie", ("cover", "bank"))
    assert table.paid == {1: (1000, 1000), 2: (100, 100)}
    table.opens(1000, "2 100")
    table.coup("7S 6D KH KD", "stand")
    assert table.paid == {1: (1000, 900), 2: (100, 200)}


@pytest.mark.article("12(69)", "12(70)")
def test_third_cards_lie_open_at_once_and_first_ones_when_they_are_shown() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal("2S KD AH 3D")
    assert table.detail["hands"] == {"player": ["??", "??"], "banker": ["??", "??"]}
    table.says("player draw")
    table.cards("7C")
    assert table.detail["hands"]["player"] == ["??", "??", "7C"]
    table.says("banker show")
    table.cards("4C")
    assert table.detail["hands"] == {"player": ["??", "??", "7C"], "banker": ["KD", "3D", "4C"]}
    assert table.detail["totals"] == {"banker": 7}
    table.says("player show")
    assert table.result.outcome["totals"] == {"player": 0, "banker": 7}


@pytest.mark.article("12(71)")
def test_under_banco_alone_both_draw_as_they_like_but_a_banker_with_nothing() -> None:
    """A punter with 7 draws, a banker with 7 draws; with 0 he has to."""
    table = CheminTable()
    table.opens()
    table.acts("2 banco")
    table.coup("7S 7D KH KD 2C 2H", "draw", "draw")
    assert table.result.outcome["hands"] == {"player": ("7S", "KH", "2C"), "banker": ("7D", "KD", "2H")}
    assert table.result.law[-1].endswith("12(71)")
    table.opens()
    table.acts("2 banco")
    table.coup("2S KD 2H KH 5C", "stand")
    assert table.result.outcome["hands"] == {"player": ("2S", "2H"), "banker": ("KD", "KH", "5C")}


@pytest.mark.article("12(72)", "12(101)")
@pytest.mark.parametrize(
    ("cards", "words", "player", "banker", "burnt"),
    [
        # the punter should have drawn: the card is his, and the banker gets another
        ("2S 3D 2H KD 6C 9C", ("stand",), "2S 2H 6C", "3D KD 9C", ""),
        # he should not have drawn: his card is the banker's by the table, or burnt
        ("6S 3D KH KD 6C TC", ("draw",), "6S KH", "3D KD 6C", "TC"),
        ("6S 6D KH KD 6C TC", ("draw",), "6S KH", "6D KD", "6C TC"),
    ],
)
def test_a_false_draw_is_put_right(cards: str, words: tuple[str, ...], player: str, banker: str, burnt: str) -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    first = cards.split()
    table.deal(" ".join(first[:4]))
    table.says(f"player {words[0]}", "banker show")
    rest = first[4:]
    while table.view.phase != "resolved":
        due = table.detail["due"]
        if due["kind"] == "card":
            table.cards(rest.pop(0))
        else:
            table.acts(f"{due['seat']} show")
    assert table.result.outcome["hands"] == {"player": tuple(player.split()), "banker": tuple(banker.split())}
    assert table.result.outcome.get("burnt", ()) == tuple(burnt.split())
    assert ("false_draw", "12(72)") in table.noted()


@pytest.mark.article("12(76)")
@pytest.mark.parametrize(("seat", "winner"), [(1, "player"), (2, "banker"), (3, "")])
def test_who_throws_a_card_away_loses(seat: int, winner: str) -> None:
    table = CheminTable()
    table.opens(1000, "2 100", "3 100")
    table.deal(WINS)
    table.acts(f"{seat} discarded")
    if winner:
        assert table.result.outcome["winner"] == winner
        assert "totals" not in table.result.outcome
        assert table.result.outcome["hands"]["player"] == ("??", "??")
    else:
        assert table.view.phase == "deciding"
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal(WINS)
    table.acts("1 fault_76")
    assert table.result.law == ("Decreto Executivo 261/22 art. 12(76)",)
    assert table.paid == {1: (1000, 1000), 2: (100, 100)}


@pytest.mark.article("12(103)", "12(105)(b)")
@pytest.mark.parametrize("word", ["by_table", "fault_105b"])
@pytest.mark.parametrize(("cards", "banker"), [("2S 3D KH KD 9C", 3), ("2S 5D KH KD 4C", 5)])
def test_a_banker_by_the_table_draws_where_he_may_choose(word: str, cards: str, banker: int) -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal(" ".join(cards.split()[:4]))
    table.says("player draw", "banker show")
    table.cards(cards.split()[4])
    assert table.detail["due"]["actions"] == ["draw", "stand"]
    table.acts(f"1 {word}")
    assert table.detail["due"]["kind"] == "card"
    table.cards("AS")
    table.says("player show")
    assert table.result.outcome["totals"]["banker"] == banker + 1
    assert table.noted() == ([("fault_105b", "12(105)(b)")] if word == "fault_105b" else [])


@pytest.mark.article("12(68)(d)")
@pytest.mark.parametrize(("word", "total"), [("draw", 4), ("stand", 3)])
def test_a_banker_with_three_against_nine_draws_as_he_likes(word: str, total: int) -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.coup("2S 3D KH KD 9C AS", "draw", word)
    assert table.result.outcome["totals"] == {"player": 1, "banker": total}


# ---- the hand is passed


@pytest.mark.article("12(77)", "12(78)")
def test_a_hand_is_passed_after_a_won_or_tied_coup_and_not_before() -> None:
    table = CheminTable()
    table.opens(1000)
    table.acts("2 pass", "1 pass")
    assert table.bank.banker == 2  # he gives up a hand that has not begun
    assert table.noted() == [("not_the_banker", "12(78)")]
    for cards, word in ((WINS, "draw"), (TIES, "show")):
        table = CheminTable()
        table.opens(1000, "2 1000")
        table.acts("1 pass")
        table.coup(cards, word)
        table.acts("1 pass")
        assert table.detail["offer"]["level"] == table.bank.amount
        table.acts("3 take")
        assert (table.bank.banker, table.bank.won, table.bank.aside) == (3, 0, 0)


@pytest.mark.article("12(78)")
def test_a_lost_coup_moves_the_hand_to_the_right() -> None:
    table = CheminTable((2, 5, 7, 9))
    banks = []
    for _ in range(5):
        table.opens(1000)
        banks.append(table.detail["banker"])
        table.covers(f"{next(seat for seat in (2, 5) if seat != banks[-1])} 100")
        table.coup(LOSES, "show")
    assert banks == [2, 5, 7, 9, 2]


@pytest.mark.article("12(79)", "12(81)", "12(82)")
def test_a_passed_hand_is_taken_at_its_level_in_order_until_cards_are_out() -> None:
    table = wins(1)
    table.acts("3 take")
    assert table.noted() == [("hand_not_due", "12(82)")]
    table.acts("1 pass", "13 take", "4 take", "5 take", "14 take")
    assert (table.bank.banker, table.bank.amount) == (4, 1950)
    assert table.noted()[1:] == [("hand_not_due", "12(82)")] * 2
    table.opens(0, "5 100")
    table.acts("2 take")
    assert (table.detail["banker"], table.detail["bank"]) == (2, 1950)
    table.deal("2S")
    table.acts("3 take")
    assert table.detail["banker"] == 2


@pytest.mark.article("12(82)")
def test_who_takes_the_hand_has_his_own_bets_back() -> None:
    table = wins(1)
    table.acts("1 pass", "4 take")
    table.opens(0, "2 100", "5 300")
    table.acts("2 take")
    table.coup(WINS, "draw")
    covers = {one.seat: (one.stake, one.returned) for one in table.result.settlements if one.bet == "cover"}
    assert covers == {5: (300, 0), 2: (100, 100)}


@pytest.mark.article("12(80)", "12(92)")
def test_after_a_standing_banker_the_hand_is_at_the_right_of_the_last_seated_one() -> None:
    table = wins(1)
    table.acts("1 pass", "14 take")
    table.opens(0, "5 100")
    table.coup(WINS, "draw")
    table.acts("14 pass", "5 take", "2 take")
    assert table.bank.banker == 2
    table = wins(1)
    table.acts("1 pass", "14 take")
    table.opens(0, "5 100")
    table.coup(LOSES, "show")
    assert (table.bank.banker, table.bank.amount) == (2, 0)


@pytest.mark.article("12(81)")
def test_the_passer_keeps_the_hand_where_nobody_takes_it_and_at_the_same_amount() -> None:
    table = wins(3)
    won_before = table.bank.won
    table.acts("1 pass", "1 take")
    assert (table.bank.banker, table.bank.won) == (1, won_before)
    table.acts("5 take")
    assert table.bank.banker == 5


@pytest.mark.article("12(81)", "12(83)", "12(84)", "12(85)")
def test_an_auction_goes_to_the_highest_bid() -> None:
    table = CheminTable((1, 2, 3, 4, 5, 12), auction_base=2000, auction_step=500)
    won(table)
    table.acts("3 bid 2000", "1 pass", "1 auction", "3 bid 1500", "3 bid 2100", "12 bid 2500", "3 bid 2000")
    assert table.noted() == [("no_auction", "12(81)"), ("wrong_bid", "12(83)"), ("wrong_bid", "12(83)")]
    assert table.detail["offer"]["bids"] == {"seat_12": 2500, "seat_3": 2000}
    table.acts("5 bid 2500", "4 bid 2500")
    table.tell(HandPassed(5))
    assert (table.bank.banker, table.bank.amount) == (4, 2500)
    assert table.noted()[-1] == ("hand_not_due", "12(85)")
    table.acts("5 bid 9000")
    assert table.bank.banker == 4


@pytest.mark.article("12(81)")
def test_bids_begin_at_the_least_bank() -> None:
    with pytest.raises(BadOption, match="12\\(81\\)"):
        options_from(CheminDeFer, {"minimum_bank": 1000, "auction_base": 999})


@pytest.mark.article("12(86)")
def test_without_a_bid_the_next_player_takes_the_least_bank_or_leaves() -> None:
    table = wins(1)
    table.acts("1 pass", "1 auction")
    table.tell(HandPassed(0))
    assert (table.bank.banker, table.bank.amount) == (2, 1000)
    table.acts("2 pass")
    assert table.bank.banker == 3
    assert 2 not in table.bank.seats
    assert table.noted() == [("seat_lost", "12(86)")]


@pytest.mark.article("12(87)", "12(90)")
@pytest.mark.parametrize(("cards", "word", "barred"), [(WINS, "draw", (1, 3)), (TIES, "show", (1,))])
def test_who_passed_does_not_bid_nor_his_partner_after_a_won_coup(
    cards: str, word: str, barred: tuple[int, ...]
) -> None:
    table = CheminTable()
    table.opens(1000)
    table.acts("3 association")
    table.covers("2 100")
    table.coup(cards, word)
    table.acts("1 pass", "1 auction", *(f"{seat} bid 1000" for seat in (1, 3, 4)))
    assert {int(name[5:]) for name in table.detail["offer"]["bids"]} == {1, 3, 4} - set(barred)
    article = "12(87)" if len(barred) == 2 else "12(90)"
    assert table.noted() == [("may_not_bid", article)] * len(barred)


@pytest.mark.article("12(90)")
def test_who_passed_on_a_tie_makes_no_banco_in_the_next_coup() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.coup(TIES, "show")
    table.acts("1 pass", "2 take")
    for refused in (True, False):
        table.opens()
        table.acts("1 banco")
        assert (table.detail.get("punter", 0) == 0) is refused
        table.covers("3 100")
        table.coup(TIES, "show")
    assert table.noted().count(("may_not_claim", "12(90)")) == 0
    assert ("may_not_claim", "12(90)") in [
        (one.code, one.law.rpartition(" ")[2]) for result in _results(table) for one in result.irregularities
    ]


def _results(table: CheminTable) -> list:  # type: ignore[type-arg]
    return [one.result for one in table.said if hasattr(one, "result")]


@pytest.mark.article("12(88)")
def test_two_may_bid_together_in_equal_parts_and_who_bids_alone_goes_first() -> None:
    table = wins(1)
    table.acts("1 pass", "1 auction", "5 bid_half 1500", "12 bid 1400")
    table.tell(HandPassed(0))
    assert (table.bank.banker, table.bank.partner) == (12, 0)  # half of a bid is none
    table = wins(1)
    table.acts("1 pass", "1 auction", "5 bid_half 1500", "4 bid_half 1500", "13 bid 1400")
    table.tell(HandPassed(0))
    assert (table.bank.banker, table.bank.partner, table.bank.amount) == (4, 5, 1500)
    assert table.bank.shares(1500) == {4: 750, 5: 750}
    table = wins(1)
    table.acts("1 pass", "1 auction", "5 bid_half 1500", "4 bid_half 1500", "13 bid 1500")
    table.tell(HandPassed(0))
    assert table.bank.banker == 13


@pytest.mark.article("12(89)")
def test_who_bought_the_hand_deals_the_first_coup_or_bids_no_more() -> None:
    table = wins(1)
    table.acts("1 pass", "1 auction", "4 bid 1500")
    table.tell(HandPassed(4))
    table.acts("4 pass", "4 bid 1500", "1 bid 1500", "3 bid 1000")
    assert table.noted() == [("may_not_bid", "12(89)")] * 2
    table.tell(HandPassed(0))
    assert table.bank.banker == 3


@pytest.mark.article("12(81)")
def test_who_took_the_hand_at_its_level_plays_it() -> None:
    table = wins(1)
    table.acts("1 pass", "4 take", "4 pass")
    assert table.bank.banker == 4
    assert table.noted() == [("hand_not_due", "12(81)")]


@pytest.mark.article("12(91)")
def test_who_bought_and_passed_after_one_coup_does_not_bid() -> None:
    table = wins(1)
    table.acts("1 pass", "1 auction", "4 bid 1500")
    table.tell(HandPassed(4))
    table.opens(0, "2 100")
    table.coup(WINS, "draw")
    table.acts("4 pass", "4 auction", "4 bid 2000", "1 bid 1000")
    assert table.noted() == [("may_not_bid", "12(91)")]
    assert table.detail["offer"]["bids"] == {"seat_1": 1000}


@pytest.mark.article("12(93)")
def test_who_changed_seat_ahead_of_his_turn_lets_the_hand_pass_once_and_has_no_priority() -> None:
    table = CheminTable()
    table.acts("2 moved")
    table.opens(1000)
    table.acts("3 banco")
    table.acts("2 banco")
    assert table.detail["punter"] == 3
    table.coup(LOSES, "show")
    assert table.bank.banker == 3
    for seat in (3, 4, 5, 1):
        assert table.bank.banker == seat
        table.opens(1000, "2 100")
        table.coup(LOSES, "show")
    assert table.bank.banker == 2
    table.acts(*(f"{seat} moved" for seat in range(1, 6)))
    table.opens(1000, "3 100")
    table.coup(LOSES, "show")
    assert (table.bank.banker, table.bank.skips) == (3, ())  # all let it pass, and it is at the right again


@pytest.mark.article("12(29)", "12(39)", "12(92)")
def test_a_bank_that_the_dealer_names_remembers_nothing_of_another() -> None:
    table = CheminTable()
    assert (table.detail["won"], "aside" in table.detail) == (0, False)
    table.tell(HandPassed(14))
    table.opens(1000, "3 100")
    assert table.detail["banker"] == 14
    table.coup(LOSES, "show")
    assert table.bank.banker == 1  # nobody seated has had the bank
    table = CheminTable()
    table.tell(HandPassed(2))
    table.opens(1000)
    table.acts("1 banco_with_table")
    assert (table.detail["punter"], table.detail["claim"]) == (1, "table")
    table.acts("1 banco")
    assert (table.detail["claim"], table.noted()) == ("banco", [])
    table = CheminTable()
    table.tell(HandPassed(2))
    table.acts("2 pass")
    assert (table.bank.banker, table.bank.seats) == (3, (1, 2, 3, 4, 5))  # it is his first, and he keeps his seat
    table.opens(1000)
    table.tell(HandPassed(0))
    assert table.noted() == []
    table.tell(HandPassed(1))
    assert table.noted() == [("hand_not_due", "12(82)")]


@pytest.mark.article("12(31)", "12(39)")
def test_no_partner_is_shown_of_a_bank_that_has_to_be_told_again() -> None:
    table = CheminTable()
    table.opens(1000)
    table.acts("5 association")
    assert table.detail["partner"] == 5
    table.tell(EventsMissed(1), BetsClosed(), RoundVoided("declared"), BetsOpened())
    assert "partner" not in table.detail
    table.acts("1 bank 1000")
    table.covers("2 100")
    table.coup(LOSES, "show")
    assert table.paid == {1: (1000, 900), 2: (100, 200)}


@pytest.mark.article("12(21)", "12(93)", "12(95)")
def test_who_leaves_takes_what_is_his_alone() -> None:
    table = CheminTable()
    table.acts("2 moved", "3 moved")
    table.tell(SeatClosed(3))
    assert table.bank.skips == (2,)
    table.opens(1000)
    table.acts("4 banco")
    table.tell(SeatClosed(5), SeatOpened(6))
    assert table.detail["claim"] == "banco"
    table.tell(SeatClosed(4))
    assert "claim" not in table.detail
    table.covers("6 300")
    assert table.detail["punter"] == 6
    table.tell(*map(SeatClosed, (1, 2, 6)))
    assert (table.bank.banker, table.bank.amount, table.bank.partner, table.bank.aside) == (0, 0, 0, 0)


@pytest.mark.article("12(79)", "12(82)", "12(90)")
def test_who_passed_after_a_win_may_make_banco_and_a_hand_is_taken_once() -> None:
    table = wins(1)
    table.acts("1 pass", "2 take", "2 take")
    assert table.noted() == [("hand_not_due", "12(82)")]
    table.opens(0)
    table.acts("1 banco")
    assert table.detail["punter"] == 1


@pytest.mark.article("12(31)", "12(35)", "12(83)", "12(88)")
def test_banks_and_bids_from_the_least_to_the_largest_number() -> None:
    table = CheminTable(minimum_bank=1, minimum_bet=1, auction_step=1, percentage=0)
    table.opens(LARGEST_BANK + 1)
    assert table.noted() == [("stack_too_large", "12(35)")]
    table.acts(f"1 bank {LARGEST_BANK}", "2 association")
    assert (table.bank.partner, table.bank.amount) == (2, 2 * LARGEST_BANK)
    table = CheminTable(minimum_bank=1, minimum_bet=1, auction_step=1, percentage=0)
    table.opens(LARGEST_BANK, "2 1")
    table.coup(WINS, "draw")
    table.acts("1 pass", "2 take", "3 association")
    assert (table.noted(), table.bank.amount) == ([("no_partner", "12(31)")], LARGEST_BANK + 1)
    table = wins(1, minimum_bank=1, minimum_bet=1, auction_step=1)
    table.acts("1 pass", "1 auction", f"2 bid {LARGEST_BANK + 1}", "3 bid_half 1", "4 bid_half 1")
    assert table.noted() == [("wrong_bid", "12(83)")]
    table.tell(HandPassed(3))
    assert (table.bank.banker, table.bank.partner, table.bank.amount) == (3, 4, 1)
    table = wins(1, auction_step=1)
    table.acts("1 pass", "1 auction", f"2 bid {LARGEST_BANK}")
    table.tell(HandPassed(2))
    assert (table.bank.banker, table.bank.amount, table.noted()) == (2, LARGEST_BANK, [])


# ---- faults


@pytest.mark.article("12(105)(a)")
def test_who_drew_a_card_deals_the_coup() -> None:
    table = wins(1)
    table.opens(0, "2 100")
    table.deal("2S")
    table.acts("1 pass", "1 garage", "4 take")
    table.tell(HandPassed(4))
    assert table.noted() == [("bank_in_coup", "12(105)(a)")] * 4
    assert table.detail["banker"] == 1


@pytest.mark.article("12(105)(c)", "12(107)(c)")
@pytest.mark.parametrize("letter", ["105c", "107c"])
def test_stuck_cards_and_faults_of_the_dealer_make_the_coup_null(letter: str) -> None:
    """Unless it can be put right: then nothing is told, or the hands are."""
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal(WINS)
    table.acts(f"1 fault_{letter}")
    assert table.result.law == (f"Decreto Executivo 261/22 art. 12({letter[:3]})({letter[3]})",)
    assert table.paid == {1: (1000, 1000), 2: (100, 100)}
    assert table.bank.amount == 1000
    table.tell(BetsOpened())
    assert (table.detail["banker"], table.detail["bank"]) == (1, 1000)


FAULTS = [
    # letter, punter's cards, banker's cards, totals
    ("105d", "5S KS", "9D KD 4D", (5, 0)),
    ("105d", "9S KS", "9D KD 4D 7C", (9, 7)),
    ("105e", "5S KS 2S", "3D KD 4D 9C", (7, 2)),
    ("105f", "2S 3S 4S", "7D KD", (9, 7)),
    ("105f", "2S 5S", "7D KD 4C", (7, 1)),
    ("105g", "2S 3S 4S", "7D KD", (9, 7)),
    ("105g", "9S 3S 9D", "3D KD 6D", (8, 9)),
    ("105h", "2S 3S KS 4S", "7D KD", (9, 7)),
    ("105i", "", "9D KD", (9, 9)),
    ("105i", "2S", "6D KD", (9, 6)),
    ("105j", "2S 2D", "3D KD 6C", (9, 9)),
    ("105j", "2S 2D", "7D KD", (9, 7)),
]


@pytest.mark.article("12(105)(d)", "12(105)(e)", "12(105)(f)", "12(105)(g)", "12(105)(h)", "12(105)(i)", "12(105)(j)")
@pytest.mark.parametrize(("letter", "player", "banker", "totals"), FAULTS)
def test_faults_of_the_banker_are_counted_by_their_letter(
    letter: str, player: str, banker: str, totals: tuple[int, int]
) -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal(WINS)
    table.acts(f"1 fault_{letter}")
    assert table.waits() == "fault_by_hands"
    assert (f"fault_{letter}", f"12(105)({letter[-1]})") in table.noted()
    table.lay(player=player, banker=banker)
    assert tuple(table.result.outcome["totals"].values()) == totals
    assert table.result.law[1].endswith(f"12(105)({letter[-1]})")
    winner = "player" if totals[0] > totals[1] else "banker" if totals[1] > totals[0] else "tie"
    assert table.result.outcome["winner"] == winner


@pytest.mark.article("12(105)(g)", "12(105)(j)")
@pytest.mark.parametrize(
    ("letter", "player", "banker"),
    [
        ("105g", "2S 3S 4S", "7D KD 2C"),
        ("105g", "2S 3S 4S", "8D KD 2C"),
        ("105j", "2S 2D", "7D KD 2C"),
        ("105d", "5S KS", "9D KD"),
        ("105e", "5S KS", "9D KD 2C"),
        ("105h", "5S KS 2S", "9D KD"),
        ("105i", "", "9D KD 2C"),
    ],
)
def test_hands_that_the_letter_does_not_allow_are_asked_for_again(letter: str, player: str, banker: str) -> None:
    assert faulty(letter, tuple(player.split()), tuple(banker.split())) is None
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal(WINS)
    table.acts(f"1 fault_{letter}")
    table.lay(player=player, banker=banker)
    assert table.waits() == "hands_by_law"


@pytest.mark.article("12(105)(d)", "12(105)(e)", "12(105)(f)", "12(105)(g)", "12(105)(h)", "12(105)(i)", "12(105)(j)")
def test_each_fault_is_counted_from_hands_of_its_own_sizes() -> None:
    sizes = {
        "105d": {(2, 3), (3, 3), (2, 4), (3, 4)},
        "105e": {(2, 4), (3, 4)},
        "105f": {(3, 2), (3, 3), (2, 3)},
        "105g": {(3, 2), (3, 3)},
        "105h": {(4, 2), (4, 3)},
        "105i": {(mine, 2) for mine in range(6)},
        "105j": {(mine, his) for mine in range(6) for his in (2, 3)},
    }
    for fault, mine, his in product(BY_HANDS, range(6), range(6)):
        assert (faulty(fault, ("AS",) * mine, ("AD",) * his) is not None) is ((mine, his) in sizes[fault])
    assert faulty("105g", ("9S", "8S", "9H"), ("2S", "2H")) == (8, 4)  # two of three are best
    assert faulty("105g", ("2S", "2H", "2D"), ("2S", "2H", "2D")) == (6, 6)
    assert faulty("105g", ("9S", "8S", "9H"), ("2S", "2H", "2D")) == (8, 6)
    assert faulty("105h", ("2S", "2H", "2D", "KS"), ("2S", "2H")) == (6, 4)
    assert faulty("105h", ("2S", "2H", "2D", "8S"), ("2S", "2H")) == (6, 4)


CARDS = ("KS", "AS", *(f"{pips}S" for pips in range(2, 10)))
"""One of each value."""


@pytest.mark.article("12(65)(c)", "12(65)(d)", "12(68)(d)", "12(71)", "12(106)(a)", "12(106)(c)")
@pytest.mark.parametrize("words", [(), ("show",), ("draw",), ("stand",), ("draw", "stand")])
@pytest.mark.parametrize("free", [False, True])
def test_hands_may_lie_there_where_some_coup_of_the_text_ends_with_them(words: tuple[str, ...], free: bool) -> None:
    """What the punter said is a person's to say again; but that he showed 8 or 9."""
    thirds = ((), *((card,) for card in CARDS))
    coup = Coup(words=words, free=free)
    for mine, his, player, banker in product(range(10), range(10), thirds, ((), ("AD",))):
        hands = (CARDS[mine], "KS", *player), (CARDS[his], "KD", *banker)
        given = len(words) > 1 and his > 0 and mine != 5
        spoken = ("show",) if mine > 7 and words in ((), ("show",)) else ("show", "draw", "stand")
        assert allowed(coup, *hands) is any(
            ends_with(hands, word, likes, free, given) for word in spoken for likes in (True, False)
        ), hands
    assert not any(allowed(coup, ("KS",) * mine, ("KD",) * his) for mine, his in ((1, 2), (4, 3), (2, 1), (3, 4)))


def ends_with(hands: tuple[tuple[str, ...], ...], word: str, likes: bool, free: bool, given: bool) -> bool:
    """Whether the text gives these hands from their own cards."""
    mine, his = hands
    try:
        return (
            by_the_text((mine[0], his[0], mine[1], his[1], *mine[2:], *his[2:]), word, likes, banco=free, given=given)
            == hands
        )
    except IndexError:
        return False


@pytest.mark.article("12(68)", "12(69)", "12(70)")
def test_what_comes_next_follows_from_both_cards_of_the_banker_and_the_open_third() -> None:
    for mine, his, third in product((0, 3), range(10), (None, *CARDS)):
        cards = ("KS", "3D", CARDS[mine], CARDS[(his - 3) % 10], *([third] if third else ()))
        said = ("draw" if third else "stand",)
        rule = banker_rule(his, points([third]) if third else NO_CARD)
        due = {"draws": ("card", ("banker",)), "free": ("banker", ("draw", "stand"))}.get(rule, ("player", ("show",)))
        due = ("player", ("show",)) if his > 7 else due
        assert next_of(Coup(cards, said, shown=("banker",))) == due
        for word, more in (("draw", ("card", ("banker",))), ("stand", ("player", ("show",)))) if rule == "free" else ():
            assert next_of(Coup(cards, said, word=word, shown=("banker",))) == more
        if third:
            first = ("player", ("show",)) if his > 7 else ("card", ("player",))
            assert next_of(Coup(cards[:4], said, shown=("banker",))) == first


@pytest.mark.article("12(2)")
def test_the_higher_total_wins_by_one() -> None:
    for mine, his in product(range(10), range(10)):
        winner = "tie" if mine == his else "player" if mine > his else "banker"
        assert Count((CARDS[mine], "KS"), (CARDS[his], "KD")).winner == winner


@pytest.mark.article("12(106)(c)", "12(106)(d)")
def test_a_changed_word_counts_as_the_banker_says_but_with_five_and_against_nothing() -> None:
    """With 5 the first word counts; against a banker with 0 the last one, whatever he said."""
    for mine, his, gives in product((3, 5, 6, 8), (0, 1, 2), ("give", "refuse")):
        cards = (CARDS[mine], CARDS[his], "KS", "KD", "AC", "AH")
        for first, last in (("draw", "stand"), ("stand", "draw")):
            for free in (False, True):
                takes = {"give": "draw", "refuse": "stand"}[gives] if his else last
                takes = first if mine == 5 else takes
                drew = takes == "draw" if his or free or mine in (5, 8) else mine < 5
                found = count(Coup(cards, (first, last), gives, word="stand", free=free))
                assert (len(found.player) == 3) is drew, (mine, his, gives, first, free)


@pytest.mark.article("12(105)(e)", "12(105)(g)", "12(105)(h)")
def test_the_counts_of_too_many_cards_for_all_hands() -> None:
    ranks = "A23456789T"
    value = dict(zip(ranks, [*range(1, 10), 0], strict=True))
    for four in product(ranks, repeat=4):
        hand = tuple(f"{rank}S" for rank in four)
        sums = [sum(value[rank] for rank in three) % 10 for three in combinations(four, 3)]
        assert (lowest_of(hand, 3), best_of(hand, 3)) == (min(sums), max(sums))
        pairs = [sum(value[rank] for rank in two) % 10 for two in combinations(four[:3], 2)]
        assert best_of(hand[:3], 2, 3) == max(*pairs, sum(value[rank] for rank in four[:3]) % 10)


@pytest.mark.article("12(105)(k)")
def test_after_the_payment_there_is_no_claim() -> None:
    for paid in (False, True):
        table = CheminTable()
        table.opens(1000, "2 100")
        table.coup(WINS, "draw")
        if paid:
            table.tell(RoundPaid())
        table.lay(player="2S 2H", banker="7D KD")
        table.lay(player="7S KH", banker="6D KD")
        assert (table.result.outcome["winner"] == "player") is not paid
        assert (("claim_after_end", "12(105)(k)") in table.noted()) is paid
        assert table.bank.banker == (1 if paid else 2)


@pytest.mark.article("12(105)(m)")
def test_a_card_that_the_banker_drew_against_the_word_of_the_dealer_is_burnt() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal("6S 7D KH KD")
    table.says("player stand", "banker show")
    table.cards("AC")
    table.acts("1 fault_105m")
    table.says("player show")
    assert table.result.outcome["totals"] == {"player": 6, "banker": 7}
    assert table.noted() == [("fault_105m", "12(105)(m)")]


@pytest.mark.article("12(106)(a)")
def test_an_eight_that_was_not_shown_in_time_is_drawn_against() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.coup("8S 3D KH KD 5C", "stand")
    assert table.result.outcome["totals"] == {"player": 8, "banker": 8}
    table.opens(1000, "2 100")
    table.coup("8S 7D KH KD 3C", "draw")
    assert table.result.outcome["totals"] == {"player": 1, "banker": 7}


@pytest.mark.article("12(106)(b)")
@pytest.mark.parametrize(
    ("word", "banker", "winner"), [("stand", "8D", "banker"), ("show", "8D", "player"), ("stand", "9D", "tie")]
)
def test_a_nine_that_was_not_shown_loses_to_a_shown_eight(word: str, banker: str, winner: str) -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.coup(f"9S {banker} KH KD", word)
    assert table.result.outcome["winner"] == winner
    assert any(law.endswith("12(106)(b)") for law in table.result.law) is (winner == "banker")


@pytest.mark.article("12(106)(c)")
@pytest.mark.parametrize(("gives", "cards"), [("give", 3), ("refuse", 2)])
@pytest.mark.parametrize("words", [("draw", "stand"), ("stand", "draw")])
def test_where_the_punter_changes_his_word_the_banker_gives_the_card_or_not(
    words: tuple[str, str], gives: str, cards: int
) -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal("4S 6D KH KD")
    table.says(*(f"player {word}" for word in words), f"player {words[1]}", "banker show")
    assert table.detail["due"]["actions"] == ["give", "refuse"]
    table.says(f"banker {gives}")
    while table.view.phase != "resolved":
        due = table.detail["due"]
        table.cards("2C") if due["kind"] == "card" else table.acts(f"{due['seat']} show")
    assert len(table.result.outcome["hands"]["player"]) == cards
    assert table.noted() == [("word_changed", "12(106)(c)"), ("acted_twice", "12(106)(c)")]


@pytest.mark.article("12(106)(c)")
def test_a_banker_with_nothing_has_no_choice_about_a_changed_word() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal("4S KC KH KD")
    table.says("player stand", "player draw", "banker show", "banker refuse")
    table.cards("2C")
    table.says("player show")
    table.cards("3C")
    assert table.result.outcome["hands"] == {"player": ("4S", "KH", "2C"), "banker": ("KC", "KD", "3C")}


@pytest.mark.article("12(106)(d)")
@pytest.mark.parametrize("first", ["draw", "stand"])
def test_with_five_the_first_word_counts(first: str) -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    second = "stand" if first == "draw" else "draw"
    table.deal("5S 7D KH KD")
    table.says(f"player {first}", f"player {second}", "banker show", "banker give")
    table.cards("3C")
    table.says("player show")
    assert table.result.outcome["totals"]["player"] == (8 if first == "draw" else 5)


@pytest.mark.article("12(107)(b)")
@pytest.mark.parametrize(
    ("banker", "drawn", "hand", "burnt"),
    [
        *((total, 1, 3, 0) for total in range(6)),
        *((total, 2, 3, 1) for total in range(6)),
        *((total, 1, 2, 1) for total in (6, 7)),
        *((total, 2, 2, 2) for total in (6, 7)),
    ],
)
def test_cards_that_the_dealer_called_against_the_word_of_the_punter(
    banker: int, drawn: int, hand: int, burnt: int
) -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    card = f"{banker}D" if banker > 1 else ("QD", "AD")[banker]
    table.deal(f"6S {card} KH KD")
    table.says("player stand")
    table.cards(" ".join(["2C", "3C"][:drawn]))
    table.says("banker show", "player show")
    outcome = table.result.outcome
    assert (len(outcome["hands"]["banker"]), len(outcome.get("burnt", ()))) == (hand, burnt)
    if hand == 3:
        assert outcome["hands"]["banker"][2] == "2C"


# ---- loss, void and correction


def test_a_hand_that_nobody_took_before_the_bell_is_told_again() -> None:
    table = CheminTable()
    table.opens(1000, "2 300")
    table.coup("2S 9D 2H KD 6C", "draw", "show")
    table.acts("1 pass")
    table.tell(BetsOpened(), BetsClosed())
    assert table.waits() == "bank_missing"
    table.tell(RoundVoided(), BetsOpened())
    table.acts("3 bank 2000")
    assert (table.detail["banker"], table.detail["bank"]) == (3, 2000)


@pytest.mark.parametrize("when", ["betting", "dealt"])
def test_after_a_loss_the_stakes_are_nobodys_until_the_coup_is_void(when: str) -> None:
    table = CheminTable()
    table.opens(1000, "2 300")
    if when == "betting":
        table.tell(EventsMissed(1))
        table.tell(BetsClosed())
        assert table.waits() == "bank_missing"
        table.tell(RoundVoided())
        assert table.paid == {2: (300, 300)}
        table.tell(BetsOpened())
        assert table.detail["bank"] == 0
        table.acts("3 bank 2000")
        assert (table.detail["banker"], table.detail["bank"]) == (3, 2000)
        return
    table.deal("2S 9D")
    table.tell(EventsMissed(1))
    assert table.view.phase == "suspended"
    table.cards("2H KD")
    table.lay(player="2S 2H", banker="9D KD")
    assert table.result.outcome["winner"] == "banker"
    assert table.paid[2] == (300, 0)


def test_a_loss_where_banco_suivi_may_be_missing_is_void_only() -> None:
    table = CheminTable()
    table.opens()
    table.acts("4 banco")
    table.coup(WINS, "draw", "stand")
    table.opens(0, "2 100")
    table.deal("2S 9D")
    table.tell(EventsMissed(1))
    table.lay(player="2S 2H", banker="9D KD")
    assert table.waits() == "stakes_unknown"
    table.tell(RoundVoided())
    assert table.paid == {1: (1950, 1950), 2: (100, 100)}
    table.tell(BetsOpened())
    assert table.detail["bank"] == 0


def test_an_unreadable_card_waits_for_the_hands() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.deal("2S")
    table.tell(CardUnreadable())
    assert table.waits() == "card_unreadable"
    table.lay(player="2S", banker="9D KD")
    table.lay(dealer="2S 3D", player="2S 2H", banker="9D KD")
    assert table.view.phase == "suspended"
    table.lay(player="2S 2H", banker="9D KD")
    assert table.result.outcome["natural"]


def test_a_correction_takes_back_what_was_decided_of_the_bank_since() -> None:
    table = wins(2)
    table.opens(0, f"2 {table.bank.amount}")
    table.coup(WINS, "draw")
    before = table.result
    table.acts("1 garage")
    table.lay(before.round, player="7S KH", banker="6D KD")
    assert table.result.supersedes == before.round
    assert (table.bank.banker, table.bank.aside) == (2, 0)


@pytest.mark.parametrize("seed", range(at_length(4, 40)))
def test_chips_are_conserved_whatever_is_told(seed: int) -> None:
    """Each end of a coup sums to zero but for the percentage, and the next bank is what it says."""
    rng = random.Random(seed)
    table = CheminTable(range(1, 7), percentage=30)
    deck = [rank + suit for rank in "A23456789TJQK" for suit in "SHDC"] * 6
    actions = sorted({word for one in _ACTIONS for word in one.split()})
    for _ in range(at_length(1500, 5000)):
        due = table.detail.get("due") or {}
        mood = rng.random()
        if table.view.phase == "suspended" and mood < 0.5:
            table.tell(RoundVoided())
        elif mood < 0.15:
            table.acts(f"{rng.choice((*range(1, 7), 12, 24))} {rng.choice(actions)} {rng.choice((0, 500, 1000, 3000))}")
        elif table.view.phase in ("idle", "resolved", "ended"):
            if table.detail.get("last") or table.detail.get("shoe", 0) == 0:
                table.new_shoe("KS")
            table.tell(BetsOpened())
        elif due.get("actions") == ["bank"]:
            table.acts(f"{due['seat']} bank {rng.choice((1000, 5050))}")
        elif table.view.phase == "betting" and mood < 0.6:
            table.covers(f"{rng.choice((2, 3, 4, 12))} {rng.choice((100, 200, 1000))} {rng.choice(('cover', 'half'))}")
        elif table.view.phase == "betting":
            table.tell(BetsClosed())
        elif due.get("kind") == "card":
            table.cards(rng.choice(deck))
        elif due:
            table.acts(f"{due['seat']} {rng.choice(due['actions'])}")
        else:
            table.tell(rng.choice((RoundVoided(), EventsMissed(1), SeatClosed(rng.randint(1, 6)), SeatOpened(3))))
    ends = _results(table)
    assert sum(one.void is None for one in ends) > 5
    for one in ends:
        kept = one.outcome.get("percentage", 0)
        assert sum(each.returned - each.stake for each in one.settlements) == -kept
        assert all(each.returned >= 0 for each in one.settlements)


_ACTIONS = (
    "bank association banco banco_with_table banco_suivi looks show draw stand give refuse pass take auction bid",
    "bid_half garage halve reduce outside absent moved by_table cards_to discarded fault_105e fault_105b fault_107a",
)


def test_actions_that_no_coup_has_are_noted() -> None:
    table = CheminTable()
    table.acts("2 split")
    assert table.noted() == [("no_such_action", "12(40)")]
    table.opens(1000, "2 100")
    table.deal(WINS)
    table.tell(SeatActed(4, "draw"), SeatActed(1, "give"), SeatActed(2, "split"))
    assert table.noted()[1:] == [("not_in_hand", "12(66)"), ("no_such_action", "12(66)"), ("no_such_action", "12(66)")]


def test_a_disputed_coup_that_is_paid_stands() -> None:
    table = CheminTable()
    table.opens(1000, "2 100")
    table.coup(WINS, "draw")
    table.lay(player="2S", banker="9D KD")
    assert table.waits() == "hands_by_law"
    table.tell(RoundPaid())
    assert (table.result.outcome["winner"], table.bank.amount) == ("banker", 1095)


def test_the_house_chooses_the_least_bank_and_bet() -> None:
    table = CheminTable(minimum_bank=2000, minimum_bet=500, rounding="down")
    table.opens(1999, "2 500")
    assert table.detail["bank"] == 0
    table.acts("1 bank 2000")
    table.covers("2 500", "3 600")
    assert (table.detail["covered"], table.detail["left"]) == (500, 1500)


def test_what_is_laid_and_kept_has_a_name() -> None:
    assert [bet.id for bet in CheminTable().ruleset.bets()] == ["cover", "half", "bank", "percentage"]
