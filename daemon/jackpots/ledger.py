"""The books of one jackpot pool: a pure double-entry ledger in exact integers.

Every function takes a `Book` and returns the next one with the entries that led there; the store writes both in one
transaction. Balances count in 1/`unit` of a minor unit, where every contribution is a whole number: what a bet's part
leaves below a minor unit stays in the pool and is never dropped. The balances of all accounts sum to zero.

An input is used once: it names its stream and its number there, and a number that was used gives nothing.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from math import lcm
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from daemon.jackpots.prizes import decide, equal_shares, gross, matched, takes_all
from protocols.contract.jackpots import (
    ENTRIES,
    Adjust,
    Approve,
    BookEntry,
    Confirm,
    Order,
    Pay,
    PendingWin,
    PoolLevel,
    PoolTerms,
    PoolWin,
    Price,
    Prize,
    Proposal,
    Propose,
    Reject,
    Reset,
    SetTerms,
    Withdraw,
)
from protocols.contract.results import Award, Result
from protocols.contract.topics import EARLIEST

__all__ = [
    "Book",
    "Ended",
    "Refused",
    "Seen",
    "Stake",
    "Step",
    "begin",
    "contribute",
    "end_of",
    "end_round",
    "hear",
    "level_of",
    "obey",
    "open_round",
    "report_win",
    "simultaneous",
    "unbalanced",
]

PLAYERS, HOUSE, VISIBLE, HIDDEN, OVERFLOW, MARGIN, PAID = (
    "players",
    "house",
    "visible",
    "hidden",
    "overflow",
    "margin",
    "paid",
)
KEPT_WINS = 25
"""Closed wins that a book remembers beside the open ones."""
KEPT_ROUNDS = 5
"""Rounds of a table that can still be corrected in the books; the rules correct the last one."""
KEPT_STREAMS = 1000
MOST_STAKES = 1000
"""Bets of a round that has not ended: more than all seats can have."""
MOST_PROPOSALS = 20
KEPT_ORDERS = 200
"""Orders that are remembered, so that one that is delivered twice is obeyed once. A request lives 10 minutes."""
OPEN = ("pending", "confirmed")
Bets: TypeAlias = Literal["taken", "returned", "carried"]


class Refused(Exception):
    """An order that is not carried out. The message says why and what to do."""


class Seen(Struct, frozen=True):
    """Where an input stands: number `seq` of `stream` (edge or rules, journal, table), its id and time."""

    stream: str
    seq: int
    id: str
    at: datetime


class Stake(Struct, frozen=True):
    """A bet on the jackpot and where its parts went, in 1/`unit`. `seq`: of the event that told it."""

    seat: int
    amount: int
    legs: dict[str, int] = {}
    unit: int = 1
    seq: int = 0


class RoundBook(Struct, frozen=True):
    """What a round did to the pool, for a later correction. `at`: when it ended. `bets`: what became of its `stakes`.

    `awards`: those that were decided last, of a pool of `base`; -1: none. `reported`: the amount that a device told.
    `numbered`: how many wins it has had. `reseeded`: what the house gave as seed after them, in units; `refilled`: the
    overflow and the reserve.
    """

    table: str
    stakes: tuple[Stake, ...] = ()
    bets: Bets = "taken"
    base: int = -1
    numbered: int = 0
    reseeded: int = 0
    refilled: dict[str, int] = {}
    at: datetime | None = None
    awards: tuple[Award, ...] = ()
    reported: int = -1

    @property
    def whole(self) -> bool:
        """Whether it won the whole pool."""
        return any(takes_all(one) for one in self.awards)


class TableBook(Struct, frozen=True):
    """A table of the pool. `open`: its open round. `stakes`: bets of a round that has not ended. `credit`: bets that a
    void round carried to the next one, until they are told again or that round ends. `stream`, `last`: who told the
    last verdict, and its time.
    """

    open: str = ""
    stakes: tuple[Stake, ...] = ()
    credit: tuple[Stake, ...] = ()
    stream: str = ""
    last: datetime | None = None


class Book(Struct, frozen=True):
    """The books of a pool, which `began` then: what happened before is not its own.

    `heard`: by stream the last number that was used. `orders`: the last that were obeyed.
    """

    pool: str
    terms: PoolTerms
    began: datetime
    unit: int
    balances: dict[str, int]
    number: int = 0
    wins: tuple[PoolWin, ...] = ()
    rounds: dict[str, RoundBook] = {}
    tables: dict[str, TableBook] = {}
    heard: dict[str, int] = {}
    proposals: tuple[Proposal, ...] = ()
    orders: tuple[str, ...] = ()

    def balance(self, account: str) -> int:
        """In 1/`unit` of a minor unit."""
        return self.balances.get(account, 0)

    @property
    def amount(self) -> int:
        """What the pool shows, in whole minor units."""
        return self.balance(VISIBLE) // self.unit

    def win(self, win: str) -> PoolWin:
        """Raises Refused."""
        for one in self.wins:
            if one.id == win:
                return one
        raise Refused(f"no win {win!r} is in the books of {self.pool}; `feltd jackpot` lists them")


class Ended(Struct, frozen=True):
    """How a round ended, as far as a pool is concerned.

    `stakes`: seat and amount of its bets on the jackpot where the rules tell them; None where devices do, and then the
    bets up to number `until` of the edge are of this round. `bets`: what became of them.
    """

    round: str
    table: str
    awards: tuple[Award, ...] = ()
    bets: Bets = "taken"
    stakes: tuple[tuple[int, int], ...] | None = ()
    until: int = 0
    corrects: str = ""


Step = tuple[Book, tuple[tuple[str, BookEntry], ...]]
"""The next book, and the entries with their types."""


class _Draft:
    """A book under way. `post` checks each entry: it sums to zero, and no account of the pool falls below zero."""

    def __init__(self, book: Book, seen: Seen | None = None) -> None:
        self.book = book
        self.balances = dict(book.balances)
        self.number = book.number
        self.entries: list[tuple[str, BookEntry]] = []
        self.facts: dict[str, Any] = {}
        if seen is not None:
            heard = {**book.heard, seen.stream: seen.seq}
            if len(heard) > KEPT_STREAMS:
                del heard[next(iter(heard))]
            self.book = replace(book, heard=heard)

    def balance(self, account: str) -> int:
        return self.balances.get(account, 0)

    def post(self, kind: str, postings: dict[str, int], **facts: Any) -> None:
        assert kind in ENTRIES, kind
        assert not sum(postings.values()), postings
        for account, change in postings.items():
            after = self.balance(account) + change
            assert after >= 0 or account in (PLAYERS, HOUSE), (account, after)
            self.balances[account] = after
            if not after:
                del self.balances[account]
        self.number += 1
        entry = BookEntry(
            self.number,
            self.book.unit,
            {account: str(value) for account, value in self.balances.items()},
            {account: str(change) for account, change in postings.items() if change},
            **{**self.facts, **facts},
        )
        self.entries.append((kind, entry))

    def update(self, **fields: Any) -> None:
        self.book = replace(self.book, **fields)

    def table(self, name: str, **fields: Any) -> None:
        known = self.book.tables.get(name, TableBook())
        self.update(tables={**self.book.tables, name: replace(known, **fields)})

    def round(self, name: str, **fields: Any) -> None:
        self.update(rounds={**self.book.rounds, name: replace(self.book.rounds[name], **fields)})

    def put_round(self, name: str, round_: RoundBook) -> None:
        """Put a round in its place, or behind all; forget the oldest of its table."""
        rounds = {**self.book.rounds, name: round_}
        mine = [key for key, one in rounds.items() if one.table == round_.table]
        for key in mine[:-KEPT_ROUNDS]:
            del rounds[key]
        self.update(rounds=rounds)

    def set_win(self, win: PoolWin) -> None:
        """Put it in the place of the one with its id, or behind all; forget closed wins beyond KEPT_WINS."""
        wins = [win if one.id == win.id else one for one in self.book.wins]
        if win not in wins:
            wins.append(win)
        closed = [one for one in wins if one.state not in OPEN]
        for old in closed[:-KEPT_WINS]:
            if old.round not in self.book.rounds:  # its result can still be corrected
                wins.remove(old)
        self.update(wins=tuple(wins))

    def done(self) -> Step:
        return replace(self.book, balances=self.balances, number=self.number), tuple(self.entries)

    # ---- moves that several inputs share

    def clip(self) -> None:
        """What the pool holds above its limit goes to the overflow."""
        limit = self.book.terms.limit * self.book.unit
        over = self.balance(VISIBLE) - limit
        if limit and over > 0:
            self.post("adjusted", {VISIBLE: -over, OVERFLOW: over}, text="above the limit")

    def take_stake(self, stake: Stake) -> Stake:
        """Take in a bet; its parts stand in the stake that is returned."""
        terms, unit = self.book.terms, self.book.unit
        whole = stake.amount * unit
        shown, kept = (int(whole * Fraction(rate)) for rate in (terms.visible, terms.hidden))
        room = max(terms.limit * unit - self.balance(VISIBLE), 0) if terms.limit else shown
        legs = {VISIBLE: min(shown, room), OVERFLOW: max(shown - room, 0), HIDDEN: kept, MARGIN: whole - shown - kept}
        legs = {account: value for account, value in legs.items() if value}
        self.post("contributed", {PLAYERS: -whole, **legs}, seat=stake.seat, amount=stake.amount)
        return replace(stake, legs=legs, unit=unit)

    def return_stake(self, stake: Stake, text: str) -> None:
        """Give a bet back from where its parts went; what is no longer there the pool gives, then the house."""
        postings = {PLAYERS: stake.amount * self.book.unit}
        short = 0
        for account, value in stake.legs.items():
            wanted = value * self.book.unit // stake.unit
            there = min(wanted, self.balance(account))
            short += wanted - there
            postings[account] = -there
        from_pool = min(short, self.balance(VISIBLE) + postings.get(VISIBLE, 0))
        postings[VISIBLE] = postings.get(VISIBLE, 0) - from_pool
        postings[HOUSE] = from_pool - short
        self.post("returned", postings, seat=stake.seat, amount=stake.amount, text=text)

    def draw(self, win: PoolWin) -> int:
        """Freeze the amount of a new win, from the pool first. Returns what came from the pool."""
        wanted = win.amount * self.book.unit
        there = min(wanted, self.balance(VISIBLE) // self.book.unit * self.book.unit)
        win = replace(win, from_house=str(wanted - there))
        self.set_win(win)
        postings = {VISIBLE: -there, HOUSE: there - wanted, f"pending:{win.id}": wanted}
        self.post("won", postings, win=win, amount=win.amount)
        return there

    def undo(self, win: PoolWin, text: str) -> int:
        """A win that was not paid goes back to where it came from. Returns what came back to the pool."""
        wanted = self.balance(f"pending:{win.id}")
        house = min(int(win.from_house), wanted)
        win = replace(win, state="reversed")
        self.set_win(win)
        postings = {f"pending:{win.id}": -wanted, VISIBLE: wanted - house, HOUSE: house}
        self.post("reversed", postings, win=win, amount=win.amount, text=text)
        return wanted - house

    def reset_if_due(self, round_: str, *, whole: bool) -> None:
        """The pool begins again: from the overflow, from the reserve, up to the seed from the house."""
        terms, unit = self.book.terms, self.book.unit
        seed = terms.seed * unit
        shown = self.balance(VISIBLE)
        due = whole or shown < unit or (terms.reseed == "below_seed" and shown < seed)
        if not due or shown >= max(seed, unit):
            return
        most = terms.limit * unit or shown + self.balance(OVERFLOW) + self.balance(HIDDEN)
        over = min(self.balance(OVERFLOW), max(most - shown, 0))
        kept = min(self.balance(HIDDEN), max(most - shown - over, 0))
        house = max(seed - shown - over - kept, 0)
        postings = {OVERFLOW: -over, HIDDEN: -kept, HOUSE: -house, VISIBLE: over + kept + house}
        if not postings[VISIBLE]:
            return
        self.post("reset", postings, amount=(shown + postings[VISIBLE]) // unit)
        known = self.book.rounds.get(round_)
        if known is not None:
            refilled = {name: known.refilled.get(name, 0) - postings[name] for name in (HIDDEN, OVERFLOW)}
            self.round(round_, reseeded=known.reseeded + house, refilled=refilled)

    def give_back_seed(self, round_: str, left: int, drawn: int = 0) -> None:
        """After a reversal what began the pool again for it goes back: to the house, then to reserve and overflow.

        At most `left`, and as far as the pool stays at its seed, less what other wins of the round have `drawn`.
        """
        known = self.book.rounds.get(round_)
        if known is None:
            return
        room = min(left, self.balance(VISIBLE) + drawn - self.book.terms.seed * self.book.unit)
        given = {HOUSE: known.reseeded, **known.refilled}
        back = {}
        for account in (HOUSE, HIDDEN, OVERFLOW):
            back[account] = max(min(given.get(account, 0), room), 0)
            room -= back[account]
        if total := sum(back.values()):
            self.post("adjusted", {VISIBLE: -total, **back}, text="seed of a win that was reversed")
            kept = {name: given.get(name, 0) - back[name] for name in (HIDDEN, OVERFLOW)}
            self.round(round_, reseeded=known.reseeded - back[HOUSE], refilled=kept)

    def freeze(self, name: str, wins: Sequence[PoolWin]) -> int:
        """Set the new wins of a round aside. Returns what came from the pool."""
        known = self.book.rounds[name]
        self.round(name, numbered=known.numbered + len(wins))
        drawn = 0
        for number, one in enumerate(wins, known.numbered + 1):
            at = known.at or EARLIEST
            drawn += self.draw(replace(one, id=f"{name}/{number}", table=known.table, round=name, at=at))
        return drawn


def begin(pool: str, terms: PoolTerms, at: datetime) -> Step:
    """New books: the house gives the seed."""
    draft = _Draft(Book(pool, terms, at, _unit(terms), {}))
    seed = terms.seed * draft.book.unit
    draft.post("reset", {HOUSE: -seed, VISIBLE: seed}, amount=terms.seed, text="the pool begins")
    return draft.done()


def _unit(terms: PoolTerms) -> int:
    return lcm(Fraction(terms.visible).denominator, Fraction(terms.hidden).denominator)


# ---- bets and rounds


def contribute(book: Book, seen: Seen, table: str, seat: int, amount: int, *, rounds: bool = True) -> Step:
    """A device took a bet. One that a void round carried here was taken before and is not counted again.

    `rounds`: whether rules tell how the rounds of this table end; without them no bet is ever returned.
    """
    if _not_ours(book, seen):
        return hear(book, seen)
    draft = _Draft(book, seen)
    known = book.tables.get(table, TableBook())
    draft.facts = {"table": table, "round": known.open}
    stake = Stake(seat, amount, seq=seen.seq)
    if (carried := _like(stake, known.credit)) is not None:
        stakes = (*known.stakes, replace(carried, seq=seen.seq))
        draft.table(table, credit=_without(known.credit, carried), stakes=stakes)
        draft.post("carried", {}, seat=seat, amount=amount, text="taken in the void round before")
        return draft.done()
    stake = draft.take_stake(stake)
    if rounds:
        draft.table(table, stakes=(*known.stakes, stake)[-MOST_STAKES:])
    return draft.done()


def hear(book: Book, seen: Seen) -> Step:
    """An input that changes nothing; it is not asked for again."""
    return (book, ()) if _used(book, seen) else _Draft(book, seen).done()


def open_round(book: Book, seen: Seen, table: str, round_: str) -> Step:
    """A round opened at a table: changes wait until it ends."""
    if _not_ours(book, seen):
        return hear(book, seen)
    draft = _Draft(book, seen)
    if _told_before(book, seen, table):
        return draft.done()
    draft.table(table, open=round_, stream=seen.stream, last=seen.at)
    return draft.done()


def end_of(result: Result, table: str, bet: str, award: str, *, by_rules: bool, until: int = 0) -> Ended:
    """What a result says of a pool. `bet`: the ruleset's id of its bet; `award`: of its jackpot, "" for any."""
    bets = "taken" if result.void is None else result.void.jackpot_bets or "returned"
    taken = result.void is None and not result.demo
    stakes = tuple((one.seat, one.stake) for one in result.settlements if one.bet == bet and not one.returned and taken)
    awards = tuple(one for one in result.jackpots if award in ("", one.jackpot) and taken)
    return Ended(result.round, table, awards, bets, stakes if by_rules else None, until, result.supersedes)


def end_round(book: Book, seen: Seen, ended: Ended) -> Step:
    """A round ended, or its result was corrected."""
    if _not_ours(book, seen):
        return hear(book, seen)
    draft = _Draft(book, seen)
    if _told_before(book, seen, ended.table):
        return draft.done()
    draft.facts = {"table": ended.table, "round": ended.round}
    draft.table(ended.table, stream=seen.stream, last=seen.at)
    if book.tables.get(ended.table, TableBook()).open in (ended.round, ended.corrects):
        draft.table(ended.table, open="")
    earlier = ended.corrects if ended.corrects in book.rounds else ended.round
    known = book.rounds.get(earlier)
    if known is None and ended.corrects:
        draft.post("noted", {}, text="a correction of a round that these books no longer have: settle it by a change")
        return draft.done()
    if known is None:
        known = RoundBook(ended.table)
    elif earlier != ended.round:
        draft.update(rounds={key: one for key, one in book.rounds.items() if key != earlier})
    draft.put_round(ended.round, replace(known, at=known.at or seen.at))
    mine = [one for one in draft.book.wins if one.round == earlier and one.state != "reversed"]
    near = simultaneous(draft.book, ended.round) if ended.awards != known.awards else ()
    again = bool(near) and all(one.state == "pending" for one in mine)
    for name in reversed(near) if again else ():
        _roll_back(draft, name)
    mine = [] if again else mine
    kept, new = matched(draft.book.terms, known.base, known.awards, mine, ended.awards)
    left = sum(_drop(draft, one) for one in mine if one not in kept)
    _settle_stakes(draft, ended, known, in_order=again)
    if ended.awards != known.awards:
        draft.round(ended.round, awards=ended.awards)
    if not mine:
        _decide_in_order(draft, near if again else (ended.round,))
    for one in kept:
        upheld = replace(one, state="paid") if one.state == "contested" else one
        draft.set_win(upheld)
        draft.post("upheld", {}, win=upheld, amount=one.amount, text="the corrected result names it, too")
    if mine:
        whole = any(one.whole for one in new)
        drawn = draft.freeze(ended.round, new)
        if whole:  # the pool had to begin again for it, too
            draft.give_back_seed(ended.round, max(left - drawn, 0))
        else:
            draft.give_back_seed(ended.round, left, drawn)
        draft.reset_if_due(ended.round, whole=whole)
    draft.reset_if_due(ended.round, whole=False)
    draft.clip()
    return draft.done()


def simultaneous(book: Book, round_: str) -> tuple[str, ...]:
    """The rounds to decide again because `round_` wins: itself and later ones, in the order of their events.

    Those whose wins are all pending, each at most the window of the terms after the one before. Where whole pools are
    shared equally: from the first of them on. Empty where the order of arrival stands.
    """
    window = timedelta(seconds=book.terms.simultaneous_s)
    if not window:
        return ()
    moved = {one.round for one in book.wins if one.state not in ("pending", "reversed")}
    times = {
        name: one.at
        for name, one in book.rounds.items()
        if one.at is not None and (name == round_ or (one.awards and name not in moved))
    }
    order = sorted(times, key=lambda name: (times[name], name))
    first = last = order.index(round_)
    while last + 1 < len(order) and times[order[last + 1]] - times[order[last]] <= window:
        last += 1
    if book.terms.simultaneous == "share_equally":
        before = first
        while before and times[order[before]] - times[order[before - 1]] <= window:
            before -= 1
            if book.rounds[order[before]].whole:
                first = before
    near = tuple(order[first : last + 1])
    return near if len(near) > 1 else ()


def _roll_back(draft: _Draft, name: str) -> None:
    """Take back what a round did to the pool, to do it again in the order of the events."""
    known = draft.book.rounds[name]
    facts = draft.facts
    draft.facts = {"table": known.table, "round": name}
    for win in reversed([one for one in draft.book.wins if one.round == name and one.state == "pending"]):
        draft.undo(win, "decided again: another table won at nearly the same time")
    given = {HOUSE: known.reseeded, **known.refilled}
    there = draft.balance(VISIBLE)
    back = {}
    for account in (HOUSE, HIDDEN, OVERFLOW):
        back[account] = min(given.get(account, 0), there)
        there -= back[account]
    if total := sum(back.values()):
        draft.post("adjusted", {VISIBLE: -total, **back}, text="the pool had not begun again")
    draft.round(name, reseeded=0, refilled={})
    stakes = []
    for one in known.stakes:
        told_by_rules = not one.seq
        if told_by_rules and one.legs:
            draft.return_stake(one, "counted again in the order of the events")
        stakes.append(replace(one, legs={}) if told_by_rules else one)
    draft.round(name, stakes=tuple(stakes))
    draft.facts = facts


def _decide_in_order(draft: _Draft, rounds: Sequence[str]) -> None:
    """Decide the wins of rounds one after the other, each of the pool as it then stands.

    Where the terms say so, those that win the whole pool decide of equal parts of it.
    """
    equal = draft.book.terms.simultaneous == "share_equally"
    facts = draft.facts
    waiting = [name for name in rounds if draft.book.rounds[name].whole] if equal else []
    shared = False
    for name in rounds:
        known = draft.book.rounds[name]
        draft.facts = {"table": known.table, "round": name}
        if not all(one.legs for one in known.stakes):
            draft.round(name, stakes=tuple(one if one.legs else draft.take_stake(one) for one in known.stakes))
        if known.awards:
            base = draft.balance(VISIBLE) // draft.book.unit // (len(waiting) if name in waiting else 1)
            draft.round(name, base=base)
            draft.freeze(name, decide(_terms_of(draft.book.terms, known), base, known.awards))
            shared = shared or name in waiting
            waiting = [one for one in waiting if one != name]
            if not (shared and waiting):
                draft.reset_if_due(name, whole=known.whole)
    draft.facts = facts


def _terms_of(terms: PoolTerms, known: RoundBook) -> PoolTerms:
    """With the amount that a device told, where the terms have none."""
    if known.reported < 0:
        return terms
    told = {one.combination: Prize(known.reported) for one in known.awards}
    return replace(terms, prizes={**told, **terms.prizes})


def _drop(draft: _Draft, win: PoolWin) -> int:
    """A win that the corrected result does not name. What was handed out cannot come back by itself."""
    if win.state in OPEN:
        return draft.undo(win, "the corrected result does not name it")
    if win.state == "paid":
        win = replace(win, state="contested")
        draft.set_win(win)
        draft.post("contested", {}, win=win, amount=win.amount, text="paid, and the corrected result does not name it")
    return 0


def _settle_stakes(draft: _Draft, ended: Ended, known: RoundBook, *, in_order: bool) -> None:
    """What became of the bets of the round: taken, returned, or carried to the next round of the table.

    `in_order`: new ones that the rules tell are taken when the round is decided.
    """
    if ended.stakes is not None:
        missing, kept = list(ended.stakes), []
        for one in draft.book.rounds[ended.round].stakes:
            if (one.seat, one.amount) in missing:
                missing.remove((one.seat, one.amount))
                kept.append(one)
            elif one.legs:
                draft.return_stake(one, "not among the bets of the corrected result")
        new = (Stake(seat, amount) for seat, amount in missing)
        kept += new if in_order else [draft.take_stake(one) for one in new]
        draft.round(ended.round, stakes=tuple(kept))
        return
    if ended.corrects and ended.bets == known.bets:
        return
    table = draft.book.tables[ended.table]
    credit, later = table.credit, table.stakes
    stakes: tuple[Stake, ...] = ()
    if ended.corrects:  # what was bet since is of the next round
        for one in known.stakes:
            mine = _like(one, credit) if known.bets == "carried" else one
            if mine is None or known.bets == "returned":  # the next round has it, or the players
                mine = draft.take_stake(one)
            elif known.bets == "carried":
                credit = _without(credit, mine)
            stakes += (mine,)
    else:
        stakes = (*credit, *(one for one in later if one.seq <= ended.until))
        credit, later = (), tuple(one for one in later if one.seq > ended.until)
    draft.round(ended.round, stakes=stakes, bets=ended.bets)
    if ended.bets == "returned":
        for one in stakes:
            draft.return_stake(one, "the round is void: its bets are returned")
    elif ended.bets == "carried":
        credit += stakes
    for one in later:  # told before the verdict came
        if (carried := _like(one, credit)) is not None:
            credit = _without(credit, carried)
            later = (*_without(later, one), replace(carried, seq=one.seq))
            draft.return_stake(one, "taken in the void round before")
    draft.table(ended.table, stakes=later, credit=credit)


def _like(stake: Stake, among: Sequence[Stake]) -> Stake | None:
    """One of the same seat and amount."""
    return next((one for one in among if (one.seat, one.amount) == (stake.seat, stake.amount)), None)


def _without(stakes: tuple[Stake, ...], stake: Stake) -> tuple[Stake, ...]:
    """Without the first that equals it."""
    if stake not in stakes:
        return stakes
    at = stakes.index(stake)
    return stakes[:at] + stakes[at + 1 :]


def report_win(book: Book, seen: Seen, table: str, level: int, seat: int, amount: int) -> Step:
    """A device reports that its jackpot fell; `amount` where it tells one and the terms have none."""
    if _not_ours(book, seen):
        return hear(book, seen)
    draft = _Draft(book, seen)
    name = f"level_{level}"
    prize = book.terms.prize(book.pool, name)
    kind = prize or Prize()
    award = Award(book.pool, name, kind.pays, "", "" if kind.share == "0" else kind.share, (seat,) if seat else ())
    draft.facts = {"table": table, "round": seen.id}
    draft.put_round(seen.id, RoundBook(table, at=seen.at, reported=amount if prize is None else -1))
    near = simultaneous(draft.book, seen.id)
    for one in reversed(near):
        _roll_back(draft, one)
    draft.round(seen.id, awards=(award,))
    _decide_in_order(draft, near or (seen.id,))
    return draft.done()


def _used(book: Book, seen: Seen) -> bool:
    """Whether this input was used: delivered twice, or again after a crash."""
    return seen.seq <= book.heard.get(seen.stream, 0)


def _not_ours(book: Book, seen: Seen) -> bool:
    return _used(book, seen) or seen.at < book.began


def _told_before(book: Book, seen: Seen, table: str) -> bool:
    """Whether another journal of the rules (a standby, a new disk) tells again what was used."""
    known = book.tables.get(table, TableBook())
    return known.stream not in ("", seen.stream) and known.last is not None and seen.at <= known.last


# ---- orders of people


def obey(book: Book, order: Order, name: str, at: datetime) -> Step:
    """Carry out an order, once; `name` is its request's id. Raises Refused."""
    if name in book.orders:
        return book, ()
    draft = _Draft(book)
    draft.update(orders=(*book.orders, name)[-KEPT_ORDERS:])
    match order:
        case Confirm():
            _confirm(draft, order)
        case Pay():
            _pay(draft, order)
        case Propose(person=person, change=change):
            if len(book.proposals) >= MOST_PROPOSALS:
                raise Refused(f"{MOST_PROPOSALS} changes wait already; approve or withdraw one of them")
            _check_change(book, change)
            draft.update(proposals=(*book.proposals, Proposal(name, person, at, change)))
            draft.post("proposed", {}, people=(person,), change=change, text=name)
        case Approve(person=person, proposal=which):
            found = _proposal(book, which)
            if found.person == person:
                raise Refused(f"{person} proposed it: another person must approve it")
            _refuse_while_open(book, found.change)
            draft.update(proposals=tuple(one for one in book.proposals if one != found))
            draft.facts = {"people": (found.person, person), "change": found.change}
            _change(draft, found.change)
        case Withdraw(person=person, proposal=which):
            found = _proposal(book, which)
            draft.update(proposals=tuple(one for one in book.proposals if one != found))
            draft.post("withdrawn", {}, people=(person,), change=found.change, text=which)
    return draft.done()


def _proposal(book: Book, which: str) -> Proposal:
    for one in book.proposals:
        if one.id == which:
            return one
    raise Refused(f"no proposal {which!r} waits for the pool {book.pool}")


def _confirm(draft: _Draft, order: Confirm) -> None:
    book = draft.book
    win = book.win(order.win)
    if win.state != "pending":
        raise Refused(f"win {win.id} is {win.state} already")
    if win.unpriced:
        raise Refused(f"the terms have no amount for {win.award.combination}: let two people set it (price)")
    if win.award.among and order.seats and order.seats != win.award.among:
        raise Refused(f"win {win.id} is of the seats {_list(win.award.among)}, as the rules say; name no others")
    if not win.award.among and (not order.seats or len(set(order.seats)) < len(order.seats)):
        raise Refused(f"the bettors of win {win.id} are not known: name the seats that share it, each once")
    more, there = 0, 0
    if not win.award.among and win.award.each:
        more = win.amount * (len(order.seats) - 1) * book.unit
        there = min(more, book.balance(VISIBLE) // book.unit * book.unit)
        shares = tuple((seat, win.amount) for seat in order.seats)
        house = str(int(win.from_house) + more - there)
        win = replace(win, shares=shares, amount=win.amount * len(order.seats), from_house=house)
    elif not win.award.among:
        shares, odd = equal_shares(win.amount, order.seats, book.terms.odd)
        more = there = -odd * book.unit if book.terms.odd == "pool" else 0
        win = replace(win, shares=shares, odd=odd, amount=win.amount + more // book.unit)
    win = replace(win, state="confirmed", confirmed_by=order.person)
    draft.set_win(win)
    postings = {f"pending:{win.id}": more, VISIBLE: -there, HOUSE: there - more}
    draft.post("confirmed", postings, win=win, amount=win.amount, people=(order.person,), table=win.table)
    if more > 0:
        draft.reset_if_due(win.round, whole=False)
    draft.clip()


def _pay(draft: _Draft, order: Pay) -> None:
    book = draft.book
    win = book.win(order.win)
    if win.state != "confirmed":
        remedy = "; a person must confirm it first" if win.state == "pending" else ""
        raise Refused(f"win {win.id} is {win.state}{remedy}")
    if win.confirmed_by == order.person:
        raise Refused(f"{order.person} confirmed it: another person must pay it")
    if open_ := book.tables.get(win.table, TableBook()).open:
        raise Refused(f"round {open_} is open at {win.table}: pay when it has ended")
    win = replace(win, state="paid", paid_by=order.person)
    draft.set_win(win)
    amount = win.amount * book.unit
    people = (win.confirmed_by, order.person)
    facts = {"table": win.table, "round": win.round}
    draft.post("paid", {f"pending:{win.id}": -amount, PAID: amount}, win=win, amount=win.amount, people=people, **facts)


def _refuse_while_open(book: Book, change: object) -> None:
    """Raises Refused while a round is open at any table of the pool; a win only concerns its own."""
    tables = [book.win(change.win).table] if isinstance(change, Reject | Price) else list(book.tables)
    open_ = [one for name in tables if (one := book.tables.get(name, TableBook()).open)]
    if open_:
        raise Refused(f"round {', '.join(sorted(open_))} is open: approve it when no round is")


def _check_change(book: Book, change: object) -> None:
    """Raises Refused for what could not be carried out as the books stand now."""
    match change:
        case Adjust(account=account, amount=amount):
            if book.balance(account) + amount * book.unit < 0:
                there = book.balance(account) // book.unit
                raise Refused(f"{account} holds {there}; it cannot give {-amount}")
            limit = book.terms.limit
            if account == VISIBLE and limit and book.balance(VISIBLE) + amount * book.unit > limit * book.unit:
                raise Refused(f"the pool would be above its limit, {limit}")
        case Reject(win=win):
            if book.win(win).state not in OPEN:
                raise Refused(f"win {win} is {book.win(win).state}: it cannot be rejected")
        case Price(win=win, amount=amount):
            known = book.win(win)
            if not known.unpriced or known.state != "pending":
                raise Refused(f"win {win} has an amount already")
            if amount < (share := gross(known, book.terms)):
                raise Refused(f"the share of the pool is {share}, and the larger of both is paid: price it so at least")
        case _:
            pass


def _change(draft: _Draft, change: object) -> None:
    """Raises Refused."""
    book = draft.book
    _check_change(book, change)
    unit = book.unit
    match change:
        case Adjust(account=account, amount=amount, reason=reason):
            draft.post("adjusted", {HOUSE: -amount * unit, account: amount * unit}, amount=amount, text=reason)
        case Reset(reason=reason):
            over = max(draft.balance(VISIBLE) - book.terms.seed * unit, 0)
            missing = max(book.terms.seed * unit - draft.balance(VISIBLE), 0)
            postings = {VISIBLE: missing - over, OVERFLOW: over, HOUSE: -missing}
            draft.post("reset", postings, amount=book.terms.seed, text=reason)
        case SetTerms(terms=terms, reason=reason):
            _set_terms(draft, terms, reason)
        case Reject(win=name, reason=reason):
            win = book.win(name)
            left = draft.undo(win, reason)
            draft.give_back_seed(win.round, left)
            draft.clip()
        case Price(win=name, amount=amount, reason=reason):
            win = book.win(name)
            shares, odd = equal_shares(amount, win.award.among, book.terms.odd)
            less = odd if win.award.among and book.terms.odd == "pool" else 0
            draft.give_back_seed(win.round, draft.undo(win, reason))
            draft.draw(replace(win, amount=amount - less, shares=shares, odd=odd, unpriced=False))
            draft.reset_if_due(win.round, whole=win.whole)


def _set_terms(draft: _Draft, terms: PoolTerms, reason: str) -> None:
    """New terms; all balances are counted in a unit in which the new rates are exact, too."""
    book = draft.book
    unit = lcm(book.unit, _unit(terms))
    times = unit // book.unit
    draft.balances = {account: value * times for account, value in draft.balances.items()}
    wins = tuple(replace(one, from_house=str(int(one.from_house) * times)) for one in book.wins)
    rounds = {
        name: replace(
            one,
            reseeded=one.reseeded * times,
            refilled={account: value * times for account, value in one.refilled.items()},
        )
        for name, one in book.rounds.items()
    }
    draft.update(terms=terms, unit=unit, wins=wins, rounds=rounds)
    draft.post("changed", {}, old=book.terms, text=reason)
    draft.clip()


def _list(seats: Sequence[int]) -> str:
    return ", ".join(map(str, seats))


# ---- what is shown and checked


def level_of(book: Book, currency: str, decimals: int, at: datetime | None) -> PoolLevel:
    """The level for displays and readers."""
    pending = tuple(
        PendingWin(one.id, one.table, one.round, one.award.combination, one.amount, one.state, one.shares)
        for one in book.wins
        if one.state in OPEN
    )
    return PoolLevel(book.pool, book.amount, currency, decimals, book.number, at, pending, book.proposals)


def unbalanced(book: Book) -> str:
    """Why the books do not balance; "" where they do."""
    if total := sum(book.balances.values()):
        return f"the accounts sum to {total} and not to zero"
    for account, value in book.balances.items():
        if value < 0 and account not in (PLAYERS, HOUSE):
            return f"{account} is {value}"
    for win in book.wins:
        held = book.balance(f"pending:{win.id}")
        wanted = win.amount * book.unit if win.state in OPEN else 0
        if held != wanted:
            return f"win {win.id} is {win.state} with {held} set aside, and {wanted} is due"
    known = {f"pending:{one.id}" for one in book.wins}
    stray = [account for account in book.balances if account.startswith("pending:") and account not in known]
    return f"{', '.join(stray)} belongs to no win" if stray else ""
