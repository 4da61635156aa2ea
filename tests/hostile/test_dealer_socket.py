"""Programs of other users of this computer at the socket between the console's dealer page and the edge.

Who is believed there signs nothing: the edge journals and signs what it hears from the page as its own device's word.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers import PATIENCE
from structlog.testing import capture_logs

from daemon import local_peer
from daemon.console.dealer.unit import By, Press, Unit, serve
from daemon.console.site.store import Store
from daemon.edge.links.link import open_stream
from protocols.fdl import frame as fdl
from protocols.fdl.console import RoundVoid
from protocols.link import DeviceRefused, LinkLost

STRANGER = 65534
# A false page: it says that the round is void. Its folder is open to everybody, as /tmp is.
SQUATS = """
import os, socket, sys
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as place:
    place.bind(sys.argv[1]); place.listen(); print("ready", flush=True)
    while True:
        one, _ = place.accept()
        try:
            one.sendall(bytes.fromhex(sys.argv[2]))
        except OSError:  # the edge has gone already
            pass
"""
# A false edge: it introduces itself and reads what the page says.
LISTENS = """
import os, socket, sys
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    heard = b""
    try:
        line.sendall(bytes.fromhex(sys.argv[2]))
        while piece := line.recv(4096):
            heard += piece
    except ConnectionError:
        pass
    print(heard.hex())
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program of another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that every user of the computer reaches."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o777)
        yield Path(made)


@pytest.fixture
def unit(tmp_path: Path) -> Iterator[Unit]:
    with closing(Store(tmp_path / "console.db")) as store:
        yield Unit(store, "bac-1", lambda: datetime.now(UTC))


@contextmanager
def stranger(program: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A program of another user."""
    with subprocess.Popen([sys.executable, "-I", "-c", program, *words], stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def hello(unit: Unit) -> bytes:
    return fdl.encode(fdl.Hello(unit._epoch, 0), 1)


@needs_root
async def test_an_edge_believes_no_page_that_another_user_serves(folder: Path) -> None:
    """While the console is down anybody may take the place of its socket."""
    place = folder / "bac-1.sock"
    void = fdl.encode(fdl.EventReport(1, 0, RoundVoid.KIND, RoundVoid(1).to_bytes()), 1)
    with stranger(SQUATS, str(place), void.hex()) as squatter:
        assert squatter.stdout is not None
        assert squatter.stdout.readline() == "ready\n"
        with pytest.raises(DeviceRefused, match=r"served by the user \S+ and not by feltd-console"):
            async with open_stream(f"unix://{place}") as link:
                await link.read()
        async with open_stream(f"unix://{place}?user={local_peer.name_of(STRANGER)}") as link:  # where it is expected
            assert (await link.read()).data == void


@needs_root
async def test_a_page_tells_no_key_to_another_user(folder: Path, unit: Unit) -> None:
    place = folder / "bac-1.sock"
    async with serve([unit], {"bac-1": str(place)}, "feltd-edge"):
        with capture_logs() as logs, stranger(LISTENS, str(place), hello(unit).hex()) as spy:
            unit.press(Press("p1", "void", (RoundVoid(1),)), By("ana", "dealer"), asyncio.get_running_loop().time())
            heard, _ = await asyncio.wait_for(asyncio.to_thread(spy.communicate), PATIENCE)
            assert heard == "\n"
        assert not unit.met
        assert unit.waiting == 2  # its start and the key
        [told] = [one for one in logs if one["event"] == "dealer.refused"]
        assert told["user"] == local_peer.name_of(STRANGER)


async def test_a_later_connection_displaces_nobody(tmp_path: Path, unit: Unit) -> None:
    place = tmp_path / "bac-1.sock"
    async with serve([unit], {"bac-1": str(place)}, "feltd-edge"), open_stream(f"unix://{place}") as edge:
        await edge.write(hello(unit))
        async with asyncio.timeout(PATIENCE):
            while not unit.met:
                await edge.read()
        for _ in range(20):
            async with open_stream(f"unix://{place}") as other:
                with pytest.raises(LinkLost):
                    await other.read()
        assert unit.met
        assert (await asyncio.wait_for(edge.read(), PATIENCE)).data


async def test_whoever_is_neither_expected_nor_ourselves_is_refused(
    tmp_path: Path, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the tests of other users, where those cannot be: the kernel names another user."""
    place = tmp_path / "bac-1.sock"
    async with serve([unit], {"bac-1": str(place)}, "feltd-edge"):
        monkeypatch.setattr(local_peer, "uid_at_the_other_end", lambda _sock: os.geteuid() + 1)
        with pytest.raises(DeviceRefused):
            async with open_stream(f"unix://{place}"):
                pass
        with socket.socket(socket.AF_UNIX) as line:
            line.setblocking(False)
            await asyncio.get_running_loop().sock_connect(line, str(place))
            assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(line, 1), PATIENCE) == b""


def test_the_kernel_names_the_peer() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert local_peer.uid_at_the_other_end(one) == os.geteuid()
    assert local_peer.is_trusted(os.geteuid(), "nobody-of-this-name")
    assert not local_peer.is_trusted(os.geteuid() + 1, "nobody-of-this-name")
    assert local_peer.name_of(4_000_000_000) == "number 4000000000"
