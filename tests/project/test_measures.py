"""`make measures` prints a row for each measure, and each row is a figure."""

import re
from pathlib import Path

from measures import counted, measures, touched

ROOT = Path(__file__).parents[2]
LIMITS = {
    "machines for the life of a round": 3.0,  # a period of a gaming machine has its own: decision 0215
    "structs of a round's state with 5 booleans or more": 0.0,
    "upward imports inside daemon": 0.0,
    "files for a whole device": 7.0,
    "files for a whole game": 7.0,
}
"""What may not grow; the functions an event passes are in test_functions_of_an_event.py."""
COUNTED = {
    *("product, lines", "of it on a table's computer, lines", "tests, lines"),
    *(f"functions an event passes, {name}" for name in ("edge", "rules", "tile")),
    *(f"rounds of stud poker that count under outages, {name}" for name in ("macau", "angola")),
}


def test_each_row_is_a_figure_and_what_was_reached_stays() -> None:
    rows = dict(row.split(": ", 1) for row in measures(ROOT))
    assert set(rows) == {*LIMITS, *COUNTED}
    figures = {name: float(re.split(r"[ ,]", text)[0]) for name, text in rows.items()}
    assert {name: figures[name] for name, limit in LIMITS.items() if figures[name] > limit} == {}
    assert all(figures[name] > 0 for name in COUNTED), rows


def test_what_a_checkout_does_not_have_says_so(tmp_path: Path) -> None:
    assert touched(tmp_path, "big_six.patch") == "not measured: no big_six.patch"
    [row] = counted(tmp_path, "no_counter", "import no_counter", "functions")
    assert row == "functions: not measured: ModuleNotFoundError: No module named 'no_counter'"
