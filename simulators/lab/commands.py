"""The commands of the laboratory: simulate, demo, campaign, bench.

The entry-point group `feltd.commands` in simulators/pyproject.toml names them; `daemon.cli.main` loads them by it.
"""

import asyncio
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from daemon import logs
from daemon.cli.common import (
    BadInputError,
    examples,
    run_until_interrupted,
)

BENCHES = ["spine", "decoders", "tables", "rules", "console", "recovery", "jackpots"]


@click.command(epilog=examples("feltd bench rules --rounds 100000"))
@click.argument("what", type=click.Choice(BENCHES), default="spine")
@click.option("--rates", help="lines (spine) or events (console) a second, with commas  [default: several]")
@click.option("--seconds", type=click.FloatRange(1, 600), help="spine, console, jackpots: of each turn  [default: 10]")
@click.option("--rounds", type=click.IntRange(1), help="rules: of the replay  [default: 1000000]")
@click.option("--events", type=click.IntRange(20_000), help="recovery: in the journal  [default: 10000000]")
@click.option("--quick", is_flag=True, help="spine: a short run that fails where feltd is many times too slow")
@click.option("--sides", help="spine: what is measured, with commas  [default: all]")
@click.option(
    "--beside",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="spine: another checkout of feltd, measured in the same turns",
)
@click.option("--json", "as_json", is_flag=True, help="for programs")
def bench(
    what: str,
    rates: str | None,
    seconds: float | None,
    rounds: int | None,
    events: int | None,
    quick: bool,
    sides: str | None,
    beside: Path | None,
    as_json: bool,
) -> None:
    """How fast it is, measured with yardsticks in the same run. Takes minutes.

    \b
    spine     needs mosquitto, gcc, libmosquitto-dev: latency, throughput, CPU,
              memory and start, from outside, with bridges in C, Python and
              Node.js
    decoders  each wire's decoder: valid, garbage, the worst found, bytes held
    tables    each kind of table, how many times real time; needs a broker
    rules     each ruleset on one core, and a replay of very many rounds, twice
    console   sixty tables: its cost, how late a browser is; needs mosquitto
    recovery  an edge with very many events restarted; needs mosquitto
    jackpots  bets a second, how late a pool's level is; needs mosquitto
    """
    _check_bench(what, rates, seconds, rounds, events, quick or sides is not None or beside is not None)

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
            _bench_console(rates or "60,240,1200", seconds or 10.0, as_json, say)
        case "recovery":
            from simulators.lab.bench.recovery import EVENTS, bench_recovery, recovery_markdown

            _need_mosquitto()
            recovered = asyncio.run(bench_recovery(say, events=events or EVENTS))
            click.echo(msgspec.json.encode(recovered) if as_json else recovery_markdown(recovered))
        case "jackpots":
            _bench_jackpots(seconds or 10.0, as_json, say)
        case _:
            _bench_spine(rates, seconds, quick, sides, beside, as_json, say)


def _check_bench(
    what: str, rates: str | None, seconds: float | None, rounds: int | None, events: int | None, of_spine: bool
) -> None:
    """Refuse an option of another benchmark. Raises BadInputError."""
    if what not in ("spine", "console") and rates is not None:
        raise BadInputError(f"--rates belong to `feltd bench spine` and `console`, not to {what}")
    if what not in ("spine", "console", "jackpots") and seconds is not None:
        raise BadInputError(f"--seconds belong to `feltd bench spine`, `console` and `jackpots`, not to {what}")
    if what != "spine" and of_spine:
        raise BadInputError(f"--quick, --sides and --beside belong to `feltd bench spine`, not to {what}")
    if what != "rules" and rounds is not None:
        raise BadInputError(f"--rounds belongs to `feltd bench rules`, not to {what}")
    if what != "recovery" and events is not None:
        raise BadInputError(f"--events belongs to `feltd bench recovery`, not to {what}")


def _need_broker(*, embedded: bool = False) -> None:
    from simulators.lab.broker import no_broker

    if said := no_broker(embedded=embedded):
        raise BadInputError(said)


def _need_mosquitto() -> None:
    from simulators.lab.broker import find_mosquitto

    if find_mosquitto() is None:
        raise BadInputError("the benchmark needs mosquitto: apt-get install mosquitto")


def _rates(text: str) -> list[int]:
    """The rates of the option. Requires mosquitto. Raises BadInputError."""
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


def _bench_jackpots(seconds: float, as_json: bool, say: Callable[[str], None]) -> None:
    from simulators.lab.bench.jackpots import bench_jackpots, jackpots_markdown
    from simulators.lab.bench.spine import NothingCameError

    _need_mosquitto()
    try:
        report = asyncio.run(bench_jackpots(say, seconds=seconds))
    except NothingCameError as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(report) if as_json else jackpots_markdown(report))


class _NotMeasuredError(click.ClickException):
    """This computer lacks something, or is too busy to measure anything."""

    exit_code = 3


def _bench_spine(
    rates: str | None,
    seconds: float | None,
    quick: bool,
    sides: str | None,
    beside: Path | None,
    as_json: bool,
    say: Callable[[str], None],
) -> None:
    wanted = _rates(rates or ("100" if quick else "2,100,1000"))
    from simulators.lab.bench.spine import (
        SIDES,
        CannotMeasureError,
        NothingCameError,
        bench as benched,
        markdown,
        quick_bench,
        too_slow,
    )
    from simulators.lab.bench.targets import targets_markdown

    chosen = sides.split(",") if sides else list(SIDES)
    if unknown := [one for one in chosen if one not in SIDES]:
        raise BadInputError(f"--sides {sides}: {unknown[0]!r} is not one of {', '.join(SIDES)}")
    try:
        if quick:
            report = quick_bench(wanted, seconds or 1.5, say)
        else:
            report = benched(wanted, seconds or 10.0, say, sides=chosen, beside=beside)
    except CannotMeasureError as error:
        raise _NotMeasuredError(str(error)) from error
    except NothingCameError as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(report) if as_json else f"{markdown(report)}\n\n{targets_markdown(report)}")
    if quick and (slow := too_slow(report)):
        raise click.ClickException("; ".join(slow))


LISTEN = "mqtt: the URL of the edge's link: the device publishes on the topic hear=… and subscribes to the topic say=…"


@click.command(epilog=examples("feltd simulate bee_tek_shoe --listen tty:/tmp/shoe"))
@click.argument("device")
@click.option(
    "--listen", required=True, metavar="tty:PATH|tcp://HOST:PORT|mqtt://…", help=f"where it is plugged in; {LISTEN}"
)
@click.option("--seed", type=int, default=1, show_default=True, help="the same seed gives the same run")
@click.option(
    "--speed", type=click.FloatRange(0.1, 1000), default=1.0, show_default=True, help="simulated seconds a second"
)
@click.option("--manual", is_flag=True, help="do nothing by itself; only what lines on standard input request")
@click.option("--control", default="", metavar="HOST:PORT", help="take the same lines there, too, while it runs")
def simulate(device: str, listen: str, seed: int, speed: float, manual: bool, control: str) -> None:
    """Simulate one device, with its faults. Type an act or a fault to make it happen, `help` to see which."""
    from daemon.edge.links.link import BadUrl
    from simulators import EACH_MODE
    from simulators.lab.simulate import BadControl, simulate as simulating

    if device not in EACH_MODE:
        raise BadInputError(f"no simulated device {device!r}; known: {', '.join(EACH_MODE)}")
    place = re.fullmatch(r"tty:.+|tcp://[^:/]+:(\d{1,5})|mqtt://.+", listen)
    if place is None or int(place[1] or 0) > 65535:
        text = "write tty:/path/of/a/link, tcp://127.0.0.1:4001, or the mqtt: link as the edge has it"
        raise BadInputError(f"--listen {listen}: {text}")
    door = re.fullmatch(r"[^:/]+:(\d{1,5})", control)
    if control and (door is None or int(door[1]) > 65535):
        raise BadInputError(f"--control {control}: write 127.0.0.1:4100")
    try:
        run_until_interrupted(
            simulating(device, listen, seed=seed, speed=speed, manual=manual, control=control, say=click.echo)
        )
    except BadControl as error:
        raise BadInputError(f"--control {control}: {error}") from error
    except BadUrl as error:
        raise BadInputError(f"--listen {error}; {LISTEN}") from error
    except FileExistsError as error:
        text = "exists, and is not the link of a simulator; give a path that is free"
        raise BadInputError(f"--listen {listen}: {text}") from error
    except OSError as error:
        said = (error.strerror or str(error)).partition(" (while ")[0]  # asyncio's addition repeats the message
        raise BadInputError(f"--listen {listen}: {said}") from error


@click.command(epilog=examples("feltd demo", "feltd demo --headless --rounds 60"))
@click.option("--headless", is_flag=True, help="no live view; ends by itself with a summary and an exit code")
@click.option("--rounds", type=click.IntRange(1), help="stop after so many rounds, shared among the tables")
@click.option("--seed", type=int, default=1, show_default=True, help="the same seed gives the same pit")
@click.option("--speed", type=click.FloatRange(0.1, 50), help="seconds of play a second; headless default: unlimited")
@click.option("--pit", type=click.Choice(["macau", "angola"]), default="macau", show_default=True, help="whose games")
@click.option("--copies", type=click.IntRange(1, 20), default=1, show_default=True, help="tables of each game")
@click.option("--embedded-broker", is_flag=True, help="use the built-in broker although mosquitto is installed")
@click.option("--faults", is_flag=True, help="random faults of every device come by themselves; no result may be wrong")
@click.option("--site", is_flag=True, help="a site of two computers with backbone, ledger and rules twice")
@click.option("--tables", type=click.IntRange(1, 200), help="with --site: at least so many  [default: 50]")
def demo(
    headless: bool,
    rounds: int | None,
    seed: int,
    speed: float | None,
    pit: str,
    copies: int,
    embedded_broker: bool,
    faults: bool,
    site: bool,
    tables: int | None,
) -> None:
    """Run a whole pit: every device simulated, broker, edge, rules, and a live view."""
    from simulators.lab.demo import Settings, demo as run

    if tables and not site:
        raise BadInputError("--tables: only with --site")
    if site:
        from simulators.lab.site.demo import missing, site_demo

        if faults or copies != 1:
            raise BadInputError("--site: with neither --faults nor --copies; --tables sets the number")
        if text := missing():
            raise BadInputError(f"a site cannot run here:\n{text}")
        _need_broker(embedded=embedded_broker)
        sys.exit(site_demo(Settings(rounds, seed, speed, headless, copies, embedded_broker, faults, pit), tables or 50))
    if not headless and speed is None:
        speed = 5.0
    if headless and rounds is None:
        rounds = 60
    _need_broker(embedded=embedded_broker)
    sys.exit(run(Settings(rounds, seed, speed, headless, copies, embedded_broker, faults, pit)))


def _kinds(_context: click.Context, _option: click.Parameter, typed: str | None) -> tuple[str, ...]:
    """Kinds of tables, separated by commas. Raises BadInputError."""
    from simulators.lab.pit import KINDS, SIGNED

    known = {kind: table for kind, table in (KINDS | SIGNED).items() if table.ruleset}
    kinds = tuple(dict.fromkeys(kind.strip() for kind in (typed or "").split(",") if kind.strip()))
    if unknown := [kind for kind in kinds if kind not in known]:
        raise BadInputError(f"--tables: there is no table {unknown[0]}; there are {', '.join(sorted(known))}")
    return kinds


@click.command(epilog=examples("feltd campaign --rounds 1000 --seed 7"))
@click.option("--rounds", type=click.IntRange(1), help="deal at least so many  [default: 1000; --real: any number]")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="one seed gives the same faults")
@click.option("--after", type=click.IntRange(0, 999_999), help="go on after so many lives of an interrupted campaign")
@click.option("--replay", "life", type=click.IntRange(0), help="one life once more, by the seed that its failure names")
@click.option("--jobs", type=click.IntRange(1, 256), help="processes to spread the lives over; default: all cores")
@click.option("--real", is_flag=True, help="real processes, a real broker, and kill -9")
@click.option("--kills", type=click.IntRange(1), help="with --real: kill so many  [default: 50]")
@click.option("--tables", callback=_kinds, help="with --real: only these, as text,bac,studio")
@click.option("--copies", type=click.IntRange(1, 20), help="with --real: tables of each kind  [default: 1]")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def campaign(
    rounds: int | None,
    seed: int,
    after: int | None,
    life: int | None,
    jobs: int | None,
    real: bool,
    kills: int | None,
    tables: tuple[str, ...],
    copies: int | None,
    as_json: bool,
) -> None:
    """Inject faults into a whole simulated pit; no round may be lost, doubled or wrong."""
    from simulators.lab.campaign import real as campaign_real
    from simulators.lab.campaign.campaign import replay, run

    for option, given in (("--kills", kills), ("--tables", tables), ("--copies", copies)):
        if given and not real:
            raise BadInputError(f"{option}: only with --real")
    if after is not None and (real or life is not None):
        raise BadInputError("--after: neither with --real nor with --replay")
    if real and jobs is not None:
        raise BadInputError("--jobs: not with --real, which runs its processes itself")
    if real and life is not None:
        raise BadInputError("--replay: a run with --real cannot be replayed; its files are kept")
    if real:
        _need_broker()
        sys.exit(
            campaign_real.run(kills or 50, seed, tables=tables, copies=copies or 1, least=rounds or 0, as_json=as_json)
        )
    if life is not None:
        sys.exit(replay(life))
    sys.exit(run(rounds or 1000, seed, jobs or len(os.sched_getaffinity(0)), after=after or 0, as_json=as_json))
