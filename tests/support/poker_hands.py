"""A table of poker without a bank that a test plays at: it feeds a ruleset and keeps what was said."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
from helpers import START

from protocols.contract.events import (
    BetsOpened,
    CardDrawn,
    DealCorrected,
    Event,
    SeatActed,
    SeatOpened,
)
from protocols.contract.results import Irregularity, Result, View
from protocols.contract.topics import Envelope
from rules.engine.ruleset import Corrected, Noted, Resolved, Suspended, Verdict, Voided, judge


class PokerTable:
    """`seats`: the chips of each seat from 1 on."""

    def __init__(self, ruleset: Any, seats: Iterable[int] = ()) -> None:
        self.ruleset = ruleset
        self.state = ruleset.start("t-1")
        self.said: list[Verdict] = []
        self.told: list[Envelope] = []
        self._viewed: Any = None
        self._view = View("", "idle")
        self._detail: dict[str, Any] | None = None
        for seat, chips in enumerate(seats, 1):
            self.tell(SeatOpened(seat), SeatActed(seat, "stack", amount=chips))

    def tell(self, *events: Event) -> list[Verdict]:
        """Events, a second apart; what was said of them."""
        new: list[Verdict] = []
        for event in events:
            number = len(self.told) + 1
            source = "felt/1/site/table/t-1/device/d-1"
            seen = Envelope(f"e{number}", source, START + timedelta(seconds=number), event, number)
            self.told.append(seen)
            self.state, verdicts = judge(self.ruleset, self.state, seen)
            new += verdicts
        self.said += new
        return new

    def acts(self, *told: str) -> list[Verdict]:
        """ "3 raise 300": what a seat does, in minor units."""
        parts = [one.split() for one in told]
        return self.tell(
            *(SeatActed(int(seat), action, amount=int(chips[0]) if chips else 0) for seat, action, *chips in parts)
        )

    def open(self, *posts: int) -> list[Verdict]:
        """A hand begins, these seats lay their first bets."""
        return self.tell(BetsOpened()) + self.acts(*(f"{seat} post" for seat in posts))

    def cards(self, text: str) -> list[Verdict]:
        """Cards leave the shoe."""
        return self.tell(*(CardDrawn(card) for card in text.split()))

    def lay(self, round_: str = "", **hands: str) -> list[Verdict]:
        """A person tells the cards as they lie."""
        return self.tell(DealCorrected({name: tuple(cards.split()) for name, cards in hands.items()}, round_))

    @property
    def view(self) -> View:
        """What may be shown."""
        if self._viewed is not self.state:
            self._viewed, self._view, self._detail = self.state, self.ruleset.view(self.state), None
        return self._view

    @property
    def detail(self) -> dict[str, Any]:
        """The same, as a reader has it."""
        view = self.view
        if self._detail is None:
            self._detail = msgspec.json.decode(msgspec.json.encode(view.detail))
        return dict(self._detail)

    @property
    def due(self) -> tuple[int, tuple[str, ...]]:
        """Whose turn it is, and what it may do."""
        due = self.detail["due"]
        return due["seat"], tuple(due["actions"])

    @property
    def stacks(self) -> list[int]:
        """The chips before the seats."""
        return list(self.detail["stacks"].values())

    @property
    def result(self) -> Result:
        """The last one."""
        return [one.result for one in self.said if isinstance(one, Resolved | Voided | Corrected)][-1]

    @property
    def paid(self) -> dict[int, tuple[int, int]]:
        """What each seat put in, and what came back."""
        return {one.seat: (one.stake, one.returned) for one in self.result.settlements}

    def noted(self) -> list[tuple[str, str]]:
        """Irregularities of no hand, and of the last or open hand: code and article."""
        beside = [one.irregularity for one in self.said if isinstance(one, Noted)]
        frame = self.state.open or self.state.last
        of_hand: tuple[Irregularity, ...] = frame.round.irregularities if frame is not None else ()
        return [(one.code, one.law.rpartition(" ")[2]) for one in (*beside, *of_hand)]

    def waits(self) -> str:
        """Why the hand waits, by its code."""
        return [one.reason.code for one in self.said if isinstance(one, Suspended)][-1]
