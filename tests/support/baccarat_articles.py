"""What articles 10 and 11 of Decreto Executivo 261/22 both demand: paragraphs 1 to 17 are the same words.

The test of each article calls these checks with its own ruleset, so that both are proved and written down once.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, TypeAlias

import pytest
from helpers import play, results, script

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardsLoaded,
    CardsReturned,
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
from rules.engine.ruleset import BadOption, Corrected, Noted, Resolved, Result, Suspended, Verdict, View, options_from
from rules.games.baccarat_coups import Coups
from rules.games.cards import PIPS

Make: TypeAlias = Callable[..., Coups]
"""The ruleset of an article with these options."""

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


def only(verdicts: Iterable[Verdict]) -> Result:
    (result,) = results(verdicts)
    return result


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


def six_or_eight_decks(make: Make, at: str) -> None:
    for decks in (6, 8):
        ruleset = make(decks=decks)
        assert codes(play(ruleset, [ShoeStarted(decks)])) == codes(play(ruleset, [ShoeStarted(0)])) == []
        assert codes(play(ruleset, [ShoeStarted(14 - decks)])) == [("wrong_number_of_decks", f"{at}(1)")]
    refuses(type(make()), {"decks": 7}, f"art. {at}\\(1\\)")


def shuffler_has_no_burn_and_no_warning_card(make: Make, at: str, **shuffler: Any) -> None:
    ruleset = make(**shuffler)
    events = [ShoeStarted(6), *coup(PLAYER_WINS), CutCardDrawn(), *coup(TIE), ShoeEmptied(), *coup(PLAYER_WINS)]
    verdicts = play(ruleset, events)
    assert [ranks(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34"), ("9T", "24")]
    assert codes(verdicts) == [("cut_card_in_shuffler", f"{at}(4)(a)")]
    assert not any(law in laws(one) for one in results(verdicts) for law in (f"{at}(5)", f"{at}(15)"))


def shuffler_has_six_decks(make: Make, at: str, **shuffler: Any) -> None:
    assert make(**shuffler).house.decks == 6
    refuses(type(make()), {**shuffler, "decks": 8}, f"art. {at}\\(4\\)\\(b\\)")
    assert codes(play(make(**shuffler), [ShoeStarted(8)])) == [("wrong_number_of_decks", f"{at}(4)(b)")]


def shuffler_takes_cards_back_after_the_coup(make: Make, at: str, **shuffler: Any) -> None:
    whole = only(play(make(**shuffler), [*coup(PLAYER_WINS), CardsReturned(4)]))
    early = only(play(make(**shuffler), [*coup("9 2"), CardsReturned(4), *drawn("T 4")]))
    assert (noted(whole), noted(early)) == ([], [("cards_returned_early", f"{at}(4)(c)")])


def eight_cards_are_burnt(make: Make, at: str) -> None:
    ruleset = make()
    burn = [ShoeStarted(), *drawn(BURN)]
    assert view(ruleset, burn[:-1]).phase == "burning"
    assert view(ruleset, burn).phase == "idle"
    assert ranks(only(play(ruleset, [*burn, *coup(PLAYER_WINS)]))) == ("9T", "24")
    short = only(play(ruleset, [*burn[:-1], *coup(PLAYER_WINS)]))
    assert noted(short) == [("burn_incomplete", f"{at}(5)")]


def warning_card_makes_the_coup_the_last(make: Make, at: str) -> None:
    ruleset = make(warn_card_within=0)
    under_way = [*shoe("9 2"), CutCardDrawn(), *drawn("T 4"), *drawn("5")]
    verdicts = play(ruleset, under_way)
    assert only(verdicts).outcome["winner"] == "player"
    assert codes(verdicts) == [("card_after_last_coup", f"{at}(6)")]
    assert view(ruleset, under_way).detail["last"]
    for opened in (BetsOpened(), None):
        after = play(ruleset, [*under_way[:-1], *([opened] if opened else []), *drawn("5")])
        assert [one.void for one in results(after)] == [None]


def warning_card_in_the_place_of_the_burnt_one(make: Make) -> None:
    """It is found as the card before the coup is drawn: this coup is dealt, as the last."""
    ruleset = make(warn_card_within=0)
    events = [*shoe(PLAYER_WINS), BetsOpened(), bet(1, "tie"), BetsClosed(), CutCardDrawn(), *drawn(f"5 {TIE}")]
    verdicts = play(ruleset, events)
    assert [ranks(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34")]
    assert returned(results(verdicts)[1]) == [900]
    assert isinstance(play(ruleset, [*events, BetsOpened()])[-1], Suspended)


def warning_card_before_a_coup_without_a_bell(make: Make) -> None:
    """Where no opening is told, it comes out with the next coup: this one is dealt, as the last."""
    ruleset = make(warn_card_within=0, opening="first_card")
    events = [*shoe(PLAYER_WINS), CutCardDrawn(), *drawn(f"5 {TIE}")]
    verdicts = play(ruleset, [*events, *drawn("K")])
    assert [ranks(one) for one in results(verdicts)] == [("9T", "24"), ("7T", "34")]
    assert [code for code, _ in codes(verdicts)] == ["card_after_last_coup"]
    assert view(ruleset, events).detail["last"]
    assert [ranks(one) for one in results(play(ruleset, [*events, *shoe(TIE)]))][2:] == [("7T", "34")]


def empty_shoe(make: Make, at: str) -> None:
    """Without cards no coup can be dealt; one under way waits for a person."""
    void = only(play(make(), [ShoeStarted(), *drawn(BURN), BetsOpened(), bet(1, "tie"), BetsClosed(), ShoeEmptied()]))
    assert (laws(void), returned(void)) == ([f"{at}(6)"], [100])
    assert isinstance(play(make(), [*shoe("2 2 T"), ShoeEmptied()])[-1], Suspended)


def face_up_card_is_valid(make: Make, at: str, **options: Any) -> None:
    ruleset = make(**options)
    cards: list[Event] = [CardDrawn("9S"), CardDrawn("2S", "up"), CardDrawn("TS", "down"), CardDrawn("4S")]
    start: list[Event] = [] if options else [ShoeStarted(), *drawn(BURN)]
    result = only(play(ruleset, [*start, BetsOpened(), BetsClosed(), *cards]))
    assert (ranks(result), result.outcome["face_up"], noted(result)) == (("9T", "24"), ("2S",), [])
    assert laws(result)[-1] == f"{at}(7)"


# ---- the cards


def cards_have_their_values(make: Make, rank: str, points: int) -> None:
    """Against nine of the banker: the player's total is the card's own, with a ten."""
    result = only(play(make(), shoe(f"{rank} 9 T T")))
    assert result.outcome["totals"] == {"player": points, "banker": 9}


def tens_do_not_count(make: Make) -> None:
    """9 and 4 are 3, 7, 6 and 9 are 2."""
    result = only(play(make(), shoe("7 9 6 4 9 7")))
    assert result.outcome["totals"] == {"player": 2, "banker": 0}


def two_hands_only(make: Make) -> None:
    third = DealCorrected({"player": ("9S", "TS"), "banker": ("2S", "4S"), "seat_1": ("2S",)})
    verdicts = play(make(), [*shoe("9 2"), EventsMissed(1), third])
    assert isinstance(verdicts[-1], Suspended)
    assert verdicts[-1].reason.code == "hands_by_law"


def two_cards_each_in_turn(make: Make) -> None:
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


def third_cards_follow_the_table(make: Make) -> None:
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


def burns_before_each_coup_but_the_first(make: Make, at: str) -> None:
    ruleset = make()
    events = [*shoe(PLAYER_WINS), RoundPaid(), *coup(TIE, burnt="5"), RoundPaid(), *coup(PLAYER_WINS, burnt="K")]
    found = results(play(ruleset, [*events, *shoe(TIE)]))
    assert [ranks(one) for one in found] == [("9T", "24"), ("7T", "34"), ("9T", "24"), ("7T", "34")]
    assert [f"{at}(15)" in laws(one) for one in found] == [False, True, True, False]
    opened = [*shoe(PLAYER_WINS), BetsOpened(), BetsClosed()]
    assert view(ruleset, opened).detail["next"] == "burn"
    assert view(ruleset, [*opened, *drawn("5")]).detail["next"] == "player"
    assert view(ruleset, shoe("")).detail["next"] == "player"


def void_first_coup_counts_once_a_card_was_dealt(make: Make) -> None:
    begun = [*shoe("9 2"), RoundVoided("error"), *coup(TIE, burnt="5")]
    assert ranks(results(play(make(), begun))[1]) == ("7T", "34")


DOUBTS: list[list[Event]] = [
    [],
    [ShoeStarted(), *drawn(BURN), BetsOpened(), RoundVoided("nobody bets")],
    [*shoe(PLAYER_WINS), RoundPaid(), EventsMissed(1)],
    [*shoe(PLAYER_WINS), RoundPaid(), DeviceOnline(continuous=False)],
]


def unknown_whether_a_card_is_burnt(make: Make) -> None:
    """A table never seen, a first coup that was void before its cards, a loss: the first card waits for the hands."""
    hands = DealCorrected({"player": ("7S", "TS"), "banker": ("3S", "4S")})
    opening: list[Event] = [BetsOpened(), BetsClosed()]
    while_open = [*shoe(PLAYER_WINS), BetsOpened(), EventsMissed(2), BetsClosed()]
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


def loss_in_a_coup_that_nobody_corrects(make: Make) -> None:
    """The end of the shoe and the start of another may be lost with it: the next coup waits, the one after does not."""
    lost = [*shoe("9 2"), EventsMissed(3), *coup(TIE, burnt="5"), *coup(PLAYER_WINS, burnt="5")]
    verdicts = play(make(), lost)
    waits = [one.reason.code for one in verdicts if isinstance(one, Suspended)]
    assert waits == ["round_events", "coup_burn_unknown"]
    assert [ranks(one) for one in results(verdicts) if one.void is None] == [("9T", "24")]
    hands = DealCorrected({"player": ("9S", "TS"), "banker": ("2S", "4S")})
    right = results(play(make(), [*shoe("9 2"), EventsMissed(3), hands, RoundPaid(), *coup(TIE, burnt="5")]))
    assert [ranks(one) for one in right] == [("9T", "24"), ("7T", "34")]


def corrected_deal_goes_on(make: Make) -> None:
    """Part of the hands is laid while it is unknown whether a card is burnt: the next card is of the coup."""
    part = DealCorrected({"player": ("7S",), "banker": ("3S",)})
    events = [*DOUBTS[2], BetsOpened(), BetsClosed(), *drawn("7 3"), part, *drawn("T 4")]
    assert ranks(results(play(make(), events))[-1]) == ("7T", "34")


# ---- bets and errors


def pairs_are_the_house_s_choice(make: Make, at: str, **offered: Any) -> None:
    ruleset = make(**offered)
    assert [one.id for one in ruleset.bets()] == ["player", "banker", "tie"]
    assert [one.id for one in make().bets()] == ["player", "banker", "tie", "player_pair", "banker_pair"]
    result = only(play(ruleset, shoe(PAIRS, bet(1, "player"), bet(1, "player_pair"))))
    assert noted(result) == [("bet_not_offered", f"{at}(11)")]
    assert [win.bet for win in result.winners] == ["player"]
    refuses(type(ruleset), {"bets_offered": ["player", "banker"]}, f"art. {at}\\(11\\).*tie")
    refuses(type(ruleset), {"bets_offered": ["dragon_7"]}, f"art. {at}\\(11\\) has no bet")


def bets_against_the_seat_are_refused(make: Make, at: str, **accepted: Any) -> None:
    bets = (bet(3, "player"), bet(3, "banker"), bet(4, "banker"), bet(4, "tie"), WagerWithdrawn(3, "player"))
    result = only(play(make(), shoe(BANKER_WINS, *bets, bet(3, "banker", 60))))
    assert noted(result) == [("against_seat", f"{at}(12)")]
    assert [(one.seat, one.bet) for one in result.settlements] == [(4, "banker"), (4, "tie"), (3, "banker")]
    assert noted(only(play(make(**accepted), shoe(BANKER_WINS, *bets[:2])))) == []


def bets_close_at_nothing_more(make: Make, at: str, **first_card: Any) -> None:
    late = only(play(make(), [*shoe("9 2", bet(1, "tie")), bet(2, "tie"), *drawn("T 4")]))
    assert (noted(late), len(late.settlements)) == ([("late_bet", f"{at}(11)")], 1)
    early = play(make(), [ShoeStarted(), *drawn(BURN), BetsOpened(), *drawn("9")])
    assert isinstance(early[-1], Suspended)
    assert codes(play(make(), [BetsClosed()])) == [("bell_without_round", f"{at}(13)")]
    cards = [ShoeStarted(), *drawn(f"{BURN} {PLAYER_WINS} 5 {TIE}")]
    assert [ranks(one) for one in results(play(make(**first_card), cards))] == [("9T", "24"), ("7T", "34")]


def lapse_is_corrected_or_the_coup_is_null(make: Make, at: str) -> None:
    bets = (bet(1, "player"), bet(2, "player_pair", 40))
    right = DealCorrected({"player": ("4S", "5S"), "banker": ("2S", "4S")})
    dealt = [*shoe("9 2 T 4", *bets), right]
    (first, second) = (one for one in play(make(), dealt) if isinstance(one, Resolved | Corrected))
    assert (ranks(first.result), ranks(second.result)) == (("9T", "24"), ("45", "24"))
    assert laws(second.result)[-1] == f"{at}(17)"
    null = only(play(make(), [*shoe("9 2", *bets), RoundVoided("a card too many")]))
    assert (laws(null), returned(null)) == ([f"{at}(17)"], [100, 40])
    assert null.announcements["pt"] == "Lance nulo"


# ---- who handles the cards


def highest_bettors_handle_the_cards(make: Make) -> None:
    bets = (bet(7, "player", 90), bet(5, "player", 90), bet(2, "player", 50), bet(6, "banker", 10))
    dealing = shoe("9 2 T", *bets)
    shown = view(make(), dealing).detail
    assert shown["handles"] == {"player": 5, "banker": 6}
    assert shown["hands"] == {"player": ("??", "??"), "banker": ("??",)}
    assert view(make(), [*dealing, *drawn("4")]).detail["hands"]["player"] == ("9S", "TS")


def dealer_handles_the_cards(make: Make, **dealer: Any) -> None:
    shown = view(make(**dealer), shoe("9 2 T", bet(1, "player"))).detail
    assert "handles" not in shown
    assert shown["hands"] == {"player": ("9S", "TS"), "banker": ("2S",)}
    assert shown["totals"] == {"player": 9, "banker": 2}


# ---- the end of a coup


def winners_are_paid_even(make: Make, article: str) -> None:
    bets = (bet(1, "player", 150), bet(2, "banker", 70), bet(3, "tie", 20))
    player, banker = (only(play(make(), shoe(cards, *bets))) for cards in (PLAYER_WINS, BANKER_WINS))
    assert (returned(player), returned(banker)) == ([300, 0, 0], [0, 140, 0])
    assert all(article in laws(one) for one in (player, banker))
    assert player.announcements["pt"] == "Ponto ganha, 9 contra 6"
    assert banker.announcements == {
        "pt": "Banca ganha, 9 contra 6",
        "zh-Hant": "莊贏，9點對6點",
        "en": "Banker wins, 9 to 6",
    }


def tie_pays_eight_and_stakes_stay(make: Make, article: str) -> None:
    bets = (bet(1, "player", 150), bet(2, "banker", 70), bet(3, "tie", 20))
    result = only(play(make(), shoe(TIE, *bets)))
    assert returned(result) == [150, 70, 180]
    assert result.pushes == ("player", "banker")
    assert article in laws(result)
    assert result.announcements["pt"] == "Empate a 7"


def pairs_pay_eleven_beside_the_rest(make: Make, article: str) -> None:
    bets = (bet(1, "player", 100), bet(1, "player_pair", 10), bet(2, "banker_pair", 5))
    both = only(play(make(), shoe("9H 2D 9D 2S", *bets)))
    assert (returned(both), article in laws(both)) == ([200, 120, 60], True)
    assert both.announcements["pt"] == "Ponto ganha, 8 contra 4, par do ponto, par da banca"
    figures = only(play(make(), shoe("JH 9D QH T", *bets[1:])))
    assert (returned(figures), article in laws(figures)) == ([0, 0], False)


def bets_are_not_judged_after_a_loss(make: Make, *bets: Event, **limits: Any) -> None:
    """A bet that makes up the minimum, or covers the other side, may be among the lost events."""
    told = DealCorrected({"player": ("9S", "TS"), "banker": ("2S", "4S")})
    dealt = [EventsMissed(1), BetsClosed(), *drawn(PLAYER_WINS), told]
    events = [ShoeStarted(), *drawn(BURN), BetsOpened(), *bets, *dealt]
    result = only(play(make(**limits), events))
    assert (noted(result), result.settlements) == ([], ())
    assert noted(only(play(make(**limits), shoe(PLAYER_WINS, *bets))))


def values() -> list[tuple[str, int]]:
    """Each rank and its points."""
    return [(rank, PIPS[f"{rank}S"] % 10) for rank in "A23456789TJQK"]


# ---- 10(5), 11(5): the place of the warning card; 10(2), 11(2): damaged cards


def warning_card_lies_twelve_from_the_end(make: Make, at: str) -> None:
    for left, within, misplaced in (
        *((17, 5, False), (7, 5, False), (18, 5, True), (6, 5, True), (18, 6, False), (12, 1, False), (14, 1, True)),
        (40, 0, False),
    ):
        ruleset = make(decks=6, within=within)
        told = [ShoeStarted(6), *drawn("5 " * (312 - left)), CutCardDrawn(), CutCardDrawn()]
        noted_ = [one for one in codes(play(ruleset, told)) if one[0] == "warn_card_misplaced"]
        assert noted_ == [("warn_card_misplaced", f"{at}(5)")] * misplaced, (left, within)
        lost = [*told[:5], EventsMissed(1), *told[5:]]
        assert "warn_card_misplaced" not in dict(codes(play(ruleset, lost)))


def damaged_deck_is_replaced(name: str, at: str) -> None:
    ruleset = RULESETS[name](RULESETS[name].Options())
    used = [*shoe(PLAYER_WINS), RoundPaid(), CardDamaged()]
    again = coup(PLAYER_WINS, burnt="5")
    late = ("deck_replacement_late", f"{at}(2)")
    assert codes(play(ruleset, [*used, *again, RoundPaid(), *again])) == [late]
    for replaced in (shoe(PLAYER_WINS), [CardsLoaded(), *again], [EventsMissed(1)]):
        assert codes(play(ruleset, [*used, *replaced])) == []
    assert codes(play(ruleset, [*used, TableClosed(), *again])) == [late]
