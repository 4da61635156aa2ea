"""Files stay under 900 lines and functions under 60; the packages that every event passes stay as large as they are."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("daemon", "drivers", "protocols", "rules", "simulators")
FILE_LINES = 900
FUNCTION_LINES = 60

CORE_LINES = {
    "daemon/broker": 2800,
    "daemon/consumer": 1400,
    "daemon/edge": 4050,
    "daemon/journal": 4050,
    "protocols/contract": 3000,
    "rules/engine": 3500,
}
"""A feature is written beside these packages (decision 0196). A commit that raises a limit says what all gain by it."""
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS = {
    "daemon/console/pages/web.py fragments": "one branch for each fragment of a page, in the order of the page",
    "daemon/edge/supervisor.py supervise": "every way in which a session can end stands in one place",
    "daemon/read_model.py SiteState.__init__": "eleven parameters, then one line for each field of a site's state",
}


def line_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end; decorators and comments above do not count."""
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def long_functions(text: str, most: int) -> dict[str, int]:
    """Names, with their classes, of functions over `most` lines, and their lengths; nested ones are listed, too."""
    found: dict[str, int] = {}

    def visit(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{outer}{child.name}"
                if not isinstance(child, ast.ClassDef) and line_count(child) > most:
                    found[name] = line_count(child)
                visit(child, f"{name}.")
            else:
                visit(child, outer)

    visit(ast.parse(text), "")
    return found


def product_files() -> dict[str, str]:
    """The text of each Python file of the product, by its path from the root."""
    paths = (path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


def test_long_functions_are_found_by_name_and_length() -> None:
    text = "class A:\n async def b(self):\n  def c():\n   pass\n  return c\n\nif True:\n def d(): ..."
    assert long_functions(text, 2) == {"A.b": 4}
    assert long_functions(text, 1) == {"A.b": 4, "A.b.c": 2}
    assert long_functions(text, 0) == {"A.b": 4, "A.b.c": 2, "d": 1}


def test_files_over_900_lines_have_a_reason() -> None:
    lengths = {path: len(text.splitlines()) for path, text in product_files().items()}
    assert {path for path, lines in lengths.items() if lines > FILE_LINES} == set(LONG_FILES)


def test_functions_over_60_lines_have_a_reason() -> None:
    found = {
        f"{path} {name}" for path, text in product_files().items() for name in long_functions(text, FUNCTION_LINES)
    }
    assert found == set(LONG_FUNCTIONS)


def test_features_are_written_beside_the_way_of_an_event() -> None:
    lines = dict.fromkeys(CORE_LINES, 0)
    for path, text in product_files().items():
        package = "/".join(path.split("/")[:2])
        if package in lines:
            lines[package] += len(text.splitlines())
    assert {package: count for package, count in lines.items() if count > CORE_LINES[package]} == {}
