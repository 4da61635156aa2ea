"""`docs/reference/games/`: one page per ruleset, from its code, its checklist of the law and the tests that prove it.

`make games` writes them; `test_game_pages.py` fails when they differ. `rules/law/<ruleset>.toml` says in `[articles]`
what each paragraph of the text demands, in `[not_ours]` what no program can keep, and why. A paragraph of an edition
that is not the ruleset's default has it before a colon: "2003:3(3)". `variants`, where given, are options that show
bets which no single option shows. A test proves a paragraph by `@pytest.mark.article("5(1)")`, in a file whose constant
`LAW` is the ruleset's id, or those of several games with the same paragraphs. Test files are read, not imported.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.inspect import BoolType, IntType, LiteralType, Metadata, StructType, type_info

from daemon.console.articles import Proofs as Proven, Text, text_of
from rules import RULESETS
from rules.engine.duties import game_type
from rules.engine.ruleset import Bet, options_of
from rules.figures import figures

ROOT: Final = Path(__file__).parents[2]
TESTS: Final = ROOT / "tests"
LAWS: Final = ROOT / "rules/law"
PROOFS: Final = LAWS / "proofs.json"
PAGES: Final = ROOT / "docs/reference/games"
README: Final = ROOT / "README.md"
_BEGIN, _END = "<!-- games: `make games` writes this table -->\n", "<!-- end of games -->"

# Marks under which a test may not run or may fail: it proves nothing then.
UNPROVEN: Final = frozenset({"skip", "skipif", "xfail"})


# ---- the checklist of a text


def checklist(name: str) -> Text | None:
    """What the ruleset's text demands; None where nobody has written it down."""
    return text_of(name)


# ---- what the test files say


class Proofs(Struct, frozen=True):
    """One test file: the games it is of, the tests that prove each paragraph, the words it tries, what is wrong."""

    name: str
    laws: tuple[str, ...]
    tests: dict[str, tuple[str, ...]]
    words: frozenset[str]
    mistakes: tuple[str, ...]


def read_tests(path: Path) -> Proofs:
    """Read the `article` markers of a test file, and every word that stands in its values."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    laws = next(filter(None, map(_laws, tree.body)), ())
    proofs: dict[str, list[str]] = {}
    mistakes: list[str] = []
    read: set[ast.AST] = set()
    for test, marked in _tests(tree.body):
        marks = [one for one in marked.decorator_list if _mark(one) == "article"]
        read.update(_called(one) for one in marks)
        named = [argument for one in marks if isinstance(one, ast.Call) for argument in one.args]
        if marks and not named:
            mistakes.append(f"{test}: a marker that names no article")
        for argument in named:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                proofs.setdefault(argument.value, []).append(test)
            else:
                mistakes.append(f"{test}: an article must stand as a string: {ast.unparse(argument)}")
        if marks and any(_mark(one) in UNPROVEN for one in marked.decorator_list):
            mistakes.append(f"{test}: proves nothing while it may be skipped or fail")
    anywhere = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _mark(node) == "article"]
    mistakes += [f"line {one.lineno}: an article marker that is on no test" for one in anywhere if one not in read]
    if proofs and (not laws or set(laws) - set(RULESETS)):
        mistakes.append(f"article markers, but LAW names no ruleset: {', '.join(laws)!r}")
    found = {article: tuple(dict.fromkeys(tests)) for article, tests in proofs.items()}
    return Proofs(path.name, laws, found, frozenset(_words(tree)), tuple(mistakes))


def _laws(line: ast.stmt) -> tuple[str, ...]:
    match line:
        case (
            ast.Assign(targets=[ast.Name(id="LAW")], value=value)
            | ast.AnnAssign(target=ast.Name(id="LAW"), value=value)
        ):
            named = value.elts if isinstance(value, ast.Tuple) else [value]
            return tuple(one.value for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str))
        case _:
            return ()


def _tests(
    body: Sequence[ast.stmt], within: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """What pytest collects, classes and functions, by name."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield within + name, node
            case ast.ClassDef(name=name) if name.startswith("Test"):
                yield within + name, node
                yield from _tests(node.body, f"{within}{name}::")
            case _:
                pass


def _called(node: ast.AST) -> ast.AST:
    return node.func if isinstance(node, ast.Call) else node


def _mark(node: ast.AST) -> str:
    """Which of pytest's marks this is: `pytest.mark.<it>`, called or not."""
    match _called(node):
        case ast.Attribute(attr=name, value=ast.Attribute(attr="mark") | ast.Name(id="mark")):
            return name
        case _:
            return ""


def _words(tree: ast.AST) -> Iterator[str]:
    """Words of its strings and names of its arguments; what stands in a docstring is not tried."""
    nodes = list(ast.walk(tree))
    said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if id(node) not in said:
                yield from re.findall(r"\w+", text)
            case ast.keyword(arg=str(name)):
                yield name
            case _:
                pass


@cache
def all_proofs() -> tuple[Proofs, ...]:
    """Every test file, in the order of their names."""
    return tuple(read_tests(path) for path in sorted(TESTS.rglob("test_*.py")))


def proofs_of(name: str) -> tuple[Proofs, ...]:
    """The test files of a game."""
    return tuple(one for one in all_proofs() if name in one.laws)


# ---- the bets of a game under all its options


def family(bet: str) -> str:
    """The kind of a bet: `straight` of `straight:n`."""
    return bet.partition(":")[0]


@cache
def printed_bets(name: str) -> dict[str, tuple[Bet, ...]]:
    """The bets with the default options (""), and with each option's other values, as far as the text allows them."""
    ruleset = RULESETS[name]
    known = checklist(name)
    tried: list[dict[str, Any]] = [{}, *_single(ruleset.Options), *(known.variants if known else ())]
    found: dict[str, tuple[Bet, ...]] = {}
    for given in tried:
        try:
            options = msgspec.convert(given, ruleset.Options)
        except msgspec.ValidationError:
            continue
        found[", ".join(f"{option} = {_written(value)}" for option, value in given.items())] = ruleset(options).bets()
    return found


def _single(options: type[Any]) -> Iterator[dict[str, Any]]:
    """Every option alone with every value that can be listed; of a range its ends."""
    info = type_info(options)
    assert isinstance(info, StructType)
    for field in info.fields:
        kind = field.type
        while isinstance(kind, Metadata):
            kind = kind.type
        match kind:
            case LiteralType(values=values):
                chosen: Sequence[Any] = values
            case BoolType():
                chosen = (False, True)
            case IntType(ge=int(low), le=int(high)):
                chosen = (low, high)
            case _:
                continue
        yield from ({field.encode_name: value} for value in chosen if value != field.default)


def _written(value: Any) -> str:
    """As the configuration has it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# ---- pages


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in lines)


def _bets(name: str) -> list[str]:
    by_option = dict(printed_bets(name))
    usual = by_option.pop("")
    rows = [(f"`{bet.id}`", bet.pays, bet.law, bet.text) for bet in usual]
    others = []
    for options, bets in by_option.items():
        others += [(f"`{options}`", f"`{bet.id}`", bet.pays, bet.law, bet.text) for bet in bets if bet not in usual]
        left = ", ".join(f"`{bet.id}`" for bet in usual if bet.id not in {one.id for one in bets})
        others += [(f"`{options}`", left, "-", "-", "not offered")] if left else []
    parts = [
        "## Bets",
        "Odds are to 1: what is won on top of the stake, which comes back.",
        _table(("bet", "pays", "article", "wins on"), rows),
    ]
    if others:
        parts += ["With other options than the default:"]
        parts += [_table(("option", "bet", "pays", "article", "wins on"), others)]
    return parts


def _options(name: str) -> list[str]:
    rows = [
        (f"`{one.name}`", one.values, f"`{_written(one.default)}`" if one.default != "" else "-", one.law, one.text)
        for one in options_of(RULESETS[name].Options)
    ]
    return [
        "## Options",
        "What the text leaves to the house, or where it can be read two ways.",
        _table(("option", "values", "default", "article", "what it chooses"), rows),
    ]


@cache
def _link(file: str) -> str:
    """Basenames of test files are unique."""
    path = next(TESTS.rglob(file)).relative_to(ROOT)
    return f"[{path}](../../../{path})"


def _proven(files: Sequence[Proofs], article: str) -> str:
    found = [(one.name, one.tests[article]) for one in files if article in one.tests]
    listed = [(file, ", ".join(f"`{test}`" for test in tests)) for file, tests in found]
    if len(files) == 1:
        return "".join(tests for _, tests in listed) or "**none**"
    return "; ".join(f"{_link(file)}: {tests}" for file, tests in listed) or "**none**"


def _by_edition(
    name: str, articles: dict[str, str], head: tuple[str, ...], row: Callable[[str], tuple[str, ...]]
) -> list[str]:
    """A table of each edition's articles, under its name where there are several."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for key in articles:
        edition, _, article = key.rpartition(":")
        found.setdefault(edition, []).append((article, *row(key)))
    usual = next((str(one.default) for one in options_of(RULESETS[name].Options) if one.name == "edition"), "")
    parts = []
    for edition, rows in found.items():
        if edition or len(found) > 1:
            parts += [f"### Edition {edition or usual}"]
        parts += [_table(head, rows)]
    return parts


def _articles(name: str) -> list[str]:
    law, files = checklist(name), proofs_of(name)
    parts = ["## Article by article"]
    if law is None:
        return [*parts, "The house's own rules: no text of the law."]
    where = ", ".join(_link(one.name) for one in files) or "none"
    parts += [f"What the text demands, in our words, and the tests that fail where it is not kept: {where}."]
    parts += _by_edition(
        name,
        law.articles,
        ("article", "demands", "proved by"),
        lambda key: (law.articles[key], _proven(files, key)),
    )
    parts += ["## What no program keeps"]
    if not law.not_ours:
        return [*parts, "Nothing: every paragraph is kept."]
    return [
        *parts,
        *_by_edition(name, law.not_ours, ("article", "what, and why not"), lambda key: (law.not_ours[key],)),
    ]


def _figures(name: str) -> list[str]:
    rows = [
        (
            f"`{one.bet}`",
            *(cell or "-" for cell in (one.options, one.probability, one.edge_percent, one.published)),
            *(cell or "-" for cell in (one.source, one.difference, one.method)),
        )
        for one in figures(name)
    ]
    if not rows:
        return []
    head = ("bet", "options", "probability", "house edge, %", "published", "by", "where they differ", "method")
    return [
        "## Probabilities and house edges",
        "Computed through the ruleset itself, beside what others have published.",
        _table(head, rows),
    ]


def _shared(ruleset: type[Any]) -> list[str]:
    """What the modules say that a game shares with others: their readings are its own."""
    modules = dict.fromkeys(one.__module__ for one in ruleset.__mro__)
    shared = [one for one in modules if one != ruleset.__module__ and one.startswith("rules.")]
    return [
        f"From [{one.replace('.', '/')}.py](../../../{one.replace('.', '/')}.py): {inspect.getdoc(sys.modules[one])}"
        for one in shared
        if not one.startswith("rules.engine.")
    ]


def game_page(name: str) -> str:
    """The page of one ruleset, Markdown."""
    ruleset = game_type(RULESETS[name])
    module = sys.modules[ruleset.__module__]
    code = f"{ruleset.__module__.replace('.', '/')}.py"
    parts = [
        f"# {ruleset.title}",
        f"Ruleset `{name}`, [{code}](../../../{code}). Law: {ruleset.law}. Made by `make games`.",
        inspect.getdoc(module) or "",
        *_shared(ruleset),
        *_bets(name),
        *_options(name),
        *_articles(name),
        *_figures(name),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def index_page() -> str:
    """The list of all games."""
    rows = []
    for name, ruleset in RULESETS.items():
        law = checklist(name) or Text((), {})
        proofs = {(one.name, test) for one in proofs_of(name) for tests in one.tests.values() for test in tests}
        kept, others = str(len(law.articles)), str(len(law.not_ours))
        rows += [(f"[{ruleset.title}]({name}.md)", f"`{name}`", ruleset.law, kept, str(len(proofs)), others)]
    head = ("game", "ruleset", "law", "paragraphs kept", "tests that prove them", "no program keeps")
    return (
        "# Games\n\nEach page: the bets with odds and article, every choice of the house, what each paragraph of the "
        "text demands and which tests prove it, and what no program can keep. Made by `make games`.\n\n"
        f"{_table(head, rows)}\n"
    )


def pages() -> dict[str, str]:
    """All pages by the names of their files."""
    return {"README.md": index_page(), **{f"{name}.md": game_page(name) for name in RULESETS}}


def readme(text: str) -> str:
    """The README with the table of all games."""
    before, _, rest = text.partition(_BEGIN)
    after = rest.partition(_END)[2]
    rows = [
        (f"`{name}`", f"[{ruleset.title}](docs/reference/games/{name}.md)", ruleset.law)
        for name, ruleset in RULESETS.items()
    ]
    return f"{before}{_BEGIN}{_table(('ruleset', 'game', 'text'), rows)}\n{_END}{after}"


def proven() -> bytes:
    """`rules/law/proofs.json`: by ruleset and paragraph, the tests that prove it."""
    found: dict[str, Proven] = {name: {} for name in sorted(RULESETS)}
    for one in all_proofs():
        names = [(name, law.articles) for name in one.laws if (law := checklist(name)) is not None]
        for name, articles in names:
            for article in (article for article in one.tests if article in articles or len(names) == 1):
                tests = (f"{one.name.removesuffix('.py')}::{test}" for test in one.tests[article])
                found[name].setdefault(article, []).extend(tests)
    return msgspec.json.format(msgspec.json.encode(found, order="sorted"), indent=1) + b"\n"


def main() -> None:
    """Write the pages, the README's table and the list of proofs."""
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    PROOFS.write_bytes(proven())
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
