"""Roulette with one zero, for all its texts, which add bets and articles.

The flow: bets are laid; they close at a bell before the launch, or while the ball runs, by the text or the house; the
ball runs against the wheel and comes to rest; the round is resolved and paid. An object on the wheel makes the spin
null: the bets stand, the ball goes back into the last number's pocket and is launched again.

Readings, where the texts say nothing:

- A spin that ended unseen is void, its bets come back, and those of a null spin before it too.
- Bets that are opened while the ball runs are the next spin's if no wheel counts the spins: this one ended unseen.
- A second number disputes the result until it is paid (the first stands) or declared null; a new spin voids it. A null
  spin that was declared before the number and comes after it disputes it, too.
- A ball that was put back by hand while it ran has no number until it is launched again. If the wheel stopped, the ball
  has no number: the spin is suspended.
- After a null spin the bets may be moved where they were not closed, until a call closes them.
- Where "no more bets" was never called, a bet moved while the ball ran may have been moved by a player who saw the
  number: the spin is suspended.
- A suspended counted spin is not ended by its own launch: the wheel goes on by itself, without a person's decision.
- After a loss the bets that a null spin left are returned. Bets laid later belong to the next spin.
- After a loss without a counting wheel the next launch may be this spin's or another's. It ends nothing: the spin waits
  for a person, or for the bets of the next.

A game gives its families of bets (`rules/games/roulette_cloth.py` has their places), its articles and the croupier's
words.
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeVar

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
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.bets import Board
from rules.engine.rounds import Chips, Round, noted, resolved, terms
from rules.engine.ruleset import Noted, Result, Verdict, View, Voided, Win
from rules.engine.single_outcome import MISSING, Doubt, Move, Note, Null, Phase, Rulings, Step, there
from rules.engine.standing_bets import ClothTable, StandingBets, together
from rules.games.roulette_cloth import Numbers

# A wheel that misses more spins at once has a wrong counter.
MAX_MISSED: Final = 100

VOID: Final = {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "No spin"}
CLOTH: Final = say("cloth_spin")
REMEDY: Final = say("do_launch")
REMEDY_LOOK: Final = say("do_look_ball")
REMEDY_OPEN: Final = say("do_open_bets")
REMEDY_CLOTH: Final = say("do_give_back")


class Articles(Struct, frozen=True):
    """The articles of a spin, each as a result cites it.

    `paid_before`: the step that a text allows only after the last spin was paid, by `payment`. `with_rotor`: the ruling
    on a ball that runs with the wheel.
    """

    bets: str
    prizes: str
    zero: str
    late: str
    payment: str
    bell: str
    no_more_bets: str
    direction: str
    null: str
    put_back: str
    rest: str
    paid_before: Literal["bets", "launch"]
    with_rotor: Literal["null", "irregular"]


class House(Chips, Protocol):
    """The options of a house that has a wheel."""

    @property
    def payment(self) -> Literal["implied", "console"]: ...


class SpinState(ClothTable, frozen=True):
    """`launched`: the ball runs. `last_pocket` is the number of the last spin that counted.

    `unpaid` is the last result, until its payment. `counted`: a wheel began the spin, and its counter proves missed
    spins. `moved`: a bet was placed or taken back while the ball ran. `called`: a bell after a null spin ends the
    changes of its bets, if the ball is launched next. `put_back`: the ball's pocket after a null spin.
    """

    told: tuple[BallLanded, ...] = ()
    launched: bool = False
    last_pocket: str = ""
    unpaid: str = ""
    counted: bool = False
    moved: bool = False
    called: bool = False
    put_back: str = ""


def _rulings(at: Articles, look: Reason) -> Rulings:
    return Rulings(
        bets_law=at.bets,
        late_bets_law=at.late,
        stray_bets_law=at.late,
        void_law=(at.null,),
        never_ended=Null(say("spin_superseded"), (at.rest,)),
        never_closed=Note("no_call", say("no_call"), at.no_more_bets),
        stray_bell=Note("bell_without_round", say("bell_no_spin"), at.late),
        stray_void=Note("void_without_round", say("void_no_spin"), at.null),
        reopened=Note("bets_reopened", say("bets_reopened"), at.payment),
        missing=Doubt(say("round_events"), REMEDY_OPEN),
        contradicted=Doubt(say("numbers_contradict"), look),
        declared_before=Doubt(say("declared_before"), look),
        null_bets="stand",
    )


R = TypeVar("R", bound=SpinState)


class RouletteGame(StandingBets[R], Generic[R]):
    """A wheel with one zero. Subclasses add `calls`, the words of the game."""

    id: ClassVar[str]
    outcome: ClassVar[type[BallLanded]] = BallLanded
    lasting: ClassVar[tuple[str, ...]] = ("last_pocket", "unpaid")
    closing_words: ClassVar[dict[str, str]] = {}
    """The croupier's call at the closing of the bets, where the text prints it."""
    look: ClassVar[Reason] = REMEDY_LOOK
    """What a person can do about two numbers of one spin."""
    unknown: ClassVar[dict[str, str]] = {"last_pocket": ""}
    """The facts that are unknown after a spin that ended unseen."""

    def __init__(
        self, options: House, edition: str, board: Board, at: Articles, *, red: Numbers, launch_closes: bool
    ) -> None:
        """Compute, once, the winners of each pocket. `launch_closes`: the bets close before the launch."""
        self._house = options
        self._red = red
        self._at = at
        self._launch_closes = launch_closes
        made = terms(self.id, edition, options, VOID)
        super().__init__(made, board, _rulings(at, self.look), moved_unseen=Doubt(CLOTH, REMEDY_CLOTH))
        self._wins = {str(pocket): board.ending(pocket)[0] for pocket in range(37)}
        self._law = (at.rest, at.bets, at.prizes)
        self._facts = {str(pocket): self._outcome(pocket) for pocket in range(37)}

    # ---- hooks of the engine

    @abstractmethod
    def calls(self, pocket: int, facts: dict[str, Any]) -> dict[str, str]:
        """The croupier's call of this pocket, other than zero."""

    def transitions(self) -> dict[type[Any], dict[Phase, Move[R]]]:
        """The croupier and the wheel may both declare a spin null."""
        rows = super().transitions()
        landed = rows[BallLanded] | {"disputed": self.landed_again}
        return rows | {SpinVoided: rows[RoundVoided], BallLanded: landed}

    def view(self, table: R) -> View:
        """Phase: idle, betting, closed, running, suspended."""
        round_, last, pocket = table.round, table.last, {"last_pocket": table.last_pocket}
        if round_ is not None:
            phase = "running" if table.launched else "closed" if round_.closed else "betting"
            if round_.closed and not round_.suspended and self.closing_words:
                return View(round_.id, phase, {**pocket, "reason": None, "say": self.closing_words})
            return View(round_.id, "suspended" if round_.suspended else phase, {**pocket, "reason": round_.suspended})
        if last is not None and last.suspended:
            return View(last.id, "suspended", {**pocket, "reason": last.suspended})
        return View("", "idle", pocket)

    # ---- the wheel and the ball

    def play(self, table: R, seen: Envelope) -> Step[R]:
        """The wheel counts a spin, the ball runs, settles or is put back."""
        there_is, running = table.round is not None, table.round is not None and table.launched
        match seen.event:
            case SpinStarted():
                return self._started(table, seen)
            case BallLaunched() as launch:
                return self._launched(table, seen, launch)
            case BallSettling() if there_is:
                return self._close(self.witness(table, seen), seen)
            case SpinMissed(count=count):
                return self._missed(table, seen, count)
            case BallReplaced() if running:
                text = say("ball_by_hand")
                table = self.note(table, seen, Note("ball_replaced_while_it_ran", text, self._at.rest))
                return replace(table, launched=False), ()
            case WheelStopped() | WheelStarted() if running:
                return self.hold(table, seen, Doubt(say("wheel_stopped"), REMEDY))
            case BallReplaced(pocket=str(pocket)) if table.last_pocket not in ("", pocket):
                return self._misplaced(table, seen, pocket)
            case _:
                return table, ()

    def _close(self, table: R, seen: Envelope) -> Step[R]:
        return (table, ()) if there(table.round).closed else self.close(table, seen)

    def begin(self, table: R, seen: Envelope) -> Step[R]:
        """Begin the next spin. A disputed number, or that of a lost spin, is no longer the last one.

        A launch without an opening: the opening may be among the lost events, so all bets on the cloth are doubtful.
        """
        unheard, put_back = False, table.last_pocket if table.carried is not None else ""
        if isinstance(seen.event, BallLaunched):
            unheard = table.unseen if table.round is None else _decided_by_nobody(table) and table.counted
            if (carried := table.carried) is not None:
                unheard = unheard and not carried.suspended
                carried = replace(together(carried, table.laid), closed=carried.closed or table.called)
                table = replace(table, carried=carried, laid=None)
        if table.round is not None:
            table = replace(table, **self.unknown)
        elif table.phase == "disputed":
            table = replace(table, **self.unknown, unpaid="")
        table, verdicts = super().begin(replace(table, unheard=unheard), seen)
        return replace(table, put_back=put_back), verdicts

    def _started(self, table: R, seen: Envelope) -> Step[R]:
        if table.round is not None and not table.launched and not table.round.suspended:
            return replace(self.witness(table, seen), counted=True), ()
        table, verdicts = self.begin(table, seen)
        return replace(table, counted=True), verdicts

    def _launched(self, table: R, seen: Envelope, launch: BallLaunched) -> Step[R]:
        """Apply a launch. A waiting spin is not ended by its own launch or, after a loss, by one that may be its
        own.
        """
        verdicts: tuple[Verdict, ...] = ()
        round_ = table.round
        own = _decided_by_nobody(table) and (table.counted or (round_ is not None and round_.suspended == MISSING))
        if round_ is None or (round_.suspended and (table.launched or not own)):
            table, verdicts = self.begin(table, seen)
        else:  # its own launch; where it is launched again after a failed launch, this direction counts too
            table = self.witness(table, seen)
        table = self.at_launch(replace(table, launched=True), seen, launch)
        if self._launch_closes:
            table, closed = self._close(table, seen)
            verdicts += closed
        if launch.direction != launch.rotor:
            return table, verdicts
        note = Note("ball_with_rotor", say("ball_with_wheel"), self._at.direction)
        if self._at.with_rotor == "irregular":
            return self.note(table, seen, note), verdicts
        table, void = self.void(table, seen, Null(say("ball_with_rotor"), self._rulings.void_law, note))
        return table, verdicts + void

    def at_launch(self, table: R, seen: Envelope, launch: BallLaunched) -> R:
        """Note a launch that the text allows only after the last spin was paid."""
        return self._before_payment(table, seen, "launch")

    def _missed(self, table: R, seen: Envelope, count: int) -> Step[R]:
        """Publish a void result for each missed spin: the open one and each that the wheel's counter proves."""
        verdicts: tuple[Verdict, ...] = ()
        missed = Null(say("spin_missed"), (self._at.rest,))
        for _ in range(min(count, MAX_MISSED)):
            if table.round is None:
                table, opened = self.begin(table, seen)
                verdicts += opened
            round_ = together(there(table.round), table.laid)
            verdicts += (Voided(self.returned(round_, seen, missed.reason)),)
            table = self.fresh(table, **self.unknown)
        if count > MAX_MISSED:
            text = say("spins_unseen", n=count, voided=MAX_MISSED)
            verdicts += noted("spins_missed_beyond_belief", text, self._at.rest, seen)
        return table, verdicts

    def _misplaced(self, table: R, seen: Envelope, pocket: str) -> Step[R]:
        """Note a ball that, after a null spin, was put back into another pocket than that of the last number."""
        text = say("ball_put_back", pocket=pocket, last=table.last_pocket)
        law = self._at.put_back
        if table.round is not None:
            if table.put_back or seen.event.overtaken:  # a late one leaves a regular spin in doubt
                return self.note(table, seen, Note("ball_in_wrong_pocket", text, law)), ()
            return self.witness(table, seen), ()
        return table, noted("ball_in_wrong_pocket", text, law, seen) if table.carried is not None else ()

    # ---- bets

    def opens_next(self, table: R, seen: Envelope) -> bool:
        """Whether an opening belongs to the next spin: this one is suspended, or its ball runs and no wheel counts."""
        ran = table.launched and not table.counted and not seen.event.overtaken
        return ran or table.phase == "suspended"

    def reopened(self, table: R, seen: Envelope) -> R:
        """The table after an opening that is reported after the bell."""
        return table if seen.event.overtaken else super().reopened(table, seen)

    def betting(self, table: R, seen: Envelope) -> R:
        """Open the bets; irregular where the text allows it only after the last spin was paid."""
        return self._before_payment(table, seen, "bets")

    def _before_payment(self, table: R, seen: Envelope, what: Literal["bets", "launch"]) -> R:
        """Note once that the last spin still waits for its payment."""
        if not table.unpaid or self._house.payment != "console" or self._at.paid_before != what:
            return table
        note = Note(f"{what}_before_payment", say("not_paid", round=table.unpaid), self._at.payment)
        return replace(self.note(table, seen, note), unpaid="")

    def stray_bell(self, table: R, seen: Envelope) -> Step[R]:
        """Apply a bell after a null spin: it ends the changes of the standing bets before the launch."""
        if (carried := table.carried) is None:
            return super().stray_bell(table, seen)
        return replace(table, called=not carried.suspended and not seen.event.overtaken), ()

    def bell(self, table: R, seen: Envelope) -> Step[R]:
        """Close the bets; irregular after the launch where they close before it."""
        if not self._launch_closes or not table.launched or table.phase == "suspended":
            return super().bell(table, seen)
        note = Note("bell_after_launch", say("bell_after_launch"), self._at.bell)
        return self.note(table, seen, note), ()

    def beside(self, table: R) -> bool:
        """Whether bets are laid beside doubtful ones: until the bell or the launch."""
        return super().beside(table) and not table.launched

    def shut(self, table: R) -> bool:
        """Whether changes of a null spin's bets are over: after a call."""
        return super().shut(table) or table.called

    def bet(self, table: R, seen: Envelope) -> Step[R]:
        """Apply a bet, and record that it moved while the ball ran."""
        before = there(table.round).wagers
        table, verdicts = super().bet(table, seen)
        if there(table.round).wagers is before:
            return table, verdicts
        table = replace(table, moved=table.moved or table.launched)
        return (self.betting(table, seen) if isinstance(seen.event, WagerPlaced) else table), verdicts

    def stray_bet(self, table: R, seen: Envelope) -> Step[R]:
        """Apply a bet between two spins; a refusal is published at once."""
        after, verdicts = super().stray_bet(table, seen)
        if after.carried is None or not after.carried.irregularities:
            return after, verdicts
        return replace(table, refused=after.refused), tuple(map(Noted, after.carried.irregularities))

    # ---- the number and the payment

    def endings(self) -> Iterable[tuple[Win, ...]]:
        """The winning bets of each pocket."""
        return self._wins.values()

    def check(self, table: R, outcome: BallLanded) -> Doubt | None:
        """Why the number does not count: no launch, no such pocket, or bets that moved in the run without a call."""
        if not table.launched:
            return Doubt(say("no_launch", pocket=outcome.pocket), REMEDY)
        if outcome.pocket not in self._wins:
            return Doubt(say("no_pocket", pocket=outcome.pocket), REMEDY)
        if table.moved and table.phase == "open":
            return Doubt(say("never_called"), REMEDY)
        return None

    def decide(self, table: R, seen: Envelope) -> Step[R]:
        """Decide the spin; the number stays in the view."""
        table, verdicts = super().decide(table, seen)
        if table.phase != "resolved":
            return table, verdicts
        return replace(table, last_pocket=table.told[0].pocket, unpaid=there(table.last).id), verdicts

    def same(self, one: BallLanded, other: BallLanded) -> bool:
        """Whether both are the same pocket."""
        return one.pocket == other.pocket

    def contradiction(self, last: Round, first: BallLanded, other: BallLanded) -> Note:
        """Two numbers of one spin."""
        text = say("number_after", second=other.pocket, first=first.pocket)
        return Note("landings_contradict", text, self._at.rest)

    def stray(self, outcome: BallLanded) -> Note:
        """A number without a spin."""
        return Note("landing_without_spin", say("landed_no_round", pocket=outcome.pocket), self._at.rest)

    def landed_again(self, table: R, seen: Envelope) -> Step[R]:
        """Apply a number that comes again while two are disputed; if it stands, it is the last number."""
        table, verdicts = self._recount(table, seen)
        return (replace(table, last_pocket=table.told[0].pocket) if table.phase == "resolved" else table), verdicts

    def pay_nothing(self, table: R, seen: Envelope) -> Step[R]:
        """Handle a repeated or early payment."""
        return replace(table, unpaid=""), ()

    def pay(self, table: R, seen: Envelope) -> Step[R]:
        """Apply a payment. A late one may be of the spin before: the number can still be disputed."""
        table = replace(table, unpaid="")
        if seen.event.overtaken:
            return table, ()
        table, verdicts = super().pay(table, seen)
        return replace(table, told=()), verdicts

    def confirm(self, table: R, seen: Envelope) -> Step[R]:
        """Apply a payment while the number is disputed."""
        return super().confirm(replace(table, unpaid=""), seen)

    def result(self, round_: Round, outcome: BallLanded) -> Result:
        """The result of this pocket; zero has its own article in the text."""
        facts, announcements = self._facts[outcome.pocket]
        return resolved(
            round_,
            self._terms,
            outcome=facts,
            winners=self._wins[outcome.pocket],
            announcements=announcements,
            law=self._law if outcome.pocket != "0" else (*self._law, self._at.zero),
        )

    # ---- null spins and lost events

    def stray_void(self, table: R, seen: Envelope) -> Step[R]:
        """Handle a null spin without a round: croupier and wheel may both declare one."""
        return super().stray_void(table, seen) if table.carried is None else (table, ())

    def after_void(self, table: R, round_: Round, **fields: Any) -> R:
        """The table after a null spin: its bets stand, and stay closed if they were closed and are not in doubt."""
        over = super().after_void(table, round_, **fields)
        closed = round_.closed and round_.suspended not in (MISSING, CLOTH)
        return replace(over, carried=replace(there(over.carried), closed=closed))

    def take_back(self, table: R, seen: Envelope) -> Step[R]:
        """Handle a spin that is declared null after the ball came to rest: its number is not the last one."""
        table, verdicts = super().take_back(table, seen)
        return (table if table.last is not None else replace(table, last_pocket="", unpaid="")), verdicts

    def at_loss(self, table: R) -> R:
        """After a loss it is unknown whether the bell was of this launch and whether the last spin was paid."""
        return replace(table, called=False, unpaid="")

    def hold(self, table: R, seen: Envelope, doubt: Doubt) -> Step[R]:
        """Suspend the spin; once the ball runs, another launch ends it."""
        if doubt.reason == MISSING and table.launched:
            doubt = Doubt(MISSING, REMEDY)
        return super().hold(table, seen, doubt)

    def _outcome(self, pocket: int) -> tuple[dict[str, Any], dict[str, str]]:
        if pocket == 0:
            return {"pocket": "0"}, {"pt": "Zero", "zh-Hant": "零", "en": "Zero"}
        facts: dict[str, Any] = {
            "pocket": str(pocket),
            "colour": "red" if pocket in self._red else "black",
            "parity": "odd" if pocket % 2 else "even",
            "half": "high" if pocket > 18 else "low",
            "dozen": (pocket - 1) // 12 + 1,
            "column": (pocket - 1) % 3 + 1,
        }
        return facts, self.calls(pocket, facts)


def _decided_by_nobody(table: SpinState) -> bool:
    """Whether the spin waits for a person, and not only for bets that are returned at the next launch."""
    return table.round is not None and table.round.suspended not in (None, CLOTH)
