"""Which keys of the dealer's page mean something, phase by phase, and what ends a suspended round."""

import pytest
from helpers import MACHINES

from daemon.config.model import Table, parse
from daemon.console.dealer.cloth import Cloth, cloth_of
from daemon.console.dealer.keys import (
    Moment,
    Way,
    hand_names,
    keys_of,
    live_actions,
    live_keys,
    next_key,
    next_step,
    seats_taken,
    ways_out,
)
from daemon.console.games import GAMES
from daemon.console.pages.dealer import dome_is_reported
from protocols.contract.facts import (
    BaccaratFacts,
    BlackjackFacts,
    Due,
    FantanFacts,
    RouletteFacts,
    RoundFacts,
    StudPokerFacts,
)
from protocols.contract.reasons import say
from rules import RULESETS

ROUND = ("bets_opened", "bell", "paid")


def live(ruleset: str, now: Moment) -> set[str]:
    return {key for key, why in live_keys(ruleset, now).items() if not why}


SPUN = RouletteFacts(last_pocket="17")
DECIDES = BlackjackFacts(due=Due("decision", "3.2", 3))


@pytest.mark.parametrize("ruleset", ["", *RULESETS])
def test_every_key_is_live_where_the_rules_are_not_heard(ruleset: str) -> None:
    keys = set(keys_of(ruleset)) - {"showdown"}  # of another's hands the page must know that they are missing
    assert live(ruleset, Moment("unknown")) == keys
    assert live_actions("blackjack", Moment("unknown"))[0]


@pytest.mark.parametrize(
    ("ruleset", "now", "first", "others"),
    [
        ("macau.fantan", Moment("idle"), {"bets_opened"}, {"buttons_separated"}),
        ("macau.fantan", Moment("covered", FantanFacts(separated=True)), {"bets_opened"}, {"bet"}),
        ("macau.fantan", Moment("betting", FantanFacts(separated=True)), {"bell"}, {"bet", "void"}),
        ("macau.fantan", Moment("closed"), set(), {"buttons", "void"}),
        ("macau.fantan", Moment("paying", ended=True), {"bets_opened", "paid"}, {"buttons", "buttons_separated"}),
        ("macau.fantan", Moment("suspended"), set(), {"void"}),
        ("macau.fantan", Moment("suspended", ended=True), {"paid"}, {"void", "buttons"}),
        ("macau.cussec", Moment("uncovered"), set(), {"dice", "void"}),
        ("macau.roulette", Moment("betting"), {"bell"}, {"ball_launched", "bet"}),
        ("macau.roulette", Moment("running"), {"bell"}, {"ball", "void"}),
        ("angola.american-roulette", Moment("running", RoundFacts(say={"en": "no more"})), set(), {"ball"}),
        ("macau.roulette", Moment("idle", SPUN), {"bets_opened", "paid"}, {"void", "ball"}),
        (
            "macau.roulette",
            Moment("idle", SPUN, paid=True),
            {"bets_opened"},
            {"ball_launched"},
        ),
        ("angola.craps", Moment("closed"), set(), {"throw", "bet_back"}),
        ("angola.french-bank", Moment("betting"), {"bell"}, {"throw"}),
        ("macau.baccarat", Moment("ended"), set(), {"new_shoe"}),
        ("macau.baccarat", Moment("dealing"), set(), {"correct", "void"}),
        ("macau.baccarat", Moment("resolved", ended=True), {"bets_opened", "paid"}, {"void", "correct"}),
        ("macau.baccarat", Moment("resolved", ended=True, paid=True), {"bets_opened"}, {"correct"}),
    ],
)
def test_live_keys_of_the_round(ruleset: str, now: Moment, first: set[str], others: set[str]) -> None:
    found = live(ruleset, now)
    assert found & set(ROUND) == first
    assert others <= found


@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize(
    "phase", ["idle", "betting", "closed", "dealing", "running", "suspended", "paying", "resolved"]
)
def test_some_key_is_live_in_every_phase(ruleset: str, phase: str) -> None:
    """A dealer is never without a key, and a result is never entered before the bell of shaken dice or buttons."""
    found = live(ruleset, Moment(phase))
    assert found
    assert not (phase == "betting" and found & {"dice", "buttons"})
    assert "void" in found or phase == "idle"


def test_a_key_of_payment_says_that_the_round_is_paid() -> None:
    assert live_keys("macau.fantan", Moment("idle", paid=True))["paid"] == "paid_already"
    assert live_keys("macau.fantan", Moment("idle"))["paid"] == "result_first"


def test_only_the_seat_that_decides_has_live_actions() -> None:
    due = Due("decision", "3.2", 3, ("hit", "stand"))
    facts = BlackjackFacts(hands={"dealer": ("7D",), "3.1": ("5S",), "3.2": ("9S",), "5.1": ("KD",)}, due=due)
    assert live_actions("blackjack", Moment("dealing", facts)) == {3: ("hit", "stand")}
    assert not live_keys("macau.blackjack", Moment("dealing", facts))["action"]
    assert live_keys("macau.blackjack", Moment("betting"))["action"] == "no_decision"


def test_insurance_is_offered_to_every_seat_against_an_ace() -> None:
    facts = BlackjackFacts(hands={"dealer": ("AD",), "3.1": ("5S", "6S"), "5.1": ("KD", "9C")}, insured=(5,))
    assert live_actions("blackjack", Moment("dealing", facts)) == {3: ("insurance",)}


def test_hands_of_a_showdown_are_the_dealers_to_enter_while_one_is_missing() -> None:
    shown = StudPokerFacts(missing=("dealer", "seat_1"))
    for phase, facts, why in (
        ("showdown", shown, ""),
        ("showdown", StudPokerFacts(), "no_showdown"),
        ("resolved", shown, "no_showdown"),
        ("unknown", RoundFacts(), "no_showdown"),
    ):
        assert live_keys("macau.stud-poker", Moment(phase, facts))["showdown"] == why


def test_stud_poker_antes_before_the_bell_and_decides_after_the_deal() -> None:
    assert live_actions("stud_poker", Moment("betting")) == {0: ("ante",)}
    facts = StudPokerFacts(players=(1, 3, 5), raised=(1,), undecided=(3, 5))
    assert live_actions("stud_poker", Moment("deciding", facts)) == {3: ("raise", "fold"), 5: ("raise", "fold")}


def test_a_correction_names_hands_as_the_console_writes_them() -> None:
    facts = BlackjackFacts(hands={"dealer": ("7D", "?"), "3.1": ("5S", "6H"), "3.2": ("9S",)}, seats=(3, 4))
    found = dict(hand_names("macau.blackjack", Moment("dealing", facts)))
    assert found == {"dealer": ("7D",), "seat_3": ("5S", "6H"), "seat_3_2": ("9S",), "seat_4": ()}
    shown = Moment("showdown", StudPokerFacts(missing=("seat_1",), raised=(1,)))
    assert [name for name, _ in hand_names("macau.stud-poker", shown)] == ["seat_1", "dealer"]
    assert seats_taken(Moment("betting", BlackjackFacts(seats=(2, 4)))) == (2, 4)


VOID = Way("void")


@pytest.mark.parametrize(
    ("ruleset", "now", "ways"),
    [
        ("macau.fantan", Moment("closed"), ()),
        ("macau.fantan", Moment("suspended"), (VOID,)),
        (
            "macau.fantan",
            Moment("suspended", ended=True),
            (Way("buttons", advice="enter_again"), Way("paid", advice="first_stands"), VOID),
        ),
        ("macau.roulette", Moment("suspended", ended=True), (Way("paid", advice="first_stands"), VOID)),
        ("macau.baccarat", Moment("suspended"), (Way("correct", supervisor=True), VOID)),
        (
            "macau.blackjack",
            Moment("suspended", RoundFacts(reason=say("seats_uncertain"))),
            (Way("name_seats", supervisor=True, advice="name_seats"), Way("void", advice="void_this_only")),
        ),
        (
            "angola.blackjack",
            Moment("suspended", RoundFacts(reason=say("card_unreadable"))),
            (Way("correct", supervisor=True), VOID),
        ),
    ],
)
def test_ways_out_of_a_suspended_round(ruleset: str, now: Moment, ways: tuple[Way, ...]) -> None:
    assert ways_out(ruleset, now) == ways


def test_only_where_the_rules_take_it_a_result_is_entered_again() -> None:
    rulesets = {name: kind(kind.Options()) for name, kind in RULESETS.items()}
    games = {name: getattr(one, "game", one) for name, one in rulesets.items()}
    for name, one in games.items():
        assert GAMES[name].again_stands == getattr(one, "told_again_stands", False)


@pytest.mark.parametrize("ruleset", RULESETS)
def test_every_way_out_is_a_live_key(ruleset: str) -> None:
    for ended in (False, True):
        now = Moment("suspended", ended=ended)
        named = {way.key for way in ways_out(ruleset, now)} - {"name_seats"}
        assert named
        assert named <= live(ruleset, now)


@pytest.mark.parametrize("ruleset", sorted(set(RULESETS) - {MACHINES}))
def test_the_cloth_has_keys_for_every_bet_of_the_game(ruleset: str) -> None:
    cloth = cloth_of(Table(name="t", ruleset=ruleset))
    assert cloth.families
    assert cloth.seats >= 6
    assert list(cloth.chips) == sorted(cloth.chips)
    kind = RULESETS[ruleset]
    bets = {one.id.partition(":")[0] for one in kind(kind.Options()).bets()}
    of_the_bank = {"bank", "percentage"} if ruleset == "angola.chemin-de-fer" else set()
    assert bets - of_the_bank == set(cloth.families)


def test_the_house_names_its_chips() -> None:
    assert cloth_of(Table(name="t", ruleset="macau.fantan", chips=(500, 2500))).chips == (500, 2500)
    assert cloth_of(Table(name="t", chips=(500, 2500))) == Cloth(chips=(500, 2500))


def test_a_table_without_a_game_has_an_empty_cloth() -> None:
    assert cloth_of(None) == cloth_of(Table(name="t")) == Cloth()


@pytest.mark.parametrize(
    ("ruleset", "now", "step"),
    [
        ("macau.fantan", Moment("idle"), ("open", ())),
        ("macau.fantan", Moment("betting"), ("bell", ())),
        ("macau.fantan", Moment("closed"), ("result", ())),
        ("macau.fantan", Moment("paying"), ("pay", ())),
        ("macau.fantan", Moment("suspended"), ("", ())),
        ("macau.roulette", Moment("closed"), ("launch", ())),
        ("macau.roulette", Moment("idle", SPUN), ("pay", ())),
        ("macau.roulette", Moment("idle", SPUN, paid=True), ("open", ())),
        ("macau.baccarat", Moment("dealing", BaccaratFacts(next="player")), ("card", ("player",))),
        ("macau.baccarat", Moment("closed", BaccaratFacts(next="burn")), ("burn", ())),
        ("macau.baccarat", Moment("ended"), ("shoe", ())),
        ("macau.blackjack", Moment("dealing", BlackjackFacts(due=Due("card", "burn"))), ("burn", ())),
        (
            "macau.blackjack",
            Moment("dealing", DECIDES),
            ("decision", ("seat_3_2",)),
        ),
        ("macau.blackjack", Moment("dealing", BlackjackFacts(due=Due("peek", "dealer"))), ("peek", ("dealer",))),
        ("macau.stud-poker", Moment("deciding", StudPokerFacts(undecided=(1, 3))), ("decision", ("seat_1", "seat_3"))),
        ("macau.stud-poker", Moment("showdown", StudPokerFacts(missing=("dealer",))), ("hands", ("dealer",))),
        ("macau.stud-poker", Moment("showdown"), ("result", ())),
        ("macau.stud-poker", Moment("deciding"), ("", ())),
    ],
)
def test_the_page_says_what_the_table_waits_for(ruleset: str, now: Moment, step: tuple[str, tuple[str, ...]]) -> None:
    assert next_step(ruleset, now) == step


@pytest.mark.parametrize(
    ("ruleset", "now", "key"),
    [
        ("macau.fantan", Moment("idle"), "bets_opened"),
        ("macau.fantan", Moment("betting"), "bell"),
        ("macau.fantan", Moment("closed"), ""),
        ("macau.fantan", Moment("paying", ended=True), "paid"),
        ("macau.roulette", Moment("closed"), "ball_launched"),
        ("macau.baccarat", Moment("ended"), "new_shoe"),
        ("macau.baccarat", Moment("unknown"), ""),
    ],
)
def test_one_key_is_the_next(ruleset: str, now: Moment, key: str) -> None:
    assert next_key(ruleset, now) == key


CUSSEC = """
[[table]]
name = "cus-1"
ruleset = "macau.cussec"
[table.options]
agitation = "either"
dome = "DOME"
[[table.device]]
name = "shaker-1"
driver = "DRIVER"
url = "tcp://10.0.0.1:1"
[[table.device]]
name = "console-1"
driver = "fdl_console"
url = "tcp://10.0.0.1:2"
"""


@pytest.mark.parametrize(
    ("driver", "dome", "told"),
    [
        ("fdl_shaker", "movable", True),
        ("billy_iii", "movable", False),
        ("billy_iii", "fixed", True),
        ("no_such_driver", "movable", False),
    ],
)
def test_keys_of_the_dome_are_for_shakers_that_do_not_see_it(driver: str, dome: str, told: bool) -> None:
    config = parse('[site]\nname = "s"\n[edge]\nname = "e"\n' + CUSSEC.replace("DRIVER", driver).replace("DOME", dome))
    assert dome_is_reported(config.table[0]) == told


@pytest.mark.parametrize(
    ("phase", "cover", "lift"),
    [
        *(("idle", "", ""), ("covered", "", "bell_first"), ("betting", "", "bell_first")),
        *(("closed", "result_first", ""), ("paying", "", "")),
    ],
)
def test_a_dome_is_lifted_after_the_bell_and_put_on_after_the_result(phase: str, cover: str, lift: str) -> None:
    live = live_keys("macau.cussec", Moment(phase))
    assert (live["dice_covered"], live["dice_uncovered"]) == (cover, lift)
