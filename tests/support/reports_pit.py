"""A console with a ledger of two days: rounds, faults and a jackpot. `make pictures` shows its reports."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from full_pit import FAULTS, GAMES, FullPit, full_pit

from daemon.jackpots.book import Seen
from daemon.jackpots.books import Books
from daemon.jackpots.ledger import contribute
from daemon.journal.store import Journal
from daemon.site.forward import payload_of
from daemon.site.ledger import Store, migrate
from daemon.site.ledger_rows import LedgerRow, entry_of, fault_of, verdict_of
from daemon.site.ledger_schema import READER, WRITER
from daemon.site.streams import EV, RES, subject_of, subject_of_pool
from protocols.contract.jackpots import PoolTerms
from protocols.contract.topics import Wire, device_topic, encode_wire
from simulators.lab.site.postgres import postgres

__all__ = ["REPORTS", "reports_pit"]

SITE, ROUNDS, BETS = "lisboa", 120, 60
BETWEEN = timedelta(minutes=15)
REPORTS = {"hold": "day,game", "rounds": "hour,table", "faults": "table,device,code", "jackpots": "day,pool,kind"}
"""By kind of report, the groups of its picture."""


@contextmanager
def reports_pit(count: int) -> Iterator[tuple[FullPit, dict[str, tuple[str, str]]]]:
    """The pit; by the name of a picture, who looks at which report."""
    now = datetime.now(UTC)
    since = now - ROUNDS * BETWEEN
    with tempfile.TemporaryDirectory() as name, postgres() as database:
        migrate(database.url())
        ledger = f'[ledger]\nreports = "{database.url(READER)}"\n'
        with full_pit(Path(name), count, more=ledger) as pit, closing(Store(database.url(WRITER))) as store:
            store.write(_rounds(pit.names, since), RES, str(since), 1, now)
            store.write([*_faults(pit, since), *_entries(Path(name), since)], EV, str(since), 1, now)
            days = f"from={since:%Y-%m-%d}&to={now:%Y-%m-%d}"
            yield (
                pit,
                {
                    f"reports-{kind}": ("mona", f"/reports?kind={kind}&{days}&by={by.replace(',', '&by=')}")
                    for kind, by in REPORTS.items()
                },
            )


def _rounds(tables: list[str], since: datetime) -> list[LedgerRow]:
    """Bets of 100.00 to 5,000.00, doubled as often as lost. Each 23rd round is void, of each 29th no bet is known."""
    dice, found = random.Random(7), list[LedgerRow]()
    for table in tables:
        for number in range(1, ROUNDS + 1):
            at, stake = since + number * BETWEEN, dice.randint(1, 50) * 10_000
            ruleset = GAMES[table.partition("-")[0]][0]
            result: dict[str, Any] = {"round": f"{table}:{at:%Y-%m-%d}:{number}", "ruleset": ruleset}
            if number % 23 == 0:
                result["void"] = {"reason": {"code": "x", "values": {}}, "bets": "returned"}
            elif number % 29:
                bet = {"seat": 1, "bet": "red", "stake": stake, "returned": dice.choice((0, 2 * stake))}
                result["settlements"] = [bet]
            data = msgspec.Raw(msgspec.json.encode({"result": result}))
            wire = Wire(
                "1.0", f"edge-7:{table}:{number}/0", SITE, "resolved", at, number, "", "R", data=data, cause_journal="J"
            )  # fmt: skip
            row = verdict_of(subject_of(RES, SITE, table), encode_wire(wire))
            found += [row] if row else []
    return found


def _faults(pit: FullPit, since: datetime) -> list[LedgerRow]:
    """A few of each device that has one."""
    dice, found, number = random.Random(8), list[LedgerRow](), 0
    for (table, device), one in pit.console.house.site.devices.items():
        for _ in range(dice.randint(1, 5) if one.meta.driver in FAULTS else 0):
            number += 1
            said = {"code": FAULTS[one.meta.driver], "text": "x", "severity": "error", "remedy": "x"}
            wire = Wire(
                "1.0", f"edge-7:{table}:{number}", device_topic(SITE, table, device, "")[:-1],
                "device.faulted", since + dice.randint(1, ROUNDS) * BETWEEN, number, "", "J",
                data=msgspec.Raw(msgspec.json.encode(said)),
            )  # fmt: skip
            row = fault_of(subject_of(EV, SITE, table), encode_wire(wire))
            found += [row] if row else []
    return found


def _entries(folder: Path, since: datetime) -> list[LedgerRow]:
    """Of a pool that takes parts of a smallest unit."""
    with closing(Journal(folder / "books.db")) as journal:
        books = Books(journal, {"grand": PoolTerms(seed=500_000, visible="1/3", hidden="0.01")}, since)
        for number in range(1, BETS + 1):
            seen = Seen("edge/A/bac-01", number, f"i-{number}", since + number * 2 * BETWEEN)
            books.apply(contribute(books["grand"], seen, "bac-01", 1, 1000 + number, rounds=False), seen.id, seen.at)
        books.commit()
        messages = [payload_of(row, "jackpots", SITE, "jackpots", "B") for row in journal.after(0, 10**6)]
    return [entry_of(subject_of_pool(SITE, "grand"), one) for one in messages]
