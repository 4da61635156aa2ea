"""The pools of jackpots as published on the broker: levels, books, entries, and how the signs follow.

`receive` takes the messages on `jackpot/...`. `run` requests missing entries from the process that keeps the books.
Each entry is compared with the one before it, so books that do not balance are detected here, too. Memory is bounded by
the number of entries and by their bytes.
"""

import asyncio
import contextlib
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from datetime import datetime
from fractions import Fraction
from typing import TypeVar

import msgspec
from msgspec import Struct

from daemon.broker.gap_recovery import PAGE, Again, Stream
from daemon.broker.session import UNREADABLE, BrokerLost
from daemon.jackpots.books import compared, exact_units
from daemon.jackpots.rounds import RoundMoney, add_entry
from daemon.read_model import SiteState
from protocols.contract.commands import Reply
from protocols.contract.documents import ReplayAnswer, ReplayRequest
from protocols.contract.events import DisplayShown, Event, UnknownEvent, decode_data
from protocols.contract.jackpots import (
    BookEntry,
    PoolBooks,
    PoolLevel,
    PoolWin,
    Waits,
    WinsPage,
    WinsRequest,
    jackpot_topic,
)
from protocols.contract.topics import LONGEST_DOCUMENT, LONGEST_EVENT, BadEnvelope, Wire, decode_wire, is_id

__all__ = ["OPEN", "BookLine", "PoolView", "Pools", "SignView"]

OPEN = ("pending", "confirmed")
BACK = 1500
"""Entries that are requested at the start, up to the newest: 100 rounds of a table with all seats."""
MOST_POOLS = 100
MOST_LINES = 200
MOST_LINE_BYTES = 1024 * 1024
MOST_ROUNDS = 200
MOST_LEVELS = 1000
"""Past levels that a sign may still show."""
MOST_SIGNS = 50
MOST_DECIMALS = 4
EVERY_S = 0.5
STUCK_S = 1.0
"""Seconds until missing entries are requested."""
RECALL_S = 5.0
MOST_RECALLS = 8
MOST_PAGED = 1000

D = TypeVar("D")


class BookLine(Struct, frozen=True):
    """One entry of the books with its envelope. `size`: bytes of the message."""

    seq: int
    at: datetime
    type: str
    entry: BookEntry
    size: int = 0


class SignView:
    """A display of a pool. `behind`: the time since which it shows an amount that the pool no longer has."""

    def __init__(self, place: str) -> None:
        """A display that has not reported yet."""
        self.place = place
        self.text = ""
        self.confirmed = False
        self.behind: datetime | None = None


class PoolView:
    """One pool."""

    def __init__(self, name: str) -> None:
        """Nothing is known yet."""
        self.name = name
        self.level: PoolLevel | None = None
        self.books: PoolBooks | None = None
        self.journal = ""
        self.stream: Stream[BookLine] | None = None
        self.last: BookLine | None = None
        """The last entry before which none is missing."""
        self.lines: deque[BookLine] = deque()
        self.bytes = 0
        self.rounds: OrderedDict[str, RoundMoney] = OrderedDict()
        self.fault = ""
        """Why the entries do not agree; "" while the received ones agree."""
        self.newest = 0
        self.too_long: dict[str, int] = {}
        """Documents that are too long to be read here: their bytes by level, books or event."""
        self.stuck: tuple[int, datetime] | None = None
        """The number of the missing entry, and the time since which it is missing."""
        self.again = Again()
        self.signs: dict[str, SignView] = {}
        self.paged: OrderedDict[str, PoolWin] = OrderedDict()
        """Wins of the pages that were read last."""
        self.levels: deque[tuple[int, datetime]] = deque(maxlen=MOST_LEVELS)
        """Past amounts, each with the time at which it ended."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that feed it."""
        return self.books.tables if self.books is not None else ()

    @property
    def open_wins(self) -> list[PoolWin]:
        """The oldest of the open wins; `waiting` counts all."""
        return [one for one in self.books.wins if one.state in OPEN] if self.books is not None else []

    def win(self, name: str) -> PoolWin | None:
        """A win by its name, from the books or from a page that was read."""
        shown = self.books.wins if self.books is not None else ()
        return next((one for one in shown if one.id == name), self.paged.get(name))

    @property
    def waiting(self) -> int:
        """The number of open wins."""
        return self.books.waiting if self.books is not None else 0

    @property
    def balances(self) -> dict[str, int]:
        """The balances of the accounts in 1/`unit` of a minor unit, after the last entry."""
        return exact_units(self.last.entry.after) if self.last else {}

    @property
    def unit(self) -> int:
        """The parts of a minor unit in which the balances count."""
        return self.last.entry.unit if self.last else 1

    def held(self, account: str) -> int:
        """Whole minor units of an account after the last entry."""
        return self.balances.get(account, 0) // self.unit

    def exact(self, account: str) -> Fraction:
        """Minor units of an account after the last entry, with the part below one."""
        return Fraction(self.balances.get(account, 0), self.unit)


class _Recall:
    """A range of entries that a page waits for."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.found: dict[int, BookLine] = {}
        self.complete = asyncio.Event()

    def take(self, line: BookLine) -> None:
        if self.first <= line.seq <= self.last:
            self.found[line.seq] = line
            if len(self.found) == self.last - self.first + 1:
                self.complete.set()


class _Asked:
    """A page of wins that a request waits for."""

    def __init__(self) -> None:
        self.page: WinsPage | None = None
        self.came = asyncio.Event()


class Pools:
    """All pools of the site. Listeners of the site are called with `pools`, `pool/<name>` (level, signs),
    `poolentries/<name>` and `poolwins/<name>` (wins, proposals, terms).
    """

    def __init__(self, site: SiteState, now: Callable[[], datetime]) -> None:
        """Listen to the site."""
        self._site = site
        self._now = now
        self._pools: dict[str, PoolView] = {}
        self._recalls: dict[str, list[_Recall]] = {}
        self._asked: dict[str, _Asked] = {}
        self._dirty: set[str] = set()
        self.removed: set[str] = set()
        """Pools whose level was cleared since the start."""
        self.on_reply: list[Callable[[str, Reply], None]] = []
        site.on_jackpot.append(self.receive)
        site.on_event.append(self._device_event)
        site.on_change.append(self._site_changed)

    def __iter__(self) -> Iterator[PoolView]:
        """The pools by name."""
        return iter([self._pools[name] for name in sorted(self._pools)])

    @property
    def connected(self) -> bool:
        """Whether the broker is connected: otherwise all values of a pool may be old."""
        return self._site.connected

    def get(self, name: str) -> PoolView | None:
        """The pool, if the broker has it."""
        return self._pools.get(name)

    # ---- messages

    def receive(self, pool: str, leaves: list[str], payload: bytes) -> None:
        """A message under `jackpot/<pool>/`."""
        if not payload:
            if leaves == ["level"] and self._pools.pop(pool, None) is not None:  # cleared: the pool was removed
                if len(self.removed) < MOST_POOLS:
                    self.removed.add(pool)
                self._site.notify("pools")
            return
        if (pool not in self._pools and len(self._pools) >= MOST_POOLS) or self._is_too_long(pool, leaves, payload):
            self._site.refused += 1
            return
        try:
            match leaves:
                case ["level"]:
                    self._level(self._view(pool), msgspec.json.decode(payload, type=PoolLevel))
                case ["books"]:
                    self._books(self._view(pool), msgspec.json.decode(payload, type=PoolBooks))
                case ["event", kind]:
                    self._event(self._view(pool), kind, decode_wire(payload), len(payload))
                case ["cmd", "replay", "result"]:
                    self._answered(self._view(pool), msgspec.json.decode(payload, type=ReplayAnswer))
                case ["cmd", "wins", "result"]:
                    self._paged(self._view(pool), msgspec.json.decode(payload, type=WinsPage))
                case ["cmd", _, "result"]:
                    reply = msgspec.json.decode(payload, type=Reply)
                    for listener in self.on_reply:
                        listener(pool, reply)
                case _:
                    pass
        except (BadEnvelope, ValueError, *UNREADABLE):  # a ValueError: a balance of thousands of digits
            self._site.refused += 1

    def _is_too_long(self, pool: str, leaves: list[str], payload: bytes) -> bool:
        """Whether a document is too long to be read here; an alert names it until a shorter one comes."""
        kind = leaves[0]
        too_long = len(payload) > (LONGEST_EVENT if kind == "event" else LONGEST_DOCUMENT)
        if too_long and kind in ("level", "books", "event"):
            self._view(pool).too_long[kind] = len(payload)
        elif pool in self._pools and kind != "event":
            self._pools[pool].too_long.pop(kind, None)
        return too_long

    def _view(self, name: str) -> PoolView:
        view = self._pools.get(name)
        if view is None:
            view = self._pools[name] = PoolView(name)
            self.removed.discard(name)
            self._site.notify("pools")
        return view

    def _level(self, view: PoolView, level: PoolLevel) -> None:
        if not 0 <= level.decimals <= MOST_DECIMALS:
            self._site.refused += 1
            return
        before, view.level = view.level, level
        if before is not None and before.amount != level.amount:
            view.levels.append((before.amount, self._now()))
            for sign in view.signs.values():
                self._follow(view, sign)
        self._until(view, level.entry)
        self._check_level(view)
        self._site.notify(f"pool/{view.name}")
        if before is None or _waits(before) != _waits(level):
            self._site.notify(f"poolwins/{view.name}")

    def _books(self, view: PoolView, books: PoolBooks) -> None:
        view.books = books
        known = view.signs
        places = [place for place in books.signs[:MOST_SIGNS] if all(map(is_id, place.split("/")))]
        view.signs = {place: known.get(place) or SignView(place) for place in places}
        self._until(view, books.entry)
        self._site.notify(f"pool/{view.name}")
        self._site.notify(f"poolwins/{view.name}")

    def _until(self, view: PoolView, entry: int) -> None:
        """The books have entries up to this number."""
        view.newest = max(view.newest, entry)
        if view.stream is None:
            view.stream = Stream(max(1, entry - BACK + 1))

    def _event(self, view: PoolView, kind: str, wire: Wire, size: int) -> None:
        line = BookLine(wire.seq, wire.time, kind, msgspec.json.decode(wire.data, type=BookEntry), size)
        if wire.type != kind or wire.seq < 1 or line.entry.unit < 1:
            self._site.refused += 1
            return
        if wire.journal != view.journal:  # other books: the known entries do not belong to them
            if view.journal:
                view.stream, view.last, view.newest, view.fault = None, None, 0, ""
                view.too_long.clear()
                view.lines.clear()
                view.rounds.clear()
                view.bytes = 0
            view.journal = wire.journal
        for recall in self._recalls.get(view.name, ()):
            recall.take(line)
        self._until(view, line.seq)
        assert view.stream is not None
        for ready in view.stream.take(line):
            self._use(view, ready)

    def _use(self, view: PoolView, line: BookLine) -> None:
        before = view.last if view.last is not None and view.last.seq == line.seq - 1 else None
        if found := compared(before.entry if before else None, line.entry, line.seq):
            view.fault = view.fault or f"entry {line.seq}: {found}"
        view.last = line
        view.lines.append(line)
        view.bytes += line.size
        while len(view.lines) > MOST_LINES or view.bytes > MOST_LINE_BYTES:
            view.bytes -= view.lines.popleft().size
        add_entry(view.rounds, line.type, line.at, line.entry)
        while len(view.rounds) > MOST_ROUNDS:
            view.rounds.popitem(last=False)
        self._check_level(view)
        self._dirty.add(view.name)

    def _check_level(self, view: PoolView) -> None:
        """Compare the level with the entry after which it was published."""
        level, last = view.level, view.last
        if level is None or last is None or level.entry != last.seq or view.fault:
            return
        if level.amount != (held := view.held("visible")):
            view.fault = f"entry {last.seq}: the level shows {level.amount} and the books hold {held}"
            return
        if int(level.set_aside) != view.held("pending"):
            view.fault = f"entry {last.seq}: the level and the books set aside different amounts for wins"

    def _answered(self, view: PoolView, answer: ReplayAnswer) -> None:
        view.again = Again()
        stream = view.stream
        if stream is not None and answer.journal in ("", view.journal) and answer.oldest > stream.expected:
            for ready in stream.skip(answer.oldest):  # the older ones are in no file any more
                self._use(view, ready)

    # ---- signs

    def _device_event(self, table: str, wire: Wire, _event: Event | None) -> None:
        if wire.type != "display.shown":
            return
        place = f"{table}/{wire.source.rpartition('/')[2]}"
        for view in self._pools.values():
            sign = view.signs.get(place)
            if sign is None:
                continue
            with contextlib.suppress(UnknownEvent):
                shown = decode_data(wire.type, wire.data)
                if isinstance(shown, DisplayShown) and not shown.text.upper().startswith("JACKPOT"):
                    sign.text, sign.confirmed = shown.text[:100], shown.confirmed
                    self._follow(view, sign)
                    self._site.notify(f"pool/{view.name}")

    def _site_changed(self, key: str) -> None:
        """It is unknown what the signs showed while the broker was disconnected."""
        if key == "broker":
            for view in self._pools.values():
                view.signs = {place: SignView(place) for place in view.signs}

    def _follow(self, view: PoolView, sign: SignView) -> None:
        """Find the time since which a sign is behind; an amount that is too old to be known changes nothing."""
        level = view.level
        if level is None or not sign.text:
            return
        if _shows(sign.text, level.amount, level.decimals):
            sign.behind = None
            return
        for amount, until in reversed(view.levels):
            if _shows(sign.text, amount, level.decimals):
                sign.behind = until
                return
        sign.behind = sign.behind or self._now()

    # ---- gaps

    async def run(self) -> None:
        """Notify the pages of new entries and request missing ones, until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            self.notify()
            with contextlib.suppress(BrokerLost):
                await self.ask_for_missing()

    def notify(self) -> None:
        """Notify the pages of new entries together: a busy pool has thousands a second."""
        dirty, self._dirty = self._dirty, set()
        for name in dirty:
            self._site.notify(f"poolentries/{name}")

    async def ask_for_missing(self) -> None:
        """Request the missing entries. Raises BrokerLost."""
        now, time = self._now(), asyncio.get_running_loop().time()
        for view in list(self._pools.values()):
            stream = view.stream
            if stream is None or stream.expected > view.newest:
                view.stuck = None
                continue
            if view.stuck is None or view.stuck[0] != stream.expected:
                view.stuck = stream.expected, now
            backlog = view.newest - stream.expected >= PAGE  # after a start
            if not backlog and (now - view.stuck[1]).total_seconds() < STUCK_S:
                continue
            if view.again.due(stream.expected, time):
                last = min((stream.gap or (0, view.newest))[1], stream.expected + PAGE - 1)
                await self._ask(view.name, stream.expected, last)

    async def _ask(self, pool: str, first: int, last: int) -> None:
        topic = jackpot_topic(self._site.site, pool, "cmd/replay")
        await self._site.publish(topic, msgspec.json.encode(ReplayRequest(first, last)))

    async def wins(self, view: PoolView, first: int, most: int, state: Waits) -> WinsPage | None:
        """A page of the open wins, from the books; None if it did not arrive in time."""
        if len(self._asked) >= MOST_RECALLS:
            return None
        id_ = secrets.token_hex(12)
        self._asked[id_] = asked = _Asked()
        try:
            async with asyncio.timeout(RECALL_S):
                topic = jackpot_topic(self._site.site, view.name, "cmd/wins")
                await self._site.publish(topic, msgspec.json.encode(WinsRequest(id_, first, most, state)))
                await asked.came.wait()
        except (TimeoutError, BrokerLost):
            pass
        finally:
            del self._asked[id_]
        return asked.page

    def _paged(self, view: PoolView, page: WinsPage) -> None:
        asked = self._asked.get(page.id)
        if asked is None:
            return
        for win in page.wins:
            view.paged[win.id] = win
            view.paged.move_to_end(win.id)
        while len(view.paged) > MOST_PAGED:
            view.paged.popitem(last=False)
        asked.page = page
        asked.came.set()

    async def recall(self, view: PoolView, first: int, last: int) -> list[BookLine]:
        """Entries of the books from the journal of their process, the newest first; those that arrived in time."""
        first = max(first, 1)
        known = {line.seq: line for line in view.lines if first <= line.seq <= last}
        recalls = self._recalls.setdefault(view.name, [])
        if len(known) < last - first + 1 and sum(map(len, self._recalls.values())) < MOST_RECALLS:
            recall = _Recall(first, last)
            recalls.append(recall)
            try:
                async with asyncio.timeout(RECALL_S):
                    await self._ask(view.name, first, last)
                    await recall.complete.wait()
            except (TimeoutError, BrokerLost):
                pass
            finally:
                recalls.remove(recall)
            known |= recall.found
        return [known[seq] for seq in sorted(known, reverse=True)]


def _waits(level: PoolLevel) -> tuple[object, ...]:
    return level.waiting, level.set_aside, level.pending, level.proposals


def _shows(text: str, amount: int, decimals: int) -> bool:
    """Whether the text of a sign is this amount, with its decimals or without."""
    digits = "".join(one for one in text if one.isascii() and one.isdigit()).lstrip("0")
    return digits in (str(amount).lstrip("0"), str(amount // 10**decimals).lstrip("0"))
