"""A registry whose values are made at their first use: a process loads the drivers and games that it uses."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from importlib import import_module
from typing import Any, TypeVar

__all__ = ["OnDemand", "class_named", "whole_modules"]

T = TypeVar("T")


class OnDemand(MutableMapping[str, T]):
    """All names are known; `make` is called with a name once, at the first use of its value."""

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


def whole_modules(names: Iterable[str]) -> list[str]:
    """The modules that are not part of another one; `sas_machine_faults` is part of `sas_machine`."""
    found = list(names)
    return [name for name in found if not any(name.startswith(f"{whole}_") for whole in found)]


def class_named(module: str, name: str) -> Any:
    """The class in a module that has this `name`, where a subclass only inherits it. Raises LookupError."""
    for one in vars(import_module(module)).values():
        if isinstance(one, type) and one.__module__ == module and vars(one).get("name") == name:
            return one
    raise LookupError(f"{module} has no class with name = {name!r}")
