"""Mutants of the rules: each number and each comparison is changed once, and a test of the game must see it.

    python -m tests.support.mutants                       all files of `TESTS`
    python -m tests.support.mutants rules/angola/craps.py  one file
    python -m tests.support.mutants --sample 5 --seed 3    so many mutants, chosen by chance

A number n, also of printed odds, becomes n + 1; `<` becomes `<=`, `==` becomes `!=`, and so on; `a < b` becomes
`a < b + 1`. Types, the -1 that a constant gives to "none", and sizes of caches are left as they are. The tests of a
file run in a process for each of its mutants, forked by `mutant_runner.py`. A mutant that no test sees is a survivor:
it is named, and the run fails, unless tests/mutants.toml knows it, with the reason why no test can tell it from the
rules.

`make nightly` runs all of them, tests/rules/test_mutants.py a few.
"""

import ast
import json
import random
import re
import sys
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count, environ, pathsep
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from time import monotonic
from typing import Final

from msgspec import Struct

TOP: Final = Path(__file__).parents[2]
KNOWN: Final = TOP / "tests" / "mutants.toml"
RUNNER: Final = Path(__file__).with_name("mutant_runner.py")
OTHER: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
"""What a comparison becomes."""
ODDS: Final = re.compile(r"([0-9]+)((?:/[0-9]+)?)")
SHARED: Final = ("tests/rules/test_limits.py", "tests/rules/test_duties.py", "tests/rules/test_single_outcome.py")
OPTIONS_AND_ODDS: Final = "tests/law/test_options_and_odds.py"
CHEMIN: Final = ("bank", "coup", "decisions", "table")
TESTS: Final[dict[str, tuple[str, ...]]] = {
    **{
        f"rules/{text}.py": (f"tests/law/test_{text.replace('/', '_')}.py", OPTIONS_AND_ODDS)
        for text in (
            *("angola/american_roulette", "angola/baccarat", "angola/blackjack"),
            *("angola/craps", "angola/cussec", "angola/french_bank", "angola/french_roulette", "angola/stud_poker"),
            *("macau/baccarat", "macau/blackjack", "macau/cussec", "macau/fantan", "macau/fish_prawn_crab"),
            *("macau/roulette", "macau/stud_poker"),
        )
    },
    "rules/angola/roulette.py": (
        "tests/law/test_angola_american_roulette.py",
        "tests/law/test_angola_french_roulette.py",
    ),
    "rules/angola/baccarat_macau.py": ("tests/law/test_angola_baccarat.py", OPTIONS_AND_ODDS),
    "rules/angola/baccarat_table.py": ("tests/law/test_angola_baccarat.py", OPTIONS_AND_ODDS),
    "rules/macau/blackjack_bets.py": ("tests/law/test_macau_blackjack.py", OPTIONS_AND_ODDS),
    "rules/macau/blackjack_options.py": ("tests/law/test_macau_blackjack.py", OPTIONS_AND_ODDS),
    "rules/angola/gaming_machines.py": ("tests/law/test_angola_gaming_machines.py",),
    "rules/games/craps.py": ("tests/law/test_angola_craps.py",),
    **dict.fromkeys(
        ("rules/angola/chemin_de_fer.py", *(f"rules/games/chemin_{part}.py" for part in CHEMIN)),
        ("tests/law/test_angola_chemin_de_fer.py",),
    ),
    "rules/games/poker.py": ("tests/rules/test_poker.py", "tests/law/test_angola_stud_poker.py"),
    **{
        f"rules/games/poker_{part}.py": (f"tests/law/test_angola_poker_{part}.py",)
        for part in ("betting", "hands", "pots")
    },
    **{
        f"rules/angola/{name}.py": (f"tests/law/test_angola_{name}.py", "tests/rules/test_poker_oracle.py")
        for name in ("holdem", "omaha", "synthetic_poker", "unbanked_poker")
    },
    **{
        f"rules/games/poker_{part}.py": (
            *("tests/law/test_angola_poker_blinds.py", "tests/law/test_angola_unbanked_poker.py"),
            *("tests/law/test_angola_synthetic_poker.py", "tests/rules/test_poker_oracle.py"),
        )
        for part in ("game", "table")
    },
    "rules/games/thrown_dice.py": ("tests/law/test_angola_french_bank.py",),
    "rules/games/shaken_dice.py": ("tests/law/test_macau_cussec.py", "tests/law/test_macau_fish_prawn_crab.py"),
    "rules/games/roulette_cloth.py": ("tests/law/test_macau_roulette.py", "tests/law/test_angola_american_roulette.py"),
    "rules/games/roulette.py": ("tests/law/test_macau_roulette.py", "tests/law/test_angola_american_roulette.py"),
    "rules/games/baccarat.py": ("tests/law/test_macau_baccarat.py", "tests/law/test_angola_baccarat.py"),
    "rules/games/baccarat_coups.py": ("tests/law/test_macau_baccarat.py", "tests/law/test_angola_baccarat.py"),
    "rules/games/blackjack.py": ("tests/law/test_angola_blackjack.py", "tests/law/test_macau_blackjack.py"),
    "rules/games/blackjack_bettors.py": ("tests/law/test_angola_blackjack.py",),
    "rules/games/blackjack_jackpot.py": ("tests/law/test_angola_blackjack.py", "tests/rules/test_blackjack_jackpot.py"),
    "rules/games/blackjack_decisions.py": ("tests/law/test_angola_blackjack.py", "tests/law/test_macau_blackjack.py"),
    "rules/games/blackjack_stakes.py": ("tests/law/test_angola_blackjack.py", "tests/law/test_macau_blackjack.py"),
    "rules/games/blackjack_watched.py": ("tests/law/test_angola_blackjack.py", *SHARED),
    "rules/games/alternating_roulette.py": (
        "tests/law/test_angola_french_roulette.py",
        "tests/law/test_angola_american_roulette.py",
    ),
    "rules/games/cards.py": ("tests/law/test_angola_blackjack.py", "tests/law/test_macau_baccarat.py"),
    "rules/games/cussec.py": ("tests/law/test_angola_cussec.py", "tests/law/test_macau_cussec.py"),
    "rules/games/shuffler_watch.py": ("tests/rules/test_shuffler_watch.py", "tests/law/test_angola_blackjack.py"),
    "rules/games/stud_poker_game.py": ("tests/law/test_angola_stud_poker.py", "tests/law/test_macau_stud_poker.py"),
    "rules/engine/cloth.py": (*SHARED, "tests/hostile/test_late_chips.py"),
    "rules/engine/duties.py": SHARED,
    "rules/engine/limits.py": SHARED,
    "rules/engine/money.py": ("tests/rules/test_settlements.py", "tests/law/test_macau_fantan.py"),
}
"""The files of rules with numbers of the law, and the tests that must see a change of them."""
WITHOUT_NUMBERS: Final = (
    "rules/games/blackjack_corrections.py",
    "rules/games/blackjack_round.py",
    "rules/games/stud_poker*.py",
)
"""Files of games whose numbers are places in tuples and counts of cards on the table, and none that a text prints."""


class Mutant(Struct, frozen=True):
    """One change: `line` as it stands, `was` and `becomes`, and which of equal ones on equal lines it is."""

    path: str
    line: str
    was: str
    becomes: str
    number: int
    place: int
    at: int

    @property
    def name(self) -> str:
        """What tests/mutants.toml calls it: it survives a change of other lines."""
        again = f" #{self.number}" if self.number else ""
        return f"{self.path}: {self.line}: {self.was} -> {self.becomes}{again}"


def _more(value: object) -> int | float | str | None:
    """A number, or printed odds ("3/2"), one larger; None of anything else."""
    match value:
        case bool():
            return None
        case int() | float():
            return value + 1
        case str() if odds := ODDS.fullmatch(value):
            return f"{int(odds[1]) + 1}{odds[2]}"
        case _:
            return None


class _Changer(ast.NodeTransformer):
    """Lists the places of a file that can be changed, and changes the one number `wanted`."""

    def __init__(self, wanted: int = -1) -> None:
        self.wanted = wanted
        self.places: list[tuple[int, str, str]] = []

    def _here(self, at: int, was: str, becomes: str) -> bool:
        self.places.append((at, was, becomes))
        return len(self.places) - 1 == self.wanted

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Types are for mypy; a constant of -1 says that there is no number, as any other below 0 would."""
        is_type = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
        says_none = isinstance(node.value, ast.UnaryOp) and ast.unparse(node.value) == "-1"
        return node if is_type or says_none else self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return node if node.arg == "maxsize" else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        becomes = _more(node.value)
        if becomes is None or not self._here(node.lineno, repr(node.value), repr(becomes)):
            return node
        return ast.copy_location(ast.Constant(becomes), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for place, op in enumerate(node.ops):
            other = OTHER.get(type(op))
            if other is not None and self._here(node.lineno, type(op).__name__, other.__name__):
                node.ops[place] = other()
            if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                right = node.comparators[place]
                if self._here(node.lineno, ast.unparse(right), f"{ast.unparse(right)} + 1"):
                    node.comparators[place] = ast.BinOp(right, ast.Add(), ast.Constant(1))
        return node


def mutants(path: str) -> Iterator[Mutant]:
    """Each change of a file."""
    source = (TOP / path).read_text()
    lines, lister = source.splitlines(), _Changer()
    lister.visit(ast.parse(source))
    met: dict[tuple[str, str, str], int] = {}
    for place, (at, was, becomes) in enumerate(lister.places):
        line = lines[at - 1].strip()
        number = met[line, was, becomes] = met.get((line, was, becomes), -1) + 1
        yield Mutant(path, line, was, becomes, number, place, at)


def changed_tree(source: str, place: int) -> ast.Module:
    """The file with the change at this place."""
    tree: ast.Module = _Changer(place).visit(ast.parse(source))
    return ast.fix_missing_locations(tree)


def killers(path: str, chosen: Sequence[Mutant]) -> Iterator[tuple[Mutant, str]]:
    """Each mutant of a file with the test that fails with it; "" for a survivor."""
    command = [sys.executable, str(RUNNER), path, *TESTS[path]]
    env = {name: value for name, value in environ.items() if name != "FELTD_NIGHTLY"}
    env["PYTHONPATH"] = pathsep.join(map(str, (TOP, TOP / "tests" / "support")))
    with TemporaryFile("w+") as places:
        places.writelines(f"{one.place} {one.at}\n" for one in chosen)
        places.seek(0)
        with Popen(command, cwd=TOP, stdin=places, stdout=PIPE, text=True, env=env) as run:
            assert run.stdout
            for one, line in zip(chosen, run.stdout, strict=False):
                place, killer = json.loads(line)
                assert place == one.place
                yield one, killer
    if run.returncode:
        sys.exit(f"{path}: the tests could not be run with its mutants")


def known() -> dict[str, str]:
    """The survivors that no test can tell from the rules, each with its reason."""
    return {one["mutant"]: one["reason"] for one in tomllib.loads(KNOWN.read_text()).get("survivor", [])}


def survivors(path: str, chosen: Sequence[Mutant]) -> list[Mutant]:
    """Those of a file that no test sees and that are not known; says how many and how long they took."""
    excused, before = known(), monotonic()
    tried = [one for one in chosen if one.name not in excused]
    left = [one for one, killer in killers(path, tried) if not killer]
    lines = [f"survives: {one.name}   (line {one.at})\n" for one in left]
    took_s = monotonic() - before
    lines.append(
        f"{path}: {len(chosen)} mutants, {len(chosen) - len(tried)} excused, {len(left)} survivors, {took_s:.0f} s\n"
    )
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
    return left


def main() -> None:
    """Try the mutants that the command line names, and name the survivors."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", default=sorted(TESTS))
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1)
    given = parser.parse_args()
    chosen = [one for path in given.files for one in mutants(path)]
    if given.sample:
        chosen = random.Random(given.seed).sample(chosen, min(given.sample, len(chosen)))
    by_file = {path: [one for one in chosen if one.path == path] for path in {one.path: None for one in chosen}}
    with ThreadPoolExecutor(given.jobs) as pool:
        left = sum(
            map(len, pool.map(survivors, *zip(*((path, some) for path, some in by_file.items() if some), strict=True)))
        )
    sys.stdout.write(f"{len(chosen)} mutants, {left} survivors that tests/mutants.toml does not name\n")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
