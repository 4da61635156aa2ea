"""How people handle an incident: the steps from "taken" to "done", and who may take which. Pure values."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

__all__ = ["STEPS", "Stage", "Step", "StepKind", "added", "decode_steps", "encode_steps", "first", "following"]

StepKind: TypeAlias = Literal["taken", "on_way", "at_table", "handed", "done", "released"]
Stage: TypeAlias = Literal["", "taken", "on_way", "at_table", "handed", "done"]
"""The last step of an incident that a person has taken; "" where none has."""
STEPS: tuple[StepKind, ...] = get_args(StepKind)
KEPT_FIRST, KEPT_LAST = 10, 30
"""The number of kept steps of an incident. Response times need the first, the page the last."""
_NEXT: dict[Stage, StepKind] = {"taken": "on_way", "handed": "on_way", "on_way": "at_table", "at_table": "done"}


class Step(Struct, frozen=True):
    """One step. `by` pressed; `whom` is the new owner of an incident that was handed over."""

    time: datetime
    kind: StepKind
    by: str
    whom: str = ""
    note: str = ""


def following(stage: Stage) -> StepKind | None:
    """The step that the owner usually takes next."""
    return _NEXT.get(stage)


def added(steps: tuple[Step, ...], one: Step) -> tuple[Step, ...]:
    """The steps with one more; of too many, the first and the last ones are kept."""
    steps = (*steps, one)
    return steps if len(steps) <= KEPT_FIRST + KEPT_LAST else steps[:KEPT_FIRST] + steps[-KEPT_LAST:]


def first(steps: Iterable[Step], kind: StepKind) -> datetime | None:
    """The time of the first step of this kind."""
    return next((one.time for one in steps if one.kind == kind), None)


_decoder = msgspec.json.Decoder(tuple[Step, ...])


def encode_steps(steps: tuple[Step, ...]) -> str:
    """The steps in the form of the store."""
    return msgspec.json.encode(steps).decode()


def decode_steps(text: str) -> tuple[Step, ...]:
    return _decoder.decode(text) if text else ()
