"""Handpays and progressive wins of a SAS machine: each told once, or said to be doubtful."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from helpers import virtual_time

from drivers.sas_machine_memory import Memory
from protocols.contract.commands import ShowAmount
from protocols.sas.frames import encode
from protocols.sas.messages import RealTime
from simulators.devices.sas_machine import Machine
from tests.drivers.test_sas_machine import Cable, said

# ---- prizes


@virtual_time
async def test_a_handpay_is_won_once_and_paid_once_however_often_it_is_repeated() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    await cable.act("handpay", 60)
    assert cable.jackpots() == [("won", 0, 123_456)]
    await cable.act("reset", 5)
    assert cable.jackpots() == [("won", 0, 123_456), ("paid", 0, 123_456)]
    await cable.close()


@virtual_time
async def test_two_handpays_of_the_same_amount_are_two() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    await cable.act("handpay", 0.0)
    await cable.act("handpay", 40)
    await cable.act("reset", 5)
    await cable.act("reset", 5)
    assert cable.jackpots() == [("won", 0, 123_456)] * 2 + [("paid", 0, 123_456)] * 2
    await cable.close()


@virtual_time
async def test_several_handpays_at_once_are_read_one_after_the_other() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    cable.machine.inject("handpays_pending", cable.now)
    await asyncio.sleep(10)  # sooner than a machine repeats what nobody read
    assert cable.jackpots() == [("won", 0, 123_456), ("won", 0, 50_000), ("won", 0, 123_456)]
    cable.machine.repair(cable.now)
    await asyncio.sleep(10)
    paid = [("paid", 0, 123_456), ("paid", 0, 50_000), ("paid", 0, 123_456)]
    assert cable.jackpots()[3:] == paid
    assert cable.machine.playable
    await cable.close()


@virtual_time
async def test_a_handpay_whose_answer_was_lost_is_asked_for_again() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    lost = 0

    def eat(data: bytes) -> bytes:
        nonlocal lost
        if data[:2] == b"\x01\x1b" and lost < 2:
            lost += 1
            return data[:9]
        return data

    cable.eat = eat
    await cable.act("handpay", 10)
    assert lost == 2
    assert cable.jackpots() == [("won", 0, 123_456)]
    await cable.close()


@virtual_time
async def test_a_handpay_that_cannot_be_read_is_doubtful_and_no_win() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    cable.eat = lambda data: data[:5] if data[:2] == b"\x01\x1b" else data
    await cable.act("handpay", 1.8)
    cable.eat = lambda data: data
    cable.machine._unread.clear()
    await asyncio.sleep(3)
    assert cable.jackpots() == []
    assert "sas.doubtful" in cable.told()
    await cable.close()


@pytest.mark.parametrize("by_hand", [False, True])
@virtual_time
async def test_a_progressive_is_won_once_and_paid_once(by_hand: bool) -> None:
    cable = Cable()
    await asyncio.sleep(4)
    assert cable.driver is not None
    await cable.driver.obey(ShowAmount(500_000, 2))
    await asyncio.sleep(1)
    for _ in range(2):
        cable.do(lambda now: cable.machine.hit_progressive(now, 2, by_hand=by_hand))
        await asyncio.sleep(12)
        if by_hand:
            await cable.act("reset", 5)
    assert cable.jackpots() == [("won", 2, 500_000), ("paid", 2, 500_000)] * 2
    await cable.close()


@pytest.mark.parametrize(
    ("faults", "seed"),
    [
        ([("silence", 3.3365)], 145),  # said and proved in two sessions, the answers in the other order
        ([("loop_break", 3.2709), ("bill_reversed", 3.8832)], 23),
        ([("deaf", 2.9487), ("loop_break", 4.1983)], 107),  # when it hears again it has forgotten
        ([("deaf", 3.4)], 62),
        ([("wrong_crc", 2.65)], 569),
    ],
)
@virtual_time
async def test_a_progressive_on_a_failing_line_is_told_once_or_said_to_be_doubtful(
    faults: list[tuple[str, float]], seed: int
) -> None:
    cable = Cable(seed=seed)
    await asyncio.sleep(4)
    assert cable.driver is not None
    await cable.driver.obey(ShowAmount(500_000, 1))
    began = cable.now + 1
    acts: list[tuple[float, Callable[[float], object]]] = [(3.0, cable.machine.hit_progressive)]
    for fault, after in faults:
        side = cable.line if fault in Machine.line else cable.machine
        acts.append((after, partial(side.inject, fault)))
    for after, act in sorted(acts, key=lambda one: one[0]):
        await asyncio.sleep(began + after - cable.now)
        cable.do(act)
    await asyncio.sleep(40)
    cable.do(cable.machine.repair)
    await asyncio.sleep(20)
    won = [one for one in cable.jackpots() if one[0] == "won"]
    assert won == [("won", 1, 500_000)] or (won == [] and "sas.doubtful" in cable.told())
    await cable.close()


@pytest.mark.parametrize("lost", [1, 2])
@virtual_time
async def test_an_answer_that_is_lost_while_a_session_begins_costs_no_exception(lost: int) -> None:
    """The machine answered and nobody heard it: the next poll must not let it forget."""
    cable = Cable()
    await asyncio.sleep(4)
    assert cable.driver is not None
    cable.restart()
    swallowed = 0

    def eat(data: bytes) -> bytes:
        nonlocal swallowed
        if not data or swallowed == lost:
            return data
        swallowed += 1
        return b""

    cable.eat = eat
    cable.do(cable.machine.hit_progressive)
    await asyncio.sleep(15)
    assert swallowed == lost
    cable.machine.levels[1] = 70_000
    cable.do(cable.machine.hit_progressive)
    await asyncio.sleep(15)
    amounts = (100_000, 70_000)
    assert cable.jackpots() == [(what, 1, amount) for amount in amounts for what in ("won", "paid")]
    assert "sas.doubtful" not in cable.told()
    await cable.close()


def hit_without(machine: Machine, exception: int, now: float) -> None:
    """A win of which the machine never says that one."""
    machine.hit_progressive(now)
    for waiting in (machine._priority, machine._queue):
        while exception in waiting:
            waiting.remove(exception)


@pytest.mark.parametrize("lasts", [2, 8])
@virtual_time
async def test_an_exception_that_nothing_proved_and_that_is_said_again_is_in_doubt(lasts: float) -> None:
    """The machine did not hear the poll that should prove it: a second payment would be another handpay's."""
    cable = Cable()
    await asyncio.sleep(4)
    for amount in (123_456, 777):
        cable.do(partial(cable.machine.handpay, amount=amount))
    await asyncio.sleep(20)
    began = len(cable.events)
    cable.do(cable.machine.reset)
    driver = cable.driver
    assert driver is not None
    await cable.until(lambda: bool(driver._memory.seen))
    cable.machine._until["loop_break"] = cable.now + lasts
    await asyncio.sleep(30)
    assert [one for one in cable.jackpots() if one[0] == "paid"] == [("paid", 0, 123_456)]
    assert lasts > 5 or said(cable.events[began:])[1] == {"52": 1}
    await cable.act("reset", 5)
    assert [one for one in cable.jackpots() if one[0] == "paid"] == [("paid", 0, 123_456), ("paid", 0, 777)]
    await cable.close()


@virtual_time
async def test_a_win_that_poll_87_lists_only_with_the_next_is_told_once() -> None:
    """Its own exception never arrived: poll 84 told it, and the list still holds it when another win is added."""
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(partial(hit_without, cable.machine, 0x56))
    await asyncio.sleep(15)
    cable.machine.levels[1] = 70_000
    cable.do(cable.machine.hit_progressive)
    await asyncio.sleep(15)
    amounts = (100_000, 70_000)
    assert cable.jackpots() == [(what, 1, amount) for amount in amounts for what in ("won", "paid")]
    assert "sas.doubtful" in cable.told()  # it may have been another win of the same amount
    assert cable.notes.memory is not None
    assert not msgspec.json.decode(cable.notes.memory, type=Memory).unlisted
    await cable.close()


@pytest.mark.parametrize("amounts", [(100_000, 70_000), (100_000, 70_000, 60_000), (100_000, 70_000, 100_000)])
@pytest.mark.parametrize("apart", [0.0, 1.0])
@virtual_time
async def test_wins_whose_payments_are_told_late_are_won_once(amounts: tuple[int, ...], apart: float) -> None:
    """Poll 84 names the latest win, whichever was paid: another one was told that never was.

    A payment that waits to be told when the next one happens is not told twice by the machine.
    """
    cable = Cable()
    await asyncio.sleep(4)
    for amount in amounts:
        cable.machine.levels[1] = amount
        cable.do(cable.machine.hit_progressive)
        await asyncio.sleep(apart)
    await asyncio.sleep(30)
    told = Counter(cable.jackpots())
    assert Counter({one: many for one, many in told.items() if one[0] == "won"}) == Counter(
        ("won", 1, amount) for amount in amounts
    )
    paid = Counter({one: many for one, many in told.items() if one[0] == "paid"})
    truly = Counter(("paid", 1, amount) for amount in amounts)
    assert paid <= truly
    assert paid == truly or not apart
    await cable.close()


@virtual_time
async def test_a_win_that_poll_84_names_again_and_again_is_not_another() -> None:
    """A payment said nothing of the win before it; what is said of this one then is that one's, and then in doubt."""
    cable = Cable()
    await asyncio.sleep(4)
    cable.do(partial(hit_without, cable.machine, 0x54))
    await asyncio.sleep(15)
    cable.machine.levels[1] = 70_000
    cable.do(cable.machine.hit_progressive)
    for _ in range(2):
        await asyncio.sleep(15)
        assert "sas.doubtful" not in cable.told()
        cable.do(lambda now: cable.machine._tell(0x54, now))
    await asyncio.sleep(15)
    assert cable.jackpots() == [("won", 1, 100_000), ("won", 1, 70_000), ("paid", 1, 70_000), ("paid", 1, 100_000)]
    assert "sas.doubtful" in cable.told()
    await cable.close()


@virtual_time
async def test_a_machine_without_poll_87_is_asked_with_85() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    answer = cable.machine._answer
    cable.machine._answer = lambda poll, now: None if poll.command == 0x87 else answer(poll, now)  # type: ignore[method-assign]
    cable.do(lambda now: cable.machine.hit_progressive(now, 1))
    await asyncio.sleep(15)
    assert cable.jackpots() == [("won", 1, 100_000), ("paid", 1, 100_000)]
    await cable.close()


@virtual_time
async def test_amounts_are_said_again_at_least_every_five_seconds_and_after_a_restart() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    assert cable.driver is not None
    assert await cable.driver.obey(ShowAmount(123_456, 1)) == {"group": 1, "level": 1, "amount": 123_456}
    assert await cable.driver.obey(ShowAmount(5000, 2)) == {"group": 1, "level": 2, "amount": 5000}
    await asyncio.sleep(60)
    assert cable.machine.levels == {1: 123_456, 2: 5000}
    assert "sas.progressive_silent" not in cable.told()
    cable.machine.levels.clear()
    cable.restart()
    await asyncio.sleep(5)
    assert cable.machine.levels == {1: 123_456, 2: 5000}
    await cable.close()


@virtual_time
async def test_a_handpay_that_the_machine_does_not_describe_is_doubtful_and_polling_goes_on() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    answer = cable.machine._answer
    cable.machine._answer = lambda poll, now: None if poll.command == 0x1B else answer(poll, now)  # type: ignore[method-assign]
    await cable.act("handpay", 8)
    assert "sas.doubtful" in cable.told()
    assert cable.jackpots() == []
    await cable.act("insert_bill", 10)
    assert cable.meters()["drop"] == cable.machine.meters["drop"]
    await cable.close()


@virtual_time
async def test_an_exception_in_place_of_an_answer_is_told_once_and_the_poll_asked_again() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    instead = [encode(RealTime(1, 0x7E, b"\x01\x02"))]
    cable.eat = lambda data: instead.pop() if data[:2] == b"\x01\x0f" and instead else data
    await cable.act("insert_bill", 10)
    assert sorted(cable.reported()) == ["48", "7E"]
    assert cable.meters()["drop"] == cable.machine.meters["drop"]
    await cable.close()
