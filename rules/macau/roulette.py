"""Macau roulette: Despacho Regulamentar Externo 60/2004 (edition 2004) and 30/2003 (edition 2003).

The flow: bets open once the last spin is paid (3(1)); they close at the bell before the launch, or, in edition 2004 as
the house chooses, at "no more bets" while the ball runs (3(2)); the ball runs against the wheel, either way round
(2(1)); it comes to rest (4) and the round is resolved (6, 7, 8). An object on the wheel makes the spin null: the bets
stand, the ball goes back into the last number's pocket and is launched again (2(2)-(3)).

Readings:

- 3(2): an automatic wheel has no croupier at its bell: under `bell` its launch closes the bets, under `no_more_bets`
  its threshold, unless the console's bell came before.
- 8: by the letter, on 0 only the straight on 0 wins: a combination with 0 (`zero_combinations`, off) loses on it.
- 6(6): the nine numbers are printed nowhere: a sector of nine is offered only when `nines` names it.
- 1(4): colours and the order of the pockets are not in the text: `red` comes with the wheel.
- 2(1): a ball launched with the wheel makes the spin null, like an object on it: the text forbids it and names no
  consequence.
- 4: a spin that ended unseen is void, its bets come back, and those of a null spin before it too.
- 3(1): bets that are opened while the ball runs are the next spin's where no wheel counts them: this one ended unseen.
- 4: a second number disputes the result until it is paid (the first stands) or declared null; a new spin voids it. A
  null spin declared before the number and told after it disputes it too.
- 2(1), 4: a ball that a hand put back while it ran has no number until it is launched again. One whose wheel stopped
  has none: the spin is suspended.
- 2(2): after a null spin the bets may be moved where no call had ended them, until one does.
- 3(2)(2): where "no more bets" was never called, a bet moved while the ball ran may have been moved by who saw the
  number: the spin is suspended.
- A counted spin that is suspended is not ended by its own launch: the wheel goes on by itself, no person decided it.
- After a loss, 2(2): the bets that a null spin left are given back. What is laid since is the next spin's.
- After a loss, 3(2)(1), no wheel counting: the next launch may be this spin's or another's. It ends nothing by itself:
  the spin waits for a person, or for the bets of the next.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallReplaced,
    BallSettling,
    RoundVoided,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WagerPlaced,
    WheelStarted,
    WheelStopped,
)
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.bets import ALONE, Board, Family, check_offered, names, numbers
from rules.engine.money import Rounding
from rules.engine.rounds import Round, noted, resolved, terms
from rules.engine.ruleset import Noted, Result, Verdict, View, Voided, option
from rules.engine.single_outcome import MISSING, Doubt, Move, Note, Null, Phase, Rulings, there
from rules.engine.standing_bets import ClothTable, StandingBets, together

Step: TypeAlias = tuple["RouletteState", tuple[Verdict, ...]]

USUAL_RED: Final = (1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36)
# Art. 6(7) of both editions.
SECTOR_A: Final = (1, 3, 5, 13, 15, 17, 20, 22, 24, 32, 34, 36)
SECTOR_B: Final = (2, 4, 6, 14, 16, 18, 19, 21, 23, 31, 33, 35)
# A wheel that misses more spins at once has a wrong counter.
MAX_MISSED: Final = 100

VOID: Final = {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "No spin"}
CLOTH: Final = say("cloth_spin")
REMEDY: Final = say("do_launch")
REMEDY_LOOK: Final = say("do_look_ball")
REMEDY_OPEN: Final = say("do_open_bets")
REMEDY_CLOTH: Final = say("do_give_back")


def _wins(covered: tuple[int, ...], pocket: int) -> bool:
    """Art. 8: on 0 only the straight on 0 wins."""
    return pocket in covered and (pocket != 0 or covered == (0,))


def _straights(rows: list[tuple[int, ...]], *, zero: bool) -> dict[str, Iterable[tuple[int, ...]]]:
    """The combinations of numbers that meet on the cloth, by the name of their family."""
    corners = [square for (a, b, c), (d, e, f) in pairwise(rows) for square in ((a, b, d, e), (b, c, e, f))]
    splits = [pair for n in range(1, 37) for pair in ((n, n + 1), (n, n + 3)) if _neighbours(*pair)]
    if not zero:
        return {"street": rows, "corner": corners, "split": splits}
    return {
        "street": [*rows, (0, 1, 2), (0, 2, 3)],
        "corner": [(0, 1, 2, 3), *corners],
        "split": [(0, 1), (0, 2), (0, 3), *splits],
    }


def _neighbours(one: int, other: int) -> bool:
    return other <= 36 and (other == one + 3 or one % 3 != 0)


def families(
    red: tuple[int, ...] = USUAL_RED, nines: tuple[tuple[int, ...], ...] = (), *, zero: bool = False
) -> tuple[Family, ...]:
    """Arts. 6 and 7, in the order of payment of art. 5(1)."""
    every = range(1, 37)
    rows: list[tuple[int, ...]] = [(n, n + 1, n + 2) for n in range(1, 37, 3)]
    meeting = _straights(rows, zero=zero)
    columns = {str(n): tuple(row[n - 1] for row in rows) for n in (1, 2, 3)}
    dozens = {str(n): tuple(range(n * 12 - 11, n * 12 + 1)) for n in (1, 2, 3)}
    black = tuple(n for n in every if n not in red)

    def family(id_: str, pays: str, article: str, text: str, places: Any) -> Family:
        return Family(id_, pays, f"arts. {article}", text, places, _wins)

    def alone(covered: Iterable[int]) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(ALONE, tuple(covered))

    return (
        family("column:n", "2", "6(8), 7(7)", "one of the three columns, 12 numbers", columns),
        family("dozen:n", "2", "6(9)-(11), 7(7)", "1-12, 13-24 or 25-36", dozens),
        family("sector_a", "2", "6(7), 7(7)", " ".join(map(str, SECTOR_A)), alone(SECTOR_A)),
        family("sector_b", "2", "6(7), 7(7)", " ".join(map(str, SECTOR_B)), alone(SECTOR_B)),
        family(
            *("nine:a-b-…", "3", "6(6), 7(6)", "a sector of nine numbers, as configured"),
            numbers(tuple(sorted(nine)) for nine in nines),
        ),
        family("even", "1", "6(12), 7(8)", "even numbers", alone(every[1::2])),
        family("odd", "1", "6(13), 7(8)", "odd numbers", alone(every[::2])),
        family("low", "1", "6(14), 7(8)", "1 to 18", alone(every[:18])),
        family("high", "1", "6(15), 7(8)", "19 to 36", alone(every[18:])),
        family("red", "1", "6(16), 7(8)", "red numbers", alone(red)),
        family("black", "1", "6(17), 7(8)", "black numbers", alone(black)),
        family(
            *("line:a-b-c-d-e-f", "5", "6(5), 7(5)", "two rows, six numbers"),
            numbers(above + below for above, below in pairwise(rows)),
        ),
        family("street:a-b-c", "11", "6(3), 7(3)", "one row, three numbers", numbers(meeting["street"])),
        family("corner:a-b-c-d", "8", "6(4), 7(4)", "four numbers that meet", numbers(meeting["corner"])),
        family("split:a-b", "17", "6(2), 7(2)", "two neighbours on the cloth", numbers(meeting["split"])),
        family("straight:n", "35", "6(1), 7(1)", "one number, 0 included", numbers((n,) for n in range(37))),
    )


FAMILIES: Final = names(families())


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
        check_offered(self.bets_offered, FAMILIES, "art. 6")
        if "nine" in self.bets_offered and not self.nines:
            raise ValueError("art. 6(6): the nine numbers are printed nowhere; name them in `nines` to offer `nine`")
        for nine in self.nines:
            if len(nine) != 9 or len(set(nine)) != 9 or not all(1 <= number <= 36 for number in nine):
                raise ValueError(
                    f"art. 6(6): a sector of nine is nine different numbers from 1 to 36, not {list(nine)}"
                )
        if len(set(self.red)) != 18 or not all(1 <= number <= 36 for number in self.red):
            raise ValueError("art. 1(4): red is eighteen different numbers from 1 to 36")


class Articles(Struct, frozen=True):
    """Where an edition says it."""

    text: str
    opening: str
    bell: str
    null: str
    put_back: str


ARTICLES: Final = {
    "2004": Articles("Despacho 60/2004", "3(1)", "3(2)(1)", "2(2)-(3)", "2(3)"),
    "2003": Articles("Despacho 30/2003", "3", "3", "2(2)", "2(2)"),
}


class RouletteState(ClothTable, frozen=True):
    """`launched`: the ball runs. `last_pocket` is the number of the last spin that counted.

    `unpaid` is the last result, until its payment is told. `counted`: a wheel began the spin, and its counter proves
    what is missed. `moved`: a bet was placed or taken back while the ball ran. `called`: a bell after a null spin ends
    the changes of its bets, if the ball is launched next.
    """

    told: tuple[BallLanded, ...] = ()
    launched: bool = False
    last_pocket: str = ""
    unpaid: str = ""
    counted: bool = False
    moved: bool = False
    called: bool = False


class Roulette(StandingBets[RouletteState]):
    """The ruleset."""

    id: ClassVar[str] = "macau.roulette"
    title: ClassVar[str] = "Roulette, Macau"
    law: ClassVar[str] = "Despacho 60/2004; edition 2003: Despacho 30/2003"
    Options: ClassVar[type[RouletteOptions]] = RouletteOptions
    State: ClassVar[type[RouletteState]] = RouletteState
    outcome: ClassVar[type[BallLanded]] = BallLanded
    lasting: ClassVar[tuple[str, ...]] = ("last_pocket", "unpaid")

    def __init__(self, options: RouletteOptions) -> None:
        """Lay the cloth and work out, once, what wins on each pocket."""
        self.options = options
        self._at = ARTICLES[options.edition]
        offered = options.bets_offered or tuple(name for name in FAMILIES if name != "nine" or options.nines)
        board = Board(families(options.red, options.nines, zero=options.zero_combinations), offered)
        made = terms(self.id, options.edition, options, VOID)
        super().__init__(made, board, self._say(), moved_unseen=Doubt(CLOTH, REMEDY_CLOTH))
        self._wins = {str(pocket): board.ending(pocket)[0] for pocket in range(37)}
        self._law = tuple(map(self._cite, ("4", "6", "7")))
        self._facts = {str(pocket): self._outcome(pocket) for pocket in range(37)}

    def _say(self) -> Rulings:
        void_law = (self._cite(self._at.null),)
        return Rulings(
            bets_law=self._cite("6"),
            late_bets_law=self._cite("3"),
            stray_bets_law=self._cite("3"),
            void_law=void_law,
            never_ended=Null(say("spin_superseded"), (self._cite("4"),)),
            never_closed=Note("no_call", say("no_call"), self._cite("3(2)(2)")),
            stray_bell=Note("bell_without_round", say("bell_no_spin"), self._cite("3")),
            stray_void=Note("void_without_round", say("void_no_spin"), *void_law),
            reopened=Note("bets_reopened", say("bets_reopened"), self._cite(self._at.opening)),
            missing=Doubt(say("round_events"), REMEDY_OPEN),
            contradicted=Doubt(say("numbers_contradict"), REMEDY_LOOK),
            declared_before=Doubt(say("declared_before"), REMEDY_LOOK),
            null_bets="stand",
        )

    def _cite(self, article: str) -> str:
        return f"{self._at.text} art. {article}"

    def transitions(self) -> dict[type[Any], dict[Phase, Move[RouletteState]]]:
        """Art. 2(2): the croupier and the wheel may both declare a spin null."""
        rows = super().transitions()
        return rows | {SpinVoided: rows[RoundVoided]}

    def view(self, table: RouletteState) -> View:
        """Phase: idle, betting, closed, running, suspended."""
        round_, last, pocket = table.round, table.last, {"last_pocket": table.last_pocket}
        if round_ is not None:
            phase = "running" if table.launched else "closed" if round_.closed else "betting"
            return View(round_.id, "suspended" if round_.suspended else phase, {**pocket, "reason": round_.suspended})
        if last is not None and last.suspended:
            return View(last.id, "suspended", {**pocket, "reason": last.suspended})
        return View("", "idle", pocket)

    # ---- the wheel and the ball

    def play(self, table: RouletteState, seen: Envelope) -> Step:
        """The wheel counts a spin, the ball runs, settles or is put back."""
        there_is, running = table.round is not None, table.round is not None and table.launched
        match seen.event:
            case SpinStarted():
                return self._started(table, seen)
            case BallLaunched() as launch:
                return self._launched(table, seen, launch)
            case BallSettling() if there_is:
                return self._close(self.witness(table, seen))
            case SpinMissed(count=count):
                return self._missed(table, seen, count)
            case BallReplaced() if running:
                text = say("ball_by_hand")
                table = self.note(table, seen, Note("ball_replaced_while_it_ran", text, self._cite("4")))
                return replace(table, launched=False), ()
            case WheelStopped() | WheelStarted() if running:
                return self.hold(table, seen, Doubt(say("wheel_stopped"), REMEDY))
            case BallReplaced(pocket=str(pocket)) if table.last_pocket not in ("", pocket):
                return self._misplaced(table, seen, pocket)
            case _:
                return table, ()

    def _close(self, table: RouletteState) -> Step:
        return (table, ()) if there(table.round).closed else self.close(table)

    def begin(self, table: RouletteState, seen: Envelope) -> Step:
        """A number that was disputed, or of a spin that was lost, is not the last one any more.

        A launch alone: that the bets were opened may be among what was lost, so its cloth is doubtful altogether.
        """
        unheard = False
        if isinstance(seen.event, BallLaunched):
            unheard = table.unseen if table.round is None else _decided_by_nobody(table) and table.counted
            if (carried := table.carried) is not None:
                unheard = unheard and not carried.suspended
                carried = replace(together(carried, table.laid), closed=carried.closed or table.called)
                table = replace(table, carried=carried, laid=None)
        if table.round is not None:
            table = replace(table, last_pocket="")
        elif table.phase == "disputed":
            table = replace(table, last_pocket="", unpaid="")
        return super().begin(replace(table, unheard=unheard), seen)

    def _started(self, table: RouletteState, seen: Envelope) -> Step:
        if table.round is not None and not table.launched and not table.round.suspended:
            return replace(self.witness(table, seen), counted=True), ()
        table, verdicts = self.begin(table, seen)
        return replace(table, counted=True), verdicts

    def _launched(self, table: RouletteState, seen: Envelope, launch: BallLaunched) -> Step:
        """A spin that waits is not ended by its own launch, or after a loss by what may be that."""
        verdicts: tuple[Verdict, ...] = ()
        round_ = table.round
        own = _decided_by_nobody(table) and (table.counted or (round_ is not None and round_.suspended == MISSING))
        if round_ is None or (round_.suspended and (table.launched or not own)):
            table, verdicts = self.begin(table, seen)
        else:  # launched again after a failed launch: this direction counts too
            table = self.witness(table, seen)
        table = replace(table, launched=True)
        if self.options.betting == "bell":
            table, closed = self._close(table)
            verdicts += closed
        if launch.direction != launch.rotor:
            return table, verdicts
        note = Note("ball_with_rotor", say("ball_with_wheel"), self._cite("2(1)"))
        table, void = self.void(table, seen, Null(say("ball_with_rotor"), self._rulings.void_law, note))
        return table, verdicts + void

    def _missed(self, table: RouletteState, seen: Envelope, count: int) -> Step:
        """Every spin has an end that can be cited: the open one and each that the wheel's counter proves."""
        verdicts: tuple[Verdict, ...] = ()
        missed = Null(say("spin_missed"), (self._cite("4"),))
        for _ in range(min(count, MAX_MISSED)):
            if table.round is None:
                table, opened = self.begin(table, seen)
                verdicts += opened
            round_ = together(there(table.round), table.laid)
            verdicts += (Voided(self.returned(round_, seen, missed.reason)),)
            table = self.fresh(table, last_pocket="")
        if count > MAX_MISSED:
            text = say("spins_unseen", n=count, voided=MAX_MISSED)
            verdicts += noted("spins_missed_beyond_belief", text, self._cite("4"), seen)
        return table, verdicts

    def _misplaced(self, table: RouletteState, seen: Envelope, pocket: str) -> Step:
        """After a null spin the ball goes back where it last lay; the next spin may be open by then, or not."""
        text = say("ball_put_back", pocket=pocket, last=table.last_pocket)
        law = self._cite(self._at.put_back)
        if table.round is not None:
            return self.note(table, seen, Note("ball_in_wrong_pocket", text, law)), ()
        return table, noted("ball_in_wrong_pocket", text, law, seen) if table.carried is not None else ()

    # ---- bets

    def opens_next(self, table: RouletteState, seen: Envelope) -> bool:
        """Bets are opened once for a spin; while the ball runs, they are the next one's where no wheel counts."""
        ran = table.launched and not table.counted and not seen.event.overtaken
        return ran or table.phase == "suspended"

    def reopened(self, table: RouletteState, seen: Envelope) -> RouletteState:
        """Told after the bell, but before it as always."""
        return table if seen.event.overtaken else super().reopened(table, seen)

    def betting(self, table: RouletteState, seen: Envelope) -> RouletteState:
        """Art. 3(1), said once: bets while the last spin waits for its payment."""
        if not table.unpaid or self.options.payment != "console":
            return table
        note = Note("bets_before_payment", say("not_paid", round=table.unpaid), self._cite(self._at.opening))
        return replace(self.note(table, seen, note), unpaid="")

    def stray_bell(self, table: RouletteState, seen: Envelope) -> Step:
        """After a null spin the bell alone announces the launch, and ends the changes of its bets."""
        if (carried := table.carried) is None:
            return super().stray_bell(table, seen)
        return replace(table, called=not carried.suspended and not seen.event.overtaken), ()

    def bell(self, table: RouletteState, seen: Envelope) -> Step:
        """Art. 3(2)(1): the bell comes before the launch."""
        if self.options.betting != "bell" or not table.launched or table.phase == "suspended":
            return super().bell(table, seen)
        note = Note("bell_after_launch", say("bell_after_launch"), self._cite(self._at.bell))
        return self.note(table, seen, note), ()

    def beside(self, table: RouletteState) -> bool:
        """Whether a bet is laid beside bets in doubt: up to the launch."""
        return super().beside(table) and not table.launched

    def shut(self, table: RouletteState) -> bool:
        """The bets of a null spin may be changed until a call."""
        return super().shut(table) or table.called

    def bet(self, table: RouletteState, seen: Envelope) -> Step:
        """Bets that are moved while the ball runs are remembered."""
        before = there(table.round).wagers
        table, verdicts = super().bet(table, seen)
        if there(table.round).wagers is before:
            return table, verdicts
        table = replace(table, moved=table.moved or table.launched)
        return (self.betting(table, seen) if isinstance(seen.event, WagerPlaced) else table), verdicts

    def stray_bet(self, table: RouletteState, seen: Envelope) -> Step:
        """What is refused between two spins is said at once."""
        after, verdicts = super().stray_bet(table, seen)
        if after.carried is None or not after.carried.irregularities:
            return after, verdicts
        return table, tuple(map(Noted, after.carried.irregularities))

    # ---- the number and the payment

    def check(self, table: RouletteState, outcome: BallLanded) -> Doubt | None:
        """Art. 4: a ball that was launched came to rest, after the bets were closed."""
        if not table.launched:
            return Doubt(say("no_launch", pocket=outcome.pocket), REMEDY)
        if outcome.pocket not in self._wins:
            return Doubt(say("no_pocket", pocket=outcome.pocket), REMEDY)
        if table.moved and table.phase == "open":
            return Doubt(say("never_called"), REMEDY)
        return None

    def decide(self, table: RouletteState, seen: Envelope) -> Step:
        """The number stays on show."""
        table, verdicts = super().decide(table, seen)
        if table.phase != "resolved":
            return table, verdicts
        return replace(table, last_pocket=table.told[0].pocket, unpaid=there(table.last).id), verdicts

    def same(self, one: BallLanded, other: BallLanded) -> bool:
        """One pocket."""
        return one.pocket == other.pocket

    def contradiction(self, last: Round, first: BallLanded, other: BallLanded) -> Note:
        """Two numbers of one spin."""
        text = say("number_after", second=other.pocket, first=first.pocket)
        return Note("landings_contradict", text, self._cite("4"))

    def stray(self, outcome: BallLanded) -> Note:
        """A number without a spin."""
        return Note("landing_without_spin", say("landed_no_round", pocket=outcome.pocket), self._cite("4"))

    def pay_nothing(self, table: RouletteState, seen: Envelope) -> Step:
        """Art. 3(1)."""
        return replace(table, unpaid=""), ()

    def pay(self, table: RouletteState, seen: Envelope) -> Step:
        """A payment that was told too late may be of the spin before: the number can still be disputed."""
        table = replace(table, unpaid="")
        if seen.event.overtaken:
            return table, ()
        table, verdicts = super().pay(table, seen)
        return replace(table, told=()), verdicts

    def confirm(self, table: RouletteState, seen: Envelope) -> Step:
        """Art. 3(1)."""
        return super().confirm(replace(table, unpaid=""), seen)

    def result(self, round_: Round, outcome: BallLanded) -> Result:
        """Arts. 4, 6 to 8."""
        facts, announcements = self._facts[outcome.pocket]
        return resolved(
            round_,
            self._terms,
            outcome=facts,
            winners=self._wins[outcome.pocket],
            announcements=announcements,
            law=self._law if outcome.pocket != "0" else (*self._law, self._cite("8")),
        )

    # ---- null spins and lost events

    def stray_void(self, table: RouletteState, seen: Envelope) -> Step:
        """The croupier and the wheel may both say so."""
        return super().stray_void(table, seen) if table.carried is None else (table, ())

    def after_void(self, table: RouletteState, round_: Round, **fields: Any) -> RouletteState:
        """Art. 2(2): the bets stand; where a call had ended the changes, they stay closed."""
        over = super().after_void(table, round_, **fields)
        closed = round_.closed and round_.suspended not in (MISSING, CLOTH)
        return replace(over, carried=replace(there(over.carried), closed=closed))

    def take_back(self, table: RouletteState, seen: Envelope) -> Step:
        """Declared null after the ball had come to rest: its number is not the last one."""
        table, verdicts = super().take_back(table, seen)
        return (table if table.last is not None else replace(table, last_pocket="", unpaid="")), verdicts

    def at_loss(self, table: RouletteState) -> RouletteState:
        """Whether the bell was this launch's is not known."""
        return replace(table, called=False)

    def hold(self, table: RouletteState, seen: Envelope, doubt: Doubt) -> Step:
        """Once the ball runs, another launch ends the spin."""
        if doubt.reason == MISSING and table.launched:
            doubt = Doubt(MISSING, REMEDY)
        return super().hold(table, seen, doubt)

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


def _decided_by_nobody(table: RouletteState) -> bool:
    """The spin waits, and not for bets that are given back at the next launch."""
    return table.round is not None and table.round.suspended not in ("", CLOTH)
