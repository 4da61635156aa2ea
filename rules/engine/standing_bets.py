"""Bets that a void round leaves on the cloth: the next round takes them over.

`rules/games/shaken_dice.py` and `rules/games/roulette.py` are based on it. After a loss it is unknown whether these
bets still lie there: they are doubtful and are returned when that round ends. Bets that are laid beside them later are
known.
"""

from functools import cached_property
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from protocols.contract.events import WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import Reason
from protocols.contract.topics import Envelope
from rules.engine.cloth import lying, not_taken, refuse, wager
from rules.engine.limits import UNLIMITED, Limits, Refusal
from rules.engine.rounds import MAX_EVIDENCE, MAX_IRREGULARITIES, Round, irregular, witness
from rules.engine.ruleset import Wager
from rules.engine.single_outcome import MISSING, Doubt, Note, SingleOutcome, Step, Table, bet_of, there


class ClothTable(Table, frozen=True):
    """`carried` are the bets of a void round until the next one takes them over, suspended where they are in doubt.

    `laid`: the known bets beside doubtful ones, on the cloth or in the round: those that were laid since the loss.
    """

    carried: Round | None = None
    laid: Round | None = None


C = TypeVar("C", bound=ClothTable)
EMPTY: Final = Round("")


class StandingBets(SingleOutcome[C]):
    """The state machine of games whose void rounds leave the bets on the cloth."""

    def __init__(self, *args: Any, moved_unseen: Doubt) -> None:
        super().__init__(*args)
        self._moved_unseen = moved_unseen

    def cloth(self, table: C, seen: Envelope) -> tuple[Round, dict[str, Any]]:
        """The standing bets; while they are doubtful, later bets are kept apart from them."""
        cloth, laid = table.carried or EMPTY, table.laid
        if table.unheard:
            return replace(together(cloth, laid), suspended=MISSING), {}
        if not cloth.suspended:
            return together(cloth, laid), {}
        return cloth, {"laid": laid}

    def remedy(self, round_: Round) -> Reason:
        """What a person can do about bets in doubt, or about a beginning that may be lost."""
        doubts = self._moved_unseen, self._rulings.missing
        return next(doubt.remedy for doubt in doubts if doubt.reason == round_.suspended)

    def after_void(self, table: C, round_: Round, **fields: Any) -> C:
        """The table after a void round, whose bets stand. Doubtful bets stay doubtful until they are returned."""
        doubtful = round_.suspended in (MISSING, self._moved_unseen.reason)
        doubt = self._moved_unseen.reason if doubtful and round_.wagers else None
        cloth, laid = Round("", wagers=round_.wagers, suspended=doubt), table.laid
        if not doubt:
            cloth, laid = together(cloth, laid), None
        return self.fresh(table, carried=cloth, laid=laid, **fields)

    def lose(self, table: C, seen: Envelope) -> Step[C]:
        """A loss puts all that lies on the cloth in doubt."""
        if table.round is None and table.carried is not None:
            cloth = together(table.carried, table.laid)
            if cloth.wagers:
                cloth = replace(witness(cloth, seen), suspended=self._moved_unseen.reason)
            table = replace(table, carried=replace(cloth, closed=False), laid=None)
        elif table.round is not None and table.round.suspended:
            round_ = witness(together(table.round, table.laid), seen)
            reason = MISSING if round_.suspended != self._moved_unseen.reason else round_.suspended
            table = replace(table, round=replace(round_, suspended=reason), laid=None)
        return super().lose(table, seen)

    @cached_property
    def bets_unknown(self) -> tuple[Reason, ...]:
        """Why the bets of a round may be unknown: a lost beginning, and bets moved unseen."""
        return (*super().bets_unknown, self._moved_unseen.reason)

    # ---- wagers

    def held(self, table: C, seat: int, bet: str) -> int:
        """The bets of the round or of the cloth, and those laid since a loss."""
        lie = table.round or table.carried, table.laid
        return sum(lying(one, seat, bet) for one in lie if one is not None)

    def beside(self, table: C) -> bool:
        """Whether bets are laid beside doubtful ones: until the bell."""
        round_ = table.round
        return round_ is not None and round_.suspended == self._moved_unseen.reason and not round_.closed

    def shut(self, table: C) -> bool:
        """Whether changes of the standing bets are over."""
        return table.carried is not None and table.carried.closed

    def bet(self, table: C, seen: Envelope) -> Step[C]:
        if not self.beside(table):
            return super().bet(table, seen)
        round_, laid = self._wager_beside(table, there(table.round), seen)
        return replace(table, round=round_, laid=laid), ()

    def stray_bet(self, table: C, seen: Envelope) -> Step[C]:
        """Apply a bet between a void round and the next one, within what the text allows."""
        carried, laid = table.carried, table.laid
        if carried is None or self.shut(table):
            return super().stray_bet(table, seen)
        cloth = replace(carried, refused=table.refused)
        if cloth.suspended:
            cloth, laid = self._wager_beside(table, cloth, seen)
            if not cloth.wagers:  # nothing is in doubt any more
                cloth, laid = replace(together(cloth, laid), suspended=None), None
        elif (note := self._refused(table, cloth, None, seen)) is not None:
            cloth = refuse(cloth, bet_of(seen), note.code, note.reason, note.law, seen)
        else:
            cloth = wager(cloth, bet_of(seen), self._offered, self._rulings.bets_law, seen, self.limits)
        return replace(table, carried=replace(cloth, refused=()), laid=laid, refused=cloth.refused), ()

    def _refused(self, table: C, cloth: Round, laid: Round | None, seen: Envelope) -> Note | Refusal | None:
        event = bet_of(seen)
        return self.refused(table, together(cloth, laid), event) if event.bet in self._offered else None

    def _wager_beside(self, table: C, doubtful: Round, seen: Envelope) -> tuple[Round, Round]:
        laid = table.laid or EMPTY
        if (note := self._refused(table, doubtful, laid, seen)) is not None:
            return refuse(doubtful, bet_of(seen), note.code, note.reason, note.law, seen), laid
        return wager_beside(doubtful, laid, bet_of(seen), self._offered, self._rulings.bets_law, seen, self.limits)


def wager_beside(
    doubtful: Round,
    laid: Round,
    event: WagerPlaced | WagerWithdrawn,
    offered: frozenset[str],
    law: str,
    seen: Envelope,
    limits: Limits = UNLIMITED,
) -> tuple[Round, Round]:
    """Apply a wager after a loss: `doubtful` are the bets from before the loss, `laid` those since.

    Chips look alike: withdrawn chips are taken from the known bets first. A refusal is noted on `doubtful`, where its
    chips lie.
    """
    seat, bet, known = event.seat, event.bet, lying(laid, event.seat, event.bet)
    match event:
        case WagerPlaced():
            laid = wager(laid, event, offered, law, seen, limits, doubtful.wagers)
            if laid.irregularities:
                notes = (*doubtful.irregularities, *laid.irregularities)[:MAX_IRREGULARITIES]
                refused = not_taken(doubtful.refused, event) if laid.refused else doubtful.refused
                doubtful = witness(replace(doubtful, irregularities=notes, refused=refused), seen)
                return doubtful, replace(laid, irregularities=(), refused=())
        case WagerWithdrawn(amount=amount):
            whole = known + lying(doubtful, seat, bet)
            if not known or amount > whole:
                return wager(doubtful, event, offered, law, seen, limits, laid.wagers), laid
            if why := limits.refusal((*doubtful.wagers, *laid.wagers), event, law):
                return irregular(doubtful, why.code, why.reason, why.law, seen), laid
            taken = amount or whole
            laid = wager(laid, WagerWithdrawn(seat, bet, min(taken, known)), offered, law, seen)
            if taken > known:
                doubtful = wager(doubtful, replace(event, amount=taken - known), offered, law, seen)
    return doubtful, laid


def together(doubtful: Round, laid: Round | None) -> Round:
    """Join the bets: those laid since a loss are treated like the earlier ones."""
    if laid is None:
        return doubtful
    wagers: dict[tuple[int, str], Wager] = {(one.seat, one.bet): one for one in doubtful.wagers}
    for one in laid.wagers:
        place = one.seat, one.bet
        if (first := wagers.get(place)) is not None:
            least = min(first.minimum, one.minimum)
            one = replace(first, amount=first.amount + one.amount, minimum=least)  # noqa: PLW2901
        wagers[place] = one
    evidence = tuple(dict.fromkeys((*doubtful.evidence, *laid.evidence)))[:MAX_EVIDENCE]
    notes = (*doubtful.irregularities, *laid.irregularities)[:MAX_IRREGULARITIES]
    return replace(doubtful, wagers=tuple(wagers.values()), evidence=evidence, irregularities=notes)
