"""Driver for an FDL reader of the dealer's hole card: reports whether it makes blackjack, never which card it is.

Evidence: our own document (docs/reference/protocols/fdl_peek.md). The reader does not detect whether the dealer shows
an ace or a ten; the ruleset decides whether a peek was due. An unreadable card is a fault, and the
dealer peeks by hand. An unknown event is reported without its bytes, because they may be the card.
"""

from typing import ClassVar

from drivers.faults import Fault
from drivers.fdl_session import FdlDriver
from protocols.contract.events import Event, HoleCardPeeked, Told
from protocols.fdl import frame as fdl, peek as fdl_peek

_BY_HAND = "waits: by the house's rule, the dealer peeks by hand or the players decide without a peek"
FAULTS = {
    0x60: Fault(
        "peek.unreadable",
        "the hole card could not be read",
        "put it in again, flat and face down; if that fails, peek by hand and check whether the card is damaged",
        "by itself",
        _BY_HAND,
    ),
    0x61: Fault(
        "peek.not_inserted",
        "the hole card was not pushed in to the stop",
        "push the card in until it stops",
        "by itself",
        "waits until the card is pushed in",
    ),
    0x62: Fault(
        "peek.card_left",
        "a card was left in the reader",
        "take the card out and lay it where it belongs, face down",
        "by a person",
        "goes on when the card lies in its place again",
    ),
    0x63: Fault(
        "peek.window",
        "the window of the reader is dirty",
        "clean the window with a dry cloth; peek by hand until then",
        "by a person",
        _BY_HAND,
    ),
}


class FdlPeek(FdlDriver):
    """One session with a peek reader. The session reports no bytes that may be a card."""

    name: ClassVar[str] = "fdl_peek"
    title: ClassVar[str] = "Reader of the hole card, FDL"
    icon: ClassVar[str] = "peek"
    emits: ClassVar[tuple[Told, ...]] = (HoleCardPeeked,)
    kind: ClassVar[int] = fdl.PEEK_READER
    tells_cards: ClassVar[bool] = True
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_peek.HAPPENINGS

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """The event of an answer: blackjack or not."""
        match happening:
            case fdl_peek.Peeked(blackjack):
                return (HoleCardPeeked(blackjack),)
            case _:
                return None

    def ends_cycle(self, event: Event) -> bool:
        """Whether a card was read."""
        return isinstance(event, HoleCardPeeked)
