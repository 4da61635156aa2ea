"""The figures in rules/figures are what the rulesets give, and agree with what others have published."""

import re
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb, perm
from pathlib import Path
from random import Random

import msgspec
import pytest
from click.testing import CliRunner
from helpers import at_length

from daemon.cli.main import main
from protocols.contract.events import BetsOpened, CardDrawn
from rules.figures import Figure, figures_table
from rules.games.baccarat import due
from rules.games.cards import DECK, RANKS
from rules.games.poker import strength
from rules.games.stud_poker_game import OPENING
from rules.macau.baccarat import BaccaratOptions, combination_a
from rules.macau.blackjack import Blackjack
from simulators.lab.figures import cards, command, craps, figure, figures as module, stud_poker
from simulators.lab.figures.cards import CardWantedError, hand_played, raises
from simulators.lab.figures.enumerate_baccarat import jackpot_probabilities
from simulators.lab.figures.figure import Variant
from simulators.lab.figures.figures import GAMES, agrees, figures, figures_toml

KEPT = Path(__file__).parents[2] / "rules/figures"
every_game = pytest.mark.parametrize("name", GAMES)


class Kept(msgspec.Struct, forbid_unknown_fields=True):
    """A file, with every key in every table."""

    figure: tuple[dict[str, str], ...]


def kept(name: str) -> list[Figure]:
    tables = msgspec.toml.decode((KEPT / f"{name}.toml").read_bytes(), type=Kept).figure
    assert all(tuple(table) == Figure.__struct_fields__ for table in tables)
    return [Figure(**table) for table in tables]


STUD = ("angola.stud-poker", "macau.stud-poker")
SIMULATED = ("angola.blackjack", "macau.blackjack", *STUD)


def quick(variant: Variant) -> bool:
    """Not the jackpots, nor two options at once: the command makes them all in about a minute."""
    return "jackpot" not in variant.options and len(variant.options) < 2


@pytest.mark.parametrize("name", [name for name in GAMES if name not in SIMULATED])
def test_what_is_kept_is_what_the_ruleset_gives(name: str) -> None:
    variants = [variant for variant in GAMES[name].variants if quick(variant)][:: at_length(6, 1)]
    texts = {variant.text for variant in variants}
    assert [row for row in kept(name) if row.options in texts] == figures(name, variants)


@every_game
def test_every_set_of_options_changes_something_and_is_kept(name: str) -> None:
    assert list(dict.fromkeys(row.options for row in kept(name))) == [one.text for one in GAMES[name].variants]


@every_game
def test_every_bet_offered_has_its_figure(name: str) -> None:
    rows = kept(name)
    for variant in GAMES[name].variants:
        if variant.beside is None:
            here = {member.partition(":")[0] for row in rows if row.options == variant.text for member in names(row)}
            offered = figure.ruleset_of(name, variant.options).bets()
            assert here - {"dealer", "hand"} == {bet.id.partition(":")[0] for bet in offered}


def names(row: Figure) -> list[str]:
    return row.bet.split(", ")


@every_game
def test_published_figures_are_ours_or_it_is_said_why_not(name: str) -> None:
    rows = kept(name)
    for row in rows:
        simulated = row.method.startswith("simulated: ")
        # A simulated figure may be nearer to the published one than the rules that differ.
        assert agrees(row) == (row.difference == "") or (simulated and row.difference), row
        assert bool(row.published) == bool(row.source)
        assert simulated or row.method.partition(",")[0] == "exact"
        assert not simulated or name in SIMULATED
    assert sum(bool(row.published) for row in rows) >= len(GAMES[name].published)


@every_game
def test_a_simulated_figure_rests_on_ten_million_rounds(name: str) -> None:
    for row in kept(name):
        rounds = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) rounds", row.method)]
        assert bool(rounds) == row.method.startswith("simulated"), row
        assert all(number >= 10_000_000 for number in rounds), row


@every_game
def test_the_file_is_what_the_command_writes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = kept(name)
    assert (KEPT / f"{name}.toml").read_text(encoding="utf-8") == figures_toml(name, rows)
    monkeypatch.setattr(command, "figures", lambda of, _variants, _advanced: kept(of))
    assert CliRunner().invoke(main, ["compute-figures", name, "--write", str(tmp_path / "new")]).exit_code == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"{name}.toml"]
    assert (tmp_path / "new" / f"{name}.toml").read_bytes() == (KEPT / f"{name}.toml").read_bytes()
    done = CliRunner().invoke(main, ["figures", name, "--json"])
    assert msgspec.json.decode(done.output, type=dict[str, list[Figure]]) == {name: rows}
    done = CliRunner().invoke(main, ["figures", name])
    assert done.output == figures_table(name, rows) + "\n"
    for row in rows:
        assert row.probability in done.output
        assert row.edge_percent in done.output


def test_figures_of_given_options() -> None:
    done = CliRunner().invoke(main, ["compute-figures", "macau.cussec", "--option", "total_5_16=25", "--json"])
    rows = msgspec.json.decode(done.output, type=dict[str, list[Figure]])["macau.cussec"]
    assert {row.options for row in rows} == {"total_5_16=25"}
    by_bet = {row.bet: row for row in rows}
    assert by_bet["total:5, total:16"].edge_percent == "27.7778"
    assert by_bet["small"].edge_percent == "2.7778"  # also what these options do not change


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--option", "decks=7"], "name its ruleset"),
        (["macau.baccarat", "--option", "decks=7", "--write", "new"], "leave --write out"),
        (["macau.baccarat", "--option", "decks=3"], "decks: number 6..12"),
        (["macau.baccarat", "--option", "decks"], "write NAME=VALUE"),
    ],
)
def test_options_of_figures_that_cannot_be_are_refused(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["compute-figures", *words])
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize("command_name", ["figures", "compute-figures"])
def test_a_game_without_figures_is_refused(command_name: str) -> None:
    done = CliRunner().invoke(main, [command_name, "macau.mahjong"])
    assert done.exit_code == 2
    assert "available: " in done.output
    assert "macau.roulette" in done.output


# ---- the arithmetic


def test_a_published_figure_that_is_not_ours_is_seen() -> None:
    row = Figure("even", "", "0.500000", "0.0000", "probability 0.4861, edge 2.78 %", "somebody")
    assert not agrees(row)
    assert agrees(msgspec.structs.replace(row, published="probability 0.50, edge 0.0 %"))
    assert not agrees(msgspec.structs.replace(row, published="probability 0.50, edge 0.1 %"))
    assert agrees(msgspec.structs.replace(row, published=""))


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (Fraction(1, 2), "0.500000"),
        (Fraction(1, 37), "0.027027"),
        (Fraction(1, 1000), "0.001000"),
        (Fraction(1, 3000), "0.000333333"),
        (Fraction(1, 48_000_000), "0.0000000208333"),
        (Fraction(0), "0.000000"),
    ],
)
def test_small_probabilities_keep_six_digits(probability: Fraction, text: str) -> None:
    assert module._decimal(probability) == text


def test_a_round_that_does_not_end_has_no_weight() -> None:
    ruleset = figure.ruleset_of("macau.roulette", {})
    with pytest.raises(RuntimeError, match="resolve no round"):
        figure.played(ruleset, [BetsOpened()])


def test_bets_that_come_back_cost_nothing() -> None:
    """Without commission the banker's side with 6 pays half: p(win) - p(6)/2 - p(player), ties come back."""
    weights = GAMES["macau.baccarat"].weigh({"commission": "six_pays_half"})
    six = weights["lucky_6"].probability
    banker, player = weights["banker"].probability, weights["player"].probability
    assert weights["banker"].edge == player - banker + six / 2
    assert weights["tie"].edge == 1 - 9 * weights["tie"].probability
    assert banker + player + weights["tie"].probability == 1


def test_a_deduction_of_angola_lowers_the_prize_alone() -> None:
    """2 % of each win of the banker; and 20 % of a win with five, which is two fifths of 50 % by the other article."""
    bare, two, twenty = (
        GAMES["angola.baccarat"].weigh({"deduction": deduction})["banker"]
        for deduction in ("none", "2_percent", "20_percent_on_5")
    )
    half = GAMES["angola.baccarat-macau"].weigh({"deduction": "50_percent_on_5"})["banker"]
    assert bare.edge is not None
    assert two.edge == bare.edge + bare.probability / 50
    assert twenty.edge is not None
    assert half.edge is not None
    assert (twenty.edge - bare.edge) * 5 == (half.edge - bare.edge) * 2
    assert bare.edge < twenty.edge < two.edge < 0 < half.edge


# ---- the jackpots


def test_the_edges_of_craps_are_exact() -> None:
    """The fractions of the textbooks; the other bar changes none of them."""
    exact = {
        "pass": Fraction(7, 495),
        "come": Fraction(7, 495),
        "dont_pass": Fraction(3, 220),
        "dont_come": Fraction(3, 220),
        "place:6": Fraction(1, 66),
        "place:5": Fraction(1, 25),
        "place:4": Fraction(1, 15),
        "field": Fraction(1, 18),
        "hard_6": Fraction(1, 11),
        "hard_4": Fraction(1, 9),
        "pass_odds:4": Fraction(0),
        "dont_come_odds:6": Fraction(0),
    }
    weights = craps.weigh({})
    assert {bet: weights[bet].edge for bet in exact} == exact
    assert weights["pass"].probability == Fraction(244, 495)
    assert craps.weigh({"bar": "2"}) == weights
    printed = craps.weigh({"dont_odds": "as_printed"})
    assert [printed[f"dont_pass_odds:{point}"].edge for point in (4, 5, 6)] == [-1, Fraction(-1, 2), Fraction(-1, 5)]


def test_jackpot_a_but_for_its_straights_is_decided_by_four_cards() -> None:
    found = jackpot_probabilities(BaccaratOptions(jackpot="A", decks=6))
    assert sum(found.values()) < Fraction(15, 100)
    assert found["paradise_straight"] == 3 * found["royal_flush"]
    expected: dict[str, Fraction] = {}
    for ranks in product(RANKS, repeat=4):
        combination = combination_a(tuple(f"{rank}S" for rank in ranks), "points")
        ways = 1
        for copies in Counter(ranks).values():
            ways *= perm(24, copies)
        expected[combination] = expected.get(combination, Fraction()) + Fraction(ways, perm(312, 4))
    for combination in ("four_of_a_kind", "double_pairs", "three_of_a_kind", "single_pair"):
        assert found[combination] == expected[combination]
    assert list(found) == ["royal_flush", "paradise_straight", *list(found)[2:]]


def test_jackpots_dealt_from_shuffled_decks_fall_as_often_as_counted() -> None:
    """Suits and all, through the ruleset, from the front of a shoe: within five standard errors."""
    coups, rng = 20_000, Random(1)
    rulesets = {which: figure.ruleset_of("macau.baccarat", {"jackpot": which}) for which in "AC"}
    seen: Counter[str] = Counter()
    shoe = DECK * 8
    for _ in range(coups):
        dealt = rng.sample(shoe, 6)
        cards: tuple[str, ...] = ()
        while due(cards) is not None:
            cards += (dealt[len(cards)],)
        for which, ruleset in rulesets.items():
            seen.update(f"{which} {award.combination}" for award in figure.played(ruleset, events(cards)).jackpots)
    for row in kept("macau.baccarat"):
        if row.options in ("jackpot=A", "jackpot=C"):
            expected = float(row.probability) * coups
            error = max(expected, 1.0) ** 0.5
            assert abs(seen[f"{row.options[-1]} {row.bet.removeprefix('jackpot:')}"] - expected) < 5 * error, row


def events(cards: tuple[str, ...]) -> list[CardDrawn]:
    return [CardDrawn(card) for card in cards]


def test_jackpot_rows_belong_together() -> None:
    rows = {(row.options, row.bet): row for row in kept("macau.baccarat")}
    for decks in ("", ", decks=6"):
        b, c = f"jackpot=B{decks}", f"jackpot=C{decks}"
        for combination in ("five_same", "double_three", "four_same", "three_same"):
            assert rows[b, f"jackpot:{combination}"].probability == rows[c, f"jackpot:{combination}"].probability
        six = float(rows[c, "jackpot:six_same_colour"].probability) + float(rows[c, "jackpot:six_same"].probability)
        assert six == pytest.approx(float(rows[b, "jackpot:six_same"].probability), rel=1e-5)
    assert all(row.edge_percent == "" for (_, bet), row in rows.items() if bet.startswith("jackpot:"))


# ---- blackjack and stud poker: `feltd compute-figures macau.blackjack` plays fifty million rounds


def stays(row: Figure, weight: figure.Weight) -> None:
    """The exact row as it is kept."""
    assert weight.edge is None or row.edge_percent == f"{float(weight.edge * 100):.4f}"
    assert row.probability == module._decimal(weight.probability)
    assert row.method == weight.method


def exact_rows(name: str, options: str) -> dict[str, Figure]:
    return {row.bet: row for row in kept(name) if row.options == options and row.method.startswith("exact")}


def test_the_exact_bets_of_blackjack_are_as_kept() -> None:
    found = module.blackjack_exact({})
    rows = exact_rows("macau.blackjack", "")
    assert set(rows) == set(found) == {"insurance", "any_pair", "sevens", "over_13", "under_13"}
    for bet, row in rows.items():
        stays(row, found[bet])
    found = module.blackjack_exact(module.ALL_BETS)
    (row,) = exact_rows("macau.blackjack", figure.said(module.ALL_BETS)).values()
    assert row.bet == "perfect_pair"
    stays(row, found["perfect_pair"])


def test_the_first_cards_of_blackjack_by_hand() -> None:
    """Counted without the ruleset: 312 cards, of each rank 24, of each card six."""
    found = module.blackjack_exact({"bets_offered": "main,double,insurance,any_pair,sevens,perfect_pair"})
    assert found["insurance"].probability == Fraction(96, 311)
    assert found["insurance"].edge == 1 - 3 * Fraction(96, 311)
    assert found["any_pair"].probability == found["perfect_pair"].probability == Fraction(23, 311)
    assert found["perfect_pair"].edge == 1 - Fraction(5 * 26 + 6 * 13 + 12 * 6, 311)
    assert found["sevens"].probability == Fraction(24 * 23, 312 * 311)
    same, mixed = Fraction(6 * 5 * 4, 312 * 311), Fraction(6 * 18 * 4, 312 * 311)
    one_suit, third = same * Fraction(4, 310), Fraction(22, 310)
    back = 5001 * one_suit + 501 * (same * third - one_suit + mixed * third)
    back += (151 * same + 51 * mixed) * (1 - third)
    assert found["sevens"].edge == 1 - back
    # After the first pair at least two more cards may make one each, and few more come.
    edge = found["any_pair"].edge
    assert edge is not None
    pairs = ((1 - edge) / Fraction(23, 311) - 1) / 11
    assert 1 + 2 * Fraction(22, 310) < pairs < 1 + 3 * Fraction(22, 310)


def test_a_seat_that_splits_to_the_end_is_paid_for_every_pair() -> None:
    ruleset = figure.ruleset_of("macau.blackjack", {})
    assert isinstance(ruleset, Blackjack)
    result = hand_played(ruleset, ("8S",) * 4 + ("9C",) * 4)
    assert [win.pays for win in result.winners if win.bet == "any_pair"] == ["33"]
    with pytest.raises(CardWantedError):
        hand_played(ruleset, ("8S",) * 4 + ("9C",) * 3)


@pytest.mark.parametrize("variant", [Variant({}), Variant({"procedure": "3"}), Variant(module.AS_ELSEWHERE)])
def test_the_simulated_rounds_of_blackjack_are_as_kept(variant: Variant) -> None:
    """Another run, short: within five standard errors of the two together."""
    plain = variant.options == module.AS_ELSEWHERE
    tally = cards._blackjack(dict(variant.options), not plain, cards.PARTS, 6000)
    found = module.blackjack_simulated(variant.options, tally)
    rows = {row.bet: row for row in kept("macau.blackjack") if row.options == variant.text}
    for bet, edge in (("main", tally.edge()), ("double", tally.bets_edge())):
        assert found[bet].edge == Fraction(edge.mean)
        assert abs(float(rows[bet].edge_percent) / 100 - edge.mean) < 5.1 * edge.error
        won, number = float(rows[bet].probability), tally.bets if bet == "double" else tally.rounds
        assert abs(float(found[bet].probability) - won) < 5.1 * (won * (1 - won) / number) ** 0.5
    assert ("hand:five_cards" in rows) == (not plain)
    for bet in ("hand:five_cards", "hand:special_prize"):
        if not plain:
            expected = float(rows[bet].probability)
            assert abs(float(found[bet].probability) - expected) < 5.1 * (expected / tally.rounds) ** 0.5
    assert bool(tally.fives) == (not plain)
    assert tally.specials == 0 or not plain


@pytest.mark.parametrize("reading", ["stand", "any_soft"])
def test_another_soft_17_is_a_difference_to_the_default(reading: str) -> None:
    """The rounds themselves are those of the default; the house gains by every card more on a soft 17."""
    tally = cards._soft_17(reading, cards.PARTS, 6000)
    found = module.soft_17_simulated(cards.Tally(100, -1, 130, 42), tally)["main"]
    assert found.probability == Fraction(42, 100) + Fraction(tally.other_won, tally.rounds)
    assert float(found.edge or 0) == pytest.approx(0.005 - tally.differs().mean)
    (row,) = (row for row in kept("macau.blackjack") if row.options == f"soft_17={reading}" and row.bet == "main")
    (usual,) = (row for row in kept("macau.blackjack") if row.options == "" and row.bet == "main")
    less = float(usual.edge_percent) - float(row.edge_percent)
    assert abs(less / 100 - tally.differs().mean) < 5.1 * tally.differs().error
    assert (less > 0) == (reading == "stand")


def test_streaks_are_powers_of_the_rounds_won() -> None:
    tally = cards.Tally(rounds=100, won=45, lost=50, bets=1)
    found = module.blackjack_simulated(module.ALL_BETS, tally)
    for length, pays in ((2, 3), (3, 8), (4, 18), (5, 38)):
        bet = found[f"winning_streak_{length}"]
        assert bet.probability == Fraction(45, 95) ** length
        assert float(bet.edge or 0) == pytest.approx(1 - (pays + 1) * (45 / 95) ** length)
    assert "winning_streak_2" not in module.blackjack_simulated({}, tally)


def test_what_stands_in_the_way_of_a_strategy() -> None:
    """The tables are read as they are written, and a move that is not allowed becomes the next best."""
    usual = cards.Strategy(peeked=False, five_cards=True)

    def act(hand: str, up: int, *, split: bool = False, may_split: bool = False) -> str:
        return usual.action(tuple(hand.split()), up, split=split, may_split=may_split)

    assert act("TS 6S", 10) == "surrender"
    assert act("TS 6S", 10, split=True) == act("TS 6S", 1) == "hit"
    assert act("AS 7S", 6) == "double"
    assert act("AS 3S 4S", 6) == "stand"
    assert act("8S 8H", 6, may_split=True) == "split"
    assert act("8S 8H", 6) == "stand"
    assert act("2S 2H 3S 4S 5S", 6) == "five_cards"
    elsewhere = cards.Strategy(peeked=False, five_cards=False)
    assert elsewhere.action(("2S", "2H", "3S", "4S", "5S"), 6, split=False, may_split=False) == "stand"
    assert elsewhere.action(("2S", "2H", "2D"), 10, split=False, may_split=False) == "hit"
    assert act("8S 8H", 10, may_split=True) == "surrender"
    assert cards.Strategy(peeked=True, five_cards=True).action(("8S", "8H"), 10, split=False, may_split=True) == "split"


@pytest.mark.parametrize("name", STUD)
def test_the_exact_rows_of_stud_poker_are_as_kept(name: str) -> None:
    found = stud_poker.stud_exact()
    rows = exact_rows(name, "")
    assert set(rows) == set(found)
    for bet, row in rows.items():
        stays(row, found[bet])
    assert sum(weight.probability for bet, weight in found.items() if bet.startswith("hand:")) == 1
    # Neither a pair nor better, nor an ace with a king: of 1277 sets of ranks without a straight, 165 - 1 have both.
    odd = 1277 * (4**5 - 4)
    ace_king = 164 * (4**5 - 4)
    hands = 2_598_960
    better = hands - odd
    assert found["dealer:opens"].probability == Fraction(better + ace_king, hands)


@pytest.mark.parametrize("name", STUD)
def test_the_simulated_rounds_of_stud_poker_are_as_kept(name: str) -> None:
    tally = cards._stud(name, cards.PARTS, 20_000)
    rows = {row.bet: row for row in kept(name)}
    for bet, edge in (("ante", tally.edge()), ("raise", tally.bets_edge())):
        assert abs(float(rows[bet].edge_percent) / 100 - edge.mean) < 5.1 * edge.error
    found = stud_poker.stud_simulated(tally, "")
    for bet, number in (("ante", tally.rounds), ("raise", tally.bets)):
        won = float(rows[bet].probability)
        assert abs(float(found[bet].probability) - won) < 5.1 * (won * (1 - won) / number) ** 0.5


def test_how_much_the_published_table_of_stud_poker_gives_more() -> None:
    """Royals that meet an opening dealer, less what ties decided by suit are worth where a win pays more than one."""
    royal = [f"{rank}S" for rank in "TJQKA"]
    left = [card for card in DECK if card not in royal]
    opening = sum(strength(hand) << 2 >= OPENING for hand in combinations(left, 5))
    rounds = comb(52, 5) * comb(47, 5)
    royals = Fraction(4 * opening * 50 * 2, rounds)
    two_pairs = 78 * 11 * 6 * 6 * 12
    straights = 10 * (12**5 - 2 * 4 * 3**5 + 12)
    flushes = 1277 * 12
    ties = Fraction(two_pairs + 3 * straights + 4 * flushes + 49 * 10 * 12, rounds)
    assert f"{float(royals - ties) * 100:.4f}" == "0.0082"
    (ante,) = (row for row in kept("macau.stud-poker") if row.bet == "ante")
    assert "exactly 0.0082 % less" in ante.difference


@pytest.mark.parametrize(
    ("hand", "up", "raised"),
    [
        ("2S 2H 3S 4S 5D", "A", True),
        ("AS QH JS TS 9D", "9", False),
        ("AS KH 8S 7S 2D", "8", True),
        ("AS KH 8S 7S 2D", "A", False),
        ("AS KH JS 7S 2D", "A", True),
        ("AS KH JS 7S 2D", "K", True),
        ("AS KH JS 7S 2D", "3", False),
        ("AS KH QS 7S 2D", "6", True),
        ("AS KH QS 7S 2D", "8", False),
        ("AS KH QS 7S 2D", "7", True),
        ("AS KH QS 7S 5D", "6", True),
    ],
)
def test_what_is_raised(hand: str, up: str, raised: bool) -> None:
    cards_ = hand.split()
    assert raises(strength(cards_), "".join(card[0] for card in cards_), up) is raised


def test_a_part_is_the_same_whoever_plays_it() -> None:
    whole = cards.play_stud("macau.stud-poker", 80)
    parts = [cards._stud("macau.stud-poker", part, 2) for part in range(cards.PARTS)]
    assert sum(parts, cards.Tally()) == whole
    assert cards.play_blackjack({}, 45).rounds == 45
    assert cards.play_blackjack({}, 3) == sum((cards._blackjack({}, True, part, 1) for part in range(3)), cards.Tally())


def test_a_simulated_figure_may_be_three_errors_away() -> None:
    row = Figure(
        "main", "", "0.4", "0.3000", "edge 0.09 %", "somebody", method="x, standard error of the edge 0.0710 %"
    )
    assert agrees(row)
    assert not agrees(msgspec.structs.replace(row, method="x, standard error of the edge 0.0690 %"))
    assert not agrees(msgspec.structs.replace(row, method="exact"))
