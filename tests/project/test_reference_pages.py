"""The generated reference pages are up to date and complete."""

import fdl_pages
import pytest
from reference_pages import PAGES, SECTIONS, configuration, pages

from daemon.cli.main import main


@pytest.mark.parametrize("name", ["configuration.md", "command-line.md", "topics.md"])
def test_the_page_in_docs_is_what_the_code_says(name: str) -> None:
    assert (PAGES / name).read_text(encoding="utf-8") == pages()[name], f"{name} is old: run `make docs`"


@pytest.mark.parametrize("name", fdl_pages.EVENTS)
def test_the_events_of_an_fdl_page_have_the_fields_of_the_code(name: str) -> None:
    assert (fdl_pages.PAGES / name).read_text(encoding="utf-8") == fdl_pages.page(name), (
        f"{name} is old: run `make docs`"
    )


def test_every_setting_has_a_meaning() -> None:
    rows = [line for line in configuration().splitlines() if line.startswith("| `")]
    assert len(rows) == sum(len(kind.__struct_fields__) for kind in SECTIONS.values())
    assert [row for row in rows if row.endswith("|  |")] == []


def test_every_command_has_its_help() -> None:
    page = pages()["command-line.md"]
    assert all(f"\n## feltd {name}\n" in page for name in main.commands)
