"""`--help`: every command fits a terminal of 80 columns and shows an example that the command understands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from daemon.cli.main import main

COLUMNS = 80


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        else:
            yield (*path, name), found


ALL = [pytest.param(path, command, id=" ".join(path) or "feltd") for path, command in commands()]


def shown(path: tuple[str, ...]) -> str:
    result = CliRunner().invoke(main, [*path, "--help"], env={"COLUMNS": str(COLUMNS), "TERM": "dumb"})
    assert result.exit_code == 0, result.output
    return result.output


def example_lines(text: str) -> list[str]:
    head, found, rest = text.partition("\n  Example")
    assert found, f"no example in:\n{head}"
    return [line.strip() for line in rest.splitlines()[1:] if line.strip()]


@pytest.mark.parametrize(("path", "command"), ALL)
def test_help_fits_eighty_columns(path: tuple[str, ...], command: click.Command) -> None:
    assert [line for line in shown(path).splitlines() if len(line) > COLUMNS] == []


@pytest.mark.parametrize(("path", "command"), [one for one in ALL if isinstance(one.values[1], click.Group)])
def test_lists_of_commands_say_whole_sentences(path: tuple[str, ...], command: click.Command) -> None:
    assert "..." not in shown(path).partition("\nCommands:")[2]


@pytest.mark.parametrize(("path", "command"), ALL)
def test_each_example_is_understood(
    path: tuple[str, ...], command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.ndjson").touch()
    examples = example_lines(shown(path))
    assert examples
    for line in examples:
        words = shlex.split(re.sub(r"^sudo (-u [\w-]+ )?", "", line))
        assert words[0] == "feltd"
        assert tuple(words[1 : 1 + len(path)]) == path, line
        understood(words[1:])


def understood(words: list[str]) -> None:
    """Raises click's error for an option or a command that does not exist."""
    found: click.Command = main
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        one = found.get_command(click.Context(found), name)
        assert one is not None, name
        found = one
    found.make_context("feltd", words).close()
