"""What a wheel's counter proves after an absence.

A counter below the last known one has either wrapped around or was reset by a restart of the wheel. It has wrapped if
it advanced by few spins, in the time that they take. After a longer absence, or if the wheel was switched off together
with the computer (a mains failure), it counts as reset: only what it shows is proven, and the wheel is not continuous.
The length of an absence comes from the monotonic clock; after a reboot of the computer only the wall clock is left. If
an absence may have been long, it counts as long, because the wall clock may be wrong either way.

Known limit: a computer that was switched off twice may look as if it had not been, once its clock passes the known
tick.
"""

from datetime import datetime, timedelta

from protocols.link import Chunk

SHORTEST_SPIN = 15.0
FEW_SPINS = 10
# After this many seconds without an event the memory is written again, so that it does not age.
KEPT_AGAIN = 60.0


def gone_round(
    steps: int, at: datetime, tick: float | None, shortest_spin: float, longest_spin: timedelta, now: Chunk
) -> bool:
    """Whether a lower counter, last seen `at` and at `tick`, has advanced by `steps` spins and wrapped around."""
    if steps == 1 or steps > FEW_SPINS or now.began_anew(tick):
        return steps == 1
    least, most = now.after_at_least(at, tick), now.after_at_most(at, tick)
    return steps * timedelta(seconds=shortest_spin) <= least and most <= steps * longest_spin


def follows(steps: int, around: int, at: datetime, tick: float | None, shortest_spin: float, now: Chunk) -> bool:
    """Whether the history of a counter that advanced by `steps`, modulo `around`, is certain."""
    return steps >= 0 or steps + around == 1 or now.after_at_most(at, tick) < timedelta(seconds=shortest_spin)


def outdated(tick: float | None, kept: float | None) -> bool:
    """Whether a memory of `kept` would turn a short absence into a long one."""
    return tick is not None and (kept is None or abs(tick - kept) >= KEPT_AGAIN)
