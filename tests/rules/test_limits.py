"""Limits of bets at every ruleset: what a table refuses, how it says so, and what becomes of refused chips."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from helpers import MACHINES, at_length
from hypothesis import given, settings, strategies as st
from msgspec import Struct

from protocols.contract.events import (
    MOST,
    BetsClosed,
    BetsOpened,
    ButtonsSeparated,
    DiceAgitated,
    DiceCovered,
    Event,
    EventsMissed,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.results import Irregularity, Noted, Verdict
from protocols.contract.topics import Envelope
from rules import RULESETS
from rules.engine.cloth import amount_on, lying
from rules.engine.limits import Limits
from rules.engine.money import settle
from rules.engine.rounds import Round, terms
from rules.engine.ruleset import BadOption, Ruleset, Wager, Win, judge, options_from
from rules.engine.standing_bets import wager_beside
from rules.macau.fantan import FantanOptions

START = datetime(2026, 11, 23, 20, 0, tzinfo=UTC)
SHAKEN: list[Event] = [DiceCovered(), DiceAgitated("lever", 3), BetsOpened()]
OPENED: dict[str, list[Event]] = {
    "angola.cussec": SHAKEN,
    "macau.cussec": SHAKEN,
    "macau.fish-prawn-crab": SHAKEN,
    "macau.fantan": [ButtonsSeparated(), BetsOpened()],
}
NEEDED: dict[str, dict[str, Any]] = {"macau.baccarat": {"opening": "bell"}}
BETS: dict[str, tuple[str, str]] = {
    "angola.american-roulette": ("straight:17", "red"),
    "angola.baccarat": ("player", "tie"),
    "angola.baccarat-macau": ("player", "tie"),
    "angola.blackjack": ("main", "main:2"),
    "angola.craps": ("field", "seven"),
    "angola.cussec": ("small", "total:4"),
    "angola.french-bank": ("small", "aces"),
    "angola.french-roulette": ("straight:17", "red"),
    "angola.stud-poker": ("ante", "jackpot"),
    "macau.baccarat": ("player", "lucky_6"),
    "macau.blackjack": ("main", "any_pair"),
    "macau.cussec": ("small", "triple:6"),
    "macau.fantan": ("fan:1", "kuoc:1-2"),
    "macau.fish-prawn-crab": ("small", "figure:fish"),
    "macau.roulette": ("straight:17", "red"),
    "macau.stud-poker": ("ante", "jackpot"),
}
"""Two bets of each ruleset that need nothing beside them to be laid."""
UNBANKED = frozenset({"angola.chemin-de-fer", "angola.holdem", "angola.omaha", "angola.synthetic-poker", MACHINES})
"""Players lay their chips by what they do (tests/rules/test_poker_betting.py), or as far as a bank reaches that one of
them holds (tests/law/test_angola_chemin_de_fer.py), or put them into a machine."""
for _name in set(RULESETS) - set(BETS) - UNBANKED:  # a game of whole rounds
    _kind: Any = RULESETS[_name]
    _round = next(_kind.whole_rounds())
    OPENED[_name] = [*_round[: _round.index(BetsOpened()) + 1]]
    _first, *_others = _kind(_kind.Options()).board
    BETS[_name] = (_first, next(bet for bet in _others if bet.partition(":")[0] != _first.partition(":")[0]))

every_game = pytest.mark.parametrize("name", sorted(set(RULESETS) - UNBANKED))


def family(bet: str) -> str:
    return bet.partition(":")[0]


class Table:
    """A table whose bets are open."""

    def __init__(self, name: str, **options: Any) -> None:
        kind = RULESETS[name]
        self.ruleset: Ruleset[Any] = kind(options_from(kind, NEEDED.get(name, {}) | options))
        self.state, self.count = self.ruleset.start("t-1"), 0
        for event in OPENED.get(name, [BetsOpened()]):
            self.tell(event)

    def tell(self, event: Event) -> tuple[Verdict, ...]:
        self.count += 1
        seen = Envelope(f"e{self.count}", "felt/s/table/t-1/device/d", START + timedelta(seconds=self.count), event)
        self.state, verdicts = judge(self.ruleset, self.state, seen)
        return verdicts

    def refused(self, event: Event) -> Irregularity | None:
        """The one irregularity that the event is noted with, if there is one."""
        verdicts = self.tell(event)
        noted = [one.irregularity for one in verdicts if isinstance(one, Noted)]
        noted += [one for round_ in rounds(self.state) for one in round_.irregularities]
        mine = [one for one in noted if one.event == f"e{self.count}" and one.code != "call_before_launch"]
        assert len(mine) <= 1
        return mine[0] if mine else None

    def chips(self, seat: int, bet: str) -> int:
        """The refused chips on a place."""
        game = getattr(self.state, "game", self.state)  # beside the watch of its duties
        return amount_on(game.ledger, seat, bet)

    def lies(self, seat: int, bet: str) -> int:
        laid = [one for round_ in rounds(self.state) for one in round_.wagers]
        return sum(one.amount for one in laid if (one.seat, one.bet) == (seat, bet))


def rounds(value: object) -> Iterator[Round]:
    """The rounds of a state, however deep."""
    if isinstance(value, Round):
        yield value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from rounds(getattr(value, name))


@every_game
def test_the_tables_of_this_file_are_all_rulesets(name: str) -> None:
    table = Table(name)
    for bet in BETS[name]:
        if bet != "jackpot" or name == "macau.stud-poker":
            assert table.refused(WagerPlaced(1, bet, 60)) is None, bet
            assert table.lies(1, bet) == 60


@every_game
def test_a_bet_after_no_more_bets_is_refused(name: str) -> None:
    table, bet = Table(name), BETS[name][0]
    assert table.refused(WagerPlaced(1, bet, 60)) is None
    table.tell(BetsClosed())
    for event in (WagerWithdrawn(1, bet, 5), WagerPlaced(1, bet, 60), WagerPlaced(2, bet, 60), WagerWithdrawn(1, bet)):
        late = table.refused(event)
        assert late is not None, event
        assert late.code == "late_bet"
        assert late.law
    assert (table.lies(1, bet), table.lies(2, bet)) == (60, 0)
    assert table.refused(WagerWithdrawn(2, bet, 60)) is None, "the late chips go back"


@every_game
def test_the_limits_of_a_house_hold_at_every_ruleset(name: str) -> None:
    bet, other = BETS[name]
    table = Table(name, limits=[f"{family(bet)}=50-200/10", "seat=300", "round=400"])
    note = table.refused(WagerPlaced(1, bet, 210))
    assert note is not None
    assert (note.code, table.lies(1, bet)) == ("bet_outside_limits", 0)
    assert table.refused(WagerWithdrawn(1, bet, 210)) is None, "the chips go back"
    for asked, code in ((40, "bet_outside_limits"), (55, "bet_not_in_steps")):
        note = table.refused(WagerPlaced(1, bet, asked, "r", "seat-1"))
        assert note is not None, "a terminal asks for a whole bet"
        assert (note.code, table.lies(1, bet)) == (code, 0)
    assert table.refused(WagerPlaced(1, bet, 200)) is None
    assert table.refused(WagerPlaced(1, bet, 1)) is not None
    assert table.lies(1, bet) == 200
    if other != "jackpot" and family(other) != family(bet):
        over = table.refused(WagerPlaced(1, other, 101))
        assert over is not None
        assert (over.code, over.reason.values["most"]) == ("over_seat_maximum", 300)
    assert table.refused(WagerPlaced(2, bet, 200)) is None
    over = table.refused(WagerPlaced(3, bet, 50))
    assert over is not None
    assert (over.code, over.reason.values["most"]) == ("over_round_maximum", 400)
    assert [table.lies(seat, bet) for seat in (1, 2, 3)] == [200, 200, 0]


@every_game
@pytest.mark.parametrize(
    ("chips", "stands", "code"),
    [
        ((49,), 0, "bet_not_in_steps"),
        ((40,), 0, "bet_outside_limits"),
        ((50,), 50, ""),
        ((30, 20), 50, ""),
        ((25, 25, 50), 100, ""),
        ((51,), 50, "bet_not_in_steps"),
        ((50, 9), 50, "bet_not_in_steps"),
    ],
)
def test_smallest_amounts_and_steps_are_judged_when_the_bets_close(
    name: str, chips: tuple[int, ...], stands: int, code: str
) -> None:
    bet = BETS[name][0]
    table = Table(name, limits=[f"{family(bet)}=50-200/10"])
    assert table.refused(WagerPlaced(2, bet, 60)) is None
    for amount in chips:
        assert table.refused(WagerPlaced(1, bet, amount)) is None
    note = table.refused(BetsClosed())
    assert (note.code if note else "", table.lies(1, bet), table.lies(2, bet)) == (code, stands, 60)
    if back := sum(chips) - stands:
        assert table.refused(WagerWithdrawn(1, bet, back)) is None, "what goes back may be taken"
        assert table.lies(1, bet) == stands


@every_game
def test_a_bet_may_win_up_to_the_largest_number_and_no_more(name: str) -> None:
    for bet in BETS[name]:
        if bet == "jackpot":
            continue
        table = Table(name)
        limits: Limits = getattr(table.ruleset, "limits")  # noqa: B009 - not of the protocol
        most = int(MOST / limits.most_returned([Wager(1, bet, 1)]))
        assert table.refused(WagerPlaced(1, bet, most)) is None
        more = table.refused(WagerPlaced(3, bet, most))
        assert more is not None
        assert (more.code, table.lies(3, bet)) == ("settlement_too_large", 0)
        fresh = Table(name)
        over = fresh.refused(WagerPlaced(1, bet, min(most + 1, MOST)))
        assert (over is None) == (most + 1 > MOST)


@pytest.mark.parametrize("chip", [1, 2, 10])
def test_prizes_that_are_rounded_up_stay_below_the_largest_number_together(chip: int) -> None:
    limits = Limits(best=lambda: {"x": Fraction(1, 2), "y": Fraction(0)}, chip=chip, rounds_up=True)
    wagers = tuple(Wager(seat, "x", 1) for seat in range(1, 100))
    rest = MOST - int(limits.most_returned((*wagers, Wager(100, "y", 1)))) + 1
    taken = max(n for n in range(rest - 3, rest + 3) if not limits.too_large(wagers, WagerPlaced(1, "y", n)))
    settled = settle((*wagers, Wager(1, "y", taken)), [Win("x", "1/2"), Win("y", "0")], (), chip=chip, rounding="up")
    assert sum(one.returned for one in settled) <= MOST


# ---- refused chips


REFUSING: dict[str, tuple[dict[str, Any], str, int, int]] = {
    "angola.american-roulette": ({"minimum": 10}, "straight:17", 300, 10),
    "angola.baccarat": ({"minimum": 10}, "player", 700, 10),
    "angola.craps": ({"limits": ["field=10-60"]}, "field", 60, 5),
    "angola.french-bank": ({"minimum": 10}, "aces", 60, 10),
    "angola.french-roulette": ({"minimum": 10}, "straight:17", 300, 10),
    "macau.blackjack": ({"procedure": "3", "table_maximum": 300}, "main", 300, 10),
}
"""Options, a bet, the most of it or an amount that is right, chips that are refused beside it."""


@pytest.mark.parametrize("name", REFUSING)
def test_refused_chips_that_are_handed_back_do_not_lower_the_bet(name: str) -> None:
    options, bet, good, more = REFUSING[name]
    table = Table(name, **options)
    assert table.refused(WagerPlaced(1, bet, good)) is None
    assert table.refused(WagerPlaced(1, bet, more)) is not None
    assert table.refused(WagerWithdrawn(1, bet, more)) is None
    assert table.lies(1, bet) == good
    assert table.refused(WagerWithdrawn(1, bet)) is None
    assert table.lies(1, bet) == 0


class Asked(WagerPlaced, frozen=True, tag="wager.placed"):
    """A bet that a betting terminal asked for."""

    terminal: str = "seat-1"


class TakenBack(WagerWithdrawn, frozen=True, tag="wager.withdrawn"):
    """The same terminal takes some of it back."""

    terminal: str = "seat-1"


def test_a_refused_bet_of_a_terminal_leaves_no_chips() -> None:
    table = Table("angola.baccarat", minimum=10)
    assert table.refused(Asked(1, "player", 700)) is None
    assert table.refused(Asked(1, "player", 10)) is not None
    assert table.refused(TakenBack(1, "player", 10)) is None
    assert table.lies(1, "player") == 690


@pytest.mark.parametrize("name", REFUSING)
def test_a_terminal_that_takes_all_of_its_bet_back_leaves_the_refused_chips_beside_it(name: str) -> None:
    options, bet, good, more = REFUSING[name]
    table = Table(name, **options)
    assert table.refused(WagerPlaced(1, bet, good, "r", "seat-1")) is None
    assert table.refused(WagerPlaced(1, bet, more)) is not None
    assert table.refused(WagerWithdrawn(1, bet, 0, "r", "seat-1")) is None
    again = table.refused(WagerWithdrawn(1, bet, 0, "r", "seat-1"))
    assert again is not None
    assert again.code == "bet_not_placed"
    assert table.refused(WagerPlaced(1, bet, good, "r", "seat-1")) is None
    assert table.refused(WagerWithdrawn(1, bet, more)) is None, "the chips go back"
    assert table.lies(1, bet) == good


@pytest.mark.parametrize(
    ("name", "options", "bet", "amount", "code"),
    [
        ("angola.blackjack", {"minimum": 10, "maximum": 300}, "main", 310, "over_maximum"),
        ("angola.blackjack", {"minimum": 10, "maximum": 300}, "main", 15, "not_a_multiple"),
        ("angola.stud-poker", {"minimum": 50, "maximum": 1000}, "ante", 1001, "outside_limits"),
        ("angola.stud-poker", {"minimum": 50, "maximum": 1000}, "ante", 49, "outside_limits"),
    ],
)
def test_a_terminal_is_answered_at_once_what_chips_are_judged_by_at_the_bell(
    name: str, options: dict[str, int], bet: str, amount: int, code: str
) -> None:
    table = Table(name, **options)
    note = table.refused(Asked(1, bet, amount))
    assert note is not None
    assert (note.code, table.lies(1, bet)) == (code, 0)
    assert table.refused(WagerPlaced(2, bet, amount)) is None
    assert table.lies(2, bet) == amount


@pytest.mark.parametrize(("amount", "left"), [(0, 0), (120, 0), (100, 20)])
def test_a_terminal_takes_its_bet_back_where_a_loss_left_the_cloth_in_doubt(amount: int, left: int) -> None:
    chips = (Wager(1, "small", 30),)
    doubtful, laid = (
        Round("", wagers=(Wager(1, "small", 50),), refused=chips),
        Round("", wagers=(Wager(1, "small", 70),)),
    )
    event = WagerWithdrawn(1, "small", amount, "r-1", "seat-1")
    seen = Envelope("e1", "felt/s/table/t-1/device/d", START, event)
    doubtful, laid = wager_beside(doubtful, laid, event, frozenset(["small"]), "art. 5", seen)
    assert lying(doubtful, 1, "small") + lying(laid, 1, "small") == left
    assert doubtful.refused == chips
    assert doubtful.irregularities == ()


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["lay", "lay", "take", "hand back", "bell"]), st.sampled_from([1, 2]), st.integers(1, 120)
    ),
    max_size=12,
)


@pytest.mark.parametrize("limited", [False, True])
@every_game
@settings(max_examples=at_length(15, 300), deadline=None)
@given(moves=MOVES)
def test_every_chip_on_the_cloth_is_bet_or_refused(name: str, limited: bool, moves: list[tuple[str, int, int]]) -> None:
    """What was laid and not taken away lies there. Refused chips that are handed back never lower a bet."""
    bet = BETS[name][0]
    table = Table(name, limits=[f"{family(bet)}=50-200/10", "seat=220"] if limited else [])
    cloth = {1: 0, 2: 0}
    closed = False
    for move, seat, amount in [*moves, ("bell", 1, 1), ("lay", 1, 7), ("hand back", 1, 7)]:
        held, refused = table.lies(seat, bet), table.chips(seat, bet)
        match move:
            case "lay":
                table.tell(WagerPlaced(seat, bet, amount))
                cloth[seat] += amount
            case "take" if not closed and amount <= held + refused:
                assert table.refused(WagerWithdrawn(seat, bet, amount)) is None
                cloth[seat] -= amount
            case "hand back" if refused:
                back = min(amount, refused)
                assert table.refused(WagerWithdrawn(seat, bet, back)) is None
                cloth[seat] -= back
                assert table.lies(seat, bet) == held
            case "bell" if not closed:
                table.tell(BetsClosed())
                closed = True
        assert {one: table.lies(one, bet) + table.chips(one, bet) for one in cloth} == cloth, move


# ---- the option


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (["straight"], "write family=least-most"),
        (["straight=10-"], "write family=least-most"),
        (["straight=0-10"], "write family=least-most"),
        (["straight=20-10"], "the least is above the most"),
        (["straight=15-100/10"], "the least is no multiple of the step"),
        (["plein=1-10"], "no bet 'plein'; it has"),
        (["straight:17=1-10"], "write family=least-most"),
        (["straight=1-10", "straight=1-20"], "straight is named twice"),
        (["seat=10-100"], "seat has a largest amount only"),
        (["round=9007199254740992"], "no amount is above"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_with_its_reason(limits: list[str], says: str) -> None:
    with pytest.raises(BadOption, match=says):
        options_from(RULESETS["macau.roulette"], {"limits": limits})


def test_a_house_may_be_stricter_than_the_article_and_not_more_generous() -> None:
    kind = RULESETS["angola.french-roulette"]
    options_from(kind, {"minimum": 10, "limits": ["straight=20-200"]})
    with pytest.raises(BadOption, match=r"art\. 2\(24\): within 10-300"):
        options_from(kind, {"minimum": 10, "limits": ["straight=10-301"]})


def test_no_number_of_an_option_is_above_the_largest() -> None:
    with pytest.raises(BadOption, match="no number is above 9007199254740991"):
        options_from(RULESETS["angola.french-bank"], {"minimum": 2**53})


def test_limits_that_are_not_set_are_not_written_into_results() -> None:
    for limits, written in (((), b""), (("fan=10-20",), b'"limits":["fan=10-20"],')):
        options = bytes(terms("macau.fantan", "2004", FantanOptions(limits=limits), {}).options)
        assert options.startswith(b"{" + written + b'"opening":')


# ---- the sign of the table: its limits stand in each bet


@every_game
def test_a_closed_table_takes_no_bet(name: str) -> None:
    table, bet = Table(name), BETS[name][0]
    assert table.refused(WagerPlaced(1, bet, 60)) is None
    shut = table.refused(WagerPlaced(1, bet, 60, table_closed=True))
    assert shut is not None
    assert shut.code == "bet_at_closed_table"
    assert (table.lies(1, bet), table.chips(1, bet)) == (60, 60)
    terminal = WagerPlaced(2, bet, 60, table_closed=True, request="r-1", terminal="t-1")
    assert table.refused(terminal) is not None
    assert (table.lies(2, bet), table.chips(2, bet)) == (0, 0)


@every_game
def test_a_bet_at_a_closed_table_begins_no_round(name: str) -> None:
    kind = RULESETS[name]
    ruleset: Ruleset[Any] = kind(options_from(kind, NEEDED.get(name, {})))
    bet = WagerPlaced(1, BETS[name][0], 60, table_closed=True)
    state, verdicts = judge(ruleset, ruleset.start("t-1"), Envelope("e1", "felt/s/table/t-1/device/d", START, bet))
    assert [type(one) for one in verdicts] == [Noted]
    assert not ruleset.view(state).round


@every_game
def test_the_limits_of_the_sign_hold_at_every_ruleset(name: str) -> None:
    table, bet = Table(name), BETS[name][0]

    def placed(seat: int, amount: int, terminal: str = "", least: int = 50) -> WagerPlaced:
        return WagerPlaced(seat, bet, amount, minimum=least, maximum=200, terminal=terminal, request=terminal)

    above = table.refused(placed(1, 210))
    assert above is not None
    assert (above.code, table.lies(1, bet)) == ("bet_outside_limits", 0)
    assert table.refused(placed(2, 40)) is None, "more chips may follow"
    small = table.refused(placed(3, 40, "t-1"))
    assert small is not None, "a terminal asks for a whole bet"
    assert small.code == "bet_outside_limits"
    assert table.refused(placed(4, 60)) is None
    assert table.refused(placed(4, 100, least=100)) is None
    noted = table.refused(BetsClosed())
    assert noted is not None
    assert (noted.code, noted.reason.code) == ("bet_outside_limits", "stake_limits")
    assert (table.lies(2, bet), table.lies(4, bet)) == (0, 160), "the smallest bet is that of the first chip"


@pytest.mark.parametrize("name", ["macau.cussec", "macau.roulette"])
def test_the_smallest_bet_of_the_sign_holds_for_a_bet_that_was_laid_beside_doubtful_ones(name: str) -> None:
    table, (bet, other) = Table(name), BETS[name]
    table.tell(WagerPlaced(1, other, 60))
    table.tell(RoundVoided(""))
    table.tell(EventsMissed(1))
    assert table.refused(WagerPlaced(2, bet, 40, minimum=50)) is None
    table.tell(WagerWithdrawn(1, other))
    for event in OPENED.get(name, [BetsOpened()]):
        table.tell(event)
    assert table.lies(2, bet) == 40
    table.tell(BetsClosed())
    assert (table.lies(2, bet), table.chips(2, bet)) == (0, 40)


def test_a_bet_with_limits_of_its_own_and_one_on_a_jackpot_do_not_follow_the_sign() -> None:
    own = Table("macau.baccarat", limits=["player=10-1000"])
    assert own.refused(WagerPlaced(1, "player", 20, minimum=50, maximum=200)) is None
    assert own.refused(WagerPlaced(1, "player", 600, minimum=50, maximum=200)) is None
    poker = Table("macau.stud-poker")
    assert poker.refused(WagerPlaced(1, "jackpot", 10, minimum=50, maximum=200)) is None
    assert poker.lies(1, "jackpot") == 10
