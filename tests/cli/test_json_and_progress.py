"""Every command that prints facts prints them as JSON too; long work shows how far it is, on a terminal alone."""

import io
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from small_site import SMALL_SITE

from daemon.broker.mac_keys import make_mac_keys
from daemon.cli import listings
from daemon.cli.main import main
from daemon.cli.progress import EVERY_S, FIRST_AFTER_S, ProgressLine
from daemon.console.pages.bundle import STEPS
from daemon.journal.backup import back_up_journal
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from daemon.journal.verify import verify

WITHOUT_JSON = {
    "acl": "prints a file of mosquitto",
    "broker": "prints a file of mosquitto",
    "bundle": "writes one file and prints its path",
    "cards": "writes pages and prints nothing",
    "init": "writes the configuration",
    "journal key": "writes a key",
    "mac-key": "writes a key",
    "mac-keys": "writes keys",
    "pki init": "writes the authority",
    "journal export": "prints JSON, a line each row",
    "replay": "prints JSON, a line each event",
    "resolve": "prints JSON, a line each result",
    "schema": "prints one JSON document",
    "record": "prints a capture, which is a format of its own",
    "simulate": "is a device until Ctrl-C",
    "demo": "is a pit to look at; its summary is for people",
    "console": "serves pages until it is stopped, and logs",
    "edge": "runs until it is stopped, and logs",
    "jackpots": "runs until it is stopped, and logs",
    "rules": "runs until it is stopped, and logs",
    "forward": "runs until it is stopped, and logs",
    "ledger": "runs until it is stopped, and logs",
    "site init": "makes the streams and says so in a line",
    "site acl": "prints a file of the backbone",
    "site settle": "ends an alert and says so in a line",
    "site ledger": "makes the tables of the ledger and says so in a line",
    "journal witness": "runs until it is stopped, and logs",
    "console token add": "prints one secret and nothing else",
    "console token remove": "changes one token; its exit code says whether it did",
    "console user add": "changes one user; its exit code says whether it did",
    "console user password": "changes one user; its exit code says whether it did",
    "console user confirm": "changes one user; its exit code says whether it did",
    "reload": "changes what runs; its exit code says whether it did",
    "table add": "changes the configuration; its exit code says whether it did",
    "table answer": "answers the console in JSON",
    "table change": "changes the configuration; its exit code says whether it did",
    "table remove": "changes the configuration; its exit code says whether it did",
    "config undo": "changes the configuration; its exit code says whether it did",
    "config diff": "prints a unified diff, which is a format of its own",
    "restore": "makes this computer another one; its exit code says whether it did",
    "console user remove": "changes one user; its exit code says whether it did",
    "console user role": "changes one user; its exit code says whether it did",
}
CONFIG = (
    SMALL_SITE.replace("serial://{folder}/tty", "tcp://127.0.0.1:1")
    + """\
[console]
store = "{folder}/console.db"
journal = "{folder}/actions.db"
"""
)


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its name, as it is typed after `feltd`."""
    if isinstance(command, click.Group):
        for word in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), word)
            assert found is not None
            yield from commands(found, f"{name} {word}".strip())
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield name, command


def run(*words: str | Path, exit_code: int = 0) -> Result:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == exit_code, done.output
    return done


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "feltd.toml"
    path.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    make_mac_keys(tmp_path, "edge-1", "lisboa")
    return path


def filled(path: Path, rows: int) -> Path:
    journal = Journal(path)
    journal.append([Entry("rou-1", "wheel-1", "x", datetime.now(UTC), b"{}")] * rows)
    journal.close()
    return path


def test_every_command_that_prints_facts_prints_json() -> None:
    without = {name for name, one in commands(main) if not any("--json" in option.opts for option in one.params)}
    assert without == set(WITHOUT_JSON)


def test_check_prints_the_content_or_the_mistakes(config: Path) -> None:
    good = json.loads(run("check", "-c", config, "--json").stdout)
    [table] = good["tables"]
    assert (good["good"], good["mistakes"], good["site"]) == (True, [], "lisboa")
    assert table["devices"] == [{"name": "wheel-1", "driver": "cammegh_ss2", "url": "tcp://127.0.0.1:1"}]
    config.write_text(config.read_text(encoding="utf-8").replace("macau.roulette", "macau.rulette"), encoding="utf-8")
    bad = json.loads(run("check", "-c", config, "--json", exit_code=2).stdout)
    assert bad["good"] is False
    assert "macau.rulette" in bad["mistakes"][0]
    assert bad["mistakes"][0].startswith(f"{config}:")


def test_check_prints_the_answers_of_devices(config: Path) -> None:
    [probed] = json.loads(run("check", "-c", config, "--probe", "--json", exit_code=1).stdout)["probed"]
    assert (probed["device"], probed["answers"]) == ("rou-1/wheel-1", False)
    assert "Connection refused; check" in probed["text"]


def test_detect_prints_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "plugged", lambda: [("serial:///dev/serial/by-id/x", "a wheel")])
    assert json.loads(run("detect", "--json").stdout) == [{"link": "serial:///dev/serial/by-id/x", "what": "a wheel"}]


def test_backup_prints_what_was_copied_and_its_verification(config: Path, tmp_path: Path) -> None:
    filled(tmp_path / "edge.db", 3)
    folder = tmp_path / "backup"
    made = json.loads(run("backup", "-c", config, folder, "--json").stdout)
    assert [(path, one["rows"], one["findings"]) for path, one in made["journals"].items()] == [
        (str(folder / "edge/edge.db"), 3, [])
    ]
    assert made["files"] == [str(folder / "feltd.toml")]


def test_accept_prints_the_end_of_the_journal(tmp_path: Path) -> None:
    said = json.loads(run("journal", "accept", filled(tmp_path / "edge.db", 2), "--json").stdout)
    assert (said["report"]["rows"], said["checkpoint"]) == (2, 0)
    assert Path(said["note"]).exists()


def test_certificates_are_printed_as_they_are_made_and_revoked(tmp_path: Path) -> None:
    folder = ("--folder", tmp_path / "pki")
    run("pki", "init", "--site", "lisboa", *folder)
    made = json.loads(run("pki", "issue", "edge-7", "--json", *folder).stdout)
    renewed = json.loads(run("pki", "renew", "edge-7", "--json", *folder).stdout)
    gone = json.loads(run("pki", "revoke", "edge-7", "--json", *folder).stdout)
    assert [one["serial"] for one in gone] == [made["serial"], renewed["serial"]]
    assert all(one["revoked"] for one in gone)


def test_users_and_tokens_are_printed_without_their_secrets(config: Path) -> None:
    made = CliRunner().invoke(
        main,
        ["console", "-c", str(config), "user", "add", "maria", "--role", "technician", "--tables", "rou-1"],
        input="a password of some length\n",
    )
    assert made.exit_code == 0
    run("console", "-c", config, "token", "add", "wall", "--role", "viewer")
    users = json.loads(run("console", "-c", config, "user", "list", "--json").stdout)
    tokens = json.loads(run("console", "-c", config, "token", "list", "--json").stdout)
    assert users == [{"name": "maria", "role": "technician", "tables": ["rou-1"]}]
    assert tokens == [{"name": "wall", "role": "viewer", "tables": []}]


# ---- progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_comes_after_a_second_and_five_times_a_second_and_is_removed() -> None:
    terminal, clock = Terminal(), Clock()
    with ProgressLine(terminal, clock=clock) as progress:
        progress("edge.db", 0.1)
        assert terminal.getvalue() == ""
        clock.now = FIRST_AFTER_S
        progress("edge.db", 0.25)
        progress("edge.db", 0.26)
        clock.now += EVERY_S
        progress.of("rules.db")(0.5)
        assert terminal.getvalue() == "\r\x1b[Kedge.db: 25%\r\x1b[Krules.db: 50%"
    assert terminal.getvalue().endswith("50%\r\x1b[K")


@pytest.mark.parametrize(("file", "also_on"), [(io.StringIO(), None), (Terminal(), Terminal())])
def test_no_line_is_written_into_a_file_or_between_lines_of_output(file: io.StringIO, also_on: io.StringIO) -> None:
    clock = Clock()
    with ProgressLine(file, also_on, clock) as progress:
        clock.now = 10.0
        progress("edge.db", 0.5)
    assert file.getvalue() == ""


def test_a_line_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    terminal, clock = Terminal(), Clock()
    progress = ProgressLine(terminal, clock=clock)
    clock.now = 10.0
    progress("a name that is too long", 0.5)
    assert len(terminal.getvalue().removeprefix("\r\x1b[K")) == shutil.get_terminal_size().columns - 1


def rises(heard: list[float]) -> bool:
    return len(heard) > 1 and heard == sorted(heard) and heard[0] >= 0 and heard[-1] <= 1


def test_verification_and_copy_say_how_far_they_are(tmp_path: Path) -> None:
    path = filled(tmp_path / "edge.db", 2000)
    read: list[float] = []
    assert verify(path, progress=read.append).good
    assert rises(read)
    assert read[-1] == 1.0
    copied: list[float] = []
    back_up_journal(path, tmp_path / "copy", copied.append)
    assert copied[-1] == 1.0
    assert copied == sorted(copied)


def test_the_commands_of_long_work_show_a_line(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them hands its progress to the line."""
    heard: list[str] = []
    monkeypatch.setattr(ProgressLine, "__call__", lambda _self, what, _part: heard.append(what))
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "edge.db", 3)
    filled(tmp_path / "rules.db", 3)

    def names(*words: str | Path, exit_code: int = 0) -> set[str]:
        heard.clear()
        run(*words, exit_code=exit_code)
        return set(heard)

    edge, rules = str(tmp_path / "edge.db"), str(tmp_path / "rules.db")
    site = ("-c", config)
    assert names("journal", "verify", *site) == {edge, rules}
    assert names("journal", "export", *site, "rou-1") == {"rou-1"}
    (tmp_path / "export.ndjson").write_text(run("journal", "export", *site, "rou-1").stdout, encoding="utf-8")
    assert names("journal", "verify", "export.ndjson") == {"export.ndjson"}
    assert names("journal", "recall", *site, "rou-1", "--round", "rou-1:2026-11-20:1", exit_code=2) == {
        f"files of {rules}"
    }
    copies = {edge: tmp_path / "b/edge/edge.db", rules: tmp_path / "b/rules/rules.db"}
    steps = {f"copy {path}" for path in copies} | {f"verify {path}" for path in copies.values()}
    assert names("backup", *site, tmp_path / "b") == steps
    steps = names("bundle", *site)
    assert steps
    assert steps <= set(STEPS)
    assert names("replay", "--driver", "cammegh_ss2", Path(__file__).parents[1] / "captures/ss2-simulated.wire") == {
        "ss2-simulated.wire"
    }
    assert names("compute-figures", "macau.fish-prawn-crab") == {"macau.fish-prawn-crab"}
