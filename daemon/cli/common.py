"""Common parts of the commands: reading the configuration, bad input, running until interrupted."""

import asyncio
import errno
import gc
import os
import signal
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from daemon import logs

CONFIG = click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(path_type=Path, readable=False),  # load_config reports it, with a remedy
    default="/etc/feltd/feltd.toml",
    show_default=True,
    help="the configuration of the site",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="for programs")

THREADS = 24


class CommandGroup(click.Group):
    """A group whose list of commands shows the whole first sentence of each, wrapped."""

    group_class = type

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list below the options."""
        named = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(limit=200)) for name, one in named if one is not None and not one.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def examples(*lines: str) -> str:
    """The end of a command's help: example command lines."""
    return "\b\n" + "\n".join(("Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)))


def give_way() -> None:
    """Lower the priority of this command, so that the processes of the tables go first."""
    os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))


class BadInputError(click.ClickException):
    """Wrong input of a person: place and remedy, exit code 2."""

    exit_code = 2


_REMEDIES = {
    errno.ENOENT: "check the path, and that its folder exists",
    errno.EACCES: "run this with sudo, or as a user who may",
    errno.EPERM: "run this with sudo, or as a user who may",
    errno.EISDIR: "name a file",
    errno.ENOTDIR: "check the path: a part of it is a file",
    errno.EEXIST: "name another file",
    errno.ENOSPC: "free some space, or name a path on another disk",
    errno.EROFS: "name a path on a disk that can be written",
}


def file_trouble(error: OSError, path: object) -> BadInputError:
    """The message of a file that cannot be used: its path, the reason and a remedy."""
    remedy = _REMEDIES.get(error.errno or 0, "check the disk and the path")
    return BadInputError(f"{error.filename or path}: {error.strerror or error}; {remedy}")


def broker_trouble(config_path: Path, config: Any, reason: object) -> click.ClickException:
    """The message of a broker that does not answer or refuses, or of a file for it that cannot be read."""
    from daemon.broker.session import UnreadableFile

    if isinstance(reason, UnreadableFile):
        return click.ClickException(f"{reason}; run this with sudo, or correct the file or its path in {config_path}")
    where = f"{config.mqtt.host}:{config.mqtt.port}"
    remedy = f"check that it runs, and host, port and users in {config_path}"
    return click.ClickException(f"the broker {where}: {reason}; {remedy}")


def broker_config(config_path: Path) -> Any:
    """The configuration, for a command that uses the broker; an unreadable file is reported at once.

    Raises BadInputError or ClickException.
    """
    from daemon.broker.connection import look_at_files
    from daemon.broker.session import UnreadableFile

    config = load_config(config_path)
    try:
        look_at_files(config.mqtt)
    except UnreadableFile as error:
        raise broker_trouble(config_path, config, error) from error
    return config


def echo_json(value: object) -> None:
    """Print a value for programs."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def load_config(path: Path) -> Any:
    from daemon.config.model import BadConfig, load

    try:
        return load(path)
    except BadConfig as error:
        match error.__cause__:
            case FileNotFoundError():
                remedy = "; name your configuration, or write one with `feltd init`"
            case PermissionError():
                remedy = "; run this with sudo, or as a user in the group feltd"
            case _:
                remedy = ""
        raise BadInputError(f"{error}{remedy}") from error


def open_journal(path: str, keeping: Any, config: Any = None) -> Any:
    """Open and verify a journal before anything else is opened. `config`: of a journal that is forwarded."""
    from daemon.journal.forwarded import NONE_WAITS, forwarded_of
    from daemon.journal.retention import take_up
    from daemon.journal.store import BadJournal, Journal

    try:
        journal = Journal(Path(path))
        try:
            take_up(journal, keeping, forwarded_of(config, journal) if config else lambda: NONE_WAITS)
        except BaseException:
            journal.close()
            raise
    except BadJournal as error:
        raise BadInputError(str(error)) from error
    return journal


def run_process(
    process: Callable[[], Coroutine[Any, Any, None]], *said: type[Exception], reload: Callable[[], None] | None = None
) -> None:
    """Run a process of production: ready, watched, ended cleanly by SIGTERM or Ctrl-C; `reload` is called on SIGHUP.

    A damaged journal, or another error of `said`, ends it with one message.
    """
    from daemon.journal.store import BadJournal
    from daemon.sdnotify import notify, watchdog

    async def body() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        # More threads than cores, because they wait: for name servers and for ports that close.
        loop.set_default_executor(ThreadPoolExecutor(THREADS))

        def stop() -> None:
            task.cancel()
            notify("STOPPING=1")

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        if reload is not None:
            loop.add_signal_handler(signal.SIGHUP, reload)
        # The objects of the start live as long as the process, so the collector need not visit them again. A collection
        # before this found nothing and took 12 ms.
        gc.freeze()
        async with asyncio.TaskGroup() as group:
            group.create_task(process())
            group.create_task(watchdog())
            notify("READY=1")

    try:
        asyncio.run(body())
    except asyncio.CancelledError:
        return
    except BaseExceptionGroup as errors:
        bad = errors.subgroup(lambda error: isinstance(error, (BadJournal, *said)))
        if bad is None:
            raise
        raise click.ClickException(str(logs.first(bad))) from errors


def refuse(mistakes: list[str]) -> None:
    if mistakes:
        raise BadInputError("\n".join(mistakes))


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write texts as files of a folder, which is created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise file_trouble(error, folder) from error


def ruleset_named(name: str) -> Any:
    from rules import RULESETS

    if name not in RULESETS:
        from daemon.config.model import likely

        raise BadInputError(f"no ruleset {name!r}; {likely(name, RULESETS)}")
    return RULESETS[name]


def option_pairs(words: tuple[str, ...], before: str = "--option ", form: str = "NAME=VALUE") -> dict[str, str]:
    """Each word split at its first `=`; `before` and `form` are parts of the message for a word without one."""
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise BadInputError(f"{before}{word}: write {form}")
        if key in pairs:
            raise BadInputError(f"{before}{key} is there twice, as {pairs[key]!r} and {value!r}; write it once")
        pairs[key] = value
    return pairs


OPTIONAL_CONFIG = click.option(
    "-c", "--config", "config_path", type=click.Path(path_type=Path, readable=False), help="of the site"
)


def run_until_interrupted(body: Coroutine[Any, Any, Any]) -> Any:
    """Run until the end, Ctrl-C or SIGTERM; ports and files are left in order."""

    ended: list[SystemExit] = []

    async def until_signalled() -> Any:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            return await body
        except SystemExit as error:  # the error must not end a task: asyncio would log it as well
            ended.append(error)

    try:
        result = asyncio.run(until_signalled())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None
    if ended:
        raise ended[0]
    return result


def time_option(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Any:
    """A time of an option: UTC unless a zone is written."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(f"{text}: write 2026-11-20 or 2026-11-20T20:00:00+08:00") from error
