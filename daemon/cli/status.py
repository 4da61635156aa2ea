"""The state of a table's computer as `feltd status` shows it. Pure; status_facts measures.

A `Status` holds processes, devices, pools, and the open problems with their remedies. `text_of` writes it for a
terminal of 80 columns, in English like all commands; its JSON is described in docs/reference/status.md.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from daemon.broker.suspensions import LIST_REMEDY
from daemon.plain_text import plain
from protocols.contract.documents import Alert, DeviceMeta, DeviceState, EdgeInfo
from protocols.contract.jackpots import PoolLevel

__all__ = [
    "BrokerState",
    "Device",
    "Facts",
    "Open",
    "Pool",
    "Process",
    "Service",
    "Status",
    "Wanted",
    "status_of",
    "text_of",
]

COLUMNS = 80
DEVICE_REMEDY = "check power and cable; the device reconnects by itself"

ProcessState: TypeAlias = Literal[
    "running", "hangs", "not connected", "starting", "stopping", "restarting", "failed", "stopped", "unknown"
]
DeviceStateWord: TypeAlias = Literal["online", "offline", "unknown"]
Source: TypeAlias = Literal["broker", "journal", "none"]


# ---- measurements


class Wanted(Struct, frozen=True):
    """A process that this computer's configuration names. `name`: on the broker; empty if it has none there."""

    part: str
    name: str = ""
    needed: bool = True


class Service(Struct, frozen=True):
    """A unit of systemd, by `systemctl show`. `log`: the last warning of its log."""

    active: str
    enabled: bool = False
    since: datetime | None = None
    log: str = ""


class BrokerState(Struct, frozen=True):
    """The retained documents of the broker, by name; `beating`: processes with a heartbeat."""

    online: Mapping[str, bool] = {}
    beating: frozenset[str] = frozenset()
    infos: Mapping[str, EdgeInfo] = {}
    devices: Mapping[tuple[str, str], bool] = {}
    states: Mapping[tuple[str, str], DeviceState] = {}
    metas: Mapping[tuple[str, str], DeviceMeta] = {}
    alerts: Mapping[tuple[str, str], Alert] = {}
    levels: Mapping[str, PoolLevel] = {}
    unreadable: int = 0


class Facts(Struct, frozen=True, kw_only=True):
    """All measurements. `broker_state` is None without an answer of the broker: `broker_error` gives the reason.

    `journal`: the devices by the journal of the edge, read if `broker_state` is None; None where it cannot be read.
    """

    now: datetime
    site: str
    edge: str
    installed: str
    digest: str
    broker: str
    broker_error: str = ""
    broker_remedy: str = ""
    wanted: tuple[Wanted, ...] = ()
    devices: tuple[tuple[str, str], ...] = ()
    """The devices of this computer in the configuration, as table and name."""
    tables: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    services: Mapping[str, Service] = {}
    """The units by part; empty where systemd runs none of them."""
    broker_state: BrokerState | None = None
    journal: Mapping[tuple[str, str], DeviceState] | None = None


# ---- the status


class Process(Struct, frozen=True):
    """One process. `service` is its unit here, or empty."""

    name: str
    part: str
    service: str
    state: ProcessState
    version: str = ""
    since: datetime | None = None


class Device(Struct, frozen=True):
    """One device. `since`: when it came online or was lost; `source`: the origin of this information."""

    table: str
    name: str
    state: DeviceStateWord
    since: datetime | None = None
    driver: str = ""
    model: str = ""
    firmware: str = ""
    source: Source = "none"


class Open(Struct, frozen=True):
    """An open problem for a person. `place`: a process, `table`, `table/device`, `jackpot POOL` or `broker`."""

    severity: str
    place: str
    code: str
    text: str
    remedy: str
    since: datetime | None = None


class Pool(Struct, frozen=True):
    """The line of a jackpot's pool. `amount` in minor units; None while unknown."""

    name: str
    amount: int | None = None
    currency: str = ""
    decimals: int = 0
    waiting: int = 0
    proposals: int = 0


class Elsewhere(Struct, frozen=True):
    """The counts of other computers' processes, devices and alerts that were left out."""

    processes: int = 0
    devices: int = 0
    alerts: int = 0


class Status(Struct, frozen=True, kw_only=True):
    """Everything; `good`: nothing is open."""

    at: datetime
    site: str
    edge: str
    installed: str
    broker: str
    broker_answers: bool
    good: bool
    open: tuple[Open, ...]
    processes: tuple[Process, ...]
    devices: tuple[Device, ...]
    pools: tuple[Pool, ...]
    elsewhere: Elsewhere = Elsewhere()


def status_of(facts: Facts, *, everything: bool = False) -> Status:
    """The state of this computer; with `everything` also of others, from the broker."""
    broker_state = facts.broker_state or BrokerState()
    processes = [_process(one, facts) for one in facts.wanted]
    own = {one.name for one in facts.wanted}
    others = [_other(name, broker_state) for name in sorted(broker_state.online) if name not in own]
    keys = list(facts.devices)
    other_devices = sorted(set(broker_state.devices) - set(keys))
    alerts = {key: one for key, one in sorted(broker_state.alerts.items()) if everything or key[0] in facts.tables}
    elsewhere = Elsewhere()
    if everything:
        processes += others
        keys += other_devices
    else:
        elsewhere = Elsewhere(len(others), len(other_devices), len(broker_state.alerts) - len(alerts))
    states = {one.name: one.state for one in processes} | {one.name: one.state for one in others}
    devices = [_device(key, facts, states) for key in keys]
    found = [
        *_of_broker(facts, broker_state),
        *(line for one in processes for line in _of_process(one, facts, needed=_needed(one, facts))),
        *(line for one in devices for line in _of_device(one, facts, states, alerts)),
        *(_of_alert(table, alert) for (table, _), alert in alerts.items()),
    ]
    return Status(
        at=facts.now,
        site=facts.site,
        edge=facts.edge,
        installed=facts.installed,
        broker=facts.broker,
        broker_answers=facts.broker_state is not None,
        good=not found,
        open=tuple(sorted(found, key=lambda one: one.severity != "error")),
        processes=tuple(processes),
        devices=tuple(devices),
        pools=tuple(_pool(name, broker_state) for name in facts.pools),
        elsewhere=elsewhere,
    )


def _needed(process: Process, facts: Facts) -> bool:
    names = {one.name or one.part: one.needed for one in facts.wanted}
    return names.get(process.name, True)


def _process(wanted: Wanted, facts: Facts) -> Process:
    broker_state = facts.broker_state or BrokerState()
    service = facts.services.get(wanted.part)
    info = broker_state.infos.get(wanted.name, EdgeInfo())
    connected = wanted.name in broker_state.beating and broker_state.online.get(wanted.name, False)
    state: ProcessState
    if connected:
        state = "running"
    elif service is not None and service.active != "active":
        state = _STATES.get(service.active, "stopped")
    elif broker_state.online.get(wanted.name, False):
        state = "hangs"
    elif service is not None:
        state = "running" if facts.broker_state is None or not wanted.name else "not connected"
    elif facts.broker_state is None or not wanted.name:
        state = "unknown"
    else:
        state = "stopped"
    since = service.since if service is not None else None
    running = state in {"running", "hangs"}
    return Process(
        wanted.name or wanted.part,
        wanted.part,
        f"feltd-{wanted.part}" if service is not None else "",
        state,
        info.version if running else "",
        (info.started if running and connected else None) or since,
    )


_STATES: Mapping[str, ProcessState] = {
    "auto-restart": "restarting",
    "activating": "starting",
    "deactivating": "stopping",
    "reloading": "running",
    "failed": "failed",
    "inactive": "stopped",
}


def _other(name: str, broker_state: BrokerState) -> Process:
    """A process of another computer, known only from the broker."""
    info = broker_state.infos.get(name, EdgeInfo())
    part = "rules" if info.rules else "edge" if info.journal else "jackpots"
    online = broker_state.online[name]
    state: ProcessState = "running" if online and name in broker_state.beating else "hangs" if online else "stopped"
    return Process(name, part, "", state, info.version, info.started if online else None)


def _device(key: tuple[str, str], facts: Facts, states: Mapping[str, ProcessState]) -> Device:
    broker_state = facts.broker_state
    if broker_state is None:
        read = (facts.journal or {}).get(key)
        # The journal of a stopped edge does not change.
        if read is None or states.get(facts.edge) not in {"running", "unknown"}:
            return Device(*key, "unknown")
        return Device(*key, "online" if read.online else "offline", read.since, source="journal")
    meta, state = broker_state.metas.get(key, DeviceMeta()), broker_state.states.get(key, DeviceState())
    serves = states.get(meta.edge or facts.edge) == "running"
    word: DeviceStateWord = "unknown"
    if serves and key in broker_state.devices:
        word = "online" if broker_state.devices[key] else "offline"
    since = state.since if word != "unknown" else None
    return Device(*key, word, since, meta.driver, meta.model, meta.firmware, "broker")


def _pool(name: str, broker_state: BrokerState) -> Pool:
    level = broker_state.levels.get(name)
    if level is None:
        return Pool(name)
    return Pool(name, level.amount, level.currency, level.decimals, level.waiting, len(level.proposals))


# ---- open problems


def _of_broker(facts: Facts, broker_state: BrokerState) -> Iterator[Open]:
    if facts.broker_state is None:
        known = " What follows is from systemd and the journal of the edge." if facts.services else ""
        text = f"{facts.broker}: {facts.broker_error}.{known}"
        yield Open("error", "broker", "broker.lost", text, facts.broker_remedy)
    if broker_state.unreadable:
        text = f"{broker_state.unreadable} documents on the broker cannot be read"
        remedy = "use the same version of feltd on all computers; else see which user of the broker publishes them"
        yield Open("warning", "broker", "broker.unreadable", text, remedy)


def _of_process(one: Process, facts: Facts, *, needed: bool) -> Iterator[Open]:
    service = facts.services.get(one.part) if one.service else None
    why = f"journalctl -n 20 -u {one.service}" if one.service else "see its log"
    said = f"; the last warning of its log: {service.log}" if service is not None and service.log else ""
    start = f"systemctl start {one.service}" if one.service else f"start feltd {one.part} on its computer"
    place, restart = one.name, start.replace(" start ", " restart ")
    match one.state:
        case "hangs":
            text = f"{one.name} is connected and sends no heartbeat{said}"
            yield Open("error", place, "process.hangs", text, f"{why}; then {restart}", one.since)
        case "not connected":
            text = f"{one.name} runs and is not connected to the broker{said}"
            yield Open("error", place, "process.not_connected", text, f"{why}; feltd doctor tries its user", one.since)
        case "failed" | "restarting":
            text = f"{one.name} does not start: systemd reports {one.state}{said}"
            yield Open("error", place, "process.failed", text, f"{why} shows why; feltd check", one.since)
        case "starting" | "stopping":
            text = f"{one.name} is {one.state}{said}"
            yield Open("warning", place, f"process.{one.state}", text, f"feltd status, in a minute; {why}", one.since)
        case "stopped" if needed:
            text = f"{one.name} does not run{said}"
            yield Open("error", place, "process.stopped", text, f"{start}; {why}", one.since)
        case _:
            pass
    info = facts.broker_state.infos.get(one.name) if facts.broker_state is not None else None
    if info is None or one.state != "running":
        return
    for table, reason in sorted(info.suspended.items()):
        text = f"{one.name} does not serve {table}: the broker refuses it: {reason}"
        yield Open("error", table, "table.refused", text, LIST_REMEDY)
    if one.service and info.version != facts.installed:
        text = f"{one.name} runs version {info.version}, and {facts.installed} is installed"
        yield Open("warning", place, "process.old_version", text, f"systemctl restart {one.service} between two rounds")
    if one.service and info.config != facts.digest:
        text = f"{one.name} uses another configuration than the file that was read"
        yield Open("warning", place, "process.old_configuration", text, "feltd check; then feltd reload")


def _of_device(
    one: Device,
    facts: Facts,
    states: Mapping[str, ProcessState],
    alerts: Mapping[tuple[str, str], Alert],
) -> Iterator[Open]:
    place = f"{one.table}/{one.name}"
    key = one.table, one.name
    if facts.broker_state is None:
        state = (facts.journal or {}).get(key, DeviceState())
        if one.state != "unknown":
            for fault in state.faults:
                yield Open(fault.severity, place, fault.code, fault.text, fault.remedy, fault.since)
    else:
        state = facts.broker_state.states.get(key, DeviceState())
    alerted = {(table, alert.device, alert.severity) for (table, _), alert in alerts.items()}
    told = (one.table, one.name, "error") in alerted
    if one.state == "offline" and not told:
        text = f"does not answer: {state.reason}" if state.reason else "does not answer"
        yield Open("error", place, "device.offline", text, DEVICE_REMEDY, one.since)
    if (
        one.source == "broker"
        and key not in (facts.broker_state or BrokerState()).devices
        and states.get(facts.edge) == "running"
    ):
        yield Open("error", place, "device.unserved", "the edge does not serve it", "feltd check; then feltd reload")


def _of_alert(table: str, alert: Alert) -> Open:
    place = f"{table}/{alert.device}" if alert.device else table
    text = f"{alert.text} ({alert.count} times)" if alert.count > 1 else alert.text
    return Open(alert.severity, place, alert.code, text, alert.remedy, alert.since)


# ---- the text


def text_of(status: Status) -> str:
    """For people, at most 80 columns wide."""
    many = len(status.open)
    count = "nothing is open" if status.good else "1 thing is open" if many == 1 else f"{many} things are open"
    lines = [*_wrapped(f"{status.site}, {status.edge}, {_day(status.at)} {_clock(status.at)}: {count}", "", "")]
    if status.open:
        lines += ["", "OPEN"]
        for one in status.open:
            lines += _open_lines(one, status.at)
    lines += ["", f"PROCESSES (feltd {_cut(status.installed, 40)} is installed)"]
    lines += [_row(_process_cells(one, status.at), (20, 14, 22, 0)) for one in status.processes]
    if status.devices:
        by = "" if status.broker_answers else " (by the journal of the edge)"
        by = by if any(one.source != "none" for one in status.devices) or status.broker_answers else " (not known)"
        lines += ["", f"DEVICES{by}"]
        lines += [_row(_device_cells(one, status.at), (12, 16, 9, 0)) for one in status.devices]
    if status.pools:
        lines += ["", "POOLS"]
        lines += [_row(_pool_cells(one), (20, 0)) for one in status.pools]
    lines += _elsewhere_lines(status.elsewhere)
    return "\n".join(lines)


def _open_lines(one: Open, now: datetime) -> Iterator[str]:
    since = f" (since {_since(one.since, now)})" if one.since else ""
    mark = "ERROR  " if one.severity == "error" else "warning"
    yield from _wrapped(f"{one.place}: {one.text}{since}", f"  {mark} ", " " * 10)
    if one.remedy:
        yield from _wrapped(f"To do: {one.remedy}", " " * 10, " " * 10)


def _process_cells(one: Process, now: datetime) -> tuple[str, ...]:
    state = one.state if one.state == "running" else one.state.upper()
    name = one.name if one.name == one.part else f"{one.part} {one.name}"
    return name, state, one.version, f"since {_since(one.since, now)}" if one.since else ""


def _device_cells(one: Device, now: datetime) -> tuple[str, ...]:
    state = one.state if one.state == "online" else one.state.upper()
    since = f"since {_since(one.since, now)}" if one.since else ""
    model = " ".join(word for word in (one.model or one.driver, one.firmware) if word)
    return one.table, one.name, state, "  ".join(word for word in (since, model) if word)


def _pool_cells(one: Pool) -> tuple[str, ...]:
    if one.amount is None:
        return one.name, "not known"
    units, parts = divmod(one.amount, 10**one.decimals)
    amount = f"{units}.{parts:0{one.decimals}}" if one.decimals else str(units)
    waiting = "no win waits" if not one.waiting else f"{_number(one.waiting, 'win')} to pay or to confirm"
    proposals = f", {_number(one.proposals, 'change')} for a second person" if one.proposals else ""
    return one.name, f"{one.currency} {amount}, {waiting}{proposals}"


def _elsewhere_lines(one: Elsewhere) -> Iterator[str]:
    counted = ((one.processes, "process"), (one.devices, "device"), (one.alerts, "alert"))
    said = ", ".join(_number(number, what) for number, what in counted if number)
    if said:
        yield ""
        yield from _wrapped(f"Of other computers: {said}; feltd status --all shows them.", "", "")


def _number(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}es" if what.endswith("s") else f"{number} {what}s"


def _row(cells: Iterable[str], widths: Iterable[int]) -> str:
    """A line of a table; the last cell has the rest of the width."""
    line = "  "
    for cell, width in zip(cells, widths, strict=True):
        room = width or COLUMNS - len(line)
        line += f"{_cut(cell, room):{width}} "
    return line.rstrip()


def _cut(text: str, width: int) -> str:
    text = plain(" ".join(text.split()))
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        plain(" ".join(text.split())), COLUMNS, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )


def _day(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d}"


def _clock(at: datetime) -> str:
    return f"{at.astimezone():%H:%M:%S}"


def _since(at: datetime, now: datetime) -> str:
    """The time of day; with the date where it is not today, by this computer's clock."""
    return _clock(at) if _day(at) == _day(now) else f"{_day(at)} {at.astimezone():%H:%M}"
