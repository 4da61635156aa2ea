"""Continues the round numbers of a table after the last round on the broker, when rules begin with a new journal.

`round/state` is retained: it names the newest round, and for each journal of an edge the round after which its first
event was used. Rules with a new journal read it once. Events that it includes were resolved before and get the numbers
that they had; any other first event begins a round after the newest one.
"""

import re
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from daemon.journal.store import Journal
from protocols.contract.results import BadRound, decode_state
from protocols.contract.topics import Envelope
from rules.engine.rounds import numbered_after

__all__ = ["Numbering"]

S = TypeVar("S", bound=Struct)
ROUND = re.compile(r"\d{4}-\d\d-\d\d:\d{1,9}(:.*)?")


class _Before(Struct, frozen=True):
    """Fields of the last RoundState that the previous rules published. Empty: none was read."""

    newest: str = ""
    heard: dict[str, int] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)


class Numbering:
    """The numbers of one table."""

    def __init__(self, table: str, journal: Journal, newest: str, *, fresh: bool) -> None:
        """`newest`: the last round that the journal opened. `fresh`: the journal has no state of the table."""
        self._table = table
        self._key = f"numbers/{table}"
        kept = journal.memory(self._key)
        before = msgspec.json.decode(kept, type=_Before) if kept else _Before()
        self.newest = newest or before.newest
        """The newest round of the table; it may be one of the previous rules."""
        self.unread = fresh and not kept
        """Whether the state on the broker is to be read."""
        self.before = before if fresh else None
        """Until the first event."""

    def read(self, payload: bytes) -> dict[str, bytes]:
        """Take over the state on the broker; returns the values to store before a new state replaces it."""
        self.unread = False
        try:
            state = decode_state(payload) if payload else None
        except BadRound:  # of another program, or another version
            state = None
        if state is not None and all(map(self._is_round, (state.newest, *state.after.values()))):
            self.newest = state.newest
            self.before = _Before(state.newest, state.heard, state.after)
        return {self._key: msgspec.json.encode(self.before or _Before())}

    def _is_round(self, id_: str) -> bool:
        day = id_.removeprefix(f"{self._table}:")
        return not id_ or (day != id_ and ROUND.fullmatch(day) is not None)

    def first(self, state: S, seen: Envelope) -> S:
        """The state in which the first event is used."""
        before, self.before = self.before or _Before(), None
        included = seen.seq <= before.heard.get(seen.journal, 0)
        self.newest = before.after.get(seen.journal, "") if included else before.newest
        return numbered_after(state, self._table, self.newest) if self.newest else state
