"""No page shows a private card before its time: whatever lies face down, the console says the same.

Two consoles hear the same pit, recorded from the broker without an access list: every event that tells a card reaches
them. The second hears another card each time. What `round/state` and the results show is the same for both; so must be
every byte that either says to anybody. That cannot be fooled by a card that was seen before, and finds a card in any
form: a code, a sign, bytes of the wire, a count, or something worked out of it.
"""

import asyncio
import contextlib
import io
import re
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import UUID

import msgspec
import pytest
from console_tour import Said, ask, bundle_made, pages, streams
from helpers import START, at_length
from msgspec import Meta, Struct
from msgspec.structs import replace

from daemon import read_model
from daemon.broker.session import Message
from daemon.config.model import Config, parse
from daemon.console.app import ConsoleProcess, make_app
from daemon.console.auth.users import ROLES, By
from daemon.console.pages import bundle
from daemon.console.site.store import Store
from daemon.edge.tracing import SETTLED
from daemon.journal.recall import recall, recall_text
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from daemon.views import Change
from daemon.virtual_clock import JumpingLoop
from daemon.words.words import LANGS
from protocols.contract.documents import TraceLine
from protocols.contract.events import EVENT_TYPES, Card, Event
from protocols.contract.topics import Wire, decode_wire
from simulators.lab.broker import find_mosquitto
from simulators.lab.pit import Pit
from simulators.lab.virtual_time import run_in_virtual_time, running_in_virtual_time, wait_for_results

pytestmark = pytest.mark.system
POKER = at_length(("holdem",), ("holdem", "omaha", "synth"))
KINDS = ("bac", "scan", "csm", "stud", "bj", *POKER)
KEEPS = {f"{kind}-1" for kind in POKER}
"""Where cards that nobody has shown stay hidden after a round, too."""
ENDS = ("resolved", "voided", "corrected")
CARD = re.compile(rb'"([A2-9TJQK])([SHDC])"')
RANKS, SUITS = b"A23456789TJQK", b"SHDC"
CARDS = get_args(Card)[1].description
# What tells of the process, and not of the pit.
OF_THE_PROCESS = re.compile(rb"(?m)^(?:process_\w+|feltd_console_disk_free_bytes|content-length:) .*$")


class Heard(Struct, frozen=True):
    """One message of the broker, and when it came."""

    at: datetime
    message: Message


class Tape(Struct, frozen=True):
    """A pit as the broker carried it."""

    config: Config
    heard: tuple[Heard, ...]


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Tape:
    """All tables with cards, a few rounds each, every device traced."""
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    heard: list[Heard] = []
    folder = tmp_path_factory.mktemp("pit")

    async def body(busy: list[Any]) -> Config:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        pit = Pit(folder, 5, kinds=KINDS)
        async with running_in_virtual_time(pit, busy) as house:
            config = parse(pit.config(house.broker.port, house.broker.version))
            house.site.on_message.append(lambda message: heard.append(Heard(loop.utc(), message)))
            for post in house.edge.sessions:
                post._traced(100_000)
            await pit.deal(house.pace, at_length(2, 6) * len(KINDS), house.site, loop.utc)
            house.settling = True
            await wait_for_results(pit, house.site, pit.dealt())
            house.settling = False
            await asyncio.sleep(2 * SETTLED)
        return config

    return Tape(run_in_virtual_time(body), tuple(heard))


def otherwise(payload: bytes) -> bytes:
    """Another card for each, of another rank and suit; what a peek saw and what was wagered the other way, too."""

    def other(found: re.Match[bytes]) -> bytes:
        rank, suit = RANKS.index(found[1]), SUITS.index(found[2])
        return b'"%c%c"' % (RANKS[(rank + 6) % 13], SUITS[(suit + 1) % 4])

    turned = payload.replace(b'"blackjack":true', b'"blackjack":!').replace(b'"blackjack":false', b'"blackjack":true')
    return CARD.sub(other, turned.replace(b'"blackjack":!', b'"blackjack":false'))


def is_event(message: Message) -> bool:
    """Whether a device tells of something."""
    return message.topic.split("/")[5:6] == ["device"] and "/event/" in message.topic


def turned(one: Heard) -> Heard:
    """The same with other cards, where it is an event."""
    if not is_event(one.message):
        return one
    return replace(one, message=replace(one.message, payload=otherwise(one.message.payload)))


class World:
    """A console with somebody of each role in it, that is told what the broker carried."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.folder = folder
        folder.mkdir()
        console = replace(config.console, store=str(folder / "console.db"), dealer={"bj-1": "/run/bj-1.sock"})
        # Under one name in both worlds: the journals of the round that is open are put there in turn.
        there = folder.parent / "journals"
        config = replace(
            config,
            console=console,
            edge=replace(config.edge, journal=str(there / "edge.db")),
            rules=replace(config.rules, journal=str(there / "rules.db")),
        )
        self.now = datetime.fromtimestamp(0).astimezone()
        self.store, self.journal = Store(folder / "console.db"), Journal(folder / "actions.db")
        self.house = ConsoleProcess(config, self.store, self.journal, lambda: self.now)
        self.app = make_app(self.house)
        self.house.site.set_connected(True)
        self.secrets: dict[str, str] = {}

    def hear(self, one: Heard) -> None:
        self.now = one.at
        self.house.site._look(one.message)

    def come_in(self) -> None:
        """Once, when the time is known."""
        users = self.house.access.users
        for role in ROLES:
            self.secrets[role] = users.begin(f"{role}@lisboa", "10.0.0.7", "test", outside=role)
        self.secrets["screen"] = users.add_token(By("root", "system"), "screen", "viewer", ("stud-1", "bj-1"))

    async def ask(self, who: str, lang: str, path: str, **more: Any) -> Said:
        """As somebody, or nobody."""
        cookie = [("cookie", f"feltd={self.secrets[who]}")] if who else []
        ours = [("origin", "http://pit.test"), ("sec-fetch-site", "same-origin"), ("accept-language", lang)]
        return await ask(self.app, path, headers=[*ours, *cookie], **more)

    def close(self) -> None:
        self.house.close()
        self.store.close()
        self.journal.close()


@pytest.fixture
def worlds(tape: Tape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, World]]:
    """The one with the true cards and the one with others; what is drawn by chance is the same in both."""
    monkeypatch.setattr("daemon.console.auth.users.secrets.token_urlsafe", _Count())
    monkeypatch.setattr("daemon.console.pages.dealer.uuid.uuid4", lambda: UUID(int=7))
    two = World(tmp_path / "true", tape.config), World(tmp_path / "turned", tape.config)
    try:
        yield two
    finally:
        for one in two:
            one.close()


class _Count:
    """Secrets that are the same in both worlds: each is asked for once in either."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, _size: int) -> str:
        self.asked += 1
        return f"secret-{(self.asked - 1) % (len(ROLES) + 1)}"


def alike(path: str, first: Said, second: Said) -> None:
    """Byte for byte, but for what the process says of itself."""
    assert first.status == second.status, path
    one, other = (OF_THE_PROCESS.sub(b"", said.all) for said in (first, second))
    assert one == other, f"{path} tells a card: {_difference(one, other)}"


def _difference(one: bytes, other: bytes) -> str:
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(at - 80, 0) : at + 40]!r} or {other[max(at - 10, 0) : at + 40]!r}"


def rounds_of(world: World) -> list[tuple[str, str]]:
    """The last that ended of each table, and the one that may be open."""
    found = []
    for table, view in world.house.site.tables.items():
        names = {result.round for result in list(view.results)[-1:]} | {view.round}
        found += [(table, name) for name in sorted(names) if name]
    return found


def mixed(tape: Tape) -> int:
    """How many events of the tape tell a card."""
    return sum(turned(one) != one for one in tape.heard)


# ---- all pages, at every step


async def told_alike(two: tuple[World, World], who: str, lang: str, paths: Iterable[str]) -> None:
    for path in paths:
        alike(path, await two[0].ask(who, lang, path), await two[1].ask(who, lang, path))


EVERY = at_length(200, 20)


async def played(tape: Tape, two: tuple[World, World]) -> None:
    """At each event what is pushed, to everybody in turn; every so often and at the end all pages."""
    viewers = [(who, lang) for who in (*ROLES, "screen") for lang in LANGS]
    for n, one in enumerate(tape.heard):
        two[0].hear(one)
        two[1].hear(turned(one))
        if n == 0:
            for world in two:
                world.come_in()
        who, lang = viewers[n % len(viewers)]
        if is_event(one.message):
            await told_alike(two, who, lang, streams(two[0].house)[:1])
        if n % EVERY == 0 or n == len(tape.heard) - 1:
            who, lang = viewers[n // EVERY % len(viewers)]
            await told_alike(two, who, lang, [*pages(two[0].house, rounds_of(two[0])), *streams(two[0].house)])


async def test_nothing_that_is_said_depends_on_a_card(tape: Tape, worlds: tuple[World, World]) -> None:
    assert mixed(tape) > 50
    assert {one.message.topic.split("/")[4] for one in tape.heard if turned(one) != one} >= {"bac-1", "scan-1", "csm-1"}
    await played(tape, worlds)
    assert all(world.house.site.tables[f"{kind}-1"].results for world in worlds for kind in KINDS)


# ---- a leak would be seen


def _in_hexadecimal(world: World) -> None:
    """As bytes of the wire, among what passed."""

    def heard(table: str, wire: Wire, _event: Event | None) -> None:
        frame = TraceLine(wire.time, "in", bytes(wire.data).hex(), wire.seq, 0)
        topic = f"felt/1/demo/table/{table}/device/{wire.source.rpartition('/')[2]}/trace"
        world.house.site._look(Message(topic, msgspec.json.encode(frame)))

    world.house.site.on_event.append(heard)


def _as_a_count(world: World) -> None:
    """Only in how many high cards there were."""

    def heard(table: str, wire: Wire, _event: Event | None) -> None:
        if wire.type == "card.drawn" and msgspec.json.decode(wire.data)["card"][0] in "TJQK":
            world.house.metrics._events[table, "high"] = world.house.metrics._events.get((table, "high"), 0) + 1

    world.house.site.on_event.append(heard)


def _in_the_history(world: World) -> None:
    """As a sign, in what a device says of itself."""

    def heard(table: str, wire: Wire, _event: Event | None) -> None:
        if wire.type == "card.drawn":
            card = msgspec.json.decode(wire.data)["card"]
            device = world.house.site.devices[table, wire.source.rpartition("/")[2]]
            device.history.append(Change(wire.time, "device.faulted", "♠♥♦♣"["SHDC".index(card[1])]))

    world.house.site.on_event.append(heard)


@pytest.mark.parametrize("leak", [_in_hexadecimal, _as_a_count, _in_the_history])
async def test_a_leak_is_seen(tape: Tape, worlds: tuple[World, World], leak: Callable[[World], None]) -> None:
    for world in worlds:
        leak(world)
    with pytest.raises(AssertionError, match="tells a card"):
        await played(tape, worlds)


async def test_a_card_in_the_clear_is_seen(
    tape: Tape, worlds: tuple[World, World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_model, "SHOWN", frozenset(EVENT_TYPES))
    with pytest.raises(AssertionError, match="devicelog"):
        await played(tape, worlds)


# ---- what is read from the journals


def written(folder: Path, heard: Sequence[Heard], *, true: bool) -> None:
    """The journals of the edge and of the rules, beside each other; not `true`: of open rounds with other cards."""
    events: dict[str, dict[int, Wire]] = {}
    verdicts: dict[str, dict[int, Wire]] = {}
    ended: dict[str, int] = {}
    for one in heard:
        match one.message.topic.split("/")[3:]:
            case ["table", table, "device", _, "event", _]:
                wire = decode_wire(one.message.payload)
                events.setdefault(table, {})[wire.seq] = wire
            case ["table", table, "round", "event", kind]:
                wire = decode_wire(one.message.payload)
                verdicts.setdefault(table, {})[wire.seq] = wire
                if kind in ENDS:
                    ended[table] = int(wire.id.rpartition(":")[2].partition("/")[0])

    def of_edge(table: str, wire: Wire) -> Entry:
        same = true or (wire.seq <= ended.get(table, 0) and table not in KEEPS)
        data = bytes(wire.data) if same else otherwise(bytes(wire.data))
        return Entry(table, wire.source.rpartition("/")[2], wire.type, wire.time, data, data)

    def of_rules(table: str, wire: Wire) -> Entry:
        return Entry(table, "round", wire.type, wire.time, bytes(wire.data), cause=wire.id)

    used: dict[str, bytes] = {}
    for name, said, made in (("edge", events, of_edge), ("rules", verdicts, of_rules)):
        with contextlib.closing(Journal(folder / f"{name}.db")) as journal:
            for table, by_seq in said.items():
                assert sorted(by_seq) == list(range(1, len(by_seq) + 1))
                journal.append([made(table, by_seq[seq]) for seq in sorted(by_seq)], used)
            used = {
                f"stream/edge-1/{journal.name}/{table}": b'{"seq":%d}' % len(by_seq) for table, by_seq in said.items()
            }


async def taken_away(world: World, heard: Sequence[Heard], *, true: bool) -> dict[str, bytes]:
    """What a person with a shell recalls and takes along, over such journals, and what the page's bundle holds."""
    shutil.rmtree(folder := world.folder.parent / "journals", ignore_errors=True)
    folder.mkdir()
    written(folder, heard, true=true)
    found: dict[str, bytes] = {}
    config = world.house.config
    for table, name in rounds_of(world):
        if table in KEEPS:
            continue  # the evidence of its rounds holds all cards: the owner of the journals alone recalls it
        recalled = recall(Path(config.rules.journal), Path(config.edge.journal), table, 400, name)
        found[f"{table} {name} {200 if recalled else 404}"] = recall_text(recalled).encode()
    bundle.make(folder / "bundle.zip", config, bundle.Given(START))
    with zipfile.ZipFile(folder / "bundle.zip") as packed:
        found |= {name: packed.read(name) for name in packed.namelist()}
    assert (await world.ask("technician", "en", "/bundle", method="POST")).status == 303
    await bundle_made(world.house)
    said = await world.ask("technician", "en", "/bundle")
    assert said.status == 200
    with zipfile.ZipFile(io.BytesIO(said.body)) as packed:
        found |= {f"page {name}": packed.read(name) for name in packed.namelist()}
    return found


async def read(tape: Tape, worlds: tuple[World, World], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """At a dozen moments of open rounds; how many ended rounds were recalled, and open ones refused."""
    monkeypatch.setattr("daemon.console.pages.bundle.shutil.which", lambda _program, **_more: None)
    monkeypatch.setattr("daemon.journal.store.uuid.uuid4", lambda: UUID(int=7))
    world = worlds[0]
    drawn = [n for n, one in enumerate(tape.heard) if turned(one) != one]
    cuts = drawn[5 :: max(len(drawn) // 12, 1)]
    recalled = refused = 0
    for n, one in enumerate(tape.heard):
        world.hear(one)
        if n == 0:
            world.come_in()
        if n in cuts:
            first, second = [await taken_away(world, tape.heard[: n + 1], true=true) for true in (True, False)]
            assert set(first) == set(second)
            for name, said in first.items():
                assert said == second[name], f"{name} tells a card: {_difference(said, second[name])}"
            recalled += sum(name.endswith(" 200") for name in first)
            refused += sum(name.endswith(" 404") for name in first)
    return recalled, refused


async def test_recall_and_bundle_tell_nothing_of_a_round_that_is_open(
    tape: Tape, worlds: tuple[World, World], monkeypatch: pytest.MonkeyPatch
) -> None:
    recalled, refused = await read(tape, worlds, monkeypatch)
    assert recalled > 10
    assert refused > 10


async def test_a_card_in_the_bundle_is_seen(
    tape: Tape, worlds: tuple[World, World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle._Bundle, "_hidden", lambda *_row: False)
    with pytest.raises(AssertionError, match=r"journal-edge.ndjson tells a card"):
        await read(tape, worlds, monkeypatch)


def test_a_trace_waits_for_the_end_of_the_round(tape: Tape) -> None:
    """By the instant at which the bytes of a card came, which no other piece has."""
    waiting: dict[str, dict[datetime, str]] = {}
    shown = 0
    for one in tape.heard:
        match one.message.topic.split("/")[3:]:
            case ["table", table, "device", device, "event", "card.drawn"]:
                wire = decode_wire(one.message.payload)
                waiting.setdefault(table, {})[wire.time] = device
            case ["table", table, "round", *_] if table in KEEPS:
                pass  # no end of a round shows what nobody has shown
            case ["table", table, "round", "event", kind] if kind in ENDS:
                waiting.pop(table, None)
            case ["table", table, "round", "state"] if not msgspec.json.decode(one.message.payload)["round"]:
                waiting.pop(table, None)  # they were burned, before the first round of a shoe
            case ["table", table, "device", device, "trace"]:
                for line in one.message.payload.split(b"\n"):
                    frame = msgspec.json.decode(line, type=TraceLine)
                    assert waiting.get(table, {}).get(frame.at) != device, one.message.topic
                    shown += frame.way == "in"
    assert shown > 50


# ---- every event there is


def test_of_no_event_that_may_hold_a_card_more_is_shown_than_its_name() -> None:
    """Whatever the vocabulary grows by: a field that is a card is seen here."""
    tell = {tag for tag, kind in EVENT_TYPES.items() if any(map(_is_card, _parts(kind)))}
    assert {"card.drawn", "card.damaged", "deck.miscounted"} <= tell
    assert not tell & read_model.SHOWN


def _parts(kind: Any) -> Iterator[Any]:
    """All that an annotation is made of."""
    yield kind
    inner = get_type_hints(kind, include_extras=True).values() if isinstance(kind, type(Struct)) else get_args(kind)
    for one in inner:
        yield from _parts(one)


def _is_card(part: Any) -> bool:
    return isinstance(part, Meta) and part.description == CARDS
