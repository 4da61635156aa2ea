"""The stud poker table of the simulated pit: its dealer's eye for hands, and rounds end to end."""

import asyncio
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import at_length
from memory_pit import in_memory
from msgspec.structs import replace

from protocols.contract.results import Result
from protocols.fdl.cards import CARDS
from rules.angola.stud_poker import value as value_in_angola
from rules.games.stud_poker_game import OPENING
from rules.macau.stud_poker import value
from simulators.devices.compare import Account
from simulators.devices.fdl_shuffler import PACKET_OF, Shuffler
from simulators.lab.campaign.loop import VirtualLoop
from simulators.tables import stud_poker as table_stud_poker
from simulators.tables.stud_poker import (
    MISHAPS,
    MISHAPS_IN_ANGOLA,
    Mishap,
    StudPokerTable,
    compared,
    compared_in_angola,
    opens,
)
from simulators.tables.table import Floor, Look

# ---- the dealer's eye


@pytest.mark.parametrize(
    ("cards", "shape"),
    [
        ("AS KD 9C 5H 2S", 0),
        ("2S 3D 4C 5H 7S", 0),
        ("AS AD 9C 5H 2S", 1),
        ("TS TD 6C 6H 5S", 2),
        ("KS KD KC 6H 5S", 3),
        ("TS 9D 8C 7H 6S", 4),
        ("5S 4D 3C 2H AS", 4),
        ("TS 9S 7S 5S 2S", 5),
        ("KS KD KC 6H 6S", 6),
        ("KS KD KC KH 6S", 7),
        ("KD QD JD TD 9D", 8),
        ("5D 4D 3D 2D AD", 8),
        ("AD KD QD JD TD", 9),
    ],
)
def test_the_dealer_knows_each_combination(cards: str, shape: int) -> None:
    assert compared(cards.split())[0] == shape


@pytest.mark.parametrize(
    ("higher", "lower"),
    [
        ("AS KS QS JS TS", "AH KH QH JH TH"),
        ("6H 5H 4H 3H 2H", "5S 4S 3S 2S AS"),
        ("6H 5D 4H 3H 2H", "5S 4S 3D 2S AS"),
        ("3S 3H 3C 3D 2S", "2H 2C 2D 4S AS"),
        ("KS KH KC 2D 2S", "QH QC QD AS AD"),
        ("AH KC 9C 5H 3S", "AS KD 9D 5C 2S"),
        ("AS KD 9C 5H 2S", "AH KC 9D 5D 2H"),
        ("TS TD 9C 7H 6S", "TH TC 9D 7D 6H"),
        ("TS TD 9C 7H 6S", "TH TC 9D 7D 5S"),
        ("TS TD 6C 6H 5S", "TH TC 6S 6D 5D"),
        ("TS TD 6C 6H 5S", "TH TC 5H 5D AS"),
    ],
)
def test_the_higher_hand_is_higher(higher: str, lower: str) -> None:
    assert compared(higher.split()) > compared(lower.split())


@pytest.mark.parametrize(
    ("cards", "may"),
    [("AS KD 4C 3H 2S", True), ("AS QD JC TH 9S", False), ("KS QD JC TH 8S", False), ("2S 2D 3C 4H 5S", True)],
)
def test_ace_and_king_open(cards: str, may: bool) -> None:
    assert opens(cards.split()) is may


def test_dealer_and_ruleset_agree_on_whole_decks() -> None:
    """Two rankings that know nothing of each other put whole decks, dealt into ten hands, in one order."""
    rng = random.Random("two rankings")
    deck = list(CARDS)
    for _ in range(at_length(1_000, 4_000)):
        rng.shuffle(deck)
        hands = [tuple(deck[at : at + 5]) for at in range(0, 50, 5)]
        assert sorted(hands, key=compared) == sorted(hands, key=value)
        assert [opens(hand) for hand in hands] == [value(hand) >= OPENING for hand in hands]


@pytest.mark.parametrize("ranks", ["23456789TJQKA", "A5432KQJ", "AKJ97", "AQ2"])
def test_they_agree_without_an_order_of_suits(ranks: str) -> None:
    """Which of two hands is higher, and which are equal."""
    rng = random.Random(f"no order of suits {ranks}")
    deck = [rank + suit for rank in ranks for suit in "SHCD"]
    for _ in range(at_length(1_000, 20_000)):
        drawn = rng.sample(deck, 10)
        hands = [tuple(drawn[:5]), tuple(drawn[5:])]
        mine, others = (value_in_angola(hand) for hand in hands)
        one, other = (compared_in_angola(hand) for hand in hands)
        assert (mine > others, mine == others) == (one > other, one == other)


def test_they_agree_on_high_hands() -> None:
    """Full houses, fours and flushes are rare: out of a deck of twelve cards they are not."""
    rng = random.Random("high hands")
    deck = [rank + suit for rank in "A5432KQJ" for suit in "SHCD"]
    for _ in range(at_length(1_000, 3_000)):
        suits = rng.sample("SHCD", 2)
        few = rng.choice(([card for card in deck if card[1] in suits], [card for card in deck if card[0] in "A5K"]))
        rng.shuffle(few)
        hands = [tuple(few[:5]), tuple(few[5:10])]
        assert sorted(hands, key=compared) == sorted(hands, key=value)


# ---- the shuffler's cards


def shuffled(seed: int) -> tuple[Shuffler, float]:
    device = Shuffler(random.Random(seed))
    device.load(0.0)
    assert device.shuffle(1.0) == 0
    device.wake(60.0)
    return device, 60.0


def test_a_whole_deck_goes_through_the_tray() -> None:
    device, now = shuffled(1)
    taken: list[str] = []
    while device.ready(now):
        assert device.dispense(now, PACKET_OF) == PACKET_OF
        now += 3.0
        device.wake(now)
        lying = device.tray
        assert device.take(now) == lying
        assert device.take(now) == ()
        taken += lying
    assert len(taken) == len(set(taken)) == 50
    assert set(taken) < set(CARDS)
    assert taken != sorted(taken)


@pytest.mark.parametrize(("fault", "count"), [("packet_short", 4), ("packet_over", 6), ("jam_outfeed", 0)])
def test_a_wrong_packet_has_the_cards_that_it_has(fault: str, count: int) -> None:
    device, now = shuffled(2)
    device.inject(fault, now)
    assert device.dispense(now, PACKET_OF) == count
    device.wake(now + 3.0)
    first = device.take(now + 3.0)
    assert len(first) == count
    if count:
        device.dispense(now + 4.0, PACKET_OF)
        device.wake(now + 7.0)
        assert not set(first) & set(device.take(now + 7.0))


# ---- rounds


PATIENCE = 3600.0
"""Seconds of play that a round takes at most, whatever the display shows: many times what one takes."""


def play(
    directory: Path, rounds: int, seed: int, kind: str = "stud"
) -> tuple[StudPokerTable, Account, list[dict[str, Any]]]:
    """The table, the account, and every result that came out."""
    results: list[dict[str, Any]] = []

    async def body() -> tuple[StudPokerTable, Account]:
        async with in_memory(kind, seed, directory) as world:
            pit = world.pit
            [table] = pit.tables.values()
            assert isinstance(table, StudPokerTable)

            def heard(_name: str, _kind: str, result: Result) -> None:
                results.append(msgspec.json.decode(msgspec.json.encode(result)))

            world.site.on_result.append(heard)
            async with asyncio.timeout(rounds * PATIENCE):
                await pit.deal(world.pace, rounds, world.site, world.utc)
            dealt = pit.dealt()
            await world.settle(dealt)
            return table, pit.accounts(dealt)[f"{kind}-1"]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        table, account = runner.run(body())
    return table, account, results


def test_a_night_comes_out_as_it_was(tmp_path: Path) -> None:
    table, account, results = play(tmp_path, 20, 1)
    assert account == Account(right=20)
    assert [bool(result["void"]) for result in results] == [truth.void for truth in table.truth]
    played = [result for result in results if not result["void"]]
    for result in played:
        stakes = {(one["seat"], one["bet"]): one["stake"] for one in result["settlements"]}
        for name, fate in result["outcome"]["seats"].items():
            seat = int(name[-1])
            ante = stakes[seat, "ante"]
            assert stakes.get((seat, "raise"), 0) == (0 if fate == "folded" else 2 * ante)
    fates = {fate for result in played for fate in result["outcome"]["seats"].values()}
    assert fates == {"folded", "not_opened", "wins", "loses"}
    assert any(one["bet"] == "jackpot" for result in played for one in result["settlements"])
    # A deck is never dealt twice in the same order.
    hands = [result["outcome"]["hands"] for result in played if result["outcome"]["hands"]]
    assert all(one != other for one, other in pairwise(hands))


@pytest.mark.parametrize("mishap", MISHAPS)
def test_each_mishap_ends_as_article_11_says(mishap: Mishap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_stud_poker, "MISHAPS", {mishap: 1000})
    monkeypatch.setattr(table_stud_poker, "PLAYERS", (0, 1, 1, 1, 0, 0, 0))
    table, account, results = play(tmp_path, 3, 3)
    assert account == Account(right=3)
    assert table.mishaps == {mishap: 3}
    voids = {
        "two_seen": "two_cards_exposed",
        "jam": "shuffler_failed",
        "short": "wrong_number_of_cards",
        "over": "wrong_number_of_cards",
        "wrong_order": "dealing_error",
    }
    for result in results:
        assert (result["void"] or {"reason": {"code": ""}})["reason"]["code"] == voids.get(mishap, "")
        codes = {one["code"] for one in result["irregularities"]}
        assert ("card_exposed" in codes) is (mishap in ("one_seen", "two_seen"))
        assert ("hand_without_bet" in codes) is (mishap == "no_bet")
        if result["void"]:
            assert result["void"]["jackpot_bets"] == "carried"


def test_a_night_in_angola_comes_out_as_it_was(tmp_path: Path) -> None:
    table, account, results = play(tmp_path, 20, 1, "astud")
    assert account == Account(right=20)
    assert [bool(result["void"]) for result in results] == [truth.void for truth in table.truth]
    assert not any(one["code"] == "not_burnt" for result in results for one in result["irregularities"])


ENDS_IN_ANGOLA = {
    "seen_dealing": "card_exposed_dealing",
    "jam": "equipment_fault",
    "short": "wrong_number_of_cards",
    "over": "wrong_number_of_cards",
    "wrong_order": "dealing_error",
    "no_bet": "hand_without_bet",
}


@pytest.mark.parametrize("mishap", MISHAPS_IN_ANGOLA)
def test_each_mishap_ends_as_article_9_says(mishap: Mishap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_stud_poker, "MISHAPS_IN_ANGOLA", {mishap: 1000})
    monkeypatch.setattr(table_stud_poker, "PLAYERS", (0, 1, 1, 1, 0, 0, 0))
    table, account, results = play(tmp_path, 3, 3, "astud")
    assert account == Account(right=3)
    assert table.mishaps == {mishap: 3}
    for result in results:
        assert (result["void"] or {"reason": {"code": ""}})["reason"]["code"] == ENDS_IN_ANGOLA.get(mishap, "")
        codes = {one["code"] for one in result["irregularities"]}
        assert ("cards_shown" in codes) is (mishap == "shows")
        assert ("card_exposed" in codes) is (mishap in ("bank_seen", "seen_dealing"))
        if result["void"]:
            assert result["void"]["jackpot_bets"] == "returned"


def test_jackpot_bets_of_a_void_round_are_laid_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_stud_poker, "MISHAPS", {"wrong_order": 500})
    _, account, results = play(tmp_path, 12, 5)
    assert account == Account(right=12)
    carried = 0
    for before, after in pairwise(results):
        if before["void"] and not after["void"]:
            laid = {one["seat"] for one in after["settlements"] if one["bet"] == "jackpot"}
            carried += len(laid)
            assert all(one["stake"] == 1000 for one in after["settlements"] if one["bet"] == "jackpot")
    assert carried


def show_old_memory(monkeypatch: pytest.MonkeyPatch, at: str, old: str) -> list[float]:
    """The display of a broker that dies in each round when it comes to `at`, and comes back with what it wrote down.

    For a minute of play, until edge and rules are back, it shows what it showed last in phase `old`: hands in a
    campaign are 25 times as fast. Says when.
    """
    deal = StudPokerTable.deal
    times: list[float] = []

    async def dealt(self: StudPokerTable, floor: Floor, rounds: int) -> None:
        written = Look()
        died = ""

        def look() -> Look:
            nonlocal written, died
            now, true = floor.pace.now(), floor.look()
            if true.phase == old:
                written = true
            if true.phase == at and true.round != died and written.phase == old:
                died = true.round
                times.append(now)
            if times and now < times[-1] + 60:
                return replace(written, ended=true.ended)
            return true

        await deal(self, replace(floor, look=look), rounds)

    monkeypatch.setattr(StudPokerTable, "deal", dealt)
    return times


@pytest.mark.parametrize(
    ("at", "old"),
    [
        *(("betting", old) for old in ("idle", "resolved", "dealing", "showdown")),
        *(("dealing", old) for old in ("idle", "resolved", "betting", "showdown")),
        *(("deciding", old) for old in ("idle", "resolved", "betting", "showdown")),
        *(("showdown", old) for old in ("idle", "resolved", "betting", "dealing")),
        *(("resolved", old) for old in ("idle", "betting", "deciding", "showdown")),
    ],
)
def test_a_dealer_does_not_stand_still_before_an_old_screen(
    at: str, old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He took a round for over that was not, and told it the next one's hands for ever: two nights of kill -9."""
    monkeypatch.setattr(table_stud_poker, "PLAYERS", (0, 1, 1, 1, 0, 0, 0))
    times = show_old_memory(monkeypatch, at, old)
    _, account, _ = play(tmp_path, 4, 3)
    assert not account.lost
    assert not account.wrong
    assert account.right + account.voided + account.unseen == 4
    assert times
