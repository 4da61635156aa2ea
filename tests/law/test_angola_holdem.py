"""Hold'em of Angola, hand by hand, with amounts counted by hand. Each test names its paragraphs."""

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from poker_hands import PokerTable

from protocols.contract.events import (
    BetsOpened,
    CardExposed,
    CardUnreadable,
    EventsMissed,
    HandDispensed,
    HandPassed,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
)
from rules.angola.holdem import Holdem
from rules.angola.unbanked_poker import BlindsOptions
from rules.engine.ruleset import Opened

STACKS = (10_000, 10_000, 10_000, 10_000)
LAW = "angola.holdem"
OWN = "AS KS QS JS AH KH QH JH"


def table(stacks: tuple[int, ...] = STACKS, **options: Any) -> PokerTable:
    return PokerTable(Holdem(BlindsOptions(**options)), stacks)


def dealt(stacks: tuple[int, ...] = STACKS, own: str = OWN, **options: Any) -> PokerTable:
    """Seat 1 has the hand and AS AH, seat 2 KS KH, seat 3 QS QH, seat 4 JS JH; seat 3 is to act."""
    poker = table(stacks, **options)
    poker.open(1, 2)
    poker.cards(own)
    return poker


def called(poker: PokerTable, *seats: int) -> None:
    poker.acts(*(f"{seat} call" for seat in seats))


@pytest.mark.article(
    "13(35)",
    "13(41)",
    "13(42)",
    "13(43)",
    "13(44)",
    "13(45)",
    "13(46)",
    "13(62)",
    "13(64)",
    "13(65)",
    "14(10)",
    "14(11)",
    "14(12)",
    "14(13)",
    "14(14)",
)
def test_a_hand_from_the_first_bets_to_the_payment() -> None:
    """Art. 13(35), 13(41)-(46), 13(62)-(65), 14(10)-(14): seat 1 wins 3000 with three aces, less five per cent."""
    poker = dealt(percentage=50, smallest_chip=10)
    assert poker.due == (3, ("fold", "call", "raise"))
    poker.acts("3 raise 300", "4 call", "1 call", "2 fold")
    assert poker.detail["due"] == {"kind": "card", "hand": "burn", "seat": 0, "actions": []}
    poker.cards("2C AD 7D 9C")
    assert poker.due == (1, ("fold", "check", "bet"))
    poker.acts("1 bet 1000", "3 call", "4 fold")
    poker.cards("3C 4D")
    poker.acts("1 check", "3 check")
    poker.cards("5C 6D")
    poker.acts("1 check", "3 bet 400", "1 call")
    assert poker.view.phase == "showdown"
    assert poker.detail["due"] == {"kind": "decision", "hand": "seat_3", "seat": 3, "actions": ["show", "muck"]}
    assert "AS" not in json.dumps(poker.detail)
    poker.acts("3 show", "1 show")
    assert poker.paid == {1: (1700, 3610), 2: (100, 0), 3: (1700, 0), 4: (300, 0)}
    assert poker.result.outcome["rake"] == 190
    assert poker.stacks == [11_910, 9_900, 8_300, 9_700]
    assert poker.result.outcome["hands"] == {"seat_3": ("QS", "QH"), "seat_1": ("AS", "AH")}
    assert poker.result.outcome["combinations"] == {"seat_1": "three_of_a_kind", "seat_3": "one_pair"}
    assert poker.result.announcements["pt"] == "lugar 1 ganha com trio"
    assert [one.rpartition(" ")[2] for one in poker.result.law] == [
        "13(7)(a)",
        "13(17)(g)",
        "13(18)",
        "13(65)",
        "15(3)",
    ]
    assert poker.result.irregularities == ()


@pytest.mark.article("13(38)", "13(48)", "13(49)")
def test_all_in_players_have_side_pots() -> None:
    """Art. 13(38), 13(48)-(49): 300, 700 and twice 2000; the board runs out without bets between the last two."""
    poker = dealt((2_000, 300, 700, 2_000), own="2C KS QS 2D 7C KH QH 7D")
    poker.acts("3 raise 700", "4 raise 2000", "1 call", "2 call")
    poker.cards("3C 9D 8S 5H 4C JC 6C TC")
    assert poker.due[1] == ("show", "muck")
    assert poker.detail["pots"] == [
        {"amount": 1200, "among": [1, 2, 3, 4]},
        {"amount": 1200, "among": [1, 3, 4]},
        {"amount": 2600, "among": [1, 4]},
    ]
    poker.acts("1 show", "2 show", "3 show", "4 show")
    # The board 9 8 5 J T is a straight with a seven for 1 and 4, and with a queen for 3.
    assert poker.paid == {1: (2000, 1300), 2: (300, 0), 3: (700, 2400), 4: (2000, 1300)}
    assert {"13(38)", "13(49)", "13(66)", "13(67)"} <= {one.rpartition(" ")[2] for one in poker.result.law}


@pytest.mark.article("13(66)", "13(67)")
def test_odd_units_go_to_the_hand_first() -> None:
    """Art. 13(66), 13(67): three share 700 in units of 100."""
    poker = dealt(own="2C KS 2S 2H 3C KH 3S 3H")
    poker.acts("3 call", "4 call", "1 call", "2 raise 50", "2 check")
    poker.cards("4C AD KD QD")
    poker.acts("1 bet 200", "2 fold", "3 call", "4 call")
    poker.cards("5C JD")
    poker.acts("1 check", "3 check", "4 check")
    poker.cards("6C TD")
    poker.acts("1 check", "3 check", "4 check", "1 show", "3 show", "4 show")
    assert poker.paid == {1: (300, 400), 2: (100, 0), 3: (300, 300), 4: (300, 300)}


@pytest.mark.article("13(7)(a)")
def test_the_percentage_has_a_cap() -> None:
    """Art. 13(7)(a)."""
    poker = dealt(percentage=50, percentage_cap=20)
    poker.acts("3 raise 500", "4 call", "1 fold", "2 fold")
    poker.cards("2C 2D 3D 4D")
    poker.acts("3 bet 100", "4 fold")
    assert poker.result.outcome["rake"] == 20
    assert poker.paid[3] == (600, 100 + 1150 - 20)


@pytest.mark.article("13(6)")
def test_there_are_ten_seats() -> None:
    """Art. 13(6)."""
    poker = table()
    poker.tell(SeatOpened(10), SeatOpened(11))
    assert poker.noted() == [("no_such_seat", "13(6)")]


@pytest.mark.article("13(13)")
def test_a_third_rest_is_noted() -> None:
    """Art. 13(13)."""
    poker = table((10_000,) * 5)
    poker.acts("3 rest")
    for small, big, others in ((1, 2, (4, 5, 1)), (2, 4, (5, 1, 2)), (4, 5, (1, 2, 4))):
        poker.open(small, big)
        poker.acts(*(f"{seat} fold" for seat in others))
    assert poker.noted() == [("rests_too_long", "13(13)")]


@pytest.mark.article("14(20)")
def test_a_missing_first_bet_does_not_void() -> None:
    """Art. 14(20): seat 1 forgot the small bet; its call is the whole bet."""
    poker = table()
    poker.open(2)
    poker.cards(OWN)
    assert poker.noted() == [("first_bet_missing", "14(20)")]
    poker.acts("3 call", "4 call", "1 call", "2 check")
    assert poker.detail["pot"] == 400


@pytest.mark.article("13(70)(c)")
def test_a_card_turned_in_the_deal_is_the_next_burnt_card() -> None:
    """Art. 13(70)(c): seat 3's first card is turned; it has another at the end, and the flop follows at once."""
    poker = table()
    poker.open(1, 2)
    poker.cards("AS KS QS")
    poker.tell(CardExposed("seat_3", "QS"))
    poker.cards("JS AH KH QH JH")
    assert poker.view.phase == "dealing"
    poker.cards("TH")
    assert poker.due[0] == 3
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    poker.cards("2C 3C 4D")
    assert poker.detail["board"] == ["2C", "3C", "4D"]
    assert poker.noted() == [("card_turned", "13(70)(c)")]


@pytest.mark.article("13(70)(b)", "13(71)(g)")
def test_an_absent_player_and_dead_hands() -> None:
    """Art. 13(70)(b), 13(71)(g): seat 3 did not come in time, 4 and 1 mixed their cards; their bets stay in the pot."""
    poker = dealt()
    poker.acts("3 absent", "4 call", "1 call", "4 dead", "1 dead")
    assert poker.paid == {1: (100, 0), 2: (100, 300), 4: (100, 0)}
    assert poker.result.outcome["seats"] == {"seat_1": "dead", "seat_2": "wins", "seat_3": "folded", "seat_4": "dead"}


@pytest.mark.article("13(71)(g)")
def test_the_last_live_hand_wins_though_it_has_not_bet() -> None:
    """Art. 13(71)(g): seats 1 and 2 mix their cards before seat 4 acts; seat 4 takes the first bets."""
    poker = dealt(percentage=50)
    poker.acts("3 fold", "1 dead", "2 dead")
    assert poker.paid == {1: (50, 0), 2: (100, 0), 4: (0, 143)}
    assert poker.stacks == [9_950, 9_900, 10_000, 10_143]
    assert poker.result.outcome["rake"] == 7


@pytest.mark.article("13(71)(f)", "13(71)(i)")
def test_a_skipped_player_may_only_call() -> None:
    """Art. 13(71)(f), (i)."""
    poker = dealt()
    poker.acts("4 raise 300", "3 skipped")
    assert poker.due == (3, ("fold", "call"))
    assert poker.noted() == [("out_of_turn", "13(71)(f)")]


@pytest.mark.article("13(71)(e)")
def test_shown_cards_change_nothing_before_the_end() -> None:
    """Art. 13(71)(e)."""
    poker = dealt()
    poker.acts("3 show")
    poker.tell(CardExposed("seat_4", "JS"))
    assert poker.noted() == [("shown_early", "13(71)(e)")] * 2
    assert poker.due[0] == 3


def showdown(poker: PokerTable) -> None:
    """All four call, and nobody bets: the board is AD 7D 9C 4D 6C."""
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    for cards in ("2C AD 7D 9C", "3C 4D", "5C 6C"):
        poker.cards(cards)
        poker.acts("1 check", "2 check", "3 check", "4 check")


@pytest.mark.article("13(71)(b)", "13(64)")
def test_a_hand_given_up_at_the_showdown_has_no_right_to_the_pot() -> None:
    """Art. 13(71)(b), 13(64): seat 1 throws its aces away, seat 2 wins with kings."""
    poker = dealt()
    showdown(poker)
    poker.acts("1 muck", "2 show", "3 show", "4 show")
    assert poker.paid[2] == (100, 400)
    assert "seat_1" not in poker.result.outcome["hands"]


@pytest.mark.article("13(70)(a)")
def test_a_wrong_call_is_put_right_by_the_cards() -> None:
    """Art. 13(70)(a): told after the payment, seat 3 has two nines; the next hand goes on with the right stacks."""
    poker = dealt()
    showdown(poker)
    poker.acts("1 show", "2 show", "3 show", "4 show")
    assert poker.stacks == [10_300, 9_900, 9_900, 9_900]
    first = poker.result.round
    poker.lay(first, seat_1="5S 5H")
    assert poker.result.supersedes == first
    assert poker.stacks == [9_900, 10_300, 9_900, 9_900]
    poker.acts("3 stack 20000")
    poker.lay(first, seat_1="AS AH")
    assert poker.stacks == [10_300, 9_900, 20_000, 9_900]


@pytest.mark.article("13(70)(a)")
def test_the_next_hand_has_the_stacks_of_a_corrected_one() -> None:
    """Art. 13(70)(a)."""
    poker = dealt()
    showdown(poker)
    poker.acts("1 show", "2 show", "3 show", "4 show")
    first = poker.result.round
    poker.open(2, 3)
    poker.lay(first, seat_1="5S 5H")
    assert poker.result.supersedes == first
    assert poker.stacks == [9_900, 10_250, 9_800, 9_900]


@pytest.mark.article("13(41)", "13(42)", "13(43)", "13(44)", "13(45)", "13(46)")
def test_without_a_device_a_person_tells_the_cards() -> None:
    """Art. 13(41)-(46): the shuffler gives packets of two, the dealer enters the common cards and the hands shown."""
    poker = table()
    poker.open(1, 2)
    poker.tell(*(HandDispensed(2) for _ in range(4)))
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    for board in ("AD 7D 9C", "AD 7D 9C 4D", "AD 7D 9C 4D 6C"):
        poker.lay(board=board)
        poker.acts("1 check", "2 check", "3 check", "4 check")
    assert poker.view.phase == "showdown"
    poker.tell(RoundVoided())
    assert poker.paid == dict.fromkeys((1, 2, 3, 4), (100, 100))


@pytest.mark.article("13(64)")
def test_hands_that_are_told_are_shown() -> None:
    """Art. 13(64)."""
    poker = table()
    poker.open(1, 2)
    poker.tell(*(HandDispensed(2) for _ in range(4)))
    poker.acts("3 call", "4 fold", "1 fold", "2 check")
    for board in ("AD 7D 9C", "AD 7D 9C 4D", "AD 7D 9C 4D 6C"):
        poker.lay(board=board)
        poker.acts("2 check", "3 check")
    poker.acts("2 show")
    assert poker.noted() == [("cards_not_told", "13(64)")]
    poker.lay(seat_2="KS KH", seat_3="9S 9H")
    assert poker.paid == {1: (50, 0), 2: (100, 0), 3: (100, 250)}


@pytest.mark.parametrize(
    ("hands", "code"),
    [
        ({"board": "AD 7D"}, "board_by_law"),
        ({"board": "AD 7D 9C 4D"}, "board_by_law"),
        ({"seat_9": "2C 2D"}, "foreign_hand"),
        ({"seat_3": "2C 2D 2H"}, "hand_cards"),
        ({"board": "AS 7D 9C"}, "two_places"),
        ({}, "no_hand_told"),
    ],
)
def test_cards_that_cannot_lie_so_are_not_used(hands: dict[str, str], code: str) -> None:
    poker = dealt()
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    poker.lay(**hands)
    assert (poker.view.phase, poker.waits()) == ("suspended", code)
    poker.lay(board="AD 7D 9C")
    assert poker.due[0] == 1


def test_after_an_unreadable_own_card_each_shown_hand_is_entered() -> None:
    """It may be no card: then the shoe's next cards belong to other seats. Omaha, life 43000059 of the campaign."""
    poker = table()
    poker.open(1, 2)
    poker.cards("AS KS QS JS")
    poker.tell(CardUnreadable())
    poker.cards("KH QH JH")
    showdown(poker)
    poker.acts("2 show", "3 show")
    assert poker.noted() == [("cards_not_told", "13(64)")] * 2
    poker.lay(seat_1="AS AH")
    poker.acts("2 show")
    assert poker.noted() == [("cards_not_told", "13(64)")] * 3
    poker.lay(seat_2="KS KH", seat_3="QS QH", seat_4="JS JH")
    assert poker.paid[1] == (100, 400)


def test_an_unreadable_common_card_waits_for_a_person() -> None:
    poker = dealt()
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    poker.cards("2C AD 7D")
    poker.tell(CardUnreadable())
    assert poker.waits() == "card_unreadable"
    poker.lay(board="AD 7D 9C")
    assert poker.due[0] == 1


def test_after_a_loss_the_pot_waits_and_a_declared_void_gives_each_seat_its_chips() -> None:
    poker = dealt()
    poker.acts("3 raise 300", "4 call")
    poker.tell(EventsMissed(1))
    assert poker.view.phase == "suspended"
    poker.lay(board="AD 7D 9C")
    assert (poker.view.phase, poker.waits()) == ("suspended", "hand_incomplete")
    poker.tell(RoundVoided())
    assert poker.paid == {1: (50, 50), 2: (100, 100), 3: (300, 300), 4: (300, 300)}
    poker.open()
    assert poker.waits() == "stacks_unknown"
    poker.tell(RoundVoided(), *(SeatActed(seat, "stack", amount=10_000) for seat in (1, 2, 3, 4)))
    poker.open(2, 3)
    assert poker.view.phase == "betting"


def test_what_is_told_while_a_hand_waits_leaves_it_void() -> None:
    poker = dealt()
    poker.cards("AS")
    assert poker.waits() == "two_places"
    poker.acts("3 call")
    poker.lay(seat_1="AS AH")
    assert poker.view.phase == "suspended"
    poker.tell(RoundVoided())
    assert poker.paid == {1: (50, 50), 2: (100, 100)}


def test_a_hand_whose_chips_do_not_add_up_is_not_paid() -> None:
    """The invariant is checked at the end of each hand, whatever went wrong before."""
    poker = dealt()
    poker.acts("3 fold", "4 fold")
    position = poker.state.position
    lost = replace(position.deal, bets=replace(position.deal.bets, stacks={**position.deal.bets.stacks, 3: 9_999}))
    poker.state = replace(poker.state, position=replace(position, deal=lost))
    poker.acts("1 fold")
    assert (poker.view.phase, poker.waits()) == ("suspended", "pot_unbalanced")


@pytest.mark.article("13(29)")
def test_the_dealer_may_say_who_has_the_hand() -> None:
    """Art. 13(29)."""
    poker = table()
    poker.tell(HandPassed(3))
    poker.open(3, 4)
    assert poker.due[0] == 1


@pytest.mark.article("13(39)(a)")
def test_a_player_who_leaves_gives_up_his_hand() -> None:
    """Art. 13(39)(a): what he put in stays; his chips go with him after the hand."""
    poker = dealt()
    called(poker, 3)
    poker.tell(SeatClosed(3))
    poker.acts("4 fold", "1 fold")
    assert poker.paid[2] == (100, 250)
    assert list(poker.detail["stacks"]) == ["seat_1", "seat_2", "seat_4"]


def test_nothing_is_played_where_no_hand_is_open() -> None:
    poker = table()
    poker.acts("1 call")
    poker.cards("AS")
    assert poker.noted() == [("bet_without_round", "13(36)"), ("card_without_round", "13(34)")]


@pytest.mark.article("13(21)(a)")
def test_the_limits_of_a_bet_are_the_houses() -> None:
    """Art. 13(21): half of the pot with the call: 250 are in, 100 to call; 175 more."""
    poker = dealt(limit="half_pot", pot="with_call", rounding="down")
    called(poker, 3)
    poker.acts("4 raise 1000")
    assert poker.noted() == [("above_maximum", "13(39)(d)")]
    assert poker.detail["laid"]["seat_4"] == 275


@pytest.mark.article("13(50)")
def test_folded_chips_lie_in_proportion_by_the_letter() -> None:
    """Art. 13(50): seat 3 is all-in for 300 of 1000, seat 1 folded after 200: 60 of them are in its pot."""
    paid = {}
    for reading in ("layered", "proportional"):
        poker = dealt((1000, 1000, 300, 1000), own="2C 3C QS 2D 7C 8D QH 7D", all_in=reading)
        poker.acts("3 raise 300", "4 raise 1000", "1 fold", "2 call")
        poker.cards("KC 9D 8S 5H KD JC KS TC")
        poker.acts("2 show", "3 show", "4 show")
        paid[reading] = poker.paid[3][1]
    assert paid == {"layered": 950, "proportional": 915}


def test_the_state_survives_json_at_every_step() -> None:
    poker = dealt()
    showdown(poker)
    poker.acts("1 show", "2 show", "3 show", "4 show")
    again = Holdem(BlindsOptions())
    state, rounds = again.start("t-1"), 0
    for seen in poker.told:
        state, verdicts = again.apply(state, seen)
        rounds += sum(isinstance(one, Opened) for one in verdicts)
        state = msgspec.json.decode(msgspec.json.encode(state), type=Holdem.State)
    assert (state, rounds) == (poker.state, 1)
    assert BetsOpened() in [seen.event for seen in poker.told]
