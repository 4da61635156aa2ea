"""The alerts of the jackpots process at a table; daemon/words/jackpots.*.toml has their sentences."""

from daemon.broker.stale_topics import STATE_FORGED

__all__ = ["ALERTS", "FORGED_LEAF", "alert_codes"]

FORGED_LEAF = STATE_FORGED.replace(".", "-")
ALERTS = ("contested", "gone", "noted", "unpriced", "unreadable", "unusable")


def alert_codes() -> list[str]:
    """The codes of the process's alerts at a table, which follow its name in the topic."""
    return [*ALERTS, FORGED_LEAF]
