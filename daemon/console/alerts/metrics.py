"""For monitoring: /metrics for Prometheus, /healthz (running) and /readyz (ready).

Each figure is read from the site on request; unknown figures are left out instead of given as zero.
Labels are names of the floor (tables, devices, edges, pools) and of webhooks, and fixed words; the site bounds how many
names of the floor it keeps.
"""

import importlib.metadata
import platform
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from daemon.console.alerts.incidents import Incidents
from daemon.console.alerts.webhooks import Webhooks
from daemon.console.auth.access import Access
from daemon.console.site.pools import Pools, PoolView
from daemon.console.site.store import BadStore, Store
from daemon.read_model import SiteState
from daemon.views import Lamp
from protocols.contract.events import Event
from protocols.contract.results import Result
from protocols.contract.topics import Wire

__all__ = ["Figures", "Metrics", "Ready", "routes"]

MOST_COUNTED = 5_000
"""Devices with their own counter; all others are counted together under "other"."""
LAMPS: tuple[Lamp, ...] = ("good", "warning", "error", "offline", "unknown")
SETTLED = timedelta(seconds=10)
PROBED_EVERY = timedelta(seconds=5)


class Figures(Struct, frozen=True):
    """Figures of the process. `lag`: seconds by which its loop was late."""

    sessions: Callable[[], int]
    streams: Callable[[], int]
    gaps: Callable[[], int]
    lag: Callable[[], float]
    disk_free: Callable[[], int]


class Metrics(Collector):
    """Counts the events of the site, and gives its present state."""

    def __init__(
        self,
        site: SiteState,
        incidents: Incidents,
        webhooks: Webhooks,
        pools: Pools,
        figures: Figures,
        now: Callable[[], datetime],
    ) -> None:
        """Begin counting."""
        self._site = site
        self._incidents = incidents
        self._webhooks = webhooks
        self._pools = pools
        self._figures = figures
        self._now = now
        self._events: dict[tuple[str, str], int] = {}
        self._replayed: dict[str, int] = {}
        self._rounds: dict[tuple[str, str], int] = {}
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        site.on_event.append(self._event)
        site.on_result.append(self._result)

    def _event(self, table: str, wire: Wire, _event: Event | None) -> None:
        key = table, wire.source.rpartition("/")[2]
        if key not in self._events and len(self._events) >= MOST_COUNTED:
            key = "other", "other"
        self._events[key] = self._events.get(key, 0) + 1
        if wire.replay:
            self._replayed[key[0]] = self._replayed.get(key[0], 0) + 1

    def _result(self, table: str, kind: str, _result: Result) -> None:
        if (table, kind) not in self._rounds and len(self._rounds) >= MOST_COUNTED:
            table = "other"
        self._rounds[table, kind] = self._rounds.get((table, kind), 0) + 1

    def text(self, accept: str) -> tuple[bytes, str]:
        """All metrics and their content type, in the format that the client prefers."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def _age(self, time: datetime) -> float:
        """The age in seconds."""
        return max((self._now() - time).total_seconds(), 0.0)

    # ---- the library's interface

    def describe(self) -> Iterable[Metric]:
        """No metric is collected at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics except those of the process."""
        info = GaugeMetricFamily("feltd_build_info", "Versions of feltd and of Python.", labels=["version", "python"])
        info.add_metric([importlib.metadata.version("feltd"), platform.python_version()], 1)
        yield info
        yield from self._broker()
        yield from self._edges()
        yield from self._devices()
        yield from self._tables()
        yield from self._of_pools()
        yield from self._incident_metrics()
        yield from self._console()

    def _broker(self) -> Iterator[Metric]:
        yield _gauge("feltd_broker_connected", "Whether the console is connected to the broker.", self._site.connected)
        yield _counter("feltd_mqtt_messages", "Messages that the console received.", self._site.messages)
        yield _counter("feltd_mqtt_refused", "Of them, those that could not be read.", self._site.refused)
        yield _gauge("feltd_replay_gaps", "Tables some of whose verdicts are missing now.", self._figures.gaps())

    def _edges(self) -> Iterator[Metric]:
        def of(name: str, text: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(name, text, labels=["edge"])

        online = of("feltd_edge_online", "Whether an edge, or the rules, is online, where that is known.")
        age = of("feltd_edge_health_age_seconds", "How old an edge's health is.")
        depth = of("feltd_edge_outbox_depth", "Events that wait for the broker.")
        wait = of("feltd_edge_outbox_age_seconds", "How long the oldest event has waited for the broker.")
        lag = of("feltd_edge_loop_lag_seconds", "By how much the edge's loop was late.")
        disk = of("feltd_edge_disk_free_bytes", "Room where the edge's journal is.")
        rss = of("feltd_edge_resident_memory_bytes", "Memory of the edge's process.")
        cpu = CounterMetricFamily("feltd_edge_cpu_seconds", "Processor time of the edge's process.", labels=["edge"])
        boots = CounterMetricFamily("feltd_edge_boots", "How often the edge has been started.", labels=["edge"])
        for name, edge in self._site.edges.items():
            if not self._site.connected or edge.online is None:
                continue
            online.add_metric([name], edge.online)
            if not edge.online or (health := edge.health) is None:
                continue
            age.add_metric([name], self._age(health.time))
            depth.add_metric([name], health.outbox.depth)
            wait.add_metric([name], health.outbox.age_s)
            lag.add_metric([name], health.loop_lag_ms / 1000)
            disk.add_metric([name], health.disk_free)
            rss.add_metric([name], health.rss)
            cpu.add_metric([name], health.cpu_s)
            boots.add_metric([name], health.boots)
        yield from (online, age, depth, wait, lag, disk, rss, cpu, boots)

    def _devices(self) -> Iterator[Metric]:
        online = GaugeMetricFamily(
            "feltd_device_online",
            "Whether a device answers, where that is known.",
            labels=["table", "device", "driver"],
        )
        lamps = GaugeMetricFamily("feltd_devices", "Devices by the colour of their lamp.", labels=["lamp"])
        counts = dict.fromkeys(LAMPS, 0)
        for (table, name), device in self._site.devices.items():
            if not device.there:
                continue
            counts[self._site.lamp(device)] += 1
            if self._site.known(device):
                online.add_metric([table, name, device.meta.driver], bool(device.online))
        for lamp, count in counts.items():
            lamps.add_metric([lamp], count)
        yield from (online, lamps)

    def _tables(self) -> Iterator[Metric]:
        events = CounterMetricFamily("feltd_events", "Events received, each once.", labels=["table", "device"])
        for (table, device), count in self._events.items():
            events.add_metric([table, device], count)
        replayed = CounterMetricFamily(
            "feltd_events_replayed", "Of them, those that came late or by replay.", labels=["table"]
        )
        for table, count in self._replayed.items():
            replayed.add_metric([table], count)
        rounds = CounterMetricFamily(
            "feltd_rounds",
            "Rounds by how they ended, or were suspended. After a start: those too that ended meanwhile.",
            labels=["table", "end"],
        )
        for (table, kind), count in self._rounds.items():
            rounds.add_metric([table, kind], count)
        for table, count in self._incidents.suspended.items():
            rounds.add_metric([table, "suspended"], count)
        age = GaugeMetricFamily("feltd_last_event_age_seconds", "How old a table's last event is.", labels=["table"])
        for table, view in self._site.tables.items():
            if view.last_event is not None and self._site.there(table):
                age.add_metric([table], self._age(view.last_event))
        yield from (events, replayed, rounds, age)

    def _incident_metrics(self) -> Iterator[Metric]:
        states = {
            (severity, state): 0 for severity in ("warning", "error") for state in ("open", "acknowledged", "silenced")
        }
        for shown in self._incidents.open(self._now()):
            one = shown.incident
            states[one.severity, one.state if shown.silence is None else "silenced"] += 1
        standing = GaugeMetricFamily("feltd_incidents", "Incidents that are not over.", labels=["severity", "state"])
        for key, count in states.items():
            standing.add_metric(key, count)
        begun = CounterMetricFamily(
            "feltd_incidents_begun", "Incidents that began, came back or were open again.", labels=["severity"]
        )
        for severity, count in self._incidents.begun.items():
            begun.add_metric([severity], count)
        waiting = GaugeMetricFamily("feltd_webhook_waiting", "Messages that wait for a receiver.", labels=["webhook"])
        age = GaugeMetricFamily("feltd_webhook_age_seconds", "How long the oldest has waited.", labels=["webhook"])
        sent = CounterMetricFamily("feltd_webhook_sent", "Messages that a receiver accepted.", labels=["webhook"])
        failed = CounterMetricFamily("feltd_webhook_failed", "Attempts that failed.", labels=["webhook"])
        dropped = CounterMetricFamily("feltd_webhook_dropped", "Messages dropped above the limit.", labels=["webhook"])
        for hook in self._webhooks.counts():
            waiting.add_metric([hook.name], hook.waiting)
            age.add_metric([hook.name], hook.age)
            sent.add_metric([hook.name], hook.sent)
            failed.add_metric([hook.name], hook.failed)
            dropped.add_metric([hook.name], hook.dropped)
        yield from (standing, begun, waiting, age, sent, failed, dropped)

    def _of_pools(self) -> Iterator[Metric]:
        """Metrics of pools, in the currency. Figures from the entries are left out until these are known."""

        def of(name: str, text: str, *more: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(name, text, labels=["pool", *more])

        level = of("feltd_jackpot_level", "The displayed amount of a pool.", "currency")
        hidden = of("feltd_jackpot_hidden", "The reserve of a pool.", "currency")
        overflow = of("feltd_jackpot_overflow", "The amount above the limit of a pool.", "currency")
        paid_in = of("feltd_jackpot_contributed", "Bets on a pool, less those returned.", "currency")
        balanced = of("feltd_jackpot_balanced", "Whether the entries of a pool agree, as far as they were received.")
        missing = of("feltd_jackpot_entries_missing", "Entries of a pool that were not received yet.")
        wins = of("feltd_jackpot_wins_waiting", "Wins that wait to be confirmed or paid.")
        age = of("feltd_jackpot_win_age_seconds", "How long the oldest win has waited.")
        lag = of("feltd_jackpot_sign_lag_seconds", "For how long a sign has not shown the amount of its pool.", "sign")
        for view in self._pools:
            labels = [view.name, view.level.currency if view.level is not None else ""]
            if view.level is not None and self._site.connected:
                level.add_metric(labels, _amount(view, view.level.amount))
            if view.last is not None:
                hidden.add_metric(labels, _amount(view, view.held("hidden")))
                overflow.add_metric(labels, _amount(view, view.held("overflow")))
                paid_in.add_metric(labels, _amount(view, -view.balances.get("players", 0) // view.unit))
                balanced.add_metric([view.name], not view.fault)
            if view.stream is not None:
                missing.add_metric([view.name], max(view.newest - view.stream.expected + 1, 0))
            if view.books is not None:
                wins.add_metric([view.name], view.waiting)
                age.add_metric([view.name], max((self._age(one.at) for one in view.open_wins), default=0.0))
            for sign in view.signs.values():
                if sign.text:
                    lag.add_metric([view.name, sign.place], self._age(sign.behind) if sign.behind is not None else 0.0)
        yield from (level, hidden, overflow, paid_in, balanced, missing, wins, age, lag)

    def _console(self) -> Iterator[Metric]:
        figures = self._figures
        yield _gauge("feltd_console_sessions", "Open sessions of people.", figures.sessions())
        yield _gauge("feltd_console_streams", "Open pages.", figures.streams())
        yield _gauge("feltd_console_loop_lag_seconds", "By how much the console's loop was late.", figures.lag())
        yield _gauge("feltd_console_disk_free_bytes", "Room where the console's store is.", figures.disk_free())


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _amount(view: PoolView, minor: int) -> float:
    return float(minor / 10 ** (view.level.decimals if view.level is not None else 2))


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)


class Ready:
    """Whether the console is ready: it has the broker, its store, and the retained messages."""

    def __init__(self, site: SiteState, incidents: Incidents, store: Store, now: Callable[[], datetime]) -> None:
        """`incidents` has the time since when the broker is connected. Raises BadStore."""
        self._site = site
        self._incidents = incidents
        self._store = store
        self._now = now
        self._probed: datetime | None = None
        self._writable = False
        store.has("CREATE TABLE IF NOT EXISTS ready (one INTEGER PRIMARY KEY, time TEXT NOT NULL) STRICT")

    def state(self) -> dict[str, bool]:
        """The result of each check."""
        connected = self._incidents.connected
        heard = any(edge.online is not None for edge in self._site.edges.values())
        settled = connected is not None and self._now() - connected >= SETTLED
        return {
            "broker": self._site.connected,
            "store": self._probe(),
            "retained": self._site.connected and (heard or settled),
        }

    def _probe(self) -> bool:
        """Probe the store by writing, at a limited rate."""
        now = self._now()
        if self._probed is None or not timedelta() <= now - self._probed < PROBED_EVERY:
            self._probed = now
            try:
                with self._store.write() as db:
                    db.execute("INSERT OR REPLACE INTO ready VALUES (1, ?)", (now.isoformat(),))
            except BadStore:
                self._writable = False
            else:
                self._writable = True
        return self._writable


def routes(access: Access, metrics_of: Metrics, ready_of: Ready) -> list[Route]:
    """The routes: /metrics as [console] metrics allows, /healthz and /readyz for all, as they reveal nothing of the
    floor.
    """

    async def metrics(request: Request) -> Response:
        if not access.may_scrape(request):
            return PlainTextResponse("a metrics token is needed\n", 401, {"www-authenticate": "Bearer"})
        text, content_type = metrics_of.text(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": content_type})

    async def alive(_request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_request: Request) -> Response:
        state = ready_of.state()
        return JSONResponse(state, 200 if all(state.values()) else 503)

    return [Route("/metrics", metrics), Route("/healthz", alive), Route("/readyz", ready)]
