"""Hold'em and Omaha of Angola: first bets, seats and errors of the deal, with amounts counted by hand."""

from typing import Any

import pytest
from poker_hands import PokerTable

from protocols.contract.events import (
    MOST,
    CardDrawn,
    CardExposed,
    EventsMissed,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
)
from rules.angola.holdem import Holdem
from rules.angola.omaha import Omaha
from rules.angola.unbanked_poker import BlindsOptions

LAW = ("angola.holdem", "angola.omaha")
STACKS = (10_000, 10_000, 10_000, 10_000)
OWN = "AS KS QS JS AH KH QH JH"
OMAHA_OWN = "2S 3S 4S 5S 7H 6H 9H 8H"


@pytest.fixture(params=[Holdem, Omaha], autouse=True)
def kind(request: pytest.FixtureRequest) -> Any:
    """Each test is played at a table of both games."""
    Blinds.kind = request.param
    return request.param


class Blinds:
    """The game that the tests are played at."""

    kind: Any = Holdem


def table(stacks: tuple[int, ...] = STACKS, **options: Any) -> PokerTable:
    return PokerTable(Blinds.kind(BlindsOptions(**options)), stacks)


def dealt(stacks: tuple[int, ...] = STACKS, **options: Any) -> PokerTable:
    """Seat 1 has the hand, seat 2 the big bet; seat 3 is to act."""
    poker = table(stacks, **options)
    poker.open(1, 2)
    poker.cards(OWN if Blinds.kind is Holdem else f"{OWN} {OMAHA_OWN}")
    return poker


def called(poker: PokerTable, *seats: int) -> None:
    poker.acts(*(f"{seat} call" for seat in seats))


@pytest.mark.article("13(51)")
def test_the_last_bettor_takes_the_pot_unseen() -> None:
    """Art. 13(51): what nobody called goes back, of the pot no hand is shown."""
    poker = dealt(percentage=50)
    poker.acts("3 raise 500", "4 fold", "1 fold", "2 fold")
    assert poker.paid == {1: (50, 0), 2: (100, 0), 3: (500, 400 + 238)}
    assert "hands" not in poker.result.outcome
    assert poker.result.announcements["en"] == "seat 3 takes the pot"
    assert f"{Holdem.law} art. 13(51)" in poker.result.law


@pytest.mark.article("13(29)", "13(30)")
def test_the_hand_goes_round_and_the_chips_stay() -> None:
    """Art. 13(29), 13(30)."""
    poker = dealt()
    poker.acts("3 fold", "4 fold", "1 fold")
    poker.open(2, 3)
    assert poker.stacks == [9_950, 10_000, 9_900, 10_000]
    poker.acts("4 fold", "1 fold", "2 fold")
    poker.open(3, 4)
    assert poker.due[0] == 1
    assert poker.noted() == []


@pytest.mark.article("13(24)", "14(8)")
def test_no_hand_without_four_players() -> None:
    """Art. 13(24), 14(8): seat 4 has less than the minimum and is not dealt in."""
    poker = table((1000, 1000, 1000, 90))
    poker.open()
    assert (poker.view.phase, poker.waits()) == ("suspended", "too_few_players")
    poker.tell(RoundVoided(), SeatActed(4, "stack", amount=1000))
    poker.open(1, 2)
    assert poker.due[0] == 3
    poker.acts("3 fold", "4 fold", "1 fold")
    poker.tell(SeatOpened(5), SeatActed(5, "stack", amount=99))
    poker.open(2, 3)
    assert poker.noted()[-1] == ("stack_below_minimum", "14(8)")


@pytest.mark.article("13(14)(e)", "13(28)", "14(7)")
def test_chips_are_bought_between_two_hands() -> None:
    """Art. 13(14)(e), 13(28), 14(7)."""
    poker = dealt(entry=5000)
    poker.acts("3 stack 20000")
    assert poker.noted() == [("chips_in_hand", "13(14)(e)")]
    poker.acts("3 fold", "4 fold", "1 fold", "3 stack 20000")
    assert poker.stacks[2] == 20_000
    poker.tell(SeatOpened(7), SeatActed(7, "stack", amount=4000))
    assert poker.noted()[:2] == [("stack_below_average", "13(28)"), ("stack_below_entry", "14(7)")]


@pytest.mark.article("13(52)")
@pytest.mark.parametrize("seat", [4, 5])
@pytest.mark.parametrize("missed", [False, True])
def test_more_chips_than_a_number_can_hold_are_told_again(seat: int, missed: bool) -> None:
    """Whoever has too many: no hand begins until that seat's chips are told, and the others' where they may not be."""
    poker = table()
    most = MOST - 10_000 * (len(STACKS) - (seat <= len(STACKS)))
    poker.tell(SeatActed(seat, "stack", amount=most + 1))
    assert poker.noted() == [("stack_too_large", "13(52)")]
    if missed:
        poker.tell(EventsMissed(1), *(SeatActed(one, "stack", amount=10_000) for one in range(1, 5) if one != seat))
    poker.open()
    assert (poker.view.phase, poker.waits()) == ("suspended", "stacks_unknown")
    assert f"seat_{seat}" in poker.view.detail["stacks"]
    poker.tell(RoundVoided(), SeatActed(seat, "stack", amount=most))
    poker.open(1, 2)
    assert poker.view.phase != "suspended"
    assert sum(poker.stacks) + poker.view.detail["pot"] == MOST


@pytest.mark.article("14(9)")
def test_a_new_player_does_not_take_the_hand() -> None:
    """Art. 14(9): seat 2 joins where the hand is due; it goes to seat 3, and seat 2 plays in the deal after it."""
    poker = table((10_000, 0, 10_000, 10_000, 10_000))
    poker.tell(SeatClosed(2))
    poker.open(1, 3)
    poker.acts("4 fold", "5 fold", "1 fold")
    poker.tell(SeatOpened(2), SeatActed(2, "stack", amount=10_000))
    poker.open(3, 4)
    assert poker.detail["players"] == [3, 4, 5, 1]
    poker.acts("5 fold", "1 fold", "3 fold")
    poker.open(4, 5)
    assert poker.detail["players"] == [4, 5, 1, 2, 3]


@pytest.mark.article("13(13)", "14(19)")
def test_who_rests_owes_the_first_bets_that_passed_him() -> None:
    """Art. 13(13), 14(19): seat 2 misses the big bet and the small one; 150 are dead beside its call of 100."""
    poker = table((10_000,) * 5)
    poker.acts("2 rest")
    poker.open(1, 3)
    poker.acts("4 fold", "5 fold", "1 fold")
    poker.open(3, 4)
    poker.acts("2 return", "5 fold", "1 fold", "3 fold")
    poker.open(4, 5, 2)
    assert poker.stacks[1] == 9_850
    poker.acts("1 fold", "2 call", "3 fold", "4 fold")
    poker.acts("5 fold")
    assert poker.paid[2] == (250, 400)


@pytest.mark.article("14(18)")
def test_after_five_deals_without_a_bet_a_big_bet_is_posted() -> None:
    """Art. 14(18): with eight seats, seat 8 only folds; in the sixth deal it posts 100, which counts as its bet."""
    poker = table((10_000,) * 8)
    for n in range(1, 6):
        poker.open(n, n + 1)
        order = [(n + 1 + place) % 8 + 1 for place in range(7)]
        poker.acts(*(f"{seat} fold" for seat in order))
    poker.open(6, 7, 8)
    assert poker.noted() == []
    poker.acts("8 check")
    assert poker.noted() == []
    assert poker.due[0] == 1


@pytest.mark.article("13(69)(g)")
@pytest.mark.parametrize(
    ("events", "code"),
    [
        ((CardExposed("seat_3", "QS"), CardExposed("seat_2", "KS")), "turned_in_deal"),
    ],
)
def test_errors_of_the_deal_void_the_hand(events: Any, code: str) -> None:
    """Art. 13(69)(g): all first bets go back; the next hand begins with the next seat."""
    poker = table()
    poker.open(1, 2)
    poker.cards("AS KS QS")
    poker.tell(*events)
    void = poker.result.void
    assert void is not None
    assert void.reason.code == code
    assert poker.paid == {1: (50, 50), 2: (100, 100)}
    poker.open(2, 3)
    assert poker.stacks == [10_000, 9_950, 9_900, 10_000]


@pytest.mark.article("13(70)(d)", "13(70)(h)")
def test_a_flop_too_early_is_dealt_again_without_burning() -> None:
    """Art. 13(70)(d), (h)."""
    poker = dealt()
    called(poker, 3, 4)
    poker.cards("2C AD 7D 9C")
    assert poker.detail["board"] == []
    assert poker.due == (1, ("fold", "call"))
    called(poker, 1)
    poker.acts("2 check")
    poker.cards("AD 8D 8C")
    assert poker.detail["board"] == ["AD", "8D", "8C"]
    assert poker.noted() == [("street_too_early", "13(70)(d)")]


@pytest.mark.article("13(70)(e)")
def test_a_turn_too_early_gives_its_place_to_the_next_card() -> None:
    """Art. 13(70)(e): burn, turn; then the river without burning."""
    poker = dealt()
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    poker.cards("2C AD 7D 9C")
    poker.acts("1 check")
    poker.cards("3C 4D")
    poker.acts("2 check", "3 check", "4 check")
    poker.cards("5C 6C")
    assert poker.detail["board"] == ["AD", "7D", "9C", "6C"]
    poker.acts("1 check", "2 check", "3 check", "4 check")
    poker.cards("4D")
    assert poker.detail["board"] == ["AD", "7D", "9C", "6C", "4D"]
    assert poker.noted() == [("street_too_early", "13(70)(e)")]


@pytest.mark.article("13(70)(f)")
def test_a_river_too_early_is_drawn_again_without_burning() -> None:
    """Art. 13(70)(f)."""
    poker = dealt()
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    poker.cards("2C AD 7D 9C")
    poker.acts("1 check", "2 check", "3 check", "4 check")
    poker.cards("3C 4D")
    poker.acts("1 check", "2 check", "3 check")
    poker.cards("5C 6C")
    poker.acts("4 check")
    poker.cards("6D")
    assert poker.detail["board"] == ["AD", "7D", "9C", "4D", "6D"]
    assert poker.noted() == [("street_too_early", "13(70)(f)")]


@pytest.mark.article("13(70)(g)")
def test_a_card_turned_instead_of_burnt_is_the_burnt_one() -> None:
    """Art. 13(70)(g)."""
    poker = dealt()
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    poker.tell(CardDrawn("2C", face="up"))
    poker.cards("AD 7D 9C")
    assert poker.detail["board"] == ["AD", "7D", "9C"]
    assert poker.noted() == [("burnt_card_turned", "13(70)(g)")]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"minimum": 101}, "14(11)"), ({"maximum": 600}, "13(20)"), ({"maximum": 200}, "13(20)")],
)
def test_options_that_the_text_excludes(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)")):
        BlindsOptions(**options)
    assert BlindsOptions(maximum=250).maximum == 250
    assert BlindsOptions(maximum=500).maximum == 500


@pytest.mark.article("14(10)", "14(11)", "14(12)", "14(13)", "14(14)")
def test_the_hand_lays_the_small_bet_and_its_neighbour_the_big_one() -> None:
    """Half of the minimum and the minimum; then the left of the big bet speaks, and on later streets the hand."""
    poker = table(minimum=200)
    poker.open()
    assert poker.due == (1, ("post",))
    poker.acts("1 post 200")
    assert poker.noted() == [("wrong_post", "14(11)")]
    poker.acts("1 post 100", "2 post 100")
    assert poker.noted()[1:] == [("wrong_post", "14(12)")]
    poker.acts("2 post 200")
    assert (poker.stacks, poker.due[0]) == ([9_900, 9_800, 10_000, 10_000], 3)
    poker.cards(OWN if Blinds.kind is Holdem else f"{OWN} {OMAHA_OWN}")
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    poker.cards("2C AD 7D 9C")
    assert poker.due[0] == 1


@pytest.mark.article("13(41)", "13(42)", "13(43)", "13(44)", "13(45)", "13(46)", "15(2)", "14(6)")
def test_each_street_has_its_burnt_card_and_its_bets() -> None:
    """Own cards, then a burnt card and three common ones, and twice a burnt card and one."""
    poker = dealt()
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    for cards, board in (("2C AD 7D 9C", 3), ("3C 4D", 4), ("5C 6C", 5)):
        assert poker.detail["due"]["hand"] == "burn"
        burnt, *common = cards.split()
        poker.cards(burnt)
        assert poker.detail["due"]["hand"] == "board"
        poker.cards(" ".join(common))
        assert len(poker.detail["board"]) == board
        assert poker.due == (1, ("fold", "check", "bet"))
        poker.acts("1 check", "2 check", "3 check", "4 check")
    assert poker.view.phase == "showdown"


@pytest.mark.article("14(8)")
@pytest.mark.parametrize(("chips", "players"), [(99, 4), (100, 5)])
def test_a_stack_below_the_minimum_must_be_filled_up(chips: int, players: int) -> None:
    poker = table((*STACKS, chips))
    poker.open()
    assert len(poker.detail["players"]) == players


@pytest.mark.article("14(7)")
@pytest.mark.parametrize(("chips", "noted"), [(20_000, []), (19_999, [("stack_below_entry", "14(7)")])])
def test_a_new_player_brings_so_much(chips: int, noted: list[tuple[str, str]]) -> None:
    poker = table(entry=20_000)
    before = poker.noted()
    poker.acts(f"7 stack {chips}")
    assert poker.noted()[len(before) :] == noted


@pytest.mark.article("14(18)")
@pytest.mark.parametrize(("deals", "posts"), [(4, False), (5, True)])
def test_five_deals_without_a_bet_and_no_fewer(deals: int, posts: bool) -> None:
    poker = table((10_000,) * 9)
    for n in range(1, deals + 1):
        poker.open(n, n + 1)
        order = [(n + 1 + place) % 9 + 1 for place in range(8)]
        poker.acts(*(f"{seat} fold" for seat in order))
    poker.open(deals + 1, deals + 2)
    assert (poker.due[1] == ("post",)) == posts


@pytest.mark.article("14(20)")
def test_a_missing_first_bet_does_not_void() -> None:
    """Seat 1 forgot the small bet: to play it lays the whole bet. Where it gives up, the pot is smaller."""
    poker = table()
    poker.open()
    poker.acts("2 post")
    poker.cards(OWN if Blinds.kind is Holdem else f"{OWN} {OMAHA_OWN}")
    assert poker.noted() == [("first_bet_missing", "14(20)")]
    poker.acts("3 fold", "4 call", "1 fold", "2 check")
    assert poker.detail["pot"] == 200


@pytest.mark.article("13(70)(c)")
def test_a_card_turned_in_the_deal_is_the_next_burnt_card() -> None:
    """Seat 3 has another card at the end of the deal, and the flop follows without a burnt card."""
    poker = table()
    poker.open(1, 2)
    poker.cards("AS KS QS")
    poker.tell(CardExposed("seat_3", "QS"))
    rest = "JS AH KH QH JH" if Blinds.kind is Holdem else f"JS AH KH QH JH {OMAHA_OWN}"
    poker.cards(rest)
    assert poker.view.phase == "dealing"
    poker.cards("TH")
    called(poker, 3, 4, 1)
    poker.acts("2 check")
    poker.cards("2C 3C 4D")
    assert poker.detail["board"] == ["2C", "3C", "4D"]
    assert poker.noted() == [("card_turned", "13(70)(c)")]
