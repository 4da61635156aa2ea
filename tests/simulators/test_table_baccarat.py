"""The dealer of a baccarat table before the real rules, and a shoe that does not tell a card."""

import pytest
from helpers import floor, script, virtual_time

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CutCardDrawn,
    DealCorrected,
    Event,
    RoundPaid,
    RoundVoided,
    ShoeStarted,
)
from rules import RULESETS
from rules.engine.ruleset import Resolved, Result, Voided, options_from
from simulators.tables.baccarat import AngolaMacauTable, AngolaTable, BaccaratTable
from simulators.tables.table import Floor, Look

KEYS: dict[str, Event] = {
    "bets_opened": BetsOpened(),
    "bell": BetsClosed(),
    "paid": RoundPaid(),
    "void": RoundVoided("equipment_fault"),
    "new_shoe": ShoeStarted(),
    "cut_card": CutCardDrawn(),
}


class Played:
    """One coup. What the table's devices tell goes to the rules, and their view is what the dealer sees."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, silent: int, table: type[BaccaratTable] = BaccaratTable
    ) -> None:
        """The shoe does not tell the card number `silent`."""
        self.table = table(1)
        self.results: list[Result] = []
        self.told: list[Event] = []
        kind = RULESETS[table.ruleset]
        self._rules = kind(options_from(kind, {**table.options}))
        self._state = self._rules.start("bac-1")
        draw, correct = self.table.shoe.draw, self.table.console.correct
        drawn = 0

        def draws(now: float) -> str:
            nonlocal drawn
            drawn += 1
            card = draw(now)
            if drawn != silent:
                self._tell(CardDrawn(card))
            return card

        def corrects(hands: dict[str, list[str]], now: float) -> bool:
            taken = correct(hands, now)
            if taken:
                self._tell(DealCorrected({side: tuple(cards) for side, cards in hands.items()}))
            return taken

        monkeypatch.setattr(self.table.shoe, "draw", draws)
        monkeypatch.setattr(self.table.console, "correct", corrects)
        monkeypatch.setattr(self.table.console, "press", lambda key, _now, _reason=0: self._tell(KEYS[key]))
        self.table.shoe.shuffle(0.0)

    def _tell(self, event: Event) -> None:
        self.told.append(event)
        self._state, verdicts = self._rules.apply(self._state, script([event], "bac-1")[0])
        self.results += [one.result for one in verdicts if isinstance(one, Resolved | Voided)]

    def _look(self) -> Look:
        view = self._rules.view(self._state)
        detail = {**view.detail, "hands": {side: [*cards] for side, cards in view.detail.get("hands", {}).items()}}
        ended = {one.round: one.void is None for one in self.results}
        return Look(view.phase, view.round, detail if detail["hands"] else {}, ended)

    @property
    def floor(self) -> Floor:
        """What the dealer stands at."""

        return floor(self._look)

    async def coup(self) -> None:
        """Deal it."""
        await self.table._coup(self.floor)


@virtual_time
async def test_a_card_that_was_not_told_is_entered_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, silent=2)
    await played.coup()
    [truth], [result] = played.table.truth, played.results
    assert any(isinstance(event, DealCorrected) for event in played.told)
    assert {side: [*cards] for side, cards in result.outcome["hands"].items()} == truth.outcome["hands"]


@virtual_time
async def test_an_old_screen_does_not_say_how_this_coup_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that came back with an old memory showed, at the bell, a coup that had been declared void."""
    played = Played(monkeypatch, silent=0)
    now = played._look

    def look() -> Look:
        shown = now()
        ended = {"an older one": False, **shown.ended}
        old = shown.phase == "closed"
        return Look("closed", "an older one", {}, ended) if old else Look(shown.phase, shown.round, shown.detail, ended)

    monkeypatch.setattr(played, "_look", look)
    await played.coup()
    [truth], [result] = played.table.truth, played.results
    assert result.void is None
    assert not truth.void
    assert any(isinstance(event, RoundPaid) for event in played.told)


@pytest.mark.parametrize("fault", ["display_dark", "key_switch"])
@virtual_time
async def test_a_coup_that_cannot_be_corrected_is_void_and_nobody_deals_on(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Lives 20261121001836 and 20261121008965: other hands than those on the table were resolved."""
    played = Played(monkeypatch, silent=2)
    played.table.console.inject(fault, 0.0)
    await played.coup()
    [truth], [result] = played.table.truth, played.results
    assert truth.void
    assert result.void is not None
    assert sum(isinstance(event, CardDrawn) for event in played.told) == 1


@virtual_time
async def test_a_result_that_still_stands_was_not_declared_void(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first press is lost: a display that shows a result shows no void coup."""
    played = Played(monkeypatch, silent=0)
    await played.coup()
    press = played.table.console.press
    pressed: list[str] = []

    def presses(key: str, now: float, reason: int = 0) -> None:
        pressed.append(key)
        if len(pressed) > 1:
            press(key, now, reason)

    monkeypatch.setattr(played.table.console, "press", presses)
    played.table.console.inject("display_dark", 0.0)
    assert not await played.table._correct(played.floor, {"player": ["9S"], "banker": []})
    assert pressed == ["void", "void"]
    assert played.floor.look().phase == "idle"


@pytest.mark.parametrize("kind", [AngolaTable, AngolaMacauTable])
@virtual_time
async def test_an_angolan_dealer_burns_eight_cards_and_one_before_each_coup_but_the_first(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaccaratTable]
) -> None:
    played = Played(monkeypatch, silent=0, table=kind)
    await played.table.deal(played.floor, 3)
    hands = [sum(map(len, truth.outcome["hands"].values())) for truth in played.table.truth]
    assert sum(isinstance(event, CardDrawn) for event in played.told) == 8 + 2 + sum(hands)
    assert [{side: [*cards] for side, cards in one.outcome["hands"].items()} for one in played.results] == [
        truth.outcome["hands"] for truth in played.table.truth
    ]


@virtual_time
async def test_an_angolan_dealer_enters_the_hands_where_the_burnt_card_was_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The display takes the player's first card for the burnt one, and shows no hand."""
    with monkeypatch.context() as patch:
        told = Played(patch, silent=0, table=AngolaTable)
        await told.table.deal(told.floor, 1)
    burnt = sum(isinstance(event, CardDrawn) for event in told.told) + 1
    played = Played(monkeypatch, silent=burnt, table=AngolaTable)
    await played.table.deal(played.floor, 2)
    [_, truth], [_, result] = played.table.truth, played.results
    assert any(isinstance(event, DealCorrected) for event in played.told)
    assert {side: [*cards] for side, cards in result.outcome["hands"].items()} == truth.outcome["hands"]
