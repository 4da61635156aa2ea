"""Corrections of a blackjack deal: the hands as they lie, and the reported decisions that still hold for them.

Called by the rulesets of the texts. `relaid` gives the play to go on with, or None where no deal gives such hands;
`left_open` gives what the round depends on and a correction cannot express.
"""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from protocols.contract.reasons import Reason, say
from rules.games.blackjack import DEALER, STOOD, UNSURE, Hand, Hands, House, Play, count, is_blackjack, stood
from rules.games.cards import PIPS

Named: TypeAlias = Mapping[tuple[int, int], tuple[str, ...]]

# A hand as this game names it, "3.2", and as a console does, "seat_3_2" ("seat_3" is the first).
_NAME: Final = re.compile(r"([1-9][0-9]?)\.([1-9])|seat_([1-9][0-9]?)(?:_([2-9]))?", re.ASCII)
_MOST_CARDS: Final = 22


def named(name: str) -> tuple[int, int] | None:
    """Seat and number of a hand that a person named; None for the bank's hand and for other texts."""
    match = _NAME.fullmatch(name)
    return (int(match[1] or match[3]), int(match[2] or match[4] or 1)) if match else None


def hands_of(laid: Mapping[str, tuple[str, ...]]) -> dict[tuple[int, int], tuple[str, ...]] | None:
    """The players' hands that were laid, by seat and number; None where a name or a card cannot be read."""
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    for name, cards in laid.items():
        key = named(name)
        if any(card not in PIPS for card in cards) or len(cards) > _MOST_CARDS:
            return None
        if (key is None and name != DEALER) or key in found:
            return None
        if key is not None:
            found[key] = cards
    return found


def relaid(house: House, play: Play, before: Play, hands: Named, bank: tuple[str, ...] | None) -> Play | None:
    """The play with the hands as they lie; None where the rules give no such hands.

    `play` has its seats; `before`: the play before the correction, possibly without seats. `bank`: None leaves its
    cards.
    """
    bank = play.bank if bank is None else bank
    if house.hole and len(bank) == 1 and len(play.bank) > 1:
        bank = (*bank, play.bank[1])
    same = bank[:2] == play.bank[:2] or (play.peeked == "yes" and is_blackjack(bank[:2]))
    # A needless card that was counted before is still counted, if it lies in the same place.
    taken = house.enough(play.bank) + 1
    extra = play.extra and bank[:taken] == play.bank[:taken]
    play = replace(play, bank=bank, peeked=play.peeked if same else "", extra=extra)
    for seat, number in sorted(hands):
        found = _with_hand(house, play, seat, number, hands[seat, number])
        if found is None:
            return None
        play = found
    short = len(bank) < (2 if house.hole else 1)
    if short or any(not hand.split and len(hand.cards) < 2 for hand in play.hands):
        return _begun(house, play)
    # Hands that a person entered before do not show the order of the deal.
    return _going_on(house, _with_origins(play, () if before.corrected else before.hands), before)


def _with_hand(house: House, play: Play, seat: int, number: int, cards: tuple[str, ...]) -> Play | None:
    """The play with these cards in that hand; the next number of a seat is a split that was not reported."""
    mine = play.of(seat)
    if number <= len(mine):
        place = next(n for n, hand in enumerate(play.hands) if (hand.seat, hand.number) == (seat, number))
        return play.with_hand(place, replace(play.hands[place], cards=cards))
    if not mine or number != len(mine) + 1 or number > house.max_hands:
        return None
    last = max(n for n, hand in enumerate(play.hands) if hand.seat == seat)
    split = [replace(hand, split=True) if hand.seat == seat else hand for hand in play.hands]
    split.insert(last + 1, Hand(seat, number, cards, split=True, split_from=1 if number == 2 else 0))
    return replace(play, hands=tuple(split))


def _begun(house: House, play: Play) -> Play | None:
    """The play with an incomplete first deal; None where it is not the beginning of one."""
    hands = tuple(Hand(hand.seat, 1, hand.cards) for hand in play.hands)
    whole = replace(play, hands=hands, turn=0, asked=False, peeked="", shown=False, insured=())
    whole = replace(whole, uncounted=(), contradicted=())
    lengths = [0] * (len(hands) + 1)
    dealt = sum(len(hand.cards) for hand in hands) + len(play.bank)
    for done in range(dealt):
        lengths[house.receiver(replace(whole, dealt=done))] += 1
    if lengths != [*(len(hand.cards) for hand in hands), len(play.bank)] or any(hand.split for hand in play.hands):
        return None
    return replace(whole, dealt=dealt)


def _going_on(house: House, play: Play, before: Play) -> Play | None:
    """The play with a complete first deal and the cards after it; None where the rules exclude it."""
    bank = play.bank
    # A peek that found a blackjack ended the hands and showed the hole card; these cards are no blackjack.
    unpeeked = before.peeked == "yes" and not play.peeked
    if unpeeked:
        play = replace(play, shown=False)
    begun = house.second_seen(play)
    play = replace(play, dealt=play.first_deal, turn=0, asked=False, shown=begun)
    if sum(not house.draws(bank[:taken]) for taken in range(2, len(bank))) > play.extra:
        return None
    # From the left: hands before one with further cards have decided.
    decided = last_drawn(play.hands)
    lay = {hand.name: len(hand.cards) for hand in before.hands}
    hands: list[Hand] = []
    for place, hand in enumerate(play.hands):
        if not house.possible(play, hand):
            return None
        one, again = _ended(house, play, hand, lay.get(hand.name, 0), unpeeked=unpeeked)
        if not again and not one.ended and (begun or place < decided):
            if len(one.cards) < 2 or (one.total <= house.stand_above and not one.doubled):
                return None
            one = stood(one)
        hands.append(one)
    turn = next((n for n, hand in enumerate(hands) if not hand.ended), len(hands))
    return replace(play, hands=tuple(hands), turn=turn)


def _ended(house: House, play: Play, hand: Hand, lay: int, *, unpeeked: bool) -> tuple[Hand, bool]:
    """The hand with its valid end, and whether its decision or card must be entered again. `lay`: its cards before."""
    doubted = hand.name in play.contradicted
    # A hand that got a further card did not stand.
    drew = hand.ended in STOOD and not hand.doubled and len(hand.cards) > lay
    holds = _still_ended(house, hand) and not drew
    # Only a blackjack can take even money.
    unsaid = (doubted and hand.ended != "even_money") or (unpeeked and hand.ended in STOOD)
    undone = holds and (unsaid or _barred(house, hand, play.bank[0]))
    if holds and not undone:
        one = stood(hand) if hand.ended in STOOD else hand
    else:
        one = house.judged(play, replace(hand, ended=""))
    return one, undone or doubted or bool(one.doubled and len(one.cards) == 2)


def _still_ended(house: House, hand: Hand) -> bool:
    """Whether a reported decision holds for the cards as they lie; ends without a decision are computed again."""
    total, cards = count(hand.cards)[0], len(hand.cards)
    if house.hides(hand) and hand.ended in STOOD:
        return total <= 21 and cards >= (3 if hand.doubled else 2)
    match hand.ended:
        case "stand" if hand.doubled:
            return total < 21 and cards >= 3
        case "stand":
            return house.stand_above < total < 21 and cards >= 2
        case "surrender":
            return cards == 2
        case "even_money" | "blackjack":
            return is_blackjack(hand.cards) and not hand.split
        case "five_cards":
            return cards == 5 and total <= 21
        case _:
            return False


def _barred(house: House, hand: Hand, up: str) -> bool:
    """Whether the bank's first card does not allow the decision that ended the hand."""
    match hand.ended:
        case "even_money":
            return PIPS[up] not in house.even_money_against
        case "surrender" | "five_cards":
            return up[0] == "A"
        case _:
            return False


def _with_origins(play: Play, before: Hands) -> Play:
    """The play with the origins of the entered split hands, as far as the cards show them."""
    hands = list(play.hands)
    for place, hand in enumerate(hands):
        if hand.number == 3 and not hand.split_from:
            lay = tuple(one for one in before if one.seat == hand.seat)
            hands[place] = replace(hand, split_from=_origin(hand, lay, play.of(hand.seat)))
    return replace(play, hands=tuple(hands))


def _origin(hand: Hand, before: Hands, hands: Hands) -> int:
    """The hand that an entered hand 3 was split from; 0 where the cards do not show it.

    `before` are those of its seat before the correction, `hands` those after it.
    """
    now = hands[0].cards
    if len(now) == 1:  # it was just split, and waits for its card
        return 1
    if len(before) != 2 or len(before[0].cards) < 2:
        return 0
    if before[0].cards[:2] == now[:2]:
        return 2
    return 1 if before[0].cards[1] == hand.cards[0] else 0


def last_drawn(hands: Hands) -> int:
    """The last hand with a further card; those before it have decided. -1 where there is none."""
    return max((place for place, hand in enumerate(hands) if len(hand.cards) > 2), default=-1)


def left_open(house: House, play: Play, before: Play) -> tuple[Reason | None, bool]:
    """What the round depends on and a correction cannot express; None for nothing.

    And whether the deal must be entered as it lay earlier, before a decision.
    """
    if house.hole and play.dealt == play.first_deal - 1:
        # Only the hole card was not named. If more cards came out than were named, it may be one of them.
        out = before.dealt + len(before.strays) + before.unread
        if before.unread == UNSURE or play.dealt < out:
            return say("hole_unknown"), False
    decided, seen = last_drawn(play.hands), house.second_seen(play)
    for place, hand in enumerate(play.hands):
        doubted = hand.name in play.contradicted
        passed = not hand.ended and place < decided
        if doubted and (len(hand.cards) == 3 or passed):  # with more cards it hit
            return say("not_proven", hand=hand.name), True
        if hand.ended or not (passed or seen):
            continue
        if hand.doubled and len(hand.cards) == 2:
            return say("double_card", hand=hand.name), False
        if seen:
            return say("decide_again", hand=hand.name), doubted
    return None, False
