"""The devices' pages are made from the code, and what drivers and simulators say of faults fits together."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from daemon.cli.device_pages import EDGE_FAULTS, device_page, options_of
from daemon.cli.main import main
from drivers import DRIVERS
from protocols.contract.commands import COMMANDS, name_of
from protocols.contract.events import EVENT_TYPES
from simulators import OTHER_MODES, SIMULATORS
from simulators.devices.device import ailments
from simulators.devices.line import Line
from simulators.lab.tools import device_lists
from simulators.lab.tools.device_pages import pages

PAGES = Path(__file__).parents[2] / "docs/reference/devices"
README = device_lists.README.read_text(encoding="utf-8")

_NOT_MADE = "no simulated device does this: the driver's own tests write the bytes"
_OF_AN_OPTION = "only where an option asks for it: tests/drivers/test_sas_machine_bets.py"
_DOUBT = "what the driver finds out by itself when the device contradicts its document or its configuration"
_ASKED = "told by a self-test, which somebody must ask for: the driver's own tests do"
_OF_A_COMMAND = "comes of a command that cannot be shown: the driver's own tests give it"
# Fault codes that no single ailment of the simulator provokes, and why. Whoever makes one strikes it out here.
UNPROVOKED: dict[str, dict[str, str]] = {
    "cammegh_ss2": {
        "wheel.no_number": _NOT_MADE,
        "wheel.rotor_not_reversed": "only where the option `alternating` is set",
        **{
            f"wheel.self_test_{code}": _ASKED for code in (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 21, 22, 23, 100, "other")
        },
    },
    "fdl_continuous": {"continuous.deck": "only where the option `masked` hides the cards"},
    "alpha_sign": {"sign.digits": _OF_A_COMMAND, "sign.text": _OF_A_COMMAND},
    "tcs_saturn": {"saturn.map_doubtful": _DOUBT},
    "sas_machine": {
        "sas.doubtful": _DOUBT,
        "sas.denomination": _DOUBT,
        **dict.fromkeys(
            (
                "sas.amount_stale",
                "sas.bets_unknown",
                "sas.win_differs",
                "machine.plan_return",
                "machine.not_approved",
            ),
            _OF_AN_OPTION,
        ),
    },
    "billy_iii": {"billy.unwatched": _DOUBT},
}
UNTOLD = {"fdl.untold_fault": "needs a fault from before the first meeting: tests of the session"}


def run(*words: str | Path) -> str:
    made = CliRunner().invoke(main, [str(word) for word in words])
    assert made.exit_code == 0, made.output
    return made.output


# ---- the pages in docs


def test_the_pages_in_docs_are_what_the_code_says() -> None:
    made = pages()
    kept = {path.name: path.read_text(encoding="utf-8") for path in PAGES.iterdir()}
    assert set(kept) == set(made) == {"README.md", *(f"{name}.md" for name in DRIVERS)}
    for name, text in made.items():
        assert kept[name] == text, f"{name} is old: run `make docs`"


@pytest.mark.parametrize("name", DRIVERS)
def test_a_page_holds_everything_that_is_known_of_the_device(name: str) -> None:
    assert run("devices", name) == device_page(name) + "\n"
    page = pages()[f"{name}.md"]
    driver, device = DRIVERS[name], SIMULATORS[name]
    for evidence in driver.evidence:
        assert evidence in page.splitlines()[2]
    for option, _, _ in options_of(driver):
        assert f"\n| `{option}` |" in page
    for command in driver.commands:
        assert f"\n| `{name_of(command)}` |" in page
    for fault in driver.faults:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{fault.code}` |"))
        for words in (fault.text, fault.remedy, fault.severity, fault.clears, fault.round):
            assert " ".join(words.split()).replace("|", "\\|") in row
    for ailment in (*device.faults, *device.line):
        assert f"\n| `{ailment}` |" in page


@pytest.mark.parametrize("name", DRIVERS)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name: str) -> None:
    columns = 0
    for line in pages()[f"{name}.md"].splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        cells = line.replace("\\|", "").count("|")
        columns = columns or cells
        assert cells == columns, line


def test_an_unknown_device_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(main, ["devices", "toaster"])
    assert result.exit_code == 2
    assert "no driver 'toaster'; known: " in result.output
    assert all(name in result.output for name in DRIVERS)


@pytest.mark.parametrize(
    ("code", "who"),
    [("wheel.sensor_or_motor", "cammegh_ss2"), ("fdl.sensor_dirty", "fdl_shaker"), ("device.offline", "every")],
)
def test_the_code_of_a_fault_says_what_to_try(code: str, who: str) -> None:
    shown = run("devices", code)
    remedies = {fault.remedy for driver in DRIVERS.values() for fault in (*driver.faults, *EDGE_FAULTS)
                if fault.code == code}  # fmt: skip
    assert remedies
    assert all(remedy in shown for remedy in remedies)
    assert who in shown
    assert "no driver" not in shown


def test_a_code_that_no_device_tells_is_refused() -> None:
    result = CliRunner().invoke(main, ["devices", "shaker.clasps"])
    assert result.exit_code == 2
    assert "no device reports 'shaker.clasps'; alerts explain faults of edge, rules and journals" in result.output


def test_the_list_for_programs_has_evidence_commands_and_faults_of_all() -> None:
    listed = json.loads(run("devices", "--json"))
    assert [one["driver"] for one in listed] == list(DRIVERS)
    for one in listed:
        driver = DRIVERS[one["driver"]]
        assert one["evidence"] == list(driver.evidence)
        assert one["commands"] == [name_of(command) for command in driver.commands]
        assert [fault["code"] for fault in one["faults"]] == [fault.code for fault in driver.faults]


def test_the_lists_of_all_devices_are_what_the_drivers_say() -> None:
    """The English of their faults, and the table of the README."""
    assert device_lists.ENGLISH.read_text(encoding="utf-8") == device_lists.english(), "run `make docs`"
    assert device_lists.readme(README) == README, "run `make docs`"
    for name, driver in DRIVERS.items():
        [row] = [line for line in README.splitlines() if line.startswith(f"| `{name}` |")]
        assert all(evidence in row for evidence in driver.evidence), row


# ---- what drivers and simulators say


@pytest.mark.parametrize("name", DRIVERS)
def test_every_fault_says_what_it_is_and_what_to_do(name: str) -> None:
    codes = [fault.code for fault in DRIVERS[name].faults]
    assert len(codes) == len(set(codes))
    for fault in DRIVERS[name].faults:
        assert fault.text.strip(), fault.code
        assert fault.remedy.strip(), fault.code
        assert fault.round.strip(), fault.code
        assert not fault.remedy.endswith("."), fault.code
        assert len(fault.remedy) <= 160, f"{fault.code}: a remedy is one line, this has {len(fault.remedy)}"


@pytest.mark.parametrize("name", DRIVERS)
def test_fault_effects_use_known_words(name: str) -> None:
    device = SIMULATORS[name]
    known = {fault.code for fault in (*DRIVERS[name].faults, *EDGE_FAULTS)} | set(EVENT_TYPES)
    for fault, ailment in ailments(device).items():
        assert set(ailment.told) <= known, fault
        assert ailment.text.strip(), fault
    assert not set(device.faults) & set(device.line), "a socket could not tell which is meant"


@pytest.mark.parametrize("name", DRIVERS)
def test_every_device_answers_for_every_fault_of_a_line_that_reaches_it(name: str) -> None:
    assert set(SIMULATORS[name].line) <= set(Line.FAULTS)
    assert "unplugged" in SIMULATORS[name].line


@pytest.mark.parametrize("name", DRIVERS)
def test_every_fault_code_is_provoked_or_it_stands_here_why_not(name: str) -> None:
    devices = [SIMULATORS[name], *(device for device in OTHER_MODES.values() if device.name == name)]
    told = {word for device in devices for one in ailments(device).values() for word in one.told}
    excused = {**UNPROVOKED.get(name, {}), **(UNTOLD if name.startswith("fdl_") else {})}
    missing = {fault.code for fault in DRIVERS[name].faults} - told
    assert missing == set(excused), "provoke it in the simulator, or strike it out here"


def test_commands_and_drivers_know_each_other() -> None:
    obeyed = {name_of(command) for driver in DRIVERS.values() for command in driver.commands}
    assert obeyed == {name for name, kind in COMMANDS.items() if not kind.of_edge}
    for name, driver in DRIVERS.items():
        assert bool(driver.commands) == callable(getattr(driver, "obey", None)), name


@pytest.mark.parametrize("name", DRIVERS)
def test_the_defaults_on_a_page_are_those_of_the_driver(name: str) -> None:
    options = DRIVERS[name].Options
    for option, _, default in options_of(DRIVERS[name]):
        if default != "see its text" and "…" not in default:
            read = msgspec.convert({option: json.loads(default)}, options)
            assert getattr(read, option) == getattr(options(), option)
