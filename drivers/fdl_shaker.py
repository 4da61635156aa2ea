"""Driver for an FDL dice shaker: dome, lever, motor, a reader of the faces and its lamp.

Evidence: our own document (docs/reference/protocols/fdl_shaker.md). A face that the reader cannot read is a fault and
gives no reading. Stacked, leaning or missing dice are reported as they lie, and the ruleset decides by its article.
"""

from typing import ClassVar, Final

from drivers.driver import CommandRefused
from drivers.faults import Fault
from drivers.fdl_session import FdlDriver, SessionOptions
from protocols.contract.commands import Agitate, Command, Light, SelfTest
from protocols.contract.events import (
    DiceAgitated,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceUncovered,
    Event,
    LampsLit,
    Told,
)
from protocols.fdl import frame as fdl, shaker as fdl_shaker

_AGAIN = "goes on: the dice are agitated again, or by the lever"
NOT_FINISHED: Final = 0x12
FAULTS = {
    0x10: Fault(
        "shaker.motor",
        "the motor does not follow its commands",
        "free what blocks it; agitate by the lever",
        "by itself",
        _AGAIN,
        "error",
    ),
    0x11: Fault(
        "shaker.not_started",
        "the agitation did not begin",
        "agitate by the lever; if it happens again, switch the shaker off and on",
        "by itself",
        _AGAIN,
    ),
    NOT_FINISHED: Fault(
        "shaker.not_finished",
        "the agitation did not end in time",
        "agitate by the lever; if it happens again, switch the shaker off and on",
        "by itself",
        _AGAIN,
    ),
    0x13: Fault(
        "shaker.no_shake", "the dice did not move", "agitate again; check the lever and the spring", "by itself", _AGAIN
    ),
    0x14: Fault(
        "shaker.lever_sensor",
        "the lever's sensor is stuck",
        "move the lever; clean or replace the sensor",
        "by a person",
        "pulls are not counted: agitate electronically, or void the round",
    ),
    0x15: Fault(
        "shaker.clasp",
        "a clasp of the dome is open",
        "press the dome down until both clasps shut",
        "by a person",
        "waits until the dome is shut",
    ),
    0x16: Fault(
        "shaker.dice_count",
        "there are too many or too few dice",
        "void the round; count the dice, look for the missing one, inspect the set",
        "by a person",
        "waits for a person: such a reading is no throw",
        "error",
    ),
    0x17: Fault(
        "shaker.reader",
        "the faces cannot be read",
        "clean the window; enter the faces by hand",
        "by a person",
        "waits until the faces are entered by hand",
    ),
    0x18: Fault("shaker.lamp", "the reading lamp is dark", "replace the lamp", "by a person", "goes on"),
    0x19: Fault(
        "shaker.foreign_object",
        "a foreign object lies under the dome",
        "void the round; take it out, inspect the dice",
        "by a person",
        "waits for a person: nothing is read while it lies there",
        "error",
    ),
}


LAMPS = {"reading": fdl_shaker.READING_LAMP}


class FdlShaker(FdlDriver):
    """One session with a shaker."""

    name: ClassVar[str] = "fdl_shaker"
    title: ClassVar[str] = "Dice shaker with electronic agitation, FDL"
    icon: ClassVar[str] = "shaker"
    emits: ClassVar[tuple[Told, ...]] = (DiceAgitated, DiceCovered, DiceDisturbed, DiceRead, DiceUncovered, LampsLit)
    kind: ClassVar[int] = fdl.SHAKER
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_shaker.HAPPENINGS
    beside: ClassVar = {NOT_FINISHED: DiceDisturbed()}
    commands: ClassVar[tuple[type[Command], ...]] = (Agitate, Light, SelfTest)

    def __init__(self, options: SessionOptions, memory: bytes | None = None) -> None:
        """The state of the dome is unknown until the shaker reports it; the shaker itself refuses unsafe commands."""
        super().__init__(options, memory)
        self._dome_open = False

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """A shaker's happening in the casino's words."""
        match happening:
            case fdl_shaker.Covered():
                self._dome_open = False
                return (DiceCovered(),)
            case fdl_shaker.Uncovered():
                self._dome_open = True
                return (DiceUncovered(),)
            case fdl_shaker.Agitated(mode, cycles):
                return (DiceAgitated("lever" if mode == fdl_shaker.LEVER else "electronic", cycles),)
            case fdl_shaker.Read(faces, stacked, leaning):
                return (DiceRead(faces, stacked, leaning),)
            case fdl_shaker.Lit(lamps):
                return (LampsLit(tuple(name for name, bit in LAMPS.items() if lamps & bit)),)
            case _:
                return None

    def order(self, command: Command) -> tuple[int, bytes]:
        """Code and data of a command. Refuses agitation while the dome is open."""
        match command:
            case Agitate(cycles):
                if self._dome_open:
                    raise CommandRefused("the dome is open: cover the dice first")
                return fdl_shaker.AGITATE, bytes((cycles,))
            case Light(lamps):
                unknown = [lamp for lamp in lamps if lamp not in LAMPS]
                if unknown:
                    raise CommandRefused(f"the shaker has no lamp {unknown[0]!r}; it has: {', '.join(LAMPS)}")
                return fdl_shaker.LIGHT, bytes((sum(LAMPS[lamp] for lamp in set(lamps)),))
            case _:
                return super().order(command)

    def ends_cycle(self, event: Event) -> bool:
        """Whether a throw of flat dice was read."""
        return isinstance(event, DiceRead) and not event.stacked and not event.leaning
