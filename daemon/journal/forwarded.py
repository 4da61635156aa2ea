"""The forwarder's progress with the journals of this computer: it writes `status.json`, their writers read it.

The journals are not written by the forwarder, so its cursor is a file of its own. A journal keeps rows until the cursor
has passed them. The edge, or a replica of the rules, raises the alerts about forwarder and backbone at its tables, so
that a stopped forwarder is reported, too.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from daemon.config.model import Config, Edge, Jackpots, Rules
from daemon.journal.store import Journal
from daemon.pulse import pulse
from daemon.words import words
from protocols.contract.documents import Alert
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import table_topic

__all__ = [
    "AWAY",
    "BEHIND",
    "BEHIND_S",
    "DEGRADED",
    "NONE_WAITS",
    "Cursor",
    "Status",
    "alert_of",
    "backbone_topic",
    "forwarded_of",
    "journals_of",
    "read_status",
    "watch_forwarder",
]

AWAY: Final = "backbone.away"
DEGRADED: Final = "backbone.degraded"
BEHIND: Final = "forwarder.behind"
BEHIND_S: Final = 30.0
"""Seconds for which rows may wait, and for which the forwarder may write no status."""
LOOK_S: Final = 6.0
NONE_WAITS: Final = 2**63 - 1
"""The cursor where nothing is forwarded."""


class Cursor(Struct, frozen=True):
    """The last row of a journal that the backbone confirmed. `life` counts how often an older copy was put back."""

    journal: str = ""
    n: int = 0
    life: int = 0


class Status(Struct, frozen=True):
    """`status.json`: the time of writing, the code of its alert and the reason, the cursors of the parts."""

    at: datetime
    code: str = ""
    why: Reason | None = None
    cursors: dict[str, Cursor] = {}


def backbone_topic(site: str, table: str, name: str) -> str:
    """The topic of the alert about forwarder and backbone."""
    return table_topic(site, table, f"alert/{name}-backbone")


def journals_of(config: Config) -> dict[str, Path]:
    """The journals that are forwarded, by part."""
    parts: dict[str, Edge | Rules | Jackpots] = {"edge": config.edge, "rules": config.rules}
    if config.jackpot:
        parts["jackpots"] = config.jackpots
    return {name: Path(part.journal) for name, part in parts.items()}


def read_status(folder: Path) -> Status | None:
    """The status; None where it is missing or unreadable: then everything is forwarded again."""
    try:
        return msgspec.json.decode((folder / "status.json").read_bytes(), type=Status)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def forwarded_of(config: Config, journal: Journal) -> Callable[[], int]:
    """A function that returns the number of the last row that need not be kept for the forwarder."""
    folder = Path(config.forward.folder)
    ours = [part for part, path in journals_of(config).items() if path == journal.path]
    if not config.backbone.servers or not ours:
        return lambda: NONE_WAITS

    def forwarded() -> int:
        status = read_status(folder)
        cursor = status.cursors.get(ours[0]) if status is not None else None
        return cursor.n if cursor is not None and cursor.journal == journal.name else 0

    return forwarded


def alert_of(status: Status | None, now: datetime, started: datetime) -> Alert | None:
    """The alert about the forwarder; None: all is well. `started`: of the calling process, which may start
    before the forwarder.
    """
    since = status.at if status is not None else started
    if now - max(since, started) > timedelta(seconds=BEHIND_S):
        why = say("silent", day=f"{since:%Y-%m-%d}", time=f"{since:%H:%M}")
        return words.alert(BEHIND, why, severity="warning")
    if status is None or status.why is None:
        return None
    return words.alert(status.code, status.why, severity="warning")


async def watch_forwarder(
    config: Config, name: str, put_retained: Callable[[str, bytes], None], log: structlog.typing.FilteringBoundLogger
) -> None:
    """Raise and end the alert at all tables of the edge or of the rules called `name`, until cancelled."""
    started, logged = datetime.now(UTC), b""
    topics = [backbone_topic(config.site.name, table.name, name) for table in config.table]
    for topic in topics:  # an alert of the last process
        put_retained(topic, b"")
    while True:
        alert = alert_of(read_status(Path(config.forward.folder)), datetime.now(UTC), started)
        said = b"" if alert is None else msgspec.json.encode(alert)
        if said != logged:
            logged = said
            for topic in topics:
                put_retained(topic, said)
            if alert is None:
                log.info("backbone.well")
            else:
                log.warning(alert.code, text=alert.text, remedy=alert.remedy)
        await pulse(LOOK_S)
