"""Driver for an FDL continuous shuffler-shoe: it mixes, deals and takes cards back.

Evidence: our own document (docs/reference/protocols/fdl_continuous.md). The device keeps a balance of the cards that
were loaded, dealt and returned. More cards inside than were loaded is always wrong. Fewer is wrong where the law
returns all cards after each round (`all_return`), otherwise only at closing.

On a table where cards are dealt face down (`masked`) a card is reported without its value. The machine must be set to
that, too; if it is not, the driver drops the values with the wire bytes that hold them, and reports that once.
"""

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from drivers.driver import Emit, Link, Sighting
from drivers.faults import Fault
from drivers.fdl_session import FdlDriver, SessionOptions
from drivers.fdl_shuffler import checked
from protocols.contract.commands import Command, EmptyShuffler, SelfTest
from protocols.contract.events import (
    CardDamaged,
    CardDrawn,
    CardJammed,
    CardsLoaded,
    CardsReturned,
    CardUnreadable,
    DeckChecked,
    DeckMiscounted,
    Event,
    HandDispensed,
    JamCleared,
    LampsLit,
    MachineReported,
    ShoeEmptied,
    ShoeStarted,
    Told,
)
from protocols.fdl import continuous as fdl_continuous, frame as fdl
from protocols.fdl.cards import CARDS
from protocols.fdl.shuffler import PLACES

_CARD = "waits for a person if one of its cards could not be read; else goes on"
_NONE = "goes on"
FAULTS = {
    0x40: Fault(
        "continuous.jam_infeed",
        "cards stick in the infeed, the lamp is lit",
        "call the supervisor: open the lid, take the stack out, look for bent cards, put it in again",
        "by a person",
        _NONE,
    ),
    0x41: Fault(
        "continuous.jam_carousel",
        "cards stick in the carousel, the lamp is lit",
        "call the supervisor: open the lid, free the carousel; if it cannot be freed, call a technician",
        "by a person",
        "goes on with the cards that lie in the shoe",
    ),
    0x42: Fault(
        "continuous.jam_shoe",
        "a card sticks in the shoe, the lamp is lit",
        "call the supervisor: open the lid, free the card, look at it, enter it at the console",
        "by a person",
        _CARD,
    ),
    0x43: Fault(
        "continuous.damaged",
        "a card is torn, bent or marked, the lamp is lit",
        "let the supervisor replace it by the same card of a new deck; inform the inspectors",
        "by a person",
        _NONE,
    ),
    0x44: Fault(
        "continuous.double",
        "two or more cards left at once",
        "look at the cards, correct the deal at the console or declare the round void",
        "by itself",
        _CARD,
    ),
    0x45: Fault(
        "continuous.unreadable",
        "a card left and could not be read",
        "look at the card and enter it at the console; clean the reader's window",
        "by itself",
        _CARD,
    ),
    0x46: Fault(
        "continuous.low",
        "too few cards are inside, the lamp is lit",
        "put the cards of the discard corner back before the next round",
        "by itself",
        _NONE,
    ),
    0x47: Fault(
        "continuous.full",
        "more cards are put in than fit, the lamp is lit",
        "leave them in the discard corner and put them in with those of the next round",
        "by itself",
        _NONE,
    ),
    0x48: Fault(
        "continuous.balance",
        "the numbers of cards loaded, dealt and returned do not add up",
        "look for cards on the table and in the discard corner; if the fault remains, empty the machine and check the "
        "decks",
        "by a person",
        "counts; check whether a card left undetected",
        "error",
    ),
    0x49: Fault(
        "continuous.loading",
        "the cards were loaded in one packet",
        "with the supervisor present, take them out and load them in two packets or more",
        "by a person",
        "no round may begin",
    ),
    0x4A: Fault(
        "continuous.motor",
        "the motor of the carousel does not follow its commands",
        "open the lid, free what blocks it, switch off and on; if the fault remains, call a technician",
        "by a person",
        "goes on with the cards that lie in the shoe",
    ),
    0x4B: Fault(
        "continuous.reader",
        "the reader of the faces has failed",
        "enter the cards at the console; clean or replace the reader",
        "by a person",
        _CARD,
    ),
    0x4C: Fault(
        "continuous.sensor",
        "the sensor of the shoe is stuck on or off",
        "clean the sensor's window; if the fault remains, deal from a shoe",
        "by a person",
        _CARD,
    ),
    0x4D: Fault(
        "continuous.interrupted",
        "the power failed while a card moved",
        "look at the card, correct the deal at the console or declare the round void",
        "by itself",
        _CARD,
    ),
    0x4E: Fault(
        "continuous.wrong_back",
        "a card with a different back was put in",
        "empty the machine, take the card out, check the decks; inform the inspectors",
        "by a person",
        _NONE,
        "error",
    ),
    0x4F: Fault(
        "continuous.deck",
        "the decks are not complete at closing",
        "sort and count all decks by hand, with the supervisor; inform the inspectors",
        "by a person",
        "the next round may not begin with these cards",
        "error",
    ),
}

ACTIVITIES = {
    fdl_continuous.EMPTY_INSIDE: "no card inside",
    fdl_continuous.LOADING: "loading",
    fdl_continuous.DEALING: "ready to deal",
    fdl_continuous.EMPTYING: "giving out all cards",
    fdl_continuous.STOPPED: "stopped by a fault",
    fdl_continuous.SERVICE: "in service",
}


class ContinuousOptions(SessionOptions, frozen=True, forbid_unknown_fields=True):
    """`reads`: the machine reads each card that leaves. `masked`: cards leave face down, without a value.

    `all_return`: all cards of a round go back before the next, so that fewer are a wrong balance.
    """

    reads: bool = True
    masked: bool = False
    all_return: bool = True


class FdlContinuous(FdlDriver):
    """One session with a continuous shuffler."""

    name: ClassVar[str] = "fdl_continuous"
    title: ClassVar[str] = "Continuous shuffler-shoe, FDL"
    icon: ClassVar[str] = "shuffler"
    emits: ClassVar[tuple[Told, ...]] = (
        CardDamaged,
        CardDrawn,
        CardJammed,
        CardUnreadable,
        CardsLoaded,
        CardsReturned,
        DeckChecked,
        DeckMiscounted,
        HandDispensed,
        JamCleared,
        LampsLit,
        MachineReported,
        ShoeEmptied,
        ShoeStarted,
    )
    Options: ClassVar[type[ContinuousOptions]] = ContinuousOptions
    kind: ClassVar[int] = fdl.CONTINUOUS_SHUFFLER
    tells_cards: ClassVar[bool] = True
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_continuous.HAPPENINGS
    unreadable: ClassVar = {
        fdl_continuous.Drawn.KIND: CardUnreadable(),  # one card or more, also where they lie face down
        fdl_continuous.Damaged.KIND: CardDamaged(),
    }
    commands: ClassVar[tuple[type[Command], ...]] = (EmptyShuffler, SelfTest)
    reasons: ClassVar = {
        fdl_continuous.NOTHING_INSIDE: "no card is inside",
        fdl_continuous.CARDS_OUTSIDE: "cards lie on the table: put them back first",
    }

    def __init__(self, options: ContinuousOptions, memory: bytes | None = None) -> None:
        """Hide the cards where they are face down."""
        super().__init__(options, memory)
        self._all_return = options.all_return
        self._hidden = options.masked or not options.reads
        self._masked = options.masked
        self._told_unmasked = False
        self._balanced = True

    async def run(self, link: Link, emit: Emit) -> None:
        """Run the session until LinkLost or DeviceRefused; where cards are masked, drop their wire bytes.

        The session reports an unreadable event without its bytes.
        """
        if not self._masked:
            await super().run(link, emit)
            return

        async def discreet(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            await emit([replace(one, wire=b"") if _may_tell(one.event) else one for one in sightings], memory)

        await super().run(link, discreet)

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """A continuous shuffler's happening in the casino's words."""
        match happening:
            case fdl_continuous.Loaded(packet, count):
                return (CardsLoaded(count, packet),)
            case fdl_continuous.Ready(decks, cards):
                whole = 52 * decks
                return (ShoeStarted(decks),) if cards == whole else (ShoeStarted(decks), DeckMiscounted(whole, cards))
            case fdl_continuous.Drawn(card):
                return self._drawn(card)
            case fdl_continuous.Returned(count, loaded, inside):
                self._balanced = inside == loaded or (inside < loaded and not self._all_return)
                back = CardsReturned(count)
                return (back,) if self._balanced else (back, DeckMiscounted(loaded, inside))
            case fdl_continuous.Jammed(where):
                return (CardJammed(PLACES[where]),)
            case fdl_continuous.JamCleared(where):
                return (JamCleared(PLACES[where]),)
            case fdl_continuous.Damaged() as damaged:
                return (CardDamaged(None if self._masked else damaged.name),)
            case fdl_continuous.Lamps() as lamps:
                return (LampsLit(lamps.names),)
            case fdl_continuous.Emptied(decks, counted, tally):
                return (*checked(52 * decks, counted, decks, tally), ShoeEmptied())
            case fdl_continuous.Activity(state):
                return (MachineReported("state", ACTIVITIES.get(state, f"state {state}")),)
            case _:
                return None

    def _drawn(self, card: int) -> tuple[Event, ...]:
        """One card, with its value only if it is known and lies face up."""
        if card == fdl_continuous.TWO_OR_MORE:
            return (CardUnreadable(),)
        if self._hidden:
            if not self._masked or card >= len(CARDS) or self._told_unmasked:
                return (HandDispensed(1),)
            self._told_unmasked = True
            text = "the machine sends the values of cards that are dealt face down; they are dropped: set it to masked"
            return (HandDispensed(1), MachineReported("unmasked", text))
        return (CardUnreadable() if card >= len(CARDS) else CardDrawn(CARDS[card]),)

    def order(self, command: Command) -> tuple[int, bytes]:
        """The machine itself refuses to give out all cards while some are on the table."""
        match command:
            case EmptyShuffler():
                return fdl_continuous.EMPTY, b""
            case _:
                return super().order(command)

    def ends_cycle(self, event: Event) -> bool:
        """Whether the right number of cards went back after a round."""
        return isinstance(event, CardsReturned) and self._balanced


def _may_tell(event: Event) -> bool:
    """Whether the wire bytes of this event can hold the value of a card that is face down."""
    return isinstance(event, HandDispensed | CardDamaged | CardUnreadable) or (
        isinstance(event, MachineReported) and event.code == "unmasked"
    )
