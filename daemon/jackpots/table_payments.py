"""Small prizes that the dealer pays at the table, booked by the payment key. Pure; the ledger calls it.

A key pays the round that ended last before it, by the numbers of the edge's events, or the round that it names.
Verdicts and keys come on two streams; the order of arrival does not affect the books. A key does not pay a later
result. Times are not compared, because clocks of edges may be set back; the numbers begin again with a new journal, and
then earlier keys and rounds are no longer compared.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from daemon.jackpots.book import OPEN, PAID, PENDING, Book, Payment, TableBook
from daemon.jackpots.values import of_win
from protocols.contract.jackpots import PoolWin

if TYPE_CHECKING:
    from daemon.jackpots.ledger import Draft

__all__ = ["forget_payments", "settle_payments", "take_back_payment", "take_payment"]

KEPT_PAYMENTS = 10
"""Kept payments of each table. A dropped payment stays valid."""
AT_TABLE = "paid at the table with the payment key"


def take_payment(draft: "Draft", table: str, payment: Payment) -> None:
    """Note a pressed payment key."""
    known = draft.book.tables.get(table, TableBook())
    draft.table(table, payments=(*known.payments, payment)[-KEPT_PAYMENTS:])
    settle_payments(draft, table)


def forget_payments(draft: "Draft", table: str) -> None:
    """Drop the keys of an edge with a new journal, whose numbers begin again."""
    draft.table(table, payments=())
    for name, known in draft.book.rounds.items():
        if known.table == table:
            draft.round(name, until=0)


def settle_payments(draft: "Draft", table: str) -> None:
    """Book the payments by the keys of a table; undo those that a later verdict shows to be of another round."""
    keys = _round_of_each(draft.book, table)
    paid = _by_round(draft.book, keys)
    round_of = {payment.id: round_ for payment, round_ in keys}
    facts = draft.facts
    for win in [one for one in draft.book.wins if one.at_table and one.table == table]:
        known, payment = draft.book.rounds.get(win.round), paid.get(win.round)
        draft.facts = {"table": table, "round": win.round}
        if known is None:
            continue
        if payment is not None and win.state in OPEN and payment.seq > known.corrected:
            amount = win.amount * draft.book.unit
            over = replace(win, state="paid", paid_by=payment.by, paid_event=payment.id)
            values = of_win(win, over)
            draft.set_win(over)
            people = tuple(one for one in (win.confirmed_by, payment.by) if one)
            postings = {PENDING: -amount, PAID: amount}
            draft.post("paid", postings, win=over, amount=win.amount, people=people, text=AT_TABLE, values=values)
        elif win.state == "paid" and round_of.get(win.paid_event, win.round) != win.round:
            _unpay(draft, win, "the payment key was of another round")
    draft.facts = facts


def take_back_payment(draft: "Draft", round_: str, until: int) -> None:
    """Undo a payment by a key pressed after the correction by event `until`; `settle_payments` books the key again."""
    for win in [one for one in draft.book.wins if one.round == round_ and one.paid_event and one.state == "paid"]:
        payments = draft.book.tables.get(win.table, TableBook()).payments
        if any(one.id == win.paid_event and one.seq > until for one in payments):
            _unpay(draft, win, "the result was corrected before the payment key")


def _unpay(draft: "Draft", win: PoolWin, text: str) -> None:
    amount = win.amount * draft.book.unit
    win = replace(win, state="confirmed" if win.confirmed_by else "pending", paid_by="", paid_event="")
    draft.set_win(win)
    draft.post("adjusted", {PAID: -amount, PENDING: amount}, win=win, amount=win.amount, text=text)


def _round_of_each(book: Book, table: str) -> list[tuple[Payment, str]]:
    """Each key of a table with the round that it pays, "" for none."""
    ended = {name: one.until for name, one in book.rounds.items() if one.table == table and one.until}
    found = []
    for payment in book.tables.get(table, TableBook()).payments:
        before = [name for name, until in ended.items() if until < payment.seq]
        named = payment.round or max(before, key=ended.__getitem__, default="")
        found.append((payment, named if named in before else ""))
    return found


def _by_round(book: Book, keys: list[tuple[Payment, str]]) -> Mapping[str, Payment]:
    """The first payment key of each round after its last correction, or the last one before that."""
    paid: dict[str, Payment] = {}
    for payment, round_ in keys:
        if round_ and (round_ not in paid or paid[round_].seq < book.rounds[round_].corrected):
            paid[round_] = payment
    return paid
