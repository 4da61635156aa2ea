"""A pool's books as values: accounts, rounds, tables, wins. `ledger` computes the next ones, `books` writes them."""

from datetime import datetime
from fractions import Fraction
from math import lcm
from typing import Literal, TypeAlias

from msgspec import Struct, field

from daemon.jackpots.prizes import takes_all
from protocols.contract.events import MOST
from protocols.contract.jackpots import BookEntry, PoolTerms, PoolWin, Proposal
from protocols.contract.results import Award

PLAYERS, HOUSE, VISIBLE, HIDDEN, OVERFLOW, MARGIN, PENDING, PAID, TRANSFERRED = (
    "players",
    "house",
    "visible",
    "hidden",
    "overflow",
    "margin",
    "pending",
    "paid",
    "transferred",
)
OUTSIDE = (PLAYERS, HOUSE, TRANSFERRED)
"""Accounts that may be negative, because money comes from them into the pool."""
OF_POOL = (VISIBLE, HIDDEN, OVERFLOW)
UNDONE = "the pool had not begun again for the win that is corrected"
KEPT_WINS = 25
"""Closed wins that a book keeps beside the open ones."""
SHOWN_WINS = 10
"""Waiting wins that a level lists; it counts the others."""
KEPT_ROUNDS = 5
"""Rounds of a table that can still be corrected in the books; the rules correct the last one."""
KEPT_STREAMS = 1000
MOST_STAKES = 1000
"""Bets of a round that has not ended: more than all seats can have."""
MOST_PROPOSALS = 20
KEPT_ORDERS = 200
"""Orders that are kept, so that one that is delivered twice is carried out once. A request is valid for 10 minutes."""
OPEN = ("pending", "confirmed")
Bets: TypeAlias = Literal["taken", "returned", "carried"]


def most_of(terms: PoolTerms) -> int:
    """The largest shown amount: the limit of the pool, or the largest number that every reader can read."""
    return terms.limit or MOST


def unit_of(terms: PoolTerms) -> int:
    return lcm(Fraction(terms.visible).denominator, Fraction(terms.hidden).denominator)


class Refused(Exception):
    """An order that is not carried out. The message gives the reason and the remedy."""


class Seen(Struct, frozen=True):
    """The position of an input: number `seq` of `stream` (edge or rules, journal, table), its id and time."""

    stream: str
    seq: int
    id: str
    at: datetime


class Stake(Struct, frozen=True):
    """A bet on the jackpot with its parts by account, in 1/`unit`. `seq`: of the event that reported it."""

    seat: int
    amount: int
    legs: dict[str, int] = {}
    unit: int = 1
    seq: int = 0


class Payment(Struct, frozen=True):
    """A payment key, number `seq` of the edge, pressed `by` a device; `round`: the one that it named, "" for the
    last.
    """

    seq: int
    id: str
    by: str
    round: str = ""


class RoundBook(Struct, frozen=True):
    """The effects of a round on the pool, for a later correction. `at`: its end. `bets`: what happened to its `stakes`.

    `awards`: those that were decided last, of a pool of `base`; -1: none. `parts`: the number of rounds that shared
    that pool. `reported`: the amount that a device reported where the terms have none. `told`, `shown`: the amount that
    a device reported, and the one that was sent to it. `numbered`: the number of its wins so far. `reseeded`: the seed
    that the house gave after them, in units; `refilled`: the same from overflow and reserve. `settled`: two people
    rejected or priced a win of it, and their decision stands. `place`: a later booked round has a higher one; 0: it is
    not booked yet. `after`: the balances of visible, hidden and overflow then, in units, with later corrections of this
    round and of earlier ones. `until`: the number of the edge's event that ended it; `corrected`: of the last event
    that gave it a result.
    """

    table: str
    stakes: tuple[Stake, ...] = ()
    bets: Bets = "taken"
    base: int = -1
    numbered: int = 0
    reseeded: int = 0
    refilled: dict[str, int] = {}
    at: datetime | None = None
    awards: tuple[Award, ...] = ()
    reported: int = -1
    told: int = 0
    shown: int = 0
    settled: bool = False
    parts: int = 1
    place: int = field(default=0, name="entry")
    after: dict[str, int] = {}
    until: int = 0
    corrected: int = 0

    @property
    def whole(self) -> bool:
        """Whether it won the whole pool."""
        return any(takes_all(one) for one in self.awards)


class TableBook(Struct, frozen=True):
    """A table of the pool. `open`: its open round. `stakes`: bets of a round that has not ended. `credit`: bets that a
    void round carried to the next one, until they are reported again or that round ends. `stream`: the source of the
    last verdict. `last`, `newest`: the latest time of all verdicts, and the id with the highest number. `sensors`: the
    stream of the edge, once a bet came after the pool began. `since`: when it joined an existing pool; earlier events
    there do not count for the pool. `payments`: the last payment keys.
    """

    open: str = ""
    stakes: tuple[Stake, ...] = ()
    credit: tuple[Stake, ...] = ()
    stream: str = ""
    last: datetime | None = None
    newest: str = ""
    sensors: str = ""
    since: datetime | None = None
    payments: tuple[Payment, ...] = ()


class Book(Struct, frozen=True):
    """The books of a pool. Events before `began` do not count.

    `heard`: the last used number of each stream. `orders`: the last ones that were carried out.
    """

    pool: str
    terms: PoolTerms
    began: datetime
    unit: int
    balances: dict[str, int]
    number: int = 0
    wins: tuple[PoolWin, ...] = ()
    rounds: dict[str, RoundBook] = {}
    tables: dict[str, TableBook] = {}
    heard: dict[str, int] = {}
    proposals: tuple[Proposal, ...] = ()
    orders: tuple[str, ...] = ()

    def since(self, table: str) -> datetime:
        """When the pool began to count this table."""
        return self.tables.get(table, TableBook()).since or self.began

    def balance(self, account: str) -> int:
        """The balance of an account, in 1/`unit` of a minor unit."""
        return self.balances.get(account, 0)

    @property
    def amount(self) -> int:
        """The displayed amount of the pool, in whole minor units."""
        return self.balance(VISIBLE) // self.unit

    def win(self, win: str) -> PoolWin:
        """The win with this id. Raises Refused."""
        for one in self.wins:
            if one.id == win:
                return one
        raise Refused(f"no win {win!r} is in the books of {self.pool}; `feltd jackpot` lists them")


class Ended(Struct, frozen=True):
    """The end of a round, as far as it concerns a pool.

    `stakes`: seat and amount of its bets on the jackpot where the rules report them; None where devices do: then the
    bets up to number `until` of the edge are of this round. `bets`: what happened to them; `given_back`: seat and
    amount of those that the rules returned because they cannot stand alone.
    """

    round: str
    table: str
    awards: tuple[Award, ...] = ()
    bets: Bets = "taken"
    stakes: tuple[tuple[int, int], ...] | None = ()
    until: int = 0
    corrects: str = ""
    given_back: tuple[tuple[int, int], ...] = ()


Step = tuple[Book, tuple[tuple[str, BookEntry], ...]]
"""The next book, and the entries with their types."""
