"""The console's own alerts about pools: books that do not balance or lack entries, documents that are too long, signs
that lag, wins that wait too long.

The jackpots process raises alerts, too; these also work if it is wrong or sends nothing. Each is an incident
at a table of the pool.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from daemon.console.alerts.incidents import Incidents
from daemon.console.site.pools import Pools, PoolView
from protocols.contract.documents import Alert
from protocols.contract.jackpots import PoolWin

__all__ = ["PoolAlerts"]

EVERY_S = 1.0
SIGN_LAG = timedelta(seconds=10)
WIN_WAITS = timedelta(minutes=15)
MISSING_AFTER = timedelta(seconds=30)


class PoolAlerts:
    """Begins and ends the incidents of pools."""

    def __init__(self, pools: Pools, incidents: Incidents) -> None:
        """`pools` are checked; their alerts begin and end in `incidents`."""
        self._pools = pools
        self._incidents = incidents

    async def run(self, now: Callable[[], datetime]) -> None:
        """Check all pools every second until cancelled."""
        while True:
            self.look(now())
            await asyncio.sleep(EVERY_S)

    def look(self, now: datetime) -> None:
        """Begin the alerts that apply now, and end the others of each pool whose state is known."""
        if not self._pools.connected:
            return
        open_ = self._incidents.open(now)
        said = set()
        # The jackpots process itself reports a sign that does not answer: no second alert for that sign.
        silent = {(one.incident.table, one.incident.device) for one in open_ if one.incident.code == "jackpot.sign"}
        for view in self._pools:
            table = min(view.tables, default="")
            for where, name, alert in _seen(view, table, now):
                if (where, alert.device) in silent and alert.code == "jackpot.sign_behind":
                    continue
                key = where, f"jackpot:{view.name}:{name}"
                said.add(key)
                self._incidents.begin(key, alert, now)
        for shown in open_:
            match shown.incident.name.split(":"):
                case ["jackpot", pool, _] if shown.incident.key not in said and self._is_known(pool):
                    self._incidents.end(shown.incident.key, now)
                case _:
                    pass

    def _is_known(self, pool: str) -> bool:
        view = self._pools.get(pool)
        if view is None:
            return pool in self._pools.removed
        return view.books is not None and view.last is not None


def _seen(view: PoolView, table: str, now: datetime) -> Iterator[tuple[str, str, Alert]]:
    """The alerts of one pool, each with its table and its name."""
    if view.fault:
        yield (
            table,
            "unbalanced",
            Alert(
                code="jackpot.unbalanced",
                text=f"the books of {view.name} do not balance: {view.fault}",
                remedy="pay nothing from this pool; run `feltd jackpot --check` on its computer and tell the inspector",
                device=view.name,
            ),
        )
    if view.too_long:
        kinds = ", ".join(f"{kind} of {size} bytes" for kind, size in sorted(view.too_long.items()))
        yield (
            table,
            "long",
            Alert(
                code="jackpot.too_long",
                text=f"documents of {view.name} are too long to be read here: {kinds}",
                remedy="read the pool with `feltd jackpot` on its computer; withdraw proposals that nobody needs",
                device=view.name,
            ),
        )
    if view.stuck is not None and now - view.stuck[1] >= MISSING_AFTER:
        yield (
            table,
            "missing",
            Alert(
                code="jackpot.missing",
                text=f"entries of {view.name} from {view.stuck[0]} on are missing: its books cannot be checked here",
                remedy="check that `feltd jackpots` and the broker run; `feltd jackpot --check` reads the books",
                severity="warning",
                device=view.name,
            ),
        )
    yield from _late(view, now)


def _late(view: PoolView, now: datetime) -> Iterator[tuple[str, str, Alert]]:
    """The alerts about signs that lag behind the pool, and about wins that wait too long for a person."""
    for sign in view.signs.values():
        if sign.behind is not None and now - sign.behind >= SIGN_LAG:
            where, _, device = sign.place.partition("/")
            yield (
                where,
                f"sign-{device}",
                Alert(
                    code="jackpot.sign_behind",
                    text=f"sign {sign.place} does not show the amount of {view.name}",
                    remedy="check the sign, its cable and its edge; the pool and its books are right without it",
                    severity="warning",
                    device=device,
                ),
            )
    late = [one for one in view.open_wins if now - one.at >= WIN_WAITS]
    of_people = [one for one in late if not one.at_table or one.state == "confirmed"]
    of_dealers = [one for one in late if one.at_table and one.state == "pending"]
    yield from _oldest(
        view,
        of_people,
        "win",
        code="jackpot.win_waits",
        text=f"a win of {view.name} has waited for more than 15 minutes",
        remedy="one supervisor confirms it on the page of the pool, another person pays it",
    )
    yield from _oldest(
        view,
        of_dealers,
        "key",
        code="jackpot.key_waits",
        text=f"no payment key booked a small prize of {view.name} for more than 15 minutes",
        remedy="ask the dealer whether it was paid; two supervisors confirm and pay it on the page of the pool",
    )


def _oldest(
    view: PoolView, late: Sequence[PoolWin], name: str, *, code: str, text: str, remedy: str
) -> Iterator[tuple[str, str, Alert]]:
    """A warning that names the oldest of the wins that wait too long, at the table that won it."""
    for win in late[:1]:
        alert = Alert(
            code=code,
            text=f"{text}: {win.id}",
            remedy=remedy,
            severity="warning",
            device=view.name,
            since=win.at,
        )
        yield win.table, name, alert
