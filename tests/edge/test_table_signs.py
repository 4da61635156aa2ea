"""The edge writes into each bet whether its table is open, and the limits on its sign; a restart changes nothing."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from daemon.config.model import parse
from daemon.edge.edge import Edge
from daemon.journal.store import Journal
from drivers.driver import Sighting
from drivers.fdl_console import ConsoleOptions, FdlConsole
from protocols.contract.documents import TableSign
from protocols.contract.events import (
    BetsOpened,
    Event,
    LimitsChanged,
    TableClosed,
    TableCounted,
    TableOpened,
    WagerPlaced,
)
from protocols.fdl import console as fdl
from protocols.link import Chunk

CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-1"
[[table]]
name = "rou-1"
[[table.device]]
name = "page-1"
driver = "fdl_console"
url = "unix:///run/feltd/console/rou-1.sock"
"""
NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal(tmp_path / "edge.db")) as one:
        yield one


async def told(edge: Edge, *events: Event, age: float = 0.0) -> list[WagerPlaced]:
    """What the edge writes of these events of the page."""
    before = edge.journal.head
    sightings = [Sighting(one, b"", Chunk(b"", NOW, 100.0), age) for one in events]
    await edge.sessions[0].emit(sightings)
    rows = edge.journal.after(before, 100)
    return [msgspec.json.decode(row.data, type=WagerPlaced) for row in rows if row.type == "wager.placed"]


BET = WagerPlaced(1, "red", 100)


async def test_a_bet_carries_what_the_sign_says(journal: Journal) -> None:
    edge = Edge(parse(CONFIG), journal, now=lambda: NOW)
    assert await told(edge, BET) == [BET], "nobody opened the table here: the bet is as it was"
    opened = TableOpened(by="ana", minimum=50, maximum=500)
    limited = msgspec.structs.replace(BET, minimum=50, maximum=500)
    assert await told(edge, opened, BET, LimitsChanged(by="rui", minimum=100), BET) == [
        limited,
        msgspec.structs.replace(BET, minimum=100),
    ]
    assert await told(edge, TableClosed(), BET) == [msgspec.structs.replace(BET, minimum=100)], "no name: a key"
    assert await told(edge, TableClosed(by="ana"), BET) == [msgspec.structs.replace(BET, table_closed=True)]
    assert edge.info().signs == {"rou-1": TableSign("closed", "ana", NOW, 100)}


async def test_a_bet_from_before_the_decision_is_as_it_was_laid(journal: Journal) -> None:
    edge = Edge(parse(CONFIG), journal, now=lambda: NOW)
    await told(edge, TableClosed(by="ana"))
    assert [one.table_closed for one in await told(edge, BET, age=5.0)] == [False]
    assert [one.table_closed for one in await told(edge, BET)] == [True]


async def test_a_new_process_of_the_edge_goes_on_with_the_sign(journal: Journal) -> None:
    first = Edge(parse(CONFIG), journal, now=lambda: NOW)
    await told(first, TableOpened(by="ana", minimum=50, maximum=500), LimitsChanged(by="rui", minimum=60))
    again = Edge(parse(CONFIG), journal, now=lambda: NOW + timedelta(hours=1))
    assert again.info().signs == {"rou-1": TableSign("open", "ana", NOW, 60, limits_by="rui", limits_since=NOW)}
    assert [one.minimum for one in await told(again, BET)] == [60]


@pytest.mark.parametrize(
    "said",
    [
        fdl.TableOpened("ana", 50, 500),
        fdl.LimitsChanged("ana", 50, 500),
        fdl.TableClosedBy("ana"),
        fdl.TableCounted(0x05, 1000, "0" * 32, "dora", "sam"),
    ],
)
def test_a_console_that_signs_nobody_in_decides_nothing(said: fdl.TableOpened) -> None:
    driver = FdlConsole(ConsoleOptions())
    assert driver.translate(said) is None
    driver._signs_in = True
    assert driver.translate(said) is not None


def test_limits_that_contradict_each_other_are_no_event() -> None:
    bad = fdl.TableOpened("ana", 500, 50).to_bytes()
    assert not isinstance(fdl.TableOpened.from_bytes(bad), fdl.TableOpened)


def test_names_and_amounts_come_through() -> None:
    driver = FdlConsole(ConsoleOptions())
    driver._signs_in = True
    counted = fdl.TableCounted(0x03, 2**53 - 1, "a" * 32, "dora", "sam", "b" * 32)
    assert driver.translate(fdl.TableCounted.from_bytes(counted.to_bytes())) == (  # type: ignore[arg-type]
        TableCounted(kind="fill", amount=2**53 - 1, by="dora", second="sam", entry="a" * 32, reverses="b" * 32),
    )
    assert driver.translate(fdl.BetsOpened()) == (BetsOpened(),)
