"""Macau roulette: Despacho Regulamentar Externo 60/2004 (edition 2004) and 30/2003 (edition 2003).

The flow: bets open once the last spin is paid (3(1)); they close at the bell before the launch, or, in edition 2004 as
the house chooses, at "no more bets" while the ball runs (3(2)); the ball runs against the wheel, either way round
(2(1)); it comes to rest (4) and the round is resolved (6, 7, 8). An object on the wheel makes the spin null: the bets
stand, the ball goes back into the last number's pocket and is launched again (2(2)-(3)).

Readings. An automatic wheel has no croupier at its bell: its launch closes the bets under `bell`, its no-more-bets
threshold under `no_more_bets`, unless the console's bell came before. Art. 8 is read by the letter: on 0 nothing wins
but the straight on 0, so a combination with 0 (`zero_combinations`, off) loses on it. The nine numbers of 6(6) are
printed nowhere: a sector of nine is offered only when `nines` names it. Colours and pocket order are not in the text:
`red` comes with the wheel. A ball launched with the wheel makes the spin null like an object on it: 2(1) forbids it and
names no consequence. A spin that ended unseen is void with the bets returned, those of a null spin before it too; no
article speaks of it, and nothing is guessed. Bets that are opened while the ball runs are the next spin's, where no
wheel counts them: this one ended unseen. A second number that contradicts the first puts the result in doubt until it
is paid (the croupier, who sees the ball, lets it stand) or declared null; a new spin voids it with the bets returned.
So does a null spin declared before the number and told after it. A ball that a hand put back while it ran has no number
until it is launched again; one whose wheel stopped has none. After a null spin the bets may be moved where no call had
ended them, until one does.
After a loss nobody knows what lies on the cloth of a null spin: its bets are given back, not played. Where "no more
bets" was never called, a bet that was moved while the ball ran may have been moved by who saw the number: the spin
waits for a person. So does the launch of a counted spin that waits already: the wheel goes on by itself, nobody decided
it.

- After a loss, 2(2): the bets that a null spin left are given back. What is laid since is the next spin's.
- After a loss, 3(2)(1), no wheel counting: the next launch may be this spin's or another's. It ends nothing by itself:
  the spin waits for a person, or for the bets of the next.
"""

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallReplaced,
    BallSettling,
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
    WheelStarted,
    WheelStopped,
)
from protocols.contract.topics import Envelope
from rules.engine.money import Rounding
from rules.engine.rounds import (
    Round,
    irregular,
    next_number,
    noted,
    resolved,
    suspend,
    taken_back_before,
    terms,
    voided,
    wager,
    witness,
)
from rules.engine.ruleset import (
    Bet,
    Closed,
    Corrected,
    Noted,
    Opened,
    Resolved,
    Result,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    Wager,
    Win,
    option,
)
from rules.engine.standing_bets import together, wager_beside

USUAL_RED = (1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36)
# Art. 6(7) of both editions.
SECTOR_A = (1, 3, 5, 13, 15, 17, 20, 22, 24, 32, 34, 36)
SECTOR_B = (2, 4, 6, 14, 16, 18, 19, 21, 23, 31, 33, 35)

# More spins than this unseen at once is a counter gone wrong: no list of void rounds helps anybody.
MAX_MISSED = 100

# Bet, odds, article 6 and 7 paragraph, in the order of payment of article 5(1).
PAYTABLE = (
    Bet("column:n", "2", "arts. 6(8), 7(7)", "one of the three columns, 12 numbers"),
    Bet("dozen:n", "2", "arts. 6(9)-(11), 7(7)", "1-12, 13-24 or 25-36"),
    Bet("sector_a", "2", "arts. 6(7), 7(7)", "1 3 5 13 15 17 20 22 24 32 34 36"),
    Bet("sector_b", "2", "arts. 6(7), 7(7)", "2 4 6 14 16 18 19 21 23 31 33 35"),
    Bet("nine:a-b-…", "3", "arts. 6(6), 7(6)", "a sector of nine numbers, as configured"),
    Bet("even", "1", "arts. 6(12), 7(8)", "even numbers"),
    Bet("odd", "1", "arts. 6(13), 7(8)", "odd numbers"),
    Bet("low", "1", "arts. 6(14), 7(8)", "1 to 18"),
    Bet("high", "1", "arts. 6(15), 7(8)", "19 to 36"),
    Bet("red", "1", "arts. 6(16), 7(8)", "red numbers"),
    Bet("black", "1", "arts. 6(17), 7(8)", "black numbers"),
    Bet("line:a-b-c-d-e-f", "5", "arts. 6(5), 7(5)", "two rows, six numbers"),
    Bet("street:a-b-c", "11", "arts. 6(3), 7(3)", "one row, three numbers"),
    Bet("corner:a-b-c-d", "8", "arts. 6(4), 7(4)", "four numbers that meet"),
    Bet("split:a-b", "17", "arts. 6(2), 7(2)", "two neighbours on the cloth"),
    Bet("straight:n", "35", "arts. 6(1), 7(1)", "one number, 0 included"),
)
FAMILIES = tuple(bet.id.partition(":")[0] for bet in PAYTABLE)
VOID_WORDS = {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "No spin"}

MISSING = "events of this round may be missing"
CLOTH = "bets may have been moved unseen after a null spin"
REMEDY = "declare the spin null at the console, or launch again: the open spin is then void"
REMEDY_LOOK = "look at the ball: pay, and the first number stands, or declare the spin null at the console"
REMEDY_OPEN = "declare the spin null at the console, or open the bets again: the open spin is then void"
REMEDY_CLOTH = "open the bets or launch once more: they are then given back"


def combinations(red: tuple[int, ...], nines: tuple[tuple[int, ...], ...], zero: bool) -> dict[str, frozenset[int]]:
    """Every bet on the cloth with the numbers it covers, in the order of payment."""
    grid = [(row * 3 + 1, row * 3 + 2, row * 3 + 3) for row in range(12)]
    every = range(1, 37)
    cloth: dict[str, frozenset[int]] = {}

    def put(family: str, numbers: tuple[int, ...]) -> None:
        cloth[f"{family}:{'-'.join(str(number) for number in sorted(numbers))}"] = frozenset(numbers)

    for column in range(3):
        cloth[f"column:{column + 1}"] = frozenset(row[column] for row in grid)
    for dozen in range(3):
        cloth[f"dozen:{dozen + 1}"] = frozenset(range(dozen * 12 + 1, dozen * 12 + 13))
    cloth["sector_a"] = frozenset(SECTOR_A)
    cloth["sector_b"] = frozenset(SECTOR_B)
    for nine in nines:
        put("nine", nine)
    cloth["even"] = frozenset(n for n in every if n % 2 == 0)
    cloth["odd"] = frozenset(n for n in every if n % 2)
    cloth["low"] = frozenset(range(1, 19))
    cloth["high"] = frozenset(range(19, 37))
    cloth["red"] = frozenset(red)
    cloth["black"] = frozenset(every) - frozenset(red)
    for above, below in pairwise(grid):
        put("line", above + below)
    for row in grid:
        put("street", row)
    if zero:
        put("street", (0, 1, 2))
        put("street", (0, 2, 3))
        put("corner", (0, 1, 2, 3))
    for above, below in pairwise(grid):
        put("corner", (above[0], above[1], below[0], below[1]))
        put("corner", (above[1], above[2], below[1], below[2]))
    if zero:
        for number in (1, 2, 3):
            put("split", (0, number))
    for number in every:
        if number % 3:
            put("split", (number, number + 1))
        if number <= 33:
            put("split", (number, number + 3))
    for number in range(37):
        cloth[f"straight:{number}"] = frozenset((number,))
    return cloth


class RouletteOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What the texts leave to the house (art. 9), and what the wheel brings with it."""

    edition: Annotated[Literal["2004", "2003"], option("60/2004, 30/2003", "which text is in force at the table")] = (
        "2004"
    )
    betting: Annotated[
        Literal["bell", "no_more_bets"],
        option(
            "art. 3(2)",
            "bets close at the bell before the launch, or at 'no more bets' while the ball runs (2004 only)",
        ),
    ] = "bell"
    payment: Annotated[
        Literal["implied", "console"],
        option("art. 3(1)", "whether the dealer console reports that the last spin was paid before bets may open"),
    ] = "implied"
    bets_offered: Annotated[
        tuple[str, ...],
        option("arts. 6, 9", f"bet families offered, of {' '.join(FAMILIES)}; empty: all (nine only with `nines`)"),
    ] = ()
    nines: Annotated[
        tuple[tuple[int, ...], ...], option("art. 6(6)", "the sectors of nine numbers of this table, each a list")
    ] = ()
    zero_combinations: Annotated[
        bool, option("arts. 6, 8", "also splits, streets and the corner with 0; by art. 8 they lose on 0")
    ] = False
    red: Annotated[tuple[int, ...], option("art. 1(4)", "the eighteen red numbers of the wheel")] = USUAL_RED
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if self.edition == "2003" and self.betting == "no_more_bets":
            raise ValueError(
                "30/2003 art. 3: bets close at the bell; betting = no_more_bets exists in edition 2004 only"
            )
        unknown = [family for family in self.bets_offered if family not in FAMILIES]
        if unknown:
            raise ValueError(f"art. 6 has no bet {unknown[0]!r}; it has {', '.join(FAMILIES)}")
        if "nine" in self.bets_offered and not self.nines:
            raise ValueError("art. 6(6): the nine numbers are printed nowhere; name them in `nines` to offer `nine`")
        for nine in self.nines:
            if len(nine) != 9 or len(set(nine)) != 9 or not all(1 <= number <= 36 for number in nine):
                raise ValueError(
                    f"art. 6(6): a sector of nine is nine different numbers from 1 to 36, not {list(nine)}"
                )
        if len(set(self.red)) != 18 or not all(1 <= number <= 36 for number in self.red):
            raise ValueError("art. 1(4): red is eighteen different numbers from 1 to 36")


class RouletteState(Struct, frozen=True):
    """Where a table stands.

    `last` was resolved and not paid; `unseen`: whether it was paid since is not known. `null`: the last spin was,
    `carried` are its bets, `carried_evidence` what moved them since, `carried_doubt`: nobody knows whether they still
    lie there, `laid`: what was laid since they are in doubt; `carried_call`: a bell since then ends the changes if the
    ball is launched next. `counted`: a wheel began the open spin, and its counter proves what is missed. `moved`: a bet
    was placed or taken back while the ball ran.
    """

    table: str
    day: str = ""
    count: int = 0
    round: Round | None = None
    launched: bool = False
    last_pocket: str = ""
    unpaid: str = ""
    last: Round | None = None
    null: bool = False
    carried: tuple[Wager, ...] = ()
    carried_closed: bool = False
    carried_doubt: bool = False
    carried_evidence: tuple[str, ...] = ()
    carried_call: bool = False
    laid: Round | None = None
    unseen: bool = False
    counted: bool = False
    moved: bool = False


class Roulette:
    """The ruleset."""

    id: ClassVar[str] = "macau.roulette"
    title: ClassVar[str] = "Roulette, Macau"
    law: ClassVar[str] = "Despacho 60/2004; edition 2003: Despacho 30/2003"
    Options: ClassVar[type[RouletteOptions]] = RouletteOptions
    State: ClassVar[type[RouletteState]] = RouletteState

    def __init__(self, options: RouletteOptions) -> None:
        """Lay the cloth and work out, once, what wins on each pocket."""
        self.options = options
        self._text = "Despacho 60/2004" if options.edition == "2004" else "Despacho 30/2003"
        self._terms = terms(self.id, options.edition, options, VOID_WORDS)
        families = options.bets_offered or tuple(family for family in FAMILIES if family != "nine" or options.nines)
        self._bets = tuple(bet for bet in PAYTABLE if bet.id.partition(":")[0] in families)
        pays = {bet.id.partition(":")[0]: bet.pays for bet in self._bets}
        cloth = {
            bet: numbers
            for bet, numbers in combinations(options.red, options.nines, options.zero_combinations).items()
            if bet.partition(":")[0] in families
        }
        order = {family: place for place, family in enumerate(pays)}
        offered = sorted(cloth, key=lambda bet: order[bet.partition(":")[0]])
        self.cloth = {bet: cloth[bet] for bet in offered}
        self._offered = frozenset(self.cloth)
        self._wins = {
            str(pocket): tuple(
                Win(bet, pays[bet.partition(":")[0]])
                for bet, numbers in self.cloth.items()
                if pocket in numbers and (pocket or bet == "straight:0")
            )
            for pocket in range(37)
        }
        self._facts = {str(pocket): self._outcome(pocket) for pocket in range(37)}

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of payment of art. 5(1)."""
        return self._bets

    def start(self, table: str) -> RouletteState:
        """A table nobody has played on."""
        return RouletteState(table)

    def view(self, state: RouletteState) -> View:
        """Phase: idle, betting, closed, running, suspended."""
        round_ = state.round
        if round_ is None and state.last is not None and state.last.suspended:
            return View(state.last.id, "suspended", {"last_pocket": state.last_pocket, "reason": state.last.suspended})
        if round_ is None:
            return View("", "idle", {"last_pocket": state.last_pocket})
        phase = "running" if state.launched else "closed" if round_.closed else "betting"
        if round_.suspended:
            phase = "suspended"
        return View(round_.id, phase, {"last_pocket": state.last_pocket, "reason": round_.suspended})

    def apply(self, state: RouletteState, seen: Envelope) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """One event."""
        round_ = state.round
        match seen.event:
            case SpinStarted():
                return self._began(state, seen, "spin_superseded")
            case BetsOpened():
                return self._bets_opened(state, seen)
            case BetsClosed():
                return self._bell(state, seen)
            case BallLaunched() as launch:
                return self._launched(state, seen, launch)
            case BallSettling() if round_ is not None:
                return self._close(replace(state, round=witness(round_, seen)))
            case BallLanded(pocket=pocket):
                return self._landed(state, seen, pocket)
            case SpinVoided(reason=reason) | RoundVoided(reason=reason) if round_ is not None:
                return self._null_spin(state, round_, seen, reason or "declared by the croupier")
            case SpinMissed(count=count):
                return self._missed(state, seen, count)
            case BallReplaced() | WheelStopped() | WheelStarted() if round_ is not None and state.launched:
                return self._stopped(state, round_, seen)
            case BallReplaced(pocket=str(pocket)) if state.last_pocket not in ("", pocket):
                return self._misplaced(state, seen, pocket)
            case SpinVoided(reason=reason) | RoundVoided(reason=reason) if state.last is not None:
                return self._withdrawn(state, state.last, seen, reason or "declared by the croupier")
            case SpinVoided() | RoundVoided() if not state.null:  # else the croupier and the wheel both say so
                text = "a spin was declared null, none is open or unpaid"
                return self._note(state, "void_without_round", text, self._null_article(), seen)
            case RoundPaid():
                return self._paid(state, seen)
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(state, seen, one)
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._unseen(state, seen)
            case _:
                return state, ()

    # ---- the flow

    def _open(self, state: RouletteState, seen: Envelope) -> tuple[RouletteState, Round, tuple[Verdict, ...]]:
        """The next round takes over the cloth of a null spin; a result still in doubt ends first, its bets returned."""
        verdicts: tuple[Verdict, ...] = ()
        if state.last is not None and state.last.suspended:
            state, verdicts = self._given_back(state, state.last, seen)
        day, count = next_number(state.day, state.count, seen)
        doubt = CLOTH if state.carried_doubt else ""
        id_ = f"{state.table}:{day}:{count}"
        cloth = Round("", state.carried_evidence, state.carried)
        laid = state.laid
        # A launch alone: that the bets were opened may be among what was lost, so its cloth is doubtful altogether.
        if laid is not None and (not doubt or isinstance(seen.event, BallLaunched)):
            cloth, laid = together(cloth, laid), None
        # A bell after a null spin may be the late one of that spin: where the bets are open again it says nothing.
        closed = state.carried_closed or (state.carried_call and isinstance(seen.event, BallLaunched))
        round_ = witness(replace(cloth, id=id_, closed=closed, suspended=doubt), seen)
        verdicts += (Opened(round_.id),)
        if round_.closed:
            verdicts += (Closed(round_.id),)
        if round_.suspended:
            verdicts += (Suspended(round_.id, CLOTH, REMEDY_CLOTH),)
        state = replace(
            state,
            day=day,
            count=count,
            round=round_,
            last=None,
            launched=False,
            null=False,
            carried=(),
            carried_closed=False,
            carried_doubt=False,
            carried_evidence=(),
            carried_call=False,
            laid=laid,
            unseen=False,
            counted=isinstance(seen.event, SpinStarted),
            moved=False,
        )
        return state, round_, verdicts

    def _began(self, state: RouletteState, seen: Envelope, reason: str) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """The wheel begins a spin: an open round that already ran, or waits for a person, can no longer be resolved."""
        ended: tuple[Verdict, ...] = ()
        if state.round is not None:
            if not state.launched and not state.round.suspended:
                return replace(state, round=witness(state.round, seen), counted=True), ()
            state, ended = self._lost(state, state.round, seen, state.round.suspended or reason)
        state, _, verdicts = self._open(state, seen)
        return state, ended + verdicts

    def _bets_opened(self, state: RouletteState, seen: Envelope) -> tuple[RouletteState, tuple[Verdict, ...]]:
        law = f"{self._text} art. 3{'(1)' if self.options.edition == '2004' else ''}"
        verdicts: tuple[Verdict, ...] = ()
        ran = state.launched and not state.counted and not seen.event.overtaken
        if state.round is None or state.round.suspended or ran:
            state, verdicts = self._began(state, seen, "spin_superseded")
        elif state.round.closed and seen.event.overtaken:  # before the bell, as always, and told after it
            return replace(state, round=witness(state.round, seen)), ()
        elif state.round.closed:
            note = irregular(state.round, "bets_reopened", "bets were opened again after the bell", law, seen)
            return replace(state, round=note), ()
        assert state.round is not None
        unpaid = self._before_payment(state, state.round, seen)
        if unpaid is not state:
            return unpaid, verdicts
        return (state if verdicts else replace(state, round=witness(state.round, seen))), verdicts

    def _before_payment(self, state: RouletteState, round_: Round, seen: Envelope) -> RouletteState:
        """Art. 3(1), said once: bets while the last spin waits for its payment."""
        if not state.unpaid or self.options.payment != "console":
            return state
        law = f"{self._text} art. 3{'(1)' if self.options.edition == '2004' else ''}"
        note = irregular(round_, "bets_before_payment", f"{state.unpaid} was not paid yet", law, seen)
        return replace(state, round=note, unpaid="")

    def _bell(self, state: RouletteState, seen: Envelope) -> tuple[RouletteState, tuple[Verdict, ...]]:
        round_ = state.round
        if round_ is None and state.null:  # its bets stand: the bell alone announces the launch, and ends the changes
            return replace(state, carried_call=not state.carried_doubt and not seen.event.overtaken), ()
        if round_ is None:
            text = "the bell rang, no spin is open"
            return self._note(state, "bell_without_round", text, "art. 3", seen)
        if self.options.betting == "bell" and state.launched and not round_.suspended:
            law = f"{self._text} art. 3{'(2)(1)' if self.options.edition == '2004' else ''}"
            late = irregular(round_, "bell_after_launch", "the bell rang after the launch", law, seen)
            return replace(state, round=late), ()
        return self._close(replace(state, round=witness(round_, seen)))

    def _close(self, state: RouletteState) -> tuple[RouletteState, tuple[Verdict, ...]]:
        round_ = state.round
        if round_ is None or round_.closed:
            return state, ()
        return replace(state, round=replace(round_, closed=True)), (Closed(round_.id),)

    def _launched(
        self, state: RouletteState, seen: Envelope, launch: BallLaunched
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        verdicts: tuple[Verdict, ...] = ()
        waits = state.round is not None and state.round.suspended not in ("", CLOTH)
        counted = waits and state.counted
        # Nobody has decided the spin that waits: its own launch, or after a loss what may be that, does not end it.
        own = counted or (state.round is not None and state.round.suspended == MISSING)
        if state.round is None or (state.round.suspended and (state.launched or not own)):
            unheard = state.unseen if state.round is None else counted
            state, verdicts = self._began(state, seen, "")
            if unheard and state.round is not None and not state.round.suspended:
                state, held = self._suspend(state, state.round, seen, MISSING)
                verdicts += held
        # A second launch is the same spin, launched again after a failed one: its direction counts too.
        assert state.round is not None
        round_ = state.round if verdicts else witness(state.round, seen)
        state = replace(state, round=round_, launched=True)
        if self.options.betting == "bell":
            state, closed = self._close(state)
            verdicts += closed
        if launch.direction == launch.rotor:
            assert state.round is not None
            law = f"{self._text} art. 2(1)"
            wrong = irregular(state.round, "ball_with_rotor", "the ball runs with the wheel", law, seen)
            state, null = self._null_spin(replace(state, round=wrong), wrong, seen, "ball_with_rotor")
            verdicts += null
        return state, verdicts

    def _stopped(
        self, state: RouletteState, round_: Round, seen: Envelope
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """Arts. 2(1), 4: a ball that a hand laid down, or whose wheel stood still, did not come to rest by itself."""
        if isinstance(seen.event, BallReplaced):
            text = "the ball was put back by hand while it ran: it is to be launched again"
            round_ = irregular(round_, "ball_replaced_while_it_ran", text, f"{self._text} art. 4", seen)
            return replace(state, round=round_, launched=False), ()
        return self._suspend(state, round_, seen, "the wheel stopped while the ball ran")

    def _landed(self, state: RouletteState, seen: Envelope, pocket: str) -> tuple[RouletteState, tuple[Verdict, ...]]:
        round_ = state.round
        if round_ is None:
            return self._landed_again(state, seen, pocket)
        round_ = witness(round_, seen)
        if round_.suspended:
            return replace(state, round=round_), ()
        if not state.launched:
            return self._suspend(state, round_, seen, f"{pocket} was reported, but no launch was seen")
        if pocket not in self._wins:
            return self._suspend(state, round_, seen, f"this text has no pocket {pocket}")
        if not round_.closed:  # the launch closes the bets under the bell
            if state.moved:
                return self._suspend(
                    state, round_, seen, "bets were moved while the ball ran, and never closed by a call"
                )
            text = "no more bets was not called before the ball lay still"
            round_ = irregular(round_, "no_call", text, f"{self._text} art. 3(2)(2)", seen)
        state, closed = self._close(replace(state, round=round_))
        assert state.round is not None
        result = self._result(state.round, pocket)
        state = replace(state, round=None, last=state.round, launched=False, last_pocket=pocket, unpaid=result.round)
        return state, (*closed, Resolved(result))

    def _landed_again(
        self, state: RouletteState, seen: Envelope, pocket: str
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """The same number changes nothing; another one, before the payment, puts the result in doubt."""
        last = state.last
        if last is None or state.unseen:
            return self._note(state, "landing_without_spin", f"{pocket} was reported, no round is open", "art. 4", seen)
        if last.suspended:
            return replace(state, last=witness(last, seen)), ()
        if pocket == state.last_pocket:
            return state, ()
        text = f"{pocket} was reported after {state.last_pocket}, for the same spin"
        last = irregular(last, "landings_contradict", text, f"{self._text} art. 4", seen)
        last, verdicts = suspend(last, seen, "two numbers of one spin contradict each other", REMEDY_LOOK)
        return replace(state, last=last), verdicts

    def _paid(self, state: RouletteState, seen: Envelope) -> tuple[RouletteState, tuple[Verdict, ...]]:
        last = state.last
        if seen.event.overtaken:  # it was made before what was told since: it ends no doubt that is younger
            held = witness(last, seen) if last is not None and last.suspended else last
            return replace(state, unpaid="", last=held), ()
        if last is None or not last.suspended:
            return replace(state, unpaid="", last=None), ()
        if state.unseen:  # it may be of a spin that was lost
            return replace(state, unpaid="", last=witness(last, seen)), ()
        # Paid while in doubt: the croupier, who sees the ball, lets the first number stand.
        result = self._result(replace(witness(last, seen), suspended=""), state.last_pocket)
        return replace(state, unpaid="", last=None), (Corrected(replace(result, supersedes=last.id)),)

    def _unseen(self, state: RouletteState, seen: Envelope) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """Nobody knows what the ball did, what was moved on the cloth, or whether the prizes were paid."""
        round_ = state.round
        if round_ is None:
            cloth = together(Round("", state.carried_evidence, state.carried), state.laid)
            state = replace(state, unseen=True, carried=cloth.wagers, carried_evidence=cloth.evidence, laid=None)
            return replace(state, carried_closed=False, carried_call=False, carried_doubt=bool(cloth.wagers)), ()
        if round_.suspended:
            reason = CLOTH if round_.suspended == CLOTH else MISSING
            round_ = witness(together(round_, state.laid), seen)
            return replace(state, round=replace(round_, suspended=reason), laid=None), ()
        return self._suspend(state, round_, seen, MISSING)

    def _suspend(
        self, state: RouletteState, round_: Round, seen: Envelope, reason: str
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        remedy = REMEDY_OPEN if reason == MISSING and not state.launched else REMEDY
        round_, verdicts = suspend(round_, seen, reason, remedy)
        return replace(state, round=round_), verdicts

    def _result(self, round_: Round, pocket: str) -> Result:
        outcome, announcements = self._facts[pocket]
        return resolved(
            round_,
            self._terms,
            outcome=outcome,
            winners=self._wins[pocket],
            announcements=announcements,
            law=self._cite("art. 4", "art. 6", "art. 7", *(("art. 8",) if pocket == "0" else ())),
        )

    def _null_spin(
        self, state: RouletteState, round_: Round, seen: Envelope, reason: str
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """Art. 2(2)-(3): the bets stand and the ball is launched again."""
        round_ = witness(round_, seen)
        result = voided(round_, self._terms, Void(reason, "stand"), self._cite(self._null_article()))
        doubt = round_.suspended in (MISSING, CLOTH)
        state = self._stands(replace(state, round=None, launched=False), round_.wagers, round_.closed, doubt)
        return state, (Voided(result),)

    def _stands(self, state: RouletteState, bets: tuple[Wager, ...], closed: bool, doubt: bool) -> RouletteState:
        """The cloth for the next launch. What nobody knows of it stays unknown until its bets are given back."""
        return replace(
            state,
            null=True,
            carried=bets,
            carried_closed=closed and not doubt,
            carried_doubt=doubt and bool(bets),
            carried_evidence=(),
            carried_call=False,
            laid=state.laid if doubt else None,
        )

    def _wager(
        self, state: RouletteState, seen: Envelope, one: WagerPlaced | WagerWithdrawn
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        round_ = state.round
        if round_ is not None:
            article = "art. 3" if round_.closed else "art. 6"
            if round_.suspended == CLOTH and not (round_.closed or state.launched):
                law = f"{self._text} {article}"
                round_, known = wager_beside(round_, state.laid or Round(""), one, self._offered, law, seen)
                return replace(state, round=round_, laid=known), ()
            taken = wager(round_, one, self._offered, f"{self._text} {article}", seen)
            if taken.wagers == round_.wagers:
                return replace(state, round=taken), ()
            state = replace(state, round=taken, moved=state.moved or state.launched)
            return (self._before_payment(state, taken, seen) if isinstance(one, WagerPlaced) else state), ()
        if not state.null or state.carried_closed or state.carried_call:
            return self._note(state, "bet_without_round", f"seat {one.seat} on {one.bet}", "art. 3", seen)
        cloth, laid, law = Round("", state.carried_evidence, state.carried), state.laid, f"{self._text} art. 6"
        if state.carried_doubt:
            cloth, laid = wager_beside(cloth, laid or Round(""), one, self._offered, law, seen)
        else:
            cloth = wager(cloth, one, self._offered, law, seen)
        if cloth.irregularities:
            return state, tuple(map(Noted, cloth.irregularities))
        doubt = state.carried_doubt and bool(cloth.wagers)
        state = replace(state, carried=cloth.wagers, carried_evidence=cloth.evidence, carried_doubt=doubt, laid=laid)
        return state, ()

    def _withdrawn(
        self, state: RouletteState, last: Round, seen: Envelope, reason: str
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """Declared null after the ball had come to rest and before the payment: the result is taken back.

        Declared before the number and told after it, it puts the result in doubt: which spin it means a person says.
        """
        if seen.event.overtaken:
            last, waits = taken_back_before(last, seen, REMEDY_LOOK)
            return replace(state, last=last), waits
        result = voided(witness(last, seen), self._terms, Void(reason, "stand"), self._cite(self._null_article()))
        state = self._stands(replace(state, last=None, unpaid="", last_pocket=""), last.wagers, True, state.unseen)
        return state, (Corrected(replace(result, supersedes=last.id)),)

    def _given_back(
        self, state: RouletteState, last: Round, seen: Envelope
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """A result in doubt that nobody paid or declared null before the next spin: the bets come back."""
        result = voided(witness(last, seen), self._terms, Void(last.suspended, "returned"), self._cite("art. 4"))
        state = replace(state, unpaid="", last=None, last_pocket="")
        return state, (Corrected(replace(result, supersedes=last.id)),)

    def _lost(
        self, state: RouletteState, round_: Round, seen: Envelope, reason: str
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """Nobody saw how the spin ended: no article speaks of it, nothing is guessed, the bets come back."""
        round_ = witness(round_, seen)
        result = voided(round_, self._terms, Void(reason, "returned"), self._cite("art. 4"))
        return replace(state, round=None, launched=False, last_pocket=""), (Voided(result),)

    def _missed(self, state: RouletteState, seen: Envelope, count: int) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """Every spin has an end that can be cited: the open one and each that the wheel's counter proves."""
        verdicts: list[Verdict] = []
        for _ in range(min(count, MAX_MISSED)):
            if state.round is None:
                state, _, opened = self._open(state, seen)
                verdicts += opened
            assert state.round is not None
            round_, state = together(state.round, state.laid), replace(state, laid=None)
            state, lost = self._lost(state, round_, seen, "spin_missed")
            verdicts += lost
        if count > MAX_MISSED:
            text = f"the wheel's counter says {count} spins ended unseen; {MAX_MISSED} were voided"
            state, note = self._note(state, "spins_missed_beyond_belief", text, "art. 4", seen)
            verdicts += note
        return state, tuple(verdicts)

    def _misplaced(
        self, state: RouletteState, seen: Envelope, pocket: str
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        """After a null spin the ball goes back where it last lay; the next spin may be open by then, or not."""
        article = f"art. 2({'3' if self.options.edition == '2004' else '2'})"
        text = f"the ball was put back into {pocket}, the last number is {state.last_pocket}"
        if state.round is None:
            return self._note(state, "ball_in_wrong_pocket", text, article, seen) if state.null else (state, ())
        note = irregular(state.round, "ball_in_wrong_pocket", text, f"{self._text} {article}", seen)
        return replace(state, round=note), ()

    def _note(
        self, state: RouletteState, code: str, text: str, article: str, seen: Envelope
    ) -> tuple[RouletteState, tuple[Verdict, ...]]:
        return state, noted(code, text, f"{self._text} {article}", seen)

    def _null_article(self) -> str:
        return "art. 2(2)-(3)" if self.options.edition == "2004" else "art. 2(2)"

    def _cite(self, *articles: str) -> tuple[str, ...]:
        return tuple(f"{self._text} {article}" for article in articles)

    def _outcome(self, pocket: int) -> tuple[dict[str, object], dict[str, str]]:
        if pocket == 0:
            return {"pocket": "0"}, {"pt": "Zero", "zh-Hant": "零", "en": "Zero"}
        red, odd, high = pocket in self.options.red, pocket % 2 == 1, pocket > 18
        facts: dict[str, object] = {
            "pocket": str(pocket),
            "colour": "red" if red else "black",
            "parity": "odd" if odd else "even",
            "half": "high" if high else "low",
            "dozen": (pocket - 1) // 12 + 1,
            "column": (pocket - 1) % 3 + 1,
        }
        words = {
            "pt": (
                f"{pocket}, {'encarnado' if red else 'preto'}, "
                f"{'ímpar' if odd else 'par'}, {'maior' if high else 'menor'}"
            ),
            "zh-Hant": f"{pocket}號，{'紅' if red else '黑'}，{'單' if odd else '雙'}，{'大' if high else '小'}",
            "en": f"{pocket}, {'red' if red else 'black'}, {'odd' if odd else 'even'}, {'high' if high else 'low'}",
        }
        return facts, words
