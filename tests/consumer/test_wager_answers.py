"""Answers to betting terminals: what the rules said of the event that a request became, durable and given again.

What is promised: `accepted` is said of what lies on the table, `refused` with the reason of the rules; a repeated
request gets its answer again, also of the next process; the verdicts are the same as without a request.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import corpus
import msgspec
import pytest
from helpers import MACHINES, START, at_length, play, script, virtual_time

from daemon.broker.session import Message
from daemon.config.model import parse
from daemon.consumer import wagers
from daemon.consumer.consumer import Consumer
from daemon.consumer.wagers import KEPT, MOST_UNSENT, WagerAnswers, answer_to
from daemon.journal.store import Journal
from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    ButtonsSeparated,
    DiceAgitated,
    DiceCovered,
    Event,
    RoundVoided,
    SeatActed,
    SeatOpened,
    WagerPlaced,
    WagerWithdrawn,
    WheelStarted,
)
from protocols.contract.reasons import say
from protocols.contract.results import Irregularity, Noted
from protocols.contract.topics import Envelope
from protocols.contract.wagers import PlaceWager, WagerAnswer, WithdrawWager, decode_answer, encode
from rules import RULESETS
from rules.engine.ruleset import judge, options_from

BETS = {
    "macau.fantan": "fan:2",
    "macau.blackjack": "main",
    "angola.blackjack": "main",
    "macau.stud-poker": "ante",
    "angola.stud-poker": "ante",
    "macau.roulette": "odd",
    "angola.french-roulette": "odd",
    "angola.american-roulette": "odd",
    "angola.craps": "pass",
    "angola.chemin-de-fer": "cover",
    "angola.french-bank": "aces",
    **dict.fromkeys(("macau.baccarat", "angola.baccarat", "angola.baccarat-macau"), "player"),
    **dict.fromkeys(("macau.cussec", "angola.cussec", "macau.fish-prawn-crab"), "small"),
}
BEFORE: dict[str, list[Event]] = {
    "macau.fantan": [ButtonsSeparated()],
    "angola.chemin-de-fer": [*map(SeatOpened, (2, 3, 4, 9)), SeatActed(9, "bank", amount=100_000)],
    **{key: [WheelStarted()] for key in ("macau.roulette", "angola.french-roulette", "angola.american-roulette")},
}
UNBANKED = frozenset({"angola.holdem", "angola.omaha", "angola.synthetic-poker"})
"""Poker without a bank: chips are laid by what players do, and no wager is taken."""
BETS |= dict.fromkeys(UNBANKED, "pot") | {MACHINES: "play"}
BANKED = [name for name in RULESETS if name not in UNBANKED | {MACHINES}]
for _name in set(RULESETS) - set(BETS) - UNBANKED:  # a game of whole rounds
    _kind: Any = RULESETS[_name]
    _round = next(_kind.whole_rounds())
    BEFORE[_name], BETS[_name] = [*_round[: _round.index(BetsOpened())]], _kind(_kind.Options()).board[0]
VOID_AT_BELL = {"macau.cussec", "angola.cussec", "macau.fish-prawn-crab"}
"""Dice that were not shaken before the bell make the round void, and bets may be laid again."""


def answers_of(name: str, events: Sequence[Event]) -> Iterator[tuple[WagerAnswer, str]]:
    """The answers of a ruleset with its first options, and the phase after each."""
    ruleset: Any = RULESETS[name](options_from(RULESETS[name], {}))
    state = ruleset.start("t-1")
    for seen in script([*BEFORE.get(name, []), *events]):
        before = state
        state, verdicts = judge(ruleset, state, seen)
        view = ruleset.view(state)
        answer = answer_to(seen, before, state, verdicts, view.round)
        if answer is not None:
            yield answer, view.phase


def placed(id_: str, bet: str, *, seat: int = 1, amount: int = 100) -> WagerPlaced:
    return WagerPlaced(seat, bet, amount, id_, "t-1")


def withdrawn(id_: str, bet: str, amount: int, *, seat: int = 1) -> WagerWithdrawn:
    return WagerWithdrawn(seat, bet, amount, id_, "t-1")


@pytest.mark.parametrize("name", BANKED)
def test_every_game_answers_bets_with_its_law(name: str) -> None:
    bet = BETS[name]
    events: list[Event] = [
        BetsOpened(),
        placed("taken", bet),
        placed("more", bet, amount=200),
        placed("not-offered", "nonsense"),
        withdrawn("part", bet, 200),
        withdrawn("nothing-there", bet, 50, seat=2),
    ]
    said = answers_of(name, events)
    answers = {answer.id: (answer.status, answer.code, bool(answer.law), bool(answer.text)) for answer, _ in said}
    assert answers == {
        "taken": ("accepted", "", False, False),
        "more": ("accepted", "", False, False),
        "not-offered": ("refused", "bet_not_offered", True, True),
        "part": ("accepted", "", False, False),
        "nothing-there": ("refused", "bet_not_placed", True, True),
    }


@pytest.mark.parametrize("name", sorted(UNBANKED))
def test_poker_without_a_bank_refuses_each_bet_with_its_law(name: str) -> None:
    stacks = [SeatActed(seat, "stack", amount=5_000) for seat in range(1, 5)]
    events: list[Event] = [placed("early", "pot"), *stacks, BetsOpened(), placed("in-a-hand", "pot")]
    answers = [answer for answer, _ in answers_of(name, [*events, withdrawn("back", "pot", 0)])]
    assert [(one.id, one.status, one.code) for one in answers] == [
        ("early", "refused", "bet_without_round"),
        ("in-a-hand", "refused", "bet_not_offered"),
        ("back", "refused", "bet_not_offered"),
    ]
    assert all(one.law and one.text for one in answers)


def test_a_gaming_machine_refuses_each_bet_with_its_law() -> None:
    answers = [one for one, _ in answers_of(MACHINES, [placed("one", "play"), withdrawn("back", "play", 0)])]
    assert [(one.id, one.status, one.code) for one in answers] == [
        ("one", "refused", "bet_not_offered"),
        ("back", "refused", "bet_not_offered"),
    ]
    assert all(one.law and one.text for one in answers)


@pytest.mark.parametrize("name", [name for name in BANKED if name not in VOID_AT_BELL])
def test_every_game_refuses_a_bet_after_no_more_bets(name: str) -> None:
    bet = BETS[name]
    events: list[Event] = [
        BetsOpened(),
        placed("in-time", bet),
        BetsClosed(),
        placed("late", bet, seat=2),
        withdrawn("back", bet, 0),
    ]
    answers = [answer for answer, _ in answers_of(name, events)]
    assert [(one.id, one.status, one.code) for one in answers] == [
        ("in-time", "accepted", ""),
        ("late", "refused", "late_bet"),
        ("back", "refused", "late_bet"),
    ]
    assert answers[0].round.startswith("t-1:2026-11-20:")
    assert answers[1].reason == say("late_bet", seat=2, bet=bet)
    assert answers[1].round == ""


@pytest.mark.parametrize("name", BANKED)
def test_every_game_takes_a_bet_that_names_a_round_in_that_round_only(name: str) -> None:
    shoes = "baccarat" in name or "chemin" in name  # there the coups of a shoe count
    bet, day = BETS[name], "t-1:2026-11-20" + (":1" if shoes else "")
    before, now = f"{day}:1", f"{day}:2"
    named = [
        msgspec.structs.replace(one, round=round_)
        for round_ in (before, now)
        for one in (placed(f"on {round_}", bet), withdrawn(f"off {round_}", bet, 50))
    ]
    events: list[Event] = [BetsOpened(), RoundVoided(), *BEFORE.get(name, []), BetsOpened(), *named]
    answers = [answer for answer, _ in answers_of(name, events)]
    assert [(one.id, one.status, one.code, one.round) for one in answers] == [
        (f"on {before}", "refused", "bet_for_another_round", ""),
        (f"off {before}", "refused", "bet_for_another_round", ""),
        (f"on {now}", "accepted", "", now),
        (f"off {now}", "accepted", "", now),
    ]
    assert answers[0].reason == say("bet_for_another_round", seat=1, bet=bet, round=before)


@pytest.mark.parametrize("name", RULESETS)
def test_bet_for_another_round_changes_nothing_at_the_table(name: str) -> None:
    """Neither between two rounds nor in one, and also where others overtook it."""
    ruleset: Any = RULESETS[name](options_from(RULESETS[name], {}))
    state = ruleset.start("t-1")
    other = msgspec.structs.replace(placed("a", BETS[name]), round="t-1:2026-11-19:40")
    late = msgspec.structs.replace(other, overtaken=50)
    for seen in script([other, late, *BEFORE.get(name, []), BetsOpened(), other, late, BetsClosed(), other, late]):
        before = state
        state, verdicts = judge(ruleset, state, seen)
        if isinstance(seen.event, WagerPlaced):
            assert state == before
            assert [type(one) for one in verdicts] == [Noted]


@pytest.mark.parametrize("name", BANKED)
def test_bet_for_the_round_that_is_shown_begins_no_other_one(name: str) -> None:
    """The last round is shown until the next one begins, and at some tables the first bet begins it."""
    ruleset: Any = RULESETS[name](options_from(RULESETS[name], {}))
    rng = random.Random(name)
    state, dealer = ruleset.start("t-1"), corpus.SAMPLES[name].dealer(rng, {})
    event, accepted, refused = next(dealer), 0, 0
    for number in range(1, at_length(400, 5_000)):
        at = START + timedelta(seconds=number)
        shown = ruleset.view(state).round
        named = msgspec.structs.replace(placed("a", BETS[name]), round=shown)
        seen = Envelope("bet", "edge-7/terminals-1", at, named, number)
        after, verdicts = judge(ruleset, state, seen)
        answer = answer_to(seen, state, after, verdicts, ruleset.view(after).round)
        assert answer is not None
        if shown and answer.status == "accepted":
            accepted += 1
            assert answer.round == shown
        elif shown:
            refused += 1
        state, _ = judge(ruleset, state, Envelope(f"e{number}", "edge-7/d-1", at, event, number))
        event = dealer.send(msgspec.to_builtins(ruleset.view(state)))
    assert accepted > 10
    assert refused > 10


SHAKEN_BEFORE: list[Event] = [DiceCovered(), DiceAgitated("lever", 3)]


@pytest.mark.parametrize("name", ["macau.fantan", "macau.roulette", "angola.french-roulette", *sorted(VOID_AT_BELL)])
def test_late_bets_that_are_not_used_are_refused_also_while_the_round_waits(name: str) -> None:
    bet = BETS[name]
    late = [msgspec.structs.replace(placed(f"late-{n}", bet, seat=n), overtaken=50) for n in (2, 3)]
    shaken = SHAKEN_BEFORE if name in VOID_AT_BELL else []
    said = answers_of(name, [*shaken, BetsOpened(), placed("in-time", bet), BetsClosed(), *late])
    assert [(answer.id, answer.status, answer.code) for answer, _ in said] == [
        ("in-time", "accepted", ""),
        ("late-2", "refused", "bet_not_counted"),
        ("late-3", "refused", "bet_not_counted"),
    ]


@pytest.mark.parametrize("name", RULESETS)
def test_a_request_changes_no_verdict(name: str) -> None:
    """A wager of a terminal counts like any other."""
    ruleset: Any = RULESETS[name](options_from(RULESETS[name], {}))
    bet = BETS[name]
    events: list[Event] = [
        *BEFORE.get(name, []),
        *(
            BetsOpened(),
            placed("1", bet),
            placed("2", "nonsense"),
            BetsClosed(),
            placed("3", bet),
            withdrawn("4", bet, 0),
        ),
    ]
    plain = [
        msgspec.structs.replace(one, request="", terminal="") if isinstance(one, WagerPlaced | WagerWithdrawn) else one
        for one in events
    ]
    assert play(ruleset, events) == play(ruleset, plain)


def test_more_refusals_than_a_round_notes_are_still_refused() -> None:
    events: list[Event] = [BetsOpened(), *(placed(f"n-{n}", "nonsense") for n in range(60))]
    said = [*answers_of("macau.fantan", events)]
    assert {answer.status for answer, _ in said} == {"refused"}
    assert said[-1][0].code == "bet_not_counted"


def test_wager_without_a_request_has_no_answer() -> None:
    assert [*answers_of("macau.fantan", [BetsOpened(), WagerPlaced(1, "fan:2", 100)])] == []


def test_the_first_irregularity_of_the_event_is_the_reason_wherever_it_stands() -> None:
    [seen] = script([placed("a", "x")])
    note = Irregularity("bet_without_round", say("seat_bet", seat=1, bet="x"), "art. 4", seen.id)
    other = Irregularity("other", say("seat_bet", seat=1, bet="x"), "art. 9", "e9")
    answer = answer_to(seen, None, None, (Noted(other), Noted(note)))
    assert answer is not None
    assert (answer.code, answer.law, answer.text) == ("bet_without_round", "art. 4", "seat 1 on x (no round is open)")


# ---- the memory of a table


def answer(n: int) -> WagerAnswer:
    return WagerAnswer(f"a-{n}", "t-1", "accepted", event=f"e:{n}")


def test_answers_are_bounded_and_the_next_process_knows_the_last() -> None:
    kept, stored = WagerAnswers("fan-1", {}), dict[str, bytes]()
    for n in range(KEPT + 10):
        key, value = kept.put(placed(f"a-{n}", "fan:2"), answer(n))
        stored[key] = value
    assert len(stored) == KEPT
    assert all(key.startswith(f"{wagers.KEY}fan-1/") for key in stored)
    stored["wager/fan-1/7"] = b"of another version"
    for one in (kept, WagerAnswers("fan-1", stored)):
        assert one.again(request(9)) is None
        assert one.again(request(KEPT + 9)) == answer(KEPT + 9)
        assert one.again(msgspec.structs.replace(request(KEPT + 9), amount=101)) is None
        assert one.again(WithdrawWager(f"a-{KEPT + 9}", "t-1", START, 1, "fan:2", 100)) is None
        assert one.again(msgspec.structs.replace(request(KEPT + 9), terminal="t-2")) is None


def request(n: int) -> PlaceWager:
    return PlaceWager(f"a-{n}", "t-1", START, 1, "fan:2", 100)


# ---- the process


class Broker:
    """What the consumer publishes on the topics of answers."""

    def __init__(self) -> None:
        self.said: list[tuple[str, WagerAnswer]] = []

    async def publish(self, topic: str, payload: bytes) -> None:
        found = decode_answer(payload)
        assert isinstance(found, WagerAnswer)
        self.said.append((topic, found))


CONFIG = '[site]\nname = "s"\n[edge]\nname = "e"\n[[table]]\nname = "fan-1"\nruleset = "macau.fantan"\n'
TOPIC = "felt/1/s/table/fan-1/wager/t-1/result"


def envelopes(*events: Event) -> list[Envelope]:
    return [
        msgspec.structs.replace(
            one, id=f"e:fan-1:{one.seq}", source="felt/1/s/table/fan-1/device/terminals-1", journal="j"
        )
        for one in script(events)
    ]


async def answered(consumer: Consumer) -> list[tuple[str, WagerAnswer]]:
    broker: Any = Broker()
    sending = asyncio.create_task(consumer.answers.send(broker))
    await asyncio.sleep(0.1)
    sending.cancel()
    await asyncio.wait([sending])
    said: list[tuple[str, WagerAnswer]] = broker.said
    return said


def repeat(consumer: Consumer, n: int, *, retain: bool = False) -> None:
    consumer.answers.received("fan-1", Message(TOPIC.removesuffix("/result"), encode(request(n)), retain=retain))


@virtual_time
async def test_answers_are_durable_before_they_are_sent_and_given_again(tmp_path: Path) -> None:
    path = tmp_path / "rules.db"
    journal = Journal(path)
    consumer = Consumer(parse(CONFIG), journal)
    consumer.take(envelopes(ButtonsSeparated(), BetsOpened(), placed("a-1", "fan:2"), placed("a-2", "fan:9")))
    stored = journal.memories(wagers.KEY)
    assert len(stored) == 2
    said = await answered(consumer)
    assert [(topic, one.id, one.status, one.code, one.event) for topic, one in said] == [
        (TOPIC, "a-1", "accepted", "", "e:fan-1:3"),
        (TOPIC, "a-2", "refused", "bet_not_offered", "e:fan-1:4"),
    ]
    assert await answered(consumer) == []
    journal.close()
    journal = Journal(path)
    again = Consumer(parse(CONFIG), journal)
    for n in (1, 1, 3):
        repeat(again, n)
    repeat(again, 1, retain=True)
    assert await answered(again) == said[:1]
    journal.close()


@virtual_time
async def test_event_that_is_replayed_after_a_crash_gets_the_same_answer(tmp_path: Path) -> None:
    events = envelopes(ButtonsSeparated(), BetsOpened(), placed("a-1", "fan:2"), placed("a-1x", "fan:9"))
    said = []
    for name in ("one.db", "two.db"):
        journal = Journal(tmp_path / name)
        consumer = Consumer(parse(CONFIG), journal)
        consumer.take(events)
        consumer.take(events)
        said.append(await answered(consumer))
        journal.close()
    assert said[0] == said[1]
    assert len(said[0]) == 2


@virtual_time
async def test_answers_that_wait_for_the_broker_are_bounded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rules.db")
    consumer = Consumer(parse(CONFIG), journal)
    consumer.take(
        envelopes(ButtonsSeparated(), BetsOpened(), *(placed(f"a-{n}", "fan:2") for n in range(MOST_UNSENT + 50)))
    )
    said = await answered(consumer)
    assert len(said) == MOST_UNSENT
    assert said[-1][1].id == f"a-{MOST_UNSENT + 49}"
    journal.close()


@virtual_time
async def test_refused_bet_of_a_console_or_a_sensor_is_said_once_under_its_event(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rules.db")
    consumer = Consumer(parse(CONFIG), journal)
    bets = (WagerPlaced(1, "fan:2", 100), WagerPlaced(1, "fan:9", 100), WagerWithdrawn(2, "fan:1", 5))
    events = envelopes(ButtonsSeparated(), BetsOpened(), *bets)
    consumer.take(events)
    said = await answered(consumer)
    assert [(one.id, one.terminal, one.status, one.code) for _, one in said] == [
        ("e:fan-1:4", "terminals-1", "refused", "bet_not_offered"),
        ("e:fan-1:5", "terminals-1", "refused", "bet_not_placed"),
    ]
    assert journal.memories(wagers.KEY) == {}
    journal.close()
    journal = Journal(tmp_path / "later.db")
    later = Consumer(parse(CONFIG), journal)
    later.take([msgspec.structs.replace(one, replay=True) for one in events])
    assert await answered(later) == []
    journal.close()
