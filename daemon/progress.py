"""The progress of long work, from 0 to 1: the callback that journals and commands call."""

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Progress", "silent"]

Progress: TypeAlias = Callable[[float], None]


def silent(_part: float) -> None:
    """The callback that shows nothing."""
