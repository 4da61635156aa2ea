"""Simulated tables: dealers who play with simulated devices, and the true outcomes.

A dealer knows the game independently of the rulesets: `truth` holds what each round really was, to compare with the
published results. No act is faster than by hand. A dealer follows the table's display, as the procedure of a house
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
# Real seconds, not simulated ones: faster hands make neither processes nor the broker faster.
DISPLAY_TIMEOUT_S = 6.0
# How often a dealer presses a key while the display does not follow.
PRESSES = 60


Settled: TypeAlias = tuple[tuple[int, int, str, int, int], ...]
"""Seat, hand, bet, stake and the amount returned of each wager, in order."""


class Truth(Struct, frozen=True):
    """One round as it truly was: the facts of its outcome, or void.

    Both, if the dealer gave it up because of his display: then either is right. `settled`: the settlement of its wagers
    by the table's own count; None if it is not known.
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
        """Whether no round is open."""
        return self.phase not in OPEN

    @property
    def mine(self) -> str:
        """The shown round; none if it has ended: after an outage the broker may show an outdated screen."""
        return "" if self.round in self.ended else self.round

    def settled(self, mine: str) -> bool:
        """Whether no round is open, and the screen is not that of a round before `mine`."""
        outdated = bool(mine) and mine not in self.ended and self.round in self.ended
        return self.over and not outdated


class Floor(Struct, frozen=True):
    """The surroundings of a dealer: the devices' sockets, the pace, the display, and commands to the devices.

    `ready` waits until all devices of the table are known to be online, and returns whether it had to wait: a dealer
    does not deal while the display is dark. `tell` gives a device a command and returns its result: done, refused or
    failed.
    """

    sockets: dict[str, Socket]
    pace: Pace
    ready: Callable[[], Awaitable[bool]]
    look: Callable[[], Look]
    tell: Callable[[str, str, dict[str, Any]], Awaitable[str]]
    claimed: set[str] = msgspec.field(default_factory=set)

    def claim(self) -> str:
        """Take the shown round as the one that the dealer deals now; none if he dealt it before: the screen is
        outdated.

        Its end may become visible while he deals the next round, and must not be taken for that round's end.
        """
        mine = self.look().mine
        if mine in self.claimed:
            return ""
        self.claimed.add(mine)
        return mine

    def press(self, console: Console, key: str, reason: int = 0) -> None:
        """Press a key of the console."""
        console.press(key, self.pace.now(), reason)
        self.stir("console-1")

    def stir(self, device: str) -> None:
        """Call after an act on a device."""
        self.sockets[device].stir()


class GivenUpError(Exception):
    """The display never shows what lies on the table: the dealer gives the round up."""


class Table(Protocol):
    """One table with its devices and its dealer.

    With an empty `ruleset` no game is resolved: the truth is compared with events, which `outcome` selects.
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
        """The outcome that an event reports at a table without a ruleset; None for other events."""
        ...

    def hurry(self, times: float) -> None:
        """Before the first round: let the machines run `times` faster than real ones."""
        ...

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Play `rounds` rounds."""
        ...


class Ruled:
    """A table whose rounds a ruleset resolves: single events are no outcome."""

    _rng: random.Random
    """The dealer's own."""

    def outcome(self, type_: str, data: dict[str, Any]) -> dict[str, Any] | None:  # noqa: ARG002 - as every table
        """No outcome."""
        return None

    def hurry(self, times: float) -> None:
        """No effect: the dealer waits for no machine here."""

    async def _pause(self, floor: Floor, least: float, most: float) -> None:
        await floor.pace.sleep(self._rng.uniform(least, most))


def with_device(kind: type[Any], place: str, made: type[Device]) -> type[Table]:
    """The same kind of table with another device at one place, e.g. another shoe."""

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
        """Draw the next card; the dealer shows the white card when it comes."""
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
        """Press a key until the display shows its effect; whether it did."""
        for _ in range(PRESSES):
            await floor.ready()
            floor.press(self.console, key, reason)
            await floor.pace.sleep(1.0)
            if floor.look().phase in phases:
                return True
            await floor.pace.sleep(2.0)
        return False


async def open_bets(floor: Floor, console: Console) -> None:
    """Press the key again and again until the display shows an open round: an outdated screen shows the last one."""
    for _ in range(PRESSES):
        floor.press(console, "bets_opened")
        if await shows(floor, lambda look: not look.over):
            return
        await floor.ready()


async def settle(floor: Floor, console: Console, rng: random.Random, mine: str = "") -> bool:
    """Give the display a moment to show the end of the round `mine`; whether the round counts.

    If this round, or one that a stray signal opened, is still open on the display, it is declared void.
    """
    await floor.pace.sleep(rng.uniform(2.0, 4.0))
    over = await shows(floor, lambda look: look.settled(mine))
    if not over:
        floor.press(console, "void", 2)
        await shows(floor, lambda look: look.settled(mine))
    return floor.look().ended.get(mine, over)


async def shows(floor: Floor, what: Callable[[Look], bool]) -> bool:
    """Whether the display shows it within DISPLAY_TIMEOUT_S of being lit."""
    loop = asyncio.get_running_loop()
    until = loop.time() + DISPLAY_TIMEOUT_S
    while not what(floor.look()) and loop.time() < until:
        if await floor.ready():  # it was dark, and may still show an old state
            until = loop.time() + DISPLAY_TIMEOUT_S
        await floor.pace.sleep(0.5)
    return what(floor.look())
