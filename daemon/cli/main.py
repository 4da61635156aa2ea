"""The command line, for technicians and integrators.

Each command imports its own parts when it runs, so that the edge stays small. Bad input ends with one message on
standard error and exit code 2.
"""

import errno
import io
import sys
from importlib import import_module
from typing import Any, TextIO

import click

from daemon import logs
from daemon.cli.common import CommandGroup, examples
from daemon.plain_text import plain
from protocols.on_demand import OnDemand

PLUGINS = "feltd.commands"
LABORATORY = ("bench", "campaign", "compute-figures", "demo", "schema", "simulate")
COLOURED = ("bench", "campaign", "demo", "simulate", "watch")
"""Their standard output holds escape sequences of their own; that of the laboratory standard error, too."""
# By name, the file and the function: a file is loaded for a command of it, or when all commands are listed.
_COMMANDS = {
    "edge": "processes:edge",
    "mac-key": "processes:mac_key",
    "mac-keys": "processes:mac_keys",
    "rules": "processes:rules",
    "check": "processes:check",
    "reload": "processes:reload_running",
    "table": "tables:table",
    "config": "tables:config",
    "jackpots": "jackpot:jackpots",
    "jackpot": "jackpot:jackpot",
    "init": "operations:init",
    "doctor": "operations:doctor",
    "status": "operations:status",
    "fleet": "fleet:fleet",
    "backup": "operations:backup",
    "restore": "operations:restore",
    "devices": "reference:devices",
    "cards": "reference:cards",
    "detect": "reference:detect",
    "conform": "conform:conform",
    "rulesets": "reference:rulesets",
    "figures": "reference:figures",
    "resolve": "offline_commands:resolve",
    "replay": "offline_commands:replay",
    "acl": "site:acl",
    "broker": "site:broker",
    "watch": "site:watch",
    "record": "site:record",
    "bundle": "site:make_bundle",
    "command": "site:command",
    "forget": "site:forget",
    "journal": "journals:journals",
    "pki": "pki:pki",
    "console": "console:console",
    "forward": "backbone:forward",
    "site": "backbone:site",
    "ledger": "ledger:ledger",
    "report": "ledger:report",
}


class _Output(io.FileIO):
    """Standard output. A failed write ends the command with one message, wherever it happens."""

    _lost = False

    def write(self, data: Any) -> int:
        """Write; a failure raises SystemExit once, and later failures are ignored."""
        if self._lost:
            return len(data)
        try:
            return super().write(data) or 0
        except OSError as error:
            self._lost = True
            if error.errno != errno.EPIPE:  # a reader that closed the pipe is no error
                click.echo(f"Error: standard output: {error.strerror}", err=True)
            raise SystemExit(1) from error


class _Text(io.TextIOWrapper):
    """Standard output or error as text, without control sequences that devices or the network may send."""

    plain = True
    """False for commands that write colours or move the cursor; they clean foreign texts themselves."""

    def __init__(self, file: io.FileIO, before: TextIO) -> None:
        """`before`: the stream that it replaces."""
        buffer = io.BufferedWriter(file)
        super().__init__(buffer, before.encoding, before.errors, line_buffering=bool(before.line_buffering))
        self.coloured = before

    def write(self, text: str, /) -> int:
        """Write it as plain text."""
        super().write(plain(text) if self.plain else text)
        return len(text)


class _Group(CommandGroup):
    """All commands: those of this distribution, then those that others declare in the entry-point group.

    A command of the laboratory is loaded only when it is asked for, or when all are listed.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, sorted."""
        from importlib.metadata import entry_points  # 2.3 MiB, which no process of production needs

        return sorted({*super().list_commands(ctx), *entry_points(group=PLUGINS).names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; our own first, so that no other distribution can replace `feltd edge`."""
        for stream, as_written in ((sys.stdout, COLOURED), (sys.stderr, LABORATORY)):
            if isinstance(stream, _Text):
                stream.plain = cmd_name not in as_written
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        from importlib.metadata import entry_points

        for declared in entry_points(group=PLUGINS, name=cmd_name):
            command: click.Command = declared.load()
            return command
        if cmd_name in LABORATORY:
            ctx.fail(f"{cmd_name!r} belongs to the laboratory, which is not installed: install feltd[lab]")
        return None

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command. The streams of a test are no files and stay unchanged."""
        try:
            out, err = sys.stdout.fileno(), sys.stderr.fileno()
        except (AttributeError, OSError):
            return super().main(*args, **extra)
        sys.stdout.flush()
        sys.stdout = _Text(_Output(out, "wb", closefd=False), sys.stdout)
        sys.stderr = _Text(io.FileIO(err, "wb", closefd=False), sys.stderr)
        try:
            return super().main(*args, **extra)
        finally:
            sys.stdout.flush()


def _command(name: str) -> click.Command:
    file, _, function = _COMMANDS[name].partition(":")
    found: click.Command = getattr(import_module(f"daemon.cli.{file}"), function)
    return found


@click.group(
    cls=_Group,
    epilog=examples("sudo feltd status", "sudo feltd doctor", "feltd devices shoe.unreadable"),
    commands=OnDemand(_COMMANDS, _command),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(package_name="feltd")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="the lowest level that is logged, on standard error",
)
def main(log_level: str) -> None:
    """feltd: casino table devices onto MQTT, every round resolved by the article of the law."""
    logs.set_up(log_level)


if __name__ == "__main__":
    sys.exit(main())
