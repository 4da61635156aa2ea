"""The command line: the product for technicians and integrators.

Each command imports its own parts when it runs, so that the edge stays small. Bad input ends with one message on
standard error and exit code 2.
"""

import errno
import io
import sys
from typing import Any

import click

from daemon import logs
from daemon.cli import jackpot, journals, offline_commands, operations, processes, reference, site
from daemon.cli.console import console
from daemon.cli.pki import pki

PLUGINS = "feltd.commands"
LABORATORY = ("bench", "campaign", "demo", "simulate")


class _Output(io.FileIO):
    """Standard output. What cannot be written ends the command, wherever in it that was: nothing else is to blame."""

    _lost = False

    def write(self, data: Any) -> int:
        """Raises SystemExit, once: who is on the way out may write what it likes."""
        if self._lost:
            return len(data)
        try:
            return super().write(data) or 0
        except OSError as error:
            self._lost = True
            if error.errno != errno.EPIPE:  # a reader that has seen enough is no error
                click.echo(f"Error: standard output: {error.strerror}", err=True)
            raise SystemExit(1) from error


class _Group(click.Group):
    """All commands: those of this distribution, then those that others declare in the entry-point group.

    A command of the laboratory is loaded only when it is asked for, or when all are listed.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, sorted."""
        from importlib.metadata import entry_points  # 2.3 MiB, which no process of production needs

        return sorted({*super().list_commands(ctx), *entry_points(group=PLUGINS).names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Ours first: no other distribution can replace `feltd edge`."""
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
        """Run one. A test's standard output is no file and stays what it is."""
        try:
            file = sys.stdout.fileno()
        except (AttributeError, OSError):
            return super().main(*args, **extra)
        sys.stdout.flush()
        before = sys.stdout
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Output(file, "wb", closefd=False)),
            before.encoding,
            before.errors,
            line_buffering=bool(before.line_buffering),
        )
        try:
            return super().main(*args, **extra)
        finally:
            sys.stdout.flush()


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="feltd")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="what is logged, from here up, on standard error",
)
def main(log_level: str) -> None:
    """feltd: casino table devices onto MQTT, every round resolved by the article of the law."""
    logs.set_up(log_level)


for _command in (
    processes.edge,
    processes.mac_key,
    processes.rules,
    processes.check,
    jackpot.jackpots,
    jackpot.jackpot,
    operations.init,
    operations.doctor,
    operations.backup,
    reference.devices,
    reference.cards,
    reference.detect,
    reference.rulesets,
    reference.schema,
    reference.figures,
    offline_commands.resolve,
    offline_commands.replay,
    site.acl,
    site.broker,
    site.watch,
    site.record,
    site.make_bundle,
    site.command,
    site.forget,
    journals.journals,
    pki,
    console,
):
    main.add_command(_command)


if __name__ == "__main__":
    sys.exit(main())
