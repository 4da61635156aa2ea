"""Tables of one pool that win at nearly the same time: verdicts in any order, and each rule of the pool."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from helpers import at_length
from hypothesis import given, settings, strategies as st

from daemon.jackpots.book import Book, Ended, Refused, Seen, Step
from daemon.jackpots.ledger import begin, contribute, end_round, report_win, simultaneous, unbalanced
from daemon.jackpots.orders import obey, transfer
from protocols.contract.jackpots import (
    Approve,
    Change,
    Confirm,
    Pay,
    PoolTerms,
    Price,
    Prize,
    Propose,
    Reject,
    Transfer,
)
from protocols.contract.results import Award

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TERMS = PoolTerms(seed=10_000, visible="1/2", hidden="1/10", prizes={"flush": Prize(700), "straight": Prize(900)})
POOL = Award("p", "royal", "pool", "law", "", (1,))
TENTH = Award("p", "straight", "larger_of_fixed_and_share", "law", "1/10", (2,))
FLUSH = Award("p", "flush", "fixed", "law", "", (3,))


class Linked:
    """A book of several tables, each with its own stream of verdicts."""

    def __init__(self, terms: PoolTerms = TERMS, bets: int = 0) -> None:
        self.book: Book
        self.number = 0
        self.kinds: list[str] = []
        self.take(begin("p", terms, NOON))
        if bets:
            self.take(contribute(self.book, self.seen("edge", 0), "t-0", 1, bets, rounds=False))

    def take(self, step: Step) -> None:
        self.book, entries = step
        self.kinds += [kind for kind, _ in entries]
        assert unbalanced(self.book) == ""

    def seen(self, stream: str, ms: int) -> Seen:
        self.number += 1
        return Seen(stream, self.number, f"e-{self.number}", NOON + timedelta(milliseconds=ms))

    def win(self, table: str, ms: int, *awards: Award, stakes: Sequence[int] = (), corrects: bool = False) -> None:
        bets = tuple((seat, amount) for seat, amount in enumerate(stakes, 1))
        name = f"{table}:1"
        ended = Ended(name, table, awards, "taken", bets, 0, name if corrects else "")
        self.take(end_round(self.book, self.seen(f"rules/A/{table}", ms), ended))

    def open_wins(self) -> dict[str, list[int]]:
        """By table the amounts of the wins that stand."""
        found: dict[str, list[int]] = {}
        for one in self.book.wins:
            if one.state != "reversed":
                found.setdefault(one.table, []).append(one.amount)
        return found

    def money(self) -> dict[str, Fraction]:
        """All accounts in minor units; wins by round and amount, since their numbers depend on how often they moved."""
        return {name: Fraction(value, self.book.unit) for name, value in {"pending": 0, **self.book.balances}.items()}


def test_the_event_that_happened_first_takes_the_pool_whichever_verdict_arrives_first() -> None:
    """20 000 are in the pool, and 2 000 in the reserve. The verdict of the earlier event, at t-1, arrives last."""
    bank = Linked(bets=20_000)
    bank.win("t-2", 11_000, POOL, stakes=(100,))
    assert bank.open_wins() == {"t-2": [20_050]}
    bank.win("t-1", 10_000, POOL, stakes=(60,))
    assert bank.open_wins() == {"t-1": [20_030], "t-2": [10_050]}
    assert [one.state for one in bank.book.wins] == ["reversed", "pending", "pending"]
    in_order = Linked(bets=20_000)
    in_order.win("t-1", 10_000, POOL, stakes=(60,))
    in_order.win("t-2", 11_000, POOL, stakes=(100,))
    assert bank.money() == in_order.money()
    assert "reversed" not in in_order.kinds


@pytest.mark.parametrize(("odd", "shares"), [("pool", [10_000, 10_001]), ("first", [10_000, 10_001])])
def test_rounds_that_win_the_whole_pool_share_it_equally(odd: Any, shares: list[int]) -> None:
    """20 001 are in the pool: the coin that is left over is in the part of the last."""
    terms = msgspec.structs.replace(TERMS, simultaneous="share_equally", odd=odd)
    for order in (("t-1", "t-2"), ("t-2", "t-1")):
        bank = Linked(terms, bets=20_002)
        for table in order:
            bank.win(table, 10_000 if table == "t-1" else 12_000, POOL)
        assert bank.open_wins() == {"t-1": [shares[0]], "t-2": [shares[1]]}
        assert bank.book.amount == 10_000


def test_a_share_of_the_pool_is_ordered_too() -> None:
    bank = Linked(bets=20_000)
    bank.win("t-2", 11_000, TENTH)
    bank.win("t-1", 10_000, FLUSH, TENTH)
    # 20 000 at t-1: 700 and a tenth; then a tenth of 17 300 at t-2
    assert bank.open_wins() == {"t-1": [700, 2_000], "t-2": [1_730]}


@pytest.mark.parametrize("apart", [2_000, 2_001])
def test_events_further_apart_than_the_window_stand_in_the_order_of_arrival(apart: int) -> None:
    bank = Linked(bets=20_000)
    bank.win("t-2", 10_000 + apart, POOL)
    bank.win("t-1", 10_000, POOL)
    first = "t-1" if apart == 2_000 else "t-2"
    assert bank.open_wins()[first] == [20_000]


def test_a_window_of_zero_is_the_order_of_arrival() -> None:
    bank = Linked(msgspec.structs.replace(TERMS, simultaneous_s=0), bets=20_000)
    bank.win("t-2", 10_001, POOL)
    bank.win("t-1", 10_000, POOL)
    assert bank.open_wins() == {"t-2": [20_000], "t-1": [10_000]}


@pytest.mark.parametrize("paid", [False, True])
def test_a_win_that_a_person_confirmed_stays(paid: bool) -> None:
    bank = Linked(bets=20_000)
    bank.win("t-2", 11_000, POOL)
    (win,) = bank.book.wins
    bank.take(obey(bank.book, Confirm("ana", win.id), "o-1", NOON))
    if paid:
        bank.take(obey(bank.book, Pay("rui", win.id), "o-2", NOON))
    bank.win("t-1", 10_000, POOL)
    assert bank.open_wins() == {"t-2": [20_000], "t-1": [10_000]}
    assert "reversed" not in bank.kinds


def test_a_corrected_win_that_takes_all_but_a_coin_gives_back_no_more_seed_than_is_there() -> None:
    """The flush took the seed of 500, so the pool began again; the straight takes 900 of both."""
    bank = Linked(msgspec.structs.replace(TERMS, seed=500))
    bank.win("t-1", 10_000, FLUSH)
    bank.win("t-1", 60_000, TENTH, corrects=True)
    assert bank.open_wins() == {"t-1": [900]}
    assert bank.money() == {"house": -1_400, "visible": 500, "pending": 900}
    bank.win("t-1", 90_000, corrects=True)
    assert bank.money() == {"house": -500, "visible": 500, "pending": 0}


def decided_by_two(bank: Linked, change: Change) -> None:
    bank.take(obey(bank.book, Propose("ana", change), "p-1", NOON))
    bank.take(obey(bank.book, Approve("rui", "p-1"), "a-1", NOON))


def test_a_win_that_two_people_rejected_does_not_come_again_with_an_earlier_event() -> None:
    bank = Linked(bets=20_000)
    bank.win("t-2", 11_000, POOL)
    decided_by_two(bank, Reject("t-2:1/1", "the deck was wrong"))
    bank.win("t-1", 10_000, POOL)
    assert bank.open_wins() == {"t-1": [20_000]}
    assert bank.book.amount == 10_000


def test_a_price_that_two_people_set_stays_when_an_earlier_event_arrives() -> None:
    bank = Linked(bets=20_000)
    bank.win("t-2", 11_000, Award("p", "four", "fixed", "law", "", (3,)))
    decided_by_two(bank, Price("t-2:1/1", 123, "as printed on the felt"))
    bank.win("t-1", 10_000, FLUSH)
    assert bank.open_wins() == {"t-2": [123], "t-1": [700]}
    assert not any(one.unpriced for one in bank.book.wins)


def test_an_earlier_event_takes_the_pool_as_it_was_also_after_a_transfer() -> None:
    """The seed behind the first win went to another pool; the earlier event still wins 20 000."""
    bank, other = Linked(bets=20_000), Linked()
    bank.win("t-2", 11_000, POOL)
    bank.take(obey(bank.book, Propose("ana", Transfer("q", "fire", "OSJ 3")), "p-1", NOON))
    given, taken = transfer(bank.book, other.book, Approve("rui", "p-1"), "a-1", NOON)
    bank.take(given)
    other.take(taken)
    bank.win("t-1", 10_000, POOL)
    assert bank.open_wins() == {"t-1": [20_000], "t-2": [10_000]}
    assert bank.book.amount == 10_000
    bank.win("t-1", 60_000, corrects=True)
    bank.win("t-2", 60_000, corrects=True)
    assert bank.money()["pending"] == 0


@pytest.mark.parametrize("rule", ["first_by_time", "share_equally"])
def test_a_corrected_result_without_the_win_leaves_the_pool_to_the_other_table(rule: Any) -> None:
    bank = Linked(msgspec.structs.replace(TERMS, simultaneous=rule), bets=20_000)
    bank.win("t-1", 10_000, POOL)
    bank.win("t-2", 11_000, POOL)
    assert bank.open_wins()["t-2"] == [10_000]
    bank.win("t-1", 60_000, corrects=True)  # a minute later
    assert bank.open_wins() == {"t-2": [20_000]}
    bank.win("t-1", 90_000, POOL, corrects=True)  # it had won, after all
    assert bank.open_wins() == {"t-1": [20_000 if rule == "first_by_time" else 10_000], "t-2": [10_000]}


def test_wins_that_devices_report_are_ordered_too() -> None:
    prizes = {"level_1": Prize(pays="pool")}
    bank = Linked(msgspec.structs.replace(TERMS, prizes=prizes), bets=20_000)
    bank.take(report_win(bank.book, bank.seen("edge/A/m-2", 11_000), "m-2", 1, 0, 0))
    bank.take(report_win(bank.book, bank.seen("edge/A/m-1", 10_000), "m-1", 1, 0, 0))
    bank.take(report_win(bank.book, bank.seen("edge/A/m-3", 10_500), "m-3", 2, 0, 77))
    assert bank.open_wins() == {"m-1": [20_000], "m-3": [77], "m-2": [9_923]}


def test_rounds_that_are_decided_again_are_named_in_the_order_of_their_events() -> None:
    bank = Linked()
    for table, ms in (("t-3", 13_000), ("t-1", 11_000), ("t-4", 30_000)):
        bank.win(table, ms, POOL)
    assert simultaneous(bank.book, "t-1:1") == ("t-1:1", "t-3:1")
    assert simultaneous(bank.book, "t-4:1") == ()


AWARDS = st.lists(
    st.sampled_from([FLUSH, TENTH, POOL, msgspec.structs.replace(POOL, among=(1, 2, 3))]),
    min_size=1,
    max_size=3,
)
ROUNDS = st.lists(
    st.tuples(st.integers(0, 2_000), AWARDS, st.lists(st.sampled_from([1, 7, 100]), max_size=2)),
    min_size=2,
    max_size=4,
)
RULES = st.sampled_from(
    [
        msgspec.structs.replace(TERMS, seed=seed, limit=limit, simultaneous=rule, odd=odd, reseed=reseed)
        for seed, limit in ((10_000, 0), (500, 0), (0, 0), (1_000, 1_020))
        for rule in ("first_by_time", "share_equally")
        for odd in ("pool", "first")
        for reseed in ("empty", "below_seed")
    ]
)


@settings(max_examples=at_length(150, 20_000), deadline=None)
@given(RULES, ROUNDS, st.data(), st.integers(0, 5_000))
def test_the_order_in_which_verdicts_arrive_changes_no_account(
    terms: PoolTerms, rounds: list[tuple[int, list[Award], list[int]]], data: st.DataObject, bets: int
) -> None:
    """The books end as if every verdict had arrived in the order of the events."""
    named = [(f"t-{number}", *one) for number, one in enumerate(rounds)]

    def fed(order: list[tuple[str, int, list[Award], list[int]]]) -> Linked:
        bank = Linked(terms, bets)
        for table, ms, awards, stakes in order:
            bank.win(table, ms, *awards, stakes=stakes)
        return bank

    in_order = fed(sorted(named, key=lambda one: (one[1], one[0])))
    shuffled = fed(data.draw(st.permutations(named)))
    assert shuffled.open_wins() == in_order.open_wins()
    assert shuffled.money() == in_order.money()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("end"), st.integers(0, 3), st.integers(0, 6_000), st.one_of(st.just([]), AWARDS)),
        st.tuples(st.just("confirm"), st.integers(0, 20), st.just(0), st.just([])),
        st.tuples(st.just("pay"), st.integers(0, 20), st.just(0), st.just([])),
    ),
    max_size=14,
)


@settings(max_examples=at_length(150, 20_000), deadline=None)
@given(RULES, STEPS, st.integers(0, 3_000))
def test_corrections_and_payments_among_near_wins_lose_no_coin(terms: PoolTerms, steps: list[Any], bets: int) -> None:
    """What a person confirmed keeps its amount; players put in the bets of the last results, and all accounts agree."""
    bank = Linked(terms, bets)
    laid: dict[str, int] = {}
    times: dict[str, int] = {}
    frozen: dict[str, int] = {}
    for number, (what, which, ms, awards) in enumerate(steps):
        wins = bank.book.wins
        if what == "end":
            table = f"t-{which}"
            corrects = table in times
            stakes = [10 * which, number + 1] if which else []
            bank.win(table, times.setdefault(table, ms), *awards, stakes=stakes, corrects=corrects)
            laid[table] = sum(stakes)
        elif wins:
            win = wins[which % len(wins)]
            try:
                order = Confirm("ana", win.id) if what == "confirm" else Pay("rui", win.id)
                bank.take(obey(bank.book, order, f"o-{number}", NOON))
                frozen[win.id] = win.amount
            except Refused:
                pass
        money = bank.money()
        assert money.get("players", 0) == -bets - sum(laid.values())
        amounts = {win.id: win.amount for win in bank.book.wins if win.state in ("confirmed", "paid", "contested")}
        assert all(frozen[name] == amount for name, amount in amounts.items())
        assert money.get("paid", 0) == sum(w.amount for w in bank.book.wins if w.state in ("paid", "contested"))
        assert money["pending"] == sum(w.amount for w in bank.book.wins if w.state in ("pending", "confirmed"))
        assert sum(money.values()) == 0
