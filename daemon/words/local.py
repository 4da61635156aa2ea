"""Dates, times and durations as each language writes them, in the time zone of the site."""

import math
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from babel.dates import LOCALTZ, format_date, format_skeleton

from daemon.words import words
from daemon.words.numbers import Lang, Numeral, locale, number

__all__ = ["Local", "zone_of"]

DAYS = 400
"""Number of cached dates. The pages show few different dates."""
SECONDS, MINUTES = 100, 5970
"""A duration below SECONDS is written in seconds, below MINUTES in minutes; both limits are in seconds."""


def zone_of(name: str) -> tzinfo:
    """The time zone that [site] timezone names; for "" the one of this computer."""
    return ZoneInfo(name) if name else LOCALTZ


class Local:
    """Writes numbers, dates and times in one language."""

    def __init__(self, lang: Lang, zone: tzinfo) -> None:
        self.lang: Lang = lang
        self.zone = zone
        self.zone_name: str = getattr(zone, "key", "") or "UTC"

    def number(self, value: float | Decimal, digits: int = 0) -> Numeral:
        """A number in groups of three digits, with `digits` decimals."""
        return number(self.lang, value, digits)

    def significant(self, value: float, digits: int) -> Numeral:
        """A number with `digits` significant digits."""
        whole = math.floor(math.log10(float(f"{abs(value):.{digits - 1}e}"))) + 1 if value else 1
        return self.number(value, max(digits - whole, 0))

    def at(self, time: datetime) -> datetime:
        """The time in the zone of the site."""
        return time.astimezone(self.zone)

    def day(self, time: datetime) -> str:
        """The date, with its year."""
        return _day(self.lang, self.at(time).date())

    def iso_day(self, day: str) -> str:
        """A date that is stored as 2004-05-17."""
        return _day(self.lang, date.fromisoformat(day))

    def short_day(self, time: datetime) -> str:
        """The date without its year."""
        return _short_day(self.lang, self.at(time).date())

    def clock(self, time: datetime, *, ms: bool = False) -> str:
        """The time of day with seconds; with milliseconds if `ms`."""
        return self.at(time).strftime("%H:%M:%S") + (f".{time.microsecond // 1000:03d}" if ms else "")

    def minute(self, time: datetime) -> str:
        """The time of day without seconds, for planned times."""
        return self.at(time).strftime("%H:%M")

    def exact(self, time: datetime) -> str:
        """Date, time and offset from UTC."""
        offset = self.at(time).strftime("%z")
        zone = "UTC" if offset.strip("+-0") == "" else f"UTC{offset[:3]}:{offset[3:5]}"
        return f"{self.day(time)} {self.clock(time, ms=True)} {zone}"

    def duration(self, seconds: float | None) -> str:
        """A duration; a dash where it is unknown."""
        if seconds is None:
            return "–"
        if seconds < SECONDS:
            return words.say(self.lang, "unit.s", n=round(seconds))
        if seconds < MINUTES:
            return words.say(self.lang, "unit.min", n=round(seconds / 60))
        hours, minutes = divmod(round(seconds / 60), 60)
        whole = words.say(self.lang, "unit.h", n=hours)
        return f"{whole} {words.say(self.lang, 'unit.min', n=minutes)}" if minutes else whole


@lru_cache(DAYS)
def _day(lang: Lang, day: date) -> str:
    return format_date(day, "medium", locale(lang))


@lru_cache(DAYS)
def _short_day(lang: Lang, day: date) -> str:
    return format_skeleton("MMMd", datetime(day.year, day.month, day.day, tzinfo=UTC), locale=locale(lang))
