"""Rules that resolve the same tables as other rules, on another computer of the site.

Their events come from the backbone of the site, in the order of its stream; a gap is filled by the replay of the edge.
Each process publishes its verdicts under ids made of the events, so that a reader has each verdict once. Messages
without such an id (retained states, answers to wagers) are published only by the first online process, by name. The
verdicts of the other rules processes are read back and compared: if two processes publish different verdicts for one
event, an alert is open until a person ends it.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from daemon import logs
from daemon.broker.restorer import Restorer
from daemon.broker.retained import Retained
from daemon.broker.session import UNREADABLE, Message
from daemon.broker.stale_topics import DISAGREE_LEAF
from daemon.broker.suspensions import place_of
from daemon.journal.rows import Row, cause_of, id_and_journal
from daemon.journal.store import Journal
from daemon.words import words
from protocols.contract.documents import Alert
from protocols.contract.reasons import say
from protocols.contract.results import ENDS, BadRound, decode_end
from protocols.contract.topics import BadEnvelope, Wire, decode_wire, digest_of

__all__ = ["DISAGREE", "Agreement", "Difference", "Replica", "Stored", "Streams"]

EVENTS, RESULTS = "EV", "RES"
"""The streams of the backbone."""
DISAGREE: Final = "results.disagree"
SHARED: Final = ("round/state", "round/result", "alert/round-suspended")
"""Topics below a table that only the first of several rules processes retains."""
KEPT: Final = 200
"""The number of verdicts of a table that can be compared; older ones are dropped."""
COMPARE_S: Final = 1.0

K = TypeVar("K")
Source: TypeAlias = tuple[str, ...]
"""A stream of events: edge, journal and table."""

Stored: TypeAlias = tuple[str, bytes]
"""A message of a stream: its table and its bytes."""


class Streams(Protocol):
    """The backbone of the site."""

    async def follow(
        self,
        stream: str,
        tables: Sequence[str],
        position: Callable[[str, int], int],
        use: Callable[[str, Sequence[Stored], int, bool], None],
    ) -> None:
        """Call `use(made, messages, last, late)` with all messages after `position(made, newest)`, until cancelled.

        `made` identifies the stream: a stream that is created again has a different one. `late`: they were stored
        before the reading began, or more follow at once. `use` is called without messages when none waits.
        """
        ...


class _Place(Struct, frozen=True):
    """The position up to which a stream was read."""

    made: str = ""
    last: int = 0


class Difference(Struct, frozen=True):
    """Two rules processes, named by their journals, and the verdict of each for one event; "" if it has none."""

    table: str
    round: str
    id: str
    texts: Mapping[str, str]

    def alert(self, count: int) -> Alert:
        """The alert, in the order of the journals, so that both processes publish the same text."""
        [(one, this), (other, that)] = sorted(self.texts.items())
        why = say("text", id=self.id, one=one, this=this or "nothing", other=other, that=that or "nothing")
        return words.alert(DISAGREE, why, round=self.round, count=count)


class _Theirs(Struct, frozen=True):
    """A verdict of another rules process: stream and seq of its event, cause as in our rows, digest of its content."""

    source: Source
    seq: int
    cause: str
    digest: bytes
    wire: Wire


class Agreement:
    """Compares the verdicts of other rules processes with ours for the same events."""

    def __init__(self, journal: Journal, tables: Iterable[str], used: Callable[[Source], int]) -> None:
        """`used`: the seq of the last event of a stream that these rules used."""
        self._journal, self._used = journal, used
        self._ours: dict[str, OrderedDict[str, tuple[int, bytes]]] = {}
        """By table and cause the seq of our row and the digest of its content."""
        self._forgotten: dict[Source, int] = {}
        """By stream of events the seq up to which our verdicts were dropped."""
        self._theirs: dict[str, deque[_Theirs]] = {}
        for table in tables:
            last = journal.last(table)
            self._ours[table], self._theirs[table] = OrderedDict(), deque(maxlen=KEPT)
            self.add_own(journal.range(table, max(1, last - KEPT + 1), last))

    def begin(self, source: Source) -> None:
        """Start comparing a stream: verdicts of events that were used before this start may not be loaded."""
        self._forgotten.setdefault(source, self._used(source))

    def add_own(self, rows: Iterable[Row]) -> None:
        """Take the verdicts that these rules wrote."""
        for row in rows:
            ours = self._ours.get(row.place)
            if ours is None or row.unreadable:
                continue
            ours[row.cause] = row.seq, digest_of(row.device, row.type, row.time, row.data)
            if len(ours) > KEPT:
                source, seq = _event_of(*id_and_journal(ours.popitem(last=False)[0]))
                self._forgotten[source] = max(seq, self._forgotten.get(source, 0))

    def add_other(self, table: str, payload: bytes) -> None:
        """Take a verdict of the stream."""
        try:
            wire = decode_wire(payload)
            source, seq = _event_of(wire.id, wire.cause_journal or "")
        except (BadEnvelope, ValueError, *UNREADABLE):
            return
        if wire.journal == self._journal.name or source[2] != table or table not in self._theirs:
            return
        digest = digest_of("round", wire.type, wire.time, bytes(wire.data))
        self._theirs[table].append(_Theirs(source, seq, cause_of(wire.id, wire.cause_journal), digest, wire))

    @property
    def waits(self) -> bool:
        """Whether a verdict of another rules process waits until these rules have used its event."""
        return any(self._theirs.values())

    def differences(self) -> Iterator[Difference]:
        """The differences in the verdicts of other rules processes for events that these rules have used, too."""
        for table, waiting in self._theirs.items():
            for _ in range(len(waiting)):
                one = waiting.popleft()
                if self._used(one.source) < one.seq:
                    waiting.append(one)
                elif (found := self._compare(table, one)) is not None:
                    yield found

    def _compare(self, table: str, one: _Theirs) -> Difference | None:
        seq, digest = self._ours[table].get(one.cause, (0, b""))
        is_forgotten = not seq and one.seq <= self._forgotten.get(one.source, 0)
        if digest == one.digest or is_forgotten:
            return None
        rows = self._journal.range(table, seq, seq) if seq else []
        ours = _in_words(rows[0].type, rows[0].data) if rows else ""
        data = bytes(one.wire.data)
        theirs = _in_words(one.wire.type, data)
        if ours == theirs:  # they differ in a part that the summary leaves out
            ours, theirs = f"{ours} {digest.hex()[:8]}", f"{theirs} {one.digest.hex()[:8]}"
        texts = {self._journal.name: ours, one.wire.journal: theirs}
        return Difference(table, _round_in(data), one.wire.id, texts)


class _Round(Struct):
    round: str = ""


def _event_of(id_: str, journal: str) -> tuple[Source, int]:
    """Stream and seq of the event in the id of a verdict, `<edge>:<table>:<seq>/<n>`. Raises ValueError."""
    edge, table, seq = id_.rpartition("/")[0].split(":")
    return (edge, journal, table), int(seq)


def _round_in(data: bytes) -> str:
    try:
        return decode_end(data).round
    except BadRound:
        pass
    try:
        return msgspec.json.decode(data, type=_Round).round
    except UNREADABLE:
        return ""


def _in_words(type_: str, data: bytes) -> str:
    """A summary of a verdict, short enough for an alert."""
    if type_ not in ENDS:
        return type_
    try:
        result = decode_end(data)
    except BadRound:
        return type_
    said = result.void.reason.code if result.void else result.announcements.get("en", "")
    returned = sum(one.returned for one in result.settlements)
    return f"{type_} ({said[:80]}; returns {returned})"


class Replica:
    """The additional state of a rules process whose events come from the backbone."""

    def __init__(
        self,
        streams: Streams,
        journal: Journal,
        agreement: Agreement,
        restorer: Restorer,
        retained: Retained,
        topic_of: Callable[[str, str], str],
    ) -> None:
        """`topic_of(table, leaf)`: a topic below a table."""
        self._streams, self._journal, self.agreement = streams, journal, agreement
        self._restorer, self._retained, self._topic_of = restorer, retained, topic_of
        self._log = logs.get(replica=journal.name)
        self.may_read = asyncio.Event()
        """Set once the newest round numbers on the broker were read."""
        self.caught_up = False
        self._speaking: set[str] = set()
        self._places = {stream: self._kept(f"backbone/{stream}", _Place, _Place()) for stream in (EVENTS, RESULTS)}
        self._written = dict(self._places)
        self._alerts = {
            key.rpartition("/")[2]: alert
            for key in journal.memories("disagree/")
            if (alert := self._kept(key, Alert, None)) is not None
        }
        self._unsaved: dict[str, bytes] = {}
        for table, alert in self._alerts.items():
            self._show(table, alert)
        retained.is_muted = self._is_muted

    def _kept(self, key: str, kind: type[K], otherwise: K | None) -> Any:
        try:
            return msgspec.json.decode(self._journal.memory(key) or b"null", type=kind)
        except msgspec.DecodeError:
            return otherwise

    # ---- streams

    async def run(self, use: Callable[[Sequence[Stored], bool], None], tables: Sequence[str]) -> None:
        """Read both streams until cancelled; `use(messages, late)` takes events."""

        def events(made: str, stored: Sequence[Stored], last: int, late: bool) -> None:
            use(stored, late)
            self._places[EVENTS] = _Place(made, last)
            if not late and not self.caught_up:
                self.caught_up = True
                self._log.info("replica.caught_up", last=last)
                self.look_who_speaks(tables)
                self._retained.again("")

        def results(made: str, stored: Sequence[Stored], last: int, _late: bool) -> None:
            for table, payload in stored:
                self.agreement.add_other(table, payload)
            self._places[RESULTS] = _Place(made, last)

        def behind(stream: str) -> Callable[[str, int], int]:
            new = {EVENTS: 0, RESULTS: None}[stream]  # results before the first start are not compared

            def position(made: str, newest: int) -> int:
                place = self._places[stream]
                return place.last if place.made == made else newest if new is None else new

            return position

        await self.may_read.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._streams.follow(EVENTS, tables, behind(EVENTS), events))
            group.create_task(self._streams.follow(RESULTS, tables, behind(RESULTS), results))
            group.create_task(self._compare())

    async def _compare(self) -> None:
        while True:
            await asyncio.sleep(COMPARE_S)
            for one in self.agreement.differences():
                before = self._alerts.get(one.table)
                alert = self._alerts[one.table] = one.alert(1 if before is None else before.count + 1)
                self._log.error(DISAGREE, table=one.table, round=one.round, text=alert.text, remedy=alert.remedy)
                self._unsaved[f"disagree/{one.table}"] = msgspec.json.encode(alert)
                self._show(one.table, alert)

    def memory(self, *, settled: bool) -> dict[str, bytes]:
        """The values to write with the next commit. `settled`: no event waits for an earlier one."""
        kept, self._unsaved = self._unsaved, {}
        for stream, whole in ((EVENTS, settled), (RESULTS, not self.agreement.waits)):
            if whole and self._places[stream] != self._written[stream]:
                self._written[stream] = self._places[stream]
                kept[f"backbone/{stream}"] = msgspec.json.encode(self._places[stream])
        return kept

    # ---- the process that publishes messages without an id, and the alert

    def _is_muted(self, topic: str) -> bool:
        return topic.endswith(SHARED) and place_of(topic) not in self._speaking

    def speaks(self, table: str) -> bool:
        """Whether these rules answer wagers and retain states of the table."""
        return table in self._speaking

    def look_who_speaks(self, tables: Iterable[str]) -> None:
        """Find the tables for which these rules answer: other rules may have gone online or offline."""
        self._speaking = {table for table in tables if self._restorer.is_first(table, ready=self.caught_up)}

    def _show(self, table: str, alert: Alert | None) -> None:
        self._retained.put(self._topic_of(table, DISAGREE_LEAF), msgspec.json.encode(alert) if alert else b"")

    def is_ended(self, message: Message) -> bool:
        """Whether a person ended the alert by this message."""
        table = place_of(message.topic)
        cleared = message.topic.endswith(DISAGREE_LEAF) and not message.payload and not message.retain
        if not cleared or self._alerts.pop(table, None) is None:
            return False
        self._unsaved[f"disagree/{table}"] = b""
        self._show(table, None)
        self._log.info("results.settled", table=table)
        return True
