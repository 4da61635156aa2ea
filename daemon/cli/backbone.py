"""`feltd forward`, and `feltd site` for the backbone of a site of many computers."""

import asyncio
from pathlib import Path
from typing import Any

import click

from daemon import logs
from daemon.cli.common import (
    CONFIG,
    BadInputError,
    CommandGroup,
    broker_trouble,
    examples,
    load_config,
    run_process,
)

NO_BACKBONE = "no servers are named under [backbone]; docs/how-to/a-site-of-many-computers.md shows it"


def with_backbone(config_path: Path) -> Any:
    """The configuration of a site with a backbone, whose library is installed. Raises BadInputError."""
    config = load_config(config_path)
    if not config.backbone.servers:
        raise BadInputError(f"{config_path}: {NO_BACKBONE}")
    try:
        import daemon.site.backbone  # noqa: F401 - whether it is installed
    except ModuleNotFoundError as error:
        raise BadInputError(str(error)) from error
    return config


@click.command(epilog=examples("feltd forward -c /etc/feltd/feltd.toml"))
@CONFIG
def forward(config_path: Path) -> None:
    """Send the rows of this computer's journals to the backbone of the site."""
    config = with_backbone(config_path)
    from daemon.site.backbone import Connection
    from daemon.site.forward import Forwarder

    async def process() -> None:
        connection = Connection(config.backbone, config.forward, config.edge.name)
        async with asyncio.TaskGroup() as group:
            group.create_task(connection.run())
            group.create_task(Forwarder(config, connection).run())

    run_process(process)
    logs.get(forward=config.edge.name).info("forward.stopped")


@click.group(cls=CommandGroup, epilog=examples("sudo feltd site init"))
def site() -> None:
    """The backbone of a site of many computers: its streams, users and ledger, and results that differ."""


@site.command(epilog=examples("sudo feltd site init"))
@CONFIG
@click.option("--events-gb", type=click.IntRange(1, 10_000), default=20, show_default=True, help="room for events")
def init(config_path: Path, events_gb: int) -> None:
    """Make the streams EV, RES and ADM. A backbone that may lose rows is refused."""
    config = with_backbone(config_path)
    import nats.errors

    from daemon.site.health import findings, make_streams, measured

    facts = asyncio.run(measured(config))
    if wrong := findings(facts, with_streams=False):
        raise BadInputError("\n".join(f"{one.where}: {one.text}; {one.remedy}" for one in wrong))
    try:
        lines = asyncio.run(make_streams(config, events_gb))
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise click.ClickException(f"the backbone: {str(error) or type(error).__name__}; feltd doctor") from error
    click.echo("\n".join(lines))


@site.command("ledger", epilog=examples("feltd site ledger 'host=/run/postgresql dbname=feltd'"))
@click.argument("database")
def ledger_schema(database: str) -> None:
    """Make or change the tables of the ledger. DATABASE is libpq's connection string of the owner."""
    from daemon.cli.ledger import NOT_INSTALLED

    try:
        import psycopg

        from daemon.site.ledger import migrate
    except ModuleNotFoundError as error:
        raise BadInputError(NOT_INSTALLED) from error
    try:
        click.echo("\n".join(migrate(database)))
    except psycopg.Error as error:
        raise click.ClickException(f"the database: {str(error).strip()}") from error


@site.command(epilog=examples("feltd site acl /etc/feltd/feltd.toml > users.conf"))
@click.argument("configs", nargs=-1, required=True, type=click.Path(path_type=Path, readable=False))
def acl(configs: tuple[Path, ...]) -> None:
    """Print the users of the nodes, from the configurations of all computers of the site."""
    from daemon.site.acl import authorization

    click.echo(authorization([load_config(path) for path in configs]), nl=False)


@site.command(epilog=examples("sudo feltd site settle rou-3"))
@CONFIG
@click.argument("table")
def settle(config_path: Path, table: str) -> None:
    """End the alert that two rules processes gave different results at TABLE: a person has decided."""
    from daemon.broker.session import BrokerLost
    from daemon.broker.stale_topics import DISAGREE_LEAF
    from daemon.cli.site_brokers import at_brokers
    from daemon.config.model import broker_of
    from protocols.contract.topics import table_topic

    config = load_config(config_path)
    if table not in {one.name for one in config.table}:
        raise BadInputError(f"{table!r} is not in {config_path}; tables: {', '.join(one.name for one in config.table)}")
    user = broker_of(config, config.maintenance if config.maintenance.username else config.rules)

    async def cleared() -> None:
        async with at_brokers(user) as sessions:
            for session in sessions:
                await session.publish(table_topic(config.site.name, table, DISAGREE_LEAF), b"", retain=True)
                await session.drained()

    try:
        asyncio.run(cleared())
    except BrokerLost as error:
        raise broker_trouble(config_path, config, error) from error
    click.echo(f"{table}: settled; both results stay in the ledger (feltd.disagreements)")
