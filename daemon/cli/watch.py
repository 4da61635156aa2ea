"""`feltd watch`: a line for each event and each verdict, as `journalctl -f` shows a log.

With `since` the lines begin with the rows of this computer's journals; then the broker is followed.
"""

import asyncio
import os
import re
import shutil
import sqlite3
import textwrap
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import click
import msgspec
from msgspec import Struct

from daemon.broker.connection import stay_connected
from daemon.broker.session import UNREADABLE, Message, Session
from daemon.cli.common import file_trouble
from daemon.config.model import Config
from daemon.journal.export import Written, export
from daemon.plain_text import plain
from daemon.words import words
from protocols.contract.reasons import Reason
from protocols.contract.results import ENDS, BadRound, Irregularity, decode_end
from protocols.contract.topics import BadEnvelope, Wire, decode_wire, table_topic

__all__ = [
    "SEVERITIES",
    "BadSince",
    "Line",
    "Severity",
    "Shown",
    "in_words",
    "line_of",
    "round_number",
    "since_of",
    "watch",
]

Severity: TypeAlias = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
COLOURS: Mapping[Severity, str | None] = {"info": None, "warning": "yellow", "error": "red"}
WARNINGS = frozenset(
    (
        *("events.missed", "card.unreadable", "card.jammed", "card.damaged", "card.exposed", "deck.miscounted"),
        *("shuffle.failed", "spin.voided", "spin.missed", "round.voided", "dice.disturbed", "deal.corrected"),
        *("voided", "corrected", "irregular"),
    )
)
"""The types that deserve attention; a fault has its own severity."""
ERRORS = frozenset(("device.offline", "suspended"))
LEAST_PLACE, MOST_PLACE = 12, 20
NARROWEST = 40
REMEMBERED = 10_000
_DATE = re.compile(r"\d{4}-\d\d-\d\d:")
_AGO = re.compile(r"(\d{1,6}) ?([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class BadSince(ValueError):
    """`since` is not a time, or a journal cannot be read. The message gives the remedy."""


class Line(Struct, frozen=True):
    """One event or verdict in words. `place` is the table, or "table/device"."""

    at: datetime
    place: str
    severity: Severity
    text: str
    result: bool = False


class _Round(Struct, frozen=True):
    """The details of verdicts other than results."""

    round: str = ""
    reason: Reason | None = None
    remedy: Reason | None = None
    irregularity: Irregularity | None = None


# ---- words


def round_number(round_: str) -> str:
    """The name of a round without its table and date: "124", "2:17"."""
    return _DATE.sub("", round_.partition(":")[2])


def line_of(topic: str, wire: Wire) -> Line:
    """The line of one message; `topic` is its topic, or its source in a journal."""
    names = topic.split("/")
    device = names[6] if names[5:6] == ["device"] and len(names) > 6 else ""
    if device:
        severity, text = in_words(wire)
        return Line(wire.time, f"{names[4]}/{device}", severity, text + _again(wire))
    severity = "error" if wire.type in ERRORS else "warning" if wire.type in WARNINGS else "info"
    return Line(wire.time, names[4], severity, _verdict(wire) + _again(wire), wire.type in ENDS)


def _again(wire: Wire) -> str:
    return " (replay)" if wire.replay else ""


def in_words(wire: Wire) -> tuple[Severity, str]:
    """The severity and the text of an event of a device."""
    try:
        data = msgspec.json.decode(wire.data, type=dict[str, Any])
    except UNREADABLE:
        return "warning", f"{wire.type}: cannot be read: {bytes(wire.data)[:60].decode(errors='replace')}"
    code, text = str(data.get("code", "")), str(data.get("text", ""))
    match wire.type:
        case "device.faulted":
            severity: Severity = "error" if data.get("severity") == "error" else "warning"
            remedy = f". To do: {data['remedy']}" if data.get("remedy") else ""
            return severity, f"{'fault' if severity == 'error' else 'warning'}: {text}{remedy}"
        case "device.recovered":
            return "info", f"over: {words.catalog('en').get(f'fault.{code}.text', code)}"
        case "device.online":
            known = " ".join(str(data[key]) for key in ("model", "firmware") if data.get(key))
            missed = "" if data.get("continuous") else "; events may have been missed"
            return "info", f"online{f' ({known})' if known else ''}{missed}"
        case "device.offline":
            return "error", f"offline: {data.get('reason', '')}"
        case "device.commanded":
            done = data.get("status") == "done"
            said = f"command {data.get('command')}: {data.get('status')}"
            return "info" if done else "warning", f"{said}, {text}" if text else said
        case "machine.reported" if text:
            return "info", f"machine: {text} ({code})"
        case _:
            said = _values(data)
            kind = wire.type.replace(".", " ").replace("_", " ")
            return "warning" if wire.type in WARNINGS else "info", f"{kind}: {said}" if said else kind


def _values(data: Mapping[str, Any]) -> str:
    """A single value is shown without its name, several values with theirs."""
    values = {key: value for key, value in data.items() if value not in ("", None, [], {}, False)}
    late = values.pop("age_ms", 0)
    values.pop("overtaken", None)
    if isinstance(round_ := values.get("round"), str):
        values["round"] = round_number(round_)
    if len(values) == 1:
        key, value = next(iter(values.items()))
        said = _name(key) if value is True else _value(value)
    else:
        said = ", ".join(
            _name(key) if value is True else f"{_name(key)} {_value(value)}" for key, value in values.items()
        )
    return f"{said}{', ' if said else ''}{late / 1000:g} s late" if isinstance(late, int) and late else said


def _name(key: str) -> str:
    return key.replace("_", " ")


def _value(value: object) -> str:
    match value:
        case dict():
            return "; ".join(f"{_name(str(key))} {_value(one)}" for key, one in value.items())
        case list():
            return " ".join(map(_value, value))
        case _:
            return str(value)


def _verdict(wire: Wire) -> str:
    try:
        if wire.type in ENDS:
            result = decode_end(wire.data)
            number = round_number(result.round)
            said = result.announcements.get("en", "")
            if result.void is not None:
                said = f"void: {words.reason('en', result.void.reason)}"
            return f"round {number}{' corrected' if wire.type == 'corrected' else ''}: {said}"
        one = msgspec.json.decode(wire.data, type=_Round)
    except (BadRound, *UNREADABLE) as error:
        return f"{wire.type}: cannot be read: {error}"
    number = round_number(one.round)
    match wire.type:
        case "opened":
            return f"round {number} opens"
        case "bets-closed":
            return f"round {number}: no more bets"
        case "suspended":
            remedy = f". To do: {words.reason('en', one.remedy)}" if one.remedy else ""
            return f"round {number} suspended: {words.reason('en', one.reason)}{remedy}"
        case "irregular" if one.irregularity is not None:
            return f"irregular: {words.noted('en', one.irregularity)}"
        case _:
            return f"{wire.type} {number}".rstrip()


# ---- the selection


class Shown(Struct, frozen=True):
    """A selection. Empty `tables` selects all; `device` needs one table; `since` reads the journals first."""

    tables: tuple[str, ...] = ()
    device: str = ""
    severity: Severity = "info"
    since: datetime | None = None
    as_json: bool = False


def since_of(text: str, now: datetime) -> datetime:
    """The instant of "10m", "2h", or of a date and time, local where it names no zone. Raises BadSince."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadSince(f"{text}: write 30s, 10m, 2h, 1d or a time such as 2026-11-23T20:00") from error


def _in_columns(line: Line, place: int, columns: int | None) -> str:
    """The line, wrapped and indented where it is longer than `columns`; None: not wrapped."""
    head = f"{line.at.astimezone():%H:%M:%S} {plain(line.place):{place}} "
    text = plain(" ".join(line.text.split()))
    if columns is None or len(head) + len(text) <= columns:
        return head + text
    wide = max(columns, NARROWEST)
    return textwrap.fill(text, wide, initial_indent=head, subsequent_indent=" " * min(len(head), wide // 2))


class _Teller:
    """Prints each message once."""

    def __init__(
        self, config: Config, shown: Shown, say: Callable[[str], None], columns: Callable[[], int | None]
    ) -> None:
        places = [len(f"{table.name}/{device.name}") for table in config.table for device in table.device]
        self._place = min(max(places, default=0), MOST_PLACE) or LEAST_PLACE
        self._shown = shown
        self._say = say
        self._columns = columns
        self._printed: OrderedDict[tuple[str, str, datetime], None] = OrderedDict()
        self.last = shown.since
        """The time of the newest line."""

    def print_wire(self, topic: str, wire: Wire) -> None:
        key = wire.journal, wire.id, wire.time
        if wire.seq and key in self._printed:
            return
        self._printed[key] = None
        if len(self._printed) > REMEMBERED:
            self._printed.popitem(last=False)
        self.last = max(self.last or wire.time, wire.time)
        line = line_of(topic, wire)
        if SEVERITIES.index(line.severity) < SEVERITIES.index(self._shown.severity):
            return
        if self._shown.as_json:
            self._say(plain(msgspec.json.encode(wire).decode()))
            return
        columns = self._columns()
        text = _in_columns(line, self._place, columns)
        coloured = columns is not None and not os.environ.get("NO_COLOR") and (line.result or COLOURS[line.severity])
        self._say(click.style(text, fg=COLOURS[line.severity], bold=line.result or None) if coloured else text)

    def cannot_read(self, topic: str, error: Exception) -> None:
        in_json = msgspec.json.encode({"topic": topic, "error": str(error)}).decode()
        self._say(plain(in_json if self._shown.as_json else f"? {topic}: {error}"))


class _Broker:
    """A log that prints when the connection to the broker is lost or back."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        self._remark = remark

    def info(self, event: str, *, broker: str) -> None:
        back = "the broker is back" if event == "broker.back" else "connected to the broker"
        self._remark(f"{datetime.now().astimezone():%H:%M:%S} -- {back}: {broker}")

    def warning(self, _event: str, *, broker: str, reason: str, **_: str) -> None:
        now = datetime.now().astimezone()
        self._remark(
            f"{now:%H:%M:%S} -- not connected to the broker {broker}: {reason};"
            " check that it runs, and [mqtt]; trying again"
        )


def past(config: Config, shown: Shown, since: datetime) -> list[tuple[str, Wire]]:
    """The rows of this computer's journals since that time, by time. Raises BadSince."""
    tables = [one.name for one in config.table if not shown.tables or one.name in shown.tables]
    writers: list[tuple[str, str, Written]] = [(config.edge.journal, config.edge.name, "edge")]
    writers += [] if shown.device else [(config.rules.journal, config.rules.name, "rules")]
    until = datetime.now(UTC) + timedelta(seconds=1)
    found: list[tuple[str, Wire]] = []
    for journal, writer, of in writers:
        path = Path(journal)
        try:
            for table in tables if path.exists() else ():
                lines = export(path, table, site=config.site.name, writer=writer, since=since, until=until, of=of)
                found += [(wire.source, wire) for wire in _written(lines) if wire.time >= since]
        except sqlite3.Error as error:
            raise BadSince(f"{path} cannot be read: {error}; run `feltd journal verify` for details") from error
        except OSError as error:
            raise BadSince(str(file_trouble(error, path))) from error
    if shown.device:
        found = [(source, wire) for source, wire in found if source.endswith(f"/device/{shown.device}")]
    return sorted(found, key=lambda one: (one[1].time, one[0].endswith("/round"), one[1].seq))


def _written(lines: Iterable[bytes]) -> Iterator[Wire]:
    for line in lines:
        if not line.startswith(b'{"feltd"'):
            yield msgspec.json.decode(line, type=Wire)


async def watch(
    config: Config,
    shown: Shown,
    say: Callable[[str], None],
    remark: Callable[[str], None],
    columns: Callable[[], int | None] = lambda: None,
) -> None:
    """Print the rows of the journals since `shown.since`, then each message of the broker.

    `say` prints a line, `remark` a note about the connection. `columns` is the width of the terminal, or None where
    there is none and nothing is wrapped or coloured. Raises BadSince.
    """
    teller = _Teller(config, shown, say, columns)
    between = shown.since is not None

    async def print_past() -> None:
        assert teller.last is not None
        for topic, wire in await asyncio.to_thread(past, config, shown, teller.last):
            teller.print_wire(topic, wire)

    async def serve(session: Session) -> None:
        nonlocal between
        topics = []
        for table in shown.tables or ("+",):
            topics.append(table_topic(config.site.name, table, f"device/{shown.device or '+'}/event/#"))
            if not shown.device:
                topics.append(table_topic(config.site.name, table, "round/event/#"))
        await session.subscribe(*topics)
        if between:  # what happened since the journals were read
            between = False
            try:
                await print_past()
            except BadSince as error:
                remark(f"-- {error}")
        while True:
            for message in await session.messages():
                _print(teller, message)

    if between:
        await print_past()
    await stay_connected(config.mqtt, "", None, serve, cast("Any", _Broker(remark)))


def _print(teller: _Teller, message: Message) -> None:
    try:
        teller.print_wire(message.topic, decode_wire(message.payload))
    except (BadEnvelope, *UNREADABLE) as error:
        teller.cannot_read(message.topic, error)


def terminal_columns() -> int:
    """The current width of the terminal: it may be resized."""
    return shutil.get_terminal_size().columns
