"""The players' scoreboards, from the last results of a table: values, not HTML.

A board is made anew from the list each time, so a correction needs no undoing. Results are oldest first, as they were
published: a corrected one follows the superseded one and replaces it; void rounds and demonstrations are on no board.
Unreadable results are left out.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daemon.console.games import GAMES
from protocols.contract.facts import (
    BaccaratFacts,
    BlackjackFacts,
    CrapsFacts,
    F,
    FrenchBankFacts,
    RouletteFacts,
    RoundFacts,
    ShakenDiceFacts,
    StudPokerFacts,
)
from protocols.contract.results import BadRound, Result, facts_as
from rules.facts import facts_of_result

ROWS: Final = 6
NUMBERS_SHOWN: Final = 18
SERIES_SHOWN: Final = 8
HOT: Final = 4
# The red numbers of a wheel whose options name none.
RED: Final = frozenset((1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36))

WINNERS: Final = ("banker", "player", "tie")


def standing(results: Iterable[Result]) -> list[Result]:
    """The results that count, one for each round, in the order in which the rounds first ended."""
    return [one for one in _latest(results) if one.void is None and not one.demo]


def _latest(results: Iterable[Result]) -> list[Result]:
    """Each round once, as it was last corrected, void ones too."""
    last: dict[str, Result] = {}
    for result in results:
        name = result.supersedes or result.round
        if name in last and not result.supersedes:
            continue  # sent again
        last[name] = result
    return [*last.values()]


# ---- baccarat


class Coup(Struct, frozen=True):
    """One coup, for the bead plate: who won with how many points, and the pairs."""

    round: str
    winner: str
    points: int
    player_pair: bool = False
    banker_pair: bool = False


class Cell(Struct, frozen=True):
    """One place of the big road. `winner` is empty where a shoe began with ties and has no winner yet.

    `rounds`: its coups, including the ties on it; the pairs are those of the coup that was won.
    """

    column: int
    row: int
    winner: str
    ties: int = 0
    player_pair: bool = False
    banker_pair: bool = False
    rounds: tuple[str, ...] = ()


class Baccarat(Struct, frozen=True):
    """The coups of the shoe in play, which fill the bead plate by columns of six, and the big road."""

    coups: tuple[Coup, ...]
    road: tuple[Cell, ...]
    banker: int
    player: int
    tie: int

    def bead(self, columns: int) -> list[list[Coup | None]]:
        """The last `columns` columns of the bead plate, as ROWS rows."""
        start = max(0, -(-len(self.coups) // ROWS) - columns) * ROWS
        shown = dict(enumerate(self.coups[start:]))
        return [[shown.get(column * ROWS + row) for column in range(columns)] for row in range(ROWS)]

    def big_road(self, columns: int) -> list[list[Cell | None]]:
        """The last `columns` columns of the big road, as ROWS rows."""
        width = max((cell.column for cell in self.road), default=-1) + 1
        start = max(0, width - columns)
        places = {(cell.column - start, cell.row): cell for cell in self.road}
        return [[places.get((column, row)) for column in range(columns)] for row in range(ROWS)]


def baccarat(results: Iterable[Result]) -> Baccarat:
    """The boards of the shoe that the last result is of; a shuffler that deals has one shoe without an end."""
    coups: list[Coup] = []
    for name, facts in _read(results, BaccaratFacts, "winner", "totals"):
        if facts.winner not in WINNERS:
            continue
        if coups and not _goes_on(coups[-1].round, name):
            coups.clear()
        points = facts.totals.get("banker" if facts.winner == "banker" else "player", 0)
        coups.append(Coup(name, facts.winner, points, facts.player_pair, facts.banker_pair))
    won = Counter(coup.winner for coup in coups)
    return Baccarat(tuple(coups), big_road(coups), won["banker"], won["player"], won["tie"])


def big_road(coups: Sequence[Coup]) -> tuple[Cell, ...]:
    """A column for each run of one winner, downwards; at the bottom or above an occupied place it turns right for good.

    A tie takes no place: it is counted on the coup before it, and before the first winner on the first place.
    """
    cells: list[Cell] = []
    taken: set[tuple[int, int]] = set()
    top, turned = -1, False
    for coup in coups:
        last = cells[-1] if cells else None
        if coup.winner == "tie":
            if last is None:
                cells.append(Cell(0, 0, "", 1, rounds=(coup.round,)))
            else:
                cells[-1] = replace(last, ties=last.ties + 1, rounds=(*last.rounds, coup.round))
            continue
        ties = 0
        rounds: tuple[str, ...] = (coup.round,)
        if last is not None and not last.winner:
            ties, rounds = last.ties, (*last.rounds, coup.round)
            cells.pop()
            last = None
        if last is None or coup.winner != last.winner:
            top, turned, row = top + 1, False, 0
            while (top, 0) in taken:
                top += 1
            column = top
        else:
            below = last.row + 1
            turned = turned or below == ROWS or (last.column, below) in taken
            column, row = (last.column + 1, last.row) if turned else (last.column, below)
        taken.add((column, row))
        cells.append(Cell(column, row, coup.winner, ties, coup.player_pair, coup.banker_pair, rounds))
    return tuple(cells)


def _goes_on(before: str, name: str) -> bool:
    """Whether a coup is of the same shoe as the one before, by their names: table, day, shoe and coup.

    The shoe under way at midnight is the first of the new day, and its coups continue to count.
    """
    (was_day, was_shoe, was), (day, shoe, number) = _place(before), _place(name)
    return number > was and shoe == (was_shoe if day == was_day else "1")


def _place(name: str) -> tuple[str, str, int]:
    day, shoe, number = ("", "", *name.rsplit(":", 2))[-3:]
    return day, shoe, int(number) if number.isdecimal() else 0


# ---- roulette


class Spin(Struct, frozen=True):
    """One number; `colour` is empty for a zero."""

    round: str
    pocket: str
    colour: str


class Heat(Struct, frozen=True):
    """The count of a number in the results, and the number of spins since its last one; None: not in them."""

    pocket: str
    colour: str
    count: int
    ago: int | None


class Roulette(Struct, frozen=True):
    """The last numbers, latest first, and of all `spins` results the hot and the cold ones."""

    last: tuple[Spin, ...]
    hot: tuple[Heat, ...]
    cold: tuple[Heat, ...]
    spins: int


def roulette(results: Sequence[Result]) -> Roulette:
    """Hot numbers came at least twice, the most frequent first; cold ones are the rarest, the longest ago first."""
    spins = [Spin(name, facts.pocket, facts.colour) for name, facts in _read(results, RouletteFacts, "pocket")]
    counts = Counter(spin.pocket for spin in spins)
    ago = {spin.pocket: len(spins) - 1 - place for place, spin in enumerate(spins)}
    red = red_of(results)
    heats = [
        Heat(pocket, "" if pocket == "0" else "red" if number in red else "black", counts[pocket], ago.get(pocket))
        for number, pocket in ((number, str(number)) for number in range(37))
    ]
    hot = sorted((one for one in heats if one.count > 1), key=lambda one: (-one.count, one.ago))
    cold = sorted(heats, key=lambda one: (one.count, -1 if one.ago is None else -one.ago)) if spins else []
    return Roulette(tuple(spins[: -NUMBERS_SHOWN - 1 : -1]), tuple(hot[:HOT]), tuple(cold[:HOT]), len(spins))


class _Red(Struct, frozen=True):
    red: frozenset[int] = RED


def red_of(results: Sequence[Result]) -> frozenset[int]:
    """The red numbers of the wheel, by the options of the last result."""
    try:
        return msgspec.json.decode(results[-1].options, type=_Red).red if results else RED
    except msgspec.DecodeError:
        return RED


# ---- dice


class Throw(Struct, frozen=True):
    """Three dice; `figures` where the game has figures on them."""

    round: str
    faces: tuple[int, ...]
    total: int
    size: str
    figures: tuple[str, ...] = ()


class Dice(Struct, frozen=True):
    """The throws, latest first, and the counts of small, big and triple."""

    throws: tuple[Throw, ...]
    small: int
    big: int
    triple: int


def dice(results: Iterable[Result]) -> Dice:
    """The board of dice; a triple is neither small nor big."""
    throws = []
    for name, facts in _read(results, ShakenDiceFacts, "faces", "total", "triple"):
        size = facts.size or "triple"
        throws.append(Throw(name, facts.faces, facts.total or 0, size, facts.figures))
    sizes = Counter(throw.size for throw in throws)
    return Dice(tuple(reversed(throws)), sizes["small"], sizes["big"], sizes["triple"])


# ---- French bank


class Decided(Struct, frozen=True):
    """The throw that decided a round: its chance, and how many throws the round took."""

    round: str
    chance: str
    faces: tuple[int, ...]
    throws: int


class FrenchBank(Struct, frozen=True):
    """The rounds, latest first, and how many of each chance."""

    rounds: tuple[Decided, ...]
    aces: int
    small: int
    big: int


def french_bank(results: Iterable[Result]) -> FrenchBank:
    """The board of French bank; void rounds are left out."""
    rounds = [
        Decided(name, facts.chance, facts.faces, facts.throws)
        for name, facts in _read(results, FrenchBankFacts, "chance", "faces", "throws")
        if facts.chance in ("aces", "small", "big")
    ]
    often = Counter(one.chance for one in rounds)
    return FrenchBank(tuple(reversed(rounds)), often["aces"], often["small"], often["big"])


# ---- craps


class Roll(Struct, frozen=True):
    """One throw of a series; `what` is its effect on the series."""

    round: str
    faces: tuple[int, ...]
    total: int
    what: str


class Series(Struct, frozen=True):
    """A shooter's throws from the first to the decision. `point` is 0 where the first throw decided.

    `end` is the last throw's `what`; empty while the series goes on, "void" where all bets were given back.
    """

    point: int
    throws: int
    end: str = ""


class Craps(Struct, frozen=True):
    """The point on the marker, 0 for none; throws and series, latest first; how often the point was made or lost."""

    point: int
    throws: tuple[Roll, ...]
    series: tuple[Series, ...]
    made: int
    lost: int


def craps(results: Iterable[Result]) -> Craps:
    """The board of craps. A null throw changes nothing; a void round ends its series."""
    throws: list[Roll] = []
    series: list[Series] = []
    point = 0
    for result in _latest(results):
        if result.void is not None:
            if result.void.bets == "returned":
                point = 0
                if series and not series[-1].end:
                    series[-1] = replace(series[-1], end="void")
            continue
        for name, facts in _read([result], CrapsFacts, "faces", "total", "series", "next_point"):
            if facts.come_out or not series or series[-1].end:
                series.append(Series(facts.point, 0))
            one, point = series[-1], facts.next_point
            end = "" if point else facts.series
            series[-1] = Series(point or one.point, one.throws + 1, end)
            throws.append(Roll(name, facts.faces, facts.total or 0, facts.series))
    ends = Counter(one.end for one in series)
    last = throws[: -NUMBERS_SHOWN - 1 : -1]
    return Craps(point, tuple(last), tuple(series[: -SERIES_SHOWN - 1 : -1]), ends["point_made"], ends["seven_out"])


# ---- blackjack and stud poker


class Deal(Struct, frozen=True):
    """How a round of cards ended: the dealer's side as the key of a word with its `total`, and hands by their fate."""

    round: str
    dealer: str
    total: int = 0
    won: int = 0
    tied: int = 0
    lost: int = 0
    folded: int = 0


class Deals(Struct, frozen=True):
    """The rounds, latest first."""

    deals: tuple[Deal, ...]


def blackjack(results: Iterable[Result]) -> Deals:
    """The board of blackjack. `dealer` is blackjack, bust or total."""
    deals = []
    for name, facts in _read(results, BlackjackFacts, "totals", "results"):
        fates = Counter(facts.results.values())
        dealer = "blackjack" if facts.blackjack else "bust" if facts.bust else "total"
        total = facts.totals.get("dealer", 0)
        # Every word except "win" and "push" is a loss: surrender, lose.
        lost = len(facts.results) - fates["win"] - fates["push"]
        deals.append(Deal(name, dealer, total, fates["win"], fates["push"], lost))
    return Deals(tuple(reversed(deals)))


def stud_poker(results: Iterable[Result]) -> Deals:
    """The board of stud poker. `dealer` is not_opened, all_folded or his combination. If he did not open, antes won."""
    deals = []
    for name, facts in _read(results, StudPokerFacts, "opens", "seats"):
        fates = Counter(facts.seats.values() if isinstance(facts.seats, dict) else ())
        won = fates["wins"] + fates["not_opened"]
        held = facts.combinations.get("dealer", "")
        dealer = held if facts.opens else "not_opened" if held else "all_folded"
        lost = fates["loses"] + fates["forfeited"]
        deals.append(Deal(name, dealer, 0, won, fates["ties"], lost, fates["folded"]))
    return Deals(tuple(reversed(deals)))


# ---- games without a board of their own


class Outcomes(Struct, frozen=True):
    """The short words of the last results, latest first; and the count of each word in all results."""

    last: tuple[str, ...]
    often: tuple[tuple[str, int], ...]


def outcomes(results: Sequence[Result], word: Callable[[RoundFacts], str], known: Sequence[str] = ()) -> Outcomes:
    """The board of short words: the most frequent first; equally frequent ones by the alphabet.

    The `known` words are counted also where they never came.
    """
    words = []
    for one in standing(results):
        with contextlib.suppress(BadRound):  # written by another version of feltd
            words.append(word(facts_of_result(one)))
    counts = Counter(dict.fromkeys(known, 0))
    counts.update(words)
    often = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return Outcomes(tuple(words[: -NUMBERS_SHOWN - 1 : -1]), tuple(often))


Board: TypeAlias = Baccarat | Roulette | Dice | FrenchBank | Craps | Deals | Outcomes

BOARDS: Final[Mapping[str, Callable[[list[Result]], Board]]] = {
    "baccarat": baccarat,
    "roulette": roulette,
    "shaken_dice": dice,
    "french_bank": french_bank,
    "craps": craps,
    "blackjack": blackjack,
    "stud_poker": stud_poker,
}


def kind(board: Board) -> str:
    """The name of the macro that draws it."""
    return type(board).__name__.lower()


def board(results: Iterable[Result]) -> Board | None:
    """The board of a table's game, as its last result names it.

    A family without its own board has the one of short words. None: the game has neither, or no results.
    """
    kept = list(results)
    game = GAMES.get(kept[-1].ruleset) if kept else None
    if game is None:
        return None
    of_game = [one for one in kept if one.ruleset == kept[-1].ruleset]
    if game.family in BOARDS:
        return BOARDS[game.family](of_game)
    return outcomes(of_game, game.chip, game.chips) if game.chip is not None else None


def _read(results: Iterable[Result], kind: type[F], *needed: str) -> Iterator[tuple[str, F]]:
    """The name and the facts of each round that counts and has the facts that are needed."""
    for result in standing(results):
        if all(name in result.outcome for name in needed):
            with contextlib.suppress(BadRound):  # written by another version of feltd
                yield result.round, facts_as(kind, result.outcome)
