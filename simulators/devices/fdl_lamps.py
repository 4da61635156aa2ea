"""Simulated lamps of a layout that speak FDL: 32 lamps, their driver, and the measuring of their current.

`ManyPlaces` is the common part of devices with numbered places: one fault may be open at several of them.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from protocols.fdl import frame as fdl, lamps as fdl_lamps
from protocols.fdl.lamps import MAX_PLACES, places_from_bytes, places_to_bytes
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, WARNING, FdlDevice

__all__ = ["Lamps", "ManyPlaces"]

BURNT_OUT, STUCK_ON, DRIVER, SENSING, SUPPLY = range(0x58, 0x5D)
STANDING_FAULT, RANGE = 0x02, 0x04
FRAGILE: Final = 1  # the lamp that has the faults: the first of every layout


class ManyPlaces(FdlDevice):
    """A device whose faults have places; a fault ends when it has ended at every place."""

    def __init__(self, rng: random.Random, serial: str) -> None:
        super().__init__(rng, serial)
        self._places: dict[int, dict[int, int]] = {}

    def _ail(self, code: int, place: int, severity: int, now: float) -> None:
        """Begin the fault at one place, until `_mend`."""
        if not self._boots(now) or place in self._places.get(code, {}):
            return
        self._places.setdefault(code, {})[place] = severity
        if self._ails(code, now):
            self.record(fdl.Fault(code, severity, place), now)
        else:
            self._fail(code, severity, now, place, person=True)

    def _mend(self, code: int, place: int, now: float) -> None:
        """The fault ends at this place."""
        places = self._places.get(code, {})
        if self._boots(now) and places.pop(place, None) is not None:
            if places:
                self._where[code] = min(places)
            else:
                self._heal(code, now)

    def _at(self, code: int) -> set[int]:
        """The places of the fault."""
        return set(self._places.get(code, ()))

    def _heal(self, code: int, now: float) -> None:
        if self._boots(now):
            self._places.pop(code, None)
        super()._heal(code, now)

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        """The self-test reports every place."""
        answer = super().do(code, data, now)
        if code == fdl.SELF_TEST and answer[0] == fdl.DONE:
            self._report_others(now)
        return answer

    def _started(self, now: float) -> None:
        self._report_others(now)

    def _report_others(self, now: float) -> None:
        for code, places in self._places.items():
            for place, severity in sorted(places.items()):
                if place != self._where.get(code):
                    self.record(fdl.Fault(code, severity, place), now)


class Lamps(ManyPlaces):
    """The lamps; `lit` are those through which a current truly flows."""

    name: ClassVar[str] = "fdl_lamps"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        "deaf": replace(COMMON_FAULTS["deaf"], round="counts"),
        "burnt_out": Ailment(
            "lamp 1 burns out; seen when it is to be lit", ("lamps.burnt_out",), "counts", person=True
        ),
        "stuck_on": Ailment("the switch of lamp 1 is fused", ("lamps.stuck_on",), "counts", person=True),
        "driver_dead": Ailment("the lamp driver switches nothing", ("lamps.driver",), "counts", person=True),
        "sensing_broken": Ailment(
            "the current can no longer be measured, the lamps work", ("lamps.sensing",), "counts", person=True
        ),
        "no_supply": Ailment("the fuse of the lamps blows", ("lamps.supply",), "counts", person=True),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = ()
    kind: ClassVar[int] = fdl.LAMPS
    model: ClassVar[str] = "Lamps"

    def __init__(self, rng: random.Random, serial: str = "SIM-LAMPS-1") -> None:
        super().__init__(rng, serial)
        self._ordered: frozenset[int] = frozenset()
        self._burnt: set[int] = set()
        self._told: frozenset[int] = frozenset()

    @property
    def lit(self) -> frozenset[int]:
        """The lit lamps by their numbers."""
        if self._boots_at is not None or SUPPLY in self._standing:
            return frozenset()
        return self._ordered - self._burnt | self._at(STUCK_ON)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "burnt_out":
                self._burnt.add(FRAGILE)
            case "stuck_on":
                self._ail(STUCK_ON, FRAGILE, ERROR, now)
            case "driver_dead":
                self._fail(DRIVER, ERROR, now, person=True)
            case "sensing_broken":
                self._fail(SENSING, WARNING, now, person=True)
            case "no_supply":
                self._fail(SUPPLY, ERROR, now, person=True)
            case _:
                super().inject(fault, now)
                return
        self._show(now)

    def repair(self, now: float) -> None:
        """The lamp, the fuse and the driver are replaced; the lamps come on as ordered."""
        self._burnt.clear()
        super().repair(now)
        self._show(now)

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        """A command of the host."""
        match code:
            case fdl_lamps.LIGHT:
                if len(data) != 4:
                    return fdl.REFUSED, RANGE, b""
                if self._ails(DRIVER, now) or self._ails(SUPPLY, now):
                    return fdl.REFUSED, STANDING_FAULT, b""
                self._ordered = frozenset(places_from_bytes(data))
                self._show(now)
                # Without a measurement the answer has no lit lamps.
                return fdl.DONE, 0, b"" if self._ails(SENSING, now) else places_to_bytes(self.lit)
            case fdl.SELF_TEST if not data:
                for lamp in self._burnt & set(range(1, MAX_PLACES + 1)):  # it sends a short pulse through each lamp
                    self._ail(BURNT_OUT, lamp, WARNING, now)
                return super().do(code, data, now)
            case _:
                return super().do(code, data, now)

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """It has no acts: it only obeys the host."""
        return {}

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """All lamps go dark; the order to light them is lost."""
        self._ordered = frozenset()
        super().power_cycle(now, lose_memory=lose_memory)

    def _started(self, now: float) -> None:
        super()._started(now)
        self._told = frozenset({0})  # an impossible value: the state is always reported after a start
        self._show(now)

    def _show(self, now: float) -> None:
        """The lamps in which the device measures a current."""
        if not self._boots(now):
            return
        if not self._ails(SUPPLY, now):
            for lamp in self._ordered & self._burnt:
                self._ail(BURNT_OUT, lamp, WARNING, now)
        if self.lit != self._told and not self._ails(SENSING, now):
            self._told = self.lit
            self.record(fdl_lamps.Lit(tuple(sorted(self.lit))), now)
