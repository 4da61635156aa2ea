"""Omaha of Angola where it differs from hold'em, with amounts counted by hand."""

import pytest
from poker_hands import PokerTable

from protocols.contract.events import HandDispensed
from rules.angola.omaha import Omaha
from rules.angola.unbanked_poker import BlindsOptions

LAW = "angola.omaha"
STACKS = (10_000, 10_000, 10_000, 10_000)


@pytest.mark.article("14(2)", "14(6)")
def test_a_hand_of_omaha() -> None:
    """Art. 14(2), 14(6): seat 1 has four aces and no more than two of them: seat 2 wins with its flush."""
    poker = PokerTable(Omaha(BlindsOptions()), STACKS)
    poker.open(1, 2)
    poker.cards("AS 2S 3H 4H AH 5S 6H 7H AD 8C 9C TC AC 8D 9D TD")
    poker.acts("3 fold", "4 fold", "1 call", "2 check")
    for cards in ("2C QS JS KS", "3C 2D", "4C 3D"):
        poker.cards(cards)
        poker.acts("1 check", "2 check")
    poker.acts("1 show", "2 show")
    assert poker.result.outcome["combinations"] == {"seat_1": "one_pair", "seat_2": "flush"}
    assert poker.paid == {1: (100, 0), 2: (100, 200)}
    assert {"14(2)", "13(17)(e)"} <= {one.rpartition(" ")[2] for one in poker.result.law}


@pytest.mark.article("13(69)(b)", "14(6)")
def test_a_packet_of_omaha_has_four_cards() -> None:
    """Art. 13(69)(b), 14(6)."""
    poker = PokerTable(Omaha(BlindsOptions()), STACKS)
    poker.open(1, 2)
    poker.tell(HandDispensed(4), HandDispensed(2))
    assert poker.waits() == "packet_own_cards"
