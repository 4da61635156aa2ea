"""The section of a device's page that the laboratory adds: what its simulator can do wrong, and what becomes of it."""

from daemon.cli.device_pages import markdown_table
from simulators import SIMULATORS
from simulators.devices.device import Ailment, ailments

__all__ = ["simulator_section"]

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
    nothing = "no fault: it costs nothing" if ailment.round in ("counts", "none") else "no fault: the rules see it"
    return ", ".join(f"`{name}`" for name in ailment.told) or nothing


def simulator_section(name: str) -> list[str]:
    """Paragraphs on the simulated device of a driver; the entry-point group `feltd.device_page` names this function."""
    return [
        "## What its simulator can do wrong",
        SIMULATE % name,
        markdown_table(
            ("fault", "what happens", "what is told", "the round under way", "ends"),
            [
                (
                    f"`{fault}`",
                    ailment.text,
                    _told(ailment),
                    EFFECTS[ailment.round],
                    "by a person" if ailment.person else "by itself",
                )
                for fault, ailment in ailments(SIMULATORS[name]).items()
            ],
        ),
    ]
