"""The size and the shape of a checkout of feltd, a row for each measure: `make measures ARGS="PATH …"`.

Without a path it measures this checkout. Each checkout is measured by the same rules, so that versions can be compared;
an earlier version is unpacked with `git archive VERSION | tar -xC PATH`. What cannot be measured there says why. Not
measured here: how long `make test` takes.
"""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
INSTALLED = ("daemon", "drivers", "protocols", "rules")
"""What the wheel `feltd` holds (pyproject.toml, setuptools.packages.find); `simulators` is the laboratory's."""
MANY = 5
COUNT_FUNCTIONS = """
import sys, tempfile
from collections import Counter
from pathlib import Path

import event_functions
from event_functions import of_the_edge, of_the_page, of_the_rules
from helpers import virtual_time

event_functions.ROOT = root = Path.cwd()  # the counter may be of another checkout than what it counts
event_functions.FLOORS = tuple(f"{root}/{floor}/" for floor in ("daemon", "drivers", "protocols", "rules"))
event_functions.CLOCK = f"{root}/daemon/virtual_clock.py"

@virtual_time
async def run():
    edge = await of_the_edge(Path(tempfile.mkdtemp()))
    rules, published = await of_the_rules(Path(tempfile.mkdtemp()))
    tile, _, _ = of_the_page(Path(tempfile.mkdtemp()), published, [])
    for name, passed in ("edge", edge), ("rules", rules), ("tile", tile):
        floors = Counter(where.partition("/")[0] for where in passed.calls)
        by_floor = ", ".join(f"{floor} {count}" for floor, count in sorted(floors.items()))
        print(f"functions an event passes, {name}: {len(passed.calls)} ({by_floor})", file=sys.stderr)

run()
"""

STUD_NIGHTS, STUD_ROUNDS = 24, 60
"""As many as tests/rules/test_stud_outages.py plays."""
COUNT_STUD = f"""
import sys
import stud_outages
from rules.angola.stud_poker import StudPoker as Angola, StudPokerOptions as AngolaOptions
from rules.macau.stud_poker import StudPoker as Macau, StudPokerOptions as MacauOptions

for name, ruleset, burns in ("macau", Macau(MacauOptions()), False), ("angola", Angola(AngolaOptions()), True):
    counted = wrong = 0
    for seed in range({STUD_NIGHTS}):
        told, truth = stud_outages.night(seed, {STUD_ROUNDS}, burns=burns)
        right, others = stud_outages.ends(ruleset, told, truth)
        counted, wrong = counted + right, wrong + len(others)
    share = counted / {STUD_NIGHTS * STUD_ROUNDS}
    print(f"rounds of stud poker that count under outages, {{name}}: {{share:.2f}}, wrong: {{wrong}}", file=sys.stderr)
"""


def files(*folders: Path) -> list[Path]:
    """All Python files below, without what a build left."""
    return [path for folder in folders for path in sorted(folder.rglob("*.py")) if "build" not in path.parts]


def lines(*folders: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in files(*folders))


def classes(*folders: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    for path in files(*folders):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield f"{path.parent.name}/{path.name}:{node.name}", node


def machines(rules: Path) -> list[str]:
    """Classes whose `apply` asks no other ruleset: each is a machine for the life of a round."""
    found = []
    for name, node in classes(rules):
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and one.name == "apply":
                called = {ast.unparse(call.func) for call in ast.walk(one) if isinstance(call, ast.Call)}
                called.discard(f"{node.name}.apply")  # itself
                if called and not any(function == "judge" or function.endswith(".apply") for function in called):
                    found.append(name)
    return found


def booleans(rules: Path) -> list[str]:
    """Structs with many booleans, without options and what a text fixes (House)."""
    found = []
    for name, node in classes(rules):
        flags = [
            one
            for one in node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.annotation, ast.Name) and one.annotation.id == "bool"
        ]
        if len(flags) >= MANY and not node.name.endswith(("Options", "House")):
            found.append(f"{name} ({len(flags)})")
    return found


def upward_imports(checkout: Path) -> list[str]:
    """Imports inside `daemon` from a lower layer into a higher one, by the contract of this checkout."""
    contracts: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    [layers] = [one["layers"] for one in contracts if one.get("containers") == ["daemon"]]
    level = {name.strip(): number for number, layer in enumerate(layers) for name in layer.split("|")}
    level["config"] = level["config.devices_and_games"]

    def level_of(module: str) -> int | None:
        parts = module.split(".")[1:]
        names = [".".join(parts[:length]) for length in (2, 1)]
        return next((level[name] for name in names if name in level), None)

    found = []
    for path in files(checkout / "daemon"):
        here = ".".join(path.relative_to(checkout).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("daemon."):
                own, theirs = level_of(here), level_of(node.module or "")
                if own is not None and theirs is not None and theirs < own:
                    found.append(f"{here} -> {node.module}")
    return sorted(set(found))


def touched(checkout: Path, patch: str) -> str:
    """The files that this patch of tests/project writes or changes: a whole device, a whole game."""
    path = checkout / "tests/project" / patch
    if not path.exists():
        return f"not measured: no {patch}"
    return str(path.read_text(encoding="utf-8").count("\n+++ b/"))


def counted(checkout: Path, counter: str, program: str, row: str) -> list[str]:
    """Rows that begin so, of a program that uses this module of tests/support; of this checkout where it has none."""
    support = checkout / "tests/support"
    own = "" if (support / f"{counter}.py").exists() else f":{ROOT / 'tests/support'}"
    environment = {**os.environ, "PYTHONPATH": f"{support}:{checkout}{own}"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    rows = [line for line in done.stderr.splitlines() if line.startswith(row)]
    return rows or [f"{row}: not measured: {done.stderr.strip().splitlines()[-1]}"]


def named(names: list[str]) -> str:
    return f"{len(names)}" + (f" ({', '.join(names)})" if names else "")


def measures(checkout: Path) -> list[str]:
    """All rows of one checkout."""
    product = [checkout / name for name in INSTALLED]
    rows = [
        f"product, lines: {lines(*product, checkout / 'simulators')}",
        f"of it on a table's computer, lines: {lines(*product)}",
        f"tests, lines: {lines(checkout / 'tests')}",
        f"machines for the life of a round: {named(machines(checkout / 'rules'))}",
        f"structs of a round's state with {MANY} booleans or more: {named(booleans(checkout / 'rules'))}",
        f"upward imports inside daemon: {named(upward_imports(checkout))}",
        f"files for a whole device: {touched(checkout, 'card_robot.patch')}",
        f"files for a whole game: {touched(checkout, 'big_six.patch')}",
    ]
    rows += counted(checkout, "event_functions", COUNT_FUNCTIONS, "functions an event passes")
    return rows + counted(checkout, "stud_outages", COUNT_STUD, "rounds of stud poker that count under outages")


if __name__ == "__main__":
    for given in sys.argv[1:] or [str(ROOT)]:
        sys.stdout.write("\n".join([f"# {given}", *measures(Path(given).resolve()), ""]))
