"""A history with corrections ends as the history that was told right at once: all accounts, all wins."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import Struct

from daemon.jackpots.book import Book, Ended, Refused, Seen, Step
from daemon.jackpots.books import Books
from daemon.jackpots.ledger import begin, contribute, end_round, unbalanced
from daemon.jackpots.orders import obey
from daemon.journal.store import Journal
from protocols.contract.events import MOST
from protocols.contract.jackpots import Adjust, Approve, Confirm, Order, Pay, PoolTerms, Price, Prize, Propose, Reject
from protocols.contract.results import Award

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PRIZES = {"flush": Prize(700), "straight": Prize(400), "large": Prize(15_000)}
TERMS = PoolTerms(seed=10_000, visible="3/200", hidden="1/200", prizes=PRIZES)
POOL = Award("p", "six_same", "pool", "law", "", (1, 2, 3))
ALONE = Award("p", "six_same", "pool", "law", "", (2,))
TENTH = Award("p", "straight", "larger_of_fixed_and_share", "law", "1/10", (4,))
FLUSH = Award("p", "flush", "fixed", "law", "", (3,))
LARGE = Award("p", "large", "fixed", "law", "", (5,))
UNKNOWN = Award("p", "six_same", "pool", "law", "", ())
AWARDS = st.lists(st.sampled_from([POOL, ALONE, TENTH, FLUSH, LARGE]), max_size=3, unique=True).map(tuple)
STAKES = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([100, 1_000, 77])), max_size=3).map(tuple)


class Table(Struct):
    """A round of one table: how it was told first, and how it is right."""

    wrong: tuple[tuple[Award, ...], tuple[tuple[int, int], ...]] | None
    right: tuple[tuple[Award, ...], tuple[tuple[int, int], ...]]
    bets_since: tuple[int, ...] = ()


class Bank:
    """A book whose steps are checked to balance."""

    def __init__(self, terms: PoolTerms = TERMS) -> None:
        self.book: Book
        self.seq = 0
        self.kinds: list[str] = []
        self.take(begin("p", terms, NOON))

    def take(self, step: Step) -> None:
        self.book, entries = step
        self.kinds += [kind for kind, _ in entries]
        assert unbalanced(self.book) == ""

    def seen(self, stream: str) -> Seen:
        self.seq += 1
        return Seen(stream, self.seq, f"e:{self.seq}", NOON + timedelta(minutes=self.seq))

    def bet(self, amount: int) -> None:
        self.take(contribute(self.book, self.seen("edge/A/m-1"), "m-1", 1, amount, rounds=False))

    def end(self, round_: str, *awards: Award, stakes: tuple[tuple[int, int], ...] = (), corrects: str = "") -> None:
        table = round_.partition(":")[0]
        ended = Ended(round_, table, awards, "taken", stakes, 0, corrects)
        self.take(end_round(self.book, self.seen(f"rules/A/{table}"), ended))

    def obey(self, order: Order) -> str:
        self.seq += 1
        self.take(obey(self.book, order, f"o-{self.seq}", NOON))
        return f"o-{self.seq}"

    def decide(self, change: Any) -> None:
        self.obey(Approve("rui", self.obey(Propose("ana", change))))

    def money(self) -> dict[str, Fraction]:
        """All accounts in minor units."""
        return {name: Fraction(value, self.book.unit) for name, value in self.book.balances.items() if value}

    def wins(self) -> list[tuple[str, str, int, Any]]:
        return sorted(
            (one.round, one.award.combination, one.amount, one.shares)
            for one in self.book.wins
            if one.state != "reversed"
        )


def below_its_seed() -> Bank:
    """The pool of the issue: seed 1 000 000, of which 900 190 are left, and 100 in the reserve."""
    bank = Bank(PoolTerms(seed=1_000_000, visible="3/200", hidden="1/200", prizes={"flush": Prize(100_110)}))
    bank.end("t-0:1", FLUSH)
    bank.bet(20_000)
    assert bank.money() == {
        "visible": 900_190,
        "hidden": 100,
        "margin": 19_600,
        "players": -20_000,
        "house": -1_000_000,
        "pending": 100_110,
    }
    return bank


@pytest.mark.parametrize("how", ["corrected", "rejected", "void"])
def test_a_whole_pool_below_its_seed_that_is_taken_back_leaves_what_was_there(how: str) -> None:
    bank = below_its_seed()
    before = bank.money()
    bank.end("t-1:1", ALONE)
    match how:
        case "corrected":
            bank.end("t-1:1", corrects="t-1:1")
        case "rejected":
            bank.decide(Reject("t-1:1/1", "a card was not of the deck"))
        case _:
            ended = Ended("t-1:1", "t-1", (), "returned", (), 0, "t-1:1")
            bank.take(end_round(bank.book, bank.seen("rules/A/t-1"), ended))
    assert bank.money() == before


def test_a_correction_to_a_fixed_prize_leaves_the_reserve_that_the_reset_had_moved() -> None:
    wrong, right = below_its_seed(), below_its_seed()
    wrong.end("t-1:1", ALONE)
    wrong.end("t-1:1", FLUSH, corrects="t-1:1")
    right.end("t-1:1", FLUSH)
    assert wrong.money() == right.money()
    assert wrong.money()["hidden"] == 100


def test_a_win_that_is_told_later_is_of_the_pool_as_it_was_then() -> None:
    """The other table's win stands; what the pool does not have any more the house gives, and the pool begins again."""
    bank = Bank()
    bank.bet(200_000)
    bank.end("t-1:1")
    bank.end("t-2:1", ALONE)
    bank.bet(100_000)
    assert bank.money()["visible"] == 11_500
    bank.end("t-1:1", ALONE, corrects="t-1:1")
    assert [one[:3] for one in bank.wins()] == [("t-1:1", "six_same", 13_000), ("t-2:1", "six_same", 13_000)]
    assert bank.money()["visible"] == 10_000
    assert bank.money()["house"] == -10_000 - 9_000 - 1_500 - 9_500  # seeds of the pool, what t-1 lacks


def test_a_correction_that_changes_nothing_moves_nothing() -> None:
    bank = Bank()
    bank.end("t-1:1", ALONE, stakes=((2, 1_000),))
    bank.bet(5_000)
    before = bank.money()
    count = len(bank.kinds)
    bank.end("t-1:1", ALONE, stakes=((2, 1_000),), corrects="t-1:1")
    assert bank.money() == before
    assert bank.kinds[count:] == ["upheld"]


def test_a_win_that_a_person_confirmed_stays_when_a_bet_of_its_round_is_corrected() -> None:
    bank = Bank()
    bank.end("t-1:1", ALONE, stakes=((2, 1_000), (3, 1_000)))
    bank.obey(Confirm("ana", "t-1:1/1"))
    bank.obey(Pay("rui", "t-1:1/1"))
    bank.end("t-1:1", ALONE, stakes=((2, 1_000),), corrects="t-1:1")
    assert [one.state for one in bank.book.wins] == ["paid"]
    assert bank.money()["players"] == -1_000


def test_two_corrections_of_two_tables_each_see_what_the_other_changed() -> None:
    wrong, right = Bank(), Bank()
    wrong.end("t-1:1", ALONE)
    wrong.bet(100_000)
    wrong.end("t-2:1")
    wrong.bet(40_000)
    wrong.end("t-1:1", corrects="t-1:1")
    wrong.end("t-2:1", TENTH, POOL, corrects="t-2:1")
    right.end("t-1:1")
    right.bet(100_000)
    right.end("t-2:1", TENTH, POOL)
    right.bet(40_000)
    assert (wrong.money(), wrong.wins()) == (right.money(), right.wins())


def test_a_result_that_supersedes_twice_leaves_books_that_balance() -> None:
    """A round of that name was told before, and its win stands: both are gone with the result that supersedes them."""
    bank = Bank()
    bank.end("t-1:1", ALONE)
    bank.end("t-1:2", FLUSH)
    bank.end("t-1:2", FLUSH, corrects="t-1:1")
    assert [one[:3] for one in bank.wins()] == [("t-1:2", "flush", 700)]
    bank.end("t-1:1", ALONE)  # and that name is used again
    bank.end("t-1:2", ALONE, corrects="t-1:1")
    names = [one.id for one in bank.book.wins]
    assert len(set(names)) == len(names)
    assert [one[:3] for one in bank.wins()] == [("t-1:2", "six_same", 10_000)]
    assert bank.money() == {"visible": 10_000, "house": -20_000, "pending": 10_000}


def test_the_books_refuse_what_they_could_not_read_again(tmp_path: Path) -> None:
    """Each of three seats has a prize that alone is as large as a document can tell."""
    journal = Journal(tmp_path / "books.db")
    terms = PoolTerms(seed=0, visible="1", prizes={"flush": Prize(MOST)})
    books = Books(journal, {"p": terms}, NOON)
    each = msgspec.structs.replace(FLUSH, jackpot="progressive", among=())
    ended = Ended("t-1:1", "t-1", (each,), "taken", ())
    books.apply(end_round(books["p"], Seen("rules/A/t-1", 1, "e", NOON), ended), "e", NOON)
    before = books["p"]
    with pytest.raises(Refused, match="would break the books"):
        books.apply(obey(before, Confirm("ana", "t-1:1/1", (1, 2, 3)), "o-1", NOON), "o-1", NOON)
    assert books["p"] is before
    books.commit()
    journal.close()
    again = Journal(tmp_path / "books.db")
    assert Books(again, {"p": terms}, NOON)["p"] == before
    again.close()


def test_no_change_of_people_shows_more_than_readers_can_read() -> None:
    """A win of as much as can be shown gets a small price after the pool has grown to as much again."""
    bank = Bank(PoolTerms(seed=0, visible="1"))
    bank.bet(MOST)
    bank.end("t-1:1", msgspec.structs.replace(FLUSH, pays="larger_of_fixed_and_share", share="9/10", combination="x"))
    bank.bet(MOST)
    bank.obey(Approve("rui", bank.obey(Propose("ana", Price("t-1:1/1", MOST // 10 * 9 + 1, "as announced")))))
    assert bank.book.amount <= MOST
    bank.decide(Reject("t-1:1/1", "no win"))
    assert bank.book.amount == MOST


@pytest.mark.parametrize("seed", [0, 1])
def test_the_reserve_comes_out_although_odd_coins_are_as_much_as_the_seed(seed: int) -> None:
    """Three seats share 10 001: two odd coins stay, and the pool begins again with reserve and overflow."""
    bank = Bank(PoolTerms(seed=seed, visible="1/2", hidden="1/10", limit=10_001))
    bank.bet(20_004 - 2 * seed)
    overflow = bank.money()["overflow"]
    hidden = bank.money()["hidden"]
    bank.end("t-1:1", POOL)
    assert [one[2] for one in bank.wins()] == [9_999]
    assert bank.money()["visible"] == 2 + overflow + hidden
    assert bank.money().keys() & {"overflow", "hidden"} == set()


ROUND = st.tuples(AWARDS, STAKES)
HISTORY = st.lists(
    st.builds(Table, st.none() | ROUND, ROUND, st.lists(st.sampled_from([1, 999, 40_000]), max_size=3).map(tuple)),
    min_size=1,
    max_size=5,
)
ANY_TERMS = st.builds(
    lambda seed, hidden, room, reseed, odd: PoolTerms(
        seed, "3/200", hidden, room and seed + room, reseed, odd, PRIZES, simultaneous_s=0
    ),
    st.sampled_from([0, 500, 10_000]),
    st.sampled_from(["0", "1/200", "0.3"]),
    st.sampled_from([0, 0, 300]),
    st.sampled_from(["empty", "below_seed"]),
    st.sampled_from(["pool", "first"]),
)


@given(ANY_TERMS, HISTORY, st.integers(-5_000, 5_000))
def test_a_history_with_corrections_ends_as_the_one_told_right_at_once(
    terms: PoolTerms, history: list[Table], first: int
) -> None:
    """Each round is corrected before the next one wins, as the rules do; bets of other tables come in between.

    The amounts of an earlier round are frozen when the next one is decided.
    """
    wrong, right = Bank(terms), Bank(terms)
    for bank in (wrong, right):
        if terms.seed + first > 0 and (not terms.limit or terms.seed + first <= terms.limit):
            bank.decide(Adjust("visible", first or 1, "the pool begins below or above its seed"))
        bank.bet(30_000)
    for number, table in enumerate(history):
        name = f"t-{number % 2}:{number}"
        if table.wrong is not None:
            wrong.end(name, *table.wrong[0], stakes=table.wrong[1])
        else:
            wrong.end(name, *table.right[0], stakes=table.right[1])
        right.end(name, *table.right[0], stakes=table.right[1])
        for amount in table.bets_since:
            wrong.bet(amount)
            right.bet(amount)
        if table.wrong is not None:
            wrong.end(name, *table.right[0], stakes=table.right[1], corrects=name)
        assert wrong.wins() == right.wins()
        assert wrong.money() == right.money()


@given(ANY_TERMS, st.lists(ROUND, min_size=2, max_size=4), STAKES)
def test_many_corrections_of_one_round_end_as_the_last_one(
    terms: PoolTerms, told: list[Any], stakes: tuple[tuple[int, int], ...]
) -> None:
    wrong, right = Bank(terms), Bank(terms)
    for bank in (wrong, right):
        bank.bet(30_000)
        bank.end("t-1:0", stakes=stakes)
    for number, (awards, bets) in enumerate(told):
        wrong.end("t-1:1", *awards, stakes=bets, corrects="t-1:1" if number else "")
        wrong.bet(999)
    right.end("t-1:1", *told[-1][0], stakes=told[-1][1])
    for _ in told:
        right.bet(999)
    assert (wrong.money(), wrong.wins()) == (right.money(), right.wins())


def test_a_round_that_changes_its_name_twice_keeps_its_win() -> None:
    bank = Bank()
    bank.end("t-1:1", ALONE)
    bank.end("t-1:2", ALONE, corrects="t-1:1")
    bank.end("t-1:3", corrects="t-1:2")
    assert [one.state for one in bank.book.wins] == ["reversed"]
    assert bank.money() == {"visible": 10_000, "house": -10_000}
    assert msgspec.json.decode(msgspec.json.encode(bank.book), type=Book) == bank.book


class Late(Struct):
    """A round that is corrected later; behind it `corrected` of the rounds that wait for their correction are."""

    first: tuple[tuple[Award, ...], tuple[tuple[int, int], ...]]
    right: tuple[tuple[Award, ...], tuple[tuple[int, int], ...]]
    bets_since: tuple[int, ...]
    corrected: int


OVERLAPPING = st.lists(
    st.builds(
        Late, ROUND, ROUND, st.lists(st.sampled_from([1, 999, 40_000]), max_size=2).map(tuple), st.integers(0, 2)
    ),
    min_size=2,
    max_size=5,
)
SEEDED_TERMS = ANY_TERMS.filter(lambda terms: terms.seed > 0)


@given(SEEDED_TERMS, OVERLAPPING)
def test_corrections_that_wait_while_other_tables_end_rounds_end_as_told_right_at_once(
    terms: PoolTerms, history: list[Late]
) -> None:
    """They come in the order of the rounds. What is told first wins only where no correction waits: a win that took
    what an earlier round is found to have won stays as it is.
    """
    wrong, right = Bank(terms), Bank(terms)
    wrong.bet(30_000)
    right.bet(30_000)
    waiting: list[tuple[str, Late]] = []
    for number, table in enumerate(history):
        name = f"t-{number}:1"
        wrong.end(name, *(() if waiting else table.first[0]), stakes=table.first[1])
        right.end(name, *table.right[0], stakes=table.right[1])
        waiting.append((name, table))
        for amount in table.bets_since:
            wrong.bet(amount)
            right.bet(amount)
        last = number == len(history) - 1
        for late, one in waiting if last else waiting[: table.corrected]:
            wrong.end(late, *one.right[0], stakes=one.right[1], corrects=late)
        waiting = waiting[table.corrected :]
    assert wrong.wins() == right.wins()
    assert wrong.money() == right.money()


@given(
    SEEDED_TERMS, ROUND, ROUND, st.lists(st.tuples(ROUND, st.sampled_from([1, 999, 40_000])), min_size=1, max_size=3)
)
def test_wins_behind_a_late_correction_stay_as_announced_and_the_corrected_round_has_what_is_right(
    terms: PoolTerms, first: Any, right: Any, later: list[Any]
) -> None:
    """Only the amounts of these wins differ from the history told right at once, and the pool and the house by them."""
    bank, at_once = Bank(terms), Bank(terms)
    for one, (awards, stakes) in ((bank, first), (at_once, right)):
        one.bet(30_000)
        one.end("t-0:1", *awards, stakes=stakes)
        one.bet(777)
        for number, ((won, bets), since) in enumerate(later, 1):
            one.end(f"t-{number}:1", *won, stakes=bets)
            one.bet(since)
    announced = [win for win in bank.wins() if win[0] != "t-0:1"]
    bank.end("t-0:1", *right[0], stakes=right[1], corrects="t-0:1")
    assert bank.wins() == [*(win for win in at_once.wins() if win[0] == "t-0:1"), *announced]
    differs = sum(win[2] for win in bank.wins()) - sum(win[2] for win in at_once.wins())
    money, due = bank.money(), at_once.money()
    assert {name: money.get(name) for name in ("players", "margin")} == {
        name: due.get(name) for name in ("players", "margin")
    }
    assert money.get("pending", 0) - due.get("pending", 0) == differs
    pool_and_house = ("house", "visible", "hidden", "overflow")
    assert sum(money.get(name, 0) - due.get(name, 0) for name in pool_and_house) == -differs


def test_a_win_that_is_named_again_stays_where_another_table_has_won_the_new_pool() -> None:
    """The pool began again from a reserve of 9 000, which the second win took: the first one stays at 950."""
    bank = Bank(PoolTerms(seed=500, visible="3/200", hidden="3/10", simultaneous_s=0))
    bank.bet(30_000)
    bank.end("t-1:1", ALONE)
    bank.bet(777)
    bank.end("t-2:1", ALONE)
    before = bank.wins(), bank.money()
    assert [win[2] for win in bank.wins()] == [950, 9_011]
    bank.end("t-1:1", ALONE, corrects="t-1:1")
    assert (bank.wins(), bank.money()) == before
    bank.end("t-1:1", ALONE, stakes=((1, 100),), corrects="t-1:1")
    assert [win[2] for win in bank.wins()] == [951, 9_011]


def test_people_are_told_of_wins_that_were_decided_of_a_pool_that_is_corrected() -> None:
    bank = Bank()
    bank.bet(30_000)
    bank.end("t-1:1", ALONE)
    bank.end("t-2:1", ALONE)
    bank.end("t-1:1", ALONE, corrects="t-1:1")
    assert "noted" not in bank.kinds
    bank.end("t-1:1", corrects="t-1:1")
    assert bank.kinds[-1] == "noted"


def test_a_pool_at_its_limit_is_counted_again_for_the_rounds_behind_a_correction() -> None:
    """Seed 500, limit 800. The first win is taken back: 48 spill, of which 18 of the second table's bets, not 48."""
    terms = PoolTerms(seed=500, visible="3/200", limit=800, prizes=PRIZES, simultaneous_s=0)
    wrong, right = Bank(terms), Bank(terms)
    for bank in (wrong, right):
        bank.bet(30_000)
        bank.end("t-1:1", *(() if bank is right else (FLUSH,)))
        bank.bet(1_000)
        bank.end("t-2:1", stakes=((1, 1_200),)) if bank is wrong else bank.end("t-2:1", ALONE)
        bank.bet(1_000)
    wrong.end("t-1:1", corrects="t-1:1")
    wrong.end("t-2:1", ALONE, corrects="t-2:1")
    assert right.wins()[0][2] == 800
    assert (wrong.money(), wrong.wins()) == (right.money(), right.wins())
