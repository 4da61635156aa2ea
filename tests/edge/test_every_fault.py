"""Every fault of every device, end to end: simulator, real port, driver, edge, broker, rules, alert, round.

The lists are those of the simulators; `docs/devices/` is made from the same. What a pair must show stands in its
`Ailment`: what is told, what becomes of the round, and that it ends.
"""

import asyncio
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from simulators import SIMULATORS
from simulators.clock import JumpingLoop
from simulators.devices.compare import Account
from simulators.devices.device import Ailment, ailments
from simulators.lab.broker import find_mosquitto
from simulators.lab.pit import KINDS, Pit
from simulators.lab.virtual_time import House, all_out, jumping, run_jumping

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_mosquitto() is None, reason="no mosquitto on this computer"),
]

LAW = Path(__file__).parents[1] / "law"
# "art. 4", "art. 3(3)", "art. 2(2)-(3)".
ARTICLE = re.compile(r"art\. (\S*?(?:\((?=\d+\)(?:-|$))|$))(?:(\d+)\))?(?:-\((\d+)\))?$")
ROUNDS = 3
# A shoe is well again after twenty good cards, a wheel whose table was closed under the ball after the next spin.
# What a Saturn says of a direction, and a camera of a second answer, stands until the round after the next is over.
MORE = {
    "bee_tek_shoe": 8,
    "hid_shoe": 8,
    "cammegh_ss2": 5,
    "fdl_peek": 8,
    "billy_iii": 5,
    "tcs_saturn": 4,
    "idp_dice": 4,
}
BEFORE = 1
SEED = 7
# The bank looks at its hole card under an ace or a ten only: here in the first three rounds, and in each after them.
SEEDS = {"fdl_peek": 11}
BEFORES = {"fdl_peek": 3, "billy_iii": 2}
# A counter that begins again is lower than it was only after some events.
COUNTED = "counters_reset"
# The moment at which it hurts, where that is not any moment: the name of the device's state.
MOMENTS: dict[str, Callable[[Any], bool]] = {
    "cammegh_ss2": lambda wheel: wheel.state.name == "BALL_IN_RIM",
    "tcs_saturn": lambda wheel: wheel.state.name == "BALL_IN_RIM",
    "billy_iii": lambda shaker: shaker.state != "S0",
    "idp_dice": lambda reader: reader.due() < float("inf"),
}
# What may wait for its repair until the table is closed: it is switched off and on then.
AFTERWARDS = {"malformed_frame", "strange_event"}
# Faults that begin before the round in which they show.
EARLY = {"billy_iii-mute", "cammegh_ss2-launch_failed"}
# The table at which a device is tried: the first that has it.
PLACES: dict[str, tuple[str, str]] = {}
for _kind, _table in KINDS.items():
    for _place, _device in _table(1).devices.items():
        PLACES.setdefault(_device.name, (_kind, _place))

PAIRS = [(name, fault) for name in PLACES for fault in ailments(SIMULATORS[name])]


class Seen(Struct, frozen=True):
    """What came of one fault."""

    told: tuple[str, ...]
    account: Account
    alerts: dict[str, str]
    offline: tuple[str, ...]
    ruled: bool
    voids: tuple[dict[str, Any], ...]


async def _try(kind: str, place: str, fault: str, ailment: Ailment, directory: Path, busy: list[Any]) -> Seen:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    tried = KINDS[kind](1).devices[place].name
    pit = Pit(directory, SEEDS.get(tried, SEED), kinds=(kind,), usb=True)
    [(name, table)] = pit.tables.items()
    late = fault == COUNTED
    rounds = MORE.get(tried, ROUNDS) + late
    async with jumping(pit, busy) as house:
        dealing = asyncio.create_task(pit.deal(house.pace, rounds, house.picture, loop.utc))
        while len(table.truth) < BEFORES.get(tried, BEFORE) + late:
            await house.pace.sleep(0.5)
        await house.pace.sleep(3.0)
        device = table.devices[place]
        if device.name in MOMENTS and f"{device.name}-{fault}" not in EARLY:
            while not MOMENTS[device.name](device):
                await house.pace.sleep(0.1)
        before = len(pit.told[name])
        pit.sockets[name][place].inject(fault)
        if ailment.person and fault not in AFTERWARDS:
            await _until_told(house, ailment, pit, name, before)
            await house.pace.sleep(10.0)
            pit.sockets[name][place].device.repair(house.pace.now())
            pit.sockets[name][place].stir()
        await dealing
        if fault in AFTERWARDS:
            pit.sockets[name][place].device.repair(house.pace.now())
            pit.sockets[name][place].stir()
        await _quiet(house, name)
        dealt = pit.dealt()
        house.settling = True
        await all_out(pit, house.picture, dealt, 3.0)
        view = house.picture.tables[name]
        return Seen(
            tuple(pit.told[name][before:]),
            pit.accounts(dealt)[name],
            {key: f"{alert.code}: {alert.text}" for key, alert in view.alerts.items()},
            tuple(device for device, online in view.online.items() if not online),
            bool(table.ruleset),
            tuple(result for result in view.results if result["void"] is not None),
        )


async def _until_told(house: House, ailment: Ailment, pit: Pit, name: str, before: int) -> None:
    """A person comes when there is something to see, or after two minutes."""
    waited = 0.0
    while waited < 120.0 and not set(ailment.told) <= set(pit.told[name][before:]):
        await house.pace.sleep(1.0)
        waited += 1.0


async def _quiet(house: House, name: str) -> None:
    """Until every alert is closed and every device back, or three minutes passed."""
    waited = 0.0
    while waited < 180.0:
        await house.pace.sleep(5.0)
        waited += 5.0
        view = house.picture.tables[name]
        if waited >= 20.0 and not view.alerts and all(view.online.values()):
            return


def grounds(result: dict[str, Any]) -> set[str]:
    """The articles a void names that the checklist of its text has: in our words, each speaks of what is void."""
    text = tomllib.loads((LAW / f"{result['ruleset']}.toml").read_text(encoding="utf-8"))
    named = set()
    for law in result["law"]:
        for before, first, last in ARTICLE.findall(law):
            named |= {f"{before}{n})" for n in range(int(first), int(last or first) + 1)} if first else {before}
    return {key for key in text["articles"] if key.rpartition(":")[2] in named}


@pytest.mark.parametrize(("device", "fault"), PAIRS, ids=[f"{device}-{fault}" for device, fault in PAIRS])
def test_a_fault_is_told_ends_and_makes_no_result_wrong(device: str, fault: str, tmp_path: Path) -> None:
    kind, place = PLACES[device]
    ailment = ailments(SIMULATORS[device])[fault]
    seen = run_jumping(lambda busy: _try(kind, place, fault, ailment, tmp_path, busy))
    missing = set(ailment.told) - set(seen.told)
    assert not missing, f"not told: {missing}; told: {[word for word in seen.told if '.' in word]}"
    assert not seen.alerts
    assert not seen.offline
    if seen.ruled:
        assert seen.account.wrong == 0, seen.account
        assert seen.account.lost == 0, seen.account
        assert seen.account.right + seen.account.voided + seen.account.unseen == MORE.get(device, ROUNDS) + (
            fault == COUNTED
        )
    for result in seen.voids:
        assert grounds(result), f"void, and no article of the text says so: {result['void']}, {result['law']}"
    if ailment.round in ("counts", "none"):
        account = seen.account
        assert (account.lost, account.voided, account.extra, account.wrong, account.unseen) == (0, 0, 0, 0, 0), account


def test_every_device_is_tried() -> None:
    assert set(PLACES) == set(SIMULATORS)
