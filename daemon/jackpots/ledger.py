"""The books of one jackpot pool: a pure double-entry ledger in exact integers.

A `Step` is the next `Book` with the entries that led there; the store writes both in one transaction. Balances count in
1/`unit` of a minor unit, where every contribution is a whole number: fractions of a minor unit stay in the pool and are
never dropped. The balances of all accounts sum to zero.

An input is used once: it names its stream and its number there, and a used number has no effect.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any

from msgspec.structs import replace

from daemon.jackpots.book import (
    HIDDEN,
    HOUSE,
    KEPT_ROUNDS,
    KEPT_STREAMS,
    KEPT_WINS,
    MARGIN,
    MOST_STAKES,
    OF_POOL,
    OPEN,
    OUTSIDE,
    OVERFLOW,
    PENDING,
    PLAYERS,
    SHOWN_WINS,
    UNDONE,
    VISIBLE,
    Book,
    Ended,
    Payment,
    Refused,
    RoundBook,
    Seen,
    Stake,
    Step,
    TableBook,
    most_of,
    unit_of,
)
from daemon.jackpots.prizes import decide, matched
from daemon.jackpots.spill import moved, spilled
from daemon.jackpots.table_payments import forget_payments, settle_payments, take_back_payment, take_payment
from daemon.jackpots.told_amounts import as_reported, terms_of
from daemon.jackpots.values import of_accounts, of_win
from protocols.contract.events import MOST
from protocols.contract.jackpots import (
    ENTRIES,
    BookEntry,
    PendingWin,
    PoolLevel,
    PoolTerms,
    PoolWin,
    Prize,
    ValueChange,
)
from protocols.contract.results import Award, Result
from protocols.contract.topics import EARLIEST

__all__ = [
    "Draft",
    "begin",
    "contribute",
    "end_of",
    "end_round",
    "forget_keys",
    "level_of",
    "note_input",
    "open_round",
    "open_wins",
    "pay_at_table",
    "report_win",
    "simultaneous",
    "unbalanced",
    "unwritable",
]


class Draft:
    """A book under way. `post` checks each entry: it sums to zero, and no account of the pool falls below zero.

    While a round of the past is corrected, `since` is the sum that the pool got after it, or gave (negative). It is not
    counted in the amount that the round decides about, so that a correction has the same effect as the right result at
    its time. `gone`: money, by account, that began the pool again after that round and was won since; it cannot return.
    """

    def __init__(self, book: Book, seen: Seen | None = None) -> None:
        self.book = book
        self.balances = dict(book.balances)
        self.number = book.number
        self.entries: list[tuple[str, BookEntry]] = []
        self.facts: dict[str, Any] = {}
        self.since: dict[str, int] = {}
        self.gone: dict[str, int] = {}
        if seen is not None:
            heard = {**book.heard, seen.stream: seen.seq}
            if len(heard) > KEPT_STREAMS:
                del heard[next(iter(heard))]
            self.book = replace(book, heard=heard)

    def balance(self, account: str) -> int:
        return self.balances.get(account, 0)

    def held(self, account: str) -> int:
        """The amount that an account held for the decided round."""
        return self.balance(account) - self.since.get(account, 0)

    def free(self, account: str) -> int:
        """The amount that this round can take from an account, with the money that counts as gone back."""
        return max(min(self.held(account), self.balance(account) + self.gone.get(account, 0)), 0)

    def shown(self) -> int:
        """The pool before the decided round, in whole minor units; 0 where others since took more than there was."""
        return max(self.held(VISIBLE), 0) // self.book.unit

    def trial(self) -> "Draft":
        """A copy for a trial posting."""
        other = Draft(self.book)
        other.balances, other.since, other.gone = dict(self.balances), dict(self.since), dict(self.gone)
        return other

    def post(self, kind: str, postings: dict[str, int], **facts: Any) -> None:
        assert kind in ENTRIES, kind
        assert not sum(postings.values()), postings
        facts = {**self.facts, **facts}
        if facts.get("people"):
            facts["values"] = (*facts.get("values", ()), *of_accounts(self.balances, postings, self.book.unit))
        for account, change in postings.items():
            after = self.balance(account) + change
            if after < 0 and account not in OUTSIDE:
                raise Refused(f"account {account} would be below zero, {after} in 1/{self.book.unit}")
            self.balances[account] = after
            if not after:
                del self.balances[account]
        self.number += 1
        entry = BookEntry(
            self.number,
            self.book.unit,
            {account: str(value) for account, value in self.balances.items()},
            {account: str(change) for account, change in postings.items() if change},
            **facts,
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
        """Replace the round, or append it; drop the oldest of its table."""
        rounds = {**self.book.rounds, name: round_}
        mine = [key for key, one in rounds.items() if one.table == round_.table]
        for key in mine[:-KEPT_ROUNDS]:
            del rounds[key]
        self.update(rounds=rounds)

    def set_win(self, win: PoolWin) -> None:
        """Replace the win with its id, or append it; drop closed wins beyond KEPT_WINS."""
        wins = list(self.book.wins)
        place = next((place for place, one in enumerate(wins) if one.id == win.id), len(wins))
        wins[place : place + 1] = [win]
        closed = [one for one in wins if one.state not in OPEN]
        gone = {one.id for one in closed[:-KEPT_WINS] if one.round not in self.book.rounds}  # no result corrects them
        self.update(wins=tuple(one for one in wins if one.id not in gone) if gone else tuple(wins))

    def done(self) -> Step:
        return replace(self.book, balances=self.balances, number=self.number), tuple(self.entries)

    # ---- postings that several inputs share

    def recount(self, unit: int) -> None:
        """Count all balances in a unit in which amounts in 1/`unit` are exact, too."""
        book = self.book
        unit = lcm(book.unit, unit)
        times = unit // book.unit
        self.balances = {account: value * times for account, value in self.balances.items()}
        wins = tuple(replace(one, from_house=str(int(one.from_house) * times)) for one in book.wins)
        rounds = {
            name: replace(
                one,
                reseeded=one.reseeded * times,
                refilled={account: value * times for account, value in one.refilled.items()},
                after={account: value * times for account, value in one.after.items()},
            )
            for name, one in book.rounds.items()
        }
        self.update(unit=unit, wins=wins, rounds=rounds)

    def clip(self) -> None:
        """Move the part of the pool above its limit to the overflow."""
        over = self.balance(VISIBLE) - most_of(self.book.terms) * self.book.unit
        if over > 0:
            self.post("adjusted", {VISIBLE: -over, OVERFLOW: over}, text="above the limit")

    def take_stake(self, stake: Stake) -> Stake:
        """Book a bet; the returned stake has its parts."""
        terms, unit = self.book.terms, self.book.unit
        whole = stake.amount * unit
        (shown, by), (kept, per) = _ratio(terms.visible), _ratio(terms.hidden)
        shown, kept = whole * shown // by, whole * kept // per
        room = max(most_of(terms) * unit - self.held(VISIBLE), 0)
        legs = {VISIBLE: min(shown, room), OVERFLOW: max(shown - room, 0), HIDDEN: kept, MARGIN: whole - shown - kept}
        legs = {account: value for account, value in legs.items() if value}
        self.post("contributed", {PLAYERS: -whole, **legs}, seat=stake.seat, amount=stake.amount)
        return replace(stake, legs=legs, unit=unit)

    def return_stake(self, stake: Stake, text: str) -> None:
        """Return a bet from the accounts of its parts; a missing rest comes from the pool, then from the house.

        The house pays the parts that later wins of other rounds took.
        """
        postings = {PLAYERS: stake.amount * self.book.unit, HOUSE: 0}
        short = 0
        for account, value in stake.legs.items():
            wanted = value * self.book.unit // stake.unit
            held = min(wanted, max(self.held(account), 0))
            there = min(held, self.balance(account))
            self.lend(account, held - there)
            short += wanted - held
            postings[account] = -there
            postings[HOUSE] -= held - there
        from_pool = min(short, self.free(VISIBLE) + postings.get(VISIBLE, 0))
        postings[VISIBLE] = postings.get(VISIBLE, 0) - from_pool
        postings[HOUSE] += from_pool - short
        self.post("returned", postings, seat=stake.seat, amount=stake.amount, text=text)

    def draw(self, win: PoolWin, text: str = "", values: tuple[ValueChange, ...] = ()) -> None:
        """Freeze the amount of a new win, from the pool first. `values`: people's changes of it."""
        wanted = win.amount * self.book.unit
        there = self.take(wanted)
        win = replace(win, from_house=str(wanted - there), entry=win.entry or self.number + 1)
        self.set_win(win)
        postings = {VISIBLE: -there, HOUSE: there - wanted, PENDING: wanted}
        self.post("won", postings, win=win, amount=win.amount, text=text, values=values)

    def take(self, wanted: int) -> int:
        """The part of a prize that the pool gives, in whole minor units, without what later wins took."""
        due = min(wanted, self.shown() * self.book.unit)
        there = min(due, self.free(VISIBLE) // self.book.unit * self.book.unit)
        self.lend(VISIBLE, due - there)
        return there

    def lend(self, account: str, amount: int) -> None:
        """Let the house lend the amount that a past round needs and later wins of other rounds took."""
        if amount:
            self.since[account] += amount

    def undo(self, win: PoolWin, text: str) -> None:
        """Return an unpaid win to the accounts that it came from."""
        wanted = win.amount * self.book.unit
        house = min(int(win.from_house), wanted)
        values = of_win(win, win := replace(win, state="reversed"))
        self.set_win(win)
        postings = {PENDING: -wanted, VISIBLE: wanted - house, HOUSE: house}
        self.post("reversed", postings, win=win, amount=win.amount, text=text, values=values)

    def take_from(self, win: PoolWin, pool: int, text: str) -> PoolWin:
        """Move `pool` of a standing win from the house's part to the pool's part."""
        if not pool:
            return win
        win = replace(win, from_house=str(int(win.from_house) - pool))
        self.set_win(win)
        self.post("adjusted", {VISIBLE: -pool, HOUSE: pool}, win=win, text=text)
        return win

    def reset_if_due(self, round_: str, *, whole: bool) -> None:
        """Begin the pool again: from the overflow and the reserve, then up to the seed from the house."""
        terms, unit = self.book.terms, self.book.unit
        seed = terms.seed * unit
        shown = self.held(VISIBLE)
        due = whole or shown < unit or (terms.reseed == "below_seed" and shown < seed)
        if not due:
            return
        most = most_of(terms) * unit
        over = min(self.free(OVERFLOW), max(most - shown, 0))
        kept = min(self.free(HIDDEN), max(most - shown - over, 0))
        house = max(seed - shown - over - kept, 0)
        given = {OVERFLOW: over, HIDDEN: kept, HOUSE: house}
        given = {account: value - self.give_gone(account, value) for account, value in given.items()}
        postings = {VISIBLE: sum(given.values()), **{account: -value for account, value in given.items()}}
        if not postings[VISIBLE]:
            return
        self.post("reset", postings, amount=(shown + over + kept + house) // unit)
        known = self.book.rounds.get(round_)
        if known is not None:
            refilled = {name: known.refilled.get(name, 0) + given[name] for name in (HIDDEN, OVERFLOW)}
            self.round(round_, reseeded=known.reseeded + given[HOUSE], refilled=refilled)

    def undo_reset(self, round_: str, text: str, most: int | None = None) -> None:
        """Undo the new beginning of the pool after a round: house, reserve and overflow get back what they gave.

        `most`: the part that is still there, if some of it went to another pool.
        """
        known = self.book.rounds[round_]
        there = self.free(VISIBLE) if most is None else most
        given = {HOUSE: known.reseeded, **known.refilled}
        back = {}
        for account in (HOUSE, HIDDEN, OVERFLOW):
            back[account] = min(given.get(account, 0), there)
            there -= back[account]
            if self.since:
                self.move_gone(account, given.get(account, 0) - back[account])
        if total := sum(back.values()):
            self.post("adjusted", {VISIBLE: -total, **back}, text=text)
            kept = {name: given.get(name, 0) - back[name] for name in (HIDDEN, OVERFLOW)}
            self.round(round_, reseeded=known.reseeded - back[HOUSE], refilled=kept)

    def move_gone(self, account: str, amount: int) -> None:
        """Count an amount that cannot go back as returned; a negative one as given again."""
        self.gone[account] = self.gone.get(account, 0) + amount
        self.since[VISIBLE] = self.since.get(VISIBLE, 0) + amount
        if account in OF_POOL:
            self.since[account] = self.since.get(account, 0) - amount

    def give_gone(self, account: str, wanted: int) -> int:
        """Count up to `wanted` of the amounts that could not go back as given again; returns the amount."""
        amount = min(wanted, self.gone.get(account, 0))
        if amount:
            self.move_gone(account, -amount)
        return amount

    def go_back(self, rounds: Sequence[str]) -> None:
        """Count the pool as it was after the last of these rounds."""
        after = self.book.rounds[max(rounds, key=self.order)].after
        if after:
            self.since = {account: self.balance(account) - after[account] for account in OF_POOL}

    def come_back(self, round_: str, before: dict[str, int]) -> None:
        """Count the pool as it is now; the changes of the correction hold for later rounds as well.

        `before`: the accounts before it. Overflow since then returns to the pool, as far as the correction made room.
        """
        for account, amount in self.gone.items():
            self.give_gone(account, amount)
        change = {account: self.balance(account) - before.get(account, 0) for account in OF_POOL}
        overflow = before.get(OVERFLOW, 0) - self.since.get(OVERFLOW, 0)
        most = most_of(self.book.terms) * self.book.unit
        self.note(round_)
        if back := spilled(before, change, overflow, most):
            text = "above the limit no more" if back > 0 else "above the limit"
            self.post("adjusted", {OVERFLOW: -back, VISIBLE: back}, text=text)
        self.since = {}
        for name in self.behind(round_):
            if (known := self.book.rounds[name]).after:
                behind = moved(known, change, overflow, most, self.book.unit)
                self.update(rounds={**self.book.rounds, name: behind})

    def order(self, round_: str) -> tuple[int, datetime, str]:
        """The sort key of the rounds of the books: the place, then the time for rounds decided again at one place."""
        known = self.book.rounds[round_]
        return known.place, known.at or EARLIEST, round_

    def behind(self, round_: str) -> list[str]:
        """The rounds after this one."""
        order = self.order(round_)
        return [name for name in self.book.rounds if self.order(name) > order]

    def note(self, round_: str) -> None:
        """Store the balances of the pool after a round."""
        place = self.book.rounds[round_].place or 1 + max(one.place for one in self.book.rounds.values())
        self.round(round_, after={account: self.held(account) for account in OF_POOL}, place=place)

    def shift(self, rounds: Sequence[str], before: dict[str, int]) -> None:
        """Assign the changes since `before` to a round before these."""
        change = {account: self.balance(account) - before.get(account, 0) for account in OF_POOL}
        for name in rounds:
            if after := self.book.rounds[name].after:
                self.round(name, after={account: after[account] + change[account] for account in OF_POOL})

    def shift_from(self, round_: str, before: dict[str, int]) -> None:
        """Assign the changes that people made since `before` to the round of the win."""
        if round_ in self.book.rounds:
            self.shift([round_, *self.behind(round_)], before)

    def decide_again(self, win: PoolWin, new: PoolWin | None, text: str) -> None:
        """Give a win the amount that two people decided, or reject it. The order of events does not change it again."""
        before = dict(self.balances)
        known = self.book.rounds.get(win.round)
        if known is not None:
            self.round(win.round, settled=True)
            self.go_back((win.round,))
        self.undo(win, text)
        if known is not None:
            self.undo_reset(win.round, UNDONE)
        if new is not None:
            self.draw(new, values=of_win(win, new))
        standing = [
            one for one in self.book.wins if one.round == win.round and one.state not in ("reversed", "contested")
        ]
        if known is not None or new is not None:
            self.reset_if_due(win.round, whole=any(one.whole for one in standing))
        if known is not None:
            self.come_back(win.round, before)
        self.clip()

    def freeze(self, name: str, wins: Sequence[PoolWin], text: str = "") -> None:
        """Set the new wins of a round aside."""
        known = self.book.rounds[name]
        ids = {one.id for one in self.book.wins}
        first = known.numbered + 1
        while f"{name}/{first}" in ids:
            first += 1
        self.round(name, numbered=first - 1 + len(wins))
        for number, one in enumerate(wins, first):
            at = known.at or EARLIEST
            self.draw(replace(one, id=f"{name}/{number}", table=known.table, round=name, at=at), text)


def begin(pool: str, terms: PoolTerms, at: datetime) -> Step:
    """New books: the house gives the seed."""
    draft = Draft(Book(pool, terms, at, unit_of(terms), {}))
    seed = terms.seed * draft.book.unit
    draft.post("reset", {HOUSE: -seed, VISIBLE: seed}, amount=terms.seed, text="the pool begins")
    return draft.done()


def join(book: Book, table: str, at: datetime) -> Step:
    """Begin to count a table: for a pool that used no input yet from its beginning, for any other pool from `at`."""
    draft = Draft(book)
    draft.table(table, since=at if book.heard else None)
    return draft.done()


@lru_cache(256)
def _ratio(rate: str) -> tuple[int, int]:
    """Numerator and denominator. Cached: parsing a fraction costs more than the rest of a bet."""
    return Fraction(rate).as_integer_ratio()


# ---- bets and rounds


def contribute(book: Book, seen: Seen, table: str, seat: int, amount: int, *, rounds: bool = True) -> Step:
    """Book a bet that a device took. A bet that a void round carried here was booked before and is not counted again.

    `rounds`: whether rules report the ends of this table's rounds; without them bets are never returned.
    """
    known = book.tables.get(table, TableBook())
    if _used(book, seen) or (seen.at < book.since(table) and known.sensors != seen.stream):
        return note_input(book, seen)
    draft = Draft(book, seen)
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


def note_input(book: Book, seen: Seen) -> Step:
    """Note an input that changes nothing, so that it is not requested again."""
    return (book, ()) if _used(book, seen) else Draft(book, seen).done()


def open_round(book: Book, seen: Seen, table: str, round_: str) -> Step:
    """Note that a round opened at a table: changes wait until it ends."""
    if _not_ours(book, seen, table):
        return note_input(book, seen)
    draft = Draft(book, seen)
    draft.table(table, open=round_, **_position(book, seen, table))
    return draft.done()


def end_of(result: Result, table: str, bet: str, award: str, *, by_rules: bool, until: int = 0) -> Ended:
    """The end of a round for a pool. `bet`: the ruleset's id of its bet; `award`: of its jackpot, "" for any."""
    bets = "taken" if result.void is None else result.void.jackpot_bets or "returned"
    taken = result.void is None and not result.demo
    mine = [one for one in result.settlements if one.bet == bet and taken]
    stakes = tuple((one.seat, one.stake) for one in mine if not one.returned)
    given_back = tuple((one.seat, one.stake) for one in mine if one.returned and not by_rules)
    awards = tuple(one for one in result.jackpots if award in ("", one.jackpot) and taken)
    by = stakes if by_rules else None
    return Ended(result.round, table, awards, bets, by, until, result.supersedes, given_back)


def end_round(book: Book, seen: Seen, ended: Ended) -> Step:
    """Book the end of a round, or a correction of its result."""
    if _not_ours(book, seen, ended.table):
        return note_input(book, seen)
    draft = Draft(book, seen)
    draft.table(ended.table, **_position(book, seen, ended.table))
    if book.tables.get(ended.table, TableBook()).open in (ended.round, ended.corrects):
        draft.table(ended.table, open="")
    if ended.corrects != ended.round and {ended.corrects, ended.round} <= book.rounds.keys():
        # It supersedes an earlier round, whose bets are returned; for its own round it is a correction.
        stakes = None if ended.stakes is None else ()
        _end(draft, seen, Ended(ended.corrects, ended.table, (), "returned", stakes, ended.until, ended.corrects))
        ended = replace(ended, corrects=ended.round)
    _end(draft, seen, ended)
    return draft.done()


def _end(draft: Draft, seen: Seen, ended: Ended) -> None:
    """Book a result, or its difference from the one before."""
    draft.facts = {"table": ended.table, "round": ended.round}
    earlier = ended.corrects if ended.corrects in draft.book.rounds else ended.round
    known = draft.book.rounds.get(earlier)
    if known is not None and known.table != ended.table:
        draft.post("noted", {}, text=f"a result of a round of {known.table}: settle it by a change")
        return
    if known is None and ended.corrects:
        draft.post("noted", {}, text="a correction of a round that these books no longer have: settle it by a change")
        return
    if known is None:
        known = RoundBook(ended.table)
    elif earlier != ended.round:
        draft.update(rounds={key: one for key, one in draft.book.rounds.items() if key != earlier})
    numbers = {"until": known.until or ended.until, "corrected": max(known.corrected, ended.until)}
    draft.put_round(ended.round, replace(known, at=known.at or seen.at, **numbers))
    if ended.corrects:
        take_back_payment(draft, earlier, ended.until)
    mine = [one for one in draft.book.wins if one.round == earlier and one.state != "reversed"]
    near = simultaneous(draft.book, ended.round) if ended.awards != known.awards else ()
    again = bool(near) and all(one.state == "pending" for one in mine)
    rounds = near if again else (ended.round,)
    before = dict(draft.balances)
    if known.place:
        draft.go_back(rounds)
    if again:
        for name in reversed(near):
            _roll_back(draft, name)
    else:
        _correct(draft, ended, known, mine)
    if again or not mine:
        _settle_stakes(draft, ended, known, in_order=again)
        draft.round(ended.round, awards=ended.awards)
        _decide_in_order(draft, rounds)
    draft.reset_if_due(ended.round, whole=False)
    if known.place:
        draft.come_back(rounds[-1], before)
        _note_later_wins(draft, rounds[-1], before)
    else:
        draft.clip()
        draft.note(rounds[-1])
    settle_payments(draft, ended.table)


def _note_later_wins(draft: Draft, round_: str, before: dict[str, int]) -> None:
    """Note for people the wins that were decided by an amount of the pool that a correction changed."""
    later = {*draft.behind(round_)}
    wins = sum(one.round in later and one.state != "reversed" for one in draft.book.wins)
    if wins and any(draft.balance(account) != before.get(account, 0) for account in (*OF_POOL, HOUSE)):
        draft.post("noted", {}, text=f"later wins stay as announced, {wins}: of the corrected pool they may be others")


def _correct(draft: Draft, ended: Ended, known: RoundBook, mine: Sequence[PoolWin]) -> None:
    """Decide a round with wins again if its result differs. For a round without wins, undo the pool's new beginning."""
    if not mine:
        draft.undo_reset(ended.round, UNDONE)
        return
    movable = all(one.state == "pending" for one in mine) and not known.settled
    base = _base_of(draft, ended, known, mine) if movable else known.base
    kept, new = matched(draft.book.terms, (known.base, base), known.awards, mine, ended.awards)
    stands = {one.id for one in kept}
    same = len(kept) == len(mine) and not new and not _other_bets(ended, known)
    for one in mine:
        if one.id not in stands:
            _drop(draft, one)
    if not same:
        text = "the house lends it while its round is corrected"
        kept = [draft.take_from(one, int(one.from_house) - one.amount * draft.book.unit, text) for one in kept]
        if not any(one.whole and one.state in ("paid", "contested") for one in mine if one.id not in stands):
            draft.undo_reset(ended.round, UNDONE)  # after a pay-out the pool has begun again
        _settle_stakes(draft, ended, known, in_order=False)
    draft.round(ended.round, awards=ended.awards, base=base)
    for one in kept:
        upheld = replace(one, round=ended.round, state="paid" if one.state == "contested" else one.state)
        draft.set_win(upheld)
        draft.post("upheld", {}, win=upheld, amount=one.amount, text="the corrected result names it, too")
        if not same:
            draft.take_from(upheld, draft.take(int(one.from_house)), "the pool gives it as before the correction")
    draft.freeze(ended.round, new)
    if not same:
        draft.reset_if_due(ended.round, whole=any(one.whole for one in (*kept, *new)))


def _base_of(draft: Draft, ended: Ended, known: RoundBook, mine: Sequence[PoolWin]) -> int:
    """The amount of the pool before the round's wins, with the bets of the corrected result."""
    trial = draft.trial()
    for one in mine:
        trial.undo(one, "")
    trial.undo_reset(ended.round, "")
    _settle_stakes(trial, ended, known, in_order=False)
    return trial.shown() // known.parts


def _other_bets(ended: Ended, known: RoundBook) -> bool:
    """Whether the corrected result has other bets, or treats them differently."""
    if ended.stakes is None:
        return ended.bets != known.bets
    return sorted(ended.stakes) != sorted((one.seat, one.amount) for one in known.stakes)


def simultaneous(book: Book, round_: str) -> tuple[str, ...]:
    """The rounds to decide again because `round_` wins: itself and later ones, in the order of their events.

    Those whose wins are all pending and were neither rejected nor priced, each at most the window of the terms after
    the one before. Where whole pools are shared equally: from the first of them on. Empty where the order of arrival
    applies.
    """
    window = timedelta(seconds=book.terms.simultaneous_s)
    if not window or book.rounds[round_].settled:
        return ()
    moved = {one.round for one in book.wins if one.state not in ("pending", "reversed")}
    moved |= {name for name, one in book.rounds.items() if one.settled}
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


def _roll_back(draft: Draft, name: str) -> None:
    """Undo the effects of a round on the pool, to book it again in the order of the events."""
    known = draft.book.rounds[name]
    facts = draft.facts
    draft.facts = {"table": known.table, "round": name}
    there = draft.free(VISIBLE)  # a seed that went to another pool is not taken from the wins
    for win in reversed([one for one in draft.book.wins if one.round == name and one.state == "pending"]):
        draft.undo(win, "decided again: another table won at nearly the same time")
    draft.undo_reset(name, "the pool had not begun again", there)
    stakes = []
    for one in known.stakes:
        from_rules = not one.seq
        if from_rules and one.legs:
            draft.return_stake(one, "counted again in the order of the events")
        stakes.append(replace(one, legs={}) if from_rules else one)
    draft.round(name, stakes=tuple(stakes))
    draft.facts = facts


def _decide_in_order(draft: Draft, rounds: Sequence[str]) -> None:
    """Decide the wins of rounds one after the other, each by the pool at that moment.

    By an option of the terms, rounds that win the whole pool have equal parts of it.
    """
    equal = draft.book.terms.simultaneous == "share_equally"
    facts = draft.facts
    waiting = [name for name in rounds if draft.book.rounds[name].whole] if equal else []
    shared = False
    places = [draft.book.rounds[name].place for name in rounds]
    for name in rounds:  # at the place of the last one, or at the end if one is new
        draft.round(name, place=max(places) if all(places) else 0)
    for name in rounds:
        known = draft.book.rounds[name]
        draft.facts = {"table": known.table, "round": name}
        if not all(one.legs for one in known.stakes):
            draft.round(name, stakes=tuple(one if one.legs else draft.take_stake(one) for one in known.stakes))
        if known.awards:
            parts = len(waiting) if name in waiting else 1
            base = draft.shown() // parts
            draft.round(name, base=base, parts=parts)
            draft.freeze(name, *as_reported(known, decide(terms_of(draft.book.terms, known), base, known.awards)))
            shared = shared or name in waiting
            waiting = [one for one in waiting if one != name]
            if not (shared and waiting):
                draft.reset_if_due(name, whole=known.whole)
        draft.note(name)
    draft.facts = facts


def _drop(draft: Draft, win: PoolWin) -> None:
    """Drop a win that the corrected result does not name. A paid one is contested: the money stays out."""
    if win.state in OPEN:
        draft.undo(win, "the corrected result does not name it")
    elif win.state == "paid":
        win = replace(win, state="contested")
        draft.set_win(win)
        draft.post("contested", {}, win=win, amount=win.amount, text="paid, and the corrected result does not name it")


def _settle_stakes(draft: Draft, ended: Ended, known: RoundBook, *, in_order: bool) -> None:
    """Book the bets of the round: taken, returned, or carried to the next round of the table.

    `in_order`: new bets that the rules report are taken when the round is decided.
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
    if ended.corrects:  # later bets are of the next round
        for one in known.stakes:
            mine = _like(one, credit) if known.bets == "carried" else one
            if mine is None or known.bets == "returned":  # it went to the next round or to the players
                mine = draft.take_stake(one)
            elif known.bets == "carried":
                credit = _without(credit, mine)
            stakes += (mine,)
    else:
        stakes = (*credit, *(one for one in later if one.seq <= ended.until))
        credit, later = (), tuple(one for one in later if one.seq > ended.until)
    stakes = _without_alone(draft, stakes, ended.given_back)
    draft.round(ended.round, stakes=stakes, bets=ended.bets)
    if ended.bets == "returned":
        for one in stakes:
            draft.return_stake(one, "the round is void: its bets are returned")
    elif ended.bets == "carried":
        credit += stakes
    for one in later:  # reported before the verdict came
        if (carried := _like(one, credit)) is not None:
            credit = _without(credit, carried)
            later = (*_without(later, one), replace(carried, seq=one.seq))
            draft.return_stake(one, "taken in the void round before")
    draft.table(ended.table, stakes=later, credit=credit)


def _without_alone(draft: Draft, stakes: tuple[Stake, ...], given_back: Sequence[tuple[int, int]]) -> tuple[Stake, ...]:
    """Return the bets that the rules gave back; the result is the other bets."""
    for seat, amount in given_back:
        if (alone := _like(Stake(seat, amount), stakes)) is not None:
            stakes = _without(stakes, alone)
            draft.return_stake(alone, "it cannot stand without a main bet")
    return stakes


def _like(stake: Stake, among: Sequence[Stake]) -> Stake | None:
    """The entry with the same seat and amount."""
    return next((one for one in among if (one.seat, one.amount) == (stake.seat, stake.amount)), None)


def _without(stakes: tuple[Stake, ...], stake: Stake) -> tuple[Stake, ...]:
    """The list without the first equal entry."""
    if stake not in stakes:
        return stakes
    at = stakes.index(stake)
    return stakes[:at] + stakes[at + 1 :]


def report_win(book: Book, seen: Seen, table: str, level: int, seat: int, amount: int, shown: int = 0) -> Step:
    """Book a win that a device reports; `amount`: the one that it reports, used if the terms have none.

    The books decide the amount. A prize of the whole pool has the amount that the device showed (`shown`): later bets
    elsewhere stay in the pool. If the device reports another amount, two people set it.
    """
    known = book.tables.get(table, TableBook())
    if _used(book, seen) or (seen.at < book.since(table) and known.sensors != seen.stream):
        return note_input(book, seen)
    draft = Draft(book, seen)
    name = f"level_{level}"
    prize = book.terms.prize(book.pool, name)
    kind = prize or Prize()
    award = Award(book.pool, name, kind.pays, "", "" if kind.share == "0" else kind.share, (seat,) if seat else ())
    draft.facts = {"table": table, "round": seen.id}
    reported = amount if prize is None and amount else -1
    draft.put_round(seen.id, RoundBook(table, at=seen.at, reported=reported, told=amount, shown=shown))
    near = simultaneous(draft.book, seen.id)
    for one in reversed(near):
        _roll_back(draft, one)
    draft.round(seen.id, awards=(award,))
    _decide_in_order(draft, near or (seen.id,))
    return draft.done()


def pay_at_table(book: Book, seen: Seen, table: str, by: str, round_: str) -> Step:
    """Book the payment key on the device `by`: prizes under the house's limit were paid there."""
    if _used(book, seen):
        return note_input(book, seen)
    draft = Draft(book, seen)
    take_payment(draft, table, Payment(seen.seq, seen.id, by, round_))
    return draft.done()


def forget_keys(book: Book, table: str) -> Step:
    """The edge has a new journal: drop its payment keys, and the old numbers of its rounds."""
    draft = Draft(book)
    forget_payments(draft, table)
    return draft.done()


def _used(book: Book, seen: Seen) -> bool:
    """Whether this input was used: delivered twice, or again after a crash."""
    return seen.seq <= book.heard.get(seen.stream, 0)


def _not_ours(book: Book, seen: Seen, table: str) -> bool:
    """Whether a verdict was used, is older than the pool, or is repeated by another journal of the rules.

    Clocks of edges may be set back: a verdict with a higher number than all before it is new, at any time. The numbers
    of an edge with a new journal begin again: then its time must be later than all before it.
    """
    if _used(book, seen):
        return True
    known = book.tables.get(table, TableBook())
    if known.last is None:
        return seen.at < book.since(table)
    again = seen.at <= known.last and not _beyond(seen.id, known.newest)
    return again and known.stream != seen.stream


def _position(book: Book, seen: Seen, table: str) -> dict[str, Any]:
    """The position of a table's verdicts after this one."""
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


# ---- views and checks


def level_of(book: Book, currency: str, decimals: int, at: datetime | None) -> PoolLevel:
    """The level for displays and readers."""
    waiting = open_wins(book)
    pending = tuple(
        PendingWin(one.id, one.table, one.round, one.award.combination, one.amount, one.state, one.shares)
        for one in waiting[:SHOWN_WINS]
    )
    set_aside = str(book.balance(PENDING) // book.unit)
    level = PoolLevel(book.pool, book.amount, currency, decimals, book.number, at, pending, book.proposals)
    return replace(level, waiting=len(waiting), set_aside=set_aside)


def open_wins(book: Book, state: str = "") -> list[PoolWin]:
    """The wins that wait, the oldest first; `state`: only those in this one."""
    return [one for one in book.wins if one.state in OPEN and state in ("", one.state)]


def unbalanced(book: Book) -> str:
    """Why the books do not balance; "" where they do."""
    if total := sum(book.balances.values()):
        return f"the accounts sum to {total} and not to zero"
    for account, value in book.balances.items():
        if value < 0 and account not in OUTSIDE:
            return f"{account} is {value}"
    wanted = sum(one.amount for one in open_wins(book)) * book.unit
    if (held := book.balance(PENDING)) != wanted:
        return f"{held} is set aside for wins, but the open wins are {wanted}"
    return ""


def unwritable(step: Step) -> str:
    """Why these entries and the book after them would be unreadable; "" where they are not."""
    book, entries = step
    if said := unbalanced(book):
        return said
    amounts = [book.amount, *(one.amount for one in open_wins(book)), *(abs(entry.amount) for _, entry in entries)]
    return f"{max(amounts)} minor units are more than {MOST}" if max(amounts) > MOST else ""
