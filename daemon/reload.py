"""A new configuration for a running process: read on SIGHUP, used as soon as no round can be lost by the change.

A configuration with a mistake, or with a change that needs a restart, is logged and not used. A change of a table waits
until no round is open there; other tables play on.
"""

import asyncio
import json
import os
from collections.abc import Callable, Collection, Coroutine
from pathlib import Path

import msgspec
import structlog

from daemon import whole_files
from daemon.broker.suspensions import LIST_REMEDY
from daemon.config.lines import line_of
from daemon.config.model import BadConfig, Config, load
from daemon.sdnotify import notify, reloading

__all__ = ["Reload", "note_start", "run_until", "start_mistakes"]

LOOK_S = 0.25
"""Seconds between two checks of a table with an open round."""
AT_START = ("site", "mqtt", "journal")
"""The sections that each process reads only at its start, in addition to its own."""


def _start_file(config: Config, section: str) -> Path:
    """The file in which a process records what it read at its start."""
    folder = os.environ.get("STATE_DIRECTORY") or Path(getattr(config, section).journal).parent
    return Path(folder, f"{section}-started-with.json")


def _read_at_start(config: Config, section: str) -> dict[str, object]:
    return {name: msgspec.to_builtins(getattr(config, name)) for name in (*AT_START, section)}


def note_start(config: Config, section: str) -> None:
    """Note the sections that the process uses until its end, for `start_mistakes`."""
    whole_files.write(_start_file(config, section), json.dumps(_read_at_start(config, section)).encode(), 0o600)


def start_mistakes(config: Config, path: Path, section: str) -> list[str]:
    """Changes that the running process of `section` would not use, each as "file:line: text"."""
    try:
        started = json.loads(_start_file(config, section).read_bytes())
    except (OSError, ValueError):
        return []
    now = json.loads(json.dumps(_read_at_start(config, section)))
    text = (
        f"feltd-{section} reads it at its start alone: undo the change, or restart feltd-{section} between two rounds"
    )
    changed = [name for name in now if now[name] != started.get(name, now[name])]
    return [f"{path}:{line_of(path, (name,))}: [{name}] was changed; {text}" for name in changed]


class Reload:
    """The reloads of one process."""

    def __init__(
        self,
        path: Path,
        section: str,
        mistakes: Callable[[Config, Path], list[str]],
        log: structlog.typing.FilteringBoundLogger,
        unlisted: Callable[[Config, Path], list[str]] = lambda _config, _path: [],
    ) -> None:
        """`section` is that of the process. `mistakes`: finds the mistakes that the process refuses at its start.

        `unlisted`: finds rights that the broker's access list lacks; a new configuration is used nevertheless.
        """
        self._unlisted = unlisted
        self._path, self._section, self._mistakes, self._log = path, section, mistakes, log
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Read the file again: the handler of SIGHUP."""
        self._asked.set()

    async def next(self, now: Config, busy: Callable[[Config], Collection[str]]) -> Config:
        """The configuration after `now`, as soon as `busy` names no table whose open round it would touch."""
        wanted: Config | None = None
        waits: Collection[str] = ()
        while True:
            try:
                async with asyncio.timeout(None if wanted is None else LOOK_S):
                    await self._asked.wait()
            except TimeoutError:
                pass
            else:
                self._asked.clear()
                reloading()
                wanted, waits = await asyncio.to_thread(self._read, now), ()
                notify("READY=1")
            if wanted is not None:
                tables = sorted(busy(wanted))
                if not tables:
                    self._log.info("config.used", digest=wanted.digest, tables=len(wanted.table))
                    return wanted
                if not waits:
                    self._log.info("config.waits", tables=tables, reason="a round is open, or a command runs")
                waits = tables

    def _read(self, now: Config) -> Config | None:
        """The new configuration; None, with a line in the log, if there is nothing to do."""
        try:
            new = load(self._path)
            mistakes = self._mistakes(new, self._path)
        except BadConfig as error:
            mistakes = str(error).splitlines()
        if mistakes:
            self._log.error("config.refused", mistakes=mistakes, remedy="the previous configuration stays in use")
            return None
        fixed = [name for name in (*AT_START, self._section) if getattr(new, name) != getattr(now, name)]
        if fixed:
            remedy = f"restart feltd-{self._section} between two rounds; until then nothing of the file is used"
            self._log.error("config.needs_restart", sections=fixed, remedy=remedy)
            return None
        if new.digest == now.digest:
            self._log.info("config.unchanged")
            return None
        if unlisted := self._unlisted(new, self._path):
            self._log.error("config.unlisted", missing=unlisted, remedy=LIST_REMEDY)
        return new


async def run_until(process: Coroutine[None, None, None], change: Coroutine[None, None, Config]) -> Config:
    """Run `process` until `change` returns a configuration, and end it then."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(process)
        new = await change
        running.cancel()
    return new
