"""`feltd compute-figures`: computes the tables of rules/figures, and figures of other options."""

from pathlib import Path

import click

from daemon.cli.common import AS_JSON, BadInputError, echo_json, examples, option_pairs, write_files
from daemon.cli.progress import ProgressLine
from rules.engine.ruleset import BadOption
from rules.figures import figures_table
from simulators.lab.figures.figure import Variant
from simulators.lab.figures.figures import GAMES, figures, figures_toml


@click.command(epilog=examples("feltd compute-figures macau.roulette"))
@click.argument("ruleset", required=False)
@AS_JSON
@click.option(
    "--write", type=click.Path(path_type=Path, file_okay=False), help="write one TOML file of each game into a folder"
)
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="of the ruleset; may be repeated")
def compute_figures(ruleset: str | None, as_json: bool, write: Path | None, options: tuple[str, ...]) -> None:
    """Compute probability and house edge of every bet through the ruleset itself.

    Exact, but for the main bets of blackjack (five times ten million rounds: 47 minutes of one core) and stud poker
    (ten million: four).
    Baccarat takes about a minute: every coup by ranks, for each jackpot, with eight decks and with six.
    With --option the figures are those of these options alone: `feltd compute-figures macau.baccarat --option decks=7`.
    """
    if ruleset is not None and ruleset not in GAMES:
        raise BadInputError(f"no figures of {ruleset!r}; available: {', '.join(GAMES)}")
    if options and (ruleset is None or write is not None):
        raise BadInputError("--option: name its ruleset, and leave --write out, which writes the published options")
    variants = [Variant(option_pairs(options), None)] if options else None
    if write is not None:
        write_files(write, {})  # check the folder first: the computation may take an hour
    try:
        with ProgressLine() as progress:
            rows = {name: figures(name, variants, progress.of(name)) for name in ([ruleset] if ruleset else GAMES)}
    except BadOption as error:
        raise BadInputError(str(error)) from error
    if write is not None:
        write_files(write, {f"{name}.toml": figures_toml(name, one) for name, one in rows.items()})
    elif as_json:
        echo_json(rows)
    else:
        click.echo("\n\n".join(figures_table(name, one) for name, one in rows.items()))
