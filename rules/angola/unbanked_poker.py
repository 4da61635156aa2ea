"""The common part of Angola's hold'em, Omaha and synthetic poker: Decreto Executivo 261/22, article 13.

The readings are beside their code: hands in `rules/games/poker_hands.py`, bets in `poker_betting.py`, the pot in
`poker_pots.py`, the seats in `poker_table.py`, the cards and the end of a hand in `poker_game.py`. Beside them:

- 13(7)(a): the percentage is an option in per mille of each payment.
- 13(20), 13(21): the maximum is that of one bet or raise, beside the pot or the stack. The minimum is measured by it
  where a house has one.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from protocols.contract.events import CardDamaged, CardsLoaded, ShoeStarted
from protocols.contract.facts import RoundFacts, UnbankedPokerFacts
from rules.engine.duties import Replacement
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.rounds import terms
from rules.engine.ruleset import option
from rules.games.poker_betting import Limits
from rules.games.poker_game import PokerGame
from rules.games.poker_pots import Rake
from rules.games.poker_table import Deal
from rules.needs import Needs, unbanked

TEXT: Final = "Decreto Executivo 261/22"
STREETS: Final = (3, 4, 5)
"""Art. 13(41)-(45)."""
REPLACEMENT: Final = Replacement("deck_replacement", f"{TEXT} art. 13(4)", (CardDamaged,), (ShoeStarted, CardsLoaded))
"""A deck with a damaged card is replaced."""
WITHOUT_BLINDS: Final = {
    **dict.fromkeys(("14(10)", "14(11)", "14(12)"), "16(8)"),
    **dict.fromkeys(("14(7)", "14(8)"), "16(4)"),
    "14(15)": "13(20)",
    "14(16)": "13(47)",
}
"""The articles of the same rules in synthetic poker, to which article 14 does not apply."""
VOID_WORDS: Final = {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}
_NAMES: Final = {
    "high_card": ("carta maior", "散牌", "a high card"),
    "one_pair": ("par", "一對", "a pair"),
    "two_pairs": ("dois pares", "兩對", "two pairs"),
    "court_cards": ("figuras simples", "公仔牌", "court cards"),
    "court_pairs": ("figuras com pares", "公仔牌兩對", "court cards with pairs"),
    "three_of_a_kind": ("trio", "三條", "three of a kind"),
    "straight": ("sequência", "順", "a straight"),
    "flush": ("cor", "同花", "a flush"),
    "full_house": ("fullen", "夫佬", "a full house"),
    "four_of_a_kind": ("póquer", "四條", "four of a kind"),
    "straight_flush": ("sequência da cor", "同花順", "a straight flush"),
    "royal_flush": ("sequência máxima da cor", "同花大順", "a royal flush"),
}
_CALLS: Final = {
    "pt": {"wins": "lugar {} ganha com {}", "takes": "lugar {} ganha o pote", "mark": "; "},
    "zh-Hant": {"wins": "{}門以{}贏", "takes": "{}門取得彩池", "mark": "；"},
    "en": {"wins": "seat {} wins with {}", "takes": "seat {} takes the pot", "mark": "; "},
}
WORDS: Final = {
    language: calls | {name: said[place] for name, said in _NAMES.items()}
    for place, (language, calls) in enumerate(_CALLS.items())
}


class PokerOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house, and the readings that are possible."""

    minimum: Annotated[int, Meta(ge=2), option("arts. 13(20), 14(11), 14(12)", "minor units, the table minimum")] = 100
    maximum: Annotated[
        int, Meta(ge=0), option("arts. 13(19), 13(20)", "minor units, the most of one bet or raise; 0: no other limit")
    ] = 0
    limit: Annotated[
        Literal["half_pot", "pot", "stack"],
        option("art. 13(21)", "what bounds a bet: half the pot, the pot, the stack"),
    ] = "stack"
    pot: Annotated[
        Literal["with_call", "as_it_lies"], option("arts. 13(21), 14(15)", "the pot that bounds a raise")
    ] = "with_call"
    all_in: Annotated[
        Literal["layered", "proportional"], option("arts. 13(38), 13(50)", "where the chips of folded hands lie")
    ] = "layered"
    percentage: Annotated[
        int, Meta(ge=0, le=50), option("art. 13(7)(a)", "per mille that the house keeps of a hand")
    ] = 0
    percentage_cap: Annotated[
        int, Meta(ge=0), option("art. 13(7)(a)", "minor units, the most it keeps of a hand; 0: no limit")
    ] = 0
    entry: Annotated[int, Meta(ge=0), option("art. 14(7)", "minor units, the least that a new player brings")] = 0
    smallest_chip: Annotated[int, Meta(ge=1), option("-", "minor units that the percentage can be taken in")] = 1
    rounding: Annotated[Rounding, option("-", "not used: the percentage is rounded down")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if self.maximum and not self.maximum <= 5 * self.minimum <= 2 * self.maximum:
            raise ValueError("minimum: art. 13(20): from 20 % to 40 % of the maximum")


class BlindsOptions(PokerOptions, frozen=True, forbid_unknown_fields=True):
    """With a small and a big bet (14(10))."""

    def __post_init__(self) -> None:
        """The small bet is half of the minimum."""
        super().__post_init__()
        if self.minimum % 2:
            raise ValueError("minimum: art. 14(11): the small bet is half of it")


class UnbankedPoker(PokerGame):
    """The base of the three rulesets."""

    law: ClassVar[str] = TEXT
    text: ClassVar[str] = TEXT
    article_bets: ClassVar[str] = "13(53)"
    article_bell: ClassVar[str] = "13(36)"
    Facts: ClassVar[type[RoundFacts]] = UnbankedPokerFacts
    needs: ClassVar[Needs] = unbanked("art. 13(34)", "art. 13(52)", "arts. 13(41) to 13(46), 13(62)", "art. 13(39)")
    words: ClassVar[Mapping[str, Mapping[str, str]]] = WORDS
    chosen: ClassVar[str]
    """The paragraph that says which cards make a hand."""
    combinations: ClassVar[Mapping[str, str]]
    """The paragraph of each combination."""
    same_hands: ClassVar[tuple[str, ...]] = ("13(18)",)
    """The paragraphs that order hands of one combination."""
    ties: ClassVar[Mapping[str, str]] = {}
    """The paragraph by which equal hands of a combination share, where it is not 13(66)."""

    def __init__(self, options: PokerOptions) -> None:
        """Apply the choices of the house, once."""
        self.options = options
        self.terms = terms(self.id, "2022", options, VOID_WORDS)
        with_call = options.pot == "with_call"
        self.betting = Limits(options.minimum, options.limit, options.maximum, pot_with_call=with_call)
        self.rake = Rake(options.percentage, options.percentage_cap, options.smallest_chip)
        self.layering = options.all_in
        self.entry = options.entry

    def articles(self, deal: Deal) -> tuple[str, ...]:
        """The paragraphs that the end of a hand rests on."""
        strengths = deal.strengths
        found, best = ["13(65)"] if len(strengths) > 1 else ["13(51)"], ""
        if len(strengths) > 1:
            best = self.variant.ranking.category(max(strengths.values()))
            found += [self.chosen, self.combinations[best], *self.same_hands]
        if len(deal.pots) > 1:
            found += ["13(38)", "13(49)"]
        paid = deal.paid or ()
        if len({one.pot for one in paid}) < len(paid):
            found += [self.ties.get(best, "13(66)"), "13(67)"]
        if any(one.kept for one in paid):
            found.append("13(7)(a)")
        return tuple(sorted(found, key=_place))


@lru_cache
def _place(article: str) -> tuple[int, int, str]:
    number, _, rest = article.partition("(")
    paragraph, _, letter = rest.partition(")")
    return int(number), int(paragraph), letter
