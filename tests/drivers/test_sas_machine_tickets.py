"""The SAS machine: its tickets, bills and validations, what it needs a host for, and answers that nobody knows."""

import asyncio
from random import Random

import msgspec
import pytest
from helpers import virtual_time

from drivers.driver import CommandFailed
from drivers.sas_machine_memory import MachineOptions
from protocols.contract.commands import Ask
from protocols.contract.events import DeviceFaulted, DeviceOnline, DeviceRecovered
from protocols.sas.frames import encode
from protocols.sas.messages import (
    Ack,
    GeneralPoll,
    LongPoll,
    Nack,
    Unknown,
)
from protocols.sas.values import crc
from simulators.devices.sas_machine import QUEUE, Machine
from tests.drivers.test_sas_machine import Cable, Cuts, Silent
from tests.drivers.test_sas_machine_doubt import instead, memory


def polled(machine: Machine, poll: LongPoll, now: float = 0.0) -> bytes:
    """The bytes of its answer."""
    machine.hear(b"\x80", now)
    machine.hear(encode(poll), now)
    return machine.wake(now + 1.0)


def faults(cable: Cable, code: str) -> list[str]:
    return [event.text for event in cable.events if isinstance(event, DeviceFaulted) and event.code == code]


# ---- what is read one by one


@virtual_time
async def test_bills_tickets_and_validations_are_told_as_meters_within_two_minutes() -> None:
    cable = Cable()
    machine = cable.machine
    machine.meters |= {"tickets_in": 4321, "restricted_out": 77, "tickets_out_count": 3, "hand_paid": 5}
    for value in (1, 2, 10, 20, 50):
        machine.insert_bill(0.0, value)
    await asyncio.sleep(110)
    told = cable.meters()
    assert {name: told[name] for name in ("bills_1", "bills_2", "bills_5", "bills_10", "bills_20", "bills_50")} == {
        "bills_1": 1,
        "bills_2": 1,
        "bills_5": 0,
        "bills_10": 1,
        "bills_20": 1,
        "bills_50": 1,
    }
    assert told["bills_100"] == 0
    assert (told["tickets_in_cashable"], told["validated_cashable_in"]) == (4321, 4321)
    assert (told["tickets_out_restricted"], told["validated_restricted_out"]) == (77, 77)
    assert (told["tickets_out_cashable_count"], told["validated_cashable_out_count"]) == (3, 3)
    assert (told["hand_paid_cancelled_credits"], told["bills_in_credits"]) == (5, 8300)
    assert told["validated_jackpot"] == told["validated_nonrestricted_in_count"] == 0
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_counts_and_cents_are_not_multiplied_by_the_denomination() -> None:
    cable = Cable()
    machine = cable.machine
    machine.denomination = 0x06
    machine.meters |= {"tickets_out": 500, "tickets_out_count": 2, "bills_5": 9, "bills_in_credits": 45}
    await asyncio.sleep(110)
    told = cable.meters()
    assert told["coin_in"] == machine.meters["coin_in"] * 100
    assert told["bills_in_credits"] == 4500
    assert (told["tickets_out_cashable"], told["tickets_out_cashable_count"], told["bills_5"]) == (500, 2, 9)
    await cable.close()


@virtual_time
async def test_a_bill_is_counted_at_once() -> None:
    cable = Cable(MachineOptions(records=3600))
    await asyncio.sleep(4)
    await cable.act("insert_bill", 3)
    assert cable.meters()["bills_5"] == 1
    await cable.close()


@pytest.mark.parametrize(("silent", "instead"), [({0x6F}, 0xAF), ({0x6F, 0xAF}, 0x2F)])
@virtual_time
async def test_a_machine_without_extended_meters_is_asked_by_their_twin_or_for_selected_ones(
    silent: set[int], instead: int
) -> None:
    cable = Cable()
    machine = cable.machine = Silent(Random(1))
    machine.silent = frozenset(silent)
    machine.meters["tickets_in"] = 4321
    await asyncio.sleep(200)
    assert cable.meters()["tickets_in_cashable"] == 4321
    assert machine.answered & {0x6F, 0xAF, 0x2F} == {instead}
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_a_ticket_meter_that_runs_backwards_is_a_fault() -> None:
    cable = Cable()
    cable.machine.meters["tickets_out"] = 5000
    await asyncio.sleep(110)
    cable.machine.meters["tickets_out"] = 4000
    await asyncio.sleep(110)
    assert cable.standing() == {"sas.meter_back"}
    assert "tickets_out_cashable from 5000 to 4000" in faults(cable, "sas.meter_back")[0]
    cable.machine.meters["tickets_out"] = 5001
    await asyncio.sleep(110)
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_what_is_enabled_is_told_once_and_again_when_it_changes() -> None:
    cable = Cable()
    await asyncio.sleep(100)
    cable.restart()
    await asyncio.sleep(100)
    assert cable.read("LPA0") == ["validation secure, redemption off, flags 500803000000"]
    days = "tickets expire after 9999 days, restricted ones after 30"
    assert cable.read("LP7B") == [f"asset 77; enabled: the printer pays, secure numbers; {days}"]
    assert cable.read("LP4C") == ["it has a validation id"]
    assert len(cable.read("LP7E")) == 2  # once a session
    assert cable.read("LP7E")[0].startswith("its clock: 2026-11-22T20:00:")
    cable.machine.redemption = True
    cable.do(lambda now: cable.machine._tell(0x3C, now))
    await asyncio.sleep(6)
    assert cable.read("LPA0")[1:] == ["validation secure, redemption on, flags d00803000000"]
    assert cable.read("LP7B")[1:] == [f"asset 77; enabled: the printer pays, redemption, secure numbers; {days}"]
    assert cable.driver is not None
    assert (await cable.driver.obey(Ask("validation")))["cashable_days"] == 9999
    assert (await cable.driver.obey(Ask("clock")))["at"].startswith("2026-11-22T20:03:")
    await cable.close()


@virtual_time
async def test_nothing_is_set_by_what_only_asks() -> None:
    """No validation id, no mask, no expiration: polls 4C and 7B would change them."""
    cable = Cable()
    before = cable.machine._validation_id, cable.machine._status
    asked: list[LongPoll] = []

    def spy(poll: LongPoll) -> bool:
        asked.append(poll)
        return True

    instead(cable, spy)
    await asyncio.sleep(100)
    assert {poll.data for poll in asked if poll.command == 0x4C} == {bytes(6)}
    assert {poll.data for poll in asked if poll.command == 0x7B} == {bytes(8)}
    assert (cable.machine._validation_id, cable.machine._status) == before
    await cable.close()


# ---- tickets


@virtual_time
async def test_each_ticket_is_told_once_and_only_the_end_of_its_number() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    amounts = []
    for _ in range(3):
        cable.do(cable.machine.insert_bill)
        amounts.append(cable.machine.meters["credits"])
        await cable.act("cash_out", 6)
    read = cable.read("LP4D")
    assert [text.split(",")[0] for text in read] == [f"cashable ticket {n:04}: {a}" for n, a in enumerate(amounts, 1)]
    assert not cable.machine._records_unread
    numbers = [record[9:17].hex() for record in cable.machine._records.values()]
    wires = b"".join(sighting.wire for sighting in cable.notes.sightings).hex()
    kept = str(cable.events) + str(cable.notes.memory) + wires
    for number, text in zip(numbers, read, strict=True):
        assert f"number ending in {number[-4:]}" in text
        assert number not in kept
        assert number[:8] not in kept
    assert "1234" not in str(cable.read("LP4C"))  # its validation id
    assert cable.reported().count("3D") == 3
    await cable.close()


@virtual_time
async def test_each_ticket_is_told_once_wherever_two_sessions_are_cut() -> None:
    for first in range(1, 90, 4):
        cable = Cuts()
        cable.late = bool(first % 8 == 1)
        await asyncio.sleep(2)
        cable.do(cable.machine.cash_out)
        cable.cut(first, 40 + first % 31)
        await asyncio.sleep(9)
        assert [text.split(",")[0] for text in cable.read("LP4D")] == ["cashable ticket 0001: 500"], first
        assert not cable.machine._records_unread, first
        await cable.close()


@virtual_time
async def test_tickets_are_told_once_on_a_bad_line() -> None:
    rng = Random(7)
    cable = Cable()
    await asyncio.sleep(4)
    cable.eat = lambda data: data[:-1] + b"\x55" if len(data) > 8 and not rng.randrange(3) else data
    for _ in range(20):
        cable.do(cable.machine.insert_bill)
        await cable.act("cash_out", 8)
    cable.eat = lambda data: data
    await asyncio.sleep(20)
    read = cable.read("LP4D")
    assert len(read) == len(set(read)) == len([one for one in cable.machine.truth if one.startswith("ticket")])
    await cable.close()


@virtual_time
async def test_the_last_ticket_of_a_machine_with_standard_validation_is_read() -> None:
    cable = Cable()
    cable.machine.validation = "standard"
    await asyncio.sleep(4)
    await cable.act("cash_out", 6)
    number = cable.machine._last_ticket[:4].hex()
    assert cable.read("LP3D") == [f"ticket: 500, number ending in {number[-4:]}"]
    assert not memory(cable).tickets
    await cable.close()


@pytest.mark.parametrize("refusal", [Nack(1), None])
@virtual_time
async def test_a_machine_that_keeps_no_records_and_no_last_ticket_is_not_asked_for_ever(refusal: Nack | None) -> None:
    cable = Cable()
    asked = 0

    def answers(poll: LongPoll) -> Nack | bool | None:
        nonlocal asked
        asked += poll.command in {0x3D, 0x4D}
        return refusal if poll.command in {0x3D, 0x4D} else True

    instead(cable, answers)
    await asyncio.sleep(4)
    await cable.act("cash_out", 60)
    assert sorted(cable.reported()) == ["3D", "66"]
    assert not memory(cable).tickets
    assert asked <= 6
    assert cable.standing() == set()
    await cable.close()


# ---- what it needs a host for


@virtual_time
async def test_a_machine_that_asks_for_the_number_of_a_ticket_is_a_fault_until_it_makes_them_itself() -> None:
    """It is acknowledged and nothing comes: the player is paid by hand, and somebody must know why."""
    cable = Cable()
    cable.machine.validation = "system"
    await asyncio.sleep(4)
    await cable.act("cash_out", 20)
    [text] = faults(cable, "sas.host_validation")
    assert "prints none (system validation requested)" in text
    assert [level for _, level, _ in cable.jackpots()] == []
    assert "51" in cable.reported()  # the cancelled credits
    cable.restart()
    await asyncio.sleep(30)
    assert cable.standing() == {"sas.host_validation"}
    cable.machine.validation = "secure"
    await asyncio.sleep(110)
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_a_machine_without_a_validation_id_is_a_fault_until_it_has_one() -> None:
    cable = Cable()
    cable.machine._validation_id = (0, 0)
    await asyncio.sleep(4)
    cable.do(lambda now: cable.machine._tell(0x3F, now))
    await asyncio.sleep(60)
    assert "validation id missing" in faults(cable, "sas.host_validation")[0]
    assert cable.standing() == {"sas.host_validation"}
    assert cable.read("LP4C") == ["it has no validation id"]
    assert not cable.offline, "the answer to 4C is what was asked, and no echo"
    cable.machine._validation_id = (7, 0)
    await asyncio.sleep(90)
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_a_ticket_that_waits_for_the_host_is_a_fault_until_redemption_is_off() -> None:
    cable = Cable()
    cable.machine.redemption = True
    await asyncio.sleep(4)
    await cable.act("insert_ticket", 20)
    assert len(faults(cable, "sas.host_redemption")) == 1
    assert cable.standing() == {"sas.host_redemption"}
    cable.machine.redemption = False
    await asyncio.sleep(110)
    assert DeviceRecovered("sas.host_redemption") in cable.events
    await cable.close()


# ---- real-time mode


@virtual_time
async def test_a_machine_in_real_time_mode_is_taken_out_of_it_and_nothing_is_lost() -> None:
    cable = Cable()
    machine = cable.machine
    machine.real_time = True
    machine._queue.extend([0x82, 0x83, 0x71])
    machine._tell(0x66, 0.0)
    await asyncio.sleep(15)
    assert not machine.real_time
    assert cable.reported() == ["82", "83", "71", "66"]
    cable.restart()
    await asyncio.sleep(5)
    assert [event.continuous for event in cable.events if isinstance(event, DeviceOnline)] == [False, True]
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_a_silent_machine_in_real_time_mode_is_taken_out_of_it() -> None:
    """Nothing happens, so it answers no general poll."""
    cable = Cable()
    cable.machine.real_time = True
    await asyncio.sleep(15)
    assert not cable.machine.real_time
    assert cable.offline == []
    await cable.act("insert_bill", 5)
    assert cable.reported() == ["48"]
    await cable.close()


# ---- answers that nobody knows


@pytest.mark.parametrize("command", [0x0F, 0x1A, 0x1C, 0x1F, 0x54, 0x6F, 0x7B, 0x33, 0xA0])
@virtual_time
async def test_an_answer_with_a_good_checksum_is_never_a_damaged_line(command: int) -> None:
    cable = Cable()
    strange = Unknown(1, command, b"\xfa\xce\xfa\xce")
    instead(cable, lambda poll: strange if poll.command == command else True)
    await asyncio.sleep(150)
    await cable.act("insert_bill", 8)
    assert cable.offline == []
    assert cable.standing() == set()
    assert "sas.damaged" not in cable.told()
    assert cable.reported() == ["48"]
    asked_at_start = {0x1F, 0x54}
    if command not in asked_at_start:
        [text] = cable.read(f"LP{command:02X}")
        about = f"an answer to poll {command:02X} that this version cannot decode"
        assert text == f"{about} (4 bytes: fa ce fa ce)"
    await cable.close()


@virtual_time
async def test_a_handpay_that_is_not_understood_is_doubtful_and_no_damage() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    instead(cable, lambda poll: Unknown(1, 0x1B, b"\xff" * 20) if poll.command == 0x1B else True)
    await cable.act("handpay", 40)
    assert "the machine does not report which" in faults(cable, "sas.doubtful")[0]
    assert "sas.damaged" not in cable.told()
    assert len(cable.read("LP1B")) == 1
    await cable.close()


@virtual_time
async def test_a_late_answer_to_another_poll_is_no_damage_and_no_figure() -> None:
    cable = Cable()
    await asyncio.sleep(8)
    coin_in = cable.meters()["coin_in"]
    late = Unknown(1, 0x11, b"\x99\x99\x99\x99")
    instead(cable, lambda poll: late if poll.command == 0x0F else True)
    await asyncio.sleep(60)
    assert "sas.damaged" not in cable.told()
    assert cable.meters()["coin_in"] == coin_in
    await cable.close()


@virtual_time
async def test_a_meter_beyond_what_an_event_can_carry_is_said_and_not_told() -> None:
    cable = Cable()
    data = b"\x0f\0\0\x0d\0\x09" + b"\x99" * 9
    instead(cable, lambda poll: Unknown(1, 0x6F, b"\x0e" + data[1:]) if poll.command == 0x6F else True)
    await asyncio.sleep(60)
    assert cable.read("LP6F") == ["an answer to poll 6F that this version cannot decode"]
    assert "tickets_in_cashable" not in cable.meters()
    await cable.close()


@virtual_time
async def test_a_figure_that_is_not_understood_fails_the_command() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    instead(cable, lambda poll: Unknown(1, 0x48, b"\xff" * 6) if poll.command == 0x48 else True)
    assert cable.driver is not None
    with pytest.raises(CommandFailed, match="the answer to poll 48 cannot be decoded: ff ff"):
        await cable.driver.obey(Ask("last-bill"))
    await cable.close()


# ---- handpays


@pytest.mark.parametrize(("level", "told"), [(0, 0), (0x40, 0), (1, 1), (32, 32)])
@virtual_time
async def test_levels_of_a_handpay(level: int, told: int) -> None:
    """40 hex is a win that is not progressive."""
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(lambda now: cable.machine._pay_by_hand(now, 5000, level))
    await asyncio.sleep(5)
    assert cable.jackpots() == [("won", told, 5000)]
    await cable.act("reset", 5)
    assert cable.jackpots()[1:] == [("paid", told, 5000)]
    await cable.close()


# ---- the simulated machine, by its facts


@pytest.mark.parametrize(
    ("poll", "length"),
    [
        (LongPoll(1, 0xA0, b"\0\1"), 12),
        (LongPoll(1, 0x1B), 24),
        (LongPoll(1, 0x1F), 24),
        (LongPoll(1, 0x4D, b"\0"), 35),
        (LongPoll(1, 0x50, b"\x80"), 14),
        (LongPoll(1, 0x4C, bytes(6)), 10),
        (LongPoll(1, 0x7B, bytes(8)), 15),
        (LongPoll(1, 0x7E), 11),
        (LongPoll(1, 0x37), 8),
        (LongPoll(1, 0x52, b"\0\1"), 22),
    ],
)
def test_the_simulator_answers_as_long_as_the_facts_say(poll: LongPoll, length: int) -> None:
    answer = polled(Machine(Random(1)), poll)
    assert len(answer) == length
    assert answer[:2] == bytes((1, poll.command))
    assert crc(answer[:-2]) == answer[-2:]


def test_the_simulator_fills_its_texts_with_nul_and_sends_options_low_byte_first() -> None:
    assert b"SIM-0001\0\0\0\0" in polled(Machine(Random(1)), LongPoll(1, 0x54))
    answer = polled(Machine(Random(1)), LongPoll(1, 0x1F))
    assert answer[2:7] == b"SIML\0"
    assert answer[10:12] == b"\x01\x00"


@pytest.mark.parametrize(
    "poll", [LongPoll(1, 0x4D, b"\x20"), LongPoll(1, 0x50, b"\x1f"), LongPoll(1, 0x7B, b"\0" * 4 + b"\x9a" + b"\0" * 3)]
)
def test_the_simulator_refuses_what_cannot_be(poll: LongPoll) -> None:
    assert polled(Machine(Random(1)), poll) == b"\x81"


def test_the_simulator_loses_the_oldest_of_its_queue() -> None:
    machine = Machine(Random(1))
    for code in range(0x11, 0x11 + QUEUE + 2):
        machine._tell(code, 0.0)
    assert list(machine._queue) == list(range(0x13, 0x11 + QUEUE + 2))
    assert list(machine._priority) == [0x70]


def test_the_simulator_in_real_time_mode_says_what_happened_in_place_of_an_answer() -> None:
    machine = Machine(Random(1))
    assert polled(machine, LongPoll(1, 0x0E, b"\1")) == encode(Ack(1))
    machine.insert_bill(5.0)
    answer = polled(machine, LongPoll(1, 0x0F), 5.0)
    assert answer[:5] == bytes((1, 0xFF, 0x4F, 0x37, 0x02))
    machine.hear(encode(GeneralPoll(1)), 7.0)
    assert machine.wake(8.0) == b"", "nothing more happened"
    assert polled(machine, LongPoll(1, 0x0E, b"\0"), 9.0) == encode(Ack(1))
    machine.hear(encode(GeneralPoll(1)), 10.0)
    assert machine.wake(11.0) == b"\0"


def test_records_survive_in_the_memory_of_an_earlier_version() -> None:
    from drivers.sas_machine import SasMachine
    from drivers.sas_machine_memory import Memory

    left = msgspec.json.encode({"serial": "A", "seen": []})
    assert SasMachine(MachineOptions(), left)._memory == Memory("A")
