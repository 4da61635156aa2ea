"""Angola blackjack/21, articles 6 to 8 of Decreto Executivo 261/22, paragraph by paragraph. Amounts by hand."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Literal

import msgspec
import pytest
from helpers import START, codes, game_of, only, play, results, script

from protocols.contract.events import (
    MOST,
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardExposed,
    CardJammed,
    CardsLoaded,
    CardsReturned,
    CutCardDrawn,
    DealCorrected,
    DeckChecked,
    Event,
    EventsMissed,
    HoleCardPeeked,
    JamCleared,
    RoundPaid,
    SeatActed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    SupervisorKeyed,
    TableClosed,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.topics import Envelope
from rules.angola.blackjack import Blackjack
from rules.engine.facts import Table
from rules.engine.ruleset import (
    Award,
    BadOption,
    Corrected,
    Noted,
    Push,
    Resolved,
    Result,
    Suspended,
    Verdict,
    View,
    options_from,
)
from rules.games.blackjack import Hand, Play, count
from rules.games.blackjack_decisions import Position
from rules.games.cards import DECK

LAW = "angola.blackjack"
JACKPOT: dict[str, Any] = {
    "jackpot": "automatic",
    "jackpot_bet": 5,
    "jackpot_seed": 50_000,
    "jackpot_prizes": ("AAAA/suit=pool", "AAAA=1/2", "777/suit=1/10", "AA/colour=fixed"),
}
SHUFFLER: dict[str, Any] = {"device": "continuous"}


game = game_of(Blackjack)


def draw(cards: str, face: Literal["up", "down"] | None = None) -> list[Event]:
    return [CardDrawn(card, face) for card in cards.split()]


def act(seat: int, action: str, hand: int = 1, amount: int = 0) -> Event:
    return SeatActed(seat, action, hand, amount)


def bet(seat: int, amount: int = 100, on: str = "main") -> Event:
    return WagerPlaced(seat, on, amount)


def deal(seats: dict[int, str], bank: str) -> list[Event]:
    """The first deal: one card each from the left and the bank's, twice."""
    hands = [seats[seat].split() for seat in sorted(seats)]
    first, second = bank.split()
    return draw(" ".join([*(hand[0] for hand in hands), first, *(hand[1] for hand in hands), second]))


def whole(seats: dict[int, str], bank: str, *then: Event | list[Event], bets: Iterable[Event] = ()) -> list[Event]:
    """A round: opened, laid, the bell, the first deal, and what follows. Without bets the seats are opened."""
    laid = list(bets)
    events: list[Event] = [] if laid else [SeatOpened(seat) for seat in seats]
    events += [BetsOpened(), *laid, BetsClosed(), *deal(seats, bank)]
    for one in then:
        events += one if isinstance(one, list) else [one]
    return events


def one(cards: str, bank: str, *then: Event | list[Event], bets: Iterable[Event] = (), **options: Any) -> Result:
    """A round of seat 1 alone, with a bet of 100."""
    return only(play(game(**options), whole({1: cards}, bank, *then, bets=[bet(1), *bets])))


def back(result: Result) -> dict[str, int]:
    """What comes back, by bet; of several hands with the hand."""
    settled = {}
    for one_ in result.settlements:
        settled[one_.bet if one_.hand in (0, 1) else f"{one_.bet}/{one_.hand}"] = one_.returned
    return settled


def noted(verdicts: Iterable[Verdict]) -> list[tuple[str, str]]:
    """Every irregularity, of a round or of none, with its article."""
    found = []
    for verdict in verdicts:
        match verdict:
            case Noted(note):
                found.append(note)
            case Resolved(result):
                found += result.irregularities
    return [(note.code, note.law.removeprefix("Decreto Executivo 261/22 art. ")) for note in found]


def articles(result: Result) -> set[str]:
    return {line.partition("art. ")[2] for line in result.law}


def after(ruleset: Blackjack, events: Iterable[Event]) -> tuple[Table[Position], View]:
    state = ruleset.start("t-1")
    for seen in script(events):
        state, _ = ruleset.apply(state, seen)
    return state, ruleset.view(state)


def shown(events: Iterable[Event], **options: Any) -> dict[str, Any]:
    return after(game(**options), events)[1].detail


def may(events: Iterable[Event], **options: Any) -> set[str]:
    """The decisions allowed now."""
    return set(shown(events, **options)["due"]["actions"])


def ends(verdicts: Sequence[Verdict]) -> list[str]:
    return [verdict.result.outcome["results"]["1.1"] for verdict in verdicts if isinstance(verdict, Resolved)]


# ---- 6(1) to (6): the aim, the table, the cards


@pytest.mark.article("6(1)(a)", "6(26)", "6(30)")
@pytest.mark.parametrize("ten", ["TS", "JH", "QD", "KC"])
def test_an_ace_with_a_ten_or_figure_wins_three_to_two(ten: str) -> None:
    result = one(f"AS {ten}", "9H 8C")
    assert result.outcome["ended"] == {"1.1": "blackjack"}
    assert back(result) == {"main": 250}
    assert "6(26)" in articles(result)


@pytest.mark.article("6(1)(b)", "6(28)", "6(29)", "6(30)")
@pytest.mark.parametrize(
    ("cards", "bank", "returned", "article"),
    [
        ("TS 9C", "TH 8C", 200, "6(28)"),
        ("TS 8C", "TH 9C", 0, "6(28)"),
        ("TS 8C", "TH 8D", 100, "6(29)"),
    ],
)
def test_the_total_next_to_21_wins_and_an_equal_one_is_a_tie(
    cards: str, bank: str, returned: int, article: str
) -> None:
    result = one(cards, bank, act(1, "stand"))
    assert back(result) == {"main": returned}
    assert article in articles(result)


@pytest.mark.article("6(2)")
def test_a_table_has_six_or_seven_seats() -> None:
    for seats in (5, 8):
        with pytest.raises(BadOption, match="seats"):
            options_from(Blackjack, {"seats": seats})
    assert noted(play(game(seats=6), [SeatOpened(7)])) == [("no_such_seat", "6(2)")]
    assert noted(play(game(seats=7), [SeatOpened(7)])) == []


@pytest.mark.article("6(3)")
def test_four_or_six_decks_are_in_play() -> None:
    with pytest.raises(BadOption, match=r"art. 6\(3\)"):
        options_from(Blackjack, {"decks": 5})
    assert noted(play(game(decks=4), [ShoeStarted(6)])) == [("wrong_number_of_decks", "6(3)")]
    assert noted(play(game(decks=4), [ShoeStarted(4)])) == []


@pytest.mark.article("6(6)(a)", "6(24)")
@pytest.mark.parametrize(("bank", "total"), [("6H AC", 17), ("9H AC", 20), ("AH 6C", 17), ("7H AC", 18), ("8H AC", 19)])
def test_the_banks_ace_is_eleven_where_that_makes_17_to_21(bank: str, total: int) -> None:
    result = one("TS 9C", bank, act(1, "stand"))
    assert result.outcome["totals"]["dealer"] == total
    assert len(result.outcome["hands"]["dealer"]) == 2


@pytest.mark.article("6(6)(a)", "6(24)")
def test_the_banks_ace_is_one_where_eleven_is_too_much() -> None:
    result = one("TS 9C", "5H AC", act(1, "stand"), draw("KD 3S"))
    assert result.outcome["hands"]["dealer"] == ("5H", "AC", "KD", "3S")
    assert result.outcome["totals"]["dealer"] == 19


@pytest.mark.article("6(6)(b)", "6(6)(c)")
def test_figures_count_ten_and_other_cards_their_pips() -> None:
    assert {card[0]: count((card,))[0] for card in DECK if card[0] != "A"} == {
        **{str(pips): pips for pips in range(2, 10)},
        **dict.fromkeys("TJQK", 10),
    }


# ---- 6(11) to (14): the shoe


@pytest.mark.article("6(11)")
@pytest.mark.parametrize(
    ("seats", "left", "misplaced"),
    [
        ((1, 2), 50, False),
        ((1, 2), 40, False),
        ((1, 2), 39, True),
        ((1, 2), 104, True),
        ((1,), 104, False),
        ((1,), 80, True),
    ],
)
def test_the_warn_card_lies_about_50_cards_from_the_end(seats: tuple[int, ...], left: int, misplaced: bool) -> None:
    cards = draw(" ".join([*DECK * 4][: 208 - left]))
    events: list[Event] = [ShoeStarted(4), *(SeatOpened(seat) for seat in seats), *cards, CutCardDrawn()]
    found = noted(play(game(decks=4), events))
    assert (("warn_card_misplaced", "6(11)") in found) is misplaced
    assert ("warn_card_misplaced", "6(11)") not in noted(play(game(decks=4, warn_card_within=0), events))
    assert ("warn_card_misplaced", "6(11)") not in noted(play(game(decks=4, device="continuous"), events))
    lost = [*events[:-1], EventsMissed(1), CutCardDrawn()]
    assert ("warn_card_misplaced", "6(11)") not in noted(play(game(decks=4), lost))


@pytest.mark.article("6(11)", "6(17)")
@pytest.mark.parametrize(
    ("rounds", "misplaced"),
    [
        ([[bet(1), bet(2, 100, "main:1")]], False),  # one player on two seats
        ([[bet(1)], [bet(1), bet(2)]], False),  # he was alone when the warn card was put in
        ([[bet(1), bet(2)]], True),
        ([[bet(1), bet(2)], [bet(1)]], True),  # they were two then
    ],
)
def test_the_warn_card_lies_in_the_middle_for_one_player(rounds: list[list[Event]], misplaced: bool) -> None:
    events: list[Event] = [ShoeStarted(4), *draw("2S")]
    for bets in rounds:
        seats = {1: "TS 9C", 2: "TH 9D"} if len(bets) > 1 else {1: "TS 9C"}
        events += [*whole(seats, "7H TD", [act(seat, "stand") for seat in seats], bets=bets), RoundPaid()]
    drawn = sum(isinstance(event, CardDrawn) for event in events)
    events += [*draw(" ".join([*DECK * 4][: 104 - drawn])), CutCardDrawn()]
    assert (("warn_card_misplaced", "6(11)") in noted(play(game(decks=4), events))) is misplaced


@pytest.mark.article("6(12)")
def test_one_card_is_burnt_before_the_deal() -> None:
    round_ = whole({1: "TS 9C"}, "7H TD", act(1, "stand"), RoundPaid())
    verdicts = play(game(), [ShoeStarted(6), *draw("2S"), *round_, *round_])
    assert [result.outcome["hands"]["1.1"] for result in results(verdicts)] == [("TS", "9C")] * 2
    assert after(game(), [ShoeStarted(6)])[1].phase == "burning"


@pytest.mark.article("6(13)")
def test_the_round_of_the_warn_card_is_the_last_of_the_shoe() -> None:
    ruleset = game(warn_card_within=0)
    first = whole({1: "TS 9C"}, "7H TD", CutCardDrawn(), act(1, "stand"), RoundPaid())
    again = whole({1: "TS 9C"}, "7H TD")
    assert isinstance(play(ruleset, [*first, *again])[-1], Suspended)
    assert after(ruleset, [*first[:6], CutCardDrawn()])[1].detail["last"] is True
    shuffled = play(ruleset, [*first, ShoeStarted(6), *draw("2S"), *again, act(1, "stand")])
    assert ends(shuffled) == ["win", "win"]


@pytest.mark.article("6(13)")
def test_a_warn_card_before_a_round_leaves_that_round() -> None:
    ruleset = game(warn_card_within=0)
    round_ = whole({1: "TS 9C"}, "7H TD", act(1, "stand"), RoundPaid())
    verdicts = play(ruleset, [CutCardDrawn(), *round_, *round_[:3]])
    assert ends(verdicts) == ["win"]
    assert isinstance(verdicts[-1], Suspended)


@pytest.mark.article("6(14)")
def test_a_shoe_may_be_ended_between_two_rounds() -> None:
    round_ = whole({1: "TS 9C"}, "7H TD", act(1, "stand"), RoundPaid())
    verdicts = play(game(), [*round_, ShoeStarted(6), *draw("2S"), *round_])
    assert ends(verdicts) == ["win", "win"]
    assert noted(verdicts) == []


# ---- 6(15) to (19): bets, and players on other seats


@pytest.mark.article("6(15)")
def test_a_bet_after_the_bell_does_not_count() -> None:
    result = only(play(game(), whole({1: "TS 9C"}, "7H TD", bet(2), act(1, "stand"), bets=[bet(1)])))
    assert codes(result) == ["late_bet"]
    assert [one_.seat for one_ in result.settlements] == [1]


@pytest.mark.article("6(16)")
def test_a_bet_is_the_minimum_or_a_multiple_of_it() -> None:
    limits = {"minimum": 10, "maximum": 300}
    bets = [bet(1, 30), bet(2, 25), bet(3, 5)]
    stands = [act(seat, "stand") for seat in (1, 2, 3)]
    result = only(play(game(**limits), whole(dict.fromkeys((1, 2, 3), "TS 9C"), "7H TD", stands, bets=bets)))
    assert [(note.code, note.reason.values["seat"]) for note in result.irregularities] == [
        ("not_a_multiple", 2),
        ("not_a_multiple", 3),
    ]
    assert [one_.returned for one_ in result.settlements] == [60, 50, 10]


@pytest.mark.article("6(17)", "6(16)")
def test_the_bets_on_one_seat_reach_its_maximum_and_no_more() -> None:
    limits = {"minimum": 10, "maximum": 300}
    bets = [bet(1, 200), bet(1, 100, "main:2"), bet(1, 10, "main:3"), bet(2, 10, "main:2")]
    result = only(play(game(**limits), whole({1: "TS 9C"}, "7H TD", act(1, "stand"), bets=bets)))
    assert back(result) == {"main": 400, "main:2": 200, "main:3": 10}
    assert noted([Resolved(result)]) == [("bet_not_offered", "6(17)"), ("over_maximum", "6(17)")]


@pytest.mark.article("6(17)", "6(16)")
@pytest.mark.parametrize(
    ("bets", "returned", "noted_"),
    [
        ([bet(1, 300), bet(1, 100), WagerWithdrawn(1, "main", 100)], {"main": 600}, []),  # the dealer gave it back
        ([bet(1, 400), WagerWithdrawn(1, "main", 100)], {"main": 600}, []),
        ([bet(1, 400)], {"main": 600}, ["over_maximum"]),
        ([bet(1, 300)], {"main": 600}, []),
        ([bet(1, 301)], {"main": 600}, ["over_maximum"]),
        ([bet(1, 290), bet(1, 10, "main:2")], {"main": 580, "main:2": 20}, []),
        ([bet(1, 290), bet(1, 11, "main:2")], {"main": 580, "main:2": 20}, ["over_maximum"]),
        ([bet(1, 250), bet(1, 100, "main:2")], {"main": 500, "main:2": 100}, ["over_maximum"]),
    ],
)
def test_what_lies_over_the_maximum_at_the_bell_goes_back(
    bets: list[Event], returned: dict[str, int], noted_: list[str]
) -> None:
    limits = {"minimum": 10, "maximum": 300}
    result = only(play(game(**limits), whole({1: "TS 9C"}, "7H TD", act(1, "stand"), bets=bets)))
    assert (back(result), codes(result)) == (returned, noted_)


@pytest.mark.article("6(17)")
@pytest.mark.parametrize(("own", "others"), [(290, (10, 20)), (300, (100, 100)), (310, (100, 100))])
def test_a_bet_on_a_seat_that_its_own_player_fills_later_is_returned(own: int, others: tuple[int, int]) -> None:
    """It was taken, also from a terminal: where nothing of it is left, the result returns it."""
    bets = [bet(1, 100, "main:2"), bet(1, own)]
    result = only(play(game(maximum=300, minimum=10), whole({1: "TS 9C"}, "7H TD", act(1, "stand"), bets=bets)))
    assert back(result) == {"main": 2 * min(own, 300), "main:2": others[1]}
    assert [one_.stake for one_ in result.settlements if one_.bet == "main:2"] == [others[0]]
    assert [one_.bet for one_ in result.pushes if isinstance(one_, Push)] == ([] if own < 300 else ["main:2"])


@pytest.mark.article("6(17)")
def test_the_player_of_a_seat_decides_for_all_bets_on_it() -> None:
    bets = [bet(1, 10), bet(1, 500, "main:4")]
    events = whole({1: "TS 2C"}, "7H TD", bets=bets)
    assert shown(events)["due"]["decides"] == "main"
    result = only(play(game(), [*events, act(1, "hit"), *draw("9D")]))
    assert back(result) == {"main": 20, "main:4": 1000}
    assert [(win.bet, win.pays) for win in result.winners] == [("main", "1"), ("main:4", "1")]


@pytest.mark.article("6(18)", "6(38)")
def test_a_player_on_another_seat_insures_or_not_as_he_likes() -> None:
    bets = [bet(1), bet(1, 60, "main:2"), bet(1, 80, "main:3")]
    insured = [act(1, "insurance", amount=50), bet(1, 20, "insurance:2"), bet(1, 10, "insurance:2"), act(1, "stand")]
    result = only(play(game(), whole({1: "TS 9C"}, "AH TD", insured, bets=bets)))
    # Bank blackjack: the mains lose, each insurance comes back with twice itself.
    assert back(result) == {"main": 0, "main:2": 0, "main:3": 0, "insurance": 150, "insurance:2": 90}
    lost = only(play(game(), whole({1: "TS 9C"}, "AH 7D", insured, bets=bets)))
    assert back(lost) == {"main": 200, "main:2": 120, "main:3": 160, "insurance": 0, "insurance:2": 0}


@pytest.mark.article("6(18)")
@pytest.mark.parametrize(
    ("chips", "code"),
    [
        ([bet(1, 20, "insurance:2")], "follows_nothing"),  # the seat did not insure
        ([act(1, "insurance", amount=50), bet(1, 31, "insurance:2")], "wrong_amount"),
        ([act(1, "insurance", amount=50), bet(1, 20, "insurance:5")], "follows_nothing"),  # no bet of his there
    ],
)
def test_an_insurance_that_follows_nothing_or_is_too_high_does_not_count(chips: list[Event], code: str) -> None:
    result = only(
        play(game(), whole({1: "TS 9C"}, "AH 7D", chips, act(1, "stand"), bets=[bet(1), bet(1, 60, "main:2")]))
    )
    assert noted([Resolved(result)]) == [(code, "6(18)")]
    assert set(back(result)) <= {"main", "main:2", "insurance"}


@pytest.mark.article("6(19)")
@pytest.mark.parametrize(
    ("bets", "decides"),
    [
        ([bet(3, 50, "main:5"), bet(3, 60, "main:6")], "main:6"),
        ([bet(3, 50, "main:6"), bet(3, 50, "main:2")], "main:2"),
        ([bet(3, 50, "main:6"), bet(3, 10)], "main"),
    ],
)
def test_on_an_empty_seat_the_highest_bet_decides_then_the_lowest_seat(bets: list[Event], decides: str) -> None:
    events = whole({3: "TS 5C"}, "7H TD", bets=bets)
    assert shown(events)["due"]["decides"] == decides


@pytest.mark.article("6(19)")
def test_who_decides_on_an_empty_seat_doubles_and_insures_his_own_bet() -> None:
    bets = [bet(3, 50, "main:2"), bet(3, 80, "main:5")]
    then = [act(3, "insurance", amount=40), act(3, "double"), *draw("TC")]
    result = only(play(game(), whole({3: "6S 5C"}, "AH 7D", then, bets=bets)))
    assert back(result) == {"main:2": 100, "main:5": 160, "double:5": 160, "insurance:5": 0}
    then = [act(3, "insurance", amount=40), bet(3, 25, "insurance:2"), act(3, "stand")]
    result = only(play(game(), whole({3: "TS 9C"}, "AH TD", then, bets=bets)))
    assert [(win.bet, win.seat) for win in result.winners] == [("insurance:5", 3), ("insurance:2", 3)]


# ---- 6(20), (21): the deal


@pytest.mark.article("6(20)")
def test_the_cards_go_round_twice_and_the_banks_second_lies_face_down() -> None:
    events = whole({1: "TS 9C", 4: "5S 6C"}, "7H TD", bets=[bet(1), bet(4)])
    detail = shown(events)
    assert detail["hands"] == {"dealer": ("7H", "??"), "1.1": ("TS", "9C"), "4.1": ("5S", "6C")}
    due = [shown(events[:n])["due"]["hand"] for n in range(4, 10)]
    assert due == ["1.1", "4.1", "dealer", "1.1", "4.1", "dealer"]
    assert noted(
        play(game(), [*events, HoleCardPeeked(blackjack=False), act(1, "stand"), act(4, "hit"), *draw("TH")])
    ) == [("peek_not_due", "6(20)")]


@pytest.mark.article("6(21)")
@pytest.mark.parametrize("told", ["exposed", "face"])
def test_a_second_card_of_the_bank_that_was_turned_is_discarded(told: str) -> None:
    events = whole({1: "TS 9C"}, "7H TD", bets=[bet(1)])
    turned = [*events, CardExposed("dealer", "TD")] if told == "exposed" else [*events[:-1], *draw("TD", "up")]
    assert shown(turned)["due"] == {"kind": "card", "hand": "dealer"}
    result = only(play(game(), [*turned, *draw("2C"), act(1, "stand"), *draw("8H")]))
    assert result.outcome["hands"]["dealer"] == ("7H", "2C", "8H")
    assert result.outcome["discarded"] == ("TD",)
    assert noted([Resolved(result)]) == [("hole_card_turned", "6(21)")]


@pytest.mark.article("6(21)", "6(26)")
def test_a_second_card_that_was_turned_is_discarded_though_every_hand_is_a_blackjack() -> None:
    events = [*whole({1: "AS KC"}, "TH AD", bets=[bet(1)])[:-1], *draw("AD", "up")]
    assert shown(events)["due"] == {"kind": "card", "hand": "dealer"}
    result = only(play(game(), [*events, *draw("5C")]))
    assert result.outcome["hands"]["dealer"] == ("TH", "5C")
    assert result.outcome["discarded"] == ("AD",)
    assert back(result) == {"main": 250}
    assert noted([Resolved(result)]) == [("hole_card_turned", "6(21)")]


@pytest.mark.article("6(21)")
def test_a_second_card_seen_after_a_decision_waits_for_a_person() -> None:
    verdicts = play(game(), whole({1: "TS 2C"}, "7H TD", act(1, "hit"), CardExposed("dealer"), bets=[bet(1)]))
    assert isinstance(verdicts[-1], Suspended)


# ---- 6(22), (23): the decisions


@pytest.mark.article("6(22)")
@pytest.mark.parametrize(
    ("cards", "stands"), [("6S 5C", False), ("2S 2C", False), ("TS 2C", True), ("AS 2C", True), ("AS AC", True)]
)
def test_a_hand_stands_above_11_only(cards: str, stands: bool) -> None:
    events = whole({1: cards}, "7H TD", bets=[bet(1)])
    assert ("stand" in may(events)) is stands
    result = only(
        play(game(), [*events, act(1, "stand"), *([] if stands else [act(1, "hit"), *draw("TC"), act(1, "stand")])])
    )
    assert codes(result) == ([] if stands else ["decision_not_allowed"])


@pytest.mark.article("6(22)")
def test_a_hand_draws_no_card_at_21() -> None:
    result = one("TS 5C", "7H TD", act(1, "hit"), draw("6D"))
    assert result.outcome["ended"] == {"1.1": "twenty_one"}


@pytest.mark.article("6(22)")
def test_seats_decide_in_their_order() -> None:
    events = whole({1: "TS 9C", 2: "TH 8C"}, "7H TD", act(2, "stand"), act(1, "stand"), act(2, "stand"))
    assert noted(play(game(), events)) == [("out_of_turn", "6(22)")]


@pytest.mark.article("6(23)")
def test_an_unseen_card_goes_to_the_next_hand_that_asks() -> None:
    seats = {1: "TS 9C", 2: "TH 8C", 3: "5H 6C"}
    events = whole(seats, "7H TD", draw("9D", "down"), act(1, "stand"), act(2, "stand"), act(3, "hit"))
    assert "9D" not in str(shown(events[:-3])["hands"])
    result = only(play(game(), [*events, act(3, "stand")]))
    assert result.outcome["hands"]["3.1"] == ("5H", "6C", "9D")
    assert noted([Resolved(result)]) == [("card_mispulled", "6(23)")]


@pytest.mark.article("6(23)")
@pytest.mark.parametrize("then", ["double", "split"])
def test_an_unseen_card_is_the_card_of_a_double_or_a_split(then: str) -> None:
    events = whole({1: "5S 5C"}, "7H TD", draw("9D", "down"), act(1, then), bets=[bet(1)])
    state, _ = after(game(), events)
    assert state.position.play is not None or state.last is not None
    if then == "double":
        assert only(play(game(), events)).outcome["hands"]["1.1"] == ("5S", "5C", "9D")
    else:
        assert shown(events)["hands"]["1.1"] == ("5S", "9D")


@pytest.mark.article("6(23)")
@pytest.mark.parametrize(
    ("bank", "cards", "discarded"), [("7H 5D", ("7H", "5D", "9D"), None), ("7H TD", ("7H", "TD"), ("9D",))]
)
def test_an_unseen_card_without_a_request_is_the_banks_if_it_draws(
    bank: str, cards: tuple[str, ...], discarded: tuple[str, ...] | None
) -> None:
    result = one("TS 9C", bank, draw("9D", "down"), act(1, "stand"))
    assert result.outcome["hands"]["dealer"] == cards
    assert result.outcome.get("discarded") == discarded


@pytest.mark.article("6(23)")
def test_a_card_that_was_seen_is_discarded() -> None:
    result = one("TS 9C", "7H 5D", draw("9D", "up"), act(1, "stand"), draw("8S"))
    assert result.outcome["hands"]["dealer"] == ("7H", "5D", "8S")
    assert result.outcome["discarded"] == ("9D",)


@pytest.mark.article("6(23)")
def test_a_card_whose_face_is_not_told_waits_for_a_person() -> None:
    events = whole({1: "TS 9C"}, "7H 5D", draw("9D"), bets=[bet(1)])
    (*_, asked) = play(game(), events)
    assert isinstance(asked, Suspended)
    assert (asked.reason.code, asked.remedy.code) == ("mispulled_ask", "do_seen_or_not")
    lie = {"dealer": ("7H",), "1.1": ("TS", "9C")}
    seen = only(play(game(), [*events, DealCorrected(lie), act(1, "stand"), *draw("8S")]))
    assert seen.outcome["hands"]["dealer"] == ("7H", "5D", "8S")
    unseen = only(play(game(), [*events, DealCorrected({**lie, "held": ("9D",)}), act(1, "stand")]))
    assert unseen.outcome["hands"]["dealer"] == ("7H", "5D", "9D")
    sure = only(play(game(mispulled="unseen"), [*events, act(1, "stand")]))
    assert sure.outcome["hands"]["dealer"] == ("7H", "5D", "9D")


@pytest.mark.article("6(23)")
@pytest.mark.parametrize("decision_first", [False, True])
def test_a_mispulled_card_and_a_decision_without_a_hand_are_a_doubt(decision_first: bool) -> None:
    """The bet of seat 5 may have been lost, and the cards with it are those of other hands."""
    card, decision = draw("9D", "down"), [act(5, "stand")]
    told = [*decision, *card] if decision_first else [*card, *decision]
    (*_, doubt) = play(game(), whole({1: "TS 9C"}, "7H 5D", [*told, act(1, "stand")], bets=[bet(1)]))
    assert isinstance(doubt, Suspended)
    assert (doubt.reason.code, doubt.reason.values) == ("mispulled_or_unseated", {"seat": 5})


UNSEATED: list[Event] = [act(5, "stand")]
LOSS: list[Event] = [EventsMissed(1)]
# The bet of a seat was not reported, and a hand was dealt to it: signs of that before the payment.
BLACKJACK = whole({1: "TC AC"}, "9C 9D", bets=[bet(1)])
MISPULLED = whole({1: "TS 9C"}, "7H 5D", draw("9D", "down"), act(1, "stand"), bets=[bet(1)])


@pytest.mark.article("6(23)", "6(24)")
@pytest.mark.parametrize(
    ("over", "then"),
    [
        (BLACKJACK, [*LOSS, *draw("KC")]),
        (BLACKJACK, [*draw("KC"), *LOSS]),
        (BLACKJACK, [*draw("KC"), *UNSEATED]),
        (BLACKJACK, [*UNSEATED, *draw("KC")]),
        (BLACKJACK, [*LOSS, *UNSEATED]),
        (BLACKJACK, [*UNSEATED, *LOSS]),
        (MISPULLED, UNSEATED),
        (MISPULLED, LOSS),
        (MISPULLED, draw("KC")),
    ],
)
def test_two_signs_of_an_unknown_hand_put_the_result_in_doubt_until_it_is_paid(
    over: list[Event], then: list[Event]
) -> None:
    ruleset = game()
    first = only(play(ruleset, over))
    (*_, doubt) = play(ruleset, [*over, *then])
    assert isinstance(doubt, Suspended)
    (*_, stands) = play(ruleset, [*over, *then, RoundPaid()])
    assert isinstance(stands, Corrected)
    assert stands.result.settlements == first.settlements
    # The payment ends the doubt, and one sign alone raises none.
    after_it = play(ruleset, [*over, *then, RoundPaid(), *then])
    assert [type(one_) for one_ in after_it].count(Suspended) == 1
    for quiet in ([RoundPaid(), *then], then[1:]):
        assert Suspended not in map(type, play(ruleset, [*over, *quiet]))


@pytest.mark.article("6(23)")
def test_one_sign_of_an_unknown_hand_is_no_doubt() -> None:
    for sign in (LOSS, UNSEATED, draw("KC"), draw("KC QC"), [act(1, "stand"), *draw("KC")]):
        assert Suspended not in map(type, play(game(), [*BLACKJACK, *sign]))
    laid = {"dealer": ("7H", "5D", "9D"), "1.1": ("TS", "9C")}
    for sign in (LOSS, UNSEATED, draw("KC")):  # a person said which hands lie there
        assert Suspended not in map(type, play(game(), [*MISPULLED, DealCorrected(laid), *sign]))


def arrived(events: Iterable[tuple[str, float, Event]]) -> list[Envelope]:
    """Events as envelopes: the device, the second in which it arrived, and the event."""
    return [
        Envelope(f"e{n}", f"felt/1/site/table/t-1/device/{device}", START + timedelta(seconds=at), event, n)
        for n, (device, at, event) in enumerate(events, 1)
    ]


def test_a_bet_of_the_next_round_ends_the_doubt_about_the_last() -> None:
    """The payment, the opening and the bell of the next round were lost: its cards are no hand of the last one."""
    told = [*BLACKJACK, bet(2), *draw("KC"), *LOSS, *draw("8D")]
    state, verdicts = game().start("t-1"), list[Verdict]()
    for seen in arrived(("d", at, one_) for at, one_ in enumerate(told)):
        state, more = game().apply(state, seen)
        verdicts += more
    assert Suspended not in map(type, verdicts)


@pytest.mark.parametrize("paid", [False, True])
def test_a_late_bet_publishes_no_result_that_later_events_dispute(paid: bool) -> None:
    """The bets of seats 1 and 5 come late, one after the other: with one of them a card would lie wrongly."""
    dealt = [*draw("TS 6H 7H 9C 9D TD"), act(1, "stand"), act(5, "stand"), *([RoundPaid()] if paid else [])]
    laid = [msgspec.structs.replace(bet(seat), age_ms=19_000 - seat, overtaken=18_000 - seat) for seat in (1, 5)]
    ruleset = game(mispulled="unseen")
    state, verdicts = ruleset.start("t-1"), list[Verdict]()
    told = [("d", at, one_) for at, one_ in enumerate([BetsClosed(), *dealt], 9)]
    late = [("sensors", 20, one_) for one_ in laid]
    for seen in arrived([("d", 0, BetsOpened()), *told, *late]):
        state, more = ruleset.apply(state, seen)
        if seen.event == laid[0]:
            assert (results(more), ruleset.view(state).phase) == ([], "suspended")
        verdicts += more
    hands = [one_.outcome["hands"] for one_ in results(verdicts)]
    assert hands == ([] if paid else [{"dealer": ("7H", "TD"), "1.1": ("TS", "9C"), "5.1": ("6H", "9D")}])


@pytest.mark.article("6(23)")
def test_two_unseen_cards_go_to_the_next_two_that_ask_in_the_order_of_the_draw() -> None:
    seats = {1: "TS 9C", 2: "5S 6S", 3: "5H 6C"}
    told = [*draw("9D 8D", "down"), act(1, "stand"), act(2, "hit"), act(2, "stand"), act(3, "hit"), act(3, "stand")]
    result = only(play(game(), whole(seats, "7H TD", told)))
    assert result.outcome["hands"]["2.1"] == ("5S", "6S", "9D")
    assert result.outcome["hands"]["3.1"] == ("5H", "6C", "8D")
    assert codes(result) == ["card_mispulled"] * 2


@pytest.mark.article("6(23)")
@pytest.mark.parametrize(
    ("bank", "cards", "discarded"),
    [("7H 2D", ("7H", "2D", "4D", "8D"), None), ("7H 5D", ("7H", "5D", "8D"), ("4D",)), ("7H TD", ("7H", "TD"), None)],
)
def test_the_bank_takes_unseen_cards_as_long_as_it_draws(
    bank: str, cards: tuple[str, ...], discarded: tuple[str, ...] | None
) -> None:
    first, second = ("4D", "8D") if bank != "7H 5D" else ("8D", "4D")
    result = one("TS 9C", bank, draw(first, "down"), draw(second, "down"), act(1, "stand"))
    assert result.outcome["hands"]["dealer"] == cards
    assert result.outcome.get("discarded") == (discarded or (("4D", "8D") if bank == "7H TD" else None))


@pytest.mark.article("6(23)")
def test_a_seen_card_is_discarded_while_an_unseen_one_waits() -> None:
    seats = {1: "TS 9C", 2: "TH 9H"}
    told = [*draw("5D", "down"), act(1, "stand"), *draw("9D", "up"), act(2, "hit")]
    result = only(play(game(), whole(seats, "7H TD", told)))
    assert result.outcome["hands"]["2.1"] == ("TH", "9H", "5D")
    assert result.outcome["results"]["2.1"] == "lose"
    assert result.outcome["discarded"] == ("9D",)


@pytest.mark.article("6(23)", "6(33)")
@pytest.mark.parametrize("follows", [False, True])
def test_a_mispulled_card_waits_until_others_have_followed_a_split(follows: bool) -> None:
    bets = [bet(1), bet(1, 60, "main:2")]
    chips = [bet(1, 60, "split:2")] if follows else []
    then = [*draw("TD", "down"), act(1, "split"), *chips, act(1, "stand"), *draw("3H"), act(1, "stand", 2)]
    result = only(play(game(), whole({1: "9S 9C"}, "8H TH", then, bets=bets)))
    kept = {"main": 200, "main:2": 120, "main/2": 0}
    assert back(result) == (kept | {"main:2/2": 0} if follows else kept)
    assert result.outcome["hands"]["1.1"] == ("9S", "TD")
    assert codes(result) == ["card_mispulled"]


@pytest.mark.article("6(23)", "6(35)")
@pytest.mark.parametrize(
    "then", [[bet(1, 60, "double:2")], [bet(1, 60, "double:2"), act(2, "stand")], [act(2, "stand")], [RoundPaid()]]
)
def test_a_mispulled_card_waits_until_others_have_followed_a_double(then: list[Event]) -> None:
    bets = [bet(1), bet(1, 60, "main:2"), *([bet(2)] if act(2, "stand") in then else [])]
    seats = {1: "6S 5C", 2: "TS 9S"} if act(2, "stand") in then else {1: "6S 5C"}
    told = [*draw("9D", "down"), act(1, "double")]
    assert "9D" not in str(shown(whole(seats, "7H TD", told, bets=bets))["hands"])
    result = only(play(game(), whole(seats, "7H TD", told, then, bets=bets)))
    assert result.outcome["hands"]["1.1"] == ("6S", "5C", "9D")
    assert ("double:2" in back(result)) == (bet(1, 60, "double:2") in then)
    assert codes(result) == ["card_mispulled"]


# ---- 6(24) to (30): the bank, and who wins


@pytest.mark.article("6(24)")
@pytest.mark.parametrize(("bank", "more"), [("TH 6C", "5D"), ("TH 2C", "2D 3D"), ("AH 2C", "2D 2S")])
def test_the_bank_draws_to_16_and_stands_on_17(bank: str, more: str) -> None:
    events = whole({1: "TS 9C"}, bank, act(1, "stand"), draw(more), bets=[bet(1)])
    assert results(play(game(), events[:-1])) == []
    assert only(play(game(), events)).outcome["hands"]["dealer"] == (*bank.split(), *more.split())


@pytest.mark.article("6(24)")
def test_a_needless_card_of_the_bank_does_not_count() -> None:
    verdicts = play(game(), whole({1: "TS 9C"}, "7H TD", act(1, "stand"), draw("4D"), bets=[bet(1)]))
    assert back(only(verdicts)) == {"main": 200}
    assert noted(verdicts) == [("bank_extra_card", "6(24)")]


@pytest.mark.article("6(25)")
def test_blackjack_beats_21_and_21_of_a_split_is_none() -> None:
    seats = {1: "AS KC", 2: "TH 5C"}
    result = only(play(game(), whole(seats, "TD 6D", act(2, "stand"), draw("5H"), bets=[bet(1), bet(2)])))
    assert [one_.returned for one_ in result.settlements] == [250, 0]
    assert "6(25)" in articles(result)
    split = one("AS AC", "TD 7D", act(1, "split"), draw("KH QH"))
    assert split.outcome["ended"] == {"1.1": "twenty_one", "1.2": "twenty_one"}
    assert back(split) == {"main": 200, "main/2": 200}


@pytest.mark.article("6(26)")
@pytest.mark.parametrize(("bank", "at_once"), [("9H TD", True), ("2H TD", True), ("TH 9D", False), ("AH 9D", False)])
def test_blackjack_is_paid_at_once_where_the_bank_cannot_have_one(bank: str, at_once: bool) -> None:
    events = whole({1: "AS KC", 2: "TS 9C"}, bank, bets=[bet(1), bet(2)])
    assert (shown(events).get("pay_now") == {"1.1": "3/2"}) is at_once


@pytest.mark.article("6(26)")
def test_two_blackjacks_are_a_tie_and_a_bank_blackjack_beats_21() -> None:
    seats = {1: "AS KC", 2: "TS 5C"}
    then = [act(1, "stand"), act(2, "hit"), *draw("6D")]
    result = only(play(game(), whole(seats, "AH KD", then, bets=[bet(1), bet(2)])))
    assert [one_.returned for one_ in result.settlements] == [100, 0]
    assert result.outcome["results"] == {"1.1": "push", "2.1": "lose"}


@pytest.mark.article("6(27)")
def test_a_hand_over_21_loses_though_the_bank_busts() -> None:
    seats = {1: "TS 6C", 2: "TH 9C"}
    then = [act(1, "hit"), *draw("KD"), act(2, "stand"), *draw("TD")]
    result = only(play(game(), whole(seats, "TC 6D", then, bets=[bet(1), bet(2)])))
    assert [one_.returned for one_ in result.settlements] == [0, 200]


@pytest.mark.article("6(27)")
@pytest.mark.parametrize("then", [[act(1, "hit"), *draw("KD")], [act(1, "surrender")]])
def test_the_bank_takes_no_third_card_where_no_hand_is_left(then: list[Event]) -> None:
    result = one("TS 6C", "TH 6D", then)
    assert result.outcome["hands"]["dealer"] == ("TH", "6D")


# ---- 6(31) to (37): splits and doubles


@pytest.mark.article("6(31)")
@pytest.mark.parametrize(("cards", "splits"), [("KS TC", True), ("8S 8C", True), ("JS QS", True), ("8S 9C", False)])
def test_two_cards_of_one_value_may_be_split(cards: str, splits: bool) -> None:
    assert ("split" in may(whole({1: cards}, "7H TD", bets=[bet(1)]))) is splits


@pytest.mark.article("6(31)")
def test_each_split_hand_plays_for_its_own_bet() -> None:
    then = [act(1, "split"), *draw("9D"), act(1, "stand"), *draw("6D"), act(1, "stand", 2)]
    result = one("KS TC", "7H TD", then)
    assert result.outcome["results"] == {"1.1": "win", "1.2": "lose"}
    assert back(result) == {"main": 200, "main/2": 0}


@pytest.mark.article("6(31)")
def test_a_split_lays_the_amount_of_the_first_bet() -> None:
    events = whole({1: "8S 8C"}, "7H TD", act(1, "split", amount=60), bets=[bet(1)])
    (note,) = after(game(), events)[0].open.round.irregularities  # type: ignore[union-attr]
    assert (note.code, note.law.partition("art. ")[2]) == ("wrong_amount", "6(31)")


@pytest.mark.article("6(31)")
def test_split_aces_take_one_card_each() -> None:
    result = one("AS AC", "7H TD", act(1, "split"), draw("5D 6D"))
    assert result.outcome["totals"] == {"dealer": 17, "1.1": 16, "1.2": 17}
    assert back(result) == {"main": 0, "main/2": 100}


@pytest.mark.article("6(32)")
def test_a_pair_is_split_again_and_again() -> None:
    events = whole({1: "8S 8C"}, "7H TD", act(1, "split"), bets=[bet(1)])
    for number in range(2, 10):
        assert after(game(), events)[1].detail["due"]["kind"] == "card"
        events += draw("8D")
        if number < 9:
            assert "split" in may(events)
            events.append(act(1, "split"))
    assert len(shown(events)["hands"]) == 10
    assert "split" not in may(events)  # no console can name a tenth hand


@pytest.mark.article("6(32)")
@pytest.mark.parametrize("again", [False, True])
def test_whether_aces_are_split_again_is_an_option(again: bool) -> None:
    events = whole({1: "AS AC"}, "7H TD", act(1, "split"), draw("AD"), bets=[bet(1)])
    due = shown(events, resplit_aces=again)["due"]
    assert ("split" in due.get("actions", ())) is again


@pytest.mark.article("6(33)")
@pytest.mark.parametrize("follows", [False, True])
def test_a_player_on_another_seat_follows_a_split_or_plays_its_first_hand(follows: bool) -> None:
    bets = [bet(1), bet(1, 60, "main:2")]
    chips = [bet(1, 60, "split:2")] if follows else []
    then = [act(1, "split"), *chips, *draw("TD"), act(1, "stand"), *draw("3H"), act(1, "stand", 2)]
    result = only(play(game(), whole({1: "9S 9C"}, "8H TH", then, bets=bets)))
    # 9-T is 19 against 18 and wins, 9-3 is 12 and loses.
    kept = {"main": 200, "main:2": 120, "main/2": 0}
    assert back(result) == (kept | {"main:2/2": 0} if follows else kept)
    assert codes(result) == []


SPLIT_PLAYED = [*draw("TD"), act(1, "stand"), *draw("TH"), act(1, "stand", 2)]


@pytest.mark.article("6(33)", "6(35)")
@pytest.mark.parametrize(
    ("cards", "then", "noted_"),
    [
        ("9S 9C", [act(1, "split"), bet(1, 50, "split:2"), *SPLIT_PLAYED], ("wrong_amount", "6(33)")),
        ("9S 9C", [bet(1, 60, "split:2"), act(1, "stand")], ("follows_nothing", "6(33)")),
        ("6S 5C", [act(1, "double"), bet(1, 30, "double:2"), *draw("TD")], ("wrong_amount", "6(35)")),
        ("6S 5C", [act(1, "hit"), bet(1, 60, "double:2"), *draw("TD")], ("follows_nothing", "6(35)")),
        ("6S 5C", [act(1, "double"), bet(1, 60, "double:3"), *draw("TD")], ("follows_nothing", "6(35)")),
    ],
)
def test_chips_that_follow_nothing_or_another_amount_do_not_count(
    cards: str, then: list[Event], noted_: tuple[str, str]
) -> None:
    result = only(play(game(), whole({1: cards}, "8H TH", then, bets=[bet(1), bet(1, 60, "main:2")])))
    assert noted([Resolved(result)]) == [noted_]
    assert back(result)["main:2"] in (120, 60)
    assert "double:2" not in back(result)


@pytest.mark.article("6(34)")
@pytest.mark.parametrize(
    ("cards", "doubles"),
    [
        *[("5S 4C", True), ("6S 4C", True), ("6S 5C", True), ("AS 8C", True), ("AS 9C", True)],
        *[("6S 2C", False), ("TS 2C", False), ("AS 7C", False), ("AS AC", False)],
    ],
)
def test_nine_ten_and_eleven_may_be_doubled(cards: str, doubles: bool) -> None:
    assert ("double" in may(whole({1: cards}, "7H TD", bets=[bet(1)]))) is doubles


@pytest.mark.article("6(34)")
def test_a_double_adds_the_bet_and_takes_one_card() -> None:
    result = one("6S 5C", "7H TD", act(1, "double", amount=100), draw("9D"))
    assert result.outcome["doubled"] == ("1.1",) or result.outcome["doubled"] == ["1.1"]
    assert back(result) == {"main": 200, "double": 200}
    assert back(one("6S 5C", "7H TD", act(1, "double"), draw("2D"))) == {"main": 0, "double": 0}


@pytest.mark.article("6(34)", "6(28)")
def test_nothing_is_protected_from_a_bank_blackjack() -> None:
    doubled = one("6S 5C", "TH AD", act(1, "double"), draw("TD"))
    assert back(doubled) == {"main": 0, "double": 0}
    then = [act(1, "split"), *draw("TD"), act(1, "stand"), *draw("TC"), act(1, "stand", 2)]
    assert back(one("9S 9C", "TH AD", then)) == {"main": 0, "main/2": 0}


@pytest.mark.article("6(35)")
@pytest.mark.parametrize("follows", [False, True])
def test_a_player_on_another_seat_doubles_or_not_as_he_likes(follows: bool) -> None:
    chips = [bet(1, 60, "double:2")] if follows else []
    events = whole({1: "6S 5C"}, "7H TD", act(1, "double"), chips, draw("9D"), bets=[bet(1), bet(1, 60, "main:2")])
    result = only(play(game(), events))
    kept = {"main": 200, "double": 200, "main:2": 120}
    assert back(result) == (kept | {"double:2": 120} if follows else kept)


@pytest.mark.article("6(36)")
def test_nine_ten_and_eleven_after_a_split_may_be_doubled() -> None:
    events = whole({1: "8S 8C"}, "7H TD", act(1, "split"), draw("3D"), bets=[bet(1)])
    assert "double" in may(events)
    then = [act(1, "double"), *draw("TD"), *draw("5D"), act(1, "stand", 2)]
    result = only(play(game(), [*events, *then]))
    assert back(result) == {"main": 200, "main/2": 0, "double": 200}


@pytest.mark.article("6(36)")
def test_ten_and_ace_of_a_split_are_21_and_not_doubled() -> None:
    result = one("KS TC", "7H TD", act(1, "split"), draw("AD"), draw("AH"))
    assert result.outcome["ended"] == {"1.1": "twenty_one", "1.2": "twenty_one"}


@pytest.mark.article("6(37)")
@pytest.mark.parametrize(
    ("cards", "third", "total"),
    [("AS 8C", "2D", 11), ("AS 9C", "3D", 13), ("8S AC", "TD", 19), ("AS 8C", "AD", 20), ("6S 5C", "AD", 12)],
)
def test_the_ace_of_a_double_stays_one(cards: str, third: str, total: int) -> None:
    result = one(cards, "7H TD", act(1, "double"), draw(third))
    assert result.outcome["totals"]["1.1"] == total
    assert result.outcome["results"]["1.1"] == ("win" if total > 17 else "lose")


# ---- 6(38) to (42): insurance, even money, the special prize, surrender, the limit


@pytest.mark.article("6(38)")
@pytest.mark.parametrize(("amount", "taken"), [(50, True), (1, True), (51, False), (100, False)])
def test_an_insurance_is_half_the_bet_at_most_and_pays_two(amount: int, taken: bool) -> None:
    result = one("TS 9C", "AH TD", act(1, "insurance", amount=amount), act(1, "stand"))
    assert back(result) == ({"main": 0, "insurance": 3 * amount} if taken else {"main": 0})
    assert codes(result) == ([] if taken else ["wrong_amount"])


@pytest.mark.article("6(38)")
def test_an_insurance_is_against_an_ace_and_of_half_an_odd_bet_no_more() -> None:
    assert noted([Resolved(one("TS 9C", "TH AD", act(1, "insurance", amount=50), act(1, "stand")))]) == [
        ("decision_not_allowed", "6(38)")
    ]
    events = whole({1: "TS 9C"}, "AH TD", act(1, "insurance", amount=3), act(1, "stand"), bets=[bet(1, 5)])
    assert codes(only(play(game(), events))) == ["wrong_amount"]


@pytest.mark.article("6(39)")
@pytest.mark.parametrize(("bank", "returned"), [("AH TD", 200), ("AH 9D", 200)])
def test_a_blackjack_may_take_its_bet_against_an_ace(bank: str, returned: int) -> None:
    events = whole({1: "AS KC", 2: "TS 9C"}, bank, act(1, "even_money"), act(2, "stand"), bets=[bet(1), bet(2)])
    assert only(play(game(), events)).settlements[0].returned == returned
    against_ten = one("AS KC", "TH 9D", act(1, "even_money"))
    assert back(against_ten) == {"main": 250}


@pytest.mark.article("6(39)", "6(23)")
def test_a_blackjack_is_still_asked_after_a_card_without_a_request() -> None:
    events = whole({1: "TS 9C", 2: "AS KC"}, "AH 5D", act(1, "stand"), draw("9D"), bets=[bet(1), bet(2)])
    corrected = [*events, DealCorrected({"dealer": ("AH",), "1.1": ("TS", "9C"), "2.1": ("AS", "KC")})]
    assert may(corrected) == {"stand", "even_money"}


@pytest.mark.article("6(39)")
def test_a_lone_blackjack_against_an_ace_is_asked() -> None:
    events = whole({1: "AS KC"}, "AH TD", bets=[bet(1)])
    assert may(events) == {"stand", "even_money"}
    assert back(only(play(game(), [*events, act(1, "even_money")]))) == {"main": 200}
    assert back(only(play(game(), [*events, act(1, "stand")]))) == {"main": 100}
    assert only(play(game(), whole({1: "AS KC"}, "TH AD", bets=[bet(1)]))).outcome["results"] == {"1.1": "push"}


@pytest.mark.article("6(40)")
@pytest.mark.parametrize(
    ("cards", "third", "bank", "returned"),
    [
        ("6S 7S", "8S", "7H TD", 500),  # 3 and 1, and the bet
        ("7S 7C", "7D", "7H TD", 500),
        ("6S 7S", "8S", "TH 5D 6D", 400),  # 21 against 21: 3, and the bet
        ("6S 7S", "8S", "AH TD", 300),  # lost to blackjack: 3
        ("6S 7S", "8C", "7H TD", 200),
    ],
)
def test_the_special_prize_is_paid_beside_the_result(cards: str, third: str, bank: str, returned: int) -> None:
    two, more = " ".join(bank.split()[:2]), " ".join(bank.split()[2:])
    result = one(cards, two, act(1, "hit"), draw(third), draw(more))
    assert back(result) == {"main": returned}
    assert ("6(40)" in articles(result)) is (third != "8C")


@pytest.mark.article("6(40)")
def test_the_special_prize_is_shown_as_paid_at_once() -> None:
    events = whole({1: "7S 7C", 2: "TS 9C"}, "7H TD", act(1, "hit"), draw("7D"), bets=[bet(1), bet(2)])
    assert shown(events)["pay_now"] == {"1.1": "3"}


@pytest.mark.article("6(41)")
def test_a_hand_may_be_given_up_for_half_and_not_against_an_ace() -> None:
    assert back(one("TS 6C", "TH 7D", act(1, "surrender"))) == {"main": 50}
    assert back(one("TS 6C", "TH AD", act(1, "surrender"))) == {"main": 50}  # before the second card is known
    assert "surrender" not in may(whole({1: "TS 6C"}, "AH 7D", bets=[bet(1)]))
    assert "surrender" not in may(whole({1: "TS 2C"}, "TH 7D", act(1, "hit"), draw("2D"), bets=[bet(1)]))
    split = whole({1: "8S 8C"}, "TH 7D", act(1, "split"), draw("2D"), bets=[bet(1)])
    assert "surrender" not in may(split)


@pytest.mark.article("6(41)")
def test_until_when_a_hand_may_be_given_up_is_an_option() -> None:
    events = whole({1: "TS 2C", 2: "TH 6D"}, "TC 7D", act(1, "hit"), draw("2H"), act(1, "stand"), bets=[bet(1), bet(2)])
    assert "surrender" in may(events)
    assert "surrender" not in may(events, surrender="before_any_card")


@pytest.mark.article("6(42)")
def test_the_maximum_is_at_most_30_times_the_minimum() -> None:
    assert options_from(Blackjack, {"minimum": 10, "maximum": 300}).maximum == 300
    for limits in ({"minimum": 10, "maximum": 301}, {"maximum": 300}, {"minimum": 10, "maximum": 9}):
        with pytest.raises(BadOption, match=r"art. 6\(42\)"):
            options_from(Blackjack, limits)


# ---- article 7: the jackpot


def jackpot(cards: str, *then: Event | list[Event], bank: str = "7H TD", **options: Any) -> tuple[Award, ...]:
    return one(cards, bank, *then, bets=[bet(1, 5, "jackpot")], **(JACKPOT | options)).jackpots


@pytest.mark.article("7(1)", "7(2)", "7(3)")
def test_the_jackpot_is_a_choice_of_house_and_player() -> None:
    assert "jackpot" not in {bet_.id for bet_ in game().bets()}
    assert "jackpot" in {bet_.id for bet_ in game(**JACKPOT).bets()}
    assert codes(one("TS 9C", "7H TD", act(1, "stand"), bets=[bet(1, 5, "jackpot")])) == ["bet_not_offered"]
    assert one("AS AC", "7H TD", act(1, "stand"), **JACKPOT).jackpots == ()  # no chip
    for wrong in ({"jackpot_bet": 5}, {**JACKPOT, "jackpot_bet": 0}, {**JACKPOT, "jackpot_prizes": ()}):
        with pytest.raises(BadOption, match=r"art. 7\([136]\)"):
            options_from(Blackjack, wrong)


def test_a_share_of_the_jackpot_is_less_than_the_pool() -> None:
    def prizes(share: str) -> dict[str, Any]:
        return {**JACKPOT, "jackpot_prizes": ("AAAA/suit=pool", f"AAAA={share}")}

    for share in ("1/1", "99/99", "99/98"):
        with pytest.raises(BadOption, match="a share is less than the pool"):
            options_from(Blackjack, prizes(share))
    assert options_from(Blackjack, prizes("99/100"))


@pytest.mark.article("7(4)(a)", "7(4)(b)", "7(11)")
@pytest.mark.parametrize("marking", ["automatic", "manual"])
def test_the_chips_on_the_jackpot_are_collected_after_the_bell(marking: str) -> None:
    ruleset = game(**JACKPOT | {"jackpot": marking})
    events: list[Event] = [BetsOpened(), bet(1), bet(1, 5, "jackpot"), BetsClosed(), WagerWithdrawn(1, "jackpot")]
    result = only(play(ruleset, [*events, *deal({1: "AS AC"}, "7H TD"), act(1, "stand")]))
    assert [award.combination for award in result.jackpots] == ["AA/colour"]
    assert back(result) == {"main": 0, "jackpot": 0}
    assert codes(result) == []
    laid_late = [BetsOpened(), bet(1), BetsClosed(), bet(1, 5, "jackpot"), WagerWithdrawn(1, "jackpot")]
    late = only(play(ruleset, [*laid_late, *deal({1: "AS AC"}, "7H TD"), act(1, "stand")]))
    assert (codes(late), late.jackpots) == (["late_bet"], ()), "the late chip is handed back"


@pytest.mark.article("7(5)")
@pytest.mark.parametrize(
    ("cards", "combination"),
    [
        ("AS AS AS AS", "AAAA/suit"),
        ("AS AC AD AH", "AAAA"),
        ("AS AC", "AA/colour"),
        ("AS AD", ""),
        ("7C 7C 7C", "777/suit"),
        ("7C 7C 7S", ""),
        ("2S AS AC", ""),
    ],
)
def test_the_first_cards_make_a_combination(cards: str, combination: str) -> None:
    first, *more = cards.split()
    second, *drawn = more
    hits: list[Event] = []
    for card in drawn:
        hits += [act(1, "hit"), *draw(card)]
    total = count(tuple(cards.split()))[0]
    found = jackpot(f"{first} {second}", hits, *([] if total == 21 else [act(1, "stand")]))
    assert [award.combination for award in found] == ([combination] if combination else [])


@pytest.mark.article("7(5)")
def test_the_cards_of_split_pairs_count_in_the_order_in_which_they_came() -> None:
    # A-A split, an ace to each: four aces, of which a fifth card on the second hand is none.
    assert [award.combination for award in jackpot("AS AS", act(1, "split"), draw("AS AS"))] == ["AAAA/suit"]
    # 7-7 split: the third card is the first hand's second one, whatever the second hand gets.
    assert (
        jackpot("7C 7C", act(1, "split"), draw("TC"), act(1, "stand"), draw("7C"), act(1, "hit", 2), draw("7D")) == ()
    )
    again = [act(1, "split"), *draw("7C"), act(1, "split"), *draw("TC"), act(1, "stand"), *draw("TD")]
    again += [act(1, "stand", 2), *draw("TH"), act(1, "stand", 3)]
    assert [award.combination for award in jackpot("7C 7C", again)] == ["777/suit"]


@pytest.mark.article("7(5)")
def test_no_more_cards_than_the_house_says_may_make_a_combination() -> None:
    for cards, prize in ((2, "777=pool"), (3, "AAAA=pool")):
        with pytest.raises(BadOption, match=r"art. 7\(5\)"):
            options_from(Blackjack, {**JACKPOT, "jackpot_cards": cards, "jackpot_prizes": [prize]})


@pytest.mark.article("7(6)", "7(9)")
def test_a_combination_wins_whatever_becomes_of_the_hand() -> None:
    lost = one("AS AC", "7H TD", act(1, "stand"), bets=[bet(1, 5, "jackpot")], **JACKPOT)
    assert (lost.outcome["results"]["1.1"], len(lost.jackpots)) == ("lose", 1)
    given_up = one("AS AC", "7H TD", act(1, "surrender"), bets=[bet(1, 5, "jackpot")], **JACKPOT)
    assert (given_up.outcome["results"]["1.1"], len(given_up.jackpots)) == ("surrender", 1)
    assert "7(6)" in articles(lost)


@pytest.mark.article("7(6)")
@pytest.mark.parametrize(
    "prizes",
    [
        *(["AAAA/suit"], ["AA=1/10"], ["AA=pool", "KK=pool"], ["A=pool"], ["AA=pool", "AA=fixed"]),
        ["AAAA=pool", "AA=3/2"],  # more than the pool
        ["AAAA=pool", "AAAA/suit=1/2"],  # each of these is an AAAA already
        ["AAAA=pool", "KK/colour=1/2", "KK/suit=1/2"],
    ],
)
def test_the_house_lists_its_combinations_from_the_highest_down(prizes: list[str]) -> None:
    with pytest.raises(BadOption, match="jackpot_prizes"):
        options_from(Blackjack, {**JACKPOT, "jackpot_prizes": prizes})


@pytest.mark.article("7(7)")
def test_the_pool_starts_with_10_000_times_the_bet() -> None:
    assert options_from(Blackjack, JACKPOT).jackpot_seed == 50_000
    with pytest.raises(BadOption, match=r"art. 7\(7\)"):
        options_from(Blackjack, {**JACKPOT, "jackpot_seed": 49_999})


@pytest.mark.article("7(8)", "7(10)")
@pytest.mark.parametrize(
    ("bets", "noted_"),
    [
        ([bet(1), bet(2, 5, "jackpot")], ("jackpot_without_main", "7(8)")),
        ([bet(1), bet(2, 100, "main:1"), bet(2, 5, "jackpot")], ("jackpot_without_main", "7(8)")),
        ([bet(1), bet(1, 10, "jackpot")], ("wrong_jackpot_bet", "7(10)")),
        ([bet(1), bet(1, 4, "jackpot")], ("wrong_jackpot_bet", "7(10)")),
    ],
)
def test_one_chip_of_a_player_with_a_bet_on_his_hand(bets: list[Event], noted_: tuple[str, str]) -> None:
    seats = {1: "TS 9C"} | ({2: "TH 9D"} if len(bets) > 2 else {})
    stands = [act(seat, "stand") for seat in seats]
    result = only(play(game(**JACKPOT), whole(seats, "7H TD", stands, bets=bets)))
    assert noted([Resolved(result)]) == [noted_]
    laid = bets[-1]
    assert isinstance(laid, WagerPlaced)
    assert [(one_.stake, one_.returned) for one_ in result.settlements if one_.bet == "jackpot"] == [(laid.amount,) * 2]


@pytest.mark.article("7(13)(a)", "7(13)(b)")
def test_the_smallest_prize_is_paid_first_and_the_rest_of_the_pool_is_shared() -> None:
    chips = [one_ for seat in (1, 2, 3, 4) for one_ in (bet(seat), bet(seat, 5, "jackpot"))]
    seats = {1: "AS AS", 2: "7C 7C", 3: "AH AD", 4: "AD AD"}
    then = [act(1, "split"), *draw("AS AS"), act(2, "hit"), *draw("7C")]
    then += [act(3, "stand"), act(4, "split"), *draw("AD AD")]
    result = only(play(game(**JACKPOT), whole(seats, "7H TD", then, bets=chips)))
    law = "Decreto Executivo 261/22 art. 7(6)"
    assert result.jackpots == (
        Award("blackjack", "AA/colour", "fixed", law, among=(3,)),
        Award("blackjack", "777/suit", "pool", law, "1/10", (2,)),
        Award("blackjack", "AAAA/suit", "pool", law, among=(1, 4), after="777/suit"),
    )


@pytest.mark.article("7(6)")
def test_where_no_bet_is_told_the_combinations_are_named_without_seats() -> None:
    events = whole({1: "AS AC", 2: "AH AD"}, "7H TD", act(1, "stand"), act(2, "stand"))
    result = only(play(game(**JACKPOT), events))
    assert result.jackpots == (Award("blackjack", "AA/colour", "fixed", "Decreto Executivo 261/22 art. 7(6)"),)


@pytest.mark.article("7(6)")
def test_an_insurance_told_without_other_bets_leaves_the_combinations_named() -> None:
    then = [act(1, "insurance", amount=50), act(1, "stand")]
    result = only(play(game(**JACKPOT), whole({1: "AS AC"}, "AH 9D", then)))
    assert result.jackpots == (Award("blackjack", "AA/colour", "fixed", "Decreto Executivo 261/22 art. 7(6)"),)


@pytest.mark.article("7(8)")
def test_where_only_jackpot_chips_are_told_each_seat_that_is_dealt_to_plays_for_it() -> None:
    chips = [bet(1, 5, "jackpot"), bet(3, 5, "jackpot")]
    events: list[Event] = [SeatOpened(1), SeatOpened(2), BetsOpened(), *chips, BetsClosed()]
    hands = deal({1: "AS AC", 2: "AH AD"}, "7H TD")
    result = only(play(game(**JACKPOT), [*events, *hands, act(1, "stand"), act(2, "stand")]))
    assert [(award.combination, award.among) for award in result.jackpots] == [("AA/colour", (1,))]
    assert [(one_.seat, one_.returned) for one_ in result.settlements] == [(1, 0), (3, 5)]
    assert noted([Resolved(result)]) == [("bet_without_hand", "6(15)")]  # seat 3 was dealt no hand


@pytest.mark.article("7(5)")
def test_hands_that_do_not_tell_their_first_cards_wait_for_a_person() -> None:
    events = whole({1: "7C 7C"}, "7H TD", bets=[bet(1), bet(1, 5, "jackpot")])
    lie = {"dealer": ("7H",), "1.1": ("7C", "TC"), "1.2": ("7C", "TD"), "1.3": ("7C", "TH")}
    verdicts = play(game(**JACKPOT), [*events, DealCorrected(lie)])
    assert isinstance(verdicts[-1], Suspended)
    assert not isinstance(play(game(), [*events[:2], *events[3:], DealCorrected(lie)])[-1], Suspended)


# ---- article 8: the automatic shuffler


LOADED: list[Event] = [
    SupervisorKeyed(present=True),
    CardsLoaded(156, 1),
    CardsLoaded(156, 2),
    SupervisorKeyed(present=False),
]
ROUND = whole({1: "TS 9C"}, "7H TD", act(1, "stand"), RoundPaid())


def breaches(*events: Event | list[Event]) -> list[tuple[str, str]]:
    flat: list[Event] = []
    for one_ in events:
        flat += one_ if isinstance(one_, list) else [one_]
    return noted(play(game(**SHUFFLER), flat))


@pytest.mark.article("8(1)")
def test_a_damaged_card_is_reported_and_replaced_by_a_supervisor() -> None:
    came: list[Event] = [SupervisorKeyed(present=True), CardsLoaded(1), SupervisorKeyed(present=False)]
    assert breaches(LOADED, ROUND, CardDamaged("9C"), came, ROUND) == [("card_damaged", "8(1)")]
    assert breaches(LOADED, ROUND, CardDamaged("9C"), ROUND) == [
        ("card_damaged", "8(1)"),
        ("damaged_card_not_replaced", "8(1)"),
    ]
    alone = breaches(LOADED, ROUND, CardDamaged("9C"), CardsLoaded(1), ROUND)
    assert alone == [("card_damaged", "8(1)"), ("loaded_unattended", "8(5)")]


@pytest.mark.article("8(2)")
def test_a_supervisor_comes_to_a_jam() -> None:
    came: list[Event] = [SupervisorKeyed(present=True), JamCleared("infeed"), SupervisorKeyed(present=False)]
    assert breaches(LOADED, CardJammed("infeed"), came, ROUND) == []
    assert breaches(LOADED, CardJammed("infeed"), JamCleared("infeed"), ROUND) == [("jam_unattended", "8(2)")]
    assert breaches(JamCleared("infeed")) == []  # its beginning was not seen


@pytest.mark.article("8(3)", "8(7)")
def test_a_shuffler_has_no_warn_card_and_no_last_round() -> None:
    assert breaches(LOADED, CutCardDrawn(), ROUND, ShoeEmptied(), ROUND) == [("white_card", "8(3)")]


@pytest.mark.article("8(5)")
def test_the_cards_are_loaded_in_two_packets_once_with_a_supervisor() -> None:
    assert breaches(LOADED, ROUND) == []
    assert breaches(CardsLoaded(156, 1), CardsLoaded(156, 2), ROUND) == [("loaded_unattended", "8(5)")] * 2
    assert breaches(LOADED[:2], ROUND) == [("loaded_in_one_packet", "8(5)")]
    assert breaches(LOADED, ROUND, LOADED[:2]) == [("loaded_again", "8(5)")]
    assert breaches(ROUND) == []  # loaded before the first event
    assert breaches(EventsMissed(1), CardsLoaded(156, 2), ROUND) == []  # a key, or a packet, may be missing
    assert breaches(LOADED, ROUND, EventsMissed(1), CardsLoaded(156, 1), ROUND) == []  # so may the closing of the table


@pytest.mark.article("8(6)", "8(8)")
def test_after_closing_the_cards_are_taken_out_and_counted_with_a_supervisor() -> None:
    good, short = DeckChecked(312, 312, good=True), DeckChecked(312, 311, good=False)
    present: list[Event] = [SupervisorKeyed(present=True)]
    assert breaches(LOADED, ROUND, TableClosed(), present, good, LOADED, ROUND) == []
    assert breaches(LOADED, ROUND, TableClosed(), good) == [("checked_unattended", "8(6)")]
    assert breaches(LOADED, ROUND, TableClosed(), present, short) == [("deck_wrong", "8(6)")]
    assert breaches(LOADED, ROUND, present, good, TableClosed()) == [("checked_before_closing", "8(6)")]
    assert breaches(LOADED, ROUND, TableClosed(), LOADED, ROUND) == [("deck_not_checked", "8(6)")]
    assert breaches(LOADED, ROUND, TableClosed(), ROUND) == [("played_after_closing", "8(8)")]


@pytest.mark.article("8(8)")
@pytest.mark.parametrize(("burns", "phase"), [(False, "idle"), (True, "burning")])
def test_whether_a_card_is_burnt_with_the_shuffler_is_an_option(burns: bool, phase: str) -> None:
    assert after(game(**SHUFFLER, csm_burn=burns), [ShoeStarted(6)])[1].phase == phase
    with pytest.raises(BadOption, match=r"art. 8\(8\)"):
        options_from(Blackjack, {"csm_burn": True})


@pytest.mark.article("8(10)", "8(11)")
def test_the_cards_go_back_after_a_round_or_with_those_of_a_later_one() -> None:
    assert breaches(LOADED, ROUND, CardsReturned(4), ROUND, CardsReturned(4)) == []
    assert breaches(LOADED, ROUND, ROUND, CardsReturned(8)) == []  # 8(11): the first could not go back
    assert breaches(LOADED, ROUND, CardsReturned(5)) == [("too_many_cards_returned", "8(10)")]
    early = [*ROUND[:-2], CardsReturned(2), *ROUND[-2:]]
    assert breaches(LOADED, early) == [("cards_returned_early", "8(10)")]


@pytest.mark.article("8(12)")
def test_a_round_is_corrected_only_until_its_cards_go_back() -> None:
    right = DealCorrected({"dealer": ("7H", "TD"), "1.1": ("TS", "8C")})
    before = play(game(**SHUFFLER), [*LOADED, *ROUND[:-1], right])
    assert isinstance(before[-1], Corrected)
    assert before[-1].result.outcome["hands"]["1.1"] == ("TS", "8C")
    late = play(game(**SHUFFLER), [*LOADED, *ROUND[:-1], CardsReturned(4), right])
    assert not any(isinstance(verdict, Corrected) for verdict in late)
    assert noted(late) == [("claim_too_late", "8(12)")]
    waits = [
        *LOADED,
        *ROUND[:-2],
        *draw("9D"),
        CardsReturned(2),
        DealCorrected({"dealer": ("7H",), "1.1": ("TS", "9C")}),
    ]
    assert len(results(play(game(**SHUFFLER), [*waits, act(1, "stand")]))) == 1  # it had not ended


@pytest.mark.article("8(12)")
def test_the_cards_may_go_back_after_the_next_bets_were_opened() -> None:
    right = DealCorrected({"dealer": ("7H", "TD"), "1.1": ("TS", "8C")}, round="t-1:2026-11-20:1")
    events = [*LOADED, *ROUND[:-1], BetsOpened(), bet(1)]
    assert any(isinstance(verdict, Corrected) for verdict in play(game(**SHUFFLER), [*events, right]))
    late = play(game(**SHUFFLER), [*events, CardsReturned(4), right])
    assert not any(isinstance(verdict, Corrected) for verdict in late)
    assert noted(late) == [("claim_too_late", "8(12)")]
    next_ = [*events, CardsReturned(4), BetsClosed(), *deal({1: "TS 9C"}, "7H TD"), act(1, "stand")]
    again = DealCorrected(right.hands, round="t-1:2026-11-20:2")
    assert isinstance(play(game(**SHUFFLER), [*next_, again])[-1], Corrected)  # its own cards did not


# ---- what all these texts share


def test_the_options_that_every_game_has() -> None:
    events = whole({1: "AS KC"}, "9H 8C", bets=[bet(1, 5)])
    assert back(only(play(game(), events))) == {"main": 12}
    assert back(only(play(game(smallest_chip=5, rounding="up"), events))) == {"main": 15}


def test_a_correction_does_not_let_a_hand_stand_on_11() -> None:
    house = game().house
    play_ = Play(hands=(Hand(1, 1, ("6S", "5C")),), bank=("7H", "TD"))
    assert not house.possible(play_, Hand(1, 1, ("6S", "5C", "TD", "2D")))
    events = whole({1: "TS 9C", 2: "TH 9D"}, "7H TD", bets=[bet(1), bet(2)])
    lie = {"dealer": ("7H",), "1.1": ("6S", "5C"), "2.1": ("TH", "2D", "5D")}
    verdicts = play(game(), [*events, DealCorrected(lie)])
    assert isinstance(verdicts[-1], Suspended)


# ---- limits of what a decision lays


@pytest.mark.article("6(38)", "6(18)")
def test_a_limit_of_insurance_is_applied_to_all_who_insure() -> None:
    bets, limits = [bet(1), bet(1, 100, "main:2")], {"limits": ("insurance=20-40/10",)}
    told: list[Event] = [act(1, "insurance", amount=50), act(1, "insurance", amount=30)]
    follows = [bet(1, 50, "insurance:2"), bet(1, 40, "insurance:2")]
    events = whole({1: "TS 9C"}, "AH TD", told, follows, act(1, "stand"), bets=bets)
    result = only(play(game(**limits), events))
    assert codes(result) == ["bet_outside_limits"] * 2
    assert back(result) == {"main": 0, "main:2": 0, "insurance": 90, "insurance:2": 120}


@pytest.mark.article("6(38)")
def test_an_insurance_that_a_limit_refuses_is_named_to_the_dealer_and_a_bet_that_the_bell_returns_is_not() -> None:
    limits: dict[str, Any] = {"limits": ("insurance=20-40/10", "main=20-100")}
    events = whole({1: "TS 9C"}, "AH TD", bets=[bet(1), bet(2, 10)])
    assert "refused" not in shown(events[: events.index(BetsClosed()) + 1], **limits)
    assert shown([*events, act(1, "insurance", amount=50)], **limits)["refused"] == "bet_outside_limits"
    large = whole({1: "TS 9C"}, "AH TD", act(1, "insurance", amount=MOST))
    assert shown(large)["refused"] == "settlement_too_large"


@pytest.mark.article("6(38)")
@pytest.mark.parametrize(("chips", "insured"), [([10], False), ([10, 10], True), ([25], False)])
def test_chips_on_insurance_below_the_limit_go_back(chips: list[int], insured: bool) -> None:
    laid = [bet(1, amount, "insurance") for amount in chips]
    events = whole({1: "TS 9C"}, "AH TD", laid, act(1, "stand"), bets=[bet(1)])
    result = only(play(game(limits=("insurance=20-40/10",)), events))
    assert back(result)["insurance"] == (3 if insured else 1) * sum(chips)
    assert (codes(result) == []) is insured


@pytest.mark.article("6(34)")
def test_a_limit_of_doubles_is_refused_when_it_is_configured() -> None:
    with pytest.raises(BadOption, match="double is as large as the text makes it"):
        options_from(Blackjack, {"limits": ["double=10-20"]})


@pytest.mark.article("6(17)")
def test_the_bet_of_the_seats_own_player_is_cut_last() -> None:
    bets = [bet(1, 100, "main:2"), bet(1, 80)]
    result = only(play(game(minimum=10, maximum=120), whole({1: "TS 9C"}, "7H TD", act(1, "stand"), bets=bets)))
    assert back(result) == {"main": 160, "main:2": 80}
    assert codes(result) == ["over_maximum"]
