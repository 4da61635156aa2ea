"""Macau blackjack's bets: arts. 13 and 14, the winning streaks of art. 13(5), and the article of each end of a hand.

Called by the ruleset in `blackjack.py`; all functions are pure.
"""

from typing import Final, Literal, TypeAlias

from rules.engine.ruleset import Bet, Wager, Win
from rules.games.blackjack import Compared, Hands, perfect_pair, sevens, third_cards
from rules.games.blackjack_stakes import Streak
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
# Art. 21(3) requires a permission of its own for these; edition 2004 does not have them.
PERMITTED: Final = ("perfect_pair", *STREAKS)
ACROSS: Final = ("any_pair", "sevens", "over_13", "under_13")


def on_two(one: str, two: str, ace: Literal["one", "free"]) -> tuple[Won, ...]:
    """The wins on the first two cards alone. Pairs and sevens go on after a split."""
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
    """The wins on a pair and on the cards after it. Every split was of a pair; hands may end with further ones."""
    pairs = len(mine) - 1 + sum(hand.cards[0][0] == hand.cards[1][0] for hand in mine)
    found: list[Won] = [("any_pair", str(11 * pairs), ("13(1)", "14(1)"))]
    thirds: tuple[str, ...] = ("",)
    if len(mine) > 1:
        thirds = third_cards(mine)
    elif any_third and len(mine[0].cards) > 2:
        thirds = mine[0].cards[2:3]
    # Of several candidates the one that pays least counts; entered hands are refused where a bet depends on it.
    pays, item = min((sevens((mine[0].cards[0], two), third) for third in thirds), key=lambda found: found[1])
    if pays:
        found.append(("sevens", pays, (f"13(2)({1 if item < 3 else 2})", f"14(2)({item})")))
    return tuple(found)


def streak_ends(
    streaks: tuple[Streak, ...], compared: list[Compared], *, absent: Literal["lost", "stand"]
) -> tuple[tuple[Streak, ...], tuple[Wager, ...], list[Win], list[str]]:
    """Arts. 13(5), 16(7), 11(2), 18(3): the streaks after the round; the decided bets, the winning bets, the
    articles.
    """
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

# The article of each rule, by its name in the round; the ends of a hand are named as in House.compare.
ARTICLES: Final = {
    "bank": "6(1)",
    "before_deal": "6(5)",
    "bets": "13",
    "deal": "5(1)",
    "decision": "6(3)",
    "decks": "1(2)",
    "double": "17(1)",
    "exposed": "5(1)(1)",
    "face_up": "5(1)(1)",
    "hit": "6(4)",
    "insurance": "12(1)",
    "insurance_lost": "12(3)",
    "insurance_won": "12(2)",
    "peek": "5(2)(3)(3)",
    "returned": "2(2)(4)",
    "seat": "3(1)",
    "split": "16",
    "split_amount": "16(2)",
    "white_card": "1(3)",
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
