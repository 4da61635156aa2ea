"""The verdicts of the rules and the result of a round.

The rules write these structs and every reader decodes into them. A reader ignores unknown fields and takes the default
for a missing one; `decode_result` bounds the nesting of what it keeps.
"""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from protocols.contract.facts import F, RoundFacts
from protocols.contract.reasons import Reason
from protocols.contract.topics import ANY_VALUES
from protocols.plain_errors import plain

LONGEST_ROUND = 200
"""Maximum characters of a round's id. It appears in URLs and in the console's journal of actions."""
DEEPEST = 20
"""Maximum nesting of a round's facts; today's games reach 4."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Round: TypeAlias = Annotated[str, Meta(max_length=LONGEST_ROUND)]


class Win(Struct, frozen=True, omit_defaults=True):
    """A bet that wins on this outcome. `pays` is net of commission; `gross` is given where they differ."""

    bet: str
    pays: str
    gross: str = ""
    seat: int = 0
    hand: int = 0


class Push(Struct, frozen=True, omit_defaults=True):
    """A bet returned to one seat, or to one of its hands. A bet returned to all seats is given by name alone."""

    bet: str
    seat: int
    hand: int = 0


class Void(Struct, frozen=True, omit_defaults=True):
    """The reason why the round is void, and what happens to the bets."""

    reason: Reason
    bets: Literal["returned", "may_change", "stand", "stand_may_add"]
    jackpot_bets: Literal["", "carried", "returned"] = ""
    streak_bets: Literal["", "carried"] = ""


class Settlement(Struct, frozen=True, omit_defaults=True):
    """The amount returned for one wager, stake included. `exact`: the amount before rounding to the smallest chip.

    A bet that was taken and went back, as one on a jackpot without a main bet, has its whole stake, and a push.
    """

    seat: int
    bet: str
    stake: int
    returned: int
    exact: str = ""
    hand: int = 0


class Irregularity(Struct, frozen=True):
    """A breach of the law's text. `code` is its kind and stable; `event` is the id of the event that showed it."""

    code: str
    reason: Reason
    law: str
    event: str = ""


class Award(Struct, frozen=True, omit_defaults=True):
    """A jackpot combination that was hit. The rules name it; the jackpots process books it.

    `pays`: what is left of the pool (or `share`, a fraction of it, where one is given), a fixed amount, or the larger
    of the fixed amount and `share` of the pool. `among`: the seats that share it in equal parts, where the bettors are
    known. A share is of the pool as it was before the round; `after` names the combination whose prizes leave it
    first. Awards are in the order of payment.
    """

    jackpot: str
    combination: str
    pays: Literal["pool", "fixed", "larger_of_fixed_and_share"]
    law: str
    share: str = ""
    among: tuple[int, ...] = ()
    after: str = ""

    @property
    def each(self) -> bool:
        """Without known bettors: whether every seat that holds it has the prize, or all share one.

        Each: Macau stud poker 10(2), 10(6), Angola stud poker 9(11) and blackjack 7(13)(a). Shared: the prizes of
        baccarat (17(6)-(12)), the whole pool, and the tenth for straight flushes of Angola (9(14)(c)).
        """
        if self.pays == "pool":
            return self.jackpot == "blackjack" and self.share != ""
        return self.jackpot in ("blackjack", "progressive") and self.share != "1"


Facts: TypeAlias = Annotated[dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/RoundFacts"})]
"""The facts as a game writes them: only its own fields, in its order. `facts_as` gives the struct."""


Options: TypeAlias = Annotated[
    Raw, Meta(description="the options of the ruleset, as `feltd rulesets` lists them", extra_json_schema=ANY_VALUES)
]


class Result(Struct, frozen=True):
    """The end of a round, resolved or void.

    `stands` are the bets that this outcome does not decide, `moves` those that travel ("come" to "come:6"): the next
    round takes both over. A bet offered that is neither there nor in `winners` or `pushes` loses.
    """

    round: Round
    ruleset: str = ""
    edition: str = ""
    options: Options = field(default_factory=lambda: Raw(b"{}"))
    demo: bool = False
    outcome: Facts = field(default_factory=dict)
    winners: tuple[Win, ...] = ()
    pushes: tuple[str | Push, ...] = ()
    void: Void | None = None
    jackpots: tuple[Award, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    irregularities: tuple[Irregularity, ...] = ()
    announcements: dict[str, str] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    law: tuple[str, ...] = ()
    stands: tuple[str, ...] = ()
    moves: dict[str, str] = field(default_factory=dict)
    supersedes: Round = ""


class Opened(Struct, frozen=True, tag_field="type", tag="opened"):
    """A round begins."""

    round: str


class Closed(Struct, frozen=True, tag_field="type", tag="bets-closed"):
    """The bets of the round are closed."""

    round: str


class Suspended(Struct, frozen=True, tag_field="type", tag="suspended"):
    """An event is doubtful: the round waits for a person."""

    round: str
    reason: Reason
    remedy: Reason


class Resolved(Struct, frozen=True, tag_field="type", tag="resolved"):
    """The round was resolved by its article."""

    result: Result


class Voided(Struct, frozen=True, tag_field="type", tag="voided"):
    """The round is void."""

    result: Result


class Corrected(Struct, frozen=True, tag_field="type", tag="corrected"):
    """A new result replaces an earlier one of the same round."""

    result: Result


class Noted(Struct, frozen=True, tag_field="type", tag="irregular"):
    """An irregularity of the table, outside any round."""

    irregularity: Irregularity


Verdict: TypeAlias = Opened | Closed | Suspended | Resolved | Voided | Corrected | Noted
VERDICTS: dict[str, type[Verdict]] = {
    str(kind.__struct_config__.tag): kind for kind in (Resolved, Voided, Corrected, Opened, Closed, Suspended, Noted)
}
"""By type. The first three end a round."""
ENDS = tuple(VERDICTS)[:3]


class View(Struct, frozen=True):
    """The current round for readers: its phase and the game's facts so far."""

    round: Round = ""
    phase: str = ""
    detail: Facts = field(default_factory=dict)


class RoundState(View, frozen=True):
    """`round/state`.

    `heard`: per journal of an edge, the seq of the last event included. `rules`: the id of the rules process.
    `newest`: the round of the table that was opened last. `after`: per journal, the newest round before its
    first event. `keeps_cards`: cards that were not shown stay hidden after the round, too.
    """

    heard: dict[str, int] = field(default_factory=dict)
    rules: str = ""
    newest: Round = ""
    after: dict[str, Round] = field(default_factory=dict)
    keeps_cards: bool | UnsetType = UNSET


class BadRound(ValueError):
    """An invalid document of a round. The message names the place."""


def type_of(verdict: Verdict) -> str:
    """The last part of its topic, e.g. "bets-closed"."""
    return str(verdict.__struct_config__.tag)


def encode_verdict(verdict: Verdict) -> bytes:
    """The verdict's fields without its tag, which is the envelope's type."""
    tagged = msgspec.json.encode(verdict)
    return b"{" + tagged[tagged.index(b",") + 1 :]


def decode_end(data: bytes | Raw) -> Result:
    """The result in the data of an envelope of a type of ENDS. Raises BadRound."""
    try:
        return _checked(_END.decode(data).result)
    except UNREADABLE as error:
        raise BadRound(plain(error)) from error


def decode_result(payload: bytes | Raw) -> Result:
    """A result. Raises BadRound."""
    try:
        return _checked(_RESULT.decode(payload))
    except UNREADABLE as error:
        raise BadRound(plain(error)) from error


def _checked(result: Result) -> Result:
    if not _flat(msgspec.json.decode(result.options), DEEPEST):
        raise BadRound(f"its options are nested deeper than {DEEPEST}")
    facts_as(RoundFacts, result.outcome)
    return result


def decode_state(payload: bytes) -> RoundState:
    """`round/state`. Raises BadRound."""
    return decode_state_as(RoundFacts, payload)[0]


def decode_state_as(kind: type[F], payload: bytes) -> tuple[RoundState, F]:
    """`round/state` with the facts of its game. Raises BadRound."""
    try:
        state = _STATE.decode(payload)
    except UNREADABLE as error:
        raise BadRound(plain(error)) from error
    if not state.phase:
        raise BadRound("it has no phase")
    return state, facts_as(kind, state.detail)


def facts_as(kind: type[F], facts: dict[str, Any]) -> F:
    """The facts that a game wrote, as far as this version has the fields. Raises BadRound."""
    if not _flat(facts, DEEPEST):
        raise BadRound(f"it is nested deeper than {DEEPEST}")
    try:
        return msgspec.convert(facts, kind)
    except UNREADABLE as error:
        raise BadRound(plain(error)) from error


_NESTED = (dict, list)


def _flat(value: Any, most: int) -> bool:
    """Whether lists and objects are nested at most `most` deep, so that encoding cannot exhaust the stack."""
    level = [value] if isinstance(value, _NESTED) else []
    for _ in range(most):
        if not level:
            return True
        items = (outer.values() if isinstance(outer, dict) else outer for outer in level)
        level = [one for inner in items for one in inner if isinstance(one, _NESTED)]
    return not level


_END = msgspec.json.Decoder(Resolved)  # the three have the same fields, and no tag within their data
_RESULT = msgspec.json.Decoder(Result)
_STATE = msgspec.json.Decoder(RoundState)
