"""Whole nights of hold'em, Omaha and synthetic poker against a second settlement, written from the text alone.

Players bluff, give up, go all-in, bet out of turn, leave and come back. The test keeps each seat's chips by itself: it
reads of the ruleset whose turn it is and what it may do, and nothing of pots, hands and payments.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import import_module
from itertools import combinations
from typing import Any

import msgspec
import pytest
from helpers import at_length
from poker_hands import PokerTable

from protocols.contract.events import RoundPaid, RoundVoided, SeatActed, SeatOpened
from rules.angola.holdem import Holdem
from rules.angola.omaha import Omaha
from rules.angola.synthetic_poker import SyntheticOptions, SyntheticPoker
from rules.angola.unbanked_poker import BlindsOptions

pokerkit: Any = import_module("pokerkit")
RANKS = "23456789TJQKA"
HANDS = at_length(60, 34_000)
STEP = 50
"""The smallest chip. The minimum is twice as much where there are blinds."""


def height(card: str) -> int:
    return RANKS.index(card[0]) + 2


def synthetic(cards: Sequence[str]) -> tuple[int, list[int]]:
    """Art. 16(9), 16(11): the place from below, then what breaks a tie."""
    heights = sorted(map(height, cards), reverse=True)
    suited, times = len({card[1] for card in cards}) == 1, Counter(heights)
    grouped = sorted(heights, key=lambda one: (times[one], one), reverse=True)
    shape = tuple(sorted(times.values(), reverse=True))
    low = heights == [14, 11, 10, 9, 8]
    run = low or (shape == (1,) * 5 and heights[0] - heights[4] == 4)
    top = [11] if low else [heights[0]]
    courts = heights[4] >= 11
    if run and suited:
        return 10, top
    if shape == (4, 1):
        return 9, grouped
    if suited:
        return 8, heights
    if shape == (3, 2):
        return 7, grouped
    if run:
        return 6, top
    if shape == (3, 1, 1):
        return 5, grouped
    if shape == (2, 2, 1):
        return (4 if courts else 2), grouped
    if shape == (2, 1, 1, 1):
        return (3, heights) if courts else (1, grouped)
    return 0, heights


def value(game: str, own: Sequence[str], board: Sequence[str]) -> Any:
    """What a player's hand is worth; hold'em and Omaha by PokerKit."""
    if game == "synthetic":
        return max(synthetic((*own, *three)) for three in combinations(board, 3))
    kind = pokerkit.StandardHighHand if game == "holdem" else pokerkit.OmahaHoldemHand
    mine, common = ("".join(card[0] + card[1].lower() for card in cards) for cards in (own, board))
    return kind.from_game(mine, common)


def settled(laid: dict[int, int], dead: int, values: dict[int, Any], order: list[int], unit: int) -> Counter[int]:
    """Art. 13(38), 13(49), 13(66), 13(67): layer by layer, unit by unit. `order`: from the hand on."""
    gets: Counter[int] = Counter()
    heap, below, playing = dead, 0, list(values)
    for level in sorted({laid[seat] for seat in values} | {max(laid.values())}):
        players = [seat for seat in values if laid[seat] >= level] or playing
        if players != playing:
            gets += shared(heap, playing, values, order, unit)
            heap, playing = 0, players
        heap += sum(min(amount, level) - min(amount, below) for amount in laid.values())
        below = level
    return gets + shared(heap, playing, values, order, unit)


def shared(heap: int, playing: list[int], values: dict[int, Any], order: list[int], unit: int) -> Counter[int]:
    """One pot: the hand takes a unit first, then the seats clockwise, until less than a unit is left for the first."""
    winners = [seat for seat in order if seat in playing and all(values[seat] >= values[one] for one in playing)]
    gets = Counter(dict.fromkeys(winners, heap // unit // len(winners) * unit))
    left = heap - sum(gets.values())
    for seat in winners:
        if left >= unit:
            gets[seat] += unit
            left -= unit
    gets[winners[0]] += left
    return gets


class Night:
    """A night at one table."""

    def __init__(self, game: str, rng: random.Random, limit: Any) -> None:
        self.game, self.rng = game, rng
        if game == "synthetic":
            self.ruleset: Any = SyntheticPoker(SyntheticOptions(minimum=STEP, limit=limit, blind_raises=True))
        else:
            kind: Any = {"holdem": Holdem, "omaha": Omaha}[game]
            self.ruleset = kind(BlindsOptions(minimum=2 * STEP, limit=limit))
        self.deck = [rank + suit for rank in (RANKS[6:] if game == "synthetic" else RANKS) for suit in "SHDC"]
        self.own_cards = 4 if game == "omaha" else 2
        self.poker = PokerTable(self.ruleset)
        self.chips: dict[int, int] = {}
        self.seen: Counter[str] = Counter()
        for seat in range(1, rng.randint(4, 9) + 1):
            self.buys(seat)

    def buys(self, seat: int) -> None:
        self.chips[seat] = STEP * self.rng.choice((10, 20, 45, 100))
        self.poker.tell(SeatOpened(seat), SeatActed(seat, "stack", amount=self.chips[seat]))

    def refill(self) -> None:
        """Art. 14(8)."""
        for seat, chips in list(self.chips.items()):
            if chips < 2 * STEP:
                self.buys(seat)

    def play(self) -> None:
        """One hand. `laid`, `dead`: what each seat put in, as this test counts it."""
        self.refill()
        self.poker.open()
        order = self.poker.detail["players"]
        self.laid: dict[int, int] = dict.fromkeys(order, 0)
        self.dead: dict[int, int] = dict.fromkeys(order, 0)
        self.out: set[int] = set()
        self.first_bets(order)
        self.rng.shuffle(self.deck)
        cards = iter(self.deck)
        own = defaultdict(list)
        for place in range(len(order) * self.own_cards):
            own[order[place % len(order)]].append(card := next(cards))
            self.poker.cards(card)
        self.blind()
        board: list[str] = []
        while self.poker.view.phase not in ("showdown", "resolved"):
            if (due := self.poker.detail["due"])["kind"] == "card":
                card = next(cards)
                board += [card] if due["hand"] == "board" else []
                self.poker.cards(card)
            else:
                self.acts()
        while self.poker.view.phase == "showdown":
            seat = self.poker.due[0]
            mucks = self.rng.random() < 0.05
            self.out |= {seat} if mucks else set()
            self.poker.acts(f"{seat} {'muck' if mucks else 'show'}")
        self.pays({seat: own[seat] for seat in order if seat not in self.out}, board)

    def first_bets(self, order: list[int]) -> None:
        posts = dict.fromkeys(order, STEP) if self.game == "synthetic" else {order[0]: STEP, order[1]: 2 * STEP}
        for seat, amount in posts.items():
            if self.rng.random() < 0.97:
                self.poker.acts(f"{seat} post")
                (self.dead if self.game == "synthetic" else self.laid)[seat] += amount
            else:
                self.seen["forgotten"] += 1

    def blind(self) -> None:
        if self.game == "synthetic" and self.rng.random() < 0.1:
            seat = self.rng.choice(list(self.laid))
            before = self.poker.detail["stacks"]
            self.poker.acts(f"{seat} blind_raise {STEP}")
            self.counts(before)
            self.seen["blind"] += 1

    def counts(self, before: dict[str, int]) -> None:
        """Chips that crossed the line; of a seat that owes its ante the first are dead."""
        after = self.poker.detail["stacks"]
        for name, chips in before.items():
            seat, put = int(name[5:]), chips - after[name]
            if self.game == "synthetic" and put and not self.dead[seat]:
                self.dead[seat], put = STEP, put - STEP
            self.laid[seat] += put

    def acts(self) -> None:
        seat, able = self.poker.due
        before = self.poker.detail["stacks"]
        live = [one for one in self.laid if one not in self.out]
        chosen = self.rng.random()
        others = [one for one in live if one != seat and before[f"seat_{one}"]]
        if chosen < 0.02 and others:
            seat = self.rng.choice(others)
            self.seen["out of turn"] += 1
        if chosen > 0.995 and len(live) > 2:
            self.poker.acts(f"{seat} dead")
            self.out.add(seat)
            self.seen["dead"] += 1
            return
        word = "fold" if chosen < 0.15 else "call" if "call" in able else "check"
        chips = 0
        if chosen > 0.7 and (raises := [one for one in able if one in ("bet", "raise")]):
            word = raises[0]
            chips = self.rng.choice((2, 3, 5, 9, before[f"seat_{seat}"] // STEP)) * STEP
        said = self.poker.acts(f"{seat} {word} {chips}")
        if self.poker.view.phase == "resolved":
            self.out |= {seat} if word == "fold" else set()
            return
        self.counts(before)
        folded = set(self.poker.detail["folded"])
        if word == "fold" and seat in folded:
            self.out.add(seat)
        self.seen[word] += 1
        self.seen["said"] += len(said)

    def pays(self, own: dict[int, list[str]], board: list[str]) -> None:
        result, detail = self.poker.result, self.poker.detail
        assert result.void is None
        live = [seat for seat, fate in result.outcome["seats"].items() if fate in ("wins", "loses")]
        assert {int(name[5:]) for name in live} == set(own)
        unseen = len(own) == 1
        values = {seat: 0 if unseen else value(self.game, cards, board) for seat, cards in own.items()}
        gets = settled(self.laid, sum(self.dead.values()), values, list(self.laid), self.ruleset.options.minimum)
        for seat in self.laid:
            self.chips[seat] += gets[seat] - self.laid[seat] - self.dead[seat]
        assert detail["stacks"] == {f"seat_{seat}": chips for seat, chips in self.chips.items()}
        assert sum(one.stake for one in result.settlements) == sum(one.returned for one in result.settlements)
        self.seen["side pots"] += len(result.outcome["pots"]) > 1
        self.seen["unseen"] += unseen
        if self.rng.random() < 0.3:
            self.poker.tell(RoundPaid())


@pytest.mark.parametrize("limit", ["stack", "pot", "half_pot"])
@pytest.mark.parametrize("game", ["holdem", "omaha", "synthetic"])
def test_a_second_settlement_agrees(game: str, limit: str) -> None:
    """At night 34 000 hands of each game and limit: more than 100 000 of each game."""
    rng = random.Random(f"{game} {limit}")
    seen: Counter[str] = Counter()
    played = 0
    while played < HANDS:
        night = Night(game, rng, limit)
        for _ in range(min(30, HANDS)):
            night.play()
            played += 1
        seen += night.seen
        state = night.poker.state
        assert msgspec.json.decode(msgspec.json.encode(state), type=night.ruleset.State) == state
    assert seen["side pots"] >= HANDS // 20
    assert seen["unseen"] > 0
    assert seen["out of turn"]
    assert game != "synthetic" or seen["blind"]


def test_a_declared_void_gives_back_every_chip() -> None:
    """Wherever a hand is declared void, each seat has what it had before."""
    rng = random.Random(50)
    for _ in range(at_length(30, 1_000)):
        night = Night("holdem", rng, "stack")
        night.play()
        night.refill()
        before = night.poker.detail["stacks"]
        night.poker.open()
        night.laid = dict.fromkeys(night.poker.detail["players"], 0)
        night.dead, night.out = dict(night.laid), set()
        night.first_bets(list(night.laid))
        cards = iter(rng.sample(night.deck, len(night.deck)))
        for _ in range(rng.randint(0, 40)):
            if night.poker.view.phase in ("showdown", "resolved"):
                break
            due = night.poker.detail["due"]
            if due["kind"] == "card" or not night.poker.state.open.round.closed:
                night.poker.cards(next(cards))
            else:
                night.acts()
        if night.poker.view.phase == "resolved":
            continue
        night.poker.tell(RoundVoided())
        assert night.poker.detail["stacks"] == before
        assert all(one.stake == one.returned for one in night.poker.result.settlements)
