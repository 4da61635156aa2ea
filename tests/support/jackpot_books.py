"""A pool and its tables without a process: cards go through a ruleset, its verdicts and the bets into the books."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from helpers import START

from daemon.jackpots.book import Book, Seen, Step
from daemon.jackpots.ledger import begin, contribute, end_of, end_round, open_round, unbalanced
from daemon.jackpots.orders import obey
from protocols.contract.events import Event, WagerPlaced
from protocols.contract.jackpots import Approve, Change, Confirm, Order, Pay, PoolTerms, PoolWin, Propose
from protocols.contract.results import Corrected, Opened, Resolved, Result, Voided
from protocols.contract.topics import Envelope
from rules.engine.ruleset import Ruleset


class Pit:
    """One pool. `by_sensors`: its bets are counted when they are laid, as sensors tell them."""

    def __init__(self, terms: PoolTerms, tables: Mapping[str, Ruleset[Any]], *, by_sensors: bool = False) -> None:
        self.book: Book
        self.tables = dict(tables)
        self.states = {table: ruleset.start(table) for table, ruleset in tables.items()}
        self.results: list[Result] = []
        self.by_sensors = by_sensors
        self.number = 0
        self.clock = START
        self.kinds: list[str] = []
        self.take(begin("pool", terms, START))

    def take(self, step: Step) -> None:
        """Take over the next book; each must balance."""
        self.book, entries = step
        self.kinds += [kind for kind, _ in entries]
        assert unbalanced(self.book) == ""

    def seen(self, stream: str, at: datetime | None = None) -> Seen:
        """The next input of a stream."""
        self.number += 1
        return Seen(stream, self.number, f"i-{self.number}", at or self.clock)

    def play(self, table: str, events: Iterable[Event]) -> list[PoolWin]:
        """Play events at a table; returns the wins that are in the books now."""
        for event in events:
            self.number += 1
            self.clock += timedelta(seconds=1)
            seen = Envelope(f"e{self.number}", f"felt/1/site/table/{table}/device/d-1", self.clock, event, self.number)
            if self.by_sensors and isinstance(event, WagerPlaced) and event.bet == "jackpot":
                bet = self.seen(f"edge/A/{table}")
                self.take(contribute(self.book, bet, table, event.seat, event.amount))
            self.states[table], verdicts = self.tables[table].apply(self.states[table], seen)
            for verdict in verdicts:
                match verdict:
                    case Opened(round=name):
                        self.take(open_round(self.book, self.seen(f"rules/A/{table}"), table, name))
                    case Resolved(result=result) | Voided(result=result) | Corrected(result=result):
                        self.end(table, result)
                    case _:
                        pass
        return list(self.book.wins)

    def end(self, table: str, result: Result) -> None:
        """A result reaches the books."""
        self.results.append(result)
        told = self.seen(f"rules/A/{table}")
        ended = end_of(result, table, "jackpot", "", by_rules=not self.by_sensors, until=told.seq)
        self.take(end_round(self.book, told, ended))

    def order(self, order: Order) -> str:
        """An order of a person; returns its id."""
        self.number += 1
        self.take(obey(self.book, order, f"o-{self.number}", self.clock))
        return f"o-{self.number}"

    def change(self, change: Change) -> None:
        """Two people decide it."""
        self.order(Approve("rui", self.order(Propose("ana", change))))

    def pay(self, win: str, *seats: int) -> None:
        """One person confirms, another pays."""
        self.order(Confirm("ana", win, seats))
        self.pay_only(win)

    def pay_only(self, win: str) -> None:
        """Pay a confirmed win."""
        self.order(Pay("rui", win))

    def amounts(self) -> list[tuple[str, int, str]]:
        """The wins in their order: combination, amount, state."""
        return [(one.award.combination, one.amount, one.state) for one in self.book.wins]

    def shown(self, *accounts: str) -> tuple[Any, ...]:
        """Balances in minor units."""
        return tuple(Fraction(self.book.balance(account), self.book.unit) for account in accounts)
