"""What the rules say of a round: the verdicts, the result, and the facts of each game.

The rules write these structs and every reader decodes into them. A reader ignores fields that it does not know and
takes the default for one that an older version left out; `decode_result` bounds the nesting of what it keeps.
"""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, field

from protocols.contract.reasons import Reason
from protocols.contract.topics import ANY_VALUES

LONGEST_ROUND = 200
"""Characters of a round's name: it stands in addresses and in the console's journal of actions."""
DEEPEST = 20
"""How deep the facts of a round may be nested; those of today reach 4."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Round: TypeAlias = Annotated[str, Meta(max_length=LONGEST_ROUND)]


class Win(Struct, frozen=True, omit_defaults=True):
    """A bet that wins on this outcome. `pays` is net of commission; `gross` stands beside it where they differ."""

    bet: str
    pays: str
    gross: str = ""
    seat: int = 0
    hand: int = 0


class Push(Struct, frozen=True, omit_defaults=True):
    """A bet that comes back to one seat, or to one of its hands; one that comes back to everybody is its name alone."""

    bet: str
    seat: int
    hand: int = 0


class Void(Struct, frozen=True, omit_defaults=True):
    """Why the round does not count, and what becomes of the bets."""

    reason: Reason
    bets: Literal["returned", "may_change", "stand", "stand_may_add"]
    jackpot_bets: Literal["", "carried", "returned"] = ""
    streak_bets: Literal["", "carried"] = ""


class Settlement(Struct, frozen=True, omit_defaults=True):
    """What one wager brings back, stake included. `exact` stands where the smallest chip forced a rounding."""

    seat: int
    bet: str
    stake: int
    returned: int
    exact: str = ""
    hand: int = 0


class Irregularity(Struct, frozen=True):
    """Something the text does not allow. `code` is its kind, `event` the id of the event that showed it."""

    code: str
    reason: Reason
    law: str
    event: str = ""


class Award(Struct, frozen=True, omit_defaults=True):
    """A jackpot combination that fell: the rules name it, a ledger pays it.

    `pays`: the whole pool, a fixed amount, or the larger of the fixed amount and `share` (a fraction) of the pool.
    `among`: the seats that share it in equal parts, where the bettors are known. A share is of the pool as it was
    before the round; `after` names the combination whose prizes leave it first. Awards stand in the order of payment.
    """

    jackpot: str
    combination: str
    pays: Literal["pool", "fixed", "larger_of_fixed_and_share"]
    law: str
    share: str = ""
    among: tuple[int, ...] = ()
    after: str = ""


class Exposed(Struct, frozen=True):
    """A card that was seen while it should lie face down."""

    hand: str = ""
    card: str = ""


class Due(Struct, frozen=True):
    """What a game of seats waits for: a card to a hand, or a decision of a seat and the actions it may choose."""

    kind: str = ""
    hand: str = ""
    seat: int = 0
    actions: tuple[str, ...] = ()


class RoundFacts(Struct, frozen=True):
    """The facts of a round, of whatever game: `outcome` in a result, `detail` in `round/state`.

    Each game writes those that it has. A hand is named player, banker, dealer, seat_<n> or <seat>.<hand>.
    """

    # any game
    say: dict[str, str] = field(default_factory=dict)
    reason: Reason | None = None
    refused: str = ""
    demo: bool = False
    # cards
    hands: dict[str, tuple[str, ...]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    open: tuple[str, ...] = ()
    exposed: tuple[Exposed, ...] = ()
    missing: tuple[str, ...] = ()
    burn: int = 0
    dealt: int = 0
    last: bool = False
    shoe: int = 0
    # baccarat
    winner: str = ""
    natural: bool = False
    player_pair: bool = False
    banker_pair: bool = False
    dragon_7: bool = False
    lucky_6: bool = False
    next: str = ""
    handles: dict[str, int] = field(default_factory=dict)
    # blackjack and stud poker; `seats` are those that play, or the fate of each hand
    seats: dict[str, str] | tuple[int, ...] = ()
    results: dict[str, str] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    blackjack: bool = False
    bust: bool = False
    doubled: tuple[str, ...] = ()
    insured: tuple[int, ...] = ()
    streaks: dict[str, int] = field(default_factory=dict)
    due: Due | None = None
    combinations: dict[str, str] = field(default_factory=dict)
    opens: bool = False
    players: tuple[int, ...] = ()
    antes: tuple[int, ...] = ()
    raised: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    undecided: tuple[int, ...] = ()
    # roulette
    pocket: str = ""
    last_pocket: str = ""
    colour: str = ""
    parity: str = ""
    half: str = ""
    dozen: int = 0
    column: int = 0
    # shaken dice
    faces: tuple[int, ...] = ()
    figures: tuple[str, ...] = ()
    colours: dict[str, int] = field(default_factory=dict)
    total: int | None = None
    triple: bool = False
    size: str = ""
    stacked: int = 0
    leaning: int = 0
    lit: tuple[str, ...] = ()
    panel: bool = False
    agitations: int = 0
    pulls: int = 0
    # fan-tan
    number: int | None = None
    count: int | None = None
    fragments: int = 0
    lamp: str = ""
    separated: bool = False


Facts: TypeAlias = Annotated[dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/RoundFacts"})]
"""RoundFacts as a game writes them: only those it has, in its order. `facts_of` gives the struct."""


Options: TypeAlias = Annotated[
    Raw, Meta(description="the options of the ruleset, as `feltd rulesets` lists them", extra_json_schema=ANY_VALUES)
]


class Result(Struct, frozen=True):
    """The end of a round, resolved or void. A bet offered that is neither in `winners`, `pushes` nor `stands` loses."""

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
    """Nothing more may be bet on it."""

    round: str


class Suspended(Struct, frozen=True, tag_field="type", tag="suspended"):
    """What happened is doubtful: the round waits for a person."""

    round: str
    reason: Reason
    remedy: Reason


class Resolved(Struct, frozen=True, tag_field="type", tag="resolved"):
    """The round ended by its article."""

    result: Result


class Voided(Struct, frozen=True, tag_field="type", tag="voided"):
    """The round ended without counting."""

    result: Result


class Corrected(Struct, frozen=True, tag_field="type", tag="corrected"):
    """A new result stands in the place of an earlier one of the same round."""

    result: Result


class Noted(Struct, frozen=True, tag_field="type", tag="irregular"):
    """An irregularity while no round was open."""

    irregularity: Irregularity


Verdict: TypeAlias = Opened | Closed | Suspended | Resolved | Voided | Corrected | Noted
VERDICTS: dict[str, type[Verdict]] = {
    str(kind.__struct_config__.tag): kind for kind in (Resolved, Voided, Corrected, Opened, Closed, Suspended, Noted)
}
"""By type. The first three end a round."""
ENDS = tuple(VERDICTS)[:3]


class View(Struct, frozen=True):
    """The round as it stands, for everybody who looks: phase, and the game's own facts so far."""

    round: Round = ""
    phase: str = ""
    detail: Facts = field(default_factory=dict)


class RoundState(View, frozen=True):
    """`round/state`.

    `heard`: by journal of an edge, the seq of the last event of the table that it rests on. `rules`: who says it.
    """

    heard: dict[str, int] = field(default_factory=dict)
    rules: str = ""


class BadRound(ValueError):
    """What was said of a round is not what rounds are like. The message says where."""


def type_of(verdict: Verdict) -> str:
    """The last word of its topic, e.g. "bets-closed"."""
    return str(verdict.__struct_config__.tag)


def encode_verdict(verdict: Verdict) -> bytes:
    """The verdict's fields without its tag: the envelope's type says it."""
    tagged = msgspec.json.encode(verdict)
    return b"{" + tagged[tagged.index(b",") + 1 :]


def decode_end(data: bytes | Raw) -> Result:
    """The result in the data of an envelope of a type of ENDS. Raises BadRound."""
    try:
        return _checked(_END.decode(data).result)
    except UNREADABLE as error:
        raise BadRound(str(error)) from error


def decode_result(payload: bytes | Raw) -> Result:
    """A result. Raises BadRound."""
    try:
        return _checked(_RESULT.decode(payload))
    except UNREADABLE as error:
        raise BadRound(str(error)) from error


def _checked(result: Result) -> Result:
    if not _flat(msgspec.json.decode(result.options), DEEPEST):
        raise BadRound(f"its options are nested deeper than {DEEPEST}")
    facts_of(result.outcome)
    return result


def decode_state(payload: bytes) -> RoundState:
    """`round/state`. Raises BadRound."""
    try:
        state = _STATE.decode(payload)
    except UNREADABLE as error:
        raise BadRound(str(error)) from error
    if not state.phase:
        raise BadRound("it has no phase")
    facts_of(state.detail)
    return state


def facts_of(facts: dict[str, Any]) -> RoundFacts:
    """What a game says of its round, as far as this version knows the words. Raises BadRound."""
    if not _flat(facts, DEEPEST):
        raise BadRound(f"it is nested deeper than {DEEPEST}")
    try:
        return msgspec.convert(facts, RoundFacts)
    except UNREADABLE as error:
        raise BadRound(str(error)) from error


def _flat(value: Any, most: int) -> bool:
    """Whether lists and objects are nested no deeper than `most`: writing them must not take the whole stack."""
    match value:
        case dict():
            return most > 0 and all(_flat(one, most - 1) for one in value.values())
        case list():
            return most > 0 and all(_flat(one, most - 1) for one in value)
        case _:
            return True


_END = msgspec.json.Decoder(Resolved)  # the three have the same fields, and no tag within their data
_RESULT = msgspec.json.Decoder(Result)
_STATE = msgspec.json.Decoder(RoundState)
