"""The kinds of fields in the data of FDL's events; an event is declared as a list of its fields.

The file of each device declares the fields of its events in the order of the wire. Reading, writing and the tables of
docs/reference/protocols follow from these declarations.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

import msgspec


class Malformed(msgspec.Struct, frozen=True):
    """A frame, or an event in it, that the document does not allow."""

    what: str


class Happening(Protocol):
    """The content of an EVENT. The device's file lists its own in HAPPENINGS, by KIND."""

    KIND: ClassVar[int]

    def to_bytes(self) -> bytes:
        """The data of the EVENT."""
        ...

    @classmethod
    def from_bytes(cls, data: bytes) -> "Self | Malformed":
        """The content of these data."""
        ...


class Field(Protocol):
    """One field."""

    def write(self, value: Any) -> bytes:
        """The bytes of a value. Raises ValueError for one that they cannot carry."""
        ...

    def read(self, data: bytes, at: int) -> tuple[Any, int] | None:
        """The value that begins at `at`, and where the next field begins; None where there is no allowed value."""
        ...

    def page(self, name: str) -> str:
        """How the document writes a field of this name."""
        ...


class Number(msgspec.Struct, frozen=True):
    """An unsigned number of `size` bytes, `least` to `most`; writing checks only that it fits into them.

    In the document it may be `called` otherwise than its attribute, and be followed by a `note`.
    """

    size: int = 1
    least: int = 0
    most: int | None = None
    called: str = ""
    note: str = ""

    def write(self, value: int) -> bytes:
        try:
            return value.to_bytes(self.size)
        except OverflowError as error:
            raise ValueError(f"{value} does not fit into {self.size} bytes") from error

    def read(self, data: bytes, at: int) -> tuple[int, int] | None:
        end = at + self.size
        value = int.from_bytes(data[at:end])
        if end > len(data) or value < self.least or (self.most is not None and value > self.most):
            return None
        return value, end

    def page(self, name: str) -> str:
        words = (self.called or name) + (f" {self.size}" if self.size > 1 else "")
        if self.most is not None:
            words += f", {self.least} to {self.most}"
        elif self.least:
            words += f", from {self.least}"
        return words + self.note


class Code:
    """One byte that stands for one of a list of values. `says` is for the error about a value that is not listed."""

    def __init__(self, values: Mapping[int, Any], says: str, note: str = "") -> None:
        self._values = values
        self._codes = {value: code for code, value in values.items()}
        self._says = says
        self._note = note

    def write(self, value: Any) -> bytes:
        if value not in self._codes:
            raise ValueError(f"{self._says}, not {value!r}")
        return bytes((self._codes[value],))

    def read(self, data: bytes, at: int) -> tuple[Any, int] | None:
        return (self._values[data[at]], at + 1) if at < len(data) and data[at] in self._values else None

    def page(self, name: str) -> str:
        return name + self._note


class OneOf(msgspec.Struct, frozen=True):
    """One byte that has one of these numbers."""

    numbers: frozenset[int]
    note: str = ""

    def write(self, value: int) -> bytes:
        return bytes((value,))

    def read(self, data: bytes, at: int) -> tuple[int, int] | None:
        return (data[at], at + 1) if at < len(data) and data[at] in self.numbers else None

    def page(self, name: str) -> str:
        return name + self.note


class Text:
    """The rest of the data: `least` to `most` of these characters. `says` is for the error about another text."""

    def __init__(self, says: str, characters: str, least: int, most: int) -> None:
        self._pattern = re.compile(rf"[{characters.replace(' ', '')}]{{{least},{most}}}", re.ASCII)
        self._length = f"{least} to {most} characters of `{characters}`"
        self._says = says

    def write(self, value: str) -> bytes:
        if self._pattern.fullmatch(value) is None:
            raise ValueError(f"{self._says} has {self._length}")
        return value.encode("ascii")

    def read(self, data: bytes, at: int) -> tuple[str, int] | None:
        value = data[at:].decode("latin-1")
        return (value, len(data)) if self._pattern.fullmatch(value) else None

    def page(self, name: str) -> str:  # noqa: ARG002 - an error has a text of its own, not the attribute's name
        return f"{self._says}, {self._length}"


class Numbers(msgspec.Struct, frozen=True):
    """A count, up to `longest`, then as many numbers of one byte."""

    one: Number
    longest: int

    def write(self, value: tuple[int, ...]) -> bytes:
        return bytes((len(value), *value))

    def read(self, data: bytes, at: int) -> tuple[tuple[int, ...], int] | None:
        if at >= len(data) or data[at] > self.longest:
            return None
        end = at + 1 + data[at]
        if end > len(data) or any(self.one.read(data, place) is None for place in range(at + 1, end)):
            return None
        return tuple(data[at + 1 : end]), end

    def page(self, name: str) -> str:
        return f"n, 0 to {self.longest} · {self.one.page(f'n {name}')}"


class Bits(msgspec.Struct, frozen=True):
    """One byte with a bit for each name, the first is bit 0."""

    names: tuple[str, ...]

    def write(self, value: int) -> bytes:
        return bytes((value,))

    def read(self, data: bytes, at: int) -> tuple[int, int] | None:
        return (data[at], at + 1) if at < len(data) and not data[at] >> len(self.names) else None

    def page(self, name: str) -> str:
        return f"{name}: " + ", ".join(f"bit {bit} {one}" for bit, one in enumerate(self.names))


class Record(msgspec.Struct, frozen=True):
    """An event. Its data are FIELDS in the order of the wire, each under the name of its attribute."""

    FIELDS: ClassVar[Mapping[str, Field]] = {}

    def to_bytes(self) -> bytes:
        """The data. Raises ValueError for values that they cannot carry."""
        return b"".join([field.write(getattr(self, name)) for name, field in self.FIELDS.items()])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        """The event; Malformed where a value is not allowed, bytes are left, or the values contradict each other."""
        values: dict[str, Any] = {}
        at = 0
        for name, field in cls.FIELDS.items():
            if (found := field.read(data, at)) is None:
                return Malformed(f"the data are not: {cls.layout()}")
            values[name], at = found
        if at != len(data):
            return Malformed(f"the data are not: {cls.layout()}")
        record = cls(**values)
        wrong = record.contradiction()
        return Malformed(wrong) if wrong else record

    def contradiction(self) -> str:
        """How the values contradict each other; "" if they do not."""
        return ""

    @classmethod
    def layout(cls) -> str:
        """The fields as the document has them."""
        return " · ".join(field.page(name.replace("_", " ")) for name, field in cls.FIELDS.items()) or "nothing"


class Maybe(msgspec.Struct, frozen=True):
    """The rest of the data as a record, or nothing."""

    record: type[Record]

    def write(self, value: Record | None) -> bytes:
        return b"" if value is None else value.to_bytes()

    def read(self, data: bytes, at: int) -> tuple[Record | None, int] | None:
        if at == len(data):
            return None, at
        found = self.record.from_bytes(data[at:])
        return None if isinstance(found, Malformed) else (found, len(data))

    def page(self, name: str) -> str:  # noqa: ARG002 - the fields of the record have names of their own
        return f"then nothing, or {self.record.layout()}"


SWITCH = Code({0: False, 1: True}, "a switch is on or off", ": 1 on, 0 off")


def by_kind(module: str) -> dict[int, type[Happening]]:
    """The events that are defined in this module, by their kind."""
    found: dict[int, type[Happening]] = {}
    left = [Record]
    while left:
        record = left.pop()
        left += record.__subclasses__()
        if record.__module__ == module and (kind := vars(record).get("KIND")) is not None:
            found[kind] = record  # type: ignore[assignment]
    return dict(sorted(found.items()))
