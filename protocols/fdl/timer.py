"""FDL, betting timer: the kinds and data of its events and commands (docs/reference/protocols/fdl_timer.md)."""

from typing import ClassVar, Final

from protocols.fdl.fields import Number, OneOf, Record, by_kind

MAX_SECONDS: Final = 600
BY_KEY, BY_HOST = 1, 2
STARTERS: Final = {BY_KEY: "its key", BY_HOST: "the host"}


class Running(Record, frozen=True):
    """The time runs, `seconds` of it; `by` is BY_KEY or BY_HOST."""

    KIND: ClassVar[int] = 0x74
    FIELDS: ClassVar = {
        "seconds": Number(2, 1, MAX_SECONDS),
        "by": OneOf(frozenset(STARTERS), ": 1 its key, 2 the host"),
    }
    seconds: int
    by: int = BY_KEY


class Expired(Record, frozen=True):
    """The time is over."""

    KIND: ClassVar[int] = 0x75


class Stopped(Record, frozen=True):
    """The time was stopped with `left` seconds of it to run; bets stay open."""

    KIND: ClassVar[int] = 0x76
    FIELDS: ClassVar = {"left": Number(2, 0, MAX_SECONDS, "seconds left")}
    left: int


HAPPENINGS: Final = by_kind(__name__)

# ---- commands

START = 0x58  # seconds, two bytes, 1 to 600
STOP = 0x59

# Why the device refuses one, besides fdl.REASONS.
NOT_RUNNING = 0x10
