"""A few mutants of the rules, of numbers that the texts print; `make nightly` tries all of them."""

from pathlib import PurePath

import pytest
from helpers import at_length
from mutants import KNOWN, TESTS, TOP, WITHOUT_NUMBERS, Mutant, killers, known, mutants

# File, what its line holds, and what the number or the comparison becomes.
PRINTED = [
    ("rules/angola/craps.py", "timedelta(minutes=5)", "5 -> 6"),  # 4(13)c)ii
    ("rules/angola/craps.py", "if most and stake * odds(", "most -> most + 1"),  # 4(11)a)
    ("rules/angola/stud_poker.py", "if total <= most", "most -> most + 1"),  # 9(16)
    ("rules/angola/stud_poker.py", 'CATEGORY["flush"]: 0xFF0000', "16711680 -> 16711681"),  # 9(9)(d)
    ("rules/angola/american_roulette.py", "if lie[number] <= most", "most -> most + 1"),  # 1(35)d)
    ("rules/games/blackjack_watched.py", "if one.amount > left", "left -> left + 1"),  # 6(17)
]


def only(path: str, line: str, change: str) -> Mutant:
    (found,) = (one for one in mutants(path) if line in one.line and f"{one.was} -> {one.becomes}" == change)
    return found


@pytest.mark.parametrize("path", sorted({path for path, *_ in PRINTED[: at_length(2, len(PRINTED))]}))
def test_a_printed_number_that_is_changed_fails_a_test(path: str) -> None:
    chosen = [only(*one) for one in PRINTED if one[0] == path]
    assert [one.name for one, killer in killers(path, chosen) if not killer] == []


def test_one_process_answers_for_several_mutants_and_says_what_saw_each() -> None:
    """One that no test can see among two that are seen: a mutant leaves nothing behind for the next."""
    path = "rules/games/shuffler_watch.py"
    unseen = only(path, "packets=2", "2 -> 3")
    seen = [one for one in mutants(path) if one.name not in known()][:2]
    chosen = [seen[0], unseen, seen[1]]
    assert unseen.name in known()
    answers = list(killers(path, chosen))
    assert [one for one, _ in answers] == chosen
    first, none, last = (killer for _, killer in answers)
    assert "::test_" in first
    assert "::test_" in last
    assert not none


def test_all_printed_numbers_of_this_file_are_in_the_rules() -> None:
    assert len({only(*one).name for one in PRINTED}) == len(PRINTED)


def test_each_named_survivor_is_a_mutant_and_has_a_reason() -> None:
    names = {one.name for path in TESTS for one in mutants(path)}
    assert {*known()} <= names, f"{KNOWN} names what is no mutant any more"
    assert all(len(reason.split()) > 3 for reason in known().values())


def test_the_files_and_their_tests_are_there() -> None:
    assert [path for path, tests in TESTS.items() for one in (path, *tests) if not (TOP / one).is_file()] == []


def test_every_file_of_a_game_is_tried() -> None:
    """A file that a game gets later brings its numbers: it needs tests that see a change of them."""
    folders = (TOP / "rules" / name for name in ("angola", "macau", "games"))
    paths = {str(one.relative_to(TOP)) for folder in folders for one in folder.glob("*.py")}
    left = sorted(path for path in paths - TESTS.keys() if any(mutants(path)))
    excused = [path for path in left if any(PurePath(path).match(name) for name in WITHOUT_NUMBERS)]
    assert left == excused, "name its tests in TESTS of tests/support/mutants.py"
