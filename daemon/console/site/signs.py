"""The sign of each table as its edge publishes it: open or closed, and the limits of the bets."""

import asyncio

from daemon.read_model import SiteState
from protocols.contract.documents import TableSign

__all__ = ["Signs", "sign_of"]

EVERY_S = 1.0


def sign_of(site: SiteState, table: str) -> TableSign | None:
    """The sign of a table; None if unknown: the table was never opened or closed, or its edge is not online."""
    if not site.connected:
        return None
    for edge in site.edges.values():
        if edge.current is True and (sign := edge.info.signs.get(table)) is not None:
            return sign
    return None


class Signs:
    """Notifies of tables whose sign changed: edges report much more often than a sign changes."""

    def __init__(self, site: SiteState) -> None:
        """No sign is known yet."""
        self._site = site
        self._known: dict[str, TableSign | None] = {}

    async def run(self) -> None:
        """Compare once a second, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EVERY_S)

    def look(self) -> None:
        """Compare the signs with those of a second ago."""
        for table in self._site.tables:
            sign = sign_of(self._site, table)
            if sign != self._known.get(table):
                self._known[table] = sign
                self._site.notify(f"tile/{table}")
                self._site.notify(f"sign/{table}")
                self._site.notify("floor")
