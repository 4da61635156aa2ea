"""FDL, layout lamps: the kinds and data of its events and commands (docs/reference/protocols/fdl_lamps.md).

A set of places (lamps, seats) is four bytes: bit 0 of the last is place 1, bit 7 of the first place 32.
"""

from collections.abc import Iterable
from typing import ClassVar, Final, Self

import msgspec

from protocols.fdl.frame import Happening, Malformed

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


class Lit(msgspec.Struct, frozen=True):
    """The lamps through which a current flows now, by their numbers, from the lowest."""

    KIND: ClassVar[int] = 0x68
    lamps: tuple[int, ...]

    def to_bytes(self) -> bytes:
        return places_to_bytes(self.lamps)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(places_from_bytes(data)) if len(data) == 4 else Malformed("lamps are four bytes")


HAPPENINGS: dict[int, type[Happening]] = {Lit.KIND: Lit}

# ---- commands

LIGHT = 0x50  # the lamps to be lit, the others go dark; answered with those that are
