"""Alerts of tables and pools that a process does not serve, because the broker refuses it their topics.

Processes name them in their retained `info`: an alert under the topics of such a table could be refused, too.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from daemon.console.alerts.incidents import Incidents
from daemon.console.alerts.records import AlertKey
from daemon.words import words
from protocols.contract.documents import Alert, EdgeInfo
from protocols.contract.reasons import say

__all__ = ["look_at_suspended"]

CODE = "topics.refused"
POOL = "jackpot "
"""The prefix of a pool's name among the suspended places."""
MOST_PLACES = 200
"""The most suspended places of one process."""


class _Process(Protocol):
    @property
    def online(self) -> bool | None: ...
    @property
    def info(self) -> EdgeInfo: ...


def look_at_suspended(incidents: Incidents, processes: Mapping[str, _Process], now: datetime) -> None:
    """Begin the alerts of suspended tables; end those that a process, online or gone for good, no longer reports."""
    said = {}
    for name, process in processes.items():
        if process.online:
            for place in sorted(process.info.suspended)[:MOST_PLACES]:
                key, alert = _alert(name, place)
                said[key] = alert
    for key, alert in said.items():
        incidents.begin(key, alert, now)
    away = {name for name, process in processes.items() if not process.online}
    for shown in incidents.open(now):
        one = shown.incident
        if one.code == CODE and one.heard == "console" and one.key not in said and one.device not in away:
            incidents.end(one.key, now)


def _alert(process: str, place: str) -> tuple[AlertKey, Alert]:
    pool = place.removeprefix(POOL) if place.startswith(POOL) else ""
    why = say("pool", name=process, pool=pool) if pool else say("table", name=process, table=place)
    key = ("", f"{process}-refused-{pool}") if pool else (place, f"{process}-refused")
    return key, words.alert(CODE, why, device=process)
