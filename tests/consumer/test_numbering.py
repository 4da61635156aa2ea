"""Round numbers of rules that begin with a new journal: no id of a round is given to a second one."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from helpers import script
from msgspec.structs import replace

from daemon.config.model import parse
from daemon.consumer.consumer import Consumer
from daemon.consumer.numbering import Numbering
from daemon.journal.store import Journal
from protocols.contract.events import BallLanded, BallLaunched, BallSettling, Event, RoundPaid, SpinStarted
from protocols.contract.topics import Envelope
from rules import RULESETS
from rules.engine.rounds import numbered_after
from rules.engine.ruleset import options_from

CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
"""
DAY = "rou-1:2026-11-20"


def spins(journal: str, first: int, pockets: Sequence[int]) -> list[Envelope]:
    """A spin for each pocket, as events of an edge's journal from `first` on."""
    events: list[Event] = []
    for pocket in pockets:
        ball = (BallLaunched("clockwise", "anticlockwise"), BallSettling(), BallLanded(str(pocket)))
        events += [SpinStarted(pocket), *ball, RoundPaid()]
    return [
        replace(one, id=f"e:rou-1:{seq}", seq=seq, journal=journal, time=one.time + timedelta(hours=pockets[0]))
        for seq, one in enumerate(script(events, "rou-1"), first)
    ]


class Site:
    """The rules of one table, and what they leave on the broker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.state = b""

    def rules(self, name: str, events: Sequence[Envelope] = ()) -> list[str]:
        """The results of rules with the journal `name`, by round and pocket."""
        consumer = Consumer(parse(CONFIG), Journal(self._folder / f"{name}.db"))
        numbers = consumer._tables["rou-1"].numbers
        if numbers.unread:
            consumer._unsaved.update(numbers.read(self.state))
            consumer._commit([])
        self.state = msgspec.json.encode(consumer.standing("rou-1"))
        consumer.take(events)
        consumer._commit([], exact=True)
        self.state = msgspec.json.encode(consumer.standing("rou-1"))
        rows = [row for row in consumer.journal.after(0, 1000) if row.type == "resolved"]
        results = [msgspec.json.decode(row.data)["result"] for row in rows]
        consumer.journal.close()
        return [f"{one['round']} {one['outcome']['pocket']}" for one in results]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_replaced_computer_numbers_after_the_last_round(site: Site) -> None:
    """Edge and rules have new journals: their events and rounds are new."""
    assert site.rules("a", spins("j1", 1, [1, 2])) == [f"{DAY}:1 1", f"{DAY}:2 2"]
    assert site.rules("b", spins("j2", 1, [3])) == [f"{DAY}:3 3"]


def test_events_that_were_resolved_before_get_the_same_numbers(site: Site) -> None:
    """The rules alone have a new journal: the edge replays its own from the first event."""
    events = spins("j1", 1, [1, 2])
    before = site.rules("a", events)
    assert site.rules("b", [*events, *spins("j1", 11, [3])]) == [*before, f"{DAY}:3 3"]


def test_numbers_are_the_same_also_after_an_earlier_replacement(site: Site) -> None:
    site.rules("a", spins("j1", 1, [1, 2]))
    events = spins("j2", 1, [3, 4])
    before = site.rules("b", events)
    assert before == [f"{DAY}:3 3", f"{DAY}:4 4"]
    assert site.rules("c", events) == before


def test_restart_before_the_first_event_forgets_nothing(site: Site) -> None:
    """The state that stood on the broker was replaced by that of the new rules."""
    events = spins("j1", 1, [1, 2])
    before = site.rules("a", events)
    assert site.rules("b") == []
    assert site.rules("b", events) == before


def test_next_day_begins_with_1(site: Site) -> None:
    site.rules("a", spins("j1", 1, [1, 2]))
    [result] = site.rules("b", spins("j2", 1, [20]))
    assert result == "rou-1:2026-11-21:1 20"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b'{"phase":"idle"}',
        b'{"phase":"idle","newest":"rou-2:2026-11-20:7"}',
        b'{"phase":"idle","newest":"rou-1:7"}',
        b'{"phase":"idle","newest":"rou-1:2026-11-20:x"}',
        b'{"phase":"idle","newest":"rou-1:2026-11-20:7","heard":{"j":9},"after":{"j":"x"}}',
    ],
)
def test_state_that_names_no_round_is_not_used(site: Site, payload: bytes) -> None:
    """Of an earlier version, or damaged."""
    site.state = payload
    assert site.rules("a", spins("j1", 1, [1])) == [f"{DAY}:1 1"]


@pytest.mark.parametrize("ruleset", sorted(RULESETS))
def test_every_game_can_go_on_after_a_round(ruleset: str, tmp_path: Path) -> None:
    game = RULESETS[ruleset]
    start = game(options_from(game, {})).start("t-1")
    journal = Journal(tmp_path / "j.db")
    numbers = Numbering("t-1", journal, "", fresh=True)
    numbers.read(b'{"phase":"idle","newest":"t-1:2026-11-20:7:3"}')
    [seen] = script([SpinStarted(1)])
    assert numbers.first(start, seen) == numbered_after(start, "t-1", "t-1:2026-11-20:7:3") != start
    journal.close()
