"""The interface of a driver: it speaks one vendor's protocol over a link and emits events in the casino's words.

A driver never opens a port and never reconnects. `run` is straight-line code and ends with LinkLost (the link is gone,
or nothing arrives), DeviceRefused (the device cannot be used) or cancellation. Any other exception is a bug.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from drivers.faults import Fault
from protocols.contract.commands import Command
from protocols.contract.events import Event, Told
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
    "WireDecoder",
    "decode_memory",
]

_Memory = TypeVar("_Memory")
Evidence: TypeAlias = Literal["manual", "capture", "hardware", "reference protocol", "public code"]


class Decoder(Protocol):
    """Reads one direction of a wire."""

    def feed(self, data: bytes) -> list[Any]:
        """The messages completed by `data`."""
        ...


WireDecoder: TypeAlias = Callable[[], Decoder]


class Sighting(msgspec.Struct, frozen=True):
    """One event with the wire bytes it was read from, and the chunk in which the last of them arrived.

    A device with a memory also gives `age`, the seconds between the event and its report by the device's own clock, and
    `behind`, how many more events from before it still holds.
    """

    event: Event
    wire: bytes
    chunk: Chunk
    age: float = 0.0
    behind: int = 0


class Emit(Protocol):
    """Takes the events of a driver."""

    async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        """Return when all sightings are durable, in order. Only then may a driver acknowledge them to its device.

        `memory` is handed to the next instance of the driver, also after a restart. It is committed together with the
        sightings. None keeps the last one.
        """
        ...


class Driver(Protocol):
    """One session with one device. `memory` is what the last session committed last, with events or without."""

    name: ClassVar[str]
    title: ClassVar[str]
    icon: ClassVar[str]
    """The icon of its kind of device: a name in daemon/console/templates/_icons.html."""
    decoder: ClassVar[WireDecoder | None]
    """The decoder of a live trace; None where an answer can be read only with its question."""
    evidence: ClassVar[tuple[Evidence, ...]]
    """The sources that it was written from; `caveat` names what is assumed or was never tried."""
    Options: ClassVar[type[Any]]
    faults: ClassVar[tuple[Fault, ...]]
    commands: ClassVar[tuple[type[Command], ...]]
    emits: ClassVar[tuple[Told, ...]]
    """The events of the table that it reports, besides those of every device: docs/reference/devices-and-games.md."""
    tells_cards: ClassVar[bool]
    """Whether its bytes may contain a card that is still hidden."""

    def __init__(self, options: Any, memory: bytes | None = None) -> None: ...

    async def run(self, link: Link, emit: Emit) -> None:
        """Run the session until the link is lost."""
        ...


def decode_memory(memory: bytes | None, kind: type[_Memory]) -> _Memory | None:
    """What the last session stored; None if it stored nothing, or the bytes are not a `kind`."""
    try:
        return msgspec.json.decode(memory or b"", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class CommandRefused(Exception):
    """The command was not executed: it is unsafe now, or the device refused. The message gives the reason."""


class CommandFailed(Exception):
    """The command was sent, and its outcome is wrong or unknown. The message states what is known."""


@runtime_checkable
class Obeys(Protocol):
    """A driver that takes commands while `run` runs."""

    async def obey(self, command: Command) -> dict[str, Any]:
        """Return the device's answer when it has executed the command, or accepted it and reports the rest by events.

        Receives only kinds in the driver's `commands`. Raises CommandRefused or CommandFailed. Never waits longer than
        the device may take. Cancelled when the session ends.
        """
        ...
