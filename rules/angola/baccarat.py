"""Angola's baccarat (bacará ponto e banca): article 10 of Decreto Executivo 261/22.

The flow: the cards are shuffled and cut, the white card is put about twelve from the end and eight cards are burnt
(10(5)); bets are made until «Jogo feito. Nada mais.» (10(13)); before every coup but the first of a shoe one card is
burnt (10(15)); two cards each in turn, the player's side (ponto) first (10(14)), at most one more each by the table of
10(16); the higher total wins (10(21)), equal totals are a tie (10(22)).

Readings:

- 10(4)(a) prints "n.ºs 6 e 7"; it means 5 and 6: the shuffler has no burn and no warning card, a face-up card is valid.
- 10(15) takes its card from the shoe ("distribuidor"), which 10(7) distinguishes from the shuffler: the shuffler burns
  none.
- 10(15), the first coup: the first after shuffling. At a new table, after a loss, and where the first coup is void
  before a card was reported, it is unknown whether a card is burnt: at its first card the coup waits until its hands
  are entered.
- 10(6): the coup in which the warning card comes out is the last, also where it comes as its card to be burnt. Before
  the bets are opened it belongs to the coup before; under `first_card`, where an opening need not be entered, to the
  next one.
- 10(16): the second heading of the table repeats "tira carta"; it must read "does not draw".
- 10(20) prints "n.º 24"; it means 18 and 19.
- 10(12): who laid a chip is not known; a bet on the other side of its seat's bet is refused (`both_sides`). The
  limit is that of the seat, whoever bets there. Chips that were refused come off the cloth before those of the bet.
- 10(24): every choice favours the player on the banker's side, since the deductions are as small as they are printed:
  by 0.318 % with 2 %, by 0.368 % with 20 % on 5, by 1.235 % without. They are kept as printed.
- 10(24): the prizes that bear a deduction are those of the bets on banker; a pair in the same coup is paid in full.
- 10(24)(c) fixes the ratio of maximum to minimum, not the amounts. A bet that would exceed the maximum is refused; one
  that is below the minimum when the bets are closed goes back.
- Of a void coup (10(17)) the text says nothing more: its bets are returned.
- The rest of a coup's life (a doubtful card, a loss, corrections, late events) is that of `macau.baccarat`.

- 10(5): about twelve cards lie behind the warning card (`warn_card_within`); they are counted from a new shoe on.
- 10(2): after a damaged card was reported, a coup that begins before a new shoe or another loading is irregular.

The article has no duty by the clock.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from protocols.contract.events import MOST, CardDamaged, CardsLoaded, ShoeStarted, WagerPlaced
from protocols.contract.reasons import say
from rules.angola.baccarat_table import AngolaTable, BaccaratOptions, Deduction, Ends, staked
from rules.engine.cloth import give_back
from rules.engine.duties import Duties, Replacement
from rules.engine.facts import Fact, Note
from rules.engine.rounds import Round, irregular
from rules.engine.ruleset import option
from rules.needs import Needs, baccarat

LIMITS: Final = "10(24)(c)"
RATIOS: Final = {"": 70, "tie_": 15, "pair_": 8}
"""How many times its minimum a bet's maximum is: of player and banker, the tie, the pairs."""
CHANCES: Final = {"player": "", "banker": "", "tie": "tie_", "player_pair": "pair_", "banker_pair": "pair_"}

Amount = Annotated[int, Meta(ge=0)]


DUTIES: Final[Duties] = (
    Replacement("deck_replacement", "Decreto Executivo 261/22 art. 10(2)", (CardDamaged,), (ShoeStarted, CardsLoaded)),
)


class AngolaBaccaratOptions(BaccaratOptions, frozen=True, forbid_unknown_fields=True):
    """What article 10 leaves to the house. Limits are in minor units; without a minimum none is watched."""

    article: ClassVar[str] = "10"

    deduction: Annotated[
        Literal["none", "2_percent", "20_percent_on_5"],
        option("art. 10(24)", "of the prizes of a coup that the banker wins: none; 2 %; 20 % where it wins with 5"),
    ] = "none"
    minimum: Annotated[Amount, option("art. 10(24)(c)", "least bet on player or banker; 0: none")] = 0
    maximum: Annotated[Amount, option("art. 10(24)(c)", "most on player or banker: 70 times the least; 0: that")] = 0
    tie_minimum: Annotated[Amount, option("art. 10(24)(c)", "least bet on the tie; 0: none")] = 0
    tie_maximum: Annotated[Amount, option("art. 10(24)(c)", "most on the tie: 15 times the least; 0: that")] = 0
    pair_minimum: Annotated[Amount, option("art. 10(24)(c)", "least bet on a pair; 0: none")] = 0
    pair_maximum: Annotated[Amount, option("art. 10(24)(c)", "most on a pair: 8 times the least; 0: that")] = 0

    def __post_init__(self) -> None:
        """Raise ValueError for what the text excludes, naming the article."""
        super().__post_init__()
        for chance, ratio in RATIOS.items():
            least, most = self.range_of(chance)
            if most and most != ratio * least:
                text = f"{chance}maximum: art. 10(24)(c): {ratio} times {chance}minimum, which is {ratio * least}"
                raise ValueError(text)

    def range_of(self, chance: str) -> tuple[int, int]:
        """Least and most on a chance as the house has set them."""
        return getattr(self, f"{chance}minimum"), getattr(self, f"{chance}maximum")


class AngolaBaccarat(AngolaTable):
    """The ruleset."""

    id: ClassVar[str] = "angola.baccarat"
    title: ClassVar[str] = "Baccarat, Angola"
    law: ClassVar[str] = "Decreto Executivo 261/22, article 10"
    Options: ClassVar[type[AngolaBaccaratOptions]] = AngolaBaccaratOptions
    needs: ClassVar[Needs] = baccarat("art. 10(5)", "art. 10(13)", "art. 10(14)", "art. 10(4)(c)")
    article: ClassVar[str] = "10"
    article_void: ClassVar[str] = "10(17)"
    article_bets: ClassVar[str] = "10(11)"
    article_bell: ClassVar[str] = "10(13)"
    ends: ClassVar[Ends] = Ends(wins="10(21)", tie="10(22)", pair="10(23)")
    deductions: ClassVar[Mapping[str, Deduction]] = {
        "2_percent": Deduction("49/50", "49/50", "10(24)(a)"),
        "20_percent_on_5": Deduction("4/5", "1, or 4/5 with 5", "10(24)(b)", total=5),
    }

    def __init__(self, options: AngolaBaccaratOptions) -> None:
        """The choices of the house."""
        self.options = options
        least = {bet: options.range_of(chance)[0] for bet, chance in CHANCES.items()}
        self._limits = {bet: (least[bet], RATIOS[chance] * least[bet]) for bet, chance in CHANCES.items()}
        super().__init__(options, options.deduction)

    def refusal(self, round_: Round, one: WagerPlaced) -> Note | None:
        """The refusal of a bet over the maximum of its chance."""
        most, amount = self._limits[one.bet][1], staked(round_, one.bet, one.seat) + one.amount
        if most and amount > most:
            reason = say("chance_maximum", seat=one.seat, bet=one.bet, amount=min(amount, MOST), most=most)
            return Note("chance_maximum", reason, LIMITS)
        return super().refusal(round_, one)

    def at_bell(self, round_: Round, fact: Fact) -> Round:
        """A bet below the minimum of its chance goes back."""
        for one in round_.wagers:
            least = self._limits[one.bet][0]
            if one.amount < least:
                reason = say("chance_minimum", seat=one.seat, bet=one.bet, amount=one.amount, least=least)
                round_ = irregular(round_, "chance_minimum", reason, self.cite(LIMITS), fact)
                round_ = give_back(round_, one)
        return round_
