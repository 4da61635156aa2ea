"""The figures of Angola's blackjack: insurance exactly, the main bet by rounds played through the ruleset's `House`.

A round is the first of a full shoe, with one seat that plays by the strategy below. `House` deals, decides and compares
as in the ruleset; the events between are left out, for speed. `tests/rules/test_figures_blackjack.py` plays the same
rounds as events and compares what they pay.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from rules.angola.blackjack import Blackjack
from rules.engine.money import odds
from rules.games.blackjack import Compared, Hand, House, Play, count, is_special
from rules.games.cards import DECK, PIPS
from simulators.lab.figures.cards import ROUNDS, SEED, Mean, Tally, shared
from simulators.lab.figures.figure import Game, Published, Variant, Weight, Weights, ruleset_of

__all__ = ["GAMES", "action", "exact", "gain", "part", "play_rounds", "round_played"]

AS_PUBLISHED: Final[dict[str, Any]] = {
    "surrender": "none",
    "special_prize": "none",
    "resplit_aces": True,
    "max_hands": 4,
    "split_by": "value",
}
STAKE: Final = 2
"""With a bet of 2 every payment is a whole number: the smallest is half the bet."""

# Against 2 to 10 and the ace: Stand, Hit, Double, suRrender; a hand of more cards hits where these have D or R. Totals
# that are not listed stand, those up to 8 hit. The optimum by total for infinite decks.
_HARD: Final = {
    9: "HDDDDHHHHH",
    10: "DDDDDDDDHH",
    11: "DDDDDDDDHH",
    12: "HHSSSHHHHH",
    13: "SSSSSHHHHH",
    14: "SSSSSHHHRH",
    15: "SSSSSHHHRH",
    16: "SSSSSHHRRH",
}
_SOFT_18: Final = "SSSSSSSHHH"
# Pairs by the value of one card: sPlit, or played as their total (.).
_PAIRS: Final = {
    1: "PPPPPPPPP.",
    2: "PPPPPP....",
    3: "PPPPPP....",
    4: "...PP.....",
    6: "PPPPP.....",
    7: "PPPPPP....",
    8: "PPPPPPPP..",
    9: "PPPPP.PP..",
}
# Two sevens may become three: they hit when other hands of 14 surrender.
_SEVENS: Final = "PPPPPPHHHH"
_UP: Final = {2: 0, 3: 1, 4: 2, 5: 3, 6: 4, 7: 5, 8: 6, 9: 7, 10: 8, 1: 9}
_WORDS: Final = {"S": "stand", "H": "hit", "D": "double", "R": "surrender", "P": "split"}


def action(hand: Hand, up: int, *, may_split: bool, surrenders: bool = True) -> str:
    """The player's decision; `up`: the value of the bank's first card."""
    cards, place = hand.cards, _UP[up]
    if len(cards) == 2:
        one = PIPS[cards[0]]
        if one == PIPS[cards[1]]:
            if may_split and one in _PAIRS and _PAIRS[one][place] == "P":
                return "split"
            if one == 7:
                return _WORDS[_SEVENS[place].replace("P", "H")]
    total, soft = count(cards)
    if soft:
        letter = "H" if total <= 17 else _SOFT_18[place] if total == 18 else "S"
    else:
        letter = "H" if total <= 8 else _HARD[total][place] if total <= 16 else "S"
    if (letter == "D" and len(cards) > 2) or (letter == "R" and (len(cards) > 2 or hand.split or not surrenders)):
        letter = "H"
    return _WORDS[letter]


def _table(options: Mapping[str, str]) -> Blackjack:
    ruleset = ruleset_of("angola.blackjack", options)
    assert isinstance(ruleset, Blackjack)
    return ruleset


def round_played(house: House, shoe: list[str], rng: Random) -> tuple[Play, list[Compared], int]:
    """One round from a full shoe, shuffled as far as it is dealt: the play, the compared hands, the number of cards."""
    play, dealt = Play(hands=(Hand(1),), first_deal=4, round="computed"), 0
    size, random, begun = len(shoe), rng.random, True
    while begun or not house.over(play):
        begun = False
        decides = play.dealt == 4 and play.turn < len(play.hands) and house.card_for(play) < 0
        if decides:
            place, hand = play.turn, play.hands[play.turn]
            asked = hand.split or len(hand.cards) != 2 or count(hand.cards)[0] != 21
            if asked:
                may_split, surrenders = house.may_split(play, hand), house.surrender != "none"
                wish = action(hand, PIPS[play.bank[0]], may_split=may_split, surrenders=surrenders)
            else:
                wish = "stand"
            play = house.decided(play, place, wish)
            continue
        other = dealt + int(random() * (size - dealt))
        shoe[dealt], shoe[other] = shoe[other], shoe[dealt]
        play, _ = house.placed(play, shoe[dealt])
        dealt += 1
    return play, house.compare(play), dealt


@lru_cache(maxsize=32)
def gain(pays: str) -> int:
    """The gain of a bet of STAKE."""
    return int(STAKE * odds(pays)) if pays else -STAKE


def part(options: tuple[tuple[str, str], ...], published: bool, number: int, rounds: int) -> Tally:
    """Play the rounds of one part of a run; `published`: with the rules for which a figure is published."""
    ruleset = _table(dict(options))
    house = replace(ruleset.house, **AS_PUBLISHED) if published else ruleset.house
    rng, shoe, tally = Random(f"angola blackjack {SEED} {number}"), list(DECK * ruleset.options.decks), Tally(rounds)
    for _ in range(rounds):
        _, compared, _ = round_played(house, shoe, rng)
        net = 0
        for one in compared:
            net += gain(one.main)
            if one.hand.doubled:
                more = gain(one.double) // STAKE
                net += STAKE * more
                tally.bets += 1
                tally.bets_net += more
                tally.bets_squares += more * more
                tally.bets_won += more > 0
            tally.specials += is_special(one.hand.cards)
        tally.net += net
        tally.squares += net * net
        tally.won += net > 0
        tally.lost += net < 0
    return tally


@lru_cache(maxsize=8)
def play_rounds(options: tuple[tuple[str, str], ...], rounds: int, *, published: bool = False) -> Tally:
    """Play rounds of one seat with the main bet, in parts, each with its own seed."""
    return shared(partial(part, options, published), rounds)


def simulated(tally: Tally, published: Tally | None = None) -> Weights:
    """The figures that depend on the player's decisions. `published`: rounds with the rules of the published figure."""

    def how(edge: Mean | None, more: str) -> str:
        words = f"simulated: {tally.rounds:,} rounds through the ruleset's House, seed {SEED}"
        return words + (f", standard error of the edge {edge.error * 100:.4f} %" if edge else "") + more

    edge, doubles = tally.edge(), tally.bets_edge()
    by_strategy = "; by the strategy, a round that ends above its bets counts as won"
    if published is not None:
        other = published.edge()
        by_strategy += f"; by the published rules {other.mean * 100:.4f} %, standard error {other.error * 100:.4f}"
    return {
        "main": Weight(Fraction(tally.won, tally.rounds), Fraction(edge.mean), how(edge, by_strategy)),
        "double": Weight(
            Fraction(tally.bets_won, tally.bets),
            Fraction(doubles.mean),
            how(doubles, "; where the strategy doubles"),
        ),
        "hand:special_prize": Weight(Fraction(tally.specials, tally.rounds), None, how(None, "")),
    }


def exact(options: Mapping[str, str]) -> Weights:
    """Insurance, when only the ace is known; and blackjack of the seat and of the bank."""
    decks = _table(options).options.decks
    cards = 52 * decks
    ten = Fraction(16 * decks, cards - 1)
    natural = sum(
        (
            Fraction(1, 52) * Fraction(decks - (one == two), cards - 1)
            for one, two in product(DECK, DECK)
            if count((one, two))[0] == 21
        ),
        Fraction(),
    )
    return {
        "insurance": Weight(ten, 1 - 3 * ten, "exact, the ace being all that is seen"),
        "hand:blackjack": Weight(natural, None),
    }


def _weigh(options: Mapping[str, str]) -> Weights:
    given = tuple(options.items())
    published = play_rounds(given, ROUNDS, published=True) if not given else None
    return exact(options) | simulated(play_rounds(given, ROUNDS), published)


_WIZARD: Final = "Wizard of Odds"
GAMES: Final[dict[str, Game]] = {
    "angola.blackjack": Game(
        _weigh,
        (Variant({}, None), Variant({"decks": "4"}, None)),
        {
            ("insurance", ""): Published(f"{_WIZARD}, Blackjack", edge_percent="7.40"),
            ("main", ""): Published(
                f"{_WIZARD}, Ask the Wizard 294",
                edge_percent="0.55",
                difference="published without surrender and special prize, any pair up to four hands, aces too",
            ),
        },
    )
}
