"""Detects a wall clock that goes back. Pure: time and the loop's clock are arguments."""

from datetime import datetime, timedelta

__all__ = ["ClockWatch"]

SLACK = timedelta(seconds=2)
"""A smaller correction of the clock is not reported."""
LASTS_S = 3600.0
"""Seconds after which an alert ends although the clock has not caught up: it may have been years ahead."""


class ClockWatch:
    """Compares the clock with the newest time that is known: of the journal's last row, then of the clock itself."""

    def __init__(self, newest: datetime, at_s: float) -> None:
        """`at_s`: the loop's clock."""
        self._newest = newest
        self._since_s = at_s

    def look(self, now: datetime, at_s: float) -> datetime | None:
        """The newest known time, while the clock is behind it; else None."""
        if self._newest - now > SLACK and at_s - self._since_s < LASTS_S:
            return self._newest
        self._newest, self._since_s = now, at_s
        return None
