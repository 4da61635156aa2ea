"""The betting rounds of one hand of poker where players play each other: whose turn, how much, who is all-in. Pure.

`Betting` is the state of the bets of a hand. `opened` begins a round, `act` applies the action of a seat; it returns
the irregularities and never raises. The games determine who begins a round, and when the next card comes.

An action's `chips` are all that cross the line with it (13(53)); 0 with a call or a post means the due amount. "all_in"
lays the whole stack, whatever that is: a call, a bet or a raise.

Readings of Decreto Executivo 261/22:

- 13(21)(a), (b), 14(15): the pot that bounds a raise has the call in it; by option it is the pot as it lies.
- 13(39)(d): of a bet above the maximum the excess goes back. One below the minimum is not taken: that seat acts again.
- 13(47), 14(16), 14(17): at most three raises in a round, counted over all seats; a first bet is no raise. Any number
  where two are left.
- 13(49): a seat with less than a raise's minimum may lay it all; that is no raise, and seats that have acted may only
  call or fold.
- 13(55): a seat that has acted and has no further turn has bet already: chips laid then go back.
- 13(71)(c): chips too few for a call stay; the seat completes or gives up, and raises no more in that round.
- 13(71)(d): "call" with more chips is a call, the rest goes back.
- 13(71)(f): an action out of turn stands at once, and the seat may not raise any more in that round.
- 14(20), 16(17): a missing first bet is due with the seat's next chips; a seat that gives up does not pay it.
- 16(12): after a blind raise the others lay twice as much, and the raiser acts last; only he may raise it further.
- 16(12)(a), (b): it is at most the chips before the seat; the excess goes back. Another seat doubles it with all
  chips that this takes, or not at all: with fewer it calls and plays for its part (16(12)(c)).
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from rules.games.poker_pots import Put

Limit: TypeAlias = Literal["half_pot", "pot", "stack"]
ACTIONS: Final = ("fold", "check", "call", "bet", "raise", "all_in")
BLIND: Final = ("blind_raise", "blind_reraise")


class Limits(Struct, frozen=True):
    """The choices of a house. `maximum`: of one bet or raise, 0: no other limit; `raises`: in a round, 0: any
    number.
    """

    minimum: int
    limit: Limit = "stack"
    maximum: int = 0
    raises: int = 3
    pot_with_call: bool = True


class Fault(Struct, frozen=True):
    """An irregularity of an action, with its article. `chips`: the returned chips. `taken`: whether the action
    counts.
    """

    code: str
    article: str
    chips: int = 0
    taken: bool = True


NO_FAULTS: Final[tuple[Fault, ...]] = ()


class Betting(Struct, frozen=True, gc=False):
    """The bets of one hand. `order`: the seats dealt in, from the hand on; `stacks`: the chips before them.

    `bets` of the whole hand, `street` of this round, `dead` beside the bets: antes and missed blinds. `posts`: first
    bets that are due, `owed`: dead chips that are due. `killed`: dead hands. `waiting`: who is still to act, in order.
    `level`: the amount that each must have laid in this round. `bound`: seats that may not raise any more in it.
    `opener`: the seat that bet first, `highest`: the seat that bet most.
    """

    order: tuple[int, ...]
    stacks: Mapping[int, int]
    bets: Mapping[int, int] = {}
    street: Mapping[int, int] = {}
    dead: Mapping[int, int] = {}
    posts: Mapping[int, int] = {}
    owed: Mapping[int, int] = {}
    folded: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    level: int = 0
    raises: int = 0
    bound: tuple[int, ...] = ()
    opener: int = 0
    highest: int = 0
    blind: int = 0

    def plays(self, seat: int) -> bool:
        """Whether the seat plays for the pot."""
        return seat in self.order and seat not in self.folded and seat not in self.killed

    def count(self) -> int:
        """How many seats play for the pot."""
        return len(self.order) - len(self.folded) - len(self.killed)

    def live(self) -> tuple[int, ...]:
        """The seats that play for the pot."""
        out = self.folded + self.killed
        return tuple([seat for seat in self.order if seat not in out]) if out else self.order

    def can_bet(self) -> tuple[int, ...]:
        """Those of them that have chips left."""
        stacks, out = self.stacks, self.folded + self.killed
        return tuple([seat for seat in self.order if stacks[seat] and seat not in out])

    def pot(self) -> int:
        """All chips that were laid."""
        return sum(self.bets.values()) + sum(self.dead.values())

    def put(self) -> Put:
        """The chips that each seat laid."""
        return Put(self.bets, self.dead)

    def due(self, seat: int) -> int:
        """The chips that a call costs the seat."""
        needed = max(self.level - self.street.get(seat, 0), 0) + self.owed.get(seat, 0)
        return min(needed, self.stacks[seat])

    def after(self, seat: int) -> tuple[int, ...]:
        """The seats clockwise from the left of `seat`, itself last."""
        place = self.order.index(seat) + 1
        return self.order[place:] + self.order[:place]


def most(b: Betting, seat: int, limits: Limits) -> int:
    """The most that the seat may raise by, above its call (13(21), 14(15))."""
    call = b.due(seat)
    left = b.stacks[seat] - call
    if limits.limit != "stack":
        pot = b.pot() + (call if limits.pot_with_call else 0)
        bound = max(pot // 2 if limits.limit == "half_pot" else pot, limits.minimum)
        left = min(left, bound)
    return min(left, limits.maximum) if limits.maximum else left


def may_raise(b: Betting, seat: int, limits: Limits) -> bool:
    """Whether the seat may raise at all."""
    spent = limits.raises and b.raises >= limits.raises and b.count() > 2
    return seat not in b.bound and not spent and most(b, seat, limits) > 0


def actions(b: Betting, limits: Limits) -> tuple[str, ...]:
    """The actions of the seat at its turn (13(39))."""
    if not b.waiting:
        return ()
    seat = b.waiting[0]
    first = ("fold", "call" if b.due(seat) else "check")
    return (*first, "raise" if b.level else "bet") if may_raise(b, seat, limits) else first


def opened(b: Betting, first: int, level: int = 0, *, fresh: bool = True) -> Betting:
    """Begin a round of bets with the first seat from `first` on that has chips. `fresh`: no bet is laid in it yet.

    No seat has to act where it plays alone for the pot, or is the only one with chips and owes none.
    """
    rest = b.after(first)
    able = b.can_bet()
    waiting = tuple([seat for seat in (rest[-1], *rest[:-1]) if seat in able])
    street = {} if fresh else b.street
    b = replace(b, street=street, level=level, raises=0, bound=(), opener=0, highest=0, blind=0, waiting=waiting)
    goes_on = len(waiting) > 1 or any(b.due(seat) for seat in waiting)
    return b if goes_on and b.count() > 1 else replace(b, waiting=())


def act(b: Betting, seat: int, action: str, chips: int, limits: Limits) -> tuple[Betting, tuple[Fault, ...]]:
    """One action of a seat."""
    if seat not in b.waiting:
        if not b.plays(seat):
            return b, (Fault("not_in_hand", "13(39)", chips, taken=False),)
        code, article = ("acted_twice", "13(55)") if b.waiting else ("no_betting", "13(40)")
        return b, (Fault(code, article, chips, taken=False),)
    faults, more = NO_FAULTS, NO_FAULTS
    if chips > b.stacks[seat]:
        faults = (Fault("more_than_stack", "13(14)(e)", chips - b.stacks[seat]),)
        chips = b.stacks[seat]
    early = seat != b.waiting[0]
    match action:
        case "fold":
            done = _folded(b, seat)
        case "check":
            done, more = _checked(b, seat, chips)
        case "call":
            done, more = _called(b, seat, chips)
        case "all_in":
            done, more = _all_in(b, seat, limits, early=early)
        case "bet" | "raise":
            done, more = _raised(b, seat, chips, limits, early=early)
        case _:
            return b, (Fault("no_such_action", "13(39)", chips, taken=False),)
    if not early:
        return done, faults + more
    if all(one.taken for one in more):
        faults = (*faults, Fault("out_of_turn", "13(71)(f)"))
        done = replace(done, bound=_with(done.bound, (seat,)))
    return done, faults + more


def post(b: Betting, seat: int, chips: int) -> tuple[Betting, tuple[Fault, ...]]:
    """A first bet before the cards: 14(10), an ante 16(8), those that were missed 14(18), 14(19)."""
    first, owed = b.posts.get(seat, 0), b.owed.get(seat, 0)
    whole = min(first + owed, b.stacks.get(seat, 0))
    chips = chips or whole
    if not whole:
        return b, (Fault("no_post_due", "14(10)", chips, taken=False),)
    if chips not in (whole, first):
        return b, (Fault("wrong_post", "14(11)" if first < b.level else "14(12)", chips, taken=False),)
    done = b if chips == whole else replace(b, owed={})
    done = _lay(done, seat, chips, b.waiting)
    kept = {other: amount for other, amount in b.owed.items() if other != seat or chips != whole}
    posts = {other: amount for other, amount in b.posts.items() if other != seat}
    return replace(done, owed=kept, posts=posts), ()


def blind_raise(b: Betting, seat: int, action: str, chips: int) -> tuple[Betting, tuple[Fault, ...]]:
    """A raise before the seat saw its cards ("estardilho"), or another's on top of it ("restardilho"), 16(12)."""
    again = action == BLIND[1]
    another = seat in b.waiting and seat != b.opener
    if seat not in b.can_bet() or b.blind > 1 or bool(b.blind) != again or (again and not another):
        return b, (Fault("no_blind_raise", "16(12)", chips, taken=False),)
    faults: tuple[Fault, ...] = ()
    if chips > b.stacks[seat]:
        faults = (Fault("more_than_stack", "13(14)(e)", chips - b.stacks[seat]),)
        chips = b.stacks[seat]
    chips = (chips or b.due(seat)) if again else chips
    done = _lay(b, seat, chips, b.waiting)
    advanced = done.street.get(seat, 0)
    if not advanced or (again and advanced != b.level):
        return b, (Fault("wrong_blind_raise", "16(12)(b)" if again else "16(12)(a)", chips, taken=False),)
    waiting = tuple(other for other in done.after(seat) if other in done.can_bet())
    bound = tuple(other for other in waiting if other != seat)
    return replace(
        done, level=2 * advanced, waiting=waiting, bound=bound, blind=b.blind + 1, opener=seat, highest=seat
    ), faults


def bind(b: Betting, seats: Iterable[int]) -> Betting:
    """These seats may call or give up only: 13(70)(h), 13(71)(i)."""
    return replace(b, bound=_with(b.bound, seats))


def kill(b: Betting, seats: Iterable[int]) -> Betting:
    """These hands are dead: 13(71)(b), (g), (h)."""
    dead = tuple(seats)
    waiting = tuple(seat for seat in b.waiting if seat not in dead)
    return _settled(replace(b, killed=_with(b.killed, dead), waiting=waiting))


def withdraw(b: Betting, seat: int) -> Betting:
    """Take away the hand of an absent player (13(70)(b)), as if it was given up."""
    return _folded(b, seat)


def _with(seats: tuple[int, ...], more: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*seats, *more)))


def _lay(b: Betting, seat: int, chips: int, waiting: tuple[int, ...]) -> Betting:
    """Lay chips: owed chips are paid first. The seats `waiting` are still to act after that."""
    if not chips:
        return replace(b, waiting=waiting)
    stacks, bets, street = {**b.stacks, seat: b.stacks[seat] - chips}, b.bets, b.street
    dead, owed = b.dead, b.owed
    if paid := min(owed.get(seat, 0), chips):
        dead, owed = {**dead, seat: dead.get(seat, 0) + paid}, {**owed, seat: owed[seat] - paid}
    if more := chips - paid:
        bets, street = {**bets, seat: bets.get(seat, 0) + more}, {**street, seat: street.get(seat, 0) + more}
    return replace(b, stacks=stacks, bets=bets, street=street, dead=dead, owed=owed, waiting=waiting)


def _acted(b: Betting, seat: int) -> Betting:
    return _settled(replace(b, waiting=_without(b.waiting, seat)))


def _without(seats: tuple[int, ...], seat: int) -> tuple[int, ...]:
    if seats and seats[0] == seat:
        return seats[1:]
    return tuple([other for other in seats if other != seat])


def _settled(b: Betting) -> Betting:
    """End the turns where one hand is left, or only one seat has chips and it owes nothing."""
    if b.count() < 2:
        return replace(b, waiting=())
    if len(b.waiting) == 1 and b.waiting == b.can_bet() and not b.due(b.waiting[0]):
        return replace(b, waiting=())
    return b


def _folded(b: Betting, seat: int) -> Betting:
    return _settled(replace(b, folded=(*b.folded, seat), waiting=_without(b.waiting, seat)))


def _checked(b: Betting, seat: int, chips: int) -> tuple[Betting, tuple[Fault, ...]]:
    if b.due(seat):
        return b, (Fault("check_not_possible", "13(39)(b)", chips, taken=False),)
    return _acted(b, seat), ((Fault("not_announced", "13(71)(d)", chips),) if chips else ())


def _called(b: Betting, seat: int, chips: int) -> tuple[Betting, tuple[Fault, ...]]:
    """A call with these chips, 0: with the due amount."""
    due = b.due(seat)
    if 0 < chips < due:
        return bind(_lay(b, seat, chips, b.waiting), (seat,)), (Fault("call_not_complete", "13(71)(c)"),)
    faults = (Fault("not_announced", "13(71)(d)", chips - due),) if chips > due else NO_FAULTS
    return _settled(_lay(b, seat, due, _without(b.waiting, seat))), faults


def _all_in(b: Betting, seat: int, limits: Limits, *, early: bool) -> tuple[Betting, tuple[Fault, ...]]:
    stack = b.stacks[seat]
    return _called(b, seat, stack) if stack <= b.due(seat) else _raised(b, seat, stack, limits, early=early)


def _raised(b: Betting, seat: int, chips: int, limits: Limits, *, early: bool) -> tuple[Betting, tuple[Fault, ...]]:
    call = b.due(seat)
    by = chips - call
    if by <= 0:
        return _called(b, seat, chips) if chips else (b, (Fault("below_minimum", "14(15)", chips, taken=False),))
    if not may_raise(b, seat, limits):
        bound = seat in b.bound
        done, _ = _called(b, seat, call) if call else (_acted(b, seat), ())
        code, article = ("may_only_call", "13(55)") if bound else ("no_more_raises", "14(16)")
        return done, (Fault(code, article, by),)
    allin = chips == b.stacks[seat]
    if by < limits.minimum and not allin:
        return b, (Fault("below_minimum", "14(15)", chips, taken=False),)
    faults: tuple[Fault, ...] = ()
    if by > (bound_ := most(b, seat, limits)):
        faults = (Fault("above_maximum", "13(39)(d)", by - bound_),)
        by = bound_
    whole = by >= limits.minimum
    asked = b.waiting[0] if early else seat
    round_ = b.after(asked)
    others = [other for other in ((round_[-1], *round_[:-1]) if early else round_) if other != seat]
    new = _lay(b, seat, call + by, b.waiting)
    able = new.can_bet()
    waiting = tuple(other for other in others if other in able)
    acted = () if whole else tuple(other for other in waiting if other not in b.waiting)
    new = replace(
        new,
        level=new.street.get(seat, 0),
        raises=b.raises + (whole and b.level > 0),
        waiting=waiting,
        bound=_with(b.bound, acted),
        opener=b.opener or seat,
        highest=seat,
    )
    return _settled(new), faults
