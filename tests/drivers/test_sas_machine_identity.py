"""What a SAS machine says it is, the approved values, and what shuts it down, in virtual time."""

import asyncio

import pytest
from helpers import virtual_time

from drivers.driver import CommandRefused
from drivers.sas_machine_memory import MachineOptions
from protocols.contract.commands import EnableMachine
from protocols.contract.events import DeviceFaulted, MachineIdentified, MachineMeters, MachineUnreliable
from tests.drivers.test_sas_machine import Cable


def identities(cable: Cable) -> list[MachineIdentified]:
    return [one for one in cable.events if isinstance(one, MachineIdentified)]


@virtual_time
async def test_a_machine_says_what_it_is_once_and_after_each_change() -> None:
    cable = Cable(MachineOptions(signature_seed=0x1234))
    await asyncio.sleep(5)
    (first,) = identities(cable)
    assert (first.serial, first.game, first.paytable) == ("SIM-0001", "SI ML", "LUCKY")
    assert (first.return_bp, first.credit, first.max_bet, first.options) == (9000, 1, 5, "0001")
    assert len(first.signature) == 4
    assert first.differs == ()
    cable.restart()
    await asyncio.sleep(90)
    assert identities(cable) == [first], "all of it was read again within a minute"
    cable.machine.paytable = "LUCKY2"  # nobody says that options were changed
    await asyncio.sleep(75)
    assert identities(cable)[1].paytable == "LUCKY2"
    assert identities(cable)[-1].signature != first.signature
    await cable.close()


@virtual_time
async def test_changed_options_are_read_at_once() -> None:
    cable = Cable()
    await asyncio.sleep(5)
    cable.do(lambda now: cable.machine.inject("other_game", now))
    await asyncio.sleep(3)
    assert [one.return_bp for one in identities(cable)] == [9000, 7850]
    cable.do(lambda now: cable.machine.inject("other_game", now))
    await asyncio.sleep(3)
    assert identities(cable)[2] == identities(cable)[0]
    await cable.close()


@virtual_time
async def test_another_machine_at_the_line_says_what_it_is() -> None:
    cable = Cable()
    await asyncio.sleep(5)
    cable.machine._serial = "SIM-0002"
    cable.restart()
    await asyncio.sleep(5)
    assert [one.serial for one in identities(cable)] == ["SIM-0001", "SIM-0002"]
    await cable.close()


@pytest.mark.parametrize(
    ("approved", "detail"),
    [
        ("serial=X", "serial SIM-0001, approved X"),
        ("paytable=LUCKY2", "paytable LUCKY, approved LUCKY2"),
        ("return_bp=9100", "return_bp 9000, approved 9100"),
        ("signature=beef", "signature -, approved beef"),
    ],
)
@virtual_time
async def test_a_machine_that_is_not_as_approved_is_closed_and_stays_closed(approved: str, detail: str) -> None:
    cable = Cable(MachineOptions(close_faulty=True, approved=(approved, "credit=1")))
    await asyncio.sleep(10)
    (fault,) = [one for one in cable.events if isinstance(one, DeviceFaulted)]
    assert (fault.code, fault.severity) == ("machine.not_approved", "error")
    assert fault.text.endswith(f"({detail})")
    assert identities(cable)[0].differs == (approved.partition("=")[0],)
    assert not cable.machine.enabled
    assert cable.driver is not None
    with pytest.raises(CommandRefused, match=r"machine\.not_approved"):
        await cable.driver.obey(EnableMachine(on=True))
    await cable.close()


@virtual_time
async def test_a_machine_that_is_set_back_may_be_enabled() -> None:
    cable = Cable(MachineOptions(close_faulty=True, approved=("paytable=LUCKY",), least_return=80))
    await asyncio.sleep(5)
    cable.do(lambda now: cable.machine.inject("other_game", now))
    await asyncio.sleep(6)
    assert cable.standing() == {"machine.not_approved", "machine.plan_return"}
    assert not cable.machine.enabled
    cable.do(lambda now: cable.machine._set_paytable("LUCKY", "9000", now))
    await asyncio.sleep(6)
    assert cable.standing() == set()
    assert not cable.machine.enabled, "a person enables it"
    assert cable.driver is not None
    await cable.driver.obey(EnableMachine(on=True))
    assert cable.machine.play(cable.now)
    await cable.close()


@pytest.mark.parametrize(
    ("fault", "why"),
    [("ram_clear", "cleared"), ("ram_error", "memory"), ("program", "program"), ("meter_back", "backwards")],
)
@virtual_time
async def test_a_machine_whose_meters_or_program_are_in_doubt_is_unreliable(fault: str, why: str) -> None:
    cable = Cable(MachineOptions(close_faulty=True))
    await asyncio.sleep(5)
    cable.do(lambda now: cable.machine.inject(fault, now))
    await asyncio.sleep(20)
    assert [one.why for one in cable.events if isinstance(one, MachineUnreliable)] == [why]
    assert cable.machine.enabled is (fault == "ram_clear"), "a cleared memory begins anew, and the rules ask people"
    await cable.close()


@virtual_time
async def test_the_meters_are_read_at_once_when_a_handpay_begins_and_ends() -> None:
    cable = Cable(MachineOptions(meters=600.0))
    await asyncio.sleep(10)

    def read() -> list[int]:
        return [one.meters["jackpot"] for one in cable.events if isinstance(one, MachineMeters)]

    before = len(read())
    cable.do(lambda now: cable.machine.handpay(now, 700))
    await asyncio.sleep(5)
    assert read()[before:][-1] == 700
    await cable.close()
