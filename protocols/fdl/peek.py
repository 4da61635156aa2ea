"""FDL, peek reader: the kind and data of its one event (docs/reference/protocols/fdl_peek.md).

The reader never reports which card it read. Data that could hold a card are malformed.
"""

from typing import ClassVar, Final

from protocols.fdl.fields import Code, Record, by_kind


class Peeked(Record, frozen=True):
    """Whether the card in the reader makes blackjack of the dealer's open ace or ten-value."""

    KIND: ClassVar[int] = 0x70
    FIELDS: ClassVar = {"blackjack": Code({0: False, 1: True}, "a peek is blackjack or none", ": 1 yes, 0 none")}
    blackjack: bool


HAPPENINGS: Final = by_kind(__name__)
