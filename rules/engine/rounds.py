"""The bookkeeping of one round, the same for every game: its id, its evidence, its irregularities, its result.

The bets of a round are laid and taken back in `rules/engine/cloth.py`.

All functions are pure: those that change a round return the next Round.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.limits import Limits, Range
from rules.engine.money import Rounding, settle
from rules.engine.ruleset import (
    Award,
    Irregularity,
    Noted,
    Push,
    Result,
    Settlement,
    Suspended,
    Verdict,
    Void,
    Wager,
    Win,
)

S = TypeVar("S", bound=Struct)

CODE: Final = re.compile("[a-z][a-z0-9_]{0,63}")
MAX_WAGERS = 1000
# Wagers leave room for the deciding events, which are evidence however many chips were moved before.
MAX_WAGER_EVIDENCE = 1000
MAX_EVIDENCE = 1500
MAX_IRREGULARITIES = 50


class Round(Struct, frozen=True, gc=False):
    """A round under way. `suspended` is the reason why it waits for a person, if it does.

    `refused`: chips that were refused and lie on the cloth beside the bets, until they are taken away. `given_back`:
    bets that were taken and cannot stand; the result returns their stakes.
    """

    id: str
    evidence: tuple[str, ...] = ()
    wagers: tuple[Wager, ...] = ()
    irregularities: tuple[Irregularity, ...] = ()
    closed: bool = False
    demo: bool = False
    suspended: Reason | None = None
    refused: tuple[Wager, ...] = ()
    given_back: tuple[Wager, ...] = ()


def without_bets(round_: Round) -> Round:
    """The round with unknown bets."""
    return replace(round_, wagers=(), given_back=())


def witness(round_: Round, seen: Envelope, most: int = MAX_EVIDENCE) -> Round:
    """Add this event to the evidence, once. Bounded: a stuck sensor must not fill the memory."""
    evidence = round_.evidence
    if (evidence and evidence[-1] == seen.id) or len(evidence) >= most:
        return round_
    return replace(round_, evidence=evidence + (seen.id,))  # noqa: RUF005 - copied once, for each event


def irregular(round_: Round, code: str, reason: Reason, law: str, seen: Envelope) -> Round:
    """Note an irregularity; the event is evidence of it."""
    if len(round_.irregularities) >= MAX_IRREGULARITIES:
        return round_
    note = Irregularity(code, reason, law, seen.id)
    return witness(replace(round_, irregularities=(*round_.irregularities, note)), seen)


def noted(code: str, reason: Reason, law: str, seen: Envelope) -> tuple[Verdict, ...]:
    """The verdict of an irregularity outside any round."""
    return (Noted(Irregularity(code, reason, law, seen.id)),)


def suspend(round_: Round, seen: Envelope, reason: Reason, remedy: Reason) -> tuple[Round, tuple[Verdict, ...]]:
    """Suspend the round, with the event as evidence. Published once, with the first reason."""
    round_ = witness(round_, seen)
    if round_.suspended:
        return round_, ()
    return replace(round_, suspended=reason), (Suspended(round_.id, reason, remedy),)


def declared(text: str) -> Reason:
    """Why a person or a wheel declared the round void: a known code, or the text that was given."""
    if not text:
        return say("declared")
    return say(text) if CODE.fullmatch(text) else say("declared_for", text=text)


def next_number(day: str, count: int, seen: Envelope) -> tuple[str, int]:
    """The day and number of the next round. A clock set back over midnight does not repeat a number."""
    today = seen.time.date().isoformat()
    return (today, 1) if today > day else (day, count + 1)


def numbered_after(state: S, table: str, round_: str) -> S:
    """A new state that numbers its rounds after `round_`, even of another game, so that no id is used twice."""
    game: Any = getattr(state, "game", None)
    if game is not None:  # the game within a state with duties
        return replace(state, game=numbered_after(game, table, round_))
    day, number = round_.removeprefix(f"{table}:").split(":")[:2]
    fields = type(state).__struct_fields__
    if getattr(state, "shoe", -1) >= 0:  # rounds are numbered within a shoe
        return replace(state, day=day, shoe=int(number) + 1)
    return replace(state, day=day, **{"rounds" if "rounds" in fields else "count": int(number)})


def abandoned(
    round_: str, ruleset: str, evidence: tuple[str, ...], supersedes: str = "", *, unreadable: bool = False
) -> Result:
    """The end of a round that these rules cannot continue: it is another game's, or its state is unreadable.

    `unreadable`: a written row of the round cannot be read.
    """
    return Result(
        round=round_,
        ruleset=ruleset,
        edition="",
        options=Raw(b"{}"),
        demo=False,
        outcome={},
        winners=(),
        pushes=(),
        void=Void(say("row_unreadable"), "returned") if unreadable else Void(say("rules_changed"), "returned"),
        jackpots=(),
        settlements=(),
        irregularities=(),
        announcements={"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"},
        evidence=evidence,
        law=(),
        supersedes=supersedes,
    )


class Terms(Struct, frozen=True):
    """The fields that all results of a table share. `void_words`: the croupier's call for a void round."""

    ruleset: str
    edition: str
    options: Raw
    void_words: dict[str, str]
    chip: int = 1
    rounding: Rounding = "down"
    limits: tuple[str, ...] = ()


class Chips(Protocol):
    """The options that every game has."""

    @property
    def limits(self) -> tuple[str, ...]: ...
    @property
    def smallest_chip(self) -> int: ...
    @property
    def rounding(self) -> Rounding: ...


def terms(ruleset: str, edition: str, options: Chips, void_words: dict[str, str]) -> Terms:
    """The terms of one house's options. Limits that are not set are not written."""
    written = msgspec.to_builtins(options)
    if not options.limits:
        written.pop("limits", None)
    encoded = Raw(msgspec.json.encode(written))
    return Terms(ruleset, edition, encoded, void_words, options.smallest_chip, options.rounding, options.limits)


def limits_of(
    terms: Terms,
    bets: Iterable[str],
    best: Callable[[], Mapping[str, Fraction]],
    articles: Mapping[str, Range] | None = None,
    fixed: Iterable[str] = (),
) -> Limits:
    """The limits of a table with these terms. `bets`: ids or patterns of what is offered. `fixed`: as in `Limits`."""
    families = dict.fromkeys(bet.partition(":")[0] for bet in bets)
    up = terms.rounding == "up"
    return Limits(terms.limits, families, articles=articles, fixed=fixed, best=best, chip=terms.chip, rounds_up=up)


def resolved(
    round_: Round,
    terms: Terms,
    *,
    outcome: dict[str, Any],
    winners: tuple[Win, ...],
    pushes: tuple[str | Push, ...] = (),
    parts: tuple[Win, ...] = (),
    jackpots: tuple[Award, ...] = (),
    announcements: dict[str, str],
    law: tuple[str, ...],
    supersedes: str = "",
    stands: tuple[str, ...] = (),
    moves: dict[str, str] | None = None,
) -> Result:
    """The result of a round that counts. Bets that stand or move are not settled: the next round takes them over.

    `parts`: returned parts of bets that were given up; they are neither won nor a tie.
    """
    open_bets = frozenset((*stands, *(moves or ())))
    wagers = tuple(one for one in round_.wagers if one.bet not in open_bets) if open_bets else round_.wagers
    return Result(
        round=round_.id,
        ruleset=terms.ruleset,
        edition=terms.edition,
        options=terms.options,
        demo=round_.demo,
        outcome=outcome,
        winners=winners,
        pushes=pushes + _pushed(round_),
        void=None,
        jackpots=jackpots,
        settlements=settle(wagers, (*winners, *parts), pushes, chip=terms.chip, rounding=terms.rounding)
        + _given_back(round_),
        irregularities=round_.irregularities,
        announcements=announcements,
        evidence=round_.evidence,
        law=law,
        stands=stands,
        moves=moves or {},
        supersedes=supersedes,
    )


def undecided(round_: Round, result: Result) -> tuple[Wager, ...]:
    """The wagers that a result leaves on the table; travelling ones at their new place."""
    where = dict(zip(result.stands, result.stands, strict=True)) | result.moves
    return tuple(replace(one, bet=where[one.bet]) for one in round_.wagers if one.bet in where)


def voided(
    round_: Round, terms: Terms, void: Void, law: tuple[str, ...], outcome: dict[str, Any] | None = None
) -> Result:
    """The result of a round that does not count. Bets that are returned are settled; others stay on the cloth."""
    pushes = tuple(dict.fromkeys(one.bet for one in round_.wagers)) if void.bets == "returned" else ()
    return Result(
        round=round_.id,
        ruleset=terms.ruleset,
        edition=terms.edition,
        options=terms.options,
        demo=round_.demo,
        outcome=outcome or {},
        winners=(),
        pushes=pushes + _pushed(round_),
        void=void,
        jackpots=(),
        settlements=(settle(round_.wagers, (), pushes) if void.bets == "returned" else ()) + _given_back(round_),
        irregularities=round_.irregularities,
        announcements=terms.void_words,
        evidence=round_.evidence,
        law=law,
    )


def _pushed(round_: Round) -> tuple[Push, ...]:
    return tuple(Push(one.bet, one.seat, one.hand) for one in round_.given_back)


def _given_back(round_: Round) -> tuple[Settlement, ...]:
    """The settlements of bets that were taken and went back before the result."""
    return tuple(Settlement(one.seat, one.bet, one.amount, one.amount, hand=one.hand) for one in round_.given_back)
