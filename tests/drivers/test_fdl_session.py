"""The session of an FDL driver by itself: acknowledgement, gaps, restarts, and faults over all of them."""

import contextlib
import re

import msgspec
import pytest
from helpers import START, at_length
from hypothesis import given, settings, strategies as st

from drivers.driver import Chunk, DeviceRefused, LinkLost, decode_memory
from drivers.faults import Standing
from drivers.fdl_console import FAULTS as CONSOLE_FAULTS, ConsoleOptions, FdlConsole
from drivers.fdl_session import COMMON_FAULTS, HOST_FAULTS, Heard, Memory, Session, SessionOptions
from drivers.fdl_shaker import FAULTS as SHAKER_FAULTS, FdlShaker
from protocols.contract.events import BetsClosed, DeviceFaulted, DeviceOnline, DeviceRecovered, Event, EventsMissed
from protocols.fdl import console as fdl_console, frame as fdl, shaker as fdl_shaker
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_shaker import Shaker
from tests.drivers.test_fdl_devices import DOC, UNIT, codes_of, console, make, said

# ---- the session by itself


def session(memory: Memory | None = None, kind: int = fdl.CONSOLE) -> Session:
    made = Session(
        kind,
        CONSOLE_FAULTS if kind == fdl.CONSOLE else SHAKER_FAULTS,
        fdl_console.HAPPENINGS if kind == fdl.CONSOLE else fdl_shaker.HAPPENINGS,
        make(FdlConsole if kind == fdl.CONSOLE else FdlShaker, None).translate,
        SessionOptions(),
        msgspec.json.encode(memory) if memory else None,
    )
    made.begin(0)
    return made


def opened(last: int = 10, kind: int = fdl.CONSOLE) -> Session:
    made = session(Memory(7, last, UNIT), kind)
    heard = hear(made, fdl.Identity(kind, 7, 1, last + 1, last + 1, *UNIT))
    assert [event.continuous for event in events_of(heard) if isinstance(event, DeviceOnline)] == [True]
    return made


def hear(host: Session, *messages: fdl.Message, now: float = 0.0) -> Heard:
    return host.hear(Chunk(b"".join(fdl.encode(message, 1) for message in messages), START, now), now)


def events_of(heard: Heard) -> list[Event]:
    return [sighting.event for sighting in heard.sightings]


def bell(counter: int) -> fdl.EventReport:
    return fdl.EventReport(counter, 0, fdl_console.BetsClosed.KIND)


def test_one_chunk_is_one_batch_and_one_ack() -> None:
    heard = hear(opened(), bell(11), bell(12), bell(12), bell(13))
    assert events_of(heard) == [BetsClosed()] * 3
    assert said(heard.answer) == [fdl.Ack(7, 13)]
    assert decode_memory(heard.memory, Memory) == Memory(7, 13, UNIT)


def test_a_duplicate_is_acknowledged_and_dropped() -> None:
    heard = hear(opened(), bell(9))
    assert heard == Heard((), None, heard.answer)
    assert said(heard.answer) == [fdl.Ack(7, 10)]


def test_a_gap_is_asked_for_and_not_told() -> None:
    host = opened()
    heard = hear(host, bell(12), bell(13))
    assert events_of(heard) == []
    assert said(heard.answer) == [fdl.Nak(fdl.GAP, 7, 11)]
    assert said(hear(host, bell(12), now=0.05).answer) == []
    assert said(hear(host, bell(12), now=0.1).answer) == [fdl.Nak(fdl.GAP, 7, 11)]


def test_garbage_is_asked_for_again_but_not_for_each_piece() -> None:
    host = opened()
    noise = Chunk(b"\x09noise\0" * 20, START, 0)
    assert said(host.hear(noise, 0.5).answer) == [fdl.Nak(fdl.UNREADABLE, 7, 11)]
    assert said(host.hear(noise, 0.59).answer) == []
    assert said(host.hear(noise, 0.6).answer) == [fdl.Nak(fdl.UNREADABLE, 7, 11)]
    hear(host, bell(11), now=0.6)
    assert said(host.hear(noise, 0.61).answer) == [fdl.Nak(fdl.UNREADABLE, 7, 12)]


def test_no_event_counts_before_the_session_is_open() -> None:
    host = session(Memory(7, 10, UNIT))
    heard = hear(host, bell(11))
    assert heard == Heard((), None, b"")


def test_a_heartbeat_that_waits_is_answered_with_hello() -> None:
    host = opened()
    assert host.wake(0.9) == b""
    hear(host, fdl.Heartbeat(0, 11, fdl.WAITS_FOR_HELLO), now=1.0)
    assert host.due() == 1.0
    assert said(host.wake(1.0)) == [fdl.Hello(7, 10)]
    assert said(host.wake(1.5)) == [fdl.Hello(7, 10)]


def test_no_event_counts_while_the_device_is_asked_again() -> None:
    host = opened()
    hear(host, fdl.Heartbeat(0, 11, fdl.WAITS_FOR_HELLO), now=1.0)
    assert hear(host, bell(11), now=1.1) == Heard((), None, b"")
    hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 12, 11, *UNIT), now=1.2)
    assert events_of(hear(host, bell(11), now=1.3)) == [BetsClosed()]


def test_a_device_that_stands_elsewhere_is_asked_again() -> None:
    host = opened()
    assert events_of(hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 12, 5, *UNIT), now=1.0)) == []
    assert said(host.wake(1.0)) == [fdl.Hello(7, 10)]


def test_hello_does_not_follow_hello_at_once() -> None:
    host = session()
    heard = hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 12, 0, *UNIT), now=0.01)
    assert decode_memory(heard.memory, Memory) == Memory(7, 11, UNIT)
    assert host.due() == pytest.approx(0.1)
    assert said(host.wake(0.05)) == []
    assert said(host.wake(0.1)) == [fdl.Hello(7, 11)]


def test_events_that_do_not_get_through_end_the_link() -> None:
    host = opened()
    for second in range(1, 10):
        hear(host, fdl.Heartbeat(0, 12), now=second)
    with pytest.raises(LinkLost, match="does it receive our frames"):
        hear(host, fdl.Heartbeat(0, 12), now=10)


def test_a_counter_that_goes_back_is_a_fault_and_no_proof() -> None:
    host = opened()
    heard = hear(host, fdl.Heartbeat(0, 5), now=1)
    assert said(host.wake(1)) == [fdl.Hello(7, 10)]
    heard = hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 5, 0, *UNIT), now=1)
    online, fault = events_of(heard)
    assert isinstance(online, DeviceOnline)
    assert not online.continuous
    assert isinstance(fault, DeviceFaulted)
    assert fault.code == "fdl.counter_back"
    assert said(host.wake(1.2)) == [fdl.Hello(7, 4)]


def test_malformed_frames_are_told_once() -> None:
    host = opened()
    short = fdl.encode_frame(fdl.EventReport.TYPE, 1, b"\x00\x00")
    heard = host.hear(Chunk(short * 3, START, 0), 0)
    [fault] = events_of(heard)
    assert isinstance(fault, DeviceFaulted)
    assert fault.code == "fdl.malformed"
    assert said(heard.answer) == [fdl.Nak(fdl.MALFORMED, 7, 11)]
    assert host.hear(Chunk(short, START, 1), 1).sightings == ()


@pytest.mark.parametrize("early", [False, True])
def test_malformed_frames_are_told_again_after_a_start_of_the_device(early: bool) -> None:
    """Also those that come before the self-test is over: they are not what the start ended."""
    host = opened()
    short = Chunk(fdl.encode_frame(fdl.EventReport.TYPE, 1, b"\x00\x00"), START, 0)
    assert codes_of(events_of(host.hear(short, 0))) == {"fdl.malformed"}
    hear(host, started(11))
    if not early:
        assert events_of(hear(host, beat(11, 6000))) == [DeviceRecovered("fdl.malformed")]
    told = [*events_of(host.hear(short, 1)), *events_of(host.hear(short, 2))]
    assert [type(event) for event in told] == [DeviceFaulted]
    assert events_of(hear(host, beat(11, 7000))) == []
    assert host._faults.is_open("fdl.malformed")


def test_a_counter_that_goes_back_after_a_start_is_not_what_the_start_ended() -> None:
    host = found_by_the_host()
    hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 5, 5, *UNIT), started(5), fdl.Heartbeat(0, 3), now=2)
    hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 3, 0, *UNIT), now=3)
    hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 3, 3, *UNIT), now=4)
    assert DeviceRecovered("fdl.unknown_event") in (over := events_of(hear(host, beat(2, 6000), now=8)))
    assert DeviceRecovered("fdl.counter_back") not in over


def test_a_strange_event_after_a_start_is_not_what_the_start_ended() -> None:
    host = opened()
    strange = [fdl.EventReport(n, 0, 0x7F) for n in (11, 13)]
    hear(host, strange[0], started(12), strange[1])
    assert events_of(hear(host, beat(13, 6000))) == []
    assert host._faults.is_open("fdl.unknown_event")


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (0x7F, b"\x01\x02", "event 11 of kind 7F with data [01 02]: this kind of event is not known"),
        (0x24, b"\x63", "event 11 of kind 24 with data [63]: the data are not: decks, 0 to 12, 0 not known"),
        (
            0x13,
            b"\x00\x00\x00",
            "event 11 of kind 13 with data [00 00 00]: this kind of event is not known",
        ),
    ],
)
def test_unreadable_event_is_reported_and_acknowledged(kind: int, data: bytes, words: str) -> None:
    heard = hear(opened(), fdl.EventReport(11, 0, kind, data))
    *missed, fault = events_of(heard)
    assert missed == ([EventsMissed(1)] if kind in fdl_console.HAPPENINGS else [])
    assert isinstance(fault, DeviceFaulted)
    assert (fault.code, fault.severity) == ("fdl.unknown_event", "warning")
    assert fault.text == f"the device reports an event that this version does not support ({words})"
    assert said(heard.answer) == [fdl.Ack(7, 11)]


# ---- faults


@pytest.mark.parametrize(("kind", "faults"), [(fdl.SHAKER, SHAKER_FAULTS), (fdl.CONSOLE, CONSOLE_FAULTS)])
def test_every_fault_has_its_code_and_ends_by_it(kind: int, faults: dict[int, object]) -> None:
    host = opened(kind=kind)
    codes = set()
    for n, code in enumerate(range(256)):
        begins = fdl.EventReport(11 + 2 * n, 0, fdl.Fault.KIND, fdl.Fault(code, 1).to_bytes())
        over = fdl.EventReport(12 + 2 * n, 0, fdl.Recovered.KIND, fdl.Recovered(code).to_bytes())
        fault, recovered = events_of(hear(host, begins, over))
        assert isinstance(fault, DeviceFaulted)
        assert recovered == DeviceRecovered(fault.code)
        assert fault.text
        assert fault.remedy
        assert fault.code.startswith("fdl.fault_") == (code not in COMMON_FAULTS and code not in faults)
        codes.add(fault.code)
    assert len(codes) == 256


def test_the_document_lists_every_fault() -> None:
    rows = re.findall(r"^\| ([0-9A-F]{2}) \| (all|shaker|console) \| `([a-z_.]+)`", DOC, re.MULTILINE)
    printed = {(device, int(code, 16), name) for code, device, name in rows}
    tables = {"all": COMMON_FAULTS, "shaker": SHAKER_FAULTS, "console": CONSOLE_FAULTS}
    assert printed == {
        (device, code, fault.code) for device, faults in tables.items() for code, fault in faults.items()
    }


@given(st.binary(max_size=60))
def test_a_corrupt_memory_is_no_memory(junk: bytes) -> None:
    assert decode_memory(junk, Memory) is None
    assert decode_memory(b'{"epoch":7,"last":3,"unit":["a","b","' + junk, Memory) is None


@pytest.mark.parametrize(
    "memory",
    [
        None,
        b"",
        b'{"epoch":0,"last":3,"unit":["","",""]}',
        b'{"epoch":1,"last":-3,"unit":["","",""]}',
        b'{"epoch":1,"last":4294967296,"unit":["","",""]}',
        b'{"epoch":1,"last":3}',
        b'{"epoch":1,"last":3,"unit":["\xff","",""]}',
    ],
)
def test_a_memory_that_cannot_be_is_none(memory: bytes | None) -> None:
    assert decode_memory(memory, Memory) is None


def test_a_memory_of_before_faults_were_kept() -> None:
    host = Session(
        fdl.CONSOLE,
        CONSOLE_FAULTS,
        fdl_console.HAPPENINGS,
        make(FdlConsole, None).translate,
        SessionOptions(),
        b'{"epoch":7,"last":10,"unit":["Felt","Console","SIM-CONSOLE-1"]}',
    )
    host.begin(0)
    heard = hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 11, 11, *UNIT))
    assert [event.continuous for event in events_of(heard) if isinstance(event, DeviceOnline)] == [True]
    assert events_of(hear(host, bell(11))) == [BetsClosed()]


def fault(counter: int, code: int = 0x20, severity: int = 1) -> fdl.EventReport:
    return fdl.EventReport(counter, 0, fdl.Fault.KIND, fdl.Fault(code, severity).to_bytes())


def recovered(counter: int, code: int = 0x20) -> fdl.EventReport:
    return fdl.EventReport(counter, 0, fdl.Recovered.KIND, fdl.Recovered(code).to_bytes())


def started(counter: int) -> fdl.EventReport:
    return fdl.EventReport(counter, 0, fdl.Started.KIND)


def beat(last: int, uptime: int = 60_000, *, faulty: bool = False) -> fdl.Heartbeat:
    return fdl.Heartbeat(uptime, last + 1, fdl.FAULTY if faulty else 0)


def restarted(host_memory: bytes | None) -> Session:
    """The host's program began anew and found the device where it had left it."""
    memory = decode_memory(host_memory, Memory)
    assert memory is not None
    made = session(memory)
    [online] = events_of(hear(made, fdl.Identity(fdl.CONSOLE, 7, 1, memory.last + 1, memory.last + 1, *UNIT)))
    assert isinstance(online, DeviceOnline)
    assert online.continuous
    return made


def severities(heard: Heard) -> list[str]:
    return [event.severity for event in events_of(heard) if isinstance(event, DeviceFaulted)]


def test_the_second_time_in_a_cycle_is_an_error_also_after_a_restart_of_the_host() -> None:
    host = opened()
    first = hear(host, fault(11))
    assert severities(first) == ["warning"]
    memory = decode_memory(first.memory, Memory)
    assert memory is not None
    assert memory.faults == Standing(("console.key_stuck",), ("console.key_stuck",))
    host = restarted(first.memory)
    over = hear(host, recovered(12))
    assert events_of(over) == [DeviceRecovered("console.key_stuck")]
    assert severities(hear(restarted(over.memory), fault(13))) == ["error"]
    host.good_cycle()
    assert severities(hear(host, fault(13))) == ["warning"]


def test_error_reported_by_the_device_is_a_fault_at_once() -> None:
    assert severities(hear(opened(), fault(11, severity=2))) == ["error"]


def test_a_standing_fault_is_not_over_because_somebody_restarted_something() -> None:
    memory = hear(opened(), fault(11)).memory
    for uptime in (0, 4999, 5000, 100_000):
        assert events_of(hear(restarted(memory), beat(11, uptime, faulty=True))) == []
    # Nor by a heartbeat without the fault, while the device did not start and lost nothing: its event will come.
    assert events_of(hear(restarted(memory), beat(11))) == []


def test_after_a_start_what_the_self_test_does_not_find_is_over() -> None:
    host = opened()
    hear(host, fault(11), fault(12, 0x21))
    memory = hear(host, started(13), fault(14, 0x21)).memory
    host = restarted(memory)  # also where the host's program begins anew in between
    assert events_of(hear(host, beat(14, 4999, faulty=True))) == []
    assert events_of(hear(host, beat(15, 5000, faulty=True))) == []  # an event is missing
    heard = hear(host, beat(14, 5000, faulty=True))
    assert events_of(heard) == [DeviceRecovered("console.key_stuck")]
    memory_after = decode_memory(heard.memory, Memory)
    assert memory_after is not None
    assert memory_after.faults.open == ("console.display",)
    assert memory_after.doubted == ()


def test_after_lost_events_only_a_sound_device_ends_a_fault() -> None:
    host = opened()
    hear(host, fault(11))
    hear(host, beat(20), fdl.Identity(fdl.CONSOLE, 7, 20, 30, 20, *UNIT), now=1)
    heard = hear(host, fdl.Identity(fdl.CONSOLE, 7, 20, 21, 20, *UNIT), bell(20), now=2)
    assert BetsClosed() in events_of(heard)
    assert events_of(hear(host, beat(20, faulty=True), now=2)) == []
    assert events_of(hear(host, beat(20), now=3)) == [DeviceRecovered("console.key_stuck")]


def test_a_fault_that_nobody_told() -> None:
    host = opened()
    [untold] = events_of(hear(host, beat(10, faulty=True)))
    assert isinstance(untold, DeviceFaulted)
    assert untold.code == "fdl.untold_fault"
    assert events_of(hear(host, beat(10, faulty=True))) == []
    hear(host, fault(11))
    assert events_of(hear(host, beat(11, faulty=True))) == [DeviceRecovered("fdl.untold_fault")]


def test_faults_that_the_host_finds_end_with_a_start_of_the_device() -> None:
    host = opened()
    hear(host, fdl.EventReport(11, 0, 0x7F))
    assert events_of(hear(host, beat(11))) == []
    hear(host, started(12))
    assert events_of(hear(host, beat(12, 5000))) == [DeviceRecovered("fdl.unknown_event")]


def found_by_the_host() -> Session:
    """A session whose device has done all that only the host can find."""
    host = opened()
    hear(host, fault(11), fdl.EventReport(12, 0, 0x7F))
    host.hear(Chunk(fdl.encode_frame(fdl.EventReport.TYPE, 1, b"\0"), START, 0), 0)
    hear(host, fdl.Heartbeat(0, 5), now=1)
    hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 5, 0, *UNIT), now=1)
    return host


FOUND = ["fdl.unknown_event", "fdl.malformed", "fdl.counter_back"]


@pytest.mark.parametrize("same_line", [False, True])
def test_faults_found_by_the_host_end_when_the_unit_is_exchanged(same_line: bool) -> None:
    host = found_by_the_host()
    kept = hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 5, 5, *UNIT), beat(4, 5000, faulty=True), now=2)
    assert events_of(kept) == []  # it is the same one
    if not same_line:
        host = session(Memory(7, 4, UNIT, host._faults.standing))
    spare = ("Felt", "Console", "SPARE")
    met = hear(host, fdl.Identity(fdl.CONSOLE, 9, 1, 2, 0, *spare), now=3)
    online, *over = events_of(met)
    assert isinstance(online, DeviceOnline)
    assert sorted(over, key=str) == sorted(map(DeviceRecovered, FOUND), key=str)
    opens = hear(host, fdl.Identity(fdl.CONSOLE, 9, 1, 2, 2, *spare), beat(1, 86_400_000), now=4)
    assert events_of(opens) == [DeviceRecovered("console.key_stuck")]
    memory = decode_memory(opens.memory, Memory)
    assert memory is not None
    assert memory.faults.open == ()
    # What this one does wrong is told again.
    again = host.hear(Chunk(fdl.encode_frame(fdl.EventReport.TYPE, 1, b"\0"), START, 5), 5)
    assert codes_of(events_of(again)) == {"fdl.malformed"}


def test_the_same_unit_with_a_new_memory_keeps_what_the_host_found() -> None:
    """Its firmware is the one that did it; its start ends them."""
    host = found_by_the_host()
    hear(host, fdl.Identity(fdl.CONSOLE, 8, 1, 2, 0, *UNIT), now=3)
    hear(host, fdl.Identity(fdl.CONSOLE, 8, 1, 2, 1, *UNIT), now=3)
    assert set(host._faults.standing.open) == {*FOUND, "console.key_stuck"}
    over = hear(host, started(1), beat(1, 5000), now=9)
    assert set(events_of(over)[1:]) == {*map(DeviceRecovered, FOUND), DeviceRecovered("console.key_stuck")}


def test_the_fault_lists_of_the_drivers() -> None:
    for driver, own in ((FdlShaker, SHAKER_FAULTS), (FdlConsole, CONSOLE_FAULTS)):
        assert driver.faults == (*own.values(), *COMMON_FAULTS.values(), *HOST_FAULTS)
        codes = [one.code for one in driver.faults]
        assert len(set(codes)) == len(codes)
        simulated = {
            code for ailment in (Shaker if driver is FdlShaker else Console).faults.values() for code in ailment.told
        }
        # The others: the device lives on the first contact, which no fault of its own brings about.
        assert {code for code in codes if code not in simulated} == {"fdl.untold_fault"}


def test_options() -> None:
    for driver, default in ((FdlShaker, SessionOptions(3.0)), (FdlConsole, ConsoleOptions(3.0, "table"))):
        assert msgspec.convert({}, driver.Options) == default
        with pytest.raises(msgspec.ValidationError, match="silense"):
            msgspec.convert({"silense": 3}, driver.Options)


ANY_FRAMES = st.lists(
    st.binary(max_size=40)
    | st.builds(
        fdl.encode_frame,
        st.sampled_from([1, 2, 3, 0x81, 0x82, 0x83, 0x99]),
        st.integers(0, 255),
        st.binary(max_size=60) | st.binary(max_size=60).map(lambda data: b"\x01\x02" + data),
    )
    | st.builds(
        lambda counter, kind, data: fdl.encode(fdl.EventReport(counter, 0, kind, data), 0),
        st.integers(9, 14),
        st.sampled_from([*fdl.COMMON, *fdl_console.HAPPENINGS, 0x7F]),
        st.binary(max_size=6),
    ),
    max_size=12,
)


@settings(max_examples=at_length(40, 750))
@given(ANY_FRAMES)
def test_session_ends_only_with_driver_errors_on_any_bytes(frames: list[bytes]) -> None:
    for host in (session(), opened()):
        with contextlib.suppress(LinkLost, DeviceRefused):
            for n, frame in enumerate(frames):
                heard = host.hear(Chunk(frame, START, n), n)
                assert (heard.memory is None) or heard.sightings
                host.wake(n)


@settings(max_examples=at_length(40, 750))
@given(ANY_FRAMES)
def test_device_survives_any_bytes(frames: list[bytes]) -> None:
    device = console()
    device.press("bell", 0)
    for n, frame in enumerate(frames):
        device.hear(frame, n)
    assert said(device.wake(100))
