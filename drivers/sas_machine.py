"""Driver for a slot machine with a SAS 6.x port: the session, its polls and the commands.

drivers/sas_machine_reader.py turns what the machine reports into events.

Exceptions. The machine repeats an exception until another poll implies its acknowledgement, so nothing is lost unless
its queue of twenty overflows, which it reports. An exception is one byte without a checksum. It must be read twice in a
row; it is then made durable, and the next long poll, after which the machine discards it, must bring an answer with a
good checksum. Only then is it reported. An exception without that confirmation is reported as doubtful. The same
applies to an exception that may equal the one before: read again after a session that ended before the report, or
repeated after a report without confirmation; and to exceptions that a previous machine left unreported. The two
bytes that mean busy have no checksum and count as a good answer. For some time after damage on the line an exception
must be read three times, and the answer that there is none twice.

Addresses and echoes. A machine that receives no polls sends its own address (the loop break indication), and a line may
echo our polls. An exception with such a value counts only if the machine answers with a checksum. A line that echoes is
refused.

Real-time mode. A machine that another host left in this mode sends an exception in place of an answer, discards it
with any other poll, and may not answer general polls. Poll 0E 00 ends the mode. An exception that was under way when a
session ended before that may be missing, so such a machine does not come back as continuous.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from drivers.driver import Chunk, CommandFailed, CommandRefused, DeviceRefused, Emit, Link, LinkLost, Sighting
from drivers.faults import Fault
from drivers.sas_machine_faults import HOPPER, HOST_FAULTS, MACHINE_FAULTS, NO_PLAY
from drivers.sas_machine_memory import MachineOptions
from drivers.sas_machine_reader import CODES, DOUBT, KINDS, LOST, SECRET, MachineReader, Work
from protocols.contract.commands import Ask, Command, EnableMachine, ReadMeters, ResetHandpay, ShowAmount
from protocols.contract.events import DeviceOnline, Event
from protocols.sas.frames import HostDecoder, broadcast, encode, game_poll, meters_poll
from protocols.sas.messages import (
    Ack,
    Answer,
    Bill,
    Body,
    Busy,
    Clock,
    Features,
    GameInfo,
    Garbage,
    GeneralPoll,
    HandpayReset,
    Happened,
    Identity,
    LongPoll,
    Nack,
    Poll,
    RealTime,
    Reply,
    Unknown,
    ValidationStatus,
)
from protocols.sas.tables import DENOMINATIONS, EXCEPTIONS, METERS

TRIES = 3
ROUND = 24  # polls: about as many are read one by one
BUSY_LIMIT = 10.0
DAMAGED_LIMIT = 8  # answers in a row
SILENT_BROADCAST = 12.0
LEAST_SILENT_POLLS = 5  # polls: at a long interval, one damaged answer is no lost link
CLEAN = 3  # this many equal harmless answers in a row are no noise
CHIRPING = 0.5  # seconds in which a machine that receives no polls sends at least two loop break indications
WARY = 50  # polls after damage until the line counts as good again
SEEN = 64  # exceptions that interrupted sessions may leave
COMMAND_LIMIT = 8.0
ASK_SELDOM = 600.0  # seconds between attempts of a poll that a machine may never answer
QUEUED = 32
NOTHING = frozenset({0x00, 0x1F})
FIRST_RECORD = 10.0  # seconds until the first of the polls that are asked one by one
ASKABLE = {
    "version": 0x54,
    "game": 0x1F,
    "last-bill": 0x48,
    "features": 0xA0,
    "meters": 0x0F,
    "validation": 0x7B,
    "clock": 0x7E,
}
_NOBODY = "perhaps only an address, or our own poll"


class SasMachine(MachineReader):
    """The driver."""

    name: ClassVar[str] = "sas_machine"
    title: ClassVar[str] = "slot machine with a SAS 6.x port"
    icon: ClassVar[str] = "slot"
    Options: ClassVar[type[MachineOptions]] = MachineOptions
    faults: ClassVar[tuple[Fault, ...]] = (*MACHINE_FAULTS, *HOST_FAULTS)
    commands: ClassVar[tuple[type[Command], ...]] = (EnableMachine, ReadMeters, ResetHandpay, ShowAmount, Ask)
    tells_cards: ClassVar[bool] = False
    choices: ClassVar[Mapping[tuple[str, str], tuple[str, ...]]] = {("ask", "what"): ("meters", *ASKABLE)}
    """The values that it accepts in a text field of a command."""

    def __init__(self, options: MachineOptions, memory: bytes | None = None) -> None:
        """Continue from the last session."""
        super().__init__(options, memory)
        self._mine = frozenset({self._me, 0x80 | self._me})  # the loop break indication, and our own poll
        self._kept = self._memory  # as it was made durable last
        self._known = memory is not None
        self._decoder = HostDecoder(self._me)
        self._unresolved = False  # a general poll is under way; its answer may not be acknowledged yet
        self._retrying = False  # a long poll goes out again: the machine must receive the same poll twice in a row
        self._long_next = False
        self._readings: list[int] = []
        self._believed: Chunk | None = None
        self._harmless: deque[int] = deque(maxlen=CLEAN)
        self._damaged = 0
        self._garbled: Counter[int] = Counter()  # answers to a long poll that could not be read
        self._wary = 0  # polls left until a single 00 counts again as "no exception"
        self._echoes = 0
        self._answer: Answer | None = None  # the last answer
        self._checked = False  # an answer had a checksum
        self._strange = False  # a loop break indication or an echo came in this session
        self._general = False  # general polls are answered
        self._silent = 0  # unanswered general polls in a row
        self._supported: set[int] = set()
        self._suspect: int | None = None  # a poll without an answer, while it is open whether others are answered
        self._unheard = False  # a poll that was answered before had no answer, either
        self._factor_due = float("-inf")
        self._factor_wait = self._options.meters
        self._chirps = 0
        self._unasked = False  # it sent a loop break indication before our last poll
        self._left = 0  # the number of seen exceptions that earlier sessions left
        self._online = False
        self._busy_since: float | None = None

    # ---- the session

    async def run(self, link: Link, emit: Emit) -> None:
        """Find the machine, come online, then poll until the link is lost."""
        self._link, self._emit = link, emit
        self._chunk = link.stamp()
        self._slot = self._alive = self._meters_due = self._broadcast_due = self._close_due = self._chunk.tick
        self._forgive_due = self._chunk.tick + ASK_SELDOM
        self._record_due = self._chunk.tick + FIRST_RECORD
        self._mode_due = self._began = self._chunk.tick
        try:
            await self._start()
            while True:
                await self._turn()
        finally:
            self._online = False
            for work in self._queue:
                work.settle(None)
            self._queue.clear()

    async def _start(self) -> None:
        """Request an exception that was under way when the last session ended, before any implied acknowledgement."""
        left = self._left = self._left_once()
        if self._memory.unproved:
            self._memory = replace(self._memory, unproved=0, doubted=(*self._memory.doubted, self._memory.unproved))
        await self._rescue()
        identity = await self._insist(0x54)
        game = await self._insist(0x1F)
        signature = await self._insist(0x21) if self._options.signature_seed else None
        if not self._checked:
            await self._find()
        events: list[Event] = []
        serial, version, same = "", "", False
        if isinstance(identity, Identity):
            serial, version = identity.serial, identity.version
            same = self._known and serial == self._memory.serial
            if self._known and not same:
                events += self._exchanged(left)
                left = 0
            self._memory = replace(self._memory, serial=serial)
        model = f"SAS {version[:1]}.{version[1:]}" if version else "SAS"
        if isinstance(game, GameInfo):
            model = f"{model} {game.game_id} {game.paytable}".rstrip()
            events += [*self._denominated(game), *self._described(game, signature)]
        lost = self._memory.real_time or self._memory.mute or LOST in self._memory.seen
        events += self._left_behind(left)
        self._believed = None
        await self._tell([DeviceOnline(same and not lost, model, serial), *events])
        self._online = True
        self._queue.append(Work(self._poll(0xA0)))
        self._queue.append(Work(self._poll(0x19)))

    def _left_once(self) -> int:
        """Exceptions of earlier sessions. An address or an echo is repeated for ever: once is enough."""
        kept: list[int] = []
        sure: list[int] = []
        for n, code in enumerate(self._memory.seen):
            if n in self._memory.sure:
                sure.append(len(kept))
            elif code in self._mine and kept[-1:] == [code] and len(kept) - 1 not in sure:
                continue
            kept.append(code)
        self._memory = replace(self._memory, seen=tuple(kept), sure=tuple(sure))
        return len(kept)

    def _left_behind(self, left: int) -> list[Event]:
        """Exceptions that were seen and not reported, the first `left` of them in interrupted sessions.

        The first one that the next session reads may be the last one of the session before, or a new equal one.
        """
        sure = self._memory.sure
        seen = self._take_seen()
        now = self._checksum_seen() and not self._strange
        events: list[Event] = []
        for n, code in enumerate(seen):
            known = n in sure or n >= left or (n == left - 1 and seen[left : left + 1] == (code,))
            if code in self._mine and not (now and known):
                if seen[n - 1 : n] != (code,) or n - 1 in sure:
                    events += self._doubt([code], _NOBODY)
            elif 0 < n <= left and code == seen[n - 1]:
                events += self._doubtful_again(code)
            else:
                events += self._exception(code)
        return events

    async def _rescue(self) -> None:
        """Read the exception that the machine may be repeating.

        A lost answer is requested again, because any other poll would make the machine discard it. A machine that was
        not polled for long answers only after it has received a poll to another address.
        """
        unanswered = 0
        while unanswered < TRIES:
            match await self._exchange(GeneralPoll(self._me)):
                case Happened(code) if self._nothing(code) or self._is_loop_break(code):
                    break
                case Happened(code) if self._twice(code):
                    self._believe(code)
                    return
                case Happened(code):
                    self._reading(code)
                case RealTime(_, code):
                    await self._see_in_real_time(code)
                    break
                case _:
                    unanswered += 1
        self._readings.clear()
        await self._nobody()

    async def _insist(self, command: int) -> Body | None:
        """The body of the answer to an R poll while the machine starts; None if there is none."""
        began = self._link.stamp().tick
        tries = 0
        while tries < TRIES:
            match await self._exchange(self._poll(command)):
                case Reply(_, _, body):
                    self._supported.add(command)
                    return body
                case Busy() if self._link.stamp().tick - began < BUSY_LIMIT:
                    pass
                case Unknown(_, heard) if heard == command:
                    return None
                case RealTime(_, code):
                    await self._see_in_real_time(code)
                    await self._nobody()
                    tries += self._link.stamp().tick - began >= BUSY_LIMIT
                case _:
                    tries += 1
                    await self._nobody()
        return None

    async def _find(self) -> None:
        """Find out whether a machine is there that answers no long poll. Raises LinkLost if not."""
        while len(self._harmless) < CLEAN:
            match await self._exchange(GeneralPoll(self._me)):
                case Happened(code) if code in NOTHING or code in self._mine:
                    await self._nobody()
                case Happened(code) if code in EXCEPTIONS and self._twice(code):
                    self._unresolved = True
                    return
                case Happened(code):
                    self._reading(code)
                case RealTime(_, code):
                    await self._see_in_real_time(code)
                    await self._nobody()
                    return
                case _:
                    pass

    async def _see_in_real_time(self, code: int) -> None:
        """Keep an exception of real-time mode during the start: any other poll makes the machine discard it."""
        self._memory = replace(self._memory, real_time=True)
        self._see(code)
        await self._keep()

    async def _nobody(self) -> None:
        """Acknowledge the last answer by a poll to an unused address."""
        await self._say(GeneralPoll(0))

    async def _say(self, poll: Poll) -> None:
        """Send a poll. The memory is committed first, because any poll may make the machine discard what it sent."""
        await self._keep()
        await self._link.write(encode(poll))

    # ---- one poll and its answer

    async def _exchange(self, poll: Poll) -> Answer | None:
        """The answer to `poll`, or None, in the next slot. Raises LinkLost after too long without a good one."""
        await self._until_slot(poll)
        self._decoder.expect(poll)
        await self._say(poll)
        self._wire = b""
        answers: list[Answer] = []
        patience = self._options.answer
        try:
            while not answers:
                async with asyncio.timeout(patience):
                    self._chunk = await self._link.read()
                self._wire += self._chunk.data
                answers = self._decoder.feed(self._chunk.data)
                patience = self._options.gap
        except TimeoutError:
            answers = self._decoder.quiet()
        answer = answers[0] if answers else None
        if answer is None and self._wire:
            answer = Garbage(self._wire)
        if isinstance(poll, LongPoll) and self._is_echo(encode(poll), answer):
            answer = Garbage(self._wire)
        asked = poll.command if isinstance(poll, LongPoll) else None
        if asked in SECRET or (isinstance(answer, Reply | Unknown) and answer.command in SECRET):
            self._wire = self._wire[:2]  # it goes into the journal
        self._judge(answer, asked)
        self._answer = answer
        return answer

    def _is_echo(self, sent: bytes, answer: Answer | None) -> bool:
        """Our poll came back, alone or before an answer. Raises DeviceRefused after three long polls in a row."""
        alone = self._wire == sent and sent[1] != 0x4C  # a machine without a validation id answers what was asked
        back = alone or (isinstance(answer, Garbage) and self._wire.startswith(sent + sent[:2]))
        self._echoes = self._echoes + 1 if back else 0
        if back:
            self._suspect_line()
        if self._echoes >= TRIES:
            raise DeviceRefused(
                "the line echoes: TX and RX are joined, or the adapter is half duplex and receives its own bytes; "
                "check the wires to the machine, or switch the adapter's echo off"
            )
        return back

    def _judge(self, answer: Answer | None, asked: int | None) -> None:
        """Note whether the machine answers and whether the line is good. `asked`: the command of the long poll."""
        now = self._link.stamp().tick
        self._wary = max(self._wary - 1, 0)
        match answer:
            case Happened(code) if code in (*self._readings[-1:], *list(self._harmless)[-1:]):  # one byte may be noise
                self._general = True
            case RealTime():
                self._general = False
            case _:
                pass
        self._checked = self._checked or isinstance(answer, Reply | Unknown | RealTime)
        match answer:
            case Reply() | Unknown() | Busy() | RealTime():
                self._alive = now
                self._damaged = 0
            case Happened(code) if code in NOTHING and (
                code not in self._mine or self._checksum_seen() or not self._unasked
            ):
                self._harmless.append(code)
                if len(self._harmless) == CLEAN:
                    self._alive = now
            case Garbage(raw) if raw != bytes((self._me,)):
                self._damaged += 1
                if not self._unreadable(asked):
                    self._wary = WARY
                self._harmless.clear()
            case Garbage():
                self._chirps += 1
                self._suspect_line()
                self._harmless.clear()
            case Happened(code) if self._is_loop_break(code) or (code == self._me and not self._checksum_seen()):
                self._chirps += 1
                self._harmless.clear()
            case _:
                self._harmless.clear()
        silence = max(self._options.silence, LEAST_SILENT_POLLS * self._options.interval)
        if now - self._alive >= silence:
            what = "no answer that can be read" if self._damaged else "no answer"
            chirps = (
                "; it sends loop breaks: it receives no polls, check the wire to it" if self._chirps >= TRIES else ""
            )
            raise LinkLost(f"{what} from machine {self._me} for {silence:g} s{chirps}")

    def _unreadable(self, asked: int | None) -> bool:
        """Whether the machine answers other polls and never this one readably: the line is not the cause."""
        if asked is None or asked in self._supported or not self._supported:
            return False
        self._garbled[asked] += 1
        return self._garbled[asked] > TRIES

    def _is_loop_break(self, code: int) -> bool:
        """Whether the code is the machine's own address and no exception: a machine without a host sends it."""
        return code == self._me and code not in EXCEPTIONS and code not in NOTHING

    def _checksum_seen(self) -> bool:
        """Whether an answer with a checksum has shown that the machine receives our polls.

        Otherwise a byte like its address may be a loop break indication, and one like our poll an echo.
        """
        return self._checked and not self._unheard

    def _nothing(self, code: int) -> bool:
        """Whether the answer means no exception. After damage it must be read twice, as a wrong bit can cause it."""
        return code in NOTHING and (self._readings[-1:] == [code] or not (self._readings or self._wary))

    def _twice(self, code: int) -> bool:
        """Whether the code was read twice in a row, after damage three times: a wrong bit may be repeated."""
        times = 2 if self._wary else 1
        return self._readings[-times:] == [code] * times

    def _reading(self, code: int) -> None:
        """Note one reading of a code, to be read again. A different answer to the same poll shows that the line is bad.

        Only the answer "no exception" proves nothing: a new exception may have occurred since.
        """
        if self._readings and self._readings[-1] != code and self._readings[-1] not in NOTHING:
            self._wary = WARY
        self._readings = [*self._readings[-7:], code]

    async def _until_slot(self, poll: Poll) -> None:
        """Wait for the next slot. Unexpected bytes answer nothing, but a lone address is a loop break indication.

        If an idle machine answers with the same byte, only the time distinguishes them: wait for it.
        """
        counted = isinstance(poll, GeneralPoll) and bool(self._harmless)
        alike = counted and self._me in NOTHING and not self._checksum_seen()
        interval = max(self._options.interval, CHIRPING) if alike else self._options.interval
        self._slot = max(self._slot + interval, self._link.stamp().tick)
        unasked = b""
        while (left := self._slot - self._link.stamp().tick) > 0:
            try:
                async with asyncio.timeout(left):
                    unasked += (await self._link.read()).data[:2]
            except TimeoutError:
                break
        self._unasked = set(unasked) == {self._me}
        if self._unasked:
            self._chirps += 1
            self._suspect_line()

    # ---- a turn is one poll

    async def _turn(self) -> None:
        self._plan()
        if not self._unresolved and not self._retrying and not self._memory.seen:
            await self._say_amounts()
        if not self._unresolved and (self._memory.seen or (self._queue and self._long_next)):
            self._long_next = False
            await self._ask()
        else:
            self._long_next = True
            await self._listen()
        events: list[Event] = []
        if self._damaged >= DAMAGED_LIMIT:
            events += self._faults.begin("sas.damaged")
        if self._unheard and isinstance(self._answer, Happened) and self._answer.code not in self._mine:
            events += self._faults.begin("sas.deaf")
        if self._link.stamp().tick - self._last_silent >= SILENT_BROADCAST:
            events += self._faults.end("sas.progressive_silent")
        events += self._stale_amounts()
        if self._options.feeds and self._options.games and 0x52 in self._unsupported:
            events += self._faults.begin("sas.bets_unknown", "it answers no poll for the meters of its games")
        await self._tell(events)

    def _plan(self) -> None:
        """Queue due polls: those required by an exception first, a progressive's own poll before the payment's."""
        now = self._link.stamp().tick
        if now >= self._forgive_due:
            self._forgive_due = now + ASK_SELDOM
            self._unsupported.clear()
        if now >= self._meters_due and not self._queue:
            self._meters_due = now + self._options.meters
            commands = self._meter_polls()
            if self._factor is None and now >= self._factor_due and not self._supported.isdisjoint(METERS):
                self._factor_wait = min(self._factor_wait * 2, ASK_SELDOM)
                self._factor_due = now + self._factor_wait
                commands.insert(0, 0x1F)
            if 0x4F not in self._unsupported and any(self._faults.is_open(code) for code in HOPPER):
                commands.append(0x4F)
            self._queue.extend(Work(self._poll(command)) for command in commands)
            if self._options.feeds and 0x52 not in self._unsupported:
                self._queue.extend(Work(game_poll(self._me, 0x52, game)) for game in self._options.games)
        self._plan_records(now)
        if (self._memory.real_time or self._memory.mute) and now >= self._mode_due:
            self._mode_due = now + DOUBT
            self._ask_once(0x0E)
        faulty = any(self._faults.is_open(code) for code in NO_PLAY)
        if not faulty:
            self._memory = replace(self._memory, was_closed=False)
        if not faulty and any(work.of_ours(0x01) for work in self._queue):
            self._retrying = self._retrying and not self._queue[0].of_ours(0x01)
            self._queue = deque(work for work in self._queue if not work.of_ours(0x01))
        if faulty and not self._memory.was_closed and self._options.close_faulty and now >= self._close_due:
            self._close_due = now + DOUBT
            if not any(work.poll.command == 0x01 for work in self._queue):
                self._queue.append(Work(LongPoll(self._me, 0x01)))
        if not self._retrying:
            waiting = {work.poll.command for work in self._queue}
            for command in sorted(self._memory.owed, key=(0x84, 0x1B, 0x85, 0x87).index):
                if command not in waiting:
                    self._queue.appendleft(Work(LongPoll(self._me, command)))

    def _plan_records(self, now: float) -> None:
        """A printed ticket at once, and the next of the slow readings."""
        if self._suspect is not None:
            return
        if self._memory.tickets and not self._queue and (poll := self._ticket_poll()) is not None:
            self._queue.append(Work(poll))
        if now >= self._record_due and not self._queue:
            if not self._round:
                self._round.extend(self._records())
            if self._round:
                self._queue.append(Work(self._round.popleft()))
            self._record_due = now + self._options.records / ROUND

    def _ticket_poll(self) -> LongPoll | None:
        """The poll for a printed ticket: the waiting record, or the last ticket of a machine without records."""
        standard = self._validation() == "standard" or 0x4D in self._unsupported
        if standard and 0x3D in self._unsupported:
            self._memory = replace(self._memory, tickets=False)
            return None
        if standard:
            return self._poll(0x3D)
        return LongPoll(self._me, 0x4D, b"\0" if self._memory.looked else b"\xff")

    def _records(self) -> list[LongPoll]:
        """The slow readings: what it is, bills, tickets, validations, enabled features."""
        command = next((one for one in (0x6F, 0xAF) if one not in self._unsupported), 0x2F)
        codes = meters_poll(self._me, command, CODES[:10] if command == 0x2F else CODES)
        some = [0x7E] * (not self._clock_told) + [0x21] * bool(self._options.signature_seed)
        polls = [self._poll(command) for command in (0x1F, 0xA0, 0x7B, 0x4C, *some)]
        polls += [codes, *(self._poll(command) for command in range(0x31, 0x38))]
        polls += [LongPoll(self._me, 0x50, bytes((kind,))) for kind in KINDS]
        return [poll for poll in polls if poll.command not in self._unsupported]

    def _meter_polls(self) -> list[int]:
        """The polls for meters, without those that the machine is known not to answer."""
        wanted = (0x19, 0x1C, 0x1A) if 0x0F in self._unsupported else (0x0F, 0x1C, 0x1A)
        return [command for command in wanted if command not in self._unsupported]

    async def _listen(self) -> None:
        """A general poll."""
        self._unresolved = True
        answer = await self._exchange(GeneralPoll(self._me))
        self._silent = self._silent + 1 if answer is None else 0
        match answer:
            case Happened(code) if self._nothing(code):
                said = [one for one in self._readings if one not in NOTHING]
                if len(set(said)) == 1 and said[0] in EXCEPTIONS:
                    await self._tell(self._doubt(said, "then nothing"))
                await self._tell(self._faults.end("sas.exceptions_lost"))
                self._memory = replace(self._memory, again=0, mute=self._memory.mute and not self._general)
                await self._heard()
            case Happened(code) if self._is_loop_break(code):
                pass
            case Happened(code) if self._twice(code):
                self._believe(code)
                if self._faults.is_open("sas.deaf") or not self._supported:
                    if code not in self._mine:
                        self._alive = self._link.stamp().tick
                    await self._report_unconfirmed()
                    await self._heard()
            case Happened(code):
                self._reading(code)
            case RealTime(_, code):
                await self._tell_in_real_time(code)
                await self._heard()
            case None if self._silent >= TRIES and self._checksum_seen() and not self._general:
                # In real-time mode it has no answer where nothing happened: only long polls show that it is there.
                self._silent = 0
                self._unresolved = False
                self._memory = replace(self._memory, mute=True)
                if not self._queue:
                    self._queue.append(self._proof())
            case _:
                pass

    async def _heard(self) -> None:
        """Let the machine continue: what it sent is durable, or was nothing."""
        self._readings.clear()
        self._unresolved = False
        await self._nobody()

    def _believe(self, code: int) -> None:
        """Keep an exception that was read twice, before the next long poll, whose answer confirms it."""
        self._see(code)
        self._believed = self._chunk
        self._readings.clear()
        self._unresolved = False

    def _see(self, code: int) -> None:
        """Add an exception to those to report. Without room the last entry reports an overflow of the queue.

        A line repeats an unconfirmed address or echo for ever: it is added once.
        """
        seen, proven = self._memory.seen, self._checksum_seen()
        if len(seen) < SEEN and (code not in self._mine or proven or seen[self._left :][-1:] != (code,)):
            sure = (*self._memory.sure, len(seen)) if proven else self._memory.sure
            self._memory = replace(self._memory, seen=(*seen, code if len(seen) < SEEN - 1 else LOST), sure=sure)

    def _take_seen(self) -> tuple[int, ...]:
        """Remove and return the exceptions that were seen."""
        seen, self._memory = self._memory.seen, replace(self._memory, seen=(), sure=())
        self._left = 0
        return seen

    def _suspect_line(self) -> None:
        """Handle a loop break indication or an echo: earlier readings may have been one, too."""
        self._strange = True
        self._memory = replace(self._memory, sure=())

    async def _report_confirmed(self) -> None:
        if seen := self._take_seen():
            at, self._believed = self._believed or self._link.stamp(), None
            events = [event for code in seen for event in self._exception(code)]
            await self._tell(events, Chunk(bytes(seen), at.at, at.tick))
            await self._keep()

    async def _report_unconfirmed(self) -> None:
        """Report possible addresses or echoes as doubtful, because no answer with a checksum came."""
        mine = [] if self._checksum_seen() else [code for code in self._memory.seen if code in self._mine]
        if mine:
            seen = self._take_seen()
            self._memory = replace(self._memory, seen=tuple(one for one in seen if one not in mine))
            await self._tell(self._doubt(mine, _NOBODY, once=True))
        await self._report_confirmed()

    async def _tell_in_real_time(self, code: int) -> None:
        """Report an exception of real-time mode: it has a checksum, and confirms what was sent before it."""
        await self._report_confirmed()
        self._memory = replace(self._memory, real_time=True)
        await self._tell(self._exception(code))
        await self._keep()

    async def _ask(self) -> None:
        """Send the next long poll: one that is known to be answered if an exception waits for confirmation."""
        first = self._queue[0].poll.command if self._queue else None
        # After the required polls: the next win would replace the one that they name.
        known = first in self._supported or first in self._memory.owed or not self._supported
        unproved = bool(self._memory.seen) and (first in self._unsupported or not known)
        unproved = unproved or (self._suspect is not None and first not in self._supported)
        if first is None or (unproved and not self._retrying):
            self._queue.appendleft(self._proof())
        work = self._queue[0]
        work.tries += 1
        answer = await self._exchange(work.poll)
        self._retrying = False
        match answer:
            case Busy():
                work.tries -= 1
                await self._report_confirmed()
                await self._busy()
            case RealTime(_, code):
                work.tries -= 1
                await self._tell_in_real_time(code)
                await self._nobody()
            case Reply(_, command, body):
                self._drop(work)
                self._supported.add(command)
                self._unsupported.discard(command)
                over = await self._proved_by(command)
                await self._tell([*over, *self._meant(work.poll, body)])
                work.settle(answer)
            case Unknown(_, command, data) if command == work.poll.command:
                self._drop(work)
                await self._tell([*await self._proved_by(command), *self._not_understood(command, data)])
                await self._unavailable(command)
                work.settle(answer)
            case Ack():
                self._drop(work)
                if work.poll.command == 0x01:
                    self._memory = replace(self._memory, was_closed=True)
                elif work.poll.command == 0x0E:
                    self._memory = replace(self._memory, real_time=False, mute=False)
                work.settle(answer)
            case Nack():
                self._drop(work)
                if work.poll.command not in {0x01, 0x50}:  # it is asked again; another kind of validation may be known
                    await self._unavailable(work.poll.command)
                work.settle(answer)
            case _ if work.tries >= TRIES:
                self._drop(work)
                await self._given_up(work.poll.command, ours=work.done is None)
                work.settle(None)
            case _:
                self._retrying = self._long_next = True

    async def _proved_by(self, command: int) -> list[Event]:
        """The events that an answer with a good checksum confirms: the machine receives our long polls."""
        if command != self._memory.unproved:  # the machine has the acknowledgement of its earlier answer
            self._memory = replace(self._memory, unproved=0)
        if self._suspect is not None and self._suspect != command:  # it answers this poll only
            self._unsupported.add(self._suspect)
        self._suspect = None
        self._unheard = False
        self._busy_since = None
        self._chirps = 0
        await self._report_confirmed()
        over = ["sas.busy", "sas.deaf", "sas.damaged"]
        if not self._general:  # in real-time mode a waiting exception would have come instead
            over.append("sas.exceptions_lost")
        return [*self._faults.end(*over)]

    def _proof(self) -> Work:
        """A poll that is known to be answered, if there is one."""
        if self._supported == {0xA0}:
            return Work(self._poll(0xA0))
        known = self._supported & {0x1F, 0x54, *METERS}  # other polls have effects, or carry more than an address
        return Work(LongPoll(self._me, 0x1A if 0x1A in known else min(known, default=0x1A)))

    def _drop(self, work: Work) -> None:
        """Remove a poll that was answered, given up, or is no longer wanted."""
        if work in self._queue:
            self._queue.remove(work)

    async def _given_up(self, command: int, *, ours: bool) -> None:
        """No good answer three times. Machines do not answer unsupported polls; nor does a broken line."""
        known = command in self._supported and command not in SECRET  # secret polls depend on the kind of validation
        was_answered = known or (not self._supported and bool(self._memory.meters))
        if was_answered and not self._damaged:
            self._unheard, self._suspect = True, None
        if self._memory.seen and self._damaged:
            await self._tell(self._doubt(self._take_seen(), "on a bad line"))
        else:
            self._memory = replace(self._memory, blind=self._memory.seen[-1] if self._memory.seen else 0)
            await self._report_unconfirmed()
        if not (self._damaged or was_answered):
            sure = not self._supported or self._unheard or self._faults.is_open("sas.deaf") or not ours
            await self._unavailable(command, silent=True, suspect=not sure)

    async def _unavailable(self, command: int, *, silent: bool = False, suspect: bool = False) -> None:
        """A poll without a result. An unanswered one (`silent`) is a `suspect` until another poll is answered."""
        if command == 0x87 and command in self._memory.owed:
            owed = tuple(0x85 if one == 0x87 else one for one in self._memory.owed)
            self._memory = replace(self._memory, owed=owed)
            await self._keep()
        elif command in self._memory.owed:
            self._no_longer_owed(command)
            self._keep_hits(self._memory.hits)
            await self._tell(self._not_described(command))
        elif suspect:
            self._suspect = command
        elif not silent:
            self._unsupported.add(command)

    async def _busy(self) -> None:
        now = self._link.stamp().tick
        self._busy_since = now if self._busy_since is None else self._busy_since
        if now - self._busy_since >= BUSY_LIMIT:
            await self._tell(self._faults.begin("sas.busy"))

    # ---- amounts

    async def _say_amounts(self) -> None:
        now = self._link.stamp().tick
        levels = {level: amount for level, amount in self._memory.levels.items() if not self._is_stale(level)}
        if levels and now >= self._broadcast_due:
            self._broadcast_due = now + self._options.broadcast
            await self._say(broadcast(self._options.group, levels))

    # ---- commands

    async def obey(self, command: Command) -> dict[str, Any]:
        """Execute it between two polls. Raises CommandRefused, CommandFailed."""
        if not self._online:
            raise CommandRefused("the machine is not online")
        match command:
            case EnableMachine(on):
                return await self._enable(on)
            case ReadMeters():
                return await self._figures()
            case ResetHandpay():
                return await self._reset_handpay()
            case ShowAmount(amount, level):
                return await self._show(level, amount)
            case Ask(what):
                return await self._tell_figure(what)
            case _:
                raise CommandRefused("this machine has no such command")

    async def _enable(self, on: bool) -> dict[str, Any]:
        if on and (wrong := [code for code in NO_PLAY if self._faults.is_open(code)]):
            raise CommandRefused(f"not while {', '.join(wrong)} is open: mend that first")
        match await self._wait(self._work(LongPoll(self._me, 0x02 if on else 0x01))):
            case Ack():
                return {"enabled": on}
            case _:
                raise CommandRefused("the machine refused")

    async def _figures(self) -> dict[str, Any]:
        if not (wanted := self._meter_polls()):
            raise CommandRefused("the machine answers no poll for its meters")
        works = [self._work(LongPoll(self._me, command)) for command in wanted]
        try:
            for work in works:
                await self._wait(work)
        finally:
            for work in works:
                self._drop(work)
        if self._doubt_back or self._memory.back:
            raise CommandFailed("a meter ran backwards: the figures may be wrong")
        await self._tell(self._faults.end("sas.bets_unknown"))
        return {"meters": {**self._memory.meters, **self._fresh}}

    async def _reset_handpay(self) -> dict[str, Any]:
        work = self._work(LongPoll(self._me, 0x94))
        match await self._wait(work):
            case Reply(body=HandpayReset(0)):
                return {"reset": True}
            case Reply(body=HandpayReset(2)) if work.tries > 1:
                raise CommandFailed("no handpay is pending now, but an answer was lost before: watch for jackpot.paid")
            case Reply(body=HandpayReset(2)):
                raise CommandRefused("no handpay is pending")
            case Reply():
                raise CommandRefused("the machine reports that it cannot reset the handpay now")
            case _:
                raise CommandRefused("the machine refused")

    async def _show(self, level: int, amount: int) -> dict[str, Any]:
        """Queue the amount for the next broadcast, which has no answer."""
        try:
            broadcast(self._options.group, {level: amount})
        except ValueError as error:
            raise CommandRefused(f"no broadcast can carry level {level}, {amount}: {error}") from error
        await self._tell(self._renew(level, amount))
        await self._keep()
        self._broadcast_due = self._link.stamp().tick
        return {"group": self._options.group, "level": level, "amount": amount}

    async def _tell_figure(self, what: str) -> dict[str, Any]:
        if what == "meters":
            return await self._figures()
        if what not in ASKABLE:
            raise CommandRefused(f"no figure {what!r}; known: {', '.join(ASKABLE)}")
        match await self._wait(self._work(self._poll(ASKABLE[what]))):
            case Reply(body=Identity(version, serial)):
                return {"sas": f"{version[:1]}.{version[1:]}", "serial": serial}
            case Reply(body=Bill(country, denomination, count)):
                return {"country": country, "denomination": denomination, "count": count}
            case Reply(body=Features(game, flags) as told):
                how = {"validation": told.validation, "redemption": told.redemption}
                return {"game": game, "flags": flags.hex(), **how}
            case Reply(body=ValidationStatus() | Clock() as told):
                return msgspec.structs.asdict(told)
            case Reply(body=GameInfo() as told):
                return {**msgspec.structs.asdict(told), "credit": DENOMINATIONS.get(told.denomination)}
            case Unknown(_, command, data):
                raise CommandFailed(f"the answer to poll {command:02X} cannot be decoded: {data[:32].hex(' ')}")
            case _:
                raise CommandRefused("the machine refused")

    def _work(self, poll: LongPoll) -> Work:
        if len(self._queue) >= QUEUED:
            raise CommandRefused("too many commands wait already")
        work = Work(poll, asyncio.get_running_loop().create_future())
        self._queue.append(work)
        return work

    async def _wait(self, work: Work) -> Answer:
        assert work.done is not None
        try:
            async with asyncio.timeout(COMMAND_LIMIT):
                answer = await work.done
        except TimeoutError:
            busy = f"the machine was busy for {COMMAND_LIMIT:g} s"
            if work.tries:
                lost = "an earlier try was not answered: it is unknown whether it was done"
                raise CommandFailed(f"{busy}, and {lost}") from None
            raise CommandFailed(f"{busy}: nothing was done") from None
        finally:
            self._drop(work)
        if answer is None:
            raise CommandFailed("the machine did not answer: it is unknown whether it was done")
        return answer

    # ---- reporting

    async def _tell(self, events: Sequence[Event], chunk: Chunk | None = None) -> None:
        """Durable when it returns, with the memory."""
        if events:
            seen = chunk or (self._chunk if self._wire else self._link.stamp())
            wire = seen.data if chunk is not None else self._wire
            await self._commit([Sighting(event, wire, seen) for event in events])

    async def _keep(self) -> None:
        """Durable when it returns, if the memory changed."""
        if replace(self._memory, standing=self._faults.standing) != self._kept:
            await self._commit([])

    async def _commit(self, sightings: Sequence[Sighting]) -> None:
        memory = self._memory = replace(self._memory, standing=self._faults.standing)
        await self._emit(sightings, msgspec.json.encode(memory))
        self._kept = memory
