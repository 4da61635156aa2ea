"""The rules consumer: events in, rounds out, exactly once in effect.

It trusts nobody to remember. Events are put in order by their seq and taken once; a gap is asked for at the edge's
journal. Position, open round and results are one transaction in a journal of its own; what follows is published from
there. The same events give the same results, so it may be killed anywhere.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from daemon import logs, version
from daemon.config import Config, Table, broker_of
from daemon.journal import Entry, Journal, Row
from daemon.leftovers import STATES, Leftovers, left_by_rules
from daemon.mqtt import UNREADABLE, Connect, Message, Session, Will, last_word, stay_connected
from daemon.outbox import Outbox
from daemon.replay import ASK_AGAIN, PAGE, Answer, Stream, answer, ask
from daemon.retained import Retained
from protocols.events import EventsMissed, UnknownEvent
from protocols.topics import (
    BadEnvelope,
    Envelope,
    Wire,
    decode_envelope,
    decode_wire,
    edge_topic,
    encode_wire,
    table_topic,
)
from rules import RULESETS
from rules.ruleset import Corrected, Noted, Resolved, Ruleset, Suspended, Verdict, View, Voided, judge, options_from
from rules.ruleset import type_of as verdict_type

__all__ = ["Consumer", "Standing"]

# Behind the position in a journal that its edge no longer counts in.
LEFT = b" left"
ENDS = ("resolved", "voided", "corrected")


class Health(Struct, frozen=True):
    """The part of an edge's health that tells of events we may not have heard of."""

    newest: dict[str, int]


class Standing(View, frozen=True):
    """`round/state`.

    `heard`: by journal of an edge, the seq of the last event of the table that it rests on. `rules`: who says it.
    """

    heard: dict[str, int]
    rules: str


class _Kept(Struct, frozen=True):
    """A table's state as it is written down: it belongs to one ruleset."""

    ruleset: str
    state: msgspec.Raw


class _Table:
    """One table: its ruleset and where the round stands."""

    def __init__(self, table: Table, journal: Journal) -> None:
        self.name = table.name
        ruleset = RULESETS[table.ruleset]
        self.ruleset: Ruleset[Any] = ruleset(options_from(ruleset, table.options))
        self.state: Any = self.ruleset.start(table.name)
        stored = journal.memory(f"state/{table.name}")
        if stored:
            try:
                kept = msgspec.json.decode(stored, type=_Kept)
                if kept.ruleset == ruleset.id:
                    self.state = msgspec.json.decode(kept.state, type=self.ruleset.State)
            except msgspec.DecodeError as error:  # of another version
                logs.get(table=table.name).error("state.unreadable", reason=str(error), remedy="void the open round")

    def kept(self) -> bytes:
        """The state, to be written down."""
        return msgspec.json.encode(_Kept(self.ruleset.id, msgspec.Raw(msgspec.json.encode(self.state))))


class Consumer:
    """The process."""

    def __init__(self, config: Config, journal: Journal, *, connect: Connect | None = None) -> None:
        """Take up every table where the journal left it. Raises BadOption for a table's options."""
        self._connect = connect
        self.config = config
        self.journal = journal
        self.site = config.site.name
        self.name = config.rules.name
        self._log = logs.get(rules=self.name)
        self.outbox = Outbox(journal, self._message_of)
        self.retained = Retained()
        self._leftovers = Leftovers(self._log)
        self._tables = {table.name: _Table(table, journal) for table in config.table if table.ruleset}
        self._streams: dict[tuple[str, ...], Stream[Envelope]] = {
            tuple(key.split("/")[1:]): Stream(int(value) + 1)
            for key, value in journal.memories("stream/").items()
            if not value.endswith(LEFT)
        }
        self._unsaved: dict[str, bytes] = {}
        self._told: dict[str, tuple[dict[str, int], float]] = {}
        self._awaited: dict[tuple[str, str], tuple[int, int, float]] = {}
        """By edge and table: from which seq to which an answer is on its way, and until when that is believed."""
        self.connected = False
        self.on_verdict: Callable[[str, Verdict], None] = lambda _table, _verdict: None

    async def run(self) -> None:
        """Consume until cancelled."""
        self._log.info("rules.started", tables=sorted(self._tables), journal=str(self.journal.path))
        will = Will(edge_topic(self.site, self.name, "availability"), b"offline")
        try:
            identifier = f"feltd-rules-{self.name}"
            broker = broker_of(self.config, self.config.rules)
            await stay_connected(broker, identifier, will, self._serve, self._log, self._connect)
        except asyncio.CancelledError:
            self._commit([])  # only here: after a failure the state may be ahead of what was written
            raise

    # ---- events to verdicts

    def take(self, envelopes: Iterable[Envelope]) -> None:
        """Use what is in order, and write down what follows. Nothing is published before it is durable."""
        entries: list[Entry] = []
        verdicts: list[tuple[str, Verdict]] = []
        for envelope in envelopes:
            edge, _, table_name = envelope.id.rpartition(":")[0].partition(":")
            table = self._tables.get(table_name)
            if table is None or not edge or "/" in edge + envelope.journal or envelope.seq < 1:
                continue
            key = (edge, envelope.journal, table_name)
            if key not in self._streams:
                self._new_stream(key)
            stream = self._streams[key]
            for ready in stream.take(envelope):
                self._apply(table, ready, entries, verdicts)
            self._note(key, stream, table)
        self._finish(entries, verdicts)

    def _new_stream(self, key: tuple[str, ...]) -> None:
        """An edge that counts in another journal is not asked for the old one any more, unless that comes back."""
        for old in [known for known in self._streams if known[0] == key[0] and known[2] == key[2]]:
            self._unsaved[_stream_key(old)] = b"%d" % (self._streams.pop(old).expected - 1) + LEFT
        last = self._unsaved.get(_stream_key(key)) or self.journal.memory(_stream_key(key)) or b"0"
        self._streams[key] = Stream(int(last.removesuffix(LEFT)) + 1)

    def _apply(
        self, table: _Table, envelope: Envelope, entries: list[Entry], verdicts: list[tuple[str, Verdict]]
    ) -> None:
        table.state, new = judge(table.ruleset, table.state, envelope)
        for number, verdict in enumerate(new):
            # The id is made of the event and its consequence, so that a standby says the same.
            cause = f"{envelope.id}/{number}"
            entries.append(
                Entry(table.name, "round", verdict_type(verdict), envelope.time, _data(verdict), cause=cause)
            )
            verdicts.append((table.name, verdict))

    def _note(self, key: tuple[str, ...], stream: Stream[Envelope], table: _Table) -> None:
        self._unsaved[_stream_key(key)] = b"%d" % (stream.expected - 1)
        self._unsaved[f"state/{table.name}"] = b""  # encoded when written: a batch may change it many times

    def _finish(self, entries: list[Entry], verdicts: list[tuple[str, Verdict]]) -> None:
        changed = [key.partition("/")[2] for key in self._unsaved if key.startswith("state/")]
        if entries:
            self._commit(entries)
        for table_name, verdict in verdicts:
            self._tell(self._tables[table_name], verdict)
        for table_name in changed:
            self.retained.touch(table_topic(self.site, table_name, "round/state"))

    def _commit(self, entries: list[Entry]) -> None:
        """Positions without verdicts wait for the next commit: after a crash those events are asked for again."""
        memory = {
            key: self._tables[key.partition("/")[2]].kept() if key.startswith("state/") else value
            for key, value in self._unsaved.items()
        }
        if entries or memory:
            rows = self.journal.append(entries, {**memory, **self.outbox.memory()})
            self._unsaved.clear()
            self.outbox.offer(rows)

    def _tell(self, table: _Table, verdict: Verdict) -> None:
        self.on_verdict(table.name, verdict)
        match verdict:
            case Resolved(result=result) | Voided(result=result) | Corrected(result=result):
                self.retained.put(table_topic(self.site, table.name, "round/result"), msgspec.json.encode(result))
                self._alert(table, None)
                self._log.info(
                    "round." + verdict_type(verdict),
                    table=table.name,
                    round=result.round,
                    outcome=result.announcements.get("en", ""),
                    reason=result.void.reason if result.void else "",
                )
            case Suspended(round=round_, reason=reason):
                self._alert(table, verdict)
                self._log.warning("round.suspended", table=table.name, round=round_, reason=reason)
            case Noted(irregularity=irregularity):
                self._log.warning("round.irregular", table=table.name, code=irregularity.code, text=irregularity.text)
            case _:
                pass

    def _alert(self, table: _Table, doubt: Suspended | None) -> None:
        text = b""
        if doubt is not None:
            alert = {"round": doubt.round, "code": "round.suspended", "text": doubt.reason, "severity": "error"}
            text = msgspec.json.encode({**alert, "remedy": doubt.remedy})
        self.retained.put(table_topic(self.site, table.name, "alert/round-suspended"), text)

    # ---- on the broker

    def _message_of(self, row: Row, late: bool) -> tuple[str, bytes]:
        source = table_topic(self.site, row.place, "round")
        wire = Wire(
            "1.0",
            row.cause,
            source,
            row.type,
            row.time,
            row.seq,
            "",
            self.journal.name,
            late,
            msgspec.Raw(row.data),
        )
        return f"{source}/event/{row.type}", encode_wire(wire)

    async def _serve(self, session: Session) -> None:
        try:
            await self._served(session)
        except asyncio.CancelledError:
            await last_word(session, edge_topic(self.site, self.name, "availability"), b"offline")
            raise
        finally:
            self.connected = False

    async def _served(self, session: Session) -> None:
        for table in self._tables.values():
            self.retained.put(table_topic(self.site, table.name, "round/state"), partial(self.standing, table.name))
            said = self.journal.latest(table.name, (*ENDS, "suspended"))
            in_doubt = said is not None and said.type == "suspended"
            self._alert(table, msgspec.json.decode(said.data, type=Suspended) if said and in_doubt else None)
            if (last := self.journal.latest(table.name, ENDS)) is not None:
                result = msgspec.json.decode(last.data, type=dict[str, msgspec.Raw])["result"]
                self.retained.put(table_topic(self.site, table.name, "round/result"), bytes(result))
        info = {"version": version(), "config": self.config.digest, "rules": True}
        self.retained.put(edge_topic(self.site, self.name, "info"), msgspec.json.encode(info))
        self.retained.put(edge_topic(self.site, self.name, "availability"), b"online")
        await self.retained.publish_all(session)
        topics = [edge_topic(self.site, "+", "availability"), edge_topic(self.site, "+", "health")]
        for name in self._tables:
            topics += [
                table_topic(self.site, name, "device/+/event/#"),
                table_topic(self.site, name, "cmd/replay/result"),
                table_topic(self.site, name, "round/cmd/replay"),
            ]
        await session.subscribe(*topics)
        self.connected = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self.outbox.run(session))
            group.create_task(self.retained.run(session))
            group.create_task(self._receive(session))
            group.create_task(self._chase(session))
            group.create_task(self._look(session))

    async def _look(self, session: Session) -> None:
        """What stands there of tables that we no longer have is cleared; so may others have done with one now ours."""
        await self._leftovers.look(session, table_topic(self.site, "+", STATES), own=bool(self._tables))
        for name in self._tables:
            self.retained.again(table_topic(self.site, name, "round/"), table_topic(self.site, name, "alert/round-"))

    def view(self, table: str) -> View:
        """The round of `table` as it stands."""
        return self._tables[table].ruleset.view(self._tables[table].state)

    def standing(self, table: str) -> Standing:
        """The same with what it rests on, for who must know whether an event is behind it or still before it."""
        view = self.view(table)
        heard = {journal: stream.expected - 1 for (_, journal, name), stream in self._streams.items() if name == table}
        return Standing(view.round, view.phase, view.detail, heard, self.name)

    def position(self, table: str) -> int:
        """The seq of the last event of `table` that was used, in the journal that counts now."""
        return max((stream.expected - 1 for key, stream in self._streams.items() if key[2] == table), default=0)

    async def _receive(self, session: Session) -> None:
        while True:
            batch = await session.messages()
            envelopes: list[Envelope] = []
            for message in batch:
                match message.topic.split("/")[3:]:
                    case ["edge", edge, leaf]:
                        await self._edge_says(session, edge, leaf, message)
                    case ["table", table, "cmd", *_]:
                        self.take(envelopes)
                        envelopes = []
                        await self._answered(session, table, message)
                    case ["table", table, "round", "state"]:
                        await self._met(session, table, message)
                    case ["table", _, "round", *_]:
                        await answer(session, message, self.name, self.journal, self._message_of, self._log)
                    case _:
                        envelopes += self._read(message)
            self.take(envelopes)
            await self._ask_for_gaps(session)

    async def _met(self, session: Session, table: str, message: Message) -> None:
        """How a round stands on the broker: that of a table that we had, and no longer have, is cleared."""
        if table in self._tables:
            self._leftovers.heard_own()
        else:
            await self._leftovers.clear(session, left_by_rules(self.site, self.name, message))

    def _read(self, message: Message) -> tuple[Envelope, ...]:
        """The event. One that this version does not know, or cannot read, is an event missed: never nothing."""
        try:
            envelope = decode_envelope(message.payload)
        except (BadEnvelope, UnknownEvent, *UNREADABLE) as error:
            self._log.warning("event.refused", topic=message.topic, reason=str(error))
            try:
                wire = decode_wire(message.payload)
            except (BadEnvelope, *UNREADABLE):
                return ()
            envelope = Envelope(wire.id, wire.source, wire.time, EventsMissed(1), wire.seq, wire.bootid, wire.journal)
        if envelope.time.tzinfo is None:
            self._log.warning("event.refused", topic=message.topic, reason="its time has no zone")
            return ()
        return (envelope,)

    async def _edge_says(self, session: Session, edge: str, leaf: str, message: Message) -> None:
        """An edge came back: ask for all that happened while we did not listen. Its health tells of a lost tail."""
        if leaf == "availability" and not message.payload:
            self.retained.again("")  # somebody was forgotten, and with him perhaps what we say of the same tables
        if edge == self.name:
            return
        if leaf == "availability" and message.payload == b"online":
            for name in self._tables:
                next_ones = [one.expected for key, one in self._streams.items() if key[0] == edge and key[2] == name]
                await self._ask(session, name, edge, max(next_ones, default=1), None)
        elif leaf == "health":
            with contextlib.suppress(*UNREADABLE):
                self._told[edge] = msgspec.json.decode(message.payload, type=Health).newest, _now()

    async def _answered(self, session: Session, name: str, message: Message) -> None:
        try:
            said = msgspec.json.decode(message.payload, type=Answer)
        except UNREADABLE as error:
            self._log.warning("answer.refused", topic=message.topic, reason=str(error))
            return
        awaited = self._awaited.get((said.edge, name))
        if awaited is not None and awaited[0] == said.first:
            del self._awaited[said.edge, name]
        stream = self._streams.get((said.edge, said.journal, name))
        if stream is None and said.first > 1:
            # The edge counts in a new journal: what we asked for stands from 1 there.
            await self._ask(session, name, said.edge, 1, None)
        elif stream is not None and said.first < stream.expected <= said.newest:  # it helped, and there is more
            await self._ask(session, name, said.edge, stream.expected, None)

    async def _ask(self, session: Session, name: str, edge: str, first: int, last: int | None) -> None:
        """Once: what is asked for twice comes twice, and each answer asks for the next."""
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
        """A request or its answer may be lost too."""
        while True:
            await asyncio.sleep(ASK_AGAIN)
            await self._ask_for_gaps(session)
            await self._ask_for_tails(session)
            self._commit([])

    async def _ask_for_tails(self, session: Session) -> None:
        """What an edge said long enough ago to have, and what still has not come: nothing later shows that gap."""
        for edge, (newest, at) in list(self._told.items()):
            if _now() - at < ASK_AGAIN:
                continue
            del self._told[edge]
            for name in self._tables:
                next_ones = [one.expected for key, one in self._streams.items() if key[0] == edge and key[2] == name]
                first = max(next_ones, default=1)
                if newest.get(name, 0) >= first:
                    await self._ask(session, name, edge, first, None)


def _stream_key(key: tuple[str, ...]) -> str:
    return "stream/" + "/".join(key)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _data(verdict: Verdict) -> bytes:
    """The verdict's fields without its tag: the envelope's type says it."""
    tagged = msgspec.json.encode(verdict)
    return b"{" + tagged[tagged.index(b",") + 1 :]
