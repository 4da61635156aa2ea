"""Tables of poker without a bank: hold'em, Omaha and synthetic poker of Angola. A reading shoe of one deck, a console.

The dealer counts the chips of each seat and the pots from the text of the law; nothing here comes from the rules.
Players bet by chance, leave, are absent and act out of turn; the dealer mixes up cards and deals streets early.
"""

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct

from simulators.devices.bee_tek_shoe import Shoe
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.tables.table import Floor, GivenUpError, Look, Ruled, Truth, settle

__all__ = ["HoldemTable", "OmahaTable", "SyntheticTable"]

MINIMUM: Final = 100
CHIP: Final = 10
PER_MILLE: Final = 30
TRIES: Final = 60
RANKS: Final = "23456789TJQKA"
RAISES: Final = 3
FLOP: Final = 3
COMMON: Final = 5
MISTAKE: Final = 1  # the console's reason for a void: dealing error
BUY_IN: Final = (2_000, 5_000, 10_000)
RICH: Final = 30_000
"""A player with so many chips leaves with them."""
SUITS: Final = "SHDC"

Mishap: TypeAlias = Literal["", "misdeal", "absent", "leaves", "mixed", "early", "fold_early", "mucks"]
MISHAPS: Final[dict[Mishap, int]] = {
    "misdeal": 10,
    "absent": 20,
    "leaves": 20,
    "mixed": 15,
    "early": 30,
    "fold_early": 20,
    "mucks": 40,
}
"""Mishaps, and in how many of a thousand hands each happens."""

# ---- which hand is higher: 13(17), 13(18), 16(9), 16(11)

LADDER: Final = ("high", "pair", "two", "three", "straight", "flush", "full", "four", "straight_flush")
COURTS_LADDER: Final = (
    *("high", "pair", "two", "courts", "court_pairs", "three", "straight", "full", "flush", "four"),
    "straight_flush",
)
SHAPES: Final = {
    (1, 1, 1, 1, 1): "high",
    (2, 1, 1, 1): "pair",
    (2, 2, 1): "two",
    (3, 1, 1): "three",
    (3, 2): "full",
    (4, 1): "four",
}
Worth: TypeAlias = tuple[int, tuple[int, ...]]


def worth(cards: Sequence[str], *, courts: bool) -> Worth:
    """The rank of five cards, for comparison. `courts`: by the order of synthetic poker, whose lowest card is the
    eight.
    """
    times = Counter(RANKS.index(card[0]) for card in cards)
    ranks = tuple(sorted(times, key=lambda rank: (times[rank], rank), reverse=True))
    shape = SHAPES[tuple(sorted(times.values(), reverse=True))]
    high = tuple(sorted((RANKS.index(card[0]) for card in cards), reverse=True))
    if shape == "high":
        below = (12, 9, 8, 7, 6) if courts else (12, 3, 2, 1, 0)  # the ace below the eight, or below the two
        runs = ranks == below or ranks[0] - ranks[4] == 4
        ranks = (ranks[1],) if ranks == below else ranks[:1] if runs else ranks
        suited = len({card[1] for card in cards}) == 1
        shape = "straight_flush" if runs and suited else "straight" if runs else "flush" if suited else shape
    if courts and min(high) >= RANKS.index("J") and shape in ("two", "pair"):
        shape, ranks = ("court_pairs", ranks) if shape == "two" else ("courts", high)
    return (COURTS_LADDER if courts else LADDER).index(shape), ranks


# ---- the pots: 13(7)(a), 13(38), 13(49), 13(66), 13(67)


def payments(
    laid: dict[int, int], dead: dict[int, int], worths: dict[int, Any], order: Sequence[int]
) -> tuple[dict[int, int], set[int], int]:
    """The amount returned to each seat, the seats that win a pot, and the rake. `worths`: those of the hands in
    play.
    """
    back, rest = dict.fromkeys(laid, 0), dict(laid)
    most = max(laid, key=lambda seat: laid[seat])
    second = max((amount for seat, amount in laid.items() if seat != most), default=0)
    if most in worths and laid[most] > second:  # the excess was not called
        back[most] = laid[most] - second
        rest[most] = second
    found: list[tuple[int, tuple[int, ...]]] = []
    low, heap = 0, sum(dead.values())
    for level in sorted({rest[seat] for seat in worths} | {max(rest.values())}):
        heap += sum(min(amount, level) - min(amount, low) for amount in rest.values())
        low, players = level, tuple(seat for seat in worths if rest[seat] >= level)
        if found and (not players or players == found[-1][1]):
            found[-1] = (found[-1][0] + heap, found[-1][1])
        else:
            found.append((heap, players or tuple(worths)))
        heap = 0
    kept, won = 0, set[int]()
    for amount, players in found:
        best = max(worths[seat] for seat in players)
        winners = [seat for seat in order if seat in players and worths[seat] == best]
        for place, seat in enumerate(winners if amount else ()):
            units = amount // MINIMUM
            part = (units // len(winners) + (place < units % len(winners))) * MINIMUM
            part += amount % MINIMUM if place == 0 else 0
            rake = part * PER_MILLE // 1000 // CHIP * CHIP
            back[seat] += part - rake
            kept += rake
            won.add(seat)
    return back, won, kept


class _Hand(Struct):
    """The dealer's own record of the hand. `chips`: stacks by seat; `waiting`: the seats that have to act, in order."""

    order: list[int]
    chips: dict[int, int]
    mine: str
    mishap: Mishap
    laid: dict[int, int] = {}
    dead: dict[int, int] = {}
    street: dict[int, int] = {}
    waiting: list[int] = []
    bound: set[int] = set()
    level: int = 0
    raises: int = 0
    highest: int = 0
    folded: set[int] = set()
    killed: set[int] = set()
    own: dict[int, list[str]] = {}
    board: list[str] = []

    def live(self) -> list[int]:
        return [seat for seat in self.order if seat not in self.folded | self.killed]

    def lays(self, seat: int, amount: int) -> None:
        self.chips[seat] -= amount
        self.laid[seat] = self.laid.get(seat, 0) + amount
        self.street[seat] = self.street.get(seat, 0) + amount

    def due(self, seat: int) -> int:
        return min(max(self.level - self.street.get(seat, 0), 0), self.chips[seat])

    def after(self, seat: int) -> list[int]:
        place = self.order.index(seat) + 1
        return self.order[place:] + self.order[:place]

    def ended(self) -> bool:
        """Whether the hand is decided."""
        return len(self.live()) == 1 or (len(self.board) == COMMON and not self.waiting)

    def begins(self, first: int) -> None:
        """Begin a round of bets, unless at most one seat can bet and owes nothing."""
        able = [seat for seat in (first, *self.after(first)[:-1]) if seat in self.live() and self.chips[seat]]
        self.waiting = able if len(able) > 1 or any(map(self.due, able)) else []

    def acted(self, seat: int) -> None:
        """Give the turn to the next seat; to none if one hand is left, or the last seat with chips owes nothing."""
        self.waiting = [other for other in self.waiting if other != seat]
        able = [other for other in self.live() if self.chips[other]]
        if len(self.live()) < 2 or (self.waiting == able and len(able) == 1 and not self.due(able[0])):
            self.waiting = []


class _PokerTable(Ruled, ABC):
    """Five or six players; the game of each article derives from it."""

    own_cards: ClassVar[int] = 2
    streets: ClassVar[tuple[int, ...]] = (3, 4, 5)
    ante: ClassVar[bool] = False
    cards: ClassVar[str] = RANKS
    seats: ClassVar[int] = 10
    pot_limit: ClassVar[bool] = False
    reads: ClassVar[bool] = True
    """Whether the shoe reports the cards; otherwise a supervisor enters the common cards and the shown hands."""

    def __init__(self, seed: int) -> None:
        """Everything that chance decides comes from `seed`."""
        name = type(self).__name__
        self._rng = random.Random(f"{name} {seed}")
        self.shoe = Shoe(random.Random(f"{name} shoe {seed}"), 1)
        self.console = Console(random.Random(f"{name} console {seed}"), f"SIM-C{seed}", 1)
        self.devices: dict[str, Device] = {"console-1": self.console}
        if self.reads:
            self.devices["shoe-1"] = self.shoe
        self.truth: list[Truth] = []
        self.mishaps: Counter[Mishap] = Counter()
        self._chips: dict[int, int] = {}

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Art. 13: play hand after hand, while players come and go."""
        for _ in range(rounds):
            await floor.ready()
            self.truth.append(await self._round(floor))
            await self._pause(floor, 2.0, 4.0)

    async def _until(self, floor: Floor, press: Callable[[], object], shown: Callable[[Look], bool]) -> None:
        """Press a key until the display shows its effect. Raises GivenUpError if it never does."""
        for _ in range(TRIES):
            await floor.ready()
            press()
            floor.stir("console-1")
            for pause in (0.5, 0.5, 2.0):
                await floor.pace.sleep(pause)
                if shown(floor.look()):
                    return
        raise GivenUpError

    def _act(self, floor: Floor, seat: int, action: str, amount: int = 0) -> bool:
        return self.console.act(seat, action, floor.pace.now(), amount=amount)

    # ---- players and their chips

    async def _seat_players(self, floor: Floor) -> None:
        """Art. 13(28), 14(8): players with too few chips buy more; sometimes one leaves and another comes."""
        rng = self._rng
        for seat, chips in sorted(self._chips.items()):
            if chips > RICH or rng.random() < 0.02:
                await self._leave(floor, seat)
        for name in floor.look().detail.get("stacks", {}):
            if (seat := int(name.removeprefix("seat_"))) not in self._chips:  # the display was outdated when he left
                await self._leave(floor, seat)
        while len(self._chips) < rng.randint(5, 6):
            seat = rng.choice([seat for seat in range(1, self.seats + 1) if seat not in self._chips])
            self._chips[seat] = 0
        for seat, chips in self._chips.items():
            if chips < 10 * MINIMUM:
                others = [held for held in self._chips.values() if held]
                self._chips[seat] = max(sum(others) // max(len(others), 1), rng.choice(BUY_IN)) // CHIP * CHIP
        shown = floor.look().detail.get("stacks", {})
        for seat, chips in sorted(self._chips.items()):
            if shown.get(f"seat_{seat}") != chips:
                await self._tell_stack(floor, seat, chips)

    async def _tell_stack(self, floor: Floor, seat: int, chips: int) -> None:
        await self._until(
            floor,
            lambda: self._act(floor, seat, "stack", chips),
            lambda look: look.detail.get("stacks", {}).get(f"seat_{seat}") == chips,
        )

    async def _leave(self, floor: Floor, seat: int) -> None:
        self._chips.pop(seat, None)
        await self._until(
            floor,
            lambda: self.console.seat(seat, floor.pace.now(), on=False),
            lambda look: f"seat_{seat}" not in look.detail.get("stacks", {}),
        )

    # ---- a hand

    async def _round(self, floor: Floor) -> Truth:
        """Play a hand; its true outcome, void if the dealer gave it up."""
        if not floor.look().over:  # an outdated screen hid that the last round is still open
            await settle(floor, self.console, self._rng)
        hand: _Hand | None = None
        before = dict(self._chips)
        try:
            await self._seat_players(floor)
            before = dict(self._chips)
            hand = await self._open(floor)
            if hand is None:
                return Truth({}, void=True)
            decided = await self._played(floor, hand)
        except GivenUpError:
            decided = False
        if hand is None:
            self._chips = {seat: chips for seat, chips in before.items() if seat in self._chips}
            return Truth({}, void=True)
        if not decided:
            floor.press(self.console, "void", MISTAKE)
        counts = await settle(floor, self.console, self._rng, hand.mine)
        if not decided and not (hand.ended() and counts):
            self._chips = {seat: chips for seat, chips in before.items() if seat in self._chips}
            return Truth({}, void=True)
        truth, chips = self._outcome(hand)
        left = set(before) - set(self._chips)
        self._chips = {seat: held for seat, held in (chips if counts else before).items() if seat not in left}
        if counts:
            floor.press(self.console, "paid")
        return Truth(truth.outcome, void=not counts or not decided, settled=truth.settled)

    async def _open(self, floor: Floor) -> _Hand | None:
        """Begin the hand with the first bets; None if the chips of the table have to be entered first."""
        rng = self._rng
        await self._until(
            floor,
            lambda: self.console.press("bets_opened", floor.pace.now()),
            lambda look: look.phase in ("betting", "suspended") and look.mine != "",
        )
        look = floor.look()
        if look.phase == "suspended":  # the chips are not certain
            await self._until(
                floor, lambda: self.console.press("void", floor.pace.now(), MISTAKE), lambda look: look.over
            )
            for seat, chips in sorted(self._chips.items()):
                await floor.ready()
                self._act(floor, seat, "stack", chips)
                floor.stir("console-1")
                await floor.pace.sleep(1.0)
            return None
        order = list(look.detail["players"])
        [mishap] = rng.choices(("", *MISHAPS), (1000 - sum(MISHAPS.values()), *MISHAPS.values()))
        self.mishaps[mishap] += 1
        stacks = {seat: self._chips.get(seat, 0) for seat in order}  # 0 for one who left but is displayed
        hand = _Hand(order, stacks, look.round, mishap, laid=dict.fromkeys(order, 0))
        if look.detail["stacks"] != {f"seat_{seat}": chips for seat, chips in hand.chips.items()}:
            raise GivenUpError
        firsts = dict.fromkeys(order, MINIMUM) if self.ante else {order[0]: MINIMUM // 2, order[1]: MINIMUM}
        hand.level = 0 if self.ante else MINIMUM
        for seat, amount in firsts.items():
            if self.ante:
                hand.chips[seat] -= amount
                hand.dead[seat] = amount
            else:
                hand.lays(seat, amount)
            await self._does(floor, hand, seat, "post")
        due = floor.look().detail.get("due", {})
        while due.get("actions") == ["post"] and not self.ante:  # 14(18)
            hand.lays(due["seat"], MINIMUM)
            await self._does(floor, hand, due["seat"], "post")
            due = floor.look().detail.get("due", {})
        if not self.reads:
            await self._until(
                floor, lambda: self.console.press("bell", floor.pace.now()), lambda look: look.phase != "betting"
            )
        return hand

    async def _does(self, floor: Floor, hand: _Hand, seat: int, action: str, amount: int = 0) -> None:
        """Enter an action of a seat until the display shows its chips and waits for something else."""

        def shown(look: Look) -> bool:
            if look.round != hand.mine or look.over:
                return _over(look, hand)
            due = look.detail.get("due", {})
            asked = due.get("kind") == "decision" and due.get("seat") == seat and action in due.get("actions", ())
            out = seat in look.detail.get("folded", ())
            chips = look.detail.get("stacks", {}).get(f"seat_{seat}")
            told = chips == hand.chips[seat] and not asked
            return look.phase == "suspended" or (told and (out or seat not in hand.folded | hand.killed))

        await self._until(floor, lambda: self._act(floor, seat, action, amount), shown)
        if floor.look().phase == "suspended":
            raise GivenUpError
        await self._pause(floor, 0.3, 0.8)

    async def _played(self, floor: Floor, hand: _Hand) -> bool:
        """Cards, bets and showdown; False if the hand is given up."""
        deck = self._deck()
        if not await self._own_cards(floor, hand, deck):
            return False
        if not self.ante:
            hand.begins(hand.order[2 % len(hand.order)])
            if not await self._betting(floor, hand, deck):
                return False
        while len(hand.live()) > 1 and len(hand.board) < self.streets[-1]:
            await self._street(floor, hand, deck)
            if not await self._betting(floor, hand, deck):
                return False
        if len(hand.live()) > 1:
            await self._showdown(floor, hand)
        return bool(hand.live())

    def _deck(self) -> Iterator[str]:
        """One deck, freshly shuffled."""
        cards = [rank + suit for rank in self.cards for suit in SUITS]
        if self.reads:
            self.shoe.fill(cards)
        self._rng.shuffle(cards)
        return iter(cards)

    async def _draw(self, floor: Floor, deck: Iterator[str]) -> str:
        await floor.ready()
        if not self.reads:
            return next(deck)
        if not self.shoe.left:
            raise GivenUpError
        card = self.shoe.draw(floor.pace.now())
        floor.stir("shoe-1")
        await self._pause(floor, 0.5, 0.9)
        return card

    async def _own_cards(self, floor: Floor, hand: _Hand, deck: Iterator[str]) -> bool:
        """Art. 13(35), 14(6): one card at a time, beginning after the button."""
        hand.own = {seat: [] for seat in hand.order}
        for place in range(len(hand.order) * self.own_cards):
            if hand.mishap == "misdeal" and place == len(hand.order) + 1:
                return False
            hand.own[hand.order[place % len(hand.order)]].append(await self._draw(floor, deck))
        if not self.reads:
            return True
        await self._shown(floor, hand, lambda look: look.detail.get("due", {}).get("hand") != "own")
        return not floor.look().over

    async def _shown(self, floor: Floor, hand: _Hand, what: Callable[[Look], bool]) -> None:
        """Wait for the display; raises GivenUpError if it does not follow."""
        for _ in range(20):
            look = floor.look()
            if look.round == hand.mine and (look.phase == "suspended" or what(look)):
                break
            await floor.ready()
            await floor.pace.sleep(0.5)
        look = floor.look()
        if look.round != hand.mine or look.phase == "suspended" or not what(look):
            raise GivenUpError

    # ---- bets

    async def _betting(self, floor: Floor, hand: _Hand, deck: Iterator[str]) -> bool:
        """Art. 13(39), 13(47): one round of bets, perhaps with a mishap in its middle. False if no hand is left."""
        while hand.waiting:
            seat = hand.waiting[0]
            mishap, others = hand.mishap, [one for one in hand.live() if one != seat and hand.chips[one]]
            if mishap in ("absent", "leaves", "mixed", "fold_early") and len(hand.live()) > 3 and len(others) > 1:
                hand.mishap = ""
                await self._out(floor, hand, mishap, seat, others)
                continue
            early = mishap == "early" and len(hand.waiting) == 1 and hand.street.get(seat, 0) < hand.level
            if early and not self.ante and len(hand.board) < self.streets[-1] and len(hand.live()) > 2 and self.reads:
                hand.mishap = ""
                await self._too_early(floor, hand, seat, deck)
                continue
            await self._decides(floor, hand, seat)
        return bool(hand.live())

    async def _out(self, floor: Floor, hand: _Hand, mishap: Mishap, seat: int, others: Sequence[int]) -> None:
        """Art. 13(70)(b), 13(71)(f), 13(71)(g): an absent or leaving player, two mixed hands, a fold out of turn."""
        if mishap == "mixed":
            for one in (seat, others[0]):
                hand.killed.add(one)
                hand.acted(one)
                await self._does(floor, hand, one, "dead")
            return
        one = others[-1] if mishap == "fold_early" else seat
        hand.folded.add(one)
        hand.acted(one)
        if mishap != "leaves":
            await self._does(floor, hand, one, "absent" if mishap == "absent" else "fold")
            return
        self._chips.pop(one, None)
        await self._until(
            floor,
            lambda: self.console.seat(one, floor.pace.now(), on=False),
            lambda look: _over(look, hand) or one in look.detail.get("folded", ()) or look.phase == "suspended",
        )
        await self._shown(floor, hand, lambda look: one in look.detail.get("folded", ()) or look.over)

    async def _decides(self, floor: Floor, hand: _Hand, seat: int) -> None:
        """The decision, by chance: the cards do not matter."""
        rng, due = self._rng, hand.due(seat)
        mood = rng.random()
        left = hand.chips[seat] - due
        free = seat not in hand.bound and (hand.raises < RAISES or len(hand.live()) == 2) and left > 0
        pot = sum(hand.laid.values()) + sum(hand.dead.values()) + due
        by = min(MINIMUM * rng.choice((1, 2, 3, 5, 8)), pot // CHIP * CHIP if self.pot_limit else left)
        if due and mood < 0.22:
            hand.folded.add(seat)
            hand.acted(seat)
            await self._does(floor, hand, seat, "fold")
        elif free and mood > 0.95 and (not self.pot_limit or left <= pot):
            await self._raises(floor, hand, seat, left, "all_in")
        elif free and mood > 0.75 and MINIMUM <= by < left:
            await self._raises(floor, hand, seat, by, "raise" if hand.level else "bet")
        else:
            hand.lays(seat, due)
            hand.acted(seat)
            await self._does(floor, hand, seat, "call" if due else "check")

    async def _raises(self, floor: Floor, hand: _Hand, seat: int, by: int, word: str) -> None:
        """Art. 14(15): less than the minimum is no raise, and seats that have acted may only call."""
        whole, laid = by >= MINIMUM, hand.due(seat) + by
        hand.raises += whole and hand.level > 0
        hand.lays(seat, laid)
        hand.level, hand.highest = hand.street[seat], seat
        able = [other for other in hand.after(seat)[:-1] if other in hand.live() and hand.chips[other]]
        if not whole:
            hand.bound |= {other for other in able if other not in hand.waiting}
        hand.waiting = [seat, *able]
        hand.acted(seat)
        await self._does(floor, hand, seat, word, 0 if word == "all_in" else laid)

    # ---- common cards

    async def _street(self, floor: Floor, hand: _Hand, deck: Iterator[str], *, burns: bool | None = None) -> None:
        """Art. 13(41)-(46), 16(13), 16(14): deal a street; sets who begins the bets."""
        due = next(count for count in self.streets if count > len(hand.board)) - len(hand.board)
        if not self.ante if burns is None else burns:
            await self._draw(floor, deck)
        hand.board += [await self._draw(floor, deck) for _ in range(due)]
        await self._tell_board(floor, hand)
        first = hand.order[0]
        if self.ante:
            first = hand.order[1]
            if len(hand.board) > 1 and hand.highest in hand.live() and hand.chips[hand.highest]:
                first = hand.highest
        hand.street, hand.level, hand.raises, hand.highest, hand.bound = {}, 0, 0, 0, set()
        hand.begins(first)

    async def _tell_board(self, floor: Floor, hand: _Hand) -> None:
        if not self.reads:
            await self._until(
                floor,
                lambda: self._correct(floor, hand, {"board": hand.board}),
                lambda look: _over(look, hand) or look.detail.get("board") == hand.board,
            )
        await self._shown(floor, hand, lambda look: look.detail.get("board") == hand.board)

    async def _too_early(self, floor: Floor, hand: _Hand, seat: int, deck: Iterator[str]) -> None:
        """Art. 13(70)(d)-(f), (h): the cards are laid aside, the last player may only call, and others are dealt."""
        due = next(count for count in self.streets if count > len(hand.board)) - len(hand.board)
        for _ in range(due + 1):
            await self._draw(floor, deck)
        hand.bound.add(seat)
        laid = hand.due(seat)
        hand.lays(seat, laid)
        hand.acted(seat)
        await self._does(floor, hand, seat, "call")
        turn = len(hand.board) == FLOP
        await self._street(floor, hand, deck, burns=turn)
        if turn and await self._betting(floor, hand, deck) and len(hand.live()) > 1:
            await self._street(floor, hand, deck, burns=False)

    # ---- the end

    def _correct(self, floor: Floor, hand: _Hand, hands: dict[str, list[str]]) -> None:
        """The supervisor turns his key."""
        now = floor.pace.now()
        self.console.supervisor_key(on=True, now=now)
        self.console.correct(hands, now, named=hand.mine)
        self.console.supervisor_key(on=False, now=now)

    async def _showdown(self, floor: Floor, hand: _Hand) -> None:
        """Art. 13(62), 13(64), 13(71)(b): each player in turn shows or mucks."""
        if hand.mishap == "mucks":
            seat = floor.look().detail.get("due", {}).get("seat", 0)
            if seat in hand.live():
                hand.killed.add(seat)
                await self._until(
                    floor,
                    lambda: self._act(floor, seat, "muck"),
                    lambda look: _over(look, hand) or seat in look.detail.get("folded", ()),
                )
        tried: set[int] = set()
        for _ in range(TRIES):
            await floor.ready()
            look = floor.look()
            if _over(look, hand) or len(hand.live()) < 2:
                return
            if look.round == hand.mine and look.phase == "suspended":
                raise GivenUpError
            seat = look.detail.get("due", {}).get("seat", 0)
            if look.round == hand.mine and look.phase == "showdown" and seat in hand.live():
                if self.reads and seat not in tried:
                    self._act(floor, seat, "show")
                else:  # not all cards of this hand were read: enter them
                    self._correct(floor, hand, {f"seat_{seat}": hand.own[seat]})
                tried.add(seat)
                floor.stir("console-1")
            await self._pause(floor, 1.5, 2.5)
        raise GivenUpError

    @abstractmethod
    def _worth(self, own: Sequence[str], board: Sequence[str]) -> Worth:
        """The rank of the best five cards that the article allows."""

    def _outcome(self, hand: _Hand) -> tuple[Truth, dict[int, int]]:
        """The outcome with what each seat is paid, and each seat's chips afterwards."""
        live = hand.live()
        unseen = len(live) == 1
        worths: dict[int, Any] = {seat: 0 if unseen else self._worth(hand.own[seat], hand.board) for seat in live}
        back, won, kept = payments(hand.laid, hand.dead, worths, hand.order)
        fates = {
            f"seat_{seat}": "folded"
            if seat in hand.folded
            else "dead"
            if seat in hand.killed
            else "wins"
            if seat in won
            else "loses"
            for seat in hand.order
        }
        put = {seat: hand.laid[seat] + hand.dead.get(seat, 0) for seat in hand.order}
        settled = tuple((seat, 0, "pot", put[seat], back[seat]) for seat in sorted(put) if put[seat] or back[seat])
        chips = {**self._chips, **{seat: hand.chips[seat] + back[seat] for seat in hand.order}}
        return Truth({"seats": fates, "rake": kept}, settled=settled), chips


class HoldemTable(_PokerTable):
    """Any five of seven cards; bets up to the stack."""

    kind: ClassVar[str] = "holdem"
    ruleset: ClassVar[str] = "angola.holdem"
    options: ClassVar[dict[str, Any]] = {"minimum": MINIMUM, "percentage": PER_MILLE, "smallest_chip": CHIP}

    def _worth(self, own: Sequence[str], board: Sequence[str]) -> Worth:
        """15(3)."""
        return max(worth(five, courts=False) for five in combinations((*own, *board), 5))


class OmahaTable(_PokerTable):
    """Two of four own cards, three common ones; bets up to the pot."""

    kind: ClassVar[str] = "omaha"
    ruleset: ClassVar[str] = "angola.omaha"
    options: ClassVar[dict[str, Any]] = {**HoldemTable.options, "limit": "pot"}
    own_cards: ClassVar[int] = 4
    pot_limit: ClassVar[bool] = True

    def _worth(self, own: Sequence[str], board: Sequence[str]) -> Worth:
        """14(2)."""
        return max(
            worth((*mine, *common), courts=False) for mine in combinations(own, 2) for common in combinations(board, 3)
        )


class SyntheticTable(_PokerTable):
    """28 cards, antes, five rounds of bets, both own cards in the hand."""

    kind: ClassVar[str] = "synth"
    ruleset: ClassVar[str] = "angola.synthetic-poker"
    options: ClassVar[dict[str, Any]] = HoldemTable.options
    streets: ClassVar[tuple[int, ...]] = (1, 2, 3, 4, 5)
    ante: ClassVar[bool] = True
    cards: ClassVar[str] = "89TJQKA"
    seats: ClassVar[int] = 11

    def _worth(self, own: Sequence[str], board: Sequence[str]) -> Worth:
        """16(3), 16(9)."""
        return max(worth((*own, *three), courts=True) for three in combinations(board, 3))


def _over(look: Look, hand: _Hand) -> bool:
    """Whether the hand has ended, or another one is open."""
    if look.round == hand.mine:
        return look.over
    return hand.mine in look.ended or (not look.over and look.mine != "")
