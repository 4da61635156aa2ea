"""Bets of blackjack players on another seat; they choose themselves whether they follow its decisions.

Called by `blackjack_round.py` where `Text.free` is set. The bet of the player of seat n is `main:n`; he follows an
insurance, a split or a double with chips on `insurance:n`, `split:n` or `double:n` of the seat that decided.
"""

from msgspec.structs import replace

from protocols.contract.events import MOST, WagerPlaced
from protocols.contract.reasons import say
from rules.engine.facts import BESIDE, Effect
from rules.engine.rounds import Round
from rules.engine.ruleset import Wager
from rules.games.blackjack import Hand, Play
from rules.games.blackjack_decisions import Decisions, Position, Step, refuse
from rules.games.blackjack_stakes import decider, stake_of


def follow(decisions: Decisions, p: Position, play: Play, round_: Round, one: WagerPlaced) -> Step | None:
    """Chips laid after the bell on a decision of the seat; None where they are no such chips."""
    kind, _, who = one.bet.partition(":")
    if round_.suspended or not who or kind not in ("insurance", "split", "double"):
        return None
    if "bets" in play.doubts:
        return p, BESIDE
    if decider(round_.wagers, one.seat, decisions.text.decides) == f"main:{who}":
        if kind == "insurance":
            return decisions.insure(p, play, round_, one.seat, one.amount, chip=True)
        return None
    text, article = say("seat_bet", seat=one.seat, bet=one.bet), decisions.law[f"follows_{kind}"]
    stake = stake_of(round_.wagers, one.seat, f"main:{who}")
    if not stake:
        return refuse(p, play, "follows_nothing", text, article)
    if kind == "insurance":
        return _insure(decisions, p, play, round_, one, stake)
    found = _doubled(play, round_, one.seat, who) if kind == "double" else _split(play, round_, one.seat, who)
    if found is None:
        return refuse(p, play, "follows_nothing", text, article)
    if one.amount != stake:
        wrong = say("wrong_amount", seat=one.seat, number=found.hand, action=kind, amount=one.amount, stake=stake)
        return refuse(p, play, "wrong_amount", wrong, article)
    round_ = replace(round_, wagers=(*round_.wagers, replace(found, amount=stake)))
    if play.held and not open_to_others(play, round_):
        return decisions.go(p, decisions.house.given(play), round_)
    return replace(p, play=play), Effect(round=round_)


def open_to_others(play: Play, round_: Round) -> bool:
    """Whether players with a bet on the hand at its turn have not followed its double or split yet."""
    seat = play.hands[play.turn].seat
    who = {one.bet[5:] for one in round_.wagers if one.seat == seat and one.bet.startswith("main:")}
    return any(_doubled(play, round_, seat, one) or _split(play, round_, seat, one) for one in who)


def _insure(decisions: Decisions, p: Position, play: Play, round_: Round, one: WagerPlaced, stake: int) -> Step:
    """Take an insurance beside that of the seat, up to half of the own bet; chips add up."""
    article = decisions.law["follows_insurance"]
    if one.seat not in play.insured or not decisions.house.may_insure(play, one.seat):
        return refuse(p, play, "follows_nothing", say("seat_bet", seat=one.seat, bet=one.bet), article)
    laid = sum(held.amount for held in round_.wagers if (held.seat, held.bet) == (one.seat, one.bet))
    whole = min(laid + one.amount, MOST)
    if whole > stake // 2:
        text = say("wrong_insurance", seat=one.seat, amount=whole, stake=stake)
        return refuse(p, play, "wrong_amount", text, article)
    if outside := decisions.outside_limits(Wager(one.seat, one.bet, whole), grows=True):
        return refuse(p, play, "bet_outside_limits", outside, article)
    others = tuple(held for held in round_.wagers if (held.seat, held.bet) != (one.seat, one.bet))
    return p, Effect(round=replace(round_, wagers=(*others, Wager(one.seat, one.bet, whole))))


def _at_turn(play: Play, seat: int) -> Hand | None:
    return play.hands[play.turn] if play.at_turn(seat) else None


def _lies(round_: Round, seat: int, bet: str, hand: int) -> bool:
    return any((one.seat, one.bet, one.hand) == (seat, bet, hand) for one in round_.wagers)


def _doubled(play: Play, round_: Round, seat: int, who: str) -> Wager | None:
    """The double to be laid: the hand at its turn was doubled, waits for its card, and has a bet of that player."""
    hand = _at_turn(play, seat)
    if hand is None or not hand.doubled or not play.asked or _lies(round_, seat, f"double:{who}", hand.number):
        return None
    return Wager(seat, f"double:{who}", 0, hand.number) if _lies(round_, seat, f"main:{who}", hand.number) else None


def _split(play: Play, round_: Round, seat: int, who: str) -> Wager | None:
    """The second bet to be laid: the hand at its turn was just split, and has a bet of that player."""
    hand, bet = _at_turn(play, seat), f"main:{who}"
    if hand is None or not hand.split or len(hand.cards) != 1 or not _lies(round_, seat, bet, hand.number):
        return None
    new = max((one.number for one in play.of(seat) if one.split_from == hand.number), default=0)
    return None if not new or _lies(round_, seat, bet, new) else Wager(seat, bet, 0, new)
