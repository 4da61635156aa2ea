"""The house holds together: registries, example, README and packages agree."""

import ast
import importlib.metadata
import json
import re
import tomllib
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest
from msgspec import Struct

from daemon.cli.configuration_check import device_mistakes, ruleset_mistakes
from daemon.config.backbone import Backbone, Forward, Ledger
from daemon.config.model import Console, Edge, Keeping, Mqtt, OpenId, Rules, Site, Webhook, load
from drivers import DRIVERS
from rules import RULESETS
from simulators import SIMULATORS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "systemd/feltd.toml"


def test_the_example_configuration_is_good_and_shows_every_device_and_game() -> None:
    config = load(EXAMPLE)
    assert device_mistakes(config, EXAMPLE) == []
    assert ruleset_mistakes(config, EXAMPLE) == []
    assert {device.driver for table in config.table for device in table.device} == set(DRIVERS)
    by_law = {name for name in RULESETS if not name.startswith("house.")}
    assert {table.ruleset for table in config.table if table.ruleset} >= by_law


def test_the_example_says_how_many_tables_it_has() -> None:
    first = EXAMPLE.read_text(encoding="utf-8").partition("\n")[0]
    assert f": {len(load(EXAMPLE).table)} tables." in first


@pytest.mark.parametrize(
    "kind", [Site, Edge, Rules, Keeping, Mqtt, Backbone, Forward, Ledger, Console, OpenId, Webhook]
)
def test_the_example_shows_every_setting(kind: type[Struct]) -> None:
    """It is the only list of them: what is not set stands in a comment, and that would be good, too."""
    sections = {Keeping: "journal", OpenId: "console.openid", Webhook: "console.webhook"}
    section = sections.get(kind, kind.__name__.lower())
    text = re.sub(r"(?m)^# ?(?=\[+console\.|[a-z_]+ = )", "", EXAMPLE.read_text(encoding="utf-8"))
    part = re.split(rf"(?m)^\[+{re.escape(section)}\]+$", text)[1]
    part = re.split(r"(?m)^\[", part)[0]
    keys = set(re.findall(r"(?m)^([a-z_]+) = ", part))
    hidden = {"openid", "webhook", "dealer"}
    assert keys == set(kind.__struct_fields__) - hidden
    for key, value in tomllib.loads(part).items():
        msgspec.convert(value, get_type_hints(kind, include_extras=True)[key])


@pytest.mark.parametrize("name", DRIVERS)
def test_a_device_is_whole(name: str) -> None:
    """Driver, simulator, protocol or session, tests."""
    driver = DRIVERS[name]
    assert driver.name == name
    assert driver.evidence
    assert SIMULATORS[name].name == name
    assert SIMULATORS[name].faults
    tests = {path.stem for path in (ROOT / "tests/drivers").glob("test_*.py")}
    assert f"test_{name}" in tests or (name.startswith("fdl_") and "test_fdl_devices" in tests)


@pytest.mark.parametrize("name", RULESETS)
def test_a_game_is_whole(name: str) -> None:
    """Ruleset, tests, a line in the README."""
    assert f"| `{name}` |" in README
    place, _, game = name.replace("-", "_").partition(".")
    assert (ROOT / f"rules/{place}/{game}.py").exists()
    of_the_law = (path.read_text(encoding="utf-8") for path in (ROOT / "tests/law").glob("test_*.py"))
    assert any(f"rules.{place}.{game}" in text or f'"{name}"' in text for text in of_the_law)


def test_no_installed_distribution_shadows_our_packages() -> None:
    """Our import names are plain words: nothing else in the environment may bring them."""
    owners = importlib.metadata.packages_distributions()
    for package in ("daemon", "drivers", "protocols", "rules", "simulators"):
        owner = "feltd-lab" if package == "simulators" else "feltd"
        assert set(owners.get(package, [owner])) <= {owner}, package


def test_requirements_are_pinned_with_hashes_and_name_no_registry() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text, path
        assert "--index" not in text, path
        pins = [line for line in text.splitlines() if "==" in line and not line.startswith("#")]
        assert pins
        assert all(line.endswith("\\") for line in pins), path
    lock = json.loads((ROOT / "requirements/node-red/package-lock.json").read_text(encoding="utf-8"))
    del lock["packages"][""]
    assert all("resolved" not in one for one in lock["packages"].values())
    assert all("integrity" in one or one.get("inBundle") for one in lock["packages"].values())


@pytest.mark.parametrize("file", sorted(ROOT.glob("daemon/*/**/__init__.py")), ids=lambda file: file.parent.name)
def test_a_package_of_the_daemon_says_what_it_is_for_who_calls_it_and_what_it_may_import(file: Path) -> None:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    assert re.match(r"[^\n]+\.\n\n", text)
    assert re.search(r"^Called by: .+", text, re.MULTILINE)
    assert re.search(r"^May import: .+", text, re.MULTILINE)
