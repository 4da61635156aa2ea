"""Macau stud poker: Despacho Regulamentar Externo 61/2004, in Portuguese and in Chinese.

The flow: each hand lays an ante (6(2)) and may bet on the progressive jackpot before the first card (6(3)). Every hand
with an ante and then the dealer receives five cards face down, one of the dealer's face up: one at a time from a shoe
(7(1)), five at a time from a shuffler (7(2)). Each player looks, and raises by exactly twice the ante (6(5)-(6)) or
loses it (6(7)). The dealer opens with an ace and a king or better (9(1)): the higher hand wins, and a raise is paid by
its combination (9(3)-(5)); without them the antes are paid and the raises come back (9(2)).

Readings, each with its article:

- 2(1): seats are 1 to 7, 1 being at the dealer's left.
- 4(1), 8: suits break the last tie: of the highest card, or of the (higher) pair; four, full house and three go by
  their rank alone, so no two hands are equal.
- 4(3): the highest card of 5 4 3 2 A is the 5.
- 6(2): the hands that play are those with an ante, told as a wager or as `seat.acted` ante; where none is told, the
  open seats. An ante told by the console and by the sensor is one; two amounts of one ante leave the amounts unknown.
- 6(3): a bet on the jackpot is taken until the first card, also after the bell.
- 6(5): a decision is `seat.acted` raise or fold, or a wager on `raise` that has reached twice the ante. The other one
  puts the seat in doubt until it is told a third time. All seats that play, and no others, decide before the result.
- 6(5): nobody knows a dealt hand before the first decision: hands told then are told again after the decisions, but for
  hands of the very cards that the shoe gave, of which one may be lost.
- 6(5), 6(8): where the cards of the last deal were told, hands, a decision or an exposed card before the first card are
  the last round's: noted and not used; two of them say that the device is dumb, and the round waits for the hands. At
  other tables they count until a card comes; then they are dropped, and a result that was given is in doubt.
- 6(8): of a shuffler's cards `deal.corrected` tells the hands at the showdown, at once or one after the other: the
  dealer's and, where it opens, every raised one; else those with a bet on the jackpot, after a loss every one.
- 7(1): a shoe tells seats ascending, then the dealer, five times. The dealer's last card is shown when it is told face
  up or exposed, else from the first decision on; `face` "up" on another card is a card exposed (11(2)).
- 7(2): the card shown is the dealer's top card in Portuguese, the fifth in Chinese: it is the one that is told.
- 8(2): the printed "royal flush" is the straight flush.
- 9(1): the Chinese asks for one ace and one king; "or better" follows from 9(3).
- 9(2): a result shows the hands that are opened: not the folded ones, nor those left closed without a jackpot.
- 9(5)(7)-(9): the maximum, "por jogo", is that of the prize of one raise.
- 10(1): a folded hand has lost the jackpot, or by option keeps it, since the text asks for the ante only.
- 10(2): the jackpot is paid whatever the dealer holds.
- 10(3), 10(8): the fixed amounts and the pool itself are a ledger's.
- 10(5): royal flushes share one prize, all others have their own.
- 10(6), 10(7): a straight flush takes its tenth of the pool as it was before the round ("each"), a royal flush all that
  straight flushes leave.
- 11(1), 11(4): of a void round antes and raises come back; jackpot bets are those of the next round, are not laid twice
  there, cannot be taken back, and without an ante are none (10(1)).
- 11(1): a packet of another number than five, and a second exposed card, make the round void.
- 11(1), 11(3): of a packet or card beyond the hands the dealer says which it is: a void, or a hand without a bet, named
  without cards (`{"seat_5": []}`), which is dead then.
- 11(4): a shuffler that jams or fails counts between the bell and the last packet; where that is not sure, the round
  waits.

What leaves a doubt, of which the text says nothing:

- A card that could not be read, came twice or is one too many, and events that may be missing, suspend the round until
  the hands are told. After a loss the amounts may be wrong too: the round is resolved without settlements. Before the
  bell a loss costs the amounts only, unless a card comes before the bell does.
- After a loss or a late event a seat without a known ante may have laid one where it has a hand, a decision or a
  jackpot bet; so it may where a packet more was given out and the seat decides. The round waits until the seat is said
  to play (`seat.acted` ante) or to have no bet (its hand without cards).
- 6(8): a loss after the first decision may hold the next round's opening and deal too. Then hands resolve the round
  that they name, or whose cards the shoe gave; others may be the next round's, and the round waits.
- A void, hands, a payment or an exposed card that name a round are of no other.
- A second opening of the bets voids what is in doubt; what is sound waits. The hands let it go on; a bet, or after the
  last card the bell or another card, are the next round's, and void it. Before the first card it costs the amounts.
- A result can be corrected or declared void until the next round begins; before it is paid, another decision puts it in
  doubt. Paid in doubt, the first result stands; a payment that was told late settles nothing.
- Where a seat raised and folded, or raised too early, and its chips were not told, a void has no settlements.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from rules.engine.money import Rounding
from rules.engine.rounds import resolved, terms
from rules.engine.ruleset import Award, Bet, Push, Result, View, Win, option
from rules.games.poker import CATEGORIES, CATEGORY, HEIGHT, leading, packed, strength
from rules.games.stud_poker import DEALER, Compared, Deal, Hands, compare, stakes, visible
from rules.games.stud_poker_round import StudPokerRounds, StudPokerState

TEXT: Final = "Despacho 61/2004"

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

# The article of each irregularity, and of a void, a bet and what the cards are dealt from.
ARTICLES: Final = {
    "wrong_number_of_decks": "1(1)",
    "no_such_seat": "2(1)",
    "by_shuffler": "3(1)",
    "from_shoe": "3(2)",
    "bet": "5",
    "one_hand_only": "6(1)",
    "bell_without_round": "6(2)",
    "bet_while_waiting": "6(2)",
    "bet_without_round": "6(2)",
    "decision_without_ante": "6(2)",
    "late_bet": "6(2)",
    "no_ante": "6(2)",
    "bets_reopened": "6(3)",
    "late_jackpot": "6(3)",
    "decision_before_deal": "6(5)",
    "decision_without_round": "6(5)",
    "no_such_decision": "6(5)",
    "raise_stands": "6(5)",
    "raise_not_double": "6(6)",
    "hands_before_deal": "6(8)",
    "round_unknown": "6(8)",
    "hands_without_round": "6(8)",
    "card_without_round": "7(1)",
    "unreadable_without_round": "7(1)",
    "packet_without_round": "7(2)",
    "jackpot_without_ante": "10(1)",
    "bet_stands": "11(1)",
    "second_card_exposed": "11(1)",
    "void": "11(1)",
    "void_without_round": "11(1)",
    "wrong_number_of_cards": "11(1)",
    "card_exposed": "11(2)",
    "hand_without_bet": "11(3)",
    "shuffler_failed": "11(4)",
}


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


class Showdown(Struct, frozen=True):
    """What the hands decide."""

    outcome: dict[str, Any]
    winners: tuple[Win, ...]
    pushes: tuple[Push, ...]
    awards: tuple[Award, ...]
    announcements: dict[str, str]
    law: tuple[str, ...]


class StudPoker(StudPokerRounds):
    """The ruleset."""

    id: ClassVar[str] = "macau.stud-poker"
    title: ClassVar[str] = "Stud poker, Macau"
    law: ClassVar[str] = "Despacho 61/2004"
    Options: ClassVar[type[StudPokerOptions]] = StudPokerOptions
    State: ClassVar[type[StudPokerState]] = StudPokerState
    cite: ClassVar[str] = TEXT
    articles: ClassVar[dict[str, str]] = ARTICLES

    def __init__(self, options: StudPokerOptions) -> None:
        """Work out, once, what a raise pays."""
        self.options = options
        self.terms = terms(self.id, "2004", options, VOID_WORDS)
        self._bets = tuple(bet for bet in PAYTABLE if bet.id in (options.bets_offered or FAMILIES))
        self.offered = frozenset(bet.id for bet in self._bets)
        self.jackpot = "jackpot" in self.offered
        self.dealing = options.dealing
        self._pays = {name: pays for name, (pays, _) in RAISE_PAYS.items()} | {"royal_flush": options.royal_flush_pays}

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of art. 5."""
        return self._bets

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
            **visible(deal),
        }
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        undecided = tuple(seat for seat in deal.players if seat not in deal.raised and seat not in deal.folded)
        if deal.dealing or (undecided and not deal.begun):
            return View(round_.id, "dealing", detail)
        if undecided:
            return View(round_.id, "deciding", {**detail, "undecided": undecided})
        return View(round_.id, "showdown", {**detail, "missing": self.missing(deal, deal.known())})

    def _bettors(self, deal: Deal) -> tuple[int, ...] | None:
        """The seats with a bet on the jackpot; None where the bets are not told, or not surely all of them."""
        if not deal.round.wagers or deal.unsure or deal.uncarried:
            return None
        return tuple(one.seat for one in deal.round.wagers if one.bet == "jackpot")

    def missing(self, deal: Deal, hands: Hands) -> tuple[str, ...]:
        """The hands that must be told before the round can end."""
        needed: list[str] = []
        # After a loss anybody may have bet on the jackpot. Where no bet is ever told, a hand that has won it is told.
        anybody = self.jackpot and (deal.unsure or deal.uncarried)
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

    def resolve(self, deal: Deal, hands: Hands) -> Result:
        """Without settlements where the amounts are not known."""
        shown = self._showdown(deal, hands)
        laid = () if deal.unsure else stakes(deal)
        if deal.uncarried:
            laid = tuple(one for one in laid if one.bet != "jackpot")
        return resolved(
            deal.round if laid == deal.round.wagers else replace(deal.round, wagers=laid),
            self.terms,
            outcome=shown.outcome,
            winners=shown.winners,
            pushes=shown.pushes,
            jackpots=shown.awards,
            announcements=shown.announcements,
            law=shown.law,
        )

    # ---- art. 9: what wins

    def _showdown(self, deal: Deal, hands: Hands) -> Showdown:
        """Art. 9: what each seat wins."""
        end = compare(deal, hands, value, OPENING)
        winners: list[Win] = []
        pushes: list[Push] = []
        for seat in deal.raised:
            hand = f"seat_{seat}"
            if end.fates[hand] == "not_opened":
                winners.append(Win("ante", "1", seat=seat))
                pushes.append(Push("raise", seat))
            elif end.fates[hand] == "wins":
                winners += (Win("ante", "1", seat=seat), self._raise_wins(deal, seat, combination(end.values[hand])))
        awards, won = self._awards(deal, hands)
        articles = {*_articles(deal, end), *(f"10(2)({JACKPOT[award.combination][3]})" for award in awards)}
        opened = end.values | {hand: value(hands[hand]) for hand in won if hand not in end.values}
        outcome = {
            "opens": end.opens,
            "hands": {hand: hands[hand] for hand in opened},
            "combinations": {hand: combination(found) for hand, found in opened.items()},
            "seats": dict(sorted(end.fates.items())),
        }
        law = tuple(f"{TEXT} art. {article}" for article in sorted(articles, key=_order))
        words = _announced(end.opens, end.values.get(DEALER), end.fates, opened)
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

        From the dealer's left (10(4)), but royal flushes after the straight flushes (10(7)). Where the bets on the
        jackpot are not told, one award for each combination, among seats that are not named.
        """
        if not self.jackpot:
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
        awards = []
        for name, among in _shares(held, seated=bettors is not None):
            pays, share, after_, item = JACKPOT[name]
            awards.append(Award(POOL, name, pays, f"{TEXT} art. 10(2)({item})", share, among, after_))
        known = () if bettors is None else tuple(f"seat_{seat}" for seat, _ in held)
        return tuple(awards), known


def _shares(held: list[tuple[int, str]], *, seated: bool) -> list[tuple[str, tuple[int, ...]]]:
    """The prizes of the jackpot with the seats that share each, in the order of payment."""
    if not seated:
        return [(name, ()) for name in dict.fromkeys(name for _, name in held)]
    royals = tuple(seat for seat, name in held if name == "royal_flush")
    shares = [(name, royals if name == "royal_flush" else (seat,)) for seat, name in held if seat not in royals[1:]]
    names = [name for name, _ in shares]
    if {"royal_flush", "straight_flush"} <= set(names):
        at = names.index("royal_flush")
        after = len(shares) - 1 - names[::-1].index("straight_flush")
        if after > at:
            shares.insert(after, shares.pop(at))
    return shares


def _articles(deal: Deal, end: Compared) -> set[str]:
    """The articles that a showdown rests on."""
    found = {"7(2)"} if deal.packets else {"7(1)"} if deal.cards else set()
    if deal.exposed:
        found.add("11(2)")
    if deal.folded:
        found.add("6(7)")
    if not deal.raised:
        return found
    dealers = end.values[DEALER]
    found |= {"9(1)", "9(3)" if end.opens else "9(2)", f"8({ITEM_OF_8[combination(dealers)]})"}
    for hand, mine in end.values.items():
        if hand == DEALER:
            continue
        name = combination(mine)
        found |= {f"8({ITEM_OF_8[name]})", f"9(5)({RAISE_PAYS[name][1]})" if end.fates[hand] == "wins" else "9(4)"}
        if mine >> 2 == dealers >> 2:
            found.add("4(1)")
    return found


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
