"""Commands to FDL devices: refused, repeated, lost, and never run twice."""

import asyncio
import contextlib
import functools
import random

import pytest
from helpers import virtual_time
from shuffler_bench import Carry, lossy

from drivers.driver import CommandFailed, CommandRefused, LinkLost, Obeys
from protocols.contract.commands import Agitate, ClearBets, Command, Light, SelfTest
from protocols.contract.events import DiceAgitated, DiceCovered, LampsLit
from protocols.fdl import frame as fdl, shaker as fdl_shaker
from simulators.devices.fdl_device import BOOT
from simulators.devices.fdl_shaker import CYCLE, Shaker
from tests.drivers.test_fdl_devices import Bench, bench, codes_of, happened, said, shaker_driver

# ---- commands


def dropping(type_: int, times: int) -> Carry:
    """The first frames of one type do not arrive."""
    left = [times]

    def mangle(data: bytes) -> list[bytes]:
        drop = any(isinstance(found, fdl.Frame) and found.type == type_ for found in fdl.Decoder().feed(data))
        if drop and left[0]:
            left[0] -= 1
            return []
        return [data]

    return mangle


class Counting(Shaker):
    """Counts what it does."""

    done = 0

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        self.done += 1
        return super().do(code, data, now)


def counting(seed: int = 1) -> Counting:
    return Counting(random.Random(seed))


async def ask(table: Bench, command: Command) -> str:
    """How it ended: done, or the class and the words."""
    assert isinstance(table.spoken, Obeys)
    try:
        assert await table.spoken.obey(command) == {}
    except (CommandRefused, CommandFailed) as error:
        return f"{type(error).__name__}: {error}"
    return "done"


@virtual_time
async def test_agitate_and_light() -> None:
    device = counting()
    async with bench(device) as table:
        await table.caught_up()
        table.do(device.cover)
        await asyncio.sleep(0.1)
        assert await ask(table, Agitate(2)) == "done"
        assert await ask(table, Agitate()) == "CommandRefused: the device refused: it is busy"
        await asyncio.sleep(2 * CYCLE)
        assert await ask(table, Light(("reading",))) == "done"
        assert await ask(table, Light(("reading",))) == "done"
        assert await ask(table, Light()) == "done"
        await table.caught_up()
    assert happened(table.notebook) == [
        DiceCovered(),
        DiceAgitated("electronic", 2),
        LampsLit(("reading",)),
        LampsLit(()),
    ]
    assert device.done == 5


@virtual_time
async def test_shaker_refusals() -> None:
    device = counting()
    async with bench(device) as table:
        await table.caught_up()
        # Not yet known to the host: the device itself refuses.
        assert await ask(table, Agitate()) == "CommandRefused: the device refused: a cover or door is open"
        table.do(device.cover)
        table.do(lambda now: device.inject("motor_fault", now))
        await asyncio.sleep(0.5)
        assert await ask(table, Agitate()) == "CommandRefused: the device refused: a fault is open"
        table.do(device.uncover)
        await asyncio.sleep(0.5)
        asked = device.done
        assert await ask(table, Agitate()) == "CommandRefused: the dome is open: cover the dice first"
        assert await ask(table, Light(("win",))) == "CommandRefused: the shaker has no lamp 'win'; it has: reading"
        assert await ask(table, ClearBets()) == "CommandRefused: such a device does not have this command"
        assert device.done == asked
        device.inject("lamp_out", table.now)
        assert await ask(table, Light(("reading",))) == "CommandRefused: the device refused: a fault is open"
    assert device.do(fdl_shaker.AGITATE, b"\x0b", 100)[:2] == (fdl.REFUSED, 0x04)
    assert device.do(fdl_shaker.AGITATE, b"", 100)[:2] == (fdl.REFUSED, 0x04)
    assert device.do(fdl_shaker.LIGHT, b"\x02", 100)[:2] == (fdl.REFUSED, 0x04)
    assert device.do(fdl.SELF_TEST, b"\x02", 100)[0] == fdl.NOT_KNOWN


@pytest.mark.parametrize("type_", [fdl.Command.TYPE, fdl.Answer.TYPE])
@virtual_time
async def test_lost_commands_and_answers_cost_time_only(type_: int) -> None:
    device = counting()
    async with bench(device, dropping(type_, 6)) as table:
        await table.caught_up()
        table.do(device.cover)
        await asyncio.sleep(0.1)
        began = table.now
        assert await ask(table, Agitate()) == "done"
        assert table.now == pytest.approx(began + 1.8, abs=0.1)
        await asyncio.sleep(2 * CYCLE)
    assert device.done == 1
    assert happened(table.notebook) == [DiceCovered(), DiceAgitated("electronic", 1)]


@virtual_time
async def test_no_answer_is_no_refusal() -> None:
    device = counting()
    async with bench(device, dropping(fdl.Answer.TYPE, 1000)) as table:
        await table.caught_up()
        began = table.now
        ended = await ask(table, SelfTest())
        assert ended == ("CommandFailed: no answer in 2.1 s: it is unknown whether the device acted: see its events")
        assert table.now == pytest.approx(began + 2.1)
    assert device.done == 1


@virtual_time
async def test_a_command_is_not_carried_over_a_restart_of_the_device() -> None:
    """The device no longer knows that it did it: a repeat would be a second time."""
    device = counting()
    async with bench(device, dropping(fdl.Answer.TYPE, 1000)) as table:
        await table.caught_up()
        # Off and on again in an instant; the answer was lost.
        off = functools.partial(device.power_cycle, table.now + 0.1 - BOOT, lose_memory=False)
        asyncio.get_running_loop().call_later(0.1, table.do, lambda _: off())
        ended = await ask(table, SelfTest())
        assert ended.startswith("CommandFailed: the session ended before an answer came")
        await asyncio.sleep(5)
    assert device.done == 1


@virtual_time
async def test_a_command_that_the_cable_cuts_off() -> None:
    device = counting()
    async with bench(device, dropping(fdl.Answer.TYPE, 1000)) as table:
        await table.caught_up()
        asyncio.get_running_loop().call_later(0.4, table.cut)
        assert (await ask(table, SelfTest())).startswith("CommandFailed: the session ended before an answer came")


@virtual_time
async def test_a_command_that_cannot_be_written_has_no_known_outcome() -> None:
    def gone(_: bytes) -> None:
        raise LinkLost("write error")

    async with bench(counting()) as table:
        await table.caught_up()
        assert table._link is not None
        table._link.on_write = gone
        assert (await ask(table, SelfTest())).startswith("CommandFailed: write error: it is unknown whether")


@virtual_time
async def test_no_command_without_a_session() -> None:
    driver = shaker_driver()
    with pytest.raises(CommandRefused, match="no session with the device is open"):
        await driver.obey(SelfTest())
    device = counting()
    async with bench(device, dropping(fdl.Hello.TYPE, 1000)) as table:
        await asyncio.sleep(2)
        assert await ask(table, SelfTest()) == "CommandRefused: no session with the device is open"
    assert device.done == 0


@virtual_time
async def test_answers_that_nobody_waits_for() -> None:
    device = counting()
    async with bench(device, dropping(fdl.Command.TYPE, 3)) as table:
        await table.caught_up()
        link = table._link
        assert link is not None
        link.feed(fdl.encode(fdl.Answer(77, fdl.DONE), 1))
        asked = asyncio.create_task(ask(table, SelfTest()))
        await asyncio.sleep(0.1)
        [ticket] = [one.ticket for one in said(bytes(link.sent)) if isinstance(one, fdl.Command)]
        link.feed(fdl.encode(fdl.Answer(ticket - 1, fdl.REFUSED, 1), 1))  # of the command before
        link.feed(fdl.encode_frame(fdl.Answer.TYPE, 1, ticket.to_bytes(4) + b"\x07\x00"))  # no such status
        await asyncio.sleep(0.1)
        assert not asked.done()
        assert await asked == "done"
        link.feed(fdl.encode(fdl.Answer(ticket, fdl.REFUSED, 1), 1))  # too late to matter
        await asyncio.sleep(1)
    assert codes_of(table.notebook.events) == {"fdl.malformed"}


@pytest.mark.parametrize("seed", range(4))
@virtual_time
async def test_commands_over_a_bad_cable_run_once(seed: int) -> None:
    device = counting()
    ends = []
    async with bench(device, lossy(seed)) as table:
        await table.caught_up()
        for _ in range(30):
            with contextlib.suppress(AssertionError):
                await table.caught_up()
            ends.append(await ask(table, SelfTest()))
    assert ends.count("done") > 25
    assert ends.count("done") <= device.done <= len([end for end in ends if not end.startswith("CommandRefused")])


def test_a_ticket_runs_once_and_the_last_eight_answers_are_kept() -> None:
    device = counting()
    device.wake(0)
    device.hear(fdl.encode(fdl.Hello(device._epoch, 0), 1), 0)

    def command(ticket: int, code: int = fdl.SELF_TEST) -> list[object]:
        return said(device.hear(fdl.encode(fdl.Command(ticket, code), 1), 0.1))

    for ticket in range(1, 9):
        assert command(ticket) == [fdl.Answer(ticket, fdl.DONE)]
    assert device.done == 8
    assert command(1, code=0x7F) == [fdl.Answer(1, fdl.DONE)]  # the ticket counts, not what else it says
    assert device.done == 8
    assert command(9, code=0x7F) == [fdl.Answer(9, fdl.NOT_KNOWN)]
    assert command(1) == [fdl.Answer(1, fdl.DONE)]  # forgotten, as the document allows: nine are too many
    assert device.done == 10
    assert said(device.hear(fdl.encode_frame(fdl.Command.TYPE, 1, b"\0\0\0"), 0.2)) == []


def test_a_device_takes_no_commands_in_a_closed_session() -> None:
    device = counting()
    device.wake(0)
    assert device.hear(fdl.encode(fdl.Command(1, fdl.SELF_TEST), 1), 0.1) == b""
    device.hear(fdl.encode(fdl.Hello(device._epoch, 0), 1), 0.2)
    device.power_cycle(0.3, lose_memory=False)
    device.wake(0.3 + BOOT)
    assert device.hear(fdl.encode(fdl.Command(2, fdl.SELF_TEST), 1), 0.5 + BOOT) == b""
    assert device.done == 0
