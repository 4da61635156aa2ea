"""Who holds the bank of chemin de fer, and how much it is: passing, offers, the auction, garage, partners. Pure.

`rules/angola/chemin_de_fer.py` calls it. Amounts are minor units: `amount` is the bank in play, `aside` what was taken
out of it in this hand.

Decreto Executivo 261/22, article 12; the readings:

- 12(3): seats 1 to 9 go round to the right of the dealer, so the right of a seat is the next higher one that is taken.
  The first player who stands behind seat 4 is 14, the next is 24: 12(24), 12(50).
- 12(31): half of the bank, and of its wins and losses, is the partner's; an odd chip is the banker's.
- 12(33), 12(34), 12(47): chips taken out of the bank lie aside until the hand ends: they are the banker's.
- 12(81), 12(82): a passed hand is at the seat of the highest rank that took it, until a card is out. The passer ranks
  last: he keeps it where nobody else takes it.
- 12(86): the next in order is the next seated player at the right of the passer.
- 12(87), 12(90), 12(91): the passer may not bid in the auction that follows; his partner may not after a won coup.
- 12(88): two seats that bid the same with "bid_half" bid together; one half alone is no bid.
- 12(92), 12(80): the last regular banker is the last seated one.
"""

from itertools import takewhile
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

SEATS: Final = 9
LEAST_SEATED: Final = 4
"""Art. 12(16)."""
Winner: TypeAlias = Literal["player", "banker", "tie"]


class Bid(Struct, frozen=True):
    """The bid of a seat for the bank, alone or as one half of a pair."""

    seat: int
    amount: int
    half: bool = False


class Offer(Struct, frozen=True):
    """A hand that was passed. `level`: the amount of the bank; `taker`: the seat that has taken it (0: none)."""

    passer: int
    level: int
    barred: tuple[int, ...]
    auction: bool = False
    bids: tuple[Bid, ...] = ()
    taker: int = 0


class Bank(Struct, frozen=True):
    """The seats, and the hand that one of them has.

    `amount` is 0 until the banker has named it. `won`: coups of this hand; `may`: the reductions allowed now ("halve",
    "garage", "reduce"). `last`: the winner of its last coup, None before the first one; `takings`: the gain of its last
    won coup. `bought`: at an auction; `before`: the seat that passed it. `regular`: the last seated banker. `skips`:
    seats that changed place ahead of their turn. `suivi`: the seat that lost banco in the last coup; `table`: the seat
    that had banco with the table; `no_banco`: the seat that passed on a tie. `outside`: the banker pays the percentage
    beside the bank. `unsure`: events are missing, so the bank must be entered again.
    """

    seats: tuple[int, ...] = ()
    banker: int = 0
    partner: int = 0
    amount: int = 0
    aside: int = 0
    won: int = 0
    may: tuple[str, ...] = ()
    last: Winner | None = None
    takings: int = 0
    bought: bool = False
    before: int = 0
    regular: int = 0
    skips: tuple[int, ...] = ()
    suivi: int = 0
    table: int = 0
    no_banco: int = 0
    outside: bool = False
    unsure: bool = False
    offer: Offer | None = None

    @property
    def dealt(self) -> bool:
        """Whether this hand has had a coup."""
        return self.last is not None

    @property
    def tied(self) -> bool:
        """Whether its last coup was a tie."""
        return self.last == "tie"

    def shares(self, amount: int) -> dict[int, int]:
        """The shares of banker and partner in an amount."""
        half = amount // 2 if self.partner else 0
        return {self.banker: amount - half} | ({self.partner: half} if self.partner else {})


# ---- seats in order


def place(seat: int) -> int:
    """The seat at the cloth: that of a standing player is the one he stands behind."""
    return seat % 10


def exists(seat: int) -> bool:
    """Whether the table has such a place."""
    return place(seat) != 0


def seated(seat: int) -> bool:
    """Whether it is a seat, and not a standing place."""
    return seat <= SEATS


def rank(seat: int, after: int) -> tuple[int, int, int]:
    """The order of priority from the right of `after`: seated players first, then standing ones as they came."""
    return int(not seated(seat)), (place(seat) - place(after) - 1) % SEATS, seat


def in_turn(bank: Bank) -> tuple[int, ...]:
    """The seated players in the order in which the hand reaches them."""
    after = bank.banker if seated(bank.banker) else bank.regular
    return tuple(sorted(filter(seated, bank.seats), key=lambda seat: rank(seat, after)))


def seated_at(bank: Bank, seat: int) -> Bank:
    """The bank after a player arrives at this place."""
    return bank if seat in bank.seats else replace(bank, seats=(*bank.seats, seat))


def first_bank(bank: Bank) -> Bank:
    """Art. 12(29): the first seated player at the dealer's right."""
    seats = sorted(filter(seated, bank.seats))
    return _at(bank, seats[0]) if seats else bank


def _at(bank: Bank, seat: int, amount: int = 0, *, bought: bool = False, partner: int = 0, before: int = 0) -> Bank:
    """A new hand at a seat."""
    regular = seat if seated(seat) else bank.regular
    return replace(
        bank,
        banker=seat,
        partner=partner,
        amount=amount,
        aside=0,
        won=0,
        may=(),
        last=None,
        takings=0,
        bought=bought,
        before=before,
        regular=regular,
        outside=False,
    )


def next_hand(bank: Bank) -> Bank:
    """The hand goes to the right; it jumps seats whose players changed place ahead of their turn, once (12(93))."""
    turn = in_turn(bank)
    jumped = tuple(takewhile(bank.skips.__contains__, turn))
    bank = replace(bank, skips=tuple(seat for seat in bank.skips if seat not in jumped), offer=None)
    return _at(bank, turn[len(jumped) % len(turn)]) if turn else bank


def leaves(bank: Bank, seat: int) -> Bank:
    """The bank after a player leaves; the hand of a banker goes to the right."""
    rest = tuple(one for one in bank.seats if one != seat)
    bank = replace(bank, seats=rest, skips=tuple(one for one in bank.skips if one != seat))
    if seat == bank.partner:
        amount, aside = (bank.shares(chips)[bank.banker] for chips in (bank.amount, bank.aside))
        bank = replace(bank, partner=0, amount=amount, aside=aside)
    if seat != bank.banker:
        return bank
    return next_hand(bank) if any(map(seated, rest)) else replace(bank, banker=0, amount=0, partner=0, aside=0)


# ---- the hand is passed: art. 12(77)-(91)


def passed(bank: Bank) -> Bank:
    """The banker gives the hand up; his chips go back to him."""
    barred = (bank.banker, *(() if bank.tied or not bank.partner else (bank.partner,)))
    if not bank.dealt and bank.bought:  # 12(89): he refuses the first coup
        barred = (bank.banker, bank.before)
    offer = Offer(bank.banker, bank.amount, tuple(seat for seat in barred if seat), auction=not bank.dealt)
    return replace(bank, offer=offer, no_banco=bank.banker if bank.tied else 0)


def take(bank: Bank, seat: int) -> Bank | None:
    """A seat takes the passed hand at its level; None where one of a higher rank has it, or it is auctioned."""
    offer = bank.offer
    if offer is None or offer.auction:
        return None
    first = offer.passer if seated(offer.passer) else bank.regular  # 12(80)

    def ranked(one: int) -> tuple[bool, bool, tuple[int, int, int]]:
        return one == offer.passer, one in bank.skips, rank(one, first)

    if offer.taker and ranked(offer.taker) <= ranked(seat):
        return None
    if seat == offer.passer:  # as it was
        return replace(bank, offer=replace(offer, taker=seat))
    taken = _at(bank, seat, offer.level, before=offer.passer)
    return replace(taken, offer=replace(offer, taker=seat))


def bid(bank: Bank, one: Bid, least: int, step: int) -> Bank | str:
    """The bank after a bid at the auction, or why the bid is invalid."""
    offer = bank.offer
    if offer is None or not offer.auction or offer.taker:
        return "no_auction"
    if one.seat in offer.barred:
        return "may_not_bid"
    if one.amount < least or (one.amount - least) % step:
        return "wrong_bid"
    others = tuple(other for other in offer.bids if other.seat != one.seat)
    return replace(bank, offer=replace(offer, bids=(*others, one)))


def knocked_down(bank: Bank, least: int) -> Bank:
    """The end of the auction: 12(81), 12(84)-(86), 12(88)."""
    offer = bank.offer
    assert offer is not None
    best, winners = (0, False, 0, 0, 0), tuple[int, ...]()
    for one in offer.bids:
        pair = [one.seat]
        if one.half:
            same = [other for other in offer.bids if other.half and other.amount == one.amount]
            pair = sorted((other.seat for other in same), key=lambda seat: rank(seat, offer.passer))[:2]
            if len(pair) < 2:
                continue
        standing, right, seat = rank(pair[0], offer.passer)
        worth = (one.amount, not one.half, -standing, -right, -seat)
        if worth > best:
            best, winners = worth, (*pair, 0)[:2]
    if not winners:
        turn = replace(bank, banker=offer.passer) if seated(offer.passer) else bank
        found = replace(next_hand(turn), amount=least, before=offer.passer)
        return replace(found, offer=None)
    sold = _at(bank, winners[0], best[0], bought=True, partner=winners[1], before=offer.passer)
    return replace(sold, offer=replace(offer, taker=winners[0]))


# ---- the capital


def reduced(bank: Bank, how: str, least: int) -> Bank | None:
    """Chips of the bank are laid aside: "halve" 12(33), "garage" 12(34), "reduce" 12(47); None: not now."""
    left = 2 * bank.takings if how == "reduce" else bank.amount - bank.amount // 2
    if how not in bank.may or left < least:
        return None
    return replace(bank, amount=left, aside=bank.aside + bank.amount - left, may=())


def after_coup(bank: Bank, winner: Winner, laid: int, kept: int) -> Bank:
    """The bank after a coup in which the punters had laid `laid`; after a lost coup the next hand."""
    bank = replace(bank, last=winner, offer=None, may=())
    if winner == "player":
        return next_hand(bank)
    if winner == "tie":
        return bank
    won = bank.won + 1
    garage = ("garage",) if won >= 3 and won % 2 else ()
    amount = bank.amount + laid - (0 if bank.outside else kept)
    may = (*garage, *(("reduce",) if 2 * laid < amount else ()))
    return replace(bank, amount=amount, won=won, may=may, takings=laid)
