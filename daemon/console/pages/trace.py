"""The live trace of a device: the bytes on its wire, as hexadecimal digits and in words, as they pass.

The edge publishes it for the requested time (daemon/edge/tracing.py) and holds back bytes that reveal cards. The codecs
that drivers and simulators share turn it into words; it is kept for a while, and pushed to the open pages.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from daemon.broker.session import UNREADABLE
from daemon.captures import CAPTURE_HEAD, Frame as Captured, capture_line
from daemon.console.auth.access import may
from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Viewer
from daemon.console.pages.web import Answers
from drivers import DRIVERS
from protocols.contract import wagers
from protocols.contract.documents import TraceLine
from protocols.contract.topics import in_utc
from protocols.fdl import console as fdl_console, frame as fdl
from protocols.link import Chunk
from protocols.sas import frames as sas
from protocols.sas.messages import Garbage

if TYPE_CHECKING:
    from daemon.views import DeviceView

__all__ = ["Line", "Reader", "Traces", "fragments", "routes"]

KEPT = 5000
# Lines for a new page, and lines that wait for a slow one.
SHOWN = 300
BEHIND = 1000
AT_ONCE = 200
MOST_TRACED = 20
MOST_VIEWERS = 40
LONGEST_MESSAGE = 256 * 1024
HEARTBEAT = 2.0
PAUSE_S = 0.1
MINUTES = (1, 5, 10)
UNREAD = ("garbage", "broken")  # the first words for bytes that are no message


# ---- in words


class Reader:
    """One device's bytes in words, both ways; a frame in pieces is put into words with its last piece."""

    def __init__(self, driver: str) -> None:
        """`driver` by its name; an unknown one gives no words."""
        kind = DRIVERS.get(driver)
        self._happenings: Mapping[int, type[fdl.Happening]] = getattr(kind, "happenings", {})
        self._decoders = {way: kind.decoder() for way in ("in", "out")} if kind and kind.decoder else {}
        self._sas = driver == "sas_machine"
        self._machine: sas.HostDecoder | None = None

    def read(self, way: str, data: bytes) -> list[str]:
        """The words of the messages that `data` completes."""
        if self._sas:
            return self._read_sas(way, data)
        decoder = self._decoders.get(way)
        return [self._said(message) for message in decoder.feed(data)] if decoder else []

    def _read_sas(self, way: str, data: bytes) -> list[str]:
        """SAS in words: an answer is decoded by its poll, and each write is one poll."""
        if way == "in":
            return [in_words(one) for one in self._machine.feed(data)] if self._machine else []
        said = [in_words(one) for one in self._machine.quiet()] if self._machine else []
        for poll in sas.MachineDecoder().feed(data):
            said.append(in_words(poll))
            if not isinstance(poll, Garbage) and poll.address:
                self._machine = sas.HostDecoder(poll.address)
                self._machine.expect(poll)
        return said

    def _said(self, message: Any) -> str:
        if isinstance(message, wagers.Addressed):
            return f"{in_words(message.message)} (topic of {message.terminal or 'no terminal'})"
        if not isinstance(message, fdl.Frame):
            return in_words(message)
        match fdl.read(message):
            case fdl.EventReport(counter, age, kind, data):
                happened = fdl.read_happening(kind, data, self._happenings)
                ago = "" if age == fdl.AGE_UNKNOWN else f" ({age} ms ago)"
                return f"event {counter}{ago}: {_happening(happened)}"
            case said:
                return in_words(said)


def messages_read(driver: str, frames: Iterable[Captured]) -> tuple[int, int]:
    """The number of a device's messages in a capture that its codec can read, and the number of all."""
    reader = Reader(driver)
    said = [one for frame in frames for one in reader.read("in" if frame.from_device else "out", frame.data)]
    return sum(not one.startswith(UNREAD) for one in said), len(said)


def _happening(happened: Any) -> str:
    """The console's codes in words."""
    match happened:
        case fdl_console.SeatAction(seat, action, hand, amount):
            return f"seat action: seat {seat}, hand {hand}, {fdl_console.ACTIONS[action]}, amount {amount}"
        case fdl_console.RoundVoid(reason):
            words = fdl_console.VOID_REASONS.get(reason, str(reason)).replace("_", " ")
            return f"round void: {words or 'no reason given'}"
        case _:
            return in_words(happened)


def in_words(message: Any) -> str:
    """A message of a wire in words: its name and its fields, without its bytes, which are shown beside it."""
    name = "".join(f" {char.lower()}" if char.isupper() else char for char in type(message).__name__).strip()
    fields = [
        f"{field} {_value(value)}"
        for field in message.__struct_fields__
        if field != "raw" and (value := getattr(message, field)) not in ("", (), b"", None)
    ]
    return f"{name}: {', '.join(fields)}" if fields else name


def _value(value: Any) -> str:
    match value:
        case Enum():
            return str(value.name or value.value).lower().replace("_", " ")
        case bytes():
            return value.hex(" ")
        case Struct():
            return f"({in_words(value)})"
        case tuple() | list():
            return " ".join(map(_value, value))
        case dict():
            return " ".join(f"{key}={_value(one)}" for key, one in value.items())
        case _:
            return str(value)


# ---- kept


class Line(Struct, frozen=True):
    """One line of a page. `missing`: the number of missing lines before it, left out by the edge or lost on the way."""

    at: datetime
    way: str
    hex: str
    n: int
    said: tuple[str, ...]
    missing: int = 0


class _Viewer:
    """One page that follows. Lines that it does not take in time are dropped, the oldest first, and counted."""

    def __init__(self) -> None:
        self.waiting: deque[Line] = deque()
        self.left_out = 0
        self.news = asyncio.Event()

    def offer(self, line: Line) -> None:
        if len(self.waiting) >= BEHIND:
            self.waiting.popleft()
            self.left_out += 1
        self.waiting.append(line)
        self.news.set()


class _Traced:
    """One device."""

    def __init__(self, driver: str) -> None:
        self.reader = Reader(driver)
        self.lines: deque[Line] = deque(maxlen=KEPT)
        self.last = 0
        self.viewers: set[_Viewer] = set()


class Traces:
    """All devices that are or were traced, at most MOST_TRACED; the one without bytes for longest is dropped."""

    def __init__(self, driver_of: Callable[[str, str], str]) -> None:
        """`driver_of` names the driver of a device by table and name."""
        self._driver_of = driver_of
        self._traced: OrderedDict[tuple[str, str], _Traced] = OrderedDict()

    def _of(self, table: str, device: str) -> _Traced:
        key = table, device
        if key not in self._traced:
            self._traced[key] = _Traced(self._driver_of(table, device))
            idle = [other for other, one in self._traced.items() if not one.viewers and other != key]
            if len(self._traced) > MOST_TRACED and idle:
                del self._traced[idle[0]]
        self._traced.move_to_end(key)
        return self._traced[key]

    def received(self, table: str, device: str, payload: bytes) -> None:
        """Take a message of the edge. An unreadable one is dropped, and shows as missing."""
        if len(payload) > LONGEST_MESSAGE:
            return
        traced = self._of(table, device)
        for text in payload.split(b"\n"):
            try:
                frame = msgspec.json.decode(text, type=TraceLine)
                data = bytes.fromhex(frame.hex)
                in_utc(frame.at)
            except (ValueError, *UNREADABLE):
                continue
            again = frame.n <= traced.last  # the edge began anew
            missing = 0 if again or not traced.last else frame.n - traced.last - 1
            if again or missing:
                traced.reader = Reader(self._driver_of(table, device))  # half a frame is dropped
            traced.last = frame.n
            said = tuple(traced.reader.read(frame.way, data))
            line = Line(frame.at, frame.way, data.hex(), frame.n, said, missing)
            traced.lines.append(line)
            for viewer in traced.viewers:
                viewer.offer(line)

    def lines(self, table: str, device: str) -> list[Line]:
        """The kept lines of a device."""
        traced = self._traced.get((table, device))
        return list(traced.lines) if traced else []

    @property
    def full(self) -> bool:
        """Whether no further page can follow."""
        return sum(len(one.viewers) for one in self._traced.values()) >= MOST_VIEWERS

    async def follow(self, table: str, device: str, still: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Server-sent events: the last lines, then new ones, with heartbeats in between. Ends when not `still`."""
        traced = self._of(table, device)
        viewer = _Viewer()
        for line in islice(traced.lines, max(len(traced.lines) - SHOWN, 0), None):
            viewer.offer(line)
        traced.viewers.add(viewer)
        try:
            while still():
                viewer.news.clear()
                lines = [viewer.waiting.popleft() for _ in range(min(AT_ONCE, len(viewer.waiting)))]
                said = {"lines": lines, "left_out": viewer.left_out}
                yield b"data: " + msgspec.json.encode(said) + b"\n\n"
                await asyncio.sleep(PAUSE_S)
                if not viewer.waiting:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(HEARTBEAT):
                            await viewer.news.wait()
            yield b"event: over\ndata: \n\n"
        finally:
            traced.viewers.discard(viewer)

    def capture(self, table: str, device: str) -> str:
        """The kept lines as a capture that `feltd replay` reads, with each frame's words as a comment."""
        text = [f"{CAPTURE_HEAD} driver={self._driver_of(table, device)}", f"# {table}/{device}"]
        for line in self.lines(table, device):
            if line.missing:
                text.append(f"# {line.missing} pieces are missing here")
            chunk = Chunk(bytes.fromhex(line.hex), line.at, 0.0)
            text.append(capture_line(Captured(chunk.at, line.way == "in", chunk.data)))
            text += [f"#   {' '.join(said.split())}" for said in line.said]
        return "\n".join(text) + "\n"


# ---- pages


def fragments(context: ConsoleContext) -> tuple[Fragment, ...]:
    """`tracing/<table>/<device>`: whether a trace runs and until when, with its beginning and end."""

    def render(argument: str, viewer: Viewer) -> str:
        table, _, name = argument.partition("/")
        device = context.site.devices[table, name]
        if not may(viewer.role, "trace"):
            raise KeyError(argument)
        until = device.state.traced_until
        running = until is not None and until > context.now()
        return context.render(
            "_tracing.html",
            viewer.lang,
            table=table,
            device=device,
            until=until if running else None,
            known=context.site.connected and device.online,
            choices=MINUTES,
        )

    return (
        Fragment(
            "tracing",
            lambda argument: (f"device/{argument}", "broker", "present"),
            render,
            lambda argument: argument.partition("/")[0],
        ),
    )


def routes(context: ConsoleContext, answers: Answers) -> list[Route]:
    """The page of a trace, its beginning and end, its stream and its text."""
    pages = _Pages(context, answers)
    place = "/table/{table}/device/{device}/trace"
    return [
        Route(place, pages.page),
        Route(place, pages.begin, methods=["POST"]),
        Route(place + "/stream", pages.stream),
        Route(place + "/text", pages.text),
    ]


class _Pages:
    def __init__(self, context: ConsoleContext, answers: Answers) -> None:
        self.context = context
        self.answers = answers

        def driver_of(table: str, device: str) -> str:
            known = context.site.devices.get((table, device))
            return known.meta.driver if known else ""

        self.traces = Traces(driver_of)
        context.site.on_trace.append(self._heard)

    def _heard(self, table: str, device: str, payload: bytes) -> None:
        if (table, device) in self.context.site.devices:
            self.traces.received(table, device, payload)

    def _device(self, request: Request) -> "DeviceView":
        """The device of a request. Raises 404, 403, or Redirect to the login."""
        table: str = request.path_params["table"]
        self.context.needs(request, "trace", table)
        device = self.context.site.devices.get((table, request.path_params["device"]))
        if device is None:
            raise HTTPException(404)
        return device

    async def page(self, request: Request) -> Response:
        device = self._device(request)
        answer = self.answers.shown(request.query_params.get("answer", ""))
        kind = DRIVERS.get(device.meta.driver)
        return self.context.page(
            request,
            "trace_page.html",
            table=device.table,
            device=device,
            cards=kind is None or kind.tells_cards,
            answer=answer,
        )

    async def begin(self, request: Request) -> Response:
        """Begin or end a trace. The action is noted before the command is sent."""
        device = self._device(request)
        user = self.context.needs(request, "trace", device.table)
        form = await self.context.form(request)
        text = form.get("minutes", "")
        if text not in {"0", *map(str, MINUTES)}:
            raise HTTPException(400)
        seconds = int(text) * 60
        target = f"{device.table}/{device.name}"
        self.context.actions.note(user.name, user.role, "trace", target, {"seconds": seconds})
        args = msgspec.json.encode({"seconds": seconds})
        reply = await self.answers.ask(self.context, device.table, device.name, "trace", args)
        return RedirectResponse(f"/table/{device.table}/device/{device.name}/trace?answer={reply.id}", 303)

    async def stream(self, request: Request) -> Response:
        device = self._device(request)
        if self.traces.full:
            raise HTTPException(503)
        follow = self.traces.follow(device.table, device.name, lambda: self.context.still(request))
        return StreamingResponse(follow, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def text(self, request: Request) -> Response:
        device = self._device(request)
        name = f"{device.table}-{device.name}-{self.context.now():%Y%m%dT%H%M%SZ}.capture"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return PlainTextResponse(self.traces.capture(device.table, device.name), headers=headers)
