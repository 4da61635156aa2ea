"""A clock that goes back is an alert at every table of the edge, until it has caught up."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import virtual_time

from daemon.broker.session import BrokerLost
from daemon.config.model import parse
from daemon.edge.clock_watch import LASTS_S, ClockWatch
from daemon.edge.edge import Edge
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from daemon.words import words
from protocols.contract.documents import Alert
from protocols.contract.topics import table_topic

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TOPIC = table_topic("s", "t-1", "alert/e-clock-back")
CONFIG = '[site]\nname = "s"\n[edge]\nname = "e"\n[[table]]\nname = "t-1"\n'


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("clock", "back"),
    [
        ([(0, 0), (1, 1), (2, 2)], [False, False, False]),
        ([(0, 0), (-1.5, 1), (-0.5, 2)], [False, False, False]),
        ([(0, 0), (-60, 1), (-59, 2), (-2, 59), (1, 62)], [False, True, True, False, False]),
        ([(-60, 0), (-59, 1)], [True, True]),
        ([(0, 0), (-1e8, 1), (-1e8 + 1, 2), (-1e8 + LASTS_S, 1 + LASTS_S)], [False, True, True, False]),
    ],
)
def test_a_clock_that_went_back_is_known_until_it_has_caught_up(
    clock: list[tuple[float, float]], back: list[bool]
) -> None:
    watch = ClockWatch(NOON, 0.0)
    assert [watch.look(after(seconds), at_s) is not None for seconds, at_s in clock] == back


@virtual_time
async def test_the_alert_stands_at_the_table_and_ends(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "edge.db")
    journal.append([Entry("t-1", "d-1", "ball.landed", NOON, b"{}")])
    loop = asyncio.get_running_loop()
    begin, offset = loop.time(), timedelta(minutes=-1)

    def no_broker(*_: Any) -> Any:
        raise BrokerLost("no broker here")

    edge = Edge(
        parse(CONFIG), journal, now=lambda: NOON + timedelta(seconds=loop.time() - begin) + offset, connect=no_broker
    )
    task = asyncio.create_task(edge.run())
    await asyncio.sleep(2)
    raw = edge.retained._wanted[TOPIC]
    assert isinstance(raw, bytes)
    alert = msgspec.json.decode(raw, type=Alert)
    assert (alert.code, alert.text) == (
        "clock.back",
        "the clock went back: it was 2026-11-20 12:00:00 UTC already",
    )
    for lang in ("pt", "zh-Hant"):
        assert words.reason(lang, alert.why, alert.code) != alert.text
        assert words.reason(lang, alert.to_do, alert.code) != alert.remedy
    await asyncio.sleep(61)
    assert edge.retained._wanted[TOPIC] == b""
    task.cancel()
    await asyncio.wait([task])
    journal.close()
