"""Macau baccarat, article by article: Despacho 55/2004 as amended up to 56/2018."""

import random
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import msgspec
import pytest
from helpers import START, at_length, game_of, only, play, results, script
from hypothesis import given, settings, strategies as st

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    DealCorrected,
    DeviceOnline,
    DiceCovered,
    Event,
    EventsMissed,
    RoundDemo,
    RoundPaid,
    RoundVoided,
    ShoeEmptied,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.facts import Table
from rules.engine.ruleset import (
    Award,
    BadOption,
    Closed,
    Corrected,
    Noted,
    Opened,
    Resolved,
    Result,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    options_from,
    options_of,
)
from rules.games import cards as helpers_of_cards
from rules.games.baccarat_coups import BaccaratState, Position
from rules.games.cards import DECK, PIPS
from rules.macau.baccarat import FAMILIES, JACKPOTS, Baccarat, BaccaratOptions, combination_a
from simulators.lab.figures.enumerate_baccarat import endings, pair_weights
from simulators.lab.figures.figure import weighed

LAW = "macau.baccarat"
CITED = "Despacho 55/2004 art. "
RANK_OF = "TA23456789"  # a card of 0 to 9 points


game = game_of(Baccarat)


def bell(**options: Any) -> Baccarat:
    return game(opening="bell", **options)


def drawn(cards: str) -> list[Event]:
    """Cards as they leave the shoe; a bare rank is a spade."""
    return [CardDrawn(card if len(card) == 2 else card + "S") for card in cards.split()]


def rung(cards: str, *bets: Event) -> list[Event]:
    """A coup with its bell."""
    return [BetsOpened(), *bets, BetsClosed(), *drawn(cards)]


def kinds(verdicts: Iterable[Verdict]) -> list[type[Verdict]]:
    return [type(verdict) for verdict in verdicts]


def codes(verdicts: Iterable[Verdict]) -> list[str]:
    """The irregularities noted while no coup was open."""
    return [verdict.irregularity.code for verdict in verdicts if isinstance(verdict, Noted)]


def noted(result: Result) -> list[tuple[str, str]]:
    return [(one.code, one.law.removeprefix(CITED)) for one in result.irregularities]


def wins(result: Result) -> dict[str, str]:
    return {win.bet: win.pays for win in result.winners}


def laws(result: Result) -> list[str]:
    return [law.removeprefix(CITED) for law in result.law]


def hands_of(result: Result) -> tuple[str, str]:
    """The ranks of both hands."""
    hands = result.outcome["hands"]
    return "".join(card[0] for card in hands["player"]), "".join(card[0] for card in hands["banker"])


def reach(ruleset: Baccarat, events: Iterable[Event]) -> tuple[Table[Position], list[Verdict]]:
    state, verdicts = ruleset.start("t-1"), list[Verdict]()
    for seen in script(events):
        state, new = ruleset.apply(state, seen)
        verdicts += new
    return state, verdicts


def look(ruleset: Baccarat, events: Iterable[Event]) -> View:
    return ruleset.view(reach(ruleset, events)[0])


# Coups by their end; the cards in the order of the deal.
BANKER_7_ON_TWO = "2 7 4 T"  # player 6, banker 7
DRAGON_7 = "3 2 T A T 4"  # player 3 and T, banker 3 and 4
LUCKY_6_TWO = "2 2 T 4 2"  # player 2 and 2, banker 6
LUCKY_6_THREE = "A 2 T T A 4"  # player 1 and A, banker 2 and 4
PLAYER_WINS = "9 2 T 4"
TIE = "7 3 T 4"
NATURAL_TIE = "8 3 T 5"


# ---- arts. 1 and 2: material and opening


@pytest.mark.article("1(1)")
@pytest.mark.parametrize("decks", range(6, 13))
def test_art_1_1_six_to_twelve_decks(decks: int) -> None:
    assert Baccarat(BaccaratOptions(decks=decks)).options.decks == decks


@pytest.mark.article("1(1)")
@pytest.mark.parametrize("decks", [5, 13])
def test_art_1_1_other_numbers_of_decks_are_refused(decks: int) -> None:
    with pytest.raises(BadOption, match="decks"):
        options_from(Baccarat, {"decks": decks})


@pytest.mark.article("1(1)")
def test_art_1_1_a_shoe_of_another_number_of_decks_is_noted() -> None:
    assert codes(play(game(), [ShoeStarted(6)])) == ["wrong_number_of_decks"]
    assert codes(play(game(), [ShoeStarted(8), ShoeStarted(0)])) == []


@pytest.mark.article("1(5)")
@pytest.mark.parametrize("seat", [1, 7, 8, 14])
def test_art_1_5_seven_seats_or_more(seat: int) -> None:
    result = only(play(bell(), rung(PLAYER_WINS, WagerPlaced(seat, "player", 100))))
    assert [(one.seat, one.returned) for one in result.settlements] == [(seat, 200)]


BURNS: list[tuple[dict[str, Any], str, int]] = [
    *(({"decks": decks}, "5", decks) for decks in range(6, 13)),
    *(
        ({"burn": "first_card"}, rank, pips)
        for rank, pips in zip("A23456789TJQK", [*range(1, 11)] + [10] * 3, strict=True)
    ),
    *(({"burn": "fixed", "burn_fixed": fixed}, "5", fixed) for fixed in range(1, 9)),
]


@pytest.mark.article("2(1)", "2(1)(1)", "2(1)(2)", "2(1)(3)")
@pytest.mark.parametrize("opening", ["bell", "first_card"])
@pytest.mark.parametrize(("options", "first", "count"), BURNS)
def test_art_2_1_the_burn_counts_its_first_card(
    options: dict[str, Any], first: str, count: int, opening: Literal["bell", "first_card"]
) -> None:
    burn = " ".join([first] + ["6"] * (count - 1))
    ruleset = game(opening=opening, **options)
    assert play(ruleset, [ShoeStarted(), *drawn(burn)]) == []
    assert look(ruleset, [ShoeStarted(), *drawn(burn)]).phase == "idle"
    if count > 1:
        assert look(ruleset, [ShoeStarted(), *drawn(burn)[:-1]]).phase == "burning"
    coup = rung(PLAYER_WINS) if opening == "bell" else drawn(PLAYER_WINS)
    assert hands_of(only(play(ruleset, [ShoeStarted(), *drawn(burn), *coup]))) == ("9T", "24")


@pytest.mark.article("2(1)")
def test_art_2_1_the_bell_ends_the_burn_and_what_lacks_is_noted() -> None:
    for opening in ("bell", "first_card"):
        result = only(play(game(opening=opening), [ShoeStarted(), *drawn("5 5 5"), *rung(PLAYER_WINS)]))
        assert noted(result) == [("burn_incomplete", "2(1)")]
        assert hands_of(result) == ("9T", "24")


@pytest.mark.article("2(1)")
def test_art_2_1_a_burn_may_go_on_while_bets_are_open() -> None:
    events = [ShoeStarted(), *drawn("5 5 5"), BetsOpened(), *drawn("5 5 5 5 5"), BetsClosed(), *drawn(PLAYER_WINS)]
    assert noted(only(play(bell(), events))) == []


@pytest.mark.article("2(2)")
def test_art_2_2_no_demonstration_unless_the_house_allows_it() -> None:
    verdicts = play(game(), [RoundDemo(), *drawn(PLAYER_WINS)])
    assert codes(verdicts) == ["demonstration_not_allowed"]
    assert not only(verdicts).demo


@pytest.mark.article("2(2)")
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_art_2_2_demonstrations_up_to_the_limit_at_the_start_of_a_shoe(limit: int) -> None:
    ruleset = bell(demonstration_rounds=limit, burn="fixed", jackpot="B")
    demo: list[Event] = [RoundDemo(), *rung("9 9 9 T", WagerPlaced(1, "player", 100), WagerPlaced(1, "jackpot", 10))]
    shoe: list[Event] = [ShoeStarted(), *drawn("5"), *demo * (limit + 1)]
    verdicts = play(ruleset, shoe * 2)
    found = results(verdicts)
    assert [one.demo for one in found] == ([True] * limit + [False]) * 2
    assert codes(verdicts) == ["demonstration_not_allowed"] * 2
    for one in found:
        assert laws(one).count("2(2)") == one.demo
        assert noted(one) == ([("bet_on_demonstration", "2(2)")] * 2 if one.demo else [])
        assert (len(one.settlements), len(one.jackpots)) == ((0, 0) if one.demo else (2, 1))
        assert one.outcome["winner"] == "banker"


@pytest.mark.article("2(2)")
def test_art_2_2_not_after_the_first_ordinary_coup() -> None:
    ruleset = game(demonstration_rounds=3)
    verdicts = play(ruleset, [*drawn(PLAYER_WINS), RoundDemo(), *drawn(PLAYER_WINS)])
    assert codes(verdicts) == ["demonstration_not_allowed"]
    assert [one.demo for one in results(verdicts)] == [False, False]


@pytest.mark.article("2(2)")
def test_art_2_2_coups_open_for_bets_are_counted_to_the_limit() -> None:
    opened: list[Event] = [BetsOpened(), RoundDemo(), BetsClosed(), *drawn(TIE)]
    assert [one.demo for one in results(play(bell(demonstration_rounds=2), opened * 3))] == [True, True, False]


@pytest.mark.article("2(2)")
def test_art_2_2_a_coup_open_for_bets_becomes_a_demonstration_and_its_bets_go_back() -> None:
    events: list[Event] = [BetsOpened(), WagerPlaced(2, "tie", 100), RoundDemo(), RoundDemo(), BetsClosed()]
    result = only(play(bell(demonstration_rounds=1), [*events, *drawn(TIE)]))
    assert result.demo
    assert [(one.bet, one.stake, one.returned) for one in result.settlements] == [("tie", 100, 100)]
    assert noted(result) == [("bet_on_demonstration", "2(2)")]


@pytest.mark.article("2(2)")
def test_art_2_2_not_once_a_card_is_out() -> None:
    result = only(play(game(demonstration_rounds=3), [*drawn("9"), RoundDemo(), *drawn("2 T 4")]))
    assert not result.demo
    assert noted(result) == [("demonstration_not_allowed", "2(2)")]


@pytest.mark.article("1(3)", "2(3)")
def test_art_2_3_a_continuous_shuffler_burns_nothing_and_has_no_cut_card() -> None:
    ruleset = game(device="continuous")
    result = only(play(ruleset, [ShoeStarted(8), *drawn("9 2"), CutCardDrawn(), *drawn("T 4")]))
    assert hands_of(result) == ("9T", "24")
    assert noted(result) == [("cut_card_in_shuffler", "2(3)")]
    assert "7(2)" in laws(result)
    assert "7(1)" not in laws(result)
    verdicts = play(ruleset, [CutCardDrawn(), ShoeEmptied(), RoundDemo(), *drawn(PLAYER_WINS), *drawn(TIE)])
    assert codes(verdicts) == ["cut_card_in_shuffler", "demonstration_not_allowed"]
    assert len(results(verdicts)) == 2


# ---- art. 3: the end of a shoe


@pytest.mark.article("3(1)", "3(1), second sentence")
def test_art_3_1_last_the_coup_under_way_is_the_last() -> None:
    events = [*drawn("9 2"), CutCardDrawn(), *drawn("T 4"), *drawn("5"), ShoeStarted()]
    verdicts = play(game(), events)
    assert kinds(verdicts) == [Opened, Closed, Resolved, Noted]
    assert codes(verdicts) == ["card_after_last_coup"]
    assert look(game(), events[:-1]).detail["last"]


@pytest.mark.article("3(1)", "3(1), second sentence")
def test_art_3_1_one_more_after_the_coup_under_way() -> None:
    events = [*drawn("9 2"), CutCardDrawn(), *drawn("T 4"), *drawn(TIE), *drawn("5")]
    verdicts = play(game(cut_card="one_more"), events)
    assert kinds(verdicts) == [Opened, Closed, Resolved, Opened, Closed, Resolved, Noted]
    assert codes(verdicts) == ["card_after_last_coup"]


@pytest.mark.article("3(1)")
def test_art_3_1_last_before_a_first_card_no_coup_follows() -> None:
    verdicts = play(game(), [CutCardDrawn(), *drawn("5 5"), CardUnreadable()])
    assert kinds(verdicts) == [Noted] * 3
    assert set(codes(verdicts)) == {"card_after_last_coup"}
    assert look(game(), [CutCardDrawn()]).phase == "ended"


@pytest.mark.article("3(1)")
@pytest.mark.parametrize("white", [CutCardDrawn(), ShoeEmptied()])
@pytest.mark.parametrize("rings", [True, False])
def test_art_3_1_last_before_the_first_card_of_an_open_coup_returns_its_bets(white: Event, rings: bool) -> None:
    opened: list[Event] = [BetsOpened(), WagerPlaced(1, "player", 100), *([BetsClosed()] if rings else [])]
    result = only(play(bell(), [*opened, white]))
    assert result.void is not None
    assert result.void.bets == "returned"
    assert [(one.stake, one.returned) for one in result.settlements] == [(100, 100)]
    assert laws(result) == ["3(1)"]


@pytest.mark.article("3(1)")
@pytest.mark.parametrize("opened", [True, False])
def test_art_3_1_one_more_before_a_first_card_is_exactly_one(opened: bool) -> None:
    coup = rung(PLAYER_WINS)
    first = [coup[0], CutCardDrawn(), *coup[1:]] if opened else [CutCardDrawn(), *coup]
    verdicts = play(bell(cut_card="one_more"), [*first, *drawn("5"), BetsOpened()])
    assert kinds(verdicts) == [Opened, Closed, Resolved, Noted, Opened, Closed, Suspended]


@pytest.mark.article("1(2)")
def test_art_3_1_a_second_cut_card_changes_nothing() -> None:
    events = [*drawn("9 2"), CutCardDrawn(), CutCardDrawn(), *drawn("T 4"), CutCardDrawn(), *drawn(TIE), *drawn("5")]
    assert len(results(play(game(cut_card="one_more"), events))) == 2
    in_the_last = [*drawn("9 2"), CutCardDrawn(), *drawn("T 4 7 3"), CutCardDrawn(), *drawn("T 4 5")]
    assert len(results(play(game(cut_card="one_more"), in_the_last))) == 2
    assert codes(play(game(cut_card="one_more"), in_the_last)) == ["card_after_last_coup"]


@pytest.mark.article("3(1), second sentence")
def test_art_3_1_bets_opened_after_the_last_coup_wait_for_a_new_shoe() -> None:
    events: list[Event] = [CutCardDrawn(), *rung(PLAYER_WINS, WagerPlaced(1, "player", 5)), ShoeStarted()]
    verdicts = play(bell(), events)
    assert kinds(verdicts) == [Opened, Closed, Suspended, Voided]
    result = only(verdicts)
    assert noted(result) == [("bet_while_waiting", "13(1)")]
    assert hands_of(only(play(bell(burn="fixed"), [*events, *drawn("5"), *rung(TIE)])[4:])) == ("7T", "34")
    again: list[Event] = [CutCardDrawn(), BetsOpened(), RoundVoided("closing"), BetsOpened()]
    assert kinds(play(bell(), again)) == [Opened, Closed, Suspended, Voided, Opened, Closed, Suspended]


@pytest.mark.article("3(1)")
def test_art_3_1_the_card_of_art_8_is_part_of_its_coup() -> None:
    events = [*drawn("5"), CutCardDrawn(), *drawn(PLAYER_WINS), *drawn("5")]
    assert kinds(play(game(burn_each_coup=True), events)) == [Opened, Closed, Resolved, Noted]


@pytest.mark.article("3(1), second sentence")
def test_art_3_1_an_empty_shoe_suspends_a_coup_under_way() -> None:
    verdicts = play(game(), [*drawn("2 2 T"), ShoeEmptied(), ShoeEmptied(), *drawn("5"), ShoeStarted()])
    assert kinds(verdicts) == [Opened, Closed, Suspended, Voided]
    assert codes(play(game(), [ShoeEmptied(), *drawn("5")])) == ["card_after_last_coup"]


@pytest.mark.article("3(2)")
@pytest.mark.parametrize("ending", [[*drawn("9 2"), CutCardDrawn(), *drawn("T 4")], drawn(PLAYER_WINS)])
def test_art_3_2_another_shoe_at_the_end_of_a_game(ending: list[Event]) -> None:
    """After the last coup, or when the house ends the game before the white card: numbered anew, burnt anew."""
    events = [*ending, ShoeStarted(), *drawn("5 5 5 5 5 5 5 5"), *drawn(TIE)]
    verdicts = play(game(), events)
    assert kinds(verdicts) == [Opened, Closed, Resolved] * 2
    assert [one.round for one in results(verdicts)] == ["t-1:2026-11-20:1:1", "t-1:2026-11-20:2:1"]
    assert hands_of(results(verdicts)[1]) == ("7T", "34")


# ---- arts. 4 to 8


@pytest.mark.article("4")
def test_art_4_a_card_face_up_is_valid() -> None:
    cards: list[Event] = [CardDrawn("9S", "down"), CardDrawn("2S", "up"), CardDrawn("TS"), CardDrawn("4S", "down")]
    result = only(play(game(), cards))
    assert hands_of(result) == ("9T", "24")
    assert laws(result)[-1] == "4"
    assert result.outcome["face_up"] == ("2S",)
    assert not result.irregularities
    assert "4" not in laws(only(play(game(), drawn(PLAYER_WINS))))


@pytest.mark.article("4")
@pytest.mark.parametrize("device", ["shoe", "continuous"])
@pytest.mark.parametrize("which", range(4))
def test_art_4_the_bets_on_it_stand_whichever_card_it_was(device: str, which: int) -> None:
    cards: list[Event] = [CardDrawn(f"{rank}S", "up" if at == which else None) for at, rank in enumerate("92T4")]
    result = only(play(bell(device=device), [*rung("", WagerPlaced(1, "player", 100)), *cards]))
    assert hands_of(result) == ("9T", "24")
    assert [one.returned for one in result.settlements] == [200]
    assert not result.irregularities


@pytest.mark.article("5(1)", "5(2)")
@pytest.mark.parametrize("card", DECK)
def test_art_5_tens_and_figures_are_nothing_the_rest_their_face(card: str) -> None:
    result = only(play(game(), [CardDrawn(card), *drawn("9 T T 7 7")]))
    expected = 0 if card[0] in "TJQK" else "A23456789".index(card[0]) + 1
    laid = result.outcome["hands"]["player"]
    assert (result.outcome["totals"]["player"] - (7 if len(laid) == 3 else 0)) % 10 == expected


@pytest.mark.article("5(1)")
@pytest.mark.parametrize("cards", ["A 9", "2 8", "3 7", "4 6", "5 5", "T J", "Q K"])
def test_art_5_1_cards_that_together_make_ten_are_nothing(cards: str) -> None:
    first, second = cards.split()
    result = only(play(game(), drawn(f"{first} 9 {second} T")))
    assert result.outcome["totals"] == {"player": 0, "banker": 9}
    assert result.outcome["winner"] == "banker"


@pytest.mark.article("5(2)")
@pytest.mark.parametrize("rank", "A2345678TJQK")
def test_art_5_2_nine_is_the_highest(rank: str) -> None:
    result = only(play(game(), drawn(f"{rank} 9 T T")))
    assert result.outcome["totals"]["banker"] == 9
    assert result.outcome["winner"] == "banker"


def test_the_helpers_shared_by_card_games() -> None:
    assert len(set(DECK)) == 52
    assert [helpers_of_cards.rank("TD"), helpers_of_cards.suit("TD")] == ["T", "D"]
    assert [helpers_of_cards.colour(f"A{suit}") for suit in "SHDC"] == ["black", "red", "red", "black"]
    assert [PIPS[f"{rank}H"] for rank in "A23456789TJQK"] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10]
    assert helpers_of_cards.points(("9D", "KC", "5H")) == 4


@pytest.mark.article("7(1)")
def test_art_7_1_one_card_each_in_turn_the_player_first() -> None:
    result = only(play(game(), drawn("2S 3H 7D 4C")))
    assert result.outcome["hands"] == {"player": ("2S", "7D"), "banker": ("3H", "4C")}
    views = [look(game(), drawn("2S 3H 7D 4C")[:count]).detail["next"] for count in (1, 2, 3)]
    assert views == ["banker", "player", "banker"]


@pytest.mark.article("7(2)")
def test_art_7_2_all_cards_face_up_and_back_after_the_coup() -> None:
    ruleset = game(device="continuous")
    cards: list[Event] = [CardDrawn("9S", "up"), CardDrawn("2S", "down"), CardsReturned(1), *drawn("T 4")]
    result = only(play(ruleset, [*cards, CardsReturned(4)]))
    assert noted(result) == [("card_face_down", "7(2)"), ("cards_returned_early", "7(2)")]
    assert "face_up" not in result.outcome
    assert noted(only(play(game(), cards))) == []


@pytest.mark.article("8")
@pytest.mark.parametrize("opening", ["bell", "first_card"])
def test_art_8_a_card_is_burnt_at_the_beginning_of_each_coup(opening: Literal["bell", "first_card"]) -> None:
    coup = rung("5 " + PLAYER_WINS) if opening == "bell" else drawn("5 " + PLAYER_WINS)
    found = results(play(game(opening=opening, burn_each_coup=True), coup * 2))
    assert [hands_of(one) for one in found] == [("9T", "24")] * 2
    assert all("8" in laws(one) for one in found)


# ---- art. 9: every cell. D draws, S stands; columns: the player's third card 0 (ten, figure) 1 … 9, none, his natural.

TABLE_OF_ART_9 = """
0 DDDDDDDDDD D S
1 DDDDDDDDDD D S
2 DDDDDDDDDD D S
3 DDDDDDDDSD D S
4 SSDDDDDDSS D S
5 SSSSDDDDSS D S
6 SSSSSSDDSS S S
7 SSSSSSSSSS S S
"""
BANKER_DRAWS = {int(row[0]): row[2:].replace(" ", "") for row in TABLE_OF_ART_9.split("\n") if row}
# By the letter, the paragraph each of those cells cites.
PARAGRAPHS: dict[int, tuple[str, str]] = {
    0: ("9(3)(1)", ""),
    1: ("9(3)(1)", ""),
    2: ("9(3)(1)", ""),
    3: ("9(3)(2)", "9(4)(1)"),
    4: ("9(3)(3)", "9(4)(2)"),
    5: ("9(3)(4)", "9(4)(3)"),
    6: ("9(3)(5)", "9(4)(4)"),
    7: ("", "9(4)(5)"),
}


def two(total: int) -> tuple[str, str]:
    return RANK_OF[total], "J"


@pytest.mark.article(
    "9",
    "9(1)",
    "9(3)(1)",
    "9(3)(2)",
    "9(3)(3)",
    "9(3)(4)",
    "9(3)(5)",
    "9(4)(1)",
    "9(4)(2)",
    "9(4)(3)",
    "9(4)(4)",
    "9(4)(5)",
)
@pytest.mark.parametrize("player", range(6))
@pytest.mark.parametrize("banker", range(8))
def test_art_9_after_a_third_card_of_the_player(player: int, banker: int) -> None:
    for third in "TA23456789JQK":
        points = RANK_OF.find(third) if third in RANK_OF else 0
        draws = BANKER_DRAWS[banker][points] == "D"
        first, second = two(player), two(banker)
        cards = [first[0], second[0], first[1], second[1], third]
        verdicts = play(game(), drawn(" ".join([*cards, "5"] if draws else cards)))
        result = only(verdicts)
        assert kinds(verdicts)[-1] is Resolved
        assert hands_of(result) == ("".join(first) + third, "".join(second) + ("5" if draws else ""))
        assert laws(result)[2:4] == ["9(1)", PARAGRAPHS[banker][not draws]]
        if draws:
            assert not results(play(game(), drawn(" ".join(cards))))


@pytest.mark.article("9(2)", "9(3)(6)", "9(4)(4)", "9(4)(5)")
@pytest.mark.parametrize("player", [6, 7])
@pytest.mark.parametrize("banker", range(8))
def test_art_9_the_player_stands_on_6_and_7(player: int, banker: int) -> None:
    draws = BANKER_DRAWS[banker][10] == "D"
    first, second = two(player), two(banker)
    result = only(play(game(), drawn(" ".join([first[0], second[0], *first[1], second[1], *(["5"] if draws else [])]))))
    assert hands_of(result) == ("".join(first), "".join(second) + ("5" if draws else ""))
    paragraph = "9(3)(6)" if draws else "9(4)(4)" if banker == 6 else "9(4)(5)"
    assert laws(result)[2:4] == ["9(2)", paragraph]


@pytest.mark.article("9(2)", "9(4)(5)", "9(4)(6)")
@pytest.mark.parametrize(("player", "banker"), [totals for totals in product(range(10), range(10)) if max(totals) >= 8])
def test_art_9_naturals_end_the_coup(player: int, banker: int) -> None:
    first, second = two(player), two(banker)
    result = only(play(game(), drawn(f"{first[0]} {second[0]} {first[1]} {second[1]}")))
    assert hands_of(result) == ("".join(first), "".join(second))
    assert laws(result)[2:4] == ["9(2)", "9(4)(6)" if player >= 8 else "9(4)(5)"]
    assert result.outcome["natural"]
    assert result.outcome["winner"] == ("tie" if player == banker else "player" if player > banker else "banker")


def test_an_ending_on_eight_with_three_cards_is_no_natural() -> None:
    result = only(play(game(), drawn("A 7 T T 7")))
    assert result.outcome["totals"] == {"player": 8, "banker": 7}
    assert not result.outcome["natural"]


# ---- art. 10: errors in the deal


def fixed(player: str, banker: str) -> DealCorrected:
    """Hands put right; bare ranks are spades."""
    return DealCorrected({"player": tuple(f"{one}S" for one in player), "banker": tuple(f"{one}S" for one in banker)})


@pytest.mark.article("10")
def test_art_10_corrected_hands_replace_those_dealt_and_the_deal_goes_on() -> None:
    result = only(play(game(), [*drawn("5 5 5"), fixed("52", "3"), *drawn("T A"), *drawn("4")]))
    assert hands_of(result) == ("52", "3TA")
    assert "10" in laws(result)
    assert result.evidence == ("e1", "e2", "e3", "e4", "e5", "e6")


@pytest.mark.article("10")
def test_art_10_a_suspended_coup_goes_on_from_the_corrected_hands() -> None:
    events = [*drawn("9 2"), CardUnreadable(), *drawn("K Q"), fixed("9", "2"), *drawn("T 4")]
    verdicts = play(game(), events)
    assert kinds(verdicts) == [Opened, Closed, Suspended, Resolved]
    assert hands_of(only(verdicts)) == ("9T", "24")


@pytest.mark.article("10")
def test_art_10_a_card_entered_by_hand_and_then_told_by_the_shoe_is_not_dealt_twice() -> None:
    """Its line was held up: the supervisor entered what lay there, and now the shoe tells the same card."""
    late = [*drawn("5 5"), fixed("52", "5"), *drawn("2")]
    verdicts = play(game(), late)
    assert kinds(verdicts) == [Opened, Closed, Suspended]
    assert hands_of(only(play(game(), [*late, fixed("52", "53")]))) == ("52", "53")
    other = play(game(), [*drawn("5 5"), fixed("52", "5"), *drawn("9")])
    assert Suspended not in kinds(other)


@pytest.mark.article("10")
@pytest.mark.parametrize("interrupted", [1, 2, 3, 4, 5])
def test_art_10_complete_hands_resolve_a_suspended_coup_at_once(interrupted: int) -> None:
    dealt = drawn("A 2 T T A 4")
    events = [*dealt[:interrupted], CardUnreadable(), fixed("ATA", "2T4")]
    verdicts = play(game(), events)
    assert kinds(verdicts) == [Opened, Closed, Suspended, Resolved]
    assert wins(only(verdicts)) == {"banker": "19/20", "lucky_6": "20"}


BROKEN = [
    fixed("9T5", "24"),  # a third card beside a natural
    fixed("6T", "245"),  # the banker stands on 6
    fixed("T6", "7T5"),  # both stand
    fixed("2T5", "24T"),  # the banker stands on 6 against a 5
    fixed("2T", "25T"),  # the banker draws before the player
    fixed("2T55", "25"),  # four cards
    fixed("2", "24"),  # the banker is dealt second
    fixed("", "2"),
    fixed("22", ""),
    DealCorrected({"player": ("9S", "TS"), "banker": ("2S", "4S"), "third": ("AS",)}),
    DealCorrected({"player": ("9S", "1S"), "banker": ("2S", "4S")}),
]


@pytest.mark.article("6", "7(1)", "9", "10")
@pytest.mark.parametrize("broken", BROKEN)
def test_art_10_hands_that_break_arts_7_and_9_stay_suspended(broken: DealCorrected) -> None:
    suspended = play(game(), [*drawn("9 2"), CardUnreadable(), broken])
    assert kinds(suspended) == [Opened, Closed, Suspended, Suspended]
    dealing = play(game(), [*drawn("9 2"), broken, *drawn("T 4"), fixed("9T", "24")])
    assert kinds(dealing) == [Opened, Closed, Suspended, Resolved]


def test_art_10_hands_without_a_card_leave_the_coup_to_be_dealt() -> None:
    events = [BetsOpened(), *drawn("5"), DealCorrected({}), BetsClosed(), *drawn(PLAYER_WINS)]
    verdicts = play(bell(), events)
    assert kinds(verdicts) == [Opened, Closed, Suspended, Resolved]
    unsure = play(bell(burn_each_coup=True), [*events[:4], fixed("9T", "24")])
    assert kinds(unsure) == [Opened, Closed, Suspended, Suspended, Resolved]


@pytest.mark.article("10, second sentence")
def test_art_10_an_error_that_cannot_be_corrected_voids_the_coup_and_all_bets_come_back() -> None:
    bets = [WagerPlaced(1, "player", 100), WagerPlaced(1, "jackpot", 10), WagerPlaced(2, "tie", 7)]
    events: list[Event] = [*rung("9 2", *bets), RoundVoided("a card fell to the floor")]
    result = only(play(bell(jackpot="A"), events))
    assert result.void == Void(say("declared_for", text="a card fell to the floor"), "returned", "returned")
    assert {(one.seat, one.bet): one.returned for one in result.settlements} == {
        (1, "player"): 100,
        (1, "jackpot"): 10,
        (2, "tie"): 7,
    }
    assert laws(result) == ["10"]
    assert hands_of(result) == ("9", "2")
    assert not result.winners
    no_jackpot = only(play(bell(), [*rung("9"), RoundVoided()])).void
    assert no_jackpot == Void(say("declared"), "returned")


@pytest.mark.article("10, second sentence")
def test_art_10_cards_of_a_void_coup_begin_no_other() -> None:
    for sync in (BetsOpened(), RoundPaid(), ShoeStarted()):
        ruleset = game(device="continuous")
        events = [*drawn("9 2"), RoundVoided(), *drawn("T"), CardUnreadable(), sync, *drawn(TIE)]
        verdicts = play(ruleset, events)
        assert codes(verdicts) == ["card_of_void_coup"] * 2
        assert [one.void is None for one in results(verdicts)] == [False, True]
        assert hands_of(results(verdicts)[1]) == ("7T", "34")


@pytest.mark.article("10")
def test_art_10_correction_after_the_result_supersedes_it() -> None:
    bets = WagerPlaced(1, "player", 100)
    verdicts = play(bell(), [*rung(PLAYER_WINS, bets), RoundPaid(), fixed("24", "9T"), fixed("9T", "9T")])
    assert kinds(verdicts) == [Opened, Closed, Resolved, Corrected, Corrected]
    first, second, third = [one.result for one in verdicts if isinstance(one, Resolved | Corrected)]
    assert first.supersedes == ""
    assert second.supersedes == second.round == third.supersedes == first.round
    assert wins(second) == {"banker": "19/20"}
    assert [one.returned for one in (*first.settlements, *second.settlements, *third.settlements)] == [200, 0, 100]
    assert second.evidence == (*first.evidence, "e9")
    assert "10" in laws(second)


@pytest.mark.article("10, second sentence")
def test_art_10_void_after_the_result_supersedes_it() -> None:
    verdicts = play(game(), [*drawn(PLAYER_WINS), RoundVoided("marked card"), *drawn(TIE)])
    assert kinds(verdicts) == [Opened, Closed, Resolved, Corrected, Opened, Closed, Resolved]
    void = verdicts[3]
    assert isinstance(void, Corrected)
    assert void.result.void == Void(say("declared_for", text="marked card"), "returned")
    assert void.result.supersedes == void.result.round


@pytest.mark.article("10")
def test_art_10_a_result_whose_corrected_hands_lack_a_card_is_taken_up_again() -> None:
    verdicts = play(bell(), [*rung(PLAYER_WINS), fixed("2T", "24"), *drawn("7 3"), *drawn("9")])
    assert kinds(verdicts)[:4] == [Opened, Closed, Resolved, Corrected]
    corrected = verdicts[3]
    assert isinstance(corrected, Corrected)
    assert hands_of(corrected.result) == ("2T7", "243")
    assert kinds(verdicts)[4:] == [Opened, Closed, Suspended]


def test_art_10_a_result_in_doubt_stands_when_it_is_paid_and_is_void_when_another_coup_begins() -> None:
    doubt = [*rung(PLAYER_WINS, WagerPlaced(1, "player", 100)), fixed("9T5", "24")]
    paid = play(bell(), [*doubt, RoundPaid()])
    assert kinds(paid) == [Opened, Closed, Resolved, Suspended, Corrected]
    assert isinstance(paid[4], Corrected)
    assert wins(paid[4].result) == {"player": "1"}
    void = play(bell(), [*doubt, BetsOpened()])
    assert kinds(void) == [Opened, Closed, Resolved, Suspended, Corrected, Opened]
    assert isinstance(void[4], Corrected)
    assert void[4].result.void is not None
    lacking = play(bell(), [*rung(PLAYER_WINS), fixed("2T", "24"), RoundPaid(), RoundPaid()])
    assert kinds(lacking) == [Opened, Closed, Resolved, Suspended]


def test_art_10_hands_of_the_coup_before_are_not_those_of_a_card_told_twice() -> None:
    """A card told again after its coup ended begins none: who corrects the hands then means those that lie there."""
    again = [*rung("9 2 T 4"), *drawn("4"), fixed("9T", "24")]
    verdicts = play(bell(), [*again, RoundPaid(), *rung(TIE)])
    assert kinds(verdicts)[3:7] == [Opened, Closed, Suspended, Voided]
    first, phantom, following = results(verdicts)
    assert (first.void, following.void) == (None, None)
    assert phantom.void == Void(say("told_twice"), "returned")
    assert hands_of(following) == ("7T", "34")
    assert kinds(play(bell(), [*again, fixed("24", "9T")]))[-1] == Corrected  # the coup before can be corrected still
    by_hand = [BetsOpened(), BetsClosed(), CardUnreadable(), fixed("9", ""), *drawn("2 T 4 4"), fixed("9T", "24")]
    assert [one.void is None for one in results(play(bell(), by_hand))] == [True, False]
    without_bell = play(game(), [*drawn("9 2 T 4 4"), fixed("9T", "24"), RoundPaid(), *drawn(TIE)])
    assert [one.void is None for one in results(without_bell)] == [True, False, True]


@pytest.mark.parametrize("strays", ["3", "9", "3 2", "9 2"])
def test_art_10_the_hands_of_the_coup_before_are_not_those_of_a_card_that_slid_out_with_its_last(strays: str) -> None:
    """The second card of the next coup came with it, later than its driver takes for a misscan."""
    verdicts = play(bell(), [*rung("9 2 T 4"), *drawn(strays), fixed("9T", "24"), RoundPaid(), *rung(TIE)])
    assert kinds(verdicts)[3:7] == [Opened, Closed, Suspended, Voided]
    first, phantom, following = results(verdicts)
    assert (first.void, following.void) == (None, None)
    assert phantom.void == Void(say("not_dealt"), "returned")
    assert hands_of(following) == ("7T", "34")


def test_art_10_a_coup_that_ended_by_a_card_told_twice_is_taken_up_again() -> None:
    """4, and told again, 5, T: 9 for the player. Truly the next T is the banker's, and nobody has a natural."""
    verdicts = play(bell(), [*rung("4 4 5 T"), *drawn("T"), fixed("4T", "5T"), *drawn("3")])
    ended, phantom = results(verdicts)
    assert phantom.void == Void(say("told_twice"), "returned")
    assert isinstance(verdicts[-1], Corrected)
    corrected = verdicts[-1].result
    assert (corrected.supersedes, hands_of(ended), hands_of(corrected)) == (ended.round, ("45", "4T"), ("4T3", "5T"))


def test_art_10_hands_that_the_shoe_did_not_tell_are_those_of_the_open_coup() -> None:
    for told, laid in (("4", ("9T", "25")), ("3", ("9T", "25")), ("9 2", ("9T", "25"))):
        verdicts = play(bell(), [*rung("9 2 T 4"), *drawn(told), fixed(*laid)])
        assert kinds(verdicts)[-1] == Resolved
        assert hands_of(results(verdicts)[-1]) == laid


@pytest.mark.parametrize(
    ("before", "told", "laid", "of_this"),
    [
        # Nothing is told at this table: more than half of the cards in common are those of the coup before.
        (None, "", ("9T", "33"), True),
        (None, "", ("9T", "23"), False),
        (("23A", "34"), "", ("23A", "55"), False),
        # Cards are told: as many that are new to this coup as to the one before are this one's.
        (None, "7", ("7T", "35"), True),
        (None, "7", ("7T", "25"), False),
    ],
)
def test_art_10_hands_that_name_no_coup_are_of_the_one_that_they_hold_more_of(
    before: tuple[str, str] | None, told: str, laid: tuple[str, str], of_this: bool
) -> None:
    first = rung("9 2 T 4") if told else [*rung(""), fixed(*(before or ("9T", "24")))]
    verdicts = play(bell(), [*first, RoundPaid(), *rung(told), fixed(*laid)])
    assert kinds(verdicts)[-1] == (Resolved if of_this else Suspended)


def test_art_10_nothing_to_correct_or_to_void_is_noted() -> None:
    assert codes(play(game(), [fixed("9T", "24"), RoundVoided()])) == ["correction_without_round", "void_without_round"]
    result = only(play(bell(), [BetsOpened(), fixed("9T", "24"), BetsClosed(), *drawn(TIE)]))
    assert noted(result) == [("correction_before_deal", "10")]
    late = [*drawn(PLAYER_WINS), BetsOpened(), RoundVoided(), RoundVoided()]
    assert codes(play(game(), late)) == ["void_without_round"]


# ---- arts. 11 and 12


@pytest.mark.article("11", "12")
@pytest.mark.parametrize(("player", "banker"), list(product(range(6, 10), repeat=2)))
def test_art_11_the_higher_total_wins_and_art_12_equal_totals_tie(player: int, banker: int) -> None:
    first, second = two(player), two(banker)
    result = only(play(game(), drawn(f"{first[0]} {second[0]} {first[1]} {second[1]}")))
    if player == banker:
        assert wins(result) == {"tie": "8"}
        assert result.pushes == ("player", "banker")
        assert laws(result)[4:] == ["12", "17(2)"]
    else:
        assert next(iter(wins(result))) == ("player" if player > banker else "banker")
        assert result.pushes == ()
        assert laws(result)[4:6] == ["11", "17(1)"]


@pytest.mark.article("12", "12(3)(2)")
def test_art_12_stakes_come_back_on_a_tie_and_may_be_placed_anew() -> None:
    bets = [WagerPlaced(1, "player", 100), WagerPlaced(2, "banker", 200), WagerPlaced(3, "tie", 10)]
    moved = [WagerPlaced(1, "banker", 50)]
    verdicts = play(bell(), [*rung(TIE, *bets), *rung(BANKER_7_ON_TWO, *moved)])
    tie, after = results(verdicts)
    assert [one.returned for one in tie.settlements] == [100, 200, 90]
    assert [(one.bet, one.returned, one.exact) for one in after.settlements] == [("banker", 97, "195/2")]


AFTER_A_TIE: list[tuple[str, list[WagerPlaced], list[int]]] = [
    ("12(1)", [], []),
    ("12(2)", [WagerPlaced(1, "player", 100)], [0]),
    ("12(3)(1)", [WagerPlaced(1, "player", 40)], [0]),
    ("12(3)(1)", [WagerPlaced(1, "player", 300)], [0]),
    ("12(3)(2)", [WagerPlaced(1, "banker", 100)], [195]),
    ("12(3)(2)", [WagerPlaced(1, "banker", 40)], [78]),
]


@pytest.mark.article("12", "12(1)", "12(2)", "12(3)(1)", "12(3)(2)")
@pytest.mark.parametrize(("article", "anew", "returned"), AFTER_A_TIE)
def test_art_12_after_a_tie_stakes_are_taken_kept_changed_or_moved(
    article: str, anew: list[WagerPlaced], returned: list[int]
) -> None:
    assert article.startswith("12")
    verdicts = play(bell(), [*rung(TIE, WagerPlaced(1, "player", 100)), RoundPaid(), *rung(BANKER_7_ON_TWO, *anew)])
    tie, after = results(verdicts)
    assert [one.returned for one in tie.settlements] == [100]
    assert [one.stake for one in after.settlements] == [one.amount for one in anew]
    assert [one.returned for one in after.settlements] == returned
    assert not after.irregularities


# ---- arts. 13 and 17: bets and their prizes


@pytest.mark.article("13(1)(1)", "13(1)(2)", "13(1)(3)", "17(1)", "17(2)", "17(3)", "17(4)", "17(5)")
def test_art_13_1_the_bets_and_art_17_their_odds() -> None:
    assert {bet.id: bet.pays for bet in game(commission="six_pays_half").bets()} == {
        "player": "1",
        "banker": "1, or 1/2 with 6",
        "tie": "8",
        "player_pair": "11",
        "banker_pair": "11",
        "dragon_7": "40",
        "lucky_6": "12 or 20",
    }
    assert [bet.id for bet in game(jackpot="C").bets()] == [*FAMILIES, "jackpot"]


PRIZES: list[tuple[str, str, dict[str, str], str]] = [
    ("17(1)", PLAYER_WINS, {"player": "1"}, ""),
    ("17(1)", BANKER_7_ON_TWO, {"banker": "19/20"}, ""),
    ("17(2)", TIE, {"tie": "8"}, ""),
    ("17(2)", NATURAL_TIE, {"tie": "8"}, ""),
    ("17(3)", "9H 2 9D 4", {"player": "1", "player_pair": "11"}, "17(3)"),
    ("17(3)", "9 9 T K", {"tie": "8"}, ""),
    ("17(3)", "2 9 T 9", {"banker": "19/20", "banker_pair": "11"}, "17(3)"),
    ("17(3)", "4 J 5 J", {"player": "1", "banker_pair": "11"}, "17(3)"),
    ("17(3)", "4 J 5 Q", {"player": "1"}, ""),
    ("17(3)", "J 3 Q 5", {"banker": "19/20"}, ""),
    ("17(3)", "T 4 K 4", {"banker": "19/20", "banker_pair": "11"}, "17(3)"),
    ("17(3)", "4 4 4 4", {"tie": "8", "player_pair": "11", "banker_pair": "11"}, "17(3)"),
    ("17(4)", DRAGON_7, {"banker": "19/20", "dragon_7": "40"}, "17(4)"),
    ("17(4)", "7 3 T T 4", {"tie": "8"}, ""),
    ("17(4)", "A T T 3 7 4", {"player": "1"}, ""),  # 7 on three cards, beaten by 8
    ("17(5)", LUCKY_6_TWO, {"banker": "19/20", "lucky_6": "12"}, "17(5)"),
    ("17(5)", LUCKY_6_THREE, {"banker": "19/20", "lucky_6": "20"}, "17(5)"),
    ("17(5)", "6 2 T 4", {"tie": "8"}, ""),
    ("17(5)", "A T T 3 7 3", {"player": "1"}, ""),  # 6, beaten by 8
    ("17(5)", "7 2 T 4", {"player": "1"}, ""),
]


@pytest.mark.article(
    "13(1)(1)",
    "13(1)(2)",
    "13(1)(3)",
    "13(1)(4)(1)",
    "13(1)(4)(2)",
    "13(1)(4)(3)",
    "17(1)",
    "17(2)",
    "17(3)",
    "17(4)",
    "17(5)",
)
@pytest.mark.parametrize(("article", "cards", "winning", "cited"), PRIZES)
def test_art_17_what_wins(article: str, cards: str, winning: dict[str, str], cited: str) -> None:
    result = only(play(game(), drawn(cards)))
    assert article.startswith("17")
    assert wins(result) == winning
    assert (cited in laws(result)) if cited else not {"17(3)", "17(4)", "17(5)"} & set(laws(result))


@pytest.mark.article("13(1)(4)", "13(1)(4)(3)")
def test_art_13_1_4_additional_bets_may_need_a_main_bet_lucky_6_never() -> None:
    sides = ("player_pair", "banker_pair", "dragon_7", "lucky_6")
    alone = [WagerPlaced(1, bet, 10) for bet in sides]
    beside = [*(WagerPlaced(2, bet, 10) for bet in sides), WagerPlaced(2, "tie", 10)]
    free = only(play(bell(), rung(PLAYER_WINS, *alone, *beside)))
    assert len(free.settlements) == 9
    assert not free.irregularities
    strict = only(play(bell(additional_bets="with_main_bet"), rung(PLAYER_WINS, *alone, *beside)))
    first = [(one.bet, one.returned) for one in strict.settlements if one.seat == 1]
    assert first == [("lucky_6", 0), ("player_pair", 10), ("banker_pair", 10), ("dragon_7", 10)]
    assert len([one for one in strict.settlements if one.seat == 2]) == 5
    assert noted(strict) == [("bet_without_main_bet", "13(1)(4)")] * 3


@pytest.mark.parametrize("loss", [EventsMissed(1), DeviceOnline(continuous=False)])
def test_art_13_after_a_loss_nobody_knows_that_a_main_bet_is_missing(loss: Event) -> None:
    """The bet on player may be among the events that are lost."""
    laid: list[Event] = [
        BetsOpened(),
        WagerPlaced(1, "player_pair", 10),
        WagerPlaced(1, "jackpot", 10),
        loss,
        BetsClosed(),
    ]
    verdicts = play(bell(additional_bets="with_main_bet", jackpot="A"), [*laid, RoundVoided("declared")])
    (voided,) = [one.result for one in verdicts if isinstance(one, Voided)]
    assert noted(voided) == []


@pytest.mark.article("19")
def test_art_13_bets_not_offered_are_refused_and_never_win() -> None:
    ruleset = bell(bets_offered=("player", "banker", "tie", "lucky_6"))
    pair_and_dragon = "3 A T A T 5"
    offered = rung(pair_and_dragon, WagerPlaced(1, "banker_pair", 10), WagerPlaced(1, "jackpot", 5))
    result = only(play(ruleset, offered))
    assert wins(result) == {"banker": "19/20"}
    assert "Dragon 7" not in result.announcements["en"]
    assert noted(result) == [("bet_not_offered", "13(1)")] * 2
    assert result.outcome["dragon_7"]
    assert result.outcome["banker_pair"]


def test_wagers_outside_a_coup_are_noted() -> None:
    early = play(bell(), [WagerPlaced(1, "player", 10)])
    assert codes(early) == ["bet_without_round"]
    late = only(play(bell(), [*rung("9 2"), WagerPlaced(1, "player", 10), *drawn("T 4")]))
    assert noted(late) == [("late_bet", "13(1)")]
    taken_back = rung(PLAYER_WINS, WagerPlaced(1, "player", 10), WagerWithdrawn(1, "player"))
    assert not only(play(bell(), taken_back)).settlements


@pytest.mark.article("14")
@pytest.mark.parametrize(("side", "cards"), [("player", PLAYER_WINS), ("banker", BANKER_7_ON_TWO)])
def test_art_14_unequal_sides_are_covered_by_the_house(side: str, cards: str) -> None:
    """Whatever lies on the other side, little or nothing, the winner has his whole prize."""
    other = "banker" if side == "player" else "player"
    for against in ([], [WagerPlaced(2, other, 1)]):
        bets = [WagerPlaced(1, side, 100_000), *against]
        result = only(play(bell(commission="six_pays_half"), rung(cards, *bets)))
        assert [one.returned for one in result.settlements] == [200_000, *(0 for _ in against)]


def test_a_prize_the_smallest_chip_cannot_pay_is_rounded_in_the_stated_direction() -> None:
    for rounding, returned in (("down", 220), ("up", 225)):
        ruleset = bell(smallest_chip=5, rounding=rounding)
        result = only(play(ruleset, rung(BANKER_7_ON_TWO, WagerPlaced(1, "banker", 115))))
        assert [(one.returned, one.exact) for one in result.settlements] == [(returned, "897/4")]


# ---- art. 13(1)(4)(4) and 17(6)-(12): jackpots

JACKPOT_COUPS: list[tuple[str, str, str, str, str]] = [
    # jackpot, cards in the order of the deal, combination, item of art. 13, paragraph of art. 17
    ("A", "AS KS QS JS TS 7H", "royal_flush", "i", "6"),
    ("A", "TD JD QD KD AD 7H", "royal_flush", "i", "6"),
    ("A", "AH KS QS JS TS 7H", "paradise_straight", "ii", "7"),
    ("A", "TD JD QD KD AC 7H", "paradise_straight", "ii", "7"),
    ("A", "AS KS QS JH TS 7H", "", "", ""),
    ("A", "AH KS QS JS 9S 2H", "", "", ""),
    ("A", "4S 4H 4D 4C", "four_of_a_kind", "iii", "8"),
    ("A", "JS JH JD JC 9S 2D", "four_of_a_kind", "iii", "8"),
    ("A", "4S 2S 4H 2H", "double_pairs", "iv", "8"),
    ("A", "KS QH KD QD 7S 7H", "single_pair", "vi", "8"),
    ("A", "3S 8S 3H 8H", "single_pair", "vi", "8"),
    ("A", "AS 6S AH 6H 6D 4D", "single_pair", "vi", "8"),
    ("A", "9S 9H 9D TS", "three_of_a_kind", "v", "8"),
    ("A", "TS 9H 9C 9D", "three_of_a_kind", "v", "8"),
    ("A", "9S 2H 9D 4D", "single_pair", "vi", "8"),
    ("A", "2S 9H 3D 9D", "single_pair", "vi", "8"),
    ("A", "2S 2H 4D 4D", "", "", ""),  # two of a rank in each hand, but no hand is a pair
    ("A", "9S 4S TD 5D", "", "", ""),
    ("B", "KS KH KD KC KS KH", "six_same", "i", "6"),
    ("B", "KS KH KD KC KS 7H", "five_same", "ii", "9"),
    ("B", "2S 2H 2D AC AS AH", "double_three", "iii", "9"),
    ("B", "KS KH KD KC 5S 7H", "four_same", "iv", "9"),
    ("B", "KS KH KD JC 5S 7H", "three_same", "v", "9"),
    ("B", "KS QH JD TC TS 7H", "", "", ""),
    ("B", "4S 4H 4D 4C", "four_same", "iv", "9"),
    ("B", "2S AH 2D AC 2S AD", "double_three", "iii", "9"),
    ("C", "KS KC KS KC KS KC", "six_same_colour", "i", "10"),
    ("C", "AH AD AH AD AH AD", "six_same_colour", "i", "10"),
    ("C", "KS KC KS KC KS KH", "six_same", "ii", "11"),
    ("C", "KS KC KS KC KS 7H", "five_same", "iii", "12"),
    ("C", "2S 2C 2S AC AS AC", "double_three", "iv", "12"),
    ("C", "KS KH KD KC 5S 7H", "four_same", "v", "12"),
    ("C", "KS KH KD JC 5S 7H", "three_same", "vi", "12"),
    ("C", "9S 4S TD 5D", "", "", ""),
]
HOW = {
    **dict.fromkeys(("A royal_flush", "B six_same", "C six_same_colour"), ("pool", "")),
    **dict.fromkeys(("A paradise_straight", "C six_same"), ("larger_of_fixed_and_share", "1/10")),
}


@pytest.mark.article(
    "13(1)(4)(4) A(i)",
    "13(1)(4)(4) A(ii)",
    "13(1)(4)(4) A(iii)",
    "13(1)(4)(4) A(iv)",
    "13(1)(4)(4) A(v)",
    "13(1)(4)(4) A(vi)",
    "13(1)(4)(4) B(i)",
    "13(1)(4)(4) B(ii)",
    "13(1)(4)(4) B(iii)",
    "13(1)(4)(4) B(iv)",
    "13(1)(4)(4) B(v)",
    "13(1)(4)(4) C(i)",
    "13(1)(4)(4) C(ii)",
    "13(1)(4)(4) C(iii)",
    "13(1)(4)(4) C(iv)",
    "13(1)(4)(4) C(v)",
    "13(1)(4)(4) C(vi)",
    "13(2)(1)",
    "13(2)(2)",
    "13(2)(3)",
    "17(6)",
    "17(7)",
    "17(8)",
    "17(9)",
    "17(10)",
    "17(11)",
    "17(12)",
)
@pytest.mark.parametrize(("which", "cards", "combination", "item", "paragraph"), JACKPOT_COUPS)
def test_arts_13_and_17_jackpots(which: str, cards: str, combination: str, item: str, paragraph: str) -> None:
    ruleset = game(jackpot=which)
    verdicts = play(ruleset, [*drawn(cards), *drawn("2 3 2 3")])
    result = results(verdicts)[0]
    assert sum(len(hand) for hand in result.outcome["hands"].values()) == len(cards.split())
    if not combination:
        assert result.jackpots == ()
        return
    pays, share = HOW.get(f"{which} {combination}", ("fixed", ""))
    (award,) = result.jackpots
    law = f"{CITED}13(1)(4)(4) {which}({item}), art. 17({paragraph})"
    assert (award.jackpot, award.combination, award.pays) == (which, combination, pays)
    assert (award.law, award.share, award.among) == (law, share, ())


@pytest.mark.article("13(2)(2)", "13(2)(3)")
@pytest.mark.parametrize(("which", "combination"), [("A", ["single_pair"]), ("B", []), ("C", [])])
def test_art_13_2_a_burnt_card_does_not_lie_on_the_table(which: str, combination: list[str]) -> None:
    """Three nines left the shoe, two lie on the table: the first was burnt (art. 8)."""
    result = only(play(game(jackpot=which, burn_each_coup=True), drawn("9S 9H 4D 9C 5S")))
    assert [award.combination for award in result.jackpots] == combination


SHARED = [  # one combination of each paragraph of art. 17
    ("A", "AS KS QS JS TS 7H", "6"),
    ("B", "KS KH KD KC KS KH", "6"),
    ("A", "AH KS QS JS TS 7H", "7"),
    ("A", "4S 4H 4D 4C", "8"),
    ("B", "4S 4H 4D 4C", "9"),
    ("C", "KS KC KS KC KS KC", "10"),
    ("C", "KS KC KS KC KS KH", "11"),
    ("C", "4S 4H 4D 4C", "12"),
]


@pytest.mark.article("17(6)", "17(7)", "17(8)", "17(9)", "17(10)", "17(11)", "17(12)")
@pytest.mark.parametrize(("which", "cards", "paragraph"), SHARED)
def test_art_17_6_to_12_in_equal_parts_among_those_who_bet_on_it(which: str, cards: str, paragraph: str) -> None:
    """Each once, whatever was laid and when; no coup's jackpot is another's."""
    bets = [WagerPlaced(seat, "jackpot", seat * 10) for seat in (5, 2, 5)]
    bets += [WagerPlaced(seat, "banker", 5) for seat in (2, 5, 6)]
    verdicts = play(bell(jackpot=which), [*rung(cards, *bets), RoundPaid(), *rung(TIE)])
    result, other = results(verdicts)
    (award,) = result.jackpots
    assert award.law.endswith(f"17({paragraph})")
    assert award.among == (2, 5)
    assert other.jackpots == ()


def test_every_combination_of_art_13_has_a_coup_above() -> None:
    shown = {(which, combination) for which, _, combination, _, _ in JACKPOT_COUPS if combination}
    assert shown == {(which, combination) for which, table in JACKPOTS.items() for combination in table}


@pytest.mark.article("13(1)(4)(4) A(iv)")
def test_art_13_a_iv_double_pairs_by_rank() -> None:
    for cards in ("KS QH KD QD 7S 7H", "3S 8S 3H 8H"):
        (award,) = only(play(game(jackpot="A", double_pairs_by="rank"), drawn(cards))).jackpots
        assert award.combination == "double_pairs"


@pytest.mark.article("17(12)")
def test_art_17_12_prints_no_prize_for_five_of_the_same_value() -> None:
    ruleset = game(jackpot="C", c_five_same="none")
    assert only(play(ruleset, drawn("KS KC KS KC KS 7H"))).jackpots == ()
    assert only(play(ruleset, drawn("KS KH KD KC 5S 7H"))).jackpots[0].combination == "four_same"


@pytest.mark.article("17(11)")
def test_art_17_11_the_share_is_the_house_s() -> None:
    assert BaccaratOptions(jackpot="C", c_six_share="1/1").c_six_share == "1/1"
    (award,) = only(play(game(jackpot="C", c_six_share="1/4"), drawn("KS KC KS KC KS KH"))).jackpots
    assert (award.pays, award.share) == ("larger_of_fixed_and_share", "1/4")


@pytest.mark.article("13(3)", "17(8)")
def test_art_13_3_shared_among_seats_with_a_jackpot_bet_and_a_main_bet() -> None:
    bets = [
        *(WagerPlaced(seat, "jackpot", 10) for seat in (7, 3, 5, 1)),
        WagerPlaced(7, "tie", 100),
        WagerPlaced(3, "player", 100),
        WagerPlaced(5, "player_pair", 100),  # no main bet
        WagerPlaced(4, "banker", 100),  # no jackpot bet
    ]
    result = only(play(bell(jackpot="A"), rung("4S 4H 4D 4C", *bets)))
    assert result.jackpots == (
        Award("A", "four_of_a_kind", "fixed", f"{CITED}13(1)(4)(4) A(iii), art. 17(8)", "", (3, 7)),
    )
    assert noted(result) == [("bet_without_main_bet", "13(3)")] * 2
    jackpots = {one.seat: one.returned for one in result.settlements if one.bet == "jackpot"}
    assert jackpots == {7: 0, 3: 0, 5: 10, 1: 10}


@pytest.mark.article("17(6)", "13(3)")
@pytest.mark.parametrize("lost", [False, True])
def test_art_17_6_a_coup_on_which_nobody_bet_wins_no_jackpot(lost: bool) -> None:
    """Bets were told at this table before. After a loss the bettors of the coup are not known: a person names them."""
    first = rung("9S 9H 4D 9C", WagerPlaced(1, "player", 100))
    coup = rung("4S 4H 4D 4C")
    missed = [EventsMissed(count=2)] if lost else []
    events = [*first, RoundPaid(), coup[0], *missed, *coup[1:]]
    found = results(play(bell(jackpot="A"), events))
    assert bool(found[-1].jackpots) == lost
    untold = only(play(bell(jackpot="A"), coup))  # a table whose bets are never told
    assert [one.among for one in untold.jackpots] == [()]


def by_the_letter_a(cards: Sequence[str]) -> str:
    """Jackpot A from the words of the article, one after another, without counting."""
    five, (p1, b1, p2, b2) = list(cards[:5]), cards[:4]
    ranks = "".join(sorted(card[0] for card in five))
    if ranks == "AJKQT":
        if all(card[1] == five[0][1] for card in five):
            return "royal_flush"
        others = [card for card in five if card[0] != "A"]
        if all(card[1] == others[0][1] for card in others):
            return "paradise_straight"
    if p1[0] == b1[0] == p2[0] == b2[0]:
        return "four_of_a_kind"
    values = {rank: min(place + 1, 10) for place, rank in enumerate("A23456789TJQK")}
    if p1[0] == p2[0] and b1[0] == b2[0] and (2 * values[p1[0]]) % 10 != (2 * values[b1[0]]) % 10:
        return "double_pairs"
    if any(x[0] == y[0] == z[0] for x, y, z in ((p1, b1, p2), (p1, b1, b2), (p1, p2, b2), (b1, p2, b2))):
        return "three_of_a_kind"
    return "single_pair" if p1[0] == p2[0] or b1[0] == b2[0] else ""


ROYAL = st.permutations([f"{rank}{suit}" for rank, suit in zip("AKQJT", "HSSSS", strict=True)])
FEW_RANKS = st.lists(st.sampled_from([card for card in DECK if card[0] in "AJQK46"]), min_size=4, max_size=6)


@pytest.mark.article(
    "13(1)(4)(4) A(i)",
    "13(1)(4)(4) A(ii)",
    "13(1)(4)(4) A(iii)",
    "13(1)(4)(4) A(iv)",
    "13(1)(4)(4) A(v)",
    "13(1)(4)(4) A(vi)",
)
@settings(max_examples=at_length(50, 1_000))
@given(ROYAL | FEW_RANKS)
def test_jackpot_a_agrees_with_its_article_word_by_word(cards: list[str]) -> None:
    assert combination_a(tuple(cards), "points") == by_the_letter_a(cards)


# ---- arts. 15, 16, 18, 19


@pytest.mark.article("16(1)", "16(2)")
def test_art_16_the_highest_seated_bettor_of_each_side_may_handle_its_cards() -> None:
    bets = [
        WagerPlaced(seat, bet, amount) for seat, bet, amount in ((3, "player", 5), (1, "player", 9), (7, "banker", 4))
    ]
    ruleset = bell(players_handle_cards=True)
    assert "handles" not in look(ruleset, rung("9", *bets)[:-2]).detail
    assert look(ruleset, rung("9", *bets)).detail["handles"] == {"player": 1, "banker": 7}
    assert look(ruleset, rung("9", WagerPlaced(2, "tie", 5))).detail["handles"] == {}
    equal = rung("9", WagerPlaced(5, "player", 10), WagerPlaced(2, "player", 10))
    assert look(ruleset, equal).detail["handles"] == {"player": 5}
    assert "handles" not in look(bell(), rung("9", *bets)).detail


COMMISSIONS: list[tuple[str, str, dict[str, str], tuple[str, ...], str]] = [
    ("5_percent", BANKER_7_ON_TWO, {"banker": "19/20"}, (), "18(1)"),
    ("5_percent", DRAGON_7, {"banker": "19/20", "dragon_7": "40"}, (), "18(1)"),
    ("5_percent", LUCKY_6_TWO, {"banker": "19/20", "lucky_6": "12"}, (), "18(1)"),
    ("5_percent", PLAYER_WINS, {"player": "1"}, (), ""),
    ("six_pays_half", LUCKY_6_TWO, {"banker": "1/2", "lucky_6": "12"}, (), "18(2)"),
    ("six_pays_half", LUCKY_6_THREE, {"banker": "1/2", "lucky_6": "20"}, (), "18(2)"),
    ("six_pays_half", BANKER_7_ON_TWO, {"banker": "1"}, (), "18(2)"),
    ("six_pays_half", DRAGON_7, {"banker": "1", "dragon_7": "40"}, (), "18(2)"),
    ("six_pays_half", "6 A T 5", {"tie": "8"}, ("player", "banker"), ""),
    ("dragon_7_push", DRAGON_7, {"dragon_7": "40"}, ("banker",), "18(3)"),
    ("dragon_7_push", BANKER_7_ON_TWO, {"banker": "1"}, (), "18(3)"),
    ("dragon_7_push", LUCKY_6_THREE, {"banker": "1", "lucky_6": "20"}, (), "18(3)"),
    ("dragon_7_push", "7 3 T T 4", {"tie": "8"}, ("player", "banker"), ""),
]


@pytest.mark.article("18(1)", "18(2)", "18(3)")
@pytest.mark.parametrize(("commission", "cards", "winning", "pushes", "article"), COMMISSIONS)
def test_art_18_three_commissions(
    commission: str, cards: str, winning: dict[str, str], pushes: tuple[str, ...], article: str
) -> None:
    result = only(play(game(commission=commission), drawn(cards)))
    assert wins(result) == winning
    assert result.pushes == pushes
    assert [law for law in laws(result) if law.startswith("18")] == ([article] if article else [])
    assert ("11" in laws(result), "12" in laws(result)) == ((False, True) if "tie" in winning else (True, False))
    gross = {win.bet: win.gross for win in result.winners if win.gross}
    assert gross == ({"banker": "1"} if winning.get("banker") == "19/20" else {})


@pytest.mark.article("18(3)")
def test_art_18_3_on_a_dragon_7_player_and_tie_are_lost() -> None:
    bets = [WagerPlaced(1, bet, 100) for bet in FAMILIES]
    result = only(play(bell(commission="dragon_7_push"), rung(DRAGON_7, *bets)))
    back = {one.bet: one.returned for one in result.settlements}
    assert back == {**dict.fromkeys(FAMILIES, 0), "banker": 100, "dragon_7": 4100}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"device": "continuous", "burn": "first_card"}, r"art. 2\(3\)"),
    ({"device": "continuous", "burn": "fixed", "burn_fixed": 4}, r"art. 2\(3\)"),
    ({"device": "continuous", "burn_fixed": 4}, r"art. 2\(3\)"),
    ({"device": "continuous", "burn_each_coup": True}, "art. 8"),
    ({"device": "continuous", "demonstration_rounds": 1}, r"art. 2\(2\)"),
    ({"device": "continuous", "cut_card": "one_more"}, r"3\(1\)"),
    ({"device": "continuous", "players_handle_cards": True}, r"art. 7\(2\)"),
    ({"burn_fixed": 4}, r"art. 2\(1\)\(3\)"),
    ({"burn": "fixed", "burn_fixed": 9}, "burn_fixed"),
    ({"demonstration_rounds": 4}, "demonstration_rounds"),
    ({"bets_offered": ["player", "banker", "tie", "panda_8"]}, "art. 13"),
    ({"bets_offered": ["player", "banker", "tie", "jackpot"]}, "chosen with `jackpot`"),
    ({"bets_offered": ["player", "banker"]}, "19.*add tie"),
    ({"double_pairs_by": "rank"}, r"art. 13\(1\)\(4\)\(4\)"),
    ({"double_pairs_by": "rank", "jackpot": "B"}, r"art. 13\(1\)\(4\)\(4\)"),
    ({"c_five_same": "none", "jackpot": "B"}, r"17\(9\)"),
    ({"c_six_share": "1/4", "jackpot": "A"}, r"art. 17\(11\)"),
    ({"c_six_share": "5/4", "jackpot": "C"}, r"art. 17\(11\)"),
    ({"c_six_share": "1/0", "jackpot": "C"}, "c_six_share"),
    ({"commission": "none"}, "commission"),
    ({"jackpot": "D"}, "jackpot"),
]


@pytest.mark.article("2(1)(3)", "2(2)", "2(3)", "8", "19")
@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_art_19_what_the_text_excludes_is_refused_with_its_article(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        options_from(Baccarat, options)


@pytest.mark.article("19")
def test_art_19_every_option_names_its_article() -> None:
    infos = options_of(BaccaratOptions)
    assert len(infos) == len(BaccaratOptions.__struct_fields__)
    assert all(info.law and info.text for info in infos)


# ---- what stands in a result


def test_a_result_says_hands_totals_words_options_and_evidence() -> None:
    result = only(play(bell(jackpot="A"), rung(DRAGON_7.replace("3 2", "3S 2D", 1))))
    assert result.round == "t-1:2026-11-20:1:1"
    assert (result.ruleset, result.edition) == ("macau.baccarat", "2018")
    assert msgspec.json.decode(result.options, type=BaccaratOptions) == BaccaratOptions(opening="bell", jackpot="A")
    assert result.outcome == {
        "hands": {"player": ("3S", "TS", "TS"), "banker": ("2D", "AS", "4S")},
        "totals": {"player": 3, "banker": 7},
        "winner": "banker",
        "player_pair": False,
        "banker_pair": False,
        "dragon_7": True,
        "lucky_6": False,
        "natural": False,
    }
    assert result.announcements == {
        "pt": "Banca ganha, 7 contra 3, Sete Dragão",
        "zh-Hant": "莊贏，7點對3點，龍七",
        "en": "Banker wins, 7 to 3, Dragon 7",
    }
    assert result.evidence == tuple(f"e{n}" for n in range(1, 9))
    assert laws(result) == ["5", "7(1)", "9(1)", "9(3)(2)", "11", "17(1)", "18(1)", "17(4)"]


def test_announcements_in_three_languages() -> None:
    tie = only(play(game(), drawn(TIE))).announcements
    assert tie == {"pt": "Empate a 7", "zh-Hant": "和，7點", "en": "Tie, 7 all"}
    natural = only(play(game(), drawn("9H 2 9D 4"))).announcements
    assert natural == {
        "pt": "Jogador ganha, 8 contra 6, par de jogador",
        "zh-Hant": "閒贏，8點對6點，閒對",
        "en": "Player wins, 8 to 6, player pair",
    }
    lucky = only(play(game(), drawn("T 3 2 3 2"))).announcements
    assert lucky == {
        "pt": "Banca ganha, 6 contra 4, par de banca, 6 Sortudo",
        "zh-Hant": "莊贏，6點對4點，莊對，幸運六",
        "en": "Banker wins, 6 to 4, banker pair, Lucky 6",
    }


# ---- rounds have one name for ever


def at(events: Iterable[tuple[datetime, Event]]) -> Iterator[Envelope]:
    for number, (time_, event) in enumerate(events, 1):
        yield Envelope(f"e{number}", "felt/1/site/table/t-1/device/d-1", time_, event, number)


def ids(ruleset: Baccarat, events: Iterable[tuple[datetime, Event]]) -> list[str]:
    state, opened = ruleset.start("t-1"), list[str]()
    for seen in at(events):
        state, verdicts = ruleset.apply(state, seen)
        opened += [one.round.removeprefix("t-1:") for one in verdicts if isinstance(one, Opened)]
    return opened


def test_a_round_is_named_by_table_day_shoe_of_the_day_and_coup_of_the_shoe() -> None:
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    late = datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC)
    early = datetime(2026, 11, 21, 0, 0, 1, tzinfo=UTC)
    start: list[Event] = [ShoeStarted(), *drawn("5")]
    coup = drawn(PLAYER_WINS)
    events = [(noon, one) for one in [*coup, *start, *coup, *coup, *start, *coup]]
    events += [(early, one) for one in coup]  # the shoe under way is the first of the new day
    events += [(late, one) for one in coup]  # a clock that is behind
    events += [(early, one) for one in [*start, *coup]]
    events += [(early + timedelta(days=1), one) for one in [*start, *coup]]
    assert ids(game(burn="fixed"), events) == [
        "2026-11-20:1:1",
        "2026-11-20:2:1",
        "2026-11-20:2:2",
        "2026-11-20:3:1",
        "2026-11-21:1:2",
        "2026-11-21:1:3",
        "2026-11-21:2:1",
        "2026-11-22:1:1",
    ]


def test_a_clock_set_back_by_years_repeats_no_round() -> None:
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    shoe: list[Event] = [ShoeStarted(), *drawn("5"), *drawn(PLAYER_WINS), *drawn(PLAYER_WINS)]
    times = [noon, noon, noon.replace(year=2000), noon, noon]
    named = ids(game(burn="fixed"), [(time_, one) for time_ in times for one in shoe])
    assert len(named) == len(set(named)) == 10


# ---- how a coup begins, and what is in doubt


def test_first_card_opens_and_closes_the_coup() -> None:
    assert kinds(play(game(), drawn(PLAYER_WINS)[:1])) == [Opened, Closed]
    assert kinds(play(game(), [BetsOpened(), *drawn("9")])) == [Opened, Closed]
    assert kinds(play(game(), rung("9"))) == [Opened, Closed]
    assert play(game(), [BetsClosed()]) == []
    verdicts = play(game(), drawn(PLAYER_WINS + " " + TIE))
    assert kinds(verdicts) == [Opened, Closed, Resolved] * 2


def test_bell_opens_with_the_bets_and_deals_after_the_bell() -> None:
    assert kinds(play(bell(), [BetsOpened(), BetsOpened()])) == [Opened]
    assert kinds(play(bell(), [BetsOpened(), BetsClosed(), BetsClosed()])) == [Opened, Closed]
    assert codes(play(bell(), [BetsClosed()])) == ["bell_without_round"]
    again = only(play(bell(), [*rung("9 2"), BetsClosed(), *drawn("T 4")]))
    assert noted(again) == [("bell_during_deal", "10")]


@pytest.mark.article("10")
def test_bell_a_card_before_it_is_an_error_of_art_10() -> None:
    stray = play(bell(), drawn("9 2 T 4"))
    assert kinds(stray) == [Opened, Closed, Suspended]
    early = play(bell(), [BetsOpened(), *drawn("9"), BetsClosed(), *drawn("2 T 4"), *rung(TIE)])
    assert kinds(early) == [Opened, Closed, Suspended, Voided, Opened, Closed, Resolved]


@pytest.mark.article("9", "10")
def test_bell_one_card_too_many_suspends() -> None:
    verdicts = play(bell(), [*rung(PLAYER_WINS), *drawn("5"), BetsOpened()])
    assert kinds(verdicts) == [Opened, Closed, Resolved, Opened, Closed, Suspended, Voided, Opened]


LOSSES: list[Event] = [CardUnreadable(), EventsMissed(1), DeviceOnline(False), CardDrawn("1S")]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("opening", ["bell", "first_card"])
@pytest.mark.parametrize("dealt", range(1, 6))
def test_a_loss_while_cards_are_dealt_suspends(opening: Literal["bell", "first_card"], dealt: int, loss: Event) -> None:
    cards = drawn("A 2 T T A 4")
    start: list[Event] = [BetsOpened(), BetsClosed()] if opening == "bell" else []
    verdicts = play(game(opening=opening), [*start, *cards[:dealt], loss, loss, *cards[dealt:], *cards])
    assert kinds(verdicts) == [Opened, Closed, Suspended]
    assert isinstance(verdicts[-1], Suspended)
    assert verdicts[-1].reason
    assert verdicts[-1].remedy.code == "do_correct_coup"


ENDS: list[Event] = [BetsOpened(), ShoeStarted(), RoundVoided()]


@pytest.mark.article("10, second sentence")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("opening", ["bell", "first_card"])
def test_a_suspended_coup_is_void_when_another_begins(end: Event, opening: Literal["bell", "first_card"]) -> None:
    verdicts = play(game(opening=opening), [*rung("9", WagerPlaced(1, "player", 50)), CardUnreadable(), end])
    assert kinds(verdicts)[:4] == [Opened, Closed, Suspended, Voided]
    assert kinds(verdicts)[4:] == ([Opened] if isinstance(end, BetsOpened) else [])
    assert [one.returned for one in only(verdicts).settlements] == [50]


@pytest.mark.parametrize("end", [BetsOpened(), ShoeStarted()])
def test_a_coup_never_completed_is_void_when_another_begins(end: Event) -> None:
    result = only(play(bell(), [*rung("9 2"), end]))
    assert result.void == Void(say("never_completed"), "returned")
    unbegun = only(play(bell(), [BetsOpened(), BetsClosed(), end]))
    assert unbegun.void is not None


def test_before_the_bell_a_missed_event_does_no_harm_an_unreadable_card_does() -> None:
    missed: list[Event] = [EventsMissed(2), DeviceOnline(False), BetsOpened(), EventsMissed(2), BetsClosed()]
    assert hands_of(only(play(bell(), [*missed, *drawn(PLAYER_WINS)]))) == ("9T", "24")
    assert kinds(play(bell(), [BetsOpened(), CardUnreadable(), BetsClosed()])) == [Opened, Closed, Suspended]
    assert codes(play(bell(), [CardUnreadable()])) == ["unreadable_between_coups"]
    assert kinds(play(bell(), [BetsOpened(), BetsClosed(), EventsMissed(1)])) == [Opened, Closed, Suspended]


@pytest.mark.article("2(1)")
def test_bell_a_doubtful_burn_lasts_until_the_bets_are_opened() -> None:
    for loss in (CardUnreadable(), EventsMissed(1), DeviceOnline(False)):
        burn = [ShoeStarted(), *drawn("5"), loss, *drawn("5 5 5 5 5 5 5")]
        result = only(play(bell(burn="first_card"), [*burn, *rung(PLAYER_WINS)]))
        assert hands_of(result) == ("9T", "24")
        assert not result.irregularities
        for late in (CardDrawn("5S"), CardUnreadable()):
            verdicts = play(bell(burn="first_card"), [*burn, BetsOpened(), late, BetsClosed(), *drawn(PLAYER_WINS)])
            assert [kind for kind in kinds(verdicts) if kind is not Noted] == [Opened, Closed, Suspended]
    assert codes(play(bell(), [ShoeStarted(), CardUnreadable()])) == ["burn_uncertain"]


def test_bell_bets_opened_again_after_a_loss_are_those_of_the_next_coup() -> None:
    bets = [WagerPlaced(1, "player", 100), WagerPlaced(1, "player", 50)]
    kept = play(bell(), [BetsOpened(), bets[0], BetsOpened(), bets[1], BetsClosed(), *drawn(PLAYER_WINS)])
    assert [one.stake for one in only(kept).settlements] == [150]
    lost = play(bell(), [BetsOpened(), bets[0], EventsMissed(7), RoundPaid(), *rung(PLAYER_WINS, bets[1])])
    assert [[one.returned for one in result.settlements] for result in results(lost)] == [[], [100]]
    assert [result.void is None for result in results(lost)] == [False, True]


ROYAL_AND_BETS = rung("KS JS QS TS AS 2D", WagerPlaced(1, "player", 1000), WagerPlaced(1, "jackpot", 10))
LOST: list[Event] = [EventsMissed(1), DeviceOnline(continuous=False)]


@pytest.mark.parametrize("loss", LOST)
@pytest.mark.parametrize("place", range(4))
def test_bell_a_loss_before_it_costs_the_amounts_only(place: int, loss: Event) -> None:
    """What is missing may be that a bet was taken back: nothing is settled, and nobody named for the jackpot."""
    events = [*ROYAL_AND_BETS[:place], loss, *ROYAL_AND_BETS[place:]]
    verdicts = play(bell(jackpot="A"), [*events, RoundPaid(), *ROYAL_AND_BETS])
    assert kinds(verdicts) == [Opened, Closed, Resolved] * 2
    result, next_ = results(verdicts)
    assert hands_of(result) == ("KQA", "JT2")
    assert [one.combination for one in result.jackpots] == ["royal_flush"]
    sure = place == 0  # before the opening nothing could be lost
    assert ([one.returned for one in result.settlements], result.jackpots[0].among) == (
        ([0, 0], (1,)) if sure else ([], ())
    )
    assert ([one.returned for one in next_.settlements], next_.jackpots[0].among) == ([0, 0], (1,))


@pytest.mark.article("10")
@pytest.mark.parametrize("loss", LOST)
@pytest.mark.parametrize("opening", ["bell", "first_card"])
@pytest.mark.parametrize("place", [1, 3, 4, 7, 8])
def test_art_10_hands_put_right_after_a_loss_say_nothing_of_the_amounts(
    place: int, opening: Literal["bell", "first_card"], loss: Event
) -> None:
    cards = [event for event in ROYAL_AND_BETS if opening == "bell" or not isinstance(event, BetsClosed)]
    ruleset = game(opening=opening, jackpot="A")
    laid = DealCorrected({"player": ("KS", "QS", "AS"), "banker": ("JS", "TS", "2D")})
    suspended = [*cards[:place], loss, *cards[place:], CardUnreadable(), laid]
    result, *_ = results(play(ruleset, suspended))
    assert (result.void, hands_of(result)) == (None, ("KQA", "JT2"))
    assert (result.settlements, [one.among for one in result.jackpots]) == ((), [()])
    other = DealCorrected({"player": ("9S", "TS"), "banker": ("2S", "4S")})
    corrected = play(ruleset, [*suspended, RoundPaid(), other])[-1]
    assert isinstance(corrected, Corrected)
    assert (wins(corrected.result), corrected.result.settlements) == ({"player": "1"}, ())


@pytest.mark.article("10, second sentence")
@pytest.mark.parametrize("place", range(1, 10))
def test_art_10_which_bets_come_back_after_a_loss_is_not_known(place: int) -> None:
    for end in (RoundVoided(), ShoeStarted()):
        result = only(play(bell(jackpot="A"), [*ROYAL_AND_BETS[:place], EventsMissed(1), end]))
        assert result.void is not None
        assert (result.void.bets, result.void.jackpot_bets) == ("returned", "returned")
        assert (result.settlements, result.pushes) == ((), ())


def test_a_result_that_is_paid_in_doubt_stands_with_its_amounts_whatever_is_lost_meanwhile() -> None:
    doubt = [*rung(PLAYER_WINS, WagerPlaced(1, "player", 100)), fixed("9T5", "24"), EventsMissed(1)]
    stands = play(bell(), [*doubt, RoundPaid()])[-1]
    assert isinstance(stands, Corrected)
    assert [one.returned for one in stands.result.settlements] == [200]
    put_right = play(bell(), [*doubt, fixed("9T", "25")])[-1]
    assert isinstance(put_right, Corrected)
    assert put_right.result.settlements == ()


@pytest.mark.article("16(2)")
def test_art_16_after_a_loss_nobody_is_named_as_the_highest_bettor() -> None:
    bet = WagerPlaced(3, "player", 5)
    shown = look(bell(players_handle_cards=True), [BetsOpened(), bet, EventsMissed(1), BetsClosed()])
    assert "handles" not in shown.detail


@pytest.mark.parametrize("before", ["", "5", "5 5"])
def test_first_card_an_unreadable_card_suspends_where_a_coup_could_begin(before: str) -> None:
    ruleset = game(burn="first_card")
    verdicts = play(ruleset, [ShoeStarted(), *drawn(before), CardUnreadable(), *drawn("9 2 T 4"), BetsOpened()])
    assert kinds(verdicts) == [Opened, Closed, Suspended, Voided, Opened]
    between = play(ruleset, [*drawn(PLAYER_WINS), CardUnreadable(), *drawn("9 2 T 4")])
    assert kinds(between) == [Opened, Closed, Resolved, Opened, Closed, Suspended]


@pytest.mark.parametrize("sync", [BetsOpened(), RoundPaid(), ShoeStarted()])
def test_first_card_after_missed_events_the_next_card_is_doubted_unless_a_coup_is_known_to_begin(sync: Event) -> None:
    ruleset = game(device="continuous")
    start = [*drawn(PLAYER_WINS), DeviceOnline(False)]
    doubted = play(ruleset, [*start, *drawn(PLAYER_WINS)])
    assert kinds(doubted) == [Opened, Closed, Resolved, Opened, Closed, Suspended]
    trusted = results(play(ruleset, [*start, sync, *drawn(TIE)]))
    assert [hands_of(one) for one in trusted] == [("9T", "24"), ("7T", "34")]
    fresh = play(ruleset, [DeviceOnline(False), *drawn(PLAYER_WINS)])
    assert kinds(fresh) == [Opened, Closed, Resolved]
    bets_open: list[Event] = [BetsOpened(), EventsMissed(1)]
    assert kinds(play(ruleset, [*bets_open, *drawn("9")])) == [Opened, Closed, Suspended]
    assert kinds(play(ruleset, [*bets_open, BetsOpened(), *drawn(TIE)])) == [Opened, Voided, Opened, Closed, Resolved]


@pytest.mark.article("2(1)")
def test_first_card_a_burn_with_missed_events_is_not_counted_on() -> None:
    verdicts = play(game(), [ShoeStarted(), *drawn("5 5"), EventsMissed(1), *drawn("5")])
    assert kinds(verdicts) == [Opened, Closed, Suspended]


def test_paid_while_cards_are_missing_suspends() -> None:
    verdicts = play(game(), [*drawn("A 2 T T"), RoundPaid(), *drawn(PLAYER_WINS)])
    assert kinds(verdicts) == [Opened, Closed, Suspended]
    late = play(bell(), [*rung(PLAYER_WINS), BetsOpened(), RoundPaid(), BetsClosed(), RoundPaid(), *drawn(TIE)])
    assert kinds(late) == [Opened, Closed, Resolved] * 2


# ---- what is told late, and what is lost where no bell parts the coups


def phase(ruleset: Baccarat, events: Iterable[Event]) -> str:
    return look(ruleset, events).phase


@pytest.mark.article("10")
@pytest.mark.parametrize("told", ["", "7D", "7D 3D", "7D 4S"])
@pytest.mark.parametrize("opening", ["bell", "first_card"])
def test_art_10_a_late_correction_of_the_coup_before_is_not_the_hands_of_the_open_one(
    opening: Literal["bell", "first_card"], told: str
) -> None:
    """Its bell has rung, or its first card is out, when the console tells what was meant for the last coup."""
    ruleset = game(opening=opening)
    coups = [*rung(PLAYER_WINS), RoundPaid(), *rung(told, WagerPlaced(1, "player", 100)), fixed("8T", "24")]
    verdicts = play(ruleset, coups)
    assert kinds(verdicts) == [Opened, Closed, Resolved, Opened, Closed, Suspended]
    assert look(ruleset, coups).detail["reason"].code == "other_coup"
    put_right = [*coups, DealCorrected({"player": ("7D", "TC"), "banker": ("3D", "KD")}), CardDrawn("4C")]
    assert hands_of(results(play(ruleset, put_right))[1]) == ("7T", "3K4")
    indeed = play(ruleset, [*coups, fixed("8T", "24")])
    assert hands_of(results(indeed)[1]) == ("8T", "24")
    no_bell = play(game(), [*drawn(f"{PLAYER_WINS} 7D 3D"), fixed("8T", "24")])
    assert kinds(no_bell) == [Opened, Closed, Resolved, Opened, Closed, Suspended]


@pytest.mark.article("10")
@pytest.mark.parametrize("told", ["", "7D 3D"])
def test_art_10_bell_a_coup_that_rang_is_not_none_because_the_hands_before_it_are_told_again(told: str) -> None:
    again = fixed("9T", "24")
    coups = [*rung(PLAYER_WINS), RoundPaid(), *rung(told), again]
    for said in (coups, [*coups, again]):  # twice: the very same hands are not dealt twice in a row
        assert kinds(play(bell(), said)) == [Opened, Closed, Resolved, Opened, Closed, Suspended]
    mended = [*coups, DealCorrected({"player": ("7D", "2C"), "banker": ("3D", "5C")})]
    assert hands_of(results(play(bell(), mended))[1]) == ("72", "35")


@pytest.mark.article("10")
@pytest.mark.parametrize("opening", ["bell", "first_card"])
def test_art_10_hands_told_while_bets_are_open_are_noted_whatever_they_are(
    opening: Literal["bell", "first_card"],
) -> None:
    bets = WagerPlaced(1, "player", 100)
    events = [*rung(PLAYER_WINS), RoundPaid(), BetsOpened(), bets, fixed("9T", "24"), BetsClosed(), *drawn(TIE)]
    verdicts = play(game(opening=opening), events)
    assert kinds(verdicts) == [Opened, Closed, Resolved] * 2
    assert noted(results(verdicts)[1]) == [("correction_before_deal", "10")]
    assert [one.returned for one in results(verdicts)[1].settlements] == [100]


@pytest.mark.article("10")
@pytest.mark.parametrize("told", ["", "7D", "7D 3D", "7D 3D TD", "7D 3D 4D", "7D 3D 5D 4D", "3D TD 4D"])
def test_art_10_a_coup_dealt_by_hand_is_entered_where_the_shoe_told_little_or_nothing(told: str) -> None:
    """Card after card, or whole."""
    start = [*rung(PLAYER_WINS), RoundPaid(), *rung(told)]
    whole = DealCorrected({"player": ("7D", "TD"), "banker": ("3D", "4D")})
    verdicts = play(bell(), [*start, whole])
    assert [hands_of(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34")]
    each: list[Event] = [fixed("7", ""), fixed("7", ""), fixed("7", "3"), fixed("7T", "3"), fixed("7T", "34")]
    assert kinds(play(bell(), [*rung(PLAYER_WINS), RoundPaid(), *rung(""), *each])) == [Opened, Closed, Resolved] * 2


@pytest.mark.article("10")
@pytest.mark.parametrize("opening", ["bell", "first_card"])
@pytest.mark.parametrize("first", [[*rung(""), fixed("9T", "24")], rung(PLAYER_WINS)])
def test_art_10_coups_entered_at_the_console_are_resolved_with_one_word(
    first: list[Event], opening: Literal["bell", "first_card"]
) -> None:
    """No shoe tells anything at this table, or no longer; one card in common with the coup before is chance."""
    entered = [
        DealCorrected({"player": ("7D", "TD"), "banker": ("3D", "4D")}),
        DealCorrected({"player": ("7D", "2C"), "banker": ("KC", "5C")}),
        fixed("9T", "24"),
    ]
    coups = [*first, RoundPaid(), *(event for laid in entered for event in [*rung(""), laid, RoundPaid()])]
    verdicts = play(game(opening=opening), coups)
    assert kinds(verdicts) == [Opened, Closed, Resolved] * 4
    assert [hands_of(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34"), ("72", "K5"), ("9T", "24")]


@pytest.mark.article("10")
def test_art_10_hands_entered_where_those_of_the_coup_before_may_be_meant_wait_for_one_more_word() -> None:
    """It was not paid when the bell rang, or most cards are its own."""
    by_hand = [*rung(""), fixed("9T", "24")]
    other = DealCorrected({"player": ("7D", "TD"), "banker": ("3D", "4D")})
    for before, laid in (
        (rung(PLAYER_WINS), other),
        ([*rung(PLAYER_WINS), LATE], other),
        ([*rung(PLAYER_WINS), RoundPaid()], fixed("8A", "25")),
        ([*by_hand, RoundPaid()], fixed("8T", "24")),
    ):
        verdicts = play(bell(), [*before, *rung(""), laid, laid])
        assert kinds(verdicts) == [Opened, Closed, Resolved, Opened, Closed, Suspended, Resolved]
        assert isinstance(verdicts[-2], Suspended)
        assert verdicts[-2].remedy.code == "do_once_more"
    paid_late = [*rung(PLAYER_WINS), BetsOpened(), RoundPaid(), BetsClosed(), other]
    assert kinds(play(bell(), paid_late)) == [Opened, Closed, Resolved] * 2
    same = play(bell(), [*by_hand, RoundPaid(), *by_hand])[-1]  # these are never its own: one more word helps nothing
    assert isinstance(same, Suspended)
    assert same.remedy.code == "do_correct_coup"


@pytest.mark.article("2(1)", "10")
@pytest.mark.parametrize("paid", [(), (RoundPaid(),)])
def test_art_10_hands_of_no_card_of_the_last_coup_of_a_shoe_that_is_over_are_noted_only(
    paid: tuple[Event, ...],
) -> None:
    """Its result stands, and the burn of the new shoe is counted as ever: AC is no card of it."""
    other = DealCorrected({"player": ("6H", "KH"), "banker": ("3H", "QH", "5H")})
    start: list[Event] = [ShoeStarted(), *drawn("5"), *drawn("9D 2D TD 4D"), *paid, ShoeStarted()]
    bets = WagerPlaced(1, "banker", 100)
    for laid in ([other], [other, other]):
        events = [*start, *laid, CardDrawn("5S"), RoundPaid(), BetsOpened(), bets, *drawn("AC 9C 3C TC 5C")]
        verdicts = play(game(burn="fixed"), events)
        assert codes(verdicts) == ["correction_of_another"] * len(laid)
        kept = [kind for kind in kinds(verdicts) if kind is not Noted]
        assert kept == [*[Opened, Closed, Resolved] * 2, Opened, Closed]
        first, second = results(verdicts)
        assert (hands_of(first), hands_of(second)) == (("9T", "24"), ("A3", "9T"))
        assert [(one.bet, one.returned) for one in second.settlements] == [("banker", 100 + 95)]
    right = play(game(burn="fixed"), [*start, DealCorrected({"player": ("9D", "KD"), "banker": ("2D", "4D")})])[-1]
    assert isinstance(right, Corrected)
    same = DealCorrected({"player": ("9D", "TD"), "banker": ("2D", "4D")})  # the card after the burn began no coup
    later = play(bell(burn="fixed"), [*rung("9D 2D TD 4D"), *start[-1:], *drawn("5 4"), same, other, fixed("9", "")])
    assert codes(later) == ["correction_of_another", "correction_incomplete"]


@pytest.mark.article("8")
@pytest.mark.parametrize("loss", [EventsMissed(1), DeviceOnline(False)])
def test_art_8_after_a_loss_the_card_of_a_coup_that_waited_is_not_of_the_next(loss: Event) -> None:
    ruleset = game(burn_each_coup=True)
    laid = DealCorrected({"player": ("9D", "TD"), "banker": ("2D", "4D")})
    coup = drawn("6H 9D 2D TD 4D")
    start: list[Event] = [*drawn(f"5 {PLAYER_WINS}"), RoundPaid(), loss, *coup, laid]
    after = [*drawn(f"5 {TIE}"), RoundPaid(), *drawn(f"5 {PLAYER_WINS}")]
    for said in ([RoundPaid()], []):
        verdicts = play(ruleset, [*start, *said, *after])
        assert kinds(verdicts)[3:] == [Opened, Closed, Suspended, Resolved, *[Opened, Closed, Resolved] * 2]
    # Where it did not come before the hands, it may be that of the next coup: its own is what was lost.
    for waited in ([*coup[1:], CardDrawn("6H")], [CardDrawn("6H")]):
        events = [*start[:6], loss, *waited, laid, RoundPaid(), *drawn(TIE)]
        assert phase(ruleset, events) == "suspended"


@pytest.mark.article("10")
def test_art_10_hands_of_no_card_of_the_last_coup_put_it_in_doubt() -> None:
    """They may be those of the next, of which nothing was told."""
    for laid in (fixed("7", ""), fixed("7A", "36")):
        verdicts = play(game(), [*drawn(PLAYER_WINS), laid])
        assert kinds(verdicts) == [Opened, Closed, Resolved, Suspended]
        paid = play(game(), [*drawn(PLAYER_WINS), laid, RoundPaid()])
        assert isinstance(paid[-1], Corrected)
        assert hands_of(paid[-1].result) == ("9T", "24")
    indeed = play(game(), [*drawn(PLAYER_WINS), laid, laid])[-1]
    assert isinstance(indeed, Corrected)
    assert hands_of(indeed.result) == ("7A", "36")


@pytest.mark.article("2(1)")
@pytest.mark.parametrize("loss", [EventsMissed(1), DeviceOnline(False), CardUnreadable()])
@pytest.mark.parametrize("sync", [BetsOpened(), RoundPaid()])
def test_first_card_a_burn_that_was_not_seen_whole_is_over_when_somebody_says_so(sync: Event, loss: Event) -> None:
    burn: list[Event] = [ShoeStarted(), *drawn("5 5 5"), loss]
    coup = drawn("6D 2D TD 4D")
    opened: list[Event] = [BetsOpened(), BetsClosed()]
    assert phase(game(), [*burn, sync, *coup]) == "suspended"
    held = [*burn, sync, *drawn("5")]
    laid = DealCorrected({"player": ("6D", "TD"), "banker": ("2D", "4D")})
    for told in (
        [*held, BetsOpened(), *coup],
        [*burn, *opened, *coup],
        [*held, *opened, *coup],
        [*held, RoundVoided(), *drawn("5 5"), RoundPaid(), *coup],
        [*held, *coup, laid],
        [*held, laid],
        [*held, ShoeStarted(), *drawn("5 5 5 5 5 5 5 5"), *coup],
    ):
        last = results(play(game(), told))[-1]
        assert (last.void, hands_of(last)) == (None, ("6T", "24"))
    assert phase(game(), [*held, laid, BetsOpened(), *drawn(TIE)]) == "resolved"


@pytest.mark.article("2(1)")
@pytest.mark.parametrize("loss", [EventsMissed(1), CardUnreadable()])
def test_first_card_a_burn_that_was_not_seen_whole_costs_no_more_than_one_coup(loss: Event) -> None:
    """Its cards held a coup that was none: the bets that are opened then are those of the first one."""
    burn: list[Event] = [ShoeStarted(), *drawn("5 5 5"), loss, *drawn("5 5 5 5")]
    night = [*burn, *[BetsOpened(), *drawn(PLAYER_WINS), RoundPaid()] * 3]
    assert kinds(play(game(), night)) == [Opened, Closed, Suspended, Voided, *[Opened, Closed, Resolved] * 3]
    # No card was told since: the bets may have been opened while cards were burnt.
    early: list[Event] = [ShoeStarted(), *drawn("5 5 5"), loss, BetsOpened(), *drawn("5")]
    assert phase(game(), early) == "suspended"


@pytest.mark.article("2(1)")
def test_first_card_what_is_said_of_the_coup_before_does_not_end_a_burn() -> None:
    burn: list[Event] = [*drawn(PLAYER_WINS), ShoeStarted(), *drawn("5 5 5"), EventsMissed(1)]
    for said in (fixed("24", "9T"), RoundVoided()):
        assert phase(game(), [*burn, said, BetsOpened(), *drawn(TIE)]) == "suspended"
    none_dealt = [*burn, BetsOpened(), RoundVoided(), BetsOpened(), *drawn(TIE)]
    assert phase(game(), none_dealt) == "suspended"


@pytest.mark.article("7(1)", "10")
@pytest.mark.parametrize("next_", [(), (RoundPaid(),)])
def test_first_card_cards_told_while_a_coup_waited_and_none_of_its_hands_leave_a_doubt(
    next_: tuple[Event, ...],
) -> None:
    """They may be the first ones of the next: 2H is not."""
    waited = [*drawn("9 2"), CardUnreadable(), *drawn("4"), RoundPaid(), *drawn("5D 6D"), fixed("9T", "24")]
    following = drawn("2H 3H KH 7H 8H")
    verdicts = play(game(), [*waited, *next_, *following])
    assert kinds(verdicts) == [Opened, Closed, Suspended, Resolved, Opened, Closed, Suspended]
    assert phase(game(), [*waited, *next_, BetsOpened(), *drawn(TIE)]) == "resolved"
    known = [*drawn("9 2"), CardUnreadable(), *drawn("4"), fixed("9T", "24"), *next_, *drawn(TIE)]
    assert phase(game(), known) == "resolved"


@pytest.mark.article("7(1)", "10")
def test_first_card_cards_told_while_a_result_was_in_doubt_leave_a_doubt() -> None:
    doubt = [*drawn(PLAYER_WINS), fixed("9T5", "24"), *drawn("5D 6D")]
    following = drawn("2H 3H KH 7H 8H")
    void = play(game(), [*doubt, RoundVoided(), *following])
    assert kinds(void)[:5] == [Opened, Closed, Resolved, Suspended, Corrected]
    assert codes(void) == ["card_of_void_coup"] * 5
    for ended in (RoundPaid(), fixed("9T", "24")):
        verdicts = play(game(), [*doubt, ended, *following])
        assert kinds(verdicts)[3:] == [Suspended, Corrected, Opened, Closed, Suspended]


@pytest.mark.article("7(1)", "10")
@pytest.mark.parametrize("loss", [EventsMissed(1), CardUnreadable()])
def test_first_card_what_was_lost_while_a_coup_waited_may_be_the_next_one_s(loss: Event) -> None:
    waited = [*drawn("9 2 T"), CardUnreadable(), loss, fixed("9T", "24")]
    assert phase(game(), [*waited, *drawn(TIE)]) == "suspended"
    for sync in (RoundPaid(), BetsOpened()):
        assert phase(game(), [*waited, sync, *drawn(TIE)]) == "resolved"
    goes_on = [*waited[:-1], fixed("9T", "2"), *drawn("4"), *drawn(TIE)]
    assert phase(game(), goes_on) == "resolved"


LATE = RoundPaid(overtaken=5000)


@pytest.mark.article("10")
def test_a_payment_told_late_ends_no_doubt() -> None:
    """It was made before what was told since."""
    coup = drawn(PLAYER_WINS)
    doubted = [*coup, EventsMissed(1), LATE, *drawn("5D 6D 2H 3H")]
    assert kinds(play(game(), doubted)) == [Opened, Closed, Resolved, Opened, Closed, Suspended]
    void = [*coup, *drawn("5 6"), RoundVoided(), LATE, *drawn("2 3 4 4")]
    assert codes(play(game(), void)) == ["card_of_void_coup"] * 4
    for ruleset in (game(), bell()):
        reopened = [*rung(PLAYER_WINS), fixed("9T5", "24"), LATE]
        assert kinds(play(ruleset, reopened)) == [Opened, Closed, Resolved, Suspended]
        assert isinstance(play(ruleset, [*reopened, RoundPaid()])[-1], Corrected)
    assert kinds(play(game(), [*coup, *drawn("7"), LATE, *drawn("3 T 4")])) == [Opened, Closed, Resolved] * 2


@pytest.mark.article("10")
@pytest.mark.parametrize("opening", ["bell", "first_card"])
def test_art_10_a_card_entered_by_hand_and_told_after_the_end_is_not_dealt_to_the_next(
    opening: Literal["bell", "first_card"],
) -> None:
    """The line is back: T and 4 of the first coup, told as the first ones of the second."""
    first = [*rung("9 2"), fixed("9T", "24")]
    start: list[Event] = [BetsOpened(), BetsClosed()] if opening == "bell" else []
    ruleset = game(opening=opening)
    late = [*first, RoundPaid(), *start, *drawn("T 4 5D 6D 2H 3H")]
    assert kinds(play(ruleset, late)) == [Opened, Closed, Resolved, Opened, Closed, Suspended]
    laid = DealCorrected({"player": ("5D", "2H"), "banker": ("6D", "3H")})
    put_right = play(ruleset, [*late, laid, RoundPaid(), *start, *drawn(TIE)])
    assert [hands_of(one) for one in results(put_right)] == [("9T", "24"), ("52", "63"), ("7T", "34")]
    # Once another card was told nothing of the first coup can come, and the rest of a shoe is as good as ever.
    assert kinds(play(ruleset, [*first, RoundPaid(), *start, *drawn("7 3 T 4")])) == [Opened, Closed, Resolved] * 2
    shoe: list[Event] = [ShoeStarted(), *drawn("5"), *start, *drawn("T 3 7 4")]
    fresh = play(game(opening=opening, burn="fixed"), [*first, *shoe])
    assert kinds(fresh) == [Opened, Closed, Resolved] * 2


@pytest.mark.article("13(3)", "17(6)")
def test_art_17_6_nobody_is_paid_where_the_bets_are_known_and_none_is_on_the_jackpot() -> None:
    royal = "KS JS QS TS AS 2D"
    player, alone = WagerPlaced(1, "player", 1000), WagerPlaced(2, "jackpot", 10)
    for bets in ([player], [alone], [player, alone], [player, WagerWithdrawn(1, "player")]):
        assert only(play(bell(jackpot="A"), rung(royal, *bets))).jackpots == ()
    unknown = [rung(royal), [BetsOpened(), player, EventsMissed(1), *rung(royal)[1:]]]
    for events in unknown:
        (award,) = only(play(bell(jackpot="A"), events)).jackpots
        assert (award.combination, award.among) == ("royal_flush", ())


@pytest.mark.article("10")
@pytest.mark.parametrize("opening", ["bell", "first_card"])
def test_art_10_no_hands_do_not_take_up_a_coup_that_has_a_result(opening: Literal["bell", "first_card"]) -> None:
    ruleset = game(opening=opening)
    events = [*rung(PLAYER_WINS), DealCorrected({})]
    assert kinds(play(ruleset, events)) == [Opened, Closed, Resolved, Suspended]
    assert kinds(play(ruleset, [*events, *drawn("5 6 2 3")])) == [Opened, Closed, Resolved, Suspended]
    stands = play(ruleset, [*events, RoundPaid()])[-1]
    assert isinstance(stands, Corrected)
    assert hands_of(stands.result) == ("9T", "24")


@pytest.mark.article("2(2)")
def test_art_2_2_a_demonstration_declared_before_the_shoe_is_started_is_its_first_coup() -> None:
    ruleset = bell(demonstration_rounds=1, burn="fixed", jackpot="A")
    shoe: list[Event] = [ShoeStarted(), *drawn("5"), *rung("9S 2H 9D 4D")]
    found = results(play(ruleset, [RoundDemo(), *shoe, *rung(TIE), *shoe]))
    assert [one.demo for one in found] == [True, False, False]
    assert found[0].jackpots == ()
    assert found[0].evidence[0] == "e1"


@pytest.mark.article("3(1)", "2(2)", "10")
def test_art_3_1_a_coup_that_never_was_is_not_the_last_one() -> None:
    """Nor is it the demonstration that was declared."""
    phantom = [*drawn("4"), fixed("9T", "24"), RoundPaid()]
    one_more = [*rung("9 2"), CutCardDrawn(), *drawn("T 4"), *phantom, *rung(TIE), RoundPaid(), *rung("9 2 T 4")]
    verdicts = play(bell(cut_card="one_more"), one_more)
    assert [one.void is None for one in results(verdicts)] == [True, False, True]
    assert kinds(verdicts)[-3:] == [Opened, Closed, Suspended]
    told_between = [*rung(PLAYER_WINS), *drawn("4"), CutCardDrawn(), fixed("9T", "24"), *rung(TIE), BetsOpened()]
    assert kinds(play(bell(cut_card="one_more"), told_between))[-1] is Suspended
    empty = [*one_more[:8], ShoeEmptied(), fixed("9T", "24"), BetsOpened()]
    assert kinds(play(bell(cut_card="one_more"), empty))[-1] is Suspended
    shown: list[Event] = [RoundDemo(), *rung(PLAYER_WINS), RoundDemo(), *phantom, *rung(TIE), *rung(TIE)]
    found = results(play(bell(demonstration_rounds=3), shown))
    assert [(one.demo, one.void is None) for one in found] == [(True, True), (True, False), (True, True), (False, True)]


@pytest.mark.article("2(2)", "10")
def test_art_2_2_a_coup_that_never_was_comes_before_no_demonstration() -> None:
    demo: list[Event] = [RoundDemo(), *rung(PLAYER_WINS), RoundPaid()]
    phantom = [*drawn("4"), fixed("9T", "24"), RoundPaid()]
    found = results(play(bell(demonstration_rounds=2), [*demo, *phantom, *demo, *demo]))
    assert [(one.demo, one.void is None) for one in found] == [
        *((True, True), (False, False)),
        *((True, True), (False, True)),
    ]
    fresh = [ShoeStarted(), *drawn("5"), *rung(PLAYER_WINS), *demo]
    again = results(play(bell(demonstration_rounds=2, burn="fixed"), [*demo, *phantom, *fresh]))
    assert [one.demo for one in again] == [True, False, False, False]


def test_first_card_a_loss_while_bets_are_open_may_be_that_of_the_first_card_whether_the_bell_rings_or_not() -> None:
    """Without `bell` a card may be dealt before it."""
    start: list[Event] = [BetsOpened(), EventsMissed(1), BetsClosed()]
    assert kinds(play(game(), [*start, *drawn(PLAYER_WINS)])) == [Opened, Closed, Suspended]
    assert kinds(play(bell(), [*start, *drawn(PLAYER_WINS)])) == [Opened, Closed, Resolved]


def test_the_view_says_how_far_the_coup_is() -> None:
    events = [ShoeStarted(), *drawn("2 5"), *rung("A 2 T T A 4")]
    phases = [look(bell(burn="first_card"), events[:count]).phase for count in range(len(events) + 1)]
    dealing = ["dealing"] * 5
    assert phases == ["idle", "burning", "burning", "idle", "betting", "closed", *dealing, "resolved"]
    assert look(bell(), [ShoeStarted(), *drawn("5")]).detail == {"shoe": 1, "burn": 7}
    shown = look(bell(), rung("A 2 T T A"))
    assert shown.round == "t-1:2026-11-20:1:1"
    assert shown.detail == {
        "demo": False,
        "last": False,
        "hands": {"player": ("AS", "TS", "AS"), "banker": ("2S", "TS")},
        "totals": {"player": 2, "banker": 2},
        "next": "banker",
    }
    held = look(bell(), [*rung("A 2"), CardUnreadable()])
    assert held.phase == "suspended"
    assert held.detail["reason"] == say("card_unreadable")


# ---- whatever happens

ANY_CARD = st.sampled_from(DECK).map(CardDrawn)
BETS = (*FAMILIES, "jackpot", "nonsense")
SEATS = st.integers(1, 4)
LAID = st.lists(st.sampled_from(DECK[:20]), max_size=4).map(tuple)
ANYTHING: st.SearchStrategy[Event] = st.one_of(
    ANY_CARD,
    ANY_CARD,
    ANY_CARD,
    st.sampled_from(
        [
            *(BetsOpened(), BetsClosed(), BetsOpened(), BetsClosed()),
            *(RoundPaid(), RoundVoided(), RoundDemo(), ShoeStarted(), ShoeStarted(6), CutCardDrawn(), ShoeEmptied()),
            *(CardUnreadable(), CardsReturned(4), EventsMissed(2), DeviceOnline(False), DeviceOnline(True)),
            *(DiceCovered(), CardDrawn("9S", "up"), CardDrawn("9S", "down")),
            *(fixed("9T", "24"), fixed("2T", "24"), fixed("9T5", "24"), DealCorrected({})),
        ]
    ),
    st.builds(WagerPlaced, SEATS, st.sampled_from(BETS), st.integers(1, 1001)),
    st.builds(WagerWithdrawn, SEATS, st.sampled_from(BETS), st.integers(0, 500)),
    st.builds(lambda player, banker: DealCorrected({"player": player, "banker": banker}), LAID, LAID),
)
HOUSES = st.fixed_dictionaries(
    {
        "opening": st.sampled_from(["bell", "first_card"]),
        "burn": st.sampled_from(["decks", "first_card", "fixed"]),
        "burn_each_coup": st.booleans(),
        "cut_card": st.sampled_from(["last", "one_more"]),
        "demonstration_rounds": st.integers(0, 1),
        "jackpot": st.sampled_from(["none", "A", "B", "C"]),
        "commission": st.sampled_from(["5_percent", "six_pays_half", "dragon_7_push"]),
        "additional_bets": st.sampled_from(["free", "with_main_bet"]),
    }
) | st.fixed_dictionaries({"opening": st.sampled_from(["bell", "first_card"]), "device": st.just("continuous")})


def check_settlements(result: Result) -> None:
    """Each wager is settled once, and brings back what its place among winners and pushes says: no more, no less."""
    paid = {win.bet: Fraction(win.pays) for win in result.winners}
    assert not set(paid) & set(result.pushes)
    assert len({(one.seat, one.bet) for one in result.settlements}) == len(result.settlements)
    for one in result.settlements:
        if result.void is not None or one.bet in result.pushes:
            assert one.returned == one.stake
        else:
            assert one.returned == (one.stake + int(one.stake * paid[one.bet]) if one.bet in paid else 0)


@settings(max_examples=at_length(30, 600))
@given(HOUSES, st.lists(ANYTHING, max_size=60))
def test_every_opened_round_ends_exactly_once_or_is_still_open(house: dict[str, Any], events: list[Event]) -> None:
    ruleset = game(**house)
    state = ruleset.start("t-1")
    under_way: str | None = None
    opened, ended = list[str](), list[str]()
    for seen in script(events):
        before, (state, verdicts) = state, ruleset.apply(state, seen)
        again = msgspec.json.decode(msgspec.json.encode(before), type=BaccaratState)
        assert again == before
        for verdict in verdicts:
            match verdict:
                case Opened(round=name):
                    assert under_way is None
                    opened.append(under_way := name)
                case Resolved(result=result) | Voided(result=result):
                    assert result.round == under_way
                    assert (result.void is None) == isinstance(verdict, Resolved)
                    check_settlements(result)
                    ended.append(result.round)
                    under_way = None
                case Corrected(result=result):
                    assert result.round == result.supersedes == ended[-1] == opened[-1]
                    assert under_way is None
                    check_settlements(result)
                case Closed(round=name):
                    assert name == under_way
                case Suspended(round=name):
                    assert name == opened[-1]
                case Noted():
                    pass
        view = ruleset.view(state)
        assert not (under_way and view.round != under_way)
    assert len(set(opened)) == len(opened)
    assert ended == (opened[:-1] if under_way else opened)


# ---- an independent dealer: what is resolved is what he dealt, whatever of it was seen


class Dealt(msgspec.Struct):
    """The truth of one coup: hands, and the ids of its cards."""

    player: list[str]
    banker: list[str]


def total(hand: Iterable[str]) -> int:
    return sum("0A23456789".find(card[0]) if card[0] in "A23456789" else 0 for card in hand) % 10


def deal_by_hand(shoe: list[str]) -> Dealt:
    """A coup as art. 9 is printed, with the table above."""
    p1, b1, p2, b2 = (shoe.pop() for _ in range(4))
    dealt = Dealt([p1, p2], [b1, b2])
    player, banker = total(dealt.player), total(dealt.banker)
    if player >= 8 or banker >= 8:
        return dealt
    column = 10
    if player <= 5:
        dealt.player.append(shoe.pop())
        column = total(dealt.player[2:])
    if BANKER_DRAWS[banker][column] == "D":
        dealt.banker.append(shoe.pop())
    return dealt


def night(house: dict[str, Any], seed: int, coups: int) -> Iterator[tuple[Event, int]]:
    """A shoe as the dealer deals it: events, and the coup each card belongs to (0: none)."""
    shoe = list(DECK) * 8
    random.Random(seed).shuffle(shoe)
    yield ShoeStarted(), 0
    first = shoe.pop()
    yield CardDrawn(first), 0
    counts = {"decks": 8, "fixed": 1, "first_card": min("A23456789TJQK".index(first[0]) + 1, 10)}
    for _ in range(counts[house["burn"]] - 1):
        yield CardDrawn(shoe.pop()), 0
    for coup in range(1, coups + 1):
        yield BetsOpened(), coup
        yield WagerPlaced(2, "tie", 50), coup
        yield WagerPlaced(1, "player", 1000 + coup), coup
        yield WagerWithdrawn(2, "tie"), coup
        yield BetsClosed(), coup
        if house["burn_each_coup"]:
            yield CardDrawn(shoe.pop()), coup
        dealt = deal_by_hand(shoe)
        for card in (*dealt.player[:1], *dealt.banker[:1], *dealt.player[1:2], *dealt.banker[1:2]):
            yield CardDrawn(card), coup
        for card in (*dealt.player[2:], *dealt.banker[2:]):
            yield CardDrawn(card), coup
        yield RoundPaid(), coup


Fault = Literal["none", "unreadable", "noise", "lost", "lost_offline"]


def seen_by_devices(true: Iterable[tuple[Event, int]], faults: Iterator[Fault]) -> Iterator[tuple[Event, int]]:
    """What shoe, console and bet sensors report: a lost event is proved lost before the same device reports its next
    one; the sensors are locked at the bell, and have said by then what they lost.
    """
    lost: dict[str, Event] = {}
    for event, coup in true:
        wager = isinstance(event, WagerPlaced | WagerWithdrawn)
        device = "shoe" if isinstance(event, CardDrawn) else "sensors" if wager else "console"
        fault = next(faults, "none")
        if isinstance(event, BetsClosed) and "sensors" in lost:
            yield lost.pop("sensors"), 0
        if fault in ("lost", "lost_offline"):
            lost[device] = EventsMissed(1) if fault == "lost" else DeviceOnline(False)
            continue
        if device in lost:
            yield lost.pop(device), 0
        if fault == "noise" and not wager:
            yield CardUnreadable(), 0
        yield (CardUnreadable(), 0) if fault == "unreadable" and device == "shoe" else (event, coup)


FAULTS: list[Fault] = ["unreadable", "noise", "lost", "lost_offline"]
SPARSE = st.dictionaries(st.integers(0, 110), st.sampled_from(FAULTS), max_size=6)


@settings(max_examples=at_length(40, 750))
@given(
    st.fixed_dictionaries({"burn": st.sampled_from(["decks", "first_card", "fixed"]), "burn_each_coup": st.booleans()}),
    st.integers(0, 10**6),
    SPARSE,
)
def test_bell_no_lost_or_unreadable_event_ever_gives_a_wrong_result(
    house: dict[str, Any], seed: int, faults: dict[int, Fault]
) -> None:
    coups = 8
    true = list(night(house, seed, coups))
    reported = list(seen_by_devices(true, (faults.get(place, "none") for place in range(len(true)))))
    ruleset = bell(**house)
    verdicts = play(ruleset, [event for event, _ in reported])
    belongs = {f"e{number}": coup for number, (_, coup) in enumerate(reported, 1)}
    right = 0
    for verdict in verdicts:
        if not isinstance(verdict, Resolved):
            continue
        result = verdict.result
        (coup,) = {belongs[id_] for id_ in result.evidence if isinstance(reported[int(id_[1:]) - 1][0], CardDrawn)}
        cards = [event.card for event, its in true if its == coup and isinstance(event, CardDrawn)]
        dealt = deal_by_hand(cards[::-1] if not house["burn_each_coup"] else cards[:0:-1])
        assert result.outcome["hands"] == {"player": tuple(dealt.player), "banker": tuple(dealt.banker)}
        assert result.outcome["totals"] == {"player": total(dealt.player), "banker": total(dealt.banker)}
        assert [(one.bet, one.stake) for one in result.settlements] in ([("player", 1000 + coup)], [])
        right += 1
    if not faults:
        assert right == coups


def test_three_thousand_coups_agree_with_an_independent_dealer() -> None:
    source = random.Random(7)
    ruleset = game()
    state = ruleset.start("t-1")
    for _ in range(3000):
        shoe = [source.choice(DECK) for _ in range(6)]
        dealt = deal_by_hand(left := shoe[::-1])
        verdicts: tuple[Verdict, ...] = ()
        for card in shoe[: 6 - len(left)]:
            state, verdicts = ruleset.apply(state, Envelope(card, "s", START, CardDrawn(card)))
        end = verdicts[-1]
        assert isinstance(end, Resolved)
        player, banker = total(dealt.player), total(dealt.banker)
        assert end.result.outcome["totals"] == {"player": player, "banker": banker}
        won = {win.bet for win in end.result.winners}
        expected = {"player" if player > banker else "banker" if banker > player else "tie"}
        expected |= {"player_pair"} if dealt.player[0][0] == dealt.player[1][0] else set()
        expected |= {"banker_pair"} if dealt.banker[0][0] == dealt.banker[1][0] else set()
        expected |= {"dragon_7"} if (banker, len(dealt.banker)) == (7, 3) and player < 7 else set()
        expected |= {"lucky_6"} if banker == 6 and player < 6 else set()
        assert won == expected


# ---- exact enumeration

# tests/rules/test_figures.py compares a whole shoe with what is published


def test_pairs_of_eight_decks_are_31_of_415() -> None:
    assert {pair: one.probability for pair, one in pair_weights(game(), 8).items()} == {
        "player_pair": Fraction(31, 415),
        "banker_pair": Fraction(31, 415),
    }


def test_a_slice_that_can_be_counted_by_hand() -> None:
    # Two nines and two tens: six arrangements, both nines with the player (8 against 0), with the banker, or one each.
    ends = endings(game(), (2, 0, 0, 0, 0, 0, 0, 0, 0, 2))
    chances = {end.result.outcome["winner"]: end.probability for end in ends}
    assert chances == {"player": Fraction(1, 6), "banker": Fraction(1, 6), "tie": Fraction(4, 6)}
    weights = weighed((end.probability, end.result) for end in ends)
    assert weights["player"].edge == 0
    assert weights["banker"].edge == Fraction(1, 6) * Fraction(1, 20)
    assert weights["tie"].edge == 1 - Fraction(4, 6) * 9
    # Six threes: 6 against 6, both stand. Six twos: 4 against 4; a third two, 6; the banker draws on 4 against a 2.
    (threes,) = endings(game(), (0, 0, 0, 6, 0, 0, 0, 0, 0, 0))
    assert (threes.probability, len(threes.line)) == (Fraction(1), 4)
    (twos,) = endings(game(), (0, 0, 6, 0, 0, 0, 0, 0, 0, 0))
    assert (twos.probability, len(twos.line), twos.result.outcome["winner"]) == (Fraction(1), 6, "tie")


def test_too_few_cards_are_refused() -> None:
    with pytest.raises(ValueError, match="more than the 5 cards"):
        endings(game(), (0, 0, 5, 0, 0, 0, 0, 0, 0, 0))


def test_a_table_nobody_has_played_on_doubts_its_first_card_after_a_proven_loss() -> None:
    """A device that is met for the first time proves no loss; a counter that does may have lost the start of a shoe."""
    cards = drawn("9S 2S TS 4S")
    assert only(play(game(), [DeviceOnline(continuous=False), *cards])).void is None
    verdicts = play(game(), [EventsMissed(1), *cards])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]


# ---- which round a person means, and events that come late


FIRST = "t-1:2026-11-20:1:1"


@pytest.mark.article("10")
@pytest.mark.parametrize("opening", ["bell", "first_card"])
def test_art_10_hands_that_name_the_coup_before_correct_it_while_the_next_goes_on(
    opening: Literal["bell", "first_card"],
) -> None:
    first = [*rung(PLAYER_WINS, WagerPlaced(1, "player", 100)), RoundPaid()]
    named = DealCorrected(fixed("24", "9T").hands, round=FIRST)
    for dealt in (1, 3):
        following = rung(" ".join(["7", "3", "T", "4"][:dealt]), WagerPlaced(1, "tie", 10))
        verdicts = play(game(opening=opening), [*first, *following, named, *drawn("7 3 T 4")[dealt:]])
        assert kinds(verdicts) == [Opened, Closed, Resolved, Opened, Closed, Corrected, Resolved]
        corrected = verdicts[5]
        assert isinstance(corrected, Corrected)
        assert (corrected.result.round, hands_of(corrected.result)) == (FIRST, ("24", "9T"))
        assert [one.returned for one in corrected.result.settlements] == [0]
        assert hands_of(results(verdicts)[1]) == ("7T", "34")
        assert [one.returned for one in results(verdicts)[1].settlements] == [90]


@pytest.mark.article("10")
def test_art_10_a_void_that_names_the_coup_before_leaves_the_open_one() -> None:
    events = [*rung(PLAYER_WINS), *rung("7 3"), RoundVoided("a card", round=FIRST), *drawn("T 4")]
    verdicts = play(bell(), events)
    assert kinds(verdicts) == [Opened, Closed, Resolved, Opened, Closed, Corrected, Resolved]
    void = verdicts[5]
    assert isinstance(void, Corrected)
    assert (void.result.round, void.result.void) == (FIRST, Void(say("declared_for", text="a card"), "returned"))
    assert void.result.supersedes == FIRST


@pytest.mark.article("10")
def test_art_10_a_name_that_is_neither_the_open_coup_nor_the_last_is_noted() -> None:
    start = [*rung(PLAYER_WINS), *rung("7 3")]
    for word in (RoundVoided(round="t-1:2026-11-20:1:9"), DealCorrected(fixed("9T", "24").hands, round="other")):
        verdicts = play(bell(), [*start, word, *drawn("T 4")])
        assert codes(verdicts) == ["round_unknown"]
        assert [one.void for one in results(verdicts)] == [None, None]


@pytest.mark.article("10")
@pytest.mark.parametrize(
    "word",
    [
        DealCorrected(fixed("2T", "24").hands, round=FIRST),  # a card is missing, and the next coup is open
        DealCorrected(fixed("9T5", "24").hands, round=FIRST),
    ],
)
def test_art_10_hands_that_cannot_end_the_coup_before_are_noted_while_the_next_is_open(word: DealCorrected) -> None:
    verdicts = play(bell(), [*rung(PLAYER_WINS), *rung("7 3"), word, *drawn("T 4")])
    assert codes(verdicts) == ["round_not_reopened"]
    assert [hands_of(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34")]


@pytest.mark.article("10")
def test_art_10_hands_that_name_the_open_coup_are_its_own_whatever_they_are() -> None:
    named = DealCorrected(fixed("9T", "24").hands, round="t-1:2026-11-20:1:2")
    verdicts = play(bell(), [*rung(PLAYER_WINS), RoundPaid(), *rung("7 3"), named])
    assert [hands_of(one) for one in results(verdicts)] == [("9T", "24")] * 2


def told_by(events: Iterable[tuple[str, float, Event]]) -> list[Envelope]:
    """Events as envelopes: the device, the second in which it arrived, and the event."""
    return [
        Envelope(f"e{n}", f"felt/1/site/table/t-1/device/{device}", START + timedelta(seconds=at), event, n)
        for n, (device, at, event) in enumerate(events, 1)
    ]


def held(card: str, age: float, late: float) -> CardDrawn:
    """A card that its device kept for `age` seconds, while others told what happened up to `late` seconds after it."""
    return CardDrawn(card, age_ms=int(age * 1000), overtaken=int(late * 1000))


def test_a_card_that_comes_late_is_put_at_its_time_and_the_coup_counts() -> None:
    """The shoe's line hung: the prizes were paid before its last two cards were told."""
    events: list[tuple[str, float, Event]] = [
        *(("console", 1, BetsOpened()), ("console", 2, BetsClosed())),
        *(("shoe", 3, CardDrawn("9S")), ("shoe", 4, CardDrawn("2S")), ("console", 10, RoundPaid())),
        *(("shoe", 12, held("TS", 7, 5)), ("shoe", 12, held("4S", 6, 4))),
    ]
    ruleset = bell()
    state, verdicts = ruleset.start("t-1"), list[Verdict]()
    for seen in told_by(events):
        state, new = ruleset.apply(state, seen)
        verdicts += new
    assert kinds(verdicts) == [Opened, Closed, Suspended, Resolved]
    assert hands_of(only(verdicts)) == ("9T", "24")
    assert ruleset.view(state).phase == "resolved"


@pytest.mark.article("2(1)")
@pytest.mark.parametrize(("started", "doubts"), [(1.0, 2), (7.5, 1)])
def test_a_shoe_start_that_comes_late_doubts_the_coup_that_was_dealt_as_if_it_had_not_come(
    started: float, doubts: int
) -> None:
    """The console's line hung: the burnt card began the first coup, and its last card the next one.

    A shoe that was started between the two coups leaves the first one as it is.
    """
    late = ShoeStarted(8, age_ms=int((12 - started) * 1000), overtaken=int((8 - started) * 1000))
    cards = enumerate(["QC", "TH", "7C", "6D"], 3)
    events: list[tuple[str, float, Event]] = [("shoe", at, CardDrawn(card)) for at, card in cards]
    ruleset = game()
    state, verdicts = ruleset.start("t-1"), list[Verdict]()
    for seen in told_by([*events, ("shoe", 8, CardDrawn("TS")), ("console", 12, late)]):
        state, new = ruleset.apply(state, seen)
        verdicts += new
    assert kinds(verdicts[:5]) == [Opened, Closed, Resolved, Opened, Closed]
    assert isinstance(verdicts[2], Resolved)
    first, second = verdicts[2].result.round, ruleset.view(state).round
    waits = [(one.round, one.reason.code) for one in verdicts if isinstance(one, Suspended)]
    assert waits == [(first, "late_doubt"), (second, "round_events")][-doubts:]
    # A person corrects the first coup by its name; the second one waits for its own.
    said = DealCorrected(fixed("T6", "7T").hands, first)
    _, new = ruleset.apply(state, Envelope("e9", "felt/1/site/table/t-1/device/console", START, said, 9))
    corrected = [one.result for one in new if isinstance(one, Corrected)]
    assert [(one.round, hands_of(one)) for one in corrected] == [(first, ("T6", "7T"))]


def test_a_correction_that_comes_late_and_changes_the_result_puts_it_in_doubt() -> None:
    """It was said before the last card: whether the result stands a person says."""
    said = DealCorrected(fixed("9", "3").hands, age_ms=6000, overtaken=4000)
    events: list[tuple[str, float, Event]] = [
        *(("console", 1, BetsOpened()), ("console", 2, BetsClosed())),
        *(("shoe", 3, CardDrawn("9S")), ("shoe", 4, CardDrawn("2S"))),
        *(("shoe", 8, CardDrawn("TS")), ("shoe", 10, CardDrawn("4S")), ("console", 12, said)),
    ]
    ruleset = bell()
    state, verdicts = ruleset.start("t-1"), list[Verdict]()
    for seen in told_by(events):
        state, new = ruleset.apply(state, seen)
        verdicts += new
    assert kinds(verdicts) == [Opened, Closed, Resolved, Suspended]
    assert ruleset.view(state).phase == "suspended"
