"""A dice shaker that speaks FDL: dome, lever, motor and a reader of the faces (docs/protocols/fdl.md)."""

from typing import ClassVar

from drivers.driver import Emit, Evidence, Link
from drivers.fdl_session import FaultText, Session, converse
from drivers.fdl_session import Options as SessionOptions
from protocols import fdl
from protocols.events import DiceAgitated, DiceCovered, DiceRead, DiceUncovered, Event

FAULTS = {
    0x10: FaultText("shaker.motor", "the motor does not run as told", "free what blocks it; agitate by the lever"),
    0x11: FaultText("shaker.not_started", "the agitation did not begin", "switch the shaker off and on"),
    0x12: FaultText("shaker.not_finished", "the agitation did not end in its time", "switch the shaker off and on"),
    0x13: FaultText("shaker.no_shake", "the dice did not move", "agitate again; check the lever and the spring"),
    0x14: FaultText(
        "shaker.lever_sensor", "the lever's sensor is stuck", "move the lever; clean or replace the sensor"
    ),
    0x15: FaultText("shaker.clasp", "a clasp of the dome is open", "press the dome down until both clasps shut"),
    0x16: FaultText("shaker.dice_count", "there are too many or too few dice", "count the dice; inspect the set"),
    0x17: FaultText("shaker.reader", "the faces cannot be read", "clean the window; enter the faces by hand"),
}


def translate(happening: fdl.Happening) -> Event | None:
    """A shaker's happening in the casino's words."""
    match happening:
        case fdl.Covered():
            return DiceCovered()
        case fdl.Uncovered():
            return DiceUncovered()
        case fdl.Agitated(mode, cycles):
            return DiceAgitated("lever" if mode == fdl.LEVER else "electronic", cycles)
        case fdl.Read(faces, stacked, leaning):
            return DiceRead(faces, stacked, leaning)
        case _:
            return None


class FdlShaker:
    """One session with a shaker."""

    name: ClassVar[str] = "fdl_shaker"
    title: ClassVar[str] = "Dice shaker with electronic agitation, FDL"
    evidence: ClassVar[tuple[Evidence, ...]] = ("reference protocol",)
    Options: ClassVar[type[SessionOptions]] = SessionOptions

    def __init__(self, options: SessionOptions, memory: bytes | None = None) -> None:
        self._session = Session(fdl.SHAKER, FAULTS, translate, options, memory)

    async def run(self, link: Link, emit: Emit) -> None:
        """Speak until the link is lost."""
        await converse(link, emit, self._session)
