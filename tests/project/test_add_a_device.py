"""CONTRIBUTING's "Add a device" as it was walked: a robot that deals cards, in a copy, passes a device's checks."""

import re
from pathlib import Path

import pytest
from overlay import Overlay

PATCH = Path(__file__).with_name("card_robot.patch")
CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
NAME = "card_robot"
MOST_FILES = 7
GENERATORS = (
    "simulators.lab.tools.device_lists",
    "simulators.lab.tools.device_pages",
    "tests.support.devices_and_games",
)
"""What `make docs` runs of them."""
FILES = (
    "tests/project/test_house.py",
    "tests/project/test_sizes.py",
    "tests/drivers/test_registry.py",
    f"tests/drivers/test_{NAME}.py",
    "tests/simulators/test_pages.py",
    "tests/simulators/test_control.py",
    "tests/edge/test_tracing.py",
    "tests/edge/test_every_fault.py",
    "tests/edge/test_devices_and_games.py",
    "tests/console/test_console_trace.py",
    "tests/console/test_console_design.py",
    "tests/console/test_console_faults.py",
    "tests/cli/test_cards.py",
)
OF_ALL_DEVICES = (
    "test_the_example_configuration_is_good_and_shows_every_device_and_game",
    "test_files_over_900_lines_have_a_reason",
    "test_unknown_driver_is_not_there",
    "test_the_pages_in_docs_are_what_the_code_says",
    "test_the_lists_of_all_devices_are_what_the_drivers_say",
    "test_commands_and_drivers_know_each_other",
    "test_the_page_is_what_the_code_says",
    "test_a_roulette_wheel_at_baccarat_is_told_what_is_missing",
    "test_every_device_is_tried",
    "test_every_driver_has_its_words",
    "test_every_icon_that_is_asked_for_is_drawn",
    "test_every_fault_of_every_driver_is_told_in_every_language",
    "test_no_key_is_left_of_a_fault_that_no_driver_has",
    "test_each_kind_of_device_has_a_card",
)
"""The tests that look at all devices at once; all others have its name."""


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Overlay:
    made = Overlay(PATCH, tmp_path_factory.mktemp("device") / "feltd")
    for module in GENERATORS:
        made.python(module)
    return made


def test_a_device_is_the_files_that_contributing_names(overlay: Overlay) -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    path = text[text.index("## Add a device") : text.index("## Add a game")]
    named = set(re.findall(r"(?m)^\d\. \*\*[^`\n]*`([^`]+)`", path))
    places = {name.replace("<device>", NAME).replace("<wire>", NAME) for name in named}
    assert places == set(overlay.touched)
    assert len(overlay.touched) <= MOST_FILES


def test_it_passes_the_checks_of_a_device(overlay: Overlay) -> None:
    """Its own tests, its page, its words, and each of its faults end to end on a cable and a broker in memory."""
    passed = overlay.tests(*FILES, "-k", " or ".join((f"({NAME} and not real_ports)", *OF_ALL_DEVICES)))
    assert passed >= len(OF_ALL_DEVICES) + 40


def test_its_code_has_the_project_s_style(overlay: Overlay) -> None:
    files = [name for name in overlay.touched if name.endswith(".py")]
    overlay.python("ruff", "check", *files)
    overlay.python("ruff", "format", "--check", *files)
