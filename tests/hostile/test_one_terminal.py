"""One betting terminal against its neighbours: in the name of another one, with floods, with long messages."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from helpers import START, MemoryLink, Notebook, virtual_time

from daemon.broker.session import Message
from daemon.consumer.wagers import KEPT, WagerAnswers
from daemon.edge.links.link import utc_now
from daemon.edge.links.mqtt import MAX_LINE, MqttLink, _Target
from drivers.bet_terminals import MOST_IDS, QUIET_S, BetTerminals, TerminalOptions
from protocols.contract.events import DeviceFaulted, DeviceRecovered, PlayerActed, WagerPlaced
from protocols.contract.wagers import (
    Act,
    Decoder,
    PlaceWager,
    WagerAnswer,
    WagerRequest,
    WithdrawWager,
    encode,
    encode_line,
)
from protocols.link import LinkLost

UNTIL = START + timedelta(seconds=119)


def bet(id_: str, seat: int) -> PlaceWager:
    return PlaceWager(id_, f"t-{seat}", UNTIL, seat, "fan:2", 500)


class Table:
    """A driver with seven terminals."""

    def __init__(self) -> None:
        self.link, self.notes = MemoryLink(), Notebook()
        self.task = asyncio.create_task(BetTerminals(TerminalOptions(seats=7)).run(self.link, self.notes))

    async def asks(self, *requests: WagerRequest, topic: str = "") -> list[WagerAnswer]:
        self.link.sent.clear()
        for one in requests:
            self.link.feed(encode_line(topic or one.terminal, one))
        await asyncio.sleep(0.001)
        return [one.message for one in Decoder().feed(bytes(self.link.sent)) if isinstance(one.message, WagerAnswer)]

    @property
    def alerts(self) -> list[tuple[str, str]]:
        return [(one.code, one.text) for one in self.notes.events if isinstance(one, DeviceFaulted)]

    @property
    def bets(self) -> list[str]:
        return [one.request for one in self.notes.events if isinstance(one, WagerPlaced)]

    async def end(self) -> None:
        self.link.hang_up()
        with pytest.raises(LinkLost):
            await self.task


@virtual_time
async def test_a_terminal_that_lays_and_takes_back_in_another_name_is_refused_and_named() -> None:
    table = Table()
    await table.asks(bet("b-1", 2))
    act = Act("b-4", "t-2", UNTIL, 2, "fold", "t-1:2026-11-20:1")
    for request in (bet("b-2", 2), WithdrawWager("b-3", "t-2", UNTIL, 2, "fan:2"), act):
        [answer] = await table.asks(request, topic="t-1")
        assert (answer.terminal, answer.status, answer.code) == ("t-1", "refused", "terminal_not_own")
    assert table.bets == ["b-1"]
    assert not any(isinstance(one, PlayerActed) for one in table.notes.events)
    [(code, text)] = table.alerts
    assert code == "terminals.impostor"
    assert text.endswith("(t-1: in the name of t-2)")
    assert await table.asks(bet("b-2", 2)) == []  # what was refused to t-1 is no answer to t-2
    await asyncio.sleep(QUIET_S + 1)
    assert DeviceRecovered("terminals.impostor") in table.notes.events
    await table.end()


@virtual_time
async def test_requests_of_one_terminal_under_its_limits_fill_its_own_table_of_ids_only() -> None:
    table = Table()
    await asyncio.sleep(0.5)
    refused = 0
    for second in range(20):
        answers = await table.asks(*(bet(f"a-{second}-{n}", 1) for n in range(18)))
        refused += sum(one.code == "too_many_requests" for one in answers)
        assert await table.asks(bet(f"b-{second}", 2)) == []
        await asyncio.sleep(0.998)
    assert refused == 20 * 18 - MOST_IDS
    assert [one for one in table.bets if one.startswith("b")] == [f"b-{n}" for n in range(20)]
    [(code, text)] = table.alerts
    assert code == "terminals.flood"
    assert "(t-1: requests: 128 have not expired)" in text
    await table.end()


@virtual_time
async def test_a_flood_of_one_terminal_drops_its_own_messages_only() -> None:
    table = Table()
    for n in range(5):
        answers = await table.asks(*[bet(f"a-{n}-{k}", 1) for k in range(2000)], bet(f"b-{n}", 2))
        assert all(one.terminal == "t-1" for one in answers)
        await asyncio.sleep(0.999)
    assert [one for one in table.bets if one.startswith("b")] == [f"b-{n}" for n in range(5)]
    assert {text.partition("(")[2][:4] for _, text in table.alerts} == {"t-1:"}
    await asyncio.sleep(QUIET_S + 1)
    assert DeviceRecovered("terminals.flood") in table.notes.events
    await table.end()


class Deaf:
    """A session whose messages the test delivers itself."""

    def deliver_to(self, heard: Any) -> None:
        self.heard = heard


async def test_long_messages_of_one_terminal_do_not_break_the_link_of_all() -> None:
    session: Any = Deaf()
    target = _Target("mqtt://h/?hear=wager/*&say=wager/*/result")
    link = MqttLink(session, target, utc_now)
    for _ in range(1000):
        session.heard(Message("wager/t-1", b"x" * MAX_LINE))
    session.heard(Message("wager/t 2", b"no name"))
    session.heard(Message("wager/t-2", encode(bet("b-1", 2))))
    lines: list[bytes] = []
    while not lines or not lines[-1].startswith(b"t-2 "):
        lines.append((await link.read()).data)
    assert len(lines) < 12
    assert [one.message for one in Decoder().feed(lines[-1])] == [bet("b-1", 2)]


def test_answers_of_one_terminal_push_out_no_answer_of_another() -> None:
    kept, stored = WagerAnswers("fan-1", {}), dict[str, bytes]()

    def answered(id_: str, seat: int) -> None:
        laid = WagerPlaced(seat, "fan:2", 500, id_, f"t-{seat}")
        key, value = kept.put(laid, WagerAnswer(id_, f"t-{seat}", "accepted", event="e"))
        stored[key] = value

    answered("b-1", 2)
    for n in range(3 * KEPT):
        answered(f"a-{n}", 1)
    assert len(stored) == KEPT
    for one in (kept, WagerAnswers("fan-1", stored)):
        assert one.again(bet("b-1", 2)) is not None
        assert one.again(bet(f"a-{3 * KEPT - 1}", 1)) is not None
        assert one.again(bet("a-0", 1)) is None


def test_the_rules_answer_no_terminal_that_asks_for_the_answer_of_another() -> None:
    from daemon.consumer.wagers import AnswerDesk

    journal: Any = type("Journal", (), {"memories": staticmethod(lambda _: {})})
    desk = AnswerDesk("s", ["fan-1"], journal)
    answer = WagerAnswer("b-1", "t-2", "accepted", event="e")
    desk._tables["fan-1"].put(WagerPlaced(2, "fan:2", 500, "b-1", "t-2"), answer)
    request = encode(msgspec.structs.replace(bet("b-1", 2)))
    desk.received("fan-1", Message("felt/1/s/table/fan-1/wager/t-1", request))
    assert not desk._unsent
    desk.received("fan-1", Message("felt/1/s/table/fan-1/wager/t-2", request))
    assert list(desk._unsent.values()) == [answer]
