"""The timeline of a table: one strip of the last hours, as SVG from the server, and as a list.

Lanes: rounds, alerts, devices, people. A time without observation is hatched, so that it does not look quiet.
Positions are per cent of the width, so that one drawing fits every screen and texts are not stretched.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from msgspec import Struct

from daemon.console.alerts.records import Filter
from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Viewer
from daemon.console.pages.alerts import said
from daemon.console.site import story
from daemon.console.site.day import Days
from daemon.console.site.rounds import Interval, Records
from daemon.words import words
from daemon.words.local import Local

__all__ = ["HOURS", "fragments"]

Lane: TypeAlias = Literal["rounds", "alerts", "devices", "people"]
LANES: tuple[Lane, ...] = ("rounds", "alerts", "devices", "people")
HOURS = (24, 6)
"""The lengths of the strip; the first is the usual one."""
BINS = 96
"""Intervals of the strip whose rounds are counted."""
LEAST = 0.45
"""Least width of a mark, in per cent: narrower ones could not be seen or clicked."""
MOST_ENDS, MOST_INCIDENTS, MOST_SILENCES, MOST_MARKS = 6_000, 300, 100, 400
HEIGHTS = {"rounds": 40, "alerts": 26, "devices": 26, "people": 26}


class Mark(Struct, frozen=True):
    """An entry of the strip and the list. `ended` is `began` for a moment, and None while it lasts. `to`: its page."""

    lane: Lane
    kind: str
    icon: str
    began: datetime
    ended: datetime | None
    text: str
    to: str = ""


class Drawn(Struct, frozen=True):
    """A mark on the strip: per cent of the width, pixels from the top; `title` has the exact times."""

    mark: Mark
    x: float
    width: float
    y: int
    height: int
    title: str


class Bar(Struct, frozen=True):
    """The rounds that ended in one interval."""

    x: float
    width: float
    y: int
    height: int
    title: str


class _Strip(Struct, frozen=True):
    """The period of the strip. It begins and ends at a full hour."""

    since: datetime
    until: datetime
    now: datetime

    def x(self, at: datetime) -> float:
        share = (min(max(at, self.since), self.until) - self.since) / (self.until - self.since)
        return round(share * 100, 2)


def strip_of(now: datetime, hours: int, local: Local) -> _Strip:
    """The period of so many hours that ends with the present hour, in the zone of the site."""
    here = local.at(now)
    hour = here.replace(minute=0, second=0, microsecond=0)
    until = now + (hour + timedelta(hours=1) - here)
    return _Strip(until - timedelta(hours=hours), until, now)


def fragments(context: ConsoleContext, days: Days) -> tuple[Fragment, ...]:
    """The live fragments `day/<table>` and `day/<table>/<hours>`."""

    def table_of(argument: str) -> str:
        return argument.partition("/")[0]

    def render(argument: str, viewer: Viewer) -> str:
        table, _, length = argument.partition("/")
        hours = int(length or HOURS[0]) if length in ("", *map(str, HOURS)) else 0
        if table not in context.site.tables or not hours:
            raise KeyError(argument)
        return _render(context, days, table, hours, viewer.lang, argument)

    def keys(argument: str) -> tuple[str, ...]:
        return (f"day/{table_of(argument)}", "broker")

    return (Fragment("day", keys, render, table_of),)


def _render(context: ConsoleContext, days: Days, table: str, hours: int, lang: words.Lang, argument: str) -> str:
    local = Local(lang, context.zone)
    strip = strip_of(context.now(), hours, local)
    records = Records(context.store.db)
    ruled = bool(context.site.ruleset(table))
    ends = records.ends(table, strip.since, strip.until, MOST_ENDS) if ruled else []
    gaps = records.gaps(table, strip.since, strip.now) if ruled else []
    marks = sorted(_marks(context, days, table, strip, ends, lang), key=lambda one: one.began)[-MOST_MARKS:]
    lanes = LANES if ruled else LANES[1:]
    tops = {lane: sum(HEIGHTS[one] for one in lanes[:n]) for n, lane in enumerate(lanes)}
    height = sum(HEIGHTS[lane] for lane in lanes)
    below = HEIGHTS["rounds"] if ruled else 0
    counts = Counter(kind for _, kind, _ in ends)
    return context.render(
        "_day.html",
        lang,
        argument=argument,
        table=table,
        hours=hours,
        lengths=HOURS,
        lanes=[(lane, tops[lane], HEIGHTS[lane]) for lane in lanes],
        height=height,
        ruled=ruled,
        bars=list(_bars(ends, strip, local, lang)),
        drawn=[_drawn(one, strip, tops, local) for one in marks],
        listed=list(reversed(marks)),
        gaps=list(_gaps(gaps, strip, days.known, below, height)),
        future=strip.x(strip.now.replace(second=0, microsecond=0)),
        ticks=[strip.since + timedelta(hours=n) for n in range(hours)],
        rounds=counts["resolved"],
        voids=counts["voided"],
        known=_known(gaps, strip, days),
        unknown=bool(ruled and gaps and gaps[0] == Interval(strip.since, strip.now)),
        restarted=days.started if days.started > strip.since else None,
    )


def _known(gaps: list[Interval], strip: _Strip, days: Days) -> datetime | None:
    """The beginning of the known part of the strip; None if all of it is known."""
    first = max(days.known, gaps[0].until if gaps and gaps[0].since == strip.since else strip.since)
    return first if first > strip.since else None


def _gaps(
    gaps: Iterable[Interval], strip: _Strip, known: datetime, below: int, height: int
) -> Iterator[tuple[float, float, int, int]]:
    """The unknown areas as x, width, y, height: gaps of the rounds, and the other lanes before `known`."""
    pieces = [(gap.since, gap.until, 0, HEIGHTS["rounds"]) for gap in gaps]
    if known > strip.since:
        pieces.append((strip.since, known, below, height - below))
    for since, until, y, high in pieces:
        yield strip.x(since), round(strip.x(until) - strip.x(since), 2), y, high


def _bars(ends: Iterable[tuple[datetime, str, str]], strip: _Strip, local: Local, lang: words.Lang) -> Iterator[Bar]:
    piece = (strip.until - strip.since) / BINS
    counts = Counter((at - strip.since) // piece for at, kind, _ in ends if kind != "corrected")
    most = max(counts.values(), default=1)
    for n, count in sorted(counts.items()):
        began = strip.since + n * piece
        height = max(round((HEIGHTS["rounds"] - 8) * count / most), 2)
        title = f"{local.minute(began)}–{local.minute(began + piece)} · {words.say(lang, 'day.rounds', n=count)}"
        yield Bar(round(n * 100 / BINS, 2), round(100 / BINS - 0.15, 2), HEIGHTS["rounds"] - height, height, title)


def _drawn(mark: Mark, strip: _Strip, tops: dict[Lane, int], local: Local) -> Drawn:
    x = strip.x(mark.began)
    width = max(strip.x(mark.ended or strip.now) - x, LEAST)
    moment = mark.ended == mark.began
    until = "" if moment else f"–{local.clock(mark.ended)}" if mark.ended else "–…"
    lasted = f" ({local.duration((mark.ended - mark.began).total_seconds())})" if mark.ended and not moment else ""
    title = f"{local.clock(mark.began)}{until}{lasted} · {mark.text}"
    return Drawn(mark, min(x, 100 - width), round(width, 2), tops[mark.lane] + 3, HEIGHTS[mark.lane] - 6, title)


def _marks(
    context: ConsoleContext,
    days: Days,
    table: str,
    strip: _Strip,
    ends: Iterable[tuple[datetime, str, str]],
    lang: words.Lang,
) -> Iterator[Mark]:
    for at, kind, round_ in ends:
        if kind != "resolved":
            text = words.say(lang, f"day.{kind}", round=round_)
            yield Mark("rounds", kind, "waits", at, at, text, f"/table/{table}/round/{round_}")
    yield from _incidents(context, table, strip, lang)
    yield from _devices(context, days, table, strip, lang)
    for one in context.incidents.silenced_during(strip.since, strip.until, MOST_SILENCES):
        if one.table == table or (not one.table and not one.device):
            what = " ".join(filter(None, (one.device, one.code))) or words.say(lang, "day.whole")
            text = words.say(lang, "day.silenced", what=what, by=one.by, why=one.why)
            over = one.until if one.until <= strip.now else None
            icon = "silenced" if one.device or one.code else "maintenance"
            yield Mark("people", "silenced", icon, max(one.began, strip.since), over, text, "/alerts")
    for act in days.actions(table, strip.since):
        if act.action not in ("silence", "silence.end") and not act.action.startswith("alert."):
            yield Mark("people", "act", "person", act.time, act.time, _did(act.user, act.action, act.detail, lang))


def _did(user: str, action: str, detail: dict[str, object], lang: words.Lang) -> str:
    """An action in words: person and action, with the command or the decided round."""
    match action:
        case "command":
            what = words.say(lang, f"command.{detail.get('command', '')}")
        case "dealer":
            key = words.say(lang, f"dealer.{detail.get('key', '')}")
            what = f"{key} · {detail['round']}" if detail.get("round") else key
        case _:
            what = words.say(lang, f"act.{action}")
    return f"{user} · {what}"


def _incidents(context: ConsoleContext, table: str, strip: _Strip, lang: words.Lang) -> Iterator[Mark]:
    """Marks of alerts and of people's actions on them. A lost device has its mark in the lane of devices."""
    which = Filter(table=table)
    found = {one.n: one for one in context.incidents.history(which, MOST_INCIDENTS)}
    for one in found.values():
        if one.ended is not None and one.ended < strip.since:
            continue
        text, _ = said(one, lang)
        to = f"/alerts#alert-{one.n}" if one.ended is None else f"/alerts?table={table}#history"
        if one.code == "round.suspended":
            text = words.say(lang, "day.suspended", round=one.round, text=text)
            yield Mark("rounds", "suspended", "waits", one.began, one.ended, text, to)
        elif one.code != "device.offline":
            named = f"{one.device}{words.say(lang, 'site.colon')}{text}"
            if one.device in text:
                named = words.sentence(text, one.device)
            yield Mark("alerts", one.severity, one.severity, one.began, one.ended, named, to)
        for step in one.steps:
            if step.time >= strip.since:
                did = words.say(lang, f"alerts.did_{step.kind}", by=step.by, whom=step.whom)
                yield Mark("people", "act", "person", step.time, step.time, f"{did} · {text}", to)


def _devices(context: ConsoleContext, days: Days, table: str, strip: _Strip, lang: words.Lang) -> Iterator[Mark]:
    edges = {context.site.rules_name} if context.site.ruleset(table) else set()
    for device in context.site.devices_of(table):
        edges.add(device.meta.edge)
        to = f"/table/{table}/device/{device.name}"
        for one in story.episodes(device.history):
            if one.kind == "offline" and (one.ended is None or one.ended >= strip.since):
                text = words.say(lang, "day.offline", device=device.name, reason=one.text)
                yield Mark("devices", "offline", "offline", one.began, one.ended, text, to)
    for again in days.restarts(edges, strip.since):
        text = words.say(lang, "day.restarted", name=again.name)
        yield Mark("devices", "restarted", "restarted", again.at, again.at, text)
    if days.started > strip.since:
        text = words.say(lang, "day.console")
        yield Mark("devices", "restarted", "restarted", days.started, days.started, text)
