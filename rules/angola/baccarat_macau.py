"""Angola's baccarat Macau (bacará ponto e banca/Macau): article 11 of Decreto Executivo 261/22.

The game of article 10 (`rules/angola/baccarat.py`) with Macau's deductions, and with limits for the table in the place
of limits for a bet. Its readings of paragraphs 2, 4 to 7, 12 and 15 to 17, which are the same, hold here too.

Readings of its own:

- 11(22) prints "n.º 19"; it means 18 to 21. 11(25) prints "22 e 23"; it means 23 and 24. 11(29) and 11(31) print
  "n.º 27"; they mean 28, which has the amount.
- 11(28)-(29): `maximum_difference` limits the difference between all bets on player and all bets on banker. It is
  measured when the bets are closed, since a later bet on the other side may cover an earlier one: then the excess goes
  back, from the latest bets on the heavier side, in chips of `smallest_chip`. The last of them goes back in part, since
  without it the other side might exceed. The text names no bet; a bet is as late as its seat's first chips on that
  side.
- 11(30)-(31): all bets on the tie are at most 10 % of that amount, all on a pair at most 8 %; a bet that would exceed
  that is refused at once. 8 % for each pair, or for both together (`pairs_limit`). Parts of a unit do not count.
- 11(26): `5_percent` and `50_percent_on_5` leave the house an edge on the banker's side; `none` does not.

The article has no duty by the clock.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from protocols.contract.events import CardDamaged, CardsLoaded, ShoeStarted, WagerPlaced
from protocols.contract.reasons import say
from rules.angola.baccarat_table import OTHER_SIDE, PAIRS, AngolaTable, BaccaratOptions, Deduction, Ends, staked
from rules.engine.cloth import give_back, left_with
from rules.engine.duties import Duties, Replacement
from rules.engine.facts import Fact, Note
from rules.engine.rounds import Round, irregular
from rules.engine.ruleset import option
from rules.needs import Needs, baccarat

TIE_PERCENT: Final = 10
PAIR_PERCENT: Final = 8


DUTIES: Final[Duties] = (
    Replacement("deck_replacement", "Decreto Executivo 261/22 art. 11(2)", (CardDamaged,), (ShoeStarted, CardsLoaded)),
)


class AngolaBaccaratMacauOptions(BaccaratOptions, frozen=True, forbid_unknown_fields=True):
    """What article 11 leaves to the house."""

    article: ClassVar[str] = "11"

    deduction: Annotated[
        Literal["none", "5_percent", "50_percent_on_5"],
        option("art. 11(26)", "of the prizes of a coup that the banker wins: none; 5 %; 50 % where it wins with 5"),
    ] = "none"
    maximum_difference: Annotated[
        int,
        Meta(ge=0),
        option("art. 11(28)", "most by which all bets on player and on banker differ, in minor units; 0: not checked"),
    ] = 0
    pairs_limit: Annotated[
        Literal["each", "together"], option("art. 11(31)", "8 % of it for each pair, or for both together")
    ] = "each"


class AngolaBaccaratMacau(AngolaTable):
    """The ruleset."""

    id: ClassVar[str] = "angola.baccarat-macau"
    title: ClassVar[str] = "Baccarat Macau, Angola"
    law: ClassVar[str] = "Decreto Executivo 261/22, article 11"
    Options: ClassVar[type[AngolaBaccaratMacauOptions]] = AngolaBaccaratMacauOptions
    needs: ClassVar[Needs] = baccarat("art. 11(5)", "art. 11(13)", "art. 11(14)", "art. 11(4)(c)")
    article: ClassVar[str] = "11"
    article_void: ClassVar[str] = "11(17)"
    article_bets: ClassVar[str] = "11(11)"
    article_bell: ClassVar[str] = "11(13)"
    ends: ClassVar[Ends] = Ends(wins="11(23)", tie="11(24)", pair="11(25)")
    deductions: ClassVar[Mapping[str, Deduction]] = {
        "5_percent": Deduction("19/20", "19/20", "11(26)(a)"),
        "50_percent_on_5": Deduction("1/2", "1, or 1/2 with 5", "11(26)(b)", total=5),
    }

    def __init__(self, options: AngolaBaccaratMacauOptions) -> None:
        """The choices of the house."""
        self.options = options
        super().__init__(options, options.deduction)

    def refusal(self, round_: Round, one: WagerPlaced) -> Note | None:
        """The refusal of a bet by which the tie, or a pair, would exceed its part of the greatest difference."""
        difference = self.options.maximum_difference
        if not difference or one.bet in OTHER_SIDE:
            return super().refusal(round_, one)
        tie = one.bet == "tie"
        together = PAIRS if self.options.pairs_limit == "together" and not tie else (one.bet,)
        amount = sum(staked(round_, bet) for bet in together) + one.amount
        most = difference * (TIE_PERCENT if tie else PAIR_PERCENT) // 100
        if amount <= most:
            return None
        reason = say("chance_total", seat=one.seat, bet=one.bet, amount=amount, most=most)
        return Note("chance_total", reason, "11(30)" if tie else "11(31)")

    def at_bell(self, round_: Round, fact: Fact) -> Round:
        """Return the excess of the difference between the sides, from the latest bets on the heavier side."""
        most = self.options.maximum_difference
        if not most:
            return round_
        lies = {side: staked(round_, side) for side in OTHER_SIDE}
        heavy = max(lies, key=lies.__getitem__)
        difference = lies[heavy] - min(lies.values())
        chip = self.options.smallest_chip
        for one in reversed(round_.wagers):
            if difference <= most:
                break
            if one.bet == heavy:
                amount = min(-(-(difference - most) // chip) * chip, one.amount)
                reason = say(
                    "side_difference", seat=one.seat, bet=heavy, difference=difference, most=most, amount=amount
                )
                round_ = irregular(round_, "side_difference", reason, self.cite("11(29)"), fact)
                if amount == one.amount:
                    round_ = give_back(round_, one)
                else:
                    less, place = replace(one, amount=one.amount - amount), round_.wagers.index(one)
                    round_ = left_with(round_, (*round_.wagers[:place], less, *round_.wagers[place + 1 :]))
                difference -= amount
        return round_
