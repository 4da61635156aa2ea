"""The final checks of the journals, shared by the virtual and the real campaign."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from daemon.config.model import Config, Table
from daemon.jackpots.book import SHOWN_WINS
from daemon.journal.rows import Row, id_and_journal
from protocols.contract.events import WagerPlaced, WagerWithdrawn, decode_data
from protocols.contract.results import ENDS, decode_end, encode_verdict, type_of
from protocols.contract.topics import Envelope, device_topic
from rules import RULESETS
from rules.engine.ruleset import Ruleset, judge, options_from
from simulators.lab.campaign.disk import WrongError
from simulators.lab.pools import Supervisors
from simulators.tables.stud_poker import StudPokerTable
from simulators.tables.table import Table as Dealt

__all__ = ["done_by_people", "judge_journals"]


def done_by_people(tables: Iterable[Dealt], people: Supervisors) -> Counter[str]:
    """Unusual acts of dealers and supervisors on jackpots, counted for the report."""
    done = Counter(people.done)
    for table in tables:
        if isinstance(table, StudPokerTable):
            done.update(table.supervised)
    done["more wins wait than a level shows"] += people.most_waiting > SHOWN_WINS
    return Counter({f"people: {what}": count for what, count in done.items() if count})


def judge_journals(config: Config, events: Sequence[Row], told: Mapping[str, Sequence[Row]]) -> None:
    """Check for gaps, failed drivers and duplicates, and each of `told` against the events. Raises WrongError.

    `events` are all rows of the edge, `told` those of each consumer by its name.
    """
    _gapless(config.edge.name, events)
    for row in events:
        if row.type == "device.faulted" and b'"driver.bug"' in row.data:
            raise WrongError(f"a driver failed: {row.data.decode()}")
    _requests_once(events)
    for name, rows in told.items():
        _gapless(name, rows)
        _once(name, rows)
    for table in config.table:
        if not table.ruleset:
            continue
        should = _judged_again(config, table, events)
        for name, rows in told.items():
            said = [(row.type, row.data, id_and_journal(row.cause)[0]) for row in rows if row.place == table.name]
            if said != should:
                at = next((n for n, (a, b) in enumerate(zip(said, should, strict=False)) if a != b), len(said))
                raise WrongError(
                    f"{name} published other verdicts of {table.name} than its events give, from verdict {at + 1}: "
                    f"{said[at : at + 1]} for {should[at : at + 1]}"
                )


def _gapless(name: str, rows: Sequence[Row]) -> None:
    last: Counter[str] = Counter()
    for number, row in enumerate(rows, 1):
        last[row.place] += 1
        if row.n != number or row.seq != last[row.place]:
            raise WrongError(f"{name}: row {row.n} of {row.place} has seq {row.seq} after {last[row.place] - 1}")


def _requests_once(rows: Sequence[Row]) -> None:
    """Check that a repeated request of a betting terminal was journalled once."""
    wagers = [(row.place, decode_data(row.type, row.data)) for row in rows if row.type.startswith("wager.")]
    kept = Counter(
        (table, one.terminal, one.request)
        for table, one in wagers
        if isinstance(one, WagerPlaced | WagerWithdrawn) and one.request
    )
    twice = [request for request, times in kept.items() if times > 1]
    if twice:
        raise WrongError(f"requests of betting terminals were kept twice: {twice[:3]}")


def _once(name: str, rows: Sequence[Row]) -> None:
    causes = Counter(row.cause for row in rows)
    twice = [cause for cause, times in causes.items() if times > 1]
    if twice:
        raise WrongError(f"{name} published verdicts twice: {twice[:3]}")
    ended: set[str] = set()
    for row in rows:
        if row.type in ENDS[:2]:
            result = decode_end(row.data)
            if result.round in ended:
                raise WrongError(f"{name}: the round {result.round} ended twice")
            ended.add(result.round)
            if row.type == "voided" and not (result.void and result.void.reason):
                raise WrongError(f"{name}: the round {result.round} is void for no stated reason")


def _judged_again(config: Config, table: Table, events: Sequence[Row]) -> list[tuple[str, bytes, str]]:
    """The verdicts of the rules on the journal's events, each applied once and in order."""
    kind = RULESETS[table.ruleset]
    ruleset: Ruleset[Any] = kind(options_from(kind, table.options))
    state = ruleset.start(table.name)
    verdicts: list[tuple[str, bytes, str]] = []
    for row in events:
        if row.place != table.name:
            continue
        source = device_topic(config.site.name, table.name, row.device, "")[:-1]
        event = decode_data(row.type, row.data)
        id_ = f"{config.edge.name}:{table.name}:{row.seq}"
        state, new = judge(ruleset, state, Envelope(id_, source, row.time, event, row.seq))
        for number, verdict in enumerate(new):
            verdicts.append((type_of(verdict), encode_verdict(verdict), f"{id_}/{number}"))
    return verdicts
