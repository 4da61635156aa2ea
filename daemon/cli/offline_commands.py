"""The commands that work on files: a capture to events, events to results."""

import re
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from daemon.cli.common import (
    BadInputError,
    examples,
    file_trouble,
    option_pairs,
    ruleset_named,
)


@click.command(epilog=examples("feltd resolve --ruleset macau.roulette events.ndjson"))
@click.option("--ruleset", "name", required=True, help="for example macau.baccarat; see feltd rulesets")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="of the ruleset; may be repeated")
@click.option("--table", default="table", show_default=True, help="as it is called in the rounds")
@click.option("--all", "everything", is_flag=True, help="every verdict, not only results")
@click.argument("file", type=click.File("r", encoding="utf-8"), default="-")
def resolve(name: str, options: tuple[str, ...], table: str, everything: bool, file: Any) -> None:
    """Events as NDJSON to results as NDJSON."""
    from daemon.cli.offline import BadInput, events_from, resolve as resolved
    from rules.engine.ruleset import BadOption, Corrected, Resolved, Voided, options_from

    kind = ruleset_named(name)
    try:
        ruleset = kind(options_from(kind, option_pairs(options), text=True))
        for verdict in resolved(ruleset, events_from(file, file.name, table), table):
            if everything:
                click.echo(msgspec.json.encode(verdict))
            elif isinstance(verdict, Resolved | Voided | Corrected):
                click.echo(msgspec.json.encode(verdict.result))
    except (BadInput, BadOption) as error:
        raise BadInputError(str(error)) from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{file.name}: not UTF-8 text: {error.reason} at byte {error.start}") from error


@click.command(epilog=examples("feltd replay wheel.capture --driver cammegh_ss2"))
@click.argument("capture", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--driver", required=True, help="for example cammegh_ss2; see feltd devices")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="of the driver; may be repeated")
@click.option(
    "--pace", type=click.FloatRange(0, 60), default=0.5, show_default=True, help="seconds a line of raw bytes"
)
def replay(capture: Path, driver: str, options: tuple[str, ...], pace: float) -> None:
    """A capture to events as NDJSON."""
    from daemon.cli.offline import BadInput, capture_frames, replay as replayed
    from daemon.cli.progress import ProgressLine
    from drivers import DRIVERS

    if driver not in DRIVERS:
        from daemon.config.model import likely

        raise BadInputError(f"no driver {driver!r}; {likely(driver, DRIVERS)}")
    try:
        raw = capture.read_bytes()
    except OSError as error:
        raise file_trouble(error, capture) from error
    try:
        frames = capture_frames(raw, str(capture), pace)
        with ProgressLine(also_on=sys.stdout) as progress:
            seen = replayed(frames, driver, option_pairs(options), progress.of(capture.name))
    except BadInput as error:
        raise BadInputError(str(error)) from error
    for one in seen:
        click.echo(msgspec.json.encode(one))
    if not seen:
        from daemon.console.pages.trace import messages_read

        said = re.match(rb"# feltd capture 1 driver=(\w{1,40})", raw)
        read, messages = messages_read(driver, frames)
        device_bytes = sum(len(frame.data) for frame in frames if frame.from_device)
        whose = f"it was recorded with {said[1].decode()}" if said else "see `feltd devices` for its driver"
        if said and said[1].decode() == driver:
            few = f"{device_bytes} bytes of the device are too few, or the driver cannot decode them"
            whose = f"its driver is right, and {few}: was the capture cut short?"
        if not read:
            raise BadInputError(f"{capture}: {driver} can decode nothing in it; {whose}")
        count = f"it reads {read} of {messages} messages in it"
        if 2 * read < messages:  # noise holds a short message now and then
            raise BadInputError(f"{capture}: {driver} finds no event in it; {count}; {whose}")
        if not said or said[1].decode() == driver:
            whose = f"{count}, and none of them is an event"
        click.echo(f"{capture}: {driver} finds no event in it; {whose}", err=True)
