"""The campaign finds a bet that is kept twice, a settlement that differs, and two answers to one request."""

from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from daemon.consumer.wagers import WagerAnswers
from drivers import bet_terminals
from protocols.contract.results import Settlement
from protocols.contract.wagers import WagerAnswer
from rules.engine.money import settle
from simulators.devices.compare import Outcome, compare, fits
from simulators.lab.campaign import campaign as campaign_module
from simulators.lab.campaign.campaign import live
from simulators.tables.table import Truth

OUTCOME = {"number": 2}
BET = ((1, 0, "fan:2", 100, 385),)


@pytest.fixture(autouse=True)
def _fantan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_module, "PLAYED", ("fan",))


def found(most: int = 3) -> str:
    """What the first life that fails says."""
    for seed in range(most):
        _, failure = live(seed, 8)
        if failure is not None:
            return failure.what
    return ""


def test_a_life_with_bets_is_good() -> None:
    assert found(1) == ""


def test_a_request_that_is_kept_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    number = count()
    forgetful: Any = lambda _request: (b"%08d" % next(number), b"same")  # noqa: E731 - one line of sabotage
    monkeypatch.setattr(bet_terminals, "_digests", forgetful)
    assert "kept twice" in found()


def test_a_settlement_that_is_one_coin_short_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*args: Any, **options: Any) -> tuple[Settlement, ...]:
        return tuple(replace(one, returned=max(one.returned - 1, 0)) for one in settle(*args, **options))

    monkeypatch.setattr("rules.engine.rounds.settle", short)
    assert "wrong" in found()


def test_a_second_answer_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    again = WagerAnswers.again

    def other(self: WagerAnswers, request: Any) -> WagerAnswer | None:
        answer = again(self, request)
        return None if answer is None else replace(answer, status="refused", event="")

    monkeypatch.setattr(WagerAnswers, "again", other)
    assert "two answers to one request" in found()


@pytest.mark.parametrize(
    ("settled", "same"),
    [
        (BET, True),
        (None, True),
        ((), False),
        (((1, 0, "fan:2", 100, 384),), False),
        ((*BET, (2, 0, "fan:2", 100, 385)), False),
    ],
)
def test_a_round_is_right_only_with_what_its_bets_bring(settled: Any, same: bool) -> None:
    truth, outcome = Truth(OUTCOME, settled=settled), Outcome("r", OUTCOME, settled=BET)
    assert fits(truth, outcome) == same
    assert (compare([truth], [outcome]).wrong == 0) == same
