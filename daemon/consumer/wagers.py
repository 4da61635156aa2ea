"""Answers to betting terminals: the decision of the rules about the event of a terminal's request.

The consumer has one `AnswerDesk`. An answer is derived from the state before and after the event and from the verdicts,
so the verdicts themselves do not change. The last answers of each table are stored with the offset before they are
sent, and a request that is repeated gets its answer again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daemon.broker.session import UNREADABLE, Message, Session
from daemon.journal.store import Journal
from daemon.words import words
from protocols.contract.events import PlayerActed, WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import Reason, say
from protocols.contract.results import Corrected, Irregularity, Noted, Resolved, Suspended, Verdict, Voided
from protocols.contract.topics import Envelope, table_topic
from protocols.contract.wagers import Act, PlaceWager, Unreadable, WagerAnswer, WagerRequest, decode_request, encode
from rules.engine.rounds import Round
from rules.engine.ruleset import Wager

__all__ = ["KEY", "AnswerDesk", "WagerAnswers", "answer_to"]

KEY: Final = "wager/"
KEPT: Final = 512
"""Answers of a table that are kept."""
MOST_UNSENT: Final = 1000
"""Answers that wait for the broker. A dropped one is sent when its request is repeated."""
DEEPEST: Final = 6
PLACEHOLDER: Final = "event"


def answer_to(
    envelope: Envelope, before: object, after: object, verdicts: tuple[Verdict, ...], round_: str = ""
) -> WagerAnswer | None:
    """The answer to the request behind an event; None for one without a request. `round_`: from the present view.

    A bet is accepted if its amount changed as requested, a decision if a round rests on it. Either may be accepted
    with a reason: something about it was irregular.
    """
    event = envelope.event
    if not isinstance(event, WagerPlaced | WagerWithdrawn | PlayerActed) or not event.request:
        return None
    note = _note(envelope.id, after, verdicts)
    in_order = note is None and not event.overtaken  # the rules only note a late event
    moved = not isinstance(event, PlayerActed) and _is_taken(event, before, after)
    if moved or ((in_order or isinstance(event, PlayerActed)) and _is_evidence(envelope.id, after, verdicts)):
        return WagerAnswer(event.request, event.terminal, "accepted", *_reason(note), envelope.id, round_)
    note = note or Irregularity("bet_not_counted", say("bet_not_counted"), "-", envelope.id)
    return WagerAnswer(event.request, event.terminal, "refused", *_reason(note), envelope.id)


def _reason(note: Irregularity | None) -> tuple[str, Reason | None, str, str]:
    """Code, reason, text and law."""
    if note is None:
        return "", None, "", ""
    return note.code, note.reason, words.noted("en", note), "" if note.law == "-" else note.law


def _note(event: str, state: object, verdicts: tuple[Verdict, ...]) -> Irregularity | None:
    """The first irregularity that the event showed."""
    for verdict in verdicts:
        match verdict:
            case Noted(irregularity) if irregularity.event == event:
                return irregularity
            case Resolved(result) | Voided(result) | Corrected(result):
                for one in result.irregularities:
                    if one.event == event:
                        return one
            case _:
                pass
    notes = (one for round_ in _rounds(state) for one in round_.irregularities if one.event == event)
    return next(notes, None)


def _is_evidence(event: str, state: object, verdicts: tuple[Verdict, ...]) -> bool:
    """Whether a round rests on the event and does not wait because of it."""
    doubted = any(isinstance(one, Suspended) for one in verdicts)
    return not doubted and any(event in round_.evidence for round_ in _rounds(state))


def _is_taken(event: WagerPlaced | WagerWithdrawn, before: object, after: object) -> bool:
    """Whether the bet's amount is larger than before, or smaller where it was taken back."""
    place = event.seat, event.bet
    if isinstance(event, WagerPlaced):
        return _held(after)[place] > _held(before)[place]
    return _held(after, refused=True)[place] < _held(before, refused=True)[place]


def _held(state: object, *, refused: bool = False) -> Counter[tuple[int, str]]:
    """The amounts in a state by seat and bet. `refused`: with the chips beside the bets, which were refused."""
    amounts: Counter[tuple[int, str]] = Counter()
    for struct in _structs(state, DEEPEST):
        for name in _fields(type(struct))[1]:
            if refused or name != "refused":
                for one in getattr(struct, name):
                    amounts[one.seat, one.bet] += one.amount
    return amounts


def _rounds(state: object) -> Iterator[Round]:
    return (struct for struct in _structs(state, DEEPEST) if isinstance(struct, Round))


def _structs(value: object, deep: int) -> Iterator[Struct]:
    """A state and the structs that are its fields, their fields, and so on."""
    if isinstance(value, Struct) and deep:
        yield value
        for name in _fields(type(value))[0]:
            yield from _structs(getattr(value, name), deep - 1)


@lru_cache(256)
def _fields(kind: type[Struct]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a struct that may be structs, and those that are wagers."""
    fields = msgspec.structs.fields(kind)
    structs = tuple(one.name for one in fields if _may_be_struct(one.type))
    return structs, tuple(one.name for one in fields if get_origin(one.type) is tuple and Wager in get_args(one.type))


def _may_be_struct(hint: Any) -> bool:
    """Whether an annotation can be a struct; a type variable can."""
    if get_origin(hint) in (Union, UnionType, Annotated):
        return any(map(_may_be_struct, get_args(hint)))
    kind = get_origin(hint) or hint
    return isinstance(kind, TypeVar) or (isinstance(kind, type) and issubclass(kind, Struct))


class _Record(Struct, frozen=True):
    """An answer as it is stored, with its request."""

    number: int
    place: bool
    seat: int
    bet: str
    amount: int
    answer: WagerAnswer
    round: str = ""


class WagerAnswers:
    """The last answers of one table.

    If all places are taken, the terminal with the most answers loses its oldest, so that a busy terminal displaces no
    other's answer.
    """

    def __init__(self, table: str, stored: Mapping[str, bytes]) -> None:
        """`stored`: what the last process stored under KEY of this table."""
        self._table = table
        self._records: dict[tuple[str, str], _Record] = {}
        self._places: dict[tuple[str, str], int] = {}
        records = []
        for key, value in stored.items():
            try:
                records.append((msgspec.json.decode(value, type=_Record), int(key.rpartition("/")[2])))
            except UNREADABLE:  # an answer of another version, whose request has expired
                continue
        for record, place in sorted(records, key=lambda one: one[0].number):
            self._put(record, place)
        taken = set(self._places.values())
        self._free = [place for place in reversed(range(KEPT)) if place not in taken]
        self._number = max((record.number for record, _ in records), default=0)

    def put(self, event: WagerPlaced | WagerWithdrawn | PlayerActed, answer: WagerAnswer) -> tuple[str, bytes]:
        """Keep an answer; returns the key and the value to store."""
        self._number += 1
        is_placed, bet = isinstance(event, WagerPlaced), event.action if isinstance(event, PlayerActed) else event.bet
        record = _Record(self._number, is_placed, event.seat, bet, event.amount, answer, event.round)
        place = self._place_for((answer.terminal, answer.id))
        self._put(record, place)
        return f"{KEY}{self._table}/{place}", msgspec.json.encode(record)

    def _put(self, record: _Record, place: int) -> None:
        key = record.answer.terminal, record.answer.id
        self._records.pop(key, None)  # the newest is the last one
        self._records[key], self._places[key] = record, place

    def _place_for(self, key: tuple[str, str]) -> int:
        if key in self._places:
            return self._places[key]
        if self._free:
            return self._free.pop()
        held = Counter(terminal for terminal, _ in self._records)
        most = max(held.values())
        asking = key[0]
        loser = asking if held[asking] == most else next(name for name in held if held[name] == most)
        oldest = next(one for one in self._records if one[0] == loser)
        del self._records[oldest]
        return self._places.pop(oldest)

    def again(self, request: WagerRequest) -> WagerAnswer | None:
        """The answer to a repeated request; None if it is unknown, or the request differs."""
        record = self._records.get((request.terminal, request.id))
        if record is None:
            return None
        bet = request.act if isinstance(request, Act) else request.bet
        asked = isinstance(request, PlaceWager), request.seat, bet, request.amount, request.round
        answered = record.place, record.seat, record.bet, record.amount, record.round
        return record.answer if asked == answered else None


class AnswerDesk:
    """Decides, keeps and sends the answers of one consumer."""

    def __init__(self, site: str, tables: Iterable[str], journal: Journal) -> None:
        """Continue with the answers that the last process stored."""
        self._site = site
        self._tables = {name: WagerAnswers(name, journal.memories(f"{KEY}{name}/")) for name in tables}
        self._decided: list[tuple[str, WagerAnswer]] = []
        self.undelivered: list[tuple[str, WagerAnswer]] = []
        """Answers that are sent when their decisions are durable."""
        self._unsent: dict[tuple[str, str, str], WagerAnswer] = {}
        self._news = asyncio.Event()
        self.speaks: Callable[[str], bool] = lambda _table: True
        """Whether these rules answer at a table: of several processes only the first one answers, and all store
        the answers.
        """

    def answer_dealer(
        self, table: str, envelope: Envelope, before: object, after: object, verdicts: tuple[Verdict, ...]
    ) -> None:
        """Report the refusal of a bet without a request, from a console or a sensor, under the id of its event.

        It is published once and not stored: the round's result contains the irregularity.
        """
        event = envelope.event
        if envelope.replay or not isinstance(event, WagerPlaced | WagerWithdrawn):
            return
        if _note(envelope.id, after, verdicts) is None:  # cheaper than comparing wagers
            return
        named = replace(event, request=PLACEHOLDER, terminal=envelope.device)
        answer = answer_to(replace(envelope, event=named), before, after, verdicts)
        if answer is not None and answer.status == "refused":
            self.undelivered.append((table, replace(answer, id=envelope.id)))

    @property
    def waits(self) -> bool:
        """Whether answers wait for the commit of their events."""
        return bool(self._decided)

    def decide(
        self, table: str, envelope: Envelope, before: object, after: object, verdicts: tuple[Verdict, ...], round_: str
    ) -> dict[str, bytes]:
        """Keep the answer to an event until `release`; returns the values to store."""
        event, answer = envelope.event, answer_to(envelope, before, after, verdicts, round_)
        if answer is None or not isinstance(event, WagerPlaced | WagerWithdrawn | PlayerActed):
            return {}
        self._decided.append((table, answer))
        self.undelivered.append((table, answer))
        key, value = self._tables[table].put(event, answer)
        return {key: value}

    def release(self) -> None:
        """Send all decided answers, which are durable now."""
        undelivered, self._decided, self.undelivered = self.undelivered, [], []
        for table, answer in undelivered:
            self._offer(table, answer)

    def received(self, table: str, message: Message) -> None:
        """Handle a request. The edge journals a new one; the answer to a decided one is sent again."""
        request = decode_request(message.payload)
        if table not in self._tables or message.retain or isinstance(request, Unreadable):
            return
        if request.terminal != message.topic.rpartition("/")[2]:  # in another terminal's name: the edge refuses it
            return
        if (answer := self._tables[table].again(request)) is not None:
            self._offer(table, answer)

    def _offer(self, table: str, answer: WagerAnswer) -> None:
        """Queue an answer, once. While the broker is unreachable, the newest are kept."""
        self._unsent[table, answer.terminal, answer.id] = answer
        while len(self._unsent) > MOST_UNSENT:
            del self._unsent[next(iter(self._unsent))]
        self._news.set()

    async def send(self, session: Session) -> None:
        """Send answers until cancelled. Raises BrokerLost."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._unsent:
                key, answer = next(iter(self._unsent.items()))
                topic = table_topic(self._site, key[0], f"wager/{answer.terminal}/result")
                if self.speaks(key[0]):
                    await session.publish(topic, encode(answer))
                self._unsent.pop(key, None)
