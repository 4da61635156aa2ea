"""Driver for an FDL counter of fantan buttons: a cup with a contact, and a camera that counts the buttons.

Evidence: our own document (docs/reference/protocols/fdl_buttons.md). A count is reported when it is stable, all
buttons lie apart and nothing else lies among them. Otherwise the device reports a fault and the dealer counts by fours.
A cup lifted too early is also an event, once for each heap: the rules do not read faults, and that heap was seen.
"""

from typing import ClassVar, Final

from drivers.faults import Fault
from drivers.fdl_session import FdlDriver
from protocols.contract.events import ButtonsCounted, ButtonsSeparated, ButtonsUncovered, Event, Told
from protocols.fdl import buttons as fdl_buttons, frame as fdl

LIFTED_EARLY: Final = 0x69
_BY_HAND = "waits until the dealer has counted by fours and entered the count at the console"
FAULTS = {
    0x68: Fault(
        "buttons.unsteady",
        "two counts of the same buttons differed",
        "spread the buttons so that none touches another; else count by hand",
        "by itself",
        _BY_HAND,
    ),
    LIFTED_EARLY: Fault(
        "buttons.lifted_early",
        "the cup was lifted before the count was requested",
        "declare the round void if bets were open; separate another heap",
        "by itself",
        "waits for a person: the buttons were visible",
        "error",
    ),
    0x6A: Fault(
        "buttons.camera",
        "the camera is dirty or detects nothing",
        "wipe its window; check its lamp; count by hand until then",
        "by a person",
        _BY_HAND,
    ),
    0x6B: Fault(
        "buttons.foreign",
        "a foreign object lies among the buttons",
        "take it away with the supervisor, then count by hand",
        "by itself",
        _BY_HAND,
    ),
}


class FdlButtons(FdlDriver):
    """One session with a button counter."""

    name: ClassVar[str] = "fdl_buttons"
    title: ClassVar[str] = "Counter of fantan buttons, FDL"
    icon: ClassVar[str] = "buttons"
    emits: ClassVar[tuple[Told, ...]] = (ButtonsCounted, ButtonsSeparated, ButtonsUncovered)
    kind: ClassVar[int] = fdl.BUTTON_COUNTER
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_buttons.HAPPENINGS
    beside: ClassVar = {LIFTED_EARLY: ButtonsUncovered()}

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """Events of cup and camera. A new heap ends the state of the one before; its lifting is a new event."""
        match happening:
            case fdl_buttons.Separated():
                return (*self._session.over(FAULTS[LIFTED_EARLY].code), ButtonsSeparated())
            case fdl_buttons.Counted(count, fragments):
                return (ButtonsCounted(count, fragments),)
            case _:
                return None

    def ends_cycle(self, event: Event) -> bool:
        """Whether a heap was counted."""
        return isinstance(event, ButtonsCounted)
