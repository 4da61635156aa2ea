"""The benchmark of decoders covers every wire, feeds what it says it feeds, and its figures come out in both forms."""

import importlib
import pkgutil

import msgspec
import pytest
from click.testing import CliRunner

import protocols
from daemon.cli.main import main
from protocols import alpha_sign, idp_dice, tcs_saturn
from protocols.contract import wagers
from protocols.fdl import frame as fdl
from simulators.devices.compare import Account
from simulators.lab.bench import decoders as bench_decoders, tables as bench_tables
from simulators.lab.bench.decoders import (
    CHUNK,
    WIRES,
    DecoderReport,
    Row,
    Wire,
    chunks,
    decoders_markdown,
    held_after,
)
from simulators.lab.bench.tables import TableReport, TableRow, tables_markdown
from simulators.lab.pit import KINDS, Pit

BY_NAME = {wire.name: wire for wire in WIRES}
NO_GOOD = {"Garbage", "Broken", "Malformed", "Misfit", "UnknownType", "OtherVersion"}
ROW = Row("bee_tek_shoe", 4.9, 8.7, 1.9, "only 2a", 7)


def named(opened: bench_decoders.Opened, pieces: list[bytes]) -> list[str]:
    """The types of all that is read."""
    _, feed = opened
    return [type(message).__name__ for piece in pieces for message in feed(piece)]


def test_every_entry_is_of_a_wire() -> None:
    """A module under protocols/ with a decoder, or with events of its own."""
    wires = set()
    for module in pkgutil.walk_packages(protocols.__path__, "protocols."):
        names = dir(importlib.import_module(module.name))
        if any(name.endswith("Decoder") for name in names) or "HAPPENINGS" in names:
            name = module.name.removeprefix("protocols.").replace(".", "_")
            wires.add({"fdl_frame": "fdl", "sas_frames": "sas"}.get(name, name))
    assert {wire.module for wire in WIRES} <= wires
    assert {wire.name for wire in WIRES if wire.module == "sas"} == {"sas, host", "sas, machine"}
    assert len(BY_NAME) == len(WIRES)


@pytest.mark.parametrize("wire", WIRES, ids=BY_NAME)
def test_valid_traffic_is_valid(wire: Wire) -> None:
    pieces = bench_decoders.valid(wire)
    read = named((wire.ask or wire.open)(), pieces)
    assert NO_GOOD.isdisjoint(read)
    assert len(read) >= len(b"".join(pieces)) / len(b"".join(wire.frames)) * len(wire.frames) * 0.99
    assert len(set(read)) > 1 or wire.module in {"hid_cards", "fdl_peek"}


def test_valid_traffic_of_every_fdl_device_holds_all_that_it_tells() -> None:
    for wire in WIRES:
        if wire.module.startswith("fdl_"):
            own = importlib.import_module(f"protocols.{wire.module.replace('_', '.', 1)}").HAPPENINGS
            wanted = {happening.__name__ for happening in (*own.values(), *fdl.COMMON.values())}
            assert wanted <= set(named(wire.open(), list(wire.frames))), wire.name


@pytest.mark.parametrize("wire", WIRES, ids=BY_NAME)
def test_worst_case_bytes_are_not_valid_traffic(wire: Wire) -> None:
    """At least some of it is told as garbage, or not at all; and each candidate has bytes."""
    found = bench_decoders.candidates(wire)
    assert all(found.values())
    assert {f"only {byte:02x}" for byte in wire.meaning} <= set(found)
    wrong = [cycle for name, cycle in found.items() if name.endswith("with a wrong byte")]
    assert wrong
    for cycle in wrong:
        assert cycle not in wire.frames


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("tcs_saturn", tcs_saturn.MAX_FRAME),
        ("alpha_sign", alpha_sign.MAX_FRAME),
        ("idp_dice", idp_dice.MAX_LINE),
        ("fdl_console", fdl.MAX_STUFFED),
        ("sas, machine", 260),
        ("sas, host", 300),
        ("bee_tek_shoe", 20),
        ("bet_terminals", wagers.LONGEST_LINE + 1),
        ("billy_iii", 256),
        ("cammegh_ss2", 300),
        ("hid_cards", 20_000),
    ],
)
def test_an_endless_message_is_held_up_to_the_bound_and_no_further(name: str, most: int) -> None:
    held = held_after(BY_NAME[name], 40_000)
    assert 0 < held <= most
    assert held == held_after(BY_NAME[name], 400_000)


def test_retained_memory_is_counted_through_all_references() -> None:
    class Inner:
        def __init__(self) -> None:
            self.held = bytes(1000)

    class Outer:
        def __init__(self) -> None:
            self.lines = [Inner(), Inner()]
            self.feed = print

    assert 2000 < bench_decoders.size_of(Outer()) < 4000


def test_chunks_lose_nothing() -> None:
    data = bytes(range(256)) * 3 + b"end"
    assert b"".join(chunks(data)) == data
    assert [len(piece) for piece in chunks(data)] == [CHUNK] * 3 + [3]
    assert b"".join(bench_decoders.repeated(b"abc", 1000)) == (b"abc" * 334)[:1000]


def test_the_yardsticks_read_lines() -> None:
    data = b"*X;2;001; 5;0;180;1\r\n" * 100
    for opened in bench_decoders.YARDS.values():
        _, feed = opened()
        lines = [line for piece in chunks(data) for line in feed(piece)]
        assert len(lines) == 100
        assert None not in lines


def test_a_run_gives_a_row_for_each_wire_in_both_forms() -> None:
    said: list[str] = []
    wires = (BY_NAME["billy_iii"], BY_NAME["fdl_peek"], BY_NAME["fdl_timer"])
    report = bench_decoders.bench_decoders(said.append, wires=wires, turns=1, budget=0.0, endless=10_000)
    assert [row.name for row in report.rows] == ["billy_iii", "fdl_peek", "fdl_timer"]
    assert all(min(row.valid, row.garbage, row.worst) > 0 and row.pattern and row.held for row in report.rows)
    assert msgspec.json.decode(msgspec.json.encode(report), type=DecoderReport) == report
    assert decoders_markdown(report).count("\n| ") >= 5
    assert said


@pytest.mark.parametrize(("valid", "garbage", "met"), [(1.0, 1.0, True), (0.99, 9, False), (9, 0.99, False)])
def test_below_one_megabyte_a_second_is_said(valid: float, garbage: float, met: bool) -> None:
    row = msgspec.structs.replace(ROW, valid=valid, garbage=garbage)
    text = decoders_markdown(DecoderReport("a machine", "2026-01-01", {"a loop": 30.0}, (row,)))
    assert ("**not met**" not in text) == met == row.met
    assert "| *a loop* | 30.0 |" in text
    assert text.endswith("Measured 2026-01-01 on a machine.")


# ---- tables


def test_a_table_is_played_and_timed() -> None:
    simulated, real = bench_tables.play("bj", 1, 1)
    assert simulated > 20
    assert real > 0


def test_a_turn_that_came_out_wrong_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pit, "accounts", lambda *_: {"bj-1": Account(right=1, extra=1)})
    with pytest.raises(RuntimeError, match="bj, seed 1: not every result"):
        bench_tables.play("bj", 1, 1)


def test_tables_in_both_forms() -> None:
    rows = (
        TableRow("rou", ("cammegh_ss2",), 1200.0, (300.0, 190.0, 210.0)),
        TableRow("bj", ("fdl_peek",), 60.0, (199.9,)),
    )
    report = TableReport("a machine", "2026-01-01", 30, rows)
    assert msgspec.json.decode(msgspec.json.encode(report), type=TableReport) == report
    text = tables_markdown(report).splitlines()
    assert text[2] == "| rou | cammegh_ss2 | 20 min | 300 190 210 | 210 | met |"
    assert text[3].endswith("| **not met** |")


def test_tables_measures_every_kind_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[str, int, int]] = []

    def play(kind: str, rounds: int, seed: int) -> tuple[float, float]:
        played.append((kind, rounds, seed))
        return 600.0, 2.0

    monkeypatch.setattr(bench_tables, "play", play)
    report = bench_tables.bench_tables(lambda _: None)
    assert played == [(kind, 30, turn) for turn in (1, 2, 3) for kind in KINDS]
    assert [(row.kind, row.times) for row in report.rows] == [(kind, 300.0) for kind in KINDS]


# ---- the command


@pytest.mark.parametrize("what", ["decoders", "tables"])
@pytest.mark.parametrize("option", ["--rates", "--seconds"])
def test_options_of_the_spine_are_refused_elsewhere(what: str, option: str) -> None:
    done = CliRunner().invoke(main, ["bench", what, option, "5"])
    assert done.exit_code == 2
    assert "belong to `feltd bench spine`" in done.output


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_writes_the_report(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    report = DecoderReport("a machine", "2026-01-01", {"a loop": 30.0}, (ROW,))
    monkeypatch.setattr(bench_decoders, "bench_decoders", lambda _: report)
    done = CliRunner().invoke(main, ["bench", "decoders", *["--json"] * as_json])
    assert done.exit_code == 0
    if as_json:
        assert msgspec.json.decode(done.output, type=DecoderReport) == report
    else:
        assert done.output.rstrip() == decoders_markdown(report)


def test_the_spine_is_what_is_measured_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulators.lab.broker.find_mosquitto", lambda: None)
    for words in (["bench"], ["bench", "spine"], ["bench", "--rates", "2", "--seconds", "1"]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 2
        assert "needs mosquitto" in done.output
