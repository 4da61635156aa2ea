"""Blackjack with limits of stakes, bets on other seats, a jackpot, and a watch over its shoe or shuffler.

Called by the rulesets of texts that have these. The values of hands are in `blackjack.py`; the life of a round is in
`blackjack_round.py`.
"""

from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    CardDrawn,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    DealCorrected,
    Event,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.cloth import give_back, left_with, lying
from rules.engine.facts import PLAIN, Effect, Fact, Frame, Hands, Note, Table
from rules.engine.limits import from_terminal
from rules.engine.rounds import Round, noted
from rules.engine.ruleset import Verdict, View, Wager
from rules.games import shuffler_watch
from rules.games.blackjack import UNSURE, Compared, House, Play, is_special
from rules.games.blackjack_bettors import follow
from rules.games.blackjack_decisions import NO_NOTES, Notes, Position, Step, Text, noting
from rules.games.blackjack_jackpot import Combination, awards, first_cards, hit
from rules.games.blackjack_round import Beside, BlackjackRounds, BlackjackState, bad_bet
from rules.games.blackjack_stakes import is_main
from rules.games.cards import PIPS
from rules.games.shuffler_watch import Watched

DECK: Final = 52
FROM_END: Final = 50
"""The place of the warn card: this many cards from the end of the shoe, or with one player in its middle."""


class Stakes(Struct, frozen=True):
    """The limits of a house besides the hands; 0 where there is none. `combinations`: those of the jackpot."""

    minimum: int = 0
    maximum: int = 0
    warn_card_within: int = 0
    jackpot_bet: int = 0
    combinations: tuple[Combination, ...] = ()


def _players(play: Play, round_: Round) -> int:
    """The number of bettors; the number of hands where no bets on hands are reported."""
    bets = {one.bet[5:] or str(one.seat) for one in round_.wagers if is_main(one.bet)}
    return len(bets) or len(play.hands)


class WatchedState(BlackjackState, frozen=True):
    """The state of a table. `watch`: the state of its shuffler. No round is replayed for a change of it."""

    watch: Watched = Watched()


class WatchedBlackjack(BlackjackRounds):
    """A ruleset sets `terms` and has an article for each code of this file and of the shuffler's watch."""

    State: ClassVar[type[WatchedState]] = WatchedState

    def __init__(self, text: Text, house: House, stakes: Stakes) -> None:
        """Hold no state of a table."""
        super().__init__(text, house)
        self.stakes = stakes
        self._shuffler = text.device == "continuous"
        others = (f"main:{seat}" for seat in range(1, house.seats + 1))
        self.offered = frozenset(("main", *others, *(("jackpot",) if stakes.combinations else ())))

    # ---- stakes

    def bet_refused(self, p: Position, round_: Round, one: WagerPlaced | WagerWithdrawn) -> Note | None:
        """Refuse a bet of a seat on itself as another player. Bets of terminals are checked at once, chips at the
        bell.
        """
        if refused := super().bet_refused(p, round_, one):
            return refused
        if one.bet == f"main:{one.seat}":
            return bad_bet("bet_not_offered", one, self.law_of["others"])
        if not from_terminal(one):
            return None
        place, held = (one.seat, one.bet), lying(round_, one.seat, one.bet)
        left = held + one.amount if isinstance(one, WagerPlaced) else held - (one.amount or held)
        others = tuple(bet for bet in round_.wagers if (bet.seat, bet.bet) != place)
        laid = (*others, *((Wager(*place, left),) if left > 0 else ()))
        _, before = self.checked(round_)
        _, after = self.checked(replace(round_, wagers=laid))
        return next((note for note in after if note not in before and note.code != "jackpot_without_main"), None)

    def _within_maximum(self, round_: Round) -> tuple[Round, Notes]:
        """Return the excess over a seat's maximum: from other players' bets first, beginning with the latest."""
        notes, kept, whole, free = NO_NOTES, [], list[Wager](), dict[int, int]()
        for one in sorted(round_.wagers, key=lambda one: one.bet != "main"):
            left = free.get(one.seat, self.stakes.maximum)
            if not is_main(one.bet) or not self.stakes.maximum:
                kept.append(one)
                continue
            if one.amount > left:
                text = say("chip_goes_back", seat=one.seat, bet=one.bet, amount=one.amount - left)
                notes += (Note("over_maximum", text, self.law_of["others"]),)
            taken = min(one.amount, left)
            free[one.seat] = left - taken
            if taken:
                kept.append(replace(one, amount=taken))
            else:
                whole.append(one)
        if not notes:
            return round_, notes
        order = [(one.seat, one.bet) for one in round_.wagers]
        kept.sort(key=lambda one: order.index((one.seat, one.bet)))
        return left_with(give_back(round_, *whole), tuple(kept)), notes

    def checked(self, round_: Round) -> tuple[Round, Notes]:
        """At the bell: the limits; one chip of a player on the jackpot, beside a bet on his own hand."""
        round_, notes = self._within_maximum(round_)
        alone: list[Wager] = []
        mains = {one.seat for one in round_.wagers if one.bet == "main"}
        told = any(is_main(one.bet) for one in round_.wagers)
        for one in round_.wagers:
            if is_main(one.bet) and self.stakes.minimum and one.amount % self.stakes.minimum:
                text = say("stake_not_a_multiple", seat=one.seat, amount=one.amount, minimum=self.stakes.minimum)
                notes += (Note("not_a_multiple", text, self.law_of["not_a_multiple"]),)
            if one.bet == "jackpot":
                without = told and one.seat not in mains
                code = "jackpot_without_main" if without else "wrong_jackpot_bet"
                if without or one.amount != self.stakes.jackpot_bet:
                    text = say("chip_goes_back", seat=one.seat, bet=one.bet, amount=one.amount)
                    notes += (Note(code, text, self.law_of[code]),)
                    alone.append(one)
        return (give_back(round_, *alone) if alone else round_), notes

    def after_bell(self, p: Position, play: Play, round_: Round, one: WagerPlaced | WagerWithdrawn) -> Step | None:
        """Apply chips that follow a decision, and the dealer's collection of those on the jackpot."""
        if isinstance(one, WagerPlaced):
            return follow(self._decisions, p, play, round_, one)
        collected = any((held.seat, held.bet) == (one.seat, "jackpot") for held in round_.wagers)
        return (p, PLAIN) if one.bet == "jackpot" and collected else None

    # ---- the jackpot

    def rests_on_unknown(self, play: Play, round_: Round) -> bool:
        """Whether the first cards of a seat that split are unknown."""
        if all(len(one.ranks) == 2 for one in self.stakes.combinations):
            return False
        seats = self._bettors(round_)
        unknown = (hand.seat for hand in play.hands if hand.number > 2 and not hand.split_from)
        return any(seats is None or seat in seats for seat in unknown)

    def _bettors(self, round_: Round) -> set[int] | None:
        """The seats with a chip on the jackpot; None where neither such chips nor bets on hands are reported."""
        if not any(is_main(one.bet) or one.bet == "jackpot" for one in round_.wagers):
            return None
        return {one.seat for one in round_.wagers if one.bet == "jackpot"}

    def beside(self, p: Position, play: Play, round_: Round, compared: list[Compared]) -> Beside:
        """The combinations of the jackpot, independent of the hand's result."""
        offered = self.stakes.combinations
        if not offered:
            return Beside()
        seats = self._bettors(round_)
        most = max(len(one.ranks) for one in offered)
        held = []
        for hand in play.hands:
            if hand.number != 1 or (seats is not None and hand.seat not in seats):
                continue
            if found := hit(first_cards(play.of(hand.seat), most), offered):
                held.append((0 if seats is None else hand.seat, found))
        if not held:
            return Beside()
        if seats is None:
            held = list(dict.fromkeys(held))
        article = self.law_of["jackpot"]
        return Beside(awards=awards(held, offered, self.cite(article)), law=(article,))

    # ---- the shoe and the shuffler

    def apply(self, state: Table[Position], seen: Envelope) -> tuple[Table[Position], tuple[Verdict, ...]]:
        """Apply one event to the rounds and to the watch of the shuffler."""
        if self._claims_too_late(state, seen.event):
            return state, noted("claim_too_late", say("claim_too_late"), self.cite(self.law_of["claim_too_late"]), seen)
        after, verdicts = super().apply(state, seen)
        if not self._shuffler or type(seen.event) not in shuffler_watch.HEARD:
            return after, verdicts
        assert isinstance(after, WatchedState)
        watched, breaches = shuffler_watch.watch(after.watch, seen.event)
        for code, reason in breaches:
            verdicts += noted(code, reason, self.cite(self.law_of[code]), seen)
        return replace(after, watch=watched), verdicts

    def _claims_too_late(self, state: Table[Position], event: Event) -> bool:
        """Whether a correction names the last round after the next was opened and the cards went back."""
        last = state.last
        if state.open is None or last is None or not isinstance(event, DealCorrected):
            return False
        return state.position.returned and event.round == last.round.id

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> Step:
        """One event. Cards that left the shoe are counted, so that the place of the warn card is known."""
        match fact.event:
            case CardDrawn() | CardUnreadable() if position.drawn != UNSURE:
                position = replace(position, drawn=position.drawn + 1)
            case CardsReturned() if self._shuffler and (frame is None or not frame.round.closed):
                position = replace(position, returned=True)
            case ShoeStarted():
                position = replace(position, drawn=0, alone=True)
            case BetsClosed() if frame is not None and not frame.round.closed:
                position, effect = super().step(position, fact, frame)
                if position.play is not None and position.play.start == "first":
                    position = replace(position, alone=_players(position.play, effect.round or frame.round) <= 1)
                return position, effect
            case CutCardDrawn():
                left = DECK * self.text.decks - position.drawn
                position, effect = super().step(position, fact, frame)
                return position, self._warned(position, effect, left)
        return super().step(position, fact, frame)

    def _warned(self, p: Position, effect: Effect, left: int) -> Effect:
        """Check the place of the warn card, which came with this many cards left."""
        within = self.stakes.warn_card_within
        if not within or p.drawn == UNSURE or effect.notes:
            return effect
        alone = p.alone and not (p.shoe == "fresh" and len(p.seats) > 1)
        places = (FROM_END, DECK * self.text.decks // 2) if alone else (FROM_END,)
        if any(abs(left - place) <= within for place in places):
            return effect
        note = Note("warn_card_misplaced", say("warn_card_misplaced", left=left), self.law_of["warn_card_misplaced"])
        return replace(effect, beside=(*effect.beside, note))

    def missed(self, position: Position, event: Event) -> Position:
        """The cards are no longer counted."""
        return replace(super().missed(position, event), drawn=UNSURE)

    def lay(
        self,
        position: Position,
        hands: Hands,
        frame: Frame[Position],
        before: Frame[Position] | None,
        *,
        named: bool,
        reopened: bool,
    ) -> Step:
        """Refuse the correction of an ended round whose cards went back into the shuffler."""
        if reopened and position.returned:
            return position, noting("claim_too_late", say("claim_too_late"), self.law_of["claim_too_late"])
        return super().lay(position, hands, frame, before, named=named, reopened=reopened)

    # ---- public views

    def view(self, state: Table[Position]) -> View:
        """`pay_now`: prizes that are paid at once, by hand: a blackjack that the bank cannot equal, a special prize."""
        view, play = super().view(state), state.position.play
        if view.phase != "dealing" or play is None:
            return view
        now: dict[str, str] = {}
        for hand in play.hands:
            if hand.ended == "blackjack" and play.bank and PIPS[play.bank[0]] not in (1, 10):
                now[hand.name] = "3/2"
            elif is_special(hand.cards):
                now[hand.name] = "3"
        detail: dict[str, Any] = {**view.detail, "pay_now": now}
        return replace(view, detail=detail) if now else view
