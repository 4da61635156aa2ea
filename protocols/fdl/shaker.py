"""FDL, dice shaker: the kinds and data of its events and commands (docs/reference/protocols/fdl_shaker.md)."""

from typing import ClassVar, Self

import msgspec

from protocols.fdl.frame import Happening, Malformed, Plain

MAX_FACES = 16


class Covered(Plain, frozen=True):
    """The dome is over the dice and its clasps are shut."""

    KIND: ClassVar[int] = 0x10


class Uncovered(Plain, frozen=True):
    """The dome was lifted."""

    KIND: ClassVar[int] = 0x11


LEVER = 1
ELECTRONIC = 2


class Agitated(msgspec.Struct, frozen=True):
    """`cycles` pulls of the lever (mode LEVER), or agitations by the motor (mode ELECTRONIC)."""

    KIND: ClassVar[int] = 0x12
    mode: int
    cycles: int = 1

    def to_bytes(self) -> bytes:
        return bytes((self.mode, self.cycles))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 2 or data[0] not in {LEVER, ELECTRONIC} or not data[1]:
            return Malformed("an agitation is mode 1 or 2, cycles from 1")
        return cls(*data)


class Read(msgspec.Struct, frozen=True):
    """The faces it read, and how many dice lie on another or are not flat."""

    KIND: ClassVar[int] = 0x13
    faces: tuple[int, ...]
    stacked: int = 0
    leaning: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.stacked, self.leaning, len(self.faces), *self.faces))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) < 3 or data[2] != len(data) - 3 or data[2] > MAX_FACES:
            return Malformed(f"a reading is stacked, leaning, n up to {MAX_FACES}, n faces")
        if any(not 1 <= face <= 6 for face in data[3:]):
            return Malformed("a face is 1 to 6")
        return cls(tuple(data[3:]), data[0], data[1])


READING_LAMP = 0x01


class Lit(msgspec.Struct, frozen=True):
    """The lamps that are lit now: the sum of their bits, READING_LAMP."""

    KIND: ClassVar[int] = 0x14
    lamps: int

    def to_bytes(self) -> bytes:
        return bytes((self.lamps,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 1 and data[0] <= READING_LAMP else Malformed("lamps are 0 or 1")


HAPPENINGS: dict[int, type[Happening]] = {
    happening.KIND: happening for happening in (Covered, Uncovered, Agitated, Read, Lit)
}

# ---- commands

AGITATE = 0x10  # cycles, 1 to 10
LIGHT = 0x11  # the lamps to be lit, the others go dark
