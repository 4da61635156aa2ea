"""The rounds of blackjack at a table, for all its texts: bets, seats, burn, cards, corrections and the result.

Called by the rulesets of the texts. `House` has the rules for the play of the hands, `Text` those of a text and a house
for the round; a ruleset is a subclass of `BlackjackRounds` with both, its bets and the prizes of its additional bets.
"""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    CardDrawn,
    CardExposed,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    Event,
    HoleCardPeeked,
    RoundPaid,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.facts import BlackjackFacts, RoundFacts
from protocols.contract.reasons import Reason, say
from rules.engine.cloth import give_back, refuse as refuse_bet, wager
from rules.engine.facts import BESIDE, PLAIN, Effect, Fact, Frame, Note, Table
from rules.engine.refold import Game
from rules.engine.rounds import Round, resolved, without_bets
from rules.engine.ruleset import Award, Result, View, Void, Wager, Win
from rules.games.blackjack import DEALER, UNSURE, Compared, Hand, House, Play, count, is_blackjack, said
from rules.games.blackjack_corrections import hands_of, left_open, named, relaid
from rules.games.blackjack_decisions import (
    AFTER_END,
    NEVER_PLAYED,
    NO_NOTES,
    UNLIMITED,
    Decisions,
    Notes,
    Position,
    Step,
    TableDoubt,
    Text,
    last_refusal,
    noting,
    noting_beside,
    refuse,
    unseated_decision,
)
from rules.games.blackjack_stakes import Streak, added, announced, called, decider, hands_won, is_main, outcome_of
from rules.games.cards import PIPS, UNKNOWN

VOID_WORDS: Final = {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}
CORRECT: Final = say("do_correct")
NAME_SEATS: Final = say("do_name_seats")
BURN: Final = say("do_burn")
RESHUFFLE: Final = say("do_shuffle")
EARLIER: Final = say("do_earlier")
MISSING: Final = say("round_events")
BURNT: Final = say("burnt_count")


class BlackjackState(Table[Position], frozen=True):
    """The state of a table."""


class Beside(Struct, frozen=True):
    """The results of a round besides the hands: additional bets that win, with their articles, and jackpot
    combinations.

    `outcome`: facts of the result. `wagers`: bets of earlier rounds that this one decides. `stands`: kinds still open.
    """

    wins: tuple[Win, ...] = ()
    law: tuple[str, ...] = ()
    outcome: dict[str, Any] = {}
    wagers: tuple[Wager, ...] = ()
    stands: tuple[str, ...] = ()
    awards: tuple[Award, ...] = ()


class BlackjackRounds(Game[Position]):
    """The rounds of a table. A ruleset sets `house`, `text`, `terms` and `offered`."""

    State: ClassVar[type[BlackjackState]] = BlackjackState
    Facts: ClassVar[type[RoundFacts]] = BlackjackFacts
    own: ClassVar[frozenset[type[Event]]] = frozenset(
        (
            *(CardDrawn, CardUnreadable, CardExposed, CardsReturned, CutCardDrawn, HoleCardPeeked),
            *(SeatActed, SeatClosed, SeatOpened, ShoeEmptied, ShoeStarted),
        )
    )
    steps_wagers = "open"
    fixed_bets: ClassVar[tuple[str, ...]] = ("double",)
    remedy: ClassVar[Reason] = CORRECT
    waits_for_bell = True

    def __init__(self, text: Text, house: House) -> None:
        """Hold no state of a table."""
        self.text = text
        self.law_of = text.articles
        self.house = house
        self._decisions = Decisions(text, house, lambda: self.limits)

    # ---- hooks of a ruleset

    def bet_refused(self, p: Position, round_: Round, one: WagerPlaced | WagerWithdrawn) -> Note | None:
        """Why a bet is refused; None where it is taken."""
        return bad_bet("no_such_seat", one, self.law_of["seat"]) if one.seat > self.house.seats else None

    def best(self) -> Mapping[str, Fraction]:
        """The largest prizes. A bet on a hand may be split and doubled up to the last hand, and insured as a whole."""
        hands = self.house.max_hands
        hand = {"on_top": Fraction(5), "closes": Fraction(4), "none": Fraction(5, 2)}[self.house.special_prize]
        main = 2 * hands * hand + 3 - 1
        return {**super().best(), "main": main, "any_pair": Fraction(11 * (2 * hands - 1))}

    def after_bell(self, p: Position, play: Play, round_: Round, one: WagerPlaced | WagerWithdrawn) -> Step | None:
        """Apply chips that may be moved after the bell; None where they may not."""
        return None

    def on_seat(self, bet: str) -> int:
        """The other seat that a bet is on, 0 where it is on its own."""
        return 0

    def kept_open(self, p: Position, round_: Round) -> tuple[Position, Round]:
        """Move the bets that stay open over rounds from the round to the position."""
        return p, round_

    def checked(self, round_: Round) -> tuple[Round, Notes]:
        """The bets at the bell, without those that go back."""
        return round_, NO_NOTES

    def streaks_after(self, streaks: tuple[Streak, ...], play: Play) -> tuple[Streak, ...]:
        """The bets that stay open after a round."""
        return streaks

    def rests_on_unknown(self, play: Play, round_: Round) -> bool:
        """Whether a bet depends on an order of cards that the hands do not show."""
        return False

    def beside(self, p: Position, play: Play, round_: Round, compared: list[Compared]) -> Beside:
        """The results of the round besides the hands."""
        return Beside()

    # ---- public views

    def view(self, state: Table[Position]) -> View:
        """Phase: idle, burning, betting, dealing, suspended, resolved, ended (no round before a shuffle)."""
        p, frame, last = state.position, state.open, state.last
        streaks = {str(one.seat): one.wins + 1 for one in p.streaks}
        detail: dict[str, Any] = {"seats": p.seats, **({"streaks": streaks} if streaks else {})}
        if frame is None or p.play is None:
            burning = p.paid and p.burn > 0  # a new shoe, after the last round was paid
            if last is not None and p.play is not None and not burning:
                return View(last.round.id, "resolved", {**detail, **self.house.laid(p.play, over=True)})
            phase = "burning" if p.burn else "ended" if p.left == 0 else "idle"
            return View("", phase, {**detail, "burn": p.burn} if p.burn > 0 else detail)
        round_, play = frame.round, p.play
        detail["last"] = p.left == 0
        if not round_.closed:
            return View(round_.id, "betting", {**detail, "due": self._due(p, play, round_)} if p.burn > 0 else detail)
        detail |= self.house.laid(play)
        if play.insured:
            detail["insured"] = play.insured
        if even := tuple(hand.seat for hand in play.hands if hand.ended == "even_money"):
            detail["even_money"] = even
        if insurance := self._decisions.insurance(play, round_):
            detail["insurance"] = insurance
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if refused := last_refusal(round_):
            detail["refused"] = refused
        due = self._due(p, play, round_)
        detail["due"] = due
        if due["kind"] == "decision" and due["hand"] in detail["totals"]:
            detail["say"] = called(play.hands[play.turn])
        return View(round_.id, "dealing", detail)

    def _due(self, p: Position, play: Play, round_: Round) -> dict[str, Any]:
        """The next expected thing: a card, the peek, or a decision with the allowed actions."""
        kind, hand = self.house.due(play, burn=bool(p.burn))
        if kind == "burn":
            return {"kind": "card", "hand": "burn"}
        if kind != "decision" or hand is None:
            return {"kind": kind, "hand": DEALER if hand is None else hand.name}
        actions = self.house.possible_actions(play, hand)
        due = {"kind": "decision", "hand": hand.name, "seat": hand.seat, "actions": actions}
        if self.text.bettors > 1:
            due["decides"] = decider(round_.wagers, hand.seat, self.text.decides)
        if self.house.surrender == "before_any_card":
            waiting = play.hands[play.turn + 1 :]
            if early := tuple(one.seat for one in waiting if self.house.offers_surrender(play, one)):
                due["surrender"] = early
        return due

    # ---- begin and end of a round

    def fresh(self) -> Position:
        """A new table, after its burn."""
        return NEVER_PLAYED

    def untouched(self, table: Table[Position]) -> bool:
        """Whether no seat, shoe or round was reported yet."""
        return table.position == NEVER_PLAYED

    def begins(self, position: Position, event: Event) -> bool:
        """Only the opening of the bets begins a round."""
        return False

    def reopens(self, position: Position, event: Event, last: Frame[Position]) -> bool:
        """Whether an event before the payment still belongs to the round: a needless card of the bank, or a card or a
        decision of an unknown hand.
        """
        if isinstance(event, SeatActed):
            return (
                _unseated(position, event.seat) and _unknown_hand(position, "decision_after_end") and not last.next_laid
            )
        if not isinstance(event, CardDrawn) or event.card not in PIPS or position.burn:
            return False
        if _unpaid(position) and _unknown_hand(position, "card_after_end") and not last.next_laid:
            return True
        play = self._takes_needless(position)
        if play is None or play.extra or is_blackjack(play.bank):
            return False
        return self.text.unseen_extra_counts and event.face == "down"

    def begin(self, position: Position) -> tuple[Position, tuple[str, ...], bool, Effect]:
        """Begin another round of the shoe, with its burn."""
        p, each = position, self.text.burn_each
        following = p.shoe != "fresh"
        burns = following and each == "one_and_before_second"
        play = Play(start="burns" if burns else "later" if following else "first")
        # If the last round did not burn its card, one card is due, not two.
        burn = max(p.burn, 1) if following and each != "none" and p.burn >= 0 else p.burn
        p = replace(p, play=play, open=True, paid=False, shoe="used", burn=burn, standing=(), earlier=0)
        return p.without_doubts(*AFTER_END), (), False, PLAIN

    def over(self, position: Position) -> bool:
        """Whether the hands and the bank are complete."""
        return position.play is not None and self.house.over(position.play)

    def end(self, position: Position, frame: Frame[Position], *, void: bool) -> Position:
        """The position after a round; its cards lie there until the next one begins."""
        p, play = replace(position, returned=False), position.play
        if void or play is None:
            return replace(p, play=None, open=False, paid=False, streaks=p.kept_streaks)
        streaks = p.standing
        if streaks:
            streaks = self.streaks_after(streaks, play)
        return replace(p, play=replace(play, shown=True), open=False, streaks=streaks)

    def resume(self, now: Position, ended: Position) -> Position:
        """The cards of the ended round, all seen, at the present table."""
        play = replace(ended.play, shown=True) if ended.play is not None else None
        return replace(now, play=play, open=True, standing=ended.standing, earlier=ended.earlier)

    def laid(self, position: Position) -> dict[str, Any]:
        """The public hands, once a card was dealt."""
        play = position.play
        return self.house.laid(play) if play is not None and play.dealt else {}

    def alike(self, one: Position, other: Position) -> bool:
        """Whether both have the same cards, including those face down."""
        lie = [(p.play.hands, p.play.bank) for p in (one, other) if p.play is not None]
        return len(lie) == 2 and lie[0] == lie[1]

    def known(self, position: Position, frame: Frame[Position]) -> Round:
        """The round with the certain bets: after a loss, none until a correction, because they may have been
        withdrawn.
        """
        lost = position.play is not None and "bets" in position.play.doubts
        return without_bets(frame.round) if lost else frame.round

    def gives_back(self, position: Position, reason: Reason) -> Void:
        """Bets come back; open streak bets stand."""
        return Void(reason, "returned", streak_bets="carried" if position.kept_streaks else "")

    def suspended_by_loss(self, position: Position) -> Effect:
        """Suspend the round after a loss; unknown seats must be named."""
        unsure = position.play is not None and "seats" in position.play.doubts
        return Effect(remedy=NAME_SEATS) if unsure else PLAIN

    def missed(self, position: Position, event: Event) -> Position:
        """After a loss bets may have changed; before the first card the playing seats are unknown, too."""
        p, play = position, position.play
        if not p.open or play is None:
            p = self._maybe_burnt(p) if p.shoe == "used" and not p.burn else replace(p, burn=UNSURE if p.burn else 0)
            if p.shoe != "unknown" or p.seats:
                p = p.with_doubts("seats")
            return p.with_doubts("loss_after_end") if _unpaid(p) else p.without_doubts("loss_after_end")
        play = play.with_doubts("bets")
        if not play.closed or not play.dealt:
            play = play.with_doubts("seats")
        if play.closed:
            play = replace(play, unread=UNSURE)
        return replace(p, play=play, burn=UNSURE if p.burn else 0).with_doubts("seats")

    def ended_in_doubt(self, position: Position, last: Frame[Position]) -> bool:
        """Whether the last round may have had a hand whose bet is among the lost events."""
        return _unpaid(position) and _unknown_hand(position) and not last.next_laid

    def stands(self, now: Position, ended: Position, *, waits: bool) -> Position | None:
        """A payment that settles a disputed round also ends the doubts since its end."""
        stands = super().stands(now, ended, waits=waits)
        return None if stands is None else replace(stands, paid=True).without_doubts(*AFTER_END)

    def unused(self, position: Position, fact: Fact) -> tuple[Position, Effect]:
        """Suspend as after a loss; a decision that came too late must be entered again."""
        p, event = self.missed(position, fact.event), fact.event
        if p.play is None or not isinstance(event, SeatActed):
            return p, PLAIN
        return replace(p, play=p.play.doubted(f"{event.seat}.{event.hand}")), Effect(remedy=EARLIER)

    def matters(self, position: Position, event: Event) -> bool:
        """Whether a late event may change the ended round: only a new decision may.

        The cards of the shoe come in their order, and a round does not end without one that is due.
        """
        play = position.play
        if not isinstance(event, SeatActed) or play is None:
            return False
        if position.paid or (event.action == "insurance" and event.seat in play.insured):
            return False
        mine = [hand for hand in play.of(event.seat) if hand.number == event.hand]
        # A stand that is older than a double may have been meant instead of it.
        return any(not said(hand, event.action) or (event.action == "stand" and hand.doubled) for hand in mine)

    # ---- events

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> Step:
        """One event."""
        if frame is None or position.play is None:
            return self._between(position, fact)
        p, play, round_ = position, position.play, frame.round
        if play.held and not round_.suspended and isinstance(fact.event, _ENDS_FOLLOWING):
            return self._after_following(p, play, round_, fact, frame)
        return self._step(p, play, round_, fact)

    def _after_following(self, p: Position, play: Play, round_: Round, fact: Fact, frame: Frame[Position]) -> Step:
        """Apply an event after which other players can no longer follow a split or double: the waiting card is
        dealt.
        """
        given = self.house.given(play)
        if given == play or not self.house.over(given):
            return self._step(replace(p, play=given), given, round_, fact)
        p, effect = self._decisions.go(p, given, round_)
        if not isinstance(fact.event, CardDrawn | CardUnreadable):
            return p, effect
        text = say("extra_card_void", round=given.round)
        return p, replace(effect, notes=(*effect.notes, Note("bank_extra_card", text, self.law_of["bank"])))

    def _step(self, p: Position, play: Play, round_: Round, fact: Fact) -> Step:
        match fact.event:
            case CardDrawn(card=card, face=face) if card in PIPS:
                return self._card(p, play, round_, card, face)
            case CardDrawn() | CardUnreadable():
                return self._unreadable(p, play, round_)
            case SeatActed(seat=seat) as told:
                if self.house.over(play) and not play.of(seat) and not round_.suspended:  # the round was resolved
                    doubt = MISSING if "loss_after_end" in p.doubts else say("mispulled_or_unseated", seat=seat)
                    return p.with_doubts("decision_after_end"), Effect(suspend=doubt)
                return self._decisions.acted(p, play, round_, told)
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(p, play, round_, fact, one)
            case BetsClosed():
                return self._bell(p, play, round_)
            case HoleCardPeeked(blackjack=blackjack):
                return self._decisions.peek(p, play, round_, blackjack=blackjack)
            case RoundPaid():
                return p, Effect(suspend=say("paid_not_over") if play.dealt else None)
            case SeatOpened() | SeatClosed() as told:
                return self._seat(p, told, BESIDE if round_.closed else PLAIN)
            case CardExposed(hand=name):
                return self._exposed(p, play, round_, name)
            case ShoeStarted(decks=decks):
                return self._shoe_started(p, decks, play, round_)
            case CutCardDrawn():
                return self._cut_card(p, round_)
            case ShoeEmptied():
                return self._emptied(p, play, round_)
            case CardsReturned() if self.text.device == "continuous" and play.dealt:  # cards go back after the round
                text = say("cards_returned")
                return refuse(p, play, "cards_returned_early", text, self.law_of["returned"])
            case _:
                return p, BESIDE

    def _between(self, p: Position, fact: Fact) -> Step:
        """Apply an event while no round is open."""
        match fact.event:
            case CardDrawn(card=card) if card in PIPS:
                return self._card_between(p)
            case CardDrawn() | CardUnreadable():
                if p.burn:  # it may be a burn card, or no card at all
                    return replace(p, burn=UNSURE), PLAIN
                return self._maybe_burnt(p), noting(
                    "unreadable_between_rounds", say("card_may_have_left"), self.law_of["deal"]
                )
            case SeatActed(seat=seat, hand=number, action=action):
                text = say("seat_hand_action", seat=seat, number=number, action=action)
                p = p.with_doubts("decision_after_end") if _unseated(p, seat) else p
                return p, noting("decision_without_round", text, self.law_of["decision"])
            case HoleCardPeeked():
                return p, noting("peek_without_deal", say("peek_no_card"), self.law_of["peek"])
            case SeatOpened() | SeatClosed() as told:
                return self._seat(p, told, PLAIN)
            case ShoeStarted(decks=decks):
                return self._shoe_started(p, decks, None, None)
            case CutCardDrawn():
                return self._cut_card(p, None)
            case ShoeEmptied() if self.text.device != "continuous":
                return replace(p, left=0), PLAIN
            case RoundPaid() if p.play is not None:
                return replace(p, paid=True).without_doubts(*AFTER_END), PLAIN
            case _:
                return p, PLAIN

    # ---- bets and seats

    def _seat(self, p: Position, told: SeatOpened | SeatClosed, effect: Effect) -> Step:
        """Open or close a seat; after the bell this takes effect with the next round."""
        seat, opened = told.seat, isinstance(told, SeatOpened)
        if seat > self.house.seats:
            text = say("seat_of", seat=seat, seats=self.house.seats)
            return p, noting_beside("no_such_seat", text, self.law_of["seat"])
        if (seat in p.seats) == opened:
            return p, BESIDE
        seats = tuple(sorted((*p.seats, seat))) if opened else tuple(one for one in p.seats if one != seat)
        return replace(p, seats=seats), effect

    def _wager(self, p: Position, play: Play, round_: Round, fact: Fact, one: WagerPlaced | WagerWithdrawn) -> Step:
        if one.bet == "insurance" and round_.closed and isinstance(one, WagerPlaced):
            return self._decisions.insure(p, play, round_, one.seat, one.amount, chip=True)
        if round_.closed and (step := self.after_bell(p, play, round_, one)):
            return step
        if not round_.closed and (why := self.bet_refused(p, round_, one)):
            round_ = refuse_bet(round_, one, why.code, why.reason, self.cite(why.article), fact)
            return p, Effect(evidence=False, round=round_)
        law = self.cite(self.law_of["bets"])
        streaks = tuple(bet for streak in p.streaks for bet in streak.bets)
        return p, Effect(evidence=False, round=wager(round_, one, self.offered, law, fact, self.limits, streaks))

    def _bell(self, p: Position, play: Play, round_: Round) -> Step:
        if round_.closed:
            return p, PLAIN
        p, play, round_, notes = self._close(p, play, round_)
        doubt, remedy = None, NAME_SEATS
        if "seats" in play.doubts:
            doubt = say("seats_uncertain")
        elif not play.hands:
            doubt = say("no_seat")
        elif p.burn == UNSURE:
            doubt, remedy = BURNT, BURN
        elif p.left == 0:
            doubt, remedy = say("shuffle_due"), RESHUFFLE
        p = replace(p, left=p.left - 1 if p.left > 0 else p.left)
        return p, Effect(notes, suspend=doubt, remedy=remedy, round=round_)

    def _close(self, p: Position, play: Play, round_: Round) -> tuple[Position, Play, Round, Notes]:
        """Close the bets: determine the playing seats, the standing bets, and the streak bets that begin."""
        mains = tuple(sorted({one.seat for one in round_.wagers if is_main(one.bet)}))
        seats = mains or p.seats
        # Where bets are known, the reports of open seats do not matter.
        play = replace(play, round=round_.id)
        if "seats" in p.doubts and not mains:
            play = play.with_doubts("seats")
        wagers = tuple(replace(one, hand=1) if is_main(one.bet) else one for one in round_.wagers)
        round_, notes = self.checked(replace(round_, wagers=wagers))
        p = replace(p, standing=p.streaks, earlier=len(p.streaks))
        if seats and "seats" not in play.doubts:
            p, play, round_, more = self._seated(p, play, round_, seats)
            notes += more
        return replace(p, play=play, streaks=p.standing), play, round_, notes

    def _seated(
        self, p: Position, play: Play, round_: Round, seats: tuple[int, ...]
    ) -> tuple[Position, Play, Round, Notes]:
        """Deal to these seats. Bets on other seats go back; streak bets stand from now on."""
        notes = NO_NOTES
        for one in round_.wagers:  # beside a main bet, on a hand that is dealt
            on = self.on_seat(one.bet)
            if one.seat not in seats or (on and on not in seats):
                text = say("bet_without_hand", seat=one.seat, bet=one.bet)
                notes += (Note("bet_without_hand", text, self.law_of["bets"]),)
                round_ = give_back(round_, one)
        p, round_ = self.kept_open(p, round_)
        hands = tuple(Hand(seat) for seat in seats)
        first_deal = 2 * len(seats) + (2 if self.house.hole else 1)
        return p, replace(play, hands=hands, first_deal=first_deal), round_, notes

    # ---- cards

    def _card(self, p: Position, play: Play, round_: Round, card: str, face: str | None) -> Step:
        if round_.suspended:
            return replace(p, play=play.with_stray(card)), PLAIN
        if "next_card" in play.doubts:
            reason = say("after_refused")
            return replace(p, play=play.with_stray(card)), Effect(suspend=reason)
        if p.burn:
            return replace(p, burn=max(p.burn - 1, UNSURE)), BESIDE
        if not round_.closed:
            p, play, round_, notes = self._close(p, play, round_)
            reason, round_ = _before_bell(play), replace(round_, closed=True)
            return replace(p, play=play.with_stray(card)), Effect(notes, suspend=reason, round=round_)
        if self.house.over(play) and _unknown_hand(p, "card_after_end"):  # the round was resolved
            return replace(p, play=play.with_stray(card)), Effect(suspend=MISSING)
        if self.house.over(play):  # the round was resolved; an ace of the bank may count one now
            text = say("extra_card_counts")
            play = self.house.advanced(replace(play, bank=(*play.bank, card), extra=True))
            return self._decisions.go(p, play, round_, (Note("bank_extra_card", text, self.law_of["bank"]),))
        notes = NO_NOTES
        if face == "up" and self.text.face_up != "valid":
            if self.text.face_up == "void" or play.start != "first" or play.dealt:
                return refuse(p, play, "card_face_up", say("card_face_up"), self.law_of["face_up"])
            notes = (Note("first_card_face_up", say("first_card_face_up"), self.law_of["face_up"]),)
        if card in play.entered:
            reason = say("told_after_all")
            return replace(p, play=play.with_stray(card)), Effect(notes, suspend=reason)
        hole = self.house.hole and play.dealt + 1 == play.first_deal
        play, why = self.house.placed(play, card)
        if why == "undecided" and self.text.mispulled != "doubt":
            return self._mispulled(p, play, round_, card, face)
        if why:
            reason = say("before_peek")
            if why == "undecided":
                reason = say("undecided", hand=play.hands[play.turn].name)
            return replace(p, play=play.with_stray(card)), Effect(notes, suspend=reason)
        if face == "up" and self.text.hole_replaced and hole:
            return self._hole_turned(p, play, round_)
        return self._decisions.go(p, play, round_, notes)

    def _mispulled(self, p: Position, play: Play, round_: Round, card: str, face: str | None) -> Step:
        """Apply a card without a request: a seen card is discarded, an unseen one waits for the next hand, or the
        bank.
        """
        hand = play.hands[play.turn].name
        if face == "up":
            play = play.with_doubts("mispulled")
            play = replace(play, discarded=(*play.discarded, card))
            return refuse(p, play, "card_mispulled", say("mispulled_seen", hand=hand), self.law_of["mispulled"])
        if face is None and self.text.mispulled == "ask":
            reason = say("mispulled_ask", hand=hand)
            return replace(p, play=play.with_stray(card)), Effect(suspend=reason, remedy=SEEN_OR_NOT)
        play = play.with_doubts("mispulled")
        note = Note("card_mispulled", say("mispulled_unseen", hand=hand), self.law_of["mispulled"])
        if (seat := unseated_decision(play, round_)) is not None:
            play = replace(play, held=(*play.held, card))
            return replace(p, play=play), Effect((note,), suspend=say("mispulled_or_unseated", seat=seat))
        return self._decisions.go(p, replace(play, held=(*play.held, card)), round_, (note,))

    def _hole_turned(self, p: Position, play: Play, round_: Round) -> Step:
        """Replace the bank's second card, which was turned when it was dealt."""
        note = Note("hole_card_turned", say("hole_turned"), self.law_of["hole_turned"])
        return self._decisions.go(p, self.house.turned(play), round_, (note,))

    def _takes_needless(self, p: Position) -> Play | None:
        """The last round, if a card that comes now is a needless one of its bank; else None."""
        last = p.play
        if last is None or p.paid or len(last.bank) < 2 or self.house.draws(last.bank):
            return None
        return last

    def _card_between(self, p: Position) -> Step:
        """Apply a card after a round: a needless card of the bank, or an unknown one."""
        if p.burn:
            return replace(p, burn=max(p.burn - 1, UNSURE)), PLAIN
        last = self._takes_needless(p)
        p = p.with_doubts("card_after_end") if _unpaid(p) else p.without_doubts("card_after_end")
        p = self._maybe_burnt(p)
        if last is not None:
            return p, noting("bank_extra_card", say("extra_card_void", round=last.round), self.law_of["bank"])
        return p, noting("card_without_round", say("card_no_deal"), self.law_of["deal"])

    def _maybe_burnt(self, p: Position) -> Position:
        """Note that a card between two rounds may be the one that is burnt in the next."""
        each = self.text.burn_each != "none" and p.shoe != "fresh"
        return replace(p, burn=UNSURE) if each else p

    def _unreadable(self, p: Position, play: Play, round_: Round) -> Step:
        remedy = BURN if p.burn else CORRECT
        if p.burn:
            p = replace(p, burn=UNSURE)  # it may be a burn card, or no card at all
            if not round_.closed:
                return p, BESIDE
        if round_.closed:
            return replace(p, play=play.with_unread()), Effect(suspend=say("card_unreadable"), remedy=remedy)
        p, play, round_, notes = self._close(p, play, round_)
        effect = Effect(notes, suspend=_before_bell(play), round=replace(round_, closed=True))
        return replace(p, play=play.with_unread()), effect

    def _exposed(self, p: Position, play: Play, round_: Round, name: str) -> Step:
        """Apply the exposure of a card that should lie face down; where the text has no rule, a person decides."""
        if not round_.closed:
            return p, BESIDE
        if key := named(name):
            name = f"{key[0]}.{key[1]}"
        if UNKNOWN not in self.house.laid(play)["hands"].get(name, ()):
            return p, PLAIN
        if name == DEALER and self.text.hole_replaced and self.house.undecided(play):
            return self._hole_turned(p, play, round_)
        note = Note("card_exposed", say("a_card_seen", hand=name), self.law_of["exposed"])
        return p, Effect((note,), suspend=say("face_down_seen"))

    # ---- the cards and their device

    def _shoe_started(self, p: Position, decks: int, play: Play | None, round_: Round | None) -> Step:
        text = say("wrong_decks", decks=decks, allowed=self.text.decks)
        wrong = (
            (Note("wrong_number_of_decks", text, self.law_of["decks"]),) if decks not in (0, self.text.decks) else ()
        )
        p = replace(p, burn=self.text.burn, left=self.text.rounds, shoe="fresh")
        if play is None or round_ is None:
            return p, Effect(beside=wrong)
        if round_.closed and (play.dealt or round_.suspended):
            return p, Effect(beside=wrong, void=round_.suspended or say("never_completed"))
        left = 0 if round_.closed and self.text.rounds > 0 else self.text.rounds
        return replace(p, play=replace(play, start="first"), left=left, shoe="used"), Effect(beside=wrong)

    def _cut_card(self, p: Position, round_: Round | None) -> Step:
        """The cut card makes the round that is being dealt the last before a shuffle; between two rounds, the next
        one.
        """
        if self.text.device != "shoe":
            return p, noting("white_card", say("white_card"), self.law_of["white_card"])
        if p.left != UNLIMITED:
            return p, BESIDE
        return replace(p, left=0 if round_ is not None and round_.closed else 1), PLAIN

    def _emptied(self, p: Position, play: Play, round_: Round) -> Step:
        if self.text.device == "continuous":
            return p, BESIDE
        p = replace(p, left=0)
        if not round_.closed:
            return p, BESIDE
        waits = not play.hands or bool(round_.suspended) or self.house.due(play, burn=bool(p.burn))[0] in _CARDS
        return p, Effect(suspend=say("cards_ended"), remedy=RESHUFFLE) if waits else PLAIN

    # ---- correction of a deal; the round goes on from there

    def lay(
        self,
        position: Position,
        hands: Mapping[str, tuple[str, ...]],
        frame: Frame[Position],
        before: Frame[Position] | None,
        *,
        named: bool,
        reopened: bool,
    ) -> Step:
        """The position of the round with these hands, or why they are refused."""
        assert position.play is not None
        p, before_ = position, position.play
        hands, held = _without_held(hands)
        unseated = "seats" in before_.doubts or not before_.hands
        found = self._relaid(p, replace(before_, held=held), frame.round, hands)
        if found is None or (held and self.text.mispulled == "doubt"):
            remedy = NAME_SEATS if unseated else CORRECT
            return p, Effect(suspend=say("no_deal"), remedy=remedy, again=True)
        p, play, round_, notes = found
        doubt, earlier = left_open(self.house, play, before_)
        if not doubt and self.rests_on_unknown(play, round_):
            doubt, earlier = say("third_unknown"), True
        if doubt:
            return position, Effect(suspend=doubt, remedy=EARLIER if earlier else CORRECT, again=True)
        lie, lay = Counter(play.cards), Counter(before_.cards)
        told = lay - Counter(before_.entered) + Counter(before_.strays)
        play = replace(play, entered=tuple((lie - told).elements()), strays=(), unread=0, corrected=True)
        play = play.without_doubts("seats", "bets", "next_card")
        seats = tuple(hand.seat for hand in play.hands)
        if "bets" in before_.doubts and play.dealt == play.first_deal:
            play = replace(play, uncounted=seats)
        if unseated:
            mains = any(is_main(one.bet) for one in frame.round.wagers)
            p = replace(p, seats=p.seats if mains else seats).without_doubts("seats")
        strays = bool(Counter(before_.strays) - (lie - lay))
        if self._burn_uncertain(p, play, unseated=unseated, strays=strays, waited=bool(frame.round.suspended)):
            # The next correction confirms it.
            start = "later" if play.start == "burns" and play.dealt else play.start
            play = replace(play, strays=before_.strays, start=start)
            p = replace(p, play=play, burn=0 if play.dealt else UNSURE)
            return p, Effect(notes, suspend=BURNT, remedy=BURN, round=round_)
        p = replace(p, burn=0 if play.dealt else max(p.burn, 0), streaks=p.standing)
        if play.dealt < play.first_deal:
            return replace(p, play=play), Effect(notes, round=round_)
        return self._decisions.go(p, self.house.advanced(play), round_, notes)

    def _relaid(
        self, p: Position, play: Play, round_: Round, laid: Mapping[str, tuple[str, ...]]
    ) -> tuple[Position, Play, Round, Notes] | None:
        """The round with the hands as they lie, and the bets that they require; None where no deal gives them."""
        before, hands, notes = play, hands_of(laid), NO_NOTES
        if hands is None:
            return None
        if "bets" in play.doubts:
            p = replace(p, standing=p.standing[: p.earlier])
            round_ = without_bets(round_)
        if "seats" in play.doubts or not play.hands:
            seats = tuple(sorted(seat for seat, number in hands if number == 1))
            if not seats or seats[-1] > self.house.seats:
                return None
            p, play, round_, notes = self._seated(p, play, round_, seats)
        found = relaid(self.house, play, before, hands, laid.get(DEALER))
        if found is None:
            return None
        lay, wagers = {hand.name for hand in play.hands}, round_.wagers
        for hand in found.hands:
            if hand.name not in lay:
                wagers = added(wagers, hand.seat, hand.number, "main", self._decisions.decides(round_, hand.seat))
        if found.dealt < found.first_deal:
            wagers = tuple(one for one in wagers if not one.bet.startswith(("double", "insurance")))
            return p, found, replace(round_, wagers=wagers), notes
        round_ = replace(round_, wagers=wagers)
        if found.bank[0][0] == "A":
            return p, found, round_, notes
        # Insurance is against an ace only; laid insurance goes back.
        chips = (one.seat for one in wagers if one.bet.startswith("insurance"))
        for seat in dict.fromkeys((*found.insured, *chips)):
            text = say("seat_action", seat=seat, action="insurance")
            notes += (Note("decision_not_allowed", text, self.law_of["insurance"]),)
        round_ = replace(round_, wagers=tuple(one for one in wagers if not one.bet.startswith("insurance")))
        return p, replace(found, insured=()), round_, notes

    def _burn_uncertain(self, p: Position, play: Play, *, unseated: bool, strays: bool, waited: bool) -> bool:
        """Whether a person must state that the burn is done.

        The remedy of an `unseated` round names its seats only, not the burn; `strays` that came while the round
        `waited` may be burnt cards.
        """
        if not play.dealt:
            return (unseated and p.burn == UNSURE) or (strays and p.burn > 0)
        return waited and play.start == "burns" and self.house.bank_next(play) and self.house.needs(play)

    # ---- the result

    def resolve(self, position: Position, frame: Frame[Position]) -> Result:
        """The result of every hand against the bank, and of the bets beside them."""
        p, play, round_ = position, position.play, frame.round
        assert play is not None
        compared = self.house.compare(play)
        blackjack = is_blackjack(play.bank)
        total = 21 if blackjack else count(play.bank)[0]
        law = dict.fromkeys(self.law_of[why] for one in compared for why in one.why)
        wins, parts, pushes = hands_won(compared, round_.wagers, self.text.bettors, free=self.text.free)
        if play.insured:
            law[self.law_of["insurance_won" if blackjack else "insurance_lost"]] = None
            if blackjack:
                bought = [("insurance" + self._decisions.decides(round_, seat)[4:], seat) for seat in play.insured]
                bought += [(one.bet, one.seat) for one in round_.wagers if one.bet.startswith("insurance:")]
                wins += (Win(bet, "2", seat=seat) for bet, seat in dict.fromkeys(bought))
        extra = self.beside(p, play, round_, compared)
        wins += extra.wins
        law |= dict.fromkeys(extra.law)
        outcome = outcome_of(play, compared, total, blackjack=blackjack) | extra.outcome
        if extra.wagers:
            round_ = replace(round_, wagers=(*round_.wagers, *extra.wagers))
        if play.corrected:
            law[self.article_void] = None
        result = resolved(
            round_,
            self.terms,
            outcome=outcome,
            winners=tuple(wins),
            pushes=tuple(pushes),
            parts=tuple(parts),
            jackpots=extra.awards,
            announcements=announced(compared, total, blackjack=blackjack),
            law=tuple(self.cite(article) for article in (*self.text.law, *law)),
        )
        return replace(result, stands=extra.stands) if extra.stands else result


# ---- small facts

# The name of the cards that were drawn by mistake and not seen, where a person enters the hands.
_HELD: Final = "held"
# After these events a split or a double can no longer be followed.
_ENDS_FOLLOWING: Final = (CardDrawn, CardUnreadable, SeatActed, RoundPaid)
SEEN_OR_NOT: Final = say("do_seen_or_not")
# The expected things while a card is due.
_CARDS: Final = ("card", "burn")


def bad_bet(code: str, one: WagerPlaced | WagerWithdrawn, article: str) -> Note:
    """Why a bet of a seat is refused."""
    return Note(code, say("seat_bet", seat=one.seat, bet=one.bet), article)


def _unpaid(p: Position) -> bool:
    """Whether the last round ended and its prizes are not paid yet."""
    return p.play is not None and not p.paid


def _unseated(p: Position, seat: int) -> bool:
    """Whether a seat has no hand in the last round, which is not paid yet."""
    return p.play is not None and _unpaid(p) and not p.play.of(seat)


def _unknown_hand(p: Position, *more: TableDoubt) -> bool:
    """Whether two signs show that the bet of a hand of the last round was not reported.

    The signs are what came since its end, `more`, and a card that no hand of it had asked for; a person who enters the
    hands settles the last one.
    """
    signs = {*more, *(one for one in AFTER_END if one in p.doubts)}
    mispulled = p.play is not None and "mispulled" in p.play.doubts and not p.play.corrected
    return len(signs) + mispulled > 1


def _before_bell(play: Play) -> Reason:
    """Why a card that came while the bets were open is doubtful: after a loss the bell may be missing."""
    return MISSING if "bets" in play.doubts else say("before_bell")


def _without_held(hands: Mapping[str, tuple[str, ...]]) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """The hands, and the cards that a person laid apart as drawn by mistake and not seen."""
    held = hands.get(_HELD, ())
    if not held or any(card not in PIPS for card in held):
        return hands, ()
    return {name: cards for name, cards in hands.items() if name != _HELD}, held
