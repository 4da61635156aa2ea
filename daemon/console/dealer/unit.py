"""The dealer's page as a device: it speaks FDL as a console and keeps its messages.

The wire: docs/reference/protocols/fdl_console.md.

A press is stored once per press id, in one transaction with its note for the log of actions. It is then sent to the
edge until the edge acknowledges that it is durable in its journal. Broker and rules are not needed. After a crash the
console continues with the same counter.

A restart of the process is therefore no start of the device, which starts only once, when its table is first served. A
press that is not in the store did not happen, and the page reports that.
"""

import asyncio
import contextlib
import errno
import hashlib
import importlib.metadata
import math
import os
import secrets
import socket
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from daemon import local_peer, logs
from daemon.console.site.actions import leave
from daemon.console.site.store import BadStore, Store
from daemon.journal.rows import EPOCH, micros_of
from protocols.fdl import console as fdl_console, frame as fdl

__all__ = ["BadDealer", "By", "Full", "Other", "Outcome", "Press", "Pressed", "Unit", "serve", "socket_of"]

RING = 256
# Events that wait for the edge; a press may have several. Further presses are refused with a message to the dealer.
MOST_WAITING = 1000
# Idempotency keys: the last presses of each table whose ids are kept.
REMEMBERED = 2000
BEAT = 1.0
RETRY = 0.2
TICKETS = 8
REPEAT_WITHIN_S = 30.0
TRIES = 3
ENTRY, WARNING = 0x25, 1
STANDS = 20.0
MOST_UNSENT = 65536
# Maximum bytes of a socket's path: sun_path less its end.
LONGEST_PATH = 107
REFUSALS_LOGGED_EVERY_S = 60.0
# Keys that count only when entered twice alike within REPEAT_WITHIN_S; so does a throw that counts (`_is_entry`).
TWICE = (fdl_console.DiceEntered, fdl_console.ButtonsCounted, fdl_console.BallEntered)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS dealer_unit (
    place TEXT PRIMARY KEY, epoch INTEGER NOT NULL, next INTEGER NOT NULL, acked INTEGER NOT NULL,
    began INTEGER NOT NULL, faulty INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS dealer_event (
    place TEXT NOT NULL, counter INTEGER NOT NULL, at INTEGER NOT NULL, kind INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (place, counter)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dealer_press (
    n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, key TEXT NOT NULL,
    detail TEXT NOT NULL, outcome TEXT NOT NULL, last INTEGER NOT NULL, UNIQUE (place, id)
) STRICT;
CREATE INDEX IF NOT EXISTS dealer_press_order ON dealer_press (place, n)
"""

Outcome: TypeAlias = Literal["pressed", "again", "differs", "lost"]
"""`pressed`: stored, to be sent to the edge. `again`: the first of two entries. `differs`: the second entry differs.
`lost`: an edge with a new journal no longer requests it.
"""
State: TypeAlias = Literal["edge", "here", "again", "differs", "lost"]


class Full(Exception):
    """Too many presses wait for the edge."""


class Other(Exception):
    """Another press has the same id."""


class BadDealer(Exception):
    """[console.dealer] is invalid. The message gives the remedy."""


class By(Struct, frozen=True):
    """The user who pressed."""

    name: str
    role: str


class Press(Struct, frozen=True):
    """One key. `id` is chosen by the page at random and unique. `round`: the round that it voids or corrects.

    `values`: what was filled in, by field, for the list of presses and the log of actions; never a card.
    """

    id: str
    key: str
    happenings: tuple[fdl.Happening, ...]
    values: Mapping[str, str] = {}
    round: str = ""


class Pressed(Struct, frozen=True):
    """The outcome of a press: durable at the `edge`, or stored `here`; or it must be repeated (`again`)."""

    id: str
    key: str
    values: Mapping[str, str]
    at: datetime
    state: State


class _Half(Struct, frozen=True):
    """An entry that waits for its second."""

    value: fdl.Happening
    until: float
    tries: int


class Unit:
    """One table's console. `now` is the loop's second, `wall` the clock that dates presses."""

    def __init__(self, store: Store, table: str, wall: Callable[[], datetime]) -> None:
        """Continue with the state of the store. Raises BadStore."""
        self.table = table
        self._store = store
        self._wall = wall
        self._said: dict[int, float] = {}
        """By counter, the time of the loop at which a waiting event was pressed in this process."""
        store.has(_SCHEMA)
        columns = "epoch, next, acked, began, faulty"
        query = f"SELECT {columns} FROM dealer_unit WHERE place = ?"  # noqa: S608 - a constant
        with store.write() as db:
            found = db.execute(query, (table,)).fetchone()
            if found is None:
                found = (1 + secrets.randbelow(fdl.MAX_COUNTER), 1, 0, micros_of(wall()), 0)
                db.execute("INSERT INTO dealer_unit VALUES (?,?,?,?,?,?)", (table, *found))
                self._epoch, self._next, self._acked, self._began, _ = found
                self._record(db, fdl.Started())
            else:
                self._epoch, self._next, self._acked, self._began, _ = found
                if found[4]:  # a first entry is not stored: its fault ends with a restart
                    self._record(db, fdl.Recovered(ENTRY))
                    db.execute("UPDATE dealer_unit SET faulty = 0 WHERE place = ?", (table,))
        self._faulty_until: float | None = None
        serial = f"{store.name}-{table}"
        if len(serial) > fdl.MAX_TEXT:
            serial = f"{store.name}-{hashlib.sha256(table.encode()).hexdigest()[:16]}"
        self._names = ("feltd", "Dealer page", serial, importlib.metadata.version("feltd"))
        self._half: _Half | None = None
        self._decoder = fdl.Decoder()
        self._answers: deque[fdl.Answer] = deque(maxlen=TICKETS)
        self._open = False
        self._stranger = False
        self._seq = 0
        self._beat_at = 0.0
        self._send_at = 0.0
        self.on_change: Callable[[], None] = lambda: None

    # ---- requests of the page

    @property
    def met(self) -> bool:
        """Whether the edge is connected."""
        return self._open

    @property
    def waiting(self) -> int:
        """The number of events that the edge has not acknowledged."""
        return self._next - 1 - self._acked

    @property
    def unrecorded(self) -> int:
        """The number of presses among the events that the edge has not acknowledged."""
        query = "SELECT count(*) FROM dealer_press WHERE place = ? AND outcome = 'pressed' AND last > ?"
        found: int = self._store.db.execute(query, (self.table, self._acked)).fetchone()[0] if self.waiting else 0
        return found

    def press(self, press: Press, by: By, now: float) -> Pressed:
        """Store a press, durable on return and deduplicated by its id.

        Raises Full, Other, BadStore: then the press did not happen.
        """
        known = self.find(press.id)
        if known is not None:
            if not self._repeats(press):
                raise Other
            return known
        if self.waiting + len(press.happenings) + 2 > MOST_WAITING:
            raise Full
        half, outcome = self._entered(press, now)
        fault = self._faulty_until
        before = self._next
        at = self._wall()
        try:
            with self._store.write() as db:
                if outcome == "pressed":
                    if fault is not None and half is None and _is_entry(press):
                        self._record(db, fdl.Recovered(ENTRY), now)
                        db.execute("UPDATE dealer_unit SET faulty = 0 WHERE place = ?", (self.table,))
                        fault = None
                    for happening in press.happenings:
                        self._record(db, happening, now)
                elif half is None and fault is None:  # three entries, each unlike the one before
                    self._record(db, fdl.Fault(ENTRY, WARNING), now)
                    db.execute("UPDATE dealer_unit SET faulty = 1 WHERE place = ?", (self.table,))
                    fault = now + STANDS
                db.execute(
                    "INSERT INTO dealer_press (place, id, at, key, detail, outcome, last) VALUES (?,?,?,?,?,?,?)",
                    (self.table, press.id, micros_of(at), press.key, _stored(press.values), outcome, self._next - 1),
                )
                db.execute(
                    "DELETE FROM dealer_press WHERE place = ?1 AND n <="
                    " (SELECT n FROM dealer_press WHERE place = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2)",
                    (self.table, REMEMBERED),
                )
                detail = {"key": press.key, "values": press.values, "id": press.id, "outcome": outcome}
                detail |= {"round": press.round} if press.round else {}
                leave(db, at, by.name, by.role, "dealer", self.table, detail)
        except BaseException:
            self._next = before
            raise
        if _is_entry(press):
            self._half = half
        self._faulty_until = fault
        if before - 1 == self._acked:
            self._send_at = now
        self.on_change()
        return Pressed(press.id, press.key, press.values, at, "here" if outcome == "pressed" else outcome)

    def _repeats(self, press: Press) -> bool:
        """Whether the stored press with the id of `press` is the same one.

        The stored values name no card, so the events are compared while they are kept. An entry that did not count has
        no events: its values are compared.
        """
        query = "SELECT key, detail, outcome, last FROM dealer_press WHERE place = ? AND id = ?"
        key, detail, outcome, last = self._store.db.execute(query, (self.table, press.id)).fetchone()
        said = [(one.KIND, one.to_bytes()) for one in press.happenings]
        query = "SELECT kind, data FROM dealer_event WHERE place = ? AND counter > ? AND counter <= ? ORDER BY counter"
        told = self._store.db.execute(query, (self.table, last - len(said), last)).fetchall()
        counted = outcome in ("pressed", "lost") and len(told) == len(said)
        return bool(key == press.key and (told == said if counted else _values_of(detail) == press.values))

    def _entered(self, press: Press, now: float) -> tuple[_Half | None, Outcome]:
        """The first entry that waits for a second one from now on, and the outcome of this press."""
        if not _is_entry(press):
            return self._half, "pressed"
        [value] = press.happenings
        first = self._half if self._half is not None and now <= self._half.until else None
        if first is not None and first.value == value:
            return None, "pressed"
        tries = 1 if first is None else first.tries + 1
        if tries >= TRIES:
            return None, "differs"
        return _Half(value, now + REPEAT_WITHIN_S, tries), "again" if first is None else "differs"

    def find(self, id_: str) -> Pressed | None:
        """The outcome of a stored press."""
        return next(iter(self._pressed("id = ?", id_)), None)

    def last(self, most: int) -> list[Pressed]:
        """The last presses, the newest first."""
        return self._pressed("n > 0 ORDER BY n DESC LIMIT ?", most)

    def _pressed(self, which: str, value: str | int) -> list[Pressed]:
        columns = "id, key, detail, at, outcome, last"
        query = f"SELECT {columns} FROM dealer_press WHERE place = ? AND {which}"  # noqa: S608 - constants
        return [
            Pressed(id_, key, _values_of(detail), EPOCH + timedelta(microseconds=at), self._state(outcome, last))
            for id_, key, detail, at, outcome, last in self._store.db.execute(query, (self.table, value))
        ]

    def _state(self, outcome: Outcome, last: int) -> State:
        if outcome == "pressed":
            return "edge" if last <= self._acked else "here"
        return outcome

    # ---- the device's side

    def _record(self, db: Any, happening: fdl.Happening, now: float | None = None) -> None:
        """Record an event within a transaction; if that fails, `_next` must be restored."""
        self._said.pop(self._next, None)
        if now is not None:
            self._said[self._next] = now
        values = (self.table, self._next, micros_of(self._wall()), happening.KIND, happening.to_bytes())
        db.execute("INSERT INTO dealer_event VALUES (?,?,?,?,?)", values)
        db.execute("UPDATE dealer_unit SET next = ? WHERE place = ?", (self._next + 1, self.table))
        self._next += 1

    def due(self) -> float:
        """The time of the next send."""
        wants = [self._beat_at]
        if self._open and self.waiting:
            wants.append(self._send_at)
        if self._faulty_until is not None:
            wants.append(self._faulty_until)
        return min(wants)

    def met_anew(self) -> None:
        """Begin with a new connection, or none: the unit waits for a HELLO."""
        was, self._open = self._open, False
        self._stranger = False
        self._decoder = fdl.Decoder()
        self._answers.clear()
        if was:
            self.on_change()

    def wake(self, now: float) -> bytes:
        """The bytes that are due now. Raises BadStore."""
        if self._faulty_until is not None and now >= self._faulty_until:
            self._heal(now)
        sent = []
        if now >= self._beat_at:
            self._beat_at = now + BEAT
            uptime = (micros_of(self._wall()) - self._began) // 1000 & fdl.MAX_COUNTER
            faulty = fdl.FAULTY if self._faulty_until is not None else 0
            flags = (0 if self._open else fdl.WAITS_FOR_HELLO) | faulty
            sent.append(self._encode(fdl.Heartbeat(uptime, self._next, flags)))
        return b"".join([*sent, *self._deliver(now)])

    def _heal(self, now: float) -> None:
        before = self._next
        try:
            with self._store.write() as db:
                self._record(db, fdl.Recovered(ENTRY), now)
                db.execute("UPDATE dealer_unit SET faulty = 0 WHERE place = ?", (self.table,))
        except BaseException:
            self._next = before
            self._faulty_until = now + STANDS
            raise
        self._faulty_until = None
        self._half = None
        if before - 1 == self._acked:
            self._send_at = now

    def receive(self, data: bytes, now: float) -> bytes:
        """Handle bytes from the host. Returns the answer. Raises BadStore."""
        sent: list[bytes] = []
        for found in self._decoder.feed(data):
            if isinstance(found, fdl.Frame):
                sent += self._obey(found, now)
        return b"".join([*sent, *self._deliver(now)])

    def _obey(self, frame: fdl.Frame, now: float) -> list[bytes]:
        match fdl.read(frame):
            case fdl.Hello(epoch, last):
                self._greeted(epoch, last, now)
                return [self._encode(self._identity(), frame.seq)]
            case fdl.OtherVersion():
                return [self._encode(self._identity(), frame.seq)]
            case fdl.Ack(epoch, counter) if self._open and epoch == self._epoch and self._acked < counter < self._next:
                self._acknowledged(counter, now)
            case fdl.Nak(_, epoch, expected) if self._open and epoch == self._epoch and 1 <= expected <= self._next:
                self._acknowledged(expected - 1, now)
            case fdl.Command(ticket, code, data) if self._open:
                known = next((answer for answer in self._answers if answer.ticket == ticket), None)
                if known is None:
                    known = fdl.Answer(ticket, *self._do(code, data))
                    self._answers.append(known)
                return [self._encode(known, frame.seq)]
            case _:
                pass
        return []

    def _greeted(self, epoch: int, last: int, now: float) -> None:
        """Handle a HELLO. An edge with another epoch of this unit begins at the next event: earlier ones are lost."""
        was = self._open
        if epoch != self._epoch or last >= self._next:
            self._open = False
            self._stranger = True
        else:
            if self._stranger and last > self._acked:
                with self._store.write() as db:
                    db.execute(
                        "UPDATE dealer_press SET outcome = 'lost'"
                        " WHERE place = ? AND outcome = 'pressed' AND last > ? AND last <= ?",
                        (self.table, self._acked, last),
                    )
            self._stranger = False
            if last != self._acked:
                self._acknowledged(last, now)
            self._open = True
            self._send_at = now
        if self._open != was:
            self.on_change()

    def _acknowledged(self, counter: int, now: float) -> None:
        with self._store.write() as db:
            db.execute("UPDATE dealer_unit SET acked = ? WHERE place = ?", (counter, self.table))
            done = min(counter, self._next - 1 - RING)
            db.execute("DELETE FROM dealer_event WHERE place = ? AND counter <= ?", (self.table, done))
        for told in range(self._acked + 1, counter + 1):
            self._said.pop(told, None)
        self._acked = counter
        self._send_at = now
        self.on_change()

    def _do(self, code: int, data: bytes) -> tuple[int, int, bytes]:
        """Execute a command. A self-test reports the open fault again."""
        if code != fdl.SELF_TEST or data:
            return fdl.NOT_KNOWN, 0, b""
        if self._faulty_until is not None:
            before = self._next
            try:
                with self._store.write() as db:
                    self._record(db, fdl.Fault(ENTRY, WARNING))
            except BaseException:
                self._next = before
                raise
        return fdl.DONE, 0, b""

    def _event(self, counter: int) -> tuple[int, int, int, bytes] | None:
        query = (
            "SELECT counter, at, kind, data FROM dealer_event WHERE place = ? AND counter >= ? ORDER BY counter LIMIT 1"
        )
        found: tuple[int, int, int, bytes] | None = self._store.db.execute(query, (self.table, counter)).fetchone()
        return found

    def _identity(self) -> fdl.Identity:
        first = self._event(0)
        oldest = first[0] if first is not None else self._next
        position = self._acked + 1 if self._open else 0
        return fdl.Identity(fdl.CONSOLE, self._epoch, oldest, self._next, position, *self._names)

    def _deliver(self, now: float) -> list[bytes]:
        """The oldest unacknowledged event when it is due, or an IDENTITY where that event is gone."""
        if not self._open or not self.waiting or now < self._send_at:
            return []
        self._send_at = now + RETRY
        found = self._event(self._acked + 1)
        if found is None or found[0] != self._acked + 1:
            return [self._encode(self._identity())]
        counter, at, kind, data = found
        said = self._said.get(counter)
        age = int((now - said) * 1000) if said is not None else (micros_of(self._wall()) - at) // 1000
        known = 0 <= age < fdl.AGE_UNKNOWN
        return [self._encode(fdl.EventReport(counter, age if known else fdl.AGE_UNKNOWN, kind, data))]

    def _encode(self, message: fdl.Message, seq: int | None = None) -> bytes:
        if seq is None:
            self._seq += 1
            seq = self._seq
        return fdl.encode(message, seq)


def _is_entry(press: Press) -> bool:
    """Whether it is a result entered by hand; a throw that does not count is none."""
    if len(press.happenings) != 1:
        return False
    [one] = press.happenings
    return isinstance(one, TWICE) or (isinstance(one, fdl_console.DiceThrown) and not one.reason)


# ---- its line


def socket_of(text: str) -> Path:
    """The place of a socket, for example /run/feltd/console/rou-3.sock. Raises BadDealer."""
    path = Path(os.path.normpath(text))
    if not path.is_absolute() or path.name in ("", "..") or "\0" in text:
        raise BadDealer(f"{text!r}: write the path of a socket, for example /run/feltd/console/rou-3.sock")
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise BadDealer(f"{text!r}: the kernel takes at most {LONGEST_PATH} bytes; write a shorter path")
    return path


class _Line(asyncio.Protocol):
    """One connection of the edge."""

    def __init__(self, desk: "_Desk") -> None:
        self._desk = desk
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        uid = local_peer.uid_at_the_other_end(transport.get_extra_info("socket"))
        if self._desk.admits(uid):
            self._desk.took(self)
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._desk.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as every protocol
        self._desk.left(self)

    def send(self, data: bytes) -> None:
        """Send, without buffering for a host that does not read, because FDL repeats messages."""
        if self.transport is not None and data and self.transport.get_write_buffer_size() < MOST_UNSENT:
            self.transport.write(data)


class _Desk:
    """A unit on its socket: one connection, of the edge's user, and a timer."""

    def __init__(self, unit: Unit, edge_user: str) -> None:
        self._unit = unit
        self._edge_user = edge_user
        self._refused_at = -math.inf
        self._line: _Line | None = None
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._log = logs.get(table=unit.table)
        self._failing = False
        self._notify_unit, unit.on_change = unit.on_change, self._changed

    def _changed(self) -> None:
        self._notify_unit()
        self._set()

    def admits(self, uid: int) -> bool:
        """Whether to accept a connection: of the edge's user, and only one at a time."""
        if self._line is None and local_peer.is_trusted(uid, self._edge_user):
            return True
        now = self._loop.time()
        if now - self._refused_at >= REFUSALS_LOGGED_EVERY_S:  # limits the log
            self._refused_at = now
            user = local_peer.name_of(uid)
            if self._line is not None:
                self._log.warning("dealer.refused", user=user, reason="the edge is connected already")
            else:
                remedy = f"only {self._edge_user} may connect ([console] edge_user); find what runs as {user}"
                self._log.warning("dealer.refused", user=user, reason="this is not the edge's user", remedy=remedy)
        return False

    def took(self, line: _Line) -> None:
        """The edge is connected."""
        self._line = line
        self._unit.met_anew()
        self._live()

    def left(self, line: _Line) -> None:
        if line is self._line:
            self._line = None
            self._unit.met_anew()
            self._set()

    def received(self, line: _Line, data: bytes) -> None:
        if line is self._line:
            self._do(lambda now: self._unit.receive(data, now))

    def _live(self) -> None:
        self._do(self._unit.wake)

    def _do(self, act: Callable[[float], bytes]) -> None:
        """Run an action of the unit; after a failure of the store FDL repeats it."""
        try:
            said = act(self._loop.time())
        except (BadStore, sqlite3.Error) as error:
            if not self._failing:
                self._log.error("store.failed", reason=str(error), remedy="stored presses are kept; mend the disk")
            self._failing = True
        else:
            self._failing = False
            if self._line is not None:
                self._line.send(said)
        self._set()

    def _set(self) -> None:
        """Schedule the next send, only while the edge is connected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._line is not None:
            least = self._loop.time() + (BEAT if self._failing else 0.0)
            self._timer = self._loop.call_at(max(self._unit.due(), least), self._live)

    def close(self) -> None:
        if self._line is not None and self._line.transport is not None:
            self._line.transport.abort()
        self._line = None
        self._unit.met_anew()
        self._unit.on_change = self._notify_unit
        if self._timer is not None:
            self._timer.cancel()


@contextlib.asynccontextmanager
async def serve(units: Sequence[Unit], places: Mapping[str, str], edge_user: str) -> AsyncIterator[None]:
    """Serve each unit on its socket. Raises BadDealer where one cannot be opened."""
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        for unit in units:
            path = socket_of(places[unit.table])
            desk = _Desk(unit, edge_user)
            stack.callback(desk.close)
            try:
                listening = stack.enter_context(contextlib.closing(_listening(path)))
                server = await loop.create_unix_server(lambda desk=desk: _Line(desk), sock=listening)  # type: ignore[misc]
            except OSError as error:
                raise BadDealer(f"{path}: {error.strerror or error}") from error
            stack.callback(path.unlink, missing_ok=True)
            stack.callback(server.close)
        yield


def _stored(values: Mapping[str, str]) -> str:
    return msgspec.json.encode(values).decode()


def _values_of(stored: str) -> dict[str, str]:
    """The values of a stored press; none where another version stored them in another form."""
    try:
        return msgspec.json.decode(stored, type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def _listening(path: Path) -> socket.socket:
    """A socket at `path`; one that a killed console left there is replaced. Raises OSError."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.setblocking(False)
            if other.connect_ex(str(path)) in (0, errno.EAGAIN):
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.bind(str(path))
        path.chmod(0o666)  # every user may connect; the kernel identifies the edge's
    except BaseException:
        listening.close()
        raise
    return listening
