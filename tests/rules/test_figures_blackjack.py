"""Angola's blackjack in figures: the simulated rounds are rounds of the ruleset, and the kept figures are theirs."""

import re
from fractions import Fraction
from pathlib import Path
from random import Random

import msgspec
import pytest
from helpers import at_length, results, script

from protocols.contract.events import BetsClosed, BetsOpened, CardDrawn, Event, SeatActed, WagerPlaced
from rules.angola.blackjack import Blackjack, BlackjackOptions
from rules.games.blackjack import Hand
from rules.games.cards import DECK, PIPS
from simulators.lab.figures import blackjack
from simulators.lab.figures.cards import PARTS

KEPT = Path(__file__).parents[2] / "rules/figures/angola.blackjack.toml"


def rows() -> dict[tuple[str, str], dict[str, str]]:
    figures = msgspec.toml.decode(KEPT.read_bytes())["figure"]
    return {(one["bet"], one["options"]): one for one in figures}


def as_events(ruleset: Blackjack, cards: list[str]) -> int:
    """What a seat with a bet of 2 wins with these cards, told as events, by the same strategy."""
    state = ruleset.start("figures")
    events: list[Event] = [BetsOpened(), WagerPlaced(1, "main", blackjack.STAKE), BetsClosed()]
    coming = iter(cards)
    while True:
        for seen in script(events):
            state, verdicts = ruleset.apply(state, seen)
            for result in results(verdicts):
                assert next(coming, None) is None
                assert not result.irregularities
                return sum(one.returned - one.stake for one in result.settlements)
        due = ruleset.view(state).detail["due"]
        if due["kind"] == "card":
            events = [CardDrawn(next(coming))]
            continue
        play = state.position.play
        assert play is not None
        hand = play.hands[play.turn]
        wish = "stand"
        if not (
            sum(map(PIPS.__getitem__, hand.cards)) == 11 and len(hand.cards) == 2 and "even_money" in due["actions"]
        ):
            may_split = ruleset.house.may_split(play, hand)
            wish = blackjack.action(hand, PIPS[play.bank[0]], may_split=may_split)
        assert wish in due["actions"]
        events = [SeatActed(1, wish, hand.number)]


def test_the_simulated_rounds_pay_what_the_same_events_pay() -> None:
    ruleset = Blackjack(BlackjackOptions())
    rng, shoe = Random("figures"), list(DECK * 6)
    gains = set()
    for _ in range(at_length(1_500, 20_000)):
        _, compared, dealt = blackjack.round_played(ruleset.house, shoe, rng)
        net = sum(
            blackjack.gain(one.main) + (blackjack.gain(one.double) if one.hand.doubled else 0) for one in compared
        )
        assert as_events(ruleset, shoe[:dealt]) == net
        gains.add(net)
    assert {-4, -2, -1, 0, 2, 3, 4} <= gains


@pytest.mark.parametrize("decks", ["", "4"])
def test_the_simulated_figures_are_as_kept(decks: str) -> None:
    """Another run, short: within five standard errors of the two together."""
    options = f"decks={decks}" if decks else ""
    given = tuple({"decks": decks}.items()) if decks else ()
    tally = blackjack.part(given, False, PARTS, at_length(20_000, 300_000))
    for bet, edge in (("main", tally.edge()), ("double", tally.bets_edge())):
        assert abs(float(rows()[bet, options]["edge_percent"]) / 100 - edge.mean) < 5.1 * edge.error
    assert "10,000,000 rounds" in rows()["main", options]["method"]


def test_by_the_published_rules_the_edge_is_the_published_one() -> None:
    """0.55 per cent, to the last place printed and three standard errors."""
    found = re.search(r"by the published rules ([0-9.]+) %, standard error ([0-9.]+)", rows()["main", ""]["method"])
    assert found is not None
    assert abs(float(found[1]) - 0.55) < 0.005 + 3 * float(found[2])


@pytest.mark.parametrize(
    ("decks", "insurance", "natural"),
    [
        (6, Fraction(96, 311), Fraction(2 * 24 * 96, 312 * 311)),
        (4, Fraction(64, 207), Fraction(2 * 16 * 64, 208 * 207)),
    ],
)
def test_the_exact_figures_by_hand(decks: int, insurance: Fraction, natural: Fraction) -> None:
    found = blackjack.exact({"decks": str(decks)})
    assert found["insurance"].probability == insurance
    assert found["insurance"].edge == 1 - 3 * insurance
    assert found["hand:blackjack"].probability == natural


@pytest.mark.parametrize(
    ("cards", "up", "split", "decision"),
    [
        ("TS 6C", 10, False, "surrender"),
        ("TS 6C", 10, True, "hit"),
        ("9S 5C 2D", 10, False, "hit"),
        ("6S 5C", 6, False, "double"),
        ("4S 5C 2D", 6, False, "hit"),
        ("8S 8C", 1, False, "hit"),
        ("8S 8C", 10, False, "surrender"),
        ("8S 8C", 9, False, "split"),
        ("7S 7C", 10, False, "hit"),
        ("TS QC", 6, False, "stand"),
        ("AS 7C", 9, False, "hit"),
        ("AS 8C", 6, False, "stand"),
        ("2S 2C 4D", 2, False, "hit"),
    ],
)
def test_what_the_player_decides(cards: str, up: int, split: bool, decision: str) -> None:
    hand = Hand(1, 1, tuple(cards.split()), split=split)
    assert blackjack.action(hand, up, may_split=True) == decision
