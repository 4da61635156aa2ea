"""Driver for an LED sign with the Alpha protocol, as the display of a progressive jackpot.

The amount is in a string file (one of `labels` for each level), which a text file in mode HOLD calls. A new amount
rewrites the string alone, so that the sign neither blanks nor restarts. Labels 1 to 5 are not used: a sign with
counters shows those there. An announcement is the priority text file, which overrides the rest until it is written
empty. Writing the memory configuration erases and blanks the sign, so it is written only if reading it back shows a
different one; to a sign that cannot be read, once a session.

A sign that answers is asked for all of its files every `poll` seconds: other content is a fault, and the
wanted one is written again; no answer is LinkLost. Confirmed means that the sign's file holds the text, not that its
lamps work. To a sign that does not answer, amounts are sent every `poll` seconds and never confirmed. A sign reports no
events, so nothing can be missed: it always comes online as continuous.

After a NAK the sign's serial error register is read, reported as the fault's detail, and cleared. A sign may be blank
for less than a second while it answers (measured on a BetaBrite Classic): raise `poll`, or set `read_back` to never.

Assumed, and therefore options: a sign answers reads at its own `address` only (writes go there while it answers,
otherwise to every sign on the line), it takes a second to erase its memory (`wipe`), and how fast it accepts amounts
(`min_interval`). Assumed without an option: the form of its answers (protocols/alpha_sign.py), and that a text file of
several parts shows one after the other. A sign that answers in another form shows `sign.memory` and must be used with
`read_back = "never"`.
"""

import asyncio
import unicodedata
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from drivers.driver import (
    Chunk,
    CommandFailed,
    CommandRefused,
    Emit,
    Evidence,
    Link,
    LinkLost,
    Sighting,
    WireDecoder,
    decode_memory,
)
from drivers.faults import Fault, Faults, Standing
from protocols import alpha_sign as wire
from protocols.contract.commands import Announce, Command, ShowAmount
from protocols.contract.events import DeviceFaulted, DeviceOnline, DisplayShown, Event, Told

MODEL = "Alpha sign"
TEXT_FILE, TEXT_SIZE, STRING_SIZE = "A", 256, 64
SEQUENCE = wire.RunSequence(TEXT_FILE)
PROBES = 3
COUNTERS = "12345"  # a sign with counters shows them in the files of these labels
QUESTIONS = 6  # unanswered questions after which the sign counts as lost
TRIES = 2
RECONFIGURE = 60.0  # seconds: a sign whose answers the driver misreads must not go blank again and again
AFTER_NAK = 2.0
CYCLE = 600.0  # seconds without a fault after which the count of faults starts anew
OBEYED_WITHIN = 15.0
MAX_SAID = 16
REFUSED = ("sign.checksum", "sign.overflow", "sign.illegal")
_FAULT_OF = {wire.Errors.OVERFLOW: "sign.overflow", wire.Errors.ILLEGAL: "sign.illegal"}
_IN_WORDS = {
    wire.Errors.PARITY: "parity error",
    wire.Errors.FRAMING: "framing error",
    wire.Errors.TIMEOUT: "time-out within a frame",
    wire.Errors.OVERFLOW: "buffer overflow",
    wire.Errors.CHECKSUM: "checksum error",
    wire.Errors.ILLEGAL: "illegal command or file label",
}

_Printable: TypeAlias = Annotated[str, Meta(pattern=r"^[ -~]*$(?!\n)")]
_TAKEN = {
    **dict.fromkeys(COUNTERS, "is a counter's file on a sign with counters"),
    wire.PRIORITY: "is the priority text file",
    TEXT_FILE: "is the text file that shows the amounts",
    "?": "stands for any label",
}
_MODES = {"rotate": wire.ROTATE, "flash": wire.FLASH, "hold": wire.HOLD}


class SignOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`address`: the sign's own, two hex digits; 00 addresses every sign and cannot be read back.

    `levels`: the number of amounts; `captions`: a word before each. `labels`: the sign's string files for them, one
    character for each level; not 0 to 5, A or ?, which the sign or this driver uses. `prefix`, `thousands`, `point`,
    `decimals`, `suffix` format an amount in minor units; `digits`: how many fit on the sign. Seconds: `min_interval`
    between two amounts, `poll` between two checks of the sign, `reply_limit` for an answer, `wipe` after a memory
    configuration. `sync`: NULs before a frame. `checksum`: send it.
    """

    address: Annotated[str, Meta(pattern=r"^[0-9A-F]{2}$(?!\n)")] = "01"
    read_back: Literal["auto", "never"] = "auto"
    levels: Annotated[int, Meta(ge=1, le=9)] = 1
    captions: tuple[Annotated[_Printable, Meta(max_length=20)], ...] = ()
    labels: Annotated[_Printable, Meta(min_length=1, max_length=9)] = "abcdefghi"
    prefix: Annotated[_Printable, Meta(max_length=8)] = ""
    thousands: Annotated[_Printable, Meta(max_length=1)] = ","
    point: Annotated[_Printable, Meta(min_length=1, max_length=1)] = "."
    decimals: Annotated[int, Meta(ge=0, le=4)] = 2
    suffix: Annotated[_Printable, Meta(max_length=8)] = ""
    digits: Annotated[int, Meta(ge=1, le=15)] = 12
    min_interval: Annotated[float, Meta(ge=0.1, le=60)] = 0.5
    poll: Annotated[float, Meta(ge=2, le=600)] = 10.0
    reply_limit: Annotated[float, Meta(ge=0.2, le=10)] = 2.0
    wipe: Annotated[float, Meta(ge=0.5, le=30)] = 1.5
    sync: Annotated[int, Meta(ge=5, le=50)] = 5
    checksum: bool = True
    announcement: Literal["rotate", "flash", "hold"] = "rotate"

    def __post_init__(self) -> None:
        """Check combinations of options. Raises ValueError."""
        if self.digits <= self.decimals:
            raise ValueError("`digits` counts those after the point too and must be greater than `decimals`")
        if self.captions and len(self.captions) != self.levels:
            raise ValueError("`captions` are one for each of `levels`, or none")
        if len(self.labels) < self.levels:
            raise ValueError(
                f"`labels` names {len(self.labels)} files for {self.levels} levels: one for each is needed"
            )
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("`labels` has a label twice: each level needs a file of its own")
        for label in self.labels:
            if label in _TAKEN:
                raise ValueError(f"`labels`: {label} {_TAKEN[label]}; take letters from a to i")


class _Announced(Struct, frozen=True):
    """A running announcement. `seconds`: its limit, independent of the clock."""

    text: str
    until: datetime
    seconds: float = 3600.0


class _Memory(Struct, frozen=True, forbid_unknown_fields=True):
    """`amounts` by level, in minor units."""

    amounts: dict[int, int] = {}
    announced: _Announced | None = None
    faults: Standing = Standing()


class _Shown(Struct, frozen=True):
    """The content of a file."""

    text: str
    confirmed: bool


class _Slot:
    """A file of the sign: its wanted and its known content, and the commands that wait for it."""

    def __init__(self, write: Callable[[str], wire.Command], read: wire.Command) -> None:
        self.write = write
        self.read = read
        self.wanted: str | None = None
        self.number = 0  # of the wanted content
        self.since = 0.0  # since when the content differs from the wanted one
        self.not_before = 0.0
        self.held: _Shown | None = None
        self.met = 0  # the last wanted version that the sign accepted
        self.again = False  # to be written although it was met
        self.waiting: list[tuple[int, asyncio.Future[_Shown]]] = []

    @property
    def stale(self) -> bool:
        """The file must be written."""
        return self.wanted is not None and (self.again or self.met < self.number)

    def want(self, text: str, now: float) -> None:
        """Set the wanted content."""
        if not self.stale:
            self.since = now
        self.wanted = text
        self.number += 1
        self.not_before = 0.0

    def lost(self) -> None:
        """The content is unknown."""
        self.held, self.again = None, True

    def settle(self, number: int, outcome: _Shown | CommandFailed) -> None:
        """Answer the commands that waited for version `number` or an older one."""
        for wish, future in self.waiting:
            if wish <= number and not future.done():
                if isinstance(outcome, _Shown):
                    future.set_result(outcome)
                else:
                    future.set_exception(outcome)
        self.waiting = [(wish, future) for wish, future in self.waiting if wish > number]


class AlphaSign:
    """The driver."""

    name: ClassVar[str] = "alpha_sign"
    title: ClassVar[str] = "Alpha / BetaBrite LED sign, progressive display"
    icon: ClassVar[str] = "sign"
    decoder: ClassVar[WireDecoder | None] = wire.Decoder
    emits: ClassVar[tuple[Told, ...]] = (DisplayShown,)
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    Options: ClassVar[type[SignOptions]] = SignOptions
    faults: ClassVar[tuple[Fault, ...]] = (
        Fault(
            "sign.digits",
            "the amount needs more digits than the sign has; the sign shows its highest amount",
            "announce the true amount by hand; set `digits` if the sign has room for more, or use a larger sign",
            "by itself",
            "not touched",
        ),
        Fault(
            "sign.text",
            "the announcement has characters that the sign cannot show; it shows others instead",
            "announce in plain letters, digits and punctuation (ASCII)",
            "by itself",
            "not touched",
        ),
        Fault(
            "sign.memory",
            "the sign does not store the data that is written to it",
            "check what it shows; leave its programming mode, switch it off and on; if the amount is right, set "
            "read_back to never",
            "by itself",
            "not touched; the displayed amount may be old",
        ),
        Fault(
            "sign.no_read_back",
            "the sign does not answer; amounts are sent, but it is unknown whether it shows them",
            "check what it shows; check power, cable and `address`; for a sign that cannot answer, set read_back to "
            "never",
            "by itself",
            "not touched; the displayed amount may be old",
        ),
        Fault(
            "sign.checksum",
            "data arrived damaged at the sign",
            "check cable, ground and termination of the line, and its speed (9600 8N1 or 4800 7E2)",
            "by itself",
            "not touched",
        ),
        Fault(
            "sign.overflow",
            "the sign is too slow for the data sent to it: its buffer overflows",
            "raise min_interval; lower `sync` if it was raised",
            "by itself",
            "not touched; the displayed amount may be old",
        ),
        Fault(
            "sign.illegal",
            "the sign refuses a command or a file label as illegal",
            "check whether its model has string files; choose other `labels`; if it shows the amount, set read_back to "
            "never",
            "by itself",
            "not touched; the displayed amount may be old",
        ),
        Fault(
            "sign.dark",
            "the sign's memory was empty or differed from the data written; the data is written again",
            "check what it shows; check its power supply, its battery, and who has its remote control; if it happens "
            "again, replace the sign",
            "by itself",
            "not touched; the displayed amount was wrong or missing",
        ),
    )
    commands: ClassVar[tuple[type[Command], ...]] = (ShowAmount, Announce)
    tells_cards: ClassVar[bool] = False

    def __init__(self, options: SignOptions, memory: bytes | None = None) -> None:
        """Continue with the amounts and the announcement of the last session."""
        self._options = options
        kept = decode_memory(memory, _Memory) or _Memory()
        self._saved = memory
        self._amounts = dict(kept.amounts)
        self._announced = kept.announced
        self._faults = Faults(self.faults, kept.faults)
        mode = _MODES[options.announcement]
        self._priority = _Slot(
            lambda text: wire.WriteText(wire.PRIORITY, (wire.Segment(text, " ", mode),) if text else ()),
            wire.ReadText(wire.PRIORITY),
        )
        labels = options.labels[: options.levels]
        self._levels = [_string(label) for label in labels]
        for level, amount in self._amounts.items():
            if level <= options.levels:
                self._levels[level - 1].want(self._text_of(amount), 0.0)
        self._memory = wire.ConfigureMemory(
            (
                wire.File(TEXT_FILE, "A", TEXT_SIZE, times=wire.ALWAYS),
                *(wire.File(label, "B", STRING_SIZE, locked=True) for label in labels),
            )
        )
        captions = [f"{caption} " for caption in options.captions] or [""] * options.levels
        self._text = wire.WriteText(
            TEXT_FILE,
            tuple(
                wire.Segment(f"{caption}{wire.CALL_STRING}{label}")
                for label, caption in zip(labels, captions, strict=True)
            ),
        )
        self._frame = wire.Frame((), address=options.address, sync=options.sync, checked=options.checksum)
        self._sent: deque[bytes] = deque(maxlen=8)
        self._echoes = False
        self._replies: list[wire.Command] = []
        self._said: list[wire.Ack | wire.Nak] = []
        self._has_register = True
        self._last_command: wire.Command = wire.ReadMemory()
        self._events: list[Event] = []
        self._told: dict[_Slot, _Shown] = {}
        self._last: tuple[bytes, Chunk] | None = None
        self._reads = False
        self._set_up_right = False
        self._until = float("inf")
        self._configured_at = float("-inf")
        self._next_write = self._poll_at = self._fault_at = 0.0
        self._idle: asyncio.Timeout | None = None
        self._running = False

    # ---- the session

    async def run(self, link: Link, emit: Emit) -> None:
        """Set the sign up, then keep its content."""
        self._link, self._emit = link, emit
        self._decoder = wire.Decoder()
        self._running = True
        try:
            await self._begin()
            while True:
                await self._turn()
        finally:
            self._running = False
            for slot in self._slots:
                slot.settle(slot.number, CommandFailed("the session with the sign ended before the sign accepted it"))

    async def _begin(self) -> None:
        now = self._fault_at = _now()
        auto = self._options.read_back == "auto"
        found = await self._probe(1 if self._faults.is_open("sign.no_read_back") else PROBES) if auto else None
        self._events.insert(0, DeviceOnline(True, MODEL))  # before the events of a command that ran meanwhile
        if auto:
            self._found_readable(found)
        else:  # `read_back` is never: end the faults that only reading back can find
            self._events += self._faults.end("sign.no_read_back", "sign.memory", "sign.dark")
        running = self._announced
        left = (running.until - self._link.stamp().at).total_seconds() if running else 0.0
        if running is not None and left > 0:
            self._priority.want(running.text, now)
            self._until = _now() + min(left, running.seconds)
        else:  # also if none was running: one that another program wrote would hide the amount
            self._announced = None
            self._priority.want("", now)
        self._watch_digits()
        await self._tell()
        await self._set_up(found)
        self._poll_at = _now() + self._options.poll

    def _found_readable(self, found: wire.Command | None) -> None:
        self._reads = found is not None
        own = self._options.address != wire.EVERY_SIGN
        self._events += self._faults.watch(
            "sign.no_read_back", not self._reads, "" if own else "address 00 addresses every sign: set the sign's own"
        )

    async def _turn(self) -> None:
        now = _now()
        if now >= self._until:
            self._announce("", float("inf"))
        stale = [slot for slot in self._slots if slot.stale]
        ready = [slot for slot in stale if max(slot.not_before, self._next_write) <= now]
        if ready:
            await self._put(min(ready, key=lambda slot: (slot is not self._priority, slot.since)))
        elif now >= self._poll_at:
            self._poll_at = now + self._options.poll
            await self._poll()
        else:
            until = min([self._poll_at, self._until, *(max(slot.not_before, self._next_write) for slot in stale)])
            await self._hear(until)
        self._replies.clear()
        await self._heed()
        await self._tell()

    @property
    def _slots(self) -> list[_Slot]:
        return [self._priority, *self._levels]

    async def _set_up(self, found: wire.Command | None) -> None:
        """Write memory, text file and run sequence, each only if it is wrong or cannot be read."""
        if not self._reads:
            await self._configure()
            await self._send(self._text)
            await self._send(SEQUENCE)
            return
        right = self._divided(found)
        if not right and (self._set_up_right or _now() - self._configured_at >= RECONFIGURE):
            for _ in range(TRIES):
                await self._configure()
                if right := self._divided(await self._ask(wire.ReadMemory())):
                    break
        for command, read in ((self._text, wire.ReadText(TEXT_FILE)), (SEQUENCE, wire.ReadRunSequence())):
            holds = await self._ask(read) == command
            if not holds:
                await self._send(command)
                holds = await self._ask(read) == command
            right = right and holds
        self._set_up_right = right
        if right:
            self._clear()
        else:
            self._events += self._faults.begin("sign.memory", "its memory, text file or run sequence differs")

    def _divided(self, found: wire.Command | None) -> bool:
        """Whether the memory is partitioned as needed. A sign in use gives its first file the rest of its memory."""
        match found:
            case wire.ConfigureMemory((first, *others)):
                own = self._memory.files[0]
                shrunk = msgspec.structs.replace(first, size=min(first.size, own.size))
                return wire.ConfigureMemory((shrunk, *others)) == self._memory
            case _:
                return False

    async def _configure(self) -> None:
        for slot in self._slots:
            slot.lost()
        self._configured_at = _now()
        await self._send(self._memory)
        until = _now() + self._options.wipe
        while _now() < until:
            await self._hear(until)

    async def _put(self, slot: _Slot) -> None:
        """Write the wanted content, and read it back if possible."""
        assert slot.wanted is not None
        await self._tell()  # what the sign shows must be known after any crash
        number, text, before = slot.number, slot.wanted, slot.held
        command = slot.write(text)
        holds: wire.Command | None = None
        for _ in range(TRIES):
            await self._send(command)
            self._next_write = _now() + self._options.min_interval
            if not self._reads:
                break
            holds = await self._ask(slot.read)
            if holds == command:
                break
            if before is not None and holds != slot.write(before.text):
                await self._mend()  # neither the new text nor the old: it lost its files
        if self._reads and holds != command:
            slot.lost()
            slot.not_before = _now() + self._options.poll
            self._events += self._faults.begin("sign.memory", f"{text!r} was written twice")
            slot.settle(number, CommandFailed(f"the sign did not keep {text!r}; it is tried again"))
            return
        slot.held, slot.met, slot.again = _Shown(text, self._reads), number, False
        self._clear()
        self._show()
        await self._tell()
        slot.settle(number, slot.held)

    def _show(self) -> None:
        """Report what the sign shows, if it changed. An announcement hides the amounts."""
        announced = self._priority.held is not None and self._priority.held.text
        showing = {slot: slot.held for slot in ([self._priority] if announced else self._levels) if slot.held}
        self._events += [
            DisplayShown(held.text, held.confirmed) for slot, held in showing.items() if self._told.get(slot) != held
        ]
        self._told = showing

    def _clear(self) -> None:
        """End the faults of the content, when all of it was read back."""
        right = self._set_up_right or any(slot.held for slot in self._levels)
        if self._reads and right and not any(slot.stale for slot in self._slots):
            self._events += self._faults.end("sign.memory", "sign.dark", *REFUSED)

    async def _poll(self) -> None:
        if not self._reads:
            found = await self._probe(1) if self._options.read_back == "auto" else None
            # Written again to read it back, or because its content is unknown; not the priority text, which would start
            # again.
            for slot in self._levels if found is None else self._slots:
                slot.again = True
            if found is not None:
                self._found_readable(found)
                await self._set_up(found)
            return
        right = True
        for slot in self._slots:
            if slot.held is not None:
                held = slot.held
                right = await self._ask(slot.read) == slot.write(held.text) and right
        if self._set_up_right:
            right = await self._ask(wire.ReadText(TEXT_FILE)) == self._text and right
        if not right:
            await self._mend()
        elif all(slot.held is None for slot in self._levels):
            await self._set_up(await self._ask(wire.ReadMemory()))
        else:
            self._clear()
        if _now() - self._fault_at >= CYCLE:
            self._faults.good_cycle()

    async def _mend(self) -> None:
        """The sign holds unknown content: write all of it again."""
        self._events += self._faults.begin("sign.dark")
        await self._tell()
        for slot in self._slots:
            slot.lost()
        await self._set_up(await self._ask(wire.ReadMemory()))

    # ---- commands

    async def obey(self, command: Command) -> dict[str, Any]:
        """Return what the sign shows when this content or a newer one was sent (and read back, if possible)."""
        if not self._running:
            raise CommandRefused("there is no session with the sign")
        match command:
            case ShowAmount(amount, level):
                if level > self._options.levels:
                    raise CommandRefused(f"the sign has {self._options.levels} levels, not {level}")
                self._amounts[level] = amount
                slot = self._levels[level - 1]
                slot.want(self._text_of(amount), _now())
                self._watch_digits()
            case Announce(text, seconds):
                plain = _plain(text)
                if text.strip() and not any(character.isalnum() for character in plain):
                    raise CommandRefused("the sign cannot show this text: it has ASCII letters and digits only")
                if plain:
                    self._events += self._faults.watch("sign.text", plain != text.strip(), f"shown is {plain!r}")
                self._announce(plain, float(seconds))
                slot = self._priority
            case _:
                raise CommandRefused("a sign shows amounts and announcements, nothing else")
        done: asyncio.Future[_Shown] = asyncio.get_running_loop().create_future()
        slot.waiting.append((slot.number, done))
        self._stir()
        try:
            async with asyncio.timeout(OBEYED_WITHIN):
                shown = await done
        except TimeoutError:
            raise CommandFailed(f"the sign did not accept it in {OBEYED_WITHIN:g} s; it is tried again") from None
        finally:
            slot.waiting = [one for one in slot.waiting if one[1] is not done]
        return {"text": shown.text, "confirmed": shown.confirmed}

    def _announce(self, text: str, seconds: float) -> None:
        now = _now()
        self._priority.want(text, now)
        if text:
            self._until = now + seconds
            self._announced = _Announced(text, self._link.stamp().at + timedelta(seconds=seconds), seconds)
        else:
            self._until = float("inf")
            self._announced = None

    def _text_of(self, amount: int) -> str:
        options = self._options
        whole, part = divmod(min(amount, 10**options.digits - 1), 10**options.decimals)
        point = f"{options.point}{part:0{options.decimals}}" if options.decimals else ""
        return options.prefix + f"{whole:,}".replace(",", options.thousands) + point + options.suffix

    def _watch_digits(self) -> None:
        most = max((amount for level, amount in self._amounts.items() if level <= self._options.levels), default=0)
        self._events += self._faults.watch(
            "sign.digits", most >= 10**self._options.digits, f"it has {self._options.digits}, {most} needs more"
        )

    # ---- the line

    async def _send(self, command: wire.Command) -> None:
        answers = self._reads or isinstance(command, wire.ReadMemory)
        frame = msgspec.structs.replace(
            self._frame,
            commands=(command,),
            address=self._options.address if answers else wire.EVERY_SIGN,
        )
        self._last_command = command
        data = wire.encode(frame)
        self._sent.append(data.lstrip(b"\x00"))
        await self._link.write(data)

    async def _probe(self, tries: int) -> wire.Command | None:
        """The partition of the memory, if the sign reports it."""
        if self._options.address == wire.EVERY_SIGN:
            return None
        return await self._question(wire.ReadMemory(), tries)

    async def _ask(self, read: wire.Command) -> wire.Command:
        """The sign's answer. Raises LinkLost if there is none."""
        answer = await self._question(read, QUESTIONS)
        if answer is None:
            silence = QUESTIONS * self._options.reply_limit
            raise LinkLost(f"no answer for {silence:g} s: check the sign's power, its cable and the port's speed")
        return answer

    async def _question(self, read: wire.Command, tries: int) -> wire.Command | None:
        for _ in range(tries):
            self._replies.clear()
            await self._send(read)
            until = _now() + self._options.reply_limit
            while _now() < until:
                await self._hear(until)
                for reply in self._replies:
                    if _answers(read, reply):
                        return reply
                self._replies.clear()
        return None

    async def _hear(self, until: float) -> None:
        """Receive until the loop's second `until`, or until a command wakes us."""
        try:
            async with asyncio.timeout_at(until) as self._idle:
                chunk = await self._link.read()
        except TimeoutError:
            return
        finally:
            self._idle = None
        for message in self._decoder.feed(chunk.data):
            match message:
                case wire.Frame(commands, raw=raw):
                    # A sign sends no questions: one that arrives is the echo of ours, not an answer.
                    self._echoes = self._echoes or any(_is_question(command) for command in commands)
                    if not (self._echoes and raw in self._sent):
                        self._replies += commands
                        self._last = raw, chunk
                case wire.Ack(raw=raw) | wire.Nak(raw=raw):
                    if not isinstance(self._last_command, wire.ReadErrors | wire.ClearErrors):
                        self._said = [*self._said, message][-MAX_SAID:]
                    self._last = raw, chunk
                case wire.Broken() | wire.Garbage():
                    pass  # a question that stays open is asked again

    def _stir(self) -> None:
        if self._idle is not None and not self._idle.expired():
            self._idle.reschedule(_now())

    async def _heed(self) -> None:
        """The sign's answers to our frames. After a NAK all is written again if nothing can be read back."""
        said, self._said = self._said, []
        naks = [message.errors or wire.Errors(0) for message in said if isinstance(message, wire.Nak)]
        if naks:
            errors = reduce(or_, naks, await self._register() if self._reads else wire.Errors(0))
            detail = ", ".join(_IN_WORDS[error] for error in wire.Errors if error in errors)
            for code in dict.fromkeys(_FAULT_OF.get(error, "sign.checksum") for error in errors or [wire.Errors(0)]):
                self._events += self._faults.begin(code, detail)
            if not self._reads:
                for slot in self._slots:
                    slot.again, slot.not_before = True, _now() + AFTER_NAK
        elif said and not self._reads and not any(slot.stale for slot in self._slots):
            self._events += self._faults.end(*REFUSED)

    async def _register(self) -> wire.Errors:
        """The sign's serial error register, which is cleared; nothing if the sign has none."""
        if not self._has_register:
            return wire.Errors(0)
        match await self._question(wire.ReadErrors(), 1):
            case wire.SerialErrors(errors):
                await self._send(wire.ClearErrors())
                return errors
            case _:
                self._has_register = False
                return wire.Errors(0)

    async def _tell(self) -> None:
        events, self._events = self._events, []
        if any(isinstance(event, DeviceFaulted) for event in events):
            self._fault_at = _now()
        memory = msgspec.json.encode(_Memory(self._amounts, self._announced, self._faults.standing))
        (raw, chunk), self._last = self._last or (b"", self._link.stamp()), None
        if events or memory != self._saved:
            await self._emit([Sighting(event, raw, chunk) for event in events], memory)
            self._saved = memory


def _now() -> float:
    return asyncio.get_running_loop().time()


def _string(label: str) -> _Slot:
    return _Slot(lambda text: wire.WriteString(label, text), wire.ReadString(label))


def _plain(text: str) -> str:
    """As printable ASCII: letters without accents, a question mark for characters without such a letter."""
    parts = unicodedata.normalize("NFKD", text.strip())
    return "".join(
        character if " " <= character <= "~" else "?" for character in parts if not unicodedata.combining(character)
    )


def _is_question(command: wire.Command) -> bool:
    return isinstance(
        command, wire.ReadText | wire.ReadString | wire.ReadMemory | wire.ReadRunSequence | wire.ReadErrors
    )


def _answers(read: wire.Command, reply: wire.Command) -> bool:
    match read, reply:
        case (wire.ReadString(asked), wire.WriteString(told)) | (wire.ReadText(asked), wire.WriteText(told)):
            return asked == told
        case (wire.ReadMemory(), wire.ConfigureMemory()) | (wire.ReadRunSequence(), wire.RunSequence()):
            return True
        case wire.ReadErrors(), wire.SerialErrors():
            return True
        case _:
            return False
