"""Stud poker against the dealer, for all texts: hands, decisions, and the public cards.

Called by `rules/games/stud_poker_*.py` and by the texts. Pure: it has no offered bets, articles or prizes. The
treatment of equal hands and the order of suits are in the text's file.
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
)
from protocols.contract.reasons import Reason, say
from rules.engine.cloth import lying
from rules.engine.facts import Hands as Told
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
    """The rulings of a text on the life of a round.

    `cite` is how results name the text, before an article; `articles`: the article of each irregularity by its code, of
    a void, of a bet, of a wrong number of cards. `jackpot_until`: when a bet on the jackpot is too late.
    `void_keeps_jackpot`: the jackpot bets of a void round are those of the next one. `failure_voids`: a shuffler that
    fails during the deal makes the round void. `error_voids`: any error of the deal, a card dealt to a hand without a
    bet or a card that is seen makes the round void; but the dealer's first seen card is the open one, and a player who
    shows a card after the deal loses the bets of the hand. `fold_final`: a fold is final, unless a supervisor reverses
    it.
    """

    cite: str
    articles: Mapping[str, str]
    jackpot_until: Literal["first_card", "bell"] = "first_card"
    void_keeps_jackpot: bool = True
    failure_voids: bool = True
    error_voids: bool = False
    fold_final: bool = False


Decision: TypeAlias = Literal["raise", "fold", "doubted"]
"""The decision of a seat; `doubted`: fold and raise were both reported."""
Doubt: TypeAlias = Literal[
    "bets", "amounts", "carried", "antes", "held", "cards", "reopened_bets", "next_round", "after_result"
]
"""The doubts about a round.

bets: some are unknown until they are closed. amounts: the amounts are unknown, so nothing is settled. carried:
unreported jackpot bets of a void round may lie there. antes: a seat without a known ante may have laid one. held: it
waits until the hands are entered. cards: the reports of the shoe or shuffler are in doubt. reopened_bets: bets were
opened again during it. next_round: after the first decision an event came that belongs to another round. after_result:
a card came after a result that was given without cards.
"""
TableDoubt: TypeAlias = Literal["bets", "antes", "carried"]
"""bets: some of the next round are unknown. antes: the same, after its opening was reported. carried: as in a round."""
Phase: TypeAlias = Literal["betting", "waiting", "dealing", "deciding", "showdown", "over"]


class Deal(Struct, frozen=True):
    """One round under way, or the last one.

    `id` is the round's, from the closing of the bets on; then `players` are the seats that play. `anted`: seats whose
    ante was reported without an amount, `entered`: seats whose ante only the console has reported so far, `carried`:
    seats whose jackpot bet came from a void round. `asked`: seats that may have laid an ante, with their decisions;
    `dead`: seats that were declared to have no bet; `refused`: the decisions of other seats without a known ante.
    `early`: events that came before the first card, by the seat that decided; 0: hands, or a card seen.

    `cards` in the order of the shoe's reports; `packets` of a shuffler; `dealt`: one was reported, in doubt or not.
    `told` are the hands that a person entered, `shown` the dealer's open card entered by a person. `exposed`: hand and
    card, "" where it is unknown which. `last_card`: the dealer's lies face down where another of his was exposed before
    it; `up`: it was seen. `burnt`: the card before the deal is; 1: it came before the bets were opened, and may have
    been another one.

    `forfeited`: seats that lost their bets because their cards were shown. `chips` lie on a raise. `swept`: seats that
    raised before the first card and have not decided since; their chips were not reported. `missed`: events missing
    since the first decision. `ended`: it has a result, and is not reopened.
    """

    id: str = ""
    players: tuple[int, ...] = ()
    anted: tuple[int, ...] = ()
    entered: tuple[int, ...] = ()
    carried: tuple[int, ...] = ()
    asked: dict[int, str] = {}
    dead: tuple[int, ...] = ()
    refused: dict[int, str] = {}
    early: dict[int, Literal["raise", "fold", ""]] = {}
    cards: tuple[str, ...] = ()
    packets: int = 0
    dealt: bool = False
    told: Hands = {}
    shown: str = ""
    exposed: tuple[tuple[str, str], ...] = ()
    last_card: Literal["", "down", "up"] = ""
    burnt: int = 0
    decisions: dict[int, Decision] = {}
    forfeited: tuple[int, ...] = ()
    chips: dict[int, int] = {}
    swept: tuple[int, ...] = ()
    missed: int = 0
    doubts: tuple[Doubt, ...] = ()
    ended: bool = False
    paid: bool = False

    def with_doubts(self, *doubts: Doubt) -> "Deal":
        """The deal with these doubts."""
        return replace(self, doubts=tuple(sorted({*self.doubts, *doubts})))

    def without_doubts(self, *doubts: Doubt) -> "Deal":
        """The deal after these doubts were settled."""
        return replace(self, doubts=tuple(one for one in self.doubts if one not in doubts))

    def in_doubt(self, *doubts: Doubt) -> bool:
        """Whether there is one of these doubts."""
        return any(one in self.doubts for one in doubts)

    def decide(self, seat: int, decision: Decision) -> "Deal":
        """The deal with this decision of a seat."""
        return replace(self, decisions={**self.decisions, seat: decision})

    def who(self, *decisions: Decision) -> tuple[int, ...]:
        """The seats with one of these decisions, ascending."""
        return tuple(sorted(seat for seat, decision in self.decisions.items() if decision in decisions))

    @property
    def raised(self) -> tuple[int, ...]:
        """The seats that raised."""
        return self.who("raise")

    @property
    def folded(self) -> tuple[int, ...]:
        """The seats that are out."""
        return self.who("fold")

    @property
    def hands(self) -> int:
        """Hands to be dealt, the dealer's among them."""
        return len(self.players) + 1

    @property
    def phase(self) -> Phase:
        """The phase. `waiting`: for the first card, or for the hands where no device reports cards."""
        if self.ended:
            return "over"
        if not self.id:
            return "betting"
        if self.dealing:
            return "dealing"
        if not self.all_decided:
            return "deciding" if self.begun else "waiting"
        return "showdown"

    @property
    def dealing(self) -> bool:
        """Whether some cards are out, but not all."""
        some = 0 < len(self.cards) < CARDS * self.hands or 0 < self.packets < self.hands
        return some and "cards" not in self.doubts

    @property
    def decided(self) -> bool:
        """Whether a seat has decided."""
        return bool(self.decisions or any(self.asked.values()))

    @property
    def all_decided(self) -> bool:
        """Whether every playing seat has decided."""
        return len(self.raised) + len(self.folded) == len(self.players)

    @property
    def begun(self) -> bool:
        """Whether the first card is out, or must be."""
        return bool(self.cards or self.packets or self.decided or "cards" in self.doubts)

    @property
    def crossed(self) -> bool:
        """Whether the missing events may include the next round's opening, bell and deal."""
        dealt = self.hands if self.packets else CARDS * self.hands if self.cards else 0
        told = "next_round" in self.doubts and "antes" in self.doubts
        return told or self.missed >= 2 + dealt

    def whose(self, place: int) -> str:
        """The hand that receives the card or packet number `place`, from 0."""
        turn = place % self.hands
        return DEALER if turn == len(self.players) else f"seat_{self.players[turn]}"

    def known(self) -> Hands:
        """The known hands: the shoe's deal if it is complete and not in doubt, and the entered hands."""
        if "cards" in self.doubts or len(self.cards) != CARDS * self.hands:
            return self.told
        return {self.whose(place): self.cards[place :: self.hands] for place in range(self.hands)} | self.told

    def antes(self, round_: Round) -> tuple[int, ...]:
        """The seats with a reported ante, ascending."""
        return tuple(sorted({*self.anted, *(one.seat for one in round_.wagers if one.bet == "ante")}))

    @property
    def open_card(self) -> str:
        """The dealer's card that lies open by rule, as reported by the shoe."""
        whole = self.players and len(self.cards) == CARDS * self.hands
        return self.cards[-1] if whole and "cards" not in self.doubts and self.last_card != "down" else ""

    @property
    def open_card_due(self) -> bool:
        """Whether only the dealer's last card of a shoe's deal is missing, which will lie open."""
        one_missing = len(self.cards) == CARDS * self.hands - 1
        seen = "cards" in self.doubts or self.shown or any(hand == DEALER for hand, _ in self.exposed)
        return one_missing and not seen

    def open_cards(self) -> tuple[str, ...]:
        """The dealer's public cards. With an unknown further hand the last card would be a player's, so it is hidden
        until it is certainly the dealer's.
        """
        seen = [card for hand, card in self.exposed if hand == DEALER and card]
        sure = self.last_card == "up" or self.raised or self.folded
        last = self.shown or (self.open_card if sure else "")
        return tuple(dict.fromkeys((*seen, last) if last else seen))


class Position(Struct, frozen=True):
    """A table between and in its rounds.

    `deal`: the round under way, or the last one until the next begins; None after a void one. `seats` are open. `left`:
    jackpot bets of a void round. `heard`: cards or packets of the last deal were reported. `loose`: up to two cards or
    packets since the last deal, where one is burnt before the deal: a single one is the burnt card. `supervised`: the
    supervisor's key is on. `idle`: the number of rounds in a row without a bet, by open seat.
    """

    deal: Deal | None = None
    seats: tuple[int, ...] = ()
    left: tuple[Wager, ...] = ()
    heard: bool = False
    loose: int = 0
    supervised: bool = False
    idle: dict[int, int] = {}
    doubts: tuple[TableDoubt, ...] = ()

    def with_doubts(self, *doubts: TableDoubt) -> "Position":
        """The position with these doubts."""
        return replace(self, doubts=tuple(sorted({*self.doubts, *doubts})))


class Laid(Struct, frozen=True):
    """A person's entry of the hands: those of five cards, the dealer's open card, the hands without a bet.

    `asked`: the seats whose ante may be missing, `left`: those that do not play after all.
    """

    told: Hands = {}
    shown: str = ""
    dead: tuple[str, ...] = ()
    asked: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


def read_hands(deal: Deal, laid: Told, void: str) -> tuple[Laid, Reason | None]:
    """The entered hands, and why they are impossible; `void`: the article of a wrong number of cards.

    After a loss a hand without an ante may have had one.
    """
    told: Hands = {}
    shown, dead, asked, left = "", [], [], []
    unproven = "antes" in deal.doubts
    if not laid:
        return Laid(), say("no_hand_told")
    if not (deal.players or unproven):
        return Laid(), say("nobody_ante")
    for name, cards in laid.items():
        hand = NAMES.get(name)
        if hand is None:
            return Laid(), say("foreign_hand")
        seat = 0 if hand == DEALER else int(hand[-1])
        plays = not seat or seat in deal.players
        if not plays and not (unproven and cards):
            dead.append(hand)
        elif not plays and seat in deal.dead:
            continue
        elif plays and seat and unproven and not cards and deal.decisions.get(seat, "doubted") == "doubted":
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
    """The comparison of the hands. `fates`: of each hand with an ante; `values`: of the hands that are opened."""

    opens: bool
    fates: dict[str, str]
    values: dict[str, int]


def compare(deal: Deal, hands: Hands, value: Callable[[tuple[str, ...]], int], opening: int) -> Compared:
    """The hands that fold, win and lose; `opening`: the least value with which the dealer qualifies.

    A text whose values differ for any two hands has no ties.
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


def stakes(deal: Deal, round_: Round) -> tuple[Wager, ...]:
    """The bets on the cloth; a raise is twice its ante, where that is known."""
    if not deal.raised and not deal.chips:
        return round_.wagers
    raises = []
    for seat in deal.players:
        chips = deal.chips.get(seat, 0)
        amount = (2 * lying(round_, seat, "ante") or chips) if deal.decisions.get(seat) == "raise" else chips
        if amount:
            raises.append(Wager(seat, "raise", amount))
    return (*round_.wagers, *raises)


def unbacked(deal: Deal, round_: Round) -> tuple[Wager, ...]:
    """The chips on raises without a known ante; the others are counted with the ante."""
    told = deal.chips.items()
    return tuple(Wager(seat, "raise", chips) for seat, chips in told if chips and not lying(round_, seat, "ante"))


def too_early(deal: Deal, *, heard: bool) -> bool:
    """Whether hands or decisions come before the bell, or before the first card where a device reported the last deal.

    Otherwise the table may have no device, and a person enters the complete hands.
    """
    return not deal.id or (heard and not deal.begun)


def unknowable(deal: Deal, told: Hands) -> bool:
    """Whether these hands cannot be known yet: before the first decision, unless a shoe reported all cards, or all but
    one, and the hands contain them.
    """
    if not told or not deal.dealt or deal.decided:
        return False
    cards = {card for hand in told.values() for card in hand}
    whole = len(deal.cards) >= CARDS * deal.hands - 1
    return not (whole and cards.issuperset(deal.cards))


def dealt_before(deal: Deal, told: Hands) -> bool:
    """Whether these hands contain most cards that the shoe dealt to them; by chance that is below 1 % from five cards
    on.
    """
    dealt = [(deal.whose(place), card) for place, card in enumerate(deal.cards)]
    placed = [card in told[hand] for hand, card in dealt if hand in told]
    return len(placed) >= CARDS and 2 * sum(placed) > len(placed)


def of_the_next(deal: Deal, event: Event) -> bool:
    """Whether, after a second opening, the event belongs to the next round: a bet; or bell or card if none is due."""
    match event:
        case WagerPlaced(seat=seat, bet="ante" | "jackpot") | SeatActed(seat=seat, action="ante", hand=1):
            return seat in SEATS
        case BetsClosed() | CardDrawn() | HandDispensed() | CardUnreadable():
            return not deal.dealing
        case _:
            return False


def contradiction(deal: Deal) -> Reason | None:
    """Why the known hands are impossible, without naming a hidden card."""
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
    """The reason for a seen card of `hand`; both may be unknown."""
    if hand:
        return say("card_seen", card=card, hand=hand) if card else say("a_card_seen", hand=hand)
    return say("card_seen_no_hand", card=card) if card else say("a_card_seen_no_hand")


def visible(deal: Deal) -> dict[str, Any]:
    """The public cards before the showdown."""
    exposed = tuple({"hand": hand, "card": card} for hand, card in deal.exposed)
    return {"open": deal.open_cards(), **({"exposed": exposed} if exposed else {})}


def betrays_the_next(deal: Deal, event: Event) -> bool:
    """Whether an event after a decision belongs to the next round: a bet, bell or card that this round cannot have."""
    answer = "antes" in deal.doubts and isinstance(event, SeatActed)
    return deal.decided and not answer and of_the_next(deal, event)
