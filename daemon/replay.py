"""Gaps and how they close: whoever reads finds them by seq, whoever wrote answers from its journal.

The same for the events of an edge (`cmd/replay`) and for what the rules made of them (`round/cmd/replay`): nothing that
a broker forgot, or that was published while nobody listened, is lost to a reader.
"""

from collections.abc import Callable
from typing import Annotated, Generic, Protocol, TypeVar

import msgspec
import structlog
from msgspec import Meta, Struct

from daemon.journal import Journal, Row
from daemon.mqtt import UNREADABLE, Message, Session

__all__ = ["BUFFER", "PAGE", "Answer", "Request", "Stream", "answer", "ask"]

BUFFER = 2000
PAGE = 500

# What JSON and SQLite can both hold; a larger number is a mistake.
_Number = Annotated[int, Meta(ge=-(2**53), le=2**53)]


class Numbered(Protocol):
    """Anything with a seq."""

    @property
    def seq(self) -> int:
        """Gapless, from 1."""
        ...


T = TypeVar("T", bound=Numbered)


class Stream(Generic[T]):
    """What one journal says of one table: each once, in order, whatever way it comes."""

    def __init__(self, expected: int = 1) -> None:
        """`expected` is the next seq."""
        self.expected = expected
        self._early: dict[int, T] = {}
        self.asked_at = float("-inf")

    def take(self, item: T) -> list[T]:
        """What may be used now, in order. A duplicate gives nothing; an early one waits, as far as there is room."""
        if item.seq < self.expected:
            return []
        if item.seq > self.expected:
            if len(self._early) >= BUFFER and item.seq not in self._early:
                last = max(self._early)
                if item.seq > last:
                    return []
                del self._early[last]
            self._early[item.seq] = item
            return []
        ready = [item]
        self.expected += 1
        while (following := self._early.pop(self.expected, None)) is not None:
            ready.append(following)
            self.expected += 1
        return ready

    @property
    def gap(self) -> tuple[int, int] | None:
        """First and last seq missing before what waits."""
        return (self.expected, min(self._early) - 1) if self._early else None


class Request(Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """From one seq to another, or to the newest; of one writer (`edge`), or of all."""

    first: _Number
    last: _Number | None = None
    edge: str = ""


class Answer(Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """What was published again, and the newest there is."""

    edge: str
    journal: str
    first: int
    last: int
    newest: int


async def ask(session: Session, topic: str, writer: str, first: int, last: int | None = None) -> None:
    """Ask for a gap under `topic` (…/cmd/replay). Raises BrokerLost."""
    await session.publish(topic, msgspec.json.encode(Request(first, last, writer)))


async def answer(
    session: Session,
    message: Message,
    writer: str,
    journal: Journal,
    message_of: Callable[[Row, bool], tuple[str, bytes]],
    log: structlog.typing.FilteringBoundLogger,
) -> None:
    """Publish again what `message` asks for, at most PAGE, and then say what that was. Raises BrokerLost."""
    table = message.topic.split("/")[4]
    try:
        request = msgspec.json.decode(message.payload, type=Request)
    except UNREADABLE as error:
        log.warning("command.refused", topic=message.topic, reason=str(error))
        return
    if request.edge not in ("", writer):
        return
    newest = journal.last(table)
    first = max(request.first, 1)
    last = min(newest if request.last is None else request.last, first + PAGE - 1, newest)
    for row in journal.range(table, first, last):
        await session.publish(*message_of(row, True))
    said = Answer(writer, journal.name, first, last, newest)
    await session.publish(message.topic + "/result", msgspec.json.encode(said))
