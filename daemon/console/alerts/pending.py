"""Delays between the broker's alerts and incidents: each kind begins after its pending time, and ends with a delay.

A device that is offline for a second, as after its edge hung, is no incident; its lamp shows it at once. While an edge
is offline or hangs, its devices belong to the incident of the edge: their alerts wait until the edge is back, and then
for their pending time. An alert that comes back within the keep-firing time is the same one.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from daemon.console.alerts.incidents import Incidents
from daemon.console.alerts.processes import SiteView
from daemon.console.alerts.records import AlertKey, Incident
from protocols.contract.documents import Alert

__all__ = ["KEEP_FIRING", "NEVER_SEEN", "PENDING", "Pending", "devices_inside", "is_away"]

PENDING: Final[Mapping[str, timedelta]] = {"device.offline": timedelta(seconds=4)}
"""By code, how long an alert must be open before its incident begins. Other codes begin at once."""
NEVER_SEEN: Final = timedelta(seconds=20)
"""The pending time of a device that has not answered since its edge started: it may be starting as well."""
KEEP_FIRING: Final[Mapping[str, timedelta]] = {"device.offline": timedelta(seconds=4)}
"""By code, how long an alert must have ended before its incident ends."""
MOST: Final = 5_000
OFFLINE_EDGES: Final = ("edge.offline", "edge.silent")


def is_away(site: SiteView, table: str, device: str) -> bool:
    """Whether the edge of a device is offline or hangs."""
    known = site.devices.get((table, device))
    edge = site.edges.get(known.meta.edge) if known is not None else None
    return edge is not None and (edge.online is False or edge.silent)


def devices_inside(site: SiteView, one: Incident) -> tuple[str, ...]:
    """The devices of the edge, for the incident of an edge that is offline or hangs; otherwise none."""
    if one.code not in OFFLINE_EDGES:
        return ()
    return tuple(f"{table}/{name}" for (table, name), device in site.devices.items() if device.meta.edge == one.device)


class Pending:
    """Between the broker's alerts and the incidents. `look` is called every second."""

    def __init__(self, incidents: Incidents, site: SiteView) -> None:
        """No alert is pending."""
        self._incidents = incidents
        self._site = site
        self._beginning: dict[AlertKey, tuple[Alert, datetime]] = {}
        """Alerts that are pending, and since when."""
        self._ending: dict[AlertKey, datetime] = {}
        """Alerts that ended, and when their incidents end."""

    def on_alert(self, key: AlertKey, alert: Alert | None, now: datetime) -> None:
        """Take an alert of the broker; None: it ended."""
        if alert is None:
            self._ended(key, now)
            return
        self._ending.pop(key, None)
        if alert.code not in PENDING or self._incidents.of(key) is not None or len(self._beginning) >= MOST:
            self._beginning.pop(key, None)
            self._incidents.on_alert(key, alert, now)
        else:
            self._beginning[key] = alert, self._beginning[key][1] if key in self._beginning else now

    def _ended(self, key: AlertKey, now: datetime) -> None:
        if self._beginning.pop(key, None) is not None:
            return
        one = self._incidents.of(key)
        kept = KEEP_FIRING.get(one.code) if one is not None else None
        if kept is None:
            self._incidents.on_alert(key, None, now)
        else:
            self._ending.setdefault(key, now + kept)

    def look(self, now: datetime) -> None:
        """Begin and end what is due."""
        if not self._site.connected:  # a new connection receives the open alerts again
            self._beginning.clear()
            return
        for key, due in list(self._ending.items()):
            if due <= now:
                del self._ending[key]
                self._incidents.on_alert(key, None, now)
        for key, (alert, since) in list(self._beginning.items()):
            if is_away(self._site, key[0], alert.device):
                self._beginning[key] = alert, now
            elif now - since >= self._pending(alert):
                del self._beginning[key]
                self._incidents.on_alert(key, alert, now)

    def _pending(self, alert: Alert) -> timedelta:
        return NEVER_SEEN if alert.text.endswith("never seen") else PENDING[alert.code]
