"""The report of a shift: open incidents, actions of people, response times. Pure: `pages/report.py` serves it."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from typing import TypeAlias

from msgspec import Struct

from daemon.console.alerts.handling import StepKind, first
from daemon.console.alerts.records import Incident, Silence

__all__ = ["Medians", "Report", "Times", "made", "times"]


class Times(Struct, frozen=True):
    """Seconds from the beginning of an incident to the first of each step; None: not taken."""

    taken: float | None
    at_table: float | None
    done: float | None


class Medians(Struct, frozen=True):
    """The number of some incidents, and the median seconds of each step among those that had it."""

    incidents: int
    taken: float | None
    at_table: float | None
    done: float | None


Group: TypeAlias = tuple[str, Medians]


class Report(Struct, frozen=True):
    """A report of a shift or another period. `began`: incidents that began in it; `open`: those open at its end."""

    since: datetime
    until: datetime
    began: tuple[Incident, ...]
    earlier: tuple[Incident, ...]
    open: tuple[Incident, ...]
    handed: tuple[Incident, ...]
    silences: tuple[Silence, ...]
    all: Medians
    days: tuple[Group, ...]
    kinds: tuple[Group, ...]
    cut: bool
    """Whether there were more incidents than a report has room for."""


def times(one: Incident) -> Times:
    """The response times of an incident."""

    def to(kind: StepKind) -> float | None:
        at = first(one.steps, kind)
        if at is None and kind == "taken":
            at = one.acknowledged  # by a version that kept no steps
        return None if at is None else max((at - one.began).total_seconds(), 0.0)

    return Times(to("taken"), to("at_table"), to("done"))


def made(
    since: datetime,
    until: datetime,
    incidents: Sequence[Incident],
    silences: Iterable[Silence],
    kind: Callable[[Incident], str],
    *,
    zone: tzinfo,
    cut: bool,
) -> Report:
    """The report from the incidents that were open in the period; days are those of the zone.

    `kind` of an incident's device; "" for none.
    """
    began = tuple(one for one in incidents if one.began >= since)
    days: dict[str, list[Incident]] = {}
    kinds: dict[str, list[Incident]] = {}
    for one in began:
        days.setdefault(one.began.astimezone(zone).date().isoformat(), []).append(one)
        kinds.setdefault(kind(one), []).append(one)
    return Report(
        since,
        until,
        began,
        earlier=tuple(one for one in incidents if one.began < since),
        open=tuple(one for one in incidents if one.ended is None or one.ended >= until),
        handed=tuple(
            one for one in incidents if any(step.kind == "handed" and since <= step.time < until for step in one.steps)
        ),
        silences=tuple(silences),
        all=_medians(began),
        days=tuple((name, _medians(some)) for name, some in sorted(days.items())),
        kinds=tuple((name, _medians(some)) for name, some in sorted(kinds.items())),
        cut=cut,
    )


def _medians(some: Sequence[Incident]) -> Medians:
    found = [times(one) for one in some]

    def middle(of: Callable[[Times], float | None]) -> float | None:
        known = [seconds for one in found if (seconds := of(one)) is not None]
        return statistics.median(known) if known else None

    return Medians(
        len(some), middle(lambda one: one.taken), middle(lambda one: one.at_table), middle(lambda one: one.done)
    )
