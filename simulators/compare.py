"""What came out against what truly happened, table by table."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from simulators.tables import Truth

__all__ = ["Account", "Outcome", "compare"]


class Outcome(Struct, frozen=True):
    """One result as it came out: the facts, or void with its reason."""

    round: str
    outcome: dict[str, Any]
    void: str = ""


class Account(Struct, frozen=True):
    """How rounds that truly happened came out.

    `right`: resolved as they were, or void as they were. `voided`: they had an outcome, and came out void with a
    reason. `lost`: they had an outcome, and nothing came out. `unseen`: they were void, and nothing came out: over
    before anybody could see that they had begun. `wrong`: something came out that never was. `extra`: void results
    beside those, which claim nothing.
    """

    right: int = 0
    voided: int = 0
    lost: int = 0
    wrong: int = 0
    extra: int = 0
    unseen: int = 0


def compare(truths: Sequence[Truth], outcomes: Sequence[Outcome]) -> Account:
    """Align both sequences in order with the least damage, and count. A resolved result fits only its own truth."""
    # best[j]: the account with the least damage for the truths so far and the first j outcomes.
    best = [Account()]
    for outcome in outcomes:
        best.append(_unmatched(best[-1], outcome))
    for truth in truths:
        row = [_lost(best[0], truth)]
        for j, outcome in enumerate(outcomes):
            choices = [_lost(best[j + 1], truth), _unmatched(row[j], outcome)]
            if (matched := _match(best[j], truth, outcome)) is not None:
                choices.append(matched)
            row.append(min(choices, key=_damage))
        best = row
    return best[-1]


def _damage(account: Account) -> tuple[int, int]:
    return account.wrong * 2 + account.lost + account.unseen, account.voided + account.extra


def _match(account: Account, truth: Truth, outcome: Outcome) -> Account | None:
    if outcome.void:
        return _plus(account, right=1) if truth.void else _plus(account, voided=1)
    if truth.outcome and all(outcome.outcome.get(key) == value for key, value in truth.outcome.items()):
        return _plus(account, right=1)
    return None


def _unmatched(account: Account, outcome: Outcome) -> Account:
    return _plus(account, extra=1) if outcome.void else _plus(account, wrong=1)


def _lost(account: Account, truth: Truth) -> Account:
    return _plus(account, unseen=1) if truth.void else _plus(account, lost=1)


def _plus(
    account: Account,
    *,
    right: int = 0,
    voided: int = 0,
    lost: int = 0,
    wrong: int = 0,
    extra: int = 0,
    unseen: int = 0,
) -> Account:
    return Account(
        account.right + right,
        account.voided + voided,
        account.lost + lost,
        account.wrong + wrong,
        account.extra + extra,
        account.unseen + unseen,
    )
