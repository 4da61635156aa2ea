"""A copy of a journal that is written meanwhile is whole, verifies, and can be taken up."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from daemon.cli.main import main
from daemon.config.model import Keeping
from daemon.journal.backup import BadBackup, back_up_journal
from daemon.journal.retention import take_up
from daemon.journal.rows import Entry
from daemon.journal.signing import Key, make_key
from daemon.journal.store import Journal
from daemon.journal.verify import verify

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def rows(count: int) -> list[Entry]:
    return [Entry("t-1", "d-1", "ball.landed", NOW, b'{"n":%d}' % n) for n in range(count)]


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path / "key.pem")


def test_a_journal_is_copied_while_it_is_written(tmp_path: Path, key: Key) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.signed_by(key, 7)
    journal.append(rows(100))
    assert journal.rotate()
    stop = threading.Event()
    copies: list[int] = []

    def copy() -> None:
        try:
            for n in range(5):
                back_up_journal(tmp_path / "journal.db", tmp_path / f"copy-{n}")
                copies.append(verify(tmp_path / f"copy-{n}" / "journal.db", [key.public]).rows)
        finally:
            stop.set()

    thread = threading.Thread(target=copy)
    thread.start()
    while not stop.is_set():
        journal.append(rows(3))
    thread.join()
    journal.close()
    assert len(copies) == 5
    assert copies == sorted(copies)
    for n in range(5):
        report = verify(tmp_path / f"copy-{n}" / "journal.db", [key.public])
        assert report.good, report
        assert report.files == 2


def test_a_copy_is_taken_up_by_a_process(tmp_path: Path, key: Key) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.signed_by(key, 10)
    journal.append(rows(25))
    back_up_journal(tmp_path / "journal.db", tmp_path / "copy")
    journal.close()
    again = Journal(tmp_path / "copy" / "journal.db")
    take_up(again, Keeping(key=str(tmp_path / "key.pem")))
    (row,) = again.append(rows(1))
    assert row.seq == 26
    again.close()


def test_closed_files_are_copied_once_and_the_live_one_anew(tmp_path: Path) -> None:
    with_closed = Journal(tmp_path / "journal.db")
    with_closed.append(rows(10))
    assert with_closed.rotate()
    assert back_up_journal(tmp_path / "journal.db", tmp_path / "copy") == 2
    with_closed.append(rows(5))
    assert back_up_journal(tmp_path / "journal.db", tmp_path / "copy") == 1
    with_closed.close()
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [
        "journal.000001.db",
        "journal.db",
        "journal.db-signed",
    ]
    assert verify(tmp_path / "copy" / "journal.db").rows == 15


def test_a_journal_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadBackup, match=r"journal\.db"):
        back_up_journal(tmp_path / "journal.db", tmp_path / "copy")


def test_the_command_copies_configuration_journals_and_store(tmp_path: Path) -> None:
    for part in ("edge", "rules", "console"):
        journal = Journal(tmp_path / part / "journal.db")
        journal.append(rows(2))
        journal.close()
    config = tmp_path / "feltd.toml"
    config.write_text(
        f"""\
[site]
name = "s"
[edge]
name = "e"
journal = "{tmp_path}/edge/journal.db"
[rules]
journal = "{tmp_path}/rules/journal.db"
[console]
journal = "{tmp_path}/console/journal.db"
store = "{tmp_path}/console/console.db"
"""
    )
    user = ["console", "-c", str(config), "user", "add", "maria", "--role", "inspector"]
    assert CliRunner().invoke(main, user, input="a password of some length\n").exit_code == 0
    copy = tmp_path / "copy"
    done = CliRunner().invoke(main, ["backup", "-c", str(config), str(copy)])
    assert done.exit_code == 0, done.output
    assert [line.split(": ")[1] for line in done.output.splitlines() if "journal.db" in line] == ["good"] * 3
    assert (copy / "feltd.toml").read_bytes() == config.read_bytes()
    moved = tmp_path / "moved.toml"
    moved.write_text(config.read_text().replace(f"{tmp_path}/", f"{copy}/"))
    users = CliRunner().invoke(main, ["console", "-c", str(moved), "user", "list"])
    assert "maria" in users.output
