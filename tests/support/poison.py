"""What the tests of poisoned values share: times that no clock shows, and everything that reads a journal."""

import io
import json
import zipfile
from pathlib import Path

from helpers import START

from daemon.config.model import Config
from daemon.console.pages.bundle import Given, make
from daemon.journal.export import Written, export, verify_export
from daemon.journal.findings import report_text
from daemon.journal.recall import Recalled, recall, recall_text
from protocols.contract.topics import EARLIEST, LATEST

TIMES = (
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "1969-12-31T23:59:59.999999Z",
    "2100-01-01T00:00:00Z",
    "2026-11-20T20:00:00",  # no zone
    "2016-12-31T23:59:60Z",  # a leap second
    "2026-11-20T24:00:00Z",
    "2026-02-30T00:00:00Z",
)


WRITERS: tuple[tuple[str, Written], ...] = (("rules.db", "rules"), ("edge.db", "edge"))


def look_into(folder: Path, config: Config, *tables: str) -> list[Recalled]:
    """Everything that reads what the processes wrote; the ends of rounds. Raises what a reader cannot read."""
    always = {"since": EARLIEST, "until": LATEST}
    recalled = list[Recalled]()
    for table in tables:
        ends = recall(folder / "rules.db", folder / "edge.db", table, 1000)
        recall_text(ends)
        recalled += ends
        for name, of in WRITERS:
            lines = list(export(folder / name, table, site="s", writer="e", of=of, **always))
            report = verify_export(lines, "x")
            assert all(one.unreadable for one in report.findings), report_text("x", report)
    make(folder / "bundle.zip", config, Given(START, journald=False))
    with zipfile.ZipFile(io.BytesIO((folder / "bundle.zip").read_bytes())) as file:
        assert json.loads(file.read("manifest.json"))["notes"] == []
    return recalled
