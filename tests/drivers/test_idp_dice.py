"""The dice recogniser: exact messages, any chunking, any noise, every answer, and the mirror.

What is promised: `dice.read` is told only of an answer to the request that is open, with three faces and no error.
"""

import asyncio
import json
from random import Random
from typing import Any

import msgspec
import pytest
from helpers import START, MemoryLink, Notebook, at_length, virtual_time
from hypothesis import given, settings, strategies as st
from message_mirror import Carry, Mirror, byte_by_byte, lossy, whole

from drivers.driver import CommandFailed, CommandRefused, LinkLost
from drivers.faults import Standing
from drivers.idp_dice import DiceOptions, IdpDice, Memory
from protocols.contract.commands import ReadDice
from protocols.contract.events import DeviceFaulted, DeviceOnline, DeviceRecovered, DiceRead, Event, type_of
from protocols.idp_dice import MAX_LINE, Decoder, Detect, Garbage, Message, Other, Result, Stop, encode
from simulators.devices.billy_iii import Billy
from simulators.devices.idp_dice import Recogniser

DETECT = b'{"command":"detect","arg":{"round_id":"R7","input":"rtsp://cam/1"}}\n'
READ = b'{"response":"result","arg":{"round_id":"R7","res":[1,2,6],"err":0}}\n'
EXACT: list[tuple[bytes, Message]] = [
    (DETECT, Detect("R7", "rtsp://cam/1")),
    (
        b'{"command":"detect","arg":{"round_id":"R7","input":"rtsp://cam/1","output":"rtsp://cam/2"}}\n',
        Detect("R7", "rtsp://cam/1", "rtsp://cam/2"),
    ),
    (b'{"command":"timeout","arg":{}}\n', Stop()),
    (READ, Result("R7", (1, 2, 6), 0, READ.strip())),
]
NOTHING = b'{"response":"result","arg":{"round_id":"R7","res":null,"err":-1}}\n'
UNMOVED = b'{"response":"result","arg":{"round_id":"R7","res":null,"err":-3}}\n'
ONLINE = DeviceOnline(True, "IDP dice")

# ---- the wire


@pytest.mark.parametrize(("line", "message"), EXACT)
def test_exact_messages_both_ways(line: bytes, message: Message) -> None:
    assert Decoder().feed(line) == [message]
    assert isinstance(message, Detect | Stop | Result)
    assert encode(message) == line


def test_answers_without_a_result() -> None:
    assert Decoder().feed(NOTHING + UNMOVED) == [
        Result("R7", None, -1, NOTHING.strip()),
        Result("R7", None, -3, UNMOVED.strip()),
    ]
    assert encode(Result("R7", None, -1)) == NOTHING
    assert encode(Result("R7", None, -3)) == UNMOVED


@pytest.mark.parametrize(
    ("res", "err", "faces"),
    [
        ("[1,2,6]", 0, (1, 2, 6)),
        ("[6,6,6]", 0, (6, 6, 6)),
        ("[1,2,6]", -1, None),
        ("[1,2,6]", -3, None),
        ("[1,2,6]", 1, None),
        *[(res, 0, None) for res in ("[]", "[1,2]", "[1,2,3,4]", "[0,1,2]", "[1,2,7]", "null", "17", '"123"', "{}")],
        *[(res, 0, None) for res in ("[1,2,true]", "[1,2,3.0]", '[1,2,"3"]', "[1,2,null]", "[[1,2,3]]", "[-1,2,3]")],
        ('["9D","KC","","AS","4H",""]', 0, None),
        ("[1,2,99999999999999999999999]", 0, None),
    ],
)
def test_a_reading_is_three_faces_without_error(res: str, err: int, faces: tuple[int, ...] | None) -> None:
    line = f'{{"response":"result","arg":{{"round_id":"R","res":{res},"err":{err}}}}}\n'
    (result,) = Decoder().feed(line.encode())
    assert isinstance(result, Result)
    assert result.faces == faces


def test_the_order_of_the_keys_and_a_round_that_is_a_number() -> None:
    line = b'{ "arg": {"err": 0, "more": 1, "res": [1, 2, 3], "round_id": 17}, "x": [], "response": "result" }'
    assert Decoder().feed(line + b"\r\n") == [Result("17", (1, 2, 3), 0, line)]


@pytest.mark.parametrize(("res", "faces"), [("[1,2,3]", (1, 2, 3)), ("null", None), ("[1,2]", None)])
def test_an_answer_without_err_is_an_answer_without_error(res: str, faces: tuple[int, ...] | None) -> None:
    line = f'{{"response":"result","arg":{{"round_id":"R","res":{res}}}}}\n'
    (result,) = Decoder().feed(line.encode())
    assert isinstance(result, Result)
    assert (result.err, result.faces) == (0, faces)


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"response":"hello","arg":{}}',
        b'{"response":"result"}',
        b'{"response":"result","arg":{"round_id":"R","res":[1,2,3],"err":null}}',
        b'{"response":"result","arg":{"round_id":"R","res":[1,2,3],"err":"0"}}',
        b'{"response":"result","arg":{"round_id":null,"res":[1,2,3],"err":0}}',
        b'{"response":"result","command":"detect","arg":{}}',
        b'{"command":"detect","arg":[]}',
    ],
)
def test_other_objects(line: bytes) -> None:
    assert Decoder().feed(line + b"\n") == [Other(line)]


@pytest.mark.parametrize("line", [b"", b"null", b"[1]", b"{", b"{]}", b'{"\xff":1}', b'{"a":' + b"[" * 3000 + b"}"])
def test_no_object(line: bytes) -> None:
    assert Decoder().feed(line + b"\n") == ([Garbage(line)] if line else [])


def test_the_tail_of_what_is_too_long_is_no_answer() -> None:
    decoder = Decoder()
    assert decoder.feed(b"x" * MAX_LINE) == [Garbage(b"x" * MAX_LINE)]
    assert decoder.feed(READ) == []
    assert decoder.feed(READ) == [EXACT[3][1]]
    long = b'{"a":"' + b"x" * MAX_LINE + b'"}'
    assert Decoder().feed(long + b"\n") == [Garbage(long)]
    with pytest.raises(ValueError, match="at most 4095"):
        encode(Detect("R", "x" * MAX_LINE))


PIECES = st.one_of(st.binary(max_size=30), st.sampled_from([DETECT, READ, NOTHING, b"{}\n", b'{"response":"result"']))


@settings(max_examples=at_length(25, 300), derandomize=True)
@given(st.lists(PIECES, max_size=12), st.integers(1, 9))
def test_any_bytes_in_any_chunks(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces) + b"\n"
    at_once = Decoder().feed(data)
    decoder = Decoder()
    assert [one for n in range(0, len(data), size) for one in decoder.feed(data[n : n + size])] == at_once
    assert all(one.raw in data for one in at_once if isinstance(one, Result | Other | Garbage))


@settings(max_examples=40, derandomize=True)
@given(st.text(max_size=40), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), st.integers(-(2**63), 2**63 - 1))
def test_encoded_messages_are_decoded(number: str, res: list[int], err: int) -> None:
    try:
        line = encode(Result(number, tuple(res), err))
    except UnicodeEncodeError:
        return
    assert Decoder().feed(line) == [Result(number, tuple(res), err, line.strip())]


# ---- the driver, word by word


class Session:
    """A driver on a link in memory, the test as its recogniser."""

    def __init__(self, options: DiceOptions | None = None, memory: bytes | None = None) -> None:
        self.link = MemoryLink()
        self.notes = Notebook()
        self.driver = IdpDice(options or DiceOptions(input="rtsp://cam/1"), memory)
        self.task = asyncio.create_task(self.driver.run(self.link, self.notes))

    def read(self, round_: str = "R") -> asyncio.Task[dict[str, Any]]:
        return asyncio.create_task(self.driver.obey(ReadDice(round_)))

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in bytes(self.link.sent).splitlines()]

    @property
    def number(self) -> str:
        """The last request's."""
        return str([one for one in self.asked if one["command"] == "detect"][-1]["arg"]["round_id"])

    async def answer(self, res: list[int] | None, err: int = 0, number: str | None = None) -> None:
        found = Result(self.number if number is None else number, None if res is None else tuple(res), err)
        self.link.feed(encode(found))
        await asyncio.sleep(0.01)

    @property
    def words(self) -> list[str]:
        words = []
        for event in self.notes.events[1:]:
            match event:
                case DeviceFaulted(code, _, severity):
                    words.append(f"{code} {severity}")
                case DeviceRecovered(code):
                    words.append(f"-{code}")
                case _:
                    words.append(type_of(event))
        return words

    async def end(self) -> list[Event]:
        self.link.hang_up()
        with pytest.raises(LinkLost, match="hung up"):
            await self.task
        return self.notes.events


async def ready(options: DiceOptions | None = None, memory: bytes | None = None) -> Session:
    session = Session(options, memory)
    await asyncio.sleep(0.01)
    return session


@virtual_time
async def test_online_at_once_and_nothing_is_asked_unbidden() -> None:
    session = await ready()
    await asyncio.sleep(24 * 3600)
    assert session.link.sent == b""
    assert await session.end() == [ONLINE]


@virtual_time
async def test_a_reading() -> None:
    session = await ready()
    reading = session.read("cus-1:4")
    await asyncio.sleep(0.01)
    instant = f"{START.replace(microsecond=10000):%Y%m%d%H%M%S%f}"
    assert session.asked == [
        {"command": "detect", "arg": {"round_id": f"cus-1:4-{instant}", "input": "rtsp://cam/1"}},
    ]
    await asyncio.sleep(1)
    await session.answer([2, 5, 5])
    assert await reading == {"faces": [2, 5, 5]}
    assert await session.end() == [ONLINE, DiceRead((2, 5, 5))]
    assert Decoder().feed(session.notes.sightings[-1].wire + b"\n")[0] == Result(
        session.number, (2, 5, 5), 0, session.notes.sightings[-1].wire
    )
    assert len(session.asked) == 1


@virtual_time
async def test_the_same_round_twice_is_two_requests() -> None:
    session = await ready(DiceOptions(output="rtsp://cam/2"))
    numbers = []
    for _ in range(2):
        reading = session.read("R")
        await asyncio.sleep(0.01)
        assert session.asked[-1]["arg"]["output"] == "rtsp://cam/2"
        numbers.append(session.number)
        await session.answer([1, 1, 1])
        assert await reading
    assert len(set(numbers)) == 2
    await session.end()


@pytest.mark.parametrize(
    ("res", "err"), [(None, -1), ([1, 2], 0), ([1, 2, 7], 0), ([1, 2, 3], -1), (None, 0), ([1, 2, 3], 5)]
)
@virtual_time
async def test_no_result_is_asked_again_and_the_third_time_a_person_decides(res: list[int] | None, err: int) -> None:
    session = await ready()
    reading = session.read()
    for _ in range(3):
        await asyncio.sleep(1)
        await session.answer(res, err)
    await asyncio.sleep(1)
    with pytest.raises(CommandFailed, match="3 attempts"):
        await reading
    assert session.words == [
        *("idp.no_result warning", "idp.no_result error", "idp.no_result error", "idp.failed error"),
    ]
    assert [one["command"] for one in session.asked] == ["detect"] * 3 + ["timeout"]
    assert len({one["arg"]["round_id"] for one in session.asked[:3]}) == 1
    # the next good reading ends it all, and what comes then is a first time again
    reading = session.read()
    await asyncio.sleep(0.1)
    await session.answer(None, -1)
    await asyncio.sleep(1)
    await session.answer([1, 2, 3])
    assert await reading == {"faces": [1, 2, 3]}
    assert session.words[4:] == ["idp.no_result error", "dice.read", "-idp.no_result", "-idp.failed"]
    reading = session.read()
    await asyncio.sleep(0.1)
    await session.answer(None, -1)
    assert session.words[8:] == ["idp.no_result warning"]
    await session.end()
    with pytest.raises(CommandFailed, match="lost in the middle"):
        await reading


@virtual_time
async def test_no_answer_in_five_seconds_three_times() -> None:
    session = await ready()
    reading = session.read()
    await asyncio.sleep(4.95)
    assert session.words == []
    await asyncio.sleep(0.1)
    assert session.words == ["idp.timeout warning"]
    await asyncio.sleep(10.7)
    assert not reading.done()
    await asyncio.sleep(0.3)
    with pytest.raises(CommandFailed, match="could not be read"):
        await reading
    assert session.words == [*("idp.timeout warning", "idp.timeout error", "idp.timeout error", "idp.failed error")]
    assert session.asked[-1] == {"command": "timeout", "arg": {}}
    # the answer that comes now is nobody's
    await session.answer([1, 2, 3])
    assert session.words[4:] == ["idp.late warning"]
    await session.end()


@virtual_time
async def test_an_answer_between_two_attempts_is_the_answer() -> None:
    session = await ready()
    reading = session.read()
    await asyncio.sleep(5.2)
    await session.answer([4, 4, 4])
    assert await reading == {"faces": [4, 4, 4]}
    assert session.words == ["idp.timeout warning", "dice.read", "-idp.timeout"]
    assert len(session.asked) == 1
    await session.end()


@virtual_time
async def test_the_dice_did_not_move() -> None:
    session = await ready()
    for severity in ("warning", "error"):
        reading = session.read()
        await asyncio.sleep(0.1)
        await session.answer(None, -3)
        with pytest.raises(CommandFailed, match="shake again"):
            await reading
        assert session.words[-1] == f"idp.no_shake {severity}"
    assert len(session.words) == 2
    assert [one["command"] for one in session.asked] == ["detect", "detect"]
    await session.end()


@virtual_time
async def test_a_late_answer_of_an_earlier_round_is_never_a_reading() -> None:
    session = await ready()
    first = session.read("1")
    await asyncio.sleep(17)
    with pytest.raises(CommandFailed):
        await first
    old = session.number
    second = session.read("2")
    await asyncio.sleep(1)
    await session.answer([6, 6, 6], number=old)
    await session.answer([6, 6, 6], number="somebody else's")  # in the same second: told once
    await asyncio.sleep(2)
    await session.answer([6, 6, 6], number=old)
    assert "dice.read" not in session.words
    await session.answer([1, 2, 3])
    assert await second == {"faces": [1, 2, 3]}
    assert [word for word in session.words if "late" in word] == ["idp.late warning", "idp.late error", "-idp.late"]
    assert [event for event in session.notes.events if isinstance(event, DiceRead)] == [DiceRead((1, 2, 3))]
    await session.end()


@virtual_time
async def test_a_second_answer_says_the_same_or_puts_the_first_in_doubt() -> None:
    session = await ready()
    reading = session.read()
    await asyncio.sleep(0.1)
    await session.answer([1, 2, 3])
    assert await reading
    await session.answer([1, 2, 3])
    await session.answer(None, -1)
    assert session.words == ["dice.read"]
    await session.answer([1, 2, 4])
    assert session.words == ["dice.read", "dice.read", "idp.contradiction error"]
    await asyncio.sleep(10)
    await session.answer([1, 2, 5])
    assert session.words[3:] == ["idp.late warning"]
    await session.end()


@virtual_time
async def test_an_answer_behind_one_that_could_not_be_read_is_asked_again() -> None:
    """The one that was lost may have said other faces."""
    session = await ready()
    reading = session.read()
    await asyncio.sleep(0.1)
    session.link.feed(b"{\x00 noise\n")
    await session.answer([1, 1, 1])
    assert not reading.done()
    await asyncio.sleep(6)
    assert len({one["arg"]["round_id"] for one in session.asked}) == 2
    await session.answer([6, 6, 6])
    assert await reading == {"faces": [6, 6, 6]}
    await session.end()


@virtual_time
async def test_invalid_answers_are_reported_once_a_second() -> None:
    session = await ready()
    session.link.feed(b"what?\n{}\n" * 50 + DETECT)
    await asyncio.sleep(1.1)
    session.link.feed(b'{"response":"pong"}\n')
    await asyncio.sleep(0.1)
    assert session.words == ["idp.unreadable warning", "idp.unreadable error"]
    await session.end()


@virtual_time
async def test_every_refusal() -> None:
    session = Session()
    with pytest.raises(CommandRefused, match="not connected"):
        await session.driver.obey(ReadDice())
    await asyncio.sleep(0.01)
    reading = session.read("")
    await asyncio.sleep(0.01)
    with pytest.raises(CommandRefused, match="under way"):
        await session.driver.obey(ReadDice("2"))
    assert len(session.asked) == 1
    await session.end()
    with pytest.raises(CommandFailed, match="lost in the middle"):
        await reading
    with pytest.raises(CommandRefused, match="not connected"):
        await session.driver.obey(ReadDice())


@virtual_time
async def test_a_request_that_cannot_be_written_failed() -> None:
    session = await ready()

    def gone(_data: bytes) -> None:
        raise LinkLost("the broker is gone")

    session.link.on_write = gone
    with pytest.raises(CommandFailed, match="broker is gone"):
        await session.driver.obey(ReadDice())
    await session.end()


@virtual_time
async def test_cancelled_wait_stops_the_recogniser() -> None:
    session = await ready()
    reading = session.read()
    await asyncio.sleep(1)
    reading.cancel()
    await asyncio.sleep(0.1)
    assert reading.cancelled()
    assert [one["command"] for one in session.asked] == ["detect", "timeout"]
    again = session.read()
    await asyncio.sleep(0.1)
    await session.answer([1, 2, 3])
    assert await again
    await session.end()


@virtual_time
async def test_continuous_unless_a_request_was_open() -> None:
    session = await ready()
    reading = session.read()
    await asyncio.sleep(1)
    await session.end()
    with pytest.raises(CommandFailed):
        await reading
    again = await ready(memory=session.notes.memory)
    assert await again.end() == [DeviceOnline(False, "IDP dice")]
    third = await ready(memory=again.notes.memory)
    reading = third.read()
    await asyncio.sleep(0.1)
    await third.answer([1, 2, 3])
    assert await reading
    assert (await third.end())[0] == ONLINE
    assert (await (await ready(memory=third.notes.memory)).end())[0] == ONLINE


@virtual_time
async def test_a_fault_outlives_a_restart_until_a_good_reading() -> None:
    session = await ready()
    reading = session.read()
    await asyncio.sleep(20)
    with pytest.raises(CommandFailed):
        await reading
    await session.end()
    again = await ready(memory=session.notes.memory)
    reading = again.read()
    await asyncio.sleep(0.1)
    await again.answer([1, 2, 3])
    assert await reading
    assert again.notes.events[0] == ONLINE
    assert again.words == ["dice.read", "-idp.timeout", "-idp.failed"]
    await again.end()


@pytest.mark.parametrize("memory", [b"", b"[]", b'{"standing":{"open":["idp.long_gone"]}}', b"\xff"])
@virtual_time
async def test_any_memory(memory: bytes) -> None:
    assert await (await ready(memory=memory)).end() == [ONLINE]


def test_memory_and_options() -> None:
    kept = Memory(Standing(("idp.failed",), ()), open=True)
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Memory) == kept
    for wrong in ({"speed": 1}, {"input": ""}, {"timeout": 0}, {"attempts": 0}, {"pause": -1}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, IdpDice.Options)


# ---- the recogniser


def test_a_simulated_look() -> None:
    recogniser = Recogniser(Random(1), lambda: (1, 2, 3))
    assert recogniser.hear(DETECT[:9], 1.0) == recogniser.hear(DETECT[9:], 1.0) == b""
    assert 1.8 <= (due := recogniser.due()) <= 3.0
    assert recogniser.wake(due) == READ.replace(b"[1,2,6]", b"[1,2,3]")
    assert recogniser.due() == float("inf")
    recogniser.hear(DETECT + b'{"command":"timeout","arg":{}}\n', 9.0)
    assert recogniser.due() == float("inf")
    with pytest.raises(ValueError, match="no fault 'fire', only no_result"):
        recogniser.inject("fire", 0.0)


def test_it_sees_the_dice_of_the_shaker() -> None:
    billy = Billy(Random(1))
    recogniser = Recogniser(Random(2), lambda: billy.faces)
    for _ in range(3):
        billy.press(billy.due() if billy.due() < 1e9 else 0.0)
        while billy.due() < float("inf"):
            billy.wake(billy.due())
        recogniser.hear(DETECT, 0.0)
        (result,) = Decoder().feed(recogniser.wake(recogniser.due()))
        assert isinstance(result, Result)
        assert result.faces == billy.faces


# ---- the mirror


def mirrored(seed: int = 1, carry: Carry = whole) -> tuple[Recogniser, Mirror]:
    recogniser = Recogniser(Random(seed))
    return recogniser, Mirror(recogniser, lambda memory: IdpDice(DiceOptions(), memory), carry)


def readings(mirror: Mirror) -> list[tuple[int, ...]]:
    return [event.faces for event in mirror.notes.events if isinstance(event, DiceRead)]


@pytest.mark.parametrize("carry", [whole, byte_by_byte])
@virtual_time
async def test_mirror_over_a_good_line(carry: Carry) -> None:
    recogniser, mirror = mirrored(carry=carry)
    truth = []
    async with mirror.living():
        await asyncio.sleep(1)
        for n in range(30):
            recogniser.shake(mirror.now())
            truth.append(recogniser.faces)
            assert await mirror.order(ReadDice(str(n))) == {"faces": list(recogniser.faces)}
    assert readings(mirror) == truth
    assert mirror.told == ["device.online", *["dice.read"] * 30]


@virtual_time
async def test_a_recogniser_of_two_dice_reads_two_and_no_other_number() -> None:
    recogniser = Recogniser(Random(4), dice=2)
    mirror = Mirror(recogniser, lambda memory: IdpDice(DiceOptions(dice=2), memory), whole)
    async with mirror.living():
        await asyncio.sleep(1)
        assert await mirror.order(ReadDice("1")) == {"faces": list(recogniser.faces)}
        mirror.inject("two_dice")  # one of two
        recogniser.shake(mirror.now())
        assert await mirror.order(ReadDice("2")) == {"faces": list(recogniser.faces)}
    assert [len(faces) for faces in readings(mirror)] == [2, 2]
    assert [word for word in mirror.told if word != "dice.read"] == ["device.online", "idp.no_result", "-idp.no_result"]


@pytest.mark.parametrize("seed", range(5))
@virtual_time
async def test_mirror_over_a_line_that_loses_messages_never_tells_a_wrong_reading(seed: int) -> None:
    recogniser, mirror = mirrored(seed, lossy(Random(seed), 0.4))
    failed = 0
    rng = Random(seed)
    faults = ("late_answer", "wrong_round", "no_result", "timeout", "two_dice")
    async with mirror.living():
        await asyncio.sleep(1)
        for n in range(40):
            recogniser.shake(mirror.now())
            if rng.random() < 0.5:
                mirror.inject(rng.choice(faults))
            before = len(readings(mirror))
            try:
                await mirror.order(ReadDice(str(n)))
            except CommandFailed:
                failed += 1
            assert set(readings(mirror)[before:]) <= {recogniser.faces}
            assert len(readings(mirror)[before:]) <= 1
    assert 0 < failed < 30
    assert len(readings(mirror)) == 40 - failed


@pytest.mark.parametrize("fault", [*Recogniser.faults, *Recogniser.line])
@pytest.mark.parametrize("seed", range(at_length(1, 10)))
@virtual_time
async def test_mirror_of_every_fault(fault: str, seed: int) -> None:
    recogniser, mirror = mirrored(seed)
    ailment = {**Recogniser.faults, **Recogniser.line}[fault]
    async with mirror.living():
        await asyncio.sleep(1)
        await mirror.order(ReadDice("before"))
        recogniser.shake(mirror.now())
        mirror.inject(fault)
        try:
            read = (await mirror.order(ReadDice("now")))["faces"]
        except CommandFailed:
            read = None
        await asyncio.sleep(30)
        began = {word for word in mirror.told if word.startswith("idp.")}
        assert began == set(ailment.told)
        unread = bool({"idp.failed", "idp.no_shake"} & began)  # a person enters the dice, or declares the round void
        assert read == (None if unread else list(recogniser.faces))
        assert len(readings(mirror)) == (1 if unread else {"counts": 2, "suspended": 3}[ailment.round])
        first = dict(reversed(mirror.severities))
        assert {code for code, severity in first.items() if severity == "error"} <= {"idp.failed", "idp.contradiction"}
        if ailment.person:
            with pytest.raises(CommandFailed):
                await mirror.order(ReadDice("again"))
            recogniser.repair(mirror.now())
        recogniser.shake(mirror.now())
        assert await mirror.order(ReadDice("after")) == {"faces": list(recogniser.faces)}
    assert {word for word in mirror.told if word.startswith("-")} == {f"-{code}" for code in began}
    assert mirror.sessions == 1
