"""FDL, dice shaker: the kinds and data of its events and commands (docs/reference/protocols/fdl_shaker.md)."""

from typing import ClassVar, Final

from protocols.fdl.fields import Bits, Number, Numbers, Record, by_kind

MAX_FACES = 16


class Covered(Record, frozen=True):
    """The dome is over the dice and its clasps are shut."""

    KIND: ClassVar[int] = 0x10


class Uncovered(Record, frozen=True):
    """The dome was lifted, or a clasp opened."""

    KIND: ClassVar[int] = 0x11


LEVER = 1
ELECTRONIC = 2


class Agitated(Record, frozen=True):
    """`cycles` pulls of the lever (mode LEVER), or agitations by the motor (mode ELECTRONIC)."""

    KIND: ClassVar[int] = 0x12
    FIELDS: ClassVar = {
        "mode": Number(1, LEVER, ELECTRONIC, note=" (1 lever, 2 electronic)"),
        "cycles": Number(least=1),
    }
    mode: int
    cycles: int = 1


class Read(Record, frozen=True):
    """The faces it read, how many dice lie on or under another die, and how many are not flat."""

    KIND: ClassVar[int] = 0x13
    FIELDS: ClassVar = {"stacked": Number(), "leaning": Number(), "faces": Numbers(Number(1, 1, 6), MAX_FACES)}
    faces: tuple[int, ...]
    stacked: int = 0
    leaning: int = 0


READING_LAMP = 0x01


class Lit(Record, frozen=True):
    """The lamps that are lit now: the sum of their bits, READING_LAMP."""

    KIND: ClassVar[int] = 0x14
    FIELDS: ClassVar = {"lamps": Bits(("reading",))}
    lamps: int


HAPPENINGS: Final = by_kind(__name__)

# ---- commands

AGITATE = 0x10  # cycles, 1 to 10
LIGHT = 0x11  # the lamps to be lit, the others go dark
