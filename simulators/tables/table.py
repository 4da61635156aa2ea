"""Simulated tables: dealers who play with simulated devices, and the true outcomes.

A dealer knows the game independently of the rulesets: `truth` holds what each round really was, to compare with the
published results. Nothing is faster than hands. A dealer follows the table's display, as the procedure of a house
requires: while it is dark the dealer stops, and if it differs from the table the dealer enters a correction or declares
the round void.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from protocols.contract.results import Result
from simulators.clock import Pace
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.ports.port import Socket

__all__ = [
    "AnyShoe",
    "Floor",
    "GivenUpError",
    "Look",
    "Ruled",
    "Settled",
    "ShoeTable",
    "Table",
    "Truth",
    "open_bets",
    "settle",
    "shows",
    "with_device",
]

OPEN = ("betting", "covered", "uncovered", "closed", "running", "dealing", "deciding", "showdown", "suspended")
# Seconds on the wall: neither processes nor the broker are faster where hands are.
DISPLAY_TIMEOUT_S = 6.0
# How often a dealer presses a key that the display does not follow.
PRESSES = 60


Settled: TypeAlias = tuple[tuple[int, int, str, int, int], ...]
"""Seat, hand, bet, stake and the amount returned of each wager, in order."""


class Truth(Struct, frozen=True):
    """One round as it truly was: the facts of its outcome, or void.

    Both, where the dealer gave it up for what his display did not show: then either is right. `settled`: what its
    wagers bring, by the table's own count; None where that is not known.
    """

    outcome: dict[str, Any]
    void: bool = False
    settled: Settled | None = None


class Look(Struct, frozen=True):
    """What the table's display shows: the round and its phase, the game's facts so far, and how the last rounds ended.

    `ended`: by round, whether it counts. `last`: the last result.
    """

    phase: str = "-"
    round: str = ""
    detail: dict[str, Any] = {}
    ended: dict[str, bool] = {}
    last: Result | None = None

    @property
    def over(self) -> bool:
        """No round is open."""
        return self.phase not in OPEN

    @property
    def mine(self) -> str:
        """The round that is shown; none where that has ended: a broker with an old memory shows an old screen."""
        return "" if self.round in self.ended else self.round

    def settled(self, mine: str) -> bool:
        """No round is open, and the screen is not that of a round before `mine`."""
        outdated = bool(mine) and mine not in self.ended and self.round in self.ended
        return self.over and not outdated


class Floor(Struct, frozen=True):
    """The surroundings of a dealer: the devices' sockets, the pace, the display, and commands to the devices.

    `ready` waits until all devices of the table are known to be online, and returns whether they were not: nobody deals
    at a dark table. `tell` gives a device a command and returns how that ended: done, refused or failed.
    """

    sockets: dict[str, Socket]
    pace: Pace
    ready: Callable[[], Awaitable[bool]]
    look: Callable[[], Look]
    tell: Callable[[str, str, dict[str, Any]], Awaitable[str]]
    claimed: set[str] = msgspec.field(default_factory=set)

    def claim(self) -> str:
        """The shown round, as that which the dealer deals now; none where he dealt it before: the screen is outdated.

        Its end may become known while he deals the next round, and is not the end of that.
        """
        mine = self.look().mine
        if mine in self.claimed:
            return ""
        self.claimed.add(mine)
        return mine

    def press(self, console: Console, key: str, reason: int = 0) -> None:
        """A key of the console."""
        console.press(key, self.pace.now(), reason)
        self.stir("console-1")

    def stir(self, device: str) -> None:
        """Something was done to a device by hand."""
        self.sockets[device].stir()


class GivenUpError(Exception):
    """The display never shows what lies on the table: the dealer gives the round up."""


class Table(Protocol):
    """One table with its devices and its dealer.

    Where `ruleset` is empty no game is resolved: the truth is compared with events, and `outcome` names them.
    """

    ruleset: ClassVar[str]
    options: ClassVar[dict[str, Any]]
    devices: dict[str, Device]

    def __init__(self, seed: int) -> None:
        """Everything that chance decides comes from `seed`."""
        ...

    @property
    def truth(self) -> list[Truth]:
        """How the rounds dealt so far truly ended."""
        ...

    def outcome(self, type_: str, data: dict[str, Any]) -> dict[str, Any] | None:
        """What an event says of a round where no ruleset does; None where it says nothing."""
        ...

    def hurry(self, times: float) -> None:
        """Before the first round: let the machines run `times` faster than real ones, for a dealer in a hurry."""
        ...

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Play `rounds` rounds."""
        ...


class Ruled:
    """A table whose rounds a ruleset resolves: events by themselves say nothing of them."""

    _rng: random.Random
    """The dealer's own."""

    def outcome(self, type_: str, data: dict[str, Any]) -> dict[str, Any] | None:  # noqa: ARG002 - as every table
        """Nothing."""
        return None

    def hurry(self, times: float) -> None:
        """Nothing here waits for a machine."""

    async def _pause(self, floor: Floor, least: float, most: float) -> None:
        await floor.pace.sleep(self._rng.uniform(least, most))


def with_device(kind: type[Any], place: str, made: type[Device]) -> type[Table]:
    """The tables of a kind, with another device at one place, e.g. another shoe."""

    class Other(kind):  # type: ignore[misc]
        def __init__(self, seed: int) -> None:
            super().__init__(seed)
            before, device = self.devices[place], made(random.Random(f"{made.name} {seed}"))
            self.devices[place] = device
            for name in [name for name, value in vars(self).items() if value is before]:
                setattr(self, name, device)

    return Other


class AnyShoe(Device, Protocol):
    """Any shoe, as its dealer sees it."""

    def draw(self, now: float) -> str: ...
    def shuffle(self, now: float) -> None: ...
    @property
    def left(self) -> int: ...


class ShoeTable(Ruled):
    """A table whose cards come from a shoe, the white card among them, and whose dealer has a console."""

    def __init__(self, rng: random.Random, shoe: AnyShoe, console: Console) -> None:
        """`rng` is the dealer's own. The shoe waits to be shuffled."""
        self._rng = rng
        self.shoe = shoe
        self.console = console
        self.truth: list[Truth] = []
        self._below_cut = 0
        self._cut_shown = True

    def _shuffle(self, floor: Floor, below_cut: int) -> None:
        """A new shoe, the white card before its last `below_cut` cards."""
        self.shoe.shuffle(floor.pace.now())
        self._below_cut = below_cut
        self._cut_shown = False
        floor.press(self.console, "new_shoe")

    async def _draw(self, floor: Floor) -> str:
        """The white card lies before the last cards; the dealer shows it when it comes."""
        await floor.ready()
        if self.shoe.left <= self._below_cut and not self._cut_shown:
            self._cut_shown = True
            floor.press(self.console, "cut_card")
            await floor.pace.sleep(0.5)
        card = self.shoe.draw(floor.pace.now())
        floor.stir("shoe-1")
        await self._pause(floor, 0.8, 1.6)
        return card

    async def _press_until(self, floor: Floor, key: str, phases: tuple[str, ...], reason: int = 0) -> bool:
        """A key, until the display shows what it means; whether it ever does."""
        for _ in range(PRESSES):
            await floor.ready()
            floor.press(self.console, key, reason)
            await floor.pace.sleep(1.0)
            if floor.look().phase in phases:
                return True
            await floor.pace.sleep(2.0)
        return False


async def open_bets(floor: Floor, console: Console) -> None:
    """Press the key, again and again until the display shows a round that is open: an old screen shows the last one."""
    for _ in range(PRESSES):
        floor.press(console, "bets_opened")
        if await shows(floor, lambda look: not look.over):
            return
        await floor.ready()


async def settle(floor: Floor, console: Console, rng: random.Random, mine: str = "") -> bool:
    """Give the display a moment to show the end of the round `mine`; whether that counts.

    Where the display waits for a person, in this round or in one that a stray signal opened, it is declared void.
    """
    await floor.pace.sleep(rng.uniform(2.0, 4.0))
    over = await shows(floor, lambda look: look.settled(mine))
    if not over:
        floor.press(console, "void", 2)
        await shows(floor, lambda look: look.settled(mine))
    return floor.look().ended.get(mine, over)


async def shows(floor: Floor, what: Callable[[Look], bool]) -> bool:
    """Whether the display shows it before it was lit for DISPLAY_TIMEOUT_S without showing it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + DISPLAY_TIMEOUT_S
    while not what(floor.look()) and loop.time() < until:
        if await floor.ready():  # it was dark, and may still show what was
            until = loop.time() + DISPLAY_TIMEOUT_S
        await floor.pace.sleep(0.5)
    return what(floor.look())
