"""FDL, button counter: the kinds and data of its events (docs/reference/protocols/fdl_buttons.md)."""

from typing import ClassVar, Final

from protocols.fdl.fields import Number, Record, by_kind


class Separated(Record, frozen=True):
    """The cup was placed over a heap of buttons."""

    KIND: ClassVar[int] = 0x78


class Counted(Record, frozen=True):
    """The count of whole buttons under the cup; `fragments` of broken ones are not included."""

    KIND: ClassVar[int] = 0x79
    FIELDS: ClassVar = {"count": Number(2, least=1), "fragments": Number()}
    count: int
    fragments: int = 0


HAPPENINGS: Final = by_kind(__name__)
