"""A hook of mkdocs: sources that pages link to are copied into the site as text, so that no link leaves its folder."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[#)])")


def _outside(page: str, target: str) -> str:
    """The path of a linked source from the root; empty for what is in docs, a folder or elsewhere."""
    if "://" in target or target.startswith("mailto:"):
        return ""
    path = ((DOCS / page).parent / target).resolve()
    return str(path.relative_to(ROOT)) if path.is_file() and not path.is_relative_to(DOCS) else ""


def on_files(files: Any, config: Any) -> Any:
    """Add each linked source once."""
    pages = [file.src_uri for file in files.documentation_pages()]
    texts = {page: (DOCS / page).read_text(encoding="utf-8") for page in pages}
    linked = {_outside(page, target) for page, text in texts.items() for target in LINK.findall(text)} - {""}
    generated = import_module("mkdocs.structure.files").File.generated
    for path in sorted(linked):
        files.append(generated(config, f"sources/{path}.txt", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead its links there."""
    up = "../" * page.file.src_uri.count("/")

    def copied(link: re.Match[str]) -> str:
        path = _outside(page.file.src_uri, link[0])
        return f"{up}sources/{path}.txt" if path else link[0]

    return LINK.sub(copied, markdown)
