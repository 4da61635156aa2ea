"""Which verdict a pool uses: each once, whatever clocks say and however many consumers tell it."""

from datetime import UTC, datetime, timedelta

import pytest

from daemon.jackpots.book import Book, Ended, Seen
from daemon.jackpots.ledger import begin, contribute, end_round, open_round
from protocols.contract.jackpots import PoolTerms
from protocols.contract.results import Award

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TERMS = PoolTerms(seed=0, visible="1")
RULES, STANDBY = "rules/A/t-1", "rules/B/t-1"


class Pool:
    """A book, and the positions of its streams."""

    def __init__(self) -> None:
        self.book: Book = begin("p", TERMS, NOON)[0]
        self.seq = {RULES: 0, STANDBY: 0}

    def seen(self, stream: str, number: str, at: timedelta) -> Seen:
        self.seq[stream] += 1
        return Seen(stream, self.seq[stream], f"edge-1:t-1:{number}", NOON + at)

    def opens(self, stream: str, number: str, at: timedelta) -> None:
        self.book, _ = open_round(self.book, self.seen(stream, number, at), "t-1", f"r{number}")

    def ends(self, stream: str, number: str, at: timedelta) -> None:
        """A round with one bet of 10."""
        ended = Ended(f"r{number}", "t-1", stakes=((1, 10),))
        self.book, _ = end_round(self.book, self.seen(stream, number, at), ended)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_a_clock_that_is_set_back_before_the_pool_began_loses_no_round() -> None:
    pool = Pool()
    pool.ends(RULES, "5/0", seconds(1))
    pool.ends(RULES, "9/0", seconds(-3600))
    pool.ends(RULES, "12/0", seconds(-3500))
    assert pool.book.amount == 30


def test_what_a_new_journal_tells_of_the_time_before_the_pool_is_not_counted() -> None:
    pool = Pool()
    pool.ends(RULES, "50/0", seconds(1))
    pool.ends(STANDBY, "5/0", seconds(-60))
    pool.ends(STANDBY, "50/0", seconds(1))
    pool.ends(STANDBY, "51/0", seconds(2))
    assert pool.book.amount == 20


def test_two_verdicts_of_one_event_are_both_used_when_their_consumer_ends_between_them() -> None:
    """The standby tells the second one and goes on; the first consumer comes back much later."""
    pool = Pool()
    pool.opens(RULES, "7/0", seconds(10))
    pool.opens(STANDBY, "7/0", seconds(10))
    pool.ends(STANDBY, "7/1", seconds(10))
    pool.ends(STANDBY, "9/0", seconds(20))
    pool.ends(RULES, "7/1", seconds(10))
    pool.ends(RULES, "9/0", seconds(20))
    assert pool.book.amount == 20


@pytest.mark.parametrize("back", [0.001, 60, 3600])
def test_a_standby_that_lags_behind_a_clock_that_is_set_back_tells_nothing_twice(back: float) -> None:
    pool = Pool()
    told = [(f"{number}/0", seconds(5000 + number - (back if number > 9 else 0))) for number in range(3, 12)]
    for number, at in told:
        pool.ends(RULES, number, at)
    for number, at in told:
        pool.ends(STANDBY, number, at)
    assert pool.book.amount == 90


def test_a_standby_takes_over_with_a_clock_that_is_set_back() -> None:
    pool = Pool()
    pool.ends(RULES, "3/0", seconds(5000))
    pool.ends(STANDBY, "3/0", seconds(5000))
    pool.ends(STANDBY, "6/0", seconds(4000))
    pool.ends(STANDBY, "9/0", seconds(6000))
    pool.ends(RULES, "6/0", seconds(4000))
    pool.ends(RULES, "9/0", seconds(6000))
    assert pool.book.amount == 30


def test_an_edge_with_a_new_journal_counts_from_one_and_its_rounds_count() -> None:
    """Old verdicts of the standby come late, with higher numbers."""
    pool = Pool()
    pool.ends(RULES, "500/0", seconds(10))
    pool.ends(RULES, "2/0", seconds(100))
    pool.ends(STANDBY, "499/0", seconds(9))
    pool.ends(STANDBY, "500/0", seconds(10))
    pool.ends(STANDBY, "2/0", seconds(100))
    pool.ends(STANDBY, "4/0", seconds(110))
    assert pool.book.amount == 30


def test_a_bet_on_a_sensor_counts_when_its_clock_is_set_back() -> None:
    book = begin("p", TERMS, NOON)[0]
    for seq, at in ((1, -60), (2, 1), (3, -3600)):
        seen = Seen("edge/A/t-1", seq, f"edge-1:t-1:{seq}", NOON + seconds(at))
        book, _ = contribute(book, seen, "t-1", 1, 10)
    assert book.amount == 20


def test_a_straight_flush_of_angola_takes_a_tenth_and_a_royal_flush_the_rest() -> None:
    """Decreto Executivo 261/22, art. 9(14)(a), (c): the smaller prize first."""
    tenth = Award("progressive", "straight_flush", "pool", "law", "1/10", (2, 5))
    rest = Award("progressive", "royal_flush", "pool", "law", "", (3,), "straight_flush")
    book = begin("p", PoolTerms(seed=1005, visible="1"), NOON)[0]
    seen = Seen(RULES, 1, "edge-1:t-1:5/0", NOON)
    book, _ = end_round(book, seen, Ended("r", "t-1", (tenth, rest)))
    assert [(one.amount, one.whole) for one in book.wins] == [(100, False), (905, True)]
    assert book.wins[0].shares == ((2, 50), (5, 50))
