"""The fault list of a device, and the events that report its faults.

The first occurrence of a fault in a cycle (a spin, a throw, a shuffle) has its own severity, the second is an error.
The end is reported, too. Open faults survive sessions and restarts: a fault ends when its end is seen.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from protocols.contract.events import DeviceFaulted, DeviceRecovered, Severity

__all__ = ["Clears", "Fault", "Faults", "Standing"]

Clears: TypeAlias = Literal["by itself", "by a person"]


class Fault(Struct, frozen=True):
    """One entry of a device's fault list, written for a technician.

    `code` is stable. `remedy` is the first thing to try. `clears`: whether the device recovers by itself. `round`: the
    effect on a round under way. `severity`: of the first occurrence in a cycle.
    """

    code: str
    text: str
    remedy: str
    clears: Clears
    round: str
    severity: Severity = "warning"


class Standing(Struct, frozen=True):
    """The part of a driver's memory with its faults: the open ones, and those reported in this cycle."""

    open: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()


class Faults:
    """The open faults of a device. Every method returns the events to emit, none if nothing changed."""

    def __init__(self, known: Iterable[Fault], standing: Standing | None = None) -> None:
        """Continue from the last session. Codes without an entry are kept until they end."""
        self._known = {fault.code: fault for fault in known}
        standing = standing or Standing()
        self._open = dict.fromkeys(standing.open)
        self._cycle = dict.fromkeys(standing.cycle)

    @property
    def standing(self) -> Standing:
        """For the driver's memory."""
        return Standing(tuple(self._open), tuple(self._cycle))

    def learn(self, fault: Fault) -> None:
        """Add a fault that is only in the device's manual."""
        self._known[fault.code] = fault

    def is_open(self, code: str) -> bool:
        """Whether `code` has begun and not ended."""
        return code in self._open

    def begin(self, code: str, detail: str = "") -> list[DeviceFaulted]:
        """The fault exists. Reported once, however often it is seen."""
        return [] if code in self._open else self.strike(code, detail)

    def strike(self, code: str, detail: str = "", severity: Severity | None = None) -> list[DeviceFaulted]:
        """The fault occurred once more, also while it is open. For drivers that receive each occurrence.

        `severity`: the device's own severity of a first occurrence.
        """
        fault = self._known[code]
        severity = "error" if code in self._cycle else severity or fault.severity
        self._open[code] = None
        self._cycle[code] = None
        text = f"{fault.text} ({detail})" if detail else fault.text
        return [DeviceFaulted(code, text, severity, fault.remedy)]

    def end(self, *codes: str) -> list[DeviceRecovered]:
        """These faults do not exist, or no longer."""
        ended = [code for code in codes if code in self._open]
        for code in ended:
            del self._open[code]
        return [DeviceRecovered(code) for code in ended]

    def watch(self, code: str, present: bool, detail: str = "") -> list[DeviceFaulted] | list[DeviceRecovered]:
        """Begin or end a fault, as it is seen."""
        return self.begin(code, detail) if present else self.end(code)

    def good_cycle(self) -> None:
        """A cycle ended well: the next occurrence is a first one again."""
        self._cycle = dict.fromkeys(self._open)
