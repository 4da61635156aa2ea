"""Decisions about the bank of chemin de fer between coups: named, passed, taken, auctioned, reduced. Pure.

`rules/angola/chemin_de_fer.py` calls it with each `seat.acted` that names one of DECISIONS, and with `hand.passed`. A
decision that the text does not allow changes nothing and is noted with its paragraph of Decreto Executivo 261/22,
article 12.
"""

from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import MOST
from protocols.contract.reasons import say
from rules.engine.cloth import give_back
from rules.engine.facts import PLAIN, Effect, Note
from rules.engine.rounds import Round
from rules.games.chemin_bank import (
    Bank,
    Bid,
    bid,
    exists,
    knocked_down,
    leaves,
    next_hand,
    passed,
    reduced,
    seated,
    seated_at,
    take,
)
from rules.games.chemin_coup import Coup
from rules.games.chemin_table import Position, once

LARGEST_BANK: Final = MOST // 4
REDUCTIONS: Final = {"garage": "12(34)", "halve": "12(33)", "reduce": "12(47)"}
DECISIONS: Final = frozenset(
    (
        *("bank", "association", "outside", "pass", "take", "auction", "bid", "bid_half", "absent", "moved"),
        *REDUCTIONS,
    )
)
Decided: TypeAlias = tuple[Position, Effect]


class Least(Struct, frozen=True):
    """The house's limits in minor units. `bank`: the smallest bank; `base`, `step`: an auction's first bid and step."""

    bank: int
    base: int
    step: int


def note(code: str, seat: int, article: str) -> Note:
    """The note of an irregularity of a seat."""
    return Note(code, say("seat_alone", seat=seat), article)


def noted(code: str, seat: int, article: str) -> Effect:
    """An effect that only notes an irregularity of a seat."""
    return Effect((note(code, seat, article),), evidence=False)


def without(p: Position, seat: int, round_: Round) -> Decided:
    """Return the bets of a seat, and drop its claim on the bank."""
    if seat == p.claimant:
        p = replace(p, claim="", claimant=0, coup=Coup())
    return p, Effect(round=once(give_back(round_, *(one for one in round_.wagers if one.seat == seat))))


def decide(p: Position, action: str, seat: int, amount: int, round_: Round | None, least: Least) -> Decided:
    """Apply one of DECISIONS. `round_`: the open round, whose bets are not closed yet."""
    bank, covered = p.bank, round_ is not None and bool(round_.wagers)
    if p.closed:
        return p, noted("bank_in_coup", seat, "12(105)(a)")
    match action:
        case "take":
            return _taken(p, seat, round_)
        case "bid" | "bid_half":
            return _bid(p, Bid(seat, amount, action == "bid_half"), least)
        case "moved":  # 12(93)
            skips = tuple(dict.fromkeys((*bank.skips, seat)))
            return replace(p, bank=replace(seated_at(bank, seat), skips=skips)), PLAIN
        case "auction":
            offer = bank.offer
            if offer is None or offer.auction or offer.taker:
                return p, noted("no_auction", seat, "12(81)")
            return replace(p, bank=replace(bank, offer=replace(offer, auction=True))), PLAIN
        case "bank":
            return _told(p, seat, amount, least, covered=covered)
        case "association":
            free = bank.amount and not bank.partner and not bank.dealt and seat != bank.banker
            if covered or not free or bank.amount > LARGEST_BANK:
                return p, noted("no_partner", seat, "12(31)")
            return replace(p, bank=replace(seated_at(bank, seat), partner=seat, amount=2 * bank.amount)), PLAIN
    if seat != bank.banker or (covered and action != "outside"):
        return p, noted("not_the_banker" if not covered else "bank_covered", seat, _ARTICLES[action])
    return _of_banker(p, action, seat, least)


def _of_banker(p: Position, action: str, seat: int, least: Least) -> Decided:
    """Apply a decision that only the banker may take."""
    bank = p.bank
    match action:
        case "outside":
            return replace(p, bank=replace(bank, outside=True)), PLAIN
        case "pass":
            return _passes(p, seat)
        case "absent":
            if bank.dealt:
                return p, noted("hand_not_due", seat, "12(95)")
            return replace(p, bank=leaves(bank, seat)), noted("seat_lost", seat, "12(95)")
        case _:
            smaller = reduced(bank, action, least.bank)
            if smaller is None:
                return p, noted("no_reduction", seat, REDUCTIONS[action])
            return replace(p, bank=smaller), PLAIN


_ARTICLES: Final = {**REDUCTIONS, "outside": "12(48)", "pass": "12(78)", "absent": "12(95)"}


def _told(p: Position, seat: int, amount: int, least: Least, *, covered: bool) -> Decided:
    """Arts. 12(35), 12(39): the banker names the amount of the bank, again while it is uncertain or not covered."""
    bank = seated_at(p.bank, seat)
    if bank.unsure or bank.banker not in bank.seats:
        bank = at_seat(bank, seat)
    if seat != bank.banker or bank.dealt or covered or bank.offer or bank.partner:
        return p, noted("hand_not_due", seat, "12(39)")
    if not least.bank <= amount <= LARGEST_BANK:
        return p, noted("bank_below_minimum" if amount < least.bank else "stack_too_large", seat, "12(35)")
    return replace(p, bank=replace(bank, amount=amount, unsure=False)), PLAIN


def at_seat(bank: Bank, seat: int) -> Bank:
    """The bank moved to the seat that the dealer names, without an amount."""
    regular = seat if seated(seat) else bank.regular
    return Bank(seats=bank.seats, skips=bank.skips, banker=seat, regular=regular, unsure=bank.unsure)


def _passes(p: Position, seat: int) -> Decided:
    """Pass the hand: after a coup won or tied (12(77), 12(78)), or before its first coup (12(86), 12(89))."""
    bank = p.bank
    if bank.dealt or bank.bought:
        ours = bank.offer is None or bank.bought
        return (replace(p, bank=passed(bank)), PLAIN) if ours else (p, noted("hand_not_due", seat, "12(78)"))
    if bank.offer is not None:
        return p, noted("hand_not_due", seat, "12(81)")
    if bank.before:
        return replace(p, bank=leaves(bank, seat)), noted("seat_lost", seat, "12(86)")
    return replace(p, bank=next_hand(bank)), PLAIN


def _taken(p: Position, seat: int, round_: Round | None) -> Decided:
    """Arts. 12(79)-(82): a seat takes the hand; until a card is dealt a seat of higher rank may take it."""
    bank = take(seated_at(p.bank, seat), seat)
    if bank is None:
        return p, noted("hand_not_due", seat, "12(82)")
    p = replace(p, bank=bank)
    return without(p, seat, round_) if round_ is not None else (p, PLAIN)


def _bid(p: Position, one: Bid, least: Least) -> Decided:
    """Arts. 12(83), 12(87)-(91): a bid in the auction of the bank."""
    found = bid(seated_at(p.bank, one.seat), one, least.base, least.step) if one.amount <= LARGEST_BANK else "wrong_bid"
    if isinstance(found, Bank):
        return replace(p, bank=found), PLAIN
    law = {"no_auction": "12(81)", "wrong_bid": "12(83)"}.get(found) or _barred_by(p.bank)
    return p, noted(found, one.seat, law)


def _barred_by(bank: Bank) -> str:
    """The paragraph that bars a seat from bidding; it depends on how the hand was passed."""
    if not bank.dealt:
        return "12(89)"
    return "12(90)" if bank.tied else "12(91)" if bank.bought and bank.won == 1 else "12(87)"


def handed(p: Position, seat: int, least: Least) -> Decided:
    """Apply `hand.passed`: an auction ends; where no bank is known, the dealer names the banker."""
    bank = p.bank
    if p.closed:
        return p, noted("bank_in_coup", seat, "12(105)(a)")
    if bank.offer is not None and bank.offer.auction and not bank.offer.taker:
        p = replace(p, bank=knocked_down(bank, least.bank))
        return p, noted("hand_not_due", seat, "12(85)") if seat not in (0, p.bank.banker) else PLAIN
    if seat and exists(seat) and (bank.unsure or not bank.banker or not (bank.amount or bank.dealt)):
        return replace(p, bank=at_seat(seated_at(bank, seat), seat)), PLAIN
    return p, PLAIN if seat in (0, bank.banker) else noted("hand_not_due", seat, "12(82)")
