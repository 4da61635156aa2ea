"""A baccarat table: a shoe that reads its cards, the console, and a dealer who looks at the display."""

import random
from typing import Any, ClassVar

from simulators.devices.bee_tek_shoe import Shoe, TextShoe
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_continuous import ContinuousShuffler
from simulators.devices.hid_shoe import HidShoe
from simulators.tables.table import AnyShoe, Floor, ShoeTable, Truth, settle

__all__ = ["AngolaMacauTable", "AngolaTable", "BaccaratTable", "ContinuousTable", "ScannerTable"]

# What the display shows after a coup was declared void. If it still shows the coup, the declaration did not arrive.
VOID = ("idle", "burning", "ended")


class BaccaratTable(ShoeTable):
    """A Bee-Tek shoe."""

    ruleset: ClassVar[str] = "macau.baccarat"
    options: ClassVar[dict[str, Any]] = {"opening": "bell", "burn": "first_card", "cut_card": "last"}
    decks: ClassVar[int] = 8

    def __init__(self, seed: int) -> None:
        """The shoe and the console."""
        console = Console(random.Random(f"baccarat console {seed}"), f"SIM-C{seed}", self.decks)
        super().__init__(random.Random(f"baccarat {seed}"), self._make_shoe(seed), console)
        self.devices: dict[str, Device] = {"shoe-1": self.shoe, "console-1": self.console}

    def _make_shoe(self, seed: int) -> AnyShoe:
        return Shoe(random.Random(f"shoe {seed}"), 8, game_mode=bool(seed % 2))

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Art. 2: shuffle and burn; then coups until the white card comes; the coup under way is the last."""
        for _ in range(rounds):
            await floor.ready()
            if self._cut_shown:
                await self._new_shoe(floor)
            await self._coup(floor)

    async def _new_shoe(self, floor: Floor) -> None:
        self._shuffle(floor, 12 + self._rng.randint(0, 6))
        await floor.pace.sleep(2.0)
        first = await self._draw(floor)
        for _ in range((10 if first[0] in "TJQK" else _points([first])) - 1):
            await self._draw(floor)

    async def _coup(self, floor: Floor) -> None:
        pace, rng = floor.pace, self._rng
        await self._press_until(floor, "bets_opened", ("betting",))
        await pace.sleep(rng.uniform(12.0, 20.0))
        await self._press_until(floor, "bell", ("closed", "dealing", "suspended"))
        mine = floor.claim()
        await self._before_the_deal(floor)
        hands: dict[str, list[str]] = {"player": [], "banker": []}
        counts = await self._dealt(floor, hands) and await settle(floor, self.console, rng, mine)
        difference = _points(hands["player"]) - _points(hands["banker"])
        winner = "tie" if not difference else "player" if difference > 0 else "banker"
        self.truth.append(Truth({"hands": hands, "winner": winner} if counts else {"hands": hands}, not counts))
        await floor.ready()
        if counts:
            floor.press(self.console, "paid")
        await pace.sleep(1.0)

    async def _before_the_deal(self, floor: Floor) -> None:
        """Nothing in Macau."""

    async def _dealt(self, floor: Floor, hands: dict[str, list[str]]) -> bool:
        """Deal all cards of a coup; False if the dealer gave it up."""
        for side in ("player", "banker", "player", "banker"):
            if not await self._deal(floor, hands, side):
                return False
        player, banker = hands["player"], hands["banker"]
        if _points(player) >= 8 or _points(banker) >= 8:
            return True
        third = None
        if _points(player) <= 5:
            if not await self._deal(floor, hands, "player"):
                return False
            third = _points(player[2:])
        return not _banker_draws(_points(banker), third) or await self._deal(floor, hands, "banker")

    async def _deal(self, floor: Floor, hands: dict[str, list[str]], side: str) -> bool:
        """One card to one side, and a look at the display before the next: what it shows must be what lies there.

        False where it is not, and could not be put right.
        """
        hands[side].append(await self._draw(floor))
        look = floor.look()
        shown = look.detail.get("hands")
        wrong = look.phase == "suspended" or (shown is not None and shown != hands)
        return not wrong or await self._correct(floor, hands)

    async def _correct(self, floor: Floor, hands: dict[str, list[str]]) -> bool:
        """Art. 10: the supervisor comes, and enters the hands as they lie if the display still needs them.

        If the console does not accept them the coup is declared void.
        """
        await floor.pace.sleep(self._rng.uniform(3.0, 8.0))
        await floor.ready()
        look = floor.look()
        if look.phase != "suspended" and look.detail.get("hands") == hands:
            return True
        self.console.supervisor_key(on=True, now=floor.pace.now())
        taken = self.console.correct(hands, floor.pace.now())
        self.console.supervisor_key(on=False, now=floor.pace.now())
        floor.stir("console-1")
        if taken:
            await floor.pace.sleep(2.0)
        else:
            await self._press_until(floor, "void", VOID, 2)
        return taken


class TextShoeTable(BaccaratTable):
    """A Bee-Tek shoe whose mode sends text."""

    def _make_shoe(self, seed: int) -> AnyShoe:
        return TextShoe(random.Random(f"shoe {seed}"), 8, ten="10" if seed % 2 else "T")


class ScannerTable(BaccaratTable):
    """A shoe with a USB scanner."""

    def _make_shoe(self, seed: int) -> AnyShoe:
        return HidShoe(random.Random(f"hid shoe {seed}"), 8)


class ContinuousTable(BaccaratTable):
    """A shuffler that deals: no burn, no cut card, and the cards go back after each coup."""

    options: ClassVar[dict[str, Any]] = {"opening": "bell", "device": "continuous"}

    def _make_shoe(self, seed: int) -> AnyShoe:
        return ContinuousShuffler(random.Random(f"continuous {seed}"), f"SIM-CS{seed}")

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Play coups; the cards go back after each."""
        assert isinstance(self.shoe, ContinuousShuffler)
        self._cut_shown = True
        for _ in range(rounds):
            await floor.ready()
            await self._coup(floor)
            self.shoe.return_cards(floor.pace.now())
            floor.stir("shoe-1")
            await floor.pace.sleep(2.0)


class AngolaTable(BaccaratTable):
    """Article 10: eight cards are burnt after shuffling, and one after «nada mais» before each coup but the first."""

    ruleset: ClassVar[str] = "angola.baccarat"
    options: ClassVar[dict[str, Any]] = {"opening": "bell", "handling": "dealer", "deduction": "2_percent"}

    def __init__(self, seed: int) -> None:
        """The first shoe has to be shuffled."""
        super().__init__(seed)
        self._first = True

    async def _new_shoe(self, floor: Floor) -> None:
        self._shuffle(floor, 12 + self._rng.randint(0, 2))
        await floor.pace.sleep(2.0)
        for _ in range(8):
            await self._draw(floor)
        self._first = True

    async def _before_the_deal(self, floor: Floor) -> None:
        if not self._first:
            await self._draw(floor)
        self._first = False


class AngolaMacauTable(AngolaTable):
    """Article 11, at a single table of six decks, from a shoe with a USB scanner."""

    ruleset: ClassVar[str] = "angola.baccarat-macau"
    options: ClassVar[dict[str, Any]] = {
        "opening": "bell",
        "handling": "dealer",
        "decks": 6,
        "deduction": "5_percent",
    }
    decks: ClassVar[int] = 6

    def _make_shoe(self, seed: int) -> AnyShoe:
        return HidShoe(random.Random(f"hid shoe {seed}"), self.decks)


def _points(cards: list[str]) -> int:
    return sum("A23456789".find(card[0]) + 1 for card in cards) % 10


def _banker_draws(banker: int, third: int | None) -> bool:
    """The table of the third card: the banker's points against the player's third card."""
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
