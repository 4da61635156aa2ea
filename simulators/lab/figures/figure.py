"""Computes the figures of a game: every end of a round is played through its ruleset and counted."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, TypeAlias

from msgspec import Struct

from protocols.contract.events import Event
from protocols.contract.topics import Envelope
from rules import RULESETS
from rules.engine.duties import without_duties
from rules.engine.money import odds
from rules.engine.ruleset import Resolved, Result, Ruleset, options_from


class Weight(Struct, frozen=True):
    """The probability that a bet wins, and the house edge; None if it depends on amounts that are not printed.

    In a simulation both are the counted values.
    """

    probability: Fraction
    edge: Fraction | None
    method: str = "exact"


class Published(Struct, frozen=True):
    """A published figure of a bet: the text as printed, its source, and the reason of a difference."""

    source: str
    probability: str = ""
    edge_percent: str = ""
    difference: str = ""


Weights: TypeAlias = dict[str, Weight]
Chances: TypeAlias = Iterable[tuple[Fraction, Result]]


class Variant(Struct, frozen=True):
    """A set of options as `--option` takes them, and the set whose equal rows are left out."""

    options: Mapping[str, str] = {}
    beside: Mapping[str, str] | None = {}

    @property
    def text(self) -> str:
        """The options as the table shows them."""
        return said(self.options)


class Game(Struct, frozen=True):
    """How the figures of a game are computed under given options, and the sets of options that are shown."""

    weigh: Callable[[Mapping[str, str]], Weights]
    variants: tuple[Variant, ...]
    published: Mapping[tuple[str, str], Published] = {}


def said(options: Mapping[str, str]) -> str:
    """Options as text."""
    return ", ".join(f"{name}={value}" for name, value in options.items())


# ---- one end of a round


def ruleset_of(name: str, options: Mapping[str, str]) -> Ruleset[Any]:
    """The game with options as a command line gives them, without the duties that are monitored beside its rounds."""
    kind = RULESETS[name]
    return without_duties(kind(options_from(kind, dict(options), text=True)))


class UnresolvedError(RuntimeError):
    """The events resolve no round."""


def played(ruleset: Ruleset[Any], events: Sequence[Event]) -> Result:
    """The result of one round from a fresh table."""
    state, result = ruleset.start("figures"), None
    for number, event in enumerate(events, 1):
        seen = Envelope(f"figures:{number}", "figures", datetime(2026, 1, 1, tzinfo=UTC), event)
        state, verdicts = ruleset.apply(state, seen)
        for verdict in verdicts:
            if isinstance(verdict, Resolved):
                result = verdict.result
    if result is None:
        raise UnresolvedError(f"{ruleset.id}: these events resolve no round: {events}")
    return result


def weighed(chances: Chances) -> Weights:
    """The weight of every bet that some result pays or returns. All other bets are lost."""
    won: dict[str, Fraction] = defaultdict(Fraction)
    back: dict[str, Fraction] = defaultdict(Fraction)
    for probability, result in chances:
        for win in result.winners:
            won[win.bet] += probability
            back[win.bet] += probability * (odds(win.pays) + 1)
        for push in result.pushes:
            back[push if isinstance(push, str) else push.bet] += probability
    return {bet: Weight(won[bet], 1 - back[bet]) for bet in back}


def equally(name: str, rounds: Iterable[Sequence[Event]]) -> Callable[[Mapping[str, str]], Weights]:
    """The weights of a game with equally likely ends."""
    ends = tuple(tuple(events) for events in rounds)

    def weigh(options: Mapping[str, str]) -> Weights:
        ruleset = ruleset_of(name, options)
        return weighed((Fraction(1, len(ends)), played(ruleset, events)) for events in ends)

    return weigh


def beside(options: str, published: Mapping[str, Published]) -> dict[tuple[str, str], Published]:
    """Published figures of several bets under the same options."""
    return {(bet, options): one for bet, one in published.items()}
