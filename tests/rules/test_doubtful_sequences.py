"""The Macau rulesets under events that come late, twice, or where nothing waits for them."""

from collections.abc import Iterable
from typing import Any

import pytest
from helpers import play

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BetsClosed,
    BetsOpened,
    CardDrawn,
    DealCorrected,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceUncovered,
    Event,
    RoundDemo,
    RoundVoided,
    ShoeStarted,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from rules.engine.rounds import MAX_WAGERS
from rules.engine.ruleset import Corrected, Noted, Resolved, Result, Verdict, Voided, options_from
from rules.macau.baccarat import Baccarat, BaccaratOptions
from rules.macau.cussec import Cussec, CussecOptions
from rules.macau.roulette import Roulette, RouletteOptions

LAUNCH = BallLaunched("clockwise", "anticlockwise")
BURN: list[Event] = [CardDrawn("AS")] * 8
PLAYER_WINS = "9S 2S TS 4S"


def drawn(cards: str) -> list[Event]:
    return [CardDrawn(card) for card in cards.split()]


def baccarat(**options: Any) -> Baccarat:
    return Baccarat(BaccaratOptions(**options))


def cussec(**options: Any) -> Cussec:
    return Cussec(CussecOptions(**options))


def roulette(**options: Any) -> Roulette:
    return Roulette(RouletteOptions(**options))


def hands(player: str, banker: str) -> DealCorrected:
    return DealCorrected({"player": tuple(player.split()), "banker": tuple(banker.split())})


def ends(verdicts: Iterable[Verdict]) -> list[Result]:
    return [verdict.result for verdict in verdicts if isinstance(verdict, Resolved | Voided | Corrected)]


def codes(verdicts: Iterable[Verdict]) -> list[str]:
    return [verdict.irregularity.code for verdict in verdicts if isinstance(verdict, Noted)]


# ---- the bookkeeping of a round


def test_a_table_full_of_bets_still_takes_them_back_and_adds_to_them() -> None:
    """The bound is on the places that hold a bet, not on what is done with them."""
    cloth = [bet for bet in roulette().board if bet.startswith("straight")]
    bets: list[Event] = [WagerPlaced(1 + n // 37, cloth[n % 37], 10) for n in range(MAX_WAGERS)]
    extra: list[Event] = [WagerPlaced(1, cloth[0], 5), WagerWithdrawn(1, cloth[1]), WagerPlaced(99, "red", 7)]
    (result,) = ends(
        play(roulette(), [BetsOpened(), *bets, *extra, WagerPlaced(99, "odd", 3), LAUNCH, BallLanded("5")])
    )
    stakes = {(one.seat, one.bet): one.stake for one in result.settlements}
    assert len(stakes) == MAX_WAGERS
    assert stakes[1, cloth[0]] == 15
    assert (1, cloth[1]) not in stakes
    assert stakes[99, "red"] == 7
    assert [one.code for one in result.irregularities] == ["too_many_bets"]


def test_many_wagers_do_not_push_the_ball_out_of_the_evidence() -> None:
    bets: list[Event] = [WagerPlaced(1, "red", 10) for _ in range(3 * MAX_WAGERS)]
    events: list[Event] = [BetsOpened(), *bets, BetsClosed(), LAUNCH, BallLanded("5")]
    (result,) = ends(play(roulette(), events))
    last = len(events)
    assert result.evidence[-3:] == tuple(f"e{n}" for n in (last - 2, last - 1, last))


# ---- what a void is called


@pytest.mark.parametrize(
    ("ruleset", "events", "words"),
    [
        (baccarat(), [*drawn("9S 2S"), RoundVoided()], {"pt": "Lance nulo", "zh-Hant": "此局無效", "en": "Void"}),
        (cussec(), [DiceCovered(), RoundVoided()], {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}),
        (roulette(), [LAUNCH, RoundVoided()], {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "No spin"}),
    ],
)
def test_a_void_round_is_announced_in_the_words_of_its_text(
    ruleset: Any, events: list[Event], words: dict[str, str]
) -> None:
    (result,) = ends(play(ruleset, events))
    assert result.announcements == words


# ---- baccarat


@pytest.mark.parametrize("typed", [hands("9S TS 5S", "2S 4S"), hands("2S TS", "2S 4S")])
def test_no_burnt_card_of_the_next_shoe_joins_a_coup_corrected_late(typed: DealCorrected) -> None:
    """Once its shoe is over, a coup is corrected with whole hands only: no card is left that could be dealt to it."""
    events = [*drawn(PLAYER_WINS), ShoeStarted(8), typed, *BURN, *drawn("8S 2S TS 4S")]
    verdicts = play(baccarat(), events)
    assert codes(verdicts) == ["correction_incomplete"]
    first, second = ends(verdicts)
    assert first.evidence == ("e1", "e2", "e3", "e4")
    assert second.outcome["hands"] == {"player": ("8S", "TS"), "banker": ("2S", "4S")}


def test_a_coup_of_the_last_shoe_is_still_corrected_with_whole_hands() -> None:
    events = [*drawn(PLAYER_WINS), ShoeStarted(8), hands("2S 4S", "9S TS"), *BURN, *drawn("8S 2S TS 4S")]
    wrong, right, following = ends(play(baccarat(), events))
    assert right.supersedes == wrong.round
    assert [win.bet for win in right.winners] == ["banker"]
    assert following.outcome["totals"] == {"player": 8, "banker": 6}


@pytest.mark.parametrize("offered", [(), ("player", "banker", "tie")])
def test_art_18_3_a_push_on_a_dragon_7_is_called(offered: tuple[str, ...]) -> None:
    """Who hears that the banker won without it waits for a prize that is not paid."""
    table = baccarat(commission="dragon_7_push", bets_offered=offered)
    (result,) = ends(play(table, drawn("TS 3S KS AS 5S 3H")))
    assert result.pushes == ("banker",)
    assert result.announcements["pt"] == "Banca ganha, 7 contra 5, Sete Dragão"
    assert result.announcements["zh-Hant"] == "莊贏，7點對5點，龍七"


@pytest.mark.parametrize("opened", [[], [BetsOpened()]])
def test_a_demonstration_rests_on_the_word_that_it_is_one(opened: list[Event]) -> None:
    events = [ShoeStarted(8), *BURN, RoundDemo(), *opened, *drawn(PLAYER_WINS)]
    (result,) = ends(play(baccarat(demonstration_rounds=1), events))
    assert result.demo
    assert result.evidence == tuple(f"e{n}" for n in range(10, len(events) + 1))


def test_art_8_is_cited_where_a_card_was_burnt() -> None:
    (result,) = ends(play(baccarat(burn_each_coup=True), drawn(f"KS {PLAYER_WINS}")))
    assert "Despacho 55/2004 art. 8" in result.law


# ---- cussec


def test_a_total_pays_what_the_house_chose_and_is_rounded_to_its_chip() -> None:
    table = cussec(total_5_16=25, smallest_chip=100, rounding="up")
    bets: list[Event] = [WagerPlaced(1, "total:5", 30), WagerPlaced(2, "double:2", 10)]
    shaken: list[Event] = [DiceCovered(), DiceAgitated("lever", 3), BetsOpened()]
    (result,) = ends(play(table, [*shaken, *bets, BetsClosed(), DiceUncovered(), DiceRead((1, 2, 2))]))
    assert [(one.returned, one.exact) for one in result.settlements] == [(30 + 800, "780"), (10 + 100, "90")]


# ---- roulette


@pytest.mark.parametrize("word", [RoundVoided("chip"), SpinVoided("chip")])
def test_art_2_2_a_spin_void_after_its_number_takes_the_result_back(word: Event) -> None:
    """Whoever says it, the croupier or the wheel."""
    events: list[Event] = [
        BetsOpened(),
        WagerPlaced(1, "red", 10),
        LAUNCH,
        BallLanded("5"),
        word,
        LAUNCH,
        BallLanded("2"),
    ]
    first, back, again = ends(play(roulette(), events))
    assert back.supersedes == first.round
    assert back.void is not None
    assert [(one.stake, one.returned) for one in again.settlements] == [(10, 0)]


@pytest.mark.parametrize("word", [RoundVoided("chip"), SpinVoided("chip")])
def test_a_void_that_meets_no_spin_is_noted(word: Event) -> None:
    assert codes(play(roulette(), [word])) == ["void_without_round"]


def test_the_croupier_and_the_wheel_may_both_call_a_spin_null() -> None:
    croupier, wheel = RoundVoided("chip"), SpinVoided("restarted")
    for verdicts in (play(roulette(), [LAUNCH, croupier, wheel]), play(roulette(), [LAUNCH, wheel, croupier])):
        assert len(ends(verdicts)) == 1
        assert codes(verdicts) == []


def test_a_bell_that_meets_no_spin_is_noted_unless_the_bets_of_a_null_spin_stand() -> None:
    assert codes(play(roulette(), [BetsClosed()])) == ["bell_without_round"]
    assert codes(play(roulette(), [LAUNCH, RoundVoided("chip"), BetsClosed(), LAUNCH])) == []


@pytest.mark.parametrize(
    ("options", "late"),
    [
        ({}, "Despacho 60/2004 art. 3"),
        ({"edition": "2003"}, "Despacho 30/2003 art. 3"),
    ],
)
def test_a_refused_bet_is_refused_by_its_article(options: dict[str, Any], late: str) -> None:
    table = roulette(**options)
    unknown, red = WagerPlaced(1, "blue", 10), WagerPlaced(1, "red", 10)
    (result,) = ends(play(table, [BetsOpened(), unknown, BetsClosed(), red, LAUNCH, BallLanded("0")]))
    six = late.partition(" art.")[0] + " art. 6"
    assert [(one.code, one.law) for one in result.irregularities] == [("bet_not_offered", six), ("late_bet", late)]


def test_arts_7_and_8_the_straight_on_0_is_paid_by_both() -> None:
    (result,) = ends(play(roulette(), [BetsOpened(), LAUNCH, BallLanded("0")]))
    assert result.law == tuple(f"Despacho 60/2004 art. {article}" for article in (4, 6, 7, 8))


def test_art_6_6_sectors_of_nine_can_be_given_on_a_command_line() -> None:
    written = {"nines": "1-2-3-4-5-6-7-8-9,28-29-30-31-32-33-34-35-36", "red": ",".join(map(str, range(1, 19)))}
    options = options_from(Roulette, written, text=True)
    assert options.nines == (tuple(range(1, 10)), tuple(range(28, 37)))
    assert options.red == tuple(range(1, 19))
