"""The figures of baccarat by each text: every coup of a full shoe, through the ruleset."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rules.games.baccarat_coups import Coups
from rules.macau.baccarat import Baccarat
from simulators.lab.figures.enumerate_baccarat import endings, jackpot_probabilities, pair_weights, shoe
from simulators.lab.figures.figure import Game, Published, Variant, Weight, Weights, beside, ruleset_of, weighed

WIZARD: Final = "Wizard of Odds"
BACCARAT: Final = f"{WIZARD}, Baccarat"
HALF_ON_5: Final = "excelpunks.com, Baccarat vs. non-commission baccarat"


def coups(name: str) -> Callable[[Mapping[str, str]], Weights]:
    """The weights of a ruleset: coups begin with their first card; cards burnt before it change no probability."""

    def weigh(options: Mapping[str, str]) -> Weights:
        ruleset = ruleset_of(name, {**options, "opening": "first_card"})
        assert isinstance(ruleset, Coups)
        decks = ruleset.house.decks
        weights = weighed((end.probability, end.result) for end in endings(ruleset, shoe(decks)))
        return weights | pair_weights(ruleset, decks)

    return weigh


def _macau(options: Mapping[str, str]) -> Weights:
    ruleset = ruleset_of("macau.baccarat", options)
    assert isinstance(ruleset, Baccarat)
    weights = coups("macau.baccarat")(options)
    if ruleset.options.jackpot == "none":
        return weights
    fallen = jackpot_probabilities(ruleset.options)
    return weights | {f"jackpot:{combination}": Weight(fallen[combination], None) for combination in fallen}


def _jackpots() -> Iterator[Variant]:
    for decks in ({}, {"decks": "6"}):
        for which in "ABC":
            yield Variant({"jackpot": which, **decks}, decks)
        yield Variant({"jackpot": "A", "double_pairs_by": "rank", **decks}, {"jackpot": "A", **decks})


EIGHT_DECKS: Final = {
    "player": Published(BACCARAT, "0.446247", "1.2351"),
    "tie": Published(BACCARAT, "0.095156", "14.3596"),
    "player_pair": Published(BACCARAT, "0.074699", "10.3614"),
    "banker_pair": Published(BACCARAT, "0.074699", "10.3614"),
}
SIX_DECKS: Final = {
    "player": Published(BACCARAT, "0.4463", "1.24"),
    "tie": Published(BACCARAT, "0.0951", "14.44"),
}

MACAU: Final = Game(
    _macau,
    (
        Variant({}, None),
        Variant({"commission": "six_pays_half"}),
        Variant({"commission": "dragon_7_push"}),
        Variant({"decks": "6"}, None),
        Variant({"commission": "six_pays_half", "decks": "6"}, {"decks": "6"}),
        Variant({"commission": "dragon_7_push", "decks": "6"}, {"decks": "6"}),
        *_jackpots(),
    ),
    {
        **beside(
            "",
            {
                **EIGHT_DECKS,
                "banker": Published(BACCARAT, "0.458597", "1.0579"),
                "dragon_7": Published(f"{WIZARD}, EZ Baccarat", "0.022534", "7.6113"),
                "lucky_6": Published(f"{WIZARD}, Baccarat side bets", edge_percent="16.6836"),
            },
        ),
        ("banker", "commission=six_pays_half"): Published(f"{WIZARD}, Super 6", edge_percent="1.4581"),
        ("banker", "commission=dragon_7_push"): Published(f"{WIZARD}, EZ Baccarat", edge_percent="1.0183"),
        **beside("decks=6", {**SIX_DECKS, "banker": Published(BACCARAT, "0.4587", "1.06")}),
    },
)


def _deductions(*deductions: str) -> tuple[Variant, ...]:
    """The variants with eight decks and with six."""
    variants = []
    for decks in ({}, {"decks": "6"}):
        variants.append(Variant(decks, None))
        variants += (Variant({"deduction": deduction, **decks}, decks) for deduction in deductions)
    return tuple(variants)


NO_COMMISSION: Final = Published(f"{BACCARAT}; bet5games.com, Baccarat commission", "0.458597", "-1.24")
BANKER_OF_SIX: Final = Published(BACCARAT, "0.4587")
ANGOLA: Final = Game(
    coups("angola.baccarat"),
    _deductions("2_percent", "20_percent_on_5"),
    {
        **beside("", {**EIGHT_DECKS, "banker": NO_COMMISSION}),
        **beside("decks=6", {**SIX_DECKS, "banker": BANKER_OF_SIX}),
    },
)
ANGOLA_MACAU: Final = Game(
    coups("angola.baccarat-macau"),
    _deductions("5_percent", "50_percent_on_5"),
    {
        **beside("", {**EIGHT_DECKS, "banker": NO_COMMISSION}),
        ("banker", "deduction=5_percent"): Published(BACCARAT, edge_percent="1.0579"),
        ("banker", "deduction=50_percent_on_5"): Published(HALF_ON_5, edge_percent="0.9328"),
        **beside("decks=6", {**SIX_DECKS, "banker": BANKER_OF_SIX}),
        ("banker", "deduction=5_percent, decks=6"): Published(BACCARAT, edge_percent="1.06"),
    },
)

GAMES: Final[dict[str, Game]] = {
    "angola.baccarat": ANGOLA,
    "angola.baccarat-macau": ANGOLA_MACAU,
    "macau.baccarat": MACAU,
}
