"""Drivers are registered under the names of their files, and an edge loads those of its devices alone."""

import subprocess
import sys

import pytest

from daemon.edge.links.link import ELSEWHERE
from drivers import CHOICES, DRIVERS, FAULTS


@pytest.mark.parametrize("name", DRIVERS)
def test_driver_has_the_name_of_its_file(name: str) -> None:
    assert (DRIVERS[name].name, DRIVERS[name].__module__) == (name, f"drivers.{name}")
    assert FAULTS[name] == tuple(fault.code for fault in DRIVERS[name].faults)


def test_unknown_driver_is_not_there() -> None:
    assert "x" not in DRIVERS
    assert DRIVERS.get("x") is None
    assert CHOICES["tcs_saturn"]["ask", "what"]
    assert CHOICES["bee_tek_shoe"] == {}


UNWANTED: tuple[str, ...] = ("importlib.metadata", "aiomqtt", "rich", "rules", "babel", "lzma", "zoneinfo", "difflib")
UNWANTED += tuple(ELSEWHERE.values())
"""What costs an edge time or memory, and a table of shoes and shakers never needs."""


def test_edge_loads_no_driver_before_it_has_a_device_of_it() -> None:
    text = "import sys, daemon.cli.main, daemon.cli.processes, daemon.cli.configuration_check, daemon.edge.edge; "
    text += "from drivers import DRIVERS; DRIVERS['fdl_timer']; "
    text += "print(*(one for one in sys.modules if one.startswith(('drivers.', 'daemon.cli.'))), "
    text += f"*(one for one in {UNWANTED} if one in sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    loaded = {"drivers.driver", "drivers.faults", "drivers.fdl_session", "drivers.fdl_timer"}
    loaded |= {"daemon.cli.main", "daemon.cli.common", "daemon.cli.processes", "daemon.cli.configuration_check"}
    assert set(done.stdout.split()) == loaded
