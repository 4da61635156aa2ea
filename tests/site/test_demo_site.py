"""`feltd demo --site` plays, and journals, streams and ledger hold the same."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from backbone import NEEDS_NODES, NEEDS_POSTGRES
from click.testing import CliRunner
from helpers import at_length

from daemon.cli.main import main
from simulators.lab.broker import no_broker
from simulators.lab.site import demo
from simulators.lab.site.demo import Holding

ROOT = Path(__file__).parents[2]
TABLES, ROUNDS = at_length(2, 14), at_length(4, 60)


@pytest.mark.system
@pytest.mark.skipif(bool(no_broker()), reason=no_broker() or "-")
@NEEDS_NODES
@NEEDS_POSTGRES
def test_a_site_plays_and_all_of_it_holds_the_same() -> None:
    words = ["--site", "--headless", "--tables", str(TABLES), "--rounds", str(ROUNDS), "--speed", "4"]
    command = [sys.executable, "-m", "daemon.cli", "demo", *words]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "every result is what the simulators did" in ran.stdout
    assert "journals, streams and ledger hold the same" in ran.stdout
    [results] = re.findall(r"results +│ +(\d+) │ +│ +(\d+) ", ran.stdout)
    assert results[0] == results[1], ran.stdout
    dealt = [int(count) for count in re.findall(r"macau\.\S+ +│ +(\d+)", ran.stdout)]  # a slot machine has no results
    assert int(results[0]) >= sum(dealt) > ROUNDS // 2, ran.stdout


def test_a_row_that_is_missing_or_doubled_anywhere_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo._print([Holding("events", 4, 4, None), Holding("paid", 9, None, 9)]) == 0
    for wrong in (Holding("events", 4, 5, None), Holding("paid", 9, None, 8)):
        assert demo._print([Holding("events", 4, 4, None), wrong]) == 1
    assert "NOT the same" in capsys.readouterr().out


def test_what_a_site_needs_and_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "no_nodes", lambda: "no nats-server: make .venv/.cluster")
    ran = CliRunner().invoke(main, ["demo", "--site"])
    assert (ran.exit_code, "no nats-server: make .venv/.cluster" in ran.output) == (2, True)
    for words, said in ((["--tables", "3"], "only with --site"), (["--site", "--copies", "2"], "neither")):
        ran = CliRunner().invoke(main, ["demo", *words])
        assert (ran.exit_code, said in ran.output) == (2, True), ran.output
