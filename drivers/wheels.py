"""What the counter of a wheel proves after an absence, whichever wheel it is.

A counter that is lower than the last one known has gone round, or it began again: the wheel was switched off. It has
gone round where it counted few spins on, in the time that they take. Who was away for longer, or was switched off
together with the computer (mains fail for the whole table), began again; then what it shows is all that is proven, and
the wheel is not continuous. How long an absence was says the monotonic clock, which nobody sets; where it began anew
with the computer, the wall clock. What may have been long is long: the wall clock may be wrong either way.

Not known: a computer that was switched off twice may look as if it had not been, once its clock is past the tick known.
"""

from datetime import datetime, timedelta

from protocols.link import Chunk

SHORTEST_SPIN = 15.0
FEW_SPINS = 10
# Where nothing is told for so many seconds, the spin is remembered anew: what is remembered must not age by itself.
KEPT_AGAIN = 60.0


def gone_round(
    steps: int, at: datetime, tick: float | None, shortest_spin: float, longest_spin: timedelta, now: Chunk
) -> bool:
    """Whether a lower counter, last seen `at` and at `tick`, has counted `steps` spins on."""
    if steps == 1 or steps > FEW_SPINS or now.began_anew(tick):
        return steps == 1
    least, most = now.after_at_least(at, tick), now.after_at_most(at, tick)
    return steps * timedelta(seconds=shortest_spin) <= least and most <= steps * longest_spin


def follows(steps: int, around: int, at: datetime, tick: float | None, shortest_spin: float, now: Chunk) -> bool:
    """Whether it is certain what became of a counter that is `steps` on, of `around`, since it was last seen."""
    return steps >= 0 or steps + around == 1 or now.after_at_most(at, tick) < timedelta(seconds=shortest_spin)


def outdated(tick: float | None, kept: float | None) -> bool:
    """Whether what was remembered at `kept` would make a short absence a long one."""
    return tick is not None and (kept is None or abs(tick - kept) >= KEPT_AGAIN)
