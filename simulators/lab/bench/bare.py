"""The simplest possible edge, for comparison: aiomqtt publishes the lines of a tty one by one, nothing is decoded.

`python -m simulators.lab.bench.bare TTY PORT TOPIC FILE`: with a FILE one fdatasync before each publish, with "-" none.
"""

import asyncio
import os
import sys

import aiomqtt
import serial_asyncio_fast

NODELAY = ((6, 1, 1),)  # IPPROTO_TCP, TCP_NODELAY


async def bare(path: str, port: int, topic: str, file: str) -> None:
    """Publish lines until the process is ended."""
    log = None if file == "-" else os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    version = aiomqtt.ProtocolVersion.V5
    async with aiomqtt.Client("127.0.0.1", port, protocol=version, socket_options=NODELAY) as client:
        reader, _ = await serial_asyncio_fast.open_serial_connection(url=path, baudrate=9600)
        while True:
            line = await reader.readuntil(b"\n")
            if log is not None:
                os.write(log, line)
                os.fdatasync(log)
            await client.publish(topic, line, qos=1)


if __name__ == "__main__":
    asyncio.run(bare(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]))
