"""A roulette whose ball runs one way round and then the other, with limits for each bet and an order of payment.

The roulettes of Angola derive from it: it has their mechanics, not their articles.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

from msgspec.structs import replace

from protocols.contract.events import BallLanded, BallLaunched, WagerPlaced, WagerWithdrawn
from protocols.contract.facts import RouletteFacts, RoundFacts
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.bets import Board
from rules.engine.cloth import lying
from rules.engine.limits import Range
from rules.engine.rounds import Round, noted
from rules.engine.ruleset import Result, Settlement
from rules.engine.single_outcome import Note, Step
from rules.games.roulette import Articles, House, RouletteGame, SpinState
from rules.games.roulette_cloth import USUAL_RED


class LimitedHouse(House, Protocol):
    """The options of a house whose bets have limits."""

    @property
    def null_spin_alternates(self) -> bool: ...
    @property
    def minimum(self) -> int: ...
    def maxima(self) -> dict[str, int]:
        """The largest bet of each family; none where no limits are watched."""
        ...


class AlternatingState(SpinState, frozen=True):
    """`turning`: which way round the ball of this spin runs; `turned`, `before`: the balls of the last spin and the one
    before.

    `idle`: by seat that has a colour, how many spins it did not bet in.
    """

    turning: str = ""
    turned: str = ""
    before: str = ""
    idle: tuple[tuple[int, int], ...] = ()


class AlternatingRoulette(RouletteGame[AlternatingState]):
    """The state machine; the families of `board` are in the order of payment."""

    State: ClassVar[type[AlternatingState]] = AlternatingState
    Facts: ClassVar[type[RoundFacts]] = RouletteFacts
    lasting: ClassVar[tuple[str, ...]] = ("last_pocket", "unpaid", "turned", "before", "idle")
    unknown: ClassVar[dict[str, str]] = {"last_pocket": "", "turned": "", "before": ""}

    def __init__(self, options: LimitedHouse, edition: str, board: Board, at: Articles, limits_law: str) -> None:
        """`limits_law` is the article of the limits."""
        self._limited = options
        self._limits_law = limits_law
        self._ranks = {bet.id.partition(":")[0]: rank for rank, bet in enumerate(board.bets)}
        super().__init__(options, edition, board, at, red=USUAL_RED, launch_closes=False)

    # ---- the ball's direction

    def at_launch(self, table: AlternatingState, seen: Envelope, launch: BallLaunched) -> AlternatingState:
        """Note a launch before all was paid, or in the direction of the last spin."""
        table = super().at_launch(table, seen, launch)
        if table.turned == launch.direction:
            table = self.note(table, seen, Note("ball_not_alternated", say("same_direction"), self._at.direction))
        return replace(table, turning=launch.direction)

    def decide(self, table: AlternatingState, seen: Envelope) -> Step[AlternatingState]:
        """Decide the spin; one that counts becomes the last spin for the direction, too."""
        turning, turned = table.turning, table.turned
        table, verdicts = super().decide(table, seen)
        if table.phase == "resolved":
            table = replace(table, turned=turning, before=turned)
        return table, verdicts

    def after_void(self, table: AlternatingState, round_: Round, **fields: Any) -> AlternatingState:
        """The table after a null spin, which counts in the alternation by an option of the house."""
        if table.turning and self._limited.null_spin_alternates:
            fields["turned"] = table.turning
        return super().after_void(table, round_, **fields)

    def take_back(self, table: AlternatingState, seen: Envelope) -> Step[AlternatingState]:
        """Handle a spin that is declared null after the ball came to rest."""
        before = table.turned if self._limited.null_spin_alternates else table.before
        table, verdicts = super().take_back(table, seen)
        return (table if table.last is not None else replace(table, turned=before)), verdicts

    def at_loss(self, table: AlternatingState) -> AlternatingState:
        """Drop the directions: spins may be among the lost events."""
        return replace(super().at_loss(table), turning="", turned="", before="", idle=())

    # ---- bets

    def bell(self, table: AlternatingState, seen: Envelope) -> Step[AlternatingState]:
        """Close the bets; a call before the ball runs is irregular."""
        early = table.phase == "open" and not table.launched
        table, verdicts = super().bell(table, seen)
        if early:
            table = self.note(table, seen, Note("call_before_launch", say("call_before_launch"), self._at.bell))
        return table, verdicts

    def stray_bell(self, table: AlternatingState, seen: Envelope) -> Step[AlternatingState]:
        """Handle a call after a null spin in the same way."""
        shut = self.shut(table)
        table, verdicts = super().stray_bell(table, seen)
        if table.called and not shut:
            verdicts += noted("call_before_launch", say("call_before_launch"), self._at.bell, seen)
        return table, verdicts

    def article_limits(self) -> Mapping[str, Range]:
        """The limits of each family, where they are watched."""
        least, law = self._limited.minimum, self._limits_law
        return {family: Range(least, most, law=law) for family, most in self._limited.maxima().items()}

    # ---- the payment

    def result(self, round_: Round, outcome: BallLanded) -> Result:
        """The result, with losing bets first, then the prizes in the printed order, those of one player together."""
        result = super().result(round_, outcome)
        return replace(result, settlements=self._in_order(self.settled(result))) if round_.wagers else result

    def settled(self, result: Result) -> tuple[Settlement, ...]:
        """The settlements in the order of payment."""
        return result.settlements

    def _in_order(self, settlements: Iterable[Settlement]) -> tuple[Settlement, ...]:
        lost, won = [], []
        first: dict[int, int] = {}
        for one in settlements:
            if not one.returned:
                lost.append(one)
                continue
            rank = self._ranks[one.bet.partition(":")[0]]
            first[one.seat] = min(first.get(one.seat, rank), rank)
            won.append((rank, one))
        order = {seat: (rank, place) for place, (seat, rank) in enumerate(first.items())}
        won.sort(key=lambda ranked: (order[ranked[1].seat], ranked[0]))
        return (*lost, *(one for _, one in won))


def left_of(round_: Round, bet: WagerPlaced | WagerWithdrawn) -> int:
    """The amount of the bet after this change; 0 where all, or more than lies there, is taken back."""
    held = lying(round_, bet.seat, bet.bet)
    if isinstance(bet, WagerPlaced):
        return held + bet.amount
    return max(held - bet.amount, 0) if bet.amount else 0
