"""A pit of simulated tables: ports, the configuration for edge and rules, dealers, and the account at the end."""

import asyncio
import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import msgspec

from daemon import logs
from daemon.broker.connection import Connect, stay_connected
from daemon.broker.session import UNREADABLE, BrokerLost, Session
from daemon.config.model import Mqtt as MqttSettings
from daemon.edge.links import usb as links_usb
from daemon.journal.signing import public_path
from daemon.read_model import SiteState
from drivers.bee_tek_shoe import ShoeOptions
from drivers.billy_iii import BillyOptions
from drivers.cammegh_ss2_spins import WheelOptions
from drivers.hid_shoe import HidShoeOptions
from drivers.sas_machine_memory import MachineOptions
from drivers.tcs_saturn import SaturnOptions
from protocols.contract.commands import Reply, Request
from protocols.contract.events import Event
from protocols.contract.results import Result
from protocols.contract.topics import Wire, device_topic, table_topic
from protocols.idp_dice import DICE
from simulators import SIMULATORS, tables
from simulators.clock import Pace
from simulators.devices.bet_terminals import BetTerminals
from simulators.devices.compare import Account, Outcome, compare
from simulators.devices.device import Device
from simulators.devices.fdl_device import FdlDevice
from simulators.devices.idp_dice import Recogniser
from simulators.devices.line import Line
from simulators.lab.pools import LinkedPool, linked_pools
from simulators.ports.mqtt import Mqtt
from simulators.ports.port import Port, Pty, Socket, Tcp
from simulators.ports.usb import Bus, Usb
from simulators.tables.angola_blackjack import AngolaBlackjackTable, AngolaShufflerTable
from simulators.tables.baccarat import (
    AngolaMacauTable,
    AngolaTable,
    BaccaratTable,
    ContinuousTable,
    ScannerTable,
    TextShoeTable,
)
from simulators.tables.blackjack import BlackjackTable
from simulators.tables.craps import CrapsTable
from simulators.tables.cussec import AngolaCussecTable, CussecTable
from simulators.tables.devices import MachinePlace
from simulators.tables.fantan import FantanTable
from simulators.tables.fish_prawn_crab import FishPrawnCrabTable
from simulators.tables.french_bank import FrenchBankTable
from simulators.tables.roulette import AmericanRouletteTable, FrenchRouletteTable, RouletteTable, SaturnTable
from simulators.tables.stud_poker import (
    AngolaStudPokerTable,
    Laid,
    SignedAngolaStudPokerTable,
    SignedStudPokerTable,
    StudPokerTable,
)
from simulators.tables.studio import FixedDomeTable, KeyedDomeTable
from simulators.tables.table import Floor, Look, Settled, Table, with_device

__all__ = ["KINDS", "ORDER_KEY", "PITS", "SIGNED", "Pit", "UnderWay"]

SITE, EDGE = "demo", "edge-1"
ORDER_KEY = "console-orders.pem"
"""The key in the folder of the pit with which the console signs orders about jackpots."""
KINDS: dict[str, type[Table]] = {
    "rou": RouletteTable,
    "sat": SaturnTable,
    "cus": CussecTable,
    "fpc": FishPrawnCrabTable,
    "bac": BaccaratTable,
    "scan": ScannerTable,
    "csm": ContinuousTable,
    "studio": FixedDomeTable,
    "sfpc": KeyedDomeTable,
    "stud": StudPokerTable,
    "astud": AngolaStudPokerTable,
    "bj": BlackjackTable,
    "fan": FantanTable,
    "craps": CrapsTable,
    "abj": AngolaBlackjackTable,
    "acsm": AngolaShufflerTable,
    "slot": MachinePlace,
    "acus": AngolaCussecTable,
    "bank": FrenchBankTable,
    "amr": AmericanRouletteTable,
    "frr": FrenchRouletteTable,
    "abac": AngolaTable,
    "abam": AngolaMacauTable,
    "text": TextShoeTable,
}
"""All kinds of tables of the demo and the campaign. The campaign draws from them in this order."""
KINDS |= {
    kind: table
    for module in iter_modules(tables.__path__, f"{tables.__name__}.")
    for table in vars(import_module(module.name)).values()
    if isinstance(table, type) and isinstance(kind := vars(table).get("kind"), str)
}
"""A table may name its kind itself, as those of new games do."""
KINDS |= {
    name.replace("_", "-"): with_device(KINDS[place[0]], place[1], device)
    for name, device in SIMULATORS.items()
    if (place := getattr(device, "stands_in", None)) is not None
}
SIGNED: dict[str, type[Table]] = {"jstud": SignedStudPokerTable, "jastud": SignedAngolaStudPokerTable}
"""Games of KINDS with the sign of a jackpot that they share with a neighbour."""
PITS: dict[str, tuple[str, ...]] = {
    "macau": ("rou", "sat", "cus", "fpc", "bac", "scan", "csm", "stud", "jstud", "bj", "fan", "studio", "sfpc", "slot"),
    "angola": (
        *("acus", "bank", "amr", "frr", "astud", "jastud", "craps", "abac", "abam", "abj", "acsm"),
        *("holdem", "omaha", "synth", "mach", "chemin"),
    ),
}
"""The kinds of tables of one pit, by jurisdiction."""
# Real seconds for a command and its answer to travel, and simulated seconds for the device to execute it.
COMMAND_TIMEOUT_S, COMMAND_WORK_S = 8.0, 30.0


class Pit:
    """Tables `rou-1`, `cus-1`, `bac-1` … (and -2, … with `copies`), all from one seed."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        *,
        copies: int = 1,
        kinds: tuple[str, ...] = PITS["macau"],
        speed: float = 1.0,
        usb: bool = False,
        luck: float = 0.0,
    ) -> None:
        """Ports are made under `directory` when the pit opens. `speed` is that of the pace, as the drivers measure it.

        `luck`: probability that a round of a linked poker table has a hand that wins its jackpot.

        `usb`: edge and pit are one process, so that a USB device can be plugged in through pyusb; else its reports come
        over TCP.
        """
        self._speed = speed
        self._bus = Bus() if usb else None
        self._seed = seed
        self.directory = directory
        self.tables: dict[str, Table] = {
            f"{kind}-{copy}": (KINDS | SIGNED)[kind](seed * 100 + copy)
            for copy in range(1, copies + 1)
            for kind in kinds
        }
        self._bring_luck(luck)
        self.ports: dict[str, Port] = {}
        self.sockets: dict[str, dict[str, Socket]] = {}
        self.outcomes: dict[str, list[Outcome]] = {name: [] for name in self.tables}
        self._opened: dict[tuple[str, str], int] = {}
        """By table and round under way, how many rounds of the table had truly ended when its opening arrived."""
        self.told: dict[str, list[str]] = {name: [] for name in self.tables}
        """By table, the types and fault codes of all events, as they came over the broker."""
        self.dealing = 0
        self._session: Session | None = None
        self._serving: Callable[[], None] = lambda: None
        self._asked: dict[str, asyncio.Future[str]] = {}

    def _bring_luck(self, luck: float) -> None:
        linked = {name for pool in self.pools for name in pool.tables}
        for name, table in self.tables.items():
            if luck and name in linked and isinstance(table, StudPokerTable):
                table.shuffler.luck, table.shuffler.burns = luck, int(isinstance(table, AngolaStudPokerTable))

    def open(self, pace: Pace, broker_port: int, version: str) -> None:
        """Plug all devices in."""
        for table_name, table in self.tables.items():
            self.sockets[table_name] = {}
            for device_name, device in table.devices.items():
                place = f"{table_name}/{device_name}"
                if isinstance(device, FdlDevice | BetTerminals):
                    device.hurry = self._speed
                port = self._port_for(table_name, device_name, device, broker_port, version)
                port.plug()
                self.ports[place] = port
                line = Line(random.Random(f"{self._seed} {place}"))
                self.sockets[table_name][device_name] = Socket(device, port, pace, line)
        if self._bus is not None:
            links_usb.backend = self._bus

    def _port_for(self, table: str, name: str, device: Device, broker_port: int, version: str) -> Port:
        match device.name:
            case "fdl_console":
                return Tcp("127.0.0.1", 0)
            case "billy_iii" | "idp_dice":
                topic = f"studio/{table}/{name}"
                return Mqtt("127.0.0.1", broker_port, f"{topic}/listens", f"{topic}/says", version=version)
            case "bet_terminals":
                bets = table_topic(SITE, table, "wager/*")
                return Mqtt("127.0.0.1", broker_port, f"{bets}/result", bets, version=version)
            case "hid_shoe" if self._bus is not None:
                return Usb(self._bus, serial=f"{table}-{name}")
            case "hid_shoe":
                return Tcp("127.0.0.1", 0)
            case _:
                return Pty(self.directory / f"tty-{table}-{name}")

    def chance(self, what: str) -> random.Random:
        """Random numbers from this pit's seed, for uses outside its tables."""
        return random.Random(f"{self._seed} {what}")

    @property
    def pools(self) -> list[LinkedPool]:
        """The jackpots whose tables are in this pit."""
        return linked_pools(self.tables)

    @property
    def laid(self) -> dict[str, Laid]:
        """The stakes on the jackpot by round of its tables."""
        tables = [table for table in self.tables.values() if isinstance(table, StudPokerTable)]
        return {round_: laid for table in tables for round_, laid in table.laid.items()}

    def config(self, broker_port: int, version: str) -> str:
        """The TOML for edge, rules and jackpots of this pit."""
        lines = [
            f'[site]\nname = "{SITE}"',
            f'[edge]\nname = "{EDGE}"\njournal = "{self.directory}/edge.db"',
            f'[rules]\njournal = "{self.directory}/rules.db"',
            f'[mqtt]\nport = {broker_port}\nversion = "{version}"',
        ]
        for table_name, table in self.tables.items():
            lines.append(f'[[table]]\nname = "{table_name}"\nruleset = "{table.ruleset}"')
            if given := {**table.options, **_hurried_rules(table.options, self._speed)}:
                options = "\n".join(f"{key} = {msgspec.json.encode(value).decode()}" for key, value in given.items())
                lines.append(f"[table.options]\n{options}")
            for device_name, device in table.devices.items():
                url = self.ports[f"{table_name}/{device_name}"].url
                lines.append(f'[[table.device]]\nname = "{device_name}"\ndriver = "{device.name}"\nurl = "{url}"')
                said = [f"{k} = {v:.6f}" for k, v in _hurried(device.name, self._speed).items()]
                if isinstance(device, Recogniser) and device.dice != DICE:
                    said.append(f"dice = {device.dice}")
                if said:
                    lines.append("\n".join(("[table.device.options]", *said)))
        if pools := self.pools:
            lines.append(f'[jackpots]\njournal = "{self.directory}/jackpots.db"\n{self.orders}')
            lines += [pool.toml for pool in pools]
        return "\n\n".join(lines) + "\n"

    @property
    def orders(self) -> str:
        """The configuration of order signatures: with ORDER_KEY in this folder the jackpots obey only orders signed by
        it.
        """
        key = public_path(self.directory / ORDER_KEY)
        return f'order_public_key = "{key}"' if key.exists() else "insecure = true"

    def saw(self, table: str, wire: Wire, _event: Event | None) -> None:
        """Record an event from the broker. At a table without a game it may be an outcome by itself."""
        if table not in self.tables:
            return
        data: dict[str, Any] = msgspec.json.decode(wire.data)
        self.told[table].append(wire.type)
        if wire.type == "device.faulted":
            self.told[table].append(data["code"])
        if (outcome := self.tables[table].outcome(wire.type, data)) is not None:
            self.outcomes[table].append(Outcome(wire.id, outcome))

    def opened(self, table: str, round_: str) -> None:
        """Record the opening of a round."""
        if table in self.tables:
            self._opened[table, round_] = len(self.tables[table].truth)

    def heard(self, table: str, kind: str, result: Result) -> None:
        """Record a result, or the correction of one."""
        if table not in self.outcomes:
            return
        round_, void = result.round, result.void.reason.code if result.void else ""
        if kind != "corrected":
            span = self._opened.pop((table, round_), 0), len(self.tables[table].truth)
            self.outcomes[table].append(Outcome(round_, result.outcome, void, span, settled(result)))
            return
        self.outcomes[table] = [
            msgspec.structs.replace(one, outcome=result.outcome, void=void, settled=settled(result))
            if one.round == round_
            else one
            for one in self.outcomes[table]
        ]

    async def serve(self, mqtt: MqttSettings, connect: Connect | None = None) -> None:
        """The dealers' own connection to the broker, for commands to their devices and the answers."""

        async def serve(session: Session) -> None:
            await session.subscribe(table_topic(SITE, "+", "device/+/cmd/+/result"))
            self._session = session
            self._serving()
            try:
                while True:
                    for message in await session.messages():
                        with_reply(message.payload)
            finally:
                self._session = None
                for asked in self._asked.values():  # the answer was missed, or never came
                    if not asked.done():
                        asked.set_result("failed")

        def with_reply(payload: bytes) -> None:
            try:
                reply = msgspec.json.decode(payload, type=Reply)
            except UNREADABLE:
                return
            asked = self._asked.get(reply.id)
            if asked is not None and not asked.done():
                asked.set_result(reply.status)

        await stay_connected(mqtt, "demo-dealers", None, serve, logs.get(client="dealers"), connect)

    @property
    def asking(self) -> bool:
        """Whether a dealer waits for the answer to a command."""
        return bool(self._asked)

    async def _tell(
        self, table: str, pace: Pace, now: Callable[[], datetime], device: str, name: str, args: dict[str, Any]
    ) -> str:
        """Send a command to a device and return its outcome. Without an answer the dealer continues."""
        if self._session is None:
            return "failed"
        request = Request(uuid.uuid4().hex[:16], now() + timedelta(seconds=60), msgspec.Raw(msgspec.json.encode(args)))
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked[request.id] = answer
        try:
            await self._session.publish(device_topic(SITE, table, device, f"cmd/{name}"), msgspec.json.encode(request))
            await asyncio.wait([answer], timeout=COMMAND_TIMEOUT_S + pace.real(COMMAND_WORK_S))
            return answer.result() if answer.done() else "failed"
        except BrokerLost:
            return "failed"
        finally:
            del self._asked[request.id]

    async def live(self) -> None:
        """Run all devices until cancelled."""
        async with asyncio.TaskGroup() as group:
            for sockets in self.sockets.values():
                for socket in sockets.values():
                    group.create_task(socket.live())

    async def deal(
        self, pace: Pace, rounds: int, site: SiteState, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Play `rounds` rounds, shared among the tables. `now` is the edge's wall clock."""
        self._serving = site.changed.set  # waiting for all devices includes the dealers' own connection
        for table in self.tables.values():
            for device in table.devices.values():
                if isinstance(device, BetTerminals):
                    device.clock = now
        share, rest = divmod(rounds, len(self.tables))
        async with asyncio.TaskGroup() as group:
            for number, (name, table) in enumerate(self.tables.items()):
                mine = share + (1 if number < rest else 0)
                if mine:
                    group.create_task(self._deal(name, table, pace, mine, site, now))

    async def _deal(
        self, name: str, table: Table, pace: Pace, rounds: int, site: SiteState, now: Callable[[], datetime]
    ) -> None:
        async def ready() -> bool:
            dark = not self._lit(name, site)
            await site.until(lambda: self._lit(name, site))
            return dark

        last: Result | None = None
        ended: dict[str, bool] = {}

        def look() -> Look:
            nonlocal last, ended
            view = site.tables.get(name)
            if view is None:
                return Look()
            newest = view.results[-1] if view.results else None
            if newest is not last:
                last = newest
                ended = {result.round: result.void is None for result in view.results}
            return Look(view.phase, view.round, view.detail, ended, newest)

        self.dealing += 1
        try:
            await table.deal(Floor(self.sockets[name], pace, ready, look, partial(self._tell, name, pace, now)), rounds)
        finally:
            self.dealing -= 1

    def _lit(self, name: str, site: SiteState) -> bool:
        view = site.tables.get(name)
        devices = self.tables[name].devices
        serving = site.connected and site.is_online(EDGE) and site.is_online("rules") and self._session
        return bool(view and serving and all(map(view.online.get, devices)))

    def dealt(self) -> dict[str, int]:
        """Rounds that ended so far, by table."""
        return {name: len(table.truth) for name, table in self.tables.items()}

    def accounts(self, dealt: dict[str, int], *, cut_short: bool = False) -> dict[str, Account]:
        """Compare the published results with the truth, for the first `dealt` rounds of each table.

        `cut_short`: the dealers were stopped; the last results may be of rounds that they did not finish.
        """
        return {
            name: compare(table.truth[: dealt[name]], self.outcomes[name], cut_short=cut_short)
            for name, table in self.tables.items()
        }


def settled(result: Result) -> Settled:
    """The settlements of a result, in the order of the truth."""
    return tuple(sorted((one.seat, one.hand, one.bet, one.stake, one.returned) for one in result.settlements))


def _hurried_rules(options: dict[str, Any], speed: float) -> dict[str, float]:
    """Options of a ruleset that are seconds of a dealer's work, divided by the speed."""
    return {name: options[name] / speed for name in ("reading_seconds",) if name in options and speed > 1.0}


def _hurried(driver: str, speed: float) -> dict[str, float]:
    """Options of a driver that are seconds of hands, dice or wheels, adapted to the speed."""
    if speed <= 1.0:
        return {}
    match driver:
        case "bee_tek_shoe":
            return {"repeat": ShoeOptions().repeat / speed}
        case "hid_shoe":
            return {"repeat": HidShoeOptions().repeat / speed, "quiet": max(HidShoeOptions().quiet / speed, 0.05)}
        case "cammegh_ss2":
            return {"shortest_spin": WheelOptions().shortest_spin / speed}
        case "tcs_saturn":
            saturn = SaturnOptions()
            return {
                "poll": max(saturn.poll / speed, 0.05),
                "stands": saturn.stands / speed,
                "shortest_spin": saturn.shortest_spin / speed,
            }
        case "sas_machine":  # five of its own seconds without a poll, or without amounts, are a fault
            machine = MachineOptions()
            return {"interval": max(machine.interval / speed, 0.04), "broadcast": max(machine.broadcast / speed, 0.5)}
        case "billy_iii":  # its shake ends long before the ordered seconds
            return {"early": min(BillyOptions().duration, 10.0), "shortest": BillyOptions().shortest / speed}
        case _:
            return {}


class UnderWay:
    """Whether bytes are still between a simulator and its driver, by the counts at both ends.

    Bytes lost in a cable or at a closed port never arrive: a difference that stays the same for SETTLED seconds is
    lost, and is ignored from then on.
    """

    SETTLED = 0.5

    def __init__(self, pit: Pit, received: Callable[[str], tuple[int, int]], clock: Callable[[], float]) -> None:
        """`received` is (bytes read, bytes written) by the host's end of "table/device".

        `clock`: that of the loop, which stops while this process cannot run.
        """
        self._pit = pit
        self._received = received
        self._clock = clock
        self._lost: dict[str, tuple[int, int]] = {}
        self._since: dict[str, tuple[tuple[int, int], float]] = {}

    def __call__(self) -> bool:
        """True while something is under way."""
        now = self._clock()
        moving = any(isinstance(port, Mqtt) and port.connecting for port in self._pit.ports.values())
        for name, port in self._pit.ports.items():
            read, written = self._received(name)
            difference = (port.sent_bytes - read, written - port.received_bytes)
            if difference == self._lost.get(name, (0, 0)):
                self._since.pop(name, None)
                continue
            before, since = self._since.get(name, (None, now))
            if before != difference:
                self._since[name] = (difference, now)
                moving = True
            elif now - since < self.SETTLED:
                moving = True
            else:
                self._lost[name] = difference
        return moving
