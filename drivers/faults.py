"""The faults a device is known for, and how a driver tells them.

The first time in a cycle (a spin, a throw, a shuffle) a fault is told with its own severity; the second time it is an
error, whatever it was; its end is told explicitly. What is open outlives the session and the process: a fault is over
when it is seen to be over, never because somebody restarted something.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from protocols.contract.events import DeviceFaulted, DeviceRecovered, Severity

__all__ = ["Clears", "Fault", "Faults", "Standing"]

Clears: TypeAlias = Literal["by itself", "by a person"]


class Fault(Struct, frozen=True):
    """One entry of a device's fault list, written for a technician.

    `code` is stable; `remedy` is what to try first; `clears` whether the device recovers alone; `round` what becomes of
    the round under way; `severity` that of its first occurrence in a cycle.
    """

    code: str
    text: str
    remedy: str
    clears: Clears
    round: str
    severity: Severity = "warning"


class Standing(Struct, frozen=True):
    """The part of a driver's memory that holds its faults: those open, and those that were told in this cycle."""

    open: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()


class Faults:
    """What is open of a device's fault list. Every method returns the events to tell, none where nothing changed."""

    def __init__(self, known: Iterable[Fault], standing: Standing | None = None) -> None:
        """Go on from what the last session left; codes that this version no longer knows are kept until they end."""
        self._known = {fault.code: fault for fault in known}
        standing = standing or Standing()
        self._open = dict.fromkeys(standing.open)
        self._cycle = dict.fromkeys(standing.cycle)

    @property
    def standing(self) -> Standing:
        """For the driver's memory."""
        return Standing(tuple(self._open), tuple(self._cycle))

    def learn(self, fault: Fault) -> None:
        """A fault that only the device's manual knows."""
        self._known[fault.code] = fault

    def is_open(self, code: str) -> bool:
        """Whether `code` began and was not seen to end."""
        return code in self._open

    def begin(self, code: str, detail: str = "") -> list[DeviceFaulted]:
        """The fault is there: told when it begins, for who looks again and again."""
        return [] if code in self._open else self.strike(code, detail)

    def strike(self, code: str, detail: str = "", severity: Severity | None = None) -> list[DeviceFaulted]:
        """The fault happened once more, also while it is open: for who hears of each occurrence.

        `severity`: what the device itself calls a first occurrence.
        """
        fault = self._known[code]
        severity = "error" if code in self._cycle else severity or fault.severity
        self._open[code] = None
        self._cycle[code] = None
        text = f"{fault.text} ({detail})" if detail else fault.text
        return [DeviceFaulted(code, text, severity, fault.remedy)]

    def end(self, *codes: str) -> list[DeviceRecovered]:
        """The faults are not there (any more)."""
        ended = [code for code in codes if code in self._open]
        for code in ended:
            del self._open[code]
        return [DeviceRecovered(code) for code in ended]

    def watch(self, code: str, present: bool, detail: str = "") -> list[DeviceFaulted] | list[DeviceRecovered]:
        """Begin or end it, as it is seen."""
        return self.begin(code, detail) if present else self.end(code)

    def good_cycle(self) -> None:
        """A cycle ended well: what comes next is a first time again."""
        self._cycle = dict.fromkeys(self._open)
