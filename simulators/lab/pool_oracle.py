"""The oracle of linked jackpots: computes the balances of a pool in fractions, without the ledger.

Bets and hands come from the simulated dealers, orders from the supervisors, the end of each round from the rules'
journal. Only the orders of other people (`strangers`), and the order in which a pool used all of these, are taken from
its books: two tables end their rounds at nearly the same time, and either may come first.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

import msgspec
from msgspec import Struct

from daemon.config.model import Config, Jackpot
from daemon.journal.rows import Row, id_and_journal
from protocols.contract.events import RoundPaid, WagerPlaced, decode_data
from protocols.contract.jackpots import (
    Adjust,
    Approve,
    BookEntry,
    Confirm,
    ConfirmMany,
    Order,
    Pay,
    PayMany,
    PoolWin,
    Propose,
    Reject,
    Withdraw,
)
from protocols.contract.results import ENDS, Result, decode_end
from simulators.lab.pools import Sent
from simulators.tables.stud_poker import Laid

__all__ = ["PoolAccount", "judge_pools", "pools_text"]

CHIP: Final = 1000
"""Minor units of the one chip of a bet: the drivers' default."""
# The prize of a hand: fixed, a share of the pool, the larger of both, or the rest; the share; whether holders share it.
FIXED = {name: ("fixed", Fraction(0), False) for name in ("flush", "full_house", "four_of_a_kind")}
PRIZES: Final[dict[str, dict[str, tuple[str, Fraction, bool]]]] = {
    "macau.stud-poker": FIXED
    | {"straight_flush": ("larger", Fraction(1, 10), False), "royal_flush": ("larger", Fraction(1), True)},
    "angola.stud-poker": FIXED
    | {"straight_flush": ("share", Fraction(1, 10), True), "royal_flush": ("rest", Fraction(1), True)},
}
IN_POOL: Final = ("visible", "hidden", "overflow")
_GONE: Final = ("reversed", "contested")
FIRST_EVENTS: Final = 10
"""The number of a table's first events; its devices come online for the first time in them."""
ORDER: Final = ("flush", "full_house", "four_of_a_kind", "straight_flush", "royal_flush")


class PoolAccount(Struct):
    """The totals of the pools of one pit. `bets` and `coins`: contributions and their minor units.

    `at_table`: wins that a payment key paid; `contested`: paid ones that a correction took away; `corrected`, `voided`:
    results that changed a round with wins; `batched`: wins that were confirmed or paid together with others;
    `unsettled`: bets of rounds whose bets were uncertain in the rules, and bets laid while the edge had closed the
    betting, for a stated reason, so that they are in no pool.
    """

    bets: int = 0
    coins: int = 0
    wins: int = 0
    paid: int = 0
    reversed: int = 0
    changes: int = 0
    at_table: int = 0
    contested: int = 0
    corrected: int = 0
    voided: int = 0
    batched: int = 0
    unsettled: int = 0
    coins_lost: int = 0
    coins_made: int = 0
    bets_lost: int = 0
    bets_doubled: int = 0
    wins_lost: int = 0
    wins_doubled: int = 0

    def add(self, other: "PoolAccount") -> None:
        """Add the totals of another pit."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def pools_text(account: PoolAccount) -> str:
    """The account of the pools, for a person to read."""
    return (
        f"jackpots: {account.bets} bets of {account.coins} minor units, {account.wins} wins, {account.paid} paid "
        f"({account.at_table} by the payment key), {account.batched} confirmed or paid with others by one order, "
        f"{account.corrected} rounds with wins corrected, {account.voided} voided, "
        f"{account.reversed} reversed, {account.contested} contested, "
        f"{account.changes} changes; {account.coins_lost} coins lost, "
        f"{account.coins_made} made; bets: {account.bets_lost} lost, {account.bets_doubled} doubled, "
        f"{account.unsettled} unsettled for a stated reason; "
        f"wins: {account.wins_lost} lost, {account.wins_doubled} doubled"
    )


class _Win(Struct):
    """A win as the oracle computes it. `house`: the house's part of it."""

    round: str
    combination: str
    amount: int
    seats: tuple[int, ...]
    house: int = 0
    state: str = "pending"
    confirmed: bool = False
    at_table: bool = False
    key: str = ""
    """The payment key that paid it."""


class _Round(Struct):
    """The effects of a round on the pool: bets with their parts, the pool at the win, the amounts of its reset,
    the balances after the round, its `place` among all rounds; `settled`: people rejected a win of it.
    """

    bets: list[tuple[int, dict[str, Fraction]]] = []
    base: int = 0
    named: list[tuple[str, tuple[int, ...]]] = []
    fresh: dict[str, Fraction] = {}
    count: int = 0
    after: dict[str, Fraction] = {}
    place: int = 0
    settled: bool = False
    corrected: int = 0


class _Key(Struct, frozen=True):
    """A payment key as the edge's journal has it: event `seq` of a table, and the round that it named."""

    table: str
    seq: int
    round: str


class _Oracle:
    """One pool."""

    def __init__(self, pool: Jackpot, table_rules: Mapping[str, str], keys: Mapping[str, _Key]) -> None:
        self._pool = pool
        self._rules = table_rules
        self._keys = keys
        self.ended: dict[str, tuple[str, int]] = {}
        """By round, also without entries: its table, and the event that ended it first."""
        self.money: dict[str, Fraction] = {}
        self.wins: dict[str, _Win] = {}
        self.rounds: dict[str, _Round] = {}
        self.proposed: dict[str, Any] = {}
        self.since: dict[str, Fraction] = {}
        """The sum that the pool got or gave after the corrected round: it does not count for that round."""
        self.gone: dict[str, Fraction] = {}
        """By account, the money that reset the pool after that round and that wins of other rounds took since."""
        self._move("house", "visible", Fraction(pool.seed))

    def of(self, account: str) -> Fraction:
        return self.money.get(account, Fraction(0))

    def held(self, account: str) -> Fraction:
        """The balance of an account that counts for the round being decided."""
        return self.of(account) - self.since.get(account, 0)

    def _free(self, account: str) -> Fraction:
        return max(min(self.held(account), self.of(account) + self.gone.get(account, 0)), Fraction(0))

    def _move(self, giver: str, taker: str, amount: Fraction | int) -> None:
        self.money[giver] = self.of(giver) - amount
        self.money[taker] = self.of(taker) + amount

    def _clip(self) -> None:
        if self._pool.limit and self.of("visible") > self._pool.limit:
            self._move("visible", "overflow", self.of("visible") - self._pool.limit)

    # ---- rounds

    def end(
        self, table: str, result: Result, seats: Sequence[int], hands: Mapping[int, str] | None, until: int
    ) -> None:
        """Book the end of a round or a correction, by event `until`. `hands`: the winning ones; None: those of the
        result.
        """
        named = [(one.combination, one.among) for one in result.jackpots]
        prizes = named if hands is None else self._prizes(self._rules[table], hands)
        if result.void is not None:
            seats, prizes = (), []
        first = result.round not in self.rounds
        known = self.rounds.setdefault(result.round, _Round())
        known.corrected = max(known.corrected, until)
        for win in self.wins.values():  # paid after the right result, in any order of arrival
            if win.round == result.round and win.state == "paid" and win.key and self._keys[win.key].seq > until:
                self._unpay(win)
        before = dict(self.money)
        if not first:
            self._go_back(known)
        standing = {
            name: one for name, one in self.wins.items() if one.round == result.round and one.state != "reversed"
        }
        if standing:
            self._correct(table, result.round, known, standing, seats, prizes)
        else:
            self.undo_reset(known)
            self.settle(known, seats)
            known.base = int(self.held("visible"))
            self._decide(table, result.round, known, self._amounts(self._rules[table], known.base, prizes), ())
        known.named = prizes
        if not first:
            self._come_back(known, before)
        self._clip()
        if first:
            known.place = len(self.rounds)
            known.after = {name: self.of(name) for name in IN_POOL}

    def _correct(
        self,
        table: str,
        round_: str,
        known: _Round,
        standing: Mapping[str, _Win],
        seats: Sequence[int],
        prizes: list[tuple[str, tuple[int, ...]]],
    ) -> None:
        """Decide a round with wins again, with the pool as it was."""
        rules, base = self._rules[table], known.base
        if not known.settled and all(one.state == "pending" for one in standing.values()):
            trial = deepcopy(self)
            for name in standing:
                trial.undo(name)
            trial.undo_reset(trial.rounds[round_])
            trial.settle(trial.rounds[round_], seats)
            base = int(trial.held("visible"))
        was, new = self._amounts(rules, known.base, known.named), self._amounts(rules, base, prizes)
        kept = []
        for name, win in standing.items():
            decided = next((one for one in was if one[:2] == (win.combination, win.seats)), None)
            if decided is None:
                decided = win.combination, win.seats, win.amount
            else:
                was.remove(decided)
            if decided in new:
                new.remove(decided)
                kept.append(win)
                win.state = "paid" if win.state == "contested" else win.state
            elif win.state in ("pending", "confirmed"):
                self.undo(name)
            else:
                win.state = "contested"
        known.base = base
        if len(kept) == len(standing) and not new and sorted(seats) == sorted(seat for seat, _ in known.bets):
            return
        for win in kept:
            self._move("house", "visible", win.amount - win.house)
            win.house = win.amount
        gone = [one for one in standing.values() if one.state == "contested"]
        if not any(PRIZES[rules][one.combination][1] == 1 for one in gone):  # the pool has begun again
            self.undo_reset(known)
        self.settle(known, seats)
        for win in kept:
            there = self._take(win.house)
            self._move("visible", "house", there)
            win.house -= there
        self._decide(table, round_, known, new, [win.combination for win in kept])

    def _decide(
        self,
        table: str,
        round_: str,
        known: _Round,
        new: Iterable[tuple[str, tuple[int, ...], int]],
        kept: Iterable[str],
    ) -> None:
        names = list(kept)
        for combination, among, amount in new:
            known.count += 1
            names.append(combination)
            self._win(f"{round_}/{known.count}", _Win(round_, combination, amount, among))
        self._begin_again(known, whole=any(PRIZES[self._rules[table]][name][1] == 1 for name in names))

    def _go_back(self, known: _Round) -> None:
        self.since = {name: self.of(name) - known.after[name] for name in IN_POOL}

    def _come_back(self, known: _Round, before: Mapping[str, Fraction]) -> None:
        for account, amount in self.gone.items():
            self._count_gone(account, -amount)
        change = {name: self.of(name) - before.get(name, 0) for name in IN_POOL}
        there = before.get("overflow", Fraction(0)) - self.since["overflow"]
        known.after = {name: self.held(name) for name in IN_POOL}
        self._move("overflow", "visible", self._spilled(before, change, there))
        self.since = {}
        for one in self.rounds.values():
            if one.place > known.place:
                self._limit_again(one, change, there)

    def _spilled(self, held: Mapping[str, Fraction], change: Mapping[str, Fraction], there: Fraction) -> Fraction:
        """The amount that an earlier correction returns from the overflow; `there`: the overflow after its round."""
        visible, overflow = (held.get(name, Fraction(0)) + change[name] for name in ("visible", "overflow"))
        room = self._pool.limit - visible if self._pool.limit else Fraction(0)
        return (
            room
            if room < 0
            else max(min(room, -change["visible"], overflow - change["overflow"] - there, overflow), Fraction(0))
        )

    def _limit_again(self, later: _Round, change: Mapping[str, Fraction], there: Fraction) -> None:
        """Recompute the parts of a later round's bets above the limit: the last bets, of which its own are last."""
        back = self._spilled(later.after, change, there)
        own = sum((parts["overflow"] for _, parts in later.bets), Fraction(0))
        others = max(later.after["overflow"] - there - own, Fraction(0))
        for name in IN_POOL:
            later.after[name] += change[name]
        later.after["visible"] += back
        later.after["overflow"] -= back
        giver, taker, left = ("overflow", "visible", back - others) if back > 0 else ("visible", "overflow", -back)
        for _, parts in later.bets if back > 0 else reversed(later.bets):
            part = max(min(left, parts[giver]), Fraction(0))
            left -= part
            parts[giver] -= part
            parts[taker] += part

    def _shift(self, rounds: Iterable[_Round], before: Mapping[str, Fraction]) -> None:
        for one in rounds:
            for name in IN_POOL:
                one.after[name] += self.of(name) - before.get(name, 0)

    def settle(self, known: _Round, seats: Sequence[int]) -> None:
        """Book the valid bets; the others return to the players, from the accounts of their parts."""
        wanted, kept = list(seats), []
        for seat, parts in known.bets:
            if seat in wanted:
                wanted.remove(seat)
                kept.append((seat, parts))
                continue
            owed = Fraction(0)
            for account, part in parts.items():
                held = min(part, max(self.held(account), Fraction(0)))
                there = min(held, self.of(account))
                self._move(account, "players", there)
                self._lend(account, held - there)
                self._move("house", "players", held - there)
                owed += part - held
            there = min(owed, self._free("visible"))
            self._move("visible", "players", there)
            self._move("house", "players", owed - there)
        known.bets = kept + [(seat, self._bet()) for seat in wanted]

    def _bet(self) -> dict[str, Fraction]:
        shown, kept = CHIP * Fraction(self._pool.visible), CHIP * Fraction(self._pool.hidden)
        room = max(self._pool.limit - self.held("visible"), Fraction(0)) if self._pool.limit else shown
        parts = {"visible": min(shown, room), "overflow": max(shown - room, Fraction(0)), "hidden": kept}
        parts["margin"] = CHIP - shown - kept
        for account, part in parts.items():
            self._move("players", account, part)
        return parts

    def _prizes(self, rules: str, hands: Mapping[int, str]) -> list[tuple[str, tuple[int, ...]]]:
        """The prizes in the order of payment: Macau from the dealer's left, Angola the smallest first; the whole pool
        comes after the straight flushes.
        """
        found: list[tuple[str, tuple[int, ...]]] = []
        for seat, name in sorted(hands.items()):
            together = PRIZES[rules][name][2]
            seats = tuple(other for other in sorted(hands) if hands[other] == name) if together else (seat,)
            if (name, seats) not in found:
                found.append((name, seats))
        if rules.startswith("angola"):
            return sorted(found, key=lambda one: ORDER.index(one[0]))
        flushes = [place for place, one in enumerate(found) if one[0] == "straight_flush"]
        royal = next((place for place, one in enumerate(found) if one[0] == "royal_flush"), len(found))
        if flushes and royal < flushes[-1]:
            found.insert(flushes[-1], found.pop(royal))
        return found

    def _amounts(
        self, rules: str, base: int, prizes: Iterable[tuple[str, tuple[int, ...]]]
    ) -> list[tuple[str, tuple[int, ...], int]]:
        """The amount of each prize from a pool of `base`."""
        found: list[tuple[str, tuple[int, ...], int]] = []
        left = base
        for name, seats in prizes:
            kind, part, _ = PRIZES[rules][name]
            fixed = self._pool.prizes[name].fixed
            before = sum(amount for other, _, amount in found if other == "straight_flush") if part == 1 else 0
            share = int(part * max(base - before, 0))
            amount = {"fixed": fixed, "share": share, "rest": left}.get(kind, max(fixed, share))
            if seats and self._pool.odd == "pool":
                amount -= amount % len(seats)
            left = max(left - amount, 0)
            found.append((name, seats, amount))
        return found

    def _take(self, wanted: int) -> int:
        """The pool's part of a prize, without the money that wins of other rounds took since."""
        due = min(wanted, max(int(self.held("visible")), 0))
        there = min(due, int(self._free("visible")))
        self._lend("visible", Fraction(due - there))
        return there

    def _lend(self, account: str, amount: Fraction) -> None:
        """Let the house lend the money that wins of other rounds took since."""
        if amount:
            self.since[account] += amount

    def _count_gone(self, account: str, amount: Fraction) -> None:
        """Count reset money that wins of other rounds took as returned; a negative amount as given again."""
        self.gone[account] = self.gone.get(account, Fraction(0)) + amount
        self.since["visible"] += amount
        if account in IN_POOL:
            self.since[account] -= amount

    # ---- payment keys

    def pays(self, key: _Key) -> str:
        """The round that a key pays: the one that it names, else the last one that ended before it."""
        ended = {name: until for name, (table, until) in self.ended.items() if table == key.table and until < key.seq}
        return (key.round if key.round in ended else "") if key.round else max(ended, key=ended.__getitem__, default="")

    def pay_by_key(self, name: str, which: str) -> str:
        """Why this key cannot have paid this win, by the books; "" where it can."""
        win, key = self.wins.get(name), self._keys.get(which)
        if win is None or key is None:
            return f"{name} is paid by {which!r}, and there is no such win or key"
        if not win.at_table or win.state not in ("pending", "confirmed"):
            return f"{name}, {win.state}, cannot be paid at the table by {which}"
        if self.pays(key) != win.round or key.seq <= self.rounds[win.round].corrected:
            return f"{which} pays {self.pays(key) or 'no round'}, and not {name}"
        win.state, win.key = "paid", which
        self._move("pending", "paid", win.amount)
        return ""

    def take_back_keys(self) -> None:
        """Take back payments by keys that belong to another round, as a late result shows."""
        for win in self.wins.values():
            if win.key and win.state == "paid" and self.pays(self._keys[win.key]) != win.round:
                self._unpay(win)

    def _unpay(self, win: _Win) -> None:
        win.state, win.key = ("confirmed" if win.confirmed else "pending"), ""
        self._move("paid", "pending", win.amount)

    def unpaid(self) -> list[str]:
        """The open wins whose round a key paid."""
        paid = [(self.pays(key), key.seq) for key in self._keys.values()]
        return [
            name
            for name, win in self.wins.items()
            if win.at_table
            and win.state in ("pending", "confirmed")
            and any(round_ == win.round and seq > self.rounds[round_].corrected for round_, seq in paid)
        ]

    def _win(self, name: str, win: _Win) -> None:
        """Set a new win aside."""
        whole = any(PRIZES[rules][win.combination][1] == 1 for rules in {*self._rules.values()} & PRIZES.keys())
        win.at_table = bool(win.seats) and not whole and 0 < win.amount <= self._pool.table_limit
        there = self._take(win.amount)
        win.house = win.amount - there
        self._move("visible", "pending", there)
        self._move("house", "pending", win.house)
        self.wins[name] = win

    def undo(self, name: str) -> None:
        """Return a win to the accounts that it came from."""
        win = self.wins[name]
        win.state = "reversed"
        set_aside = Fraction(win.amount)
        house = min(Fraction(win.house), set_aside)
        self._move("pending", "house", house)
        self._move("pending", "visible", set_aside - house)

    def undo_reset(self, known: _Round) -> None:
        """Return exactly the money of the reset, the house's part first."""
        there = self._free("visible")
        for account in ("house", "hidden", "overflow"):
            given = known.fresh.get(account, Fraction(0))
            back = min(given, there)
            self._move("visible", account, back)
            known.fresh[account] = given - back
            there -= back
            if self.since:
                self._count_gone(account, given - back)

    def _begin_again(self, known: _Round, *, whole: bool) -> None:
        shown, seed = self.held("visible"), self._pool.seed
        due = whole or shown < 1 or (self._pool.reseed == "below_seed" and shown < seed)
        if not due:
            return
        for account in ("overflow", "hidden", "house"):
            gone = self.gone.get(account, Fraction(0))
            if account == "house":
                given = max(seed - self.held("visible"), Fraction(0))
            else:
                there = self._free(account)
                room = self._pool.limit - self.held("visible") if self._pool.limit else there
                given = min(there, max(Fraction(room), Fraction(0)))
            if again := min(given, gone):
                self._count_gone(account, -again)
            self._move(account, "visible", given - again)
            known.fresh[account] = known.fresh.get(account, Fraction(0)) + given - again

    # ---- people

    def obey(self, id_: str, sent: Sent) -> None:
        """Apply an order."""
        match sent.order:
            case Confirm(win=name, seats=seats):
                win, before = self.wins[name], dict(self.money)
                if not win.seats and self._pool.odd == "pool":
                    odd = win.amount % len(seats)
                    win.amount -= odd
                    self._move("pending", "visible", odd)
                win.state, win.confirmed = "confirmed", True
                self._clip()
                place = self.rounds[win.round].place
                self._shift([one for one in self.rounds.values() if one.place >= place], before)
            case Pay(win=name):
                self.wins[name].state = "paid"
                self._move("pending", "paid", self.wins[name].amount)
            case ConfirmMany(person=person, wins=wins):
                for name in wins:
                    self.obey(id_, Sent(sent.pool, Confirm(person, name)))
            case PayMany(person=person, wins=wins):
                for name in wins:
                    self.obey(id_, Sent(sent.pool, Pay(person, name)))
            case Propose(change=change):
                self.proposed[id_] = change
            case Approve(proposal=which):
                match self.proposed.pop(which):
                    case Adjust(account=account, amount=amount):
                        self._move("house", account, amount)
                    case Reject(win=name):
                        self._reject(name)
                    case other:
                        raise _NotComparedError(f"a person decided {other}")
            case _:
                pass

    def _reject(self, name: str) -> None:
        win, before = self.wins[name], dict(self.money)
        known = self.rounds[win.round]
        known.settled = True
        self._go_back(known)
        self.undo(name)
        self.undo_reset(known)
        rules = next(one for one in (self._rules[table] for table in self._pool.tables))
        left = [one for one in self.wins.values() if one.round == win.round and one.state not in _GONE]
        self._begin_again(known, whole=any(PRIZES[rules][one.combination][1] == 1 for one in left))
        self._come_back(known, before)
        self._clip()


class _NotComparedError(Exception):
    """A person changed a value that the oracle cannot compute."""


class _Verdict(Struct):
    table: str
    result: Result
    time: datetime


class _Journal(Struct, frozen=True):
    """The content of the edge's journal. `doubted`: the tables with a device that may have lost events or reported a
    fault. `closed`: by event id the seat of each bet that came while the pool's owner was lost. `keys`: the payment
    keys by event id.
    """

    doubted: set[str]
    closed: dict[str, int]
    keys: dict[str, _Key]


def _read_events(edge: str, events: Sequence[Row]) -> _Journal:
    bets = ((row, decode_data(row.type, row.data)) for row in events if row.type == "wager.placed")
    closed = {
        f"{edge}:{row.place}:{row.seq}": bet.seat
        for row, bet in bets
        if isinstance(bet, WagerPlaced) and bet.pool_closed
    }
    pressed = ((row, decode_data(row.type, row.data)) for row in events if row.type == "round.paid")
    keys = {
        f"{edge}:{row.place}:{row.seq}": _Key(row.place, row.seq, paid.round)
        for row, paid in pressed
        if isinstance(paid, RoundPaid)
    }
    return _Journal({row.place for row in events if _is_doubt(row)}, closed, keys)


def _is_doubt(row: Row) -> bool:
    if row.type == "device.online":
        return row.seq > FIRST_EVENTS and b'"continuous":true' not in row.data
    return row.type in ("device.faulted", "events.missed")


def judge_pools(
    config: Config,
    verdicts: Iterable[Row],
    books: Iterable[Row],
    laid: Mapping[str, Laid],
    sent: Mapping[str, Sent],
    events: Sequence[Row],
    *,
    calm: bool,
    strangers: bool = False,
) -> tuple[PoolAccount, list[str]]:
    """Compare the books of all pools with the oracle: the account, and each difference in words.

    `verdicts` are the rows of one consumer, `books` those of the jackpots process, `laid` the dealers' bets by round,
    `sent` the orders of the supervisors, `events` the rows of the edge. `calm`: no fault occurred, so the rules must
    have every bet. `strangers`: other people besides the supervisors may give orders, which are taken from the books.
    """
    account, wrong = PoolAccount(), list[str]()
    ends = {
        id_and_journal(row.cause)[0]: _Verdict(row.place, decode_end(row.data), row.time)
        for row in verdicts
        if row.type in ENDS
    }
    rows = list(books)
    journal = _read_events(config.edge.name, events)
    if calm and journal.closed:
        wrong.append(f"the betting was closed though nothing was lost: {list(journal.closed)[:3]}")
    if strangers:
        sent = {**_orders_in(rows), **sent}
    for pool in config.jackpot:
        mine = [row for row in rows if row.place == pool.name]
        wrong += [
            f"{pool.name}: {one}" for one in _judge(config, pool, ends, mine, laid, sent, journal, account, calm=calm)
        ]
    return account, wrong


def _judge(
    config: Config,
    pool: Jackpot,
    ends: Mapping[str, _Verdict],
    rows: Sequence[Row],
    laid: Mapping[str, Laid],
    sent: Mapping[str, Sent],
    journal: _Journal,
    account: PoolAccount,
    *,
    calm: bool,
) -> list[str]:
    wrong: list[str] = []
    oracle = _Oracle(pool, {table.name: table.ruleset for table in config.table}, journal.keys)
    expected = {cause: one for cause, one in ends.items() if one.table in pool.tables}
    causes = [
        cause for place, cause in enumerate(row.cause for row in rows) if place == 0 or cause != rows[place - 1].cause
    ]
    twice = [cause for cause, count in Counter(causes).items() if count > 1]
    if twice:
        wrong.append(f"used twice: {twice[:3]}")
    loose: dict[str, frozenset[int]] = {}
    standing: dict[str, list[int]] = {}
    counted: set[str] = set()
    paid = _paid_by_keys(rows)
    order = [cause for cause in dict.fromkeys(causes) if cause]
    for cause in _in_turn(order, {cause: one.table for cause, one in expected.items()}):
        if (verdict := expected.get(cause)) is not None:
            if cause in order:
                counted.add(verdict.table)
            elif verdict.table not in counted and verdict.time < rows[0].time:
                continue  # a clock was set back: the pool does not count a verdict that is older than itself
            seats, hands, said = _of_dealer(verdict, laid, loose, journal, account, calm=calm)
            wrong += said
            oracle.ended.setdefault(verdict.result.round, (verdict.table, _number(cause)))
            known = verdict.result.round in oracle.rounds
            if cause in order or known:  # a correction that moves no money leaves no entry
                _count_change(account, oracle, verdict.result)
                oracle.end(verdict.table, verdict.result, seats, hands, _number(cause))
                oracle.take_back_keys()
            elif seats or verdict.result.jackpots:
                wrong.append(f"round {verdict.result.round} is not in the books")
            standing[verdict.result.round] = list(seats) if verdict.result.void is None else []
        elif cause in sent and sent[cause].pool == pool.name:
            try:
                oracle.obey(cause, sent[cause])
            except _NotComparedError:
                return wrong
            _count_order(account, sent[cause].order)
        elif cause not in journal.keys:
            wrong.append(f"entries follow from {cause!r}, which is no published result and no sent order")
        wrong += [why for name, key in paid.get(cause, ()) if (why := oracle.pay_by_key(name, key))]
    wrong += [f"{name} waits, and was paid at the table" for name in oracle.unpaid()]
    wrong += _lost_orders(pool, sent, order)
    _compare(oracle, rows, standing, account, wrong)
    return wrong


def _lost_orders(pool: Jackpot, sent: Mapping[str, Sent], used: Sequence[str]) -> list[str]:
    return [
        f"order {id_} was answered, and is not in the books"
        for id_, one in sent.items()
        if one.pool == pool.name and one.status == "done" and id_ not in used
    ]


def _count_change(account: PoolAccount, oracle: _Oracle, result: Result) -> None:
    if any(one.round == result.round for one in oracle.wins.values()):
        account.voided += result.void is not None
        account.corrected += result.void is None


def _count_order(account: PoolAccount, order: Order) -> None:
    account.changes += isinstance(order, Approve)
    if isinstance(order, ConfirmMany | PayMany) and len(order.wins) > 1:
        account.batched += len(order.wins)


def _number(verdict: str) -> int:
    """The number of the event that a verdict follows from."""
    return int(verdict.partition("/")[0].rpartition(":")[2])


def _paid_by_keys(rows: Iterable[Row]) -> dict[str, list[tuple[str, str]]]:
    """The wins that were paid at the table by the books, each with its key, by cause of the entries."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        if row.type == "paid" and (win := msgspec.json.decode(row.data, type=BookEntry).win) and win.paid_event:
            found.setdefault(row.cause, []).append((win.id, win.paid_event))
    return found


def _in_turn(order: Sequence[str], tables: Mapping[str, str]) -> Iterator[str]:
    """The causes in the order of the books. A round without an entry comes before the next one of its table: if it was
    void, its bets may be carried over to that.

    `tables`: of each round's end, in the order in which the rules published them.
    """
    ordered = frozenset(order)
    waiting: defaultdict[str, deque[str]] = defaultdict(deque)
    for cause, table in tables.items():
        waiting[table].append(cause)
    for cause in order:
        mine = waiting[tables.get(cause, "")]
        if cause in mine:
            while (first := mine.popleft()) != cause:
                if first not in ordered:
                    yield first
        yield cause
    for mine in waiting.values():
        yield from (cause for cause in mine if cause not in ordered)


def _joined(before: Sent | None, sent: Sent) -> Sent:
    """Join the entries of one order for many wins."""
    match before.order if before is not None else None, sent.order:
        case Confirm(win=one) | ConfirmMany(wins=(*_, one)) as first, Confirm(person=person, win=other):
            wins = first.wins if isinstance(first, ConfirmMany) else (one,)
            return Sent(sent.pool, ConfirmMany(person, (*wins, other)))
        case Pay(win=one) | PayMany(wins=(*_, one)) as first, Pay(person=person, win=other):
            wins = first.wins if isinstance(first, PayMany) else (one,)
            return Sent(sent.pool, PayMany(person, (*wins, other)))
        case _:
            return before or sent


def _orders_in(rows: Iterable[Row]) -> dict[str, Sent]:
    """The orders of people, as the entries show them."""
    found: dict[str, Sent] = {}
    for row in rows:
        entry = msgspec.json.decode(row.data, type=BookEntry)
        order: Order | None = None
        match row.type, entry:
            case "confirmed", BookEntry(win=PoolWin() as win):
                order = Confirm(entry.people[0], win.id, tuple(seat for seat, _ in win.shares))
            case "paid", BookEntry(win=PoolWin() as win) if not win.paid_event:
                order = Pay(entry.people[-1], win.id)
            case "proposed", BookEntry(change=change) if change is not None:
                order = Propose(entry.people[0], change)
            case "withdrawn", _:
                order = Withdraw(entry.people[0], entry.text)
            case _, BookEntry(change=change, people=(_, second)):
                which = next(
                    (
                        id_
                        for id_, one in found.items()
                        if isinstance(one.order, Propose) and one.order.change == change
                    ),
                    "",
                )
                order = Approve(second, which)
            case _:
                pass
        if order is not None:
            found[row.cause] = _joined(found.get(row.cause), Sent(row.place, order))
    return found


def _of_dealer(
    verdict: _Verdict,
    laid: Mapping[str, Laid],
    loose: dict[str, frozenset[int]],
    journal: _Journal,
    account: PoolAccount,
    *,
    calm: bool,
) -> tuple[Sequence[int], Mapping[int, str] | None, list[str]]:
    """The seats that bet on the jackpot, the hands that won it (None: those of the rules), and the errors found.

    `loose`: by table the bets of void rounds, which stay where they are until a round counts.
    """
    result, table = verdict.result, verdict.table
    mine = laid.get(result.round, Laid(frozenset(), {}))
    settled = [one.seat for one in result.settlements if one.bet == "jackpot" and not one.returned]
    before = loose.get(table, frozenset())
    refused = frozenset(
        journal.closed[one.event]
        for one in result.irregularities
        if one.code == "jackpot_closed" and one.event in journal.closed
    )
    account.unsettled += len(mine.seats & refused - set(settled))
    if result.void is not None:
        loose[table] = before | (mine.seats - refused) if result.void.jackpot_bets == "carried" else frozenset()
        return (), {}, []
    loose[table] = frozenset()
    wrong = []
    doubted = table in journal.doubted
    must, may = mine.seats - refused, mine.seats | before
    if must and not result.settlements and not calm:  # the amounts were uncertain in the rules
        account.unsettled += len(must)
        return (), None, []
    if doubted and (set(settled) - may or must - set(settled)):
        account.unsettled += len(must - set(settled))
        return settled, None, []
    if extra := set(settled) - may:
        wrong.append(f"round {result.round}: the seats {sorted(extra)} had no chip on the jackpot")
        account.bets_doubled += len(extra)
    if missing := must - set(settled):
        wrong.append(f"round {result.round}: the chips of the seats {sorted(missing)} are not settled")
        account.bets_lost += len(missing)
    seats = tuple(sorted(must | (may & set(settled))))
    told = [{seat: name for seat, name in one.items() if seat in seats} for one in (mine.hands, *mine.misread)]
    awards = {seat: one.combination for one in result.jackpots for seat in one.among}
    hands = awards if awards in told else told[0]  # the last result must be right: the account of the rounds checks it
    named = set(awards)
    if any(not one.among for one in result.jackpots):  # a person names bettors that the rules do not have
        return settled, None, wrong
    if doubted and named != set(hands):
        return settled, None, wrong
    return seats, hands, wrong


def _compare(
    oracle: _Oracle,
    rows: Sequence[Row],
    standing: Mapping[str, Sequence[int]],
    account: PoolAccount,
    wrong: list[str],
) -> None:
    """Compare every account, bet and win of the books with the oracle's."""
    bets: Counter[tuple[str, int]] = Counter()
    wins: Counter[tuple[str, str]] = Counter()
    last: dict[str, Any] = {"after": {}, "unit": 1}
    for row in rows:
        last = msgspec.json.decode(row.data)
        match row.type:
            case "contributed":
                bets[last["round"], last["seat"]] += 1
            case "returned":
                bets[last["round"], last["seat"]] -= 1
            case "won":
                wins[last["win"]["round"], last["win"]["award"]["combination"]] += 1
            case "reversed":
                wins[last["win"]["round"], last["win"]["award"]["combination"]] -= 1
                account.reversed += 1
            case "paid":
                account.paid += 1
                account.at_table += bool(last["win"].get("paid_event"))
            case "contested":
                account.contested += 1
            case _:
                pass
    should_bets = Counter((round_, seat) for round_, seats in standing.items() for seat in seats)
    should_win = Counter((one.round, one.combination) for one in oracle.wins.values() if one.state != "reversed")
    account.bets += should_bets.total()
    account.coins += should_bets.total() * CHIP
    account.wins += should_win.total()
    account.bets_lost += (should_bets - bets).total()
    account.bets_doubled += (bets - should_bets).total()
    account.wins_lost += (should_win - wins).total()
    account.wins_doubled += (wins - should_win).total()
    wrong += [
        f"bet {one}: {bets[one]} times in the books" for one in sorted((should_bets - bets) | (bets - should_bets))
    ]
    wrong += [f"win {one}: {wins[one]} times in the books" for one in sorted((should_win - wins) | (wins - should_win))]
    there = {name: Fraction(int(value), last["unit"]) for name, value in last["after"].items()}
    for name in sorted(there.keys() | oracle.money.keys()):
        has, should = there.get(name, Fraction(0)), oracle.of(name)
        if has != should:
            wrong.append(f"{name} holds {has} and should hold {should}")
            if name not in ("players", "house"):
                account.coins_lost += max(-((has - should) // 1), 0)
                account.coins_made += max(-((should - has) // 1), 0)
