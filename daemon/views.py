"""The read model's views of a device, an edge and a table; the pages and the demo read these attributes.

Only daemon/read_model.py changes them; the console counts the restarts (daemon/console/site/past.py).
"""

from collections import deque
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from protocols.contract.documents import Alert, DeviceMeta, DeviceState, EdgeHealth, EdgeInfo
from protocols.contract.facts import RoundFacts
from protocols.contract.results import Irregularity, Result, RoundState
from protocols.contract.topics import Wire
from protocols.contract.wagers import WagerAnswer

__all__ = ["Amount", "Change", "DeviceView", "EdgeView", "Lamp", "Seen", "TableView", "utc"]

Lamp: TypeAlias = Literal["good", "warning", "error", "offline", "unknown"]

LAST = 12
SHOWN_REFUSALS = 5
CHANGES = 200
EVENTS = 50


class Change(Struct, frozen=True):
    """One line of a device's history."""

    at: datetime
    kind: str
    text: str


class Seen(Struct, frozen=True):
    """One event of a device. `data` is empty where it may hold a card."""

    at: datetime
    seq: int
    type: str
    data: str
    id: str
    replay: bool


class Amount(Struct, frozen=True):
    """A jackpot as reported: the amount on a display (`confirmed`: read back from it), or the last event of a pool."""

    name: str
    at: datetime
    type: str
    text: str = ""
    amount: int = 0
    level: int = 0
    confirmed: bool = False


class DeviceView:
    """The known state of one device."""

    def __init__(self, table: str, name: str) -> None:
        """Nothing is known yet."""
        self.table = table
        self.name = name
        self.online: bool | None = None
        self.meta = DeviceMeta()
        self.state = DeviceState()
        self.heard: datetime | None = None
        """Time of the last message about it."""
        self.history: deque[Change] = deque(maxlen=CHANGES)
        self.events: deque[Seen] = deque(maxlen=EVENTS)
        self.count = 0

    @property
    def there(self) -> bool:
        """Whether it has retained documents. A removed device has only its history."""
        return self.online is not None or self.meta.edge != ""


class EdgeView:
    """The known state of one edge, or of the rules."""

    def __init__(self, name: str) -> None:
        """Nothing is known yet."""
        self.name = name
        self.online: bool | None = None
        self.info = EdgeInfo()
        self.health: EdgeHealth | None = None
        self.heard: datetime | None = None
        self.beat: datetime | None = None
        """The time of its last heartbeat in this connection; None before the first."""
        self.silent = False
        """Whether the broker reports it online but its heartbeat stopped: it hangs, or the network does."""
        self.restarts = 0
        """The number of its restarts, and the time of the last one; counted by the console."""
        self.restarted: datetime | None = None

    @property
    def current(self) -> bool | None:
        """Whether it is online; None if unknown."""
        return None if self.silent and self.online else self.online


class TableView:
    """The known state of one table."""

    def __init__(self, keep: int = LAST) -> None:
        """Nothing is known yet. `keep`: the number of results kept."""
        self.online: dict[str, bool] = {}
        self.phase = "-"
        self.round = ""
        self.detail: dict[str, Any] = {}
        self.facts = RoundFacts()
        """`detail` as the struct of the game."""
        self.kind = RoundFacts
        self.stand: RoundState | None = None
        """The last `round/state`; None where it was cleared or unreadable."""
        self.events = 0
        self.last_event: datetime | None = None
        self.lately: deque[Wire] = deque(maxlen=LAST)
        """The last events of its devices, without their own reports (online, faults)."""
        self.results: deque[Result] = deque(maxlen=keep)
        self.noted: deque[tuple[datetime, Irregularity]] = deque(maxlen=LAST)
        """Irregularities while no round was open, the oldest first."""
        self.refusals: deque[WagerAnswer] = deque(maxlen=SHOWN_REFUSALS)
        """The last refused bets, the oldest first."""
        self.resolved = 0
        self.voided = 0
        self.alerts: dict[str, Alert] = {}

    @property
    def latest(self) -> list[str]:
        """The last events of its devices, in words."""
        return [_in_words(wire) for wire in self.lately]


def _in_words(wire: Wire) -> str:
    data = bytes(wire.data).decode(errors="replace")
    return f"{wire.time:%H:%M:%S} {wire.type} {data if data != '{}' else ''}"[:64].rstrip()


def utc(at: datetime) -> str:
    """A time in the format of the pages."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"
