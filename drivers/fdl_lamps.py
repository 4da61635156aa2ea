"""Driver for FDL layout lamps: lights them by name and reports through which of them a current flows.

Evidence: our own document (docs/reference/protocols/fdl_lamps.md). `lamps.lit` is what the device measures; a lamp that
stays dark is named in its fault. The lamps are dark after a start of the device, and unknown after a long loss of the
line. The driver therefore keeps the last accepted command in its memory and repeats it once after each `device.online`
that is not continuous.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from drivers.driver import CommandFailed, CommandRefused, Emit, Link, Sighting, decode_memory
from drivers.faults import Fault
from drivers.fdl_session import FdlDriver, Memory, SessionOptions
from protocols.contract.commands import Command, Light, SelfTest
from protocols.contract.events import DeviceFaulted, DeviceOnline, Event, LampsLit, Told
from protocols.fdl import frame as fdl, lamps as fdl_lamps

__all__ = ["FAULTS", "FdlLamps", "LampOptions", "named"]

OPENING_POLL_S: Final = 0.1
OPENING_TRIES: Final = 100

_DARK = "goes on; the dealer announces what the lamps do not show"
FAULTS = {
    0x58: Fault(
        "lamps.burnt_out",
        "a lamp that should be lit is dark",
        "replace the lamp; run the self-test",
        "by a person",
        _DARK,
    ),
    0x59: Fault(
        "lamps.stuck_on",
        "a lamp that should be dark is lit",
        "cover it, so that nobody takes it for a result; replace the lamp driver",
        "by a person",
        "goes on; the dealer announces that this lamp does not count",
        "error",
    ),
    0x5A: Fault(
        "lamps.driver",
        "the lamp driver does not switch",
        "switch the device off and on; if the fault remains, replace the lamp driver",
        "by a person",
        _DARK,
    ),
    0x5B: Fault(
        "lamps.sensing",
        "the measurement of the lamps' current fails: it is unknown which lamps are lit",
        "check the lamps by eye; replace the device",
        "by a person",
        "goes on; lit lamps are not reported",
    ),
    0x5C: Fault(
        "lamps.supply",
        "the lamps have no supply",
        "check the lamp supply and its fuse",
        "by a person",
        _DARK,
    ),
}

_PLACE = re.compile(r"\(place (\d+)\)$")


def named(sightings: Iterable[Sighting], name: Callable[[int], str]) -> list[Sighting]:
    """The sightings with the name of each fault's place on the table."""

    def one(sighting: Sighting) -> Sighting:
        event = sighting.event
        if not isinstance(event, DeviceFaulted):
            return sighting
        text = _PLACE.sub(lambda found: f"({name(int(found[1]))})", event.text)
        return replace(sighting, event=replace(event, text=text))

    return [one(sighting) for sighting in sightings]


LampName = Annotated[str, Meta(min_length=1, max_length=32)]


class LampOptions(SessionOptions, frozen=True, forbid_unknown_fields=True):
    """`lamps`: their names on the layout in the order of their numbers, e.g. "start", "small", "big"."""

    lamps: Annotated[tuple[LampName, ...], Meta(min_length=1, max_length=fdl_lamps.MAX_PLACES)] = tuple(
        str(n) for n in range(1, fdl_lamps.MAX_PLACES + 1)
    )

    def __post_init__(self) -> None:
        """Raise ValueError where two lamps have the same name."""
        twice = [name for name in self.lamps if self.lamps.count(name) > 1]
        if twice:
            raise ValueError(f"two lamps are called {twice[0]!r}")


class LampMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`ordered`: the names of the last order that the device accepted; None before the first."""

    session: Memory | None = None
    ordered: tuple[str, ...] | None = None


class FdlLamps(FdlDriver):
    """One session with a set of lamps."""

    name: ClassVar[str] = "fdl_lamps"
    title: ClassVar[str] = "Lamps of the layout, FDL"
    icon: ClassVar[str] = "lamp"
    emits: ClassVar[tuple[Told, ...]] = (LampsLit,)
    Options: ClassVar[type[SessionOptions]] = LampOptions
    kind: ClassVar[int] = fdl.LAMPS
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_lamps.HAPPENINGS
    commands: ClassVar[tuple[type[Command], ...]] = (Light, SelfTest)

    def __init__(self, options: LampOptions, memory: bytes | None = None) -> None:
        """`memory` holds the session's and the last order."""
        self._kept = decode_memory(memory, LampMemory) or LampMemory()
        super().__init__(options, msgspec.json.encode(self._kept.session) if self._kept.session else None)
        self._names = options.lamps
        self._orders = asyncio.Lock()
        self._keeping = asyncio.Lock()
        self._emit: Emit | None = None
        self._taken: list[tuple[str, ...]] = []
        self._repeating: asyncio.Task[None] | None = None
        self._again = False

    async def run(self, link: Link, emit: Emit) -> None:
        """Run the session until LinkLost or DeviceRefused."""
        self._emit = emit
        try:
            await super().run(link, self._tell)
        finally:
            self._emit = None
            if self._repeating is not None:
                self._repeating.cancel()
                await asyncio.gather(self._repeating, return_exceptions=True)

    async def _tell(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        """Emit with the session's memory and the order; after a discontinuity the last order is repeated."""
        if self._emit is None:
            return
        async with self._keeping:
            if memory is not None:
                self._kept = replace(self._kept, session=decode_memory(memory, Memory))
            await self._emit(named(sightings, self._name), None if memory is None else msgspec.json.encode(self._kept))
        broken = any(isinstance(one.event, DeviceOnline) and not one.event.continuous for one in sightings)
        if broken and self._kept.ordered is not None:
            self._again = True
            if self._repeating is None or self._repeating.done():
                self._repeating = asyncio.create_task(self._repeat())

    async def _repeat(self) -> None:
        """Repeat the last command, unless one of its lamps has another name now.

        If it fails, the device's own events and faults report the lit lamps. After a further start it repeats again.
        """
        while self._again:
            self._again = False
            for _ in range(OPENING_TRIES):  # after the first contact the session opens with the next answer
                if self._session.opening:
                    break
                await asyncio.sleep(OPENING_POLL_S)
            async with self._orders:
                with contextlib.suppress(CommandRefused, CommandFailed):
                    await super().obey(Light(self._kept.ordered or ()))

    async def obey(self, command: Command) -> dict[str, Any]:
        """An order of lamps is stored once the device has accepted it, also if one of its lamps stays dark."""
        async with self._orders:
            self._taken.clear()
            try:
                return await super().obey(command)
            finally:
                for lamps in self._taken:
                    await self._remember(lamps)

    async def _remember(self, lamps: tuple[str, ...]) -> None:
        async with self._keeping:
            if self._emit is not None and lamps != self._kept.ordered:
                self._kept = replace(self._kept, ordered=lamps)
                await self._emit((), msgspec.json.encode(self._kept))

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """The lit lamps by their names on the layout."""
        match happening:
            case fdl_lamps.Lit(lamps):
                return (LampsLit(tuple(self._name(lamp) for lamp in lamps)),)
            case _:
                return None

    def order(self, command: Command) -> tuple[int, bytes]:
        """Lamps by their names."""
        match command:
            case Light(lamps):
                unknown = [lamp for lamp in lamps if lamp not in self._names]
                if unknown:
                    raise CommandRefused(f"there is no lamp {unknown[0]!r}; there are: {', '.join(self._names)}")
                return fdl_lamps.LIGHT, fdl_lamps.places_to_bytes(self._names.index(lamp) + 1 for lamp in lamps)
            case _:
                return super().order(command)

    def answered(self, command: Command, data: bytes) -> dict[str, Any]:
        """The lamps that the device measures as lit. Raises CommandFailed where others are lit than ordered."""
        if not isinstance(command, Light):
            return {}
        self._taken.append(command.lamps)
        if len(data) != 4:
            raise CommandFailed(
                "the device took the order; its answer does not name the lamps that are lit: look at them"
            )
        lit = [self._name(lamp) for lamp in fdl_lamps.places_from_bytes(data)]
        if set(lit) != set(command.lamps):
            raise CommandFailed(f"ordered: {', '.join(command.lamps) or 'none'}; lit: {', '.join(lit) or 'none'}")
        return {"lamps": lit}

    def ends_cycle(self, event: Event) -> bool:
        """Whether all lamps are dark: the next event is of another round."""
        return isinstance(event, LampsLit) and not event.lamps

    def _name(self, lamp: int) -> str:
        return self._names[lamp - 1] if lamp <= len(self._names) else f"lamp {lamp}, which has no name here"
