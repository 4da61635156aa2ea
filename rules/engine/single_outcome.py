"""The life of a round that one event decides: a heap that is counted, a throw that is read, a ball that comes to rest.

The rulesets of such games derive from `SingleOutcome`. It owns the round: opening, bell, wagers, lost events, outcome,
payment, void rounds, contradictions and numbering. A game adds only the effects of its own events, the prizes of its
outcome, and its articles. The phases of a table, and their transitions:

    idle                     --the bets are opened, or an event of the game--> open
    open                     --bell--> closed
    open, closed             --events are lost, an event is doubtful--> suspended
    open, closed             --outcome--> resolved
    open, closed, suspended  --declared void, or void by its article--> idle
    resolved                 --payment, declared void--> idle
    resolved                 --another outcome, declared void too late--> disputed
    disputed                 --payment (the first outcome stands), declared void--> idle
    disputed                 --one of the outcomes again, where a person enters it--> resolved
    every phase              --the next round--> open: a round or a dispute that was left ends, its bets are returned

A suspended round is never resolved, because a later outcome may be another round's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
    type_of,
)
from protocols.contract.facts import RoundFacts
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.bets import Board
from rules.engine.cloth import at_close, handed_back, lying, not_taken, refuse, wager
from rules.engine.limits import Limits, Range, Refusal
from rules.engine.money import odds
from rules.engine.rounds import (
    MAX_WAGER_EVIDENCE,
    Round,
    Terms,
    declared,
    irregular,
    limits_of,
    next_number,
    suspend,
    voided,
    witness,
)
from rules.engine.ruleset import (
    Bet,
    Closed,
    Corrected,
    Irregularity,
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
)

Phase: TypeAlias = Literal["idle", "open", "closed", "suspended", "resolved", "disputed"]
PHASES: Final[tuple[Phase, ...]] = ("idle", "open", "closed", "suspended", "resolved", "disputed")
MISSING: Final = say("round_events")


class Note(Struct, frozen=True):
    """An irregularity, before it is tied to the event that shows it."""

    code: str
    reason: Reason
    law: str


class Doubt(Struct, frozen=True):
    """Why a round waits for a person, and what that person can do."""

    reason: Reason
    remedy: Reason


class Null(Struct, frozen=True):
    """Why a round does not count, by which articles. `note` is the irregularity that made it void.

    `bets`: what happens to the bets, if it differs from `Rulings.null_bets`.
    """

    reason: Reason
    law: tuple[str, ...]
    note: Note | None = None
    outcome: dict[str, Any] | None = None
    bets: Literal["", "stand"] = ""


class Rulings(Struct, frozen=True):
    """The articles of a text on the life of a round.

    `never_ended`: why a round is void that was left without its outcome; `never_closed`: its outcome came without a
    bell; `null_bets`: what happens to the bets of a void round.
    """

    bets_law: str
    late_bets_law: str
    stray_bets_law: str
    void_law: tuple[str, ...]
    never_ended: Null
    stray_bell: Note
    stray_void: Note
    reopened: Note
    missing: Doubt
    contradicted: Doubt
    declared_before: Doubt
    never_closed: Note | None = None
    null_bets: Literal["returned", "may_change", "stand", "stand_may_add"] = "returned"


class Table(Struct, frozen=True, gc=False):
    """The state of a table.

    `opened`: the console opened the bets of the round. `last` is the resolved round until it is paid, `told` are its
    reported outcomes, of which the first decided. `unseen`: events were lost since, so that an outcome or a payment may
    be another round's. `unheard`: the lost events may include the beginning of the next round. `refused`: refused chips
    that lie on the cloth while there is no round.
    """

    table: str
    day: str = ""
    count: int = 0
    round: Round | None = None
    opened: bool = False
    last: Round | None = None
    told: tuple[Any, ...] = ()
    unseen: bool = False
    unheard: bool = False
    refused: tuple[Wager, ...] = ()

    @property
    def ledger(self) -> tuple[Wager, ...]:
        """The refused chips that lie on the cloth."""
        return self.refused if self.round is None else self.round.refused

    @property
    def phase(self) -> Phase:
        """The phase of the round."""
        if self.round is not None:
            return "suspended" if self.round.suspended else "closed" if self.round.closed else "open"
        if self.last is None:
            return "idle"
        return "disputed" if self.last.suspended else "resolved"

    @property
    def on_table(self) -> str:
        """The name of the open round, or of the last round that was not paid; "" for none."""
        round_ = self.round or self.last
        return round_.id if round_ is not None else ""


T = TypeVar("T", bound=Table)
Step: TypeAlias = tuple[T, tuple[Verdict, ...]]
Move: TypeAlias = Callable[[T, Envelope], Step[T]]


class SingleOutcome(ABC, Generic[T]):
    """A game that one event decides. This class is the state machine; subclasses add the game."""

    State: ClassVar[type[Any]]
    Facts: ClassVar[type[RoundFacts]] = RoundFacts
    outcome: ClassVar[type[Any]]
    """The event that decides a round."""
    starts: ClassVar[tuple[type[Any], ...]] = ()
    """The events that show the beginning of a round completely, also after a loss."""
    lasting: ClassVar[tuple[str, ...]] = ()
    """The fields of the game's state that outlast a round."""
    told_again_stands: ClassVar[bool] = False
    """Whether a disputed outcome stands when it is reported again. True if a person enters it; a device only
    repeats.
    """

    def __init__(self, terms: Terms, board: Board, rulings: Rulings) -> None:
        self._terms = terms
        self._board = board
        self._offered = frozenset(board.places)
        self._rulings = rulings
        self._transitions = self.transitions()

    @classmethod
    def whole_rounds(cls) -> Iterator[tuple[Event, ...]]:
        """A round for each outcome, all equally likely, without bets, as the events of a table with the default
        options.

        The figures of the game are computed from them; the laboratory and the tests of all games play them. A game
        without such a list yields nothing.
        """
        return iter(())

    @cached_property
    def limits(self) -> Limits:
        """What the table takes of bets."""
        return limits_of(self._terms, (bet.id for bet in self._board.bets), self._best, self.article_limits())

    def _best(self) -> Mapping[str, Fraction]:
        """The largest prize of each place."""
        best: dict[str, Fraction] = {}
        for winners in self.endings():
            for win in winners:
                best[win.bet] = max(best.get(win.bet, Fraction(0)), odds(win.pays))
        return best

    @property
    def board(self) -> tuple[str, ...]:
        """Every place that is offered, in the order of the text."""
        return self._board.places

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of the text."""
        return self._board.bets

    def start(self, table: str) -> T:
        """The state of a new table."""
        state: T = self.State(table)
        return state

    @abstractmethod
    def view(self, table: T) -> View:
        """The public part of the state."""

    # ---- hooks of a game

    @abstractmethod
    def play(self, table: T, seen: Envelope) -> Step[T]:
        """Apply an event of the game; other events change nothing."""

    @abstractmethod
    def check(self, table: T, outcome: Any) -> Note | Doubt | Null | None:
        """Why this outcome does not resolve the open round (invalid, doubtful or void); None where it does."""

    @abstractmethod
    def result(self, round_: Round, outcome: Any) -> Result:
        """The result of a round that counts."""

    @abstractmethod
    def endings(self) -> Iterable[tuple[Win, ...]]:
        """The winning bets of each possible outcome."""

    def article_limits(self) -> Mapping[str, Range]:
        """The limits that the text sets, by family."""
        return {}

    def refused(self, table: T, round_: Round, bet: WagerPlaced | WagerWithdrawn) -> Note | Refusal | None:
        """Why the game refuses this change of an offered bet; limits are checked separately."""
        return None

    def resolve(self, table: T, round_: Round, outcome: Any) -> Result:
        """The result of a round that counts, where it also depends on bets that earlier rounds left."""
        return self.result(round_, outcome)

    def leaves(self, table: T, round_: Round, result: Result) -> dict[str, Any]:
        """The fields of the game's state that a result leaves to the next round."""
        return {}

    def kept(self, outcome: Any) -> Any:
        """The part of an outcome that is kept until the payment."""
        return outcome

    def same(self, one: Any, other: Any) -> bool:
        """Whether two outcomes decide the same."""
        return bool(one == other)

    @abstractmethod
    def contradiction(self, last: Round, first: Any, other: Any) -> Note:
        """The note of two different outcomes of one round."""

    @abstractmethod
    def stray(self, outcome: Any) -> Note:
        """The note of an outcome while no round waits for it."""

    def is_outcome(self, outcome: Any) -> bool:
        """Whether an outcome can dispute another one."""
        return True

    def opens_next(self, table: T, seen: Envelope) -> bool:
        """Whether an opening of bets during a round belongs to the next round."""
        return bool(table.round is not None and table.round.suspended)

    def at_opening(self, table: T) -> Note | None:
        """What is irregular about the bets being opened now."""
        return None

    def at_bell(self, table: T, seen: Envelope) -> tuple[T, Null | None]:
        """The game's state after the bell, and why the bell makes the round void, if it does."""
        return table, None

    def at_bet(self, table: T, bet: WagerPlaced | WagerWithdrawn) -> Note | None:
        """What is irregular about this bet being placed now."""
        return None

    def at_loss(self, table: T) -> T:
        """The game's state after a loss, without the facts that may have changed unseen."""
        return table

    # ---- the state machine

    def apply(self, table: T, seen: Envelope) -> Step[T]:
        """Apply one event."""
        event = seen.event
        if isinstance(event, DeviceOnline) and event.continuous:
            return table, ()
        if isinstance(event, RoundVoided) and event.round and event.round != table.on_table:
            text = say("round_not_on_table", event=type_of(event), round=event.round[:80])
            return table, _noted(Note("round_unknown", text, self._rulings.stray_void.law), seen)
        if isinstance(event, WagerWithdrawn):
            table, rest = self._handed_back(table, event, seen)
            if rest is None:
                return table, ()
            event, seen = rest, replace(seen, event=rest)
        moves = self._transitions.get(type(event))
        return self.play(table, seen) if moves is None else moves[table.phase](table, seen)

    def _handed_back(self, table: T, event: WagerWithdrawn, seen: Envelope) -> tuple[T, WagerWithdrawn | None]:
        """Take refused chips away first; the rest of the withdrawal changes the bet, None if nothing is left."""
        chips, rest = handed_back(table.ledger, event, self.held(table, event.seat, event.bet))
        if chips is table.ledger:
            return table, rest
        if table.round is None:
            return replace(table, refused=chips), rest
        round_ = witness(replace(table.round, refused=chips), seen, MAX_WAGER_EVIDENCE)
        return replace(table, round=round_), rest

    def held(self, table: T, seat: int, bet: str) -> int:
        """The amount on a bet, in minor units."""
        return lying(table.round, seat, bet) if table.round is not None else 0

    def transitions(self) -> dict[type[Any], dict[Phase, Move[T]]]:
        """What each event does in each phase."""
        bet, void, lose, nothing = self.bet, self._declare_void, self.lose, self.pay_nothing
        wagers = (self.stray_bet, bet, bet, bet, self.stray_bet, self.stray_bet)
        rows: dict[type[Any], tuple[Move[T], ...]] = {
            # idle, open, closed, suspended, resolved, disputed
            BetsOpened: (self._open, self._go_on, self._go_on, self._go_on, self._open, self._open),
            WagerPlaced: wagers,
            WagerWithdrawn: wagers,
            BetsClosed: (self.stray_bell, self.bell, self.bell, self.bell, self.stray_bell, self.stray_bell),
            self.outcome: (self._again, self.decide, self.decide, self.in_doubt, self._again, self._recount),
            RoundPaid: (nothing, nothing, nothing, nothing, self.pay, self.confirm),
            RoundVoided: (self.stray_void, void, void, void, self.take_back, self.take_back),
            EventsMissed: (lose, lose, lose, lose, lose, lose),
            DeviceOnline: (lose, lose, lose, lose, lose, lose),
        }
        return {event: dict(zip(PHASES, moves, strict=True)) for event, moves in rows.items()}

    # ---- opening, bell, wagers

    def begin(self, table: T, seen: Envelope) -> Step[T]:
        """Begin the next round. A round that is still open, or a disputed result, ends with its bets returned."""
        verdicts: tuple[Verdict, ...] = ()
        if table.round is not None:
            reason = table.round.suspended or self._rulings.never_ended.reason
            verdicts = (Voided(self.returned(table.round, seen, reason)),)
        elif table.last is not None and table.last.suspended:
            verdicts = (_corrected(self.returned(table.last, seen, table.last.suspended)),)
        if isinstance(seen.event, self.starts):
            table = replace(table, unheard=False)
        day, count = next_number(table.day, table.count, seen)
        round_, fields = self.cloth(table, seen)
        round_ = replace(round_, id=f"{table.table}:{day}:{count}", refused=table.ledger)
        if round_.closed:
            round_ = self.judged(table, round_, seen)
        round_ = witness(round_, seen)
        verdicts += (Opened(round_.id),)
        if round_.closed:
            verdicts += (Closed(round_.id),)
        if round_.suspended:
            verdicts += (Suspended(round_.id, round_.suspended, self.remedy(round_)),)
        return self.fresh(table, day=day, count=count, round=round_, refused=(), **fields), verdicts

    def cloth(self, table: T, seen: Envelope) -> tuple[Round, dict[str, Any]]:
        """The bets that lie on the cloth for the next round, whose beginning may be among the lost events."""
        return Round("", suspended=MISSING if table.unheard else None), {}

    def remedy(self, round_: Round) -> Reason:
        """What a person can do about a round that waits from its beginning."""
        return self._rulings.missing.remedy

    def fresh(self, table: T, **fields: Any) -> T:
        """A table without a round, with the lasting fields of the game and the refused chips."""
        known = {name: getattr(table, name) for name in ("table", "day", "count", "unheard", *self.lasting)}
        fresh: T = self.State(**known | {"refused": table.ledger} | fields)
        return fresh

    def _open(self, table: T, seen: Envelope) -> Step[T]:
        table, verdicts = self.begin(table, seen)
        return self.betting(table, seen), verdicts

    def _go_on(self, table: T, seen: Envelope) -> Step[T]:
        if self.opens_next(table, seen):
            return self._open(table, seen)
        table = self.witness(table, seen)
        if table.round is not None and table.round.closed:
            return self.reopened(table, seen), ()
        return self.betting(table, seen), ()

    def reopened(self, table: T, seen: Envelope) -> T:
        """Bets are opened after the bell."""
        return self.note(table, seen, self._rulings.reopened)

    def betting(self, table: T, seen: Envelope) -> T:
        """The bets of the round are open."""
        if not table.opened and table.phase != "suspended" and (note := self.at_opening(table)):
            table = self.note(table, seen, note)
        return replace(table, opened=True)

    def stray_bell(self, table: T, seen: Envelope) -> Step[T]:
        return table, _noted(self._rulings.stray_bell, seen)

    def bell(self, table: T, seen: Envelope) -> Step[T]:
        table = self.witness(table, seen)
        if table.round is None or table.round.closed:
            return table, ()
        table, null = self.at_bell(table, seen)
        table, verdicts = self.close(table, seen)
        if null is None:
            return table, verdicts
        table, void = self.void(table, seen, null)
        return table, verdicts + void

    def stray_bet(self, table: T, seen: Envelope) -> Step[T]:
        event = bet_of(seen)
        note = Note("bet_without_round", say("seat_bet", seat=event.seat, bet=event.bet), self._rulings.stray_bets_law)
        if event.bet in self._offered:
            table = replace(table, refused=not_taken(table.refused, event))
        return table, _noted(note, seen)

    def bet(self, table: T, seen: Envelope) -> Step[T]:
        event, round_ = bet_of(seen), there(table.round)
        law = self._rulings.late_bets_law if round_.closed else self._rulings.bets_law
        taken = not round_.closed and event.bet in self._offered
        if taken and (why := self.refused(table, round_, event)) is not None:
            return replace(table, round=refuse(round_, event, why.code, why.reason, why.law, seen)), ()
        laid = wager(round_, event, self._offered, law, seen, self.limits)
        placed = isinstance(event, WagerPlaced) and laid.wagers != round_.wagers
        if placed and (note := self.at_bet(table, event)):
            laid = noted_on(laid, note, seen)
        return replace(table, round=laid), ()

    # ---- the outcome

    def decide(self, table: T, seen: Envelope) -> Step[T]:
        table = self.witness(table, seen)
        match self.check(table, seen.event):
            case Note() as note:
                return self.note(table, seen, note), ()
            case Doubt() as doubt:
                return self.hold(table, seen, doubt)
            case Null() as null:
                table, verdicts = self.void(table, seen, null)
                told = (self.kept(seen.event),) if null.outcome is not None else ()
                return (replace(table, told=told) if told else table), verdicts
        table, verdicts = self.close_late(table, seen)
        round_, outcome = there(table.round), self.kept(seen.event)
        result = self.resolve(table, round_, outcome)
        left = self.leaves(table, round_, result)
        return self.fresh(table, last=round_, told=(outcome,), **left), (*verdicts, Resolved(result))

    def close_late(self, table: T, seen: Envelope) -> Step[T]:
        """Close the bets by the outcome if no bell has closed them."""
        if table.phase == "closed":
            return table, ()
        if self._rulings.never_closed is not None:
            table = self.note(table, seen, self._rulings.never_closed)
        return self.close(table, seen)

    def in_doubt(self, table: T, seen: Envelope) -> Step[T]:
        """A suspended round is not resolved: this outcome may be another round's."""
        return self.witness(table, seen), ()

    def _again(self, table: T, seen: Envelope) -> Step[T]:
        """The same outcome changes nothing; another one, before the payment, disputes the result."""
        last, told, outcome = table.last, table.told, self.kept(seen.event)
        if not table.unseen and any(self.same(one, outcome) for one in told):
            return table, ()
        if last is None or table.unseen or not self.is_outcome(outcome):
            return table, _noted(self.stray(outcome), seen)
        doubt = self._rulings.contradicted
        last = noted_on(last, self.contradiction(last, told[0], outcome), seen)
        last, verdicts = suspend(last, seen, doubt.reason, doubt.remedy)
        return replace(table, last=last, told=(*told, outcome)), verdicts

    def _recount(self, table: T, seen: Envelope) -> Step[T]:
        """Let the disputed outcome stand that a person enters again."""
        last, outcome = witness(there(table.last), seen), self.kept(seen.event)
        if table.unseen:  # it may be another round's
            return table, _noted(self.stray(outcome), seen)
        table = replace(table, last=last)
        if not self.told_again_stands or not self.is_outcome(outcome):
            return table, ()
        known = next((one for one in table.told if self.same(one, outcome)), None)
        if known is None:
            return replace(table, told=(*table.told, outcome)), ()
        last = replace(last, suspended=None)
        result = self.resolve(table, last, known)
        left = self.leaves(table, last, result)
        return replace(table, last=last, told=(known,), **left), (_corrected(result),)

    def pay_nothing(self, table: T, seen: Envelope) -> Step[T]:
        """Handle a payment while no result waits for it."""
        return table, ()

    def pay(self, table: T, seen: Envelope) -> Step[T]:
        return self.fresh(table, told=table.told[:1], unseen=table.unseen), ()

    def confirm(self, table: T, seen: Envelope) -> Step[T]:
        """Let the first outcome of a disputed round stand: the croupier, who sees the table, has paid it."""
        last = witness(there(table.last), seen)
        if table.unseen or seen.event.overtaken:  # the payment may be of a lost round, or of the one before
            return replace(table, last=last), ()
        paid, _ = self.pay(table, seen)
        return paid, (_corrected(self.resolve(table, replace(last, suspended=None), table.told[0])),)

    # ---- void rounds and lost events

    def stray_void(self, table: T, seen: Envelope) -> Step[T]:
        return table, _noted(self._rulings.stray_void, seen)

    def _declare_void(self, table: T, seen: Envelope) -> Step[T]:
        return self.void(self.witness(table, seen), seen, Null(_declared(seen), self._rulings.void_law))

    def take_back(self, table: T, seen: Envelope) -> Step[T]:
        """Handle a void declared after the result. A late one, declared before the result, may mean the round
        before.
        """
        last = there(table.last)
        if seen.event.overtaken:
            doubt = self._rulings.declared_before
            last, verdicts = suspend(last, seen, doubt.reason, doubt.remedy)
            return replace(table, last=last), verdicts
        last = witness(last, seen)
        result = voided(last, self._terms, Void(_declared(seen), self._rulings.null_bets), self._rulings.void_law)
        last = replace(last, suspended=MISSING if table.unseen else None)
        return self.after_void(table, last, unseen=table.unseen), (_corrected(result),)

    def after_void(self, table: T, round_: Round, **fields: Any) -> T:
        """The table without the void round."""
        return self.fresh(table, **fields)

    def returned(self, round_: Round, seen: Envelope, reason: Reason) -> Result:
        """A void result that returns all bets, for a round whose end is unknown and which no article covers."""
        return voided(witness(round_, seen), self._terms, Void(reason, "returned"), self._rulings.never_ended.law)

    def lose(self, table: T, seen: Envelope) -> Step[T]:
        table = replace(self.at_loss(table), unheard=True)
        if table.round is None:
            return replace(table, unseen=True), ()
        if table.round.suspended:
            return table, ()
        return self.hold(table, seen, self._rulings.missing)

    # ---- a game's changes of the open round

    def witness(self, table: T, seen: Envelope) -> T:
        """Add this event to the round's evidence."""
        return replace(table, round=witness(there(table.round), seen))

    def note(self, table: T, seen: Envelope, note: Note) -> T:
        """Note an irregularity of the round."""
        return replace(table, round=noted_on(there(table.round), note, seen))

    def close(self, table: T, seen: Envelope) -> Step[T]:
        """Close the bets of the round."""
        round_ = replace(self.judged(table, there(table.round), seen), closed=True)
        return replace(table, round=round_), (Closed(round_.id),)

    def judged(self, table: T, round_: Round, seen: Envelope) -> Round:
        """The round after the check of its limits when the bets close; unknown bets are not checked."""
        if table.unheard or round_.suspended in self.bets_unknown:
            return round_
        return at_close(round_, self.limits, self._rulings.bets_law, seen)

    @cached_property
    def bets_unknown(self) -> tuple[Reason, ...]:
        """Why a round with unknown bets waits."""
        return (self._rulings.missing.reason,)

    def hold(self, table: T, seen: Envelope, doubt: Doubt) -> Step[T]:
        """Suspend the round: it waits for a person."""
        round_, verdicts = suspend(there(table.round), seen, doubt.reason, doubt.remedy)
        return replace(table, round=round_), verdicts

    def void(self, table: T, seen: Envelope, null: Null) -> Step[T]:
        """End the round as void."""
        round_ = there(table.round)
        if null.note is not None:
            round_ = noted_on(round_, null.note, seen)
        bets = null.bets or self._rulings.null_bets
        result = voided(round_, self._terms, Void(null.reason, bets), null.law, null.outcome)
        return self.after_void(table, round_), (Voided(result),)


def there(round_: Round | None) -> Round:
    """The round of a phase that has one."""
    assert round_ is not None
    return round_


def bet_of(seen: Envelope) -> WagerPlaced | WagerWithdrawn:
    assert isinstance(seen.event, WagerPlaced | WagerWithdrawn)
    return seen.event


def _declared(seen: Envelope) -> Reason:
    """Why a person declared the round void."""
    match seen.event:
        case RoundVoided(reason=reason) | SpinVoided(reason=reason):
            return declared(reason)
        case _:
            return say("declared")


def noted_on(round_: Round, note: Note, seen: Envelope) -> Round:
    """A round with this irregularity."""
    return irregular(round_, note.code, note.reason, note.law, seen)


def _noted(note: Note, seen: Envelope) -> tuple[Verdict, ...]:
    return (Noted(Irregularity(note.code, note.reason, note.law, seen.id)),)


def _corrected(result: Result) -> Corrected:
    return Corrected(replace(result, supersedes=result.round))
