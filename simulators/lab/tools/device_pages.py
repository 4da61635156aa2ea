"""Writes docs/reference/devices: the page of each driver, with the faults of its simulator.

`make docs` runs it; tests/simulators/test_pages.py fails when a page differs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from daemon.cli.common import write_files
from daemon.cli.device_pages import device_page, device_title, markdown_table
from drivers import DRIVERS
from simulators import OTHER_MODES, SIMULATORS
from simulators.devices.device import Ailment, ailments

__all__ = ["pages"]

PAGES: Final = Path(__file__).parents[3] / "docs/reference/devices"

SIMULATE = (
    "`feltd simulate %s --listen …`, then `fault NAME`; `repair` where a person is needed. Each row is a test, "
    "from the simulator through a real port, driver, edge and rules to the alert and the round."
)
EFFECTS = {
    "counts": "the round counts",
    "void": "the round is void",
    "suspended": "the round waits for a person",
    "none": "no round is touched",
}


def _told(ailment: Ailment) -> str:
    nothing = "no fault: it costs nothing" if ailment.round in ("counts", "none") else "no fault: the rules detect it"
    return ", ".join(f"`{name}`" for name in ailment.told) or nothing


def _simulator_section(name: str) -> list[str]:
    """Paragraphs on the simulated device of a driver, and on its other modes."""
    device = SIMULATORS[name]
    said = ["## Simulated faults", SIMULATE % name, _table(ailments(device))]
    for mode, other in OTHER_MODES.items():
        if other.name == name:
            differ = {fault: one for fault, one in other.faults.items() if one != device.faults.get(fault)}
            said += [f"`feltd simulate {mode}` is the same device in a mode with another wire. There these differ:"]
            said += [_table(differ)]
    return said


def _table(faults: Mapping[str, Ailment]) -> str:
    return markdown_table(
        ("fault", "what happens", "what is reported", "the round under way", "ends"),
        [
            (
                f"`{fault}`",
                ailment.text,
                _told(ailment),
                EFFECTS[ailment.round],
                "by a person" if ailment.person else "by itself",
            )
            for fault, ailment in faults.items()
        ],
    )


def pages() -> dict[str, str]:
    """All pages by the names of their files."""
    rows = [
        (f"[{device_title(driver)}]({name}.md)", f"`{name}`", ", ".join(driver.evidence))
        for name, driver in DRIVERS.items()
    ]
    made = {f"{name}.md": "\n\n".join((device_page(name).rstrip("\n"), *_simulator_section(name))) for name in DRIVERS}
    made["README.md"] = f"# Devices\n\n{markdown_table(('device', 'driver', 'evidence'), rows)}"
    return {name: f"{text}\n" for name, text in made.items()}


if __name__ == "__main__":
    write_files(PAGES, pages())
