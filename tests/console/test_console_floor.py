"""The sheet of a table and the floor of the manager: who may enter what, and numbers that add up to the minor unit."""

import asyncio
import csv
import html
import io
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from console_floor import Console, opened
from helpers import virtual_time

from daemon.console.auth.users import Role
from daemon.console.live import Viewer
from daemon.console.pages.sheet import EVERY_S, _place
from daemon.console.site.actions import read_actions
from daemon.console.site.counts import Counts, tally
from daemon.console.site.store import BadStore
from protocols.contract.documents import EdgeInfo, TableSign
from protocols.contract.topics import Wire, edge_topic, encode_wire, table_topic
from protocols.fdl import frame as fdl
from protocols.fdl.console import LimitsChanged, TableClosedBy, TableCounted, TableOpened

TABLE = "bac-12"
DEALER = f'[console.dealer]\n{TABLE} = "/run/feltd/console/n{TABLE}.sock"\n[console.par]\n"macau.baccarat" = 70'
FIRST, SECOND, THIRD = ("a" * 32, "b" * 32, "c" * 32)


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path, DEALER) as one:
        one.begin()
        one.device(TABLE, "shoe-1", "bee_tek_shoe")
        yield one


def told(console: Console) -> list[tuple[int, bytes]]:
    """What waits for the edge, but for the start of the unit."""
    query = "SELECT kind, data FROM dealer_event WHERE place = ? ORDER BY counter"
    return console.store.db.execute(query, (TABLE,)).fetchall()[1:]


def wire(*happenings: fdl.Happening) -> list[tuple[int, bytes]]:
    return [(one.KIND, one.to_bytes()) for one in happenings]


async def post(console: Console, role: Role, path: str, **form: str) -> httpx.Response:
    async with console.browser(role) as browser:
        return await browser.post(f"/floor/{TABLE}/{path}", data={"id": FIRST} | form)


async def look(console: Console, path: str = f"/floor/{TABLE}", role: Role = "manager") -> str:
    async with console.browser(role) as browser:
        answer = await browser.get(path)
    assert answer.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", answer.text)).replace("\u00a0", " ")


# ---- the sign


async def test_a_manager_opens_the_table_changes_its_limits_and_closes_it(console: Console) -> None:
    answer = await post(console, "manager", "sign/open", minimum="100.00", maximum="5000")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/floor/{TABLE}")
    await post(console, "supervisor", "sign/limits", id=SECOND, minimum="200")
    await post(console, "manager", "sign/close", id=THIRD)
    assert told(console) == wire(
        TableOpened("manager@lisboa", 10_000, 500_000),
        LimitsChanged("supervisor@lisboa", 20_000),
        TableClosedBy("manager@lisboa"),
    )
    done = read_actions(console.journal.path, 3)[-1]
    assert (done.user, done.action, done.detail["key"]) == ("manager@lisboa", "dealer", "sign_open")


async def test_a_form_that_is_sent_twice_opens_once(console: Console) -> None:
    for _ in range(2):
        assert (await post(console, "manager", "sign/open", minimum="100")).status_code == 303
    assert len(told(console)) == 1
    other = await post(console, "manager", "sign/open", minimum="300")
    assert other.status_code == 400


async def test_limits_that_cannot_be_are_said_and_stay_in_the_form(console: Console) -> None:
    answer = await post(console, "manager", "sign/open", minimum="500", maximum="100.00")
    assert answer.status_code == 400
    assert "The minimum is above the maximum." in answer.text
    assert 'value="500"' in answer.text
    assert (await post(console, "manager", "sign/open", minimum="1,000")).status_code == 400
    assert told(console) == []


@pytest.mark.parametrize("role", ["dealer", "inspector", "technician", "viewer", "administrator"])
async def test_nobody_else_opens_a_table(console: Console, role: Role) -> None:
    assert (await post(console, role, "sign/open", minimum="100")).status_code == 403
    assert told(console) == []


async def test_the_sign_of_the_edge_stands_on_sheet_floor_and_tile(console: Console) -> None:
    assert "It is unknown whether the table is open" in await look(console)
    sign = TableSign("open", "mona", console.now, 10_000, 500_000)
    info = EdgeInfo("1", signs={TABLE: sign})
    console.say(edge_topic("lisboa", "edge-7", "info"), msgspec.json.encode(info))
    sheet = await look(console)
    assert "MOP 100.00 – MOP 5,000.00" in sheet
    assert "by mona" in sheet
    assert re.search(r"Tables open <strong[^>]*>1<", await look(console, "/floor"))
    assert "100–5,000" in await look(console, "/wall")
    closed = EdgeInfo("1", signs={TABLE: TableSign("closed", "mona", console.now)})
    console.say(edge_topic("lisboa", "edge-7", "info"), msgspec.json.encode(closed))
    console.house.signs.look()
    assert '<span class="sign closed">closed</span>' in await look(console, "/wall")
    console.edge(online=False)
    assert "It is unknown whether the table is open" in await look(console)


async def test_what_cannot_be_stored_is_said_without_a_key(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = console.house.dealers.units[TABLE]
    monkeypatch.setattr(unit, "press", lambda *_: (_ for _ in ()).throw(BadStore("no room")))
    answer = await post(console, "manager", "sign/open", minimum="100.00", maximum="500.00")
    assert "Nothing was stored: the console could not write to its disk. Enter it again" in answer.text


# ---- counts


async def enter(console: Console, kind: str, amount: str, id_: str, role: Role = "dealer") -> int:
    return (await post(console, role, "count", id=id_, kind=kind, amount=amount)).status_code


async def confirm(console: Console, id_: str, role: Role = "supervisor") -> httpx.Response:
    return await post(console, role, f"count/{id_}/confirm")


async def test_a_dealer_enters_and_a_supervisor_confirms(console: Console) -> None:
    assert await enter(console, "fill", "1500.50", FIRST) == 303
    assert told(console) == [], "one person is not enough"
    assert (await confirm(console, FIRST, "dealer")).status_code == 403
    assert (await confirm(console, FIRST)).status_code == 303
    assert (await confirm(console, FIRST)).status_code == 303
    counted = TableCounted(0x03, 150_050, FIRST, "dealer@lisboa", "supervisor@lisboa")
    assert told(console) == wire(counted)
    actions = [(one.user, one.action) for one in read_actions(console.journal.path, 2)]
    assert actions == [("supervisor@lisboa", "dealer"), ("dealer@lisboa", "count.enter")]


async def test_nobody_confirms_an_entry_of_their_own(console: Console) -> None:
    await enter(console, "drop", "9000", FIRST, "supervisor")
    answer = await confirm(console, FIRST)
    assert answer.status_code == 400
    assert "another person confirms it" in answer.text
    assert told(console) == []


async def test_the_win_is_computed_as_the_trade_does_and_what_is_missing_is_said(console: Console) -> None:
    entries = {"opening": "50000", "fill": "10000", "credit": "4000", "drop": "30000"}
    for n, (kind, amount) in enumerate(entries.items()):
        await enter(console, kind, amount, f"{n:032x}")
        await confirm(console, f"{n:032x}")
    missing = 'Closing</th><td class="num"><span class="badge warning">missing</span>'
    assert missing in await look(console)
    await enter(console, "closing", "43000.25", "f" * 32)
    assert missing in await look(console), "it waits for the second person"
    await confirm(console, "f" * 32)
    page = await look(console)
    assert "missing" not in page
    assert "MOP 17,000.25" in page  # 43,000.25 + 4,000 + 30,000 - 50,000 - 10,000


async def test_an_entry_is_taken_back_by_another_one_of_two_people(console: Console) -> None:
    await enter(console, "fill", "100", FIRST)
    await confirm(console, FIRST)
    assert (await post(console, "dealer", "count", id=SECOND, reverses=FIRST)).status_code == 303
    counts = Counts(console.store)
    day = console.now - timedelta(days=1), console.now + timedelta(days=1)
    assert tally(counts.entries(TABLE, *day)).sums["fill"] == 10_000
    await confirm(console, SECOND)
    assert tally(counts.entries(TABLE, *day)).sums["fill"] == 0
    assert told(console)[-1:] == wire(TableCounted(0x03, 10_000, SECOND, "dealer@lisboa", "supervisor@lisboa", FIRST))
    again = await post(console, "dealer", "count", id=THIRD, reverses=FIRST)
    assert again.status_code == 400
    assert "taken back already" in again.text


async def test_entries_survive_a_restart_and_a_confirmed_one_reaches_the_edge_once(console: Console) -> None:
    await enter(console, "drop", "700", FIRST)
    Counts(console.store).decide(FIRST, TABLE, "confirmed", "sam", console.now)  # and the process was killed
    assert told(console) == []
    again = console.again()
    again.house.sheets.hand_over()
    again.house.sheets.hand_over()
    assert told(again) == wire(TableCounted(0x05, 70_000, FIRST, "dealer@lisboa", "sam"))
    assert "MOP 700.00" in await look(again)


@virtual_time
async def test_a_confirmed_entry_that_cannot_be_stored_is_handed_over_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also at the start of the console, which goes on."""
    with opened(tmp_path, DEALER) as console:
        counts, unit = Counts(console.store), console.house.dealers.units[TABLE]
        counts.enter(FIRST, TABLE, "drop", 70_000, at=console.now, by="dora")
        entry = counts.decide(FIRST, TABLE, "confirmed", "sam", console.now)
        with monkeypatch.context() as full:
            full.setattr(unit, "press", lambda *_: (_ for _ in ()).throw(BadStore("no room")))
            running = asyncio.create_task(console.house.sheets.run())
            await asyncio.sleep(60)
            assert not running.done()
            assert told(console) == []
            assert _place(unit, entry) == "here"
        await asyncio.sleep(EVERY_S)
        running.cancel()
        await asyncio.wait([running])
        assert told(console) == wire(TableCounted(0x05, 70_000, FIRST, "dora", "sam"))
        assert counts.unsent() == []


async def test_a_withdrawn_entry_is_no_event(console: Console) -> None:
    await enter(console, "drop", "700", FIRST)
    assert (await post(console, "dealer", f"count/{FIRST}/withdraw")).status_code == 303
    assert (await confirm(console, FIRST)).status_code == 400
    assert told(console) == []


# ---- the manager's numbers


def ended(console: Console, n: int, bets: list[tuple[str, int, int]], kind: str = "resolved", **more: Any) -> None:
    """Round `n` ends with these bets, stakes and payments."""
    settlements = [{"seat": 1, "bet": bet, "stake": stake, "returned": paid} for bet, stake, paid in bets]
    result = {
        "round": f"{TABLE}:2026-11-20:1:{n}",
        "ruleset": "macau.baccarat",
        "edition": "2004",
        "outcome": {"winner": "player"},
        "settlements": settlements,
    }
    source = table_topic("lisboa", TABLE, "round")
    raw = msgspec.Raw(msgspec.json.encode({"result": result | more}))
    console.count = getattr(console, "count", 0) + 1  # type: ignore[attr-defined]
    seq: int = console.count  # type: ignore[attr-defined]
    one = Wire("1.0", f"edge-7:{TABLE}:{seq}/0", source, kind, console.now, seq, data=raw, journal="j")
    console.say(f"{source}/event/{kind}", encode_wire(one))


async def numbers(console: Console, by: str = "table") -> list[dict[str, str]]:
    async with console.browser("manager") as browser:
        text = (await browser.get(f"/floor.csv?by={by}")).text
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


async def test_turnover_win_and_expected_win_are_those_of_the_rounds(console: Console) -> None:
    ended(console, 1, [("player", 10_000, 20_000), ("tie", 1_000, 0)])
    console.now += timedelta(minutes=1)
    ended(console, 2, [("player", 30_000, 0)])
    console.now += timedelta(minutes=1)
    void = {"void": {"reason": {"code": "declared"}, "bets": "returned"}}
    ended(console, 3, [("player", 5_000, 5_000)], "voided", **void)
    table, whole = await numbers(console)
    assert (table["line"], whole["line"]) == (TABLE, "total")
    for line in (table, whole):
        assert (line["rounds"], line["rounds_with_bets"], line["void_rounds"]) == ("3", "2", "1")
        assert (line["turnover"], line["win"], line["void_stakes"]) == ("41000", "21000", "5000")
        assert float(line["expected_win"]) == pytest.approx(40_000 * 0.012351 + 1_000 * 0.143596)
        assert float(line["void_expected_win"]) == pytest.approx(5_000 * 0.012351, abs=1e-3)
        assert float(line["rounds_per_hour"]) == pytest.approx(60)
        assert (line["par"], line["judged"]) == ("70.0000", "few")
    page = await look(console, "/floor")
    assert "Amounts in MOP." in page
    assert "410.00" in page
    assert "51.22 %" in page
    assert "too few rounds" in page


async def test_the_page_is_live_while_rounds_end_and_the_sign_changes(console: Console) -> None:
    page = await look(console, "/floor")
    [name] = re.findall('data-live="(floor/[^"]*)"', page)
    manager = Viewer("en", "manager")

    def drawn() -> str:
        return console.house.live.html(name, manager)

    assert "410.00" not in drawn()
    ended(console, 1, [("player", 41_000, 0)])
    console.house.rounds.flush()
    assert "410.00" in drawn()
    opened_tables = re.compile(r"Tables open <strong[^>]*>1<")
    assert not opened_tables.search(drawn())
    info = EdgeInfo("1", signs={TABLE: TableSign("open", "mona", console.now)})
    console.say(edge_topic("lisboa", "edge-7", "info"), msgspec.json.encode(info))
    console.house.signs.look()
    assert opened_tables.search(drawn())
    for wrong in ("floor", "floor/table", name.replace("table", "nothing"), f"{name}x"):
        with pytest.raises(KeyError):
            console.house.live.html(wrong, manager)
    for forbidden in (Viewer("en", "viewer"), Viewer("en", "technician")):
        with pytest.raises(KeyError):
            console.house.live.html(name, forbidden)


async def test_a_corrected_round_counts_once_as_it_was_corrected(console: Console) -> None:
    ended(console, 1, [("player", 10_000, 20_000)])
    console.now += timedelta(seconds=30)
    ended(console, 1, [("player", 10_000, 0)], "corrected", supersedes=f"{TABLE}:2026-11-20:1:1")
    line = (await numbers(console))[0]
    assert (line["rounds"], line["turnover"], line["win"]) == ("1", "10000", "10000")
    again = console.again(seconds=1)
    assert (await numbers(again))[0]["win"] == "10000"


async def test_what_is_not_known_is_never_nought(console: Console) -> None:
    ended(console, 1, [])
    line = (await numbers(console))[0]
    assert [line[name] for name in ("turnover", "win", "hold", "expected_win", "rounds_per_hour")] == [""] * 5
    console.now += timedelta(seconds=30)
    ended(console, 2, [], "voided", void={"reason": {"code": "declared"}, "bets": "returned"})
    lost = (await numbers(console))[0]
    assert (lost["void_rounds"], lost["void_stakes"], lost["void_expected_win"]) == ("1", "", "")
    page = await look(console, "/floor")
    assert "not known" in page
    assert "missing: Opening, Closing, Drop" in page
    assert line["counts_missing"] == "opening closing drop"


async def test_what_chance_does_not_explain_is_said(console: Console) -> None:
    for n in range(1, 41):
        ended(console, n, [("player", 10_000, 20_000 if n % 2 else 0)])
        console.now += timedelta(seconds=50)
    assert (await numbers(console))[0]["judged"] == "within"
    for n in range(41, 101):
        ended(console, n, [("player", 10_000, 0)])
        console.now += timedelta(seconds=50)
    assert (await numbers(console))[0]["judged"] == "above"
    assert "above what chance explains" in await look(console, "/floor")


async def test_lines_by_game_area_hour_shift_and_day_add_up_to_the_same(console: Console) -> None:
    for n in range(1, 13):
        ended(console, n, [("player", 1_000 * n, 0)])
        console.now += timedelta(minutes=20)
    sums = {}
    for by in ("table", "game", "area", "hour", "shift", "day"):
        *lines, whole = await numbers(console, by)
        sums[by] = sum(int(line["turnover"]) for line in lines), int(whole["turnover"])
        await look(console, f"/floor?by={by}")
    assert set(sums.values()) == {(78_000, 78_000)}
    assert len(await numbers(console, "hour")) >= 5
    assert [line["line"] for line in await numbers(console, "area")] == ["no area", "total"]


async def test_a_round_that_waited_says_for_how_long(console: Console) -> None:
    ended(console, 1, [("player", 1_000, 0)])
    console.now += timedelta(minutes=1)
    source = table_topic("lisboa", TABLE, "round")
    said = {"round": f"{TABLE}:2026-11-20:1:2", "reason": {"code": "declared"}, "remedy": {"code": "declared"}}
    console.count += 1  # type: ignore[attr-defined]
    seq: int = console.count  # type: ignore[attr-defined]
    raw = msgspec.Raw(msgspec.json.encode(said))
    one = Wire("1.0", f"edge-7:{TABLE}:{seq}/0", source, "suspended", console.now, seq, data=raw, journal="j")
    console.say(f"{source}/event/suspended", encode_wire(one))
    console.now += timedelta(minutes=4)
    ended(console, 2, [("player", 1_000, 0)])
    line = (await numbers(console))[0]
    assert (line["rounds_that_waited"], float(line["waited_s"])) == ("1", 240)
    assert float(line["rounds_not_played"]) == pytest.approx(240 / 3600 * 12)
