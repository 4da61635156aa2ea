"""FDL, peek reader: the kind and data of its one event (docs/reference/protocols/fdl_peek.md).

The reader never says which card it saw. Data that could hold a card are malformed.
"""

from typing import ClassVar, Self

import msgspec

from protocols.fdl.frame import Happening, Malformed


class Peeked(msgspec.Struct, frozen=True):
    """Whether the card in the reader makes blackjack of the dealer's open ace or ten-value."""

    KIND: ClassVar[int] = 0x70
    blackjack: bool

    def to_bytes(self) -> bytes:
        return bytes((self.blackjack,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(bool(data[0])) if data in {b"\0", b"\1"} else Malformed("a peek is 0 or 1, and nothing else")


HAPPENINGS: dict[int, type[Happening]] = {Peeked.KIND: Peeked}
