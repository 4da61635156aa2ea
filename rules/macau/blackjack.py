"""Macau blackjack: Despacho 57/2009 (edition 2009) and 56/2004 with 42/2007 (edition 2004).

The flow: the bets are opened and laid; the bell ends them; the cards of 4(2) are burnt; two cards go to every seat
with a bet, the bank has one (shoe, shuffler) or two (metal box, hole card), one at a time from the left (5); in the
hole-card procedure the bank peeks under an ace or a ten (5(2)(3)(3)); the seats decide one after the other (6); the
bank takes its cards (6(1)); every hand is compared (9 to 12) and the additional bets are paid (13 to 16).

What the table tells:

- `bets.opened`, then `wager.placed` where chips are seen, else `seat.opened`, `seat.closed`; `bets.closed`: the bell.
- `card.drawn` in the order of the deal, burnt cards too: who receives it follows from the procedure. `face` is how it
  lay in the shoe, "down" or not told; "up" is a card that is void and replaced (5(1)(1)). Cards that lie face down are
  told like all others and shown by no view before their time.
- `hole_card.peeked` whenever the bank must peek.
- `seat.acted` for each decision; `amount` is 0 or, where the bet is known, exactly what the decision adds; insurance is
  told with its whole amount, or as wagers on `insurance`, which add up. Hands without any choice end by themselves,
  but not while cards of theirs lie face down: then blackjack and 21 are told to stand, too.
- Bets on another seat n are `any_pair:n`, `sevens:n`, `over_13:n`, `under_13:n`; `main:2`, `main:3` are those of
  further players on one seat.
- Hands are named "dealer", "3.1", "3.2", or "seat_3", "seat_3_2" as a console does; a new hand comes after the seat's
  last. `deal.corrected` names the hands that changed, as they lie now; the hole card may be left out.
- `due` in the view says what the rules wait for: a card, a decision with the actions allowed, or the peek. Of a hand
  that lies face down it names what some cards could decide there; `refused` says why a decision was not taken.

Readings:

- 3, 5(1): with a known main bet those seats play that have one; without any, the seats opened.
- 3, 5(1): a round whose seats are not known waits for `deal.corrected` that names all of them.
- 5(1): the bank's first card ends the first pass; after the seats' second cards by option.
- 5(1)(1): a card that came face up is void, the next one takes its place; the first one of the game counts by option.
- 5(1)(2): a card without a decision, an unread card, or a loss after the bell suspends the round; it goes on when the
  deal is corrected, and is void when declared so, when bets are opened or, once cards are out, a new shoe starts.
- 5(1)(2): the bets of a void round come back; streak bets stand as they stood (no article speaks of the bets).
- 5(1)(2): after a loss the bets told before are not known; a round so corrected is resolved, or void, without them.
- 5(1)(2): a resolved round can be corrected until the bets are opened; paid in doubt, its first result stands.
- 5(1)(2): a hole card that is not named goes on lying there; where that is not known, the round waits.
- 5(1)(2): another first card of the bank undoes what it does not allow: insurance (12(1)), even money (10(3)),
  surrender (18(1)), half for five cards (19(1)); a peek that saw a blackjack which is none undoes all hands' ends.
- 5(1)(2): a hit told before a correction is told again; so is a double, a surrender or half for five cards that was
  told and not taken. A doubled hand waits for its third card.
- 5(2)(3)(8): the maximum binds what is laid before the bell, not insurance, splits and doubles (12, 16, 17).
- 4(2): a burn that was not seen whole suspends at the bell, until an empty correction says that it is done; so does one
  that may be among the cards told, or lost, while the round waited or between two rounds.
- 4(2): the card that a round without cards did not burn is not due twice in the next.
- 2(2)(1): the white card that comes while a round is dealt makes it the last; between two, the one after it.
- 2(2)(3): the metal box serves one round. A table that was never played on is past its burn.
- 6(1): the bank draws where a hand or an insurance depends on it (option: always).
- 6(1): its needless card is void; by option, unseen before the payment, it counts and the result is corrected.
- 6(3): a decision out of turn is noted and changes nothing; the card after a hit, double or split that was not taken is
  of no hand, unless a decision was taken since. Two decisions before one card suspend, unless the cards tell which it
  was.
- 6(6): only ace and six are the soft 17; afterwards its ace counts what is best again.
- 10(3), 12: even money and insurance end with the peek or the bank's second card; both are taken while a round waits.
- 12(1): insurance is measured by the whole bet of a seat, whoever of the players laid it.
- 13: a pair is two cards of one rank; additional bets on a seat that does not play, or from one, go back.
- 13(1): any pair is paid again for every further pair.
- 13(2)(2): three sevens are paid where two were split, a plain third seven by option; where a person entered the hands,
  if the cards prove it, and where a bet rests on it the deal is entered as it lay before that split.
- 13(3): over and under 13 count the ace as one, else over would favour the player; 13 itself loses.
- 13(5): one button per seat; it advances on a win, stays on a tie (11(2)), falls with a loss, split hands by 16(7).
- 13(5)(2)(v): from the bell of their first round these bets are no more changed; (vi): a seat that does not play loses
  them (option: they stand). Where no wagers are told `stands` names the kinds that some seat still has open.
- 15: the special prize is for exactly three cards and closes the hand (option: on top of its result).
- 16(3), 16(5): aces are split again, other pairs too: both options.
- 16(6), 17(3): against a bank blackjack a seat that split loses one bet only, and hands that had bust (7(2)) count for
  it; a double made by 17(1)(1) or (2) comes back, one by (3) is lost unless `limit_double_11` (10(7)).
- 17(1)(2): split hands are doubled by this item only.
- 18(2): a further card is one drawn after the first deal: then nobody surrenders; until then any seat may, out of turn
  too. 21(1) leaves no choice; by option each hand may before its own third card.
- 19: half the bet is for exactly five cards.
- 20(1): the bets of further players follow the decisions of the seat; where no bet is told all that may lie are named.
- 6(3): a late event with its age is put at its time; a decision whose place is not known, told after the end and not
  known before, puts the result in doubt.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import groupby, product
from typing import Any, ClassVar, Final

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
from protocols.contract.reasons import Reason, say
from rules.engine.facts import BESIDE, PLAIN, Effect, Fact, Frame, Note, Table
from rules.engine.money import settle
from rules.engine.refold import Game
from rules.engine.rounds import Round, resolved, terms, wager
from rules.engine.ruleset import Bet, Result, View, Void, Win
from rules.games.blackjack import (
    DEALER,
    UNSURE,
    Hand,
    House,
    Play,
    count,
    is_blackjack,
    said,
    sevens,
    third_cards,
)
from rules.games.blackjack_corrections import hands_of, left_open, named, relaid
from rules.games.cards import DECK, PIPS, UNKNOWN
from rules.macau.blackjack_bets import (
    ACROSS,
    FAMILIES,
    KINDS,
    PAYTABLE,
    PERMITTED,
    STREAKS,
    WHY,
    Streak,
    Won,
    added,
    announced,
    called,
    hands_won,
    is_main,
    on_pair,
    on_two,
    outcome_of,
    streak_ends,
)
from rules.macau.blackjack_decisions import (
    NEVER_PLAYED,
    NO_NOTES,
    UNLIMITED,
    Decisions,
    Notes,
    Position,
    Step,
    last_refusal,
    noting,
    noting_beside,
    refuse,
)
from rules.macau.blackjack_options import BlackjackOptions

VOID_WORDS: Final = {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}
CORRECT: Final = say("do_correct")
NAME_SEATS: Final = say("do_name_seats")
BURN: Final = say("do_burn")
RESHUFFLE: Final = say("do_shuffle")
EARLIER: Final = say("do_earlier")
MISSING: Final = say("round_events")
BURNT: Final = say("burnt_count")

_AMENDED: Final = ("6", "13", "16", "17", "21")


class BlackjackState(Table[Position], frozen=True):
    """Where a table stands."""


class Blackjack(Game[Position]):
    """The ruleset."""

    id: ClassVar[str] = "macau.blackjack"
    title: ClassVar[str] = "Blackjack, Macau"
    law: ClassVar[str] = "Despacho 57/2009; edition 2004: Despacho 56/2004 with 42/2007"
    Options: ClassVar[type[BlackjackOptions]] = BlackjackOptions
    State: ClassVar[type[BlackjackState]] = BlackjackState
    own: ClassVar[frozenset[type[Event]]] = frozenset(
        (
            *(CardDrawn, CardUnreadable, CardExposed, CardsReturned, CutCardDrawn, HoleCardPeeked),
            *(SeatActed, SeatClosed, SeatOpened, ShoeEmptied, ShoeStarted),
        )
    )
    steps_wagers: ClassVar[bool] = True
    article_void: ClassVar[str] = "5(1)(2)"
    article_bets: ClassVar[str] = "5(1)"
    article_bell: ClassVar[str] = "5(1)"
    remedy: ClassVar[Reason] = CORRECT
    waits_for_bell = True

    def __init__(self, options: BlackjackOptions) -> None:
        """Work out, once, what depends on the options and on two cards alone."""
        self.options = options
        self._2004 = options.edition == "2004"
        down = {"1": "both", "2": "none", "3": options.players_down}[options.procedure]
        self.house = House(
            # The bank's second card lies face down from the first deal on.
            hole=options.procedure == "3" or options.device == "metal_box",
            peeks=options.procedure == "3",
            down={"none": (), "first": (0,), "second": (1,), "both": (0, 1)}[down],
            bank_last=options.bank_first_card == "last",
            seats=options.seats,
            soft_17=options.soft_17,
            always_draws=options.bank_draws == "always",
            max_hands=options.max_hands,
            resplit=options.resplit,
            resplit_aces=options.resplit_aces,
            at_once=options.split_cards == "at_once",
            doubling=options.doubling,
            limit_double_11=options.limit_double_11,
            surrender=options.surrender,
            special_prize=options.special_prize,
        )
        self._decisions = Decisions(options, self.house)
        self._rounds = 1 if options.device == "metal_box" else UNLIMITED
        self._burn = options.decks if options.burn == "decks" else 1
        self.terms = terms(self.id, options.edition, options, VOID_WORDS)
        families = options.bets_offered or tuple(bet for bet in FAMILIES if bet not in PERMITTED)
        self._families = frozenset(families)
        bets = [bet for bet in PAYTABLE if bet.id in families]
        across = [
            replace(bet, id=f"{bet.id}:n", text=f"the same for seat n: {bet.text}") for bet in bets if bet.id in ACROSS
        ]
        further = Bet("main:n", "1; blackjack 3/2", "art. 20(1)", "the bet of the n-th player on a seat, 2 or more")
        self._bets = (*bets, *across, *((further,) if options.bettors > 1 else ()))
        self.offered = frozenset(
            (
                *(bet for bet in families if bet not in ("double", "insurance")),
                *(f"{bet}:{seat}" for bet in ACROSS if bet in families for seat in range(1, options.seats + 1)),
                *(f"main:{place}" for place in range(2, options.bettors + 1)),
            )
        )
        self._cites: dict[str, str] = {}
        article = "5(2)(1)(2)" if options.device == "metal_box" else "5(2)(1)(1)"
        self._dealing = {"1": article, "2": "5(2)(2)", "3": "5(2)(3)"}[options.procedure]
        self._on_two: dict[tuple[str, str], tuple[Won, ...]] = {
            two: tuple(won for won in on_two(*two, options.ace_over_under) if won[0] in self._families)
            for two in product(DECK, DECK)
        }

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of the text."""
        return self._bets

    def cite(self, article: str) -> str:
        """The article in the edition's numbering; kept, there are few."""
        found = self._cites.get(article)
        if found is None:
            found = self._cites[article] = self._cited(article)
        return found

    def _cited(self, article: str) -> str:
        if not self._2004:
            return f"Despacho 57/2009 art. {article}"
        head, _, rest = article.partition("(")
        if head == "11":
            return f"Despacho 56/2004 art. 11({rest.partition('(')[2]}"
        return f"Despacho 56/2004 art. {article}{' (42/2007)' if head in _AMENDED else ''}"

    # ---- what may be shown

    def view(self, state: Table[Position]) -> View:
        """Phase: idle, burning, betting, dealing, suspended, resolved, ended (no round before a shuffle)."""
        p, frame, last = state.position, state.open, state.last
        streaks = {str(one.seat): one.wins + 1 for one in p.streaks}
        detail: dict[str, Any] = {"seats": p.seats, **({"streaks": streaks} if streaks else {})}
        if frame is None or p.play is None:
            if last is not None and p.play is not None:
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
        """Whom the rules wait for: a card, the peek, or a decision with the actions allowed."""
        kind, hand = self.house.due(play, burn=bool(p.burn))
        if kind == "burn":
            return {"kind": "card", "hand": "burn"}
        if kind != "decision" or hand is None:
            return {"kind": kind, "hand": DEALER if hand is None else hand.name}
        actions = self.house.possible_actions(play, hand)
        due = {"kind": "decision", "hand": hand.name, "seat": hand.seat, "actions": actions}
        if self.options.bettors > 1:
            due["decides"] = self._decider(round_, hand.seat)
        if self.options.surrender == "before_any_card":
            waiting = play.hands[play.turn + 1 :]
            if early := tuple(one.seat for one in waiting if self.house.offers_surrender(play, one)):
                due["surrender"] = early
        return due

    def _decider(self, round_: Round, seat: int) -> str:
        """Art. 20(1): whose decision counts, by the name of his bet."""
        mains = [one for one in round_.wagers if one.seat == seat and one.hand == 1 and is_main(one.bet)]
        mains.sort(key=lambda one: one.bet)
        if not mains:
            return "main"
        match self.options.decides:
            case "seated":
                return "main"
            case "seated_or_nearest":
                return mains[0].bet
            case _:
                most = max(one.amount for one in mains)
                highest = [one.bet for one in mains if one.amount == most]
                return highest[0] if len(highest) == 1 else "main"

    # ---- the life of a round

    def fresh(self) -> Position:
        """A table that was never played on is past its burn."""
        return NEVER_PLAYED

    def untouched(self, table: Table[Position]) -> bool:
        """No seat, no shoe, no round was told yet."""
        return table.position == NEVER_PLAYED

    def begins(self, position: Position, event: Event) -> bool:
        """Only the opening of the bets begins a round."""
        return False

    def reopens(self, position: Position, event: Event) -> bool:
        """Art. 6(1): a card that the bank took unseen before the payment, and that it had not to take."""
        if not isinstance(event, CardDrawn) or event.card not in PIPS or position.burn:
            return False
        last = self._takes_needless(position)
        if last is None and position.gap:  # art. 5(1): a hand of that round may not have been told
            return True
        if last is None or last.extra or is_blackjack(last.bank):
            return False
        return self.options.extra_card == "valid_if_unseen" and event.face == "down"

    def begin(self, position: Position) -> tuple[Position, tuple[str, ...], bool, Effect]:
        """Another round of the shoe, with the burn of art. 4(2)."""
        p, each = position, self.options.burn_each_round
        following = not p.fresh
        play = Play(first=p.fresh, burns=following and each == "one_and_before_second")
        # What a round that never burnt its card left over is not due twice.
        burn = max(p.burn, 1) if following and each != "none" and p.burn >= 0 else p.burn
        p = replace(p, play=play, open=True, paid=False, fresh=False, begun=True, burn=burn, standing=(), earlier=0)
        p = replace(p, beyond=False, gap=False)
        return p, (), False, PLAIN

    def over(self, position: Position) -> bool:
        """No hand and no bank waits for anything."""
        return position.play is not None and self.house.over(position.play)

    def end(self, position: Position, *, void: bool) -> Position:
        """The cards of a round that counts lie there until the next one begins."""
        p, play = position, position.play
        if void or play is None:
            return replace(p, play=None, open=False, paid=False, streaks=p.kept_streaks)
        streaks = p.standing
        if streaks:
            streaks = streak_ends(streaks, self.house.compare(play), absent=self.options.streak_absent)[0]
        return replace(p, play=replace(play, shown=True), open=False, streaks=streaks)

    def resume(self, now: Position, ended: Position) -> Position:
        """The cards of then, all seen, at the table of now."""
        play = replace(ended.play, shown=True) if ended.play is not None else None
        return replace(now, play=play, open=True, standing=ended.standing, earlier=ended.earlier)

    def laid(self, position: Position) -> dict[str, Any]:
        """The hands as they may be shown, once a card was dealt."""
        play = position.play
        return self.house.laid(play) if play is not None and play.dealt else {}

    def alike(self, one: Position, other: Position) -> bool:
        """The same cards, those face down too."""
        lie = [(p.play.hands, p.play.bank) for p in (one, other) if p.play is not None]
        return len(lie) == 2 and lie[0] == lie[1]

    def known(self, position: Position, frame: Frame[Position]) -> Round:
        """After a loss the bets told before may have been taken back, until a correction."""
        lost = position.play is not None and position.play.lost
        return replace(frame.round, wagers=()) if lost else frame.round

    def gives_back(self, position: Position, reason: Reason) -> Void:
        """Bets come back; open streak bets stand."""
        return Void(reason, "returned", streak_bets="carried" if position.kept_streaks else "")

    def suspended_by_loss(self, position: Position) -> Effect:
        """Seats that are not known must be named."""
        return Effect(remedy=NAME_SEATS) if position.play is not None and position.play.unsure else PLAIN

    def missed(self, position: Position) -> Position:
        """Bets may have been laid or taken back; before the first card it is not known which seats play, either."""
        p, play = position, position.play
        if not p.open or play is None:
            p = self._maybe_burnt(p) if p.begun and not p.burn else replace(p, burn=UNSURE if p.burn else 0)
            gap = play is not None and not p.paid
            return replace(p, unsure=p.unsure or p.begun or bool(p.seats) or p.fresh, gap=gap)
        if play.closed:
            play = replace(play, unsure=play.unsure or not play.dealt, lost=True, unread=UNSURE)
        else:
            play = replace(play, unsure=True, lost=True)
        return replace(p, play=play, unsure=True, burn=UNSURE if p.burn else 0)

    def ended_in_doubt(self, position: Position) -> bool:
        """Art. 5(1): a card came that no hand of it asked for, and what is lost may be that hand's bet."""
        return position.beyond and position.gap

    def unused(self, position: Position, fact: Fact) -> tuple[Position, Effect]:
        """As after a loss; and a decision that was told too late must be told again."""
        p, event = self.missed(position), fact.event
        if p.play is None or not isinstance(event, SeatActed):
            return p, PLAIN
        return replace(p, play=p.play.doubted(f"{event.seat}.{event.hand}")), Effect(remedy=EARLIER)

    def matters(self, position: Position, event: Event) -> bool:
        """Whether a late event may change the round that ended: only a decision that it does not know yet.

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
        match fact.event:
            case CardDrawn(card=card, face=face) if card in PIPS:
                return self._card(p, play, round_, card, face)
            case CardDrawn() | CardUnreadable():
                return self._unreadable(p, play, round_)
            case SeatActed() as told:
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
            case CardsReturned() if self.options.device == "continuous" and play.dealt:  # 2(2)(4): after the round
                text = say("cards_returned")
                return refuse(p, play, "cards_returned_early", text, "2(2)(4)")
            case _:
                return p, BESIDE

    def _between(self, p: Position, fact: Fact) -> Step:
        """No round is open."""
        match fact.event:
            case CardDrawn(card=card) if card in PIPS:
                return self._card_between(p)
            case CardDrawn() | CardUnreadable():
                if p.burn:  # it may have been one of the burn, or none at all
                    return replace(p, burn=UNSURE), PLAIN
                return self._maybe_burnt(p), noting("unreadable_between_rounds", say("card_may_have_left"), "5(1)")
            case SeatActed(seat=seat, hand=number, action=action):
                return p, noting(
                    "decision_without_round", say("seat_hand_action", seat=seat, number=number, action=action), "6(3)"
                )
            case HoleCardPeeked():
                return p, noting("peek_without_deal", say("peek_no_card"), "5(2)(3)(3)")
            case SeatOpened() | SeatClosed() as told:
                return self._seat(p, told, PLAIN)
            case ShoeStarted(decks=decks):
                return self._shoe_started(p, decks, None, None)
            case CutCardDrawn():
                return self._cut_card(p, None)
            case ShoeEmptied() if self.options.device != "continuous":
                return replace(p, left=0), PLAIN
            case RoundPaid() if p.play is not None:
                return replace(p, paid=True, beyond=False, gap=False), PLAIN
            case _:
                return p, PLAIN

    # ---- bets and seats

    def _seat(self, p: Position, told: SeatOpened | SeatClosed, effect: Effect) -> Step:
        """A seat opened or closed after the bell plays, or not, from the next round on."""
        seat, opened = told.seat, isinstance(told, SeatOpened)
        if seat > self.options.seats:
            return p, noting_beside("no_such_seat", say("seat_of", seat=seat, seats=self.options.seats), "3(1)")
        if (seat in p.seats) == opened:
            return p, BESIDE
        seats = tuple(sorted((*p.seats, seat))) if opened else tuple(one for one in p.seats if one != seat)
        return replace(p, seats=seats), effect

    def _wager(self, p: Position, play: Play, round_: Round, fact: Fact, one: WagerPlaced | WagerWithdrawn) -> Step:
        if one.bet == "insurance" and round_.closed and isinstance(one, WagerPlaced):
            return self._decisions.insure(p, play, round_, one.seat, one.amount, chip=True)
        if not round_.closed and (refused := self._bet_refused(p, round_, one)):
            code, article = refused
            return refuse(p, play, code, say("seat_bet", seat=one.seat, bet=one.bet), article)
        return p, Effect(evidence=False, round=wager(round_, one, self.offered, self.cite("13"), fact))

    def _bet_refused(self, p: Position, round_: Round, one: WagerPlaced | WagerWithdrawn) -> tuple[str, str] | None:
        """Why a bet is not taken, and the article; None where it is."""
        if one.seat > self.options.seats:
            return "no_such_seat", "3(1)"
        if one.bet in STREAKS and any(streak.seat == one.seat for streak in p.streaks):
            return "streak_bets_stand", "13(5)(2)(v)"
        if isinstance(one, WagerWithdrawn):
            return None
        kind = KINDS.get(one.bet.partition(":")[0])
        if kind and self.options.additional_bets == "one":
            kinds = {KINDS.get(held.bet.partition(":")[0]) for held in round_.wagers if held.seat == one.seat}
            if kinds - {None, kind}:
                return "second_additional_bet", "13"
        most = self.options.table_maximum
        if most and sum(held.amount for held in round_.wagers) + one.amount > most:
            return "table_maximum", "5(2)(3)(8)"
        return None

    def _bell(self, p: Position, play: Play, round_: Round) -> Step:
        if round_.closed:
            return p, PLAIN
        p, play, round_, notes = self._close(p, play, round_)
        doubt, remedy = None, NAME_SEATS
        if play.unsure:
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
        """No more bets: who plays, which bets stand, and the streak bets that do from now on."""
        mains = tuple(sorted({one.seat for one in round_.wagers if is_main(one.bet)}))
        seats = mains or p.seats
        # What was told of the seats does not matter where bets are.
        play = replace(play, closed=True, unsure=play.unsure or (p.unsure and not mains), round=round_.id)
        wagers = tuple(replace(one, hand=1) if is_main(one.bet) else one for one in round_.wagers)
        round_ = replace(round_, wagers=wagers)
        p, notes = replace(p, standing=p.streaks, earlier=len(p.streaks)), NO_NOTES
        if seats and not play.unsure:
            p, play, round_, notes = self._seated(p, play, round_, seats)
        return replace(p, play=play, streaks=p.standing), play, round_, notes

    def _seated(
        self, p: Position, play: Play, round_: Round, seats: tuple[int, ...]
    ) -> tuple[Position, Play, Round, Notes]:
        """These seats are dealt to. Bets that lie elsewhere go back; streak bets stand from now on."""
        notes = NO_NOTES
        for one in round_.wagers:  # arts. 5(1), 13: laid beside a main bet, on a hand that is dealt
            on = one.bet.partition(":")[2] if one.bet.partition(":")[0] in ACROSS else ""
            if one.seat not in seats or (on and int(on) not in seats):
                text = say("bet_without_hand", seat=one.seat, bet=one.bet)
                notes += (Note("bet_without_hand", text, "13"),)
                round_ = replace(round_, wagers=tuple(kept for kept in round_.wagers if kept != one))
        if new := sorted((one for one in round_.wagers if one.bet in STREAKS), key=lambda one: one.seat):
            streaks = [Streak(seat, tuple(bets)) for seat, bets in groupby(new, key=lambda one: one.seat)]
            p = replace(p, standing=(*p.standing, *streaks))
            round_ = replace(round_, wagers=tuple(one for one in round_.wagers if one.bet not in STREAKS))
        hands = tuple(Hand(seat) for seat in seats)
        first_deal = 2 * len(seats) + (2 if self.house.hole else 1)
        return p, replace(play, hands=hands, first_deal=first_deal), round_, notes

    # ---- cards

    def _card(self, p: Position, play: Play, round_: Round, card: str, face: str | None) -> Step:
        if round_.suspended:
            return replace(p, play=play.with_stray(card)), PLAIN
        if play.refused:
            reason = say("after_refused")
            return replace(p, play=play.with_stray(card)), Effect(suspend=reason)
        if p.burn:
            return replace(p, burn=max(p.burn - 1, UNSURE)), BESIDE
        if not round_.closed:
            p, play, round_, notes = self._close(p, play, round_)
            reason, round_ = _before_bell(play), replace(round_, closed=True)
            return replace(p, play=play.with_stray(card)), Effect(notes, suspend=reason, round=round_)
        if self.house.over(play) and p.gap:  # the round was resolved, and a hand may not have been told
            return replace(p, play=play.with_stray(card)), Effect(suspend=MISSING)
        if self.house.over(play):  # the round was resolved; an ace in its bank counts one now, maybe
            text = say("extra_card_counts")
            play = self.house.advanced(replace(play, bank=(*play.bank, card), extra=True))
            return self._decisions.go(p, play, round_, (Note("bank_extra_card", text, "6(1)"),))
        notes = NO_NOTES
        if face == "up":
            if self.options.first_card_face_up == "void" or not play.first or play.dealt:
                text = say("card_face_up")
                return refuse(p, play, "card_face_up", text, "5(1)(1)")
            notes = (Note("first_card_face_up", say("first_card_face_up"), "5(1)(1)"),)
        if card in play.entered:
            reason = say("told_after_all")
            return replace(p, play=play.with_stray(card)), Effect(notes, suspend=reason)
        play, why = self.house.placed(play, card)
        if why:
            reason = say("before_peek")
            if why == "undecided":
                reason = say("undecided", hand=play.hands[play.turn].name)
            return replace(p, play=play.with_stray(card)), Effect(notes, suspend=reason)
        return self._decisions.go(p, play, round_, notes)

    def _takes_needless(self, p: Position) -> Play | None:
        """The last round, where a card that comes now is one that its bank had not to take."""
        last = p.play
        if last is None or p.paid or len(last.bank) < 2 or self.house.draws(last.bank):
            return None
        return last

    def _card_between(self, p: Position) -> Step:
        """After a round: the bank took a card it had not to take (6(1)), or it is not known what this one is."""
        if p.burn:
            return replace(p, burn=max(p.burn - 1, UNSURE)), PLAIN
        last = self._takes_needless(p)
        if last is None:
            note = noting("card_without_round", say("card_no_deal"), "5(1)")
            return replace(self._maybe_burnt(p), beyond=p.play is not None and not p.paid), note
        text = say("extra_card_void", round=last.round)
        return self._maybe_burnt(p), noting("bank_extra_card", text, "6(1)")

    def _maybe_burnt(self, p: Position) -> Position:
        """Art. 4(2): what leaves the shoe between two rounds may be the card that is burnt in the next."""
        each = self.options.burn_each_round != "none" and not p.fresh
        return replace(p, burn=UNSURE) if each else p

    def _unreadable(self, p: Position, play: Play, round_: Round) -> Step:
        remedy = BURN if p.burn else CORRECT
        if p.burn:
            p = replace(p, burn=UNSURE)  # it may have been one of the burn, or none at all
            if not round_.closed:
                return p, BESIDE
        if round_.closed:
            return replace(p, play=play.with_unread()), Effect(suspend=say("card_unreadable"), remedy=remedy)
        p, play, round_, notes = self._close(p, play, round_)
        effect = Effect(notes, suspend=_before_bell(play), round=replace(round_, closed=True))
        return replace(p, play=play.with_unread()), effect

    def _exposed(self, p: Position, play: Play, round_: Round, name: str) -> Step:
        """Art. 5(1)(1): a card that should lie face down was seen. What follows is for the floor to say."""
        if not round_.closed:
            return p, BESIDE
        if key := named(name):
            name = f"{key[0]}.{key[1]}"
        if UNKNOWN not in self.house.laid(play)["hands"].get(name, ()):
            return p, PLAIN
        note = Note("card_exposed", say("a_card_seen", hand=name), "5(1)(1)")
        return p, Effect((note,), suspend=say("face_down_seen"))

    # ---- the cards and their device

    def _shoe_started(self, p: Position, decks: int, play: Play | None, round_: Round | None) -> Step:
        text = say("wrong_decks", decks=decks, allowed=self.options.decks)
        wrong = (Note("wrong_number_of_decks", text, "1(2)"),) if decks not in (0, self.options.decks) else ()
        p = replace(p, burn=self._burn, left=self._rounds, fresh=True)
        if play is None or round_ is None:
            return p, Effect(beside=wrong)
        if round_.closed and (play.dealt or round_.suspended):
            return p, Effect(beside=wrong, void=round_.suspended or say("never_completed"))
        left = 0 if round_.closed and self._rounds > 0 else self._rounds
        return replace(p, play=replace(play, first=True, burns=False), left=left, fresh=False), Effect(beside=wrong)

    def _cut_card(self, p: Position, round_: Round | None) -> Step:
        """Art. 2(2)(1): the round that is being dealt is the last before a shuffle; between two, the next one is."""
        if self.options.device != "shoe":
            note = noting("white_card", say("white_card"), "1(3)")
            return p, note
        if p.left != UNLIMITED:
            return p, BESIDE
        return replace(p, left=0 if round_ is not None and round_.closed else 1), PLAIN

    def _emptied(self, p: Position, play: Play, round_: Round) -> Step:
        if self.options.device == "continuous":
            return p, BESIDE
        p = replace(p, left=0)
        if not round_.closed:
            return p, BESIDE
        waits = not play.hands or bool(round_.suspended) or self.house.due(play, burn=bool(p.burn))[0] in _CARDS
        return p, Effect(suspend=say("cards_ended"), remedy=RESHUFFLE) if waits else PLAIN

    # ---- art. 5(1)(2): what was dealt wrongly is put right, and the round goes on from there

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
        """The round with these hands, or why they are not used."""
        assert position.play is not None
        p, before_ = position, position.play
        unseated = before_.unsure or not before_.hands
        found = self._relaid(p, before_, frame.round, hands)
        if found is None:
            remedy = NAME_SEATS if unseated else CORRECT
            return p, Effect(suspend=say("no_deal"), remedy=remedy, again=True)
        p, play, round_, notes = found
        doubt, earlier = left_open(self.house, play, before_)
        if not doubt and self._third_unknown(play, round_):
            doubt, earlier = say("third_unknown"), True
        if doubt:
            return position, Effect(suspend=doubt, remedy=EARLIER if earlier else CORRECT, again=True)
        lie, lay = Counter(play.cards), Counter(before_.cards)
        told = lay - Counter(before_.entered) + Counter(before_.strays)
        play = replace(play, entered=tuple((lie - told).elements()), strays=(), unread=0, corrected=True)
        play = replace(play, unsure=False, lost=False, refused=False)
        seats = tuple(hand.seat for hand in play.hands)
        if before_.lost and play.dealt == play.first_deal:
            play = replace(play, uncounted=seats)
        if unseated:
            mains = any(is_main(one.bet) for one in frame.round.wagers)
            p = replace(p, unsure=False, seats=p.seats if mains else seats)
        strays = bool(Counter(before_.strays) - (lie - lay))
        if self._burn_uncertain(p, play, unseated=unseated, strays=strays, waited=bool(frame.round.suspended)):
            # The next correction says that it is done.
            play = replace(play, strays=before_.strays, burns=play.burns and not play.dealt)
            p = replace(p, play=play, burn=0 if play.dealt else UNSURE)
            return p, Effect(notes, suspend=BURNT, remedy=BURN, round=round_)
        p = replace(p, burn=0 if play.dealt else max(p.burn, 0), streaks=p.standing)
        if play.dealt < play.first_deal:
            return replace(p, play=play), Effect(notes, round=round_)
        return self._decisions.go(p, self.house.advanced(play), round_, notes)

    def _relaid(
        self, p: Position, play: Play, round_: Round, laid: Mapping[str, tuple[str, ...]]
    ) -> tuple[Position, Play, Round, Notes] | None:
        """The round with the hands as they lie, and the bets that they ask for; None where no deal gives them."""
        before, hands, notes = play, hands_of(laid), NO_NOTES
        if hands is None:
            return None
        if play.lost:
            p = replace(p, standing=p.standing[: p.earlier])
            round_ = replace(round_, wagers=())
        if play.unsure or not play.hands:
            seats = tuple(sorted(seat for seat, number in hands if number == 1))
            if not seats or seats[-1] > self.options.seats:
                return None
            p, play, round_, notes = self._seated(p, play, round_, seats)
        found = relaid(self.house, play, before, hands, laid.get(DEALER))
        if found is None:
            return None
        lay, wagers = {hand.name for hand in play.hands}, round_.wagers
        for hand in found.hands:
            if hand.name not in lay:
                wagers = added(wagers, hand.seat, hand.number, "main")
        if found.dealt < found.first_deal:
            wagers = tuple(one for one in wagers if not one.bet.startswith(("double", "insurance")))
            return p, found, replace(round_, wagers=wagers), notes
        round_ = replace(round_, wagers=wagers)
        if found.bank[0][0] == "A":
            return p, found, round_, notes
        # Art. 12(1): against an ace only; what was laid goes back.
        chips = (one.seat for one in wagers if one.bet == "insurance")
        for seat in dict.fromkeys((*found.insured, *chips)):
            text = say("seat_action", seat=seat, action="insurance")
            notes += (Note("decision_not_allowed", text, "12(1)"),)
        round_ = replace(round_, wagers=tuple(one for one in wagers if one.bet != "insurance"))
        return p, replace(found, insured=()), round_, notes

    def _burn_uncertain(self, p: Position, play: Play, *, unseated: bool, strays: bool, waited: bool) -> bool:
        """Whether a person must say if the burn is done.

        Who named the seats of an `unseated` round was asked for nothing else; `strays`, told while the round `waited`,
        may be burnt cards.
        """
        if not play.dealt:
            return (unseated and p.burn == UNSURE) or (strays and p.burn > 0)
        return waited and play.burns and self.house.bank_next(play) and self.house.needs(play)

    def _third_unknown(self, play: Play, round_: Round) -> bool:
        """Art. 13(2)(2): whether a bet rests on a third card that nobody can tell from the hands."""
        if "sevens" not in self._families:
            return False
        bets = round_.wagers
        told = any(is_main(one.bet) for one in bets)
        for seat, group in groupby(play.hands, key=lambda hand: hand.seat):
            mine = tuple(group)
            if len(mine) < 3:
                continue
            first = (mine[0].cards[0], mine[1].cards[0])
            laid = any(one.bet == f"sevens:{seat}" or (one.seat, one.bet) == (seat, "sevens") for one in bets)
            if (laid or not told) and len({sevens(first, third) for third in third_cards(mine)}) > 1:
                return True
        return False

    # ---- the result

    def resolve(self, position: Position, frame: Frame[Position]) -> Result:
        """Arts. 7 and 9 to 19."""
        p, play, round_ = position, position.play, frame.round
        assert play is not None
        compared = self.house.compare(play)
        blackjack = is_blackjack(play.bank)
        total = 21 if blackjack else count(play.bank)[0]
        law = dict.fromkeys(WHY[why] for one in compared for why in one.why)
        wins, parts, pushes = hands_won(compared, round_.wagers, self.options.bettors)
        if play.insured:
            law["12(2)" if blackjack else "12(3)"] = None
            if blackjack:
                wins += (Win("insurance", "2", seat=seat) for seat in play.insured)
        self._additional(play, wins, law)
        outcome = outcome_of(play, compared, total, blackjack=blackjack)
        streaks: tuple[Streak, ...] = ()
        if p.standing:
            streaks, decided, won, articles = streak_ends(p.standing, compared, absent=self.options.streak_absent)
            wins += won
            law |= dict.fromkeys(articles)
            outcome["streaks"] = {str(one.seat): one.wins + 1 for one in streaks}
            round_ = replace(round_, wagers=(*round_.wagers, *decided)) if decided else round_
        if play.corrected:
            law["5(1)(2)"] = None
        result = resolved(
            round_,
            self.terms,
            outcome=outcome,
            winners=tuple(wins),
            pushes=tuple(pushes),
            announcements=announced(compared, total, blackjack=blackjack),
            law=tuple(self.cite(article) for article in ("5(1)", self._dealing, "6", "8", *law)),
        )
        if parts and round_.wagers:
            # Half of a bet given up comes back: it is neither won nor a tie.
            chip, rounding = self.terms.chip, self.terms.rounding
            settled = settle(round_.wagers, (*wins, *parts), pushes, chip=chip, rounding=rounding)
            result = replace(result, settlements=settled)
        if streaks:
            result = replace(result, stands=tuple(sorted({bet.bet for one in streaks for bet in one.bets})))
        return result

    def _additional(self, play: Play, wins: list[Win], law: dict[str, None]) -> None:
        """Arts. 13, 14: what the first cards of every seat win."""
        for place, hand in enumerate(play.hands):
            if hand.number != 1:
                continue
            two = play.hands[place + 1].cards[0] if hand.split else hand.cards[1]
            found = self._on_two[hand.cards[0], two]
            if hand.cards[0][0] == two[0]:
                pairs = on_pair(play.of(hand.seat), two, any_third=self.options.three_sevens == "any")
                found += tuple(won for won in pairs if won[0] in self._families)
            for bet, pays, articles in found:
                wins.append(Win(bet, pays, seat=hand.seat))
                if bet in ACROSS:
                    wins.append(Win(f"{bet}:{hand.seat}", pays))
                law |= dict.fromkeys(articles)


# ---- small facts

# What the rules wait for while a card is due.
_CARDS: Final = ("card", "burn")


def _insurance(seat: int, amount: int) -> Reason:
    """What a seat said of its insurance."""
    if amount:
        return say("seat_action_amount", seat=seat, action="insurance", amount=amount)
    return say("seat_action", seat=seat, action="insurance")


def _before_bell(play: Play) -> Reason:
    """Why a card that came while the bets were open is doubted: after a loss the bell may be among what is missing."""
    return MISSING if play.lost else say("before_bell")
