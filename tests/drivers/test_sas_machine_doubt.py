"""The SAS machine: what is durable before the machine forgets it, whom to believe, and how faults end."""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

import msgspec
import pytest
from helpers import MemoryLink, Notebook, virtual_time

from drivers.driver import CommandFailed, CommandRefused, DeviceRefused
from drivers.sas_machine import WARY, SasMachine
from drivers.sas_machine_memory import MachineOptions, Memory
from protocols.contract.commands import EnableMachine, ReadMeters
from protocols.contract.events import DeviceFaulted, DeviceRecovered, MachineReported, type_of
from protocols.sas.frames import encode
from protocols.sas.messages import (
    Answer,
    Busy,
    LongPoll,
    Nack,
)
from protocols.sas.tables import CANCELLED_CREDITS
from simulators.devices.sas_machine import Machine
from tests.drivers.test_sas_machine import Cable, InRealTime, Silent, onlines

CREDITS = CANCELLED_CREDITS


def memory(cable: Cable) -> Memory:
    assert cable.notes.memory is not None
    return msgspec.json.decode(cable.notes.memory, type=Memory)


def faulted(cable: Cable, code: str) -> list[str]:
    return [event.text for event in cable.events if isinstance(event, DeviceFaulted) and event.code == code]


def instead(cable: Cable, answers: Callable[[LongPoll], Answer | bool | None]) -> None:
    """The machine answers so, where that is not True."""
    truly = cable.machine._answer

    def answer(poll: LongPoll, now: float) -> Answer | None:
        other = answers(poll)
        return truly(poll, now) if isinstance(other, bool) else other

    cable.machine._answer = answer  # type: ignore[method-assign]


# ---- durable before the machine forgets


@virtual_time
async def test_a_handpay_that_another_poll_has_named_is_durable_before_the_machine_forgets_it() -> None:
    """Its answer tells nothing new: what is remembered of it was lost with the session, and its payment never told."""
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(lambda now: cable.machine.hit_progressive(now, by_hand=True))
    await cable.until(lambda: not cable.machine._unread)
    cable.restart()
    await asyncio.sleep(5)
    await cable.act("reset", 5)
    assert cable.jackpots() == [("won", 1, 100_000), ("paid", 1, 100_000)]
    assert "sas.doubtful" not in cable.told()
    await cable.close()


# ---- whom to believe


@virtual_time
async def test_a_line_that_echoes_is_refused_and_nothing_of_it_is_told() -> None:
    """The poll of address 1 comes back as exception 81, hopper low."""
    notes = Notebook()
    for _ in range(5):
        link = MemoryLink()
        link.on_write = link.feed
        with pytest.raises(DeviceRefused, match="the line echoes: TX and RX are joined"):
            await asyncio.wait_for(SasMachine(MachineOptions(), notes.memory).run(link, notes), 30)
    assert notes.events == []
    link = MemoryLink()
    link.on_write = lambda data: link.feed(data + (data[:2] + b"\x09602" if len(data) > 1 else b"\x00"))
    with pytest.raises(DeviceRefused, match="the adapter is half duplex"):
        await asyncio.wait_for(SasMachine(MachineOptions(), notes.memory).run(link, notes), 30)
    assert notes.events == []


@pytest.mark.parametrize("act", ["", "insert_bill"])
@virtual_time
async def test_a_line_that_begins_to_echo_ends_the_session_and_no_exception_is_told(act: str) -> None:
    cable = Cable()
    await asyncio.sleep(4.1)
    if act:
        cable.do(cable.machine.acts()[act])
    cable.echoes = True
    cable.machine._until["loop_break"] = cable.now + 20
    await asyncio.sleep(20)
    cable.echoes = False
    await asyncio.sleep(20)
    assert "machine.hopper_low" not in cable.told()
    assert any("the line echoes" in why for why in cable.offline)
    assert len(cable.offline) < 25
    assert len(faulted(cable, "sas.doubtful")) <= 3
    assert cable.standing() == set()
    await cable.act("insert_bill", 8)
    assert cable.reported() == ["48"] * (2 if act else 1)
    await cable.close()


@virtual_time
async def test_an_address_that_is_an_exception_too_is_not_believed_of_a_machine_that_hears_nothing() -> None:
    """It says its address each 200 ms: 11, slot door open."""
    cable = Cable(MachineOptions(address=0x11))
    cable.machine = Machine(Random(1), address=0x11)
    cable.machine._until["loop_break"] = 30.0
    await asyncio.sleep(30)
    assert cable.events == []
    assert len(cable.offline) >= 4
    assert "it sends loop breaks" in cable.offline[-1]
    await asyncio.sleep(15)
    assert type_of(cable.events[0]) == "device.online"
    assert "machine.slot_door" not in cable.told()
    assert len(faulted(cable, "sas.doubtful")) <= 1
    await cable.act("open_door", 3)
    assert cable.standing() == {"machine.slot_door"}
    await cable.close()


@virtual_time
async def test_an_address_that_means_an_idle_machine_does_not_keep_a_broken_line_alive() -> None:
    cable = Cable(MachineOptions(address=0x1F, meters=30))
    cable.machine = Machine(Random(1), address=0x1F)
    await asyncio.sleep(20)
    assert cable.offline == []
    cable.machine._until["loop_break"] = cable.now + 60
    await asyncio.sleep(55)
    assert cable.offline
    assert "sas.deaf" not in cable.told()
    await cable.close()


@virtual_time
async def test_a_deaf_machine_whose_address_means_idle_is_there_where_nothing_comes_unasked() -> None:
    cable = Cable(MachineOptions(address=0x1F))
    cable.machine = Machine(Random(1), address=0x1F)
    cable.machine._until["deaf"] = 1000.0
    cable.eat = lambda data: data.replace(b"\x00", b"\x1f")
    await asyncio.sleep(20)
    assert len(onlines(cable.events)) == 1
    assert cable.offline == []
    await cable.act("open_door", 5)
    assert "machine.slot_door" in cable.standing()
    await cable.close()


@pytest.mark.parametrize("after", [0.0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.18])
@virtual_time
async def test_a_machine_that_hears_nothing_and_whose_address_means_idle_is_not_there(after: float) -> None:
    await asyncio.sleep(after)
    cable = Cable(MachineOptions(address=0x1F))
    cable.machine = Machine(Random(1), address=0x1F)
    cable.machine._until["loop_break"] = 1000.0
    await asyncio.sleep(30)
    assert cable.events == []
    assert len(cable.offline) >= 4
    assert "it sends loop breaks" in cable.offline[-1]
    await cable.close()


@virtual_time
async def test_a_deaf_machine_that_says_what_a_poll_looks_like_is_in_doubt_and_goes_on() -> None:
    cable = Cable()
    cable.machine._until["deaf"] = 1000.0
    await asyncio.sleep(8)
    cable.do(lambda now: cable.machine._tell(0x81, now))
    await cable.act("open_door", 5)
    assert cable.standing() == {"machine.slot_door", "sas.doubtful"}
    assert "machine.hopper_low" not in cable.told()
    assert cable.offline == []
    await cable.close()


@pytest.mark.parametrize("flipped", [0x1F, 0x1A])
@virtual_time
async def test_one_wrong_bit_on_a_bad_line_makes_nothing_of_an_exception(flipped: int) -> None:
    """1B, the cashbox is removed, came as 1F, nothing: the machine was told that it was heard."""
    cable = Cable()
    await asyncio.sleep(4)
    noise = [b"\x55\x55\x55"]
    cable.eat = lambda data: noise.pop() if data and noise else data
    await asyncio.sleep(2)
    assert not noise
    wrong = [bytes((flipped,))]
    cable.eat = lambda data: wrong.pop() if data == b"\x1b" and wrong else data
    cable.do(lambda now: cable.machine.inject("cashbox_removed", now))
    await asyncio.sleep(3)
    assert not wrong
    assert cable.standing() == {"machine.cashbox_removed"}
    await cable.close()


@virtual_time
async def test_an_exception_whose_second_reading_is_damaged_is_read_again() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    readings = 0

    def eat(data: bytes) -> bytes:
        nonlocal readings
        readings += data == b"\x1b"
        return b"\x1f" if data == b"\x1b" and readings == 2 else data

    cable.eat = eat
    cable.do(lambda now: cable.machine.inject("cashbox_removed", now))
    await asyncio.sleep(3)
    assert cable.standing() == {"machine.cashbox_removed"}
    assert "sas.doubtful" not in cable.told()
    await cable.close()


# ---- a code that is the machine's address, or our own poll


async def cut_before_the_proof(cable: Cable) -> None:
    """The session ends when what was read is durable, and no answer has proved it."""
    cable.eat = lambda data: b"" if memory(cable).seen else data
    await cable.until(lambda: bool(memory(cable).seen))
    cable.restart()
    await asyncio.sleep(0)
    cable.eat = lambda data: data


@virtual_time
async def test_a_payment_whose_code_is_the_address_is_told_where_the_session_was_cut_short() -> None:
    """It was read of a machine that was proved: it was taken for a chirp only because the session ended."""
    cable = Cable(MachineOptions(address=0x52))
    cable.machine = Machine(Random(1), address=0x52)
    await asyncio.sleep(4)
    cable.do(partial(cable.machine.handpay, amount=5000))
    await asyncio.sleep(5)
    cable.machine.reset(cable.now)
    await cut_before_the_proof(cable)
    await asyncio.sleep(8)
    assert cable.jackpots() == [("won", 0, 5000), ("paid", 0, 5000)]
    assert "perhaps only an address" not in str(cable.events)
    await cable.close()


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("forgotten", [False, True])
@virtual_time
async def test_a_fault_whose_code_is_our_poll_begins_where_the_session_was_cut_short(
    older: bool, forgotten: bool
) -> None:
    """An earlier version did not remember whether the machine was proved: then only what is said again counts."""
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(partial(cable.machine.inject, "hopper_low"))
    await cut_before_the_proof(cable)
    if older:
        assert cable.notes.memory is not None
        left = msgspec.json.decode(cable.notes.memory)
        del left["sure"]
        cable.notes.memory = msgspec.json.encode(left)
    cable.machine._queue.clear()
    cable.machine._priority.clear()
    cable.machine._saying = None
    if not forgotten:
        cable.machine._tell(0x81, cable.now)
    await asyncio.sleep(4)
    assert ("machine.hopper_low" in cable.told()) == (not (older and forgotten))
    assert ("perhaps only an address" in str(cable.events)) == (older and forgotten)
    await cable.close()


@virtual_time
async def test_a_machine_that_is_proved_is_believed_whatever_poll_it_does_not_support() -> None:
    """Address 1 without A0: 81 was read, and A0 was not answered."""
    cable = Cable()
    machine = cable.machine = Silent(Random(1))
    machine.silent = frozenset({0xA0})
    cable.do(partial(machine.inject, "hopper_low"))
    machine._queue.remove(0x81)
    await cable.until(lambda: cable.driver is not None and cable.driver._online)
    machine._tell(0x81, cable.now)
    await asyncio.sleep(6)
    assert cable.standing() == {"machine.hopper_low"}
    assert "sas.doubtful" not in cable.told()
    await cable.close()


# ---- who was paid


@virtual_time
async def test_a_handpay_that_was_cancelled_is_not_paid() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    for amount in (900_000, 700_000):
        cable.do(partial(cable.machine.handpay, amount=5000, level=CREDITS))
        await asyncio.sleep(5)
        await cable.act("cancel_handpay", 5)
        cable.do(partial(cable.machine.handpay, amount=amount))
        await asyncio.sleep(5)
        await cable.act("reset", 5)
    assert cable.jackpots() == [(what, 0, amount) for amount in (900_000, 700_000) for what in ("won", "paid")]
    told = [event.text for event in cable.events if isinstance(event, MachineReported) and event.code == "55"]
    assert told == ["5000 of cancelled credits are no longer to be paid by hand"] * 2
    assert "sas.doubtful" not in cable.told()
    await cable.close()


@virtual_time
async def test_where_it_is_not_sure_which_handpay_was_cancelled_the_payment_is_in_doubt() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    for amount in (5000, 6000):
        cable.do(partial(cable.machine.handpay, amount=amount, level=CREDITS))
        await asyncio.sleep(5)
    await cable.act("cancel_handpay", 5)
    cable.do(partial(cable.machine.handpay, amount=900_000))
    await asyncio.sleep(5)
    for _ in range(2):
        await cable.act("reset", 5)
    assert len(faulted(cable, "sas.doubtful")) == 1
    assert ("paid", 0, 900_000) not in cable.jackpots()
    cable.do(partial(cable.machine.handpay, amount=700_000))
    await asyncio.sleep(5)
    await cable.act("reset", 5)
    assert cable.jackpots()[-2:] == [("won", 0, 700_000), ("paid", 0, 700_000)]
    await cable.close()


@virtual_time
async def test_a_request_that_is_cancelled_before_it_was_read_is_not_paid_as_another() -> None:
    """The queue of what was said is told in its order: the request may be read after its end was told."""
    cable = Cable()
    await asyncio.sleep(4)
    driver = cable.driver
    assert driver is not None
    cable.do(partial(cable.machine.handpay, amount=5000, level=CREDITS))
    cable.do(lambda now: cable.machine._tell(0x55, now))
    await cable.until(lambda: bool(driver._memory.prizes))
    cable.machine._handpays.clear()
    await asyncio.sleep(5)
    cable.do(partial(cable.machine.handpay, amount=900_000))
    await asyncio.sleep(5)
    await cable.act("reset", 5)
    assert "5000 of cancelled credits were paid by hand" not in str(cable.events)
    assert ("paid", 0, 900_000) in cable.jackpots() or faulted(cable, "sas.doubtful")
    await cable.close()


@pytest.mark.parametrize("lost", ["a bad line", "an overflow"])
@virtual_time
async def test_a_payment_that_was_not_told_does_not_shift_those_after_it_for_ever(lost: str) -> None:
    cable = Cable()
    await asyncio.sleep(4)
    for amount in (1000, 2000):
        cable.do(partial(cable.machine.handpay, amount=amount))
        await asyncio.sleep(5)
    driver = cable.driver
    assert driver is not None
    cable.machine.reset(cable.now)
    if lost == "a bad line":
        cable._stirred.set()
        await cable.until(lambda: bool(driver._memory.seen))
        bad = 3

        def eat(data: bytes) -> bytes:
            nonlocal bad
            bad -= len(data) > 1 and bad > 0
            return data[:-1] + b"\x55" if len(data) > 1 and bad >= 0 and driver._memory.seen else data

        cable.eat = eat
        await asyncio.sleep(5)
        cable.eat = lambda data: data
        assert "52 handpay reset, on a bad line" in str(faulted(cable, "sas.doubtful"))
    else:
        cable.machine._priority.clear()
        cable.do(lambda now: cable.machine._tell(0x70, now))
    await asyncio.sleep(5)
    cable.do(partial(cable.machine.handpay, amount=3000))
    await asyncio.sleep(5)
    for _ in range(2):
        await cable.act("reset", 5)
    paid = [amount for what, _, amount in cable.jackpots() if what == "paid"]
    assert paid == []
    assert "not sure which of 3" in str(faulted(cable, "sas.doubtful"))
    cable.do(partial(cable.machine.handpay, amount=4000))
    await asyncio.sleep(5)
    await cable.act("reset", 5)
    assert cable.jackpots()[-1] == ("paid", 0, 4000)
    await cable.close()


# ---- how faults end


@virtual_time
async def test_a_fault_does_not_end_with_a_game_that_was_played_before_it() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    for name in ("coin_in", "games_played"):
        cable.machine.meters[name] += 1
    cable.do(lambda now: cable.machine.inject("ram_device", now))
    await asyncio.sleep(12)
    cable.restart()
    await asyncio.sleep(12)
    assert cable.standing() == {"machine.ram_device"}
    assert cable.driver is not None
    with pytest.raises(CommandRefused, match=r"machine\.ram_device"):
        await cable.driver.obey(EnableMachine(on=True))
    for name in ("coin_in", "games_played"):
        cable.machine.meters[name] += 1
    await asyncio.sleep(8)
    assert cable.standing() == set()
    await cable.close()


@pytest.mark.parametrize("hindrance", ["the session ends", "no acknowledgement", "not now"])
@virtual_time
async def test_a_machine_that_must_be_closed_is_told_so_until_it_is(hindrance: str) -> None:
    cable = Cable(MachineOptions(close_faulty=True))
    await asyncio.sleep(4)
    machine = cable.machine
    refused = [5]

    def answers(poll: LongPoll) -> Answer | bool | None:
        if poll.command != 0x01 or not refused[0]:
            return True
        refused[0] -= 1
        match hindrance:
            case "the session ends":
                refused[0] = 0
                cable.restart()
                return None
            case "not now":
                return Nack(1)
            case _:
                return None

    instead(cable, answers)
    cable.do(lambda now: machine.inject("meter_back", now))
    await asyncio.sleep(40)
    assert not machine.enabled
    assert refused == [0]
    assert memory(cable).was_closed
    machine.enabled = True
    await asyncio.sleep(20)
    assert machine.enabled, "it was closed once"
    await cable.close()


@virtual_time
async def test_a_machine_whose_meters_are_well_again_is_not_closed_any_more() -> None:
    cable = Cable(MachineOptions(close_faulty=True))
    await asyncio.sleep(4)
    instead(cable, lambda poll: None if poll.command == 0x01 else True)
    cable.do(lambda now: cable.machine.inject("meter_back", now))
    await asyncio.sleep(20)
    assert not memory(cable).was_closed
    cable.do(cable.machine.repair)
    await asyncio.sleep(20)
    assert cable.standing() == set()
    assert cable.machine.enabled
    await cable.close()


@virtual_time
async def test_a_memory_that_was_perhaps_cleared_may_begin_anew() -> None:
    """The machine said it and on a bad line it could not be proved: the meters stood at fault for ever."""
    cable = Cable()
    await asyncio.sleep(4)
    driver = cable.driver
    assert driver is not None
    cable.machine._clear_memory(cable.now)
    cable._stirred.set()
    await cable.until(lambda: bool(driver._memory.seen))
    cable.eat = lambda data: data[:-1] + b"\x55" if len(data) > 1 else data
    await cable.until(lambda: not driver._memory.seen)
    cable.eat = lambda data: data
    await asyncio.sleep(20)
    assert "3A memory reset by the operator, on a bad line" in str(faulted(cable, "sas.doubtful"))
    assert "sas.meter_back" not in cable.told()
    assert cable.meters()["coin_in"] == 0
    await cable.close()


@pytest.mark.parametrize("after", [0.4, 0.9, 1.3])
@virtual_time
async def test_a_spell_without_answers_does_not_end_the_reading_of_meters(after: float) -> None:
    """Polls that it would answer were taken for polls that it does not support, until the session ended."""
    cable = Cable()
    await cable.until(lambda: bool(cable.events))
    await asyncio.sleep(after)
    cable.machine._until["deaf"] = cable.now + 6
    cable._stirred.set()
    await asyncio.sleep(20)
    assert "sas.deaf" in cable.told()
    assert cable.standing() == set()
    await cable.act("play", 12)
    assert {name: cable.meters()[name] for name in ("coin_in", "games_won", "credits")} == {
        name: cable.machine.meters[name] for name in ("coin_in", "games_won", "credits")
    }
    await cable.close()


@virtual_time
async def test_a_poll_that_was_not_answered_is_asked_again_after_some_minutes_and_seldom_meanwhile() -> None:
    cable = Cable()
    machine = cable.machine = Silent(Random(1))
    machine.silent = frozenset({0x1C, 0xA0})
    asked = 0

    def count(poll: LongPoll) -> bool:
        nonlocal asked
        asked += poll.command == 0x1C
        return True

    instead(cable, count)
    await asyncio.sleep(300)
    assert asked == 3
    assert "games_won" not in cable.meters()
    assert cable.standing() == set()
    machine.silent = frozenset()
    await asyncio.sleep(600)
    assert cable.meters()["games_won"] == machine.meters["games_won"]
    await cable.close()


@virtual_time
async def test_reading_meters_is_refused_where_no_poll_brings_them() -> None:
    cable = Cable()
    machine = cable.machine = Silent(Random(1))
    await asyncio.sleep(8)
    machine.silent = frozenset({0x0F, 0x19, 0x1A, 0x1C, 0xA0})
    cable.restart()
    await asyncio.sleep(20)
    assert cable.driver is not None
    with pytest.raises(CommandRefused, match="no poll for its meters"):
        await cable.driver.obey(ReadMeters())
    machine.silent = frozenset({0x0F, 0x1A, 0x1C, 0xA0})
    cable.restart()
    await asyncio.sleep(20)
    coin_in = machine.meters["coin_in"] = machine.meters["coin_in"] + 5
    assert (await cable.driver.obey(ReadMeters()))["meters"]["coin_in"] == coin_in
    await cable.close()


@virtual_time
async def test_what_is_said_again_and_again_is_one_fault() -> None:
    """53 comes each five seconds while no amounts are heard, 51 each fifteen until somebody reads the handpay."""
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(lambda now: cable.machine.inject("no_broadcast", now))
    cable.machine._until["no_broadcast"] = cable.now + 120
    instead(cable, lambda poll: None if poll.command == 0x1B else True)
    cable.do(cable.machine.handpay)
    await asyncio.sleep(120)
    assert len(faulted(cable, "sas.progressive_silent")) == 1
    assert len(faulted(cable, "sas.doubtful")) == 1
    await asyncio.sleep(30)
    assert DeviceRecovered("sas.progressive_silent") in cable.events
    await cable.act("reset", 20)
    cable.do(cable.machine.handpay)
    await asyncio.sleep(40)
    assert len(faulted(cable, "sas.doubtful")) == 2
    await cable.close()


@pytest.mark.parametrize("after", [4.3, 5.0, 5.3, 6.0])
@virtual_time
async def test_a_line_that_goes_dead_is_no_machine_that_answers_general_polls_only(after: float) -> None:
    cable = Cable()
    await asyncio.sleep(after)
    cable.do(partial(cable.machine._tell, 0x48))
    await asyncio.sleep(0.5)
    cable.line._mute_until = cable.now + 12
    await asyncio.sleep(30)
    assert cable.offline
    assert "sas.deaf" not in cable.told()
    await cable.close()


# ---- real time mode


@pytest.mark.parametrize("general", [False, True])
@virtual_time
async def test_a_machine_left_in_real_time_mode_stays_online_while_nothing_happens(general: bool) -> None:
    """It has no answer to a general poll where nothing happened."""
    cable = Cable(MachineOptions(meters=60))
    machine = cable.machine = InRealTime(Random(1))
    machine.general = general
    await asyncio.sleep(120)
    assert cable.offline == []
    assert len(onlines(cable.events)) == 1
    machine._queue.extend([0x48, 0x66, 0x66, 0x82])
    await asyncio.sleep(20)
    assert cable.reported() == ["48", "66", "66", "82"]
    assert "sas.doubtful" not in cable.told()
    cable.restart()
    await asyncio.sleep(20)
    assert [event.continuous for event in onlines(cable.events)] == [False, False]
    machine._queue.extend([0x71])
    cable.restart()
    await asyncio.sleep(20)
    assert cable.reported() == ["48", "66", "66", "82", "71"]
    assert cable.offline == ["hung up", "hung up"]
    await cable.close()


@pytest.mark.parametrize("general", [False, True])
@virtual_time
async def test_a_machine_that_another_host_puts_into_real_time_mode_is_offline_once_at_most(general: bool) -> None:
    """One that answered general polls and says nothing any more may have said what nobody heard: it is not passed."""
    cable = Cable()
    await asyncio.sleep(10)
    machine = InRealTime(Random(1))
    machine.general = general
    machine._synchronised = True
    machine._addressed_at = cable.now
    machine._queue.append(0x48)
    cable.machine = machine
    await asyncio.sleep(60)
    assert len(cable.offline) <= (0 if general else 1)
    assert cable.reported() == ["48"]
    await cable.close()


# ---- commands


@pytest.mark.parametrize("lost", [False, True])
@virtual_time
async def test_a_command_that_was_perhaps_carried_out_before_the_machine_was_busy_says_so(lost: bool) -> None:
    cable = Cable()
    await asyncio.sleep(4)
    first = [lost]

    def answers(poll: LongPoll) -> Answer | bool | None:
        if poll.command != 0x01:
            return True
        if first[0]:
            first[0] = False
            cable.machine.enabled = False
            return None
        return Busy(1)

    instead(cable, answers)
    assert cable.driver is not None
    said_of_it = "was not answered: it is unknown whether it was done" if lost else "nothing was done"
    with pytest.raises(CommandFailed, match=said_of_it):
        await cable.driver.obey(EnableMachine(on=False))
    await cable.close()


# ---- what passes


@virtual_time
async def test_one_damaged_byte_does_not_put_a_machine_offline_that_is_polled_slowly() -> None:
    cable = Cable(MachineOptions(interval=2, silence=5, meters=60))
    await asyncio.sleep(40.5)
    assert cable.offline == []
    noise = [b"\x48"]
    cable.eat = lambda data: noise.pop() if data and noise else data
    await asyncio.sleep(25)
    assert not noise
    assert cable.offline == []
    await cable.close()


@virtual_time
async def test_it_is_sure_again_who_is_paid_once_every_request_that_was_cancelled_is_over() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    for amount in (5000, 6000):
        cable.do(partial(cable.machine.handpay, amount=amount, level=CREDITS))
        await asyncio.sleep(5)
    for _ in range(2):
        await cable.act("cancel_handpay", 5)
    assert not memory(cable).unsure
    for amount in (900_000, 700_000):
        cable.do(partial(cable.machine.handpay, amount=amount))
        await asyncio.sleep(5)
    for _ in range(2):
        await cable.act("reset", 5)
    assert [amount for what, _, amount in cable.jackpots() if what == "paid"] == [900_000, 700_000]
    await cable.close()


@pytest.mark.parametrize("cut", [False, True])
@virtual_time
async def test_it_is_sure_again_who_is_paid_once_the_machine_says_which_handpay_it_is(cut: bool) -> None:
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(partial(cable.machine.handpay, amount=1000))
    await asyncio.sleep(5)
    dumb = [True]
    instead(cable, lambda poll: None if poll.command == 0x1B and dumb else True)
    cable.do(partial(cable.machine.handpay, amount=2000))
    await cable.until(lambda: memory(cable).unsure)
    dumb.clear()
    if cut:
        cable.restart()
    await asyncio.sleep(20)
    assert not memory(cable).unsure
    for _ in range(2):
        await cable.act("reset", 5)
    assert [amount for what, _, amount in cable.jackpots() if what == "paid"] == [1000, 2000]
    await cable.close()


@virtual_time
async def test_a_machine_is_not_shut_down_by_what_was_queued_while_a_fault_stood() -> None:
    cable = Cable(MachineOptions(close_faulty=True))
    await asyncio.sleep(4)
    driver = cable.driver
    assert driver is not None
    cable.do(lambda now: cable.machine.inject("meter_back", now))
    await cable.until(lambda: any(work.poll.command == 0x01 for work in driver._queue))
    cable.machine.meters["coin_in"] += 100
    await asyncio.sleep(3)
    assert cable.standing() == set()
    assert cable.machine.enabled
    assert not driver._memory.was_closed
    await cable.close()


def test_a_new_exception_after_nothing_does_not_make_a_sound_line_a_bad_one() -> None:
    driver = SasMachine(MachineOptions())
    driver._wary = 5
    for code in (0x00, 0x48):
        driver._reading(code)
    assert driver._wary == 5
    driver._reading(0x00)
    assert driver._wary == WARY


@virtual_time
async def test_a_poll_whose_answer_nobody_can_read_does_not_make_a_sound_line_a_bad_one() -> None:
    cable = Cable()
    bad = 0x1C

    def eat(data: bytes) -> bytes:
        poll = cable.machine._last_poll
        return b"\x55" * len(data) if isinstance(poll, LongPoll) and poll.command == bad else data

    cable.eat = eat
    await asyncio.sleep(60)
    driver = cable.driver
    assert driver is not None
    assert driver._wary == 0
    bad = 0x0F
    await cable.until(lambda: driver._wary > 0)
    await cable.close()


@virtual_time
async def test_a_machine_that_answers_general_polls_again_comes_back_as_continuous() -> None:
    """It was silent at first: that is no real-time mode once it says that nothing happened."""
    cable = Cable()
    cable.eat = lambda data: b"" if len(data) == 1 else data
    await cable.until(lambda: cable.notes.memory is not None and memory(cable).mute)
    cable.restart()
    await asyncio.sleep(3)
    assert [event.continuous for event in onlines(cable.events)] == [False, False]
    cable.eat = lambda data: data
    await asyncio.sleep(5)
    cable.restart()
    await asyncio.sleep(5)
    assert [event.continuous for event in onlines(cable.events)] == [False, False, True]
    await cable.close()


@pytest.mark.parametrize("byte", [0x48, 0x00])
@virtual_time
async def test_one_byte_of_noise_does_not_end_the_session_with_a_machine_in_real_time_mode(byte: int) -> None:
    cable = Cable(MachineOptions(meters=60))
    cable.machine = InRealTime(Random(1))
    await asyncio.sleep(20)
    assert cable._link is not None
    noise = [bytes((byte,))]
    truly = cable._link.on_write

    def write(data: bytes) -> None:
        truly(data)
        if data == b"\x81" and noise and cable._link is not None:
            cable._link.feed(noise.pop())

    cable._link.on_write = write
    await asyncio.sleep(60)
    assert not noise
    assert cable.offline == []
    await cable.close()


# ---- the simulator


def polled(machine: Machine, poll: LongPoll) -> bytes:
    """What it answers, in a second."""
    machine.hear(b"\x80", 0.0)
    machine.hear(encode(poll), 0.0)
    return machine.wake(1.0)


@pytest.mark.parametrize("command", [0x2D, 0x52, 0x53, 0xA0])
def test_the_simulator_reads_a_games_number_in_decimal(command: int) -> None:
    answer = polled(Machine(Random(1)), LongPoll(1, command, b"\x27\x10"))
    assert answer[:4] == bytes((1, command, 0x27, 0x10))
    assert polled(Machine(Random(1)), LongPoll(1, command, b"\x2a\x10")) == b"\x81"
