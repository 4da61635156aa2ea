"""The embedded broker: amqtt on one port of loopback, for a demo where no mosquitto is installed.

Run as `python -m daemon.embedded_broker PORT`. It is for looking, not for production: MQTT 3.1.1 only, and it forgets.
"""

import asyncio
import contextlib
import logging
import sys

from amqtt.broker import Broker
from amqtt.contexts import BrokerConfig, ListenerConfig


async def main(port: int) -> None:
    """Serve until killed."""
    config = BrokerConfig(
        listeners={"default": ListenerConfig(bind=f"127.0.0.1:{port}")},
        plugins={"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    )
    broker = Broker(config)
    await broker.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1])))
