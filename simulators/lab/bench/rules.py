"""`feltd bench rules`: how many events a second each ruleset applies on one core, with results built and encoded.

Whole rounds as their tables report them, console included, with the chips of a busy table and without any. The events
are decoded once, then applied again and again. The yardstick of the same run is decoding the same envelopes from JSON.
A turn with an unresolved round ends as an error, without a figure.

The replay reads a journal of very many rounds of baccarat from its envelopes to the bytes of every verdict, twice, in
two processes with different hash seeds: the same events must give the same bytes.
"""

import hashlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from random import Random
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    CardDrawn,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceThrown,
    DiceUncovered,
    Event,
    MachineIdentified,
    MachineMeters,
    RoundPaid,
    SeatActed,
    SeatOpened,
    ShoeStarted,
    SpinStarted,
    TableClosed,
    WagerPlaced,
)
from protocols.contract.topics import Envelope, decode_envelope, encode_envelope
from rules import RULESETS
from rules.engine.ruleset import Resolved, Ruleset, options_from
from rules.games.baccarat import NO_CARD, due
from rules.games.cards import DECK, POINTS, points
from rules.games.chemin_coup import banker_rule
from rules.games.poker_hands import SYNTHETIC_DECK
from simulators.lab.bench.machine import machine

__all__ = ["GOAL", "MIXES", "REPLAY_GOAL", "RulesReport", "RulesRow", "bench_rules", "replay", "rules_markdown"]

GOAL: Final = 100_000
REPLAY_GOAL: Final = 120.0
ROUNDS: Final = 2000
REPLAYED: Final = 1_000_000
TURNS: Final = 5
# Rounds of a replay that are in memory at once.
CHUNK: Final = 1000

Round: TypeAlias = tuple[Event, ...]
Betting: TypeAlias = Callable[[], Round]

BEGAN: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
CHIPS: Final = (1_000, 2_000, 5_000, 10_000, 50_000)


class Mix(Struct, frozen=True):
    """How a table is played. `game` yields whole rounds without end; its second argument lays `chips` of the `bets`.

    Without `chips` there are no bets. `laid_in_turn`: the players bet by their actions during the round.
    """

    game: Callable[[Random, Betting], Iterator[Round]]
    seats: int = 0
    bets: tuple[str, ...] = ()
    chips: int = 0
    options: Mapping[str, Any] = {}
    laid_in_turn: bool = False


def _shoe(rng: Random, _: Betting) -> Iterator[Round]:
    """A coup is its cards; the first coup of a shoe comes after the burn."""
    while True:
        shoe = list(DECK) * 8
        rng.shuffle(shoe)
        start: Round = (ShoeStarted(8), *(CardDrawn(shoe.pop()) for _ in range(8)))
        while len(shoe) > 14:
            cards: tuple[str, ...] = ()
            while due(cards) is not None:
                cards += (shoe.pop(),)
            yield (*start, *map(CardDrawn, cards))
            start = ()


def _baccarat(rng: Random, betting: Betting) -> Iterator[Round]:
    """The burn of a shoe comes before its first bets."""
    for events in _shoe(rng, betting):
        start, coup = (events[:9], events[9:]) if isinstance(events[0], ShoeStarted) else ((), events)
        yield (*start, BetsOpened(), *betting(), BetsClosed(), *coup, RoundPaid())


def _angola_baccarat(rng: Random, betting: Betting) -> Iterator[Round]:
    """A card is burnt after the bell of each coup but the first of a shoe."""
    for events in _shoe(rng, betting):
        start, coup = (events[:9], events[9:]) if isinstance(events[0], ShoeStarted) else ((), events)
        burnt = () if start else (CardDrawn(rng.choice(DECK)),)
        yield (*start, BetsOpened(), *betting(), BetsClosed(), *burnt, *coup, RoundPaid())


def _chemin(rng: Random, betting: Betting) -> Iterator[Round]:
    """Six players; a banker who loses passes the hand. Punters cover the bank, or one makes banco if none bets.

    Punter and banker decide as the rules require. The first card of a shoe comes while its first bets are laid.
    """
    seats, banker, bank = tuple(range(1, 7)), 1, 0
    start: Round = tuple(map(SeatOpened, seats))
    while True:
        shoe = list(DECK) * 6
        rng.shuffle(shoe)
        start = (*start, ShoeStarted(6))
        burnt: Round = (CardDrawn("KS"),)
        while len(shoe) > 14:
            told = () if bank else (SeatActed(banker, "bank", amount=10_000),)
            bank = bank or 10_000
            punters = [seat for seat in seats if seat != banker]
            covers = [WagerPlaced(seat, "cover", 100 * rng.randint(1, 5)) for seat in punters if betting()]
            mine = max(covers, key=lambda one: (one.amount, -((one.seat - banker) % 9))).seat if covers else punters[0]
            laid: Round = (*covers,) or (SeatActed(mine, "banco"),)
            cards = [shoe.pop() for _ in range(4)]
            player, his, draws = points(cards[0::2]), points(cards[1::2]), tuple[Event, ...]()
            shows = player > 7
            said = "show" if shows else "draw" if player < 5 else "stand"
            if not shows and his < 8:
                thirds = [shoe.pop()] if said == "draw" else []
                chooses = not covers and his > 0  # under banco, unless he has 0
                rule = "free" if chooses else banker_rule(his, POINTS[thirds[0]] if thirds else NO_CARD)
                draws = tuple(map(CardDrawn, thirds))
                player = points((cards[0], cards[2], *thirds))
                if rule == "free":
                    draws += (SeatActed(banker, "draw"),)
                if rule != "stands":
                    cards.append(shoe.pop())
                    draws += (CardDrawn(cards[-1]),)
                    his = points((cards[1], cards[3], cards[-1]))
            words: Round = (SeatActed(mine, said), SeatActed(banker, "show"), *draws)
            words += () if shows else (SeatActed(mine, "show"),)
            dealt = map(CardDrawn, cards[:4])
            yield (*start, BetsOpened(), *burnt, *told, *laid, BetsClosed(), *dealt, *words, RoundPaid())
            start, burnt = (), ()
            if player > his:
                banker, bank = banker % 6 + 1, 0


def _shaker(rng: Random, betting: Betting) -> Iterator[Round]:
    shaken = (DiceCovered(), DiceAgitated("lever"), DiceAgitated("lever"), DiceAgitated("lever"), BetsOpened())
    while True:
        faces = (rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 6))
        yield (*shaken, *betting(), BetsClosed(), DiceUncovered(), DiceRead(faces), RoundPaid())


def _thrown(rng: Random, betting: Betting) -> Iterator[Round]:
    """Thrown by hand until a total decides: three to four throws a round."""
    deciding = (3, 5, 6, 7, 14, 15, 16)
    while True:
        throws = [DiceThrown((rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 6)))]
        while sum(throws[-1].faces) not in deciding:
            throws.append(DiceThrown((rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 6))))
        yield (BetsOpened(), *betting(), BetsClosed(), *throws, RoundPaid())


def _wheel(rng: Random, betting: Betting) -> Iterator[Round]:
    launch = (BetsClosed(), BallLaunched("clockwise", "anticlockwise"), BallSettling())
    while True:
        yield (SpinStarted(), BetsOpened(), *betting(), *launch, BallLanded(str(rng.randrange(37))), RoundPaid())


def _alternating_wheel(rng: Random, betting: Betting) -> Iterator[Round]:
    """The ball runs in one direction and then in the other; the call comes while it runs."""
    one, other = BallLaunched("clockwise", "anticlockwise"), BallLaunched("anticlockwise", "clockwise")
    for launch in cycle((one, other)):
        call = (launch, BetsClosed(), BallLanded(str(rng.randrange(37))), RoundPaid())
        yield (BetsOpened(), *betting(), *call)


def _announced(rng: Random, betting: Betting) -> Iterator[Round]:
    """Chips on the cloth, and three announced bets."""
    called = (("large_series", 9_000), ("neighbours:17-5", 5_000), ("orphans", 5_000))
    laid = tuple(WagerPlaced(seat, bet, amount) for seat, (bet, amount) in enumerate(called, 1))

    def more() -> Round:
        chips = betting()
        return (*chips, *laid) if chips else ()

    return _alternating_wheel(rng, more)


def _heap(rng: Random, betting: Betting) -> Iterator[Round]:
    while True:
        count = ButtonsCounted(rng.randint(40, 80))
        yield (ButtonsSeparated(), BetsOpened(), *betting(), BetsClosed(), count, RoundPaid())


def _throw(rng: Random, betting: Betting) -> Iterator[Round]:
    """Series of throws; bets that a throw does not decide stay for the next."""
    while True:
        thrown = DiceThrown((rng.randint(1, 6), rng.randint(1, 6)))
        yield (BetsOpened(), *betting(), BetsClosed(), thrown, RoundPaid())


def _stud(rng: Random, betting: Betting, burnt: int = 0) -> Iterator[Round]:
    """Five players and a reading shoe. Each lays an ante, or none does; three also bet on the jackpot."""
    seats = range(1, 6)
    opened: Round = tuple(map(SeatOpened, seats))
    laid = tuple(WagerPlaced(seat, "ante", 10_000) for seat in seats)
    laid += tuple(WagerPlaced(seat, "jackpot", 1_000) for seat in (1, 3, 4))
    while True:
        cards = map(CardDrawn, rng.sample(DECK, 30 + burnt))
        acts = tuple(SeatActed(seat, "raise" if rng.random() < 0.52 else "fold") for seat in seats)
        yield (*opened, BetsOpened(), *(laid if betting() else ()), BetsClosed(), *cards, *acts, RoundPaid())
        opened = ()


def _angola_stud(rng: Random, betting: Betting) -> Iterator[Round]:
    """As Macau's, with a card burnt before the deal."""
    return _stud(rng, betting, 1)


def _poker(rng: Random, deck: Sequence[str], own: int, *, ante: bool) -> Iterator[Round]:
    """Eight players and a reading shoe. About half of them give up at once; a bet on the fourth common card."""
    idle = dict.fromkeys(range(1, 9), 0)  # a player who sat out five deals posts a big bet, 14(18)
    first, streets, burns = 0, (1, 1, 1, 1, 1) if ante else (3, 1, 1), int(not ante)
    while True:
        order = [(first + place) % 8 + 1 for place in range(8)]
        cards = [CardDrawn(card) for card in rng.sample(deck, 8 * own + 8)]
        events: list[Event] = [*(SeatActed(seat, "stack", amount=100_000) for seat in order), BetsOpened()]
        events += [SeatActed(seat, "post") for seat in (order if ante else order[:2])]
        events += [cards.pop() for _ in range(8 * own)]
        if not ante:
            leave = {seat for seat in order if rng.random() < 0.5 and idle[seat] < 4}
            acts = [(seat, "fold" if seat in leave else "call") for seat in (*order[2:], order[0])]
            idle = {seat: idle[seat] + 1 if seat in leave and seat in order[2:] else 0 for seat in order}
            events += [SeatActed(seat, word) for seat, word in acts] + [SeatActed(order[1], "check")]
            order = [seat for seat in order if (seat, "fold") not in acts]
        order = order[1:] + order[:1] if ante else order
        for number, count in enumerate(streets):
            bets = number == len(streets) - 2 and len(order) > 1
            events += [cards.pop() for _ in range(burns + count)] if len(order) > 1 else []
            acts = [(order[0], "bet" if bets else "check")]
            acts += [(seat, "check" if not bets else "fold" if rng.random() < 0.5 else "call") for seat in order[1:]]
            events += [SeatActed(seat, word, amount=400 * (word == "bet")) for seat, word in acts if len(order) > 1]
            order = [seat for seat in order if (seat, "fold") not in acts]
        events += [SeatActed(seat, "show") for seat in order if len(order) > 1]
        yield (*events, RoundPaid())
        first += 1


def _holdem(rng: Random, _: Betting) -> Iterator[Round]:
    return _poker(rng, DECK, 2, ante=False)


def _omaha(rng: Random, _: Betting) -> Iterator[Round]:
    return _poker(rng, DECK, 4, ante=False)


def _synthetic(rng: Random, _: Betting) -> Iterator[Round]:
    return _poker(rng, SYNTHETIC_DECK, 2, ante=True)


def _machine(rng: Random, _: Betting) -> Iterator[Round]:
    """A period of a machine, whose meters are read after every few games."""
    meters = dict.fromkeys(("coin_in", "coin_out", "jackpot", "drop", "games_played"), 0)
    while True:
        told: list[Event] = [BetsOpened(), MachineIdentified(paytable="LUCKY", return_bp=9000, credit=1)]
        for _n in range(40):
            games = rng.randint(1, 4)
            meters["games_played"] += games
            meters["coin_in"] += 50 * games
            meters["coin_out"] += rng.randint(0, 90) * games
            told.append(MachineMeters(dict(meters)))
        yield (*told, TableClosed())


def _macau_blackjack(rng: Random, betting: Betting) -> Iterator[Round]:
    """Additional bets of five of the seats."""
    beside = ((1, "any_pair"), (2, "sevens"), (4, "over_13"), (5, "under_13"), (7, "any_pair:1"))
    return _blackjack(rng, betting, "macau.blackjack", beside, burnt=6)


def _angola_blackjack(rng: Random, betting: Betting) -> Iterator[Round]:
    """Five players also bet on the seat of another."""
    beside = ((1, "main:2"), (2, "main:1"), (4, "main:7"), (5, "main:7"), (7, "main:1"))
    return _blackjack(rng, betting, "angola.blackjack", beside, burnt=1)


def _blackjack(
    rng: Random, betting: Betting, name: str, beside: Sequence[tuple[int, str]], *, burnt: int
) -> Iterator[Round]:
    """Seven players. The ruleset names the hand whose card or decision it waits for; a shoe is shuffled when a quarter
    is left.

    The bets are one on every seat and those of `beside`, or none at all.
    """
    ruleset = ruleset_of(name)
    seats = range(1, 8)
    laid = tuple(WagerPlaced(seat, "main", 10_000) for seat in seats)
    laid += tuple(WagerPlaced(seat, bet, 1_000) for seat, bet in beside)
    start: Round = tuple(map(SeatOpened, seats))
    state, shoe = ruleset.start("t1"), list[str]()
    while True:
        if len(shoe) < 78:
            shoe = list(DECK) * 6
            rng.shuffle(shoe)
            start += (ShoeStarted(6), *(CardDrawn(shoe.pop()) for _ in range(burnt)))
        events = [*start, BetsOpened(), *(laid if betting() else ()), BetsClosed()]
        start, applied = (), 0
        while True:
            for event in events[applied:]:
                state, _ = ruleset.apply(state, Envelope("", "", BEGAN, event))
            applied = len(events)
            view = ruleset.view(state)
            if view.phase == "resolved":
                break
            due = view.detail["due"]
            if due["kind"] == "card":
                events.append(CardDrawn(shoe.pop()))
            else:
                number = int(due["hand"].partition(".")[2])
                action = _wish(due["actions"], view.detail["totals"][due["hand"]])
                events.append(SeatActed(due["seat"], action, number))
        yield (*events, RoundPaid())


def _wish(actions: Sequence[str], total: int) -> str:
    """The decision of a player who sees only his own hand."""
    if "split" in actions and total in (12, 16):
        return "split"
    if "double" in actions and total in (10, 11):
        return "double"
    return "hit" if "hit" in actions and total < 15 else "stand"


ANGOLAN_CLOTH: Final = (
    *("red", "black", "low", "high", "odd", "even", "dozen:1", "column:2", "double_dozen:1-2", "double_column:2-3"),
    *("straight:0", "straight:17", "straight:32", "split:0-1", "split:17-20", "street:13-14-15"),
    *("corner:25-26-28-29", "line:31-32-33-34-35-36"),
)
_SIDES: Final = ("player", "banker", "player", "banker", "tie", "player_pair", "banker_pair")

# By the ruleset's id, and after a comma the difference of its table from the usual one.
_OWN: Final[dict[str, Mix]] = {
    "macau.baccarat, a shoe alone": Mix(_shoe),
    "macau.baccarat": Mix(
        _baccarat,
        7,
        ("player", "banker", "player", "banker", "tie", "player_pair", "banker_pair", "dragon_7", "lucky_6"),
        10,
        {"opening": "bell"},
    ),
    "angola.blackjack": Mix(_angola_blackjack, 7, ("main", "main", "main:2", "main:5"), 12),
    "macau.blackjack": Mix(_macau_blackjack, 7, ("main", "any_pair", "sevens", "over_13", "under_13"), 12),
    "macau.cussec": Mix(
        _shaker,
        12,
        (
            "small",
            "big",
            "small",
            "big",
            "even",
            "odd",
            "single:3",
            "total:9",
            "two_dice:1-6",
            "any_triple",
            "triple:6",
        ),
        20,
    ),
    "macau.fantan": Mix(
        _heap,
        8,
        ("fan:1", "fan:4", "nim:1-2", "nim:3-4", "nga:1-2-3", "sesamhong:2-3-4", "kuoc:1-2", "kuoc:3-4"),
        15,
    ),
    "macau.fish-prawn-crab": Mix(
        _shaker,
        12,
        ("small", "big", "figure:fish", "figure:crab", "one_colour:red", "two_colour:green", "same_colour", "total:9"),
        20,
    ),
    "macau.roulette": Mix(
        _wheel,
        8,
        (
            *("red", "black", "low", "high", "odd", "even", "dozen:1", "column:2", "sector_a"),
            *("straight:0", "straight:17", "straight:32", "split:8-11", "split:17-20", "street:13-14-15"),
            *("corner:25-26-28-29", "line:31-32-33-34-35-36"),
        ),
        30,
    ),
    "angola.cussec": Mix(
        *(_shaker, 12),
        *(("small", "big", "small", "big", "single:3", "total:9", "two_dice:1-6", "any_triple", "triple:6"), 20),
    ),
    "angola.french-bank": Mix(_thrown, 12, ("aces", "small", "big", "small", "big", "small_line", "big_line"), 20),
    "angola.craps": Mix(
        _throw,
        8,
        (
            *("big_6", "big_8", "place:4", "place:5", "place:6", "place:9", "place:10", "place:8", "place_lose:4"),
            *("field", "hard_6", "hard_8", "any_craps", "eleven", "seven", "big_6", "under_7", "over_7"),
        ),
        15,
    ),
    "angola.chemin-de-fer": Mix(_chemin, 6, ("cover",), 5, laid_in_turn=True),
    "angola.gaming-machines": Mix(_machine, laid_in_turn=True),
    "angola.holdem": Mix(_holdem, laid_in_turn=True),
    "angola.omaha": Mix(_omaha, laid_in_turn=True),
    "angola.synthetic-poker": Mix(_synthetic, laid_in_turn=True),
    "angola.stud-poker": Mix(_angola_stud, 5, ("ante", "jackpot"), 8),
    "macau.stud-poker": Mix(_stud, 5, ("ante", "jackpot"), 8),
    "angola.american-roulette": Mix(_announced, 8, ANGOLAN_CLOTH, 27),
    "angola.french-roulette": Mix(_alternating_wheel, 8, ANGOLAN_CLOTH, 30),
    "angola.french-roulette, with limits": Mix(_alternating_wheel, 8, ANGOLAN_CLOTH[:10], 30, {"minimum": 1_000}),
    "angola.baccarat": Mix(_angola_baccarat, 7, _SIDES, 10, {"deduction": "2_percent", "both_sides": "accepted"}),
    "angola.baccarat-macau": Mix(
        _angola_baccarat,
        7,
        _SIDES,
        10,
        {"deduction": "5_percent", "both_sides": "accepted", "maximum_difference": 10_000_000},
    ),
}


def id_of(name: str) -> str:
    """The ruleset of a mix."""
    return name.partition(",")[0]


def _of_its_rounds(name: str) -> Mix:
    """A game without a mix of its own plays its whole rounds, with bets on the first places of its board."""
    kind: Any = RULESETS[name]

    def game(rng: Random, betting: Betting) -> Iterator[Round]:
        rounds = tuple(kind.whole_rounds())
        while True:
            events = rng.choice(rounds)
            place = events.index(BetsOpened()) + 1
            yield (*events[:place], *betting(), *events[place:], RoundPaid())

    return Mix(game, 8, kind(kind.Options()).board[:12], 15)


MIXES: Final = _OWN | {name: _of_its_rounds(name) for name in sorted(set(RULESETS) - {id_of(mix) for mix in _OWN})}


def rounds(mix: Mix, *, wagers: bool, seed: int = 1) -> Iterator[Round]:
    """An endless game, the same for the same seed."""
    rng = Random(seed)

    def betting() -> Round:
        """The chips of a round, of random seats on random bets."""
        return tuple(
            WagerPlaced(rng.randint(1, mix.seats), rng.choice(mix.bets), rng.choice(CHIPS))
            for _ in range(mix.chips if wagers else 0)
        )

    return mix.game(rng, betting)


def payloads(played: Iterator[Round]) -> Iterator[list[bytes]]:
    """Each round as the envelopes that its table's journal holds."""
    seq = 0
    for events in played:
        lines = []
        for event in events:
            seq += 1
            device = "felt/1/site/table/t1/device/console"
            at = BEGAN + timedelta(milliseconds=2500 * seq)
            lines.append(encode_envelope(Envelope(f"edge-1:t1:{seq}", device, at, event, seq, "5f0c", "a71e")))
        yield lines


class RulesRow(Struct, frozen=True):
    """One mix: chips and events of a round; events a second of each turn, and of the yardstick."""

    mix: str
    chips: int
    events: float
    turns: tuple[float, ...]
    yards: tuple[float, ...]

    @property
    def rate(self) -> float:
        """Events a second, the median."""
        return statistics.median(self.turns)

    @property
    def ratio(self) -> float:
        """The time to apply the events, as a multiple of the time to decode them."""
        return statistics.median(self.yards) / self.rate

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.rate >= GOAL


class Replayed(Struct, frozen=True):
    """One replay: CPU seconds from envelopes to verdicts, hashes of the input and of the output."""

    rounds: int
    events: int
    seconds: float
    events_hash: str
    verdicts_hash: str


class RulesReport(Struct, frozen=True):
    """One run. `replays`: the same journal in two processes."""

    machine: str
    date: str
    rows: tuple[RulesRow, ...]
    replays: tuple[Replayed, ...]

    @property
    def same(self) -> bool:
        """Whether the same events gave the same bytes."""
        return len({(one.events_hash, one.verdicts_hash) for one in self.replays}) == 1


def ruleset_of(name: str) -> Ruleset[Any]:
    """The ruleset with the options of its mix."""
    kind = RULESETS[id_of(name)]
    return kind(options_from(kind, dict(MIXES[name].options)))


def turn(ruleset: Ruleset[Any], seen: Sequence[Envelope], expected: int) -> float:
    """Events a second of CPU time through `ruleset`, each verdict encoded. Raises RuntimeError for a lost round.

    There may be more rounds than expected: midnight ends a period of a gaming machine and begins another.
    """
    encode = msgspec.json.Encoder().encode
    apply, state = ruleset.apply, ruleset.start("t1")
    ends = 0
    began = time.process_time()
    for one in seen:
        state, verdicts = apply(state, one)
        for verdict in verdicts:
            encode(verdict)
            ends += isinstance(verdict, Resolved)
    spent = time.process_time() - began
    if ends < expected:
        raise RuntimeError(f"{ruleset.id}: {ends} of {expected} rounds were resolved")
    return len(seen) / spent


def yard(lines: Sequence[bytes]) -> float:
    """Events a second of CPU time decoded from JSON."""
    began = time.process_time()
    for line in lines:
        decode_envelope(line)
    return len(lines) / (time.process_time() - began)


def replay(rounds_: int, seed: int = 1) -> Replayed:
    """Read, resolve and encode a journal of `rounds_` rounds of baccarat, without chips."""
    ruleset = ruleset_of("macau.baccarat")
    encode = msgspec.json.Encoder().encode
    state = ruleset.start("t1")
    came, went = hashlib.sha256(), hashlib.sha256()
    journal = islice(payloads(rounds(MIXES["macau.baccarat"], wagers=False, seed=seed)), rounds_)
    seconds, events, ends = 0.0, 0, 0
    while chunk := [line for lines in islice(journal, CHUNK) for line in lines]:
        came.update(b"\n".join(chunk))
        events += len(chunk)
        said: list[bytes] = []
        began = time.process_time()
        for line in chunk:
            state, verdicts = ruleset.apply(state, decode_envelope(line))
            for verdict in verdicts:
                said.append(encode(verdict))
                ends += isinstance(verdict, Resolved)
        went.update(b"\n".join(said))
        seconds += time.process_time() - began
    if ends != rounds_:
        raise RuntimeError(f"{ruleset.id}: {ends} of {rounds_} rounds were resolved")
    return Replayed(rounds_, events, round(seconds, 1), came.hexdigest(), went.hexdigest())


def replay_elsewhere(rounds_: int, hash_seed: int) -> Replayed:
    """The same in a process with another hash seed, whose sets of text have another order."""
    code = f"import msgspec, simulators.lab.bench.rules as b; print(msgspec.json.encode(b.replay({rounds_})).decode())"
    done = subprocess.run(  # noqa: S603 - this very program
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Replayed)


def bench_rules(
    say: Callable[[str], None],
    *,
    names: Sequence[str] = tuple(MIXES),
    turns: int = TURNS,
    rounds_: int = ROUNDS,
    replayed: int = REPLAYED,
) -> RulesReport:
    """Each ruleset in turn, `turns` times over, so that the machine's noise affects all; then the replays."""
    streams = {}
    for name in names:
        for wagers in (False, True) if MIXES[name].chips else (False,):
            lines = [line for one in islice(payloads(rounds(MIXES[name], wagers=wagers)), rounds_) for line in one]
            streams[name, wagers] = (lines, [decode_envelope(line) for line in lines])
    rates: dict[tuple[str, bool], list[tuple[float, float]]] = {key: [] for key in streams}
    for number in range(turns):
        for key, (lines, seen) in streams.items():
            rates[key].append((turn(ruleset_of(key[0]), seen, rounds_), yard(lines)))
        say(f"turn {number + 1} of {turns}: done")
    rows = tuple(
        RulesRow(
            name,
            MIXES[name].chips if wagers else 0,
            round(len(streams[name, wagers][0]) / rounds_, 1),
            tuple(round(rate) for rate, _ in measured),
            tuple(round(rate) for _, rate in measured),
        )
        for (name, wagers), measured in rates.items()
    )
    replays = []
    for hash_seed in (1, 2):
        replays.append(replay_elsewhere(replayed, hash_seed))
        say(f"replay {hash_seed} of 2: done")
    return RulesReport(
        machine(),
        datetime.now(UTC).date().isoformat(),
        rows,
        tuple(replays),
    )


def rules_markdown(report: RulesReport) -> str:
    """The report in Markdown, as docs/explanation/performance.md has its tables."""
    lines = [
        f"| ruleset | chips | events a round | events/s | rounds/s | times decoding | {GOAL:,} events/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in report.rows:
        met = "met" if row.met else "**not met**"
        speed = f"{row.rate:,.0f} | {row.rate / row.events:,.0f}"
        lines.append(f"| {row.mix} | {row.chips} | {row.events:.1f} | {speed} | {row.ratio:.2f} | {met} |")
    lines += ["", "| replay | rounds | events | s | its verdicts, SHA-256 |", "|---|---|---|---|---|"]
    for number, one in enumerate(report.replays, 1):
        hash_ = f"{one.verdicts_hash[:16]}…"
        lines.append(f"| {number} | {one.rounds:,} | {one.events:,} | {one.seconds:.1f} | {hash_} |")
    slowest = max((one.seconds for one in report.replays), default=0.0)
    met = "met" if slowest < REPLAY_GOAL else "**not met**"
    same = "the same bytes" if report.same else "**not the same bytes**"
    lines += ["", f"Twice the same journal: {same}. Under {REPLAY_GOAL:.0f} s: {met}."]
    lines += ["", f"Measured {report.date} on {report.machine}."]
    return "\n".join(lines)
