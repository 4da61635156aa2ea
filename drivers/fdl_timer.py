"""Driver for an FDL betting timer: shows the players how long they may bet, and closes the bets at the end.

Evidence: our own document (docs/reference/protocols/fdl_timer.md). A timer must never close the bets of another round:
an expiry that is reported more than `stale` seconds late, or without its age, is reported and closes nothing.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from drivers.driver import Emit, Link, Sighting
from drivers.faults import Fault
from drivers.fdl_session import FdlDriver, SessionOptions
from protocols.contract.commands import Command, SelfTest, StartTimer, StopTimer
from protocols.contract.events import BetsClosed, BetsOpened, Event, MachineReported, Told
from protocols.fdl import frame as fdl, timer as fdl_timer

FAULTS = {
    0x64: Fault(
        "timer.display",
        "the display is dark or does not show the time",
        "check its cable; announce the betting time aloud and ring by hand",
        "by a person",
        "goes on; the timer does not start while its display fails",
    ),
    0x65: Fault(
        "timer.beeper",
        "the beeper does not sound",
        "ring by hand when the time is over; replace the beeper",
        "by a person",
        "goes on; the bets are closed all the same",
    ),
    0x66: Fault(
        "timer.interrupted",
        "the power failed while the time ran; the bets were not closed",
        "close the bets by the bell, or start the time again",
        "by itself",
        "goes on: the bets stay open until the dealer closes them",
    ),
    0x67: Fault(
        "timer.key",
        "the timer's key is stuck",
        "free the key; start the time from the host until then",
        "by a person",
        "goes on; a stuck key counts as pressed once",
    ),
}


class TimerOptions(SessionOptions, frozen=True, forbid_unknown_fields=True):
    """`opens`: the start of the countdown opens the bets, too. `stale`: seconds; a later expiry closes nothing."""

    opens: bool = False
    stale: Annotated[float, Meta(ge=1, le=60)] = 10.0


class FdlTimer(FdlDriver):
    """One session with a timer."""

    name: ClassVar[str] = "fdl_timer"
    title: ClassVar[str] = "Betting timer, FDL"
    icon: ClassVar[str] = "timer"
    emits: ClassVar[tuple[Told, ...]] = (BetsClosed, BetsOpened, MachineReported)
    Options: ClassVar[type[SessionOptions]] = TimerOptions
    kind: ClassVar[int] = fdl.TIMER
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_timer.HAPPENINGS
    commands: ClassVar[tuple[type[Command], ...]] = (StartTimer, StopTimer, SelfTest)
    reasons: ClassVar = {fdl_timer.NOT_RUNNING: "no time is running"}

    def __init__(self, options: TimerOptions, memory: bytes | None = None) -> None:
        """One session."""
        super().__init__(options, memory)
        self._opens = options.opens
        self._stale = options.stale

    async def run(self, link: Link, emit: Emit) -> None:
        """Run the session until LinkLost or DeviceRefused."""

        async def timely(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            await emit([self._timely(one) for one in sightings], memory)

        await super().run(link, timely)

    def _timely(self, sighting: Sighting) -> Sighting:
        match sighting.event:
            case BetsClosed():
                what = "closed"
            case BetsOpened():
                what = "opened"
            case _:
                return sighting
        if _dated(sighting.wire) and sighting.age <= self._stale:
            return sighting
        when = f"{sighting.age:.0f} s late" if _dated(sighting.wire) else "late, by an unknown time"
        change = "ended" if what == "closed" else "began"
        text = f"the betting time {change}, reported {when}: the bets are not {what} by it"
        return replace(sighting, event=MachineReported("timer_late", text))

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """The events of a timer. A stopped time closes nothing and gives no event."""
        match happening:
            case fdl_timer.Running():
                return (BetsOpened(),) if self._opens else ()
            case fdl_timer.Expired():
                return (BetsClosed(),)
            case fdl_timer.Stopped():
                return ()
            case _:
                return None

    def order(self, command: Command) -> tuple[int, bytes]:
        """Start and stop."""
        match command:
            case StartTimer(seconds):
                return fdl_timer.START, seconds.to_bytes(2)
            case StopTimer():
                return fdl_timer.STOP, b""
            case _:
                return super().order(command)

    def ends_cycle(self, event: Event) -> bool:
        """Whether the time ran to its end."""
        return isinstance(event, BetsClosed)


def _dated(wire: bytes) -> bool:
    """Whether the event has an age: a device that lost its power sends none."""
    for frame in fdl.Decoder().feed(wire):
        if isinstance(frame, fdl.Frame):
            report = fdl.read(frame)
            return isinstance(report, fdl.EventReport) and report.age != fdl.AGE_UNKNOWN
    return False
