"""The console's store and its log of actions: for the owner only, whole or not at all, said once, one clear message."""

import asyncio
import contextlib
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest
import structlog
from console_inn import CONFIG, Inn, post
from helpers import PATIENCE, at_length
from hypothesis import example, given, settings, strategies as st

from daemon.cli import console as commands
from daemon.config.model import Console, Keeping, parse
from daemon.console import app as app_module
from daemon.console.app import ConsoleProcess
from daemon.console.site.actions import Actions, leave, read_actions
from daemon.console.site.store import BadStore, Store
from daemon.journal import retention as keeping
from daemon.journal.forwarded import NONE_WAITS
from daemon.journal.retention import Room
from daemon.journal.rows import Entry
from daemon.journal.store import BadJournal, Journal
from daemon.journal.verify import verify

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store(tmp_path / "console.db")
    yield one
    one.close()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    one = Journal(tmp_path / "journal.db")
    yield one
    one.close()


def refused(path: Path) -> str:
    with pytest.raises(BadStore) as caught:
        Store(path).close()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def insert(store: Store, *values: str, error: BaseException | None = None) -> None:
    """All in one transaction, which then fails with `error`."""
    with store.write() as db:
        for value in values:
            db.execute("INSERT INTO t VALUES (?)", (value,))
        if error is not None:
            raise error


def left(store: Store, *notes: tuple[str, str], error: BaseException | None = None) -> None:
    """What the command line leaves, in one transaction, which then fails with `error`."""
    with store.write() as db:
        for action, target in notes:
            leave(db, NOON, "root", "system", action, target, {"role": "viewer"})
        if error is not None:
            raise error


# ---- the store


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_every_file_is_its_owners_only(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = Store(tmp_path / "new" / "console.db")
        store.has("CREATE TABLE IF NOT EXISTS t (a TEXT)")
        files = list((tmp_path / "new").iterdir())
        assert len(files) == 3  # with its log and its index
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
        store.close()
    finally:
        os.umask(before)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path, store: Store) -> None:
    store.close()
    store.path.chmod(0o640)
    assert refused(store.path).endswith(f"chmod 600 {store.path}")


def test_failed_transaction_leaves_earlier_rows(store: Store) -> None:
    store.has("CREATE TABLE IF NOT EXISTS t (a TEXT PRIMARY KEY); CREATE TABLE IF NOT EXISTS u (b TEXT DEFAULT ';');")
    store.has("CREATE TABLE IF NOT EXISTS t (a TEXT PRIMARY KEY) -- as it is; nothing happens")
    insert(store, "kept")
    with pytest.raises(sqlite3.IntegrityError):
        insert(store, "lost", "kept")
    with pytest.raises(KeyError):
        insert(store, "lost", error=KeyError())
    with pytest.raises(BadStore, match="nothing of it was written"):
        insert(store, "lost", error=sqlite3.OperationalError("disk I/O error"))
    with pytest.raises(BadStore, match="transaction within"), store.write(), store.write():
        pass
    name = store.name
    store.close()
    again = Store(store.path)
    assert (again.name, again.db.execute("SELECT a FROM t").fetchall()) == (name, [("kept",)])
    again.close()


def test_another_process_may_write_beside_it(store: Store) -> None:
    store.has("CREATE TABLE IF NOT EXISTS t (a TEXT)")
    beside = Store(store.path)
    with beside.write() as db:
        db.execute("INSERT INTO t VALUES ('x')")
    assert store.db.execute("SELECT a FROM t").fetchall() == [("x",)]
    store.db.execute("PRAGMA busy_timeout=1")
    with beside.write(), pytest.raises(BadStore, match="another process holds it; try again"), store.write():
        pass
    beside.close()


def test_opening_writes_only_what_is_missing(store: Store) -> None:
    """So it opens on a full disk, and beside who holds it."""
    table = "CREATE TABLE IF NOT EXISTS t (a TEXT); CREATE INDEX IF NOT EXISTS t_by_a ON t (a)"
    store.has(table)
    with store.write():
        again = Store(store.path)
        again.has(table)
        assert again.name == store.name
        again.db.execute("PRAGMA busy_timeout=1")
        with pytest.raises(BadStore, match="another process holds it"):
            again.has(f"{table}; CREATE TABLE IF NOT EXISTS u (a TEXT)")
        with pytest.raises(BadStore, match="another process holds it"):
            again.has(table.replace("t_by_a", "t_by_b"))
        again.close()


def test_a_store_that_lost_its_name_gets_another(store: Store) -> None:
    with store.write() as db:
        db.execute("DELETE FROM about")
    store.close()
    again = Store(store.path)
    name = again.name
    assert re.fullmatch(r"[0-9a-f]{8}", name)
    with again.write() as db:
        db.execute("DROP TABLE about")
    again.close()
    Store(store.path).close()


def test_a_store_of_another_kind_or_version_is_refused_and_kept(tmp_path: Path, store: Store, journal: Journal) -> None:
    before = (tmp_path / "journal.db").read_bytes()
    (tmp_path / "journal.db").chmod(0o600)
    assert "is no store of the console; [console] store must name a file of its own" in refused(tmp_path / "journal.db")
    assert (tmp_path / "journal.db").read_bytes() == before
    store.db.execute("PRAGMA user_version=2")
    store.close()
    assert "was written by version 2; run that version, or move it" in refused(store.path)


@pytest.mark.parametrize("damage", ["text", "page", "cut", "folder"])
def test_a_damaged_store_is_one_message_with_a_remedy(store: Store, damage: str) -> None:
    store.has("CREATE TABLE IF NOT EXISTS t (a TEXT)")
    with store.write() as db:
        db.executemany("INSERT INTO t VALUES (?)", [("x" * 3000,)] * 20)
    store.close()
    raw = bytearray(store.path.read_bytes())
    match damage:
        case "text":
            raw[:] = b"users = []\n" * 1000
        case "page":
            raw[4096 * 3 : 4096 * 5] = b"\x5a" * 8192
        case "cut":
            del raw[4096 * 4 :]
        case _:
            store.path.unlink()
            store.path.mkdir(mode=0o700)
    if damage != "folder":
        store.path.write_bytes(raw)
    said = refused(store.path)
    assert said.startswith(str(store.path))
    assert ("check disk, owner and rights" if damage == "folder" else "move it and the files that begin") in said


@settings(max_examples=at_length(25, 300))
@given(st.binary(max_size=300), st.integers(0, 4000))
@example(b"\x80", 3995)
def test_any_bytes_are_a_store_or_refused(tmp_path_factory: pytest.TempPathFactory, raw: bytes, at: int) -> None:
    path = tmp_path_factory.mktemp("any") / "console.db"
    Store(path).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + raw + whole[at + len(raw) :])
    try:
        Store(path).close()
    except BadStore as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - both ways are right


# ---- actions


def test_an_action_is_in_the_chained_journal(journal: Journal, store: Store) -> None:
    actions = Actions(journal, store, now=lambda: NOON)
    actions.note("ana", "technician", "command", "bac-1/shoe", {"name": "lamp-test"})
    actions.note("rui", "supervisor", "user.add", "user:ana", {"role": "technician"})
    actions.note("rui", "supervisor", "silence", "bac-1", {})
    actions.note("rui", "supervisor", "logout", "", {})
    assert [(row.place, row.device, row.type) for row in journal.after(0, 9)] == [
        ("bac-1", "ana", "console.command"),
        ("console", "rui", "console.user.add"),
        ("bac-1", "rui", "console.silence"),
        ("console", "rui", "console.logout"),
    ]
    found = read_actions(journal.path, 2)
    assert [(one.n, one.time, one.user, one.role, one.action, one.target) for one in found] == [
        (4, NOON, "rui", "supervisor", "logout", ""),
        (3, NOON, "rui", "supervisor", "silence", "bac-1"),
    ]
    assert read_actions(journal.path, 9)[-1].detail == {"name": "lamp-test"}
    assert verify(journal.path, []).good


def test_old_actions_may_go_when_their_days_are_over(
    journal: Journal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No outbox sends them: that must not keep them for ever, until the console stops for want of room."""
    monkeypatch.setattr(keeping, "_MB", 1000)
    actions = Actions(journal, store)
    actions.note("ana", "technician", "command", "bac-1/shoe", {})
    actions.note("ana", "technician", "command", "bac-1/shoe", {})
    assert journal.rotate()
    actions.note("rui", "supervisor", "logout", "", {})
    for days, gone in ((89, 0), (91, 1)):
        later = datetime.now(UTC) + timedelta(days=days)
        Actions(journal, store, now=partial(identity, later)).note("rui", "supervisor", "logout", "", {})
        journal.append((), {"lived": b"%d" % (days * 86_400)})
        journal.close()
        journal = Journal(journal.path)
        assert len(keeping._forget(journal, Keeping(limit_mb=4), later, NONE_WAITS)) == gone
    journal.close()
    assert [one.user for one in read_actions(journal.path, 9)] == ["rui"] * 3


def test_an_action_that_cannot_be_written_is_not_done(journal: Journal, store: Store) -> None:
    actions = Actions(journal, store)
    journal.close()
    with pytest.raises(BadJournal):
        actions.note("ana", "technician", "command", "bac-1/shoe", {})


def test_filters(journal: Journal, store: Store) -> None:
    times = iter(NOON + timedelta(minutes=n) for n in range(100))
    actions = Actions(journal, store, now=lambda: next(times))
    journal.append([Entry("bac-1", "ana", "other", NOON, b"{}")])  # n 1 is no action
    for n in range(12):
        actions.note(
            ("ana", "rui")[n % 2], "supervisor", ("user.add", "user", "users")[n % 3], ("", "bac-1")[n % 2], {}
        )
        if n % 4 == 3:
            assert journal.rotate()

    def numbers(**which: object) -> list[int]:
        return [one.n for one in read_actions(journal.path, 99, **which)]  # type: ignore[arg-type]

    assert numbers() == list(range(13, 1, -1))
    assert numbers(before=4) == [3, 2]
    assert numbers(user="ana") == numbers(place="console") == [12, 10, 8, 6, 4, 2]
    assert numbers(action="user") == [12, 11, 9, 8, 6, 5, 3, 2]
    assert numbers(action="user.add", place="bac-1") == [11, 5]
    assert numbers(since=NOON + timedelta(minutes=3), until=NOON + timedelta(minutes=5)) == [6, 5]
    assert numbers(user="nobody", action="%") == []


def test_a_missing_or_broken_journal_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadJournal, match=r"nothing\.db"):
        read_actions(tmp_path / "nothing.db", 9)


def test_command_line_actions_are_imported_once(journal: Journal, store: Store, tmp_path: Path) -> None:
    beside = Store(store.path)
    left(beside, ("user.add", "user:ana"))
    with pytest.raises(KeyError):
        left(beside, ("user.add", "user:rui"), error=KeyError())
    actions = Actions(journal, store)
    actions.collect()
    left(beside, ("user.remove", "user:ana"))
    actions.collect()
    said = [(one.time, one.user, one.role, one.action, one.target) for one in read_actions(journal.path, 9)]
    assert said == [
        (NOON, "root", "system", "user.remove", "user:ana"),
        (NOON, "root", "system", "user.add", "user:ana"),
    ]
    left(beside, ("token.add", "token:wall"))
    actions.note("ana", "viewer", "login", "", {})
    assert [one.action for one in read_actions(journal.path, 2)] == ["login", "token.add"]  # in their order
    beside.close()
    anew = Store(tmp_path / "anew.db")  # counts its notes from 1 again
    left(anew, ("user.add", "user:eva"))
    Actions(journal, anew)
    assert read_actions(journal.path, 1)[0].target == "user:eva"
    anew.close()


def test_killed_between_journal_and_store_a_note_is_said_once(
    journal: Journal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    actions = Actions(journal, store)
    left(store, ("user.add", "user:ana"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            actions.collect()
    assert journal.head == 1
    actions.collect()
    assert journal.head == 1
    assert store.db.execute("SELECT count(*) FROM note_left").fetchone() == (0,)


# ---- room for it


class Disk:
    """How much room there is for the journal, as a test says it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used = 50
        monkeypatch.setattr(keeping, "room", lambda _journal, _keeping: Room(self.used, 100, True))
        monkeypatch.setattr(keeping, "EVERY", 0.01)
        monkeypatch.setattr(app_module, "RETRY_S", 0.01)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def open_alert(inn: Inn) -> tuple[str, str] | None:
    found = [one.incident for one in inn.house.incidents.open(inn.clock.now)]
    assert len(found) <= 1
    assert all((one.table, one.device) == ("", "console") for one in found)
    return (found[0].code, found[0].severity) if found else None


def stands(inn: Inn, alert: tuple[str, str] | None) -> bool:
    return open_alert(inn) == alert


def identity(at: datetime) -> datetime:
    return at


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what a loop of the house does, which sets no events
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def kept(inn: Inn) -> AsyncIterator[asyncio.Task[None]]:
    keeper = asyncio.create_task(inn.house.keep())
    try:
        yield keeper
    finally:
        keeper.cancel()
        await asyncio.wait([keeper])


async def test_with_no_room_left_people_read_on_and_nothing_is_done(tmp_path: Path, disk: Disk) -> None:
    with contextlib.closing(Inn(tmp_path)) as inn, structlog.testing.capture_logs() as logs:
        async with kept(inn) as keeper, inn.as_("supervisor") as browser:
            for used, alert in (
                (50, None),
                (80, ("journal.room", "warning")),
                (95, ("journal.room", "error")),
                (100, ("journal.full", "error")),
            ):
                disk.used = used
                await until(partial(stands, inn, alert))
            await until(lambda: bool(inn.house.actions.full))
            head = inn.journal.head
            for path in ("/", "/alerts", "/actions", "/users"):
                assert (await browser.get(path)).status_code == 200, path
            assert "pages can be read, no action is possible" in (await browser.get("/alerts")).text
            silence = {"table": "bac-1", "minutes": "60", "why": "cleaning"}
            assert (await post(browser, "/alerts/silence", **silence)).status_code == 503
            left(inn.store, ("user.add", "user:ana"))
            inn.house.actions.collect()
            await asyncio.sleep(0.1)
            assert inn.journal.head == head
            assert inn.house.incidents.silences(inn.clock.now) == []
            disk.used = 90
            await until(lambda: not inn.house.actions.full)
            assert (await post(browser, "/alerts/silence", **silence)).status_code == 303
            assert [one.action for one in read_actions(inn.journal.path, 2)] == ["silence", "user.add"]
            await until(lambda: open_alert(inn) == ("journal.room", "warning"))
            disk.used = 50
            await until(lambda: open_alert(inn) is None)
            assert not keeper.done()
    said = [one["event"] for one in logs if one["event"] in ("console.full", "console.writable")]
    assert said == ["console.full", "console.writable"]


async def test_a_console_starts_with_no_room_and_takes_its_journal_up_when_there_is(tmp_path: Path, disk: Disk) -> None:
    config = msgspec.structs.replace(Console(), journal=str(tmp_path / "journal.db"))
    disk.used = 100
    journal, full = commands.journal_of(config, Keeping())
    assert "the disk is full" in full
    with contextlib.closing(journal), contextlib.closing(Store(tmp_path / "console.db")) as store:
        left(store, ("user.add", "user:ana"))
        house = ConsoleProcess(parse(CONFIG.format(console="")), store, journal, lambda: NOON, full=full)
        assert journal.head == 0
        with pytest.raises(BadJournal, match="the disk is full"):
            house.actions.note("ana", "technician", "command", "bac-1/shoe", {})
        keeper = asyncio.create_task(house.keep())
        await asyncio.sleep(0.1)
        assert (house.actions.full, journal.head) == (full, 0)
        disk.used = 50
        await until(lambda: not house.actions.full)
        house.actions.note("ana", "technician", "command", "bac-1/shoe", {})
        assert journal.head == 2
        keeper.cancel()
        await asyncio.wait([keeper])
        house.close()


def test_a_journal_that_is_not_as_it_was_written_is_refused_though_there_is_no_room(
    tmp_path: Path, journal: Journal, disk: Disk
) -> None:
    journal.append([Entry("bac-1", "ana", "console.command", NOON, b"{}")])
    journal.close()
    with contextlib.closing(sqlite3.connect(journal.path)) as db, db:
        db.execute("UPDATE event SET data = x'00'")
    config = msgspec.structs.replace(Console(), journal=str(journal.path))
    with pytest.raises(BadJournal, match="not as it was written"):
        commands.journal_of(config, Keeping())
    disk.used = 100
    with pytest.raises(BadJournal, match="not as it was written"):
        commands.journal_of(config, Keeping())


async def test_a_journal_that_fails_although_there_is_room_ends_the_console(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts it again opens it anew."""

    def fails(*_: object) -> None:
        raise BadJournal("journal.db: cannot begin the next file")

    with contextlib.closing(Inn(tmp_path)) as inn:
        monkeypatch.setattr(keeping, "_forget", fails)
        with pytest.raises(BaseExceptionGroup) as caught:
            await inn.house.keep()
    assert caught.group_contains(BadJournal, match="cannot begin the next file")
