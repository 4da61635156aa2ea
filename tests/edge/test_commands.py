"""Commands over MQTT: at once or not at all, done once, answered, in the journal before their end is published."""

import asyncio
import json
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from click.testing import CliRunner
from helpers import PATIENCE, virtual_time
from structlog.testing import capture_logs

from daemon import logs
from daemon.broker.session import BrokerLost, Message, Session
from daemon.cli.main import main
from daemon.config.model import Config, parse
from daemon.edge import commands
from daemon.edge.commands import (
    KEPT,
    KEY,
    MOST_AT_ONCE,
    MOST_REFUSED,
    CommandRecord,
    CommandService,
    CommandTarget,
    obeyed,
)
from daemon.edge.device_session import DeviceSession
from daemon.edge.edge import Edge
from daemon.journal.store import BadJournal, Journal
from drivers.driver import CommandFailed, CommandRefused, DeviceRefused, LinkLost, Sighting
from protocols.contract.commands import (
    COMMANDS,
    Agitate,
    BadCommand,
    Command,
    Light,
    Reply,
    Request,
    SelfTest,
    SetParameter,
    StartTimer,
    decode_command,
    name_of,
    typed,
)
from protocols.contract.events import DeviceCommanded, DeviceOnline
from protocols.link import Chunk
from rules import RULESETS
from simulators.alone import make
from simulators.clock import Pace
from simulators.lab import broker as broker_module
from simulators.lab.broker import Broker, find_mosquitto, free_port
from simulators.ports.port import Pty, Socket
from tests.broker.test_mqtt import Exact

NOW = datetime(2026, 11, 20, 20, 0, 0, tzinfo=UTC)
PLACE = "felt/1/site/table/t-1/device/d-1/cmd/"
LOG = logs.get(test="commands")


class Wire:
    """A session that writes down what is published, or has lost its broker, or takes nothing.

    What begins with `foreign` nobody may write: a session that needs it is lost.
    """

    def __init__(self, foreign: str = "\0") -> None:
        self.said: list[tuple[str, Reply, bytes]] = []
        self.lost = False
        self.stuck = False
        self.foreign = foreign

    async def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        correlation: bytes = b"",
        vital: bool = True,
        refused: Callable[[str], None] | None = None,
    ) -> None:
        if self.stuck:
            await asyncio.Event().wait()
        if self.lost:
            raise BrokerLost("gone")
        self.said.append((topic, msgspec.json.decode(payload, type=Reply), correlation))
        if topic.startswith(self.foreign):
            self.lost = vital
            if refused is not None:
                asyncio.get_running_loop().call_later(0.01, refused, "Not authorized")

    @property
    def topics(self) -> list[str]:
        return [topic for topic, _, _ in self.said]

    @property
    def replies(self) -> list[Reply]:
        return [reply for _, reply, _ in self.said]


class Place:
    """A station that does as it is told: each command as `does` says, and the order of everything in `book`."""

    def __init__(self, book: list[Any]) -> None:
        self.book = book
        self.kept: dict[str, bytes] = {}
        self.done: list[Command] = []
        self.told: list[DeviceCommanded] = []
        self.orders: list[bytes] = []
        self.last = ("j", 0)
        self.does: Callable[[Command], Coroutine[Any, Any, dict[str, Any]]] = self.at_once

    async def at_once(self, _: Command) -> dict[str, Any]:
        return {"cycles": 1}

    async def obey(self, command: Command) -> dict[str, Any]:
        self.book.append("acts")
        self.done.append(command)
        return await self.does(command)

    def newest(self) -> tuple[str, int]:
        return self.last

    def commanded(self, told: DeviceCommanded, order: bytes, kept: Mapping[str, bytes]) -> None:
        self.book.append("told")
        self.told.append(told)
        self.orders.append(order)
        self.kept |= kept

    def keep(self, kept: Mapping[str, bytes]) -> None:
        self.book.append("kept")
        self.kept |= kept


class Counter:
    """A desk with one device on one table, and a broker."""

    def __init__(self, *, ruled: bool = True, kept: Mapping[str, bytes] | None = None) -> None:
        self.book: list[Any] = []
        self.place = Place(self.book)
        self.place.kept = dict(kept or {})
        self.wire = Wire()
        station: CommandTarget = self.place
        self.commands = CommandService(
            {("t-1", "d-1"): station},
            frozenset({"t-1"} if ruled else ()),
            dict(kept or {}),
            self.place.keep,
            self.now,
            LOG,
        )
        self.connect(self.wire)

    def now(self) -> datetime:
        return NOW + timedelta(seconds=asyncio.get_running_loop().time())

    def connect(self, wire: Wire) -> None:
        self.wire = wire
        self.commands.connected(cast("Session", wire))

    async def hear(self, *messages: Message) -> list[Reply]:
        """Take them, wait for all ends, and tell what was answered."""
        async with asyncio.TaskGroup() as group:
            for message in messages:
                await self.commands.take(message, group)
        return self.wire.replies


def ask(
    name: str = "agitate",
    args: str = "{}",
    *,
    id: str = "one",  # noqa: A002 - the field's name
    life: float = 10.0,
    topic: str = PLACE,
    **more: Any,
) -> Message:
    expires = NOW + timedelta(seconds=life)
    payload = f'{{"id":{json.dumps(id)},"expires":"{expires.isoformat()}","args":{args}}}'
    return Message(topic + name, payload.encode(), **more)


# ---- what is done


@virtual_time
async def test_a_command_is_kept_then_done_then_told_then_answered() -> None:
    counter = Counter()
    [reply] = await counter.hear(ask(args='{"cycles":3}'))
    assert counter.place.done == [Agitate(3)]
    assert reply == Reply("one", "agitate", "done", "", {"cycles": 1})
    assert counter.place.told == [DeviceCommanded("agitate", "one", "done", "")]
    assert counter.place.orders == [b'{"command":"agitate","cycles":3}']
    assert counter.book == ["kept", "acts", "told"]
    assert counter.wire.said[0][0] == PLACE + "agitate/result"


@virtual_time
async def test_it_stands_in_the_journal_before_anybody_is_answered() -> None:
    counter = Counter()
    counter.wire.publish = lambda *_, **__: answered()  # type: ignore[method-assign]

    async def answered() -> None:
        counter.book.append("answered")

    await counter.hear(ask())
    assert counter.book == ["kept", "acts", "told", "answered"]


@virtual_time
async def test_the_answer_goes_to_both_topics_with_the_correlation() -> None:
    counter = Counter()
    await counter.hear(ask(reply_to="pit/answers/7", correlation=b"\x01\x02"))
    assert [(topic, correlation) for topic, _, correlation in counter.wire.said] == [
        (PLACE + "agitate/result", b""),
        ("pit/answers/7", b"\x01\x02"),
    ]
    assert counter.wire.said[0][1] == counter.wire.said[1][1]


@pytest.mark.parametrize(
    "reply_to",
    [
        "felt/1/site/table/t-1/device/d-1/cmd/agitate",
        "felt/1/site/table/t-1/device/d-1/event/card.drawn",
        "$SYS/broker",
        "pit/+/7",
        "pit/#",
        "pit/\0",
        "",
    ],
)
@virtual_time
async def test_an_answer_is_never_written_into_the_tree_nor_where_nobody_can(reply_to: str) -> None:
    counter = Counter()
    await counter.hear(ask(reply_to=reply_to))
    assert [topic for topic, _, _ in counter.wire.said] == [PLACE + "agitate/result"]
    assert counter.wire.replies[0].status == "done"


@virtual_time
async def test_where_the_broker_refuses_an_answer_none_is_written_again() -> None:
    """mosquitto before 2.0.22, without a limit of its queues, ends the connection of who tries. Said once."""
    counter = Counter()
    counter.connect(Wire("apps/"))
    with capture_logs() as logged:
        for n in range(3):
            await counter.hear(ask(id=f"n{n}", reply_to="apps/pit"))
            await asyncio.sleep(1)
        await counter.hear(ask("dance", reply_to="apps/pit"))
        assert not counter.wire.lost
        assert counter.wire.topics == [
            *(PLACE + "agitate/result", "apps/pit", PLACE + "agitate/result", PLACE + "agitate/result"),
            PLACE + "dance/result",
        ]
        counter.connect(Wire("apps/"))  # to try it anew would cost this one, too
        await counter.hear(ask(id="again", reply_to="apps/pit"), ask(id="other", reply_to="reply/pit"))
        assert sorted(counter.wire.topics) == [PLACE + "agitate/result"] * 2 + ["reply/pit"]
    said = [one for one in logged if one["event"] == "answer.refused"]
    assert [(one["topic"], one["reason"], one["log_level"]) for one in said] == [
        ("apps/pit", "Not authorized", "warning")
    ]
    assert said[0]["remedy"]


@virtual_time
async def test_of_the_topics_that_the_broker_refuses_so_many_are_tried_and_no_more() -> None:
    counter = Counter()
    counter.connect(Wire("apps/"))
    with capture_logs() as logged:
        for n in range(2 * MOST_REFUSED):
            await counter.hear(ask("dance", reply_to=f"apps/{'x' * 1000}/{n}"))
            await asyncio.sleep(1)
        await counter.hear(ask("dance", reply_to="reply/pit"))
    assert sum(topic.startswith("apps/") for topic in counter.wire.topics) == MOST_REFUSED
    assert counter.wire.topics.count(PLACE + "dance/result") == 2 * MOST_REFUSED + 1
    assert counter.wire.topics[-1] == PLACE + "dance/result"
    assert [one["event"] for one in logged] == ["answer.refused"] * MOST_REFUSED + ["answers.refused"]
    assert max(len(one.get("topic", "")) for one in logged) < 300


@virtual_time
async def test_refusals_of_answers_that_were_on_their_way_together_are_said_once() -> None:
    counter = Counter()
    counter.connect(Wire("apps/"))
    with capture_logs() as logged:
        for topic in ["apps/pit"] * 3 + [f"apps/{n}" for n in range(MOST_REFUSED + 5)]:
            await counter.hear(ask("dance", reply_to=topic))
        await asyncio.sleep(1)
    assert [one["event"] for one in logged] == ["answer.refused"] * MOST_REFUSED + ["answers.refused"]


# ---- what is refused


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (ask(life=0), "it expired at 20:00:00 UTC and it is 20:00:00 UTC"),
        (ask(life=-1), "it expired at 19:59:59 UTC"),
        (ask(life=601), "10 minutes at most"),
        (ask(retain=True), "the broker had retained it"),
        (ask(topic=PLACE.replace("d-1", "d-2")), "this edge has no device 'd-2' on table 't-1'"),
        (ask("dance"), "no command 'dance'; known: self-test"),
        (ask(args='{"cycles":11}'), "agitate: cycles: must be at most 10"),
        (ask(args='{"cycles":true}'), "agitate: cycles: must be a whole number, and is true or false"),
        (ask(args='{"cyles":1}'), "agitate: there is no 'cyles'"),
        (ask(args="[]"), "agitate: must be a table of names and values"),
        (ask(args='{"command":"launch-ball"}'), "agitate: command: Invalid value 'launch-ball'"),
        (ask(id=""), "not a request"),
        (ask(id="x" * 65), "not a request"),
        (Message(PLACE + "agitate", b"now!"), "not a request: "),
        (Message(PLACE + "agitate", b""), "not a request: "),
        (Message(PLACE + "agitate", b"\xff\xfe"), "not a request: "),
        (Message(PLACE + "agitate", b"[" * 4000), "not a request: "),
        (Message(PLACE + "agitate", b" " * 4097), "a request of 4097 bytes: it may have 4096"),
        (Message(PLACE + "agitate", b'{"id":"a"}'), "'expires' is missing"),
        (Message(PLACE + "agitate", b'{"id":"a","expires":"2026-11-20T20:00:05"}'), "not a request"),
        (Message(PLACE + "agitate", b'{"id":"a","expires":"2026-11-20T20:00:05Z","x":1}'), "there is no 'x'"),
    ],
)
@virtual_time
async def test_command_not_possible_now_is_refused_with_the_reason(message: Message, words: str) -> None:
    counter = Counter()
    [reply] = await counter.hear(message)
    assert reply.status == "refused"
    assert words in reply.text
    assert not counter.book  # nothing was done, nothing kept
    assert counter.wire.said[0][0] == message.topic + "/result"


@virtual_time
async def test_an_expiry_in_another_time_zone_is_the_same_instant() -> None:
    counter = Counter()
    early = Message(PLACE + "agitate", b'{"id":"a","expires":"2026-11-21T04:00:05+08:00"}')
    late = Message(PLACE + "agitate", b'{"id":"b","expires":"2026-11-20T20:00:05+08:00"}')
    assert [reply.status for reply in await counter.hear(early, late)] == ["refused", "done"]
    assert len(counter.place.done) == 1


@virtual_time
async def test_too_many_at_once_are_refused_and_the_others_done() -> None:
    counter = Counter()

    async def slowly(_: Command) -> dict[str, Any]:
        await asyncio.sleep(5)
        return {}

    counter.place.does = slowly
    replies = await counter.hear(*(ask(id=f"n{n}") for n in range(MOST_AT_ONCE + 2)))
    assert [reply.status for reply in replies] == ["refused"] * 2 + ["done"] * MOST_AT_ONCE
    assert replies[0].text == "too many commands at once; ask again"
    assert (await counter.hear(ask(id="later")))[-1].status == "done"


@virtual_time
async def test_so_many_that_one_might_be_forgotten_before_it_is_too_old_are_refused() -> None:
    counter = Counter()
    for n in range(KEPT):
        await counter.hear(ask(id=f"n{n}"))
    refused = (await counter.hear(ask(id="more")))[-1]
    assert (refused.status, refused.text) == ("refused", "too many commands in a short time; let them expire earlier")
    assert len(counter.place.kept) == KEPT
    await asyncio.sleep(11)
    assert (await counter.hear(ask(id="more", life=20)))[-1].status == "done"
    assert len(counter.place.kept) == KEPT
    assert (await counter.hear(ask(id="n0")))[-1].status == "refused"  # forgotten, and too late
    assert (await counter.hear(ask(id="n1")))[-1].status == "done"  # remembered
    assert len(counter.place.done) == KEPT + 1


# ---- said twice


@virtual_time
async def test_duplicate_command_is_answered_twice_and_executed_once() -> None:
    counter = Counter()
    first, second = await counter.hear(ask()), await counter.hear(ask())
    assert first == second[:1]
    assert second[0] == second[1]
    assert len(counter.place.done) == len(counter.place.told) == 1
    await asyncio.sleep(3600)  # too late for a run, not for the answer
    assert (await counter.hear(ask()))[2] == first[0]
    assert len(counter.place.done) == 1


@virtual_time
async def test_repeated_request_is_answered_while_the_command_runs() -> None:
    counter = Counter()

    async def slowly(_: Command) -> dict[str, Any]:
        await asyncio.sleep(5)
        return {}

    counter.place.does = slowly
    await counter.hear(ask(reply_to="a"), ask(reply_to="b"), *[ask() for _ in range(9)])
    assert len(counter.place.done) == 1
    assert [topic for topic, _, _ in counter.wire.said] == [PLACE + "agitate/result"] * commands.MOST_ASKERS
    other = Counter()
    other.place.does = slowly
    await other.hear(ask(reply_to="a"), ask(reply_to="b"))
    assert {topic for topic, _, _ in other.wire.said} == {PLACE + "agitate/result", "a", "b"}


@pytest.mark.parametrize("other", [ask("light"), ask(args='{"cycles":2}')])
@virtual_time
async def test_an_id_belongs_to_one_command(other: Message) -> None:
    counter = Counter()
    replies = await counter.hear(ask(), other)
    refused = next(reply for reply in replies if reply.status == "refused")
    assert refused.text == "the id 'one' was another command's: each needs its own"
    assert counter.place.done == [Agitate(1)]


@virtual_time
async def test_refused_command_may_be_sent_again() -> None:
    counter = Counter()
    assert (await counter.hear(ask("self-test")))[-1].status == "refused"
    counter.commands.rules_are(online=True)
    counter.commands.round_is("t-1", b'{"phase":"idle"}')
    assert (await counter.hear(ask("self-test")))[-1].status == "done"


# ---- between rounds


@pytest.mark.parametrize("command", [ask("self-test"), ask("set-parameter", '{"name":"mode","value":"1"}')])
@pytest.mark.parametrize(
    ("online", "state", "words"),
    [
        (True, b'{"phase":"idle"}', None),
        (True, b'{"phase":"resolved","round":"r"}', None),
        (True, b'{"phase":"paying"}', None),
        (True, b'{"phase":"ended"}', None),
        (True, b'{"phase":"betting"}', "a round is open (betting); ask again between two rounds"),
        (True, b'{"phase":"running"}', "a round is open (running)"),
        (True, b'{"phase":"covered"}', "a round is open (covered)"),
        (True, b'{"phase":"burning"}', "a round is open (burning)"),
        (True, b'{"phase":"suspended"}', "a round is open (suspended)"),
        (True, None, "whether a round is open is unknown; is feltd rules running?"),
        (True, b"", "is unknown"),
        (True, b"\xff", "is unknown"),
        (True, b'{"phase":7}', "is unknown"),
        (False, b'{"phase":"idle"}', "whether a round is open is unknown; is feltd rules running?"),
    ],
)
@virtual_time
async def test_no_parameter_while_a_round_is_open(
    command: Message, online: bool, state: bytes | None, words: str | None
) -> None:
    counter = Counter()
    counter.commands.rules_are(online=online)
    counter.commands.round_is("t-1", b'{"phase":"idle"}' if state is not None else b"{}")
    if state is not None:
        counter.commands.round_is("t-1", state)
    [reply] = await counter.hear(command)
    assert reply.status == ("refused" if words else "done")
    assert (words or "") in reply.text
    assert len(counter.place.done) == (words is None)


@virtual_time
async def test_after_a_new_connection_nobody_knows_whether_a_round_is_open() -> None:
    counter = Counter()
    counter.commands.rules_are(online=True)
    counter.commands.round_is("t-1", b'{"phase":"idle"}')
    counter.connect(Wire())
    counter.commands.rules_are(online=True)
    assert (await counter.hear(ask("self-test")))[-1].status == "refused"


@virtual_time
async def test_another_tables_round_and_a_table_without_rules_do_not_matter() -> None:
    counter = Counter()
    counter.commands.rules_are(online=True)
    counter.commands.round_is("t-1", b'{"phase":"idle"}')
    counter.commands.round_is("t-2", b'{"phase":"betting"}')
    assert (await counter.hear(ask("self-test")))[-1].status == "done"
    assert (await Counter(ruled=False).hear(ask("self-test")))[-1].status == "done"


@virtual_time
async def test_command_allowed_in_a_round_is_executed_in_a_round() -> None:
    counter = Counter()
    counter.commands.rules_are(online=True)
    counter.commands.round_is("t-1", b'{"phase":"covered"}')
    assert (await counter.hear(ask("agitate")))[-1].status == "done"


@virtual_time
async def test_an_old_word_of_the_rules_does_not_say_that_no_round_is_open() -> None:
    """They were away while a round began, or the broker was: what stands there is of before."""
    counter = Counter()
    counter.place.last = ("j", 12)
    counter.commands.rules_are(online=True)
    for old in (b'{"phase":"idle"}', b'{"phase":"idle","heard":{"j":11,"other":90}}'):
        counter.commands.round_is("t-1", old)
        [*_, reply] = await counter.hear(ask("self-test", id=old.decode()))
        assert (reply.status, "has not processed all events" in reply.text) == ("refused", True), reply
        assert not counter.place.done
    counter.commands.round_is("t-1", b'{"phase":"idle","heard":{"j":12}}')
    [*_, reply] = await counter.hear(ask("self-test", id="two"))
    assert reply.status == "done"


@pytest.mark.parametrize(("then", "status"), [("idle", "done"), ("betting", "refused")])
@virtual_time
async def test_rules_that_are_a_moment_behind_are_waited_for(then: str, status: str) -> None:
    counter = Counter()
    counter.place.last = ("j", 12)
    counter.commands.rules_are(online=True)
    counter.commands.round_is("t-1", b'{"phase":"idle","heard":{"j":10}}')
    later = b'{"phase":"%s","heard":{"j":12}}' % then.encode()
    asyncio.get_running_loop().call_later(0.4, counter.commands.round_is, "t-1", later)
    [reply] = await counter.hear(ask("self-test"))
    assert reply.status == status
    assert len(counter.place.done) == (status == "done")


@virtual_time
async def test_command_that_expired_while_waiting_for_the_rules_is_not_executed() -> None:
    counter = Counter()
    counter.place.last = ("j", 12)
    counter.commands.rules_are(online=True)
    counter.commands.round_is("t-1", b'{"phase":"idle","heard":{"j":10}}')
    later = b'{"phase":"idle","heard":{"j":12}}'
    asyncio.get_running_loop().call_later(0.4, counter.commands.round_is, "t-1", later)
    [reply] = await counter.hear(ask("self-test", life=0.3))
    assert (reply.status, "it expired at" in reply.text) == ("refused", True)
    assert not counter.place.done


@pytest.mark.parametrize("name", ["agitate", "launch-ball"])
@virtual_time
async def test_command_that_expired_during_a_disk_stall_is_not_executed(name: str) -> None:
    """What is written before it is done may take seconds, and a ball is not launched then."""
    counter = Counter(ruled=False)
    keep = counter.commands._keep

    def slowly(kept: Mapping[str, bytes]) -> None:
        keep(kept)
        counter.commands._now = lambda: NOW + timedelta(seconds=4)

    counter.commands._keep = slowly
    [reply] = await counter.hear(ask(name, life=2))
    assert (reply.status, "it expired at" in reply.text) == ("refused", True)
    assert not counter.place.done


@pytest.mark.parametrize("name", RULESETS)
def test_a_fresh_table_of_every_game_is_between_rounds(name: str) -> None:
    ruleset: Any = RULESETS[name](RULESETS[name].Options())
    assert ruleset.view(ruleset.start("t-1")).phase in commands.BETWEEN_ROUNDS


def test_lasting_change_of_a_device_waits_for_the_end_of_the_round() -> None:
    between = {name for name, kind in COMMANDS.items() if kind.between_rounds}
    assert {"self-test", "set-parameter", "power", "empty-shuffler"} <= between
    assert not {"agitate", "restart-spin", "stop-timer"} & between


# ---- how it ends


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (CommandRefused("the dome is open"), "refused", "the dome is open"),
        (CommandFailed("no answer in 2.1 s"), "failed", "no answer in 2.1 s"),
        (CommandFailed("it said \udcff"), "failed", "it said \\udcff"),
    ],
)
@virtual_time
async def test_a_refusal_and_a_failure_are_told_as_such(error: Exception, status: str, words: str) -> None:
    counter = Counter()

    async def never(_: Command) -> dict[str, Any]:
        raise error

    counter.place.does = never
    [reply] = await counter.hear(ask())
    assert (reply.status, reply.text) == (status, words)
    assert counter.place.told == [DeviceCommanded("agitate", "one", reply.status, words)]


@virtual_time
async def test_a_driver_that_never_ends_is_given_up() -> None:
    counter = Counter()

    async def forever(_: Command) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    counter.place.does = forever
    [reply] = await counter.hear(ask())
    assert (reply.status, reply.text) == ("failed", "no end in 600 s")
    assert counter.commands.at_work == 0


@pytest.mark.parametrize("said", [{"x": object()}, {"x": "\udcff"}])
@virtual_time
async def test_command_that_cannot_be_journaled_fails_without_a_crash(said: dict[str, Any]) -> None:
    counter = Counter()

    async def strange(_: Command) -> dict[str, Any]:
        return said

    counter.place.does = strange
    [reply] = await counter.hear(ask())
    assert reply.status == "failed"
    assert "the answer cannot be sent" in reply.text
    assert counter.place.told[0].status == "failed"


@virtual_time
async def test_a_broker_lost_meanwhile_breaks_nothing_off() -> None:
    """The command ends and is told; who asks again over the new connection has the answer, without a second run."""
    counter = Counter()

    async def slowly(_: Command) -> dict[str, Any]:
        await asyncio.sleep(5)
        return {}

    counter.place.does = slowly
    lost = counter.wire
    async with asyncio.TaskGroup() as group:
        await counter.commands.take(ask(), group)
        await asyncio.sleep(1)
        lost.lost = True
        counter.commands.disconnected()
        await asyncio.sleep(9)
        assert [told.status for told in counter.place.told] == ["done"]
        assert not lost.said
        counter.connect(Wire())
        await counter.commands.take(ask(), group)
    assert [reply.status for reply in counter.wire.replies] == ["done"]
    assert len(counter.place.done) == 1


@virtual_time
async def test_command_is_answered_over_the_new_connection_after_a_lost_broker() -> None:
    counter = Counter()

    async def slowly(_: Command) -> dict[str, Any]:
        await asyncio.sleep(5)
        return {}

    counter.place.does = slowly
    async with asyncio.TaskGroup() as group:
        await counter.commands.take(ask(reply_to="me", correlation=b"c"), group)
        await asyncio.sleep(1)
        counter.commands.disconnected()
        await asyncio.sleep(1)
        counter.connect(Wire())
    assert [(topic, correlation) for topic, _, correlation in counter.wire.said] == [
        (PLACE + "agitate/result", b""),
        ("me", b"c"),
    ]


@pytest.mark.parametrize("trouble", ["lost", "stuck"])
@virtual_time
async def test_a_broker_that_takes_no_answer_keeps_no_command_open(trouble: str) -> None:
    counter = Counter()
    setattr(counter.wire, trouble, True)
    await counter.hear(ask())
    assert [told.status for told in counter.place.told] == ["done"]
    assert counter.commands.at_work == 0
    assert not counter.commands._askers


# ---- over a restart


@virtual_time
async def test_the_next_process_knows_the_answers_of_the_last() -> None:
    first = Counter()
    await first.hear(ask(), ask("light", '{"lamps":["a"]}', id="two"))
    second = Counter(kept=first.place.kept)
    second.commands.recover()
    assert await second.hear(ask()) == first.wire.replies[:1]
    assert second.book == []
    assert (await second.hear(ask(id="three")))[-1].status == "done"
    assert len(second.place.kept) == 3  # none took the place of another


@virtual_time
async def test_command_interrupted_by_a_crash_is_failed_and_not_repeated() -> None:
    first = Counter()

    async def forever(_: Command) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    first.place.does = forever

    async def process() -> None:
        async with asyncio.TaskGroup() as group:
            await first.commands.take(ask(), group)
            await asyncio.sleep(3600)

    running = asyncio.create_task(process())
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.wait([running])
    assert first.book == ["kept", "acts"]

    second = Counter(kept=first.place.kept)
    second.commands.recover()
    assert [(told.id, told.status) for told in second.place.told] == [("one", "failed")]
    assert "whether it acted" in second.place.told[0].text
    [reply] = await second.hear(ask())
    assert (reply.status, reply.text) == ("failed", second.place.told[0].text)
    assert not second.place.done

    third = Counter(kept=second.place.kept)
    third.commands.recover()
    assert third.book == []  # told once


@virtual_time
async def test_a_command_of_a_device_that_is_gone_or_of_another_version_is_no_trouble() -> None:
    case = CommandRecord(4, "t-9", "d-9", "x", NOW, Agitate(1))
    kept = {f"{KEY}t-9/4": msgspec.json.encode(case), f"{KEY}t-9/5": b'{"command":{"command":"fly"}}'}
    counter = Counter(kept=kept)
    counter.commands.recover()
    assert counter.book == ["kept"]
    read = msgspec.json.decode(counter.place.kept[f"{KEY}t-9/4"], type=CommandRecord)
    assert read.reply is not None
    assert read.reply.status == "failed"


@pytest.mark.parametrize("kind", COMMANDS.values(), ids=COMMANDS)
def test_every_command_survives_being_kept(kind: type[Command]) -> None:
    values = {"name": "mode", "value": "1", "what": "x", "on": True, "seconds": 5, "amount": 1, "text": "x"}
    wanted = {field.encode_name for field in msgspec.structs.fields(kind) if field.required}
    command = decode_command(name_of(kind), msgspec.json.encode({name: values[name] for name in wanted}))
    case = CommandRecord(1, "t-1", "d-1", "x", NOW, command, Reply("x", name_of(kind), "done"))
    assert msgspec.json.decode(msgspec.json.encode(case), type=CommandRecord) == case


# ---- the driver's end


async def _forever(_: Command) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


@virtual_time
async def test_a_command_ends_with_the_session_of_its_driver() -> None:
    ended = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(2, ended.set_result, None)
    with pytest.raises(CommandFailed, match="lost meanwhile"):
        await obeyed(_forever, Agitate(), ended)
    assert asyncio.get_running_loop().time() == 2


@virtual_time
async def test_a_lost_link_is_a_failure_and_a_result_is_a_result() -> None:
    async def lost(_: Command) -> dict[str, Any]:
        raise LinkLost("hung up")

    async def leaks(_: Command) -> dict[str, Any]:
        raise asyncio.CancelledError

    async def done(_: Command) -> dict[str, Any]:
        return {"a": 1}

    def never() -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    with pytest.raises(CommandFailed, match="the device was lost meanwhile: hung up"):
        await obeyed(lost, Agitate(), never())
    with pytest.raises(CommandFailed, match="the driver cancelled it"):
        await obeyed(leaks, Agitate(), never())
    assert await obeyed(done, Agitate(), never()) == {"a": 1}


@virtual_time
async def test_a_driver_that_complains_while_it_is_ended_is_not_heard_of() -> None:
    async def sulks(_: Command) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            raise DeviceRefused("too late")

    complaints: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    ended = loop.create_future()
    loop.call_later(1, ended.set_result, None)
    with pytest.raises(CommandFailed, match="lost meanwhile"):
        await obeyed(sulks, Agitate(), ended)
    assert not complaints


class Obedient:
    """A driver that obeys at once."""

    name = "obedient"
    commands = (Agitate,)

    async def obey(self, command: Command) -> dict[str, Any]:
        if command == Agitate(9):
            raise ValueError("nine \udcff")
        return {"did": name_of(command)}


CONFIG = """
[site]
name = "site"
[edge]
name = "edge-1"
journal = "{path}/edge.db"
[rules]
insecure = true
journal = "{path}/rules.db"
[mqtt]
port = {port}
[[table]]
name = "t-1"
[[table.device]]
name = "d-1"
driver = "fdl_shaker"
url = "serial://{path}/tty"
"""


def config_at(path: Path, port: int = 1883) -> Config:
    (path / "feltd.toml").write_text(CONFIG.format(path=path, port=port), encoding="utf-8")
    return parse((path / "feltd.toml").read_text(encoding="utf-8"))


def online() -> Sighting:
    return Sighting(DeviceOnline(continuous=True), b"", Chunk(b"", NOW, 0.0))


@virtual_time
async def test_a_post_obeys_only_while_its_driver_has_met_the_device(tmp_path: Path) -> None:
    """What the board remembers from before a restart is not enough."""
    journal = Journal(tmp_path / "edge.db")
    post = Edge(config_at(tmp_path), journal).sessions[0]
    with pytest.raises(CommandRefused, match="the device is offline: not connected yet"):
        await post.obey(Agitate())
    await post.emit([online()])
    journal.close()

    journal = Journal(tmp_path / "edge.db")
    post = Edge(config_at(tmp_path), journal).sessions[0]
    assert post.online
    post.driven(cast("Any", Obedient()))
    with pytest.raises(CommandRefused, match="offline"):
        await post.obey(Agitate())
    await post.emit([online()])
    assert await post.obey(Agitate()) == {"did": "agitate"}
    with pytest.raises(CommandRefused, match="does not take this command; it takes: agitate"):
        await post.obey(SelfTest())
    post.driven(None)
    with pytest.raises(CommandRefused, match="offline"):
        await post.obey(Agitate())
    journal.close()


@virtual_time
async def test_a_bug_of_a_driver_is_a_failure_of_the_command_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "edge.db")
    edge = Edge(config_at(tmp_path), journal, now=lambda: NOW)
    wire = Wire()
    edge.commands.connected(cast("Session", wire))
    post = edge.sessions[0]
    post.driven(cast("Any", Obedient()))
    await post.emit([online()])
    async with asyncio.TaskGroup() as group:
        await edge.commands.take(ask(args='{"cycles":9}'), group)
    [reply] = wire.replies
    assert (reply.status, reply.text) == ("failed", "the driver failed: ValueError: nine \\udcff")
    last = journal.range("t-1", 1, 99)[-1]
    assert (last.type, last.device, last.wire) == ("device.commanded", "d-1", b'{"command":"agitate","cycles":9}')
    assert json.loads(last.data) == {
        "command": "agitate", "id": "one", "status": "failed", "text": "the driver failed: ValueError: nine \\udcff",
    }  # fmt: skip
    journal.close()


@virtual_time
async def test_a_disk_that_fails_in_a_command_is_no_bug_of_the_driver(tmp_path: Path) -> None:
    """What the driver told was not written: the edge ends, and does not go on without it."""
    journal = Journal(tmp_path / "edge.db")
    post = Edge(config_at(tmp_path), journal, now=lambda: NOW).sessions[0]

    class Full(Obedient):
        async def obey(self, command: Command) -> dict[str, Any]:
            raise BadJournal(f"no room for {name_of(command)}")

    post.driven(cast("Any", Full()))
    await post.emit([online()])
    with pytest.raises(BadJournal):
        await post.obey(Agitate(1))
    journal.close()


@virtual_time
async def test_a_command_does_not_wait_for_the_past_of_its_table(tmp_path: Path) -> None:
    """Nor does it say that the device has told its past."""
    journal = Journal(tmp_path / "edge.db")
    post = Edge(config_at(tmp_path), journal).sessions[0]
    await post.emit([online()], b"memory")
    journal.close()
    journal = Journal(tmp_path / "edge.db")
    edge = Edge(config_at(tmp_path), journal)
    edge.sessions[0].commanded(DeviceCommanded("agitate", "x", "done"), b"{}", {})
    assert edge.ordering["t-1"].behind == {"d-1"}
    assert journal.last("t-1") == 2
    journal.close()


# ---- words typed at a terminal


@pytest.mark.parametrize(
    ("name", "said", "command"),
    [
        ("agitate", {"cycles": "3"}, Agitate(3)),
        ("set-parameter", {"name": "mode", "value": "5", "store": "true"}, SetParameter("mode", "5", True)),
        ("set-parameter", {"name": "1", "value": "true"}, SetParameter("1", "true")),
        ("light", {"lamps": "big, small"}, Light(("big", "small"))),
        ("light", {"lamps": "7"}, Light(("7",))),
        ("light", {"lamps": ""}, Light()),
        ("start-timer", {"seconds": "30"}, StartTimer(30)),
        ("self-test", {}, SelfTest()),
    ],
)
def test_typed_arguments_are_converted_by_the_fields_of_the_command(
    name: str, said: dict[str, str], command: Command
) -> None:
    assert decode_command(name, msgspec.json.encode(typed(name, said))) == command


@pytest.mark.parametrize("said", [{"cycles": "many"}, {"cycles": "0"}, {"cycles": ""}, {"x": "1"}, {"cycles": "null"}])
def test_wrongly_typed_arguments_are_refused(said: dict[str, str]) -> None:
    with pytest.raises(BadCommand, match=r"^agitate: "):
        decode_command("agitate", msgspec.json.encode(typed("agitate", said)))


# ---- the published contract


def test_the_document_has_every_command_its_fields_and_the_reply() -> None:
    document = json.loads((Path(__file__).parents[2] / "docs/reference/asyncapi.json").read_text(encoding="utf-8"))
    channel = document["channels"]["command"]
    assert channel["address"] == "felt/1/{site}/table/{table}/device/{device}/cmd/{command}"
    assert set(channel["messages"]) == {f"command.{name}" for name in COMMANDS}
    assert document["operations"]["command"]["action"] == "receive"
    assert document["operations"]["commandReply"]["action"] == "send"
    schemas = document["components"]["schemas"]
    for kind in COMMANDS.values():
        assert set(schemas[kind.__name__]["properties"]) == set(kind.__struct_fields__)
        assert "command" not in schemas[kind.__name__]["required"]
    assert set(schemas["Request"]["properties"]) == set(Request.__struct_fields__)
    assert set(schemas["Reply"]["properties"]) == set(Reply.__struct_fields__)


# ---- with everything real

mosquitto = pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")


class Bench:
    """A shaker on a tty, an edge, a broker, and Debian's own client."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broker = Broker(path)
        self.shaker = make("fdl_shaker", 3)
        self.pace = Pace(10.0)  # nobody waits two seconds for an agitation
        self.socket = Socket(self.shaker, Pty(path / "tty"), self.pace)
        self.config: Config
        self.edge: Edge

    def hand(self, act: str) -> None:
        self.shaker.acts()[act](self.pace.now())
        self.socket.stir()

    @property
    def agitations(self) -> int:
        return sum(row.type == "dice.agitated" for row in self.rows())

    @property
    def post(self) -> DeviceSession:
        return self.edge.sessions[0]

    def rows(self) -> list[Any]:
        return self.edge.journal.range("t-1", 1, 10_000)

    def commanded(self) -> list[tuple[str, str]]:
        told = [json.loads(row.data) for row in self.rows() if row.type == "device.commanded"]
        return [(one["id"], one["status"]) for one in told]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """One process of the edge that has met the shaker; `self.edge` is it."""
        async with self.connected():
            await self.until(lambda: self.edge.connected and self.post.online and self.post._online_this_session)
            yield

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """One process of the edge that has met the broker."""
        journal = Journal(self.path / "edge.db")
        self.edge = Edge(self.config, journal)
        task = asyncio.create_task(self.edge.run())
        try:
            await self.until(lambda: self.edge.connected)
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            journal.close()

    async def until(self, come: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not come():  # noqa: ASYNC110 - in another process, on a tty or in the journal
                await asyncio.sleep(0.02)

    async def client(self, program: str, *words: str) -> tuple[int | None, str]:
        found = shutil.which(program)
        assert found is not None
        process = await asyncio.create_subprocess_exec(
            found, "-p", str(self.broker.port), "-V", "5", *words, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        return process.returncode, out.decode()

    async def subscribed(self, topic: str, count: int = 1) -> asyncio.Task[str]:
        """What mosquitto_sub prints of so many messages. It has subscribed: it was given a retained one."""
        await self.client("mosquitto_pub", "-q", "1", "-r", "-t", "reply/subscribed", "-m", "subscribed")
        program = shutil.which("mosquitto_sub")
        assert program is not None
        words = ("-t", topic, "-t", "reply/subscribed", "-C", str(count + 1), "-W", f"{PATIENCE:.0f}")
        process = await asyncio.create_subprocess_exec(
            program, "-p", str(self.broker.port), "-V", "5", *words, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"subscribed\n"

        async def following() -> str:
            out, _ = await process.communicate()
            assert process.returncode == 0, out
            return out.decode()

        return asyncio.create_task(following())

    async def reported(self, kind: str) -> None:
        """Wait until the shaker has reported it."""
        await self.until(lambda: kind in [row.type for row in self.rows()])

    async def rr(self, name: str, request: dict[str, Any]) -> Reply:
        """MQTT 5's request and response, by mosquitto_rr."""
        topic = f"{PLACE}{name}"
        code, out = await self.client(
            "mosquitto_rr", "-t", topic, "-e", "answers/1", "-W", f"{PATIENCE:.0f}", "-m", json.dumps(request)
        )
        assert code == 0, out
        return msgspec.json.decode(out, type=Reply)

    async def feltd(self, *words: str) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "daemon.cli", "command", "-c", str(self.path / "feltd.toml"), *words,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()


def soon(seconds: float = PATIENCE) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.broker.start()
    made.config = config_at(tmp_path, made.broker.port)
    living = asyncio.create_task(made.socket.live())
    try:
        yield made
    finally:
        living.cancel()
        await asyncio.wait([living])
        await made.broker.stop()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("t-1/d-1", "agitate", "cycles=11"), "Error: agitate: cycles: must be at most 10\n"),
        (("t-1/d-1", "agitate", "cycles"), "Error: cycles: write KEY=VALUE\n"),
        (("t-1/d-1", "agitate", "cycles=1", "cycles=2"), "cycles is there twice, as '1' and '2'; write it once\n"),
        (("t-1/d-9", "agitate"), "; known: t-1/d-1\n"),
    ],
)
def test_impossible_command_is_refused_before_a_connection_is_made(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    config_at(tmp_path, free_port())
    result = CliRunner().invoke(main, ["command", "-c", str(tmp_path / "feltd.toml"), *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith(said)


@pytest.mark.system
@mosquitto
async def test_agitate_is_done_with_the_dome_on_and_refused_with_it_off(bench: Bench) -> None:
    async with bench.running():
        bench.hand("cover")
        await bench.reported("dice.covered")
        listening = await bench.subscribed(f"{PLACE}agitate/result")
        reply = await bench.rr("agitate", {"id": "a", "expires": soon(), "args": {"cycles": 1}})
        assert reply.status == "done", reply
        assert msgspec.json.decode(await listening, type=Reply) == reply  # on both topics
        await bench.until(lambda: bench.agitations == 1)

        bench.hand("uncover")
        await bench.reported("dice.uncovered")
        reply = await bench.rr("agitate", {"id": "b", "expires": soon()})
        assert (reply.status, reply.text) == ("refused", "the dome is open: cover the dice first")
        stale = await bench.rr("agitate", {"id": "c", "expires": soon(-1)})
        assert stale.status == "refused"
        assert stale.text.startswith("it expired at ")

        code, out, err = await bench.feltd("t-1/d-1", "light", "lamps=reading")
        assert (code, out, err) == (0, "t-1/d-1 light: done\n", "")
        code, out, err = await bench.feltd("t-1/d-1", "agitate")
        assert (code, out, err) == (1, "t-1/d-1 agitate: refused the dome is open: cover the dice first\n", "")
        code, out, err = await bench.feltd("t-1/d-1", "launch-ball")
        assert (code, err) == (1, "")
        assert "it takes: agitate, light, self-test" in out
        assert [status for _, status in bench.commanded()] == ["done", "refused", "done", "refused", "refused"]
        assert bench.agitations == 1


async def test_a_response_topic_that_the_edge_may_not_write_costs_it_no_session(tmp_path: Path) -> None:
    """The answer stands under the command's own topic, each time."""
    bench = Bench(tmp_path)
    result = f"{PLACE}agitate/result"
    with capture_logs() as logged:
        async with Exact(may=lambda topic: topic.startswith(("felt/", "reply/"))).running() as broker:
            bench.config = config_at(tmp_path, broker.port)
            async with bench.connected():
                for n in range(3):
                    request = json.dumps({"id": f"n{n}", "expires": soon()}).encode()
                    for reply_to in ("apps/pit/answers", "reply/pit"):
                        broker.ask(f"{PLACE}agitate", request, reply_to)
                    await bench.until(lambda n=n: [topic for topic, _ in broker.said].count("reply/pit") == n + 1)  # type: ignore[misc]
                assert bench.edge.connected
            assert broker.connections == 3  # one tries the broker, another hears requests for replays
            assert broker.refused == ["apps/pit/answers"]
            answers = [msgspec.json.decode(payload, type=Reply) for topic, payload in broker.said if topic == result]
            assert [answer.id for answer in answers] == ["n0", "n0", "n1", "n1", "n2", "n2"]
    words = [one["event"] for one in logged]
    assert words.count("answer.refused") == 1
    assert "broker.lost" not in words


async def limited_bench(folder: Path, monkeypatch: pytest.MonkeyPatch, rights: str) -> Bench:
    """With a running mosquitto that gives every user these rights and no others."""
    acl = folder / "acl"
    acl.write_text(rights)
    acl.chmod(0o600)
    monkeypatch.setattr(broker_module, "_MOSQUITTO", f"{broker_module._MOSQUITTO}acl_file {acl}\n")
    bench = Bench(folder)
    await bench.broker.start()
    return bench


@pytest.mark.system
@mosquitto
async def test_mosquitto_ends_one_session_at_most_for_a_response_topic_that_the_edge_may_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 12's does so itself, where its queues have no limit; it is not asked again."""
    bench = await limited_bench(tmp_path, monkeypatch, "topic readwrite felt/#\ntopic readwrite reply/#\n")
    bench.config = config_at(tmp_path, bench.broker.port)
    sessions: list[Session] = []
    connected = CommandService.connected

    def counted(desk: CommandService, session: Session) -> None:
        sessions.append(session)
        connected(desk, session)

    monkeypatch.setattr(CommandService, "connected", counted)
    try:
        with capture_logs() as logged:
            async with bench.connected():
                for n in range(4):
                    listening = await bench.subscribed(f"{PLACE}agitate/result")
                    await bench.client(
                        *("mosquitto_pub", "-t", f"{PLACE}agitate", "-D", "publish", "response-topic", "apps/pit"),
                        *("-m", json.dumps({"id": f"n{n}", "expires": soon()})),
                    )
                    assert msgspec.json.decode(await listening, type=Reply).id == f"n{n}"
                    await bench.until(lambda: "answer.refused" in [one["event"] for one in logged])
                    await asyncio.sleep(0.3)  # a second one would come now
                    await bench.until(lambda: bench.edge.connected)
                    assert [one["event"] for one in logged].count("answer.refused") == 1
                    assert len(sessions) <= 2
    finally:
        await bench.broker.stop()


@pytest.mark.system
@mosquitto
async def test_a_broker_killed_while_a_command_runs_and_an_edge_restarted_after(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends and is in the journal; asked again with the same id the answer comes, without a second run."""
    request = {"id": "once", "expires": soon(60), "args": {"cycles": 1}}
    runs = 0
    go = asyncio.Event()
    obey = DeviceSession.obey

    async def held(post: DeviceSession, command: Command) -> dict[str, Any]:
        nonlocal runs
        runs += 1
        await go.wait()
        return await obey(post, command)

    monkeypatch.setattr(DeviceSession, "obey", held)
    async with bench.running():
        bench.hand("cover")
        await bench.reported("dice.covered")
        await bench.client("mosquitto_pub", "-q", "1", "-t", f"{PLACE}agitate", "-m", json.dumps(request))
        await bench.until(lambda: runs == 1)
        await bench.broker.kill()
        await bench.until(lambda: not bench.edge.connected)
        go.set()
        await bench.until(lambda: bench.commanded() == [("once", "done")])
        await bench.broker.start()
        await bench.until(lambda: bench.edge.connected)
        assert (await bench.rr("agitate", request)).status == "done"
    async with bench.running():
        assert (await bench.rr("agitate", request)).status == "done"
        other = {**request, "args": {"cycles": 2}}
        assert (await bench.rr("agitate", other)).text == "the id 'once' was another command's: each needs its own"
        await bench.until(lambda: bench.agitations == 1)
        assert bench.commanded() == [("once", "done")]
    assert runs == 1


@pytest.mark.system
@mosquitto
async def test_a_command_that_the_end_of_the_edge_broke_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"id": "cut", "expires": soon(60)}
    begun = asyncio.Event()

    async def held(*_: Any) -> dict[str, Any]:
        begun.set()
        await asyncio.Event().wait()
        return {}

    with monkeypatch.context() as patched:
        patched.setattr(DeviceSession, "obey", held)
        async with bench.running():
            await bench.client("mosquitto_pub", "-q", "1", "-t", f"{PLACE}agitate", "-m", json.dumps(request))
            await asyncio.wait_for(begun.wait(), PATIENCE)
    async with bench.running():
        assert bench.commanded() == [("cut", "failed")]
        reply = await bench.rr("agitate", request)
        assert (reply.status, reply.text) == ("failed", commands.BROKEN_OFF)
        assert bench.agitations == 0


@pytest.mark.system
@mosquitto
async def test_a_command_published_while_the_edge_was_away_is_never_run(bench: Bench) -> None:
    """Retained or not: a stale agitate does not run after an outage."""
    request = json.dumps({"id": "stale", "expires": soon(60)})
    async with bench.running():
        bench.hand("cover")
        await bench.reported("dice.covered")
    await bench.client("mosquitto_pub", "-q", "1", "-t", f"{PLACE}agitate", "-m", request)
    await bench.client("mosquitto_pub", "-q", "1", "-r", "-t", f"{PLACE}agitate", "-m", request)
    listening = await bench.subscribed(f"{PLACE}agitate/result")
    async with bench.running():
        reply = msgspec.json.decode(await listening, type=Reply)
        assert reply.status == "refused"
        assert reply.text.startswith("the broker had retained it")
        assert bench.commanded() == []
        assert bench.agitations == 0


async def test_without_an_edge_or_a_broker_the_command_line_says_so(tmp_path: Path) -> None:
    config_at(tmp_path, 1)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "daemon.cli", "command", "-c", str(tmp_path / "feltd.toml"), "--wait", "5",
        "t-1/d-1", "agitate", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert err.decode().endswith(
        "Error: the broker 127.0.0.1:1: Connection refused; check that it runs, and host, port and users "
        f"in {tmp_path}/feltd.toml\n"
    )


@pytest.mark.system
@mosquitto
async def test_command_that_the_broker_refuses_is_said_at_once_and_not_called_possibly_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of another program may read all and command nothing."""
    bench = await limited_bench(tmp_path, monkeypatch, "topic read felt/#\n")
    config_at(tmp_path, bench.broker.port)
    try:
        code, out, err = await bench.feltd("t-1/d-1", "agitate", "--wait", "10")
    finally:
        await bench.broker.stop()
    assert (code, out) == (1, "")
    assert err == (
        f"Error: the broker 127.0.0.1:{bench.broker.port}: it refuses {PLACE}agitate: Not authorized; "
        f"check that it runs, and host, port and users in {tmp_path}/feltd.toml\n"
    )


def _catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal by now."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (number - 1) & 1)


async def test_interrupt_while_waiting_prints_no_traceback(tmp_path: Path) -> None:
    config_at(tmp_path, 1)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "daemon.cli", "command", "-c", str(tmp_path / "feltd.toml"), "--wait", "60",
        "t-1/d-1", "agitate", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    try:
        while not _catches(process.pid, signal.SIGTERM):  # noqa: ASYNC110 - another process tells of nothing else
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 1
    assert b"Traceback" not in err
    assert out == b""
