"""A registry whose values are made when they are asked for: a process loads the drivers and games that it uses."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import TypeVar

__all__ = ["OnDemand"]

T = TypeVar("T")


class OnDemand(MutableMapping[str, T]):
    """All names are known; `make` is called with a name once, when its value is first asked for."""

    def __init__(self, names: Iterable[str], make: Callable[[str], T]) -> None:
        self._make = make
        self._made: dict[str, T | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> T:
        if (made := self._made[name]) is None:
            self._made[name] = made = self._make(name)
        return made

    def __setitem__(self, name: str, value: T) -> None:
        self._made[name] = value

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
