"""The journal of a simulated process: a real one on a real file, whose disk or process may fail at any write.

A killed process leaves the file and its log as they are; a power cut in the middle of a write leaves any part of the
written bytes. The next process opens a copy of them. Rows that `append` returned must be there: `Ledger` records them.
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
    """A judge found a broken promise. The message names it."""


class Fate:
    """The planned failure of one write: the `at`-th of this process, 0 for none.

    `what`: "before", "after", "power" (the process dies), "error" or "full" (the disk refuses the write).
    """

    def __init__(self, at: int = 0, what: str = "") -> None:
        """By default no write fails."""
        self.at = at
        self.what = what


class Ledger:
    """The rows that the disk acknowledged to one process over all its lives, and those that the broker received."""

    def __init__(self, name: str) -> None:
        """An empty ledger."""
        self.name = name
        self.rows: list[tuple[str, int, str, bytes]] = []
        self.taken: set[str] = set()
        self.wrong = ""
        """The finding of a check, as a message."""
        self._known: list[str] = []
        self._acknowledged = 0
        self._held: Mapping[str, int] = {}

    def promised(self, rows: list[Row], ids: list[str]) -> None:
        """Record rows that `append` returned; `ids`: their event ids."""
        for row in rows:
            if row.n != len(self.rows) + 1:
                raise WrongError(f"{self.name}: row {row.n} follows row {len(self.rows)}")
            self.rows.append((row.place, row.seq, row.type, row.data))
        self._known += ids

    def unsent(self, until: int) -> list[str]:
        """The tables of those of the first `until` rows that the broker did not receive."""
        rows = zip(self.rows[:until], self._known, strict=False)
        return [row[0] for row, its_id in rows if its_id not in self.taken]

    def reopened(self, journal: Journal) -> None:
        """Check that every acknowledged row is there; further rows were being written when the process died."""
        if journal.head < len(self.rows):
            raise WrongError(f"{self.name}: {len(self.rows)} rows were acknowledged, {journal.head} survived")

    def cursor(self, n: int, held: Mapping[str, int] | None = None) -> None:
        """Check that the broker received all rows before the process' cursor, except those of suspended tables.

        `held`: by suspended table, the seq of its first waiting row.
        """
        if held is not None:
            self._held = held
        while self._acknowledged < len(self._known) and self._known[self._acknowledged] in self.taken:
            self._acknowledged += 1
        for at in range(self._acknowledged, n):
            place, seq, *_ = self.rows[at] if at < len(self.rows) else ("", 0)
            waits = place in self._held and seq >= self._held[place]
            if not waits and not (at < len(self._known) and self._known[at] in self.taken):
                raise WrongError(f"{self.name}: the cursor is {n}, the broker did not take row {at + 1}")


class Disk(Journal):
    """One process' journal."""

    # Their values before `_adopt`.
    _process: Process | None = None
    _listed = False

    def __init__(
        self, path: Path, process: Process, fate: Fate, ledger: Ledger, source: str, rng: random.Random
    ) -> None:
        """`source`: the beginning of the process' event ids; empty if the cause is the id."""
        super().__init__(path)
        self._adopt(process, fate, ledger, source, rng)
        try:
            ledger.reopened(self)
            if self.head > len(ledger.rows):  # a write that never returned was completed
                self._promise(self.after(len(ledger.rows), self.head))
            self._check_cursor(self.memory(KEY) or b"0", self.memory(HELD) or b"{}")  # of that write, too
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
        """Kill the process with the finding. `Killed` is not an Exception, so that no code of the process catches
        it.
        """
        assert self._process is not None
        self.ledger.wrong = str(error)
        self._process.die("judged")
        raise Killed from error

    def _grow_log(self) -> None:
        """No growth: a short log is written back often. There is no other reader: one lock serves a whole life."""
        self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._db.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")

    def _look(self) -> None:
        """As Journal, but once between two files: Journal lists a folder again if it changed in the last real
        seconds.
        """
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
                self._check_cursor(cursor, memory.get(HELD))
            rows = super().append(entries, memory)
            self._promise(rows)
        except WrongError as error:
            self._found(error)
        return rows

    def _check_cursor(self, cursor: bytes, held: bytes | None) -> None:
        self.ledger.cursor(int(cursor), msgspec.json.decode(held, type=dict[str, int]) if held else None)

    def _struck(self, process: Process, entries: list[Entry], memory: Mapping[str, bytes | None] | None) -> list[Row]:
        match self._fate.what:
            case "before":
                process.die("killed before a write")
            case "after":
                super().append(entries, memory)
                process.die("killed after a write")
            case "power":
                log = self.path.with_name(self.path.name + "-wal")
                # Pages written back to the file were in the log before, so they are safe.
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
            return  # the log was restarted: its earlier content was written back first
        torn = bytearray(after)
        old = before.ljust(len(after), b"\0")
        for at in range(0, len(after), 512):
            if after[at : at + 512] != old[at : at + 512] and self._rng.random() < 0.3:
                torn[at : at + 512] = old[at : at + 512]
        log.write_bytes(torn)

    def spare(self) -> None:
        """Cancel the planned failure."""
        self._fate.at = 0

    def leave(self, to: Path) -> None:
        """Copy the files of the killed process to `to`, for the next process."""
        for suffix in ("", "-wal"):
            source = self.path.with_name(self.path.name + suffix)
            if source.exists():
                shutil.copyfile(source, to.with_name(to.name + suffix))
        self.close()
        for suffix in ("", "-wal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
