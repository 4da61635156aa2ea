"""The tables of poker without a bank in virtual time: each hand is settled as its dealer counts it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from helpers import at_length
from memory_pit import in_memory

from simulators.devices.compare import Account
from simulators.lab.campaign.loop import VirtualLoop
from simulators.tables.poker import HoldemTable, OmahaTable, SyntheticTable, payments, worth

HANDS = at_length(8, 300)


async def played(kind: Any, seed: int, folder: Path) -> tuple[Account, Any]:
    async with in_memory("t", seed, folder, {"t": kind}) as world:
        [table] = world.pit.tables.values()
        await world.pit.deal(world.pace, HANDS, world.site, world.utc)
        dealt = world.pit.dealt()
        await world.settle(dealt)
        [account] = world.pit.accounts(dealt).values()
        return account, table


@pytest.mark.parametrize(("kind", "seed"), [(HoldemTable, 4), (OmahaTable, 3), (SyntheticTable, 3)])
def test_each_hand_is_settled_as_the_dealer_counts_it(kind: Any, seed: int, tmp_path: Path) -> None:
    """A misdeal alone is void. At hold'em with this seed a new player sits where the hand is due, 14(9)."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        account, table = runner.run(played(kind, seed, tmp_path))
    assert (account.lost, account.wrong) == (0, 0)
    counted = [truth for truth in table.truth if not truth.void]
    assert HANDS - len(counted) <= table.mishaps["misdeal"]
    assert all(truth.settled for truth in counted)


def test_the_dealer_counts_side_pots_by_the_text() -> None:
    """Seat 3 is all-in for 300 and best, seat 2 folded after 200; 30 per mille of each payment, in tens."""
    back, won, kept = payments({1: 1000, 2: 200, 3: 300, 4: 1200}, {}, {1: 1, 3: 9, 4: 2}, [1, 2, 3, 4])
    assert (back, won, kept) == ({1: 0, 2: 0, 3: 1100 - 30, 4: 200 + 1400 - 40}, {3, 4}, 70)


@pytest.mark.parametrize(
    ("better", "worse", "courts"),
    [
        ("AS KS QS JS 9S", "AS AH AD KS KH", True),  # 16(9): a flush above a full house
        ("AS AH AD KS KH", "AS KS QS JS 9S", False),
        ("8S 8H 8D AS KH", "AS AH KS KH QS", True),
        ("QS JS TH 9S 8S", "AS JS TH 9S 8S", True),  # the ace below the eight
        ("6S 5S 4H 3S 2S", "AS 5S 4H 3S 2S", False),
    ],
)
def test_the_dealer_knows_which_hand_is_higher(better: str, worse: str, courts: bool) -> None:
    assert worth(better.split(), courts=courts) > worth(worse.split(), courts=courts)
