"""`feltd bench decoders`: the speed of each decoder on valid and invalid bytes, and its memory on an endless message.

Traffic comes in chunks of CHUNK bytes, as a busy port gives it. Three kinds: *valid*, a mix of everything that the wire
carries, encoded by the same codec; *garbage*, random bytes; *worst*, the slowest that was found: cycles of the wire's
control bytes, and its own frames without their begin, end or checksum. Rates are megabytes (10^6) a second of CPU time,
medians over turns, each with all wires; two yardsticks are measured in the same run. A line of 115200 baud carries
LINE megabytes a second.

Bytes held are the most memory that the decoder's fields take beyond a new decoder's while an endless message arrives.
"""

import itertools
import random
import re
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from protocols import (
    alpha_sign,
    bee_tek_shoe,
    bee_tek_text,
    billy_iii,
    cammegh_ss2,
    hid_cards,
    idp_dice,
    tcs_saturn,
)
from protocols.contract import wagers
from protocols.fdl import (
    bets as fdl_bets,
    buttons as fdl_buttons,
    console as fdl_console,
    continuous as fdl_continuous,
    frame as fdl,
    lamps as fdl_lamps,
    peek as fdl_peek,
    shaker as fdl_shaker,
    shuffler as fdl_shuffler,
    timer as fdl_timer,
)
from protocols.fdl.console import LimitsChanged, MachineApproved, SeriesStated, TableCounted, TableOpened
from protocols.sas import frames as sas
from protocols.sas.messages import Answer, Garbage, GeneralPoll, Happened, Identity, LongPoll, Meters, Poll, Reply
from protocols.sas.tables import METERS
from simulators.lab.bench.machine import machine

__all__ = ["GOAL", "WIRES", "DecoderReport", "Row", "Wire", "bench_decoders", "decoders_markdown", "held_after"]

CHUNK = 256
GOAL = 1.0
LINE = 0.01152
TURNS = 5
BUDGET = 0.1
"""CPU seconds of one measurement."""
SIZE = 262_144
"""Bytes of one kind of traffic."""
TRIED = 8192
"""Bytes of each candidate for the worst."""
FINALISTS = 3
ENDLESS = 50_000_000
SLOWLY = 8192

Feed = Callable[[bytes], Sequence[object]]
Opened = tuple[object, Feed]
"""A new decoder, and the function that gives it bytes."""


class Wire(Struct, frozen=True):
    """One decoder in one direction.

    `frames`: whole messages, the mix of valid traffic. `meaning`: the delimiting bytes. `endless`: the beginning of a
    message, and bytes that can follow it for ever. `ask`: each frame is decoded as the answer to its own poll.
    """

    name: str
    module: str
    open: Callable[[], Opened]
    frames: tuple[bytes, ...]
    meaning: bytes
    endless: tuple[bytes, bytes]
    ask: Callable[[], Opened] | None = None


class Row(Struct, frozen=True):
    """The figures of one wire: megabytes a second, the worst traffic, bytes held."""

    name: str
    valid: float
    garbage: float
    worst: float
    pattern: str
    held: int

    @property
    def met(self) -> bool:
        """Whether valid traffic and garbage both reach the target."""
        return min(self.valid, self.garbage) >= GOAL


class DecoderReport(Struct, frozen=True):
    """One run. `yards`: megabytes a second of the yardsticks."""

    machine: str
    date: str
    yards: dict[str, float]
    rows: tuple[Row, ...]


# ---- the wires


def _simple(module: Any) -> Callable[[], Opened]:
    def fresh() -> Opened:
        decoder = module.Decoder()
        return decoder, decoder.feed

    return fresh


def _cammegh_frames() -> tuple[bytes, ...]:
    wire = cammegh_ss2
    spin = [
        wire.Status(state, n % 256 + 1, str(n % 37), wire.Flag(0), 180 + n, clockwise=n % 2 == 0)
        for n in range(8)
        for state in (wire.State.PLACE_BETS, *wire.State)
    ]
    lines = [wire.encode(status) for status in spin]
    lines += [wire.encode(wire.Number(str(n))) for n in range(0, 37, 9)]
    return (*lines, *(wire.encode(wire.Packet(letter, "1")) for letter in "PFo"), wire.POLL, wire.ASK_FIRMWARE)


def _bee_tek_frames() -> tuple[bytes, ...]:
    wire = bee_tek_shoe
    cards = [rank + suit for rank in "A23456789TJQK" for suit in "SHDC"]
    return tuple(wire.encode(wire.Drawn(card)) + wire.encode_echo(card) * (n % 2) for n, card in enumerate(cards))


def _bee_tek_text_frames() -> tuple[bytes, ...]:
    wire = bee_tek_text
    cards = [rank + suit for rank in "A23456789TJQK" for suit in "SHDC"]
    drawn = (wire.encode(bee_tek_shoe.Drawn(card, b"", wire.GAME)) for card in cards)
    return (*drawn, wire.encode(wire.NotRead(wire.GAME)), wire.encode(wire.Warned("0x01")))


def _hid_frames() -> tuple[bytes, ...]:
    wire = hid_cards
    codes = [wire.code_of(rank + suit) for rank in "A23456789TJQK" for suit in "SHDC"]
    return tuple(wire.encode(wire.Code(code)) for code in codes)


_BY_HAND: Final[dict[type[fdl.Happening], fdl.Happening]] = {
    type(one): one
    for one in (
        SeriesStated("ana", 6, "craps-1:2026-11-28:1:7", ((1, "pass", 3000),)),
        TableCounted(0x03, 1_000_000, "0" * 32, "dora", "sam"),
        TableOpened("dora", 100, 5000),
        MachineApproved("ana"),
        LimitsChanged("dora", 100, 5000),
    )
}
"""Fields that must agree with each other, which random data would never do."""


def _data_of(happening: type[fdl.Happening], rng: random.Random) -> bytes:
    """Valid data of an event type, found by trying, so that new types are included. Raises LookupError."""
    if happening in _BY_HAND:
        return _BY_HAND[happening].to_bytes()
    for size in range(1 + fdl.MAX_DATA):
        for _ in range(300):
            data = bytes(rng.choice((0, 1, 1, 2, 3, 4, 5, 6, ord("a"), max(size - 3, 0))) for _ in range(size))
            if not isinstance(happening.from_bytes(data), fdl.Malformed):
                return data
    raise LookupError(f"nothing found that {happening.__name__} takes")


def _fdl_frames(kind: int, own: dict[int, type[fdl.Happening]]) -> tuple[bytes, ...]:
    """The frames of such a device: each of its events, a heartbeat after each third, its identity, an answer."""
    rng = random.Random(kind)
    messages: list[fdl.Message] = [
        fdl.Identity(kind, 7, 1, 400, 1, "Felt", "Device", "SIM-1", "1.0"),
        fdl.Answer(9, fdl.DONE),
    ]
    for counter, number in enumerate((*own, *fdl.COMMON), 1):
        messages.append(fdl.EventReport(counter, 20, number, _data_of({**own, **fdl.COMMON}[number], rng)))
        if counter % 3 == 0:
            messages.append(fdl.Heartbeat(1000 * counter, counter + 1))
    return tuple(fdl.encode(message, seq) for seq, message in enumerate(messages))


def _fdl_opened(own: dict[int, type[fdl.Happening]]) -> Callable[[], Opened]:
    def fresh() -> Opened:
        decoder = fdl.Decoder()

        def feed(data: bytes) -> list[object]:
            read: list[object] = []
            for found in decoder.feed(data):
                message = fdl.read(found) if isinstance(found, fdl.Frame) else found
                if isinstance(message, fdl.EventReport):
                    read.append(fdl.read_happening(message.kind, message.data, own))
                else:
                    read.append(message)
            return read

        return decoder, feed

    return fresh


def _fdl_wires() -> Iterable[Wire]:
    kinds: dict[int, ModuleType] = {
        fdl.SHAKER: fdl_shaker,
        fdl.CONSOLE: fdl_console,
        fdl.SHUFFLER: fdl_shuffler,
        fdl.BUTTON_COUNTER: fdl_buttons,
        fdl.CONTINUOUS_SHUFFLER: fdl_continuous,
        fdl.BET_SENSORS: fdl_bets,
        fdl.LAMPS: fdl_lamps,
        fdl.PEEK_READER: fdl_peek,
        fdl.TIMER: fdl_timer,
    }
    endless = b"\0", b"\x05abcd"
    told: tuple[fdl.Message, ...] = (
        fdl.Hello(7, 12),
        *(fdl.Ack(7, n) for n in range(1, 9)),
        fdl.Nak(1, 7, 3),
        fdl.Command(3, 0x10, b"\1"),
    )
    frames = tuple(fdl.encode(message, seq) for seq, message in enumerate(told))
    yield Wire("fdl, to the device", "fdl", _fdl_opened({}), frames, b"\0\1\2\xff", endless)
    for kind, module in kinds.items():
        own, name = module.HAPPENINGS, "fdl_" + module.__name__.rpartition(".")[2]
        yield Wire(name, name, _fdl_opened(own), _fdl_frames(kind, own), b"\0\1\2\xff", endless)


def _saturn_frames() -> tuple[bytes, ...]:
    wire = tcs_saturn
    codec = wire.StatusCodec(wire.Layout())
    polls = [wire.encode(wire.Frame("02", wire.STATUS)), wire.encode(wire.Frame("04", wire.LAUNCH))]
    states = [
        wire.Status(
            state, n, str(n) if state is wire.State.WINNING_NUMBER else "", "clockwise", "anticlockwise", 250, False
        )
        for n in range(37)
        for state in wire.State
    ]
    return tuple(itertools.chain.from_iterable((polls[n % 40 == 0], codec.write(s)) for n, s in enumerate(states)))


def _saturn_opened() -> Opened:
    decoder, codec = tcs_saturn.Decoder(), tcs_saturn.StatusCodec(tcs_saturn.Layout())
    least = tcs_saturn.Layout().length

    def read(message: tcs_saturn.Message) -> object:
        if isinstance(message, tcs_saturn.Frame) and len(message.raw) > least:
            try:
                return codec.read(message.raw)
            except tcs_saturn.Misfit as misfit:
                return misfit
        return message

    def feed(data: bytes) -> list[object]:
        return [read(message) for message in decoder.feed(data)]

    return decoder, feed


def _alpha_frames() -> tuple[bytes, ...]:
    wire = alpha_sign
    amounts = [wire.Frame((wire.WriteString("1", f"MOP {n:,}.00"),)) for n in range(10_000, 10_040)]
    others: list[wire.Command] = [
        wire.WriteText("A", (wire.Segment(f"JACKPOT {wire.CALL_STRING}1"),)),
        wire.ReadString("1"),
        wire.ConfigureMemory((wire.File("A", "A", 256, times=wire.ALWAYS), wire.File("1", "B", 64))),
        wire.Beep(),
    ]
    return (*map(wire.encode, amounts), *(wire.encode(wire.Frame((one,))) + b"\x06" for one in others))


# The polls of a host: a general poll each time, the meters now and then.
ADDRESS = 1
_METERS = Meters({"coin in": 123_456})


def _sas_asked() -> list[tuple[Poll, bytes]]:
    """Polls with their answers: many without an event, meters, long answers."""
    general = GeneralPoll(ADDRESS)
    asked: list[tuple[Poll, bytes]] = []
    for command, names in METERS.items():
        body = Meters({name: 1_234 for name, _ in names})
        asked += [(general, sas.encode(Happened(0)))] * 4
        asked.append((LongPoll(ADDRESS, command), sas.encode(Reply(ADDRESS, command, body))))
    asked.append((LongPoll(ADDRESS, 0x54), sas.encode(Reply(ADDRESS, 0x54, Identity("602", "SIM-000001")))))
    asked.append((general, sas.encode(Happened(0x11))))
    return asked


def _sas_host() -> Opened:
    """Every other chunk is an answer, the others are unsolicited; after each the line is idle."""
    decoder = sas.HostDecoder(ADDRESS)
    polls = itertools.cycle([LongPoll(ADDRESS, 0x54), None])

    def feed(data: bytes) -> list[Answer]:
        if (poll := next(polls)) is not None:
            decoder.expect(poll)
        return [*decoder.feed(data), *decoder.quiet()]

    return decoder, feed


def _sas_host_asking() -> Opened:
    decoder = sas.HostDecoder(ADDRESS)
    polls = itertools.cycle([poll for poll, _ in _sas_asked()])

    def feed(data: bytes) -> list[Answer]:
        decoder.expect(next(polls))
        answers = decoder.feed(data)
        return answers + decoder.quiet() if decoder.waiting else answers

    return decoder, feed


def _sas_machine() -> Opened:
    """After a lost synchronisation the line is idle for a moment; otherwise the rest of the noise would be discarded
    unread.
    """
    decoder = sas.MachineDecoder()

    def feed(data: bytes) -> list[Poll | Garbage]:
        polls = decoder.feed(data)
        return polls + decoder.quiet() if polls and isinstance(polls[-1], Garbage) else polls

    return decoder, feed


def _sas_polls() -> tuple[bytes, ...]:
    """The same from the machine's side: each long poll between general polls, and the jackpot's amounts."""
    polls: list[bytes] = []
    for command in METERS:
        polls += [sas.encode(GeneralPoll(ADDRESS))] * 4
        polls.append(sas.encode(LongPoll(ADDRESS, command)))
    polls.append(sas.encode(sas.broadcast(1, {1: 1_000_000, 2: 20_000})))
    return (
        *polls,
        sas.encode(LongPoll(ADDRESS, 0x01)),
        sas.encode(sas.game_poll(ADDRESS, 0x52)),
    )


def _billy_frames() -> tuple[bytes, ...]:
    wire = billy_iii
    states = [wire.encode(wire.State(code)) for code in (0, 0, 2, 1, 1, 1, 1, 0)]
    return (*states, wire.encode(wire.Ask()), wire.encode(wire.Cycle(0, 10, 0, 0.41, 9.59)))


def _idp_frames() -> tuple[bytes, ...]:
    wire = idp_dice
    rounds = range(20)
    asked = [wire.encode(wire.Detect(f"R-{n}", "rtsp://192.0.2.1/live")) for n in rounds]
    answered = [wire.encode(wire.Result(f"R-{n}", (1 + n % 6, 3, 6), wire.OK)) for n in rounds]
    return (*asked, *answered, wire.encode(wire.Stop()), wire.encode(wire.Result("R", None, wire.NO_RESULT)))


def _wagers_opened() -> Opened:
    decoder = wagers.Decoder()
    return decoder, lambda data: [one.message for one in decoder.feed(data)]


def _wager_frames() -> tuple[bytes, ...]:
    until = datetime(2026, 11, 20, 20, 1, tzinfo=UTC)
    asked = [wagers.PlaceWager(f"a-{n}", f"t-{n}", until, n, "fan:2", 500 * n) for n in range(1, 10)]
    back = [wagers.WithdrawWager(f"b-{n}", f"t-{n}", until, n, "fan:2") for n in range(1, 5)]
    taken = wagers.WagerAnswer("a-1", "t-1", "accepted", event="edge-1:fan-1:9", round="fan-1:2026-11-20:4")
    messages: tuple[wagers.WagerRequest | wagers.WagerAnswer, ...] = (*asked, *back, taken)
    return tuple(wagers.encode_line(one.terminal, one) for one in messages)


WIRES: tuple[Wire, ...] = (
    Wire("cammegh_ss2", "cammegh_ss2", _simple(cammegh_ss2), _cammegh_frames(), b"*X;\r\n 0", (b"*X;", b"0;")),
    Wire("bee_tek_shoe", "bee_tek_shoe", _simple(bee_tek_shoe), _bee_tek_frames(), b"*\r\n0D", (b"*", b"0D")),
    Wire(
        "bee_tek_text",
        "bee_tek_text",
        _simple(bee_tek_text),
        _bee_tek_text_frames(),
        b"[]<>",
        (b"[", b" "),
    ),
    Wire(
        "hid_cards",
        "hid_cards",
        _simple(hid_cards),
        _hid_frames(),
        b"\0\1\2\x04\x28",
        (b"", hid_cards.press(4) + hid_cards.RELEASED),
    ),
    *_fdl_wires(),
    Wire("tcs_saturn", "tcs_saturn", _saturn_opened, _saturn_frames(), b"\1\2\3\4" + b"0", (b"\x0102\x02", b"S")),
    Wire(
        "alpha_sign",
        "alpha_sign",
        _simple(alpha_sign),
        _alpha_frames(),
        b"\0\1\2\3\4\6\xff",
        (bytes(5) + b"\x01Z00\x02AA", b"\x1b b0"),
    ),
    Wire(
        "sas, host",
        "sas",
        _sas_host,
        tuple(answer for _, answer in _sas_asked()),
        b"\0\1\x54\x81\xff",
        (b"", b"\1\xff\0"),
        _sas_host_asking,
    ),
    Wire("sas, machine", "sas", _sas_machine, _sas_polls(), b"\0\1\x01\x80\x1a\x86\xff", (b"", b"\1\x86\xff")),
    Wire("billy_iii", "billy_iii", _simple(billy_iii), _billy_frames(), b"\n S/0", (b"/cycle/?pattern=", b"0")),
    Wire(
        *("bet_terminals", "contract_wagers", _wagers_opened, _wager_frames()),
        *(b'\n {}["', (b'{"action":"place","id":"', b"{[\\")),
    ),
    Wire("idp_dice", "idp_dice", _simple(idp_dice), _idp_frames(), b'\n {}["', (b'{"command":"', b"{[\\")),
)


# ---- traffic


def chunks(data: bytes) -> list[bytes]:
    """The bytes in chunks as a busy port gives them."""
    return [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]


def repeated(cycle: bytes, size: int) -> list[bytes]:
    """The cycle repeated to `size` bytes, in chunks that ignore its boundaries."""
    return chunks((cycle * (size // len(cycle) + 1))[:size])


def valid(wire: Wire) -> list[bytes]:
    """About SIZE bytes; frame by frame if each answers its own poll."""
    stream = b"".join(wire.frames)
    if wire.ask is not None:
        return [*wire.frames] * max(SIZE // len(stream), 1)
    return chunks(stream * max(SIZE // len(stream), 1))


def candidates(wire: Wire) -> dict[str, bytes]:
    """Candidates for slow traffic by name: cycles of delimiting bytes, and damaged frames of every length."""
    found = {}
    for size in (1, 2, 3):
        for picked in itertools.product(sorted(set(wire.meaning)), repeat=size):
            found[f"only {bytes(picked).hex(' ')}"] = bytes(picked)
    for frame in {len(frame): frame for frame in wire.frames}.values():
        spoiled = {
            "with a wrong byte": frame[:-3] + bytes(((frame[-3:-2] or b"\0")[0] ^ 1,)) + frame[-2:],
            "without the last byte": frame[:-1],
            "without the last two": frame[:-2],
            "cut in half": frame[: len(frame) // 2],
            "without the first byte": frame[1:],
        }
        found |= {f"frames of {len(frame)} {how}": cycle for how, cycle in spoiled.items() if cycle}
    return found | {"an endless message": wire.endless[0] + wire.endless[1] * 2000}


# ---- measuring


def rate(opened: Opened, pieces: Sequence[bytes], budget: float) -> float:
    """Megabytes a second of CPU time: all pieces again and again until `budget` seconds are spent."""
    _, feed = opened
    size, done = sum(map(len, pieces)), 0
    began = time.process_time()
    while True:
        for piece in pieces:
            feed(piece)
        done += size
        spent = time.process_time() - began
        if spent >= budget:
            return done / spent / 1e6


def slowest(wire: Wire) -> list[str]:
    """The names of the slowest candidates, each tried once."""
    rates = {name: rate(wire.open(), repeated(cycle, TRIED), 0.0) for name, cycle in candidates(wire).items()}
    return sorted(rates, key=rates.__getitem__)[:FINALISTS]


def size_of(value: object) -> int:
    """Bytes of memory of a decoder's fields, recursively; without patterns and functions, which are shared."""
    if isinstance(value, re.Pattern | type) or callable(value):
        return 0
    size = sys.getsizeof(value)
    if isinstance(value, list | tuple | set | frozenset | deque):
        return size + sum(map(size_of, value))
    return size + sum(map(size_of, vars(value).values())) if hasattr(value, "__dict__") else size


def held_after(wire: Wire, endless: int = ENDLESS) -> int:
    """The most bytes held beyond a new decoder while `endless` bytes of a message without an end arrive."""
    decoder: Any = wire.open()[0]  # the bare decoder, without the pauses that would end a message
    if isinstance(decoder, sas.HostDecoder):
        decoder.expect(LongPoll(ADDRESS, 0x54))
    fresh = most = size_of(decoder)
    begin, cycle = wire.endless
    piece = cycle * (CHUNK // len(cycle) + 1)
    # Byte by byte while memory may grow, so that no peak is missed; then in large chunks.
    for byte in begin + piece * (SLOWLY // len(piece)):
        decoder.feed(bytes((byte,)))
        most = max(most, size_of(decoder))
    for number in range(endless // len(piece)):
        decoder.feed(piece)
        if number % 97 == 0:
            most = max(most, size_of(decoder))
    return int(most - fresh)


_STATUS = re.compile(rb"\*X;([1-7]);([0-9]{3});([ 0-9]{2});([0-9A-F]);([0-9]{3});([01])\r?")


def _by_split() -> Opened:
    held = b""

    def feed(data: bytes) -> list[re.Match[bytes] | None]:
        nonlocal held
        *lines, held = (held + data).split(b"\n")
        return [_STATUS.fullmatch(line) for line in lines]

    return None, feed


def _by_byte() -> Opened:
    held = bytearray()

    def feed(data: bytes) -> list[bytes]:
        lines = []
        for byte in data:
            if byte == 0x0A:
                lines.append(bytes(held))
                held.clear()
            else:
                held.append(byte)
        return lines

    return None, feed


YARDS: dict[str, Callable[[], Opened]] = {
    "split at line ends and one regular expression": _by_split,
    "a loop over single bytes, lines only": _by_byte,
}


def bench_decoders(
    say: Callable[[str], None],
    *,
    wires: Sequence[Wire] = WIRES,
    turns: int = TURNS,
    budget: float = BUDGET,
    endless: int = ENDLESS,
) -> DecoderReport:
    """Measure all wires, in turns."""
    rng = random.Random(1)
    garbage = chunks(rng.randbytes(SIZE))
    worst = {}
    for wire in wires:
        found = candidates(wire)
        worst[wire.name] = {name: repeated(found[name], SIZE // 4) for name in slowest(wire)}
    say(f"the worst of {len(wires)} wires: found")
    lines = chunks(b"".join(frame for frame in WIRES[0].frames) * 100)
    rates: dict[tuple[str, str], list[float]] = {}
    for turn in range(turns):
        for name, opened in YARDS.items():
            rates.setdefault(("", name), []).append(rate(opened(), lines, budget))
        for wire in wires:
            seen = {"valid": rate((wire.ask or wire.open)(), valid(wire), budget)}
            seen["garbage"] = rate(wire.open(), garbage, budget)
            seen |= {name: rate(wire.open(), pieces, budget) for name, pieces in worst[wire.name].items()}
            for kind, figure in seen.items():
                rates.setdefault((wire.name, kind), []).append(figure)
        say(f"turn {turn + 1} of {turns}: done")
    held: dict[object, int] = {}
    rows = []
    for wire in wires:
        middle = {kind: statistics.median(figures) for (name, kind), figures in rates.items() if name == wire.name}
        good, noise = middle.pop("valid"), middle.pop("garbage")
        pattern = min(middle, key=middle.__getitem__)
        # All devices of one wire share a decoder, which is measured once.
        key = (type(wire.open()[0]), wire.endless)
        if key not in held:
            held[key] = held_after(wire, endless)
        rows.append(Row(wire.name, round(good, 2), round(noise, 2), round(middle[pattern], 2), pattern, held[key]))
    say("endless messages: done")
    return DecoderReport(
        machine(),
        datetime.now(UTC).date().isoformat(),
        {name: round(statistics.median(rates["", name]), 2) for name in YARDS},
        tuple(rows),
    )


def decoders_markdown(report: DecoderReport) -> str:
    """The report in Markdown, as docs/explanation/performance.md has its tables."""
    lines = [
        "| wire | valid MB/s | garbage MB/s | worst MB/s | the worst is | bytes held | 1 MB/s, valid and garbage |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in report.rows:
        figures = f"{row.valid:.1f} | {row.garbage:.1f} | {row.worst:.1f}"
        met = "met" if row.met else "**not met**"
        lines.append(f"| {row.name} | {figures} | {row.pattern} | {row.held:,} | {met} |")
    lines += [f"| *{name}* | {figure:.1f} | | | | | |" for name, figure in report.yards.items()]
    lines += ["", f"Measured {report.date} on {report.machine}."]
    return "\n".join(lines)
