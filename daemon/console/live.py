"""Live pages: fragments of HTML, pushed as server-sent events when their content has changed.

A page names its fragments. Changes within PAUSE are rendered once for equal viewers (`Fragment`). A slow
browser has at most one message waiting; the fragments it missed are rendered again when it reads.
"""

import asyncio
import math
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daemon.words import words

__all__ = ["Fragment", "Gone", "Live", "Viewer"]

PAUSE = 0.05
HEARTBEAT = 2.0
# Least seconds between two checks of a page's session; without changes it is HEARTBEAT.
SESSION_CHECK = 1.0
MOST_VIEWERS = 200
# Pages of one user, or of all screens with one token, so that one user cannot take all places.
MOST_OF_ONE = 40
# Fragments of one page: every table of a site, the age of its last event, and some more.
MOST_FRAGMENTS = 1_200
# Characters of HTML after which a message ends: it may have one fragment more than that. A browser that does not read
# has one message waiting.
PIECE = 65_536
# Limits of the render cache: fragments and bytes.
RENDERED = 4000
MOST_BYTES = 16 * 2**20


class Viewer(Struct, frozen=True):
    """The properties of a viewer on which a fragment depends."""

    lang: words.Lang
    role: str
    tables: tuple[str, ...] = ()
    """The tables that this viewer may see; empty: all."""
    name: str = ""
    """The user, for fragments that show what is theirs."""

    def may_see(self, table: str) -> bool:
        """Whether the viewer may see a table."""
        return not self.tables or table in self.tables


class Gone(KeyError):
    """The object of a fragment is gone. An open page hides the fragment until it comes back."""


class Fragment(Struct, frozen=True):
    """One kind of fragment. `id` on the page is `<kind>/<argument>`; `keys` are the keys of the site it depends on.

    `within`: fragments nested in it that change more often. Pages that follow it follow them too. `personal`: it
    differs for each user. `plain`: it is the same for all users of a language. The others are rendered once for all
    users with the same language, role and tables. `every`: minimum seconds between two updates on one page, for content
    that changes with each event.
    """

    kind: str
    keys: Callable[[str], tuple[str, ...]]
    render: Callable[[str, Viewer], str]
    table: Callable[[str], str] = lambda _argument: ""
    within: Callable[[str], tuple[str, ...]] = lambda _argument: ()
    personal: bool = False
    plain: bool = False
    every: float = 0.0


def _mark(html: str) -> str:
    """A hash of rendered HTML, by which this process finds changes."""
    return f"{hash(html) & 0xFFFF_FFFF:08x}"


class _Stream:
    """One open page: its stale fragments, and the keys of the site that make its fragments stale."""

    def __init__(self, fragments: Mapping[str, tuple[str, ...]], whom: str) -> None:
        self.whom = whom
        self.dirty: dict[str, None] = {}
        self.held: dict[str, float] = {}
        """The fragments that wait because they were rendered a moment ago, and until when."""
        self.changed = asyncio.Event()
        self.sent: dict[str, str] = {}
        """By fragment, the mark of the last sent HTML: unchanged HTML is not sent again."""
        self.of: dict[str, list[str]] = {}
        for name, keys in fragments.items():
            for key in keys:
                self.of.setdefault(key, []).append(name)

    def stale(self, key: str) -> None:
        """A key of its fragments changed."""
        names = self.of[key]
        self.dirty.update(dict.fromkeys(names))
        if not self.held or any(name not in self.held for name in names):
            self.changed.set()

    def due(self, now: float) -> list[str]:
        """The stale fragments that do not wait."""
        self.held = {name: until for name, until in self.held.items() if until > now}
        return [name for name in self.dirty if name not in self.held]


class Live:
    """All open pages."""

    def __init__(self, time: Callable[[], str], version: str = "") -> None:
        """`time` gives the current time in the format of the pages; pages of another `version` are loaded again."""
        self._version = version
        self._time = time
        self._kinds: dict[str, Fragment] = {}
        self._streams: set[_Stream] = set()
        self._followers: dict[str, set[_Stream]] = {}
        """By key, the pages with fragments that depend on it: most changes are on no open page."""
        self._versions: dict[str, int] = {}
        self._rendered: OrderedDict[tuple[str, Viewer], tuple[int, str]] = OrderedDict()
        self._bytes = 0
        self._closing = False

    def add(self, fragment: Fragment) -> None:
        """Register a kind of fragment."""
        self._kinds[fragment.kind] = fragment

    @property
    def viewers(self) -> int:
        """The number of open pages."""
        return len(self._streams)

    def full(self, whom: str) -> bool:
        """Whether the limit of open pages of `whom`, or of all, is reached."""
        own = sum(stream.whom == whom for stream in self._streams)
        return len(self._streams) >= MOST_VIEWERS or own >= MOST_OF_ONE

    def changed(self, key: str) -> None:
        """Mark the fragments that depend on a changed key as stale."""
        self._versions[key] = self._versions.get(key, 0) + 1
        for stream in self._followers.get(key, ()):
            stream.stale(key)

    def html(self, name: str, viewer: Viewer) -> str:
        """The current HTML of a fragment. Raises KeyError for one that is unknown or forbidden to the viewer."""
        kind, _, argument = name.partition("/")
        fragment = self._kinds[kind]
        table = fragment.table(argument)
        if table and not viewer.may_see(table):
            raise KeyError(name)
        if fragment.plain:
            viewer = Viewer(viewer.lang, "")
        elif viewer.name and not fragment.personal:
            viewer = replace(viewer, name="")
        version = sum(self._versions.get(key, 0) for key in fragment.keys(argument))
        known = self._rendered.get((name, viewer))
        if known is not None and known[0] == version:
            return known[1]
        text = fragment.render(argument, viewer)
        self._keep((name, viewer), version, text)
        return text

    def on_page(self, name: str, viewer: Viewer) -> str:
        """As `html`, for a page that is about to be sent: with the mark by which the page follows it.

        Raises as `html`.
        """
        html = self.html(name, viewer)
        return html.replace(' data-live="', f' data-drawn="{_mark(html)}" data-live="', 1)

    def _keep(self, key: tuple[str, Viewer], version: int, text: str) -> None:
        """Put a fragment into the render cache; the oldest are dropped."""
        if (known := self._rendered.pop(key, None)) is not None:
            self._bytes -= sys.getsizeof(known[1])
        self._rendered[key] = version, text
        self._bytes += sys.getsizeof(text)
        while len(self._rendered) > RENDERED or self._bytes > MOST_BYTES:
            self._bytes -= sys.getsizeof(self._rendered.popitem(last=False)[1][1])

    def wanted(self, names: Iterable[str], viewer: Viewer) -> dict[str, tuple[str, ...]]:
        """The requested fragments that the viewer may follow, with the keys they depend on. Without their marks."""
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
        self,
        wanted: Mapping[str, tuple[str, ...]],
        viewer: Viewer,
        still: Callable[[], bool],
        whom: str = "",
        drawn: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncIterator[bytes]:
        """The messages for one page: first all its fragments, then the changed ones, and heartbeats in between.

        `drawn`: by fragment, the mark of the HTML on the page; it is sent only if it differs now.

        Ends when `still` returns false, e.g. because the session ended; it is called at most once in
        SESSION_CHECK. `whom`: the user of the page.
        """
        now = asyncio.get_running_loop().time
        valid_until = -math.inf
        stream = _Stream(wanted, whom)
        stream.dirty = dict.fromkeys(wanted)
        stream.sent.update(drawn)
        names: deque[str] = deque()
        self._streams.add(stream)
        for key in stream.of:
            self._followers.setdefault(key, set()).add(stream)
        try:
            while not self._closing:
                if now() >= valid_until:
                    if not still():
                        return
                    valid_until = now() + SESSION_CHECK
                if not names:
                    stream.changed.clear()
                    names.extend(stream.due(now()))
                yield self._piece(stream, names, viewer)
                if names:
                    await asyncio.sleep(0)  # let other pages send
                    continue
                await asyncio.sleep(PAUSE)
                wait_s = min(HEARTBEAT, min(stream.held.values(), default=math.inf) - now())
                try:
                    async with asyncio.timeout(wait_s):
                        await stream.changed.wait()
                except TimeoutError:
                    continue
        finally:
            self._streams.discard(stream)
            for key in stream.of:
                self._followers[key].discard(stream)
                if not self._followers[key]:
                    del self._followers[key]

    def _piece(self, stream: _Stream, names: deque[str], viewer: Viewer) -> bytes:
        """The current HTML of the first of `names`, until it has PIECE characters. They are no longer stale."""
        said: dict[str, str] = {}
        size = 0
        while names and size < PIECE:
            name = names.popleft()
            stream.dirty.pop(name, None)
            try:
                html = self.html(name, viewer)
            except Gone:
                html = ""
            except KeyError:
                continue  # not received yet, after a start
            if stream.sent.get(name) == (drawn := _mark(html)):
                continue
            stream.sent[name] = drawn
            if every := self._kinds[name.partition("/")[0]].every:
                stream.held[name] = asyncio.get_running_loop().time() + every
            said[name] = html
            size += len(html)
        return b"data: " + msgspec.json.encode({"now": self._time(), "version": self._version, "put": said}) + b"\n\n"

    def close(self) -> None:
        """End all open pages."""
        self._closing = True
        for stream in self._streams:
            stream.changed.set()
