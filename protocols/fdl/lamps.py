"""FDL, layout lamps: the kinds and data of its events and commands (docs/reference/protocols/fdl_lamps.md).

A set of places (lamps, seats) is four bytes: bit 0 of the last is place 1, bit 7 of the first place 32.
"""

from collections.abc import Iterable
from typing import ClassVar, Final

import msgspec

from protocols.fdl.fields import Record, by_kind

MAX_PLACES: Final = 32


def places_to_bytes(places: Iterable[int]) -> bytes:
    """The four bytes of a set of places. Raises ValueError for a place that is not 1 to 32."""
    bits = 0
    for place in places:
        if not 1 <= place <= MAX_PLACES:
            raise ValueError(f"a place is 1 to {MAX_PLACES}, not {place}")
        bits |= 1 << place - 1
    return bits.to_bytes(4)


def places_from_bytes(data: bytes) -> tuple[int, ...]:
    """The places of four bytes, from the lowest."""
    bits = int.from_bytes(data)
    return tuple(place for place in range(1, MAX_PLACES + 1) if bits >> place - 1 & 1)


class Places(msgspec.Struct, frozen=True):
    """A set of places, one bit for each."""

    def write(self, value: Iterable[int]) -> bytes:
        return places_to_bytes(value)

    def read(self, data: bytes, at: int) -> tuple[tuple[int, ...], int] | None:
        return (places_from_bytes(data[at : at + 4]), at + 4) if at + 4 <= len(data) else None

    def page(self, name: str) -> str:
        return f"{name} 4"


class Lit(Record, frozen=True):
    """The lamps through which a current flows now, by their numbers, from the lowest."""

    KIND: ClassVar[int] = 0x68
    FIELDS: ClassVar = {"lamps": Places()}
    lamps: tuple[int, ...]


HAPPENINGS: Final = by_kind(__name__)

# ---- commands

LIGHT = 0x50  # the lamps to be lit, the others go dark; answered with those that are
