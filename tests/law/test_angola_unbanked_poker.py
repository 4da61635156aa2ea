"""What hold'em, Omaha and synthetic poker of Angola have in common, at a table of each, with numbers at their edges."""

from collections.abc import Callable
from typing import Any

import pytest
from helpers import script
from poker_hands import PokerTable

from protocols.contract.events import (
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardExposed,
    EventsMissed,
    HandDispensed,
    HandPassed,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeStarted,
)
from rules import RULESETS
from rules.angola.holdem import Holdem
from rules.angola.omaha import Omaha
from rules.angola.synthetic_poker import SyntheticPoker
from rules.engine.ruleset import BadOption, judge, options_from

LAW = ("angola.holdem", "angola.omaha", "angola.synthetic-poker")
STACKS = (10_000, 10_000, 10_000, 10_000)
RANKS = "KQJT98"

every_game = pytest.mark.parametrize("kind", [Holdem, Omaha, SyntheticPoker])


def table(kind: Any, stacks: tuple[int, ...] = STACKS, **options: Any) -> PokerTable:
    return PokerTable(kind(options_from(kind, options)), stacks)


def opened(poker: PokerTable) -> PokerTable:
    """A hand with its first bets, and own cards: at four seats A K Q J of spades, then of hearts, and so on."""
    poker.open()
    for _ in range(len(poker.detail["players"]) if poker.ruleset.variant.ante else 2):
        poker.acts(f"{poker.due[0]} post")
    deck = [rank + suit for suit in "SHDC" for rank in "AKQJ"][: 4 * poker.ruleset.variant.ranking.cards]
    if len(poker.detail["players"]) == 4:
        poker.cards(" ".join(deck))
    return poker


def folded(poker: PokerTable) -> None:
    """All give up but one, after a bet where there is none."""
    while poker.view.phase not in ("resolved", "idle"):
        due = poker.detail["due"]
        if due["kind"] == "card":
            poker.cards("9D")
        elif "bet" in due["actions"]:
            poker.acts(f"{due['seat']} bet 200")
        else:
            poker.acts(f"{due['seat']} fold")


def to_the_showdown(poker: PokerTable, bet_on_the_last: bool = False) -> None:
    """All call; on the last round the second who speaks bets, if asked for, and all call."""
    cards = iter(["8S", "9S", "TS", "8H", "9H", "TH", "8D", "9D", "TD", "8C"])
    checked = False
    while poker.view.phase != "showdown":
        due = poker.detail["due"]
        if due["kind"] == "card":
            poker.cards(next(cards))
            checked = False
            continue
        last = len(poker.detail["board"]) == 5 and bet_on_the_last and "bet" in due["actions"]
        word = "bet 200" if last and checked else "check" if "check" in due["actions"] else "call"
        checked = True
        poker.acts(f"{due['seat']} {word}")


@pytest.mark.article("13(6)")
@every_game
def test_a_table_has_so_many_seats(kind: Any) -> None:
    last = 11 if kind is SyntheticPoker else 10
    poker = table(kind)
    poker.tell(SeatOpened(last))
    assert poker.noted() == []
    poker.tell(SeatOpened(last + 1), SeatActed(last + 1, "stack", amount=100))
    assert poker.noted() == [("no_such_seat", "13(6)")] * 2


@pytest.mark.article("13(24)")
@every_game
def test_a_hand_needs_four_players(kind: Any) -> None:
    poker = table(kind, STACKS[:3])
    poker.open()
    assert (poker.view.phase, poker.waits()) == ("suspended", "too_few_players")
    poker.tell(RoundVoided(), SeatActed(4, "stack", amount=10_000), BetsOpened())
    assert poker.view.phase == "betting"


@pytest.mark.article("13(13)")
@every_game
def test_two_hands_may_be_rested(kind: Any) -> None:
    poker = table(kind, (10_000,) * 5)
    poker.acts("3 rest")
    for _ in range(2):
        folded(opened(poker))
        assert ("rests_too_long", "13(13)") not in poker.noted()
    folded(opened(poker))
    assert ("rests_too_long", "13(13)") in poker.noted()


@pytest.mark.article("13(28)")
@every_game
@pytest.mark.parametrize(("chips", "noted"), [(10_000, []), (9_900, [("stack_below_average", "13(28)")])])
def test_who_joins_brings_the_average(kind: Any, chips: int, noted: list[tuple[str, str]]) -> None:
    """Between hands; before the first hand each brings what he likes."""
    poker = table(kind)
    folded(opened(poker))
    for seat in range(1, 5):
        poker.acts(f"{seat} stack 10000")
    before = poker.noted()
    poker.tell(SeatOpened(7), SeatActed(7, "stack", amount=chips))
    assert [one for one in poker.noted() if one not in before] == noted


@pytest.mark.article("13(14)(e)")
@every_game
def test_no_chips_are_added_in_a_hand(kind: Any) -> None:
    poker = opened(table(kind))
    before = poker.stacks
    poker.acts("3 stack 20000")
    assert poker.noted() == [("chips_in_hand", "13(14)(e)")]
    assert poker.stacks == before


@pytest.mark.article("13(29)", "13(30)")
@every_game
def test_the_hand_begins_at_the_dealers_left_and_goes_round(kind: Any) -> None:
    poker = table(kind)
    hands = []
    for _ in range(5):
        opened(poker)
        hands.append(poker.detail["players"][0])
        folded(poker)
    assert hands == [1, 2, 3, 4, 1]
    poker.tell(HandPassed(4))
    assert opened(poker).detail["players"][0] == 4


@pytest.mark.article("13(34)", "13(35)")
@every_game
def test_own_cards_come_one_at_a_time_from_the_hand_on(kind: Any) -> None:
    poker = opened(table(kind))
    count = poker.ruleset.variant.ranking.cards
    own = poker.state.position.deal.own
    assert {seat: len(cards) for seat, cards in own.items()} == dict.fromkeys(range(1, 5), count)
    assert [cards[:2] for cards in own.values()] == [("AS", "AH"), ("KS", "KH"), ("QS", "QH"), ("JS", "JH")]


@pytest.mark.article("13(36)", "13(37)", "13(40)")
@every_game
def test_each_player_is_asked_in_turn(kind: Any) -> None:
    """And again after a raise, from the left of him who raised."""
    poker = opened(table(kind))
    if kind is SyntheticPoker:
        poker.cards("9D")
    first = poker.due[0]
    poker.acts(f"{first} {'bet' if kind is SyntheticPoker else 'raise'} 300")
    asked = []
    while poker.detail["due"]["kind"] == "decision":
        asked.append(poker.due[0])
        poker.acts(f"{poker.due[0]} call")
    assert asked == [(first + place) % 4 + 1 for place in range(3)]


@pytest.mark.article("13(38)", "13(39)(a)", "13(39)(c)", "13(51)")
@every_game
def test_who_gives_up_loses_his_bets_to_the_last(kind: Any) -> None:
    poker = opened(table(kind))
    before = sum(poker.stacks) + poker.detail["pot"]
    folded(poker)
    assert f"{kind.law} art. 13(51)" in poker.result.law
    assert "hands" not in poker.result.outcome
    assert sum(poker.stacks) == before == 40_000
    assert sorted(poker.result.outcome["seats"].values()) == ["folded", "folded", "folded", "wins"]


@pytest.mark.article("13(39)(b)")
@every_game
def test_nobody_passes_a_bet(kind: Any) -> None:
    poker = opened(table(kind))
    if kind is SyntheticPoker:
        poker.cards("9D")
        poker.acts(f"{poker.due[0]} bet 100")
    seat = poker.due[0]
    poker.acts(f"{seat} check")
    assert poker.noted() == [("check_not_possible", "13(39)(b)")]
    assert poker.due[0] == seat


@pytest.mark.article("13(62)", "13(64)", "13(65)")
@every_game
@pytest.mark.parametrize("bet", [False, True])
def test_who_opened_the_last_round_shows_first(kind: Any, bet: bool) -> None:
    """Where nobody did, who spoke first. Each hand that is shown counts by its cards."""
    poker = opened(table(kind))
    to_the_showdown(poker, bet_on_the_last=bet)
    first = poker.due[0]
    assert first == ((3 if kind is SyntheticPoker else 2) if bet else (2 if kind is SyntheticPoker else 1))
    order = [(first - 1 + place) % 4 + 1 for place in range(4)]
    for seat in order:
        assert poker.due == (seat, ("show", "muck"))
        poker.acts(f"{seat} show")
    ranking, board = poker.ruleset.variant.ranking, poker.result.outcome["board"]
    strengths = {int(name[5:]): ranking.best(cards, board) for name, cards in poker.result.outcome["hands"].items()}
    best = max(strengths.values())
    fates = {f"seat_{seat}": "wins" if found == best else "loses" for seat, found in strengths.items()}
    assert poker.result.outcome["seats"] == fates
    assert f"{kind.law} art. 13(65)" in poker.result.law
    assert sum(poker.stacks) == 40_000


@pytest.mark.article("13(69)(b)")
@every_game
@pytest.mark.parametrize("more", [-1, 1])
def test_a_wrong_number_of_cards_waits_for_a_void(kind: Any, more: int) -> None:
    poker = table(kind)
    poker.open()
    count = poker.ruleset.variant.ranking.cards
    poker.tell(HandDispensed(count))
    assert poker.view.phase != "suspended"
    poker.tell(HandDispensed(count + more))
    assert poker.waits() == "packet_own_cards"
    poker.tell(RoundVoided("dealing error"))
    assert poker.stacks == list(STACKS)


@pytest.mark.article("13(70)(a)")
@every_game
def test_a_wrong_winner_is_put_right_by_the_cards(kind: Any) -> None:
    poker = opened(table(kind))
    to_the_showdown(poker)
    while poker.view.phase == "showdown":
        poker.acts(f"{poker.due[0]} show")
    first, own = poker.result, dict(poker.result.outcome["hands"])
    won = next(name for name, fate in first.outcome["seats"].items() if fate == "wins")
    free = iter(["8C", "9C", "TC", "TD"])
    wrong = " ".join(next(free) for _ in own[won])
    poker.lay(first.round, **{won: wrong})
    assert poker.result.supersedes == first.round
    assert sum(poker.stacks) == 40_000
    poker.lay(first.round, **{won: " ".join(own[won])})
    assert poker.result.outcome["seats"] == first.outcome["seats"]


def all_are_dead_but_one(poker: PokerTable) -> None:
    """The hand ends before a card is dealt."""
    poker.open()
    poker.acts("1 dead", "2 dead", "3 dead")
    assert poker.view.phase == "resolved"


def all_are_all_in(poker: PokerTable) -> None:
    """No round of bets follows: all common cards come one after the other."""
    opened(poker)
    if poker.ruleset.variant.ante:
        poker.cards("8S")
    while poker.detail["due"]["kind"] == "decision":
        poker.acts(f"{poker.detail['due']['seat']} all_in")
    assert poker.detail["due"]["kind"] == "card"


def all_lie_there(poker: PokerTable) -> None:
    """Five common cards lie there, and the last round of bets is over."""
    opened(poker)
    to_the_showdown(poker)
    assert len(poker.detail["board"]) == 5


@every_game
@pytest.mark.parametrize("more", ["8C", "8C 9C"])
@pytest.mark.parametrize("before", [all_are_dead_but_one, all_are_all_in, all_lie_there])
def test_more_than_five_common_cards_are_refused(kind: Any, before: Callable[[PokerTable], None], more: str) -> None:
    poker = table(kind)
    before(poker)
    lying = poker.detail.get("board", [])
    board = " ".join([*lying, *["8S", "9S", "TS", "8H", "9H"][len(lying) :]])
    poker.lay(board=f"{board} {more}")
    assert (poker.view.phase, poker.waits()) == ("suspended", "board_by_law")
    assert poker.detail["board"] == lying
    poker.lay(board=board)
    while poker.view.phase == "showdown":
        poker.acts(f"{poker.due[0]} show")
    assert poker.view.phase == "resolved"
    assert poker.result.void is None
    assert sum(poker.stacks) == 40_000


@every_game
def test_the_last_of_a_hand_is_asked_for_no_bet(kind: Any) -> None:
    """Common cards that are entered after its end begin no round of bets, also where its first bet is missing."""
    poker = table(kind)
    all_are_dead_but_one(poker)
    for board in ("8S 9S TS", "8S 9S TS 8H", "8S 9S TS 8H 9H"):
        poker.lay(board=board)
        assert poker.view.phase == "resolved"
        poker.acts("4 fold")
    assert poker.stacks == list(STACKS)


@every_game
def test_a_hand_that_ended_before_its_bets_closed_is_corrected_again(kind: Any) -> None:
    poker = table(kind)
    all_are_dead_but_one(poker)
    own = " ".join(["TC", "TD", "8C", "8D"][: poker.ruleset.variant.ranking.cards])
    poker.lay(seat_5=own)
    assert (poker.view.phase, poker.waits()) == ("suspended", "foreign_hand")
    poker.lay(seat_4=own)
    assert poker.view.phase == "resolved"
    assert "correction_before_deal" not in [code for code, _ in poker.noted()]


@every_game
def test_common_cards_of_a_street_that_is_not_complete_are_refused(kind: Any) -> None:
    """Also where no seat has to bet any more, and the cards of a folded seat change no pot."""
    poker = opened(table(kind))
    poker.acts("1 dead")
    if kind is SyntheticPoker:
        poker.cards("8S")
    while poker.detail["due"]["kind"] == "decision":
        poker.acts(f"{poker.detail['due']['seat']} all_in")
    if kind is not SyntheticPoker:
        poker.lay(board="8S 9S")
        assert poker.waits() == "board_by_law"
    dead = " ".join(["TC", "TD", "8C", "8D"][: poker.ruleset.variant.ranking.cards])
    poker.lay(board="8S 9S TS 8H 9H", seat_1=dead)
    assert poker.view.phase == "showdown"
    poker.lay(board="8S 9S TS 8H")
    assert poker.waits() == "board_by_law"
    poker.lay(board="8S 9S TS 8H 9H")
    while poker.view.phase == "showdown":
        poker.acts(f"{poker.due[0]} show")
    assert poker.result.outcome["seats"]["seat_1"] == "dead"
    assert "seat_1" not in poker.result.outcome["hands"]
    assert sum(poker.stacks) == 40_000


@every_game
@pytest.mark.parametrize("name", ["seat_²", "seat_٢", "seat_02", "seat_9", "seat_", "seat_" + "9" * 1990])
def test_a_hand_that_is_no_seat_of_the_hand_is_refused(kind: Any, name: str) -> None:
    poker = table(kind)
    all_are_dead_but_one(poker)
    poker.lay(**{name: " ".join(["TC", "TD", "8C", "8D"][: poker.ruleset.variant.ranking.cards])})
    assert (poker.view.phase, poker.waits()) == ("suspended", "foreign_hand")
    poker = table(kind)
    poker.open()
    poker.tell(CardExposed(name, "TC"))
    assert (poker.view.phase, poker.waits()) == ("suspended", "foreign_hand")


@pytest.mark.article("13(70)(b)", "13(71)(g)", "13(71)(h)")
@every_game
def test_hands_that_are_out_leave_their_bets(kind: Any) -> None:
    """The hand of an absent player is taken away; mixed hands, and one whose error was said too late, are dead."""
    poker = opened(table(kind))
    poker.acts("3 absent", "4 dead", "1 dead")
    assert poker.view.phase == "resolved"
    fates = {"seat_1": "dead", "seat_2": "wins", "seat_3": "folded", "seat_4": "dead"}
    assert poker.result.outcome["seats"] == fates
    assert sum(poker.stacks) == 40_000


@pytest.mark.article("13(71)(b)")
@every_game
def test_who_mucks_has_no_right_to_the_pot(kind: Any) -> None:
    poker = opened(table(kind))
    to_the_showdown(poker)
    muck = poker.due[0]
    poker.acts(f"{muck} muck")
    while poker.view.phase == "showdown":
        poker.acts(f"{poker.due[0]} show")
    assert poker.result.outcome["seats"][f"seat_{muck}"] == "dead"
    assert f"seat_{muck}" not in poker.result.outcome["hands"]


@pytest.mark.article("13(71)(e)")
@every_game
def test_shown_cards_do_not_end_a_hand(kind: Any) -> None:
    poker = opened(table(kind))
    poker.acts("3 show")
    assert poker.noted() == [("shown_early", "13(71)(e)")]
    assert poker.view.phase in ("deciding", "dealing")


@pytest.mark.article("13(71)(f)", "13(71)(i)")
@every_game
def test_a_bet_out_of_turn_stands(kind: Any) -> None:
    """And who was passed over may not raise any more."""
    poker = opened(table(kind))
    if kind is SyntheticPoker:
        poker.cards("9D")
    first, other = poker.due[0], poker.due[0] % 4 + 1
    poker.acts(f"{other} {'bet' if kind is SyntheticPoker else 'raise'} 300", f"{first} skipped")
    assert poker.noted() == [("out_of_turn", "13(71)(f)")]
    assert poker.due == (first, ("fold", "call"))


@pytest.mark.article("13(4)")
@pytest.mark.parametrize("name", LAW)
def test_a_damaged_card_asks_for_another_deck(name: str) -> None:
    ruleset: Any = RULESETS[name](RULESETS[name].Options())
    state = ruleset.start("t-1")
    seen = script([CardDamaged("AS"), ShoeStarted(1)])
    state, _ = judge(ruleset, state, seen[0])
    assert [one.code for one in ruleset.view(state).detail["duties"]] == ["deck_replacement"]
    state, _ = judge(ruleset, state, seen[1])
    assert not ruleset.view(state).detail.get("duties")


@pytest.mark.article("13(7)(a)")
@every_game
def test_the_percentage_is_five_per_cent_at_most(kind: Any) -> None:
    with pytest.raises(BadOption, match="percentage"):
        options_from(kind, {"percentage": 51})
    poker = opened(table(kind, percentage=50, percentage_cap=9, smallest_chip=1))
    folded(poker)
    kept = poker.result.outcome["rake"]
    pot = sum(one.stake for one in poker.result.settlements)
    assert 0 < kept <= 9
    assert sum(poker.stacks) == 40_000 - kept
    assert pot - sum(one.returned for one in poker.result.settlements) == kept


@pytest.mark.article("13(19)", "13(20)")
@every_game
@pytest.mark.parametrize(("maximum", "good"), [(498, False), (500, True), (250, True), (248, False)])
def test_the_minimum_is_from_a_fifth_to_two_fifths_of_the_maximum(kind: Any, maximum: int, good: bool) -> None:
    if good:
        assert options_from(kind, {"minimum": 100, "maximum": maximum}).maximum == maximum
        return
    low = {"minimum": 98 if maximum == 498 else 100, "maximum": maximum}
    with pytest.raises(BadOption, match=r"13\(20\)"):
        options_from(kind, low)


@pytest.mark.article("13(21)(a)", "13(21)(b)", "13(21)(c)")
@every_game
@pytest.mark.parametrize("limit", ["half_pot", "pot", "stack"])
@pytest.mark.parametrize("pot", ["with_call", "as_it_lies"])
def test_a_raise_is_bounded_as_the_house_chose(kind: Any, limit: str, pot: str) -> None:
    """After a bet of 200 the next player lays all he has: more than the bound goes back."""
    poker = opened(table(kind, limit=limit, pot=pot, all_in="layered", rounding="down", entry=0))
    if kind is SyntheticPoker:
        poker.cards("9D")
        poker.acts(f"{poker.due[0]} bet 200")
    seat, detail = poker.due[0], poker.detail
    call = max(detail["laid"].values())
    lies = detail["pot"] + (call if pot == "with_call" else 0)
    bound = {"half_pot": max(lies // 2, 100), "pot": lies, "stack": 10_000}[limit]
    before = detail["stacks"][f"seat_{seat}"]
    poker.acts(f"{seat} all_in")
    assert before - poker.detail["stacks"][f"seat_{seat}"] == min(call + bound, before)


@pytest.mark.article("13(52)", "13(53)")
@every_game
def test_chips_lie_before_or_behind_the_line(kind: Any) -> None:
    """What is laid leaves the stack; after a loss the chips of each seat are told again, and none is guessed."""
    poker = opened(table(kind))
    assert sum(poker.stacks) + poker.detail["pot"] == 40_000
    poker.tell(EventsMissed(1))
    assert poker.view.phase == "suspended"
    poker.tell(RoundVoided("declared"), BetsOpened())
    assert poker.waits() == "stacks_unknown"


@every_game
def test_a_seat_that_leaves_takes_its_chips(kind: Any) -> None:
    poker = table(kind, (10_000,) * 5)
    poker.tell(SeatClosed(5))
    assert len(poker.stacks) == 4
    assert isinstance(poker.told[-1].event, SeatClosed)
    poker.tell(CardDrawn("AS"))
    assert poker.noted() == [("card_without_round", "13(34)")]


@every_game
def test_a_seat_that_left_gets_no_stack_by_a_correction(kind: Any) -> None:
    """It took its chips; its place is not occupied by what it laid in the hand."""
    poker = opened(table(kind))
    left = poker.detail["players"][0]
    poker.tell(SeatClosed(left))
    folded(poker)
    before = poker.detail["stacks"]
    assert f"seat_{left}" not in before
    poker.lay(board=" ".join(poker.detail.get("board", [])))
    assert poker.detail["stacks"] == before
    poker.tell(RoundVoided())
    assert f"seat_{left}" not in poker.detail["stacks"]
    assert min(poker.stacks) >= 0


@every_game
def test_a_stack_that_a_correction_would_make_negative_is_entered_again(kind: Any) -> None:
    poker = opened(table(kind))
    folded(poker)
    won = next(int(name[5:]) for name, fate in poker.result.outcome["seats"].items() if fate == "wins")
    poker.acts(f"{won} stack 0")
    poker.tell(RoundVoided())
    assert poker.detail["stacks"][f"seat_{won}"] == 0
    assert sum(poker.detail["stacks"].values()) == 30_000
    poker.tell(BetsOpened())
    assert poker.waits() == "stacks_unknown"
