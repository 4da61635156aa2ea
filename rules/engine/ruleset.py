"""The interface of every game: events in, verdicts out.

A game uses no clock, no randomness and no I/O; time is in the event. The same events give the same verdicts, byte for
byte, so a night's journal replays to the same results. Games do not depend on devices. A doubtful event suspends or
voids the round by its article; it never resolves wrongly.
"""

from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from protocols.contract.events import (
    MOST,
    EventsMissed,
    PlayerActed,
    RoundPaid,
    RoundVoided,
    SpinMissed,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
    type_of as event_type,
)
from protocols.contract.facts import RoundFacts
from protocols.contract.reasons import say
from protocols.contract.results import (
    Award,
    Closed,
    Corrected,
    Irregularity,
    Noted,
    Opened,
    Push,
    Resolved,
    Result,
    Settlement,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    Win,
    type_of,
)
from protocols.contract.topics import Envelope
from protocols.plain_errors import plain
from rules.needs import Needs

__all__ = [
    "Award",
    "BadOption",
    "Bet",
    "Closed",
    "Corrected",
    "Irregularity",
    "Noted",
    "Opened",
    "OptionInfo",
    "Push",
    "Resolved",
    "Result",
    "Ruleset",
    "Settlement",
    "Suspended",
    "Verdict",
    "View",
    "Void",
    "Voided",
    "Wager",
    "Win",
    "conflict",
    "judge",
    "option",
    "options_from",
    "options_of",
    "type_of",
]


class Bet(msgspec.Struct, frozen=True):
    """One kind of bet a ruleset offers. `id` is a pattern (`straight:n`), `pays`: the prize on top of the stake, "x" to
    1.
    """

    id: str
    pays: str
    law: str
    text: str


class Wager(msgspec.Struct, frozen=True, omit_defaults=True):
    """`amount` minor units on `bet` from `seat`; `hand` where a seat holds several.

    `minimum`: the smallest bet that the table took when this one was laid, 0 for any.
    """

    seat: int
    bet: str
    amount: int
    hand: int = 0
    minimum: int = 0


S = TypeVar("S")


class Ruleset(Protocol[S]):
    """One game by one text, with one house's options."""

    id: ClassVar[str]
    title: ClassVar[str]
    law: ClassVar[str]
    Options: ClassVar[type[Any]]
    State: ClassVar[type[Any]]
    Facts: ClassVar[type[RoundFacts]]
    """The struct of its facts: `outcome` of a result, `detail` of a view."""
    needs: ClassVar[Needs]
    """The events that the devices of its table must report, by its options."""

    def __init__(self, options: Any) -> None: ...

    def start(self, table: str) -> S:
        """The state of a new table."""
        ...

    def apply(self, state: S, seen: Envelope) -> tuple[S, tuple[Verdict, ...]]:
        """The next state and the verdicts. Never raises: an event that does not fit is an irregularity."""
        ...

    def view(self, state: S) -> View:
        """The public part of the state."""
        ...

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered with these options."""
        ...


def keeps_its_cards(ruleset: Any) -> bool:
    """Whether cards that were not shown stay hidden after the round, too: a game sets `keeps_cards = True`."""
    return getattr(ruleset, "keeps_cards", False)


def judge(ruleset: Ruleset[S], state: S, seen: Envelope) -> tuple[S, tuple[Verdict, ...]]:
    """The next state and the verdicts of an event. Callers use this instead of `apply`: it adds what all games share.

    A late event (`overtaken`) suspends the open round, as a loss does, and is not used. Between rounds, or where a loss
    suspends no round, it is used and leaves the same doubt, but gives no result by itself. A late event that changes
    nothing is ignored. A late payment closes the previous round and leaves a later suspension in place. A spin that
    ended unseen is void whenever that is reported. A declared void that comes too late is noted or disputes the result.

    A bet or a player's decision is refused that names another round than the one on the table, because it came too late
    or was repeated; also a bet that would begin the next round although it names the last one or the table is closed.
    """
    event = seen.event
    if type(event) not in _NAMES_ROUND and not event.overtaken:  # most events
        return ruleset.apply(state, seen)
    named = event if isinstance(event, (WagerPlaced, WagerWithdrawn, PlayerActed)) and event.round else None
    if named is not None and named.round != ruleset.view(state).round:
        return state, (Noted(_for_another_round(named, seen.id)),)
    after, told = ruleset.apply(state, seen)
    if isinstance(event, WagerPlaced) and event.table_closed and any(isinstance(one, Opened) for one in told):
        reason = say("bet_at_closed_table", seat=event.seat, bet=event.bet)
        return state, (Noted(Irregularity(reason.code, reason, "-", seen.id)),)
    if named is not None and any(isinstance(one, Opened) for one in told):
        return state, (Noted(_for_another_round(named, seen.id)),)
    if not event.overtaken or isinstance(event, RoundPaid | SpinMissed):
        return after, told
    if getattr(ruleset, "places_late_events", False):  # rules/engine/refold.py puts a late event at its time
        return after, told
    if not told and _facts(after) == _facts(state):
        return after, told
    doubt = msgspec.structs.replace(seen, event=EventsMissed(1))
    doubted, verdicts = ruleset.apply(state, doubt)
    waits = ruleset.view(doubted).phase == "suspended"
    declared = isinstance(event, RoundVoided | SpinVoided)
    if waits and not declared:
        return doubted, verdicts
    if not waits and not any(isinstance(verdict, Resolved | Corrected) for verdict in told):
        if declared and any(isinstance(verdict, Suspended) for verdict in told):
            return after, told  # the declaration is the only doubt: a payment shows that another round was meant
        after, more = ruleset.apply(after, doubt)
        return after, told + more
    text = say("told_too_late", event=event_type(event), ms=event.overtaken)
    return doubted, (*verdicts, Noted(Irregularity("told_too_late", text, "-", seen.id)))


def conflict(ruleset: Ruleset[S], state: S, seen: Envelope) -> tuple[S, tuple[Verdict, ...]]:
    """The next state and the verdicts after two different events under one number; `seen` is one of them.

    One of the two is false, and it is unknown which: an open round waits for a person, as after a loss. It is noted
    even if no round is open: the round that the first event resolved stands, and may be wrong.
    """
    state, verdicts = judge(ruleset, state, msgspec.structs.replace(seen, event=EventsMissed(1)))
    text = say("number_used_twice")
    return state, (*verdicts, Noted(Irregularity("number_used_twice", text, "-", seen.id)))


_NAMES_ROUND: Final = frozenset((WagerPlaced, WagerWithdrawn, PlayerActed))


def _for_another_round(one: WagerPlaced | WagerWithdrawn | PlayerActed, event: str) -> Irregularity:
    bet = one.action if isinstance(one, PlayerActed) else one.bet
    reason = say("bet_for_another_round", seat=one.seat, bet=bet, round=one.round)
    return Irregularity(reason.code, reason, "-", event)


def _facts(state: object) -> Any:
    """A state without the events that it rests on."""

    def bare(value: Any) -> Any:
        match value:
            case dict():
                return {key: bare(one) for key, one in value.items() if key != "evidence"}
            case list() | tuple():
                return [*map(bare, value)]
            case _:
                return value

    return bare(msgspec.to_builtins(state))


class OptionInfo(msgspec.Struct, frozen=True):
    """One choice that the text leaves to the house."""

    name: str
    values: str
    default: Any
    law: str
    text: str


def option(law: str, text: str) -> Meta:
    """The annotation of an option: its article and what it chooses."""
    return Meta(description=text, extra={"law": law})


def options_of(options: type[Any]) -> tuple[OptionInfo, ...]:
    """The options of a ruleset, from the annotations of its Options struct; last the one that every ruleset has."""
    hints = get_type_hints(options, include_extras=True)
    hints |= {"limits": hints.pop("limits")} if "limits" in hints else {}
    defaults = msgspec.to_builtins(options())
    return tuple(
        OptionInfo(name, _values(hint), defaults[name], _meta(hint, "law"), _meta(hint, "text"))
        for name, hint in hints.items()
        if get_origin(hint) is not ClassVar
    )


def _meta(hint: Any, which: str) -> str:
    found = ""
    for meta in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(meta, Meta):
            value = (meta.extra or {}).get("law") if which == "law" else meta.description
            found = value or found
    return found


def _values(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        inner = _values(get_args(hint)[0])
        metas = [meta for meta in get_args(hint)[1:] if isinstance(meta, Meta)]
        bounds = [f"{meta.ge}..{meta.le}" for meta in metas if meta.ge is not None and meta.le is not None]
        bounds += [f"{meta.ge} or more" for meta in metas if meta.ge is not None and meta.le is None]
        return f"{inner} {bounds[0]}" if bounds else inner
    if get_origin(hint) is Literal:
        return " | ".join(str(value) for value in get_args(hint))
    if get_origin(hint) is tuple:
        return f"list of {_values(get_args(hint)[0])}"
    return {bool: "true | false", int: "number", float: "number", str: "text"}.get(hint, str(hint))


class BadOption(ValueError):
    """An option that does not exist, a value it cannot have, or a combination that the text excludes."""


def options_from(ruleset: type[Ruleset[Any]], given: dict[str, Any], *, text: bool = False) -> Any:
    """The Options of `ruleset` from a configuration, or with `text` from a command line. Raises BadOption."""
    known = {info.name: info for info in options_of(ruleset.Options)}
    for name in given:
        if name not in known:
            raise BadOption(f"{ruleset.id} has no option {name!r}; it has: {', '.join(known)}")
    if text:
        given = {name: _words(known[name], value) for name, value in given.items()}
    if too_large := [name for name, value in given.items() if isinstance(value, int) and abs(value) > MOST]:
        raise BadOption(f"{ruleset.id}: {too_large[0]!r}: no number is above {MOST}")
    try:
        options = msgspec.convert(given, ruleset.Options, strict=not text)
    except msgspec.ValidationError as error:
        message = str(error)
        hints = [f"{name}: {info.values}" for name, info in known.items() if f"$.{name}" in message]
        raise BadOption(f"{ruleset.id}: {plain(error)}" + (f" ({'; '.join(hints)})" if hints else "")) from error
    if options.limits:
        made: Any = ruleset(options)
        try:
            _ = made.limits
        except ValueError as error:
            raise BadOption(f"{ruleset.id}: {error} - at `$.limits`") from error
    return options


def _words(info: OptionInfo, value: str) -> Any:
    if not info.values.startswith("list of "):
        return value
    words = [word for word in value.split(",") if word]
    return [word.split("-") for word in words] if info.values.startswith("list of list of ") else words
