"""The Alpha sign: exact frames, any chunking, any noise, and the mirror from commands to what is lit and back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from helpers import START, MemoryLink, Notebook, at_length, virtual_time

from daemon.cli.configuration_check import device_mistakes
from daemon.config.model import load
from drivers.alpha_sign import AlphaSign, SignOptions
from drivers.driver import CommandFailed, CommandRefused, LinkLost, Obeys
from protocols.alpha_sign import (
    Ack,
    Beep,
    ClearErrors,
    Command,
    ConfigureMemory,
    Decoder,
    Errors,
    File,
    Frame,
    Message,
    Nak,
    ReadErrors,
    ReadMemory,
    RunSequence,
    Segment,
    SoftReset,
    WriteString,
    WriteText,
    encode,
)
from protocols.contract.commands import Announce, SelfTest, ShowAmount
from protocols.contract.events import DeviceFaulted, DeviceOnline, DeviceRecovered, DisplayShown, Event, type_of
from simulators.devices.alpha_sign import Sign
from simulators.devices.line import Line

ONLINE = DeviceOnline(True, "Alpha sign")
HEAD = bytes.fromhex("0000000000015A3030")


def nak(errors: Errors) -> Nak:
    return Nak(errors, bytes([0x15, 0x40 | errors]))


# ---- the bench: simulated sign, line, driver, and a supervisor that makes drivers again


class Bench:
    """What is on the table, and what was told."""

    def __init__(self, sign: Sign, options: SignOptions, carry: Callable[[bytes], list[bytes]]) -> None:
        self.sign = sign
        self.options = options
        self.carry = carry
        self.line = Line(Random(5))
        self.notes = Notebook()
        self.link = MemoryLink()
        self.driver = AlphaSign(options)
        self.losses: list[str] = []
        self.heard: list[tuple[float, Command]] = []
        self._ears = Decoder()
        self._stirred = asyncio.Event()

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def events(self) -> list[Event]:
        return self.notes.events

    @property
    def shown(self) -> list[DisplayShown]:
        return [event for event in self.events if isinstance(event, DisplayShown)]

    @property
    def lit(self) -> str:
        return self.sign.showing(self.now)

    def told(self) -> list[str]:
        """Event types and fault codes, with a + before what is over."""
        return [
            event.code
            if isinstance(event, DeviceFaulted)
            else f"+{event.code}"
            if isinstance(event, DeviceRecovered)
            else type_of(event)
            for event in self.events
        ] + ["device.offline"] * len(self.losses)

    def wrote(self, *kinds: type[Command]) -> list[Command]:
        return [command for _, command in self.heard if isinstance(command, kinds)]

    def open_faults(self) -> set[str]:
        found: set[str] = set()
        for event in self.events:
            if isinstance(event, DeviceFaulted):
                found.add(event.code)
            elif isinstance(event, DeviceRecovered):
                found.remove(event.code)  # what never began cannot end
        return found

    async def show(self, amount: int, level: int = 1) -> dict[str, Any]:
        return await self.driver.obey(ShowAmount(amount, level))

    async def announce(self, text: str, seconds: int = 30) -> dict[str, Any]:
        return await self.driver.obey(Announce(text, seconds))

    def _from_host(self, data: bytes) -> None:
        data = self.line.to_device(data, self.now)
        for message in self._ears.feed(data):
            if isinstance(message, Frame):
                self.heard += [(self.now, command) for command in message.commands]
        self.link_feed(self.sign.hear(data, self.now))
        self._stirred.set()

    def link_feed(self, data: bytes) -> None:
        for piece in self.carry(self.line.to_host(data, self.now)):
            self.link.feed(piece)

    def inject(self, fault: str) -> None:
        if fault in Line.FAULTS:
            self.line.inject(fault, self.now)
            if self.line.plug_at < float("inf"):
                self.link.hang_up()
        else:
            self.sign.inject(fault, self.now)
        self._stirred.set()

    async def pump(self) -> None:
        """The sign lives."""
        while True:
            self._stirred.clear()
            self.link_feed(self.sign.wake(self.now))
            due = min(self.sign.due(), self.line.due() if self.line.plug_at == float("inf") else float("inf"))
            assert due > self.now
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if due == float("inf") else due + 1e-6):
                    await self._stirred.wait()

    async def supervise(self) -> None:
        while True:
            if self.line.plug_at < float("inf"):
                await asyncio.sleep(max(self.line.plug_at - self.now, 0))
                self.line.plug_at = float("inf")
            clock, self.link = self.link.set, MemoryLink()
            self.link.set = clock
            self.link.on_write = self._from_host
            self.driver = AlphaSign(self.options, self.notes.memory)
            try:
                await self.driver.run(self.link, self.notes)
            except LinkLost as error:
                self.losses.append(str(error))
            await asyncio.sleep(0.25)


def whole(data: bytes) -> list[bytes]:
    return [data] if data else []


def byte_by_byte(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


@contextlib.asynccontextmanager
async def on_bench(
    sign: Sign | None = None,
    options: SignOptions | None = None,
    carry: Callable[[bytes], list[bytes]] = whole,
    memory: bytes | None = None,
) -> AsyncIterator[Bench]:
    bench = Bench(sign or Sign(Random(1)), options or SignOptions(prefix="$"), carry)
    bench.notes.memory = memory
    tasks = [asyncio.create_task(bench.supervise()), asyncio.create_task(bench.pump())]
    await asyncio.sleep(0)  # the driver runs
    try:
        yield bench
        for task in tasks:
            assert not task.done(), task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# ---- setting up


@pytest.mark.parametrize("carry", [whole, byte_by_byte])
@virtual_time
async def test_a_fresh_sign_is_set_up_and_shows_the_amount(carry: Callable[[bytes], list[bytes]]) -> None:
    async with on_bench(carry=carry) as bench:
        await asyncio.sleep(4)
        assert bench.told() == ["device.online"]
        assert bench.events == [ONLINE]
        assert await bench.show(1_234_567) == {"text": "$12,345.67", "confirmed": True}
        assert bench.lit == "$12,345.67"
        assert bench.events == [ONLINE, DisplayShown("$12,345.67", True)]
        assert bench.sign.wipes == 1
        memory, *_ = bench.wrote(ConfigureMemory)
        assert memory == ConfigureMemory((File("A", "A", 256, False, "FF00"), File("a", "B", 64, True)))
        assert bench.wrote(RunSequence) == [RunSequence("A")]
        assert WriteText("A", (Segment("\x10a", " ", "b"),)) in bench.wrote(WriteText)
        assert isinstance(bench.driver, Obeys)


@virtual_time
async def test_a_sign_that_is_set_up_is_not_wiped_again_and_never_blank() -> None:
    sign = Sign(Random(1))
    async with on_bench(sign) as bench:
        await bench.show(100)
        await asyncio.sleep(5)
        memory = bench.notes.memory
    async with on_bench(sign, memory=memory) as bench:
        for _ in range(100):
            assert bench.lit == "$1.00"
            await asyncio.sleep(0.1)
        assert sign.wipes == 1
        assert bench.events == [ONLINE, DisplayShown("$1.00", True)]
        assert bench.wrote(RunSequence) == []


@virtual_time
async def test_other_options_divide_the_memory_anew() -> None:
    sign = Sign(Random(1))
    async with on_bench(sign) as bench:
        await bench.show(100)
        memory = bench.notes.memory
    async with on_bench(sign, SignOptions(levels=3, captions=("GRAND", "MAJOR", "MINOR")), memory=memory) as bench:
        await bench.show(2_000_000, 2)
        await bench.show(30_000, 3)
        assert sign.wipes == 2
        assert sorted(sign.pages(bench.now)) == ["GRAND 1.00", "MAJOR 20,000.00", "MINOR 300.00"]
        with pytest.raises(CommandRefused, match="3 levels, not 4"):
            await bench.show(1, 4)
    async with on_bench(sign, memory=bench.notes.memory) as bench:  # fewer again: the rest is forgotten by nobody
        await asyncio.sleep(5)
        assert bench.lit == "$1.00"
        assert bench.events == [ONLINE, DisplayShown("$1.00", True)]


@virtual_time
async def test_a_text_file_that_somebody_changed_is_written_again() -> None:
    sign = Sign(Random(1))
    async with on_bench(sign) as bench:
        await bench.show(100)
    sign._texts["A"] = WriteText("A", (Segment("HELLO"),))
    sign._priority = WriteText("0", (Segment("HAPPY HOUR"),))
    async with on_bench(sign, memory=bench.notes.memory) as bench:
        await asyncio.sleep(3)
        assert bench.lit == "$1.00"
        assert (sign.wipes, bench.open_faults()) == (1, set())


# ---- write-only signs


@pytest.mark.parametrize("read_back", ["auto", "never"])
@virtual_time
async def test_a_sign_that_cannot_answer_is_set_up_once_a_session_and_never_confirmed(read_back: str) -> None:
    options = msgspec.convert({"read_back": read_back}, SignOptions)
    async with on_bench(Sign(Random(1), address="77", readable=False), options) as bench:
        assert await bench.show(5) == {"text": "0.05", "confirmed": False}
        await asyncio.sleep(0.2)
        assert bench.lit == "0.05"
        await asyncio.sleep(3600)
        assert bench.sign.wipes == 1
        fault = ["sign.no_read_back"] if read_back == "auto" else []
        assert bench.told() == ["device.online", *fault, "display.shown"]
        assert bench.shown == [DisplayShown("0.05", False)]
        assert bool(bench.wrote(ReadMemory)) == (read_back == "auto")
        # The amount is sent again and again: a frame that was lost is made good. The text file is not.
        assert len(bench.wrote(WriteString)) > 300
        assert len(bench.wrote(WriteText)) == 2
        bench.link.hang_up()
        await asyncio.sleep(10)
        assert bench.sign.wipes == 2
        assert bench.lit == "0.05"
        assert bench.shown == [DisplayShown("0.05", False)] * 2
        assert bench.told().count("sign.no_read_back") == len(fault)


@virtual_time
async def test_the_address_of_every_sign_cannot_be_read_back() -> None:
    async with on_bench(options=SignOptions(address="00")) as bench:
        await bench.show(5)
        (fault,) = [event for event in bench.events if isinstance(event, DeviceFaulted)]
        assert (fault.code, fault.severity) == ("sign.no_read_back", "warning")
        assert "set the sign's own" in fault.text
        assert bench.wrote(ReadMemory) == []


@virtual_time
async def test_never_reading_ends_what_only_reading_could_see() -> None:
    sign = Sign(Random(1), readable=False)
    async with on_bench(sign) as bench:
        await asyncio.sleep(10)
        assert bench.open_faults() == {"sign.no_read_back"}
    async with on_bench(sign, SignOptions(read_back="never"), memory=bench.notes.memory) as bench:
        await asyncio.sleep(1)
        assert bench.events == [ONLINE, DeviceRecovered("sign.no_read_back")]


@pytest.mark.parametrize("readable", [False, True])
@virtual_time
async def test_our_own_echo_is_no_answer(readable: bool) -> None:
    async with on_bench(Sign(Random(1), readable=readable)) as bench:
        listen = bench._from_host

        def echoing(data: bytes) -> None:
            bench.link.feed(data)
            listen(data)

        bench._from_host = echoing  # type: ignore[method-assign]
        bench.link.hang_up()
        await asyncio.sleep(10)
        assert (await bench.show(5))["confirmed"] is readable
        assert bench.lit == "$0.05"
        assert bench.open_faults() == (set() if readable else {"sign.no_read_back"})
        if readable:
            bench.inject("ignores_writes")
            with pytest.raises(CommandFailed, match="did not keep"):
                await bench.show(6)


# ---- amounts


@pytest.mark.parametrize(
    ("options", "amount", "text"),
    [
        ({}, 0, "0.00"),
        ({}, 5, "0.05"),
        ({}, 123_456_789, "1,234,567.89"),
        ({"prefix": "MOP ", "suffix": "*"}, 100_000, "MOP 1,000.00*"),
        ({"thousands": ".", "point": ","}, 123_456_789, "1.234.567,89"),
        ({"thousands": ""}, 123_456_789, "1234567.89"),
        ({"decimals": 0}, 123_456, "123,456"),
        ({"decimals": 3, "digits": 4}, 9_999, "9.999"),
    ],
)
@virtual_time
async def test_how_an_amount_is_written(options: dict[str, Any], amount: int, text: str) -> None:
    async with on_bench(options=msgspec.convert(options, SignOptions)) as bench:
        assert (await bench.show(amount))["text"] == text
        assert bench.lit == text


@virtual_time
async def test_more_digits_than_the_sign_has_is_its_limit_and_a_fault() -> None:
    async with on_bench(options=SignOptions(digits=6, levels=2)) as bench:
        assert (await bench.show(999_999))["text"] == "9,999.99"
        assert bench.open_faults() == set()
        assert (await bench.show(1_000_000))["text"] == "9,999.99"
        assert (await bench.show(12_345_678))["text"] == "9,999.99"
        assert await bench.show(700, 2)
        assert bench.open_faults() == {"sign.digits"}
        assert bench.told().count("sign.digits") == 1
        bench.link.hang_up()
        await asyncio.sleep(5)
        assert bench.told().count("sign.digits") == 1
        assert bench.lit in {"9,999.99", "7.00"}
        await bench.show(12)  # won: a lower amount is obeyed
        await asyncio.sleep(0.1)
        assert bench.open_faults() == set()
        assert DisplayShown("0.12", True) in bench.shown


@virtual_time
async def test_amounts_are_coalesced_and_only_what_is_sent_is_answered() -> None:
    async with on_bench(options=SignOptions(min_interval=1.0)) as bench:
        await bench.show(1)
        bench.heard.clear()
        tasks = [asyncio.create_task(bench.show(n)) for n in range(100, 200)]
        answers = await asyncio.gather(*tasks)
        assert {answer["text"] for answer in answers} <= {"1.00", "1.99"}
        assert answers[-1] == {"text": "1.99", "confirmed": True}
        assert bench.wrote(WriteString) == [WriteString("a", "1.99")]
        bench.heard.clear()
        began = bench.now
        answered: list[str] = []
        for n in range(50):  # ten a second, for five seconds
            tasks.append(asyncio.create_task(bench.show(1000 + n)))
            tasks[-1].add_done_callback(lambda task: answered.append(task.result()["text"]))
            await asyncio.sleep(0.1)
        await asyncio.gather(*tasks)
        times = [at for at, command in bench.heard if isinstance(command, WriteString)]
        assert all(b - a >= 1.0 for a, b in pairwise(times))
        assert 5 <= len(times) <= 7
        assert answered == sorted(answered)
        assert all(float(task.result()["text"]) >= 10 + n / 100 for n, task in enumerate(tasks[100:]))
        assert len(answered) == 50
        assert bench.now - began < 7
        assert bench.lit == "10.49"


@virtual_time
async def test_an_amount_is_durable_before_the_sign_has_it() -> None:
    async with on_bench() as bench:
        written = bench._from_host

        def looking(data: bytes) -> None:
            (frame,) = Decoder().feed(data)
            assert isinstance(frame, Frame)
            for command in frame.commands:
                if isinstance(command, WriteText) and command.label == "0" and command.segments:
                    assert bench.notes.memory is not None
                    assert msgspec.json.decode(bench.notes.memory)["announced"]["text"] == "WIN"
                if isinstance(command, WriteString):
                    whole, part = command.text.removeprefix("$").split(".")
                    assert bench.notes.memory is not None
                    assert msgspec.json.decode(bench.notes.memory)["amounts"]["1"] == int(whole + part)
            written(data)

        bench.link.on_write = looking
        await asyncio.sleep(1)
        assert bench.sign.wipes == 1  # it is being set up
        await bench.announce("WIN")
        for n in range(100, 110):
            await bench.show(n)
            await asyncio.sleep(n % 3)


@virtual_time
async def test_one_level_never_keeps_another_waiting() -> None:
    async with on_bench(options=SignOptions(levels=3)) as bench:
        await bench.show(1, 1)
        other = asyncio.create_task(bench.show(7, 3))
        spam = []
        for n in range(30):
            spam.append(asyncio.create_task(bench.show(n, 1)))
            await asyncio.sleep(0.1)
        assert other.done()
        await asyncio.gather(other, *spam)


# ---- announcements


@virtual_time
async def test_an_announcement_hides_the_amount_for_its_time() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        assert await bench.announce("JACKPOT seat 3", 20) == {"text": "JACKPOT seat 3", "confirmed": True}
        assert bench.wrote(WriteText)[-1] == WriteText("0", (Segment("JACKPOT seat 3", " ", "a"),))
        assert bench.lit == "JACKPOT seat 3"
        assert (await bench.show(200))["text"] == "$2.00"
        assert bench.lit == "JACKPOT seat 3"
        await asyncio.sleep(18)
        assert bench.lit == "JACKPOT seat 3"
        await asyncio.sleep(3)
        assert bench.lit == "$2.00"
        assert bench.shown == [
            DisplayShown("$1.00", True),
            DisplayShown("JACKPOT seat 3", True),
            DisplayShown("$2.00", True),
        ]
        assert bench.sign.wipes == 1


@pytest.mark.parametrize("empty", ["", "  "])
@virtual_time
async def test_an_empty_text_or_another_one_ends_it(empty: str) -> None:
    async with on_bench(options=SignOptions(announcement="flash")) as bench:
        await bench.show(100)
        await bench.announce("ONE", 3600)
        await bench.announce("TWO", 3600)
        assert bench.wrote(WriteText)[-1] == WriteText("0", (Segment("TWO", " ", "c"),))
        assert bench.lit == "TWO"
        assert (await bench.announce(empty))["text"] == ""
        assert bench.lit == "1.00"
        await asyncio.sleep(4000)
        assert bench.shown[-1] == DisplayShown("1.00", True)
        assert len(bench.shown) == 4


@pytest.mark.parametrize("away", [5.0, 60.0])
@virtual_time
async def test_an_announcement_over_a_loss_of_the_link(away: float) -> None:
    async with on_bench() as bench:
        await bench.show(100)
        await bench.announce("WIN", 30)
        bench.line.plug_at = bench.now + away
        bench.link.hang_up()
        await asyncio.sleep(away + 3)
        assert bench.lit == ("WIN" if away < 30 else "$1.00")
        await asyncio.sleep(30)
        assert bench.lit == "$1.00"
        assert bench.shown[-1] == DisplayShown("$1.00", True)


@virtual_time
async def test_an_announcement_and_the_amount_survive_a_restart_and_a_new_sign() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        await bench.announce("WIN", 3600)
        memory = bench.notes.memory
    assert memory is not None
    kept = msgspec.json.decode(memory)
    assert kept["amounts"] == {"1": 100}
    assert kept["announced"]["text"] == "WIN"
    assert msgspec.convert(kept["announced"]["until"], type(START)) > START
    fresh = Sign(Random(2))
    async with on_bench(fresh, memory=memory) as bench:
        await asyncio.sleep(5)
        assert bench.lit == "WIN"
        await bench.announce("")
        assert bench.lit == "$1.00"


@virtual_time
async def test_an_announcement_lasts_no_longer_because_the_clock_was_set_back() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        await bench.announce("WIN", 30)
        bench.line.plug_at = bench.now + 5
        bench.link.set = -8 * 3600.0
        bench.link.hang_up()
        await asyncio.sleep(10)
        assert bench.lit == "WIN"
        await asyncio.sleep(30)
        assert bench.lit == "$1.00"


@virtual_time
async def test_characters_unknown_to_the_sign_are_replaced_and_reported_once() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        assert (await bench.announce("PRÉMIO à mesa 4 ★"))["text"] == "PREMIO a mesa 4 ?"
        await bench.announce("AÇÃO")
        assert bench.lit == "ACAO"
        assert [event.severity for event in bench.events if isinstance(event, DeviceFaulted)] == ["warning"]
        await bench.announce("PLAIN")
        assert bench.open_faults() == set()
        await bench.announce("é")
        await bench.announce("\x1b\x10\x04A")  # no control code ever gets through
        assert bench.lit == "???A"
        severities = [event.severity for event in bench.events if isinstance(event, DeviceFaulted)]
        assert severities == ["warning", "error"]
        with pytest.raises(CommandRefused, match="cannot show this text"):
            await bench.announce("恭喜發財")
        assert bench.lit == "???A"


# ---- what goes wrong


@pytest.mark.parametrize("fault", [*Sign.faults, *Sign.line])
@pytest.mark.parametrize("after", at_length([4.3], [0.0, 4.3, 9.9]))
@virtual_time
async def test_every_fault(fault: str, after: float) -> None:
    """An amount every 7 s; each fault is told as it says, and afterwards all is well."""
    ailment = {**Sign.faults, **Sign.line}[fault]
    async with on_bench() as bench:
        await bench.show(100)
        await asyncio.sleep(20 + after)
        assert bench.told() == ["device.online", "display.shown"]
        bench.inject(fault)
        for n in range(14):
            with contextlib.suppress(CommandFailed, CommandRefused):
                answer = await bench.show(1000 + n)
                if fault not in {"write_only", "power_loss"}:
                    assert answer["confirmed"]
                    assert bench.lit == answer["text"] or (fault == "overwritten" and n < 2)
            await asyncio.sleep(7)
        told = set(bench.told()) - {"device.online", "display.shown"}
        faults = {code for code in told if not code.startswith("+")}
        assert faults == set(ailment.told)
        if ailment.person:
            assert bench.open_faults()
            assert bench.lit != "$20.00"
        bench.sign.repair(bench.now)
        await asyncio.sleep(45)
        assert bench.open_faults() == set()
        assert await bench.show(2000) == {"text": "$20.00", "confirmed": True}
        assert bench.lit == "$20.00"
        assert bench.shown[-1] == DisplayShown("$20.00", True)
        assert not any(event.severity == "error" for event in bench.events if isinstance(event, DeviceFaulted))


@virtual_time
async def test_a_sign_that_keeps_nothing_fails_the_command_and_shows_it_later() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        bench.inject("ignores_writes")
        with pytest.raises(CommandFailed, match="did not keep"):
            await bench.show(200)
        await asyncio.sleep(0.1)
        assert bench.open_faults() == {"sign.memory"}
        assert bench.shown == [DisplayShown("$1.00", True)]
        await asyncio.sleep(60)
        assert bench.told().count("sign.memory") == 1
        bench.sign.repair(bench.now)
        await asyncio.sleep(15)
        assert bench.shown[-1] == DisplayShown("$2.00", True)
        assert bench.open_faults() == set()
        bench.inject("ignores_writes")
        with pytest.raises(CommandFailed, match="did not keep"):
            await bench.show(300)
        bench.sign.repair(bench.now)
        began = bench.now
        assert (await bench.show(400))["confirmed"]  # a new amount does not wait for the next try of the old one
        assert bench.now - began < 1


@virtual_time
async def test_a_sign_whose_memory_reads_otherwise_is_not_wiped_again_and_again() -> None:
    sign = Sign(Random(1))
    answer = sign._answer
    sign._answer = lambda command, now: ConfigureMemory() if command == ReadMemory() else answer(command, now)  # type: ignore[method-assign]
    async with on_bench(sign) as bench:
        await bench.show(100)
        await asyncio.sleep(1)
        assert bench.told() == ["device.online", "sign.memory", "display.shown", "+sign.memory"] or bench.told() == [
            "device.online",
            "sign.memory",
            "+sign.memory",
            "display.shown",
        ]
        await asyncio.sleep(3600)
        assert sign.wipes == 2
        assert bench.lit == "$1.00"
        bench.inject("dark")
        await asyncio.sleep(600)
        assert 2 < sign.wipes <= 2 + 2 * 11


@virtual_time
async def test_silence_is_a_lost_link_and_the_fault_outlives_it() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        bench.inject("write_only")
        await asyncio.sleep(25)
        (reason,) = bench.losses
        assert reason.startswith("no answer for 12 s")
        await asyncio.sleep(10)
        assert bench.open_faults() == {"sign.no_read_back"}
        assert await bench.show(300) == {"text": "$3.00", "confirmed": False}
        await asyncio.sleep(1)
        assert bench.lit == "$3.00"
        bench.link.hang_up()
        await asyncio.sleep(10)
        assert bench.told().count("sign.no_read_back") == 1
        bench.sign.repair(bench.now)
        await asyncio.sleep(15)
        assert bench.open_faults() == set()
        assert bench.shown[-1] == DisplayShown("$3.00", True)


@virtual_time
async def test_the_second_time_in_a_cycle_is_an_error_and_later_a_warning_again() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        for pause in (20, 1000, 20):
            bench.inject("overwritten")
            await asyncio.sleep(pause)
            assert bench.lit == "$1.00"
            assert bench.open_faults() == set()
        severities = [event.severity for event in bench.events if isinstance(event, DeviceFaulted)]
        assert severities == ["warning", "error", "warning"]


@virtual_time
async def test_another_ones_priority_text_is_seen_and_taken_away() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        await asyncio.sleep(3)
        bench.sign._priority = WriteText("0", (Segment("HAPPY HOUR"),))
        await asyncio.sleep(12)
        assert bench.lit == "$1.00"
        assert bench.told()[2:] == ["sign.dark", "+sign.dark", "display.shown"]


@pytest.mark.parametrize("readable", [False, True])
@virtual_time
async def test_a_nak_is_a_fault_until_an_ack_or_an_answer(readable: bool) -> None:
    async with on_bench(Sign(Random(1), readable=readable, acknowledges=True)) as bench:
        await bench.show(100)
        await asyncio.sleep(2)
        bench.inject("misheard")
        await bench.show(200)
        await asyncio.sleep(6)
        assert bench.lit == "$2.00"
        assert bench.told().count("sign.checksum") == 1
        assert "sign.checksum" not in bench.open_faults()


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [("misheard", "sign.checksum", "(checksum error)"), ("full_buffer", "sign.overflow", "(buffer overflow)")],
)
@virtual_time
async def test_after_a_nak_the_error_register_is_read_told_and_cleared(fault: str, code: str, words: str) -> None:
    async with on_bench(Sign(Random(1), acknowledges=True)) as bench:
        await bench.show(100)
        await asyncio.sleep(2)
        bench.inject(fault)
        await bench.show(200)
        await asyncio.sleep(6)
        told = [event for event in bench.events if isinstance(event, DeviceFaulted)]
        assert [(event.code, event.text.endswith(words)) for event in told] == [(code, True)]
        assert bench.open_faults() == set()
        assert bench.sign._errors == Errors(0)
        assert len(bench.wrote(ClearErrors)) in (1, 2)
        await asyncio.sleep(600)
        assert len(bench.wrote(ReadErrors)) in (1, 2)  # never without a NAK


@virtual_time
async def test_the_register_tells_more_than_the_byte_after_the_nak() -> None:
    """A line that loses the status byte."""

    def lost_status(data: bytes) -> list[bytes]:
        return [data.replace(b"\x15\x50", b"\x15")] if data else []

    async with on_bench(Sign(Random(1), acknowledges=True), carry=lost_status) as bench:
        await bench.show(100)
        await asyncio.sleep(2)
        bench.inject("misheard")
        await bench.show(200)
        await asyncio.sleep(6)
        assert [event.text[-16:] for event in bench.events if isinstance(event, DeviceFaulted)] == ["(checksum error)"]


@virtual_time
async def test_a_sign_without_an_error_register_is_asked_for_it_once() -> None:
    sign = Sign(Random(1), acknowledges=True)
    sign._legal = lambda command: not isinstance(command, ReadErrors | ClearErrors)  # type: ignore[method-assign]
    async with on_bench(sign) as bench:
        await bench.show(100)
        for n in range(5):
            bench.inject("misheard")
            await bench.show(200 + n)
            await asyncio.sleep(10)
        assert bench.lit == "$2.04"
        assert len(bench.wrote(ReadErrors)) == 1
        assert bench.open_faults() == set()


@virtual_time
async def test_a_sign_with_counters_shows_every_level() -> None:
    sign = Sign(Random(1), acknowledges=True, counters=True)
    async with on_bench(sign, SignOptions(levels=9)) as bench:
        for level in range(1, 10):
            assert (await bench.show(level * 100, level))["confirmed"]
        assert sorted(sign.pages(bench.now)) == [f"{level}.00" for level in range(1, 10)]
        assert bench.open_faults() == set()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "1"}, "1 is a counter's file on a sign with counters; take letters from a to i"),
        ({"labels": "ab5"}, "5 is a counter's file"),
        ({"labels": "0"}, "0 is the priority text file"),
        ({"labels": "A"}, "A is the text file that shows the amounts"),
        ({"labels": "?"}, r"\? stands for any label"),
        ({"labels": "ab", "levels": 3}, "names 2 files for 3 levels"),
        ({"labels": "aba"}, "a label twice"),
    ],
)
def test_labels_that_cannot_be_are_refused_with_the_reason(options: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(options, SignOptions)
    assert msgspec.convert({"labels": "6789", "levels": 4}, SignOptions).labels == "6789"


@virtual_time
async def test_a_reset_by_hand_keeps_everything() -> None:
    async with on_bench() as bench:
        await bench.show(100)
        bench.sign.acts()["reset"](bench.now)
        assert bench.lit == ""
        await asyncio.sleep(25)
        assert bench.lit == "$1.00"
        assert bench.told() == ["device.online", "display.shown"]


@pytest.mark.parametrize("seed", range(5))
@virtual_time
async def test_a_lossy_line_never_confirms_what_is_not_lit(seed: int) -> None:
    rng = Random(seed)

    def lossy(data: bytes) -> list[bytes]:
        kept = bytes(byte ^ (1 << rng.randrange(8)) if rng.random() < 0.01 else byte for byte in data)
        return [left] if (left := bytes(byte for byte in kept if rng.random() > 0.005)) else []

    async with on_bench(carry=lossy) as bench:
        confirmed = 0
        for n in range(100):
            with contextlib.suppress(CommandFailed, CommandRefused):
                answer = await bench.show(n * 7919)
                assert not answer["confirmed"] or answer["text"] == bench.lit
                confirmed += answer["confirmed"]
            await asyncio.sleep(1)
        assert confirmed > 80


# ---- commands when they cannot be obeyed


@virtual_time
async def test_refusals() -> None:
    driver = AlphaSign(SignOptions())
    with pytest.raises(CommandRefused, match="no session"):
        await driver.obey(ShowAmount(1))
    async with on_bench() as bench:
        await asyncio.sleep(4)
        with pytest.raises(CommandRefused, match="nothing else"):
            await bench.driver.obey(SelfTest())
        waiting = asyncio.create_task(bench.show(5))
        await asyncio.sleep(0)
        bench.inject("unplugged")
        with pytest.raises(CommandFailed, match="session with the sign ended"):
            await waiting
        with pytest.raises(CommandRefused, match="no session"):
            await bench.show(6)


@virtual_time
async def test_a_command_is_answered_in_time_even_by_a_mute_sign() -> None:
    async with on_bench(options=SignOptions(reply_limit=10)) as bench:
        await bench.show(1)
        bench.inject("write_only")
        with pytest.raises(CommandFailed, match="not accept it in 15 s"):
            await bench.show(2)
        assert bench.lit == "0.02"


def test_a_dead_transmitter_says_neither_ack_nor_nak() -> None:
    sign = Sign(Random(1), acknowledges=True)
    for fault in ("write_only", "misheard"):
        sign.inject(fault, 0.0)
        sign.hear(encode(Frame((Beep(),))), 0.0)
        assert sign.due() == float("inf")


@pytest.mark.parametrize("memory", [b"", b"\xff", b"[]", b'{"amounts": 3}', b"null"])
@virtual_time
async def test_a_memory_that_is_none_counts_as_no_memory(memory: bytes) -> None:
    async with on_bench(memory=memory) as bench:
        await asyncio.sleep(3)
        assert bench.events == [ONLINE]


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": 9600},
        {"address": "1"},
        {"address": "0g"},
        {"levels": 0},
        {"levels": 10},
        {"prefix": "€"},
        {"digits": 2},
        {"captions": ["A", "B"]},
        {"read_back": "always"},
        {"sync": 4},
    ],
)
def test_options_refuse_what_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, AlphaSign.Options)


def test_feltd_check_names_the_line_of_a_label_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text(
        '[site]\nname = "lisboa"\n[edge]\nname = "e-1"\n[[table]]\nname = "t-1"\n[[table.device]]\nname = "sign-1"\n'
        'driver = "alpha_sign"\nurl = "serial:///dev/ttyS0"\n[table.device.options]\nprefix = "$"\nlabels = "12"\n',
        encoding="utf-8",
    )
    [mistake] = device_mistakes(load(path), path)
    assert mistake.startswith(f"{path}:13: options of alpha_sign: `labels`: 1 is a counter's file")


def test_every_told_code_is_in_the_fault_list() -> None:
    known = {fault.code for fault in AlphaSign.faults}
    assert len(known) == len(AlphaSign.faults)
    for ailment in (*Sign.faults.values(), *Sign.line.values()):
        assert set(ailment.told) <= known | {"device.offline"}
        assert ailment.round == "none"
    assert set(Sign.line) == set(Line.FAULTS)


# ---- the sign alone


def said(sign: Sign, frame: Frame | bytes, now: float = 100.0) -> list[Message]:
    assert sign.hear(frame if isinstance(frame, bytes) else encode(frame), now) == b""
    data = b""
    while (due := sign.due()) != float("inf"):
        assert due > now
        data += sign.wake(due)
    return Decoder().feed(data)


def own(*commands: Command, address: str = "01", sync: int = 5) -> Frame:
    return Frame(commands, address=address, sync=sync)


SETUP = ConfigureMemory((File("A", "A", 32, False, "FF00"), File("1", "B", 10, True)))
# While it plays, the first file has what is left of the memory.
GROWN = ConfigureMemory((File("A", "A", 0x0B00 - 10, False, "FF00"), File("1", "B", 10, True)))


def test_the_sign_takes_only_what_is_whole_for_it_and_slow_enough() -> None:
    sign = Sign(Random(1))
    sign.hear(encode(own(SETUP, sync=4)), 0.0)  # no speed without five NULs
    sign.hear(encode(own(SETUP, address="02")), 0.0)
    sign.hear(encode(own(SETUP)).replace(b"0020", b"0021"), 0.0)  # wrong checksum
    assert sign.wipes == 0
    for address in ("00", "01", "?1", "??"):
        sign.hear(encode(own(SETUP, address=address)), 0.0)
        sign._blank_until = 0.0
    assert sign.wipes == 4
    answer = Frame((SETUP,), "0", "00", 20, raw=encode(Frame((SETUP,), "0"))[5:])
    assert said(sign, own(ReadMemory()), 1.0) == [answer]
    assert said(sign, own(ReadMemory())) == [
        msgspec.structs.replace(answer, commands=(GROWN,), raw=encode(Frame((GROWN,), "0"))[5:])
    ]
    assert said(sign, own(ReadMemory(), address="00")) == []
    assert said(Sign(Random(1), readable=False), own(ReadMemory())) == []


def test_the_sign_goes_blank_and_deaf_while_it_wipes() -> None:
    sign = Sign(Random(1))
    sign.hear(encode(own(SETUP)), 0.0)
    sign.hear(encode(own(WriteString("1", "x"))), 0.5)
    sign.hear(encode(own(WriteText("A", (Segment("is \x101"),)), WriteString("1", "there"))), 1.0)
    assert sign.showing(0.9) == ""
    assert sign.showing(1.0) == "is there"
    sign.hear(encode(own(WriteString("2", "x"))), 2.0)
    assert sign.showing(2.0) == "is there"
    sign.hear(encode(own(WriteString("1", "longer than ten"))), 2.1)
    assert sign.showing(2.2) == "is "  # as measured: neither cut nor kept
    sign.hear(encode(own(WriteString("1", "there"))), 2.3)
    sign.hear(encode(own(WriteText("0", (Segment("WIN", " ", "c"),)), Beep())), 3.0)
    assert (sign.showing(3.0), sign.beeps) == ("WIN", 1)
    sign.hear(encode(own(SoftReset())), 4.0)
    assert (sign.showing(5.9), sign.showing(6.0)) == ("", "WIN")
    sign.hear(encode(own(WriteText("0"))), 7.0)
    assert sign.showing(7.0) == "is there"
    sign.hear(encode(own(ConfigureMemory())), 8.0)
    assert sign.showing(100.0) == ""


def test_a_sign_with_counters_refuses_their_files() -> None:
    sign = Sign(Random(1), acknowledges=True, counters=True)
    assert said(sign, own(SETUP), 0.0) == [Ack(Errors(0), b"\x06\x40")]
    said(sign, own(WriteText("A", (Segment("\x101"),))), 50.0)
    assert said(sign, own(WriteString("1", "x"))) == [nak(Errors.ILLEGAL)]
    assert sign.showing(101.0) == "0"


def test_a_fault_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="no fault 'fire'"):
        Sign(Random(1)).inject("fire", 0.0)
