"""What several devices tell in one turn of the loop is one transaction, and each caller gets its own outcome."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.config.model import parse
from daemon.edge.device_session import DeviceSession
from daemon.edge.edge import Edge
from daemon.journal.rows import Entry, Row
from daemon.journal.store import BadJournal, Journal
from drivers.driver import Chunk, Sighting
from protocols.contract.events import CardDrawn, DeviceFaulted, DeviceOnline, Event

AT = datetime(2026, 11, 23, 12, tzinfo=UTC)
CONFIG = """
[site]
name = "s"
[edge]
name = "e"
""" + "".join(
    f"""
[[table]]
name = "t{n}"
[[table.device]]
name = "d"
driver = "bee_tek_shoe"
url = "tcp://127.0.0.1:{n + 1}"
"""
    for n in range(3)
)


class Counted(Journal):
    """Counts its transactions, and fails when told to."""

    transactions = 0
    broken = False

    def append(self, entries: object, memory: Mapping[str, bytes | None] | None = None) -> list[Row]:
        if self.broken:
            raise BadJournal("disk full")
        self.transactions += 1
        return super().append(entries, memory)  # type: ignore[arg-type]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Counted]:
    one = Counted(tmp_path / "journal.db")
    yield one
    one.close()


def posts(journal: Counted) -> list[DeviceSession]:
    edge = Edge(parse(CONFIG), journal)
    journal.transactions = 0
    return edge.sessions


def sighting(event: Event) -> Sighting:
    return Sighting(event, b"", Chunk(b"", AT, 1.0))


async def test_events_of_one_turn_share_a_transaction_in_the_order_of_their_coming(journal: Counted) -> None:
    first, second, third = posts(journal)
    two = [sighting(CardDrawn("AS")), sighting(CardDrawn("KD"))]
    await asyncio.gather(second.emit(two, b"kept"), first.emit([sighting(CardDrawn("2H"))]), third.emit([], b"only"))
    assert journal.transactions == 1
    assert [(row.place, row.seq) for row in journal.after(0, 9)] == [("t1", 1), ("t1", 2), ("t0", 1)]
    assert (first.events, second.events, third.events) == (1, 2, 0)
    assert second.last is not None
    assert second.last.seq == 2
    assert (second.memory(), third.memory()) == (b"kept", b"only")
    await first.emit([sighting(CardDrawn("3H"))])
    assert journal.transactions == 2


async def test_caller_that_is_cancelled_leaves_events_and_status_whole(journal: Counted) -> None:
    post = posts(journal)[0]
    telling = asyncio.create_task(
        post.emit([sighting(DeviceOnline(False, "M")), sighting(DeviceFaulted("x.y", "", "error", ""))])
    )
    await asyncio.sleep(0)
    telling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await telling
    await post.emit([sighting(CardDrawn("AS"))])
    assert [row.type for row in journal.after(0, 9)] == ["device.online", "device.faulted", "card.drawn"]
    assert post.online
    assert post.has_fault("x.y")
    assert b"x.y" in (journal.memory("status/t0/d") or b"")


async def test_bug_in_one_part_is_raised_there_and_the_others_are_written(
    journal: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = posts(journal)

    def broken(_: Sighting) -> Entry:
        raise ZeroDivisionError

    monkeypatch.setattr(first, "_entry", broken)
    told = (first.emit([sighting(CardDrawn("AS"))]), second.emit([sighting(CardDrawn("KD"))]))
    outcomes = await asyncio.gather(*told, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError, type(None)]
    assert [row.place for row in journal.after(0, 9)] == ["t1"]


async def test_failure_of_the_journal_reaches_all(journal: Counted) -> None:
    first, second, _ = posts(journal)
    journal.broken = True
    told = (first.emit([sighting(CardDrawn("AS"))]), second.emit([sighting(CardDrawn("KD"))]))
    assert [type(one) for one in await asyncio.gather(*told, return_exceptions=True)] == [BadJournal, BadJournal]
