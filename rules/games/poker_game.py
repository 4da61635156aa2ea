"""Poker without a bank on the engine of `rules/engine/refold.py`: the base of hold'em, Omaha and synthetic poker.

A hand is a round. The opening of the bets begins it: seats lay their first bets (`seat.acted`, "post"), cards are
dealt, and each seat acts in turn until one is left or the hands are shown. The chips are state of the table: the chips
that the seats put in equal those that are paid, returned and kept by the house; otherwise the hand waits for a person.

The action of a seat is `seat.acted`: the actions of `rules/games/poker_betting.py`; "show" and "muck" at the
showdown; "dead" for a hand that the dealer declares dead, "absent" and "skipped" by 13(70)(b) and 13(71)(i); between
two hands "stack" with all chips before the seat, "rest" and "return".

Own cards stay in the state: `view`, verdicts and results have those of shown hands only.

Readings:

- 13(35), 13(41)-(45): a shoe reports own cards one at a time from the hand on, then for each street the burnt card and
  the common ones. Where no device reports them a person enters them: `deal.corrected` with "board" and "seat_<n>".
- 13(62), 13(64): each hand in play is shown or given up, then the pot is paid. An entered hand is shown.
  Where an own card could not be read each shown hand is entered, because it may have been no card.
- 13(39), 13(71): what a player does at a terminal is no mistake: out of turn, or where it would be irregular, it is not
  taken, and the answer to the terminal has the reason.
- 13(69): of its errors only a second turned card is reported by a device and makes the hand void. A person declares the
  others, a damaged card, or a wrong number of cards that could not be corrected.
- 13(70)(d)-(f): cards shown too early are laid aside, and seats that have not acted may only call.
- 13(70)(g): the first card of a street is the burnt one, whether it was turned or not.
- 13(71)(b): a hand given up at the showdown has no right to the pot.
- 16(16): a common card that comes before the bets on the last one are over has no betting round.
- No paragraph covers a loss. The hand waits until it is declared void: each seat's chips of the hand go back. The
  stacks of all seats are entered again before the next one.
"""

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from protocols.contract.events import (
    MOST,
    CardDrawn,
    CardExposed,
    CardUnreadable,
    Event,
    HandDispensed,
    HandPassed,
    PlayerActed,
    SeatActed,
    SeatClosed,
    SeatOpened,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.facts import Due
from protocols.contract.reasons import Reason, say
from rules.engine.facts import BESIDE, PLAIN, Effect, Fact, Frame, Hands, Note, Table
from rules.engine.refold import Game
from rules.engine.rounds import Round, resolved
from rules.engine.ruleset import Bet, Result, Settlement, View, Wager, Win
from rules.games.cards import UNKNOWN
from rules.games.poker_betting import (
    ACTIONS,
    BLIND,
    Fault,
    Limits,
    act,
    actions,
    bind,
    blind_raise,
    kill,
    opened,
    post,
    withdraw,
)
from rules.games.poker_pots import Layering, Pot, Rake, pay, pots
from rules.games.poker_table import MAX_ASIDE, Deal, Position, Variant, again, closed, seated

BOARD: Final = "board"
AWAY: Final = frozenset(("stack", "rest", "return"))
"""What is reported of a seat between two hands."""
FIRST: Final = Effect(first=True)
VOID: Final = say("do_void_hand")
HANDS: Final = say("do_hands_or_void")


class PokerState(Table[Position], frozen=True):
    """The state of a table."""


class PokerGame(Game[Position]):
    """A table of poker; a text derives from it."""

    State: ClassVar[type[PokerState]] = PokerState
    own: ClassVar[frozenset[type[Event]]] = frozenset(
        (
            *(CardDrawn, CardUnreadable, CardExposed, HandDispensed, HandPassed),
            *(SeatActed, PlayerActed, SeatOpened, SeatClosed),
        )
    )
    keeps_cards: ClassVar[bool] = True
    remedy: ClassVar[Reason] = VOID
    steps_wagers = "open"
    offered: frozenset[str] = frozenset()
    waits_for_bell: bool = False
    text: ClassVar[str]
    variant: ClassVar[Variant]
    instead: ClassVar[Mapping[str, str]] = {}
    """The paragraphs of this text for the same rules of another variant."""
    words: ClassVar[Mapping[str, Mapping[str, str]]]
    """For each language the calls "wins" and "takes", with a seat and its combination, "mark", and the combinations."""

    betting: Limits
    rake: Rake
    layering: Layering
    blind_raises: bool = False
    entry: int = 0

    @abstractmethod
    def articles(self, deal: Deal) -> tuple[str, ...]:
        """The paragraphs that the end of a hand rests on."""

    @property
    def seats(self) -> int:
        """How many seats the table has."""
        return self.variant.seats

    def bets(self) -> tuple[Bet, ...]:
        """The pot."""
        return (Bet("pot", "the pot", "arts. 13(38), 13(65)", "what the seats put into the pot of a hand"),)

    def cite(self, article: str) -> str:
        """The article as results cite it."""
        return f"{self.text} art. {self.instead.get(article, article)}"

    # ---- the life of a hand

    def fresh(self) -> Position:
        """A table without seats."""
        return Position()

    def begins(self, position: Position, event: Event) -> bool:
        """False: only the opening of the bets begins a hand."""
        return False

    def begin(self, position: Position) -> tuple[Position, tuple[str, ...], bool, Effect]:
        """The next hand, where enough seats play and their chips are known."""
        p, reason = seated(position, self.variant, self.betting)
        return p, (), False, Effect(suspend=reason, remedy=say("do_stacks_and_open")) if reason else PLAIN

    def over(self, position: Position) -> bool:
        """Whether the pot is paid."""
        return position.deal is not None and position.deal.paid is not None

    def end(self, position: Position, frame: Frame[Position], *, void: bool) -> Position:
        """The position after a hand, with the chips before their seats."""
        return closed(position, void=void)

    def resume(self, now: Position, ended: Position) -> Position:
        """The ended hand at the present seats."""
        return again(now, ended)

    def missed(self, position: Position, event: Event) -> Position:
        """After a loss chips may have been laid, taken or bought unseen."""
        unsure = tuple(seat for seat, chips in position.stacks.items() if chips or seat in position.unsure)
        return replace(position, unsure=unsure)

    def known(self, position: Position, frame: Frame[Position]) -> Round:
        """The chips of each seat in the hand, which go back where it is void."""
        put = position.deal.bets.put().by_seat() if position.deal is not None else {}
        wagers = tuple(Wager(seat, "pot", chips) for seat, chips in put.items())
        return replace(frame.round, wagers=wagers, given_back=())

    def too_early(self, frame: Frame[Position]) -> Note | None:
        """Why hands cannot be entered yet. A hand that ended before its bets closed can be corrected again."""
        return None if frame.result is not None else super().too_early(frame)

    def alike(self, one: Position, other: Position) -> bool:
        """Whether the same hands and chips lie there."""
        if one.deal is None or other.deal is None:
            return one.deal is other.deal
        same = (one.deal.own, one.deal.board, one.deal.bets) == (other.deal.own, other.deal.board, other.deal.bets)
        return same and one.deal.shown == other.deal.shown

    def laid(self, position: Position) -> dict[str, Any]:
        """The common cards, and the hands that were shown."""
        deal = position.deal
        if deal is None:
            return {}
        laid = {f"seat_{seat}": deal.own[seat] for seat in deal.shown if seat in deal.own}
        return {**({BOARD: deal.board} if deal.board else {}), **({"hands": laid} if laid else {})}

    # ---- events

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """One event."""
        p, event = position, fact.event
        deal = p.deal if frame is not None else None
        if type(event) is SeatActed:
            if event.action in AWAY:
                return self._away(p, event.seat, event.action, event.amount, deal)
        elif type(event) is PlayerActed:
            event = SeatActed(event.seat, event.action, amount=event.amount)
            if frame is not None and deal is not None:
                wrong = self._acted(deal, event.seat, event.action, event.amount)[1].notes
                if wrong or frame.round.suspended:
                    return p, Effect(beside=wrong, evidence=False)
        elif type(event) is not CardDrawn and (done := self._of_seats(p, event, deal)) is not None:
            return done
        if frame is None or deal is None:
            return p, self._of_no_hand(event)
        if frame.round.suspended:
            told = isinstance(event, SeatActed | CardDrawn | CardUnreadable | HandDispensed | CardExposed)
            return replace(p, deal=replace(deal, unheard=deal.unheard or told)), PLAIN
        pending = deal.notes
        if pending:
            deal = replace(deal, notes=())
        if type(event) is SeatActed:
            deal, effect = self._acted(deal, event.seat, event.action, event.amount)
        elif type(event) is CardDrawn:
            deal, effect = self._card(deal, event.card, event.face)
        else:
            deal, effect = self._told(deal, event)
        if effect.first:
            if not frame.round.closed:
                pending += self._unposted(deal)
            else:
                effect = PLAIN if effect is FIRST else replace(effect, first=False)
        if pending:
            effect = replace(effect, notes=pending + effect.notes)
        p = replace(p, deal=deal)
        return (p, effect) if deal.bets.waiting else self._on(p, deal, effect)

    def _of_seats(self, p: Position, event: Event, deal: Deal | None) -> tuple[Position, Effect] | None:
        """Apply what is reported of a seat besides its actions; None for another event."""
        match event:
            case SeatOpened(seat=seat) | SeatClosed(seat=seat):
                return self._seat(p, seat, deal, joins=isinstance(event, SeatOpened))
            case HandPassed(seat=seat) if deal is None or not deal.dealt:
                return replace(p, named=seat), BESIDE
            case WagerPlaced(seat=seat) | WagerWithdrawn(seat=seat):
                return p, Effect((Note("bet_not_offered", say("seat_alone", seat=seat), "13(53)"),))
            case _:
                return None

    def _told(self, deal: Deal, event: Event) -> tuple[Deal, Effect]:
        """The hand after one of its rarer events."""
        match event:
            case CardUnreadable():
                return self._card(deal, UNKNOWN, None)
            case HandDispensed(cards=count):
                return self._packet(deal, count)
            case CardExposed(hand=hand, card=card):
                return self._exposed(deal, hand, card or "")
            case _:
                return deal, PLAIN

    def _of_no_hand(self, event: Event) -> Effect:
        match event:
            case SeatActed(seat=seat):
                return Effect((Note("bet_without_round", say("seat_alone", seat=seat), "13(36)"),))
            case CardDrawn() | CardUnreadable() | HandDispensed():
                return Effect((Note("card_without_round", say("card_no_round"), "13(34)"),))
            case _:
                return BESIDE

    def _on(self, p: Position, deal: Deal, effect: Effect) -> tuple[Position, Effect]:
        """Pay the pot where one hand is left, or all are shown."""
        if effect.void or effect.suspend or deal.paid is not None:
            return p, effect
        bets = deal.bets
        if bets.waiting or len(deal.shown) < bets.count() > 1:
            return p, effect  # after most events
        live, showdown = bets.live(), self._showdown(deal)
        if not live:
            return p, replace(effect, suspend=say("no_hand_left"), remedy=VOID)
        if len(live) > 1 and not (showdown and all(seat in deal.shown for seat in live)):
            return p, effect
        strengths = self._strengths(deal, live)
        found, back = pots(deal.bets.put(), live, self.layering)
        paid = pay(found, strengths, deal.bets.order, self.betting.minimum, self.rake)
        ended = replace(deal, paid=paid, back=back, pots=found, strengths=strengths)
        if not self._balanced(ended):
            return p, replace(effect, suspend=say("pot_unbalanced"), remedy=VOID)
        return replace(p, deal=ended), effect

    def _strengths(self, deal: Deal, live: tuple[int, ...]) -> dict[int, int]:
        if len(live) == 1:
            return {live[0]: 0}
        return self.variant.ranking.strengths({seat: deal.own[seat] for seat in live}, deal.board)

    def _balanced(self, deal: Deal) -> bool:
        """Whether all chips are accounted for: before and behind the line, paid, kept and returned."""
        laid = deal.bets.put().total()
        paid = sum(one.amount + one.kept for one in deal.paid or ()) + sum(deal.back.values())
        return sum(deal.bets.stacks.values()) + laid == deal.began and paid == laid

    def _misdeal(self, letter: str) -> str:
        return f"13(69)({letter})" if self.variant.burns else "16(15)"

    # ---- seats

    def _seat(self, p: Position, seat: int, deal: Deal | None, *, joins: bool) -> tuple[Position, Effect]:
        if seat > self.variant.seats:
            return p, Effect((Note("no_such_seat", say("seat_alone", seat=seat), "13(6)"),), evidence=False)
        if joins:
            if seat in p.stacks:
                return p, BESIDE
            return replace(p, stacks={**p.stacks, seat: 0}, fresh=(*p.fresh, seat)), BESIDE
        if deal is not None and seat in deal.bets.order:
            bets = withdraw(deal.bets, seat) if seat in deal.bets.live() and len(deal.bets.live()) > 1 else deal.bets
            deal = replace(deal, bets=bets)
            leaving = p.leaving if seat in p.leaving else (*p.leaving, seat)
            return self._on(replace(p, deal=deal, leaving=leaving), deal, PLAIN)
        kept = {other: chips for other, chips in p.stacks.items() if other != seat}
        away = {other: deals for other, deals in p.resting.items() if other != seat}
        unsure = tuple(other for other in p.unsure if other != seat)
        fresh = tuple(other for other in p.fresh if other != seat)
        missed = {other: chips for other, chips in p.missed.items() if other != seat}
        return replace(p, stacks=kept, resting=away, unsure=unsure, fresh=fresh, missed=missed), BESIDE

    def _away(self, p: Position, seat: int, action: str, chips: int, deal: Deal | None) -> tuple[Position, Effect]:
        """Apply a purchase of chips, or a rest: 13(13), 13(14)(e), 13(28), 14(7)."""
        if seat > self.variant.seats:
            return p, Effect((Note("no_such_seat", say("seat_alone", seat=seat), "13(6)"),), evidence=False)
        if action == "rest":
            return replace(p, resting={**p.resting, seat: p.resting.get(seat, 0)}), BESIDE
        if action == "return":
            return replace(p, resting={one: deals for one, deals in p.resting.items() if one != seat}), BESIDE
        if deal is not None and seat in deal.bets.order:
            return p, Effect((Note("chips_in_hand", say("seat_alone", seat=seat), "13(14)(e)"),))
        held = p.stacks.get(seat, 0)
        if chips + sum(p.stacks.values()) - held > MOST:
            return self._too_large(p, seat)
        fresh = p.fresh if seat in p.stacks else (*p.fresh, seat)
        unsure = p.unsure and tuple(other for other in p.unsure if other != seat)
        after = replace(p, stacks={**p.stacks, seat: chips}, fresh=fresh, unsure=unsure)
        return after, BESIDE if held else Effect(self._bought(p, seat, chips), evidence=False)

    def _bought(self, p: Position, seat: int, chips: int) -> tuple[Note, ...]:
        """The notes of the chips that a player without any brings."""
        notes: tuple[Note, ...] = ()
        least, others = self.betting.minimum, [held for held in p.stacks.values() if held]
        if p.hand and others and chips < sum(others) // len(others) // least * least:
            notes = (Note("stack_below_average", say("seat_alone", seat=seat), "13(28)"),)
        if chips < self.entry:
            notes = (*notes, Note("stack_below_entry", say("seat_alone", seat=seat), "14(7)"))
        return notes

    def _too_large(self, p: Position, seat: int) -> tuple[Position, Effect]:
        """Refuse more chips than a number can hold: the stack must be entered again before the next hand."""
        note = Note("stack_too_large", say("seat_alone", seat=seat), "13(52)")
        unsure = tuple(dict.fromkeys((*p.unsure, seat)))
        fresh = p.fresh if seat in p.stacks else (*p.fresh, seat)
        stacks = {**p.stacks, seat: p.stacks.get(seat, 0)}
        return replace(p, stacks=stacks, fresh=fresh, unsure=unsure), Effect((note,), evidence=False)

    # ---- what the seats do

    def _acted(self, deal: Deal, seat: int, action: str, chips: int) -> tuple[Deal, Effect]:
        bets, is_bet = deal.bets, action in ACTIONS
        match action:
            case _ if is_bet:
                pass
            case "post":
                bets, faults = post(bets, seat, chips)
                return replace(deal, bets=bets), Effect(_noted(seat, faults)) if faults else PLAIN
            case "show" | "muck":
                return self._shows(deal, seat, action)
            case "dead" if bets.plays(seat):
                return replace(deal, bets=kill(bets, (seat,))), PLAIN
            case "absent" if bets.plays(seat):
                return replace(deal, bets=withdraw(bets, seat)), PLAIN
            case "skipped" if seat in bets.waiting:
                return replace(deal, bets=bind(bets, (seat,))), PLAIN
        if (deal.given or deal.packets) and self._dealing(deal):
            return deal, Effect((Note("bet_before_cards", say("seat_alone", seat=seat), "13(36)"),))
        if is_bet and bets.waiting:
            bets, faults = act(bets, seat, action, chips, self.betting)
        elif is_bet:
            faults = (Fault("no_betting", "13(39)", chips, taken=False),)
        elif action not in BLIND or not self.variant.ante:
            faults = (Fault("no_such_action", "13(39)", chips, taken=False),)
        elif not self.blind_raises or deal.street or (deal.acted and not bets.blind):
            faults = (Fault("no_blind_raise", "16(12)", chips, taken=False),)
        else:
            bets, faults = blind_raise(bets, seat, action, chips)
        taken = bets is not deal.bets
        effect = Effect(_noted(seat, faults), first=taken) if faults else FIRST if taken else PLAIN
        return replace(deal, bets=bets, acted=True) if taken else deal, effect

    def _shows(self, deal: Deal, seat: int, action: str) -> tuple[Deal, Effect]:
        if not deal.bets.plays(seat):
            return deal, Effect(_noted(seat, (Fault("not_in_hand", "13(39)"),)))
        if not self._showdown(deal):
            return deal, Effect((Note("shown_early", say("seat_alone", seat=seat), "13(71)(e)"),))
        if action == "muck":
            return replace(deal, bets=kill(deal.bets, (seat,))), PLAIN
        if not self._whole(deal, seat):
            return deal, Effect((Note("cards_not_told", say("seat_alone", seat=seat), "13(64)"),))
        return replace(deal, shown=tuple(dict.fromkeys((*deal.shown, seat)))), PLAIN

    def _showdown(self, deal: Deal) -> bool:
        return not deal.bets.waiting and deal.street == len(self.variant.streets)

    def _whole(self, deal: Deal, seat: int) -> bool:
        return not deal.unread and len(deal.own.get(seat, ())) == self.variant.ranking.cards

    def _unposted(self, deal: Deal) -> tuple[Note, ...]:
        """Art. 14(20), 16(17): the hand is valid; the first bet is due with the seat's next chips."""
        article = "16(17)" if self.variant.ante else "14(20)"
        seats = [seat for seat in deal.bets.posts if seat in deal.bets.live()]
        return tuple(Note("first_bet_missing", say("seat_alone", seat=seat), article) for seat in seats)

    # ---- cards

    def _dealing(self, deal: Deal) -> bool:
        """Whether own cards may still come."""
        seats = len(deal.bets.order)
        if deal.packets:
            return deal.packets < seats
        if deal.given:
            return deal.given < seats * self.variant.ranking.cards + bool(deal.turned)
        return not deal.acted

    def _card(self, deal: Deal, card: str, face: str | None) -> tuple[Deal, Effect]:
        ranking = self.variant.ranking
        if card != UNKNOWN:
            if deal.has(card):
                return deal, Effect(first=True, suspend=say("two_places"), remedy=HANDS)
            if card not in ranking.deck:
                return deal, Effect(first=True, suspend=say("no_such_card"), remedy=HANDS)
        if deal.board or deal.packets or not self._dealing(deal):
            return self._common(deal, card, face)
        order, given = deal.bets.order, deal.given
        seat = deal.turned if given == len(order) * ranking.cards else order[given % len(order)]
        own = {**deal.own, seat: (*deal.own.get(seat, ()), card)}
        if card == UNKNOWN:
            return replace(deal, own=own, given=given + 1, unread=deal.unread + 1), FIRST
        return replace(deal, own=own, given=given + 1), FIRST

    def _common(self, deal: Deal, card: str, face: str | None) -> tuple[Deal, Effect]:
        streets, bets = self.variant.streets, deal.bets
        if deal.street == len(streets):
            return deal, Effect(suspend=say("card_more"), remedy=HANDS)
        if self.variant.burns and not deal.burnt:
            turned = (Note("burnt_card_turned", say("burnt_card_turned"), "13(70)(g)"),) if face == "up" else ()
            return replace(deal, burnt=True), Effect(turned, first=True)
        if card == UNKNOWN:
            return deal, Effect(first=True, suspend=say("card_unreadable"), remedy=HANDS)
        if not bets.waiting:
            return self._opened(replace(deal, board=(*deal.board, card))), FIRST
        if not self.variant.burns:
            note = Note("betting_round_lost", say("street_early", n=deal.street + 1), "16(16)")
            return replace(deal, board=(*deal.board, card), street=deal.street + 1), Effect((note,))
        article = ("13(70)(d)", "13(70)(e)", "13(70)(f)")[deal.street]
        notes = () if deal.aside else (Note("street_too_early", say("street_early", n=deal.street + 1), article),)
        turn = deal.street == 1
        aside = (*deal.aside, card)[-MAX_ASIDE:]
        early = replace(deal, aside=aside, bets=bind(bets, bets.waiting), burnt=not turn, burnt_after=turn)
        return early, Effect(notes, first=True)

    def _opened(self, deal: Deal) -> Deal:
        """Begin a round of bets after a complete street."""
        if len(deal.board) < self.variant.streets[deal.street]:
            return deal
        bets = deal.bets
        first = bets.order[0]
        if self.variant.ante:
            first = bets.highest if deal.street and bets.highest in bets.can_bet() else bets.order[1]
        shows = deal.opener()
        bets = opened(bets, first)
        if not bets.waiting and shows in bets.live():
            bets = replace(bets, opener=shows)  # no round of bets follows: the opener of the last one shows first
        return replace(
            deal,
            bets=bets,
            street=deal.street + 1,
            speaker=first,
            burnt=deal.burnt_after,
            burnt_after=False,
            aside=(),
        )

    def _packet(self, deal: Deal, count: int) -> tuple[Deal, Effect]:
        if deal.given or deal.packets == len(deal.bets.order):
            return deal, PLAIN  # a common card, which a person enters
        if count != self.variant.ranking.cards:
            n = self.variant.ranking.cards
            return deal, Effect(first=True, suspend=say("packet_own_cards", count=count, due=n), remedy=VOID)
        return replace(deal, packets=deal.packets + 1), FIRST

    def _exposed(self, deal: Deal, hand: str, card: str) -> tuple[Deal, Effect]:
        """Apply the exposure of a seat's card: 13(69)(g), 13(70)(c), 13(71)(e), 16(15)."""
        seat = _by_name(deal.bets.order).get(hand)
        if seat is None:
            return deal, Effect(suspend=say("foreign_hand"), remedy=VOID)
        if not self._dealing(deal):
            return deal, Effect((Note("shown_early", say("seat_alone", seat=seat), "13(71)(e)"),))
        if deal.turned or not self.variant.burns:
            return deal, Effect(void=say("turned_in_deal"), article=self._misdeal("g"))
        cards = deal.own.get(seat, ())
        seen = card if card in cards else cards[-1] if cards else ""
        own = {**deal.own, seat: tuple(one for one in cards if one != seen)}
        note = Note("card_turned", say("seat_alone", seat=seat), "13(70)(c)")
        return replace(deal, own=own if cards else deal.own, turned=seat, burnt=True), Effect((note,))

    # ---- a person enters the hands

    def lay(
        self,
        position: Position,
        hands: Hands,
        frame: Frame[Position],
        before: Frame[Position] | None,
        *,
        named: bool,
        reopened: bool,
    ) -> tuple[Position, Effect]:
        """The position with the entered common cards and hands, or why they are refused."""
        deal = position.deal
        if deal is None or deal.unheard or frame.lost:
            return position, Effect(suspend=say("hand_incomplete"), remedy=VOID, again=True)
        deal = replace(deal, paid=None, back={}, pots=(), strengths={})
        laid, reason = self._laid_out(deal, hands)
        if reason is not None:
            return position, Effect(suspend=reason, remedy=HANDS, again=True)
        p = replace(position, deal=laid)
        return self._on(p, laid, Effect(round=frame.round))

    def _laid_out(self, deal: Deal, hands: Hands) -> tuple[Deal, Reason | None]:
        board, own = hands.get(BOARD, deal.board), dict(deal.own)
        told, seats = [], _by_name(deal.bets.order)
        if not hands:
            return deal, say("no_hand_told")
        for name, entered in hands.items():
            if name == BOARD:
                continue
            if name not in seats:
                return deal, say("foreign_hand")
            if len(entered) != self.variant.ranking.cards:
                return deal, say("hand_cards", n=len(entered), hand=name, article=self.cite(self._misdeal("b")))
            own[seats[name]] = entered
            told.append(seats[name])
        cards = [*board, *(card for mine in own.values() for card in mine if card != UNKNOWN)]
        if any(card not in self.variant.ranking.deck for card in cards):
            return deal, say("no_such_card")
        if len(set(cards)) < len(cards):
            return deal, say("two_places")
        if not len(deal.board) <= len(board) <= self.variant.streets[-1]:
            return deal, say("board_by_law")
        shared = board[: len(deal.board)]
        deal = replace(deal, board=shared, own=own, acted=True)
        for card in board[len(shared) :]:
            if deal.bets.waiting:
                return deal, say("board_by_law")
            deal = self._opened(replace(deal, board=(*deal.board, card)))
        if BOARD in hands and len(board) not in (0, *self.variant.streets):
            return deal, say("board_by_law")
        if self._showdown(deal):
            live = [seat for seat in told if seat in deal.bets.live()]
            deal = replace(deal, shown=tuple(dict.fromkeys((*deal.shown, *live))))
        return deal, None

    # ---- the result

    def resolve(self, position: Position, frame: Frame[Position]) -> Result:
        """The result: payments and returned chips."""
        deal = position.deal
        assert deal is not None
        assert deal.paid is not None
        put = deal.bets.put().by_seat()
        back = {seat: deal.back.get(seat, 0) for seat in put}
        for one in deal.paid:
            back[one.seat] = back.get(one.seat, 0) + one.amount
        won = list(dict.fromkeys(one.seat for one in deal.paid if one.amount))
        winners = tuple(
            [Win("pot", str(Fraction(back[seat] - put[seat], put[seat])), seat=seat) for seat in won if seat in put]
        )
        result = resolved(
            replace(frame.round, wagers=(), given_back=()),
            self.terms,
            outcome={**self.laid(position), **self._facts(deal)},
            winners=winners,
            announcements=self._called(deal, won),
            law=tuple(map(self.cite, self.articles(deal))),
        )
        paid = [Settlement(seat, "pot", put.get(seat, 0), returned) for seat, returned in back.items()]
        return replace(result, settlements=tuple(paid))

    def _facts(self, deal: Deal) -> dict[str, Any]:
        kept = sum(one.kept for one in deal.paid or ())
        facts: dict[str, Any] = {"pots": _plain(deal.pots), "rake": kept, "seats": self._fates(deal)}
        if len(deal.strengths) > 1:
            category = self.variant.ranking.category
            facts["combinations"] = {f"seat_{seat}": category(found) for seat, found in deal.strengths.items()}
        return facts

    def _fates(self, deal: Deal) -> dict[str, str]:
        paid = {one.seat for one in deal.paid or ()}
        fates = {}
        for seat in deal.bets.order:
            lost = "folded" if seat in deal.bets.folded else "dead" if seat in deal.bets.killed else "loses"
            fates[f"seat_{seat}"] = "wins" if seat in paid else lost
        return fates

    def _called(self, deal: Deal, won: list[int]) -> dict[str, str]:
        said = {}
        for language, words in self.words.items():
            calls = [
                words["wins"].format(seat, words[self.variant.ranking.category(deal.strengths[seat])])
                if len(deal.strengths) > 1
                else words["takes"].format(seat)
                for seat in won
            ]
            said[language] = words["mark"].join(calls)
        return said

    # ---- the view

    def view(self, state: Table[Position]) -> View:
        """Phase: idle, betting (the first bets), dealing, deciding, showdown, suspended, resolved. No own card."""
        frame = state.open
        if frame is None:
            return self._between_hands(state)
        round_, deal = frame.round, state.position.deal
        if deal is None:
            return View(round_.id, "suspended", {"stacks": _named(state.position.stacks), "reason": round_.suspended})
        detail = self._shown(deal)
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        due, phase = self._due(deal), "deciding"
        if not round_.closed:
            phase = "betting"
            unposted = [seat for seat in deal.bets.order if seat in deal.bets.posts or deal.bets.owed.get(seat)]
            if unposted:
                due = Due("decision", f"seat_{unposted[0]}", unposted[0], ("post",))
        elif due is not None and due.kind == "card":
            phase = "dealing"
        elif self._showdown(deal):
            phase = "showdown"
        return View(round_.id, phase, {**detail, **({"due": due} if due is not None else {})})

    def _between_hands(self, state: Table[Position]) -> View:
        stacks = {"stacks": _named(state.position.stacks)}
        last = state.last
        if last is None or not last.counts or last.result is None:
            return View("", "idle", stacks)
        return View(last.round.id, "resolved", {**last.result.outcome, **stacks, "say": last.result.announcements})

    def _shown(self, deal: Deal) -> dict[str, Any]:
        bets = deal.bets
        hands = {f"seat_{seat}": deal.own[seat] for seat in deal.shown if seat in deal.own}
        return {
            "players": bets.order,
            "folded": (*bets.folded, *bets.killed),
            BOARD: deal.board,
            "stacks": _named(bets.stacks),
            "laid": _named({seat: chips for seat, chips in bets.street.items() if chips}),
            "pot": bets.pot(),
            "pots": _plain(pots(bets.put(), bets.live(), self.layering)[0]),
            **({"hands": hands} if hands else {}),
        }

    def _due(self, deal: Deal) -> Due | None:
        bets = deal.bets
        if self._dealing(deal) and (deal.given or deal.packets):
            return Due("card", "own")
        if bets.waiting:
            return Due("decision", f"seat_{bets.waiting[0]}", bets.waiting[0], actions(bets, self.betting))
        if not self._showdown(deal):
            return Due("card", BOARD if deal.burnt or not self.variant.burns else "burn")
        first = deal.opener()
        for seat in (first, *bets.after(first)):
            if seat in bets.live() and seat not in deal.shown:
                return Due("decision", f"seat_{seat}", seat, ("show", "muck"))
        return None


def _by_name(seats: tuple[int, ...]) -> dict[str, int]:
    """The seats of a hand by the names of their own cards in events."""
    return {f"seat_{seat}": seat for seat in seats}


def _plain(found: tuple[Pot, ...]) -> tuple[dict[str, Any], ...]:
    return tuple([{"amount": one.amount, "among": one.among} for one in found])


def _named(chips: Mapping[int, int]) -> dict[str, int]:
    return {f"seat_{seat}": amount for seat, amount in sorted(chips.items())}


def _noted(seat: int, faults: tuple[Fault, ...]) -> tuple[Note, ...]:
    """The notes of an action's irregularities, with the returned chips."""
    return tuple(
        Note(
            one.code,
            say("seat_chips_back", seat=seat, chips=one.chips) if one.chips else say("seat_alone", seat=seat),
            one.article,
        )
        for one in faults
    )
