"""Which MQTT brokers feltd can work with: `python -m tests.support.try_brokers` tries those that are installed.

Each is started on loopback with a folder of its own and tried with both versions of MQTT as a process does at its
start (daemon/broker/broker_trial.py). The output is the table of docs/reference/brokers.md. aedes is installed by npm
into the folder; on Debian the others are `apt-get install mosquitto rabbitmq-server nats-server`, and amqtt is there
with the demo. One that is not there is named as such.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from daemon.broker.broker_trial import try_broker
from daemon.broker.connection import connect
from daemon.broker.session import BrokerLost
from daemon.config.model import Mqtt
from simulators.lab.broker import find_mosquitto, free_port

PATIENCE_S = 60.0
TOPIC = "felt/1/site/edge/edge-1/broker.trial"
VERSIONS: tuple[Literal["5", "3.1.1"], ...] = ("5", "3.1.1")
AEDES = """
(async () => {
  const { Aedes } = require('aedes');
  const broker = await Aedes.createBroker();
  require('net').createServer(broker.handle).listen(PORT, '127.0.0.1');
})();
"""


class Candidate(NamedTuple):
    """A broker: its command with its files written, the command that tells its version, and its environment."""

    name: str
    command: Sequence[str]
    version: Sequence[str]
    environment: dict[str, str]


def _mosquitto(_: Path, port: int) -> Candidate | str:
    program = find_mosquitto()
    if program is None:
        return "mosquitto"
    return Candidate("mosquitto", [program, "-p", str(port)], ["dpkg-query", "-W", "mosquitto"], {})


def _amqtt(_: Path, port: int) -> Candidate | str:
    embedded = [sys.executable, "-m", "simulators.lab.embedded_broker", str(port)]
    told = [sys.executable, "-c", "import importlib.metadata as m; print(m.version('amqtt'))"]
    return Candidate("amqtt", embedded, told, {})


def _aedes(folder: Path, port: int) -> Candidate | str:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return "aedes"
    subprocess.run([npm, "install", "--silent", "--prefix", folder, "aedes"], check=True, timeout=300)
    (folder / "aedes.js").write_text(AEDES.replace("PORT", str(port)), encoding="utf-8")
    package = folder / "node_modules/aedes/package.json"
    told = [node, "-p", f"require('{package}').version"]
    return Candidate("aedes", [node, str(folder / "aedes.js")], told, {})


def _rabbitmq(folder: Path, port: int) -> Candidate | str:
    program = shutil.which("rabbitmq-server", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        return "RabbitMQ"
    (folder / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{free_port()}\n"
        f"mqtt.listeners.tcp.1 = 127.0.0.1:{port}\n"
        "mqtt.allow_anonymous = true\n"
    )
    (folder / "plugins").write_text("[rabbitmq_mqtt].\n")
    environment = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"feltd-{os.getpid()}@localhost",
        "RABBITMQ_MNESIA_BASE": str(folder / "db"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    as_its_user = ["runuser", "-u", "rabbitmq", "--preserve-environment", "--"] if os.geteuid() == 0 else []
    if as_its_user:
        shutil.chown(folder, "rabbitmq")
    return Candidate("RabbitMQ", [*as_its_user, program], ["dpkg-query", "-W", "rabbitmq-server"], environment)


def _nats(folder: Path, port: int) -> Candidate | str:
    program = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        return "NATS"
    (folder / "nats.conf").write_text(
        f'host: "127.0.0.1"\nport: {free_port()}\nserver_name: feltd\njetstream {{ store_dir: "{folder}/nats" }}\n'
        f'mqtt {{ host: "127.0.0.1", port: {port} }}\n'
    )
    return Candidate("NATS", [program, "-c", str(folder / "nats.conf")], [program, "--version"], {})


async def said_of(port: int, version: Literal["5", "3.1.1"]) -> str:
    """What a process of feltd says of a broker, by one version of MQTT; asked until something listens."""
    settings = Mqtt(port=port, version=version)
    until = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        try:
            async with connect(settings, "", None) as session:
                works = await try_broker(session, TOPIC)
                return "works" if works else "gives nothing back"
        except BrokerLost as lost:
            listens = "refused" not in str(lost) and "Connection" not in str(lost)
            if listens or asyncio.get_running_loop().time() > until:
                return str(lost)
            await asyncio.sleep(0.5)


async def tried(one: Candidate, port: int) -> tuple[str, str, str, str]:
    """A row: name, version, what it does with MQTT 5, and with MQTT 3.1.1."""
    asking = await asyncio.to_thread(
        subprocess.run, one.version, capture_output=True, text=True, check=False, timeout=60
    )
    told = asking.stdout
    number = re.search(r"\d+\.\d+[.\d]*", told)
    running = await asyncio.create_subprocess_exec(
        *one.command,
        env={**os.environ, **one.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        found = [await said_of(port, version) for version in VERSIONS]
    finally:
        os.killpg(running.pid, 15)
        await running.wait()
    return one.name, number[0] if number else "", found[0], found[1]


def main() -> None:
    """Print the table."""
    sys.stdout.write("| broker | version | MQTT 5 | MQTT 3.1.1 |\n|---|---|---|---|\n")
    with tempfile.TemporaryDirectory() as folder:
        for made in (_mosquitto, _amqtt, _aedes, _rabbitmq, _nats):
            port = free_port()
            one = made(Path(folder), port)
            row = (one, "not installed", "", "") if isinstance(one, str) else asyncio.run(tried(one, port))
            sys.stdout.write(f"| {' | '.join(row)} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
