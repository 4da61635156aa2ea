"""Games whose rounds last several events: a result is a function of the set of facts of its round.

    facts of a round, in the order they happened  --step by step-->  position  -->  over?  -->  result

`Engine` owns the life of a round, once for all these games: opening, bell, bets, loss, payment, declared void,
correction, late events, numbering, limits. A round is open for bets, closed, suspended (it waits for a person),
resolved or void; a resolved one is open again while it is disputed. A `Game` contains the mechanics, which do not
depend on which events were lost or late.

The engine keeps the facts of the open round and of the last one. A late event is inserted at its time and the kept
facts are played again from the position in which the older round began: a *refold*. If no published result changes, the
new verdicts are published, and a round that waited may go on. If a result would change, the event is not used and the
result is disputed; while the next round is open, the event counts as a loss instead, and `doubts_last` may publish a
doubt about the result, which stays until a person corrects it. A person's decision that names the last round while the
next is open is inserted after its facts in the same way, and then corrects the published result.

To write a game: a frozen Struct for the position `P` (the round's part, and what lasts between rounds, such as a shoe),
a subclass `class State(Table[P], frozen=True)` (so that JSON decodes it), and a `Game[P]` with:

- `fresh()`: the position of a table that was never played on;
- `begins(p, event)`: whether this event of the game begins a round by itself;
- `begin(p)`: the position of a new round, and an Effect that suspends it if no round may begin;
- `step(p, fact, frame)`: one event of the game, bell, opening, payment or declared void; `frame` is None between two
  rounds. It returns the next position and an `Effect`, its instructions to the engine;
- `lay(p, hands, frame, before, named=..., reopened=...)`: the position with corrected hands, or an Effect that refuses;
- `over(p)`: whether the round is complete; `resolve(p, frame)`: the Result; `laid(p)`: the table, for a void result;
- `end(p, frame, void=...)`: the position between rounds; `resume(now, ended)`: that of an ended round that is reopened;
- optional: `missed`, `at_bell`, `take_wager`, `set_aside`, `left_over`, `never_was`, and more hooks with a default.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DealCorrected,
    DeviceOnline,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
    type_of,
)
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.cloth import at_close, handed_back, lying, not_taken, wager
from rules.engine.facts import (
    MAX_FACTS,
    PLAIN,
    Effect,
    Fact,
    Frame,
    Hands,
    Note,
    Step,
    Table,
    device_of,
    hands_of,
    keep,
    keep_after,
    open_frame,
    place_at,
    with_after,
    with_fact,
)
from rules.engine.limits import Limits, Range, largest_odds
from rules.engine.rounds import (
    MAX_WAGER_EVIDENCE,
    Round,
    Terms,
    declared,
    irregular,
    limits_of,
    noted,
    suspend,
    voided,
    without_bets,
    witness,
)
from rules.engine.ruleset import (
    Bet,
    Closed,
    Corrected,
    Opened,
    Resolved,
    Result,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    Wager,
)
from rules.engine.sameness import as_read_back, disputed, is_new, same_open, same_outcome, same_result, same_step

P = TypeVar("P", bound=Struct)

NO_VERDICTS: Final[tuple[Verdict, ...]] = ()
TOGETHER: Final = timedelta(milliseconds=100)
"""Events of two devices that are closer than this may have happened in either order."""
LATE: Final = say("late_doubt")
BEFORE_CARD: Final = say("before_card")


class Game(ABC, Generic[P]):
    """One ruleset: mechanics and articles. An Engine runs its tables."""

    id: ClassVar[str]
    title: ClassVar[str]
    law: ClassVar[str]
    State: ClassVar[type[Any]]
    Facts: ClassVar[type[Any]]
    needs: ClassVar[Any]
    places_late_events: ClassVar[bool] = True
    own: ClassVar[frozenset[type[Event]]]
    """The events that the game handles; the engine handles wagers, the bell and people's decisions."""
    numbers_shoes: ClassVar[bool] = False
    article_void: ClassVar[str]
    article_bets: ClassVar[str]
    article_bell: ClassVar[str]
    fixed_bets: ClassVar[tuple[str, ...]] = ()
    """Families of bets whose amount follows from another bet."""
    remedy: ClassVar[Reason]
    """What a person may do about a suspended round."""
    steps_wagers: ClassVar[Literal["never", "open", "always"]] = "never"
    """`open`: bets of an open round go to `step`, not to `take_wager`, because they change more than the round's bets.
    `always`: so do bets between two rounds, and one may begin a round."""
    corrects_last: ClassVar[bool] = True
    """Whether hands or a void that name the last round are used while the next one is open."""

    bell_after_loss: ClassVar[bool] = True
    """Whether `at_bell` judges the bets where some of them may be missing."""

    terms: Terms
    offered: frozenset[str]
    waits_for_bell: bool
    """Whether no card can be dealt before the bell."""
    jackpot_bets: Literal["", "carried", "returned"] = ""
    """What happens to the jackpot bets of a void round; all other bets are returned."""

    def start(self, table: str) -> Table[P]:
        """A table that was never played on."""
        state: Table[P] = self.State(table, self.fresh(), shoe=0 if self.numbers_shoes else -1)
        return state

    def apply(self, state: Table[P], seen: Envelope) -> Step[P]:
        """One event."""
        return self._engine.apply(state, seen)

    @cached_property
    def _engine(self) -> "Engine[P]":
        return Engine(self)

    @cached_property
    def limits(self) -> Limits:
        """The limits of the bets at this table."""
        offered = (bet.id for bet in self.bets())
        return limits_of(self.terms, offered, self.best, self.article_limits(), self.fixed_bets)

    def best(self) -> Mapping[str, Fraction]:
        """The largest prize of each bet, x to 1."""
        return {bet.id.partition(":")[0]: largest_odds(bet.pays) for bet in self.bets()}

    def article_limits(self) -> Mapping[str, Range]:
        """The limits that the text sets, by family."""
        return {}

    @abstractmethod
    def bets(self) -> tuple[Bet, ...]:
        """The bets offered with these options."""

    @abstractmethod
    def view(self, state: Table[P]) -> View:
        """What may be shown of the state."""

    @abstractmethod
    def cite(self, article: str) -> str:
        """An article as results cite it."""

    @abstractmethod
    def fresh(self) -> P:
        """The position of a table that was never played on."""

    @abstractmethod
    def begins(self, position: P, event: Event) -> bool:
        """Whether this event of the game, between two rounds, begins one."""

    @abstractmethod
    def begin(self, position: P) -> tuple[P, tuple[str, ...], bool, Effect]:
        """Begin a round: its position, evidence, whether it is a demonstration, and an effect that may suspend it."""

    @abstractmethod
    def step(self, position: P, fact: Fact, frame: Frame[P] | None) -> tuple[P, Effect]:
        """Apply one event of the game, a bell, an opening, a payment or a declared void."""

    @abstractmethod
    def lay(
        self,
        position: P,
        hands: Hands,
        frame: Frame[P],
        before: Frame[P] | None,
        *,
        named: bool,
        reopened: bool,
    ) -> tuple[P, Effect]:
        """The position with the cards as they lie, or an effect that suspends or notes.

        `before`: the round before, if it counts. `named`: the person named this round. `reopened`: it had ended.
        """

    @abstractmethod
    def over(self, position: P) -> bool:
        """Whether the round is complete."""

    @abstractmethod
    def resolve(self, position: P, frame: Frame[P]) -> Result:
        """The result of a round that is over."""

    @abstractmethod
    def laid(self, position: P) -> dict[str, Any]:
        """The public part of what lies on the table, for a void result."""

    @abstractmethod
    def end(self, position: P, frame: Frame[P], *, void: bool) -> P:
        """The position between two rounds, after this one."""

    @abstractmethod
    def resume(self, now: P, ended: P) -> P:
        """The position of the round that ended in `ended`, reopened at a table whose position is `now`."""

    def article_of(self, code: str) -> str:
        """The article of an irregularity that the engine notes."""
        special = {"bell_without_round": self.article_bell, "bet_without_round": self.article_bets}
        return special.get(code, self.article_void)

    def missed(self, position: P, event: Event) -> P:
        """The position after events that may be missing, reported by `event`."""
        return position

    def follows_loss(self, event: Event) -> bool:
        """Whether a late event is placed after the loss that its device reported before it, and not at its time."""
        return True

    def carried(self, position: P) -> tuple[Wager, ...]:
        """The bets of a void round that the next round takes over."""
        return ()

    def lies(self, position: P, round_: Round, one: WagerWithdrawn) -> int:
        """The amount of a bet in an open round, in minor units."""
        return lying(round_, one.seat, one.bet)

    def at_bell(self, round_: Round, fact: Fact) -> Round:
        """The round after the game's checks of its bets at the bell."""
        return round_

    def take_wager(self, round_: Round, one: WagerPlaced | WagerWithdrawn, fact: Fact) -> Round:
        """The round after a bet is placed or withdrawn."""
        return wager(round_, one, self.offered, self.cite(self.article_bets), fact, self.limits)

    def left_over(self, position: P) -> Effect:
        """After a round: `next_doubt` is why the next card may not be the first of the next round."""
        return PLAIN

    def set_aside(self, position: P, fact: Fact) -> P:
        """Keep a doubtful card: it belongs to no hand until a person decides."""
        return position

    def reopens(self, position: P, event: Event, last: Frame[P]) -> bool:
        """Whether this event of the game, after a round that counts, still belongs to that round."""
        return False

    def matters(self, position: P, event: Event) -> bool:
        """Whether a late event of the game may change the round that ended."""
        return True

    def doubts_last(self, last: Frame[P], fact: Fact) -> bool:
        """Whether a late event that cannot be used shows, while the next round is open, that the last one is wrong."""
        return False

    def unused(self, position: P, fact: Fact) -> tuple[P, Effect]:
        """The effect of a late fact that puts the ended round in doubt; its `remedy` names what a person may do."""
        return position, PLAIN

    def known(self, position: P, frame: Frame[P]) -> Round:
        """The round with the bets that are certain."""
        return without_bets(frame.round) if frame.lost else frame.round

    def ended_in_doubt(self, position: P, last: Frame[P]) -> bool:
        """Whether events that are missing since the last round may be its own."""
        return False

    def gives_back(self, position: P, reason: Reason) -> Void:
        """The reason of a void round, and what happens to its bets."""
        return Void(reason, "returned", self.jackpot_bets)

    def suspended_by_loss(self, position: P) -> Effect:
        """The effect of a loss on a closed round; its `remedy` names what a person may do."""
        return PLAIN

    def stands(self, now: P, ended: P, *, waits: bool) -> P | None:
        """A disputed round that ended in `ended` is paid: the position where its first result stands, or None."""
        return now if waits and self.alike(now, ended) else None

    def alike(self, one: P, other: P) -> bool:
        """Whether the same cards lie there."""
        return self.laid(one) == self.laid(other)

    def too_early(self, frame: Frame[P]) -> Note | None:
        """Why hands cannot be entered yet; None where they can."""
        if frame.round.closed:
            return None
        return Note("correction_before_deal", say("corrected_no_card"), self.article_void)

    def nothing_to_correct(self) -> Note:
        """The note of hands that were entered while no round has any."""
        return Note("correction_without_round", say("corrected_no_round"), self.article_void)

    def untouched(self, table: Table[P]) -> bool:
        """Whether no event of the table has come yet, so that none can be missing."""
        return not table.day

    def never_was(self, position: P, before: Frame[P], frame: Frame[P], hands: Hands) -> Effect:
        """The effect that voids a round begun by mistake, after hands of the round before were entered."""
        return PLAIN


class Engine(Generic[P]):
    """The life of rounds at the tables of one game. It holds no state of a table."""

    def __init__(self, game: Game[P]) -> None:
        """Run the tables of `game`."""
        self.game = game

    def apply(self, table: Table[P], seen: Envelope) -> Step[P]:
        """Apply one event, in time or late."""
        event, happened = seen.event, seen.time
        if event.age_ms and event.age_ms < _A_DAY_MS:
            happened -= timedelta(milliseconds=event.age_ms)
        fact = Fact(seen.id, device_of(seen.source), happened, event)
        if event.overtaken:
            return self._late(table, fact) if self._is_fact(event) else (table, ())
        if type(event) in self.game.own:  # most events
            return self._step(table, fact)
        named = _named(event)
        if named and (table.open is None or named != table.open.round.id):
            return self._about_last(table, fact, named)
        return self._forward(table, fact)

    # ---- one fact in its order

    def _is_fact(self, event: Event) -> bool:
        return type(event) in self.game.own or isinstance(event, _KINDS)

    def _forward(self, table: Table[P], fact: Fact) -> Step[P]:
        match fact.event:
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(table, fact, one)
            case BetsOpened():
                return self._opened(table, fact)
            case BetsClosed():
                return self._bell(table, fact)
            case RoundPaid():
                return self._paid(table, fact)
            case DealCorrected(hands=hands):
                return self._corrected(table, fact, hands)
            case RoundVoided(reason=reason):
                return self._declared_void(table, fact, declared(reason))
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._missed(table, fact)
            case event if type(event) in self.game.own:
                return self._step(table, fact)
            case _:
                return table, ()

    def _step(self, table: Table[P], fact: Fact, told: Fact | None = None) -> Step[P]:
        """Apply an event of the game. `told`: the fact as reported, if part of it was applied already."""
        frame, verdicts = table.open, NO_VERDICTS
        if frame is None:
            last = table.last
            if last is not None and last.counts and self.game.reopens(table.position, fact.event, last):
                table = self._reopened(table, last)
            elif self.game.begins(table.position, fact.event):
                table, verdicts = self._begin(table, fact)
            else:
                position, effect = self.game.step(table.position, fact, None)
                return self._between(table, position, effect, fact)
            frame = open_frame(table)
        position, effect = self.game.step(table.position, fact, frame)
        if effect is PLAIN:  # as after most events
            frame = with_fact(frame, witness(frame.round, fact), told or fact)
            table = replace(table, open=frame, position=position)
            if frame.round.suspended or not self.game.over(position):
                return table, verdicts
            table, more = self._end(table, frame)
            return table, verdicts + more
        if effect.course == "next_round":
            opened, more = self._opened(table, replace(fact, event=BetsOpened()))
            table, rest = self._forward(opened, fact)
            return table, verdicts + more + rest
        if effect.course == "new_shoe":
            if reason := frame.round.suspended or effect.void:
                table, more = self._void(table, frame, fact, reason)
                verdicts += more
            position, effect = self.game.step(table.position, fact, None)
            table, more = self._between(table, position, effect, fact)
            return table, verdicts + more
        table, more = self._moved(table, position, effect, fact, told or fact)
        return table, verdicts + more

    def _moved(self, table: Table[P], position: P, effect: Effect, fact: Fact, told: Fact) -> Step[P]:
        """The open round after a step of the game."""
        frame, verdicts, reason, doubt = table.open, NO_VERDICTS, effect.suspend, table.doubt
        assert frame is not None
        round_ = effect.round or frame.round
        if effect.evidence:
            round_ = witness(round_, fact)
        if effect.notes:
            round_ = self._noted_on(round_, effect, fact)
        if effect.first:
            if doubt:
                reason, position = doubt, self.game.set_aside(table.position, fact)
            doubt = None
            if not round_.closed:
                round_ = replace(self._at_bell(frame, round_, fact), closed=True)
                verdicts += (Closed(round_.id),)
        elif round_.closed and not frame.round.closed:
            doubt = None
            verdicts += (Closed(round_.id),)
        frame = with_fact(frame, round_, told)
        table = replace(table, open=frame, position=position, doubt=effect.next_doubt or doubt)
        beside = self._beside(effect, fact) if effect.beside else NO_VERDICTS
        if effect.void:
            table, more = self._void(table, frame, fact, effect.void, effect.article)
            return table, verdicts + more + beside
        verdicts += beside
        if reason:
            table, more = self._suspend(table, frame, fact, reason, effect.remedy)
            return table, verdicts + more
        if round_.suspended or not self.game.over(position):
            return table, verdicts
        table, more = self._end(table, frame)
        return table, verdicts + more

    def _between(self, table: Table[P], position: P, effect: Effect, fact: Fact) -> Step[P]:
        """The table after an event of the game while no round is open."""
        last = with_after(table.last, fact) if table.last is not None else None
        table = replace(table, position=position, last=last)
        if effect.course == "new_shoe":
            today = fact.time.date().isoformat()
            shoe = 1 if today > table.day else table.shoe + 1
            table = replace(
                table, day=max(today, table.day), shoe=shoe if self.game.numbers_shoes else -1, count=0, doubt=None
            )
        notes = effect.notes + effect.beside
        return table, tuple([verdict for note in notes for verdict in self._note(note, fact)])

    def _begin(self, table: Table[P], fact: Fact) -> Step[P]:
        today = fact.time.date().isoformat()
        new_day, shoe, count = today > table.day, table.shoe, table.count + 1
        if self.game.numbers_shoes:
            shoe = 1 if new_day else max(shoe, 1)
        elif new_day:
            count = 1
        day = today if new_day else table.day
        position, evidence, demo, effect = self.game.begin(table.position)
        number = f"{shoe}:{count}" if self.game.numbers_shoes else f"{count}"
        bets = self.game.carried(table.position)
        round_ = Round(f"{table.table}:{day}:{number}", evidence, bets, demo=demo, refused=table.refused)
        verdicts: tuple[Verdict, ...] = (Opened(round_.id),)
        if effect.suspend:
            round_ = replace(witness(round_, fact), closed=True, suspended=effect.suspend)
            verdicts += (Closed(round_.id), Suspended(round_.id, effect.suspend, effect.remedy or self.game.remedy))
        before = (table.day, table.shoe, table.count, table.position, table.doubt)
        frame = Frame(round_, *before, refused=table.refused, tells_bets=table.tells_bets, lost=effect.lost)
        table = replace(table, position=position, day=day, shoe=shoe, count=count, open=frame, refused=())
        return table, verdicts

    def _opened(self, table: Table[P], fact: Fact) -> Step[P]:
        frame, verdicts = table.open, NO_VERDICTS
        if frame is not None and not frame.round.closed and not table.doubt:
            return keep(table, frame, witness(frame.round, fact), fact), ()
        position, effect = self.game.step(table.position, fact, frame)
        if effect.course == "stays":
            return self._moved(table, position, effect, fact, fact)
        table = replace(table, position=position)
        if frame is not None:
            reason = frame.round.suspended or effect.void or table.doubt or say("never_completed")
            table, verdicts = self._void(table, frame, fact, reason)
        table, more = self._begin(table, fact)
        frame = open_frame(table)
        return keep(replace(table, doubt=None), frame, witness(frame.round, fact), fact), verdicts + more

    def _bell(self, table: Table[P], fact: Fact) -> Step[P]:
        frame = table.open
        if frame is None:
            note = self._remark("bell_without_round", say("bell_no_round"))
            return self._between(table, table.position, Effect((note,) if self.game.waits_for_bell else ()), fact)
        if not frame.round.closed:
            frame = replace(frame, round=self._within_limits(frame, frame.round, fact))
        position, effect = self.game.step(table.position, fact, frame)
        if effect.course == "next_round":
            return self._step(table, fact)
        if effect.course == "stays":
            return self._moved(replace(table, open=frame), position, effect, fact, fact)
        round_ = self._noted_on(witness(effect.round or frame.round, fact), effect, fact)
        closed: tuple[Verdict, ...] = ()
        if not round_.closed:
            closed = (Closed(round_.id),)
            round_ = replace(self._at_bell(frame, round_, fact), closed=True)
            table = replace(table, doubt=None if self.game.waits_for_bell else table.doubt)
        table = keep(replace(table, position=position), frame, round_, fact)
        more: tuple[Verdict, ...] = ()
        if effect.suspend:
            table, more = self._suspend(table, open_frame(table), fact, effect.suspend, effect.remedy)
        return table, closed + more + self._beside(effect, fact)

    def _at_bell(self, frame: Frame[P], round_: Round, fact: Fact) -> Round:
        round_ = self._within_limits(frame, round_, fact)
        judged = self.game.bell_after_loss or not frame.lost
        return self.game.at_bell(round_, fact) if judged else round_

    def _within_limits(self, frame: Frame[P], round_: Round, fact: Fact) -> Round:
        """The round after the check of its limits; unknown bets are not checked."""
        if frame.lost:
            return round_
        return at_close(round_, self.game.limits, self.game.cite(self.game.article_bets), fact)

    def _wager(self, table: Table[P], fact: Fact, one: WagerPlaced | WagerWithdrawn) -> Step[P]:
        told = fact
        if isinstance(one, WagerWithdrawn):
            held = self.game.lies(table.position, table.open.round, one) if table.open is not None else 0
            chips, rest = handed_back(table.ledger, one, held)
            table = table.with_ledger(chips)
            if rest is None:
                return self._chips_alone(table, fact), ()
            one, fact = rest, replace(fact, event=rest)
        frame = table.open
        if self.game.steps_wagers == "always":
            return self._step(table, fact, told)
        if frame is None:
            note = self._remark("bet_without_round", say("seat_bet", seat=one.seat, bet=one.bet))
            if one.bet in self.game.offered:
                table = replace(table, refused=not_taken(table.refused, one))
            return self._refused(table, note, told)
        if self.game.steps_wagers == "open":
            return self._step(table, fact, told)
        round_ = self.game.take_wager(frame.round, one, fact)
        frame = replace(frame, wagered=frame.wagered or not round_.closed)
        return keep(replace(table, tells_bets=True), frame, round_, told), ()

    def _chips_alone(self, table: Table[P], fact: Fact) -> Table[P]:
        """The table after refused chips were taken away that leave the bets unchanged."""
        frame = table.open
        if frame is None:
            return keep_after(table, fact)
        return keep(table, frame, witness(frame.round, fact, MAX_WAGER_EVIDENCE), fact)

    def _paid(self, table: Table[P], fact: Fact) -> Step[P]:
        frame, last = table.open, table.last
        if frame is None:
            position, _ = self.game.step(table.position, fact, None)
            ended = last.position if last is not None and last.counts else None
            left = ended is not None and self.game.left_over(ended).next_doubt
            return keep_after(replace(table, position=position, doubt=table.doubt if left else None), fact), ()
        if not frame.round.closed:  # the last round may be paid while bets are open
            return keep(table, frame, frame.round, fact), ()
        if frame.result is not None and frame.position is not None:
            stands = self.game.stands(table.position, frame.position, waits=frame.round.suspended is not None)
            if stands is not None:
                return self._stands(replace(table, position=stands), frame, frame.result, fact)
        position, effect = self.game.step(table.position, fact, frame)
        round_ = self._noted_on(witness(effect.round or frame.round, fact), effect, fact)
        table = keep(replace(table, position=position), frame, round_, fact)
        if effect.suspend:
            return self._suspend(table, open_frame(table), fact, effect.suspend, effect.remedy)
        if round_.suspended or not self.game.over(position):
            return table, ()
        table, verdicts = self._end(table, open_frame(table))  # after a payment no further event of the round comes
        position, _ = self.game.step(table.position, fact, None)
        return replace(table, position=position), verdicts

    def _stands(self, table: Table[P], frame: Frame[P], result: Result, fact: Fact) -> Step[P]:
        """Let the first result of a disputed round stand, because it was paid."""
        round_ = replace(witness(frame.round, fact), suspended=None)
        evidence, notes = round_.evidence, round_.irregularities
        result = replace(result, evidence=evidence, irregularities=notes, supersedes=result.round)
        ended = replace(with_fact(frame, round_, fact), result=result, position=table.position)
        table = replace(table, open=None, last=ended, refused=round_.refused)
        table = replace(table, doubt=self.game.left_over(table.position).next_doubt)
        return replace(table, position=self.game.end(table.position, ended, void=False)), (Corrected(result),)

    def _missed(self, table: Table[P], fact: Fact) -> Step[P]:
        """Apply a loss: before the bell a bet may be missing, after it a card; without a bell a card at any time."""
        frame = table.open
        if frame is None and self.game.untouched(table) and not isinstance(fact.event, EventsMissed):
            return table, ()  # the first contact with a device proves no loss
        table = replace(table, position=self.game.missed(table.position, fact.event))
        if frame is None:
            table, last = keep_after(replace(table, doubt=BEFORE_CARD), fact), table.last
            if last is not None and last.counts and self.game.ended_in_doubt(table.position, last):
                return self._disputed(table, last, fact)
            return table, ()
        frame = replace(frame, lost=True)
        if not frame.round.closed:
            doubt = say("since_opened")
            return keep(replace(table, doubt=doubt), frame, witness(frame.round, fact), fact), ()
        if not self.game.waits_for_bell:
            table = replace(table, doubt=BEFORE_CARD)
        frame, effect = with_fact(frame, frame.round, fact), self.game.suspended_by_loss(table.position)
        return self._suspend(table, frame, fact, say("round_events"), effect.remedy)

    # ---- decisions of people

    def _corrected(self, table: Table[P], fact: Fact, hands: Hands) -> Step[P]:
        named = bool(_named(fact.event))
        reopened, frame, before = table, table.open, table.last
        if frame is None:
            if before is None or not before.counts:
                return self._refused(table, self.game.nothing_to_correct(), fact)
            reopened, before = self._reopened(table, before), None
            frame = open_frame(reopened)
        elif early := self.game.too_early(frame):
            return keep(table, frame, self._noted_on(frame.round, Effect((early,)), fact), fact), ()
        elif before is not None and before.counts:
            mistaken = PLAIN if named else self.game.never_was(table.position, before, frame, hands)
            if mistaken.void:
                return self._taken_back(table, before, frame, fact, mistaken.void)
        else:
            before = None
        position, effect = self.game.lay(
            reopened.position, hands, frame, before, named=named, reopened=table.open is None
        )
        if not effect.evidence or (effect.notes and effect.round is None):
            return self._between(table, table.position, effect, fact)
        if effect.course == "stays":
            return self._moved(reopened, position, effect, fact, fact)
        if effect.suspend and effect.round is None:
            if effect.again:
                frame = replace(frame, round=replace(frame.round, suspended=None))
            return self._suspend(reopened, with_fact(frame, frame.round, fact), fact, effect.suspend, effect.remedy)
        round_ = self._noted_on(witness(effect.round or frame.round, fact), effect, fact)
        frame = with_fact(frame, replace(round_, suspended=None), fact)
        reopened = replace(reopened, open=frame, position=position)
        if effect.suspend:
            return self._suspend(reopened, frame, fact, effect.suspend, effect.remedy)
        return self._end(reopened, frame) if self.game.over(position) else (replace(reopened, doubt=None), ())

    def _declared_void(self, table: Table[P], fact: Fact, reason: Reason) -> Step[P]:
        last = table.last
        if table.open is None and (last is None or not last.counts):
            return self._refused(table, self._remark("void_without_round", say("void_no_correction")), fact)
        position, _ = self.game.step(table.position, fact, table.open)
        table = replace(table, position=position)
        if table.open is None and last is not None:
            table = self._reopened(table, last)
        return self._void(table, open_frame(table), fact, reason)

    def _reopened(self, table: Table[P], last: Frame[P]) -> Table[P]:
        """The table with the last round open again, after all events since."""
        assert last.position is not None
        sealed = last.sealed or len(last.facts) + len(last.after) > MAX_FACTS
        round_ = replace(last.round, refused=table.refused)
        frame = replace(last, round=round_, facts=(*last.facts, *last.after)[:MAX_FACTS], after=(), sealed=sealed)
        position = self.game.resume(table.position, last.position)
        return replace(table, open=frame, last=None, position=position, refused=())

    def _taken_back(self, table: Table[P], last: Frame[P], frame: Frame[P], fact: Fact, reason: Reason) -> Step[P]:
        """Take back a round that began by mistake: its events belong to the last one, and its cards came twice."""
        _, voided_ = self._void(table, frame, fact, reason)
        kept = [one for one in frame.facts if not self.game.begins(frame.base, one.event)]
        again, _ = self._play(table, [*last.facts, *last.after, *kept])
        again = replace(again, day=table.day, shoe=table.shoe, count=table.count)
        if again.last is None or again.open is not None or last.sealed or frame.sealed:
            return self._suspend(table, frame, fact, LATE)
        ended = replace(again.last, sealed=True, result=last.result, round=last.round)  # no number is used twice
        again = replace(again, last=ended)
        assert ended.position is not None
        position, effect = self.game.lay(ended.position, hands_of(fact), ended, None, named=True, reopened=False)
        if not effect.suspend and self.game.laid(position) == self.game.laid(ended.position):
            return again, voided_
        again, corrected = self._corrected(again, fact, hands_of(fact))
        return again, voided_ + corrected

    def _about_last(self, table: Table[P], fact: Fact, named: str) -> Step[P]:
        """Apply a person's decision that names another round than the open one."""
        last, open_ = table.last, table.open
        text = say("round_unknown", event=type_of(fact.event), round=named[:80])
        unknown = self._remark("round_unknown", text)
        if open_ is not None and not self.game.corrects_last:
            if isinstance(fact.event, RoundPaid):
                return table, ()
            return keep(table, open_, self._noted_on(open_.round, Effect((unknown,)), fact), fact), ()
        if last is None or named != last.round.id:
            return self._refused(table, unknown, fact)
        if open_ is None:
            return self._forward(table, fact)
        if isinstance(fact.event, RoundPaid):
            return replace(table, last=with_after(last, fact)), ()
        refusal = Note("round_not_reopened", say("round_not_reopened"), self.game.article_void)
        if not last.counts or last.sealed or open_.sealed:
            return self._refused(table, refusal, fact)
        meant = replace(fact, time=(last.after or last.facts)[-1].time)
        between, said = self._play(table, [*last.facts, *last.after, meant])
        if between.open is not None or not any(isinstance(one, Corrected) for one in said):
            return self._refused(table, refusal, fact)
        again, said = self._play(table, [*last.facts, *last.after, meant, *open_.facts])
        return self._adopted(table, again, said, fact, person=True) or self._refused(table, refusal, fact)

    # ---- the ends of a round

    def _suspend(
        self, table: Table[P], frame: Frame[P], fact: Fact, reason: Reason, remedy: Reason | None = None
    ) -> Step[P]:
        round_, verdicts = suspend(frame.round, fact, reason, remedy or self.game.remedy)
        return replace(table, open=replace(frame, round=round_)), verdicts

    def _end(self, table: Table[P], frame: Frame[P]) -> Step[P]:
        result = self.game.resolve(table.position, frame)
        if frame.result is not None:
            result = replace(result, supersedes=result.round)
        ended = replace(frame, result=as_read_back(result), position=table.position)
        doubt = self.game.left_over(table.position).next_doubt or table.doubt
        position = self.game.end(table.position, ended, void=False)
        table = replace(table, open=None, last=ended, position=position, doubt=doubt, refused=frame.round.refused)
        return table, (Resolved(result) if frame.result is None else Corrected(result),)

    def _void(self, table: Table[P], frame: Frame[P], fact: Fact, reason: Reason, article: str = "") -> Step[P]:
        round_ = witness(frame.round, fact)
        known = self.game.known(table.position, replace(frame, round=round_))
        law = (self.game.cite(article or self.game.article_void),)
        void = self.game.gives_back(table.position, reason)
        result = voided(known, self.game.terms, void, law, self.game.laid(table.position))
        if frame.result is not None:
            result = replace(result, supersedes=result.round)
        frame = with_fact(frame, replace(round_, suspended=None), fact)
        ended = replace(frame, result=as_read_back(result), position=table.position)
        table = replace(table, open=None, last=ended, refused=round_.refused)
        table = replace(table, position=self.game.end(table.position, ended, void=True))
        return table, (Voided(result) if not result.supersedes else Corrected(result),)

    # ---- late events: the facts are played again

    def _late(self, table: Table[P], fact: Fact) -> Step[P]:
        """Insert a late event at its time. An event that cannot be placed counts as a loss."""
        frames = [one for one in (table.last, table.open) if one is not None]
        kept = [one for frame in frames for one in (*frame.facts, *frame.after)]
        on_time = replace(fact, event=replace(fact.event, overtaken=0))
        places = self._places(kept, fact) if fact.event.age_ms and not any(one.sealed for one in frames) else set()
        if not frames and not isinstance(fact.event, _PERSONS):
            table, verdicts = self._forward(table, on_time)
            table, more = self._missed(table, replace(fact, event=EventsMissed(count=1)))
            return table, verdicts + more
        if not places:
            return self._unplaced(table, fact)
        found = [self._play(table, [*kept[:n], on_time, *kept[n:]]) for n in sorted(places)]
        adopted = [self._adopted(table, again, said, fact, person=False) for again, said in found]
        first = adopted[0]
        if first is None or any(one is None or not same_step(first, one) for one in adopted[1:]):
            harmless = all(same_open(table, again) for again, _ in found)
            money = all(same_outcome(table.last, said) for _, said in found)
            return self._contradicted(table, fact, harmless=harmless, money=money)
        return first

    def _places(self, kept: list[Fact], fact: Fact) -> set[int]:
        """The possible places among the facts, which are in the order of time; none where unknown."""
        times = [one.time for one in kept]
        if any(later < earlier - TOGETHER for earlier, later in pairwise(times)):
            return set()  # a clock was set
        before = [n for n, one in enumerate(kept, 1) if one.source == fact.source]
        if not self.game.follows_loss(fact.event):
            before = [n for n in before if not isinstance(kept[n - 1].event, _LOSSES)]
        own = max(before, default=0)
        places = {max(own, place_at(times, moment)) for moment in (fact.time - TOGETHER, fact.time + TOGETHER)}
        return set(range(min(places), max(places) + 1)) if 0 not in places else set()

    def _unplaced(self, table: Table[P], fact: Fact) -> Step[P]:
        if isinstance(fact.event, RoundPaid):
            return table, ()
        last, own = table.last, type(fact.event) in self.game.own and table.open is None
        if own and last is not None and last.counts and self.game.matters(table.position, fact.event):
            return self._disputed(table, last, fact)
        verdicts: tuple[Verdict, ...] = ()
        if isinstance(fact.event, BetsClosed) and table.open is not None and not table.open.round.closed:
            table, verdicts = self._bell(table, fact)  # bets are over
        if table.open is not None and last is not None and last.counts and self.game.doubts_last(last, fact):
            verdicts += (Suspended(last.round.id, LATE, self.game.remedy),)  # its result is in place until corrected
        table, more = self._missed(table, replace(fact, event=EventsMissed(count=1)))
        return table, (*verdicts, *more, *self._too_late(fact))

    def _too_late(self, fact: Fact) -> tuple[Verdict, ...]:
        reason = say("told_too_late", event=type_of(fact.event), ms=fact.event.overtaken)
        return noted("told_too_late", reason, "-", fact)

    def _contradicted(self, table: Table[P], fact: Fact, *, harmless: bool, money: bool) -> Step[P]:
        """Handle a late event that would change a published result, or whose place decides: a person must correct it.

        `harmless`: at every possible place the open round is the same. `money`: it changes only amounts of the result.
        """
        if harmless:
            return table, self._too_late(fact)
        last = table.last
        wagered = isinstance(fact.event, WagerPlaced | WagerWithdrawn)
        if table.open is not None or last is None or not last.counts or (wagered and money):
            return self._unplaced(table, fact)
        return self._disputed(table, last, fact)

    def _disputed(self, table: Table[P], last: Frame[P], fact: Fact) -> Step[P]:
        table = self._reopened(table, last)
        position, effect = self.game.unused(table.position, fact)
        table, frame = replace(table, position=position), open_frame(table)
        doubted = replace(fact, event=EventsMissed(count=1))
        frame = replace(with_fact(frame, frame.round, doubted), lost=True, sealed=True)  # only a person ends the doubt
        return self._suspend(table, frame, fact, LATE, effect.remedy)

    def _play(self, table: Table[P], facts: list[Fact]) -> Step[P]:
        """Play these facts again from the beginning of the older kept round."""
        first = table.last or table.open
        assert first is not None
        start = replace(table, position=first.base, day=first.day, shoe=first.shoe, count=first.count)
        start = replace(start, open=None, last=None, tells_bets=first.tells_bets)
        again = replace(start, doubt=first.doubt, refused=first.refused)
        verdicts: list[Verdict] = []
        for one in facts:
            again, more = self._forward(again, one)
            verdicts += more
        return again, tuple(verdicts)

    def _adopted(
        self, old: Table[P], new: Table[P], said: tuple[Verdict, ...], fact: Fact, *, person: bool
    ) -> Step[P] | None:
        """The table after these facts, and the new verdicts; None where they contradict published ones.

        A result that was not published, and that later facts dispute, is left out: its round waits for a person.
        """
        known = {one.round.id: one for one in (old.last, old.open) if one is not None}
        results = {one.result.round: one.result for one in said if isinstance(one, Resolved | Voided | Corrected)}
        opened = {one.round for one in said if isinstance(one, Opened)}
        changed = set()
        for id_, frame in known.items():
            if id_ not in opened:
                return None
            if frame.result is not None and (id_ not in results or not same_result(frame.result, results[id_])):
                changed.add(id_)
        if changed and (not person or changed != {old.last.round.id if old.last else ""}):
            return None
        if old.last is not None and new.open is not None and new.open.round.id == old.last.round.id:
            return None
        if old.last is not None and new.last is not None and new.last.round.id == old.last.round.id and not changed:
            new = replace(new, last=replace(new.last, result=old.last.result))
        waits = frozenset(id_ for id_ in disputed(said) if id_ not in known or known[id_].result is None)
        if waits - {new.open.round.id if new.open else ""}:
            return None  # a payment settles no doubt about a result that it did not know
        if waits and new.open is not None:
            new = replace(new, open=replace(new.open, result=None, position=None))
        out = [verdict for verdict in said if is_new(verdict, known, changed, new, fact)]
        out = [verdict for verdict in out if not (isinstance(verdict, Resolved) and verdict.result.round in waits)]
        for id_ in changed - {one.result.round for one in out if isinstance(one, Corrected)}:
            out.insert(0, Corrected(replace(results[id_], supersedes=id_)))
        return new, tuple(out)

    # ---- words

    def _noted_on(self, round_: Round, effect: Effect, fact: Fact) -> Round:
        for note in effect.notes:
            round_ = irregular(round_, note.code, note.reason, self.game.cite(note.article), fact)
        return round_

    def _remark(self, code: str, reason: Reason) -> Note:
        return Note(code, reason, self.game.article_of(code))

    def _beside(self, effect: Effect, fact: Fact) -> tuple[Verdict, ...]:
        return tuple([verdict for note in effect.beside for verdict in self._note(note, fact)])

    def _refused(self, table: Table[P], note: Note, fact: Fact) -> Step[P]:
        return self._between(table, table.position, Effect((note,)), fact)

    def _note(self, note: Note, fact: Fact) -> tuple[Verdict, ...]:
        return noted(note.code, note.reason, self.game.cite(note.article), fact)


_LOSSES = EventsMissed | DeviceOnline
_PERSONS = DealCorrected | RoundVoided | RoundPaid
_KINDS = BetsOpened | BetsClosed | WagerPlaced | WagerWithdrawn | _PERSONS | _LOSSES
_A_DAY_MS: Final = 86_400_000


def _named(event: Event) -> str:
    return event.round if isinstance(event, _PERSONS) else ""
