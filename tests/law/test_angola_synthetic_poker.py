"""Synthetic poker of Angola where it differs from hold'em, with amounts counted by hand."""

from typing import Any

import pytest
from poker_hands import PokerTable

from protocols.contract.events import CardExposed, SeatOpened
from rules.angola.synthetic_poker import SyntheticOptions, SyntheticPoker

LAW = "angola.synthetic-poker"
STACKS = (10_000, 10_000, 10_000, 10_000)


def synthetic(own: str = "AS KS QS JS AH KH QH JH", **options: Any) -> PokerTable:
    """Each of four seats has laid its ante of 100."""
    poker = PokerTable(SyntheticPoker(SyntheticOptions(**options)), STACKS)
    poker.open(1, 2, 3, 4)
    poker.cards(own)
    return poker


def articles(poker: PokerTable) -> list[str]:
    return [one.rpartition(" ")[2] for one in poker.result.law]


@pytest.mark.article("16(2)", "16(6)", "16(8)", "16(13)", "16(14)")
def test_a_hand_of_synthetic_poker() -> None:
    """Art. 16(6), 16(8), 16(13), 16(14): antes, no burnt card, a round of bets after each common card."""
    poker = synthetic()
    assert poker.detail["due"] == {"kind": "card", "hand": "board", "seat": 0, "actions": []}
    poker.cards("9S")
    assert poker.due == (2, ("fold", "check", "bet"))
    poker.acts("2 check", "3 bet 200", "4 call", "1 call", "2 fold")
    poker.cards("9H")
    assert poker.detail["due"]["seat"] == 3
    poker.acts("3 check", "4 bet 300", "1 raise 600", "3 call", "4 call")
    poker.cards("TD")
    assert poker.detail["due"]["seat"] == 1
    poker.acts("1 check", "3 check", "4 check")
    poker.cards("TC")
    assert poker.detail["due"]["seat"] == 3
    poker.acts("3 check", "4 check", "1 check")
    poker.cards("8D")
    poker.acts("3 check", "4 check", "1 check")
    poker.acts("1 show", "3 show", "4 show")
    assert poker.result.outcome["combinations"]["seat_1"] == "two_pairs"
    assert poker.paid == {1: (900, 2800), 2: (100, 0), 3: (900, 0), 4: (900, 0)}
    assert {"16(3)", "16(9)(j)", "16(11)"} <= set(articles(poker))


@pytest.mark.article("16(10)")
def test_equal_hands_share_the_losing_bets() -> None:
    """Art. 16(10)."""
    poker = synthetic("AS 8S QS JS AH 8H JH QH")
    for card in ("9S", "9H", "TD", "KC", "8D"):
        poker.cards(card)
        poker.acts("2 check", "3 check", "4 check", "1 check")
    poker.acts("2 muck", "3 show", "4 show", "1 show")
    assert poker.result.outcome["combinations"] == {"seat_1": "two_pairs", "seat_3": "straight", "seat_4": "straight"}
    assert {"16(9)(f)", "16(10)"} <= set(articles(poker))
    assert (poker.paid[3], poker.paid[4]) == ((100, 200), (100, 200))


@pytest.mark.article("13(6)", "16(5)")
def test_eleven_seats() -> None:
    """Art. 13(6), 16(5)."""
    poker = PokerTable(SyntheticPoker(SyntheticOptions()), STACKS)
    poker.tell(SeatOpened(11), SeatOpened(12))
    assert poker.noted() == [("no_such_seat", "13(6)")]


@pytest.mark.article("16(15)")
def test_a_card_turned_in_the_deal_voids_the_hand() -> None:
    """Art. 16(15): all antes go back."""
    poker = PokerTable(SyntheticPoker(SyntheticOptions()), STACKS)
    poker.open(1, 2, 3, 4)
    poker.cards("AS KS")
    poker.tell(CardExposed("seat_2", "KS"))
    assert poker.result.void is not None
    assert poker.result.law == (f"{SyntheticPoker.law} art. 16(15)",)
    assert poker.paid == dict.fromkeys((1, 2, 3, 4), (100, 100))


@pytest.mark.article("16(16)")
def test_a_common_card_too_early_takes_a_round_of_bets_away() -> None:
    """Art. 16(16)."""
    poker = synthetic()
    poker.cards("9S")
    poker.acts("2 check", "3 check")
    poker.cards("9H")
    assert poker.detail["due"]["seat"] == 4
    poker.acts("4 check", "1 check")
    assert poker.detail["due"]["kind"] == "card"
    poker.cards("TD")
    assert (poker.detail["board"], poker.due[0]) == (["9S", "9H", "TD"], 2)
    assert poker.noted() == [("betting_round_lost", "16(16)")]


@pytest.mark.article("16(17)")
def test_a_missing_ante_is_due_with_the_next_chips() -> None:
    """Art. 16(17): seat 2 pays it to stay in, seat 3 gives up and leaves the pot reduced."""
    poker = PokerTable(SyntheticPoker(SyntheticOptions()), STACKS)
    poker.open(1, 4)
    poker.cards("AS KS QS JS AH KH QH JH")
    assert poker.noted() == [("first_bet_missing", "16(17)")] * 2
    poker.cards("9S")
    assert poker.due == (2, ("fold", "call", "bet"))
    poker.acts("2 call", "3 fold", "4 check", "1 check")
    assert poker.detail["pot"] == 300


@pytest.mark.article("16(12)")
def test_blind_raises_are_an_option() -> None:
    """Art. 16(12): seat 3 lays 200 unseen; who plays lays 400, and seat 3 then may raise."""
    poker = synthetic()
    poker.acts("3 blind_raise 200")
    assert poker.noted() == [("no_blind_raise", "16(12)")]
    poker = synthetic(blind_raises=True)
    poker.acts("3 blind_raise 200", "4 call", "1 fold", "2 call")
    assert poker.due == (3, ("fold", "call", "raise"))
    poker.acts("3 raise 700", "4 call", "2 fold")
    poker.cards("9S")
    assert poker.detail["due"]["seat"] == 3
    assert poker.detail["pot"] == 400 + 900 + 900 + 400


@pytest.mark.article("16(12)(a)")
def test_who_gives_up_his_blind_raise_loses_it() -> None:
    """Art. 16(12)(a)."""
    poker = synthetic(blind_raises=True)
    poker.acts("3 blind_raise 200", "4 call", "1 call", "2 fold", "3 fold")
    assert poker.detail["pot"] == 400 + 200 + 400 + 400
    assert poker.detail["stacks"]["seat_3"] == 9_700


@pytest.mark.article("16(9)(h)", "16(11)(a)")
def test_court_cards_have_their_names() -> None:
    """Art. 16(9)(h), 16(11)(a)."""
    poker = synthetic("AS 8S 9S TS KH 9H TH 8H")
    for card in ("AD", "KD", "QC", "8D", "TD"):
        poker.cards(card)
        poker.acts("2 check", "3 check", "4 check", "1 check")
    poker.acts("2 show", "3 show", "4 show", "1 show")
    assert poker.result.outcome["combinations"]["seat_1"] == "court_pairs"
    assert poker.result.announcements["pt"].endswith("figuras com pares")


@pytest.mark.article("16(4)")
@pytest.mark.parametrize(
    ("chips", "players", "codes"), [(99, 4, []), (100, 5, []), (40, 4, [("stack_below_entry", "16(4)")])]
)
def test_the_house_says_what_a_player_brings(chips: int, players: int, codes: list[tuple[str, str]]) -> None:
    """`entry` at least; a stack below the minimum is not dealt in before it is filled up."""
    poker = PokerTable(SyntheticPoker(SyntheticOptions(entry=50)), (*STACKS, chips))
    assert poker.noted() == codes
    poker.open()
    assert len(poker.detail["players"]) == players


def test_faults_are_cited_by_paragraphs_of_its_own() -> None:
    """Its ante is of 16(8); the number of raises is left to 13(47)."""
    poker = PokerTable(SyntheticPoker(SyntheticOptions()), STACKS)
    poker.open()
    poker.acts("1 post 70")
    assert poker.noted() == [("wrong_post", "16(8)")]
