"""Private cards of poker in a whole pit: what everybody but the rules can read tells none that was not shown.

The drivers, the edge, the rules and their journals are the real ones; the dealer of the simulated table knows which
cards he dealt to whom. On a real broker each byte is read; in memory two nights are compared that differ in private
cards alone.
"""

import asyncio
import itertools
import json
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from helpers import at_length
from memory_pit import in_memory
from paho.mqtt.client import topic_matches_sub
from structlog.testing import capture_logs

from daemon.broker.session import Message
from daemon.cli.access_list import access_list
from daemon.config.model import parse
from daemon.edge.tracing import SETTLED
from drivers.driver import CommandRefused
from rules.games.poker_game import PokerGame
from simulators.lab import pit as pits
from simulators.lab.broker import find_mosquitto
from simulators.lab.campaign.loop import VirtualLoop
from simulators.lab.pit import EDGE, SITE, Pit
from simulators.lab.virtual_time import run_in_virtual_time, running_in_virtual_time, wait_for_results
from simulators.tables.poker import HoldemTable, OmahaTable, SyntheticTable

GAMES = (HoldemTable, OmahaTable, SyntheticTable)
HANDS = at_length(6, 60)
CARD = re.compile(rb"(?<![A-Za-z0-9])[2-9TJQKA][SHDC](?![A-Za-z0-9])")
JOURNALS = ("edge.db", "rules.db")
THE_END = "the/end"
mosquitto = pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")


class Dealt:
    """A hand as its dealer knows it, and the cards that left the shoe, in order."""

    def __init__(self, hand: Any) -> None:
        self.hand = hand
        self.drawn: list[str] = []

    @property
    def private(self) -> list[str]:
        """The cards that nobody ever shows: burnt ones, and those of hands given up or not called."""
        live = self.hand.live()
        at_showdown = live if len(live) > 1 and self.hand.ended() else ()
        open_ = {*self.hand.board, *(card for seat in at_showdown for card in self.hand.own[seat])}
        return [card for card in self.drawn if card not in open_]

    def otherwise(self, deck: Iterable[str]) -> list[str]:
        """The same hand with other private cards."""
        left = [card for card in deck if card not in self.drawn]
        others = iter((left + self.private)[: len(self.private)])
        return [next(others) if card in self.private else card for card in self.drawn]


def witnessed(kind: Any, stacked: Iterable[list[str]] = ()) -> Any:
    """The table, which keeps its hands. `stacked`: for each hand the first cards of the shoe."""
    decks = list(stacked)

    class Witnessed(kind):  # type: ignore[misc]
        def __init__(self, seed: int) -> None:
            super().__init__(seed)
            self.hands: list[Dealt] = []

        async def _open(self, floor: Any) -> Any:
            hand = await super()._open(floor)
            if hand is not None:
                self.hands.append(Dealt(hand))
            return hand

        def _deck(self) -> Iterator[str]:
            deck: Iterator[str] = super()._deck()
            if decks:
                first = decks[len(self.hands) - 1]
                rest = [card for card in self.shoe._cards if card not in first]
                self.shoe._cards = [*rest, *reversed(first)]
            return deck

        async def _draw(self, floor: Any, deck: Iterator[str]) -> str:
            card: str = await super()._draw(floor, deck)
            self.hands[-1].drawn.append(card)
            return card

    return Witnessed


# ---- each byte of a real broker, of the disk and of the logs


USERS = """
[site]
name = "{site}"
[edge]
name = "{edge}"
username = "edge"
password_file = "/dev/null"
[rules]
username = "rules"
password_file = "/dev/null"
[[table]]
name = "t-1"
ruleset = "angola.holdem"
[[table.device]]
name = "shoe-1"
driver = "bee_tek_shoe"
url = "tcp://127.0.0.1:4001"
"""


def granted(folder: Path) -> list[str]:
    """What a reader other than the rules may read, by the access list."""
    path = folder / "feltd.toml"
    path.write_text(USERS.format(site=SITE, edge=EDGE), encoding="utf-8")
    rights = access_list([(path, parse(path.read_text(encoding="utf-8")))])
    block = rights.partition("\nuser reader\n")[2].partition("\n\n")[0]
    return [line.removeprefix("topic read ") for line in block.splitlines() if line.startswith("topic read ")]


async def listened(port: int) -> asyncio.subprocess.Process:
    """Debian's own client, which reads everything; it has been given what is retained."""
    program = shutil.which("mosquitto_sub")
    assert program is not None
    words = ("-p", str(port), "-q", "1", "-t", "#", "-F", "%t %x")
    ear = await asyncio.create_subprocess_exec(program, *words, stdout=asyncio.subprocess.PIPE, limit=2**26)
    assert ear.stdout is not None
    assert await ear.stdout.readline()
    return ear


async def all_heard(ear: asyncio.subprocess.Process, port: int) -> list[tuple[str, bytes]]:
    """All that it heard until now, in order."""
    program = shutil.which("mosquitto_pub")
    assert program is not None
    assert ear.stdout is not None
    said = await asyncio.create_subprocess_exec(program, "-p", str(port), "-q", "1", "-t", THE_END, "-m", "-")
    await said.wait()
    heard: list[tuple[str, bytes]] = []
    while not heard or heard[-1][0] != THE_END:
        topic, _, payload = (await ear.stdout.readline()).decode().rstrip("\n").partition(" ")
        heard.append((topic, bytes.fromhex(payload)))
    ear.kill()
    await ear.wait()
    return heard[:-1]


async def played(folder: Path, busy: list[Any]) -> tuple[Any, list[tuple[str, bytes]]]:
    """A night on a real broker, all devices traced: the table, and all messages of the broker."""
    loop: Any = asyncio.get_running_loop()
    pit = Pit(folder, 4, kinds=("t",))
    async with running_in_virtual_time(pit, busy) as house:
        await house.site.until(lambda: house.site.is_online(EDGE))
        ear = await listened(house.broker.port)
        for session in house.edge.sessions:  # as a trace that was begun before the rules said a word
            session.trace.begin(100_000, datetime.now(UTC))
            if session._link is not None:
                session._link.tap = session.trace.tap
        await pit.deal(house.pace, HANDS, house.site, loop.utc)
        house.settling = True
        await wait_for_results(pit, house.site, pit.dealt())
        house.settling = False
        await asyncio.sleep(2 * SETTLED)
        for session in house.edge.sessions:
            with pytest.raises(CommandRefused, match="cards"):
                session._traced(60)
        return pit.tables["t-1"], await all_heard(ear, house.broker.port)


def nothing_private_is_told(kind: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message names common cards, and cards of hands that were shown before; after the hand, too."""
    monkeypatch.setitem(pits.KINDS, "t", witnessed(kind))
    with capture_logs() as logs:
        table, heard = run_in_virtual_time(lambda busy: played(folder, busy))
    hands = {one.hand.mine: one for one in table.hands}
    rights = granted(folder)
    now: Dealt | None = None
    shown: set[bytes] = set()
    told: set[bytes] = set()
    secrets = 0
    for topic, payload in heard:
        if topic.endswith("/round/event/opened"):
            now = hands.get(json.loads(payload)["data"]["round"])
            shown = {card.encode() for card in now.hand.board} if now else set()
        elif topic.endswith("/event/seat.acted") and (act := json.loads(payload)["data"])["action"] == "show" and now:
            shown |= {card.encode() for card in now.hand.own[act["seat"]]}
        cards = set(CARD.findall(payload))
        if not any(topic_matches_sub(right, topic) for right in rights):
            secrets += len(cards - shown)
            continue
        assert not topic.endswith("/trace")
        assert cards <= shown, f"{topic}: {payload!r}"
        told |= cards
    assert secrets > HANDS
    assert told
    assert not CARD.search(repr(logs).encode())
    for path in (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        if path.name.startswith(JOURNALS):
            assert not S_IMODE(path.stat().st_mode) & 0o007, path
        else:
            assert not CARD.search(path.read_bytes()), path


@pytest.mark.system
@mosquitto
@pytest.mark.parametrize("kind", GAMES)
def test_no_byte_of_broker_disk_and_logs_tells_a_private_card(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_private_is_told(kind, tmp_path, monkeypatch)


@pytest.mark.system
@mosquitto
def test_a_leak_on_the_broker_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hand that is shown first, before it is: in `round/state`."""
    shown = PokerGame._shown
    monkeypatch.setattr(
        PokerGame, "_shown", lambda self, deal: shown(self, deal) | {"hands": {"seat": deal.own.get(deal.opener(), ())}}
    )
    with pytest.raises(AssertionError, match="round/state"):
        nothing_private_is_told(HoldemTable, tmp_path, monkeypatch)


# ---- two nights that differ in private cards alone


async def night(kind: Any, folder: Path) -> tuple[list[tuple[str, bytes]], Any]:
    """All messages but the rules' own of the shoe, and the table."""
    told: list[tuple[str, bytes]] = []

    def hear(message: Message) -> None:
        hidden = message.topic.endswith(("/event/card.drawn", "/health"))
        told.append((message.topic, b"" if hidden else message.payload))

    async with in_memory("t", 4, folder, {"t": kind}) as world:
        world.site.on_message.append(hear)
        await world.pit.deal(world.pace, HANDS, world.site, world.utc)
        await world.settle(world.pit.dealt())
        return told, world.pit.tables["t-1"]


def told_alike(kind: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte and message for message. What is drawn by chance is the same at both."""

    def run(name: str, stacked: Iterable[list[str]] = ()) -> tuple[list[tuple[str, bytes]], Any]:
        numbers = itertools.count(1)
        monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=next(numbers)))
        (folder / name).mkdir()
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(night(witnessed(kind, stacked), folder / name))

    first, table = run("first")
    others = [one.otherwise(rank + suit for rank in kind.cards for suit in "SHDC") for one in table.hands]
    second, again = run("second", others)
    assert [one.drawn for one in again.hands] == others
    assert sum(one.drawn != other.drawn for one, other in zip(table.hands, again.hands, strict=True)) >= HANDS // 2
    for one, other in itertools.zip_longest(first, second):
        assert one == other, f"told apart: {one} or {other}"


@pytest.mark.parametrize("kind", GAMES)
def test_two_nights_that_differ_in_private_cards_are_told_alike(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_alike(kind, tmp_path, monkeypatch)


def test_a_difference_of_two_nights_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many aces are held in all, in the pot of `round/state`."""
    shown = PokerGame._shown

    def leak(self: PokerGame, deal: Any) -> dict[str, Any]:
        told = shown(self, deal)
        return told | {"pot": told["pot"] + str(deal.own).count("'A")}

    monkeypatch.setattr(PokerGame, "_shown", leak)
    with pytest.raises(AssertionError, match=r"told apart: .*/round/state"):
        told_alike(HoldemTable, tmp_path, monkeypatch)
