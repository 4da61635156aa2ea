"""Simulated rounds of the two games that are too large to enumerate, played through the rulesets themselves.

The cards are dealt at random, the player decides by the strategies below, and every showdown is `apply`: the payments
are read from the settlements. A run is divided into parts with their own seeds, and only whole numbers are added, so
the sums do not depend on the number of processes.

A blackjack round is the first of a full shoe, with one seat. Its streak button shows whether the round counts as won.
At stud poker one seat plays against the dealer, whose last card is the open one; a shuffler deals, so the hands are
entered at the showdown. A run under other options plays the same cards.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from itertools import chain, repeat
from math import sqrt
from random import Random
from typing import Any, Final

from msgspec import Struct

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    DealCorrected,
    Event,
    HandDispensed,
    HoleCardPeeked,
    SeatActed,
    SeatOpened,
    WagerPlaced,
)
from protocols.contract.topics import Envelope
from rules.angola.stud_poker import StudPoker as AngolaStudPoker, StudPokerOptions as AngolaStudPokerOptions
from rules.engine.facts import Table
from rules.engine.ruleset import Resolved, Result, Ruleset, Verdict, options_from
from rules.games.blackjack import count, is_blackjack
from rules.games.blackjack_decisions import Position
from rules.games.cards import DECK, PIPS
from rules.games.poker import CATEGORY, HEIGHT, strength
from rules.macau.blackjack import Blackjack
from rules.macau.blackjack_bets import FAMILIES
from rules.macau.stud_poker import StudPoker, StudPokerOptions
from simulators.lab.figures.figure import Weight

__all__ = [
    "PARTS",
    "ROUNDS",
    "SEED",
    "CardWantedError",
    "Mean",
    "Strategy",
    "Tally",
    "hand_played",
    "measured",
    "play_blackjack",
    "play_soft_17",
    "play_stud",
    "raises",
    "shared",
    "simulated",
]

SEED: Final = 1
# Parts of a run, for any number of processes.
PARTS: Final = 40
ROUNDS: Final = 10_000_000
"""Rounds that are simulated under each set of options."""
# The main bet or the ante: all its prizes are whole numbers.
STAKE: Final = 2
AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Mean(Struct, frozen=True):
    """A mean and its standard error."""

    mean: float
    error: float


class Tally(Struct):
    """Sums of one run, in whole numbers. Money is in units of half a bet; of doubles and raises in whole ones."""

    rounds: int = 0
    net: int = 0
    squares: int = 0
    won: int = 0
    lost: int = 0
    bets: int = 0
    """Number of doubles or raises."""
    bets_won: int = 0
    bets_net: int = 0
    bets_squares: int = 0
    specials: int = 0
    fives: int = 0
    equal: int = 0
    """Hands that differ only in suits, when the dealer opened."""
    other: int = 0
    """The player's additional gain in the same rounds under the published rules, or under other options."""
    other_squares: int = 0
    other_won: int = 0
    """Number of additional rounds won under them."""

    def __add__(self, more: "Tally") -> "Tally":
        """The sum of both."""
        return Tally(*(getattr(self, field) + getattr(more, field) for field in self.__struct_fields__))

    def edge(self) -> Mean:
        """The house edge on the first bet."""
        return _mean(-self.net, self.squares, self.rounds, STAKE)

    def bets_edge(self) -> Mean:
        """The house edge on one unit doubled or raised."""
        return _mean(-self.bets_net, self.bets_squares, self.bets, 1)

    def differs(self) -> Mean:
        """The house edge on the first bet, less that in the other game."""
        return _mean(self.other, self.other_squares, self.rounds, STAKE)


def _mean(total: int, squares: int, number: int, unit: int) -> Mean:
    mean = total / number
    return Mean(mean / unit, sqrt((squares / number - mean * mean) / number) / unit)


def simulated(tally: Tally, edge: Mean | None = None) -> str:
    """The method of a figure, as text."""
    words = f"simulated: {tally.rounds:,} rounds through the ruleset, seed {SEED}"
    return words if edge is None else f"{words}, standard error of the edge {edge.error * 100:.4f} %"


def measured(won: int, number: int, tally: Tally, edge: Mean | None, more: str = "") -> Weight:
    """A figure counted in a simulation."""
    kept = None if edge is None else Fraction(edge.mean)
    return Weight(Fraction(won, number), kept, simulated(tally, edge) + more)


def shared(part: "partial[Tally]", rounds: int) -> Tally:
    """Play the rounds in parts, on every core that this process may use."""
    number = min(PARTS, rounds)
    sizes = [rounds // number + (place < rounds % number) for place in range(number)]
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(cores) as pool:
        return sum(pool.map(part, range(number), sizes), Tally())


def _seen(event: Event) -> Envelope:
    return Envelope("figures", "figures", AT, event)


# ---- blackjack

# Hard or soft, how many cards (6: or more), totals, and what to do against 2 to 10 and the ace: Stand, Hit, Double (d:
# or stand, where that is not allowed), suRrender (or hit), Five cards for half the bet. Totals that stand against every
# card are left out. The optimum by total and number of cards for infinite decks, with a bank that draws to ace and six.
HANDS: Final = """
hard 2 4-8   HHHHHHHHHH
hard 2 9     HDDDDHHHHH
hard 2 10    DDDDDDDDHH
hard 2 11    DDDDDDDDDH
hard 2 12    HHSSSHHHHH
hard 2 13    SSSSSHHHHH
hard 2 14-15 SSSSSHHHRH
hard 2 16    SSSSSHHRRH
soft 2 12-13 HHHHHHHHHH
soft 2 14    HHHHDHHHHH
soft 2 15    HHHDDHHHHH
soft 2 16    HHDDDHHHHH
soft 2 17    HDDDDHHHHH
soft 2 18    SddddSSHHH
soft 2 19    SSSSdSSSSS
hard 3 4-11  HHHHHHHHHH
hard 3 12    HHHSSHHHHH
hard 3 13-16 SSSSSHHHHH
soft 3 12-17 HHHHHHHHHH
soft 3 18    HHSSSSHHHH
hard 4 5-13  HHHHHHHHHH
hard 4 14    HHHHSHHHHH
hard 4 15    HSSSSHHHHH
hard 4 16    SSSSSHHHHH
soft 4 12-18 HHHHHHHHHH
soft 4 19    HHHHHSSHHS
soft 4 20    SSSSSSSSHS
hard 5 6-16  FFFFFFFFFH
hard 5 17-18 FFFFFFFFFS
hard 5 19    FFFFFSSFFS
hard 5 20    SSSSSSSSFS
soft 5 12-18 FFFFFFFFFH
soft 5 19    FFFFFSSFFS
soft 5 20    SSSSSSSSFS
hard 6 6-11  HHHHHHHHHH
hard 6 12    HHSSSHHHHH
hard 6 13-16 SSSSSHHHHH
soft 6 12-17 HHHHHHHHHH
soft 6 18    SSSSSSSHHH
"""
# After a peek the bank's ten hides no blackjack.
PEEKED: Final = """
hard 2 14    SSSSSHHHHH
hard 5 20    SSSSSSSSSS
soft 4 20    SSSSSSSSSS
soft 5 20    SSSSSSSSSS
"""
# Pairs by the value of one card, to be split (P) or played as their total.
PAIRS: Final[dict[int, str]] = {
    1: "PPPPPPPPPP",
    2: "PPPPPP....",
    3: "PPPPPP....",
    4: "...PP.....",
    6: "PPPPP.....",
    7: "PPPPPP....",
    8: "PPPPPPPP.P",
    9: "PPPPP.PP..",
}
PEEKED_PAIRS: Final[dict[int, str]] = {8: "PPPPPPPPPP"}
UPS: Final = (2, 3, 4, 5, 6, 7, 8, 9, 10, 1)
ACTIONS: Final = {"S": "stand", "H": "hit", "D": "double", "P": "split", "R": "surrender", "F": "five_cards"}


class Strategy:
    """A player's decisions. Without `five_cards` he never takes half for five cards, and plays as if that did not
    exist.
    """

    def __init__(self, *, peeked: bool, five_cards: bool) -> None:
        """Read the tables."""
        self._hands: dict[tuple[bool, int, int, int], str] = {}
        for line in (HANDS + (PEEKED if peeked else "")).split("\n"):
            if not line:
                continue
            kind, cards, totals, row = line.split()
            first, _, last = totals.partition("-")
            for total in range(int(first), int(last or first) + 1):
                for up, letter in zip(UPS, row, strict=True):
                    self._hands[kind == "soft", int(cards), total, up] = letter
        pairs = PAIRS | (PEEKED_PAIRS if peeked else {})
        self._pairs = {(card, up): pairs[card][n] == "P" for card in pairs for n, up in enumerate(UPS)}
        self._many = {n: n if five_cards or n == 2 else 6 for n in range(2, 6)}

    def action(self, cards: tuple[str, ...], up: int, *, split: bool, may_split: bool) -> str:
        """The decision by the strategy's tables."""
        number = len(cards)
        if may_split and number == 2 and cards[0][0] == cards[1][0] and self._pairs.get((PIPS[cards[0]], up)):
            return "split"
        total, soft = count(cards)
        letter = self._hands.get((soft, self._many.get(number, 6), total, up), "S")
        if letter == "d":
            letter = "D"
        elif letter == "R" and split:
            letter = "H"
        return ACTIONS[letter]


def play_blackjack(options: Mapping[str, Any], rounds: int, *, five_cards: bool = True) -> Tally:
    """Play rounds of one seat with the main bet."""
    return shared(partial(_blackjack, dict(options), five_cards), rounds)


def play_soft_17(reading: str, rounds: int) -> Tally:
    """Rounds with the default options, each also with `reading` as the bank's option for a soft 17."""
    return shared(partial(_soft_17, reading), rounds)


def _table(options: Mapping[str, Any]) -> Blackjack:
    return Blackjack(options_from(Blackjack, {"bets_offered": ",".join(FAMILIES), **options}, text=True))


def _blackjack(options: dict[str, Any], five_cards: bool, part: int, rounds: int) -> Tally:
    return BlackjackPart(_table(options), five_cards=five_cards).play(Random(f"blackjack {SEED} {part}"), rounds)


def _soft_17(reading: str, part: int, rounds: int) -> Tally:
    """Up to a soft 17 of the bank both rounds are the same; from there each draws its own cards."""
    played = BlackjackPart(_table({}), five_cards=True, beside=_table({"soft_17": reading}))
    return played.play(Random(f"blackjack {SEED} {part}"), rounds)


class BlackjackPart:
    """One seat against the bank."""

    def __init__(self, ruleset: Blackjack, *, five_cards: bool, beside: Blackjack | None = None) -> None:
        """Build the state up to the bell, which is the same for every round."""
        self._ruleset = ruleset
        self._beside = beside
        self._peeks = ruleset.options.procedure == "3"
        self._strategy = Strategy(peeked=self._peeks, five_cards=five_cards)
        self._bell = ruleset.start("figures")
        laid = (WagerPlaced(1, "main", STAKE), WagerPlaced(1, "winning_streak_2", STAKE))
        for event in (BetsOpened(), *laid, BetsClosed()):
            self._bell, _ = ruleset.apply(self._bell, _seen(event))
        numbers = range(1, ruleset.options.max_hands + 1)
        self._acts = {
            (number, action): _seen(SeatActed(1, action, number)) for number in numbers for action in ACTIONS.values()
        }
        self._peeked = {blackjack: _seen(HoleCardPeeked(blackjack)) for blackjack in (False, True)}
        self._shoe = [_seen(CardDrawn(card)) for card in DECK * ruleset.options.decks]

    def play(self, rng: Random, rounds: int) -> Tally:
        """Play rounds, each from a full shoe that is shuffled as far as it is dealt."""
        tally = Tally(rounds)
        apply, beside = self._ruleset.apply, self._beside
        for _ in range(rounds):
            state, dealt, result, more = self._bell, 0, None, None
            while result is None:
                seen = self._decided(state)
                if seen is None:
                    seen, dealt = self._drawn(rng, dealt), dealt + 1
                    if beside is not None and more is None and _soft_17_next(state, seen):
                        more = self._beside_from(beside, state, seen, rng, dealt)
                state, verdicts = apply(state, seen)
                if verdicts:
                    result = _result(verdicts)
            _count_blackjack(tally, result, state)
            if more is not None:
                other = _gain(more[0]) - _gain(result)
                tally.other += other
                tally.other_squares += other * other
                tally.other_won += _won(more[1]) - _won(state)
        return tally

    def _drawn(self, rng: Random, dealt: int) -> Envelope:
        shoe = self._shoe
        place = dealt + int(rng.random() * (len(shoe) - dealt))
        seen = shoe[place]
        shoe[place], shoe[dealt] = shoe[dealt], seen
        return seen

    def _beside_from(
        self, beside: Blackjack, state: Table[Position], seen: Envelope, rng: Random, dealt: int
    ) -> tuple[Result, Table[Position]]:
        """The end of the round under the other options: only the bank still draws."""
        while True:
            state, verdicts = beside.apply(state, seen)
            if verdicts:
                return _result(verdicts), state
            seen, dealt = self._drawn(rng, dealt), dealt + 1

    def _decided(self, state: Table[Position]) -> Envelope | None:
        """The next event; None if it is a card."""
        play = state.position.play
        assert play is not None
        if play.dealt < play.first_deal:
            return None
        up = PIPS[play.bank[0]]
        if self._peeks and up in (1, 10) and not play.peeked and not play.shown:
            return self._peeked[is_blackjack(play.bank)]
        if play.turn == len(play.hands):
            return None
        hand = play.hands[play.turn]
        if play.asked or len(hand.cards) == 1:
            return None
        may_split = len(play.hands) < self._ruleset.options.max_hands
        return self._acts[hand.number, self._strategy.action(hand.cards, up, split=hand.split, may_split=may_split)]


def _result(verdicts: tuple[Verdict, ...]) -> Result:
    """The result of a round. A verdict other than its end means that it was not played by the rules."""
    (verdict,) = verdicts
    if not isinstance(verdict, Resolved) or verdict.result.irregularities:
        raise RuntimeError(f"a round went wrong: {verdict}")
    return verdict.result


def _soft_17_next(state: Table[Position], seen: Envelope) -> bool:
    """Whether this card makes the bank's hand a soft 17."""
    play = state.position.play
    if play is None or play.dealt < play.first_deal or play.turn < len(play.hands):
        return False
    assert isinstance(seen.event, CardDrawn)
    return count((*play.bank, seen.event.card)) == (17, True)


def _gain(result: Result) -> int:
    return sum(one.returned - one.stake for one in result.settlements if one.bet in ("main", "double"))


def _won(state: Table[Position]) -> bool:
    """Whether the button of the streak has advanced."""
    return bool(state.position.streaks) and state.position.streaks[0].wins == 1


def _count_blackjack(tally: Tally, result: Result, state: Table[Position]) -> None:
    for one in result.settlements:
        if one.bet == "double":
            gain = (one.returned - one.stake) // STAKE
            tally.bets += 1
            tally.bets_net += gain
            tally.bets_squares += gain * gain
            tally.bets_won += gain > 0
    net = _gain(result)
    tally.net += net
    tally.squares += net * net
    tally.won += _won(state)
    tally.lost += not state.position.streaks
    ends = result.outcome["ended"].values()
    tally.specials += "special" in ends
    tally.fives += "five_cards" in ends


class CardWantedError(Exception):
    """The seat's cards are used up before the end of the round."""


def hand_played(
    ruleset: Blackjack, mine: Sequence[str], bank: Sequence[str] = ("TD", "7H"), *, splits: bool = True
) -> Result:
    """A round of a seat that receives these cards; it splits all pairs or none, otherwise stands, and is insured.

    `bank`: the bank's first cards; tens follow.
    """
    cards, banks = iter(mine), chain(bank, repeat("TD"))
    state = ruleset.start("figures")
    events: list[Event] = [SeatOpened(1), BetsOpened(), BetsClosed()]
    insured = PIPS[bank[0]] != 1
    while True:
        for event in events:
            state, verdicts = ruleset.apply(state, _seen(event))
            for verdict in verdicts:
                if isinstance(verdict, Resolved):
                    return verdict.result
        due = ruleset.view(state).detail["due"]
        if due["kind"] == "card":
            card = next(banks if due["hand"] == "dealer" else cards, None)
            if card is None:
                raise CardWantedError
            events = [CardDrawn(card)]
        elif not insured:
            insured, events = True, [SeatActed(1, "insurance")]
        elif due["kind"] == "peek":
            events = [HoleCardPeeked(is_blackjack(tuple(bank[:2])))]
        else:
            number = int(due["hand"].partition(".")[2])
            events = [SeatActed(1, "split" if splits and "split" in due["actions"] else "stand", number)]


# ---- stud poker

# What the published game pays a raise with a royal flush.
PUBLISHED_ROYAL: Final = 100
_PAIR: Final = CATEGORY["one_pair"]
_ACE_KING: Final = HEIGHT["A"] << 4 | HEIGHT["K"]


def raises(strength_: int, ranks: str, up: str) -> bool:
    """Whether a hand is raised: a pair or better, and ace-king by the three usual rules of thumb.

    With ace and king it is raised if the dealer shows one of the hand's ranks from two to queen; if he shows an ace or
    a king and the hand has a queen or a jack; if he shows a rank that is not in the hand and is lower than its fourth
    card, and the hand has a queen.
    """
    if strength_ >> 20 >= _PAIR:
        return True
    if strength_ >> 12 & 0xFF != _ACE_KING:
        return False
    if up in "AK":
        return "Q" in ranks or "J" in ranks
    if up in ranks:
        return True
    return "Q" in ranks and HEIGHT[up] < (strength_ >> 4 & 15)


class Stud(Struct, frozen=True):
    """How the stud poker of a jurisdiction is played here: its ruleset without a jackpot, and the packets before the
    hands.
    """

    ruleset: Callable[[], Ruleset[Any]]
    before: tuple[Event, ...] = ()


STUD: Final = {
    "macau.stud-poker": Stud(lambda: StudPoker(StudPokerOptions(bets_offered=("ante", "raise")))),
    "angola.stud-poker": Stud(
        lambda: AngolaStudPoker(AngolaStudPokerOptions(jackpot="none")), before=(HandDispensed(1),)
    ),
}


def play_stud(name: str, rounds: int) -> Tally:
    """Play rounds of one seat with an ante."""
    return shared(partial(_stud, name), rounds)


def _stud(name: str, part: int, rounds: int) -> Tally:
    ruleset = STUD[name].ruleset()
    events = (SeatOpened(1), BetsOpened(), WagerPlaced(1, "ante", STAKE), BetsClosed(), *STUD[name].before)
    dealt = ruleset.start("figures")
    for event in (*events, HandDispensed(5), HandDispensed(5)):
        dealt, _ = ruleset.apply(dealt, _seen(event))
    raised, _ = ruleset.apply(dealt, _seen(SeatActed(1, "raise")))
    _, verdicts = ruleset.apply(dealt, _seen(SeatActed(1, "fold")))
    folded = _result(verdicts)
    random = Random(f"stud poker {SEED} {part}").random
    deck, tally = list(DECK), Tally(rounds)
    for _ in range(rounds):
        for n in range(10):
            place = n + int(random() * (52 - n))
            deck[n], deck[place] = deck[place], deck[n]
        mine, dealers = tuple(deck[:5]), tuple(deck[5:10])
        found = strength(mine)
        if raises(found, "".join([card[0] for card in mine]), dealers[4][0]):
            _, verdicts = ruleset.apply(raised, _seen(DealCorrected({"dealer": dealers, "seat_1": mine})))
            result = _result(verdicts)
        else:
            result = folded
        _count_stud(tally, result, found, dealers)
    return tally


def _count_stud(tally: Tally, result: Result, found: int, dealers: tuple[str, ...]) -> None:
    net = 0
    for one in result.settlements:
        gain = one.returned - one.stake
        net += gain
        if one.bet == "raise":
            tally.bets += 1
            tally.bets_net += gain // one.stake
            tally.bets_squares += (gain // one.stake) ** 2
            tally.bets_won += gain > 0
    tally.net += net
    tally.squares += net * net
    tally.won += any(win.bet == "ante" for win in result.winners)
    if not result.outcome["opens"]:
        return
    more = 0
    if strength(dealers) == found:
        tally.equal += 1
        more = -net
    elif found >> 20 == CATEGORY["royal_flush"]:
        # Both are paid on the raise, which is twice the ante.
        more = (PUBLISHED_ROYAL - (net - STAKE) // (2 * STAKE)) * 2 * STAKE
    tally.other += more
    tally.other_squares += more * more
