"""Simulated tables: a dealer who plays a game with simulated devices and knows what truly happened.

The dealer knows the game by heart, as dealers do, independently of the rulesets: `truth` is what each round really
was, for whoever compares it with what came out at the other end. Nothing is faster than hands.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from protocols.cammegh_ss2 import State
from simulators.bee_tek_shoe import Shoe
from simulators.cammegh_ss2 import ARCADE, STARTED_AFTER_NUMBER, Wheel
from simulators.clock import Pace
from simulators.device import Device
from simulators.fdl_console import Console
from simulators.fdl_shaker import Shaker
from simulators.port import Socket

__all__ = ["BaccaratTable", "CussecTable", "Floor", "RouletteTable", "Table", "Truth"]


class Truth(Struct, frozen=True):
    """One round as it truly was: the facts of its outcome, or void."""

    outcome: dict[str, Any]
    void: bool = False


class Floor(Struct, frozen=True):
    """What a dealer stands at: the devices' sockets, the pace, and whether the table may be played on.

    `ready` waits until all devices of the table are known to be online: nobody deals at a dark table.
    """

    sockets: dict[str, Socket]
    pace: Pace
    ready: Callable[[], Awaitable[None]]

    def press(self, console: Console, key: str) -> None:
        """A key of the console."""
        console.press(key, self.pace.now())
        self.sockets["console-1"].stir()


class Table(Protocol):
    """One table with its devices and its dealer."""

    ruleset: ClassVar[str]
    options: ClassVar[dict[str, Any]]
    devices: dict[str, Device]

    @property
    def truth(self) -> list[Truth]:
        """How the rounds dealt so far truly ended."""
        ...

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Play `rounds` rounds."""
        ...


class RouletteTable:
    """A wheel that runs by itself and a console."""

    ruleset: ClassVar[str] = "macau.roulette"
    options: ClassVar[dict[str, Any]] = {"betting": "no_more_bets"}

    def __init__(self, seed: int) -> None:
        """Odd seeds show the wheel's pause before each game."""
        rng = random.Random(f"roulette {seed}")
        mode = ARCADE if seed % 2 else ARCADE - STARTED_AFTER_NUMBER
        self._rng = rng
        self.wheel = Wheel(random.Random(f"wheel {seed}"), mode=mode, closed=True)
        self.console = Console(random.Random(f"roulette console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {"wheel-1": self.wheel, "console-1": self.console}

    @property
    def truth(self) -> list[Truth]:
        """The wheel knows."""
        return [Truth({}, void=True) if spin.reason else Truth({"pocket": spin.pocket}) for spin in self.wheel.truth]

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Open the table; ring at no more bets; pay, and open the bets again; close after the last round."""
        pace = floor.pace
        await floor.ready()
        self.wheel.open_table(pace.now())
        floor.sockets["wheel-1"].stir()
        paid = len(self.wheel.truth)
        before = self.wheel.state
        while len(self.wheel.truth) < rounds or paid < len(self.wheel.truth):
            await pace.sleep(0.25)
            state = self.wheel.state
            if state is State.NO_MORE_BETS and before is not state:
                await pace.sleep(self._rng.uniform(0.2, 1.0))
                floor.press(self.console, "bell")
            before = state
            if len(self.wheel.truth) > paid:
                paid = len(self.wheel.truth)
                if paid >= rounds:
                    self.wheel.close_table()
                    floor.sockets["wheel-1"].stir()
                await pace.sleep(self._rng.uniform(2.0, 4.0))
                floor.press(self.console, "paid")
                await pace.sleep(1.0)
                if paid < rounds:
                    floor.press(self.console, "bets_opened")


class CussecTable:
    """A shaker and a console."""

    ruleset: ClassVar[str] = "macau.cussec"
    options: ClassVar[dict[str, Any]] = {"payment": "console"}

    def __init__(self, seed: int) -> None:
        """Some throws end stacked or leaning."""
        self._rng = random.Random(f"cussec {seed}")
        self.shaker = Shaker(random.Random(f"shaker {seed}"), f"SIM-S{seed}")
        self.console = Console(random.Random(f"cussec console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {"shaker-1": self.shaker, "console-1": self.console}
        self.truth: list[Truth] = []

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Arts. 2 to 4: cover, three pulls, bets, bell, uncover, read, pay."""
        pace = floor.pace
        rng = self._rng

        async def act(do: Callable[[float], Any]) -> Any:
            done = do(pace.now())
            floor.sockets["shaker-1"].stir()
            await pace.sleep(rng.uniform(0.6, 1.4))
            return done

        for _ in range(rounds):
            await floor.ready()
            if rng.random() < 0.04:
                self.shaker.inject(rng.choice(("dice_stacked", "dice_leaning")), pace.now())
            await act(self.shaker.cover)
            for _ in range(3):
                await act(self.shaker.pull_lever)
            floor.press(self.console, "bets_opened")
            await pace.sleep(rng.uniform(12.0, 20.0))
            floor.press(self.console, "bell")
            await pace.sleep(rng.uniform(1.0, 2.0))
            await act(self.shaker.uncover)
            faces, stacked, leaning = await act(self.shaker.read)
            void = bool(stacked or leaning)
            self.truth.append(Truth({} if void else {"faces": sorted(faces)}, void))
            await pace.sleep(rng.uniform(2.0, 5.0))
            if not void:
                floor.press(self.console, "paid")
            await pace.sleep(1.0)


class BaccaratTable:
    """A card-reading shoe and a console."""

    ruleset: ClassVar[str] = "macau.baccarat"
    options: ClassVar[dict[str, Any]] = {"opening": "bell", "burn": "first_card", "cut_card": "last"}

    def __init__(self, seed: int) -> None:
        """Eight decks."""
        self._rng = random.Random(f"baccarat {seed}")
        self.shoe = Shoe(random.Random(f"shoe {seed}"), 8, game_mode=bool(seed % 2))
        self.console = Console(random.Random(f"baccarat console {seed}"), f"SIM-C{seed}", 8)
        self.devices: dict[str, Device] = {"shoe-1": self.shoe, "console-1": self.console}
        self.truth: list[Truth] = []
        self._below_cut = 0
        self._cut_shown = True

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Art. 2: shuffle and burn; then coups until the white card comes, and the one under way is the last."""
        for _ in range(rounds):
            await floor.ready()
            if self._cut_shown:
                await self._new_shoe(floor)
            await self._coup(floor)

    async def _new_shoe(self, floor: Floor) -> None:
        self.shoe.shuffle(floor.pace.now())
        self._below_cut = 12 + self._rng.randint(0, 6)
        self._cut_shown = False
        floor.press(self.console, "new_shoe")
        await floor.pace.sleep(2.0)
        first = await self._draw(floor)
        for _ in range((10 if first[0] in "TJQK" else _points([first])) - 1):
            await self._draw(floor)

    async def _draw(self, floor: Floor) -> str:
        """The white card lies before the last cards; the dealer shows it when it comes."""
        if self.shoe.left <= self._below_cut and not self._cut_shown:
            self._cut_shown = True
            floor.press(self.console, "cut_card")
            await floor.pace.sleep(0.5)
        card = self.shoe.draw(floor.pace.now())
        floor.sockets["shoe-1"].stir()
        await floor.pace.sleep(self._rng.uniform(0.8, 1.6))
        return card

    async def _coup(self, floor: Floor) -> None:
        pace, rng = floor.pace, self._rng
        floor.press(self.console, "bets_opened")
        await pace.sleep(rng.uniform(12.0, 20.0))
        floor.press(self.console, "bell")
        await pace.sleep(1.0)
        player, banker = [await self._draw(floor)], [await self._draw(floor)]
        player.append(await self._draw(floor))
        banker.append(await self._draw(floor))
        if _points(player) < 8 and _points(banker) < 8:
            third = None
            if _points(player) <= 5:
                player.append(await self._draw(floor))
                third = _points(player[2:])
            if _banker_draws(_points(banker), third):
                banker.append(await self._draw(floor))
        difference = _points(player) - _points(banker)
        winner = "tie" if not difference else "player" if difference > 0 else "banker"
        self.truth.append(Truth({"hands": {"player": player, "banker": banker}, "winner": winner}))
        await pace.sleep(rng.uniform(3.0, 6.0))
        floor.press(self.console, "paid")
        await pace.sleep(1.0)


def _points(cards: list[str]) -> int:
    return sum("A23456789".find(card[0]) + 1 for card in cards) % 10


def _banker_draws(banker: int, third: int | None) -> bool:
    """As it stands on the card every dealer carries: banker's points against the player's third card."""
    if third is None:
        return banker <= 5
    return (
        third
        in {
            0: range(10),
            1: range(10),
            2: range(10),
            3: (0, 1, 2, 3, 4, 5, 6, 7, 9),
            4: (2, 3, 4, 5, 6, 7),
            5: (4, 5, 6, 7),
            6: (6, 7),
            7: (),
        }[banker]
    )
