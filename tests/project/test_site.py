"""The site of the documents is whole: each link leads to a file in its folder, and a browser loads nothing else."""

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"""(?:<(?:script|img|iframe)\b[^>]*?\ssrc|<link\b[^>]*?\shref)=["']([^"']+)["']""")
ANCHOR = re.compile(r"""(?:\sid|<a name)=["']([^"']+)["']""")

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is missing: make site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "-q",
        "--strict",
        "-f",
        str(ROOT / "mkdocs.yml"),
        "-d",
        str(folder),
    ]
    subprocess.run(words, check=True, timeout=300)
    return folder


@cache
def ids(page: Path) -> frozenset[str]:
    return frozenset(ANCHOR.findall(page.read_text(encoding="utf-8")))


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if path.name != "404.html")  # that one is for a server


def test_every_link_of_the_site_leads_to_a_file_in_it(site: Path) -> None:
    assert len(pages(site)) > 100
    for page in pages(site):
        for link in re.findall(r"""\s(?:href|src)=["']([^"']*)["']""", page.read_text(encoding="utf-8")):
            if "://" in link or link.startswith(("mailto:", "data:")):
                continue
            path, _, anchor = link.partition("#")
            to = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            assert to.is_file(), f"{page.relative_to(site)}: {link}"
            assert to.is_relative_to(site.resolve()), f"{page.relative_to(site)}: {link}"
            assert not anchor or anchor in ids(to), f"{page.relative_to(site)}: {link}"


def test_a_browser_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = {link for page in pages(site) for link in LOADED.findall(page.read_text(encoding="utf-8"))}
    assert any(link.endswith(".css") for link in loaded)
    assert not [link for link in loaded if "://" in link or link.startswith("//")]
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "@import" not in text
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//", text), sheet
