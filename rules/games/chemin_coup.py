"""The cards of a coup of chemin de fer: the turns, corrections of draws, and the totals after faults. Pure.

`rules/angola/chemin_de_fer.py` calls it. Totals and draws of Decreto Executivo 261/22, article 12; the readings:

- 12(68)(d): the print has ten cells in each row where eleven are needed, and no head for 9. One column of draws is lost
  in all rows alike; `PRINTED` has the rows as printed, `TABLE` those that are played.
- 12(106)(a): an 8 or 9 that was not shown in time counts as any other total: the banker may draw against it, and a card
  that the punter asked for is his.
- 12(106)(c): where the punter changed his word, the banker decides whether he gives the card. With a total of 0 the
  banker has no choice: the last word counts.
- 12(72): a draw that the table does not have is put right once the cards are shown: the drawn cards go to the hands
  that the table names, in their order, and the others are burnt.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from rules.games.baccarat import NO_CARD
from rules.games.cards import POINTS, points

Choice: TypeAlias = Literal["draws", "stands", "free"]
Hand: TypeAlias = tuple[str, ...]

# T: draws, F: stands, O: as he likes; by the punter's third card 0 to 8 or 9, at last: the punter took none.
PRINTED: Final = {3: "TTTTTTTFO T", 4: "FFTTTTTFF T", 5: "FFFFOTTFF T", 6: "FFFFFFTFF F"}
TABLE: Final = {3: "TTTTTTTTFO T", 4: "FFTTTTTTFF T", 5: "FFFFOTTTFF T", 6: "FFFFFFTTFF F"}
_CHOICES: Final[Mapping[str, Choice]] = {"T": "draws", "F": "stands", "O": "free"}
_BY_SIZE: Final[Mapping[int, Choice]] = {2: "stands", 3: "draws"}

SIDES: Final = ("player", "banker")
NATURAL: Final = 8
BY_HANDS: Final = ("105d", "105e", "105f", "105g", "105h", "105i", "105j")
"""Faults of the banker whose totals `faulty` counts from the hands as they lie."""


class Coup(Struct, frozen=True):
    """The cards in the order in which they left the shoe, and the words of punter and banker.

    `words`: of the punter ("draw", "stand", "show"), as often as he spoke. `gives`: the banker's answer where he
    changed his word. `word`: the banker's word about his own third card. `free`: under banco alone both draw as
    they like (12(71)).
    `by_table`: the banker has no choice (12(103), 12(105)(b)). `shown`: whose first cards lie open.
    """

    cards: Hand = ()
    words: tuple[str, ...] = ()
    gives: str = ""
    word: str = ""
    free: bool = False
    by_table: bool = False
    shown: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The punter's word that counts, as far as it may be public."""
        if self.gives:
            return "draw" if self.gives == "give" else "stand"
        return self.words[-1] if self.words else ""


class Count(Struct, frozen=True):
    """The count of a coup's cards. `due`: the side that still gets a card, or "choice" for the banker's word.

    `burnt`: cards that are of neither hand; `redone`: a draw was put right.
    """

    player: Hand
    banker: Hand
    burnt: Hand = ()
    due: Literal["", "player", "banker", "choice"] = ""
    redone: bool = False
    natural: bool = False
    forgotten: bool = False

    @property
    def totals(self) -> tuple[int, int]:
        """The totals of punter and banker."""
        return points(self.player), points(self.banker)

    @property
    def winner(self) -> Literal["player", "banker", "tie"]:
        """The winner. By 12(106)(b) a 9 that was not shown loses to a shown 8."""
        player, banker = self.totals
        if self.forgotten or banker > player:
            return "banker"
        return "player" if player > banker else "tie"


def punter_rule(total: int) -> Choice:
    """Art. 12(65). An 8 or 9 is shown, and draws no card."""
    return "draws" if total < 5 else "free" if total == 5 else "stands"


def banker_rule(total: int, third: int) -> Choice:
    """Art. 12(68), against a punter who did not show. `third`: of the punter, in points, or NO_CARD."""
    if total not in TABLE:
        return "draws" if total in (0, 1, 2) else "stands"
    return _CHOICES[TABLE[total][third if third != NO_CARD else -1]]


def _asks(coup: Coup, player: int, banker: int) -> bool:
    """Whether the punter's hand has a third card, now that all is known."""
    said, changed = coup.said, len(coup.words) > 1
    if changed and player == 5:
        said = coup.words[0]  # 12(106)(d)
    elif changed and banker == 0:
        said = coup.words[-1]
    by_word = changed and banker and player != 5  # 12(106)(c): the banker has given the card, or refused it
    rule = punter_rule(player)
    if coup.free or by_word or player >= NATURAL or rule == "free":
        return said == "draw"
    return rule == "draws"


def _dealt(cards: Hand) -> tuple[Hand, Hand]:
    """The first two cards of each: 12(63)."""
    return (cards[0], cards[2]), (cards[1], cards[3])


def count(coup: Coup) -> Count:
    """The hands by the rules, from cards that are all known: at least four."""
    (player, banker), rest = _dealt(coup.cards), coup.cards[4:]
    mine, his = points(player), points(banker)
    shows = coup.said == "show" and mine >= NATURAL
    if shows or his >= NATURAL:
        forgotten = mine == 9 and his == NATURAL and not shows
        return Count(player, banker, rest, redone=bool(rest), natural=True, forgotten=forgotten)
    third, redone = NO_CARD, False
    if _asks(coup, mine, his):
        if not rest:
            return Count(player, banker, due="player", redone=True)
        player, third, rest = (*player, rest[0]), POINTS[rest[0]], rest[1:]
        redone = coup.said != "draw"
    else:
        redone = coup.said == "draw"
    rule = banker_rule(his, third)
    if coup.free and his and not coup.by_table:
        rule = "free"
    if rule == "free":
        if not (coup.by_table or coup.word or rest):
            return Count(player, banker, due="choice", redone=redone)
        rule = "draws" if coup.by_table or coup.word != "stand" else "stands"
    if rule == "draws":
        if not rest:
            return Count(player, banker, due="banker", redone=redone)
        banker, rest = (*banker, rest[0]), rest[1:]
    return Count(player, banker, rest, redone=redone or bool(rest))


def next_of(coup: Coup) -> tuple[str, tuple[str, ...]]:
    """The next step by public knowledge: ("card", (side,)), (side, its words), or ("", ()) at the end.

    It does not depend on hidden cards: the punter has the same words with every hand.
    """
    cards, said = coup.cards, coup.said
    if len(cards) < 4:
        return "card", (SIDES[len(cards) % 2],)
    if not said:
        return "player", ("show", "draw", "stand")
    if "banker" not in coup.shown:
        return "banker", ("show",)
    if len(coup.words) > 1 and not coup.gives and "player" not in coup.shown:
        return "banker", ("give", "refuse")
    if "player" in coup.shown:
        due = count(coup).due
        return ("banker", ("draw", "stand")) if due == "choice" else ("card", (due,)) if due else ("", ())
    his = points(_dealt(cards)[1])
    asked = said == "draw"
    if his < NATURAL:
        if asked and len(cards) == 4:
            return "card", ("player",)
        rule = banker_rule(his, POINTS[cards[4]] if asked else NO_CARD)
        if coup.free and his and not coup.by_table:
            rule = "free"
        if len(cards) == 4 + asked and rule != "stands":
            if rule == "free" and not (coup.word or coup.by_table):
                return "banker", ("draw", "stand")
            if rule == "draws" or coup.by_table or coup.word == "draw":
                return "card", ("banker",)
    return "player", ("show",)


def allowed(coup: Coup, player: Hand, banker: Hand) -> bool:
    """Whether the table of third cards allows these entered hands at the end of a coup."""
    if {len(player), len(banker)} - {2, 3}:
        return False
    mine, his, two = points(player[:2]), points(banker[:2]), len(player) == len(banker) == 2
    if his >= NATURAL or (mine >= NATURAL and (two or coup.said in ("", "show"))):
        return two
    third = POINTS[player[2]] if len(player) == 3 else NO_CARD
    by_word = coup.free or mine >= NATURAL or (len(coup.words) > 1 and his)
    asks = "free" if by_word else punter_rule(mine)
    draws = "free" if coup.free and his else banker_rule(his, third)
    return all(rule in ("free", _BY_SIZE[len(hand)]) for rule, hand in ((asks, player), (draws, banker)))


# ---- faults: art. 12(105)


def best_of(cards: Hand, *sizes: int) -> int:
    """The highest total of `sizes` of the cards."""
    return max(points(chosen) for size in sizes for chosen in combinations(cards, size))


def lowest_of(cards: Hand, size: int) -> int:
    """The lowest total of `size` of the cards."""
    return min(points(chosen) for chosen in combinations(cards, size))


def faulty(fault: str, player: Hand, banker: Hand) -> tuple[int, int] | None:
    """Both totals by the paragraph of the fault, from the hands as they lie; None where they do not fit it."""
    sizes, mine, his = (len(player), len(banker)), points(player), points(banker)
    first = points(banker[:2])
    match fault, sizes:
        case "105d", (2 | 3, 3):
            return mine, 0
        case "105d", (2 | 3, 4):
            return mine, POINTS[banker[3]]
        case "105e", (2 | 3, 4):
            return mine, lowest_of(banker, 3)
        case "105f", (3, 2 | 3) | (2, 3):
            return mine, his
        case "105g", (3, 2):
            return best_of(player, 2, 3), his
        case "105g", (3, 3) if first not in (7, 8):
            return best_of(player, 2, 3), his
        case "105h", (4, 2 | 3):
            return best_of(player, 3), his
        case "105i", (_, 2):
            return 9, his
        case ("105j", (_, 2)) | ("105j", (_, 3)) if sizes[1] == 2 or first != 7:
            return 9, his
        case _:
            return None
