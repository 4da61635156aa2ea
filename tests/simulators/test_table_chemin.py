"""The table of chemin de fer in virtual time: each coup is settled as its dealer counts it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from helpers import at_length
from memory_pit import in_memory

from simulators.devices.compare import Account
from simulators.devices.fdl_console import Console
from simulators.lab.campaign.loop import VirtualLoop
from simulators.tables.chemin import CheminTable, Chips, brings, by_the_text, higher

COUPS = at_length(25, 500)


async def played(seed: int, folder: Path) -> tuple[Account, Any]:
    async with in_memory("t", seed, folder, {"t": CheminTable}) as world:
        [table] = world.pit.tables.values()
        await world.pit.deal(world.pace, COUPS, world.site, world.utc)
        dealt = world.pit.dealt()
        await world.settle(dealt)
        [account] = world.pit.accounts(dealt).values()
        return account, table


def test_each_coup_is_settled_as_the_dealer_counts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, seat = set[int](), Console.seat

    def watched(console: Console, number: int, now: float, *, on: bool) -> None:
        left.update(() if on else {number})
        seat(console, number, now, on=on)

    monkeypatch.setattr(Console, "seat", watched)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        account, table = runner.run(played(3, tmp_path))
    assert (account.lost, account.wrong) == (0, 0)
    counted = [truth for truth in table.truth if not truth.void]
    assert len(counted) > COUPS // 2
    assert all(truth.settled for truth in counted)
    assert left


def test_the_dealer_counts_bank_partner_line_and_percentage_by_the_text() -> None:
    chips = Chips(2, 5, 1001, {(3, "cover"): 300, (4, "half"): 402}, {(6, "cover"): 100})
    assert brings(chips, "banker", 50, 10) == (
        *((2, 0, "bank", 501, 752), (2, 0, "percentage", 10, 0), (3, 0, "cover", 300, 0), (4, 0, "half", 402, 201)),
        *((5, 0, "bank", 500, 750), (5, 0, "percentage", 10, 0), (6, 0, "cover", 100, 100)),
    )
    assert sum(back - laid for _, _, _, laid, back in brings(chips, "player", 50, 10)) == 0


@pytest.mark.parametrize(
    ("cards", "word", "hands"),
    [
        ("2S 3D 2H KD 6C 9C", "stand", ("2S 2H 6C", "3D KD 9C")),  # he had to draw
        ("6S 3D KH KD 6C", "draw", ("6S KH", "3D KD 6C")),
        ("9S 3D KH KD", "show", ("9S KH", "3D KD")),
    ],
)
def test_the_dealer_puts_a_false_draw_right(cards: str, word: str, hands: tuple[str, str]) -> None:
    mine, his = by_the_text(cards.split(), word, None)
    assert (" ".join(mine), " ".join(his)) == hands
    assert higher(("9S", "KS"), ("8S", "KH"), shown=False) == "banker"
