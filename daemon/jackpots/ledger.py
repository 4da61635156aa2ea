"""The books of one jackpot pool: a pure double-entry ledger in exact integers.

Every function takes a `Book` and returns the next one with the entries that led there; the store writes both in one
transaction. Balances count in 1/`unit` of a minor unit, where every contribution is a whole number: what a bet's part
leaves below a minor unit stays in the pool and is never dropped. The balances of all accounts sum to zero.

An input is used once: it names its stream and its number there, and a number that was used gives nothing.
"""

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any, Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

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
    Transfer,
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
    "decide",
    "end_of",
    "end_round",
    "hear",
    "level_of",
    "obey",
    "open_round",
    "report_win",
    "transfer",
    "unbalanced",
]

PLAYERS, HOUSE, VISIBLE, HIDDEN, OVERFLOW, MARGIN, PAID, TRANSFERRED = (
    "players",
    "house",
    "visible",
    "hidden",
    "overflow",
    "margin",
    "paid",
    "transferred",
)
OUTSIDE = (PLAYERS, HOUSE, TRANSFERRED)
"""Accounts that may be negative: what came into the pool from there."""
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
    """What a round did to the pool, for a later correction. `bets`: what became of its `stakes`.

    `base`: the pool when its wins were decided; -1: no win. `numbered`: how many wins it has had. `reseeded`: what the
    house gave as seed after them, in units.
    """

    table: str
    stakes: tuple[Stake, ...] = ()
    bets: Bets = "taken"
    base: int = -1
    numbered: int = 0
    reseeded: int = 0


class TableBook(Struct, frozen=True):
    """A table of the pool. `open`: its open round. `stakes`: bets of a round that has not ended. `credit`: bets that a
    void round carried to the next one, until they are told again or that round ends. `stream`: who told the last
    verdict. `last`, `newest`: the latest time of all verdicts, and the id with the highest number. `sensors`: the
    stream of the edge, once a bet came after the pool began.
    """

    open: str = ""
    stakes: tuple[Stake, ...] = ()
    credit: tuple[Stake, ...] = ()
    stream: str = ""
    last: datetime | None = None
    newest: str = ""
    sensors: str = ""


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
            assert after >= 0 or account in OUTSIDE, (account, after)
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
        known = self.book.rounds.get(name) or RoundBook(fields["table"])
        rounds = {**self.book.rounds, name: replace(known, **fields)}
        mine = [key for key, one in rounds.items() if one.table == rounds[name].table]
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
            wins.remove(old)
        self.update(wins=tuple(wins))

    def done(self) -> Step:
        return replace(self.book, balances=self.balances, number=self.number), tuple(self.entries)

    # ---- moves that several inputs share

    def recount(self, unit: int) -> None:
        """Count all balances in a unit in which amounts in 1/`unit` are exact, too."""
        book = self.book
        unit = lcm(book.unit, unit)
        times = unit // book.unit
        self.balances = {account: value * times for account, value in self.balances.items()}
        wins = tuple(replace(one, from_house=str(int(one.from_house) * times)) for one in book.wins)
        rounds = {name: replace(one, reseeded=one.reseeded * times) for name, one in book.rounds.items()}
        self.update(unit=unit, wins=wins, rounds=rounds)

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
        (shown, by), (kept, per) = _ratio(terms.visible), _ratio(terms.hidden)
        shown, kept = whole * shown // by, whole * kept // per
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

    def draw(self, win: PoolWin, text: str = "") -> int:
        """Freeze the amount of a new win, from the pool first. Returns what came from the pool."""
        wanted = win.amount * self.book.unit
        there = min(wanted, self.balance(VISIBLE) // self.book.unit * self.book.unit)
        win = replace(win, from_house=str(wanted - there))
        self.set_win(win)
        postings = {VISIBLE: -there, HOUSE: there - wanted, f"pending:{win.id}": wanted}
        self.post("won", postings, win=win, amount=win.amount, text=text)
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
        if round_ in self.book.rounds:
            self.round(round_, reseeded=self.book.rounds[round_].reseeded + house)

    def give_back_seed(self, round_: str, left: int) -> None:
        """After a reversal the house takes back what it gave as seed for it, as far as the pool stays at its seed."""
        known = self.book.rounds.get(round_)
        if known is None or not known.reseeded:
            return
        back = min(known.reseeded, left, self.balance(VISIBLE) - self.book.terms.seed * self.book.unit)
        if back > 0:
            self.post("adjusted", {VISIBLE: -back, HOUSE: back}, text="seed of a win that was reversed")
            self.round(round_, reseeded=known.reseeded - back)


def begin(pool: str, terms: PoolTerms, at: datetime) -> Step:
    """New books: the house gives the seed."""
    draft = _Draft(Book(pool, terms, at, _unit(terms), {}))
    seed = terms.seed * draft.book.unit
    draft.post("reset", {HOUSE: -seed, VISIBLE: seed}, amount=terms.seed, text="the pool begins")
    return draft.done()


@lru_cache(256)
def _ratio(rate: str) -> tuple[int, int]:
    """Numerator and denominator. A fraction made of text costs more than all else of a bet."""
    return Fraction(rate).as_integer_ratio()


def _unit(terms: PoolTerms) -> int:
    return lcm(Fraction(terms.visible).denominator, Fraction(terms.hidden).denominator)


# ---- bets and rounds


def contribute(book: Book, seen: Seen, table: str, seat: int, amount: int, *, rounds: bool = True) -> Step:
    """A device took a bet. One that a void round carried here was taken before and is not counted again.

    `rounds`: whether rules tell how the rounds of this table end; without them no bet is ever returned.
    """
    known = book.tables.get(table, TableBook())
    if _used(book, seen) or (seen.at < book.began and known.sensors != seen.stream):
        return hear(book, seen)
    draft = _Draft(book, seen)
    if known.sensors != seen.stream:
        draft.table(table, sensors=seen.stream)
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
    if _not_ours(book, seen, table):
        return hear(book, seen)
    draft = _Draft(book, seen)
    draft.table(table, open=round_, **_position(book, seen, table))
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
    if _not_ours(book, seen, ended.table):
        return hear(book, seen)
    draft = _Draft(book, seen)
    draft.facts = {"table": ended.table, "round": ended.round}
    draft.table(ended.table, **_position(book, seen, ended.table))
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
    draft.round(ended.round, **{name: getattr(known, name) for name in known.__struct_fields__})
    priced: tuple[PoolWin, ...] = ()
    mine = [one for one in draft.book.wins if one.round == earlier and one.state != "reversed"]
    if mine and known.base >= 0:  # what stands of the first decision
        priced = decide(draft.book.terms, known.base, ended.awards)
    kept, new = _matched(mine, priced)
    left = sum(_drop(draft, one) for one in mine if one not in kept)
    _settle_stakes(draft, ended, known)
    if ended.awards and not (mine and known.base >= 0):
        base = draft.balance(VISIBLE) // draft.book.unit
        draft.round(ended.round, base=base)
        new = list(decide(draft.book.terms, base, ended.awards))
    for one in kept:
        again = replace(one, state="paid") if one.state == "contested" else one
        draft.set_win(again)
        draft.post("upheld", {}, win=again, amount=one.amount, text="the corrected result names it, too")
    numbered = known.numbered
    for one in new:
        numbered += 1
        win = replace(one, id=f"{ended.round}/{numbered}", table=ended.table, round=ended.round, at=seen.at)
        left -= draft.draw(win)
    draft.round(ended.round, numbered=numbered)
    draft.give_back_seed(ended.round, max(left, 0))
    draft.reset_if_due(ended.round, whole=any(one.whole for one in new))
    draft.clip()
    return draft.done()


def _drop(draft: _Draft, win: PoolWin) -> int:
    """A win that the corrected result does not name. What was handed out cannot come back by itself."""
    if win.state in OPEN:
        return draft.undo(win, "the corrected result does not name it")
    if win.state == "paid":
        win = replace(win, state="contested")
        draft.set_win(win)
        draft.post("contested", {}, win=win, amount=win.amount, text="paid, and the corrected result does not name it")
    return 0


def _matched(old: Sequence[PoolWin], new: Sequence[PoolWin]) -> tuple[list[PoolWin], list[PoolWin]]:
    """Of the wins of before those that the new decision has, too, and the new ones besides."""
    left, kept = list(old), []
    added = []
    for one in new:
        same = next((other for other in left if (other.award, other.amount) == (one.award, one.amount)), None)
        if same is None:
            added.append(one)
        else:
            left.remove(same)
            kept.append(same)
    return kept, added


def _settle_stakes(draft: _Draft, ended: Ended, known: RoundBook) -> None:
    """What became of the bets of the round: taken, returned, or carried to the next round of the table."""
    if ended.stakes is not None:
        missing, kept = list(ended.stakes), []
        for one in known.stakes:
            if (one.seat, one.amount) in missing:
                missing.remove((one.seat, one.amount))
                kept.append(one)
            else:
                draft.return_stake(one, "not among the bets of the corrected result")
        kept += [draft.take_stake(Stake(seat, amount)) for seat, amount in missing]
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


def report_win(book: Book, seen: Seen, table: str, level: int, seat: int, amount: int, shown: int = 0) -> Step:
    """A device reports that its jackpot fell; `amount` where it tells one and the terms have none.

    The books decide the amount. Of a prize of the whole pool it is the one that the device showed (`shown`): what was
    bet elsewhere since stays in the pool. Where the device tells another amount, two people set it.
    """
    if _used(book, seen) or (seen.at < book.began and book.tables.get(table, TableBook()).sensors != seen.stream):
        return hear(book, seen)
    draft = _Draft(book, seen)
    name = f"level_{level}"
    prize = book.terms.prizes.get(name, Prize(fixed=amount))
    award = Award(book.pool, name, prize.pays, "", prize.share, (seat,) if seat else ())
    draft.facts = {"table": table, "round": seen.id}
    base = book.amount
    terms = replace(book.terms, prizes={**book.terms.prizes, name: prize})
    (win,) = decide(terms, base, (award,))
    text = ""
    if win.whole and 0 < amount == shown <= win.amount:
        win = replace(win, amount=amount, shares=_shared(amount, award.among, terms.odd)[0])
    elif amount not in (0, win.amount):
        text = f"the device reports {amount}, {shown or 'nothing'} was sent to it, and the books have {win.amount}"
        win = replace(win, unpriced=True)
    draft.round(seen.id, table=table, base=base, numbered=1)
    draft.draw(replace(win, id=f"{seen.id}/1", table=table, round=seen.id, at=seen.at), text)
    draft.reset_if_due(seen.id, whole=win.whole)
    return draft.done()


def decide(terms: PoolTerms, base: int, awards: Sequence[Award]) -> tuple[PoolWin, ...]:
    """The amounts of the awards of one round, in their order, of a pool of `base` minor units.

    A share is of the pool before the round, less the prizes of the combination in `after`; `pool` without a share is
    what the prizes before it left. Equal shares are whole minor units: the odd coins stay in the pool, or go to the
    first seats.
    """
    spent: dict[str, int] = {}
    left = base
    wins = []
    for award in awards:
        fixed = terms.prizes[award.combination].fixed if award.combination in terms.prizes else 0
        part = Fraction(award.share or "0")
        share = int(part * max(base - spent.get(award.after, 0), 0))
        match award.pays:
            case "pool":
                amount = share if part else left
            case "fixed":
                amount = fixed
            case "larger_of_fixed_and_share":
                amount = max(fixed, share)
            case _:  # a kind that a newer text brings must be decided here
                assert_never(award.pays)
        whole = part == 1 or (award.pays == "pool" and not part)
        unpriced = award.pays != "pool" and award.combination not in terms.prizes
        shares, odd = _shared(amount, award.among, terms.odd)
        if award.among and terms.odd == "pool":
            amount -= odd
        spent[award.combination] = spent.get(award.combination, 0) + amount
        left = max(left - amount, 0)
        wins.append(
            PoolWin("", "", "", EARLIEST, award, amount, shares=shares, odd=odd, unpriced=unpriced, whole=whole)
        )
    return tuple(wins)


def _shared(amount: int, seats: Sequence[int], odd: str) -> tuple[tuple[tuple[int, int], ...], int]:
    """Equal shares in whole minor units, and the odd coins; with `odd` "first" those are in the first shares."""
    if not seats:
        return (), 0
    each, rest = divmod(amount, len(seats))
    first = rest if odd == "first" else 0
    return tuple((seat, each + (place < first)) for place, seat in enumerate(seats)), rest


def _used(book: Book, seen: Seen) -> bool:
    """Whether this input was used: delivered twice, or again after a crash."""
    return seen.seq <= book.heard.get(seen.stream, 0)


def _not_ours(book: Book, seen: Seen, table: str) -> bool:
    """Whether a verdict was used, is older than the pool, or is told again by another journal of the rules.

    Clocks of edges are set back: a verdict with a higher number than all before it is new, whatever its time says. The
    numbers of an edge with a new journal begin again: then the time must be later than all before it.
    """
    if _used(book, seen):
        return True
    known = book.tables.get(table, TableBook())
    if known.last is None:
        return seen.at < book.began
    again = seen.at <= known.last and not _beyond(seen.id, known.newest)
    return again and known.stream != seen.stream


def _position(book: Book, seen: Seen, table: str) -> dict[str, Any]:
    """Where the verdicts of a table stand after this one."""
    known = book.tables.get(table, TableBook())
    newest = seen.id if _beyond(seen.id, known.newest) or not known.newest else known.newest
    return {"stream": seen.stream, "last": max(seen.at, known.last or EARLIEST), "newest": newest}


def _beyond(one: str, other: str) -> bool:
    """Whether the verdict `one` of an edge follows `other` by its number: <edge>:<table>:<seq>/<number>."""
    (place, *mine), (its_place, *its) = (_numbered(text) for text in (one, other))
    return place == its_place and mine > its


def _numbered(verdict: str) -> tuple[str, int, int]:
    text, slash, number = verdict.partition("/")
    place, _, seq = text.rpartition(":")
    if not (slash and seq.isascii() and seq.isdigit() and number.isascii() and number.isdigit()):
        return verdict, 0, 0
    return place, int(seq), int(number)


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
        known = win.award.combination in book.terms.prizes
        why = "device and books differ" if known else f"the terms have no amount for {win.award.combination}"
        raise Refused(f"{why}: let two people set it (price)")
    if win.award.among and order.seats and order.seats != win.award.among:
        raise Refused(f"win {win.id} is of the seats {_list(win.award.among)}, as the rules say; name no others")
    if not win.award.among and (not order.seats or len(set(order.seats)) < len(order.seats)):
        raise Refused(f"the bettors of win {win.id} are not known: name the seats that share it, each once")
    back = 0
    if not win.award.among:
        shares, odd = _shared(win.amount, order.seats, book.terms.odd)
        back = odd if book.terms.odd == "pool" else 0
        win = replace(win, shares=shares, odd=odd, amount=win.amount - back)
    win = replace(win, state="confirmed", confirmed_by=order.person)
    draft.set_win(win)
    postings = {f"pending:{win.id}": -back * book.unit, VISIBLE: back * book.unit}
    draft.post("confirmed", postings, win=win, amount=win.amount, people=(order.person,), table=win.table)
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
        case Price(win=win):
            if not book.win(win).unpriced or book.win(win).state != "pending":
                raise Refused(f"win {win} has an amount already")
        case Transfer(to=to):
            if to == book.pool:
                raise Refused("a pool cannot be transferred to itself")
            if not any(book.balance(account) for account in (VISIBLE, HIDDEN, OVERFLOW)):
                raise Refused(f"{book.pool} holds nothing that could be transferred")
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
            shares, odd = _shared(amount, win.award.among, book.terms.odd)
            less = odd if win.award.among and book.terms.odd == "pool" else 0
            draft.undo(win, reason)
            draft.draw(replace(win, amount=amount - less, shares=shares, odd=odd, unpriced=False))
            draft.reset_if_due(win.round, whole=False)
        case Transfer(to=to, reason=reason):
            held = {account: -draft.balance(account) for account in (VISIBLE, HIDDEN, OVERFLOW)}
            total = -sum(held.values())
            text = f"to {to}: {reason}"
            draft.post("transferred", {**held, TRANSFERRED: total}, amount=total // unit, text=text)


def _set_terms(draft: _Draft, terms: PoolTerms, reason: str) -> None:
    """New terms; all balances are counted in a unit in which the new rates are exact, too."""
    old = draft.book.terms
    draft.recount(_unit(terms))
    draft.update(terms=terms)
    draft.post("changed", {}, old=old, text=reason)
    draft.clip()


def transfer(source: Book, target: Book, order: Approve, name: str, at: datetime) -> tuple[Step, Step]:
    """Approve that all that a pool holds goes to another one. What one book gives the other has. Raises Refused."""
    change = _proposal(source, order.proposal).change
    assert isinstance(change, Transfer), change
    _refuse_while_open(target, change)
    draft = _Draft(target)
    draft.recount(source.unit)
    unit = draft.book.unit
    given = obey(source, order, name, at)
    moved = given[0].balance(TRANSFERRED) - source.balance(TRANSFERRED)
    amount = moved * (unit // source.unit)
    draft.facts = {"people": (_proposal(source, order.proposal).person, order.person), "change": change}
    text = f"from {source.pool}: {change.reason}"
    draft.post("transferred", {TRANSFERRED: -amount, VISIBLE: amount}, amount=amount // unit, text=text)
    draft.clip()
    return given, draft.done()


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
        if value < 0 and account not in OUTSIDE:
            return f"{account} is {value}"
    for win in book.wins:
        held = book.balance(f"pending:{win.id}")
        wanted = win.amount * book.unit if win.state in OPEN else 0
        if held != wanted:
            return f"win {win.id} is {win.state} with {held} set aside, and {wanted} is due"
    known = {f"pending:{one.id}" for one in book.wins}
    stray = [account for account in book.balances if account.startswith("pending:") and account not in known]
    return f"{', '.join(stray)} belongs to no win" if stray else ""
