"""A whole pit of simulated tables: ports, a configuration for edge and rules, dealers, and the account at the end."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon.picture import Picture
from drivers.bee_tek_shoe import BeeTekShoe, ShoeOptions
from simulators.clock import Pace
from simulators.compare import Account, Outcome, compare
from simulators.port import Pty, Socket, Tcp
from simulators.tables import BaccaratTable, CussecTable, Floor, RouletteTable, Table

__all__ = ["Pit", "UnderWay"]

SITE, EDGE = "demo", "edge-1"
KINDS: dict[str, type[Any]] = {"rou": RouletteTable, "cus": CussecTable, "bac": BaccaratTable}


class Pit:
    """Tables `rou-1`, `cus-1`, `bac-1` (and -2, … with `copies`), all from one seed."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        *,
        copies: int = 1,
        kinds: tuple[str, ...] = tuple(KINDS),
        speed: float = 1.0,
    ) -> None:
        """Ports are made under `directory` when the pit opens. `speed` is that of the pace, as the drivers see it."""
        self._speed = speed
        self.directory = directory
        self.tables: dict[str, Table] = {
            f"{kind}-{copy}": KINDS[kind](seed * 100 + copy) for copy in range(1, copies + 1) for kind in kinds
        }
        self.ports: dict[str, Pty | Tcp] = {}
        self.sockets: dict[str, dict[str, Socket]] = {}
        self.outcomes: dict[str, list[Outcome]] = {name: [] for name in self.tables}
        self.dealing = 0

    def open(self, pace: Pace) -> None:
        """Plug all devices in: consoles over TCP, the others as ttys."""
        for table_name, table in self.tables.items():
            self.sockets[table_name] = {}
            for device_name, device in table.devices.items():
                port: Pty | Tcp
                if device_name.startswith("console"):
                    port = Tcp("127.0.0.1", 0)
                else:
                    port = Pty(self.directory / f"tty-{table_name}-{device_name}")
                port.plug()
                self.ports[f"{table_name}/{device_name}"] = port
                self.sockets[table_name][device_name] = Socket(device, port, pace)

    def config(self, broker_port: int, version: str) -> str:
        """The TOML for edge and rules of this pit."""
        lines = [
            f'[site]\nname = "{SITE}"',
            f'[edge]\nname = "{EDGE}"\njournal = "{self.directory}/edge.db"',
            f'[rules]\njournal = "{self.directory}/rules.db"',
            f'[mqtt]\nport = {broker_port}\nversion = "{version}"',
        ]
        for table_name, table in self.tables.items():
            lines.append(f'[[table]]\nname = "{table_name}"\nruleset = "{table.ruleset}"')
            lines.append("[table.options]\n" + "\n".join(f'{key} = "{value}"' for key, value in table.options.items()))
            for device_name, device in table.devices.items():
                port = self.ports[f"{table_name}/{device_name}"]
                url = f"tcp://127.0.0.1:{port.port}" if isinstance(port, Tcp) else f"serial://{port.path}"
                lines.append(f'[[table.device]]\nname = "{device_name}"\ndriver = "{device.name}"\nurl = "{url}"')
                if device.name == BeeTekShoe.name:
                    # Hands at many times their speed: the driver must not take two like cards for one said twice.
                    lines.append(f"[table.device.options]\nrepeat = {ShoeOptions().repeat / max(self._speed, 1.0):.6f}")
        return "\n\n".join(lines) + "\n"

    def heard(self, table: str, kind: str, result: dict[str, Any]) -> None:
        """One result came out."""
        if table in self.outcomes and kind != "corrected":
            void = result["void"]["reason"] if result["void"] else ""
            self.outcomes[table].append(Outcome(result["round"], result["outcome"], void))

    async def live(self) -> None:
        """Let all devices live, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for sockets in self.sockets.values():
                for socket in sockets.values():
                    group.create_task(socket.live())

    async def deal(self, pace: Pace, rounds: int, picture: Picture) -> None:
        """Play `rounds` rounds, shared among the tables."""
        share, rest = divmod(rounds, len(self.tables))
        async with asyncio.TaskGroup() as group:
            for number, (name, table) in enumerate(self.tables.items()):
                mine = share + (1 if number < rest else 0)
                if mine:
                    group.create_task(self._deal(name, table, pace, mine, picture))

    async def _deal(self, name: str, table: Table, pace: Pace, rounds: int, picture: Picture) -> None:
        async def ready() -> None:
            await picture.until(lambda: self._lit(name, picture))

        self.dealing += 1
        try:
            await table.deal(Floor(self.sockets[name], pace, ready), rounds)
        finally:
            self.dealing -= 1

    def _lit(self, name: str, picture: Picture) -> bool:
        view = picture.tables.get(name)
        devices = self.tables[name].devices
        return bool(
            view and picture.edges.get(EDGE) and picture.edges.get("rules") and all(map(view.online.get, devices))
        )

    def dealt(self) -> dict[str, int]:
        """Rounds that ended so far, by table."""
        return {name: len(table.truth) for name, table in self.tables.items()}

    def accounts(self, dealt: dict[str, int]) -> dict[str, Account]:
        """What came out against what happened, for the first `dealt` rounds of each table."""
        return {name: compare(table.truth[: dealt[name]], self.outcomes[name]) for name, table in self.tables.items()}


class UnderWay:
    """Whether bytes are still between a simulator and its driver, by the counts at both ends.

    Bytes that a cable or a closed port swallowed never arrive: a difference that stays the same for SETTLED real
    seconds is what is lost, and counts as nothing from then on.
    """

    SETTLED = 0.05

    def __init__(self, pit: Pit, received: Callable[[str], tuple[int, int]]) -> None:
        """`received` is (bytes read, bytes written) by the host's end of "table/device"."""
        self._pit = pit
        self._received = received
        self._lost: dict[str, tuple[int, int]] = {}
        self._since: dict[str, tuple[tuple[int, int], float]] = {}

    def __call__(self) -> bool:
        """True while something is under way."""
        now = time.monotonic()
        moving = False
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
