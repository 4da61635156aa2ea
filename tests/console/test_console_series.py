"""Two supervisors state what lies on a table of craps after a loss: form, event, driver and rules in one piece."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from console_floor import CONFIG as FLOOR, Console
from helpers import script

from daemon.console.app import ConsoleProcess
from daemon.console.live import Viewer
from daemon.console.site.actions import read_actions
from drivers.fdl_console import ConsoleOptions, FdlConsole
from protocols.contract.events import BetsOpened, DiceThrown, Event, EventsMissed, RoundPaid, SeriesStated, WagerPlaced
from protocols.contract.results import RoundState
from protocols.contract.topics import Envelope, table_topic
from protocols.fdl import console as fdl_console, frame as fdl
from rules import RULESETS
from rules.angola.craps import CrapsOptions
from rules.engine.ruleset import Resolved

TABLE = "craps-1"
CONFIG = FLOOR + f'[[table]]\nname = "{TABLE}"\nruleset = "angola.craps"\n'
DEALER = f'[console.dealer]\n{TABLE} = "/run/feltd/console/{TABLE}.sock"'
BETS = "1 pass 3000\n2 come:5 2000"
PLAYED: list[Event] = [BetsOpened(), WagerPlaced(1, "pass", 3000), DiceThrown((2, 4)), RoundPaid(), EventsMissed(1)]


class Craps:
    """The console, and the rules of the table beside it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.rules = RULESETS["angola.craps"](CrapsOptions())
        self.state = self.rules.start(TABLE)
        self.said = 0
        self.taken = 0
        self.results: list[Any] = []
        self.hear(*PLAYED, BetsOpened())

    def hear(self, *events: Event) -> None:
        for seen in script(events):
            self.said += 1
            one = Envelope(f"e{self.said}", "d-1", seen.time, seen.event, self.said)
            self.state, verdicts = self.rules.apply(self.state, one)
            self.results += [verdict.result for verdict in verdicts if isinstance(verdict, Resolved)]
        view = self.rules.view(self.state)
        stand = RoundState(view.round, view.phase, view.detail, {}, "rules")
        self.console.say(table_topic("lisboa", TABLE, "round/state"), msgspec.json.encode(stand))

    def round(self) -> str:
        return self.rules.view(self.state).round

    def phase(self) -> str:
        return self.rules.view(self.state).phase

    def carried(self) -> list[SeriesStated]:
        """What the edge takes from the console since last time, through the driver."""
        query = "SELECT counter, kind, data FROM dealer_event WHERE place = ? AND counter > ? ORDER BY counter"
        rows = self.console.store.db.execute(query, (TABLE, self.taken)).fetchall()
        driver = FdlConsole(ConsoleOptions())
        driver._signs_in = True
        happenings = [fdl_console.HAPPENINGS[kind].from_bytes(data) for _, kind, data in rows if kind >= 0x20]
        told = [
            event for one in happenings if not isinstance(one, fdl.Malformed) for event in driver.translate(one) or ()
        ]
        self.taken = rows[-1][0] if rows else self.taken
        unit = self.console.house.dealers.units[TABLE]
        unit._acknowledged(self.taken, 0.0)
        self.hear(*told)
        return [one for one in told if isinstance(one, SeriesStated)]

    def drawn(self) -> str:
        return self.console.house.live.html(f"decide/{TABLE}", Viewer("en", "supervisor"))

    async def state_by(self, name: str, point: str = "6", bets: str = BETS, **more: str) -> httpx.Response:
        found = re.search(r'decide/series".*?</form>', self.drawn(), re.DOTALL)
        given = dict(re.findall(r'name="(\w+)" value="([^"]*)"', found[0])) if found else {}
        users = self.console.house.access.users
        secret = users.begin(f"{name}@lisboa", "10.0.0.7", "test", outside="supervisor")
        async with self.console.browser(secret=secret) as browser:
            form = given | {"point": point, "bets": bets} | more
            return await browser.post(f"/table/{TABLE}/decide/series", data=form)


@pytest.fixture
def craps(tmp_path: Path) -> Iterator[Craps]:
    console = Console(tmp_path, DEALER, CONFIG)
    console.begin()
    yield Craps(console)
    console.house.close()
    console.store.close()
    console.journal.close()


async def test_two_supervisors_state_the_same_and_the_round_goes_on_and_pays(craps: Craps) -> None:
    assert (await craps.state_by("ana")).status_code == 303
    [first] = craps.carried()
    assert (first.by, first.point, first.round) == ("ana@lisboa", 6, craps.round())
    page = craps.drawn()
    assert "Stated by ana@lisboa; a second supervisor confirms:" in page
    assert BETS in page
    assert craps.phase() == "suspended"
    done = read_actions(craps.console.journal.path, 1)[0]
    assert (done.user, done.action, done.detail["key"]) == ("ana@lisboa", "dealer", "series")
    assert done.detail["values"]["stated"] == "6: 1 pass 3000, 2 come:5 2000"
    assert (await craps.state_by("rui")).status_code == 303
    craps.carried()
    assert craps.phase() == "betting"
    assert "/decide/series" not in craps.drawn()
    assert "Point and bets of round" in craps.drawn()
    craps.hear(DiceThrown((3, 3)))
    assert {one.bet: one.returned for one in craps.results[-1].settlements} == {"pass": 6000}
    assert "come:5" in craps.results[-1].stands


async def test_what_came_of_a_statement_is_shown_after_a_restart(craps: Craps) -> None:
    await craps.state_by("ana")
    craps.carried()
    one, told = craps.console, "Point and bets of round"
    before = craps.drawn()
    assert told in before
    again = ConsoleProcess(one.house.config, one.store, one.journal, lambda: one.now)
    one.house.close()
    one.house = again
    one.begin()
    craps.hear()
    lines = [re.findall(f"{told}.*?</p>", page, re.DOTALL) for page in (before, craps.drawn())]
    assert lines[0] == lines[1]
    assert len(lines[0]) == 1


async def test_one_person_does_not_confirm_and_the_form_names_nobody(craps: Craps) -> None:
    await craps.state_by("ana", by="rui@lisboa")
    assert [one.by for one in craps.carried()] == ["ana@lisboa"]
    for name in ("ana", "ANA"):
        answer = await craps.state_by(name, by="rui@lisboa")
        assert answer.status_code == 400
        assert "Another supervisor" in answer.text
    assert craps.carried() == []
    assert craps.phase() == "suspended"


async def test_what_differs_is_shown_and_the_next_agreement_counts(craps: Craps) -> None:
    await craps.state_by("ana")
    craps.carried()
    await craps.state_by("rui", "8")
    craps.carried()
    assert "stated it differently" in craps.drawn()
    assert "Stated by rui@lisboa" in craps.drawn()
    await craps.state_by("ana", "8")
    craps.carried()
    assert craps.phase() == "betting"


@pytest.mark.parametrize(
    ("point", "bets", "said"),
    [
        ("7", BETS, "Choose the point"),
        ("6", "1 pass", "One bet a line"),
        ("6", "0 pass 30", "One bet a line"),
        ("6", "1 pass 1.5", "One bet a line"),
        ("6", "1 nothing 30", "This cannot lie on the table"),
        ("6", "1 pass 30\n1 pass 40", "This cannot lie on the table"),
        ("0", "1 come 30", "This cannot lie on the table"),
    ],
)
async def test_what_is_typed_wrong_stays_on_the_page(craps: Craps, point: str, bets: str, said: str) -> None:
    answer = await craps.state_by("ana", point, bets)
    assert answer.status_code == 400
    assert said in answer.text
    assert bets in answer.text
    assert craps.carried() == []


async def test_where_the_series_is_known_there_is_no_form(craps: Craps) -> None:
    round_ = craps.round()
    craps.hear(*[SeriesStated(by=name, point=6) for name in ("ana", "rui")])
    assert "/decide/series" not in craps.drawn()
    answer = await craps.state_by("ana", round=round_, id="0" * 32)
    assert answer.status_code == 400


async def test_many_bets_come_in_parts_and_count_with_the_last(craps: Craps) -> None:
    bets = "\n".join(f"{seat} pass {seat}" for seat in range(1, 61))
    for name in ("ana", "rui"):
        await craps.state_by(name, bets=bets)
        parts = craps.carried()
        assert len(parts) > 1
        assert sum(len(one.bets) for one in parts) == 60
    craps.hear(DiceThrown((3, 3)))
    assert len(craps.results[-1].settlements) == 60
