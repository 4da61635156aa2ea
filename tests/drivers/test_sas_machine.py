"""The SAS machine: the driver against the simulated machine, over good and bad lines, in virtual time."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random

import msgspec
import pytest
from helpers import MemoryLink, Notebook, at_length, virtual_time
from msgspec.structs import replace

from drivers.driver import CommandFailed, CommandRefused, DeviceRefused, LinkLost
from drivers.faults import Standing
from drivers.sas_machine import SEEN, SasMachine
from drivers.sas_machine_memory import MachineOptions, Memory
from protocols.contract.commands import Ask, EnableMachine, ReadMeters
from protocols.contract.events import (
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    Event,
    JackpotPaid,
    JackpotWon,
    MachineMeters,
    MachineReported,
    MachineUnreliable,
    type_of,
)
from protocols.sas.frames import (
    MachineDecoder,
)
from protocols.sas.messages import (
    Answer,
    GeneralPoll,
    LongPoll,
    RealTime,
    Unknown,
)
from protocols.sas.tables import METERS
from simulators.devices.line import Line
from simulators.devices.sas_machine import Machine

FOREVER = float("inf")
TOLD = {"jackpot.won", "machine.identified", "machine.reported", "machine.unreliable"}
"""What a fault may bring that is no fault of the device."""


class Cable:
    """A machine, a line with its faults, and driver after driver at the other end, as a supervisor would have it."""

    def __init__(self, options: MachineOptions | None = None, seed: int = 1) -> None:
        self.machine = Machine(Random(seed))
        self.line = Line(Random(seed + 1))
        self.notes = Notebook()
        self.options = options or MachineOptions()
        self.driver: SasMachine | None = None
        self.split = False
        self.eat: Callable[[bytes], bytes] = lambda data: data
        self.echoes = False
        self.offline: list[str] = []
        self._link: MemoryLink | None = None
        self._stirred = asyncio.Event()
        self._tasks = [asyncio.create_task(self._live()), asyncio.create_task(self._supervise())]

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def _to_machine(self, data: bytes) -> None:
        if self.echoes:
            self._to_host(data)
        heard = self.line.to_device(data, self.now)
        for piece in [bytes((byte,)) for byte in heard] if self.split else [heard] if heard else []:
            self._to_host(self.machine.hear(piece, self.now))
        self._stirred.set()

    def _to_host(self, data: bytes) -> None:
        data = self.eat(self.line.to_host(data, self.now)) if self._link is not None else b""
        for piece in [bytes((byte,)) for byte in data] if self.split else [data] if data else []:
            if self._link is not None:
                self._link.feed(piece)

    async def _live(self) -> None:
        while True:
            self._stirred.clear()
            said = self.machine.wake(self.now)
            due = self.machine.due()
            assert due > self.now
            self._to_host(said)
            if self.line.plug_at < FOREVER and self._link is not None:
                self._link.hang_up()
            if self.line.plug_at <= self.now:
                self.line.plug_at = FOREVER
            wait = min(due, self.line.due()) - self.now
            try:
                async with asyncio.timeout(None if wait == FOREVER else max(wait, 1e-6)):
                    await self._stirred.wait()
            except TimeoutError:
                pass

    async def _supervise(self) -> None:
        while True:
            if self.line.plug_at == FOREVER:
                self._link = MemoryLink()
                self._link.on_write = self._to_machine
                self.driver = SasMachine(self.options, self.notes.memory)
                try:
                    await self.driver.run(self._link, self.notes)
                except (LinkLost, DeviceRefused) as lost:
                    self.offline.append(str(lost))
                self._link = self.driver = None
            await asyncio.sleep(0.5)

    def restart(self) -> None:
        assert self._link is not None
        self._link.hang_up()

    async def act(self, name: str, then: float = 3.0) -> None:
        self.machine.acts()[name](self.now)
        self._stirred.set()
        await asyncio.sleep(then)

    async def until(self, so: Callable[[], bool], limit: float = 30.0) -> None:
        """Let time pass until it is so."""
        end = self.now + limit
        while not so():
            assert self.now < end, f"not within {limit} s"
            await asyncio.sleep(0.01)

    def do(self, what: Callable[[float], object]) -> None:
        what(self.now)
        self._stirred.set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def events(self) -> list[Event]:
        return self.notes.events

    def told(self) -> set[str]:
        """Fault codes and event types, and device.offline."""
        codes = {event.code for event in self.events if isinstance(event, DeviceFaulted)}
        return codes | {type_of(event) for event in self.events} | ({"device.offline"} if self.offline else set())

    def standing(self) -> set[str]:
        codes = set[str]()
        for event in self.events:
            if isinstance(event, DeviceFaulted):
                codes.add(event.code)
            elif isinstance(event, DeviceRecovered):
                codes.discard(event.code)
        return codes

    def reported(self) -> list[str]:
        """Exceptions."""
        reports = (event for event in self.events if isinstance(event, MachineReported))
        return [event.code for event in reports if not event.code.startswith("LP")]

    def read(self, poll: str) -> list[str]:
        """What was told of the answers to a long poll."""
        return [event.text for event in self.events if isinstance(event, MachineReported) and event.code == poll]

    def jackpots(self) -> list[tuple[str, int, int]]:
        return [
            ("won" if isinstance(event, JackpotWon) else "paid", event.level, event.amount)
            for event in self.events
            if isinstance(event, JackpotWon | JackpotPaid)
        ]

    def meters(self) -> dict[str, int]:
        return next(event.meters for event in reversed(self.events) if isinstance(event, MachineMeters))


# ---- a good line


@virtual_time
async def test_it_comes_online_with_serial_version_and_meters_in_minor_units() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    assert cable.events[0] == DeviceOnline(False, "SAS 6.02 SI LUCKY", "SIM-0001")
    meters = cable.meters()
    assert {name: meters[name] for name in ("coin_in", "games_played", "door_opens", "credits")} == {
        name: cable.machine.meters[name] for name in ("coin_in", "games_played", "door_opens", "credits")
    }
    assert cable.standing() == set()
    assert cable.offline == []
    await cable.close()


@pytest.mark.parametrize("split", [False, True])
@virtual_time
async def test_every_exception_is_told_once_and_in_order(split: bool) -> None:
    cable = Cable()
    cable.split = split
    await asyncio.sleep(4)
    for act in ("insert_bill", "play", "cash_out"):
        await cable.act(act, 0.1)
    await asyncio.sleep(15)
    queued = [code for code in cable.reported() if code != "3D"]
    assert queued == ["48", "7E", "7F", "66"]
    assert cable.reported().count("3D") == 1
    assert cable.offline == []
    await cable.close()


@virtual_time
async def test_polls_keep_their_distance_and_an_exception_is_durable_before_it_may_be_forgotten() -> None:
    cable = Cable()
    sent: list[tuple[float, object, tuple[int, ...]]] = []
    await asyncio.sleep(4)
    decoder = MachineDecoder()
    link = cable._link
    assert link is not None

    def spy(data: bytes) -> None:
        assert cable.notes.memory is not None
        seen = msgspec.json.decode(cable.notes.memory, type=Memory).seen
        sent.extend((cable.now, poll, seen) for poll in decoder.feed(data))
        cable._to_machine(data)

    link.on_write = spy
    await cable.act("insert_bill", 5)
    mine = [at for at, poll, _ in sent if isinstance(poll, GeneralPoll | LongPoll) and poll.address == 1]
    assert min(b - a for a, b in pairwise(mine)) >= 0.2 - 1e-9
    assert (0x48,) in {seen for _, poll, seen in sent if isinstance(poll, LongPoll)}
    assert cable.reported() == ["48"]
    await cable.close()


@virtual_time
async def test_a_crash_before_the_machine_forgets_neither_loses_nor_repeats() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    for cut in range(40):
        await cable.act("insert_bill", 0.05 * (cut % 20))
        cable.restart()
        await asyncio.sleep(6)
    assert cable.reported() == ["48"] * 40
    await cable.close()


@virtual_time
async def test_the_same_machine_is_continuous_after_a_restart_and_another_is_not() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    await cable.act("open_door")
    cable.restart()
    await asyncio.sleep(3)
    assert [event.continuous for event in cable.events if isinstance(event, DeviceOnline)] == [False, True]
    assert cable.standing() == {"machine.slot_door"}
    cable.machine._serial = "OTHER"
    cable.restart()
    await asyncio.sleep(3)
    assert [event.continuous for event in cable.events if isinstance(event, DeviceOnline)] == [False, True, False]
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_what_happened_while_nobody_listened_is_told_after_it() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    cable.line.inject("silence", cable.now)
    await cable.act("insert_bill", 1)
    await cable.act("open_door", 25)
    assert "48" in cable.reported()
    assert cable.standing() == {"machine.slot_door"}
    assert len(cable.offline) >= 1
    await cable.close()


# ---- sessions that are cut short


class Cuts(Cable):
    """Sessions end when so many bytes have passed, both ways counted: at once, or `late`, when another wants to."""

    late = False
    _cuts: tuple[int, ...] = ()
    _counted: MemoryLink | None = None
    _left: float = FOREVER
    _over = False

    def cut(self, *after: int) -> None:
        """This session and those after it; then nothing is cut any more."""
        self._cuts = after
        self._counted = None

    def _passing(self, data: bytes) -> bytes:
        if self._counted is not self._link:
            self._counted = self._link
            self._left, self._cuts = (self._cuts[0], self._cuts[1:]) if self._cuts else (FOREVER, ())
        passed = data[: int(min(self._left, len(data)))]
        self._left -= len(passed)
        self._over = len(passed) < len(data) or not (self._left or self.late)
        if self._over:
            self.restart()
        return passed

    def _to_machine(self, data: bytes) -> None:
        super()._to_machine(self._passing(data))

    def _to_host(self, data: bytes) -> None:
        """Whoever is cut off hears nothing of it."""
        if data and self._link is not None and self._passing(data) and not self._over:
            super()._to_host(data)


class InRealTime(Machine):
    """An earlier host switched it to real-time mode: its exceptions come in place of answers to long polls.

    It does not know how to end that mode. `general`: to general polls, too. Where nothing happened a general poll has
    no answer.
    """

    general = False
    _instead: int | None = None

    def _answer(self, poll: LongPoll, now: float) -> Answer | None:
        if poll.command == 0x0E:
            return None
        return self._happened() or super()._answer(poll, now)

    def _heard_by_host(self) -> None:
        if self._instead is not None:
            self._queue.popleft()
        self._instead = None
        super()._heard_by_host()

    def _what_happened(self) -> Answer | None:
        return self._happened() if self.general else None

    def _happened(self) -> RealTime | None:
        self._instead = self._queue[0] if self._queue else None
        return None if self._instead is None else RealTime(self._address, self._instead)


DOORS = {"machine.slot_door": "11", "machine.cashbox_door": "19", "machine.belly_door": "1D"}


def said(events: Sequence[Event]) -> tuple["Counter[str]", "Counter[str]"]:
    """Exceptions that were told, and those that were said to be in doubt."""
    told, doubtful = Counter[str](), Counter[str]()
    for event in events:
        match event:
            case MachineReported(code) if not code.startswith("LP"):
                told[code] += 1
            case DeviceFaulted(code, text) if code == "sas.doubtful":
                doubtful.update(re.findall(r"\b([0-9A-F]{2}) [a-z]", text))
            case DeviceFaulted(code) if code in DOORS:
                told[DOORS[code]] += 1
            case _:
                pass
    return told, doubtful


def onlines(events: Sequence[Event]) -> list[DeviceOnline]:
    return [event for event in events if isinstance(event, DeviceOnline)]


STEP = 29
QUEUES = [(0x11, 0x19, 0x1D, 0x66), (0x48, 0x48, 0x48), (0x48, 0x48, 0x66, 0x66)]


def cuts() -> Iterator[tuple[int, int, bool]]:
    """Two sessions, each cut at each of its first bytes."""
    for first in range(1, 30):
        for second in range(1 + first * 5 % STEP, 62, STEP):
            yield first, second, bool((first + second // STEP) % 2)


@pytest.mark.parametrize("queue", QUEUES)
@virtual_time
async def test_each_exception_is_told_once_or_in_doubt_wherever_two_sessions_are_cut(queue: tuple[int, ...]) -> None:
    truth = Counter(f"{code:02X}" for code in queue)
    for first, second, late in cuts():
        cable = Cuts()
        cable.late = late
        await asyncio.sleep(2)
        began = len(cable.events)
        cable.machine._queue.extend(queue)
        cable.cut(first, second)
        await asyncio.sleep(7)
        told, doubtful = said(cable.events[began:])
        assert told <= truth <= told + doubtful, (first, second, late)
        assert told == truth or len(set(queue)) < len(queue), (first, second, late)
        assert all(online.continuous for online in onlines(cable.events[began:]))
        await cable.close()


@pytest.mark.parametrize("queue", QUEUES)
@virtual_time
async def test_in_real_time_mode_each_is_told_once_or_in_doubt_or_may_be_missing(queue: tuple[int, ...]) -> None:
    """Which poll a session asked last the next one cannot know: any other one lets the machine forget."""
    truth = Counter(f"{code:02X}" for code in queue)
    for first, second, late in cuts():
        cable = Cuts()
        cable.late = late
        cable.machine = InRealTime(Random(1))
        cable.machine._queue.append(0x82)
        await asyncio.sleep(2.5)
        assert cable.reported() == ["82"]
        began = len(cable.events)
        cable.machine._queue.extend(queue)
        cable.cut(first, second)
        await asyncio.sleep(7)
        told, doubtful = said(cable.events[began:])
        assert told <= truth, (first, second, late)
        assert (truth - told - doubtful).total() <= 2, (first, second, late)  # one a session
        assert not any(online.continuous for online in onlines(cable.events[began:]))
        await cable.close()


@virtual_time
async def test_what_a_machine_in_real_time_mode_says_while_a_session_begins_is_told() -> None:
    cable = Cable()
    cable.machine = InRealTime(Random(1))
    cable.machine._queue.extend([0x66, 0x71])
    await asyncio.sleep(3.1)  # between two polls
    cable.machine._queue.extend(queue := [0x11, 0x12, 0x48, 0x48, 0x82] * 4)
    cable.restart()
    await asyncio.sleep(15)
    assert cable.reported() == ["66", "71", *["48", "48", "82"] * 4]
    assert [type_of(event) for event in cable.events].count("device.faulted") == queue.count(0x11)
    assert cable.standing() == set()
    await cable.close()


@pytest.mark.parametrize("real_time", [False, True])
@pytest.mark.parametrize("after", [1, 2])
@virtual_time
async def test_what_the_machine_before_left_is_never_told_of_the_new_one(after: int, real_time: bool) -> None:
    """It is exchanged after the first session that was cut, or the second."""
    kind = InRealTime if real_time else Machine
    for first, second, late in cuts():
        cable = Cuts()
        cable.late = late
        cable.machine = old = kind(Random(1), serial="OLD")
        await asyncio.sleep(2)
        began = len(cable.events)
        old._queue.extend(olds := [0x48, 0x11, 0x66])
        cable.cut(first, second)
        await cable.until(lambda cable=cable: len(cable.offline) == after)  # type: ignore[misc]
        cable.machine = new = kind(Random(2), serial="NEW")
        new._queue.extend([0x48, 0x19])
        await asyncio.sleep(7)
        exchanged = [isinstance(event, DeviceOnline) and event.serial == "NEW" for event in cable.events].index(True)
        told, doubtful = said(cable.events[began:exchanged])
        told_of_new, doubtful_then = said(cable.events[exchanged:])
        heard = Counter(f"{code:02X}" for code in olds[: len(olds) - len(old._queue)])
        truth = Counter({"48": 1, "19": 1})
        assert told_of_new <= truth, (first, second, late)
        assert told <= Counter(f"{code:02X}" for code in olds), (first, second, late)
        if not real_time:
            assert heard <= told + doubtful + doubtful_then, (first, second, late)
            assert truth <= told_of_new + doubtful_then, (first, second, late)
        await cable.close()


def test_what_an_earlier_version_remembered_is_understood() -> None:
    for seen, now in ((0x11, (0x11,)), (None, ()), ([0x11, 0x11], (0x11, 0x11))):
        left = {"serial": "A", "seen": seen, "levels": {"2": 5000}, "prizes": [[0, 5]], "standing": {"open": ["x"]}}
        memory = SasMachine(MachineOptions(), msgspec.json.encode(left))._memory
        assert memory == Memory("A", seen=now, levels={2: 5000}, prizes=((0, 5),), standing=Standing(("x",)))


@virtual_time
async def test_what_sessions_leave_has_an_end_and_says_so() -> None:
    cable = Cable()
    cable.machine = InRealTime(Random(1))
    await asyncio.sleep(2.1)
    assert cable.notes.memory is not None
    memory = msgspec.json.decode(cable.notes.memory, type=Memory)
    cable.notes.memory = msgspec.json.encode(replace(memory, seen=(0x71, 0x72) * (SEEN // 2 - 1) + (0x71,)))
    cable.machine._queue.append(0x66)
    cable.restart()
    await asyncio.sleep(4)
    assert cable.reported() == ["71", "72"] * (SEEN // 2 - 1) + ["71"]
    assert "sas.exceptions_lost" in cable.told()
    assert not onlines(cable.events)[-1].continuous
    await cable.close()


@virtual_time
async def test_a_machine_that_has_something_to_say_in_place_of_every_answer_comes_online() -> None:
    cable = Cable()
    cable.machine = InRealTime(Random(1))
    cable.machine._queue.extend([0x71] * 200)
    await asyncio.sleep(200)
    assert cable.offline == []
    assert cable.reported().count("71") > 100
    assert "sas.exceptions_lost" in cable.told()
    assert cable.meters()["coin_in"] == cable.machine.meters["coin_in"]
    assert cable.standing() == set()
    await cable.close()


# ---- meters


@virtual_time
async def test_meters_are_told_when_they_change_only() -> None:
    cable = Cable()
    await asyncio.sleep(90)
    before = len([event for event in cable.events if isinstance(event, MachineMeters)])
    assert before <= 3  # those of games at once, those of bills and tickets when all of them are read
    await asyncio.sleep(120)
    assert len([event for event in cable.events if isinstance(event, MachineMeters)]) == before
    coin_in = cable.meters()["coin_in"]
    await cable.act("play", 12)
    assert cable.meters()["coin_in"] == coin_in + 5
    told = [event.meters["coin_in"] for event in cable.events if isinstance(event, MachineMeters)][before:]
    assert told[-1] == coin_in + 5
    assert len(told) <= 2  # the credits may be told before: they are read to prove an exception
    await cable.close()


@virtual_time
async def test_a_meter_that_runs_backwards_is_a_fault_and_no_meters_are_told_meanwhile() -> None:
    cable = Cable(MachineOptions(close_faulty=True))
    await asyncio.sleep(4)
    before = cable.events[:]
    cable.machine.inject("meter_back", cable.now)
    await asyncio.sleep(20)
    new = cable.events[len(before) :]
    assert [type_of(event) for event in new if not isinstance(event, MachineReported | MachineUnreliable)] == [
        "device.faulted"
    ]
    assert not cable.machine.enabled
    assert cable.driver is not None
    with pytest.raises(CommandFailed, match="backwards"):
        await cable.driver.obey(ReadMeters())
    with pytest.raises(CommandRefused, match=r"sas\.meter_back"):
        await cable.driver.obey(EnableMachine(on=True))
    cable.restart()
    await asyncio.sleep(10)
    assert cable.standing() == {"sas.meter_back"}
    cable.do(cable.machine.repair)
    await asyncio.sleep(20)
    assert cable.standing() == set()
    assert cable.meters()["coin_in"] == 5
    await cable.close()


@virtual_time
async def test_a_meter_of_eight_digits_may_begin_again() -> None:
    cable = Cable()
    cable.machine.meters["coin_in"] = 99_999_998
    await asyncio.sleep(4)
    await cable.act("play", 15)
    assert cable.standing() == set()
    assert cable.meters()["coin_in"] == 3
    await cable.close()


class Silent(Machine):
    """It does not answer some polls."""

    silent: frozenset[int] = frozenset()
    answered: frozenset[int] = frozenset()

    def _answer(self, poll: LongPoll, now: float) -> Answer | None:
        answer = super()._answer(poll, now)
        if poll.command in self.silent:
            return None
        self.answered |= {poll.command}
        return answer


@virtual_time
async def test_another_machines_money_is_told_in_credits_until_it_says_its_denomination() -> None:
    cable = Cable()
    old = cable.machine = Silent(Random(1), serial="OLD")
    old.denomination = 0x06
    await asyncio.sleep(4)
    assert cable.meters()["coin_in"] == old.meters["coin_in"] * 100
    new = cable.machine = Silent(Random(2), serial="NEW")
    new.silent = frozenset({0x1F})
    before = len(cable.events)
    cable.restart()
    await asyncio.sleep(30)
    told = [event.meters for event in cable.events[before:] if isinstance(event, MachineMeters)]
    assert told
    assert not any("coin_in" in meters for meters in told)
    assert told[-1]["coin_in_credits"] == new.meters["coin_in"]
    new.denomination = 0x02
    new.silent = frozenset()
    await asyncio.sleep(40)
    assert cable.meters()["coin_in"] == new.meters["coin_in"] * 5
    assert "coin_in_credits" not in cable.meters()
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_a_machine_that_never_says_its_denomination_tells_each_handpay_all_the_same() -> None:
    """A poll that is not answered proves nothing, and is asked ever more seldom."""
    cable = Cable()
    machine = cable.machine = Silent(Random(1))
    machine.silent = frozenset({0x1F})
    asked = 0
    answer = machine._answer

    def counted(poll: LongPoll, now: float) -> Answer | None:
        nonlocal asked
        asked += poll.command == 0x1F
        return answer(poll, now)

    machine._answer = counted  # type: ignore[method-assign]
    await asyncio.sleep(10)
    rng = Random(3)
    for number in range(80):
        await asyncio.sleep(rng.uniform(2.5, 7))
        if number % 2 == 0:
            machine.handpay(cable.now, 500)
        else:
            machine.reset(cable.now)
        cable._stirred.set()
    await asyncio.sleep(5)
    kinds = Counter(type_of(event) for event in cable.events)
    assert (kinds["jackpot.won"], kinds["jackpot.paid"]) == (40, 40)
    assert "sas.doubtful" not in cable.told()
    assert asked < 30
    await cable.close()


@virtual_time
async def test_a_meter_that_ran_backwards_once_is_forgotten_with_the_denomination() -> None:
    cable = Cable()
    cable.machine = Silent(Random(1))
    cable.machine.silent = frozenset({0x1F})
    await asyncio.sleep(4)
    driver = cable.driver
    assert driver is not None
    cable.machine.meters["coin_in"] -= 1
    await cable.until(lambda: bool(driver._doubt_back))
    cable.machine.silent = frozenset()
    driver._factor_due = 0.0  # it is asked ever more seldom: now it is time
    await asyncio.sleep(6)
    assert (await driver.obey(ReadMeters()))["meters"]["coin_in"] == cable.machine.meters["coin_in"]
    assert "sas.meter_back" not in cable.told()
    await cable.close()


@pytest.mark.parametrize("name", sorted({name for poll in (0x0F, 0x1C) for name, _ in METERS[poll]}))
@virtual_time
async def test_each_meter_that_runs_backwards_is_a_fault_and_no_meters_are_told_meanwhile(name: str) -> None:
    """Also one that a single poll holds: a good answer to another one says nothing of it."""
    cable = Cable()
    cable.machine.meters[name] = 5000
    await asyncio.sleep(4)
    before = len(cable.events)
    cable.machine.meters[name] = 4000
    await asyncio.sleep(60)
    new = cable.events[before:]
    assert [event.code for event in new if isinstance(event, DeviceFaulted)] == ["sas.meter_back"]
    assert [type_of(event) for event in new if not isinstance(event, MachineReported | MachineUnreliable)] == [
        "device.faulted"
    ]
    assert f"{name} from 5000 to 4000" in str(new)
    cable.machine.meters[name] = 5001
    await asyncio.sleep(12)
    assert cable.standing() == set()
    assert cable.driver is not None
    assert (await cable.driver.obey(ReadMeters()))["meters"][name] == cable.meters()[name] == 5001
    await cable.close()


@virtual_time
async def test_a_meter_that_one_poll_says_ran_backwards_and_another_does_not_is_a_fault() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    answer = cable.machine._answer

    def backwards(poll: LongPoll, now: float) -> Answer | None:
        reply = answer(poll, now)
        if poll.command == 0x1C and isinstance(reply, Unknown):
            coin_in = f"{cable.machine.meters['coin_in'] - 1:08d}"
            return replace(reply, data=bytes.fromhex(coin_in) + reply.data[4:])
        return reply

    cable.machine._answer = backwards  # type: ignore[method-assign]
    await asyncio.sleep(20)
    assert "sas.meter_back" in cable.told()
    await cable.close()


@virtual_time
async def test_a_meter_that_ran_backwards_is_read_again_before_it_is_told() -> None:
    """By then the machine may have said that its memory was cleared."""
    cable = Cable()
    await asyncio.sleep(4)
    cable.machine.meters = dict.fromkeys(cable.machine.meters, 0)
    driver = cable.driver
    assert driver is not None
    await cable.until(lambda: bool(driver._doubt_back))
    await asyncio.sleep(1)
    cable.do(lambda now: cable.machine._tell(0x3A, now))
    await asyncio.sleep(20)
    assert "device.faulted" not in cable.told()
    assert cable.meters()["coin_in"] == 0
    await cable.close()


@pytest.mark.parametrize("said", [0x3A, 0x7A])
@virtual_time
async def test_a_meter_that_only_one_poll_holds_may_begin_again_where_the_memory_was_cleared(said: int) -> None:
    cable = Cable()
    await asyncio.sleep(4.1)
    cable.machine.meters["games_won"] = 0
    cable.do(lambda now: cable.machine._tell(said, now))
    await asyncio.sleep(20)
    assert cable.standing() == set()
    assert "device.faulted" not in cable.told()
    assert cable.meters()["games_won"] == 0
    cable.machine.meters["coin_in"] -= 1
    await asyncio.sleep(20)
    assert cable.standing() == {"sas.meter_back"}
    await cable.close()


@virtual_time
async def test_each_of_two_readings_at_once_has_the_machines_figures() -> None:
    cable = Cable(MachineOptions(meters=3600))
    await asyncio.sleep(10)
    for _ in range(5):
        await cable.act("play", 2)
    assert cable.driver is not None
    readings = await asyncio.gather(*(cable.driver.obey(command) for command in (ReadMeters(), Ask("meters"))))
    for reading in readings:
        figures = {name: cable.machine.meters[name] for name in reading["meters"] if name in cable.machine.meters}
        assert figures.items() <= reading["meters"].items()
        assert {"coin_in", "games_won", "credits"} <= reading["meters"].keys()
    assert cable.meters() == readings[0]["meters"]
    await cable.close()


# ---- every fault


@pytest.mark.parametrize("fault", Machine.faults)
@virtual_time
async def test_every_fault_of_the_machine_is_told_and_recovers(fault: str) -> None:
    cable = Cable()
    ailment = Machine.faults[fault]
    await asyncio.sleep(4)
    before = len(cable.events)
    cable.do(lambda now: cable.machine.inject(fault, now))
    await asyncio.sleep(30)
    assert set(ailment.told) <= cable.told()
    faulted = {event.code for event in cable.events if isinstance(event, DeviceFaulted)}
    assert faulted == set(ailment.told) - {"device.offline", *TOLD}
    assert bool(cable.offline) == ("device.offline" in ailment.told)
    if ailment.person:
        assert cable.standing() or cable.jackpots()
        cable.restart()
        await asyncio.sleep(10)
        assert cable.standing() == faulted
        cable.do(cable.machine.repair)
    await asyncio.sleep(40)
    assert cable.standing() == set()
    await cable.act("insert_bill", 8)
    assert len(cable.events) > before
    assert cable.reported()[-1] == "48"
    await cable.close()


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("fault", Machine.line)
@virtual_time
async def test_every_fault_of_the_line(fault: str, split: bool) -> None:
    for offset in at_length((0.07,), (0.0, 0.07, 0.13)):
        cable = Cable(seed=int(offset * 100))
        cable.split = split
        await asyncio.sleep(4 + offset)
        cable.line.inject(fault, cable.now)
        cable._stirred.set()
        await asyncio.sleep(40)
        told = set(Machine.line[fault].told)
        faulted = {event.code for event in cable.events if isinstance(event, DeviceFaulted)}
        assert faulted == told - {"device.offline"}
        assert bool(cable.offline) == ("device.offline" in told)
        assert cable.reported() == []
        await cable.act("insert_bill", 8)
        assert cable.reported() == ["48"]
        await cable.close()


@virtual_time
async def test_noise_never_becomes_an_exception() -> None:
    """One bit of every ninth byte is wrong, for minutes: what is told is what happened, or that it is doubtful."""
    rng = Random(5)
    cable = Cable()
    await asyncio.sleep(4)
    cable.eat = lambda data: bytes(byte ^ (1 << rng.randrange(8)) if not rng.randrange(9) else byte for byte in data)
    for _ in range(30):
        await cable.act("insert_bill", 6)
    assert set(cable.reported()) <= {"48"}
    assert cable.reported().count("48") <= 30
    await cable.close()


@virtual_time
async def test_a_second_time_in_a_cycle_is_an_error_and_a_good_game_begins_a_new_one() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    for _ in range(2):
        cable.do(lambda now: cable.machine._tell(0x2A, now))
        await asyncio.sleep(3)
        cable.do(lambda now: cable.machine._tell(0x48, now))
        await asyncio.sleep(3)
    for _ in range(2):
        cable.do(lambda now: cable.machine._tell(0x28, now))
        await asyncio.sleep(3)
    cable.do(lambda now: cable.machine._tell(0x48, now))
    await cable.act("play", 8)
    cable.do(lambda now: cable.machine._tell(0x28, now))
    await asyncio.sleep(3)
    jams = [event.severity for event in cable.events if isinstance(event, DeviceFaulted) and event.code.endswith("jam")]
    assert jams == ["warning", "error", "warning"]
    await cable.close()


def test_options_refuse_what_they_do_not_know() -> None:
    assert msgspec.convert({"address": 5}, SasMachine.Options) == MachineOptions(address=5)
    for wrong in ({"speed": 9600}, {"address": 0}, {"address": 128}, {"broadcast": 6}, {"pool": "A b"}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, SasMachine.Options)


def test_a_machine_has_no_other_fault() -> None:
    with pytest.raises(ValueError, match="no fault 'earthquake'"):
        Machine(Random(1)).inject("earthquake", 0.0)
