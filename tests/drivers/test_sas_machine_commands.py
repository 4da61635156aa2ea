"""Commands to a SAS machine, and a machine that answers nothing."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from helpers import PATIENCE, MemoryLink, Notebook, virtual_time

from daemon.edge.links.link import open_link
from drivers.driver import CommandFailed, CommandRefused, LinkLost, Sighting
from drivers.sas_machine import SasMachine
from drivers.sas_machine_memory import MachineOptions
from protocols.contract.commands import Agitate, Ask, Command, EnableMachine, ReadMeters, ResetHandpay, ShowAmount
from protocols.contract.events import DeviceOnline
from simulators.clock import Pace
from simulators.devices.sas_machine import Machine
from simulators.ports.port import Pty, Socket
from tests.drivers.test_sas_machine import Cable

# ---- commands


@virtual_time
async def test_commands_say_what_the_machine_said() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    driver = cable.driver
    assert driver is not None
    for on in (False, True):
        assert await driver.obey(EnableMachine(on=on)) == {"enabled": on}
        assert cable.machine.enabled is on
    cable.do(cable.machine.insert_bill)
    meters = (await driver.obey(ReadMeters()))["meters"]
    assert meters["drop"] == cable.machine.meters["drop"]
    assert meters.items() <= (await driver.obey(Ask("meters")))["meters"].items()
    assert await driver.obey(Ask("version")) == {"sas": "6.02", "serial": "SIM-0001"}
    assert await driver.obey(Ask("last-bill")) == {"country": 37, "denomination": 2, "count": 1}
    assert await driver.obey(Ask("features")) == {
        "game": 0,
        "flags": "500803000000",
        "validation": "secure",
        "redemption": False,
    }
    game = await driver.obey(Ask("game"))
    assert (game["game_id"], game["credit"]) == ("SI", 1)
    await asyncio.sleep(5)
    cable.do(cable.machine.handpay)
    await asyncio.sleep(3)
    assert await driver.obey(ResetHandpay()) == {"reset": True}
    await asyncio.sleep(5)
    assert cable.jackpots() == [("won", 0, 123_456), ("paid", 0, 123_456)]
    await cable.close()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (ResetHandpay(), "no handpay is pending"),
        (Ask("weather"), "no figure 'weather'; known: version"),
        (ShowAmount(10**10, 1), "no broadcast can carry level 1"),
        (Agitate(), "no such command"),
    ],
)
@virtual_time
async def test_what_cannot_be_done_is_refused(command: Command, reason: str) -> None:
    cable = Cable()
    await asyncio.sleep(4)
    assert cable.driver is not None
    with pytest.raises(CommandRefused, match=reason):
        await cable.driver.obey(command)
    await cable.close()


@virtual_time
async def test_a_handpay_is_not_reset_while_the_door_is_open() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(cable.machine.open_door)
    cable.do(cable.machine.handpay)
    assert cable.driver is not None
    with pytest.raises(CommandRefused, match="cannot reset"):
        await cable.driver.obey(ResetHandpay())
    await cable.close()


@virtual_time
async def test_a_reset_whose_answer_was_lost_is_asked_again_and_not_done_twice() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(cable.machine.handpay)
    cable.do(cable.machine.handpay)
    await asyncio.sleep(20)
    lost = [True]
    cable.eat = lambda data: b"" if data[:2] == b"\x01\x94" and lost and lost.pop() else data
    assert cable.driver is not None
    assert await cable.driver.obey(ResetHandpay()) == {"reset": True}
    assert len(cable.machine._handpays) == 1
    await cable.close()


@virtual_time
async def test_commands_end_where_the_machine_does_not_answer_or_is_busy_or_gone() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    driver = cable.driver
    assert driver is not None
    cable.do(lambda now: cable.machine.inject("deaf", now))
    with pytest.raises(CommandFailed, match="did not answer"):
        await driver.obey(EnableMachine(on=False))
    await asyncio.sleep(15)
    cable.do(lambda now: cable.machine.inject("busy", now))
    with pytest.raises(CommandFailed, match="busy for 8 s"):
        await driver.obey(EnableMachine(on=False))
    await asyncio.sleep(15)
    cable.line.inject("silence", cable.now)
    waiting = asyncio.create_task(driver.obey(EnableMachine(on=False)))
    await asyncio.sleep(7)
    with pytest.raises(CommandFailed):
        await waiting
    with pytest.raises(CommandRefused, match="not online"):
        await driver.obey(ReadMeters())
    await cable.close()


@virtual_time
async def test_the_machine_that_does_not_hear_us_says_so() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    cable.machine._until["loop_break"] = cable.now + 30
    await asyncio.sleep(35)
    assert any("it sends loop breaks" in reason for reason in cable.offline)
    await cable.close()


@virtual_time
async def test_a_machine_that_never_answers_long_polls_is_online_and_its_exceptions_are_told() -> None:
    cable = Cable()
    cable.machine._until["deaf"] = 1000.0
    await asyncio.sleep(8)
    assert cable.events[0] == DeviceOnline(False, "SAS", "")
    await cable.act("open_door", 3)
    assert cable.standing() == {"machine.slot_door"}
    assert cable.offline == []
    await cable.close()


@virtual_time
async def test_nobody_there_is_a_lost_link_and_no_event() -> None:
    link, notes = MemoryLink(), Notebook()
    with pytest.raises(LinkLost, match="no answer from machine 1 for 5 s"):
        await SasMachine(MachineOptions()).run(link, notes)
    assert notes.events == []


async def test_over_a_pty_and_its_own_link(tmp_path: Path) -> None:
    machine, notes = Machine(Random(1)), Notebook()
    socket = Socket(machine, Pty(tmp_path / "sas"), Pace())
    live = asyncio.create_task(socket.live())
    await asyncio.sleep(0)
    async with open_link(f"sas://{tmp_path}/sas") as link:
        driver = SasMachine(MachineOptions(interval=0.08))
        told = asyncio.Event()

        async def emit(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            await notes(sightings, memory)
            told.set()

        async def serve() -> None:
            while True:
                with contextlib.suppress(LinkLost):  # a busy computer polls too late
                    await driver.run(link, emit)
                await asyncio.sleep(0.05)  # a link that stays lost does not hold up the loop

        run = asyncio.create_task(serve())
        done: dict[str, object] = {}
        async with asyncio.timeout(PATIENCE):
            await told.wait()
            while not done:
                await asyncio.sleep(0.05)
                with contextlib.suppress(CommandFailed, CommandRefused):
                    done = await driver.obey(EnableMachine(on=False))
        assert done == {"enabled": False}
        assert not machine.enabled
        assert isinstance(notes.events[0], DeviceOnline)
        for task in (run, live):
            task.cancel()
        await asyncio.gather(run, live, return_exceptions=True)
