"""A slot machine, its driver, an edge and the jackpots process: bets, levels and wins end to end; transfers."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from jackpot_pit import World, run, running

from daemon.broker.session import Message
from daemon.config.model import parse
from daemon.jackpots.books import check
from daemon.jackpots.ledger import unbalanced
from daemon.jackpots.process import Jackpots
from daemon.journal.store import Journal
from protocols.contract.commands import Reply
from protocols.contract.jackpots import Approve, Order, Propose, Transfer
from simulators.lab.pit import SITE
from simulators.tables.devices import MachinePlace

LAW = "angola.gaming-machines"
POOL = """
[[jackpot]]
name = "hall"
tables = ["slot-1"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "1/3"
hidden = "1/7"
signs = ["slot-1/sign-1"]
machines = ["slot-1/slot-1"]
[jackpot.prizes]
level_1 = { pays = "pool" }
"""


async def until(world: World, so: Callable[[], bool], limit: float) -> float:
    """After how long it is so."""
    began = world.loop.time()
    while not so():
        assert world.loop.time() - began < limit
        await asyncio.sleep(0.01)
    return world.loop.time() - began


@pytest.mark.article("17(3)", "17(5)")
def test_a_machine_feeds_its_pool_shows_it_and_wins_what_it_showed(tmp_path: Path) -> None:
    async def body() -> None:
        options = 'feeds = ["hall"]\nlevels = ["hall"]\nstale = 60'
        async with running(("slot",), 3, tmp_path, POOL, options) as world:
            place = world.pit.tables["slot-1"]
            assert isinstance(place, MachinePlace)
            machine, socket = place.machine, world.pit.sockets["slot-1"]["slot-1"]
            await until(world, lambda: machine.levels == {1: 10_000}, 60)
            await asyncio.sleep(20)
            before = machine.meters["coin_in"]

            def counted() -> int:
                book = world.book("hall")
                assert unbalanced(book) == ""
                return -book.balance("players") // book.unit

            for number in range(20):
                machine.play(world.pit.pace.now(), bet=1 + number % 5)
                socket.stir()
                await asyncio.sleep(4)
                if number == 10:
                    world.kill()
                if number == 14:
                    world.start()
            await until(world, lambda: counted() == machine.meters["coin_in"] - before == 60, 60)

            machine.play(world.pit.pace.now(), bet=3)  # a game more is one minor unit in the pool
            socket.stir()
            amount = world.book("hall").amount
            assert await until(world, lambda: world.book("hall").amount == amount + 1, 10) < 6
            assert await until(world, lambda: machine.levels == {1: amount + 1}, 10) <= 1.0

            machine.hit_progressive(world.pit.pace.now(), 1)
            socket.stir()
            await until(world, lambda: bool(world.book("hall").wins), 10)
            (win,) = world.book("hall").wins
            assert (win.amount, win.shares, win.unpriced) == (amount + 1, ((1, amount + 1),), False)
            again = world.book("hall").amount
            assert again == 10_000
            assert await until(world, lambda: machine.levels == {1: again}, 10) <= 1.0
            assert unbalanced(world.book("hall")) == ""

    run(body())


@pytest.mark.article("17(5)", "17(6)")
def test_a_transfer_changes_both_books_in_one_transaction(tmp_path: Path) -> None:
    other = (
        '[[jackpot]]\nname = "{}"\ntables = ["x-1"]\nseed = {}\nvisible = "1/9"\ncurrency = "{}"\ncounts = "devices"\n'
    )
    text = (
        f'[site]\nname = "{SITE}"\n[edge]\nname = "e"\n[[table]]\nname = "x-1"\n'
        + other.format("old", 700, "AOA")
        + other.format("new", 50, "AOA")
        + other.format("far", 50, "EUR")
        + "[jackpots]\ninsecure = true\n"
    )
    journal = Journal(tmp_path / "jackpots.db")
    jackpots = Jackpots(parse(text), journal)

    def order(one: Order, name: str) -> Reply:
        said = msgspec.to_builtins(one)
        kind = said.pop("order")
        request = {"id": name, "expires": datetime.now(UTC) + timedelta(seconds=60), "args": said}
        reply = jackpots.obey("old", kind, Message("t", msgspec.json.encode(request)))
        assert reply is not None
        return reply

    for place in ("far", "none"):
        assert "no pool" in order(Propose("ana", Transfer(place, "fire", "OSJ 3")), f"p-{place}").text
    assert order(Propose("ana", Transfer("new", "fire", "OSJ 3")), "p-1").status == "done"
    assert "another person" in order(Approve("ana", "p-1"), "p-2").text
    assert (jackpots.books["old"].amount, jackpots.books["new"].amount) == (700, 50)
    head = journal.head
    assert order(Approve("rui", "p-1"), "p-3").status == "done"
    assert order(Approve("rui", "p-1"), "p-3").status == "done"  # delivered twice
    assert (jackpots.books["old"].amount, jackpots.books["new"].amount) == (0, 750)
    assert journal.head == head + 2
    journal.close()
    journal = Journal(tmp_path / "jackpots.db")
    again = Jackpots(parse(text), journal)
    for pool in ("old", "new"):
        assert check(journal.range(pool, 1, 100), again.books[pool]) == ""
    assert sum(again.books[pool].balance("transferred") for pool in ("old", "new")) == 0
    journal.close()
