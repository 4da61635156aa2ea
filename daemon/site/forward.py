"""The forwarder: from the journals of this computer, read only, to the streams of the backbone.

Each table has one message in flight; tables are independent. The cursor moves only after the stream's confirmation;
after a lost cursor rows are sent again under the same ids. `status.json` has the cursors.
"""

import asyncio
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from daemon import logs, whole_files
from daemon.config.model import Config
from daemon.journal.forwarded import AWAY, BEHIND, DEGRADED, Cursor, Status, journals_of, read_status
from daemon.journal.reader import Page, page_after
from daemon.journal.rows import Row, id_and_journal
from daemon.read_model import SHOWN
from daemon.site.backbone import NotConfirmed
from daemon.site.streams import ADM, EV, RES, id_of, subject_of, subject_of_pool
from protocols.contract.jackpots import jackpot_topic
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Wire, device_topic, encode_wire, table_topic

__all__ = ["Forwarder", "payload_of"]

PAGE = 500
LOOK_S = 0.2
"""Seconds between two reads of a journal without new rows."""
AGAIN_S = 0.2
AWAY_S = 10.0
"""Seconds without a confirmation: longer than an election."""
NODES_EVERY_S = 5.0
STATUS_S = 1.0


class Publishes(Protocol):
    """The connection to the backbone."""

    async def publish(self, subject: str, id_: str, payload: bytes) -> bool:
        """Return when it is confirmed. Raises NotConfirmed."""
        ...

    async def nodes_of(self, stream: str) -> tuple[int, int]:
        """The number of nodes with a complete copy of a stream, and the intended number. Raises NotConfirmed."""
        ...


def payload_of(row: Row, part: str, site: str, writer: str, journal: str) -> bytes:
    """The message of a row as on MQTT, always the same: without the MAC, and not marked as a replay."""
    data = msgspec.Raw(row.data)
    id_, counted_by = f"{writer}:{row.place}:{row.seq}", ""
    match part:
        case "edge":
            source = device_topic(site, row.place, row.device, "")[:-1]
        case "jackpots":
            source = jackpot_topic(site, row.place, "")[:-1]
        case _:
            source = table_topic(site, row.place, "round")
            id_, counted_by = id_and_journal(row.cause)
    wire = Wire("1.0", id_, source, row.type, row.time, row.seq, "", journal, False, data, UNSET, counted_by or UNSET)
    return encode_wire(wire)


class _Part:
    """One journal: edge, rules or jackpots."""

    def __init__(self, name: str, path: Path, writer: str, cursor: Cursor) -> None:
        self.name, self.path, self.writer = name, path, writer
        self.cursor = cursor
        self.head = cursor.n
        self.oldest: datetime | None = None
        """Since when rows wait: the time when the first was found, or when the row before it was confirmed."""
        self.checkpoint = 0
        self.unread = ""


class Forwarder:
    """The process. Its only state is its cursors."""

    def __init__(self, config: Config, backbone: Publishes) -> None:
        """Continue where the last process stopped."""
        self._config, self._backbone = config, backbone
        self._log = logs.get(forward=config.edge.name)
        self._folder = Path(config.forward.folder)
        before = read_status(self._folder)
        cursors = before.cursors if before is not None else {}
        writers = {"edge": config.edge.name, "rules": config.rules.name, "jackpots": config.jackpots.name}
        self._parts = [
            _Part(name, path, writers[name], cursors.get(name, Cursor())) for name, path in journals_of(config).items()
        ]
        self._confirmed = self._now()
        self._refused = ""
        """Why the newest message was not confirmed."""
        self._answered = False
        self._degraded: Reason | None = None

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Forward until cancelled."""
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            async with asyncio.TaskGroup() as group:
                for part in self._parts:
                    group.create_task(self._forward(part))
                group.create_task(self._look_at_nodes())
                group.create_task(self._status_loop())
        finally:
            self._write_status()

    # ---- rows

    async def _forward(self, part: _Part) -> None:
        while True:
            page = await self._read(part)
            if page is None or not page.rows:
                await self._forward_checkpoint(part, page)
                await asyncio.sleep(LOOK_S)
                continue
            by_table: dict[str, list[Row]] = {}
            for row in page.rows:
                by_table.setdefault(row.place, []).append(row)
            async with asyncio.TaskGroup() as group:
                for rows in by_table.values():
                    group.create_task(self._in_order(part, rows))
            part.cursor = replace(part.cursor, n=page.rows[-1].n)

    async def _read(self, part: _Part) -> Page | None:
        """The rows after the cursor; None where there is no journal, or it cannot be read now."""
        try:
            page = await asyncio.to_thread(page_after, part.path, part.cursor.journal, part.cursor.n, PAGE)
        except FileNotFoundError:
            return None  # no journal exists yet
        except (sqlite3.Error, OSError) as error:
            if str(error) != part.unread:
                self._log.warning("forwarder.unread", journal=str(part.path), reason=str(error))
            part.unread = str(error)
            return None
        part.unread = ""
        if page.journal != part.cursor.journal:
            self._log.info("forwarder.journal", part=part.name, journal=page.journal)
            part.cursor, part.checkpoint = Cursor(page.journal), 0
            return await self._read(part)
        if page.head < part.cursor.n:  # an older copy was put back: other rows may get the same numbers
            part.cursor = Cursor(page.journal, 0, part.cursor.life + 1)
            self._log.error("forwarder.went_back", part=part.name, journal=page.journal, rows=page.head)
            return await self._read(part)
        part.head = page.head
        if page.rows and part.oldest is None:
            part.oldest = datetime.now(UTC)
        elif not page.rows:
            part.oldest = None
        return page

    async def _in_order(self, part: _Part, rows: Iterable[Row]) -> None:
        """Send the rows of one table or pool, one after the other."""
        site = self._config.site.name
        for row in rows:
            if part.name == "edge" and row.type not in SHOWN and not self._config.forward.cards:
                continue  # it may name a card that lies face down
            if row.unreadable:
                continue
            payload = payload_of(row, part.name, site, part.writer, part.cursor.journal)
            if part.name == "jackpots":
                subject = subject_of_pool(site, row.place)
            else:
                subject = subject_of(EV if part.name == "edge" else RES, site, row.place)
            await self._until_confirmed(subject, id_of(row, part.cursor.journal, part.cursor.life), payload)
            part.oldest = datetime.now(UTC)

    async def _forward_checkpoint(self, part: _Part, page: Page | None) -> None:
        """Send the newest signed checkpoint, which covers all earlier ones."""
        if page is None or page.head_signed is None or page.head_signed.checkpoint <= part.checkpoint:
            return
        subject = subject_of(ADM, self._config.site.name, part.writer)
        id_ = f"{page.journal}:{page.head_signed.checkpoint}"
        await self._until_confirmed(subject, id_, msgspec.json.encode(page.head_signed))
        part.checkpoint = page.head_signed.checkpoint

    async def _until_confirmed(self, subject: str, id_: str, payload: bytes) -> None:
        while True:
            try:
                await self._backbone.publish(subject, id_, payload)
            except NotConfirmed as error:
                self._refused, self._answered = str(error), error.answered
                await asyncio.sleep(AGAIN_S)
            else:
                self._confirmed, self._refused = self._now(), ""
                return

    # ---- status

    async def _look_at_nodes(self) -> None:
        while True:
            try:
                current, wanted = await self._backbone.nodes_of(EV)
            except NotConfirmed:
                self._degraded = None
            else:
                self._degraded = say("text", current=current, wanted=wanted) if current < wanted else None
            await asyncio.sleep(NODES_EVERY_S)

    def _wrong(self) -> tuple[str, Reason | None]:
        """The code of the alert and its reason; empty where nothing is wrong."""
        waiting = [part for part in self._parts if part.oldest is not None]
        rows = sum(part.head - part.cursor.n for part in waiting)
        if self._refused and self._now() - self._confirmed > AWAY_S:
            oldest = min((part.oldest for part in waiting if part.oldest), default=datetime.now(UTC))
            code, of = (BEHIND, "refused") if self._answered else (AWAY, "text")
            day, time = f"{oldest:%Y-%m-%d}", f"{oldest:%H:%M}"
            return code, say(of, reason=self._refused, rows=rows, day=day, time=time)
        unread = [f"{part.path}: {part.unread}" for part in self._parts if part.unread]
        if unread:
            return BEHIND, say("unread", reason=unread[0])
        return (DEGRADED if self._degraded else ""), self._degraded

    async def _status_loop(self) -> None:
        while True:
            self._write_status()
            await asyncio.sleep(STATUS_S)

    def _write_status(self) -> None:
        """Write `status.json` without a sync: after a power cut some rows are sent again."""
        code, why = self._wrong()
        cursors = {part.name: part.cursor for part in self._parts}
        path = self._folder / "status.json"
        beside = whole_files.begin(path, 0o644)
        beside.write_bytes(msgspec.json.encode(Status(datetime.now(UTC), code, why, cursors)))
        beside.replace(path)
