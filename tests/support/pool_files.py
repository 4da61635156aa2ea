"""A configuration with a pool, rounds in its books, and the command line, for the tests of `feltd jackpot`."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from click.testing import CliRunner, Result

from daemon.cli.main import main
from daemon.config.model import load
from daemon.jackpots.book import Ended, Seen
from daemon.jackpots.books import Books
from daemon.jackpots.ledger import end_round
from daemon.jackpots.orders import obey
from daemon.journal.store import Journal
from protocols.contract.jackpots import Adjust, Confirm, Pay, Propose
from protocols.contract.results import Award

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
[jackpots]
journal = "{folder}/jackpots.db"
[[table]]
name = "bac-1"
ruleset = "macau.baccarat"
[table.options]
jackpot = "A"
[[jackpot]]
name = "red"
tables = ["bac-1"]
award = "A"
seed = 1000000
visible = "3/7"
[jackpot.prizes]
single_pair = {{ fixed = 5000 }}
"""


def play(config: Path, rounds: int = 30) -> None:
    """Rounds with a pair each, the first one paid; a change waits."""
    terms = load(config).jackpot[0].terms()
    journal = Journal(config.parent / "jackpots.db")
    books = Books(journal, {"red": terms}, NOON)
    pair = Award("A", "single_pair", "fixed", "law", "", (1, 2, 3))
    for n in range(1, rounds + 1):
        seen = Seen("rules/A/bac-1", n, f"e:bac-1:{n}/0", NOON + timedelta(minutes=n))
        ended = Ended(f"bac-1:{n}", "bac-1", (pair,), stakes=((1, 100),))
        books.apply(end_round(books["red"], seen, ended), seen.id, seen.at)
    for name, order in (("a", Confirm("ana", "bac-1:1/1")), ("b", Pay("rui", "bac-1:1/1"))):
        books.apply(obey(books["red"], order, name, NOON), name, NOON)
    books.apply(obey(books["red"], Propose("ana", Adjust("visible", 5, "audit")), "p", NOON), "p", NOON)
    books.commit()
    journal.close()


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])
