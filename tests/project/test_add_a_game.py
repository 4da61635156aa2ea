"""CONTRIBUTING's "Add a game" as it was walked: a big six wheel by the house's rules, in a copy, passes all checks."""

import re
from pathlib import Path

import pytest
from overlay import Overlay

PATCH = Path(__file__).with_name("big_six.patch")
CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
GAME = "house.big-six"
MOST_FILES = 7
GENERATORS: tuple[tuple[str, ...], ...] = (
    ("daemon.cli", "compute-figures", GAME, "--write", "rules/figures"),
    ("tests.support.game_pages",),
    ("tests.support.reference_pages",),
    ("tests.support.devices_and_games",),
)
"""What `make docs` runs of them, and the figures of the game."""
FILES = (
    "tests/law/test_house_big_six.py",
    "tests/law/test_game_pages.py",
    "tests/project/test_house.py",
    "tests/project/test_sizes.py",
    "tests/project/test_reference_pages.py",
    "tests/rules/test_ruleset_registry.py",
    "tests/rules/test_rulesets.py",
    "tests/rules/test_limits.py",
    "tests/rules/test_settlements.py",
    "tests/rules/test_needs.py",
    "tests/rules/test_figures.py",
    "tests/contract/test_events.py",
    "tests/contract/test_schema.py",
    "tests/contract/test_payouts.py",
    "tests/consumer/test_consumer.py",
    "tests/consumer/test_numbering.py",
    "tests/consumer/test_wager_answers.py",
    "tests/edge/test_commands.py",
    "tests/edge/test_devices_and_games.py",
    "tests/console/test_console_rules.py",
    "tests/console/test_console_words.py",
    "tests/console/test_console_scoreboards.py",
    "tests/simulators/test_bench_rules.py",
    "tests/cli/test_command_line.py",
)
OF_ALL_GAMES = (
    "test_the_example_configuration_is_good_and_shows_every_device_and_game",
    "test_files_over_900_lines_have_a_reason",
    "test_the_pages_in_docs_are_what_the_code_says",
    "test_the_proofs_that_the_console_shows_are_those_of_the_tests",
    "test_the_index_and_the_readme_lead_to_the_pages",
    "test_every_marker_stands_where_it_can_be_read",
    "test_the_page_is_what_the_code_says",
    "test_every_ruleset_has_needs_with_articles",
    "test_the_document_in_docs_is_what_the_code_says",
    "test_the_words_are_those_of_the_glossary",
    "test_chinese_punctuation_is_full_width",
    "test_each_language_has_every_word_with_the_same_values",
    "test_every_ruleset_is_measured",
    *("test_every_opened_round_ends_exactly_once_or_is_still_open", "test_no_more_is_settled_than_was_laid"),
    *("test_who_looks_at_the_phase_sees_each_doubt_until_it_is_over", "test_a_result_rests_on_events_that_happened"),
    *(
        "test_the_same_night_gives_the_same_verdicts_byte_for_byte",
        "test_no_result_comes_of_an_event_that_others_overtook",
    ),
    *("test_a_state_may_be_written_down_and_read_back_at_any_point",),
    *("test_what_the_house_gains_the_players_lose_to_the_last_coin", "test_whatever_a_game_says_has_its_words"),
)
"""The tests that look at all games at once; all others have its name."""


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Overlay:
    made = Overlay(PATCH, tmp_path_factory.mktemp("game") / "feltd")
    for words in GENERATORS:
        made.python(*words)
    schema = made.python("daemon.cli", "schema")
    (made.folder / "docs/reference/asyncapi.json").write_text(schema, encoding="utf-8")
    return made


def test_a_game_is_the_files_that_contributing_names(overlay: Overlay) -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    path = text[text.index("## Add a game") : text.index("A game of the law")]
    named = set(re.findall(r"(?m)^\d\. \*\*[^`\n]*`([^`]+)`", path))
    law, _, game = GAME.partition(".")
    words = {"<law>": law, "<game>": game.replace("-", "_"), "<id>": GAME}
    places = {re.sub("<[a-z]+>", lambda one: words[one[0]], name) for name in named}
    assert places == set(overlay.touched)
    assert len(overlay.touched) <= MOST_FILES


def test_it_passes_the_checks_of_a_game(overlay: Overlay) -> None:
    """Its own tests, and those that each game has in common: rounds, limits, settlements, figures, words, pages."""
    passed = overlay.tests(*FILES, "-k", " or ".join(("big", *OF_ALL_GAMES)))
    assert passed >= len(OF_ALL_GAMES) + 50


def test_it_is_played_and_listed(overlay: Overlay) -> None:
    assert f"{GAME}  " in overlay.python("daemon.cli", "rulesets")
    assert "crown   40 to 1  rule 3" in overlay.python("daemon.cli", "rulesets", GAME)


def test_its_code_has_the_project_s_style(overlay: Overlay) -> None:
    files = [name for name in overlay.touched if name.endswith(".py")]
    overlay.python("ruff", "check", *files)
    overlay.python("ruff", "format", "--check", *files)
