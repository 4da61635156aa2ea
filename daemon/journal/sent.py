"""The progress of sending a journal's rows: the outbox or the console writes it, the journal's retention reads it."""

import msgspec

from daemon.journal.store import Journal

__all__ = ["HELD", "KEY", "sent_up_to"]

KEY, HELD = "outbox", "outbox held"
"""Keys in the journal's memory: the last row sent, and by place the row that the broker refused and that is kept."""


def sent_up_to(journal: Journal) -> int:
    """The number of the last row up to which all rows are sent; later rows may still have to be sent."""
    held = msgspec.json.decode(journal.memory(HELD) or b"{}", type=dict[str, int])
    first = (row.n - 1 for place, seq in held.items() for row in journal.range(place, seq, seq))
    return min((int(journal.memory(KEY) or b"0"), *first))
