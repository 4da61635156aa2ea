"""The documents of our wire besides events, commands and verdicts: what edges and rules say of devices and themselves.

The edge and the rules write these structs, every reader decodes into them. A field that a reader does not know is
ignored; one that an older version left out has its default. A time that is not plausible makes a document unreadable.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from protocols.contract.events import LONGEST_TEXT, MOST
from protocols.contract.topics import Time, in_utc, mac_of_texts

Whole: TypeAlias = Annotated[int, Meta(ge=-MOST, le=MOST)]
Number: TypeAlias = Annotated[int, Meta(ge=0, le=MOST)]
Short: TypeAlias = Annotated[str, Meta(max_length=64)]
# An alert holds at most two texts of an event, and words between them.
AlertText: TypeAlias = Annotated[str, Meta(max_length=2 * LONGEST_TEXT + 200)]


class Alert(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An open alert of a device, a round, a journal or the events of an edge.

    `round` where it is about a round, `device` where it is about a device; `count` is how often it happened.
    """

    device: AlertText = ""
    round: AlertText = ""
    code: AlertText
    text: AlertText
    # A factory, because `omit_defaults` would leave out a plain default: the severity is always written.
    severity: AlertText = field(default_factory=lambda: "error")
    remedy: AlertText
    since: Time | None = None
    count: Number = 0

    def __post_init__(self) -> None:
        """Refuse a time that is not plausible."""
        if self.since is not None:
            in_utc(self.since)


class Fault(Struct, frozen=True):
    """An open fault of a device."""

    code: str
    text: str
    severity: str
    remedy: str
    since: Time

    def __post_init__(self) -> None:
        """Refuse a time that is not plausible."""
        in_utc(self.since)


class LastEvent(Struct, frozen=True):
    """The last event of a device."""

    type: str
    time: Time
    seq: Whole

    def __post_init__(self) -> None:
        """Refuse a time that is not plausible."""
        in_utc(self.time)


class DeviceMeta(Struct, frozen=True):
    """A device's retained `meta`: what it is, and the edge that publishes it."""

    driver: str = ""
    model: str = ""
    serial: str = ""
    firmware: str = ""
    url: str = ""
    edge: str = ""


class DeviceState(Struct, frozen=True):
    """A device's retained `state`: a full snapshot. `traced_until`: its wire is published until then."""

    online: bool = False
    reason: str = ""
    faults: tuple[Fault, ...] = ()
    counters: dict[str, Whole] = field(default_factory=dict)
    last_event: LastEvent | None = None
    traced_until: Time | None = None


class EdgeInfo(Struct, frozen=True, omit_defaults=True):
    """The retained `info` of an edge, or of the rules (`rules`: true).

    `config` is the digest of the configuration, `boots` how often the edge was started with this journal.
    """

    version: str = ""
    config: str = ""
    drivers: tuple[str, ...] = ()
    bootid: str = ""
    journal: str = ""
    boots: Whole = 0
    rules: bool = False


class OutboxHealth(Struct, frozen=True):
    """How many events wait for the broker, and the age of the oldest in seconds."""

    depth: Whole = 0
    age_s: float = 0.0


class EdgeHealth(Struct, frozen=True):
    """The retained `health` of an edge, every 30 s.

    `rss` and `disk_free` in bytes; `devices`: by table/device, whether it is online; `newest`: by table, the seq of
    its last event in the journal.
    """

    time: Time
    outbox: OutboxHealth = OutboxHealth()
    loop_lag_ms: float = 0.0
    disk_free: Whole = 0
    cpu_s: float = 0.0
    rss: Whole = 0
    boots: Whole = 0
    devices: dict[str, bool] = field(default_factory=dict)
    newest: dict[str, Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a time that is not plausible."""
        in_utc(self.time)


class TraceLine(Struct, frozen=True):
    """One line of a trace: what came from the device (`in`) or went to it (`out`), as hexadecimal digits.

    `n` counts what passed since the edge began, `dropped` what of it was left out so far; an `n` that is missing beyond
    those was lost on its way.
    """

    at: Time
    way: Literal["in", "out"]
    hex: str
    n: int
    dropped: int


class ReplayRequest(Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """From one seq to another, or to the newest; of one writer (`edge`), or of all."""

    first: Whole
    last: Whole | None = None
    edge: Short = ""


class ReplayAnswer(Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """What was published again, the newest there is, and the oldest that is still there: 0 where none is.

    `mac`: by the key of the edge, where it has one.
    """

    edge: Short
    journal: Short
    first: Whole
    last: Whole
    newest: Whole
    oldest: Whole = 0
    mac: Short | UnsetType = UNSET


def mac_of_answer(answer: ReplayAnswer, topic: str, key: bytes) -> str:
    """The message authentication code of an answer on `topic`, by the key of its edge."""
    numbers = (answer.first, answer.last, answer.newest, answer.oldest)
    return mac_of_texts(("feltd answer", topic, answer.edge, answer.journal, *map(str, numbers)), key)
