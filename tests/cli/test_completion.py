"""Completion in a shell knows every command and option. debian/rules puts its scripts into the package."""

import shutil
import subprocess

import pytest
from click.shell_completion import get_completion_class

from daemon.cli.main import main

SHELLS = ("bash", "zsh", "fish")


def completed(words: list[str], incomplete: str) -> set[str]:
    kind = get_completion_class("bash")
    assert kind is not None
    return {one.value for one in kind(main, {}, "feltd", "_FELTD_COMPLETE").get_completions(words, incomplete)}


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ([], "jour", {"journal"}),
        ([], "do", {"doctor"}),
        (["journal"], "ver", {"verify"}),
        (["journal", "verify"], "--wit", {"--witness"}),
        (["pki"], "re", {"renew", "revoke"}),
        (["console", "user"], "pass", {"password"}),
        (["console", "user", "add"], "--ro", {"--role"}),
        (["console", "user", "add", "maria", "--role"], "sup", {"supervisor"}),
        (["watch", "--severity"], "", {"info", "warning", "error"}),
    ],
)
def test_commands_options_and_choices_are_completed(words: list[str], incomplete: str, expected: set[str]) -> None:
    assert completed(words, incomplete) == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_is_one_that_it_reads(shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(main, {}, "feltd", "_FELTD_COMPLETE").source()
    assert "_FELTD_COMPLETE" in script
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} on this computer")
    subprocess.run([program, "-n"], input=script, text=True, check=True)
