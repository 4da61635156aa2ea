"""The bets of a SAS machine as contributions to jackpots: each exactly once, by its coin in meter."""

import asyncio
import re
from random import Random

import msgspec
import pytest
from helpers import at_length, virtual_time

from drivers.sas_machine_memory import MachineOptions, Memory
from protocols.contract.commands import ReadMeters, ShowAmount
from protocols.contract.events import DeviceFaulted, JackpotContributed, JackpotWon
from protocols.sas.tables import METERS
from protocols.sas.values import crc, to_bcd
from simulators.devices.sas_machine import Machine
from tests.drivers.test_sas_machine import Cable

FEEDS = MachineOptions(feeds=("red",), meters=1.0)


def contributed(cable: Cable, pool: str = "red") -> int:
    return sum(one.amount for one in cable.events if isinstance(one, JackpotContributed) and one.pool == pool)


def unknown(cable: Cable) -> list[tuple[int, int]]:
    """From where to where a meter went whose step was not counted."""
    said = [one.text for one in cable.events if isinstance(one, DeviceFaulted) and one.code == "sas.bets_unknown"]
    found = [re.search(r"from (\d+) to (\d+)", text) for text in said]
    return [(int(one[1]), int(one[2])) for one in found if one]


async def ready(cable: Cable) -> int:
    """The driver has counted from here on."""
    await cable.until(lambda: cable.notes.memory is not None and bool(memory(cable).counted), 60)
    return cable.machine.meters["coin_in"]


def memory(cable: Cable) -> Memory:
    assert cable.notes.memory is not None
    return msgspec.json.decode(cable.notes.memory, type=Memory, strict=False)


@virtual_time
async def test_each_game_is_a_contribution_to_each_pool_that_the_machine_feeds() -> None:
    cable = Cable(MachineOptions(feeds=("red", "super")))
    before = await ready(cable)
    assert contributed(cable) == 0  # what was played before it was read the first time is not ours
    for bet in (5, 1, 3):
        cable.do(lambda now, bet=bet: cable.machine.play(now, bet))  # type: ignore[misc]
        await asyncio.sleep(4)
    assert cable.machine.meters["coin_in"] - before == 9
    assert (contributed(cable), contributed(cable, "super")) == (9, 9)
    assert len([one for one in cable.events if isinstance(one, JackpotContributed)]) == 6
    await cable.close()


@virtual_time
async def test_a_credit_counts_with_its_denomination() -> None:
    cable = Cable(FEEDS)
    cable.machine.denomination = 0x03  # ten minor units
    await ready(cable)
    cable.do(lambda now: cable.machine.play(now, 7))
    await asyncio.sleep(5)
    assert contributed(cable) == 70
    await cable.close()


@virtual_time
async def test_bets_before_another_denomination_are_said_to_be_unknown() -> None:
    cable = Cable(FEEDS)
    before = await ready(cable)
    cable.eat = lambda data: b"" if data[1:2] in {bytes((poll,)) for poll in METERS} else data
    cable.do(lambda now: cable.machine.play(now, 7))
    cable.machine.denomination = 0x03
    cable.do(lambda now: cable.machine._tell(0x3C, now))
    await asyncio.sleep(8)
    cable.eat = lambda data: data
    await asyncio.sleep(20)
    assert contributed(cable) == 0
    assert unknown(cable) == [(before, before + 7)]
    cable.do(lambda now: cable.machine.play(now, 2))
    await asyncio.sleep(5)
    assert contributed(cable) == 20
    await cable.close()


@virtual_time
async def test_games_that_are_not_named_contribute_nothing() -> None:
    cable = Cable(MachineOptions(feeds=("red",), games=(2,), meters=1.0))
    await ready(cable)
    cable.do(lambda now: cable.machine.play(now, 5))
    cable.do(lambda now: cable.machine.play(now, 3, game=2))
    await asyncio.sleep(8)
    assert contributed(cable) == 3
    await cable.close()


@virtual_time
async def test_a_machine_that_does_not_count_its_games_is_a_fault_where_only_some_of_them_contribute() -> None:
    cable = Cable(MachineOptions(feeds=("red",), games=(2,), meters=1.0))
    cable.eat = lambda data: b"" if data[1:2] == b"\x52" else data
    await asyncio.sleep(20)
    assert "sas.bets_unknown" in cable.standing()
    await cable.close()


@virtual_time
async def test_a_meter_that_wraps_around_loses_no_bet() -> None:
    cable = Cable(FEEDS)
    cable.machine.meters["coin_in"] = 10**8 - 7
    await ready(cable)
    for _ in range(4):
        cable.do(lambda now: cable.machine.play(now, 5))
        await asyncio.sleep(3)
    assert contributed(cable) == 20
    assert not unknown(cable)
    await cable.close()


@pytest.mark.parametrize("cleared", [True, False])
@virtual_time
async def test_a_cleared_memory_and_a_meter_that_runs_backwards_are_no_contribution(cleared: bool) -> None:
    cable = Cable(FEEDS)
    before = await ready(cable)
    cable.machine.inject("meter_back", cable.now)
    if cleared:
        cable.do(lambda now: cable.machine._tell(0x3A, now))
    await asyncio.sleep(10)
    assert contributed(cable) == 0
    if not cleared:
        assert "sas.meter_back" in cable.standing()
    cable.do(cable.machine.repair)
    await asyncio.sleep(20)
    assert "sas.bets_unknown" in cable.standing()
    assert unknown(cable)[0][0] == before
    played = contributed(cable)
    cable.do(lambda now: cable.machine.play(now, 4))
    await asyncio.sleep(5)
    assert contributed(cable) == played + 4  # and from there on it counts again
    assert cable.driver is not None
    await cable.driver.obey(ReadMeters())
    assert "sas.bets_unknown" not in cable.standing()
    await cable.close()


@virtual_time
async def test_a_step_that_no_play_can_make_is_no_contribution() -> None:
    cable = Cable(MachineOptions(feeds=("red",), jump=1000, meters=1.0))
    before = await ready(cable)
    cable.machine.meters["coin_in"] += 1001
    await asyncio.sleep(5)
    assert contributed(cable) == 0
    assert unknown(cable) == [(before, before + 1001)]
    await cable.close()


@virtual_time
async def test_another_machine_begins_at_its_own_meter() -> None:
    cable = Cable(FEEDS)
    before = await ready(cable)
    cable.machine = Machine(Random(99), serial="SIM-0002")
    cable.restart()
    await asyncio.sleep(10)
    assert contributed(cable) == 0
    assert any(str(before) in one.text for one in cable.events if isinstance(one, DeviceFaulted))
    cable.do(lambda now: cable.machine.play(now, 4))
    await asyncio.sleep(5)
    assert contributed(cable) == 4
    await cable.close()


@virtual_time
async def test_a_machine_that_waits_for_a_handpay_contributes_nothing_until_it_is_played_again() -> None:
    cable = Cable(FEEDS)
    await ready(cable)
    await cable.act("handpay")
    cable.do(lambda now: cable.machine.play(now, 5))
    await asyncio.sleep(5)
    assert contributed(cable) == 0
    await cable.act("reset")
    cable.do(lambda now: cable.machine.play(now, 5))
    await asyncio.sleep(5)
    assert contributed(cable) == 5
    await cable.close()


@pytest.mark.parametrize("seed", range(at_length(6, 150)))
@virtual_time
async def test_contributions_are_what_was_played_whatever_is_lost(seed: int) -> None:
    """Games, cut sessions, power failures, lost and halved answers, a meter that wraps: the sum is exact."""
    rng = Random(seed)
    cable = Cable(FEEDS, seed)
    if rng.random() < 0.5:
        cable.machine.meters["coin_in"] = 10**8 - rng.randrange(1, 60)
    before = await ready(cable)
    for _ in range(40):
        match rng.randrange(12):
            case 0:
                if cable._link is not None:
                    cable.restart()
            case 1:
                cable.machine.inject("power_loss", cable.now)
            case 2:
                cable.line.inject(rng.choice(("silence", "half_frame", "repeated", "unplugged")), cable.now)
            case 3:
                await cable.act("handpay", rng.uniform(0, 5))
                await cable.act("reset", rng.uniform(0, 5))
            case 4:
                share = rng.choice((0.0, 0.1, 0.5))
                cable.eat = lambda data, share=share: b"" if rng.random() < share else data  # type: ignore[misc]
            case _:
                cable.do(lambda now: cable.machine.play(now, rng.randint(1, 5)))
        await asyncio.sleep(rng.choice((0.1, 0.5, 2, 10)))
    cable.eat = lambda data: data
    await asyncio.sleep(120)
    assert cable.machine.meters["coin_in"] > before
    assert contributed(cable) == cable.machine.meters["coin_in"] - before
    assert not unknown(cable)
    await cable.close()


@pytest.mark.parametrize("seed", range(at_length(4, 100)))
@virtual_time
async def test_noise_makes_no_contribution(seed: int) -> None:
    """Wrong bits in answers: what is not counted is told, and what is counted was played."""
    rng = Random(seed)
    cable = Cable(FEEDS, seed)
    before = await ready(cable)

    def flip(data: bytes) -> bytes:
        if data and rng.random() < 0.1:
            at = rng.randrange(len(data))
            data = data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
        return data

    cable.eat = flip
    for _ in range(60):
        cable.do(lambda now: cable.machine.play(now, rng.randint(1, 5)))
        await asyncio.sleep(rng.choice((0.3, 1, 4)))
    cable.eat = lambda data: data
    await asyncio.sleep(60)
    left = sum((after - first) % 10**8 for first, after in unknown(cable))
    assert contributed(cable) + left == cable.machine.meters["coin_in"] - before
    await cable.close()


@virtual_time
async def test_one_false_reading_with_a_good_checksum_is_no_contribution() -> None:
    """A damaged answer of 65536 has one. The reading after it is lower, and people decide what was bet meanwhile."""
    cable = Cable(FEEDS)
    before = await ready(cable)
    lies = 1

    def lie(data: bytes) -> bytes:
        nonlocal lies
        if data[:2] == b"\x01\x0f" and lies:
            lies -= 1
            told = data[:6] + to_bcd(before + 777, 4) + data[10:-2]
            return told + crc(told)
        return data

    cable.eat = lie
    await asyncio.sleep(8)
    assert not lies
    assert contributed(cable) == 0
    for _ in range(200):  # until the meter has passed the false reading
        cable.do(lambda now: cable.machine.play(now, 5))
        await asyncio.sleep(2)
    await asyncio.sleep(10)
    assert "sas.meter_back" not in cable.standing()
    left = sum(after - first for first, after in unknown(cable))
    assert left > 0
    assert contributed(cable) + left == cable.machine.meters["coin_in"] - before == 1000
    await cable.close()


# ---- the levels that it shows


def wins(cable: Cable) -> list[JackpotWon]:
    return [one for one in cable.events if isinstance(one, JackpotWon)]


@virtual_time
async def test_an_amount_is_on_the_machine_within_a_second_and_a_win_names_it_and_its_pool() -> None:
    cable = Cable(MachineOptions(levels=("super", "red"), stale=60.0))
    await asyncio.sleep(4)
    for amount in (500_000, 500_010):
        assert cable.driver is not None
        await cable.driver.obey(ShowAmount(amount, 2))
        sent = cable.now
        await cable.until(lambda amount=amount: cable.machine.levels.get(2) == amount, 1.0)  # type: ignore[misc]
        assert cable.now - sent <= 1.0
    cable.do(lambda now: cable.machine.hit_progressive(now, 2))
    await asyncio.sleep(4)
    assert wins(cable) == [JackpotWon("red", 2, 1, amount=500_010, shown=500_010)]
    assert "sas.win_differs" not in cable.told()
    assert memory(cable).levels == {}  # nobody else is shown an amount that was won
    await cable.close()


@virtual_time
async def test_a_win_of_an_amount_of_a_moment_ago_is_right_and_another_one_is_a_fault() -> None:
    cable = Cable()
    await asyncio.sleep(4)
    assert cable.driver is not None
    await cable.driver.obey(ShowAmount(700, 1))
    await asyncio.sleep(1)
    cable.do(lambda now: cable.machine.hit_progressive(now, 1))
    await cable.driver.obey(ShowAmount(701, 1))
    await asyncio.sleep(4)
    assert wins(cable) == [JackpotWon("machine", 1, 1, amount=700, shown=700)]
    await cable.driver.obey(ShowAmount(300, 1))
    await asyncio.sleep(1)
    cable.machine.levels[1] = 999_999
    cable.do(lambda now: cable.machine.hit_progressive(now, 1))
    await asyncio.sleep(4)
    assert wins(cable)[1:] == [JackpotWon("machine", 1, 1, amount=999_999, shown=300)]
    assert "sas.win_differs" in cable.standing()
    assert cable.driver is not None
    await cable.driver.obey(ShowAmount(10, 1))
    assert "sas.win_differs" not in cable.standing()
    await cable.close()


@virtual_time
async def test_an_amount_that_is_not_renewed_is_no_longer_sent() -> None:
    """The pool may stand elsewhere by now: the machine stops its jackpot by itself."""
    cable = Cable(MachineOptions(stale=20.0))
    await asyncio.sleep(4)
    for _ in range(3):
        assert cable.driver is not None
        await cable.driver.obey(ShowAmount(700, 1))
        await asyncio.sleep(15)
    assert "sas.amount_stale" not in cable.told()
    await asyncio.sleep(20)
    assert cable.standing() == {"sas.amount_stale", "sas.progressive_silent"}
    assert cable.driver is not None
    await cable.driver.obey(ShowAmount(710, 1))
    await asyncio.sleep(20)
    assert cable.machine.levels == {1: 710}
    assert cable.standing() <= {"sas.amount_stale"}
    await cable.close()


# ---- what it returns


@virtual_time
async def test_a_plan_that_returns_too_little_is_a_fault() -> None:
    cable = Cable(MachineOptions(least_return=91))  # the simulated one returns 90.00
    await asyncio.sleep(4)
    (said,) = [one.text for one in cable.events if isinstance(one, DeviceFaulted)]
    assert said.endswith("(90.00% with LUCKY)")
    await cable.close()
    cable = Cable(MachineOptions(least_return=90))
    await asyncio.sleep(4)
    assert cable.standing() == set()
    await cable.close()


@virtual_time
async def test_a_meter_that_wraps_around_with_a_jackpot_did_not_run_backwards() -> None:
    cable = Cable(FEEDS)
    cable.machine.meters["coin_out"] = 10**8 - 500_000
    await ready(cable)
    cable.machine.levels[1] = 5_000_011
    cable.do(lambda now: cable.machine.hit_progressive(now))
    await asyncio.sleep(20)
    assert cable.machine.meters["coin_out"] > 10**8
    assert "sas.meter_back" not in cable.standing()
    await cable.close()
