"""The figures in docs/games/figures are what the rulesets give, and agree with what others have published."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import perm
from pathlib import Path
from random import Random

import msgspec
import pytest
from click.testing import CliRunner

from daemon import figures as module
from daemon.cli import main
from daemon.figures import GAMES, Figure, Variant, agrees, figures, figures_table, figures_toml
from protocols.events import BetsOpened, CardDrawn
from rules.cards import DECK, RANKS
from rules.enumerate_baccarat import jackpot_probabilities
from rules.macau_baccarat import BaccaratOptions, combination_a, due

KEPT = Path(__file__).parents[1] / "docs/games/figures"
every_game = pytest.mark.parametrize("name", GAMES)


class Kept(msgspec.Struct, forbid_unknown_fields=True):
    """A file, with every key in every table."""

    figure: tuple[dict[str, str], ...]


def kept(name: str) -> list[Figure]:
    tables = msgspec.toml.decode((KEPT / f"{name}.toml").read_bytes(), type=Kept).figure
    assert all(tuple(table) == Figure.__struct_fields__ for table in tables)
    return [Figure(**table) for table in tables]


def quick(variant: Variant) -> bool:
    """Not the jackpots, nor two options at once: `feltd figures macau.baccarat` makes them all in about a minute."""
    return "jackpot" not in variant.options and len(variant.options) < 2


@every_game
def test_what_is_kept_is_what_the_ruleset_gives(name: str) -> None:
    variants = [variant for variant in GAMES[name].variants if quick(variant)]
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
            offered = module.ruleset_of(name, variant.options).bets()
            assert here == {bet.id.partition(":")[0] for bet in offered}


def names(row: Figure) -> list[str]:
    return row.bet.split(", ")


@every_game
def test_published_figures_are_ours_or_it_is_said_why_not(name: str) -> None:
    rows = kept(name)
    for row in rows:
        assert agrees(row) == (row.difference == ""), row
        assert bool(row.published) == bool(row.source)
        assert row.method == "exact"
    assert sum(bool(row.published) for row in rows) >= len(GAMES[name].published)


@every_game
def test_the_file_is_what_the_command_writes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = kept(name)
    assert (KEPT / f"{name}.toml").read_text(encoding="utf-8") == figures_toml(name, rows)
    monkeypatch.setattr(module, "figures", kept)
    assert CliRunner().invoke(main, ["figures", name, "--write", str(tmp_path / "new")]).exit_code == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"{name}.toml"]
    assert (tmp_path / "new" / f"{name}.toml").read_bytes() == (KEPT / f"{name}.toml").read_bytes()
    done = CliRunner().invoke(main, ["figures", name, "--json"])
    assert msgspec.json.decode(done.output, type=dict[str, list[Figure]]) == {name: rows}
    done = CliRunner().invoke(main, ["figures", name])
    assert done.output == figures_table(name, rows) + "\n"
    for row in rows:
        assert row.probability in done.output
        assert row.edge_percent in done.output


def test_a_game_without_figures_is_refused() -> None:
    done = CliRunner().invoke(main, ["figures", "macau.mahjong"])
    assert done.exit_code == 2
    assert "there are of: macau.baccarat" in done.output


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
    ruleset = module.ruleset_of("macau.roulette", {})
    with pytest.raises(RuntimeError, match="resolve no round"):
        module.played(ruleset, [BetsOpened()])


def test_bets_that_come_back_cost_nothing() -> None:
    """Without commission the banker's side with 6 pays half: p(win) - p(6)/2 - p(player), ties come back."""
    weights = module._baccarat({"commission": "six_pays_half"})
    six = weights["lucky_6"].probability
    banker, player = weights["banker"].probability, weights["player"].probability
    assert weights["banker"].edge == player - banker + six / 2
    assert weights["tie"].edge == 1 - 9 * weights["tie"].probability
    assert banker + player + weights["tie"].probability == 1


# ---- the jackpots


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
    rulesets = {which: module.ruleset_of("macau.baccarat", {"jackpot": which}) for which in "AC"}
    seen: Counter[str] = Counter()
    shoe = DECK * 8
    for _ in range(coups):
        dealt = rng.sample(shoe, 6)
        cards: tuple[str, ...] = ()
        while due(cards) is not None:
            cards += (dealt[len(cards)],)
        for which, ruleset in rulesets.items():
            seen.update(f"{which} {award.combination}" for award in module.played(ruleset, events(cards)).jackpots)
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
