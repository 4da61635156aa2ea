"""The state of a table of chemin de fer, and the claims on the bank: bets, banco, and who gets the cards. Pure.

`rules/angola/chemin_de_fer.py` calls it. Decreto Executivo 261/22, article 12; the readings:

- 12(44): chips on the line are the bet "half": a half of them plays.
- 12(46), 12(59): bets count in the order in which they were entered; the last one is cut to the rest of the bank.
- 12(49)-(51), 12(56)-(58): banco suivi goes before banco, and that before banco with the table; seated players go
  before standing ones. Banco by a punter who has banco with the table, or was outranked with it, is banco alone.
- 12(52): a coup that ended in a tie ends the right to banco suivi.
- 12(61), 12(62): where no seated player has a bet, the highest bet of a standing one gets the cards.
"""

from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import MOST
from rules.engine.cloth import give_back
from rules.engine.rounds import Round
from rules.engine.ruleset import Wager
from rules.games.chemin_bank import Bank, rank, seated
from rules.games.chemin_coup import Coup

COVER: Final = "cover"
HALF: Final = "half"
UNLIMITED: Final = -1
Claim: TypeAlias = Literal["", "suivi", "banco", "table"]
_CLAIMS: Final = ("suivi", "banco", "table")
ALONE: Final = ("suivi", "banco")


class End(Struct, frozen=True):
    """How a coup ended. The hands are those that lie open; a side that threw its cards away has no total."""

    winner: Literal["player", "banker", "tie"]
    totals: tuple[int, ...] = ()
    player: tuple[str, ...] = ()
    banker: tuple[str, ...] = ()
    burnt: tuple[str, ...] = ()
    natural: bool = False
    articles: tuple[str, ...] = ()


class Position(Struct, frozen=True):
    """The bank, the shoe, and the coup.

    `burn`: cards of a new shoe that are still to be burnt, below 0 until the first of them sets the number, or
    while it is unreadable. `left`:
    coups that may still begin. Of the coup: `closed`: bets are closed; `claim` by `claimant`; `given`: the seat that
    the dealer named for the cards; `looked`: the seat that took up its cards last; `fault`: the fault by which the
    hands are counted; `lost`: bets may be missing; `leaving`: seats that left in it.
    """

    bank: Bank = Bank()
    burn: int = 0
    left: int = UNLIMITED
    coup: Coup = Coup()
    closed: bool = False
    claim: Claim = ""
    claimant: int = 0
    given: int = 0
    looked: int = 0
    fault: str = ""
    lost: bool = False
    leaving: tuple[int, ...] = ()
    end: End | None = None


def between(p: Position, bank: Bank) -> Position:
    """The table without a coup."""
    return Position(bank, p.burn, p.left)


def once(round_: Round) -> Round:
    """The round with one bet at each place, without the returned bets that were laid again."""
    laid, back = {(one.seat, one.bet) for one in round_.wagers}, dict[tuple[int, str], int]()
    for one in round_.given_back:
        if (one.seat, one.bet) not in laid:
            back[one.seat, one.bet] = back.get((one.seat, one.bet), 0) + one.amount
    return replace(round_, given_back=tuple(Wager(seat, bet, amount) for (seat, bet), amount in back.items()))


def plays(one: Wager) -> int:
    """How much of a bet plays: 12(44)."""
    return one.amount // 2 if one.bet == HALF else one.amount


def covered(round_: Round) -> int:
    """The sum of the punters' bets that play."""
    return sum(map(plays, round_.wagers))


def room(p: Position, round_: Round) -> int:
    """The part of the bank that is not covered, limited so that every JSON reader reads the bank exactly."""
    bank = p.bank.amount
    return 0 if p.claim in ALONE else max(min(bank, MOST - bank) - covered(round_), 0)


def by_seat(round_: Round) -> dict[int, int]:
    """The bet of each seat that plays."""
    found: dict[int, int] = {}
    for one in round_.wagers:
        found[one.seat] = found.get(one.seat, 0) + plays(one)
    return found


def punter(p: Position, round_: Round) -> int:
    """The seat that gets the cards: 12(52)-(57), 12(61), 12(62), 12(102), 12(106)(e); 0: none."""
    if p.given or p.claimant:
        return p.given or p.claimant
    laid = by_seat(round_)
    order = sorted(laid, key=lambda seat: (not seated(seat), -laid[seat], rank(seat, p.bank.banker)))
    return order[0] if order else 0


def _worth(bank: Bank, claim: Claim, seat: int) -> tuple[int, bool, bool, tuple[int, int, int]]:
    """The order of claims, the strongest first: 12(49)-(58), 12(93)."""
    alone_after_table = claim == "banco" and seat == bank.table
    return _CLAIMS.index(claim), not alone_after_table, seat in bank.skips, rank(seat, bank.banker)


def outranked(p: Position, claim: Claim, seat: int) -> bool:
    """Whether another punter's claim goes before this one."""
    if not p.claim or p.claimant == seat:
        return False
    return _worth(p.bank, p.claim, p.claimant) <= _worth(p.bank, claim, seat)


def claimed(p: Position, round_: Round, claim: Claim, seat: int, amount: int) -> tuple[Position, Round]:
    """Accept a claim: bets for which the rest of the bank is too small go back, the latest first."""
    others = [one for one in round_.wagers if one.seat not in (seat, p.claimant)]
    rest, kept = p.bank.amount - amount, list[Wager]()
    for one in others:
        if plays(one) <= rest:
            kept.append(one)
            rest -= plays(one)
    round_ = give_back(round_, *(one for one in others if one not in kept))
    own = [one for one in round_.wagers if one.seat == p.claimant != seat]
    round_ = give_back(round_, *own)
    # the chips that the punter had laid are part of the claim
    round_ = once(replace(round_, wagers=(Wager(seat, COVER, amount), *kept)))
    return replace(p, claim=claim, claimant=seat, given=0, coup=replace(p.coup, free=claim in ALONE)), round_
