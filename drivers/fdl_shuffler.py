"""A batch shuffler that speaks FDL: two decks by turns, packets on demand (docs/reference/protocols/fdl_shuffler.md).

A count is evidence, not proof: machines miscount, too. Each is reported as `deck.checked` with the history of its deck;
a wrong one also as `deck.miscounted`. Unreadable cards are never counted as missing.
"""

from collections.abc import Sequence
from typing import ClassVar

from drivers.driver import CommandRefused, Emit, Link, Sighting
from drivers.faults import Fault
from drivers.fdl_session import FdlDriver, SessionOptions
from protocols.contract.commands import Command, Dispense, EmptyShuffler, SelfTest, Shuffle
from protocols.contract.events import (
    CardDamaged,
    CardJammed,
    CardsLoaded,
    CardUnreadable,
    DeckChecked,
    DeckMiscounted,
    DeviceOnline,
    Event,
    EventsMissed,
    HandDispensed,
    JamCleared,
    LampsLit,
    MachineReported,
    ShuffleFailed,
    ShuffleFinished,
    ShuffleStarted,
    Told,
)
from protocols.fdl import frame as fdl, shuffler as fdl_shuffler
from protocols.fdl.cards import CARDS

__all__ = ["FAULTS", "FdlShuffler", "checked"]

_DEAL = "void if it happens during the deal: replace the shuffler or deal from a shoe; else goes on"
_DECK = "goes on with the other deck; this one may not be dealt"
_NONE = "goes on"
FAULTS = {
    0x30: Fault(
        "shuffler.jam_infeed",
        "cards stick in the infeed",
        "open the lid, take the cards out, look for bent ones, load the whole deck again",
        "by a person",
        _DECK,
    ),
    0x31: Fault(
        "shuffler.jam_carousel",
        "cards stick in the carousel",
        "open the lid, turn the carousel by hand, take all cards out, load the whole deck again",
        "by a person",
        _DECK,
    ),
    0x32: Fault(
        "shuffler.jam_outfeed",
        "cards stick in the outfeed",
        "open the lid, take all cards out without showing them, load the whole deck again",
        "by a person",
        _DEAL,
    ),
    0x33: Fault(
        "shuffler.count",
        "a deck has a wrong number of cards",
        "take this deck off the table and count it by hand, twice; put another deck in its place",
        "by a person",
        _DECK,
        "error",
    ),
    0x34: Fault(
        "shuffler.composition",
        "a deck has a missing, a doubled or a foreign card",
        "take this deck off the table and sort it; put another deck in its place; inform the inspectors",
        "by a person",
        _DECK,
        "error",
    ),
    0x35: Fault(
        "shuffler.unreadable",
        "a card of the deck could not be read",
        "look for a dirty or worn card; clean the reader's window",
        "by itself",
        "goes on; the deck was counted, not read",
    ),
    0x36: Fault(
        "shuffler.wrong_back",
        "a card has the back of another deck",
        "take this deck off the table and sort both; put another deck in its place; inform the inspectors",
        "by a person",
        _DECK,
        "error",
    ),
    0x37: Fault(
        "shuffler.damaged",
        "a card is torn, bent or marked",
        "let the supervisor replace the card or the deck; inform the inspectors",
        "by a person",
        _DECK,
    ),
    0x38: Fault(
        "shuffler.packet",
        "a packet has a wrong number of cards",
        "collect all cards of the deal; if it happens again, replace the shuffler",
        "by a person",
        _DEAL,
        "error",
    ),
    0x39: Fault(
        "shuffler.hopper_full",
        "the infeed contains more cards than it can take",
        "take them out and load one deck only",
        "by a person",
        _NONE,
    ),
    0x3A: Fault(
        "shuffler.hopper_empty", "a shuffle was requested, but no cards are loaded", "load a deck", "by itself", _NONE
    ),
    0x3B: Fault(
        "shuffler.motor",
        "a motor does not follow its commands",
        "open the lid, free what blocks it, switch off and on; if the fault remains, replace the shuffler",
        "by a person",
        _DEAL,
    ),
    0x3C: Fault(
        "shuffler.interrupted",
        "the power failed while cards moved",
        "take all cards out, count them by hand, load the whole deck again",
        "by a person",
        _DEAL,
        "error",
    ),
    0x3D: Fault(
        "shuffler.sensor",
        "a card sensor is stuck on or off",
        "clean the sensor's window; if the fault remains, replace the shuffler",
        "by a person",
        _DEAL,
    ),
    0x3E: Fault(
        "shuffler.reader",
        "the reader of the faces has failed",
        "check each deck by hand and have the reader replaced; the shuffler still counts the cards",
        "by a person",
        "goes on; decks are counted, not read",
    ),
    0x3F: Fault(
        "shuffler.double_feed",
        "two cards came in at once and were separated",
        "if it happens again, look for sticky or bent cards",
        "by itself",
        _NONE,
    ),
}

REASONS = {
    fdl_shuffler.JAM: "jam",
    fdl_shuffler.COUNT: "wrong count",
    fdl_shuffler.COMPOSITION: "wrong composition",
    fdl_shuffler.BACK: "wrong back",
    fdl_shuffler.DAMAGE: "damaged card",
    fdl_shuffler.OPENED: "opened",
    fdl_shuffler.MOTOR: "motor",
    fdl_shuffler.POWER: "loss of power",
    fdl_shuffler.SENSOR: "card sensor",
}
STATES = {
    fdl_shuffler.IDLE_EMPTY: "idle, no deck inside",
    fdl_shuffler.LOADING: "loading",
    fdl_shuffler.SHUFFLING: "shuffling",
    fdl_shuffler.READY: "a shuffled deck is ready",
    fdl_shuffler.DEALING: "dealing",
    fdl_shuffler.EMPTYING: "giving out all cards",
    fdl_shuffler.PAUSED: "stopped by a fault",
    fdl_shuffler.SERVICE: "in service",
}


def _missing(tally: fdl_shuffler.Tally, packs: int) -> tuple[str, ...]:
    """Cards of which fewer than `packs` were read, each once for every missing one."""
    return tuple(card for card, n in zip(CARDS, tally.counts, strict=True) for _ in range(packs - n))


def _surplus(tally: fdl_shuffler.Tally, packs: int) -> tuple[str, ...]:
    """Cards of which more than `packs` were read, each once for every surplus one."""
    return tuple(card for card, n in zip(CARDS, tally.counts, strict=True) for _ in range(n - packs))


def checked(
    expected: int, counted: int, packs: int, tally: fdl_shuffler.Tally | None, deck: int = 0, wrong: int = 0
) -> tuple[Event, ...]:
    """The events of a count: a right deck, or its missing and extra cards.

    With unreadable cards the missing ones are unknown; cards read too often are certain.
    """
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    unsure = False
    if tally is not None:
        missing, extra = _missing(tally, packs), _surplus(tally, packs)
        unsure = bool(tally.unreadable)
    bad = counted != expected or bool(extra) or (bool(missing) and not unsure)
    told: tuple[Event, ...] = (DeckChecked(expected, counted, not bad and not unsure, deck, wrong),)
    if bad:
        told += (DeckMiscounted(expected, counted, () if unsure else missing, extra),)
    return told


class FdlShuffler(FdlDriver):
    """One session with a batch shuffler."""

    name: ClassVar[str] = "fdl_shuffler"
    title: ClassVar[str] = "Batch shuffler, FDL"
    icon: ClassVar[str] = "shuffler"
    emits: ClassVar[tuple[Told, ...]] = (
        CardDamaged,
        CardJammed,
        CardUnreadable,
        CardsLoaded,
        DeckChecked,
        DeckMiscounted,
        HandDispensed,
        JamCleared,
        LampsLit,
        MachineReported,
        ShuffleFailed,
        ShuffleFinished,
        ShuffleStarted,
    )
    kind: ClassVar[int] = fdl.SHUFFLER
    tells_cards: ClassVar[bool] = True
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_shuffler.HAPPENINGS
    unreadable: ClassVar = {
        fdl_shuffler.Dispensed.KIND: CardUnreadable(),  # a packet may have come out, of unknown size
        fdl_shuffler.Damaged.KIND: CardDamaged(),
    }
    commands: ClassVar[tuple[type[Command], ...]] = (Shuffle, Dispense, EmptyShuffler, SelfTest)
    reasons: ClassVar = {
        fdl_shuffler.NOTHING_LOADED: "no deck is loaded",
        fdl_shuffler.DECK_REJECTED: "this deck was found wrong and was not replaced",
        fdl_shuffler.NOTHING_READY: "no shuffled deck is ready",
        fdl_shuffler.PACKET_IN_TRAY: "the last packet was not taken",
        fdl_shuffler.TOO_FEW_CARDS: "fewer cards are left",
    }

    def __init__(self, options: SessionOptions, memory: bytes | None = None) -> None:
        """A state not yet reported in this session is left to the shuffler's own refusals."""
        super().__init__(options, memory)
        self._lit: tuple[str, ...] | None = None
        self._packet = 0

    async def run(self, link: Link, emit: Emit) -> None:
        """Run the session until LinkLost or DeviceRefused."""

        async def watched(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            if any(isinstance(one.event, DeviceOnline | EventsMissed) for one in sightings):
                self._packet = 0  # after a start or missed events the content of the tray is not known here
            await emit(sightings, memory)

        await super().run(link, watched)

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:  # noqa: C901 - a case for each happening
        """A shuffler's happening in the casino's words."""
        match happening:
            case fdl_shuffler.Loaded(_, _, cards):
                return (CardsLoaded(cards),)
            case fdl_shuffler.ShuffleStarted(_, decks, cards):
                return (ShuffleStarted(decks, cards),)
            case fdl_shuffler.ShuffleFinished(_, decks, cards, verified):
                return (ShuffleFinished(decks, cards, verified == fdl_shuffler.EVERY_CARD_READ),)
            case fdl_shuffler.Failed(_, decks, cards, reason):
                return (ShuffleFailed(decks, cards, REASONS.get(reason, f"reason {reason} of the shuffler")),)
            case fdl_shuffler.Counted(deck, decks, expected, counted, wrong, tally):
                return checked(expected, counted, decks, tally, deck, wrong)
            case fdl_shuffler.Jammed(where):
                return (CardJammed(fdl_shuffler.PLACES[where]),)
            case fdl_shuffler.JamCleared(where):
                return (JamCleared(fdl_shuffler.PLACES[where]),)
            case fdl_shuffler.Dispensed(_, count):
                self._packet = count
                return (HandDispensed(count),) if count else ()
            case fdl_shuffler.PacketTaken():
                self._packet = 0
                return ()
            case fdl_shuffler.Lamps() as lamps:
                self._lit = lamps.names
                return (LampsLit(lamps.names),)
            case fdl_shuffler.State(state):
                return (MachineReported("state", STATES.get(state, f"state {state}")),)
            case fdl_shuffler.Damaged() as damaged:
                return (CardDamaged(damaged.name),)
            case fdl_shuffler.DeckReplaced(deck):
                return (MachineReported("deck_replaced", f"another deck is in the place of deck {deck}"),)
            case fdl_shuffler.Emptied(cards):
                return (MachineReported("emptied", f"all {cards} cards were given out"),)
            case fdl_shuffler.DeckTaken(deck):
                return (MachineReported("deck_taken", f"the rest of deck {deck} was taken out"),)
            case _:
                return None

    def order(self, command: Command) -> tuple[int, bytes]:
        """Refuses all but the self-test during a jam, and a packet while one lies in the tray or no deck is ready."""
        lit = self._lit
        if lit is not None and "jam" in lit and not isinstance(command, SelfTest):
            raise CommandRefused("cards stick in the shuffler: clear the jam first")
        match command:
            case Shuffle():
                return fdl_shuffler.SHUFFLE, b""
            case Dispense(cards):
                if self._packet:
                    raise CommandRefused(f"a packet of {self._packet} cards lies in the tray: take it first")
                if lit is not None and "ready" not in lit:
                    raise CommandRefused("the ready lamp is dark: no shuffled deck may be dealt")
                return fdl_shuffler.DISPENSE, bytes((cards,))
            case EmptyShuffler():
                return fdl_shuffler.EMPTY, b""
            case _:
                return super().order(command)

    def ends_cycle(self, event: Event) -> bool:
        """Whether a shuffle ended well."""
        return isinstance(event, ShuffleFinished)
