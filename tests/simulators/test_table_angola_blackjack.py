"""Angola's blackjack tables: whole shoes of their dealer, event by event, against the ruleset."""

from collections import Counter
from collections.abc import Iterator

import pytest
from helpers import at_length

from protocols.contract.events import CardExposed, CutCardDrawn, DealCorrected, EventsMissed, SeatActed
from simulators.devices.compare import Account
from simulators.tables.angola_blackjack import AngolaBlackjackTable, AngolaShufflerTable
from simulators.tables.blackjack import BlackjackTable
from tests.simulators.test_table_blackjack import House


@pytest.fixture(autouse=True, scope="module")
def _without_terminals() -> Iterator[None]:
    """No edge answers here: nobody reports the bets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlackjackTable, "at_terminals", False)
        yield


ROUNDS = at_length(150, 1_000)


@pytest.fixture(scope="module")
def nights() -> list[House]:
    houses = [House(seed, table_of=AngolaBlackjackTable) for seed in range(1, 5)]
    for house in houses:
        assert house.deal(ROUNDS) == Account(right=ROUNDS)
    return houses


def test_whole_shoes_come_out_as_they_were_dealt(nights: list[House]) -> None:
    codes = Counter(note.code for house in nights for result in house.results for note in result.irregularities)
    assert set(codes) == {"hole_card_turned"}  # a card without a request was seen, so a person corrects
    assert codes["hole_card_turned"] == sum(isinstance(event, CardExposed) for house in nights for event in house.told)
    assert any(isinstance(event, DealCorrected) for house in nights for event in house.told)
    assert all(any(isinstance(event, CutCardDrawn) for event in house.told) for house in nights)


def test_everything_that_players_may_do_is_done(nights: list[House]) -> None:
    said = {event.action for house in nights for event in house.told if isinstance(event, SeatActed)}
    assert said == {"stand", "hit", "double", "split", "surrender", "insurance", "even_money"}
    ended = {end for house in nights for truth in house.table.truth for end in truth.outcome["ended"].values()}
    assert ended == {"stand", "twenty_one", "blackjack", "bust", "surrender", "even_money"}


def test_a_table_with_a_shuffler_keeps_article_8() -> None:
    house = House(1, table_of=AngolaShufflerTable)
    assert house.deal(100) == Account(right=100)
    assert not {note.code for result in house.results for note in result.irregularities} - {"hole_card_turned"}


def test_a_loss_makes_no_round_wrong() -> None:
    for seed in range(1, at_length(4, 40)):
        count = 0

        def fate(device: str, event: object, seed: int = seed) -> list[object]:
            nonlocal count
            count += 1
            return [EventsMissed(1)] if (count + seed) % 53 == 0 else [event]

        account = House(seed, fate, AngolaBlackjackTable).deal(40)  # type: ignore[arg-type]
        assert account.wrong == 0, (seed, account)
