"""Duties that a text puts on the house by the clock: change the ball hourly, relieve the dealer, stop before closing.

A game names its duties as data; nothing here knows a game.
"""

from datetime import timedelta
from typing import Final, TypeAlias

from msgspec import Struct

from protocols.contract.events import Event

HOUR: Final = timedelta(hours=1)


class Duty(Struct, frozen=True):
    """Something that must be done again and again while a table plays, at most `every` apart.

    `code` names it ("ball_change"); `done_by` are the events that show that it was done.
    """

    code: str
    law: str
    done_by: tuple[type[Event], ...]
    every: timedelta = HOUR


class LastRound(Struct, frozen=True):
    """No round may begin less than `before` the closing time, which the option `closes_at` of the ruleset names."""

    code: str
    law: str
    before: timedelta


Duties: TypeAlias = tuple[Duty | LastRound, ...]
