"""The decisions of a blackjack round: at its turn, surrender, even money, insurance, the peek.

Called by the rounds of `blackjack_round.py` with the cards and the bets of the open round; all is pure. `Text` holds
the rules of a text and a house for the round; `House` those for the play of the hands.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import MOST, SeatActed, WagerPlaced
from protocols.contract.reasons import Reason, Value, say
from rules.engine.cloth import give_back
from rules.engine.facts import PLAIN, Effect, Note
from rules.engine.limits import Limits
from rules.engine.rounds import Round
from rules.engine.ruleset import Wager
from rules.games.blackjack import DECISIONS, UNSURE, Hand, House, Play, is_blackjack, said
from rules.games.blackjack_stakes import Decides, Streak, added, decider, is_main, stake_of

Step: TypeAlias = tuple["Position", Effect]
Notes: TypeAlias = tuple[Note, ...]
NO_NOTES: Final[Notes] = ()
UNLIMITED: Final = -1
TableDoubt: TypeAlias = Literal["seats", "card_after_end", "decision_after_end", "loss_after_end"]
"""The doubts about a table between its rounds.

`seats`: the known open seats may be incomplete. `card_after_end`, `decision_after_end`, `loss_after_end`: a card, a
decision of a seat without a hand, or a loss of events, came between the end of the last round and its payment. With two
of them a hand of that round may not be known.
"""
AFTER_END: Final[tuple[TableDoubt, ...]] = ("card_after_end", "decision_after_end", "loss_after_end")
# Why a decision was not taken: the codes of these irregularities.
_REFUSALS: Final = frozenset(
    (
        *("decision_before_deal", "decision_before_peek", "decision_before_card", "decision_not_allowed"),
        *("cards_do_not_allow", "out_of_turn", "wrong_amount", "insured_twice"),
    )
)
# The same of an insurance; other bets have them from the bell.
_INSURANCE_REFUSALS: Final = frozenset(("bet_outside_limits", "settlement_too_large"))


class Text(Struct, frozen=True):
    """The rules of a text and a house's options for a round.

    `articles`: the article of each rule, by the names that the rounds use. `law`: those of every result. `device`: what
    deals the cards. `burn`: cards burnt before the game; `burn_each`: in each round after the first. `rounds`: the
    number that one shuffle serves. `face_up`: whether a card face up in the shoe is void, void except for the first
    one, or valid. `mispulled`: a card without a request puts the round in doubt; or goes to the next hand that asks, if
    it was unseen (`unseen`), or if its device or a person reports that it was (`ask`). `hole_replaced`: a hole card
    that was turned when it was dealt is replaced. `unseen_extra_counts`: a needless unseen card of the bank counts.
    `free`: each bettor of a seat chooses whether he follows a split, a double or an insurance.
    """

    articles: Mapping[str, str]
    law: tuple[str, ...]
    decks: int
    burn: int
    device: Literal["shoe", "metal_box", "continuous"] = "shoe"
    burn_each: Literal["none", "one", "one_and_before_second"] = "none"
    rounds: int = UNLIMITED
    face_up: Literal["void", "first_valid", "valid"] = "valid"
    mispulled: Literal["doubt", "unseen", "ask"] = "doubt"
    hole_replaced: bool = False
    unseen_extra_counts: bool = False
    insurance: Literal["half_to_whole", "half", "up_to_half"] = "up_to_half"
    bettors: int = 1
    decides: Decides = "seated"
    free: bool = False


class Position(Struct, frozen=True):
    """The table between and in its rounds.

    `play`: the cards of the open round, or those of the last one until the next begins; `open`: which of the two.
    `seats`: the open ones. `paid`: the last round's prizes are paid. `burn` counts the cards still to be burnt, UNSURE
    where that is not known; `left` the rounds that may still be dealt before a shuffle. `shoe`: shuffled without a
    round since, in use, or unknown. `drawn`: cards that left the shoe, UNSURE where that is not known; `alone`: one
    player, as far as is known, was at the table when it was filled. `returned`: the cards of the last round went back.
    `streaks` are open, `standing` those of this round as they stood at the bell, `earlier` of them from rounds before.
    """

    play: Play | None = None
    open: bool = False
    seats: tuple[int, ...] = ()
    paid: bool = False
    burn: int = 0
    left: int = UNLIMITED
    shoe: Literal["unknown", "fresh", "used"] = "unknown"
    doubts: tuple[TableDoubt, ...] = ()
    drawn: int = UNSURE
    alone: bool = True
    returned: bool = False
    streaks: tuple[Streak, ...] = ()
    standing: tuple[Streak, ...] = ()
    earlier: int = 0

    def with_doubts(self, *doubts: TableDoubt) -> "Position":
        """The position with these doubts."""
        return replace(self, doubts=tuple(sorted({*self.doubts, *doubts})))

    def without_doubts(self, *doubts: TableDoubt) -> "Position":
        """The position after these doubts were settled."""
        return replace(self, doubts=tuple(one for one in self.doubts if one not in doubts))

    @property
    def kept_streaks(self) -> tuple[Streak, ...]:
        """The streaks that remain after a void round: after a loss of events, only those begun in earlier rounds."""
        if self.play is None or not self.play.hands:
            return self.streaks
        return self.standing[: self.earlier] if "bets" in self.play.doubts else self.standing


NEVER_PLAYED: Final = Position()


class Decisions:
    """What the seats and the bank decide at a table with this text."""

    def __init__(self, text: Text, house: House, limits: Callable[[], Limits]) -> None:
        """Hold no state of a table."""
        self._limits = limits
        self.text = text
        self.law = text.articles
        self.house = house

    def decides(self, round_: Round, seat: int) -> str:
        """The bet of a seat that its decisions are for; "" for all of them."""
        return decider(round_.wagers, seat, self.text.decides) if self.text.free else ""

    def go(self, p: Position, play: Play, round_: Round, notes: Notes = ()) -> Step:
        """Continue the round. At its end, insurance bets that are too small or outside the limits go back."""
        if self.house.over(play):
            for one in round_.wagers:
                if not one.bet.startswith("insurance"):
                    continue
                text = self.outside_limits(one)
                if one.bet == "insurance" and one.seat not in play.insured:
                    text = text or say("insurance_short", seat=one.seat, amount=one.amount)
                if text is not None:
                    notes += (Note("wrong_amount", text, self.law["insurance"]),)
                    round_ = give_back(round_, one)
        return replace(p, play=play), Effect(notes, round=round_)

    def acted(self, p: Position, play: Play, round_: Round, told: SeatActed) -> Step:
        house, seat, number, action = self.house, told.seat, told.hand, told.action
        text = say("seat_hand_action", seat=seat, number=number, action=action)
        if round_.suspended and action not in ("insurance", "even_money"):
            return replace(p, play=house.untaken(play, seat, number, action)), PLAIN
        if "bets" in play.doubts and not round_.closed:  # the bell may be among the missing events
            return p, PLAIN
        if not round_.closed or play.dealt < play.first_deal:
            play = _astray(house.untaken(play, seat, number, action), action)
            return refuse(p, play, "decision_before_deal", text, self.law["before_deal"])
        place = play.turn if play.turn < len(play.hands) else None
        match action:
            case "insurance":
                return self.insure(p, play, round_, seat, told.amount)
            case "even_money":
                return self._even_money(p, play, round_, seat)
            case "surrender" if house.surrender == "before_any_card":
                place = next((n for n, hand in enumerate(play.hands) if hand.seat == seat), None)
        if place is None or (play.hands[place].seat, play.hands[place].number) != (seat, number):
            if any(hand.number == number and said(hand, action) for hand in play.of(seat)):
                return p, PLAIN
            play = _astray(house.untaken(play, seat, number, action), action)
            if play.hands and not play.of(seat) and "mispulled" in play.doubts:
                note = Note("out_of_turn", text, self.law["decision"])
                return replace(p, play=play), Effect((note,), suspend=say("mispulled_or_unseated", seat=seat))
            return refuse(p, play, "out_of_turn", text, self.law["decision"])
        hand = play.hands[place]
        if hand.ended == action:
            return p, PLAIN
        if play.asked and place == play.turn:
            if action == ("double" if hand.doubled else "hit"):
                return p, PLAIN
            undone, unlaid = _unasked(play, round_)
            if action in house.possible_actions(undone, undone.hands[place]):
                return self._contradicted(p, undone, unlaid, proven=action == "stand" and not hand.doubled)
        return self._decide(p, play, round_, place, told)

    def _decide(self, p: Position, play: Play, round_: Round, place: int, told: SeatActed) -> Step:
        """Apply the decision of the hand in that place, if it is allowed."""
        house, hand, action = self.house, play.hands[place], told.action
        text = say("seat_hand_action", seat=hand.seat, number=hand.number, action=action)
        article = self.law["decision"]
        if action in DECISIONS:
            article = self.law.get(action, article)
        if house.peek_due(play):
            return refuse(p, play, "decision_before_peek", text, self.law["peek"])
        at_turn = place == play.turn
        if at_turn and house.card_for(play) >= 0:
            if action == "split" and hand.split and len(hand.cards) == 1:
                return p, PLAIN
            return refuse(p, play, "decision_before_card", text, self.law["decision"])
        early = ("surrender",) if not hand.ended and house.may_surrender(play, hand) else ()
        if action not in (house.actions(play, hand) if at_turn else early):
            surrenders = ("surrender",) if house.offers_surrender(play, hand) else ()
            offered = house.possible_actions(play, hand) if at_turn else surrenders
            code = "cards_do_not_allow" if action in offered else "decision_not_allowed"
            return refuse(p, play, code, text, article)
        lays = action in ("double", "split")
        by = self.decides(round_, hand.seat) if lays else ""
        stake = stake_of(round_.wagers, hand.seat, by) if told.amount and "bets" not in play.doubts else 0
        if told.amount and (not lays or (stake and told.amount != stake)):
            article = article if action != "split" else self.law["split_amount"]
            wrong = say(
                "wrong_amount", seat=hand.seat, number=hand.number, action=action, amount=told.amount, stake=stake
            )
            return refuse(p, play, "wrong_amount", wrong, article)
        if action == "double":
            round_ = replace(round_, wagers=added(round_.wagers, hand.seat, hand.number, "double", by))
        elif action == "split":
            number = max(one.number for one in play.of(hand.seat)) + 1
            round_ = replace(round_, wagers=added(round_.wagers, hand.seat, number, "main", by))
        followed = lays and bool(play.held) and self.may_follow(round_, hand)
        return self.go(p, house.decided(play, place, action, followed=followed), round_)

    def may_follow(self, round_: Round, hand: Hand) -> bool:
        """Whether a player on another seat has a bet on the hand, and may follow its split or double."""
        by = self.decides(round_, hand.seat)
        mine = (one for one in round_.wagers if (one.seat, one.hand) == (hand.seat, hand.number))
        return self.text.free and any(is_main(one.bet) and one.bet != by for one in mine)

    def _contradicted(self, p: Position, undone: Play, round_: Round, *, proven: bool) -> Step:
        """Two contradicting decisions: neither counts until one is repeated or the cards prove a stand or a hit."""
        name = undone.hands[undone.turn].name
        play = undone if proven else undone.doubted(name)
        reason = say("two_decisions", hand=name)
        return replace(p, play=play), Effect(suspend=reason, round=round_)

    def outside_limits(self, insurance: Wager, *, grows: bool = False) -> Reason | None:
        """Why the house's limits refuse an insurance; one that `grows` by more chips may still be too small."""
        allowed = self._limits().range_of("insurance")
        if allowed is None or allowed.holds(insurance.amount) or (grows and insurance.amount <= allowed.most):
            return None
        laid: dict[str, Value] = {"seat": insurance.seat, "bet": insurance.bet, "amount": insurance.amount}
        if allowed.least <= insurance.amount <= allowed.most:
            return say("bet_not_in_steps", **laid, step=allowed.step)
        return say("stake_limits", **laid, least=allowed.least, most=allowed.most)

    def insure(self, p: Position, play: Play, round_: Round, seat: int, amount: int, *, chip: bool = False) -> Step:
        """Take an insurance against an ace, before the seat decides, up to the part of the bet that the text allows.

        A `chip` adds to earlier ones; a person enters the whole amount.
        """
        by, law = self.decides(round_, seat), self.law["insurance"]
        name = "insurance" + by[4:]
        laid = next((one.amount for one in round_.wagers if (one.seat, one.bet) == (seat, name)), 0)
        adds = chip and seat not in play.uncounted
        whole = min(laid + amount, MOST) if adds else amount
        text = say("seat_action", seat=seat, action="insurance")
        if whole:
            text = say("seat_action_amount", seat=seat, action="insurance", amount=whole)
        if seat in play.insured and not adds:
            if not amount or amount == laid or (chip and not laid):
                return p, PLAIN
            if laid:
                return refuse(p, play, "insured_twice", text, law)
        if not self.house.may_insure(play, seat):
            return refuse(p, play, "decision_not_allowed", text, law)
        stake = 0 if "bets" in play.doubts else stake_of(round_.wagers, seat, by)
        most, enough = self._insurable(stake, whole)
        if stake and (whole > most or not (enough or chip)):
            known = say("wrong_insurance", seat=seat, amount=whole, stake=stake)
            wrong = known if whole else say("insurance_unknown", seat=seat, stake=stake)
            return refuse(p, play, "wrong_amount", wrong, law)
        if whole and (outside := self.outside_limits(Wager(seat, name, whole), grows=chip)):
            return refuse(p, play, "bet_outside_limits", outside, law)
        enough = enough and not (whole and self.outside_limits(Wager(seat, name, whole)))
        if not stake and self._too_large(round_, WagerPlaced(seat, name, whole or 1)):
            large = say("settlement_too_large", seat=seat, bet=name, amount=amount)
            return refuse(p, play, "settlement_too_large", large, law)
        if whole and (adds or not chip):
            others = tuple(one for one in round_.wagers if (one.seat, one.bet) != (seat, name))
            round_ = replace(round_, wagers=(*others, Wager(seat, name, whole)))
        insured = (*play.insured, seat) if enough and seat not in play.insured else play.insured
        uncounted = play.uncounted if adds or seat in play.uncounted else (*play.uncounted, seat)
        return self._taken(p, replace(play, insured=insured, uncounted=uncounted), round_)

    def insurance(self, play: Play, round_: Round) -> dict[str, int]:
        """The insurance of half the bet, which every text allows, by seat with a known bet."""
        if "bets" in play.doubts or not play.bank:
            return {}
        seats = dict.fromkeys(hand.seat for hand in play.hands if hand.seat not in play.insured)
        stakes = {
            seat: stake_of(round_.wagers, seat, self.decides(round_, seat))
            for seat in seats
            if self.house.may_insure(play, seat)
        }
        halves = {str(seat): self._half_of(stake) for seat, stake in stakes.items()}
        return {seat: amount for seat, amount in halves.items() if amount}

    def _half_of(self, stake: int) -> int:
        """Half a bet, rounded as the text allows."""
        return stake // 2 if self.text.insurance == "up_to_half" else (stake + 1) // 2

    def _too_large(self, round_: Round, insurance: WagerPlaced) -> bool:
        """Whether the insurance of an unknown bet could win too much; a known bet is counted with its insurance."""
        place = insurance.seat, insurance.bet
        first = [one for one in round_.wagers if one.hand <= 1 and not one.bet.startswith("double")]
        return self._limits().too_large([one for one in first if (one.seat, one.bet) != place], insurance)

    def _insurable(self, stake: int, whole: int) -> tuple[int, bool]:
        """The most that may be laid on insurance, and whether `whole` is enough of it."""
        match self.text.insurance:
            case "half_to_whole":
                return stake, stake <= 2 * whole
            case "half":
                return (stake + 1) // 2, stake <= 2 * whole
            case _:
                return stake // 2, bool(whole) or not stake

    def _even_money(self, p: Position, play: Play, round_: Round, seat: int) -> Step:
        """Take even money: a blackjack is paid like any win, before the bank's second card is known."""
        place = next((n for n, hand in enumerate(play.hands) if hand.seat == seat), None)
        hand = play.hands[place] if place is not None else Hand(seat)
        if hand.ended == "even_money":
            return p, PLAIN
        asks = is_blackjack(hand.cards) and not hand.split and hand.ended in ("", "blackjack")
        if place is None or not asks or not self.house.may_take_even_money(play):
            text = say("seat_action", seat=seat, action="even_money")
            return refuse(p, play, "decision_not_allowed", text, self.law["even_money"])
        return self._taken(p, play.with_hand(place, replace(hand, ended="even_money")), round_)

    def _taken(self, p: Position, play: Play, round_: Round) -> Step:
        """Take a decision that is independent of others; while the round waits for a person it has no consequence."""
        if round_.suspended:
            return replace(p, play=play), Effect(round=round_)
        return self.go(p, self.house.advanced(play), round_)

    def peek(self, p: Position, play: Play, round_: Round, *, blackjack: bool) -> Step:
        if not round_.closed:
            return p, noting_beside("peek_without_deal", say("peek_no_card"), self.law["peek"])
        if round_.suspended or play.peeked == ("yes" if blackjack else "no"):
            return p, PLAIN
        if play.peeked:
            return p, Effect(suspend=say("peek_twice"))
        if not self.house.peek_due(play):
            text = say("peek_not_due")
            return refuse(p, play, "peek_not_due", text, self.law["peek"])
        if is_blackjack(play.bank) != blackjack:
            return p, Effect(suspend=say("peek_and_shoe"))
        return self.go(p, self.house.peeked(play, blackjack=blackjack), round_)


def noting(code: str, text: Reason, article: str) -> Effect:
    """Note an irregularity; the state stays."""
    return Effect((Note(code, text, article),), evidence=False)


def noting_beside(code: str, text: Reason, article: str) -> Effect:
    """Note an irregularity outside any round."""
    return Effect(beside=(Note(code, text, article),), evidence=False)


def refuse(p: Position, play: Play, code: str, text: Reason, article: str) -> Step:
    """Note the decision as an irregularity and do not take it."""
    return replace(p, play=play), noting(code, text, article)


def _unasked(play: Play, round_: Round) -> tuple[Play, Round]:
    """The round before the hand at its turn asked for a card or doubled."""
    hand = play.hands[play.turn]
    if hand.doubled:
        mine, bets = (hand.seat, hand.number), round_.wagers
        kept = tuple(one for one in bets if (one.seat, one.hand) != mine or not one.bet.startswith("double"))
        round_ = replace(round_, wagers=kept)
        play = play.with_hand(play.turn, replace(hand, doubled=0))
    return replace(play, asked=False), round_


def unseated_decision(play: Play, round_: Round) -> int | None:
    """The seat of a decision without a hand: the report of its bet may be missing."""
    told = (one.reason.values["seat"] for one in round_.irregularities if one.code == "out_of_turn")
    return next((seat for seat in told if isinstance(seat, int) and not play.of(seat)), None)


def last_refusal(round_: Round) -> str:
    """Why the last decision was not taken; "" after any later event."""
    if not round_.irregularities or round_.evidence[-1:] != (round_.irregularities[-1].event,):
        return ""
    last = round_.irregularities[-1]
    insures = str(last.reason.values.get("bet", "")).startswith("insurance")
    return last.code if last.code in _REFUSALS or (insures and last.code in _INSURANCE_REFUSALS) else ""


def _astray(play: Play, action: str) -> Play:
    """The play after a refused decision that brings a card: the next card may be that hand's."""
    return play.with_doubts("next_card") if play.closed and action in ("hit", "double", "split") else play
