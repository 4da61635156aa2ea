"""Macau blackjack's bets: arts. 13 and 14, the winning streaks of art. 13(5), and what is called when a round ends.

Called by the ruleset in `blackjack.py`; all functions are pure.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from rules.engine.ruleset import Bet, Push, Wager, Win
from rules.games.blackjack import DEALER, Compared, Hand, Hands, Play, count, perfect_pair, sevens, third_cards
from rules.games.cards import PIPS

Won: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Bet, odds, articles."""

STREAKS: Final = {f"winning_streak_{length}": length for length in (2, 3, 4, 5)}
PAYTABLE: Final = (
    Bet("main", "1; blackjack 3/2", "arts. 9, 10, 15, 18, 19", "the hand against the bank; comes back on a tie"),
    Bet("double", "1", "art. 17", "what a double adds to a hand; laid by the decision"),
    Bet("insurance", "2", "art. 12", "the bank, showing an ace, has blackjack"),
    Bet("any_pair", "11", "arts. 13(1), 14(1)", "the first two cards are a pair; again for each further pair"),
    Bet("sevens", "50, 150, 500 or 5000", "arts. 13(2), 14(2)", "two or three sevens, of several suits or of one"),
    Bet("over_13", "1", "arts. 13(3), 14(3)", "the first two cards count more than 13"),
    Bet("under_13", "1", "arts. 13(3), 14(3)", "the first two cards count less than 13"),
    Bet("perfect_pair", "5, 12 or 25", "arts. 13(4), 14(4)", "a pair: mixed, of one colour, of one suit"),
    Bet("winning_streak_2", "3", "arts. 13(5), 14(5)(1)", "the seat wins two rounds running"),
    Bet("winning_streak_3", "8", "arts. 13(5), 14(5)(2)", "the seat wins three rounds running"),
    Bet("winning_streak_4", "18", "arts. 13(5), 14(5)(3)", "the seat wins four rounds running"),
    Bet("winning_streak_5", "38", "arts. 13(5), 14(5)(4)", "the seat wins five rounds running"),
)
STREAK_PAYS: Final = {2: "3", 3: "8", 4: "18", 5: "38"}
# The kinds of art. 13; a player makes one of them a round.
KINDS: Final = {
    "any_pair": "any_pair",
    "sevens": "sevens",
    "over_13": "over_under",
    "under_13": "over_under",
    "perfect_pair": "perfect_pair",
    **dict.fromkeys(STREAKS, "winning_streak"),
}
FAMILIES: Final = tuple(bet.id for bet in PAYTABLE)
ALWAYS: Final = ("main", "double", "insurance")
# Art. 21(3) wants a permission of its own for these; edition 2004 does not know them.
PERMITTED: Final = ("perfect_pair", *STREAKS)
ACROSS: Final = ("any_pair", "sevens", "over_13", "under_13")


class Streak(Struct, frozen=True):
    """The open streak bets of a seat, and the rounds won since they were laid."""

    seat: int
    bets: tuple[Wager, ...]
    wins: int = 0


def is_main(bet: str) -> bool:
    """Art. 20(1): the bet on a hand, of whichever player on the seat."""
    return bet == "main" or bet.startswith("main:")


def stake_of(wagers: Iterable[Wager], seat: int) -> int:
    """The first bets on a seat, 0 where they are not known."""
    return sum(one.amount for one in wagers if one.seat == seat and one.hand == 1 and is_main(one.bet))


def added(wagers: tuple[Wager, ...], seat: int, number: int, bet: str) -> tuple[Wager, ...]:
    """Arts. 16(2), 17: what a split or a double lays: for each bettor as much as his first bet."""
    more = [
        Wager(seat, bet + one.bet[4:], one.amount, number)
        for one in wagers
        if one.seat == seat and one.hand == 1 and is_main(one.bet)
    ]
    return (*wagers, *more)


def on_two(one: str, two: str, ace: Literal["one", "free"]) -> tuple[Won, ...]:
    """What wins on the first two cards alone. Pairs and sevens go on after a split."""
    pips = PIPS[one] + PIPS[two]
    totals = {pips}
    if ace == "free":
        aces = (one[0] == "A") + (two[0] == "A")
        totals = {pips + 10 * more for more in range(aces + 1)}
    pays, item = perfect_pair(one, two)
    found = (
        ("over_13", "1" if max(totals) > 13 else "", ("13(3)", "14(3)")),
        ("under_13", "1" if min(totals) < 13 else "", ("13(3)", "14(3)")),
        ("perfect_pair", pays, (f"13(4)({item})", f"14(4)({item})")),
    )
    return tuple(bet for bet in found if bet[1])


def on_pair(mine: Hands, two: str, *, any_third: bool) -> tuple[Won, ...]:
    """What wins on a pair and what followed it. Every split was of a pair; hands may end with further ones."""
    pairs = len(mine) - 1 + sum(hand.cards[0][0] == hand.cards[1][0] for hand in mine)
    found: list[Won] = [("any_pair", str(11 * pairs), ("13(1)", "14(1)"))]
    thirds: tuple[str, ...] = ("",)
    if len(mine) > 1:
        thirds = third_cards(mine)
    elif any_third and len(mine[0].cards) > 2:
        thirds = mine[0].cards[2:3]
    # Of several it may have been what pays least; where a bet rests on it, it was asked for.
    pays, item = min((sevens((mine[0].cards[0], two), third) for third in thirds), key=lambda found: found[1])
    if pays:
        found.append(("sevens", pays, (f"13(2)({1 if item < 3 else 2})", f"14(2)({item})")))
    return tuple(found)


def streak_ends(
    streaks: tuple[Streak, ...], compared: list[Compared], *, absent: Literal["lost", "stand"]
) -> tuple[tuple[Streak, ...], tuple[Wager, ...], list[Win], list[str]]:
    """Arts. 13(5), 16(7), 11(2), 18(3): where each button goes; the bets that are decided, those that win, articles."""
    open_: list[Streak] = []
    decided: list[Wager] = []
    wins: list[Win] = []
    law: list[str] = []
    for streak in streaks:
        mine = [one for one in compared if one.hand.seat == streak.seat]
        balance, split = sum(one.won for one in mine), len(mine) > 1
        if not mine:
            law.append("13(5)(2)(vi)")
            if absent == "lost":
                decided += streak.bets
            else:
                open_.append(streak)
        elif any(one.hand.ended == "surrender" for one in mine):
            law.append("18(3)")
            decided += streak.bets
        elif balance < 0:
            law.append("16(7)(3)" if split else "13(5)(2)(ii)")
            decided += streak.bets
        elif balance == 0:
            law.append("16(7)(2)" if split else "11(2)")
            open_.append(streak)
        else:
            law.append("16(7)(1)" if split else "13(5)(2)(iii)")
            reached = streak.wins + 1
            for bet in streak.bets:
                if STREAKS[bet.bet] == reached:
                    law += ("13(5)(2)(i)", f"14(5)({reached - 1})")
                    wins.append(Win(bet.bet, STREAK_PAYS[reached], seat=streak.seat))
                    decided.append(bet)
            if left := tuple(bet for bet in streak.bets if STREAKS[bet.bet] > reached):
                open_.append(Streak(streak.seat, left, reached))
    return tuple(open_), tuple(decided), wins, law


# ---- the hands

# The article by which a hand ends, in the words of House.compare.
WHY: Final = {
    "bust": "7(2)",
    "surrender": "18(1)",
    "even_money": "10(3)",
    "five_cards": "19(1)",
    "special": "15",
    "both_blackjack": "11(1)(1)",
    "blackjack": "10(2)",
    "blackjack_beats_21": "10(5)",
    "bank_blackjack": "10(6)",
    "twenty_one": "10(4)",
    "total": "9",
    "tie": "11(1)(2)",
    "double_returned": "17(3)",
    "double_11_returned": "10(7)",
    "one_bet_lost": "16(6)",
}


def hands_won(
    compared: list[Compared], wagers: tuple[Wager, ...], bettors: int
) -> tuple[list[Win], list[Win], list[str | Push]]:
    """What the hands win, what of a bet given up comes back, and what comes back whole."""
    wins: list[Win] = []
    parts: list[Win] = []
    pushes: list[str | Push] = []
    for one in compared:
        hand = one.hand
        for bet, pays in (("main", one.main), ("double", one.double)) if hand.doubled else (("main", one.main),):
            for name in _names(wagers, bettors, hand.seat, bet):
                if pays == "0":
                    pushes.append(Push(name, hand.seat, hand.number))
                elif pays == "-1/2":
                    parts.append(Win(name, pays, seat=hand.seat, hand=hand.number))
                elif pays:
                    wins.append(Win(name, pays, seat=hand.seat, hand=hand.number))
    return wins, parts, pushes


def _names(wagers: tuple[Wager, ...], bettors: int, seat: int, bet: str) -> tuple[str, ...]:
    """The bet of the seat, and those of the others who bet on it, or may have."""
    if bettors == 1:
        return (bet,)
    others = {one.bet[4:] for one in wagers if one.seat == seat and is_main(one.bet)}
    if not others:  # it was not told which there are
        others = {f":{place}" for place in range(2, bettors + 1)}
    return (bet, *(bet + place for place in sorted(others - {""})))


def outcome_of(play: Play, compared: list[Compared], total: int, *, blackjack: bool) -> dict[str, Any]:
    hands = [one.hand for one in compared]
    outcome: dict[str, Any] = {
        "hands": {DEALER: play.bank, **{hand.name: hand.cards for hand in hands}},
        "totals": {DEALER: total, **{hand.name: count(hand.cards)[0] for hand in hands}},
        "ended": {hand.name: hand.ended for hand in hands},
        "results": {one.hand.name: one.result for one in compared},
        "blackjack": blackjack,
        "bust": total > 21,
    }
    if doubled := [hand.name for hand in hands if hand.doubled]:
        outcome["doubled"] = doubled
    return outcome


# ---- words

# What is called of a hand and of the bank, in Portuguese, Traditional Chinese and English.
LANGUAGES: Final = ("pt", "zh-Hant", "en")
_RESULTS: Final = {
    "win": ("ganha", "贏", "wins"),
    "lose": ("perde", "輸", "loses"),
    "push": ("empate", "和", "tie"),
    "surrender": ("desistência", "放棄", "surrendered"),
    "returned": ("devolvida", "退回", "comes back"),
}
_NATURAL: Final = ("Black Jack", "Black Jack", "Black Jack")


def _place(hand: Hand) -> tuple[str, str, str]:
    seat = (f"Lugar {hand.seat}", f"第{hand.seat}門", f"Seat {hand.seat}")
    if not hand.split:
        return seat
    number = hand.number
    return f"{seat[0]}, mão {number}", f"{seat[1]}第{number}手", f"{seat[2]}, hand {number}"


def _points(total: int) -> tuple[str, str, str]:
    return str(total), f"{total}點", str(total)


def called(hand: Hand) -> dict[str, str]:
    """Art. 6(5): the total of the hand whose decision is awaited."""
    place, total = _place(hand), _points(count(hand.cards)[0])
    return {language: f"{place[n]}: {total[n]}" for n, language in enumerate(LANGUAGES)}


def announced(compared: list[Compared], total: int, *, blackjack: bool) -> dict[str, str]:
    """Art. 7(1): the totals of the bank and of the seats, and how each ends."""
    pt, zh, en = _NATURAL if blackjack else _points(total)
    lines = ([f"Banca {pt}"], [f"莊家{zh}"], [f"Bank {en}"])
    for one in compared:
        place = _place(one.hand)
        points = _NATURAL if one.hand.ended == "blackjack" else _points(count(one.hand.cards)[0])
        result = _RESULTS[one.result]
        for n, line in enumerate(lines):
            line.append(f"{place[n]}: {points[n]}, {result[n]}" if n != 1 else f"{place[1]}{points[1]}，{result[1]}")
    return {"pt": "; ".join(lines[0]), "zh-Hant": "；".join(lines[1]), "en": "; ".join(lines[2])}
