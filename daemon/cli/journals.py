"""The commands of `feltd journal`."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import msgspec

from daemon import logs
from daemon.cli.common import (
    AS_JSON,
    CONFIG,
    OPTIONAL_CONFIG,
    BadInputError,
    CommandGroup,
    echo_json,
    examples,
    file_trouble,
    give_way,
    load_config,
    run_until_interrupted,
    time_option,
)
from daemon.progress import Progress

if TYPE_CHECKING:
    from daemon.config.model import Config
    from daemon.journal.recall import Recalled

REFUSED_LOGGED_EVERY_S = 60.0
PROVE = "it is not kept: find the users that may write this topic (feltd acl), or give the missing key with --public"
NO_KEYS = "give the public keys of all journals with --public: without them unsigned heads are kept, too"
CONTRADICTION_REMEDY = "keep all files as they are, verify the journal with --witness, and tell the inspector"


@click.group("journal", cls=CommandGroup, epilog=examples("sudo feltd journal verify"))
def journals() -> None:
    """Look into the journals: verify, export, recall, witness; make a key to sign them, accept a copy put back."""


def _public_keys(paths: tuple[Path, ...], key: str) -> list[Any]:
    """The given keys; otherwise the public half of the configured key, if it is beside it."""
    if not paths and not key:
        return []
    from daemon.journal.signing import BadKey, PublicKey, public_path

    beside = () if paths else (public_path(Path(key)),)
    try:
        return [PublicKey.load(path) for path in (*paths, *(one for one in beside if one.exists()))]
    except BadKey as error:
        raise BadInputError(str(error)) from error


PUBLIC = click.option(
    "--public", multiple=True, type=click.Path(path_type=Path), help="public key, PEM; may be repeated for earlier ones"
)


@journals.command(epilog=examples("sudo feltd journal verify"))
@OPTIONAL_CONFIG
@PUBLIC
@click.option(
    "--witness",
    "witnesses",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="files of `feltd journal witness`, or their folder: a cut end is then found",
)
@AS_JSON
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, readable=False))
def verify(
    config_path: Path | None,
    public: tuple[Path, ...],
    witnesses: tuple[Path, ...],
    as_json: bool,
    files: tuple[Path, ...],
) -> None:
    """Is every byte as it was written? Exit code 0 if so; 1 if not, with the place.

    FILES are journals (their closed files are taken with them) or exports; without any, those of the configuration:
    edge, rules and, where it has [console] or [[jackpot]], those of the console and the jackpots. A journal may be in
    use meanwhile.
    """
    from daemon.cli.progress import ProgressLine
    from daemon.journal.export import verify_export
    from daemon.journal.findings import report_text
    from daemon.journal.reader import left_of
    from daemon.journal.verified import note_verified
    from daemon.journal.verify import verify as verified
    from daemon.journal.witness import BadWitness, compare, heads_in

    try:
        heads = list(heads_in(witnesses))
    except BadWitness as error:
        raise BadInputError(str(error)) from error
    give_way()
    config_path = config_path or (None if files else Path("/etc/feltd/feltd.toml"))
    config = load_config(config_path) if config_path else None
    key = config.journal.key if config is not None else ""
    of_files = dict.fromkeys(files, key)
    if config is not None and config_path is not None and not files:
        of_files = _journals_there(config, config_path)
    reports = {}
    with ProgressLine() as progress:
        for path, key in of_files.items():
            keys, bar = _public_keys(public, key), progress.of(str(path))
            try:
                if not path.exists() and left_of(path):
                    reports[str(path)] = verified(path, keys)
                    continue
                with path.open("rb") as file:
                    exported = file.read(1) == b"{"
                    file.seek(0)
                    lines = _lines(file, bar)
                    report = verify_export(lines, str(path), keys) if exported else verified(path, keys, progress=bar)
                if heads and not exported:
                    compare(path, heads, keys, report)
                if report.good and not files:
                    note_verified(path, report.rows, datetime.now(UTC))
                reports[str(path)] = report
            except OSError as error:
                raise file_trouble(error, path) from error
    if as_json:
        echo_json(reports)
    else:
        for name, report in reports.items():
            click.echo(report_text(name, report))
    if not all(report.good for report in reports.values()):
        raise click.exceptions.Exit(1)


def _lines(file: BinaryIO, progress: Progress) -> Iterator[bytes]:
    """The lines of a file; `progress` gets the part that was read."""
    size, read = max(os.fstat(file.fileno()).st_size, 1), 0
    for line in file:
        read += len(line)
        progress(min(read / size, 1.0))
        yield line


def _journals_there(config: Any, config_path: Path) -> dict[Path, str]:
    """The journals of a site that exist or existed, with their keys. Missing ones are named; without any it is
    refused.
    """
    from daemon.cli.configuration_check import has_console
    from daemon.config.model import signing_as
    from daemon.journal.reader import left_of

    parts = [config.edge, config.rules, *([config.console] if has_console(config_path) else [])]
    parts += [config.jackpots] if config.jackpot else []
    keys = {Path(part.journal): signing_as(config, part).journal.key for part in parts}
    there: list[Path] = []
    missing: list[Path] = []
    for path in keys:
        try:
            (there if path.exists() or left_of(path) else missing).append(path)
        except OSError as error:
            raise file_trouble(error, path) from error
    if not there:
        *before, last = map(str, missing)
        raise BadInputError(
            f"{config_path}: neither {', '.join(before)} nor {last} is there yet; start the services, or name a journal"
        )
    for path in missing:
        click.echo(f"{path}: is not there yet; other journals are", err=True)
    return {path: keys[path] for path in there}


@journals.command("export", epilog=examples("sudo feltd journal export bac-12 --from 2026-11-20 --to 2026-11-21"))
@CONFIG
@click.argument("table")
@click.option("--from", "since", callback=time_option, metavar="TIME", help="UTC unless a zone is written")
@click.option("--to", "until", callback=time_option, metavar="TIME", help="before this time")
@click.option("--rules", "of_rules", is_flag=True, help="the verdicts of the rules instead of the edge's events")
def export_table(config_path: Path, table: str, since: Any, until: Any, of_rules: bool) -> None:
    """Export a table, or the books of a pool, for an inspector.

    TABLE is the name of a table or of a [[jackpot]]. Its rows go to standard output as NDJSON, with wire bytes, hashes
    and signatures.
    """
    import sqlite3

    from daemon.cli.progress import ProgressLine
    from daemon.journal.export import export

    give_way()
    config = load_config(config_path)
    places = [one.name for one in (*config.table, *config.jackpot)]
    if table not in places:
        raise BadInputError(f"no table or pool {table!r} in {config_path}; there are: {', '.join(places)}")
    of_books = table not in {one.name for one in config.table}
    if of_books and of_rules:
        raise BadInputError(f"{table} is a pool: its books are in no journal of the rules; leave --rules out")
    if since is not None and until is not None and until <= since:
        raise BadInputError("--to must be after --from; a day alone is its midnight, UTC")
    of = config.jackpots if of_books else config.rules if of_rules else config.edge
    lines = export(
        Path(of.journal),
        table,
        site=config.site.name,
        writer=of.name,
        since=since or datetime(1, 1, 1, tzinfo=UTC),
        until=until or datetime.max.replace(tzinfo=UTC),
        of="jackpots" if of_books else "rules" if of_rules else "edge",
    )
    count, total = 0, 0
    try:
        with ProgressLine(also_on=sys.stdout) as progress:
            for line in lines:
                click.echo(line)
                if not count:
                    head = msgspec.json.decode(line)
                    total = max(head["last"] - head["first"] + 1, 1)
                count += 1
                progress(table, min(count / total, 1.0))
    except (sqlite3.Error, OSError) as error:
        raise BadInputError(f"{of.journal}: {error}") from error
    if count == 1:  # only the head
        click.echo(f"{table}: no row of that time; --from and --to are UTC unless a zone is written", err=True)


@journals.command("recall", epilog=examples("sudo feltd journal recall bac-12 --rounds 5"))
@CONFIG
@click.argument("table")
@click.option("--rounds", type=click.IntRange(1, 10_000), help="so many of the last  [default: 1]")
@click.option("--round", "only", help="this one, however old, written as in its result")
@AS_JSON
@click.option("--pdf", type=click.Path(path_type=Path, dir_okay=False), help="write a report; needs reportlab")
@click.option("--lang", type=click.Choice(("en", "pt", "zh-Hant")), default="en", help="of the PDF  [default: en]")
def recall_rounds(
    config_path: Path, table: str, rounds: int | None, only: str | None, as_json: bool, pdf: Path | None, lang: str
) -> None:
    """The last rounds, from the result and its law to the events and the bytes on the wire; the newest first."""
    import sqlite3

    from daemon.cli.progress import ProgressLine
    from daemon.journal.recall import recall, recall_old, recall_text

    if rounds and only:
        raise BadInputError("--round: not with --rounds")
    config = load_config(config_path)
    if table not in {one.name for one in config.table}:
        raise BadInputError(
            f"no table {table!r} in {config_path}; there are: {', '.join(t.name for t in config.table)}"
        )
    rules, edge = Path(config.rules.journal), Path(config.edge.journal)
    try:
        with ProgressLine() as progress:
            bar = progress.of(f"files of {rules}")
            found = recall_old(rules, edge, table, only, bar) if only else recall(rules, edge, table, rounds or 1)
    except (sqlite3.Error, OSError) as error:
        raise BadInputError(f"{error}; run `feltd journal verify` for details") from error
    if pdf is not None and found:
        _print(found, config, table, pdf, lang)
    elif as_json:
        echo_json(found)
    else:
        click.echo(recall_text(found).rstrip())
    if not found and only:
        raise BadInputError(f"{table}: no round {only!r} has ended; write it as in its result: {table}:2026-11-20:17")
    if not found:
        click.echo(f"{table}: no round has ended yet", err=True)


def _print(found: "Sequence[Recalled]", config: "Config", table: str, pdf: Path, lang: str) -> None:
    """Write a PDF of rounds with the bytes on the wire, in the console's words."""
    import getpass

    from daemon.console import paper
    from daemon.console.reports import Made, Printer
    from daemon.words.local import Local, zone_of
    from daemon.words.words import LANGS, say

    if not paper.installed():
        raise BadInputError("--pdf: the library reportlab is not installed: pip install feltd[report]")
    from daemon.console import typesetting

    chosen = next(one for one in LANGS if one == lang)
    ruleset = next(one.ruleset for one in config.table if one.name == table)
    game = say(chosen, f"game.{ruleset}" if ruleset else "pit.no_game")
    made = Made(config.site.name, table, game, getpass.getuser(), "", datetime.now(UTC))
    document = Printer(Local(chosen, zone_of(config.site.timezone))).recalled(made, found)
    try:
        pdf.write_bytes(typesetting.pdf(document))
    except OSError as error:
        raise file_trouble(error, pdf) from error
    click.echo(f"{pdf}: {len(found)} rounds")


@journals.command("accept", epilog=examples("sudo feltd journal accept /var/lib/feltd/edge/journal.db"))
@click.argument("path", metavar="JOURNAL", type=click.Path(path_type=Path, dir_okay=False))
@AS_JSON
def accept_journal(path: Path, as_json: bool) -> None:
    """Accept a journal as it is, after a copy of it was put back on purpose. Stop its process before.

    The note beside JOURNAL then has this end of it. The old note is kept: it shows where the journal ended before.
    """
    from daemon.journal.retention import accept
    from daemon.journal.store import BadJournal

    try:
        report, last, kept = accept(path)
    except BadJournal as error:
        raise BadInputError(str(error)) from error
    if as_json:
        echo_json({"report": report, "checkpoint": last.number, "row": last.n, "note": kept and str(kept)})
        return
    at = f"checkpoint {last.number} after row {last.n}" if last.number else "no checkpoint"
    click.echo(f"{path}: journal {last.journal} ends with {at}; {report.rows} rows are in its files")
    if kept is not None:
        click.echo(f"the old note is kept: {kept}")


@journals.command("witness", epilog=examples("feltd journal witness -c feltd.toml --folder /srv/witness"))
@CONFIG
@PUBLIC
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default="witness", show_default=True)
@click.option("--max-mb", type=click.IntRange(1), default=4096, show_default=True, help="MiB in the folder at most")
def witness(config_path: Path, public: tuple[Path, ...], folder: Path, max_mb: int) -> None:
    """Keep the signed checkpoints of all journals of the site, on another computer, until Ctrl-C.

    An administrator of the table's computer who cuts off the end of a journal cannot cut it off here. Give the public
    keys of all journals: a checkpoint that none of them signed is then refused.
    """
    from daemon.broker.connection import stay_connected
    from daemon.broker.session import Session
    from daemon.journal.witness import BadWitness, HeadRefused, Witness
    from protocols.contract.topics import edge_topic, is_id

    config = load_config(config_path)
    log = logs.get(witness=str(folder))
    try:
        keys = _public_keys(public, config.journal.key)
        keeper = Witness(folder, keys, max_mb * 1024 * 1024)
    except BadWitness as error:
        raise BadInputError(str(error)) from error
    if not keys:
        log.warning("witness.no_keys", remedy=NO_KEYS)
    logged_at, refused = -REFUSED_LOGGED_EVERY_S, 0

    def take(process: str, raw: bytes) -> None:
        nonlocal logged_at, refused
        try:
            if wrong := keeper.take(process, raw, datetime.now(UTC)):
                log.error("witness.contradiction", process=process, text=wrong, remedy=CONTRADICTION_REMEDY)
        except HeadRefused as error:
            refused += 1
            if time.monotonic() - logged_at >= REFUSED_LOGGED_EVERY_S:  # limits the log
                log.warning("witness.refused", process=process, text=str(error), refused=refused, remedy=PROVE)
                logged_at, refused = time.monotonic(), 0

    async def serve(session: Session) -> None:
        await session.subscribe(edge_topic(config.site.name, "+", "head"))
        while True:
            for message in await session.messages():
                process = message.topic.split("/")[4]
                if message.payload and is_id(process):
                    take(process, message.payload)

    try:
        run_until_interrupted(stay_connected(config.mqtt, "", None, serve, log))
    except* BadWitness as errors:
        raise BadInputError(str(logs.first(errors))) from errors


@journals.command("key", epilog=examples("sudo feltd journal key /etc/feltd/edge-key.pem"))
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
