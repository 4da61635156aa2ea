"""Compares the published results of each table with what the simulators did."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from simulators.tables.table import Settled, Truth

__all__ = ["Account", "Outcome", "compare", "fits", "spared"]


class Outcome(Struct, frozen=True):
    """One published result: the facts, or void with its reason.

    `span`: how many rounds of the table had truly ended when the opening of this one arrived, and when its end arrived:
    it should be one of the rounds that were under way meanwhile. None if this was not recorded.
    """

    round: str
    outcome: dict[str, Any]
    void: str = ""
    span: tuple[int, int] | None = None
    settled: Settled = ()


class Account(Struct, frozen=True):
    """How the published results agree with the rounds that truly happened.

    `right`: published with their true outcome, or void where they were void. `voided`: had an outcome, were published
    as void with a reason. `lost`: had an outcome, no result was published. `unseen`: were void and no result was
    published: they ended before their opening could be seen. `wrong`: a published outcome that no round had. `extra`:
    further void results, which match no round.
    """

    right: int = 0
    voided: int = 0
    lost: int = 0
    wrong: int = 0
    extra: int = 0
    unseen: int = 0


def compare(truths: Sequence[Truth], outcomes: Sequence[Outcome], *, cut_short: bool = False) -> Account:
    """Align both sequences in order with the least damage, and count. A resolved result fits only a truth with its
    facts.

    `cut_short`: outcomes beyond the number of truths may be of rounds that no dealer finished; they are left out where
    that does less damage.

    Void results look alike: of alignments with the same damage the one that fits best in time is taken. A lost round
    costs as much as an unseen void one; otherwise one would count as the other.
    """
    # best[j]: the alignment with the least damage of the truths so far and the first j outcomes.
    best = [_Alignment(Account())]
    for outcome in outcomes:
        best.append(_unmatched(best[-1], outcome))
    for index, truth in enumerate(truths):
        row = [_lost(best[0], truth)]
        for j, outcome in enumerate(outcomes):
            choices = [_lost(best[j + 1], truth), _unmatched(row[j], outcome)]
            if (matched := _match(best[j], index, truth, outcome)) is not None:
                choices.append(matched)
            row.append(min(choices, key=_damage))
        best = row
    ends = best[len(truths) :] if cut_short and len(truths) < len(best) else best[-1:]
    return min(reversed(ends), key=_damage).account


def spared(account: Account, outcomes: Sequence[Outcome]) -> Account:
    """The same account where void results may have changed places.

    Void results look alike: a missing one may have been counted as the result of another round, which was void and
    unseen.
    """
    void = sum(bool(outcome.void) for outcome in outcomes) - account.voided - account.extra
    count = min(account.lost, max(void, 0))
    return replace(
        account,
        lost=account.lost - count,
        unseen=account.unseen + count,
        voided=account.voided + count,
        right=account.right - count,
    )


class _Alignment(Struct, frozen=True):
    """The account of one alignment, and the sum of the distances in time of its pairs, in rounds."""

    account: Account
    apart: int = 0


def _damage(one: _Alignment) -> tuple[int, int, int]:
    account = one.account
    return account.wrong * 2 + account.lost + account.unseen, one.apart, account.voided + account.extra


def fits(truth: Truth, outcome: Outcome) -> bool:
    """Whether a resolved result has the facts of a round and settles its wagers as the table counts."""
    same = bool(truth.outcome) and all(outcome.outcome.get(key) == value for key, value in truth.outcome.items())
    return same and (truth.settled is None or truth.settled == _beside_main(outcome.settled))


def _beside_main(settled: Settled) -> Settled:
    """In a game with main bets: without the bets returned whole to a seat that has no main bet, which a table does not
    count.
    """
    mains = {seat for seat, _, bet, _, _ in settled if bet == "main"}
    return tuple(one for one in settled if not mains or one[0] in mains or one[3] != one[4])


def _match(one: _Alignment, index: int, truth: Truth, outcome: Outcome) -> _Alignment | None:
    if not outcome.void and not fits(truth, outcome):
        return None
    right = truth.void or not outcome.void
    account = _plus(one.account, right=1) if right else _plus(one.account, voided=1)
    return _Alignment(account, one.apart + _apart(index, outcome))


def _apart(index: int, outcome: Outcome) -> int:
    """Rounds between the truth at `index`, under way while `index` rounds had ended, and the span of `outcome`."""
    opened, ended = outcome.span or (index, index)
    return max(opened - index, index - ended, 0)


def _unmatched(one: _Alignment, outcome: Outcome) -> _Alignment:
    account = _plus(one.account, extra=1) if outcome.void else _plus(one.account, wrong=1)
    return _Alignment(account, one.apart)


def _lost(one: _Alignment, truth: Truth) -> _Alignment:
    account = _plus(one.account, unseen=1) if truth.void else _plus(one.account, lost=1)
    return _Alignment(account, one.apart)


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
