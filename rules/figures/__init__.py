"""Probabilities and house edges of every bet of every game: one computed table for each ruleset.

`feltd figures` prints them. `feltd compute-figures` (the laboratory, simulators/lab/figures) computes them through the
rulesets, which takes an hour, and writes the files of this folder.
"""

from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby

import msgspec
from msgspec import Struct

__all__ = ["Figure", "figures", "figures_table", "games"]


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """One bet under one set of options ("" is the defaults), all as text; `difference` is "" where both are equal."""

    bet: str
    options: str
    probability: str
    edge_percent: str
    published: str = ""
    source: str = ""
    difference: str = ""
    method: str = "exact"


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    figure: tuple[Figure, ...]


def games() -> list[str]:
    """The rulesets whose figures are known."""
    return sorted(one.name.removesuffix(".toml") for one in files(__name__).iterdir() if one.name.endswith(".toml"))


def figures(ruleset: str) -> tuple[Figure, ...]:
    """The computed figures of a game; none where there are none."""
    path = files(__name__) / f"{ruleset}.toml"
    return msgspec.toml.decode(path.read_bytes(), type=_File).figure if path.is_file() else ()


def figures_table(name: str, rows: Sequence[Figure]) -> str:
    """The figures of a game as text for people."""
    lines = [f"{name}: {how_computed(rows)}, through the ruleset"]
    width = max(len(row.bet) for row in rows)
    for options, group in groupby(rows, key=lambda row: row.options):
        lines += ["", options or "default options"]
        for row in group:
            edge = f"house edge {row.edge_percent:>8} %" if row.edge_percent else ""
            beside = f"   published: {row.published} ({row.source})" if row.published else ""
            why = f"; {row.difference}" if row.difference else ""
            how = f"   {row.method}" if row.method != "exact" else ""
            lines.append(f"  {row.bet:{width}}  {row.probability:>12}  {edge}{beside}{why}{how}".rstrip())
    return "\n".join(lines)


def how_computed(rows: Sequence[Figure]) -> str:
    """How the figures of a game were found."""
    simulated = any(row.method.startswith("simulated") for row in rows)
    return "exact where every round can be counted, otherwise simulated" if simulated else "every end of a round"
