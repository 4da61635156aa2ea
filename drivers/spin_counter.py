"""What a roulette wheel's counter of spins proves, also after an interruption. Pure; used by the drivers of the wheels.

A counter below the last known one has either wrapped around or was reset by a restart of the wheel. It has wrapped if
it advanced by one spin, or by few in the time that they take. After a longer interruption of the link, or if the
wheel was switched off together with the computer (a mains failure), more than one spin counts as a reset: only what it
shows is proven, and the wheel is not continuous.
The length of an interruption comes from the monotonic clock; after a reboot of the computer only the wall clock is
left. If an interruption may have been long, it counts as long, because the wall clock may be wrong either way.

Known limit: a reboot of the computer is not detected once its monotonic clock has passed the stored tick.
"""

from datetime import datetime, timedelta
from typing import Annotated, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from protocols.link import Chunk

SHORTEST_SPIN = 15.0
FEW_SPINS = 10
# After this many seconds without an event the memory is written again, so that it does not age.
KEPT_AGAIN = 60.0


class CountedSpin(Struct, frozen=True, kw_only=True):
    """The last known spin of a wheel, `spin` by its counter.

    `begun`: its start was seen. `ended`: reported, void or missed. `landed`: it has a number; the wheel counts on and
    does not repeat the spin under its counter. `at` and `tick`: when it was last seen.
    """

    spin: Annotated[int, Meta(ge=0)]
    at: Annotated[datetime, Meta(tz=True)]
    begun: bool = False
    launched: bool = False
    ended: bool = False
    landed: bool = False
    tick: float | None = None


AnySpin = TypeVar("AnySpin", bound=CountedSpin)


class Advance(Struct, frozen=True):
    """The counter moved by `steps`, below 1 after a reset; `missed` spins passed unseen between the old and the new."""

    steps: int
    missed: int

    @property
    def counts_on(self) -> bool:
        """Whether it went on; otherwise the wheel was switched off and on, and counts from 1 again."""
        return self.steps > 0


class SpinCounter(Struct, frozen=True):
    """A counter that wraps around after `around` spins, each of `shortest_spin_s` seconds to `longest_spin`."""

    around: int
    shortest_spin_s: float
    longest_spin: timedelta

    def advance(self, last: CountedSpin, shown: int, now: Chunk, *, may_wrap: bool = True) -> Advance:
        """What passed between the last known spin and the one that is shown now."""
        steps = shown - last.spin
        if may_wrap and steps < 0 and self._wrapped(last, steps + self.around, now):
            steps += self.around
        return Advance(steps, steps - 1 if steps > 0 else max(shown - 1, 0))

    def continuous(
        self,
        last: CountedSpin | None,
        shown: int,
        now: Chunk,
        *,
        long_away: bool,
        counted_again: bool,
        may_wrap: bool = True,
    ) -> bool:
        """Whether the counter, or the ball that was running, proves that no unknown spin is missing.

        A lower counter proves nothing, unless it is the next one after a wrap, or no spin fits into the time since: it
        was reset, or wrapped around after an unknown number of spins. Neither does the same counter if the wheel
        `counted_again` up to it, nor bets that were open long ago.
        """
        if last is None or (long_away and not last.launched):
            return False
        steps = -1 if counted_again else shown - last.spin
        at_once = now.after_at_most(last.at, last.tick) < timedelta(seconds=self.shortest_spin_s)
        return steps >= 0 or (may_wrap and steps + self.around == 1) or at_once

    def long_ago(self, last: CountedSpin, now: Chunk) -> bool:
        """Whether a spin that began and was not seen to end is too old to be under way."""
        return last.begun and not last.ended and now.after_at_most(last.at, last.tick) > self.longest_spin

    def _wrapped(self, last: CountedSpin, steps: int, now: Chunk) -> bool:
        """Whether a lower counter wrapped around: it advanced by one spin, or by a few in the time that they take."""
        if steps == 1 or steps > FEW_SPINS or now.began_anew(last.tick):
            return steps == 1
        least, most = now.after_at_least(last.at, last.tick), now.after_at_most(last.at, last.tick)
        return steps * timedelta(seconds=self.shortest_spin_s) <= least and most <= steps * self.longest_spin


def after_long_absence(last: AnySpin, shown: int, *, bets_open: bool) -> tuple[AnySpin, bool]:
    """The last spin after an interruption that is too long for it to go on; and whether it was missed.

    Bets that are open under its counter belong to a new spin: nothing proves that one was missed.
    """
    if not last.launched and bets_open and shown == last.spin:
        return replace(last, begun=False), False
    return replace(last, ended=True), True


def outdated(tick: float | None, kept: float | None) -> bool:
    """Whether the stored tick `kept` is so old that a short interruption would count as long."""
    return tick is not None and (kept is None or abs(tick - kept) >= KEPT_AGAIN)
