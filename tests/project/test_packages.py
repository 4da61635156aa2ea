"""Two distributions out of one tree: feltd for a table's computer, and the laboratory beside it."""

import importlib.metadata
import json
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from helpers import PATIENCE

ROOT = Path(__file__).parents[2]
PRODUCT = ("daemon", "drivers", "protocols", "rules")
LABORATORY = ("bench", "campaign", "compute-figures", "demo", "schema", "simulate")


def _project(path: str) -> dict[str, dict[str, object]]:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def _wheel(sources: Path, folder: Path) -> Path:
    folder.mkdir()
    words: list[str | Path] = [
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "--wheel-dir",
        folder,
        sources,
    ]
    subprocess.run([sys.executable, *words], check=True)
    return next(folder.glob("*.whl"))


def _link_pinned(site_packages: Path) -> None:
    """What `pip install -r requirements/runtime.txt` would bring, out of the environment of the tests."""
    pins = re.findall(r"(?m)^([a-z0-9-]+)==", (ROOT / "requirements/runtime.txt").read_text(encoding="utf-8"))
    for name in pins:
        distribution = importlib.metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for top in tops:
            (site_packages / top).symlink_to(Path(str(distribution.locate_file(top))))


class Installed:
    """An environment of its own with the wheels that were installed into it."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.bin = folder / "bin"
        self.site_packages = next(folder.glob("lib/python*/site-packages"))
        _link_pinned(self.site_packages)

    def install(self, wheel: Path) -> None:
        words: list[str | Path] = [
            "-m",
            "pip",
            "--python",
            self.bin / "python",
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
            wheel,
        ]
        subprocess.run([sys.executable, *words], check=True)

    def feltd(self, *words: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([self.bin / "feltd", *words], cwd=self.bin, capture_output=True, text=True, check=False)

    def importable(self, *modules: str) -> list[str]:
        code = "import importlib.util, sys; print([m for m in sys.argv[1:] if importlib.util.find_spec(m)])"
        done = subprocess.run(
            [self.bin / "python", "-I", "-c", code, *modules], capture_output=True, text=True, check=True
        )
        return [str(module) for module in json.loads(done.stdout.replace("'", '"'))]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built: a build leaves folders in the tree that a later one would pack."""
    folder = tmp_path_factory.mktemp("sources")
    for name in (*PRODUCT, "simulators"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def table_computer(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """feltd as a table's computer has it: the wheel, what requirements/runtime.txt pins, no laboratory."""
    folder = tmp_path_factory.mktemp("table")
    installed = Installed(folder / "venv")
    installed.install(_wheel(sources, folder / "dist"))
    return installed


def _site(folder: Path) -> Path:
    """Port 1: no broker and no device answers there."""
    path = folder / "feltd.toml"
    path.write_text(
        f"""\
[site]
name = "lisboa"
[mqtt]
host = "127.0.0.1"
port = 1
[edge]
name = "edge-1"
journal = "{folder}/edge.db"
[rules]
insecure = true
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:1"
""",
        encoding="utf-8",
    )
    return path


def test_a_table_computer_has_no_laboratory(table_computer: Installed) -> None:
    assert table_computer.importable(*PRODUCT, "simulators", "rich") == list(PRODUCT)
    helped = table_computer.feltd("--help")
    commands = re.findall(r"(?m)^  ([a-z-]+)  ", helped.stdout.partition("Commands:")[2])
    assert {"edge", "rules", "console", "check"} <= set(commands)
    assert not set(commands) & set(LABORATORY)
    for name in LABORATORY:
        asked = table_computer.feltd(name)
        assert asked.returncode == 2
        assert f"'{name}' belongs to the laboratory, which is not installed" in asked.stderr
    page = table_computer.feltd("devices", "cammegh_ss2")
    assert "## Faults and what to do" in page.stdout
    assert "simulator" not in page.stdout


def test_the_wheel_has_every_file_of_the_product(sources: Path, table_computer: Installed) -> None:
    """Pages, words and pictures of the console, too."""
    missing = [
        path.relative_to(sources)
        for name in PRODUCT
        for path in (sources / name).rglob("*")
        if path.is_file() and not (table_computer.site_packages / path.relative_to(sources)).exists()
    ]
    assert missing == []


def test_a_table_computer_checks_its_configuration(table_computer: Installed, tmp_path: Path) -> None:
    checked = table_computer.feltd("check", "-c", _site(tmp_path))
    assert checked.returncode == 0, checked.stderr
    assert "rou-1" in checked.stdout


def test_an_edge_runs_on_a_table_computer(table_computer: Installed, tmp_path: Path) -> None:
    """Without a broker and without its device: it says so, waits, and ends in order."""
    words: list[str | Path] = [table_computer.bin / "feltd", "edge", "-c", _site(tmp_path)]
    said: list[str] = []
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as edge:
        assert edge.stderr is not None
        try:
            for line in edge.stderr:
                said.append(json.loads(line)["event"])
                if {"broker.lost", "device.lost"} <= set(said):
                    break
            edge.send_signal(signal.SIGTERM)
            said += [json.loads(line)["event"] for line in edge.stderr]
            assert edge.wait(PATIENCE) == 0
        finally:
            edge.kill()
    assert said[-1] == "edge.stopped"
    assert (tmp_path / "edge.db").exists()


def test_the_laboratory_adds_its_commands(
    sources: Path, table_computer: Installed, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    laboratory = Installed(tmp_path_factory.mktemp("lab") / "venv")
    laboratory.install(_wheel(sources, tmp_path / "product"))
    laboratory.install(_wheel(sources / "simulators", tmp_path / "lab"))
    assert laboratory.importable("simulators") == ["simulators"]
    helped = laboratory.feltd("--help")
    assert all(re.search(rf"(?m)^  {name}  ", helped.stdout) for name in LABORATORY), helped.stderr
    # Its packages are whole: each module that the tree has.
    there = {path.relative_to(laboratory.site_packages) for path in laboratory.site_packages.glob("simulators/**/*.py")}
    tree = {path.relative_to(sources) for path in sources.glob("simulators/**/*.py")}
    assert there == {path for path in tree if "build" not in path.parts}


def test_the_two_distributions_have_one_version() -> None:
    product, laboratory = _project("pyproject.toml")["project"], _project("simulators/pyproject.toml")["project"]
    assert laboratory["version"] == product["version"]
    assert f"feltd=={product['version']}" in str(laboratory["dependencies"])
    assert str(product["optional-dependencies"]).count(f"feltd-lab=={product['version']}") == 1


def test_the_edge_does_not_load_rich() -> None:
    """Where it is installed, too: structlog takes it where it finds it. Who needs it still imports it."""
    code = (
        "import sys; import daemon.cli.main, daemon.edge.edge\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] in ('rich', 'simulators')]\n"
        "import structlog, rich.console\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
