"""Orders of people about a pool: confirmations, payments, and changes that a second person approves. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from daemon.jackpots.book import (
    HIDDEN,
    HOUSE,
    KEPT_ORDERS,
    MOST_PROPOSALS,
    OPEN,
    OVERFLOW,
    PAID,
    PENDING,
    TRANSFERRED,
    VISIBLE,
    Book,
    Refused,
    Step,
    TableBook,
    most_of,
    unit_of,
)
from daemon.jackpots.ledger import Draft
from daemon.jackpots.prizes import equal_shares, gross
from daemon.jackpots.values import of_terms, of_win, proposed
from protocols.contract.jackpots import (
    Adjust,
    Approve,
    Confirm,
    ConfirmMany,
    Order,
    Pay,
    PayMany,
    PoolTerms,
    Price,
    Proposal,
    Propose,
    Reject,
    Reset,
    SetTerms,
    Transfer,
    WhyZero,
    Withdraw,
)
from protocols.contract.people import may_be_one_person, same_person

__all__ = ["obey", "transfer"]


def obey(book: Book, order: Order, name: str, at: datetime) -> Step:
    """Carry out an order, once; `name` is its request's id. Raises Refused."""
    if name in book.orders:
        return book, ()
    draft = Draft(book)
    draft.update(orders=(*book.orders, name)[-KEPT_ORDERS:])
    match order:
        case Confirm():
            _confirm(draft, order)
        case Pay():
            _pay(draft, order)
        case ConfirmMany(person=person, wins=wins):
            for one in wins:
                _confirm(draft, Confirm(person, one))
        case PayMany(person=person, wins=wins):
            for one in wins:
                _pay(draft, Pay(person, one))
        case Propose(person=person, change=change):
            if len(book.proposals) >= MOST_PROPOSALS:
                raise Refused(f"{MOST_PROPOSALS} changes wait already; approve or withdraw one of them")
            _check_change(book, change)
            draft.update(proposals=(*book.proposals, Proposal(name, person, at, change)))
            values = proposed(book, change)
            draft.post("proposed", {}, people=(person,), change=change, text=name, values=values)
        case Approve(person=person, proposal=which):
            found = _proposal(book, which)
            if same_person(found.person, person):
                raise Refused(f"{found.person} proposed it: another person must approve it")
            _refuse_other_kind(found.person, person)
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


def _confirm(draft: Draft, order: Confirm) -> None:
    book = draft.book
    win = book.win(order.win)
    if win.state != "pending":
        raise Refused(f"win {win.id} is {win.state} already")
    if win.unpriced:
        known = win.award.combination in book.terms.prizes
        why = "device and books differ" if known else f"the terms have no amount for {win.award.combination}"
        raise Refused(f"{why}: let two people set it (price)")
    if win.award.among and order.seats and order.seats != win.award.among:
        raise Refused(f"win {win.id} is of the seats {_list(win.award.among)}, as the rules report; name no others")
    if not win.award.among and (not order.seats or len(set(order.seats)) < len(order.seats)):
        raise Refused(f"the bettors of win {win.id} are not known: name the seats that share it, each once")
    more, there = 0, 0
    if not win.award.among and win.award.each:
        more = win.amount * (len(order.seats) - 1) * book.unit
        there = min(more, draft.balance(VISIBLE) // book.unit * book.unit)
        shares = tuple((seat, win.amount) for seat in order.seats)
        house = str(int(win.from_house) + more - there)
        win = replace(win, shares=shares, amount=win.amount * len(order.seats), from_house=house)
    elif not win.award.among:
        shares, odd = equal_shares(win.amount, order.seats, book.terms.odd)
        more = there = -odd * book.unit if book.terms.odd == "pool" else 0
        win = replace(win, shares=shares, odd=odd, amount=win.amount + more // book.unit)
    if not win.amount and not win.why_zero:
        win = replace(win, why_zero="more_seats_than_coins")
    win = replace(win, state="confirmed", confirmed_by=order.person)
    values = of_win(book.win(win.id), win)
    draft.set_win(win)
    before = dict(draft.balances)
    postings = {PENDING: more, VISIBLE: -there, HOUSE: there - more}
    people = (order.person,)
    draft.post("confirmed", postings, win=win, amount=win.amount, people=people, table=win.table, values=values)
    if more > 0:
        draft.reset_if_due(win.round, whole=False)
    draft.clip()
    draft.shift_from(win.round, before)


def _pay(draft: Draft, order: Pay) -> None:
    book = draft.book
    win = book.win(order.win)
    if win.state != "confirmed":
        remedy = "; a person must confirm it first" if win.state == "pending" else ""
        raise Refused(f"win {win.id} is {win.state}{remedy}")
    if same_person(win.confirmed_by, order.person):
        raise Refused(f"{win.confirmed_by} confirmed it: another person must pay it")
    _refuse_other_kind(win.confirmed_by, order.person)
    if open_ := book.tables.get(win.table, TableBook()).open:
        raise Refused(f"round {open_} is open at {win.table}: pay when it has ended")
    values = of_win(win, win := replace(win, state="paid", paid_by=order.person))
    draft.set_win(win)
    amount = win.amount * book.unit
    people = (win.confirmed_by, order.person)
    facts: dict[str, Any] = {"table": win.table, "round": win.round, "values": values}
    draft.post("paid", {PENDING: -amount, PAID: amount}, win=win, amount=win.amount, people=people, **facts)


def _refuse_other_kind(first: str, second: str) -> None:
    """Raises Refused if one name is of a local account and the other of the provider: a person may have both kinds."""
    if may_be_one_person(first, second):
        raise Refused(
            f"{first} has another kind of account, and a person may have both kinds: let a user of the same kind do it"
        )


def _refuse_while_open(book: Book, change: object) -> None:
    """Raises Refused while a round is open at any table of the pool; for a win, at its own table only."""
    tables = [book.win(change.win).table] if isinstance(change, Reject | Price) else list(book.tables)
    open_ = [one for name in tables if (one := book.tables.get(name, TableBook()).open)]
    if open_:
        raise Refused(f"round {', '.join(sorted(open_))} is open: approve it when no round is open")


def _check_change(book: Book, change: object) -> None:
    """Raises Refused for a change that the present books do not allow."""
    match change:
        case Adjust(account=account, amount=amount):
            if book.balance(account) + amount * book.unit < 0:
                there = book.balance(account) // book.unit
                raise Refused(f"{account} holds {there}; it cannot give {-amount}")
            limit = most_of(book.terms)
            if account == VISIBLE and book.balance(VISIBLE) + amount * book.unit > limit * book.unit:
                raise Refused(f"the pool would be above its limit, {limit}")
        case Reject(win=win):
            if book.win(win).state not in OPEN:
                raise Refused(f"win {win} is {book.win(win).state}: it cannot be rejected")
        case Price(win=win, amount=amount):
            known = book.win(win)
            if not known.unpriced or known.state != "pending":
                raise Refused(f"win {win} has an amount already")
            by_device = not known.award.law  # the device's report may be less
            if not by_device and amount < (share := gross(known, book.terms)):
                raise Refused(f"the share of the pool is {share}; the larger of both is paid: set at least this amount")
        case Transfer(to=to):
            if to == book.pool:
                raise Refused("a pool cannot be transferred to itself")
            if not any(book.balance(account) for account in (VISIBLE, HIDDEN, OVERFLOW)):
                raise Refused(f"{book.pool} holds nothing that could be transferred")
        case _:
            pass


def _change(draft: Draft, change: object) -> None:
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
            draft.decide_again(book.win(name), None, reason)
        case Price(win=name, amount=amount, reason=reason):
            win = book.win(name)
            shares, odd = equal_shares(amount, win.award.among, book.terms.odd)
            less = odd if win.award.among and book.terms.odd == "pool" else 0
            priced = replace(win, amount=amount - less, shares=shares, odd=odd, unpriced=False)
            why: WhyZero = "" if priced.amount else "more_seats_than_coins" if amount else "set_to_zero"
            priced = replace(priced, why_zero=why)
            draft.decide_again(win, priced, reason)
        case Transfer(to=to, reason=reason):
            held = {account: -draft.balance(account) for account in (VISIBLE, HIDDEN, OVERFLOW)}
            total = -sum(held.values())
            text = f"to {to}: {reason}"
            draft.post("transferred", {**held, TRANSFERRED: total}, amount=total // unit, text=text)


def _set_terms(draft: Draft, terms: PoolTerms, reason: str) -> None:
    """New terms; all balances are counted in a unit in which the new rates are exact, too."""
    old = draft.book.terms
    draft.recount(unit_of(terms))
    draft.update(terms=terms)
    draft.post("changed", {}, old=old, text=reason, values=of_terms(old, terms))
    draft.clip()


def transfer(source: Book, target: Book, order: Approve, name: str, at: datetime) -> tuple[Step, Step]:
    """Approve the transfer of a pool's whole balance to another one, in both books. Raises Refused."""
    change = _proposal(source, order.proposal).change
    assert isinstance(change, Transfer), change
    _refuse_while_open(target, change)
    draft = Draft(target)
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
