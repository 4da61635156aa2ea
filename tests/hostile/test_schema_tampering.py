"""Somebody who can write the journal's files plants something in their schema: nothing starts, and it is named."""

import contextlib
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers import at_length
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from daemon.cli import main as cli
from daemon.console.site.actions import read_actions
from daemon.journal import reader as reader_module, store as journal_module
from daemon.journal.reader import open_to_read
from daemon.journal.rows import Entry
from daemon.journal.schema import WrongSchema
from daemon.journal.signing import make_key
from daemon.journal.store import BadJournal, Journal
from daemon.journal.verify import verify

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
REMEDY = "it was changed after it was written: keep the file as it is and tell the inspector"


@pytest.fixture(autouse=True, scope="module")
def short_wait() -> Iterator[None]:
    """For a file that somebody else has, and for a log of full length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_module, "LOCKED_TIMEOUT", 0.01)
        patch.setattr(journal_module, "_WAL_PAGES", 30)
        yield


def entries(count: int) -> list[Entry]:
    return [Entry("t-1", "d-1", "ball.landed", NOON, b'{"n":%d}' % n, b"*X;1\r") for n in range(count)]


def filled(path: Path) -> None:
    """A closed file and an open one, both signed."""
    key = path.with_name("key.pem")
    journal = Journal(path)
    journal.signed_by(make_key(key), 10)
    journal.append(entries(20), {"outbox": b"20"})
    assert journal.rotate()
    journal.append(entries(15))
    journal.close()
    key.unlink()
    key.with_name("key.pem.pub").unlink()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    filled(folder / "journal.db")
    return folder


CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-7"
journal = "{0}/edge/journal.db"
[rules]
journal = "{0}/rules/journal.db"
[[table]]
name = "t-1"
"""


@pytest.fixture
def site(tmp_path: Path, template: Path) -> Path:
    for part in ("edge", "rules"):
        shutil.copytree(template, tmp_path / part)
    (tmp_path / "feltd.toml").write_text(CONFIG.format(tmp_path), encoding="utf-8")
    return tmp_path


def run(site: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, bool]:
    """A command of the site: its exit code, what it said, and whether a process was started."""
    started: list[object] = []
    monkeypatch.setattr("daemon.cli.processes.run_process", lambda process, *_, **_more: started.append(process))
    done = CliRunner().invoke(cli.main, [*words[:2], "-c", str(site / "feltd.toml"), *words[2:]])
    return done.exit_code, done.output, bool(started)


# ---- what is planted, by name: statements, and the words that name it


def rewritten(name: str, old: str, new: str) -> str:
    """The text of an object changed in place, as no statement of SQL would change it."""
    return (
        "PRAGMA writable_schema=ON;"
        f"UPDATE sqlite_master SET sql = replace(sql, '{old}', '{new}') WHERE name = '{name}';"
    )


PLANTS: dict[str, tuple[str, str]] = {
    "a trigger that swallows rows": (
        "CREATE TRIGGER swallow BEFORE INSERT ON event BEGIN SELECT RAISE(IGNORE); END",
        "trigger swallow on event was added",
    ),
    "a trigger that changes rows": (
        "CREATE TRIGGER change AFTER INSERT ON event BEGIN UPDATE event SET data = x'00' WHERE n = NEW.n; END",
        "trigger change on event was added",
    ),
    "a trigger on the memory": (
        "CREATE TRIGGER mind AFTER UPDATE ON memory BEGIN DELETE FROM memory WHERE key = NEW.key; END",
        "trigger mind on memory was added",
    ),
    "a trigger on the checkpoints": (
        "CREATE TRIGGER unsign BEFORE INSERT ON checkpoint BEGIN SELECT RAISE(IGNORE); END",
        "trigger unsign on checkpoint was added",
    ),
    "a trigger with a name of many lines": (
        'CREATE TRIGGER "a\nb\x1b[2J" BEFORE DELETE ON event BEGIN SELECT 1; END',
        r"trigger 'a\nb\x1b[2J' on event was added",
    ),
    "a view": ("CREATE VIEW looks AS SELECT * FROM event", "view looks on looks was added"),
    "a view in the place of a table": (
        "DROP TABLE origin; CREATE VIEW origin AS SELECT 't-1' AS place, 3 AS seq, x'00' AS hash",
        "view origin on origin was added",
    ),
    "an index": ("CREATE INDEX by_type ON event (type)", "index by_type on event was added"),
    "an index that refuses rows": (
        "CREATE UNIQUE INDEX once ON event (place) WHERE n > 35",
        "index once on event was added",
    ),
    "an index of an expression": ("CREATE INDEX low ON event (lower(type))", "index low on event was added"),
    "no index": ("DROP INDEX event_by_seq", "index event_by_seq is missing"),
    "a table": ("CREATE TABLE mine (x)", "table mine on mine was added"),
    "a table without rows of the schema": (
        "CREATE TABLE mine (x UNIQUE)",
        "index sqlite_autoindex_mine_1 on mine was added",
    ),
    "statistics": ("ANALYZE", "table sqlite_stat1 on sqlite_stat1 was added"),
    "no table": ("DROP TABLE earlier", "table earlier is missing"),
    "a table by another name": ("ALTER TABLE memory RENAME TO mind", "table memory is missing"),
    "a column": ("ALTER TABLE event ADD COLUMN more TEXT DEFAULT 'x'", "table event was changed"),
    "a generated column": (
        "ALTER TABLE event ADD COLUMN late INTEGER GENERATED ALWAYS AS (time + 1) VIRTUAL",
        "table event was changed",
    ),
    "a column by another name": ("ALTER TABLE event RENAME COLUMN cause TO why", "table event was changed"),
    "a column less": ("ALTER TABLE checkpoint DROP COLUMN signature", "table checkpoint was changed"),
    "a default": (rewritten("event", "cause TEXT NOT NULL", "cause TEXT NOT NULL DEFAULT ''x''"), "event was changed"),
    "a collation": (
        rewritten("event", "place TEXT NOT NULL", "place TEXT NOT NULL COLLATE NOCASE"),
        "table event was changed",
    ),
    "a check": (rewritten("event", "seq INTEGER NOT NULL", "seq INTEGER NOT NULL CHECK (seq < 99)"), "event was chang"),
    "a conflict clause": (
        rewritten("event", "n INTEGER PRIMARY KEY", "n INTEGER PRIMARY KEY ON CONFLICT REPLACE"),
        "PRIMARY KEY ON CONFLICT REPLACE",
    ),
    "a foreign key": (
        rewritten("event", "cause TEXT NOT NULL", "cause TEXT NOT NULL REFERENCES memory ON DELETE CASCADE"),
        "table event was changed",
    ),
    "no strict types": (rewritten("event", ") STRICT", ")"), "table event was changed"),
    "another order of the index": (rewritten("event_by_seq", "place, seq", "seq, place"), "event_by_seq was changed"),
    "a comment": (rewritten("earlier", ") STRICT", ") /* me */ STRICT"), "table earlier was changed"),
    "another letter": (rewritten("event", "CREATE TABLE event", "CREATE TABLE EVENT"), "table event was changed"),
    "the page of another table": (
        "PRAGMA writable_schema=ON; UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master"  # noqa: ISC004
        " WHERE name = 'memory') WHERE name = 'origin'",
        "which cannot be its own",
    ),
    "a schema that SQLite cannot read": (rewritten("event", "CREATE TABLE", "CREATE NOTHING"), "its schema cannot be"),
    "an object of no kind": (
        "PRAGMA writable_schema=ON; INSERT INTO sqlite_master VALUES ('spirit', 'x', 'event', 0, NULL)",
        "schema",
    ),
    "another application": ("PRAGMA application_id=7", "application_id is 7 and not 0"),
    "another page size": (
        "PRAGMA journal_mode=DELETE; PRAGMA page_size=1024; VACUUM",
        "page_size is 1024 and not 4096",
    ),
    "another way to vacuum": ("PRAGMA auto_vacuum=FULL; VACUUM", "auto_vacuum is 1 and not 0"),
    "version 0": ("PRAGMA user_version=0", "table event on event was added"),
    "version 1": ("PRAGMA user_version=1", "version 1"),
    "another version": ("PRAGMA user_version=9", "version 9"),
}


def plant(path: Path, statements: str) -> None:
    mode = path.stat().st_mode
    path.chmod(0o640)
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.executescript(statements)
    finally:
        db.close()
        path.chmod(mode)


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("part", ["edge", "rules"])
def test_nothing_starts_on_an_open_journal_with_a_planted_object(
    site: Path, part: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, words = PLANTS[name]
    path = site / part / "journal.db"
    plant(path, statements)
    before = path.read_bytes()
    for _ in range(2):  # nor at the next start
        code, said, started = run(site, monkeypatch, part)
        assert (code, started) == (2, False), said
        assert words.lower() in said.lower()
        assert str(path) in said
        assert "nothing was started" in said or "run that version" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("file", ["journal.db", "journal.000001.db"])
def test_verify_names_a_planted_object_and_nothing_is_read_through_it(
    site: Path, file: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, words = PLANTS[name]
    plant(site / "edge" / file, statements)
    code, said, _ = run(site, monkeypatch, "journal", "verify")
    assert code == 1
    [line, *_] = [line for line in said.splitlines() if words.lower() in line.lower()]
    assert line.startswith(f"{site}/edge/{file}: ")
    assert REMEDY in line or "the version of feltd that wrote it" in line
    assert said.count("are missing") == 0  # one plant, one cause: no file is missing because it was not read
    assert re.search(rf"{site}/rules/journal.db: good", said)
    with pytest.raises(WrongSchema):
        open_to_read(site / "edge" / file)
    code, said, _ = run(site, monkeypatch, "journal", "export", "t-1")
    assert code == 2
    assert words.lower() in said.lower()
    with pytest.raises(BadJournal, match=r"schema|version"):
        read_actions(site / "edge" / "journal.db", 100)


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("part", ["edge", "rules"])
def test_nothing_starts_on_a_closed_file_with_a_planted_object(
    site: Path, part: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, words = PLANTS[name]
    path = site / part / "journal.000001.db"
    plant(path, statements)
    code, said, started = run(site, monkeypatch, part)
    assert (code, started) == (2, False), said
    assert words.lower() in said.lower()
    assert str(path) in said
    assert "put back the copy that you keep of it, or move it away" in said


def test_the_commands_that_read_start_on_a_schema_as_it_was_written(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side of these tests: as long as nothing is planted, all of it works."""
    for part in ("edge", "rules"):
        code, said, started = run(site, monkeypatch, part)
        assert (code, started) == (0, True), said
    assert run(site, monkeypatch, "journal", "verify")[0] == 0
    assert run(site, monkeypatch, "journal", "export", "t-1")[0] == 0
    assert len(read_actions(site / "edge" / "journal.db", 5)) == 0


@pytest.mark.parametrize("part", ["edge", "rules"])
def test_recall_reads_nothing_through_a_planted_view(site: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view under a table's name shows rows that were never written."""
    view = "ALTER TABLE event RENAME TO hidden; CREATE VIEW event AS SELECT * FROM hidden WHERE 0"
    plant(site / part / "journal.db", view)
    code, said, _ = run(site, monkeypatch, "journal", "recall", "t-1")
    assert code == 2
    assert "view event on event was added" in said


# ---- while a process runs

RUNNING = [name for name in PLANTS if "page" not in name and "vacuum" not in name and "version" not in name]
RUNNING = [name for name in RUNNING if name not in ("another application", "a schema that SQLite cannot read")]


@pytest.mark.parametrize("name", RUNNING)
def test_a_schema_that_is_changed_under_a_process_ends_it_before_it_writes(
    template: Path, tmp_path: Path, name: str
) -> None:
    """Each write is compared within its own transaction, so nothing comes between."""
    path = tmp_path / "j" / "journal.db"
    shutil.copytree(template, path.parent)
    journal = Journal(path)
    head = journal.head
    plant(path, PLANTS[name][0] + "; PRAGMA schema_version=4711")
    for _ in range(2):
        with pytest.raises(BadJournal, match=r"its schema was changed while it was in use: |malformed"):
            journal.append(entries(1))
    assert journal.head == head
    journal.close()
    assert not verify(path).good


def test_a_schema_that_is_rewritten_unseen_does_nothing_to_a_process_and_stops_the_next(
    template: Path, tmp_path: Path
) -> None:
    """SQLite reads the schema again only where its counter says so; the rows are written by the one that was read."""
    path = tmp_path / "j" / "journal.db"
    shutil.copytree(template, path.parent)
    journal = Journal(path)
    plant(path, PLANTS["a default"][0])
    journal.append(entries(2))
    journal.close()
    with pytest.raises(BadJournal, match="table event was changed"):
        Journal(path)
    plant(path, rewritten("event", " DEFAULT ''x''", ""))
    assert verify(path).good


def test_changed_schema_counter_alone_stops_nothing(template: Path, tmp_path: Path) -> None:
    path = tmp_path / "j" / "journal.db"
    shutil.copytree(template, path.parent)
    journal = Journal(path)
    plant(path, "CREATE TABLE mine (x); DROP TABLE mine;")
    assert len(journal.append(entries(2))) == 2
    journal.close()
    assert verify(path).good


def test_a_file_that_waits_under_the_next_ones_name_is_not_taken_up(template: Path, tmp_path: Path) -> None:
    """Rotation makes the next file itself."""
    path = tmp_path / "j" / "journal.db"
    shutil.copytree(template, path.parent)
    journal = Journal(path)
    db = sqlite3.connect(path.with_name("journal.db-new"))
    db.executescript("CREATE TABLE mine (x); CREATE VIEW looks AS SELECT 1;")
    db.close()
    journal.append(entries(3))
    assert journal.rotate()
    journal.append(entries(3))
    journal.close()
    assert verify(path).good


# ---- anything

names = st.sampled_from(
    ["event", "memory", "checkpoint", "beginning", "origin", "earlier", "event_by_seq", "mine", "x"]
)
columns = st.sampled_from(["n", "place", "seq", "type", "data", "key", "value", "statement", "hash"])
words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@st.composite
def statement(draw: Callable[[Any], Any]) -> str:
    name, other, column, word = draw(names), draw(names), draw(columns), draw(words)
    free = '"' + draw(words).replace('"', '""') + '"'
    match draw(st.integers(0, 13)):
        case 0:
            when, what = (
                draw(st.sampled_from(["BEFORE", "AFTER"])),
                draw(st.sampled_from(["INSERT", "UPDATE", "DELETE"])),
            )
            return f"CREATE TRIGGER {free} {when} {what} ON {name} BEGIN SELECT RAISE(IGNORE); END"
        case 1:
            return f"CREATE VIEW {free} AS SELECT * FROM {name}"
        case 2:
            return f"CREATE INDEX {free} ON {name} ({column})"
        case 3:
            return f"CREATE TABLE {free} ({column} TEXT DEFAULT {quoted(word)})"
        case 4:
            return f"DROP TABLE {name}"
        case 5:
            return f"DROP INDEX {name}"
        case 6:
            return f"ALTER TABLE {name} RENAME TO {free}"
        case 7:
            return f"ALTER TABLE {name} ADD COLUMN {free} TEXT DEFAULT {quoted(word)}"
        case 8:
            return f"ALTER TABLE {name} RENAME COLUMN {column} TO {free}"
        case 9:
            return f"ALTER TABLE {name} DROP COLUMN {column}"
        case 10:
            field = draw(st.sampled_from(["type", "name", "tbl_name", "sql"]))
            return f"UPDATE sqlite_master SET {field} = {field} || {quoted(word)} WHERE name = '{name}'"
        case 11:
            at = draw(st.integers(1, 300))
            cut = f"substr(sql, 1, {at}) || {quoted(word)} || substr(sql, {at + 1})"
            return f"UPDATE sqlite_master SET sql = {cut} WHERE name = '{name}'"
        case 12:
            page = draw(st.integers(-1, 12))
            return f"UPDATE sqlite_master SET rootpage = {page} WHERE name = '{name}'"
        case _:
            kind = draw(st.sampled_from(["table", "index", "view", "trigger", "x"]))
            return f"INSERT INTO sqlite_master VALUES ('{kind}', {quoted(word)}, '{other}', 3, {quoted(word)})"


def schema_of(path: Path) -> list[tuple[Any, ...]]:
    """As another reader of SQLite's files sees it: page 1 and on, by SQLite with nothing of ours."""
    db = sqlite3.connect(path)
    try:
        db.execute("PRAGMA writable_schema=ON")  # it reads also what it would refuse
        return db.execute("SELECT type, name, tbl_name, CAST(sql AS BLOB), rootpage FROM sqlite_master").fetchall()
    finally:
        db.close()


@settings(
    max_examples=at_length(100, 5_000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(statements=st.lists(statement(), min_size=1, max_size=3), closed=st.booleans())
def test_planted_schema_objects_run_nothing_and_are_found(template: Path, statements: list[str], closed: bool) -> None:
    """Random statements on a copy; a journal is good where its schema is byte by byte what it was, and nowhere else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "j", "journal.db")
        shutil.copytree(template, path.parent)
        file = path.with_name("journal.000001.db") if closed else path
        file.chmod(0o640)
        before = schema_of(file)
        done = 0
        for one in statements:
            db = sqlite3.connect(file, isolation_level=None)
            with contextlib.suppress(sqlite3.Error, sqlite3.Warning):
                db.execute("PRAGMA writable_schema=ON")
                db.execute(one)
                done += 1
            db.close()
        assume(done)
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
            assume(schema_of(file) != before)
        report = verify(path)
        assert [one for one in report.findings if one.file == str(file)], statements
        with pytest.raises(BadJournal):
            started(path)


def started(path: Path) -> None:
    journal = Journal(path)
    try:
        journal.check_closed()
    finally:
        journal.close()
