"""Driver for the dice recogniser (IDP) over MQTT: it reads the dice when it is asked.

The command `read-dice` asks; the dealer or the game's controller sends it when the dice lie still.
An answer counts if it names the open request, has no error and holds exactly `dice` faces. Anything else is a fault and
never a reading. An answer to an earlier request is dropped and reported (idp.late), because this service is known for
late answers of the last round. The number of a request is the command's `round` and the time of asking; all attempts of
one request share it, so that the service does not treat the second attempt as a new round with unmoved dice. Only
after an unreadable message the request takes another number.

An attempt without a result, or without any answer in `timeout` seconds, is repeated up to `attempts` times in all. Then
the request ends with the service's own `timeout` message, and a person decides. "The dice did not move" is an answer
(idp.no_shake) and is not repeated. A second, different reading of one request is reported as a reading, too, with the
fault idp.contradiction: the round is then in doubt. This applies for `timeout` seconds and until the next request;
later it is a late answer.

The service sends nothing without a request, so a pause is normal. It is online when its topics are, and a request
without an answer is a fault. It keeps no history, so nothing can be missed between requests: it comes online as
continuous unless a request was open when the last session ended.

From public code: the messages, 5 s, three attempts, the two steps of "no shake". Our assumptions: that a round's number
may be any text; and, therefore options: the pause before the next attempt; the address of the video stream; another
number of dice than three.
"""

import asyncio
import contextlib
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from drivers.driver import Chunk, CommandFailed, CommandRefused, Emit, Evidence, Link, LinkLost, Sighting, WireDecoder
from drivers.faults import Fault, Faults, Standing
from protocols.contract.commands import Command, ReadDice
from protocols.contract.events import DeviceOnline, DiceRead, Event, Told
from protocols.idp_dice import DICE, NO_SHAKE, Decoder, Detect, Garbage, Other, Result, Stop, encode

MODEL = "IDP dice"

NO_RESULT = Fault(
    "idp.no_result",
    "the recogniser does not detect all dice",
    "check whether a die lies on another, leans or is out of the picture; clean the dome and the camera",
    "by itself",
    "the dice are read again; after the last attempt a person decides",
)
TIMEOUT = Fault(
    "idp.timeout",
    "the recogniser did not answer in time",
    "check that the recogniser and the camera are on and that the recogniser is connected to the broker",
    "by itself",
    "the dice are read again; after the last attempt a person decides",
)
FAILED = Fault(
    "idp.failed",
    "the dice could not be read",
    "look at the dice; shake again, or declare the round void",
    "by a person",
    "waits for a person: another reading, dice entered by hand, or a void",
    "error",
)
UNMOVED = Fault(
    "idp.no_shake",
    "the recogniser reports that the dice did not move since the last round",
    "shake the dice; if they did move, check whether the camera's picture is frozen",
    "by itself",
    "no reading: shake again, or declare the round void",
)
LATE = Fault(
    "idp.late",
    "an answer arrived after its request had ended; it was dropped",
    "nothing for the round; if it happens often, check whether the recogniser's computer or the network is too slow",
    "by itself",
    "counts: the dropped answer was not used",
)
UNREADABLE = Fault(
    "idp.unreadable",
    "the recogniser sent a message that is not an answer",
    "check whether another program publishes on the recogniser's topic; if not, restart the recogniser",
    "by itself",
    "the dice are read again if no answer comes",
)
CONTRADICTION = Fault(
    "idp.contradiction",
    "the recogniser gave two different readings of the same dice",
    "look at the dice; if the first reading is right, pay by it; else declare the round void",
    "by itself",
    "suspended until a person decides",
    "error",
)

_Outcome: TypeAlias = tuple[int, ...] | Literal["no result", "no shake", "lost"]
FLOOD = 1.0  # seconds within which unexpected messages of one kind are reported once


class DiceOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`input`: the video stream as the recogniser reaches it. `output`: the destination of its picture, empty for none.

    `timeout`: seconds for one attempt; `attempts` in all; `pause`: seconds before the next. `dice`: how many there are.
    """

    input: Annotated[str, Meta(min_length=1, max_length=1000)] = "rtsp://127.0.0.1/dice"
    output: Annotated[str, Meta(max_length=1000)] = ""
    timeout: Annotated[float, Meta(ge=0.5, le=60)] = 5.0
    attempts: Annotated[int, Meta(ge=1, le=10)] = 3
    pause: Annotated[float, Meta(ge=0, le=10)] = 0.5
    dice: Annotated[int, Meta(ge=1, le=8)] = DICE


class Memory(Struct, frozen=True):
    """What survives the session: the faults, and whether a request is open."""

    standing: Standing = Standing()
    open: bool = False


class _Request:
    """The open request. `answered`: the current attempt has its answer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._renewals = 0
        self.number = name
        self.answered = False
        self._outcomes: asyncio.Queue[_Outcome] = asyncio.Queue()

    def renew(self) -> None:
        """Take another number, so that a late answer to the attempt before cannot count for this one."""
        self._renewals += 1
        self.number = f"{self._name}-{self._renewals}"

    def end(self, outcome: _Outcome) -> None:
        self.answered = True
        self._outcomes.put_nowait(outcome)

    async def outcome(self, within: float) -> _Outcome | None:
        """The outcome; None if nothing arrives in `within` seconds."""
        try:
            async with asyncio.timeout(within):
                return await self._outcomes.get()
        except TimeoutError:
            return None


class IdpDice:
    """The driver."""

    name: ClassVar[str] = "idp_dice"
    title: ClassVar[str] = "IDP dice recogniser, MQTT"
    icon: ClassVar[str] = "dice-reader"
    decoder: ClassVar[WireDecoder | None] = Decoder
    emits: ClassVar[tuple[Told, ...]] = (DiceRead,)
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    Options: ClassVar[type[DiceOptions]] = DiceOptions
    faults: ClassVar[tuple[Fault, ...]] = (NO_RESULT, TIMEOUT, FAILED, UNMOVED, LATE, UNREADABLE, CONTRADICTION)
    commands: ClassVar[tuple[type[Command], ...]] = (ReadDice,)
    tells_cards: ClassVar[bool] = False

    def __init__(self, options: DiceOptions, memory: bytes | None = None) -> None:
        self._options = options
        kept = Memory()
        if memory is not None:
            with contextlib.suppress(msgspec.DecodeError):  # memory of another version
                kept = msgspec.json.decode(memory, type=Memory)
        self._faults = Faults(self.faults, kept.standing)
        self._was_open = kept.open
        self._link: Link | None = None
        self._emit: Emit | None = None
        self._turn = asyncio.Lock()  # two tasks report answers and time limits: one at a time
        self._request: _Request | None = None
        self._last: tuple[str, tuple[int, ...], float] | None = None  # the last reading: request, faces, second
        self._told: dict[str, float] = {}  # when each unexpected message was last reported

    # ---- incoming messages

    async def run(self, link: Link, emit: Emit) -> None:
        """Come online at once, then report answers."""
        decoder = Decoder()
        self._emit = emit
        await self._tell(Sighting(DeviceOnline(not self._was_open, MODEL), b"", link.stamp()))
        self._link = link
        try:
            while True:
                chunk = await link.read()
                for message in decoder.feed(chunk.data):
                    match message:
                        case Result():
                            await self._answer(message, chunk)
                        case Garbage(raw) | Other(raw):
                            if self._request is not None:
                                self._request.renew()
                            await self._tell(*_seen(self._unasked(UNREADABLE, "", chunk.tick), raw, chunk))
                        case _:
                            pass  # a request of another program on this topic
        finally:
            self._link = None
            if self._request is not None:
                self._request.end("lost")

    async def _answer(self, result: Result, chunk: Chunk) -> None:
        """One answer, to any request."""
        request = self._request
        if request is None or request.number != result.round_id:
            await self._tell(*_seen(self._late(result, chunk.tick), result.raw, chunk))
            return
        outcome: _Outcome
        events: list[Event]
        if (faces := result.reading(self._options.dice)) is not None:
            outcome = faces
            self._request = None  # any later answer is a second one
            self._last = result.round_id, outcome, chunk.tick
            events = [DiceRead(outcome), *self._faults.end(*(fault.code for fault in self.faults))]
            self._faults.good_cycle()
        elif result.err == NO_SHAKE:
            outcome = "no shake"
            self._request = None
            self._last = None
            events = [*self._faults.strike(UNMOVED.code)]
        elif request.answered:
            return  # the same answer again
        else:
            outcome = "no result"
            said = "" if result.res is None else f", res {list(result.res[:8])}"
            events = [*self._faults.strike(NO_RESULT.code, f"err {result.err}{said}")]
        request.answered = True
        await self._tell(*_seen(events, result.raw, chunk))
        request.end(outcome)

    def _late(self, result: Result, tick: float) -> list[Event]:
        """An answer to a closed request, or to none of ours."""
        if self._request is None and self._last is not None and self._last[0] == result.round_id:
            _, faces, read = self._last
            if tick - read <= self._options.timeout:
                other = result.reading(self._options.dice)
                if other is None or other == faces:
                    return []  # the answer to an attempt before, or the same once more
                return [DiceRead(other), *self._faults.strike(CONTRADICTION.code, f"{faces}, {other}")]
        return self._unasked(LATE, f"request {result.round_id[:80]!r}", tick)

    def _unasked(self, fault: Fault, detail: str, tick: float) -> list[Event]:
        """Limits reports of unexpected messages, which may arrive in floods."""
        if self._faults.is_open(fault.code) and tick - self._told.get(fault.code, float("-inf")) < FLOOD:
            return []
        self._told[fault.code] = tick
        return [*self._faults.strike(fault.code, detail)]

    async def _tell(self, *sightings: Sighting) -> None:
        """Commit the sightings with the present memory."""
        async with self._turn:
            assert self._emit is not None
            memory = Memory(self._faults.standing, self._request is not None)
            await self._emit(sightings, msgspec.json.encode(memory))

    # ---- commands

    async def obey(self, command: Command) -> dict[str, Any]:
        """Read the dice; returns {"faces": […]}. It takes at most `attempts` times `timeout` and `pause`."""
        assert isinstance(command, ReadDice)
        link = self._link
        if link is None:
            raise CommandRefused("the recogniser is not connected")
        if self._request is not None:
            raise CommandRefused("a reading is under way")
        instant = f"{link.stamp().at:%Y%m%d%H%M%S%f}"
        request = self._request = _Request(f"{command.round}-{instant}" if command.round else instant)
        try:
            await self._tell()
            return await self._ask(link, request)
        except LinkLost as error:
            raise CommandFailed(f"the connection to the recogniser was lost: {error}") from error
        finally:
            if self._request is request:  # given up
                self._request = None
                if self._link is not None:
                    with contextlib.suppress(LinkLost):
                        await link.write(encode(Stop()))
                    await self._tell()

    async def _ask(self, link: Link, request: _Request) -> dict[str, Any]:
        options = self._options
        for attempt in range(1, options.attempts + 1):
            outcome = await request.outcome(options.pause) if attempt > 1 else None
            if outcome in {None, "no result"}:
                request.answered = False
                await link.write(encode(Detect(request.number, options.input, options.output)))
                outcome = await request.outcome(options.timeout)
            match outcome:
                case None:
                    await self._tell(*_seen(self._faults.strike(TIMEOUT.code), b"", link.stamp()))
                case "no result":
                    pass
                case "no shake":
                    raise CommandFailed(f"{UNMOVED.text}: shake again")
                case "lost":
                    raise CommandFailed("the connection to the recogniser was lost in the middle: nothing was read")
                case faces:
                    return {"faces": list(faces)}
        failed = self._faults.strike(FAILED.code, f"{options.attempts} attempts")
        await self._tell(*_seen(failed, b"", link.stamp()))
        raise CommandFailed(f"{FAILED.text} in {options.attempts} attempts: {FAILED.remedy}")


def _seen(events: list[Any], raw: bytes, chunk: Chunk) -> list[Sighting]:
    return [Sighting(event, raw, chunk) for event in events]
