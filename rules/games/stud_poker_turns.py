"""Bets and decisions of a round of stud poker, and the outcome of each step.

The base of `rules/games/stud_poker_round.py`. A `Turn` is the round while one event is applied.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import MOST, SeatActed, WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import Reason, say
from rules.engine.cloth import give_back, lying, refuse, wager, with_refused
from rules.engine.facts import PLAIN, Effect, Fact, Note
from rules.engine.limits import from_terminal
from rules.engine.refold import Game
from rules.engine.rounds import Round, irregular
from rules.engine.ruleset import Wager
from rules.games.stud_poker import SEATS, Deal, Doubt, Hands, Position, Rulings, contradiction, too_early, unbacked

Step: TypeAlias = tuple[Position, Effect]

TELL: Final = say("do_tell_hands")
MISSING: Final = say("round_events")
NAME_IT: Final = say("do_name_hand")
WHO_PLAYS: Final = say("do_who_plays")
AGAIN: Final = say("do_decide")
ONE_MORE: Final = say("packet_more")


class Turn(Struct, frozen=True):
    """A round while one event is applied: the deal and the bets so far, and the notes.

    `disputed`: the round has a result. `beside`: notes outside any round. `evidence`: the event is evidence, even if
    nothing was noted.
    """

    p: Position
    deal: Deal
    round_: Round
    disputed: bool = False
    notes: tuple[Note, ...] = ()
    beside: tuple[Note, ...] = ()
    evidence: bool = True

    def dealt(self, **changes: Any) -> "Turn":
        """The turn with these changes of the deal."""
        return replace(self, deal=replace(self.deal, **changes))

    def doubting(self, *doubts: Doubt) -> "Turn":
        """The turn with these doubts added."""
        return replace(self, deal=self.deal.with_doubts(*doubts))

    def unsuspended(self) -> "Turn":
        """The turn with its round no longer suspended."""
        return replace(self, round_=replace(self.round_, suspended=None)) if self.round_.suspended else self

    def end(self, **effect: Any) -> Step:
        """End the turn: the new position and the effect."""
        position = replace(self.p, deal=self.deal)
        done = Effect(self.notes, round=self.round_, beside=self.beside, evidence=self.evidence, **effect)
        return position, done


class StudPokerTurns(Game[Position]):
    """Bets and decisions of the seats under one text of the law."""

    steps_wagers = "always"
    corrects_last = False
    fixed_bets: ClassVar[tuple[str, ...]] = ("raise",)
    remedy: ClassVar[Reason] = TELL
    waits_for_bell = True
    rulings: ClassVar[Rulings]

    dealing: str
    """The device that deals: shoe, shuffler or either."""
    jackpot: bool
    """Whether a progressive jackpot is offered."""
    burns: bool = False
    """Whether the shoe or shuffler reports the card that is burnt before the deal."""
    bet_limits: Mapping[str, tuple[int, int]] = {}
    """The smallest and the largest amount of each bet by the text; 0: no limit."""

    @abstractmethod
    def missing(self, deal: Deal, round_: Round, hands: Hands) -> tuple[str, ...]:
        """The hands that must be entered before the round can end."""

    def article_of(self, code: str) -> str:
        """The article of an irregularity."""
        return self.rulings.articles[code]

    def cite(self, article: str) -> str:
        """An article as results cite it."""
        return f"{self.rulings.cite} art. {article}"

    def _note(self, code: str, reason: Reason, rule: str = "") -> Note:
        """A note of an irregularity. `rule`: the key of its article in the rulings, if that is not `code`."""
        return Note(code, reason, self.article_of(rule or code))

    def _noting(self, turn: Turn, code: str, reason: Reason, rule: str = "") -> Turn:
        return replace(turn, notes=(*turn.notes, self._note(code, reason, rule)))

    # ---- the outcome of a step

    def _hold(self, turn: Turn, reason: Reason, remedy: Reason = TELL, *, blind: bool = True) -> Step:
        """Suspend the round until the hands are entered."""
        turn = turn.doubting("held", "cards") if blind else turn.doubting("held")
        return turn.end(suspend=reason, remedy=remedy)

    def _go_on(self, turn: Turn) -> Step:
        """End the round if all have decided and the opened hands are known; otherwise continue."""
        deal = turn.deal
        if "held" in deal.doubts or deal.who("doubted") or deal.asked or not deal.players:
            return turn.end()
        turn = turn.unsuspended()
        if deal.dealing or not deal.all_decided or self.missing(deal, turn.round_, deal.known()):
            return turn.end()
        if wrong := contradiction(deal):
            return self._hold(turn, wrong)
        return turn.dealt(ended=True).end()

    # ---- the betting

    def lies(self, position: Position, round_: Round, one: WagerWithdrawn) -> int:
        """The amount that lies on a bet. A raise is laid after the bell, so the deal has its chips, not the round."""
        if one.bet == "raise" and position.deal is not None:
            return position.deal.chips.get(one.seat, 0)
        return lying(round_, one.seat, one.bet)

    def _wager_between(self, p: Position, one: WagerPlaced | WagerWithdrawn) -> Step:
        reason = say("seat_bet", seat=one.seat, bet=one.bet)
        if one.seat not in SEATS:
            return p, Effect((self._no_such_bet(one),))
        if one.bet != "raise":
            return p, Effect((self._note("bet_without_round", reason),))
        if p.deal is not None and one.seat in p.deal.raised:
            return p, PLAIN  # the console reported this raise before the sensor
        return self._decision_between(p, one.seat, reason, raises=isinstance(one, WagerPlaced))

    def _no_such_bet(self, one: WagerPlaced | WagerWithdrawn) -> Note:
        return self._note("no_such_seat", say("seat_bet_there_are", seat=one.seat, bet=one.bet, seats=len(SEATS)))

    def _wager(self, turn: Turn, one: WagerPlaced | WagerWithdrawn, fact: Fact) -> Step:
        if one.seat not in SEATS:
            return replace(turn, notes=(*turn.notes, self._no_such_bet(one)), evidence=False).end()
        if one.bet == "raise":
            return self._raise_chips(turn, one, fact)
        deal, round_ = turn.deal, turn.round_
        late = round_.closed
        if one.bet == "jackpot" and self.jackpot:
            if one.seat in deal.carried:
                return self._carried_again(turn, one)
            late = late and (deal.begun or self.rulings.jackpot_until == "bell")
            stranger = round_.closed and not late and one.seat not in deal.players
            if stranger and "antes" in deal.doubts and isinstance(one, WagerPlaced):
                turn = turn.dealt(asked={one.seat: "", **deal.asked})
            elif stranger:
                text = say("without_ante", seat=one.seat, bet=one.bet)
                return self._refuse(turn, one, "jackpot_without_ante", text, fact)
        if one.bet == "ante" and one.seat in deal.entered:
            turn, enough = _felt_again(turn, one)
            if enough:
                return turn.end()
        if from_terminal(one) and not late and one.bet in self.bet_limits:  # answered at once, not at the bell
            lay = lying(round_, one.seat, one.bet)
            left = lay + one.amount if isinstance(one, WagerPlaced) else lay - (one.amount or lay)
            reason = self._outside(Wager(one.seat, one.bet, min(left, MOST))) if left > 0 else None
            if reason is not None:
                return self._noting(turn, "outside_limits", reason, f"{one.bet}_limits").end()
        law = self.cite(self.article_of("late_jackpot" if late else "bet"))
        raises = unbacked(deal, round_) if deal.chips else ()
        laid = wager(replace(round_, closed=late), one, self.offered, law, fact, self.limits, raises)
        turn = replace(turn, round_=replace(laid, closed=round_.closed), evidence=False)
        return self._ask(turn) if turn.deal.asked else turn.end()

    def _refuse(self, turn: Turn, one: WagerPlaced | WagerWithdrawn, code: str, reason: Reason, fact: Fact) -> Step:
        round_ = refuse(turn.round_, one, code, reason, self.cite(self.article_of(code)), fact)
        return replace(turn, round_=round_).end()

    def _carried_again(self, turn: Turn, one: WagerPlaced | WagerWithdrawn) -> Step:
        """Ignore a report about a jackpot bet that was carried over: a chip reported again is the same chip."""
        if isinstance(one, WagerPlaced):
            return turn.end()
        return self._noting(turn, "bet_stands", say("bet_transferred", seat=one.seat, bet=one.bet)).end()

    def _close(self, turn: Turn) -> Turn:
        """Close the bets and set the playing seats.

        A jackpot bet without an ante is returned, unless the report of an ante may have been lost.
        """
        deal, round_ = turn.deal, turn.round_
        players, asked = deal.antes(round_) or turn.p.seats, deal.asked
        lost = "bets" in deal.doubts
        if lost:
            asked = {one.seat: "" for one in round_.wagers if one.seat not in players}
            deal = deal.without_doubts("bets").with_doubts("antes")
        else:
            turn = self._without_ante(turn, players)
        for one in turn.round_.wagers if self.bet_limits else ():
            if reason := self._outside(one):
                turn = self._noting(turn, "outside_limits", reason, f"{one.bet}_limits")
        if "carried" in deal.doubts and self.jackpot:
            turn = self._noting(turn, "jackpot_bets_unknown", say("jackpot_bets_unknown"), "void")
        turn = replace(turn, deal=replace(deal, id=round_.id, players=players, asked=asked))
        return turn if deal.in_doubt("antes", "amounts") else self.sat_out(turn)

    def sat_out(self, turn: Turn) -> Turn:
        """Note the open seats that do not play, for texts that require it."""
        return turn

    def _without_ante(self, turn: Turn, players: tuple[int, ...]) -> Turn:
        """Return the jackpot bets of seats without an ante."""
        back = tuple(one for one in turn.round_.wagers if one.seat not in players)
        for one in back:
            text = say("without_ante_back", seat=one.seat, bet=one.bet)
            turn = self._noting(turn, "jackpot_without_ante", text)
        return replace(turn, round_=give_back(turn.round_, *back))

    def _outside(self, one: Wager) -> Reason | None:
        """Why a bet is outside the limits of the text."""
        least, most = self.bet_limits.get(one.bet, (0, 0))
        if least <= one.amount <= (most or one.amount):
            return None
        return say("outside_limits", seat=one.seat, bet=one.bet, amount=one.amount, least=least, most=most)

    def _bell(self, turn: Turn) -> Step:
        deal, round_ = turn.deal, turn.round_
        if round_.closed:
            return turn.end()
        if not (deal.antes(round_) or turn.p.seats or "bets" in deal.doubts):
            return self._noting(turn, "no_ante", say("nobody_ante_bell")).end(course="stays")
        turn = self._close(turn)
        if not turn.deal.players:
            return self._hold(turn, MISSING, WHO_PLAYS, blind=False)
        return self._ask(turn) if turn.deal.asked else turn.end()

    # ---- the decisions

    def _early(
        self,
        turn: Turn,
        code: str,
        reason: Reason,
        decision: tuple[int, Literal["raise", "fold", ""]] = (0, ""),
        *,
        chips: bool = False,
    ) -> Step:
        """Note and ignore a decision before the first card: it belongs to the last round.

        A second one shows that cards were dealt without a report. It suspends the round, and both decisions count for
        this round, except those of a seat with both a raise and a fold.
        """
        turn, deal = self._noting(turn, code, reason), turn.deal
        seat, action = decision
        if not turn.round_.closed:
            return turn.dealt(burnt=0).end()  # the burnt card that was reported belongs to the last round, too
        if chips and not deal.early:
            return turn.end()  # one report of raise chips proves nothing: players often move them
        said = "" if chips or deal.early.get(seat, action) != action else action
        early = {**deal.early, seat: said}
        if not deal.early:
            return turn.dealt(early=early).end()
        decisions = {one: word for one, word in early.items() if word and one in deal.players}
        refused = {one: word for one, word in early.items() if one and one not in deal.players}
        turn = turn.dealt(early=early, decisions=decisions, refused={**deal.refused, **refused})
        return self._hold(turn, MISSING)

    def _bad_action(self, acted: SeatActed) -> Note | None:
        """The note of a decision that is impossible at this table."""
        values: dict[str, str | int] = {"seat": acted.seat, "action": acted.action}
        if acted.seat not in SEATS:
            return self._note("no_such_seat", say("seat_action_there_are", **values, seats=len(SEATS)))
        if acted.hand != 1:
            return self._note("one_hand_only", say("seat_action_hand", **values, number=acted.hand))
        if acted.action not in ("ante", "raise", "fold"):
            return self._note("no_such_decision", say("seat_action", **values))
        return None

    def _acted_between(self, p: Position, acted: SeatActed) -> Step:
        if note := self._bad_action(acted):
            return p, Effect((note,))
        reason = say("seat_action", seat=acted.seat, action=acted.action)
        return self._decision_between(p, acted.seat, reason, raises=acted.action == "raise")

    def _decision_between(self, p: Position, seat: int, reason: Reason, *, raises: bool) -> Step:
        """Apply a decision after a result: a repetition, a raise after a fold, or a decision without a round."""
        deal = p.deal
        if deal is None or seat not in deal.players or deal.paid or "bets" in p.doubts:
            if "bets" in p.doubts and p.loose:
                p = replace(p, loose=0)  # cards of a deal whose bets were lost
            return p, Effect((self._note("decision_without_round", reason),))
        if raises and seat in deal.folded:  # the fold is final; where it is not, the raise has reopened the round
            return p, Effect((self._note("fold_is_final", say("fold_is_final", seat=seat)),))
        return p, PLAIN

    def _acted(self, turn: Turn, acted: SeatActed, fact: Fact) -> Step:
        if note := self._bad_action(acted):
            return replace(turn, notes=(note,), evidence=False).end()
        return self._ante(turn, acted, fact) if acted.action == "ante" else self._decided(turn, acted, fact)

    def _ante(self, turn: Turn, acted: SeatActed, fact: Fact) -> Step:
        """Apply an ante entered at the console; with an amount it is a wager, unless an ante lies there already."""
        deal, round_, seat = turn.deal, turn.round_, acted.seat
        if deal.in_doubt("antes") and (deal.asked or deal.in_doubt("held")) and seat not in deal.players:
            return self._plays(turn, seat)
        lay = lying(round_, seat, "ante")
        if acted.amount and not lay:
            p, effect = self._wager(turn, WagerPlaced(seat, "ante", acted.amount), fact)
            laid = effect.round or round_
            effect = replace(effect, round=replace(laid, refused=round_.refused))  # an entry moves no chips
            if lying(laid, seat, "ante") and p.deal is not None:
                p = replace(p, deal=replace(p.deal, entered=tuple(sorted({*p.deal.entered, seat}))))
            return p, effect
        differs = acted.amount not in (0, lay)
        if round_.closed and (differs or seat not in deal.players):
            if round_.suspended:
                reason = say("bet_while_waiting", seat=seat, bet="ante")
            else:
                reason = say("late_bet", seat=seat, bet="ante")
            return self._noting(turn, reason.code, reason).end()
        if not round_.closed:
            turn = turn.dealt(anted=tuple(sorted({*deal.anted, seat})))
        return (turn.doubting("amounts") if differs else turn).end()

    def _ask(self, turn: Turn) -> Step:
        """Suspend until it is entered which of the `asked` seats play; the reason names the lowest of them."""
        reason = say("ante_missing", seat=min(turn.deal.asked))
        if turn.round_.suspended != reason:
            turn = turn.unsuspended()
        return turn.end(suspend=reason, remedy=WHO_PLAYS)

    def _plays(self, turn: Turn, seat: int) -> Step:
        """Let a seat play after a person confirmed its ante, and apply the decision that it has reported already."""
        deal = turn.deal
        match deal.asked.get(seat):
            case "raise":
                deal = deal.decide(seat, "raise")
            case "fold":
                deal = deal.decide(seat, "fold")
        deal = deal.with_doubts("amounts", "cards") if deal.dealt else deal.with_doubts("amounts")
        deal = replace(
            deal,
            players=tuple(sorted({*deal.players, seat})),
            anted=tuple(sorted({*deal.anted, seat})),
            asked={other: word for other, word in deal.asked.items() if other != seat},
            dead=tuple(other for other in deal.dead if other != seat),
        )
        turn = replace(turn, deal=deal)
        if deal.asked:
            return self._ask(turn)
        if "held" in deal.doubts and deal.dealt:
            return self._hold(turn.unsuspended(), MISSING, TELL)
        return self._go_on(turn)

    def _not_yet(self, turn: Turn, seat: int, action: Literal["raise", "fold"], reason: Reason) -> Step | None:
        """The step of a decision that `seat` cannot take now; None where it can."""
        deal, chips = turn.deal, reason.code == "seat_bet"  # reported by a sensor, not as an action
        if not turn.disputed and too_early(deal, heard=turn.p.heard):
            return self._early(turn, "decision_before_deal", reason, (seat, action), chips=chips)
        if seat in deal.players:
            return None
        if "antes" in deal.doubts or turn.round_.suspended == ONE_MORE:
            # A seat that decides has cards, also if its ante was not reported.
            turn = turn.doubting("antes", "cards") if deal.dealt else turn.doubting("antes")
            before = deal.asked.get(seat, "")
            word = action if before in ("", action) else "fold" if self.rulings.fold_final else ""
            dead = tuple(other for other in deal.dead if other != seat)
            return self._ask(replace(turn, evidence=False).dealt(asked={**deal.asked, seat: word}, dead=dead))
        if "amounts" not in deal.doubts:  # after a loss of events the decision may belong to the next round
            turn = self._noting(turn, "decision_without_ante", reason)
        turn = turn.dealt(refused={**deal.refused, seat: action})
        missing = say("no_ante_raise", seat=seat) if chips else say("no_ante", seat=seat, action=action)
        return self._hold(turn, missing, NAME_IT)

    def _decided(self, turn: Turn, acted: SeatActed, fact: Fact) -> Step:
        """Apply a raise or a fold."""
        seat, raises = acted.seat, acted.action == "raise"
        if step := self._not_yet(
            turn, seat, "raise" if raises else "fold", say("seat_action", seat=seat, action=acted.action)
        ):
            return step
        deal, round_ = turn.deal, turn.round_
        said, chips = deal.decisions.get(seat), deal.chips.get(seat, 0)
        if seat in (deal.raised if raises else deal.folded):
            return turn.end()
        if raises and self._has_folded(deal, seat):
            if not turn.p.supervised:
                return self._noting(turn, "fold_is_final", say("fold_is_final", seat=seat)).end()
            turn = self._fold_reversed(turn, seat)
        elif said != "doubted" and (said or (chips and not raises)):
            return self._contradicted(turn, seat)
        double = 2 * lying(round_, seat, "ante")
        if raises and double:
            for amount in dict.fromkeys((acted.amount, chips)):
                if amount not in (0, double):
                    text = say("raise_not_double", seat=seat, amount=amount, double=double)
                    turn = self._noting(turn, "raise_not_double", text)
        elif raises and acted.amount:
            others = (*round_.wagers, *(one for one in unbacked(deal, round_) if one.seat != seat))
            law = self.cite(self.article_of("bet"))
            why = self.limits.refusal(others, WagerPlaced(seat, "raise", acted.amount), law)
            if why is None:
                chips = acted.amount
            else:  # the raise counts, its amount is not known
                turn = replace(turn, round_=irregular(turn.round_, why.code, why.reason, why.law, fact))
        lie = raises or seat in deal.forfeited
        return self._decide(turn, seat, raises=raises, chips=chips if lie else 0)

    def _decide(self, turn: Turn, seat: int, *, raises: bool, chips: int) -> Step:
        deal = turn.deal
        if deal.dealing:
            turn = self._noting(turn, "decision_before_deal", say("decided_dealing", seat=seat))
        told = {other: amount for other, amount in deal.chips.items() if other != seat}
        turn = turn.dealt(
            chips=told | ({seat: chips} if chips else {}),
            swept=tuple(one for one in deal.swept if one != seat),
            forfeited=tuple(one for one in deal.forfeited if one != seat or not raises),
        )
        return self._go_on(replace(turn, deal=turn.deal.decide(seat, "raise" if raises else "fold")))

    def _has_folded(self, deal: Deal, seat: int) -> bool:
        """Whether the fold of the seat is final, so that a raise does not reverse it."""
        folded = deal.decisions.get(seat) in ("fold", "doubted") and seat not in deal.forfeited
        return self.rulings.fold_final and folded

    def _fold_reversed(self, turn: Turn, seat: int) -> Turn:
        """Reverse a fold: the supervisor, whose key is on, states that the seat did not fold."""
        decisions = {other: said for other, said in turn.deal.decisions.items() if other != seat or said == "doubted"}
        return self._noting(turn, "fold_reversed", say("fold_reversed", seat=seat)).dealt(decisions=decisions)

    def _contradicted(self, turn: Turn, seat: int) -> Step:
        """Suspend for a seat with both a raise and a fold: a third report decides."""
        turn = replace(turn, deal=turn.deal.decide(seat, "doubted"))
        return turn.end(suspend=say("raises_and_folds", seat=seat), remedy=AGAIN)

    def _raise_chips(self, turn: Turn, one: WagerPlaced | WagerWithdrawn, fact: Fact) -> Step:
        """Apply chips on the raise: they are a raise when they are exactly twice the ante."""
        seat = one.seat
        if step := self._not_yet(turn, seat, "raise", say("seat_bet", seat=seat, bet="raise")):
            return step
        deal, round_ = turn.deal, turn.round_
        said, lay, double = deal.decisions.get(seat), deal.chips.get(seat, 0), 2 * lying(round_, seat, "ante")
        if isinstance(one, WagerWithdrawn):
            left = lay - (one.amount or lay)
            if turn.disputed or said == "raise" or not lay or left < 0:
                text = say("raise_taken_back", seat=seat)
                return self._noting(turn, "bet_stands", text, "raise_stands").end()
            return turn.dealt(chips={**deal.chips, seat: left}).end()
        if self._has_folded(deal, seat):
            if not turn.p.supervised:
                return self._refuse(turn, one, "fold_is_final", say("fold_is_final", seat=seat), fact)
            turn = self._fold_reversed(turn, seat)
        left = lay + one.amount
        law = self.cite(self.article_of("bet"))
        if not double and (why := self.limits.refusal((*round_.wagers, *unbacked(deal, round_)), one, law)):
            refused = refuse(round_, one, why.code, why.reason, why.law, fact)
            return replace(turn, round_=refused).end()
        if double and left > double:
            text = say("raise_too_much", seat=seat, amount=double)
            turn = self._noting(turn, "raise_not_double", text)
            if from_terminal(one):  # a terminal puts no chips on the layout that could stay there
                return turn.end()
            chips = with_refused(round_.refused, seat, "raise", left - double)
            turn, left = replace(turn, round_=replace(turn.round_, refused=chips)), double
        said = turn.deal.decisions.get(seat)
        laid = turn.dealt(chips={**deal.chips, seat: left})
        if said == "fold":
            return self._contradicted(laid, seat)
        if said is not None or left < double:
            return laid.end()
        return self._decide(turn, seat, raises=True, chips=left)


def _felt_again(turn: Turn, one: WagerPlaced | WagerWithdrawn) -> tuple[Turn, bool]:
    """Apply the sensor's first report of an ante that was entered at the console.

    Also returns whether the report is finished: the same amount means the same chips. Another amount makes the ante
    unknown; after the bell the caller also handles the report as a late bet.
    """
    turn = turn.dealt(entered=tuple(seat for seat in turn.deal.entered if seat != one.seat))
    lay = lying(turn.round_, one.seat, "ante")
    if isinstance(one, WagerWithdrawn) and one.amount <= lay:
        return turn, False
    if one.amount == lay:
        return turn, True
    return turn.doubting("amounts"), not turn.round_.closed
