"""What every game must hold, whatever it is: each joins from the registry with its default options.

The events are all of the vocabulary, made from its own types, so that a new event type joins too. Random events alone
seldom finish a round: whole rounds are mixed in, cut short, doubled and interrupted.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

import msgspec
import pytest
from helpers import MACHINES, START, at_length, script
from hypothesis import given, note, settings, strategies as st
from msgspec import inspect
from msgspec.structs import replace

from protocols.contract.events import (
    ASIDE,
    EVENT_TYPES,
    MOST,
    BallLanded,
    BallLaunched,
    BallSettling,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    CardDrawn,
    CardExposed,
    DealCorrected,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceThrown,
    DiceUncovered,
    Event,
    HandDispensed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatOpened,
    ShoeStarted,
    SpinMissed,
    SpinStarted,
    WagerPlaced,
    decode_data,
    encode_data,
    type_of,
)
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules import RULESETS
from rules.engine.ruleset import (
    BadOption,
    Closed,
    Corrected,
    Noted,
    Opened,
    Resolved,
    Result,
    Ruleset,
    Suspended,
    Verdict,
    Voided,
    judge,
    options_from,
    options_of,
)

Game: TypeAlias = Ruleset[Any]

every_game = pytest.mark.parametrize("name", sorted(RULESETS))
every_table = pytest.mark.parametrize("name", sorted(set(RULESETS) - {MACHINES}))


@cache
def game(name: str) -> Game:
    """The ruleset with its default options; it holds no state of a table."""
    return RULESETS[name](RULESETS[name].Options())


@cache
def made_again(name: str) -> Game:
    """Another instance of it."""
    return RULESETS[name](RULESETS[name].Options())


# ---- events of every type, from the types themselves

BETS = (
    *("small", "big", "single:3", "triple:6", "any_triple", "total:9", "even", "odd", "double:2", "two_dice:1-2"),
    *("straight:17", "split:1-2", "red", "black", "dozen:1", "column:3", "figure:fish", "fan:1", "nim:1-2", "kuoc:1-2"),
    *("player", "banker", "tie", "main", "ante", "insurance", "pass", "dont_pass", "come", "place:6", "field", "aces"),
)
WORDS = st.sampled_from((*BETS, "", "no such thing", "é零"))


def values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Any value that the annotation allows."""
    match kind:
        case inspect.Metadata(type=described):
            return values(described)
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=ge, gt=gt, le=le):
            low = ge if ge is not None else gt + 1 if gt is not None else -3
            return st.integers(low, low + 6 if le is None else min(le, low + 6)) | st.integers(low, le)
        case inspect.StrType(pattern=None, min_length=least):
            return WORDS.filter(bool) if least else WORDS
        case inspect.StrType(pattern=str(pattern)):
            return st.from_regex(pattern.replace("$", r"\Z"))
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values=choices):
            return st.sampled_from(choices)
        case inspect.UnionType(types=types):
            return st.one_of(*(values(one) for one in types))
        case inspect.VarTupleType(item_type=item):
            return st.lists(values(item), max_size=6).map(tuple)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(values(key), values(value), max_size=3)
        case inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: values(field.type) for field in fields})
        case _:
            raise AssertionError(f"no values for {kind}")


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    """Any event of this type that the wire could carry."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    fields = {field.name: values(field.type) for field in described.fields}
    return st.builds(kind, **fields | {"overtaken": st.sampled_from((*[0] * 9, 250))})


ANY_EVENT = st.one_of(*(events_of(kind) for kind in EVENT_TYPES.values()))

# Whole rounds: a game ignores or notes the others'.
ROUNDS: list[list[Event]] = [
    [
        *(DiceCovered(), DiceAgitated("lever", 3), BetsOpened(), WagerPlaced(1, "small", 100)),
        *(WagerPlaced(2, "single:3", 7), WagerPlaced(2, "big", 30), BetsClosed(), DiceUncovered()),
        *(DiceRead((1, 3, 3)), RoundPaid()),
    ],
    [
        *(DiceCovered(), DiceAgitated("lever", 3), BetsOpened(), WagerPlaced(1, "small", 100)),
        *(BetsClosed(), DiceUncovered(), DiceRead((1, 3, 3), stacked=1)),
    ],
    [
        *(SpinStarted(7), BetsOpened(), WagerPlaced(1, "red", 100), WagerPlaced(2, "straight:17", 5)),
        *(BetsClosed(), BallLaunched("clockwise", "anticlockwise"), BallSettling(), BallLanded("17"), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(1, "orphans", 50), WagerPlaced(2, "double_dozen:1-2", 30), SeatOpened(3)),
        *(WagerPlaced(2, "split:0-1", 5), WagerPlaced(3, "neighbours:17-5", 25)),
        *(BallLaunched("anticlockwise", "clockwise"), BetsClosed(), BallLanded("17"), RoundPaid()),
    ],
    [
        *(ShoeStarted(8), BetsOpened(), WagerPlaced(1, "player", 100), WagerPlaced(2, "banker", 50), BetsClosed()),
        *(CardDrawn(card) for card in ("9H", "9D", "2S", "KC", "7C", "5D")),
        RoundPaid(),
    ],
    [  # after a burn of eight cards: the first coup of a shoe, and another after one card
        ShoeStarted(8),
        *(CardDrawn(card) for card in ("2S", "3S", "4S", "5S", "6S", "7S", "8S", "TS")),
        *(BetsOpened(), WagerPlaced(1, "player", 100), WagerPlaced(2, "tie", 50), BetsClosed()),
        *(CardDrawn(card) for card in ("9H", "9D", "2S", "KC", "7C", "5D")),
        *(RoundPaid(), BetsOpened(), WagerPlaced(1, "banker", 100), BetsClosed(), CardDrawn("AH")),
        *(CardDrawn(card) for card in ("7H", "9C", "KD", "QC")),
        RoundPaid(),
    ],
    [
        *(ButtonsSeparated(), BetsOpened(), WagerPlaced(1, "fan:3", 100), WagerPlaced(2, "kuoc:1-2", 30)),
        *(BetsClosed(), ButtonsCounted(59, 1), ButtonsCounted(59, 1), RoundPaid()),
    ],
    [
        *(DiceCovered(), DiceAgitated("lever", 3), BetsOpened(), WagerPlaced(1, "figure:crab", 100)),
        *(WagerPlaced(2, "one_colour:red", 7), BetsClosed(), DiceUncovered(), DiceRead((5, 5, 1)), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(2, "ante", 100), WagerPlaced(5, "ante", 100), WagerPlaced(5, "jackpot", 10)),
        BetsClosed(),
        *(CardDrawn(card) for card in ("AS", "9H", "KD", "AH", "9D", "QC", "4C", "9C", "2D")),
        *(CardDrawn(card) for card in ("7D", "2S", "3D", "8S", "KH", "4D")),
        *(SeatActed(2, "raise"), SeatActed(5, "raise"), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(2, "ante", 100), WagerPlaced(5, "ante", 100), WagerPlaced(5, "jackpot", 10)),
        *(BetsClosed(), HandDispensed(1), HandDispensed(5), HandDispensed(5), HandDispensed(5)),
        *(CardExposed("seat_5", "9D"), SeatActed(2, "raise")),
        DealCorrected({"dealer": ("KD", "QC", "2D", "3D", "4D")}),
        RoundPaid(),
    ],
    [
        *(BetsOpened(), WagerPlaced(2, "ante", 100), WagerPlaced(5, "ante", 100), BetsClosed(), CardDrawn("6C")),
        *(CardDrawn(card) for card in ("AS", "9H", "KD", "AH", "9D", "QC", "4C", "9C", "2D")),
        *(CardDrawn(card) for card in ("7D", "2S", "3D", "8S", "KH", "4D")),
        *(SeatActed(2, "raise"), SeatActed(5, "raise"), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(1, "main", 100), WagerPlaced(1, "any_pair", 10), WagerPlaced(4, "main", 50)),
        BetsClosed(),
        *(CardDrawn(card) for card in ("9H", "8D", "AC", "9C", "8S")),
        *(SeatActed(1, "split"), CardDrawn("2D"), SeatActed(1, "stand"), CardDrawn("TH"), SeatActed(1, "stand", 2)),
        *(SeatActed(4, "hit"), CardDrawn("5C"), CardDrawn("QS"), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(1, "main", 101), WagerPlaced(1, "over_13", 10), WagerPlaced(4, "main", 50)),
        *(BetsClosed(), CardDrawn("9H"), CardDrawn("AD"), CardDrawn("8C"), CardDrawn("7C"), CardDrawn("3S")),
        *(SeatActed(1, "surrender"), SeatActed(4, "double"), CardDrawn("TD"), CardDrawn("9S"), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(1, "aces", 100), WagerPlaced(2, "small_line", 31), WagerPlaced(2, "big", 30)),
        *(BetsClosed(), DiceThrown((1, 2, 6)), DiceThrown((), valid=False, reason="a_die_on_the_floor")),
        *(DiceReplaced(), DiceThrown((2, 2, 2)), DiceRead((2, 2, 2)), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(1, "small", 100), BetsClosed(), DiceRead((1, 2, 6)), DiceThrown((6, 6, 4))),
        *(DiceThrown((4, 6, 6)), DiceDisturbed(), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(1, "pass", 100), WagerPlaced(2, "hard_8", 30), BetsClosed(), DiceThrown((2, 4))),
        *(RoundPaid(), BetsOpened(), WagerPlaced(1, "come", 50), BetsClosed(), DiceThrown((1, 4)), RoundPaid()),
    ],
    [
        *(BetsOpened(), WagerPlaced(1, "main", 100), WagerPlaced(1, "main:3", 60), WagerPlaced(3, "main", 50)),
        *(BetsClosed(), CardDrawn("6S"), CardDrawn("KD"), CardDrawn("AH"), CardDrawn("5C"), CardDrawn("TC")),
        *(
            CardDrawn("7D"),
            SeatActed(1, "insurance", amount=50),
            SeatActed(1, "double"),
            WagerPlaced(1, "double:3", 60),
        ),
        *(CardDrawn("9D"), SeatActed(3, "split"), CardDrawn("8D"), SeatActed(3, "stand"), CardDrawn("9C")),
        *(SeatActed(3, "stand", 2), RoundPaid()),
    ],
]

_STACKS: list[Event] = [SeatActed(seat, "stack", amount=5_000) for seat in range(1, 5)]
_ACES = tuple(map(CardDrawn, ("AS", "KS", "QS", "JS", "AH", "KH", "QH", "JH")))
ROUNDS += [
    [  # a hand of hold'em, and the same deal at Omaha goes on with its third and fourth cards
        *(*_STACKS, BetsOpened(), SeatActed(1, "post"), SeatActed(2, "post"), BetsClosed(), *_ACES),
        *(SeatActed(3, "raise", amount=300), SeatActed(4, "fold"), SeatActed(1, "call"), SeatActed(2, "fold")),
        *(CardDrawn(card) for card in ("9C", "AD", "TD", "8C")),
        *(SeatActed(1, "bet", amount=500), SeatActed(3, "call"), CardDrawn("9D"), CardDrawn("8D")),
        *(SeatActed(1, "check"), SeatActed(3, "check"), CardDrawn("9H"), CardDrawn("8H")),
        *(SeatActed(1, "check"), SeatActed(3, "check"), SeatActed(1, "show"), SeatActed(3, "show"), RoundPaid()),
    ],
    [  # Omaha, to the last bettor
        *(*_STACKS, BetsOpened(), SeatActed(1, "post"), SeatActed(2, "post"), BetsClosed(), *_ACES),
        *(CardDrawn(card) for card in ("2S", "3S", "4S", "5S", "2H", "3H", "4H", "5H")),
        *(SeatActed(3, "raise", amount=300), SeatActed(4, "fold"), SeatActed(1, "call"), SeatActed(2, "fold")),
        *(CardDrawn("9C"), DealCorrected({"board": ("AD", "TD", "8C")})),
        *(SeatActed(1, "bet", amount=500), SeatActed(3, "fold"), RoundPaid()),
    ],
    [
        *(*_STACKS, BetsOpened(), *(SeatActed(seat, "post") for seat in range(1, 5)), BetsClosed()),
        *(*_ACES, CardDrawn("AD")),
        *(SeatActed(2, "bet", amount=200), SeatActed(3, "call"), SeatActed(4, "fold"), SeatActed(1, "fold")),
        *(CardDrawn("TD"), SeatActed(2, "check"), SeatActed(3, "check"), CardDrawn("9D")),
        *(SeatActed(2, "bet", amount=100), SeatActed(3, "fold"), RoundPaid()),
    ],
    [  # a coup of chemin de fer: two cover the bank, and both hands get a third card
        *(ShoeStarted(6), CardDrawn("KS")),
        *(SeatOpened(seat) for seat in range(1, 5)),
        BetsOpened(),
        *(SeatActed(1, "bank", amount=2000), WagerPlaced(2, "cover", 300), WagerPlaced(3, "half", 200), BetsClosed()),
        *(CardDrawn(card) for card in ("2S", "3D", "2H", "KD")),
        *(SeatActed(2, "draw"), SeatActed(1, "show"), CardDrawn("6C"), CardDrawn("9C")),
        *(SeatActed(2, "show"), RoundPaid()),
    ],
]


for _kind in RULESETS.values():
    _game: Any = _kind(_kind.Options())
    for _events in islice(getattr(_kind, "whole_rounds", tuple)(), 1):
        _place = _events.index(BetsOpened()) + 1
        _bets = (WagerPlaced(seat, bet, 100) for seat, bet in enumerate(_game.board[:3], 1))
        ROUNDS.append([*_events[:_place], *_bets, *_events[_place:], RoundPaid()])


@st.composite
def pieces_of_rounds(draw: st.DrawFn) -> list[Event]:
    """A round, whole or cut short at either end."""
    round_ = draw(st.sampled_from(ROUNDS))
    begin = draw(st.just(0) | st.integers(0, len(round_) - 1))
    end = draw(st.just(len(round_)) | st.integers(begin, len(round_)))
    return round_[begin:end]


NIGHTS = st.lists(pieces_of_rounds() | st.lists(ANY_EVENT, min_size=1, max_size=4), max_size=7).map(
    lambda parts: [event for part in parts for event in part]
)


def for_every_game(check: Callable[[str, list[Event]], None]) -> Callable[[], None]:
    """A property of nights. One night is played by every game, because making it costs more than playing it."""

    def of_a_night(night: list[Event]) -> None:
        for name in sorted(RULESETS):
            note(name)
            check(name, night)

    of_a_night.__name__, of_a_night.__qualname__, of_a_night.__doc__ = check.__name__, check.__name__, check.__doc__
    test: Callable[[], None] = settings(max_examples=at_length(40, 500))(given(night=NIGHTS)(of_a_night))
    return test


def run(ruleset: Game, seen: Iterable[Envelope], state: Any = None) -> tuple[Any, list[tuple[Verdict, ...]]]:
    """The last state and the verdicts of each event."""
    state = ruleset.start("t-1") if state is None else state
    steps = []
    for one in seen:
        state, verdicts = judge(ruleset, state, one)
        steps.append(verdicts)
    return state, steps


@given(ANY_EVENT)
@settings(max_examples=at_length(50, 1_000))
def test_the_events_of_these_tests_are_such_as_the_wire_carries(event: Event) -> None:
    assert decode_data(type_of(event), encode_data(event)) == event


# ---- properties


@for_every_game
def test_every_opened_round_ends_exactly_once_or_is_still_open(name: str, night: list[Event]) -> None:
    """And nothing happens to a round that is not there. `apply` never raises: it would fail here."""
    ruleset = game(name)
    state = ruleset.start("t-1")
    begun: set[str] = set()
    ended: list[str] = []
    now = ""
    closed = False
    for seen in script(night):
        state, verdicts = judge(ruleset, state, seen)
        for verdict in verdicts:
            match verdict:
                case Opened(round=round_):
                    assert round_ not in begun
                    assert not now, f"{round_} opened while {now} is open"
                    begun.add(round_)
                    now, closed = round_, False
                case Closed(round=round_):
                    assert round_ == now
                    assert not closed
                    closed = True
                case Suspended(round=round_):
                    # A resolved round may be put in doubt until it is paid: only ever the last one.
                    assert round_ == now or (not now and round_ == ended[-1])
                case Resolved(result=result) | Voided(result=result):
                    assert result.round == now
                    assert isinstance(verdict, Voided) == (result.void is not None)
                    assert not result.supersedes
                    ended.append(result.round)
                    now = ""
                case Corrected(result=result):
                    assert result.round in ended
                    assert result.supersedes == result.round
                case _:
                    pass
        view = ruleset.view(state)
        assert msgspec.json.encode(view)
        assert not now or view.round == now
    assert len(ended) == len(set(ended))
    assert begun - set(ended) == ({now} if now else set())


@for_every_game
def test_who_looks_at_the_phase_sees_each_doubt_until_it_is_over(name: str, night: list[Event]) -> None:
    """A round that goes on says nothing of it: its phase alone does. A result in doubt always has a last word."""
    ruleset = game(name)
    state = ruleset.start("t-1")
    doubted, open_ = "", ""
    for seen in script(night):
        state, verdicts = judge(ruleset, state, seen)
        for verdict in verdicts:
            match verdict:
                case Opened(round=round_):
                    open_ = round_
                case Suspended(round=round_):
                    doubted = round_
                case Resolved(result=result) | Voided(result=result) | Corrected(result=result):
                    open_ = "" if result.round == open_ else open_
                    doubted = "" if result.round == doubted else doubted
                case _:
                    pass
        view = ruleset.view(state)
        if doubted and view.phase != "suspended":
            assert doubted == open_ == view.round
            doubted = ""
        if view.phase == "suspended":
            assert doubted == view.round


@for_every_game
def test_the_same_night_gives_the_same_verdicts_byte_for_byte(name: str, night: list[Event]) -> None:
    first, second = (run(ruleset, script(night)) for ruleset in (game(name), made_again(name)))
    assert msgspec.json.encode(first) == msgspec.json.encode(second)


@for_every_game
def test_a_state_may_be_written_down_and_read_back_at_any_point(name: str, night: list[Event]) -> None:
    ruleset = game(name)
    kept = read = ruleset.start("t-1")
    for seen in script(night):
        read = msgspec.json.decode(msgspec.json.encode(read), type=ruleset.State)
        assert read == kept
        kept, verdicts = judge(ruleset, kept, seen)
        read, again = judge(ruleset, read, seen)
        assert msgspec.json.encode(again) == msgspec.json.encode(verdicts)
        assert msgspec.json.encode(ruleset.view(read)) == msgspec.json.encode(ruleset.view(kept))
    assert msgspec.json.encode(read) == msgspec.json.encode(kept)


def kinds_within(kind: msgspec.inspect.Type, seen: set[type]) -> set[str]:
    """The names of all kinds of value that a type may hold."""
    found = {type(kind).__name__}
    for name in kind.__struct_fields__:
        part = getattr(kind, name)
        for one in part if isinstance(part, tuple) else (part,):
            inner = one.type if isinstance(one, msgspec.inspect.Field) else one
            if isinstance(inner, msgspec.inspect.StructType):
                if inner.cls in seen:
                    continue
                seen.add(inner.cls)
            if isinstance(inner, msgspec.inspect.Type):
                found |= kinds_within(inner, seen)
    return found


@every_game
def test_a_state_holds_no_set_because_the_order_of_its_bytes_would_differ_from_process_to_process(name: str) -> None:
    assert not kinds_within(msgspec.inspect.type_info(game(name).State), set()) & {"SetType", "FrozenSetType"}


# ---- what was told late


@for_every_game
def test_no_result_comes_of_an_event_that_others_overtook(name: str, night: list[Event]) -> None:
    ruleset = game(name)
    state = ruleset.start("t-1")
    for seen in script(night):
        state, verdicts = judge(ruleset, state, seen)
        if seen.event.overtaken:
            assert not [one for one in verdicts if isinstance(one, Resolved | Corrected)]


def decided(ruleset: Game, events: Sequence[Event]) -> int:
    """How many events make the first result that counts; 0 where none does."""
    _, steps = run(ruleset, script(events))
    return next((n for n, step in enumerate(steps, 1) if any(isinstance(one, Resolved) for one in step)), 0)


def _ignored(ruleset: Game, round_: Sequence[Event], place: int) -> bool:
    """Whether an event of a round is another game's, and moves nothing here."""
    before, after = (run(ruleset, script(round_[:end]))[0] for end in (place, place + 1))
    return bool(before == after)


@every_table
def test_a_round_that_was_not_told_in_order_waits_for_a_person(name: str) -> None:
    """Each event from the bell to the one that decides, told late in its turn: the round has no result then.

    But for a ball that slows down after the bell: it closes nothing any more, whenever it is told.
    """
    ruleset = game(name)
    mine = [round_[: decided(ruleset, round_)] for round_ in ROUNDS if decided(ruleset, round_)]
    assert mine
    for round_ in mine:
        [first] = [one.round for one in ends(run(ruleset, script(round_))[1])]
        for late in range(round_.index(BetsClosed()), len(round_)):
            if round_[late] == BallSettling() or _ignored(ruleset, round_, late):
                continue
            told = [*round_[:late], replace(round_[late], overtaken=250), *round_[late + 1 :]]
            state, _ = run(ruleset, script(told[: late + 1]))
            assert ruleset.view(state).phase == "suspended", told[late]
            closing = ends(run(ruleset, script(told))[1])
            assert all(one.void or one.round != first for one in closing), told[late]


def test_what_moves_nothing_may_come_late() -> None:
    """A console that was dumb for eight seconds says that the bets are open: the wheel has said so by its next spin."""
    ruleset = RULESETS["macau.roulette"](options_from(RULESETS["macau.roulette"], {"betting": "no_more_bets"}))
    spin: list[Event] = [BallLaunched("clockwise", "anticlockwise"), BallSettling(), BallLanded("17")]
    _, steps = run(ruleset, script([SpinStarted(2), BetsOpened(overtaken=8107), *spin]))
    [result] = ends(steps)
    assert (result.outcome["pocket"], result.void) == ("17", None)
    assert len(result.evidence) == 5, "it rests on all of them"
    before, ball = spin[:2], spin[2]
    late: list[Event] = [RoundPaid(overtaken=4814), BetsOpened(overtaken=4576), BetsClosed()]
    _, steps = run(ruleset, script([*spin, SpinStarted(2), *before, *late, ball, RoundPaid()]))
    assert [(one.outcome["pocket"], one.irregularities) for one in ends(steps)] == [("17", ()), ("17", ())]


def test_each_spin_that_ended_unseen_is_void_however_late_that_is_told() -> None:
    """Lives 20261121002140 and 20261121006904: the wheel was dumb for two spins, and one of them had no end."""
    ruleset = game("macau.roulette")
    spin: list[Event] = [BetsOpened(), SpinStarted(6), BallLaunched("clockwise", "anticlockwise")]
    dumb: list[Event] = [BetsClosed(), RoundPaid(), BetsOpened(), BetsClosed(), RoundPaid()]
    told: list[Event] = [SpinMissed(1, overtaken=323), SpinMissed(1, overtaken=323)]
    after: list[Event] = [BetsOpened(), SpinStarted(8), *spin[2:], BetsClosed(), BallLanded("36")]
    _, steps = run(ruleset, script([*spin, *dumb, *told, *after]))
    assert [one.void.reason.code if one.void else one.outcome["pocket"] for one in ends(steps)] == [
        *["spin_missed"] * 2,
        "36",
    ]


def test_a_correction_that_its_console_told_after_the_next_card() -> None:
    """The coup that the campaign found, life 711000049: the console was dumb for six seconds, and a card came."""
    ruleset = RULESETS["macau.baccarat"](options_from(RULESETS["macau.baccarat"], {"opening": "bell"}))
    corrected = DealCorrected({"player": ("4D", "6H"), "banker": ("KH",)})
    coup: list[Event] = [BetsOpened(), BetsClosed(), *map(CardDrawn, ("4D", "KH", "6H", "QS"))]
    after: list[Event] = [*map(CardDrawn, ("8S", "6S"))]
    mended = DealCorrected({"player": ("4D", "6H", "8S"), "banker": ("KH", "QS", "6S")})

    _, steps = run(ruleset, script([*coup, corrected, *after]))
    assert [one.outcome["winner"] for one in ends(steps)] == ["banker"], "the queen is taken back: never such hands"
    _, steps = run(ruleset, script([*coup, replace(corrected, overtaken=5300), *after]))
    assert not ends(steps)
    assert [one.round for step in steps for one in step if isinstance(one, Suspended)] == ["t-1:2026-11-20:1:1"]
    _, steps = run(ruleset, script([*coup, replace(corrected, overtaken=5300), *after, mended]))
    assert [one.outcome["winner"] for one in ends(steps)] == ["player"]


def test_a_late_correction_of_a_coup_that_is_over_is_noted_and_not_used() -> None:
    ruleset = game("macau.baccarat")
    told = DealCorrected({"player": ("9D", "TC"), "banker": ("9H", "TS")}, overtaken=1250)
    _, steps = run(ruleset, script([*map(CardDrawn, ("9D", "2D", "TC", "TS")), told]))
    assert [one.outcome["winner"] for one in ends(steps)] == ["player"]
    [noted] = steps[-1]
    assert isinstance(noted, Noted)
    assert noted.irregularity.code == "told_too_late"
    assert noted.irregularity.reason == say("told_too_late", event="deal.corrected", ms=1250)


RESULT: dict[str, tuple[list[Event], list[Event]]] = {
    "macau.roulette": (
        [SpinStarted(1), BallLaunched("clockwise", "anticlockwise"), BallLanded("7")],
        [BallLanded("8")],
    ),
    "macau.cussec": (
        [
            DiceCovered(),
            DiceAgitated("electronic", 1),
            BetsOpened(),
            BetsClosed(),
            DiceUncovered(),
            DiceRead((1, 2, 3)),
        ],
        [DiceRead((1, 2, 4))],
    ),
    "macau.fantan": ([ButtonsSeparated(), BetsOpened(), BetsClosed(), ButtonsCounted(7)], [ButtonsCounted(8)]),
    "angola.french-bank": (
        [BetsOpened(), BetsClosed(), DiceThrown((1, 2, 6)), DiceThrown((1, 2, 3))],
        [DiceThrown((4, 5, 6))],
    ),
    "angola.craps": ([BetsOpened(), BetsClosed(), DiceThrown((2, 4))], [DiceThrown((2, 5))]),
}
"""A round up to its result, and what puts that in doubt."""


@pytest.mark.parametrize("name", sorted(RESULT))
def test_a_payment_told_late_ends_no_doubt_that_is_younger(name: str) -> None:
    """It was made before: of the round before, or of this one before anybody doubted."""
    resolved, doubt = RESULT[name]
    ruleset = game(name)
    state, steps = run(ruleset, script([*resolved, *doubt, RoundPaid(overtaken=30_000)]))
    assert not [one for step in steps for one in step if isinstance(one, Corrected)]
    assert ruleset.view(state).phase == "suspended"
    _, steps = run(ruleset, script([*resolved, *doubt, RoundPaid(overtaken=30_000), RoundPaid()]))
    assert [one.result.void for one in steps[-1] if isinstance(one, Corrected)] == [None]


def test_a_payment_of_the_spin_before_that_is_told_late_does_not_hide_a_contradiction() -> None:
    resolved, doubt = RESULT["macau.roulette"]
    ruleset = game("macau.roulette")
    state, _ = run(ruleset, script([*resolved, RoundPaid(overtaken=30_000), *doubt]))
    assert ruleset.view(state).phase == "suspended"


@pytest.mark.parametrize("name", sorted(RESULT))
def test_a_void_told_after_the_result_puts_it_in_doubt(name: str) -> None:
    """Somebody took the round back before it was resolved: the result does not stand as if nobody had."""
    resolved, _ = RESULT[name]
    ruleset = game(name)
    state, steps = run(ruleset, script([*resolved, RoundVoided("chip", overtaken=300)]))
    assert [type(one) for one in steps[-1]] == [Suspended]
    assert ruleset.view(state).phase == "suspended"
    for word, void in ((RoundVoided("indeed"), True), (RoundPaid(), False)):  # whose round it was a person says
        _, steps = run(ruleset, script([*resolved, RoundVoided("chip", overtaken=300), word]))
        assert [one.result.void is not None for one in steps[-1] if isinstance(one, Corrected)] == [void]


@every_table
def test_a_void_that_cannot_be_used_is_not_silent(name: str) -> None:
    ruleset = game(name)
    for round_ in ROUNDS:
        if not (end := decided(ruleset, round_)) or BetsClosed() not in round_[:end]:
            continue
        events = [*round_[: round_.index(BetsClosed()) + 1], RoundVoided("chip", overtaken=8000)]
        _, steps = run(ruleset, script(events))
        assert [one.irregularity.code for one in steps[-1] if isinstance(one, Noted)] == ["told_too_late"]


@every_table
def test_what_happens_beside_the_play_says_nothing_of_a_round(name: str) -> None:
    """So it may come in any order, and the edge does not look at it."""
    ruleset = game(name)
    beside = [
        DeviceOnline(True) if kind is DeviceOnline else STUCK[one] for one, kind in EVENT_TYPES.items() if kind in ASIDE
    ]
    assert beside
    for round_ in ROUNDS:
        state = ruleset.start("t-1")
        for told in [*script(round_), None]:
            for event in beside:
                after, verdicts = judge(ruleset, state, script([event])[0])
                # The clocks of the duties are beside the round too.
                assert (getattr(after, "game", after), verdicts) == (getattr(state, "game", state), ()), event
            if told:
                state, _ = judge(ruleset, state, told)


def ends(steps: Iterable[Sequence[Verdict]]) -> list[Result]:
    return [one.result for step in steps for one in step if isinstance(one, Resolved | Voided | Corrected)]


@for_every_game
def test_a_result_rests_on_events_that_happened(name: str, night: list[Event]) -> None:
    ruleset = game(name)
    state = ruleset.start("t-1")
    happened: set[str] = set()
    for seen in script(night):
        happened.add(seen.id)
        state, verdicts = judge(ruleset, state, seen)
        for result in ends([verdicts]):
            assert result.ruleset == ruleset.id
            assert set(result.evidence) <= happened
            assert {note.event for note in result.irregularities} <= happened
            assert result.evidence
            assert result.law
            assert all(note.law and note.code and note.reason for note in result.irregularities)
            assert set(result.announcements) >= {"pt", "en"}
            assert "zh-Hant" in result.announcements or not name.startswith("macau.")
            assert all(result.announcements.values())
            assert msgspec.json.decode(result.options, type=ruleset.Options) == ruleset.Options()


@for_every_game
def test_what_the_house_gains_the_players_lose_to_the_last_coin(name: str, night: list[Event]) -> None:
    """The house's side is reckoned from the odds that the result prints, the players' from what comes back to them."""
    ruleset = game(name)
    _, steps = run(ruleset, script(night))
    for result in ends(steps):
        prizes: dict[tuple[str, int, int], Fraction] = {}
        for win in result.winners:
            key = (win.bet, win.seat, win.hand)
            prizes[key] = prizes.get(key, Fraction()) + Fraction(win.pays)
        pushes = {(one, 0, 0) if isinstance(one, str) else (one.bet, one.seat, one.hand) for one in result.pushes}
        given_up = {hand for hand, how in result.outcome.get("ended", {}).items() if how == "surrender"}
        players = house = 0
        for one in result.settlements:
            keys = ((one.bet, one.seat, one.hand), (one.bet, one.seat, 0), (one.bet, 0, 0))
            prize = next((prizes[key] for key in keys if key in prizes), None)
            players += one.returned - one.stake
            if prize is not None:
                house -= int(prize * one.stake)  # a coin is not divided: what is left of it stays
            elif result.void is None and pushes.isdisjoint(keys):
                mine = one.bet.partition(":")[0] == "main" and f"{one.seat}.{one.hand or 1}" in given_up
                house += one.stake - one.stake // 2 if mine else one.stake
        assert players + house == 0, result


@for_every_game
def test_no_more_is_settled_than_was_laid(name: str, night: list[Event]) -> None:
    """A stake is settled once, at most its prize on top; void bets that come back come back whole."""
    ruleset = game(name)
    _, steps = run(ruleset, script(night))
    final: dict[str, Result] = {}
    for result in ends(steps):
        final[result.round] = result
    staked: dict[int, int] = {}
    for result in final.values():
        won = [Fraction(win.pays) for win in result.winners]
        most = max(won, default=Fraction())
        for one in result.settlements:
            assert isinstance(one.returned, int)
            assert one.stake > 0
            assert 0 <= one.returned <= one.stake * (1 + most)
            if result.void is not None:
                assert (result.void.bets, one.returned) == ("returned", one.stake)
            staked[one.seat] = staked.get(one.seat, 0) + one.stake
    if any(type_of(event) == "seat.acted" for event in night):
        return  # a double or a split lays more than any wager says
    laid: dict[int, int] = {}
    for event in night:
        if isinstance(event, WagerPlaced):
            laid[event.seat] = laid.get(event.seat, 0) + event.amount
    for seat, amount in staked.items():
        assert amount <= laid.get(seat, 0)


# In bytes of JSON. The largest state that was measured had 216 000; none grew from 2000 to 50 000 equal events.
LARGEST_STATE = 240_000
# What the engine bounds in each round, and what a result repeats of it.
BOUNDED_LISTS = frozenset({"facts", "after", "evidence", "irregularities"})
# The bytes that a state may gain because its counters gain digits.
MORE_DIGITS = 32
# States are compared over a few rounds, because a round that has just begun is smaller than one that has ended.
SOME_ROUNDS = 10


@every_game
def test_a_stuck_device_does_not_fill_the_memory(name: str) -> None:
    """The same event for ever, of each type, after nothing and then in the middle of one round after the other.

    A state keeps the open round and the last one. Each keeps at most 400 events and 1500 ids of events, and the result
    of the last one keeps these ids again.
    """
    ruleset = game(name)
    for type_name, event in STUCK.items():
        repeated = stuck(event, at_length(2000, 5000))
        state = ruleset.start("t-1")
        for n, before in enumerate([[], *(round_[:-2] for round_ in ROUNDS)]):
            for seen in script(before):
                state, _ = judge(ruleset, state, seen)
            state = told_again_and_again(ruleset, state, repeated if n == 0 else repeated[: at_length(100, 5000)])
            assert size(state) < LARGEST_STATE, type_name


@every_game
def test_a_state_grows_no_further_after_many_equal_events(name: str) -> None:
    """A state is no larger after many equal events than after fewer, in the middle of every kind of round.

    The long form compares whole states, after the bounded lists are full; the short form compares the rest of a state.
    """
    ruleset = game(name)
    few, many = at_length((120, 240), (2500, 5000))
    measured = at_length(size_without_lists, size)
    for type_name, event in STUCK.items():
        repeated = stuck(event, many)
        for before in ([], *(round_[:-2] for round_ in ROUNDS)):
            state = ruleset.start("t-1")
            for seen in script(before):
                state, _ = judge(ruleset, state, seen)
            largest_sizes = []
            for first, last in ((0, few), (few, many)):
                state = told_again_and_again(ruleset, state, repeated[first : last - SOME_ROUNDS])
                sizes = []
                for seen in repeated[last - SOME_ROUNDS : last]:
                    state, _ = judge(ruleset, state, seen)
                    sizes.append(measured(state))
                largest_sizes.append(max(sizes))
            assert largest_sizes[1] <= largest_sizes[0] + MORE_DIGITS, (type_name, before)


def size(state: Any) -> int:
    """The bytes of a state as it is written."""
    return len(msgspec.json.encode(state))


def size_without_lists(state: Any) -> int:
    """The bytes of a state without the lists that the engine bounds."""
    return size(without_lists(state))


def without_lists(value: Any) -> Any:
    """A state, or a struct in it, without these lists."""
    if not isinstance(value, msgspec.Struct):
        return value
    fields = (field for field in value.__struct_fields__ if field not in BOUNDED_LISTS)
    return {field: without_lists(getattr(value, field)) for field in fields}


def told_again_and_again(ruleset: Game, state: Any, repeated: Sequence[Envelope]) -> Any:
    """The state after these; an event that has changed nothing ten times changes nothing the next time."""
    unchanged = 0
    for seen in repeated:
        after, _ = judge(ruleset, state, seen)
        unchanged = unchanged + 1 if after == state else 0
        if unchanged == 10:
            break
        state = after
    return state


def stuck(event: Event, count: int) -> list[Envelope]:
    """An event again and again, with ids of one length, 2 s apart: after 2500, hourly duties are noted as overdue."""
    source, first = "felt/1/site/table/t-1/device/d-1", 100_000
    return [
        Envelope(f"edge-1:t-1:{first + n}", source, START + timedelta(seconds=2 * n), event, first + n)
        for n in range(count)
    ]


# One event of each type; what a type asks for is given here, or the types' own least values are taken.
GIVEN: dict[str, dict[str, Any]] = {
    "wager.placed": {"seat": 1, "bet": "small", "amount": 5},
    "card.drawn": {"card": "9H"},
    "dice.read": {"faces": (1, 2, 3)},
    "ball.landed": {"pocket": "17"},
    "ball.launched": {"direction": "clockwise", "rotor": "anticlockwise"},
    "seat.acted": {"seat": 1, "action": "hit"},
}


def least(kind: inspect.Type) -> Any:
    """A plain value that the annotation allows."""
    match kind:
        case inspect.Metadata(type=described):
            return least(described)
        case inspect.BoolType():
            return False
        case inspect.IntType(ge=ge, gt=gt):
            return ge if ge is not None else gt + 1 if gt is not None else 0
        case inspect.StrType(pattern=str(pattern)):
            return next(word for word in ("9H", "17", "hit", "0" * 32) if re.search(pattern, word))
        case inspect.StrType():
            return "small"
        case inspect.LiteralType(values=choices):
            return choices[0]
        case inspect.VarTupleType():
            return ()
        case inspect.DictType():
            return {}
        case _:
            raise AssertionError(f"no value for {kind}: name one in GIVEN")


def one_of_each() -> dict[str, Event]:
    made = {}
    for type_name, kind in EVENT_TYPES.items():
        described = inspect.type_info(kind)
        assert isinstance(described, inspect.StructType)
        needed = {field.name: field.type for field in described.fields if field.required}
        given_values = GIVEN.get(type_name) or {field: least(value) for field, value in needed.items()}
        made[type_name] = msgspec.convert(given_values | {"type": type_name}, kind)
    return made


STUCK = one_of_each()


def largest(event: Event) -> Event:
    """The same with each of its numbers as large as the wire carries it, told in its order."""
    described = inspect.type_info(type(event))
    assert isinstance(described, inspect.StructType)
    kinds = {
        field.name: field.type.type if isinstance(field.type, inspect.Metadata) else field.type
        for field in described.fields
        if field.name != "overtaken"
    }
    return replace(event, **{name: kind.le for name, kind in kinds.items() if isinstance(kind, inspect.IntType)})


@every_game
def test_no_number_is_too_large_for_a_game(name: str) -> None:
    """Whole rounds with the largest wagers, and such a round met by the largest that each event may say."""
    ruleset = game(name)
    large = [largest(event) for event in STUCK.values()]
    for round_ in ROUNDS:
        told = [replace(event, amount=MOST) if isinstance(event, WagerPlaced) else event for event in round_]
        late: list[Event] = [replace(event, overtaken=MOST) for event in told]
        for night in (told, [*told[:-2], *large, *told], [*told[:-2], *late]):
            state, steps = run(ruleset, script(night))
            assert msgspec.json.encode((steps, ruleset.view(state)))
            assert msgspec.json.decode(msgspec.json.encode(state), type=ruleset.State) == state


# ---- what a configuration and a reader see


@every_game
def test_every_option_is_described_with_its_law(name: str) -> None:
    described = options_of(RULESETS[name].Options)
    assert described
    for info in described:
        assert info.law, f"{name}: option {info.name} names no article"
        assert info.text, f"{name}: option {info.name} does not say what it chooses"
        assert info.values
    assert {info.name for info in described} == set(RULESETS[name].Options.__struct_fields__)


@every_game
def test_every_bet_has_its_law_and_its_odds(name: str) -> None:
    bets = game(name).bets()
    assert bets or name == MACHINES
    for bet in bets:
        assert bet.id
        assert bet.law, f"{name}: bet {bet.id} names no article"
        assert bet.text
        assert bet.pays
    assert len({bet.id for bet in bets}) == len(bets)


@every_game
def test_the_registry_knows_it_by_its_own_id(name: str) -> None:
    kind = RULESETS[name]
    assert kind.id == name
    assert kind.title
    assert kind.law
    assert isinstance(game(name).start("t-1"), kind.State)
    assert game(name).view(game(name).start("t-1")).round == ""


@every_game
def test_a_wrong_option_is_refused_by_name(name: str) -> None:
    kind = RULESETS[name]
    with pytest.raises(BadOption, match="no_such_option"):
        options_from(kind, {"no_such_option": 1})
    for info in options_of(kind.Options):
        with pytest.raises(BadOption, match=info.name):
            options_from(kind, {info.name: {"never": "this"}})


@every_game
def test_default_options_are_what_an_empty_configuration_gives(name: str) -> None:
    assert options_from(RULESETS[name], {}) == RULESETS[name].Options()
    for info in options_of(RULESETS[name].Options):
        assert options_from(RULESETS[name], {info.name: info.default}) == RULESETS[name].Options()
