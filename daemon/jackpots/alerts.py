"""The alerts of the jackpots process at a table, with their remedies."""

from daemon.broker.stale_topics import STATE_FORGED

__all__ = ["ALERTS", "FORGED_LEAF", "alert_codes"]

FORGED_LEAF = STATE_FORGED.replace(".", "-")
ALERTS = {
    "unpriced": "let two people set its amount (price), then confirm and pay it",
    "contested": "decide who bears it; two people settle the pool by a change (adjust)",
    "noted": "compare the round with the books (feltd jackpot) and settle the pool by a change of two people",
    "unusable": "compare the round with the books (feltd jackpot), report it, and settle the pool by two people",
    "gone": "compare the bets of these rounds with the journal's archive and settle the pool by a change of two people",
    "unreadable": "run one version of feltd everywhere; where a bet is missing two people settle the pool by a change",
}
"""By the code of an alert its remedy."""


def alert_codes() -> list[str]:
    """Behind the name of the process: the alerts that it publishes at a table."""
    return [*sorted(ALERTS), FORGED_LEAF]
