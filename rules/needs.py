"""What a round of each game needs to be told by the devices of its table, with the article that demands it.

`feltd check` and docs/reference/devices-and-games.md compare it with what the drivers tell. Pure data.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    CardDrawn,
    CardsReturned,
    DealCorrected,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceThrown,
    DiceUncovered,
    Event,
    HandDispensed,
    RoundPaid,
    SeatActed,
    SeatOpened,
    ShoeStarted,
    SpinStarted,
    Told,
    WagerPlaced,
)

__all__ = ["Need", "met", "needs", "unmet"]


class Need(Struct, frozen=True):
    """One thing that some device must tell. Any of `events` does; `decides`: the round is decided by it."""

    what: str
    events: tuple[Told, ...]
    law: str
    decides: bool = False


def met(need: Need, told: Sequence[Told]) -> bool:
    """Whether what is told has what is needed."""
    return any(_is(one, wanted) for one in told for wanted in need.events)


def unmet(wanted: Sequence[Need], told: Sequence[Told]) -> list[Need]:
    """The needs that nothing told meets."""
    return [need for need in wanted if not met(need, told)]


def _is(one: Told, wanted: Told) -> bool:
    if isinstance(one, type) or isinstance(wanted, type):
        return _type(one) is _type(wanted)
    return one == wanted


def _type(one: Told) -> type[Event]:
    return one if isinstance(one, type) else type(one)


def needs(ruleset: str, options: Any) -> tuple[Need, ...]:
    """The needs of a table with this ruleset and its options; none for a ruleset that is not known here."""
    game = _GAMES.get(ruleset)
    return game(options) if game is not None else ()


# ---- what several games have in common


def _opening(law: str, *others: Told) -> Need:
    return Need("the opening of the bets", (BetsOpened, *others), law)


def _bell(law: str) -> Need:
    return Need("the bell, or that no more bets are taken", (BetsClosed,), law)


def _payment(law: str, needed: bool) -> tuple[Need, ...]:
    return (Need("the payment of the prizes", (RoundPaid,), law),) if needed else ()


# ---- the games


def _roulette(bell: str, decided: str, paid: str) -> Callable[[Any], tuple[Need, ...]]:
    def game(options: Any) -> tuple[Need, ...]:
        by_bell = getattr(options, "betting", "no_more_bets") == "bell"
        closing: tuple[Told, ...] = (BetsClosed, BallLaunched if by_bell else BallSettling)
        return (
            Need("the beginning of a spin, or the opening of the bets", (SpinStarted, BetsOpened, BallLaunched), bell),
            Need("the bell, or that no more bets are taken", closing, bell),
            Need("the pocket of the ball", (BallLanded,), decided, decides=True),
            *_payment(paid, options.payment == "console"),
        )

    return game


def _shaken(
    mechanism: str, shaking: str, bell: str, reading: str, paid: str, *, light: bool = False
) -> Callable[[Any], tuple[Need, ...]]:
    def game(options: Any) -> tuple[Need, ...]:
        fixed = options.dome == "fixed"
        mode, name = options.agitation, "the shaking of the dice"
        shake: Told = DiceAgitated
        if mode != "either":
            shake, name = DiceAgitated(mode), f"{name}, by the {'lever' if mode == 'lever' else 'motor'}"
        return (
            *(() if fixed else (Need("that the dome is on", (DiceCovered,), shaking),)),
            Need(name, (shake,), f"{mechanism}, {shaking}"),
            *(() if light else (_opening(shaking),)),
            _bell(bell),
            *(() if fixed else (Need("that the dome is lifted", (DiceUncovered,), reading),)),
            Need("the faces of the dice", (DiceRead,), reading, decides=True),
            *_payment(paid, options.payment == "console"),
        )

    return game


def _thrown(opening: str, reading: str, paid: str) -> Callable[[Any], tuple[Need, ...]]:
    """A throw closes what no bell has closed."""

    def game(options: Any) -> tuple[Need, ...]:
        return (
            _opening(opening),
            Need("the faces of the dice", (DiceThrown, DiceRead), reading, decides=True),
            *_payment(paid, getattr(options, "handling", "implied") == "console"),
        )

    return game


def _fantan(_options: Any) -> tuple[Need, ...]:
    return (
        Need("that a heap is set apart and covered", (ButtonsSeparated,), "arts. 2, 4"),
        _bell("arts. 4, 5(1)"),
        Need("the count of the buttons", (ButtonsCounted,), "arts. 3(1), 5(1)", decides=True),
    )


def _cards(law: str) -> Need:
    return Need("the cards that are dealt", (CardDrawn,), law, decides=True)


def _returned(law: str, device: str) -> tuple[Need, ...]:
    """A shuffler that deals takes the cards back: no shoe does."""
    needed = device == "continuous"
    return (Need("that the cards go back into the shuffler", (CardsReturned,), law),) if needed else ()


def _baccarat(shoe: str, bell: str, cards: str, returned: str) -> Callable[[Any], tuple[Need, ...]]:
    """The cards that are burnt at a new shoe must not be taken for a coup."""

    def game(options: Any) -> tuple[Need, ...]:
        by_bell = options.opening == "bell"
        return (
            *((Need("that a new shoe begins", (ShoeStarted,), shoe),) if options.device == "shoe" else ()),
            *((_opening(bell), _bell(bell)) if by_bell else ()),
            _cards(cards),
            *_returned(returned, options.device),
        )

    return game


def _blackjack(bets: str, cards: str, decisions: str, returned: str) -> Callable[[Any], tuple[Need, ...]]:
    def game(options: Any) -> tuple[Need, ...]:
        return (
            _opening(bets),
            Need("which seats play", (WagerPlaced, SeatOpened), bets),
            _bell(bets),
            _cards(cards),
            *_returned(returned, options.device),
            Need("what the players decide", (SeatActed,), decisions),
        )

    return game


def _stud(antes: str, cards: str, hands: str, decisions: str) -> Callable[[Any], tuple[Need, ...]]:
    """A shoe reads each card. A shuffler gives out packets face down: the hands are entered once they are shown."""

    def game(options: Any) -> tuple[Need, ...]:
        shoe, shuffler = options.dealing != "shuffler", options.dealing != "shoe"
        dealt: tuple[Told, ...] = ((CardDrawn,) if shoe else ()) + ((HandDispensed,) if shuffler else ())
        shown: tuple[Told, ...] = (CardDrawn, DealCorrected) if shoe else (DealCorrected,)
        return (
            Need("which seats play", (SeatActed, WagerPlaced), antes),
            Need("the cards or packets that are dealt", dealt, cards),
            Need("the hands, once they are shown", shown, hands, decides=True),
            Need("what the players decide", (SeatActed,), decisions),
        )

    return game


_GAMES: Final[Mapping[str, Callable[[Any], tuple[Need, ...]]]] = {
    "angola.american-roulette": _roulette("art. 1(23)", "art. 1(26)", "art. 1(22)"),
    "angola.baccarat": _baccarat("art. 10(5)", "art. 10(13)", "art. 10(14)", "art. 10(4)(c)"),
    "angola.baccarat-macau": _baccarat("art. 11(5)", "art. 11(13)", "art. 11(14)", "art. 11(4)(c)"),
    "angola.blackjack": _blackjack("art. 6(15)", "art. 6(20)", "art. 6(22)", "art. 8(10)"),
    "angola.craps": _thrown("art. 4(9)", "art. 4(4)", "arts. 4(7), 4(8)"),
    "angola.cussec": _shaken("art. 5(3)a", "art. 5(5)", "art. 5(6)", "art. 5(6)", "art. 5(12)", light=True),
    "angola.french-bank": _thrown("art. 3(9)", "art. 3(7)a-c", ""),
    "angola.french-roulette": _roulette("art. 2(12)", "art. 2(15)", "art. 2(11)"),
    "angola.stud-poker": _stud("art. 9(20)", "arts. 9(22), 9(23)(b)", "arts. 9(26) to 9(29)", "arts. 9(23)(c), 9(25)"),
    "macau.baccarat": _baccarat("art. 2(1)", "arts. 7(1), 10", "art. 7(1)", "art. 7(2)"),
    "macau.blackjack": _blackjack("art. 5(1)", "arts. 5(1), 5(2)", "art. 6(3)", "art. 1(4)"),
    "macau.cussec": _shaken("art. 1(2)(1)", "art. 2(1)", "art. 3(1)", "art. 3(2)", "art. 4"),
    "macau.fantan": _fantan,
    "macau.fish-prawn-crab": _shaken("art. 1(3)(1)", "art. 2(1)", "art. 3(1)", "art. 3(2)", "art. 4"),
    "macau.roulette": _roulette("art. 3(2)", "art. 4", "art. 3(1)"),
    "macau.stud-poker": _stud("art. 6(2)", "arts. 3, 7", "art. 6(8)", "art. 6(5)"),
}
