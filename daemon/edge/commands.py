"""Commands over MQTT: requested under cmd/<name>, executed at once or not at all, answered under cmd/<name>/result.

A late, retained or unsafe request is refused with a reason. A repeated request is executed once and answered again,
also over a lost broker and a restart of the edge. Every command is written to the journal before the device receives
it, and again as the event `device.commanded` with its outcome, in one transaction with the answer and before the answer
is sent. A command that the end of the process interrupted is reported as failed by the next process: its outcome is
unknown. A request that is refused before it reaches a device is answered and not stored.

The requester chooses the MQTT 5 response topic. If the broker refuses a message there, no other is sent: some brokers
end the connection of a client that publishes where it may not.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from daemon.broker.session import UNREADABLE, BrokerLost, Message, Session
from drivers.driver import CommandFailed, CommandRefused, LinkLost
from protocols.contract.commands import BadCommand, Command, Reply, Request, decode_command, name_of
from protocols.contract.events import DeviceCommanded
from protocols.contract.results import BadRound, RoundState, decode_state
from protocols.plain_errors import plain

__all__ = ["CommandRecord", "CommandService", "CommandTarget", "obeyed"]

# The commands of a table that are kept with their answers. One may be overwritten once it is too old to run.
KEPT = 128
MOST_AT_ONCE = 4
LONGEST_PAYLOAD = 4096
# Maximum lifetime of a request: commands are executed at once or not at all.
LONGEST_LIFE = timedelta(minutes=10)
# Seconds after which a command fails whose driver has no time limit of its own.
LONGEST_WORK = 600.0
# Seconds to send an answer: a broker that accepts nothing must not keep a command open.
LONGEST_ANSWER = 5.0
# Seconds to wait for the rules to process the events before a command.
RULES_STATE_WITHIN_S = 2.0
MOST_ASKERS = 4
# Response topics that the broker refused are not tried again. After so many of them, none is written any more.
MOST_REFUSED = 32
LONGEST_SHOWN = 200
BETWEEN_ROUNDS = ("idle", "paying", "resolved", "ended")
KEY = "command/"
BROKEN_OFF = "the edge ended meanwhile: only the device's events will show whether it acted"


class CommandTarget(Protocol):
    """A device, as far as commands need it."""

    async def obey(self, command: Command) -> dict[str, Any]:
        """Execute a command. Raises CommandRefused, CommandFailed or BadJournal."""
        ...

    def newest(self) -> tuple[str, int]:
        """The name of the edge's journal, and the newest seq of this table in it."""
        ...

    def commanded(self, event: DeviceCommanded, order: bytes, kept: Mapping[str, bytes]) -> None:
        """Commit the event, its `order` (JSON) and the values in `kept` in one transaction."""
        ...


class CommandRecord(Struct, frozen=True):
    """One command that was passed to a device, as it is stored. Without `reply` it is still running."""

    number: int
    table: str
    device: str
    id: str
    expires: datetime
    command: Command
    reply: Reply | None = None

    @property
    def key(self) -> str:
        """Its place in a ring buffer for each table: an old record is overwritten."""
        return f"{KEY}{self.table}/{self.number % KEPT}"


class CommandService:
    """Receives, executes and answers the commands of one edge."""

    def __init__(
        self,
        stations: Mapping[tuple[str, str], CommandTarget],
        ruled: frozenset[str],
        kept: Mapping[str, bytes],
        keep: Callable[[Mapping[str, bytes]], object],
        now: Callable[[], datetime],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`stations` by table and device. `ruled`: the tables with a ruleset, which reports whether a round is open.

        `kept`: what the last process stored under KEY. `keep` makes values durable before it returns.
        """
        self._stations = stations
        self._ruled = ruled
        self._keep = keep
        self._now = now
        self._log = log
        self._session: Session | None = None
        self._rounds: dict[str, RoundState] = {}
        self._rounds_changed = asyncio.Event()
        self._rules_online = False
        self._rules_since = 0.0
        """When the rules came online, on the loop's clock."""
        self._cases: dict[tuple[str, str, str], CommandRecord] = {}
        self._places: dict[str, CommandRecord] = {}
        self._numbers: dict[str, int] = {}
        self._askers: dict[tuple[str, str, str], list[Message]] = {}
        self._under_way: dict[tuple[str, str], int] = {}
        self._refused: set[str] = set()
        cases = []
        for value in kept.values():
            with contextlib.suppress(*UNREADABLE):  # from another version: too old to run
                cases.append(msgspec.json.decode(value, type=CommandRecord))
        for case in sorted(cases, key=lambda case: case.number):
            self._put(case)

    def recover(self) -> None:
        """Report commands that the last process did not finish as failed. Called once, before devices are served."""
        for case in [case for case in self._cases.values() if case.reply is None]:
            name = name_of(case.command)
            self._log.warning("command.broken_off", table=case.table, device=case.device, command=name, id=case.id)
            self._end(case, Reply(case.id, name, "failed", BROKEN_OFF))

    def is_ruled(self, table: str) -> bool:
        """Whether the table has a ruleset, which reports open rounds."""
        return table in self._ruled

    @property
    def at_work(self) -> int:
        """The number of running commands."""
        return sum(self._under_way.values())

    @property
    def tables_at_work(self) -> list[str]:
        """The tables where a command runs."""
        return [table for (table, _), number in self._under_way.items() if number]

    def may_be_in_round(self, table: str) -> bool:
        """Whether a round of the table is open, or may be open because the rules are offline.

        Rules that are online for a while and publish no state of the table do not resolve its rounds: none is open.
        """
        if table not in self._ruled:
            return False
        if not self._rules_online:
            return True
        said = self._rounds.get(table)
        if said is None:
            return asyncio.get_running_loop().time() - self._rules_since < RULES_STATE_WITHIN_S
        return said.phase not in BETWEEN_ROUNDS

    # ---- messages of the broker

    def connected(self, session: Session) -> None:
        """A new connection: the known round states may be stale."""
        self._session = session
        self._rounds.clear()
        self._rules_online = False

    def disconnected(self) -> None:
        """No answer can be sent."""
        self._session = None

    def rules_are(self, online: bool) -> None:
        """Whether the rules consumer is online. Without it, every round may be open."""
        if online and not self._rules_online:
            self._rules_since = asyncio.get_running_loop().time()
        self._rules_online = online

    def round_is(self, table: str, payload: bytes) -> None:
        """`round/state` of a table."""
        try:
            self._rounds[table] = decode_state(payload)
        except BadRound:
            self._rounds.pop(table, None)
        self._rounds_changed.set()

    def no_round_after(self, table: str, journal: str) -> int:
        """The seq of `journal` up to which the rules report no open round.

        -1 if a round is open or unknown, or if cards stay hidden after it.
        """
        said = self._rounds.get(table)
        if said is None or not self._rules_online or said.phase not in BETWEEN_ROUNDS or said.keeps_cards:
            return -1
        return said.heard.get(journal, -1)

    def keeps_cards(self, table: str) -> bool:
        """Whether the rules report that cards which were not shown stay hidden after a round."""
        said = self._rounds.get(table)
        return said is not None and said.keeps_cards is True

    async def take(self, message: Message, group: asyncio.TaskGroup) -> None:
        """One message under .../device/<device>/cmd/<name>. Slow work runs in a task of `group`.

        `group` outlives the connection: a lost broker does not interrupt a running command.
        """
        words = message.topic.split("/")
        table, device, name = words[4], words[6], words[8]
        request_id = ""
        try:
            request = _request(message.payload)
            request_id = request.id
            command = decode_command(name, request.args)
            case = self._cases.get((table, device, request.id))
            if case is None:
                station, case = self._validate(message, table, device, request, command)
                self._askers[table, device, request.id] = [message]
                self._under_way[table, device] = self._under_way.get((table, device), 0) + 1
                group.create_task(self._carry_out(station, case))
                return
            _must_be(command, case)
        except (BadCommand, CommandRefused) as error:
            await self._reply(message, Reply(request_id, name, "refused", str(error)))
            return
        if case.reply is not None:  # a repeated request: answered again, executed once
            await self._reply(message, case.reply)
        else:
            askers = self._askers[table, device, request.id]
            askers.append(message)
            del askers[:-MOST_ASKERS]

    # ---- from the request to the answer

    def _validate(
        self, message: Message, table: str, device: str, request: Request, command: Command
    ) -> tuple[CommandTarget, CommandRecord]:
        """Checks that need no waiting. Raises CommandRefused."""
        if message.retain:
            raise CommandRefused("the broker had retained it: it may be old; do not retain commands")
        station = self._stations.get((table, device))
        if station is None:
            raise CommandRefused(f"this edge has no device {device!r} on table {table!r}")
        now = self._now()
        _must_be_of_now(request.expires, now)
        if request.expires > now + LONGEST_LIFE:
            raise CommandRefused("it expires too late: a command is valid 10 minutes at most; are the clocks right?")
        if self._under_way.get((table, device), 0) >= MOST_AT_ONCE:
            raise CommandRefused("too many commands at once; ask again")
        if command.between_rounds and table in self._ruled:
            self._between_rounds(table)
        case = CommandRecord(self._numbers.get(table, 0), table, device, request.id, request.expires, command)
        oldest = self._places.get(case.key)
        if oldest is not None and (oldest.reply is None or oldest.expires > now):
            raise CommandRefused("too many commands in a short time; let them expire earlier")
        self._put(case)
        return station, case

    def _between_rounds(self, table: str) -> RoundState:
        """The last round state. Raises CommandRefused if a round is open or unknown."""
        said = self._rounds.get(table)
        if said is None or not self._rules_online:
            raise CommandRefused("whether a round is open is unknown; is feltd rules running?")
        if said.phase not in BETWEEN_ROUNDS:
            raise CommandRefused(f"a round is open ({said.phase}); ask again between two rounds")
        return said

    async def _no_round_is_open(self, table: str, station: CommandTarget) -> None:
        """Return when the rules have processed all events and no round is open. Raises CommandRefused."""
        journal, newest = station.newest()
        try:
            async with asyncio.timeout(RULES_STATE_WITHIN_S):
                while self._between_rounds(table).heard.get(journal, 0) < newest:
                    self._rounds_changed.clear()
                    await self._rounds_changed.wait()
        except TimeoutError:
            text = "feltd rules has not processed all events yet, so a round may be open; ask again"
            raise CommandRefused(text) from None

    def _put(self, case: CommandRecord) -> None:
        oldest = self._places.get(case.key)
        if oldest is not None:
            self._cases.pop((oldest.table, oldest.device, oldest.id), None)
        self._places[case.key] = case
        self._cases[case.table, case.device, case.id] = case
        self._numbers[case.table] = max(self._numbers.get(case.table, 0), case.number + 1)

    async def _carry_out(self, station: CommandTarget, case: CommandRecord) -> None:
        name = name_of(case.command)
        place = (case.table, case.device)
        try:
            self._keep({case.key: msgspec.json.encode(case)})
            try:
                if case.command.between_rounds and case.table in self._ruled:
                    await self._no_round_is_open(case.table, station)
                _must_be_of_now(case.expires, self._now())  # the disk may be slow, too
                async with asyncio.timeout(LONGEST_WORK):
                    reply = Reply(case.id, name, "done", "", await station.obey(case.command))
            except CommandRefused as error:
                reply = Reply(case.id, name, "refused", _printable(error))
            except (CommandFailed, TimeoutError) as error:
                reply = Reply(case.id, name, "failed", _printable(error) or f"no end in {LONGEST_WORK:g} s")
            reply = self._end(case, reply)
        finally:
            self._under_way[place] -= 1
            askers = self._askers.pop((*place, case.id), [])
        self._log.info("device.commanded", table=case.table, device=case.device, command=name, status=reply.status)
        with contextlib.suppress(BrokerLost, TimeoutError):  # the requester may repeat it with the same id
            async with asyncio.timeout(LONGEST_ANSWER):
                for message in askers:
                    await self._reply(message, reply)

    def _end(self, case: CommandRecord, reply: Reply) -> Reply:
        """Commit the answer and the event."""
        try:
            ended = msgspec.json.encode(replace(case, reply=reply))
        except (TypeError, ValueError, RecursionError) as error:
            text = f"the device acted, but the answer cannot be sent: {_printable(error)}"
            reply = Reply(case.id, reply.command, "failed", text)
            ended = msgspec.json.encode(replace(case, reply=reply))
        self._put(replace(case, reply=reply))
        event = DeviceCommanded(reply.command, reply.id, reply.status, reply.text)
        station = self._stations.get((case.table, case.device))
        if station is None:
            self._keep({case.key: ended})  # no longer in the configuration
        else:
            station.commanded(event, msgspec.json.encode(case.command), {case.key: ended})
        return reply

    async def _reply(self, message: Message, reply: Reply) -> None:
        session = self._session
        if session is None:
            return
        payload = msgspec.json.encode(reply)
        await session.publish(f"{message.topic}/result", payload)
        topic = message.reply_to
        if _may_be_answered(topic) and topic not in self._refused and len(self._refused) < MOST_REFUSED:
            refused = partial(self._answer_refused, topic)
            await session.publish(topic, payload, correlation=message.correlation, vital=False, refused=refused)

    def _answer_refused(self, topic: str, reason: str) -> None:
        """Log a refused response topic once; several answers may have been sent to it."""
        if topic in self._refused or len(self._refused) >= MOST_REFUSED:
            return
        self._refused.add(topic)
        remedy = "let the edge write there and restart it; the answer is also on cmd/<name>/result"
        self._log.warning("answer.refused", topic=topic[:LONGEST_SHOWN], reason=reason, remedy=remedy)
        if len(self._refused) == MOST_REFUSED:
            remedy = "find the client that requests them there, and restart the edge; answers are on cmd/<name>/result"
            self._log.warning("answers.refused", reason="too many: no response topic is written now", remedy=remedy)


def _request(payload: bytes) -> Request:
    """Raises BadCommand."""
    if len(payload) > LONGEST_PAYLOAD:
        raise BadCommand(f"a request of {len(payload)} bytes: it may have {LONGEST_PAYLOAD}")
    try:
        return msgspec.json.decode(payload, type=Request)
    except UNREADABLE as error:
        raise BadCommand(f'not a request: {plain(error)}; write {{"id":…,"expires":"…Z","args":{{…}}}}') from error


def _must_be_of_now(expires: datetime, now: datetime) -> None:
    """Raises CommandRefused."""
    if expires <= now:
        raise CommandRefused(f"it expired at {expires:%H:%M:%S %Z} and it is {now:%H:%M:%S %Z}; are the clocks right?")


def _must_be(command: Command, case: CommandRecord) -> None:
    """Raises CommandRefused."""
    if case.command != command:
        raise CommandRefused(f"the id {case.id!r} was another command's: each needs its own")


def _may_be_answered(topic: str) -> bool:
    """Whether a response topic is allowed: no wildcard, and outside our topics, where it could pass for an event."""
    return bool(topic) and not topic.startswith(("felt/", "$")) and not set(topic) & set("+#\0")


def _printable(error: BaseException) -> str:
    """The text of an error without characters that cannot be encoded."""
    return str(error).encode("utf-8", "backslashreplace").decode()


async def obeyed(
    obey: Callable[[Command], Coroutine[Any, Any, dict[str, Any]]],
    command: Command,
    ended: asyncio.Future[None],
) -> dict[str, Any]:
    """The outcome, or CommandFailed if the session with the device `ended` first."""
    work = asyncio.ensure_future(obey(command))
    try:
        either: set[asyncio.Future[Any]] = {work, ended}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise CommandFailed("the device was lost meanwhile: only its events will show whether it acted")
        if work.cancelled():
            raise CommandFailed("the driver cancelled it: only the device's events will show whether it acted")
        return work.result()
    except LinkLost as error:
        raise CommandFailed(f"the device was lost meanwhile: {error}") from error
    finally:
        work.cancel()
        await asyncio.wait({work})
        if not work.cancelled():
            work.exception()  # retrieved: asyncio would log it otherwise
