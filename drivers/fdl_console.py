"""A dealer's console that speaks FDL: the keys of the table and the bell (docs/protocols/fdl.md)."""

from typing import ClassVar

from drivers.driver import Emit, Evidence, Link
from drivers.fdl_session import FaultText, Session, converse
from drivers.fdl_session import Options as SessionOptions
from protocols import fdl
from protocols.events import (
    BetsClosed,
    BetsOpened,
    CutCardDrawn,
    Event,
    RoundDemo,
    RoundPaid,
    RoundVoided,
    ShoeStarted,
)

FAULTS = {
    0x20: FaultText("console.key_stuck", "a key does not come up again", "free the key; clean or replace the keypad"),
    0x21: FaultText("console.display", "the display is dark", "check its cable; the keys still work"),
    0x22: FaultText("console.bell", "the bell does not sound", "ring by hand; replace the bell"),
}

VOID_REASONS = {
    0x00: "",
    0x01: "dealing error",
    0x02: "equipment fault",
    0x03: "foreign object",
    0x04: "disturbance",
    0x05: "supervisor's decision",
}


def translate(happening: fdl.Happening) -> Event | None:
    """A console's happening in the casino's words."""
    match happening:
        case fdl.BetsOpened():
            return BetsOpened()
        case fdl.BetsClosed():
            return BetsClosed()
        case fdl.RoundVoid(reason):
            return RoundVoided(VOID_REASONS.get(reason, f"reason {reason} of the console"))
        case fdl.Paid():
            return RoundPaid()
        case fdl.NewShoe(decks):
            return ShoeStarted(decks)
        case fdl.CutCard():
            return CutCardDrawn()
        case fdl.DemoRound():
            return RoundDemo()
        case _:
            return None


class FdlConsole:
    """One session with a console."""

    name: ClassVar[str] = "fdl_console"
    title: ClassVar[str] = "Dealer's console, FDL"
    evidence: ClassVar[tuple[Evidence, ...]] = ("reference protocol",)
    Options: ClassVar[type[SessionOptions]] = SessionOptions

    def __init__(self, options: SessionOptions, memory: bytes | None = None) -> None:
        self._session = Session(fdl.CONSOLE, FAULTS, translate, options, memory)

    async def run(self, link: Link, emit: Emit) -> None:
        """Speak until the link is lost."""
        await converse(link, emit, self._session)
