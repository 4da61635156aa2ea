"""What each text of the law leaves to the house between which numbers, and the odds that it prints for each bet.

The games' own tests play with these; here each number is written once more beside the text's, with the one next to it.
"""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from helpers import play, results

from protocols.contract.events import BetsOpened, ButtonsCounted, RoundVoided
from rules import RULESETS
from rules.engine.duties import without_duties
from rules.engine.ruleset import BadOption, Wager, options_from
from rules.macau.fantan import Fantan

# Least, most and usual value of each option that is a number; None: the text names no end.
NUMBERS: dict[str, dict[str, tuple[int, int | None, float]]] = {
    "macau.baccarat": {"decks": (6, 12, 8), "burn_fixed": (1, 8, 1), "demonstration_rounds": (0, 3, 0)},
    "macau.blackjack": {
        "decks": (1, 12, 6),
        "seats": (6, 12, 7),
        "table_maximum": (0, None, 0),
        "max_hands": (4, 8, 4),
        "bettors": (1, 9, 1),
    },
    "macau.cussec": {"total_5_16": (18, 30, 18), "total_6_15": (14, 18, 14)},
    "macau.fantan": {},
    "macau.fish-prawn-crab": {},
    "macau.roulette": {},
    "macau.stud-poker": {"royal_flush_pays": (50, 100, 50), "maximum_prize": (0, None, 0)},
    "angola.american-roulette": {"minimum": (0, None, 0), "maximum_straight": (0, None, 0)},
    "angola.baccarat": {
        "decks": (6, 8, 8),
        "warn_card_within": (0, 416, 5),
        **dict.fromkeys(
            ("minimum", "maximum", "tie_minimum", "tie_maximum", "pair_minimum", "pair_maximum"), (0, None, 0)
        ),
    },
    "angola.baccarat-macau": {
        "decks": (6, 8, 8),
        "warn_card_within": (0, 416, 5),
        "maximum_difference": (0, None, 0),
    },
    "angola.blackjack": {
        "seats": (6, 7, 7),
        "decks": (4, 6, 6),
        "warn_card_within": (0, 312, 10),
        "minimum": (0, None, 0),
        "maximum": (0, None, 0),
        "jackpot_bet": (0, None, 0),
        "jackpot_seed": (0, None, 0),
        "jackpot_cards": (2, 4, 4),
    },
    "angola.craps": {"minimum": (1, None, 1), "maximum_payment": (0, None, 0)},
    "angola.cussec": {},
    "angola.french-bank": {
        "minimum": (0, None, 0),
        "maximum_aces": (0, None, 0),
        "maximum_small_big": (0, None, 0),
        "reading_seconds": (0, 60, 15.0),
    },
    "angola.french-roulette": {"minimum": (0, None, 0), "maximum_straight": (0, None, 0)},
    "angola.stud-poker": dict.fromkeys(
        ("minimum", "maximum", "maximum_prizes", "jackpot_bet", "jackpot_seed"), (0, None, 0)
    ),
}
# What of them the text calls by words; the first one is the usual one.
EDITIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "macau.baccarat": {
        "commission": ("5_percent", "dragon_7_push", "six_pays_half"),
        "jackpot": ("none", "A", "B", "C"),
    },
    "macau.blackjack": {"edition": ("2009", "2004"), "procedure": ("2", "1", "3")},
    "macau.cussec": {"edition": ("2004", "2003")},
    "macau.fish-prawn-crab": {"edition": ("2004",)},
    "macau.roulette": {"edition": ("2004", "2003")},
    "angola.craps": {"bar": ("12", "2"), "place_4_10": ("9_to_5", "as_printed")},
    "angola.baccarat": {"deduction": ("none", "2_percent", "20_percent_on_5")},
    "angola.baccarat-macau": {"deduction": ("none", "5_percent", "50_percent_on_5")},
}
# Options that exclude each other, at the ends of what is allowed: words of the refusal, or none where they are taken.
TOGETHER: list[tuple[str, dict[str, Any], str]] = [
    ("angola.american-roulette", {"minimum": 1, "maximum_straight": 25, "chip_values": [1, 25]}, ""),
    ("angola.american-roulette", {"minimum": 1, "maximum_straight": 25, "chip_values": [26]}, "straight (25)"),
    ("angola.american-roulette", {"chip_values": [10]}, "straight (0)"),
    ("angola.blackjack", {"minimum": 10, "maximum": 10}, ""),
    ("angola.blackjack", {"minimum": 10, "maximum": 9}, "art. 6(42)"),
    ("angola.blackjack", {"minimum": 10, "maximum": 300}, ""),
    ("angola.blackjack", {"minimum": 10, "maximum": 301}, "art. 6(42)"),
    ("angola.french-bank", {"minimum": 5, "maximum_aces": 5, "maximum_small_big": 5}, ""),
    ("angola.french-bank", {"minimum": 5, "maximum_aces": 4}, "art. 3(16)a"),
    ("angola.french-bank", {"minimum": 5, "maximum_small_big": 4}, "art. 3(16)b"),
    ("angola.stud-poker", {"minimum": 10, "maximum": 10}, ""),
    ("angola.stud-poker", {"minimum": 10, "maximum": 9}, "art. 9(15)"),
    ("angola.stud-poker", {"jackpot_pays": ["royal_flush", "straight_flush"]}, ""),
    ("angola.stud-poker", {"jackpot_seed": 10_000}, ""),
    ("angola.stud-poker", {"jackpot_seed": 9_999}, "art. 9(12)"),
]
BLACKJACK = {
    "main": "1; blackjack 3/2",
    "double": "1",
    "insurance": "2",
    "any_pair": "11",
    "sevens": "50, 150, 500 or 5000",
    "over_13": "1",
    "under_13": "1",
    "winning_streak_2": "3",
    "winning_streak_3": "8",
    "winning_streak_4": "18",
    "winning_streak_5": "38",
}
ACROSS = {f"{name}:n": BLACKJACK[name] for name in ("any_pair", "sevens", "over_13", "under_13")}
STUD = {"ante": "1", "raise": "1 to 100", "jackpot": "pool, share or fixed"}
BACCARAT = {"player": "1", "banker": "1", "tie": "8", "player_pair": "11", "banker_pair": "11"}
# The odds that a table prints for its bets, with these options.
ODDS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("macau.baccarat", {}, {**BACCARAT, "banker": "19/20", "dragon_7": "40", "lucky_6": "12 or 20"}),
    (
        "macau.baccarat",
        {"commission": "dragon_7_push"},
        {**BACCARAT, "banker": "1; comes back on a dragon 7", "dragon_7": "40", "lucky_6": "12 or 20"},
    ),
    ("macau.blackjack", {"bets_offered": [*BLACKJACK]}, BLACKJACK | ACROSS),
    (
        "angola.blackjack",
        {},
        {
            "main": "1; blackjack 3/2",
            "double": "1",
            "insurance": "2",
            "main:n": "1; blackjack 3/2",
            "double:n": "1",
            "insurance:n": "2",
        },
    ),
    ("macau.stud-poker", {}, STUD),
    ("angola.stud-poker", {}, STUD),
    ("angola.baccarat", {}, BACCARAT),
    ("angola.baccarat", {"deduction": "2_percent"}, {**BACCARAT, "banker": "49/50"}),
    ("angola.baccarat", {"deduction": "20_percent_on_5"}, {**BACCARAT, "banker": "1, or 4/5 with 5"}),
    ("angola.baccarat-macau", {"deduction": "5_percent"}, {**BACCARAT, "banker": "19/20"}),
    ("angola.baccarat-macau", {"deduction": "50_percent_on_5"}, {**BACCARAT, "banker": "1, or 1/2 with 5"}),
    ("angola.baccarat-macau", {}, BACCARAT),
]
# The largest prize of each bet, by which a stake that nothing could pay is refused.
LARGEST: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("macau.baccarat", {}, {**BACCARAT, "banker": "19/20", "dragon_7": "40", "lucky_6": "20"}),
    ("angola.baccarat", {"deduction": "2_percent"}, {**BACCARAT, "banker": "49/50"}),
    ("angola.french-bank", {}, {"aces": "61", "small": "1", "big": "1", "small_line": "1/2", "big_line": "1/2"}),
]


def options(ruleset: str, given: dict[str, Any]) -> Any:
    return msgspec.convert(given, RULESETS[ruleset].Options)


def is_taken(ruleset: str, given: dict[str, Any]) -> bool:
    """Whether the values are within their numbers; that one excludes another is another question."""
    try:
        options(ruleset, given)
    except msgspec.ValidationError as error:
        return "Expected" not in str(error) and "Invalid enum value" not in str(error)
    return True


@pytest.mark.parametrize("ruleset", NUMBERS)
def test_an_option_is_taken_to_its_ends_and_not_one_further(ruleset: str) -> None:
    for name, (least, most, usual) in {**NUMBERS[ruleset], "smallest_chip": (1, None, 1)}.items():
        assert getattr(options(ruleset, {}), name) == usual, name
        assert is_taken(ruleset, {name: least}), name
        assert not is_taken(ruleset, {name: least - 1}), name
        assert is_taken(ruleset, {name: 10**9 if most is None else most}), name
        assert most is None or not is_taken(ruleset, {name: most + 1}), name


@pytest.mark.parametrize("ruleset", EDITIONS)
def test_an_option_in_words_has_these_and_the_first_is_usual(ruleset: str) -> None:
    for name, words in EDITIONS[ruleset].items():
        assert getattr(options(ruleset, {}), name) == words[0], name
        assert all(is_taken(ruleset, {name: word}) for word in words), name
        schema: dict[str, Any] = msgspec.json.schema(RULESETS[ruleset].Options)["$defs"]
        (fields,) = (one["properties"] for one in schema.values() if name in one["properties"])
        assert sorted(fields[name]["enum"]) == sorted(words), name


@pytest.mark.parametrize(("ruleset", "given", "refusal"), TOGETHER)
def test_options_are_taken_together_up_to_what_the_text_excludes(
    ruleset: str, given: dict[str, Any], refusal: str
) -> None:
    if not refusal:
        assert options_from(RULESETS[ruleset], given)
        return
    with pytest.raises(BadOption) as refused:
        options_from(RULESETS[ruleset], given)
    assert refusal in str(refused.value)


@pytest.mark.parametrize(("ruleset", "given", "prizes"), LARGEST)
def test_the_largest_prize_of_each_bet(ruleset: str, given: dict[str, Any], prizes: dict[str, str]) -> None:
    game: Any = without_duties(RULESETS[ruleset](options(ruleset, given)))
    limits = game.limits
    found = {bet: limits.most_returned([Wager(1, bet, 100)]) / 100 - 1 for bet in prizes}
    assert found == {bet: Fraction(prize) for bet, prize in prizes.items()}


@pytest.mark.parametrize(("ruleset", "given", "printed"), ODDS)
def test_each_bet_is_shown_with_its_printed_odds(ruleset: str, given: dict[str, Any], printed: dict[str, str]) -> None:
    shown = {bet.id: bet.pays for bet in RULESETS[ruleset](options(ruleset, given)).bets()}
    assert shown == printed


def test_bets_of_further_players_on_a_seat_are_shown_where_the_house_lets_them_bet() -> None:
    for bettors, shown in ((1, False), (2, True)):
        game = RULESETS["macau.blackjack"](options("macau.blackjack", {"bettors": bettors}))
        assert ("main:n" in {bet.id for bet in game.bets()}) == shown


def test_the_rounds_of_a_whole_fantan_table_have_each_remainder_once() -> None:
    """The computed edges count them with equal weight."""
    counts = [event.count for round_ in Fantan.whole_rounds() for event in round_ if isinstance(event, ButtonsCounted)]
    assert sorted(count % 4 for count in counts) == [0, 1, 2, 3]


@pytest.mark.parametrize("ruleset", NUMBERS)
def test_a_result_names_the_edition_of_its_text(ruleset: str) -> None:
    verdicts = play(RULESETS[ruleset](options(ruleset, {})), [BetsOpened(), RoundVoided("supervisor")])
    year = {"macau.baccarat": "2018", "macau.blackjack": "2009"}.get(
        ruleset, "2022" if ruleset.startswith("angola.") else "2004"
    )
    assert [one.edition for one in results(verdicts)] == [year]
