"""What a round needs of the devices: without one of it rounds end otherwise, with it alone they end as they should."""

from itertools import chain, islice
from typing import Any

import pytest
from helpers import play

from protocols.contract.events import (
    BallLaunched,
    BallSettling,
    BetsClosed,
    BetsOpened,
    DealCorrected,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    HandDispensed,
    MachineApproved,
    RoundPaid,
    SeatActed,
    Told,
    WagerPlaced,
)
from rules import RULESETS
from rules.engine.ruleset import Resolved, Ruleset, Verdict, Voided, options_from
from rules.needs import Need, met, unmet
from simulators.lab.bench.rules import MIXES, Round, id_of, rounds

CAST: Round = (DiceAgitated("electronic"), BetsOpened(), BetsClosed(), DiceRead((1, 2, 4)), RoundPaid())
PACKETS: Round = (
    *(BetsOpened(), SeatActed(2, "ante", amount=100), BetsClosed(), HandDispensed(5), HandDispensed(5)),
    SeatActed(2, "raise"),
    DealCorrected({"seat_2": ("AS", "AH", "2C", "3S", "4S"), "dealer": ("KD", "QC", "2D", "3D", "4D")}),
    RoundPaid(),
)
FIXED = {"dome": "fixed", "agitation": "electronic"}
TABLES: dict[str, tuple[str, dict[str, Any], Round]] = {
    name: (id_of(name), dict(mix.options), tuple(chain(*islice(rounds(mix, wagers=True), 3))))
    for name, mix in MIXES.items()
} | {
    "macau.cussec, a fixed dome": ("macau.cussec", FIXED, CAST),
    "macau.fish-prawn-crab, a fixed dome": ("macau.fish-prawn-crab", FIXED, CAST),
    "macau.stud-poker, packets": ("macau.stud-poker", {"dealing": "shuffler"}, PACKETS),
}


def table(name: str) -> tuple[Ruleset[Any], tuple[Need, ...], Round]:
    """A ruleset with its options, its needs, and whole rounds."""
    ruleset, chosen, events = TABLES[name]
    options = options_from(RULESETS[ruleset], chosen)
    return RULESETS[ruleset](options), RULESETS[ruleset].needs(options), events


def ends(verdicts: list[Verdict]) -> list[Any]:
    """How the rounds ended: what was irregular belongs to it."""
    results = [one.result for one in verdicts if isinstance(one, Resolved | Voided)]
    return [(one.outcome, one.void, [note.code for note in one.irregularities]) for one in results]


@pytest.mark.parametrize("name", TABLES)
def test_rounds_end_alike_with_what_is_needed_and_nothing_else(name: str) -> None:
    ruleset, wanted, events = table(name)
    whole = ends(play(ruleset, events))
    assert whole
    assert all(void is None for _, void, _ in whole)
    told = [one for one in events if isinstance(one, WagerPlaced) or any(met(need, [one]) for need in wanted)]
    assert ends(play(ruleset, told)) == whole


@pytest.mark.parametrize("name", TABLES)
def test_rounds_end_otherwise_without_one_thing_that_is_needed(name: str) -> None:
    ruleset, wanted, events = table(name)
    whole = ends(play(ruleset, events))
    for need in wanted:
        if HandDispensed in need.events:  # the hands that are entered stand; the packets tell a misdeal
            continue
        if MachineApproved in need.events:  # only a machine that changed waits for it
            continue
        rest = [one for one in events if not met(need, [one])]
        assert ends(play(ruleset, rest)) != whole, need.what
    [decides] = [need for need in wanted if need.decides]
    undecided = ends(play(ruleset, [one for one in events if not met(decides, [one])]))
    assert all(void is not None for _, void, _ in undecided)


def test_every_ruleset_has_needs_with_articles() -> None:
    assert {ruleset for ruleset, _, _ in TABLES.values()} == set(RULESETS)
    for name in TABLES:
        assert all(need.law.startswith(("art", "rule")) for need in table(name)[1])


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        *((name, {"payment": "console"}) for name in ("macau.cussec", "macau.roulette", "angola.french-roulette")),
        ("angola.craps", {"handling": "console"}),
    ],
)
def test_a_payment_that_the_console_must_tell_is_needed(name: str, chosen: dict[str, str]) -> None:
    wanted = RULESETS[name].needs(options_from(RULESETS[name], chosen))
    told: list[Told] = [one for need in wanted for one in need.events if one is not RoundPaid]
    assert [need.events for need in unmet(wanted, told)] == [(RoundPaid,)]
    assert unmet(RULESETS[name].needs(options_from(RULESETS[name], {})), told) == []


def test_a_motor_is_no_lever() -> None:
    by_lever = RULESETS["angola.cussec"].needs(options_from(RULESETS["angola.cussec"], {}))
    told: list[Told] = [DiceCovered, DiceAgitated("electronic"), BetsClosed, DiceRead]
    assert [need.what for need in unmet(by_lever, told)] == [
        "the shaking of the dice, by the lever",
        "that the dome is lifted",
    ]


def test_the_bell_may_be_a_wheel_s_own() -> None:
    options = options_from(RULESETS["macau.roulette"], {"betting": "no_more_bets"})
    bell = next(need for need in RULESETS["macau.roulette"].needs(options) if "bell" in need.what)
    assert met(bell, [BallSettling])
    assert not met(bell, [BallLaunched])
