"""A blackjack table with the hole-card procedure: a shoe that reads its cards, a peek reader, betting terminals and a
console.
"""

import random
from collections.abc import Awaitable, Callable
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct

from simulators.devices.bee_tek_shoe import Shoe
from simulators.devices.bet_terminals import BetTerminals
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_peek import PeekReader
from simulators.tables.players import Laid, Players
from simulators.tables.table import Floor, GivenUpError, Look, Settled, ShoeTable, Truth, settle, shows

__all__ = ["BlackjackTable"]

DECKS, SEATS, PLAYERS, HANDS = 6, 7, 4, 4
# How often a dealer checks his display before he gives the round up.
LOOKS = 50
GLANCES = 5
# After so many checks a hole card missing on the display counts as not read.
TRIES = 3
HIDDEN = "??"
BANK = "dealer"


class _Hand(Struct):
    """One hand on the table. `ended`: why it has no more decisions."""

    seat: int
    number: int = 1
    cards: list[str] = []
    ended: str = ""
    doubled: bool = False
    split: bool = False

    @property
    def name(self) -> str:
        """The name on the display."""
        return f"{self.seat}.{self.number}"

    @property
    def key(self) -> str:
        """The name on the console's keypad."""
        return f"seat_{self.seat}" + (f"_{self.number}" if self.number > 1 else "")


class BlackjackTable(ShoeTable):
    """One to four players, who mostly play basic strategy."""

    ruleset: ClassVar[str] = "macau.blackjack"
    options: ClassVar[dict[str, Any]] = {"procedure": "3", "burn_each_round": "one"}
    at_terminals: ClassVar[bool] = True
    """Whether there are betting terminals; otherwise bets are not reported."""
    shoe: Shoe

    def __init__(self, seed: int) -> None:
        """Six decks."""
        shoe = Shoe(random.Random(f"blackjack shoe {seed}"), DECKS, game_mode=bool(seed % 2))
        console = Console(random.Random(f"blackjack console {seed}"), f"SIM-C{seed}", DECKS)
        super().__init__(random.Random(f"blackjack {seed}"), shoe, console)
        # Random numbers of their own: the players decide the same however often the dealer has to check the display.
        self._minds = random.Random(f"blackjack players {seed}")
        self.peek = PeekReader(random.Random(f"blackjack peek {seed}"), f"SIM-P{seed}")
        self.devices: dict[str, Device] = {"shoe-1": self.shoe, "peek-1": self.peek, "console-1": self.console}
        terminals = BetTerminals(random.Random(f"blackjack terminals {seed}"), f"b{seed}")
        if self.at_terminals:
            self.devices["terminals-1"] = terminals
        self.players = Players(random.Random(f"blackjack bettors {seed}"), terminals)
        self.shoes = 0
        """Number of shoes shuffled."""
        self._players: set[int] = set()
        self._unseen = 0
        self._round = ""
        self._bank: list[str] = []
        self._hands: list[_Hand] = []
        self._open = False
        self._laid: Laid = {}
        self._insured: dict[int, int] = {}
        self._doubted = False
        """Whether the settlement is not compared: the round was suspended, and the rules may lack the bets from before
        a loss.
        """

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Arts. 2 to 9: shuffle and burn; rounds until the white card comes; the round under way is the last."""
        for _ in range(rounds):
            await floor.ready()
            if self._cut_shown:
                await self._new_shoe(floor)
            over = await self._play(floor)
            if not over:
                await self._give_up(floor)
            counts = await settle(floor, self.console, self._rng, self._round) and over
            whole = len(self._bank) > 1 and not self._undecided()
            settled = self._settled() if whole and over and not self._doubted else None
            self.truth.append(Truth(self._told() if whole else {}, not counts, settled))
            await floor.ready()
            if counts:
                floor.press(self.console, "paid")
            await floor.pace.sleep(1.0)

    async def _give_up(self, floor: Floor) -> None:
        """Declare the round void, also if the display shows its end, which then came from other cards."""
        for _ in range(LOOKS):
            await floor.ready()
            look = floor.look()
            if look.over and not look.ended.get(self._round, False):
                return
            floor.press(self.console, "void", 1)
            await self._pause(floor, 1.0, 2.0)

    async def _new_shoe(self, floor: Floor) -> None:
        self._shuffle(floor, 60 + self._rng.randint(0, 20))
        self.shoes += 1
        await self._pause(floor, 2.0, 3.0)
        for _ in range(DECKS):
            await self._draw(floor)

    # ---- one round

    async def _play(self, floor: Floor) -> bool:
        """Play one round; False if the dealer gave it up."""
        self._round, self._bank, self._hands, self._open, self._unseen = "", [], [], False, 0
        self._laid, self._insured, self._doubted = {}, {}, False
        self.players.begin()
        try:
            await self._bets(floor)
            await self._first_cards(floor)
            await self._before_peek(floor)
            await self._peek(floor)
            if self.options.get("surrender", "before_any_card") == "before_any_card":
                await self._give_in(floor)
            for hand in self._hands:  # hands added by a split follow it
                await self._decide(floor, hand)
            await self._bank_cards(floor)
            await self._until(floor, _never, over=True)
        except GivenUpError:
            return False
        return True

    async def _bets(self, floor: Floor) -> None:
        """Players come and go while bets are open; the bell closes them."""
        if not await self._press_until(floor, "bets_opened", ("betting",)):
            raise GivenUpError
        self._round = floor.look().mine
        await self._pause(floor, 8.0, 14.0)
        for seat in [seat for seat in self._players if self._minds.random() < 0.1]:
            self._players.discard(seat)
        while not self._players or (len(self._players) < PLAYERS and self._minds.random() < 0.25):
            self._players.add(self._minds.randint(1, SEATS))
        await self._lay(floor)
        for _ in range(LOOKS):
            await floor.ready()
            wrong = self._players ^ set(floor.look().detail.get("seats", ()))
            if not wrong:
                break
            for seat in sorted(wrong):
                self.console.seat(seat, floor.pace.now(), on=seat in self._players)
                floor.stir("console-1")
                await self._pause(floor, 0.3, 0.6)
            await self._pause(floor, 1.0, 2.0)
        if not await self._press_until(floor, "bell", ("dealing", "suspended")):
            raise GivenUpError
        self._round = floor.look().mine or self._round
        self._hands = [_Hand(seat, cards=[]) for seat in sorted(self._players)]
        await self._too_late(floor)

    async def _too_late(self, floor: Floor) -> None:
        """Now and then a player bets after the bell, and a terminal repeats an answered request."""
        rng = self.players.rng
        if self.at_terminals and rng.random() < 0.2 and floor.look().phase == "dealing":
            self.players.place(floor, rng.randint(1, SEATS), "main", 2000, self._round)
            await floor.pace.sleep(0.5)
        if self.at_terminals and rng.random() < 0.2:
            self.players.repeat(floor)

    async def _lay(self, floor: Floor) -> None:
        """Players bet at the terminals, or with chips that are not reported. A seat without a bet does not play."""
        rng = self.players.rng
        if not self.at_terminals or rng.random() < 0.3:
            return
        for seat in sorted(self._players):
            self.players.place(floor, seat, "main", rng.randint(1, 20) * 100)
            await floor.pace.sleep(rng.uniform(0.3, 0.6))
            if rng.random() < 0.5:
                self._bet_beside(floor, seat)
        laid = await self.players.laid(floor, self._round)
        if laid is None:
            raise GivenUpError
        self._laid = laid
        # A player who decides for a seat without a bet of its own, and adds to his bet, is not counted here.
        self._doubted = any(bet.startswith("main:") and (seat, "main") not in laid for seat, bet in laid)
        if with_bets := {seat for seat, bet in laid if bet.startswith("main")}:
            self._players &= with_bets

    def _bet_beside(self, floor: Floor, seat: int) -> None:
        """Art. 13: one additional bet."""
        rng = self.players.rng
        self.players.place(floor, seat, rng.choice(("any_pair", "over_13", "under_13")), rng.randint(1, 10) * 50)

    async def _first_cards(self, floor: Floor) -> None:
        """Art. 5(2)(3): one each from the left and one for the bank, twice; the bank's second lies face down."""
        for _ in range(2):
            for hand in self._hands:
                await self._card(floor, hand.name, hand.cards)
            await self._card(floor, BANK, self._bank)
        for hand in self._hands:
            if _blackjack(hand.cards):
                hand.ended = "blackjack"

    async def _card(self, floor: Floor, name: str, cards: list[str]) -> None:
        """Deal a card once the display waits for it; while the display waits for the burn, burn one."""

        async def burn() -> None:
            if _due(floor.look(), "card") == "burn":
                await self._draw(floor)
                # After burning a card the dealer does not burn another one so soon.
                await shows(floor, lambda look: _due(look, "card") != "burn")

        await self._until(floor, lambda look: _due(look, "card") == name, burn)
        cards.append(await self._draw(floor))

    async def _before_peek(self, floor: Floor) -> None:
        """Arts. 10(3), 12: sometimes even money and insurance."""
        up = _worth(self._bank[0])
        if up not in (1, 10):
            return
        insured: list[int] = []
        for hand in self._hands:
            if hand.ended == "blackjack" and self._minds.random() < 0.4:
                await self._until(
                    floor,
                    lambda look: hand.seat in look.detail.get("even_money", ()),  # noqa: B023 - awaited here
                    partial(self._act, floor, hand, "even_money"),
                )
                hand.ended = "even_money"
            elif up == 1 and self._minds.random() < 0.2:
                insured.append(hand.seat)
                amount = self._laid.get((hand.seat, "main"), 0) // 2
                if amount:
                    self._insured[hand.seat] = amount
                await self._until(
                    floor,
                    lambda look: insured == list(look.detail.get("insured", ())),
                    partial(self._act, floor, hand, "insurance", amount),
                )

    async def _act(self, floor: Floor, hand: _Hand, action: str, amount: int = 0) -> None:
        self.console.act(hand.seat, action, floor.pace.now(), hand=hand.number, amount=amount)
        floor.stir("console-1")
        await self._pause(floor, 1.0, 1.5)

    async def _peek(self, floor: Floor) -> None:
        """Art. 5(2)(3)(3): peek under an ace or a ten; a card that the reader does not read is put in again."""
        if _worth(self._bank[0]) not in (1, 10):
            return
        blackjack = _blackjack(self._bank)
        await self._until(floor, lambda look: _due(look, "peek") == BANK)

        async def peek() -> None:
            self.peek.peek(blackjack, floor.pace.now())
            floor.stir("peek-1")
            await self._pause(floor, 2.0, 3.0)

        if blackjack:
            self._end_all()
        await self._until(floor, lambda look: not _due(look, "peek"), peek, over=blackjack or not self._undecided())

    def _end_all(self) -> None:
        for hand in self._hands:
            hand.ended = hand.ended or "stand"

    def _undecided(self) -> bool:
        return any(not hand.ended for hand in self._hands) or self._needs()

    async def _give_in(self, floor: Floor) -> None:
        """Art. 18(2): surrender before any further card is dealt, also out of turn."""
        for hand in self._hands:
            if not hand.ended and self._gives_up(hand):
                hand.ended = "surrender"
                await self._until(
                    floor,
                    lambda look: _gave_up(look, hand),  # noqa: B023 - awaited here
                    partial(self._act, floor, hand, "surrender"),
                    over=not self._undecided(),
                )

    def _gives_up(self, hand: _Hand) -> bool:
        """Whether the player surrenders when he may: mostly as in basic strategy."""
        total, soft = _count(hand.cards)
        bad = (total, _worth(self._bank[0])) in ((16, 9), (16, 10), (15, 10)) and not soft
        return bad and not self._may_split(hand) and self._minds.random() < 0.6

    async def _decide(self, floor: Floor, hand: _Hand) -> None:
        """Arts. 6, 16 to 19: decisions until the hand is over."""
        up = self._bank[0]
        while not hand.ended:
            if len(hand.cards) == 1:
                await self._card(floor, hand.name, hand.cards)
                self._judge(hand)
                continue
            await self._until(floor, lambda look: _due(look, "decision") == hand.name)
            action = self._wish(hand, up)
            match action:
                case "hit" | "double":
                    await self._until(
                        floor,
                        lambda look: _due(look, "card") == hand.name,
                        partial(self._act, floor, hand, action),
                    )
                    hand.doubled = action == "double"
                    await self._card(floor, hand.name, hand.cards)
                    self._judge(hand)
                case "split":
                    await self._split(floor, hand)
                case _:
                    hand.ended = action
                    if action == "stand" and _count(hand.cards)[0] == 21:
                        hand.ended = "blackjack" if _blackjack(hand.cards) and not hand.split else "twenty_one"
                    await self._until(
                        floor,
                        lambda look: _due(look, "decision") != hand.name,
                        partial(self._act, floor, hand, action),
                        over=not self._undecided(),
                    )

    async def _split(self, floor: Floor, hand: _Hand) -> None:
        """Art. 16: the second card begins a new hand, the last of the seat."""
        mine = [one for one in self._hands if one.seat == hand.seat]
        await self._act(floor, hand, "split")
        hand.split = True
        new = _Hand(hand.seat, len(mine) + 1, [hand.cards.pop()], split=True)
        self._hands.insert(self._hands.index(mine[-1]) + 1, new)

        again = partial(self._act, floor, hand, "split")
        await self._until(floor, lambda look: _due(look, "card") == hand.name, again, unsplit=True)

    def _judge(self, hand: _Hand) -> None:
        """End the hand where the rules end it without a decision."""
        total = _count(hand.cards)[0]
        five = len(hand.cards) == 5 and self._bank[0][0] != "A"
        if total > 21:
            hand.ended = "bust"
        elif hand.split and len(hand.cards) == 2 and hand.cards[0][0] == "A":
            if not self._may_split(hand):
                hand.ended = "twenty_one" if total == 21 else "stand"
        elif _special(hand.cards):
            hand.ended = "special"
        elif hand.doubled:
            hand.ended = "stand"
        elif total == 21 and not five:
            hand.ended = "twenty_one"

    def _may_split(self, hand: _Hand) -> bool:
        """A pair, and not more hands than four. With two like pairs a player here never splits only one."""
        pair = len(hand.cards) == 2 and hand.cards[0][0] == hand.cards[1][0]
        return pair and sum(one.seat == hand.seat for one in self._hands) < HANDS

    def _wish(self, hand: _Hand, up: str) -> str:
        """The player's decision."""
        bank, chance = _worth(up), self._minds.random()
        total, soft = _count(hand.cards)
        if self._may_split(hand) and bank in _SPLITS[_worth(hand.cards[0])]:
            return "split"
        if hand.split and hand.cards[0][0] == "A":
            return "stand"
        if len(hand.cards) == 5 and bank != 1 and (total == 21 or chance < 0.5):
            return "stand" if total == 21 and chance < 0.5 else "five_cards"
        if len(hand.cards) == 2:
            if self.options.get("surrender") == "before_own_card" and not hand.split and self._gives_up(hand):
                return "surrender"
            if bank in (_SOFT_DOUBLES if soft else _DOUBLES).get(total, ()):
                return "double"
        if soft:
            return "stand" if total >= 19 or (total == 18 and 2 <= bank <= 8) else "hit"
        return "stand" if total >= 17 or bank in _STANDS.get(total, ()) else "hit"

    async def _bank_cards(self, floor: Floor) -> None:
        """Art. 6(1), 6(6): turn the hole card; draw to 17 if any hand depends on it."""
        self._open = True
        while self._needs():
            await self._card(floor, BANK, self._bank)

    def _needs(self) -> bool:
        total, soft = _count(self._bank)
        draws = total < 17 or (total == 17 and soft and len(self._bank) == 2)
        return draws and any(hand.ended in ("stand", "twenty_one") for hand in self._hands)

    # ---- the display

    async def _until(
        self,
        floor: Floor,
        want: Callable[[Look], bool],
        again: Callable[[], Awaitable[Any]] | None = None,
        *,
        over: bool = False,
        unsplit: bool = False,
    ) -> None:
        """Wait until the display shows these cards and the wanted state. `again` repeats the act; `over`: the end of
        the round will do, too.

        Raises GivenUpError if it never does. `unsplit`: it may still show a hand that was just split as one.
        """
        for _ in range(LOOKS):
            await floor.ready()
            look = floor.look()
            if look.round != self._round or look.over:
                if over:
                    return
                raise GivenUpError
            if look.phase == "dealing" and self._shows(look):
                if want(look):
                    return
                if again is not None:
                    await again()
            elif unsplit and look.phase == "dealing" and again is not None and self._shows(look, split=False):
                await again()
            elif look.phase == "suspended" or not await self._glance(floor):
                self._doubted = True
                await self._correct(floor)
            await self._pause(floor, 0.5, 1.0)
        raise GivenUpError

    async def _glance(self, floor: Floor) -> bool:
        """Give the display a moment to show the hands as they lie; whether it does."""
        for _ in range(GLANCES):
            if self._shows(floor.look()):
                return True
            await self._pause(floor, 0.3, 0.5)
        return False

    def _shows(self, look: Look, *, split: bool = True) -> bool:
        """Whether the display has the hands as they lie; the hole card may be hidden there."""
        hands = {hand.name: hand.cards for hand in self._hands}
        if not split:
            *_, (name, last) = hands.items()
            del hands[name]
        return False if not split and not last else self._same(look, hands)

    def _same(self, look: Look, hands: dict[str, list[str]]) -> bool:
        shown = dict(look.detail.get("hands", {}))
        bank = shown.pop(BANK, None)
        return shown == hands and bank in (self._bank, [*self._bank[:1], HIDDEN][: len(self._bank)])

    async def _correct(self, floor: Floor) -> None:
        """Art. 5(1)(2): the supervisor comes, and enters the hands as they lie if the display still needs them.

        A card that lies face down is never entered: if the display lacks the hole card, that ends the round.
        """
        await self._pause(floor, 3.0, 8.0)
        await floor.ready()
        look = floor.look()
        if look.over or (look.phase == "dealing" and self._shows(look)):
            return
        bank = self._bank if self._open else self._bank[:1]
        if len(self._bank) > 1 and len(look.detail.get("hands", {}).get(BANK, ())) < 2:
            self._unseen += 1
            if self._unseen == TRIES:
                raise GivenUpError
        now = floor.pace.now()
        self.console.supervisor_key(on=True, now=now)
        self.console.correct({BANK: bank, **{hand.key: hand.cards for hand in self._hands}}, now)
        self.console.supervisor_key(on=False, now=now)
        floor.stir("console-1")
        await floor.pace.sleep(2.0)

    # ---- the outcome

    def _told(self) -> dict[str, Any]:
        """Arts. 7 to 19: every hand against the bank."""
        blackjack = _blackjack(self._bank)
        bank = _count(self._bank)[0]
        told: dict[str, Any] = {
            "hands": {BANK: self._bank, **{hand.name: hand.cards for hand in self._hands}},
            "totals": {BANK: bank, **{hand.name: _count(hand.cards)[0] for hand in self._hands}},
            "ended": {hand.name: hand.ended for hand in self._hands},
            "results": {hand.name: _result(hand, bank, blackjack=blackjack) for hand in self._hands},
            "blackjack": blackjack,
            "bust": bank > 21,
        }
        if doubled := [hand.name for hand in self._hands if hand.doubled]:
            told["doubled"] = doubled
        return told

    def _settled(self) -> Settled:
        """Arts. 9 to 19: the payment of each wager: main bets with their splits and doubles, and side bets.

        A side bet of a seat without a main bet goes back at the bell.
        """
        settled = []
        for (seat, bet), stake in self._laid.items():
            if bet == "main" or bet.startswith("main:"):
                hands = [hand for hand in self._hands if hand.seat == seat]
                for hand in hands if bet == "main" else hands[:1]:
                    settled.append((seat, hand.number, bet, stake, _paid(stake, self._pays(hand))))
                    if hand.doubled and bet == "main":
                        settled.append(
                            (seat, hand.number, "double", stake, _paid(stake, self._pays(hand, double=True)))
                        )
            elif not any(one.startswith("main") for _, one in self._laid) or (seat, "main") in self._laid:
                settled.append((seat, 0, bet, stake, _paid(stake, self._beside(seat, bet))))
        for seat, stake in self._insured.items():
            won = _blackjack(self._bank)
            settled.append((seat, 0, "insurance", stake, 3 * stake if won else 0))
        return tuple(sorted(settled))

    def _pays(self, hand: _Hand, *, double: bool = False) -> Fraction:
        """The win of a bet on the hand as a fraction of it; -1 if it is lost. `double`: the bet that a double added."""
        match hand.ended:
            case "surrender":
                return Fraction(-1, 2)
            case "five_cards":
                return Fraction(1, 2)
            case "special":
                return Fraction(3)
            case "blackjack" if not _blackjack(self._bank) and not double:
                return Fraction(3, 2)
            case _:
                return Fraction({"win": 1, "push": 0, "lose": -1}[self._told()["results"][hand.name]])

    def _beside(self, seat: int, bet: str) -> Fraction:
        """Arts. 13, 14: the additional bets, on the first two cards; any pair pays again for each further pair."""
        hands = [hand for hand in self._hands if hand.seat == seat]
        first = hands[0].cards[0], (hands[0].cards[1] if len(hands) == 1 else hands[1].cards[0])
        points = sum(map(_worth, first))
        match bet:
            case "over_13":
                return Fraction(1 if points > 13 else -1)
            case "under_13":
                return Fraction(1 if points < 13 else -1)
            case "any_pair" if first[0][0] == first[1][0]:
                pairs = len(hands) - 1 + sum(hand.cards[0][0] == hand.cards[1][0] for hand in hands)
                return Fraction(11 * pairs)
            case _:
                return Fraction(-1)


def _paid(stake: int, pays: Fraction) -> int:
    """The stake and what it wins, in whole minor units."""
    return stake + int(stake * pays) if pays > -1 else 0


# Basic strategy: against which cards of the bank a player splits, doubles and stands.
_LOW = range(2, 8)
_SPLITS = {
    1: range(1, 11),
    2: _LOW,
    3: _LOW,
    4: (5, 6),
    5: (),
    6: range(2, 7),
    7: _LOW,
    8: range(1, 11),
    9: (2, 3, 4, 5, 6, 8, 9),
    10: (),
}
_DOUBLES = {9: range(3, 7), 10: range(2, 10), 11: range(2, 11)}
_SOFT_DOUBLES = {16: range(4, 7), 17: range(3, 7), 18: range(3, 7)}
_STANDS = {12: range(4, 7), 13: range(2, 7), 14: range(2, 7), 15: range(2, 7), 16: range(2, 7)}


def _worth(card: str) -> int:
    return 10 if card[0] in "TJQK" else "A23456789".index(card[0]) + 1


def _count(cards: list[str]) -> tuple[int, bool]:
    """Art. 8: the points, and whether an ace counts eleven."""
    points = sum(_worth(card) for card in cards)
    soft = points <= 11 and any(card[0] == "A" for card in cards)
    return points + 10 * soft, soft


def _blackjack(cards: list[str]) -> bool:
    return len(cards) == 2 and _count(cards) == (21, True)


def _special(cards: list[str]) -> bool:
    """Art. 15: the 6, 7 and 8 of one suit, or three sevens."""
    if "".join(sorted(card[0] for card in cards)) == "678":
        return len({card[1] for card in cards}) == 1
    return [card[0] for card in cards] == ["7", "7", "7"]


def _result(hand: _Hand, bank: int, *, blackjack: bool) -> str:
    match hand.ended:
        case "bust":
            return "lose"
        case "surrender":
            return "surrender"
        case "even_money" | "five_cards" | "special":
            return "win"
        case "blackjack":
            return "push" if blackjack else "win"
        case _:
            mine = _count(hand.cards)[0]
            if blackjack or mine < bank <= 21:
                return "lose"
            return "push" if mine == bank else "win"


def _due(look: Look, kind: str) -> str:
    """The hand whose card, peek or decision the display waits for; "" if it waits for something else."""
    due = look.detail.get("due", {})
    return str(due["hand"]) if due.get("kind") == kind else ""


def _gave_up(look: Look, hand: _Hand) -> bool:
    """Whether the display waits for another hand's decision and no longer accepts one of this hand."""
    others = _due(look, "decision") not in ("", hand.name)
    return others and hand.seat not in look.detail["due"].get("surrender", ())


def _never(_: Look) -> bool:
    return False
