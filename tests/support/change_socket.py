"""A computer whose console may ask for changes of its tables: its configuration, and the command behind the socket."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from daemon import table_requests
from daemon.broker.mac_keys import make_mac_keys

HEAD = """\
[site]
name = "lisboa"
[edge]
name = "edge-7"
journal = "{folder}/edge.db"
[rules]
journal = "{folder}/rules.db"
[console]
store = "{folder}/console.db"
journal = "{folder}/actions.db"

# By the stairs.
[[table]]
name = "rou-3"
ruleset = "macau.roulette"
[table.options]
betting = "no_more_bets"

[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:4002"
options = {{ shortest_spin = 0.5 }}
"""


@contextmanager
def answering(config: Path, at: Path) -> Iterator[None]:
    """As systemd does for feltd-change.socket: the command is started for each connection."""
    command = [sys.executable, "-m", "daemon.cli", "table", "answer", "-c", str(config)]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(at))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    subprocess.run(command, stdin=connection.fileno(), stdout=connection.fileno(), check=True)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def computer(folder: Path) -> Iterator[Path]:
    """Its configuration, with one table; what may change it answers at its socket."""
    (folder / "etc").mkdir()
    path = folder / "etc/feltd.toml"
    path.write_text(HEAD.format(folder=folder), encoding="utf-8")
    make_mac_keys(path.parent, "edge-7", "lisboa")
    at = folder / "change.sock"
    with patch.object(table_requests, "SOCKET", at), answering(path, at):
        yield path
