"""The dealer of a wheel that is turned by hand: what the console tells, resolved by the ruleset."""

import asyncio

from helpers import floor, results, script, virtual_time

from drivers.fdl_console import ConsoleOptions, FdlConsole
from protocols.contract.events import BallChanged, BallLaunched, DealerRelieved, Event
from protocols.fdl import frame as fdl
from rules.angola.french_roulette import FrenchRoulette, FrenchRouletteOptions
from rules.engine.ruleset import Verdict
from simulators.clock import Pace
from simulators.tables.roulette import FrenchRouletteTable
from simulators.tables.table import Look


class Shift:
    """A table whose console is read by the driver's translation, and whose display shows the ruleset's view."""

    def __init__(self, seed: int) -> None:
        self.table = FrenchRouletteTable(seed)
        self.events: list[Event] = []
        self.verdicts: list[Verdict] = []
        self._ended: dict[str, bool] = {}
        self._driver = FdlConsole(ConsoleOptions())
        self._ruleset = FrenchRoulette(FrenchRouletteOptions(payment="console"))
        self._state = self._ruleset.start("frr-1")
        self.table.console.record = self._record  # type: ignore[method-assign]

    def _record(self, happening: fdl.Happening, now: float) -> None:  # noqa: ARG002 - as the console's
        for event in self._driver.translate(happening) or ():
            self.events.append(event)
            seen = script(self.events, "frr-1")[-1]
            self._state, verdicts = self._ruleset.apply(self._state, seen)
            self.verdicts += verdicts
            self._ended |= {result.round: result.void is None for result in results(verdicts)}

    def look(self) -> Look:
        view = self._ruleset.view(self._state)
        return Look(view.phase, view.round, view.detail, dict(self._ended))

    async def deal(self, rounds: int) -> None:
        pace = Pace()
        self.table.console.wake(pace.now())
        await asyncio.sleep(10)  # the console boots
        self.table.console.wake(pace.now())
        await self.table.deal(floor(self.look, pace), rounds)


@virtual_time
async def test_what_the_dealer_enters_is_what_is_resolved() -> None:
    shift = Shift(3)
    await shift.deal(150)
    told = results(shift.verdicts)
    assert [one.outcome.get("pocket") if one.void is None else None for one in told] == [
        one.outcome["pocket"] if not one.void else None for one in shift.table.truth
    ]
    assert 0 < sum(one.void for one in shift.table.truth) < 20
    assert not [note for one in told for note in one.irregularities]


@virtual_time
async def test_ball_and_dealer_change_within_the_hour_and_directions_alternate() -> None:
    shift = Shift(4)
    await shift.deal(150)
    kinds = [type(event) for event in shift.events]
    assert kinds.count(BallChanged) == kinds.count(DealerRelieved) >= 1
    directions = [event.direction for event in shift.events if isinstance(event, BallLaunched)]
    assert {"clockwise", "anticlockwise"} == set(directions)
