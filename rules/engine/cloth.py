"""The bets of a round, and the refused chips that still lie beside them on the cloth.

Every ruleset places and withdraws its bets here. Each place holds a bet, and the refused chips beside it:

- Chips that are laid and do not become a bet are refused chips, whatever the reason.
- Chips that are taken away are taken from the refused chips first (`handed_back`), in every phase. Only the rest
  changes the bet, and is checked as a change.
- The part that a bet loses when the bets close becomes refused chips (`left_with`). A bet that was
  taken and goes back as a whole is in the result, with its stake returned (`give_back`): a bet that lacks its main
  bet, is too small at the end, or was laid on a round that became a demonstration.
- Refused chips outlast their round: they lie there until they are taken away.
- A betting terminal lays no chips: its refusals leave none, and it takes none away.

A largest amount is judged when a chip is laid, a smallest one and the steps when the bets close (`at_close`): a bet may
be laid in several chips. A terminal asks for a whole bet: all is judged at once.
"""

from typing import TypeAlias

from msgspec.structs import replace

from protocols.contract.events import MOST, WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import Reason, Value, say
from protocols.contract.topics import Envelope
from rules.engine.limits import UNLIMITED, Limits, from_terminal
from rules.engine.rounds import MAX_WAGER_EVIDENCE, MAX_WAGERS, Round, irregular, witness
from rules.engine.ruleset import Wager

Chips: TypeAlias = tuple[Wager, ...]


# ---- refused chips


def amount_on(chips: Chips, seat: int, bet: str) -> int:
    """The amount of these chips on a place, in minor units."""
    return sum([one.amount for one in chips if one.seat == seat and one.bet == bet])


def lying(round_: Round, seat: int, bet: str) -> int:
    """The amount that `seat` has on `bet`, in minor units."""
    return amount_on(round_.wagers, seat, bet)


def with_refused(refused: Chips, seat: int, bet: str, amount: int) -> Chips:
    """The refused chips with this amount more on a place. Bounded: the oldest place is dropped."""
    others = tuple(one for one in refused if (one.seat, one.bet) != (seat, bet))
    whole = Wager(seat, bet, min(amount_on(refused, seat, bet) + amount, MOST))
    return (*others[-MAX_WAGERS + 1 :], whole)


def not_taken(refused: Chips, event: WagerPlaced | WagerWithdrawn) -> Chips:
    """The refused chips after this change of a bet was refused."""
    if isinstance(event, WagerWithdrawn) or from_terminal(event):
        return refused
    return with_refused(refused, event.seat, event.bet, event.amount)


def handed_back(refused: Chips, event: WagerWithdrawn, bet: int) -> tuple[Chips, WagerWithdrawn | None]:
    """The refused chips after this withdrawal, and the part of it that reduces the `bet`, if any."""
    chips = 0 if from_terminal(event) else amount_on(refused, event.seat, event.bet)
    if not chips:
        return refused, event
    others = tuple(one for one in refused if (one.seat, one.bet) != (event.seat, event.bet))
    if not event.amount:
        return others, event if bet else None
    if event.amount < chips:
        return (*others, Wager(event.seat, event.bet, chips - event.amount)), None
    rest = event.amount - chips
    return others, replace(event, amount=rest) if rest else None


def left_with(round_: Round, wagers: Chips) -> Round:
    """The round with these bets alone. The chips of the others stay as refused chips until they are taken away."""
    refused = round_.refused
    for seat, bet in dict.fromkeys((one.seat, one.bet) for one in round_.wagers):
        lost = lying(round_, seat, bet) - amount_on(wagers, seat, bet)
        if lost > 0:
            refused = with_refused(refused, seat, bet, lost)
    return replace(round_, wagers=wagers, refused=refused)


def give_back(round_: Round, *bets: Wager) -> Round:
    """Let the result return bets that were taken and cannot stand, such as a jackpot bet without a main bet."""
    round_ = left_with(round_, tuple(one for one in round_.wagers if one not in bets))
    return replace(round_, given_back=(*round_.given_back, *bets))


# ---- bets


def refuse(
    round_: Round, one: WagerPlaced | WagerWithdrawn, code: str, reason: Reason, law: str, seen: Envelope
) -> Round:
    """Refuse a change of a bet: the bet stays as it was, and laid chips lie beside it."""
    round_ = irregular(round_, code, reason, law, seen)
    return replace(round_, refused=not_taken(round_.refused, one))


def wager(
    round_: Round,
    event: WagerPlaced | WagerWithdrawn,
    offered: frozenset[str],
    law: str,
    seen: Envelope,
    limits: Limits = UNLIMITED,
    beside: Chips = (),
) -> Round:
    """Place or withdraw a wager. A late bet, a bet that is not offered, and a withdrawal without a bet are refused.

    So is a change that `limits` do not allow; `beside` are further bets that lie there. A refusal is noted, but not as
    a late bet while a closed round waits for a person: the bet may be the next round's. Refused chips were handed back
    before (`handed_back`).
    """
    shut = isinstance(event, WagerPlaced) and (event.pool_closed or event.table_closed)
    if round_.closed or event.bet not in offered or shut:
        return _not_open(round_, event, offered, law, seen)
    wagers, seat, bet = round_.wagers, event.seat, event.bet
    place, held, total, minimum = len(wagers), 0, 0, MOST
    for n, one in enumerate(wagers):
        total += one.amount
        if one.seat == seat and one.bet == bet:
            place, held, minimum = n, one.amount, one.minimum
    if isinstance(event, WagerPlaced):
        left = held + event.amount
        if place >= MAX_WAGERS:
            return refuse(round_, event, "too_many_bets", say("too_many_bets", n=MAX_WAGERS), law, seen)
        if (why := limits.beyond_table(event, left, law)) is not None:
            return refuse(round_, event, why.code, why.reason, why.law, seen)
        minimum = min(minimum, event.minimum if limits.follows_table(bet) else 0)
    else:
        left = held - event.amount if event.amount else 0
        if not held or left < 0:
            return irregular(round_, "bet_not_placed", say("bet_not_placed", seat=seat, bet=bet), law, seen)
    more = sum([one.amount for one in beside]) if beside else 0
    if limits.watches(total + more + event.amount):
        if beside:
            why = limits.refusal((*wagers, *beside), event, law)
        else:
            why = limits.refusal_beside(held, total, wagers, event, law)
        if why is not None:
            return refuse(round_, event, why.code, why.reason, why.law, seen)
    stake = (Wager(seat, bet, left, minimum=minimum),) if left else ()
    wagers = (*wagers[:place], *stake, *wagers[place + 1 :])
    return witness(replace(round_, wagers=wagers), seen, MAX_WAGER_EVIDENCE)


def _not_open(
    round_: Round, event: WagerPlaced | WagerWithdrawn, offered: frozenset[str], law: str, seen: Envelope
) -> Round:
    """Refuse a bet where no bets are open, it is not offered, or the table or its jackpot is closed."""
    bet: dict[str, Value] = {"seat": event.seat, "bet": event.bet}
    if round_.closed:
        code = "bet_while_waiting" if round_.suspended else "late_bet"
        reason = say(code, **bet)
    elif isinstance(event, WagerPlaced) and event.table_closed:
        code, reason = "bet_at_closed_table", say("bet_at_closed_table", **bet)
    elif isinstance(event, WagerPlaced) and event.pool_closed:
        code, reason = "jackpot_closed", say("jackpot_closed", **bet)
    else:
        code, reason = "bet_not_offered", say("seat_bet", **bet)
    if event.bet in offered:
        return refuse(round_, event, code, reason, law, seen)
    return irregular(round_, code, reason, law, seen)  # a bet that is not offered is never placed


def at_close(round_: Round, limits: Limits, law: str, seen: Envelope) -> Round:
    """The round after the bets closed: amounts below their minimum, or between their steps, go back."""
    kept = []
    for one in round_.wagers:
        left, why = limits.left_at_close(one, law)
        if why is not None:
            round_ = irregular(round_, why.code, why.reason, why.law, seen)
        if left:
            kept.append(one if left == one.amount else replace(one, amount=left))
    return round_ if tuple(kept) == round_.wagers else left_with(round_, tuple(kept))
