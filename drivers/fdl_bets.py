"""Driver for FDL bet sensors with their jackpot panel: one chip for each seat, latched when the bets are locked.

Evidence: our own document (docs/reference/protocols/fdl_bets.md). The panel follows published table systems.
A latched seat is one wager of one chip. A sensor detects neither the value of a chip nor a second chip on top of it,
so the dealer checks both. After the lock no chip changes a bet: one that is put down is a fault, one that is taken away
is reported, because a sensor cannot distinguish the dealer who collects from a player who takes it back. A seat that
the device reports as uncertain becomes a fault and never a wager. The lock is reported once: a device that kept it over
a loss of power does not report it again.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from drivers.driver import CommandFailed, CommandRefused, Emit, Link, Sighting
from drivers.faults import Fault
from drivers.fdl_lamps import named
from drivers.fdl_session import FdlDriver, SessionOptions
from protocols.contract.commands import ClearBets, Command, Light, LockBets, SelfTest
from protocols.contract.events import (
    Amount,
    Event,
    JackpotContributed,
    JackpotPaid,
    JackpotWon,
    LampsLit,
    MachineReported,
    Pool,
    SupervisorKeyed,
    Told,
    WagerPlaced,
)
from protocols.fdl import bets as fdl_bets, frame as fdl
from protocols.fdl.lamps import MAX_PLACES, places_from_bytes, places_to_bytes

CLEARED, REMOVED = "bets_cleared", "latched_chip_removed"
_BY_HAND = "goes on; no bet of this seat is reported while it is uncertain: check the bet and settle it by hand"
FAULTS = {
    0x50: Fault(
        "bets.blocked",
        "a chip, or something else, lies on a sensor after the bets were cleared",
        "take it away; wipe the sensor's window",
        "by a person",
        _BY_HAND,
    ),
    0x51: Fault(
        "bets.flicker",
        "a sensor detects a chip intermittently",
        "lay the chip flat on the middle of the sensor; wipe the window; look for a light that shines on it",
        "by itself",
        "goes on; the chip counts if it lies still before the bets are locked",
    ),
    0x52: Fault(
        "bets.doubtful",
        "it was uncertain whether a chip lay on the sensor when the bets were locked; no bet was reported",
        "check with the supervisor whether a chip lies there; settle this bet by hand or give it back",
        "by itself",
        "goes on without this bet",
        "error",
    ),
    0x53: Fault(
        "bets.stuck_on",
        "a sensor always detects a chip",
        "wipe the window; recalibrate or replace the sensor",
        "by a person",
        _BY_HAND,
    ),
    0x54: Fault(
        "bets.stuck_off",
        "a sensor never detects a chip",
        "wipe the window; check the sensor's cable; replace it",
        "by a person",
        _BY_HAND,
    ),
    0x55: Fault(
        "bets.late",
        "a chip was put down after the bets were locked; it does not count",
        "give it back to the player",
        "by itself",
        "goes on without this bet",
    ),
    0x56: Fault(
        "bets.lamp",
        "a seat lamp is dark",
        "replace the lamp; the bet is latched all the same",
        "by a person",
        "goes on",
    ),
    0x57: Fault(
        "bets.panel",
        "a key of the panel is stuck",
        "free the key; until then lock and clear from the host",
        "by a person",
        "goes on; a stuck key counts as pressed once",
    ),
}


class BetOptions(SessionOptions, frozen=True, forbid_unknown_fields=True):
    """`seats`: the number of sensors. `bet`: the ruleset's name of the jackpot bet. `chip`: the amount of the one
    chip that is a bet, in minor units. `pool`: the jackpot on which it is staked.

    `seats` bounds commands for lamps only; a chip on another seat is reported as it lies.
    """

    seats: Annotated[int, Meta(ge=1, le=MAX_PLACES)] = 7
    bet: Annotated[str, Meta(min_length=1, max_length=64)] = "jackpot"
    chip: Amount = 1000
    pool: Pool = "table"


class FdlBets(FdlDriver):
    """One session with a set of bet sensors."""

    name: ClassVar[str] = "fdl_bets"
    title: ClassVar[str] = "Bet sensors with jackpot panel, FDL"
    icon: ClassVar[str] = "bets"
    emits: ClassVar[tuple[Told, ...]] = (
        JackpotContributed,
        JackpotPaid,
        JackpotWon,
        LampsLit,
        MachineReported,
        SupervisorKeyed,
        WagerPlaced,
    )
    Options: ClassVar[type[SessionOptions]] = BetOptions
    kind: ClassVar[int] = fdl.BET_SENSORS
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_bets.HAPPENINGS
    commands: ClassVar[tuple[type[Command], ...]] = (LockBets, ClearBets, Light, SelfTest)
    reasons: ClassVar = {
        fdl_bets.LOCKED_ALREADY: "the bets are locked already",
        fdl_bets.NOT_LOCKED: "no bets are locked",
        fdl_bets.NOT_PAID: "a jackpot that was won is not paid yet",
        fdl_bets.LATCHED: "the lamp of a latched bet stays lit until the bets are cleared",
    }

    def __init__(self, options: BetOptions, memory: bytes | None = None) -> None:
        """One session."""
        super().__init__(options, memory)
        self._options = options

    async def run(self, link: Link, emit: Emit) -> None:
        """Run the session until LinkLost or DeviceRefused."""

        async def tell(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            await emit(named(sightings, lambda seat: f"seat {seat}"), memory)

        await super().run(link, tell)

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """A happening of the sensors or the panel in the casino's words."""
        options = self._options
        match happening:
            case fdl_bets.Locked(latched):
                return tuple(
                    event
                    for seat in latched
                    for event in (
                        WagerPlaced(seat, options.bet, options.chip),
                        JackpotContributed(options.pool, options.chip, seat),
                    )
                )
            case fdl_bets.Cleared():
                return (MachineReported(CLEARED, "the latched bets were cleared"),)
            case fdl_bets.JackpotWon(seat, level):
                return (JackpotWon(options.pool, level, seat),)
            case fdl_bets.JackpotPaid(seat, level):
                return (JackpotPaid(options.pool, level, seat),)
            case fdl_bets.SupervisorKey(on):
                return (SupervisorKeyed(on),)
            case fdl_bets.Removed(seat):
                text = f"the chip of seat {seat} was taken away after the lock; its bet stays latched"
                return (MachineReported(REMOVED, text),)
            case fdl_bets.Lit(seats):
                return (LampsLit(tuple(str(seat) for seat in seats)),)
            case _:
                return None

    def order(self, command: Command) -> tuple[int, bytes]:
        """The lamps are called by their seats: "1", "2", …"""
        match command:
            case LockBets():
                return fdl_bets.LOCK, b""
            case ClearBets():
                return fdl_bets.CLEAR, b""
            case Light(lamps):
                seats = {str(seat): seat for seat in range(1, self._options.seats + 1)}
                unknown = [lamp for lamp in lamps if lamp not in seats]
                if unknown:
                    raise CommandRefused(f"there is no seat lamp {unknown[0]!r}; there are: {', '.join(seats)}")
                return fdl_bets.LIGHT, places_to_bytes(seats[lamp] for lamp in lamps)
            case _:
                return super().order(command)

    def answered(self, command: Command, data: bytes) -> dict[str, Any]:
        """The latched and doubtful seats, or the lit lamps.

        Raises CommandFailed where the answer to a lock cannot be read, or other lamps are lit than ordered.
        """
        match command:
            case LockBets():
                locked = fdl_bets.Locked.from_bytes(data)
                if isinstance(locked, fdl.Malformed):
                    raise CommandFailed("the bets are locked, and the answer does not name them: the events will")
                return {"seats": list(locked.latched), "doubtful": list(locked.doubtful)}
            case Light(lamps):
                lit = [str(seat) for seat in places_from_bytes(data)] if len(data) == 4 else []
                if set(lit) != set(lamps):
                    raise CommandFailed(f"ordered: {', '.join(lamps) or 'none'}; lit: {', '.join(lit) or 'none'}")
                return {"lamps": lit}
            case _:
                return {}

    def ends_cycle(self, event: Event) -> bool:
        """Whether the bets were cleared: the next event is of another round."""
        return isinstance(event, MachineReported) and event.code == CLEARED
