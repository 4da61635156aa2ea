"""The page of fairness and wear of a table."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args
from urllib.parse import quote

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon.console.context import ConsoleContext
from daemon.console.fairness import pictures as fair_pictures, statistics
from daemon.console.fairness.charts import DECK, SPANS, Chart, Phase, Shoe, Span, Test, shown
from daemon.console.fairness.fairness import SECTOR, Fairness
from daemon.console.fairness.pictures import Bars, Circle
from daemon.console.fairness.scoreboards import RED, red_of
from daemon.console.site.store import BadStore
from daemon.words.local import Local

__all__ = ["View", "routes", "view"]

FACES: Final = tuple("123456")
# Counts below which no chart is judged: with these, five or more are expected in each place.
LEAST: Final = {"wheel": 185, "dice": 30, "cards": 260, "reads": 1000, "shuffles": 100}
# The value of the bet against fairness at which a page shows "keep an eye on it"; far below an alarm.
WATCH: Final = 20.0
PARTS: Final = (0.1, 0.5, 0.9, 0.99)
TIMES: Final = ("shuffle", *(f"phase.{phase}" for phase in get_args(Phase)))
LONGEST_WHY: Final = 200


class Verdict(Struct, frozen=True):
    """The conclusion about a chart for a technician: `kind` few, fine, watch or alarm, and its words with their values.

    `part` is the progress of the bet towards the alarm, 0 to 1 by its logarithm, `watched` the part at which `watch`
    begins.
    """

    kind: str
    key: str
    values: dict[str, Any]
    part: float = 0.0
    watched: float = 1.0


class WheelView(Struct, frozen=True):
    """A wheel: `n` spins of the span; `order` by number, `ring` in the order of the pockets."""

    device: str
    n: int
    verdict: Verdict
    test: Test | None
    chi: statistics.Chi
    rayleigh: statistics.Rayleigh
    lean: str
    sector: statistics.Sector
    first: str
    last: str
    order: Bars
    ring: Circle
    due: float


class FacesView(Struct, frozen=True):
    """Faces of all dice."""

    device: str
    n: int
    verdict: Verdict
    test: Test | None
    chi: statistics.Chi
    bars: Bars
    due: float


class CardsView(Struct, frozen=True):
    """Cards of a span: `rows` is a suit and the counts of its thirteen ranks."""

    device: str
    n: int
    verdict: Verdict | None
    test: Test | None
    rows: tuple[tuple[str, tuple[int, ...]], ...]


class ShoeView(Struct, frozen=True):
    """One shoe; `chi` where its decks are known."""

    shoe: Shoe
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    chi: statistics.Chi | None
    impossible: tuple[str, ...]


class RateView(Struct, frozen=True):
    """`bad` of `n` were misread, or failed; the true rate is between `low` and `high`, with 95 %."""

    device: str
    name: str
    bad: int
    n: int
    low: float
    high: float
    verdict: Verdict | None
    test: Test | None


class TimesView(Struct, frozen=True):
    """For each part of PARTS, the seconds that this part of the `n` times does not exceed."""

    device: str
    name: str
    n: int
    seconds: tuple[float, ...]


class View(Struct, frozen=True):
    """All charts of a table in one span."""

    span: Span
    wheels: tuple[WheelView, ...]
    dice: tuple[FacesView, ...]
    cards: tuple[CardsView, ...]
    shoes: tuple[ShoeView, ...]
    rates: tuple[RateView, ...]
    times: tuple[TimesView, ...]
    devices: tuple[tuple[str, Any], ...]


def roughly(number: float) -> int:
    """An extrapolated number, rounded up to two digits: 9 000."""
    size = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / size) * size


MOST_ODDS = 1_000_000
LEAST_ODDS, LEAST_CHANCE = 0.01, 0.0001


def odds(local: Local, value: float) -> str:
    """The e-value (what a bet has made of 1), in significant digits."""
    if value >= MOST_ODDS:
        return f"> {local.number(MOST_ODDS)}"
    if value < LEAST_ODDS:
        return f"< {local.number(LEAST_ODDS, 2)}"
    return local.number(value) if value >= 10 else local.significant(value, 2)


def chance(local: Local, p: float) -> str:
    """A p-value."""
    if p < LEAST_CHANCE:
        return f"< {local.number(LEAST_CHANCE, 4)}"
    return local.significant(p, 2) if p < 0.1 else local.number(p, 2)


def view(fair: Fairness, table: str, span: Span, red: frozenset[int] = RED) -> View:
    """The contents of the page; `red` are the red numbers of the table's wheel."""
    charts = fair.charts(table)
    named = {name: [chart for chart in charts if chart.name == name] for name in {chart.name for chart in charts}}
    tests = {chart: fair.test(chart) for chart in charts}  # before the alarms, which use these tests
    alarms = {(one.device, one.code): one for one in fair.alarms() if one.table == table}

    def verdict(chart: Chart) -> Verdict:
        test = tests[chart]
        n = test.n if test else 0
        alarm = alarms.get((chart.device, f"fairness.{chart.name}"))
        since = "fair.since_service" if fair.service(table, chart.device) else "fair.since_first"
        values: dict[str, Any] = {"n": n, "unit": f"fair.unit_{chart.name}", "since": since}
        if alarm is not None:
            return Verdict("alarm", alarm.key, alarm.values, 1.0, _watched(test))
        if test is None or n < LEAST[chart.name]:
            return Verdict("few", "fair.verdict_few", values | {"least": LEAST[chart.name]})
        part, watched = min(max(test.log_e / test.threshold, 0.0), 1.0), _watched(test)
        if test.odds >= WATCH:
            return Verdict("watch", "fair.verdict_watch", values, part, watched)
        after = fair.doubted_after(chart, test)
        key = f"fair.even_{chart.name}{'_never' if after is None else ''}"
        return Verdict("fine", key, values | ({} if after is None else {"after": roughly(after)}), part, watched)

    def faces(chart: Chart) -> FacesView:
        counts = _ordered(fair, chart, span, FACES)
        test = tests[chart]
        chi = statistics.chi_squared(counts, [1 / 6] * 6)
        drawn = fair_pictures.bars(FACES, counts, step=40)
        return FacesView(chart.device, sum(counts), verdict(chart), test, chi, drawn, sum(counts) / 6)

    def cards(chart: Chart) -> CardsView:
        counts = _ordered(fair, chart, span, DECK)
        test = tests[chart]
        return CardsView(
            chart.device, sum(counts), verdict(chart) if test is not None else None, test, _by_suit(counts)
        )

    def rate(chart: Chart) -> RateView:
        counts = fair.counts(chart, span, rated=chart.name == "reads") or fair.counts(chart, span)
        bad = counts.get("misread", 0) + counts.get("failed", 0)
        known = chart.name == "shuffles" or counts.get("read", 0)
        n = sum(counts.values()) if known else 0
        test = tests[chart]
        low, high = statistics.wilson(bad if n else 0, n)
        said = verdict(chart) if test is not None else None
        return RateView(chart.device, chart.name, bad, n, low, high, said, test)

    measured = [chart for name in TIMES for chart in named.get(name, [])]
    return View(
        span,
        tuple(_wheel(fair, chart, span, verdict(chart), tests[chart], red) for chart in named.get("wheel", [])),
        tuple(map(faces, named.get("dice", []))),
        tuple(map(cards, named.get("cards", []))),
        tuple(map(_shoe, fair.shoes(table))),
        tuple(map(rate, [*named.get("reads", []), *named.get("shuffles", [])])),
        tuple(_times(chart, times) for chart in measured if (times := fair.times(chart, span))),
        tuple((device, fair.service(table, device)) for device in _serviced(charts)),
    )


def _watched(test: Test | None) -> float:
    """The share of the way to the alarm, in logarithms, from which a page shows "keep an eye on it"."""
    return min(math.log(WATCH) / test.threshold, 1.0) if test else 1.0


def _serviced(charts: Sequence[Chart]) -> list[str]:
    """The devices whose tests can begin anew; "" for cards of an unknown device."""
    return sorted({chart.device for chart in charts if chart.name not in TIMES})


def _times(chart: Chart, times: Mapping[int, int]) -> TimesView:
    seconds = statistics.percentiles(times, PARTS)
    return TimesView(chart.device, chart.name, sum(times.values()), tuple(seconds))


def _wheel(
    fair: Fairness, chart: Chart, span: Span, verdict: Verdict, test: Test | None, red: frozenset[int]
) -> WheelView:
    wheel = fair.ring(chart.table)
    ring = _ordered(fair, chart, span, wheel)
    names = tuple(map(str, range(37)))
    counts = _ordered(fair, chart, span, names)
    rayleigh = statistics.rayleigh(ring)
    sector = statistics.fullest_sector(ring, SECTOR)
    return WheelView(
        chart.device,
        sum(ring),
        verdict,
        test,
        statistics.chi_squared(counts, [1 / 37] * 37),
        rayleigh,
        wheel[round(rayleigh.place) % 37],
        sector,
        wheel[sector.first],
        wheel[(sector.first + SECTOR - 1) % 37],
        fair_pictures.bars(names, counts, [_colour(name, red) for name in names]),
        fair_pictures.circle(
            wheel,
            ring,
            [_colour(name, red) for name in wheel],
            (sector.first, SECTOR),
            # A lean of a tenth is much: it fills half of the hub.
            (rayleigh.place, rayleigh.length * 5),
        ),
        sum(ring) / 37,
    )


def _ordered(fair: Fairness, chart: Chart, span: Span, keys: Sequence[str]) -> list[int]:
    counts = fair.counts(chart, span)
    return [counts.get(key, 0) for key in keys]


def _colour(pocket: str, red: frozenset[int]) -> str:
    return "green" if pocket == "0" else "red" if int(pocket) in red else "black"


def _by_suit(counts: Sequence[int]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((suit, tuple(counts[13 * place : 13 * place + 13])) for place, suit in enumerate("SHDC"))


def _shoe(shoe: Shoe) -> ShoeView:
    chi = None
    if shoe.decks and 0 < shoe.drawn < 52 * shoe.decks:
        spread = statistics.without_return(shoe.drawn, 52 * shoe.decks)
        chi = statistics.chi_squared(shoe.counts, [1 / 52] * 52, spread)
    return ShoeView(shoe, _by_suit(shoe.counts), chi, tuple(shoe.impossible))


# ---- the page


def routes(context: ConsoleContext, fairness: Fairness) -> list[Route]:
    """The page, and the note that a device was serviced."""

    async def page(request: Request) -> Response:
        table = request.path_params["table"]
        context.needs(request, "look", table)
        if table not in context.site.tables:
            raise HTTPException(404)
        asked = request.query_params.get("span", SPANS[0])
        span = next((one for one in SPANS if one == asked), SPANS[0])
        with contextlib.suppress(BadStore):  # the store logs it; the page shows the counts in memory
            fairness.flush()
        return context.page(
            request,
            "fair_table.html",
            table=table,
            spans=SPANS,
            ranks="A23456789TJQK",
            parts=PARTS,
            view=view(fairness, table, span, red_of(context.site.tables[table].results)),
            odds=odds,
            chance=chance,
            shown=shown,
        )

    async def serviced(request: Request) -> Response:
        table = request.path_params["table"]
        user = context.needs(request, "command", table)
        form = await context.form(request)
        device, why = form.get("device", ""), form.get("why", "").strip()[:LONGEST_WHY]
        known = {*_serviced(fairness.charts(table)), *(one.name for one in context.site.devices_of(table))}
        if device not in known or not why:
            raise HTTPException(400)
        target = f"{table}/{device}" if device else table
        context.actions.note(user.name, user.role, "serviced", target, {"why": why})
        fairness.serviced(table, device, why)
        return RedirectResponse("/devices" if form.get("to") == "/devices" else f"/table/{quote(table)}/fairness", 303)

    return [
        Route("/table/{table}/fairness", page, methods=["GET"]),
        Route("/table/{table}/fairness", serviced, methods=["POST"]),
    ]
