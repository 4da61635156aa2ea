"""`feltd jackpot` and `feltd jackpots`: pools and books as text and JSON, and one message for what is wrong."""

import contextlib
import gc
import json
import logging
import re
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from pool_files import CONFIG, NOON, play, run

from daemon.broker.mac_keys import make_mac_keys
from daemon.cli.common import open_journal
from daemon.config.model import load
from daemon.jackpots.book import Ended, Seen
from daemon.jackpots.books import Books
from daemon.jackpots.ledger import contribute, end_round
from daemon.journal.store import Journal


@pytest.fixture(autouse=True)
def process_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "feltd.toml"
    path.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    return path


def test_pools_are_shown_as_text_and_as_json(config: Path) -> None:
    play(config, 2)
    shown = run("jackpot", "-c", config, "--wins", "--entries", "3")
    assert shown.exit_code == 0, shown.output
    for text in (
        "red  9,900.89 MOP  tables bac-1",
        "books       balance; 8 entries since 2026-11-20 12:00 UTC",
        "seed 10,000.00 MOP; of each bet 3/7 to the pool",
        "visible                              9,900.89 MOP + 5/7 of a minor unit",
        "win bac-1:1/1  paid  49.98 MOP  single_pair",
        "seat 1 16.66 MOP, seat 2 16.66 MOP, seat 3 16.66 MOP  by ana and rui",
        "odd coins 0.02 MOP, to the pool",
        "win bac-1:2/1  pending",
        "single_pair              50.00 MOP",
        "waits for a second person: p by ana: adjust: audit",
        "visible: 9,900.89 MOP -> 9,900.94 MOP",
        "8 2026-11-20 12:00:00 proposed",
        "paid 34986",
    ):
        assert text in shown.output, shown.output
    [pool] = json.loads(run("jackpot", "-c", config, "red", "--json", "--entries", "1").output)
    assert (pool["amount"], pool["unit"], pool["wrong"]) == (990_089, 7, "")
    assert sum(int(value) for value in pool["balances"].values()) == 0
    assert [win["id"] for win in pool["wins"]] == ["bac-1:2/1"]
    assert [entry["type"] for entry in pool["last"]] == ["proposed"]


def test_the_books_of_a_pool_are_exported_and_the_export_is_verified(config: Path, tmp_path: Path) -> None:
    play(config, 2)
    done = run("journal", "export", "-c", config, "red")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [lines[0]["place"], *(one["type"] for one in lines[1:3])] == ["red", "reset", "contributed"]
    assert (lines[1]["id"], lines[1]["source"]) == ("jackpots:red:1", "felt/1/s/jackpot/red")
    path = tmp_path / "red.ndjson"
    path.write_text(done.stdout, encoding="utf-8")
    checked = run("journal", "verify", path)
    assert checked.exit_code == 0, checked.output
    assert "leave --rules out" in run("journal", "export", "-c", config, "red", "--rules").output
    assert "bac-1, red" in run("journal", "export", "-c", config, "blue").output


def test_all_wins_that_wait_and_the_last_25_that_are_over_can_be_recalled(config: Path) -> None:
    """The first win alone is over: the others wait, however many there are."""
    play(config)
    wins = [f"bac-1:{n}/1" for n in (*range(2, 31), 1)]
    [pool] = json.loads(run("jackpot", "-c", config, "--wins", "--json").output)
    assert [win["id"] for win in pool["wins"]] == wins
    shown = run("jackpot", "-c", config, "--wins").output
    assert re.findall(r"^  win (\S+)", shown, re.MULTILINE) == wins


def test_the_last_100_rounds_can_be_recalled(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.jackpots.report.CHUNK", 50)
    play(config, 130)
    [pool] = json.loads(run("jackpot", "-c", config, "--rounds", "100", "--json").output)
    assert [one["round"] for one in pool["rounds"]] == [f"bac-1:{n}" for n in range(130, 30, -1)]
    assert {(one["bets"], one["staked"], one["won"]) for one in pool["rounds"]} == {(1, 100, 4998)}
    shown = run("jackpot", "-c", config, "--rounds", "2").output
    assert "round bac-1:130  2026-11-20 14:10:00 UTC  1 bets 1.00 MOP, won 49.98 MOP" in shown
    assert "round bac-1:128" not in shown
    assert len(json.loads(run("jackpot", "-c", config, "--rounds", "1000", "--json").output)[0]["rounds"]) == 130


@pytest.mark.parametrize("count", [1, 2])
def test_the_last_rounds_are_whole_beside_the_payment_of_an_older_one(
    config: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr("daemon.jackpots.report.CHUNK", 1)
    play(config, 3)
    [pool] = json.loads(run("jackpot", "-c", config, "--rounds", str(count), "--json").output)
    rounds = [(one["round"], one["bets"], one["won"]) for one in pool["rounds"]]
    assert rounds == [("bac-1:3", 1, 4998), ("bac-1:2", 1, 4998)][:count]


def test_an_entry_that_cannot_be_read_is_named(config: Path) -> None:
    """Also where it is older than the entries that are compared."""
    play(config, 60)
    with contextlib.closing(sqlite3.connect(config.parent / "jackpots.db")) as db, db:
        db.execute("UPDATE event SET data = x'7b' WHERE place = 'red' AND seq = 2")
    assert run("jackpot", "-c", config).exit_code == 0
    for words in (["--rounds", "100"], ["--entries", "200"], ["--check"]):
        shown = run("jackpot", "-c", config, *words)
        assert (shown.exit_code, "books       entry 2 cannot be read" in shown.output) == (1, True), shown.output
    [pool] = json.loads(run("jackpot", "-c", config, "--entries", "200", "--json").output)
    assert pool["last"][-2]["unreadable"].startswith("entry 2 cannot be read")
    table = run("jackpot", "-c", config, "--csv")
    assert (table.exit_code, "entry 2 cannot be read" in table.output) == (2, True), table.output


def test_books_that_do_not_agree_end_with_exit_code_1(config: Path) -> None:
    play(config, 2)
    with sqlite3.connect(config.parent / "jackpots.db") as db:
        db.execute("UPDATE memory SET value = ? WHERE key = 'book/red/balances'", (b'{"visible":5}',))
    db.close()
    shown = run("jackpot", "-c", config, "--check")
    assert (shown.exit_code, "books       the accounts sum to 5 and not to zero" in shown.output) == (1, True)
    make_mac_keys(config.parent, "e", "s")
    refused = run("jackpots", "-c", config)
    assert refused.exit_code == 2
    assert "pool red: the accounts sum to 5" in refused.output
    assert "tell the inspector" in refused.output


def test_what_is_wrong_is_one_message(config: Path, tmp_path: Path) -> None:
    assert "no jackpot 'blue'" in run("jackpot", "-c", config, "blue").output
    missing = run("jackpot", "-c", config)
    assert (missing.exit_code, "is `feltd jackpots` running here?" in missing.output) == (2, True)
    without = tmp_path / "without.toml"
    without.write_text('[site]\nname = "s"\n[edge]\nname = "e"\n', encoding="utf-8")
    refused = run("jackpots", "-c", without)
    assert (refused.exit_code, "no [[jackpot]] is configured" in refused.output) == (2, True)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('jackpot = "A"', 'jackpot = "none"', ":12: jackpot 'red': bac-1 offers no bet 'jackpot' with its options"),
        (
            'visible = "3/7"',
            'visible = "3/7"\nsigns = ["bac-1/con"]',
            "'red': bac-1/con is fdl_console, which shows no",
        ),
        (
            'ruleset = "macau.baccarat"\n[table.options]\njackpot = "A"\n',
            "",
            "bac-1 has no ruleset, which reports bets",
        ),
        ('tables = ["bac-1"]', 'tables = ["bac-2"]', ":14: jackpot 'red': no table 'bac-2'; did you mean 'bac-1'?"),
        ('tables = ["bac-1"]', "tables = []", "tables: name at least one"),
        (
            'visible = "3/7"',
            'visible = "3/0"',
            ":17: 'jackpot.visible': a part of a bet is 0, 1, a decimal or a fraction",
        ),
        ('visible = "3/7"', 'visible = "3/7"\nhidden = "5/7"', "'red': `visible` and `hidden` together are more"),
        ('visible = "3/7"', 'visible = "3/7"\nlimit = 5', "`limit` is below `seed`"),
        ('visible = "3/7"', 'visible = "3/7"\nsigns = ["bac-1/sgn"]', "no device 'bac-1/sgn'"),
        ("seed = 1000000\n", "", "'jackpot.seed' is missing"),
        ("single_pair", "single_pair = { fixed = -1 }\nx", "jackpot.prizes"),
        ("[jackpots]", '[jackpots]\nname = "e"', "that of the edge or the rules"),
    ],
)
def test_each_mistake_of_a_jackpot_is_named_with_its_line(config: Path, old: str, new: str, text: str) -> None:
    console = '[[table.device]]\nname = "con"\ndriver = "fdl_console"\nurl = "tcp://127.0.0.1:4001"\n[[jackpot]]'
    said = config.read_text(encoding="utf-8")
    assert old in said
    said = said.replace(old, new, 1)
    config.write_text(said.replace("[[jackpot]]", console, 1) if "bac-1/con" in new else said, encoding="utf-8")
    shown = run("check", "-c", config)
    assert (shown.exit_code, text in shown.output) == (2, True), shown.output


def test_two_pools_cannot_count_one_bet(config: Path) -> None:
    second = '[[jackpot]]\nname = "blue"\ntables = ["bac-1"]\nseed = 1\nvisible = "0.1"\n'
    config.write_text(config.read_text(encoding="utf-8") + second, encoding="utf-8")
    assert "bet 'jackpot' of bac-1 counts for 'red' already" in run("check", "-c", config).output
    config.write_text(config.read_text(encoding="utf-8").replace('"blue"', '"red"'), encoding="utf-8")
    assert "jackpot 'red' is there twice" in run("check", "-c", config).output


def test_a_good_configuration_names_its_pools(config: Path) -> None:
    config.write_text(config.read_text(encoding="utf-8").replace("[jackpots]", "[jackpots]\ninsecure = true"))
    make_mac_keys(config.parent, "e", "s")
    shown = run("check", "-c", config)
    assert (shown.exit_code, "  jackpot red: bac-1" in shown.output) == (0, True), shown.output


def test_a_contribution_is_in_the_entries(config: Path) -> None:
    play(config, 1)
    journal = Journal(config.parent / "jackpots.db")
    books = Books(journal, {"red": load(config).jackpot[0].terms()}, NOON)
    books.apply(contribute(books["red"], Seen("edge/A/bac-1", 1, "e:bac-1:9", NOON), "bac-1", 3, 50), "e:bac-1:9", NOON)
    books.commit()
    [pool] = json.loads(run("jackpot", "-c", config, "--json", "--entries", "1").output)  # beside the writer
    journal.close()
    assert (pool["last"][0]["cause"], pool["last"][0]["seat"]) == ("e:bac-1:9", 3)


def test_the_access_list_lets_the_jackpots_do_what_they_do_and_nobody_else(config: Path) -> None:
    said = config.read_text(encoding="utf-8").replace("[jackpots]", '[jackpots]\npassword_file = "/x"')
    said = said.replace("[edge]", '[rules]\npassword_file = "/y"\n[edge]')
    second = (
        '[[table]]\nname = "x-1"\n[[table.device]]\nname = "sign"\ndriver = "alpha_sign"\nurl = "tcp://127.0.0.1:1"\n'
    )
    second += '[[jackpot]]\nname = "hall"\ntables = ["x-1"]\ncounts = "devices"\nwins = "devices"\nseed = 1\n'
    config.write_text(said + second + 'visible = "0"\nsigns = ["x-1/sign"]\n', encoding="utf-8")
    refused = run("acl", config)
    assert "edge 'e' has no user" in refused.output
    config.write_text(config.read_text(encoding="utf-8").replace('name = "e"', 'name = "e"\npassword_file = "/z"'))
    blocks = {one.partition("\n")[0]: one for one in run("acl", config).output.split("\nuser ")}
    mine = blocks["jackpots"]
    for line in (
        "topic write felt/1/s/jackpot/red/level",
        "topic write felt/1/s/jackpot/red/books",
        "topic write felt/1/s/table/bac-1/round/cmd/replay",
        "topic write felt/1/s/table/x-1/device/sign/cmd/show-amount",
        "topic write felt/1/s/table/x-1/alert/jackpots-sign-sign",
        "topic write felt/1/s/table/bac-1/alert/jackpots-contested",
        "topic read felt/1/s/jackpot/hall/cmd/+",
        "topic read felt/1/s/table/bac-1/round/event/+",
        "topic read felt/1/s/table/x-1/device/+/event/+",
    ):
        assert f"{line}\n" in mine + "\n", line
    assert "bac-1/device/" not in mine  # the rules tell the bets there: it reads no card
    assert "topic write felt/1/s/jackpot/+/cmd/+" in blocks["console"]
    assert "topic read felt/1/s/jackpot/+/level" in blocks["reader"]
    for leaf in ("level", "books", "event/+", "cmd/+/result"):
        assert f"topic read felt/1/s/jackpot/+/{leaf}" in blocks["console"]
    assert not any("write felt/1/s/jackpot" in blocks[name] for name in ("e", "rules", "reader", "display"))
    config.write_text(config.read_text(encoding="utf-8").replace('password_file = "/x"', ""), encoding="utf-8")
    assert "jackpots 'jackpots' have no user of their own" in run("acl", config).output


def test_books_that_were_put_back_from_a_backup_go_on_from_their_last_entry(config: Path, tmp_path: Path) -> None:
    """As docs/how-to/operate-a-site.md says it: the disk is lost, the folder of the backup takes its place."""
    play(config)
    before = run("jackpot", "-c", config, "--json", "--check", "--entries", "5").stdout
    assert run("backup", "-c", config, tmp_path / "backup").exit_code == 0
    for lost in tmp_path.glob("jackpots.db*"):
        lost.unlink()
    for copy in (tmp_path / "backup/jackpots").iterdir():
        shutil.copyfile(copy, tmp_path / copy.name)
    assert run("jackpot", "-c", config, "--json", "--check", "--entries", "5").stdout == before
    loaded = load(config)
    journal = open_journal(loaded.jackpots.journal, loaded.journal)
    books = Books(journal, {"red": loaded.jackpot[0].terms()}, NOON)
    seen = Seen("rules/A/bac-1", 31, "e:bac-1:31/0", NOON + timedelta(minutes=31))
    books.apply(end_round(books["red"], seen, Ended("bac-1:31", "bac-1", (), stakes=((1, 100),))), seen.id, seen.at)
    books.commit()
    journal.close()
    [pool] = json.loads(run("jackpot", "-c", config, "--json", "--check", "--entries", "1").stdout)
    [was] = json.loads(before)
    assert pool != was
    assert pool["wrong"] == was["wrong"]
