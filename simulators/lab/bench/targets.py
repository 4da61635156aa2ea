"""The targets of `feltd bench`, and whether a run met them: ratios to the run's yardsticks, delays that
people see, events a second of a core, and memory.

Figures of two runs are not compared. A target without its yardstick in the run is "not measured".
"""

from collections.abc import Iterator

from msgspec import Struct

from simulators.lab.bench.spine import Figure, Report

__all__ = ["Target", "targets", "targets_markdown"]

EVENT_P50 = {2: 1.4, 100: 1.5, 1000: 1.6}
EVENT_P99 = 1.5
"""Delay from wire to event, as a multiple of the durable C bridge's, by lines a second."""
RESULT_P50 = {2: 1.75, 100: 1.7, 1000: 1.65}
RESULT_P99 = 1.7
"""Delay from wire to result, as a multiple of that from wire to event of the same edge."""
PER_CORE = {"edge": 25_000, "rules": 22_000}
"""Events a second of one core, by CPU time in a burst."""
RESIDENT_MIB = 33.0
START_MS = 150.0
BUSY_P99_MS, BUSY_TIMES = 10.0, 3.0
"""Under load: p99 in ms, and its multiple of the same run's p99 without load."""


class Target(Struct, frozen=True):
    """`measured`: None if the run left it out."""

    what: str
    limit: float
    measured: float | None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """None: not measured."""
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def targets(report: Report) -> list[Target]:
    """All of them, in the order of the page."""
    of = {(one.side, one.what, one.rate): one for one in report.figures}
    found = [*_latency(of)]
    for process, limit in PER_CORE.items():
        burst = of.get(("rules", "event", 0))
        cpu = burst.cpu_us.get(process) if burst else None
        found.append(Target(f"{process}: events/s of a core", limit, round(1e6 / cpu) if cpu else None, at_least=True))
    found.append(Target("memory of an edge with three devices, MiB", RESIDENT_MIB, report.resident_mib or None))
    edge = next((one.first_ms for one in report.begun if one.side == "edge"), None)
    found.append(Target("start of the edge to its first event, ms", START_MS, edge))
    for busy in report.busy:
        if not busy.nice:
            continue
        name = f"wire to {busy.what} under a load of {busy.loads}, p99"
        found.append(Target(f"{name}, ms", BUSY_P99_MS, busy.p99))
        found.append(Target(f"{name}, times that of an idle machine", BUSY_TIMES, _times(busy.p99, busy.quiet_p99)))
    return found


def _latency(of: dict[tuple[str, str, int], Figure]) -> Iterator[Target]:
    for rate, limit in EVENT_P50.items():
        mine, yard = of.get(("edge", "event", rate)), of.get(("durable", "event", rate))
        for which, most in (("p50", limit), ("p99", EVENT_P99)):
            yield Target(
                f"wire to event at {rate}/s, {which}, times the durable C bridge", most, _of(which, mine, yard)
            )
    for rate, limit in RESULT_P50.items():
        mine, yard = of.get(("rules", "result", rate)), of.get(("rules", "event", rate))
        for which, most in (("p50", limit), ("p99", RESULT_P99)):
            yield Target(f"wire to result at {rate}/s, {which}, times wire to event", most, _of(which, mine, yard))


def _of(which: str, mine: Figure | None, yard: Figure | None) -> float | None:
    return _times(getattr(mine, which), getattr(yard, which)) if mine and yard else None


def _times(mine: float, yard: float) -> float:
    return round(mine / yard, 2)


def targets_markdown(report: Report) -> str:
    """A table with a verdict in each row."""
    lines = ["| target | limit | measured | |", "|---|---|---|---|"]
    for one in targets(report):
        verdict = {True: "met", False: "**not met**", None: "not measured"}[one.met]
        limit = f"{'at least' if one.at_least else 'at most'} {one.limit:,g}"
        lines.append(f"| {one.what} | {limit} | {'-' if one.measured is None else f'{one.measured:,g}'} | {verdict} |")
    return "\n".join(lines)
