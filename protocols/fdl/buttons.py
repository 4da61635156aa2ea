"""FDL, button counter: the kinds and data of its events (docs/reference/protocols/fdl_buttons.md)."""

import struct
from typing import ClassVar, Self

import msgspec

from protocols.fdl.frame import Happening, Malformed, Plain

_COUNTED = struct.Struct(">HB")


class Separated(Plain, frozen=True):
    """The cup stands over a heap of buttons."""

    KIND: ClassVar[int] = 0x78


class Counted(msgspec.Struct, frozen=True):
    """So many whole buttons lay under the cup; `fragments` of broken ones are not among them."""

    KIND: ClassVar[int] = 0x79
    count: int
    fragments: int = 0

    def to_bytes(self) -> bytes:
        return _COUNTED.pack(self.count, self.fragments)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _COUNTED.size or not int.from_bytes(data[:2]):
            return Malformed("a count is the whole buttons, from 1, and the fragments")
        return cls(*_COUNTED.unpack(data))


HAPPENINGS: dict[int, type[Happening]] = {happening.KIND: happening for happening in (Separated, Counted)}
