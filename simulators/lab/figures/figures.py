"""`feltd compute-figures`: the probabilities and house edges of every bet, computed through the rulesets themselves.

Every possible end of a round is played as events and counted with its number of ways; the payments come from the
results, so this module contains no odds. Published figures of others are shown beside them, with the reason of each
difference. `--write` writes the tables to `rules/figures/`, which are installed on a table computer.

Two games have too many ends. The figures of stud poker and of blackjack's main bet are exact where possible; the rest
is simulated with a fixed seed (cards.py), which its row states with the standard error.

Dice, wheels and heaps of buttons are assumed to be fair: every throw, pocket and remainder is equally likely. A coup of
baccarat, and a round of blackjack, is the first of a full shoe; cards burnt unseen change no probability.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, product
from typing import Any, Final

import msgspec

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BetsClosed,
    BetsOpened,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceUncovered,
    Event,
    SpinStarted,
)
from rules import RULESETS
from rules.engine.money import odds
from rules.engine.ruleset import Result, Ruleset
from rules.figures import Figure, how_computed
from rules.games.cards import DECK, RANKS, SUITS
from rules.macau.blackjack import Blackjack
from rules.macau.blackjack_bets import ALWAYS, PERMITTED, STREAK_PAYS, STREAKS
from rules.macau.fantan import Fantan
from simulators.lab.figures import baccarat, blackjack, craps, dice, roulette, stud_poker
from simulators.lab.figures.cards import (
    ROUNDS,
    CardWantedError,
    Mean,
    Tally,
    hand_played,
    measured,
    play_blackjack,
    play_soft_17,
    simulated,
)
from simulators.lab.figures.figure import (
    Game,
    Published,
    Variant,
    Weight,
    Weights,
    beside,
    equally,
    ruleset_of,
    said,
    weighed,
)

__all__ = ["GAMES", "figures", "figures_toml"]


# ---- the games


def _spins() -> Iterator[tuple[Event, ...]]:
    for pocket in range(37):
        yield SpinStarted(), BallLaunched("clockwise", "anticlockwise"), BallLanded(str(pocket))


def _throws() -> Iterator[tuple[Event, ...]]:
    shaken = (DiceCovered(), DiceAgitated("lever"), DiceAgitated("lever"), DiceAgitated("lever"), BetsOpened())
    for faces in product(range(1, 7), repeat=3):
        yield (*shaken, BetsClosed(), DiceUncovered(), DiceRead(faces))


@lru_cache(maxsize=16)
def _blackjack_rounds(options: tuple[tuple[str, str], ...], five_cards: bool) -> Tally:
    return play_blackjack(dict(options), ROUNDS, five_cards=five_cards)


def _blackjack(options: Mapping[str, str]) -> Weights:
    """Without the special prize also without five cards for half: the usual game of other casinos.

    Another rule for soft 17 is computed as a difference from the default: ending the same rounds in both ways is far
    more exact than two runs.
    """
    exact = blackjack_exact(options)
    if list(options) == ["soft_17"]:
        return exact | soft_17_simulated(_blackjack_rounds((), True), _soft_17_rounds(options["soft_17"]))
    five_cards = options.get("special_prize") != "none"
    tally = _blackjack_rounds(
        tuple((name, value) for name, value in options.items() if name != "bets_offered"), five_cards
    )
    return exact | blackjack_simulated(options, tally)


@lru_cache(maxsize=2)
def _soft_17_rounds(reading: str) -> Tally:
    return play_soft_17(reading, ROUNDS)


def soft_17_simulated(default: Tally, beside: Tally) -> Weights:
    """The main bet: the default figure and the difference."""
    edge, less = default.edge(), beside.differs()
    mean = Mean(edge.mean - less.mean, (edge.error**2 + less.error**2) ** 0.5)
    won = Fraction(default.won, default.rounds) + Fraction(beside.other_won, beside.rounds)
    how = (
        f"{simulated(default, mean)}; default plus the difference of {beside.rounds:,} rounds ended in both ways: "
        f"{-less.mean * 100:+.4f} %, standard error {less.error * 100:.4f}"
    )
    return {"main": Weight(won, Fraction(mean.mean), how)}


def blackjack_simulated(options: Mapping[str, str], tally: Tally) -> Weights:
    """The figures that depend on the player's decisions."""
    how = "; by the strategy, a round that ends above its bets counts as won"
    as_elsewhere = options.get("special_prize") == "none"
    weights = {
        "main": measured(
            tally.won,
            tally.rounds,
            tally,
            tally.edge(),
            how + "; five cards are never given up for half" * as_elsewhere,
        ),
        "double": measured(tally.bets_won, tally.bets, tally, tally.bets_edge(), "; where the strategy doubles"),
    }
    if not as_elsewhere:
        weights["hand:special_prize"] = measured(tally.specials, tally.rounds, tally, None)
        weights["hand:five_cards"] = measured(tally.fives, tally.rounds, tally, None)
    offered = {bet.id for bet in ruleset_of("macau.blackjack", options).bets()}
    once = Fraction(tally.won, tally.won + tally.lost)
    error = float(once * (1 - once) / (tally.won + tally.lost)) ** 0.5
    for bet, length in STREAKS.items():
        if bet in offered:
            back = odds(STREAK_PAYS[length]) + 1
            edge = Mean(float(1 - back * once**length), float(back * length * once ** (length - 1)) * error)
            how = f"; (won / (won + lost)) to the power of {length}"
            weights[bet] = Weight(once**length, Fraction(edge.mean), simulated(tally, edge) + how)
    return weights


def blackjack_exact(options: Mapping[str, str]) -> Weights:
    """The bets on the first cards and on the bank's blackjack, from the composition of the shoe."""
    ruleset = ruleset_of("macau.blackjack", options)
    assert isinstance(ruleset, Blackjack)
    decks = ruleset.options.decks
    left = 52 * decks - 1
    two = (
        (Fraction(decks - (one == other), 52 * left), hand_played(ruleset, (one, other), splits=False))
        for one, other in product(DECK, DECK)
    )
    found = weighed(two)
    bank = ((Fraction(decks - (card == "AS"), left), hand_played(ruleset, ("TC", "9C"), ("AS", card))) for card in DECK)
    weights = {
        "insurance": msgspec.structs.replace(weighed(bank)["insurance"], method="exact, the ace being all that is seen")
    }
    for bet in ("over_13", "under_13", "perfect_pair"):
        if bet in found:
            weights[bet] = found[bet]
    for bet, chances in (("any_pair", _pairs(ruleset)), ("sevens", _sevens(ruleset))):
        if bet in found:
            never = f"{float(_edge(found[bet]) * 100):.4f}"
            weight = weighed(chances)[bet]
            said_ = f"exact, for a seat that splits every pair it may; never splitting, the edge is {never} %"
            weights[bet] = Weight(weight.probability, weight.edge, said_)
    return weights


def _edge(weight: Weight) -> Fraction:
    assert weight.edge is not None
    return weight.edge


def _pairs(ruleset: Blackjack) -> Iterator[tuple[Fraction, Result]]:
    """Every order in which cards of one rank, and others, come to a seat that splits. Suits do not matter here.

    Cards of the bank and of other seats in between change no probability.
    """
    decks = ruleset.options.decks
    for rank in RANKS:
        other = "9C" if rank != "9" else "8C"
        waiting: list[tuple[Fraction, tuple[str, ...], int]] = [(Fraction(1), (), 0)]
        while waiting:
            probability, cards, same = waiting.pop()
            try:
                result = hand_played(ruleset, cards)
            except CardWantedError:
                pass
            else:
                yield probability, result
                continue
            again = Fraction(4 * decks - same, 52 * decks - len(cards))
            waiting.append((probability * again, (*cards, f"{rank}S"), same + 1))
            if cards:
                # A first card of another rank is counted with that rank.
                waiting.append((probability * (1 - again), (*cards, other), same))


def _sevens(ruleset: Blackjack) -> Iterator[tuple[Fraction, Result]]:
    """Two sevens and the third card; later cards do not matter."""
    decks = ruleset.options.decks
    rest = ("9C",) * 12
    sevens = tuple(f"7{suit}" for suit in SUITS)
    for one, two in product(sevens, sevens):
        pair = Fraction(decks - (one == two), 52 * (52 * decks - 1))
        left = 52 * decks - 2
        for three in sevens:
            copies = decks - (three == one) - (three == two)
            yield pair * Fraction(copies, left), hand_played(ruleset, (one, two, three, *rest))
        yield pair * Fraction(left - 4 * decks + 2, left), hand_played(ruleset, (one, two, *rest))


def _each(name: str, values: Iterable[object]) -> tuple[Variant, ...]:
    return tuple(Variant({name: str(value)}) for value in values)


WIZARD: Final = "Wizard of Odds"
SIC_BO: Final = f"{WIZARD}, Sic Bo"
NO_TRIPLE: Final = "published for even and odd that lose on a triple; by the letter of this text they win on one"

_SIC_BO: Final[dict[str, Published]] = {
    "small": Published(SIC_BO, "0.4861", "2.78"),
    "big": Published(SIC_BO, "0.4861", "2.78"),
    "triple": Published(SIC_BO, "0.0046", "30.09"),
    "any_triple": Published(SIC_BO, "0.0278", "30.56"),
    "total:4, total:17": Published(SIC_BO, "0.0139", "29.17"),
    "total:5, total:16": Published(SIC_BO, "0.0278", "47.22"),
    "total:6, total:15": Published(SIC_BO, "0.0463", "30.56"),
    "total:7, total:14": Published(SIC_BO, "0.0694", "9.72"),
    "total:8, total:13": Published(SIC_BO, "0.0972", "12.50"),
    "total:9, total:12": Published(SIC_BO, "0.1157", "18.98"),
    "total:10, total:11": Published(SIC_BO, "0.1250", "12.50"),
}
# The house edge of 5 and 16 when they pay 19 to 30.
_SIC_BO_5_16: Final = (
    *("44.44", "41.67", "38.89", "36.11", "33.33", "30.56", "27.78", "25.00", "22.22", "19.44", "16.67", "13.89"),
)
_ROULETTE: Final = Published(f"{WIZARD}, Roulette", edge_percent="2.70")


MACAU: Final = f"{WIZARD}, Blackjack in Macau"
# The bets that every table has, and all that need a permission of their own.
ALL_BETS: Final = {"bets_offered": ",".join((*ALWAYS, *PERMITTED))}
AS_ELSEWHERE: Final = {"soft_17": "stand", "special_prize": "none"}


_OWN: Final[dict[str, Game]] = {
    **baccarat.GAMES,
    **blackjack.GAMES,
    craps.NAME: craps.GAME,
    **roulette.GAMES,
    "macau.blackjack": Game(
        _blackjack,
        (
            Variant({}, None),
            Variant(ALL_BETS),
            Variant({"soft_17": "stand"}),
            Variant({"soft_17": "any_soft"}),
            Variant({"procedure": "3"}),
            Variant(AS_ELSEWHERE, {"soft_17": "stand"}),
        ),
        {
            ("insurance", ""): Published(f"{WIZARD}, Blackjack", edge_percent="7.40"),
            ("over_13", ""): Published(f"{WIZARD}, Over/Under 13", edge_percent="6.55"),
            ("under_13", ""): Published(f"{WIZARD}, Over/Under 13", edge_percent="10.07"),
            ("main", "soft_17=stand"): Published(
                MACAU,
                edge_percent="0.09",
                difference="published without the special prize of 3 to 1 and without half for five cards",
            ),
            ("main", said(AS_ELSEWHERE)): Published(MACAU, edge_percent="0.09"),
        },
    ),
    **dice.GAMES,
    "macau.cussec": Game(
        equally("macau.cussec", _throws()),
        (
            Variant({}, None),
            Variant({"edition": "2003"}, None),
            *_each("total_5_16", range(19, 31)),
            *_each("total_6_15", range(15, 19)),
            Variant({"even_odd_on_triple": "lose"}),
            Variant({"double": "exactly_two"}),
        ),
        {
            **beside(
                "",
                {
                    **_SIC_BO,
                    "single": Published(SIC_BO, edge_percent="7.87"),
                    "two_dice": Published(SIC_BO, "0.1389", "16.67"),
                    "double": Published(SIC_BO, "0.0741", "33.33"),
                    "three_dice": Published(SIC_BO, "0.0278", "13.89"),
                    "double_and_single": Published(SIC_BO, "0.0139", "29.17"),
                    "four_numbers": Published(SIC_BO, "0.1111", "11.11"),
                    "even": Published(SIC_BO, "0.4861", "2.78", NO_TRIPLE),
                    "odd": Published(SIC_BO, "0.4861", "2.78", NO_TRIPLE),
                },
            ),
            **beside("edition=2003", {**_SIC_BO, "single": Published(SIC_BO, edge_percent="7.87")}),
            **{
                ("total:5, total:16", f"total_5_16={pays}"): Published(SIC_BO, "0.0278", edge)
                for pays, edge in enumerate(_SIC_BO_5_16, 19)
            },
            ("total:6, total:15", "total_6_15=15"): Published(SIC_BO, "0.0463", "25.93"),
            ("even", "even_odd_on_triple=lose"): Published(SIC_BO, "0.4861", "2.78"),
            ("odd", "even_odd_on_triple=lose"): Published(SIC_BO, "0.4861", "2.78"),
        },
    ),
    "macau.fantan": Game(
        equally("macau.fantan", Fantan.whole_rounds()),
        (Variant({}, None),),
        beside(
            "",
            {
                "fan": Published("Wizard of Macau, Fan-Tan", "0.25", "3.75"),
                "nim": Published("Wizard of Macau, Fan-Tan", "0.25", "2.50"),
                "nga": Published("Wizard of Macau, Fan-Tan", "0.50", "1.25"),
                "sesamhong": Published("Wizard of Macau, Fan-Tan", "0.75", "1.25"),
                "kuoc": Published("Wizard of Macau, Fan-Tan", "0.50", "2.50"),
            },
        ),
    ),
    "macau.fish-prawn-crab": Game(
        equally("macau.fish-prawn-crab", _throws()),
        (Variant({}, None),),
        beside(
            "",
            {
                **_SIC_BO,
                "figure": Published(SIC_BO, edge_percent="7.87"),
                "one_colour": Published(f"{WIZARD}, Yee Hah Hi", "0.444444", "11.1111"),
                "two_colour": Published(f"{WIZARD}, Yee Hah Hi", "0.222222", "11.1111"),
                "same_colour": Published(f"{WIZARD}, Yee Hah Hi", "0.111111", "11.1111"),
            },
        ),
    ),
    "macau.roulette": Game(
        equally("macau.roulette", _spins()),
        (
            Variant({}, None),
            Variant({"nines": "1-2-3-4-5-6-7-8-9"}),
            Variant({"zero_combinations": "true"}),
            Variant({"edition": "2003"}, None),
        ),
        {
            (bet, options): _ROULETTE
            for options in ("", "edition=2003")
            for bet in (
                *("column", "dozen", "even", "odd", "low", "high", "red", "black"),
                *("line", "street", "corner", "split", "straight"),
            )
        },
    ),
    **stud_poker.GAMES,
}


def _by_its_rounds(name: str) -> Game:
    kind: Any = RULESETS[name]
    return Game(equally(name, kind.whole_rounds()), (Variant({}, None),))


UNBANKED: Final = frozenset(
    {"angola.chemin-de-fer", "angola.holdem", "angola.omaha", "angola.synthetic-poker", "angola.gaming-machines"}
)
"""Games without figures: players of poker and of chemin de fer play each other, so a gain depends on the others; a
machine's return is that of its model.
"""
GAMES: Final[dict[str, Game]] = {
    name: _OWN.get(name) or _by_its_rounds(name) for name in RULESETS if name not in UNBANKED
}
"""The figures of a game without its own entry are computed from its whole rounds."""


# ---- rows


def _decimal(probability: Fraction) -> str:
    """Six decimal places, or six digits for small values; never an exponent."""
    places = 6
    while 0 < probability * 10**places < 10**5 and probability < Fraction(1, 1000):
        places += 1
    return f"{float(probability):.{places}f}"


def _family(bet: str) -> str:
    return bet.partition(":")[0]


def _names(ruleset: Ruleset[Any], weights: Weights, bets: Sequence[str]) -> str:
    """A whole family of bets by its pattern, otherwise the names of its members."""
    family = _family(bets[0])
    whole = [bet for bet in weights if _family(bet) == family]
    if len(bets) == len(whole) > 1:
        return next(bet.id for bet in ruleset.bets() if _family(bet.id) == family)
    return ", ".join(bets)


def figures(
    name: str, variants: Sequence[Variant] | None = None, progress: Callable[[float], None] = lambda _: None
) -> list[Figure]:
    """Every bet of a game under each of its `variants`; bets with equal figures share a row.

    A variant has only rows that differ from those of its base variant. `progress` gets the share of the variants that
    is computed.
    """
    game = GAMES[name]
    computed: dict[str, Weights] = {}

    def weights_of(options: Mapping[str, str]) -> Weights:
        if said(options) not in computed:
            computed[said(options)] = game.weigh(options)
        return computed[said(options)]

    rows = []
    chosen = game.variants if variants is None else variants
    for done, variant in enumerate(chosen):
        progress(done / len(chosen))
        ruleset = ruleset_of(name, variant.options)
        weights = weights_of(variant.options)
        known = weights_of(variant.beside) if variant.beside is not None else {}
        order = {_family(bet.id): place for place, bet in enumerate(ruleset.bets())}
        # Rows that are not bets come last.
        order |= {_family(bet): len(ruleset.bets()) for bet in weights if _family(bet) not in order}
        new = sorted((bet for bet in weights if known.get(bet) != weights[bet]), key=lambda bet: order[_family(bet)])
        for _, members in groupby(new, key=_family):
            alike: dict[Weight, list[str]] = defaultdict(list)
            for bet in members:
                alike[weights[bet]].append(bet)
            for weight, bets in alike.items():
                rows.append(_figure(game, _names(ruleset, weights, bets), variant.text, weight))
    return rows


def _figure(game: Game, bet: str, options: str, weight: Weight) -> Figure:
    found = game.published.get((bet, options)) or game.published.get((_family(bet), options))
    edge = "" if weight.edge is None else f"{float(weight.edge * 100):.4f}"
    if found is None:
        return Figure(bet, options, _decimal(weight.probability), edge, method=weight.method)
    words = [f"probability {found.probability}"] * bool(found.probability)
    words += [f"edge {found.edge_percent} %"] * bool(found.edge_percent)
    published = ", ".join(words)
    decimal = _decimal(weight.probability)
    return Figure(bet, options, decimal, edge, published, found.source, found.difference, weight.method)


def agrees(figure: Figure) -> bool:
    """Whether the published figures equal ours in the places that are printed.

    A simulated edge may differ by three standard errors.
    """
    error = re.search(r"standard error of the edge ([0-9.]+) %", figure.method)
    for word, ours in (("probability", figure.probability), ("edge", figure.edge_percent)):
        for theirs in re.findall(rf"{word} (-?[0-9.]+)", figure.published):
            places = len(theirs.partition(".")[2])
            if error is not None and word == "edge":
                if abs(float(ours) - float(theirs)) > 3 * float(error[1]):
                    return False
                continue
            if f"{float(ours):.{places}f}" != theirs:
                return False
    return True


def figures_toml(name: str, rows: Sequence[Figure]) -> str:
    """The file of `rules/figures`."""
    lines = [
        f"# Made by `feltd compute-figures {name} --write rules/figures`: {how_computed(rows)}, through the ruleset.",
        "# probability: that the bet wins. Rows for other options are listed only where these change the figures.",
    ]
    for row in rows:
        lines += ["", "[[figure]]"]
        for key, value in msgspec.structs.asdict(row).items():
            lines.append(f"{key} = {msgspec.json.encode(value).decode()}")
    return "\n".join(lines) + "\n"
