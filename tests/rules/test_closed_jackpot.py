"""A bet that the edge marked, because the owner of its pool was lost, is refused by every game in the same way."""

from helpers import script
from msgspec.structs import replace

from protocols.contract.events import WagerPlaced, WagerWithdrawn
from rules.engine.cloth import handed_back, lying, wager
from rules.engine.rounds import Round
from rules.engine.ruleset import Wager

OFFERED = frozenset(("jackpot", "player"))


def after(*events: WagerPlaced | WagerWithdrawn, closed: bool = False) -> Round:
    round_ = Round("t-1:1", closed=closed)
    for event, seen in zip(events, script(events), strict=True):
        change: WagerPlaced | WagerWithdrawn | None = event
        if isinstance(event, WagerWithdrawn):
            chips, change = handed_back(round_.refused, event, lying(round_, event.seat, event.bet))
            round_ = replace(round_, refused=chips)
        if change is not None:
            round_ = wager(round_, change, OFFERED, "art. 1", seen)
    return round_


def test_a_bet_on_a_closed_jackpot_is_refused_and_the_other_bets_stand() -> None:
    marked = WagerPlaced(seat=1, bet="jackpot", amount=10, pool_closed=True)
    round_ = after(WagerPlaced(1, "player", 50), marked, WagerPlaced(2, "jackpot", 10))
    assert round_.wagers == (Wager(1, "player", 50), Wager(2, "jackpot", 10))
    assert [(one.code, one.law, one.event) for one in round_.irregularities] == [("jackpot_closed", "art. 1", "e2")]
    assert round_.irregularities[0].reason.values == {"seat": 1, "bet": "jackpot"}


def test_refused_chips_are_taken_back_before_those_that_count() -> None:
    """A chip that was laid before the closing stays a bet when the later one is given back."""
    marked = WagerPlaced(seat=1, bet="jackpot", amount=10, pool_closed=True)
    round_ = after(WagerPlaced(1, "jackpot", 10), marked, WagerWithdrawn(1, "jackpot", 10))
    assert round_.wagers == (Wager(1, "jackpot", 10),)
    assert round_.refused == ()


def test_after_the_bell_it_is_a_late_bet() -> None:
    marked = WagerPlaced(seat=1, bet="jackpot", amount=10, pool_closed=True)
    assert [one.code for one in after(marked, closed=True).irregularities] == ["late_bet"]
