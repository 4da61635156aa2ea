"""The pages of a table and a device; and commands to devices. The pit has its own module, pit.py, rounds rounds.py."""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from daemon.broker.session import UNREADABLE, BrokerLost
from daemon.console import shapes
from daemon.console.auth.access import inside
from daemon.console.context import ConsoleContext
from daemon.console.fairness import scoreboards
from daemon.console.live import Fragment, Viewer
from daemon.console.pages.timeline import HOURS
from daemon.console.site import story
from daemon.console.site.day import Days
from daemon.views import DeviceView, Lamp
from daemon.words import words
from drivers import CHOICES, DRIVERS
from protocols.contract.commands import BadCommand, Command, Reply, Request as Asking, decode_command, name_of, typed
from protocols.contract.topics import device_topic
from rules.facts import facts_of_result

__all__ = ["Answers", "fragments", "routes"]

REPLY_TIMEOUT_S = 20.0
DAY = timedelta(hours=24)
NEWS = timedelta(minutes=15)
"""The time for which a restart is shown; then static/live.js hides it."""
REMEMBERED = 200
# Seconds between two updates of a device's story and log and of the last event's time: each event changes them.
LOG_S = 0.25
# Commands that end a round, take a device out of play or cannot be undone. The `off` of a switch is one, too.
DANGEROUS = ("restart-spin", "empty-shuffler", "clear-bets", "reset-handpay")


# ---- fragments


def fragments(context: ConsoleContext, days: Days) -> tuple[Fragment, ...]:  # noqa: C901 - one table, and the small functions it names
    """The fragments of these pages, with their keys. `days`: since when this console's store has records."""

    def of_table(table: str) -> tuple[str, ...]:
        return (f"table/{table}", "broker", "present")

    def of_devices(table: str) -> tuple[str, ...]:
        return (f"devices/{table}", *of_table(table))

    def of_noted(table: str) -> tuple[str, ...]:
        return (f"noted/{table}",)

    def of_results(table: str) -> tuple[str, ...]:
        return (f"results/{table}",)

    def same(argument: str) -> str:
        return argument

    def nothing(_table: str) -> tuple[str, ...]:
        return ()

    def the_last(table: str) -> tuple[str, ...]:
        return (f"last/{table}",)

    def of(
        kind: str,
        values: Any,
        keys: Callable[[str], tuple[str, ...]],
        within: Callable[[str], tuple[str, ...]] = nothing,
    ) -> Fragment:
        def render(table: str, viewer: Viewer) -> str:
            if table not in context.site.tables:
                raise KeyError(table)
            return context.render(f"_{kind}.html", viewer.lang, table=table, **values(context, table, viewer))

        return Fragment(kind, keys, render, same, within)

    def top(argument: str, viewer: Viewer) -> str:
        if argument:
            raise KeyError(argument)
        away = [edge.name for edge in context.site.edges.values() if edge.online is False or edge.silent]
        return context.render("_top.html", viewer.lang, away=away)

    def last(table: str, viewer: Viewer) -> str:
        return context.macro("since", viewer.lang, table, context.site.tables[table].last_event)

    def edges(argument: str, viewer: Viewer) -> str:
        if argument:
            raise KeyError(argument)
        rows = [(edge, _edge_lamp(context, edge.current)) for _, edge in sorted(context.site.edges.items())]
        again = days.known < days.started and context.now() - days.started < NEWS
        return context.render("_edges.html", viewer.lang, edges=rows, again=days.started if again else None)

    def of_device(kind: str, values: Any, *keys: str, every: float = 0.0) -> Fragment:
        def render(argument: str, viewer: Viewer) -> str:
            table, _, name = argument.partition("/")
            one = context.site.devices[table, name]
            return context.render(f"_{kind}.html", viewer.lang, table=table, device=one, **values(context, one))

        return Fragment(
            kind,
            lambda argument: (*(f"{key}/{argument}" for key in keys), "broker", "present", "alerts"),
            render,
            lambda argument: argument.partition("/")[0],
            every=every,
        )

    return (
        Fragment("top", lambda _: ("broker", "edges"), top),
        Fragment("edges", lambda _: ("broker", "edges"), edges),
        of_device("device", _device_values, "device"),
        of_device("story", partial(_story_values, days.known), "device", "events", every=LOG_S),
        of_device("devicelog", _log_values, "events", every=LOG_S),
        Fragment("last", the_last, last, same, every=LOG_S),
        of("round", _round_values, of_table, the_last),
        of("result", _result_values, of_results),
        of("history", _history_values, of_results),
        of("devices", _devices_values, of_devices),
        of("noted", _noted_values, of_noted),
        of("board", _board_values, of_results),
        of("jackpots", _jackpot_values, of_table),
    )


def _edge_lamp(context: ConsoleContext, online: bool | None) -> Lamp:
    if not context.site.connected or online is None:
        return "unknown"
    return "good" if online else "offline"


def _round_values(context: ConsoleContext, table: str, viewer: Viewer) -> dict[str, Any]:
    view = context.site.tables[table]
    sure = context.site.rules() is True
    detail = view.facts
    return {
        "round": view.round.partition(":")[2],
        "phase": view.phase if sure else "unknown",
        "sure": sure,
        "drawn": shapes.round_shape(detail, viewer.lang),
        "remedy": shapes.doubt(view, detail, viewer.lang)[1],
        "last": view.last_event,
    }


def _result_values(context: ConsoleContext, table: str, viewer: Viewer) -> dict[str, Any]:
    results = context.site.tables[table].results
    if not results:
        return {"result": None}
    result = results[-1]
    return {"result": result, "drawn": shapes.round_shape(facts_of_result(result), viewer.lang)}


def _history_values(context: ConsoleContext, table: str, viewer: Viewer) -> dict[str, Any]:
    results = reversed(context.site.tables[table].results)
    return {"rounds": [(result, shapes.chip(result, viewer.lang)) for result in results]}


def _noted_values(context: ConsoleContext, table: str, _viewer: Viewer) -> dict[str, Any]:
    return {"notes": list(reversed(context.site.tables[table].noted))}


def _jackpot_values(context: ConsoleContext, table: str, _viewer: Viewer) -> dict[str, Any]:
    return {"amounts": list(context.site.amounts.get(table, {}).values())}


def _board_values(context: ConsoleContext, table: str, _viewer: Viewer) -> dict[str, Any]:
    made = scoreboards.board(context.site.tables[table].results)
    return {"board": made, "drawn_by": scoreboards.kind(made) if made else ""}


def _devices_values(context: ConsoleContext, table: str, _viewer: Viewer) -> dict[str, Any]:
    return {"devices": [(device, context.site.lamp(device)) for device in context.site.devices_of(table)]}


def _device_values(context: ConsoleContext, device: DeviceView) -> dict[str, Any]:
    kind = DRIVERS.get(device.meta.driver)
    incidents, now = context.incidents, context.now()
    faults = device.state.faults
    codes = [fault.code for fault in faults]
    lamp = context.site.lamp(device)
    lines = {one.incident.code for one in incidents.open(now, device.table) if one.incident.device == device.name}
    lost = next((one.at for one in reversed(device.history) if one.kind == "device.offline"), None)
    return {
        "kind": lamp,
        "since": lost if lamp == "offline" else min((fault.since for fault in faults), default=None),
        "silenced": {code for code in codes if incidents.silent(device.table, device.name, [code], now)},
        "alone": [fault for fault in faults if fault.code not in lines],
        "clears": {fault.code: (fault.clears, fault.round) for fault in kind.faults} if kind else {},
    }


def _story_values(known: datetime, context: ConsoleContext, device: DeviceView) -> dict[str, Any]:
    """The values for the last 24 hours, or the known part; the full history of a busy device begins later."""
    since = max(context.now() - DAY, known)
    history = device.history
    if len(history) == history.maxlen:
        since = max(since, history[0].at)
    ill = bool(device.state.faults) or context.site.lamp(device) == "offline"
    return {"lines": story.recent(story.episodes(history), since), "since": since, "ill": ill}


def _log_values(_context: ConsoleContext, device: DeviceView) -> dict[str, Any]:
    published = {"meta": device.meta, "state": device.state}
    return {
        "history": list(reversed(device.history)),
        "events": list(reversed(device.events)),
        "published": msgspec.json.format(msgspec.json.encode(published)).decode(),
    }


# ---- commands


class Field(Struct, frozen=True):
    """One argument of a command, as a field of a form."""

    name: str
    kind: Literal["int", "bool", "choice", "text"]
    default: Any = None
    choices: tuple[str, ...] = ()
    least: Any = None
    most: Any = None


class Form(Struct, frozen=True):
    """The form of a command of a device."""

    name: str
    between_rounds: bool
    fields: tuple[Field, ...]

    @property
    def switch(self) -> bool:
        """Whether it switches on or off: each direction has its own button."""
        return any(field.name == "on" for field in self.fields)

    @property
    def filled(self) -> bool:
        """Whether it has fields to fill in."""
        return any(field.name != "on" for field in self.fields)


def _field(name: str, hint: Any, default: Any) -> Field:
    least = most = None
    if get_origin(hint) is Annotated:
        for meta in get_args(hint)[1:]:
            if isinstance(meta, Meta):
                least, most = meta.ge, meta.le
        hint = get_args(hint)[0]
    parts = [part for part in get_args(hint) if part is not type(None)]
    if hint is bool:
        return Field(name, "bool", default)
    if hint in (int, float):
        return Field(name, "int", default, least=least, most=most)
    if get_origin(hint) is Literal:
        return Field(name, "choice", default, tuple(map(str, parts)))
    if len(parts) == 1 and get_origin(parts[0]) is Literal:  # or None
        return Field(name, "choice", "", ("", *map(str, get_args(parts[0]))))
    return Field(name, "text", default if isinstance(default, str) else None)


def form_of(command: type[Command], driver: str) -> Form:
    """The form of a command, from its fields, their bounds and the words that the driver takes in them."""
    choices = CHOICES.get(driver, {})
    hints = get_type_hints(command, include_extras=True)
    fields = tuple(
        Field(field.name, "choice", None, choices[name_of(command), field.name])
        if (name_of(command), field.name) in choices
        else _field(field.name, hints[field.name], None if field.required else field.default)
        for field in msgspec.structs.fields(command)
    )
    return Form(name_of(command), command.between_rounds, fields)


class Unanswered(Struct, frozen=True):
    """A command whose answer did not come before the page had to be sent: a self-test may take minutes."""

    id: str
    command: str


class Answers:
    """Commands under way, and the last answers, for the page that asked."""

    def __init__(self) -> None:
        """Begin without commands."""
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._kept: OrderedDict[str, Reply | Unanswered] = OrderedDict()

    def received(self, _table: str, _device: str, payload: bytes) -> None:
        """Take an answer on the broker; most belong to other programs."""
        try:
            reply = msgspec.json.decode(payload, type=Reply)
        except UNREADABLE:
            return
        waiting = self._waiting.get(reply.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)
        elif isinstance(self._kept.get(reply.id), Unanswered):
            self._kept[reply.id] = reply

    async def ask(self, context: ConsoleContext, table: str, device: str, name: str, args: bytes) -> Reply | Unanswered:
        """Send a command to a device; returns the outcome: done, refused, failed, or no answer yet."""
        id_ = uuid.uuid4().hex[:16]
        life = timedelta(seconds=REPLY_TIMEOUT_S)
        asking = Asking(id_, context.now() + life, msgspec.Raw(args))
        waiting: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = waiting
        reply: Reply | Unanswered
        try:
            topic = device_topic(context.site.site, table, device, f"cmd/{name}")
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                await context.site.publish(topic, msgspec.json.encode(asking))
                reply = await waiting
        except TimeoutError:
            reply = Unanswered(id_, name)
        except BrokerLost as error:
            reply = Reply(id_, name, "failed", f"{error}: it was not sent")
        finally:
            del self._waiting[id_]
        self._kept[id_] = reply
        if len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)
        return reply

    def shown(self, id_: str) -> Mapping[str, Any] | None:
        """An earlier or late answer, for a page: command, status, text, data."""
        match self._kept.get(id_):
            case Reply() as reply:
                data = msgspec.json.encode(reply.data).decode() if reply.data else ""
                return {"command": reply.command, "status": reply.status, "text": reply.text, "data": data}
            case Unanswered(command=command):
                return {"command": command, "status": "waiting", "text": "", "data": ""}
            case None:
                return None


# ---- pages


def routes(context: ConsoleContext, answers: Answers) -> list[Route]:
    """Tables, devices, commands, preferences and the stream of changes."""
    pages = _Pages(context, answers)
    device = "/table/{table}/device/{device}"
    return [
        Route("/table/{table}", pages.table),
        Route(device, pages.device),
        Route(device + "/command/{command}", pages.command, methods=["POST"]),
        Route("/preferences", pages.preferences, methods=["POST"]),
        Route("/live", pages.live),
    ]


class _Pages:
    def __init__(self, context: ConsoleContext, answers: Answers) -> None:
        self.context = context
        self.answers = answers

    def _table(self, request: Request, right: Any = "look") -> str:
        """The table of a page. Raises 404, 403, or Redirect to the login."""
        table: str = request.path_params["table"]
        self.context.needs(request, right, table)
        if table not in self.context.site.tables:
            raise HTTPException(404)
        return table

    def _device(self, request: Request, right: Any = "look") -> DeviceView:
        table = self._table(request, right)
        device = self.context.site.devices.get((table, request.path_params["device"]))
        if device is None:
            raise HTTPException(404)
        return device

    async def table(self, request: Request) -> Response:
        table = self._table(request)
        ruleset = self.context.site.ruleset(table)
        asked = request.query_params.get("hours", "")
        hours = asked if asked in map(str, HOURS[1:]) else ""
        return self.context.page(request, "table.html", table=table, ruleset=ruleset, decide="", hours=hours)

    async def device(self, request: Request) -> Response:
        device = self._device(request)
        kind = DRIVERS.get(device.meta.driver)
        forms = [form_of(command, kind.name) for command in kind.commands] if kind else []
        return self.context.page(
            request,
            "device.html",
            table=device.table,
            device=device,
            quick=[one for one in forms if not one.filled and one.name not in DANGEROUS],
            filled=[one for one in forms if one.filled and one.name not in DANGEROUS],
            grave=[one for one in forms if one.switch or one.name in DANGEROUS],
            answer=self.answers.shown(request.query_params.get("answer", "")),
        )

    async def command(self, request: Request) -> Response:
        device = self._device(request, "command")
        user = self.context.needs(request, "command", device.table)
        name: str = request.path_params["command"]
        kind = DRIVERS.get(device.meta.driver)
        known = {name_of(one): form_of(one, kind.name) for one in kind.commands} if kind else {}
        if name not in known:
            raise HTTPException(404)
        given = await self.context.form(request)
        args = {
            field.name: given.get(field.name, "false" if field.kind == "bool" else "") for field in known[name].fields
        }
        try:
            encoded = msgspec.json.encode(typed(name, {key: value for key, value in args.items() if value}))
            decode_command(name, encoded)
        except (BadCommand, TypeError, ValueError) as error:
            raise HTTPException(400, str(error)) from error
        target = f"{device.table}/{device.name}"
        detail = {"command": name, "args": args}
        view = self.context.site.tables.get(device.table)
        if name in DANGEROUS and view is not None and view.round:  # a report names the person who ended it
            detail["round"] = view.round
        self.context.actions.note(user.name, user.role, "command", target, detail)
        reply = await self.answers.ask(self.context, device.table, device.name, name, encoded)
        return RedirectResponse(f"/table/{device.table}/device/{device.name}?answer={reply.id}", 303)

    async def preferences(self, request: Request) -> Response:
        given = await self.context.form(request)
        to = given.get("to", "/")
        answer = RedirectResponse(inside(to), 303)
        for name, known in (("lang", words.LANGS), ("theme", ("auto", "light", "dark"))):
            if given.get(name) in known:
                answer.set_cookie(name, given[name], max_age=31_536_000, samesite="strict", httponly=True)
        return answer

    async def live(self, request: Request) -> Response:
        viewer = self.context.viewer(request)
        user = self.context.needs(request, "look")
        whom = f"{user.kind} {user.name}"
        if self.context.live.full(whom):
            raise HTTPException(503, "error.many_pages")
        asked = dict(one.partition("~")[::2] for one in request.query_params.getlist("f"))
        wanted = self.context.live.wanted(asked, viewer)
        # A page that reconnects sends the marks of its first contents, and the header last-event-id.
        again = "last-event-id" in request.headers
        drawn = {} if again else {name: mark for name in wanted if (mark := asked.get(name))}

        async def stream() -> AsyncIterator[bytes]:
            id_ = b"id: 1\n"
            async for said in self.context.live.follow(
                wanted, viewer, lambda: self.context.still(request), whom, drawn
            ):
                yield id_ + said
                id_ = b""
            yield b"event: over\ndata: \n\n"

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
