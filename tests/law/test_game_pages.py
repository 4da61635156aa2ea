"""Every paragraph of every game's text has its test, and the games' pages are what code, checklists and tests say."""

from functools import cache
from pathlib import Path

import pytest
from game_pages import (
    LAWS,
    PAGES,
    PROOFS,
    README,
    all_proofs,
    checklist,
    family,
    pages as made_pages,
    printed_bets,
    proofs_of,
    proven,
    read_tests as read,
    readme,
)

from rules import RULESETS
from rules.engine.ruleset import options_of
from rules.figures import figures, games

ROOT = Path(__file__).parents[2]
pages = cache(made_pages)

every_game = pytest.mark.parametrize("name", sorted(RULESETS))
every_law = pytest.mark.parametrize("name", [name for name in sorted(RULESETS) if not name.startswith("house.")])
"""A game by the house's own rules (rules/house) has no text of the law."""


# ---- the law of each game


@every_law
def test_every_game_has_its_checklist_of_the_law(name: str) -> None:
    law = checklist(name)
    assert law is not None, f"write rules/law/{name}.toml"
    assert law.articles
    assert not set(law.articles) & set(law.not_ours), "a paragraph is kept, or it is not"
    for key, words in {**law.articles, **law.not_ours}.items():
        assert words.strip(), f"{key}: say what it demands"


@every_law
def test_every_paragraph_is_proved_by_a_test(name: str) -> None:
    law = checklist(name)
    assert law is not None
    proved = {article for one in proofs_of(name) for article in one.tests}
    assert set(law.articles) - proved == set(), f"no test in the files with LAW = {name!r} carries these"


@every_law
def test_every_marker_names_a_paragraph_of_the_checklist(name: str) -> None:
    """Of a file that is of several games, a paragraph of one of them."""
    for one in proofs_of(name):
        texts = [law for law in map(checklist, one.laws) if law is not None]
        assert set(one.tests) - {article for law in texts for article in law.articles} == set(), one.name


def test_every_marker_stands_where_it_can_be_read() -> None:
    assert {one.name: one.mistakes for one in all_proofs() if one.mistakes} == {}


@every_game
def test_every_bet_and_every_option_is_tried_by_a_test_of_its_game(name: str) -> None:
    tried = {word for one in proofs_of(name) for word in one.words}
    bets = {family(bet.id) for offered in printed_bets(name).values() for bet in offered}
    options = {one.name for one in options_of(RULESETS[name].Options)}
    assert bets - tried == set()
    assert options - tried - {"limits"} == set()  # every ruleset has that: tests/rules/test_limits.py


def test_every_checklist_and_every_list_of_figures_is_of_a_game() -> None:
    found = {path.stem for path in LAWS.glob("*.toml")} | set(games())
    assert found - set(RULESETS) == set()


@every_game
def test_every_computed_figure_says_how_it_came_about(name: str) -> None:
    for one in figures(name):
        assert one.probability or one.edge_percent, one.bet
        assert one.method, one.bet
        assert one.source or not one.published, f"{one.bet}: a published figure has its source"


# ---- the pages


def test_the_pages_in_docs_are_what_the_code_says() -> None:
    made = pages()
    kept = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}
    assert set(kept) == set(made), "run `make games`, strike out what is gone"
    for name, text in made.items():
        assert kept[name] == text, f"docs/reference/games/{name} is old: run `make games`"


def test_the_proofs_that_the_console_shows_are_those_of_the_tests() -> None:
    assert PROOFS.read_bytes() == proven(), "run `make games`"


@pytest.mark.parametrize("name", ["README.md", *(f"{name}.md" for name in sorted(RULESETS))])
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name: str) -> None:
    columns = 0
    for line in pages()[name].splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        cells = line.replace("\\|", "").count("|")
        columns = columns or cells
        assert cells == columns, line


@every_game
def test_a_page_holds_every_bet_option_paragraph_and_figure(name: str) -> None:
    page, law = pages()[f"{name}.md"], checklist(name)
    for offered in printed_bets(name).values():
        for bet in offered:
            assert f"| `{bet.id}` | {bet.pays} | {bet.law} | " in page
    for option in options_of(RULESETS[name].Options):
        assert f"\n| `{option.name}` | " in page
        assert " ".join(option.text.split()) in page
    for key, words in {**law.articles, **law.not_ours}.items() if law is not None else ():
        assert f"\n| {key.rpartition(':')[2]} | {' '.join(words.split())} |" in page
    for figure in figures(name):
        assert f"\n| `{figure.bet}` |" in page
    assert "**none**" not in page


def test_the_index_and_the_readme_lead_to_the_pages() -> None:
    text = README.read_text(encoding="utf-8")
    assert readme(text) == text, "run `make games`"
    assert "docs/reference/games/README.md" in text
    for name in RULESETS:
        assert f"]({name}.md)" in pages()["README.md"]
        assert f"](docs/reference/games/{name}.md)" in text


# ---- the reader of the test files

SAMPLE = '''
"""Of an unreal_bet: what a docstring says is not tried."""
import pytest

LAW = "macau.roulette"


@pytest.mark.article("1(1)", "1(2)")
@pytest.mark.parametrize("bet", ["straight:7", "red"])
def test_one(bet):
    """Nor another_bet."""
    play(zero_combinations=True)


@pytest.mark.article("2")
class TestTwo:
    @pytest.mark.article("1(1)")
    async def test_inside(self): ...
'''
WRONG = {
    "@pytest.mark.article(KEY)\ndef test_a(): ...": "test_a: an article must stand as a string: KEY",
    "@pytest.mark.article()\ndef test_a(): ...": "test_a: a marker that names no article",
    "@pytest.mark.article\ndef test_a(): ...": "test_a: a marker that names no article",
    "@pytest.mark.article('1')\ndef helper(): ...": "line 2: an article marker that is on no test",
    "proof = pytest.mark.article('1')": "line 2: an article marker that is on no test",
    "@pytest.mark.skip\n@pytest.mark.article('1')\ndef test_a(): ...": (
        "test_a: proves nothing while it may be skipped or fail"
    ),
    "@pytest.mark.xfail(reason='x')\n@pytest.mark.article('1')\ndef test_a(): ...": (
        "test_a: proves nothing while it may be skipped or fail"
    ),
}


def written(folder: Path, text: str) -> Path:
    path = folder / "test_sample.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_markers_are_read_from_functions_and_classes(tmp_path: Path) -> None:
    found = read(written(tmp_path, SAMPLE))
    assert found.laws == ("macau.roulette",)
    assert found.tests == {"1(1)": ("test_one", "TestTwo::test_inside"), "1(2)": ("test_one",), "2": ("TestTwo",)}
    assert found.mistakes == ()


def test_what_is_tried_stands_in_values_and_arguments_not_in_docstrings(tmp_path: Path) -> None:
    words = read(written(tmp_path, SAMPLE)).words
    assert {"straight", "red", "zero_combinations"} <= words
    assert not {"unreal_bet", "another_bet"} & words


@pytest.mark.parametrize("text", WRONG)
def test_a_marker_that_proves_nothing_is_a_mistake(tmp_path: Path, text: str) -> None:
    assert read(written(tmp_path, f"LAW = 'macau.roulette'\n{text}")).mistakes == (WRONG[text],)


@pytest.mark.parametrize("law", ["", "LAW = 'macau.chess'\n", "LAW = KEY\n"])
def test_markers_of_no_game_are_a_mistake(tmp_path: Path, law: str) -> None:
    (mistake,) = read(written(tmp_path, f"{law}@pytest.mark.article('1')\ndef test_a(): ...")).mistakes
    assert "LAW names no ruleset" in mistake
