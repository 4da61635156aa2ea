"""The life of a round of stud poker against the dealer: betting, deal, decisions, what a person says.

The base of `rules/games/stud_poker_game.py`; how a round ends stands in `rules/games/stud_poker_ends.py`, where the
texts differ in `Rulings`. What each event means stands with the text.
"""

from typing import Final

from msgspec.structs import replace

from protocols.contract.events import (
    MOST,
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardExposed,
    CardJammed,
    CardUnreadable,
    DealCorrected,
    DeviceOnline,
    Event,
    EventsMissed,
    HandDispensed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    ShuffleFailed,
    ShuffleFinished,
    SupervisorKeyed,
    WagerPlaced,
    WagerWithdrawn,
    type_of,
)
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.cloth import at_close, handed_back, lying, refuse, wager, with_refused
from rules.engine.limits import from_terminal
from rules.engine.rounds import Round, declared, irregular, next_number, witness
from rules.engine.ruleset import Closed, Opened, Verdict, Wager
from rules.games.cards import PIPS
from rules.games.stud_poker import (
    CARDS,
    DEALER,
    NAMES,
    SEATS,
    Deal,
    Hands,
    another_open,
    betrays_the_next,
    card_seen,
    contradiction,
    dealt_before,
    felt_again,
    of_the_next,
    read_hands,
    too_early,
    unbacked,
    unknowable,
)
from rules.games.stud_poker_ends import MISSING, TELL, Step, StudPokerEnds, StudPokerState

DECISIONS: Final = say("do_tell_all")
NAME_IT: Final = say("do_name_hand")
WHO_PLAYS: Final = say("do_who_plays")
AGAIN: Final = say("do_decide")
OR_OPEN: Final = say("do_correct")
BEFORE_CARD: Final = say("first_card")
BETWEEN: Final = say("hands_next_round")
WHOSE: Final = say("do_name_round")
ONE_MORE: Final = say("packet_more")
EARLY: Final = say("hands_early")
DEAL_ON: Final = say("do_deal_on")
ONE_OR_TWO: Final = say("one_or_two")
WHICH_FAULT: Final = say("do_which_fault")


class StudPokerRounds(StudPokerEnds):
    """Tables of stud poker by one text: each event, and what follows from it."""

    def start(self, table: str) -> StudPokerState:
        """A table that was never played on."""
        return StudPokerState(table)

    # ---- events

    def apply(self, state: StudPokerState, seen: Envelope) -> Step:
        """One event."""
        if state.deal is not None and state.deal.over and of_the_next(state.deal, seen.event):
            state, verdicts = self._bets_opened(state, seen)
            state, more = StudPokerRounds.apply(self, state, seen)
            return state, verdicts + more
        if (name := _round_named(seen.event)) and name != _round_of(state):
            if isinstance(seen.event, RoundPaid):
                return state, ()  # of the round before, which counts
            text = say("round_not_on_table", event=type_of(seen.event), round=name[:80])
            return self._noted(state, "round_unknown", text, seen)
        if state.deal is not None and betrays_the_next(state.deal, seen.event):
            state = replace(state, deal=replace(state.deal, ahead=True))
        match seen.event:
            case SeatActed() as acted:
                return self._acted(state, seen, acted)
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._chips(state, seen, one)
            case BetsOpened():
                return self._bets_opened(state, seen)
            case BetsClosed():
                return self._bell(state, seen)
            case DealCorrected(hands=laid):
                return self._corrected(state, seen, laid)
            case SeatOpened(seat=seat) | SeatClosed(seat=seat):
                return self._seat(state, seen, seat, opened=isinstance(seen.event, SeatOpened))
            case RoundPaid():
                return self._paid(state, seen)
            case RoundVoided(reason=reason):
                return self._declared_void(state, seen, declared(reason))
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._missed(replace(state, supervised=False) if state.supervised else state, seen)
            case SupervisorKeyed(present=present):
                return replace(state, supervised=present), ()
            case _:
                return self._cards(state, seen)

    def _cards(self, state: StudPokerState, seen: Envelope) -> Step:
        """An event of the cards, of the shoe or of the shuffler."""
        match seen.event:
            case CardDrawn(card=card, face=face):
                return self._card(state, seen, card, face)
            case HandDispensed(cards=cards):
                return self._packet(state, seen, cards)
            case CardExposed(hand=hand, card=card):
                return self._exposed(state, seen, hand, card or "")
            case CardUnreadable():
                return self._unreadable(state, seen)
            case ShuffleFailed(reason=reason):
                return self._shuffler_failed(
                    state, seen, say("shuffler_reports_failure", why=reason or "no_reason_told")
                )
            case CardJammed(where=where):
                return self._shuffler_failed(state, seen, say("shuffler_stuck", where=where or "somewhere"))
            case ShoeStarted(decks=decks) | ShuffleFinished(decks=decks):
                return self._new_cards(state, seen, decks, shoe=isinstance(seen.event, ShoeStarted))
            case ShoeEmptied():
                return self._emptied(state, seen)
            case _:
                return state, ()

    # ---- the betting

    def _seat(self, state: StudPokerState, seen: Envelope, seat: int, *, opened: bool) -> Step:
        """Who takes part from the next closing of the bets on."""
        if seat not in SEATS:
            return self._noted(state, "no_such_seat", say("seat_there_are", seat=seat, seats=len(SEATS)), seen)
        seats = {*state.seats, seat} if opened else {*state.seats} - {seat}
        return replace(state, seats=tuple(sorted(seats))), ()

    def _begin(self, state: StudPokerState, seen: Envelope, *, missed: bool) -> tuple[StudPokerState, Deal]:
        """A new round, with the jackpot bets that a void one left; `missed`: bets of it may be missing."""
        day, count = next_number(state.day, state.count, seen)
        round_ = Round(f"{state.table}:{day}:{count}", (seen.id,), state.carried, refused=state.refused)
        deal = Deal(
            round_,
            carried=tuple(one.seat for one in state.carried),
            lost=missed,
            unsure=missed,
            uncarried=state.uncarried,
            burnt=int(state.loose == 1),
        )
        heard = state.heard or (state.last is not None and state.last.out)
        state = StudPokerState(state.table, day, count, state.seats, deal, heard=heard, supervised=state.supervised)
        return state, deal

    def _bets_opened(self, state: StudPokerState, seen: Envelope) -> Step:
        deal = state.deal
        verdicts: tuple[Verdict, ...] = ()
        if deal is not None:
            if not (deal.round.suspended or deal.lost or deal.reopened):
                if not deal.round.closed:
                    return self._seen(state, deal, seen), ()
                return self._opened_over(state, deal, seen)
            reason = deal.round.suspended or (say("not_completed_again") if deal.reopened else say("events_missed"))
            state, verdicts = self._void(state, deal, seen, reason)
        unproven = state.doubt or (deal is not None and deal.unsure)
        state, deal = self._begin(state, seen, missed=False)
        # Opened by hand, since its opening was lost: antes may have been laid, and lost, before.
        state = replace(state, deal=replace(deal, unproven=unproven))
        return state, (*verdicts, Opened(deal.round.id))

    def _opened_over(self, state: StudPokerState, deal: Deal, seen: Envelope) -> Step:
        """A stray press, or the next round. Before the first card no hands can be mixed, only what was laid."""
        text = say("bets_reopened_round")
        deal = replace(deal, round=self._irregular(deal.round, "bets_reopened", text, seen))
        if deal.begun or deal.told or deal.shown or deal.exposed:
            return self._hold(state, replace(deal, over=True), seen, text, OR_OPEN, blind=False)
        return replace(state, deal=replace(deal, unsure=True)), ()

    def _chips(self, state: StudPokerState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        """Refused chips are taken away before a bet is."""
        if isinstance(one, WagerPlaced):
            return self._wager(state, seen, one)
        deal, held = state.deal, 0
        if deal is not None:
            held = deal.chips.get(one.seat, 0) if one.bet == "raise" else deal.amount(one.seat, one.bet)
        chips, rest = handed_back(state.ledger, one, held)
        if chips is not state.ledger:
            state = state.with_ledger(chips)
        if rest is not None:
            return self._wager(state, seen, rest)
        return (state if state.deal is None else self._seen(state, state.deal, seen)), ()

    def _wager(self, state: StudPokerState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        text = say("seat_bet", seat=one.seat, bet=one.bet)
        if one.seat not in SEATS:
            text = say("seat_bet_there_are", seat=one.seat, bet=one.bet, seats=len(SEATS))
            return self._noted(state, "no_such_seat", text, seen)
        if one.bet == "raise":
            return self._raise_chips(state, seen, one)
        deal = state.deal
        verdicts: tuple[Verdict, ...] = ()
        if deal is None:
            if isinstance(one, WagerWithdrawn) or one.bet not in self.offered:
                return self._noted(state, "bet_without_round", text, seen)
            state, deal = self._begin(state, seen, missed=state.doubt)
            verdicts = (Opened(deal.round.id),)
        round_ = deal.round
        late = round_.closed
        if one.bet == "jackpot" and self.jackpot:
            if one.seat in deal.carried:
                return self._carried_again(state, deal, seen, one), verdicts
            late = late and (deal.begun or self.rulings.jackpot_until == "bell")
            stranger = round_.closed and not late and one.seat not in deal.players
            if stranger and deal.unproven and isinstance(one, WagerPlaced):
                deal = replace(deal, asked={one.seat: "", **deal.asked})
            elif stranger:
                text = say("without_ante", seat=one.seat, bet=one.bet)
                law = self._law("jackpot_without_ante")
                note = refuse(round_, one, "jackpot_without_ante", text, law, seen)
                return self._with(state, deal, note), verdicts
        if one.bet == "ante" and one.seat in deal.entered:
            deal, enough = felt_again(deal, one)
            if enough:
                return self._seen(state, deal, seen), verdicts
        if from_terminal(one) and not late and one.bet in self.bet_limits:  # answered at once, not at the bell
            lay = lying(round_, one.seat, one.bet)
            left = lay + one.amount if isinstance(one, WagerPlaced) else lay - (one.amount or lay)
            reason = self._outside(Wager(one.seat, one.bet, min(left, MOST))) if left > 0 else None
            if reason is not None:
                note = self._irregular(round_, "outside_limits", reason, seen, f"{one.bet}_limits")
                return self._with(state, deal, note), verdicts
        law = self._law("late_jackpot" if late else "bet")
        raises = unbacked(deal) if deal.chips else ()
        laid = wager(replace(round_, closed=late), one, self.offered, law, seen, self.limits, raises)
        deal = replace(deal, round=replace(laid, closed=round_.closed))
        if not deal.asked:
            return replace(state, deal=deal), verdicts
        state, asks = self._ask(state, deal, seen)
        return state, verdicts + asks

    def _carried_again(
        self, state: StudPokerState, deal: Deal, seen: Envelope, one: WagerPlaced | WagerWithdrawn
    ) -> StudPokerState:
        """The bet is laid already. Its chip told again is the same chip, and it stays."""
        if isinstance(one, WagerPlaced):
            return self._seen(state, deal, seen)
        text = say("bet_transferred", seat=one.seat, bet=one.bet)
        return self._with(state, deal, self._irregular(deal.round, "bet_stands", text, seen))

    def _close(self, deal: Deal, seen: Envelope, players: tuple[int, ...]) -> tuple[Deal, tuple[Verdict, ...]]:
        """Nothing more. A bet on the jackpot without an ante goes back , if none can be missing."""
        round_, asked, lost = deal.round, deal.asked, deal.lost
        if lost:
            asked = {one.seat: "" for one in round_.wagers if one.seat not in players}
        else:
            round_ = self._without_ante(round_, players, seen)
        round_ = self._within_limits(replace(witness(round_, seen), closed=True), seen)
        if deal.uncarried and self.jackpot:
            text = say("jackpot_bets_unknown")
            round_ = self._irregular(round_, "jackpot_bets_unknown", text, seen, "void")
        deal = replace(deal, round=round_, players=players, lost=False, asked=asked)
        deal = replace(deal, unproven=deal.unproven or lost)
        return deal, (Closed(round_.id),)

    def _within_limits(self, round_: Round, seen: Envelope) -> Round:
        """Bets outside the limits of the text are noted."""
        for one in round_.wagers if self.bet_limits else ():
            if reason := self._outside(one):
                round_ = self._irregular(round_, "outside_limits", reason, seen, f"{one.bet}_limits")
        return round_

    def _outside(self, one: Wager) -> Reason | None:
        """Why a bet is outside the limits of the text."""
        least, most = self.bet_limits.get(one.bet, (0, 0))
        if least <= one.amount <= (most or one.amount):
            return None
        return say("outside_limits", seat=one.seat, bet=one.bet, amount=one.amount, least=least, most=most)

    def _bell(self, state: StudPokerState, seen: Envelope) -> Step:
        deal = state.deal
        if deal is None:
            return self._noted(state, "bell_without_round", say("bell_no_round"), seen)
        if deal.round.closed:
            return self._seen(state, deal, seen), ()
        if not deal.lost:  # bets that are not known are not judged
            deal = replace(deal, round=at_close(deal.round, self.limits, self._law("bet"), seen))
        players = deal.antes() or state.seats
        if not players and not deal.lost:
            note = self._irregular(deal.round, "no_ante", say("nobody_ante_bell"), seen)
            return self._with(state, deal, note), ()
        deal, closed = self._close(deal, seen, players)
        if not players:
            state, held = self._hold(state, deal, seen, MISSING, WHO_PLAYS, blind=False)
            return state, closed + held
        state, asks = self._ask(state, deal, seen) if deal.asked else (replace(state, deal=deal), ())
        return state, closed + asks

    # ---- the deal

    def _first(
        self, state: StudPokerState, deal: Deal, seen: Envelope
    ) -> tuple[Deal, tuple[Verdict, ...], Reason | None]:
        """The first card closes the bets too. Last, the reason why nobody knows whose it is, where that is so."""
        if deal.round.closed:
            first = not (deal.out or deal.blind)
            doubt = EARLY if first and (deal.told or deal.shown) else None
            if first and (deal.asked or not deal.players):
                doubt = doubt or BEFORE_CARD
            elif first and deal.unproven and not (deal.blind or deal.over):
                deal = replace(deal, held=False)  # the seats were named, and the cards say whether those are all
            return replace(self._swept(deal, seen) if first else deal, dealt=True), (), doubt
        lost = deal.lost
        deal, closed = self._close(deal, seen, deal.antes() or state.seats)
        deal = replace(deal, dealt=True)
        if lost:
            return deal, closed, BEFORE_CARD
        return deal, closed, None if deal.players else say("card_no_ante")

    def _without_round(self, state: StudPokerState, seen: Envelope, code: str, reason: Reason) -> Step:
        """A card where no round waits for one. After a result without cards it says that the result came too early.

        But one that was told late may be older than the result, and one after the payment is of no round.
        """
        last = state.deal or state.last
        if last is None or last.out or last.blind or last.paid or state.doubt or seen.event.overtaken:
            return self._noted(state, code, reason, seen)
        deal = self._swept(replace(last, reopened=True, dealt=True), seen)
        return self._hold(replace(state, last=None), deal, seen, say("card_after_result"), DECISIONS)

    def _burn_due(self, state: StudPokerState, seen: Envelope, burnt: int = 0) -> bool:
        """Whether the next card is not dealt, but burnt. What comes before the bets are opened is of the next round.

        `burnt`: how much may be known of a burnt card already.
        """
        deal, last = state.deal, state.last
        if not self.burns or seen.event.overtaken:
            return False
        if deal is None:
            return not state.loose and (last is None or last.paid or last.out)
        return deal.burnt <= burnt and not (deal.out or deal.blind or deal.reopened)

    def _burn(self, state: StudPokerState, seen: Envelope) -> StudPokerState:
        deal = state.deal
        if deal is None:
            return self._loose(state)
        return self._seen(state, replace(deal, burnt=2), seen)

    def _loose(self, state: StudPokerState) -> StudPokerState:
        """A card that is of no deal, or comes after a decision, may be the one that is burnt for the next round."""
        between = self.burns and (state.deal is None or state.deal.decided)
        return replace(state, loose=min(state.loose + 1, 2)) if between else state

    def _card(self, state: StudPokerState, seen: Envelope, card: str, face: str | None) -> Step:
        """One card to each hand in turn."""
        if card not in PIPS:
            return self._unreadable(state, seen)
        if self._burn_due(state, seen):
            return self._burn(state, seen), ()
        state = self._loose(state)
        deal = state.deal
        if deal is None or (deal.reopened and not deal.out):
            return self._without_round(state, seen, "card_without_round", say("card_no_round"))
        deal, closed, doubt = self._first(state, deal, seen)
        if deal.blind and not doubt:
            return self._seen(state, deal, seen), closed
        place = len(deal.cards)
        if place == CARDS * deal.hands:
            doubt = doubt or say("card_more")
        if deal.packets:
            doubt = doubt or say("shoe_then_packets")
        if card in deal.cards:
            doubt = doubt or say("card_twice")
        if self.burns and deal.decided:
            doubt = doubt or MISSING  # it may be the one that is burnt for the next round
        if doubt:
            state, held = self._hold(state, deal, seen, doubt, DECISIONS if doubt == EARLY else TELL)
            return state, closed + held
        round_ = witness(deal.round, seen)
        if not place and self.dealing == "shuffler":
            round_ = self._irregular(round_, "wrong_equipment", say("from_shoe"), seen, "from_shoe")
        last = place + 1 == CARDS * deal.hands
        covered = last and any(hand == DEALER for hand, _ in deal.exposed)
        faced = last and not covered and face == "up"
        deal = replace(deal, round=round_, cards=(*deal.cards, card), covered=covered, faced=faced)
        # The dealer's last card lies open, unless another of his does.
        if face == "up" and (covered or not last):
            state, step = self._expose(state, deal, seen, deal.whose(place), card)
            return state, closed + step
        if not last:
            return replace(state, deal=deal), closed
        state, step = self._go_on(state, deal)
        return state, closed + step

    def _packet(self, state: StudPokerState, seen: Envelope, cards: int) -> Step:
        """Five cards to each hand."""
        unburnt = self._burn_due(state, seen)
        if cards == 1 and self._burn_due(state, seen, burnt=1):
            return self._burn(state, seen), ()
        state = self._loose(state)
        deal = state.deal
        if deal is None or (deal.reopened and not deal.out):
            return self._without_round(state, seen, "packet_without_round", say("packet_no_round"))
        deal, closed, doubt = self._first(state, deal, seen)
        if deal.cards:
            doubt = doubt or say("packet_then_shoe")
        if self.burns and deal.decided:
            doubt = doubt or MISSING
        if doubt:
            state, held = self._hold(state, deal, seen, doubt, DECISIONS if doubt == EARLY else TELL)
            return state, closed + held
        if deal.packets == deal.hands:
            # Told once more than hands with a bet: whether it lies with a hand without one, nobody can know.
            state, held = self._hold(state, deal, seen, ONE_MORE, WHO_PLAYS if deal.unproven else NAME_IT)
            return state, closed + held
        round_ = witness(deal.round, seen)
        if not deal.packets and self.dealing == "shoe":
            round_ = self._irregular(round_, "wrong_equipment", say("by_shuffler"), seen, "by_shuffler")
        if unburnt:
            round_ = self._irregular(round_, "not_burnt", say("not_burnt"), seen)
        whose = deal.whose(deal.packets)
        deal = replace(deal, round=round_, packets=deal.packets + 1)
        if cards != CARDS:
            text = say("packet_cards", n=cards, hand=whose)
            deal = replace(deal, round=self._irregular(round_, "wrong_number_of_cards", text, seen))
            state, void = self._void(state, deal, seen, say("wrong_number_of_cards"))
            return state, closed + void
        state, step = self._go_on(state, deal)
        return state, closed + step

    def _unreadable(self, state: StudPokerState, seen: Envelope) -> Step:
        if self._burn_due(state, seen):
            return self._burn(state, seen), ()
        state = self._loose(state)
        deal = state.deal
        if deal is None or (deal.reopened and not deal.out):
            return self._without_round(state, seen, "unreadable_without_round", say("card_may_no_round"))
        deal, closed, _ = self._first(state, deal, seen)
        state, held = self._hold(state, deal, seen, say("card_unreadable"))
        return state, closed + held

    def _new_cards(self, state: StudPokerState, seen: Envelope, decks: int, *, shoe: bool) -> Step:
        """A single deck. A shoe begun in the middle of a deal leaves it unknown what was dealt."""
        verdicts: tuple[Verdict, ...] = ()
        if decks > 1:
            text = say("wrong_decks_one", decks=decks)
            state, verdicts = self._noted(state, "wrong_number_of_decks", text, seen)
        deal = state.deal
        if shoe and deal is not None and deal.dealing and deal.cards:
            state, held = self._hold(state, deal, seen, say("new_shoe"))
            return state, verdicts + held
        return state, verdicts

    def _emptied(self, state: StudPokerState, seen: Envelope) -> Step:
        deal = state.deal
        if deal is None or not deal.dealing or not deal.cards:
            return state, ()
        return self._hold(state, deal, seen, say("shoe_empty_hands"))

    def _shuffler_failed(self, state: StudPokerState, seen: Envelope, what: Reason) -> Step:
        """It counts between the bell and the last packet; later the machine is at its next deck.

        Where events are missing, or decisions are told, the last packet may be out already: a person says.
        """
        deal = state.deal
        if deal is None or not deal.round.closed or deal.reopened or deal.cards or self.dealing == "shoe":
            return state, ()
        if deal.packets == deal.hands or (deal.decided and not deal.packets):
            return state, ()
        failed = replace(deal, round=self._irregular(deal.round, "shuffler_failed", what, seen))
        if deal.blind:
            return replace(state, deal=failed), ()
        if deal.decided:
            return self._hold(state, deal, seen, what)
        if not self.rulings.failure_voids:
            return self._suspend(state, failed, seen, what, DEAL_ON)
        return self._void(state, failed, seen, say("shuffler_failed"))

    def _exposed(self, state: StudPokerState, seen: Envelope, hand: str, card: str) -> Step:
        deal = state.deal
        text = card_seen(card, NAMES.get(hand, ""))
        if deal is None:
            return self._noted(state, "card_exposed", text, seen)
        if deal.reopened:
            return self._with(state, deal, self._irregular(deal.round, "card_exposed", text, seen)), ()
        if too_early(deal, heard=state.heard):
            return self._early(state, deal, seen, "card_exposed", text)
        return self._expose(state, deal, seen, NAMES.get(hand, ""), card)

    def _expose(self, state: StudPokerState, deal: Deal, seen: Envelope, hand: str, card: str) -> Step:
        """One card is left as it is; two make the round void."""
        if card and hand == DEALER and card in (deal.shown, deal.last_card):
            return self._seen(state, replace(deal, faced=True), seen), ()
        if card and (hand, card) in deal.exposed:
            return self._seen(state, deal, seen), ()
        if card and hand == DEALER and deal.last_due and card not in deal.cards:
            # By rule, and faster than the shoe. Where another card comes, the two contradict each other.
            return self._seen(state, replace(deal, shown=card), seen), ()
        if hand in [f"seat_{seat}" for seat in deal.forfeited]:
            return self._seen(state, deal, seen), ()
        if any(hand == other and not (card and known) for other, known in deal.exposed):
            return self._hold(state, deal, seen, ONE_OR_TWO, blind=False)
        if self.rulings.error_voids:
            return self._shown(state, deal, seen, hand, card)
        text = card_seen(card, hand)
        round_ = self._irregular(deal.round, "card_exposed", text, seen, "second_card_exposed" if deal.exposed else "")
        second = bool(deal.exposed)
        deal = replace(deal, round=round_, exposed=(*deal.exposed, (hand, card)))
        return self._void(state, deal, seen, say("two_cards_exposed")) if second else self._go_on(state, deal)

    def _shown(self, state: StudPokerState, deal: Deal, seen: Envelope, hand: str, card: str) -> Step:
        """A card that should be covered: an error of the deal, the dealer's open card, or a player's fault.

        Once all have decided, hands are uncovered. Where the deal may or may not be over, a person says what it was.
        """
        text = card_seen(card, hand)
        seat = int(hand[-1]) if hand and hand != DEALER else 0
        if deal.all_decided and seat not in deal.folded:
            return self._seen(state, deal, seen), ()
        dealt = deal.decided or (deal.out and not deal.dealing and not deal.blind)
        if dealt and not (deal.dealing or deal.held) and seat in deal.players:
            round_ = self._irregular(deal.round, "cards_shown", text, seen)
            return self._forfeit(state, replace(deal, round=round_, exposed=(*deal.exposed, (hand, card))), seat)
        noted_ = replace(deal, round=self._irregular(deal.round, "card_exposed", text, seen))
        open_ = deal.shown or deal.last_card or any(other == DEALER for other, _ in deal.exposed)
        after = replace(noted_, exposed=(*deal.exposed, (hand, card)))
        if hand == DEALER and not open_:
            return self._go_on(state, after)
        if hand == DEALER and not card:
            return self._hold(state, deal, seen, ONE_OR_TWO, blind=False)
        dealing = deal.dealing and not deal.decided
        if hand == DEALER or (hand and dealing):
            return self._void(state, after, seen, say("card_exposed_dealing"))
        return self._hold(state, noted_, seen, text, WHICH_FAULT, blind=False)

    def _forfeit(self, state: StudPokerState, deal: Deal, seat: int) -> Step:
        """The seat loses what it has laid, its raise too."""
        laid = 2 * deal.amount(seat, "ante") or deal.chips.get(seat, 0)
        raised = seat in deal.raised and laid > 0
        deal = replace(
            deal,
            raised=tuple(other for other in deal.raised if other != seat),
            folded=tuple(sorted({*deal.folded, seat})),
            doubted=tuple(other for other in deal.doubted if other != seat),
            forfeited=tuple(sorted({*deal.forfeited, seat})),
            chips={**deal.chips, seat: laid} if raised else deal.chips,
        )
        return self._go_on(state, deal)

    # ---- the decisions

    def _early(self, state: StudPokerState, deal: Deal, seen: Envelope, code: str, reason: Reason) -> Step:
        """It is the round before's. A second such word says that the cards are out and not told: the round is held."""
        deal = replace(deal, round=self._irregular(deal.round, code, reason, seen))
        if deal.early:
            return self._hold(state, deal, seen, MISSING)
        if not deal.round.closed:
            deal = replace(deal, burnt=0)  # so is the card that was told
        word = deal.round.closed and not isinstance(seen.event, WagerPlaced | WagerWithdrawn)  # chips are moved often
        return replace(state, deal=replace(deal, early=word)), ()

    def _acted(self, state: StudPokerState, seen: Envelope, acted: SeatActed) -> Step:
        text = say("seat_action", seat=acted.seat, action=acted.action)
        if acted.seat not in SEATS:
            text = say("seat_action_there_are", seat=acted.seat, action=acted.action, seats=len(SEATS))
            return self._noted(state, "no_such_seat", text, seen)
        if acted.hand != 1:
            text = say("seat_action_hand", seat=acted.seat, action=acted.action, number=acted.hand)
            return self._noted(state, "one_hand_only", text, seen)
        match acted.action:
            case "ante":
                return self._ante(state, seen, acted)
            case "raise" | "fold":
                return self._decided(state, seen, acted)
            case _:
                return self._noted(state, "no_such_decision", text, seen)

    def _ante(self, state: StudPokerState, seen: Envelope, acted: SeatActed) -> Step:
        """An ante told at the console; with its amount it is a wager, unless one lies there: then it is the same."""
        deal = state.deal
        if deal is not None and deal.unproven and (deal.asked or deal.held) and acted.seat not in deal.players:
            return self._plays(state, deal, seen, acted.seat)
        lay = 0 if deal is None else deal.amount(acted.seat, "ante")
        if acted.amount and not lay:
            chips = deal.round.refused if deal is not None else ()
            state, verdicts = self._wager(state, seen, WagerPlaced(acted.seat, "ante", acted.amount))
            if state.deal is not None and state.deal.round.refused != chips:  # what is entered lays no chips
                state = replace(state, deal=replace(state.deal, round=replace(state.deal.round, refused=chips)))
            if state.deal is not None and state.deal.amount(acted.seat, "ante"):
                entered = tuple(sorted({*state.deal.entered, acted.seat}))
                state = replace(state, deal=replace(state.deal, entered=entered))
            return state, verdicts
        verdicts = ()
        if deal is None:
            state, deal = self._begin(state, seen, missed=state.doubt)
            verdicts = (Opened(deal.round.id),)
        differs = acted.amount not in (0, lay)
        if deal.round.closed and (differs or acted.seat not in deal.players):
            if deal.round.suspended:
                text = say("bet_while_waiting", seat=acted.seat, bet="ante")
                round_ = self._irregular(deal.round, "bet_while_waiting", text, seen)
                return self._with(state, deal, round_), ()
            text = say("late_bet", seat=acted.seat, bet="ante")
            return self._with(state, deal, self._irregular(deal.round, "late_bet", text, seen)), ()
        anted = deal.anted if deal.round.closed else tuple(sorted({*deal.anted, acted.seat}))
        deal = replace(deal, round=witness(deal.round, seen), anted=anted, unsure=deal.unsure or differs)
        return replace(state, deal=deal), verdicts

    def _ask(self, state: StudPokerState, deal: Deal, seen: Envelope) -> Step:
        """Which of the seats that may have laid an ante plays: said again where another one is meant than before."""
        reason = say("ante_missing", seat=min(deal.asked))
        if deal.round.suspended != reason:
            deal = replace(deal, round=replace(deal.round, suspended=None))
        return self._suspend(state, deal, seen, reason, WHO_PLAYS)

    def _plays(self, state: StudPokerState, deal: Deal, seen: Envelope, seat: int) -> Step:
        """A person says that this seat had laid its ante; what it has decided since is told already."""
        decided = deal.asked.get(seat, "")
        deal = replace(
            deal,
            round=witness(deal.round, seen),
            players=tuple(sorted({*deal.players, seat})),
            anted=tuple(sorted({*deal.anted, seat})),
            raised=tuple(sorted({*deal.raised, seat})) if decided == "raise" else deal.raised,
            folded=tuple(sorted({*deal.folded, seat})) if decided == "fold" else deal.folded,
            asked={other: word for other, word in deal.asked.items() if other != seat},
            dead=tuple(other for other in deal.dead if other != seat),
            blind=deal.blind or deal.out,
            unsure=True,
        )
        if deal.asked:
            return self._ask(state, deal, seen)
        if deal.held and deal.out:
            deal = replace(deal, round=replace(deal.round, suspended=None))
            return self._hold(state, deal, seen, MISSING, TELL)
        return self._go_on(state, deal)

    def _playing(
        self, state: StudPokerState, seen: Envelope, seat: int, action: str, reason: Reason
    ) -> tuple[StudPokerState, Deal | None, tuple[Verdict, ...]]:
        """The round in which `seat` may decide, a resolved one reopened; or None, with what follows from that."""
        deal = state.deal
        if deal is None:
            if state.last is not None and seat in state.last.players and not (state.last.paid or state.doubt):
                return state, replace(state.last, reopened=True), ()
            if state.doubt and state.loose:
                state = replace(state, loose=0)  # cards of a deal whose bets were lost
            state, noted = self._noted(state, "decision_without_round", reason, seen)
            return state, None, noted
        if too_early(deal, heard=state.heard):
            state, held = self._early(state, deal, seen, "decision_before_deal", reason)
            return state, None, held
        if seat not in deal.players and (deal.unproven or deal.round.suspended == ONE_MORE):
            deal = replace(deal, unproven=True)  # dealt to, and decides: its ante may be late
            before = deal.asked.get(seat, "")
            word = action if before in ("", action) else "fold" if self.rulings.fold_final else ""
            asked = {**deal.asked, seat: word}
            dead = tuple(other for other in deal.dead if other != seat)
            deal = replace(deal, asked=asked, dead=dead, blind=deal.blind or deal.out)
            state, asks = self._ask(state, deal, seen)
            return state, None, asks
        if seat not in deal.players:
            if not deal.unsure:  # after a loss it may be the next round's
                deal = replace(deal, round=self._irregular(deal.round, "decision_without_ante", reason, seen))
            chips = reason.code == "seat_bet"  # told by a sensor, not as an action
            deal = replace(deal, refused={**deal.refused, seat: action})
            missing = say("no_ante_raise", seat=seat) if chips else say("no_ante", seat=seat, action=action)
            state, held = self._hold(state, deal, seen, missing, NAME_IT)
            return state, None, held
        return state, deal, ()

    def _decided(self, state: StudPokerState, seen: Envelope, acted: SeatActed) -> Step:
        """A raise or a fold."""
        seat, raises = acted.seat, acted.action == "raise"
        state, deal, verdicts = self._playing(
            state, seen, seat, acted.action, say("seat_action", seat=seat, action=acted.action)
        )
        if deal is None:
            return state, verdicts
        if seat in (deal.raised if raises else deal.folded):
            return (state if deal.reopened and state.deal is None else self._seen(state, deal, seen)), ()
        chips = deal.chips.get(seat, 0)
        if raises and self._has_folded(deal, seen, seat):
            if not state.supervised:
                return self._fold_stands(state, deal, seen, seat)
            deal = self._fold_reversed(deal, seen, seat)
        elif seat not in deal.doubted and (seat in deal.raised or seat in deal.folded or (chips and not raises)):
            return self._contradicted(state, deal, seen, seat)
        double = 2 * deal.amount(seat, "ante")
        if raises and double:
            for amount in dict.fromkeys((acted.amount, chips)):
                if amount not in (0, double):
                    text = say("raise_not_double", seat=seat, amount=amount, double=double)
                    deal = replace(deal, round=self._irregular(deal.round, "raise_not_double", text, seen))
        elif raises and acted.amount:
            others = (*deal.round.wagers, *(one for one in unbacked(deal) if one.seat != seat))
            why = self.limits.refusal(others, WagerPlaced(seat, "raise", acted.amount), self._law("bet"))
            if why is None:
                chips = acted.amount
            else:  # the raise counts, its amount is not known
                deal = replace(deal, round=irregular(deal.round, why.code, why.reason, why.law, seen))
        lie = raises or seat in deal.forfeited
        return self._decide(state, deal, seen, seat, raises=raises, chips=chips if lie else 0)

    def _decide(
        self, state: StudPokerState, deal: Deal, seen: Envelope, seat: int, *, raises: bool, chips: int
    ) -> Step:
        round_ = witness(deal.round, seen)
        if deal.dealing:
            text = say("decided_dealing", seat=seat)
            round_ = self._irregular(round_, "decision_before_deal", text, seen)
        told = deal.chips
        if chips or seat in told:
            told = {other: amount for other, amount in told.items() if other != seat} | ({seat: chips} if chips else {})
        deal = replace(
            deal,
            round=round_,
            raised=tuple(sorted({*deal.raised, seat})) if raises else deal.raised,
            folded=deal.folded if raises else tuple(sorted({*deal.folded, seat})),
            chips=told,
            doubted=tuple(other for other in deal.doubted if other != seat) if deal.doubted else (),
            swept=tuple(other for other in deal.swept if other != seat) if deal.swept else (),
            forfeited=tuple(other for other in deal.forfeited if other != seat) if raises else deal.forfeited,
        )
        return self._go_on(state, deal)

    def _has_folded(self, deal: Deal, seen: Envelope, seat: int) -> bool:
        """Whether a raise cannot take back a fold of the seat. A late raise may be older than the fold."""
        folded = seat in (*deal.doubted, *deal.folded) and seat not in deal.forfeited
        return self.rulings.fold_final and folded and not seen.event.overtaken

    def _fold_stands(self, state: StudPokerState, deal: Deal, seen: Envelope, seat: int) -> Step:
        """A raise after a fold is noted and not taken."""
        code = "fold_is_final"
        if state.deal is None:  # the round is resolved, and stays so
            return self._noted(state, code, say("fold_is_final", seat=seat), seen)
        return self._with(state, deal, self._irregular(deal.round, code, say("fold_is_final", seat=seat), seen)), ()

    def _fold_reversed(self, deal: Deal, seen: Envelope, seat: int) -> Deal:
        """The supervisor, whose key is on, says that the seat did not fold."""
        text = say("fold_reversed", seat=seat)
        folded = tuple(other for other in deal.folded if other != seat)
        return replace(deal, folded=folded, round=self._irregular(deal.round, "fold_reversed", text, seen))

    def _contradicted(self, state: StudPokerState, deal: Deal, seen: Envelope, seat: int) -> Step:
        """A raise and a fold: the third word decides."""
        deal = replace(
            deal,
            raised=tuple(other for other in deal.raised if other != seat),
            folded=tuple(other for other in deal.folded if other != seat),
            doubted=tuple(sorted({*deal.doubted, seat})),
        )
        return self._suspend(state, deal, seen, say("raises_and_folds", seat=seat), AGAIN)

    def _raise_chips(self, state: StudPokerState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        """Chips on the raise are one when they are twice the ante, no more and no less."""
        seat = one.seat
        if state.deal is None and state.last is not None and seat in state.last.raised:
            return state, ()  # the console was faster than the sensor
        state, deal, verdicts = self._playing(state, seen, seat, "raise", say("seat_bet", seat=seat, bet="raise"))
        if deal is None:
            return state, verdicts
        lay, double = deal.chips.get(seat, 0), 2 * deal.amount(seat, "ante")
        if isinstance(one, WagerWithdrawn):
            left = lay - (one.amount or lay)
            if deal.reopened or seat in deal.raised or not lay or left < 0:
                text = say("raise_taken_back", seat=seat)
                note = self._irregular(deal.round, "bet_stands", text, seen, "raise_stands")
                return (self._with(state, deal, note), ()) if state.deal is not None else (state, ())
            chips = {**deal.chips, seat: left}
            return replace(state, deal=replace(deal, round=witness(deal.round, seen), chips=chips)), ()
        if self._has_folded(deal, seen, seat):
            if not state.supervised:
                if state.deal is None:
                    return self._fold_stands(state, deal, seen, seat)
                code = "fold_is_final"
                text = say("fold_is_final", seat=seat)
                return self._with(state, deal, refuse(deal.round, one, code, text, self._law(code), seen)), ()
            deal = self._fold_reversed(deal, seen, seat)
        left = lay + one.amount
        lying_ = (*deal.round.wagers, *unbacked(deal))
        if not double and (why := self.limits.refusal(lying_, one, self._law("bet"))):
            note = refuse(deal.round, one, why.code, why.reason, why.law, seen)
            return self._with(state, deal, note), ()
        if double and left > double:
            text = say("raise_too_much", seat=seat, amount=double)
            note = self._irregular(deal.round, "raise_not_double", text, seen)
            if from_terminal(one):  # it lays no chips: a refused raise is none
                return self._with(state, deal, note), ()
            refused = with_refused(note.refused, seat, "raise", left - double)
            deal, left = replace(deal, round=replace(note, refused=refused)), double
        if seat in deal.folded:
            return self._contradicted(state, replace(deal, chips={**deal.chips, seat: left}), seen, seat)
        if seat in deal.raised or seat in deal.doubted or left < double:
            chips = {**deal.chips, seat: left}
            return replace(state, deal=replace(deal, round=witness(deal.round, seen), chips=chips)), ()
        return self._decide(state, deal, seen, seat, raises=True, chips=left)

    # ---- the hands a person tells

    def _corrected(self, state: StudPokerState, seen: Envelope, laid: Hands) -> Step:
        """The hands named lie so; the others as they were known."""
        deal = state.deal
        if deal is None:
            unsure = state.last is not None and (state.doubt or state.last.crossed)
            if state.last is None or (unsure and not _round_named(seen.event)):  # they may be another round's
                return self._noted(state, "hands_without_round", say("hands_no_round"), seen)
            deal = replace(state.last, reopened=True)
        elif too_early(deal, heard=state.heard):
            return self._early(state, deal, seen, "hands_before_deal", say("hands_before_deal"))
        dealt = {int(NAMES[name][-1]) for name, cards in laid.items() if cards and NAMES.get(name, DEALER) != DEALER}
        if dealt := dealt & deal.refused.keys() - {*deal.players, *deal.dead}:
            # It has cards and has decided: its ante may be late.
            deal = replace(deal, unproven=True, asked={seat: deal.refused[seat] for seat in sorted(dealt)} | deal.asked)
        said, wrong = read_hands(deal, laid, self.rulings.articles["wrong_number_of_cards"])
        known = deal.known()
        again = said.shown in ("", deal.shown, deal.last_card) and all(
            known.get(name) == said.told[name] for name in said.told
        )
        if state.deal is None and again and not (wrong or said.dead or said.asked or said.left):
            return state, ()  # what is resolved was told again
        if deal.crossed and not (_round_named(seen.event) or dealt_before(deal, said.told)):
            if deal.round.suspended != BETWEEN:
                deal = replace(deal, round=replace(deal.round, suspended=None))
            return self._hold(state, deal, seen, BETWEEN, WHOSE, blind=False)
        told, dead = said.told, said.dead
        strayed = not deal.unproven or deal.round.suspended == ONE_MORE or any(hand in deal.told for hand in dead)
        deal = self._named(deal, said, seen)
        if self.rulings.error_voids and dead and strayed and not wrong:
            return self._void(state, deal, seen, say("hand_without_bet", hand=dead[0]))
        shown = said.shown or deal.shown
        strangers = bool(dead or said.asked or said.left)
        # A hand too many leaves it unknown whose the shoe's cards are; the open card, told alone, completes no deal.
        blind = deal.blind or deal.over or (deal.dealing and bool(told or dead)) or (strangers and bool(deal.cards))
        asked = dict.fromkeys(said.asked, "") | deal.asked
        next_ = replace(deal, told=deal.told | told, shown=shown, held=False, blind=blind, over=False, asked=asked)
        if not wrong and unknowable(deal, told):
            # Said also where the round waits already: who tells the hands would not know what it still waits for.
            if deal.round.suspended != EARLY:
                deal = replace(deal, round=replace(deal.round, suspended=None))
            return self._hold(state, deal, seen, EARLY, DECISIONS, blind=bool(dead and deal.cards))
        wrong = wrong or contradiction(next_)
        if self.rulings.error_voids and said.shown and another_open(deal, said.shown):
            wrong = wrong or ONE_OR_TWO
        if wrong:
            return self._hold(state, deal, seen, wrong, blind=bool(dead and deal.cards))
        return self._ask(state, next_, seen) if asked else self._go_on(state, next_)


def _round_named(event: Event) -> str:
    return event.round if isinstance(event, DealCorrected | RoundVoided | RoundPaid | CardExposed) else ""


def _round_of(state: StudPokerState) -> str:
    """The round on the table: the open one, else the last."""
    deal = state.deal or state.last
    return deal.round.id if deal is not None else ""
