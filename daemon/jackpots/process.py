"""The jackpots process: verdicts and bets in, books, levels and signs out.

It reads the verdicts of the tables that feed a pool and, where devices report bets or wins or the dealer pays small
prizes, their events. Streams are ordered, deduplicated and their gaps replayed as in the rules. The consequences of a
batch are written in one transaction with the numbers of the used inputs, and published after it. After a crash the
process continues from the books.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from daemon.broker.connection import Connect, stay_connected
from daemon.broker.gap_recovery import ASK_AGAIN, BUFFER, PAGE, Again, Stream, ask
from daemon.broker.mac_keys import load_mac_keys
from daemon.broker.process import BrokerProcess
from daemon.broker.session import UNREADABLE, Message, Session
from daemon.broker.suspensions import place_of as suspended_place
from daemon.config.model import Config, Jackpot
from daemon.jackpots.alerts import ALERTS, FORGED_LEAF, alert_codes
from daemon.jackpots.book import OPEN, Book, Refused, Seen, Step
from daemon.jackpots.books import BETS, Books
from daemon.jackpots.ledger import (
    contribute,
    end_of,
    end_round,
    forget_keys,
    join,
    level_of,
    note_input,
    open_round,
    open_wins,
    pay_at_table,
    report_win,
)
from daemon.jackpots.orders import obey, transfer
from daemon.jackpots.signs import Signs
from daemon.jackpots.sites import id_at, place_of, sites_of, topic_at
from daemon.jackpots.told_amounts import why_unpriced
from daemon.journal.rows import Row
from daemon.journal.store import Journal
from daemon.words import words
from protocols.contract.commands import Reply, Request, signed_bytes
from protocols.contract.documents import ReplayAnswer, mac_of_answer
from protocols.contract.events import JackpotContributed, JackpotWon, RoundPaid, UnknownEvent, decode_data
from protocols.contract.jackpots import (
    Approve,
    BadOrder,
    BookEntry,
    Order,
    PoolBooks,
    PoolLevel,
    PoolOwner,
    PoolWin,
    Propose,
    SetTerms,
    Transfer,
    WinsPage,
    WinsRequest,
    decode_order,
    jackpot_topic,
)
from protocols.contract.reasons import Reason, say
from protocols.contract.results import ENDS, BadRound, Opened, decode_end
from protocols.contract.topics import (
    LONGEST_DOCUMENT,
    LONGEST_EVENT,
    LONGEST_EVENT_ID,
    BadEnvelope,
    Wire,
    decode_wire,
    edge_topic,
    is_id,
    is_mac,
    mac_of,
)

if TYPE_CHECKING:
    from daemon.journal.signing import PublicKey

__all__ = ["Jackpots", "NotOwner"]

TAIL_EVERY = 15
"""Number of periods of ASK_AGAIN seconds after which the writers are asked for newer messages."""
GATHER_S = 0.005
"""Minimum seconds between two transactions: messages that arrive meanwhile share the next one and its fdatasync."""
READ_S = 0.002
"""Minimum seconds between two reads of the socket: a wake-up for each message would cost more than the message."""
PAUSE_S = 0.01
"""Seconds between two levels of a pool on the broker."""
FIRST_LOOK = PAGE - 100
"""Number of messages before the first received one that are requested where a pool begins to read a stream; again and
again, until one is older than the pool.
"""
OWNER_S = 0.5
"""Seconds for the broker to send the retained owners of the pools."""
EPOCH = "epoch"
MOST_STREAMS = 1000
ORDERS_BY_CONSOLE = "orders about a jackpot come from a user of the console, on the page of the pool"
NO_ORDER_KEY = "no order can be verified: set [console] order_key and [jackpots] order_public_key (`feltd journal key`)"
NO_PAYMENT_KEYS = "payment keys are not read here: give the pool a table_limit in the configuration, and run feltd acl"
LONGEST_LIFE = timedelta(minutes=10)
LONGEST_ENTRY = LONGEST_EVENT - 4096
"""Maximum bytes of an order's entry, so that its envelope fits as well."""
LONGEST_PROPOSALS = LONGEST_DOCUMENT // 8
"""Maximum bytes of the waiting changes, which are part of each level."""
MOST_BYTES = 64 * 1024
SHOWN_WINS = 25
"""Wins of each kind, waiting or over, in the document of the books; others that wait are read in pages."""
EVENT, VERDICT = "edge", "rules"
_REPLAY = {EVENT: "cmd/replay", VERDICT: "round/cmd/replay"}


class NotOwner(Exception):
    """Another process keeps a pool. The message names it and the remedy."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _refuse_too_long(step: Step) -> None:
    """Raises Refused for an order after which an entry or a document would be too long for its readers."""
    book, entries = step
    if any(len(msgspec.json.encode(entry)) > LONGEST_ENTRY for _, entry in entries):
        raise Refused(f"its entry would be longer than {LONGEST_ENTRY} bytes: name fewer prizes")
    if len(msgspec.json.encode(book.proposals)) > LONGEST_PROPOSALS:
        raise Refused(f"the changes that wait would be longer than {LONGEST_PROPOSALS} bytes: withdraw one of them")


def _order_key(config: Config) -> "PublicKey | None":
    """The public key of the console, by which orders must be signed. Raises BadKey."""
    if not config.jackpots.order_public_key:
        return None
    from daemon.journal.signing import PublicKey  # 8 MiB

    return PublicKey.load(Path(config.jackpots.order_public_key))


def _cause(wire: Wire) -> int:
    """The seq of the event that caused a verdict, whose id is <edge>:<table>:<seq>/<number>."""
    seq = wire.id.partition("/")[0].rpartition(":")[2]
    return int(seq) if seq.isascii() and seq.isdigit() and len(seq) <= 16 else 0


class _Key(Struct, frozen=True):
    """A stream: events of an edge or verdicts of rules, of one journal and table."""

    kind: str
    journal: str
    table: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.journal}/{self.table}"


class _Table:
    """A table that feeds pools. `verdicts` wait until the events before them are used."""

    def __init__(self, name: str, pools: list[Jackpot]) -> None:
        self.name = name
        self.pools = pools
        self.by_devices = any("devices" in (pool.counts, pool.wins) for pool in pools)
        self.reads_events = any(pool.reads_events for pool in pools)
        self.verdicts: deque[tuple[_Key, Wire]] = deque()
        self.newest: _Key | None = None
        """The stream of the edge that sent the last event."""
        self.renewed = False
        """Whether verdicts may refer to events of an earlier journal of the edge, which no longer come."""
        self.again = Again()


class Jackpots(BrokerProcess):
    """The process."""

    KIND = "jackpots"

    def __init__(
        self,
        config: Config,
        journal: Journal,
        *,
        connect: Connect | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        """Continue every pool from its books. Raises BadBooks, BadJournal, BadKey, BadMacKey."""
        folder = config.jackpots.mac_key_folder
        self._mac_keys = load_mac_keys(Path(folder)) if folder else None
        folder = config.jackpots.verdict_key_folder
        self._verdict_keys = load_mac_keys(Path(folder)) if folder else None
        self._order_key = _order_key(config)
        self._now = now
        self._pools = {pool.name: pool for pool in config.jackpot}
        self.books = Books(journal, {name: pool.terms() for name, pool in self._pools.items()}, now())
        self._tables = {
            name: _Table(name, [pool for pool in config.jackpot if name in pool.tables])
            for name in dict.fromkeys(table for pool in config.jackpot for table in pool.tables)
        }
        site, name = config.site.name, config.jackpots.name
        super().__init__(
            config,
            config.jackpots,
            journal,
            address_of=lambda row: (
                f"{name}:{row.place}:{row.seq}",
                jackpot_topic(site, row.place, "")[:-1],
                msgspec.UNSET,
            ),
            replays=[jackpot_topic(site, pool, "cmd/replay") for pool in self._pools],
            alerts=self._forged_topics(site, name),
            connect=connect,
            pause_s=PAUSE_S,
        )
        self._streams: dict[_Key, Stream[Wire]] = {}
        self._first_looks: set[_Key] = set()
        """Streams without a used message: they may begin further back."""
        self._asked: dict[_Key, tuple[int, float]] = {}
        self.signs = Signs(config, self.retained, self._log, now)
        self._ruled = {table.name for table in config.table if table.ruleset}
        self._at: dict[str, datetime] = {}
        self._alerts: set[str] = set()
        self._owns = asyncio.Event()
        self._epoch = 0
        """The number of this start of the process; 0 until it is the owner of the pools."""
        self._take_up()

    def _take_up(self) -> None:
        """Continue the streams of the last process, join new tables, and retain the present state."""
        for pool in self.books:
            book = self.books[pool]
            if book.terms != self._pools[pool].terms():
                remedy = "the terms in the books apply, not these: two people change the terms of a pool that has begun"
                self._log.warning("jackpot.other_terms", pool=pool, books=str(book.terms), remedy=remedy)
            for text in book.heard:
                key = _Key(*text.split("/", 2))
                if key.table in self._tables and pool in {one.name for one in self._tables[key.table].pools}:
                    heard = [
                        self.books[one.name].heard.get(text, 0)
                        for one in self._tables[key.table].pools
                        if text in self.books[one.name].heard
                    ]
                    self._streams[key] = Stream(min(heard) + 1)
            known = {*book.tables, *(_Key(*text.split("/", 2)).table for text in book.heard)}
            for table in self._tables.values():
                if self._pools[pool] in table.pools and table.name not in known:
                    self._apply(self._pools[pool], partial(join, table=table.name, at=self._now()), "", self._now())
            self._at[pool] = self._now()
        self.outbox.offer(self.books.commit(self.outbox.memory()))
        for pool in self.books:
            self.retained.put(jackpot_topic(self.site, pool, "level"), partial(self.level, pool))
            self.retained.put(jackpot_topic(self.site, pool, "books"), partial(self.books_of, pool))
            self.signs.show(pool, self.books[pool].amount)
            for win in self._unpriced(pool):
                if win.table in self._tables:
                    self._alert(win.table, "unpriced", why_unpriced(self.books[pool], win))

    def level(self, pool: str) -> PoolLevel:
        """The present level of a pool."""
        one = self._pools[pool]
        return level_of(self.books[pool], one.currency, one.decimals, self._at[pool])

    def books_of(self, pool: str) -> PoolBooks:
        """The document of a pool that rarely changes: terms, wins, signs and machines."""
        book, one = self.books[pool], self._pools[pool]
        waiting = open_wins(book)
        named = {getattr(proposal.change, "win", "") for proposal in book.proposals}
        over = [win.id for win in book.wins if win.state not in OPEN][-SHOWN_WINS:]
        shown = {*(win.id for win in waiting[:SHOWN_WINS]), *named, *over}
        wins = tuple(win for win in book.wins if win.id in shown)
        began, number = book.began, book.number
        return PoolBooks(pool, began, number, one.tables, book.terms, wins, one.signs, one.machines, len(waiting))

    def wins_of(self, pool: str, request: WinsRequest) -> WinsPage:
        """A page of the wins that wait."""
        book = self.books[pool]
        waiting = open_wins(book, request.state)
        wins = tuple(waiting[request.first : request.first + request.most])
        return WinsPage(request.id, pool, book.number, request.first, len(waiting), wins)

    async def run(self) -> None:
        """Keep the books until cancelled."""
        self._log.info("jackpots.started", pools=sorted(self._pools), journal=str(self.journal.path))
        await self._look()
        try:
            async with asyncio.TaskGroup() as group:
                self._stay_connected(group)
        except asyncio.CancelledError:
            self._commit(idle=True)
            raise

    async def _answer_replays(self, identifier: str) -> None:
        """Answer requests for old entries, once this process owns the pools."""
        await self._owns.wait()
        await super()._answer_replays(identifier)

    # ---- inputs to entries

    def take(self, messages: list[Message]) -> None:
        """Use the messages of a batch that are in order, and commit the consequences. Nothing is published before
        that.
        """
        for message in messages:
            match place_of(self.site, message.topic):
                case ["table", table, "device", _, "event", _] if table in self._tables:
                    self._received(EVENT, self._tables[table], message)
                case ["table", table, "round", "event", _] if table in self._tables:
                    self._received(VERDICT, self._tables[table], message)
                case _:  # a broker may deliver another client's messages
                    pass
        self._commit()

    def _received(self, kind: str, table: _Table, message: Message) -> None:
        wire = self._read(kind, table, message)
        if wire is None:
            return
        key = _Key(kind, wire.journal, table.name)
        stream = self._stream(key, wire.seq)
        if stream is None:
            return
        if key in self._first_looks and wire.seq == stream.expected:
            if wire.seq > 1 and wire.time >= min(self.books[pool.name].since(table.name) for pool in table.pools):
                stream.expected = max(wire.seq - FIRST_LOOK, 1)
            else:
                self._first_looks.remove(key)
        if kind == EVENT:
            table.newest = key
        elif len(table.verdicts) >= BUFFER:  # it is requested again later
            return
        for ready in stream.take(wire):
            if kind == EVENT:
                self._event(table, key, ready)
            else:
                table.verdicts.append((key, ready))
        self._use_verdicts(table)

    def _read(self, kind: str, table: _Table, message: Message) -> Wire | None:
        """The envelope, if it belongs to its topic, because write permissions are by topic."""
        try:
            wire = decode_wire(message.payload)
        except (BadEnvelope, *UNREADABLE) as error:
            self._log.warning("event.refused", topic=message.topic, reason=str(error))
            return None
        belongs = message.topic == f"{wire.source}/event/{wire.type}" and wire.seq > 0 and "/" not in wire.journal
        edge, _, rest = wire.id.partition(":")
        if kind == EVENT:
            belongs = belongs and rest == f"{table.name.rpartition('/')[2]}:{wire.seq}" and is_id(edge)
        if not belongs or len(wire.id) > LONGEST_EVENT_ID + 8:
            self._log.warning("event.refused", topic=message.topic, reason="it does not belong to this topic")
            return None
        if not self._proven(kind, table.name, edge, lambda key: is_mac(wire.mac, mac_of(wire, key))):
            writer = "its edge" if kind == EVENT else "the rules of its site"
            self._log.warning("event.refused", topic=message.topic, reason=f"it has no MAC of {writer}")
            return None
        return wire

    def _proven(self, kind: str, table: str, edge: str, is_right: Callable[[bytes], bool]) -> bool:
        """Whether the MAC is that of its edge, or of the rules of the table's site; True where this process has no
        keys.
        """
        keys = self._mac_keys if kind == EVENT else self._verdict_keys
        if keys is None:
            return True
        site, _, _ = table.rpartition("/")
        key = keys.get(edge if kind == EVENT else site or self.site)
        return key is not None and is_right(key)

    def _stream(self, key: _Key, seq: int) -> Stream[Wire] | None:
        """The stream of a key; a new journal of a known table is read from its first row. None: too many streams."""
        if key not in self._streams:
            if len(self._streams) >= MOST_STREAMS:
                return None
            known = any((one.kind, one.table) == (key.kind, key.table) for one in self._streams)
            if known and key.kind == EVENT:
                self._begin_numbers_again(self._tables[key.table])
            self._streams[key] = Stream(1 if known else max(seq - FIRST_LOOK, 1))
            if not known and (key.kind == VERDICT or self._tables[key.table].by_devices):
                self._first_looks.add(key)
        return self._streams[key]

    def _begin_numbers_again(self, table: _Table) -> None:
        """Handle a new journal of a table's edge."""
        table.renewed = not table.by_devices
        for pool in (one for one in table.pools if one.table_limit):
            self._apply(pool, partial(forget_keys, table=table.name), "", self._now())

    def _apply(self, pool: Jackpot, step: Callable[[Book], Step], cause: str, at: datetime) -> None:
        self.books.apply(step(self.books[pool.name]), cause, at)

    def _use(self, pool: Jackpot, step: Callable[[Book], Step], seen: Seen, table: _Table, wire: Wire) -> None:
        """Use an input. One that would break the books is left out, with an alert."""
        try:
            self._apply(pool, step, wire.id, wire.time)
        except Refused as error:
            self._alert(table.name, "unusable", say("text", what=wire.id, why=str(error)))
            self._apply(pool, partial(note_input, seen=seen), wire.id, wire.time)

    def _event(self, table: _Table, key: _Key, wire: Wire) -> None:
        seen = Seen(str(key), wire.seq, id_at(table.name, wire.id), wire.time)
        try:
            mine = wire.type.startswith("jackpot.") or wire.type == "round.paid"
            event = decode_data(wire.type, wire.data) if mine else None
        except UnknownEvent as error:
            self._alert(table.name, "unreadable", say("event", why=str(error)))
            event = None
        for pool in table.pools:
            match event:
                case JackpotContributed(pool_closed=True):  # the wager was refused
                    step = partial(note_input, seen=seen)
                case JackpotContributed(pool=name, amount=amount, seat=seat) if self._is(pool, name, pool.counts):
                    bet = partial(contribute, seen=seen, table=table.name, seat=seat, amount=amount)
                    step = partial(bet, rounds=table.name in self._ruled)
                case JackpotWon(pool=name, level=level, seat=seat) as won if self._is(pool, name, pool.wins):
                    win = partial(report_win, seen=seen, table=table.name, level=level, seat=seat)
                    step = partial(win, amount=won.amount, shown=won.shown)
                case RoundPaid(round=name) if pool.table_limit:
                    by = f"{table.name}/{wire.source.rpartition('/')[2]}"
                    step = partial(pay_at_table, seen=seen, table=table.name, by=by, round_=id_at(table.name, name))
                case _:
                    step = partial(note_input, seen=seen)
            self._use(pool, step, seen, table, wire)

    @staticmethod
    def _is(pool: Jackpot, name: str, by: str) -> bool:
        return name == pool.name and by == "devices"

    def _use_verdicts(self, table: _Table) -> None:
        """Use verdicts in order; where events are read, a verdict waits for the events up to its cause.

        Otherwise a correction would be used before an earlier bet or payment key.
        """
        while table.verdicts:
            key, wire = table.verdicts[0]
            until = _cause(wire)
            table.renewed = table.renewed and self._edge_at(table) < until
            first = table.by_devices and table.newest in self._first_looks
            if first or (table.reads_events and not table.renewed and self._edge_at(table) < until):
                return
            table.verdicts.popleft()
            self._verdict(table, key, wire, until)

    def _edge_at(self, table: _Table) -> int:
        """The seq of the last event of the edge that was used."""
        return self._streams[table.newest].expected - 1 if table.newest in self._streams else 0

    def _verdict(self, table: _Table, key: _Key, wire: Wire, until: int) -> None:
        seen = Seen(str(key), wire.seq, id_at(table.name, wire.id), wire.time)
        try:
            opened = msgspec.json.decode(wire.data, type=Opened).round if wire.type == "opened" else ""
            result = decode_end(wire.data) if wire.type in ENDS else None
        except (BadRound, *UNREADABLE) as error:
            self._alert(table.name, "unreadable", say("verdict", id=wire.id, why=str(error)))
            opened, result = "", None
        for pool in table.pools:
            step: Callable[[Book], Step] = partial(note_input, seen=seen)
            if opened:
                step = partial(open_round, seen=seen, table=table.name, round_=id_at(table.name, opened))
            elif result is not None:
                ended = end_of(result, table.name, pool.bet, pool.award, by_rules=pool.counts == "rules", until=until)
                names = {"round": id_at(table.name, ended.round), "corrects": id_at(table.name, ended.corrects)}
                ended = msgspec.structs.replace(ended, **names)
                if pool.wins == "devices":
                    ended = msgspec.structs.replace(ended, awards=())
                step = partial(end_round, seen=seen, ended=ended)
            self._use(pool, step, seen, table, wire)

    def _commit(self, *, idle: bool = False) -> None:
        """Commit the changes, then publish them.

        The numbers of messages without entries are stored with the next entry, or if `idle`: after a crash these are
        requested again.
        """
        rows = self.books.commit(self.outbox.memory(), idle=idle)
        self.outbox.offer(rows)
        for row in rows:
            self._announce_entry(row)
        for pool in dict.fromkeys(row.place for row in rows if row.type not in BETS):
            self.retained.touch(jackpot_topic(self.site, pool, "books"))
            self._end_unpriced(pool)
        for pool in dict.fromkeys(row.place for row in rows):
            self._at[pool] = self._now()
            self.retained.touch(jackpot_topic(self.site, pool, "level"))
            self.signs.show(pool, self.books[pool].amount)

    def _announce_entry(self, row: Row) -> None:
        if row.type == "contributed":
            return
        entry = msgspec.json.decode(row.data, type=BookEntry)
        pool = self._pools[row.place]
        self._log.info(f"jackpot.{row.type}", pool=row.place, round=entry.round, amount=entry.amount, text=entry.text)
        table = entry.table or (entry.win.table if entry.win else "")
        match row.type:
            case "won":
                self.signs.announce(pool.name, entry.amount)
                if entry.win is not None and entry.win.unpriced:
                    self._alert(table, "unpriced", why_unpriced(self.books[pool.name], entry.win))
            case "contested":
                name = entry.win.id if entry.win else ""
                self._alert(table, "contested", say("text", win=name))
            case "noted":
                self._alert(table, "noted", say("text", round=entry.round, why=entry.text))
            case _:
                pass

    def _unpriced(self, pool: str) -> list[PoolWin]:
        """The wins that wait for a price."""
        return [one for one in self.books[pool].wins if one.unpriced and one.state == "pending"]

    def _end_unpriced(self, pool: str) -> None:
        """End the alerts of the pool's tables at which no win waits for a price any more."""
        waiting = {win.table for name in self._pools for win in self._unpriced(name)}
        for table in self._pools[pool].tables:
            if table not in waiting and (topic := self._alert_topic(table, "unpriced")) in self._alerts:
                self._alerts.remove(topic)
                self.retained.put(topic, b"")

    def _alert(self, table: str, code: str, why: Reason) -> None:
        """Raise an alert at a table for a person; the next process clears it, unless its cause is still there."""
        alert = words.alert(f"jackpot.{code}", why)
        self._log.error(alert.code, table=table, text=alert.text)
        topic = self._alert_topic(table, code)
        self._alerts.add(topic)
        self.retained.put(topic, msgspec.json.encode(alert))

    def _alert_topic(self, table: str, code: str) -> str:
        return topic_at(self.site, table, f"alert/{self.name}-{code}")

    # ---- on the broker

    def _is_removed(self, row: Row) -> bool:
        return row.place not in self._pools

    async def _serve(self, session: Session) -> None:
        await self._own(session)
        await super()._serve(session)

    async def _prepare(self, _session: Session) -> list[str]:
        for table in self._tables:
            for code in ALERTS:
                if (topic := self._alert_topic(table, code)) not in self._alerts:  # an alert of the last process
                    self.retained.put(topic, b"")
        topics = [edge_topic(site, "+", "availability") for site in (self.site, *sites_of(self.config))]
        topics += [jackpot_topic(self.site, pool, "cmd/+") for pool in self._pools]
        for one in self._tables.values():
            leaves = ["round/event/+", "round/cmd/replay/result"]
            leaves += ["device/+/event/#", "cmd/replay/result"] if one.reads_events else []
            topics += [topic_at(self.site, one.name, leaf) for leaf in leaves]
        return [*topics, *self._owner_topics(), *self.signs.topics()]

    def _work(self, session: Session) -> list[Coroutine[Any, Any, None]]:
        session.set_read_interval(READ_S)
        self._asked.clear()
        return [self.signs.run(session), self._receive(session), self._chase(session)]

    def _forged_topics(self, site: str, name: str) -> dict[str, list[str]]:
        """The topics of the alert about overwritten retained topics, by table and pool."""
        at = {table: topic_at(site, table, f"alert/{name}-{FORGED_LEAF}") for table in self._tables}
        pools = {f"jackpot {name}": [at[table] for table in pool.tables] for name, pool in self._pools.items()}
        return pools | {suspended_place(topic): [topic] for topic in at.values()}

    def _own_topics(self) -> list[str]:
        """The topics that this process retains, besides the owners of the pools."""
        topics = [jackpot_topic(self.site, pool, leaf) for pool in self._pools for leaf in ("level", "books")]
        codes = alert_codes()
        return topics + [
            topic_at(self.site, table, f"alert/{self.name}-{code}") for table in self._tables for code in codes
        ]

    # ---- one owner of each pool

    def _owner_topics(self) -> list[str]:
        return [jackpot_topic(self.site, pool, "owner") for pool in self._pools]

    async def _look(self) -> None:
        """Find the owner of the pools, on a connection without a client id. Raises NotOwner.

        With the client id of its name a second process would end the owner's session on the broker, and the owner would
        then end that of the second process.
        """
        looked = asyncio.Event()

        async def serve(session: Session) -> None:
            await self._read_owners(session)
            looked.set()

        looking = asyncio.create_task(stay_connected(self._broker, "", None, serve, self._log, self._connect))
        seen = asyncio.create_task(looked.wait())
        try:
            await asyncio.wait([looking, seen], return_when=asyncio.FIRST_COMPLETED)
            if looking.done():
                looking.result()
        finally:
            for task in (looking, seen):
                task.cancel()
            await asyncio.wait([looking, seen])

    async def _own(self, session: Session) -> None:
        """Become the owner before anything is published. Raises NotOwner with the other owner, BrokerLost."""
        await self._read_owners(session)
        if not self._epoch:
            self._epoch = int(self.journal.memory(EPOCH) or b"0") + 1
            self.journal.append([], {EPOCH: b"%d" % self._epoch})
            self._owns.set()
        for pool in self._pools:
            topic = jackpot_topic(self.site, pool, "owner")
            self.retained.put(topic, partial(self._owner, pool))

    async def _read_owners(self, session: Session) -> None:
        """Raises NotOwner where another process keeps a pool."""
        await session.read_retained(*self._owner_topics())
        waited = set(self._owner_topics())
        try:
            async with asyncio.timeout(OWNER_S):
                while waited:
                    for message in await session.messages():
                        if message.topic in waited:
                            waited.discard(message.topic)
                            self._other_owner(message.topic.split("/")[4], message.payload)
        except TimeoutError:  # new pools, or a broker that lost its retained messages
            pass

    def _owner(self, pool: str) -> PoolOwner:
        one = self._pools[pool]
        return PoolOwner(pool, self.name, self.journal.name, self._epoch, self.boot, one.tables, one.bet)

    def _other_owner(self, pool: str, payload: bytes) -> None:
        """The retained owner of a pool. Of two processes the one with the higher epoch goes on. Raises NotOwner."""
        try:
            other = msgspec.json.decode(payload, type=PoolOwner) if payload else None
        except UNREADABLE as error:
            self._log.warning("owner.refused", pool=pool, reason=str(error))
            other = None
        if other is not None and other.boot == self.boot:
            if payload != msgspec.json.encode(self._owner(pool)):  # another client wrote it in the name of this process
                self.retained.touch(jackpot_topic(self.site, pool, "owner"))
            return
        if not self._epoch:
            if other is not None:
                self._refuse_books(pool, other)
        elif other is None or (other.epoch, other.boot) < (self._epoch, self.boot):
            self.retained.touch(jackpot_topic(self.site, pool, "owner"))
        else:
            starts = f"its start number is {other.epoch}, that of this process {self._epoch}"
            text = f"pool {pool} is kept by another process, {other.owner} ({starts})"
            raise NotOwner(f"{text}: this one ends; run one `feltd jackpots` with these pools")

    def _refuse_books(self, pool: str, other: PoolOwner) -> None:
        """Raises NotOwner if the pool's last books were different, or a later copy of these."""
        path, topic = self.journal.path, jackpot_topic(self.site, pool, "owner")
        if other.journal != self.journal.name:
            text = f"pool {pool} is kept by {other.owner} with the books {other.journal}, not {self.journal.name}"
        elif other.epoch > int(self.journal.memory(EPOCH) or b"0"):
            text = (
                f"pool {pool} was kept by {other.owner} with a later copy of these books (start number {other.epoch})"
            )
        else:
            return
        remedy = f"put the right books at {path}; only if these are the right ones, clear the retained {topic}"
        raise NotOwner(f"{text}: nothing was started; {remedy}")

    async def _receive(self, session: Session) -> None:
        await self._ask_for_rest(session)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            inputs: list[Message] = []
            for message in await session.messages():
                if not message.topic.endswith("/owner"):
                    self._restorer.received(message)
                match place_of(self.site, message.topic):
                    case ["jackpot", pool, "cmd", name] if pool in self._pools and name != "replay":
                        self.take(inputs)
                        inputs = []
                        await self._order(session, pool, name, message)
                    case ["jackpot", pool, "owner"] if pool in self._pools:
                        self._other_owner(pool, message.payload)
                    case ["edge", _, "availability"] if message.payload == b"online":
                        self._asked.clear()
                        await self._ask_for_rest(session)
                    case ["table", table, *leaves, "cmd", "replay", "result"] if table in self._tables:
                        self.take(inputs)
                        inputs = []
                        await self._answered(session, VERDICT if leaves else EVENT, table, message)
                    case ["table", *_, "result"]:
                        self.signs.received(message)
                    case _:
                        inputs.append(message)
            self.take(inputs)
            await self._ask_for_gaps(session)
            await asyncio.sleep(began + GATHER_S - loop.time())

    async def _chase(self, session: Session) -> None:
        """Repeat requests: a request or its answer may be lost, and no later message shows that the last one is
        missing.
        """
        for number in itertools.count(1):
            await asyncio.sleep(ASK_AGAIN)
            self._commit(idle=True)
            await self._ask_for_gaps(session)
            if number % TAIL_EVERY == 0:
                await self._ask_for_rest(session)

    async def _ask(self, session: Session, key: _Key, first: int, last: int | None = None) -> None:
        """Request a range, once while the answer may be on its way."""
        now = asyncio.get_running_loop().time()
        if self._asked.get(key, (0, 0.0)) > (first, now):
            return
        self._asked[key] = first, now + ASK_AGAIN
        await ask(session, topic_at(self.site, key.table, _REPLAY[key.kind]), "", first, last)

    async def _ask_for_rest(self, session: Session) -> None:
        """Request messages that were published while this process was not subscribed."""
        for key, stream in list(self._streams.items()):
            await self._ask(session, key, stream.expected)

    async def _ask_for_gaps(self, session: Session) -> None:
        now = asyncio.get_running_loop().time()
        for key, stream in list(self._streams.items()):
            if (gap := stream.to_ask(now)) is not None:
                await self._ask(session, key, *gap)
        for table in self._tables.values():
            if not table.verdicts:
                continue
            # Events before the verdict are missing. The history of an edge without messages is not read.
            heard = table.newest is not None
            at = self._edge_at(table) + 1 if heard else max(_cause(table.verdicts[0][1]) - FIRST_LOOK, 1)
            if table.again.due(at, now):
                await self._ask(session, table.newest or _Key(EVENT, "", table.name), at, at + PAGE - 1)

    async def _answered(self, session: Session, kind: str, table: str, message: Message) -> None:
        try:
            said = msgspec.json.decode(message.payload, type=ReplayAnswer)
        except UNREADABLE as error:
            self._log.warning("answer.refused", topic=message.topic, reason=str(error))
            return
        right = partial(self._answer_is_right, said, message.topic)
        if "/" in said.journal or not self._proven(kind, table, said.edge, right):
            return
        key = _Key(kind, said.journal, table)
        stream = self._streams.get(key)
        if stream is None:
            return
        self._asked.pop(key, None)
        if said.oldest > stream.expected:
            self._gone(key, stream, said.oldest)
        if said.first <= stream.expected <= said.newest:
            await self._ask(session, key, stream.expected)

    @staticmethod
    def _answer_is_right(said: ReplayAnswer, topic: str, key: bytes) -> bool:
        return is_mac(said.mac, mac_of_answer(said, topic, key))

    def _gone(self, key: _Key, stream: Stream[Wire], oldest: int) -> None:
        """Continue after messages that were not used and that their writer no longer has."""
        self._alert(key.table, "gone", say("text", first=stream.expected, last=oldest - 1, stream=str(key)))
        table = self._tables[key.table]
        self._first_looks.discard(key)
        for ready in stream.skip(oldest):
            if key.kind == EVENT:
                self._event(table, key, ready)
            else:
                table.verdicts.append((key, ready))
        self._use_verdicts(table)
        self._commit()

    # ---- orders of people

    async def _order(self, session: Session, pool: str, name: str, message: Message) -> None:
        """Carry out an order, commit it and answer. A repeated request is carried out once and answered again."""
        reply = self.page(pool, message) if name == "wins" else self.obey(pool, name, message)
        if reply is not None:
            topic = jackpot_topic(self.site, pool, f"cmd/{name}/result")
            await session.publish(topic, msgspec.json.encode(reply))

    def page(self, pool: str, message: Message) -> WinsPage | None:
        """The answer to a request for waiting wins; None where it cannot be read."""
        try:
            return self.wins_of(pool, msgspec.json.decode(message.payload, type=WinsRequest))
        except UNREADABLE as error:
            self._log.warning("request.refused", topic=message.topic, reason=str(error))
            return None

    def obey(self, pool: str, name: str, message: Message) -> Reply | None:
        """The answer to an order; None where the message is no order."""
        if message.retain or len(message.payload) > MOST_BYTES:
            self._log.warning("order.refused", topic=message.topic, reason="it is retained, or too long")
            return None
        try:
            request = msgspec.json.decode(message.payload, type=Request)
        except UNREADABLE as error:
            self._log.warning("order.refused", topic=message.topic, reason=str(error))
            return None
        now = self._now()
        if why := self._unsigned(message.topic, request):
            self._log.warning("order.refused", topic=message.topic, reason=why)
            return Reply(request.id, name, "refused", why)
        if request.expires <= now:
            return Reply(request.id, name, "refused", "it has expired: ask again")
        if request.expires > now + LONGEST_LIFE:
            return Reply(request.id, name, "refused", "it expires too late: a request is valid for 10 minutes at most")
        try:
            steps = self._steps(pool, decode_order(name, request.args), request.id, now)
            for step in steps:
                _refuse_too_long(step)
                self.books.refuse(step)
            for step in steps:
                self.books.apply(step, request.id, now)
        except (BadOrder, Refused) as error:
            return Reply(request.id, name, "refused", str(error))
        self._commit()
        return Reply(request.id, name, "done")

    @staticmethod
    def _refuse_unread_keys(pool: Jackpot) -> None:
        """Raises Refused if this process does not read the payment keys of the tables."""
        if not pool.table_limit:
            raise Refused(NO_PAYMENT_KEYS)

    def _unsigned(self, topic: str, request: Request) -> str:
        """Why the signature of this order is refused; "" where it is right, or where none is required."""
        if self._order_key is None:
            return "" if self.config.jackpots.insecure else NO_ORDER_KEY
        try:
            signature = bytes.fromhex(request.signature or "")
        except (ValueError, TypeError):
            signature = b""
        if self._order_key.signed(signed_bytes(topic, request), signature):
            return ""
        return f"the console did not sign it: {ORDERS_BY_CONSOLE}"

    def _steps(self, pool: str, order: Order, name: str, at: datetime) -> tuple[Step, ...]:
        """The steps of an order: a transfer changes the books of two pools in one transaction. Raises Refused."""
        book = self.books[pool]
        if isinstance(order, Propose) and isinstance(order.change, SetTerms) and order.change.terms.table_limit:
            self._refuse_unread_keys(self._pools[pool])
        found = next((one.change for one in book.proposals if one.id == getattr(order, "proposal", "")), None)
        change = order.change if isinstance(order, Propose) else found
        if isinstance(change, Transfer):
            ours, other = self._pools[pool], self._pools.get(change.to)
            if other is None or (ours.currency, ours.decimals) != (other.currency, other.decimals):
                raise Refused(f"no pool {change.to!r} of the same currency is kept here")
            if isinstance(order, Approve):
                return transfer(book, self.books[change.to], order, name, at)
        return (obey(book, order, name, at),)
