"""The computer below feltd: watchdog, clock, partition of the journals, system logs, and updates outside of play.

`measured` reads files of the system and asks chrony; `lines` rates them. Each line is a section of
docs/how-to/prepare-the-computer.md.
"""

import re
import subprocess
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from daemon.cli.doctor import Line, State

__all__ = ["Computer", "lines", "measured"]

FAR_MS: Final = 100.0
"""Events of two computers that are further apart cannot be put in order."""
CHRONY_TIMEOUT_S: Final = 5.0
_PAGE: Final = "docs/how-to/prepare-the-computer.md"
_JOURNALD: Final = ("etc/systemd/journald.conf", "etc/systemd/journald.conf.d/*.conf")
_BOUND: Final = re.compile(r"(?m)^[ \t]*SystemMaxUse[ \t]*=[ \t]*(\S+)")
_UPDATES: Final = re.compile(r'(?m)^\s*APT::Periodic::Unattended-Upgrade\s+"(?!0")[^"]+"')
_TIMER: Final = "etc/systemd/system/apt-daily-upgrade.timer.d/*.conf"
_WHEN: Final = re.compile(r"(?m)^[ \t]*OnCalendar[ \t]*=[ \t]*(\S.*)")


class Computer(Struct, frozen=True, kw_only=True):
    """The measurements. None: missing, or without an answer."""

    watchdog: str | None = None
    """The state of the first hardware watchdog: "active" while systemd feeds it."""
    offset_ms: float | None = None
    """The clock's offset from the time server, by chrony."""
    shared: tuple[str, ...] | None = None
    """Folders of journals on the root file system. None: no folder is there yet."""
    logs: str | None = None
    """The bound of systemd's own journal, as "500M"."""
    updates: bool = False
    updates_at: str | None = None
    """When security updates are installed, by the timer's own setting."""


def measured(journals: Iterable[Path], root: Path = Path("/")) -> Computer:
    """Read the settings below `root`, and ask chrony."""
    when = [one for one in _found(_WHEN, root, _TIMER) if one]
    return Computer(
        watchdog=_text(root / "sys/class/watchdog/watchdog0/state"),
        offset_ms=_offset_ms(),
        shared=_shared({path.parent for path in journals if path.parent.exists()}, root),
        logs=next(reversed(_found(_BOUND, root, *_JOURNALD)), None),
        updates=bool(_found(_UPDATES, root, "etc/apt/apt.conf.d/*")),
        updates_at=when[-1] if when else None,
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _found(pattern: re.Pattern[str], root: Path, *globs: str) -> list[str]:
    files = [path for one in globs for path in sorted(root.glob(one))]
    return [found for path in files for found in pattern.findall(_text(path) or "")]


def _shared(folders: Collection[Path], root: Path) -> tuple[str, ...] | None:
    device = root.stat().st_dev
    return tuple(str(one) for one in sorted(folders) if one.stat().st_dev == device) if folders else None


def _offset_ms() -> float | None:
    """The clock's distance from the server's time: the fifth field of `chronyc -c tracking`, in seconds."""
    try:
        said = subprocess.run(
            ["chronyc", "-c", "tracking"],  # noqa: S607 - where the distribution puts it
            capture_output=True,
            text=True,
            timeout=CHRONY_TIMEOUT_S,
            check=True,
        ).stdout
        return abs(float(said.split(",")[4])) * 1000
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None


def lines(computer: Computer) -> Iterator[Line]:
    """One line for each section of the page but the last: `doctor` itself checks the names of ports."""
    yield _watchdog(computer.watchdog)
    yield _offset(computer.offset_ms)
    yield _partition(computer.shared)
    if computer.logs is None:
        remedy = f"SystemMaxUse=500M: {_PAGE}"
        yield Line("system logs", State.WARNING, "they may take a tenth of the disk", remedy)
    else:
        yield Line("system logs", State.OK, f"at most {computer.logs}")
    yield _updates(computer)


def _watchdog(state: str | None) -> Line:
    match state:
        case "active":
            return Line("hardware watchdog", State.OK, "restarts the computer when it hangs")
        case None:
            text = "there is none: a computer that hangs stays so"
            return Line("hardware watchdog", State.WARNING, text, f"load its module: {_PAGE}")
        case _:
            text = f"{state}: a computer that hangs stays so"
            return Line("hardware watchdog", State.WARNING, text, f"RuntimeWatchdogSec=30s: {_PAGE}")


def _offset(offset_ms: float | None) -> Line:
    if offset_ms is None:
        return Line("clock offset", State.WARNING, "not known: chrony does not answer", f"install chrony: {_PAGE}")
    text = f"{offset_ms:.1f} ms from the time server"
    if offset_ms >= FAR_MS:
        return Line("clock offset", State.WARNING, text, "chronyc makestep between two rounds; chronyc sources -v")
    return Line("clock offset", State.OK, text)


def _partition(shared: tuple[str, ...] | None) -> Line:
    check = "partition of the journals"
    if shared is None:
        return Line(check, State.WARNING, "no journal is there yet", "start feltd-edge and feltd-rules")
    if shared:
        text = f"{', '.join(shared)}: on the file system of the root"
        return Line(check, State.WARNING, text, f"a full root stops play: {_PAGE}")
    return Line(check, State.OK, "their own")


def _updates(computer: Computer) -> Line:
    check = "security updates"
    if not computer.updates:
        return Line(check, State.WARNING, "not installed by themselves", f"unattended-upgrades: {_PAGE}")
    if computer.updates_at is None:
        text = "installed by themselves, at an hour that Debian chooses"
        return Line(check, State.WARNING, text, f"choose an hour at which the table is closed: {_PAGE}")
    return Line(check, State.OK, f"installed by themselves: {computer.updates_at}")
