"""The behaviour of the rulesets, frozen: events made from a seed, and the SHA-256 of what each ruleset says of them.

`make corpus` writes `tests/corpus.sha256.toml`; with ARGS, `--check` compares with it, `--start` looks at the
beginning of each table only, `--out FOLDER` writes what is hashed as lines of JSON, to see where two versions differ.
A ruleset is fed through `judge`; of its inside nothing is used: the dealer here looks at the view, as everybody does.
Each option is played with each of its values, and with losses, late events, duplicates, corrections, voids and events
out of place.
"""

import argparse
import random
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import corpus_baccarat
import corpus_blackjack
import corpus_chemin
import corpus_craps
import corpus_dice
import corpus_machines
import corpus_poker
import corpus_roulette
import corpus_stud_poker
import msgspec
from corpus_dealing import Dealer, Options, Sample, Shown, deck, put_right, wagers
from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallReplaced,
    BallSettling,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    ButtonsUncovered,
    CardDrawn,
    CardExposed,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    DealCorrected,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceUncovered,
    Event,
    EventsMissed,
    HandDispensed,
    HoleCardPeeked,
    LampsLit,
    RoundDemo,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
    WheelStarted,
    WheelStopped,
    encode_data,
    type_of,
)
from protocols.contract.topics import Envelope
from rules import RULESETS
from rules.engine.ruleset import (
    BadOption,
    OptionInfo,
    Ruleset,
    judge,
    options_from,
    options_of,
    type_of as verdict_type,
)

HASHES: Final = Path(__file__).parents[1] / "corpus.sha256.toml"
EVENTS: Final = 100_000
"""Events for each ruleset, shared among its tables."""
BEGINNING: Final = 100
"""Events of each table that `make test` looks at."""
MIXED: Final = 8
"""Tables of each ruleset whose options are drawn at random."""
START: Final = datetime(2026, 11, 20, 20, 0, 0, tzinfo=UTC)
SOURCE: Final = "felt/1/site/table/t-1/device/d-1"

# ---- which options: each value once, with what it needs beside it, and some mixtures

EXAMPLES: Final[dict[str, tuple[Any, ...]]] = {
    "smallest_chip": (1, 25),
    "maximum_prize": (0, 1_000),
    "table_maximum": (0, 300),
    "c_six_share": ("1/10", "1/5"),
    "nines": ([], [[22, 18, 29, 7, 28, 12, 35, 3, 26]]),
    "red": ([1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36], list(range(2, 37, 2))),
    "doubling": (["first_two", "split_pair"], ["eleven"], ["first_two", "split_pair", "eleven"]),
}
EVERY_BET: Final = ("any_pair", "sevens", "over_13", "under_13", "perfect_pair")
STREAKS: Final = ("winning_streak_2", "winning_streak_3", "winning_streak_4", "winning_streak_5")
BETS_OFFERED: Final[dict[str, tuple[list[str], ...]]] = {
    "macau.baccarat": ([], ["player", "banker", "tie"], ["player", "banker", "tie", "dragon_7", "lucky_6"]),
    "macau.blackjack": (
        *([], ["main", "double", "insurance", "any_pair", "sevens"]),
        ["main", "double", "insurance", *EVERY_BET, *STREAKS],
    ),
    "macau.cussec": ([], ["small", "big", "total"]),
    "macau.fantan": ([], ["fan", "nim"]),
    "macau.fish-prawn-crab": ([], ["small", "big", "figure"]),
    "macau.roulette": ([], ["straight", "red", "black", "dozen"]),
}
# What an option may need: the first of these with which its value is allowed.
BESIDE: Final[dict[str, tuple[Options, ...]]] = {
    "macau.baccarat": (
        *({}, {"burn": "fixed"}, {"jackpot": "A"}, {"jackpot": "C"}, {"opening": "bell"}),
        {"device": "continuous", "opening": "bell"},
    ),
    "macau.blackjack": (
        *({}, {"procedure": "3"}, {"procedure": "1", "decks": 1}, {"bettors": 2}, {"burn_each_round": "one"}),
        {"bets_offered": ["main", "double", "insurance", *EVERY_BET, *STREAKS], "additional_bets": "several"},
    ),
}


def values_of(ruleset: str, info: OptionInfo) -> tuple[Any, ...]:
    """Each value of a choice, the ends of a range, examples of what is free."""
    if info.name == "bets_offered":
        return SAMPLES[ruleset].bets_offered
    if info.name in SAMPLES[ruleset].examples:
        return SAMPLES[ruleset].examples[info.name]
    if info.name in EXAMPLES:
        return EXAMPLES[info.name]
    if info.values == "true | false":
        return (True, False)
    if info.values.startswith("number "):
        low, _, high = info.values.removeprefix("number ").partition("..")
        return (int(low), int(high))
    return tuple(info.values.split(" | "))


def infos_of(ruleset: str) -> list[OptionInfo]:
    """The options that are sampled. `limits` is younger than the tables: another option would draw other tables."""
    return [info for info in options_of(RULESETS[ruleset].Options) if info.name != "limits"]


def option_sets(ruleset: str) -> list[Options]:
    """The tables of a ruleset. Raises BadOption where a value is never allowed: say in BESIDE what it needs."""
    infos = infos_of(ruleset)
    found: list[Options] = [{}]
    for info in infos:
        others = (value for value in values_of(ruleset, info) if value != info.default)
        found += (allowed(ruleset, {info.name: value}) for value in others)
    rng = random.Random(f"options {ruleset}")
    mixed = 0
    for _ in range(5_000):
        given = {info.name: rng.choice(values_of(ruleset, info)) for info in rng.sample(infos, min(4, len(infos)))}
        if mixed < MIXED and given not in found and _fits(ruleset, given):
            found.append(given)
            mixed += 1
    return [options for place, options in enumerate(found) if options not in found[:place]]


def _fits(ruleset: str, given: Options) -> bool:
    try:
        options_from(RULESETS[ruleset], given)
    except BadOption:
        return False
    return True


def allowed(ruleset: str, given: Options) -> Options:
    for beside in SAMPLES[ruleset].beside:
        if _fits(ruleset, beside | given):
            return beside | given
    options_from(RULESETS[ruleset], given)
    raise AssertionError("never reached: the line above says what is wrong")


# ---- what happens at the tables: dealers who see the view and know what they do


ROULETTE: Final = (
    *("straight:0", "straight:17", "split:1-2", "split:0-1", "street:1-2-3", "corner:1-2-4-5", "line:1-2-3-4-5-6"),
    *("dozen:1", "column:3", "red", "black", "odd", "even", "low", "high", "sector_a", "sector_b"),
    *("nine:3-7-12-18-22-26-28-29-35", "street:0-1-2", "corner:0-1-2-3", "nothing"),
)
TURNS: Final = ("clockwise", "anticlockwise")


def roulette(rng: random.Random, options: Options) -> Dealer:
    spins = 0
    while True:
        counted, opened, bell = rng.random() < 0.5, rng.random() < 0.85, rng.random() < 0.6
        for _ in range(rng.randint(3, 12)):
            spins += 1
            if counted:
                yield SpinStarted(spins)
            if opened:
                yield BetsOpened()
            for one in wagers(rng, ROULETTE):
                yield one
            if bell:
                yield BetsClosed()
            ball = rng.choice(TURNS)
            other = TURNS[1 - TURNS.index(ball)]
            yield BallLaunched(ball, other if rng.random() < 0.97 else ball)  # type: ignore[arg-type]
            for one in wagers(rng, ROULETTE, 1):
                yield one
            if rng.random() < 0.05:
                yield rng.choice((SpinVoided("chip"), RoundVoided("a chip"), WheelStopped(), BallReplaced("7")))
                yield rng.choice((WheelStarted(), BallReplaced(), BallReplaced("12"), BallLaunched(ball, other)))  # type: ignore[arg-type]
            yield BallSettling()
            pocket = str(rng.randint(0, 36)) if rng.random() < 0.98 else "00"
            shown = yield BallLanded(pocket)
            if rng.random() < 0.04:
                yield BallLanded(str(rng.randint(0, 36)))
            if shown["phase"] == "suspended" and rng.random() < 0.5:
                yield rng.choice((RoundVoided(""), BetsOpened(), SpinMissed(rng.randint(1, 3))))
            if rng.random() < 0.9:
                yield RoundPaid()


DICE: Final = ("small", "big", "even", "odd", "single:3", "triple:6", "any_triple", "total:9", "total:5", "double:2")
CUSSEC: Final = (*DICE, "two_dice:1-2", "three_dice:1-2-3", "four_numbers:1-2-3-4", "double_and_single:11-2", "nothing")
FISH: Final = (
    *("small", "big", "figure:fish", "figure:crab", "one_colour:red", "two_colour:green", "three_colour:blue"),
    *("same_colour", "triple:fish", "any_triple", "total:9", "nothing"),
)


def shaken(bets: Sequence[str]) -> Callable[[random.Random, Options], Dealer]:
    def dealer(rng: random.Random, options: Options) -> Dealer:
        modes = {"lever": ("lever",), "electronic": ("electronic",)}.get(
            options.get("agitation", "lever"), ("lever", "electronic")
        )
        while True:
            if rng.random() < 0.97:
                yield DiceCovered()
            mode = rng.choice(modes) if rng.random() < 0.97 else "electronic"
            pulls = 3 if rng.random() < 0.97 else 2
            steps: list[Event] = [DiceAgitated("lever", 1)] * pulls if mode == "lever" else [DiceAgitated("electronic")]
            for step in steps:  # noqa: UP028 - a view is sent to whoever yields, and a list takes none
                yield step
            for one in wagers(rng, bets, 1) if rng.random() < 0.1 else ():
                yield one
            yield BetsOpened()
            for one in wagers(rng, bets):
                yield one
            if rng.random() < 0.03:
                yield rng.choice((DiceDisturbed(), DiceReplaced(), DiceUncovered(), DiceCovered()))
            yield BetsClosed()
            yield DiceUncovered()
            faces = tuple(rng.choices(range(1, 7), k=3)) if rng.random() < 0.85 else (rng.randint(1, 6),) * 3
            odd = rng.random()
            shown = yield DiceRead(faces[:2] if odd < 0.02 else faces, stacked=int(0.02 < odd < 0.06))
            if rng.random() < 0.04:
                yield DiceRead(tuple(rng.choices(range(1, 7), k=3)))
            for one in wagers(rng, bets, 2) if shown["phase"] in ("idle", "suspended") else ():
                yield one
            if shown["phase"] == "suspended" and rng.random() < 0.5:
                yield rng.choice((RoundVoided(""), DiceCovered()))
            if rng.random() < 0.9:
                yield RoundPaid()

    return dealer


FANTAN: Final = ("fan:1", "fan:3", "nim:1-2", "nga:1-2-3", "sesamhong:1-2-3", "kuoc:1-2", "kuoc:3-4", "nothing")


def fantan(rng: random.Random, options: Options) -> Dealer:
    while True:
        if rng.random() < 0.97:
            yield ButtonsSeparated()
        if options.get("opening") != "implied" or rng.random() < 0.2:
            yield BetsOpened()
        yield from wagers(rng, FANTAN)
        if rng.random() < 0.03:
            yield rng.choice((ButtonsUncovered(), ButtonsSeparated()))
        yield BetsClosed()
        count = rng.randint(1, 80)
        shown = yield ButtonsCounted(count, rng.choice((0, 0, 1)))
        if rng.random() < 0.1:
            yield ButtonsCounted(rng.choice((count, count + 4, count + 1)))
        if rng.random() < 0.3:
            yield LampsLit((str(count % 4 or 4 if rng.random() < 0.9 else 2),))
        if shown["phase"] == "suspended" and rng.random() < 0.4:
            yield RoundVoided("")
        if rng.random() < 0.9:
            yield RoundPaid()


BACCARAT: Final = (
    *("player", "banker", "tie", "player", "banker", "player_pair", "banker_pair", "dragon_7", "lucky_6", "jackpot"),
    "nothing",
)


def baccarat(rng: random.Random, options: Options) -> Dealer:
    cards = deck(rng)
    bell = options.get("opening") == "bell"
    shown: Shown = {"phase": "idle", "detail": {}}
    while True:
        if options.get("device") != "continuous":
            shown = yield ShoeStarted(options.get("decks", 8))
            for _ in range(14):
                if shown["phase"] == "burning":
                    shown = yield CardDrawn(next(cards))
        for coup in range(rng.randint(2, 15)):
            if rng.random() < (0.3 if coup < 2 else 0.01):
                yield RoundDemo()
            if bell or rng.random() < 0.5:
                shown = yield BetsOpened()
                for one in wagers(rng, BACCARAT):
                    yield one
            if bell or rng.random() < 0.2:
                shown = yield BetsClosed()
            if options.get("burn_each_coup"):
                yield CardDrawn(next(cards))
            hands: dict[str, list[str]] = {"player": [], "banker": []}
            for turn in range(4):
                card = next(cards)
                hands["player" if turn % 2 == 0 else "banker"].append(card)
                shown = yield CardDrawn(card, "down" if rng.random() < 0.02 else None)
            for _ in range(2):
                side = shown["detail"].get("next")
                if side in hands:
                    card = next(cards)
                    hands[side].append(card)
                    shown = yield CardDrawn(card)
            if rng.random() < 0.06:
                yield CutCardDrawn()
            if shown["phase"] == "suspended":
                for one in put_right(rng, {name: tuple(hand) for name, hand in hands.items()}):
                    shown = yield one
            if options.get("device") == "continuous":
                yield CardsReturned(sum(map(len, hands.values())))
            if rng.random() < 0.85:
                yield RoundPaid()
            if shown["phase"] == "ended":
                break
        if rng.random() < 0.05:
            yield ShoeEmptied()


BLACKJACK: Final = (
    *("main", "main:2", "any_pair", "winning_streak_2", "any_pair:2", "sevens", "over_13", "under_13", "over_13:3"),
    *("perfect_pair", *STREAKS, "nothing"),
)
ACTIONS: Final = (
    *("stand", "stand", "stand", "stand", "stand", "hit", "hit", "hit", "hit", "split", "split", "double"),
    *("surrender", "five_cards", "insurance", "even_money", "decline", "raise"),
)


def blackjack(rng: random.Random, options: Options) -> Dealer:
    box = options.get("device") == "metal_box"
    while True:
        cards = deck(rng)
        shown: Shown = {"phase": "idle", "detail": {}}
        if options.get("device") != "continuous":
            shown = yield ShoeStarted(options.get("decks", 6))
        for _ in range(1 if box else rng.randint(2, 10)):
            for _ in range(14):
                if shown["phase"] == "burning":
                    shown = yield CardDrawn(next(cards))
            for seat in range(1, 8) if rng.random() < 0.1 else ():
                yield SeatOpened(seat) if rng.random() < 0.5 else SeatClosed(seat)
            shown = yield BetsOpened()
            hands: dict[str, tuple[str, ...]] = {"dealer": ()}
            for seat in sorted(rng.sample(range(1, 8), rng.choice((1, 1, 2, 3)))):
                hands[f"{seat}.1"] = ()
                shown = yield WagerPlaced(seat, "main", rng.choice((10, 25, 101)))
            for one in wagers(rng, BLACKJACK):
                shown = yield one
            shown = yield BetsClosed()
            for _ in range(60):
                due = shown["detail"].get("due") or {}
                if shown["phase"] == "suspended":
                    for one in put_right(rng, hands):
                        shown = yield one
                    if shown["phase"] == "suspended":
                        break
                elif due.get("kind") == "card":
                    card, name = next(cards), due["hand"]
                    if name != "burn":
                        hands[name] = (*hands.get(name, ()), card)
                    shown = yield CardDrawn(card, rng.choice((None, None, None, "down")))
                elif due.get("kind") == "peek":
                    ranks = {card[0] for card in hands["dealer"][:2]}
                    natural = "A" in ranks and bool(ranks & set("TJQK"))
                    shown = yield HoleCardPeeked(natural if rng.random() < 0.97 else not natural)
                elif due.get("kind") == "decision":
                    number = int(due["hand"].partition(".")[2])
                    shown = yield SeatActed(due["seat"], rng.choice(ACTIONS), number, rng.choice((0, 0, 0, 0, 5)))
                else:
                    break
            if rng.random() < 0.03:
                yield CutCardDrawn()
            if shown["phase"] == "resolved" and rng.random() < 0.06:
                name = rng.choice(sorted(hands))
                yield DealCorrected({name: (*hands[name][:-1], next(cards))})
            if options.get("device") == "continuous":
                yield CardsReturned(rng.randint(0, 20))
            if rng.random() < 0.85:
                shown = yield RoundPaid()


def whole_rounds(name: str) -> Sample:
    """A game without a dealer of its own: its whole rounds, some without a bell, some told in doubt."""
    kind: Any = RULESETS[name]
    rounds, board = tuple(kind.whole_rounds()), kind(kind.Options()).board

    def dealer(rng: random.Random, _options: Options) -> Dealer:
        while True:
            events = rng.choice(rounds)
            place = events.index(BetsOpened()) + 1
            for event in events[:place]:
                yield event
            yield from wagers(rng, (*board, "nothing"))
            for event in events[place:]:
                if event != BetsClosed() or rng.random() < 0.97:
                    yield event
            if rng.random() < 0.1:
                yield rng.choice(rounds)[-1]
            yield RoundPaid()

    families = [bet.id.partition(":")[0] for bet in kind(kind.Options()).bets()]
    return Sample(dealer, ([], families[:1]))


SAMPLES: dict[str, Sample] = {
    **corpus_dice.SAMPLES,
    **corpus_roulette.SAMPLES,
    **corpus_craps.SAMPLES,
    **corpus_baccarat.SAMPLES,
    "macau.baccarat": Sample(baccarat, BETS_OFFERED["macau.baccarat"], BESIDE["macau.baccarat"]),
    "macau.blackjack": Sample(blackjack, BETS_OFFERED["macau.blackjack"], BESIDE["macau.blackjack"]),
    "macau.cussec": Sample(shaken(CUSSEC), BETS_OFFERED["macau.cussec"]),
    "macau.fantan": Sample(fantan, BETS_OFFERED["macau.fantan"]),
    "macau.fish-prawn-crab": Sample(shaken(FISH), BETS_OFFERED["macau.fish-prawn-crab"]),
    "macau.roulette": Sample(roulette, BETS_OFFERED["macau.roulette"]),
    **corpus_chemin.SAMPLES,
    **corpus_machines.SAMPLES,
    **corpus_poker.SAMPLES,
    **corpus_stud_poker.SAMPLES,
    **corpus_blackjack.SAMPLES,
}
SAMPLES |= {name: whole_rounds(name) for name in set(RULESETS) - set(SAMPLES)}

# ---- what goes wrong

ANYTHING: Final[tuple[Event, ...]] = (
    *(BetsOpened(), BetsClosed(), RoundPaid(), RoundVoided("declared"), RoundVoided(), SpinVoided("restarted")),
    *(CardUnreadable(), CardDrawn("7S"), CutCardDrawn(), ShoeStarted(8), ShoeEmptied(), RoundDemo()),
    *(
        DealCorrected({}),
        DealCorrected({"dealer": ()}),
        DealCorrected({"player": ("9D", "KC"), "banker": ("2S", "4H")}),
    ),
    *(CardExposed("dealer"), CardExposed("seat_2", "7S"), HandDispensed(5), HoleCardPeeked(blackjack=False)),
    *(WagerPlaced(1, "main", 5), WagerPlaced(9, "player", 5), WagerWithdrawn(1, "small"), WagerPlaced(8, "ante", 5)),
    *(SeatActed(1, "hit"), SeatActed(2, "ante"), SeatActed(3, "fold"), SeatActed(8, "raise"), SeatOpened(5)),
    *(SeatClosed(5), DiceCovered(), DiceUncovered(), DiceRead((1, 2, 3)), DiceDisturbed(), DiceAgitated("lever", 3)),
    *(ButtonsSeparated(), ButtonsUncovered(), ButtonsCounted(7), LampsLit(("3",)), SpinStarted(3), SpinMissed(2)),
    *(BallLaunched("clockwise", "anticlockwise"), BallLanded("17"), BallSettling(), BallReplaced("4"), WheelStopped()),
    *(EventsMissed(3), DeviceOnline(continuous=True), DeviceOnline(continuous=False), CardsReturned(6)),
)


def happenings(dealer: Dealer, rng: random.Random) -> Dealer:
    """What a dealer does, with losses, late events, duplicates and events out of place; a calm hour now and then."""
    event = next(dealer)
    held: list[tuple[int, Event]] = []
    calm, lost = 0, 0
    shown: Shown = {"phase": "idle", "detail": {}}
    while True:
        calm = calm - 1 if calm > 0 else 60 * (rng.randrange(40) == 0)
        trouble = 1.0 if calm > 0 else rng.random()
        if lost:
            lost -= 1
        elif trouble < 0.010:
            lost = rng.randint(0, 4)
            shown = yield EventsMissed(max(lost, 1)) if rng.random() < 0.5 else DeviceOnline(continuous=False)
        elif trouble < 0.020:
            held.append((rng.randint(1, 5), replace(event, overtaken=rng.choice((50, 800, 9_000)))))
        else:
            shown = yield event
            if trouble < 0.028:
                shown = yield event
            elif trouble < 0.036:
                shown = yield rng.choice(ANYTHING)
        for wait, late in held:
            if wait == 0:
                shown = yield late
        held = [(wait - 1, late) for wait, late in held if wait]
        event = dealer.send(shown)


# ---- what is hashed


class Played(Struct, frozen=True):
    """What one table came to. `start` is the hash after BEGINNING events."""

    events: int
    start: str
    sha256: str


def table(ruleset: Ruleset[Any], name: str, options: Options, events: int) -> Iterator[tuple[bytes, list[str]]]:
    """Each event of a table with what the ruleset said and shows, as JSON, and the types of its verdicts."""
    rng = random.Random(f"corpus {name} {written(options)}")
    dealer = happenings(SAMPLES[name].dealer(rng, options), rng)
    state, at = ruleset.start("t-1"), START
    event = next(dealer)
    for number in range(1, events + 1):
        at += timedelta(milliseconds=rng.choice((0, 250, 1_000, 4_000, 20_000)))
        state, verdicts = judge(ruleset, state, Envelope(f"e{number}", SOURCE, at, event, number))
        shown = ruleset.view(state)
        line = {
            "at": at.isoformat(),
            "type": type_of(event),
            "data": msgspec.Raw(encode_data(event)),
            "said": verdicts,
            "shown": shown,
        }
        yield msgspec.json.encode(line, order="sorted"), [verdict_type(one) for one in verdicts]
        event = dealer.send(msgspec.to_builtins(shown))


def written(options: Options) -> str:
    return msgspec.json.encode(options, order="sorted").decode()


def play(name: str, options: Options, events: int, out: Path | None = None) -> tuple[Played, Counter[str]]:
    """One table: its hashes, and how often each verdict came."""
    ruleset = RULESETS[name](options_from(RULESETS[name], options))
    hashed, start, said = sha256(), "", Counter[str]()
    lines = []
    for number, (line, verdicts) in enumerate(table(ruleset, name, options, events), 1):
        hashed.update(line + b"\n")
        said.update(verdicts)
        lines.append(line)
        if number == BEGINNING:
            start = hashed.hexdigest()
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        file = out / f"{name}.{sha256(written(options).encode()).hexdigest()[:8]}.ndjson"
        file.write_bytes(b"\n".join([written(options).encode(), *lines, b""]))
    return Played(events, start, hashed.hexdigest()), said


def tables(names: Iterable[str]) -> Iterator[tuple[str, Options, int]]:
    """Each table: its ruleset, its options, its number of events."""
    for name in names:
        sets = option_sets(name)
        for options in sets:
            yield name, options, -(-EVENTS // len(sets))


# ---- the file


def write(played: dict[str, dict[str, Played]], said: dict[str, Counter[str]]) -> str:
    """The hashes as TOML, one line a table."""
    lines = ["# Made by `make corpus`: what each ruleset says and shows of the same events. See tests/corpus.py."]
    for name, mine in played.items():
        counts = ", ".join(f"{verdict} = {count}" for verdict, count in sorted(said[name].items()))
        lines += ["", f'["{name}"]', f"events = {sum(one.events for one in mine.values())}", f"said = {{ {counts} }}"]
        lines += ["", f'["{name}".tables]']
        lines += [
            f'\'{options}\' = {{ events = {one.events}, start = "{one.start}", sha256 = "{one.sha256}" }}'
            for options, one in mine.items()
        ]
    return "\n".join([*lines, ""])


def read() -> dict[str, dict[str, Played]]:
    """The hashes as they are committed."""
    found = tomllib.loads(HASHES.read_text(encoding="utf-8"))
    return {name: msgspec.convert(one["tables"], dict[str, Played]) for name, one in found.items()}


def differences(names: Sequence[str], *, start: bool, out: Path | None = None) -> list[str]:
    """The tables of these rulesets that do not say what they said, are new, or are not played any more."""
    known = read()
    left = {(name, options) for name in names for options in known.get(name, {})}
    wrong = []
    for name, options, events in tables(names):
        key = written(options)
        expected = known.get(name, {}).get(key)
        left.discard((name, key))
        got, _ = play(name, options, BEGINNING if start else events, out)
        if expected is None or (got.start != expected.start if start else got != expected):
            wrong.append(f"{name} {key}")
    return [*wrong, *(f"{name} {options}: not played any more" for name, options in sorted(left))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m corpus", description="The behaviour of the rulesets, frozen.")
    parser.add_argument("--check", action="store_true", help=f"compare with {HASHES.name} and write nothing")
    parser.add_argument(
        "--start", action="store_true", help=f"with --check: the first {BEGINNING} events of each table"
    )
    parser.add_argument("--out", type=Path, help="a folder for what is hashed, one file a table")
    parser.add_argument("--only", choices=sorted(RULESETS), help="with --check: this ruleset alone")
    asked = parser.parse_args()
    names = [asked.only] if asked.only else sorted(RULESETS)
    begun = time.monotonic()
    if asked.check:
        wrong = differences(names, start=asked.start, out=asked.out)
        sys.stdout.write("".join(f"differs: {one}\n" for one in wrong) or "nothing differs\n")
        return 1 if wrong else 0
    played: dict[str, dict[str, Played]] = {}
    said: dict[str, Counter[str]] = {}
    for name, options, events in tables(sorted(RULESETS)):
        one, verdicts = play(name, options, events, asked.out)
        played.setdefault(name, {})[written(options)] = one
        said.setdefault(name, Counter()).update(verdicts)
    HASHES.write_text(write(played, said), encoding="utf-8")
    for name, mine in played.items():
        sys.stdout.write(
            f"{name}: {len(mine)} tables, {sum(one.events for one in mine.values())} events, {dict(said[name])}\n"
        )
    sys.stdout.write(f"{HASHES.name} written in {time.monotonic() - begun:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
