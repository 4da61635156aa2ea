"""What the tests of both Angolan roulettes share: spins, and the cloth written out by geometry."""

import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

import pytest
from helpers import codes, only, play, results, script, settled

from protocols.contract.events import (
    BallChanged,
    BallLanded,
    BallLaunched,
    BallReplaced,
    BallSettling,
    BetsClosed,
    BetsOpened,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    SpinMissed,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from protocols.contract.results import Settlement
from rules.engine.ruleset import (
    BadOption,
    Closed,
    Corrected,
    Noted,
    Opened,
    Resolved,
    Ruleset,
    Suspended,
    Void,
    Voided,
    Wager,
    options_from,
)

LAUNCH: Final = BallLaunched("clockwise", "anticlockwise")
BACK: Final = BallLaunched("anticlockwise", "clockwise")
WITH_ROTOR: Final = BallLaunched("clockwise", "clockwise")
RED: Final = {1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36}


def spin(pocket: str, *bets: Event, launch: BallLaunched = LAUNCH) -> list[Event]:
    """One regular spin without its payment: the call comes while the ball runs."""
    return [BetsOpened(), *bets, launch, BetsClosed(), BallLanded(pocket)]


def spins(*pockets: str) -> list[Event]:
    """Regular spins one after the other, each the other way round, all paid."""
    turns = (LAUNCH, BACK)
    played: list[Event] = []
    for number, pocket in enumerate(pockets):
        played += [*spin(pocket, launch=turns[number % 2]), RoundPaid()]
    return played


def returned(ruleset: Ruleset[Any], pocket: int, *bets: Event) -> tuple[Settlement, ...]:
    """How these bets are settled on this pocket."""
    return only(play(ruleset, spin(str(pocket), *bets))).settlements


def paid(ruleset: Ruleset[Any]) -> dict[int, dict[str, Fraction]]:
    """What wins on each pocket, and what it pays, as whole spins say."""
    return {
        pocket: {win.bet: Fraction(win.pays) for win in only(play(ruleset, spin(str(pocket)))).winners}
        for pocket in range(37)
    }


def _name(family: str, numbers: Iterable[int]) -> str:
    return f"{family}:{'-'.join(str(number) for number in sorted(numbers))}"


def cloth() -> dict[str, tuple[set[int], Fraction]]:
    """Each bet with its numbers and its odds. Three numbers lie in a row, 0 above the first."""
    every = range(1, 37)
    bets: dict[str, tuple[set[int], Fraction]] = {f"straight:{n}": ({n}, Fraction(35)) for n in range(37)}

    def lay(family: str, numbers: set[int], odds: int) -> None:
        bets[_name(family, numbers)] = (numbers, Fraction(odds))

    for a in every:
        if a % 3:
            lay("split", {a, a + 1}, 17)
        if a <= 33:
            lay("split", {a, a + 3}, 17)
        if a % 3 and a <= 33:
            lay("corner", {a, a + 1, a + 3, a + 4}, 8)
        if a % 3 == 1:
            lay("street", {a, a + 1, a + 2}, 11)
        if a % 3 == 1 and a <= 33:
            lay("line", set(range(a, a + 6)), 5)
    for a in (1, 2, 3):
        lay("split", {0, a}, 17)
    lay("street", {0, 1, 2}, 11)
    lay("street", {0, 2, 3}, 11)
    lay("corner", {0, 1, 2, 3}, 8)
    for place in (1, 2, 3):
        bets[f"column:{place}"] = ({n for n in every if n % 3 == place % 3}, Fraction(2))
        bets[f"dozen:{place}"] = (set(range(place * 12 - 11, place * 12 + 1)), Fraction(2))
    for family in ("column", "dozen"):
        for a in (1, 2):
            both = bets[f"{family}:{a}"][0] | bets[f"{family}:{a + 1}"][0]
            bets[f"double_{family}:{a}-{a + 1}"] = (both, Fraction(1, 2))
    bets["even"] = (set(range(2, 37, 2)), Fraction(1))
    bets["odd"] = (set(range(1, 37, 2)), Fraction(1))
    bets["low"] = (set(range(1, 19)), Fraction(1))
    bets["high"] = (set(range(19, 37)), Fraction(1))
    bets["red"] = (RED, Fraction(1))
    bets["black"] = (set(every) - RED, Fraction(1))
    return bets


CLOTH: Final = cloth()
COUNTS: Final = {
    "straight": 37,
    "split": 60,
    "street": 14,
    "corner": 23,
    "line": 11,
    "dozen": 3,
    "column": 3,
    "double_dozen": 2,
    "double_column": 2,
    **dict.fromkeys(("even", "odd", "low", "high", "red", "black"), 1),
}
"""How many places each family has."""


# ---- what both articles promise: a test file of each calls these with its own ruleset and paragraphs


def bets_pay_as_printed(ruleset: Ruleset[Any], family: str) -> None:
    """Each place of a family wins on its numbers alone, and pays its odds."""
    expected = {bet: one for bet, one in CLOTH.items() if bet.partition(":")[0] == family}
    assert len(expected) == COUNTS[family]
    table = paid(ruleset)
    for pocket in range(37):
        wins = {bet: odds for bet, odds in table[pocket].items() if bet.partition(":")[0] == family}
        assert wins == {bet: odds for bet, (numbers, odds) in expected.items() if pocket in numbers}


def winner_keeps_the_stake(ruleset: Ruleset[Any], pocket: int, bet: str) -> None:
    """Stake and prize come back, on every family."""
    (numbers, odds) = CLOTH[bet]
    assert pocket in numbers
    (one,) = returned(ruleset, pocket, WagerPlaced(1, bet, 100))
    assert one.returned == 100 + odds * 100


def zero_takes(ruleset: Ruleset[Any], law: str) -> None:
    """Chances, dozens, columns and doubles lose whole on zero; what covers zero wins."""
    names = [bet for bet in CLOTH if bet.partition(":")[0] in ("even", "odd", "low", "high", "red", "black")]
    names += [bet for bet in CLOTH if "dozen" in bet or "column" in bet]
    assert len(names) == 6 + 6 + 4
    verdicts = play(ruleset, spin("0", *(WagerPlaced(1, bet, 10) for bet in names)))
    result = only(verdicts)
    assert [one.returned for one in result.settlements] == [0] * len(names)
    assert {win.bet for win in result.winners if win.bet in CLOTH} == {
        *("straight:0", "split:0-1", "split:0-2", "split:0-3", "street:0-1-2", "street:0-2-3", "corner:0-1-2-3")
    }
    assert law in result.law
    assert result.announcements == {"pt": "Zero", "zh-Hant": "零", "en": "Zero"}


def pockets_and_colours(ruleset: Ruleset[Any]) -> None:
    """0 to 36 and nothing else; the usual eighteen are red; number and colour are announced."""
    for pocket in range(37):
        result = only(play(ruleset, spin(str(pocket))))
        assert result.outcome["pocket"] == str(pocket)
        assert result.outcome.get("colour") == (None if pocket == 0 else "red" if pocket in RED else "black")
    for none in ("00", "37"):
        assert isinstance(play(ruleset, spin(none))[-1], Suspended)
    words = {"pt": "19, encarnado", "zh-Hant": "19號，紅", "en": "19, red"}
    assert only(play(ruleset, spin("19"))).announcements == words
    assert only(play(ruleset, spin("20"))).announcements["pt"] == "20, preto"


def ball_alternates(game: Callable[..., Ruleset[Any]], law: str) -> None:
    """Each spin the other way round; a null spin counts only where the house says so."""

    def noted(*events: Event, **options: Any) -> list[list[str]]:
        found = results(play(game(**options), [*events]))
        assert {note.law for one in found for note in one.irregularities} <= {law}
        return [codes(one) for one in found]

    first = spin("5")
    null: list[Event] = [BetsOpened(), BACK, SpinVoided("chip")]
    again = ["ball_not_alternated"]
    assert noted(*first, *spin("6", launch=BACK), *spin("7")) == [[], [], []]
    assert noted(*first, *spin("6"), *spin("7", launch=BACK)) == [[], again, []]
    assert noted(*first, *null, *spin("7", launch=BACK)) == [[], [], []]
    assert noted(*first, *null, *spin("7")) == [[], [], again]
    assert noted(*first, *null, *spin("7"), null_spin_alternates=True) == [[], [], []]
    assert noted(*first, *null, *spin("7", launch=BACK), null_spin_alternates=True) == [[], [], again]
    # Declared null after the ball had come to rest: the spin before it is the last that counts.
    late: list[Event] = [*spin("6", launch=BACK), RoundVoided("chip")]
    assert noted(*first, *late, *spin("7", launch=BACK)) == [[], [], []]
    assert noted(*first, *late, *spin("7"), null_spin_alternates=True) == [[], [], []]
    # What happened in between is not known: no accusation.
    assert noted(*first, EventsMissed(2), *spin("6")) == [[], []]
    assert noted(*first, SpinMissed(1), *spin("6")) == [[], [], []]
    assert noted(*first, BetsOpened(), BACK, *spin("6")) == [[], [], []]
    # Whether a spin counts whose two numbers were never decided is not known either.
    assert noted(*first, BallLanded("6"), *spin("7"))[-1] == []


def ball_with_the_wheel_is_irregular(ruleset: Ruleset[Any], law: str) -> None:
    """Only what falls on the wheel makes a spin null: this one counts."""
    verdicts = play(ruleset, spin("5", WagerPlaced(1, "red", 10), launch=WITH_ROTOR))
    assert not [one for one in verdicts if isinstance(one, Voided)]
    result = only(verdicts)
    assert [(note.code, note.law) for note in result.irregularities] == [("ball_with_rotor", law)]
    assert settled(result) == [(1, "red", 10, 20)]


def launch_waits_for_the_payment(game: Callable[..., Ruleset[Any]], law: str) -> None:
    """Bets may lie there before: the launch alone waits."""
    second: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10)]
    end: list[Event] = [BACK, BetsClosed(), BallLanded("6")]
    console = game(payment="console")
    last = results(play(console, [*spin("5"), *second, *end]))[-1]
    assert [(note.code, note.law) for note in last.irregularities] == [("launch_before_payment", law)]
    for paid_ in ([*spin("5"), RoundPaid(), *second, *end], [*spin("5"), *second, RoundPaid(), *end]):
        assert codes(results(play(console, paid_))[-1]) == []
    assert codes(results(play(game(), [*spin("5"), *second, *end]))[-1]) == []
    # The payment may be among what was lost: no accusation.
    assert codes(results(play(console, [*spin("5"), EventsMissed(1), *second, *end]))[-1]) == []


def call_ends_the_bets(ruleset: Ruleset[Any], law: str, words: str) -> None:
    """Bets may be laid and moved while the ball runs, until the call; its words are shown."""
    running: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, WagerPlaced(2, "low", 5)]
    late: list[Event] = [WagerPlaced(3, "low", 5), WagerWithdrawn(1, "red"), BallLanded("5")]
    for call in (BetsClosed(), BallSettling()):
        result = only(play(ruleset, [*running, call, *late]))
        assert [(note.code, note.law) for note in result.irregularities] == [("late_bet", law)] * 2
        assert settled(result) == [(2, "low", 5, 10), (1, "red", 10, 20)]
        state = ruleset.start("t-1")
        shown = []
        for seen in script([*running, call]):
            state, _ = ruleset.apply(state, seen)
            shown.append(ruleset.view(state).detail.get("say", {}).get("pt"))
        assert shown == [None] * 4 + [words]
    never = play(ruleset, [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, BallLanded("5")])
    assert [(note.code, note.law) for note in only(never).irregularities] == [("no_call", law)]
    null: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, SpinVoided("chip")]
    said = play(ruleset, [*null, BetsClosed(), BetsClosed(), LAUNCH, WagerPlaced(1, "low", 5), BallLanded("5")])
    noted = [one.irregularity for one in said if isinstance(one, Noted)]
    assert [(note.code, note.law) for note in noted] == [("call_before_launch", law)]
    assert codes(results(said)[-1]) == ["late_bet"]
    early = only(play(ruleset, [BetsOpened(), BetsClosed(), WagerPlaced(1, "red", 10), LAUNCH, BallLanded("5")]))
    assert [(note.code, note.law) for note in early.irregularities] == [("call_before_launch", law), ("late_bet", law)]
    # Moved while the ball ran, and never called: who moved it may have seen the number.
    assert isinstance(play(ruleset, [*running, BallLanded("5")])[-1], Suspended)


def null_spin_leaves_the_bets(ruleset: Ruleset[Any], law: str) -> None:
    """The bets stand, the ball goes back into the last number's pocket and is launched again."""
    before: list[Event] = [*spin("12"), RoundPaid()]
    bets: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), WagerPlaced(2, "straight:5", 3), BACK, BetsClosed()]
    for word in (SpinVoided("a chip fell in"), RoundVoided("a chip fell in")):
        verdicts = play(ruleset, [*before, *bets, word, BallReplaced("12"), WagerWithdrawn(1, "red"), *spin_on("5")])
        _, null, good = results(verdicts)
        assert null.void == Void(say("declared_for", text="a chip fell in"), "stand")
        assert (null.law, null.settlements) == ((law,), ())
        assert null.announcements == {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "No spin"}
        assert [one.irregularity.code for one in verdicts if isinstance(one, Noted)] == ["bet_without_round"]
        assert sorted(settled(good)) == [(1, "red", 10, 20), (2, "straight:5", 3, 108)]
    wrong = play(ruleset, [*before, *bets, SpinVoided("chip"), BallReplaced("13")])
    assert [(one.irregularity.code, one.irregularity.law) for one in wrong if isinstance(one, Noted)] == [
        ("ball_in_wrong_pocket", law)
    ]


def spin_on(pocket: str) -> list[Event]:
    """The launch after a null spin."""
    return [BACK, BetsClosed(), BallLanded(pocket)]


def marks_are_laid_again(ruleset: Ruleset[Any]) -> None:
    """Chips moved after the spin was decided change nothing: the bets are paid as they lay."""
    moved: list[Event] = [WagerWithdrawn(1, "red"), WagerPlaced(1, "black", 10), WagerPlaced(2, "straight:5", 10)]
    verdicts = play(ruleset, [*spin("5", WagerPlaced(1, "red", 10)), *moved])
    assert settled(only(verdicts)) == [(1, "red", 10, 20)]
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Noted, Noted, Noted]


def another_ball_disturbs_nothing(ruleset: Ruleset[Any]) -> None:
    """Replaced between spins or during one: the spin has the number of its own launch."""
    changed = [BallChanged(), *spin("5", WagerPlaced(1, "red", 10))]
    assert (settled(only(play(ruleset, changed))), codes(only(play(ruleset, changed)))) == ([(1, "red", 10, 20)], [])
    lost: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, BetsClosed(), BallChanged(), LAUNCH]
    assert settled(only(play(ruleset, [*lost, BallLanded("5")]))) == [(1, "red", 10, 20)]


# What an option calls the largest bet, a bet of it, and how many times the minimum it may be.
LARGEST: Final = (
    ("maximum_straight", "straight:7", 30),
    ("maximum_split", "split:1-2", 60),
    ("maximum_street", "street:1-2-3", 90),
    ("maximum_corner", "corner:1-2-4-5", 120),
    ("maximum_line", "line:1-2-3-4-5-6", 180),
    ("maximum_dozen", "dozen:1", 360),
    ("maximum_dozen", "column:1", 360),
    ("maximum_double", "double_dozen:1-2", 720),
    ("maximum_double", "double_column:1-2", 720),
    *(("maximum_chance", bet, 540) for bet in ("even", "odd", "low", "high", "red", "black")),
)


def limits_are_kept(kind: type[Ruleset[Any]], name: str, bet: str, ratio: int, law: str) -> None:
    """The smallest and the largest bet are taken, what lies outside is refused; so is a ratio that is not printed."""

    def refused(options: dict[str, Any], *bets: Event) -> tuple[list[tuple[int, str, str]], list[int]]:
        result = only(play(kind(options_from(kind, options)), spin("36", *bets)))
        assert {note.law for note in result.irregularities} <= {f"Decreto Executivo 261/22 {law}"}
        notes = [(int(note.reason.values["amount"]), note.code, note.event) for note in result.irregularities]
        return notes, [one.stake for one in result.settlements]

    most = ratio * 10
    code = "bet_outside_limits"
    assert refused({"minimum": 10}, WagerPlaced(1, bet, 10), WagerPlaced(2, bet, most)) == ([], [10, most])
    assert refused({"minimum": 10}, WagerPlaced(1, bet, 9)) == ([(9, code, "e4")], []), "at the close"
    assert refused({"minimum": 10}, WagerPlaced(1, bet, 4), WagerPlaced(1, bet, 6)) == ([], [10])
    assert refused({"minimum": 10}, WagerPlaced(1, bet, most), WagerPlaced(1, bet, 1)) == (
        [(most + 1, code, "e3")],
        [most],
    )
    assert refused({"minimum": 10, name: 20}, WagerPlaced(1, bet, 21), WagerPlaced(2, bet, 20)) == (
        [(21, code, "e2")],
        [20],
    )
    # Taken back: not below the minimum, but altogether.
    back = (WagerPlaced(1, bet, 20), WagerWithdrawn(1, bet, 11))
    assert refused({"minimum": 10}, *back) == ([(9, code, "e5")], [])
    assert refused({"minimum": 10}, *back, WagerPlaced(1, bet, 1)) == ([], [10])
    assert refused({"minimum": 10}, WagerPlaced(1, bet, 20), WagerWithdrawn(1, bet)) == ([], [])
    assert refused({}, WagerPlaced(1, bet, 10**9)) == ([], [10**9])
    for wrong in ({name: most + 1, "minimum": 10}, {name: 9, "minimum": 10}, {name: 10}):
        with pytest.raises(BadOption, match=f"{re.escape(law)}: {name}"):
            options_from(kind, wrong)


def limits_hold_after_a_null_spin(ruleset: Ruleset[Any], most: int) -> None:
    """The bets that stand, and may still be moved, have the same limits; also where a loss left them in doubt."""
    laid: list[Event] = [BetsOpened(), WagerPlaced(1, "red", most), SpinVoided("chip")]
    for between in ([], [EventsMissed(1)]):
        verdicts = play(ruleset, [*laid, *between, WagerPlaced(1, "red", 1)])
        assert [one.irregularity.code for one in verdicts if isinstance(one, Noted)] == ["bet_outside_limits"]


def prizes_stand_in_order(ruleset: Ruleset[Any], order: Sequence[str]) -> None:
    """Winners in the printed order on every pocket; losing bets come first, one player's prizes together."""
    for pocket, wins in paid(ruleset).items():
        places = [order.index(bet.partition(":")[0]) for bet in wins]
        assert places == sorted(places), pocket
    bets = [
        *((1, "straight:17"), (2, "red"), (2, "split:14-17"), (3, "black"), (1, "street:16-17-18")),
        *((4, "column:2"), (5, "straight:8"), (1, "odd"), (4, "straight:17")),
    ]
    result = only(play(ruleset, spin("17", *(WagerPlaced(seat, bet, 10) for seat, bet in bets))))
    assert [(one.seat, one.bet) for one in result.settlements] == [
        *((2, "red"), (5, "straight:8")),  # collected
        *((4, "column:2"), (4, "straight:17")),
        *((1, "odd"), (1, "street:16-17-18"), (1, "straight:17")),
        (3, "black"),
        (2, "split:14-17"),
    ]


def _lying(wagers: Iterable[Wager]) -> int:
    return sum(wager.amount for wager in wagers)


def chips_are_conserved(ruleset: Ruleset[Any], events: Sequence[Event]) -> None:
    """Every chip on the cloth was laid there, and leaves it only when taken back or settled, once.

    A result that is taken back before the payment puts its chips back, where they are not given back at once.
    """
    state = ruleset.start("t-1")
    on_cloth = 0
    settled: dict[str, int] = {}
    for seen in script(events):
        before = on_cloth
        state, verdicts = ruleset.apply(state, seen)
        cloth = state.round or state.carried
        on_cloth = _lying(cloth.wagers) if cloth else 0
        on_cloth += _lying(state.laid.wagers) if state.laid else 0
        match seen.event:
            case WagerPlaced(amount=amount):
                assert on_cloth - before in (0, amount)
            case WagerWithdrawn():
                assert on_cloth <= before
            case _:
                back = sum(settled.pop(one.result.round) for one in verdicts if isinstance(one, Corrected))
                ends = [one.result for one in verdicts if isinstance(one, Resolved | Voided | Corrected)]
                settled |= {result.round: sum(one.stake for one in result.settlements) for result in ends}
                gone = sum(settled[result.round] for result in ends)
                assert on_cloth == before - gone + back
        for result in results(verdicts):
            assert result.void is None or result.void.bets == "returned" or not result.settlements
