"""Sessions with the brokers of the site (`[mqtt] others`), for commands that ask or clear once and end."""

import contextlib
from collections.abc import AsyncIterator

import click

from daemon.broker.connection import connect
from daemon.broker.session import BrokerLost, Session
from daemon.config.model import Mqtt, brokers_of

__all__ = ["at_brokers"]


@contextlib.asynccontextmanager
async def at_brokers(settings: Mqtt, most: int = 100) -> AsyncIterator[list[Session]]:
    """Sessions with the first `most` brokers that answer; those before them that do not are named on standard error.

    Raises BrokerLost, with the reason of the first, where none answers.
    """
    async with contextlib.AsyncExitStack() as stack:
        found: list[Session] = []
        lost: dict[str, BrokerLost] = {}
        for broker in brokers_of(settings):
            if len(found) < most:
                try:
                    found.append(await stack.enter_async_context(connect(broker, "")))
                except BrokerLost as error:
                    lost[f"{broker.host}:{broker.port}"] = error
        if not found:
            raise next(iter(lost.values()))
        for place, reason in lost.items():
            click.echo(f"broker {place}: {reason}", err=True)
        yield found
