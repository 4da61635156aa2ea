"""A reader of the dealer's hole card that speaks FDL: it tells whether it makes blackjack, and never which card it is.

Evidence: our own document (docs/protocols/fdl_peek.md). The reader does not know whether the dealer shows an ace or a
ten-value: whether it should have been asked is the ruleset's to judge. What it cannot read it tells as a fault; the
dealer then peeks by hand. An event of it that is not known is told without its bytes: they may be the card.
"""

import re
from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from drivers.driver import Emit, Link, Sighting
from drivers.faults import Fault
from drivers.fdl_session import FdlDriver
from protocols import fdl, fdl_peek
from protocols.events import DeviceFaulted, Event, HoleCardPeeked

_BY_HAND = "waits: the dealer peeks by hand, or the players decide as if nobody had looked, as the house has laid down"
FAULTS = {
    0x60: Fault(
        "peek.unreadable",
        "the hole card could not be read",
        "put it in again, flat and face down; else peek by hand; look whether the card is damaged",
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
        "a card lies in the reader and was not taken back",
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
_DATA = re.compile(r"\[.*?\]")


class FdlPeek(FdlDriver):
    """One session with a peek reader."""

    name: ClassVar[str] = "fdl_peek"
    title: ClassVar[str] = "Reader of the hole card, FDL"
    kind: ClassVar[int] = fdl.PEEK_READER
    tells_cards: ClassVar[bool] = True
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_peek.HAPPENINGS

    async def run(self, link: Link, emit: Emit) -> None:
        """Speak until LinkLost or DeviceRefused. No byte that may be a card goes any further."""

        async def discreet(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            await emit([_without_data(one) for one in sightings], memory)

        await super().run(link, discreet)

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """Yes or no."""
        match happening:
            case fdl_peek.Peeked(blackjack):
                return (HoleCardPeeked(blackjack),)
            case _:
                return None

    def ends_cycle(self, event: Event) -> bool:
        """A card that was read."""
        return isinstance(event, HoleCardPeeked)


def _without_data(sighting: Sighting) -> Sighting:
    event = sighting.event
    if not isinstance(event, DeviceFaulted) or event.code != "fdl.unknown_event":
        return sighting
    return replace(sighting, event=replace(event, text=_DATA.sub("[not told]", event.text)), wire=b"")
