"""The access list lets betting terminals, and other devices that speak MQTT, use their own topics, and nothing else."""

import re
from pathlib import Path

import pytest

from daemon.cli.access_list import BadSite, access_list
from daemon.cli.configuration_check import device_mistakes
from daemon.config.model import load

URL = "mqtt://127.0.0.1:1883/?hear=felt/1/s/table/fan-1/wager/*&say=felt/1/s/table/fan-1/wager/*/result"
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
options = { terminals = { t-1 = [1], t-2 = [2, 3] } }
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
    for one in ("t-1", "t-2"):
        assert rights[f"bets-fan-1-{one}"] == {f"write {table}/wager/{one}", f"read {table}/wager/{one}/result"}
    assert rights["link"] == {f"write {table}/wager/+/result", f"read {table}/wager/+"}
    assert {f"write {table}/wager/+/result", f"read {table}/wager/+"} <= rights["rules"]
    assert "read felt/1/s/table/+/wager/+/result" in rights["console"]
    may_bet = {
        user for user, topics in rights.items() if any(one.startswith(f"write {table}/wager/t-") for one in topics)
    }
    assert may_bet == {"bets-fan-1-t-1", "bets-fan-1-t-2"}
    for user in ("reader", "display", "edge"):
        assert not any("wager" in topic.rpartition("/event/")[0] + topic for topic in rights[user]), user


def test_a_link_without_a_user_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(BadSite, match=r"feltd.toml:15: the link to the terminals of 'fan-1' has no user"):
        listed(tmp_path, URL)


def test_a_link_to_another_broker_needs_no_right_on_ours(tmp_path: Path) -> None:
    assert "bets-fan-1-t-1" not in listed(tmp_path, URL.replace("127.0.0.1", "192.0.2.1"))


SHAKER = "mqtt://127.0.0.1:1883/?hear=ikg/billy/says&hear=ikg/billy/status&say=ikg/billy/listens"
STUDIO = """
[[table]]
name = "cus-1"
ruleset = "macau.cussec"
[[table.device]]
name = "shaker-1"
driver = "billy_iii"
url = "SHAKER"
[[table.device]]
name = "camera-1"
driver = "idp_dice"
url = "mqtt://localhost:1883/?hear=ikg/idp/response&say=ikg/idp/command&username=camera-link&password_file=p"
[[table.device]]
name = "camera-2"
driver = "idp_dice"
url = "mqtt://127.0.0.1:1883/?hear=ikg/idp2/response&say=ikg/idp2/command&username=link&password_file=p"
"""
OWN = f"{URL}&username=terminals&password_file=p"


def studio(folder: Path, shaker: str) -> dict[str, set[str]]:
    """The rights of a site with a shaker and two cameras that speak MQTT."""
    return listed(folder, OWN + '"' + STUDIO.replace("SHAKER", shaker).rstrip().removesuffix('"'))


def test_devices_that_speak_mqtt_use_their_own_topics(tmp_path: Path) -> None:
    rights = studio(tmp_path, f"{SHAKER}&username=link&password_file=p")
    assert rights["device-cus-1-shaker-1"] == {
        "write ikg/billy/says",
        "write ikg/billy/status",
        "read ikg/billy/listens",
    }
    assert rights["device-cus-1-camera-2"] == {"write ikg/idp2/response", "read ikg/idp2/command"}
    assert rights["link"] == {
        *("write ikg/billy/listens", "read ikg/billy/says", "read ikg/billy/status"),
        *("write ikg/idp2/command", "read ikg/idp2/response"),
    }
    assert rights["camera-link"] == {"write ikg/idp/command", "read ikg/idp/response"}
    for user in set(rights) - {"link", "camera-link"}:
        if not user.startswith("device-"):
            assert not any("ikg/" in topic for topic in rights[user]), user


@pytest.mark.parametrize(
    ("url", "mistake"),
    [
        (SHAKER, r"feltd.toml:22: the link to 'cus-1/shaker-1' has no user"),
        (
            f"{SHAKER.replace('ikg/billy/says', 'felt/1/s/table/cus-1/round/result')}&username=link&password_file=p",
            r"feltd.toml:22: felt/1/s/table/cus-1/round/result is a topic of ours",
        ),
        (f"{SHAKER}&username=edge&password_file=p", r"user 'edge' of the broker is edge 'e' and the link to devices"),
        (
            f"{SHAKER}&username=terminals&password_file=p",
            r"user 'terminals' of the broker is the link to the terminals",
        ),
    ],
)
def test_a_link_to_a_device_that_cannot_be_granted_is_a_mistake(tmp_path: Path, url: str, mistake: str) -> None:
    with pytest.raises(BadSite, match=mistake):
        studio(tmp_path, url)


def test_a_link_of_the_version_before_is_named_with_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "feltd.toml"
    file.write_text(CONFIG.replace("URL", URL.replace("/*", "")), encoding="utf-8")
    [mistake] = device_mistakes(load(file), file)
    topic = "felt/1/s/table/fan-1/wager/*"
    assert mistake.endswith(
        f":15: each betting terminal has a topic of its own: write hear={topic}&say={topic}/result in the url"
    )
