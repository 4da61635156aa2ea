"""Pages that follow the site: fragments of HTML, pushed as server-sent events when what they show has changed.

A page names the fragments it holds; what changes within PAUSE is rendered once, for all who look at it in the same
language. A slow browser costs nothing: what it did not take is rendered anew when it does.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from daemon.console import words

__all__ = ["Fragment", "Gone", "Live", "Looker"]

PAUSE = 0.1
HEARTBEAT = 5.0
MOST_LOOKERS = 200
# Of one session, or of all screens with one token: nobody takes the room of all.
MOST_OF_ONE = 40
# Every table of a site and the age of its last event, and some more.
MOST_FRAGMENTS = 1_200
RENDERED = 4000


class Looker(Struct, frozen=True):
    """For whom a fragment is rendered: what may make it differ."""

    lang: words.Lang
    role: str
    tables: tuple[str, ...] = ()
    """The only tables this one may see; empty: all."""

    def may_see(self, table: str) -> bool:
        """Whether a table is any of their business."""
        return not self.tables or table in self.tables


class Gone(KeyError):
    """What a fragment shows is known to be there no more: an open page hides it until it comes back."""


class Fragment(Struct, frozen=True):
    """One kind of fragment. `id` on the page is `<kind>/<argument>`; `keys` are those of the site it depends on.

    `within`: what stands in it and changes more often. Who follows it follows that too, and need not ask for it.
    """

    kind: str
    keys: Callable[[str], tuple[str, ...]]
    render: Callable[[str, Looker], str]
    table: Callable[[str], str] = lambda _argument: ""
    within: Callable[[str], tuple[str, ...]] = lambda _argument: ()


class _Stream:
    """One browser's page: which fragments are out of date, and by which keys of the site they become so."""

    def __init__(self, fragments: Mapping[str, tuple[str, ...]], whom: str) -> None:
        self.whom = whom
        self.dirty: dict[str, None] = {}
        self.changed = asyncio.Event()
        self.of: dict[str, list[str]] = {}
        for name, keys in fragments.items():
            for key in keys:
                self.of.setdefault(key, []).append(name)


class Live:
    """All pages that are looked at."""

    def __init__(self, time: Callable[[], str]) -> None:
        """`time` says the instant, as pages carry it."""
        self._time = time
        self._kinds: dict[str, Fragment] = {}
        self._streams: set[_Stream] = set()
        self._versions: dict[str, int] = {}
        self._rendered: OrderedDict[tuple[str, Looker], tuple[int, str]] = OrderedDict()
        self._closing = False

    def add(self, fragment: Fragment) -> None:
        """Pages may hold such fragments."""
        self._kinds[fragment.kind] = fragment

    @property
    def lookers(self) -> int:
        """How many pages are looked at."""
        return len(self._streams)

    def full(self, whom: str) -> bool:
        """Whether no further page of the session `whom` can be followed."""
        own = sum(stream.whom == whom for stream in self._streams)
        return len(self._streams) >= MOST_LOOKERS or own >= MOST_OF_ONE

    def changed(self, key: str) -> None:
        """Something of the site changed."""
        self._versions[key] = self._versions.get(key, 0) + 1
        for stream in self._streams:
            names = stream.of.get(key)
            if names:
                stream.dirty.update(dict.fromkeys(names))
                stream.changed.set()

    def html(self, name: str, looker: Looker) -> str:
        """A fragment as it is now. Raises KeyError for one that does not exist or is not this one's to see."""
        kind, _, argument = name.partition("/")
        fragment = self._kinds[kind]
        table = fragment.table(argument)
        if table and not looker.may_see(table):
            raise KeyError(name)
        version = sum(self._versions.get(key, 0) for key in fragment.keys(argument))
        known = self._rendered.get((name, looker))
        if known is not None and known[0] == version:
            return known[1]
        text = fragment.render(argument, looker)
        self._rendered[name, looker] = version, text
        self._rendered.move_to_end((name, looker))
        if len(self._rendered) > RENDERED:
            self._rendered.popitem(last=False)
        return text

    def wanted(self, names: Iterable[str], looker: Looker) -> dict[str, tuple[str, ...]]:
        """Of the fragments a page asks for, those it may follow, with the keys they depend on."""
        found: dict[str, tuple[str, ...]] = {}
        asked = deque(names)
        while asked and len(found) < MOST_FRAGMENTS:
            name = asked.popleft()
            kind, _, argument = name.partition("/")
            fragment = self._kinds.get(kind)
            if fragment is not None and (not (table := fragment.table(argument)) or looker.may_see(table)):
                found[name] = fragment.keys(argument)
                asked.extendleft(fragment.within(argument))
        return found

    async def follow(
        self, wanted: Mapping[str, tuple[str, ...]], looker: Looker, still: Callable[[], bool], whom: str = ""
    ) -> AsyncIterator[bytes]:
        """What a page is told from now on: all its fragments first, then those that change; a sign of life between.

        Ends when `still` says no longer: a session may end while a page is open. `whom` is that session.
        """
        stream = _Stream(wanted, whom)
        stream.dirty = dict.fromkeys(wanted)
        self._streams.add(stream)
        try:
            while not self._closing and still():
                names, stream.dirty = stream.dirty, {}
                stream.changed.clear()
                said: dict[str, Any] = {}
                for name in names:
                    try:
                        said[name] = self.html(name, looker)
                    except Gone:
                        said[name] = ""
                    except KeyError:
                        continue  # not known yet, after a start
                yield b"data: " + msgspec.json.encode({"now": self._time(), "put": said}) + b"\n\n"
                await asyncio.sleep(PAUSE)
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await stream.changed.wait()
                except TimeoutError:
                    continue
        finally:
            self._streams.discard(stream)

    def close(self) -> None:
        """Let every page go."""
        self._closing = True
        for stream in self._streams:
            stream.changed.set()
