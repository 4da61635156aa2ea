"""The Billy-III shaker: exact messages, any chunking, any noise, every way a shake ends, and the mirror.

What is promised: `dice.agitated` is told once, and only of a shake that was seen to begin and to end in its time.
"""

import asyncio
from collections.abc import Callable
from random import Random

import msgspec
import pytest
from helpers import MemoryLink, Notebook, at_length, virtual_time
from hypothesis import given, settings, strategies as st
from message_mirror import Carry, Mirror, byte_by_byte, lossy, whole

from drivers.billy_iii import BillyIII, BillyOptions, Memory
from drivers.driver import CommandFailed, CommandRefused, LinkLost
from drivers.faults import Standing
from protocols.billy_iii import MAX_LINE, Ask, Cycle, Decoder, Garbage, Message, State, encode
from protocols.contract.commands import Agitate
from protocols.contract.events import DeviceFaulted, DeviceOnline, DeviceRecovered, DiceAgitated, DiceDisturbed, Event
from simulators.devices.billy_iii import Billy

PROGRAM = Cycle(0, 10, 0, 0.41, 9.59)
ORDER = b"/cycle/?pattern=0&parameter1=10&parameter2=0&amplitude=0.41&duration=9.59\n"
EXACT: list[tuple[bytes, Message]] = [
    (b"/state\n", Ask()),
    (ORDER, PROGRAM),
    (b"S0\n", State(0, b"S0")),
    (b"S1\n", State(1, b"S1")),
    (b"S2\n", State(2, b"S2")),
    (b"S90\n", State(90, b"S90")),
    (b"S7\n", State(7, b"S7")),
    (b"/cycle/?pattern=3&parameter1=0&parameter2=7&amplitude=1&duration=12\n", Cycle(3, 0, 7, 1.0, 12.0)),
]
ONLINE = DeviceOnline(False, "Billy-III")

# ---- the wire


@pytest.mark.parametrize(("line", "message"), EXACT)
def test_exact_messages_both_ways(line: bytes, message: Message) -> None:
    assert Decoder().feed(line) == [message]
    assert not isinstance(message, Garbage)
    assert encode(message) == line


@pytest.mark.parametrize(
    "line",
    [
        *(b"S", b"S00", b"S01", b"s0", b"S1000", b"S-1", b"S0 S1", b"S90x", b"\x00S0", b"/State", b"/cycle/", b"S\xb2"),
        ORDER.replace(b"0.41", b"1.41").strip(),
        ORDER.replace(b"9.59", b"0").strip(),
        ORDER.replace(b"9.59", b"1e9").strip(),
        ORDER.strip() + b"&more=1",
    ],
)
def test_invalid_messages(line: bytes) -> None:
    assert Decoder().feed(line + b"\n") == [Garbage(line)]


def test_line_ends_and_spaces_of_other_writers() -> None:
    assert Decoder().feed(b"\r\n S0 \r\n\n") == [State(0, b"S0")]


def test_the_tail_of_what_is_too_long_is_no_state() -> None:
    decoder = Decoder()
    assert decoder.feed(b"x" * MAX_LINE) == [Garbage(b"x" * MAX_LINE)]
    assert decoder.feed(b"S0") == []
    assert decoder.feed(b"\nS1\n") == [State(1, b"S1")]


@pytest.mark.parametrize("message", [State(1000), State(-1), Cycle(0, 0, 0, 2.0, 1.0), Cycle(-1, 0, 0, 0.5, 1.0)])
def test_values_that_no_message_can_carry(message: State | Cycle) -> None:
    with pytest.raises(ValueError, match="no message can carry"):
        encode(message)


PIECES = st.one_of(st.binary(max_size=40), st.sampled_from([line for line, _ in EXACT]))


@settings(max_examples=at_length(25, 300), derandomize=True)
@given(st.lists(PIECES, max_size=12), st.integers(1, 9))
def test_any_bytes_in_any_chunks(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces) + b"\n"
    at_once = Decoder().feed(data)
    decoder = Decoder()
    assert [one for n in range(0, len(data), size) for one in decoder.feed(data[n : n + size])] == at_once
    assert all(one.raw in data for one in at_once if not isinstance(one, Cycle))


@settings(max_examples=40, derandomize=True)
@given(st.lists(st.sampled_from(EXACT), max_size=20), st.integers(1, 30))
def test_valid_messages_survive_any_chunking(chosen: list[tuple[bytes, Message]], size: int) -> None:
    data = b"".join(line for line, _ in chosen)
    decoder = Decoder()
    told = [one for n in range(0, len(data), size) for one in decoder.feed(data[n : n + size])]
    assert told == [message for _, message in chosen]


# ---- the driver, word by word


class Session:
    """A driver on a link in memory, the test as its shaker."""

    def __init__(self, options: BillyOptions | None = None, memory: bytes | None = None) -> None:
        self.link = MemoryLink()
        self.notes = Notebook()
        self.driver = BillyIII(options or BillyOptions(), memory)
        self.task = asyncio.create_task(self.driver.run(self.link, self.notes))
        self.state: bytes | None = None
        self.link.on_write = self._asked

    def _asked(self, data: bytes) -> None:
        if data == b"/state\n" and self.state is not None:
            self.link.feed(self.state + b"\n")

    async def says(self, state: bytes, seconds: float = 0.05) -> None:
        """It changes its state, says so, and is asked for `seconds`."""
        self.state = state
        self.link.feed(state + b"\n")
        await asyncio.sleep(seconds)

    async def end(self) -> list[Event]:
        self.link.hang_up()
        with pytest.raises(LinkLost, match="hung up"):
            await self.task
        return self.notes.events

    def order(self) -> asyncio.Task[dict[str, object]]:
        return asyncio.create_task(self.driver.obey(Agitate()))


async def ready(options: BillyOptions | None = None, memory: bytes | None = None) -> Session:
    session = Session(options, memory)
    await session.says(b"S0")
    assert session.notes.events[0] == ONLINE
    return session


def codes(events: list[Event]) -> list[str]:
    return [event.code for event in events if isinstance(event, DeviceFaulted)]


@virtual_time
async def test_the_first_state_within_ten_seconds() -> None:
    session = Session()
    await asyncio.sleep(9.9)
    assert not session.task.done()
    assert bytes(session.link.sent) == b"/state\n" * 5
    await asyncio.sleep(2.2)
    with pytest.raises(LinkLost, match="10 s"):
        await session.task
    assert session.notes.events == []


@virtual_time
async def test_it_is_asked_after_two_seconds_of_silence_and_lost_after_twelve() -> None:
    session = await ready()
    session.link.sent.clear()
    await asyncio.sleep(20)
    assert bytes(session.link.sent) == b"/state\n" * 10
    session.state = None
    await asyncio.sleep(11)
    assert not session.task.done()
    await asyncio.sleep(4)
    with pytest.raises(LinkLost, match="has not reported its state for 12 s"):
        await session.task
    assert session.notes.events == [ONLINE]


@virtual_time
async def test_an_ordered_shake_is_told_once_and_the_order_is_exact() -> None:
    session = await ready()
    order = session.order()
    await asyncio.sleep(0.01)
    assert bytes(session.link.sent).endswith(ORDER)
    for state, seconds in ((b"S2", 0.3), (b"S1", 9.59), (b"S0", 0.05)):
        assert DiceAgitated("electronic") not in session.notes.events
        await session.says(state, seconds)
    assert (await order)["seconds"] == pytest.approx(9.9, abs=0.05)
    assert session.notes.sightings[-1].wire == b"S0"
    for _ in range(3):
        await session.says(b"S0", 3)
    assert await session.end() == [ONLINE, DiceAgitated("electronic")]


@virtual_time
async def test_it_is_asked_all_the_time_once_the_duration_is_over() -> None:
    session = await ready()
    order = session.order()
    await session.says(b"S2", 0.3)
    await session.says(b"S1", 9.4)
    session.link.sent.clear()
    await asyncio.sleep(1.0)  # from 9.75 to 10.75 s after the order
    assert 4 <= bytes(session.link.sent).count(b"/state\n") <= 6
    session.state = b"S0"  # its own word was lost
    await asyncio.sleep(0.3)
    assert DiceAgitated("electronic") in await session.end()
    assert await order


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([(b"S0", 17.0)], "billy.not_accepted"),
        ([(b"S2", 17.0)], "billy.not_started"),
        ([(b"S2", 0.3), (b"S0", 17.0)], "billy.not_started"),
        ([(b"S2", 0.3), (b"S1", 17.0)], "billy.not_finished"),
        ([(b"S2", 0.3), (b"S1", 5.0), (b"S0", 1.0)], "billy.cut_short"),
        ([(b"S2", 0.3), (b"S1", 5.0), (b"S90", 1.0)], "billy.motion"),
        ([(b"S90", 1.0)], "billy.motion"),
        ([(b"S2", 0.3), (b"S1", 3.0), (b"?", 4.5), (b"S1", 1.6), (b"S0", 1.0)], "billy.not_finished"),
    ],
)
@virtual_time
async def test_each_failure_class(states: list[tuple[bytes, float]], code: str) -> None:
    session = await ready()
    order = session.order()
    await asyncio.sleep(0.01)
    for state, seconds in states:
        await session.says(state, seconds)
    fault = next(known for known in BillyIII.faults if known.code == code)
    with pytest.raises(CommandFailed, match=fault.text[:20]):
        await order
    await session.says(b"S0", 30)
    events = await session.end()
    assert codes(events) == [code]
    assert DiceAgitated("electronic") not in events


@virtual_time
async def test_s90_fails_at_once_and_is_over_when_it_is_idle() -> None:
    session = await ready()
    order = session.order()
    await session.says(b"S2", 0.3)
    await session.says(b"S90", 0.0)
    await asyncio.sleep(0.01)
    assert order.done()
    with pytest.raises(CommandFailed, match="S90"):
        await order
    await asyncio.sleep(30)
    with pytest.raises(CommandRefused, match="it reports S90"):
        await session.driver.obey(Agitate())
    await session.says(b"S1", 5)  # whatever moves after that is no shake
    await session.says(b"S0", 1)
    events = await session.end()
    assert [type(event).__name__ for event in events] == ["DeviceOnline", "DeviceFaulted", "DeviceRecovered"]
    assert isinstance(events[1], DeviceFaulted)
    assert events[1].severity == "error"


@virtual_time
async def test_the_second_failure_in_a_cycle_is_an_error_and_a_good_shake_ends_it() -> None:
    session = await ready()
    for _ in range(2):
        order = session.order()
        await asyncio.sleep(6.5)  # two answers that it is idle
        with pytest.raises(CommandFailed):
            await order
    order = session.order()
    for state, seconds in ((b"S2", 0.3), (b"S1", 9.59), (b"S0", 1.0)):
        await session.says(state, seconds)
    assert await order
    order = session.order()
    await asyncio.sleep(6.5)
    with pytest.raises(CommandFailed):
        await order
    told = [(e.code, e.severity) if isinstance(e, DeviceFaulted) else type(e).__name__ for e in await session.end()]
    once = "billy.not_accepted"
    assert told == [
        *("DeviceOnline", (once, "warning"), (once, "error")),
        *("DeviceRecovered", "DiceAgitated", (once, "warning")),
    ]


@virtual_time
async def test_a_shake_that_somebody_else_ordered_is_told() -> None:
    session = await ready()
    for state, seconds in ((b"S2", 0.3), (b"S1", 4), (b"S0", 3)):
        await session.says(state, seconds)
    with_one = list(session.notes.events)
    for state, seconds in ((b"S1", 0.1), (b"S0", 3)):  # the same words delivered twice
        await session.says(state, seconds)
    assert with_one == [ONLINE, DiceAgitated("electronic")]
    assert (await session.end()).count(DiceAgitated("electronic")) == 1


@pytest.mark.parametrize("state", [b"S1", b"S2"])
@virtual_time
async def test_shaking_as_the_first_word_is_a_fault_and_no_agitation(state: bytes) -> None:
    session = Session()
    await session.says(state, 3)
    with pytest.raises(CommandRefused, match="not idle"):
        await session.driver.obey(Agitate())
    await session.says(b"S1", 5)
    await session.says(b"S0", 5)
    online, moved, fault, recovered = await session.end()
    assert (online, moved, recovered) == (ONLINE, DiceDisturbed(), DeviceRecovered("billy.unwatched"))
    assert isinstance(fault, DeviceFaulted)
    assert fault.code == "billy.unwatched"


@virtual_time
async def test_an_unknown_state_is_told_once_and_its_end_too() -> None:
    session = await ready()
    await session.says(b"S7", 6)
    await session.says(b"S8", 6)
    with pytest.raises(CommandRefused, match="S8"):
        await session.driver.obey(Agitate())
    await session.says(b"S0", 1)
    events = await session.end()
    assert codes(events) == ["billy.unknown_state"]
    assert events[-1] == DeviceRecovered("billy.unknown_state")
    assert isinstance(events[1], DeviceFaulted)
    assert "S7" in events[1].text


@virtual_time
async def test_noise_is_asked_away() -> None:
    session = await ready()
    session.link.sent.clear()
    for _ in range(20):
        session.link.feed(b"\xff\xfe what?\n/state\n" + ORDER)
    await asyncio.sleep(0.5)
    assert bytes(session.link.sent) == b"/state\n"
    assert await session.end() == [ONLINE]


@virtual_time
async def test_every_refusal() -> None:
    session = Session()
    with pytest.raises(CommandRefused, match="not connected"):
        await session.driver.obey(Agitate())
    await session.says(b"S0")
    with pytest.raises(CommandRefused, match="1 cycle"):
        await session.driver.obey(Agitate(3))
    first = session.order()
    await asyncio.sleep(0.01)
    with pytest.raises(CommandRefused, match="under way"):
        await session.driver.obey(Agitate())
    assert bytes(session.link.sent).count(ORDER) == 1
    await session.says(b"S2", 0.3)
    await session.end()
    with pytest.raises(CommandFailed, match="lost in the middle"):
        await first
    with pytest.raises(CommandRefused, match="not connected"):
        await session.driver.obey(Agitate())


@virtual_time
async def test_no_order_to_a_shaker_that_does_not_answer() -> None:
    session = await ready()
    session.state = None
    await asyncio.sleep(5)
    with pytest.raises(CommandRefused, match="no state for"):
        await session.driver.obey(Agitate())
    await session.end()


@virtual_time
async def test_an_order_that_cannot_be_written_failed() -> None:
    session = await ready()

    def gone(_data: bytes) -> None:
        raise LinkLost("the broker is gone")

    session.link.on_write = gone
    with pytest.raises(CommandFailed, match="broker is gone"):
        await session.driver.obey(Agitate())
    session.link.on_write = lambda _: None
    await session.end()


@virtual_time
async def test_cancelled_wait_does_not_stop_the_shake() -> None:
    session = await ready()
    order = session.order()
    await session.says(b"S2", 0.3)
    order.cancel()
    await session.says(b"S1", 9.59)
    await session.says(b"S0", 1)
    assert await session.end() == [ONLINE, DiceAgitated("electronic")]


@virtual_time
async def test_a_fault_outlives_a_restart_until_it_is_seen_cleared() -> None:
    session = await ready()
    await session.says(b"S90", 5)
    await session.end()
    again = Session(memory=session.notes.memory)
    await again.says(b"S90", 5)
    assert again.notes.events == [ONLINE]  # told already
    await again.says(b"S0", 1)
    assert await again.end() == [ONLINE, DeviceRecovered("billy.motion")]


@pytest.mark.parametrize("memory", [b"", b"[]", b'{"standing":{"open":["billy.long_gone"],"cycle":[]}}', b"\xff"])
@virtual_time
async def test_any_memory(memory: bytes) -> None:
    session = await ready(memory=memory)
    assert await session.end() == [ONLINE]


def test_memory_and_options() -> None:
    kept = Memory(Standing(("billy.motion",), ("billy.motion",)))
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Memory) == kept
    assert encode(BillyIII(BillyOptions(duration=12))._program) == ORDER.replace(b"9.59", b"12")
    for wrong in ({"speed": 1}, {"amplitude": 1.1}, {"duration": 0}, {"pattern": -1}, {"ask": 0}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, BillyIII.Options)


# ---- the shaker


def said(billy: Billy, until: float) -> list[tuple[float, bytes]]:
    words = []
    while (due := billy.due()) <= until:
        words.append((round(due, 2), billy.wake(due)))
        assert billy.due() > due
    return [word for word in words if word[1]]


def test_a_simulated_shake() -> None:
    billy = Billy(Random(1))
    before = billy.faces
    assert billy.hear(ORDER[:20], 1.0) == billy.hear(ORDER[20:], 1.0) == b""
    assert not billy.press(2.0)  # busy
    assert said(billy, 100) == [(1.03, b"S2\n"), (1.33, b"S1\n"), (10.92, b"S0\n")]
    assert (billy.shakes, billy.faces) != (0, before)
    billy.hear(b"/state\nnonsense\n", 20.0)
    assert said(billy, 100) == [(20.03, b"S0\n")]
    assert billy.press(30.0)
    assert [word for _, word in said(billy, 100)] == [b"S2\n", b"S1\n", b"S0\n"]
    assert billy.shakes == 2
    with pytest.raises(ValueError, match="no fault 'fire', only not_accepted"):
        billy.inject("fire", 0.0)


# ---- the mirror


def mirrored(seed: int = 1, carry: Carry = whole) -> tuple[Billy, Mirror]:
    billy = Billy(Random(seed))
    return billy, Mirror(billy, lambda memory: BillyIII(BillyOptions(), memory), carry)


@pytest.mark.parametrize("carry", [whole, byte_by_byte])
@virtual_time
async def test_mirror_over_a_good_line(carry: Callable[[bytes], list[bytes]]) -> None:
    billy, mirror = mirrored(carry=carry)
    async with mirror.living():
        await asyncio.sleep(1)
        for _ in range(20):
            assert (await mirror.order(Agitate()))["seconds"] == pytest.approx(9.9, abs=0.1)
            await asyncio.sleep(5)
        billy.press(mirror.now())
        mirror.stir()
        await asyncio.sleep(3600)
    assert mirror.told == ["device.online", *["dice.agitated"] * 21]
    assert billy.shakes == 21


@pytest.mark.parametrize("seed", range(6))
@virtual_time
async def test_mirror_over_a_line_that_loses_messages_never_tells_too_much(seed: int) -> None:
    billy, mirror = mirrored(seed, lossy(Random(seed), 0.2))
    good = 0
    rng = Random(seed)
    async with mirror.living():
        await asyncio.sleep(5)
        for _ in range(30):
            told, shaken = mirror.told.count("dice.agitated"), billy.shakes
            billy.inject("cut_short", 0.0) if rng.random() < 0.2 else None
            try:
                await mirror.order(Agitate())
                good += 1
            except (CommandFailed, CommandRefused, AssertionError):
                pass
            await asyncio.sleep(20)
            assert mirror.told.count("dice.agitated") - told <= billy.shakes - shaken <= 1
    assert good == mirror.told.count("dice.agitated") >= 5


@virtual_time
async def test_mirror_with_a_cut_line() -> None:
    billy, mirror = mirrored()
    async with mirror.living():
        await asyncio.sleep(1)
        order = asyncio.create_task(mirror.order(Agitate()))
        await asyncio.sleep(5)
        mirror.cut()
        with pytest.raises(CommandFailed, match="lost in the middle"):
            await order
        await asyncio.sleep(20)
        assert await mirror.order(Agitate())
    assert billy.shakes == 2
    assert mirror.told == [
        *("device.online", "device.offline", "device.online", "dice.disturbed", "billy.unwatched", "-billy.unwatched"),
        "dice.agitated",
    ]


@pytest.mark.parametrize("fault", [*Billy.faults, *Billy.line])
@pytest.mark.parametrize("seed", range(at_length(1, 10)))
@virtual_time
async def test_mirror_of_every_fault(fault: str, seed: int) -> None:
    billy, mirror = mirrored(seed)
    ailment = {**Billy.faults, **Billy.line}[fault]
    async with mirror.living():
        await asyncio.sleep(3 + seed)
        mirror.inject(fault)
        try:
            await mirror.order(Agitate())
            failed = False
        except CommandFailed:
            failed = True
        await asyncio.sleep(40)
        wrong = [word for word in mirror.told if not word.startswith("-") and word != "device.online"]
        assert set(ailment.told) == set(wrong) - {"dice.agitated", "dice.disturbed", "billy.unwatched"}
        interrupted = fault in {"not_finished", "cut_short", "motion_error", "power_loss", "brown_out", "mute"}
        assert interrupted or "dice.disturbed" not in wrong
        assert ("dice.disturbed" in wrong) or fault not in {"not_finished", "cut_short", "motion_error", "brown_out"}
        assert failed == bool(set(ailment.told) - {"billy.unknown_state"})
        assert ("dice.agitated" in wrong) == (not failed)
        if ailment.person:
            with pytest.raises(CommandRefused):
                await mirror.order(Agitate())
            billy.repair(mirror.now())
            mirror.stir()
            await asyncio.sleep(5)
        shaken, told = billy.shakes, mirror.told.count("dice.agitated")
        await mirror.order(Agitate())
    assert mirror.told.count("dice.agitated") - told == billy.shakes - shaken == 1
    begun = [word for word in mirror.told if word.startswith("billy.")]
    assert {f"-{code}" for code in begun} == {word for word in mirror.told if word.startswith("-")}
    assert all(severity == "warning" or code == "billy.motion" for code, severity in mirror.severities)
    assert (mirror.sessions > 1) == ("device.offline" in ailment.told)
