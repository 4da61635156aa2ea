"""One poisoned value in any field of any document of the topic tree: no process ends, and what is written can be read.

The documents are those that the edge and the rules publish themselves, and an event of every type. Whatever passes the
door is used by the real rules, edge and console; then everything is closed, opened again, recalled, exported, put into
a bundle and verified.
"""

import asyncio
import contextlib
import json
import random
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import Console, opened
from console_tour import ask, fragments, pages
from helpers import START, at_length, script
from msgspec import Struct, inspect
from msgspec.structs import replace
from poison import TIMES, look_into

from daemon.broker.session import BrokerLost, Message
from daemon.config.model import Config, Keeping, parse
from daemon.console.live import Viewer
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.journal.retention import take_up
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from daemon.journal.verify import verify
from drivers.driver import Chunk, Sighting
from protocols.contract.commands import COMMANDS
from protocols.contract.documents import TraceLine
from protocols.contract.events import (
    EVENT_TYPES,
    DeviceFaulted,
    DeviceOnline,
    DisplayShown,
    Event,
    decode_data,
    encode_data,
    type_of,
)
from protocols.contract.topics import (
    LONGEST_DOCUMENT,
    decode_wire,
    device_topic,
    edge_topic,
    encode_envelope,
    table_topic,
)
from rules import RULESETS
from tests.rules.test_rulesets import ROUNDS

POISONS: tuple[bytes, ...] = (
    *(str(one).encode() for one in (-1, 0, 2**53, 2**63, 2**64, -(2**63) - 1, 10**25, 10**400)),
    *(b"1.5", b"-0.0", b"1e308", b"1e400", b"NaN", b"-Infinity", b"1" + b"0" * 6000),
    *(b'""', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\\u202e\\ufeff"'),
    *(b'"' + b"x" * 1900 + b'"', b'"' + b"\\u0001" * 20_000 + b'"', b'"' + b"x" * 2_000_000 + b'"'),
    *(b"null", b"true", b"[]", b"{}", b"[[]]", b'{"":{"":[]}}', b'[null,1,"x",{}]'),
    *(b"[" * 40 + b"]" * 40, b"[" * 900 + b"]" * 900, b"[" * 100_000 + b"]" * 100_000),
    *(b'{"a":' * 900 + b"1" + b"}" * 900, b"[" + b"1," * 100_000 + b"1]"),
    b"{" + b",".join(b'"%d":%d' % (n, n) for n in range(20_000)) + b"}",
    *(f'"{time}"'.encode() for time in TIMES),
    *(b'"2026-11-20T20:00:01+23:59"', b'"2026-11-20T20:00:01.9999999Z"', b'"../../etc/passwd"', b'"+/#"', b'"%s%n{0}"'),
)
HERE = "\x01here\x01"
CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-7"
journal = "{path}/edge.db"
[rules]
insecure = true
journal = "{path}/rules.db"
[console]
journal = "{path}/console.db"
"""
TABLES = {f"t-{number}": name for number, name in enumerate(sorted(RULESETS))}


def config_in(folder: Path) -> Config:
    device = '[[table.device]]\nname = "d-1"\ndriver = "cammegh_ss2"\nurl = "tcp://127.0.0.1:4{n:03}"\n'
    tables = [
        f'[[table]]\nname = "{table}"\nruleset = "{name}"\n' + device.format(n=n)
        for n, (table, name) in enumerate(TABLES.items())
    ]
    return parse(CONFIG.format(path=folder) + "".join(tables))


class Document(Struct, frozen=True):
    """A good document, and every place in it where a value stands."""

    topic: str
    value: Any

    def places(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = [()]
        waiting: list[tuple[tuple[Any, ...], Any]] = [((), self.value)]
        while waiting:
            at, value = waiting.pop()
            for key, one in value.items() if isinstance(value, dict) else enumerate(value):
                found.append((*at, key))
                if isinstance(one, dict | list):
                    waiting.append(((*at, key), one))
        return found

    def good(self) -> Message:
        return Message(self.topic, json.dumps(self.value).encode())

    def poisoned(self, place: int, poison: bytes) -> Message:
        *way, last = (0, *(places := self.places())[place % len(places)])
        whole = [json.loads(json.dumps(self.value))]
        inner: Any = whole
        for key in way:
            inner = inner[key]
        inner[last] = HERE
        return Message(self.topic, json.dumps(whole).encode().replace(json.dumps(HERE).encode(), poison)[1:-1])


def sample(kind: inspect.Type) -> Any:
    """A value that the annotation allows."""
    match kind:
        case inspect.Metadata(type=described):
            return sample(described)
        case inspect.BoolType():
            return True
        case inspect.IntType(ge=ge):
            return max(ge or 0, 1)
        case inspect.StrType(pattern=pattern):
            return next(one for one in ("AS", "17", "pool", "0" * 32) if pattern is None or re.search(pattern, one))
        case inspect.LiteralType(values=choices):
            return choices[0]
        case inspect.UnionType(types=types):
            return sample(next(one for one in types if not isinstance(one, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item):
            return [sample(item)]
        case inspect.DictType(key_type=key, value_type=value):
            return {sample(key): sample(value)}
        case inspect.StructType(fields=fields):
            return {field.encode_name: sample(field.type) for field in fields}
        case _:
            raise AssertionError(f"no value for {kind}")


def sampled(kind: type[Struct]) -> dict[str, Any]:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return {field.encode_name: sample(field.type) for field in described.fields}


SAMPLES: list[Event] = [decode_data(name, msgspec.json.encode(sampled(kind))) for name, kind in EVENT_TYPES.items()]


def event(table: str, seq: int, event: Event) -> Document:
    [one] = script([event], table, "d-1")
    topic = device_topic("lisboa", table, "d-1", f"event/{type_of(event)}")
    payload = encode_envelope(replace(one, id=f"edge-7:{table}:{seq}", seq=seq, journal="A", bootid="b"))
    return Document(topic, json.loads(payload))


class Done(Exception):
    """All was said."""


class Said:
    """A broker that says what it is given, and keeps what it is told."""

    room = True

    def __init__(self, messages: list[Message]) -> None:
        self.left = messages
        self.heard: list[tuple[str, bytes]] = []

    async def messages(self, at_once: object = None) -> list[Message]:
        del at_once
        if not self.left:
            raise Done
        return [self.left.pop(0)]

    async def subscribe(self, *_: str) -> None:
        raise Done

    async def read_retained(self, *_: str) -> None:
        raise BrokerLost("not authorized")

    async def publish(self, topic: str, payload: bytes, **_: Any) -> None:
        self.heard.append((topic, payload))


async def hear(consumer: Consumer, messages: list[Message]) -> list[tuple[str, bytes]]:
    """What the rules publish while they hear `messages`."""
    session = Said(messages)
    try:
        await consumer._receive(session)  # type: ignore[arg-type]
    except Done:
        return session.heard
    raise AssertionError


async def obey(edge: Edge, messages: list[Message]) -> list[tuple[str, bytes]]:
    """The same of the edge."""
    session = Said(messages)
    edge.commands.connected(session)  # type: ignore[arg-type]
    try:
        async with asyncio.TaskGroup() as group:
            edge._group = group
            await edge._commands(session)  # type: ignore[arg-type]
    except* Done:
        pass
    return session.heard


@cache
def documents() -> tuple[Document, ...]:
    """One of every kind that the edge and the rules publish or hear, and an event of every type."""
    found = [event("t-0", 1, one) for one in SAMPLES]
    for name, kind in COMMANDS.items():
        request = {"id": f"c-{name}", "expires": "2026-11-20T20:05:00Z", "args": sampled(kind)}
        found.append(Document(device_topic("lisboa", "t-0", "d-1", f"cmd/{name}"), request))
    frame = TraceLine(START, "in", "3c", 1, 0)
    found.append(Document(device_topic("lisboa", "t-0", "d-1", "trace"), msgspec.to_builtins(frame)))
    reply = {"id": "c", "command": "ask", "status": "done", "text": "", "data": {"a": [1]}}
    found.append(Document(device_topic("lisboa", "t-0", "d-1", "cmd/ask/result"), reply))
    with tempfile.TemporaryDirectory() as name:
        said = asyncio.run(published(config_in(Path(name))))
    return (*found, *(Document(topic, json.loads(payload)) for topic, payload in said))


async def published(config: Config) -> list[tuple[str, bytes]]:
    """What stands on the broker of a device with a fault, and of a round of every game; verdicts; answers."""
    session = Said([])
    edge = Edge(config, Journal(Path(config.edge.journal)), now=lambda: START)
    for one in (DeviceOnline(True, "m", "s", "f"), DeviceFaulted("jam", "stuck", "error", "open"), DisplayShown("5")):
        await edge.sessions[0].emit([Sighting(one, b"x", Chunk(b"", START, 0.0))])
    await edge.retained.publish_all(session)  # type: ignore[arg-type]
    session.heard.append((edge_topic("lisboa", "edge-7", "health"), msgspec.json.encode(edge.health())))
    info = {"version": "1", "config": "x", "drivers": ["a"], "bootid": "b", "journal": "A", "boots": 1}
    session.heard.append((edge_topic("lisboa", "edge-7", "info"), msgspec.json.encode(info)))
    ask_again = Message(table_topic("lisboa", "t-0", "cmd/replay"), b'{"from":1,"to":2,"edge":"edge-7"}')
    session.heard += [(ask_again.topic, ask_again.payload), *(await obey(edge, [ask_again]))[-1:]]
    edge.journal.close()
    consumer = Consumer(config, Journal(Path(config.rules.journal)))
    for table in TABLES:
        played = [event(table, n, one) for n, one in enumerate((one for part in ROUNDS for one in part), 1)]
        await hear(consumer, [one.good() for one in played])
    rows = {(row.place, row.type): row for row in consumer.journal.after(0, 10_000)}
    session.heard += [consumer._message_of(row, False) for row in rows.values()]
    with contextlib.suppress(Done):
        await consumer._served(session)  # type: ignore[arg-type]
    consumer.journal.close()
    shapes: dict[str, tuple[str, bytes]] = {}  # of documents that differ by their table only one
    for topic, payload in session.heard:
        if payload[:1] == b"{":
            shapes[re.sub(r"t-\d+/", "t-n/", topic) + _shape(json.loads(payload))] = topic, payload
    return list(shapes.values())


def _shape(value: Any) -> str:
    """The keys of a document, however deep, without what stands there."""
    match value:
        case dict():
            return "{" + ",".join(f"{key}:{_shape(one)}" for key, one in sorted(value.items())) + "}"
        case list():
            return "[" + ",".join(sorted({_shape(one) for one in value})) + "]"
        case _:
            return type(value).__name__


def cases(seed: int, most: int) -> Iterator[tuple[int, int, bytes]]:
    """Which document, which place in it, which poison: the poisons in turn."""
    rng = random.Random(seed)
    for n in range(most):
        yield rng.randrange(10**6), rng.randrange(10**6), POISONS[(seed * most + n) % len(POISONS)]


@pytest.mark.parametrize("seed", range(at_length(3, 40 * len(ROUNDS))))
def test_events_accepted_by_the_rules_are_readable_by_all(seed: int) -> None:
    """Before each event of some rounds on every table come poisoned documents: of its number, and of any kind."""
    played = [one for n in range(len(ROUNDS)) for one in ROUNDS[(seed + n) % len(ROUNDS)]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = config_in(folder)
        journal = Journal(folder / "edge.db")
        for table in TABLES:
            journal.append([Entry(table, "d-1", type_of(one), START, encode_data(one)) for one in played])
        journal.close()
        messages: list[Message] = []
        seqs = dict.fromkeys(TABLES, 0)
        for n, (which, place, poison) in enumerate(cases(seed, 100)):
            table = f"t-{n % len(TABLES)}"
            seqs[table] += 1
            good = event(table, seqs[table], played[seqs[table] - 1])
            sampled_ = event(table, seqs[table], SAMPLES[which % len(SAMPLES)])
            messages.append(documents()[which % len(documents())].poisoned(place, poison))
            messages.append((sampled_ if which % 2 else good).poisoned(place, poison))
            messages.append(good.good())
        consumer = Consumer(config, Journal(folder / "rules.db"))
        heard = asyncio.run(hear(consumer, messages))
        assert all(len(payload) <= LONGEST_DOCUMENT for _, payload in heard)
        written = consumer.journal.after(0, 100_000)
        consumer.journal.close()
        for again in range(2):
            journal = Journal(folder / "rules.db")
            take_up(journal, Keeping())
            consumer = Consumer(config, journal)
            if not again:
                assert journal.after(0, 100_000) == written
            session = Said([])
            with contextlib.suppress(Done):
                asyncio.run(consumer._served(session))  # type: ignore[arg-type]
            for topic, payload in (*session.heard, *(consumer._message_of(row, True) for row in written)):
                if payload[:1] == b"{":
                    assert len(payload) <= LONGEST_DOCUMENT
                    _numbers_fit(json.loads(payload))
                if "/event/" in topic:
                    decode_wire(payload)
            journal.close()
        assert verify(folder / "rules.db").good
        look_into(folder, config, *TABLES)


def _numbers_fit(value: Any) -> None:
    """Every whole number is one that all readers of JSON keep."""
    match value:
        case dict():
            [*map(_numbers_fit, value.values())]
        case list():
            [*map(_numbers_fit, value)]
        case int():
            assert abs(value) < 2**53


@pytest.mark.parametrize("seed", range(at_length(3, 100)))
def test_nothing_that_is_said_to_an_edge_ends_it(seed: int) -> None:
    async def told(edge: Edge, messages: list[Message]) -> None:
        heard = await obey(edge, messages)
        for topic, payload in heard:
            assert len(payload) <= LONGEST_DOCUMENT
            if payload and "/event/" in topic:
                decode_wire(payload)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = config_in(folder)
        for _ in range(2):  # the next process takes up what the last one left
            edge = Edge(config, Journal(folder / "edge.db"), now=lambda: START)
            said = [documents()[n % len(documents())].poisoned(place, one) for n, place, one in cases(seed, 200)]
            asyncio.run(told(edge, said))
            edge.journal.close()
        assert verify(folder / "edge.db").good
        Consumer(config, Journal(folder / "rules.db")).journal.close()
        look_into(folder, config, "t-0")


@pytest.mark.parametrize("seed", range(at_length(3, 100)))
def test_the_console_shows_every_page_whatever_is_said(seed: int) -> None:
    with tempfile.TemporaryDirectory() as name, opened(Path(name)) as console:
        console.begin()
        for number, (n, place, poison) in enumerate(cases(seed, 300), 1):
            one = documents()[n % len(documents())]
            if "seq" in one.value:  # else it would be a repetition
                one = replace(one, value={**one.value, "seq": number, "id": f"edge-7:t-0:{number}/0"})
            for message in (one.poisoned(place, poison), one.good()):
                topic = re.sub("/table/t-[0-9]+/", "/table/rou-3/" if n % 2 else "/table/bac-12/", message.topic)
                console.say(topic, message.payload)
        console.wait(1)
        console.wait(600)
        asyncio.run(walk(console))


async def walk(console: Console) -> None:
    secret = console.house.access.users.begin("admin@lisboa", "10.0.0.7", "test", outside="admin")
    user = [("cookie", f"feltd={secret}"), ("accept-language", "pt")]
    rounds = [(table, one.round) for table, view in console.house.site.tables.items() for one in view.results]
    for path in pages(console.house, rounds[-4:]):
        said = await ask(console.app, path, headers=user)
        assert said.status < 500 or path == "/readyz", (path, said.body)
    for fragment in fragments(console.house):
        console.house.live.html(fragment, Viewer("en", "supervisor"))
