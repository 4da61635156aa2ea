"""A table of chemin de fer that a test plays at."""

from collections.abc import Iterable
from typing import Any

from poker_hands import PokerTable

from protocols.contract.events import BetsClosed, BetsOpened, Event, SeatOpened, ShoeStarted, WagerPlaced
from rules.angola.chemin_de_fer import CheminDeFer
from rules.engine.ruleset import Verdict, options_from


class CheminTable(PokerTable):
    """`seats` are taken; the least bank is 1000, the least bet 100, and the percentage 50 per mille."""

    def __init__(self, seats: Iterable[int] = (1, 2, 3, 4, 5), **options: Any) -> None:
        given = {"minimum_bank": 1000, "minimum_bet": 100, "percentage": 50, **options}
        super().__init__(CheminDeFer(options_from(CheminDeFer, given)))
        self.tell(*map(SeatOpened, seats))

    def covers(self, *told: str) -> list[Verdict]:
        """ "2 300": a bet of a seat; "2 300 half" on the line."""
        parts = [one.split() for one in told]
        bets: list[Event] = [
            WagerPlaced(int(seat), (*where, "cover")[0], int(amount)) for seat, amount, *where in parts
        ]
        return self.tell(*bets)

    def opens(self, bank: int = 1000, *covers: str) -> list[Verdict]:
        """The bets are opened, the banker tells a bank that is not known, and punters cover it."""
        said = self.tell(BetsOpened())
        due = self.detail.get("due", {})
        if due.get("actions") == ["bank"]:
            said += self.acts(f"{due['seat']} bank {bank}")
        return said + self.covers(*covers)

    def deal(self, cards: str) -> list[Verdict]:
        """No more bets, and the cards."""
        return self.tell(BetsClosed()) + self.cards(cards)

    def seat(self, side: str) -> int:
        """The seat of the punter with the cards, or of the banker."""
        found: int = self.detail[side]
        return found

    def says(self, *words: str) -> list[Verdict]:
        """ "player draw", "banker show"."""
        said: list[Verdict] = []
        for one in words:
            side, word = one.split()
            said += self.acts(f"{self.seat('punter' if side == 'player' else 'banker')} {word}")
        return said

    def coup(self, cards: str, *words: str) -> list[Verdict]:
        """A whole coup: the first four cards, then words, and a card wherever one is due; both show at last."""
        told = cards.split()
        said, spoken = self.deal(" ".join(told[:4])), list(words)
        rest = iter(told[4:])
        while self.view.phase in ("dealing", "deciding", "showdown"):
            due = self.detail["due"]
            if due["kind"] == "card":
                said += self.cards(next(rest))
                continue
            word = "show" if due["actions"] == ["show"] else spoken.pop(0)
            said += self.acts(f"{due['seat']} {word}")
        return said

    def new_shoe(self, burnt: str = "KS") -> list[Verdict]:
        """Six decks, and the cards of the burn."""
        return self.tell(ShoeStarted(6)) + self.cards(burnt)

    @property
    def bank(self) -> Any:
        """The hand, as the rules remember it."""
        return self.state.position.bank
