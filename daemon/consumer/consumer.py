"""The rules consumer: applies events to rulesets and publishes verdicts, each event exactly once in effect.

Events are ordered by seq and deduplicated; for a gap a replay is requested from the edge. Offset, open round and
verdicts are written in one transaction to a journal of its own, and its outbox publishes from there. The same events
give the same verdicts, so the process can be killed at any time.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from daemon import logs
from daemon.broker.connection import Connect
from daemon.broker.gap_recovery import ASK_AGAIN, PAGE, ask
from daemon.broker.mac_keys import load_mac_key, load_mac_keys
from daemon.broker.process import BrokerProcess
from daemon.broker.retained import read_standing
from daemon.broker.session import UNREADABLE, BrokerLost, Message, Session
from daemon.broker.stale_topics import (
    CONFLICT,
    FORGED,
    STATE_FORGED,
    STATES,
    StaleTopics,
    alert_topic,
    alerts_of_rules,
    stale_of_rules,
)
from daemon.config.model import Config, Table
from daemon.consumer.numbering import Numbering
from daemon.consumer.streams import IN_CONFLICT, Events, Position, Source, digested, is_journal, key_of, read_position
from daemon.consumer.wagers import AnswerDesk
from daemon.journal.rows import Entry, Row, cause_of, id_and_journal
from daemon.journal.store import Journal
from daemon.replica import Agreement, Replica, Stored, Streams
from daemon.words import words
from protocols.contract.documents import Alert, EdgeHealth, EdgeInfo, ReplayAnswer, mac_of_answer
from protocols.contract.events import EventsMissed, PlayerActed, UnknownEvent, WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import Reason, say
from protocols.contract.results import (
    ENDS,
    VERDICTS,
    Corrected,
    Noted,
    Opened,
    Resolved,
    RoundState,
    Suspended,
    Verdict,
    View,
    Voided,
    encode_verdict,
    type_of as verdict_type,
)
from protocols.contract.topics import (
    LONGEST_EVENT_ID,
    BadEnvelope,
    Envelope,
    decode_wire,
    digest_of,
    edge_topic,
    envelope_of,
    is_id,
    is_mac,
    mac_of,
    table_topic,
)
from rules import RULESETS
from rules.engine.rounds import abandoned, numbered_after
from rules.engine.ruleset import Ruleset, conflict, judge, keeps_its_cards, options_from

__all__ = ["Consumer"]

MOST_EDGES, MOST_JOURNALS = 32, 1000
"""At one table: the most edges at once, and the most journals whose position is kept."""
CONFLICT_NUMBER = 100
"""The first number of verdicts that follow from a second event under a used id."""
WENT_BACK_NUMBER = 200
"""The first number of verdicts after an edge went back to fewer events than were used."""
SHOWN_WITHIN_S = 0.25
"""Seconds without a message after which the broker has sent all retained rounds."""
ALERT_FOR = 600.0
"""Seconds for which an alert remains after the last event that was refused or in conflict."""


class _Alarm:
    """An alert of refused or conflicting events: their number, the last reason, and the time since."""

    def __init__(self, why: Reason) -> None:
        self.count = 0
        self.why = why
        self.quiet = 0.0


class _Kept(Struct, frozen=True):
    """A table's state as it is stored, with its ruleset."""

    ruleset: str
    state: msgspec.Raw


class _Table:
    """One table: its ruleset and its state."""

    def __init__(self, table: Table, journal: Journal, made: dict[tuple[str, bytes], Ruleset[Any]]) -> None:
        """`made`: the rulesets of earlier tables by name and options; a ruleset keeps no state of a table."""
        self.name = table.name
        ruleset = RULESETS[table.ruleset]
        options = options_from(ruleset, table.options)
        self.options = msgspec.json.encode(options)
        same = (table.ruleset, self.options)
        if same not in made:  # craps takes 25 ms and 0.7 MiB
            made[same] = ruleset(options)
        self.ruleset = made[same]
        self.state: Any = self.ruleset.start(table.name)
        self.alerted = False
        """Whether an alert about a doubt is open."""
        self.abandoned = ""
        """The game whose state was dropped: a different one, or this one (state or row unreadable, or other "
        "options)."""
        self.unreadable = False
        """Whether a row of its last round cannot be read."""
        self.other_options = False
        """Whether the state was stored under other options: an open round is then void."""
        self.key = f"state/{table.name}"
        stored = journal.memory(self.key)
        if stored:
            try:
                kept = msgspec.json.decode(stored, type=_Kept)
                if kept.ruleset == ruleset.id:
                    self.state = msgspec.json.decode(kept.state, type=self.ruleset.State)
                    known = journal.memory(f"options/{table.name}")
                    self.other_options = bool(known) and _options(known or b"", type(options)) != options
                else:
                    self.abandoned = kept.ruleset
            except msgspec.DecodeError as error:  # state of another version
                remedy = "an open round is void now; look at the table before the next one"
                logs.get(table=table.name).error("state.unreadable", reason=str(error), remedy=remedy)
                self.abandon()

        opened = journal.latest(table.name, ("opened",))
        self.numbers = Numbering(table.name, journal, _round_of(opened) if opened else "", fresh=not stored)

    def abandon(self) -> None:
        """Begin with a new state and drop the stored one."""
        self.abandoned = self.abandoned or self.ruleset.id
        self.state = self.ruleset.start(self.name)

    def kept(self) -> bytes:
        """The state, as it is stored."""
        return msgspec.json.encode({"ruleset": self.ruleset.id, "state": self.state})  # the format of _Kept


class _Batch(Struct, frozen=True):
    """The consequences of events that are used together.

    `entries` are written and sent first. Then `verdicts` are logged and retained, and the rounds of `moved` published.
    """

    entries: list[Entry] = []
    verdicts: list[tuple[_Table, Verdict]] = []
    moved: dict[str, _Table] = {}


class Consumer(BrokerProcess):
    """The process."""

    KIND = "rules"

    def __init__(
        self, config: Config, journal: Journal, *, connect: Connect | None = None, streams: Streams | None = None
    ) -> None:
        """Continue every table from the journal. `streams`: the backbone, if events are read from there.

        Raises BadOption for a table's options; BadMacKey.
        """
        folder = config.rules.mac_key_folder
        self._mac_keys = load_mac_keys(Path(folder)) if folder else None
        site, name = config.site.name, config.rules.name
        tables = [table for table in config.table if table.ruleset]
        super().__init__(
            config,
            config.rules,
            journal,
            address_of=lambda row: (  # the format of id_and_journal
                row.cause.partition("@")[0],
                table_topic(site, row.place, "round"),
                row.cause.partition("@")[2] or UNSET,
            ),
            replays=[table_topic(site, table.name, "round/cmd/replay") for table in tables],
            alerts={table.name: [alert_topic(site, table.name, name, STATE_FORGED)] for table in tables},
            connect=connect,
            mac_key=load_mac_key(Path(config.rules.mac_key_file)) if config.rules.mac_key_file else b"",
        )
        self._stale_topics = StaleTopics(self._log)
        made: dict[tuple[str, bytes], Ruleset[Any]] = {}
        self._tables = {table.name: _Table(table, journal, made) for table in tables}
        self._streams: dict[tuple[str, ...], Events] = {
            tuple(key.split("/")[1:]): Events(position)
            for key, value in journal.memories("stream/").items()
            if not (position := read_position(value)).retired
        }
        self._unsaved: dict[str, bytes] = {}
        self._moved: dict[Source, Events] = {}
        self._changed: dict[str, _Table] = {}
        """Streams and tables whose position or state is to be written: encoded once for all events of a batch."""
        self._announced: dict[str, tuple[dict[str, int], dict[str, int], float]] = {}
        """The newest events that an edge announced, the next expected one at that time, and the time."""
        self._awaited: dict[tuple[str, str], tuple[int, int, float]] = {}
        """By edge and table: the requested range of seqs, and the time until which its answer is awaited."""
        self.answers = AnswerDesk(self.site, self._tables, journal)
        self._replica = None if streams is None else self._as_replica(streams)
        self._in_sync = True
        """Whether memory equals the last commit. False after a failure within a batch."""
        self._alarms: dict[tuple[str, str], _Alarm] = {}
        """The open alerts, by table and code."""
        self.on_verdict: Callable[[str, Verdict], None] = lambda _table, _verdict: None
        for table in self._tables.values():
            if self.journal.memory(f"options/{table.name}") != table.options:  # stored with the first state
                self._unsaved[f"options/{table.name}"] = table.options
            if table.other_options and self._open_or_in_doubt(table):
                table.abandon()
            self._find_unreadable(table)
            if table.abandoned:
                self._begin_anew(table)

    async def run(self) -> None:
        """Consume until cancelled."""
        self._log.info("rules.started", tables=sorted(self._tables), journal=str(self.journal.path))
        try:
            async with asyncio.TaskGroup() as group:
                self._stay_connected(group)
                if self._replica is not None:
                    group.create_task(self._replica.run(self._use_stored, tuple(self._tables)))
        except asyncio.CancelledError:
            if self._in_sync:
                self._commit([], exact=True)
            raise

    def busy(self, new: Config) -> list[str]:
        """The tables with an open round that `new` would end: it changes their game or options, or lacks them."""
        games = {one.name: (one.ruleset, one.options) for one in new.table}
        changed = {one.name for one in self.config.table if games.get(one.name) != (one.ruleset, one.options)}
        return [name for name, one in self._tables.items() if name in changed and self._open_or_in_doubt(one)]

    # ---- events of the backbone

    def _as_replica(self, streams: Streams) -> Replica:
        def used(source: Source) -> int:
            stream = self._streams.get(source)
            return 0 if stream is None else stream.expected - 1

        agreement = Agreement(self.journal, self._tables, used)
        for source in self._streams:
            agreement.begin(source)
        one = Replica(streams, self.journal, agreement, self._restorer, self.retained, partial(table_topic, self.site))
        self.answers.speaks = one.speaks
        if not any(table.numbers.unread for table in self._tables.values()):
            one.may_read.set()
        return one

    def _use_stored(self, stored: Sequence[Stored], late: bool) -> None:
        """Events of the backbone, whose users write rows of their own tables alone: they have no MAC."""
        envelopes = [envelope for table, payload in stored for envelope in self._read(table, Message("", payload))]
        self.take([replace(one, replay=True) for one in envelopes] if late else envelopes)

    # ---- events to verdicts

    def take(self, envelopes: Iterable[Envelope]) -> None:
        """Use the events that are in order, and commit the consequences. Nothing is published before it is durable."""
        self._in_sync = False
        batch = _Batch()
        for envelope in envelopes:
            edge, _, name = envelope.id.rpartition(":")[0].partition(":")
            source, table = (edge, envelope.journal, name), self._tables.get(name)
            if table is None or envelope.seq < 1:
                continue
            stream = self._streams.get(source) or self._first_of(source)
            if stream is None:
                continue
            received = envelope if envelope.digest else digested(envelope)
            if stream.contradicts(received):
                self._in_conflict(table, edge, stream, received, batch)
            for ready in stream.take(received):
                self._apply(table, stream, ready, batch)
            self._note(source, stream, table, batch)
        self._finish(batch)

    def _first_of(self, source: Source) -> Events | None:
        """A new stream for the first event of a source; None if the table has too many, or the source is invalid."""
        edge, journal, table = source
        if not is_id(edge) or not is_journal(journal):
            return None
        if not self._new_stream(source):
            self._alarm(table, FORGED, say("many"))
            return None
        return self._streams[source]

    def _new_stream(self, key: Source) -> bool:
        """Continue the stream of this journal, even under another name of its edge. False: there are too many streams.

        The edge is no longer asked for its old journal, unless that comes back.
        """
        here = [known for known in self._streams if known[2] == key[2]]
        retired = [known for known in here if known[0] == key[0] or known[1] == key[1]]
        moved = {key_of(source): stream.position() for source, stream in self._moved.items()}
        written = {**self.journal.memories("stream/"), **self._unsaved, **moved}
        kept = [one for one in written if one.startswith("stream/") and one.endswith(f"/{key[2]}")]
        if len(here) - len(retired) >= MOST_EDGES or (len(kept) >= MOST_JOURNALS and key_of(key) not in kept):
            return False
        for old in retired:
            self._moved.pop(old, None)
            self._unsaved[key_of(old)] = written[key_of(old)] = self._streams.pop(old).position(retired=True)
        known = [read_position(value) for one, value in written.items() if one.split("/")[2:] == list(key[1:])]
        self._streams[key] = Events(max(known, key=lambda one: one.seq, default=Position()))
        return True

    def _in_conflict(self, table: _Table, edge: str, stream: Events, second: Envelope, batch: _Batch) -> None:
        """Handle a second event under a number, with other content: a foreign writer used the edge's name, or a copy of
        its journal was put back. If the first was used, its round is in doubt; the second is not used.
        """
        self._alarm(table.name, CONFLICT, say("text", seq=second.seq, edge=edge))
        if second.seq < stream.expected and stream.settle(second):
            table.state, new = conflict(table.ruleset, table.state, second)
            self._enter(table, second, new, batch, CONFLICT_NUMBER)

    def _went_back(self, key: Source, stream: Events, to: int) -> None:
        """Handle an edge with fewer events than were used: a foreign writer used its name, or a copy of its journal was
        put back. Later events are in doubt, and with them the last round; the stream continues from `to`.
        """
        edge, journal, name = key
        table, used = self._tables[name], stream.expected - 1
        self._log.error("events.went_back", table=name, edge=edge, used=used, there=to - 1)
        fewer = say("fewer_between", edge=edge, there=to - 1, used=used)
        if table.numbers.newest:
            fewer = say("fewer", **fewer.values, round=table.numbers.newest)
        self._alarm(name, CONFLICT, fewer)
        self._in_sync = False
        batch, source = _Batch(), table_topic(self.site, name, "round")
        last = Envelope(
            f"{edge}:{name}:{used}", source, stream.at or datetime.now(UTC), EventsMissed(1), used, journal=journal
        )
        table.state, new = conflict(table.ruleset, table.state, last)
        self._enter(table, last, new, batch, WENT_BACK_NUMBER)
        stream.skip(to)
        stream.at = None
        stream.doubt = True
        self._note(key, stream, table, batch)
        self._finish(batch)

    def _are_gone(self, key: tuple[str, ...], oldest: int) -> None:
        """Continue from the oldest event that the edge still has; older unused events are gone."""
        if key not in self._streams and not self._new_stream(key):
            return
        stream, table = self._streams[key], self._tables[key[2]]
        if stream.expected >= oldest:
            return
        self._log.error(
            "events.gone",
            table=key[2],
            edge=key[0],
            first=stream.expected,
            last=oldest - 1,
            remedy="their files were archived or deleted before these rules had used them: their rounds have no end "
            "here; archived files contain the events (feltd journal export)",
        )
        self._in_sync = False
        batch = _Batch()
        ready = stream.skip(oldest)
        stream.at, stream.doubt = None, True
        for one in ready:
            self._apply(table, stream, one, batch)
        self._note(key, stream, table, batch)
        self._finish(batch)

    def _find_unreadable(self, table: _Table) -> None:
        """Void the last round, once, if it has a row of an earlier version that cannot be read."""
        opened, key = self.journal.latest(table.name, ("opened",)), f"unreadable/{table.name}"
        if opened is None:
            return
        row = self.journal.unreadable(table.name, max(opened.seq, int(self.journal.memory(key) or b"0") + 1))
        if row is None:
            return
        ended = self.journal.latest(table.name, ENDS, since=opened.seq)
        behind = ended is not None and row.seq > ended.seq
        if behind and ended is not None:
            behind = self.journal.latest(table.name, ("suspended",), since=ended.seq) is None
        what = "no round rests on it" if behind else f"round {_round_of(opened)} is void: give its bets back"
        self._log.error(
            "row.unreadable",
            table=table.name,
            seq=row.seq,
            row=row.n,
            reason=row.unreadable,
            remedy=f"{what}; keep the journal for the inspector, and find the publisher of an event at such a time",
        )
        self._unsaved[key] = b"%d" % self.journal.last(table.name)
        if behind:  # an irregularity between two rounds
            self._commit([])
            return
        table.unreadable = True
        table.abandon()

    def _begin_anew(self, table: _Table) -> None:
        """End the open or doubtful round of a table whose state was dropped as void; the next events are in doubt."""
        for key, stream in self._streams.items():
            if key[2] == table.name:
                stream.doubt = True
                self._unsaved[key_of(key)] = stream.position()
        self._changed[table.name] = table
        opened, last = self._newest(table)
        if opened is None or last is None:
            self._commit([])
            return
        table.state = numbered_after(table.state, table.name, _round_of(opened))
        verdict = self._end_of_what_was(table, opened, last)
        if verdict is None:
            self._commit([])
            return
        id_, journal = id_and_journal(last.cause)
        event, _, number = id_.rpartition("/")
        cause = cause_of(f"{event}/{int(number) + 1}", journal)
        type_, data = verdict_type(verdict), encode_verdict(verdict)
        self._commit([Entry(table.name, "round", type_, last.time, data, cause=cause)])
        self._publish_verdict(table, verdict)

    def _newest(self, table: _Table) -> tuple[Row | None, Row | None]:
        """The last opening of a round, and the last verdict."""
        return self.journal.latest(table.name, ("opened",)), self.journal.latest(table.name, tuple(VERDICTS))

    def _open_or_in_doubt(self, table: _Table) -> bool:
        opened, last = self._newest(table)
        return opened is not None and last is not None and self._end_of_what_was(table, opened, last) is not None

    def _end_of_what_was(self, table: _Table, opened: Row, last: Row) -> Verdict | None:
        """The verdict that ends an open round, or a result that waited for a person."""
        ended = self.journal.latest(table.name, ENDS, since=opened.seq)
        evidence = (id_and_journal(last.cause)[0].rpartition("/")[0],)
        if ended is None:
            return Voided(abandoned(_round_of(opened), table.abandoned, evidence, unreadable=table.unreadable))
        if table.unreadable:
            round_ = _round_of(opened)
            return Corrected(abandoned(round_, table.abandoned, evidence, supersedes=round_, unreadable=True))
        doubted = self.journal.latest(table.name, ("suspended",), since=ended.seq)
        if doubted is not None:
            round_ = _round_of(doubted)
            return Corrected(abandoned(round_, table.abandoned, evidence, supersedes=round_))
        return None

    def _apply(self, table: _Table, stream: Events, envelope: Envelope, batch: _Batch) -> None:
        doubted: tuple[Verdict, ...] = ()
        if table.numbers.before is not None:
            table.state = table.numbers.first(table.state, envelope)
        if envelope.seq == 1:
            stream.after = table.numbers.newest
        if stream.doubt:
            lost = replace(envelope, event=EventsMissed(1))
            table.state, doubted = judge(table.ruleset, table.state, lost)
        stream.at, stream.doubt, stream.in_conflict = envelope.time, False, False
        used = conflict if envelope.digest == IN_CONFLICT else judge
        before = table.state
        table.state, new = used(table.ruleset, table.state, envelope)
        match envelope.event:
            case WagerPlaced(request="") | WagerWithdrawn(request=""):
                self.answers.answer_dealer(table.name, envelope, before, table.state, doubted + new)
            case WagerPlaced() | WagerWithdrawn() | PlayerActed():
                round_ = table.ruleset.view(table.state).round
                answered = self.answers.decide(table.name, envelope, before, table.state, doubted + new, round_)
                self._unsaved.update(answered)
        self._enter(table, envelope, doubted + new, batch)

    def _enter(
        self, table: _Table, envelope: Envelope, new: tuple[Verdict, ...], batch: _Batch, first: int = 0
    ) -> None:
        """Number the verdicts of an event, to be written and published."""
        counted_by = f"@{envelope.journal}" if envelope.journal else ""  # the format of cause_of
        for number, verdict in enumerate(new, first):
            # The id consists of the event and the number of its consequence, so that a standby gives the same.
            cause = f"{envelope.id}/{number}{counted_by}"
            type_, data = verdict_type(verdict), encode_verdict(verdict)
            batch.entries.append(Entry(table.name, "round", type_, envelope.time, data, cause=cause))
            batch.verdicts.append((table, verdict))
            if isinstance(verdict, Opened):
                table.numbers.newest = verdict.round

    def _note(self, source: Source, stream: Events, table: _Table, batch: _Batch) -> None:
        """Note that an event was used. State and position are encoded at the commit: a batch may change them often."""
        self._moved[source] = stream
        self._changed[table.name] = batch.moved[table.name] = table

    def _finish(self, batch: _Batch) -> None:
        if batch.entries or self.answers.waits:
            self._commit(batch.entries)
        self._in_sync = True
        if self.answers.undelivered:
            self.answers.release()
        for table, verdict in batch.verdicts:
            self._publish_verdict(table, verdict)
        for table in batch.moved.values():
            self.retained.touch(table_topic(self.site, table.name, "round/state"))
            if table.alerted and not self._waits(table):  # no verdict reports that a round goes on
                self._alert(table, None)

    def _commit(self, entries: list[Entry], *, exact: bool = False) -> None:
        """Commit entries with states and positions. Positions without entries wait: after a crash their events are
        requested again.
        """
        memory = dict(self._unsaved)
        for table in self._changed.values():
            memory[table.key] = table.kept()
        for source, stream in self._moved.items():
            memory[key_of(source)] = stream.position()
        if self._replica is not None:
            memory |= self._replica.memory(settled=not any(one.unsettled for one in self._streams.values()))
        if entries or memory or exact:
            rows = self.append(entries, memory, exact=exact)
            if self._replica is not None:
                self._replica.agreement.add_own(rows)
            self._unsaved.clear()
            self._changed.clear()
            self._moved.clear()

    def _publish_verdict(self, table: _Table, verdict: Verdict) -> None:
        self.on_verdict(table.name, verdict)
        match verdict:
            case Resolved(result=result) | Voided(result=result) | Corrected(result=result):
                self.retained.put(table_topic(self.site, table.name, "round/result"), msgspec.json.encode(result))
                if table.alerted:
                    self._alert(table, None)
                self._log.info(
                    "round." + verdict_type(verdict),
                    table=table.name,
                    round=result.round,
                    outcome=result.announcements.get("en", ""),
                    reason=result.void.reason.code if result.void else "",
                )
            case Suspended(round=round_, reason=reason):
                self._alert(table, verdict)
                self._log.warning("round.suspended", table=table.name, round=round_, reason=reason.code)
            case Noted(irregularity=irregularity):
                text = words.noted("en", irregularity)
                self._log.warning("round.irregular", table=table.name, code=irregularity.code, text=text)
            case _:
                pass

    def _waits(self, table: _Table) -> bool:
        return table.ruleset.view(table.state).phase == "suspended"

    def _alert(self, table: _Table, doubt: Suspended | None) -> None:
        table.alerted = doubt is not None
        payload = b""
        if doubt is not None:
            alert = words.alert("round.suspended", doubt.reason, doubt.remedy, round=doubt.round)
            payload = msgspec.json.encode(alert)
        self.retained.put(table_topic(self.site, table.name, "alert/round-suspended"), payload)

    def _alarm(self, table: str, code: str, why: Reason) -> None:
        """Raise an alert at a table, or count one more: logged when it begins, ended when no more come for long."""
        if table not in self._tables:
            return
        if (table, code) not in self._alarms:
            self._alarms[table, code] = _Alarm(why)
            alert = words.alert(code, why)
            self._log.error(code, table=table, text=alert.text, remedy=alert.remedy)
        alarm = self._alarms[table, code]
        alarm.count, alarm.why, alarm.quiet = alarm.count + 1, why, 0.0
        topic = alert_topic(self.site, table, self.name, code)
        self.retained.put(topic, partial(self._alarm_says, code, alarm))

    @staticmethod
    def _alarm_says(code: str, alarm: _Alarm) -> Alert:
        return words.alert(code, alarm.why, count=alarm.count)

    def _end_alarms(self, seconds: float) -> None:
        """End the alerts without a new event for long enough; called when `seconds` have passed."""
        for (table, code), alarm in list(self._alarms.items()):
            alarm.quiet += seconds
            if alarm.quiet >= ALERT_FOR:
                del self._alarms[table, code]
                self.retained.put(alert_topic(self.site, table, self.name, code), b"")
                self._log.info(f"{code}_ended", table=table, count=alarm.count)

    # ---- on the broker

    def _is_removed(self, row: Row) -> bool:
        return row.place not in self._tables

    async def _serve(self, session: Session) -> None:
        if not self._in_sync:
            raise RuntimeError("memory is ahead of the journal after a failed commit: restart")
        await super()._serve(session)

    async def _read_numbers(self, session: Session) -> None:
        """With a new journal, read the retained rounds of the broker before ours replace them."""
        unread = [table for table in self._tables.values() if table.numbers.unread]
        if not unread:
            return
        try:
            shown = await read_standing(session, table_topic(self.site, "+", STATES), quiet_s=SHOWN_WITHIN_S)
        except BrokerLost as error:  # refused; a lost connection is handled elsewhere
            remedy = "print the access list again (feltd acl); until then round numbers of today may be given twice"
            self._log.warning("numbers.unread", reason=str(error), remedy=remedy)
            return
        for table in unread:
            self._unsaved.update(table.numbers.read(shown.get(table_topic(self.site, table.name, STATES), b"")))
        self._commit([])

    async def _prepare(self, session: Session) -> list[str]:
        await self._read_numbers(session)
        if self._replica is not None:
            presence = [edge_topic(self.site, "+", leaf) for leaf in ("availability", "info")]
            for topic, payload in (await read_standing(session, *presence, quiet_s=SHOWN_WITHIN_S)).items():
                self._restorer.received(Message(topic, payload, retain=True))
            self._replica.look_who_speaks(self._tables)
            self._replica.may_read.set()
        for table in self._tables.values():
            self.retained.put(table_topic(self.site, table.name, "round/state"), partial(self.standing, table.name))
            said = self.journal.latest(table.name, (*ENDS, "suspended"))
            in_doubt = said is not None and said.type == "suspended" and self._waits(table)
            self._alert(table, msgspec.json.decode(said.data, type=Suspended) if said and in_doubt else None)
            for code in (FORGED, CONFLICT):
                if (table.name, code) not in self._alarms:  # an alert of the last process
                    self.retained.put(alert_topic(self.site, table.name, self.name, code), b"")
            if (last := self.journal.latest(table.name, ENDS)) is not None:
                result = msgspec.json.decode(last.data, type=dict[str, msgspec.Raw])["result"]
                self.retained.put(table_topic(self.site, table.name, "round/result"), bytes(result))
        topics = [edge_topic(self.site, "+", leaf) for leaf in ("availability", "health", "info")]
        for name in self._tables:
            topics += [
                table_topic(self.site, name, "device/+/event/#"),
                table_topic(self.site, name, "cmd/replay/result"),
                table_topic(self.site, name, "wager/+"),
            ]
        return topics

    def _work(self, session: Session) -> list[Coroutine[Any, Any, None]]:
        states = table_topic(self.site, "+", STATES)
        return [
            self._receive(session),
            self.answers.send(session),
            self._chase(session),
            self._stale_topics.look(session, states, own=bool(self._tables)),
        ]

    def info(self) -> EdgeInfo:
        """The retained `info` of these rules, with the tables that the broker suspends."""
        ready = self._replica is None or self._replica.caught_up
        return replace(super().info(), bootid=self.boot, rules=True, tables=tuple(self._tables) if ready else ())

    def _own_topics(self) -> list[str]:
        """The topics that these rules retain."""
        topics: list[str] = []
        for table in self._tables:
            topics += [table_topic(self.site, table, leaf) for leaf in ("round/state", "round/result")]
            topics += alerts_of_rules(self.site, table, self.name)
        return topics

    def view(self, table: str) -> View:
        """The present round of `table`."""
        return self._tables[table].ruleset.view(self._tables[table].state)

    def standing(self, table: str) -> RoundState:
        """The present round with the positions of the used events, which show readers what events it includes."""
        view = self.view(table)
        streams = {journal: stream for (_, journal, name), stream in self._streams.items() if name == table}
        received = {journal: stream.expected - 1 for journal, stream in streams.items()}
        after = {journal: stream.after for journal, stream in streams.items() if stream.after}
        newest = self._tables[table].numbers.newest
        kept = keeps_its_cards(self._tables[table].ruleset) or UNSET
        return RoundState(view.round, view.phase, view.detail, received, self.name, newest, after, kept)

    def position(self, table: str) -> int:
        """The seq of the last event of `table` that was used, in the journal that counts now."""
        return max((stream.expected - 1 for key, stream in self._streams.items() if key[2] == table), default=0)

    async def _receive(self, session: Session) -> None:
        while True:
            left = await session.messages(at_once=self._use)
            while left := self._use(left) or []:
                await self._received_other(session, left.pop(0))
            await self._ask_for_gaps(session)

    def _use(self, messages: list[Message]) -> list[Message] | None:
        """Use events up to the first message that may have to wait for the broker; return that one and the later ones.

        The session calls this in the turn of the loop that reads. None: nothing is left, and no gap must be requested.
        """
        envelopes: list[Envelope] = []
        left = []
        for at, message in enumerate(messages):
            match message.topic.split("/")[3:]:
                case ["table", table, "device", _, "event", _]:
                    read = self._read(table, message)
                    envelopes += read if self._replica is None else [one for one in read if one.replay]
                case ["table", table, "wager", _]:
                    self.answers.received(table, message)
                case _:
                    left = messages[at:]
                    break
        if envelopes:
            self.take(envelopes)
        return left if left or any(stream.unsettled for stream in self._streams.values()) else None

    async def _received_other(self, session: Session, message: Message) -> None:
        """Handle a message that carries no event."""
        if self._replica is not None and self._replica.is_ended(message):
            return
        self._restorer.received(message)
        match message.topic.split("/")[3:]:
            case ["edge", edge, leaf]:
                await self._edge_says(session, edge, leaf, message)
            case ["table", table, "cmd", *_]:
                await self._answered(session, table, message)
            case ["table", table, "round", "state"]:
                await self._met(session, table, message)
            case _:  # a broker may deliver another client's messages; requests have their own connection
                pass

    async def _met(self, session: Session, table: str, message: Message) -> None:
        """Handle a retained round: one of a table that these rules no longer have is cleared."""
        if table in self._tables:
            self._stale_topics.received_own()
        else:
            await self._stale_topics.clear(session, stale_of_rules(self.site, self.name, message))

    def _read(self, table: str, message: Message) -> tuple[Envelope, ...]:
        """The event of a message. An unknown or unreadable one becomes a missed event, so that it leaves a doubt.

        An event that does not belong to its topic is refused, because write permissions are by topic.
        """
        try:
            wire = decode_wire(message.payload)
        except (BadEnvelope, *UNREADABLE) as error:
            self._log.warning("event.refused", topic=message.topic, reason=str(error))
            return ()
        edge, _, place = wire.id.partition(":")
        topic = message.topic
        if stored := not topic:  # from the backbone
            topic = table_topic(self.site, table, f"device/{wire.source.rpartition('/')[2]}/event/{wire.type}")
        belongs = topic == f"{wire.source}/event/{wire.type}" and place == f"{table}:{wire.seq}"
        if not belongs or not is_id(edge) or len(wire.id) > LONGEST_EVENT_ID:
            self._alarm(table, FORGED, say("topic"))
            return ()
        if not (stored or self._mac_keys is None) and not self._proven(
            table, edge, lambda key: is_mac(wire.mac, mac_of(wire, key))
        ):
            return ()
        digest = digest_of(wire.source, wire.type, wire.time, bytes(wire.data))
        try:
            envelope = envelope_of(wire, len(message.payload), digest)
        except (BadEnvelope, UnknownEvent, *UNREADABLE) as error:
            self._log.warning("event.refused", topic=topic, reason=str(error))
            missed = EventsMissed(1)
            envelope = Envelope(
                wire.id, wire.source, wire.time, missed, wire.seq, wire.bootid, wire.journal, digest=digest
            )
        return (envelope,)

    def _proven(self, table: str, edge: str, is_right: Callable[[bytes], bool]) -> bool:
        """Whether the MAC is that of its edge; True where these rules have no keys."""
        if self._mac_keys is None:
            return True
        key = self._mac_keys.get(edge)
        if key is None:
            why = say("key", edge=edge)
        elif is_right(key):
            return True
        else:
            why = say("mac", edge=edge)
        self._alarm(table, FORGED, why)
        return False

    async def _edge_says(self, session: Session, edge: str, leaf: str, message: Message) -> None:
        """Handle documents of an edge: after its return missing events are requested; its health shows a lost tail."""
        if self._replica is not None and leaf in ("availability", "info"):
            self._replica.look_who_speaks(self._tables)
        if leaf == "availability" and not message.payload:
            self.retained.again("")  # `feltd forget` cleared the edge's topics, perhaps with ours of its tables
        if edge == self.name:
            return
        if leaf == "availability" and message.payload == b"online":
            for name in self._tables:
                await self._ask(session, name, edge, max(self._next(edge, name) - 1, 1), None)
        elif leaf == "health":
            with contextlib.suppress(*UNREADABLE):
                newest = msgspec.json.decode(message.payload, type=EdgeHealth).newest
                self._announced[edge] = newest, {name: self._next(edge, name) for name in self._tables}, _now()

    async def _answered(self, session: Session, name: str, message: Message) -> None:
        try:
            said = msgspec.json.decode(message.payload, type=ReplayAnswer)
        except UNREADABLE as error:
            self._log.warning("answer.refused", topic=message.topic, reason=str(error))
            return
        if name not in self._tables or not is_id(said.edge):
            return
        if not self._proven(name, said.edge, lambda key: is_mac(said.mac, mac_of_answer(said, message.topic, key))):
            return
        awaited = self._awaited.get((said.edge, name))
        ours = awaited is not None and awaited[0] == said.first
        if ours:
            del self._awaited[said.edge, name]
        if not is_journal(said.journal):
            return
        key = (said.edge, said.journal, name)
        stream = self._streams.get(key)
        if said.oldest > (1 if stream is None else stream.expected):
            self._are_gone(key, said.oldest)
            stream = self._streams.get(key)
        if stream is None and said.first > 1:
            # The edge has a new journal: the requested events begin there at 1.
            await self._ask(session, name, said.edge, 1, None)
        elif stream is not None and ours and said.newest < said.first < stream.expected:  # these events were used
            self._went_back(key, stream, said.newest + 1)
        elif stream is not None and said.first < stream.expected <= said.newest:  # more is missing
            await self._ask(session, name, said.edge, stream.expected, None)

    def _next(self, edge: str, table: str) -> int:
        """The next expected seq of `table` in the present journal of `edge`."""
        ours = (one.expected for key, one in self._streams.items() if key[0] == edge and key[2] == table)
        return max(ours, default=1)

    async def _ask(self, session: Session, name: str, edge: str, first: int, last: int | None) -> None:
        """Deduplicate replay requests: a duplicate request doubles the answers."""
        _, to, until = self._awaited.get((edge, name), (0, 0, 0.0))
        if first <= to and _now() < until:
            return
        self._awaited[edge, name] = first, first + PAGE - 1 if last is None else last, _now() + ASK_AGAIN
        await ask(session, table_topic(self.site, name, "cmd/replay"), edge, first, last)

    async def _ask_for_gaps(self, session: Session) -> None:
        now = _now()
        for (edge, _, name), stream in list(self._streams.items()):
            if (gap := stream.to_ask(now)) is not None:
                await self._ask(session, name, edge, *gap)

    async def _chase(self, session: Session) -> None:
        """Repeat requests for replay: a request or its answer may be lost."""
        while True:
            await asyncio.sleep(ASK_AGAIN)
            self._end_alarms(ASK_AGAIN)
            await self._ask_for_gaps(session)
            await self._ask_for_tails(session)
            self._commit([])

    async def _ask_for_tails(self, session: Session) -> None:
        """Request the newest events that an edge announced and that are missing: no later event shows that gap."""
        for edge, (newest, waited_for, at) in list(self._announced.items()):
            if _now() - at < ASK_AGAIN:
                continue
            del self._announced[edge]
            for name in self._tables:
                first = self._next(edge, name)
                if newest.get(name, 0) >= first:
                    await self._ask(session, name, edge, first, None)
                elif newest.get(name, first) < waited_for[name] - 1:  # old health or an old journal
                    await self._ask(session, name, edge, first - 1, None)


def _options(known: bytes, kind: type[Any]) -> Any:
    """The stored options; an option that this version added has its default. None: they do not fit."""
    try:
        return msgspec.json.decode(known, type=kind)
    except msgspec.DecodeError:
        return None


def _round_of(row: Row) -> str:
    """The round of an opening or a doubt."""
    return str(msgspec.json.decode(row.data)["round"])


def _now() -> float:
    return asyncio.get_running_loop().time()
