"""Statistical tests of counts: pure arithmetic with the standard library.

There are two kinds of tests. A p-value (`chi_squared`, `rayleigh`) is valid for one look at one chart that was chosen
beforehand. Technicians look at many charts every day, and one in a hundred fair wheels is below 0.01 today, so alarms
do not use p-values. They use e-values: the present value of a bet of 1 against the null hypothesis. If the null
hypothesis holds, the chance that it EVER reaches 1/alpha, at any number of looks, is at most alpha (Ville's
inequality). Every function `log_e…` gives the natural logarithm of an e-value; averages of e-values are e-values, so
one test can look for several kinds of trouble at once.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Final, TypeVar

from msgspec import Struct

Count = TypeVar("Count", int, float)

_TINY: Final = 1e-300
_TERMS: Final = 10_000
_FLOOR: Final = -600.0  # the least logarithm of an e-value, whose exp is still a positive number

PRECISION: Final = 0.005  # relative error of an extrapolation

# The weights of the null hypothesis in the alternatives of `log_e`, as imagined observations per category. The first
# finds a gross fault within few rounds, the last a wheel that is a few per cent off.
WEIGHTS: Final = (1.0, 10.0, 100.0, 1000.0)
# How much more often than fair a whole sector may come.
TILTS: Final = (1.1, 1.2, 1.4, 1.8)
# How many times the accepted rate a worn reader may have.
WORSE: Final = (1.5, 2.0, 4.0, 8.0, 16.0)


class Chi(Struct, frozen=True):
    """Pearson's statistic, its degrees of freedom and its p-value. `rough`: fewer than five expected somewhere."""

    statistic: float
    freedom: int
    p: float
    rough: bool


class Rayleigh(Struct, frozen=True):
    """The first harmonic of counts around a circle.

    `length` is 0 (even) to 1 (all in one place), `place` its direction, in places from the first, `p` the p-value of a
    circle without a preferred direction.
    """

    length: float
    place: float
    p: float


class Sector(Struct, frozen=True):
    """`width` neighbours on a circle from place `first` on: `count` fell there, `expected` were due.

    `p` is an upper bound of the chance that any of the sectors of this width would be so full.
    """

    first: int
    width: int
    count: int
    expected: float
    p: float


def gamma_q(a: float, x: float) -> float:
    """The regularised upper incomplete gamma function Q(a, x), for a > 0 and x >= 0.

    The series of P below a + 1, the continued fraction of Q above (Abramowitz and Stegun 6.5.29, 6.5.31).
    """
    if a <= 0 or x < 0:
        raise ValueError(f"Q({a}, {x}) is not defined")
    if x == 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for n in range(1, _TERMS):
            term *= x / (a + n)
            total += term
            if term < total * 1e-16:
                break
        return max(0.0, 1 - front * total)
    b = x + 1 - a
    c, d = 1 / _TINY, 1 / b
    fraction = d
    for n in range(1, _TERMS):
        step = -n * (n - a)
        b += 2
        d = 1 / (step * d + b or _TINY)
        c = b + step / c or _TINY
        fraction *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return front * fraction


def chi_squared(counts: Sequence[int], null: Sequence[float], spread: float = 1.0) -> Chi:
    """Pearson's test of `counts` against the probabilities `null`.

    `spread` is the variance of the counts divided by that of independent draws: below 1 for cards drawn without return.
    """
    total = sum(counts)
    freedom = len(counts) - 1
    if total == 0 or freedom < 1:
        return Chi(0.0, max(freedom, 0), 1.0, rough=True)
    due = [total * p for p in null]
    statistic = sum((count - one) ** 2 / one for count, one in zip(counts, due, strict=True)) / spread
    return Chi(statistic, freedom, gamma_q(freedom / 2, statistic / 2), rough=min(due) < 5)


def without_return(drawn: int, cards: int) -> float:
    """The variance of counts for `drawn` of `cards` without return, divided by that of independent draws."""
    return max(0.0, (cards - drawn) / (cards - 1)) if cards > 1 else 0.0


def binomial_tail(hits: int, trials: int, p: float) -> float:
    """The chance of at least `hits` in `trials`, exactly, summed from the rarer end."""
    if hits <= 0:
        return 1.0
    if hits > trials or p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    mean = trials * p
    upper = hits > mean
    term = math.exp(
        math.lgamma(trials + 1)
        - math.lgamma(hits + 1)
        - math.lgamma(trials - hits + 1)
        + hits * math.log(p)
        + (trials - hits) * math.log1p(-p)
    )
    total, k, odds = 0.0, hits, p / (1 - p)
    if upper:
        while k <= trials and term > total * 1e-17:
            total += term
            term *= (trials - k) / (k + 1) * odds
            k += 1
        return min(1.0, total)
    while k > 0 and (term > total * 1e-17 or total == 0):
        term *= k / (trials - k + 1) / odds
        k -= 1
        total += term
    return max(0.0, 1 - total)


def wilson(hits: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """The rates between which the true one lies, with 95 % unless `z` says otherwise (Wilson's interval)."""
    if trials == 0:
        return 0.0, 1.0
    rate, square = hits / trials, z * z / trials
    middle = (rate + square / 2) / (1 + square)
    half = z * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials)) / (1 + square)
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == trials else min(1.0, middle + half)
    return low, high


# ---- e-values


def log_e(counts: Sequence[float], null: Sequence[float]) -> float:
    """The bet against categorical draws with the probabilities `null`, by mixtures of Dirichlet alternatives around
    it.
    """
    return log_mean([log_dirichlet(counts, null, weight) for weight in WEIGHTS])


def log_dirichlet(counts: Sequence[float], null: Sequence[float], weight: float) -> float:
    """The logarithm of the likelihood under a Dirichlet mixture, divided by that under `null`.

    Its parameters are `null` times `weight` times the number of categories.
    """
    whole = weight * len(null)
    total = math.lgamma(whole) - math.lgamma(whole + sum(counts))
    for count, p in zip(counts, null, strict=True):
        if count:
            total += math.lgamma(whole * p + count) - math.lgamma(whole * p) - count * math.log(p)
    return total


def log_e_sector(counts: Sequence[float], width: int) -> float:
    """The bet against an even circle: some `width` neighbours have more than their part, by one of TILTS."""
    size, total = len(counts), sum(counts)
    share = width / size
    bets = []
    for tilt in TILTS:
        inside, outside = math.log(tilt), math.log((1 - share * tilt) / (1 - share))
        bets += [inside * count + outside * (total - count) for count in _windows(counts, width)]
    return log_mean(bets)


def log_rate(hits: int, trials: int, accepted: float) -> list[float]:
    """The bets against a rate of `accepted` or less, that it is higher by each factor of WORSE."""
    bets = []
    for times in WORSE:
        rate = min(accepted * times, 0.5 + accepted / 2)
        bets.append(hits * math.log(rate / accepted) + (trials - hits) * math.log((1 - rate) / (1 - accepted)))
    return bets


def log_deck(counts: Sequence[int], decks: int) -> list[float]:
    """The bets against complete decks drawn without return: for each of the 52 cards that one is missing, then that one
    is too many.

    The same bet on several shoes, or on several rounds from a shuffler that takes the cards back, may be added up.
    Raises ValueError for counts that complete decks cannot give.
    """
    drawn, cards = sum(counts), 52 * decks
    if len(counts) != 52 or max(counts) > decks:
        raise ValueError(f"{decks} decks cannot give these counts")
    left = math.log(1 - drawn / cards) if drawn < cards else 0.0  # with all cards drawn none is missing
    lacks = [(math.log(1 - count / decks) if count < decks else _FLOOR) - left for count in counts]
    more = math.log1p(-drawn / (cards + 1))
    return lacks + [more - math.log1p(-count / (decks + 1)) for count in counts]


def log_e_starts(periods: Sequence[Sequence[int]], null: Sequence[float], width: int = 0) -> float:
    """The bet against `null`, where the trouble may have begun in any of the `periods`, oldest first.

    With `width`, half of the bet is on sectors of that many neighbours.
    """
    running = [0] * len(null)
    found = []
    for period in reversed(periods):
        running = [a + b for a, b in zip(running, period, strict=True)]
        found.append(_log_e_with_sectors(running, null, width))
    return _any_start(found[::-1])


def log_e_even(counts: Sequence[float], width: int = 0) -> float:
    """The bet against equally likely categories, with the trouble from the beginning; `width` as in `log_e_starts`."""
    return _log_e_with_sectors(counts, [1 / len(counts)] * len(counts), width)


def _log_e_with_sectors(counts: Sequence[float], null: Sequence[float], width: int) -> float:
    one = log_e(counts, null)
    return log_mean([one, log_e_sector(counts, width)]) if width else one


def log_e_bets(periods: Sequence[Sequence[float]]) -> float:
    """`log_e_starts` for bets that add up over the periods, such as those of `log_rate` and `log_deck`."""
    found = []
    running = [0.0] * len(periods[0]) if periods else []
    for period in reversed(periods):
        running = [max(a + b, _FLOOR) for a, b in zip(running, period, strict=True)]
        found.append(log_mean(running))
    return _any_start(found[::-1])


def _any_start(logs: Sequence[float]) -> float:
    """The bet on all beginnings, `logs` those from each period on.

    It is divided beforehand: period n gets 1/(n (n + 1)) of it, and the parts of future periods are not at stake.
    """
    bets = [one - math.log(n * (n + 1)) for n, one in enumerate(logs, 1)]
    return log_sum([*bets, -math.log(len(logs) + 1)])


def log_threshold(alpha: float, number: int) -> float:
    """The threshold, fixed for ever, of the test that a site begins as its `number`-th.

    Alpha is divided beforehand as in `_any_start`, by n (n + 1): for any number of tests the chance of a false alarm is
    at most `alpha` in all.
    """
    return math.log(number * (number + 1) / alpha)


def repeats(log_e: Callable[[float], float], threshold: float, most: float) -> float | None:
    """The factor by which all counts must grow, in the same proportions, until the bet on them reaches `threshold`.

    `log_e` gives the bet for a factor. 1 if it is reached already; None if it is not reached at `most`, rounded up to a
    power of 2.
    """
    low, high = 1.0, 1.0
    while log_e(high) < threshold:
        low, high = high, high * 2
        if low >= most:
            return None
    while high - low > high * PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if log_e(middle) >= threshold else (middle, high)
    return high


def log_sum(logs: Iterable[float]) -> float:
    """The logarithm of the sum."""
    values = list(logs)
    most = max(values)
    return most + math.log(sum(math.exp(one - most) for one in values))


def log_mean(logs: Iterable[float]) -> float:
    """The logarithm of the mean."""
    values = list(logs)
    return log_sum(values) - math.log(len(values))


# ---- the circle of a wheel


def rayleigh(counts: Sequence[int]) -> Rayleigh:
    """Whether counts around a circle prefer a direction. The p-value after Wilkie (1983)."""
    size, total = len(counts), sum(counts)
    if not total:
        return Rayleigh(0.0, 0.0, 1.0)
    turn = 2 * math.pi / size
    x = sum(count * math.cos(turn * place) for place, count in enumerate(counts))
    y = sum(count * math.sin(turn * place) for place, count in enumerate(counts))
    far = min(math.hypot(x, y), float(total))
    p = math.exp(math.sqrt(1 + 4 * total + 4 * (total * total - far * far)) - (1 + 2 * total))
    return Rayleigh(far / total, math.atan2(y, x) / turn % size, min(1.0, p))


def fullest_sector(counts: Sequence[int], width: int) -> Sector:
    """The `width` neighbours with the highest count; the first of equal ones."""
    windows = _windows(counts, width)
    first = max(range(len(counts)), key=lambda place: (windows[place], -place))
    total, share = sum(counts), width / len(counts)
    p = min(1.0, len(counts) * binomial_tail(windows[first], total, share))
    return Sector(first, width, windows[first], total * share, p)


def _windows(counts: Sequence[Count], width: int) -> list[Count]:
    """The sum of `width` neighbours from each place on."""
    size = len(counts)
    found = [sum(counts[1:width], counts[0])]
    for place in range(1, size):
        found.append(found[-1] - counts[place - 1] + counts[(place + width - 1) % size])
    return found


# ---- times

# Buckets of 4 %: a percentile out of them is at most 2 % off. Below a twentieth of a second all is one bucket.
_GROWTH: Final = math.log(1.04)
_LEAST: Final = 0.05


def bucket(seconds: float) -> int:
    """The number of the histogram bucket of a duration."""
    return max(0, math.ceil(math.log(max(seconds, _LEAST) / _LEAST) / _GROWTH - 1e-9))


def duration(number: int) -> float:
    """The middle of a bucket, seconds."""
    return _LEAST if number <= 0 else _LEAST * math.exp(_GROWTH * (number - 0.5))


def percentiles(histogram: Mapping[int, int], wanted: Sequence[float]) -> list[float]:
    """Seconds below which the `wanted` parts (0 to 1) of the durations lie; nearest rank. An empty histogram gives an
    empty list.
    """
    total = sum(histogram.values())
    if not total:
        return []
    ranks = sorted(histogram.items())
    found = []
    for part in wanted:
        rank, seen = max(1, math.ceil(part * total)), 0
        for number, count in ranks:
            seen += count
            if seen >= rank:
                found.append(duration(number))
                break
    return found


def weekly(days: Mapping[str, list[Any]]) -> list[list[Any]]:
    """Counts by days as counts by weeks from the first day, without empty weeks."""
    weeks: dict[int, list[Any]] = {}
    first = min(map(date.fromisoformat, days), default=date.min)
    for day in sorted(days):
        week = (date.fromisoformat(day) - first).days // 7
        before = weeks.get(week)
        weeks[week] = days[day] if before is None else [a + b for a, b in zip(before, days[day], strict=True)]
    return list(weeks.values())


def farthest(counts: Mapping[str, int], keys: Sequence[str]) -> tuple[str, int]:
    """The key whose count is the farthest from the mean, and its count."""
    mean = sum(counts.values()) / len(keys)
    key = max(keys, key=lambda one: abs(counts.get(one, 0) - mean))
    return key, counts.get(key, 0)
