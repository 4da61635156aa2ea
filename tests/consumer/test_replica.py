"""Two rules processes of one table: what they tell is compared, and what has no id of an event is told by the first."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from helpers import script, virtual_time
from msgspec.structs import replace

from daemon.broker.session import Message
from daemon.config.model import Config, parse
from daemon.consumer.consumer import Consumer
from daemon.journal.store import Journal
from daemon.replica import DISAGREE, KEPT, Difference
from protocols.contract.documents import EdgeInfo
from protocols.contract.events import BallLanded, BallLaunched, Event, SpinStarted, WagerPlaced
from protocols.contract.reasons import say
from protocols.contract.topics import encode_envelope
from tests.consumer.test_way_of_an_event import Broker
from tests.hostile.test_forger import translated

TABLE = "rou-1"
CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
[rules]
name = "{name}"
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
{options}
"""
RESULT, STATE = "felt/1/s/table/rou-1/round/result", "felt/1/s/table/rou-1/round/state"
ALERT = "felt/1/s/table/rou-1/alert/results-disagree"


class Streams:
    """The backbone in memory: what is put into `events` and `results` is read once, by one reader."""

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.results: list[bytes] = []
        self.asked: dict[str, int] = {}
        self.made = "today"
        self.news = asyncio.Event()

    async def follow(
        self,
        stream: str,
        tables: Sequence[str],
        position: Callable[[str, int], int],
        use: Callable[[str, Sequence[tuple[str, bytes]], int, bool], None],
    ) -> None:
        kept = {"EV": self.events, "RES": self.results}[stream]
        at = self.asked[stream] = position(self.made, len(kept))
        newest = len(kept)
        while True:
            some = kept[at:]
            at = len(kept)
            use(self.made, [(tables[0], one) for one in some], at, bool(some) and at > newest)
            await asyncio.sleep(0.1)


def configured(name: str, options: str = "") -> Config:
    return parse(CONFIG.format(name=name, options=options))


def rules(folder: Path, name: str, options: str = "", streams: Streams | None = None) -> Consumer:
    return Consumer(configured(name, options), Journal(folder / f"{name}.db"), streams=streams or Streams())


def spins(count: int, first: int = 1) -> list[bytes]:
    """Spins of the wheel, as the backbone has them."""
    events: list[Event] = []
    for number in range(count):
        events += [SpinStarted(number), WagerPlaced(1, "black", 150), BallLaunched("clockwise", "anticlockwise")]
        events.append(BallLanded(str(number % 37)))
    told = [replace(one, id=f"e:{TABLE}:{one.seq}", journal="A") for one in script(events, TABLE)]
    return [encode_envelope(replace(one, source=f"felt/1/s/table/{TABLE}/device/d-1")) for one in told][first - 1 :]


def take(consumer: Consumer, payloads: Sequence[bytes]) -> None:
    consumer._use_stored([(TABLE, one) for one in payloads], False)


def told(consumer: Consumer) -> list[bytes]:
    """Its verdicts, as the backbone has them."""
    return [consumer._message_of(row, False)[1] for row in consumer.journal.range(TABLE, 1, 10**6)]


def differences(consumer: Consumer, theirs: Sequence[bytes]) -> list[Difference]:
    assert consumer._replica is not None
    for payload in theirs:
        consumer._replica.agreement.add_other(TABLE, payload)
    return list(consumer._replica.agreement.differences())


def waits(consumer: Consumer) -> bool:
    return consumer._replica is not None and consumer._replica.agreement.waits


def test_two_rules_of_one_version_agree_wherever_each_is(tmp_path: Path) -> None:
    """What others told of events that these did not use yet waits until they did."""
    one, other = rules(tmp_path, "a"), rules(tmp_path, "b")
    take(one, spins(20))
    take(other, spins(20)[:30])
    assert len(told(one)) > len(told(other)) > 0
    assert differences(other, told(one)) == []
    assert waits(other)
    take(other, spins(20)[30:])
    assert differences(other, []) == []
    assert not waits(other)
    assert differences(one, told(other)) == []


def test_other_options_are_noticed_by_both_with_both_results(tmp_path: Path) -> None:
    """The alert is the same from each, and it is known in every language."""
    one, other = rules(tmp_path, "a"), rules(tmp_path, "b", "[table.options]\nsmallest_chip = 100\nrounding = 'up'")
    for consumer in (one, other):
        take(consumer, spins(3))
    found, mirrored = differences(one, told(other)), differences(other, told(one))
    assert [one.alert(1) for one in found] == [one.alert(1) for one in mirrored]
    alert = found[0].alert(1)
    assert alert.round.startswith("rou-1:")
    assert set(found[0].texts) == {one.journal.name, other.journal.name}
    assert all(len(set(one.texts.values())) == 2 for one in found)
    assert "returns 0" in alert.text
    translated(msgspec.json.encode(alert))


def test_what_only_one_of_them_told_is_a_difference(tmp_path: Path) -> None:
    """Also after a restart, and not where it is so old that these rules no longer know what they told."""
    one, other = rules(tmp_path, "a"), rules(tmp_path, "b")
    take(one, spins(2))
    take(other, [spins(2)[0], *(payload.replace(b'"17"', b'"1"') for payload in spins(2)[1:])])
    more = told(one)[-1].replace(b"/0", b"/7")
    [found] = differences(other, [more])
    assert found.texts[other.journal.name] == ""
    other.journal.close()
    again = rules(tmp_path, "b")
    assert differences(again, told(one)) == []
    assert differences(again, [more]) == [], "its event was used in an earlier life, and all of that was not loaded"
    take(again, spins(KEPT)[8:])
    take(one, spins(KEPT)[8:])
    assert differences(again, told(one)) == []
    assert differences(again, [told(one)[-1].replace(b"/0", b"/7")]) != []


@virtual_time
async def test_the_alert_stands_over_a_restart_until_a_person_ends_it(tmp_path: Path) -> None:
    streams, broker = Streams(), Broker()
    other = rules(tmp_path, "b", "[table.options]\nsmallest_chip = 100\nrounding = 'up'")
    take(other, spins(1))
    for ended in (False, True):
        one = rules(tmp_path, "a", streams=streams)
        tasks = [asyncio.create_task(one._serve(broker.session)), asyncio.create_task(running(one))]
        await asyncio.sleep(1)
        if not ended:
            streams.events += spins(1)
            await asyncio.sleep(1)
            streams.results += told(other)
        await asyncio.sleep(5)
        assert msgspec.json.decode(broker.kept[ALERT])["code"] == DISAGREE
        if ended:
            broker.tell(ALERT, b"")
            await asyncio.sleep(5)
            assert ALERT not in broker.kept
        one._commit([])
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        one.journal.close()
    assert streams.asked == {"EV": 4, "RES": len(told(other))}, "it goes on behind what it read"
    assert rules(tmp_path, "a")._replica._alerts == {}  # type: ignore[union-attr]


@virtual_time
async def test_rules_that_were_killed_use_what_came_meanwhile_and_what_waited(tmp_path: Path) -> None:
    """The second event is not in the stream: the later ones wait over a kill until the edge replays it."""
    streams, (first, second, third, last) = Streams(), spins(1)
    for came in (first, third, last):
        streams.events.append(came)
        one = rules(tmp_path, "a", streams=streams)
        tasks = [asyncio.create_task(one._serve(Broker().session)), asyncio.create_task(running(one))]
        await asyncio.sleep(1)
        if came is last:
            topic = f"felt/1/s/table/{TABLE}/device/d-1/event/wager.placed"
            one._use([Message(topic, second.replace(b'"replay":false', b'"replay":true'))])
            assert one.position(TABLE) == 4
        one._commit([])
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        one.journal.close()


async def running(consumer: Consumer) -> None:
    assert consumer._replica is not None
    await consumer._replica.run(consumer._use_stored, (TABLE,))


@pytest.mark.parametrize("first", ["a", "c"])
@virtual_time
async def test_the_first_of_the_rules_that_are_online_retains_what_both_know(tmp_path: Path, first: str) -> None:
    """`b` beside another: quiet while a first one is there, and speaking when that is gone; alerts of its own stand."""
    broker, streams = Broker(), Streams()
    info = msgspec.json.encode(EdgeInfo(rules=True, tables=(TABLE,)))
    broker.kept |= {f"felt/1/s/edge/{first}/availability": b"online", f"felt/1/s/edge/{first}/info": info}
    one = rules(tmp_path, "b", streams=streams)
    tasks = [asyncio.create_task(one._serve(broker.session)), asyncio.create_task(running(one))]
    await asyncio.sleep(1)
    streams.events += spins(1)
    one._alarm(TABLE, "events.forged", say("topic"))
    await asyncio.sleep(5)
    assert (RESULT in broker.kept) == (first == "c")
    assert (STATE in broker.kept) == (first == "c")
    assert "b-events-forged" in broker.alerts()
    assert one.answers.speaks(TABLE) == (first == "c")
    broker.tell(f"felt/1/s/edge/{first}/availability", b"offline")
    await asyncio.sleep(5)
    assert {RESULT, STATE} <= set(broker.kept)
    assert one.answers.speaks(TABLE)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    one.journal.close()


@virtual_time
async def test_events_come_from_the_backbone_and_replays_alone_from_the_broker(tmp_path: Path) -> None:
    """A live event of the broker would come in another order than to the other rules; a replay closes a gap."""
    streams = Streams()
    one = rules(tmp_path, "a", streams=streams)
    topic = f"felt/1/s/table/{TABLE}/device/d-1/event/ball.landed"
    live, replayed = spins(1)[3], spins(1)[2].replace(b'"replay":false', b'"replay":true')
    take(one, spins(1)[:2])
    one._use([Message(topic, live)])
    assert one.position(TABLE) == 2
    one._use([Message(topic.replace("ball.landed", "ball.launched"), replayed)])
    assert one.position(TABLE) == 3
    take(one, [live])
    assert one.position(TABLE) == 4


def test_a_row_of_another_table_or_site_is_refused(tmp_path: Path) -> None:
    one = rules(tmp_path, "a")
    for wrong in (b"table/rou-2/", b"table/rou-1/../"):
        take(one, [payload.replace(b"table/rou-1/", wrong) for payload in spins(1)])
    take(one, [payload.replace(b"felt/1/s/", b"felt/1/t/") for payload in spins(1)])
    take(one, [b"{", b""])
    assert one.position(TABLE) == 0
