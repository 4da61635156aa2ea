"""Documents of the processes besides events: alerts, device meta and state, info, heads, health, traces, replays.

The processes write these structs and every reader decodes into them. A reader ignores unknown fields and takes
the default for a missing one. An implausible time of an alert, fault, event, examination or health makes its document
unreadable; other times are not checked here.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from protocols.contract.events import LONGEST_TEXT, MOST
from protocols.contract.reasons import Reason
from protocols.contract.topics import Time, in_utc, mac_of_texts

Whole: TypeAlias = Annotated[int, Meta(ge=-MOST, le=MOST)]
Number: TypeAlias = Annotated[int, Meta(ge=0, le=MOST)]
Short: TypeAlias = Annotated[str, Meta(max_length=64)]
# The text of an alert contains at most two texts of an event, and words between them.
LONGEST_ALERT = 2 * LONGEST_TEXT + 200
AlertText: TypeAlias = Annotated[str, Meta(max_length=LONGEST_ALERT)]


class Alert(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An open alert, for example of a device, a round, a journal or a pool.

    `round` where it is about a round, `device` where it is about a device, a process or a pool; `count` is how often it
    happened. `text` and `remedy` are English; `why` and `to_do` are the same as codes with values, for readers in other
    languages. The alert of a device's fault has only its `code` and neither of these.
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
    why: Reason | None = None
    to_do: Reason | None = None

    def __post_init__(self) -> None:
        """Refuse a time that is not plausible, and values that together are longer than a text."""
        if self.since is not None:
            in_utc(self.since)
        for reason in (self.why, self.to_do):
            if reason is not None and sum(len(f"{name}{of}") for name, of in reason.values.items()) > LONGEST_ALERT:
                raise ValueError("the values of an alert are too long")


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
    """A device's retained `meta`: its driver and identity, and the edge that publishes it."""

    driver: str = ""
    model: str = ""
    serial: str = ""
    firmware: str = ""
    url: str = ""
    edge: str = ""


class DeviceState(Struct, frozen=True):
    """A device's retained `state`: a full snapshot. `traced_until`: the end of its running trace.

    `since`: when it came online or went offline.
    """

    online: bool = False
    reason: str = ""
    faults: tuple[Fault, ...] = ()
    counters: dict[str, Whole] = field(default_factory=dict)
    last_event: LastEvent | None = None
    traced_until: Time | None = None
    since: Time | None = None


class TableSign(Struct, frozen=True, omit_defaults=True):
    """Whether a table is open, and the limits on its sign in minor units; a `maximum` of 0: no limit.

    `state` "": not known, nobody opened or closed the table yet. `by` and `since`: who opened or closed it, and when.
    `limits_by`, `limits_since`: who changed the limits after that.
    """

    state: Literal["", "open", "closed"] = ""
    by: Short = ""
    since: Time | None = None
    minimum: Number = 0
    maximum: Number = 0
    limits_by: Short = ""
    limits_since: Time | None = None


class EdgeInfo(Struct, frozen=True, omit_defaults=True):
    """The retained `info` of an edge, of the rules (`rules`: true), or of a jackpots process.

    `tables`: those whose rounds the rules resolve. `config`: the digest of the configuration. `boots`: the number of
    starts of the edge with this journal.
    `suspended`: by table or `jackpot <pool>`, what the broker refuses; the process does not serve it until the access
    list is corrected. `started`: when the process started. `signs`: of an edge only; by table, whether it is open, and
    its limits.
    """

    version: str = ""
    config: str = ""
    drivers: tuple[str, ...] = ()
    bootid: str = ""
    journal: str = ""
    boots: Whole = 0
    rules: bool = False
    tables: tuple[str, ...] = ()
    suspended: dict[str, str] = field(default_factory=dict)
    started: Time | None = None
    signs: dict[str, TableSign] = field(default_factory=dict)


class JournalHead(Struct, frozen=True):
    """The retained `head` of a process: the last signed checkpoint of its journal.

    `statement` is the signed text, `signature` its Ed25519 signature in base64, `row` the last row that it covers.
    """

    journal: str
    checkpoint: Whole
    row: Whole
    statement: str
    signature: str


class OutboxHealth(Struct, frozen=True):
    """The number of events waiting for the broker, and the age of the oldest in seconds."""

    depth: Whole = 0
    age_s: float = 0.0


class EdgeExamination(Struct, frozen=True):
    """What `feltd doctor` last found on the computer of an edge.

    `problems`: its checks that found a problem. `clock_ms`: the distance from the time server; `sync_ms`: the median
    fdatasync of the slowest disk; `certificate_ends`: the first end of a certificate; `verified`: since when all rows
    of all journals are verified. None where it is not known.
    """

    time: Time
    problems: tuple[Short, ...] = ()
    clock_ms: float | None = None
    sync_ms: float | None = None
    certificate_ends: Time | None = None
    verified: Time | None = None

    def __post_init__(self) -> None:
        """Refuse a time that is not plausible."""
        for time in (self.time, self.certificate_ends, self.verified):
            if time is not None:
                in_utc(time)


class EdgeHealth(Struct, frozen=True):
    """The retained `health` of an edge, every 30 s.

    `rss` and `disk_free` in bytes; `devices`: by table/device, whether it is online; `newest`: by table, the seq of
    its last event in the journal; `examination`: None where `feltd doctor` left none.
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
    examination: EdgeExamination | None = None

    def __post_init__(self) -> None:
        """Refuse a time that is not plausible."""
        in_utc(self.time)


class TraceLine(Struct, frozen=True):
    """One line of a trace: bytes from the device (`in`) or to it (`out`), as hexadecimal digits.

    `n` counts the lines since the edge started, `dropped` the lines that the edge left out so far. All other lines
    missing from `n` were lost on the way to the reader.
    """

    at: Time
    way: Literal["in", "out"]
    hex: str
    n: int
    dropped: int


class ReplayRequest(Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """A request for the events from seq `from` to seq `to`, or to the newest; of one writer (`edge`), or of all."""

    first: Whole
    last: Whole | None = None
    edge: Short = ""


class ReplayAnswer(Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """The range that was published again, the newest seq, and the oldest one still kept (0: none).

    `mac`: the message authentication code by the key of the edge, where it has one.
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
