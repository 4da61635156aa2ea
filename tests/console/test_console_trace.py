"""The console's side of a trace: bytes in words, bounded, and nothing that is lost goes unsaid."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from helpers import START, virtual_time
from hypothesis import given, strategies as st

from daemon.cli.offline import capture_frames
from daemon.console.pages import trace
from daemon.console.pages.trace import BEHIND, KEPT, MOST_TRACED, SHOWN, Reader, Traces
from daemon.edge.links.link import Way
from drivers import DRIVERS
from protocols import bee_tek_shoe, billy_iii, cammegh_ss2
from protocols.contract.documents import TraceLine
from protocols.fdl import console as fdl_console, frame as fdl

DRIVER = {"d-1": "bee_tek_shoe", "c-1": "fdl_console"}


def driver_of(_table: str, device: str) -> str:
    return DRIVER.get(device, "")


def message(*frames: TraceLine) -> bytes:
    return b"\n".join(map(msgspec.json.encode, frames))


def frame(n: int, data: bytes, way: Way = "in", dropped: int = 0) -> TraceLine:
    return TraceLine(START + timedelta(seconds=n), way, data.hex(), n, dropped)


# ---- in words


def test_every_driver_has_its_words() -> None:
    assert {name for name, driver in DRIVERS.items() if driver.decoder is None} == {"sas_machine"}


def test_a_card_is_told_by_its_name_with_the_piece_that_completes_it() -> None:
    reader = Reader("bee_tek_shoe")
    line = bee_tek_shoe.encode(bee_tek_shoe.Drawn("KH"))
    assert reader.read("in", line[:4]) == []
    assert reader.read("in", line[4:]) == ["drawn: card KH"]


def test_both_ways_have_a_decoder_of_their_own() -> None:
    reader = Reader("cammegh_ss2")
    status = cammegh_ss2.Status(cammegh_ss2.State(4), 7, "17", cammegh_ss2.Flag(0), 250, True)
    line = cammegh_ss2.encode(status)
    assert reader.read("in", line[:5]) == []
    assert reader.read("out", cammegh_ss2.POLL) == ["packet: letter X"]
    [words] = reader.read("in", line[5:])
    assert words.startswith("status: state ")
    assert "number 17" in words


@pytest.mark.parametrize(
    ("happening", "words"),
    [
        (fdl_console.BetsClosed(), "bets closed"),
        (fdl_console.SeatAction(3, 0x02), "seat action: seat 3, hand 1, hit, amount 0"),
        (fdl_console.RoundVoid(1), "round void: dealing error"),
        (fdl_console.RoundVoid(), "round void: no reason given"),
        (fdl_console.BallEntered("17"), "ball entered: pocket 17"),
        (fdl.Fault(0x20, 1), "fault: code 32, severity 1, where 0"),
    ],
)
def test_an_event_of_a_console_is_told_as_what_happened(happening: fdl.Happening, words: str) -> None:
    sent = fdl.encode(fdl.EventReport(42, 120, happening.KIND, happening.to_bytes()), 1)
    assert Reader("fdl_console").read("in", sent) == [f"event 42 (120 ms ago): {words}"]


def test_bytes_outside_frames_are_described_as_such() -> None:
    sent = bytearray(fdl.encode(fdl.Ack(1, 2), 1))
    sent[3] ^= 0x55
    [words] = Reader("fdl_console").read("out", bytes(sent))
    assert words.startswith("garbage: why ")


def test_an_answer_of_a_machine_is_read_by_its_question() -> None:
    reader = Reader("sas_machine")
    assert reader.read("in", b"\x01") == []  # nobody asked
    [asked] = reader.read("out", b"\x81")
    assert asked == "general poll: address 1"
    assert reader.read("in", b"\x11") == []  # a pause ends it
    assert reader.read("out", b"\x81")[0] == "happened: code 17"


def test_of_an_unknown_device_only_bytes_are_shown() -> None:
    assert Reader("toaster").read("in", b"pop") == []


def test_a_message_line_is_read() -> None:
    assert Reader("billy_iii").read("in", billy_iii.encode(billy_iii.State(7))) == ["state: code 7"]


@given(name=st.sampled_from(sorted(DRIVERS)), pieces=st.lists(st.tuples(st.sampled_from(["in", "out"]), st.binary())))
def test_any_bytes_are_described_without_an_exception(name: str, pieces: list[tuple[str, bytes]]) -> None:
    reader = Reader(name)
    for way, data in pieces:
        assert all(isinstance(words, str) and words for words in reader.read(way, data))


# ---- kept


def test_missing_trace_lines_are_shown_at_their_place() -> None:
    traces = Traces(driver_of)
    drawn = bee_tek_shoe.encode(bee_tek_shoe.Drawn("KH"))
    traces.received("t-1", "d-1", message(frame(5, drawn[:3]), frame(9, drawn[3:], dropped=2)))
    lines = traces.lines("t-1", "d-1")
    assert [line.missing for line in lines] == [0, 3]
    assert not any("drawn" in words for line in lines for words in line.said)  # half a frame is none
    traces.received("t-1", "d-1", message(frame(1, drawn)))  # the edge began anew
    assert traces.lines("t-1", "d-1")[-1].said == ("drawn: card KH",)
    assert traces.lines("t-1", "d-1")[-1].missing == 0


@pytest.mark.parametrize("payload", [b"", b"{}", b"\xff", b'{"at":1}', b"[" * 9000, b"x" * 300_000, b"\n\n"])
def test_unreadable_trace_lines_are_left_out(payload: bytes) -> None:
    traces = Traces(driver_of)
    traces.received("t-1", "d-1", payload)
    odd = json.loads(msgspec.json.encode(frame(1, b"x"))) | {"hex": "0"}
    traces.received("t-1", "d-1", json.dumps(odd).encode())
    assert traces.lines("t-1", "d-1") == []


def test_kept_trace_is_bounded() -> None:
    traces = Traces(driver_of)
    for n in range(1, KEPT + 100):
        traces.received("t-1", "d-1", message(frame(n, b"\r\n")))
    assert len(traces.lines("t-1", "d-1")) == KEPT
    for n in range(3 * MOST_TRACED):
        traces.received("t-1", f"x-{n}", message(frame(1, b"x")))
    assert len(traces._traced) == MOST_TRACED
    assert traces.lines("t-1", "d-1") == []


def test_the_text_is_a_capture_with_its_words() -> None:
    traces = Traces(driver_of)
    drawn = bee_tek_shoe.encode(bee_tek_shoe.Drawn("KH"))
    traces.received("t-1", "d-1", message(frame(1, drawn), frame(4, b"?", "out")))
    text = traces.capture("t-1", "d-1")
    assert "#   drawn: card KH\n" in text
    assert "# 2 pieces are missing here\n" in text
    frames = capture_frames(text.encode(), "x.capture", 0.1)
    assert [(one.from_device, one.data) for one in frames] == [(True, drawn), (False, b"?")]


# ---- pushed


async def take(stream: AsyncIterator[bytes]) -> dict[str, object]:
    said = await anext(stream)
    assert said.startswith(b"data: ")
    assert said.endswith(b"\n\n")
    found: dict[str, object] = json.loads(said[6:])
    return found


@virtual_time
async def test_a_page_hears_the_last_lines_first_and_then_each() -> None:
    traces = Traces(driver_of)
    for n in range(1, SHOWN + 51):
        traces.received("t-1", "d-1", message(frame(n, b"x")))
    going = True
    stream = traces.follow("t-1", "d-1", lambda: going)
    numbers: list[int] = []
    while len(numbers) < SHOWN:
        lines = (await take(stream))["lines"]
        assert isinstance(lines, list)
        numbers += [line["n"] for line in lines]
    assert numbers == list(range(51, SHOWN + 51))
    asyncio.get_running_loop().call_later(2, traces.received, "t-1", "d-1", message(frame(SHOWN + 51, b"y")))
    said = await take(stream)
    assert [line["hex"] for line in said["lines"]] == ["79"]  # type: ignore[attr-defined]
    going = False
    assert [said async for said in stream] == [b"event: over\ndata: \n\n"]
    assert not traces._traced["t-1", "d-1"].viewers


@virtual_time
async def test_a_slow_page_loses_the_oldest_and_hears_how_many() -> None:
    traces = Traces(driver_of)
    stream = traces.follow("t-1", "d-1", lambda: True)
    assert (await take(stream))["lines"] == []
    for n in range(1, BEHIND + 8):
        traces.received("t-1", "d-1", message(frame(n, b"x")))
    said = await take(stream)
    assert said["left_out"] == 7
    assert said["lines"][0]["n"] == 8  # type: ignore[index]
    await stream.aclose()  # type: ignore[attr-defined]


@virtual_time
async def test_a_silent_trace_still_shows_that_the_console_lives() -> None:
    traces = Traces(driver_of)
    stream = traces.follow("t-1", "d-1", lambda: True)
    began = asyncio.get_running_loop().time()
    for _ in range(3):
        assert await take(stream) == {"lines": [], "left_out": 0}
    assert asyncio.get_running_loop().time() - began < 12
    await stream.aclose()  # type: ignore[attr-defined]


def test_the_words_of_the_page_are_there_in_all_languages() -> None:
    import tomllib

    folder = Path(trace.__file__).parents[2] / "words"
    catalogs = [
        tomllib.loads((folder / f"trace.{lang}.toml").read_text(encoding="utf-8")) for lang in ("en", "pt", "zh-Hant")
    ]
    assert catalogs[0].keys() == catalogs[1].keys() == catalogs[2].keys()
