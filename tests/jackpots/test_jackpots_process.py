"""The jackpots process beside a real edge and real rules, with a broker that loses, doubles and delays messages."""

import asyncio
import contextlib
import itertools
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import at_length
from jackpot_pit import POOLS, World, results, run, running, staked, until_quiet

from daemon.broker.mac_keys import load_mac_keys, make_mac_key
from daemon.broker.session import Message, Session, Will
from daemon.config.model import Mqtt, parse
from daemon.jackpots.books import check
from daemon.jackpots.ledger import unbalanced
from daemon.jackpots.process import FIRST_LOOK, Jackpots
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from protocols.contract.commands import Reply
from protocols.contract.documents import ReplayAnswer
from protocols.contract.events import Event, JackpotContributed, JackpotWon, encode_data, type_of
from protocols.contract.jackpots import (
    Adjust,
    Approve,
    Confirm,
    Order,
    Pay,
    PoolBooks,
    PoolLevel,
    Price,
    Prize,
    Propose,
    SetTerms,
    jackpot_topic,
)
from protocols.contract.topics import Wire, encode_wire, mac_of
from simulators.clock import Pace
from simulators.devices.alpha_sign import Sign
from simulators.lab.pit import SITE


@pytest.mark.parametrize("seed", range(*at_length((1, 4), (1, 60))))
def test_books_by_devices_and_by_rules_agree_however_messages_come(tmp_path: Path, seed: int) -> None:
    """One pool counts by the sensors, one by the rules, at one table: both have all bets, and none twice."""
    rng = random.Random(seed)

    async def body() -> None:
        async with running(("stud",), seed, tmp_path, POOLS) as world:
            world.pit._serving = world.site.changed.set
            table = world.pit.tables["stud-1"]
            dealing = asyncio.create_task(world.pit._deal("stud-1", table, Pace(), 40, world.site, world.loop.utc))
            while not dealing.done():
                await asyncio.sleep(rng.uniform(5, 120))
                weather = world.broker.weather
                weather.doubled = weather.swapped = rng.choice([0.0, 0.0, 0.1])
                world.loss = rng.choice([0.0, 0.1, 0.5])
                if rng.random() < 0.5:
                    world.kill()
                    await asyncio.sleep(rng.choice([0.1, 3, 60]))
                    world.start()
            await dealing
            weather.doubled = weather.swapped = world.loss = 0.0
            await until_quiet(world)
            expected = staked(world)
            assert expected > 0
            for pool in ("table", "linked"):
                book = world.book(pool)
                assert unbalanced(book) == ""
                assert check(world.now.journal.range(pool, 1, 1_000_000), book) == ""
                tables = book.tables.values()  # the bets of a void last round wait for the next one
                waiting = sum(bet.amount for one in tables for bet in (*one.credit, *one.stakes))
                assert pool == "table" or not waiting
                assert -book.balance("players") == (expected + waiting) * book.unit, pool
            awards = [award for result in results(world).values() for award in result.jackpots]
            won = [one.award for one in world.book("table").wins if one.state == "pending"]
            assert Counter(map(repr, won)) == Counter(map(repr, awards))
            shown = msgspec.json.decode(world.broker.retained[jackpot_topic(SITE, "table", "level")], type=PoolLevel)
            assert shown.amount == world.book("table").amount

    run(body())


def test_a_pool_that_begins_at_an_old_table_counts_from_then_on(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(("stud",), 5, tmp_path, POOLS) as world:
            world.pit._serving = world.site.changed.set
            table = world.pit.tables["stud-1"]
            deal = world.pit._deal("stud-1", table, Pace(), 40, world.site, world.loop.utc)
            dealing = asyncio.create_task(deal)
            world.kill()
            await world.site.until(lambda: len(table.truth) >= 20)
            shutil.rmtree(tmp_path / "books")
            asked: list[int] = []

            def taken(name: str, topic: str, payload: bytes) -> None:
                if "jackpots" in name and topic.endswith("stud-1/cmd/replay"):
                    asked.append(msgspec.json.decode(payload)["from"])

            world.broker.on_taken = taken
            world.start()
            await dealing
            await until_quiet(world)
            book = world.book("linked")
            assert 0 < staked(world, book.began) < staked(world)
            assert -book.balance("players") == staked(world, book.began) * book.unit
            assert 0 < -world.book("table").balance("players") < staked(world) * world.book("table").unit
            assert min(asked) > 300

    run(body())


def test_a_new_pool_counts_all_bets_since_it_began_however_late_its_process_meets_the_broker(tmp_path: Path) -> None:
    """Its table had more events by then than the process requests at once."""

    async def body() -> None:
        async with running(("stud",), 5, tmp_path, POOLS) as world:
            world.kill()
            shutil.rmtree(tmp_path / "books")
            for pool in ("table", "linked"):
                world.broker.retained.pop(jackpot_topic(SITE, pool, "owner"), None)
            connect, met = world.broker.connect, asyncio.Event()

            @contextlib.asynccontextmanager
            async def late(settings: Mqtt, identifier: str, will: Will | None = None) -> AsyncIterator[Session]:
                await met.wait()
                async with connect(settings, identifier, will) as session:
                    yield session

            world.broker.connect = late  # type: ignore[method-assign, assignment]
            one = world.start()
            world.broker.connect = connect  # type: ignore[method-assign]
            world.pit._serving = world.site.changed.set
            table = world.pit.tables["stud-1"]
            deal = world.pit._deal("stud-1", table, Pace(), 40, world.site, world.loop.utc)
            dealing = asyncio.create_task(deal)
            await world.site.until(lambda: len(table.truth) >= 30)
            assert world.edge.last("stud-1") > 2 * FIRST_LOOK
            met.set()
            await dealing
            await until_quiet(world)
            for pool in ("table", "linked"):
                book = one.books[pool]
                assert -book.balance("players") == staked(world) * book.unit, pool

    run(body())


# ---- a pool of devices, its sign and its people

SIGNED = """
[[table]]
name = "x-1"
[[jackpot]]
name = "hall"
tables = ["x-1"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "0.5"
signs = ["slot-1/sign-1"]
[jackpot.prizes]
level_1 = { pays = "pool" }
"""


class Hall:
    """What an edge and a console would publish, and what the broker took."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seq = 0
        self.replies: dict[str, Reply] = {}
        self.shown: list[tuple[float, str, bytes]] = []
        world.broker.on_taken = self._taken

    def _taken(self, _identifier: str, topic: str, payload: bytes) -> None:
        if topic.endswith("/result") and "/jackpot/" in topic:
            reply = msgspec.json.decode(payload, type=Reply)
            self.replies[reply.id] = reply
        if topic.endswith(("/level", "event/display.shown")):
            self.shown.append((self.world.loop.time(), topic.rpartition("/")[2], payload))

    def event(self, event: Event, *, seq: int = 0, table: str = "x-1") -> None:
        self.seq += not seq
        seq = seq or self.seq
        source = f"felt/1/{SITE}/table/{table}/device/panel"
        data = msgspec.Raw(encode_data(event))
        wire = Wire(
            "1.0", f"e-9:{table}:{seq}", source, type_of(event), self.world.loop.utc(), seq, "", "J", False, data
        )
        self.world.broker.take("edge", f"{source}/event/{wire.type}", encode_wire(wire), False)

    async def order(self, order: Order, name: str, **request: Any) -> Reply:
        said = msgspec.to_builtins(order)
        kind = said.pop("order")
        fields = {"id": name, "expires": self.world.loop.utc() + timedelta(seconds=60), "args": said, **request}
        topic = jackpot_topic(SITE, "hall", f"cmd/{kind}")
        self.world.broker.take("console", topic, msgspec.json.encode(fields), False)
        await asyncio.sleep(1)
        return self.replies.get(name) or Reply(name, kind, "failed", "no answer")


@contextlib.asynccontextmanager
async def hall(folder: Path) -> AsyncIterator[Hall]:
    async with running(("slot",), 1, folder, SIGNED) as world:
        one = Hall(world)
        await asyncio.sleep(30)
        yield one


def level(world: World) -> PoolLevel:
    return msgspec.json.decode(world.broker.retained[jackpot_topic(SITE, "hall", "level")], type=PoolLevel)


def test_a_bet_is_on_its_topic_at_once_and_on_the_sign_within_a_second(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            for _ in range(3):
                one.shown.clear()
                began = one.world.loop.time()
                one.event(JackpotContributed("hall", 500, 1))
                await asyncio.sleep(3)
                at = {name: time - began for time, name, _ in reversed(one.shown)}
                assert at["level"] < 0.05
                assert at["display.shown"] < 1.0
            assert b"107.50" in one.shown[-1][2]
            assert level(one.world).amount == 10_750
            one.event(JackpotContributed("hall", 500, 1), seq=2)  # delivered twice
            one.event(JackpotContributed("other", 500, 1))
            await asyncio.sleep(1)
            assert level(one.world).amount == 10_750

    run(body())


@pytest.mark.parametrize("leaf", ["level", "owner", "availability"])
def test_a_process_that_is_seen_receives_bets_already(tmp_path: Path, leaf: str) -> None:
    """The only bet of a table comes as soon as the process is seen: no later event shows that it is missing.

    With so many tables what the process publishes at first is more than may be in flight.
    """
    others = [f"x-{number}" for number in range(2, 20)]
    pools = SIGNED.replace('["x-1"]', str(["x-1", *others])) + "".join(f'[[table]]\nname = "{one}"\n' for one in others)

    async def body() -> None:
        async with running(("slot",), 1, tmp_path, pools) as world:
            one = Hall(world)
            seen: list[str] = []

            def taken(identifier: str, topic: str, _payload: bytes) -> None:
                if identifier == "feltd-jackpots-jackpots" and topic.endswith(f"/{leaf}") and not seen:
                    seen.append(topic)
                    one.event(JackpotContributed("hall", 500, 1))

            world.broker.on_taken = taken
            await asyncio.sleep(5)
            assert seen
            assert level(world).amount == 10_250

    run(body())


def test_a_new_pool_goes_on_behind_messages_that_are_gone(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            asked: list[int] = []

            def taken(_identifier: str, topic: str, payload: bytes) -> None:
                if topic.endswith("x-1/cmd/replay"):
                    asked.append(msgspec.json.decode(payload)["from"])
                    answer = ReplayAnswer("e-9", "J", asked[-1], one.seq, one.seq, 3_000)
                    one.world.broker.take("edge", f"{topic}/result", msgspec.json.encode(answer), False)

            one.world.broker.on_taken = taken
            one.seq = 2_999
            for _ in range(3):
                one.event(JackpotContributed("hall", 500, 1))
                await asyncio.sleep(5)
            assert level(one.world).amount == 10_750
            assert min(asked) == 2_600

    run(body())


@pytest.mark.parametrize("restarted", [False, True])
def test_a_table_that_comes_to_an_old_pool_counts_from_then_on(tmp_path: Path, restarted: bool) -> None:
    """Its earlier bets may have counted in another pool."""
    more = SIGNED.replace('["x-1"]', '["x-1", "x-2"]') + '[[table]]\nname = "x-2"\n'

    async def body() -> None:
        async with hall(tmp_path) as one:
            one.event(JackpotContributed("hall", 500, 1))
            await asyncio.sleep(5)
            past = [JackpotContributed("hall", 500, 1)] * 3
            told: list[tuple[str, bytes]] = []

            def taken(_identifier: str, topic: str, payload: bytes) -> None:
                if "/x-2/device/" in topic:
                    told.append((topic, payload))

            one.world.broker.on_taken = taken
            for seq, bet in enumerate(past, 1):
                one.event(bet, seq=seq, table="x-2")
            await asyncio.sleep(1)
            one.world.kill()
            one.world.config = parse(one.world.pit.config(1883, "5") + more)
            one.world.start()
            await asyncio.sleep(5)
            if restarted:
                one.world.kill()
                one.world.start()
                await asyncio.sleep(5)

            def replay(_identifier: str, topic: str, _payload: bytes) -> None:
                if topic.endswith("x-2/cmd/replay"):
                    for place, payload in told[:4]:
                        one.world.broker.take("edge", place, payload, False)

            one.world.broker.on_taken = replay
            one.event(JackpotContributed("hall", 500, 1), seq=4, table="x-2")
            await asyncio.sleep(10)
            assert level(one.world).amount == 10_500

    run(body())


def test_2000_bets_a_second_share_transactions_and_each_is_in_a_level_within_50_ms(tmp_path: Path) -> None:
    """By the clock of the simulation: what is waited for, without what the machine takes."""

    async def body() -> None:
        async with hall(tmp_path) as one:
            one.shown.clear()
            written: list[int] = []
            append = one.world.now.journal.append

            def counted(entries: Iterable[Entry], memory: Mapping[str, bytes | None] | None = None) -> list[Row]:
                rows = append(entries, memory)
                written.append(len(rows))
                return rows

            one.world.now.journal.append = counted  # type: ignore[method-assign]
            bets = []
            for _ in range(400):
                one.event(JackpotContributed("hall", 2, 1))
                bets.append(one.world.loop.time())
                await asyncio.sleep(0.0005)
            await asyncio.sleep(1)
            levels = [(at, msgspec.json.decode(raw, type=PoolLevel)) for at, leaf, raw in one.shown if leaf == "level"]
            assert levels[-1][1].amount == 10_400
            for number, at in enumerate(bets, 2):  # the first entry is the seed
                assert min(time for time, shown in levels if shown.entry >= number) - at < 0.05
            assert sum(written) == 400
            assert len(list(filter(None, written))) <= 45
            assert len(levels) <= 25

    run(body())


def test_a_win_is_pending_at_once_announced_and_paid_by_two_people(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            one.shown.clear()
            began = one.world.loop.time()
            one.event(JackpotWon("hall", 1, 4))
            await asyncio.sleep(3)
            assert any(b"JACKPOT 100.00" in text and at - began < 1.0 for at, _, text in one.shown)
            [pending] = level(one.world).pending
            assert (pending.amount, pending.shares, level(one.world).amount) == (10_000, ((4, 10_000),), 10_000)
            pay = Pay("rui", pending.win)
            assert (await one.order(pay, "o-1")).text.endswith("a person must confirm it first")
            assert (await one.order(Confirm("ana", pending.win), "o-2")).status == "done"
            assert (await one.order(Confirm("ana", pending.win), "o-2")).status == "done"  # delivered twice
            one.world.kill()
            one.world.start()
            await asyncio.sleep(5)
            assert (await one.order(pay, "o-3")).status == "done"
            assert level(one.world).pending == ()
            assert one.world.book("hall").balance("paid") == 10_000 * one.world.book("hall").unit

    run(body())


def test_the_process_beats_and_tells_terms_and_wins_when_they_change(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            taken: list[str] = []
            one.world.broker.on_taken = lambda _identifier, topic, _payload: taken.append(topic)
            await asyncio.sleep(15)
            assert taken.count(f"felt/1/{SITE}/edge/jackpots/alive") == 10
            topic = jackpot_topic(SITE, "hall", "books")

            def books() -> PoolBooks:
                return msgspec.json.decode(one.world.broker.retained[topic], type=PoolBooks)

            assert (books().tables, books().signs, books().wins) == (("x-1",), ("slot-1/sign-1",), ())
            assert books().terms.seed == 10_000
            one.event(JackpotContributed("hall", 500, 1))
            await asyncio.sleep(1)
            assert topic not in taken  # a bet changes no terms and no win
            one.event(JackpotWon("hall", 1, 4))
            await asyncio.sleep(1)
            [win] = books().wins
            assert (win.state, win.amount, books().entry) == ("pending", 10_250, one.world.book("hall").number)

    run(body())


def test_changes_need_two_people_and_bad_requests_are_answered(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            change = Propose("ana", Adjust("visible", 250, "audit"))
            assert (await one.order(change, "p-1")).status == "done"
            assert [waits.id for waits in level(one.world).proposals] == ["p-1"]
            assert "another person" in (await one.order(Approve("ana", "p-1"), "p-2")).text
            late = one.world.loop.utc() + timedelta(hours=1)
            approve = Approve("rui", "p-1")
            assert "too late" in (await one.order(approve, "p-3", expires=late)).text
            early = one.world.loop.utc() - timedelta(seconds=1)
            assert "expired" in (await one.order(approve, "p-4", expires=early)).text
            assert "person" in (await one.order(approve, "p-5", args={"proposal": "p-1"})).text
            assert (await one.order(approve, "p-6", more=1)).text == "no answer"  # no request
            assert level(one.world).amount == 10_000
            assert (await one.order(approve, "p-7")).status == "done"
            assert level(one.world).amount == 10_250

    run(body())


def test_an_order_whose_documents_would_be_too_long_is_refused(tmp_path: Path) -> None:
    """Fourteen proposals of many prizes each are more than the level may carry."""

    async def body() -> None:
        async with hall(tmp_path) as one:
            terms = one.world.book("hall").terms
            terms = msgspec.structs.replace(terms, prizes={f"{'x' * 50}{n}": Prize(n) for n in range(200)})
            replies = [await one.order(Propose("ana", SetTerms(terms, "many")), f"p-{n}") for n in range(14)]
            assert replies[0].status == "done"
            assert replies[-1].status == "refused"
            assert "the changes that wait would be longer" in replies[-1].text

    run(body())


def amounts(one: Hall) -> list[tuple[float, int]]:
    """What the sign showed, in minor units, without announcements."""
    texts = [(at, msgspec.json.decode(raw)["data"]["text"]) for at, leaf, raw in one.shown if leaf == "display.shown"]
    return [(at, int(text.replace(",", "").replace(".", ""))) for at, text in texts if "JACKPOT" not in text]


def test_a_sign_counts_up_to_the_amount_and_is_never_ahead_of_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            one.shown.clear()
            began, bets = one.world.loop.time(), []
            for number in range(200):  # ten bets a second
                one.event(JackpotContributed("hall", 200, 1))
                bets.append((one.world.loop.time(), 10_000 + 100 * (number + 1)))
                await asyncio.sleep(0.1)
            await asyncio.sleep(2)
            shown = amounts(one)
            assert shown[-1][1] == level(one.world).amount == 30_000
            assert [amount for _, amount in shown] == sorted(amount for _, amount in shown)
            assert max(two[1] - one_[1] for one_, two in itertools.pairwise(shown)) <= 1500
            for at, amount in shown:
                assert amount <= max(level for time, level in bets if time <= at)
            for at, amount in bets:
                assert min(time for time, shows in shown if shows >= amount) - at < 1.0
            assert len(shown) <= 5 * (one.world.loop.time() - began)
            # A single large bet is counted up, too.
            one.shown.clear()
            one.event(JackpotContributed("hall", 20_000, 1))
            await asyncio.sleep(2)
            steps = [amount for _, amount in amounts(one)]
            assert len(steps) >= 2
            assert steps == sorted(steps)
            assert steps[-1] == 40_000

    run(body())


def test_a_win_among_many_bets_is_on_the_sign_within_a_second(tmp_path: Path) -> None:
    """With the win of another seat at the same time: both amounts are announced, and the pool begins again."""

    async def body() -> None:
        async with hall(tmp_path) as one:
            for _ in range(50):
                one.event(JackpotContributed("hall", 200, 1))
                await asyncio.sleep(0.1)
            one.shown.clear()
            began = one.world.loop.time()
            one.event(JackpotWon("hall", 1, 4))
            one.event(JackpotWon("hall", 1, 5))
            for _ in range(50):
                one.event(JackpotContributed("hall", 200, 1))
                await asyncio.sleep(0.1)
            [announced] = {
                at - began for at, _, raw in one.shown if b"JACKPOT 150.00 / 100.00" in raw and b"confirmed" in raw
            }
            assert announced < 1.0
            await asyncio.sleep(40)
            assert amounts(one)[-1][1] == level(one.world).amount == 15_000

    run(body())


@pytest.mark.parametrize("lost", ["sign", "jackpots"])
def test_the_last_amount_stands_on_the_sign_after_a_power_cut(tmp_path: Path, lost: str) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            one.event(JackpotContributed("hall", 500, 1))
            await asyncio.sleep(5)
            socket = one.world.pit.sockets["slot-1"]["sign-1"]
            sign = socket.device
            assert isinstance(sign, Sign)
            if lost == "sign":
                sign.inject("memory_lost", socket._pace.now())
                socket.stir()
            else:
                one.world.kill()
                await asyncio.sleep(20)
                assert "102.50" in sign.showing(socket._pace.now())
                one.world.start()
            await asyncio.sleep(60)
            assert "102.50" in sign.showing(socket._pace.now())

    run(body())


def test_a_sign_that_is_slow_is_an_alert_until_it_follows(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            edge = one.world.broker
            take = edge.take

            def slow(identifier: str, topic: str, payload: bytes, retain: bool, correlation: bytes = b"") -> None:
                if slowly and topic.endswith("cmd/show-amount/result"):
                    one.world.loop.call_later(4.5, take, identifier, topic, payload, retain, correlation)
                else:
                    take(identifier, topic, payload, retain, correlation)

            slowly = True
            edge.take = slow  # type: ignore[method-assign]
            alert = f"felt/1/{SITE}/table/slot-1/alert/jackpots-sign-sign-1"
            for _ in range(30):
                one.event(JackpotContributed("hall", 200, 1))
                await asyncio.sleep(1)
            assert b"it shows the amount of" in edge.retained[alert]
            slowly = False
            for _ in range(10):
                one.event(JackpotContributed("hall", 200, 1))
                await asyncio.sleep(1)
            assert alert not in edge.retained

    run(body())


def test_a_sign_that_does_not_answer_is_an_alert_and_the_pool_stays_right(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            socket = one.world.pit.sockets["slot-1"]["sign-1"]
            socket.port.unplug()
            await asyncio.sleep(60)
            one.event(JackpotContributed("hall", 500, 1))
            await asyncio.sleep(30)
            alert = f"felt/1/{SITE}/table/slot-1/alert/jackpots-sign-sign-1"
            assert b"does not show the amount of hall" in one.world.broker.retained[alert]
            assert level(one.world).amount == 10_250
            socket.port.plug()
            socket.stir()
            await asyncio.sleep(120)
            assert alert not in one.world.broker.retained
            assert b"102.50" in one.shown[-1][2]

    run(body())


def test_the_alert_of_a_sign_ends_also_in_the_next_life_of_the_process(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            socket = one.world.pit.sockets["slot-1"]["sign-1"]
            socket.port.unplug()
            await asyncio.sleep(60)
            one.event(JackpotContributed("hall", 500, 1))
            await asyncio.sleep(30)
            alert = f"felt/1/{SITE}/table/slot-1/alert/jackpots-sign-sign-1"
            assert alert in one.world.broker.retained
            one.world.kill()
            socket.port.plug()
            socket.stir()
            await asyncio.sleep(60)
            one.world.start()
            await asyncio.sleep(60)
            assert alert not in one.world.broker.retained

    run(body())


def test_the_alert_of_a_win_without_a_price_stands_until_it_has_one(tmp_path: Path) -> None:
    async def body() -> None:
        async with hall(tmp_path) as one:
            one.event(JackpotWon("hall", 3, 1))
            await asyncio.sleep(2)
            alert = f"felt/1/{SITE}/table/x-1/alert/jackpots-unpriced"
            assert b"no amount for level_3" in one.world.broker.retained[alert]
            one.world.kill()
            one.world.start()
            await asyncio.sleep(20)
            assert b"no amount for level_3" in one.world.broker.retained[alert]
            (win,) = one.world.book("hall").wins
            await one.order(Propose("ana", Price(win.id, 120, "as the machine's record says")), "p-1")
            assert alert in one.world.broker.retained
            assert (await one.order(Approve("rui", "p-1"), "a-1")).status == "done"
            assert alert not in one.world.broker.retained

    run(body())


def test_what_does_not_belong_to_its_topic_changes_nothing(tmp_path: Path) -> None:
    """Garbage, another table's event, a number that cannot be, and an event that this version cannot read."""

    async def body() -> None:
        async with hall(tmp_path) as one:
            source = f"felt/1/{SITE}/table/x-1/device/panel"
            topic = f"{source}/event/jackpot.contributed"
            data = b'{"pool":"hall","amount":1000}'
            good = Wire("1.0", "e-9:x-1:1", source, "jackpot.contributed", one.world.loop.utc(), 1, "", "J", False)
            for wire in (
                msgspec.structs.replace(good, id="e-9:x-2:1"),
                msgspec.structs.replace(good, id="e-9:x-1:2"),
                msgspec.structs.replace(good, source=source.replace("x-1", "x-2")),
                msgspec.structs.replace(good, journal="a/b"),
                msgspec.structs.replace(good, seq=0, id="e-9:x-1:0"),
                msgspec.structs.replace(good, id="E 9:x-1:1"),
            ):
                one.world.broker.take(
                    "edge", topic, encode_wire(msgspec.structs.replace(wire, data=msgspec.Raw(data))), False
                )
            for payload in (b"", b"\xff", b"{", b"[" * 100_000, b'{"id":1}'):
                one.world.broker.take("edge", topic, payload, False)
                one.world.broker.take("rules", f"felt/1/{SITE}/table/x-1/round/event/resolved", payload, False)
                one.world.broker.take("x", jackpot_topic(SITE, "hall", "cmd/pay"), payload, False)
                one.world.broker.take("x", f"felt/1/{SITE}/table/x-1/cmd/replay/result", payload, False)
            await asyncio.sleep(5)
            assert level(one.world).amount == 10_000
            unread = msgspec.structs.replace(good, data=msgspec.Raw(b'{"pool":"hall","amount":-5}'))
            one.world.broker.take("edge", topic, encode_wire(unread), False)
            await asyncio.sleep(5)
            alert = one.world.broker.retained[f"felt/1/{SITE}/table/x-1/alert/jackpots-unreadable"]
            assert b"an event about a jackpot cannot be read" in alert
            one.seq = 1
            one.event(JackpotContributed("hall", 500, 1))
            await asyncio.sleep(5)
            assert level(one.world).amount == 10_250

    run(body())


def test_an_event_without_the_mac_of_its_edge_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    make_mac_key(tmp_path / "keys" / "e-9.key")
    key = load_mac_keys(tmp_path / "keys")["e-9"]
    config = parse(
        f'[site]\nname = "{SITE}"\n[edge]\nname = "e"\n[jackpots]\nmac_key_folder = "{tmp_path}/keys"\n'
        + SIGNED.replace('signs = ["slot-1/sign-1"]', "")
    )
    journal = Journal(tmp_path / "jackpots.db")
    jackpots = Jackpots(config, journal)
    source = f"felt/1/{SITE}/table/x-1/device/panel"
    data = msgspec.Raw(b'{"pool":"hall","amount":1000}')
    at = datetime.now(UTC)
    for edge, seq, given, amount in (("e-9", 1, "", 0), ("e-8", 1, "right", 0), ("e-9", 1, "right", 500)):
        wire = Wire("1.0", f"{edge}:x-1:{seq}", source, "jackpot.contributed", at, seq, "", "J", False, data)
        wire = msgspec.structs.replace(wire, mac=mac_of(wire, key)) if given else wire
        jackpots.take([Message(f"{source}/event/jackpot.contributed", encode_wire(wire))])
        assert jackpots.level("hall").amount == 10_000 + amount
    journal.close()
