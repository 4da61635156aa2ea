"""The ledger with a real PostgreSQL: each result once, however it comes; positions, disagreements, rights, reports."""

import asyncio
import contextlib
import csv
import html
import io
import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from backbone import NEEDS_POSTGRES
from click.testing import CliRunner
from console_floor import CONFIG, Console

from daemon.cli.main import main
from daemon.config.backbone import Backbone, BackboneUser
from daemon.console.pages import ledger as page
from daemon.jackpots import book as accounts
from daemon.jackpots.book import Book, Seen
from daemon.jackpots.books import Books
from daemon.jackpots.ledger import contribute
from daemon.journal.store import Journal
from protocols.contract.jackpots import PoolTerms
from protocols.contract.topics import Wire, decode_wire, encode_wire, table_topic
from simulators.lab.site.postgres import Postgres, postgres

pytest.importorskip("psycopg", reason="no psycopg: make .venv/.ledger")
pytest.importorskip("nats", reason="no nats-py: make .venv/.backbone")

import psycopg

from daemon.site import ledger
from daemon.site.backbone import Connection
from daemon.site.forward import payload_of
from daemon.site.ledger import Store, migrate
from daemon.site.ledger_rows import ACCOUNTS, Fault, LedgerRow, Verdict, entry_of, fault_of, result_of, verdict_of
from daemon.site.ledger_schema import READER, WRITER
from daemon.site.reports import REPORTS, report, statement
from daemon.site.streams import subject_of_pool
from daemon.words import words

pytestmark = [pytest.mark.system, NEEDS_POSTGRES]
DASHBOARD = Path(__file__).parents[2] / "systemd/monitoring/grafana-feltd-ledger.json"
DAY = date(2026, 11, 20)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MADE = "2026-11-20"
OPEN: list[Store] = []
MONEY = {"wagered", "hold", "staked", "from_house", "to_other_pools", "to_pool", "pending", "paid", "margin"}


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as one:
        yield one


@pytest.fixture
def database(server: Postgres) -> Iterator[Postgres]:
    """With the tables, and nothing in them."""
    migrate(server.url())
    with psycopg.connect(server.url()) as db:
        db.execute(
            "TRUNCATE feltd.verdicts, feltd.faults, feltd.disagreements, feltd.position, feltd.rolled, feltd.hold_hour,"
            " feltd.jackpot_entries, feltd.jackpot_disagreements"
        )
    yield server
    while OPEN:
        OPEN.pop().close()


def writer(database: Postgres) -> Store:
    """A writer, which is closed after the test."""
    OPEN.append(Store(database.url(WRITER)))
    return OPEN[-1]


def ended(
    number: int, journal: str = "J", kind: str = "resolved", *, table: str = "t-1", stake: int = 10, **more: Any
) -> tuple[str, bytes]:
    """The message of an end of a round, with its subject. Every fourth round is void, without stakes."""
    result: dict[str, Any] = {
        "round": f"{table}:{DAY + timedelta(days=number // 100)}:{number}",
        "ruleset": "macau.roulette",
    }
    if number % 4:
        result["settlements"] = [{"seat": 1, "bet": "red", "stake": stake, "returned": number % 3 * 10}]
    else:
        result["void"] = {"reason": {"code": "x", "values": {}}, "bets": "returned"}
    data = msgspec.Raw(msgspec.json.encode({"result": {**result, **more}}))
    wire = Wire(
        "1.0", f"e:{table}:{number}/0", "s", kind, NOON + timedelta(minutes=number), number, "", "R", data=data,
        cause_journal=journal,
    )  # fmt: skip
    return f"feltd.res.s.{table}", encode_wire(wire)


def rows(messages: list[tuple[str, bytes]]) -> list[LedgerRow]:
    return [row for subject, payload in messages if (row := result_of(subject, payload)) is not None]


def booked(folder: Path, bets: int, *, seed: int = 1000) -> tuple[Book, list[tuple[str, bytes]]]:
    """Books of a pool with so many bets, a third of which is no whole coin, and the messages that are forwarded."""
    folder.mkdir()
    with contextlib.closing(Journal(folder / "books.db")) as journal:
        books = Books(journal, {"grand": PoolTerms(seed=seed, visible="1/3", hidden="0.01")}, NOON)
        for number in range(1, bets + 1):
            seen = Seen("edge/A/t-1", number, f"i-{number}", NOON + timedelta(hours=number))
            books.apply(contribute(books["grand"], seen, "t-1", 1, 10 + number, rounds=False), seen.id, seen.at)
        books.commit()
        found = journal.after(0, 10**6)
        messages = [payload_of(row, "jackpots", "s", "jackpots", "B") for row in found]
        return books["grand"], [(subject_of_pool("s", "grand"), one) for one in messages]


def asked(database: Postgres, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url()) as db:
        found: list[tuple[Any, ...]] = db.execute(query.encode()).fetchall()
    return found


def test_each_result_is_there_once_however_often_and_in_what_order_it_comes(database: Postgres) -> None:
    """Doubled and shuffled, by two writers in turns that are killed: counts and sums are those of the messages."""
    messages = [ended(number, table=f"t-{number % 3}") for number in range(300)]
    whole = rows(messages)
    twice = rows(messages * 2)
    random.Random(7).shuffle(twice)
    for at in range(0, len(twice), 50):
        store = writer(database)  # a new process each time
        assert store.write(twice[at : at + 50], "RES", MADE, at + 50, NOON) == 0
        if at == 250:
            database.kill()
            database.start()
    sums = [sum(getattr(one, key) or 0 for one in whole if isinstance(one, Verdict)) for key in ("wagered", "paid")]
    assert asked(database, "SELECT count(*), sum(wagered), sum(paid) FROM feltd.verdicts") == [(300, *sums)]
    assert asked(database, "SELECT count(*) FROM feltd.verdicts WHERE wagered IS NULL") == [(75,)]
    assert writer(database).position("RES", MADE) == 600


def test_a_batch_that_fails_leaves_neither_rows_nor_a_position(database: Postgres) -> None:
    good = rows([ended(1)])
    store = writer(database)
    bad = msgspec.structs.replace(good[0], body="no json", seq=2)
    with pytest.raises(psycopg.Error):
        store.write([*good, bad], "RES", MADE, 9, NOON)
    assert asked(database, "SELECT count(*) FROM feltd.verdicts") == [(0,)]
    assert writer(database).position("RES", MADE) == 0


def test_a_stream_that_was_made_anew_is_read_from_its_beginning(database: Postgres) -> None:
    store = writer(database)
    store.write(rows([ended(1)]), "RES", MADE, 7, NOON)
    store.write([], "RES", MADE, 3, NOON + timedelta(hours=1))  # the other writer, which is behind
    assert store.position("RES", MADE) == 7
    assert asked(database, "SELECT at FROM feltd.position") == [(NOON,)]
    store.write([], "RES", MADE, 7, NOON + timedelta(hours=2))  # nothing waits
    assert asked(database, "SELECT at FROM feltd.position") == [(NOON + timedelta(hours=2),)]
    assert store.position("RES", "later") == 0
    store.write(rows([ended(1)]), "RES", "later", 1, NOON)
    assert (store.position("RES", "later"), store.position("RES", MADE)) == (1, 0)
    assert asked(database, "SELECT count(*) FROM feltd.verdicts") == [(1,)]


def test_two_lives_of_an_edge_are_both_in_the_ledger(database: Postgres) -> None:
    """A replaced disk: the same table and numbers again, counted by another journal."""
    store = writer(database)
    later = ended(1, "K", round="t-1:2026-11-20:2")
    assert store.write(rows([ended(1, "J"), later]), "RES", MADE, 2, NOON) == 0
    assert asked(database, "SELECT journal FROM feltd.verdicts ORDER BY 1") == [("J",), ("K",)]


def test_two_contents_under_one_key_are_both_kept_and_the_first_counts(database: Postgres) -> None:
    store = writer(database)
    assert store.write(rows([ended(1)]), "RES", MADE, 1, NOON) == 0
    for _ in range(2):  # told once
        store.write(rows([ended(1, stake=99), ended(1)]), "RES", MADE, 2, NOON)
    assert asked(database, "SELECT wagered FROM feltd.verdicts") == [(10,)]
    assert asked(database, "SELECT wagered FROM feltd.disagreements") == [(99,)]


def test_a_corrected_round_counts_once_with_its_last_result(database: Postgres) -> None:
    first = ended(1)
    second = ended(2, kind="corrected", stake=30, round="t-1:2026-11-20:1", supersedes="t-1:2026-11-20:1")
    writer(database).write(rows([second, first]), "RES", MADE, 2, NOON)
    found = report(database.url(READER), "hold", ["table"], DAY, DAY + timedelta(days=1))
    assert [row[:4] for row in found.rows] == [("t-1", 1, 0, 30)]


def test_sums_of_closed_days_are_those_of_their_rounds_also_after_a_late_correction(database: Postgres) -> None:
    """Both ways of asking give the same; the sums are read alone where all days are closed."""
    store, until = writer(database), DAY + timedelta(days=3)
    store.write(rows([ended(number, table=f"t-{number % 3}") for number in range(300)]), "RES", MADE, 300, NOON)

    def told() -> list[tuple[Any, ...]]:
        found = report(database.url(READER), "hold", ["day", "hour", "table", "game"], DAY, until)
        return [*found.rows, *report(database.url(READER), "rounds", [], DAY, until).rows]

    of_rounds = told()
    assert DAY not in store.roll_up(DAY + timedelta(days=1)), "it may not be over everywhere"
    days = [DAY + timedelta(days=number) for number in range(3)]
    assert [day for day in store.roll_up(until + timedelta(days=1)) if day in days] == days
    assert told() == of_rounds
    assert asked(database, "SELECT sum(rounds) FROM feltd.hold_hour") == [(300,)]
    corrected = ended(9001, kind="corrected", stake=5000, round="t-1:2026-11-20:1", supersedes="t-1:2026-11-20:1")
    store.write(rows([corrected]), "RES", MADE, 301, NOON)
    after = told()
    assert after != of_rounds
    assert store.roll_up(until + timedelta(days=1)) == [DAY]
    assert told() == after


def test_stakes_that_a_void_round_gives_back_are_no_turnover(database: Postgres) -> None:
    """Neither of an open day nor of a closed one: as on the floor's page."""
    store, until = writer(database), DAY + timedelta(days=1)
    back: dict[str, Any] = {"settlements": [{"seat": 1, "bet": "red", "stake": 70, "returned": 70}]}
    store.write(rows([ended(1), ended(4, **back)]), "RES", MADE, 2, NOON)
    columns = ["day", "rounds", "voided", "wagered", "paid", "hold"]
    for _ in range(2):
        found = report(database.url(READER), "hold", ["day"], DAY, until)
        assert [dict(zip(found.columns, row, strict=True)) for row in found.rows] == [
            dict(zip(columns, (str(DAY), 2, 1, 10, 10, 0), strict=True))
        ]
        assert report(database.url(READER), "rounds", [], DAY, until).rows[0][3] == 1, "rounds with stakes"
        store.roll_up(until + timedelta(days=1))


async def test_an_error_of_the_sums_is_logged_once(database: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that no stream has: a right that is missing for the sums alone."""
    attempts = asyncio.Queue[int]()
    loop = asyncio.get_running_loop()

    class Counted(Store):
        def close(self) -> None:
            super().close()
            loop.call_soon_threadsafe(attempts.put_nowait, 1)

    monkeypatch.setattr(ledger, "Store", Counted)
    monkeypatch.setattr(ledger, "ROLL_UP_S", 0.01)
    with psycopg.connect(database.url()) as db:
        db.execute(f"REVOKE SELECT ON feltd.rolled FROM {WRITER}".encode())
    no_stream = Connection(Backbone(), BackboneUser(), "sums")
    try:
        with structlog.testing.capture_logs() as logged:
            task = asyncio.create_task(ledger.Ledger(database.url(WRITER), no_stream).run())
            for _ in range(3):
                await attempts.get()
            task.cancel()
            await asyncio.wait({task})
    finally:
        with psycopg.connect(database.url()) as db:
            db.execute(f"GRANT SELECT ON feltd.rolled TO {WRITER}".encode())
    assert [one["event"] for one in logged] == ["ledger.sums_wait"]
    assert logged[0]["reason"] == "permission denied for table rolled"


def test_books_of_a_jackpot_are_exact_however_often_and_in_what_order_they_come(
    database: Postgres, tmp_path: Path
) -> None:
    """Each account has the balance of the books, the reports add up, and other contents are kept beside."""
    book, messages = booked(tmp_path / "one", 60)
    twice = rows(messages * 2)
    random.Random(7).shuffle(twice)
    for at in range(0, len(twice), 25):
        assert writer(database).write(twice[at : at + 25], "RES", MADE, at + 25, NOON) == 0
    sums = ", ".join(f"sum({one})" for one in ACCOUNTS)
    [(count, unit, *found)] = asked(database, f"SELECT count(*), max(unit), {sums} FROM feltd.jackpot_entries")
    assert (count, unit) == (book.number, book.unit)
    assert found == [book.balance(one) for one in ACCOUNTS]
    told = report(database.url(READER), "jackpots", ["day", "pool", "kind"], DAY, DAY + timedelta(days=4))
    assert told.columns[3:] == (
        "entries",
        "staked",
        "from_house",
        "to_other_pools",
        "to_pool",
        "pending",
        "paid",
        "margin",
    )
    bets = [10 + number for number in range(1, 12)]  # until midnight of the first day
    [first] = [row for row in told.rows if row[:3] == (str(DAY), "grand", "contributed")]
    assert first[3:6] == (11, sum(bets), 0)
    assert Fraction(first[7]) == round(sum(bets) * (Fraction("1/3") + Fraction("0.01")), 6)
    assert [row[5] for row in told.rows if row[2] == "reset"] == [1000]
    writer(database).write(rows(messages), "RES", MADE, 999, NOON)
    _, others = booked(tmp_path / "other", 60, seed=2000)
    assert writer(database).write(rows(others[:1]), "RES", MADE, 1000, NOON) == 1
    assert writer(database).write(rows(others[:1]), "RES", MADE, 1000, NOON) == 0
    assert asked(database, "SELECT seq, house / unit FROM feltd.jackpot_disagreements") == [(1, -2000)]


def test_an_entry_that_is_no_entry_of_its_pool_is_refused(tmp_path: Path) -> None:
    _, [(subject, payload), *_] = booked(tmp_path / "one", 1)
    names = {name for key, name in vars(accounts).items() if key.isupper() and isinstance(name, str)} - {
        accounts.UNDONE
    }
    assert names == set(ACCOUNTS)
    for other, bad in (
        ("feltd.res.s.jackpot.mini", payload),
        (subject, payload.replace(b'"number":1', b'"number":2')),
        (subject, payload.replace(b'"house":"-', b'"house":"-1')),
        (subject, payload.replace(b'"house"', b'"till"')),
        (subject, payload.replace(b'"unit"', b'"unite"')),
    ):
        with pytest.raises(ValueError, match=r"grand|mini|unit"):
            entry_of(other, bad)


@pytest.mark.parametrize(
    ("user", "statement"),
    [
        (WRITER, "UPDATE feltd.jackpot_entries SET paid = 0"),
        (WRITER, "UPDATE feltd.verdicts SET paid = 0"),
        (WRITER, "DELETE FROM feltd.verdicts"),
        (WRITER, "CREATE TABLE feltd.mine (x int)"),
        (WRITER, "DROP TABLE feltd.verdicts"),
        (READER, "INSERT INTO feltd.position VALUES ('RES', '', 1)"),
        (READER, "SELECT feltd.make_days('2026-01-01', '2026-01-02')"),
    ],
)
def test_a_role_may_do_what_it_needs_and_no_more(database: Postgres, user: str, statement: str) -> None:
    with psycopg.connect(database.url(user)) as db, pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute(statement.encode())


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_reads_its_days_alone(database: Postgres, kind: str) -> None:
    writer(database).write(rows([ended(number) for number in range(300)]), "RES", MADE, 300, NOON)
    with psycopg.connect(database.url(), cursor_factory=psycopg.ClientCursor) as db:
        asking = {"rolled": [], "days": [DAY + timedelta(days=1)]}
        db.execute("SET enable_seqscan = off")  # a few rows need no index
        plan = "\n".join(line for (line,) in db.execute(f"EXPLAIN {statement(kind, ['table'])}".encode(), asking))
    for named in ("jackpot_entries_of_a_day", "{2026-11-21}") if kind == "jackpots" else ("20261121",):
        assert named in plan, plan
    assert "20261120" not in plan
    assert "20261122" not in plan


def test_a_report_with_nearly_a_group_for_each_row_is_summed_without_a_hash_table(database: Postgres) -> None:
    with psycopg.connect(database.url(), cursor_factory=psycopg.ClientCursor) as db:
        db.execute(
            "INSERT INTO feltd.hold_hour SELECT %s, %s::timestamp + n / 500 * interval '1 hour', 's', 't-' || n %% 500,"
            " 'g', 27, 2, 0, 13, 189000, 94500 FROM generate_series(0, 11999) n",
            (DAY, DAY),
        )
        db.execute("ANALYZE feltd.hold_hour")
        asking = {"rolled": [DAY], "days": []}
        [(line,), *_] = db.execute(f"EXPLAIN {statement('hold', ['table', 'hour'])}".encode(), asking).fetchall()
    assert line.startswith("GroupAggregate"), line


def a_fault() -> Fault:
    fault = Wire(
        "1.0", "e:t-1:9", "felt/1/s/table/t-1/device/shoe", "device.faulted", NOON, 9, "", "J",
        data=msgspec.Raw(b'{"code":"lamps.stuck_on","text":"it is lit","severity":"error","remedy":"open it"}'),
    )  # fmt: skip
    found = fault_of("feltd.ev.s.t-1", encode_wire(fault))
    assert found is not None
    return found


def test_the_dashboard_shows_the_figures_of_the_reports(database: Postgres, tmp_path: Path) -> None:
    """Its queries run as Grafana sends them, with the rights of the reports, over closed and open days."""
    store, until = writer(database), DAY + timedelta(days=3)
    store.write(rows([ended(number, table=f"t-{number % 3}") for number in range(300)]), "RES", MADE, 300, NOON)
    store.write([*rows(booked(tmp_path / "one", 60)[1]), a_fault()], "EV", MADE, 1, NOON)
    assert DAY in store.roll_up(DAY + timedelta(days=2))
    shown: dict[str, list[tuple[Any, ...]]] = {}
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        [target] = panel["targets"]
        asked = target["rawSql"].replace("$__timeFrom()", f"'{DAY}T05:00:00Z'")
        asked = asked.replace("$__timeTo()", f"'{until - timedelta(days=1)}T23:00:00Z'")
        with psycopg.connect(database.url(READER)) as db:
            shown[panel["title"]] = db.execute(asked.encode()).fetchall()
    assert all(shown.values()), shown
    assert shown["Results that differ"] == [(0,)]
    assert sum(row[1] for row in shown["Rounds an hour"]) == 300
    for title, kind, by in (
        ("Hold by table", "hold", ["site", "table"]),
        ("Hold by game", "hold", ["site", "game"]),
        ("Faults", "faults", ["site", "table", "device", "code"]),
    ):
        assert shown[title] == list(report(database.url(READER), kind, by, DAY, until).rows), title
    [pool] = report(database.url(READER), "jackpots", ["site", "pool"], DAY, until).rows
    assert sorted(map(str, shown["Jackpots"][0])) == sorted(map(str, pool)), "the same figures in another order"


def test_reports_are_printed_for_people_and_for_programs(database: Postgres, tmp_path: Path) -> None:
    found = a_fault()
    store = writer(database)
    store.write(rows([ended(number, table=f"t-{number % 2}") for number in range(1, 41)]), "RES", MADE, 40, NOON)
    store.write([found, found], "EV", MADE, 1, NOON)
    path = tmp_path / "feltd.toml"
    path.write_text(f'[site]\nname = "s"\n[edge]\nname = "e"\n[ledger]\nreports = "{database.url(READER)}"\n')

    def run(*words: str) -> str:
        ran = CliRunner().invoke(main, ["report", *words, "-c", str(path), "--from", "2026-11-20"])
        assert ran.exit_code == 0, ran.output
        assert "complete up to 2026-11-20 12:00" in ran.stderr or "--json" in words
        return ran.stdout

    hold = json.loads(run("hold", "--by", "table,hour", "--json"))
    assert hold["columns"] == ["table", "hour", "rounds", "voided", "wagered", "paid", "hold"]
    assert sum(row[2] for row in hold["rows"]) == 40
    assert all(int(row[6]) == int(row[4]) - int(row[5]) for row in hold["rows"])
    table = list(csv.DictReader(io.StringIO(run("rounds", "--by", "table", "--csv"))))
    assert [(row["table"], row["rounds"], row["voided"]) for row in table] == [("t-0", "20", "10"), ("t-1", "20", "0")]
    assert run("faults", "--by", "device,code").split()[-3:] == ["shoe", "lamps.stuck_on", "1"]
    wrong = CliRunner().invoke(main, ["report", "faults", "--by", "game", "-c", str(path)])
    assert (wrong.exit_code, "faults has no game" in wrong.output) == (2, True)


@pytest.fixture
def console(database: Postgres, tmp_path: Path) -> Iterator[Console]:
    """A console of this ledger, ten days later."""
    one = Console(tmp_path, config=f'{CONFIG}[ledger]\nreports = "{database.url(READER)}"\n')
    one.now += timedelta(days=10)
    yield one
    one.house.close()
    one.store.close()
    one.journal.close()


def cells(text: str) -> list[list[str]]:
    """The texts of a page's table, row by row."""
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall("<td[^>]*>(?:<span[^>]*>)?([^<]*)", row) for row in body.split("</tr>")[:-1]]


def on_page(column: str, value: Any, decimals: int) -> str:
    """A figure of a report as a person reads it: amounts in the currency, with the decimals of their column."""
    match column, value:
        case _, None:
            return "not known"
        case (("game" | "kind"), _):
            return {"macau.roulette": "Roulette", "contributed": "bet", "reset": "set to the seed"}.get(value, "–")
        case "code", "lamps.stuck_on":
            return "A lamp that should be dark is lit"
        case "day" | "hour", _:
            return f"{date.fromisoformat(value[:10]):%-d %b %Y}{value[10:]}"
        case _, str():
            return value or "–"
        case _ if column in MONEY:
            return f"{Decimal(value) / 100:,.{decimals}f}".replace("-", "\u2212")
    return f"{value:,}"


def decimals_of(minor: Any) -> int:
    """Of an amount, in the currency; at least two."""
    return 2 if minor is None or isinstance(minor, str) else 2 + len(f"{minor:f}".partition(".")[2])


@pytest.mark.parametrize("kind", REPORTS)
async def test_the_console_shows_and_exports_the_figures_of_the_reports(
    database: Postgres, console: Console, tmp_path: Path, kind: str
) -> None:
    """Of the days that were asked for alone, the last one included."""
    store, last = writer(database), DAY + timedelta(days=1)
    store.write(rows([ended(number, table=f"t-{number % 3}") for number in range(300)]), "RES", MADE, 300, NOON)
    store.write([*rows(booked(tmp_path / "one", 60)[1]), a_fault()], "EV", MADE, 1, NOON)
    by = list(REPORTS[kind][2])
    found = report(database.url(READER), kind, by, DAY, last + timedelta(days=1))
    assert found.rows
    assert {row[0] for row in found.rows} <= {str(DAY), str(last)}
    wanted = [["" if one is None else str(one) for one in row] for row in found.rows]
    decimals = [max(map(decimals_of, values)) for values in zip(*found.rows, strict=True)]
    as_read = [[on_page(*one) for one in zip(found.columns, row, decimals, strict=True)] for row in found.rows]
    asked = {"kind": kind, "from": str(DAY), "to": str(last), "by": by}
    async with console.browser("manager") as browser:
        shown = (await browser.get("/reports", params=asked)).text
        file = await browser.get("/reports.csv", params=asked)
        total = await browser.get("/reports", params={"kind": "hold", "from": "2026-11-26", "to": "2026-11-26"})
    assert cells(shown) == as_read
    assert ("Amounts in MOP" in shown) == (kind in ("hold", "jackpots"))
    assert list(csv.reader(io.StringIO(file.text.removeprefix("\ufeff")))) == [list(found.columns), *wanted]
    assert "Complete up to" in shown
    assert 'datetime="2026-11-20T12:00:00' in shown
    assert cells(total.text) == [["not known"] * 5], "no rounds: nothing is known"
    assert {f"reports.{one}" for one in found.columns} <= set(words.catalog("en"))


async def test_the_console_says_where_a_report_is_too_long_or_too_slow(
    database: Postgres, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer(database).write(rows([ended(n, table=f"t-{n % 3}") for n in range(9)]), "RES", MADE, 9, NOON)
    monkeypatch.setattr(page, "MOST", 2)
    monkeypatch.setattr(page, "MOST_IN_FILE", 2)
    monkeypatch.setattr(page, "LIMIT_S", 3)
    asked = "kind=hold&by=table&from=2024-01-01&to=2026-11-20"
    async with console.browser("manager") as browser:
        shown = (await browser.get(f"/reports?{asked.replace('2024-01-01', '2026-11-20')}")).text
        assert len(cells(shown)) == 2
        assert "The first 5,000 rows are displayed" in shown
        assert "At most 400 days" not in shown
        assert "At most 400 days are displayed" in (await browser.get(f"/reports?{asked}")).text
        file = await browser.get(f"/reports.csv?{asked.replace('2024', '2026')}")
        assert (file.status_code, "more than 20,000 rows" in file.text) == (503, True)
        with psycopg.connect(database.url()) as db:
            db.execute("LOCK TABLE feltd.verdicts")
            both = await asyncio.gather(*(browser.get("/reports?from=2026-11-20") for _ in range(2)))
    assert [one.status_code for one in both] == [200, 200]
    assert sum("longer than 10 seconds" in one.text for one in both) == 1
    assert sum("Another report is being made" in one.text for one in both) == 1


ROUNDS = range(1, 41)
VOID: dict[str, Any] = {"settlements": [{"seat": 1, "bet": "red", "stake": 70, "returned": 70}]}
FIXED: dict[str, Any] = {
    "kind": "corrected",
    "round": "bac-12:2026-11-20:5",
    "supersedes": "bac-12:2026-11-20:5",
    "stake": 333,
}


def of_floor(table: str) -> list[tuple[str, bytes]]:
    """40 rounds of a table of the console, one a minute; the eighth is void with stakes, the fifth corrected late."""
    found = [ended(n, table=table, **VOID if n == 8 else {}) for n in ROUNDS]
    return [*found, ended(55, table=table, **FIXED | {"round": f"{table}:2026-11-20:5"})]


def received(console: Console, table: str, messages: list[tuple[str, bytes]]) -> None:
    """The console receives these without a gap."""
    for number, (_, payload) in enumerate(messages, 1):
        wire = msgspec.structs.replace(decode_wire(payload), seq=number)
        console.say(f"{table_topic('lisboa', table, 'round')}/event/{wire.type}", encode_wire(wire))


def summed(numbers: range) -> dict[str, str]:
    """The figures of these rounds, added up by hand. Every fourth is void; the fifth counts with its correction."""
    valid = [n for n in numbers if n % 4]
    turnover = sum(333 if n == 5 else 10 for n in valid)
    paid = sum((55 if n == 5 else n) % 3 * 10 for n in valid)
    counts = {"rounds": len(numbers), "void_rounds": len(numbers) - len(valid), "rounds_with_bets": len(valid)}
    return {key: str(one) for key, one in {**counts, "turnover": turnover, "win": turnover - paid}.items()}


async def floor_of(console: Console, first: str, last: str, by: str = "table") -> tuple[dict[str, dict[str, str]], str]:
    """The lines of the floor's file by their names, and its page."""
    asked = {"from": f"2026-11-20T{first}+00:00", "to": f"2026-11-20T{last}+00:00", "by": by}
    async with console.browser("manager") as browser:
        text = (await browser.get("/floor.csv", params=asked)).text.removeprefix("\ufeff")
        page = (await browser.get("/floor", params=asked)).text
    return {line["line"]: line for line in csv.DictReader(io.StringIO(text))}, html.unescape(page)


async def test_the_floor_has_the_figures_of_the_ledger_to_the_coin(database: Postgres, console: Console) -> None:
    """Of a table of which the console received half; in any period, and in each list."""
    messages = [
        (subject.replace(".s.", ".lisboa."), one) for table in ("bac-12", "rou-3") for subject, one in of_floor(table)
    ]
    writer(database).write(rows(messages), "RES", MADE, 90, NOON + timedelta(hours=1))
    elsewhere = rows([ended(n, table="rou-3") for n in ROUNDS])
    writer(database).write(elsewhere, "RES", MADE, 91, NOON + timedelta(hours=1))  # another site
    console.begin()
    later = ended(70, table="rou-3"), ended(71, table="rou-3")
    received(console, "bac-12", of_floor("bac-12"))
    received(console, "rou-3", [*of_floor("rou-3")[20:-1], *later])
    found, page = await floor_of(console, "12:00", "13:00")
    for table in ("bac-12", "rou-3"):
        assert found[table].items() >= summed(ROUNDS).items()
    assert found["bac-12"]["expected_win"]
    assert [found[one]["expected_win"] for one in ("rou-3", "total")] == ["", ""]
    assert found["total"]["ledger_until"] == "2026-11-20T12:59:00+00:00"
    assert "did not receive all rounds of rou-3: their" in page
    for table, first, last in (("rou-3", 3, 31), ("bac-12", 31, 41)):
        part, _ = await floor_of(console, f"12:{first:02}", f"12:{last}")
        assert part[table].items() >= summed(range(first, last)).items()
    whole = {by: (await floor_of(console, "00:00", "14:00", by))[0] for by in ("table", "game", "hour", "shift", "day")}
    for by, lines in whole.items():
        both = {key: str(2 * int(one)) for key, one in summed(ROUNDS).items()}
        plus = {"rounds": 2, "void_rounds": 0, "rounds_with_bets": 2, "turnover": 20, "win": 20 - 10 - 20}
        for key, one in plus.items():
            assert int(lines["total"][key]) == int(both[key]) + one, (by, key)
            assert int(lines["total"][key]) == sum(int(lines[name][key] or 0) for name in lines if name != "total"), by


async def test_the_floor_says_where_the_ledger_has_fewer_rounds(database: Postgres, console: Console) -> None:
    console.begin()
    received(console, "bac-12", of_floor("bac-12"))
    for until, said in (
        (None, "has nothing of this time yet"),
        (NOON + timedelta(hours=1), "fewer rounds of bac-12 than this console"),
    ):
        if until:
            writer(database).write([], "RES", MADE, 1, until)
        found, page = await floor_of(console, "12:00", "13:00")
        assert found["bac-12"].items() >= summed(ROUNDS).items()
        assert said in page, page[page.index("<section") :][:1500]


@pytest.mark.parametrize(
    "round_", ["t-1:2026-11-20:7", "t-1:2026-11-20:7:3", "t-1:0001-01-01:7", "t-1:2026-13-40:7", "strange"]
)
def test_the_day_of_a_round_is_the_same_for_each_delivery(round_: str) -> None:
    [row] = rows([ended(1, round=round_)])
    assert row.day == DAY


def test_what_no_rules_of_ours_wrote_is_refused() -> None:
    subject, payload = ended(1)
    for other in ("feltd.res.s.t-2", "feltd.res.s", "felt.res.s.t-1"):
        with pytest.raises(ValueError, match=r"t-2|no subject"):
            verdict_of(other, payload)
    for bad in (b"{", payload.replace(b"e:t-1:1/0", b"e:t-1:1/x"), payload.replace(b'"result"', b'"rest"')):
        with pytest.raises(ValueError, match=r".+"):
            verdict_of(subject, bad)
