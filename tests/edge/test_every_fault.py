"""Every fault of every device, end to end: simulator, port, driver, edge, broker, rules, alert, round.

The lists are those of the simulators, like `docs/reference/devices/`. What a pair must show stands in its
`Ailment`: what is told, what becomes of the round, and that it ends.

Each pair runs once, in virtual time, on a cable and a broker in memory. Over real ports and mosquitto runs one pair of
each (transport, effect on the round); `make nightly` runs all of them.
"""

import asyncio
import contextlib
import re
import tomllib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import NIGHTLY
from memory_pit import World, in_memory
from msgspec import Struct

from daemon.virtual_clock import JumpingLoop
from drivers import DRIVERS
from protocols.contract.results import Result
from simulators import EACH_MODE
from simulators.devices.compare import Account
from simulators.devices.device import Ailment, ailments
from simulators.lab.broker import find_mosquitto
from simulators.lab.campaign.loop import VirtualLoop
from simulators.lab.pit import KINDS, Pit
from simulators.lab.virtual_time import run_in_virtual_time, running_in_virtual_time, wait_for_results

LAW = Path(__file__).parents[2] / "rules" / "law"
# "art. 4", "art. 3(3)", "art. 2(2)-(3)".
ARTICLE = re.compile(r"art\. (\S*?(?:\((?=\d+\)(?:-|$))|$))(?:(\d+)\))?(?:-\((\d+)\))?$")
ROUNDS = 3
# A shoe is well again after twenty good cards, a wheel whose table was closed under the ball after the next spin.
# What a Saturn says of a direction, and a camera of a second answer, stands until the round after the next is over.
MORE = {
    "bee_tek_shoe": 8,
    "bee_tek_shoe_text": 8,
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
# What takes the order of a shake, which comes a moment after the round before.
BEFORE_THE_ORDER = {"billy_iii-silence", "billy_iii-unplugged", "billy_iii-wrong_baud"}
# The table at which a device is tried: the first that has it.
PLACES: dict[str, tuple[str, str]] = {}
for _kind, _table in KINDS.items():
    for _place, _device in _table(1).devices.items():
        PLACES.setdefault(_device.name, (_kind, _place))

PLACES["bee_tek_shoe_text"] = ("text", "shoe-1")
PAIRS = [(name, fault) for name in PLACES for fault in ailments(EACH_MODE[name])]

MQTT_DEVICES = ("billy_iii", "idp_dice", "bet_terminals")
OF_THE_BROKER = {(device, "unplugged") for device in MQTT_DEVICES}
"""A broker says nothing of a device that is gone, where a cable in memory does: only over the real one."""


@contextlib.asynccontextmanager
async def over_real_ports(kind: str, seed: int, directory: Path, busy: list[Any]) -> AsyncIterator[World]:
    """Terminals, TCP, pyusb and mosquitto, on a clock that jumps only while nothing is under way."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    pit = Pit(directory, seed, kinds=(kind,), usb=True)
    async with running_in_virtual_time(pit, busy) as running_pit:

        async def settle(dealt: dict[str, int]) -> None:
            running_pit.settling = True
            await wait_for_results(pit, running_pit.site, dealt, 3.0)

        yield World(pit, running_pit.site, running_pit.pace, settle, loop.utc)


CODES = {fault.code for driver in DRIVERS.values() for fault in driver.faults}
JAMMED, SILENT = {"shuffler.jam_outfeed"}, {"sas.progressive_silent"}
# What a fault brings along at its table: somebody opens the machine, a shuffler stops with the cards in it.
ALSO: dict[tuple[str, str], set[str]] = {
    ("bet_terminals", "wrong_baud"): {"terminals.malformed"},
    ("billy_iii", "half_frame"): {"billy.not_finished"},
    ("billy_iii", "power_loss"): {"billy.not_finished"},
    ("cammegh_ss2", "restart_refused"): {"wheel.dropped"},
    ("fdl_shuffler", "counters_reset"): {"fdl.untold_fault"},
    ("fdl_shuffler", "memory_loss"): {"shuffler.interrupted"},
    ("fdl_shuffler", "packet_over"): JAMMED,
    ("fdl_shuffler", "packet_short"): JAMMED,
    ("fdl_shuffler", "power_loss"): {"shuffler.interrupted"},
    ("fdl_shuffler", "power_loss_dealing"): JAMMED,
    ("hid_shoe", "stuck_card"): {"shoe.misscan"},
    ("hid_shoe", "stuck_key"): {"shoe.unfinished"},
    ("idp_dice", "wrong_baud"): {"idp.unreadable"},
    ("sas_machine", "cashbox_full"): {"machine.cashbox_removed"},
    ("sas_machine", "cashbox_near_full"): {"machine.cashbox_removed"},
    ("sas_machine", "loop_break"): SILENT,
    ("sas_machine", "low_battery"): {"machine.card_cage"},
    ("sas_machine", "paper_low"): {"machine.slot_door"},
    ("sas_machine", "power_loss"): SILENT,
    ("sas_machine", "printer_ribbon"): {"machine.slot_door"},
    ("sas_machine", "program"): {"machine.card_cage"},
    ("sas_machine", "silence"): SILENT,
    ("sas_machine", "unplugged"): SILENT,
    ("sas_machine", "wrong_baud"): SILENT,
    ("sas_machine", "wrong_crc"): {"sas.doubtful", "sas.progressive_silent"},
}
# What a busy computer brings along over real ports: an answer that comes after its time limit.
LATE = frozenset({"sas.deaf"})
# What would spoil a round, and the dealer of the demo sees it before there is one.
DEALT_AGAIN = {("fdl_shaker", "lever_stuck"), ("fdl_shuffler", "door_open"), ("fdl_buttons", "lifted_early")}


class Seen(Struct, frozen=True):
    """What came of one fault."""

    told: tuple[str, ...]
    account: Account
    alerts: dict[str, str]
    offline: tuple[str, ...]
    ruled: bool
    voids: tuple[Result, ...]


async def _try(device: str, fault: str, world: World) -> Seen:
    """Deal some rounds, with the fault in one of them."""
    place = PLACES[device][1]
    ailment = ailments(EACH_MODE[device])[fault]
    pit, pace = world.pit, world.pace
    [(name, table)] = pit.tables.items()
    socket, tried = pit.sockets[name][place], table.devices[place]
    late = fault == COUNTED
    dealing = asyncio.create_task(pit.deal(pace, MORE.get(device, ROUNDS) + late, world.site, world.utc))
    while len(table.truth) < BEFORES.get(device, BEFORE) + late:
        await pace.sleep(0.5)
    if f"{device}-{fault}" not in BEFORE_THE_ORDER:
        await pace.sleep(3.0)
    if device in MOMENTS and f"{device}-{fault}" not in EARLY | BEFORE_THE_ORDER:
        while not MOMENTS[device](tried):
            await pace.sleep(0.1)
    before = len(pit.told[name])
    socket.inject(fault)

    def repair() -> None:
        socket.device.repair(pace.now())
        socket.stir()

    if ailment.person and fault not in AFTERWARDS:
        await _until_told(world, ailment, name, before)
        await pace.sleep(10.0)
        repair()
    await dealing
    if fault in AFTERWARDS:
        repair()
    await _quiet(world, name)
    dealt = pit.dealt()
    await world.settle({one: count for one, count in dealt.items() if pit.tables[one].ruleset})
    view = world.site.tables[name]
    return Seen(
        tuple(pit.told[name][before:]),
        pit.accounts(dealt)[name],
        {key: f"{alert.code}: {alert.text}" for key, alert in view.alerts.items()},
        tuple(one for one, online in view.online.items() if not online),
        bool(table.ruleset),
        tuple(result for result in view.results if result.void is not None),
    )


async def _until_told(world: World, ailment: Ailment, name: str, before: int) -> None:
    """A person comes when there is something to see, or after two minutes."""
    waited = 0.0
    while waited < 120.0 and not set(ailment.told) <= set(world.pit.told[name][before:]):
        await world.pace.sleep(1.0)
        waited += 1.0


async def _quiet(world: World, name: str) -> None:
    """Until every alert is closed and every device back, or three minutes passed."""
    waited = 0.0
    while waited < 180.0:
        await world.pace.sleep(5.0)
        waited += 5.0
        view = world.site.tables[name]
        if waited >= 20.0 and not view.alerts and all(view.online.values()):
            return


def grounds(result: Result) -> set[str]:
    """The articles a void names that the checklist of its text has: in our words, each speaks of what is void."""
    text = tomllib.loads((LAW / f"{result.ruleset}.toml").read_text(encoding="utf-8"))
    named = set()
    for law in result.law:
        for before, first, last in ARTICLE.findall(law):
            named |= {f"{before}{n})" for n in range(int(first), int(last or first) + 1)} if first else {before}
    return {key for key in text["articles"] if key.rpartition(":")[2] in named}


def judge(device: str, fault: str, seen: Seen, late: frozenset[str] = frozenset()) -> None:
    """The fault was told, it ended, and no result is wrong; where it may touch no round, each came out."""
    ailment = ailments(EACH_MODE[device])[fault]
    missing = set(ailment.told) - set(seen.told)
    assert not missing, f"not told: {missing}; told: {[word for word in seen.told if '.' in word]}"
    also = {one for one in seen.told if one in CODES} - {*ailment.told}
    assert also <= ALSO.get((device, fault), set()) | late, f"told beside it: {also}"
    assert ("device.offline" in seen.told) == ("device.offline" in ailment.told)
    assert not seen.alerts
    assert not seen.offline
    account = seen.account
    if seen.ruled:
        assert account.wrong == 0, account
        assert account.lost == 0, account
        ended = account.right + account.voided + account.unseen
        assert ended == MORE.get(device, ROUNDS) + (fault == COUNTED)
        assert seen.voids or ailment.round != "void" or (device, fault) in DEALT_AGAIN
    for result in seen.voids:
        assert grounds(result), f"void, and no article of the text says so: {result.void}, {result.law}"
    if ailment.round in ("counts", "none"):
        assert (account.lost, account.voided, account.extra, account.wrong, account.unseen) == (0, 0, 0, 0, 0), account


@pytest.mark.parametrize(("device", "fault"), [pair for pair in PAIRS if pair not in OF_THE_BROKER])
def test_a_fault_is_told_ends_and_makes_no_result_wrong(device: str, fault: str, tmp_path: Path) -> None:
    async def body() -> Seen:
        async with in_memory(PLACES[device][0], _seed(device) * 100 + 1, tmp_path) as world:
            return await _try(device, fault, world)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        judge(device, fault, runner.run(body()))


def transport(device: str) -> str:
    """What a host reaches it by, at a table of the demo."""
    match device:
        case "fdl_console":
            return "tcp"
        case _ if device in MQTT_DEVICES:
            return "mqtt"
        case "hid_shoe":
            return "usb"
        case _:
            return "pty"


def _one_of_each() -> list[tuple[str, str]]:
    """The first pair of each way to a device, effect on the round, and of faults of the device and of its line."""
    found: dict[tuple[str, str, bool], tuple[str, str]] = {}
    for device, fault in PAIRS:
        simulator = EACH_MODE[device]
        found.setdefault(
            (transport(device), ailments(simulator)[fault].round, fault in simulator.line), (device, fault)
        )
    return sorted({*found.values()} | OF_THE_BROKER)


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="no mosquitto on this computer")
@pytest.mark.parametrize(("device", "fault"), PAIRS if NIGHTLY else _one_of_each())
def test_the_same_over_real_ports_and_mosquitto(device: str, fault: str, tmp_path: Path) -> None:
    async def body(busy: list[Any]) -> Seen:
        async with over_real_ports(PLACES[device][0], _seed(device), tmp_path, busy) as world:
            return await _try(device, fault, world)

    judge(device, fault, run_in_virtual_time(body), LATE)


def _seed(device: str) -> int:
    return SEEDS.get(device, SEED)


def test_every_device_is_tried() -> None:
    assert set(PLACES) == set(EACH_MODE)
