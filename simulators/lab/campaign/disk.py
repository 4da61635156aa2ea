"""The journal of a simulated process: the real one on a real file, whose disk and whose process may die at any write.

A process that dies leaves the file and its log as they stand; a power cut in the middle of a write leaves any part of
what was being written. The next process opens a copy of that. What `append` returned must be there: `Ledger` remembers.
"""

import random
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from daemon.journal.rows import Entry, Row, id_and_journal
from daemon.journal.sent import HELD, KEY
from daemon.journal.store import BadJournal, ClosedFile, Journal
from simulators.lab.campaign.loop import Killed, Process

__all__ = ["Disk", "Fate", "Ledger", "WrongError"]

_WAL_PAGES = 200


class WrongError(AssertionError):
    """A judge found a broken promise. The message says which."""


class Fate:
    """What becomes of one write: the `at`-th of this process, 0 for none.

    `what`: "before", "after", "power" (the process dies), "error" or "full" (the disk does not take it).
    """

    def __init__(self, at: int = 0, what: str = "") -> None:
        """Nothing happens."""
        self.at = at
        self.what = what


class Ledger:
    """What one process was promised by its disk over all its lives, and what the broker took of it."""

    def __init__(self, name: str) -> None:
        """Nothing yet."""
        self.name = name
        self.rows: list[tuple[str, int, str, bytes]] = []
        self.taken: set[str] = set()
        self.wrong = ""
        """What was found first, in the words of the judges."""
        self._known: list[str] = []
        self._acknowledged = 0
        self._held: Mapping[str, int] = {}

    def promised(self, rows: list[Row], ids: list[str]) -> None:
        """`append` returned these; `ids` are what readers know them by."""
        for row in rows:
            if row.n != len(self.rows) + 1:
                raise WrongError(f"{self.name}: row {row.n} follows row {len(self.rows)}")
            self.rows.append((row.place, row.seq, row.type, row.data))
        self._known += ids

    def unsent(self, until: int) -> list[str]:
        """The tables of those of the first `until` rows that the broker did not take."""
        rows = zip(self.rows[:until], self._known, strict=False)
        return [row[0] for row, its_id in rows if its_id not in self.taken]

    def reopened(self, journal: Journal) -> None:
        """Every acknowledged row is there; further rows were being written when the process died."""
        if journal.head < len(self.rows):
            raise WrongError(f"{self.name}: {len(self.rows)} rows were promised, {journal.head} survived")

    def cursor(self, n: int, held: Mapping[str, int] | None = None) -> None:
        """What the process wrote down as acknowledged was taken by the broker, but for the rows of suspended tables.

        `held`: by suspended table, the seq of its first row that waits.
        """
        if held is not None:
            self._held = held
        while self._acknowledged < len(self._known) and self._known[self._acknowledged] in self.taken:
            self._acknowledged += 1
        for at in range(self._acknowledged, n):
            place, seq, *_ = self.rows[at] if at < len(self.rows) else ("", 0)
            waits = place in self._held and seq >= self._held[place]
            if not waits and not (at < len(self._known) and self._known[at] in self.taken):
                raise WrongError(f"{self.name}: the cursor says {n}, the broker did not take row {at + 1}")


class Disk(Journal):
    """One process' journal."""

    # Before Journal.__init__ is through, it appends already.
    _process: Process | None = None
    _listed = False

    def __init__(
        self, path: Path, process: Process, fate: Fate, ledger: Ledger, source: str, rng: random.Random
    ) -> None:
        """`source` is what an edge's event ids begin with; empty where the cause is the id."""
        super().__init__(path)
        self._adopt(process, fate, ledger, source, rng)
        try:
            ledger.reopened(self)
            if self.head > len(ledger.rows):  # a write that never returned was through
                self._promise(self.after(len(ledger.rows), self.head))
        except WrongError as error:
            self._found(error)

    def _adopt(self, process: Process, fate: Fate, ledger: Ledger, source: str, rng: random.Random) -> None:
        self.ledger = ledger
        self.writes = 0
        self._process = process
        self._fate = fate
        self._source = source
        self._rng = rng

    def _found(self, error: WrongError) -> NoReturn:
        """Kill the process with the finding. `Killed` is no Exception, so that no code of the process catches it."""
        assert self._process is not None
        self.ledger.wrong = str(error)
        self._process.die("judged")
        raise Killed from error

    def _grow_log(self) -> None:
        """Nothing is gained here; a short log is written back often. Nobody reads beside it: one lock for a life."""
        self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._db.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")

    def _look(self) -> None:
        """As Journal, once between two files: it lists a folder again that changed in the last seconds on the wall."""
        if not self._listed:
            super()._look()
            self._listed = True

    def _rotate(self) -> bool:
        self._listed = False
        return super()._rotate()

    def forget(self, oldest: ClosedFile) -> None:
        """As Journal."""
        super().forget(oldest)
        self._listed = False

    def _promise(self, rows: list[Row]) -> None:
        source = self._source
        self.ledger.promised(
            rows, [f"{source}{row.place}:{row.seq}" if source else id_and_journal(row.cause)[0] for row in rows]
        )

    def append(self, entries: Iterable[Entry], memory: Mapping[str, bytes | None] | None = None) -> list[Row]:
        """As Journal, unless a planned failure happens at this write."""
        process = self._process
        if process is None:
            return super().append(entries, memory)
        if not process.alive:
            raise Killed
        self.writes += 1
        if self.writes == self._fate.at:
            return self._struck(process, list(entries), memory)
        return self._write(entries, memory)

    def _write(self, entries: Iterable[Entry], memory: Mapping[str, bytes | None] | None) -> list[Row]:
        try:
            if memory and (cursor := memory.get(KEY)) is not None:
                held = memory.get(HELD)
                self.ledger.cursor(int(cursor), msgspec.json.decode(held, type=dict[str, int]) if held else None)
            rows = super().append(entries, memory)
            self._promise(rows)
        except WrongError as error:
            self._found(error)
        return rows

    def _struck(self, process: Process, entries: list[Entry], memory: Mapping[str, bytes | None] | None) -> list[Row]:
        match self._fate.what:
            case "before":
                process.die("killed before a write")
            case "after":
                super().append(entries, memory)
                process.die("killed after a write")
            case "power":
                log = self.path.with_name(self.path.name + "-wal")
                # What is written back to the file itself was in the log before, and is no more in doubt.
                self._db.execute("PRAGMA wal_autocheckpoint=0")
                before = log.read_bytes()
                super().append(entries, memory)
                self._tear(log, before)
                process.die("power cut in a write")
            case "error":
                once = iter((1,))
                self._db.set_progress_handler(lambda: next(once, 0), self._rng.randint(1, 60))
                try:
                    return self._write(entries, memory)
                except BadJournal:
                    process.how = "disk error"
                    raise
                finally:
                    self._db.set_progress_handler(None, 0)
            case _:
                process.how = "disk full"
                raise BadJournal(f"{self.path}: disk full; nothing was lost that was written before")
        raise Killed

    def _tear(self, log: Path, before: bytes) -> None:
        """Each sector of the log that the last write changed is kept or lost."""
        after = log.read_bytes()
        if not after.startswith(before[:32]):
            return  # the log began anew: what was before it was written back first
        torn = bytearray(after)
        old = before.ljust(len(after), b"\0")
        for at in range(0, len(after), 512):
            if after[at : at + 512] != old[at : at + 512] and self._rng.random() < 0.3:
                torn[at : at + 512] = old[at : at + 512]
        log.write_bytes(torn)

    def spare(self) -> None:
        """Nothing more happens to it."""
        self._fate.at = 0

    def leave(self, to: Path) -> None:
        """Copy the files of the dead process to `to`, for the next process."""
        for suffix in ("", "-wal"):
            source = self.path.with_name(self.path.name + suffix)
            if source.exists():
                shutil.copyfile(source, to.with_name(to.name + suffix))
        self.close()
        for suffix in ("", "-wal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
