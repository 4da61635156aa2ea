"""Money is conserved: bets, wins, voids, corrections, orders, late and double deliveries and crashes in any order.

Linked tables with a writer each, a machine, a second journal of the rules, kills at any line of a commit.

A naive model keeps the same pool in fractions of minor units, written from the documented rules without the ledger.
"""

import copy
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from helpers import at_length
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import Struct

from daemon.broker.gap_recovery import Stream
from daemon.jackpots import books as books_module
from daemon.jackpots.book import Book, Ended, Refused, Seen
from daemon.jackpots.books import Books, check
from daemon.jackpots.ledger import contribute, end_round, open_round, report_win, unbalanced
from daemon.jackpots.orders import obey
from daemon.journal import store as journal_module
from daemon.journal.store import Journal
from protocols.contract.events import MOST
from protocols.contract.jackpots import (
    Adjust,
    Approve,
    Confirm,
    Pay,
    PoolTerms,
    PoolWin,
    Price,
    Prize,
    Propose,
    Reject,
    Reset,
    SetTerms,
    Withdraw,
)
from protocols.contract.results import Award

SOURCES = {journal_module.__file__, books_module.__file__}
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
RULES, SENSORS, LINKED, MACHINE = "t-r", "t-s", "t-q", "m-1"
"""A table whose bets the rules tell, one whose bets sensors tell, one with another writer, and a machine."""
STREAMS = {RULES: "rules", SENSORS: "rules", LINKED: "rules-q", MACHINE: "machine"}
IN_POOL = ("visible", "hidden", "overflow")
PRIZES = {"flush": Prize(70), "straight": Prize(40), "royal": Prize(90), "level_1": Prize(pays="pool")}
TERMS = (
    PoolTerms(seed=300, visible="3/200", hidden="1/200", prizes=PRIZES, simultaneous_s=0),
    PoolTerms(seed=0, visible="1/3", hidden="1/7", limit=500, odd="first", prizes=PRIZES, simultaneous_s=0),
    PoolTerms(seed=200, visible="0.9", limit=260, reseed="below_seed", prizes=PRIZES, simultaneous_s=0),
    PoolTerms(seed=100, visible="0", hidden="1", prizes=PRIZES, simultaneous_s=0),
)
AWARDS = (
    Award("p", "flush", "fixed", "law", "", (1, 2, 3)),
    Award("p", "straight", "larger_of_fixed_and_share", "law", "1/10", (4,)),
    Award("p", "royal", "larger_of_fixed_and_share", "law", "1", (2, 5), "straight"),
    Award("p", "six", "pool", "law", "", (1, 2, 3, 4)),
    Award("p", "six", "pool", "law", "", ()),
    Award("p", "unpriced", "fixed", "law", "", (1, 2, 3)),
    Award("p", "unpriced", "larger_of_fixed_and_share", "law", "1/4", (1,)),
    Award("blackjack", "flush", "fixed", "law", "", ()),
)


class Item(Struct, frozen=True):
    """One message of a stream."""

    seq: int
    table: str
    at: datetime
    bet: tuple[int, int] | None = None
    opened: str = ""
    ended: Ended | None = None
    report: tuple[int, int, int] | None = None


class Model:
    """The pool by its documented rules, in fractions of minor units."""

    def __init__(self, terms: PoolTerms) -> None:
        self.terms = terms
        self.money: dict[str, Fraction] = {}
        self.wins: dict[str, dict[str, Any]] = {}
        self.rounds: dict[str, dict[str, Any]] = {}
        self.waiting: list[dict[str, Any]] = []
        self.credit: list[dict[str, Any]] = []
        self.told: set[tuple[str, int]] = set()
        """What another journal told first."""
        self.since: dict[str, Fraction] = {}
        """What the pool got or gave after the round that is corrected."""
        self.gone: dict[str, Fraction] = {}
        """By account, what began the pool again after that round and was won since: it counts as gone back."""
        self.move("house", "visible", Fraction(terms.seed))

    def of(self, account: str) -> Fraction:
        return self.money.get(account, Fraction(0))

    def held(self, account: str) -> Fraction:
        return self.of(account) - self.since.get(account, 0)

    def shown(self) -> int:
        return int(max(self.held("visible"), Fraction(0)) // 1)

    def free(self, account: str) -> Fraction:
        return max(min(self.held(account), self.of(account) + self.gone.get(account, 0)), Fraction(0))

    def move(self, giver: str, taker: str, amount: Fraction) -> None:
        self.money[giver] = self.of(giver) - amount
        self.money[taker] = self.of(taker) + amount

    def bet(self, seat: int, amount: int, seq: int = 0) -> dict[str, Any]:
        visible, hidden = amount * Fraction(self.terms.visible), amount * Fraction(self.terms.hidden)
        room = max(self.terms.limit - self.held("visible"), Fraction(0)) if self.terms.limit else visible
        parts = {"visible": min(visible, room), "overflow": max(visible - room, Fraction(0)), "hidden": hidden}
        parts["margin"] = amount - visible - hidden
        for name, part in parts.items():
            self.move("players", name, part)
        return {"seat": seat, "amount": amount, "parts": parts, "seq": seq}

    def clip(self, limit: Fraction) -> None:
        if self.terms.limit and self.of("visible") > limit:
            self.move("visible", "overflow", self.of("visible") - limit)

    def give_back(self, bet: dict[str, Any]) -> None:
        owed = Fraction(0)
        for name, part in bet["parts"].items():
            held = min(part, max(self.held(name), Fraction(0)))
            there = min(held, self.of(name))
            self.move(name, "players", there)
            self.move("house", "players", held - there)  # later wins took it
            self.since[name] = self.since.get(name, Fraction(0)) + held - there
            owed += part - held
        there = min(owed, self.free("visible"))
        self.move("visible", "players", there)
        self.move("house", "players", owed - there)

    def by_sensor(self, seat: int, amount: int, seq: int) -> None:
        bet = self.carried(seat, amount)
        self.waiting.append(self.bet(seat, amount, seq) if bet is None else {**bet, "seq": seq})

    def end(self, ended: Ended) -> None:
        record = self.rounds.get(ended.round)
        if record is None and ended.corrects:
            return
        known = record or {"bets": [], "fate": "taken", "base": None, "fresh": {}, "count": 0, "settled": False}
        self.rounds[ended.round] = known
        before = dict(self.money)
        if record is not None:
            self.go_back(known)
        mine = {name: one for name, one in self.wins.items() if one["round"] == ended.round and not one["undone"]}
        if record is not None and mine:
            self.correct(ended, known, mine)
        else:
            self.undo_reset(known)
            self.bets(ended, known)
            if ended.awards:
                known["base"] = self.shown()
                self.won(ended.round, known, self.amounts(known["base"], ended.awards))
        known["named"] = ended.awards
        self.start_again(known, whole=False)
        if record is not None:
            self.come_back(known, before)
        self.clip(Fraction(self.terms.limit))
        if record is None:
            self.note(known)

    def correct(self, ended: Ended, known: dict[str, Any], mine: dict[str, dict[str, Any]]) -> None:
        base = known["base"]
        if not known["settled"] and not any(one["confirmed"] for one in mine.values()):
            trial = copy.deepcopy(self)
            for name in mine:
                trial.undo(name)
            trial.undo_reset(trial.rounds[ended.round])
            trial.bets(ended, trial.rounds[ended.round])
            base = trial.shown()
        before, news = self.amounts(known["base"], known["named"]), self.amounts(base, ended.awards)
        kept = []
        for name, win in mine.items():
            was = next((one for one in before if one[0] == win["award"]), (win["award"], win["amount"]))
            if was in before:
                before.remove(was)
            if was in news:
                news.remove(was)
                kept.append(name)
            elif not win["paid"]:
                self.undo(name)
        if ended.stakes is None:
            same = known["fate"] == ended.bets
        else:
            same = sorted(ended.stakes) == sorted((one["seat"], one["amount"]) for one in known["bets"])
        same = same and not news and len(kept) == len(mine)
        if not same:
            for name in kept:
                self.move("house", "visible", mine[name]["amount"] - mine[name]["house"])
                mine[name]["house"] = mine[name]["amount"]
            if not any(one["paid"] and takes_all(one["award"]) for name, one in mine.items() if name not in kept):
                self.undo_reset(known)
            self.bets(ended, known)
        known["base"] = base
        for name in kept if not same else ():
            there = self.take(mine[name]["house"])
            self.move("visible", "house", there)
            mine[name]["house"] -= there
        self.won(ended.round, known, news, again=not same, kept=[mine[name]["award"] for name in kept])

    def go_back(self, known: dict[str, Any]) -> None:
        self.since = {name: self.of(name) - known["after"][name] for name in IN_POOL}

    def count_gone(self, account: str, amount: Fraction) -> None:
        """Below 0: it is given again."""
        self.gone[account] = self.gone.get(account, 0) + amount
        self.since["visible"] = self.since.get("visible", 0) + amount
        self.since[account] = self.since.get(account, 0) - amount

    def come_back(self, known: dict[str, Any], before: dict[str, Fraction]) -> None:
        for name, amount in self.gone.items():
            self.count_gone(name, -amount)
        change = {name: self.of(name) - before.get(name, 0) for name in IN_POOL}
        was = before.get("overflow", Fraction(0)) - self.since["overflow"]
        self.note(known)
        self.move("overflow", "visible", self.spilled(before, change, was))
        self.since = {}
        for one in self.rounds.values():
            if one["place"] > known["place"]:
                self.limit_again(one, change, was)

    def spilled(self, held: dict[str, Fraction], change: dict[str, Fraction], was: Fraction) -> Fraction:
        """What comes back from the overflow, of which `was` was there before; below 0: what goes there."""
        visible = held.get("visible", Fraction(0)) + change["visible"]
        overflow = held.get("overflow", Fraction(0)) + change["overflow"]
        room = Fraction(self.terms.limit or MOST) - visible
        since = held.get("overflow", Fraction(0)) - was
        return room if room < 0 else max(Fraction(0), min(room, -change["visible"], since, overflow))

    def limit_again(self, later: dict[str, Any], change: dict[str, Fraction], was: Fraction) -> None:
        """A round behind one that was corrected: the bets that were laid last are above the limit."""
        after = later["after"]
        back = self.spilled(after, change, was)
        others = max(after["overflow"] - was - sum(one["parts"]["overflow"] for one in later["bets"]), Fraction(0))
        for name in IN_POOL:
            after[name] += change[name]
        after["visible"] += back
        after["overflow"] -= back
        later["bets"] = [{**one, "parts": dict(one["parts"])} for one in later["bets"]]
        giver, taker = ("overflow", "visible") if back > 0 else ("visible", "overflow")
        left = max(back - others, Fraction(0)) if back > 0 else -back
        for one in later["bets"] if back > 0 else reversed(later["bets"]):
            part = min(left, one["parts"][giver])
            left -= part
            one["parts"][giver] -= part
            one["parts"][taker] += part

    def note(self, known: dict[str, Any]) -> None:
        """Later rounds have a higher place."""
        known.setdefault("place", 1 + max((one.get("place", 0) for one in self.rounds.values()), default=0))
        known["after"] = {name: self.held(name) for name in IN_POOL}

    def shift(self, rounds: list[dict[str, Any]], before: dict[str, Fraction]) -> None:
        for one in rounds:
            for name in IN_POOL:
                one["after"][name] += self.of(name) - before.get(name, 0)

    def people_changed(self, round_: str, before: dict[str, Fraction]) -> None:
        place = self.rounds[round_]["place"]
        self.shift([one for one in self.rounds.values() if one["place"] >= place], before)

    def decide_again(self, name: str, amount: int | None, kept: bool) -> None:
        """Two people rejected a win, or gave it another amount. `kept`: the books still have its round."""
        win = self.wins[name]
        known = self.rounds[win["round"]]
        known["settled"] = True
        before = dict(self.money)
        if kept:
            self.go_back(known)
        self.undo(name)
        if kept:
            self.undo_reset(known)
        if amount is not None:
            there = self.take(amount)
            self.move("visible", f"pending:{name}", there)
            self.move("house", f"pending:{name}", amount - there)
            win.update(amount=amount, house=amount - there, undone=False)
        if kept or amount is not None:
            standing = [
                one["award"]
                for one in self.wins.values()
                if one["round"] == win["round"] and not one["undone"] and not one.get("contested")
            ]
            self.start_again(known, any(map(takes_all, standing)))
        if kept:
            self.come_back(known, before)
        self.clip(Fraction(self.terms.limit))

    def report(self, round_: str, level: int, seat: int, amount: int) -> None:
        """A device tells a win: the whole pool, or an amount."""
        seats = (seat,) if seat else ()
        kind: Any = "pool" if level == 1 else "fixed"
        award = Award("p", f"level_{level}", kind, "", "", seats)
        known: dict[str, Any] = {"bets": [], "fate": "taken", "base": None, "fresh": {}, "count": 0, "settled": False}
        self.rounds[round_] = known
        self.won(round_, known, [(award, int(self.of("visible") // 1) if level == 1 else amount)])
        self.note(known)

    def take(self, wanted: int) -> Fraction:
        """Whole units that the pool gives for a prize; what others won since it cannot give twice."""
        due = Fraction(min(wanted, self.shown()))
        there = min(due, Fraction(self.free("visible") // 1))
        self.since["visible"] = self.since.get("visible", Fraction(0)) + due - there
        return there

    def won(
        self,
        round_: str,
        known: dict[str, Any],
        news: list[tuple[Award, int]],
        *,
        again: bool = True,
        kept: Sequence[Award] = (),
    ) -> None:
        """New wins, of which each takes what the pool has, beside those that are `kept`."""
        for award, amount in news:
            known["count"] += 1
            name = f"{round_}/{known['count']}"
            there = self.take(amount)
            self.move("visible", f"pending:{name}", there)
            self.move("house", f"pending:{name}", amount - there)
            self.wins[name] = {
                "round": round_,
                "award": award,
                "amount": amount,
                "house": amount - there,
                **dict.fromkeys(("paid", "undone", "confirmed"), False),
            }
        if again:
            self.start_again(known, any(map(takes_all, (*kept, *(award for award, _ in news)))))

    def bets(self, ended: Ended, known: dict[str, Any]) -> None:
        if ended.stakes is not None:
            wanted = list(ended.stakes)
            kept = []
            for bet in known["bets"]:
                if (bet["seat"], bet["amount"]) in wanted:
                    wanted.remove((bet["seat"], bet["amount"]))
                    kept.append(bet)
                else:
                    self.give_back(bet)
            known["bets"] = kept + [self.bet(seat, amount) for seat, amount in wanted]
            return
        if ended.corrects and known["fate"] == ended.bets:
            return
        if ended.corrects:
            mine = []
            for bet in known["bets"]:
                waits = self.carried(bet["seat"], bet["amount"]) if known["fate"] == "carried" else None
                if known["fate"] == "taken":
                    mine.append(bet)
                elif waits is None:
                    mine.append(self.bet(bet["seat"], bet["amount"], bet["seq"]))
                else:
                    mine.append(waits)
        else:
            mine = self.credit + [bet for bet in self.waiting if bet["seq"] <= ended.until]
            self.waiting = [bet for bet in self.waiting if bet["seq"] > ended.until]
            self.credit = []
        known["bets"], known["fate"] = mine, ended.bets
        if ended.bets == "returned":
            for bet in mine:
                self.give_back(bet)
        if ended.bets == "carried":
            self.credit += mine
        for bet in list(self.waiting):
            waits = self.carried(bet["seat"], bet["amount"])
            if waits is not None:
                self.waiting.remove(bet)
                self.waiting.append({**waits, "seq": bet["seq"]})
                self.give_back(bet)

    def carried(self, seat: int, amount: int) -> dict[str, Any] | None:
        """Take such a bet out of those that a void round carried."""
        for bet in self.credit:
            if (bet["seat"], bet["amount"]) == (seat, amount):
                self.credit.remove(bet)
                return bet
        return None

    def amounts(self, base: int, awards: tuple[Award, ...]) -> list[tuple[Award, int]]:
        found: list[tuple[Award, int]] = []
        for award in awards:
            before = sum(amount for other, amount in found if award.after and other.combination == award.after)
            share = Fraction(award.share or 0) * max(base - before, 0) // 1
            fixed = PRIZES[award.combination].fixed if award.combination in PRIZES else 0
            rest = base
            for _, amount in found:
                rest = max(rest - amount, 0)
            amount = {"pool": rest, "fixed": fixed}.get(award.pays, max(share, fixed))
            if award.among and self.terms.odd == "pool":
                amount -= amount % len(award.among)
            found.append((award, amount))
        return found

    def undo(self, name: str) -> None:
        win = self.wins[name]
        win["undone"] = True
        house = min(win["house"], self.of(f"pending:{name}"))
        rest: Fraction = self.of(f"pending:{name}") - house
        self.move(f"pending:{name}", "house", house)
        self.move(f"pending:{name}", "visible", rest)

    def undo_reset(self, known: dict[str, Any]) -> None:
        """Who began the pool again takes exactly that back, as far as it is there: the house first."""
        room = self.free("visible")
        for giver in ("house", "hidden", "overflow"):
            amount = min(known["fresh"].get(giver, Fraction(0)), room)
            self.move("visible", giver, amount)
            known["fresh"][giver] = known["fresh"].get(giver, 0) - amount
            room -= amount
            self.count_gone(giver, known["fresh"][giver])

    def start_again(self, known: dict[str, Any], whole: bool) -> None:
        shown = self.held("visible")
        empty = shown < 1 or (self.terms.reseed == "below_seed" and shown < self.terms.seed)
        if not (whole or empty):
            return
        for name in ("overflow", "hidden", "house"):
            if name == "house":
                amount = max(self.terms.seed - self.held("visible"), Fraction(0))
            else:
                room = self.terms.limit - self.held("visible") if self.terms.limit else self.free(name)
                amount = min(self.free(name), max(Fraction(room), Fraction(0)))
            again = min(amount, self.gone.get(name, Fraction(0)))
            self.count_gone(name, -again)
            self.move(name, "visible", amount - again)
            known["fresh"][name] = known["fresh"].get(name, 0) + amount - again


def takes_all(award: Award) -> bool:
    return award.pays == "pool" or award.share == "1"


class Pool(RuleBasedStateMachine):
    """The books on disk beside the model, fed through the streams that the process uses."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.started = False

    @rule(terms=st.sampled_from(TERMS))
    @precondition(lambda self: not self.started)
    def start(self, terms: PoolTerms) -> None:
        self.started = True
        self.terms = terms
        self.sent: dict[str, list[Item]] = {name: [] for name in ("edge", *dict.fromkeys(STREAMS.values()))}
        self.model = Model(terms)
        self.clock = self.number = self.ordered = 0
        self.standbys = 0
        self.rounds = {RULES: 1, SENSORS: 1, LINKED: 1}
        self.open_books()
        self.commit()

    def open_books(self) -> None:
        self.journal = Journal(self.folder / "books.db")
        self.books = Books(self.journal, {"p": self.terms}, NOON)
        heard = self.books["p"].heard
        self.streams: dict[str, Stream[Item]] = {name: Stream(heard.get(name, 0) + 1) for name in self.sent}

    @property
    def book(self) -> Book:
        return self.books["p"]

    # ---- messages

    def send(self, stream: str, **what: Any) -> None:
        self.clock += 1
        items = self.sent[stream]
        items.append(Item(len(items) + 1, at=NOON + timedelta(seconds=self.clock), **what))

    @precondition(lambda self: self.started)
    @rule(seat=st.integers(1, 3), amount=st.sampled_from([1, 7, 100, 100, 999]))
    def bet_on_a_sensor(self, seat: int, amount: int) -> None:
        self.send("edge", table=SENSORS, bet=(seat, amount))

    @precondition(lambda self: self.started)
    @rule(level=st.integers(1, 2), seat=st.integers(0, 2), amount=st.sampled_from([1, 50, 400]))
    def machine_reports_a_win(self, level: int, seat: int, amount: int) -> None:
        self.send(STREAMS[MACHINE], table=MACHINE, report=(level, seat, amount))

    @precondition(lambda self: self.started)
    @rule(table=st.sampled_from([RULES, SENSORS, LINKED]))
    def round_opens(self, table: str) -> None:
        self.send(STREAMS[table], table=table, opened=f"{table}:{self.rounds[table]}")

    @precondition(lambda self: self.started)
    @rule(
        table=st.sampled_from([RULES, SENSORS, LINKED]),
        awards=st.lists(st.sampled_from(AWARDS), max_size=3),
        bets=st.sampled_from(["taken", "taken", "returned", "carried"]),
        stakes=st.lists(st.tuples(st.integers(1, 3), st.sampled_from([1, 10, 333])), max_size=3),
        correct=st.booleans(),
        behind=st.integers(0, 2),
    )
    def round_ends(
        self,
        table: str,
        awards: list[Award],
        bets: Any,
        stakes: list[tuple[int, int]],
        correct: bool,
        behind: int,
    ) -> None:
        last = self.rounds[table] - 1
        correct = correct and last > 0
        round_ = f"{table}:{last if correct else self.rounds[table]}"
        self.rounds[table] += not correct
        void = bets != "taken"
        ended = Ended(
            round_,
            table,
            () if void else tuple(awards),
            bets,
            None if table == SENSORS else () if void else tuple(stakes),
            max(len(self.sent["edge"]) - behind, 0),
            round_ if correct else "",
        )
        self.send(STREAMS[table], table=table, ended=ended)

    @precondition(lambda self: self.started)
    @rule(data=st.data(), stream=st.sampled_from(["edge", *STREAMS.values()]), count=st.integers(1, 4))
    def deliver(self, data: st.DataObject, stream: str, count: int) -> None:
        """Any of what was sent, in any order, again and again."""
        for _ in range(count):
            if self.sent[stream]:
                self.receive(stream, data.draw(st.sampled_from(self.sent[stream])))

    @precondition(lambda self: self.started)
    @rule()
    def replay_gaps(self) -> None:
        for stream, items in self.sent.items():
            for item in items[self.streams[stream].expected - 1 :]:
                self.receive(stream, item)

    def receive(self, stream: str, item: Item) -> None:
        for ready in self.streams[stream].take(item):
            self.use(stream, ready)
        used = self.book
        self.use(stream, item, known=True)
        assert self.book is used or item.seq > used.heard.get(stream, 0)

    def use(self, stream: str, item: Item, *, known: bool = False) -> None:
        """`known`: the ledger itself must refuse it a second time."""
        if known and item.seq > self.book.heard.get(stream, 0):
            return
        seen = Seen(stream, item.seq, f"{stream}:{item.seq}", item.at)
        known = known or (stream, item.seq) in self.model.told
        if item.bet is not None:
            step = contribute(self.book, seen, item.table, *item.bet)
            if not known:
                self.model.by_sensor(*item.bet, item.seq)
        elif item.report is not None:
            level, seat, amount = item.report
            step = report_win(self.book, seen, item.table, level, seat, amount)
            if not known:
                self.model.report(seen.id, level, seat, amount)
        elif item.ended is not None:
            step = end_round(self.book, seen, item.ended)
            if not known:
                self.model.end(item.ended)
        else:
            step = open_round(self.book, seen, item.table, item.opened)
        assert not (known and step[1])
        self.books.apply(step, seen.id, item.at)

    @precondition(lambda self: self.started)
    @rule(stream=st.sampled_from(["rules", "rules-q"]), takes_over=st.booleans())
    def another_journal_tells_the_verdicts(self, stream: str, takes_over: bool) -> None:
        """A standby: what was used gives nothing again; what it tells first the other gives nothing for."""
        self.standbys += 1
        at = self.streams[stream].expected - 1
        for item in self.sent[stream][: None if takes_over else at]:
            seen = Seen(f"{stream}/{self.standbys}", item.seq, f"{stream}:{item.seq}", item.at)
            before = self.book
            if item.ended is None:
                step = open_round(before, seen, item.table, item.opened)
            else:
                step = end_round(before, seen, item.ended)
            if item.seq <= at or (stream, item.seq) in self.model.told:
                assert step[1] == ()
            else:
                self.model.told.add((stream, item.seq))
                if item.ended is not None:
                    self.model.end(item.ended)
            self.books.apply(step, seen.id, item.at)

    # ---- people

    def order(self, order: Any, name: str = "") -> bool:
        self.ordered += 1
        try:
            self.books.apply(obey(self.book, order, name or f"o-{self.ordered}", NOON), "o", NOON)
        except Refused:
            return False
        return True

    @precondition(lambda self: self.started and self.book.wins)
    @rule(data=st.data(), pay=st.booleans(), person=st.sampled_from(["ana", "rui"]))
    def confirm_or_pay(self, data: st.DataObject, pay: bool, person: str) -> None:
        self.confirm(data.draw(st.sampled_from(self.book.wins)), person, pay=pay)

    def confirm(self, win: PoolWin, person: str, *, pay: bool = False) -> None:
        seats = () if win.award.among else (3, 4, 5)
        if not self.order(Pay(person, win.id) if pay else Confirm(person, win.id, seats)):
            return
        known = self.model.wins[win.id]
        assert not known["undone"]
        if pay:
            assert known["confirmed"] not in (False, person)
            known["paid"] = True
            self.model.move(f"pending:{win.id}", "paid", self.model.of(f"pending:{win.id}"))
            return
        known["confirmed"] = person
        before = dict(self.model.money)
        if seats and win.award.each:
            more = known["amount"] * 2
            there = Fraction(min(more, self.model.of("visible") // 1))
            self.model.move("visible", f"pending:{win.id}", there)
            self.model.move("house", f"pending:{win.id}", more - there)
            known["amount"] += more
            known["house"] += more - there
            if more:
                self.model.start_again(self.model.rounds[win.round], whole=False)
            self.model.clip(Fraction(self.model.terms.limit))
        elif seats and self.terms.odd == "pool":
            odd = known["amount"] % 3
            known["amount"] -= odd
            self.model.move(f"pending:{win.id}", "visible", Fraction(odd))
            self.model.clip(Fraction(self.model.terms.limit))
        self.model.people_changed(win.round, before)

    @precondition(lambda self: self.started)
    @rule(account=st.sampled_from(["visible", "hidden", "overflow"]), amount=st.integers(-200, 200))
    def adjust(self, account: Any, amount: int) -> None:
        self.ordered += 1
        name = f"p-{self.ordered}"
        if not self.order(Propose("ana", Adjust(account, amount, "x")), name):
            limit = self.model.terms.limit
            above = account == "visible" and limit and self.model.of(account) + amount > limit
            assert above or self.model.of(account) + amount < 0 or len(self.book.proposals) >= 20
            return
        assert not self.order(Approve("ana", name))
        if self.order(Approve("rui", name)):
            self.model.move("house", account, Fraction(amount))

    @precondition(lambda self: self.started)
    @rule(visible=st.sampled_from(["1/3", "0.5", "1/11", "0"]), limit=st.sampled_from([0, 300, 400]))
    def other_terms(self, visible: str, limit: int) -> None:
        terms = self.model.terms
        new = PoolTerms(min(terms.seed, 250), visible, "1/13", limit, terms.reseed, terms.odd, PRIZES, 0)
        self.ordered += 1
        name = f"p-{self.ordered}"
        if self.order(Propose("ana", SetTerms(new, "x")), name) and self.order(Approve("rui", name)):
            self.model.terms = new
            self.model.clip(Fraction(limit))

    @precondition(lambda self: self.started)
    @rule()
    def reset(self) -> None:
        self.ordered += 1
        name = f"p-{self.ordered}"
        if self.order(Propose("ana", Reset("x")), name) and self.order(Approve("rui", name)):
            over = self.model.of("visible") - self.model.terms.seed
            self.model.move("visible", "overflow" if over > 0 else "house", over)

    @precondition(lambda self: self.started and self.book.wins)
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        win: PoolWin = data.draw(st.sampled_from(self.book.wins))
        self.ordered += 1
        name = f"p-{self.ordered}"
        if self.order(Propose("ana", Reject(win.id, "x")), name) and self.order(Approve("rui", name)):
            self.model.decide_again(win.id, None, win.round in self.book.rounds)

    @precondition(lambda self: self.started and any(one.unpriced for one in self.book.wins))
    @rule(data=st.data(), amount=st.integers(0, 500))
    def price(self, data: st.DataObject, amount: int) -> None:
        win: PoolWin = data.draw(st.sampled_from([one for one in self.book.wins if one.unpriced]))
        self.ordered += 1
        name = f"p-{self.ordered}"
        if not (self.order(Propose("ana", Price(win.id, amount, "x")), name) and self.order(Approve("rui", name))):
            return
        known, model = self.model.wins[win.id], self.model
        assert not known["undone"]
        assert amount >= known["amount"] or not win.award.law  # a device may have won less
        amount -= amount % len(win.award.among) if win.award.among and model.terms.odd == "pool" else 0
        model.decide_again(win.id, amount, win.round in self.book.rounds)

    @precondition(lambda self: self.started and self.book.proposals)
    @rule(data=st.data(), person=st.sampled_from(["ana", "rui"]))
    def withdraw(self, data: st.DataObject, person: str) -> None:
        assert self.order(Withdraw(person, data.draw(st.sampled_from(self.book.proposals)).id))

    # ---- the process

    @precondition(lambda self: self.started)
    @rule()
    def commit(self) -> None:
        self.books.commit()
        self.committed, self.saved = self.book, copy.deepcopy(self.model)

    @precondition(lambda self: self.started)
    @rule()
    def crash(self) -> None:
        """What was not committed is gone, and is delivered again."""
        self.journal.close()
        self.model = copy.deepcopy(self.saved)
        self.open_books()

    @precondition(lambda self: self.started)
    @rule(line=st.integers(1, 60))
    def killed_while_it_writes(self, line: int) -> None:
        """What is on the disk at some line of the commit is opened: all of the batch stands there, or nothing."""
        there: dict[str, bytes] = {}
        left = line

        def trace(frame: FrameType, event: str, _arg: Any) -> Any:
            nonlocal left
            if frame.f_code.co_filename not in SOURCES:
                return None
            if event in ("line", "return") and left:
                left -= 1
                if not left:
                    there.update(self.on_disk())
            return trace

        stood, before, ours, after = self.committed, self.saved, self.model, self.book
        tracer = sys.gettrace()
        sys.settrace(trace)
        try:
            self.books.commit()
        finally:
            sys.settrace(tracer)
        there = there or self.on_disk()
        self.journal.close()
        for one in self.folder.iterdir():
            one.unlink()
        for name, raw in there.items():
            (self.folder / name).write_bytes(raw)
        self.open_books()
        assert self.book in (stood, after)
        self.committed, self.saved = self.book, copy.deepcopy(ours if self.book == after else before)
        self.model = copy.deepcopy(self.saved)

    def on_disk(self) -> dict[str, bytes]:
        return {one.name: one.read_bytes() for one in self.folder.iterdir() if not one.name.endswith("-shm")}

    # ---- what holds at every moment

    @invariant()
    def money_is_where_the_model_has_it(self) -> None:
        if not self.started:
            return
        book = self.book
        assert unbalanced(book) == ""
        ours = {account: Fraction(value, book.unit) for account, value in book.balances.items()}
        model: dict[str, Fraction] = {}
        for account, value in self.model.money.items():
            name = account.partition(":")[0]
            model[name] = model.get(name, Fraction(0)) + value
        assert ours == {account: value for account, value in model.items() if value}
        money_in = -ours.get("players", 0) - ours.get("house", 0)
        pending = ours.get("pending", Fraction(0))
        shown, remainder = divmod(ours.get("visible", Fraction(0)), 1)
        held = sum(ours.get(account, 0) for account in ("hidden", "overflow", "margin", "paid"))
        assert money_in == shown + remainder + held + pending
        assert book.amount == shown
        for win in book.wins:
            assert 0 <= int(win.from_house) <= win.amount * book.unit, win

    def teardown(self) -> None:
        if self.started:
            self.replay_gaps()
            self.money_is_where_the_model_has_it()
            self.commit()
            rows = self.journal.range("p", 1, 1_000_000)
            assert check(rows, self.book) == ""
            stood = self.book
            self.crash()
            assert self.book == stood
            self.journal.close()
        shutil.rmtree(self.folder)


@pytest.fixture(autouse=True)
def short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_WAL_PAGES", 10)


Pool.TestCase.settings = settings(
    max_examples=at_length(30, 3000),
    stateful_step_count=at_length(40, 60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestPool = pytest.mark.timeout(at_length(600, 3600))(pytest.mark.usefixtures("short_log")(Pool.TestCase))


@pytest.mark.usefixtures("short_log")
@pytest.mark.parametrize("later", [0, 5])
def test_a_correction_where_another_table_won_what_began_the_pool_again(later: int) -> None:
    """Decision 105: it counts as gone back, and as given again. The model left in the reserve what was still there; the
    ledger took it a second time from what came to the reserve later.
    """
    pool = Pool()
    pool.start(terms=TERMS[1])
    pool.adjust(account="hidden", amount=1)
    pool.bet_on_a_sensor(amount=1, seat=1)
    pool.round_ends(awards=[], behind=0, bets="taken", correct=False, stakes=[], table=LINKED)
    pool.machine_reports_a_win(amount=1, level=1, seat=0)
    pool.replay_gaps()
    pool.adjust(account="hidden", amount=later)
    held = pool.book.balances
    pool.round_ends(awards=[], behind=0, bets="taken", correct=True, stakes=[], table=LINKED)
    pool.replay_gaps()
    pool.money_is_where_the_model_has_it()
    assert pool.book.balances == held, "the same result told again moves nothing"
    pool.teardown()


@pytest.mark.usefixtures("short_log")
def test_the_house_gives_the_part_of_a_returned_bet_that_began_the_pool_again_for_a_later_win() -> None:
    """Decision 105. The model took it from the pool."""
    pool = Pool()
    pool.start(terms=TERMS[0])
    pool.round_ends(awards=[], behind=0, bets="taken", correct=False, stakes=[(1, 1)], table=RULES)
    pool.replay_gaps()
    pool.machine_reports_a_win(amount=1, level=1, seat=0)
    pool.replay_gaps()
    pool.round_ends(awards=[], behind=0, bets="taken", correct=True, stakes=[], table=RULES)
    pool.replay_gaps()
    pool.money_is_where_the_model_has_it()
    moved = {name: Fraction(value, pool.book.unit) for name, value in pool.book.balances.items()}
    # The bet gave 0.015 to the pool and 0.005 to the reserve, which the pool of the next win got.
    assert moved == {"house": -600 + Fraction("0.015"), "visible": 300 - Fraction("0.015"), "pending": 300}
    pool.teardown()


@pytest.mark.usefixtures("short_log")
def test_rounds_are_in_the_order_in_which_they_were_booked() -> None:
    """Decision 105. Rounds without an entry of the books between them were in the order of their times, as if the pool
    that the later booked one remembers were without the other.
    """
    pool = Pool()
    pool.start(terms=TERMS[0])
    pool.round_ends(awards=[], behind=0, bets="taken", correct=False, stakes=[], table=LINKED)
    pool.round_ends(awards=[], behind=0, bets="taken", correct=False, stakes=[], table=RULES)
    for table in (RULES, LINKED):
        pool.receive(STREAMS[table], pool.sent[STREAMS[table]][0])
    for table in (LINKED, RULES):
        pool.round_ends(awards=[AWARDS[1]], behind=0, bets="taken", correct=True, stakes=[(1, 10_000)], table=table)
        pool.replay_gaps()
        pool.money_is_where_the_model_has_it()
    # A tenth of 300 and of .015 of 10 000: for the round of the rules, booked first, the other one has no part in it.
    assert [win.amount for win in pool.book.wins] == [45, 45]
    pool.teardown()


@pytest.mark.usefixtures("short_log")
def test_a_pool_from_which_others_took_more_than_there_was_gives_a_corrected_win_nothing() -> None:
    """The reserve had begun the pool again, and a confirmation for an earlier round took what the corrected one had
    left. The win of the rest was booked with -112, with which the books could not be read again.
    """
    pool = Pool()
    pool.start(terms=TERMS[3])
    pool.adjust(account="hidden", amount=335)
    for table, award in ((RULES, AWARDS[7]), (LINKED, AWARDS[0])):
        pool.round_ends(awards=[award], behind=0, bets="taken", correct=False, stakes=[], table=table)
        pool.replay_gaps()
    assert pool.book.balance("visible") == 335
    pool.confirm(pool.book.wins[0], person="ana")  # 70 for each of three seats, where 70 were set aside
    assert pool.book.balance("visible") == 335 - 140
    pool.round_ends(awards=[AWARDS[3]], behind=0, bets="taken", correct=True, stakes=[], table=LINKED)
    pool.replay_gaps()
    assert [(win.amount, win.why_zero) for win in pool.book.wins if win.state == "pending"] == [(0, "pool_empty")]
    pool.teardown()
