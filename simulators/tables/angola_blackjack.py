"""Angola's blackjack tables: no peek, pairs by value, doubles on 9 to 11; with a shoe or an automatic shuffler."""

import random
from fractions import Fraction
from typing import Any, ClassVar

from simulators.devices.fdl_continuous import ContinuousShuffler
from simulators.tables.blackjack import (
    BANK,
    DECKS,
    GLANCES,
    BlackjackTable,
    _blackjack,
    _count,
    _due,
    _Hand,
    _special,
    _worth,
)
from simulators.tables.table import Floor

__all__ = ["AngolaBlackjackTable", "AngolaShufflerTable"]

NINE_HANDS = 9
# In how many of a hundred rounds the dealer turns the bank's second card, and for how many of a hundred hands that are
# not over he draws a card without a request.
TURNED, MISPULLED = 2, 1


class AngolaBlackjackTable(BlackjackTable):
    """A shoe that reads its cards, betting terminals and the console."""

    ruleset: ClassVar[str] = "angola.blackjack"
    options: ClassVar[dict[str, Any]] = {
        "surrender": "before_own_card",
        "jackpot": "automatic",
        "jackpot_bet": 500,
        "jackpot_seed": 5_000_000,
        "jackpot_prizes": ["AAAA/suit=pool", "777=1/10", "AA/colour=fixed"],
    }

    def __init__(self, seed: int) -> None:
        """Six decks."""
        super().__init__(seed)
        del self.devices["peek-1"]

    async def _new_shoe(self, floor: Floor) -> None:
        """Art. 6(11), (12): the warn card about 50 cards from the end, one card burnt."""
        self._shuffle(floor, 50 + self._rng.randint(-4, 4))
        self.shoes += 1
        await self._pause(floor, 2.0, 3.0)
        await self._draw(floor)

    async def _first_cards(self, floor: Floor) -> None:
        """Art. 6(20), (21), (39): a turned second card is discarded; against an ace players decide about blackjack."""
        await super()._first_cards(floor)
        if self._bank[0][0] == "A":
            for hand in self._hands:
                hand.ended = ""
        if self._rng.randrange(100) < TURNED and any(not hand.ended for hand in self._hands):
            await self._turn(floor)
            if len(self._bank) == 1:
                await self._card(floor, BANK, self._bank)

    async def _turn(self, floor: Floor) -> None:
        """Until the display waits for another card; the first one is discarded.

        A display that lags may still wait for the first one: only what it shows after the key counts.
        """
        pressed = False
        for _ in range(GLANCES):
            await floor.ready()
            if floor.look().detail.get("due", {}).get("kind") == "decision":
                self.console.expose_card(BANK, None, floor.pace.now())
                floor.stir("console-1")
                pressed = True
            await self._pause(floor, 1.0, 1.5)
            if pressed and _due(floor.look(), "card") == BANK:
                self._bank.pop()
                return

    async def _before_peek(self, floor: Floor) -> None:
        """Art. 6(38): insurance, only against an ace."""
        if self._bank[0][0] == "A":
            await super()._before_peek(floor)

    async def _peek(self, floor: Floor) -> None:
        """No peek: the bank does not look at its hole card."""

    async def _decide(self, floor: Floor, hand: _Hand) -> None:
        """Art. 6(23): now and then the dealer draws a card without a request. It was seen, and is discarded."""
        if not hand.ended and len(hand.cards) > 1 and self._rng.randrange(100) < MISPULLED:
            await self._until(floor, lambda look: _due(look, "decision") == hand.name)
            await self._draw(floor)
        await super()._decide(floor, hand)

    def _judge(self, hand: _Hand) -> None:
        """End the hand where the rules end it without a decision."""
        total = self._total(hand)
        if total > 21:
            hand.ended = "bust"
        elif hand.split and hand.cards[0][0] == "A":
            hand.ended = "twenty_one" if total == 21 else "stand"
        elif hand.doubled:
            hand.ended = "stand"
        elif total == 21:
            hand.ended = "twenty_one"

    def _total(self, hand: _Hand) -> int:
        """Art. 6(37): an ace counted as one for a double stays one."""
        if not hand.doubled or not any(card[0] == "A" for card in hand.cards[:2]):
            return _count(hand.cards)[0]
        third = _worth(hand.cards[2])
        return sum(map(_worth, hand.cards[:2])) + (11 if third == 1 else third)

    def _may_split(self, hand: _Hand) -> bool:
        """Art. 6(31), (32): two cards of one value; aces once."""
        if len(hand.cards) != 2 or _worth(hand.cards[0]) != _worth(hand.cards[1]):
            return False
        if hand.split and hand.cards[0][0] == "A":
            return False
        return sum(one.seat == hand.seat for one in self._hands) < NINE_HANDS

    def _wish(self, hand: _Hand, up: str) -> str:
        """The player's decision, as in Macau; sometimes an ace is doubled as one, or two tens are split."""
        chance = self._minds.random()
        if _blackjack(hand.cards) and not hand.split:
            return "even_money" if chance < 0.4 else "stand"
        two = sum(map(_worth, hand.cards)) if len(hand.cards) == 2 else 0
        total, soft = _count(hand.cards)
        if soft and two in (9, 10) and chance < 0.3:
            return "double"
        if two == 20 and self._may_split(hand) and chance < 0.1:
            return "split"
        wish = super()._wish(hand, up)
        if wish == "five_cards":
            return "stand"
        return "hit" if wish == "double" and (soft or total not in (9, 10, 11)) else wish

    def _needs(self) -> bool:
        """Art. 6(24), (27): whether the bank draws, to 17, because a hand depends on it."""
        return _count(self._bank)[0] < 17 and any(hand.ended in ("stand", "twenty_one") for hand in self._hands)

    def _told(self) -> dict[str, Any]:
        """Art. 6(25) to (29), (40): the special prize comes besides the result."""
        told = super()._told()
        for hand in self._hands:
            mine = self._total(hand)
            told["totals"][hand.name] = mine
            if hand.ended in ("stand", "twenty_one"):
                bank = told["totals"][BANK]
                lost = told["blackjack"] or mine < bank <= 21
                told["results"][hand.name] = "lose" if lost else "push" if mine == bank else "win"
        return told

    def _bet_beside(self, floor: Floor, seat: int) -> None:
        """Art. 6(17): a complementary bet of a player on another seat; art. 7: a chip on the jackpot."""
        rng = self.players.rng
        others = [other for other in self._players if other != seat]
        if others and rng.random() < 0.5:
            self.players.place(floor, rng.choice(others), f"main:{seat}", rng.randint(1, 10) * 100)
        elif "jackpot_bet" in self.options:
            self.players.place(floor, seat, "jackpot", self.options["jackpot_bet"])

    def _pays(self, hand: _Hand, *, double: bool = False) -> Fraction:
        """Art. 6(25) to (29), (39) to (41): the special prize is paid besides the result of the hand."""
        if hand.ended in ("surrender", "even_money"):
            pays = Fraction(-1, 2) if hand.ended == "surrender" else Fraction(1)
        else:
            pays = super()._pays(hand, double=double)
        return pays + 3 if _special(hand.cards) else pays

    def _beside(self, seat: int, bet: str) -> Fraction:  # noqa: ARG002 - as every table
        """Art. 7: the chip goes to the pool with any cards."""
        return Fraction(-1)


class AngolaShufflerTable(AngolaBlackjackTable):
    """Article 8: an automatic shuffler, loaded in the presence of a supervisor; the cards go back after each round."""

    options: ClassVar[dict[str, Any]] = {"surrender": "before_own_card", "device": "continuous"}

    def __init__(self, seed: int) -> None:
        """Six decks, all inside."""
        super().__init__(seed)
        shuffler = ContinuousShuffler(random.Random(f"blackjack shuffler {seed}"), f"SIM-BS{seed}", DECKS)
        self.shuffler, self.shoe = shuffler, shuffler  # type: ignore[assignment]
        self.devices["shoe-1"] = shuffler

    async def _new_shoe(self, floor: Floor) -> None:
        """Art. 8(5): loaded once, in a packet for each deck, with the supervisor present."""
        self._cut_shown = True
        if self.shoes:
            return
        self.shoes = 1
        now = floor.pace.now()
        self.console.supervisor_key(on=True, now=now)
        floor.stir("console-1")
        await floor.pace.sleep(1.0)
        self.shuffler.shuffle(floor.pace.now())
        floor.stir("shoe-1")
        await floor.pace.sleep(5.0)
        self.console.supervisor_key(on=False, now=floor.pace.now())
        floor.stir("console-1")

    async def _play(self, floor: Floor) -> bool:
        """Art. 8(10): the cards of the round before go back first, so that it can be corrected until then."""
        self.shuffler.return_cards(floor.pace.now())
        floor.stir("shoe-1")
        await floor.pace.sleep(3.0)
        return await super()._play(floor)
