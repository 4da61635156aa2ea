"""The command line: the product for technicians and integrators.

Each command imports its own parts when it runs, so that the edge stays small. Bad input ends with one message on
standard error and exit code 2.
"""

import asyncio
import errno
import gc
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from daemon import logs
from daemon.cli.console import console

CONFIG = click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    default="/etc/feltd/feltd.toml",
    show_default=True,
    help="the configuration of the site",
)

THREADS = 24
SOON = 20.0  # seconds for which nobody wonders whether a command still runs
BENCHES = ["spine", "decoders", "tables", "rules", "console", "recovery"]


class BadInputError(click.ClickException):
    """What a person gave us is wrong: place and remedy, exit code 2."""

    exit_code = 2


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
    """All commands, and one place that knows what becomes of their output."""

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


def _load(path: Path) -> Any:
    from daemon.config.model import BadConfig, load

    try:
        return load(path)
    except BadConfig as error:
        raise BadInputError(str(error)) from error


def _journal(path: str, keeping: Any) -> Any:
    """A journal that is as it was written, before anything else is opened."""
    from daemon.journal.retention import take_up
    from daemon.journal.store import BadJournal, Journal

    try:
        journal = Journal(Path(path))
        try:
            take_up(journal, keeping)
        except BaseException:
            journal.close()
            raise
    except BadJournal as error:
        raise BadInputError(str(error)) from error
    return journal


def _run(process: Callable[[], Coroutine[Any, Any, None]], *said: type[Exception]) -> None:
    """Run a process of production: ready, watched, ended cleanly by SIGTERM or Ctrl-C.

    A journal gone bad, or what else of `said` ends it, is one message.
    """
    from daemon.journal.store import BadJournal
    from daemon.sdnotify import notify, watchdog

    async def body() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        # More than there are cores: what is done here waits, for name servers and for ports that close.
        loop.set_default_executor(ThreadPoolExecutor(THREADS))
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
        bad = errors.subgroup(lambda error: isinstance(error, (BadJournal, *said)))
        if bad is None:
            raise
        raise click.ClickException(str(logs.first(bad))) from errors


@main.command()
@CONFIG
def edge(config_path: Path) -> None:
    """Serve the devices of this computer."""
    from daemon.config.check import device_mistakes, mac_key_mistakes
    from daemon.config.model import signing_as
    from daemon.edge.edge import Edge
    from daemon.journal.retention import kept

    config = _load(config_path)
    _refuse(device_mistakes(config, config_path) + mac_key_mistakes(config, config_path, ("edge",)))
    config = signing_as(config, config.edge)
    journal = _journal(config.edge.journal, config.journal)

    def process() -> Coroutine[Any, Any, None]:
        one = Edge(config, journal)
        return kept(one.run(), journal, config, config.edge.name, one.retained, one.log)

    _run(process)
    journal.close()
    logs.get(edge=config.edge.name).info("edge.stopped")


@main.command("mac-key")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
def mac_key(path: Path) -> None:
    """Make a key by which an edge proves its events: PATH, for the edge and for the rules, as EDGE.key."""
    from daemon.broker.mac_keys import BadMacKey, make_mac_key

    try:
        make_mac_key(path)
    except BadMacKey as error:
        raise BadInputError(str(error)) from error
    click.echo(f"{path}: name it under [edge] mac_key_file; the rules need a copy in their mac_key_folder")


@main.command()
@CONFIG
def rules(config_path: Path) -> None:
    """Resolve the rounds of all tables."""
    from daemon.config.check import mac_key_mistakes, ruleset_mistakes
    from daemon.config.model import signing_as
    from daemon.consumer.consumer import Consumer
    from daemon.journal.retention import kept

    config = _load(config_path)
    _refuse(ruleset_mistakes(config, config_path) + mac_key_mistakes(config, config_path, ("rules",)))
    config = signing_as(config, config.rules)
    journal = _journal(config.rules.journal, config.journal)

    def process() -> Coroutine[Any, Any, None]:
        one = Consumer(config, journal)
        return kept(one.run(), journal, config, config.rules.name, one.retained, logs.get(rules=one.name))

    _run(process)
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
    from daemon.config.check import (
        dealer_mistakes,
        device_mistakes,
        file_mistakes,
        mac_key_mistakes,
        probe_devices,
        ruleset_mistakes,
        summary,
        webhook_mistakes,
    )

    config = _load(config_path)
    mistakes = device_mistakes(config, config_path) + ruleset_mistakes(config, config_path)
    mistakes += dealer_mistakes(config, config_path) + webhook_mistakes(config, config_path)
    mistakes += file_mistakes(config, config_path)
    mistakes += mac_key_mistakes(config, config_path)
    _refuse(_by_line(mistakes, config_path))
    click.echo(summary(config, config_path))
    if probe and not _interruptible(probe_devices(config, click.echo)):
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("device", metavar="[DRIVER|CODE]", required=False)
@click.option("--json", "as_json", is_flag=True, help="for programs")
@click.option(
    "--pages", type=click.Path(path_type=Path, file_okay=False), help="write its page, or that of each, there"
)
def devices(device: str | None, as_json: bool, pages: Path | None) -> None:
    """List the supported devices with their evidence, or show the page of one: options, commands, faults, remedies.

    The code of a fault, as an alert or a log names it, shows what it means and what to try.
    """
    from daemon.cli.listings import device_list, device_table
    from drivers import DRIVERS
    from simulators.lab.device_pages import device_page, fault_text, index_page

    if device is not None and "." in device and not as_json and pages is None:
        said = fault_text(device)
        if not said:
            raise BadInputError(f"no device tells {device!r}; of what edge, rules and journals tell the alert says it")
        click.echo(said)
        return
    if device is not None and device not in DRIVERS:
        raise BadInputError(f"no driver {device!r}; known: {', '.join(DRIVERS)}")
    if pages is not None:
        written = {f"{name}.md": device_page(name) for name in ([device] if device else DRIVERS)}
        _write(pages, written if device else {**written, "README.md": index_page()})
    elif as_json:
        every = device_list()
        shown = next(one for one in every if one["driver"] == device) if device else every
        click.echo(msgspec.json.format(msgspec.json.encode(shown)).decode())
    else:
        click.echo(device_page(device) if device else device_table())


def _write(folder: Path, files: dict[str, str]) -> None:
    """Texts as files of a folder, which is made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{error.filename or folder}: {error.strerror}") from error


@main.command()
def detect() -> None:
    """List what is plugged in, by the name that stays."""
    from daemon.cli.listings import detected

    click.echo(detected())


@main.command()
@click.argument("ruleset", required=False)
@click.option("--json", "as_json", is_flag=True, help="for programs")
def rulesets(ruleset: str | None, as_json: bool) -> None:
    """List the games, or one with its bets, odds, options and articles."""
    from daemon.cli.listings import ruleset_info, ruleset_page, ruleset_table
    from rules import RULESETS

    if ruleset is None:
        infos = [ruleset_info(kind) for kind in RULESETS.values()]
        click.echo(msgspec.json.format(msgspec.json.encode(infos)).decode() if as_json else ruleset_table())
        return
    kind = _ruleset(ruleset)
    click.echo(msgspec.json.format(msgspec.json.encode(ruleset_info(kind))).decode() if as_json else ruleset_page(kind))


@main.command()
@click.argument("configs", type=click.Path(path_type=Path), nargs=-1, metavar="[CONFIG]…")
def acl(configs: tuple[Path, ...]) -> None:
    """Print mosquitto's access list for the site: name the configuration of each of its computers.

    Without one it is that of this computer alone, /etc/feltd/feltd.toml.
    """
    from daemon.cli.access_list import BadSite, access_list

    paths = configs or (Path("/etc/feltd/feltd.toml"),)
    try:
        click.echo(access_list([(path, _load(path)) for path in paths]), nl=False)
    except BadSite as error:
        raise BadInputError(str(error)) from error


@main.command()
def schema() -> None:
    """Print the topic tree as an AsyncAPI 3 document with JSON Schemas."""
    import importlib.metadata

    from daemon.cli.schema import asyncapi

    document = asyncapi(importlib.metadata.version("feltd"))
    click.echo(msgspec.json.format(msgspec.json.encode(document, order="sorted")))


@main.command()
@click.argument("game", type=click.Choice(["baccarat"]))
@click.option("--decks", type=click.IntRange(6, 12), default=8, show_default=True)
def enumerate(game: str, decks: int) -> None:  # noqa: A001 - the command's name
    """Every coup there can be, through the ruleset: exact probabilities and house edges."""
    from rules.figures.enumerate_baccarat import enumerate_coups

    figures = enumerate_coups(decks)
    click.echo(f"{game}, {decks} decks, every ordered coup by ranks through macau.baccarat")
    for name, probability in figures.probabilities.items():
        click.echo(f"  {name:14} {float(probability):.6f}")
    for commission, edges in figures.edges.items():
        click.echo(f"house edge, commission {commission}")
        for bet, edge in edges.items():
            click.echo(f"  {bet:14} {float(edge) * 100:.4f} %")


@main.command()
@click.argument("ruleset", required=False)
@click.option("--json", "as_json", is_flag=True, help="for programs")
@click.option(
    "--write", type=click.Path(path_type=Path, file_okay=False), help="write one TOML file of each game into a folder"
)
def figures(ruleset: str | None, as_json: bool, write: Path | None) -> None:
    """Probability and house edge of every bet, through the ruleset itself, beside published figures.

    Exact, but for the main bets of blackjack (five times ten million rounds: 47 minutes of one core) and stud poker
    (ten million: four).
    Baccarat takes about a minute: every coup by ranks, for each jackpot, with eight decks and with six.
    """
    from rules.figures.figures import GAMES, figures_table, figures_toml
    from rules.figures.figures import figures as computed

    if ruleset is not None and ruleset not in GAMES:
        raise BadInputError(f"no figures of {ruleset!r}; there are of: {', '.join(GAMES)}")
    if write is not None:
        _write(write, {})  # or an hour is computed for nothing
    rows = {name: computed(name) for name in ([ruleset] if ruleset else GAMES)}
    if write is not None:
        _write(write, {f"{name}.toml": figures_toml(name, one) for name, one in rows.items()})
    elif as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(rows)).decode())
    else:
        click.echo("\n\n".join(figures_table(name, one) for name, one in rows.items()))


@main.command()
@click.argument("what", type=click.Choice(BENCHES), default="spine")
@click.option("--rates", help="lines (spine) or events (console) a second, with commas  [default: several]")
@click.option("--seconds", type=click.FloatRange(1, 600), help="spine, console: of each turn  [default: 10]")
@click.option("--rounds", type=click.IntRange(1), help="rules: of the replay  [default: 1000000]")
@click.option("--events", type=click.IntRange(20_000), help="recovery: in the journal  [default: 10000000]")
@click.option("--json", "as_json", is_flag=True, help="for programs")
def bench(
    what: str, rates: str | None, seconds: float | None, rounds: int | None, events: int | None, as_json: bool
) -> None:
    """How fast it is, measured beside yardsticks in the same run. Takes minutes.

    \b
    spine     latency, throughput, memory and idle CPU, beside a bare loop; needs mosquitto
    decoders  each wire's decoder: valid, garbage, the worst found, bytes held
    tables    each kind of table, simulated: how many times real time; needs mosquitto, or the built-in broker
    rules     each ruleset on one core, and a replay of very many rounds, twice
    console   what it costs to follow fifty tables, and how late a browser sees an event; needs mosquitto
    recovery  an edge with very many events started again, and a consumer that missed many; needs mosquitto
    """
    if what not in ("spine", "console") and (rates, seconds) != (None, None):
        raise BadInputError(f"--rates and --seconds belong to `feltd bench spine` and `console`, not to {what}")
    if what != "rules" and rounds is not None:
        raise BadInputError(f"--rounds belongs to `feltd bench rules`, not to {what}")
    if what != "recovery" and events is not None:
        raise BadInputError(f"--events belongs to `feltd bench recovery`, not to {what}")

    def say(line: str) -> None:
        click.echo(line, err=True)

    match what:
        case "decoders":
            from simulators.lab.bench.decoders import bench_decoders, decoders_markdown

            decoders = bench_decoders(say)
            click.echo(msgspec.json.encode(decoders) if as_json else decoders_markdown(decoders))
        case "tables":
            from simulators.lab.bench.tables import bench_tables, tables_markdown

            _need_broker()
            logs.set_up("warning")
            tables = bench_tables(say)
            click.echo(msgspec.json.encode(tables) if as_json else tables_markdown(tables))
        case "rules":
            from simulators.lab.bench.rules import REPLAYED, bench_rules, rules_markdown

            applied = bench_rules(say, replayed=rounds or REPLAYED)
            click.echo(msgspec.json.encode(applied) if as_json else rules_markdown(applied))
        case "console":
            _bench_console(rates or "20,200,1000", seconds or 10.0, as_json, say)
        case "recovery":
            from simulators.lab.bench.recovery import EVENTS, bench_recovery, recovery_markdown

            _need_mosquitto()
            recovered = asyncio.run(bench_recovery(say, events=events or EVENTS))
            click.echo(msgspec.json.encode(recovered) if as_json else recovery_markdown(recovered))
        case _:
            _bench_spine(rates or "2,100,1000", seconds or 10.0, as_json, say)


def _need_broker(*, embedded: bool = False) -> None:
    from simulators.lab.broker import no_broker

    if said := no_broker(embedded=embedded):
        raise BadInputError(said)


def _need_mosquitto() -> None:
    from simulators.lab.broker import find_mosquitto

    if find_mosquitto() is None:
        raise BadInputError("the benchmark needs mosquitto: apt-get install mosquitto")


def _rates(text: str) -> list[int]:
    """What was asked for, where mosquitto is there to be measured with."""
    _need_mosquitto()
    try:
        rates = [int(rate) for rate in text.split(",")]
    except ValueError:
        rates = []
    if not rates or min(rates) < 1:
        raise BadInputError(f"--rates {text}: write numbers from 1 with commas, for example 2,100,1000")
    return rates


def _bench_console(rates: str, seconds: float, as_json: bool, say: Callable[[str], None]) -> None:
    wanted = tuple(_rates(rates))
    from simulators.lab.bench.console import bench_console, console_markdown

    logs.set_up("warning")
    report = bench_console(say, rates=wanted, seconds=seconds)
    click.echo(msgspec.json.encode(report) if as_json else console_markdown(report))


def _bench_spine(rates: str, seconds: float, as_json: bool, say: Callable[[str], None]) -> None:
    wanted = _rates(rates)
    from simulators.lab.bench.spine import NothingCameError, markdown
    from simulators.lab.bench.spine import bench as benched

    try:
        report = asyncio.run(benched(wanted, seconds, say))
    except NothingCameError as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(report) if as_json else markdown(report))


def _ruleset(name: str) -> Any:
    from rules import RULESETS

    if name not in RULESETS:
        raise BadInputError(f"no ruleset {name!r}; known: {', '.join(RULESETS)}")
    return RULESETS[name]


def _pairs(options: tuple[str, ...]) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise BadInputError(f"--option {option}: write NAME=VALUE")
        if key in pairs:
            raise BadInputError(f"--option {key} is there twice, as {pairs[key]!r} and {value!r}; write it once")
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
    from daemon.cli.offline import BadInput, events_from
    from daemon.cli.offline import resolve as resolved
    from rules.engine.ruleset import BadOption, Corrected, Resolved, Voided, options_from

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
    from daemon.cli.offline import BadInput, capture_frames
    from daemon.cli.offline import replay as replayed
    from drivers import DRIVERS

    if driver not in DRIVERS:
        raise BadInputError(f"no driver {driver!r}; known: {', '.join(DRIVERS)}")
    try:
        raw = capture.read_bytes()
    except OSError as error:
        raise BadInputError(f"{capture}: {error.strerror}") from error
    try:
        frames = capture_frames(raw, str(capture), pace)
        seen = replayed(frames, driver, _pairs(options))
    except BadInput as error:
        raise BadInputError(str(error)) from error
    for one in seen:
        click.echo(msgspec.json.encode(one))
    if not seen:
        from daemon.console.pages.trace import messages_read

        said = re.match(rb"# feltd capture 1 driver=(\w{1,40})", raw)
        read, messages = messages_read(driver, frames)
        heard = sum(len(frame.data) for frame in frames if frame.from_device)
        whose = f"it was recorded with {said[1].decode()}" if said else "see `feltd devices` for the driver it is of"
        if said and said[1].decode() == driver:
            few = f"{heard} bytes of the device are too few, or none that it understands"
            whose = f"its driver is right, and {few}: was it cut short?"
        if read and (not said or said[1].decode() == driver):
            whose = f"it reads {read} of {messages} messages in it, and none of them is an event"
        click.echo(f"{capture}: {driver} finds no event in it; {whose}", err=True)


@main.command()
@CONFIG
@click.argument("what", default="", metavar="[TABLE[/DEVICE]]")
def watch(config_path: Path, what: str) -> None:
    """Show events and results as they come over the broker."""
    from daemon.cli.device_tools import watch as watching

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
    from daemon.cli.device_tools import find_device
    from daemon.cli.device_tools import record as recording
    from daemon.config.check import device_mistakes

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


@main.command("bundle")
@CONFIG
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="[default: feltd-SITE-TIME.zip]")
def make_bundle(config_path: Path, output: Path | None) -> None:
    """One file for support, with the ends of the journals and without a secret: run it as root.

    What only the console knows (states, incidents) is in the file that its page makes.
    """
    from daemon.console.pages.bundle import Given, known_logs, make

    config = _load(config_path)
    now = datetime.now(UTC)
    path = output or Path(f"feltd-{config.site.name}-{now:%Y%m%dT%H%M%SZ}.zip")
    journals = (config.edge.journal, config.rules.journal, config.console.journal)
    try:
        make(path, config, Given(now, logs=known_logs(*journals)))
    except OSError as error:
        raise BadInputError(f"{error.filename or path}: {error.strerror}") from error
    click.echo(path)


@main.group("journal")
def journals() -> None:
    """Look into the journals: verify, export, recall; make a key to sign them, accept a copy that was put back."""


def _public_keys(paths: tuple[Path, ...], key: str) -> list[Any]:
    """The keys that were given; else the public half of the configured one, where it stands beside it."""
    if not paths and not key:
        return []
    from daemon.journal.signing import BadKey, PublicKey, public_path

    beside = () if paths else (public_path(Path(key)),)
    try:
        return [PublicKey.load(path) for path in (*paths, *(one for one in beside if one.exists()))]
    except BadKey as error:
        raise BadInputError(str(error)) from error


OPTIONAL_CONFIG = click.option("-c", "--config", "config_path", type=click.Path(path_type=Path), help="of the site")
PUBLIC = click.option(
    "--public", multiple=True, type=click.Path(path_type=Path), help="public key, PEM; may be repeated for earlier ones"
)


@journals.command()
@OPTIONAL_CONFIG
@PUBLIC
@click.option("--json", "as_json", is_flag=True, help="for programs")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def verify(config_path: Path | None, public: tuple[Path, ...], as_json: bool, files: tuple[Path, ...]) -> None:
    """Is every byte as it was written? Exit code 0 if so; 1 if not, with the place.

    FILES are journals (their closed files are taken with them) or exports; without any, those of the configuration:
    edge, rules and, where it has [console], the console's. A journal may be in use meanwhile.
    """
    from daemon.journal.inspection import left_of, report_text, verify_export
    from daemon.journal.inspection import verify as verified

    config_path = config_path or (None if files else Path("/etc/feltd/feltd.toml"))
    config = _load(config_path) if config_path else None
    key = config.journal.key if config is not None else ""
    of_files = dict.fromkeys(files, key)
    if config is not None and config_path is not None and not files:
        of_files = _journals_there(config, config_path)
    reports = {}
    for path, key in of_files.items():
        keys = _public_keys(public, key)
        try:
            if not path.exists() and left_of(path):
                reports[str(path)] = verified(path, keys)
                continue
            with path.open("rb") as file:
                exported = file.read(1) == b"{"
                file.seek(0)
                reports[str(path)] = verify_export(file, str(path), keys) if exported else verified(path, keys)
        except OSError as error:
            raise BadInputError(f"{path}: {error.strerror}") from error
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(reports)).decode())
    else:
        for name, report in reports.items():
            click.echo(report_text(name, report))
    if not all(report.good for report in reports.values()):
        raise click.exceptions.Exit(1)


def _journals_there(config: Any, config_path: Path) -> dict[Path, str]:
    """The journals of a site that are there, or were, with their keys. What is missing is named; none is refused."""
    from daemon.config.check import has_console
    from daemon.config.model import signing_as
    from daemon.journal.inspection import left_of

    parts = [config.edge, config.rules, *([config.console] if has_console(config_path) else [])]
    keys = {Path(part.journal): signing_as(config, part).journal.key for part in parts}
    there: list[Path] = []
    missing: list[Path] = []
    for path in keys:
        try:
            (there if path.exists() or left_of(path) else missing).append(path)
        except OSError as error:
            raise BadInputError(f"{path}: {error.strerror}; run this as a user who may read it") from error
    if not there:
        *before, last = map(str, missing)
        raise BadInputError(f"{config_path}: neither {', '.join(before)} nor {last} is there yet")
    for path in missing:
        click.echo(f"{path}: is not there yet; other journals are", err=True)
    return {path: keys[path] for path in there}


def _instant(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Any:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(f"{text}: write 2026-11-20 or 2026-11-20T20:00:00+08:00") from error


@journals.command("export")
@CONFIG
@click.argument("table")
@click.option("--from", "since", callback=_instant, metavar="TIME", help="UTC unless a zone is written")
@click.option("--to", "until", callback=_instant, metavar="TIME", help="up to before this")
@click.option("--rules", "of_rules", is_flag=True, help="the verdicts of the rules instead of the edge's events")
def export_table(config_path: Path, table: str, since: Any, until: Any, of_rules: bool) -> None:
    """A table's rows as NDJSON on standard output, with wire bytes, hashes and signatures: for an inspector."""
    import sqlite3

    from daemon.journal.inspection import export

    config = _load(config_path)
    if table not in {one.name for one in config.table}:
        raise BadInputError(
            f"no table {table!r} in {config_path}; there are: {', '.join(t.name for t in config.table)}"
        )
    if since is not None and until is not None and until <= since:
        raise BadInputError("--to must be after --from; a day alone is its midnight, UTC")
    of = config.rules if of_rules else config.edge
    lines = export(
        Path(of.journal),
        table,
        site=config.site.name,
        writer=of.name,
        since=since or datetime(1, 1, 1, tzinfo=UTC),
        until=until or datetime.max.replace(tzinfo=UTC),
        edge=not of_rules,
    )
    count = 0
    try:
        for line in lines:
            click.echo(line)
            count += 1
    except (sqlite3.Error, OSError) as error:
        raise BadInputError(f"{of.journal}: {error}") from error
    if count == 1:  # the head alone
        click.echo(f"{table}: no row of that time; --from and --to are UTC unless a zone is written", err=True)


@journals.command("recall")
@CONFIG
@click.argument("table")
@click.option("--rounds", type=click.IntRange(1, 10_000), help="so many of the last  [default: 1]")
@click.option("--round", "only", help="this one, however old, as its result names it")
@click.option("--json", "as_json", is_flag=True, help="for programs")
def recall_rounds(config_path: Path, table: str, rounds: int | None, only: str | None, as_json: bool) -> None:
    """The last rounds, from the result and its law to the events and the bytes on the wire; the newest first."""
    import sqlite3

    from daemon.journal.inspection import recall, recall_old, recall_text

    if rounds and only:
        raise BadInputError("--round: not with --rounds")
    config = _load(config_path)
    if table not in {one.name for one in config.table}:
        raise BadInputError(
            f"no table {table!r} in {config_path}; there are: {', '.join(t.name for t in config.table)}"
        )
    rules, edge = Path(config.rules.journal), Path(config.edge.journal)
    try:
        found = recall_old(rules, edge, table, only) if only else recall(rules, edge, table, rounds or 1)
    except (sqlite3.Error, OSError) as error:
        raise BadInputError(f"{error}; `feltd journal verify` says more") from error
    click.echo(msgspec.json.format(msgspec.json.encode(found)).decode() if as_json else recall_text(found).rstrip())
    if not found and only:
        raise BadInputError(f"{table}: no round {only!r} has ended; write it as its result does: {table}:2026-11-20:17")
    if not found:
        click.echo(f"{table}: no round has ended yet", err=True)


@journals.command("accept")
@click.argument("path", metavar="JOURNAL", type=click.Path(path_type=Path, dir_okay=False))
def accept_journal(path: Path) -> None:
    """Take a journal as it stands, after a copy of it was put back on purpose. Stop its process before.

    What is beside JOURNAL says then that it ends here. The note of before is kept: it shows what was there.
    """
    from daemon.journal.retention import accept
    from daemon.journal.store import BadJournal

    try:
        report, last, kept = accept(path)
    except BadJournal as error:
        raise BadInputError(str(error)) from error
    at = f"checkpoint {last.number} after row {last.n}" if last.number else "no checkpoint"
    click.echo(f"{path}: journal {last.journal} ends with {at}; {report.rows} rows stand in its files")
    if kept is not None:
        click.echo(f"the note of before is kept: {kept}")


@journals.command("key")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
def key_pair(path: Path) -> None:
    """Make a key that signs the journals: PATH for the service's user alone, PATH.pub for everybody."""
    from daemon.journal.signing import BadKey, make_key, public_path

    try:
        made = make_key(path)
    except BadKey as error:
        raise BadInputError(str(error)) from error
    click.echo(
        f"{path}: private, must belong to the user of the service; {public_path(path)}: public, key id {made.id}"
    )


@main.command()
@CONFIG
@click.argument("device", metavar="TABLE/DEVICE")
@click.argument("name", metavar="COMMAND")
@click.argument("args", nargs=-1, metavar="[KEY=VALUE]…")
@click.option(
    "--wait",
    type=click.FloatRange(1, 400),
    help="seconds for the answer  [default: what the slowest device takes]",
)
def command(config_path: Path, device: str, name: str, args: tuple[str, ...], wait: float | None) -> None:
    """Tell a device to do something and say what it answered: exit code 0 only if it did it."""
    from daemon.cli.device_tools import command as telling
    from daemon.cli.device_tools import find_device
    from protocols.contract.commands import COMMANDS, BadCommand

    config = _load(config_path)
    if find_device(config, device) is None:
        raise BadInputError(f"{config_path}: no device {device!r}; write TABLE/DEVICE as it stands there")
    values: dict[str, str] = {}
    for pair in args:
        key, equals, value = pair.partition("=")
        if not equals:
            raise BadInputError(f"{pair}: write KEY=VALUE")
        if key in values:
            raise BadInputError(f"{key} is there twice, as {values[key]!r} and {value!r}; write it once")
        values[key] = value
    logs.set_up("error")
    if wait is None:
        wait = COMMANDS[name].answered_within if name in COMMANDS else SOON
    if wait > SOON:
        click.echo(f"waiting for the answer, up to {wait:g} s; Ctrl-C ends the waiting alone", err=True)
    try:
        reply = _interruptible(telling(config, device, name, values, wait))
    except BadCommand as error:
        raise BadInputError(str(error)) from error
    except TimeoutError as error:
        remedy = "it may still be done; is feltd edge running, and the broker?"
        raise click.ClickException(f"no answer in {wait:g} s: {remedy}") from error
    if reply is None:  # Ctrl-C: what was asked may still be done
        raise click.exceptions.Exit(1)
    said = (f"{key}={value}" for key, value in reply.data.items())
    click.echo(f"{device} {name}: {' '.join((reply.status, reply.text, *said))}".rstrip())
    sys.exit(0 if reply.status == "done" else 1)


@main.command()
@CONFIG
@click.argument("name", metavar="EDGE")
@click.option("--although-online", is_flag=True, help="the broker takes it for online, and it is not there")
def forget(config_path: Path, name: str, although_online: bool) -> None:
    """Clear what an edge or rules left on the broker that are gone for good; until then screens show it as offline."""
    from daemon.broker.session import BrokerLost
    from daemon.cli.forget import StillThere
    from daemon.cli.forget import forget as forgetting
    from protocols.contract.topics import is_id

    config = _load(config_path)
    if not is_id(name):
        raise BadInputError(f"{name!r} can be the name of no edge: write it as it stands in its configuration")
    logs.set_up("error")
    try:
        cleared = _interruptible(forgetting(config, name, although_online=although_online))
    except StillThere as error:
        raise BadInputError(str(error)) from error
    except BrokerLost as error:
        raise click.ClickException(f"the broker: {error}") from error
    except TimeoutError as error:
        raise click.ClickException("the broker does not answer") from error
    if cleared is None:  # Ctrl-C
        raise click.exceptions.Exit(1)
    for topic in cleared:
        click.echo(topic)
    click.echo(f"{name}: {len(cleared)} topics cleared" if cleared else f"{name}: nothing of it stands on the broker")


def _interruptible(body: Coroutine[Any, Any, Any]) -> Any:
    """Until it ends, or Ctrl-C or SIGTERM ends it; what was plugged in or written is left in order."""

    ended: list[SystemExit] = []

    async def until_told() -> Any:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            return await body
        except SystemExit as error:  # no task may end by it: asyncio would tell of that, too
            ended.append(error)

    try:
        result = asyncio.run(until_told())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None
    if ended:
        raise ended[0]
    return result


LISTEN = (
    "mqtt: the link as the edge has it: hear=… is what the edge hears and the device says, say=… what the device hears"
)


@main.command()
@click.argument("device")
@click.option(
    "--listen", required=True, metavar="tty:PATH|tcp://HOST:PORT|mqtt://…", help=f"where it is plugged in; {LISTEN}"
)
@click.option("--seed", type=int, default=1, show_default=True, help="the same seed does the same")
@click.option(
    "--speed", type=click.FloatRange(0.1, 1000), default=1.0, show_default=True, help="simulated seconds a second"
)
@click.option("--manual", is_flag=True, help="do nothing by itself; only what lines on standard input say")
@click.option("--control", default="", metavar="HOST:PORT", help="take the same lines there, too, while it runs")
def simulate(device: str, listen: str, seed: int, speed: float, manual: bool, control: str) -> None:
    """Simulate one device, with its faults. Type an act or a fault to make it happen, `help` to see which."""
    from daemon.cli.device_tools import BadControl
    from daemon.cli.device_tools import simulate as simulating
    from daemon.edge.links.link import BadUrl
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
        raise BadInputError(f"--listen {error}; {LISTEN}") from error
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
    from simulators.lab.demo import Settings
    from simulators.lab.demo import demo as run

    if not headless and speed is None:
        speed = 5.0
    if headless and rounds is None:
        rounds = 60
    if faults and speed is not None:
        raise BadInputError("--faults: only with --headless and without --speed")
    _need_broker(embedded=embedded_broker)
    sys.exit(run(Settings(rounds, seed, speed, headless, copies, embedded_broker, faults)))


@main.command()
@click.option("--rounds", type=click.IntRange(1), default=1000, show_default=True, help="deal at least so many")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="the same seed fails the same way")
@click.option("--after", type=click.IntRange(0, 999_999), help="go on after so many lives of an interrupted campaign")
@click.option("--replay", "life", type=click.IntRange(0), help="one life once more, by the seed that its failure names")
@click.option("--jobs", type=click.IntRange(1, 256), help="processes to spread the lives over; default: all cores")
@click.option("--real", is_flag=True, help="real processes, a real broker, and kill -9")
@click.option("--kills", type=click.IntRange(1), help="with --real: kill so many  [default: 50]")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def campaign(
    rounds: int,
    seed: int,
    after: int | None,
    life: int | None,
    jobs: int | None,
    real: bool,
    kills: int | None,
    as_json: bool,
) -> None:
    """Kill, cut, corrupt and confuse a whole simulated pit; no round may be lost, doubled or wrong."""
    from simulators.lab.campaign import real as campaign_real
    from simulators.lab.campaign.campaign import replay, run

    if kills is not None and not real:
        raise BadInputError("--kills: only with --real")
    if after is not None and (real or life is not None):
        raise BadInputError("--after: neither with --real nor with --replay")
    if real and life is not None:
        raise BadInputError("--replay: a night of --real cannot be played again; its files are kept")
    if real:
        _need_broker()
        sys.exit(campaign_real.run(kills or 50, seed, as_json=as_json))
    if life is not None:
        sys.exit(replay(life))
    sys.exit(run(rounds, seed, jobs or len(os.sched_getaffinity(0)), after=after or 0, as_json=as_json))


main.add_command(console)


if __name__ == "__main__":
    sys.exit(main())
