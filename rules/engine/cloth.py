"""The ledger of the cloth: the bets of a round, and beside them the chips that were refused and still lie there.

Every ruleset lays and takes back its bets here. On each place lies the bet and what was refused beside it:

- Chips that are laid and do not become a bet are refused ones, whatever the reason.
- Chips that are taken away come off the refused ones first (`handed_back`), whatever the round is doing. Only the rest
  is a change of the bet, and is judged as one.
- What a bet loses when the bets close is refused from then on (`left_with`). A bet that was
  taken and goes back as a whole stands in the result, with its stake returned (`give_back`): one that lacks its main
  bet, is too small at the end, or was laid on what became a demonstration.
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
    """What lies on a place, in minor units."""
    return sum([one.amount for one in chips if one.seat == seat and one.bet == bet])


def lying(round_: Round, seat: int, bet: str) -> int:
    """What is bet on `bet` by `seat`, in minor units."""
    return amount_on(round_.wagers, seat, bet)


def with_refused(refused: Chips, seat: int, bet: str, amount: int) -> Chips:
    """The refused chips with so much more on a place. Bounded: the oldest place is forgotten."""
    others = tuple(one for one in refused if (one.seat, one.bet) != (seat, bet))
    whole = Wager(seat, bet, min(amount_on(refused, seat, bet) + amount, MOST))
    return (*others[-MAX_WAGERS + 1 :], whole)


def not_taken(refused: Chips, event: WagerPlaced | WagerWithdrawn) -> Chips:
    """The refused chips after this change of a bet was refused."""
    if isinstance(event, WagerWithdrawn) or from_terminal(event):
        return refused
    return with_refused(refused, event.seat, event.bet, event.amount)


def handed_back(refused: Chips, event: WagerWithdrawn, bet: int) -> tuple[Chips, WagerWithdrawn | None]:
    """The refused chips after this withdrawal, and what it takes off the `bet` that lies there, if it does."""
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
    """The round with these bets alone. The chips of the others lie there, refused, until they are taken away."""
    refused = round_.refused
    for seat, bet in dict.fromkeys((one.seat, one.bet) for one in round_.wagers):
        lost = lying(round_, seat, bet) - amount_on(wagers, seat, bet)
        if lost > 0:
            refused = with_refused(refused, seat, bet, lost)
    return replace(round_, wagers=wagers, refused=refused)


def give_back(round_: Round, *bets: Wager) -> Round:
    """These bets were taken and cannot stand, as one on the jackpot without a main bet: the result returns them."""
    round_ = left_with(round_, tuple(one for one in round_.wagers if one not in bets))
    return replace(round_, given_back=(*round_.given_back, *bets))


# ---- bets


def refuse(
    round_: Round, one: WagerPlaced | WagerWithdrawn, code: str, reason: Reason, law: str, seen: Envelope
) -> Round:
    """The bet stays as it was. Chips that were laid lie beside it."""
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
    """Take a wager, or give it back. A late bet, one not offered, or one never placed is refused and noted.

    So is what `limits` do not allow; `beside` are bets that lie there too. While a closed round waits for a person, a
    bet may be the next one's: that it is late is not said of it. Refused chips were handed back before (`handed_back`).
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
    """No bets are open, the table does not offer this one, or the table or its jackpot takes none."""
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
    return irregular(round_, code, reason, law, seen)  # no bet ever lies there


def at_close(round_: Round, limits: Limits, law: str, seen: Envelope) -> Round:
    """No more bets are laid: what is below its smallest amount, or beside its steps, goes back."""
    kept = []
    for one in round_.wagers:
        left, why = limits.left_at_close(one, law)
        if why is not None:
            round_ = irregular(round_, why.code, why.reason, why.law, seen)
        if left:
            kept.append(one if left == one.amount else replace(one, amount=left))
    return round_ if tuple(kept) == round_.wagers else left_with(round_, tuple(kept))
