"""The state of a table of poker without a bank: its seats between the hands, and the hand under way. Pure.

`seated` determines who is dealt in and the first bets; `closed` the chips of each seat after a hand. The games call
both (`rules/games/poker_game.py`).

Readings of Decreto Executivo 261/22:

- 13(6), 13(30): seats are numbered clockwise from the dealer's left, and the hand goes to the next one that plays. It
  moves on after a void deal, too: each new deal moves it. A hand that ended before anything was dealt keeps its place.
- 13(13): a player who rests for a third deal in a row is noted once.
- 14(8): a seat with less than the table minimum before it is not dealt in.
- 14(9): a new player at whose seat the hand would be plays from the next deal on.
- 14(18): after a blind bet the count of deals without a bet begins anew. A bet posted then counts, unlike that of
  14(19).
- 14(19): a seat that rests while the small or the big bet passes it owes that bet when it plays again.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import MOST
from protocols.contract.reasons import Reason, say
from rules.engine.facts import Note
from rules.games.poker_betting import Betting, Limits, opened
from rules.games.poker_hands import Ranking
from rules.games.poker_pots import Payment, Pot

LEAST_PLAYERS: Final = 4
"""Art. 13(24)."""
MOST_RESTS: Final = 2
"""Art. 13(13)."""
IDLE_DEALS: Final = 5
"""Art. 14(18)."""
MAX_ASIDE: Final = 5
"""The most early cards kept of a hand: as many as there are common cards. A stuck shoe must not fill the memory."""


class Variant(Struct, frozen=True):
    """One of the games. `streets`: how many common cards lie after each; `ante`: each seat lays one, without blinds."""

    ranking: Ranking
    seats: int
    streets: tuple[int, ...]
    burns: bool
    ante: bool = False


class Deal(Struct, frozen=True, gc=False):
    """The hand under way.

    `began`: all chips of its seats before the first bets. `own`: the cards of each seat, as far as known; nobody may
    see them before the showdown. `given`: own cards that a shoe reported, `packets` those of a shuffler. `unread`: how
    many own cards could not be read: each may be no card; the later ones would then be of other seats. `street`:
    complete common deals. `burnt`: the card before the next street is out; `burnt_after`: that of the street after it,
    too (13(70)(e)). `speaker`: whose turn was first in the last round of bets. `aside`: the last common cards that came
    too early. `turned`: whose card was turned in the deal (13(70)(c)). `acted`: a bet was reported after the first
    bets. `unheard`: an action or a card was reported while the hand was suspended. `notes`: notes not yet published.
    `paid`, `back`, `pots`, `strengths`: at its end.
    """

    bets: Betting
    began: int
    own: dict[int, tuple[str, ...]] = {}
    given: int = 0
    packets: int = 0
    unread: int = 0
    board: tuple[str, ...] = ()
    street: int = 0
    speaker: int = 0
    burnt: bool = False
    burnt_after: bool = False
    aside: tuple[str, ...] = ()
    turned: int = 0
    acted: bool = False
    unheard: bool = False
    shown: tuple[int, ...] = ()
    notes: tuple[Note, ...] = ()
    paid: tuple[Payment, ...] | None = None
    back: dict[int, int] = {}
    pots: tuple[Pot, ...] = ()
    strengths: dict[int, int] = {}

    @property
    def dealt(self) -> bool:
        """Whether cards were dealt, or may have been."""
        return bool(self.given or self.packets or self.board or self.acted)

    def has(self, card: str) -> bool:
        """Whether it is already an own or a common card of the hand."""
        for cards in (*self.own.values(), self.board):  # noqa: SIM110 - for each card: `any` takes twice as long
            if card in cards:
                return True
        return False

    def opener(self) -> int:
        """The seat that shows first: the first bettor of the last round, or its first speaker (13(62))."""
        live = self.bets.live()
        if self.bets.opener in live or not self.speaker:
            return self.bets.opener if self.bets.opener in live else live[0]
        return next(seat for seat in (self.speaker, *self.bets.after(self.speaker)) if seat in live)


class Position(Struct, frozen=True, gc=False):
    """The seats, and the hand. `stacks`: the chips of each seat before a hand begins.

    `hand`, `big`: the seats that had them in the last deal; `named`: the seat that has the hand next by the dealer's
    entry. `resting`: the number of deals. `fresh`: joined since the last deal. `idle`: deals without a bet. `missed`:
    first bets that a seat owes. `leaving`: seats that left in the hand. `unsure`: seats whose chips may not be known.
    """

    stacks: dict[int, int] = {}
    hand: int = 0
    big: int = 0
    named: int = 0
    resting: dict[int, int] = {}
    fresh: tuple[int, ...] = ()
    idle: dict[int, int] = {}
    missed: dict[int, int] = {}
    leaving: tuple[int, ...] = ()
    unsure: tuple[int, ...] = ()
    deal: Deal | None = None


def _from(seats: list[int], after: int) -> list[int]:
    """The seats clockwise from the left of `after`."""
    return [seat for seat in seats if seat > after] + [seat for seat in seats if seat <= after]


def between(seats: list[int], one: int, other: int) -> list[int]:
    """The seats that lie clockwise between two."""
    found = []
    for seat in _from(seats, one):
        if seat == other:
            break
        found.append(seat)
    return [seat for seat in found if seat != one]


def seated(p: Position, variant: Variant, limits: Limits) -> tuple[Position, Reason | None]:
    """The next hand, or why none can begin: too few players 13(24), or unknown stacks."""
    at_rest = {seat: deals + 1 for seat, deals in p.resting.items() if seat in p.stacks}
    able = sorted([seat for seat, chips in p.stacks.items() if seat not in at_rest and chips >= limits.minimum])
    order = _from(able, p.hand)
    if p.named in order:
        order = [p.named, *_from([seat for seat in able if seat != p.named], p.named)]
    elif not variant.ante and p.hand and order[:1] and order[0] in p.fresh:
        order = order[1:]
    if p.unsure or sum(p.stacks.values()) > MOST:
        return replace(p, deal=None), say("stacks_unknown")
    if len(order) < LEAST_PLAYERS:
        return replace(p, deal=None), say("too_few_players", n=len(order), least=LEAST_PLAYERS)
    hand, big = order[0], order[1]
    notes = [
        Note("stack_below_minimum", say("seat_alone", seat=seat), "14(8)")
        for seat, chips in p.stacks.items()
        if 0 < chips < limits.minimum and seat not in at_rest
    ]
    notes += [
        Note("rests_too_long", say("seat_alone", seat=seat), "13(13)")
        for seat, deals in at_rest.items()
        if deals == MOST_RESTS + 1
    ]
    missed = dict(p.missed)
    if variant.ante:
        posts, owed = dict.fromkeys(order, 0), dict.fromkeys(order, limits.minimum)
    else:
        small = limits.minimum // 2
        for one, other, bet in ((p.hand, hand, small), (p.big, big, limits.minimum)):
            for seat in between(sorted(at_rest), one, other) if one and at_rest else ():
                missed[seat] = missed.get(seat, 0) + bet
        posts = {seat: limits.minimum for seat in order if p.idle.get(seat, 0) >= IDLE_DEALS}
        posts |= {hand: small, big: limits.minimum}
        owed = {seat: missed.pop(seat) for seat in order if missed.get(seat)} if missed else {}
    level = 0 if variant.ante else limits.minimum
    stacks = {seat: p.stacks[seat] for seat in order}
    bets = Betting(tuple(order), stacks, posts=posts, owed=owed, level=level)
    if not variant.ante:
        bets = opened(bets, order[2 % len(order)], level, fresh=False)
    deal = Deal(bets, sum(stacks.values()), notes=tuple(notes))
    return replace(p, hand=hand, big=big, named=0, resting=at_rest, missed=missed, deal=deal), None


def net(deal: Deal) -> dict[int, int]:
    """The gain or loss of each seat after a paid hand."""
    put = deal.bets.put().by_seat()
    after = {seat: deal.back.get(seat, 0) - put.get(seat, 0) for seat in deal.bets.order}
    for one in deal.paid or ():
        after[one.seat] += one.amount
    return after


def closed(p: Position, *, void: bool) -> Position:
    """The seats after the hand. A void hand returns the chips of each seat.

    A correction may take more from a seat than its stack was entered with since: then its chips are not known.
    """
    deal = p.deal
    if deal is None:
        return p
    stacks, idle = dict(p.stacks), dict(p.idle)
    if not void:
        for seat, more in net(deal).items():
            stacks[seat] = stacks.get(seat, 0) + more
        for seat in deal.bets.order:
            idle[seat] = 0 if deal.bets.bets.get(seat) else idle.get(seat, 0) + 1
    for seat in p.leaving:
        stacks.pop(seat, None)
    short = [seat for seat, chips in stacks.items() if chips < 0]
    stacks |= dict.fromkeys(short, 0)
    unsure = tuple(dict.fromkeys((*p.unsure, *short)))
    idle = {seat: deals for seat, deals in idle.items() if seat in stacks}
    p = replace(p, stacks=stacks, idle=idle, leaving=(), unsure=unsure, deal=None)
    if void and not deal.dealt:
        return replace(p, named=deal.bets.order[0])
    return replace(p, fresh=tuple(seat for seat in p.fresh if seat not in deal.bets.order))


def again(now: Position, ended: Position) -> Position:
    """The hand that ended in `ended`, open again at the present seats; later changes stay.

    Seats of the hand that were closed in it or since have no stack after it either.
    """
    if ended.deal is None:
        return now
    taken = net(ended.deal) if ended.deal.paid is not None else {}
    stacks = {seat: chips - taken.get(seat, 0) for seat, chips in now.stacks.items()}
    left = tuple([seat for seat in ended.deal.bets.order if seat not in stacks])
    return replace(
        now, stacks=stacks, leaving=left, deal=replace(ended.deal, paid=None, back={}, pots=(), strengths={})
    )
