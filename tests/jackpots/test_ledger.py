"""The ledger of a jackpot pool: amounts by the articles, computed by hand; corrections, voids and orders of people."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from daemon.jackpots.book import Book, Ended, Refused, Seen, Step
from daemon.jackpots.ledger import (
    begin,
    contribute,
    end_of,
    end_round,
    level_of,
    note_input,
    open_round,
    report_win,
    unbalanced,
)
from daemon.jackpots.orders import obey, transfer
from daemon.jackpots.prizes import decide
from protocols.contract.events import MOST
from protocols.contract.jackpots import (
    Adjust,
    Approve,
    BadOrder,
    Change,
    Confirm,
    Order,
    Pay,
    PoolLevel,
    PoolTerms,
    PoolWin,
    Price,
    Prize,
    Propose,
    Reject,
    Reset,
    SetTerms,
    Transfer,
    Withdraw,
    decode_order,
)
from protocols.contract.reasons import say
from protocols.contract.results import Award, Result, Settlement, Void

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TERMS = PoolTerms(
    seed=10_000,
    visible="3/200",
    hidden="1/200",
    prizes={"straight_flush": Prize(5_000), "royal_flush": Prize(8_000), "flush": Prize(700)},
)
ROYAL = Award("p", "royal_flush", "larger_of_fixed_and_share", "law", "1", (2,), "straight_flush")
STRAIGHT = Award("p", "straight_flush", "larger_of_fixed_and_share", "law", "1/10", (4,))
FLUSH = Award("p", "flush", "fixed", "law", "", (3,))
POOL = Award("p", "six_same", "pool", "law", "", (1, 2, 3))


class Bank:
    """A book with the numbering of its inputs; each step is checked to balance."""

    def __init__(self, terms: PoolTerms = TERMS) -> None:
        self.book: Book
        self.kinds: list[str] = []
        self.seq = 0
        self.take(begin("p", terms, NOON))

    def take(self, step: Step) -> None:
        self.book, entries = step
        self.kinds += [kind for kind, _ in entries]
        assert unbalanced(self.book) == ""

    def seen(self, stream: str = "rules/A/t-1", at: datetime | None = None) -> Seen:
        self.seq += 1
        return Seen(stream, self.seq, f"e:{self.seq}", at or NOON + timedelta(seconds=self.seq))

    def end(self, round_: str, *awards: Award, **fields: Any) -> None:
        self.take(end_round(self.book, self.seen(), Ended(round_, "t-1", awards, **fields)))

    def obey(self, order: Order, name: str = "") -> str:
        self.seq += 1
        name = name or f"r-{self.seq}"
        self.take(obey(self.book, order, name, NOON))
        return name

    def decide(self, change: Change, *people: str) -> None:
        self.obey(Approve(people[1], self.obey(Propose(people[0], change))))

    def shown(self, *accounts: str) -> tuple[Any, ...]:
        """Balances in minor units."""
        return tuple(Fraction(self.book.balance(account), self.book.unit) for account in accounts)


def test_a_bet_is_split_exactly_and_the_fraction_stays_in_the_pool() -> None:
    bank = Bank()
    for _ in range(3):
        bank.take(contribute(bank.book, bank.seen("edge/A/t-1"), "t-1", 1, 10))
    assert bank.book.unit == 200
    assert bank.shown("visible", "hidden", "margin", "players") == (
        10_000 + Fraction(45, 100),
        Fraction(15, 100),
        Fraction(294, 10),
        -30,
    )
    assert bank.book.amount == 10_000
    level = level_of(bank.book, "MOP", 2, NOON)
    assert (level.amount, level.entry, level.pending) == (10_000, 4, ())


def test_a_bet_delivered_twice_counts_once() -> None:
    bank = Bank()
    seen = bank.seen("edge/A/t-1")
    for _ in range(2):
        bank.take(contribute(bank.book, seen, "t-1", 1, 1000))
    bank.take(contribute(bank.book, Seen("edge/B/t-1", 1, "e:1", NOON), "t-1", 1, 1000))  # another journal
    assert bank.shown("players") == (-2000,)


def test_a_pool_without_a_limit_shows_no_more_than_its_readers_can_read() -> None:
    """Bets as large as a device can tell, and an adjustment: the books are still read after the whole pool was won."""
    bank = Bank(msgspec.structs.replace(TERMS, visible="1/2", hidden="0"))
    for _ in range(3):
        bank.take(contribute(bank.book, bank.seen("edge/A/m-1"), "m-1", 1, MOST, rounds=False))
    assert bank.book.amount == MOST
    with pytest.raises(Refused, match="limit"):
        bank.decide(Adjust("visible", 1, "too much"), "ana", "rui")
    bank.end("t-1:1", Award("p", "royal", "pool", "law", "", (1,)))
    (win,) = msgspec.convert(msgspec.to_builtins(bank.book.wins), tuple[PoolWin, ...])
    assert win.amount == MOST
    level = level_of(bank.book, "MOP", 2, None)
    assert msgspec.json.decode(msgspec.json.encode(level), type=PoolLevel) == level


def test_what_is_above_the_limit_goes_to_the_overflow_and_returns_with_the_next_seed() -> None:
    bank = Bank(msgspec.structs.replace(TERMS, limit=10_020, visible="1/100", hidden="0"))
    for _ in range(3):
        bank.take(contribute(bank.book, bank.seen("edge/A/t-1"), "t-1", 1, 1000))
    assert bank.shown("visible", "overflow") == (10_020, 10)
    bank.end("t-1:1", POOL)
    assert [one.amount for one in bank.book.wins] == [10_020]
    assert bank.shown("visible", "overflow", "house") == (10_000, 0, -10_000 - 9_990)


def test_the_reserve_begins_the_next_pool_before_the_house_does() -> None:
    bank = Bank()
    bank.take(contribute(bank.book, bank.seen("edge/A/t-1"), "t-1", 1, 1_000_000))
    assert bank.shown("visible", "hidden") == (25_000, 5_000)
    bank.end("t-1:1", POOL)
    assert bank.shown("visible", "hidden", "house", "pending") == (10_000, 0, -10_000 - 4_999, 24_999)
    assert bank.kinds[-2:] == ["won", "reset"]


@pytest.mark.parametrize(
    ("awards", "amounts"),
    [
        ((ROYAL,), [20_000]),  # art. 10(2)(1): 100 % of the pool
        ((STRAIGHT,), [5_000]),  # the fixed amount is more than a tenth
        ((FLUSH, STRAIGHT, ROYAL), [700, 5_000, 15_000]),  # the royal flush takes what straight flushes leave
        ((STRAIGHT, STRAIGHT), [5_000, 5_000]),  # 10(6): each
        ((msgspec.structs.replace(ROYAL, among=(2, 5)),), [20_000]),  # 10(5): two royals share
        ((FLUSH, msgspec.structs.replace(POOL, among=(1,))), [700, 19_300]),  # Angola 7(13)a: the rest to the highest
    ],
)
def test_amounts_of_one_round_in_the_order_of_payment(awards: tuple[Award, ...], amounts: list[int]) -> None:
    assert [one.amount for one in decide(TERMS, 20_000, awards)] == amounts


def test_a_tenth_of_a_large_pool_is_of_the_pool_before_the_round() -> None:
    two = decide(TERMS, 100_007, (STRAIGHT, STRAIGHT, ROYAL))
    assert [one.amount for one in two] == [10_000, 10_000, 80_007]


def test_equal_shares_leave_the_odd_coin_in_the_pool() -> None:
    (win,) = decide(TERMS, 20_000, (POOL,))
    assert (win.shares, win.odd, win.amount) == (((1, 6_666), (2, 6_666), (3, 6_666)), 2, 19_998)
    (win,) = decide(msgspec.structs.replace(TERMS, odd="first"), 20_000, (POOL,))
    assert (win.shares, win.odd, win.amount) == (((1, 6_667), (2, 6_667), (3, 6_666)), 2, 20_000)


def test_the_house_adds_what_a_fixed_prize_wants_above_the_pool() -> None:
    bank = Bank(msgspec.structs.replace(TERMS, seed=500))
    bank.end("t-1:1", FLUSH)
    assert bank.shown("pending", "visible", "house") == (700, 500, -500 - 200 - 500)
    bank.end("t-1:1", corrects="t-1:1")  # and takes it back
    assert bank.shown("pending", "visible", "house") == (0, 500, -500)


def test_a_win_is_frozen_confirmed_by_one_person_and_paid_by_another() -> None:
    bank = Bank()
    bank.take(open_round(bank.book, bank.seen(), "t-1", "t-1:1"))
    bank.end("t-1:1", FLUSH)
    assert level_of(bank.book, "MOP", 2, NOON).pending[0].amount == 700
    bank.take(contribute(bank.book, bank.seen("edge/A/t-2"), "t-2", 1, 1000))  # the other tables go on
    with pytest.raises(Refused, match="a person must confirm it first"):
        bank.obey(Pay("ana", "t-1:1/1"))
    with pytest.raises(Refused, match="name no others"):
        bank.obey(Confirm("ana", "t-1:1/1", (4,)))
    bank.obey(Confirm("ana", "t-1:1/1"))
    with pytest.raises(Refused, match="another person must pay"):
        bank.obey(Pay("ana", "t-1:1/1"))
    bank.take(open_round(bank.book, bank.seen(), "t-1", "t-1:2"))
    with pytest.raises(Refused, match="round t-1:2 is open"):
        bank.obey(Pay("rui", "t-1:1/1"))
    bank.end("t-1:2")
    bank.obey(Pay("rui", "t-1:1/1"))
    assert bank.shown("paid", "pending") == (700, 0)
    assert (bank.book.wins[0].confirmed_by, bank.book.wins[0].paid_by) == ("ana", "rui")
    with pytest.raises(Refused, match="is paid"):
        bank.obey(Pay("rui", "t-1:1/1"))
    with pytest.raises(Refused, match="feltd jackpot"):
        bank.obey(Pay("rui", "t-1:9/1"))


def test_where_the_bettors_are_unknown_the_seats_are_named_at_the_confirmation() -> None:
    bank = Bank()
    bank.end("t-1:1", msgspec.structs.replace(POOL, among=()))
    with pytest.raises(Refused, match="name the seats"):
        bank.obey(Confirm("ana", "t-1:1/1"))
    bank.obey(Confirm("ana", "t-1:1/1", (5, 6, 7)))
    (win,) = bank.book.wins
    assert (win.shares, win.odd, win.amount) == (((5, 3_333), (6, 3_333), (7, 3_333)), 1, 9_999)
    assert bank.shown("visible") == (10_001,)


def test_a_correction_without_the_award_reverses_it_and_gives_the_seed_back() -> None:
    bank = Bank()
    bank.end("t-1:1", POOL, stakes=((1, 1_000), (2, 1_000), (3, 1_000)))
    assert bank.shown("visible", "house") == (10_000, -10_000 - 9_984)
    bank.take(contribute(bank.book, bank.seen("edge/A/t-2"), "t-2", 1, 1_000))
    bank.end("t-1:1", corrects="t-1:1", stakes=((1, 1_000), (2, 1_000), (3, 1_000)))
    assert [one.state for one in bank.book.wins] == ["reversed"]
    # as if it had never been won: but the reserve went into the pool
    assert bank.shown("house", "paid") == (-10_000, 0)
    assert sum(bank.shown("visible", "hidden")) == 10_000 + 4 * 20


def test_a_correction_with_another_seat_keeps_the_pool_and_the_amount() -> None:
    bank = Bank()
    bank.end("t-1:1", msgspec.structs.replace(POOL, among=(1,)))
    bank.take(contribute(bank.book, bank.seen("edge/A/t-2"), "t-2", 1, 1_000))
    before = bank.shown("visible", "hidden", "house")
    bank.end("t-1:1", msgspec.structs.replace(POOL, among=(7,)), corrects="t-1:1")
    assert bank.shown("visible", "hidden", "house") == before
    assert [(one.id, one.state, one.shares) for one in bank.book.wins] == [
        ("t-1:1/1", "reversed", ((1, 10_000),)),
        ("t-1:1/2", "pending", ((7, 10_000),)),
    ]


def test_a_correction_that_names_the_award_again_confirms_it() -> None:
    bank = Bank()
    bank.end("t-1:1", FLUSH)
    bank.end("t-1:1", FLUSH, corrects="t-1:1")
    assert [one.state for one in bank.book.wins] == ["pending"]
    assert bank.kinds[-1] == "upheld"


def test_a_paid_win_that_a_correction_denies_is_contested_and_moves_no_money() -> None:
    bank = Bank()
    bank.end("t-1:1", FLUSH)
    bank.obey(Confirm("ana", "t-1:1/1"))
    bank.obey(Pay("rui", "t-1:1/1"))
    before = bank.shown("visible", "paid", "house")
    bank.end("t-1:1", corrects="t-1:1")
    assert bank.shown("visible", "paid", "house") == before
    assert bank.book.wins[0].state == "contested"
    bank.end("t-1:1", FLUSH, corrects="t-1:1")
    assert (bank.book.wins[0].state, bank.kinds[-1]) == ("paid", "upheld")


def test_a_correction_of_a_round_that_is_too_old_is_noted() -> None:
    bank = Bank()
    bank.end("t-1:1", FLUSH)
    for number in range(2, 10):
        bank.end(f"t-1:{number}")
    bank.end("t-1:1", corrects="t-1:1")
    assert bank.kinds[-1] == "noted"
    assert bank.book.wins[0].state == "pending"


def test_a_corrected_void_returns_the_bets_of_its_round() -> None:
    bank = Bank()
    bank.end("t-1:1", stakes=((1, 1_000), (1, 1_000), (2, 500)))
    assert bank.shown("players") == (-2_500,)
    bank.end("t-1:1", corrects="t-1:1", stakes=((1, 1_000),))
    assert bank.shown("players", "visible", "hidden") == (-1_000, 10_015, 5)
    bank.end("t-1:1", corrects="t-1:1", stakes=(), bets="returned")
    assert bank.shown("players", "visible", "hidden", "margin") == (0, 10_000, 0, 0)


class Sensors(Bank):
    """A pool whose bets come from sensors at the table, and its rounds from the rules."""

    def bet(self, seat: int, amount: int = 1_000) -> int:
        seen = self.seen("edge/A/t-1")
        self.take(contribute(self.book, seen, "t-1", seat, amount))
        return seen.seq

    def end(self, round_: str, *awards: Award, **fields: Any) -> None:
        super().end(round_, *awards, **{"stakes": None, "until": self.seq, **fields})


def test_bets_of_a_void_round_are_carried_and_not_counted_twice() -> None:
    bank = Sensors()
    bank.bet(1)
    bank.bet(2)
    bank.end("t-1:1", bets="carried")
    bank.bet(1)
    bank.bet(2)
    bank.bet(3)
    assert bank.shown("players") == (-3_000,)
    bank.end("t-1:2")
    bank.bet(1)
    assert bank.shown("players") == (-4_000,)


def test_bets_are_carried_over_several_void_rounds() -> None:
    bank = Sensors()
    for number in range(1, 4):
        bank.bet(1)
        bank.end(f"t-1:{number}", bets="carried")
    assert bank.shown("players") == (-1_000,)
    bank.bet(1)
    bank.end("t-1:4", bets="returned")
    assert bank.shown("players", "visible", "hidden", "margin") == (0, 10_000, 0, 0)


def test_a_carried_bet_that_is_not_told_again_was_in_the_next_round() -> None:
    bank = Sensors()
    bank.bet(1)
    bank.end("t-1:1", bets="carried")
    bank.bet(2)
    bank.end("t-1:2")
    bank.bet(1)
    assert bank.shown("players") == (-3_000,)


def test_a_carried_bet_that_was_told_before_the_verdict_is_not_counted_twice() -> None:
    bank = Sensors()
    until = bank.bet(1)
    bank.bet(1)  # of the next round: the sensors are faster than the rules
    assert bank.shown("players") == (-2_000,)
    bank.end("t-1:1", bets="carried", until=until)
    assert bank.shown("players") == (-1_000,)
    bank.bet(1)
    assert bank.shown("players") == (-2_000,)


def test_returned_bets_of_a_void_round_leave_nothing_behind() -> None:
    bank = Sensors()
    until = bank.bet(1)
    bank.bet(2)
    bank.end("t-1:1", bets="returned", until=until)
    assert bank.shown("players", "visible", "hidden", "margin") == (-1_000, 10_015, 5, 980)
    bank.end("t-1:1", corrects="t-1:1")  # valid after all: its bet counts again, and the next one stays
    assert bank.shown("players", "visible", "hidden", "margin") == (-2_000, 10_030, 10, 1_960)


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("bets", ["taken", "returned"])
def test_a_void_round_with_carried_bets_can_be_corrected(bets: Any, used: bool) -> None:
    bank = Sensors()
    bank.bet(1)
    bank.end("t-1:1", bets="carried")
    if used:
        bank.bet(1)
    assert bank.shown("players") == (-1_000,)
    bank.end("t-1:1", corrects="t-1:1", bets=bets)
    assert bank.shown("players") == (-1_000 * (used + (bets == "taken")),)
    if not used:
        bank.bet(1)
        assert bank.shown("players") == (-1_000 * (1 + (bets == "taken")),)


def test_a_returned_bet_that_was_won_meanwhile_comes_from_the_pool_then_the_house() -> None:
    bank = Bank(msgspec.structs.replace(TERMS, seed=0, visible="1", hidden="0"))
    bank.end("t-1:1", stakes=((1, 100),))
    bank.take(end_round(bank.book, bank.seen("rules/A/t-2"), Ended("t-2:1", "t-2", (POOL,))))
    bank.end("t-1:1", corrects="t-1:1", bets="returned")
    assert bank.shown("players", "house", "visible", "pending") == (0, -99, 0, 99)


def test_another_journal_of_the_rules_tells_nothing_again() -> None:
    bank = Bank()
    first, second = NOON + timedelta(seconds=1), NOON + timedelta(seconds=2)
    for at in (first, second):
        ended = Ended(f"t-1:{at.second}", "t-1", (FLUSH,))
        bank.take(end_round(bank.book, bank.seen("rules/A/t-1", at), ended))
    for at in (first, second, NOON + timedelta(seconds=3)):
        ended = Ended(f"t-1:{at.second}", "t-1", (FLUSH,))
        bank.take(end_round(bank.book, bank.seen("rules/B/t-1", at), ended))
    assert [one.round for one in bank.book.wins] == ["t-1:1", "t-1:2", "t-1:3"]
    assert bank.book.heard["rules/B/t-1"] == 5


def test_bets_that_wait_are_bounded() -> None:
    bank = Bank()
    for _ in range(1_010):
        bank.take(contribute(bank.book, bank.seen("edge/A/t-1"), "t-1", 1, 10))
    bank.take(contribute(bank.book, bank.seen("edge/A/m-1"), "m-1", 1, 10, rounds=False))
    assert [len(one.stakes) for one in bank.book.tables.values()] == [1_000, 0]
    assert bank.shown("players") == (-10_110,)


def test_what_happened_before_the_pool_began_is_not_its_own() -> None:
    bank = Bank()
    early = NOON - timedelta(seconds=1)
    bank.take(contribute(bank.book, bank.seen("edge/A/t-1", early), "t-1", 1, 1_000))
    bank.take(report_win(bank.book, bank.seen("edge/A/t-1", early), "t-1", 1, 1, 50))
    bank.take(open_round(bank.book, bank.seen(at=early), "t-1", "t-1:1"))
    bank.take(end_round(bank.book, bank.seen(at=early), Ended("t-1:1", "t-1", (FLUSH,), stakes=((1, 10),))))
    assert (bank.book.number, bank.book.wins, bank.book.tables) == (1, (), {})
    assert bank.book.heard == {"edge/A/t-1": 2, "rules/A/t-1": 4}


def test_near_simultaneous_wins_are_each_of_the_pool_as_it_stands() -> None:
    bank = Bank()
    bank.take(contribute(bank.book, bank.seen("edge/A/t-1"), "t-1", 1, 200_000))
    for table in ("t-1", "t-2"):
        ended = Ended(f"{table}:1", table, (msgspec.structs.replace(POOL, among=(1,)),))
        bank.take(end_round(bank.book, bank.seen(f"rules/A/{table}"), ended))
    assert [one.amount for one in bank.book.wins] == [13_000, 10_000]


def test_a_device_reports_a_win_by_its_level() -> None:
    bank = Bank(msgspec.structs.replace(TERMS, prizes={"level_1": Prize(pays="pool"), "level_2": Prize(300)}))
    bank.take(report_win(bank.book, bank.seen("edge/A/m-1"), "m-1", 2, 0, 0))
    bank.take(report_win(bank.book, bank.seen("edge/A/m-1"), "m-1", 1, 4, 0))
    bank.take(report_win(bank.book, bank.seen("edge/A/m-1"), "m-1", 3, 4, 55))
    assert [(one.amount, one.shares) for one in bank.book.wins] == [(300, ()), (9_700, ((4, 9_700),)), (55, ((4, 55),))]
    assert bank.book.amount == 9_945


def machines() -> Bank:
    bank = Bank(msgspec.structs.replace(TERMS, prizes={"level_1": Prize(pays="pool"), "level_2": Prize(300)}))
    bank.take(contribute(bank.book, bank.seen("edge/A/m-2"), "m-2", 1, 20_000, rounds=False))
    assert bank.book.amount == 10_300
    return bank


def test_a_machine_wins_what_it_showed_and_later_bets_stay_in_the_pool() -> None:
    bank = machines()
    bank.take(report_win(bank.book, bank.seen("edge/A/m-1"), "m-1", 1, 1, 10_250, 10_250))
    (win,) = bank.book.wins
    assert (win.amount, win.shares, win.unpriced) == (10_250, ((1, 10_250),), False)
    assert bank.book.amount == 10_000  # 50 of the bets since, 100 of the reserve, 9850 of the house
    assert bank.shown("hidden", "house") == (0, -10_000 - 9_850)


@pytest.mark.parametrize(
    ("level", "amount", "shown", "books"),
    [(1, 10_301, 10_301, 10_300), (1, 10_250, 10_300, 10_300), (1, 10_250, 0, 10_300), (2, 310, 310, 300)],
)
def test_a_machine_that_reports_another_amount_is_priced_by_two_people(
    level: int, amount: int, shown: int, books: int
) -> None:
    bank = machines()
    step = report_win(bank.book, bank.seen("edge/A/m-1"), "m-1", level, 1, amount, shown)
    text = step[1][0][1].text
    assert all(str(one) in text for one in (amount, books))
    bank.take(step)
    (win,) = bank.book.wins
    assert (win.amount, win.unpriced) == (books, True)
    with pytest.raises(Refused, match="two people"):
        bank.obey(Confirm("ana", win.id))
    bank.decide(Price(win.id, amount, "as the machine's record says"), "ana", "rui")
    bank.obey(Confirm("ana", win.id))
    bank.obey(Pay("rui", win.id))
    assert bank.shown("paid") == (amount,)


def test_a_device_that_tells_no_amount_where_the_terms_have_none_leaves_the_price_to_two_people() -> None:
    bank = machines()
    bank.take(report_win(bank.book, bank.seen("edge/A/m-1"), "m-1", 3, 1, 0))
    (win,) = bank.book.wins
    assert win.unpriced
    with pytest.raises(Refused, match="two people"):
        bank.obey(Confirm("ana", win.id))
    bank.decide(Price(win.id, 120, "as the machine's record says"), "ana", "rui")
    assert bank.book.wins[0].amount == 120


# ---- two people


def test_a_change_needs_two_people_and_no_open_round() -> None:
    bank = Bank()
    bank.obey(Propose("ana", Adjust("visible", 500, "audit")), "a-1")
    assert bank.shown("visible") == (10_000,)
    assert [one.id for one in level_of(bank.book, "MOP", 2, NOON).proposals] == ["a-1"]
    with pytest.raises(Refused, match="another person"):
        bank.obey(Approve("ana", "a-1"))
    bank.take(open_round(bank.book, bank.seen(), "t-1", "t-1:1"))
    with pytest.raises(Refused, match="t-1:1 is open"):
        bank.obey(Approve("rui", "a-1"))
    bank.end("t-1:1")
    bank.obey(Approve("rui", "a-1"))
    assert bank.shown("visible", "house") == (10_500, -10_500)
    assert bank.book.proposals == ()
    with pytest.raises(Refused, match="no proposal"):
        bank.obey(Approve("rui", "a-1"))


def test_an_order_delivered_twice_is_obeyed_once() -> None:
    bank = Bank()
    for _ in range(2):
        bank.obey(Propose("ana", Adjust("visible", 500, "audit")), "a-1")
        bank.obey(Approve("rui", "a-1"), "a-2")
    assert bank.shown("visible") == (10_500,)


def test_changes_move_what_they_say() -> None:
    bank = Bank()
    bank.decide(Adjust("visible", 2_000, "x"), "ana", "rui")
    bank.decide(Reset("moved to another hall"), "ana", "rui")
    assert bank.shown("visible", "overflow") == (10_000, 2_000)
    bank.decide(Adjust("overflow", -2_000, "x"), "ana", "rui")
    bank.decide(Adjust("visible", -9_000, "x"), "ana", "rui")
    bank.decide(Reset("again"), "ana", "rui")
    assert bank.shown("visible", "overflow", "house") == (10_000, 0, -10_000)
    with pytest.raises(Refused, match="holds 10000"):
        bank.decide(Adjust("visible", -10_001, "x"), "ana", "rui")


def test_new_terms_keep_every_fraction() -> None:
    bank = Bank()
    bank.take(contribute(bank.book, bank.seen("edge/A/t-1"), "t-1", 1, 7))
    before = bank.shown("visible", "hidden", "margin", "house", "players")
    bank.decide(SetTerms(msgspec.structs.replace(TERMS, visible="1/7", hidden="0.0003"), "approved"), "ana", "rui")
    assert bank.book.unit == 70_000
    assert bank.shown("visible", "hidden", "margin", "house", "players") == before
    bank.take(contribute(bank.book, bank.seen("edge/A/t-1"), "t-1", 1, 1))
    assert bank.shown("visible", "hidden") == (before[0] + Fraction(1, 7), before[1] + Fraction(3, 10_000))
    bank.decide(SetTerms(msgspec.structs.replace(TERMS, limit=10_000), "lower"), "ana", "rui")
    assert bank.shown("visible") == (10_000,)


def test_a_win_without_a_figure_waits_for_one() -> None:
    bank = Bank()
    bank.end("t-1:1", msgspec.structs.replace(FLUSH, combination="full_house", among=(1, 2)))
    with pytest.raises(Refused, match="no amount for full_house"):
        bank.obey(Confirm("ana", "t-1:1/1"))
    bank.decide(Price("t-1:1/1", 301, "as printed on the sign"), "ana", "rui")
    assert bank.shown("pending", "visible") == (300, 9_700)
    with pytest.raises(Refused, match="has an amount already"):
        bank.decide(Price("t-1:1/1", 301, "x"), "ana", "rui")
    bank.obey(Confirm("ana", "t-1:1/1"))


def test_two_people_reject_a_win() -> None:
    bank = Bank()
    bank.end("t-1:1", POOL)
    bank.decide(Reject("t-1:1/1", "a card was not of the deck"), "ana", "rui")
    assert bank.shown("visible", "house", "pending") == (10_000, -10_000, 0)
    with pytest.raises(Refused, match="reversed"):
        bank.decide(Reject("t-1:1/1", "x"), "ana", "rui")


def test_a_proposal_can_be_withdrawn_and_not_too_many_wait() -> None:
    bank = Bank()
    for number in range(20):
        bank.obey(Propose("ana", Reset("x")), f"a-{number}")
    with pytest.raises(Refused, match="wait already"):
        bank.obey(Propose("ana", Reset("x")), "a-20")
    bank.obey(Withdraw("rui", "a-3"))
    assert len(bank.book.proposals) == 19


# ---- what results and requests say


def test_a_result_is_read_for_a_pool() -> None:
    settled = (
        Settlement(1, "jackpot", 10, 0),
        Settlement(2, "jackpot", 10, 10),
        Settlement(1, "player", 100, 200),
    )
    result = Result("t-1:2026-11-20:1", settlements=settled, jackpots=(POOL, FLUSH))
    assert end_of(result, "t-1", "jackpot", "", by_rules=True) == Ended(
        result.round, "t-1", (POOL, FLUSH), "taken", ((1, 10),)
    )
    assert end_of(result, "t-1", "jackpot", "B", by_rules=True).awards == ()
    assert end_of(result, "t-1", "jackpot", "", by_rules=False, until=7).stakes is None
    demo = end_of(msgspec.structs.replace(result, demo=True), "t-1", "jackpot", "", by_rules=True)
    assert (demo.awards, demo.stakes) == ((), ())
    cases: tuple[tuple[Any, Any], ...] = (("", "returned"), ("carried", "carried"), ("returned", "returned"))
    for said, bets in cases:
        void = msgspec.structs.replace(result, void=Void(say("declared"), "returned", said), jackpots=())
        assert end_of(void, "t-1", "jackpot", "", by_rules=True) == Ended(result.round, "t-1", (), bets, ())


def test_an_input_without_effect_is_not_asked_for_again() -> None:
    bank = Bank()
    bank.take(note_input(bank.book, Seen("rules/A/t-1", 9, "e", NOON)))
    assert bank.book.heard == {"rules/A/t-1": 9}
    bank.take(note_input(bank.book, Seen("rules/A/t-1", 3, "e", NOON)))
    assert bank.book.heard == {"rules/A/t-1": 9}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"visible": "0.9", "hidden": "0.2"}, "more than the bet"),
        ({"limit": 5}, "below `seed`"),
        ({"visible": "1.5"}, "visible"),
        ({"visible": "1/0"}, "visible"),
        ({"seed": -1}, "seed"),
        ({"odd": "last"}, "odd"),
        ({"sed": 1}, "sed"),
    ],
)
def test_terms_that_cannot_be_are_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=text):
        msgspec.convert({"seed": 100, "visible": "0.01", **fields}, PoolTerms)


def test_orders_are_read_strictly() -> None:
    assert decode_order("pay", b'{"person": "ana", "win": "w"}') == Pay("ana", "w")
    for name, args, text in (
        ("burn", b"{}", "known: confirm"),
        ("pay", b'{"win": "w"}', "person"),
        ("pay", b'{"person": "", "win": "w"}', "person"),
        ("pay", b'{"person": "a", "win": "w", "x": 1}', "x"),
        ("propose", b'{"person": "a", "change": {"change": "steal"}}', "steal"),
    ):
        with pytest.raises(BadOrder, match=text):
            decode_order(name, args)


# ---- amounts in custody


def test_all_that_a_pool_holds_goes_to_another_one_and_not_a_fraction_is_lost() -> None:
    bank, other = machines(), Bank(PoolTerms(seed=500, visible="1/7", limit=10_400))
    bank.take(contribute(bank.book, bank.seen("edge/A/m-2"), "m-2", 1, 77, rounds=False))
    bank.take(report_win(bank.book, bank.seen("edge/A/m-1"), "m-1", 2, 1, 0))
    custody = sum(bank.shown("visible", "hidden"))
    proposal = bank.obey(Propose("ana", Transfer("q", "the hall burnt", "OSJ 12/26")))
    steps = transfer(bank.book, other.book, Approve("rui", proposal), "order-1", NOON)
    bank.take(steps[0])
    other.take(steps[1])
    assert bank.shown("visible", "hidden", "overflow", "transferred") == (0, 0, 0, custody)
    assert other.shown("transferred") == (-custody,)
    assert sum(other.shown("visible", "overflow")) == 500 + custody
    assert other.book.amount == 10_400
    assert bank.book.wins[0].state == "pending"  # what was won belongs to its winner
    for entry in (steps[0][1][0][1], steps[1][1][0][1]):
        assert entry.people == ("ana", "rui")
        assert entry.change == Transfer("q", "the hall burnt", "OSJ 12/26")
    assert obey(bank.book, Approve("rui", proposal), "order-1", NOON) == (bank.book, ())


def test_a_transfer_needs_two_people_and_no_open_round_in_both_pools() -> None:
    bank, other = machines(), Bank()
    with pytest.raises(Refused, match="itself"):
        bank.obey(Propose("ana", Transfer("p", "force majeure", "OSJ")))
    proposal = bank.obey(Propose("ana", Transfer("q", "force majeure", "OSJ")))
    with pytest.raises(Refused, match="another person"):
        transfer(bank.book, other.book, Approve("ana", proposal), "order-1", NOON)
    other.take(open_round(other.book, other.seen(), "t-1", "t-1:1"))
    with pytest.raises(Refused, match="t-1:1 is open"):
        transfer(bank.book, other.book, Approve("rui", proposal), "order-1", NOON)
    other.end("t-1:1")
    bank.take(transfer(bank.book, other.book, Approve("rui", proposal), "order-2", NOON)[0])
    with pytest.raises(Refused, match="nothing"):
        bank.obey(Propose("ana", Transfer("q", "force majeure", "OSJ")))


RATES = st.sampled_from(("0", "1/3", "3/200", "0.07", "1"))
MOVES = st.tuples(st.sampled_from(("bet", "win", "transfer")), st.integers(0, 1), st.integers(1, 999), st.booleans())


@given(st.tuples(RATES, RATES), st.integers(0, 500), st.lists(MOVES, max_size=30))
def test_machines_and_transfers_make_and_lose_no_coin(rates: tuple[str, str], limit: int, moves: list[Any]) -> None:
    """Bets, wins by the machine's amount or another one, and transfers between two pools of other rates."""
    banks = [
        Bank(PoolTerms(seed=100, visible=rate, limit=limit and 100 + limit, prizes={"level_1": Prize(pays="pool")}))
        for rate in rates
    ]
    bet = 0
    for kind, which, amount, shown in moves:
        bank, other = banks[which], banks[1 - which]
        match kind:
            case "bet":
                bank.take(contribute(bank.book, bank.seen("edge/A/m-1"), "m-1", 1, amount, rounds=False))
                bet += amount
            case "win":
                told = bank.book.amount if shown else amount
                bank.take(report_win(bank.book, bank.seen("edge/A/m-1"), "m-1", 1, 1, told, told))
            case _ if any(bank.shown("visible", "hidden", "overflow")):
                proposal = bank.obey(Propose("ana", Transfer("q", "force majeure", "OSJ")))
                given_, taken = transfer(bank.book, other.book, Approve("rui", proposal), f"t-{bank.seq}", NOON)
                bank.take(given_)
                other.take(taken)
            case _:
                pass
    assert sum(bank.shown("transferred")[0] for bank in banks) == 0
    assert sum(bank.shown("players")[0] for bank in banks) == -bet
    put_in = bet - sum(bank.shown("house")[0] for bank in banks)
    held = [account for bank in banks for account in bank.book.balances if account not in ("players", "house")]
    there = sum(sum(bank.shown(*set(held))) for bank in banks)
    assert there == put_in


def test_a_bet_that_cannot_stand_alone_goes_back_from_the_pool() -> None:
    """A device counted it, and the rules returned it: there was no main bet. The pool kept it."""
    bank = Sensors()
    bank.bet(1)
    until = bank.bet(2)
    settlements = (Settlement(1, "jackpot", 1_000, 0), Settlement(2, "jackpot", 1_000, 1_000))
    result = Result("t-1:1", "x", settlements=settlements)
    ended = end_of(result, "t-1", "jackpot", "", by_rules=False, until=until)
    assert ended.given_back == ((2, 1_000),)
    bank.take(end_round(bank.book, bank.seen(), ended))
    assert bank.shown("players", "visible", "hidden", "margin") == (-1_000, 10_015, 5, 980)
    bank.end("t-1:1", bets="returned", corrects="t-1:1", until=until)
    assert bank.shown("players", "visible", "hidden", "margin") == (0, 10_000, 0, 0)


@pytest.mark.parametrize(
    ("terms", "awards", "why"),
    [
        (PoolTerms(0, "0"), [POOL], "pool_empty"),
        (PoolTerms(1_000, "0"), [ROYAL, POOL], "earlier_prize"),
        (PoolTerms(9, "0", prizes={"straight_flush": Prize()}), [STRAIGHT], "below_a_coin"),
        (PoolTerms(2, "0"), [POOL], "more_seats_than_coins"),
        (PoolTerms(1_000, "0", prizes={"flush": Prize(0)}), [FLUSH], "set_to_zero"),
    ],
)
def test_a_win_of_nothing_says_why(terms: PoolTerms, awards: list[Award], why: str) -> None:
    bank = Bank(msgspec.structs.replace(terms, prizes={"royal_flush": Prize(), **terms.prizes}))
    bank.end("t-1:1", *awards)
    last = bank.book.wins[-1]
    assert (last.amount, last.why_zero) == (0, why)
    assert all(one.amount > 0 and not one.why_zero for one in bank.book.wins[:-1])


def test_what_people_change_stands_in_the_entry_before_and_after() -> None:
    bank = Bank()
    bank.end("t-1:1", FLUSH)
    win = bank.book.wins[0].id
    found: list[tuple[str, tuple[str, ...], str, str, str]] = []

    def order(order: Order, name: str) -> None:
        step = obey(bank.book, order, name, NOON)
        bank.take(step)
        for kind, entry in step[1]:
            found.extend((kind, entry.people, one.what, one.old, one.new) for one in entry.values)

    order(Confirm("ana", win), "1")
    order(Propose("ana", Reject(win, "no flush")), "2")
    order(Approve("rui", "2"), "3")
    order(Propose("ana", SetTerms(PoolTerms(9_000, "1/3", prizes={"flush": Prize(800)}), "new")), "4")
    order(Approve("rui", "4"), "5")
    two = ("ana", "rui")
    assert ("confirmed", ("ana",), "win_state", "pending", "confirmed") in found
    assert ("proposed", ("ana",), "win_state", "confirmed", "reversed") in found
    assert ("reversed", two, "win_state", "confirmed", "reversed") in found
    assert ("reversed", two, "visible", "9300", "10000") in found
    assert ("changed", two, "seed", "10000", "9000") in found
    assert ("changed", two, "visible_rate", "3/200", "1/3") in found
    assert ("changed", two, "prize:flush", "fixed:700", "fixed:800") in found
    assert ("changed", two, "prize:royal_flush", "fixed:8000", "") in found
