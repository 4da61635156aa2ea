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
- 6(2): the hands that play are those with an ante, reported as a wager or as `seat.acted` ante; where none is reported,
  the open seats. An ante from the console and from the sensor is one; after two amounts of one ante the amounts are
  unknown.
- 6(3): a bet on the jackpot is taken until the first card, also after the bell.
- 6(5): a decision is `seat.acted` raise or fold, or a wager on `raise` that has reached twice the ante. The opposite
  decision puts the seat in doubt until a third report. All seats that play, and no others, decide before the result.
- 6(5): a dealt hand is unknown before the first decision: hands entered then are entered again after the decisions,
  except hands of exactly the cards that the shoe dealt, of which one may be lost.
- 6(5), 6(8): where a device reported the cards of the last deal, hands, a decision or an exposed card before the first
  card belong to the last round: they are noted and not used. Two of them show that the device does not report: their
  decisions count, and the round waits for the hands. At other tables they count until a card comes; then they are
  dropped, and an existing result is in doubt.
- 6(8): with a shuffler `deal.corrected` gives the hands at the showdown, at once or one after the other: the dealer's
  and, where it opens, every raised one; otherwise those with a bet on the jackpot, after a loss all of them.
- 7(1): a shoe reports the seats in ascending order, then the dealer, five times. The dealer's last card is shown when
  it is reported face up or exposed, otherwise from the first decision on; `face` "up" on another card is an exposed
  card (11(2)).
- 7(2): the open card is the dealer's top card in Portuguese, the fifth in Chinese: the reported one counts.
- 8(2): the printed "royal flush" is the straight flush.
- 9(1): the Chinese text requires one ace and one king; "or better" follows from 9(3).
- 9(2): a result shows the hands that are opened: not the folded ones, nor those left closed without a jackpot.
- 9(5)(7)-(9): the maximum, "por jogo", is that of the prize of one raise.
- 10(1): a folded hand has lost the jackpot, or by option keeps it, since the text requires the ante only.
- 10(2): the jackpot is paid whatever the dealer holds.
- 10(3), 10(8): the ledger keeps the fixed amounts and the pool.
- 10(5): royal flushes share one prize, all others have their own.
- 10(6), 10(7): a straight flush takes its tenth of the pool as it was before the round ("each"), a royal flush all that
  straight flushes leave.
- 11(1), 11(4): of a void round antes and raises come back; jackpot bets carry over to the next round, are not laid
  again there, cannot be taken back, and do not count without an ante (10(1)).
- 11(1): a packet of another number than five, and a second exposed card, make the round void.
- 11(1), 11(3): for a packet or card beyond the hands the dealer decides: a void, or a hand without a bet, named without
  cards (`{"seat_5": []}`), which is then dead.
- 11(4): a jam or failure of the shuffler counts between the bell and the last packet; where that is uncertain, the
  round waits.

Doubts, of which the text says nothing:

- A card that could not be read, came twice or is one too many, and events that may be missing, suspend the round until
  the hands are entered. After a loss the amounts may be wrong, too: the round is resolved without settlements. Before
  the bell a loss costs the amounts only, unless a card comes before the bell does.
- A late event counts at its time (`rules/engine/refold.py`); one that cannot be placed there is noted and counts as a
  loss.
- After a loss a seat without a known ante may have laid one where it has a hand, a decision or a
  jackpot bet; the same holds where one packet more was given out and the seat decides. The round waits until a person
  states that the seat plays (`seat.acted` ante) or has no bet (its hand without cards).
- 6(8): a loss after the bell may include the next round's opening and deal, if enough events are missing since the
  first decision, or a bet, the bell or a card of the next round comes. Then hands resolve the round that they name, or
  whose cards the shoe dealt; other hands may be the next round's, and the round waits.
- A void, hands, a payment or an exposed card that name a round apply to it alone.
- A second opening of the bets voids a doubtful round; a sound one waits. Entered hands let it go on; a bet, or after
  the last card the bell or another card, belongs to the next round and voids it. Before the first card the opening
  makes the amounts unknown.
- A result can be corrected or declared void until the next round begins; before it is paid, another decision puts it in
  doubt. If it is paid in doubt, the first result stands; a late payment settles nothing.
- Where a seat raised and folded, or raised too early, and its chips were not reported, a void has no settlements.
"""

from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from rules.engine.cloth import lying
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.rounds import Round, terms
from rules.engine.ruleset import Bet, Win, option
from rules.games.poker import CATEGORIES, CATEGORY, HEIGHT, leading, strength
from rules.games.stud_poker import Deal, Rulings
from rules.games.stud_poker_game import (
    CHINESE,
    ENGLISH,
    VALUE_BITS,
    Articles,
    Prize,
    Raise,
    Said,
    StudPokerGame,
    Text,
)
from rules.needs import Needs, stud

TEXT: Final = "Despacho 61/2004"

PAYTABLE: Final = (
    Bet("ante", "1", "arts. 5(1), 6(2), 9(2), 9(5)", "the hand beats the dealer's, or the dealer does not open"),
    Bet("jackpot", "pool, share or fixed", "arts. 5(2), 6(3), 10", "a flush or better, beside an ante"),
    Bet("raise", "1 to 100", "arts. 5(3), 6(6), 9(5)", "twice the ante; comes back where the dealer does not open"),
)
FAMILIES: Final = tuple(bet.id for bet in PAYTABLE)

# Art. 9(5): the prizes of a raise; that of the royal flush is the house's choice.
RAISE_PAYS: Final = {
    "high_card": Raise(1, "9(5)(1)"),
    "one_pair": Raise(1, "9(5)(1)"),
    "two_pairs": Raise(2, "9(5)(2)"),
    "three_of_a_kind": Raise(3, "9(5)(3)"),
    "straight": Raise(4, "9(5)(4)"),
    "flush": Raise(5, "9(5)(5)"),
    "full_house": Raise(7, "9(5)(6)"),
    "four_of_a_kind": Raise(20, "9(5)(7)"),
    "straight_flush": Raise(50, "9(5)(8)"),
    "royal_flush": Raise(50, "9(5)(9)"),
}
CAPPED: Final = frozenset(("four_of_a_kind", "straight_flush", "royal_flush"))

# Art. 10(2), (5), (7).
JACKPOT: Final = {
    "royal_flush": Prize("larger_of_fixed_and_share", "10(2)(1)", "1", after="straight_flush", shared=True),
    "straight_flush": Prize("larger_of_fixed_and_share", "10(2)(2)", "1/10"),
    "four_of_a_kind": Prize("fixed", "10(2)(3)"),
    "full_house": Prize("fixed", "10(2)(4)"),
    "flush": Prize("fixed", "10(2)(5)"),
}

# ---- arts. 4, 8: the order of hands

SUIT_ORDER: Final = {"S": 3, "H": 2, "C": 1, "D": 0}
# Art. 8(3), (4), (7): the other cards count for nothing.
_ALL_RANKS: Final = 0xFFFFFF
_COUNTED: Final = {CATEGORY[name]: 0xFF0000 for name in ("four_of_a_kind", "full_house", "three_of_a_kind")}


def value(cards: tuple[str, ...]) -> int:
    """A hand by art. 8: category, the ranks it counts, and last the suit of the card or pair that leads it."""
    found = strength(cards)
    lead = leading(found)
    suit = max([SUIT_ORDER[card[1]] for card in cards if HEIGHT[card[0]] == lead])
    return (found & _COUNTED.get(found >> 20, _ALL_RANKS)) << VALUE_BITS | suit


# ---- words

VOID_WORDS: Final = {"pt": "Jogada inválida", "zh-Hant": "此局無效", "en": "Void"}
WORDS: Final = {
    "pt": Said(
        dealer="Croupier: {}",
        wins="lugar {} ganha com {}",
        loses="lugar {} perde",
        mark="; ",
        folded="Todos desistem",
        not_opened="O croupier não abre: as apostas iniciais são pagas, as adicionais devolvidas",
        calls={
            "royal_flush": "naipe real",
            "straight_flush": "sequência de naipe",
            "four_of_a_kind": "quatro cartas iguais",
            "full_house": "trio-par",
            "flush": "naipe",
            "straight": "sequência",
            "three_of_a_kind": "três cartas iguais",
            "two_pairs": "dois pares",
            "one_pair": "par",
            "high_card": "cinco cartas diferentes",
        },
    ),
    "zh-Hant": CHINESE,
    "en": ENGLISH,
}

# The article of each irregularity, of a void, of a bet, and of the dealing device.
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

RULINGS: Final = Rulings(TEXT, ARTICLES)
STUD_POKER: Final = Text(
    TEXT,
    RAISE_PAYS,
    JACKPOT,
    Articles(
        from_shoe="7(1)",
        from_shuffler="7(2)",
        exposed="11(2)",
        folded="6(7)",
        opening="9(1)",
        opens="9(3)",
        not_opened="9(2)",
        loses="9(4)",
        equal="4(1)",
        hands={name: f"8({10 - place})" for place, name in enumerate(CATEGORIES)},
    ),
    WORDS,
)


class StudPokerOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
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


class StudPoker(StudPokerGame):
    """The ruleset."""

    id: ClassVar[str] = "macau.stud-poker"
    title: ClassVar[str] = "Stud poker, Macau"
    law: ClassVar[str] = TEXT
    Options: ClassVar[type[StudPokerOptions]] = StudPokerOptions
    needs: ClassVar[Needs] = stud("art. 6(2)", "arts. 3, 7", "art. 6(8)", "art. 6(5)")
    rulings: ClassVar[Rulings] = RULINGS
    text: ClassVar[Text] = STUD_POKER
    article_void: ClassVar[str] = ARTICLES["void"]
    article_bets: ClassVar[str] = ARTICLES["bet"]

    def __init__(self, options: StudPokerOptions) -> None:
        """Work out, once, what is offered."""
        self.options = options
        self.terms = terms(self.id, "2004", options, VOID_WORDS)
        self.paid_bets = tuple(bet for bet in PAYTABLE if bet.id in (options.bets_offered or FAMILIES))
        self.offered = frozenset(bet.id for bet in self.paid_bets)
        self.jackpot = "jackpot" in self.offered
        self.jackpot_pays = JACKPOT
        self.keeps_jackpot = options.folded_jackpot == "kept"
        self.dealing = options.dealing

    def value(self, cards: tuple[str, ...]) -> int:
        """Art. 8."""
        return value(cards)

    def largest_raise(self) -> int:
        """Art. 9(5)(9)."""
        return self.options.royal_flush_pays

    def raise_pays(self, deal: Deal, round_: Round, seat: int, name: str) -> Win:
        """Art. 9(5); the three highest combinations pay no more than the house's maximum."""
        pays = self.options.royal_flush_pays if name == "royal_flush" else RAISE_PAYS[name].pays
        most = self.options.maximum_prize
        stake = 2 * lying(round_, seat, "ante") or deal.chips.get(seat, 0)
        if most and name in CAPPED and "amounts" not in deal.doubts and pays * stake > most:
            return Win("raise", str(Fraction(most, stake)), str(pays), seat=seat)
        return Win("raise", str(pays), seat=seat)
