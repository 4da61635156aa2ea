"""What may be a card that lies face down is never told with its bytes."""

import asyncio

import msgspec
import pytest
from helpers import MemoryLink, Notebook, virtual_time

from drivers import DRIVERS
from drivers.driver import Sighting
from drivers.fdl_session import FdlDriver
from protocols.contract.events import CardDamaged, CardUnreadable, DeviceFaulted, DeviceOnline, Event, EventsMissed
from protocols.fdl import frame as fdl
from tests.drivers.test_fdl_devices import codes_of

# ---- what may be a card that lies face down

TELLING = {
    name: driver
    for name, driver in DRIVERS.items()
    if isinstance(driver, type) and issubclass(driver, FdlDriver) and driver.tells_cards
}

TELLERS: list[tuple[str, dict[str, bool]]] = [
    *((name, {}) for name in TELLING),
    ("fdl_continuous", {"masked": True}),
    ("fdl_continuous", {"reads": False}),
]

SECRET = bytes.fromhex("C1 A7 C3")

# What stands in the place of an event whose card cannot be read, by its kind.
IN_ITS_PLACE: dict[str, dict[int, Event]] = {
    "fdl_continuous": {0x52: CardUnreadable(), 0x56: CardDamaged()},
    "fdl_shuffler": {0x47: CardUnreadable(), 0x4B: CardDamaged()},
    "fdl_console": {0x2F: CardDamaged()},
    "fdl_peek": {},
}


async def told_of(name: str, options: dict[str, bool], *frames: bytes) -> list[Sighting]:
    """What a driver tells of these frames in a session that is open, event 6 being the next."""
    driver = TELLING[name](msgspec.convert(options, TELLING[name].Options))
    link, notebook = MemoryLink(), Notebook()
    task = asyncio.create_task(driver.run(link, notebook))
    link.feed(fdl.encode(fdl.Identity(driver.kind, 7, 1, 6, 0), 1))
    await asyncio.sleep(0.2)
    link.feed(fdl.encode(fdl.Identity(driver.kind, 7, 1, 6, 6), 2))
    for frame in frames:
        link.feed(frame)
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    online, *told = notebook.sightings
    assert isinstance(online.event, DeviceOnline)
    return told


def hides(sighting: Sighting, kind: int = 0) -> bool:
    """Whether nothing of SECRET stands in it; the event's own kind may."""
    text = sighting.event.text.replace(f"kind {kind:02X}", "") if isinstance(sighting.event, DeviceFaulted) else ""
    words = {f"{byte:02x}" for byte in SECRET}
    return sighting.wire == sighting.chunk.data == b"" and not any(word in text.casefold() for word in words)


@pytest.mark.parametrize(("name", "options"), TELLERS)
@virtual_time
async def test_an_event_that_may_hold_a_card_is_told_without_its_data(name: str, options: dict[str, bool]) -> None:
    """Each kind there is, with data that is none: the fault, and what stands in a card's place, once."""
    cut = [SECRET[:n] for n in (1, 2, 3)] + [bytes(3) + SECRET, SECRET * 20]
    strange = [
        (kind, data)
        for kind in range(256)
        for data in cut
        if isinstance(fdl.read_happening(kind, data, TELLING[name].happenings), fdl.Malformed)
    ]
    assert {kind for kind, _ in strange} > TELLING[name].happenings.keys() - {0x4A, 0x59, 0x22}
    reports = [fdl.encode(fdl.EventReport(n, 0, *one), 3) for n, one in enumerate(strange, 6)]
    told = await told_of(name, options, *(report * 2 for report in reports))  # each comes twice, as the wire allows
    left = iter(told)
    for kind, _ in strange:
        if kind in TELLING[name].happenings:
            instead = next(left)
            assert instead.event == IN_ITS_PLACE[name].get(kind, EventsMissed(1))
            assert hides(instead)
        fault = next(left)
        assert isinstance(fault.event, DeviceFaulted)
        assert fault.event.code == "fdl.unknown_event"
        assert f"of kind {kind:02X} with data [withheld]: " in fault.event.text
        assert hides(fault, kind)
    assert list(left) == []


@pytest.mark.parametrize(("name", "options"), TELLERS)
@pytest.mark.parametrize("payload", [bytes(8) + b"\x52" + SECRET, SECRET, bytes(5) + SECRET])
@virtual_time
async def test_a_frame_that_may_hold_a_card_is_told_without_its_bytes(
    name: str, options: dict[str, bool], payload: bytes
) -> None:
    """An EVENT with counter 0, and two that are too short."""
    [fault] = await told_of(name, options, fdl.encode_frame(fdl.EventReport.TYPE, 3, payload))
    assert isinstance(fault.event, DeviceFaulted)
    assert fault.event.code == "fdl.malformed"
    assert hides(fault)


@pytest.mark.parametrize(("name", "options"), TELLERS)
@virtual_time
async def test_messages_in_one_chunk_with_a_card_do_not_carry_it(name: str, options: dict[str, bool]) -> None:
    card = fdl.encode(fdl.EventReport(6, 0, 0x85, SECRET), 3)
    fault = fdl.encode(fdl.EventReport(7, 0, fdl.Fault.KIND, fdl.Fault(0x06, 1).to_bytes()), 4)
    told = await told_of(name, options, card + fault)
    assert codes_of([one.event for one in told]) == {"fdl.unknown_event", "fdl.door"}
    assert all(SECRET not in one.wire + one.chunk.data for one in told)
    assert told[-1].wire  # the evidence of what is known is kept


def test_the_devices_that_tell_cards() -> None:
    assert TELLING.keys() == IN_ITS_PLACE.keys()
    for name, stands in IN_ITS_PLACE.items():
        assert stands.keys() <= TELLING[name].happenings.keys()
