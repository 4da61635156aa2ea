"""The players' boards, by examples worked by hand and by what must hold for every shoe."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby, pairwise
from typing import Any, TypeVar

import msgspec
import pytest
from helpers import play, result_of
from hypothesis import given, strategies as st

from daemon.console.fairness import scoreboards
from daemon.console.fairness.scoreboards import Cell, Heat, Spin
from daemon.console.games import GAMES
from daemon.console.shapes import chip
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    CardDrawn,
    DiceThrown,
    Event,
    RoundPaid,
    RoundVoided,
    ShoeStarted,
)
from protocols.contract.results import Result
from rules import RULESETS
from rules.angola.baccarat import AngolaBaccarat, AngolaBaccaratOptions
from rules.angola.baccarat_macau import AngolaBaccaratMacau, AngolaBaccaratMacauOptions
from rules.angola.craps import Craps, CrapsOptions
from rules.engine.ruleset import Corrected, Resolved, Ruleset, Voided
from rules.macau.baccarat import Baccarat, BaccaratOptions
from rules.macau.fantan import Fantan, FantanOptions

T = TypeVar("T")
WON = {"B": "banker", "P": "player", "T": "tie"}


def board_of(make: Callable[[list[Result]], T], results: Iterable[Mapping[str, Any]]) -> T:
    """A board of results as they are read from the broker."""
    return make([*map(result_of, results)])


def coup(number: int, letter: str, shoe: int = 1, day: str = "2026-11-20", **more: Any) -> dict[str, Any]:
    totals = {"player": 6, "banker": 6} | ({"banker": 8} if letter == "B" else {"player": 7} if letter == "P" else {})
    return {
        "round": f"bac-1:{day}:{shoe}:{number}",
        "ruleset": "macau.baccarat",
        "outcome": {"winner": WON[letter], "totals": totals, "player_pair": False, "banker_pair": False},
        "void": None,
        "demo": False,
        "supersedes": "",
        **more,
    }


def shoe(letters: str) -> list[dict[str, Any]]:
    return [coup(number, letter) for number, letter in enumerate(letters, 1)]


def drawn(letters: str) -> list[str]:
    """The big road as text: a small letter has ties on it."""
    found = board_of(scoreboards.baccarat, shoe(letters))
    width = max((cell.column for cell in found.road), default=-1) + 1
    rows = []
    for row in found.big_road(width):
        marks = [" " if cell is None else (cell.winner[:1] or "t") for cell in row]
        rows.append("".join(m.upper() if cell and not cell.ties else m for m, cell in zip(marks, row, strict=True)))
    while rows and not rows[-1].strip():
        rows.pop()
    return [row.rstrip() for row in rows]


# ---- the big road


@pytest.mark.parametrize(("ruleset", "letters"), [("macau.baccarat", "JBE"), ("angola.baccarat", "PBE")])
def test_a_chip_has_the_letter_of_the_side_in_the_words_of_its_text(ruleset: str, letters: str) -> None:
    results = [result_of(coup(number, side, ruleset=ruleset)) for number, side in enumerate("PBT", 1)]
    assert "".join(chip(one, "pt").text for one in results) == letters


@pytest.mark.parametrize(
    ("letters", "road"),
    [
        ("", []),
        ("B", ["B"]),
        ("BBPPPB", ["BPB", "BP", " P"]),
        # ties stand on the coup before them
        ("BTBPTT", ["bp", "B"]),
        # before the first winner on the first place
        ("TT", ["t"]),
        ("TTPB", ["pB"]),
        # a run of eight turns right at the bottom: the dragon's tail
        ("BBBBBBBB", ["B", "B", "B", "B", "B", "BBB"]),
        # the next runs turn above the tail, one row higher each
        (
            "BBBBBBBB" + "PPPPPPP" + "BBBBBB",
            ["BPB", "BPB", "BPB", "BPBBB", "BPPP", "BBB"],
        ),
        # once turned it goes on to the right, although there is room below its end
        (
            "BBBBBBB" + "PPPPPPP" + "B",
            ["BPB", "BP", "BP", "BP", "BPPP", "BB"],
        ),
    ],
)
def test_the_big_road_by_hand(letters: str, road: list[str]) -> None:
    assert drawn(letters) == road


def test_the_next_run_begins_beside_the_beginning_of_the_last_not_beside_its_tail() -> None:
    road = board_of(scoreboards.baccarat, shoe("B" * 12 + "P")).road
    assert (road[-2].column, road[-2].row) == (6, 5)
    assert (road[-1].column, road[-1].row) == (1, 0)


def test_ties_and_pairs_are_marked_on_their_coup() -> None:
    results = shoe("PTT")
    results[0]["outcome"] |= {"player_pair": True}
    results[2]["outcome"] |= {"banker_pair": True}  # a pair in a tie is on the bead plate only
    found = board_of(scoreboards.baccarat, results)
    names = tuple(one["round"] for one in results)
    assert found.road == (Cell(0, 0, "player", 2, player_pair=True, rounds=names),)
    assert [(one.player_pair, one.banker_pair) for one in found.coups] == [(True, False), (False, False), (False, True)]


letters_of = st.text("BPT", max_size=120)


@given(letters_of)
def test_each_coup_is_in_exactly_one_cell_and_no_two_cells_share_a_place(letters: str) -> None:
    results = shoe(letters)
    found = board_of(scoreboards.baccarat, results)
    rounds = [name for cell in found.road for name in cell.rounds]
    assert rounds == [one["round"] for one in results]
    places = [(cell.column, cell.row) for cell in found.road]
    assert len(set(places)) == len(places)
    assert all(0 <= row < 6 and column >= 0 for column, row in places)
    assert sum(cell.ties for cell in found.road) == letters.count("T") == found.tie
    assert (found.banker, found.player) == (letters.count("B"), letters.count("P"))


@given(letters_of)
def test_a_run_is_one_unbroken_line_down_and_then_right(letters: str) -> None:
    cells = [cell for cell in board_of(scoreboards.baccarat, shoe(letters)).road if cell.winner]
    lengths = [len(list(run)) for _, run in groupby(letters.replace("T", ""))]
    begun = -1
    for length in lengths:
        run, cells = cells[:length], cells[length:]
        assert len({cell.winner for cell in run}) == 1
        assert run[0].row == 0
        assert run[0].column > begun
        begun = run[0].column
        steps = [(b.column - a.column, b.row - a.row) for a, b in pairwise(run)]
        assert steps == sorted(steps)  # (0, 1) down before (1, 0) right
        assert set(steps) <= {(0, 1), (1, 0)}
    assert not cells


@given(letters_of, st.integers(1, 30))
def test_board_draws_its_latest_results(letters: str, columns: int) -> None:
    found = board_of(scoreboards.baccarat, shoe(letters))
    bead = found.bead(columns)
    assert [len(row) for row in bead] == [columns] * 6
    shown = [one.round for column in range(columns) for row in range(6) if (one := bead[row][column])]
    assert shown == [one.round for one in found.coups][len(letters) - len(shown) :]
    assert len(shown) >= min(len(letters), columns * 6 - 5)
    width = max((cell.column for cell in found.road), default=-1) + 1
    kept = [cell for row in found.big_road(columns) for cell in row if cell]
    assert sorted(kept, key=str) == sorted((one for one in found.road if one.column >= width - columns), key=str)


def test_the_bead_plate_fills_columns_of_six() -> None:
    bead = board_of(scoreboards.baccarat, shoe("BPTBPTBP")).bead(2)
    assert [[one.winner[:1] if one else "" for one in row] for row in bead] == [
        ["b", "b"],
        ["p", "p"],
        ["t", ""],
        ["b", ""],
        ["p", ""],
        ["t", ""],
    ]
    assert bead[0][0] is not None
    assert bead[0][0].points == 8


# ---- what stands


def test_a_new_shoe_clears_the_board_and_midnight_does_not() -> None:
    evening = [coup(1, "B", shoe=4), coup(2, "P", shoe=4)]
    night = [coup(3, "P", shoe=1, day="2026-11-21")]  # the rules number the shoe under way anew, not its coups
    assert len(board_of(scoreboards.baccarat, evening + night).coups) == 3
    fresh = [coup(1, "T", shoe=2, day="2026-11-21")]
    assert [one.winner for one in board_of(scoreboards.baccarat, evening + night + fresh).coups] == ["tie"]


def test_a_new_shoe_is_seen_though_its_first_coups_are_on_no_board() -> None:
    old = [coup(1, "B", shoe=3), coup(2, "P", shoe=3)]
    void = {"reason": {"code": "card_unreadable"}, "bets": "returned"}
    new = [coup(1, "T", shoe=4, demo=True), coup(2, "B", shoe=4, void=void), coup(3, "P", shoe=4)]
    assert [one.round for one in board_of(scoreboards.baccarat, old + new).coups] == [new[2]["round"]]
    second = coup(3, "P", shoe=2, day="2026-11-21")  # of a day of which nothing else is known
    assert [one.round for one in board_of(scoreboards.baccarat, [*old, second]).coups] == [second["round"]]


def test_a_correction_takes_the_place_of_what_it_supersedes() -> None:
    results = [*shoe("BBP"), coup(2, "P", supersedes="bac-1:2026-11-20:1:2")]
    assert [one.winner for one in board_of(scoreboards.baccarat, results).coups] == ["banker", "player", "player"]
    told_again = [*results, coup(2, "B")]
    assert board_of(scoreboards.baccarat, told_again) == board_of(scoreboards.baccarat, results)


def test_void_rounds_demonstrations_and_the_unreadable_are_on_no_board() -> None:
    void = {"reason": {"code": "card_unreadable"}, "bets": "returned"}
    taken_back = coup(1, "B", supersedes="bac-1:2026-11-20:1:1", void=void)
    results = [*shoe("BP"), taken_back, coup(3, "T", demo=True), coup(4, "B", outcome={"winner": "nobody"})]
    assert [one.winner for one in board_of(scoreboards.baccarat, results).coups] == ["player"]


# ---- by the rulesets themselves


def published(ruleset: Ruleset[Any], events: list[Event]) -> list[dict[str, Any]]:
    """The results as they come over the broker."""
    verdicts = play(ruleset, events)
    return [
        msgspec.json.decode(msgspec.json.encode(one.result), type=dict[str, Any])
        for one in verdicts
        if isinstance(one, Resolved | Voided | Corrected)
    ]


def test_baccarat_as_the_ruleset_tells_it() -> None:
    first: list[Event] = [BetsOpened(), BetsClosed(), *(CardDrawn(card) for card in ("9D", "KC", "TS", "2H"))]
    second: list[Event] = [BetsOpened(), BetsClosed(), *(CardDrawn(card) for card in ("9D", "9C", "KS", "KH"))]
    burn = [CardDrawn("2S")] * 9
    found = board_of(
        scoreboards.board, published(Baccarat(BaccaratOptions()), [ShoeStarted(8), *burn[:8], *first, *second])
    )
    assert isinstance(found, scoreboards.Baccarat)
    assert [(one.winner, one.points) for one in found.coups] == [("player", 9), ("tie", 9)]
    assert (found.coups[1].player_pair, found.coups[1].banker_pair) == (False, False)


@pytest.mark.parametrize(
    "ruleset", [AngolaBaccarat(AngolaBaccaratOptions()), AngolaBaccaratMacau(AngolaBaccaratMacauOptions())]
)
def test_angolas_baccarat_as_the_ruleset_tells_it(ruleset: Ruleset[Any]) -> None:
    """The card before the second coup is on no board."""
    first: list[Event] = [BetsOpened(), BetsClosed(), *(CardDrawn(card) for card in ("9D", "KC", "TS", "2H"))]
    second: list[Event] = [BetsOpened(), BetsClosed(), *(CardDrawn(card) for card in ("5D", "QD", "9C", "KS", "9H"))]
    found = board_of(scoreboards.board, published(ruleset, [ShoeStarted(8), *[CardDrawn("2S")] * 8, *first, *second]))
    assert isinstance(found, scoreboards.Baccarat)
    assert [(one.winner, one.points, one.player_pair) for one in found.coups] == [
        ("player", 9, False),
        ("banker", 8, False),
    ]


@pytest.mark.parametrize("ruleset", ["macau.roulette", "angola.american-roulette", "angola.french-roulette"])
def test_roulette_as_the_ruleset_tells_it(ruleset: str) -> None:
    events: list[Event] = []
    for pocket in ("17", "0", "17", "32"):
        events += [BetsOpened(), BetsClosed(), BallLaunched("clockwise", "anticlockwise"), BallLanded(pocket)]
    taken_back = RoundVoided("an object on the wheel")
    wheel = RULESETS[ruleset](RULESETS[ruleset].Options())
    found = board_of(scoreboards.board, published(wheel, [*events, taken_back]))
    assert isinstance(found, scoreboards.Roulette)
    assert [(one.pocket, one.colour) for one in found.last] == [("17", "black"), ("0", ""), ("17", "black")]
    assert found.hot == (Heat("17", "black", 2, 0),)
    assert found.spins == 3


def test_fantan_as_the_ruleset_tells_it() -> None:
    events: list[Event] = []
    for count in (4, 7, 13):
        events += [BetsOpened(), ButtonsSeparated(), BetsClosed(), ButtonsCounted(count)]
    found = board_of(scoreboards.board, published(Fantan(FantanOptions()), events))
    assert found == scoreboards.Outcomes(("1", "3", "4"), (("1", 1), ("3", 1), ("4", 1), ("2", 0)))


def test_craps_as_the_ruleset_tells_it() -> None:
    events: list[Event] = []
    for faces in ((2, 4), (3, 5), (5, 1), (6, 5), (2, 2), (3, 4), (4, 5)):
        events += [BetsOpened(), DiceThrown(faces), RoundPaid()]
    null: list[Event] = [BetsOpened(), DiceThrown((), valid=False, reason="a_die_off_the_table")]
    found = board_of(scoreboards.board, published(Craps(CrapsOptions()), [*events, *null]))
    assert isinstance(found, scoreboards.Craps)
    assert (found.point, found.made, found.lost) == (9, 1, 1)
    assert [one.total for one in found.throws] == [9, 7, 4, 11, 6, 8, 6]
    assert [(one.point, one.throws, one.end) for one in found.series] == [
        *((9, 1, ""), (4, 2, "seven_out"), (0, 1, "natural"), (6, 3, "point_made")),
    ]
    returned = board_of(
        scoreboards.board, published(Craps(CrapsOptions()), [*events, *null, BetsOpened(), RoundVoided("")])
    )
    assert isinstance(returned, scoreboards.Craps)
    assert (returned.point, returned.series[0].end) == (0, "void")


# ---- the other boards


def result(game: str, number: int, outcome: dict[str, Any]) -> dict[str, Any]:
    return {"round": f"t-1:2026-11-20:{number}", "ruleset": game, "outcome": outcome, "void": None, "demo": False}


def test_hot_and_cold_numbers() -> None:
    pockets = [str(number) for number in range(37)] + ["17", "17", "5", "5", "0", "20"]
    results = [result("macau.roulette", n, {"pocket": pocket}) for n, pocket in enumerate(pockets)]
    found = board_of(scoreboards.roulette, results)
    assert [(one.pocket, one.count) for one in found.hot] == [("5", 3), ("17", 3), ("20", 2), ("0", 2)]
    # all the rest came once: the longest ago is the coldest
    assert [one.pocket for one in found.cold] == ["1", "2", "3", "4"]
    assert [one.pocket for one in found.last[:3]] == ["20", "0", "5"]
    assert len(found.last) == 18


@given(st.lists(st.integers(0, 36), max_size=60))
def test_hot_is_never_rarer_than_cold(pockets: list[int]) -> None:
    found = board_of(
        scoreboards.roulette, [result("macau.roulette", n, {"pocket": str(pocket)}) for n, pocket in enumerate(pockets)]
    )
    counts = Counter(map(str, pockets))
    assert all(one.count == counts[one.pocket] >= 2 for one in found.hot)
    assert all(one.count == counts[one.pocket] for one in found.cold)
    if found.hot and found.cold:
        assert min(one.count for one in found.hot) >= min(one.count for one in found.cold)
    assert [spin.pocket for spin in found.last] == [str(pocket) for pocket in reversed(pockets)][:18]
    assert len(found.cold) == (4 if pockets else 0)


def test_the_wheel_says_which_numbers_are_red() -> None:
    given_ = result("macau.roulette", 1, {"pocket": "2", "colour": "red"}) | {"options": {"red": list(range(2, 37, 2))}}
    found = board_of(scoreboards.roulette, [given_])
    assert found.last == (Spin("t-1:2026-11-20:1", "2", "red"),)
    assert {one.pocket: one.colour for one in found.cold} == {"0": "", "1": "black", "3": "black", "4": "red"}


def test_dice_with_their_size_and_figures() -> None:
    found = board_of(
        scoreboards.board,
        [
            result("macau.cussec", 1, {"faces": [1, 2, 3], "total": 6, "triple": False, "size": "small"}),
            result("macau.cussec", 2, {"faces": [5, 5, 6], "total": 16, "triple": False, "size": "big"}),
            result("macau.cussec", 3, {"faces": [4, 4, 4], "total": 12, "triple": True}),
        ],
    )
    assert isinstance(found, scoreboards.Dice)
    assert [(one.total, one.size) for one in found.throws] == [(12, "triple"), (16, "big"), (6, "small")]
    assert (found.small, found.big, found.triple) == (1, 1, 1)


def test_french_bank_with_its_chances_and_throws() -> None:
    found = board_of(
        scoreboards.board,
        [
            result("angola.french-bank", 1, {"faces": [1, 2, 3], "total": 6, "chance": "small", "throws": 1}),
            result("angola.french-bank", 2, {"faces": [1, 1, 1], "total": 3, "chance": "aces", "throws": 7}),
            result("angola.french-bank", 3, {"faces": [4, 5, 6], "total": 15, "chance": "big", "throws": 2}),
            result("angola.french-bank", 4, {"faces": [4, 5, 6], "total": 15, "chance": "?", "throws": 2}),
        ],
    )
    assert isinstance(found, scoreboards.FrenchBank)
    assert [(one.chance, one.throws) for one in found.rounds] == [("big", 2), ("aces", 7), ("small", 1)]
    assert (found.aces, found.small, found.big) == (1, 1, 1)


def test_blackjack_in_short_words() -> None:
    outcome = {"totals": {"dealer": 23, "1.1": 20}, "blackjack": False, "bust": True}
    fates = {"1.1": "win", "1.2": "push", "2.1": "lose", "3.1": "surrender"}
    found = board_of(scoreboards.board, [result("macau.blackjack", 1, outcome | {"results": fates})])
    assert isinstance(found, scoreboards.Deals)
    assert found.deals == (scoreboards.Deal("t-1:2026-11-20:1", "bust", 23, won=1, tied=1, lost=2),)


def test_stud_poker_in_short_words() -> None:
    plain = {"opens": False, "hands": {}, "combinations": {}}
    found = board_of(
        scoreboards.stud_poker,
        [
            result(
                "macau.stud-poker",
                1,
                {
                    "opens": True,
                    "seats": {"seat_1": "wins", "seat_2": "loses", "seat_3": "folded"},
                    "combinations": {"dealer": "one_pair"},
                },
            ),
            result(
                "macau.stud-poker",
                2,
                plain | {"seats": {"seat_1": "not_opened"}, "combinations": {"dealer": "high_card"}},
            ),
            result("macau.stud-poker", 3, plain | {"seats": {"seat_1": "folded"}}),
            result(
                "angola.stud-poker",
                4,
                {
                    "opens": True,
                    "seats": {"seat_1": "ties", "seat_2": "forfeited", "seat_3": "loses"},
                    "combinations": {"dealer": "high_card"},
                },
            ),
        ],
    )
    assert [(one.dealer, one.won, one.tied, one.lost, one.folded) for one in found.deals] == [
        ("high_card", 0, 1, 2, 0),
        ("all_folded", 0, 0, 0, 1),
        ("not_opened", 1, 0, 0, 0),
        ("one_pair", 1, 0, 1, 1),
    ]


def test_a_table_without_results_or_without_a_game_has_no_board() -> None:
    assert board_of(scoreboards.board, []) is None
    assert board_of(scoreboards.board, [result("macau.something", 1, {})]) is None


def test_every_family_has_a_board_or_a_short_word_for_its_results() -> None:
    assert set(GAMES) >= set(RULESETS)
    assert set(scoreboards.BOARDS) <= {game.family for game in GAMES.values()}
    assert all(game.family in scoreboards.BOARDS or game.chip is not None for game in GAMES.values())
