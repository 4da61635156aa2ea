"""Macau blackjack, article by article: Despacho 57/2009, and Despacho 56/2004 with 42/2007."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
import pytest
from helpers import at_length, codes, game_of, only, play, results, script
from hypothesis import given, settings, strategies as st

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardExposed,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    DealCorrected,
    DeviceOnline,
    Event,
    EventsMissed,
    HoleCardPeeked,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import Reason, say
from rules.engine.facts import Table
from rules.engine.ruleset import (
    BadOption,
    Closed,
    Corrected,
    Noted,
    Opened,
    Push,
    Resolved,
    Result,
    Settlement,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    Win,
    judge,
    options_from,
)
from rules.games.blackjack import count
from rules.games.blackjack_decisions import Position
from rules.games.blackjack_round import BlackjackState
from rules.games.cards import DECK
from rules.macau.blackjack import Blackjack
from rules.macau.blackjack_bets import FAMILIES

LAW = "macau.blackjack"

Edition = Literal["2009", "2004"]
both = pytest.mark.parametrize("edition", ["2009", "2004"])
STREAKS = ("winning_streak_2", "winning_streak_3", "winning_streak_4", "winning_streak_5")
HOLE: dict[str, Any] = {"procedure": "3"}
BOX: dict[str, Any] = {"procedure": "1", "device": "metal_box", "decks": 1}


game = game_of(Blackjack)


def draw(cards: str, face: Literal["up", "down"] | None = None) -> list[Event]:
    return [CardDrawn(card, face) for card in cards.split()]


def act(seat: int, action: str, hand: int = 1, amount: int = 0) -> Event:
    return SeatActed(seat, action, hand, amount)


def bet(seat: int, amount: int = 100, on: str = "main") -> Event:
    return WagerPlaced(seat, on, amount)


def deal(seats: dict[int, str], bank: str, *, last: bool = False) -> list[Event]:
    """The first deal: one card each from the left; `bank` of two cards has its hole card."""
    hands = [seats[seat].split() for seat in sorted(seats)]
    first, *second = bank.split()
    ones, twos = [hand[0] for hand in hands], [hand[1] for hand in hands]
    order = [*ones, *twos, first] if last else [*ones, first, *twos, *second]
    return draw(" ".join(order))


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


def paid(result: Result) -> dict[str, str]:
    """What wins, by bet; of several hands with the hand."""
    return {win.bet if win.hand in (0, 1) else f"{win.bet}/{win.hand}": win.pays for win in result.winners}


def back(result: Result) -> dict[str, int]:
    """What comes back, by bet; of several hands with the hand."""
    settled = {}
    for one_ in result.settlements:
        settled[one_.bet if one_.hand in (0, 1) else f"{one_.bet}/{one_.hand}"] = one_.returned
    return settled


def articles(result: Result) -> set[str]:
    return {line.partition("art. ")[2].removesuffix(" (42/2007)") for line in result.law}


def after(ruleset: Blackjack, events: Iterable[Event]) -> tuple[Table[Position], View]:
    state = ruleset.start("t-1")
    for seen in script(events):
        state, _ = ruleset.apply(state, seen)
    return state, ruleset.view(state)


def due(events: Iterable[Event], **options: Any) -> tuple[str, str]:
    """What the ruleset waits for: its kind and its hand."""
    detail = after(game(**options), events)[1].detail
    return detail["due"]["kind"], detail["due"]["hand"]


def may(events: Iterable[Event], **options: Any) -> set[str]:
    """The decisions allowed now."""
    return set(after(game(**options), events)[1].detail["due"]["actions"])


def judged(ruleset: Blackjack, events: Iterable[Event]) -> list[Verdict]:
    """What follows from events of which some were overtaken by others."""
    state, verdicts = ruleset.start("t-1"), list[Verdict]()
    for seen in script(events):
        state, told = judge(ruleset, state, seen)
        verdicts += told
    return verdicts


def last(verdicts: Sequence[Verdict]) -> Verdict:
    return verdicts[-1]


# ---- art. 1: the material


@pytest.mark.article("1(1)", "3(1)", "2004:1(1)", "2004:3(1)")
@both
def test_a_table_has_six_seats_or_more(edition: Edition) -> None:
    with pytest.raises(BadOption, match="seats"):
        options_from(Blackjack, {"edition": edition, "seats": 5})
    ruleset = game(edition=edition, seats=6)
    (note,) = play(ruleset, [SeatOpened(7)])
    assert isinstance(note, Noted)
    assert note.irregularity.code == "no_such_seat"
    events = whole({6: "TS 9C"}, "7H", act(6, "stand"), draw("TD"), bets=[bet(6), bet(7)])
    assert codes(only(play(ruleset, events))) == ["no_such_seat"]


@pytest.mark.article("1(2)", "2004:1(2)")
@both
@pytest.mark.parametrize(("decks", "noted"), [(0, False), (6, False), (8, True)])
def test_as_many_decks_as_authorised_are_in_play(edition: Edition, decks: int, noted: bool) -> None:
    assert bool(play(game(edition=edition, decks=6), [ShoeStarted(decks)])) is noted


@pytest.mark.article("1(3)", "1(4)", "2004:1(3)", "2004:1(4)")
@both
def test_the_metal_box_holds_one_deck_and_white_cards_belong_into_the_shoe(edition: Edition) -> None:
    for option, value in (("decks", 2), ("procedure", "2"), ("bank_first_card", "last")):
        with pytest.raises(BadOption, match=option):
            options_from(Blackjack, {**BOX, "edition": edition, option: value})
    (note,) = play(game(edition=edition, device="continuous"), [CutCardDrawn()])
    assert isinstance(note, Noted)
    result = only(
        play(
            game(edition=edition, device="continuous"),
            whole({1: "TS 9C"}, "7H", CutCardDrawn(), act(1, "stand"), draw("TD")),
        )
    )
    assert codes(result) == ["white_card"]


# ---- art. 2: the shuffle


@pytest.mark.article("2(2)(1)", "2004:2(2)(1)")
@both
def test_the_round_of_the_second_white_card_is_the_last_of_the_shoe(edition: Edition) -> None:
    ruleset = game(edition=edition)
    first = whole({1: "TS 9C"}, "7H", CutCardDrawn(), act(1, "stand"), draw("TD"), RoundPaid())
    again = whole({1: "TS 9C"}, "7H")
    verdicts = play(ruleset, [*first, *again])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Opened, Closed, Suspended]
    burnt = draw("2S 2H 2D 2C 3S 3H")
    shuffled = play(ruleset, [*first, ShoeStarted(6), *burnt, *again, act(1, "stand"), *draw("TD")])
    assert isinstance(last(shuffled), Resolved)
    assert after(ruleset, [*first[:4], CutCardDrawn()])[1].detail["last"] is True


@pytest.mark.article("2(2)(1)")
def test_a_white_card_between_two_rounds_leaves_one_more() -> None:
    one_more = [CutCardDrawn(), *whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"))]
    verdicts = play(game(), [*one_more, *whole({1: "TS 9C"}, "7H")])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Opened, Closed, Suspended]


@pytest.mark.article("2(2)(2)", "2004:2(2)(2)")
@both
def test_the_bank_may_shuffle_after_any_round(edition: Edition) -> None:
    ruleset = game(edition=edition, burn="one")
    round_ = whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"), RoundPaid())
    verdicts = play(ruleset, [*round_, ShoeStarted(6), *draw("2S"), *round_])
    assert [result.outcome["results"] for result in results(verdicts)] == [{"1.1": "win"}, {"1.1": "win"}]


@pytest.mark.article("2(2)(3)", "2004:2(2)(3)")
@both
def test_the_metal_box_serves_one_round_and_is_shuffled_again(edition: Edition) -> None:
    ruleset = game(**BOX, edition=edition)
    round_ = whole({1: "TS 9C"}, "7H TD", act(1, "stand"), RoundPaid())
    shuffled: list[Event] = [ShoeStarted(1), *draw("2S")]
    assert len(results(play(ruleset, [*shuffled, *round_, *shuffled, *round_]))) == 2
    assert isinstance(last(play(ruleset, [*shuffled, *round_, *round_[:3]])), Suspended)
    # Shuffled after the bets were opened, as well.
    assert len(results(play(ruleset, [*shuffled, *round_, *round_[:2], *shuffled, *round_[2:]]))) == 2


@pytest.mark.article("2(2)(4)", "2004:2(2)(4)")
@both
def test_cards_go_back_into_the_shuffler_after_the_round(edition: Edition) -> None:
    ruleset = game(edition=edition, device="continuous")
    early = whole({1: "TS 9C"}, "7H", CardsReturned(3), act(1, "stand"), draw("TD"))
    assert codes(only(play(ruleset, early))) == ["cards_returned_early"]
    late = whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"), CardsReturned(4))
    assert codes(only(play(ruleset, late))) == []


@pytest.mark.article("3(3)", "2004:3(3)")
@both
def test_several_hands_are_played_side_by_side(edition: Edition) -> None:
    seats = {1: "TS 9C", 2: "TH 8C", 5: "TD 7C"}
    then: list[Event] = [act(1, "stand"), act(2, "stand"), act(5, "stand"), *draw("TD")]
    bets = [bet(1), bet(2, 200), bet(5, 50)]
    result = only(play(game(edition=edition), whole(seats, "8H", then, bets=bets)))
    assert result.outcome["results"] == {"1.1": "win", "2.1": "push", "5.1": "lose"}
    assert [(one_.seat, one_.returned) for one_ in result.settlements] == [(1, 200), (2, 200), (5, 0)]


# ---- art. 4: burnt cards


@pytest.mark.article("4(1)(1)", "4(1)(2)", "2004:4(1)(1)", "2004:4(1)(2)")
@both
@pytest.mark.parametrize(("burn", "decks", "burnt"), [("decks", 6, 6), ("decks", 2, 2), ("one", 6, 1)])
@pytest.mark.parametrize("before", [True, False])
def test_cards_are_burnt_before_the_game(edition: Edition, burn: str, decks: int, burnt: int, before: bool) -> None:
    ruleset = game(edition=edition, burn=burn, decks=decks)
    cards = draw(" ".join(DECK[:burnt]))
    round_ = whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"))
    bell = 0 if before else 3
    events = [ShoeStarted(decks), *round_[:bell], *cards, *round_[bell:]]
    result = only(play(ruleset, events))
    assert result.outcome["hands"] == {"dealer": ("7H", "TD"), "1.1": ("TS", "9C")}
    state, view = after(ruleset, [ShoeStarted(decks)])
    assert (state.position.burn, view.phase) == (burnt, "burning")


@pytest.mark.article("4(2)", "2004:4(2)")
@both
def test_a_card_is_burnt_in_every_further_round_and_before_the_banks_second(edition: Edition) -> None:
    first = [ShoeStarted(6), *draw("2S"), *whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"), RoundPaid())]
    start: list[Event] = [BetsOpened(), BetsClosed()]
    rest: list[Event] = [*deal({1: "TS 9C"}, "7H"), act(1, "stand")]
    for option, burnt, second in (("one", "3S", ""), ("one_and_before_second", "3S", "4S")):
        ruleset = game(edition=edition, burn="one", burn_each_round=option)
        events = [*first, *start, *draw(burnt), *rest, *draw(second), *draw("TD")]
        assert [result.outcome["hands"]["dealer"] for result in results(play(ruleset, events))] == [("7H", "TD")] * 2
        assert due([*first, *start], edition=edition, burn="one", burn_each_round=option) == ("card", "burn")
        to_bank = [*first, *start, *draw(burnt), *rest]
        waits = due(to_bank, edition=edition, burn="one", burn_each_round=option)
        assert waits == ("card", "burn" if second else "dealer")
    for wrong in ({**HOLE, "burn_each_round": "one_and_before_second"}, {**BOX, "burn_each_round": "one"}):
        with pytest.raises(BadOption, match=r"art. 4\(2\)"):
            options_from(Blackjack, wrong)


FIRST: list[Event] = [
    *[ShoeStarted(6), *draw("2S")],
    *whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"), RoundPaid(), SeatClosed(1)),
]
EACH: dict[str, Any] = {"burn": "one", "burn_each_round": "one"}


@pytest.mark.article("4(2)", "2004:4(2)")
@both
@pytest.mark.parametrize(
    "unburnt",
    [
        [BetsOpened(), bet(1), RoundVoided("")],
        [BetsOpened(), bet(1), BetsClosed(), RoundVoided("")],
        [BetsOpened(), BetsClosed()],
        [BetsOpened(), BetsClosed(), BetsOpened(), BetsClosed()],
    ],
)
def test_a_round_that_ended_before_its_burn_leaves_no_second_card_to_burn(
    edition: Edition, unburnt: list[Event]
) -> None:
    again = whole({1: "TS 7C"}, "7H", act(1, "hit"), draw("3D"), act(1, "stand"), draw("TD"), bets=[bet(1)])
    events = [*FIRST, *unburnt, *again[:3], *draw("3S"), *again[3:], RoundPaid()]
    result = results(play(game(edition=edition, **EACH), events))[-1]
    assert result.outcome["hands"] == {"dealer": ("7H", "TD"), "1.1": ("TS", "7C", "3D")}
    assert (codes(result), back(result)) == ([], {"main": 200})


@pytest.mark.article("4(1)(1)", "4(2)")
def test_the_burn_of_a_new_shoe_is_that_of_its_first_round() -> None:
    opened: list[Event] = [ShoeStarted(6), BetsOpened(), BetsClosed(), BetsOpened(), bet(1), BetsClosed()]
    assert after(game(burn_each_round="one"), opened)[0].position.burn == 6


def held(verdicts: Iterable[Verdict]) -> list[tuple[Reason, str]]:
    """Why a round waited, and the code of what helps."""
    return [(one_.reason, one_.remedy.code) for one_ in verdicts if isinstance(one_, Suspended)]


SEATS = (say("no_seat"), "do_name_seats")
LOST_SEATS = (say("seats_uncertain"), "do_name_seats")
LOST = (say("round_events"), "do_name_seats")
BURNT = (say("burnt_count"), "do_burn")


@pytest.mark.article("4(2)", "2004:4(2)")
@both
@pytest.mark.parametrize(("missed", "why"), [([], SEATS), ([EventsMissed(1)], LOST_SEATS)])
@pytest.mark.parametrize("answer", [{}, {"dealer": (), "1.1": ()}])
def test_whether_the_burn_is_among_cards_told_while_the_seats_were_asked_for_is_asked(
    edition: Edition, missed: list[Event], why: tuple[Reason, str], answer: dict[str, tuple[str, ...]]
) -> None:
    ruleset = game(edition=edition, **EACH)
    events = [*FIRST, BetsOpened(), *missed, BetsClosed(), *draw("3S"), DealCorrected({"dealer": (), "1.1": ()})]
    assert held(play(ruleset, events)) == [why, BURNT]
    rest = [*deal({1: "TS 7C"}, "7H"), act(1, "hit"), *draw("3D"), act(1, "stand"), *draw("TD")]
    result = results(play(ruleset, [*events, DealCorrected(answer), *rest]))[-1]
    assert result.outcome["hands"] == {"dealer": ("7H", "TD"), "1.1": ("TS", "7C", "3D")}
    # Where none came, and no event is missing, it is still due.
    if not missed:
        quiet = [*FIRST, BetsOpened(), BetsClosed(), DealCorrected({"dealer": (), "1.1": ()})]
        assert due(quiet, edition=edition, **EACH) == ("card", "burn")


@pytest.mark.article("4(2)", "2004:4(2)")
@both
@pytest.mark.parametrize("option", ["one", "one_and_before_second"])
@pytest.mark.parametrize("early", [draw("3S"), [CardUnreadable()], [EventsMissed(1)], draw("3S 4S")])
@pytest.mark.parametrize("paid", [True, False])
def test_whether_a_card_before_the_bets_were_opened_was_the_one_to_burn_is_asked(
    edition: Edition, option: str, early: list[Event], paid: bool
) -> None:
    """By the Chinese text it is burnt before the round begins; taken for nothing, it would shift the whole deal."""
    ruleset = game(edition=edition, burn="one", burn_each_round=option)
    events = [*(FIRST if paid else FIRST[:-2]), *early, BetsOpened(), bet(1), BetsClosed()]
    assert held(play(ruleset, events)) == [BURNT]
    dealt = [*events, DealCorrected({}), *deal({1: "TS 7C"}, "7H"), act(1, "hit"), *draw("3D")]
    assert after(ruleset, dealt)[1].detail["hands"] == {"dealer": ("7H",), "1.1": ("TS", "7C", "3D")}
    # In a new shoe's first round nothing is burnt but its own cards, nor where none is by option.
    new: list[Event] = [*FIRST, ShoeStarted(6), *draw("2S"), *early, BetsOpened(), bet(1), BetsClosed()]
    assert held(play(ruleset, new)) == held(play(game(edition=edition), [*FIRST[2:], *events[len(FIRST) :]])) == []


@pytest.mark.article("4(2)", "2004:4(2)")
@both
def test_a_card_told_before_the_banks_second_while_the_round_waited_may_be_burnt(edition: Edition) -> None:
    ruleset = game(edition=edition, burn="one", burn_each_round="one_and_before_second")
    told = [*FIRST, BetsOpened(), bet(1), BetsClosed(), *draw("3S"), *deal({1: "TS 9C"}, "2H"), act(1, "stand")]
    waits = [*told, EventsMissed(1), *draw("4S"), DealCorrected({"dealer": ("2H",)})]
    assert held(play(ruleset, waits)) == [(say("round_events"), "do_correct"), BURNT]
    result = results(play(ruleset, [*waits, DealCorrected({}), *draw("5D 6C 9S")]))[-1]
    assert result.outcome["hands"]["dealer"] == ("2H", "5D", "6C", "9S")
    # Nor is it known where it could not be read, or was lost.
    for doubt in ([CardUnreadable()], [EventsMissed(1)]):
        assert held(play(ruleset, [*told, *doubt, DealCorrected({})]))[1:] == [BURNT]
    # It may have been the bank's, too.
    (_, mine) = results(play(ruleset, [*waits[:-1], DealCorrected({"dealer": ("2H", "4S")}), *draw("6C 5C")]))
    assert mine.outcome["hands"]["dealer"] == ("2H", "4S", "6C", "5C")
    assert due([*told, DealCorrected({})], edition=edition, burn="one", burn_each_round="one_and_before_second") == (
        "card",
        "burn",
    )


# ---- art. 5: the deal


@pytest.mark.article("5(1)", "2004:5(1)")
@both
def test_cards_are_dealt_one_at_a_time_from_the_left_to_seats_with_bets_and_the_bank(edition: Edition) -> None:
    ruleset = game(edition=edition)
    events: list[Event] = [SeatOpened(4), BetsOpened(), bet(6), bet(2), BetsClosed()]
    waits = []
    for card in ("2S", "3S", "4S", "5S", "6S"):
        waits.append(due(events, edition=edition)[1])
        events.append(CardDrawn(card))
    assert waits == ["2.1", "6.1", "dealer", "2.1", "6.1"]
    assert after(ruleset, events)[1].detail["hands"] == {"dealer": ("4S",), "2.1": ("2S", "5S"), "6.1": ("3S", "6S")}
    events = [BetsOpened(), bet(2), bet(6), BetsClosed(), *deal({2: "2S 5S", 6: "3S 6S"}, "4S", last=True)]
    shown = after(game(edition=edition, bank_first_card="last"), events)[1].detail["hands"]
    assert shown == {"dealer": ("4S",), "2.1": ("2S", "5S"), "6.1": ("3S", "6S")}


@pytest.mark.article("5(1)(1)", "2004:5(1)(1)")
@both
def test_a_card_face_up_in_the_shoe_is_void_and_the_next_takes_its_place(edition: Edition) -> None:
    ruleset = game(edition=edition)
    events = [SeatOpened(1), BetsOpened(), BetsClosed(), *draw("TS 7H"), *draw("AC", "up"), *draw("9C")]
    result = only(play(ruleset, [*events, act(1, "stand"), *draw("TD", "down")]))
    assert result.outcome["hands"]["1.1"] == ("TS", "9C")
    assert codes(result) == ["card_face_up"]


@pytest.mark.article("5(1)(1)", "2004:5(1)(1)")
@both
@pytest.mark.parametrize(("option", "hand"), [("void", ("9C", "7H")), ("valid", ("AC", "TS"))])
def test_the_first_card_of_the_game_may_be_valid_face_up(edition: Edition, option: str, hand: tuple[str, str]) -> None:
    ruleset = game(edition=edition, first_card_face_up=option, burn="one")
    events = [ShoeStarted(6), *draw("2S"), SeatOpened(1), BetsOpened(), BetsClosed(), *draw("AC", "up")]
    rest = draw("9C TS 7H") if option == "void" else draw("9C TS")
    hands = after(ruleset, [*events, *rest])[1].detail["hands"]
    assert (hands["1.1"], hands["dealer"]) == (hand, ("TS",) if option == "void" else ("9C",))
    # Only the first: in the next round no card is.
    later = [*whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD")), BetsOpened(), BetsClosed()]
    assert due([*later, *draw("AC", "up")], first_card_face_up=option, edition=edition) == ("card", "1.1")


@pytest.mark.article("5(1)(1)")
@pytest.mark.parametrize("name", ["dealer", "1.1"])
def test_a_face_down_card_that_was_seen_stops_the_round_until_it_is_settled(name: str) -> None:
    ruleset = game(**BOX)
    events = whole({1: "TS 9C"}, "7H TD", CardExposed(name, "TD"))
    assert isinstance(last(play(ruleset, events)), Suspended)
    fixed: list[Event] = [DealCorrected({"1.1": ("TS", "9C")}), act(1, "stand")]
    result = only(play(ruleset, [*events, *fixed]))
    assert (codes(result), result.outcome["results"]) == (["card_exposed"], {"1.1": "win"})
    assert not [one_ for one_ in play(game(), whole({1: "TS 9C"}, "7H", CardExposed("1.1"))) if _held(one_)]


def _held(verdict: Verdict) -> bool:
    return isinstance(verdict, Suspended)


@pytest.mark.article("5(1)(2)", "2004:5(1)(2)")
@both
def test_an_error_of_the_deal_is_put_right_and_the_round_goes_on(edition: Edition) -> None:
    ruleset = game(edition=edition)
    events = whole({1: "TS 9C", 2: "5H 6H"}, "7H", draw("KC"))
    assert isinstance(last(play(ruleset, events)), Suspended)
    # The card belonged to seat 1: 29, bust.
    fixed: list[Event] = [DealCorrected({"1.1": ("TS", "9C", "KC")}), act(2, "hit"), *draw("9D"), act(2, "stand")]
    result = only(play(ruleset, [*events, *fixed, *draw("TD")]))
    assert result.outcome["hands"] == {"dealer": ("7H", "TD"), "1.1": ("TS", "9C", "KC"), "2.1": ("5H", "6H", "9D")}
    assert result.outcome["results"] == {"1.1": "lose", "2.1": "win"}
    assert "5(1)(2)" in articles(result)


@pytest.mark.article("5(1)(2)", "2004:5(1)(2)")
@both
def test_cards_that_cannot_be_put_right_are_cancelled_and_the_bets_come_back(edition: Edition) -> None:
    events = whole({1: "TS 9C"}, "7H", draw("KC"), RoundVoided("misdeal"), bets=[bet(1), bet(1, 5, "any_pair")])
    result = only(play(game(edition=edition), events))
    assert result.void == Void(say("misdeal"), "returned")
    assert back(result) == {"main": 100, "any_pair": 5}
    assert articles(result) == {"5(1)(2)"}


@pytest.mark.article("5(2)(1)(1)", "2004:5(2)(1)(1)")
@both
def test_procedure_1_seats_face_down_the_bank_one_card_face_up(edition: Edition) -> None:
    options = {"edition": edition, "procedure": "1"}
    events = whole({1: "TS 9C", 2: "AS KC", 3: "TH 6C"}, "7H")
    hands = after(game(**options), events)[1].detail["hands"]
    assert hands["dealer"] == ("7H",)
    assert hands["1.1"] == hands["2.1"] == hands["3.1"] == ("??", "??")
    decided = [act(1, "stand"), act(2, "stand"), act(3, "hit"), *draw("TC")]
    shown = after(game(**options), [*events, *decided])[1].detail["hands"]
    assert (shown["2.1"], shown["3.1"]) == (("??", "??"), ("TH", "6C", "TC"))
    result = only(play(game(**options), [*events, *decided, *draw("TD")]))
    assert result.outcome["hands"]["dealer"] == ("7H", "TD")
    assert result.outcome["results"] == {"1.1": "win", "2.1": "win", "3.1": "lose"}
    assert "5(2)(1)(1)" in articles(result)


@pytest.mark.article("5(2)(1)(2)", "2004:5(2)(1)(2)")
@both
def test_the_metal_box_gives_the_bank_its_second_card_face_down_before_the_decisions(edition: Edition) -> None:
    ruleset = game(**BOX, edition=edition)
    events = whole({1: "TS 9C"}, "7H TD")
    view = after(ruleset, events)[1]
    assert view.detail["hands"]["dealer"] == ("7H", "??")
    assert "TD" not in msgspec.json.encode(view).decode()
    result = only(play(ruleset, [*events, act(1, "stand")]))
    assert result.outcome["hands"]["dealer"] == ("7H", "TD")
    assert "5(2)(1)(2)" in articles(result)


@pytest.mark.article("5(2)(2)(1)", "5(2)(2)(2)", "2004:5(2)(2)(1)", "2004:5(2)(2)(2)")
@both
def test_procedure_2_all_face_up_the_banks_second_card_after_the_decisions(edition: Edition) -> None:
    ruleset = game(edition=edition, procedure="2")
    events = whole({1: "TS 9C"}, "7H")
    assert after(ruleset, events)[1].detail["hands"] == {"dealer": ("7H",), "1.1": ("TS", "9C")}
    assert isinstance(last(play(ruleset, [*events, *draw("TD")])), Suspended)
    assert due([*events, act(1, "stand")], edition=edition) == ("card", "dealer")


@pytest.mark.article("5(2)(3)(1)", "5(2)(3)(2)")
def test_procedure_3_the_banks_second_card_is_dealt_face_down() -> None:
    events = whole({1: "TS 9C", 2: "TH 8C"}, "7H AD")
    view = after(game(**HOLE), events)[1]
    assert view.detail["hands"] == {"dealer": ("7H", "??"), "1.1": ("TS", "9C"), "2.1": ("TH", "8C")}
    assert "dealer" not in view.detail["totals"]
    # Nothing that is told before its time names it: not a void round, not a suspended one.
    for end in ([RoundVoided("")], [EventsMissed(1)], [EventsMissed(1), BetsOpened()], draw("2C")):
        state, shown = after(game(**HOLE), [*events, *end])
        verdicts = play(game(**HOLE), [*events, *end])
        assert "AD" not in msgspec.json.encode((shown, verdicts)).decode()
        assert state.count
    with pytest.raises(BadOption, match="bank_first_card"):
        options_from(Blackjack, {**HOLE, "bank_first_card": "last"})


@pytest.mark.article("5(2)(3)(3)")
@pytest.mark.parametrize(("up", "peeks"), [("AS", True), ("TS", True), ("KS", True), ("9S", False), ("2S", False)])
def test_the_bank_peeks_under_an_ace_or_ten(up: str, peeks: bool) -> None:
    events = whole({1: "TH 9C"}, f"{up} 8D")
    assert due(events, **HOLE) == (("peek", "dealer") if peeks else ("decision", "1.1"))
    told = [*events, HoleCardPeeked(blackjack=False)]
    assert due(told, **HOLE) == ("decision", "1.1")
    result = only(play(game(**HOLE), [*told, act(1, "stand"), *(draw("7H") if up == "2S" else [])]))
    assert codes(result) == ([] if peeks else ["peek_not_due"])
    # A decision before the peek is refused, a card before it stops the round.
    if peeks:
        result = only(play(game(**HOLE), [*events, act(1, "stand"), HoleCardPeeked(blackjack=False), act(1, "stand")]))
        assert codes(result) == ["decision_before_peek"]
        assert isinstance(last(play(game(**HOLE), [*events, *draw("2C")])), Suspended)


@pytest.mark.article("5(2)(3)(3)")
def test_a_peek_that_contradicts_the_shoe_or_itself_is_doubtful() -> None:
    for events in (
        whole({1: "TH 9C"}, "AS 8D", HoleCardPeeked(blackjack=True)),
        whole({1: "TH 9C"}, "AS KD", HoleCardPeeked(blackjack=False)),
        whole({1: "TH 9C"}, "AS 8D", HoleCardPeeked(blackjack=False), HoleCardPeeked(blackjack=True)),
    ):
        assert isinstance(last(play(game(**HOLE), events)), Suspended)
    (note,) = play(game(**HOLE), [HoleCardPeeked(blackjack=True)])
    assert isinstance(note, Noted)


@pytest.mark.article("5(2)(3)(4)")
def test_a_blackjack_under_the_peek_collects_at_once() -> None:
    events = whole(
        {1: "TH 9C", 2: "AH KC", 3: "5C 6C"},
        "TS AD",
        HoleCardPeeked(blackjack=True),
        bets=[bet(1), bet(2), bet(3)],
    )
    result = only(play(game(**HOLE), events))
    assert result.outcome["results"] == {"1.1": "lose", "2.1": "push", "3.1": "lose"}
    assert result.outcome["hands"]["dealer"] == ("TS", "AD")
    assert [one_.returned for one_ in result.settlements] == [0, 100, 0]


@pytest.mark.article("5(2)(3)(4)", "5(1)(2)")
def test_a_blackjack_found_after_a_split_waits_for_the_second_card_of_each_hand_only() -> None:
    """The bank's cards were put right, so it looks again."""
    then = [HoleCardPeeked(blackjack=False), act(1, "split"), DealCorrected({"dealer": ("AH", "KD")})]
    found = whole({1: "8S 8H", 2: "TS 9C"}, "AH 9D", then, HoleCardPeeked(blackjack=True))
    assert due(found, **HOLE) == ("card", "1.1")
    assert due([*found, *draw("3S")], **HOLE) == ("card", "1.2")
    result = only(play(game(**HOLE), [*found, *draw("3S 4S")]))
    assert result.outcome["results"] == {"1.1": "lose", "1.2": "returned", "2.1": "lose"}


@pytest.mark.article("5(2)(3)(5)")
@pytest.mark.parametrize(
    ("down", "shown"),
    [("none", ("TS", "9C")), ("first", ("??", "9C")), ("second", ("TS", "??")), ("both", ("??", "??"))],
)
def test_the_players_cards_may_lie_face_down_in_procedure_3(down: str, shown: tuple[str, str]) -> None:
    events = whole({1: "TS 9C"}, "7H TD")
    view = after(game(**HOLE, players_down=down), events)[1]
    assert view.detail["hands"]["1.1"] == shown
    assert ("say" in view.detail) == (down == "none")
    with pytest.raises(BadOption, match="players_down"):
        options_from(Blackjack, {"players_down": "both"})


def splits(rank_: str, times: int) -> list[Event]:
    """Hand 1 is split again and again: it receives one of its rank each time."""
    events: list[Event] = []
    for suit_ in "SHDCSH"[:times]:
        events += [act(1, "split"), CardDrawn(rank_ + suit_)]
    return events


@pytest.mark.article("5(2)(3)(7)", "16(1)", "2004:16(1)")
def test_four_hands_or_more_five_in_procedure_3() -> None:
    for options, hands in (({}, 4), ({"edition": "2004"}, 4), ({"max_hands": 6}, 6), ({**HOLE, "max_hands": 5}, 5)):
        bank = "7H TD" if "procedure" in options else "7H"
        events = whole({1: "8S 8H"}, bank, splits("8", hands - 2))
        assert "split" in may(events, **options)
        assert "split" not in may([*events, act(1, "split"), CardDrawn("8C")], **options)
        state, _ = after(game(**options), [*events, act(1, "split")])
        assert state.position.play is not None
        assert [hand.number for hand in state.position.play.hands] == list(range(1, hands + 1))
    with pytest.raises(BadOption, match=r"art. 5\(2\)\(3\)\(7\)"):
        options_from(Blackjack, {**HOLE, "max_hands": 6})
    with pytest.raises(BadOption, match="max_hands"):
        options_from(Blackjack, {"max_hands": 3})


@pytest.mark.article("5(2)(3)(8)")
def test_a_table_maximum_of_all_bets_in_procedure_3() -> None:
    ruleset = game(**HOLE, table_maximum=250)
    laid: list[Event] = [BetsOpened(), bet(1), bet(2, 151), bet(2, 150), BetsClosed()]
    state, _ = after(ruleset, laid)
    assert state.open is not None
    assert [one_.amount for one_ in state.open.round.wagers] == [100, 150]
    assert [note.code for note in state.open.round.irregularities] == ["table_maximum"]
    with pytest.raises(BadOption, match="table_maximum"):
        options_from(Blackjack, {"table_maximum": 250})


@pytest.mark.article("2004:5(2)")
def test_edition_2004_has_two_procedures() -> None:
    with pytest.raises(BadOption, match=r"56/2004 art. 5\(2\)"):
        options_from(Blackjack, {"edition": "2004", "procedure": "3"})
    for procedure in ("1", "2"):
        result = one("TS 9C", "7H", act(1, "stand"), draw("TD"), edition="2004", procedure=procedure)
        assert all(line.startswith("Despacho 56/2004 art. ") for line in result.law)


# ---- art. 6: further cards


@pytest.mark.article("6(1)", "2004:6(1)")
@both
@pytest.mark.parametrize(
    ("bank", "cards", "total"),
    [
        ("7H", "9C TD", 26),
        ("7H", "TC", 17),
        ("TH", "6C 5D", 21),
        ("2H", "2C 2D 2S 3S 5C AC", 17),
        ("AH", "7C", 18),
        ("AH", "2C 3D TS 4C", 20),
        ("AH", "5C TD AS", 17),
    ],
)
def test_the_bank_draws_to_sixteen_and_stands_on_seventeen(edition: Edition, bank: str, cards: str, total: int) -> None:
    result = one("TS 9S", bank, act(1, "stand"), draw(cards), edition=edition)
    assert result.outcome["totals"]["dealer"] == total
    before = cards.split()[:-1]
    waiting = whole({1: "TS 9S"}, bank, act(1, "stand"), draw(" ".join(before)))
    assert due(waiting, edition=edition) == ("card", "dealer")


@pytest.mark.article("6(1)", "6(6)", "2004:6(1)", "2004:6(6)")
@both
@pytest.mark.parametrize(
    ("option", "cards", "draws"),
    [
        ("ace_six", "AH 6C", True),
        ("ace_six", "6H AC", True),
        ("ace_six", "AH 3C 3D", False),
        ("ace_six", "AH AC 5D", False),
        ("any_soft", "AH 6C", True),
        ("any_soft", "AH 3C 3D", True),
        ("any_soft", "TH 7C", False),
        ("stand", "AH 6C", False),
        ("stand", "AH 3C 3D", False),
    ],
)
def test_soft_17(edition: Edition, option: str, cards: str, draws: bool) -> None:
    up, *rest = cards.split()
    events = whole({1: "TS 9S"}, up, act(1, "stand"), draw(" ".join(rest)))
    ruleset = game(edition=edition, soft_17=option)
    assert bool(results(play(ruleset, events))) is not draws
    if draws:
        assert only(play(ruleset, [*events, *draw("2S")])).outcome["totals"]["dealer"] == 19


@pytest.mark.article("6(1)", "2004:6(1)")
@both
def test_a_needless_card_of_the_bank_is_void_or_counts_unseen(edition: Edition) -> None:
    over = whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"), bets=[bet(1)])
    *first, note = play(game(edition=edition), [*over, *draw("4C", "down")])
    assert isinstance(note, Noted)
    assert note.irregularity.code == "bank_extra_card"
    assert isinstance(last(first), Resolved)
    ruleset = game(edition=edition, extra_card="valid_if_unseen")
    corrected = last(play(ruleset, [*over, *draw("4C", "down")]))
    assert isinstance(corrected, Corrected)
    assert corrected.result.outcome["totals"]["dealer"] == 21
    assert (back(corrected.result), corrected.result.supersedes) == ({"main": 0}, corrected.result.round)
    for seen in (draw("4C"), [RoundPaid(), *draw("4C", "down")], draw("4C", "up")):
        assert isinstance(last(play(ruleset, [*over, *seen])), Noted)


@pytest.mark.article("6(1)", "2004:6(1)")
@both
def test_with_a_needless_card_that_counts_the_bank_draws_on_below_seventeen(edition: Edition) -> None:
    ruleset = game(edition=edition, extra_card="valid_if_unseen")
    over = [*whole({1: "TS 4C"}, "AH", act(1, "stand"), draw("7D"), bets=[bet(1)]), *draw("5C", "down")]
    assert due(over, edition=edition, extra_card="valid_if_unseen") == ("card", "dealer")
    assert len(results(play(ruleset, over))) == 1
    corrected = last(play(ruleset, [*over, *draw("8S")]))
    assert isinstance(corrected, Corrected)
    assert corrected.result.outcome["hands"]["dealer"] == ("AH", "7D", "5C", "8S")
    assert (back(corrected.result), codes(corrected.result)) == ({"main": 0}, ["bank_extra_card"])
    # A doubt meanwhile is put right with the card, or without it.
    *_, again = play(ruleset, [*over, *draw("8S"), DealCorrected({"dealer": ("AH", "7D", "5C", "9S")})])
    assert isinstance(again, Corrected)
    assert back(again.result) == {"main": 200}
    doubted = [*over, CardUnreadable()]
    for bank, returned in ((("AH", "7D", "5C", "8S"), 0), (("AH", "7D", "5C", "9S"), 200), (("AH", "7D"), 0)):
        *_, put_right = play(ruleset, [*doubted, DealCorrected({"dealer": bank})])
        assert isinstance(put_right, Corrected)
        assert back(put_right.result) == {"main": returned}
    assert isinstance(last(play(ruleset, [*doubted, DealCorrected({"dealer": ("AH", "8D", "5C", "8S")})])), Suspended)


@pytest.mark.article("6(1)", "10(6)", "2004:6(1)")
@both
@pytest.mark.parametrize("option", ["void", "valid_if_unseen"])
def test_a_blackjack_of_the_bank_takes_no_needless_card(edition: Edition, option: str) -> None:
    insured: list[Event] = [act(1, "insurance", amount=50), act(1, "stand"), *draw("KD"), *draw("5C", "down")]
    verdicts = play(game(edition=edition, extra_card=option), whole({1: "TS 9C"}, "AH", insured, bets=[bet(1)]))
    note = last(verdicts)
    assert isinstance(note, Noted)
    assert note.irregularity.code == "bank_extra_card"
    assert back(only(verdicts)) == {"main": 0, "insurance": 150}


@pytest.mark.article("6(1)", "7(1)")
def test_the_bank_draws_where_something_depends_on_it_or_always() -> None:
    bust: list[Event] = [act(1, "hit"), *draw("KD")]
    assert one("TS 9C", "7H", bust).outcome["hands"]["dealer"] == ("7H",)
    assert one("TS 9C", "7H", bust, draw("2S 8C"), bank_draws="always").outcome["totals"]["dealer"] == 17
    assert one("AS KC", "9H").outcome["hands"]["dealer"] == ("9H",)
    assert one("AS KC", "9H", draw("2D 8S"), bank_draws="always").outcome["totals"]["dealer"] == 19


@pytest.mark.article("6(2)", "7(2)", "2004:6(2)", "2004:7(2)")
@both
def test_who_busts_shows_and_loses_even_if_the_bank_busts(edition: Edition) -> None:
    events = whole({1: "TS 6C", 2: "TH 9C"}, "7H", act(1, "hit"), draw("TD"), bets=[bet(1), bet(2)])
    shown = after(game(edition=edition, procedure="1"), events)[1].detail["hands"]
    assert (shown["1.1"], shown["2.1"]) == (("TS", "6C", "TD"), ("??", "??"))
    result = only(play(game(edition=edition), [*events, act(2, "stand"), *draw("9D TC")]))
    assert result.outcome["bust"] is True
    assert result.outcome["results"] == {"1.1": "lose", "2.1": "win"}
    assert [one_.returned for one_ in result.settlements] == [0, 200]
    assert "7(2)" in articles(result)


@pytest.mark.article("6(3)", "2004:6(3)")
@both
def test_seats_decide_from_the_left_each_to_its_end(edition: Edition) -> None:
    events = whole({1: "TS 2C", 2: "TH 9C"}, "7H", bets=[bet(1), bet(2)])
    assert due(events, edition=edition) == ("decision", "1.1")
    early = [*events, act(2, "stand"), act(1, "hit"), *draw("3D"), act(1, "stand"), act(2, "stand"), *draw("TD")]
    result = only(play(game(edition=edition), early))
    assert codes(result) == ["out_of_turn"]
    assert result.outcome["results"] == {"1.1": "lose", "2.1": "win"}
    late = [*events, act(1, "stand"), act(1, "hit"), act(1, "stand"), act(2, "stand"), act(2, "stand"), *draw("TD")]
    # Said twice changes nothing; another word afterwards is irregular.
    assert codes(only(play(game(edition=edition), late))) == ["out_of_turn"]
    hits = whole({1: "2S 2C"}, "7H", act(1, "hit"), act(1, "hit"), draw("3S"), act(1, "stand"), draw("TC"))
    assert codes(only(play(game(edition=edition), hits))) == []
    assert isinstance(last(play(game(edition=edition), [act(1, "hit")])), Noted)


@pytest.mark.article("6(4)(1)", "2004:6(4)(1)")
@both
def test_no_card_on_blackjack_or_twenty_one(edition: Edition) -> None:
    events = whole({1: "AS KC", 2: "5H 6C", 3: "TH 9C"}, "7H")
    assert due(events, edition=edition) == ("decision", "2.1")
    events += [act(2, "hit"), *draw("TD")]
    assert due(events, edition=edition) == ("decision", "3.1")
    assert may(whole({1: "TH TC"}, "7H"), edition=edition) >= {"hit"}


@pytest.mark.article("6(4)(2)", "17(2)", "2004:6(4)(2)", "2004:17(2)")
@both
def test_a_double_receives_one_card(edition: Edition) -> None:
    events = whole({1: "5H 6C", 2: "TH 9C"}, "7H", act(1, "double", amount=100), bets=[bet(1), bet(2)])
    assert due(events, edition=edition) == ("card", "1.1")
    assert due([*events, *draw("2S")], edition=edition) == ("decision", "2.1")
    result = one("5H 6C", "7H", act(1, "double"), draw("TS TD"), edition=edition)
    assert back(result) == {"main": 200, "double": 200}
    assert result.outcome["doubled"] == ["1.1"]


TWO_WORDS = (say("two_decisions", hand="1.1"), "do_correct")
NOT_PROVEN = (say("not_proven", hand="1.1"), "do_earlier")
AGAIN = say("decide_again", hand="1.1")


@pytest.mark.article("6(3)", "17(2)", "2004:6(3)", "2004:17(2)")
@both
@pytest.mark.parametrize("words", [("hit", "double"), ("double", "hit")])
@pytest.mark.parametrize("amount", [0, 100])
def test_a_hand_told_to_hit_and_to_double_waits_until_one_is_told_again(
    edition: Edition, words: tuple[str, str], amount: int
) -> None:
    """One text says it of every two words, since any other may contradict a hit or a double."""
    ruleset = game(edition=edition)
    said = [act(1, word, amount=amount if word == "double" else 0) for word in words]
    events = whole({1: "5S 6C"}, "7H", *said, bets=[bet(1)])
    assert held(play(ruleset, events)) == [TWO_WORDS]
    for word, returned in (("hit", {"main": 200}), ("double", {"main": 200, "double": 200})):
        again = [*events, DealCorrected({}), act(1, word)]
        stand = [act(1, "stand")] if word == "hit" else []
        result = only(play(ruleset, [*again, *draw("9D"), *stand, *draw("TC")]))
        assert (back(result), codes(result)) == (returned, [])
        # The card was out already: nobody can tell from it which it was.
        lay: list[Event] = [DealCorrected({"1.1": ("5S", "6C", "9D")})]
        early = [*events, *draw("9D"), *lay]
        assert held(play(ruleset, early)) == [TWO_WORDS, NOT_PROVEN]
        result = only(play(ruleset, [*early, DealCorrected({}), act(1, word), *lay, *stand, *draw("TC")]))
        assert back(result) == returned
    void = only(play(ruleset, [*events, BetsOpened()]))
    assert back(void) == {"main": 100}


@pytest.mark.article("6(3)", "2004:6(3)")
@both
@pytest.mark.parametrize("said", ["hit", "double"])
@pytest.mark.parametrize("then", ["stand", "split", "surrender"])
def test_another_word_of_a_hand_whose_card_is_asked_stops_the_round(edition: Edition, said: str, then: str) -> None:
    """One of the two was keyed wrongly, and the card that comes may be the bank's."""
    ruleset = game(edition=edition)
    events = whole({1: "8S 8H"}, "7H", act(1, said), act(1, then), bets=[bet(1)])
    assert held(play(ruleset, events)) == [TWO_WORDS]
    assert may([*events, DealCorrected({})], edition=edition) == {"stand", "hit", "double", "split", "surrender"}
    stands = [*events, *draw("TD"), DealCorrected({"1.1": ("8S", "8H"), "dealer": ("7H", "TD")})]
    hit: list[Event] = [DealCorrected({}), act(1, "hit"), *draw("2D"), act(1, "stand"), *draw("TD")]
    double: list[Event] = [DealCorrected({}), act(1, "double"), *draw("2D TD")]
    for then_, returned in ((hit, {"main": 200}), (double, {"main": 200, "double": 200})):
        assert back(only(play(ruleset, [*events, *then_]))) == returned
    third = [*events, *draw("2D"), DealCorrected({"1.1": ("8S", "8H", "2D")})]
    if (said, then) == ("hit", "stand"):  # the cards prove which
        assert back(only(play(ruleset, stands))) == {"main": 0}
        assert back(only(play(ruleset, [*third, act(1, "stand"), *draw("TD")]))) == {"main": 200}
    else:
        assert held(play(ruleset, stands))[1:] == [(AGAIN, "do_earlier")]
        assert held(play(ruleset, third))[1:] == [NOT_PROVEN]
        # The deal is entered as it lay, and the decision told.
        earlier = [*stands, DealCorrected({"dealer": ("7H",)}), act(1, "stand")]
        assert back(only(play(ruleset, [*earlier, DealCorrected({"dealer": ("7H", "TD")})]))) == {"main": 0}


ASTRAY = (say("after_refused"), "do_correct")


@pytest.mark.article("6(3)", "2004:6(3)")
@both
@pytest.mark.parametrize(
    ("said", "lies"),
    [
        ([act(1, "stand"), act(1, "hit")], {"1.1": ("TS", "2C", "5D")}),
        ([act(2, "hit")], {"1.1": ("TS", "2C"), "2.1": ("TH", "6C", "5D")}),
        ([act(1, "hit"), act(2, "double")], {"1.1": ("TS", "2C", "5D")}),
        ([act(1, "stand"), act(2, "stand"), act(2, "hit")], {"2.1": ("TH", "6C", "5D")}),
        ([act(3, "split")], {"1.1": ("TS", "2C", "5D")}),
    ],
)
def test_the_card_after_a_refused_decision_is_dealt_to_nobody(
    edition: Edition, said: list[Event], lies: dict[str, tuple[str, ...]]
) -> None:
    """It may be keyed for a wrong seat, or after a stand that was: the card is the player's, or the next hand's."""
    events = whole({1: "TS 2C", 2: "TH 6C"}, "7H", said, draw("5D"))
    assert held(play(game(edition=edition), events)) == [ASTRAY]
    state, _ = after(game(edition=edition), [*events, DealCorrected(lies)])
    assert state.position.play is not None
    assert {f"{one_.seat}.{one_.number}": one_.cards for one_ in state.position.play.hands if len(one_.cards) > 2} == {
        name: cards for name, cards in lies.items() if len(cards) > 2
    }


@pytest.mark.article("6(3)", "18(2)")
def test_who_gives_up_early_does_not_say_whose_the_next_card_is() -> None:
    """The hit of seat 1 was keyed wrongly, the double of seat 2 refused: the card is its."""
    said = [act(1, "hit"), act(2, "double"), act(3, "surrender")]
    assert held(play(game(), whole({1: "5S 9C", 2: "5H 6C", 3: "TH 6D"}, "9D", said, draw("TD")))) == [ASTRAY]


TOLD_UNTAKEN: dict[str, tuple[list[Event], dict[str, tuple[str, ...]]]] = {
    "a double while the round waited": (
        [*draw("5S 7H"), CardUnreadable(), act(1, "double"), *draw("TD")],
        {"1.1": ("5S", "6C", "TD"), "dealer": ("7H",)},
    ),
    "a double during the deal": (
        [*draw("5S 7H"), act(1, "double"), *draw("6C")],
        {"1.1": ("5S", "6C", "TD"), "dealer": ("7H",)},
    ),
    "a double after a stand that was keyed wrongly": (
        [*draw("5S 7H 6C"), act(1, "stand"), act(1, "double"), *draw("TD")],
        {"1.1": ("5S", "6C", "TD")},
    ),
}


@pytest.mark.article("6(3)", "17(2)", "2004:6(3)", "2004:17(2)")
@both
@pytest.mark.parametrize("case", TOLD_UNTAKEN)
def test_a_double_that_was_not_taken_is_not_forgotten(edition: Edition, case: str) -> None:
    """Its three cards may have come by a hit as well: it is told again where it was."""
    before, lies = TOLD_UNTAKEN[case]
    ruleset = game(edition=edition)
    events = [BetsOpened(), bet(1), BetsClosed(), *before, DealCorrected(lies)]
    assert held(play(ruleset, events))[1:] == [NOT_PROVEN]
    earlier = [*events, DealCorrected({"1.1": ("5S", "6C"), "dealer": ("7H",)})]
    for word, returned in (("double", {"main": 200, "double": 200}), ("hit", {"main": 200})):
        told = [*earlier, act(1, word), DealCorrected({"1.1": ("5S", "6C", "TD")}), *draw("TC")]
        assert back(only(play(ruleset, told))) == returned


@pytest.mark.article("6(3)", "17(2)")
def test_a_double_before_the_turn_is_not_forgotten() -> None:
    """Nobody told the stand of seat 1."""
    seats = whole({1: "TS 9C", 2: "5S 6C"}, "7H", act(2, "double"), draw("TD"), bets=[bet(1), bet(2)])
    events = [*seats, DealCorrected({"2.1": ("5S", "6C", "TD")})]
    assert held(play(game(), events)) == [ASTRAY, (say("not_proven", hand="2.1"), "do_earlier")]
    told = [DealCorrected({}), act(1, "stand"), act(2, "double"), DealCorrected({"2.1": ("5S", "6C", "TD")})]
    result = only(play(game(), [*events, *told, *draw("TC")]))
    assert [one_.returned for one_ in result.settlements] == [200, 200, 200]
    # Who decides otherwise at its turn has said so.
    other = [act(1, "stand"), act(2, "hit"), *draw("TD"), EventsMissed(1), DealCorrected({}), *draw("TC")]
    assert held(play(game(), [*seats[:-1], *other])) == [(say("round_events"), "do_correct")]


@pytest.mark.article("10(3)")
def test_even_money_is_not_lost_by_a_double_keyed_for_a_blackjack() -> None:
    said = [act(1, "even_money"), act(1, "double"), EventsMissed(1), DealCorrected({}), act(2, "stand"), *draw("9D")]
    result = only(play(game(), whole({1: "AS KC", 2: "TH 9C"}, "TC", said)))
    assert result.outcome["ended"]["1.1"] == "even_money"


@pytest.mark.article("18(2)")
@pytest.mark.parametrize("option", ["before_any_card", "before_own_card"])
def test_who_gave_up_while_the_round_waited_is_asked_for_it(option: str) -> None:
    ruleset = game(surrender=option)
    dealt = [BetsOpened(), bet(1), bet(2), BetsClosed(), *draw("TS 5S TH 6C"), CardUnreadable()]
    events = [*dealt, act(1, "surrender"), act(2, "hit"), *draw("8D")]
    lies = {"1.1": ("TS", "6C"), "2.1": ("5S", "7D", "8D"), "dealer": ("TH",)}
    waits = [*events, DealCorrected(lies)]
    assert held(play(ruleset, waits))[1:] == [NOT_PROVEN]
    told = [DealCorrected({**lies, "2.1": ("5S", "7D")}), act(1, "surrender"), act(2, "hit"), DealCorrected(lies)]
    result = only(play(ruleset, [*waits, *told, act(2, "stand"), *draw("7C")]))
    assert [one_.returned for one_ in result.settlements] == [50, 200]


@pytest.mark.article("5(1)(2)", "6(3)")
def test_who_was_given_a_further_card_had_not_stood() -> None:
    said = [act(1, "stand"), act(1, "hit"), *draw("3D"), DealCorrected({"1.1": ("2S", "2C", "3D")})]
    assert due(whole({1: "2S 2C", 2: "TH 9C"}, "7H", said)) == ("decision", "1.1")


@pytest.mark.article("5(1)(2)", "17(2)")
def test_a_doubled_hand_is_not_closed_without_its_card() -> None:
    seats = whole({1: "5S 6C", 2: "TH 2C"}, "7H", act(1, "double"), CardUnreadable(), bets=[bet(1), bet(2)])
    why = (say("double_card", hand="1.1"), "do_correct")
    third: dict[str, tuple[str, ...]] = {"2.1": ("TH", "2C", "7D")}
    for lies in ({**third, "dealer": ("7H", "TD")}, third):
        waits = [*seats, DealCorrected(lies)]
        assert held(play(game(), waits))[1:] == [why]
        ends: list[Event] = [*waits, DealCorrected({**lies, "1.1": ("5S", "6C", "9D")}), act(2, "stand"), *draw("TD")]
        assert [one_.returned for one_ in results(play(game(), ends))[0].settlements] == [200, 200, 200]


@pytest.mark.article("6(3)", "6(4)(1)", "17(2)")
@pytest.mark.parametrize(
    ("cards", "said", "card", "late"),
    [("TS 8C", "hit", "3D", 0), ("TS 6C", "hit", "TD", 0), ("5S 6C", "double", "3D", 1)],
)
def test_a_stand_of_a_hand_that_ended_by_itself_changes_nothing(cards: str, said: str, card: str, late: int) -> None:
    """Told late it may be older than a double, not than the card that left no choice."""
    events = whole({1: cards, 2: "TH 9C"}, "7H", act(1, said), draw(card))
    over = [*events, act(1, "stand"), act(2, "stand"), *draw("TD")]
    assert codes(only(play(game(), over))) == []
    assert len(held(judged(game(), [*over, msgspec.structs.replace(act(1, "stand"), overtaken=300)]))) == late


@pytest.mark.article("6(3)")
@pytest.mark.parametrize(
    ("said", "hand"),
    [
        ([act(2, "hit"), act(1, "hit")], "1.1"),
        ([act(2, "double"), DealCorrected({}), act(1, "hit")], "1.1"),
        ([act(1, "stand"), act(1, "hit"), act(2, "hit")], "2.1"),
    ],
)
def test_a_decision_that_was_taken_since_says_whose_the_next_card_is(said: list[Event], hand: str) -> None:
    events = whole({1: "TS 2C", 2: "TH 6C"}, "7H", said, draw("5D"))
    assert held(play(game(), events)) == []
    assert after(game(), events)[1].detail["hands"][hand][2:] == ("5D",)


@pytest.mark.article("6(3)", "6(5)")
def test_the_card_after_a_hit_that_was_told_during_the_deal_is_dealt_to_nobody() -> None:
    deal_ = whole({1: "TS 2C"}, "7H")
    assert held(play(game(), [*deal_[:-1], act(1, "hit"), *deal_[-1:]])) == [ASTRAY]
    rest = [*deal_[-1:], act(1, "stand"), *draw("TD")]
    assert only(play(game(), [*deal_[:-1], act(1, "hit"), DealCorrected({}), *rest])).outcome["totals"]["1.1"] == 12


@pytest.mark.article("6(3)", "17(1)(3)")
def test_a_word_that_the_hand_could_not_say_is_no_contradiction() -> None:
    """Twelve may not be doubled where only eleven may."""
    events = whole({1: "5S 7C"}, "7H", act(1, "hit"), act(1, "double"), draw("8D"), act(1, "stand"), draw("TC"))
    assert codes(only(play(game(doubling=("eleven",)), events))) == ["decision_before_card"]


@pytest.mark.article("6(4)(3)", "16(3)", "2004:6(4)(3)", "2004:16(3)")
@both
def test_split_aces_receive_one_card_each_and_may_be_split_again(edition: Edition) -> None:
    events = whole({1: "AH AC"}, "7H", act(1, "split"), draw("5S"), bets=[bet(1)])
    assert due(events, edition=edition) == ("card", "1.2")
    result = one("AH AC", "7H", act(1, "split"), draw("5S KS TD"), edition=edition)
    assert result.outcome["hands"] == {"dealer": ("7H", "TD"), "1.1": ("AH", "5S"), "1.2": ("AC", "KS")}
    assert result.outcome["ended"] == {"1.1": "stand", "1.2": "twenty_one"}
    again = whole({1: "AH AC"}, "7H", act(1, "split"), draw("AS"))
    assert may(again, edition=edition) == {"stand", "split"}
    assert due(again, edition=edition, resplit_aces=False) == ("card", "1.2")


@pytest.mark.article("6(5)", "2004:6(5)")
@both
def test_the_bank_calls_the_total_and_waits_for_the_decision(edition: Edition) -> None:
    events = whole({1: "8H 8C"}, "7H")
    view = after(game(edition=edition), events)[1]
    assert view.detail["say"] == {"pt": "Lugar 1: 16", "zh-Hant": "第1門: 16點", "en": "Seat 1: 16"}
    assert set(view.detail["due"]["actions"]) == {"stand", "hit", "double", "split", "surrender"}
    early = only(
        play(game(edition=edition), [*events[:-1], act(1, "stand"), *events[-1:], act(1, "stand"), *draw("TD")])
    )
    assert codes(early) == ["decision_before_deal"]


@pytest.mark.article("7(1)", "2004:7(1)")
@both
def test_the_totals_of_all_are_called(edition: Edition) -> None:
    said = one("TS 9C", "7H", act(1, "stand"), draw("TD"), edition=edition).announcements
    assert said["en"] == "Bank 17; Seat 1: 19, wins"
    assert said["pt"] == "Banca 17; Lugar 1: 19, ganha"
    assert said["zh-Hant"] == "莊家17點；第1門19點，贏"


@pytest.mark.article("8", "2004:8")
@pytest.mark.parametrize(
    ("cards", "total", "soft"),
    [
        *[("AS", 11, True), ("AS AH", 12, True), ("AS KH", 21, True), ("AS 5H 6C", 12, False), ("JS QH", 20, False)],
        *[("2S 3H", 5, False), ("AS AH 9C", 21, True), ("AS AH AC 8D", 21, True), ("TS 9H AC AD", 21, False)],
    ],
)
def test_what_cards_count(cards: str, total: int, soft: bool) -> None:
    assert count(cards.split()) == (total, soft)


@pytest.mark.article("9", "2004:9")
@both
@pytest.mark.parametrize(("hand", "result", "returned"), [("TS 8C", "win", 200), ("TS 6C", "lose", 0)])
def test_more_points_win_fewer_lose(edition: Edition, hand: str, result: str, returned: int) -> None:
    ended = one(hand, "7H", act(1, "stand"), draw("TD"), edition=edition)
    assert ended.outcome["results"] == {"1.1": result}
    assert back(ended) == {"main": returned}


# ---- art. 10: blackjack


@pytest.mark.article("10(1)", "10(2)", "2004:10(1)", "2004:10(2)")
@both
@pytest.mark.parametrize("hand", ["AS TH", "JC AD", "QH AH", "AC KS"])
def test_a_blackjack_wins_once_and_a_half(edition: Edition, hand: str) -> None:
    result = one(hand, "7H", edition=edition)
    assert (paid(result)["main"], back(result)) == ("3/2", {"main": 250})
    assert result.outcome["ended"] == {"1.1": "blackjack"}
    assert "10(2)" in articles(result)


@pytest.mark.article("10(3)", "2004:10(3)")
@both
@pytest.mark.parametrize(("up", "allowed"), [("AH", True), ("TH", True), ("QH", True), ("9H", False)])
def test_even_money_against_an_ace_or_ten(edition: Edition, up: str, allowed: bool) -> None:
    events = whole({1: "AS KC", 2: "TS 9C"}, up, act(1, "even_money"), act(2, "stand"), bets=[bet(1), bet(2)])
    result = only(play(game(edition=edition), [*events, *draw("TD"), *(draw("KS AC") if up == "AH" else [])]))
    main = next(win.pays for win in result.winners if (win.bet, win.seat) == ("main", 1))
    assert main == ("1" if allowed else "3/2")
    assert codes(result) == ([] if allowed else ["decision_not_allowed"])
    assert ("10(3)" in articles(result)) is allowed


@pytest.mark.article("10(3)")
def test_even_money_is_over_when_the_banks_second_card_is_known() -> None:
    late = whole({1: "AS KC", 2: "TS 9C"}, "TH", act(2, "stand"), draw("5D"), act(1, "even_money"), draw("6S"))
    result = only(play(game(), late))
    assert (codes(result), paid(result)["main"]) == (["decision_not_allowed"], "3/2")
    # In the metal box that card lies there already: the blackjack waits for its decision.
    box = whole({1: "AS KC"}, "TH AD")
    assert due(box, **BOX) == ("decision", "1.1")
    assert {"stand", "even_money"} <= may(box, **BOX)
    assert paid(only(play(game(**BOX), [*box, act(1, "even_money")])))["main"] == "1"
    assert only(play(game(**BOX), [*box, act(1, "stand")])).pushes == (Push("main", 1, 1),)
    hole = whole({1: "AS KC"}, "TH AD", act(1, "even_money"), HoleCardPeeked(blackjack=True))
    assert paid(only(play(game(**HOLE), hole)))["main"] == "1"


@pytest.mark.article("10(4)", "2004:10(4)")
@both
def test_twenty_one_on_more_cards_is_no_blackjack(edition: Edition) -> None:
    result = one("5S 6H", "7H", act(1, "hit"), draw("TC TD"), edition=edition)
    assert (paid(result)["main"], back(result)) == ("1", {"main": 200})
    assert "10(4)" in articles(result)


@pytest.mark.article("10(5)", "2004:10(5)")
@both
def test_a_blackjack_beats_twenty_one_of_the_bank(edition: Edition) -> None:
    events = whole({1: "AS KC", 2: "TS 9C"}, "TH", act(2, "stand"), draw("5D 6S"), bets=[bet(1), bet(2)])
    result = only(play(game(edition=edition), events))
    assert result.outcome["results"] == {"1.1": "win", "2.1": "lose"}
    assert [one_.returned for one_ in result.settlements] == [250, 0]
    assert "10(5)" in articles(result)


@pytest.mark.article("10(6)", "2004:10(6)")
@both
def test_the_banks_blackjack_beats_twenty_one_and_after_a_split_there_is_none(edition: Edition) -> None:
    result = one("5S 6H", "TH", act(1, "hit"), draw("TC AD"), edition=edition)
    assert (result.outcome["results"], back(result)) == ({"1.1": "lose"}, {"main": 0})
    assert "10(6)" in articles(result)
    split = one("TS TC", "7H", act(1, "split"), draw("AC AD TD"), edition=edition)
    assert paid(split)["main"] == paid(split)["main/2"] == "1"
    assert split.outcome["ended"] == {"1.1": "twenty_one", "1.2": "twenty_one"}


@pytest.mark.article("10(7)", "17(1)(3)", "2004:10(7)", "2004:17(1)(3)")
@both
@pytest.mark.parametrize(
    ("doubling", "limited", "returned"),
    [
        (("eleven",), False, 0),
        (("eleven",), True, 100),
        (("first_two",), False, 100),
        (("first_two", "eleven"), False, 100),
    ],
)
def test_a_double_on_eleven_against_a_blackjack(
    edition: Edition, doubling: tuple[str, ...], limited: bool, returned: int
) -> None:
    options: dict[str, Any] = {"edition": edition, "doubling": doubling, "limit_double_11": limited}
    result = one("5S 6H", "TH", act(1, "double"), draw("9C AD"), **options)
    assert back(result) == {"main": 0, "double": returned}
    assert ("10(7)" in articles(result)) is limited
    # Only on eleven where nothing else is allowed.
    assert ("double" in may(whole({1: "5S 5H"}, "7H"), **options)) is ("first_two" in doubling)


# ---- art. 11: ties


@pytest.mark.article("11(1)(1)", "11(1)(2)", "2004:11(1)", "2004:11(2)")
@both
def test_equal_points_and_two_blackjacks_are_a_tie(edition: Edition) -> None:
    tie = one("TS 7C", "7H", act(1, "stand"), draw("TD"), edition=edition)
    assert (back(tie), tie.pushes) == ({"main": 100}, (Push("main", 1, 1),))
    blackjacks = one("AS KC", "AH", draw("TD"), edition=edition)
    assert (back(blackjacks), blackjacks.pushes) == ({"main": 100}, (Push("main", 1, 1),))
    prefix = "Despacho 57/2009 art. 11(1)" if edition == "2009" else "Despacho 56/2004 art. 11"
    assert f"{prefix}(2)" in tie.law
    assert f"{prefix}(1)" in blackjacks.law


# ---- art. 12: insurance


@pytest.mark.article("12(1)", "2004:12(1)")
@both
@pytest.mark.parametrize(
    ("up", "amount", "option", "code"),
    [
        ("AH", 50, "half_to_whole", ""),
        ("AH", 75, "half_to_whole", ""),
        ("AH", 100, "half_to_whole", ""),
        ("AH", 49, "half_to_whole", "wrong_amount"),
        ("AH", 101, "half_to_whole", "wrong_amount"),
        ("AH", 50, "half", ""),
        ("AH", 51, "half", "wrong_amount"),
        ("KH", 50, "half", "decision_not_allowed"),
    ],
)
def test_insurance_from_half_to_the_whole_bet(edition: Edition, up: str, amount: int, option: str, code: str) -> None:
    events = [act(1, "insurance", amount=amount), act(1, "stand"), *draw("9C")]
    result = one("TS 9C", up, events, edition=edition, insurance=option)
    assert codes(result) == ([code] if code else [])
    assert back(result).get("insurance") == (None if code else 0)
    by_chip = one(
        "TS 9C", up, bet(1, amount, "insurance"), act(1, "stand"), draw("9C"), edition=edition, insurance=option
    )
    too_few = {"insurance": amount} if code == "wrong_amount" and amount < 50 else {}  # taken, and goes back
    assert back(by_chip) == back(result) | too_few


@pytest.mark.article("12(2)", "12(3)", "2004:12(2)", "2004:12(3)")
@both
@pytest.mark.parametrize(("second", "returned", "main"), [("KD", 150, 0), ("9D", 0, 0)])
def test_insurance_pays_two_when_the_bank_has_blackjack(
    edition: Edition, second: str, returned: int, main: int
) -> None:
    insured = [act(1, "insurance", amount=50), act(1, "insurance", amount=50), act(1, "stand"), *draw(second)]
    result = one("TS 9C", "AH", insured, edition=edition)
    assert back(result) == {"main": main, "insurance": returned}
    assert ("12(2)" if returned else "12(3)") in articles(result)
    assert codes(result) == []


@pytest.mark.article("12(1)", "12(2)")
def test_insurance_before_the_peek_and_before_the_decision_only() -> None:
    events = whole({1: "TS 9C"}, "AH KD", act(1, "insurance", amount=50), HoleCardPeeked(blackjack=True), bets=[bet(1)])
    assert back(only(play(game(**HOLE), events))) == {"main": 0, "insurance": 150}
    late = [HoleCardPeeked(blackjack=False), act(1, "insurance", amount=50), act(1, "stand")]
    assert codes(only(play(game(**HOLE), whole({1: "TS 9C"}, "AH 9D", late, bets=[bet(1)])))) == [
        "decision_not_allowed"
    ]
    decided = [act(1, "hit"), *draw("2S"), act(1, "insurance", amount=50), act(1, "stand"), *draw("9D")]
    assert codes(one("TS 2C", "AH", decided)) == ["decision_not_allowed"]
    # A blackjack insured against; a bust seat's insurance still asks for the bank's second card.
    assert back(one("AS KC", "AH", act(1, "insurance", amount=50), draw("TD"))) == {"main": 100, "insurance": 150}
    bust = [act(1, "insurance", amount=50), act(1, "hit"), *draw("KD"), *draw("TD")]
    assert back(one("TS 9C", "AH", bust)) == {"main": 0, "insurance": 150}
    twice = [act(1, "insurance", amount=50), act(1, "insurance", amount=60), act(1, "stand"), *draw("9D")]
    assert codes(one("TS 9C", "AH", twice)) == ["insured_twice"]


def chips(*amounts: int) -> list[Event]:
    return [bet(1, amount, "insurance") for amount in amounts]


@pytest.mark.article("12(1)", "2004:12(1)")
@both
@pytest.mark.parametrize(
    ("laid", "insured", "notes"),
    [
        (chips(25, 25), 50, []),
        (chips(50, 20, 30), 100, []),
        (chips(20, 20), None, ["wrong_amount"]),  # 40 goes back
        (chips(60, 60, 40), 100, ["wrong_amount"]),
        (chips(20, 90), None, ["wrong_amount"] * 2),
        # A person tells the whole, of which the chips are a part.
        ([*chips(25, 25), act(1, "insurance", amount=50)], 50, []),
        ([*chips(25), act(1, "insurance", amount=50), *chips(50)], 50, []),
        ([act(1, "insurance", amount=50), *chips(25)], 50, ["insured_twice"]),
        ([*chips(50), act(1, "insurance", amount=60)], 50, ["insured_twice"]),
    ],
)
@pytest.mark.parametrize("second", ["KD", "9D"])
def test_insurance_in_several_chips_adds_up(
    edition: Edition, laid: list[Event], insured: int | None, notes: list[str], second: str
) -> None:
    """As all chips do. What came to less than half the bet goes back."""
    result = one("TS 9C", "AH", laid, act(1, "stand"), draw(second), edition=edition)
    goes_back = 40 if notes == ["wrong_amount"] else 20
    returned = goes_back if insured is None else 3 * insured if second == "KD" else 0
    assert back(result) == {"main": 0, "insurance": returned}
    assert codes(result) == notes
    assert ("12(2)" in articles(result)) is (insured is not None and second == "KD")


@pytest.mark.article("12(1)", "5(1)(2)")
def test_chips_on_insurance_that_insured_nobody_yet_come_back_with_a_void_or_another_first_card() -> None:
    waits = [*chips(20), CardUnreadable()]
    assert back(one("TS 9C", "AH", waits, RoundVoided(""))) == {"main": 100, "insurance": 20}
    king = one("TS 9C", "AH", waits, DealCorrected({"dealer": ("KH",)}), act(1, "stand"), draw("7D"))
    assert (back(king), codes(king)) == ({"main": 200}, ["decision_not_allowed"])


@pytest.mark.article("12(1)")
def test_of_insurance_in_chips_of_which_some_may_be_lost_no_amount_is_known() -> None:
    told: list[Event] = [EventsMissed(1), DealCorrected({"dealer": ("AH",)})]
    for before in ([], chips(25)):
        assert one("TS 9C", "AH", before, told, chips(25), act(1, "stand"), draw("KD")).settlements == ()
        # A person tells the whole.
        said = act(1, "insurance", amount=50)
        assert back(one("TS 9C", "AH", before, told, chips(25), said, act(1, "stand"), draw("KD"))) == {
            "insurance": 150
        }


@pytest.mark.article("10(3)", "12(1)", "5(1)(2)", "2004:10(3)", "2004:12(1)")
@both
def test_insurance_and_even_money_are_taken_while_the_round_waits_for_a_person(edition: Edition) -> None:
    seats = {1: "TS 9C", 2: "AS KC"}
    lies = DealCorrected({"dealer": ("AH",)})
    waits = whole(seats, "AH", CardUnreadable(), bets=[bet(1), bet(2)])
    for insured in (bet(1, 50, "insurance"), act(1, "insurance", amount=50)):
        said = [insured, act(2, "even_money"), act(2, "even_money")]
        assert "due" not in after(game(edition=edition), [*waits, *said])[1].detail
        result = only(play(game(edition=edition), [*waits, *said, lies, act(1, "stand"), *draw("KD")]))
        assert [(one_.seat, one_.bet, one_.returned) for one_ in result.settlements] == [
            *[(1, "main", 0), (2, "main", 200), (1, "insurance", 150)],
        ]
        assert codes(result) == []
        assert back(only(play(game(edition=edition), [*waits, *said, RoundVoided("")])))["insurance"] == 50


@pytest.mark.article("10(3)", "12(1)", "5(1)(2)")
def test_what_does_not_fit_while_the_round_waits_is_noted() -> None:
    """Told too early or too late, for too much, or when the bank's second card may lie there already."""
    wrong = [act(1, "insurance", amount=50), act(2, "even_money")]
    lies = DealCorrected({"dealer": ("AH",)})
    told = whole({1: "TS 9C", 2: "AS KC"}, "AH", bets=[bet(1), bet(2)])
    cases: list[tuple[list[Event], list[str]]] = [
        ([*told[:-1], CardUnreadable(), *wrong], ["decision_before_deal"] * 2),
        ([*told, act(1, "stand"), CardUnreadable(), wrong[0]], ["decision_not_allowed"]),
        ([*told, CardUnreadable(), *chips(101), act(1, "even_money")], ["wrong_amount", "decision_not_allowed"]),
        ([*told, CardUnreadable(), *draw("KD"), *wrong], ["decision_not_allowed"] * 2),
    ]
    for events, notes in cases:
        assert codes(only(play(game(), [*events, lies, RoundVoided("")]))) == notes
    # After a loss the bet that it is measured by is not known; nor is it settled.
    lost = [*told, EventsMissed(1), act(1, "insurance", amount=5), lies, act(1, "stand"), *draw("KD")]
    result = only(play(game(), lost))
    assert (codes(result), result.settlements) == ([], ())
    assert ("insurance", 1) in {(win.bet, win.seat) for win in result.winners}


# ---- arts. 13, 14: additional bets


def first_two(one_: str, two: str, **options: Any) -> dict[str, str]:
    """What two cards win on additional bets."""
    families = FAMILIES if options.get("edition") != "2004" else ()
    ruleset = game(bets_offered=tuple(families), **options)
    events = whole({1: f"{one_} {two}"}, "7H", act(1, "stand"), draw("TD"))
    return {
        win.bet: win.pays
        for win in only(play(ruleset, events)).winners
        if win.bet not in ("main", "double") and win.seat
    }


@pytest.mark.article("13", "2004:13")
@both
def test_one_kind_of_additional_bet_a_round(edition: Edition) -> None:
    laid = [bet(1, 5, "any_pair"), bet(1, 5, "sevens"), bet(1, 5, "any_pair:2"), bet(2, 5, "over_13")]
    laid += [bet(2), bet(2, 5, "under_13")]
    then: list[Event] = [act(1, "stand"), act(2, "stand"), *draw("TD")]
    for option, refused in (("one", ["second_additional_bet"]), ("several", [])):
        ruleset = game(edition=edition, additional_bets=option)
        result = only(play(ruleset, whole({1: "TS 9C", 2: "TH 8C"}, "7H", then, bets=[bet(1), *laid])))
        assert codes(result) == refused
        assert len(result.settlements) == 7 - len(refused)


@pytest.mark.article("13", "2004:13")
@both
def test_additional_bets_lie_beside_a_main_bet_on_a_hand_that_is_dealt(edition: Edition) -> None:
    laid = [bet(1), bet(2, 5, "sevens"), bet(1, 7, "any_pair:3"), bet(1, 9, "any_pair")]
    result = only(play(game(edition=edition), whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"), bets=laid)))
    assert codes(result) == ["bet_without_hand"] * 2
    assert back(result) == {"main": 200, "any_pair": 0, "sevens": 5, "any_pair:3": 7}
    ends = whole(
        {1: "TS TC", 7: "9S 8C"},
        "7H",
        act(1, "stand"),
        act(7, "stand"),
        draw("TD"),
        bets=[
            *(
                bet(1),
                bet(7),
                bet(7, 3, "any_pair:1"),
                bet(1, 4, "any_pair:7"),
                bet(1, 5, "any_pair:0"),
                bet(1, 6, "any_pair:8"),
            )
        ],
    )
    result = only(play(game(edition=edition), ends))
    assert codes(result) == ["bet_not_offered"] * 2, "the table has seven seats"
    assert (back(result)["any_pair:1"], back(result)["any_pair:7"]) == (36, 0)
    refused = [bet(1, 5, "over_14"), bet(1, 5, "any_pair:9"), bet(1, 5, "main:2"), WagerWithdrawn(1, "sevens")]
    result = one("TS 9C", "7H", act(1, "stand"), draw("TD"), bets=refused, edition=edition)
    assert codes(result) == ["bet_not_offered"] * 3 + ["bet_not_placed"]
    taken = one(
        "TS 9C", "7H", act(1, "stand"), draw("TD"), bet(1), bets=[bet(1, 5, "sevens"), WagerWithdrawn(1, "sevens")]
    )
    assert back(taken) == {"main": 200}
    (note,) = play(game(), [bet(1)])
    assert isinstance(note, Noted)


@pytest.mark.article("13(1)(1)", "14(1)", "2004:13(1)(1)", "2004:14(1)")
@both
@pytest.mark.parametrize(
    ("cards", "pays"), [("JS JH", "11"), ("JS QH", None), ("8S 8S", "11"), ("TS JH", None), ("AS AC", "11")]
)
def test_any_pair(edition: Edition, cards: str, pays: str | None) -> None:
    assert first_two(*cards.split(), edition=edition).get("any_pair") == pays


@pytest.mark.article("13(1)", "2004:13(1)")
@both
def test_any_pair_on_the_hand_of_any_player(edition: Edition) -> None:
    laid = [bet(1), bet(2), bet(1, 10, "any_pair:2"), bet(2, 10, "any_pair:1")]
    then: list[Event] = [act(1, "stand"), act(2, "stand"), *draw("TD")]
    result = only(play(game(edition=edition), whole({1: "TS 9C", 2: "8H 8C"}, "7H", then, bets=laid)))
    assert {(one_.seat, one_.bet): one_.returned for one_ in result.settlements if one_.bet != "main"} == {
        (1, "any_pair:2"): 120,
        (2, "any_pair:1"): 0,
    }


@pytest.mark.article("13(1)(2)", "2004:13(1)(2)")
@both
@pytest.mark.parametrize(
    ("dealt", "pays"),
    [
        ([*draw("5S"), act(1, "stand"), *draw("6S"), act(1, "stand", 2)], "11"),
        ([*draw("8D"), act(1, "stand"), *draw("6S"), act(1, "stand", 2)], "22"),
        ([*draw("5S"), act(1, "stand"), *draw("8D"), act(1, "stand", 2)], "22"),
        (
            [
                *[*draw("8D"), act(1, "split"), *draw("5S"), act(1, "stand"), *draw("6S"), act(1, "stand", 2)],
                *[*draw("5C"), act(1, "stand", 3)],
            ],
            "22",
        ),
        (
            [
                *[*draw("8D"), act(1, "split"), *draw("8C"), act(1, "split"), *draw("5S"), act(1, "stand")],
                *[*draw("6S"), act(1, "stand", 2), *draw("5C"), act(1, "stand", 3), *draw("8S"), act(1, "stand", 4)],
            ],
            "44",
        ),
    ],
)
def test_any_pair_again_for_each_further_pair(edition: Edition, dealt: list[Event], pays: str) -> None:
    """8-8 split: a further 8 makes a further pair, split again or not."""
    ended = one("8S 8H", "7H", act(1, "split"), dealt, draw("TD"), bets=[bet(1, 10, "any_pair")], edition=edition)
    assert paid(ended)["any_pair"] == pays
    assert back(ended)["any_pair"] == 10 + 10 * int(pays)


@pytest.mark.article("13(2)(1)", "14(2)(1)", "14(2)(2)", "2004:13(2)(1)", "2004:14(2)(1)", "2004:14(2)(2)")
@both
@pytest.mark.parametrize(
    ("cards", "pays"), [("7S 7H", "50"), ("7S 7S", "150"), ("7S 8S", None), ("6S 7S", None), ("8S 8S", None)]
)
def test_two_sevens(edition: Edition, cards: str, pays: str | None) -> None:
    assert first_two(*cards.split(), edition=edition).get("sevens") == pays


@pytest.mark.article("13(2)(2)", "14(2)(3)", "14(2)(4)", "2004:13(2)(2)", "2004:14(2)(3)", "2004:14(2)(4)")
@both
@pytest.mark.parametrize(
    ("first", "third", "pays"),
    [
        ("7S 7H", "7D", "500"),
        ("7S 7S", "7S", "5000"),
        ("7S 7S", "7H", "500"),
        ("7S 7H", "8D", "50"),
        ("7S 7S", "8S", "150"),
    ],
)
def test_three_sevens_where_two_were_split(edition: Edition, first: str, third: str, pays: str) -> None:
    split = [act(1, "split"), *draw(third), act(1, "stand"), *draw("TC"), act(1, "stand", 2), *draw("TD")]
    result = one(first, "7H", split, bets=[bet(1, 10, "sevens")], edition=edition)
    assert paid(result)["sevens"] == pays
    assert back(result)["sevens"] == 10 * (int(pays) + 1)
    again: list[Event] = [act(1, "split"), *draw(f"{third} 2C"), act(1, "stand"), *draw("2H"), act(1, "stand", 2)]
    if third.startswith("7"):  # split once more: the third card went to hand 3
        again = [act(1, "split"), *draw(third), act(1, "split"), *draw("2C"), act(1, "stand"), *draw("2H")]
        again += [act(1, "stand", 2), *draw("2D"), act(1, "stand", 3), *draw("TD")]
        assert paid(one(first, "7H", again, edition=edition))["sevens"] == pays


@pytest.mark.article("13(2)(2)")
@pytest.mark.parametrize(("option", "pays"), [("split", "50"), ("any", "500")])
def test_a_third_seven_without_a_split_counts_by_option(option: str, pays: str) -> None:
    result = one("7S 7H", "7H", act(1, "hit"), draw("7D"), three_sevens=option)
    assert paid(result)["sevens"] == pays
    article = {"50": ("13(2)(1)", "14(2)(1)"), "500": ("13(2)(2)", "14(2)(3)")}[pays]
    assert [law for law in sorted(articles(result)) if law.startswith(("13(2)", "14(2)"))] == [*article]
    assert paid(one("7S 7H", "7H", act(1, "stand"), draw("TD"), three_sevens=option))["sevens"] == "50"


SPLIT_SEVENS: list[Event] = [act(1, "split"), *draw("5H"), act(1, "stand"), CardUnreadable()]
UNKNOWN_SPLIT = (say("third_unknown"), "do_earlier")


def seven_stands(hands: int) -> list[Event]:
    """The hands that a correction added decide, and the bank."""
    return [*(act(1, "stand", hand) for hand in range(1, hands + 1)), *draw("9D")]


@pytest.mark.article("13(2)(2)", "2004:13(2)(2)")
@both
@pytest.mark.parametrize(("first", "pays"), [("7S 7H", "50"), ("7S 7S", "150")])
def test_a_hand_added_by_a_correction_makes_no_third_seven_of_another_card(
    edition: Edition, first: str, pays: str
) -> None:
    """The third card was told: a five."""
    laid = DealCorrected({"1.2": (first.split()[1], "9C"), "1.3": ("7S", "8C")})
    bets = [bet(1, 10, "sevens")]
    result = one(first, "9H", SPLIT_SEVENS, laid, seven_stands(3), bets=bets, edition=edition)
    assert paid(result)["sevens"] == pays


@pytest.mark.article("13(2)(2)", "14(2)(3)", "14(2)(4)")
@pytest.mark.parametrize(
    ("told", "laid", "pays"),
    [
        # Only a split was missed: what hand 1 was given third is hand 3 now.
        ("7D", {"1.1": ("7S", "5H"), "1.2": ("7S", "9C"), "1.3": ("7D", "8C")}, "500"),
        ("7S", {"1.1": ("7S", "5H"), "1.2": ("7S", "9C"), "1.3": ("7S", "8C")}, "5000"),
        # Hand 1 keeps it: hand 2 was split again.
        ("7S", {"1.2": ("7S", "9C"), "1.3": ("7D", "8C")}, "5000"),
        # Hand 1 was just split again, and waits for its card.
        ("", {"1.1": ("7S",), "1.2": ("7S",), "1.3": ("7D",)}, "500"),
        # Whoever has the third card: it is a seven of another suit.
        ("", {"1.1": ("7S", "7H"), "1.2": ("7S", "9C"), "1.3": ("7D", "8C")}, "500"),
        ("", {"1.1": ("7S", "7D"), "1.2": ("7H", "9C"), "1.3": ("7H", "8C")}, "500"),
        ("", {"1.1": ("7S", "7D"), "1.2": ("7H", "9C"), "1.3": ("7S", "8C")}, "500"),
        ("", {"1.1": ("7S", "5H"), "1.2": ("7S", "9C")}, "150"),
    ],
)
def test_three_sevens_are_paid_where_the_hands_prove_them(
    told: str, laid: dict[str, tuple[str, ...]], pays: str
) -> None:
    split: list[Event] = [act(1, "split"), *draw(told)] if told else []
    events = [*split, CardUnreadable(), DealCorrected(laid)]
    if len(laid.get("1.1", ("", ""))) == 1:
        events += [*draw("5H"), act(1, "stand"), *draw("9C"), act(1, "stand", 2), *draw("8C")]
    result = one("7S 7S", "9H", events, seven_stands(3), bets=[bet(1, 10, "sevens")])
    assert paid(result)["sevens"] == pays


@pytest.mark.article("13(2)(2)", "5(1)(2)")
@pytest.mark.parametrize(
    ("earlier", "again", "pays"),
    [
        ({"1.1": ("7S", "7D"), "1.2": ("7H",)}, [act(1, "split")], "500"),
        ({"1.1": ("7S", "5H"), "1.2": ("7H", "7D")}, [act(1, "stand"), act(1, "split", 2)], "50"),
    ],
)
def test_a_third_seven_that_only_a_hand_of_unknown_origin_could_prove_is_asked_for(
    earlier: dict[str, tuple[str, ...]], again: list[Event], pays: str
) -> None:
    """Both splits were missed: the deal is entered as it lay before the second, which is told then."""
    laid = DealCorrected({"1.1": ("7S", "5H"), "1.2": ("7H", "9C"), "1.3": ("7D", "8C")})
    for bets in ([bet(1), bet(1, 10, "sevens")], [bet(1), bet(2), bet(2, 10, "sevens:1")], []):
        seats = {1: "7S 7H", 2: "TS 9S"} if len(bets) == 3 else {1: "7S 7H"}
        events = [*whole(seats, "9H", CardUnreadable(), laid, bets=bets)]
        assert held(play(game(), events)) == [(say("card_unreadable"), "do_correct"), UNKNOWN_SPLIT]
        then = [DealCorrected(earlier), *again, laid, *seven_stands(3)[:-1], act(2, "stand"), *draw("9D")]
        result = only(play(game(), [*events, *then]))
        assert {win.pays for win in result.winners if win.bet in ("sevens", "sevens:1")} == {pays}
        assert isinstance(last(play(game(), [*events, RoundVoided("")])), Voided)
    # Entered one by one, they say nothing of the order of the deal either.
    told: list[Event] = [act(1, "split"), *draw("7D"), CardUnreadable(), DealCorrected({"1.1": ("7S", "5H")}), laid]
    verdicts = play(game(), whole({1: "7S 7H"}, "9H", told))
    assert held(verdicts)[1:] == [UNKNOWN_SPLIT]
    # Where no bet rests on it, two of them are what the hands prove.
    result = one("7S 7H", "9H", CardUnreadable(), laid, seven_stands(3))
    assert paid(result)["sevens"] == "50"
    few = game(bets_offered=("main", "double", "insurance"))
    assert not [one_ for one_ in play(few, whole({1: "7S 7H"}, "9H", laid)) if _held(one_)]


@pytest.mark.article("13(3)", "14(3)", "2004:13(3)", "2004:14(3)")
@both
@pytest.mark.parametrize(
    ("cards", "one_", "free"),
    [
        ("TS 4H", "over", "over"),
        ("TS 2H", "under", "under"),
        ("TS 3H", "", ""),
        ("6S 7H", "", ""),
        ("AS KH", "under", "over under"),
        ("AS AH", "under", "over under"),
        ("AS 2H", "under", "under"),
        ("AS 5H", "under", "over under"),
        ("JS QH", "over", "over"),
    ],
)
def test_over_and_under_13(edition: Edition, cards: str, one_: str, free: str) -> None:
    for option, expected in (("one", one_), ("free", free)):
        events = whole({1: cards}, "7H", act(1, "stand"), draw("TD"))
        won = only(play(game(edition=edition, ace_over_under=option), events)).winners
        found = {win.bet: win.pays for win in won if win.bet in ("over_13", "under_13")}
        assert found == {f"{word}_13": "1" for word in expected.split()}


@pytest.mark.article("13(4)(1)", "13(4)(2)", "13(4)(3)", "14(4)(1)", "14(4)(2)", "14(4)(3)")
@pytest.mark.parametrize(
    ("cards", "pays"),
    [
        ("JS JH", "5"),
        ("JH JD", "12"),
        ("JS JC", "12"),
        ("JS JS", "25"),
        ("JS QS", None),
        ("TH JH", None),
        ("AD AC", "5"),
    ],
)
def test_perfect_pair_the_highest_only(cards: str, pays: str | None) -> None:
    assert first_two(*cards.split()).get("perfect_pair") == pays


STAND: list[Event] = [act(1, "stand"), *draw("TD")]


def rounds_of(how: str, **options: Any) -> list[Result]:
    """Rounds of seat 1 against a bank with 17: w(in), l(ose), t(ie), surrende(r), a(bsent), v(oid).

    The streak bets are laid in the first.
    """
    ruleset = game(bets_offered=FAMILIES, **options)
    events: list[Event] = []
    cards = {"w": "TS 9C", "l": "TS 6C", "t": "TS 7C", "r": "TS 6C", "v": "TS 9C"}
    streaks = [bet(1, 10, name) for name in STREAKS]
    for place, kind in enumerate(how):
        bets = [bet(1), *streaks] if not place else [bet(1)]
        if kind == "a":
            events += whole({2: "TS 9C"}, "7H", act(2, "stand"), draw("TD"), bets=[bet(2)])
            continue
        end: list[Event] = [act(1, "surrender")] if kind == "r" else [RoundVoided("")] if kind == "v" else STAND
        events += [*whole({1: cards[kind]}, "7H", end, bets=bets), RoundPaid()]
    return results(play(ruleset, events))


def streak_settled(result: Result) -> dict[int, int]:
    return {int(one_.bet[-1]): one_.returned for one_ in result.settlements if one_.bet in STREAKS}


@pytest.mark.article("13(5)(1)", "13(5)(2)(i)", "14(5)(1)", "14(5)(2)", "14(5)(3)", "14(5)(4)")
def test_each_streak_is_paid_when_it_is_reached() -> None:
    first, second, third, fourth, fifth, sixth = rounds_of("wwwwww")
    assert [streak_settled(one_) for one_ in (first, second, third)] == [{}, {2: 40}, {3: 90}]
    assert [streak_settled(one_) for one_ in (fourth, fifth, sixth)] == [{4: 190}, {5: 390}, {}]
    pays = {win.bet: win.pays for one_ in (second, third, fourth, fifth) for win in one_.winners if win.bet in STREAKS}
    assert pays == dict(zip(STREAKS, ("3", "8", "18", "38"), strict=True))
    assert (first.stands, second.stands, fifth.stands) == (STREAKS, STREAKS[1:], ())
    for wrong in (("main", "double", "insurance", "winning_streak_2"),):
        with pytest.raises(BadOption, match=r"art. 13\(5\)\(1\)"):
            options_from(Blackjack, {"bets_offered": wrong})


@pytest.mark.article("13(5)(2)(ii)")
@pytest.mark.parametrize(("how", "lost"), [("l", {2, 3, 4, 5}), ("wl", {2, 3, 4, 5}), ("wwwl", {4, 5})])
def test_a_loss_takes_all_open_streaks(how: str, lost: set[int]) -> None:
    ended = rounds_of(how)[-1]
    assert streak_settled(ended) == dict.fromkeys(lost, 0)
    assert ended.stands == ()


@pytest.mark.article("1(5)", "13(5)(2)(iii)", "13(5)(2)(iv)")
def test_the_button_advances_with_each_win() -> None:
    laid = [bet(1), bet(1, 10, "winning_streak_2"), bet(1, 10, "winning_streak_5"), bet(7)]
    laid += [bet(7, 5, "winning_streak_3")]
    ruleset = game(bets_offered=FAMILIES)
    seats = {1: "TS 9C", 7: "TH 9H"}
    stand: list[Event] = [act(1, "stand"), act(7, "stand"), *draw("TD")]
    first = whole(seats, "7H", stand, bets=laid)
    again = whole(seats, "7H", stand, bets=[bet(1), bet(7)])
    view = after(ruleset, [*first[:-3]])[1]
    assert view.detail["streaks"] == {"1": 1, "7": 1}
    assert after(ruleset, first)[1].detail["streaks"] == {"1": 2, "7": 2}
    assert after(ruleset, [*first, *again])[1].detail["streaks"] == {"1": 3, "7": 3}
    assert after(ruleset, [*first, *again, *again])[1].detail["streaks"] == {"1": 4}
    assert results(play(ruleset, first))[0].outcome["streaks"] == {"1": 2, "7": 2}


@pytest.mark.article("11(2)")
def test_a_tie_leaves_streak_and_button() -> None:
    first, tie, won = rounds_of("wtw")
    assert (streak_settled(first), streak_settled(tie), streak_settled(won)) == ({}, {}, {2: 40})
    assert tie.outcome["streaks"] == {"1": 2}


@pytest.mark.article("5(1)(2)", "13(5)(2)(v)")
def test_a_void_round_leaves_the_streaks_as_they_stood() -> None:
    void, first, second = rounds_of("vww")
    assert void.void == Void(say("declared"), "returned", streak_bets="carried")
    assert back(void) == {"main": 100}
    assert (streak_settled(first), streak_settled(second)) == ({}, {2: 40})
    # Before the bell they are not accepted yet: they come back.
    ruleset = game(bets_offered=FAMILIES)
    early = only(play(ruleset, [BetsOpened(), bet(1), bet(1, 10, "winning_streak_2"), RoundVoided("")]))
    assert back(early) == {"main": 100, "winning_streak_2": 10}


@pytest.mark.article("13(5)(2)(v)")
def test_open_streaks_can_neither_be_changed_nor_added_to() -> None:
    ruleset = game(bets_offered=FAMILIES)
    first = whole({1: "TS 9C"}, "7H", STAND, bets=[bet(1), bet(1, 10, "winning_streak_3")])
    changed = [bet(1), bet(1, 5, "winning_streak_2"), WagerWithdrawn(1, "winning_streak_3")]
    *_, second = results(play(ruleset, [*first, *whole({1: "TS 9C"}, "7H", STAND, bets=changed)]))
    assert codes(second) == ["streak_bets_stand"] * 2
    assert streak_settled(second) == {}


@pytest.mark.article("13(5)(2)(vi)")
@pytest.mark.parametrize(("option", "lost"), [("lost", {2, 3, 4, 5}), ("stand", set())])
def test_who_does_not_bet_on_loses_the_streak(option: str, lost: set[int]) -> None:
    _, absent, *_ = rounds_of("waw", streak_absent=option)
    assert streak_settled(absent) == dict.fromkeys(lost, 0)
    assert "13(5)(2)(vi)" in articles(absent)


@pytest.mark.article("2004:13")
def test_edition_2004_has_neither_perfect_pair_nor_streaks() -> None:
    assert not {"perfect_pair", *STREAKS} & {bet_.id for bet_ in game(edition="2004").bets()}
    for wrong in ("perfect_pair", "winning_streak_2"):
        with pytest.raises(BadOption, match=r"56/2004 art\. 13"):
            options_from(Blackjack, {"edition": "2004", "bets_offered": [*FAMILIES[:3], wrong]})
    with pytest.raises(BadOption, match="streak_absent"):
        options_from(Blackjack, {"edition": "2004", "streak_absent": "stand"})


# ---- art. 15: special prizes


@pytest.mark.article("15", "2004:15")
@both
@pytest.mark.parametrize("up", ["7H", "AH"])
@pytest.mark.parametrize(
    ("first", "third", "special"),
    [
        ("6S 7S", "8S", True),
        ("8H 6H", "7H", True),
        ("7S 7H", "7D", True),
        ("6S 7S", "8H", False),
        ("5S 7S", "9S", False),
    ],
)
def test_six_seven_eight_of_a_suit_and_three_sevens(
    edition: Edition, up: str, first: str, third: str, special: bool
) -> None:
    """The bank makes 21 too: a special prize is paid at once all the same."""
    bank = "9D 5D" if up == "7H" else "2D 8D"
    result = one(first, up, act(1, "hit"), draw(third), *([] if special else [draw(bank)]), edition=edition)
    assert back(result) == {"main": 400 if special else 100}
    assert result.outcome["results"] == {"1.1": "win" if special else "push"}
    assert ("15" in articles(result)) is special


@pytest.mark.article("15")
@pytest.mark.parametrize(
    ("option", "bank", "returned"),
    [
        ("on_top", "TD", 500),  # 21 against 17: 1 and 3
        ("on_top", "TD 4D", 400),  # a tie and 3
        ("none", "TD", 200),
        ("none", "TD 4D", 100),
    ],
)
def test_the_special_prize_on_top_or_not_at_all(option: str, bank: str, returned: int) -> None:
    soft = "7H" if bank == "TD" else "4H"
    cards = "TD" if bank == "TD" else "TD 7D"
    result = one("6S 7S", soft, act(1, "hit"), draw("8S"), draw(cards), special_prize=option)
    assert back(result) == {"main": returned}
    lost = one("6S 7S", "TH", act(1, "hit"), draw("8S"), draw("AD"), special_prize="on_top")
    assert back(lost) == {"main": 300}


@pytest.mark.article("15", "17(2)")
def test_a_doubled_bet_wins_the_special_prize_with_all_of_it() -> None:
    assert back(one("7S 7H", "9H", act(1, "double"), draw("7D"))) == {"main": 400, "double": 400}


# ---- art. 16: splits


@pytest.mark.article("16(1)", "2004:16(1)")
@both
@pytest.mark.parametrize(("cards", "allowed"), [("8S 8H", True), ("TS TH", True), ("TS JH", False), ("8S 9H", False)])
def test_a_pair_may_be_split(edition: Edition, cards: str, allowed: bool) -> None:
    assert ("split" in may(whole({1: cards}, "7H"), edition=edition)) is allowed
    third = one("5S 5H", "7H", act(1, "hit"), draw("2S"), act(1, "split"), act(1, "stand"), draw("TD"), edition=edition)
    assert codes(third) == ["decision_not_allowed"]


@pytest.mark.article("16(2)", "2004:16(2)")
@both
def test_each_split_hand_has_the_first_bet(edition: Edition) -> None:
    then = [act(1, "split", amount=100), *draw("TS"), act(1, "stand"), *draw("2C"), act(1, "stand", 2), *draw("TD")]
    result = one("8S 8H", "7H", then, edition=edition)
    assert {(one_.bet, one_.hand): (one_.stake, one_.returned) for one_ in result.settlements} == {
        ("main", 1): (100, 200),
        ("main", 2): (100, 0),
    }
    wrong = one("8S 8H", "7H", act(1, "split", amount=50), act(1, "stand"), draw("TD"), edition=edition)
    assert codes(wrong) == ["wrong_amount"]
    wrong = one("5S 6H", "7H", act(1, "double", amount=50), act(1, "stand"), draw("TD"), edition=edition)
    assert codes(wrong) == ["wrong_amount"]


@pytest.mark.article("16(4)", "2004:16(4)")
@both
def test_split_hands_other_than_aces_draw_as_they_like(edition: Edition) -> None:
    then: list[Event] = [act(1, "split"), *draw("2S"), act(1, "hit"), *draw("3S"), act(1, "hit"), *draw("8C")]
    result = one("8S 8H", "7H", then, draw("6C"), act(1, "hit", 2), draw("KC"), draw("TD"), edition=edition)
    assert result.outcome["ended"] == {"1.1": "twenty_one", "1.2": "bust"}


@pytest.mark.article("16(5)", "2004:16(5)")
@both
def test_a_further_pair_may_be_split_again_unless_one_was_kept(edition: Edition) -> None:
    split: list[Event] = [act(1, "split"), *draw("8D")]
    events = whole({1: "8S 8H"}, "7H", split)
    assert "split" in may(events, edition=edition)
    assert "split" not in may(events, edition=edition, resplit=False)
    kept = [*events, act(1, "stand"), *draw("8C")]
    assert due(kept, edition=edition) == ("decision", "1.2")
    assert "split" not in may(kept, edition=edition)


@pytest.mark.article("16(1)")
def test_the_second_card_of_a_split_hand_comes_at_its_turn_or_at_once() -> None:
    events = whole({1: "8S 8H"}, "7H", act(1, "split"))
    assert due([*events, *draw("2S")]) == ("decision", "1.1")
    assert due([*events, *draw("2S")], split_cards="at_once") == ("card", "1.2")
    both_dealt = after(game(split_cards="at_once"), [*events, *draw("2S 3S")])[1].detail
    assert both_dealt["hands"]["1.2"] == ("8H", "3S")
    assert both_dealt["due"]["hand"] == "1.1"
    refused = whole({1: "8S 8H"}, "7H", act(1, "split"), act(1, "stand"), draw("2S"), act(1, "stand"))
    result = only(play(game(), [*refused, *draw("3S"), act(1, "stand", 2), *draw("TD")]))
    assert codes(result) == ["decision_before_card"]


@pytest.mark.article("16(6)", "2004:16(6)")
@both
@pytest.mark.parametrize(
    ("first", "second", "returned"),
    [
        ([*draw("TS"), act(1, "stand")], [*draw("TC"), act(1, "stand", 2)], {"main": 0, "main/2": 100}),
        ([*draw("6S"), act(1, "hit"), *draw("KS")], [*draw("TC"), act(1, "stand", 2)], {"main": 0, "main/2": 100}),
        ([*draw("TS"), act(1, "stand")], [*draw("6S"), act(1, "hit", 2), *draw("KS")], {"main": 100, "main/2": 0}),
        (
            [*draw("3S"), act(1, "double"), *draw("KS")],
            [*draw("TC"), act(1, "stand", 2)],
            {"main": 0, "main/2": 100, "double": 100},
        ),
    ],
)
def test_a_split_seat_loses_one_bet_only_to_a_blackjack(
    edition: Edition, first: list[Event], second: list[Event], returned: dict[str, int]
) -> None:
    result = one("8S 8H", "TH", act(1, "split"), first, second, draw("AD"), edition=edition)
    assert back(result) == returned
    assert "16(6)" in articles(result)
    assert "returned" in result.outcome["results"].values()


@pytest.mark.article("16(7)(1)", "16(7)(2)", "16(7)(3)")
@pytest.mark.parametrize(
    ("cards", "article", "button"),
    [
        (("TS", "TC", "2D"), "16(7)(1)", 2),
        (("TS", "9C", "2D"), "16(7)(1)", 2),  # 18 and a tie: more won than lost
        (("TS", "2C", "2D"), "16(7)(2)", 1),
        (("2S", "3C", "2D"), "16(7)(3)", 0),
    ],
)
def test_split_hands_move_the_button_by_more_won_than_lost(
    cards: tuple[str, str, str], article: str, button: int
) -> None:
    ruleset = game(bets_offered=FAMILIES)
    then: list[Event] = [act(1, "split"), *draw(cards[0]), act(1, "stand"), *draw(cards[1]), act(1, "stand", 2)]
    events = whole({1: "8S 8H"}, "7H", then, draw("TD"), bets=[bet(1), bet(1, 10, "winning_streak_3")])
    result = only(play(ruleset, events))
    assert article in articles(result)
    assert result.outcome["streaks"] == ({"1": button} if button else {})
    assert streak_settled(result) == ({} if button else {3: 0})


# ---- art. 17: doubles


@pytest.mark.article("17(1)(1)", "17(1)(2)", "17(1)(3)", "2004:17(1)(1)", "2004:17(1)(2)", "2004:17(1)(3)")
@both
@pytest.mark.parametrize(
    ("doubling", "cards", "allowed"),
    [
        (("first_two",), "5S 2H", True),
        (("first_two",), "5S 6H", True),
        (("eleven",), "5S 6H", True),
        (("eleven",), "5S 7H", False),
        (("split_pair",), "5S 6H", False),
    ],
)
def test_what_may_be_doubled(edition: Edition, doubling: tuple[str, ...], cards: str, allowed: bool) -> None:
    events = whole({1: cards}, "7H")
    assert ("double" in may(events, edition=edition, doubling=doubling)) is allowed
    third = may([*events, act(1, "hit"), *draw("2S")], edition=edition, doubling=doubling)
    assert "double" not in third
    split = whole({1: "8S 8H"}, "7H", act(1, "split"), draw("3S"))
    assert ("double" in may(split, edition=edition, doubling=doubling)) is ("split_pair" in doubling)
    aces = whole({1: "AS AH"}, "7H", act(1, "split"), draw("AC"))
    assert "double" not in may(aces, edition=edition, doubling=doubling)


@pytest.mark.article("17(1)(1)")
def test_one_modality_at_least() -> None:
    with pytest.raises(BadOption, match=r"art. 17\(1\)"):
        options_from(Blackjack, {"doubling": []})


@pytest.mark.article("17(3)", "2004:17(3)")
@both
def test_a_double_loses_the_first_bet_only_to_a_blackjack(edition: Edition) -> None:
    result = one("5S 6H", "TH", act(1, "double"), draw("9C AD"), edition=edition)
    assert back(result) == {"main": 0, "double": 100}
    assert "17(3)" in articles(result)
    split = [act(1, "split"), *draw("3S"), act(1, "double"), *draw("9S TC"), act(1, "stand", 2), *draw("AD")]
    assert back(one("8S 8H", "TH", split, edition=edition)) == {"main": 0, "main/2": 100, "double": 100}
    bust = one("TS 6H", "TH", act(1, "double"), draw("9C"), edition=edition)
    assert back(bust) == {"main": 0, "double": 0}


# ---- art. 18: giving up


@pytest.mark.article("18(1)", "2004:18(1)")
@both
def test_who_gives_up_loses_half(edition: Edition) -> None:
    result = one("TS 6C", "TH", act(1, "surrender"), edition=edition)
    assert back(result) == {"main": 50}
    assert (paid(result).get("main"), result.pushes) == (None, ())
    assert result.outcome["ended"] == {"1.1": "surrender"}
    assert "surrender" not in may(whole({1: "TS 6C"}, "AH"), edition=edition)


@pytest.mark.article("18(2)", "2004:18(2)")
@both
def test_giving_up_is_said_before_a_further_card_and_final(edition: Edition) -> None:
    """Before the bank deals any further card of the round; by option, as floors do it, each before its own."""
    hit = whole({1: "TS 2C", 2: "TH 6C"}, "TH", act(1, "hit"), draw("3S"))
    assert "surrender" not in may(hit, edition=edition)
    second = [*hit, act(1, "stand")]
    assert "surrender" not in may(second, edition=edition)
    assert "surrender" in may(second, edition=edition, surrender="before_own_card")
    # Said before any card, it is heard from any seat.
    early = whole({1: "TS 2C", 2: "TH 6C"}, "TH", act(2, "surrender"), act(1, "stand"), bets=[bet(1), bet(2)])
    result = only(play(game(edition=edition), [*early, act(2, "surrender"), *draw("7D")]))
    assert (codes(result), [one_.returned for one_ in result.settlements]) == ([], [0, 50])
    changed = only(play(game(edition=edition), [*early, act(2, "stand"), *draw("7D")]))
    assert (codes(changed), changed.outcome["ended"]["2.1"]) == (["out_of_turn"], "surrender")
    own = game(edition=edition, surrender="before_own_card")
    assert codes(only(play(own, [*early, act(2, "stand"), *draw("7D")]))) == ["out_of_turn"]


@pytest.mark.article("18(2)", "2004:18(2)")
@both
@pytest.mark.parametrize("said", ["hit", "double", "split"])
def test_until_the_card_that_another_asked_for_is_dealt_a_seat_may_give_up(edition: Edition, said: str) -> None:
    events = whole({1: "8S 8H", 2: "TH 6C"}, "TH", act(1, said), bets=[bet(1), bet(2)])
    for then, ended in (([act(2, "surrender"), *draw("2D")], "surrender"), ([*draw("2D"), act(2, "surrender")], "")):
        state, _ = after(game(edition=edition), [*events, *then])
        assert state.position.play is not None
        assert state.position.play.hands[-1].ended == ended
        assert state.open is not None
        assert [note.law.rpartition(" ")[2] for note in state.open.round.irregularities] == ["18(1)"] * (not ended)


@pytest.mark.article("18(2)")
def test_the_view_names_the_seats_that_may_give_up_out_of_turn() -> None:
    events = whole({1: "TS 2C", 2: "TH 6C", 3: "AS KC", 4: "TD 5C"}, "TH")
    assert after(game(), events)[1].detail["due"]["surrender"] == (2, 4)
    assert after(game(), [*events, act(4, "surrender")])[1].detail["due"]["surrender"] == (2,)
    for then, options in (
        ([act(1, "hit"), *draw("2D")], {}),
        ([], {"surrender": "before_own_card"}),
        ([], {"surrender": "none"}),
    ):
        assert "surrender" not in after(game(**options), [*events, *then])[1].detail["due"]


@pytest.mark.article("18(1)", "5(2)(1)(2)")
def test_a_blackjack_is_not_given_up() -> None:
    """In the metal box it waits for its decision: even money or none, whenever it is told."""
    events = whole({1: "TS 6C", 2: "AS KC"}, "TH 9D", bets=[bet(1), bet(2)])
    for said in ([act(2, "surrender"), act(1, "stand")], [act(1, "stand"), act(2, "surrender")]):
        result = only(play(game(**BOX), [*events, *said, act(2, "stand")]))
        assert (codes(result), result.outcome["ended"]["2.1"]) == (["cards_do_not_allow"], "blackjack")


DOWN: tuple[dict[str, Any], ...] = ({"procedure": "1"}, BOX, {**HOLE, "players_down": "both"})


@pytest.mark.article("6(3)", "6(4)(1)")
@pytest.mark.parametrize("options", DOWN)
@pytest.mark.parametrize("cards", ["AS KC", "9S 9C", "TS 6C"])
def test_a_hand_that_lies_face_down_is_offered_what_any_two_cards_may_decide(
    options: dict[str, Any], cards: str
) -> None:
    hole = "" if options["procedure"] == "1" and options is not BOX else " 9D"
    against_ten = whole(
        {1: cards, 2: "5S 4C"}, "TH" + hole, *([HoleCardPeeked(False)] if "3" in options.values() else [])
    )
    every = {"stand", "hit", "double", "split", "surrender"}
    # After the peek the second card of the bank is no secret any more (10(3)).
    assert may(against_ten, **options) == (every if "3" in options.values() else {*every, "even_money"})
    assert may(whole({1: cards, 2: "5S 4C"}, "7H" + hole), **options) == every
    against_seven = [*whole({1: cards}, "7H" + hole), act(1, "stand")]
    assert "1.1" not in after(game(**options), against_seven)[1].detail.get("due", {}).values()


@pytest.mark.article("6(3)")
@pytest.mark.parametrize(
    ("down", "cards", "offered"),
    [
        ("first", "2S AC", {"stand", "hit", "double", "split", "surrender"}),
        ("second", "5S 9C", {"stand", "hit", "double", "split", "surrender"}),
        ("both", "5S 4C", {"stand", "hit", "double", "split", "surrender"}),
    ],
)
def test_the_card_that_lies_open_limits_what_is_offered(down: str, cards: str, offered: set[str]) -> None:
    assert may(whole({1: cards}, "7H TD"), **HOLE, players_down=down) == offered
    eleven: dict[str, Any] = {**HOLE, "players_down": "first", "doubling": ("eleven",)}
    assert "double" not in may(whole({1: "TS AC"}, "7H TD"), **eleven)
    assert "double" in may(whole({1: "TS 9C"}, "7H TD"), **eleven)


@pytest.mark.article("6(4)(1)")
def test_twenty_one_face_down_waits_until_its_player_has_decided() -> None:
    drawn = whole({1: "5S 6C", 2: "TH 9C"}, "7H", act(1, "hit"), draw("TD"))
    assert due(drawn) == ("decision", "2.1")
    assert due(drawn, procedure="1") == ("decision", "1.1")
    assert after(game(procedure="1"), drawn)[1].detail["hands"]["1.1"] == ("??", "??", "TD")
    # All that 21 or less may decide; more cards are refused (6(4)).
    assert may(drawn, procedure="1") == {"stand", "hit"}
    refused = [*drawn, act(1, "hit")]
    assert after(game(procedure="1"), refused)[1].detail["refused"] == "cards_do_not_allow"
    result = only(play(game(procedure="1"), [*refused, act(1, "stand"), act(2, "stand"), *draw("TC")]))
    assert (codes(result), result.outcome["ended"]["1.1"]) == (["cards_do_not_allow"], "twenty_one")
    assert "6(4)" in result.irregularities[0].law


@pytest.mark.article("16(1)", "10(3)")
def test_a_decision_that_cards_face_down_do_not_allow_is_refused_with_its_reason() -> None:
    events = whole({1: "TS 6C"}, "TH 9D")
    for action, article in (("split", "16"), ("even_money", "10(3)")):
        view = after(game(**BOX), [*events, act(1, action)])[1]
        assert view.detail["refused"] in ("cards_do_not_allow", "decision_not_allowed")
        assert view.detail["due"]["kind"] == "decision"
        result = only(play(game(**BOX), [*events, act(1, action), act(1, "stand")]))
        assert [note.law.endswith(f"art. {article}") for note in result.irregularities] == [True]
    again = after(game(**BOX), [*events, act(1, "split"), act(1, "hit")])[1]
    assert "refused" not in again.detail


@pytest.mark.article("10(2)", "6(3)")
def test_a_blackjack_of_the_metal_box_that_a_correction_finds_decided_is_one() -> None:
    """The next seat has drawn, so the blackjack before it has decided."""
    events = [*whole({1: "AS KC", 2: "5S 4C"}, "TH 7D", bets=[bet(1), bet(2)]), CardUnreadable()]
    laid = DealCorrected({"1.1": ("AS", "KC"), "2.1": ("5S", "4C", "9D"), "dealer": ("TH", "7D")})
    result = only(play(game(**BOX), [*events, laid, act(2, "stand")]))
    assert result.outcome["ended"]["1.1"] == "blackjack"
    assert Win("main", "3/2", seat=1, hand=1) in result.winners


@pytest.mark.article("12(1)")
@pytest.mark.parametrize("cards", ["AS KC", "TS 9C"])
def test_who_decided_face_down_insures_no_more(cards: str) -> None:
    events = whole({1: cards, 2: "5S 4C"}, "AH", act(1, "stand"), act(1, "insurance", amount=50), bets=[bet(1), bet(2)])
    view = after(game(procedure="1"), events)[1]
    assert "insured" not in view.detail
    assert view.detail["refused"] == "decision_not_allowed"


@pytest.mark.article("18(2)")
@pytest.mark.parametrize("seats", [{1: "TS 8C"}, {1: "TS 8C", 2: "TH 9C"}])
@pytest.mark.parametrize("option", ["before_any_card", "before_own_card"])
def test_nobody_gives_up_once_all_have_decided(seats: dict[int, str], option: str) -> None:
    said = [*(act(seat, "stand") for seat in seats), act(1, "surrender"), *draw("TD")]
    result = only(play(game(surrender=option), whole(seats, "7H", said)))
    assert result.outcome["ended"]["1.1"] == "stand"
    assert codes(result) == ["decision_not_allowed" if option == "before_any_card" else "out_of_turn"]


@pytest.mark.article("18(2)")
def test_a_surrender_told_after_the_end_is_told_again_where_it_was() -> None:
    late = msgspec.structs.replace(act(1, "surrender"), overtaken=900)
    over = whole({1: "TS 6C"}, "9H", act(1, "stand"), draw("TD"), late, bets=[bet(1)])
    assert held(judged(game(), [*over, DealCorrected({})]))[1:] == [(AGAIN, "do_earlier")]
    end = last(judged(game(), [*over, DealCorrected({"dealer": ("9H",)}), act(1, "surrender")]))
    assert isinstance(end, Corrected)
    assert end.result.outcome["ended"] == {"1.1": "surrender"}


@pytest.mark.article("12(1)")
def test_insurance_told_after_the_end_is_told_again_where_it_was() -> None:
    late = msgspec.structs.replace(act(1, "insurance", amount=50), overtaken=900)
    over = whole({1: "TS 9C"}, "AH", act(1, "stand"), draw("KD"), late, bets=[bet(1)])
    told = [DealCorrected({"dealer": ("AH",)}), act(1, "insurance", amount=50), act(1, "stand")]
    end = last(judged(game(), [*over, *told, DealCorrected({"dealer": ("AH", "KD")})]))
    assert isinstance(end, Corrected)
    assert paid(end.result)["insurance"] == "2"


@pytest.mark.article("18(3)")
def test_who_gives_up_loses_the_streaks() -> None:
    _, given_up = rounds_of("wr")
    assert streak_settled(given_up) == dict.fromkeys((2, 3, 4, 5), 0)
    assert back(given_up)["main"] == 50
    assert "18(3)" in articles(given_up)


# ---- art. 19: five cards

FIVE: list[Event] = [act(1, "hit"), *draw("2D"), act(1, "hit"), *draw("3D"), act(1, "hit"), *draw("4D")]


@pytest.mark.article("5(1)(2)", "19(1)")
def test_who_took_half_while_the_round_waited_is_asked_for_it() -> None:
    said = [*FIVE[:-1], CardUnreadable(), act(1, "five_cards"), *draw("9D")]
    five = ("2S", "3S", "2D", "3D", "4D")
    events = whole({1: "2S 3S"}, "TH", said, [DealCorrected({"1.1": five, "dealer": ("TH", "9D")})], bets=[bet(1)])
    assert held(play(game(), events))[1:] == [(AGAIN, "do_earlier")]
    told = [DealCorrected({"1.1": five, "dealer": ("TH",)}), act(1, "five_cards")]
    assert back(only(play(game(), [*events, *told]))) == {"main": 150}


@pytest.mark.article("19(1)", "2004:19(1)")
@both
def test_five_cards_may_take_half_the_bet(edition: Edition) -> None:
    result = one("2S 3S", "TH", FIVE, act(1, "five_cards"), edition=edition)
    assert (back(result), paid(result)["main"]) == ({"main": 150}, "1/2")
    assert result.outcome["totals"]["1.1"] == 14
    assert "19(1)" in articles(result)
    four = one("2S 3S", "TH", FIVE[:-2], act(1, "five_cards"), act(1, "stand"), draw("9D"), edition=edition)
    assert codes(four) == ["decision_not_allowed"]
    # Twenty-one on five cards still chooses.
    events = whole({1: "2S 3S"}, "TH", FIVE[:-1], draw("KD"))
    assert due(whole({1: "2S 3S"}, "TH", FIVE[:-1], draw("JD")), edition=edition)[0] == "decision"
    assert may(events, edition=edition) >= {"stand", "five_cards"}
    many = whole({1: "5S 6S"}, "TH", FIVE[:-1], draw("5D"))
    assert may(many, edition=edition) == {"stand", "five_cards"}


@pytest.mark.article("6(3)", "19(1)")
def test_five_cards_told_to_hit_and_to_take_half_wait_for_one_of_them() -> None:
    said = [*FIVE, act(1, "hit"), act(1, "five_cards")]
    assert held(play(game(), whole({1: "2S 3S"}, "TH", said))) == [TWO_WORDS]
    assert back(one("2S 3S", "TH", said, DealCorrected({}), act(1, "five_cards"))) == {"main": 150}
    sixth = DealCorrected({"1.1": ("2S", "3S", "2D", "3D", "4D", "6D")})
    assert back(one("2S 3S", "TH", said, draw("6D"), sixth, act(1, "stand"), draw("9D"))) == {"main": 200}


@pytest.mark.article("19(2)", "2004:19(2)")
@both
def test_otherwise_five_cards_play_on(edition: Edition) -> None:
    result = one("2S 3S", "TH", FIVE, act(1, "hit"), draw("6D"), act(1, "stand"), draw("9D"), edition=edition)
    assert back(result) == {"main": 200}
    assert "five_cards" not in may(whole({1: "2S 3S"}, "AH", FIVE), edition=edition)
    against = one("2S 3S", "AH", FIVE, act(1, "five_cards"), act(1, "stand"), draw("9D"), edition=edition)
    assert (codes(against), back(against)) == (["decision_not_allowed"], {"main": 0})


# ---- art. 20: several bets on one seat


@pytest.mark.article("20(1)(1)", "20(1)(2)", "20(1)(3)", "2004:20(1)(1)", "2004:20(1)(2)", "2004:20(1)(3)")
@both
@pytest.mark.parametrize(
    ("option", "laid", "who"),
    [
        ("seated", {"main": 10, "main:2": 90}, "main"),
        ("seated_or_nearest", {"main": 10, "main:2": 90}, "main"),
        ("seated_or_nearest", {"main:2": 10, "main:3": 90}, "main:2"),
        ("highest", {"main": 10, "main:2": 90, "main:3": 20}, "main:2"),
        ("highest", {"main": 90, "main:2": 90}, "main"),
        ("highest", {"main": 10, "main:2": 90, "main:3": 90}, "main"),
    ],
)
def test_who_decides_where_several_bet_on_one_seat(
    edition: Edition, option: str, laid: dict[str, int], who: str
) -> None:
    ruleset = game(edition=edition, bettors=3, decides=option)
    events = whole({1: "8S 8H"}, "7H", bets=[bet(1, amount, name) for name, amount in laid.items()])
    assert after(ruleset, events)[1].detail["due"]["decides"] == who


@pytest.mark.article("20(1)(2)", "2004:20(1)(2)")
def test_three_players_on_one_seat_at_most() -> None:
    with pytest.raises(BadOption, match=r"art. 20\(1\)\(2\)"):
        options_from(Blackjack, {"bettors": 4, "decides": "seated_or_nearest"})
    laid = [bet(1), bet(1, 50, "main:2"), bet(1, 20, "main:3")]
    for bettors, refused in ((3, 0), (2, 1), (1, 2)):
        stand = [act(1, "stand"), *draw("TD")]
        result = only(play(game(bettors=bettors), whole({1: "TS 9H"}, "7H", stand, bets=laid)))
        assert codes(result) == ["bet_not_offered"] * refused


@pytest.mark.article("20(1)(1)")
def test_the_others_follow_each_with_his_own_stake() -> None:
    laid = [bet(1), bet(1, 50, "main:2")]
    then: list[Event] = [
        act(1, "split"),
        *draw("3S"),
        act(1, "double"),
        *draw("9S TC"),
        act(1, "stand", 2),
        *draw("TD"),
    ]
    result = only(play(game(bettors=2), whole({1: "8S 8H"}, "7H", then, bets=laid)))
    assert back(result) == {
        "main": 200,
        "main:2": 100,
        "main/2": 200,
        "main:2/2": 100,
        "double": 200,
        "double:2": 100,
    }


# ---- art. 21: what the house chooses


@pytest.mark.article("21(1)", "2004:21(1)")
@both
def test_the_additional_bets_are_a_choice(edition: Edition) -> None:
    few = ("main", "double", "insurance")
    assert [bet_.id for bet_ in game(edition=edition, bets_offered=few).bets()] == list(few)
    result = one("8S 8H", "7H", act(1, "stand"), draw("TD"), bets=[bet(1, 5, "any_pair")], bets_offered=few)
    assert codes(result) == ["bet_not_offered"]
    assert {win.bet for win in result.winners} <= {"main"}
    for wrong, words in (
        (("main", "insurance"), "add double"),
        ((*few, "aces"), "no bet 'aces'"),
        ((*few, "over_13"), r"art. 13\(3\)"),
    ):
        with pytest.raises(BadOption, match=words):
            options_from(Blackjack, {"edition": edition, "bets_offered": wrong})


@pytest.mark.article("21(2)", "2004:21(2)")
@both
def test_special_prize_and_surrender_may_be_left_out(edition: Edition) -> None:
    assert "surrender" not in may(whole({1: "TS 6C"}, "TH"), edition=edition, surrender="none")
    prize = one("7S 7H", "7H", act(1, "hit"), draw("7D TD"), edition=edition, special_prize="none")
    assert back(prize) == {"main": 200}


@pytest.mark.article("21(3)")
def test_perfect_pair_and_streaks_are_off_unless_chosen() -> None:
    assert not {"perfect_pair", *STREAKS} & {bet_.id for bet_ in game().bets()}
    assert {"perfect_pair", *STREAKS} <= {bet_.id for bet_ in game(bets_offered=FAMILIES).bets()}


# ---- who plays


def test_without_bets_the_opened_seats_play_and_nothing_is_settled() -> None:
    events = whole({2: "TS 9C", 4: "AH KC"}, "7H", act(2, "stand"), draw("TD"))
    result = only(play(game(), [SeatOpened(3), SeatClosed(3), *events]))
    assert result.settlements == ()
    assert {(win.bet, win.seat, win.hand, win.pays) for win in result.winners if win.bet == "main"} == {
        ("main", 2, 1, "1"),
        ("main", 4, 1, "3/2"),
    }


def test_a_table_whose_seats_nobody_told_waits_for_their_names() -> None:
    events: list[Event] = [BetsOpened(), BetsClosed()]
    verdicts = play(game(), events)
    assert isinstance(last(verdicts), Suspended)
    named: list[Event] = [DealCorrected({"dealer": (), "2.1": (), "5.1": ()})]
    rest = [*deal({2: "TS 9C", 5: "TH 6C"}, "7H"), act(2, "stand"), act(5, "stand"), *draw("TD")]
    assert only(play(game(), [*events, *named, *rest])).outcome["results"] == {"2.1": "win", "5.1": "lose"}
    # They are open then for the rounds that follow.
    assert after(game(), [*events, *named])[0].position.seats == (2, 5)
    assert isinstance(last(play(game(), [*events, DealCorrected({"9.1": ()})])), Suspended)


def test_cards_before_the_bell_or_between_rounds_are_not_dealt() -> None:
    early = [SeatOpened(1), BetsOpened(), *draw("TS")]
    assert [type(one_) for one_ in play(game(), early)] == [Opened, Closed, Suspended]
    assert [type(one_) for one_ in play(game(), [*early[:2], CardUnreadable()])] == [Opened, Closed, Suspended]
    assert isinstance(last(play(game(), draw("TS"))), Noted)
    assert isinstance(last(play(game(), [CardUnreadable()])), Noted)
    assert isinstance(last(play(game(), [BetsClosed()])), Noted)


# ---- doubt

RUNNING = whole({1: "TS 9C", 2: "8S 8H"}, "7H", act(1, "hit"), draw("2D"), bets=[bet(1), bet(2)])
RUNNING += [act(2, "split"), *draw("3S"), act(2, "stand"), *draw("4S"), act(2, "stand", 2), *draw("TD")]
DOUBTS: list[Event] = [EventsMissed(1), DeviceOnline(continuous=False), CardUnreadable()]


@pytest.mark.parametrize("doubt", DOUBTS)
@pytest.mark.parametrize("place", range(4, len(RUNNING)))
def test_a_loss_after_the_bell_is_never_resolved(doubt: Event, place: int) -> None:
    verdicts = play(game(), [*RUNNING[:place], doubt, *RUNNING[place:]])
    assert sum(isinstance(verdict, Suspended) for verdict in verdicts) == 1
    assert not results(verdicts)
    void = only(play(game(), [*RUNNING[:place], doubt, *RUNNING[place:], BetsOpened()]))
    assert void.void is not None
    assert void.void.bets == "returned"
    assert all(one_.stake == one_.returned for one_ in void.settlements)


def test_a_corrected_deal_goes_on_where_it_lies() -> None:
    hands = {"dealer": ("7H",), "1.1": ("TS", "9C", "2D"), "2.1": ("8S", "3S"), "2.2": ("8H",)}
    events = [*RUNNING[:10], CardUnreadable(), DealCorrected({name: tuple(cards) for name, cards in hands.items()})]
    assert due(events) == ("decision", "2.1")
    rest: list[Event] = [act(2, "stand"), *draw("4S"), act(2, "stand", 2), *draw("TD")]
    result = only(play(game(), [*events, *rest]))
    assert result.outcome["results"] == {"1.1": "win", "2.1": "lose", "2.2": "lose"}
    assert [(one_.seat, one_.hand, one_.stake) for one_ in result.settlements] == [
        (1, 1, 100),
        (2, 1, 100),
        (2, 2, 100),
    ]


@pytest.mark.parametrize(
    "hands",
    [
        {"1.1": ("TS", "9C", "2D", "4D")},  # a card after 21
        {"1.3": ("TS",)},
        {"8.1": ("TS", "9C")},
        {"player": ("TS", "9C")},
        {"2.1": ()},
        {"dealer": ("TH", "9C", "2D")},  # a card after 19
        {"2.1": ("8S",), "2.2": ("9H",)},
    ],
)
def test_hands_that_no_deal_gives_leave_the_round_waiting(hands: dict[str, tuple[str, ...]]) -> None:
    ruleset = game()
    state, view = after(ruleset, [*RUNNING[:10], EventsMissed(1), DealCorrected(hands)])
    assert view.phase == "suspended"
    assert state.position.play is not None


def test_a_card_entered_by_hand_that_the_shoe_tells_later_is_doubtful() -> None:
    events = [*whole({1: "TS 2C"}, "7H", act(1, "hit")), CardUnreadable(), DealCorrected({"1.1": ("TS", "2C", "4D")})]
    assert due(events) == ("decision", "1.1")
    assert isinstance(last(play(game(), [*events, act(1, "hit"), *draw("4D")])), Suspended)
    # One that the shoe told while the round waited is the same card.
    told = [*whole({1: "TS 2C"}, "7H"), *draw("4D"), DealCorrected({"1.1": ("TS", "2C", "4D")})]
    result = only(play(game(), [*told, act(1, "hit"), *draw("4D"), act(1, "stand"), *draw("TD")]))
    assert result.outcome["hands"]["1.1"] == ("TS", "2C", "4D", "4D")


def test_the_hole_card_need_not_be_named() -> None:
    events = [*whole({1: "TS 9C"}, "7H TD"), EventsMissed(1), DealCorrected({"dealer": ("7H",), "1.1": ("TS", "8C")})]
    view = after(game(**HOLE), events)[1]
    assert view.detail["hands"]["dealer"] == ("7H", "??")
    assert only(play(game(**HOLE), [*events, act(1, "stand")])).outcome["totals"] == {"dealer": 17, "1.1": 18}


HIDDEN = (say("hole_unknown"), "do_correct")


@pytest.mark.article("5(2)(3)(2)", "5(2)(1)(2)", "5(1)(2)")
@pytest.mark.parametrize("options", [HOLE, BOX])
@pytest.mark.parametrize(
    ("told", "hidden"),
    [
        # It came out, and could not be read, or may have been lost.
        ([*draw("5S 7H 6C"), CardUnreadable()], True),
        ([*draw("5S 7H 6C"), EventsMissed(1)], True),
        ([*draw("5S 7H"), EventsMissed(1)], True),
        ([*draw("5S 7H"), CardUnreadable(), CardUnreadable()], True),
        # It is the card told while the round waited, or the one that could not be read is.
        ([*draw("5S 7H"), CardUnreadable(), *draw("2D")], True),
        # Each card that came out is named.
        ([*draw("5S 7H"), CardUnreadable()], False),
        ([CardUnreadable(), *draw("7H 6C")], False),
        ([*draw("5S 7H 6D")], False),
    ],
)
def test_a_hole_card_that_may_lie_there_already_is_dealt_no_second_time(
    options: dict[str, Any], told: list[Event], hidden: bool
) -> None:
    """A correction names no card that lies face down; but which is told as the next would be the bank's."""
    ruleset = game(**options)
    lies = DealCorrected({"dealer": ("7H",), "1.1": ("5S", "6C")})
    start: list[Event] = [BetsOpened(), bet(1), BetsClosed(), *told]
    view = after(ruleset, [*start, lies])[1]
    if not hidden:
        assert view.detail["due"] == {"kind": "card", "hand": "dealer"}
        return
    assert (view.phase, view.detail["reason"]) == ("suspended", HIDDEN[0])
    assert held(play(ruleset, [*start, lies, lies]))[1:] == [HIDDEN, HIDDEN]
    assert only(play(ruleset, [*start, lies, RoundVoided("")])).void is not None
    # Who knows it may name it.
    assert due([*start, lies, DealCorrected({"dealer": ("7H", "9C"), "1.1": ("5S", "6C")})], **options) == (
        *("decision", "1.1"),
    )


@pytest.mark.parametrize("doubt", DOUBTS)
@pytest.mark.parametrize("place", range(1, 8))
def test_a_burn_that_was_not_seen_whole_is_confirmed_by_a_person(doubt: Event, place: int) -> None:
    """Four cards to burn; the doubt comes among them, before the bell or after it.

    What is lost after it, too, may be a bet that was laid or taken back before it: the seats are named first.
    """
    start: list[Event] = [ShoeStarted(4), *draw("2S"), BetsOpened(), bet(1), *draw("2H"), BetsClosed(), *draw("2D 2C")]
    verdicts = play(game(decks=4), [*start[:place], doubt, *start[place:], *deal({1: "TS 9C"}, "7H")])
    assert [type(one_) for one_ in verdicts if not isinstance(one_, Noted)] == [Opened, Closed, Suspended]
    (why,) = held(verdicts)
    named: list[Event] = [DealCorrected({"dealer": (), "1.1": ()})]
    # Who plays is one question, whether the burn is done another.
    named *= 2 if why in (LOST_SEATS, LOST) else 1
    assert why in (LOST_SEATS, LOST) or why[1] == "do_burn"
    rest = [*deal({1: "TS 9C"}, "7H"), act(1, "stand"), *draw("TD")]
    result = only(play(game(decks=4), [*start[:place], doubt, *start[place:], *named, *rest]))
    assert result.outcome["hands"] == {"dealer": ("7H", "TD"), "1.1": ("TS", "9C")}


def test_a_correction_keeps_the_decisions_that_its_cards_allow() -> None:
    seats = {1: "TS 6C", 2: "AS KC", 3: "TH 9C", 4: "TD 2C"}
    events = whole(seats, "TC", act(1, "surrender"), act(2, "even_money"), act(2, "even_money"), act(3, "double"))
    fixed = [EventsMissed(1), act(1, "hit"), bet(2, 50, "insurance"), DealCorrected({"3.1": ("TH", "9C")})]
    assert due([*events, *fixed]) == ("card", "3.1")
    # A further card of seat 4 says that seat 3 has decided; other cards undo what they do not allow.
    more = {"1.1": ("TS", "6C", "2D"), "2.1": ("9S", "KC"), "3.1": ("TH", "9C", "AD"), "4.1": ("TD", "2C", "5S")}
    detail = after(game(), [*events, EventsMissed(1), DealCorrected(more)])[1].detail
    assert detail["due"]["hand"] == "4.1"
    assert detail["totals"]["1.1"] == 18
    five: list[Event] = [*FIVE, act(1, "five_cards"), EventsMissed(1), DealCorrected({"2.1": ("TH", "8C")})]
    kept = only(play(game(), [*whole({1: "2S 3S", 2: "TH 9C"}, "TH", five), act(2, "stand"), *draw("9D")]))
    assert kept.outcome["ended"] == {"1.1": "five_cards", "2.1": "stand"}
    prize = only(play(game(), whole({1: "6S 7S"}, "9H", act(1, "stand"), DealCorrected({"1.1": ("6S", "7S", "8S")}))))
    assert (prize.outcome["ended"], paid(prize)["main"]) == ({"1.1": "special"}, "3")
    natural = [act(1, "stand"), *draw("5D 7D"), DealCorrected({"1.1": ("TS", "AC")})]
    *_, put_right = play(game(), whole({1: "TS 9C"}, "9H", natural))
    assert isinstance(put_right, Corrected)
    assert put_right.result.outcome["ended"] == {"1.1": "blackjack"}
    assert paid(put_right.result)["main"] == "3/2"
    short = whole({1: "2S 3S", 2: "TH 9C"}, "TH", EventsMissed(1), DealCorrected({"1.1": ("2S", "3S"), "1.2": ("2D",)}))
    assert after(game(), [*short, DealCorrected({"2.1": ("TH", "2C", "3D")})])[1].phase == "suspended"


INSURED: list[Event] = [act(1, "insurance", amount=50), act(1, "stand")]
PEEKED = whole({1: "TS 6C"}, "AH KD", HoleCardPeeked(blackjack=True), bets=[bet(1)])
BOTH = [bet(1), bet(2)]
# What came before the correction, the bank's cards by it, what follows, what comes back, and what is noted.
BARRED: dict[str, tuple[dict[str, Any], list[Event], str, list[Event], list[int], list[str]]] = {
    "insurance against a king": (
        {},
        whole({1: "TS 9C"}, "AH", INSURED, bets=[bet(1)]),
        "KH",
        draw("AD"),
        [0],
        ["decision_not_allowed"],
    ),
    "insurance against a king, paid": (
        {},
        whole({1: "TS 9C"}, "AH", INSURED, draw("KD"), bets=[bet(1)]),
        "KH AD",
        [],
        [0],
        ["decision_not_allowed"],
    ),
    "even money against a nine": (
        {},
        whole({1: "AS KC"}, "KH", act(1, "even_money"), bets=[bet(1)]),
        "9H",
        [],
        [250],
        [],
    ),
    "surrender against an ace": (
        {},
        whole({1: "TS 6C", 2: "TH 8C"}, "KH", act(1, "surrender"), act(2, "hit"), draw("AD"), bets=BOTH),
        "AH",
        [act(1, "stand"), act(2, "stand"), *draw("7D")],
        [0, 200],
        [],
    ),
    "surrender against an ace, before a double": (
        {},
        whole({1: "TS 6C", 2: "5H 6D"}, "KH", act(1, "surrender"), act(2, "double"), bets=BOTH),
        "AH",
        [act(1, "stand"), act(2, "double"), *draw("TD 7C")],
        [0, 200, 200],
        [],
    ),
    "surrender against an ace, resolved": (
        {},
        whole({1: "TS 6C"}, "KH", act(1, "surrender"), bets=[bet(1)]),
        "AH",
        [act(1, "hit"), *draw("4D"), act(1, "stand"), *draw("8D")],
        [200],
        [],
    ),
    "five cards against an ace": (
        {},
        whole({1: "2S 3S"}, "TH", FIVE, act(1, "five_cards"), bets=[bet(1)]),
        "AH",
        [act(1, "hit"), *draw("6D"), act(1, "stand"), *draw("8D")],
        [200],
        [],
    ),
    "a peek that saw a blackjack": (
        HOLE,
        PEEKED,
        "AH 9D",
        [HoleCardPeeked(blackjack=False), act(1, "hit"), *draw("5D")],
        [200],
        [],
    ),
    "a peek that saw a blackjack under a nine": (
        HOLE,
        PEEKED,
        "9H",
        [act(1, "hit"), *draw("4D"), act(1, "stand")],
        [200],
        [],
    ),
    "another blackjack": (HOLE, PEEKED, "AH QD", [], [0], []),
}


def bank_is(bank: str) -> Event:
    return DealCorrected({"dealer": tuple(bank.split())})


@pytest.mark.article("5(1)(2)", "10(3)", "12(1)", "18(1)", "19(1)", "5(2)(3)(4)")
@pytest.mark.parametrize("case", BARRED)
def test_a_correction_of_the_bank_undoes_the_decisions_that_its_first_card_does_not_allow(case: str) -> None:
    options, events, bank, then, returned, notes = BARRED[case]
    verdicts = play(game(**options), [*events, bank_is(bank), *then])
    end = last(verdicts)
    assert isinstance(end, Resolved | Corrected)
    assert held(verdicts) == []
    assert [one_.returned for one_ in end.result.settlements] == returned
    assert codes(end.result) == notes


def test_what_is_undone_is_shown_as_due_again() -> None:
    def shown(case: str) -> dict[str, Any]:
        options, events, bank, *_ = BARRED[case]
        return after(game(**options), [*events, bank_is(bank)])[1].detail

    assert shown("surrender against an ace")["due"]["hand"] == "1.1"
    peeked = shown("a peek that saw a blackjack")
    assert (peeked["due"]["kind"], peeked["hands"]["dealer"]) == ("peek", ("AH", "??"))
    assert "insured" not in shown("insurance against a king")


@pytest.mark.parametrize("options", [{}, HOLE])
def test_a_decision_that_must_be_made_again_against_a_known_card_leaves_the_round_waiting(
    options: dict[str, Any],
) -> None:
    """The seat surrendered against a king; it was an ace, and the bank's second card is seen."""
    ruleset = game(**options)
    bank, second = ("KH 7D", []) if options else ("KH", draw("7D"))
    peeked: list[Event] = [HoleCardPeeked(blackjack=False)] if options else []
    then = [*peeked, act(1, "surrender"), act(2, "stand"), *second]
    over = whole({1: "TS 6C", 2: "TH 9C"}, bank, then, bets=[bet(1), bet(2)])
    *_, end = play(ruleset, [*over, DealCorrected({"dealer": ("AH", "7D")})])
    assert held([end]) == [(AGAIN, "do_correct")]
    waits = [*over, DealCorrected({"dealer": ("AH", "7D")})]
    first = only(play(ruleset, over))
    stands, void = (last(play(ruleset, [*waits, event])) for event in (RoundPaid(), RoundVoided("")))
    assert isinstance(stands, Corrected)
    assert stands.result.settlements == first.settlements
    assert isinstance(void, Corrected)
    assert void.result.void is not None
    right = last(play(ruleset, [*waits, DealCorrected({"dealer": ("QH", "7D")})]))
    assert isinstance(right, Corrected)
    assert right.result.settlements == first.settlements


def test_a_word_said_twice_after_the_turn_has_passed_changes_nothing() -> None:
    then: list[Event] = [act(1, "double"), *draw("2S"), act(1, "double"), act(2, "split"), *draw("TC"), act(2, "stand")]
    then += [*draw("9D"), act(2, "split"), act(2, "stand", 2), *draw("TD")]
    events = whole({1: "5S 6H", 2: "8S 8H"}, "7H", then, bets=[bet(1), bet(2)])
    assert codes(only(play(game(), events))) == []


def test_the_view_names_the_insured() -> None:
    events = whole({1: "TS 9C"}, "AH", act(1, "insurance", amount=50), bets=[bet(1)])
    assert after(game(), events)[1].detail["insured"] == (1,)


def test_a_first_deal_is_corrected_card_by_card() -> None:
    events = [*whole({1: "TS 9C", 2: "TH 6C"}, "7H")[:6], CardUnreadable()]
    fixed: list[Event] = [DealCorrected({"dealer": (), "1.1": ("TS",), "2.1": ("4H",)})]
    assert due([*events, *fixed]) == ("card", "dealer")
    wrong: list[Event] = [DealCorrected({"dealer": (), "1.1": ("TS", "2C"), "2.1": ()})]
    assert after(game(), [*events, *wrong])[1].phase == "suspended"


def test_a_loss_before_the_bell_leaves_the_seats_uncertain() -> None:
    laid: list[Event] = [BetsOpened(), bet(1), EventsMissed(1), bet(2), BetsClosed()]
    assert isinstance(last(play(game(), laid)), Suspended)
    named: list[Event] = [DealCorrected({"dealer": (), "1.1": (), "2.1": (), "3.1": ()})]
    seats = {1: "TS 9C", 2: "TH 6C", 3: "TD 8C"}
    rest = [*deal(seats, "7H"), act(1, "stand"), act(2, "stand"), act(3, "stand"), *draw("TD")]
    result = only(play(game(), [*laid, *named, *rest]))
    assert result.outcome["results"] == {"1.1": "win", "2.1": "lose", "3.1": "win"}
    # Bets opened once more begin anew; seats told before a loss between two rounds may be incomplete.
    again = play(game(), [*laid[:3], BetsOpened(), bet(1), BetsClosed()])
    assert [type(one_) for one_ in again] == [Opened, Voided, Opened, Closed]
    assert isinstance(last(play(game(), [SeatOpened(1), EventsMissed(1), BetsOpened(), BetsClosed()])), Suspended)


@pytest.mark.parametrize("doubt", [EventsMissed(1), DeviceOnline(continuous=False)])
@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_loss_in_the_betting_costs_the_amounts(doubt: Event, place: int) -> None:
    """A bet may have been taken back, or laid, unheard."""
    laid: list[Event] = [BetsOpened(), bet(1), bet(2, 10, "any_pair"), BetsClosed()]
    laid.insert(place, doubt)
    named = DealCorrected({"dealer": (), "1.1": (), "2.1": ()})
    rest: list[Event] = [*deal({1: "5S 6C", 2: "8S 8H"}, "7H"), act(1, "double", amount=70), *draw("9D")]
    rest += [act(2, "stand"), *draw("TD")]
    result = only(play(game(), [*laid, named, *rest]))
    assert (result.settlements, codes(result)) == ((), [])
    assert {(win.bet, win.seat) for win in result.winners if win.bet in ("main", "double", "any_pair")} == {
        *(("main", 1), ("double", 1), ("any_pair", 2)),
    }
    for end in ([RoundVoided("")], [named, RoundVoided("")], [named, *rest[:4], BetsOpened()]):
        void = only(play(game(), [*laid, *end]))
        assert (void.void, void.settlements, void.pushes) == (Void(void.void.reason, "returned"), (), ())  # type: ignore[union-attr]
    open_ = only(play(game(), [*laid[: laid.index(doubt) + 1], BetsOpened()]))
    assert open_.settlements == ()
    # The next round is told whole.
    again = whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"), bets=[bet(1)])
    *_, told = results(play(game(), [*laid, named, *rest, *again]))
    assert back(told) == {"main": 200}


LOSSES: list[Event] = [EventsMissed(1), DeviceOnline(continuous=False)]
LAID = [bet(1), bet(1, 10, "any_pair")]


@pytest.mark.parametrize("doubt", LOSSES)
@pytest.mark.parametrize("place", range(3, 8))
def test_a_loss_after_the_bell_costs_the_amounts(doubt: Event, place: int) -> None:
    """A bet may have been taken back, or added to, unheard: what was told before is neither settled nor returned."""
    told = whole({1: "8S 8H"}, "7H", act(1, "stand"), draw("TD"), bets=LAID)
    lost = [*told[: place + 1], doubt]
    cards = ("8S", "7H", "8H")[: max(place - 3, 0)]
    lay = {"1.1": tuple(card for card in cards if card[0] == "8"), "dealer": cards[1:2]}
    again = told[4 + len(cards) :]
    result = only(play(game(), [*lost, DealCorrected(lay), *again]))
    assert (result.settlements, codes(result)) == ((), [])
    assert {(win.bet, win.seat) for win in result.winners if win.seat} == {("any_pair", 1), ("over_13", 1)}
    for end in ([RoundVoided("")], [BetsOpened()], [DealCorrected(lay), RoundVoided("")]):
        void = only(play(game(), [*lost, *end]))
        assert (void.void is not None, void.settlements, void.pushes) == (True, (), ())


@pytest.mark.parametrize("doubt", LOSSES)
def test_after_a_loss_before_the_first_card_the_seats_are_named(doubt: Event) -> None:
    """Seat 2 took its bet back unheard, seat 3 laid one."""
    told: list[Event] = [BetsOpened(), bet(1), bet(2), BetsClosed(), doubt]
    assert held(play(game(), told)) == [LOST]
    assert held(play(game(), [*told, DealCorrected({})]))[1:] == [(say("no_deal"), "do_name_seats")]
    named = [*told, DealCorrected({"dealer": (), "1.1": (), "3.1": ()})]
    rest = [*deal({1: "TS 9S", 3: "TC 6C"}, "7H"), act(1, "stand"), act(3, "stand"), *draw("TD")]
    result = only(play(game(), [*named, *rest]))
    assert (result.outcome["results"], result.settlements) == ({"1.1": "win", "3.1": "lose"}, ())


def test_what_is_told_after_a_loss_counts_where_no_main_bet_need_be_known() -> None:
    start: list[Event] = [BetsOpened(), bet(1), BetsClosed(), EventsMissed(1), DealCorrected({"dealer": (), "1.1": ()})]
    insured = [*deal({1: "TS 9C"}, "AH"), act(1, "insurance", amount=30), act(1, "stand"), *draw("KD")]
    assert back(only(play(game(), [*start, *insured]))) == {"insurance": 90}
    doubled = [*deal({1: "5S 6C"}, "7H"), act(1, "double", amount=70), *draw("9D TD")]
    result = only(play(game(), [*start, *doubled]))
    assert (result.settlements, result.outcome["doubled"]) == ((), ["1.1"])
    # Told before it, neither is.
    for cards, bank, before, lay in (
        ("TS 9C", "AH", act(1, "insurance", amount=50), ("TS", "9C")),
        ("5S 6C", "9H", act(1, "double"), ("5S", "6C", "9D")),
    ):
        lost = [before, EventsMissed(1), DealCorrected({"1.1": lay}), act(1, "stand"), *draw("KD")]
        assert one(cards, bank, lost).settlements == ()


@pytest.mark.article("13(5)(2)(v)")
def test_after_a_loss_after_the_bell_only_the_streaks_of_earlier_rounds_are_known() -> None:
    ruleset = game(bets_offered=FAMILIES)
    lost = whole({1: "TS 9C"}, "7H", EventsMissed(1), bets=[bet(1), bet(1, 10, "winning_streak_2")])
    won = whole({1: "TS 9C"}, "7H", STAND, bets=[bet(1)])
    first, second = results(play(ruleset, [*lost, DealCorrected({}), *STAND, *won]))
    assert (first.settlements, first.stands, back(second)) == ((), (), {"main": 200})
    assert "streaks" not in after(ruleset, [*lost, DealCorrected({})])[1].detail
    void, second, third = results(play(ruleset, [*lost, *won, *won]))
    assert (void.void, streak_settled(second), streak_settled(third)) == (
        *(Void(say("round_events"), "returned"), {}, {}),
    )
    laid = whole({1: "TS 9C"}, "7H", STAND, bets=[bet(1), bet(1, 10, "winning_streak_2")])
    first, second = results(play(ruleset, [*laid, *lost, DealCorrected({}), *STAND]))
    assert (first.stands, back(second)) == (("winning_streak_2",), {"winning_streak_2": 40})


def test_paid_in_doubt_the_first_result_stands_with_its_amounts() -> None:
    ruleset = game(bets_offered=FAMILIES)
    over = whole({1: "TS 9C"}, "7H", STAND, bets=[bet(1), bet(1, 10, "winning_streak_2")])
    wrong = DealCorrected({"1.1": ("TS", "9C", "9D", "2C")})
    *_, stands = play(ruleset, [*over, wrong, EventsMissed(1), RoundPaid()])
    assert isinstance(stands, Corrected)
    assert stands.result.settlements == only(play(ruleset, over)).settlements
    assert (stands.result.stands, back(stands.result)) == (("winning_streak_2",), {"main": 200})


@pytest.mark.parametrize("late", [WagerWithdrawn(1, "main", 60), bet(1, 50), bet(2), SeatOpened(2)])
def test_a_bet_that_others_overtook_is_a_loss(late: Event) -> None:
    """It was laid or taken back before the bell: which amounts lie there is not known."""
    late = msgspec.structs.replace(late, overtaken=300)
    told: list[Event] = [BetsOpened(), bet(1), BetsClosed(), *draw("TS"), late, DealCorrected({"1.1": ("TS",)})]
    result = only(judged(game(), [*told, *draw("7H 9C"), *STAND]))
    assert (result.settlements, result.outcome["results"]) == ((), {"1.1": "win"})


def test_insurance_told_after_a_loss_in_the_betting_is_known() -> None:
    laid: list[Event] = [BetsOpened(), bet(1), EventsMissed(1), BetsClosed(), DealCorrected({"dealer": (), "1.1": ()})]
    insured: list[Event] = [*deal({1: "TS 9C"}, "AH"), act(1, "insurance", amount=30), act(1, "stand"), *draw("KD")]
    assert back(only(play(game(), [*laid, *insured]))) == {"insurance": 90}


def test_after_a_loss_in_the_betting_all_bets_on_a_seat_that_wins_win() -> None:
    laid: list[Event] = [BetsOpened(), bet(1), EventsMissed(1), BetsClosed(), DealCorrected({"dealer": (), "1.1": ()})]
    ruleset = game(bettors=3)
    result = only(play(ruleset, [*laid, *deal({1: "TS 9C"}, "7H"), *STAND]))
    assert {win.bet for win in result.winners if win.bet.startswith("main")} == {"main", "main:2", "main:3"}
    told = whole({1: "TS 9C"}, "7H", STAND, bets=[bet(1), bet(1, 5, "main:3")])
    result = only(play(ruleset, told))
    assert {win.bet for win in result.winners if win.bet.startswith("main")} == {"main", "main:3"}


@pytest.mark.article("13(5)(2)(v)")
def test_after_a_loss_in_the_betting_only_the_streaks_of_earlier_rounds_are_known() -> None:
    ruleset = game(bets_offered=FAMILIES)
    lost: list[Event] = [BetsOpened(), bet(1), bet(1, 10, "winning_streak_2"), EventsMissed(1), BetsClosed()]
    lost += [DealCorrected({"dealer": (), "1.1": ()}), *deal({1: "TS 9C"}, "7H"), *STAND]
    won = whole({1: "TS 9C"}, "7H", STAND, bets=[bet(1)])
    first, second = results(play(ruleset, [*lost, *won]))
    assert (first.settlements, first.stands, back(second)) == ((), (), {"main": 200})
    laid = whole({1: "TS 9C"}, "7H", STAND, bets=[bet(1), bet(1, 10, "winning_streak_2")])
    first, second = results(play(ruleset, [*laid, *lost]))
    assert (first.stands, back(second)) == (("winning_streak_2",), {"winning_streak_2": 40})


def test_additional_bets_told_whole_are_known_though_the_seats_were_not() -> None:
    """What was lost came before the bets were opened."""
    laid: list[Event] = [SeatOpened(1), EventsMissed(1), BetsOpened(), bet(1, 10, "any_pair"), BetsClosed()]
    named: list[Event] = [DealCorrected({"dealer": (), "1.1": ()}), *deal({1: "8S 8H"}, "7H"), *STAND]
    assert back(only(play(game(), [*laid, *named]))) == {"any_pair": 120}


def test_a_resolved_round_is_corrected_until_the_next_begins() -> None:
    over = whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"), RoundPaid(), bets=[bet(1)])
    *_, corrected = play(game(), [*over, DealCorrected({"1.1": ("TS", "6C")})])
    assert isinstance(corrected, Corrected)
    assert (back(corrected.result), corrected.result.supersedes) == ({"main": 0}, corrected.result.round)
    *_, void = play(game(), [*over, RoundVoided("look")])
    assert isinstance(void, Corrected)
    assert back(void.result) == {"main": 100}
    *_, longer = play(game(), [*over, DealCorrected({"dealer": ("7H", "6D")}), *draw("8D")])
    assert isinstance(longer, Corrected)
    assert longer.result.outcome["totals"]["dealer"] == 21
    assert isinstance(last(play(game(), [*over, BetsOpened(), DealCorrected({"1.1": ("TS", "6C")})])), Opened)
    kept = play(game(), [*over, DealCorrected({"1.1": ("TS", "9C", "9D", "2C")}), RoundPaid()])
    assert [type(one_) for one_ in kept[-2:]] == [Suspended, Corrected]
    for nothing in (DealCorrected({"1.1": ("TS",)}), RoundVoided("")):
        assert isinstance(last(play(game(), [nothing])), Noted)


def test_a_decision_that_others_overtook_until_the_round_was_over_puts_its_result_in_doubt() -> None:
    """It may have been made in time: the blackjack would be paid even money."""
    over = whole({1: "AS KC"}, "TH", draw("AD"), bets=[bet(1)])
    first = only(play(game(), over))
    assert back(first) == {"main": 100}
    late = msgspec.structs.replace(act(1, "even_money"), overtaken=4000)
    why = say("late_doubt")
    assert held(judged(game(), [*over, late])) == [(why, "do_earlier")]
    stands, void = (last(judged(game(), [*over, late, end])) for end in (RoundPaid(), RoundVoided("")))
    assert isinstance(stands, Corrected)
    assert stands.result.settlements == first.settlements
    assert isinstance(void, Corrected)
    assert void.result.void is not None
    # It is told where it was; as after every loss, no amount is settled.
    told = [late, DealCorrected({"dealer": ("TH",)}), act(1, "even_money")]
    even = last(judged(game(), [*over, *told]))
    assert isinstance(even, Corrected)
    assert (paid(even.result)["main"], even.result.settlements) == ("1", ())
    # Not where it was paid, nor what no seat of it said, or what was told before, or came in its order.
    insured = whole({1: "TS 9C"}, "AH", act(1, "insurance", amount=50), act(1, "stand"), draw("KD"), bets=[bet(1)])
    for quiet in (
        [*over, RoundPaid(), late],
        [*over, act(1, "even_money")],
        [*over, msgspec.structs.replace(act(2, "even_money"), overtaken=4000)],
        *([*insured, msgspec.structs.replace(one_, overtaken=4000)] for one_ in insured[-3:-1]),
    ):
        assert held(judged(game(), quiet)) == []


@pytest.mark.article("5(1)")
@pytest.mark.parametrize("then", [[EventsMissed(1), *draw("4D")], [*draw("4D"), EventsMissed(1)]])
def test_cards_after_the_end_and_a_loss_put_the_result_in_doubt(then: list[Event]) -> None:
    """The lost event was the bet of a second seat: a blackjack against a six ended the round before its bank drew."""
    over = whole({1: "AS KC"}, "6S", bets=[bet(1)])
    first = only(play(game(), over))
    assert first.outcome["results"] == {"1.1": "win"}
    assert held(play(game(), [*over, *then]))
    stands = last(play(game(), [*over, *then, RoundPaid()]))
    assert isinstance(stands, Corrected)
    assert stands.result.settlements == first.settlements
    # Not where it was paid before, nor a card or a loss alone.
    for quiet in ([RoundPaid(), *then], then[:1], then[1:]):
        assert held(play(game(), [*over, *quiet])) == []


def test_a_correction_takes_a_streak_back() -> None:
    ruleset = game(bets_offered=FAMILIES)
    over = whole({1: "TS 9C"}, "7H", STAND, bets=[bet(1), bet(1, 10, "winning_streak_2")])
    *_, corrected = play(ruleset, [*over, DealCorrected({"1.1": ("TS", "7C")})])
    assert isinstance(corrected, Corrected)
    assert corrected.result.outcome["streaks"] == {"1": 1}
    assert after(ruleset, [*over, RoundVoided("")])[0].position.streaks[0].wins == 0


def test_a_payment_or_a_new_shoe_in_the_middle() -> None:
    middle = RUNNING[:10]
    assert isinstance(last(play(game(), [*middle, RoundPaid()])), Suspended)
    assert isinstance(only(play(game(), [*middle, ShoeStarted(6)])).void, Void)
    assert isinstance(last(play(game(), [*middle, act(2, "hit"), ShoeEmptied()])), Suspended)
    assert not [one_ for one_ in play(game(device="continuous"), [*middle, ShoeEmptied()]) if _held(one_)]


def test_the_smallest_chip_rounds_a_prize() -> None:
    events = whole({1: "AS KC", 2: "TS 6C"}, "7H", act(2, "surrender"), bets=[bet(1, 101), bet(2, 101)])
    for rounding, returned in (("down", [251, 46]), ("up", [256, 51])):
        result = only(play(game(smallest_chip=5, rounding=rounding), events))
        assert [one_.exact for one_ in result.settlements] == ["505/2", "101/2"]
        assert [one_.returned for one_ in result.settlements] == returned


def test_the_view_follows_the_round() -> None:
    ruleset = game()
    state = ruleset.start("t-1")
    phases = [ruleset.view(state).phase]
    for seen in script([*RUNNING, RoundPaid()]):
        state, _ = ruleset.apply(state, seen)
        view = ruleset.view(state)
        assert msgspec.json.encode(view)
        phases.append(view.phase)
    assert list(dict.fromkeys(phases)) == ["idle", "betting", "dealing", "resolved"]


@both
def test_a_new_shoe_after_a_paid_round_shows_that_cards_are_burnt(edition: Edition) -> None:
    over = [*RUNNING, ShoeStarted(6)]
    assert after(game(edition=edition), over)[1].phase == "resolved"  # what is unpaid comes first
    paid_ = [*RUNNING, RoundPaid(), ShoeStarted(6)]
    view = after(game(edition=edition, burn="decks"), paid_)[1]
    assert (view.phase, view.detail["burn"]) == ("burning", 6)
    assert after(game(edition=edition, burn="decks"), [*paid_, *draw(" ".join(DECK[:6]))])[1].phase == "resolved"


# ---- what is cited

STOOD = whole({1: "TS 9C"}, "7H", act(1, "stand"), draw("TD"))
BAD: list[tuple[str, str, dict[str, Any], list[Event]]] = [
    ("no_such_seat", "3(1)", {}, [SeatOpened(8)]),
    ("no_such_seat", "3(1)", {}, whole({1: "TS 9C"}, "7H", RoundVoided(""), bets=[bet(1), bet(8)])),
    ("wrong_number_of_decks", "1(2)", {}, [ShoeStarted(8)]),
    ("white_card", "1(3)", {"device": "continuous"}, [CutCardDrawn()]),
    ("bet_without_round", "5(1)", {}, [bet(1)]),
    ("bell_without_round", "5(1)", {}, [BetsClosed()]),
    ("card_without_round", "5(1)", {}, draw("TS")),
    ("unreadable_between_rounds", "5(1)", {}, [CardUnreadable()]),
    ("bank_extra_card", "6(1)", {}, [*STOOD, *draw("TC")]),
    ("decision_without_round", "6(3)", {}, [act(1, "hit")]),
    ("correction_without_round", "5(1)(2)", {}, [DealCorrected({})]),
    ("void_without_round", "5(1)(2)", {}, [RoundVoided("")]),
    ("peek_without_deal", "5(2)(3)(3)", HOLE, [HoleCardPeeked(blackjack=True)]),
    ("late_bet", "13", {}, [*STOOD[:-1], bet(1), *STOOD[-1:]]),
    ("bet_without_hand", "13", {}, whole({1: "TS 9C"}, "7H", RoundVoided(""), bets=[bet(1), bet(2, 5, "sevens")])),
    (
        *("second_additional_bet", "13", {}),
        whole({1: "TS 9C"}, "7H", RoundVoided(""), bets=[bet(1), bet(1, 5, "sevens"), bet(1, 5, "any_pair")]),
    ),
    (
        *("table_maximum", "5(2)(3)(8)", {**HOLE, "table_maximum": 10}),
        [BetsOpened(), bet(1, 11), RoundVoided("")],
    ),
    ("decision_before_deal", "6(5)", {}, [*STOOD[:4], act(1, "stand"), *STOOD[4:]]),
    ("correction_before_deal", "5(1)(2)", {}, [*STOOD[:2], DealCorrected({}), RoundVoided("")]),
    ("out_of_turn", "6(3)", {}, [*STOOD[:-2], act(2, "stand"), *STOOD[-2:]]),
    ("wrong_amount", "12(1)", {}, whole({1: "TS 9C"}, "AH", act(1, "insurance"), RoundVoided(""), bets=[bet(1)])),
    ("decision_before_peek", "5(2)(3)(3)", HOLE, whole({1: "TS 9C"}, "TH 7C", act(1, "stand"), RoundVoided(""))),
    (
        "peek_not_due",
        "5(2)(3)(3)",
        HOLE,
        [*whole({1: "TS 9C"}, "9H 7C"), HoleCardPeeked(blackjack=False), RoundVoided("")],
    ),
    ("card_exposed", "5(1)(1)", BOX, whole({1: "TS 9C"}, "9H 7C", CardExposed("1.1"), RoundVoided(""))),
    *(
        ("decision_not_allowed", article, {}, whole({1: cards}, up, before, act(1, action), RoundVoided("")))
        for article, cards, up, before, action in (
            ("17(1)", "2S 3S", "7H", [act(1, "hit"), *draw("2D")], "double"),
            ("16", "2S 3S", "7H", [], "split"),
            ("18(1)", "TS 6S", "AH", [], "surrender"),
            ("19(1)", "TS 6S", "7H", [], "five_cards"),
            ("10(3)", "TS 6S", "AH", [], "even_money"),
            ("12(1)", "TS 6S", "TH", [], "insurance"),
            ("6(3)", "TS 6S", "TH", [], "dance"),
            ("6(4)", "5S 6S", "TH", [*FIVE[:-1], *draw("5D")], "hit"),
        )
    ),
]


@both
@pytest.mark.parametrize(("code", "article", "options", "events"), BAD)
def test_every_irregularity_names_its_article(
    edition: Edition, code: str, article: str, options: dict[str, Any], events: list[Event]
) -> None:
    if edition == "2004" and "procedure" in options and options["procedure"] == "3":
        return
    notes = []
    for verdict in play(game(edition=edition, **options), events):
        match verdict:
            case Noted(irregularity=note):
                notes.append(note)
            case Resolved(result=result) | Voided(result=result):
                notes += result.irregularities
            case _:
                pass
    amended = edition == "2004" and article.partition("(")[0] in ("6", "13", "16", "17")
    text = "Despacho 57/2009" if edition == "2009" else "Despacho 56/2004"
    assert [(note.code, note.law) for note in notes] == [
        (code, f"{text} art. {article}{' (42/2007)' if amended else ''}")
    ]


@pytest.mark.article("10(2)", "14(2)(2)", "14(4)(3)", "13(5)(2)(i)", "14(5)(2)")
def test_a_result_cites_what_it_rests_on() -> None:
    ruleset = game(bets_offered=FAMILIES)
    deals = [({1: "TS 9C"}, []), ({1: "AS KC"}, []), ({1: "7S 7S"}, [act(1, "stand")])]
    events: list[Event] = []
    for place, (cards, then) in enumerate(deals):
        streak = [bet(1, 5, "winning_streak_3"), bet(1, 5, "winning_streak_2")] if not place else []
        end = [act(1, "stand"), *draw("TD")] if not place else [*then, *(draw("6D TD") if then else [])]
        events += whole(cards, "7H", end, bets=[bet(1), *streak])
    first, second, third = results(play(ruleset, events))
    common = {"5(1)", "5(2)(2)", "6", "8"}
    assert articles(first) == common | {"9", "13(3)", "14(3)", "13(5)(2)(iii)"}
    assert articles(second) == common | {
        *("10(2)", "13(3)", "14(3)", "13(5)(2)(i)", "13(5)(2)(iii)", "14(5)(1)"),
    }
    assert articles(third) == common | {
        *("9", "13(1)", "14(1)", "13(2)(1)", "14(2)(2)", "13(3)", "14(3)", "13(4)(3)", "14(4)(3)"),
        *("13(5)(2)(iii)", "13(5)(2)(i)", "14(5)(2)"),
    }
    hole = only(play(game(**HOLE), whole({1: "TS 9C"}, "7H TC", act(1, "stand"))))
    assert "5(2)(3)" in articles(hole)


def test_hands_of_one_seat_come_before_the_next_seat() -> None:
    then: list[Event] = [act(1, "split"), *draw("TS"), act(1, "stand")]
    events = whole({1: "8S 8H", 7: "TD 9D"}, "7H", then)
    assert due(events) == ("card", "1.2")
    assert due([*events, *draw("TC"), act(1, "stand", 2)]) == ("decision", "7.1")


def test_a_doubled_tie_comes_back_whole() -> None:
    result = one("5S 2H", "7H", act(1, "double"), draw("TS TD"))
    assert back(result) == {"main": 100, "double": 100}
    assert result.pushes == (Push("main", 1, 1), Push("double", 1, 1))


def test_a_correction_to_an_earlier_point_takes_back_what_was_added() -> None:
    events = whole({1: "5S 6H"}, "AH", act(1, "insurance", amount=50), act(1, "double"), bets=[bet(1)])
    fixed: list[Event] = [
        CardUnreadable(),
        DealCorrected({"dealer": ("AH",), "1.1": ("5S",)}),
        *draw("9C"),
        act(1, "stand"),
    ]
    assert back(only(play(game(), [*events, *fixed, *draw("9D")]))) == {"main": 0}


# ---- properties

CARDS = st.sampled_from(DECK)
ACTIONS = ("stand", "hit", "double", "split", "surrender", "five_cards", "even_money", "insurance", "dance")
NOISY = ("main", "any_pair", "winning_streak_2", "insurance")
NOISE: st.SearchStrategy[Event] = st.one_of(
    st.builds(CardDrawn, CARDS, st.sampled_from([None, "up", "down"])),
    st.builds(SeatActed, st.integers(1, 3), st.sampled_from(ACTIONS), st.integers(1, 3), st.sampled_from([0, 50, 100])),
    st.builds(WagerPlaced, st.integers(1, 3), st.sampled_from(NOISY), st.sampled_from([20, 50, 100])),
    st.sampled_from([BetsOpened(), BetsClosed(), RoundPaid(), RoundVoided(""), EventsMissed(1), CardUnreadable()]),
    st.sampled_from([HoleCardPeeked(blackjack=True), HoleCardPeeked(blackjack=False), ShoeStarted(0), CutCardDrawn()]),
    st.sampled_from([ShoeEmptied(), CardExposed("dealer"), SeatOpened(2), SeatClosed(2), CardsReturned(1)]),
    st.builds(
        DealCorrected,
        st.dictionaries(
            st.sampled_from(["dealer", "1.1", "1.2", "2.1", "x"]), st.lists(CARDS, max_size=4).map(tuple), max_size=4
        ),
    ),
)
VARIANTS: list[dict[str, Any]] = [
    {"bets_offered": FAMILIES},
    {"procedure": "1", "edition": "2004", "bank_first_card": "last", "split_cards": "at_once"},
    {**HOLE, "bets_offered": FAMILIES, "players_down": "both", "special_prize": "on_top"},
    {**BOX, "extra_card": "valid_if_unseen"},
    {"device": "continuous", "burn_each_round": "one_and_before_second", "bank_draws": "always", "bettors": 2},
]


def served(ruleset: Blackjack, data: st.DataObject, noise: int) -> list[Event]:
    """A night at the table: whoever is due is served with random cards and decisions; `noise` per cent is nonsense."""
    state = ruleset.start("t-1")
    events: list[Event] = []
    for number in range(data.draw(st.integers(5, 60))):
        nonsense = data.draw(st.integers(1, 100)) <= noise
        event = data.draw(NOISE) if nonsense else _next(ruleset.view(state), state, data)
        events.append(event)
        (seen,) = script([event])
        state, _ = ruleset.apply(state, msgspec.structs.replace(seen, id=f"e{number + 1}"))
    return events


def _next(view: View, state: Table[Position], data: st.DataObject) -> Event:
    wanted = view.detail.get("due")
    if view.phase == "suspended":
        ends: list[Event] = [RoundVoided(""), BetsOpened(), ShoeStarted(0)]
        return data.draw(st.sampled_from(ends))
    if view.phase == "burning" or (wanted and wanted["kind"] == "card"):
        return CardDrawn(data.draw(CARDS))
    if view.phase == "betting":
        assert state.open is not None
        if len(state.open.round.wagers) > 2:
            return BetsClosed()
        bets = ["main", "main", "any_pair", "winning_streak_2", "winning_streak_3"]
        return WagerPlaced(data.draw(st.integers(1, 3)), data.draw(st.sampled_from(bets)), 100)
    if wanted and wanted["kind"] == "peek":
        assert state.position.play is not None
        bank = state.position.play.bank
        return HoleCardPeeked(blackjack=count(bank)[0] == 21)
    if wanted:
        return SeatActed(wanted["seat"], data.draw(st.sampled_from(wanted["actions"])), int(wanted["hand"][2:]))
    between: list[Event] = [BetsOpened(), BetsOpened(), ShoeStarted(0), RoundPaid()]
    return data.draw(st.sampled_from(between))


SCRIPTED: list[list[Event]] = [
    whole({1: "TS 8C"}, "7H", act(1, "stand"), draw("TD"), bets=[bet(1)]),
    whole(
        {1: "8S 8H", 2: "AS KC"}, "AH", act(1, "split"), draw("2D 3D 4D KD"), CardUnreadable(), bets=[bet(1), bet(2)]
    ),
    whole(
        {1: "TS 6C", 2: "5H 6H"}, "TH 9D", HoleCardPeeked(blackjack=False), act(2, "surrender"), bets=[bet(1), bet(2)]
    ),
    whole({1: "5S 6C", 2: "TH 2C"}, "TC", act(1, "double"), draw("9C"), act(2, "hit"), draw("KD 7C"), [RoundPaid()]),
]
LATE = st.builds(
    SeatActed,
    st.integers(1, 3),
    st.sampled_from(("surrender", "insurance", "even_money", "hit", "double", "split", "stand", "five_cards")),
    st.integers(1, 2),
    st.sampled_from([0, 50, 100]),
    overtaken=st.sampled_from([0, 300]),
)
LIES: st.SearchStrategy[Event] = st.sampled_from(
    [DealCorrected({}), DealCorrected({"dealer": ("7H",)}), DealCorrected({"dealer": ("TH", "9D")})]
)


@given(st.data(), st.sampled_from(SCRIPTED), st.sampled_from(["none", "before_any_card", "before_own_card"]))
@settings(max_examples=at_length(40, 750))
def test_no_decision_at_any_moment_raises(data: st.DataObject, round_: list[Event], option: str) -> None:
    """Whatever is keyed before the deal, in it, after the last decision, while the round waits and after its end."""
    events = list(round_)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(events)))
        events[at:at] = [data.draw(LATE), *data.draw(st.lists(LIES, max_size=1))]
    for options in ({}, HOLE):
        judged(game(surrender=option, **options), events)


@given(st.data(), st.sampled_from(VARIANTS), st.sampled_from([0, 4, 30]))
@settings(max_examples=at_length(60, 1_250))
def test_any_night_ends_each_round_once_and_loses_no_chip(
    data: st.DataObject, options: dict[str, Any], noise: int
) -> None:
    """No event raises; the state survives JSON; a stake is settled once and never more than its prize."""
    ruleset = game(**options)
    state: Table[Position] = ruleset.start("t-1")
    begun, ended = set(), []
    for seen in script(served(ruleset, data, noise)):
        state = msgspec.json.decode(msgspec.json.encode(state), type=BlackjackState)
        hole = (
            state.position.play.bank[1]
            if state.position.play and ruleset.house.hole and len(state.position.play.bank) > 1
            else ""
        )
        state, verdicts = ruleset.apply(state, seen)
        for verdict in verdicts:
            match verdict:
                case Opened(round=name):
                    begun.add(name)
                case Resolved(result=result) | Voided(result=result) | Corrected(result=result):
                    if not isinstance(verdict, Corrected):
                        ended.append(result.round)
                    _settled_rightly(result)
        view = ruleset.view(state)
        if hole and state.position.play and len(state.position.play.bank) == 2 and not state.position.play.shown:
            assert view.detail["hands"]["dealer"][1] == "??"
    assert len(ended) == len(set(ended))
    assert begun - set(ended) == ({state.open.round.id} if state.open and not state.open.result else set())


def _settled_rightly(result: Result) -> None:
    """An account of its own of every hand, from the cards and the decisions alone."""
    won = {(win.bet, win.seat, win.hand): int(win.pays) for win in result.winners if win.pays.isdecimal()}
    if result.void is not None:
        assert all(settled.returned == settled.stake for settled in result.settlements)
        return
    pushed = (one for one in result.pushes if isinstance(one, Push))
    alone = {(one.seat, one.bet) for one in pushed if not one.bet.startswith(("main", "double"))}
    wins = {
        settled: settled.stake if (settled.seat, settled.bet) in alone else _brought_back(result, settled)
        for settled in result.settlements
    }
    for settled, expected in wins.items():
        if expected is not None:
            assert settled.returned == expected, (settled, result.outcome)
        else:
            key = (settled.bet, settled.seat, settled.hand)
            everybody = (settled.bet, 0, 0)
            assert settled.returned == settled.stake * (1 + won.get(key, won.get(everybody, -1)))


def _brought_back(result: Result, settled: Settlement) -> int | None:
    """What a bet on a hand brings back, by the text; None for the additional bets."""
    facts, stake = result.outcome, settled.stake
    bank, bank_total = facts["hands"]["dealer"], facts["totals"]["dealer"]
    natural = len(bank) == 2 and bank_total == 21
    if settled.bet == "insurance":
        return 3 * stake if natural else 0
    if not settled.bet.startswith(("main", "double")):
        return None
    name = f"{settled.seat}.{settled.hand}"
    cards, ended, total = facts["hands"][name], facts["ended"][name], facts["totals"][name]
    mine = [one_ for one_ in facts["hands"] if one_.startswith(f"{settled.seat}.")]
    ranks = "".join(sorted(card[0] for card in cards))
    special = ranks == "777" or (ranks == "678" and len({card[1] for card in cards}) == 1)
    on_top = 3 * stake if special and ended != "special" else 0
    early = {"surrender": stake // 2, "even_money": 2 * stake, "five_cards": stake * 3 // 2, "special": 4 * stake}
    if ended in early:
        return early[ended]
    if ended == "bust":
        return 0
    if ended == "blackjack":
        return stake if natural else stake * 5 // 2
    if natural:
        open_ = [one_ for one_ in mine if facts["ended"][one_] in ("stand", "twenty_one")]
        lost_before = any(facts["ended"][one_] == "bust" for one_ in mine)
        first = not lost_before and name == open_[0]
        return on_top + (0 if first and settled.bet.startswith("main") else stake)
    if bank_total > 21 or total > bank_total:
        return on_top + 2 * stake
    return on_top + (stake if total == bank_total else 0)


@given(st.data(), st.sampled_from(VARIANTS))
@settings(max_examples=at_length(25, 500))
def test_facts_said_twice_change_nothing(data: st.DataObject, options: dict[str, Any]) -> None:
    """The bell, the decisions, the peek and the payment, each told twice under ids of their own."""
    ruleset = game(**options)
    night = served(ruleset, data, 0)
    twice: list[Event] = []
    for event in night:
        twice.append(event)
        if isinstance(event, BetsClosed | HoleCardPeeked | RoundPaid):
            twice.append(event)
        if isinstance(event, SeatActed) and event.action != "split":
            twice.append(event)
    plain, repeated = (
        [(one_.outcome, one_.winners, one_.settlements) for one_ in results(play(ruleset, events))]
        for events in (night, twice)
    )
    assert plain == repeated
