"""The stakes of a blackjack round: the bettors of a hand and its decider, the prizes of the hands, and the calls.

Called by the rulesets of the texts; all functions are pure. The bet of a seat is `main`; `main:n` are those of others.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from rules.engine.ruleset import Push, Wager, Win
from rules.games.blackjack import DEALER, Compared, Hand, Play

Decides: TypeAlias = Literal["seated", "seated_or_nearest", "highest", "seated_or_highest"]
"""The bettor who decides where several bet on one seat; of equal bets in `seated_or_highest` the lowest number."""


class Streak(Struct, frozen=True):
    """Bets of a seat that stay open over rounds, and the rounds won since they were laid."""

    seat: int
    bets: tuple[Wager, ...]
    wins: int = 0


def is_main(bet: str) -> bool:
    """Whether it is a bet on a hand, by any player on the seat."""
    return bet == "main" or bet.startswith("main:")


def stake_of(wagers: Iterable[Wager], seat: int, bet: str = "") -> int:
    """The sum of the first bets on a seat, or the bet named `bet`; 0 where unknown."""
    return sum(
        one.amount for one in wagers if one.seat == seat and one.hand == 1 and is_main(one.bet) and bet in ("", one.bet)
    )


def added(wagers: tuple[Wager, ...], seat: int, number: int, bet: str, by: str = "") -> tuple[Wager, ...]:
    """The bets with those that a split or double adds: for each bettor, or for the bet `by`, as much as the first
    bet.
    """
    more = [
        Wager(seat, bet + one.bet[4:], one.amount, number)
        for one in wagers
        if one.seat == seat and one.hand == 1 and is_main(one.bet) and by in ("", one.bet)
    ]
    return (*wagers, *more)


def decider(wagers: tuple[Wager, ...], seat: int, decides: Decides) -> str:
    """The bet whose player decides for the seat."""
    mains = [one for one in wagers if one.seat == seat and one.hand == 1 and is_main(one.bet)]
    mains.sort(key=lambda one: (len(one.bet), one.bet))
    if not mains:
        return "main"
    most = max(one.amount for one in mains)
    highest = [one.bet for one in mains if one.amount == most]
    match decides:
        case "seated":
            return "main"
        case "seated_or_nearest":
            return mains[0].bet
        case "seated_or_highest":
            return "main" if mains[0].bet == "main" else highest[0]
        case _:
            return highest[0] if len(highest) == 1 else "main"


# ---- payments of hands


def hands_won(
    compared: list[Compared], wagers: tuple[Wager, ...], bettors: int, *, free: bool = False
) -> tuple[list[Win], list[Win], list[str | Push]]:
    """The wins of the hands, the returned parts of bets that were given up, and the bets returned whole.

    `bettors`: how many may bet on one seat. `free`: each of them follows a split or a double only if he wants to.
    """
    wins: list[Win] = []
    parts: list[Win] = []
    pushes: list[str | Push] = []
    for one in compared:
        hand = one.hand
        for bet, pays in (("main", one.main), ("double", one.double)) if hand.doubled else (("main", one.main),):
            for name in _laid(wagers, hand, bet) if free else _names(wagers, bettors, hand.seat, bet):
                if pays == "0":
                    pushes.append(Push(name, hand.seat, hand.number))
                elif pays == "-1/2":
                    parts.append(Win(name, pays, seat=hand.seat, hand=hand.number))
                elif pays:
                    wins.append(Win(name, pays, seat=hand.seat, hand=hand.number))
    return wins, parts, pushes


def _laid(wagers: tuple[Wager, ...], hand: Hand, bet: str) -> tuple[str, ...]:
    """The bets of that kind that were laid on the hand; that of the seat without reported bets."""
    mine = [one.bet for one in wagers if (one.seat, one.hand) == (hand.seat, hand.number)]
    return tuple(one for one in mine if one == bet or one.startswith(bet + ":")) or (bet,)


def _names(wagers: tuple[Wager, ...], bettors: int, seat: int, bet: str) -> tuple[str, ...]:
    """The bet of the seat, and those of the others who bet on it, or may have."""
    if bettors == 1:
        return (bet,)
    others = {one.bet[4:] for one in wagers if one.seat == seat and is_main(one.bet)}
    if not others:  # the other bets are unknown
        others = {f":{place}" for place in range(2, bettors + 1)}
    return (bet, *(bet + place for place in sorted(others - {""})))


def outcome_of(play: Play, compared: list[Compared], total: int, *, blackjack: bool) -> dict[str, Any]:
    """The facts of a result."""
    hands = [one.hand for one in compared]
    outcome: dict[str, Any] = {
        "hands": {DEALER: play.bank, **{hand.name: hand.cards for hand in hands}},
        "totals": {DEALER: total, **{hand.name: hand.total for hand in hands}},
        "ended": {hand.name: hand.ended for hand in hands},
        "results": {one.hand.name: one.result for one in compared},
        "blackjack": blackjack,
        "bust": total > 21,
    }
    if doubled := [hand.name for hand in hands if hand.doubled]:
        outcome["doubled"] = doubled
    if play.discarded:
        outcome["discarded"] = play.discarded
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
    """The total of the hand whose decision is awaited."""
    place, total = _place(hand), _points(hand.total)
    return {language: f"{place[n]}: {total[n]}" for n, language in enumerate(LANGUAGES)}


def announced(compared: list[Compared], total: int, *, blackjack: bool) -> dict[str, str]:
    """The totals of the bank and of the seats, and how each ends."""
    pt, zh, en = _NATURAL if blackjack else _points(total)
    lines = ([f"Banca {pt}"], [f"莊家{zh}"], [f"Bank {en}"])
    for one in compared:
        place = _place(one.hand)
        points = _NATURAL if one.hand.ended == "blackjack" else _points(one.hand.total)
        result = _RESULTS[one.result]
        for n, line in enumerate(lines):
            line.append(f"{place[n]}: {points[n]}, {result[n]}" if n != 1 else f"{place[1]}{points[1]}，{result[1]}")
    return {"pt": "; ".join(lines[0]), "zh-Hant": "；".join(lines[1]), "en": "; ".join(lines[2])}
