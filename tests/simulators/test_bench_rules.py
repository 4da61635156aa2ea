"""The benchmark of rulesets covers every game, plays whole rounds, and proves its replays the same."""

from itertools import islice

import msgspec
import pytest
from click.testing import CliRunner

from daemon.cli.main import main
from protocols.contract.events import WagerPlaced
from protocols.contract.topics import decode_envelope
from rules import RULESETS
from rules.engine.ruleset import Resolved, Voided
from simulators.lab.bench import rules as module
from simulators.lab.bench.rules import MIXES, Replayed, RulesReport, RulesRow, bench_rules, replay, rules_markdown

every_game = pytest.mark.parametrize("name", MIXES)
ROWS = (
    RulesRow("macau.baccarat", 0, 8.0, (99_000.0, 200_000.0, 300_000.0), (400_000.0, 500_000.0, 600_000.0)),
    RulesRow("macau.roulette", 30, 37.0, (99_999.0,), (200_000.0,)),
)
DONE = Replayed(1000, 8050, 0.4, "aa", "0123456789abcdef0123")
REPORT = RulesReport("a machine", "2026-01-01", ROWS, (DONE, DONE))


def test_every_ruleset_is_measured() -> None:
    assert set(RULESETS) == {module.id_of(name) for name in MIXES}


@every_game
@pytest.mark.parametrize("wagers", [True, False])
def test_every_round_of_a_mix_is_resolved_and_nothing_in_it_is_irregular(name: str, wagers: bool) -> None:
    ruleset = module.ruleset_of(name)
    state, seats = ruleset.start("t1"), set()
    for lines in islice(module.payloads(module.rounds(MIXES[name], wagers=wagers)), 120):
        said = []
        for line in lines:
            seen = decode_envelope(line)
            state, verdicts = ruleset.apply(state, seen)
            said += [verdict for verdict in verdicts if isinstance(verdict, Resolved | Voided)]
            if isinstance(seen.event, WagerPlaced):
                seats.add(seen.event.seat)
        (end,) = said
        assert isinstance(end, Resolved)
        assert end.result.irregularities == ()
        assert bool(end.result.settlements) == (MIXES[name].laid_in_turn or (wagers and MIXES[name].chips > 0))
    assert len(seats) == (MIXES[name].seats if wagers else 0)


@every_game
def test_a_mix_is_the_same_every_time(name: str) -> None:
    first, again = (list(islice(module.payloads(module.rounds(MIXES[name], wagers=True)), 5)) for _ in range(2))
    assert first == again
    assert first != list(islice(module.payloads(module.rounds(MIXES[name], wagers=True, seed=2)), 5))


def test_a_turn_that_lost_a_round_is_no_figure() -> None:
    lines = [
        line for one in islice(module.payloads(module.rounds(MIXES["macau.roulette"], wagers=False)), 3) for line in one
    ]
    seen = [decode_envelope(line) for line in lines]
    assert module.turn(module.ruleset_of("macau.roulette"), seen, 3) > 0
    with pytest.raises(RuntimeError, match=r"macau.roulette: 2 of 3 rounds"):
        module.turn(module.ruleset_of("macau.roulette"), seen[:-2], 3)


def test_a_night_of_a_gaming_machine_is_measured_although_midnight_ends_a_period() -> None:
    name, periods = "angola.gaming-machines", 500
    played = islice(module.payloads(module.rounds(MIXES[name], wagers=False)), periods)
    seen = [decode_envelope(line) for one in played for line in one]
    assert seen[0].time.date() < seen[-1].time.date()
    assert module.turn(module.ruleset_of(name), seen, periods) > 0


def test_a_replay_says_the_same_bytes_here_and_elsewhere() -> None:
    """More than one chunk, and more than one shoe: 1000 rounds are about thirteen."""
    here = replay(1100)
    there = module.replay_elsewhere(1100, 7)
    assert (here.events_hash, here.verdicts_hash) == (there.events_hash, there.verdicts_hash)
    assert here.rounds == 1100
    other = replay(1100, seed=2)
    assert other.verdicts_hash != here.verdicts_hash
    assert other.events_hash != here.events_hash


def test_a_run_gives_two_rows_for_each_ruleset_in_both_forms() -> None:
    said: list[str] = []
    report = bench_rules(said.append, names=tuple(MIXES)[:2], turns=2, rounds_=5, replayed=5)
    assert [(row.mix, row.chips) for row in report.rows] == [
        ("macau.baccarat, a shoe alone", 0),
        ("macau.baccarat", 0),
        ("macau.baccarat", 10),
    ]
    assert all(len(row.turns) == len(row.yards) == 2 and row.rate > 0 for row in report.rows)
    assert report.same
    assert msgspec.json.decode(msgspec.json.encode(report), type=RulesReport) == report
    assert len(said) == 4


def test_the_report_says_what_is_met() -> None:
    text = rules_markdown(REPORT)
    assert "| macau.baccarat | 0 | 8.0 | 200,000 | 25,000 | 2.50 | met |" in text
    assert "| macau.roulette | 30 | 37.0 | 99,999 | 2,703 | 2.00 | **not met** |" in text
    assert "| 2 | 1,000 | 8,050 | 0.4 | 0123456789abcdef… |" in text
    assert "Twice the same journal: the same bytes. Under 120 s: met." in text
    assert text.endswith("Measured 2026-01-01 on a machine.")


def test_another_hash_or_a_slow_replay_is_said() -> None:
    slow = msgspec.structs.replace(DONE, seconds=120.0)
    assert "Under 120 s: **not met**" in rules_markdown(msgspec.structs.replace(REPORT, replays=(DONE, slow)))
    for field in ("events_hash", "verdicts_hash"):
        other = msgspec.structs.replace(DONE, **{field: "bb"})
        text = rules_markdown(msgspec.structs.replace(REPORT, replays=(DONE, other)))
        assert "**not the same bytes**" in text


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(("arguments", "replayed"), [((), 1_000_000), (("--rounds", "77"), 77)])
def test_the_command_writes_the_report(
    monkeypatch: pytest.MonkeyPatch, as_json: bool, arguments: tuple[str, ...], replayed: int
) -> None:
    asked: list[int] = []

    def bench(_: object, *, replayed: int) -> RulesReport:
        asked.append(replayed)
        return REPORT

    monkeypatch.setattr(module, "bench_rules", bench)
    done = CliRunner().invoke(main, ["bench", "rules", *arguments, *["--json"] * as_json])
    assert done.exit_code == 0
    assert asked == [replayed]
    if as_json:
        assert msgspec.json.decode(done.output, type=RulesReport) == REPORT
    else:
        assert done.output == rules_markdown(REPORT) + "\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rules", "--rates", "5"), "belong to `feltd bench spine`"),
        (("rules", "--seconds", "5"), "belong to `feltd bench spine`"),
        (("tables", "--rounds", "5"), "belongs to `feltd bench rules`"),
        (("spine", "--rounds", "5"), "belongs to `feltd bench rules`"),
    ],
)
def test_options_of_another_benchmark_are_refused(arguments: tuple[str, ...], words: str) -> None:
    done = CliRunner().invoke(main, ["bench", *arguments])
    assert done.exit_code == 2
    assert words in done.output
