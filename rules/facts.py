"""The facts of a round as the struct of its game, which the ruleset names.

Called by the console and other readers of results. An unknown ruleset has the facts that all games share.
"""

from typing import Any

from msgspec import Raw

from protocols.contract.facts import RoundFacts
from protocols.contract.results import Result, decode_end, facts_as
from rules import RULESETS

__all__ = ["facts_kind", "facts_of", "facts_of_result", "result_with_facts"]


def facts_kind(ruleset: str) -> type[RoundFacts]:
    """The struct of the facts of a game."""
    return RULESETS[ruleset].Facts if ruleset in RULESETS else RoundFacts


def facts_of(ruleset: str, facts: dict[str, Any]) -> RoundFacts:
    """The facts of a round of this ruleset. Raises BadRound."""
    return facts_as(facts_kind(ruleset), facts)


def facts_of_result(result: Result) -> RoundFacts:
    """The facts of a result. Raises BadRound."""
    return facts_of(result.ruleset, result.outcome)


def result_with_facts(data: bytes | Raw) -> Result:
    """The result in the data of an envelope, with facts that fit its game. Raises BadRound."""
    result = decode_end(data)
    facts_of_result(result)
    return result
