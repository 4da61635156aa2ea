"""After a loss: each round that was seen whole counts, each bet is decided or given back, no reason is untrue.

Four regular rounds are played; some events are lost, which is proven, and maybe something more goes wrong. What the
rounds truly were is written here by hand, with what each bet brings back, and no ruleset is asked for it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import pytest
from helpers import NIGHTLY, script
from msgspec.structs import replace

from daemon.words import words
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    CardDrawn,
    DealCorrected,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceThrown,
    DiceUncovered,
    Event,
    EventsMissed,
    HandDispensed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SpinStarted,
    WagerPlaced,
)
from protocols.contract.topics import Envelope
from rules import RULESETS
from rules.engine.ruleset import Corrected, Noted, Resolved, Result, Ruleset, Voided, judge, options_from
from rules.games.cards import DECK

Bets: TypeAlias = Mapping[tuple[int, str], tuple[int, int]]


class Truth(NamedTuple):
    """A round as it was played: its events, a part of its outcome, and stake and return of each bet."""

    events: list[Event]
    outcome: dict[str, Any]
    bets: Bets


Play: TypeAlias = Callable[[int], Truth]


def laid(bets: Bets) -> list[Event]:
    """The bets as chips; a raise is laid by its decision."""
    return [WagerPlaced(seat, bet, stake) for (seat, bet), (stake, _) in bets.items() if bet != "raise"]


def drawn(cards: str) -> list[Event]:
    return [CardDrawn(card) for card in cards.split()]


def spin(number: int, *, counted: bool, bell: bool) -> Truth:
    pocket, seat = ("17", 1) if number % 2 else ("2", 3)
    bets = {(seat, "red"): (10, 0), (seat, f"straight:{pocket}"): (5, 180), (seat + 1, "black"): (4, 8)}
    begins: list[Event] = [SpinStarted(number + 1)] if counted else []
    closes: list[Event] = [BetsClosed()] if bell else []
    ran: list[Event] = [BallLaunched("clockwise", "anticlockwise"), BallSettling(), BallLanded(pocket), RoundPaid()]
    return Truth([*begins, BetsOpened(), *laid(bets), *closes, *ran], {"pocket": pocket}, bets)


def spin_by_turns(number: int, *, counted: bool) -> Truth:
    """The ball runs one way round and then the other; the call comes while it runs."""
    pocket, seat = ("17", 1) if number % 2 else ("2", 3)
    bets = {(seat, "double_dozen:1-2"): (10, 15), (seat, f"straight:{pocket}"): (5, 180), (seat + 1, "black"): (4, 8)}
    begins: list[Event] = [SpinStarted(number + 1)] if counted else []
    one, other = BallLaunched("clockwise", "anticlockwise"), BallLaunched("anticlockwise", "clockwise")
    ran: list[Event] = [one if number % 2 else other, BetsClosed(), BallLanded(pocket), RoundPaid()]
    return Truth([*begins, BetsOpened(), *laid(bets), *ran], {"pocket": pocket}, bets)


def throw(number: int, *, electronic: bool) -> Truth:
    faces, seat, small = ((1, 3, 3), 1, True) if number % 2 else ((4, 5, 6), 3, False)
    bets = {(seat, "small"): (10, 20 * small), (seat + 1, "big"): (6, 12 * (not small))}
    shaken: list[Event] = [DiceAgitated("electronic")] if electronic else [DiceAgitated("lever", 1)] * 3
    read: list[Event] = [BetsClosed(), DiceUncovered(), DiceRead(faces), RoundPaid()]
    return Truth([DiceCovered(), *shaken, BetsOpened(), *laid(bets), *read], {"faces": faces}, bets)


def thrown(number: int) -> Truth:
    """By hand; the first throw decides nothing."""
    faces, seat, small = ((1, 2, 3), 1, True) if number % 2 else ((4, 5, 6), 3, False)
    bets = {(seat, "small"): (10, 20 * small), (seat + 1, "big"): (6, 12 * (not small))}
    throws: list[Event] = [DiceThrown((2, 3, 5)), DiceThrown(faces), RoundPaid()]
    return Truth([BetsOpened(), *laid(bets), BetsClosed(), *throws], {"faces": faces}, bets)


def heap(number: int) -> Truth:
    count, seat, three = (59, 1, True) if number % 2 else (60, 3, False)
    # Three to one, less five per cent of the prize.
    bets = {(seat, "fan:3"): (20, 77 * three), (seat + 1, "fan:4"): (20, 77 * (not three))}
    events: list[Event] = [ButtonsSeparated(), BetsOpened(), *laid(bets), BetsClosed(), ButtonsCounted(count)]
    return Truth([*events, RoundPaid()], {"number": 3 if three else 4}, bets)


def coup(number: int) -> Truth:
    cards, seat, player = ("9H 2D TS KC", 1, True) if number % 2 else ("2H 9D TC KS", 3, False)
    # The banker's prize bears five per cent.
    bets = {(seat, "player"): (20, 40 * player), (seat + 1, "banker"): (20, 39 * (not player))}
    events: list[Event] = [BetsOpened(), *laid(bets), BetsClosed(), *drawn(cards), RoundPaid()]
    return Truth(events, {"winner": "player" if player else "banker"}, bets)


def blackjack(number: int) -> Truth:
    """Ten and king against ten and seven win; nine and eight are a tie. Or nine and seven against it lose."""
    seat, third, back = (1, "8S", 20) if number % 2 else (3, "7S", 0)
    bets = {(seat, "main"): (20, 40), (seat + 1, "main"): (20, back)}
    stands: list[Event] = [SeatActed(seat, "stand"), SeatActed(seat + 1, "stand")]
    cards = drawn(f"TH 9D TC KS {third}")
    return Truth([BetsOpened(), *laid(bets), BetsClosed(), *cards, *stands, *drawn("7D"), RoundPaid()], {}, bets)


POKER = (
    ("8S 8H 6D 4C 2C", "2S 3H 5D 7C 9S", "AD KD 9H 8C 7H"),
    ("JS JC TH 4D 6C", "2S 3H 5D 7C 9S", "AS KC 9H 8C 7H"),
    ("5S 5H 6D 4C 2C", "2D 3S 9D 7D TS", "AH KH 9C 8D 7S"),
    ("QS QC TH 4D 6C", "3C 4S 5D 7C 9S", "AC KS 9H 8C 7H"),
)


def showdown(number: int, *, shuffler: bool, burns: bool = False) -> Truth:
    """A pair wins, five odd cards lose, against an ace and a king; `burns`: a card comes first."""
    hands, seat = POKER[number], (1 if number % 2 else 3)
    bets = {(seat, "ante"): (10, 20), (seat, "raise"): (20, 40), (seat + 1, "ante"): (10, 0)}
    bets |= {(seat + 1, "raise"): (20, 0)}
    one_by_one = " ".join(card for turn in zip(*(hand.split() for hand in hands), strict=True) for card in turn)
    cards: list[Event] = [HandDispensed(5)] * 3 if shuffler else drawn(one_by_one)
    if burns:
        burnt = next(card for card in DECK if card not in one_by_one.split())
        cards.insert(0, HandDispensed(1) if shuffler else CardDrawn(burnt))
    names = (f"seat_{seat}", f"seat_{seat + 1}", "dealer")
    told: list[Event] = [DealCorrected({name: tuple(hand.split()) for name, hand in zip(names, hands, strict=True)})]
    acted: list[Event] = [SeatActed(seat, "raise"), SeatActed(seat + 1, "raise"), *(told if shuffler else [])]
    return Truth(
        [BetsOpened(), *laid(bets), BetsClosed(), *cards, *acted, RoundPaid()],
        {"seats": {names[0]: "wins", names[1]: "loses"}},
        bets,
    )


GAMES: dict[str, tuple[str, dict[str, Any], Play]] = {
    "roulette, no wheel counts": ("macau.roulette", {}, lambda n: spin(n, counted=False, bell=True)),
    "roulette, no bell": ("macau.roulette", {"betting": "no_more_bets"}, lambda n: spin(n, counted=False, bell=False)),
    "roulette": ("macau.roulette", {}, lambda n: spin(n, counted=True, bell=True)),
    "roulette, automatic": ("macau.roulette", {}, lambda n: spin(n, counted=True, bell=False)),
    "American roulette": (
        "angola.american-roulette",
        {"minimum": 4, "payment": "console"},
        lambda n: spin_by_turns(n, counted=True),
    ),
    "French roulette": ("angola.french-roulette", {"payment": "console"}, lambda n: spin_by_turns(n, counted=False)),
    "cussec": ("macau.cussec", {}, lambda n: throw(n, electronic=False)),
    "cussec 2003": ("macau.cussec", {"edition": "2003"}, lambda n: throw(n, electronic=False)),
    "cussec, Angola": ("angola.cussec", {}, lambda n: throw(n, electronic=False)),
    "French bank": ("angola.french-bank", {}, thrown),
    "fish-prawn-crab": (
        "macau.fish-prawn-crab",
        {"agitation": "either", "payment": "console"},
        lambda n: throw(n, electronic=True),
    ),
    "fantan": ("macau.fantan", {}, heap),
    "baccarat": ("macau.baccarat", {"opening": "bell"}, coup),
    "blackjack": ("macau.blackjack", {}, blackjack),
    "stud poker, shoe": ("macau.stud-poker", {}, lambda n: showdown(n, shuffler=False)),
    "stud poker, shuffler": ("macau.stud-poker", {}, lambda n: showdown(n, shuffler=True)),
    "stud poker of Angola, shoe": ("angola.stud-poker", {}, lambda n: showdown(n, shuffler=False, burns=True)),
    "stud poker of Angola, shuffler": ("angola.stud-poker", {}, lambda n: showdown(n, shuffler=True, burns=True)),
}
# A person's word is given only while the round waits for it; a second loss, or an event told late, whenever it comes.
MORE: dict[str, Event] = {
    "loss": DeviceOnline(continuous=False),
    "void": RoundVoided("declared"),
    "opened": BetsOpened(),
    "paid": RoundPaid(),
}
LATE = "late"
# What may be said of regular play after a loss: that an event met no round or one that waits, that bets may lie there.
SAID = {
    *("bet_without_round", "bell_without_round", "reading_without_round", "landing_without_spin"),
    *("count_without_round", "card_without_round", "decision_without_round", "void_without_round"),
    *("bet_while_waiting", "told_too_late", "throw_without_round", "jackpot_bets_unknown"),
}


class Night(NamedTuple):
    """What was played, what was heard of it, and from which round on nothing went wrong any more."""

    truth: list[Truth]
    ends: dict[str, int]
    heard: list[tuple[Envelope, Event | None]]
    sound: int
    more: str


def nights(play: Play) -> Iterator[tuple[str, Night]]:
    """Each loss of up to eight events, and what may go wrong after it."""
    truth = [play(number) for number in range(4)]
    places = [0]
    for one in truth:
        places.append(places[-1] + len(one.events))
    seen = script([event for one in truth for event in one.events])
    ends = {seen[place - 2].id: number for number, place in enumerate(places[1:])}
    sizes = (0, 1, 2, 3, 5, 8) if NIGHTLY else (0, 1, 3)
    for begin in range(0, places[3], 1 if NIGHTLY else 2):
        for size in sizes:
            end = begin + size
            if end > places[3]:
                continue
            loss = Envelope("lost", seen[0].source, seen[begin].time, EventsMissed(max(size, 1)), 1)
            heard: list[tuple[Envelope, Event | None]] = [
                *((one, None) for one in seen[:begin]),
                (loss, None),
                *((one, None) for one in seen[end:]),
            ]
            yield f"{begin}-{end}", Night(truth, ends, heard, _sound(places, end), "")
            for more in (*MORE, LATE):
                for at in range(begin + 1, min(begin + 14, len(heard)), 1 if NIGHTLY else 6):
                    met, place = heard[at][0], end + at - begin
                    late = replace(met, event=replace(met.event, overtaken=300))
                    told = [*heard[:at], (late, None) if more == LATE else (met, MORE[more]), *heard[at + 1 :]]
                    yield f"{begin}-{end} {more} {at}", Night(truth, ends, told, _sound(places, place), more)


def _sound(places: list[int], place: int) -> int:
    return next((number for number, begin in enumerate(places) if begin >= place), 4)


class Heard(NamedTuple):
    """What a ruleset made of a night."""

    final: dict[str, Result]
    resolved: dict[str, str]
    corrected: bool
    noted: set[str]


def heard(ruleset: Ruleset[Any], night: Night) -> Heard:
    state = ruleset.start("t-1")
    said = Heard({}, {}, False, set())
    over = False
    for one, more in night.heard:
        told = [one]
        if over and type(one.event) is not type(night.truth[0].events[0]):
            continue  # the rest of a round that a person ended is not played
        over = False
        if more is not None and (night.more == "loss" or ruleset.view(state).phase == "suspended"):
            told.insert(0, replace(one, id=f"more-{one.id}", event=more))
            over = night.more == "void"
        for seen in told[:1] if over else told:
            state, verdicts = judge(ruleset, state, seen)
            for verdict in verdicts:
                match verdict:
                    case Resolved(result=result):
                        said.resolved[result.round] = seen.id
                        said.final[result.round] = result
                    case Voided(result=result):
                        said.final[result.round] = result
                    case Corrected(result=result):
                        said.final[result.round] = result
                        said = said._replace(corrected=True)
                    case Noted(irregularity=note):
                        said.noted.add(note.code)
                    case _:
                        pass
    return said


def money(result: Result) -> Bets:
    return {(one.seat, one.bet): (one.stake, one.returned) for one in result.settlements}


@pytest.mark.parametrize("name", GAMES)
def test_each_round_seen_whole_counts_and_nothing_untrue_is_said(name: str) -> None:
    """Whatever was lost before it; and what is resolved of the others is as it was played."""
    id_, options, play = GAMES[name]
    ruleset = RULESETS[id_](options_from(RULESETS[id_], options))
    count = 0
    for what, night in nights(play):
        count += 1
        said = heard(ruleset, night)
        ended = {night.ends[end]: said.final[round_] for round_, end in said.resolved.items() if end in night.ends}
        for number, result in ended.items():
            true = night.truth[number]
            if result.void is not None:
                assert night.more == "void", what
                continue
            assert {key: result.outcome[key] for key in true.outcome} == true.outcome, what
            told = money(result)
            assert all(told[key] == true.bets[key] for key in told.keys() & true.bets.keys()), what
        assert not said.corrected or night.more in ("void", "paid", LATE), what
        for number in range(night.sound, 4):
            assert number in ended, f"{what}: round {number} is thrown away"
            assert money(ended[number]).items() >= night.truth[number].bets.items(), what
        if night.more not in ("", "loss") or name in ("stud poker, shuffler", "stud poker of Angola, shuffler"):
            continue
        for result in said.final.values():
            assert {one.code for one in result.irregularities} <= SAID, what
            assert result.void is None or "may" in words.reason("en", result.void.reason), what
        assert said.noted <= SAID | ({"bank_extra_card"} if name == "blackjack" else set()), what
    assert count > 150
