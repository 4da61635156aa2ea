"""The blackjack table: its dealer's own arithmetic, and whole shoes of his, event by event, against the ruleset."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

import msgspec
import pytest
from helpers import START, floor, play, results
from hypothesis import given, settings, strategies as st

from daemon.virtual_clock import JumpingLoop
from drivers.fdl_console import ConsoleOptions, FdlConsole
from drivers.fdl_peek import FdlPeek
from drivers.fdl_session import FdlDriver, SessionOptions
from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardExposed,
    CardUnreadable,
    DealCorrected,
    DeviceOnline,
    Event,
    RoundPaid,
    SeatActed,
    SeatOpened,
    ShoeStarted,
)
from protocols.contract.topics import Envelope
from protocols.fdl import console as fdl_console, frame as fdl
from rules import RULESETS
from rules.engine.ruleset import Corrected, Resolved, Result, Suspended, Verdict, Voided, Win, options_from
from rules.macau.blackjack import Blackjack
from simulators.devices.compare import Account, Outcome, compare
from simulators.devices.fdl_device import FdlDevice
from simulators.tables import blackjack as table_blackjack
from simulators.tables.blackjack import BlackjackTable, _blackjack, _count, _Hand, _result, _special
from simulators.tables.table import Look


@pytest.fixture(autouse=True, scope="module")
def _without_terminals() -> Iterator[None]:
    """No edge answers here: nobody reports the bets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlackjackTable, "at_terminals", False)
        yield


class House:
    """A table without wires: what its devices see goes through the driver's own words straight to the ruleset."""

    def __init__(
        self,
        seed: int,
        fate: Callable[[str, Event], list[Event]] = lambda _, event: [event],
        table_of: type[BlackjackTable] = BlackjackTable,
    ) -> None:
        """`fate`: what the host hears instead of an event of a device."""
        self.table = table_of(seed)
        ruleset = RULESETS[self.table.ruleset]
        self.ruleset = ruleset(options_from(ruleset, self.table.options))
        self.state = self.ruleset.start("bj-1")
        self.fate = fate
        self.results: list[Result] = []
        self.told: list[Event] = []
        table = self.table
        table.shoe.draw = self._drawing(table.shoe.draw)  # type: ignore[assignment, method-assign]
        self._hear("console-1", table.console, FdlConsole(ConsoleOptions()))
        if "peek-1" in table.devices:
            self._hear("peek-1", table.peek, FdlPeek(SessionOptions()))

    def _hear(self, name: str, device: FdlDevice, driver: FdlDriver) -> None:
        device.record = partial(self._happened, name, driver)  # type: ignore[method-assign]

    def _drawing(self, draw: Callable[[float], str]) -> Callable[[float], str]:
        def drawn(now: float) -> str:
            card = draw(now)
            self._tell("shoe-1", CardDrawn(card))
            return card

        return drawn

    def _happened(self, device: str, driver: FdlDriver, happening: fdl.Happening, _: float) -> None:
        again = type(happening).from_bytes(happening.to_bytes())
        assert again == happening
        for event in driver.translate(happening) or ():
            self._tell(device, event)

    def _tell(self, device: str, event: Event) -> None:
        for heard in self.fate(device, event):
            self.told.append(heard)
            seen = Envelope(
                f"e{len(self.told)}", f"felt/1/site/table/bj-1/device/{device}", START + timedelta(seconds=1), heard
            )
            self.state, verdicts = self.ruleset.apply(self.state, seen)
            for verdict in verdicts:
                if isinstance(verdict, Resolved | Voided):
                    self.results.append(verdict.result)
                elif isinstance(verdict, Corrected):
                    self.results[-1] = verdict.result

    def look(self) -> Look:
        """The display, by way of the wire."""
        view = msgspec.json.decode(msgspec.json.encode(self.ruleset.view(self.state)))
        ended = {result.round: result.void is None for result in self.results[-3:]}
        return Look(view["phase"], view["round"], view["detail"], ended)

    def deal(self, rounds: int) -> Account:
        """That many rounds; what came of them."""

        async def body() -> None:
            await self.table.deal(floor(self.look), rounds)

        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(body())
        return self.account

    @property
    def account(self) -> Account:
        """Truth against results."""
        came = [Outcome(one.round, one.outcome, one.void.reason.code if one.void else "") for one in self.results]
        return compare(
            self.table.truth[-200:], msgspec.json.decode(msgspec.json.encode(came[-200:]), type=list[Outcome])
        )


ROUNDS: Final = 200
SEEDS: Final = range(1, 7)


@pytest.fixture(scope="module")
def nights() -> list[House]:
    """Some quiet nights."""
    houses = [House(seed) for seed in SEEDS]
    for house in houses:
        assert house.deal(ROUNDS) == Account(right=ROUNDS)
    return houses


def test_whole_shoes_come_out_as_they_were_dealt(nights: list[House]) -> None:
    """Nothing is void, and nothing irregular: dealer and text agree on each card, decision and white card."""
    for house in nights:
        assert not any(truth.void for truth in house.table.truth)
        assert not any(result.irregularities or result.void for result in house.results)
        assert not any(isinstance(event, DealCorrected) for event in house.told)
        assert house.table.shoes == sum(isinstance(event, ShoeStarted) for event in house.told) >= 3


def test_everything_that_players_may_do_is_done(nights: list[House]) -> None:
    said = Counter(event.action for house in nights for event in house.told if isinstance(event, SeatActed))
    assert set(said) == {
        "stand", "hit", "double", "split", "surrender", "insurance", "even_money", "five_cards"
    }  # fmt: skip
    outcomes = [truth.outcome for house in nights for truth in house.table.truth]
    ended = Counter(end for outcome in outcomes for end in outcome["ended"].values())
    assert set(ended) == {
        "stand", "twenty_one", "blackjack", "bust", "surrender", "even_money", "five_cards", "special"
    }  # fmt: skip
    results = Counter(result for outcome in outcomes for result in outcome["results"].values())
    assert set(results) == {"win", "lose", "push", "surrender"}
    names = {name for outcome in outcomes for name in outcome["hands"]}
    assert {name.partition(".")[2] for name in names} == {"", "1", "2", "3", "4"}
    seats = Counter(len({name.partition(".")[0] for name in outcome["ended"]}) for outcome in outcomes)
    assert set(seats) == {1, 2, 3, 4}


def test_the_winners_are_those_of_the_table(nights: list[House]) -> None:
    """What each hand is paid, worked out from what the dealer saw."""
    for house in nights:
        for truth, result in zip(house.table.truth, house.results, strict=True):
            paid = set()
            for name, word in truth.outcome["results"].items():
                seat, number = map(int, name.split("."))
                if word != "win":
                    continue
                odds = {"blackjack": "3/2", "five_cards": "1/2", "special": "3"}.get(truth.outcome["ended"][name], "1")
                paid.add(Win("main", odds, seat=seat, hand=number))
                if name in truth.outcome.get("doubled", ()):
                    paid.add(Win("double", odds, seat=seat, hand=number))
            assert {win for win in result.winners if isinstance(win, Win) and win.bet in ("main", "double")} == paid


def decided(house: House) -> list[list[SeatActed]]:
    """What the players decided, round by round."""
    rounds: list[list[SeatActed]] = []
    for event in house.told:
        match event:
            case BetsClosed():
                rounds.append([])
            case SeatActed():
                rounds[-1].append(event)
    return rounds


def given_up(house: House) -> Counter[str]:
    """How often a player gave up after a further card was asked for, and how often out of turn."""
    found: Counter[str] = Counter()
    for said in decided(house):
        for n, one in enumerate(said):
            if one.action == "surrender":
                found["after a card"] += any(before.action in ("hit", "double", "split") for before in said[:n])
                found["out of turn"] += any(later.seat < one.seat for later in said[n:])
                found["in all"] += 1
    return found


def test_surrender_is_keyed_before_any_further_card(nights: list[House]) -> None:
    """Art. 18(2), in turn or not."""
    found = sum((given_up(house) for house in nights), Counter[str]())
    assert found["after a card"] == 0
    assert found["out of turn"] > 20


@pytest.mark.parametrize("option", ["before_own_card", "none"])
def test_players_give_up_as_their_table_lets_them(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setitem(BlackjackTable.options, "surrender", option)
    house = House(1)
    assert house.deal(ROUNDS) == Account(right=ROUNDS)
    assert not any(result.irregularities for result in house.results)
    found = given_up(house)
    assert (found["in all"] > 0, found["after a card"] > 0) == (option != "none", option != "none")
    assert found["out of turn"] == 0


# ---- doubt


def doubtful(seed: int, share: float) -> Callable[[str, Event], list[Event]]:
    """Now and then something is not heard, or heard in doubt, as a real device would tell it."""
    rng = random.Random(seed)

    def fate(device: str, event: Event) -> list[Event]:
        if rng.random() >= share or isinstance(event, DealCorrected):
            return [event]
        back = DeviceOnline(False, "model")
        if device != "shoe-1":
            heard: list[list[Event]] = [[back], [event, back]]
        else:
            doubt = CardUnreadable()
            heard = [[], [doubt], [event, doubt], [doubt, event], [event, back]]
        return rng.choice(heard)

    return fate


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.03, 0.08]))
@settings(max_examples=25)
def test_no_doubt_makes_a_result_wrong(seed: int, share: float) -> None:
    house = House(seed, doubtful(seed, share))
    account = house.deal(30)
    assert (account.wrong, account.lost) == (0, 0), account
    assert account.right + account.voided + account.unseen == 30


def test_most_rounds_with_a_doubt_are_corrected_and_count() -> None:
    house = House(5, doubtful(5, 0.03))
    account = house.deal(100)
    assert account.right == 100
    corrected = sum(isinstance(event, DealCorrected) for event in house.told)
    assert corrected > 20
    assert sum(truth.void for truth in house.table.truth) < 10


def test_a_hole_card_that_nobody_saw_ends_the_round() -> None:
    """It lies face down, and is never entered."""
    unseen = 0

    def fate(device: str, event: Event) -> list[Event]:
        nonlocal unseen
        bank = house.look().detail.get("due", {})
        hole = device == "shoe-1" and bank.get("hand") == "dealer" and len(house.look().detail["hands"]["dealer"]) == 1
        if hole and isinstance(event, CardDrawn) and not unseen:
            unseen = 1
            return [CardUnreadable()]
        return [event]

    house = House(3, fate)
    house.deal(3)
    assert unseen
    assert [truth.void for truth in house.table.truth] == [True, False, False]
    assert [result.void is not None for result in house.results] == [True, False, False]
    corrected = [event for event in house.told if isinstance(event, DealCorrected)]
    assert corrected
    assert all(len(event.hands["dealer"]) == 1 for event in corrected)


@pytest.mark.parametrize("fault", ["unreadable", "not_inserted"])
def test_a_hole_card_that_the_reader_did_not_see_is_put_in_again(fault: str) -> None:
    house = House(2)
    for _ in range(4):
        house.table.peek.inject(fault, 0.0)
    assert house.deal(20) == Account(right=20)
    assert not any(truth.void for truth in house.table.truth)
    assert not house.table.peek._awaited


def test_a_key_that_was_not_taken_is_pressed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the display does not show what it did: even money."""
    house = House(1)
    rng, pressed = random.Random(1), house.table.console._pressed
    monkeypatch.setattr(house.table.console, "_pressed", lambda *press: rng.random() < 0.7 and pressed(*press))
    account = house.deal(ROUNDS)
    assert account.wrong == account.lost == 0
    assert account.right == ROUNDS
    assert any("even_money" in truth.outcome.get("ended", {}).values() for truth in house.table.truth)


def test_a_dead_table_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_blackjack, "LOOKS", 3)
    house = House(1, lambda _device, _event: [])
    assert house.deal(2) == Account(unseen=2)


def held_up(many: int) -> Callable[[str, Event], list[Event]]:
    """The shoe's line is silent until so many cards of a round were drawn, and tells them all then."""
    cards: list[Event] = []

    def fate(_: str, event: Event) -> list[Event]:
        match event:
            case BetsClosed():
                cards.clear()
            case CardDrawn():
                cards.append(event)
                return [event] if len(cards) > many else list(cards) if len(cards) == many else []
            case _:
                pass
        return [event]

    return fate


@pytest.mark.parametrize("seed", [9, 20, 25])
def test_a_round_that_ended_by_other_cards_than_those_that_lie_there_is_declared_void(seed: int) -> None:
    """A card of the burn was not told, another was burnt, and the rules dealt both to the seats; a blackjack ended it.

    Life 12038 of a campaign at three tables: the dealer saw that it was over, and said nothing.
    The seeds are of nights in which it happens, as these players decide.
    """
    house = House(seed, held_up(5))
    account = house.deal(30)
    assert (account.wrong, account.lost) == (0, 0)
    assert any(result.void is not None and result.supersedes for result in house.results)


# ---- what the dealer knows


@pytest.mark.parametrize(
    ("cards", "points", "soft"),
    [
        ("AS TD", 21, True),
        ("AS 6D", 17, True),
        ("AS 6D TC", 17, False),
        ("AS AD", 12, True),
        ("AS AD 9C", 21, True),
        ("AS AD 9C KH", 21, False),
        ("5S 6D JC", 21, False),
        ("QS KD 2C", 22, False),
        ("9H", 9, False),
    ],
)
def test_points(cards: str, points: int, soft: bool) -> None:
    assert _count(cards.split()) == (points, soft)


@pytest.mark.parametrize(
    ("cards", "blackjack", "special"),
    [
        ("AS TD", True, False),
        ("KC AS", True, False),
        ("5S 6D JC", False, False),
        ("6S 8S 7S", False, True),
        ("6S 8S 7D", False, False),
        ("7S 7S 7D", False, True),
        ("7S 7D", False, False),
    ],
)
def test_natural_and_special(cards: str, blackjack: bool, special: bool) -> None:
    assert (_blackjack(cards.split()), _special(cards.split())) == (blackjack, special)


@pytest.mark.parametrize(
    ("ended", "cards", "bank", "blackjack", "result"),
    [
        ("bust", "TS 6D KC", 22, False, "lose"),
        ("stand", "TS 6D", 22, False, "win"),
        ("stand", "TS 6D", 17, False, "lose"),
        ("stand", "TS 7D", 17, False, "push"),
        ("stand", "TS 8D", 17, False, "win"),
        ("twenty_one", "TS 5D 6C", 21, True, "lose"),
        ("twenty_one", "TS 5D 6C", 21, False, "push"),
        ("blackjack", "AS TD", 21, True, "push"),
        ("blackjack", "AS TD", 21, False, "win"),
        ("even_money", "AS TD", 21, True, "win"),
        ("surrender", "TS 6D", 22, False, "surrender"),
        ("five_cards", "2S 3D 4C 2D AC", 21, False, "win"),
        ("special", "7S 7D 7C", 21, False, "win"),
    ],
)
def test_a_hand_against_the_bank(ended: str, cards: str, bank: int, blackjack: bool, result: str) -> None:
    assert _result(_Hand(1, 1, cards.split(), ended), bank, blackjack=blackjack) == result


def test_five_cards_have_a_key() -> None:
    """Art. 19: at a number of its own, told in the ruleset's word."""
    action = fdl_console.SeatAction(3, 0x1A, 2)
    assert action.to_bytes() == bytes.fromhex("03 02 1A 00 00 00 00")
    assert FdlConsole(ConsoleOptions()).translate(action) == (SeatActed(3, "five_cards", 2),)


# ---- the console's names of hands


def at_table(*events: Event, **options: Any) -> list[Verdict]:
    seats: list[Event] = [SeatOpened(1), SeatOpened(3), BetsOpened(), BetsClosed()]
    return play(Blackjack(options_from(Blackjack, options)), [*seats, *events])


def cards(text: str) -> list[Event]:
    return [CardDrawn(card) for card in text.split()]


# Seats 1 and 3 split or stand; the bank has 7-8 and takes a ten: bust.
DEALT: Final = (*cards("TS 8S 7H 9C 8D"), SeatActed(1, "stand"))
SPLIT: Final = (*DEALT, SeatActed(3, "split"), *cards("TC"), SeatActed(3, "stand"), *cards("2C"))


def test_correction_keyed_at_the_console_is_understood() -> None:
    """Its hands are seat_1, seat_3, seat_3_2 and dealer."""
    hands = {"dealer": ("7H",), "seat_1": ("TS", "9C"), "seat_3": ("8S", "TC"), "seat_3_2": ("8D", "3C")}
    last = (SeatActed(3, "stand", 2), *cards("8C TD"))
    [result] = results(at_table(*SPLIT, DealCorrected(hands), *last))
    assert {name: list(hand) for name, hand in result.outcome["hands"].items()} == {
        "dealer": ["7H", "8C", "TD"], "1.1": ["TS", "9C"], "3.1": ["8S", "TC"], "3.2": ["8D", "3C"]
    }  # fmt: skip


def test_a_correction_at_the_console_after_the_end_is_not_undone_by_the_payment() -> None:
    verdicts = at_table(*DEALT, SeatActed(3, "stand"), *cards("8C 6D"), DealCorrected({"dealer": ("7H", "TD")}))
    assert [type(one).__name__ for one in verdicts[-2:]] == ["Resolved", "Corrected"]
    verdicts = at_table(
        *DEALT, SeatActed(3, "stand"), *cards("8C 6D"), DealCorrected({"seat_1": ("TS", "AC")}), RoundPaid()
    )
    corrected = verdicts[-1]
    assert isinstance(corrected, Corrected)
    assert corrected.result.outcome["hands"]["1.1"] == ("TS", "AC")
    assert corrected.result.outcome["results"]["1.1"] == "win"


def test_a_hand_named_twice_is_no_correction() -> None:
    twice = DealCorrected({"seat_1": ("TS", "9C"), "1.1": ("TS", "8C")})
    assert isinstance(at_table(*DEALT, twice)[-1], Suspended)


def test_a_card_that_the_console_calls_exposed_stops_the_round() -> None:
    down = at_table(*DEALT, CardExposed("seat_3", "8S"), procedure="1")
    assert isinstance(down[-1], Suspended)
