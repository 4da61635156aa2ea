"""Stud poker against the dealer, as it is dealt everywhere: hands, decisions, and what all can see.

Called by `rules/games/stud_poker_round.py` and by the texts. Pure: it knows no bets offered, no articles, no prizes.
What becomes of equal hands and the order of suits stand with the text.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    CardDrawn,
    CardUnreadable,
    Event,
    HandDispensed,
    SeatActed,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import Reason, say
from rules.engine.rounds import Round
from rules.engine.ruleset import Wager
from rules.games.cards import PIPS

Hands: TypeAlias = dict[str, tuple[str, ...]]

SEATS: Final = range(1, 8)
CARDS: Final = 5
DEALER: Final = "dealer"
NAMES: Final[dict[str, str]] = {
    DEALER: DEALER,
    **{f"seat_{seat}": f"seat_{seat}" for seat in SEATS},
    **{str(seat): f"seat_{seat}" for seat in SEATS},
}


class Rulings(Struct, frozen=True):
    """What a text says of the life of a round.

    `cite` is how results name the text, before an article; `articles`: the article of each irregularity by its code, of
    a void, of a bet, of a wrong number of cards. `jackpot_until`: when a bet on the jackpot is too late.
    `void_keeps_jackpot`: the jackpot bets of a void round are those of the next one. `failure_voids`: a shuffler that
    fails during the deal makes the round void. `error_voids`: so does any error of the deal, a card dealt to a hand
    without a bet and a card that is seen; but the first of the dealer's that is seen is the open one, and a player who
    shows a card after the deal loses the bets of the hand. `fold_final`: who folds is out, unless a supervisor reverses
    it.
    """

    cite: str
    articles: Mapping[str, str]
    jackpot_until: Literal["first_card", "bell"] = "first_card"
    void_keeps_jackpot: bool = True
    failure_voids: bool = True
    error_voids: bool = False
    fold_final: bool = False


class Deal(Struct, frozen=True):
    """One round under way.

    `players` are the seats that play, from the closing of the bets on; `anted` those whose ante was told without an
    amount, `entered` those whose ante only the console told as yet, `carried` those whose jackpot bet came from a void
    round. `cards` in the order a shoe told them; `packets` a shuffler's. `told` are the hands a person told, `shown`
    the dealer's open card told so. `chips` lie on a raise. `exposed`: hand and card, "" where it is not known which.
    `doubted`: seats whose decision was told both ways. `covered`: the dealer's last card lies face down, since another
    of his was exposed before it. `faced`: it was seen to lie face up.

    `held`: it waits until the hands are told. `blind`: what the shoe told is not trusted. `lost`: events of the betting
    are missing; `unsure`: so the amounts are not known, or two were told of one ante; `uncarried`: nor the jackpot bets
    that were carried here. `reopened` after its result, `paid` after its payment.

    `dealt`: a card or packet was told, trusted or not. `early`: hands or a decision were told where the first card was
    waited for. `over`: bets were opened over it. `swept`: seats that raised before the first card and have not decided
    since; their chips were not told.

    `unproven`: antes may be among the events that are missing. `asked`: seats that may have laid one, with what they
    have decided; `dead`: those that were said to have no bet.

    `refused`: what seats without a known ante have decided; an ante that is late may still be theirs.

    `burnt`: the card before the deal is; 1: it came before the bets were opened, and may have been another one.
    `forfeited`: of the seats that folded, those whose cards were shown.

    `missed`: events missing since the first decision. `ahead`: since then a bet, the bell or a card came that is not of
    this round.
    """

    round: Round
    players: tuple[int, ...] = ()
    anted: tuple[int, ...] = ()
    carried: tuple[int, ...] = ()
    cards: tuple[str, ...] = ()
    packets: int = 0
    told: Hands = {}
    shown: str = ""
    raised: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    chips: dict[int, int] = {}
    exposed: tuple[tuple[str, str], ...] = ()
    doubted: tuple[int, ...] = ()
    covered: bool = False
    faced: bool = False
    held: bool = False
    blind: bool = False
    lost: bool = False
    unsure: bool = False
    uncarried: bool = False
    reopened: bool = False
    entered: tuple[int, ...] = ()
    paid: bool = False
    dealt: bool = False
    early: bool = False
    over: bool = False
    swept: tuple[int, ...] = ()
    unproven: bool = False
    asked: dict[int, str] = {}
    dead: tuple[int, ...] = ()
    missed: int = 0
    ahead: bool = False
    refused: dict[int, str] = {}
    burnt: int = 0
    forfeited: tuple[int, ...] = ()

    @property
    def hands(self) -> int:
        """Hands to be dealt, the dealer's among them."""
        return len(self.players) + 1

    @property
    def dealing(self) -> bool:
        """Some of the cards are out, not all."""
        return not self.blind and (0 < len(self.cards) < CARDS * self.hands or 0 < self.packets < self.hands)

    @property
    def out(self) -> bool:
        """A card or packet was told. A deal that was written down before `dealt` was noted has them all the same."""
        return bool(self.dealt or self.cards or self.packets)

    @property
    def decided(self) -> bool:
        """Somebody has decided."""
        return bool(self.raised or self.folded or self.doubted or any(self.asked.values()))

    @property
    def all_decided(self) -> bool:
        """Every seat that plays has decided."""
        return len(self.raised) + len(self.folded) == len(self.players)

    @property
    def begun(self) -> bool:
        """The first card is out, or must be."""
        return bool(self.cards or self.packets or self.decided or self.blind)

    @property
    def crossed(self) -> bool:
        """The next round's opening, bell and deal may be among the events that are missing."""
        dealt = self.hands if self.packets else CARDS * self.hands if self.cards else 0
        return self.missed > 0 and (self.ahead or self.missed >= 2 + dealt)

    def whose(self, place: int) -> str:
        """The hand that receives the card or packet number `place`, from 0."""
        turn = place % self.hands
        return DEALER if turn == len(self.players) else f"seat_{self.players[turn]}"

    def known(self) -> Hands:
        """The hands that are known: what the shoe dealt where it is complete and trusted, and what was told."""
        if self.blind or len(self.cards) != CARDS * self.hands:
            return self.told
        return {self.whose(place): self.cards[place :: self.hands] for place in range(self.hands)} | self.told

    def antes(self) -> tuple[int, ...]:
        """The seats whose ante was told, ascending."""
        return tuple(sorted({*self.anted, *(one.seat for one in self.round.wagers if one.bet == "ante")}))

    def amount(self, seat: int, bet: str) -> int:
        """What lies on `bet` of `seat`; 0 where it is not told."""
        return sum(one.amount for one in self.round.wagers if one.seat == seat and one.bet == bet)

    @property
    def last_card(self) -> str:
        """The dealer's card that lies open by rule, as the shoe told it."""
        dealt = self.players and len(self.cards) == CARDS * self.hands
        return self.cards[-1] if dealt and not (self.blind or self.covered) else ""

    @property
    def last_due(self) -> bool:
        """Of a shoe's deal the dealer's last card is missing alone, and it will lie open."""
        one_missing = len(self.cards) == CARDS * self.hands - 1
        return one_missing and not (self.blind or self.shown or any(hand == DEALER for hand, _ in self.exposed))

    def open_cards(self) -> tuple[str, ...]:
        """The dealer's cards that all can see. Were there a hand more than is known, the last card would be somebody's:
        it is not shown before it is surely the dealer's.
        """
        seen = [card for hand, card in self.exposed if hand == DEALER and card]
        sure = self.faced or self.raised or self.folded
        last = self.shown or (self.last_card if sure else "")
        return tuple(dict.fromkeys((*seen, last) if last else seen))


class Laid(Struct, frozen=True):
    """What a person told of the hands: those of five cards, the dealer's open card, the hands without a bet.

    `asked` are the hands of which the ante may be missing, `left` the seats that do not play after all.
    """

    told: Hands = {}
    shown: str = ""
    dead: tuple[str, ...] = ()
    asked: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


def read_hands(deal: Deal, laid: Mapping[str, tuple[str, ...]], void: str) -> tuple[Laid, Reason | None]:
    """The hands that were told, and why this cannot be; `void`: the article of a wrong number of cards.

    After a loss a hand without an ante may have had one.
    """
    told: Hands = {}
    shown, dead, asked, left = "", [], [], []
    if not laid:
        return Laid(), say("no_hand_told")
    if not (deal.players or deal.unproven):
        return Laid(), say("nobody_ante")
    for name, cards in laid.items():
        hand = NAMES.get(name)
        if hand is None:
            return Laid(), say("foreign_hand")
        seat = 0 if hand == DEALER else int(hand[-1])
        plays = not seat or seat in deal.players
        if not plays and not (deal.unproven and cards):
            dead.append(hand)
        elif not plays and seat in deal.dead:
            continue
        elif plays and seat and deal.unproven and not cards and seat not in (*deal.raised, *deal.folded):
            left.append(seat)
        elif hand == DEALER and len(cards) == 1:
            shown = cards[0]
        elif len(cards) != CARDS:
            return Laid(), say("hand_cards", n=len(cards), hand=hand, article=void)
        elif hand in told:
            return Laid(), say("hand_twice", hand=hand)
        else:
            told[hand] = tuple(cards)
            if not plays:
                asked.append(seat)
    if any(card not in PIPS for cards in (*told.values(), (shown or "AS",)) for card in cards):
        return Laid(), say("no_such_card")
    return Laid(told, shown, tuple(dead), tuple(asked), tuple(left)), None


class Compared(Struct, frozen=True):
    """What the hands decide. `fates`: of each hand with an ante; `values`: of the hands that are opened."""

    opens: bool
    fates: dict[str, str]
    values: dict[str, int]


def compare(deal: Deal, hands: Hands, value: Callable[[tuple[str, ...]], int], opening: int) -> Compared:
    """Who folds, wins and loses; `opening`: the least value of a dealer's hand that opens the others.

    A text whose values differ for any two hands knows no "ties".
    """
    fates = {f"seat_{seat}": "forfeited" if seat in deal.forfeited else "folded" for seat in deal.folded}
    if not deal.raised:
        return Compared(opens=False, fates=fates, values={})
    values = {DEALER: value(hands[DEALER])}
    opens = values[DEALER] >= opening
    for seat in deal.raised:
        hand = f"seat_{seat}"
        if opens:
            values[hand] = value(hands[hand])
        fates[hand] = _fate(values[hand], values[DEALER]) if opens else "not_opened"
    return Compared(opens, fates, values)


def _fate(mine: int, dealers: int) -> str:
    return "ties" if mine == dealers else "wins" if mine > dealers else "loses"


def stakes(deal: Deal) -> tuple[Wager, ...]:
    """What lies on the cloth: a raise is twice its ante, where that is known."""
    if not deal.raised and not deal.chips:
        return deal.round.wagers
    raises = []
    for seat in deal.players:
        chips = deal.chips.get(seat, 0)
        amount = (2 * deal.amount(seat, "ante") or chips) if seat in deal.raised else chips
        if amount:
            raises.append(Wager(seat, "raise", amount))
    return (*deal.round.wagers, *raises)


def unbacked(deal: Deal) -> tuple[Wager, ...]:
    """The chips on raises whose ante is not known: those of the others are counted with the ante."""
    return tuple(
        Wager(seat, "raise", chips) for seat, chips in deal.chips.items() if not deal.amount(seat, "ante") and chips
    )


def too_early(deal: Deal, *, heard: bool) -> bool:
    """Nothing can be known of a hand before the first card, which is waited for where those of the last deal were told.

    Else it may be a table without a device, where a person tells the hands whole.
    """
    return not deal.round.closed or (heard and not deal.begun)


def unknowable(deal: Deal, told: Hands) -> bool:
    """Before the first decision nobody knows the hands that were dealt; but a shoe may tell all its cards but one."""
    if not told or not deal.out or deal.decided:
        return False
    cards = {card for hand in told.values() for card in hand}
    whole = len(deal.cards) >= CARDS * deal.hands - 1
    return not (whole and cards.issuperset(deal.cards))


def dealt_before(deal: Deal, told: Hands) -> bool:
    """Most cards that the shoe dealt to these hands lie there: by chance less than 1 of 100, from five cards on."""
    dealt = [(deal.whose(place), card) for place, card in enumerate(deal.cards)]
    placed = [card in told[hand] for hand, card in dealt if hand in told]
    return len(placed) >= CARDS and 2 * sum(placed) > len(placed)


def of_the_next(deal: Deal, event: Event) -> bool:
    """After a second opening: a bet that can be one; the bell or a card, where no card of this round is due."""
    match event:
        case WagerPlaced(seat=seat, bet="ante" | "jackpot") | SeatActed(seat=seat, action="ante", hand=1):
            return seat in SEATS
        case BetsClosed() | CardDrawn() | HandDispensed() | CardUnreadable():
            return not deal.dealing
        case _:
            return False


def contradiction(deal: Deal) -> Reason | None:
    """Why the hands that are known cannot lie so; no card is named that not all have seen."""
    hands = deal.known()
    cards = [card for hand in hands.values() for card in hand]
    if len(set(cards)) < len(cards):
        return say("two_places")
    seen = [*deal.exposed, *([(DEALER, deal.shown)] if deal.shown else [])]
    for hand, card in seen:
        if not card or not hand:
            continue
        if card not in hands.get(hand, (card,)) or any(card in other for name, other in hands.items() if name != hand):
            return say("elsewhere", card=card, hand=hand)
    return None


def another_open(deal: Deal, card: str) -> bool:
    """Whether a card of the dealer's was seen that is not this one."""
    return any(hand == DEALER and seen not in ("", card) for hand, seen in deal.exposed)


def card_seen(card: str, hand: str) -> Reason:
    """A card was seen, one of `hand`: either may not be known."""
    if hand:
        return say("card_seen", card=card, hand=hand) if card else say("a_card_seen", hand=hand)
    return say("card_seen_no_hand", card=card) if card else say("a_card_seen_no_hand")


def visible(deal: Deal) -> dict[str, Any]:
    """The cards that all can see before the showdown."""
    exposed = tuple({"hand": hand, "card": card} for hand, card in deal.exposed)
    return {"open": deal.open_cards(), **({"exposed": exposed} if exposed else {})}


def betrays_the_next(deal: Deal, event: Event) -> bool:
    """After a decision: a bet, the bell or a card that this round does not have. An ante may be a person's answer."""
    known = deal.ahead or not deal.decided or (deal.unproven and isinstance(event, SeatActed))
    return not (known or event.overtaken) and of_the_next(deal, event)  # a late one may be older


def felt_again(deal: Deal, one: WagerPlaced | WagerWithdrawn) -> tuple[Deal, bool]:
    """The sensor's first word of an ante that the console told, and whether nothing follows from it.

    The same amount is the same chips. Another leaves unknown what lies there; after the bell it may be late, too.
    """
    deal = replace(deal, entered=tuple(seat for seat in deal.entered if seat != one.seat))
    lay = deal.amount(one.seat, "ante")
    if isinstance(one, WagerWithdrawn) and one.amount <= lay:
        return deal, False
    if one.amount == lay:
        return deal, True
    return replace(deal, unsure=True), not deal.round.closed
