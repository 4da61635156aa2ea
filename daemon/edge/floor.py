"""Whether each table is open, and the limits on its sign. The edge writes both into each bet.

A person decides at the console, and the decision is an event in the edge's journal (`table.opened`,
`table.limits_changed`, `table.closed` with a name). The edge keeps the last one of each table in the same transaction
and writes it into every bet that comes after it, so that the rules decide alike whenever they read the events. At a
table that nobody ever opened or closed here, bets are left as they are.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from daemon.broker.session import UNREADABLE
from protocols.contract.documents import TableSign
from protocols.contract.events import Event, LimitsChanged, TableClosed, TableOpened, WagerPlaced

__all__ = ["DECISIONS", "KEY", "Signs"]

KEY = "sign/"
DECISIONS = (TableOpened, LimitsChanged, TableClosed)


class Signs:
    """The signs of the tables of one edge."""

    def __init__(self, tables: Iterable[str], stored: Callable[[str], bytes | None]) -> None:
        """`stored`: what the journal keeps under KEY and the name of a table."""
        self.tables: dict[str, TableSign] = {}
        for table in tables:
            try:
                self.tables[table] = msgspec.json.decode(stored(KEY + table) or b"", type=TableSign)
            except UNREADABLE:  # nobody opened it yet
                continue

    def decide(self, table: str, event: Event, at: datetime) -> dict[str, bytes]:
        """Apply a decision; returns the values to store in its transaction."""
        known = self.tables.get(table, TableSign())
        match event:
            case TableOpened(by=by, minimum=minimum, maximum=maximum):
                sign = TableSign("open", by, at, minimum, maximum)
            case LimitsChanged(by=by, minimum=minimum, maximum=maximum):
                sign = msgspec.structs.replace(known, minimum=minimum, maximum=maximum, limits_by=by, limits_since=at)
            case TableClosed(by=by) if by:
                sign = TableSign("closed", by, at, known.minimum, known.maximum)
            case _:
                return {}
        self.tables[table] = sign
        return {KEY + table: msgspec.json.encode(sign)}

    def mark(self, table: str, event: WagerPlaced, happened: datetime) -> WagerPlaced:
        """A bet with the limits of its table, or with the note that the table is closed.

        A bet that a device kept from before the decision stays as it was laid.
        """
        sign = self.tables.get(table)
        if sign is None or _is_before(happened, sign.since):
            return event
        if sign.state == "closed":
            return msgspec.structs.replace(event, table_closed=True)
        if _is_before(happened, sign.limits_since):
            return event
        return msgspec.structs.replace(event, minimum=sign.minimum, maximum=sign.maximum)


def _is_before(happened: datetime, decided: datetime | None) -> bool:
    return decided is not None and happened < decided
