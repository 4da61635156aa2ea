"""A device at a table of craps that names two supervisors, to have bets paid that nobody laid."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from daemon import local_peer
from daemon.edge.links.link import StreamLink, open_stream
from drivers.driver import Sighting
from drivers.fdl_console import ConsoleOptions, FdlConsole
from protocols.contract.events import LaidBet, SeriesStated
from protocols.fdl.console import MAX_PARTS, stated
from protocols.link import LinkLost, LocalLink

SAID = stated("ana", 6, "c:1", ((1, "pass", 3000),))


class Closed(StreamLink):
    """A line that is gone."""

    async def write(self, data: bytes) -> None:  # noqa: ARG002 - as every link
        raise LinkLost("gone")


async def test_only_the_dealers_page_of_this_computer_states_a_series(tmp_path: Path) -> None:
    async def nobody(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        """No edge listens."""

    driver = FdlConsole(ConsoleOptions())
    with pytest.raises(LinkLost):
        await driver.run(Closed(), nobody)
    assert driver.translate(SAID[0]) is None, "a console on a cable signs nobody in"
    path = tmp_path / "page.sock"
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), path)
    async with server, open_stream(f"unix://{path}?user={local_peer.name_of(os.getuid())}") as link:
        assert isinstance(link, LocalLink)
        with pytest.raises(LinkLost):
            await driver.run(link, nobody)
    bets = (LaidBet(1, "pass", 3000),)
    assert driver.translate(SAID[0]) == (SeriesStated(by="ana", point=6, bets=bets, round="c:1"),)


def test_more_than_fits_is_refused() -> None:
    with pytest.raises(ValueError, match=f"{MAX_PARTS} events"):
        stated("a" * 64, 6, "c" * 100, tuple((seat, "pass", 1) for seat in range(1, 60)))
