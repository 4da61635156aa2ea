"""What counts say: against published values, against exact enumeration, and over many seeds."""

import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from helpers import at_length
from hypothesis import given, strategies as st

from daemon.console.fairness import statistics as stats

WHEEL = [1 / 37] * 37
ALPHA = 0.05


# ---- p-values


@pytest.mark.parametrize(
    ("freedom", "critical", "p"),
    [  # the tables of critical values in any textbook
        (1, 3.841, 0.05),
        (1, 6.635, 0.01),
        (2, 5.991, 0.05),
        (5, 11.070, 0.05),
        (5, 15.086, 0.01),
        (10, 29.588, 0.001),
        (30, 43.773, 0.05),
        (36, 50.998, 0.05),
        (36, 58.619, 0.01),
        (51, 68.669, 0.05),
        (100, 124.342, 0.05),
        (100, 77.929, 0.95),
        (5, 1.145, 0.95),
    ],
)
def test_critical_values_of_chi_squared(freedom: int, critical: float, p: float) -> None:
    # The tables have three decimals of the critical value.
    below, above = (stats.gamma_q(freedom / 2, (critical + off) / 2) for off in (-0.0006, 0.0006))
    assert above < p < below


@given(st.integers(1, 300), st.floats(0.001, 600))
def test_the_incomplete_gamma_of_a_whole_number_is_a_poisson_sum(a: int, x: float) -> None:
    poisson = math.fsum(math.exp(k * math.log(x) - x - math.lgamma(k + 1)) for k in range(a))
    assert stats.gamma_q(a, x) == pytest.approx(poisson, rel=1e-9, abs=1e-12)


def test_chi_squared_of_dice_by_hand() -> None:
    found = stats.chi_squared([5, 8, 9, 8, 10, 20], [1 / 6] * 6)
    assert found.statistic == pytest.approx(13.4)  # (25 + 4 + 1 + 4 + 0 + 100) / 10
    assert found.freedom == 5
    assert found.p == pytest.approx(0.0199, abs=0.0001)
    assert not found.rough


def test_few_observations_are_said_to_be_rough_and_none_say_nothing() -> None:
    assert stats.chi_squared([1] * 37, WHEEL).rough
    assert stats.chi_squared([0] * 37, WHEEL) == stats.Chi(0.0, 36, 1.0, rough=True)


def test_a_whole_shoe_without_return_is_as_even_as_can_be() -> None:
    rng = random.Random(1)
    spread = stats.without_return(380, 416)
    assert spread == pytest.approx(36 / 415)
    shoe = [card for card in range(52) for _ in range(8)]
    found = []
    for _ in range(400):
        counts = Counter(rng.sample(shoe, 380))
        found.append(stats.chi_squared([counts[card] for card in range(52)], [1 / 52] * 52, spread).statistic)
    # As independent draws would have: a mean of 51 with a standard error of sqrt(2 * 51 / 400).
    assert sum(found) / len(found) == pytest.approx(51, abs=2)


@given(st.integers(1, 60), st.data())
def test_the_binomial_tail_is_the_exact_sum(trials: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, trials + 1))
    p = data.draw(st.floats(0.001, 0.999))
    exact = math.fsum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(hits, trials + 1))
    assert stats.binomial_tail(hits, trials, p) == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_wilson_by_a_published_example() -> None:
    # Newcombe 1998, table I, method 3: 81 of 263, and 0 of 20.
    assert stats.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=0.0001)
    assert stats.wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=0.0001)
    assert stats.wilson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 500), st.integers(0, 500))
def test_an_interval_holds_what_was_seen(hits: int, misses: int) -> None:
    low, high = stats.wilson(hits, hits + misses)
    if hits + misses:
        assert 0 <= low <= hits / (hits + misses) <= high <= 1


# ---- the circle


@pytest.mark.parametrize(("spins", "z", "p"), [(10, 2.919, 0.05), (20, 2.959, 0.05)])
def test_critical_values_of_rayleigh(spins: int, z: float, p: float) -> None:
    """Zar, Biostatistical Analysis, table B.34."""
    size, far = 10_000, math.sqrt(z * spins)
    # Half of the spins the same angle to either side of place 0, so that their sum has the wanted length.
    aside = round(math.acos(far / spins) / (2 * math.pi) * size)
    counts = [0] * size
    counts[aside] = counts[-aside] = spins // 2
    found = stats.rayleigh(counts)
    assert found.length == pytest.approx(far / spins, abs=0.001)
    assert found.p == pytest.approx(p, abs=0.001)


def test_a_turned_wheel_has_the_same_harmonic_elsewhere() -> None:
    rng = random.Random(2)
    counts = [rng.randrange(50) for _ in range(37)]
    still, turned = stats.rayleigh(counts), stats.rayleigh(counts[-5:] + counts[:-5])
    assert turned.length == pytest.approx(still.length)
    assert turned.p == pytest.approx(still.p)
    assert (turned.place - still.place) % 37 == pytest.approx(5)


def test_rayleigh_of_fair_wheels_is_below_a_level_as_often_as_it_says() -> None:
    rng = random.Random(3)
    found = []
    for _ in range(1000):
        counts = Counter(rng.choices(range(37), k=370))
        found.append(stats.rayleigh([counts[place] for place in range(37)]).p)
    assert 0.03 < sum(p < 0.05 for p in found) / 1000 < 0.07


def test_the_fullest_sector_goes_over_the_seam() -> None:
    counts = [10] * 37
    for place in (34, 35, 36, 0, 1):
        counts[place] = 30
    found = stats.fullest_sector(counts, 5)
    assert (found.first, found.count) == (34, 150)
    assert found.expected == pytest.approx(sum(counts) * 5 / 37)
    assert found.p < 1e-6
    assert stats.fullest_sector([10] * 37, 9).p == 1.0


# ---- e-values: exactly martingales under the null

counts_of = st.lists(st.integers(0, 300), min_size=4, max_size=4)
EVEN = [0.25] * 4
UNEVEN = [0.1, 0.2, 0.3, 0.4]


def _expected(counts: list[int], null: list[float], log_e: Callable[[list[int]], float]) -> float:
    """What the e-value is expected to be multiplied with by one more draw under the null."""
    now = log_e(counts)
    after = [[count + (place == drawn) for place, count in enumerate(counts)] for drawn in range(len(counts))]
    return math.fsum(p * math.exp(log_e(then) - now) for p, then in zip(null, after, strict=True))


@given(counts_of)
def test_the_dirichlet_bet_is_fair_under_the_null(counts: list[int]) -> None:
    assert _expected(counts, UNEVEN, lambda seen: stats.log_e(seen, UNEVEN)) == pytest.approx(1)


@given(counts_of)
def test_the_sector_bet_is_fair_under_the_null(counts: list[int]) -> None:
    assert _expected(counts, EVEN, lambda seen: stats.log_e_sector(seen, 1)) == pytest.approx(1)


@given(counts_of, counts_of)
def test_the_bet_on_a_beginning_is_fair_under_the_null(before: list[int], counts: list[int]) -> None:
    fair = _expected(counts, EVEN, lambda seen: stats.log_e_starts([before, seen], EVEN, 1))
    assert fair == pytest.approx(1)


@given(counts_of)
def test_a_new_period_by_itself_changes_nothing(counts: list[int]) -> None:
    begun = stats.log_e_starts([counts, [0] * 4], EVEN, 1)
    assert begun == pytest.approx(stats.log_e_starts([counts], EVEN, 1))


@given(st.integers(0, 50), st.integers(0, 5000), st.floats(0.001, 0.1))
def test_the_bets_on_a_rate_are_fair_at_the_accepted_rate_and_lose_below(
    hits: int, misses: int, accepted: float
) -> None:
    def log_e(hits: int, misses: int) -> float:
        return stats.log_e_bets([stats.log_rate(hits, hits + misses, accepted)])

    now = log_e(hits, misses)
    hit, miss = math.exp(log_e(hits + 1, misses) - now), math.exp(log_e(hits, misses + 1) - now)
    assert accepted * hit + (1 - accepted) * miss == pytest.approx(1)
    assert accepted / 2 * hit + (1 - accepted / 2) * miss <= 1 + 1e-12


@given(st.lists(st.integers(0, 2), min_size=52, max_size=52))
def test_the_bets_on_a_deck_are_fair_while_whole_decks_are_dealt(counts: list[int]) -> None:
    drawn = sum(counts)
    if drawn == 104:
        return
    now = stats.log_deck(counts, 2)
    expected = [0.0] * 104
    for card, count in enumerate(counts):
        if count < 2:
            then = stats.log_deck([n + (one == card) for one, n in enumerate(counts)], 2)
            for bet in range(104):
                expected[bet] += (2 - count) / (104 - drawn) * math.exp(then[bet] - now[bet])
    for card, count in enumerate(counts):
        # A card that is out twice cannot lack any more: that bet is lost. The other way round, a third one could only
        # show itself by what whole decks cannot give.
        assert expected[card] == pytest.approx(1) or count == 2
        assert expected[52 + card] == pytest.approx(1) or (count == 2 and expected[52 + card] < 1)


def test_a_whole_shoe_proves_that_none_lacks() -> None:
    assert all(lacks < -100 for lacks in stats.log_deck([8] * 52, 8)[:52])


def test_decks_cannot_give_a_ninth_card() -> None:
    with pytest.raises(ValueError, match="8 decks cannot"):
        stats.log_deck([9] + [0] * 51, 8)


def test_the_parts_of_all_charts_that_may_ever_begin_add_up_to_alpha() -> None:
    parts = [math.exp(-stats.log_threshold(ALPHA, number)) for number in range(1, 10_001)]
    assert 0.999 * ALPHA < math.fsum(parts) <= ALPHA
    assert all(a > b for a, b in pairwise(parts))


# ---- e-values: over many seeds


class Watched:
    """The Dirichlet bet and Pearson's statistic, spin by spin. `most` is the highest that the bet ever was."""

    def __init__(self) -> None:
        self.counts = [0] * 37
        self.squares = 0
        self.total = 0
        self.bets = [1.0] * len(stats.WEIGHTS)
        self.most = 0.0
        self.lowest_p_reached = 0.0

    def spin(self, pocket: int) -> None:
        count = self.counts[pocket]
        for place, weight in enumerate(stats.WEIGHTS):
            self.bets[place] *= 37 * (weight + count) / (37 * weight + self.total)
        self.counts[pocket] = count + 1
        self.squares += 2 * count + 1
        self.total += 1
        self.most = max(self.most, sum(self.bets) / len(self.bets))
        if self.total >= 185:  # five expected in each pocket: nobody would look before
            self.lowest_p_reached = max(self.lowest_p_reached, self.squares * 37 / self.total - self.total)


def _watch(seed: int, spins: int, weights: list[float]) -> Watched:
    watched = Watched()
    for pocket in random.Random(seed).choices(range(37), weights, k=spins):
        watched.spin(pocket)
    return watched


def test_looking_after_each_of_20_000_spins_a_fair_wheel_alarms_no_more_often_than_it_may() -> None:
    seeds = at_length(25, 100)
    runs = [_watch(seed, 20_000, [1.0] * 37) for seed in range(seeds)]
    for run in runs[:5]:  # the product over the spins is the closed form of the counts
        assert math.log(sum(run.bets) / len(run.bets)) == pytest.approx(stats.log_e(run.counts, WHEEL))
    alarmed = sum(run.most >= 1 / ALPHA for run in runs)
    naive = sum(run.lowest_p_reached >= 50.998 for run in runs)  # p below 0.05 at any look
    assert alarmed <= ALPHA * seeds
    assert naive >= 5 * ALPHA * seeds, "the repeated chi-squared would do as well: why this test?"


def _spins_until(seed: int, weights: list[float], most: int) -> int:
    """When a look after every 50 spins finds it, as the fiftieth chart with alpha 0.01."""
    rng, counts, spins = random.Random(seed), [0] * 37, 0
    while spins < most:
        for pocket in rng.choices(range(37), weights, k=50):
            counts[pocket] += 1
        spins += 50
        if stats.log_e_starts([counts], WHEEL, 9) >= stats.log_threshold(0.01, 50):
            return spins
    return most


@pytest.mark.parametrize(
    ("name", "weights", "typical"),
    [
        ("one pocket twice as often", [1.0] * 17 + [37 / 18.5 * 36 / 35] + [1.0] * 19, 3_500),
        ("nine neighbours a fifth more", [1.2] * 9 + [26.2 / 28] * 28, 3_500),
        ("nine neighbours half as much again", [1.5] * 9 + [23.5 / 28] * 28, 800),
    ],
)
def test_a_biased_wheel_is_found(name: str, weights: list[float], typical: int) -> None:
    found = sorted(_spins_until(seed, weights, 4 * typical) for seed in range(9))
    assert found[4] <= typical, f"{name}: {found}"
    assert found[-1] < 4 * typical


def test_a_bias_that_begins_after_a_long_fair_life_is_found() -> None:
    rng = random.Random(5)
    worn = [1.5] * 9 + [23.5 / 28] * 28
    periods = []
    for period in range(40):  # weeks of 3 000 spins; worn in the last two
        counts = Counter(rng.choices(range(37), worn if period >= 38 else None, k=3000))
        periods.append([counts[place] for place in range(37)])
    alarm = stats.log_threshold(0.01, 50)
    assert stats.log_e_starts(periods[:38], WHEEL, 9) < 0
    assert stats.log_e_starts(periods, WHEEL, 9) >= alarm
    whole = [sum(column) for column in zip(*periods, strict=True)]
    assert stats.log_e(whole, WHEEL) < alarm, "a test over the whole life would do: why the beginnings?"


def test_a_card_that_lacks_is_found_within_fifteen_shoes() -> None:
    rng = random.Random(6)
    shoe = [card for card in range(52) for _ in range(8 - (card == 30))]
    alarm = stats.log_threshold(0.01, 50)
    shoes: list[list[float]] = []
    while len(shoes) < 30 and stats.log_e_bets(shoes) < alarm:
        counts = Counter(rng.sample(shoe, 400))
        shoes.append(stats.log_deck([counts[one] for one in range(52)], 8))
    sums = [sum(bets) for bets in zip(*shoes, strict=True)]
    assert sums.index(max(sums)) == 30, "a bet on another card won"
    assert len(shoes) <= 15


# ---- times


@given(st.floats(0.05, 86_400))
def test_a_bucket_is_at_most_two_per_cent_off(seconds: float) -> None:
    assert stats.duration(stats.bucket(seconds)) == pytest.approx(seconds, rel=0.021)


@given(st.lists(st.floats(0.1, 3600), min_size=1, max_size=200), st.floats(0, 1))
def test_percentiles_out_of_buckets_are_those_of_the_durations(times: list[float], part: float) -> None:
    found = stats.percentiles(Counter(map(stats.bucket, times)), [part])
    assert found == [pytest.approx(sorted(times)[max(1, math.ceil(part * len(times))) - 1], rel=0.021)]


def test_percentiles_of_nothing_are_none() -> None:
    assert stats.percentiles({}, [0.5]) == []


@given(st.lists(st.floats(0.0, 90_000), min_size=2, max_size=50))
def test_a_longer_time_is_in_no_lower_bucket(times: list[float]) -> None:
    buckets = [stats.bucket(one) for one in sorted(times)]
    assert all(a <= b for a, b in pairwise(buckets))
