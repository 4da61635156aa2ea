"""Scripts an inspector can read, resolve and compare: `feltd resolve` gives the expected results, byte for byte.

Each line of `scripts/NAME.ndjson` is one event; evidence names the lines. The settlements stand here once more, worked
out by hand from the articles, so that no expected file can be renewed with a wrong amount in it.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from daemon.cli.main import main

SCRIPTS = Path(__file__).parents[1] / "scripts"

# Script: ruleset, options, and per result what each bet brings back, stake included.
RUNS: dict[str, tuple[str, str, list[list[int]]]] = {
    "angola-american-roulette-announced": (
        "angola.american-roulette",
        "minimum=100",
        [[0, 0, 400, 3600, 450, 3600, 3600], [0, 0, 0, 0, 3600, 4800, 900], [0, 0, 1800]],
    ),
    "angola-american-roulette-limits": (
        "angola.american-roulette",
        "minimum=100 payment=console",
        [[0, 108_000, 108_000], []],
    ),
    "angola-french-roulette-null": (
        "angola.french-roulette",
        "",
        [[0, 600, 1800, 3600], [], [0, 0], [120], [120, 120], [120, 120]],
    ),
    "angola-craps-series": (
        "angola.craps",
        "maximum_payment=1000",
        [[0], [40], [], [260], [200, 0, 220, 0, 100], [0, 0, 0, 200, 50]],
    ),
    "angola-craps-doubt": ("angola.craps", "bar=2", [[0], [], [], [100, 100, 10], [60]]),
    "angola-baccarat-limits": (
        "angola.baccarat",
        "deduction=20_percent_on_5 minimum=100 maximum=7000 tie_minimum=100 tie_maximum=1500 smallest_chip=5",
        [[1890, 0, 12600, 40], [200, 900, 600, 0], [663], [100, 500], [100]],
    ),
    "angola-baccarat-macau-difference": (
        "angola.baccarat-macau",
        "decks=6 deduction=50_percent_on_5 maximum_difference=3000 smallest_chip=100",
        [[10000, 1000, 0, 0, 2840], [1500], [2000, 0]],
    ),
    # Seat 1 splits K-T into 19 and 14, seat 3 doubles A-8 into a soft 9 that an ace makes 20; the bank has 6-2-J, 18.
    "angola-blackjack-others": ("angola.blackjack", "minimum=10 maximum=300", [[200, 120, 100, 0, 0, 0, 0, 100, 0]]),
    # Bank blackjack: seat 1 loses and is insured; seat 2 has three sevens of one suit and loses; seat 5 took its bet.
    "angola-blackjack-jackpot": (
        "angola.blackjack",
        "jackpot=manual jackpot_bet=5 jackpot_seed=50000 jackpot_prizes=AAAA=pool,777/suit=1/10,AA/colour=fixed",
        [[0, 0, 90, 0, 90, 150, 5]],  # the last: a chip for the jackpot without a bet on the hand
    ),
    "baccarat-commission": (
        "macau.baccarat",
        "opening=bell burn=fixed burn_fixed=2 demonstration_rounds=1 smallest_chip=100",
        [[], [0, 1000, 1200, 0], [1950, 650], [300, 900, 1200]],
    ),
    "baccarat-jackpot": (
        "macau.baccarat",
        "opening=bell jackpot=A commission=dragon_7_push",
        [[1000, 410, 0, 0, 0, 50], [2000, 0, 0, 0, 0], [0, 0], [0, 0, 50], [120, 20, 0], [10, 50]],
    ),
    "baccarat-doubt": (
        "macau.baccarat",
        "decks=8 burn=first_card cut_card=one_more",
        [[200], [], [195], [195], [100], []],
    ),
    "cussec-stacked": (
        "macau.cussec",
        "smallest_chip=10 rounding=up total_6_15=16",
        [[], [150, 340, 510, 0, 60], [135, 125, 20, 0], [60, 310, 80, 0]],
    ),
    "cussec-2003": ("macau.cussec", "edition=2003", [[], [0, 1510, 1000]]),
    "cussec-doubt": ("macau.cussec", "agitation=either payment=console", [[200], [200], [], [0], [], [200], []]),
    "angola-stud-poker-ties": (
        "angola.stud-poker",
        "dealing=either minimum=200 maximum=4000 jackpot_bet=50 jackpot_seed=500000",
        [[1000, 2000, 200, 0, 0, 2000, 16000, 400], [800, 0, 800, 0, 800, 800], [400, 50], [0, 250, 0, 500]],
    ),
    "angola-blackjack-mispulled": (
        "angola.blackjack",
        "seats=6 minimum=10 maximum=130",
        [[120, 40, 80, 200, 120, 40]],
    ),
    "roulette-null": (
        "macau.roulette",
        "nines=1-2-3-4-5-6-7-8-9",
        [[540, 180, 0], [], [], [90, 20], [360, 0, 0], [60, 30, 30], [], [0, 0, 0]],
    ),
    "roulette-no-more-bets": (
        "macau.roulette",
        "betting=no_more_bets payment=console zero_combinations=true",
        [[180, 120, 90], [0, 0]],
    ),
    "roulette-missed": ("macau.roulette", "edition=2003", [[], [25], [10], [], [10], []]),
    "angola-cussec-leaning": ("angola.cussec", "", [[], [200, 550, 400, 60, 0, 60], [310, 191, 165, 0, 24]]),
    "angola-french-bank-throws": (
        "angola.french-bank",
        "minimum=10",
        [[0, 0, 25, 600, 75], [0, 3720], [10, 40, 200]],
    ),
    "angola-french-bank-doubt": ("angola.french-bank", "", [[20], [20], [20], [10], [10]]),
}


def resolved(name: str) -> bytes:
    ruleset, options, _ = RUNS[name]
    chosen = [word for option in options.split() for word in ("--option", option)]
    script = str(SCRIPTS / f"{name}.ndjson")
    run = CliRunner().invoke(main, ["resolve", "--ruleset", ruleset, "--table", "t-1", *chosen, script])
    assert run.exit_code == 0, run.output
    return run.stdout_bytes


@pytest.mark.parametrize("name", RUNS)
def test_a_script_resolves_byte_for_byte(name: str) -> None:
    assert resolved(name) == (SCRIPTS / f"{name}.expected.ndjson").read_bytes()


@pytest.mark.parametrize("name", RUNS)
def test_its_settlements_are_those_worked_out_by_hand(name: str) -> None:
    results: list[dict[str, Any]] = [msgspec.json.decode(line) for line in resolved(name).splitlines()]
    assert [[one["returned"] for one in result["settlements"]] for result in results] == RUNS[name][2]


def test_no_script_is_left_out() -> None:
    assert {path.name.split(".")[0] for path in SCRIPTS.iterdir()} == set(RUNS)
