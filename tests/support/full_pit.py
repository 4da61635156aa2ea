"""A console with many tables, served to a real browser: its state is filled by hand, without devices and simulators.

`FullPit` runs the console in a thread; `tests/console/test_console_pit_browser.py` looks at it, and `make pictures`
takes pictures of it.
"""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import uvicorn
from console_floor import Console
from floor import Browser, InAThread, opened
from helpers import result_of
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from daemon.console.app import make_app
from daemon.console.auth.users import By, Role, hash_password
from daemon.words import words
from drivers import DRIVERS
from protocols.contract.documents import TraceLine
from protocols.contract.reasons import say
from protocols.contract.topics import Wire, device_topic, edge_topic, encode_wire, table_topic
from rules.games.blackjack import count
from rules.games.cards import DECK, points
from rules.games.poker import strength
from rules.games.shaken_dice import SMALL
from rules.games.stud_poker import Deal, compare
from rules.games.stud_poker_game import OPENING, VALUE_BITS, combination

T = TypeVar("T")

PEOPLE: dict[str, Role] = {
    "vera": "viewer",
    "dora": "dealer",
    "tess": "technician",
    "sam": "supervisor",
    "ines": "inspector",
    "ada": "administrator",
    "mona": "manager",
}
SPINS = 2000
PASSWORD = "a felt of many colours"
HEAD = """
[site]
name = "lisboa"
[edge]
name = "edge-7"
[console]
{console}
styleguide = true
"""
CONSOLE = ("console-1", "fdl_console")
Game = tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...], Callable[[random.Random], dict[str, Any]]]


def _baccarat(dice: random.Random) -> dict[str, Any]:
    """A coup of four cards, of which one hand is a natural."""
    totals = {"player": 0, "banker": 0}
    while max(totals.values()) < 8:
        hands = {name: dice.sample(DECK, 2) for name in totals}
        totals = {name: points(hand) for name, hand in hands.items()}
    player, banker = totals.values()
    winner = "player" if player > banker else "banker" if banker > player else "tie"
    pairs = {f"{name}_pair": one[0] == other[0] for name, (one, other) in hands.items()}
    return {"hands": hands, "totals": totals, "winner": winner, "natural": True, **pairs}


def _blackjack(dice: random.Random) -> dict[str, Any]:
    """Two seats that stand from 12 on, and a dealer who stands from 17 on."""
    cards = iter(dice.sample(DECK, len(DECK)))
    hands = {name: [next(cards), next(cards)] for name in ("dealer", "1.1", "3.1")}
    for name, hand in hands.items():
        while count(hand)[0] < (17 if name == "dealer" else 12):
            hand.append(next(cards))
    totals = {name: count(hand)[0] for name, hand in hands.items()}
    dealer = totals["dealer"]
    bust, blackjack = dealer > 21, dealer == 21 and len(hands["dealer"]) == 2
    results = {
        name: "win" if bust or totals[name] > dealer else "push" if totals[name] == dealer else "lose"
        for name in ("1.1", "3.1")
    }
    return {"hands": hands, "totals": totals, "results": results, "bust": bust, "blackjack": blackjack}


def _stud(dice: random.Random) -> dict[str, Any]:
    """One seat raises, one folds."""
    cards = dice.sample(DECK, 10)
    hands = {"dealer": tuple(cards[:5]), "seat_1": tuple(cards[5:])}
    deal = Deal(decisions={1: "raise", 2: "fold"})
    end = compare(deal, hands, lambda hand: strength(hand) << VALUE_BITS, OPENING)
    return {
        "opens": end.opens,
        "hands": {name: hands[name] for name in end.values},
        "combinations": {name: combination(value) for name, value in end.values.items()},
        "seats": end.fates,
    }


def _throw(dice: random.Random) -> dict[str, Any]:
    faces = [dice.randint(1, 6) for _ in range(3)]
    triple = len(set(faces)) == 1
    size = "" if triple else "small" if sum(faces) in SMALL else "big"
    return {"faces": faces, "total": sum(faces), "triple": triple, "size": size}


# By the driver, the fault that `FullPit.fault` lets a device report.
FAULTS = {
    "fdl_shuffler": "shuffler.count",
    "fdl_continuous": "continuous.wrong_back",
    "fdl_lamps": "lamps.stuck_on",
    "cammegh_ss2": "wheel.ball_with_rotor",
}
GAMES: dict[str, Game] = {
    "bac": (
        "macau.baccarat",
        "Hall A",
        (("shoe-1", "bee_tek_shoe"), ("sign-1", "alpha_sign")),
        ("dealing", "betting"),
        _baccarat,
    ),
    "rou": (
        "macau.roulette",
        "Hall A",
        (("wheel-1", "cammegh_ss2"), ("timer-1", "fdl_timer"), ("lamps-1", "fdl_lamps")),
        ("betting", "running"),
        lambda dice: {
            "pocket": str(pocket := dice.randrange(37)),
            "colour": ("black", "red")[pocket % 2] if pocket else "",
        },
    ),
    "cus": (
        "macau.cussec",
        "Hall B",
        (("shaker-1", "fdl_shaker"), ("console-1", "fdl_console")),
        ("covered", "betting"),
        _throw,
    ),
    "bj": (
        "macau.blackjack",
        "Hall B",
        (("shuffler-1", "fdl_continuous"), ("bets-1", "fdl_bets"), ("peek-1", "fdl_peek")),
        ("deciding", "betting"),
        _blackjack,
    ),
    "fan": (
        "macau.fantan",
        "Salon",
        (("console-1", "fdl_console"), ("lamps-1", "fdl_lamps")),
        ("covered", "betting"),
        lambda dice: {"number": dice.randint(1, 4)},
    ),
    "stud": (
        "macau.stud-poker",
        "Salon",
        (("shuffler-1", "fdl_shuffler"), ("bets-1", "fdl_bets")),
        ("dealing", "showdown"),
        _stud,
    ),
}


def _names(count: int) -> list[str]:
    """Like rou-03: the games take turns."""
    games = list(GAMES)
    return [f"{games[n % len(games)]}-{n // len(games) + 1:02}" for n in range(count)]


def _config(names: list[str], *, dealers: bool) -> str:
    """`dealers`: the first table of each game has a dealer's page."""
    text, port = HEAD, 4001
    pages = "[console.dealer]\n"
    for name in names:
        ruleset, area, devices, _, _ = GAMES[name.partition("-")[0]]
        if dealers and name.endswith("-01"):
            devices = (*(one for one in devices if one != CONSOLE), CONSOLE)
            pages += f'{name} = "/run/feltd/console/{name}.sock"\n'
        text += f'[[table]]\nname = "{name}"\nruleset = "{ruleset}"\narea = "{area}"\n'
        for device, driver in devices:
            url = f"unix:///run/feltd/console/{name}.sock" if (device, driver) == CONSOLE else f"tcp://127.0.0.1:{port}"
            text += f'[[table.device]]\nname = "{device}"\ndriver = "{driver}"\nurl = "{url}"\n'
            port += 1
    return text + (pages if dealers else "")


class FullPit(InAThread):
    """The console of `count` tables, from `open` to `close`. All is well until `trouble`."""

    def __init__(self, directory: Path, count: int, *, dealers: bool = False, more: str = "") -> None:
        """`more`: further lines of the configuration."""
        super().__init__("full-pit")
        self.names = _names(count)
        self._more = more
        self._dealers = dealers
        self._directory = directory
        self._dice = random.Random(7)
        self._rounds: dict[str, int] = {}
        self.console: Console
        self.app: Starlette
        self._watching: asyncio.Task[None]

    # ---- as a Floor

    def secret(self, name: str) -> str:
        """The cookie of a new session of somebody."""
        return self.do(lambda: self.console.house.access.users.begin(name, "127.0.0.1", "test"))

    async def _live(self) -> None:
        config = _config(self.names, dealers=self._dealers) + self._more
        self.console = console = Console(self._directory, config=config)
        self._fill()
        house = console.house
        for name, role in PEOPLE.items():
            house.access.users.add(By("test", "system"), name, role, (), hash_password(PASSWORD))
        self.app = make_app(house)
        server = uvicorn.Server(
            uvicorn.Config(
                self._serve,
                "127.0.0.1",
                0,
                log_config=None,
                lifespan="off",
                interface="asgi3",
                timeout_graceful_shutdown=1,
            )
        )
        serving = asyncio.create_task(server.serve())
        self._watching = asyncio.create_task(house.watch.run())
        beating = asyncio.create_task(self._beat())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.02)
        self.port = server.servers[0].sockets[0].getsockname()[1]
        self._ready.set_result(None)
        await self._over.wait()
        server.should_exit = True
        self.console.house.close()
        for task in (self._watching, beating):
            task.cancel()
        await asyncio.wait([serving, self._watching, beating])
        console.store.close()
        console.journal.close()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Requests go to the console that runs now."""
        await self.app(scope, receive, send)

    def start_again(self) -> None:
        """The process of the console ended, and started again with the same store."""
        before, self.console = self.console, self.console.again()
        before.house.close()
        self.app = self.console.app
        self._watching.cancel()
        self._watching = asyncio.create_task(self.console.house.watch.run())

    async def _beat(self) -> None:
        """The clock goes on, and the processes are heard."""
        while True:
            self.console.now = datetime.now(UTC)
            for name in self.beating:
                self.console.say(edge_topic("lisboa", name, "alive"), b"alive")
            await asyncio.sleep(0.5)

    # ---- what is so

    def _fill(self) -> None:
        console = self.console
        console.now = datetime.now(UTC)
        console.connect()
        self.beating = ["edge-7", "edge-8", "rules"]
        for name in self.beating:
            console.edge(name)
        for n, table in enumerate(self.names):
            ruleset, _, devices, phases, outcome = GAMES[table.partition("-")[0]]
            if self._dealers and table.endswith("-01"):
                devices = (*(one for one in devices if one != CONSOLE), CONSOLE)
            for device, driver in devices:
                console.device(table, device, driver, edge="edge-8" if n % 12 == 11 else "edge-7")
            for _ in range(9):
                self.result(table, ruleset, outcome(self._dice))
            self.phase(table, phases[n % 2])

    def phase(self, table: str, phase: str, detail: dict[str, Any] | None = None) -> None:
        """The open round of a table."""
        said = {"phase": phase, "round": f"{table}:2026-11-20:99", "detail": detail or {}}
        self.console.say(table_topic("lisboa", table, "round/state"), json.dumps(said).encode())

    def result(self, table: str, ruleset: str, outcome: dict[str, Any], **more: Any) -> None:
        """A round ends."""
        number = self._rounds[table] = self._rounds.get(table, 0) + 1
        result = {"round": f"{table}:2026-11-20:{number}", "ruleset": ruleset, "options": {}, "outcome": outcome} | more
        at = self.console.now - timedelta(minutes=10 - number)
        source = table_topic("lisboa", table, "round")
        raw = msgspec.Raw(json.dumps({"result": result}).encode())
        wire = Wire("1.0", f"edge-7:{table}:{number}/0", source, "resolved", at, number, data=raw, journal="j")
        self.console.say(f"{source}/event/resolved", encode_wire(wire))

    def fault(self, table: str, device: str, severity: str = "") -> None:
        """A device reports a fault of its driver, and the edge an alert. `severity`: another than the fault's own."""
        driver = self.console.house.site.devices[table, device].meta.driver
        fault = next(one for one in DRIVERS[driver].faults if one.code == FAULTS[driver])
        since = (self.console.now - timedelta(seconds=128)).isoformat()
        said = {"text": fault.text, "remedy": fault.remedy, "since": since}
        one = {"code": fault.code, "severity": severity or fault.severity, **said}
        state = msgspec.json.encode({"faults": [one]})
        self.console.say(device_topic("lisboa", table, device, "state"), state)
        self.console.alert(table, f"{device}-x", device=device, **one)
        self.console.house.watch.look()

    def mend(self, table: str, device: str) -> None:
        """The fault is over."""
        self.console.say(device_topic("lisboa", table, device, "state"), b'{"faults":[]}')
        self.console.alert(table, f"{device}-x")
        self.console.house.watch.look()

    def silence(self, table: str, device: str, why: str) -> None:
        """A supervisor silences it for an hour."""
        now = self.console.now
        self.console.house.incidents.silence(table, device, "", now + timedelta(hours=1), "sam", why, now)
        self.console.house.watch.look()

    def trouble(self) -> None:
        """One table in each state that is not good; they are far behind in the configuration."""
        names = {game: [one for one in self.names if one.startswith(game)][-1] for game in GAMES}
        self.fault(names["stud"], "shuffler-1")
        self.fault(names["rou"], "wheel-1")
        self.fault(names["bj"], "shuffler-1")
        self.silence(names["bj"], "shuffler-1", "rollers are being changed")
        self.silence(names["fan"], "", "new felt")
        self.phase(names["cus"], "suspended")
        self.console.alert(
            names["cus"],
            "round-suspended",
            code="round.suspended",
            why=say("dice_touched"),
            to_do=say("do_enter_throw"),
        )
        self.console.say(device_topic("lisboa", names["bac"], "shoe-1", "availability"), b"offline")
        self.console.alert(
            names["bac"],
            "shoe-1-offline",
            device="shoe-1",
            code="device.offline",
            why=say("never", device="shoe-1"),
            to_do=words.REMEDY,
        )
        self.console.house.watch.look()

    def spins_and_bytes(self) -> None:
        """Spins of the first wheel that are counted for its fairness, and bytes on its wire."""
        table, house = "rou-01", self.console.house
        for n in range(1, SPINS + 1):
            said = {"round": f"{table}:2026-11-19:{n}", "ruleset": "macau.roulette", "options": {}}
            pocket = {"pocket": str(self._dice.randrange(37))}
            house.fairness.on_result(table, "resolved", result_of(said | {"outcome": pocket}))
        source = device_topic("lisboa", table, "wheel-1", "")[:-1]
        lines = [TraceLine(self.console.now, "in", f"N;{n % 37}\r\n".encode().hex(), n, 0) for n in range(1, 40)]
        self.console.say(f"{source}/trace", b"\n".join(map(msgspec.json.encode, lines)))

    def hang(self, name: str) -> None:
        """A process is no longer heard."""
        self.beating.remove(name)

    def restart(self, name: str) -> None:
        """A process started again."""
        for boot in ("a", "b"):
            self.console.say(edge_topic("lisboa", name, "info"), msgspec.json.encode({"bootid": boot}))


@contextmanager
def full_pit(directory: Path, count: int, *, dealers: bool = False, more: str = "") -> Iterator[FullPit]:
    """A pit for a while."""
    with opened(FullPit(directory, count, dealers=dealers, more=more)) as one:
        yield one


SIZES = ((1920, 1080), (1280, 800), (1024, 768), (390, 844))


def sized(page: Browser, size: tuple[int, int]) -> None:
    """Give the page itself that size, also below what a window can be."""
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
    )
