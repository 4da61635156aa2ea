"""The campaign's linked jackpots: sound books pass, and planted defects are found by the oracle."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import msgspec
import pytest
import structlog
from helpers import at_length

from daemon import logs
from daemon.config.model import Jackpot
from daemon.jackpots import ledger, process, table_payments
from daemon.jackpots.book import Book, Ended, Seen, Step
from daemon.jackpots.ledger import begin, end_round
from daemon.jackpots.prizes import decide
from daemon.jackpots.signs import Signs
from protocols.contract.jackpots import PoolTerms, PoolWin, Prize
from protocols.contract.results import Award, Result
from simulators.lab.campaign import campaign as campaign_module
from simulators.lab.campaign.campaign import Life, live
from simulators.lab.campaign.disk import Disk
from simulators.lab.campaign.loop import Process
from simulators.lab.pool_oracle import CHIP, PoolAccount, _in_turn, _Oracle
from simulators.lab.pools import LINKED


@pytest.fixture(autouse=True)
def linked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every life has two linked tables."""
    logs.set_up("critical")
    monkeypatch.setattr(campaign_module, "POOLS", 1.0)
    monkeypatch.setattr(campaign_module, "ROUNDS", 6)
    yield
    structlog.reset_defaults()


def played(seed: int) -> Life:
    life, failure = live(seed)
    assert failure is None, failure
    return life


@pytest.mark.parametrize("seed", range(*at_length((40, 44), (40, 100))))
def test_linked_jackpots_lose_and_make_no_coin(seed: int) -> None:
    account = played(seed).pools
    assert account.bets > 5
    assert account.coins == account.bets * 1000
    bad = ("coins_lost", "coins_made", "bets_lost", "bets_doubled", "wins_lost", "wins_doubled")
    assert [getattr(account, name) for name in bad] == [0] * 6


@pytest.mark.parametrize("kinds", LINKED)
def test_wins_of_two_tables_are_confirmed_and_paid(kinds: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fails: then every bet is settled, and nearly every win is paid before the end."""
    monkeypatch.setattr(campaign_module, "LINKED", (kinds,))
    monkeypatch.setattr(campaign_module, "ROUNDS", 12)
    calm_down(monkeypatch)
    account = played(2).pools
    assert account.unsettled == 0
    assert account.bets > 20
    assert account.wins >= 2
    assert account.paid >= 1


def calm_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fails by itself."""
    calm = campaign_module._Nature(random.Random(1))
    for name, value in vars(calm).items():
        if isinstance(value, float):
            setattr(calm, name, 0.0)
    calm.killed, calm.disk = Never(calm.killed), False
    monkeypatch.setattr(campaign_module, "_Nature", lambda _rng: calm)


def test_bets_laid_while_the_owner_of_the_pool_is_away_are_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The edge closes the betting ten seconds after the owner is lost: the oracle missed those bets in the books."""
    calm_down(monkeypatch)
    monkeypatch.setattr(campaign_module, "ROUNDS", 12)
    pools = Life._pools

    async def often_away(self: Life, disk: Disk, process: Process) -> None:
        if self.loop.time() > 1.0:
            await asyncio.sleep(30.0)
        if not self._healing:
            self.loop.call_later(40.0, process.die, "killed at an await", context=self.loop.world)
        await pools(self, disk, process)

    monkeypatch.setattr(Life, "_pools", often_away)
    account = played(2).pools
    assert account.unsettled > 0
    assert account.bets > 5
    assert account.bets_lost == account.coins_lost == 0


def test_a_round_without_an_entry_is_judged_before_the_next_one_of_its_table() -> None:
    """Void rounds leave no entry and carry their bets over; judged at the end, the next round had bets of nobody."""
    tables = {"a/1": "a", "b/1": "b", "a/2": "a", "a/3": "a", "b/2": "b", "a/4": "a"}
    order = ["order of a person", "b/1", "a/2", "b/2", "a/3"]
    assert list(_in_turn(order, tables)) == ["order of a person", "b/1", "a/1", "a/2", "b/2", "a/3", "a/4"]


class Never(dict[str, bool]):
    """No process is killed."""

    def __getitem__(self, _name: str) -> bool:
        return False


def found(seeds: range, what: str) -> None:
    """One of the lives fails for this reason."""
    said = [failure.what for seed in seeds if (failure := live(seed)[1]) is not None]
    assert any(what in one for one in said), said


def test_supervisors_correct_and_void_what_keys_have_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign knew no correction of a win, and no prize that the dealer pays; no coin is lost with them."""
    monkeypatch.setattr(campaign_module, "ROUNDS", 24)
    account = PoolAccount()
    done: Counter[str] = Counter()
    for seed in (1005, 1010):
        life = played(seed)
        account.add(life.pools)
        done.update({fault: count for fault, count in life.injected.items() if fault.startswith("people")})
    assert min(account.at_table, account.corrected, account.voided, account.contested, account.batched) > 0
    assert account.coins_lost == account.coins_made == account.wins_lost == account.wins_doubled == 0
    assert {"people: a hand corrected", "people: the payment key forgotten"} <= done.keys()


def test_keys_that_pay_nothing_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_module, "ROUNDS", 24)
    monkeypatch.setattr(campaign_module, "OFTEN_S", 1000.0)  # else two people pay it
    monkeypatch.setattr(table_payments, "settle_payments", lambda _draft, _table: None)
    monkeypatch.setattr(ledger, "settle_payments", lambda _draft, _table: None)
    found(range(1000, 1003), "waits, and was paid at the table")


def test_keys_that_pay_above_the_limit_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_module, "ROUNDS", 24)

    def all_at_table(terms: PoolTerms, base: int, awards: Sequence[Award]) -> tuple[PoolWin, ...]:
        return tuple(msgspec.structs.replace(one, at_table=True) for one in decide(terms, base, awards))

    monkeypatch.setattr(ledger, "decide", all_at_table)
    found(range(1000, 1005), "cannot be paid at the table")


@pytest.mark.parametrize("limit", [0, 11_000])
def test_oracle_and_ledger_agree_on_any_history_of_two_tables(limit: int) -> None:
    """Decision 105: the house gives what a corrected round needs and a later win took. The oracle took it from the new
    pool.
    """
    prizes = {"flush": Prize(700), "straight_flush": Prize(0), "royal_flush": Prize(0)}
    pool = Jackpot(
        name="p",
        tables=("t-1", "t-2"),
        seed=10_000,
        visible="2/7",
        hidden="1/11",
        limit=limit,
        simultaneous_s=0,
        prizes=prizes,
    )
    for number in range(at_length(100, 3000)):
        differ = _told_to_both(pool, random.Random(f"{number} history"))
        assert not differ, (number, differ)


def _told_to_both(pool: Jackpot, rng: random.Random) -> dict[str, tuple[Fraction, Fraction]]:
    """By account what ledger and oracle have after a random history, where that differs."""
    oracle = _Oracle(pool, dict.fromkeys(pool.tables, "angola.stud-poker"), {})
    at = datetime(2026, 11, 28, tzinfo=UTC)
    book, _ = begin(pool.name, pool.terms(), at)
    told: list[str] = []
    for seq in range(1, 9):
        corrects = rng.choice(told[-3:]) if told and rng.random() < 0.45 else ""
        round_ = corrects or f"{rng.choice(pool.tables)}:{seq}"
        table = round_.partition(":")[0]
        seats = sorted(rng.sample(range(1, 8), rng.randint(0, 3)))
        winners = rng.sample(seats, min(len(seats), rng.randint(0, 2)))
        hands = {seat: rng.choice(("flush", "straight_flush", "royal_flush")) for seat in winners}
        awards = tuple(
            Award(
                pool.name,
                name,
                "fixed" if name == "flush" else "pool",
                "law",
                "1/10" if name == "straight_flush" else "",
                among,
            )
            for name, among in oracle._prizes("angola.stud-poker", hands)
        )
        ended = Ended(round_, table, awards, "taken", tuple((seat, CHIP) for seat in seats), seq, corrects)
        book, _ = end_round(book, Seen(f"rules/A/{table}", seq, f"e:{seq}", at + timedelta(minutes=seq)), ended)
        oracle.end(table, Result(round_, jackpots=awards), seats, hands, seq)
        told += [] if corrects else [round_]
        there = {name: Fraction(value, book.unit) for name, value in book.balances.items()}
        both = {name: (there.get(name, Fraction(0)), oracle.of(name)) for name in there.keys() | oracle.money.keys()}
        if differ := {name: one for name, one in both.items() if one[0] != one[1]}:
            return differ
    return {}


def test_a_ledger_that_drops_the_fraction_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(book: Book, seen: Seen, ended: Ended) -> Step:
        book, entries = end_round(book, seen, ended)
        return _without_fraction(book, entries)

    monkeypatch.setattr(process, "end_round", rounded)
    found(range(40, 42), "visible holds")


def _without_fraction(book: Book, entries: Any) -> Step:
    rest = book.balance("visible") % book.unit
    if not rest:
        return book, entries
    kind, last = entries[-1] if entries else ("", None)
    if last is None:
        return book, entries
    change = {"visible": -rest, "margin": rest}
    balances = {**book.balances, **{name: book.balance(name) + value for name, value in change.items()}}
    postings = {**{name: int(value) for name, value in last.postings.items()}}
    postings = {name: postings.get(name, 0) + change.get(name, 0) for name in postings | change}
    entry = msgspec.structs.replace(
        last,
        after={name: str(value) for name, value in balances.items()},
        postings={name: str(value) for name, value in postings.items()},
    )
    return msgspec.structs.replace(book, balances=balances), (*entries[:-1], (kind, entry))


def test_a_round_that_is_not_counted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "end_round", lambda book, seen, ended: end_round(book, seen, _third(ended)))
    found(range(40, 42), "is not in the books")


def _third(ended: Ended) -> Ended:
    """Without its bets where it is the third round of its table."""
    return msgspec.structs.replace(ended, stakes=(), awards=()) if ended.round.endswith(":3") else ended


def test_a_level_that_is_not_published_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.Jackpots, "_commit", _quiet)
    found(range(41, 42), "the level of")


def _quiet(self: process.Jackpots, *, idle: bool = False) -> None:
    """As `_commit`, without a word to displays."""
    self.outbox.offer(self.books.commit(self.outbox.memory(), idle=idle))


def test_the_sign_shows_the_pool_of_both_tables() -> None:
    life = played(41)
    (pool,) = life.pit.pools
    (place,) = pool.signs
    assert place.rpartition("/")[0] in pool.tables
    assert isinstance(life._bodies["jackpots"].signs, Signs)
    shown = [one.shown for one in life._bodies["jackpots"].signs._signs]
    assert shown == [life._bodies["jackpots"].books[pool.name].amount]
