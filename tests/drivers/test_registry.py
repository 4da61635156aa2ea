"""Drivers are registered under the names of their files, and an edge loads those of its devices alone."""

import subprocess
import sys

import pytest

from drivers import CHOICES, DRIVERS, FAULTS


@pytest.mark.parametrize("name", DRIVERS)
def test_driver_has_the_name_of_its_file(name: str) -> None:
    assert (DRIVERS[name].name, DRIVERS[name].__module__) == (name, f"drivers.{name}")
    assert FAULTS[name] == tuple(fault.code for fault in DRIVERS[name].faults)


def test_unknown_driver_is_not_there() -> None:
    assert "x" not in DRIVERS
    assert DRIVERS.get("x") is None
    assert all(CHOICES[name] for name in CHOICES)
    assert "bee_tek_shoe" not in CHOICES


def test_edge_loads_no_driver_before_it_has_a_device_of_it() -> None:
    text = "import sys, daemon.cli.main, daemon.config.check, daemon.edge.edge; from drivers import DRIVERS; "
    text += "DRIVERS['fdl_timer']; print(*(one for one in sys.modules if one.startswith('drivers.')), "
    text += "*(one for one in ('importlib.metadata', 'aiomqtt', 'rich', 'rules') if one in sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) == {"drivers.driver", "drivers.faults", "drivers.fdl_session", "drivers.fdl_timer"}
