"""The command line: the product for technicians and integrators.

Each command imports its own parts when it runs, so that the edge stays small. Bad input ends with one message on
standard error and exit code 2.
"""

import asyncio
import gc
import re
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click
import msgspec

from daemon import logs

CONFIG = click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    default="/etc/feltd/feltd.toml",
    show_default=True,
    help="the configuration of the site",
)


class BadInputError(click.ClickException):
    """What a person gave us is wrong: place and remedy, exit code 2."""

    exit_code = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
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


def _load(path: Path) -> Any:
    from daemon.config import BadConfig, load

    try:
        return load(path)
    except BadConfig as error:
        raise BadInputError(str(error)) from error


def _journal(path: str) -> Any:
    from daemon.journal import BadJournal, Journal

    try:
        return Journal(Path(path))
    except BadJournal as error:
        raise BadInputError(str(error)) from error


def _run(process: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a process of production: ready, watched, ended cleanly by SIGTERM or Ctrl-C."""
    from daemon.journal import BadJournal
    from daemon.sdnotify import notify, watchdog

    async def body() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        # What is here now stays: no later collection need look at it, and none stops the loop for long.
        gc.collect()
        gc.freeze()
        async with asyncio.TaskGroup() as group:
            group.create_task(process())
            group.create_task(watchdog())
            notify("READY=1")

    try:
        asyncio.run(body())
    except asyncio.CancelledError:
        notify("STOPPING=1")
    except BaseExceptionGroup as errors:
        bad: BaseException | None = errors.subgroup(BadJournal)
        if bad is None:
            raise
        while isinstance(bad, BaseExceptionGroup):
            bad = bad.exceptions[0]
        raise click.ClickException(str(bad)) from errors


@main.command()
@CONFIG
def edge(config_path: Path) -> None:
    """Serve the devices of this computer."""
    from daemon.check import device_mistakes
    from daemon.edge import Edge

    config = _load(config_path)
    _refuse(device_mistakes(config, config_path))
    journal = _journal(config.edge.journal)
    _run(lambda: Edge(config, journal).run())
    journal.close()
    logs.get(edge=config.edge.name).info("edge.stopped")


@main.command()
@CONFIG
def rules(config_path: Path) -> None:
    """Resolve the rounds of all tables."""
    from daemon.check import ruleset_mistakes
    from daemon.consumer import Consumer

    config = _load(config_path)
    _refuse(ruleset_mistakes(config, config_path))
    journal = _journal(config.rules.journal)
    _run(lambda: Consumer(config, journal).run())
    journal.close()
    logs.get(rules=config.rules.name).info("rules.stopped")


def _refuse(mistakes: list[str]) -> None:
    if mistakes:
        raise BadInputError("\n".join(mistakes))


def _by_line(mistakes: list[str], path: Path) -> list[str]:
    """As they stand in the file."""
    return sorted(mistakes, key=lambda mistake: int(mistake.removeprefix(f"{path}:").partition(":")[0]))


@main.command()
@CONFIG
@click.option("--probe", is_flag=True, help="also open each device and wait for it to answer; stop the edge first")
def check(config_path: Path, probe: bool) -> None:
    """Validate a configuration; name every mistake with its line.

    A device speaks with one host at a time: a probe beside a running edge finds the port in use, or takes the device
    away from it for a moment.
    """
    from daemon.check import device_mistakes, probe_devices, ruleset_mistakes, summary

    config = _load(config_path)
    mistakes = device_mistakes(config, config_path) + ruleset_mistakes(config, config_path)
    _refuse(_by_line(mistakes, config_path))
    click.echo(summary(config, config_path))
    if probe and not asyncio.run(probe_devices(config, click.echo)):
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("device", required=False)
@click.option("--json", "as_json", is_flag=True, help="for programs")
@click.option("--pages", type=click.Path(path_type=Path, file_okay=False), help="write the page of every device there")
def devices(device: str | None, as_json: bool, pages: Path | None) -> None:
    """List the supported devices with their evidence, or show the page of one: options, commands, faults, remedies."""
    from daemon.listings import device_list, device_table
    from daemon.pages import device_page, index_page
    from drivers import DRIVERS

    if pages is not None:
        pages.mkdir(parents=True, exist_ok=True)
        for name in DRIVERS:
            (pages / f"{name}.md").write_text(device_page(name), encoding="utf-8")
        (pages / "README.md").write_text(index_page(), encoding="utf-8")
    elif device is not None:
        if device not in DRIVERS:
            raise BadInputError(f"no driver {device!r}; known: {', '.join(DRIVERS)}")
        click.echo(device_page(device))
    else:
        click.echo(msgspec.json.format(msgspec.json.encode(device_list())).decode() if as_json else device_table())


@main.command()
def detect() -> None:
    """List what is plugged in, by the name that stays."""
    from daemon.listings import detected

    click.echo(detected())


@main.command()
@click.argument("ruleset", required=False)
@click.option("--json", "as_json", is_flag=True, help="for programs")
def rulesets(ruleset: str | None, as_json: bool) -> None:
    """List the games, or one with its bets, odds, options and articles."""
    from daemon.listings import ruleset_info, ruleset_page, ruleset_table
    from rules import RULESETS

    if ruleset is None:
        infos = [ruleset_info(kind) for kind in RULESETS.values()]
        click.echo(msgspec.json.format(msgspec.json.encode(infos)).decode() if as_json else ruleset_table())
        return
    kind = _ruleset(ruleset)
    click.echo(msgspec.json.format(msgspec.json.encode(ruleset_info(kind))).decode() if as_json else ruleset_page(kind))


@main.command()
def schema() -> None:
    """Print the topic tree as an AsyncAPI 3 document with JSON Schemas."""
    import importlib.metadata

    from daemon.schema import asyncapi

    document = asyncapi(importlib.metadata.version("feltd"))
    click.echo(msgspec.json.format(msgspec.json.encode(document, order="sorted")))


@main.command()
@click.argument("game", type=click.Choice(["baccarat"]))
@click.option("--decks", type=click.IntRange(6, 12), default=8, show_default=True)
def enumerate(game: str, decks: int) -> None:  # noqa: A001 - the command's name
    """Every coup there can be, through the ruleset: exact probabilities and house edges."""
    from rules.enumerate_baccarat import enumerate_coups

    figures = enumerate_coups(decks)
    click.echo(f"{game}, {decks} decks, every ordered coup by ranks through macau.baccarat")
    for name, probability in figures.probabilities.items():
        click.echo(f"  {name:14} {float(probability):.6f}")
    for commission, edges in figures.edges.items():
        click.echo(f"house edge, commission {commission}")
        for bet, edge in edges.items():
            click.echo(f"  {bet:14} {float(edge) * 100:.4f} %")


@main.command()
@click.argument("what", type=click.Choice(["spine", "decoders", "tables"]), default="spine")
@click.option("--rates", help="spine: lines a second, with commas  [default: 2,100,1000]")
@click.option("--seconds", type=click.FloatRange(1, 600), help="spine: of each turn  [default: 10]")
@click.option("--json", "as_json", is_flag=True, help="for programs")
def bench(what: str, rates: str | None, seconds: float | None, as_json: bool) -> None:
    """How fast it is, measured beside yardsticks in the same run. Takes minutes.

    \b
    spine     latency, throughput, memory and idle CPU, beside a bare loop; needs mosquitto
    decoders  each wire's decoder: valid, garbage, the worst found, bytes held
    tables    each kind of table, simulated: how many times real time
    """
    if what != "spine" and (rates, seconds) != (None, None):
        raise BadInputError(f"--rates and --seconds belong to `feltd bench spine`, not to {what}")

    def say(line: str) -> None:
        click.echo(line, err=True)

    match what:
        case "decoders":
            from daemon.bench_decoders import bench_decoders, decoders_markdown

            decoders = bench_decoders(say)
            click.echo(msgspec.json.encode(decoders) if as_json else decoders_markdown(decoders))
        case "tables":
            from daemon.bench_tables import bench_tables, tables_markdown

            logs.set_up("warning")
            tables = bench_tables(say)
            click.echo(msgspec.json.encode(tables) if as_json else tables_markdown(tables))
        case _:
            _bench_spine(rates or "2,100,1000", seconds or 10.0, as_json, say)


def _bench_spine(rates: str, seconds: float, as_json: bool, say: Callable[[str], None]) -> None:
    from daemon.bench import bench as benched
    from daemon.bench import markdown
    from daemon.broker import find_mosquitto

    if find_mosquitto() is None:
        raise BadInputError("the benchmark needs mosquitto: apt-get install mosquitto")
    try:
        wanted = [int(rate) for rate in rates.split(",")]
    except ValueError as error:
        raise BadInputError(f"--rates {rates}: write numbers with commas, for example 2,100,1000") from error
    report = asyncio.run(benched(wanted, seconds, say))
    click.echo(msgspec.json.encode(report) if as_json else markdown(report))


def _ruleset(name: str) -> Any:
    from rules import RULESETS

    if name not in RULESETS:
        raise BadInputError(f"no ruleset {name!r}; known: {', '.join(RULESETS)}")
    return RULESETS[name]


def _pairs(options: tuple[str, ...]) -> dict[str, Any]:
    pairs = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise BadInputError(f"--option {option}: write NAME=VALUE")
        pairs[key] = value
    return pairs


@main.command()
@click.option("--ruleset", "name", required=True, help="for example macau.baccarat; see feltd rulesets")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="of the ruleset; may be repeated")
@click.option("--table", default="table", show_default=True, help="as it is called in the rounds")
@click.option("--all", "everything", is_flag=True, help="every verdict, not only results")
@click.argument("file", type=click.File("r", encoding="utf-8"), default="-")
def resolve(name: str, options: tuple[str, ...], table: str, everything: bool, file: Any) -> None:
    """Events as NDJSON to results as NDJSON."""
    from daemon.offline import BadInput, events_from
    from daemon.offline import resolve as resolved
    from rules.ruleset import BadOption, Corrected, Resolved, Voided, options_from

    kind = _ruleset(name)
    try:
        ruleset = kind(options_from(kind, _pairs(options), text=True))
        for verdict in resolved(ruleset, events_from(file, file.name, table), table):
            if everything:
                click.echo(msgspec.json.encode(verdict))
            elif isinstance(verdict, Resolved | Voided | Corrected):
                click.echo(msgspec.json.encode(verdict.result))
    except (BadInput, BadOption) as error:
        raise BadInputError(str(error)) from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{file.name}: not UTF-8 text: {error.reason} at byte {error.start}") from error


@main.command()
@click.argument("capture", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--driver", required=True, help="for example cammegh_ss2; see feltd devices")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="of the driver; may be repeated")
@click.option(
    "--pace", type=click.FloatRange(0, 60), default=0.5, show_default=True, help="seconds a line of raw bytes"
)
def replay(capture: Path, driver: str, options: tuple[str, ...], pace: float) -> None:
    """A capture to events as NDJSON."""
    from daemon.offline import BadInput, capture_frames
    from daemon.offline import replay as replayed
    from drivers import DRIVERS

    if driver not in DRIVERS:
        raise BadInputError(f"no driver {driver!r}; known: {', '.join(DRIVERS)}")
    try:
        raw = capture.read_bytes()
    except OSError as error:
        raise BadInputError(f"{capture}: {error.strerror}") from error
    try:
        seen = replayed(capture_frames(raw, str(capture), pace), driver, _pairs(options))
    except BadInput as error:
        raise BadInputError(str(error)) from error
    for one in seen:
        click.echo(msgspec.json.encode(one))
    if not seen:
        said = re.match(rb"# feltd capture 1 driver=(\w{1,40})", raw)
        whose = f"it was recorded with {said[1].decode()}" if said else "see `feltd devices` for the driver it is of"
        click.echo(f"{capture}: {driver} finds no event in it; {whose}", err=True)


@main.command()
@CONFIG
@click.argument("what", default="", metavar="[TABLE[/DEVICE]]")
def watch(config_path: Path, what: str) -> None:
    """Show events and results as they come over the broker."""
    from daemon.field import watch as watching

    config = _load(config_path)
    table, _, device = what.partition("/")
    known = {one.name: {d.name for d in one.device} for one in config.table}
    if what and (table not in known or (device and device not in known[table])):
        raise BadInputError(f"{what!r} is not in {config_path}; tables: {', '.join(known)}")
    _interruptible(watching(config, what, click.echo))


@main.command()
@CONFIG
@click.argument("device", metavar="TABLE/DEVICE")
def record(config_path: Path, device: str) -> None:
    """Speak with a device and write a capture, until Ctrl-C. Stop the edge first: it holds the port."""
    from daemon.check import device_mistakes
    from daemon.field import find_device
    from daemon.field import record as recording

    config = _load(config_path)
    _refuse(device_mistakes(config, config_path))
    found = find_device(config, device)
    if found is None:
        names = ", ".join(f"{table.name}/{one.name}" for table in config.table for one in table.device)
        raise BadInputError(f"no device {device!r} in {config_path}; known: {names}")
    reason = _interruptible(recording(found, click.echo))
    if reason:
        click.echo(f"{device}: {reason}", err=True)
        raise click.exceptions.Exit(1)


@main.command()
@CONFIG
@click.argument("device", metavar="TABLE/DEVICE")
@click.argument("name", metavar="COMMAND")
@click.argument("args", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--wait", type=click.FloatRange(1, 400), default=10.0, show_default=True, help="seconds for the answer")
def command(config_path: Path, device: str, name: str, args: tuple[str, ...], wait: float) -> None:
    """Tell a device to do something and say what it answered: exit code 0 only if it did it."""
    from daemon.field import command as telling
    from daemon.field import find_device
    from protocols.commands import BadCommand

    config = _load(config_path)
    if find_device(config, device) is None:
        raise BadInputError(f"{config_path}: no device {device!r}; write TABLE/DEVICE as it stands there")
    values: dict[str, str] = {}
    for pair in args:
        key, equals, value = pair.partition("=")
        if not equals:
            raise BadInputError(f"{pair}: write KEY=VALUE")
        values[key] = value
    logs.set_up("error")
    try:
        reply = _interruptible(telling(config, device, name, values, wait))
    except BadCommand as error:
        raise BadInputError(str(error)) from error
    except TimeoutError as error:
        raise click.ClickException(f"no answer in {wait:g} s; is feltd edge running, and the broker?") from error
    if reply is None:  # Ctrl-C: what was asked may still be done
        raise click.exceptions.Exit(1)
    said = (f"{key}={value}" for key, value in reply.data.items())
    click.echo(f"{device} {name}: {' '.join((reply.status, reply.text, *said))}".rstrip())
    sys.exit(0 if reply.status == "done" else 1)


def _interruptible(body: Coroutine[Any, Any, Any]) -> Any:
    """Until it ends, or Ctrl-C or SIGTERM ends it; what was plugged in or written is left in order."""

    async def until_told() -> Any:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await body

    try:
        return asyncio.run(until_told())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None


@main.command()
@click.argument("device")
@click.option("--listen", required=True, metavar="tty:PATH|tcp://HOST:PORT|mqtt://…", help="where it is plugged in")
@click.option("--seed", type=int, default=1, show_default=True, help="the same seed does the same")
@click.option(
    "--speed", type=click.FloatRange(0.1, 1000), default=1.0, show_default=True, help="simulated seconds a second"
)
@click.option("--manual", is_flag=True, help="do nothing by itself; only what lines on standard input say")
@click.option("--control", default="", metavar="HOST:PORT", help="take the same lines there, too, while it runs")
def simulate(device: str, listen: str, seed: int, speed: float, manual: bool, control: str) -> None:
    """Simulate one device, with its faults. Type an act or a fault to make it happen, `help` to see which."""
    from daemon.field import BadControl
    from daemon.field import simulate as simulating
    from daemon.links import BadUrl
    from simulators import SIMULATORS

    if device not in SIMULATORS:
        raise BadInputError(f"no simulated device {device!r}; known: {', '.join(SIMULATORS)}")
    place = re.fullmatch(r"tty:.+|tcp://[^:/]+:(\d{1,5})|mqtt://.+", listen)
    if place is None or int(place[1] or 0) > 65535:
        text = "write tty:/path/of/a/link, tcp://127.0.0.1:4001, or the mqtt: link as the edge has it"
        raise BadInputError(f"--listen {listen}: {text}")
    door = re.fullmatch(r"[^:/]+:(\d{1,5})", control)
    if control and (door is None or int(door[1]) > 65535):
        raise BadInputError(f"--control {control}: write 127.0.0.1:4100")
    try:
        _interruptible(
            simulating(device, listen, seed=seed, speed=speed, manual=manual, control=control, say=click.echo)
        )
    except BadControl as error:
        raise BadInputError(f"--control {control}: {error}") from error
    except BadUrl as error:
        raise BadInputError(f"--listen {error}") from error
    except FileExistsError as error:
        text = "is there already, and no simulator left it; give a path that is free"
        raise BadInputError(f"--listen {listen}: {text}") from error
    except OSError as error:
        said = (error.strerror or str(error)).partition(" (while ")[0]  # what asyncio adds says the same again
        raise BadInputError(f"--listen {listen}: {said}") from error


@main.command()
@click.option("--headless", is_flag=True, help="no live view; ends by itself with a summary and an exit code")
@click.option("--rounds", type=click.IntRange(1), help="stop after so many rounds, shared among the tables")
@click.option("--seed", type=int, default=1, show_default=True, help="the same seed plays the same pit")
@click.option("--speed", type=click.FloatRange(0.1, 50), help="seconds of play a second; headless default: all it can")
@click.option("--copies", type=click.IntRange(1, 20), default=1, show_default=True, help="tables of each game")
@click.option("--embedded-broker", is_flag=True, help="use the built-in broker although mosquitto is installed")
@click.option("--faults", is_flag=True, help="headless: random faults of every device; no result may be wrong")
def demo(
    headless: bool, rounds: int | None, seed: int, speed: float | None, copies: int, embedded_broker: bool, faults: bool
) -> None:
    """Run a whole pit: every device simulated, broker, edge, rules, and a live view."""
    from daemon.demo import Settings
    from daemon.demo import demo as run

    if not headless and speed is None:
        speed = 5.0
    if headless and rounds is None:
        rounds = 60
    if faults and speed is not None:
        raise BadInputError("--faults: only with --headless and without --speed")
    sys.exit(run(Settings(rounds, seed, speed, headless, copies, embedded_broker, faults)))


if __name__ == "__main__":
    sys.exit(main())
