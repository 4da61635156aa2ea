"""Players who decide at terminals of their own: a whole hand from the terminals' bytes, and what is refused to them.

Terminals, driver and ruleset are real; an answer is what the rules process derives from the state.
"""

import asyncio
from datetime import timedelta
from itertools import islice
from random import Random
from typing import Any

import pytest
from helpers import START, MemoryLink, Notebook, virtual_time
from poker_hands import PokerTable

from daemon.consumer.wagers import WagerAnswers, answer_to
from drivers.bet_terminals import BetTerminals, TerminalOptions
from drivers.driver import LinkLost
from protocols.contract.events import EventsMissed, PlayerActed, PlayerAction
from protocols.contract.wagers import Act, WagerAnswer, encode_line
from rules.angola.holdem import Holdem
from rules.angola.omaha import Omaha
from rules.angola.synthetic_poker import SyntheticPoker
from rules.engine.ruleset import options_from
from simulators.devices.bet_terminals import BetTerminals as Simulated

every_game = pytest.mark.parametrize("kind", [Holdem, Omaha, SyntheticPoker])


class Table:
    """Four players with terminals t-1 to t-4."""

    def __init__(self, kind: Any) -> None:
        self.poker = PokerTable(kind(options_from(kind, {})), (10_000,) * 4)
        self.link, self.notes = MemoryLink(), Notebook()
        self.task = asyncio.create_task(BetTerminals(TerminalOptions(seats=4)).run(self.link, self.notes))
        self.terminals = Simulated(Random(1), "p")
        self.terminals.clock = lambda: START + timedelta(seconds=10)
        self.told = 1
        self.now = 0.0

    async def act(self, seat: int, act: PlayerAction, amount: int = 0, round_: str = "") -> tuple[str, str]:
        """A player taps; status and code of the answer."""
        id_ = self.terminals.act(seat, act, amount, self.now, round_ or self.poker.view.round)
        await self.carry()
        answer = self.terminals.answers[id_]
        return answer.status, answer.code

    async def carry(self) -> None:
        """Requests to the driver, events to the rules, answers back."""
        self.now += 1
        await asyncio.sleep(1)
        self.link.feed(self.terminals.wake(self.now))
        await asyncio.sleep(0.01)
        self.terminals.hear(bytes(self.link.sent), self.now)
        self.link.sent.clear()
        for event in islice(list(self.notes.events), self.told, None):
            self.told += 1
            before, said = self.poker.state, self.poker.tell(event)
            answer = answer_to(self.poker.told[-1], before, self.poker.state, tuple(said), self.poker.view.round)
            if answer is not None:
                self.terminals.hear(encode_line(answer.terminal, answer), self.now)

    def open(self) -> None:
        """First bets and own cards."""
        ruleset = self.poker.ruleset
        self.poker.open()
        for _ in range(4 if ruleset.variant.ante else 2):
            self.poker.acts(f"{self.poker.due[0]} post")
        cards = [rank + suit for suit in "SHDC" for rank in "AKQJT98"]
        self.poker.cards(" ".join(cards[: 4 * ruleset.variant.ranking.cards]))
        self.cards = iter(cards[4 * ruleset.variant.ranking.cards :])

    async def deal(self) -> None:
        """Cards until a seat is asked."""
        while self.poker.detail.get("due", {}).get("kind") == "card":
            self.poker.cards(next(self.cards))

    async def end(self) -> None:
        self.link.hang_up()
        with pytest.raises(LinkLost):
            await self.task


@every_game
@virtual_time
async def test_a_whole_hand_is_played_at_terminals(kind: Any) -> None:
    table = Table(kind)
    table.open()
    raised = False
    while table.poker.view.phase != "showdown":
        await table.deal()
        seat, able = table.poker.due
        if not raised:
            raised = True
            word: PlayerAction = "bet" if "bet" in able else "raise"
            assert await table.act(seat, word, 500) == ("accepted", "")
        elif table.poker.view.phase == "deciding":
            assert await table.act(seat, "call" if "call" in able else "check") == ("accepted", "")
        await table.deal()
    while table.poker.view.phase == "showdown":
        table.poker.acts(f"{table.poker.due[0]} show")
    assert table.poker.result.void is None
    assert table.poker.result.irregularities == ()
    assert sum(table.poker.stacks) == 40_000
    await table.end()


@every_game
@virtual_time
async def test_what_is_not_right_is_refused_and_leaves_no_trace_in_the_hand(kind: Any) -> None:
    """Art. 13(71)(f) and the like are for people: at a terminal a mistake is not taken."""
    table = Table(kind)
    assert await table.act(1, "fold", round_="t-1:2026-11-20:1") == ("refused", "bet_for_another_round")
    table.open()
    await table.deal()
    seat, able = table.poker.due
    before, other = table.poker.detail, seat % 4 + 1
    assert await table.act(other, "fold") == ("refused", "out_of_turn")
    assert await table.act(seat, "raise", 101 if "call" in able else 1) == ("refused", "below_minimum")
    assert await table.act(seat, "raise", 99_999) == ("refused", "more_than_stack")
    assert await table.act(seat, "call", 5_000) == ("refused", "not_announced")
    assert await table.act(seat, "fold", round_="t-1:2026-11-19:7") == ("refused", "bet_for_another_round")
    assert table.poker.detail == before
    assert await table.act(seat, "raise", 400) == ("accepted", "")
    assert await table.act(other, "check") == ("refused", "check_not_possible")
    table.poker.tell(EventsMissed(1))
    assert table.poker.view.phase == "suspended"
    assert await table.act(other, "fold") == ("refused", "bet_not_counted")
    assert {one.code for one in table.poker.state.open.round.irregularities} == set()
    await table.end()


@virtual_time
async def test_a_decision_is_taken_where_a_first_bet_is_missing() -> None:
    """Art. 14(20): the irregularity is of another seat."""
    table = Table(Holdem)
    table.poker.open()
    table.poker.acts("1 post")
    assert await table.act(3, "call") == ("accepted", "first_bet_missing")
    await table.end()


def test_a_repeated_decision_gets_its_answer_again() -> None:
    kept = WagerAnswers("hol-1", {})
    answer = WagerAnswer("a-1", "t-1", "accepted", event="e:1")
    kept.put(PlayerActed(1, "call", 0, "a-1", "t-1", "r"), answer)
    assert kept.again(Act("a-1", "t-1", START, 1, "call", "r")) == answer
    assert kept.again(Act("a-1", "t-1", START, 1, "fold", "r")) is None
