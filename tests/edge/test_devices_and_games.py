"""Each device that decides rounds decides those of every game that it serves, from its bytes; the others take part.

The pairs come from what the drivers say they tell and what the rounds need, with the documented options of each game.
"""

import ast
import asyncio
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from devices_and_games import EXAMPLE, PAGE, beside, page, pairs, told_by, tried
from memory_pit import in_memory

from daemon.cli.main import main
from daemon.config.devices_and_games import missing, needs_of
from daemon.config.model import load
from drivers import DRIVERS
from protocols.contract import events
from protocols.contract.events import EVENT_TYPES, DeviceFaulted, DeviceOnline, DeviceRecovered, EventsMissed
from simulators.devices.compare import Account
from simulators.lab.campaign.loop import VirtualLoop
from simulators.tables.table import Table

TABLES = tried()
PAIRS = sorted(pairs())
BESIDE = beside()
OF_ANY_DEVICE = {"device.online", "device.faulted", "device.recovered", "device.commanded", "events.missed"}
# The bank looks at its hole card under an ace or a ten only: here in the first three rounds.
SEEDS, ROUNDS = {"fdl_peek": 11}, {"fdl_peek": 3}


async def play(kind: type[Table], seed: int, rounds: int, folder: Path) -> tuple[Account, dict[str, set[str]]]:
    """Some rounds, and by driver what it told."""
    async with in_memory("t", seed, folder, {"t": kind}) as world:
        [table] = world.pit.tables.values()
        told: dict[str, set[str]] = {}

        def hear(_table: str, wire: Any, _event: object) -> None:
            device = table.devices.get(wire.source.rpartition("/")[2])
            if device is not None:
                told.setdefault(device.name, set()).add(wire.type)

        world.site.on_event.append(hear)
        await world.pit.deal(world.pace, rounds, world.site, world.utc)
        dealt = world.pit.dealt()
        await world.settle(dealt)
        [account] = world.pit.accounts(dealt).values()
        return account, told


def run(kind: type[Table], seed: int, rounds: int, folder: Path) -> tuple[Account, dict[str, set[str]]]:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        account, told = runner.run(play(kind, seed, rounds, folder))
    assert (account.lost, account.wrong) == (0, 0), account
    for one, types in told.items():
        assert types - OF_ANY_DEVICE <= set(told_by(one)), one
    return account, told


@pytest.mark.parametrize(("name", "ruleset"), PAIRS)
def test_a_device_decides_whole_rounds_of_a_game_from_its_bytes(name: str, ruleset: str, tmp_path: Path) -> None:
    kind = TABLES[name, ruleset]
    account, told = run(kind, 7, 2, tmp_path)
    assert account.right >= 1, account
    [decides] = [need for need in needs_of(ruleset, kind.options) if need.decides]
    wanted = {EVENT[one if isinstance(one, type) else type(one)] for one in decides.events}
    assert wanted & told[name]


@pytest.mark.parametrize("name", BESIDE)
def test_a_device_that_decides_nothing_takes_part_in_a_round(name: str, tmp_path: Path) -> None:
    account, told = run(BESIDE[name], SEEDS.get(name, 7), ROUNDS.get(name, 2), tmp_path)
    assert account.right >= 1 or not BESIDE[name].ruleset
    assert told[name] & set(told_by(name))


EVENT = {kind: name for name, kind in EVENT_TYPES.items()}
COMMON = {kind.__name__ for kind in (DeviceOnline, DeviceFaulted, DeviceRecovered, EventsMissed)}


@pytest.mark.parametrize("name", DRIVERS)
def test_a_driver_tells_what_it_says_it_tells(name: str) -> None:
    """Each event that its modules, and functions of other drivers that they call, make, and no other."""
    modules = {kind.__module__ for kind in DRIVERS[name].__mro__ if kind.__module__.startswith("drivers.")}
    files = {Path(inspect.getfile(sys.modules[one])) for one in modules} | set(DRIVER_FILES.glob(f"{name}*.py"))
    borrowed = [one for module in modules for one in vars(sys.modules[module]).values() if inspect.isfunction(one)]
    sources = [file.read_text(encoding="utf-8") for file in files] + [inspect.getsource(one) for one in borrowed]
    known = {kind.__name__ for kind in EVENT}
    made = {
        node.func.id
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    told = {events.EVENT_TYPES[one].__name__ for one in told_by(name)}
    assert told == (made & known) - COMMON
    assert len(told) == len(told_by(name))


DRIVER_FILES = Path(inspect.getfile(sys.modules["drivers"])).parent


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


# ---- what `feltd check` tells

TABLE = """\
[site]
name = "s"
[edge]
name = "e"
[rules]
insecure = true
[mqtt]
host = "127.0.0.1"
[[table]]
name = "t-1"
ruleset = "RULESET"
[table.options]
OPTIONS
"""


def check(folder: Path, ruleset: str, options: str, *names: str) -> list[str]:
    """What is missing at a table with these devices."""
    text = TABLE.replace("RULESET", ruleset).replace("OPTIONS", options)
    for number, name in enumerate(names):
        device = f'name = "d-{number}"\ndriver = "{name}"\nurl = "tcp://10.0.0.1:400{number}"\n'
        text += f"[[table.device]]\n{device}"
    path = folder / "feltd.toml"
    path.write_text(text, encoding="utf-8")
    return [line.removeprefix(f"{path}:11: t-1: no device here reports ") for line in missing(load(path), path)]


def test_a_roulette_wheel_at_baccarat_is_told_what_is_missing(tmp_path: Path) -> None:
    shoe, cards = check(tmp_path, "macau.baccarat", "", "cammegh_ss2")
    assert shoe.startswith("that a new shoe begins (macau.baccarat art. 2(1)): rounds are void, irregular or wait")
    shoes = " or ".join(name for name, driver in DRIVERS.items() if events.CardDrawn in driver.emits)
    assert {"bee_tek_shoe", "fdl_continuous", "hid_shoe"} <= set(shoes.split(" or "))
    assert cards == f"the cards that are dealt (macau.baccarat art. 7(1)): no round can be decided; {shoes} reports it"
    run = CliRunner().invoke(main, ["check", "--config", str(tmp_path / "feltd.toml")])
    assert run.exit_code == 0, run.output
    assert "t-1: no device here reports the cards that are dealt" in run.output


def test_what_an_article_demands_and_no_device_tells_is_named(tmp_path: Path) -> None:
    studio = ("billy_iii", "idp_dice", "fdl_console")
    assert check(tmp_path, "macau.cussec", 'agitation = "electronic"\ndome = "fixed"', *studio) == []
    [lever] = check(tmp_path, "angola.cussec", "", *studio)
    assert lever.startswith("the shaking of the dice, by the lever (angola.cussec art. 5(3)a, art. 5(5))")
    told = check(tmp_path, "macau.cussec", 'agitation = "electronic"', *studio[:2])
    assert [one.partition(" (")[0] for one in told] == [
        *("that the dome is on", "the opening of the bets", "the bell, or that no more bets are taken"),
        "that the dome is lifted",
    ]
    assert check(tmp_path, "macau.roulette", 'betting = "no_more_bets"', "cammegh_ss2") == []
    [paid] = check(tmp_path, "macau.roulette", 'betting = "no_more_bets"\npayment = "console"', "cammegh_ss2")
    assert paid.startswith("the payment of the prizes (macau.roulette art. 3(1))")


@pytest.mark.parametrize(
    ("ruleset", "options", "law"),
    [
        ("macau.baccarat", "", "art. 7(2)"),
        ("macau.blackjack", "", "art. 1(4)"),
        ("angola.baccarat", 'deduction = "2_percent"\ndecks = 6', "art. 10(4)(c)"),
    ],
)
def test_a_shoe_is_no_shuffler_that_deals(ruleset: str, options: str, law: str, tmp_path: Path) -> None:
    said = f'device = "continuous"\n{options}'
    [back] = check(tmp_path, ruleset, said, "bee_tek_shoe", "fdl_console")
    assert back.startswith(f"that the cards go back into the shuffler ({ruleset} {law})")
    assert check(tmp_path, ruleset, said, "fdl_continuous", "fdl_console") == []


def test_a_table_whose_devices_are_elsewhere_or_unknown_misses_nothing(tmp_path: Path) -> None:
    assert check(tmp_path, "macau.baccarat", "") == []
    assert check(tmp_path, "macau.baccarat", "", "cammegh_ss2", "no_such_driver") == []
    assert check(tmp_path, "no.game", "", "cammegh_ss2") == []


def test_the_example_misses_nothing() -> None:
    assert missing(load(EXAMPLE), EXAMPLE) == []
