"""Games are registered under their ids, and the rules load those of their tables alone."""

import subprocess
import sys

import pytest

from rules import RULESETS


@pytest.mark.parametrize("name", RULESETS)
def test_ruleset_has_the_id_of_its_file(name: str) -> None:
    assert RULESETS[name].id == name
    assert RULESETS[name] is RULESETS[name]


def test_unknown_ruleset_is_not_there() -> None:
    assert "macau.x" not in RULESETS
    assert RULESETS.get("macau.x") is None


def test_rules_load_no_game_before_they_have_a_table_of_it() -> None:
    text = "import sys, daemon.cli.main, daemon.cli.configuration_check, daemon.consumer.consumer; "
    text += "from rules import RULESETS; "
    text += "RULESETS['macau.fantan']; print(*(one for one in sys.modules if one.startswith(('rules.macau.', "
    text += "'rules.angola.', 'rules.games.'))), *(one for one in ('importlib.metadata', 'aiomqtt', 'babel') "
    text += "if one in sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"rules.macau.fantan"}
