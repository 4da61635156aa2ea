"""Dice thrown by hand, reported by the dealer (`dice.thrown`), by a recogniser (`dice.read`) or by both.

`ThrownDice` handles the throws of a round, which may last over many of them; a game determines what a throw decides.
Readings:

- Two entries of the dealer are two throws. His entry after a reading is of the same throw.
- A reading within `reading_seconds` of the last report is of the same throw, later it is of the next one. Before the
  first throw of a round a reading within that time belongs to the round before: it closes and decides nothing.
- Where two reports of a throw differ, the round is suspended. Only the dealer can declare a read throw null. While the
  round is suspended, a throw stands if the dealer enters it as it was last reported.
- Seized dice suspend the round until another set is in play. A throw reported meanwhile is doubtful.
- A payment while no throw has decided shows that the deciding throw was not reported: the round is suspended until the
  dealer enters it twice.
- A second, different report of the deciding throw, before the payment, disputes the result: once paid, the first one
  stands. It does not stand if the dealer has since called the throw null, or entered another one than was read: then it
  is unknown which he paid, and the bets are returned unless he enters the first one again.
"""

from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import DiceRead, DiceReplaced, DiceSeized, DiceThrown, RoundPaid
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.bets import Board
from rules.engine.rounds import Terms, declared, witness
from rules.engine.ruleset import Verdict
from rules.engine.single_outcome import Doubt, Move, Note, Phase, Rulings, SingleOutcome, Table, there

Step: TypeAlias = tuple["ThrownTable", tuple[Verdict, ...]]

NOT_FLAT: Final = "a_die_not_flat_and_alone"
SEIZED: Final = say("dice_seized")
REMEDY: Final = say("do_enter_throw")
REMEDY_SET: Final = say("do_set")


class Throw(Struct, frozen=True):
    """A throw as reported: its faces, sorted, or why it is null.

    `by_hand`: the dealer entered it. `touched`: he touched the dice before he announced it. A throw that decides has
    the `throws`, `nulls` and `shown` of its round.
    """

    faces: tuple[int, ...]
    null: str = ""
    by_hand: bool = True
    touched: bool = False
    throws: int = 0
    nulls: int = 0
    shown: tuple[int, ...] = ()


class ThrownTable(Table, frozen=True, forbid_unknown_fields=True):
    """`throws` and `nulls` count those of the round, `shown` how often its valid throws showed each face from 1 to 6.

    `current` is the last throw, `told_at` the time of its report.

    `confirmed`: both sources reported it, or another set followed. `pending`: the last doubtful report. `touched`: the
    dealer touched the dice before the next report. `between`: bets may be moved until the bell or the next throw.
    `dice_set`: "to_replace" and "seized" require another one.
    """

    told: tuple[Throw, ...] = ()
    throws: int = 0
    nulls: int = 0
    shown: tuple[int, ...] = (0,) * 6
    current: Throw | None = None
    told_at: datetime | None = None
    confirmed: bool = False
    pending: Throw | None = None
    touched: bool = False
    between: bool = False
    dice_set: Literal["in_play", "to_replace", "seized"] = "in_play"


class ThrownDice(SingleOutcome[ThrownTable]):
    """A game of `dice` dice thrown by hand. Subclasses add `counts` and the results."""

    State: ClassVar[type[ThrownTable]] = ThrownTable
    outcome: ClassVar[type[DiceThrown]] = DiceThrown
    lasting: ClassVar[tuple[str, ...]] = ("told_at", "dice_set")
    dice: ClassVar[int] = 3

    def __init__(self, terms: Terms, board: Board, rulings: Rulings, reading_seconds: float) -> None:
        super().__init__(terms, board, rulings)
        self._window = timedelta(seconds=reading_seconds)

    def transitions(self) -> dict[type[Any], dict[Phase, Move[ThrownTable]]]:
        """The transitions; a recogniser's reading is handled like the dealer's entry."""
        rows = super().transitions()
        rows[RoundPaid] = {**rows[RoundPaid], "closed": self._paid_undecided}
        return {**rows, DiceRead: rows[DiceThrown]}

    def _paid_undecided(self, table: ThrownTable, seen: Envelope) -> Step:
        """Handle a payment without a deciding throw; it may be late, or name another round."""
        event, round_ = seen.event, there(table.round)
        assert isinstance(event, RoundPaid)
        if not table.throws or event.overtaken or event.round not in ("", round_.id):
            return table, ()
        return self.hold(replace(table, pending=None), seen, Doubt(say("paid_undecided"), REMEDY))

    @abstractmethod
    def counts(self, table: ThrownTable, seen: Envelope, throw: Throw) -> Step:
        """Apply a throw of the open round at its first report, or when the dealer declares it null."""

    # ---- the set

    def begin(self, table: ThrownTable, seen: Envelope) -> Step:
        """Begin a round; without a set of dice it waits for one."""
        table, verdicts = super().begin(table, seen)
        if table.dice_set != "seized" or there(table.round).suspended:
            return table, verdicts
        table, held = self.hold(table, seen, Doubt(SEIZED, REMEDY_SET))
        return table, verdicts + held

    def play(self, table: ThrownTable, seen: Envelope) -> Step:
        """Apply a seizure or replacement of the dice."""
        match seen.event:
            case DiceSeized():
                table = replace(table, dice_set="seized")
                return (table, ()) if table.round is None else self.hold(table, seen, Doubt(SEIZED, REMEDY_SET))
            case DiceReplaced():
                return self._replaced(replace(table, dice_set="in_play", confirmed=True), seen), ()
            case _:
                return table, ()

    def _replaced(self, table: ThrownTable, seen: Envelope) -> ThrownTable:
        """The table with another set; play goes on, unless a throw was reported while the set was seized."""
        if table.round is None:
            return table
        table = self.witness(table, seen)
        round_ = there(table.round)
        goes_on = round_.suspended == SEIZED and table.pending is None and not table.unheard
        return replace(table, round=replace(round_, suspended=None)) if goes_on else table

    def at_loss(self, table: ThrownTable) -> ThrownTable:
        """After a loss, later reports of the dice may be of another set or another throw."""
        return replace(table, current=None, pending=None, touched=False, dice_set="in_play")

    # ---- a disputed result

    def _recount(self, table: ThrownTable, seen: Envelope) -> Step:
        """Let the dealer's last entry decide the disputed result: he pays by it."""
        table, verdicts = super()._recount(table, seen)
        throw = self.kept(thrown(seen))
        known = throw.by_hand and not table.unseen
        return (replace(table, told=(table.told[0], throw)) if known else table), verdicts

    def confirm(self, table: ThrownTable, seen: Envelope) -> Step:
        """Apply a payment of a disputed result; it confirms no reading that the dealer contradicted or called null."""
        first, entered = table.told[0], table.told[-1]
        contradicted = entered.by_hand and (entered.null or not first.by_hand)
        if contradicted and not self.same(first, entered):
            return replace(table, last=witness(there(table.last), seen)), ()
        return super().confirm(table, seen)

    # ---- the throws

    def kept(self, outcome: DiceThrown | DiceRead) -> Throw:
        """The throw: null for stacked or leaning dice. At most one face more than there are dice is kept."""
        faces = tuple(sorted(outcome.faces))[: self.dice + 1]
        match outcome:
            case DiceRead(stacked=stacked, leaning=leaning):
                return Throw(faces, NOT_FLAT if stacked or leaning else "", by_hand=False)
            case DiceThrown(valid=valid, reason=reason):
                return Throw(faces, "" if valid else reason or "declared")

    def same(self, one: Throw, other: Throw) -> bool:
        """Whether both are null, or both count and show the same faces."""
        return bool(one.null and other.null) or (not one.null and not other.null and one.faces == other.faces)

    def decide(self, table: ThrownTable, seen: Envelope) -> Step:
        """Apply a throw, which also closes the bets."""
        table, before, throw = self.witness(table, seen), table.current, self.kept(thrown(seen))
        between = table.between
        if not table.throws and before is None and not throw.by_hand and self._soon(table, seen):
            return self.note(table, seen, self.stray(throw)), ()
        table, closed = self.close_late(table, seen)
        again = before is not None and self._same_throw(table, before, seen)
        table = replace(table, shown=_tally(table.shown, before, -1)) if again else replace(table, current=None)
        if (doubt := self.check(table, throw)) is not None:
            # A doubtful throw is counted when it stands.
            table = replace(table, pending=throw, throws=table.throws - again)
            table, held = self.hold(table, seen, doubt)
            return table, closed + held
        table = replace(table, shown=_tally(table.shown, throw, 1))
        if before is not None and again and self.same(before, throw):
            # The same throw was reported again: the permission to move bets stays as it was.
            return replace(table, confirmed=True, touched=False, between=between), closed
        table = replace(table, throws=table.throws + (not again), nulls=table.nulls + bool(throw.null))
        table, ended = self.counts(table, seen, throw)
        return table, closed + ended

    def _same_throw(self, table: ThrownTable, before: Throw, seen: Envelope) -> bool:
        """Whether a report is of the same throw as the one before."""
        if isinstance(seen.event, DiceRead):
            return self._soon(table, seen)
        return not before.by_hand and not table.confirmed

    def _soon(self, table: ThrownTable, seen: Envelope) -> bool:
        return table.told_at is not None and seen.time - table.told_at <= self._window

    def check(self, table: ThrownTable, outcome: Throw) -> Doubt | None:
        """Why a throw is doubtful: a seized set, a wrong number of dice, or a different report of the same throw."""
        before = table.current
        if table.dice_set == "seized":
            return Doubt(SEIZED, REMEDY_SET)
        if not outcome.null and len(outcome.faces) != self.dice:
            return Doubt(say("faces", n=len(outcome.faces)), REMEDY)
        if before is None or self.same(before, outcome) or (outcome.by_hand and outcome.null):
            return None
        return Doubt(say("readings"), REMEDY)

    def undecided(self, table: ThrownTable, seen: Envelope, throw: Throw) -> ThrownTable:
        """The table after a throw that decides nothing: the bets stand."""
        return replace(table, current=throw, told_at=seen.time, confirmed=False, touched=False)

    def null(self, table: ThrownTable, seen: Envelope, throw: Throw, law: str) -> ThrownTable:
        """The table after a null throw, which is noted with its reason."""
        table = self.note(table, seen, Note("null_throw", declared(throw.null), law))
        return self.undecided(table, seen, throw)

    def in_doubt(self, table: ThrownTable, seen: Envelope) -> Step:
        """Apply a throw in doubt: it stands if the dealer enters it as last reported, unless events are missing."""
        table, throw = self.witness(table, seen), self.kept(thrown(seen))
        again = table.pending is not None and throw.by_hand and self.same(table.pending, throw)
        table = replace(table, pending=throw, current=None)
        if table.unheard or not again or self.check(table, throw) is not None:
            return table, ()
        round_ = replace(there(table.round), suspended=None)
        return self.decide(replace(table, round=round_, pending=None), seen)


def _tally(shown: tuple[int, ...], throw: Throw | None, times: int) -> tuple[int, ...]:
    """The count of each face, with this throw added or removed `times` times."""
    if throw is None or throw.null:
        return shown
    return tuple(count + times * throw.faces.count(face) for face, count in enumerate(shown, 1))


def thrown(seen: Envelope) -> DiceThrown | DiceRead:
    assert isinstance(seen.event, DiceThrown | DiceRead)
    return seen.event
