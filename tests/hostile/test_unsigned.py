"""Sites without keys: nothing that an edge's or the rules' broker password alone can say is believed as shipped."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from daemon.broker.mac_keys import load_mac_key, load_mac_keys, make_mac_keys
from daemon.broker.session import Message
from daemon.cli import doctor
from daemon.cli.main import main
from daemon.config.model import load
from daemon.consumer.consumer import Consumer
from daemon.jackpots.process import Jackpots
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.contract.topics import Wire, decode_wire, encode_wire, is_mac, mac_of

SITE = """\
[site]
name = "s"
[edge]
name = "edge-1"
journal = "{folder}/edge.db"
[rules]
journal = "{folder}/rules.db"
[jackpots]
journal = "{folder}/jackpots.db"
order_public_key = "{folder}/none.pub"
[[table]]
name = "stud-1"
ruleset = "macau.stud-poker"
[[jackpot]]
name = "red"
tables = ["stud-1"]
seed = 1000
visible = "0.5"
"""
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "feltd.toml"
    path.write_text(SITE.format(folder=tmp_path), encoding="utf-8")
    return path


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("rules", "the password of an edge is enough to invent a result; make the keys with `feltd mac-keys`"),
        (
            "jackpots",
            "the password of the rules is enough to invent bets and wins; make the keys with",
        ),
    ],
)
def test_rules_and_jackpots_do_not_start_without_keys(config: Path, command: str, said: str) -> None:
    for one in (command, "check"):
        refused = run(one, "-c", config)
        assert refused.exit_code == 2
        assert said in refused.output
        assert f"or write insecure = true in [{command}]" in refused.output
    assert not (config.parent / f"{command}.db").exists()


def test_check_says_who_is_believed_without_keys(config: Path) -> None:
    text = config.read_text(encoding="utf-8")
    text = text.replace("[rules]", "[rules]\ninsecure = true").replace("[jackpots]", "[jackpots]\ninsecure = true")
    config.write_text(text.replace(f'order_public_key = "{config.parent}/none.pub"\n', ""), encoding="utf-8")
    said = run("check", "-c", config)
    assert said.exit_code == 0, said.output
    for section in ("rules", "jackpots"):
        assert f"[{section}]: insecure = true and no keys: messages of every broker user are accepted" in said.output


def test_doctor_says_who_is_believed_without_keys() -> None:
    clock = doctor.Clock(synchronized=True)
    facts = doctor.Facts(now=NOON, clock=clock, limit_mb=1, file_mb=1, credulous=("rules",))
    [_, line] = doctor.lines(facts)
    assert (line.check, line.state) == ("keys of the rules", doctor.State.WARNING)
    assert "feltd mac-keys" in line.remedy


def test_init_makes_the_keys(tmp_path: Path) -> None:
    path = tmp_path / "etc/feltd.toml"
    assert run("init", "-c", path, "--site", "s", "--edge", "edge-1", "--table", "t-1=macau.roulette").exit_code == 0
    assert run("check", "-c", path).exit_code == 0
    config = load(path)
    own = load_mac_key(Path(config.edge.mac_key_file))
    assert load_mac_keys(Path(config.rules.mac_key_folder)) == {"edge-1": own}
    assert load_mac_keys(Path(config.jackpots.mac_key_folder)) == {"edge-1": own}
    verdicts = load_mac_key(Path(config.rules.mac_key_file))
    assert load_mac_keys(Path(config.jackpots.verdict_key_folder)) == {"s": verdicts}
    assert own != verdicts
    for file in path.parent.rglob("*.key"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert run("mac-keys", "-c", path).output == "all keys are there\n"


def test_what_is_missing_is_made_and_what_is_there_is_kept(config: Path) -> None:
    folder = config.parent
    make_mac_keys(folder, "edge-1", "s")
    before = load_mac_key(folder / "edge-mac.key")
    (folder / "mac/edge-8.key").write_text((folder / "mac/edge-1.key").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "mac/edge-8.key").chmod(0o640)
    (folder / "mac/edge-1.key").unlink()
    made = run("mac-keys", "-c", config)
    assert made.output == f"{folder}/mac/edge-1.key: made\n"
    assert set(load_mac_keys(folder / "mac")) == {"edge-1", "edge-8"}
    assert load_mac_keys(folder / "mac")["edge-1"] == load_mac_key(folder / "edge-mac.key") == before


def test_the_jackpots_use_no_verdict_that_the_rules_did_not_sign(config: Path) -> None:
    """With the password of the rules, or an edge's key: neither opens a round of the pool."""
    folder = config.parent
    make_mac_keys(folder, "edge-1", "s")
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace(f'order_public_key = "{folder}/none.pub"\n', ""), encoding="utf-8")
    rules, books = Journal(folder / "rules.db"), Journal(folder / "jackpots.db")
    consumer, jackpots = Consumer(load(config), rules), Jackpots(load(config), books, now=lambda: NOON)
    data = msgspec.json.encode({"round": "stud-1:2026-11-20:1"})
    [row] = rules.append([Entry("stud-1", "round", "opened", NOON, data, cause="edge-1:stud-1:1/0")], {})
    topic, payload = consumer._message_of(row, False)
    true = decode_wire(payload)
    assert is_mac(true.mac, mac_of(true, load_mac_key(folder / "rules-mac.key")))

    def heard(wire: Wire) -> int:
        jackpots.take([Message(topic, encode_wire(wire), retain=False)])
        return sum(stream.expected - 1 for stream in jackpots._streams.values())

    bare = msgspec.structs.replace(true, mac=msgspec.UNSET)
    for forged in (bare, msgspec.structs.replace(bare, mac=mac_of(bare, load_mac_key(folder / "edge-mac.key")))):
        assert heard(forged) == 0
    assert heard(true) == 1
    rules.close()
    books.close()
