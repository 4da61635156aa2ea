"""The rounds of stud poker against the dealer: bets, deal, decisions, and the hands that a person enters.

The base of `rules/games/stud_poker_game.py`, on the engine of `rules/engine/refold.py`, which owns the life of a round.
The texts differ in `Rulings`; the docstrings of their files explain events and doubts.
"""

from typing import Any, ClassVar, Final

from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardExposed,
    CardJammed,
    CardUnreadable,
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
from rules.engine.cloth import give_back, lying
from rules.engine.facts import BESIDE, PLAIN, Effect, Fact, Frame, Hands as Told, Note, Table
from rules.engine.rounds import Round, without_bets
from rules.engine.ruleset import Verdict, Void, Wager
from rules.games.cards import PIPS
from rules.games.stud_poker import (
    CARDS,
    DEALER,
    NAMES,
    SEATS,
    Deal,
    Laid,
    Position,
    another_open,
    betrays_the_next,
    card_seen,
    contradiction,
    dealt_before,
    of_the_next,
    read_hands,
    stakes,
    too_early,
    unknowable,
    visible,
)
from rules.games.stud_poker_turns import AGAIN, MISSING, NAME_IT, ONE_MORE, TELL, WHO_PLAYS, Step, StudPokerTurns, Turn

DECISIONS: Final = say("do_tell_all")
OR_OPEN: Final = say("do_correct")
BEFORE_CARD: Final = say("first_card")
BETWEEN: Final = say("hands_next_round")
WHOSE: Final = say("do_name_round")
EARLY: Final = say("hands_early")
DEAL_ON: Final = say("do_deal_on")
ONE_OR_TWO: Final = say("one_or_two")
WHICH_FAULT: Final = say("do_which_fault")
MANY: Final = 1000
"""The number of missing events where it is not reported."""


class StudPokerState(Table[Position], frozen=True):
    """The state of a table."""


class StudPokerRounds(StudPokerTurns):
    """Tables of stud poker by one text."""

    State: ClassVar[type[StudPokerState]] = StudPokerState
    own: ClassVar[frozenset[type[Event]]] = frozenset(
        (
            *(CardDrawn, CardExposed, CardJammed, CardUnreadable, HandDispensed, SeatActed, SeatClosed, SeatOpened),
            *(ShoeEmptied, ShoeStarted, ShuffleFailed, ShuffleFinished, SupervisorKeyed),
        )
    )

    def apply(self, state: Table[Position], seen: Envelope) -> tuple[Table[Position], tuple[Verdict, ...]]:
        """Apply one event. A turn of the supervisor's key is kept in the position and is no event of a round."""
        if isinstance(seen.event, SupervisorKeyed) and seen.event.present == state.position.supervised:
            return state, ()
        return super().apply(state, seen)

    # ---- begin and end of a round

    def fresh(self) -> Position:
        """A table that was never played on."""
        return Position()

    def untouched(self, table: Table[Position]) -> bool:
        """False: the first round may have begun before the first contact with its devices, so antes may be missing."""
        return False

    def begins(self, position: Position, event: Event) -> bool:
        """Whether it is the first bet at a table whose opening was not reported."""
        match event:
            case WagerPlaced(seat=seat, bet=bet):
                return bet in self.offered and bet != "raise" and seat in SEATS
            case SeatActed(seat=seat, action="ante", hand=1):
                return seat in SEATS
            case _:
                return False

    def begin(self, position: Position) -> tuple[Position, tuple[str, ...], bool, Effect]:
        """A new round, with the jackpot bets that a void one left."""
        p, lost = position, "bets" in position.doubts
        # "antes": the opening was lost and entered again by hand, so earlier antes may be lost.
        deal = Deal(carried=tuple(one.seat for one in p.left), burnt=int(p.loose == 1)).with_doubts(*p.doubts)
        deal = deal.with_doubts("amounts") if lost else deal
        return replace(p, deal=deal, left=(), loose=0, doubts=()), (), False, Effect(lost=lost)

    def carried(self, position: Position) -> tuple[Wager, ...]:
        """The jackpot bets of a void round."""
        return position.left

    def reopens(self, position: Position, event: Event, last: Frame[Position]) -> bool:
        """Whether it is another decision before the payment, or a card after a result that came without cards."""
        return self._changes(position, event)

    def _changes(self, position: Position, event: Event) -> bool:
        deal = position.deal
        if deal is None or deal.paid or "bets" in position.doubts:
            return False
        final = self.rulings.fold_final and not position.supervised
        match event:
            case SeatActed(seat=seat, action="raise" | "fold" as action, hand=1) if seat in deal.players:
                if action == "fold":
                    return seat not in deal.folded
                return seat in deal.folded and not (final and seat not in deal.forfeited)
            case WagerPlaced(seat=seat, bet="raise"):
                return seat in deal.folded and not (final and seat not in deal.forfeited)
            case CardDrawn() | HandDispensed() | CardUnreadable():
                return not (deal.dealt or "cards" in deal.doubts)
            case _:
                return False

    def resume(self, now: Position, ended: Position) -> Position:
        """The position with the last round reopened."""
        return replace(now, deal=replace(now.deal or ended.deal or Deal(), ended=False))

    def stands(self, now: Position, ended: Position, *, waits: bool) -> Position | None:
        """The first result stands: the dealer, who sees the hands, has paid it. None if it came before the cards."""
        if ended.deal is None or (now.deal is not None and "after_result" in now.deal.doubts):
            return None
        return replace(now, deal=replace(ended.deal, ended=True, paid=True))

    def over(self, position: Position) -> bool:
        """Whether all have decided, and the opened hands are known."""
        return position.deal is not None and position.deal.ended

    def end(self, position: Position, frame: Frame[Position], *, void: bool) -> Position:
        """The position after a round; by the text the next round takes over the jackpot bets of a void one."""
        p, deal = position, position.deal or Deal()
        if not void:
            return replace(p, heard=deal.dealt)
        keeps = self.rulings.void_keeps_jackpot
        left = tuple(one for one in frame.round.wagers if one.bet == "jackpot") if keeps else ()
        if keeps and deal.in_doubt("carried", "amounts"):
            p = p.with_doubts("carried")
        idle = {seat: max(rounds - 1, 0) for seat, rounds in p.idle.items()}  # a void round does not count as sat out
        heard = deal.dealt or (p.heard and not deal.begun)
        return replace(p, deal=None, left=left, heard=heard, idle=idle)

    def laid(self, position: Position) -> dict[str, Any]:
        """The public cards."""
        return visible(position.deal or Deal())

    def known(self, position: Position, frame: Frame[Position]) -> Round:
        """The bets that a void round returns. By the text the jackpot bets belong to the next round."""
        deal, round_ = position.deal or Deal(), frame.round
        # After both a raise and a fold, or an early raise, without reported chips, the returned amount is unknown.
        doubted = any(not deal.chips.get(seat) for seat in deal.who("doubted"))
        if "amounts" in deal.doubts or deal.swept or doubted:
            return without_bets(round_)
        keeps = self.rulings.void_keeps_jackpot
        return replace(
            round_, wagers=tuple(one for one in stakes(deal, round_) if not (keeps and one.bet == "jackpot"))
        )

    def gives_back(self, position: Position, reason: Reason) -> Void:
        """The void: antes and raises are returned; jackpot bets are returned, too, or belong to the next round."""
        if not self.jackpot:
            return Void(reason, "returned")
        return Void(reason, "returned", "carried" if self.rulings.void_keeps_jackpot else "returned")

    def missed(self, position: Position, event: Event) -> Position:
        """The position after a loss: before the bell bets may be missing but no card; after it a late ante may be."""
        p = replace(position, supervised=False, idle={})
        deal = p.deal
        if deal is None or deal.ended:
            return p.with_doubts("bets")
        if not deal.id:
            return replace(p, deal=deal.with_doubts("amounts", "bets"))
        deal = deal.with_doubts("amounts", "antes", "held", "cards")
        if deal.decided:
            deal = replace(deal, missed=deal.missed + (event.count if isinstance(event, EventsMissed) else MANY))
        return replace(p, deal=deal)

    def follows_loss(self, event: Event) -> bool:
        """Whether the event is a card of a shoe, which keeps its place in the order.

        Packets, bets and decisions are placed at their time.
        """
        return isinstance(event, CardDrawn | CardUnreadable)

    def matters(self, position: Position, event: Event) -> bool:
        """Whether it is a different decision, which alone changes an ended round."""
        return isinstance(event, SeatActed | WagerPlaced) and self._changes(position, event)

    def unused(self, position: Position, fact: Fact) -> Step:
        """Suspend the round: a late decision contradicts the known one."""
        deal, event = position.deal, fact.event
        if deal is None or not isinstance(event, SeatActed) or event.seat not in deal.players:
            return position, PLAIN
        return replace(position, deal=deal.decide(event.seat, "doubted")), Effect(remedy=AGAIN)

    # ---- events

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> Step:
        """One event."""
        if frame is None:
            return self._between(position, fact)
        deal, event = position.deal or Deal(), fact.event
        if "reopened_bets" in deal.doubts and of_the_next(deal, event):
            return position, Effect(course="next_round")
        if isinstance(event, CardExposed) and event.round not in ("", frame.round.id):
            return position, Effect((self._unknown(event),))
        if betrays_the_next(deal, event):
            deal = deal.with_doubts("next_round")
        turn = Turn(replace(position, deal=deal), deal, frame.round, disputed=frame.result is not None)
        match event:
            case SeatActed() as acted:
                return self._acted(turn, acted, fact)
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(turn, one, fact)
            case BetsOpened():
                return self._opened_again(turn)
            case BetsClosed():
                return self._bell(turn)
            case SeatOpened() | SeatClosed() as told:
                return self._seat(turn.p, told)
            case RoundPaid() if deal.begun:
                return turn.end(suspend=say("paid_hands" if deal.all_decided else "paid_decisions"))
            case RoundVoided():
                return replace(turn.p, loose=0), PLAIN
            case SupervisorKeyed(present=present):
                return replace(turn.p, supervised=present), BESIDE
            case RoundPaid():
                return turn.p, PLAIN
            case _:
                return self._cards(turn, event)

    def _cards(self, turn: Turn, event: Event) -> Step:
        """Apply an event of the cards, the shoe or the shuffler."""
        match event:
            case CardDrawn(card=card, face=face) if card in PIPS:
                return self._card(turn, card, face)
            case HandDispensed(cards=cards):
                return self._packet(turn, cards)
            case CardExposed(hand=hand, card=card):
                return self._exposed(turn, NAMES.get(hand, ""), card or "")
            case CardDrawn() | CardUnreadable():
                return self._unreadable(turn)
            case ShuffleFailed() | CardJammed() as failure:
                return self._shuffler_failed(turn, failure)
            case ShoeStarted() | ShuffleFinished() as started:
                turn = replace(turn, notes=self._decks(started), evidence=False)
                broken = isinstance(started, ShoeStarted) and turn.deal.dealing and turn.deal.cards
                return self._hold(turn, say("new_shoe")) if broken else turn.end()
            case ShoeEmptied() if turn.deal.dealing and turn.deal.cards:
                return self._hold(turn, say("shoe_empty_hands"))
            case _:
                return turn.p, BESIDE

    def _between(self, p: Position, fact: Fact) -> Step:
        """No round is open."""
        match fact.event:
            case BetsOpened():
                return self._told_of_opening(p), PLAIN
            case SeatOpened() | SeatClosed() as told:
                return self._seat(p, told)
            case SupervisorKeyed(present=present):
                return replace(p, supervised=present), PLAIN
            case RoundPaid():
                p = replace(p, loose=0) if p.loose > 1 else p
                return replace(p, deal=replace(p.deal, paid=True)) if p.deal is not None else p, PLAIN
            case RoundVoided():
                return replace(p, loose=0), PLAIN
            case SeatActed() as acted:
                return self._acted_between(p, acted)
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager_between(p, one)
            case CardDrawn() | CardUnreadable() | HandDispensed() as card:
                return self._card_between(p, card)
            case CardExposed(hand=hand, card=card, round=named):
                if named and (p.deal is None or named != p.deal.id):
                    return p, Effect((self._unknown(fact.event),))
                return p, Effect((self._note("card_exposed", card_seen(card or "", NAMES.get(hand, ""))),))
            case ShoeStarted() | ShuffleFinished() as started:
                return p, Effect(self._decks(started))
            case _:
                return p, PLAIN

    def _unknown(self, event: CardExposed) -> Note:
        return self._note("round_unknown", say("round_unknown", event=type_of(event), round=event.round[:80]))

    def _decks(self, started: ShoeStarted | ShuffleFinished) -> tuple[Note, ...]:
        """The note of a shoe or shuffler with more than one deck."""
        if started.decks <= 1:
            return ()
        return (self._note("wrong_number_of_decks", say("wrong_decks_one", decks=started.decks)),)

    def _seat(self, p: Position, told: SeatOpened | SeatClosed) -> Step:
        """Open or close a seat, from the next closing of the bets on."""
        seat = told.seat
        if seat not in SEATS:
            reason = say("seat_there_are", seat=seat, seats=len(SEATS))
            return p, Effect((self._note("no_such_seat", reason),), evidence=False)
        seats = {*p.seats, seat} if isinstance(told, SeatOpened) else {*p.seats} - {seat}
        idle = {other: rounds for other, rounds in p.idle.items() if other != seat}
        return replace(p, seats=tuple(sorted(seats)), idle=idle), BESIDE

    # ---- the betting

    def _told_of_opening(self, p: Position) -> Position:
        """The position after an opening: events that may be missing came before it."""
        if "bets" not in p.doubts:
            return p
        return replace(p, doubts=tuple(one for one in p.doubts if one != "bets")).with_doubts("antes")

    def _opened_again(self, turn: Turn) -> Step:
        """Apply another opening: a doubtful round becomes void; otherwise it is a stray press or the next round's.

        Before the first card only bets can be confused, no hands.
        """
        deal, round_ = turn.deal, turn.round_
        if round_.suspended or turn.disputed or not round_.closed:
            p = self._told_of_opening(turn.p)
            if "amounts" in deal.doubts:
                p = p.with_doubts("antes")
            reason = say("not_completed_again") if turn.disputed else say("events_missed")
            return p, Effect(void=reason)
        text = say("bets_reopened_round")
        turn = self._noting(turn, "bets_reopened", text)
        if deal.begun or deal.told or deal.shown or deal.exposed:
            p, effect = self._hold(turn.doubting("reopened_bets"), text, OR_OPEN, blind=False)
            return p, replace(effect, course="stays")
        return turn.doubting("amounts").end(course="stays")

    # ---- the deal

    def _first(self, turn: Turn) -> tuple[Turn, Reason | None]:
        """Close the bets at the first card. The second value: why the card's owner is unknown."""
        deal = turn.deal
        if turn.round_.closed:
            first = not (deal.dealt or "cards" in deal.doubts)
            doubt = EARLY if first and (deal.told or deal.shown) else None
            if first and (deal.asked or not deal.players):
                doubt = doubt or BEFORE_CARD
            elif first and "antes" in deal.doubts and "reopened_bets" not in deal.doubts:
                turn = replace(turn, deal=deal.without_doubts("held"))  # the cards show whether all seats were named
            return (self._swept(turn) if first else turn).dealt(dealt=True), doubt
        lost = "bets" in deal.doubts
        turn = self._close(turn).dealt(dealt=True)
        turn = replace(turn, round_=replace(turn.round_, closed=True))
        if lost:
            return turn, BEFORE_CARD
        return turn, None if turn.deal.players else say("card_no_ante")

    def _swept(self, turn: Turn) -> Turn:
        """At the first card, drop earlier reports of hands and decisions, which belong to the last round; chips
        stay.
        """
        deal, round_ = turn.deal, turn.round_
        for seat in sorted(deal.decisions):
            turn = self._noting(turn, "decision_before_deal", say("decided_dealing", seat=seat))
        if "held" not in deal.doubts:
            turn = turn.unsuspended()
        known = {seat for seat in deal.players if deal.chips.get(seat, 0) >= (2 * lying(round_, seat, "ante") or 1)}
        swept = tuple(seat for seat in deal.who("raise", "doubted") if seat not in known)
        return turn.dealt(told={}, shown="", decisions={}, exposed=(), swept=swept)

    def _card_between(self, p: Position, card: CardDrawn | CardUnreadable | HandDispensed) -> Step:
        """Apply a card between rounds: it is burnt for the next round, or belongs to none."""
        due = self.burns and not p.loose and (p.deal is None or p.deal.paid or p.deal.dealt)
        if self.burns:
            p = replace(p, loose=min(p.loose + 1, 2))
        if due and not (isinstance(card, HandDispensed) and card.cards != 1):
            return p, PLAIN
        match card:
            case HandDispensed():
                return p, Effect((self._note("packet_without_round", say("packet_no_round")),))
            case CardDrawn(card=drawn) if drawn in PIPS:
                return p, Effect((self._note("card_without_round", say("card_no_round")),))
            case _:
                return p, Effect((self._note("unreadable_without_round", say("card_may_no_round")),))

    def _burn_due(self, turn: Turn, burnt: int = 0) -> bool:
        """Whether the next card is burnt instead of dealt; `burnt`: the known state of a burnt card."""
        deal = turn.deal
        begun = deal.dealt or "cards" in deal.doubts or turn.disputed
        return self.burns and deal.burnt <= burnt and not begun

    def _loose(self, turn: Turn) -> Turn:
        """The turn that keeps a card after a decision: it may be the one burnt for the next round."""
        if not (self.burns and turn.deal.decided):
            return turn
        return replace(turn, p=replace(turn.p, loose=min(turn.p.loose + 1, 2)))

    def _after_result(self, turn: Turn, code: str, reason: Reason) -> Step:
        """Dispute a result that came without cards when a card follows: it came too early."""
        deal = turn.deal
        if "cards" in deal.doubts or deal.paid or "bets" in turn.p.doubts:
            return self._noting(turn, code, reason).end()
        turn = self._swept(turn.doubting("after_result").dealt(dealt=True))
        return self._hold(turn, say("card_after_result"), DECISIONS)

    def _card(self, turn: Turn, card: str, face: str | None) -> Step:
        """Apply a card of the shoe, which deals one card to each hand in turn."""
        if self._burn_due(turn):
            return turn.dealt(burnt=2).end()
        turn = self._loose(turn)
        if turn.disputed and not turn.deal.dealt:
            return self._after_result(turn, "card_without_round", say("card_no_round"))
        turn, doubt = self._first(turn)
        deal = turn.deal
        if "cards" in deal.doubts and not doubt:
            return turn.end()
        place = len(deal.cards)
        if place == CARDS * deal.hands:
            doubt = doubt or say("card_more")
        if deal.packets:
            doubt = doubt or say("shoe_then_packets")
        if card in deal.cards:
            doubt = doubt or say("card_twice")
        if self.burns and deal.decided:
            doubt = doubt or MISSING  # it may be burnt for the next round
        if doubt:
            return self._hold(turn, doubt, DECISIONS if doubt == EARLY else TELL)
        if not place and self.dealing == "shuffler":
            turn = self._noting(turn, "wrong_equipment", say("from_shoe"), "from_shoe")
        last = place + 1 == CARDS * deal.hands
        covered = last and any(hand == DEALER for hand, _ in deal.exposed)
        lies = deal.last_card if not last else "down" if covered else "up" if face == "up" else ""
        turn = turn.dealt(cards=(*deal.cards, card), last_card=lies)
        # The dealer's last card lies open, unless another of his cards does.
        if face == "up" and (covered or not last):
            return self._expose(turn, deal.whose(place), card)
        return self._go_on(turn) if last else turn.end()

    def _packet(self, turn: Turn, cards: int) -> Step:
        """Apply a packet of the shuffler: five cards for each hand."""
        unburnt = self._burn_due(turn)
        if cards == 1 and self._burn_due(turn, burnt=1):
            return turn.dealt(burnt=2).end()
        turn = self._loose(turn)
        if turn.disputed and not turn.deal.dealt:
            return self._after_result(turn, "packet_without_round", say("packet_no_round"))
        turn, doubt = self._first(turn)
        deal = turn.deal
        if deal.cards:
            doubt = doubt or say("packet_then_shoe")
        if self.burns and deal.decided:
            doubt = doubt or MISSING
        if doubt:
            return self._hold(turn, doubt, DECISIONS if doubt == EARLY else TELL)
        if deal.packets == deal.hands:
            # More packets than hands with a bet: it is unknown whether a hand without a bet has it.
            return self._hold(turn, ONE_MORE, WHO_PLAYS if "antes" in deal.doubts else NAME_IT)
        if not deal.packets and self.dealing == "shoe":
            turn = self._noting(turn, "wrong_equipment", say("by_shuffler"), "by_shuffler")
        if unburnt:
            turn = self._noting(turn, "not_burnt", say("not_burnt"))
        turn = turn.dealt(packets=deal.packets + 1)
        if cards != CARDS:
            text = say("packet_cards", n=cards, hand=deal.whose(deal.packets))
            return self._noting(turn, "wrong_number_of_cards", text).end(void=say("wrong_number_of_cards"))
        return self._go_on(turn)

    def _unreadable(self, turn: Turn) -> Step:
        if self._burn_due(turn):
            return turn.dealt(burnt=2).end()
        turn = self._loose(turn)
        if turn.disputed and not turn.deal.dealt:
            return self._after_result(turn, "unreadable_without_round", say("card_may_no_round"))
        return self._hold(self._first(turn)[0], say("card_unreadable"))

    def _shuffler_failed(self, turn: Turn, failure: ShuffleFailed | CardJammed) -> Step:
        """Apply a failure of the shuffler, which counts between the bell and the last packet; later it concerns the
        next deck.

        Where events are missing, or decisions were reported, the last packet may be out already: a person decides.
        """
        deal = turn.deal
        if not turn.round_.closed or turn.disputed or deal.cards or self.dealing == "shoe":
            return turn.p, BESIDE
        if deal.packets == deal.hands or (deal.decided and not deal.packets):
            return turn.p, BESIDE
        if isinstance(failure, ShuffleFailed):
            what = say("shuffler_reports_failure", why=failure.reason or "no_reason_told")
        else:
            what = say("shuffler_stuck", where=failure.where or "somewhere")
        noted = self._noting(turn, "shuffler_failed", what)
        if "cards" in deal.doubts:
            return noted.end()
        if deal.decided:
            return self._hold(turn, what)
        if not self.rulings.failure_voids:
            return noted.end(suspend=what, remedy=DEAL_ON)
        return noted.end(void=say("shuffler_failed"), article=self.article_of("shuffler_failed"))

    def _exposed(self, turn: Turn, hand: str, card: str) -> Step:
        text = card_seen(card, hand)
        if turn.disputed:
            return self._noting(turn, "card_exposed", text).end()
        if too_early(turn.deal, heard=turn.p.heard):
            return self._early(turn, "card_exposed", text)
        return self._expose(turn, hand, card)

    def _expose(self, turn: Turn, hand: str, card: str) -> Step:
        """Apply an exposed card: one is left as it is, two make the round void."""
        deal = turn.deal
        if card and hand == DEALER and card in (deal.shown, deal.open_card):
            return turn.dealt(last_card=deal.last_card or "up").end()
        if card and (hand, card) in deal.exposed:
            return turn.end()
        if card and hand == DEALER and deal.open_card_due and card not in deal.cards:
            # The open card by rule, reported before the shoe's. If another card comes, the reports contradict each
            # other.
            return turn.dealt(shown=card).end()
        if hand in [f"seat_{seat}" for seat in deal.forfeited]:
            return turn.end()
        if any(hand == other and not (card and known) for other, known in deal.exposed):
            return self._hold(turn, ONE_OR_TWO, blind=False)
        if self.rulings.error_voids:
            return self._shown(turn, hand, card)
        second = bool(deal.exposed)
        turn = self._noting(turn, "card_exposed", card_seen(card, hand), "second_card_exposed" if second else "")
        turn = turn.dealt(exposed=(*deal.exposed, (hand, card)))
        return turn.end(void=say("two_cards_exposed")) if second else self._go_on(turn)

    def _shown(self, turn: Turn, hand: str, card: str) -> Step:
        """Apply the report of a seen card: an error of the deal, the dealer's open card, or a player's fault.

        Once all have decided, hands are uncovered. While it is unknown whether the deal is over, a person decides.
        """
        deal, text = turn.deal, card_seen(card, hand)
        seat = int(hand[-1]) if hand and hand != DEALER else 0
        if deal.all_decided and seat not in deal.folded:
            return turn.end()
        dealt = deal.decided or (deal.dealt and not deal.dealing and "cards" not in deal.doubts)
        exposed = (*deal.exposed, (hand, card))
        if dealt and not (deal.dealing or "held" in deal.doubts) and seat in deal.players:
            return self._forfeit(self._noting(turn, "cards_shown", text).dealt(exposed=exposed), seat)
        noted = self._noting(turn, "card_exposed", text)
        open_ = deal.shown or deal.open_card or any(other == DEALER for other, _ in deal.exposed)
        if hand == DEALER and not open_:
            return self._go_on(noted.dealt(exposed=exposed))
        if hand == DEALER and not card:
            return self._hold(turn, ONE_OR_TWO, blind=False)
        if hand == DEALER or (hand and deal.dealing and not deal.decided):
            return noted.dealt(exposed=exposed).end(void=say("card_exposed_dealing"))
        return self._hold(noted, text, WHICH_FAULT, blind=False)

    def _forfeit(self, turn: Turn, seat: int) -> Step:
        """Let the seat lose its bets, including its raise."""
        deal = turn.deal
        laid = 2 * lying(turn.round_, seat, "ante") or deal.chips.get(seat, 0)
        if deal.decisions.get(seat) == "raise" and laid:
            turn = turn.dealt(chips={**deal.chips, seat: laid})
        turn = turn.dealt(forfeited=tuple(sorted({*deal.forfeited, seat})))
        return self._go_on(replace(turn, deal=turn.deal.decide(seat, "fold")))

    # ---- the hands that a person enters

    def too_early(self, frame: Frame[Position]) -> Note | None:
        """None: `lay` checks it."""
        return None

    def nothing_to_correct(self) -> Note:
        """The note of hands that were entered while no round has any."""
        return self._note("hands_without_round", say("hands_no_round"))

    def lay(
        self,
        position: Position,
        hands: Told,
        frame: Frame[Position],
        before: Frame[Position] | None,
        *,
        named: bool,
        reopened: bool,
    ) -> Step:
        """The position with the named hands as entered, and the others as known."""
        p, deal = position, position.deal or Deal()
        if reopened and not named and ("bets" in p.doubts or deal.crossed):  # the hands may belong to another round
            return p, Effect((self.nothing_to_correct(),))
        turn = Turn(p, deal, frame.round, disputed=frame.result is not None)
        p, effect = self._told(turn, hands, named=named, reopened=reopened)
        return p, replace(effect, course="stays" if effect.evidence else "usual")

    def _told(self, turn: Turn, hands: Told, *, named: bool, reopened: bool) -> Step:
        p, deal = turn.p, turn.deal
        if not turn.disputed and too_early(deal, heard=p.heard):
            return self._early(turn, "hands_before_deal", say("hands_before_deal"))
        dealt = {int(NAMES[name][-1]) for name, cards in hands.items() if cards and NAMES.get(name, DEALER) != DEALER}
        if dealt := dealt & deal.refused.keys() - {*deal.players, *deal.dead}:
            # The seat has cards and has decided: its ante may be late.
            turn = turn.doubting("antes").dealt(asked={seat: deal.refused[seat] for seat in sorted(dealt)} | deal.asked)
            deal = turn.deal
        said, wrong = read_hands(deal, hands, self.article_of("wrong_number_of_cards"))
        known = deal.known()
        again = said.shown in ("", deal.shown, deal.open_card) and all(
            known.get(name) == said.told[name] for name in said.told
        )
        if reopened and again and not (wrong or said.dead or said.asked or said.left):
            return p, BESIDE  # the resolved hands were entered again
        if deal.crossed and not (named or dealt_before(deal, said.told)):
            return self._hold(_said_once(turn, BETWEEN), BETWEEN, WHOSE, blind=False)
        return self._laid(turn, said, wrong)

    def _laid(self, turn: Turn, said: Laid, wrong: Reason | None) -> Step:
        deal, told, dead = turn.deal, said.told, said.dead
        more = turn.round_.suspended == ONE_MORE
        strayed = "antes" not in deal.doubts or more or any(hand in deal.told for hand in dead)
        turn = self._named(turn, said)
        if self.rulings.error_voids and dead and strayed and not wrong:
            return turn.end(void=say("hand_without_bet", hand=dead[0]))
        deal = turn.deal
        strangers = bool(dead or said.asked or said.left)
        # With a hand too many the owners of the shoe's cards are unknown; an open card alone completes no deal.
        doubtful = "reopened_bets" in deal.doubts or (deal.dealing and bool(told or dead))
        blind = doubtful or (strangers and bool(deal.cards))
        if not wrong and unknowable(deal, told):
            # Published even if the round waits already, so that the person learns what it still waits for.
            early = _said_once(turn, EARLY)
            return self._hold(early, EARLY, DECISIONS, blind=bool(dead and deal.cards))
        laid = deal.without_doubts("held", "reopened_bets")
        laid = replace(
            laid.with_doubts("cards") if blind else laid,
            told=deal.told | told,
            shown=said.shown or deal.shown,
            asked=dict.fromkeys(said.asked, "") | deal.asked,
        )
        wrong = wrong or contradiction(laid)
        if self.rulings.error_voids and said.shown and another_open(deal, said.shown):
            wrong = wrong or ONE_OR_TWO
        if wrong:
            return self._hold(turn, wrong, blind=bool(dead and deal.cards))
        turn = replace(turn, deal=laid)
        return self._ask(turn) if laid.asked else self._go_on(turn)

    def _named(self, turn: Turn, said: Laid) -> Turn:
        """Apply the seats that a person named as without a bet; cards dealt to one are an irregularity."""
        deal = turn.deal
        none = {int(hand[-1]) for hand in said.dead}
        for hand in said.dead:
            seat = int(hand[-1])
            if hand in deal.told or not (seat in deal.asked or seat in deal.dead):
                turn = self._noting(turn, "hand_without_bet", say("hand_without_bet", hand=hand))
        if "antes" not in deal.doubts:
            return turn
        asked = {seat: word for seat, word in deal.asked.items() if seat not in none}
        players = tuple(seat for seat in deal.players if seat not in said.left)
        gone = tuple(one for one in turn.round_.wagers if one.seat in said.left)
        turn = replace(turn, round_=give_back(turn.round_, *gone))
        turn = self._without_ante(turn, (*players, *asked, *said.asked))
        return turn.dealt(
            players=players,
            anted=tuple(seat for seat in deal.anted if seat not in said.left),
            asked=asked,
            dead=tuple(sorted({*deal.dead, *none, *said.left})),
            told={hand: cards for hand, cards in deal.told.items() if hand not in said.dead},
        )


def _said_once(turn: Turn, reason: Reason) -> Turn:
    """Publish the reason although the round already waits for something else."""
    return turn if turn.round_.suspended == reason else turn.unsuspended()
