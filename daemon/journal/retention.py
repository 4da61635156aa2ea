"""Retention of a journal: signatures in quiet hours, rotation, disk quota, and a warning before it is full.

Nothing that is younger than `keep_days` or not published yet is ever deleted, and nothing at all while there is room.
The age of a file is judged by the wall clock, which may be wrong, and also by its rows and by the uptime of the
processes since. If no room is left, the process stops with an alert rather than lose an event: devices with a memory
keep theirs, and open rounds are suspended.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import structlog
from msgspec import Struct

from daemon.config.model import Config, Keeping
from daemon.journal.findings import Report
from daemon.journal.forwarded import NONE_WAITS, forwarded_of, watch_forwarder
from daemon.journal.hash_chain import Noted
from daemon.journal.sent import sent_up_to
from daemon.journal.store import BadJournal, Journal, not_started
from daemon.journal.verify import verify, verify_recent
from daemon.pulse import PULSE_S, pulse
from daemon.words import words
from protocols.contract.documents import Alert
from protocols.contract.reasons import say
from protocols.contract.topics import edge_topic, table_topic

__all__ = ["NoRoom", "Room", "accept", "disk_free", "kept", "room", "room_topic", "take_up"]

EVERY = PULSE_S
LOOK_EVERY_S = 10.0
"""Seconds between two checks of files and room while there is room: other programs may fill the disk."""
LOOK_EVERY_ROWS = 100
"""Rows between two such checks."""
CHECKPOINT_LOGGED_EVERY_S = 3600.0
"""Seconds after which the last checkpoint is logged, and the uptime recorded."""
ANNOUNCED, URGENT = 0.8, 0.95
_MB = 1_000_000


def room_topic(site: str, table: str, name: str) -> str:
    """The topic of the alert that the journal of an edge or of rules runs out of room."""
    return table_topic(site, table, f"alert/{name}-journal-room")


class NoRoom(BadJournal):
    """The journal takes all its room: nothing can be written."""


class Room(Struct, frozen=True):
    """Bytes that the journal uses and may use: its limit, or the room on the disk."""

    used: int
    limit: int
    by_disk: bool

    @property
    def share(self) -> float:
        """The used part of the room; 1 is full."""
        return self.used / self.limit


def disk_free(journal: Journal) -> int:
    """The free bytes on a journal's disk. (shutil would import all compressions first: 3 ms.)"""
    disk = os.statvfs(journal.path.parent)
    return disk.f_bavail * disk.f_frsize


def room(journal: Journal, keeping: Keeping) -> Room:
    """The room of a journal."""
    used, free = journal.size, disk_free(journal)
    limit = keeping.limit_mb * _MB
    return Room(used, min(limit, used + free), used + free < limit)


def take_up(journal: Journal, keeping: Keeping, forwarded: Callable[[], int] = lambda: NONE_WAITS) -> None:
    """Verify the journal's end, load the key and check the room before any port is opened. Raises BadJournal.

    `forwarded`: the last row that the site's backbone has.
    """
    signer = None
    if keeping.key:
        from daemon.journal.signing import BadKey, Key  # imported here only: it costs memory

        try:
            signer = Key.load(Path(keeping.key))
        except BadKey as error:
            raise BadJournal(str(error)) from error
    report = verify_recent(journal.path, [signer.public] if signer else [])
    # Rows from before the key, or signed with an earlier one, do not prevent a start.
    findings = [str(one) for one in report.findings if not one.about_key and not one.unreadable]
    if findings:
        rest = f"\nand {len(findings) + report.more - 5} more" if len(findings) > 5 else ""
        raise BadJournal("\n".join(findings[:5]) + rest + f"\n{not_started(journal.path)}")
    journal.check_closed()
    _forget(journal, keeping, datetime.now(UTC), forwarded())
    now = room(journal, keeping)
    if now.share >= 1:
        raise NoRoom(_alert(journal, now, keeping, 3).text)
    unnoted = journal.noted()
    if signer is not None:
        if unnoted:  # rows written now would have no note at the next start
            raise BadJournal(unnoted)
        journal.signed_by(signer, keeping.sign_rows)


def accept(path: Path) -> tuple[Report, Noted, Path | None]:
    """Accept the journal at `path` as it is, because a person restored a copy on purpose.

    Returns the report of `verify`, its last checkpoint, and the path of the kept old note. Raises BadJournal.
    """
    if not path.is_file():
        raise BadJournal(f"{path}: there is no such journal; give the path of one")
    with contextlib.closing(Journal(path)) as journal:  # no process uses it meanwhile
        report = verify(path)
        findings = [one for one in report.findings if not one.about_note]
        if findings or report.more:
            text = "\n".join(str(one) for one in findings[:5])
            raise BadJournal(f"{text}\nThis is more than a missing note or a restored older copy")
        return report, journal.checkpoint, journal.accept()


async def kept(
    process: Coroutine[Any, Any, None],
    journal: Journal,
    config: Config,
    writer: str,
    put_retained: Callable[[str, bytes], None],
    log: structlog.typing.FilteringBoundLogger,
) -> None:
    """Run `process` while its journal is signed, rotated and limited. `writer` is its name in alerts.

    `put_retained` publishes a retained value, empty to clear it. Raises BadJournal, in a group.
    """

    def set_alert(alert: Alert | None) -> None:
        value = b"" if alert is None else msgspec.json.encode(alert)
        for table in config.table:
            put_retained(room_topic(config.site.name, table.name, writer), value)

    published = 0

    def publish() -> None:
        """Publish the last checkpoint if it is new."""
        nonlocal published
        if journal.checkpoint.number != published and (head := journal.signed_checkpoint()) is not None:
            put_retained(edge_topic(config.site.name, writer, "head"), msgspec.json.encode(head))
            published = head.checkpoint

    if config.journal.key and journal.head and not journal.checkpoint.number:
        remedy = (
            "expected if the key was configured just now; otherwise the signatures were removed: keep all files and"
            " inform the inspector"
        )
        log.warning("journal.never_signed", journal=str(journal.path), rows=journal.head, remedy=remedy)
    if journal.tightened:
        log.warning(
            "journal.tightened",
            files=journal.tightened,
            remedy="other users could read or write them; this was corrected",
        )
    async with asyncio.TaskGroup() as group:
        forwarded = forwarded_of(config, journal)
        keepers = [group.create_task(_keep(journal, config.journal, set_alert, publish, log, forwarded))]
        watcher = config.rules.name if config.replica.events == "backbone" else config.edge.name
        if config.backbone.servers and writer == watcher:
            keepers.append(group.create_task(watch_forwarder(config, writer, put_retained, log)))
        try:
            await process
        finally:
            for keeper in keepers:
                keeper.cancel()
            with contextlib.suppress(BadJournal):
                journal.record_uptime()


async def _keep(
    journal: Journal,
    keeping: Keeping,
    set_alert: Callable[[Alert | None], None],
    publish: Callable[[], None],
    log: structlog.typing.FilteringBoundLogger,
    forwarded: Callable[[], int],
) -> None:
    loop = asyncio.get_running_loop()
    if not keeping.key:
        remedy = "create a key with `feltd journal key` and name it as journal_key"
        log.warning("journal.unsigned", journal=str(journal.path), remedy=remedy)
    signed, level = float("-inf"), -1  # rows that a killed process left unsigned are signed at once
    files: tuple[list[Path], list[str]] = [], []
    logged_at, recorded, unnoted = float("-inf"), loop.time(), ""
    looked, head = float("-inf"), -1
    while True:
        if journal.unsigned and loop.time() - signed >= keeping.sign_seconds:
            journal.sign()
            signed = loop.time()
        if unnoted != (unnoted := journal.note()) and unnoted:
            log.warning("journal.note", text=unnoted)
        last = journal.checkpoint
        publish()
        if keeping.key and last.number and loop.time() - logged_at >= CHECKPOINT_LOGGED_EVERY_S:
            # With the log on another computer, removing these checkpoints from the journal is detectable.
            log.info(
                "journal.signed", journal=last.journal, checkpoint=last.number, row=last.n, statement=last.statement
            )
            logged_at = loop.time()
        if loop.time() - recorded >= CHECKPOINT_LOGGED_EVERY_S:
            journal.record_uptime()
            recorded = loop.time()
        if level == 0 and journal.head - head < LOOK_EVERY_ROWS and loop.time() - looked < LOOK_EVERY_S:
            await pulse(EVERY)
            continue
        looked, head = loop.time(), journal.head
        if journal.file_size >= keeping.file_mb * _MB and journal.rotate():
            log.info("journal.rotated", journal=str(journal.path), row=journal.head)
        files = _log_files(journal, files, log)
        for path in _forget(journal, keeping, datetime.now(UTC), forwarded()):
            log.info(
                "journal.forgotten", file=str(path), reason=f"older than {keeping.keep_days} days, and room is needed"
            )
        now = room(journal, keeping)
        new = (now.share >= ANNOUNCED) + (now.share >= URGENT) + (now.share >= 1)
        if new != level:
            if new:
                alert = _alert(journal, now, keeping, new)
                log.warning("journal.room", **msgspec.to_builtins(alert))
                set_alert(alert)
            else:
                set_alert(None)
            level = new
        if new < 3:
            await pulse(EVERY)
            continue
        await asyncio.sleep(EVERY)  # publish the alert before the end
        if room(journal, keeping).share >= 1:
            raise NoRoom(_alert(journal, now, keeping, 3).text)


def _log_files(
    journal: Journal, known: tuple[list[Path], list[str]], log: structlog.typing.FilteringBoundLogger
) -> tuple[list[Path], list[str]]:
    """Log foreign and unreadable files beside the journal, unless they are `known`."""
    foreign, unread = journal.foreign, journal.unread
    if foreign != known[0]:
        for path in foreign:
            remedy = "move it away: the next start is refused, and where its name is needed no new file is begun"
            log.warning("journal.foreign", file=str(path), remedy=remedy)
    for text in unread:
        if text not in known[1]:
            log.error("journal.unread", text=text)
    return foreign, unread


def _forget(journal: Journal, keeping: Keeping, now: datetime, forwarded: int) -> list[Path]:
    """Delete files that are old enough, published and forwarded, the oldest first, only as far as room is needed."""
    gone: list[Path] = []
    sent = min(sent_up_to(journal), forwarded)
    while room(journal, keeping).share >= ANNOUNCED and (closed := journal.closed):
        oldest = closed[0]
        if journal.age(oldest, now) < timedelta(days=keeping.keep_days) or oldest.to > sent:
            break
        journal.forget(oldest)
        gone.append(oldest.path)
    return gone


def _alert(journal: Journal, now: Room, keeping: Keeping, level: int) -> Alert:
    file, of, days = str(journal.path), "disk" if now.by_disk else "limit", keeping.keep_days
    if level == 3:
        why = say(f"{of}_full", file=file, limit=now.limit // _MB, days=days)
    else:
        why = say(f"of_{of}", file=file, used=now.used // _MB, share=f"{now.share:.0%}")
    return words.alert("journal.room", why, say("remedy", days=days), severity="warning" if level == 1 else "error")
