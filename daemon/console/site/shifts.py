"""The shifts of the casino and its days of play, in local time."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta, tzinfo

__all__ = ["day_of_play", "shift_of"]


def shift_of(begins: Sequence[str], now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Beginning and end of the shift of `now`; `begins` are times of day in the zone."""
    today = now.astimezone(zone).date()
    edges = sorted(
        datetime.combine(today + timedelta(days=day), time.fromisoformat(one), zone)
        for day in (-2, -1, 0, 1, 2)
        for one in begins
    )
    return max(one for one in edges if one <= now), min(one for one in edges if one > now)


def day_of_play(begins: Sequence[str], now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Beginning and end of the day of play of `now`: it begins with the first shift."""
    return shift_of(begins[:1], now, zone)
