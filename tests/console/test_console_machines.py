"""A gaming machine on the console: what it is, counts and returns, why it waits, and who approves it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import CONFIG, Console
from helpers import script

from daemon.console import shapes
from daemon.console.dealer.keys import Moment, live_keys, ways_out
from daemon.console.pages.dealer import BadPress, happenings_of
from daemon.words import words
from protocols.contract.events import (
    BetsOpened,
    Event,
    MachineApproved,
    MachineIdentified,
    MachineMeters,
    TableClosed,
)
from protocols.contract.results import Resolved, Result, RoundState
from protocols.contract.topics import table_topic
from protocols.fdl.console import MachineApproved as Approved, SupervisorKey
from rules.angola.gaming_machines import GamingMachines, HouseMachineOptions
from rules.facts import facts_of
from tests.console.test_console_dealer import JSON, Inn, identity

TABLE, RULESET = "mach-1", "angola.gaming-machines"
MACHINES = f'{CONFIG}[[table]]\nname = "{TABLE}"\nruleset = "{RULESET}"\n'
METERS = {"coin_in": 1000, "coin_out": 900, "jackpot": 0, "drop": 500, "games_played": 100}
LUCKY = MachineIdentified(serial="SN-1", game="SI", paytable="LUCKY", return_bp=9000, credit=1)
PLAYED: list[Event] = [
    *(BetsOpened(), LUCKY, MachineMeters(METERS)),
    MachineMeters({**METERS, "coin_in": 3000, "coin_out": 2500, "games_played": 200}),
]


def told(*events: Event) -> tuple[RoundState, list[Result]]:
    """What the rules show of a machine after these, and the results."""
    game = GamingMachines(HouseMachineOptions(return_games=1000))
    state, results = game.start(TABLE), []
    for seen in script([*PLAYED, *events], TABLE):
        state, verdicts = game.apply(state, seen)
        results += [one.result for one in verdicts if isinstance(one, Resolved)]
    view = game.view(state)
    return RoundState(view.round, view.phase, view.detail, {}, "rules"), results


@pytest.mark.parametrize("lang", words.LANGS)
async def test_the_page_of_a_machine_says_what_it_is_counts_and_returns_and_why_it_waits(
    tmp_path: Path, lang: words.Lang
) -> None:
    console = Console(tmp_path, config=MACHINES)
    console.begin()
    state, _ = told(msgspec.structs.replace(LUCKY, paytable="OTHER"), MachineApproved(by="ana"))
    console.say(table_topic("lisboa", TABLE, "round/state"), msgspec.json.encode(state))
    async with console.browser("technician", **{"accept-language": lang}) as browser:
        page = (await browser.get(f"/table/{TABLE}")).text
    assert "SN-1, SI, OTHER" in page
    assert "90.00 %" in page
    assert words.say(lang, "fact.plan") in page
    assert words.reason(lang, state_reason(state)) in page
    assert ">ana<" in page
    assert words.say(lang, "fact.takings") in page


def state_reason(state: RoundState) -> Any:
    reason = facts_of(RULESET, state.detail).reason
    assert reason is not None
    assert reason.code == "machine_changed"
    return reason


def test_the_chip_of_a_period_is_its_return() -> None:
    _, (result,) = told(TableClosed())
    assert [shapes.chip(result, lang).text for lang in words.LANGS] == ["80%"] * 3
    assert dict(shapes.round_shape(facts_of(RULESET, result.outcome), "en").amounts)["bets"] == 2000


def test_a_machine_that_waits_is_approved_or_its_period_void() -> None:
    waits, plays = Moment("suspended"), Moment("betting")
    assert [(way.key, way.supervisor) for way in ways_out(RULESET, waits)] == [
        ("approve_machine", True),
        ("void", False),
    ]
    assert live_keys(RULESET, waits)["approve_machine"] == ""
    assert live_keys(RULESET, plays)["approve_machine"] == "no_approval"


async def test_an_approval_has_the_name_of_who_is_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inn = Inn(tmp_path)
    unit, pressed = inn.dealers.units["none-1"], list[Any]()
    press = unit.press

    def note(one: Any, *more: Any) -> Any:
        pressed.append(one)
        return press(one, *more)

    monkeypatch.setattr(unit, "press", note)
    form = {"id": identity(1), "by": "rui"}
    async with inn.browser("sup") as browser:
        reply = await browser.post("/dealer/none-1/key/approve_machine", data=form, headers=JSON)
    assert reply.status_code == 200
    assert pressed[0].happenings == (SupervisorKey(True), Approved("sup"), SupervisorKey(False))
    async with inn.browser("all") as browser:
        reply = await browser.post("/dealer/none-1/key/approve_machine", data=form | {"id": identity(2)}, headers=JSON)
    assert reply.json()["wrong"] == words.say("en", "dealer.supervisor_only")
    with pytest.raises(BadPress, match=r"dealer\.supervisor_only"):
        happenings_of("approve_machine", {"by": "all"}, supervisor=False)
    inn.close()
