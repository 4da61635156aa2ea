"""The reliability of devices: time between faults and to repair, lost rounds, the worst, and service due."""

import csv
import html
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from console_floor import Console, opened

from daemon.console.alerts.reliability import Fault, Line, Unit, lines, units_of, worst
from daemon.console.auth.users import Role
from daemon.console.site.actions import read_actions
from protocols.contract.topics import Wire, encode_wire, table_topic

TABLE = "bac-12"
SERVICE = "[console.service]\nbee_tek_shoe = 20"
JAM = {"code": "shoe.jam", "device": "shoe-1"}
AT = datetime(2026, 11, 20, tzinfo=UTC)


def hour(n: float) -> datetime:
    return AT + timedelta(hours=n)


def unit(table: str, device: str = "shoe-1", kind: str = "shoe", model: str = "A", serial: str = "") -> Unit:
    return Unit(table, device, kind, model, serial, hour(0), hour(100))


def fault(table: str, began: float, ended: float | None, lost: float | None = 0, code: str = "jam") -> Fault:
    return Fault(table, "shoe-1", code, hour(began), None if ended is None else hour(ended), lost, 0)


# ---- what is computed


def by(what: str, units: list[Unit], *found: Fault, watched: float = 100) -> dict[tuple[str, ...], Line]:
    some = lines(what, units, found, [(hour(0), hour(watched))])  # type: ignore[arg-type]
    return {one.name: one for one in some}


def test_mean_times_of_a_unit_and_of_its_kind() -> None:
    units = [unit("t-1"), unit("t-2")]
    found = fault("t-1", 10, 11), fault("t-1", 20, 23), fault("t-2", 30, None)
    line = by("unit", units, *found)["t-1", "shoe-1", ""]
    assert (line.faults, line.between_s, line.repair_s, line.down_s) == (2, 50 * 3600, 2 * 3600, 4 * 3600)
    line = by("kind", units, *found)[("shoe",)]
    assert (line.units, line.faults, line.open) == (2, 3, 1)
    assert line.between_s == pytest.approx(200 / 3 * 3600)
    assert line.repair_s == 2 * 3600, "a fault that is open has no time to repair yet"


def test_unwatched_time_counts_neither_as_time_between_faults_nor_as_repair() -> None:
    line = by("unit", [unit("t-1")], fault("t-1", 10, 30), fault("t-1", 26, 27), watched=25)["t-1", "shoe-1", ""]
    assert (line.faults, line.between_s) == (2, 25 * 3600)
    assert line.repair_s is None


def test_a_device_without_a_fault_has_no_time_between_faults() -> None:
    line = by("unit", [unit("t-1")])["t-1", "shoe-1", ""]
    assert (line.between_s, line.repair_s, line.lost, line.watched_s) == (None, None, 0, 100 * 3600)


def test_a_device_that_is_gone_has_a_kind_that_is_not_known() -> None:
    line = by("kind", [unit("t-1")], fault("gone", 10, 11))[("",)]
    assert (line.units, line.faults, line.between_s) == (0, 1, None)


def test_lost_rounds_add_up_and_those_that_are_not_known_are_counted() -> None:
    found = fault("t-1", 1, 2, lost=12.5), fault("t-1", 3, 4, lost=-2.5), fault("t-1", 5, 6, lost=None)
    line = by("unit", [unit("t-1")], *found)["t-1", "shoe-1", ""]
    assert (line.lost, line.unknown) == (10, 1)
    line = by("fault", [unit("t-1")], *found)["shoe", "jam"]
    assert (line.units, line.lost) == (1, 10)
    assert by("unit", [unit("t-1")], found[2])["t-1", "shoe-1", ""].lost is None


def test_the_worst_are_those_that_cost_most_rounds() -> None:
    units = [unit(f"t-{n}") for n in range(15)]
    found = [fault(f"t-{n}", 1, 2, lost=n) for n in range(14)]
    first, *others = worst(by("unit", units, *found).values())
    assert (first.name[0], len(others)) == ("t-13", 9)


def test_another_serial_number_is_another_unit() -> None:
    key = "t-1", "shoe-1"
    lives = {key: [(hour(1), "a"), (hour(5), "a"), (hour(20), "b")]}
    first, second = units_of({key: ("shoe", "A", "b")}, {key: hour(0)}, lives, hour(100))
    assert (first.serial, first.model, first.since, first.until) == ("a", "", hour(0), hour(20))
    assert (second.serial, second.model, second.since, second.until) == ("b", "A", hour(20), hour(100))
    named = by("unit", [first, second], fault("t-1", 10, 11), fault("t-1", 30, 31), fault("t-1", 40, 41))
    assert [named["t-1", "shoe-1", serial].faults for serial in "ab"] == [1, 2]


def test_a_device_that_was_not_watched_yet_is_listed() -> None:
    (one,) = units_of({("t-1", "shoe-1"): ("shoe", "A", "a")}, {}, {}, hour(100))
    assert (one.model, one.serial, one.since, one.until) == ("A", "a", hour(100), hour(100))
    (line,) = by("unit", [one]).values()
    assert (line.faults, line.watched_s) == (0, 0)


# ---- the page


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path, SERVICE) as one:
        one.begin()
        one.device(TABLE, "shoe-1", "bee_tek_shoe")
        watch(one, 20)
        yield one


def watch(console: Console, seconds: int) -> None:
    """Time goes by, and the console is there."""
    for _ in range(seconds // 10):
        console.wait(10)
        console.house.watched.look()


def rounds(console: Console, count: int, seconds: int = 60, kind: str = "resolved") -> None:
    """Rounds of the table end, one every minute; void ones are of kind `voided`."""
    source = table_topic("lisboa", TABLE, "round")
    for _ in range(count):
        watch(console, seconds)
        console.count = seq = getattr(console, "count", 0) + 1  # type: ignore[attr-defined]
        result = {"round": f"{TABLE}:2026-11-20:{seq}", "ruleset": "macau.baccarat", "edition": "2004"}
        more = {"void": {"reason": {"code": "declared"}, "bets": "returned"}} if kind == "voided" else {}
        raw = msgspec.Raw(msgspec.json.encode({"result": result | more}))
        one = Wire("1.0", f"edge-7:{TABLE}:{seq}/0", source, kind, console.now, seq, data=raw, journal="j")
        console.say(f"{source}/event/{kind}", encode_wire(one))
    console.house.rounds.flush()


async def table(console: Console, by: str = "unit", role: Role = "manager") -> dict[str, dict[str, str]]:
    async with console.browser(role) as browser:
        text = (await browser.get(f"/devices.csv?by={by}")).text
    return {one["line"]: one for one in csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))}


async def look(console: Console, query: str = "", role: Role = "manager") -> str:
    async with console.browser(role) as browser:
        answer = await browser.get(f"/devices{query}")
    assert answer.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", answer.text))).replace("\u00a0", " ")


async def test_a_fault_costs_the_rounds_that_the_table_would_have_played(console: Console) -> None:
    rounds(console, 65)
    watch(console, 10)
    console.alert(TABLE, "shoe-1-jam", **JAM)
    watch(console, 600)
    rounds(console, 1, kind="voided")
    watch(console, 10)
    console.alert(TABLE, "shoe-1-jam")
    line = (await table(console))[f"{TABLE} shoe-1"]
    assert (line["faults"], line["open"], line["to_repair_s"]) == ("1", "0", "670.0")
    assert float(line["rounds_not_played"]) == pytest.approx(670 / 60 - 1, abs=0.05)
    assert line["void_rounds"] == "1"
    assert float(line["between_faults_s"]) == pytest.approx(float(line["watched_s"]))
    assert float(line["watched_s"]) == pytest.approx((console.now - hour(20)).total_seconds(), abs=11)
    assert "about 10" in await look(console)
    assert "Bee-Tek (USPC) card-reading shoe" in await look(console, "?by=kind")
    for by in ("model", "kind", "fault"):
        assert next(iter((await table(console, by)).values()))["faults"] == "1"
        assert "11 min" in await look(console, f"?by={by}")


async def test_what_a_fault_cost_before_rounds_were_recorded_is_not_known(console: Console) -> None:
    console.alert(TABLE, "shoe-1-jam", **JAM)
    watch(console, 60)
    console.alert(TABLE, "shoe-1-jam")
    rounds(console, 2)
    line = (await table(console))[f"{TABLE} shoe-1"]
    assert [line[name] for name in ("faults", "rounds_not_played", "void_rounds", "faults_of_unknown_cost")] == [
        *("1", "", "", "1")
    ]
    assert "not known" in await look(console)


async def test_warnings_and_faults_during_maintenance_do_not_count(console: Console) -> None:
    console.alert(TABLE, "dust", code="shoe.dust", device="shoe-1", severity="warning")
    console.house.incidents.silence(TABLE, "", "", console.now + timedelta(hours=1), "sam", "cleaning", console.now)
    watch(console, 10)
    console.alert(TABLE, "shoe-1-jam", **JAM)
    watch(console, 10)
    assert (await table(console))[f"{TABLE} shoe-1"]["faults"] == "0"


async def test_a_repair_while_the_console_was_away_has_no_known_length(console: Console) -> None:
    console.alert(TABLE, "shoe-1-jam", **JAM)
    watch(console, 60)
    again = console.again(hours=2)
    again.device(TABLE, "shoe-1", "bee_tek_shoe")
    watch(again, 60)
    line = (await table(again))[f"{TABLE} shoe-1"]
    assert (line["faults"], line["open"], line["to_repair_s"]) == ("1", "0", "")
    assert float(line["watched_s"]) < 200


async def test_service_is_due_after_its_rounds_and_begins_anew_when_it_is_noted(console: Console) -> None:
    rounds(console, 17)
    assert "at least 17 20 not due" in await look(console)
    rounds(console, 1)
    assert "at least 18 20 soon due" in await look(console)
    rounds(console, 2)
    assert "at least 20 20 due" in await look(console)
    assert "Note it" not in await look(console)
    assert "Note it" in await look(console, role="technician")
    form = {"device": "shoe-1", "why": "rollers changed", "to": "/devices"}
    watch(console, 10)
    async with console.browser("technician") as browser:
        answer = await browser.post(f"/table/{TABLE}/fairness", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, "/devices")
        assert (await browser.post(f"/table/{TABLE}/fairness", data=form | {"device": "none"})).status_code == 400
    [done] = read_actions(console.journal.path, 1, action="serviced")
    assert (done.target, done.detail) == (f"{TABLE}/shoe-1", {"why": "rollers changed"})
    rounds(console, 1)
    page = await look(console)
    assert "1 20 not due" in page
    assert "rollers changed" in page


async def test_rounds_since_service_stay_when_the_rounds_are_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path, f"rounds_kept = 100\n{SERVICE}") as console:
        console.begin()
        console.device(TABLE, "shoe-1", "bee_tek_shoe")
        watch(console, 20)
        console.now += timedelta(hours=5)  # the next day
        watch(console, 20)
        rounds(console, 300, seconds=10)
        (kept,) = console.store.db.execute("SELECT count(*) FROM round_money").fetchone()
        assert kept < 200
        assert "at least 300 20 due" in await look(console)
