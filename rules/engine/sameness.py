"""Whether two results, or two orders of the same facts, are equivalent. Called by refold."""

from typing import Any, TypeVar

from msgspec import Struct, json
from msgspec.structs import replace

from rules.engine.facts import Fact, Frame, Step, Table
from rules.engine.ruleset import Closed, Corrected, Noted, Opened, Resolved, Result, Suspended, Verdict, Voided

P = TypeVar("P", bound=Struct)


def same_result(one: Result, other: Result) -> bool:
    """Whether two results are the same, apart from evidence, irregularities, articles and `supersedes`; two
    void ones always are.
    """
    return (one.void is not None and other.void is not None) or _bare(one) == _bare(other)


def _bare(result: Result) -> Result:
    return replace(as_read_back(result), evidence=(), irregularities=(), law=(), supersedes="")


def as_read_back(result: Result) -> Result:
    """The result as read back from a stored state: its outcome has JSON's types."""
    return replace(result, outcome=json.decode(json.encode(result.outcome)))


def same_outcome(last: Frame[Any] | None, said: tuple[Verdict, ...]) -> bool:
    """Whether the last round has this outcome, apart from its bets."""
    if last is None or last.result is None:
        return True
    ends = [one.result for one in said if isinstance(one, Resolved | Voided | Corrected)]
    return [as_read_back(one).outcome for one in ends if one.round == last.round.id][-1:] == [last.result.outcome]


def same_step(one: Step[P], other: Step[P]) -> bool:
    """Whether both steps lead to the same state and the same verdicts."""

    def said(verdicts: tuple[Verdict, ...]) -> list[object]:
        return [_bare(verdict.result) if hasattr(verdict, "result") else verdict for verdict in verdicts]

    tables = [
        replace(table, open=_without_facts(table.open), last=_without_facts(table.last)) for table, _ in (one, other)
    ]
    return tables[0] == tables[1] and said(one[1]) == said(other[1])


def same_open(one: Table[P], other: Table[P]) -> bool:
    """Whether both tables have the same open round at the same point of play."""
    first, second = _without_facts(one.open), _without_facts(other.open)
    if first is None or second is None or one.position != other.position or one.doubt != other.doubt:
        return False
    return first.round == second.round and first.lost == second.lost


def disputed(said: tuple[Verdict, ...]) -> set[str]:
    """The rounds that were resolved and put in doubt by the same facts."""
    resolved, found = set[str](), set[str]()
    for verdict in said:
        if isinstance(verdict, Resolved):
            resolved.add(verdict.result.round)
        elif isinstance(verdict, Suspended) and verdict.round in resolved:
            found.add(verdict.round)
    return found


def is_new(verdict: Verdict, known: dict[str, Frame[P]], changed: set[str], new: Table[P], fact: Fact) -> bool:
    """Whether a verdict of the facts played again was not published yet."""
    match verdict:
        case Opened(id_):
            return id_ not in known
        case Closed(id_):
            return id_ not in known or not known[id_].round.closed
        case Suspended(id_, reason, _):
            if id_ not in known:
                return True
            waits = new.open is not None and new.open.round.suspended == reason and new.open.round.id == id_
            return waits and not known[id_].round.suspended
        case Noted(note):
            return note.event == fact.id
        case Resolved(result) | Voided(result) | Corrected(result):
            frame = known.get(result.round)
            if frame is None or frame.result is None:
                return True
            return result.round in changed and fact.id in result.evidence and isinstance(verdict, Corrected)


def _without_facts(frame: Frame[P] | None) -> Frame[P] | None:
    if frame is None:
        return None
    result = _bare(frame.result) if frame.result is not None else None
    round_ = replace(frame.round, evidence=(), irregularities=())
    return replace(frame, round=round_, result=result, facts=(), after=())
