"""The alerts of the jackpots process at a table; daemon/words/jackpots.*.toml has their sentences."""

from daemon.broker.stale_topics import STATE_FORGED

__all__ = ["ALERTS", "FORGED_LEAF", "alert_codes"]

FORGED_LEAF = STATE_FORGED.replace(".", "-")
ALERTS = ("contested", "gone", "noted", "unpriced", "unreadable", "unusable")


def alert_codes() -> list[str]:
    """Behind the name of the process: the alerts that it publishes at a table."""
    return [*ALERTS, FORGED_LEAF]
