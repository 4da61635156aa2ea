"""The documents fit together: links lead somewhere, indexes are complete, decisions have one shape."""

import re
import tomllib
from pathlib import Path

import pytest

from daemon.cli.configuration_check import device_mistakes, ruleset_mistakes
from daemon.config.model import parse

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "systemd", "daemon", "drivers", "protocols", "rules", "simulators", "tests")
PAGES = sorted({*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))})
DECISIONS = ROOT / "docs/decisions"
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"(?m)^#+ +(.+)$")
CODE = re.compile(r"(?ms)^```.*?^```|`[^`\n]*`")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def links(page: Path) -> list[str]:
    """The targets of the page's links, without those to other sites."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    return [target for target in LINK.findall(text) if "://" not in target and not target.startswith("mailto:")]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as GitHub makes them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        place = (page.parent / path) if path else page
        assert place.exists(), f"{name(page)} links to {target}"
        assert not anchor or anchor in anchors(place), f"{name(page)} links to {target}"


def test_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A b, c\n[x](y.md) `[no](code.md)`\n[z](https://z.example) [here](#a-b-c)\n", encoding="utf-8")
    assert links(page) == ["y.md", "#a-b-c"]
    assert anchors(page) == {"a-b-c"}


def test_the_index_of_docs_names_every_page() -> None:
    """Generated folders and the decisions have indexes of their own."""
    listed = {target.partition("#")[0] for target in links(ROOT / "docs/README.md")}
    pages = {path for pattern in ("*.md", "how-to/*.md", "reference/*.md", "explanation/*.md")
             for path in (ROOT / "docs").glob(pattern)}  # fmt: skip
    missing = {name(path) for path in pages if str(path.relative_to(ROOT / "docs")) not in listed | {"README.md"}}
    assert missing == set()


def test_the_list_of_decisions_is_complete() -> None:
    rows = re.findall(r"(?m)^\| (\d{4}) \| \[([^\]]+)\]\(([^)]+)\) \|", (DECISIONS / "README.md").read_text())
    found = {path.name: path for path in DECISIONS.glob("[0-9]*.md")}
    assert [row[2] for row in rows] == sorted(found)
    for number, title, file in rows:
        first = found[file].read_text(encoding="utf-8").partition("\n")[0]
        assert first == f"# {int(number)}. {title}"
        assert file.startswith(f"{number}-")


@pytest.mark.parametrize("path", sorted(DECISIONS.glob("[0-9]*.md")), ids=lambda path: path.name)
def test_a_decision_gives_context_decision_and_consequences(path: Path) -> None:
    headings = re.findall(r"(?m)^## (.+)$", path.read_text(encoding="utf-8"))
    assert headings == ["Context", "Decision", "Consequences"]


def test_the_site_names_every_page_of_the_index() -> None:
    """mkdocs.yml has the pages of docs/README.md in its navigation."""
    named = set(re.findall(r"(?m): ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert {target for target in links(ROOT / "docs/README.md") if target.endswith(".md")} <= named
    assert all((ROOT / "docs" / page).is_file() for page in named)


def test_every_test_that_a_page_names_exists() -> None:
    """Pages say which test shows a claim."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/explanation").glob("*.md"))
    named = set(re.findall(r"`(test_\w+)`", pages))
    written = {
        one
        for path in (ROOT / "tests").rglob("test_*.py")
        for one in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(named) > 30
    assert named - written == set()


def test_every_threat_names_a_test() -> None:
    page = (ROOT / "docs/explanation/threats.md").read_text(encoding="utf-8").partition("\n## A wrong result\n")[2]
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| threat |")]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`test_\w+` \|$", row)] == []


def test_every_check_that_a_page_names_exists() -> None:
    """Each promise has one: a test, a script or a target of make."""
    page = (ROOT / "docs/explanation/checks.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (.+) \| (.+) \|$", page.partition("\n## The package\n")[2])
    promises = [(promise, checks) for promise, checks in rows if checks != "checks"]
    assert len(promises) > 35
    check = re.compile(r"`(?:test_\w+|debian/[\w-]+|make [\w-]+)`")
    assert [promise for promise, checks in promises if not check.search(checks)] == []
    targets = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert set(re.findall(r"`make ([\w-]+)`", page)) <= targets
    assert all((ROOT / path).is_file() for path in re.findall(r"`(debian/[\w-]+|\.ci/run)`", page))
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert all(f"make {target}" in run for target in ("lint", "audit", "test", "deb-try"))


def toml_blocks(page: Path) -> list[str]:
    return re.findall(r"(?ms)^```toml\n(.*?)^```", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if toml_blocks(page)], ids=name)
def test_a_shown_configuration_is_toml(page: Path) -> None:
    assert all(map(tomllib.loads, toml_blocks(page)))


def test_the_configuration_of_getting_started_is_good() -> None:
    [shown] = toml_blocks(ROOT / "docs/getting-started.md")
    config = parse(shown)
    assert ruleset_mistakes(config, Path("feltd.toml")) == []
    assert device_mistakes(config, Path("feltd.toml")) == []
