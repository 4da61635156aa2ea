"""How a round of stud poker ends: what leaves it in doubt, what makes it void, and what is noted of it.

The base of `rules/games/stud_poker_round.py`, which has the events. A doubtful round waits for a person; only what is
proven is resolved.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import EventsMissed
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.cloth import give_back
from rules.engine.limits import Limits
from rules.engine.rounds import Round, Terms, irregular, limits_of, noted, suspend, voided, without_bets, witness
from rules.engine.ruleset import Corrected, Resolved, Result, Suspended, Verdict, Void, Voided, Wager
from rules.games.stud_poker import Deal, Hands, Laid, Rulings, contradiction, stakes, visible

Step: TypeAlias = tuple["StudPokerState", tuple[Verdict, ...]]

TELL: Final = say("do_tell_hands")
MISSING: Final = say("round_events")
MANY: Final = 1000
"""Events missing, where their number is not told."""


class StudPokerState(Struct, frozen=True):
    """Where a table stands.

    `seats` are open. `last` is the resolved round until the next begins, also beside `deal` while that is the same
    round reopened, and its result may stand. `carried`: jackpot bets of a void round; `uncarried`: there may be others.
    `doubt`: events of the next round's betting may be missing. `heard`: of the last deal cards or packets were told.
    `loose`: cards and packets since the last deal, up to two, where one is burnt before the deal: one alone is burnt.
    `supervised`: the supervisor's key is turned on. `idle`: rounds in a row that an open seat has not bet in.
    `refused`: refused chips that lie on the cloth while no round is open.
    """

    table: str
    day: str = ""
    count: int = 0
    seats: tuple[int, ...] = ()
    deal: Deal | None = None
    last: Deal | None = None
    carried: tuple[Wager, ...] = ()
    uncarried: bool = False
    doubt: bool = False
    heard: bool = False
    loose: int = 0
    supervised: bool = False
    idle: dict[int, int] = {}
    refused: tuple[Wager, ...] = ()

    @property
    def ledger(self) -> tuple[Wager, ...]:
        """The refused chips that lie on the cloth."""
        return self.refused if self.deal is None else self.deal.round.refused

    def with_ledger(self, chips: tuple[Wager, ...]) -> "StudPokerState":
        """The same with these refused chips; a round that is reopened has them too."""
        if self.deal is not None:
            return replace(self, deal=replace(self.deal, round=replace(self.deal.round, refused=chips)))
        if self.last is not None:
            last = replace(self.last, round=replace(self.last.round, refused=chips))
            return replace(self, last=last, refused=chips)
        return replace(self, refused=chips)


class StudPokerEnds(ABC):
    """The ends of rounds by one text. It holds no state of a table."""

    rulings: ClassVar[Rulings]

    terms: Terms
    dealing: str
    """What the cards are dealt from: shoe, shuffler or either."""
    jackpot: bool
    """Whether a progressive jackpot is offered."""
    offered: frozenset[str]
    burns: bool = False
    """Whether the shoe or shuffler reports the card that is burnt before the deal."""
    bet_limits: Mapping[str, tuple[int, int]] = {}
    """The least and the most that a bet may be by the text; 0: no limit."""

    @cached_property
    def limits(self) -> Limits:
        """What the table takes of bets."""
        return limits_of(self.terms, self.offered, self.best, fixed=("raise",))

    @abstractmethod
    def best(self) -> Mapping[str, Fraction]:
        """The largest prize of each bet, x to 1."""

    @abstractmethod
    def missing(self, deal: Deal, hands: Hands) -> tuple[str, ...]:
        """The hands that must be told before the round can end."""

    @abstractmethod
    def resolve(self, deal: Deal, hands: Hands) -> Result:
        """The result of a round whose hands are known."""

    # ---- doubt

    def _missed(self, state: StudPokerState, seen: Envelope) -> Step:
        """Before the bell no card can be missing, only bets."""
        deal = state.deal
        if deal is None:
            return (state if state.doubt else replace(state, doubt=True)), ()
        deal = replace(deal, unsure=True)
        if not deal.round.closed:
            return self._seen(state, replace(deal, lost=True), seen), ()
        deal = replace(deal, unproven=True)  # a late ante, or one that is proven to be missing only now
        if deal.decided:
            deal = replace(
                deal, missed=deal.missed + (seen.event.count if isinstance(seen.event, EventsMissed) else MANY)
            )
        return self._hold(state, deal, seen, MISSING)

    def _hold(
        self,
        state: StudPokerState,
        deal: Deal,
        seen: Envelope,
        reason: Reason,
        remedy: Reason = TELL,
        *,
        blind: bool = True,
    ) -> Step:
        """The round waits until the hands are told."""
        return self._suspend(state, replace(deal, held=True, blind=deal.blind or blind), seen, reason, remedy)

    def _suspend(self, state: StudPokerState, deal: Deal, seen: Envelope, reason: Reason, remedy: Reason) -> Step:
        round_, verdicts = suspend(deal.round, seen, reason, remedy)
        return self._with(state, deal, round_), verdicts

    def _paid(self, state: StudPokerState, seen: Envelope) -> Step:
        deal, last, late = state.deal, state.last, seen.event.overtaken
        if deal is None:
            state = replace(state, loose=0) if state.loose > 1 else state
            return (state if last is None or last.paid or late else replace(state, last=replace(last, paid=True))), ()
        if not deal.round.closed:
            return state, ()  # the last round may be paid while bets are open
        if late:
            return self._seen(state, deal, seen), ()  # before what is in doubt, or even before this round
        if deal.reopened and last is not None:
            # Paid while in doubt: the croupier, who sees the hands, lets the first result stand.
            last = replace(last, round=replace(deal.round, suspended=None), paid=True)
            result = self.resolve(replace(last, round=witness(last.round, seen)), last.known())
            return replace(state, deal=None, last=last, refused=deal.round.refused), (
                Corrected(replace(result, supersedes=result.round)),
            )
        if not deal.begun:
            return self._seen(state, deal, seen), ()
        undecided = len(deal.raised) + len(deal.folded) < len(deal.players)
        return self._suspend(state, deal, seen, say("paid_decisions") if undecided else say("paid_hands"), TELL)

    def _declared_void(self, state: StudPokerState, seen: Envelope, reason: Reason) -> Step:
        deal = state.deal
        if deal is None:
            if state.last is None:
                return self._noted(state, "void_without_round", say("void_no_correction"), seen)
            deal = replace(state.last, reopened=True)
        return self._void(replace(state, loose=0) if state.loose else state, deal, seen, reason)

    # ---- the ends of a round

    def _void(self, state: StudPokerState, deal: Deal, seen: Envelope, reason: Reason) -> Step:
        """Antes and raises come back; the jackpot bets come back too, or are those of the next round."""
        keeps = self.rulings.void_keeps_jackpot
        jackpots = tuple(one for one in deal.round.wagers if keeps and one.bet == "jackpot")
        # Raised and folded, and no chips were told, or raised too early: nobody knows what comes back beside the ante.
        unsure = deal.unsure or bool(deal.swept) or any(not deal.chips.get(seat) for seat in deal.doubted)
        returned = () if unsure else tuple(one for one in stakes(deal) if not (keeps and one.bet == "jackpot"))
        known = without_bets(deal.round) if unsure else deal.round
        round_ = replace(witness(known, seen), wagers=returned, suspended=None)
        void = Void(reason, "returned", ("carried" if keeps else "returned") if self.jackpot else "")
        law = self._law("shuffler_failed" if reason.code == "shuffler_failed" else "void")
        result = voided(round_, self.terms, void, (law,), visible(deal))
        state = StudPokerState(
            state.table,
            state.day,
            state.count,
            state.seats,
            carried=jackpots,
            uncarried=keeps and (deal.uncarried or deal.unsure),
            doubt=state.doubt,
            heard=deal.out or (state.heard and not deal.begun),
            loose=state.loose,
            supervised=state.supervised,
            refused=deal.round.refused,
        )
        return state, (Corrected(replace(result, supersedes=result.round)) if deal.reopened else Voided(result),)

    def _go_on(self, state: StudPokerState, deal: Deal) -> Step:
        """The end, where all have decided and the hands that are opened are known."""
        if deal.held or deal.doubted or deal.asked or not deal.players:
            return replace(state, deal=deal), ()
        if deal.round.suspended:
            deal = replace(deal, round=replace(deal.round, suspended=None))
        if deal.dealing or len(deal.raised) + len(deal.folded) < len(deal.players):
            return replace(state, deal=deal), ()
        hands = deal.known()
        if self.missing(deal, hands):
            return replace(state, deal=deal), ()
        if wrong := contradiction(deal):
            deal = replace(deal, held=True, blind=True, round=replace(deal.round, suspended=wrong))
            return replace(state, deal=deal), (Suspended(deal.round.id, wrong, TELL),)
        result = self.resolve(deal, hands)
        last = replace(deal, reopened=False) if deal.reopened else deal
        state = StudPokerState(
            state.table,
            state.day,
            state.count,
            state.seats,
            last=last,
            doubt=state.doubt,
            heard=deal.out,
            loose=state.loose,
            supervised=state.supervised,
            refused=deal.round.refused,
        )
        return state, (Corrected(replace(result, supersedes=result.round)) if deal.reopened else Resolved(result),)

    # ---- notes

    def _with(self, state: StudPokerState, deal: Deal, round_: Round) -> StudPokerState:
        return replace(state, deal=replace(deal, round=round_))

    def _seen(self, state: StudPokerState, deal: Deal, seen: Envelope) -> StudPokerState:
        """The round rests on this event too."""
        return replace(state, deal=replace(deal, round=witness(deal.round, seen)))

    def _noted(self, state: StudPokerState, code: str, reason: Reason, seen: Envelope) -> Step:
        """An irregularity, of the round if one is open."""
        if state.deal is not None:
            return self._with(state, state.deal, self._irregular(state.deal.round, code, reason, seen)), ()
        return state, noted(code, reason, self._law(code), seen)

    def _law(self, rule: str) -> str:
        return f"{self.rulings.cite} art. {self.rulings.articles[rule]}"

    def _irregular(self, round_: Round, code: str, reason: Reason, seen: Envelope, rule: str = "") -> Round:
        """`rule`: the key of its article, where that is not the code."""
        return irregular(round_, code, reason, self._law(rule or code), seen)

    def _without_ante(self, round_: Round, players: tuple[int, ...], seen: Envelope) -> Round:
        """The bets on the jackpot of seats without an ante go back."""
        for one in round_.wagers:
            if one.seat not in players:
                text = say("without_ante_back", seat=one.seat, bet=one.bet)
                round_ = self._irregular(round_, "jackpot_without_ante", text, seen)
        return give_back(round_, *(one for one in round_.wagers if one.seat not in players))

    def _named(self, deal: Deal, said: Laid, seen: Envelope) -> Deal:
        """The seats that a person named without a bet; cards dealt to one are an irregularity."""
        round_ = witness(deal.round, seen)
        none = {int(hand[-1]) for hand in said.dead}
        for hand in said.dead:
            seat = int(hand[-1])
            if hand not in deal.told and (seat in deal.asked or seat in deal.dead):
                continue
            text = say("hand_without_bet", hand=hand)
            round_ = self._irregular(round_, "hand_without_bet", text, seen)
        if not deal.unproven:
            return replace(deal, round=round_)
        asked = {seat: word for seat, word in deal.asked.items() if seat not in none}
        players = tuple(seat for seat in deal.players if seat not in said.left)
        round_ = give_back(round_, *(one for one in round_.wagers if one.seat in said.left))
        round_ = self._without_ante(round_, (*players, *asked, *said.asked), seen)
        told = {hand: cards for hand, cards in deal.told.items() if hand not in said.dead}
        dead = tuple(sorted({*deal.dead, *none, *said.left}))
        anted = tuple(seat for seat in deal.anted if seat not in said.left)
        return replace(deal, round=round_, players=players, anted=anted, asked=asked, dead=dead, told=told)

    def _swept(self, deal: Deal, seen: Envelope) -> Deal:
        """At the first card: what was told of hands before it is no word of this round. Chips lie where they lie."""
        round_ = deal.round
        for seat in sorted({*deal.raised, *deal.folded, *deal.doubted}):
            text = say("decided_dealing", seat=seat)
            round_ = self._irregular(round_, "decision_before_deal", text, seen)
        if not deal.held:
            round_ = replace(round_, suspended=None)
        known = {seat for seat in deal.players if deal.chips.get(seat, 0) >= (2 * deal.amount(seat, "ante") or 1)}
        swept = tuple(sorted({*deal.raised, *deal.doubted} - known))
        return replace(deal, round=round_, told={}, shown="", raised=(), folded=(), doubted=(), exposed=(), swept=swept)
