"""The events that a round needs from the devices of its table, with the article that demands them.

A ruleset declares them as `needs`; games of one kind share a function here. `feltd check` and
docs/reference/devices-and-games.md compare them with the events of the drivers. Pure data.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    BetsClosed,
    BetsOpened,
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
    MachineApproved,
    MachineIdentified,
    MachineMeters,
    RoundPaid,
    SeatActed,
    SeatOpened,
    ShoeStarted,
    SpinStarted,
    TableClosed,
    TableOpened,
    Told,
    WagerPlaced,
)


class Need(Struct, frozen=True):
    """One need that a device must meet, by any of `events`. `decides`: it decides the round.

    `one_deck`: the cards of a round are those of one whole deck, which a continuous shuffler does not keep apart.
    """

    what: str
    events: tuple[Told, ...]
    law: str
    decides: bool = False
    one_deck: bool = False


Needs: TypeAlias = Callable[[Any], tuple[Need, ...]]
"""The needs of a game with these options."""


def met(need: Need, told: Sequence[Told]) -> bool:
    """Whether the events of the devices meet the need."""
    return any(_is(one, wanted) for one in told for wanted in need.events)


def unmet(wanted: Sequence[Need], told: Sequence[Told]) -> list[Need]:
    """The needs that no device meets."""
    return [need for need in wanted if not met(need, told)]


def _is(one: Told, wanted: Told) -> bool:
    if isinstance(one, type) or isinstance(wanted, type):
        return _type(one) is _type(wanted)
    return one == wanted


def _type(one: Told) -> type[Event]:
    return one if isinstance(one, type) else type(one)


# ---- what several games have in common


def the_opening(law: str, *others: Told) -> Need:
    return Need("the opening of the bets", (BetsOpened, *others), law)


def the_bell(law: str) -> Need:
    return Need("the bell, or that no more bets are taken", (BetsClosed,), law)


def the_payment(law: str, needed: bool) -> tuple[Need, ...]:
    return (Need("the payment of the prizes", (RoundPaid,), law),) if needed else ()


# ---- the kinds of games


def roulette(bell: str, decided: str, paid: str) -> Needs:
    def game(options: Any) -> tuple[Need, ...]:
        by_bell = getattr(options, "betting", "no_more_bets") == "bell"
        closing: tuple[Told, ...] = (BetsClosed, BallLaunched if by_bell else BallSettling)
        return (
            Need("the beginning of a spin, or the opening of the bets", (SpinStarted, BetsOpened, BallLaunched), bell),
            Need("the bell, or that no more bets are taken", closing, bell),
            Need("the pocket of the ball", (BallLanded,), decided, decides=True),
            *the_payment(paid, options.payment == "console"),
        )

    return game


def shaken(mechanism: str, shaking: str, bell: str, reading: str, paid: str, *, light: bool = False) -> Needs:
    def game(options: Any) -> tuple[Need, ...]:
        fixed = options.dome == "fixed"
        mode, name = options.agitation, "the shaking of the dice"
        shake: Told = DiceAgitated
        if mode != "either":
            shake, name = DiceAgitated(mode), f"{name}, by the {'lever' if mode == 'lever' else 'motor'}"
        return (
            *(() if fixed else (Need("that the dome is on", (DiceCovered,), shaking),)),
            Need(name, (shake,), f"{mechanism}, {shaking}"),
            *(() if light else (the_opening(shaking),)),
            the_bell(bell),
            *(() if fixed else (Need("that the dome is lifted", (DiceUncovered,), reading),)),
            Need("the faces of the dice", (DiceRead,), reading, decides=True),
            *the_payment(paid, options.payment == "console"),
        )

    return game


def thrown(opening: str, reading: str, paid: str) -> Needs:
    """The needs of thrown dice; a throw closes bets that no bell has closed."""

    def game(options: Any) -> tuple[Need, ...]:
        return (
            the_opening(opening),
            Need("the faces of the dice", (DiceThrown, DiceRead), reading, decides=True),
            *the_payment(paid, getattr(options, "handling", "implied") == "console"),
        )

    return game


def _cards(law: str) -> Need:
    return Need("the cards that are dealt", (CardDrawn,), law, decides=True)


def _returned(law: str, device: str) -> tuple[Need, ...]:
    """The need of returned cards, for a dealing shuffler only."""
    needed = device == "continuous"
    return (Need("that the cards go back into the shuffler", (CardsReturned,), law),) if needed else ()


def baccarat(shoe: str, bell: str, cards: str, returned: str) -> Needs:
    """The needs of baccarat; the start of a shoe is one, so that burnt cards begin no coup."""

    def game(options: Any) -> tuple[Need, ...]:
        by_bell = options.opening == "bell"
        return (
            *((Need("that a new shoe begins", (ShoeStarted,), shoe),) if options.device == "shoe" else ()),
            *((the_opening(bell), the_bell(bell)) if by_bell else ()),
            _cards(cards),
            *_returned(returned, options.device),
        )

    return game


def blackjack(bets: str, cards: str, decisions: str, returned: str) -> Needs:
    def game(options: Any) -> tuple[Need, ...]:
        return (
            the_opening(bets),
            Need("which seats play", (WagerPlaced, SeatOpened), bets),
            the_bell(bets),
            _cards(cards),
            *_returned(returned, options.device),
            Need("what the players decide", (SeatActed,), decisions),
        )

    return game


def unbanked(opening: str, stacks: str, cards: str, decisions: str) -> Needs:
    """The needs of poker without a bank; without a shoe a person enters the common cards and the shown hands."""

    def game(_: Any) -> tuple[Need, ...]:
        return (
            the_opening(opening),
            Need("the chips of the seats, and what the players decide", (SeatActed,), f"{stacks}, {decisions}"),
            Need("the common cards, and the hands that are shown", (CardDrawn, DealCorrected), cards, True, True),
        )

    return game


def machine(period: str, identity: str, meters: str, approval: str) -> Needs:
    def game(_: Any) -> tuple[Need, ...]:
        return (
            Need("that the machine is opened", (BetsOpened, TableOpened), period),
            Need("that the machine is closed", (TableClosed,), period),
            Need("the characteristics of the machine", (MachineIdentified,), identity),
            Need("the meters of bets, prizes and takings", (MachineMeters,), meters, decides=True),
            Need("the approvals of two supervisors", (MachineApproved,), approval),
        )

    return game


def rotating_bank(shoe: str, bank: str, bets: str, bell: str, cards: str, decisions: str) -> Needs:
    """The needs of a bank held by players; without a shoe a person enters the hands once they are shown."""

    def game(_: Any) -> tuple[Need, ...]:
        return (
            Need("that a new shoe begins", (ShoeStarted,), shoe),
            Need("who is at the table", (SeatOpened,), bank),
            the_opening(bets),
            Need("the bank, banco, and what punter and banker say", (SeatActed,), f"{bank}, {decisions}"),
            Need("the bets of the punters", (WagerPlaced,), bets),
            the_bell(bell),
            Need("the cards, or the hands that are shown", (CardDrawn, DealCorrected), cards, decides=True),
        )

    return game


def stud(antes: str, cards: str, hands: str, decisions: str) -> Needs:
    """The needs of stud poker; with a shuffler, which deals packets face down, a person enters the shown hands."""

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
