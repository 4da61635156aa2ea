"""The frozen behaviour of the rulesets: `make corpus` writes it, this finds what has changed."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import corpus
import pytest
from helpers import MACHINES, NIGHTLY

from rules import RULESETS
from rules.engine.ruleset import options_from

every_game = pytest.mark.parametrize("name", [name for name in sorted(RULESETS) if not name.startswith("house.")])
"""Those by a law: of a house's own game no verdict is frozen."""
COMMITTED = tomllib.loads(corpus.HASHES.read_text(encoding="utf-8"))


@every_game
def test_a_ruleset_says_what_it_said(name: str) -> None:
    """Of the same events. Where a change is meant, `make corpus` freezes it, and CHANGELOG.md says what it is."""
    assert not corpus.differences([name], start=not NIGHTLY)


@every_game
def test_each_value_of_each_option_has_a_table(name: str) -> None:
    kind = RULESETS[name]
    played = [options_from(kind, options) for options in corpus.option_sets(name)]
    for info in corpus.infos_of(name):
        for value in corpus.values_of(name, info):
            meant = getattr(options_from(kind, corpus.allowed(name, {info.name: value})), info.name)
            assert any(getattr(one, info.name) == meant for one in played), (info.name, value)


@every_game
def test_the_corpus_is_large_and_holds_each_verdict(name: str) -> None:
    """Rounds that count, rounds that wait, void and corrected ones: else it would freeze little."""
    said = COMMITTED[name]["said"]
    assert COMMITTED[name]["events"] >= corpus.EVENTS
    assert said["resolved"] > max(3_000, said["voided"])
    assert min(said[verdict] for verdict in ("suspended", "voided", "irregular")) > 200
    assert name == MACHINES or said["corrected"] > 30  # two people approve a machine; its meters need no correction


def test_another_process_makes_the_same_events() -> None:
    """With other hashes of text: no order of a set may reach the events or what is hashed."""
    command = [sys.executable, "-m", "corpus", "--check", "--start", "--only", "macau.fantan"]
    root = Path(__file__).parents[2]
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": ".:tests/support"}
        done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "nothing differs\n", "")


def test_a_changed_table_a_new_one_and_one_that_is_gone_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tmp_path / "corpus.toml"
    monkeypatch.setattr(corpus, "HASHES", changed)
    known = COMMITTED["macau.fantan"]["tables"]["{}"]["start"]
    text = (Path(corpus.__file__).parents[1] / "corpus.sha256.toml").read_text(encoding="utf-8")
    changed.write_text(text.replace(known, "0" * 64), encoding="utf-8")
    assert corpus.differences(["macau.fantan"], start=True) == ["macau.fantan {}"]
    before, mine = text.split('["macau.fantan".tables]\n')
    changed.write_text(
        before + '["macau.fantan".tables]\n' + mine.replace("'{}'", '\'{"opening":"never"}\'', 1), encoding="utf-8"
    )
    assert corpus.differences(["macau.fantan"], start=True) == [
        "macau.fantan {}",
        'macau.fantan {"opening":"never"}: not played any more',
    ]
