"""What `verify` and `verify_export` report: findings with their remedies, and counts."""

from typing import Protocol

import msgspec
from msgspec import Struct

__all__ = ["Finding", "Report", "Verifier", "report_text"]

MOST_FINDINGS = 100


UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


BAD_TIME = (
    "an earlier version wrote it: its round is void when the rules start; keep the file, and find the publisher of an"
    " event at such a time"
)


GIVE_KEY = "give the public key that was in use then with --public; if there is none, the signature proves nothing"


class Verifier(Protocol):
    """A public key; daemon/journal/signing.py has one."""

    @property
    def id(self) -> str:
        """The id of the key, as signed statements name it."""
        ...

    def signed(self, statement: bytes, signature: bytes) -> bool:
        """Whether its owner signed exactly these bytes."""
        ...


class Finding(Struct, frozen=True, omit_defaults=True):
    """A deviation from what was written. `n` and `seq` are 0 where they are unknown.

    `about_key`: the given key did not sign; nothing else is wrong. `about_note`: the note beside the journal does not
    name its last checkpoint, which a person may accept (`feltd journal accept`). `unreadable`: the row is as it was
    written, but its time is implausible; it voids its round and prevents no start.
    """

    file: str
    text: str
    remedy: str
    place: str = ""
    seq: int = 0
    n: int = 0
    about_key: bool = False
    about_note: bool = False
    unreadable: bool = False

    def __str__(self) -> str:
        """One line."""
        where = [f"table or pool {self.place}"] if self.place else []
        where += [f"seq {self.seq}"] if self.seq else []
        where += [f"row {self.n}"] if self.n else []
        return f"{self.file}: {', '.join(where) + ': ' if where else ''}{self.text}; {self.remedy}"


class Report(Struct):
    """The result of a verification."""

    journal: str = ""
    files: int = 0
    rows: int = 0
    tables: int = 0
    checkpoints: int = 0
    signatures: int = 0
    signed_rows: int = 0
    findings: list[Finding] = []
    more: int = 0
    notes: list[str] = []

    @property
    def good(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def find(self, finding: Finding) -> None:
        """Add a finding. Bounded: a ruined file has one for each row."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
            return
        self.more += 1
        if not finding.unreadable:  # they prevent no start, and must not displace a finding that does
            at = next((n for n, one in enumerate(self.findings) if one.unreadable), None)
            if at is not None:
                self.findings[at] = finding


def report_text(name: str, report: Report) -> str:
    """The report as text for people: each finding, the counts, and the notes."""
    lines = [str(finding) for finding in report.findings]
    said = f"{len(report.findings) + report.more} FINDINGS" if report.findings else "good"
    counts = f"{report.rows} rows, {report.tables} tables, {report.files} files, {report.checkpoints} checkpoints"
    lines.append(f"{name}: {said}: journal {report.journal}: {counts}, {report.signatures} signatures checked")
    return "\n".join([*lines, *(f"  note: {note}" for note in report.notes)])
