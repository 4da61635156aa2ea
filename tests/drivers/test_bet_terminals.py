"""Betting terminals: exact documents, one event for each request, one clear answer to each refused one, bounded memory.

What is promised: a request is kept exactly once, however often it comes and whenever the driver starts anew; at least
all ids that have not expired are kept.
"""

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta
from random import Random

import msgspec
import pytest
from helpers import START, MemoryLink, Notebook, at_length, virtual_time
from hypothesis import given, strategies as st
from message_mirror import Mirror, byte_by_byte, lossy, whole

from daemon.words import words
from drivers.bet_terminals import MOST_ANSWERS, MOST_IDS, QUIET_S, BetTerminals, Memory, TerminalOptions
from drivers.driver import LinkLost
from protocols.contract.events import (
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    Event,
    PlayerActed,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from protocols.contract.wagers import (
    LONGEST_ANSWER,
    LONGEST_REQUEST,
    Act,
    Addressed,
    Decoder,
    PlaceWager,
    Unreadable,
    WagerAnswer,
    WagerRequest,
    WithdrawWager,
    encode,
    encode_line,
)
from simulators.devices.bet_terminals import KEPT, BetTerminals as Simulated

ROUND = "fan-1:2026-11-20:17"
AT = START + timedelta(seconds=60)
PLACE = PlaceWager("a-1", "t-1", AT, 1, "fan:2", 500)
PLACED = WagerPlaced(1, "fan:2", 500, "a-1", "t-1")
EXACT: list[tuple[bytes, WagerRequest | WagerAnswer]] = [
    (
        (
            b'{"action":"place","id":"a-1","terminal":"t-1","expires":"2026-11-20T20:01:00Z","seat":1,"bet":"fan:2",'
            b'"amount":500}'
        ),
        PLACE,
    ),
    (
        (
            b'{"action":"withdraw","id":"a-2","terminal":"t-1","expires":"2026-11-20T20:01:00Z","seat":1,"bet":"fan:2",'
            b'"amount":200,"round":"fan-1:2026-11-20:17"}'
        ),
        WithdrawWager("a-2", "t-1", AT, 1, "fan:2", 200, "fan-1:2026-11-20:17"),
    ),
    (
        b'{"action":"withdraw","id":"a-2","terminal":"t-1","expires":"2026-11-20T20:01:00Z","seat":1,"bet":"fan:2"}',
        WithdrawWager("a-2", "t-1", AT, 1, "fan:2"),
    ),
    (
        (
            b'{"action":"act","id":"a-4","terminal":"t-1","expires":"2026-11-20T20:01:00Z","seat":1,"act":"raise",'
            b'"round":"fan-1:2026-11-20:17","amount":900}'
        ),
        Act("a-4", "t-1", AT, 1, "raise", ROUND, 900),
    ),
    (
        b'{"id":"a-1","terminal":"t-1","status":"accepted","event":"edge-7:fan-1:9"}',
        WagerAnswer("a-1", "t-1", "accepted", event="edge-7:fan-1:9"),
    ),
    (
        (
            b'{"id":"a-1","terminal":"t-1","status":"refused","code":"late_bet","reason":{"code":"late_bet","values":'
            b'{"seat":1,"bet":"fan:2"}},"text":"late","law":"art. 4"}'
        ),
        WagerAnswer(
            "a-1", "t-1", "refused", "late_bet", say("late_bet", seat=1, bet="fan:2"), text="late", law="art. 4"
        ),
    ),
]

# ---- the documents


@pytest.mark.parametrize(("line", "message"), EXACT)
def test_exact_documents_both_ways(line: bytes, message: WagerRequest | WagerAnswer) -> None:
    assert Decoder().feed(b"t-1 " + line + b"\n") == [Addressed("t-1", message)]
    assert encode(message) == line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seat":1', b'"seat":0'),
        (b'"seat":1', b'"seat":100'),
        (b'"amount":500', b'"amount":0'),
        (b'"amount":500', b'"amount":9007199254740992'),
        (b'"amount":500', b'"amount":5.5'),
        (b'"amount":500', b'"amount":"500"'),
        (b'"amount":500', b'"amount":500,"more":1'),
        (b'"bet":"fan:2"', b'"bet":""'),
        (b'"bet":"fan:2"', b'"bet":"' + b"x" * 65 + b'"'),
        (b"2026-11-20T20:01:00Z", b"2026-11-20T20:01:00"),
        (b'"action":"place"', b'"action":"double"'),
        (b'"action":"place",', b""),
    ],
)
def test_invalid_request_is_named_with_its_id(old: bytes, new: bytes) -> None:
    line = EXACT[0][0].replace(old, new)
    [(_, message)] = [(one.terminal, one.message) for one in Decoder().feed(b"t-1 " + line + b"\n")]
    assert isinstance(message, Unreadable)
    assert (message.id, message.terminal) == ("a-1", "t-1")
    assert message.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"act":"raise"', b'"act":"stack"'),  # chips before a seat are the dealer's word
        (b'"act":"raise"', b'"act":"show"'),
        (b'"act":"raise"', b'"act":"dead"'),
        (ROUND.encode(), b""),
        (b'"round":"fan-1:2026-11-20:17",', b""),
        (b'"amount":900', b'"amount":-1'),
    ],
)
def test_a_player_decides_in_a_named_round_and_nothing_else(old: bytes, new: bytes) -> None:
    [one] = Decoder().feed(b"t-1 " + EXACT[3][0].replace(old, new) + b"\n")
    assert isinstance(one.message, Unreadable)


@pytest.mark.parametrize("line", [b"x" * (LONGEST_REQUEST + 1), b"\xff\xfe", b"[" * 5000, b'{"id":"a b"}', b"null"])
def test_garbage_has_no_id(line: bytes) -> None:
    [(_, message)] = [(one.terminal, one.message) for one in Decoder().feed(b"t-1 " + line + b"\n")]
    assert isinstance(message, Unreadable)
    assert message.id == ""
    assert len(message.raw) <= LONGEST_ANSWER


@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([line + b"\n" for line, _ in EXACT])), max_size=12))
def test_any_bytes_in_any_pieces_give_the_same_messages(pieces: list[bytes]) -> None:
    data = b"".join(pieces) + b"\n"
    decoder = Decoder()
    assert [message for n in range(len(data)) for message in decoder.feed(data[n : n + 1])] == Decoder().feed(data)


# ---- the driver


class Session:
    """One session, and the next ones with the memory of the last."""

    def __init__(self, options: TerminalOptions | None = None) -> None:
        self.options = options or TerminalOptions()
        self.notes = Notebook()
        self.start()

    def start(self) -> None:
        self.link = MemoryLink()
        self.driver = BetTerminals(self.options, self.notes.memory)
        self.task = asyncio.create_task(self.driver.run(self.link, self.notes))

    async def says(self, *messages: WagerRequest | bytes, seconds: float = 0.01) -> list[WagerAnswer]:
        """Send; the answers that came."""
        self.link.sent.clear()
        for one in messages:
            self.link.feed(b"t-1 " + one + b"\n" if isinstance(one, bytes) else encode_line(one.terminal, one))
        await asyncio.sleep(seconds)
        said = Decoder().feed(bytes(self.link.sent))
        answers = [one.message for one in said]
        assert all(isinstance(one.message, WagerAnswer) and one.message.terminal == one.terminal for one in said)
        assert all(isinstance(one, WagerAnswer) for one in answers)
        return [one for one in answers if isinstance(one, WagerAnswer)]

    async def restart(self) -> None:
        await self.end()
        self.start()
        await asyncio.sleep(0.01)

    async def end(self) -> Sequence[Event]:
        self.link.hang_up()
        with pytest.raises(LinkLost):
            await self.task
        return self.notes.events

    @property
    def wagers(self) -> list[Event]:
        return [one for one in self.notes.events if isinstance(one, WagerPlaced | WagerWithdrawn)]


@virtual_time
async def test_request_becomes_one_event_and_the_rules_answer() -> None:
    session = Session()
    named = msgspec.structs.replace(PLACE, id="a-3", round=ROUND)
    back = WithdrawWager("a-2", "t-1", AT, 1, "fan:2", 200, ROUND)
    assert await session.says(PLACE, named, back) == []
    assert session.wagers == [
        PLACED,
        msgspec.structs.replace(PLACED, request="a-3", round=ROUND),
        WagerWithdrawn(1, "fan:2", 200, "a-2", "t-1", ROUND),
    ]
    assert session.notes.sightings[-3].wire == encode(PLACE)
    assert session.notes.events[0] == DeviceOnline(continuous=True, model="betting terminals")
    await session.end()


@virtual_time
async def test_a_decision_becomes_one_event_and_its_id_is_used_once() -> None:
    session = Session()
    raised = Act("a-4", "t-1", AT, 1, "raise", ROUND, 900)
    assert await session.says(raised, raised) == []
    assert session.notes.events[1:] == [PlayerActed(1, "raise", 900, "a-4", "t-1", ROUND)]
    for other in (msgspec.structs.replace(raised, act="bet"), msgspec.structs.replace(raised, amount=901)):
        [answer] = await session.says(other)
        assert (answer.status, answer.code) == ("refused", "request_id_used")
    [answer] = await session.says(msgspec.structs.replace(raised, id="a-5", seat=2))
    assert (answer.status, answer.code) == ("refused", "seat_unknown")
    await session.end()


@virtual_time
async def test_repeated_request_is_one_event_over_restarts_and_after_its_expiry() -> None:
    session = Session()
    await session.says(PLACE, PLACE)
    await session.restart()
    assert await session.says(PLACE) == []
    later = msgspec.structs.replace(PLACE, expires=AT + timedelta(seconds=20))
    assert await session.says(later) == []
    await asyncio.sleep(100)
    assert await session.says(PLACE) == []
    assert session.wagers == [PLACED]
    await session.end()


@virtual_time
async def test_same_id_of_another_terminal_is_another_request() -> None:
    session = Session()
    await session.says(PLACE, msgspec.structs.replace(PLACE, terminal="t-2", seat=2))
    assert len(session.wagers) == 2
    await session.end()


REFUSED = {
    "request_expired": msgspec.structs.replace(PLACE, expires=START),
    "request_expires_too_late": msgspec.structs.replace(PLACE, expires=START + timedelta(seconds=130)),
    "terminal_unknown": msgspec.structs.replace(PLACE, terminal="t-9"),
    "seat_unknown": msgspec.structs.replace(PLACE, seat=2),
}


@pytest.mark.parametrize("code", REFUSED)
@virtual_time
async def test_refused_request_is_answered_and_never_kept(code: str) -> None:
    session = Session(TerminalOptions(terminals={"t-1": (1, 3), "t-2": (9,)}))
    [answer] = await session.says(REFUSED[code])
    assert (answer.id, answer.terminal, answer.status, answer.code) == (
        *("a-1", REFUSED[code].terminal, "refused"),
        code,
    )
    assert answer.text == words.reason("en", answer.reason)
    assert await session.says(REFUSED[code]) == [answer]
    assert session.wagers == []
    await session.end()


@pytest.mark.parametrize(
    ("expires", "code"),
    [
        (b"0001-01-01T00:00:00+14:00", "request_expired"),
        (b"9999-12-31T23:59:59-14:00", "request_expires_too_late"),
    ],
)
@virtual_time
async def test_an_expiry_at_the_end_of_the_calendar_is_refused(expires: bytes, code: str) -> None:
    session = Session()
    [answer] = await session.says(EXACT[0][0].replace(b"2026-11-20T20:01:00Z", expires))
    assert (answer.status, answer.code) == ("refused", code)
    assert await session.says(msgspec.structs.replace(PLACE, id="a-2")) == []
    assert len(session.wagers) == 1
    await session.end()


@virtual_time
async def test_a_terminal_for_no_seat_of_the_table_is_unknown() -> None:
    session = Session(TerminalOptions(seats=7))
    [answer] = await session.says(msgspec.structs.replace(PLACE, terminal="t-9", seat=9))
    assert answer.code == "terminal_unknown"
    await session.end()


@pytest.mark.parametrize(
    ("terminals", "words_"),
    [
        ({"t-1": [9]}, "t-1 has seat 9, and seats = 7"),
        ({"t-1": []}, "t-1 has no seat; write t-1 = [1]"),
        ({f"t-{n}": [1] for n in range(100)}, "100 are listed, a table has at most 99"),
    ],
)
def test_a_terminal_that_can_bet_nowhere_is_a_mistake(terminals: dict[str, list[int]], words_: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=re.escape(words_)):
        msgspec.convert({"seats": 7, "terminals": terminals}, TerminalOptions)


@virtual_time
async def test_a_refused_request_stays_refused_when_the_clock_is_set_back() -> None:
    session = Session()
    session.link.set = 3600.0
    [answer] = await session.says(PLACE)
    assert answer.code == "request_expired"
    session.link.set = 0.0
    assert await session.says(PLACE) == [answer]
    assert session.wagers == []
    await session.end()


@virtual_time
async def test_used_id_with_another_bet_is_refused_and_the_first_stands() -> None:
    session = Session()
    await session.says(PLACE)
    for other in (
        msgspec.structs.replace(PLACE, amount=501),
        msgspec.structs.replace(PLACE, bet="fan:3"),
        msgspec.structs.replace(PLACE, round=ROUND),
        WithdrawWager("a-1", "t-1", AT, 1, "fan:2", 500),
    ):
        [answer] = await session.says(other)
        assert (answer.status, answer.code) == ("refused", "request_id_used")
    assert session.wagers == [PLACED]
    await session.end()


@pytest.mark.parametrize("line", [b"no json", b"x" * 20_000, EXACT[4][0], EXACT[0][0].replace(b"500", b"0")])
@virtual_time
async def test_malformed_message_has_one_answer_and_a_fault_that_ends(line: bytes) -> None:
    session = Session()
    [answer] = await session.says(line)
    assert (answer.status, answer.code) == ("refused", "request_malformed")
    assert answer.text == words.reason("en", answer.reason)
    await session.says(line)
    await asyncio.sleep(QUIET_S + 1)
    fault, end = (await session.end())[1:]
    assert isinstance(fault, DeviceFaulted)
    assert fault.code == "terminals.malformed"
    assert end == DeviceRecovered("terminals.malformed")


@virtual_time
async def test_fault_of_the_last_session_ends_too() -> None:
    session = Session()
    await session.says(b"no json")
    await session.restart()
    await asyncio.sleep(QUIET_S + 1)
    assert DeviceRecovered("terminals.malformed") in await session.end()


@virtual_time
async def test_one_terminal_that_sends_too_much_is_told_to_repeat_and_others_bet() -> None:
    session = Session(TerminalOptions(per_second=3))
    many = [msgspec.structs.replace(PLACE, id=f"a-{n}") for n in range(5)]
    answers = await session.says(*many, msgspec.structs.replace(PLACE, terminal="t-2", seat=2))
    assert [(one.id, one.status, one.code) for one in answers] == [
        ("a-3", "failed", "too_many_requests"),
        ("a-4", "failed", "too_many_requests"),
    ]
    assert len(session.wagers) == 4
    await asyncio.sleep(1)
    assert await session.says(*many[3:]) == []
    assert len(session.wagers) == 6
    await session.end()


@virtual_time
async def test_flood_is_dropped_and_told_once() -> None:
    session = Session()
    answers = await session.says(*[b"no json"] * 5000)
    assert len(answers) == MOST_ANSWERS
    await asyncio.sleep(1)
    assert await session.says(PLACE) == []
    assert session.wagers == [PLACED]
    faults = [one.code for one in session.notes.events if isinstance(one, DeviceFaulted)]
    assert faults == ["terminals.malformed", "terminals.flood"]
    await asyncio.sleep(QUIET_S + 1)
    assert len([one for one in await session.end() if isinstance(one, DeviceRecovered)]) == 2


@virtual_time
async def test_ids_are_bounded_and_no_live_one_is_forgotten() -> None:
    session = Session(TerminalOptions(per_second=MOST_ANSWERS, longest=600, seats=1))
    for n in range(MOST_IDS):
        await session.says(
            msgspec.structs.replace(PLACE, id=f"a-{n}", expires=START + timedelta(seconds=300)), seconds=0.02
        )
    full = msgspec.structs.replace(PLACE, id="more", expires=START + timedelta(seconds=400))
    [answer] = await session.says(full)
    assert (answer.status, answer.code) == ("failed", "too_many_requests")
    assert session.notes.memory is not None
    assert len(session.notes.memory) < 40 * MOST_IDS
    await asyncio.sleep(300)
    assert await session.says(full) == []
    assert len(session.wagers) == MOST_IDS + 1
    await session.end()


@virtual_time
async def test_requests_that_an_older_version_kept_are_not_kept_again() -> None:
    """It kept the ids of all terminals in one table; a terminal repeats right after the update."""
    session = Session()
    await session.says(PLACE)
    assert session.notes.memory is not None
    kept = msgspec.json.decode(session.notes.memory, type=Memory)
    session.notes.memory = msgspec.json.encode({"ids": kept.terminals["t-1"], "standing": kept.standing})
    await session.restart()
    assert await session.says(PLACE) == []
    [answer] = await session.says(msgspec.structs.replace(PLACE, amount=501))
    assert answer.code == "request_id_used"
    await session.restart()  # also where its memory was written by this version since
    await session.says(msgspec.structs.replace(PLACE, id="b", terminal="t-2", seat=2))
    await session.restart()
    assert await session.says(PLACE) == []
    assert len(session.wagers) == 2
    await session.end()


@virtual_time
async def test_a_terminal_that_was_removed_and_listed_again_repeats_nothing_twice() -> None:
    session = Session(TerminalOptions(terminals={"t-1": (1,), "t-2": (2,)}))
    await session.says(PLACE)
    session.options = TerminalOptions(terminals={"t-2": (2,)})
    await session.restart()
    await session.says(msgspec.structs.replace(PLACE, id="b", terminal="t-2", seat=2))
    session.options = TerminalOptions(terminals={"t-1": (1,)})
    await session.restart()
    assert await session.says(PLACE) == []
    assert len(session.wagers) == 2
    await session.end()


@virtual_time
async def test_unreadable_memory_begins_empty() -> None:
    session = Session()
    session.notes.memory = b"\x00"
    await session.restart()
    session.notes.memory = msgspec.json.encode(Memory(b"123"))
    await session.restart()
    assert await session.says(PLACE) == []
    assert session.wagers == [PLACED]
    await session.end()


# ---- with the simulated terminals


@pytest.mark.parametrize("carry", [whole, byte_by_byte, lossy(Random(3), 0.3)])
@virtual_time
async def test_every_bet_of_the_simulated_terminals_is_kept_once(carry: object) -> None:
    device = Simulated(Random(5))
    device.clock = lambda: MemoryLink().stamp().at
    mirror = Mirror(device, lambda memory: BetTerminals(TerminalOptions(), memory), carry)  # type: ignore[arg-type]
    async with mirror.living():
        ids = []
        for n in range(at_length(12, 100)):
            ids.append(device.place(n % 7 + 1, "main", 100, mirror.now()))
            mirror.stir()
            await asyncio.sleep(3.0)
            if n % 4 == 3:
                mirror.cut()
        await asyncio.sleep(60.0)
    kept = [one.request for one in mirror.notes.events if isinstance(one, WagerPlaced)]
    refused = [id_ for id_, answer in device.answers.items() if answer.status == "refused"]
    assert len(kept) == len(set(kept))
    assert sorted([*kept, *refused]) == sorted(ids)


def test_a_simulated_terminal_repeats_a_request_until_its_round_is_over() -> None:
    """Without the name of its round, a repetition after that would be a bet of the next round."""
    device = Simulated(Random(5))
    id_ = device.place(1, "main", 100, 0.0)
    named = device.place(1, "main", 100, 0.0, ROUND)
    assert [device.wake(now).count(id_.encode() + b'"') for now in (0.0, 2.0, 5.0)] == [1, 1, 1]
    device.end_round()
    assert [one.message.id for one in Decoder().feed(device.wake(60.0))] == [named]
    answer = WagerAnswer(id_, "t-1", "accepted", event="e", round="r")  # it came to the edge all the same
    device.hear(encode_line("t-1", answer), 61.0)
    assert device.accepted(id_)


def test_simulated_terminals_do_not_repeat_old_requests_for_ever() -> None:
    """They know the newest KEPT; older ones were sent while the edge was away."""
    device = Simulated(Random(5))
    for _ in range(2 * KEPT):
        device.place(1, "main", 100, 0.0, ROUND)
    device.end_round()
    for n in range(2 * KEPT):
        for message in [one.message for one in Decoder().feed(device.wake(60.0 * n))]:
            assert isinstance(message, PlaceWager)
            device.hear(encode_line("t-1", WagerAnswer(message.id, "t-1", "refused", code="request_expired")), 60.0 * n)
    assert not device.waiting
