"""Writes the column "data" of the tables of events in docs/reference/protocols/fdl*.md from the fields of the events.

`make docs` runs it; tests/project/test_reference_pages.py fails when a table differs.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from daemon.conformance.host import happenings
from drivers import DRIVERS
from drivers.fdl_session import FdlDriver
from protocols.fdl import frame as fdl
from protocols.fdl.fields import Happening, Record

PAGES: Final = Path(__file__).parents[2] / "docs/reference/protocols"
EVENTS: Final[Mapping[str, Mapping[int, type[Happening]]]] = {
    "fdl.md": fdl.COMMON,
    **{f"{name}.md": happenings(one.kind) for name, one in DRIVERS.items() if issubclass(one, FdlDriver)},
}


def page(name: str) -> str:
    """The page with the data of its events as the code has them."""
    text = (PAGES / name).read_text(encoding="utf-8")
    before, title, rest = text.partition("\n## Events\n")
    table, following, after = rest.partition("\n## ")

    def row(found: re.Match[str]) -> str:
        event = EVENTS[name][int(found["kind"], 16)]
        assert issubclass(event, Record)
        data = event.layout() if event.FIELDS else ""
        return f"{found['begins']}| {data} |{found['ends']}" if data else f"{found['begins']}| |{found['ends']}"

    rows = re.compile(
        r"^(?P<begins>\| (?P<kind>[0-9A-F]{2}) \|(?: (?:all|console|shaker) \|)? [^|]+ )"
        r"\|[^|]*\|(?P<ends> `[0-9A-F ]*` \|.*)$",
        re.MULTILINE,
    )
    return before + title + rows.sub(row, table) + following + after


if __name__ == "__main__":
    for name in EVENTS:
        (PAGES / name).write_text(page(name), encoding="utf-8")
