"""Pages that follow the site: fragments of HTML, pushed as server-sent events when what they show has changed.

A page names the fragments it holds; what changes within PAUSE is rendered once, for all who look at it in the same
language. A slow browser costs a piece of what is said to it: what it did not take is rendered anew when it does.
"""

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from daemon.console.words import words

__all__ = ["Fragment", "Gone", "Live", "Viewer"]

PAUSE = 0.1
HEARTBEAT = 5.0
MOST_VIEWERS = 200
# Of one user, or of all screens with one token: nobody takes the room of all.
MOST_OF_ONE = 40
# Every table of a site and the age of its last event, and some more.
MOST_FRAGMENTS = 1_200
# Bytes of HTML in one message: of a page with much on it, this is all that waits for a browser that does not read.
PIECE = 65_536
# Fragments that are kept as they were rendered, and their bytes.
RENDERED = 4000
MOST_BYTES = 16 * 2**20


class Viewer(Struct, frozen=True):
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
    render: Callable[[str, Viewer], str]
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
        self._rendered: OrderedDict[tuple[str, Viewer], tuple[int, str]] = OrderedDict()
        self._bytes = 0
        self._closing = False

    def add(self, fragment: Fragment) -> None:
        """Pages may hold such fragments."""
        self._kinds[fragment.kind] = fragment

    @property
    def viewers(self) -> int:
        """How many pages are looked at."""
        return len(self._streams)

    def full(self, whom: str) -> bool:
        """Whether no further page of `whom` can be followed."""
        own = sum(stream.whom == whom for stream in self._streams)
        return len(self._streams) >= MOST_VIEWERS or own >= MOST_OF_ONE

    def changed(self, key: str) -> None:
        """Something of the site changed."""
        self._versions[key] = self._versions.get(key, 0) + 1
        for stream in self._streams:
            names = stream.of.get(key)
            if names:
                stream.dirty.update(dict.fromkeys(names))
                stream.changed.set()

    def html(self, name: str, viewer: Viewer) -> str:
        """A fragment as it is now. Raises KeyError for one that does not exist or is not this one's to see."""
        kind, _, argument = name.partition("/")
        fragment = self._kinds[kind]
        table = fragment.table(argument)
        if table and not viewer.may_see(table):
            raise KeyError(name)
        version = sum(self._versions.get(key, 0) for key in fragment.keys(argument))
        known = self._rendered.get((name, viewer))
        if known is not None and known[0] == version:
            return known[1]
        text = fragment.render(argument, viewer)
        self._keep((name, viewer), version, text)
        return text

    def _keep(self, key: tuple[str, Viewer], version: int, text: str) -> None:
        """In the place of what it was; the oldest go."""
        if (known := self._rendered.pop(key, None)) is not None:
            self._bytes -= sys.getsizeof(known[1])
        self._rendered[key] = version, text
        self._bytes += sys.getsizeof(text)
        while len(self._rendered) > RENDERED or self._bytes > MOST_BYTES:
            self._bytes -= sys.getsizeof(self._rendered.popitem(last=False)[1][1])

    def wanted(self, names: Iterable[str], viewer: Viewer) -> dict[str, tuple[str, ...]]:
        """Of the fragments a page asks for, those it may follow, with the keys they depend on."""
        found: dict[str, tuple[str, ...]] = {}
        asked = deque(names)
        while asked and len(found) < MOST_FRAGMENTS:
            name = asked.popleft()
            kind, _, argument = name.partition("/")
            fragment = self._kinds.get(kind)
            if fragment is not None and (not (table := fragment.table(argument)) or viewer.may_see(table)):
                found[name] = fragment.keys(argument)
                asked.extendleft(fragment.within(argument))
        return found

    async def follow(
        self, wanted: Mapping[str, tuple[str, ...]], viewer: Viewer, still: Callable[[], bool], whom: str = ""
    ) -> AsyncIterator[bytes]:
        """What a page is told from now on: all its fragments first, then those that change; a sign of life between.

        Ends when `still` says no longer: a session may end while a page is open. `whom`: the user who looks.
        """
        stream = _Stream(wanted, whom)
        stream.dirty = dict.fromkeys(wanted)
        names: deque[str] = deque()
        self._streams.add(stream)
        try:
            while not self._closing and still():
                if not names:
                    stream.changed.clear()
                    names.extend(stream.dirty)
                yield self._piece(stream, names, viewer)
                if names:
                    await asyncio.sleep(0)  # others are told too
                    continue
                await asyncio.sleep(PAUSE)
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await stream.changed.wait()
                except TimeoutError:
                    continue
        finally:
            self._streams.discard(stream)

    def _piece(self, stream: _Stream, names: deque[str], viewer: Viewer) -> bytes:
        """The first of `names` as they are now, as many as make a PIECE; they are up to date then."""
        said: dict[str, str] = {}
        size = 0
        while names and size < PIECE:
            name = names.popleft()
            stream.dirty.pop(name, None)
            try:
                said[name] = self.html(name, viewer)
            except Gone:
                said[name] = ""
            except KeyError:
                continue  # not known yet, after a start
            size += len(said[name])
        return b"data: " + msgspec.json.encode({"now": self._time(), "put": said}) + b"\n\n"

    def close(self) -> None:
        """Let every page go."""
        self._closing = True
        for stream in self._streams:
            stream.changed.set()
