"""`feltd console user|token`: kept beside a running console; each mistake is one message and exit code 2."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from daemon.cli import console as commands
from daemon.cli.main import main
from daemon.console.auth.users import ROLES, Users
from daemon.console.site.store import Store

PASSWORD = "twelve chars and more"
CONFIG = """\
[site]
name = "lisboa"
[edge]
name = "edge-1"
[console]
store = "{folder}/console/console.db"
{more}
[[table]]
name = "bac-1"
[[table]]
name = "rou-1"
"""


@pytest.fixture(autouse=True)
def logs_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.logs.set_up", lambda _level: None)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "feltd.toml"
    path.write_text(CONFIG.format(folder=tmp_path, more=""), encoding="utf-8")
    return path


@pytest.fixture
def users(config: Path) -> Iterator[Users]:
    """As a console that runs beside has them."""
    store = Store(config.parent / "console" / "console.db")
    yield Users(store, lambda: datetime.now(UTC))
    store.close()


def run(config: Path, *words: str, stdin: str | bytes = PASSWORD + "\n") -> Result:
    return CliRunner().invoke(main, ["console", "-c", str(config), *words], input=stdin)


def good(result: Result) -> str:
    assert (result.exit_code, result.exception) == (0, None), result.output
    return result.stdout


def refused(result: Result) -> str:
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_the_first_administrator(config: Path) -> None:
    assert good(run(config, "user", "add", "rui", "--role", "administrator")) == "rui: administrator, tables: all\n"
    store = Store(config.parent / "console" / "console.db")
    users = Users(store, lambda: datetime.now(UTC))
    hashed = users.hashed("rui")
    assert hashed is not None
    assert hashed.fits(PASSWORD)
    assert users.find("rui").role == "administrator"
    note = store.db.execute("SELECT role, action, target, detail FROM note_left").fetchall()
    assert note == [("system", "user.add", "user:rui", '{"role":"administrator","tables":[]}')]
    store.close()


def test_a_dealer_without_a_page_is_told_when_added(config: Path, tmp_path: Path) -> None:
    said = "no table of theirs has a dealer's page: name one under [console.dealer], or they have nothing to do"
    added = run(config, "user", "add", "joe", "--role", "dealer")
    assert good(added) == "joe: dealer, tables: all\n"
    assert added.stderr == f"joe: {said}\n"
    text = CONFIG.format(folder=tmp_path, more='dealer = { rou-1 = "/run/feltd/console/rou-1.sock" }')
    config.write_text(text, encoding="utf-8")
    assert run(config, "user", "role", "joe", "dealer").stderr == ""
    assert run(config, "user", "role", "joe", "dealer", "--tables", "rou-1,bac-1").stderr == ""
    assert run(config, "user", "role", "joe", "dealer", "--tables", "bac-1").stderr == f"joe: {said}\n"
    assert run(config, "user", "role", "joe", "viewer").stderr == ""


def test_users_are_kept_beside_a_running_console(config: Path, users: Users) -> None:
    good(run(config, "user", "add", "rui", "--role", "administrator"))
    assert good(run(config, "user", "add", "eva", "--role", "dealer", "--tables", "bac-1, rou-1"))
    assert good(run(config, "user", "list")).split("\n")[:2] == [
        f"{'eva':32}  dealer      bac-1, rou-1",
        f"{'rui':32}  administrator  all",
    ]
    secret = users.begin("eva", "", "")
    assert "technician, tables: all" in good(run(config, "user", "role", "eva", "technician"))
    assert users.session(secret) is None
    secret, before = users.begin("eva", "", ""), users.hashed("eva")
    good(run(config, "user", "password", "eva", stdin="quite another one"))
    assert users.session(secret) is None
    assert users.hashed("eva") != before
    secret = users.begin("eva", "", "")
    assert "removed" in good(run(config, "user", "remove", "eva"))
    assert users.session(secret) is None
    assert [one.name for one in users.all()] == ["rui"]


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (("user", "add", "ana", "--role", "viewer"), "short\n", "at least 12 characters"),
        (("user", "add", "ana", "--role", "viewer"), "", "at least 12 characters"),
        (("user", "add", "ana", "--role", "viewer"), "x" * 5000, "at most 256 characters"),
        (("user", "add", "ana", "--role", "viewer"), "this is ANA's own\n", "does not contain the name"),
        (("user", "add", "ana", "--role", "viewer"), b"\xff\xfe twelve chars\n", "not UTF-8 text"),
        (("user", "add", "Ana Maria", "--role", "viewer"), PASSWORD, "a name is small letters"),
        (("user", "add", "rui", "--role", "viewer"), PASSWORD, "there is a user 'rui' already"),
        (("user", "add", "ana", "--role", "viewer", "--tables", "bac-9"), PASSWORD, "there are: bac-1, rou-1"),
        (("user", "password", "ana"), PASSWORD, "there is no user 'ana'"),
        (("user", "remove", "ana"), PASSWORD, "there is no user 'ana'"),
        (("user", "remove", "rui"), PASSWORD, "the last administrator; make another one first"),
        (("user", "role", "rui", "viewer"), PASSWORD, "the last administrator; make another one first"),
        (("token", "remove", "wall"), PASSWORD, "there is no token 'wall'"),
        (("token", "add", "wall", "--role", "metrics", "--tables", "bac-1"), PASSWORD, "reads all of /metrics"),
    ],
)
def test_impossible_option_gets_one_message(
    config: Path, words: tuple[str, ...], stdin: str | bytes, said: str
) -> None:
    good(run(config, "user", "add", "rui", "--role", "administrator"))
    assert said in refused(run(config, *words, stdin=stdin))
    assert good(run(config, "user", "list")).count("\n") == 1


def test_a_dealer_page_that_meets_no_table_is_refused_at_the_start(tmp_path: Path, config: Path) -> None:
    """As `feltd check` names it, and before the console writes a file."""
    config.write_text(CONFIG.format(folder=tmp_path, more='dealer = { rou-l = "/run/rou-l.sock" }'), encoding="utf-8")
    said = refused(run(config))
    assert f"{config}:7: dealer's page of rou-l: no table 'rou-l'; did you mean 'rou-1'?" in said
    assert not (tmp_path / "console").exists()


def starting(tmp_path: Path, config: Path, more: str) -> Result:
    text = CONFIG.format(folder=tmp_path, more=f'journal = "{tmp_path}/console/journal.db"\n{more}')
    config.write_text(text, encoding="utf-8")
    return run(config)


def test_a_webhook_that_cannot_be_is_refused_at_the_start(tmp_path: Path, config: Path) -> None:
    said = refused(starting(tmp_path, config, '[[console.webhook]]\nurl = "ftp://x"'))
    assert f"{config}:9: console.webhook 0: its url must begin with" in said


def test_a_console_that_cannot_start_says_what_and_where(tmp_path: Path, config: Path) -> None:
    def said(more: str) -> str:
        result = starting(tmp_path, config, more)
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit), result.exception
        messages = [one for one in result.stderr.splitlines() if not one.startswith(("{", "20"))]
        assert len(messages) == 1, result.stderr
        return messages[0]

    pem, none = tmp_path / "x.pem", tmp_path / "none.pem"
    pem.write_text("no pem\n")
    assert said(f'certificate = "{none}"\nkey = "{pem}"') == (
        f"Error: console.certificate: {none}: No such file or directory"
    )
    assert said(f'certificate = "{pem}"\nkey = "{none}"') == f"Error: console.key: {none}: No such file or directory"
    wrong = said(f'certificate = "{pem}"\nkey = "{pem}"')
    assert wrong.startswith(f"Error: console.certificate: {pem}, console.key: {pem}: no certificate and its key in PEM")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert said(f"port = {port}").startswith(f"Error: console.listen: 127.0.0.1:{port}: Address already in use")
    assert said('listen = "192.0.2.1"\nport = 0\ninsecure = true').startswith("Error: console.listen: 192.0.2.1:0: ")
    assert said('listen = "no-such-name.invalid"\ninsecure = true').startswith(
        "Error: console.listen: no-such-name.invalid:8080: "
    )


def test_a_role_that_is_none_is_named(config: Path) -> None:
    result = run(config, "user", "add", "ana", "--role", "owner")
    assert result.exit_code == 2
    assert tuple(commands.ROLE.choices) == ROLES
    assert (
        "'owner' is not one of 'viewer', 'dealer', 'technician', 'supervisor', 'inspector', 'administrator', 'manager'"
        in result.stderr
    )


def test_a_token_is_shown_once_and_alone_on_standard_output(config: Path, users: Users) -> None:
    address = good(run(config, "token", "add", "wall", "--role", "viewer", "--tables", "bac-1"))
    assert address.startswith("http://127.0.0.1:8080/wall?token=")
    token = users.token(address.strip().rpartition("=")[2])
    assert token is not None
    assert (token.role, token.tables) == ("viewer", ("bac-1",))
    bearer = users.token(good(run(config, "token", "add", "prometheus", "--role", "metrics")).strip())
    assert bearer is not None
    listed = run(config, "token", "list")
    assert [line.split()[:2] for line in listed.stdout.splitlines()] == [["prometheus", "metrics"], ["wall", "viewer"]]
    good(run(config, "token", "remove", "wall"))
    assert users.token(address.strip().rpartition("=")[2]) is None


@pytest.mark.parametrize(
    ("more", "address"),
    [
        ('url = "https://pit.lisboa/"', "https://pit.lisboa"),
        ('certificate = "c"\nkey = "k"\nlisten = "::1"', "https://[::1]:8080"),
    ],
)
def test_the_address_of_a_screen_is_what_people_type(tmp_path: Path, more: str, address: str) -> None:
    config = tmp_path / "feltd.toml"
    config.write_text(CONFIG.format(folder=tmp_path, more=more), encoding="utf-8")
    assert good(run(config, "token", "add", "wall", "--role", "viewer")).startswith(f"{address}/wall?token=")


def test_nothing_yet_is_said(config: Path) -> None:
    for kind in ("user", "token"):
        result = run(config, kind, "list")
        assert (good(result), result.stderr) == ("", f"no {kind} yet\n")


def test_a_store_of_another_user_is_not_touched(config: Path, users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    me = commands._name_of(os.geteuid())
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    said = refused(run(config, "user", "list"))
    assert f"belongs to {me}; run this as that user, for example with sudo -u {me}" in said
    assert commands._name_of(4_000_000_000) == "4000000000"


def test_a_damaged_store_is_one_message(config: Path, users: Users) -> None:
    users._store.close()
    users._store.path.write_bytes(b"users\n" * 2000)
    assert "put a copy back" in refused(run(config, "user", "list"))


def test_at_a_terminal_the_password_is_asked_twice_and_not_shown(
    config: Path, users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def prompt(words: str, *, hide_input: bool, confirmation_prompt: str) -> str:
        asked.append((words, hide_input, confirmation_prompt))
        return PASSWORD

    monkeypatch.setattr("click.prompt", prompt)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _self: True, raising=False)
    good(run(config, "user", "add", "ana", "--role", "viewer"))
    assert asked == [("New password of ana", True, "The same again")]
    hashed = users.hashed("ana")
    assert hashed is not None
    assert hashed.fits(PASSWORD)


def test_the_command_line_stays_small() -> None:
    """The edge starts by it: nothing of the console is loaded that it never needs."""
    code = "import json, sys, daemon.cli.main; print(json.dumps(list(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    unwanted = {"starlette", "uvicorn", "jinja2", "sqlite3", "daemon.console.auth.users", "daemon.console.site.store"}
    assert unwanted.isdisjoint(json.loads(loaded))
