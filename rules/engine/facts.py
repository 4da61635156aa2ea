"""The state that the refold engine keeps of a table (facts, open round, last one), and the effects of a game's steps.

`Engine` and `Game` of `rules/engine/refold.py` use these values, and so do the games. `gc=False`, here and in other
states of a round: a frozen value is never part of a cycle, so that the garbage collector need not visit it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import DealCorrected, WagerPlaced
from protocols.contract.reasons import Reason
from protocols.contract.topics import Envelope
from rules.engine.rounds import Round
from rules.engine.ruleset import Result, Verdict, Wager

P = TypeVar("P", bound=Struct)
Hands: TypeAlias = Mapping[str, tuple[str, ...]]


class Fact(Envelope, frozen=True, array_like=True, gc=False):
    """An event as a round keeps it. `time`: when it happened; `source`: the device alone."""


@lru_cache(4096)
def device_of(source: str) -> str:
    """`Envelope.device` of this source; cached, because few devices send many events."""
    return source.rpartition("/")[2]


def hands_of(fact: Fact) -> Hands:
    """The hands that a person entered."""
    assert isinstance(fact.event, DealCorrected)
    return fact.event.hands


def place_at(times: Sequence[datetime], moment: datetime) -> int:
    """The place of an event that happened at this moment among events that happened at these times."""
    return max((n for n, time in enumerate(times, 1) if time <= moment), default=0)


class Note(Struct, frozen=True):
    """An irregularity, by its article."""

    code: str
    reason: Reason
    article: str


Course: TypeAlias = Literal["usual", "stays", "new_shoe", "next_round"]
"""The effect of an event on the course of the round.

`stays`: it continues as `round` (after a bell without a bet, bets opened again, hands). `new_shoe`: it ends, and rounds
are counted from 1. `next_round`: the event belongs to the next round, whose opening was not reported.
"""


class Effect(Struct, frozen=True):
    """The instructions of a game's step to the engine, besides the new position.

    `notes`: irregularities. `first`: it is the round's first card: the bets are closed, and a
    doubt about what came before it counts now. `suspend`: why the round waits for a person; with `again` it is
    published even if the round waits already. `void`: why it is void, by `article`. `course`: what the event does to
    the round. `evidence`: whether the round rests on this event. `next_doubt`: why the next round's first card is in
    doubt. `round`: the round with other bets, or closed by this event; after corrected hands it means that they are
    accepted, even if the round still waits. `beside`: irregularities outside any round. `lost`: bets of the round that
    begins may be missing.
    """

    notes: tuple[Note, ...] = ()
    first: bool = False
    suspend: Reason | None = None
    remedy: Reason | None = None
    again: bool = False
    void: Reason | None = None
    article: str = ""
    course: Course = "usual"
    evidence: bool = True
    next_doubt: Reason | None = None
    round: Round | None = None
    beside: tuple[Note, ...] = ()
    lost: bool = False


PLAIN: Final = Effect()
BESIDE: Final = Effect(evidence=False)


class Frame(Struct, Generic[P], frozen=True, gc=False):
    """A round with its facts. `day`, `shoe`, `count`, `base`, `doubt`, `refused`, `tells_bets`: of the table before it.

    `facts`: up to its end; `after`: since then. `lost`: events may be missing, so its bets are not known. `result`: as
    published; an open round that has one is disputed. `position`: at its end. `sealed`: not all facts are kept, so it
    is not played again.
    """

    round: Round
    day: str
    shoe: int
    count: int
    base: P
    doubt: Reason | None
    facts: tuple[Fact, ...] = ()
    after: tuple[Fact, ...] = ()
    lost: bool = False
    wagered: bool = False
    result: Result | None = None
    position: P | None = None
    sealed: bool = False
    refused: tuple[Wager, ...] = ()
    tells_bets: bool = False

    @property
    def bets_known(self) -> bool:
        """Whether bets are reported here and none is missing: then a bet that was not reported was not laid."""
        return (self.wagered or self.tells_bets) and not self.lost

    @property
    def next_laid(self) -> bool:
        """Whether a bet was laid since its end: it is of the next round, whose opening may be missing."""
        placed = (fact for fact in self.after if isinstance(fact.event, WagerPlaced))
        return any(fact.time > self.facts[-1].time for fact in placed)

    @property
    def counts(self) -> bool:
        """Whether it has a result that is not void."""
        return self.result is not None and self.result.void is None


class Table(Struct, Generic[P], frozen=True, gc=False):
    """The state of a table. `doubt`: why the next card, or another opening of the bets, is in doubt.

    `shoe`: which shoe of the day, below 0 where rounds are numbered without it. `refused`: refused chips that lie on
    the cloth while no round is open. `tells_bets`: bets are reported at this table.
    """

    table: str
    position: P
    day: str = ""
    shoe: int = -1
    count: int = 0
    open: Frame[P] | None = None
    last: Frame[P] | None = None
    doubt: Reason | None = None
    refused: tuple[Wager, ...] = ()
    tells_bets: bool = False

    @property
    def ledger(self) -> tuple[Wager, ...]:
        """The refused chips that lie on the cloth."""
        return self.refused if self.open is None else self.open.round.refused

    def with_ledger(self, chips: tuple[Wager, ...]) -> "Table[P]":
        """The same with these refused chips."""
        if self.open is None:
            return replace(self, refused=chips)
        return replace(self, open=replace(self.open, round=replace(self.open.round, refused=chips)))


Step: TypeAlias = tuple[Table[P], tuple[Verdict, ...]]

MAX_FACTS: Final = 400
"""The most facts kept of one round. A longer round goes on, but late events can no longer be put in their place."""


def open_frame(table: Table[P]) -> Frame[P]:
    """The open round."""
    assert table.open is not None
    return table.open


def with_fact(frame: Frame[P], round_: Round, fact: Fact) -> Frame[P]:
    """The round with one fact more, as `round_`."""
    if len(frame.facts) >= MAX_FACTS:
        return replace(frame, round=round_, sealed=True)
    return replace(frame, round=round_, facts=frame.facts + (fact,))  # noqa: RUF005 - copied once, for each event


def keep(table: Table[P], frame: Frame[P], round_: Round, fact: Fact) -> Table[P]:
    """The table with a fact of its open round."""
    return replace(table, open=with_fact(frame, round_, fact))


def keep_after(table: Table[P], fact: Fact) -> Table[P]:
    """A fact between two rounds is kept with the last one."""
    return table if table.last is None else replace(table, last=with_after(table.last, fact))


def with_after(last: Frame[P], fact: Fact) -> Frame[P]:
    """The last round with a fact that came after it."""
    if len(last.facts) + len(last.after) >= MAX_FACTS:
        return replace(last, sealed=True)
    return replace(last, after=(*last.after, fact))
