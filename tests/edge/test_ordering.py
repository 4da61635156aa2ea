"""The order of a table's past: after a start the oldest event goes first, and nobody waits for ever."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from helpers import at_length, virtual_time
from hypothesis import given, settings, strategies as st

from daemon.edge.ordering import MAX_WAIT_S, RECALLED, SIMULTANEOUS_S, EventOrdering, reported_before
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.link import Chunk
from simulators.lab.campaign.loop import VirtualLoop


async def tell(
    gate: EventOrdering, device: str, happened: list[float], journal: list[tuple[float, str]], lag: float
) -> None:
    """A device that tells its past, one event after the other."""
    for at in happened:
        await asyncio.sleep(lag)
        await gate.wait_turn(device, at)
        journal.append((at, device))
    gate.caught_up(device)


@given(
    st.lists(st.lists(st.floats(-1000, 0), max_size=8).map(sorted), min_size=1, max_size=4),
    st.lists(st.sampled_from([0.0, 0.001, 0.02, 0.1]), min_size=4, max_size=4),
)
@settings(max_examples=at_length(50, 1_000))
def test_the_pasts_of_all_devices_become_one(pasts: list[list[float]], lags: list[float]) -> None:
    @virtual_time
    async def play() -> None:
        gate = EventOrdering(f"d{n}" for n in range(len(pasts)))
        journal: list[tuple[float, str]] = []
        async with asyncio.TaskGroup() as group:
            for n, past in enumerate(pasts):
                group.create_task(tell(gate, f"d{n}", past, journal, lags[n]))
        assert [at for at, _ in journal] == sorted(at for past in pasts for at in past)

    play()


@virtual_time
async def test_a_device_that_does_not_come_is_not_waited_for_longer_than_patience() -> None:
    gate = EventOrdering(["here", "gone"])
    loop = asyncio.get_running_loop()
    began = loop.time()
    await gate.wait_turn("here", -5.0)
    assert loop.time() - began == MAX_WAIT_S
    await gate.wait_turn("here", -4.0)
    assert loop.time() - began == MAX_WAIT_S


@virtual_time
async def test_one_device_may_wait_twice_and_the_first_may_be_broken_off() -> None:
    """A command of it waits with what it met, its line is lost, and both wait: the command is given up."""
    gate = EventOrdering(["slow", "here"])
    first, second = (asyncio.create_task(gate.wait_turn("here", at)) for at in (-2.0, -1.0))
    await asyncio.sleep(0.1)
    first.cancel()
    await asyncio.wait([first, second])
    assert second.exception() is None
    assert not gate.heads


@virtual_time
async def test_ordering_without_backlogs_does_not_wait() -> None:
    gate = EventOrdering([])
    loop = asyncio.get_running_loop()
    await gate.wait_turn("a", 1.0)
    await gate.wait_turn("b", 0.0)
    assert loop.time() == 0.0


@virtual_time
async def test_device_without_a_backlog_waits_its_turn_too() -> None:
    """A card drawn now waited until a busy console had told all that came after it: kill -9, a wrong result."""
    gate = EventOrdering(["console"])
    journal: list[tuple[float, str]] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(tell(gate, "console", [-2.0, -1.0, 0.5, 1.5], journal, 0.01))
        group.create_task(tell(gate, "shoe", [0.0, 1.0], journal, 0.001))
    assert [at for at, _ in journal] == [-2.0, -1.0, 0.0, 0.5, 1.0, 1.5]


def test_ordering_wait_ends_without_spinning() -> None:
    """Patience ends for both at one instant, and the younger is told first: life 328 of a planted fault, for ever."""
    loop = VirtualLoop(1000)
    order: list[str] = []

    async def pass_through(gate: EventOrdering, device: str, happened: float) -> None:
        await gate.wait_turn(device, happened)
        order.append(device)

    async def body() -> None:
        gate = EventOrdering(["gone"])
        async with asyncio.TaskGroup() as group:
            group.create_task(pass_through(gate, "older", -2.0))
            group.create_task(pass_through(gate, "younger", -1.0))

    try:
        loop.run_until_complete(body())
    finally:
        loop.close()
    assert order == ["older", "younger"]


@virtual_time
async def test_a_device_lost_while_it_waits_leaves_the_way_free() -> None:
    """Cancelled in its turn: its head no longer holds anybody up once it is known to be gone."""
    gate = EventOrdering(["a", "b"])
    waiting = asyncio.create_task(gate.wait_turn("a", -1.0))
    await asyncio.sleep(0.1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    gate.caught_up("a")
    await gate.wait_turn("b", 0.0)
    assert asyncio.get_running_loop().time() < MAX_WAIT_S


# ---- who was overtaken

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at_time(tick: float) -> tuple[Chunk, float]:
    """What arrives at once at `tick`, which is 0 at noon."""
    return Chunk(b"", NOON + timedelta(seconds=tick), tick), 0.0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-1000, 1000)), max_size=12))
def test_events_in_the_order_of_the_table_are_not_late(told: list[tuple[str, float]]) -> None:
    gate = EventOrdering([])
    assert not any(gate.late_ms(device, *at_time(at)) for device, at in sorted(told, key=lambda one: one[1]))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1000)), max_size=12))
def test_the_newest_of_the_others_says_by_how_much(told: list[tuple[str, int]]) -> None:
    gate = EventOrdering([])
    for n, (device, at) in enumerate(told):
        newest = max((when for other, when in told[:n] if other != device), default=at)
        assert gate.late_ms(device, *at_time(at)) == (max(newest - at, 0) * 1000)


def test_lines_and_clocks_that_differ_a_little_have_overtaken_nobody() -> None:
    gate = EventOrdering([])
    assert gate.late_ms("shoe", *at_time(10.0)) == 0
    assert gate.late_ms("console", *at_time(10.0 - SIMULTANEOUS_S / 2)) == 0
    assert gate.late_ms("console", *at_time(9.5)) == 500


def test_an_event_kept_from_before_the_bell_is_late_although_another_process_has_reported_the_bell() -> None:
    gate = EventOrdering([], {"bell": NOON})
    back = Chunk(b"", NOON + timedelta(seconds=8), 3.0)
    assert gate.late_ms("chips", back, 10.0) == 2000
    assert gate.late_ms("bell", back, 10.0) == 0
    assert gate.late_ms("chips", back, 7.0) == 0


def test_where_the_clock_was_set_back_what_was_kept_is_late_and_what_happens_now_is_not() -> None:
    gate = EventOrdering([], {"bell": NOON})
    back = Chunk(b"", NOON - timedelta(hours=1), 3.0)
    assert gate.late_ms("chips", back, 10.0) == 10_000
    assert gate.late_ms("chips", back, 0.0) == 0


def test_the_journal_shows_the_newest_event_of_each_device(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "edge.db")
    second = timedelta(seconds=1)
    journal.append([Entry("t", "gone", "card.drawn", NOON, b"{}")])
    journal.append(
        [
            Entry("t", "shoe", "card.drawn", NOON + second, b"{}"),
            Entry("t", "chips", "wager.placed", NOON + 2 * second, b'{"age_ms":1500}'),
            Entry("t", "chips", "wager.placed", NOON + 3 * second, b'{"age_ms":2750}'),
            Entry("t", "bell", "device.online", NOON + 4 * second, b"{}"),
            Entry("t", "bell", "bets.closed", NOON + 5 * second, b"?"),
            Entry("u", "bell", "bets.closed", NOON + 6 * second, b"{}"),
        ]
    )
    assert reported_before(journal, "t") == {"gone": NOON, "shoe": NOON + second, "chips": NOON + second / 2}
    journal.append([Entry("t", "shoe", "card.drawn", NOON, b"{}")] * (RECALLED - 5))
    assert reported_before(journal, "t") == {"shoe": NOON + second, "chips": NOON + second / 2}
    assert reported_before(journal, "empty") == {}
    journal.close()
