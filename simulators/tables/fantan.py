"""A fantan table: a counter of buttons, the four lamps of the layout, betting terminals, and the console."""

import random
from typing import Any, ClassVar

from simulators.devices.bet_terminals import BetTerminals
from simulators.devices.device import Device
from simulators.devices.fdl_buttons import ButtonCounter
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_lamps import Lamps
from simulators.tables.players import Laid, Players
from simulators.tables.table import Floor, Ruled, Settled, Truth, open_bets, settle, shows

__all__ = ["FantanTable"]


class FantanTable(Ruled):
    """If the camera gives no count the dealer counts and enters it; sometimes there is a second count."""

    ruleset: ClassVar[str] = "macau.fantan"
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, seed: int) -> None:
        """A button breaks now and then."""
        self._rng = random.Random(f"fantan {seed}")
        self.counter = ButtonCounter(random.Random(f"counter {seed}"), f"SIM-BC{seed}")
        self.lamps = Lamps(random.Random(f"fantan lamps {seed}"), f"SIM-L{seed}")
        self.console = Console(random.Random(f"fantan console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {
            "counter-1": self.counter,
            "lamps-1": self.lamps,
            "console-1": self.console,
        }
        terminals = BetTerminals(random.Random(f"fantan terminals {seed}"), f"f{seed}")
        self.devices["terminals-1"] = terminals
        self.players = Players(random.Random(f"fantan players {seed}"), terminals)
        self.truth: list[Truth] = []

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Arts. 2 to 5: set apart and cover, bets, bell, lift, count by fours, light the lamp, pay."""
        for _ in range(rounds):
            await floor.ready()
            if self._rng.random() < 0.04:
                self.counter.inject("broken_button", floor.pace.now())
            self.truth.append(await self._round(floor))
            await self._pay(floor, paid=not self.truth[-1].void)

    async def _round(self, floor: Floor) -> Truth:
        """The true outcome; void if the cup fell over, or the display did not show the end of the count."""
        self.players.begin()
        await self._separate(floor)
        noticed = self._rng.random() < 0.5
        while self.counter.knocked_over and noticed:  # the cup fell over before the bets: set apart another heap
            await self._separate(floor)
        await open_bets(floor, self.console)
        await self._bets(floor)
        await self._pause(floor, 4.0, 8.0)
        await floor.ready()
        if self.counter.knocked_over:
            floor.press(self.console, "void", 4)
            await settle(floor, self.console, self._rng, floor.look().round)
            return Truth({}, void=True)
        floor.press(self.console, "bell")
        await self._pause(floor, 1.0, 2.0)
        await floor.ready()
        mine = floor.claim()
        if floor.look().phase == "closed" and self.players.rng.random() < 0.3:
            self.players.place(floor, self._seat(), _bet(self.players.rng), 1000, floor.look().round)
            await floor.pace.sleep(1.0)
        told = self.counter.count(floor.pace.now())
        floor.stir("counter-1")
        await self._pause(floor, 3.0, 5.0)
        if told is None and not floor.look().over:
            await self._enter(floor, *self.counter.lie())
        counts = await settle(floor, self.console, self._rng, mine)
        shown = mine in floor.look().ended
        whole, fragments = self.counter.lie()
        outcome = {"number": _left(whole), "count": whole, "fragments": fragments}
        if counts and self._rng.random() < 0.1:  # after taking away fours the dealer knows only the remainder
            await self._enter(floor, _left(whole), 0)
            if not shown:  # this may then be the first reported count
                outcome = {"number": _left(whole)}
        if self.players.rng.random() < 0.2:
            self.players.repeat(floor)
        laid = await self.players.laid(floor)
        return Truth(outcome, not counts, None if laid is None else _settled(laid, _left(whole)))

    def _seat(self) -> int:
        return self.players.rng.randint(1, SEATS)

    async def _bets(self, floor: Floor) -> None:
        """Art. 6: some players bet, and sometimes one takes a part back."""
        rng = self.players.rng
        for _ in range(rng.randint(0, MOST_BETS)):
            seat, bet, amount = self._seat(), _bet(rng), rng.randint(1, 40) * 25
            self.players.place(floor, seat, bet, amount)
            await floor.pace.sleep(rng.uniform(0.5, 1.5))
            if rng.random() < 0.15:
                self.players.withdraw(floor, seat, bet, amount // 2 or amount)
        await floor.pace.sleep(rng.uniform(1.0, 4.0))

    async def _separate(self, floor: Floor) -> None:
        """Set a heap under the cup. If the display does not show it, press the console's key."""
        await floor.ready()
        self.counter.separate(floor.pace.now())
        floor.stir("counter-1")
        await self._pause(floor, 1.0, 2.0)
        if not await shows(floor, lambda look: bool(look.detail.get("separated"))):
            floor.press(self.console, "buttons_separated")
            await self._pause(floor, 1.0, 2.0)

    async def _enter(self, floor: Floor, count: int, fragments: int) -> None:
        for _ in range(2):
            await floor.ready()
            self.console.enter_buttons(count, fragments, floor.pace.now())
            floor.stir("console-1")
            await floor.pace.sleep(1.5)

    async def _pay(self, floor: Floor, *, paid: bool) -> None:
        await floor.ready()
        if paid:
            await floor.tell("lamps-1", "light", {"lamps": [str(_left(self.counter.lie()[0]))]})
            await self._pause(floor, 3.0, 5.0)
            floor.press(self.console, "paid")
            await floor.tell("lamps-1", "light", {"lamps": []})
        await floor.pace.sleep(1.0)


# Arts. 6, 7: how many numbers win, how many bring the bet back, and the prize as a fraction of the bet.
_BETS = {
    "kuoc": (2, 0, 1, 1),
    "fan": (1, 0, 3, 1),
    "nim": (1, 1, 2, 1),
    "nga": (2, 1, 1, 2),
    "sesamhong": (3, 0, 1, 3),
}
SEATS, MOST_BETS = 9, 5


def _bet(rng: random.Random) -> str:
    """Any bet of the layout; those that win in any order are named in the order of the numbers."""
    family, (wins, back, *_) = rng.choice(list(_BETS.items()))
    numbers = rng.sample(range(1, 5), wins + back)
    return ":".join((family, "-".join(map(str, (*sorted(numbers[:wins]), *numbers[wins:])))))


def _settled(laid: Laid, left: int) -> Settled:
    """Arts. 7 to 9: the prize less five per cent, in whole minor units; on some numbers the bet comes back."""
    settled = []
    for (seat, bet), stake in laid.items():
        family, _, numbers = bet.partition(":")
        wins, _, times, over = _BETS[family]
        places = [int(number) for number in numbers.split("-")]
        prize = stake * times * 95 // (over * 100)
        returned = stake + prize if left in places[:wins] else stake if left in places[wins:] else 0
        settled.append((seat, 0, bet, stake, returned))
    return tuple(sorted(settled))


def _left(buttons: int) -> int:
    """Taken away by fours, as the wand does it, until no more than four are left."""
    while buttons > 4:
        buttons -= 4
    return buttons
