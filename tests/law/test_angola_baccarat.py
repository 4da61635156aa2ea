"""Bacará ponto e banca and ponto e banca/Macau, articles 10 and 11 of Decreto Executivo 261/22, paragraph by paragraph.

Paragraphs 1 to 17 are the same words, and most of the others: each test of them is of both articles.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, TypeAlias

import pytest
from helpers import game_of, only, play, results, script

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardsLoaded,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    DealCorrected,
    DeviceOnline,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    ShoeEmptied,
    ShoeStarted,
    TableClosed,
    WagerPlaced,
    WagerWithdrawn,
)
from rules import RULESETS
from rules.angola.baccarat import AngolaBaccarat
from rules.angola.baccarat_macau import AngolaBaccaratMacau
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
    View,
    options_from,
)
from rules.games.baccarat_coups import Coups, Position
from rules.games.cards import PIPS

Make: TypeAlias = Callable[..., Coups]
"""The ruleset of an article with these options."""

LAW = ("angola.baccarat", "angola.baccarat-macau")
ten, eleven = game_of(AngolaBaccarat), game_of(AngolaBaccaratMacau)
both = pytest.mark.parametrize(("at", "make"), [("10", ten), ("11", eleven)], ids=["10", "11"])
LATER = {"10": 0, "11": 2}
"""Article 11 says in a paragraph of its own who handles the cards, and from 21 on counts two further."""
SHUFFLER: dict[str, Any] = {"device": "continuous", "decks": 6}
TEXT = "Decreto Executivo 261/22 art. "
PLAYER_WINS = "9 2 T 4"  # 9 against 6
BANKER_WINS = "2 9 4 T"  # 6 against 9
BANKER_5 = "2 5 T T T"  # 2 against 5
TIE = "7 3 T 4"
PAIRS = "9 2 9 2"
BURN = "5 5 5 5 5 5 5 5"


def drawn(cards: str) -> list[Event]:
    """Cards as they leave the shoe; a bare rank is a spade."""
    return [CardDrawn(card if len(card) == 2 else card + "S") for card in cards.split()]


def coup(cards: str, *bets: Event, burnt: str = "") -> list[Event]:
    """A coup with its bell; `burnt`: the card before it."""
    return [BetsOpened(), *bets, BetsClosed(), *drawn(f"{burnt} {cards}")]


def shoe(cards: str, *bets: Event) -> list[Event]:
    """The first coup of a shoe."""
    return [ShoeStarted(), *drawn(BURN), *coup(cards, *bets)]


def bet(seat: int, on: str, amount: int = 100) -> WagerPlaced:
    return WagerPlaced(seat, on, amount)


def view(ruleset: Coups, events: Iterable[Event]) -> View:
    state = ruleset.start("t-1")
    for seen in script(events):
        state, _ = ruleset.apply(state, seen)
    return ruleset.view(state)


def codes(verdicts: Iterable[Verdict]) -> list[tuple[str, str]]:
    """Irregularities of no coup, with their paragraph."""
    notes = [verdict.irregularity for verdict in verdicts if isinstance(verdict, Noted)]
    return [(note.code, note.law.removeprefix(TEXT)) for note in notes]


def noted(result: Result) -> list[tuple[str, str]]:
    return [(one.code, one.law.removeprefix(TEXT)) for one in result.irregularities]


def laws(result: Result) -> list[str]:
    return [law.removeprefix(TEXT) for law in result.law]


def ranks(result: Result) -> tuple[str, str]:
    hands = result.outcome["hands"]
    return "".join(card[0] for card in hands["player"]), "".join(card[0] for card in hands["banker"])


def returned(result: Result) -> list[int]:
    return [one.returned for one in result.settlements]


def refuses(kind: type[Coups], given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        options_from(kind, given)


# ---- the shoe and the shuffler


@pytest.mark.article("10(1)", "11(1)")
@both
def test_six_decks_or_eight(at: str, make: Make) -> None:
    for decks in (6, 8):
        ruleset = make(decks=decks)
        assert ruleset.house.decks == decks
        assert codes(play(ruleset, [ShoeStarted(decks)])) == codes(play(ruleset, [ShoeStarted(0)])) == []
        assert codes(play(ruleset, [ShoeStarted(14 - decks)])) == [("wrong_number_of_decks", f"{at}(1)")]
    refuses(type(make()), {"decks": 7}, f"art. {at}\\(1\\)")


@pytest.mark.article("10(4)(a)", "11(4)(a)")
@both
def test_the_shuffler_has_no_burn_and_no_warning_card(at: str, make: Make) -> None:
    ruleset = make(**SHUFFLER)
    events = [ShoeStarted(6), *coup(PLAYER_WINS), CutCardDrawn(), *coup(TIE), ShoeEmptied(), *coup(PLAYER_WINS)]
    verdicts = play(ruleset, events)
    assert view(ruleset, events[:1]).phase == "idle"
    assert [ranks(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34"), ("9T", "24")]
    assert codes(verdicts) == [("cut_card_in_shuffler", f"{at}(4)(a)")]
    assert not any(law in laws(one) for one in results(verdicts) for law in (f"{at}(5)", f"{at}(15)"))


@pytest.mark.article("10(4)(b)", "11(4)(b)")
@both
def test_the_shuffler_has_six_decks(at: str, make: Make) -> None:
    assert make(**SHUFFLER).house.decks == 6
    refuses(type(make()), {**SHUFFLER, "decks": 8}, f"art. {at}\\(4\\)\\(b\\)")
    assert codes(play(make(**SHUFFLER), [ShoeStarted(8)])) == [("wrong_number_of_decks", f"{at}(4)(b)")]


@pytest.mark.article("10(4)(c)", "11(4)(c)")
@both
def test_the_shuffler_takes_cards_back_after_the_coup(at: str, make: Make) -> None:
    whole = only(play(make(**SHUFFLER), [*coup(PLAYER_WINS), CardsReturned(4)]))
    early = only(play(make(**SHUFFLER), [*coup("9 2"), CardsReturned(4), *drawn("T 4")]))
    assert (noted(whole), noted(early)) == ([], [("cards_returned_early", f"{at}(4)(c)")])


@pytest.mark.article("10(5)", "11(5)")
@both
def test_eight_cards_are_burnt_after_shuffling(at: str, make: Make) -> None:
    ruleset = make()
    burn = [ShoeStarted(), *drawn(BURN)]
    shown = [view(ruleset, burn[:cards]) for cards in (1, 7, 8, 9)]
    assert [one.phase for one in shown] == ["burning"] * 3 + ["idle"]
    assert [one.detail.get("burn") for one in shown] == [8, 2, 1, None]
    assert view(ruleset, [*burn[:-1], BetsOpened(), CardUnreadable(), RoundVoided("error")]).phase == "idle"
    assert ranks(only(play(ruleset, [*burn, *coup(PLAYER_WINS)]))) == ("9T", "24")
    short = only(play(ruleset, [*burn[:-1], *coup(PLAYER_WINS)]))
    assert noted(short) == [("burn_incomplete", f"{at}(5)")]


@pytest.mark.article("10(6)", "11(6)")
@both
def test_the_warning_card_makes_the_coup_the_last(at: str, make: Make) -> None:
    ruleset = make(warn_card_within=0)
    under_way = [*shoe("9 2"), CutCardDrawn(), *drawn("T 4"), *drawn("5")]
    verdicts = play(ruleset, under_way)
    assert only(verdicts).outcome["winner"] == "player"
    assert codes(verdicts) == [("card_after_last_coup", f"{at}(6)")]
    assert view(ruleset, under_way).detail["last"]
    for opened in (BetsOpened(), None):
        after = play(ruleset, [*under_way[:-1], *([opened] if opened else []), *drawn("5")])
        assert [one.void for one in results(after)] == [None]


@pytest.mark.article("10(6)", "11(6)")
@both
def test_the_warning_card_in_the_place_of_the_burnt_one(at: str, make: Make) -> None:
    """It is found as the card before the coup is drawn: this coup is dealt, as the last."""
    ruleset = make(warn_card_within=0)
    events = [*shoe(PLAYER_WINS), BetsOpened(), bet(1, "tie"), BetsClosed(), CutCardDrawn(), *drawn(f"5 {TIE}")]
    verdicts = play(ruleset, events)
    assert [ranks(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34")]
    assert returned(results(verdicts)[1]) == [900]
    assert isinstance(play(ruleset, [*events, BetsOpened()])[-1], Suspended)


@pytest.mark.article("10(6)", "11(6)")
@both
def test_the_warning_card_before_a_coup_without_a_bell(at: str, make: Make) -> None:
    """Where no opening is told, it comes out with the next coup: this one is dealt, as the last."""
    ruleset = make(warn_card_within=0, opening="first_card")
    events = [*shoe(PLAYER_WINS), CutCardDrawn(), *drawn(f"5 {TIE}")]
    verdicts = play(ruleset, [*events, *drawn("K")])
    assert [ranks(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34")]
    assert [code for code, _ in codes(verdicts)] == ["card_after_last_coup"]
    assert view(ruleset, events).detail["last"]
    assert [ranks(one) for one in results(play(ruleset, [*events, *shoe(TIE)]))][2:] == [("7T", "34")]


@pytest.mark.article("10(6)", "11(6)")
@both
def test_an_empty_shoe(at: str, make: Make) -> None:
    """Without cards no coup can be dealt; one under way waits for a person."""
    void = only(play(make(), [ShoeStarted(), *drawn(BURN), BetsOpened(), bet(1, "tie"), BetsClosed(), ShoeEmptied()]))
    assert (laws(void), returned(void)) == ([f"{at}(6)"], [100])
    assert isinstance(play(make(), [*shoe("2 2 T"), ShoeEmptied()])[-1], Suspended)


@pytest.mark.article("10(7)", "11(7)")
@both
@pytest.mark.parametrize("options", [{}, SHUFFLER])
def test_a_card_face_up_is_valid(at: str, make: Make, options: dict[str, Any]) -> None:
    ruleset = make(**options)
    cards: list[Event] = [CardDrawn("9S"), CardDrawn("2S", "up"), CardDrawn("TS", "down"), CardDrawn("4S")]
    start: list[Event] = [] if options else [ShoeStarted(), *drawn(BURN)]
    result = only(play(ruleset, [*start, BetsOpened(), BetsClosed(), *cards]))
    assert (ranks(result), result.outcome["face_up"], noted(result)) == (("9T", "24"), ("2S",), [])
    assert laws(result)[-1] == f"{at}(7)"


# ---- the cards


@pytest.mark.article("10(8)(a)", "10(8)(b)", "10(8)(c)", "11(8)(a)", "11(8)(b)", "11(8)(c)")
@both
def test_the_value_of_each_card(at: str, make: Make) -> None:
    """Against nine of the banker: the player's total is the card's own, with a ten."""
    for rank in "A23456789TJQK":
        result = only(play(make(), shoe(f"{rank} 9 T T")))
        assert result.outcome["totals"] == {"player": PIPS[f"{rank}S"] % 10, "banker": 9}, at


@pytest.mark.article("10(9)", "11(9)")
@both
def test_tens_of_a_total_do_not_count(at: str, make: Make) -> None:
    """9 and 4 are 3, 7, 6 and 9 are 2."""
    result = only(play(make(), shoe("7 9 6 4 9 7")))
    assert result.outcome["totals"] == {"player": 2, "banker": 0}


@pytest.mark.article("10(10)", "11(10)")
@both
def test_there_are_two_hands_only(at: str, make: Make) -> None:
    third = DealCorrected({"player": ("9S", "TS"), "banker": ("2S", "4S"), "seat_1": ("2S",)})
    verdicts = play(make(), [*shoe("9 2"), EventsMissed(1), third])
    assert isinstance(verdicts[-1], Suspended)
    assert verdicts[-1].reason.code == "hands_by_law"


@pytest.mark.article("10(14)", "11(14)")
@both
def test_two_cards_each_in_turn_the_player_first(at: str, make: Make) -> None:
    first = shoe("9 2")
    assert view(make(), first).detail["next"] == "player"
    assert [view(make(), [*first, *drawn("T")]).detail["next"]] == ["banker"]
    assert ranks(only(play(make(), shoe("9H 2D TC 4S")))) == ("9T", "24")


# The table of paragraph 16, its second heading read as "does not draw": the player's cards against which each draws.
DRAWS = {
    0: range(10),
    1: range(10),
    2: range(10),
    3: (1, 2, 3, 4, 5, 6, 7, 9, 0),
    4: (2, 3, 4, 5, 6, 7),
    5: (4, 5, 6, 7),
    6: (6, 7),
    7: (),
}
OF = "TA23456789"


@pytest.mark.article("10(16)", "11(16)")
@both
def test_third_cards_follow_the_table(at: str, make: Make) -> None:
    """Each total of both sides, and each card that the player receives."""
    ruleset = make()
    for player, banker, third in product(range(10), range(10), range(10)):
        cards = [OF[player], OF[banker], "T", "K"]
        if max(player, banker) < 8:
            player_draws = player <= 5
            cards += [OF[third]] * player_draws
            if (third in DRAWS[banker]) if player_draws else banker <= 5:
                cards.append("J")
        result = only(play(ruleset, shoe(" ".join(cards))))
        assert len("".join(ranks(result))) == len(cards), (player, banker, third)
        assert result.outcome["natural"] == (max(player, banker) >= 8)


# ---- the card before each coup


@pytest.mark.article("10(15)", "11(15)")
@both
def test_a_card_is_burnt_before_each_coup_but_the_first(at: str, make: Make) -> None:
    ruleset = make()
    events = [*shoe(PLAYER_WINS), RoundPaid(), *coup(TIE, burnt="5"), RoundPaid(), *coup(PLAYER_WINS, burnt="K")]
    found = results(play(ruleset, [*events, *shoe(TIE)]))
    assert [ranks(one) for one in found] == [("9T", "24"), ("7T", "34"), ("9T", "24"), ("7T", "34")]
    assert [f"{at}(15)" in laws(one) for one in found] == [False, True, True, False]
    opened = [*shoe(PLAYER_WINS), BetsOpened(), BetsClosed()]
    assert view(ruleset, opened).detail["next"] == "burn"
    assert view(ruleset, [*opened, *drawn("5")]).detail["next"] == "player"
    assert view(ruleset, shoe("")).detail["next"] == "player"


@pytest.mark.article("10(15)", "11(15)")
@both
def test_a_void_first_coup_counts_once_a_card_was_dealt(at: str, make: Make) -> None:
    begun = [*shoe("9 2"), RoundVoided("error"), *coup(TIE, burnt="5")]
    assert ranks(results(play(make(), begun))[1]) == ("7T", "34")


DOUBTS: list[list[Event]] = [
    [],
    [ShoeStarted(), *drawn(BURN), BetsOpened(), RoundVoided("nobody bets")],
    [*shoe(PLAYER_WINS), RoundPaid(), EventsMissed(1)],
    [*shoe(PLAYER_WINS), RoundPaid(), DeviceOnline(continuous=False)],
]


@pytest.mark.article("10(15)", "11(15)")
@both
def test_where_the_burnt_card_is_in_doubt_the_coup_waits(at: str, make: Make) -> None:
    """A table never seen, a first coup that was void before its cards, a loss: the first card waits for the hands."""
    hands = DealCorrected({"player": ("7S", "TS"), "banker": ("3S", "4S")})
    opening: list[Event] = [BetsOpened(), BetsClosed()]
    while_open = [*shoe(PLAYER_WINS), BetsOpened(), EventsMissed(2), BetsClosed()]
    at_first_card = play(make(opening="first_card"), drawn("5"))
    assert [type(one) for one in at_first_card] == [Opened, Closed, Suspended]
    position = Position(burns="yes", aside=("5S", "7S", "3S", "TS", "4S", "7S"))
    assert make()._none_of(position, ("7S", "3S", "TS", "4S")) == ("7S",), "the burnt card came first"
    for opened in (*([*before, *opening] for before in DOUBTS), while_open):
        for burnt in ("", "5"):
            events = [*opened, *drawn(f"{burnt} {TIE}")]
            verdicts = play(make(), events)
            (waits,) = (one for one in verdicts if isinstance(one, Suspended))
            assert waits.reason.code == "coup_burn_unknown"
            ended = [one.result for one in play(make(), [*events, hands]) if isinstance(one, Resolved)]
            assert ranks(ended[-1]) == ("7T", "34")
            for said in ([hands, RoundPaid()], [], [RoundVoided("error")]):
                follows = [*events, *said, *coup(PLAYER_WINS, burnt="5")]
                assert ranks(results(play(make(), follows))[-1]) == ("9T", "24")


@pytest.mark.article("10(15)", "11(15)")
@both
def test_a_loss_in_a_coup_that_nobody_corrects(at: str, make: Make) -> None:
    """The end of the shoe and the start of another may be lost with it: the next coup waits, the one after does not."""
    lost = [*shoe("9 2"), EventsMissed(3), *coup(TIE, burnt="5"), *coup(PLAYER_WINS, burnt="5")]
    verdicts = play(make(), lost)
    waits = [one.reason.code for one in verdicts if isinstance(one, Suspended)]
    assert waits == ["round_events", "coup_burn_unknown"]
    assert [ranks(one) for one in results(verdicts) if one.void is None] == [("9T", "24")]
    hands = DealCorrected({"player": ("9S", "TS"), "banker": ("2S", "4S")})
    right = results(play(make(), [*shoe("9 2"), EventsMissed(3), hands, RoundPaid(), *coup(TIE, burnt="5")]))
    assert [ranks(one) for one in right] == [("9T", "24"), ("7T", "34")]


@pytest.mark.article("10(15)", "11(15)")
@both
def test_a_corrected_deal_goes_on(at: str, make: Make) -> None:
    """Part of the hands is laid while it is unknown whether a card is burnt: the next card is of the coup."""
    part = DealCorrected({"player": ("7S",), "banker": ("3S",)})
    events = [*DOUBTS[2], BetsOpened(), BetsClosed(), *drawn("7 3"), part, *drawn("T 4")]
    assert ranks(results(play(make(), events))[-1]) == ("7T", "34")


# ---- bets and errors


@pytest.mark.article("10(11)", "11(11)")
@both
def test_pairs_are_the_choice_of_the_house(at: str, make: Make) -> None:
    ruleset = make(bets_offered=("player", "banker", "tie"))
    assert [one.id for one in ruleset.bets()] == ["player", "banker", "tie"]
    assert [one.id for one in make().bets()] == ["player", "banker", "tie", "player_pair", "banker_pair"]
    result = only(play(ruleset, shoe(PAIRS, bet(1, "player"), bet(1, "player_pair"))))
    assert noted(result) == [("bet_not_offered", f"{at}(11)")]
    assert [win.bet for win in result.winners] == ["player"]
    refuses(type(ruleset), {"bets_offered": ["player", "banker"]}, f"art. {at}\\(11\\).*tie")
    refuses(type(ruleset), {"bets_offered": ["dragon_7"]}, f"art. {at}\\(11\\) has no bet")


@pytest.mark.article("10(12)", "11(12)")
@both
def test_a_bet_against_the_bet_of_its_seat_is_refused(at: str, make: Make) -> None:
    bets = (bet(3, "player"), bet(3, "banker"), bet(4, "banker"), bet(4, "tie"), WagerWithdrawn(3, "player"))
    result = only(play(make(), shoe(BANKER_WINS, *bets, bet(3, "banker", 60))))
    assert noted(result) == [("against_seat", f"{at}(12)")]
    assert [(one.seat, one.bet) for one in result.settlements] == [(4, "banker"), (4, "tie"), (3, "banker")]
    assert noted(only(play(make(both_sides="accepted"), shoe(BANKER_WINS, *bets[:2])))) == []


@pytest.mark.article("10(13)", "11(13)")
@both
def test_bets_close_at_nothing_more(at: str, make: Make) -> None:
    late = only(play(make(), [*shoe("9 2", bet(1, "tie")), bet(2, "tie"), *drawn("T 4")]))
    assert (noted(late), len(late.settlements)) == ([("late_bet", f"{at}(11)")], 1)
    early = play(make(), [ShoeStarted(), *drawn(BURN), BetsOpened(), *drawn("9")])
    assert isinstance(early[-1], Suspended)
    assert codes(play(make(), [BetsClosed()])) == [("bell_without_round", f"{at}(13)")]
    cards = [ShoeStarted(), *drawn(f"{BURN} {PLAYER_WINS} 5 {TIE}")]
    assert [ranks(one) for one in results(play(make(opening="first_card"), cards))] == [("9T", "24"), ("7T", "34")]


@pytest.mark.article("10(17)", "11(17)")
@both
def test_a_lapse_is_corrected_or_the_coup_is_null(at: str, make: Make) -> None:
    bets = (bet(1, "player"), bet(2, "player_pair", 40))
    right = DealCorrected({"player": ("4S", "5S"), "banker": ("2S", "4S")})
    dealt = [*shoe("9 2 T 4", *bets), right]
    (first, second) = (one for one in play(make(), dealt) if isinstance(one, Resolved | Corrected))
    assert (ranks(first.result), ranks(second.result)) == (("9T", "24"), ("45", "24"))
    assert laws(second.result)[-1] == f"{at}(17)"
    burnt = play(make(), [*shoe("9 2 T 4"), RoundPaid(), *coup("9 2 T 4", burnt="5"), right])
    cites = [f"{at}(15)" in laws(one.result) for one in (second, burnt[-1]) if isinstance(one, Corrected)]
    assert cites == [False, True]
    null = only(play(make(), [*shoe("9 2", *bets), RoundVoided("a card too many")]))
    assert (laws(null), returned(null)) == ([f"{at}(17)"], [100, 40])
    assert null.announcements["pt"] == "Lance nulo"


# ---- who handles the cards


@pytest.mark.article("10(18)", "10(19)", "11(18)", "11(19)", "11(21)")
@both
def test_the_highest_bettor_of_each_side_handles_its_cards(at: str, make: Make) -> None:
    bets = (bet(7, "player", 90), bet(5, "player", 90), bet(2, "player", 50), bet(6, "banker", 10))
    dealing = shoe("9 2 T", *bets)
    shown = view(make(), dealing).detail
    assert shown["handles"] == {"player": 5, "banker": 6}
    assert shown["hands"] == {"player": ("??", "??"), "banker": ("??",)}
    assert view(make(), [*dealing, *drawn("4")]).detail["hands"]["player"] == ("9S", "TS")


@pytest.mark.article("10(20)", "11(22)")
@both
def test_the_dealer_alone_may_handle_the_cards(at: str, make: Make) -> None:
    shown = view(make(handling="dealer"), shoe("9 2 T", bet(1, "player"))).detail
    assert "handles" not in shown
    assert shown["hands"] == {"player": ("9S", "TS"), "banker": ("2S",)}
    assert shown["totals"] == {"player": 9, "banker": 2}


# ---- the end of a coup


@pytest.mark.article("10(21)", "11(23)")
@both
def test_winners_are_paid_even(at: str, make: Make) -> None:
    bets = (bet(1, "player", 150), bet(2, "banker", 70), bet(3, "tie", 20))
    player, banker = (only(play(make(), shoe(cards, *bets))) for cards in (PLAYER_WINS, BANKER_WINS))
    assert (returned(player), returned(banker)) == ([300, 0, 0], [0, 140, 0])
    cited = [f"{at}({paragraph})" for paragraph in (8, 9, 14, 16, 21 + LATER[at])]
    assert [laws(one)[:5] for one in (player, banker)] == [cited, cited]
    assert player.announcements["pt"] == "Ponto ganha, 9 contra 6"
    assert banker.announcements == {
        "pt": "Banca ganha, 9 contra 6",
        "zh-Hant": "莊贏，9點對6點",
        "en": "Banker wins, 9 to 6",
    }


@pytest.mark.article("10(22)", "11(24)")
@both
def test_the_tie_pays_eight_and_other_stakes_stay(at: str, make: Make) -> None:
    bets = (bet(1, "player", 150), bet(2, "banker", 70), bet(3, "tie", 20))
    result = only(play(make(), shoe(TIE, *bets)))
    assert returned(result) == [150, 70, 180]
    assert result.pushes == ("player", "banker")
    assert f"{at}({22 + LATER[at]})" in laws(result)
    assert result.announcements["pt"] == "Empate a 7"


@pytest.mark.article("10(23)", "11(25)")
@both
def test_pairs_pay_eleven_beside_the_rest(at: str, make: Make) -> None:
    bets = (bet(1, "player", 100), bet(1, "player_pair", 10), bet(2, "banker_pair", 5))
    both = only(play(make(), shoe("9H 2D 9D 2S", *bets)))
    assert (returned(both), f"{at}({23 + LATER[at]})" in laws(both)) == ([200, 120, 60], True)
    assert both.announcements["pt"] == "Ponto ganha, 8 contra 4, par do ponto, par da banca"
    figures = only(play(make(), shoe("JH 9D QH T", *bets[1:])))
    assert (returned(figures), f"{at}({23 + LATER[at]})" in laws(figures)) == ([0, 0], False)


@pytest.mark.article("10(24)(c)", "11(29)")
@pytest.mark.parametrize(
    ("make", "amount", "limits"), [(ten, 49, {"minimum": 50}), (eleven, 301, {"maximum_difference": 300})]
)
def test_bets_are_not_judged_after_a_loss(make: Make, amount: int, limits: dict[str, int]) -> None:
    """A bet that makes up the minimum, or covers the other side, may be among the lost events."""
    laid = bet(1, "player", amount)
    told = DealCorrected({"player": ("9S", "TS"), "banker": ("2S", "4S")})
    dealt = [EventsMissed(1), BetsClosed(), *drawn(PLAYER_WINS), told]
    result = only(play(make(**limits), [ShoeStarted(), *drawn(BURN), BetsOpened(), laid, *dealt]))
    assert (noted(result), result.settlements) == ([], ())
    assert noted(only(play(make(**limits), shoe(PLAYER_WINS, laid))))


# ---- 10(5), 11(5): the place of the warning card; 10(2), 11(2): damaged cards


@pytest.mark.article("10(5)", "11(5)")
@both
def test_the_warning_card_lies_about_twelve_from_the_end(at: str, make: Make) -> None:
    for left, within, misplaced in (
        *((17, 5, False), (7, 5, False), (18, 5, True), (6, 5, True), (18, 6, False), (12, 1, False), (14, 1, True)),
        (40, 0, False),
    ):
        ruleset = make(decks=6, warn_card_within=within)
        told = [ShoeStarted(6), *drawn("5 " * (312 - left)), CutCardDrawn(), CutCardDrawn()]
        for once_or_twice in (told[:-1], told):
            noted_ = [one for one in codes(play(ruleset, once_or_twice)) if one[0] == "warn_card_misplaced"]
            assert noted_ == [("warn_card_misplaced", f"{at}(5)")] * misplaced, (left, within)
        lost = [*told[:5], EventsMissed(1), *told[5:]]
        assert "warn_card_misplaced" not in dict(codes(play(ruleset, lost)))


@pytest.mark.article("10(2)", "11(2)")
@both
def test_a_deck_with_a_damaged_card_is_replaced(at: str, make: Make) -> None:
    name = make().id
    ruleset = RULESETS[name](RULESETS[name].Options())  # with its duties
    used = [*shoe(PLAYER_WINS), RoundPaid(), CardDamaged()]
    again = coup(PLAYER_WINS, burnt="5")
    late = ("deck_replacement_late", f"{at}(2)")
    assert codes(play(ruleset, [*used, *again, RoundPaid(), *again])) == [late]
    for replaced in (shoe(PLAYER_WINS), [CardsLoaded(), *again], [EventsMissed(1)]):
        assert codes(play(ruleset, [*used, *replaced])) == []
    assert codes(play(ruleset, [*used, TableClosed(), *again])) == [late]


# ---- 10(24)


@pytest.mark.article("10(24)")
def test_without_a_deduction_the_banker_pays_even() -> None:
    for cards in (BANKER_WINS, BANKER_5):
        result = only(play(ten(), shoe(cards, bet(1, "banker"))))
        assert returned(result) == [200]
        assert not [law for law in laws(result) if law.startswith("10(24)")]


@pytest.mark.article("10(24)", "10(24)(a)")
def test_two_percent_of_what_the_banker_wins() -> None:
    for cards in (BANKER_WINS, BANKER_5):
        result = only(play(ten(deduction="2_percent"), shoe(cards, bet(1, "banker"), bet(2, "player"))))
        assert returned(result) == [198, 0]
        assert [(win.pays, win.gross) for win in result.winners] == [("49/50", "1")]
        assert "10(24)(a)" in laws(result)
    assert returned(only(play(ten(deduction="2_percent"), shoe(PLAYER_WINS, bet(1, "player"))))) == [200]


@pytest.mark.article("10(24)", "10(24)(b)")
def test_twenty_percent_where_the_banker_wins_with_five() -> None:
    ruleset = ten(deduction="20_percent_on_5")
    five, nine = (only(play(ruleset, shoe(cards, bet(1, "banker")))) for cards in (BANKER_5, BANKER_WINS))
    assert (returned(five), "10(24)(b)" in laws(five)) == ([180], True)
    assert (returned(nine), "10(24)(b)" in laws(nine)) == ([200], False)


def test_a_prize_is_rounded_to_the_smallest_chip() -> None:
    for rounding, back in (("down", 195), ("up", 200)):
        ruleset = ten(deduction="2_percent", smallest_chip=5, rounding=rounding)
        assert returned(only(play(ruleset, shoe(BANKER_WINS, bet(1, "banker"))))) == [back]


@pytest.mark.article("10(24)(c)")
@pytest.mark.parametrize(("chance", "ratio"), [("", 70), ("tie_", 15), ("pair_", 8)])
def test_the_maximum_is_a_multiple_of_the_minimum(chance: str, ratio: int) -> None:
    least, most = f"{chance}minimum", f"{chance}maximum"
    assert ten(**{least: 5, most: 5 * ratio}).options.range_of(chance) == (5, 5 * ratio)
    for wrong in (5 * ratio - 1, 5 * ratio + 1):
        refuses(AngolaBaccarat, {least: 5, most: wrong}, rf"{most}: art. 10\(24\)\(c\): {ratio} times.*{5 * ratio}")
    refuses(AngolaBaccarat, {most: 100}, r"art. 10\(24\)\(c\)")


@pytest.mark.article("10(24)(c)", "10(12)")
@pytest.mark.parametrize(("on", "most"), [("player", 350), ("banker", 350), ("tie", 75), ("player_pair", 40)])
def test_a_seat_bets_up_to_the_maximum_whoever_bets_there(on: str, most: int) -> None:
    ruleset = ten(minimum=5, maximum=350, tie_minimum=5, tie_maximum=75, pair_minimum=5, pair_maximum=40)
    bets = (bet(1, on, most - 10), bet(1, on, 10), bet(2, on, most), bet(1, on, 1), bet(3, on, most + 1))
    result = only(play(ruleset, shoe(PLAYER_WINS, *bets)))
    assert [(one.seat, one.stake) for one in result.settlements] == [(1, most), (2, most)]
    assert noted(result) == [("chance_maximum", "10(24)(c)")] * 2


@pytest.mark.article("10(24)(c)")
@pytest.mark.parametrize(
    ("back", "stake"),
    [
        ((WagerWithdrawn(1, "player", 20),), 340),
        ((WagerWithdrawn(1, "player", 5), WagerWithdrawn(1, "player", 15)), 340),
        ((WagerWithdrawn(1, "player", 60),), 300),  # the player takes 40 of the bet as well
        ((WagerWithdrawn(1, "player", 20), WagerWithdrawn(1, "player", 20)), 320),
        ((WagerWithdrawn(1, "player", 20), bet(1, "player", 10)), 350),
        ((WagerWithdrawn(1, "player"), bet(1, "player", 10), WagerWithdrawn(1, "player", 1)), 9),
    ],
)
def test_chips_that_were_refused_come_off_before_the_bet(back: tuple[Event, ...], stake: int) -> None:
    bets = (bet(1, "player", 340), bet(2, "banker", 50), bet(1, "player", 20), *back)
    result = only(play(ten(minimum=5), shoe(PLAYER_WINS, *bets)))
    assert {(one.seat, one.stake) for one in result.settlements} == {(1, stake), (2, 50)}
    assert noted(result)[:1] == [("chance_maximum", "10(24)(c)")]


@pytest.mark.article("10(12)")
def test_a_bet_that_was_refused_and_is_taken_away_changes_nothing() -> None:
    result = only(play(ten(), shoe(PLAYER_WINS, bet(3, "player"), bet(3, "banker"), WagerWithdrawn(3, "banker", 100))))
    assert [(one.seat, one.bet, one.stake) for one in result.settlements] == [(3, "player", 100)]
    assert noted(result) == [("against_seat", "10(12)")]


@pytest.mark.article("10(24)(c)")
def test_a_bet_below_the_minimum_goes_back_when_bets_are_closed() -> None:
    ruleset = ten(minimum=50, tie_minimum=10, pair_minimum=5)
    bets = (
        bet(1, "player", 30),
        bet(1, "player", 20),
        bet(2, "banker", 49),
        bet(2, "tie", 10),
        bet(3, "banker_pair", 4),
    )
    result = only(play(ruleset, shoe(PLAYER_WINS, *bets)))
    assert [(one.seat, one.bet) for one in result.settlements] == [
        *((1, "player"), (2, "tie")),
        *((2, "banker"), (3, "banker_pair")),
    ]
    assert [(one.stake, one.returned) for one in result.settlements[2:]] == [(49, 49), (4, 4)]
    assert noted(result) == [("chance_minimum", "10(24)(c)")] * 2


# ---- 11(26) to 11(31)


@pytest.mark.article("11(26)", "11(26)(a)")
def test_five_percent_of_what_the_banker_wins() -> None:
    for cards in (BANKER_WINS, BANKER_5):
        result = only(play(eleven(deduction="5_percent"), shoe(cards, bet(1, "banker"))))
        assert (returned(result), "11(26)(a)" in laws(result)) == ([195], True)
    assert returned(only(play(eleven(deduction="5_percent"), shoe(PLAYER_WINS, bet(1, "player"))))) == [200]


@pytest.mark.article("11(26)", "11(26)(b)")
def test_fifty_percent_where_the_banker_wins_with_five() -> None:
    ruleset = eleven(deduction="50_percent_on_5", smallest_chip=10, rounding="up")
    five, nine = (only(play(ruleset, shoe(cards, bet(1, "banker", 50)))) for cards in (BANKER_5, BANKER_WINS))
    assert (returned(five), "11(26)(b)" in laws(five)) == ([80], True)
    assert (returned(nine), "11(26)(b)" in laws(nine)) == ([100], False)


@pytest.mark.article("11(26)")
def test_without_a_deduction_the_banker_pays_even_by_article_11() -> None:
    assert returned(only(play(eleven(), shoe(BANKER_5, bet(1, "banker"))))) == [200]


@pytest.mark.article("11(27)")
def test_no_bet_has_a_limit_of_its_own() -> None:
    bets = (bet(1, "player", 10**9), bet(2, "banker", 10**9), bet(1, "tie", 10), bet(1, "player_pair", 8))
    result = only(play(eleven(maximum_difference=100), shoe(PLAYER_WINS, *bets)))
    assert (len(result.settlements), noted(result)) == (4, [])
    refuses(AngolaBaccaratMacau, {"maximum": 100}, "no option 'maximum'")


@pytest.mark.article("11(28)", "11(29)")
@pytest.mark.parametrize(("heavy", "light"), [("player", "banker"), ("banker", "player")])
def test_the_sides_differ_by_no_more_than_the_table_bears(heavy: str, light: str) -> None:
    """The latest bets on the heavier side go back; a later bet on the other side covers an earlier one."""
    ruleset = eleven(maximum_difference=300)
    bets = (bet(1, heavy, 500), bet(2, heavy, 250), bet(3, light, 200), bet(4, heavy, 60), bet(5, "tie", 30))
    result = only(play(ruleset, shoe(PLAYER_WINS, *bets)))
    kept = [one for one in result.settlements if one.seat not in (2, 4)]
    assert [(one.seat, one.stake) for one in kept] == [(1, 500), (3, 200), (5, 30)]
    whole = [one for one in result.settlements if one.seat in (2, 4)]
    assert [(one.seat, one.bet, one.stake, one.returned) for one in whole] == [
        (4, heavy, 60, 60),
        (2, heavy, 250, 250),
    ], "what was taken and goes back as a whole stands in the result"
    assert noted(result) == [("side_difference", "11(29)")] * 2
    exact = only(play(ruleset, shoe(PLAYER_WINS, *bets[:1], bet(3, light, 200))))
    assert (len(exact.settlements), noted(exact)) == (2, [])
    alone = only(play(eleven(), shoe(PLAYER_WINS, *bets)))
    assert (len(alone.settlements), noted(alone)) == (5, [])


@pytest.mark.article("11(29)")
@pytest.mark.parametrize(
    ("bets", "smallest_chip", "stakes"),
    [
        # one bet that the other side mostly covers: without it that side would be too heavy
        ([("banker", 1000), ("player", 1400)], 1, [1000, 1300]),
        ([("player", 250), ("banker", 100), ("banker", 500)], 1, [250, 100, 450]),
        ([("banker", 1000), ("player", 1400), ("tie", 10)], 1, [1000, 1300, 10]),
        ([("banker", 1000), ("player", 1305)], 10, [1000, 1295]),  # chips that can be given back
        ([("banker", 1000), ("player", 1300), ("player", 4)], 10, [1000, 1300, 4]),  # the last one goes back as a whole
    ],
)
def test_of_the_latest_bet_only_what_is_too_much_goes_back(
    bets: list[tuple[str, int]], smallest_chip: int, stakes: list[int]
) -> None:
    ruleset = eleven(maximum_difference=300, smallest_chip=smallest_chip)
    laid = [bet(seat, on, amount) for seat, (on, amount) in enumerate(bets, 1)]
    result = only(play(ruleset, shoe(PLAYER_WINS, *laid)))
    assert [one.stake for one in result.settlements] == stakes
    assert noted(result) == [("side_difference", "11(29)")]


@pytest.mark.article("11(30)")
def test_all_bets_on_the_tie_are_a_tenth_of_it() -> None:
    bets = (bet(1, "tie", 20), bet(2, "tie", 11), bet(3, "tie", 10), bet(3, "tie", 1))
    result = only(play(eleven(maximum_difference=309), shoe(PLAYER_WINS, *bets)))
    assert [(one.seat, one.stake) for one in result.settlements] == [(1, 20), (3, 10)]
    assert noted(result) == [("chance_total", "11(30)")] * 2


@pytest.mark.article("11(31)")
@pytest.mark.parametrize(("pairs_limit", "kept"), [("each", [8, 8]), ("together", [8])])
def test_all_bets_on_a_pair_are_eight_percent_of_it(pairs_limit: str, kept: list[int]) -> None:
    bets = (bet(1, "player_pair", 8), bet(2, "banker_pair", 8), bet(3, "player_pair", 1))
    result = only(play(eleven(maximum_difference=100, pairs_limit=pairs_limit), shoe(PLAYER_WINS, *bets)))
    assert [one.stake for one in result.settlements] == kept
    assert noted(result) == [("chance_total", "11(31)")] * (3 - len(kept))
