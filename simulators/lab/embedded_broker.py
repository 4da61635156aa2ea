"""The embedded broker: amqtt on one port of loopback, for a demo without an installed mosquitto.

Run as `python -m simulators.lab.embedded_broker PORT`. It is not for production: it has only MQTT 3.1.1, and keeps
nothing over a restart.
"""

import asyncio
import contextlib
import logging
import sys

from amqtt import broker
from amqtt.contexts import BrokerConfig, ListenerConfig
from amqtt.session import Session


class Broker(broker.Broker):  # type: ignore[misc] # amqtt has no types
    """amqtt, which sends each new client the retained messages of all clients' subscriptions (0.12.1)."""

    async def _publish_retained_messages_for_subscription(
        self, subscription: tuple[str, int], session: Session
    ) -> None:
        """Publish them only for a subscription of this client."""
        subscribers = self._subscriptions.get(subscription[0], ())
        if any(one.client_id == session.client_id for one, _ in subscribers):
            await super()._publish_retained_messages_for_subscription(subscription, session)


async def main(port: int) -> None:
    """Serve until killed."""
    config = BrokerConfig(
        listeners={"default": ListenerConfig(bind=f"127.0.0.1:{port}")},
        plugins={"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    )
    await Broker(config).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1])))
