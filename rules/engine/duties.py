"""Duties that a text puts on the house by the clock: change the ball hourly, relieve the dealer, stop before closing.

A game names its duties as data. `watched` makes a ruleset of the game that also watches them: the view shows when each
is due, and a round that begins later is an irregularity, once until the duty is done. The clocks run from the first
round of a table until it closes; a duty done before the first round starts no clock. After lost events the duty may
have been done unseen, so its clock begins again.
"""

from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from msgspec import Struct, defstruct
from msgspec.structs import replace

from protocols.contract.events import DeviceOnline, EventsMissed, TableClosed
from protocols.contract.facts import DutyDue, RoundFacts
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.ruleset import Bet, Irregularity, Noted, Opened, Ruleset, Verdict, View, judge, keeps_its_cards
from rules.needs import Needs

__all__ = [
    "HOUR",
    "Duties",
    "Duty",
    "LastRound",
    "Replacement",
    "Watch",
    "Watched",
    "closing_time",
    "game_type",
    "watched",
    "without_duties",
]

HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
DAY: Final = timedelta(days=1)
CLOSED_FOR: Final = timedelta(hours=1)
"""A round that begins later than this after the closing time belongs to the next opening."""


class Duty(Struct, frozen=True):
    """Something that must be done again and again while a table plays, at most `every` apart.

    `code` names it ("ball_change"); `done_by` are the events that show that it was done.
    """

    code: str
    law: str
    done_by: tuple[type[Any], ...]
    every: timedelta = HOUR


class Replacement(Struct, frozen=True):
    """Something that must be replaced after the events `after` (it is damaged); `done_by` show the replacement."""

    code: str
    law: str
    after: tuple[type[Any], ...]
    done_by: tuple[type[Any], ...]


class LastRound(Struct, frozen=True):
    """No round may begin less than `before` the closing time, which the option `closes_at` of the ruleset names.

    `goes_on` decides from the game's state whether the opened round continues a play that began before.
    """

    code: str
    law: str
    before: timedelta
    goes_on: Callable[[Any], bool] = lambda _: False


Duties: TypeAlias = tuple[Duty | LastRound | Replacement, ...]


def closing_time(text: str) -> time | None:
    """The option `closes_at`, "HH:MM" in UTC; None where it is empty. Raises ValueError."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 - a time of day
    except ValueError as error:
        raise ValueError(f'closes_at: a time of day in UTC, as in "03:30", not {text!r}') from error


class Watch(Struct, frozen=True, omit_defaults=True):
    """The due times by duty, and the duties whose delay was noted."""

    due: dict[str, datetime] = {}
    noted: tuple[str, ...] = ()


S = TypeVar("S")


class Watched(Struct, Generic[S], frozen=True, kw_only=True, gc=False):
    """The state of a game whose duties are watched. Each ruleset has a class of its own, which JSON decodes."""

    game: S
    watch: Watch = Watch()


def watched(kind: type[Ruleset[S]], duties: Duties) -> type[Ruleset[Watched[S]]]:
    """The ruleset `kind`, which watches `duties`."""

    state = defstruct(f"Watched{kind.State.__name__}", [("game", kind.State)], bases=(Watched,), frozen=True)

    class Watching(_Watching[S]):
        id: ClassVar[str] = kind.id
        title: ClassVar[str] = kind.title
        law: ClassVar[str] = kind.law
        Options: ClassVar[type[Any]] = kind.Options
        State: ClassVar[type[Any]] = state
        Facts: ClassVar[type[RoundFacts]] = kind.Facts
        needs: ClassVar[Needs] = kind.needs
        keeps_cards: ClassVar[bool] = keeps_its_cards(kind)
        game_type: ClassVar[type[Ruleset[Any]]] = kind

        def __init__(self, options: Any) -> None:
            super().__init__(kind(options), duties, closing_time(getattr(options, "closes_at", "")))

    return Watching


def game_type(ruleset: type[Ruleset[Any]]) -> type[Ruleset[Any]]:
    """The class of the game alone, whose file holds its text."""
    return ruleset.game_type if issubclass(ruleset, _Watching) else ruleset


def without_duties(ruleset: Ruleset[Any]) -> Ruleset[Any]:
    """The game alone, for callers that need its bets and prizes."""
    return ruleset.game if isinstance(ruleset, _Watching) else ruleset


class _Watching(Generic[S]):
    """A game and its duties."""

    State: ClassVar[type[Any]]
    game_type: ClassVar[type[Ruleset[Any]]]
    places_late_events: ClassVar[bool] = True
    """`judge` applies to the game alone: a late event starts or stops no clock."""

    def __init__(self, game: Ruleset[S], duties: Duties, closes_at: time | None) -> None:
        self.game = game
        self._hourly = tuple(duty for duty in duties if isinstance(duty, Duty))
        self._replaced = tuple(duty for duty in duties if isinstance(duty, Replacement))
        self._last = tuple(duty for duty in duties if isinstance(duty, LastRound)) if closes_at is not None else ()
        self._closes_at = closes_at or time()
        watching: tuple[Duty | Replacement, ...] = (*self._hourly, *self._replaced)
        self._laws = {duty.code: duty.law for duty in watching} | {last.code: last.law for last in self._last}
        self._moves = frozenset(
            (
                *(TableClosed, EventsMissed, DeviceOnline),
                *(event for duty in watching for event in duty.done_by),
                *(event for duty in self._replaced for event in duty.after),
            )
        )

    @property
    def limits(self) -> Any:
        """The limits of the game's bets."""
        game: Any = self.game
        return game.limits

    def bets(self) -> tuple[Bet, ...]:
        """The bets of the game."""
        return self.game.bets()

    def start(self, table: str) -> Watched[S]:
        """The state of a new table: no clock runs."""
        state: Watched[S] = self.State(game=self.game.start(table))
        return state

    def view(self, state: Watched[S]) -> View:
        """The view of the game, with the duties that are due and when."""
        shown = self.game.view(state.game)
        if not state.watch.due:
            return shown
        due = [DutyDue(code, self._laws[code], at) for code, at in state.watch.due.items() if code in self._laws]
        return replace(shown, detail={**shown.detail, "duties": due})

    def apply(self, state: Watched[S], seen: Envelope) -> tuple[Watched[S], tuple[Verdict, ...]]:
        """Apply one event to the game and to the clocks of the duties."""
        game, verdicts = judge(self.game, state.game, seen)
        watch = state.watch
        if type(seen.event) in self._moves:
            watch = self._moved(watch, seen)
        if verdicts and any(isinstance(verdict, Opened) for verdict in verdicts):
            watch, noted = self._began(watch, game, seen)
            verdicts = (*noted, *verdicts)
        return self.State(game=game, watch=watch), verdicts

    def _moved(self, watch: Watch, seen: Envelope) -> Watch:
        """The clocks after a duty was done, the table closed, or events were lost."""
        watch = self._replacements(watch, seen)
        match seen.event:
            case TableClosed():
                unsound = {duty.code: watch.due[duty.code] for duty in self._replaced if duty.code in watch.due}
                return Watch(unsound, tuple(code for code in watch.noted if code in unsound))
            case DeviceOnline(continuous=True):
                return watch
            case EventsMissed() | DeviceOnline():
                done = [duty for duty in self._hourly if duty.code in watch.due]
            case event:
                done = [duty for duty in self._hourly if duty.code in watch.due and isinstance(event, duty.done_by)]
        age = timedelta(milliseconds=seen.event.age_ms)
        happened = seen.time - age if age < DAY else seen.time
        due = {duty.code: happened + duty.every for duty in done}
        later = {code: at for code, at in due.items() if at > watch.due[code]}  # an older event came late
        return Watch(watch.due | later, tuple(code for code in watch.noted if code not in later))

    def _replacements(self, watch: Watch, seen: Envelope) -> Watch:
        """A damaged thing must be replaced at once. After lost events it may have been replaced unseen."""
        due, noted = dict(watch.due), watch.noted
        lost = isinstance(seen.event, EventsMissed) or (
            isinstance(seen.event, DeviceOnline) and not seen.event.continuous
        )
        for duty in self._replaced:
            if isinstance(seen.event, duty.after):
                due.setdefault(duty.code, seen.time)
            elif lost or isinstance(seen.event, duty.done_by):
                due.pop(duty.code, None)
                noted = tuple(code for code in noted if code != duty.code)
        return Watch(due, noted)

    def _began(self, watch: Watch, game: S, seen: Envelope) -> tuple[Watch, tuple[Verdict, ...]]:
        """At the beginning of a round: start the clocks that do not run, and note those that ran out."""
        if not (self._hourly or self._last or watch.due or watch.noted):
            return watch, ()
        due = {duty.code: seen.time + duty.every for duty in self._hourly} | watch.due
        due |= {last.code: self._before_closing(last, seen.time) for last in self._last}
        late = {code: -(-(seen.time - at) // MINUTE) for code, at in due.items() if seen.time > at}
        going_on = [last.code for last in self._last if last.goes_on(game)]
        new = tuple(code for code in late if code not in (*watch.noted, *going_on))
        notes = tuple(self._note(code, late[code], seen) for code in new)
        return Watch(due, (*(code for code in watch.noted if code in late), *new)), notes

    def _before_closing(self, last: LastRound, now: datetime) -> datetime:
        """The latest time at which the last round may begin, before the next closing or the one that just passed."""
        today = datetime.combine(now.date(), self._closes_at, now.tzinfo)
        closing = next(day for day in (today - DAY, today, today + DAY) if now < day + CLOSED_FOR)
        return closing - last.before

    def _note(self, code: str, minutes: int, seen: Envelope) -> Noted:
        if any(last.code == code for last in self._last):
            reason = say("after_last_round", minutes=minutes)
        else:
            reason = say("duty_late", duty=code, minutes=minutes)
        return Noted(Irregularity(f"{code}_late", reason, self._laws[code], seen.id))
