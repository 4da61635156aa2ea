"""docs/explanation/reliability.md names the tests that prove it: each exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/reliability.md").read_text(encoding="utf-8")
PROMISES = PAGE.partition("## Promises\n")[2].partition("\n## ")[0]


@cache
def names_in(name: str) -> frozenset[str]:
    (path,) = (ROOT / "tests").rglob(name)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_promise_names_tests_that_exist() -> None:
    rows = [line for line in PROMISES.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`((?:hostile/)?test_\w+\.py)::(test_\w+)`", row)
        assert named, row
        for file, test in named:
            assert test in names_in(file), f"{file}::{test}"
