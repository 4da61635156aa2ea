"""What every driver is: it speaks one vendor's wire over a link and tells what happened in the casino's words.

Rule of this floor: a driver never opens a port and never reconnects. `run` is straight-line and ends by LinkLost (link
gone or silent), DeviceRefused (the device will not work with us) or cancellation; anything else is a bug.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from drivers.faults import Fault
from protocols.contract.commands import Command
from protocols.contract.events import Event
from protocols.link import Chunk, DeviceRefused, Link, LinkLost

__all__ = [
    "Chunk",
    "CommandFailed",
    "CommandRefused",
    "DeviceRefused",
    "Driver",
    "Emit",
    "Evidence",
    "Link",
    "LinkLost",
    "Obeys",
    "Sighting",
]

Evidence: TypeAlias = Literal["manual", "capture", "hardware", "reference protocol", "public code"]


class Sighting(msgspec.Struct, frozen=True):
    """One event with the wire bytes it was read from and the chunk in which the last of them arrived.

    A device with a memory says more: `age`, seconds from the happening to its telling by the device's own clock, and
    `behind`, how many more events of before it still holds.
    """

    event: Event
    wire: bytes
    chunk: Chunk
    age: float = 0.0
    behind: int = 0


class Emit(Protocol):
    """Where a driver tells what it saw."""

    async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        """Return when all sightings are durable, in order; only then may a driver acknowledge them to its device.

        `memory` is what the driver wants handed back when it is made again, also after a restart: committed with the
        sightings or not at all. None leaves the last one standing.
        """
        ...


class Driver(Protocol):
    """One session with one device. `memory` is what the last session left with its last durable event."""

    name: ClassVar[str]
    title: ClassVar[str]
    evidence: ClassVar[tuple[Evidence, ...]]
    Options: ClassVar[type[Any]]
    faults: ClassVar[tuple[Fault, ...]]
    commands: ClassVar[tuple[type[Command], ...]]
    tells_cards: ClassVar[bool]
    """Whether a card may stand in its bytes before everybody may see it."""

    def __init__(self, options: Any, memory: bytes | None = None) -> None: ...

    async def run(self, link: Link, emit: Emit) -> None:
        """Speak until the link is lost."""
        ...


class CommandRefused(Exception):
    """The command was not carried out and nothing happened: unsafe now, or the device said no. The message says why."""


class CommandFailed(Exception):
    """The command was given and its outcome is not what was asked, or not known. The message says what is known."""


@runtime_checkable
class Obeys(Protocol):
    """A driver that takes commands, while `run` runs."""

    async def obey(self, command: Command) -> dict[str, Any]:
        """Return what the device said once it did it (or took it, where its events tell the rest).

        Only kinds in the driver's `commands` are given. Raises CommandRefused or CommandFailed; never waits longer
        than the device may take. Cancelled when the session ends.
        """
        ...
