"""The access list lets betting terminals ask and read answers at their own table, and nothing else."""

import re
from pathlib import Path

import pytest

from daemon.cli.access_list import BadSite, access_list
from daemon.config.model import load

URL = "mqtt://127.0.0.1:1883/?hear=felt/1/s/table/fan-1/wager&say=felt/1/s/table/fan-1/wager/result"
CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
username = "edge"
[rules]
username = "rules"
[[table]]
name = "fan-1"
ruleset = "macau.fantan"
[[table.device]]
name = "terminals-1"
driver = "bet_terminals"
url = "URL"
"""


def listed(folder: Path, url: str) -> dict[str, set[str]]:
    """The rights by user."""
    file = folder / "feltd.toml"
    file.write_text(CONFIG.replace("URL", url), encoding="utf-8")
    text = access_list([(file, load(file))])
    blocks = re.split(r"(?m)^user ", text)[1:]
    return {block.partition("\n")[0]: set(re.findall(r"(?m)^topic (.+)$", block)) for block in blocks}


def test_terminals_ask_and_the_edge_and_the_rules_answer(tmp_path: Path) -> None:
    rights = listed(tmp_path, f"{URL}&username=link&password_file=p")
    table = "felt/1/s/table/fan-1"
    assert rights["bets-fan-1"] == {f"write {table}/wager", f"read {table}/wager/result"}
    assert rights["link"] == {f"write {table}/wager/result", f"read {table}/wager"}
    assert {f"write {table}/wager/result", f"read {table}/wager"} <= rights["rules"]
    assert "read felt/1/s/table/+/wager/result" in rights["console"]
    may_bet = {user for user, topics in rights.items() if f"write {table}/wager" in topics}
    assert may_bet == {"bets-fan-1"}
    for user in ("reader", "display", "edge"):
        assert not any("wager" in topic.rpartition("/event/")[0] + topic for topic in rights[user]), user


def test_a_link_without_a_user_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(BadSite, match=r"feltd.toml:9: the link to the terminals of 'fan-1' has no user"):
        listed(tmp_path, URL)


def test_a_link_to_another_broker_needs_no_right_on_ours(tmp_path: Path) -> None:
    assert "bets-fan-1" not in listed(tmp_path, URL.replace("127.0.0.1", "192.0.2.1"))
