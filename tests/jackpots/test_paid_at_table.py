"""Small prizes that the dealer pays at the table: what the payment key books, whatever comes first."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from daemon.broker.session import Message
from daemon.config.model import parse
from daemon.jackpots.book import Book, Ended, Refused, Seen, Step
from daemon.jackpots.ledger import begin, end_round, forget_keys, pay_at_table, unbalanced
from daemon.jackpots.orders import obey
from daemon.jackpots.process import Jackpots
from daemon.journal.store import Journal
from protocols.contract.commands import Request
from protocols.contract.jackpots import (
    Approve,
    BookEntry,
    Confirm,
    Order,
    Pay,
    PoolTerms,
    Prize,
    Propose,
    SetTerms,
    jackpot_topic,
)
from protocols.contract.results import Award, Result
from protocols.contract.topics import Wire, encode_wire

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TERMS = PoolTerms(1_000_000, "1/2", prizes={"pair": Prize(1_000), "trio": Prize(9_000)}, table_limit=5_000)
PAIR = Award("A", "pair", "fixed", "art. 17(8)", "", (2, 5))
TRIO = Award("A", "trio", "fixed", "art. 17(8)", "", (3,))
ROYAL = Award("A", "royal", "pool", "art. 17(8)", "1", (3,))

Input = Callable[[Book, int], Step]
"""Applied to the books as the input of this number of its stream."""


def at(number: int) -> datetime:
    return NOON + timedelta(seconds=10 * number)


def ended(number: int, *awards: Award, round_: str = "", corrects: bool = False) -> Input:
    """Event `number` of the edge ended a round, or corrected one."""
    name = round_ or f"t-1:{number}"
    told = Ended(name, "t-1", awards, until=number, corrects=name if corrects else "")
    return lambda book, seq: end_round(book, Seen("rules/A/t-1", seq, f"e:t-1:{number}/0", at(number)), told)


def key(number: int, round_: str = "") -> Input:
    """Event `number` of the edge is the payment key."""
    seen = Seen("edge/J/t-1", number, f"e:t-1:{number}", at(number))
    return lambda book, _seq: pay_at_table(book, seen, "t-1", "t-1/console-1", round_)


class Bank:
    """One pool, and all its entries."""

    def __init__(self, terms: PoolTerms = TERMS) -> None:
        self.entries: list[tuple[str, BookEntry]] = []
        self.number = 0
        self.take(begin("p", terms, NOON))

    def take(self, step: Step) -> None:
        """Take over the next book."""
        self.book, entries = step
        self.entries += entries
        assert unbalanced(self.book) == ""

    def use(self, *inputs: Input) -> "Bank":
        """Use inputs in this order."""
        for one in inputs:
            self.number += 1
            self.take(one(self.book, self.number))
        return self

    def order(self, order: Order) -> str:
        """An order of a person; returns its id."""
        self.number += 1
        self.take(obey(self.book, order, f"o-{self.number}", NOON))
        return f"o-{self.number}"

    def states(self) -> dict[str, list[str]]:
        """By round the states of its wins that stand."""
        found: dict[str, list[str]] = {}
        for one in self.book.wins:
            if one.state != "reversed":
                found.setdefault(one.round, []).append(one.state)
        return found

    def money(self) -> dict[str, int]:
        """All accounts in minor units."""
        return {name: value // self.book.unit for name, value in self.book.balances.items()}


def test_the_payment_key_books_a_small_prize_with_device_and_round() -> None:
    bank = Bank().use(ended(4, PAIR))
    assert bank.states() == {"t-1:4": ["pending"]}
    bank.use(key(5))
    assert bank.states() == {"t-1:4": ["paid"]}
    kind, entry = bank.entries[-1]
    assert (kind, entry.people, entry.table, entry.round) == ("paid", ("t-1/console-1",), "t-1", "t-1:4")
    assert entry.text == "paid at the table with the payment key"
    assert entry.postings == {"pending": "-2000", "paid": "2000"}
    assert entry.win is not None
    assert (entry.win.paid_by, entry.win.paid_event) == ("t-1/console-1", "e:t-1:5")


@pytest.mark.parametrize(
    ("terms", "award"),
    [
        (TERMS, TRIO),  # above the limit
        (TERMS, ROYAL),  # the whole pool
        (TERMS, msgspec.structs.replace(PAIR, among=())),  # nobody knows who shares it
        (TERMS, msgspec.structs.replace(PAIR, combination="quad")),  # without an amount
        (msgspec.structs.replace(TERMS, table_limit=0), PAIR),
        (msgspec.structs.replace(TERMS, table_limit=999), PAIR),
        (msgspec.structs.replace(TERMS, seed=500), ROYAL),
    ],
)
def test_what_the_house_did_not_approve_waits_for_two_people(terms: PoolTerms, award: Award) -> None:
    bank = Bank(terms).use(ended(4, award), key(5))
    assert bank.states() == {"t-1:4": ["pending"]}


def test_the_limit_itself_is_paid_at_the_table() -> None:
    bank = Bank(msgspec.structs.replace(TERMS, table_limit=1_000)).use(ended(4, PAIR), key(5))
    assert bank.states() == {"t-1:4": ["paid"]}


def settled(order: Iterable[Input]) -> tuple[dict[str, list[str]], dict[str, int]]:
    bank = Bank().use(*order)
    return bank.states(), bank.money()


def interleaved(verdicts: list[Input], keys: list[Input]) -> list[list[Input]]:
    """All orders of arrival in which each stream keeps its own."""
    found = []
    for places in set(permutations([0] * len(verdicts) + [1] * len(keys))):
        streams = [iter(verdicts), iter(keys)]
        found.append([next(streams[place]) for place in places])
    return found


HISTORIES: dict[str, tuple[list[Input], list[Input], dict[str, list[str]]]] = {
    "two rounds, both paid": (
        [ended(4, PAIR), ended(14, PAIR)],
        [key(5), key(15)],
        {"t-1:4": ["paid"], "t-1:14": ["paid"]},
    ),
    "the first was not paid by a key": (
        [ended(4, PAIR), ended(14, PAIR)],
        [key(15)],
        {"t-1:4": ["pending"], "t-1:14": ["paid"]},
    ),
    "the second is not paid yet": (
        [ended(4, PAIR), ended(14, PAIR)],
        [key(5)],
        {"t-1:4": ["paid"], "t-1:14": ["pending"]},
    ),
    "a late key that names its round": (
        [ended(4, PAIR), ended(14, PAIR)],
        [key(15, "t-1:4")],
        {"t-1:4": ["paid"], "t-1:14": ["pending"]},
    ),
    "a key that names a round to come": ([ended(14, PAIR)], [key(5, "t-1:14")], {"t-1:14": ["pending"]}),
    "corrected to nothing before the key": ([ended(4, PAIR), ended(6, round_="t-1:4", corrects=True)], [key(7)], {}),
    "corrected to a win before the key": (
        [ended(4), ended(6, PAIR, round_="t-1:4", corrects=True)],
        [key(7)],
        {"t-1:4": ["paid"]},
    ),
    "corrected to a win after the key": (
        [ended(4), ended(8, PAIR, round_="t-1:4", corrects=True)],
        [key(7)],
        {"t-1:4": ["pending"]},
    ),
    "corrected to a win after the key, and paid by another one": (
        [ended(4), ended(8, PAIR, round_="t-1:4", corrects=True)],
        [key(7), key(9)],
        {"t-1:4": ["paid"]},
    ),
    "corrected to a win after its key; the next key is of the next round": (
        [ended(4), ended(8, PAIR, round_="t-1:4", corrects=True), ended(14)],
        [key(7), key(15)],
        {"t-1:4": ["pending"]},
    ),
    "corrected to another win before the key": (
        [ended(4, TRIO), ended(6, PAIR, round_="t-1:4", corrects=True)],
        [key(7)],
        {"t-1:4": ["paid"]},
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_the_order_of_arrival_makes_no_difference(name: str) -> None:
    verdicts, keys, states = HISTORIES[name]
    ends = [settled(order) for order in interleaved(verdicts, keys)]
    assert [one for one, _ in ends] == [states] * len(ends)
    assert all(money == ends[0][1] for _, money in ends)


def test_a_prize_that_was_paid_at_the_table_and_is_corrected_away_is_contested() -> None:
    bank = Bank().use(ended(4, PAIR), key(5), ended(8, round_="t-1:4", corrects=True))
    assert bank.states() == {"t-1:4": ["contested"]}


def test_a_key_is_used_once() -> None:
    bank = Bank().use(ended(4, PAIR), key(5))
    money = bank.money()
    bank.use(key(5))
    assert bank.money() == money


def test_numbers_begin_again_with_a_new_journal_of_the_edge() -> None:
    """Neither pays an old key a new round, nor a new key an old one."""
    bank = Bank().use(ended(30, PAIR), ended(40, PAIR), key(41, "t-1:30"))
    assert bank.states() == {"t-1:30": ["paid"], "t-1:40": ["pending"]}
    bank.take(forget_keys(bank.book, "t-1"))
    bank.use(ended(3, PAIR, round_="t-1:new"), key(60))
    assert bank.states() == {"t-1:30": ["paid"], "t-1:40": ["pending"], "t-1:new": ["paid"]}
    bank.take(forget_keys(bank.book, "t-1"))
    bank.use(ended(2, PAIR, round_="t-1:newest"))
    assert bank.states()["t-1:newest"] == ["pending"]


def test_a_clock_that_is_set_back_does_not_keep_a_prize_from_its_key() -> None:
    """The key was pressed after the end of the round by its number, and before it by the clock of the edge."""
    bank = Bank().use(ended(4, PAIR))
    early = Seen("edge/J/t-1", 5, "e:t-1:5", NOON - timedelta(hours=1))
    bank.take(pay_at_table(bank.book, early, "t-1", "t-1/console-1", ""))
    assert bank.states() == {"t-1:4": ["paid"]}


def test_keys_pressed_again_and_again_take_back_no_payment() -> None:
    """The key of the round before is no longer remembered: its prize waited again, to be paid a second time."""
    bank = Bank().use(ended(4, PAIR), key(5), ended(14, PAIR))
    bank.use(*(key(number) for number in range(15, 30)))
    assert bank.states() == {"t-1:4": ["paid"], "t-1:14": ["paid"]}


def test_two_people_may_pay_what_the_dealer_did_not() -> None:
    bank = Bank().use(ended(4, PAIR))
    bank.order(Confirm("ana", "t-1:4/1"))
    bank.order(Pay("rui", "t-1:4/1"))
    money = bank.money()
    bank.use(key(5))
    assert bank.money() == money
    with pytest.raises(Refused, match="is paid"):
        bank.order(Pay("rui", "t-1:4/1"))


def test_the_key_pays_what_a_person_confirmed_meanwhile() -> None:
    bank = Bank().use(ended(4, PAIR))
    bank.order(Confirm("ana", "t-1:4/1"))
    bank.use(key(5))
    assert bank.entries[-1][1].people == ("ana", "t-1/console-1")
    with pytest.raises(Refused, match="is paid"):
        bank.order(Pay("rui", "t-1:4/1"))


def test_two_people_set_the_limit_and_it_holds_from_then_on() -> None:
    bank = Bank(msgspec.structs.replace(TERMS, table_limit=0)).use(ended(4, PAIR))
    proposed = bank.order(Propose("ana", SetTerms(TERMS, "the house approved 50")))
    with pytest.raises(Refused, match="another person"):
        bank.order(Approve("ana", proposed))
    bank.order(Approve("rui", proposed))
    bank.use(key(5))
    assert bank.states() == {"t-1:4": ["pending"]}  # it was won before
    bank.use(ended(14, PAIR), key(15))
    assert bank.states()["t-1:14"] == ["paid"]


def test_the_keys_that_are_remembered_are_bounded() -> None:
    bank = Bank()
    for number in range(1, 60):
        bank.use(key(number))
    assert len(bank.book.tables["t-1"].payments) == 10


CONFIG = """
[site]
name = "lisboa"
[edge]
name = "e"
[jackpots]
insecure = true
[[table]]
name = "t-1"
ruleset = "macau.baccarat"
[[jackpot]]
name = "red"
tables = ["t-1"]
seed = 1000000
visible = "1/2"
LIMIT
[jackpot.prizes]
pair = { fixed = 1000 }
"""


def said(leaf: str, kind: str, number: int, journal: str, data: object, event: int = 0) -> Message:
    """A message of the table; `event`: the number of the one that a verdict follows from."""
    source = f"felt/1/lisboa/table/t-1/{leaf}"
    id_ = f"e:t-1:{event or number}" + ("/0" if leaf == "round" else "")
    raw = msgspec.Raw(msgspec.json.encode(data))
    wire = Wire("1.0", id_, source, kind, at(number), number, "", journal, False, raw)
    return Message(f"{source}/event/{kind}", encode_wire(wire))


def test_the_process_reads_the_payment_keys_of_a_pool_with_a_limit(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "books.db")
    process = Jackpots(parse(CONFIG.replace("LIMIT", "table_limit = 5000")), journal, now=lambda: NOON)
    for number in range(1, 4):
        process.take([said("device/console-1", "bets.opened", number, "J", {})])
    result = Result(round="t-1:3", ruleset="macau.baccarat", edition="2018", jackpots=(PAIR,))
    process.take([said("round", "resolved", 1, "R", {"result": result})])
    assert [one.state for one in process.books["red"].wins] == ["pending"]
    process.take([said("device/console-1", "round.paid", 4, "J", {"round": ""})])
    assert [(one.state, one.paid_by) for one in process.books["red"].wins] == [("paid", "t-1/console-1")]
    rows = [row for row in journal.range("red", 1, 100) if row.type == "paid"]
    assert [row.cause for row in rows] == ["e:t-1:4"]
    journal.close()


def test_a_correction_waits_for_the_keys_before_it(tmp_path: Path) -> None:
    """The verdict came first: the prize that the dealer had handed out went back into the pool, and nobody was told."""
    journal = Journal(tmp_path / "books.db")
    process = Jackpots(parse(CONFIG.replace("LIMIT", "table_limit = 5000")), journal, now=lambda: NOON)
    opened = [said("device/console-1", "bets.opened", number, "J", {}) for number in range(1, 4)]
    result = Result(round="t-1:3", ruleset="macau.baccarat", edition="2018", jackpots=(PAIR,))
    process.take([*opened, said("round", "resolved", 1, "R", {"result": result}, 3)])
    corrected = msgspec.structs.replace(result, jackpots=(), supersedes="t-1:3")
    process.take([said("round", "corrected", 2, "R", {"result": corrected}, 5)])
    process.take([said("device/console-1", "round.paid", 4, "J", {"round": ""})])
    process.take([said("device/console-1", "deal.corrected", 5, "J", {"hands": {}})])
    assert [one.state for one in process.books["red"].wins] == ["contested"]
    journal.close()


def test_verdicts_of_an_edge_that_was_replaced_wait_for_none_of_its_events(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "books.db")
    process = Jackpots(parse(CONFIG.replace("LIMIT", "table_limit = 5000")), journal, now=lambda: NOON)
    process.take([said("device/console-1", "bets.opened", 1, "J", {})])
    process.take([said("device/console-1", "bets.opened", 1, "K", {})])
    result = Result(round="t-1:3", ruleset="macau.baccarat", edition="2018", jackpots=(PAIR,))
    process.take([said("round", "resolved", 1, "R", {"result": result}, 3)])
    assert [one.state for one in process.books["red"].wins] == ["pending"]
    process.take([said("device/console-1", "bets.opened", 2, "K", {})])
    process.take([said("device/console-1", "round.paid", 3, "K", {"round": ""})])
    assert [one.state for one in process.books["red"].wins] == ["pending"]
    journal.close()


@pytest.mark.parametrize(("limit", "granted"), [("table_limit = 5000", True), ("", False)])
def test_limits_are_set_only_where_payment_keys_are_read(tmp_path: Path, limit: str, granted: bool) -> None:
    journal = Journal(tmp_path / "books.db")
    process = Jackpots(parse(CONFIG.replace("LIMIT", limit)), journal, now=lambda: NOON)
    terms = msgspec.structs.replace(process.books["red"].terms, table_limit=7)
    args = msgspec.to_builtins(Propose("ana", SetTerms(terms, "approved")))
    del args["order"]
    request = Request("r-1", NOON + timedelta(minutes=1), msgspec.Raw(msgspec.json.encode(args)))
    topic = jackpot_topic("lisboa", "red", "cmd/propose")
    reply = process.obey("red", "propose", Message(topic, msgspec.json.encode(request)))
    assert reply is not None
    assert reply.status == ("done" if granted else "refused")
    assert granted or "give the pool a table_limit in the configuration" in reply.text
    journal.close()
