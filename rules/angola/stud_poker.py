"""Stud poker ("póquer sem descarte"), Angola: Decreto Executivo 261/22, article 9.

One card is burnt (9(19)). Each hand lays an ante (9(20)) and may bet on the jackpot before the bell (9(21)). Hands
with an ante and the bank get five cards face down, the bank's last face up: one at a time (9(22)), or five at a time by
a shuffler (9(23)). Each player raises by exactly twice the ante ("vou") or loses it ("passo", 9(25)). The bank plays
with an ace and a king or better: the higher hand wins and equal hands push (9(8), 9(27)-(29)); else the antes are paid
and the raises come back (9(26)).

Readings, each with its article:

- 9(7)(j): any five cards hold three of one colour, so suit is meant: of two hands of equal odd cards the one with three
  or four of one suit wins; where both have or neither has, they push. Suits count nowhere else.
- 9(8), 9(29): equal hands push, ante and raise. "n.º 9" of 9(29) means 8.
- 9(9)(d), (g): the text names one card only; all cards are compared, as in (f), or by option `letter` that card alone.
- 9(9)(c): "sequência de qualquer tipo": the ace of A 2 3 4 5 is the lowest card of a straight flush, too.
- 9(11), 9(14): royal flushes share what is left, straight flushes share one tenth; each combination that the house adds
  is paid a fixed amount. A ledger keeps amounts and pool; results name the winners, the smallest prize first.
- 9(13), 9(24): winning cards stay uncovered, a player who passed may not uncover: a folded hand has lost the jackpot.
- 9(14)(d), 9(23)(c): rules of the game at large that are printed under a wrong number.
- 9(14)(d), 9(15): a bet outside the limits is noted and stands: a refused ante would leave its hand out of the deal.
  A terminal lays no chips: its bet is refused.
- 9(16): the maximum is that of all prizes of a round without the jackpot's; what exceeds it lowers all in proportion,
  rounded down.
- 9(19), 9(23): the shuffler replaces the cut, not the burnt card: it gives it out as a packet of one. By option the
  device does not count this card.
- 9(22): the bank's last card is the open one: the fifth from the shuffler, which the dealer reports.
- 9(23)(c): a raise reported after a fold is noted and not taken; while the supervisor's key is on, it reverses the
  fold, which is noted too. A fold reported after a raise is in doubt until the fold, or with the key the raise, is
  reported again.
- 9(24), 9(31)(b): a player's card that is seen after the deal and before all have decided: the hand is lost, with all
  its bets. A raise of this hand that is reported afterwards is in doubt until it is reported again.
- 9(30): a player's card that is seen during the deal makes the round void. So does a card of the bank other than the
  first one seen, until all have decided. Where no device reports the deal, a person decides between 9(24) and 9(30). An
  open card that is reported after another one was seen is in doubt.
- 9(30): a packet of another number than five makes the round void, too, and so does a hand dealt without a bet, once a
  person has named it: its ante may be late. All bets come back, the jackpot's too.
- 9(30): a shuffler that jams or fails is no error of the deal: the round waits until the deal goes on or is declared
  void.

- 9(34): an open seat that lays no ante in three rounds in a row is noted once. People see whether a place is free, and
  whether he is asked to leave.
- 9(36): after a damaged card was reported, a round that begins before another deck is reported (`shoe.started`,
  `cards.loaded`) is irregular.

Doubts, losses, late events: as in `rules/macau/stud_poker.py`. Article 9 has no duty by the clock.
"""

from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from protocols.contract.events import (
    CardDamaged,
    CardsLoaded,
    ShoeStarted,
)
from protocols.contract.reasons import say
from rules.engine.duties import Duties, Replacement
from rules.engine.facts import Note
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding, odds
from rules.engine.rounds import Round, terms
from rules.engine.ruleset import Bet, Win, option
from rules.games.poker import CATEGORIES, CATEGORY, strength
from rules.games.stud_poker import Deal, Rulings, stakes
from rules.games.stud_poker_game import CHINESE, ENGLISH, VALUE_BITS, Articles, Prize, Raise, Said, StudPokerGame, Text
from rules.games.stud_poker_turns import Turn
from rules.needs import Needs, stud

TEXT: Final = "Decreto Executivo 261/22"

PAYTABLE: Final = (
    Bet("ante", "1", "arts. 9(20), 9(26), 9(28)", "the hand beats the bank's, or the bank does not play"),
    Bet("jackpot", "pool, share or fixed", "arts. 9(3), 9(11), 9(14)", "a combination of the house, beside an ante"),
    Bet("raise", "1 to 100", "arts. 9(7), 9(25)", "twice the ante; comes back where the bank does not play"),
)

# Art. 9(7): the items, from the highest combination down, and what a raise is paid.
ITEMS: Final = {name: f"9(7)({letter})" for name, letter in zip(reversed(CATEGORIES), "abcdefghij", strict=True)}
PAYS: Final = (1, 1, 2, 3, 4, 5, 7, 20, 50, 100)
RAISE_PAYS: Final = {name: Raise(pays, ITEMS[name]) for name, pays in zip(CATEGORIES, PAYS, strict=True)}
SAME_HANDS: Final = {
    "four_of_a_kind": "9(9)(a)",
    "full_house": "9(9)(b)",
    **dict.fromkeys(("straight", "straight_flush", "royal_flush"), "9(9)(c)"),
    "flush": "9(9)(d)",
    "three_of_a_kind": "9(9)(e)",
    "two_pairs": "9(9)(f)",
    "one_pair": "9(9)(g)",
    "high_card": "9(7)(j)",
}
JACKPOT: Final = {
    "royal_flush": Prize("pool", "9(14)(a)", after="straight_flush", shared=True),
    "straight_flush": Prize("pool", "9(14)(c)", "1/10", shared=True),
    **{name: Prize("fixed", "9(11)") for name in ("four_of_a_kind", "full_house", "flush", "straight")},
}
IDLE_ROUNDS: Final = 3
"""Art. 9(34): after so many rounds without a bet a player may be asked to leave."""
SEED_RATIO: Final = 10_000
ANTE_RATIO: Final = 20
_HIGH_CARD: Final = CATEGORY["high_card"]
# Art. 9(9)(d), (g) by the letter: the highest card of a flush; beside a pair the highest.
_BY_THE_LETTER: Final = {CATEGORY["flush"]: 0xFF0000, CATEGORY["one_pair"]: 0xFFFF00}


def value(cards: tuple[str, ...], *, letter: bool = False) -> int:
    """A hand by art. 9(7), 9(9); the last bit: odd cards of which three are of one suit."""
    found = strength(cards)
    if found >> 20 == _HIGH_CARD:
        suits = "".join([card[1] for card in cards])
        return found << VALUE_BITS | (max(map(suits.count, "SHCD")) >= 3)
    return (found & _BY_THE_LETTER.get(found >> 20, 0xFFFFFF) if letter else found) << VALUE_BITS


# ---- words

VOID_WORDS: Final = {"pt": "Jogada anulada", "zh-Hant": "此局無效", "en": "Void"}
_PT: Final = "cartas maiores,um par,dois pares,trio,sequência,cor,full,póquer,sequência de cor,sequência real de cor"
WORDS: Final = {
    "pt": Said(
        dealer="Banca: {}",
        wins="lugar {} ganha com {}",
        loses="lugar {} perde",
        ties="lugar {} empata",
        mark="; ",
        folded="Todos passam",
        not_opened="A banca não vai a jogo: as apostas iniciais são pagas, as segundas apostas devolvidas",
        calls=dict(zip(CATEGORIES, _PT.split(","), strict=True)),
    ),
    "zh-Hant": CHINESE,
    "en": ENGLISH,
}

# The article of each irregularity, of a void, of a bet, and of the dealing device.
ARTICLES: Final = {
    "wrong_number_of_decks": "9(1)",
    **dict.fromkeys(("no_such_seat", "one_hand_only"), "9(6)"),
    "jackpot_limits": "9(10)",
    "ante_limits": "9(14)(d)",
    **dict.fromkeys(("by_shuffler", "from_shoe", "shuffler_failed"), "9(18)"),
    "not_burnt": "9(19)",
    **dict.fromkeys(("bet", "bet_without_round", "decision_without_ante", "no_ante"), "9(20)"),
    "jackpot_without_ante": "9(21)",
    **dict.fromkeys(("bell_without_round", "bet_while_waiting", "late_bet", "late_jackpot", "bets_reopened"), "9(22)"),
    **dict.fromkeys(("card_without_round", "unreadable_without_round"), "9(22)"),
    "packet_without_round": "9(23)(b)",
    **dict.fromkeys(("decision_before_deal", "decision_without_round", "no_such_decision"), "9(23)(c)"),
    **dict.fromkeys(("fold_is_final", "fold_reversed"), "9(23)(c)"),
    "cards_shown": "9(24)",
    **dict.fromkeys(("raise_stands", "raise_not_double"), "9(25)"),
    **dict.fromkeys(("hands_before_deal", "hands_without_round", "round_unknown"), "9(26)"),
    **dict.fromkeys(("void", "void_without_round", "wrong_number_of_cards"), "9(30)"),
    **dict.fromkeys(("card_exposed", "hand_without_bet"), "9(30)"),
}
RULINGS: Final = Rulings(
    TEXT,
    ARTICLES,
    jackpot_until="bell",
    void_keeps_jackpot=False,
    failure_voids=False,
    error_voids=True,
    fold_final=True,
)
STUD_POKER: Final = Text(
    TEXT,
    RAISE_PAYS,
    JACKPOT,
    Articles(
        from_shoe="9(22)",
        from_shuffler="9(23)(b)",
        exposed="9(30)",
        folded="9(25)",
        opening="9(26)",
        opens="9(27)",
        not_opened="9(26)",
        wins=("9(8)", "9(28)"),
        loses="9(29)",
        equal="9(7)(j)",
        hands=ITEMS,
        same_hands=SAME_HANDS,
        ties=("9(8)", "9(29)"),
        forfeited="9(24)",
    ),
    WORDS,
    smallest_first=True,
)


DUTIES: Final[Duties] = (
    Replacement("deck_replacement", "Decreto Executivo 261/22 art. 9(36)", (CardDamaged,), (ShoeStarted, CardsLoaded)),
)


class StudPokerOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house, and the readings that are possible."""

    dealing: Annotated[
        Literal["either", "shoe", "shuffler"], option("arts. 9(18), 9(22), 9(23)", "what the cards are dealt from")
    ] = "either"
    burn: Annotated[
        Literal["counted", "unseen"], option("art. 9(19)", "whether the device counts the card that is burnt")
    ] = "counted"
    tie_break: Annotated[
        Literal["full", "letter"], option("art. 9(9)(d), (g)", "all cards of equal flushes and pairs, or the one named")
    ] = "full"
    minimum: Annotated[int, Meta(ge=0), option("art. 9(14)(d)", "minor units, the least ante; 0: no limit")] = 0
    maximum: Annotated[int, Meta(ge=0), option("arts. 9(14)(d), 9(15)", "minor units, the most; 0: no limit")] = 0
    maximum_prizes: Annotated[
        int, Meta(ge=0), option("art. 9(16)", "minor units, the most that the bank pays in a round; 0: no limit")
    ] = 0
    jackpot: Annotated[
        Literal["automatic", "manual", "none"], option("arts. 9(3), 9(5)", "how its bets are marked, if it is offered")
    ] = "automatic"
    jackpot_pays: Annotated[
        tuple[str, ...], option("art. 9(11)", f"combinations paid, of {' '.join(JACKPOT)}; empty: flush and better")
    ] = ()
    jackpot_bet: Annotated[int, Meta(ge=0), option("art. 9(10)", "minor units, the bet on it; 0: not checked")] = 0
    jackpot_seed: Annotated[int, Meta(ge=0), option("art. 9(12)", "minor units that it starts with; 0: not given")] = 0
    smallest_chip: Annotated[int, Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if self.minimum and not self.minimum <= self.maximum <= ANTE_RATIO * self.minimum:
            raise ValueError(f"maximum: art. 9(15): from the minimum to {ANTE_RATIO} times the minimum")
        if self.maximum and not self.minimum:
            raise ValueError("minimum: art. 9(15): the maximum is measured by it")
        unknown = [name for name in self.jackpot_pays if name not in JACKPOT]
        if unknown:
            raise ValueError(f"jackpot_pays: art. 9(11): no combination {unknown[0]!r}; known: {', '.join(JACKPOT)}")
        if self.jackpot_pays and not {"royal_flush", "straight_flush"} <= {*self.jackpot_pays}:
            raise ValueError("jackpot_pays: art. 9(14)(a), (c): royal_flush and straight_flush are paid")
        if self.jackpot_seed and self.jackpot_seed < SEED_RATIO * max(self.jackpot_bet, 1):
            raise ValueError(f"jackpot_seed: art. 9(12): at least {SEED_RATIO} times jackpot_bet")
        if self.jackpot == "none" and (self.jackpot_pays or self.jackpot_bet or self.jackpot_seed):
            raise ValueError("jackpot: art. 9(3): none has no jackpot_pays, jackpot_bet or jackpot_seed")


class StudPoker(StudPokerGame):
    """The ruleset."""

    id: ClassVar[str] = "angola.stud-poker"
    title: ClassVar[str] = "Stud poker, Angola"
    law: ClassVar[str] = TEXT
    Options: ClassVar[type[StudPokerOptions]] = StudPokerOptions
    needs: ClassVar[Needs] = stud(
        "art. 9(20)", "arts. 9(22), 9(23)(b)", "arts. 9(26) to 9(29)", "arts. 9(23)(c), 9(25)"
    )
    rulings: ClassVar[Rulings] = RULINGS
    text: ClassVar[Text] = STUD_POKER
    article_void: ClassVar[str] = ARTICLES["void"]
    article_bets: ClassVar[str] = ARTICLES["bet"]

    def __init__(self, options: StudPokerOptions) -> None:
        """Work out, once, what is offered."""
        self.options = options
        self.terms = terms(self.id, "2022", options, VOID_WORDS)
        self.jackpot = options.jackpot != "none"
        self.paid_bets = tuple(bet for bet in PAYTABLE if self.jackpot or bet.id != "jackpot")
        self.offered = frozenset(bet.id for bet in self.paid_bets)
        self.jackpot_pays = frozenset(options.jackpot_pays or JACKPOT.keys() - {"straight"})
        self.dealing = options.dealing
        self.burns = options.burn == "counted"
        limits = {"ante": (options.minimum, options.maximum), "jackpot": (options.jackpot_bet, options.jackpot_bet)}
        self.bet_limits = {bet: least_most for bet, least_most in limits.items() if any(least_most)}
        self._letter = options.tie_break == "letter"

    def sat_out(self, turn: Turn) -> Turn:
        """Art. 9(34): an open seat that lays no ante in three rounds in a row is noted once."""
        p = turn.p
        idle = {seat: p.idle.get(seat, 0) + 1 for seat in p.seats if seat not in turn.deal.players}
        named = [seat for seat, rounds in idle.items() if rounds == IDLE_ROUNDS]
        notes = [Note("seat_idle", say("seat_idle", seat=seat, rounds=IDLE_ROUNDS), "9(34)") for seat in named]
        return replace(turn, p=replace(p, idle=idle), beside=(*turn.beside, *notes))

    def value(self, cards: tuple[str, ...]) -> int:
        """Art. 9(7), 9(9)."""
        return value(cards, letter=self._letter)

    def capped(self, deal: Deal, round_: Round, winners: tuple[Win, ...]) -> tuple[Win, ...]:
        """Art. 9(16); without amounts nothing is capped."""
        most = self.options.maximum_prizes
        laid = (
            {(one.seat, one.bet): one.amount for one in stakes(deal, round_)}
            if most and "amounts" not in deal.doubts
            else {}
        )
        total = sum(odds(win.pays) * laid.get((win.seat, win.bet), 0) for win in winners)
        if total <= most:
            return winners
        paid = [(win, odds(win.pays) * most / total) for win in winners]
        if self.options.rounding == "up":  # not above the maximum: whole chips, so that nothing is left to round
            chip = self.options.smallest_chip
            lies = [laid.get((win.seat, win.bet), 0) for win, _ in paid]
            paid = [
                (win, Fraction(pays * lay // chip * chip, lay) if lay else pays)
                for (win, pays), lay in zip(paid, lies, strict=True)
            ]
        return tuple(Win(win.bet, str(pays), win.pays, seat=win.seat) for win, pays in paid)
