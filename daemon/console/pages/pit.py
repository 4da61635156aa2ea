"""The pit: a tile for each table, the worst first; the same on a wall; and the styleguide, for developers."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console import shapes
from daemon.console.alerts.records import Incident, Shown
from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Gone, Viewer
from daemon.console.pages.alerts import said
from daemon.console.site.signs import sign_of
from daemon.views import DeviceView, Lamp
from daemon.words import words
from daemon.words.local import Local
from protocols.contract.results import Result

__all__ = ["fragments", "routes", "wall_page"]

State: TypeAlias = Literal["offline", "error", "unknown", "waits", "warning", "silenced", "good"]
WORST: tuple[State, ...] = ("offline", "error", "unknown", "waits", "warning", "silenced", "good")
RANK: dict[State, int] = {"offline": 0, "error": 0, "unknown": 1, "waits": 2, "warning": 3, "silenced": 4, "good": 5}
"""The class of severity by which tiles are sorted."""
SUSPENDED = "round.suspended"
CHIPS = 8
FILTERS = ("area", "state", "game", "q")


class Why(Struct, frozen=True):
    """The text of a tile in place of the last results. `until`: of a silence; `since`: of an incident."""

    text: str
    device: str = ""
    since: datetime | None = None
    until: datetime | None = None
    by: str = ""
    remedy: str = ""


class _Chips:
    """The last results of each table as chips, cached: a tile is rendered for each phase, but results come once a
    round.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, words.Lang], tuple[Result, tuple[shapes.Chip, ...]]] = {}

    def of(self, table: str, results: Sequence[Result], lang: words.Lang) -> tuple[shapes.Chip, ...]:
        """The oldest first."""
        if not results:
            return ()
        known = self._known.get((table, lang))
        if known is None or known[0] is not results[-1]:
            chips = tuple(shapes.chip(result, lang) for result in list(results)[-CHIPS:])
            self._known[table, lang] = known = results[-1], chips
        return known[1]


# ---- fragments


def fragments(context: ConsoleContext) -> tuple[Fragment, ...]:
    """`tile/<table>`, and `counts` of open incidents for the head of every page."""

    chips = _Chips()

    def tile(table: str, viewer: Viewer) -> str:
        site = context.site
        if table not in site.tables:
            raise KeyError(table)
        if site.connected and not site.there(table):
            raise Gone(table)
        values = _tile_values(context, table, viewer.lang)
        results = chips.of(table, site.tables[table].results, viewer.lang)
        return context.render("_tile.html", viewer.lang, table=table, chips=results, **values)

    def counts(argument: str, viewer: Viewer) -> str:
        if argument:
            raise KeyError(argument)
        open_ = [one for one in context.incidents.open(context.now()) if _sees(viewer, one.incident)]
        loud = [one.incident for one in open_ if one.silence is None]
        return context.render(
            "_counts.html",
            viewer.lang,
            error=sum(one.severity == "error" for one in loud),
            warning=sum(one.severity == "warning" for one in loud),
            silenced=len(open_) - len(loud),
            to_do=sum(one.state == "open" for one in loud),
            faults=" ".join(str(one.n) for one in loud if one.state == "open" and one.severity == "error"),
        )

    return (
        Fragment("tile", lambda table: (f"tile/{table}", "broker", "present"), tile, lambda table: table, plain=True),
        Fragment("counts", lambda _: ("alerts", "broker"), counts),
    )


def _sees(viewer: Viewer, one: Incident) -> bool:
    return not one.table or viewer.may_see(one.table)


def _tile_values(context: ConsoleContext, table: str, lang: words.Lang) -> dict[str, Any]:
    site = context.site
    view = site.tables[table]
    lamps = [(device, site.lamp(device)) for device in site.devices_of(table)]
    open_ = context.incidents.open(context.now(), table)
    ruleset = site.ruleset(table)
    sure = not ruleset or site.rules() is True
    state = _state(context, table, lamps, open_, sure=sure)
    return {
        "n": list(site.tables).index(table),
        # Without the broker no state is known: the tiles keep their order.
        "rank": RANK[state] if site.connected else "",
        "state": state,
        "why": _why(context, table, state, lamps, open_, lang),
        "ruleset": ruleset,
        "area": _area(context, table),
        "phase": view.phase if sure else "unknown",
        "sign": sign_of(site, table),
        "whole": lambda minor: Local(lang, context.zone).number(Decimal(minor).scaleb(-context.config.site.decimals)),
        "lamps": sorted(lamps, key=lambda one: WORST.index(one[1])),
    }


def _state(
    context: ConsoleContext,
    table: str,
    lamps: Sequence[tuple[DeviceView, Lamp]],
    open_: Sequence[Shown],
    *,
    sure: bool,
) -> State:
    """The worst severity that is not silenced. `sure`: whether the rules are online."""
    if not lamps:
        return "unknown"
    loud = [kind for device, kind in lamps if not _silent(context, device, kind)]
    found: list[State] = ["good", *loud]
    hidden = len(loud) < len(lamps) or context.incidents.in_maintenance(table, context.now()) is not None
    for shown in open_:
        if shown.silence is not None:
            hidden = True
        elif shown.incident.code == SUSPENDED:
            found.append("waits")
        else:
            found.append(shown.incident.severity)
    if hidden:
        found.append("silenced")
    worst = min(found, key=WORST.index)
    return "unknown" if not sure and RANK[worst] > RANK["unknown"] else worst


def _silent(context: ConsoleContext, device: DeviceView, kind: Lamp) -> bool:
    """Whether the faults of a device are silenced for maintenance: then they do not colour its table."""
    match kind:
        case "offline":
            codes = ["device.offline"]
        case "error" | "warning":
            codes = [fault.code for fault in device.state.faults]
        case _:
            return False
    return context.incidents.silent(device.table, device.name, codes, context.now())


def _why(
    context: ConsoleContext,
    table: str,
    state: State,
    lamps: Sequence[tuple[DeviceView, Lamp]],
    open_: Sequence[Shown],
    lang: words.Lang,
) -> Why | None:
    """The reason of a tile's state; None where the state is good."""
    match state:
        case "good":
            return None
        case "silenced":
            whole = context.incidents.in_maintenance(table, context.now())
            hiding = [shown.silence for shown in open_ if shown.silence is not None]
            one = whole or next(iter(hiding), None)
            device = "" if one is None else one.device
            return Why(one.why if one else words.say(lang, "pit.silenced"), device, until=one.until if one else None)
        case _:
            for shown in open_:
                if shown.silence is None:
                    one_ = shown.incident
                    by = one_.by if one_.state == "acknowledged" else ""
                    text, remedy = said(one_, lang)
                    return Why(text, one_.device, one_.began, by=by, remedy=remedy)
            if state == "unknown":
                return Why(_unknown(context, lamps, lang))
            device_, kind = min(lamps, key=lambda one: WORST.index(one[1]))
            return Why(words.say(lang, f"lamp.{kind}"), device_.name)


def _unknown(context: ConsoleContext, lamps: Sequence[tuple[DeviceView, Lamp]], lang: words.Lang) -> str:
    """The missing process without which the table's state is unknown."""
    site = context.site
    if not site.connected:
        return words.say(lang, "pit.no_broker")
    edges = {device.meta.edge for device, _ in lamps}
    away = sorted(name for name in edges if name and not site.is_online(name))
    if away:
        return words.say(lang, "pit.away", name=", ".join(away))
    if not lamps:
        return words.say(lang, "pit.no_devices")
    if site.rules() is not True:
        return words.say(lang, "pit.no_rules")
    return words.say(lang, "worst.unknown")


def _area(context: ConsoleContext, table: str) -> str:
    known = context.site.configured.get(table)
    return known.area if known is not None else ""


# ---- pages


def routes(context: ConsoleContext) -> list[Route]:
    """The pit; the styleguide where the configuration enables it. The wall is at /wall, see pages/access.py."""

    async def pit(request: Request) -> Response:
        return _page(context, request, "pit.html")

    async def styleguide(request: Request) -> Response:
        context.needs(request, "look")
        return context.page(request, "styleguide.html", icons=shapes.icon_names(), states=WORST)

    made = [Route("/", pit)]
    return [*made, Route("/styleguide", styleguide)] if context.config.console.styleguide else made


def wall_page(context: ConsoleContext, request: Request) -> Response:
    """The pit for a screen on a wall."""
    return _page(context, request, "wall.html")


def _page(context: ConsoleContext, request: Request, template: str) -> Response:
    """The tables in the order of their severity now; the page keeps it."""
    viewer = context.viewer(request)
    site = context.site
    tables = [table for table in site.tables if viewer.may_see(table) and site.there(table)]

    def rank(table: str) -> int:
        lamps = [(device, site.lamp(device)) for device in site.devices_of(table)]
        ruleset = site.ruleset(table)
        sure = not ruleset or site.rules() is True
        open_ = context.incidents.open(context.now(), table)
        return RANK[_state(context, table, lamps, open_, sure=sure)] if site.connected else 0

    games = {ruleset for table in tables if (ruleset := site.ruleset(table))}
    return context.page(
        request,
        template,
        tables=sorted(tables, key=rank),
        areas=sorted({area for table in tables if (area := _area(context, table))}),
        games=sorted(games),
        states=("trouble", "error", "unknown", "waits", "warning", "silenced", "good"),
        asked={name: request.query_params.get(name, "")[:100] for name in FILTERS},
    )
