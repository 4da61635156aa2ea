"""A computer is lost and another takes its place, by an encrypted backup."""

import io
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from daemon.cli import replace
from daemon.cli.main import main
from daemon.journal import sealed
from daemon.journal.rows import Entry
from daemon.journal.sealed import BadSealed, Opened, Sealed
from daemon.journal.store import Journal

WORDS = "seven words that a thief does not guess"
NOW = datetime(2026, 11, 28, 7, tzinfo=UTC)
CONFIG = """\
[site]
name = "lisboa"
[edge]
name = "edge-7"
journal = "{var}/edge/journal.db"
password_file = "{etc}/mqtt/edge"
[rules]
insecure = true
journal = "{var}/rules/journal.db"
[console]
journal = "{var}/console/journal.db"
store = "{var}/console/console.db"
[jackpots]
insecure = true
journal = "{var}/jackpots/journal.db"
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
[[jackpot]]
name = "hall"
tables = ["rou-1"]
counts = "devices"
wins = "devices"
seed = 1000
visible = "0.5"
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a guess costs is no part of these tests."""
    monkeypatch.setattr(sealed, "_COST", 2)


def test_what_was_sealed_is_opened_and_anything_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "_CHUNK", 10)
    for length in (0, 1, 9, 10, 11, 20, 35):
        text = bytes(range(length))
        file = io.BytesIO()
        with Sealed(file, WORDS) as writer:
            for at in range(0, length, 7):
                writer.write(text[at : at + 7])
        raw = file.getvalue()
        assert Opened(io.BytesIO(raw), WORDS).read() == text
        assert length < 9 or text not in raw
        others = [raw[:end] for end in range(len(raw))]
        others += [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :] for at in range(len(raw))]
        for other in (*others, raw + b"x"):
            with pytest.raises(BadSealed):
                Opened(io.BytesIO(other), WORDS).read()
        with pytest.raises(BadSealed, match="passphrase"):
            Opened(io.BytesIO(raw), WORDS + "!").read()


class Computer:
    """A computer in a folder, with the broker's files; a second one takes the same place after `lose`."""

    def __init__(self, folder: Path) -> None:
        self.etc, self.var, self.stick = (folder / name for name in ("etc/feltd", "var", "stick"))
        self.broker = folder / "etc/mosquitto"
        self.path = self.etc / "feltd.toml"
        self.words = folder / "passphrase"
        self.words.write_text(WORDS + "\n")

    def install(self, password: str) -> None:
        """As the package does: passwords, and no configuration."""
        (self.etc / "mqtt").mkdir(parents=True)
        (self.broker / "conf.d").mkdir(parents=True)
        (self.etc / "mqtt/edge").write_text(password)
        (self.etc / "mqtt/edge").chmod(0o640)
        (self.broker / "feltd.passwd").write_text(f"edge:hash of {password}\n")

    def configure(self) -> None:
        self.path.write_text(CONFIG.format(var=self.var, etc=self.etc))
        (self.etc / "mac").mkdir()
        (self.etc / "mac/edge-7.key").write_text("secret of the edge")
        for part in ("edge", "rules", "console", "jackpots"):
            journal = Journal(self.var / part / "journal.db")
            journal.append([Entry("rou-1", "d", "ball.landed", NOW, b"{}")] * 3)
            journal.close()
        self.feltd("console", "user", "add", "maria", "--role", "inspector", stdin="a password of some length\n")

    def feltd(self, *words: str, stdin: str = "", code: int = 0) -> str:
        group, rest = (words[:1], words[1:]) if words[0] == "console" else (words, ())
        done = CliRunner().invoke(main, [*group, "-c", str(self.path), *rest], input=stdin)
        assert done.exit_code == code, done.output
        return done.output

    def back_up(self) -> Path:
        self.feltd("backup", str(self.stick), "--passphrase-file", str(self.words))
        (backup,) = self.stick.iterdir()
        return backup

    def lose(self) -> None:
        for folder in (self.etc, self.broker, self.var):
            shutil.rmtree(folder)


@pytest.fixture
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Computer:
    one = Computer(tmp_path)
    monkeypatch.setattr(replace, "BROKER", one.broker)
    one.install("old")
    one.configure()
    return one


def rows(path: Path) -> tuple[str, int]:
    """The name of a journal, and the number of its next row."""
    journal = Journal(path)
    (row,) = journal.append([Entry("rou-1", "d", "ball.landed", NOW, b"{}")])
    name = journal.name
    journal.close()
    return name, row.seq


def test_a_new_computer_takes_the_place_of_a_lost_one(computer: Computer) -> None:
    backup = computer.back_up()
    raw = backup.read_bytes()
    assert b"secret of the edge" not in raw
    assert b"lisboa" not in raw
    assert not list(computer.var.rglob(".backup-*")), "no copy in clear stays"
    before = {part: rows(computer.var / part / "journal.db")[0] for part in ("edge", "jackpots")}

    computer.lose()
    computer.install("new")
    said = computer.feltd("restore", str(backup), "--passphrase-file", str(computer.words))
    assert (computer.etc / "mqtt/edge").read_text() == "old"
    assert (computer.etc / "mqtt/edge").stat().st_mode & 0o777 == 0o640
    assert (computer.etc / "mac/edge-7.key").read_text() == "secret of the edge"
    assert (computer.broker / "feltd.passwd").read_text() == "edge:hash of old\n"
    assert "maria" in computer.feltd("console", "user", "list")
    assert rows(computer.var / "jackpots/journal.db") == (before["jackpots"], 4), "the books go on"
    name, seq = rows(computer.var / "edge/journal.db")
    assert (name != before["edge"], seq) == (True, 1), "its numbers are given out once"
    (evidence,) = (computer.var / "edge").glob("evidence-*/journal.db")
    assert rows(evidence) == (before["edge"], 4)
    assert "3 earlier rows are in" in said
    assert "confirmations and payments since" in said
    assert "open rounds are suspended" in said
    assert not list(computer.etc.glob(".restore-*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_journals_store_and_folders_belong_to_the_user_of_their_process(computer: Computer) -> None:
    """The copies that a backup is made of belong to root."""
    for one in (computer.var / "console").iterdir():
        shutil.chown(one, "daemon", "daemon")
    backup = computer.back_up()
    computer.lose()
    computer.install("new")
    computer.feltd("restore", str(backup), "--passphrase-file", str(computer.words))
    folder = computer.var / "console"
    assert {one.owner() for one in (folder, *folder.rglob("*"))} == {"daemon"}
    assert (computer.var / "edge").owner() == "root"


def test_a_computer_that_has_something_is_left_as_it_is(computer: Computer) -> None:
    backup = computer.back_up()
    words = ("restore", str(backup), "--passphrase-file", str(computer.words))
    assert "has a configuration" in computer.feltd(*words, code=2)
    computer.path.unlink()
    assert "has journals of its own" in computer.feltd(*words, code=2)
    assert not computer.path.exists()


@pytest.mark.parametrize("damage", ["cut", "changed", "passphrase"])
def test_nothing_is_restored_of_a_damaged_backup(computer: Computer, damage: str) -> None:
    backup = computer.back_up()
    computer.lose()
    computer.install("new")
    raw = bytearray(backup.read_bytes())
    if damage == "cut":
        del raw[-1]
    elif damage == "changed":
        raw[len(raw) // 2] ^= 1
    else:
        computer.words.write_text(WORDS + " or others")
    backup.write_bytes(raw)
    said = computer.feltd("restore", str(backup), "--passphrase-file", str(computer.words), code=2)
    assert "nothing is restored" in said
    assert (computer.etc / "mqtt/edge").read_text() == "new"
    assert not computer.var.exists()
    assert sorted(one.name for one in computer.etc.iterdir()) == ["mqtt"]


def test_a_short_passphrase_is_refused(computer: Computer) -> None:
    computer.words.write_text("short\n")
    said = computer.feltd("backup", str(computer.stick), "--passphrase-file", str(computer.words), code=2)
    assert "at least 12 characters" in said


def test_a_passphrase_that_is_no_text_is_refused(computer: Computer) -> None:
    computer.words.write_bytes(b"a passphrase in Latin-1: caf\xe9\n")
    for words in (("backup", str(computer.stick)), ("restore", "x")):
        said = computer.feltd(*words, "--passphrase-file", str(computer.words), code=2)
        assert "not in UTF-8" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_a_user_without_a_name_is_backed_up_and_belongs_to_root_then(computer: Computer) -> None:
    os.chown(computer.etc / "mqtt/edge", 54321, 54322)
    backup = computer.back_up()
    computer.lose()
    computer.feltd("restore", str(backup), "--passphrase-file", str(computer.words))
    assert (computer.etc / "mqtt/edge").read_text() == "old"
    assert (computer.etc / "mqtt/edge").owner() == "root"


def test_what_the_stick_kept_wrong_is_noticed(computer: Computer, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Sealed._put

    def put(self: Sealed, chunk: bytes, *, last: bool) -> None:
        real(self, chunk, last=last)
        self._file.seek(-5, io.SEEK_CUR)
        self._file.write(b"\0")
        self._file.seek(0, io.SEEK_END)

    monkeypatch.setattr(Sealed, "_put", put)
    computer.feltd("backup", str(computer.stick), "--passphrase-file", str(computer.words), code=2)
    assert not list(computer.stick.glob("*.feltd-backup"))
