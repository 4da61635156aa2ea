"""Macau stud poker: Despacho Regulamentar Externo 61/2004, in Portuguese and in Chinese.

The flow: each hand lays an ante (6(2)) and may bet on the progressive jackpot before the first card (6(3)). Every hand
with an ante and then the dealer receives five cards face down, one of the dealer's face up: one at a time from a shoe
(7(1)), five at a time from a shuffler (7(2)). Each player looks, and raises by exactly twice the ante (6(5)-(6)) or
loses it (6(7)). The dealer opens with an ace and a king or better (9(1)): the higher hand wins, and a raise is paid by
its combination (9(3)-(5)); without them the antes are paid and the raises come back (9(2)).

What a table tells, and how a round reads it:

- *Who plays.* The antes of this round, told as wagers or as `seat.acted` ante; where none is told, the open seats
  (`seat.opened`, `seat.closed`). An ante told by the console and by the sensor under it is one, whichever is first; two
  amounts of one ante leave the amounts unknown, as a loss does. Seats are 1 to 7, 1 being at the dealer's left. A round
  begins with `bets.opened` or with its first bet. `bets.closed`, the bell, closes the antes; so does the first card. A
  bet on the jackpot is taken until the first card, also after the bell. Who plays is proven by the decisions: nothing
  is resolved before each of these seats, and no other, has decided.
- *A reading shoe* tells `card.drawn` in the order of the deal: seats ascending, then the dealer, five times. It need
  not know that a card lies face down; `face` "up" on any card but the dealer's last is a card exposed. The dealer's
  last is shown as soon as it is told face up (or as `card.exposed`), else from the first decision on.
- *A shuffler* tells `hand.dispensed` for each packet, in the same order. Nobody knows the cards: `deal.corrected` says
  at the showdown which hands lie there, `dealer` and `seat_3` (or `3`), at once or one after the other. Waited for are
  the dealer's hand and, where it opens, every raised one; else those with a bet on the jackpot, and after a loss every
  one, since any may have such a bet. A dealer's hand of one card is the open card, told for the display. The same words
  complete or correct the deal of a shoe, read or mute.
- *Decisions* are `seat.acted` raise or fold, or a wager on `raise` that has reached twice the ante. The same one told
  again is nothing new; the other one puts the seat in doubt until it is told a third time.
- The round is resolved when all have decided and the hands that are opened are known. Until the next one begins it can
  be corrected, declared void, or, before it is paid, put in doubt by another decision; paid in doubt, its first result
  stands. A payment that was told late settles nothing: it may be older than the doubt.

What lies face down is in no view, verdict or reason. A result shows the hands that are opened: not the folded ones, nor
those that 9(2) leaves closed, unless they have won a jackpot.

Doubt. A card that could not be read, came twice, or is one too many, and events that may be missing, suspend the round:
what the shoe told is not trusted any more, and the hands must be told. After a loss the amounts may be wrong, too: such
a round is resolved without settlements. Before the bell no card can be missing, so a loss then only costs the amounts,
unless a card comes before the bell does. A second opening of the bets voids what is in doubt; what is sound waits then.
The hands let it go on; a bet, or after the last card the bell or another card, are the next round's, and void it.
Before the first card a second opening costs the amounts.

- After a loss in the betting, 6(2), 11(3): a seat without a known ante may have laid one where it has a hand, a
  decision or a jackpot bet. The round waits until the seat is said to play (`seat.acted` ante), or to have no bet (its
  hand named without cards). A seat that is thought to play and has not decided may be named so, too.

Too early. Where the cards of the last deal were told, those of the next are waited for: hands, a decision or a card
seen before the first one are the last round's, noted and not used. Two of them say that the device is dumb: the round
waits for the hands. At other tables such words count, until a card comes: then they are dropped, hands make the round
wait, and a result that was given is in doubt; chips that lie on a raise stay. Before the first decision nobody knows
the hands that were dealt (6(5)): told then, they must be told again after the decisions, but for hands of the very
cards that the shoe gave, of which one may be lost.

Void (11(1), 11(4), or declared): antes and raises come back, jackpot bets are those of the next round. Told again there
by the sensor under the chip they are not laid twice; they cannot be taken back; without an ante they are none (10(1)).
A packet of another number than five and a second exposed card are 11(1). A packet or card beyond the hands may be 11(1)
or 11(3): the dealer says which, by a void or by naming the hand without a bet (`{"seat_5": []}`), which is dead then.
A shuffler that jams or fails between the bell and the last packet is 11(4); later the machine shuffles another deck,
and where it is not sure which, the round waits. Where a seat raised and folded, or raised too early, and its chips were
not told, nobody knows what comes back: such a void has no settlements.

Readings. 8(2) prints "royal flush" for the straight flush. Suits break the last tie as art. 8 says: of the highest
card, or of the (higher) pair; four, full house and three go by their rank alone, so no two hands are equal. The highest
card of 5 4 3 2 A is the 5 (4(3)). 7(2) shows the dealer's top card in Portuguese, the fifth in Chinese: it is the one
that is told. 9(1): the Chinese asks for one ace and one king, "or better" follows from 9(3). The maximum of
9(5)(7)-(9), "por jogo", is read for the prize of one raise. The jackpot is paid whatever the dealer holds (10(2)); a
folded hand has lost it, or by option keeps it, since 10(1) asks for the ante only. A straight flush takes its tenth of
the pool as it was before the round (10(6): "each"), a royal flush all that straight flushes leave (10(7)); the fixed
amounts and the pool itself (10(3), 10(8)) are a ledger's. Royals share one prize (10(5)), all others have their own.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardExposed,
    CardJammed,
    CardUnreadable,
    DealCorrected,
    DeviceOnline,
    Event,
    EventsMissed,
    HandDispensed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    ShuffleFailed,
    ShuffleFinished,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.money import Rounding
from rules.engine.rounds import (
    Round,
    declared,
    irregular,
    next_number,
    noted,
    resolved,
    suspend,
    terms,
    voided,
    wager,
    witness,
)
from rules.engine.ruleset import (
    Award,
    Bet,
    Closed,
    Corrected,
    Opened,
    Push,
    Resolved,
    Result,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    Wager,
    Win,
    option,
)
from rules.games.cards import PIPS
from rules.games.poker import CATEGORIES, CATEGORY, HEIGHT, leading, packed, strength

Step: TypeAlias = tuple["StudPokerState", tuple[Verdict, ...]]
Hands: TypeAlias = dict[str, tuple[str, ...]]

TEXT: Final = "Despacho 61/2004"
SEATS: Final = range(1, 8)  # art. 2(1): eight places, the dealer's among them
CARDS: Final = 5
DEALER: Final = "dealer"
NAMES: Final[dict[str, str]] = {
    DEALER: DEALER,
    **{f"seat_{seat}": f"seat_{seat}" for seat in SEATS},
    **{str(seat): f"seat_{seat}" for seat in SEATS},
}

PAYTABLE: Final = (
    Bet("ante", "1", "arts. 5(1), 6(2), 9(2), 9(5)", "the hand beats the dealer's, or the dealer does not open"),
    Bet("jackpot", "pool, share or fixed", "arts. 5(2), 6(3), 10", "a flush or better, beside an ante"),
    Bet("raise", "1 to 100", "arts. 5(3), 6(6), 9(5)", "twice the ante; comes back where the dealer does not open"),
)
FAMILIES: Final = tuple(bet.id for bet in PAYTABLE)

# Art. 9(5): what a raise pays, and its item; the royal flush is the house's choice.
RAISE_PAYS: Final[dict[str, tuple[int, int]]] = {
    "high_card": (1, 1),
    "one_pair": (1, 1),
    "two_pairs": (2, 2),
    "three_of_a_kind": (3, 3),
    "straight": (4, 4),
    "flush": (5, 5),
    "full_house": (7, 6),
    "four_of_a_kind": (20, 7),
    "straight_flush": (50, 8),
    "royal_flush": (50, 9),
}
CAPPED: Final = frozenset(("four_of_a_kind", "straight_flush", "royal_flush"))

# Art. 10(2): combination, what it pays, its share, what is paid before it (10(7)), and its item.
JACKPOT: Final[dict[str, tuple[Literal["fixed", "larger_of_fixed_and_share"], str, str, int]]] = {
    "royal_flush": ("larger_of_fixed_and_share", "1", "straight_flush", 1),
    "straight_flush": ("larger_of_fixed_and_share", "1/10", "", 2),
    "four_of_a_kind": ("fixed", "", "", 3),
    "full_house": ("fixed", "", "", 4),
    "flush": ("fixed", "", "", 5),
}
POOL: Final = "progressive"

# ---- arts. 4, 8: which hand is higher

SUIT_ORDER: Final = {"S": 3, "H": 2, "C": 1, "D": 0}
ITEM_OF_8: Final = {name: 10 - place for place, name in enumerate(CATEGORIES)}
# Art. 8(3), (4), (7): the other cards count for nothing.
_ALL_RANKS: Final = 0xFFFFFF
_COUNTED: Final = {CATEGORY[name]: 0xFF0000 for name in ("four_of_a_kind", "full_house", "three_of_a_kind")}
# Art. 9(1): the least hand that opens.
OPENING: Final = packed("high_card", (HEIGHT["A"], HEIGHT["K"])) << 2


def value(cards: tuple[str, ...]) -> int:
    """A hand by art. 8: category, the ranks it counts, and last the suit of the card or pair that leads it."""
    found = strength(cards)
    lead = leading(found)
    suit = max([SUIT_ORDER[card[1]] for card in cards if HEIGHT[card[0]] == lead])
    return (found & _COUNTED.get(found >> 20, _ALL_RANKS)) << 2 | suit


def combination(value_: int) -> str:
    """The category of a hand's value."""
    return CATEGORIES[value_ >> 22]


# ---- words

VOID_WORDS: Final = {"pt": "Jogada inválida", "zh-Hant": "此局無效", "en": "Void"}
# The dealer's hand, a seat that wins, one that loses, and what stands between them.
SHOWDOWN: Final = {
    "pt": ("Croupier: {}", "lugar {} ganha com {}", "lugar {} perde", "; "),
    "zh-Hant": ("莊家：{}", "{}門贏，{}", "{}門輸", "；"),
    "en": ("Dealer: {}", "seat {} wins with {}", "seat {} loses", "; "),
}
CALLS: Final[dict[str, tuple[str, str, str]]] = {
    "royal_flush": ("naipe real", "黃袍麒麟", "royal flush"),
    "straight_flush": ("sequência de naipe", "同花順", "straight flush"),
    "four_of_a_kind": ("quatro cartas iguais", "四條", "four of a kind"),
    "full_house": ("trio-par", "夫盧", "full house"),
    "flush": ("naipe", "同花", "flush"),
    "straight": ("sequência", "順", "straight"),
    "three_of_a_kind": ("três cartas iguais", "三條", "three of a kind"),
    "two_pairs": ("dois pares", "兩對", "two pairs"),
    "one_pair": ("par", "一對", "one pair"),
    "high_card": ("cinco cartas diferentes", "五張散牌", "five odd cards"),
}
FOLDED: Final = {"pt": "Todos desistem", "zh-Hant": "全部不加注", "en": "All hands folded"}
NOT_OPENED: Final = {
    "pt": "O croupier não abre: as apostas iniciais são pagas, as adicionais devolvidas",
    "zh-Hant": "莊家不開牌，原注一賠一，加注退回",
    "en": "The dealer does not open: antes are paid, raises come back",
}

TELL: Final = say("do_tell_hands")
DECISIONS: Final = say("do_tell_all")
NAME_IT: Final = say("do_name_hand")
WHO_PLAYS: Final = say("do_who_plays")
AGAIN: Final = say("do_decide")
OR_OPEN: Final = say("do_correct")
MISSING: Final = say("round_events")
BEFORE_CARD: Final = say("first_card")
EARLY: Final = say("hands_early")


class StudPokerOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house, and the readings that are possible."""

    dealing: Annotated[
        Literal["either", "shoe", "shuffler"],
        option("arts. 3, 7, 11(4)", "what the cards are dealt from; a shoe may take a failed shuffler's place"),
    ] = "either"
    royal_flush_pays: Annotated[
        int, Meta(ge=50, le=100), option("arts. 9(5)(9), 13", "what a raise with a royal flush pays")
    ] = 50
    maximum_prize: Annotated[
        int,
        Meta(ge=0),
        option(
            "art. 9(5)(7)-(9)", "minor units, the most that one raise wins with four of a kind or better; 0: no limit"
        ),
    ] = 0
    folded_jackpot: Annotated[
        Literal["lost", "kept"], option("arts. 6(7), 10(1)", "whether a folded hand can still win the jackpot")
    ] = "lost"
    bets_offered: Annotated[
        tuple[str, ...], option("art. 5", f"bets offered, of {' '.join(FAMILIES)}; empty: all of them")
    ] = ()
    smallest_chip: Annotated[int, Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        unknown = [bet for bet in self.bets_offered if bet not in FAMILIES]
        if unknown:
            raise ValueError(f"bets_offered: art. 5 has no bet {unknown[0]!r}, it has {', '.join(FAMILIES)}")
        missing = [bet for bet in ("ante", "raise") if self.bets_offered and bet not in self.bets_offered]
        if missing:
            raise ValueError(f"bets_offered: art. 6(2), (5): only the jackpot is a choice; add {missing[0]}")
        if self.folded_jackpot != "lost" and self.bets_offered and "jackpot" not in self.bets_offered:
            raise ValueError("folded_jackpot: art. 10(1): bets_offered leaves the jackpot out")


class Deal(Struct, frozen=True):
    """One round under way.

    `players` are the seats that play, from the closing of the bets on; `anted` those whose ante was told without an
    amount, `entered` those whose ante only the console told as yet, `carried` those whose jackpot bet came from a void
    round. `cards` in the order a shoe told them; `packets` a shuffler's. `told` are the hands a person told, `shown`
    the dealer's open card told so. `chips` lie on a raise. `exposed`: hand and card, "" where it is not known which.
    `doubted`: seats whose decision was told both ways. `covered`: the dealer's last card lies face down, since another
    of his was exposed before it (11(2)). `faced`: it was seen to lie face up.

    `held`: it waits until the hands are told. `blind`: what the shoe told is not trusted. `lost`: events of the betting
    are missing; `unsure`: so the amounts are not known, or two were told of one ante; `uncarried`: nor the jackpot bets
    that were carried here. `reopened` after its result, `paid` after its payment.

    `dealt`: a card or packet was told, trusted or not. `early`: hands or a decision were told where the first card was
    waited for. `over`: bets were opened over it. `swept`: seats that raised before the first card and have not decided
    since; their chips were not told.

    `unproven`: antes may be among the events that are missing. `asked`: seats that may have laid one, with what they
    have decided; `dead`: those that were said to have no bet.
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
    def begun(self) -> bool:
        """The first card is out, or must be."""
        return bool(self.cards or self.packets or self.decided or self.blind)

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
        """The dealer's card that lies open by rule (7(1)), as the shoe told it."""
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


class StudPokerState(Struct, frozen=True):
    """Where a table stands.

    `seats` are open. `last` is the resolved round until the next begins, also beside `deal` while that is the same
    round reopened, and its result may stand. `carried`: jackpot bets of a void round; `uncarried`: there may be others.
    `doubt`: events of the next round's betting may be missing. `heard`: of the last deal cards or packets were told.
    """

    table: str
    day: str = ""
    count: int = 0
    seats: tuple[int, ...] = ()
    deal: Deal | None = None
    last: Deal | None = None
    carried: tuple[Wager, ...] = ()
    uncarried: bool = False
    doubt: bool = False
    heard: bool = False


class Laid(Struct, frozen=True):
    """What a person told of the hands: those of five cards, the dealer's open card, the hands without a bet.

    `asked` are the hands of which the ante may be missing, `left` the seats that do not play after all.
    """

    told: Hands = {}
    shown: str = ""
    dead: tuple[str, ...] = ()
    asked: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


class Showdown(Struct, frozen=True):
    """What the hands decide."""

    outcome: dict[str, Any]
    winners: tuple[Win, ...]
    pushes: tuple[Push, ...]
    awards: tuple[Award, ...]
    announcements: dict[str, str]
    law: tuple[str, ...]


class StudPoker:
    """The ruleset."""

    id: ClassVar[str] = "macau.stud-poker"
    title: ClassVar[str] = "Stud poker, Macau"
    law: ClassVar[str] = "Despacho 61/2004"
    Options: ClassVar[type[StudPokerOptions]] = StudPokerOptions
    State: ClassVar[type[StudPokerState]] = StudPokerState

    def __init__(self, options: StudPokerOptions) -> None:
        """Work out, once, what a raise pays."""
        self.options = options
        self._terms = terms(self.id, "2004", options, VOID_WORDS)
        self._bets = tuple(bet for bet in PAYTABLE if bet.id in (options.bets_offered or FAMILIES))
        self._offered = frozenset(bet.id for bet in self._bets)
        self._jackpot = "jackpot" in self._offered
        self._pays = {name: pays for name, (pays, _) in RAISE_PAYS.items()} | {"royal_flush": options.royal_flush_pays}

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of art. 5."""
        return self._bets

    def start(self, table: str) -> StudPokerState:
        """A table nobody has played on."""
        return StudPokerState(table)

    # ---- what may be shown

    def view(self, state: StudPokerState) -> View:
        """Phase: idle, betting, dealing, deciding, showdown, suspended, resolved. No card that lies face down."""
        deal = state.deal
        if deal is None:
            if state.last is None:
                return View("", "idle", {"seats": state.seats})
            shown = self._showdown(state.last, state.last.known())
            return View(state.last.round.id, "resolved", {**shown.outcome, "say": shown.announcements})
        round_ = deal.round
        if not round_.closed:
            return View(round_.id, "betting", {"seats": state.seats, "antes": deal.antes()})
        detail: dict[str, Any] = {
            "players": deal.players,
            "raised": deal.raised,
            "folded": deal.folded,
            "dealt": len(deal.cards) or deal.packets,
            **_visible(deal),
        }
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        undecided = tuple(seat for seat in deal.players if seat not in deal.raised and seat not in deal.folded)
        if deal.dealing or (undecided and not deal.begun):
            return View(round_.id, "dealing", detail)
        if undecided:
            return View(round_.id, "deciding", {**detail, "undecided": undecided})
        return View(round_.id, "showdown", {**detail, "missing": self._missing(deal, deal.known())})

    # ---- events

    def apply(self, state: StudPokerState, seen: Envelope) -> Step:
        """One event."""
        if state.deal is not None and state.deal.over and _of_the_next(state.deal, seen.event):
            state, verdicts = self._bets_opened(state, seen)
            state, more = self.apply(state, seen)
            return state, verdicts + more
        match seen.event:
            case CardDrawn(card=card, face=face):
                return self._card(state, seen, card, face)
            case SeatActed() as acted:
                return self._acted(state, seen, acted)
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(state, seen, one)
            case HandDispensed(cards=cards):
                return self._packet(state, seen, cards)
            case BetsOpened():
                return self._bets_opened(state, seen)
            case BetsClosed():
                return self._bell(state, seen)
            case DealCorrected(hands=laid):
                return self._corrected(state, seen, laid)
            case CardExposed(hand=hand, card=card):
                return self._exposed(state, seen, hand, card or "")
            case CardUnreadable():
                return self._unreadable(state, seen)
            case ShuffleFailed(reason=reason):
                return self._shuffler_failed(
                    state, seen, say("shuffler_reports_failure", why=reason or "no_reason_told")
                )
            case CardJammed(where=where):
                return self._shuffler_failed(state, seen, say("shuffler_stuck", where=where or "somewhere"))
            case ShoeStarted(decks=decks) | ShuffleFinished(decks=decks):
                return self._new_cards(state, seen, decks, shoe=isinstance(seen.event, ShoeStarted))
            case ShoeEmptied():
                return self._emptied(state, seen)
            case SeatOpened(seat=seat) | SeatClosed(seat=seat):
                return self._seat(state, seen, seat, opened=isinstance(seen.event, SeatOpened))
            case RoundPaid():
                return self._paid(state, seen)
            case RoundVoided(reason=reason):
                return self._declared_void(state, seen, declared(reason))
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._missed(state, seen)
            case _:
                return state, ()

    # ---- the betting

    def _seat(self, state: StudPokerState, seen: Envelope, seat: int, *, opened: bool) -> Step:
        """Who takes part from the next closing of the bets on."""
        if seat not in SEATS:
            return self._noted(state, "no_such_seat", say("seat_there_are", seat=seat, seats=len(SEATS)), "2(1)", seen)
        seats = {*state.seats, seat} if opened else {*state.seats} - {seat}
        return replace(state, seats=tuple(sorted(seats))), ()

    def _begin(self, state: StudPokerState, seen: Envelope, *, missed: bool) -> tuple[StudPokerState, Deal]:
        """A new round, with the jackpot bets that a void one left; `missed`: bets of it may be missing."""
        day, count = next_number(state.day, state.count, seen)
        round_ = Round(f"{state.table}:{day}:{count}", (seen.id,), state.carried)
        deal = Deal(
            round_,
            carried=tuple(one.seat for one in state.carried),
            lost=missed,
            unsure=missed,
            uncarried=state.uncarried,
        )
        heard = state.heard or (state.last is not None and state.last.out)
        return StudPokerState(state.table, day, count, state.seats, deal, heard=heard), deal

    def _bets_opened(self, state: StudPokerState, seen: Envelope) -> Step:
        deal = state.deal
        verdicts: tuple[Verdict, ...] = ()
        if deal is not None:
            if not (deal.round.suspended or deal.lost or deal.reopened):
                if not deal.round.closed:
                    return self._seen(state, deal, seen), ()
                return self._opened_over(state, deal, seen)
            reason = deal.round.suspended or (say("not_completed_again") if deal.reopened else say("events_missed"))
            state, verdicts = self._void(state, deal, seen, reason)
        unproven = state.doubt or (deal is not None and deal.unsure)
        state, deal = self._begin(state, seen, missed=False)
        # Opened by hand, since its opening was lost: antes may have been laid, and lost, before.
        state = replace(state, deal=replace(deal, unproven=unproven))
        return state, (*verdicts, Opened(deal.round.id))

    def _opened_over(self, state: StudPokerState, deal: Deal, seen: Envelope) -> Step:
        """A stray press, or the next round. Before the first card no hands can be mixed, only what was laid."""
        text = say("bets_reopened_round")
        deal = replace(deal, round=_irregular(deal.round, "bets_reopened", text, "6(3)", seen))
        if deal.begun or deal.told or deal.shown or deal.exposed:
            return self._hold(state, replace(deal, over=True), seen, text, OR_OPEN, blind=False)
        return replace(state, deal=replace(deal, unsure=True)), ()

    def _wager(self, state: StudPokerState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        text = say("seat_bet", seat=one.seat, bet=one.bet)
        if one.seat not in SEATS:
            return self._noted(
                state,
                "no_such_seat",
                say("seat_bet_there_are", seat=one.seat, bet=one.bet, seats=len(SEATS)),
                "2(1)",
                seen,
            )
        if one.bet == "raise":
            return self._raise_chips(state, seen, one)
        deal = state.deal
        verdicts: tuple[Verdict, ...] = ()
        if deal is None:
            if isinstance(one, WagerWithdrawn) or one.bet not in self._offered:
                return self._noted(state, "bet_without_round", text, "6(2)", seen)
            state, deal = self._begin(state, seen, missed=state.doubt)
            verdicts = (Opened(deal.round.id),)
        round_ = deal.round
        late = round_.closed
        if one.bet == "jackpot" and self._jackpot:
            if one.seat in deal.carried:
                return self._carried_again(state, deal, seen, one), verdicts
            late = late and deal.begun
            stranger = round_.closed and not late and one.seat not in deal.players
            if stranger and deal.unproven and isinstance(one, WagerPlaced):
                deal = replace(deal, asked={one.seat: "", **deal.asked})
            elif stranger:
                text = say("without_ante", seat=one.seat, bet=one.bet)
                note = _irregular(round_, "jackpot_without_ante", text, "10(1)", seen)
                return self._with(state, deal, note), verdicts
        if one.bet == "ante" and one.seat in deal.entered:
            deal, enough = _felt(deal, one)
            if enough:
                return self._seen(state, deal, seen), verdicts
        law = f"{TEXT} art. {'6(3)' if late else '5'}"
        laid = wager(replace(round_, closed=late), one, self._offered, law, seen)
        deal = replace(deal, round=replace(laid, closed=round_.closed))
        if not deal.asked:
            return replace(state, deal=deal), verdicts
        state, asks = self._ask(state, deal, seen)
        return state, verdicts + asks

    def _carried_again(
        self, state: StudPokerState, deal: Deal, seen: Envelope, one: WagerPlaced | WagerWithdrawn
    ) -> StudPokerState:
        """Art. 11(1), (4): the bet is laid already. Its chip told again is the same chip, and it stays."""
        if isinstance(one, WagerPlaced):
            return self._seen(state, deal, seen)
        text = say("bet_transferred", seat=one.seat, bet=one.bet)
        return self._with(state, deal, _irregular(deal.round, "bet_stands", text, "11(1)", seen))

    def _close(self, deal: Deal, seen: Envelope, players: tuple[int, ...]) -> tuple[Deal, tuple[Verdict, ...]]:
        """Nothing more. A bet on the jackpot without an ante goes back (10(1)), if none can be missing."""
        round_, asked, lost = deal.round, deal.asked, deal.lost
        if lost:
            asked = {one.seat: "" for one in round_.wagers if one.seat not in players}
        else:
            round_ = _without_ante(round_, players, seen)
        round_ = replace(witness(round_, seen), closed=True)
        deal = replace(deal, round=round_, players=players, lost=False, asked=asked)
        deal = replace(deal, unproven=deal.unproven or lost)
        return deal, (Closed(round_.id),)

    def _bell(self, state: StudPokerState, seen: Envelope) -> Step:
        deal = state.deal
        if deal is None:
            return self._noted(state, "bell_without_round", say("bell_no_round"), "6(2)", seen)
        if deal.round.closed:
            return self._seen(state, deal, seen), ()
        players = deal.antes() or state.seats
        if not players and not deal.lost:
            text = say("nobody_ante_bell")
            return self._with(state, deal, _irregular(deal.round, "no_ante", text, "6(2)", seen)), ()
        deal, closed = self._close(deal, seen, players)
        if not players:
            state, held = self._hold(state, deal, seen, MISSING, WHO_PLAYS, blind=False)
            return state, closed + held
        state, asks = self._ask(state, deal, seen) if deal.asked else (replace(state, deal=deal), ())
        return state, closed + asks

    # ---- the deal

    def _first(
        self, state: StudPokerState, deal: Deal, seen: Envelope
    ) -> tuple[Deal, tuple[Verdict, ...], Reason | None]:
        """The first card closes the bets too. Last, the reason why nobody knows whose it is, where that is so."""
        if deal.round.closed:
            first = not (deal.out or deal.blind)
            doubt = EARLY if first and (deal.told or deal.shown) else None
            if first and (deal.asked or not deal.players):
                doubt = doubt or BEFORE_CARD
            elif first and deal.unproven and not (deal.blind or deal.over):
                deal = replace(deal, held=False)  # the seats were named, and the cards say whether those are all
            return replace(_swept(deal, seen) if first else deal, dealt=True), (), doubt
        lost = deal.lost
        deal, closed = self._close(deal, seen, deal.antes() or state.seats)
        deal = replace(deal, dealt=True)
        if lost:
            return deal, closed, BEFORE_CARD
        return deal, closed, None if deal.players else say("card_no_ante")

    def _without_round(self, state: StudPokerState, seen: Envelope, code: str, reason: Reason, article: str) -> Step:
        """A card where no round waits for one. After a result without cards it says that the result came too early.

        But one that was told late may be older than the result, and one after the payment is of no round.
        """
        last = state.deal or state.last
        if last is None or last.out or last.blind or last.paid or state.doubt or seen.event.overtaken:
            return self._noted(state, code, reason, article, seen)
        deal = _swept(replace(last, reopened=True, dealt=True), seen)
        reason = say("card_after_result")
        return self._hold(replace(state, last=None), deal, seen, reason, DECISIONS)

    def _card(self, state: StudPokerState, seen: Envelope, card: str, face: str | None) -> Step:
        """Art. 7(1): one card to each hand in turn."""
        if card not in PIPS:
            return self._unreadable(state, seen)
        deal = state.deal
        if deal is None or (deal.reopened and not deal.out):
            return self._without_round(state, seen, "card_without_round", say("card_no_round"), "7(1)")
        deal, closed, doubt = self._first(state, deal, seen)
        if deal.blind and not doubt:
            return self._seen(state, deal, seen), closed
        place = len(deal.cards)
        if place == CARDS * deal.hands:
            doubt = doubt or say("card_more")
        if deal.packets:
            doubt = doubt or say("shoe_then_packets")
        if card in deal.cards:
            doubt = doubt or say("card_twice")
        if doubt:
            state, held = self._hold(state, deal, seen, doubt, DECISIONS if doubt == EARLY else TELL)
            return state, closed + held
        round_ = witness(deal.round, seen)
        if not place and self.options.dealing == "shuffler":
            round_ = _irregular(round_, "wrong_equipment", say("from_shoe"), "3(2)", seen)
        last = place + 1 == CARDS * deal.hands
        covered = last and any(hand == DEALER for hand, _ in deal.exposed)
        faced = last and not covered and face == "up"
        deal = replace(deal, round=round_, cards=(*deal.cards, card), covered=covered, faced=faced)
        # The dealer's last card lies open, unless another of his does (11(2)).
        if face == "up" and (covered or not last):
            state, step = self._expose(state, deal, seen, deal.whose(place), card)
            return state, closed + step
        if not last:
            return replace(state, deal=deal), closed
        state, step = self._go_on(state, deal)
        return state, closed + step

    def _packet(self, state: StudPokerState, seen: Envelope, cards: int) -> Step:
        """Art. 7(2): five cards to each hand."""
        deal = state.deal
        if deal is None or (deal.reopened and not deal.out):
            return self._without_round(state, seen, "packet_without_round", say("packet_no_round"), "7(2)")
        deal, closed, doubt = self._first(state, deal, seen)
        if deal.cards:
            doubt = doubt or say("packet_then_shoe")
        if doubt:
            state, held = self._hold(state, deal, seen, doubt, DECISIONS if doubt == EARLY else TELL)
            return state, closed + held
        if deal.packets == deal.hands:
            # Told once more than hands with a bet: whether it lies with a hand without one, nobody can know.
            text = say("packet_more")
            state, held = self._hold(state, deal, seen, text, WHO_PLAYS if deal.unproven else NAME_IT)
            return state, closed + held
        round_ = witness(deal.round, seen)
        if not deal.packets and self.options.dealing == "shoe":
            round_ = _irregular(round_, "wrong_equipment", say("by_shuffler"), "3(1)", seen)
        whose = deal.whose(deal.packets)
        deal = replace(deal, round=round_, packets=deal.packets + 1)
        if cards != CARDS:
            text = say("packet_cards", n=cards, hand=whose)
            deal = replace(deal, round=_irregular(round_, "wrong_number_of_cards", text, "11(1)", seen))
            state, void = self._void(state, deal, seen, say("wrong_number_of_cards"))
            return state, closed + void
        state, step = self._go_on(state, deal)
        return state, closed + step

    def _unreadable(self, state: StudPokerState, seen: Envelope) -> Step:
        deal = state.deal
        if deal is None or (deal.reopened and not deal.out):
            text = say("card_may_no_round")
            return self._without_round(state, seen, "unreadable_without_round", text, "7(1)")
        deal, closed, _ = self._first(state, deal, seen)
        state, held = self._hold(state, deal, seen, say("card_unreadable"))
        return state, closed + held

    def _new_cards(self, state: StudPokerState, seen: Envelope, decks: int, *, shoe: bool) -> Step:
        """Art. 1(1): a single deck. A shoe begun in the middle of a deal leaves it unknown what was dealt."""
        verdicts: tuple[Verdict, ...] = ()
        if decks > 1:
            text = say("wrong_decks_one", decks=decks)
            state, verdicts = self._noted(state, "wrong_number_of_decks", text, "1(1)", seen)
        deal = state.deal
        if shoe and deal is not None and deal.dealing and deal.cards:
            state, held = self._hold(state, deal, seen, say("new_shoe"))
            return state, verdicts + held
        return state, verdicts

    def _emptied(self, state: StudPokerState, seen: Envelope) -> Step:
        deal = state.deal
        if deal is None or not deal.dealing or not deal.cards:
            return state, ()
        return self._hold(state, deal, seen, say("shoe_empty_hands"))

    def _shuffler_failed(self, state: StudPokerState, seen: Envelope, what: Reason) -> Step:
        """Art. 11(4), between the bell and the last packet; later the machine is at its next deck.

        Where events are missing, or decisions are told, the last packet may be out already: a person says.
        """
        deal = state.deal
        if deal is None or not deal.round.closed or deal.reopened or deal.cards or self.options.dealing == "shoe":
            return state, ()
        if deal.packets == deal.hands or (deal.decided and not deal.packets):
            return state, ()
        failed = replace(deal, round=_irregular(deal.round, "shuffler_failed", what, "11(4)", seen))
        if deal.blind:
            return replace(state, deal=failed), ()
        if deal.decided:
            return self._hold(state, deal, seen, what)
        return self._void(state, failed, seen, say("shuffler_failed"), "11(4)")

    def _exposed(self, state: StudPokerState, seen: Envelope, hand: str, card: str) -> Step:
        deal = state.deal
        text = _card_seen(card, NAMES.get(hand, ""))
        if deal is None:
            return self._noted(state, "card_exposed", text, "11(2)", seen)
        if deal.reopened:
            return self._with(state, deal, _irregular(deal.round, "card_exposed", text, "11(2)", seen)), ()
        if _too_early(state, deal):
            return self._early(state, deal, seen, "card_exposed", text, "11(2)")
        return self._expose(state, deal, seen, NAMES.get(hand, ""), card)

    def _expose(self, state: StudPokerState, deal: Deal, seen: Envelope, hand: str, card: str) -> Step:
        """Art. 11(2): one card is left as it is; 11(1): two make the round void."""
        if card and hand == DEALER and card in (deal.shown, deal.last_card):
            return self._seen(state, replace(deal, faced=True), seen), ()
        if card and (hand, card) in deal.exposed:
            return self._seen(state, deal, seen), ()
        if card and hand == DEALER and deal.last_due and card not in deal.cards:
            # By rule, and faster than the shoe. Where another card comes, the two contradict each other.
            return self._seen(state, replace(deal, shown=card), seen), ()
        if any(hand == other and not (card and known) for other, known in deal.exposed):
            reason = say("one_or_two")
            return self._hold(state, deal, seen, reason, blind=False)
        text = _card_seen(card, hand)
        round_ = _irregular(deal.round, "card_exposed", text, "11(2)" if not deal.exposed else "11(1)", seen)
        second = bool(deal.exposed)
        deal = replace(deal, round=round_, exposed=(*deal.exposed, (hand, card)))
        return self._void(state, deal, seen, say("two_cards_exposed")) if second else self._go_on(state, deal)

    # ---- the decisions

    def _early(
        self, state: StudPokerState, deal: Deal, seen: Envelope, code: str, reason: Reason, article: str
    ) -> Step:
        """It is the round before's. A second such word says that the cards are out and not told: the round is held."""
        deal = replace(deal, round=_irregular(deal.round, code, reason, article, seen))
        if deal.early:
            return self._hold(state, deal, seen, MISSING)
        word = deal.round.closed and not isinstance(seen.event, WagerPlaced | WagerWithdrawn)  # chips are moved often
        return replace(state, deal=replace(deal, early=word)), ()

    def _acted(self, state: StudPokerState, seen: Envelope, acted: SeatActed) -> Step:
        text = say("seat_action", seat=acted.seat, action=acted.action)
        if acted.seat not in SEATS:
            text = say("seat_action_there_are", seat=acted.seat, action=acted.action, seats=len(SEATS))
            return self._noted(state, "no_such_seat", text, "2(1)", seen)
        if acted.hand != 1:
            text = say("seat_action_hand", seat=acted.seat, action=acted.action, number=acted.hand)
            return self._noted(state, "one_hand_only", text, "6(1)", seen)
        match acted.action:
            case "ante":
                return self._ante(state, seen, acted)
            case "raise" | "fold":
                return self._decided(state, seen, acted)
            case _:
                return self._noted(state, "no_such_decision", text, "6(5)", seen)

    def _ante(self, state: StudPokerState, seen: Envelope, acted: SeatActed) -> Step:
        """An ante told at the console; with its amount it is a wager, unless one lies there: then it is the same."""
        deal = state.deal
        if deal is not None and deal.unproven and (deal.asked or deal.held) and acted.seat not in deal.players:
            return self._plays(state, deal, seen, acted.seat)
        lay = 0 if deal is None else deal.amount(acted.seat, "ante")
        if acted.amount and not lay:
            state, verdicts = self._wager(state, seen, WagerPlaced(acted.seat, "ante", acted.amount))
            if state.deal is not None and state.deal.amount(acted.seat, "ante"):
                entered = tuple(sorted({*state.deal.entered, acted.seat}))
                state = replace(state, deal=replace(state.deal, entered=entered))
            return state, verdicts
        verdicts = ()
        if deal is None:
            state, deal = self._begin(state, seen, missed=state.doubt)
            verdicts = (Opened(deal.round.id),)
        differs = acted.amount not in (0, lay)
        if deal.round.closed and (differs or acted.seat not in deal.players):
            if deal.round.suspended:
                text = say("bet_while_waiting", seat=acted.seat, bet="ante")
                round_ = _irregular(deal.round, "bet_while_waiting", text, "6(2)", seen)
                return self._with(state, deal, round_), ()
            text = say("late_bet", seat=acted.seat, bet="ante")
            return self._with(state, deal, _irregular(deal.round, "late_bet", text, "6(2)", seen)), ()
        anted = deal.anted if deal.round.closed else tuple(sorted({*deal.anted, acted.seat}))
        deal = replace(deal, round=witness(deal.round, seen), anted=anted, unsure=deal.unsure or differs)
        return replace(state, deal=deal), verdicts

    def _ask(self, state: StudPokerState, deal: Deal, seen: Envelope) -> Step:
        """Which of the seats that may have laid an ante plays: said again where another one is meant than before."""
        reason = say("ante_missing", seat=min(deal.asked))
        if deal.round.suspended != reason:
            deal = replace(deal, round=replace(deal.round, suspended=None))
        return self._suspend(state, deal, seen, reason, WHO_PLAYS)

    def _plays(self, state: StudPokerState, deal: Deal, seen: Envelope, seat: int) -> Step:
        """A person says that this seat had laid its ante; what it has decided since is told already."""
        decided = deal.asked.get(seat, "")
        deal = replace(
            deal,
            round=witness(deal.round, seen),
            players=tuple(sorted({*deal.players, seat})),
            anted=tuple(sorted({*deal.anted, seat})),
            raised=tuple(sorted({*deal.raised, seat})) if decided == "raise" else deal.raised,
            folded=tuple(sorted({*deal.folded, seat})) if decided == "fold" else deal.folded,
            asked={other: word for other, word in deal.asked.items() if other != seat},
            dead=tuple(other for other in deal.dead if other != seat),
            blind=deal.blind or deal.out,
            unsure=True,
        )
        if deal.asked:
            return self._ask(state, deal, seen)
        if deal.held and deal.out:
            deal = replace(deal, round=replace(deal.round, suspended=None))
            return self._hold(state, deal, seen, MISSING, TELL)
        return self._go_on(state, deal)

    def _playing(
        self, state: StudPokerState, seen: Envelope, seat: int, action: str, reason: Reason
    ) -> tuple[StudPokerState, Deal | None, tuple[Verdict, ...]]:
        """The round in which `seat` may decide, a resolved one reopened; or None, with what follows from that."""
        deal = state.deal
        if deal is None:
            if state.last is not None and seat in state.last.players and not (state.last.paid or state.doubt):
                return state, replace(state.last, reopened=True), ()
            state, noted = self._noted(state, "decision_without_round", reason, "6(5)", seen)
            return state, None, noted
        if _too_early(state, deal):
            state, held = self._early(state, deal, seen, "decision_before_deal", reason, "6(5)")
            return state, None, held
        if seat not in deal.players and deal.unproven:
            word = action if deal.asked.get(seat, "") in ("", action) else ""
            asked = {**deal.asked, seat: word}
            dead = tuple(other for other in deal.dead if other != seat)
            deal = replace(deal, asked=asked, dead=dead, blind=deal.blind or deal.out)
            state, asks = self._ask(state, deal, seen)
            return state, None, asks
        if seat not in deal.players:
            if not deal.unsure:  # after a loss it may be the next round's
                deal = replace(deal, round=_irregular(deal.round, "decision_without_ante", reason, "6(2)", seen))
            chips = reason.code == "seat_bet"  # told by a sensor, not as an action
            missing = say("no_ante_raise", seat=seat) if chips else say("no_ante", seat=seat, action=action)
            state, held = self._hold(state, deal, seen, missing, NAME_IT)
            return state, None, held
        return state, deal, ()

    def _decided(self, state: StudPokerState, seen: Envelope, acted: SeatActed) -> Step:
        """Art. 6(5)-(7)."""
        seat, raises = acted.seat, acted.action == "raise"
        state, deal, verdicts = self._playing(
            state, seen, seat, acted.action, say("seat_action", seat=seat, action=acted.action)
        )
        if deal is None:
            return state, verdicts
        if seat in (deal.raised if raises else deal.folded):
            return (state if deal.reopened and state.deal is None else self._seen(state, deal, seen)), ()
        chips = deal.chips.get(seat, 0)
        if seat not in deal.doubted and (seat in deal.raised or seat in deal.folded or (chips and not raises)):
            return self._contradicted(state, deal, seen, seat)
        double = 2 * deal.amount(seat, "ante")
        if raises and double:
            for amount in dict.fromkeys((acted.amount, chips)):
                if amount not in (0, double):
                    text = say("raise_not_double", seat=seat, amount=amount, double=double)
                    deal = replace(deal, round=_irregular(deal.round, "raise_not_double", text, "6(6)", seen))
        elif raises and acted.amount:
            chips = acted.amount
        return self._decide(state, deal, seen, seat, raises=raises, chips=chips if raises else 0)

    def _decide(
        self, state: StudPokerState, deal: Deal, seen: Envelope, seat: int, *, raises: bool, chips: int
    ) -> Step:
        round_ = witness(deal.round, seen)
        if deal.dealing:
            text = say("decided_dealing", seat=seat)
            round_ = _irregular(round_, "decision_before_deal", text, "6(5)", seen)
        told = deal.chips
        if chips or seat in told:
            told = {other: amount for other, amount in told.items() if other != seat} | ({seat: chips} if chips else {})
        deal = replace(
            deal,
            round=round_,
            raised=tuple(sorted({*deal.raised, seat})) if raises else deal.raised,
            folded=deal.folded if raises else tuple(sorted({*deal.folded, seat})),
            chips=told,
            doubted=tuple(other for other in deal.doubted if other != seat) if deal.doubted else (),
            swept=tuple(other for other in deal.swept if other != seat) if deal.swept else (),
        )
        return self._go_on(state, deal)

    def _contradicted(self, state: StudPokerState, deal: Deal, seen: Envelope, seat: int) -> Step:
        """A raise and a fold: the third word decides."""
        deal = replace(
            deal,
            raised=tuple(other for other in deal.raised if other != seat),
            folded=tuple(other for other in deal.folded if other != seat),
            doubted=tuple(sorted({*deal.doubted, seat})),
        )
        return self._suspend(state, deal, seen, say("raises_and_folds", seat=seat), AGAIN)

    def _raise_chips(self, state: StudPokerState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        """Art. 6(6): chips on the raise are one when they are twice the ante, no more and no less."""
        seat = one.seat
        if state.deal is None and state.last is not None and seat in state.last.raised:
            return state, ()  # the console was faster than the sensor
        state, deal, verdicts = self._playing(state, seen, seat, "raise", say("seat_bet", seat=seat, bet="raise"))
        if deal is None:
            return state, verdicts
        lay, double = deal.chips.get(seat, 0), 2 * deal.amount(seat, "ante")
        if isinstance(one, WagerWithdrawn):
            left = lay - (one.amount or lay)
            if deal.reopened or seat in deal.raised or not lay or left < 0:
                note = _irregular(deal.round, "bet_stands", say("raise_taken_back", seat=seat), "6(5)", seen)
                return (self._with(state, deal, note), ()) if state.deal is not None else (state, ())
            chips = {**deal.chips, seat: left}
            return replace(state, deal=replace(deal, round=witness(deal.round, seen), chips=chips)), ()
        left = lay + one.amount
        if double and left > double:
            text = say("raise_too_much", seat=seat, amount=double)
            note = _irregular(deal.round, "raise_not_double", text, "6(6)", seen)
            deal, left = replace(deal, round=note), double
        if seat in deal.folded:
            return self._contradicted(state, replace(deal, chips={**deal.chips, seat: left}), seen, seat)
        if seat in deal.raised or seat in deal.doubted or left < double:
            chips = {**deal.chips, seat: left}
            return replace(state, deal=replace(deal, round=witness(deal.round, seen), chips=chips)), ()
        return self._decide(state, deal, seen, seat, raises=True, chips=left)

    # ---- the hands a person tells

    def _corrected(self, state: StudPokerState, seen: Envelope, laid: Hands) -> Step:
        """The hands named lie so; the others as they were known."""
        deal = state.deal
        if deal is None:
            if state.last is None or state.doubt:  # after a loss they may be another round's
                return self._noted(state, "hands_without_round", say("hands_no_round"), "6(8)", seen)
            deal = replace(state.last, reopened=True)
        elif _too_early(state, deal):
            text = say("hands_before_deal")
            return self._early(state, deal, seen, "hands_before_deal", text, "6(8)")
        said, wrong = self._laid(deal, laid)
        known = deal.known()
        again = said.shown in ("", deal.shown, deal.last_card) and all(
            known.get(name) == said.told[name] for name in said.told
        )
        if state.deal is None and again and not (wrong or said.dead or said.asked or said.left):
            return state, ()  # what is resolved was told again
        deal = _named(deal, said, seen)
        told, dead = said.told, said.dead
        shown = said.shown or deal.shown
        strangers = bool(dead or said.asked or said.left)
        # A hand too many leaves it unknown whose the shoe's cards are; the open card, told alone, completes no deal.
        blind = deal.blind or deal.over or (deal.dealing and bool(told or dead)) or (strangers and bool(deal.cards))
        asked = dict.fromkeys(said.asked, "") | deal.asked
        next_ = replace(deal, told=deal.told | told, shown=shown, held=False, blind=blind, over=False, asked=asked)
        if not wrong and _unknowable(deal, told):
            # Said also where the round waits already: who tells the hands would not know what it still waits for.
            if deal.round.suspended != EARLY:
                deal = replace(deal, round=replace(deal.round, suspended=None))
            return self._hold(state, deal, seen, EARLY, DECISIONS, blind=bool(dead and deal.cards))
        wrong = wrong or _contradiction(next_)
        if wrong:
            return self._hold(state, deal, seen, wrong, blind=bool(dead and deal.cards))
        return self._ask(state, next_, seen) if asked else self._go_on(state, next_)

    def _laid(self, deal: Deal, laid: Hands) -> tuple[Laid, Reason | None]:
        """The hands that were told, and why this cannot be. After a loss a hand without an ante may have had one."""
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
                return Laid(), say("hand_cards", n=len(cards), hand=hand)
            elif hand in told:
                return Laid(), say("hand_twice", hand=hand)
            else:
                told[hand] = tuple(cards)
                if not plays:
                    asked.append(seat)
        if any(card not in PIPS for cards in (*told.values(), (shown or "AS",)) for card in cards):
            return Laid(), say("no_such_card")
        return Laid(told, shown, tuple(dead), tuple(asked), tuple(left)), None

    # ---- doubt

    def _missed(self, state: StudPokerState, seen: Envelope) -> Step:
        """Before the bell no card can be missing, only bets."""
        deal = state.deal
        if deal is None:
            return (state if state.doubt else replace(state, doubt=True)), ()
        deal = replace(deal, unsure=True)
        if not deal.round.closed:
            return self._seen(state, replace(deal, lost=True), seen), ()
        return self._hold(state, deal, seen, MISSING)

    def _hold(
        self,
        state: StudPokerState,
        deal: Deal,
        seen: Envelope,
        reason: Reason,
        remedy: Reason = TELL,
        *,
        blind: bool = True,
    ) -> Step:
        """The round waits until the hands are told."""
        return self._suspend(state, replace(deal, held=True, blind=deal.blind or blind), seen, reason, remedy)

    def _suspend(self, state: StudPokerState, deal: Deal, seen: Envelope, reason: Reason, remedy: Reason) -> Step:
        round_, verdicts = suspend(deal.round, seen, reason, remedy)
        return self._with(state, deal, round_), verdicts

    def _paid(self, state: StudPokerState, seen: Envelope) -> Step:
        deal, last, late = state.deal, state.last, seen.event.overtaken
        if deal is None:
            return (state if last is None or last.paid or late else replace(state, last=replace(last, paid=True))), ()
        if not deal.round.closed:
            return state, ()  # the last round may be paid while bets are open
        if late:
            return self._seen(state, deal, seen), ()  # before what is in doubt, or even before this round
        if deal.reopened and last is not None:
            # Paid while in doubt: the croupier, who sees the hands, lets the first result stand.
            last = replace(last, round=replace(deal.round, suspended=None), paid=True)
            result = self._resolve(replace(last, round=witness(last.round, seen)), last.known())
            return replace(state, deal=None, last=last), (Corrected(replace(result, supersedes=result.round)),)
        if not deal.begun:
            return self._seen(state, deal, seen), ()
        undecided = len(deal.raised) + len(deal.folded) < len(deal.players)
        return self._suspend(state, deal, seen, say("paid_decisions") if undecided else say("paid_hands"), TELL)

    def _declared_void(self, state: StudPokerState, seen: Envelope, reason: Reason) -> Step:
        deal = state.deal
        if deal is None:
            if state.last is None:
                text = say("void_no_correction")
                return self._noted(state, "void_without_round", text, "11(1)", seen)
            deal = replace(state.last, reopened=True)
        return self._void(state, deal, seen, reason)

    # ---- the ends of a round

    def _void(self, state: StudPokerState, deal: Deal, seen: Envelope, reason: Reason, article: str = "11(1)") -> Step:
        """Art. 11(1), (4): antes and raises come back, the jackpot bets are those of the next round."""
        jackpots = tuple(one for one in deal.round.wagers if one.bet == "jackpot")
        # Raised and folded, and no chips were told, or raised too early: nobody knows what comes back beside the ante.
        unsure = deal.unsure or bool(deal.swept) or any(not deal.chips.get(seat) for seat in deal.doubted)
        stakes = () if unsure else tuple(one for one in _stakes(deal) if one.bet != "jackpot")
        round_ = replace(witness(deal.round, seen), wagers=stakes, suspended=None)
        void = Void(reason, "returned", "carried" if self._jackpot else "")
        result = voided(round_, self._terms, void, (f"{TEXT} art. {article}",), _visible(deal))
        state = StudPokerState(
            state.table,
            state.day,
            state.count,
            state.seats,
            carried=jackpots,
            uncarried=deal.uncarried or deal.unsure,
            doubt=state.doubt,
            heard=deal.out or (state.heard and not deal.begun),
        )
        return state, (Corrected(replace(result, supersedes=result.round)) if deal.reopened else Voided(result),)

    def _go_on(self, state: StudPokerState, deal: Deal) -> Step:
        """The end, where all have decided and the hands that are opened are known."""
        if deal.held or deal.doubted or deal.asked or not deal.players:
            return replace(state, deal=deal), ()
        if deal.round.suspended:
            deal = replace(deal, round=replace(deal.round, suspended=None))
        if deal.dealing or len(deal.raised) + len(deal.folded) < len(deal.players):
            return replace(state, deal=deal), ()
        hands = deal.known()
        if self._missing(deal, hands):
            return replace(state, deal=deal), ()
        if wrong := _contradiction(deal):
            deal = replace(deal, held=True, blind=True, round=replace(deal.round, suspended=wrong))
            return replace(state, deal=deal), (Suspended(deal.round.id, wrong, TELL),)
        result = self._resolve(deal, hands)
        last = replace(deal, reopened=False) if deal.reopened else deal
        state = StudPokerState(
            state.table, state.day, state.count, state.seats, last=last, doubt=state.doubt, heard=deal.out
        )
        return state, (Corrected(replace(result, supersedes=result.round)) if deal.reopened else Resolved(result),)

    def _bettors(self, deal: Deal) -> tuple[int, ...] | None:
        """The seats with a bet on the jackpot; None where the bets are not told, or not surely all of them."""
        if not deal.round.wagers or deal.unsure or deal.uncarried:
            return None
        return tuple(one.seat for one in deal.round.wagers if one.bet == "jackpot")

    def _missing(self, deal: Deal, hands: Hands) -> tuple[str, ...]:
        """The hands that must be told before the round can end."""
        needed: list[str] = []
        # After a loss anybody may have bet on the jackpot. Where no bet is ever told, a hand that has won it is told.
        anybody = self._jackpot and (deal.unsure or deal.uncarried)
        bettors = deal.players if anybody else self._bettors(deal) or ()
        if deal.raised:
            dealer = hands.get(DEALER)
            if dealer is None:
                needed.append(DEALER)
            opens = dealer is not None and value(dealer) >= OPENING
            needed += [f"seat_{seat}" for seat in deal.raised if opens or seat in bettors]
        if self.options.folded_jackpot == "kept":
            needed += [f"seat_{seat}" for seat in deal.folded if seat in bettors]
        return tuple(name for name in needed if name not in hands)

    def _resolve(self, deal: Deal, hands: Hands) -> Result:
        shown = self._showdown(deal, hands)
        stakes = () if deal.unsure else _stakes(deal)
        if deal.uncarried:
            stakes = tuple(one for one in stakes if one.bet != "jackpot")
        return resolved(
            deal.round if stakes == deal.round.wagers else replace(deal.round, wagers=stakes),
            self._terms,
            outcome=shown.outcome,
            winners=shown.winners,
            pushes=shown.pushes,
            jackpots=shown.awards,
            announcements=shown.announcements,
            law=shown.law,
        )

    def _showdown(self, deal: Deal, hands: Hands) -> Showdown:
        """Art. 9: who wins what."""
        articles: list[str] = ["7(2)"] if deal.packets else ["7(1)"] if deal.cards else []
        if deal.exposed:
            articles.append("11(2)")
        if deal.folded:
            articles.append("6(7)")
        fates: dict[str, str] = {f"seat_{seat}": "folded" for seat in deal.folded}
        opened: dict[str, int] = {}
        winners: list[Win] = []
        pushes: list[Push] = []
        opens = False
        if deal.raised:
            dealers = opened[DEALER] = value(hands[DEALER])
            opens = dealers >= OPENING
            articles += ("9(1)", "9(3)") if opens else ("9(1)", "9(2)")
            for seat in deal.raised:
                hand = f"seat_{seat}"
                if not opens:
                    fates[hand] = "not_opened"
                    winners.append(Win("ante", "1", seat=seat))
                    pushes.append(Push("raise", seat))
                    continue
                mine = opened[hand] = value(hands[hand])
                articles.append(f"8({ITEM_OF_8[combination(mine)]})")
                # Never equal: the last word has the suit of a card that only one hand holds.
                if mine > dealers:
                    fates[hand] = "wins"
                    winners += (Win("ante", "1", seat=seat), self._raise_wins(deal, seat, combination(mine)))
                    articles.append(f"9(5)({RAISE_PAYS[combination(mine)][1]})")
                else:
                    fates[hand] = "loses"
                    articles.append("9(4)")
                if mine >> 2 == dealers >> 2:
                    articles.append("4(1)")
            articles.append(f"8({ITEM_OF_8[combination(dealers)]})")
        awards, won = self._awards(deal, hands)
        articles += [f"10(2)({JACKPOT[award.combination][3]})" for award in awards]
        opened |= {hand: value(hands[hand]) for hand in won if hand not in opened}
        outcome = {
            "opens": opens,
            "hands": {hand: hands[hand] for hand in opened},
            "combinations": {hand: combination(found) for hand, found in opened.items()},
            "seats": dict(sorted(fates.items())),
        }
        law = tuple(f"{TEXT} art. {article}" for article in sorted(dict.fromkeys(articles), key=_order))
        words = _announced(opens, opened.get(DEALER), fates, opened)
        return Showdown(outcome, tuple(winners), tuple(pushes), awards, words, law)

    def _raise_wins(self, deal: Deal, seat: int, name: str) -> Win:
        """Art. 9(5); the three highest combinations pay no more than the house's maximum."""
        pays, most = self._pays[name], self.options.maximum_prize
        stake = 2 * deal.amount(seat, "ante") or deal.chips.get(seat, 0)
        if most and name in CAPPED and not deal.unsure and pays * stake > most:
            return Win("raise", str(Fraction(most, stake)), str(pays), seat=seat)
        return Win("raise", str(pays), seat=seat)

    def _awards(self, deal: Deal, hands: Hands) -> tuple[tuple[Award, ...], tuple[str, ...]]:
        """Art. 10, in the order of payment, and the hands that have won: whatever the dealer holds.

        From the dealer's left (10(4)), but royal flushes after the straight flushes (10(7)). Where nobody told who has
        bet on the jackpot, one award for each combination, among seats that are not named.
        """
        if not self._jackpot:
            return (), ()
        bettors = self._bettors(deal)
        held: list[tuple[int, str]] = []
        for seat in deal.players:
            hand = f"seat_{seat}"
            if hand not in hands or (seat in deal.folded and self.options.folded_jackpot == "lost"):
                continue
            name = CATEGORIES[strength(hands[hand]) >> 20]
            if name in JACKPOT and (bettors is None or seat in bettors):
                held.append((seat, name))
        if not held:
            return (), ()
        if bettors is None:
            names = dict.fromkeys(name for _, name in held)
            shares: list[tuple[str, tuple[int, ...]]] = [(name, ()) for name in names]
        else:
            royals = tuple(seat for seat, name in held if name == "royal_flush")
            shares = []
            for seat, name in held:
                if name != "royal_flush":
                    shares.append((name, (seat,)))
                elif seat == royals[0]:
                    shares.append((name, royals))
        names_of_shares = [name for name, _ in shares]
        if {"royal_flush", "straight_flush"} <= set(names_of_shares):
            at = names_of_shares.index("royal_flush")
            after = len(shares) - 1 - names_of_shares[::-1].index("straight_flush")
            if after > at:
                shares.insert(after, shares.pop(at))
        awards = []
        for name, among in shares:
            pays, share, after_, item = JACKPOT[name]
            awards.append(Award(POOL, name, pays, f"{TEXT} art. 10(2)({item})", share, among, after_))
        known = () if bettors is None else tuple(f"seat_{seat}" for seat, _ in held)
        return tuple(awards), known

    # ---- words

    def _with(self, state: StudPokerState, deal: Deal, round_: Round) -> StudPokerState:
        return replace(state, deal=replace(deal, round=round_))

    def _seen(self, state: StudPokerState, deal: Deal, seen: Envelope) -> StudPokerState:
        """The round rests on this event too."""
        return replace(state, deal=replace(deal, round=witness(deal.round, seen)))

    def _noted(self, state: StudPokerState, code: str, reason: Reason, article: str, seen: Envelope) -> Step:
        """An irregularity, of the round if one is open."""
        if state.deal is not None:
            return self._with(state, state.deal, _irregular(state.deal.round, code, reason, article, seen)), ()
        return state, noted(code, reason, f"{TEXT} art. {article}", seen)


def _irregular(round_: Round, code: str, reason: Reason, article: str, seen: Envelope) -> Round:
    return irregular(round_, code, reason, f"{TEXT} art. {article}", seen)


def _without_ante(round_: Round, players: tuple[int, ...], seen: Envelope) -> Round:
    """Art. 10(1): the bets on the jackpot of seats without an ante go back."""
    for one in round_.wagers:
        if one.seat not in players:
            text = say("without_ante_back", seat=one.seat, bet=one.bet)
            round_ = _irregular(round_, "jackpot_without_ante", text, "10(1)", seen)
    return replace(round_, wagers=tuple(one for one in round_.wagers if one.seat in players))


def _named(deal: Deal, said: Laid, seen: Envelope) -> Deal:
    """The seats that a person named without a bet; art. 11(3) where cards were dealt to one."""
    round_ = witness(deal.round, seen)
    none = {int(hand[-1]) for hand in said.dead}
    for hand in said.dead:
        seat = int(hand[-1])
        if hand not in deal.told and (seat in deal.asked or seat in deal.dead):
            continue
        text = say("hand_without_bet", hand=hand)
        round_ = _irregular(round_, "hand_without_bet", text, "11(3)", seen)
    if not deal.unproven:
        return replace(deal, round=round_)
    asked = {seat: word for seat, word in deal.asked.items() if seat not in none}
    players = tuple(seat for seat in deal.players if seat not in said.left)
    round_ = replace(round_, wagers=tuple(one for one in round_.wagers if one.seat not in said.left))
    round_ = _without_ante(round_, (*players, *asked, *said.asked), seen)
    told = {hand: cards for hand, cards in deal.told.items() if hand not in said.dead}
    dead = tuple(sorted({*deal.dead, *none, *said.left}))
    anted = tuple(seat for seat in deal.anted if seat not in said.left)
    return replace(deal, round=round_, players=players, anted=anted, asked=asked, dead=dead, told=told)


def _felt(deal: Deal, one: WagerPlaced | WagerWithdrawn) -> tuple[Deal, bool]:
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


def _stakes(deal: Deal) -> tuple[Wager, ...]:
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


def _too_early(state: StudPokerState, deal: Deal) -> bool:
    """Nothing can be known of a hand before the first card, which is waited for where those of the last deal were told.

    Else it may be a table without a device, where a person tells the hands whole.
    """
    return not deal.round.closed or (state.heard and not deal.begun)


def _swept(deal: Deal, seen: Envelope) -> Deal:
    """At the first card: what was told of hands before it is no word of this round (6(5)). Chips lie where they lie."""
    round_ = deal.round
    for seat in sorted({*deal.raised, *deal.folded, *deal.doubted}):
        text = say("decided_dealing", seat=seat)
        round_ = _irregular(round_, "decision_before_deal", text, "6(5)", seen)
    if not deal.held:
        round_ = replace(round_, suspended=None)
    known = {seat for seat in deal.players if deal.chips.get(seat, 0) >= (2 * deal.amount(seat, "ante") or 1)}
    swept = tuple(sorted({*deal.raised, *deal.doubted} - known))
    return replace(deal, round=round_, told={}, shown="", raised=(), folded=(), doubted=(), exposed=(), swept=swept)


def _unknowable(deal: Deal, told: Hands) -> bool:
    """Before the first decision nobody knows the hands that were dealt; but a shoe may tell all its cards but one."""
    if not told or not deal.out or deal.decided:
        return False
    cards = {card for hand in told.values() for card in hand}
    whole = len(deal.cards) >= CARDS * deal.hands - 1
    return not (whole and cards.issuperset(deal.cards))


def _of_the_next(deal: Deal, event: Event) -> bool:
    """After a second opening: a bet that can be one; the bell or a card, where no card of this round is due."""
    match event:
        case WagerPlaced(seat=seat, bet="ante" | "jackpot") | SeatActed(seat=seat, action="ante", hand=1):
            return seat in SEATS
        case BetsClosed() | CardDrawn() | HandDispensed() | CardUnreadable():
            return not deal.dealing
        case _:
            return False


def _card_seen(card: str, hand: str) -> Reason:
    """A card was seen, one of `hand`: either may not be known."""
    if hand:
        return say("card_seen", card=card, hand=hand) if card else say("a_card_seen", hand=hand)
    return say("card_seen_no_hand", card=card) if card else say("a_card_seen_no_hand")


def _contradiction(deal: Deal) -> Reason | None:
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


def _visible(deal: Deal) -> dict[str, Any]:
    """The cards that all can see before the showdown."""
    exposed = tuple({"hand": hand, "card": card} for hand, card in deal.exposed)
    return {"open": deal.open_cards(), **({"exposed": exposed} if exposed else {})}


@lru_cache(maxsize=256)
def _order(article: str) -> tuple[int, ...]:
    return tuple(int(number) for number in article.replace(")", "").split("("))


def _announced(opens: bool, dealer: int | None, fates: dict[str, str], opened: dict[str, int]) -> dict[str, str]:
    """What the croupier calls."""
    if dealer is None:
        return FOLDED
    if not opens:
        return NOT_OPENED
    words = {}
    for place, language in enumerate(VOID_WORDS):
        dealers, wins, loses, mark = SHOWDOWN[language]
        said = [dealers.format(CALLS[combination(dealer)][place])]
        for hand, fate in sorted(fates.items()):
            if fate == "wins":
                said.append(wins.format(hand[-1], CALLS[combination(opened[hand])][place]))
            elif fate == "loses":
                said.append(loses.format(hand[-1]))
        words[language] = mark.join(said)
    return words
