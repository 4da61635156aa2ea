"""Stud poker tables: a batch shuffler that gives packets of five, sensors under the jackpot bets, and the console.

The shuffler does not report its cards, so the dealer enters them: his open card, and at the showdown the opened hands,
with the supervisor's key. He ranks hands by the table below, which is independent of the rules. Angola's dealer burns a
card, knows no order of suits, and ends the round at any error of the deal.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct

from simulators.devices.alpha_sign import Sign
from simulators.devices.device import Device
from simulators.devices.fdl_bets import BetSensors
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_shuffler import Shuffler
from simulators.tables.table import Floor, GivenUpError, Look, Ruled, Truth, settle

__all__ = [
    "AngolaStudPokerTable",
    "Laid",
    "SignedAngolaStudPokerTable",
    "SignedStudPokerTable",
    "StudPokerTable",
    "compared",
    "compared_in_angola",
    "opens",
]

Hands: TypeAlias = dict[str, tuple[str, ...]]
Mishap: TypeAlias = Literal[
    "",
    "one_seen",
    "two_seen",
    "jam",
    "short",
    "over",
    "wrong_order",
    "no_bet",
    "wrong_key",
    "bank_seen",
    "seen_dealing",
    "shows",
]

SEATS: Final = range(1, 8)
FIVE: Final = 5
APART: Final = 500  # difference of the seeds of two tables in one pit
DEALER: Final = "dealer"
ANTES: Final = (10_000, 20_000, 50_000)
PLAYERS: Final = (4, 4, 4, 3, 2, 1, 1)  # weights of one player, two, three …
TRIES: Final = 60
MISTAKE: Final = 1  # the console's reason for a void: dealing error
SUPERVISORS_DECISION: Final = 5

# Mishaps at the table itself, and in how many of a thousand rounds each happens.
MISHAPS: Final[dict[Mishap, int]] = {
    "one_seen": 40,
    "two_seen": 15,
    "jam": 15,
    "short": 10,
    "over": 10,
    "wrong_order": 10,
    "no_bet": 20,
    "wrong_key": 20,
}
MISHAPS_IN_ANGOLA: Final[dict[Mishap, int]] = {
    "bank_seen": 40,
    "seen_dealing": 15,
    "shows": 30,
    "jam": 15,
    "short": 10,
    "over": 10,
    "wrong_order": 10,
    "no_bet": 20,
    "wrong_key": 20,
}
IN_THE_SHUFFLER: Final[dict[Mishap, str]] = {"jam": "jam_outfeed", "short": "packet_short", "over": "packet_over"}

# ---- which hand is higher

RANKS: Final = "23456789TJQKA"
SUITS: Final = "DCHS"
FLUSH, STRAIGHT_FLUSH, ROYAL_FLUSH = 5, 8, 9
# The hand by how often its ranks occur; five different ranks may also be a straight or a flush.
SHAPES: Final[dict[tuple[int, ...], int]] = {
    (1, 1, 1, 1, 1): 0,
    (2, 1, 1, 1): 1,
    (2, 2, 1): 2,
    (3, 1, 1): 3,
    (3, 2): 6,
    (4, 1): 7,
}
STRAIGHT: Final = 4
# Three of a kind, full house and four of a kind are compared only by the rank that occurs most often.
BY_ONE_RANK: Final = (3, 6, 7)


def compared(cards: Sequence[str]) -> tuple[int, tuple[int, ...], int]:
    """Five cards for comparison: the kind of hand, the ranks that count, and the suit that breaks ties."""
    times = Counter(RANKS.index(card[0]) for card in cards)
    ranks = tuple(sorted(times, key=lambda rank: (times[rank], rank), reverse=True))
    shape = SHAPES[tuple(times[rank] for rank in ranks)]
    if shape == 0:
        if ranks == (12, 3, 2, 1, 0):  # the ace below the 2
            ranks = (3, 2, 1, 0, -1)
        runs = ranks[0] - ranks[4] == 4
        matches = len({card[1] for card in cards}) == 1
        if runs and matches:
            shape = ROYAL_FLUSH if ranks[0] == 12 else STRAIGHT_FLUSH
        elif runs or matches:
            shape = STRAIGHT if runs else FLUSH
    suit = max(SUITS.index(card[1]) for card in cards if RANKS.index(card[0]) == ranks[0])
    return shape, ranks[:1] if shape in BY_ONE_RANK else ranks, suit


def compared_in_angola(cards: Sequence[str]) -> tuple[int, tuple[int, ...], int]:
    """The same without an order of suits: with equal odd cards three of one suit win, otherwise hands are equal."""
    shape, ranks, _ = compared(cards)
    suits = Counter(card[1] for card in cards)
    return shape, ranks, int(shape == 0 and max(suits.values()) >= 3)


def opens(cards: Sequence[str]) -> bool:
    """An ace and a king, or better."""
    shape, ranks, _ = compared(cards)
    return shape > 0 or ranks[:2] == (12, 11)


WINNING: Final = {
    FLUSH: "flush",
    6: "full_house",
    7: "four_of_a_kind",
    STRAIGHT_FLUSH: "straight_flush",
    ROYAL_FLUSH: "royal_flush",
}


class Laid(Struct, frozen=True):
    """The jackpot bets of a round: the seats with a chip, and each hand that raised and can win the jackpot.

    `misread`: the hands as they were first entered, before the correction.
    """

    seats: frozenset[int]
    hands: dict[int, str]
    misread: tuple[dict[int, str], ...] = ()


class _Round(Struct):
    """The dealer's own record of the round. `mine`: its id on the display."""

    antes: dict[int, int] = {}
    mishap: Mishap = ""
    mine: str = ""
    hands: Hands = {}
    raised: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    shown: int = 0
    """The seat that showed its cards, and so has lost."""
    misread: tuple[dict[int, str], ...] = ()


Act: TypeAlias = Literal["pay", "misread", "correct", "void"]

# What a supervisor does after the end of a round, and how often. No act: the key is forgotten.
SECOND_LOOKS: Final[dict[tuple[Act, ...], int]] = {
    ("pay",): 10,
    (): 3,
    ("misread", "correct", "pay"): 3,
    ("pay", "misread", "correct"): 3,
    ("misread", "pay", "correct"): 2,
    ("pay", "misread", "correct", "pay"): 2,
    ("void",): 2,
    ("pay", "void"): 2,
}
ACTED_ON: Final[dict[Act, str]] = {
    "misread": "a hand entered wrongly",
    "correct": "a hand corrected",
    "void": "a round with a jackpot bet voided after its end",
}


class StudPokerTable(Ruled):
    """One to seven players; now and then a card is seen, a packet is wrong, or the dealer makes a mistake."""

    ruleset: ClassVar[str] = "macau.stud-poker"
    options: ClassVar[dict[str, Any]] = {"dealing": "shuffler"}
    carries: ClassVar[bool] = True
    """Whether the jackpot bets of a void round are laid again."""
    locks_first: ClassVar[bool] = False
    """Whether the jackpot bets are locked before the bell, after which they are too late."""
    fold_is_final: ClassVar[bool] = False
    """Whether only a supervisor can take back a fold that was entered by mistake."""

    def __init__(self, seed: int) -> None:
        """Two decks, seven seats."""
        self._rng = random.Random(f"stud poker {seed}")
        self.shuffler = Shuffler(random.Random(f"stud poker shuffler {seed}"), f"SIM-SH{seed}")
        self.bets = BetSensors(random.Random(f"stud poker bets {seed}"), f"SIM-B{seed}")
        self.console = Console(random.Random(f"stud poker console {seed}"), f"SIM-C{seed}", 1)
        self.devices: dict[str, Device] = {
            "shuffler-1": self.shuffler,
            "bets-1": self.bets,
            "console-1": self.console,
        }
        self.truth: list[Truth] = []
        self.mishaps: Counter[Mishap] = Counter()
        """Number of rounds by mishap at the table itself, "" for rounds without one."""
        self.laid: dict[str, Laid] = {}
        """The jackpot bets by the round's id on the display."""
        self._carried: frozenset[int] = frozenset()
        self.second_looks = False
        """Whether a supervisor sometimes changes the result of a round that has ended."""
        self.supervised: Counter[str] = Counter()
        """Number of each act of supervisors after rounds with a jackpot bet."""
        self.forgets_to_pay = 0.0
        """Probability that the dealer forgets the payment key."""
        self._supervisor = random.Random(f"stud poker supervisor {seed}")

    def hurry(self, times: float) -> None:
        """The shuffler packs `times` faster, and gives out cards 2 * `times` faster."""
        self.shuffler.pack_takes /= times
        self.shuffler.card_takes /= 2 * times

    def chances(self) -> Mapping[Mishap, int]:
        """Mishaps, and in how many of a thousand rounds each happens."""
        return MISHAPS

    def compared(self, cards: Sequence[str]) -> tuple[int, tuple[int, ...], int]:
        """Five cards for comparison by the article."""
        return compared(cards)

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Arts. 6 to 10: antes and jackpot bets, bell, packets, decisions, showdown, pay; the other deck meanwhile."""
        for _ in range(rounds):
            await floor.ready()
            await self._deck(floor)
            self.truth.append(await self._round(floor))
            await self._clear(floor, void=self.truth[-1].void)
        await self._deck(floor)  # wait until no cards move in the machine

    async def _until(self, floor: Floor, press: Callable[[], object], shown: Callable[[Look], bool]) -> None:
        """Do something at the console until the display shows it. Raises GivenUpError if it never does."""
        for _ in range(TRIES):
            await floor.ready()
            press()
            floor.stir("console-1")
            await floor.pace.sleep(1.0)
            if shown(floor.look()):
                return
            await floor.pace.sleep(2.0)
            await floor.ready()
            if shown(floor.look()):
                return
        raise GivenUpError

    # ---- the cards

    async def _deck(self, floor: Floor) -> None:
        """Wait for a shuffled deck; clear jams and try again."""
        for _ in range(20):
            await floor.ready()
            if self.shuffler.ready(floor.pace.now(), FIVE):
                return
            await self._shuffle(floor)
            for _ in range(20):  # a shuffle takes three quarters of a minute
                await floor.pace.sleep(4.0)
                if self.shuffler.ready(floor.pace.now(), FIVE):
                    return
            await floor.ready()
            if not self.shuffler.ready(floor.pace.now(), FIVE):
                self.shuffler.repair(floor.pace.now())
                floor.stir("shuffler-1")

    async def _shuffle(self, floor: Floor) -> None:
        """Put the deck on the table into the shuffler."""
        self.shuffler.load(floor.pace.now())
        floor.stir("shuffler-1")
        await floor.tell("shuffler-1", "shuffle", {})

    async def _packet(self, floor: Floor, number: int = FIVE) -> tuple[str, ...]:
        """Take the packet from the tray; empty if none comes."""
        for _ in range(10):
            await floor.ready()
            self.shuffler.dispense(floor.pace.now(), number)
            floor.stir("shuffler-1")
            await self._pause(floor, 2.0, 3.0)
            cards = self.shuffler.take(floor.pace.now())
            floor.stir("shuffler-1")
            if cards or not self.shuffler.ready(floor.pace.now(), FIVE):
                return cards
            await floor.pace.sleep(2.0)  # the machine had no power when the key was pressed
        return ()

    async def _mend(self, floor: Floor, round_: _Round) -> None:
        """End the round as the display requires; then the supervisor opens the machine."""
        await settle(floor, self.console, self._rng, round_.mine)
        await self._pause(floor, 5.0, 15.0)
        await floor.ready()
        self.shuffler.repair(floor.pace.now())
        floor.stir("shuffler-1")

    # ---- the round

    async def _round(self, floor: Floor) -> Truth:
        """Play a round; its true outcome, void if the deal was wrong or the display did not follow."""
        if not floor.look().over:  # an outdated screen hid that the last round is still open
            await settle(floor, self.console, self._rng)
        round_ = _Round()
        locks = len(self.bets.locks)
        try:
            return await self._played(floor, round_)
        except GivenUpError:
            floor.press(self.console, "void", MISTAKE)
            await settle(floor, self.console, self._rng, round_.mine)
            decided = bool(round_.hands) and {*round_.raised, *round_.folded} == set(round_.antes)
            return Truth(self._outcome(round_) or {} if decided else {}, void=True)
        finally:
            if round_.mine and len(self.bets.locks) > locks:
                shapes = {seat: compared(round_.hands[f"seat_{seat}"])[0] for seat in round_.raised}
                hands = {seat: WINNING[shape] for seat, shape in shapes.items() if shape in WINNING}
                self.laid[round_.mine] = Laid(self.bets.locks[-1], hands, round_.misread)

    async def _played(self, floor: Floor, round_: _Round) -> Truth:
        """Raises GivenUpError."""
        await self._betting(floor, round_)
        self.mishaps[round_.mishap] += 1
        valid = await self._deal(floor, round_)
        if not valid or _over(floor.look(), round_):
            await settle(floor, self.console, self._rng, round_.mine)
            # The display shows it as void without a cause at the table: it should have been played.
            cut_short = valid and round_.mine in floor.look().ended
            return Truth({"cut_short": True}) if cut_short else Truth({}, void=True)
        await self._decisions(floor, round_)
        outcome = self._outcome(round_)
        if outcome is None:  # one card in two hands: a deck that should not have been dealt
            floor.press(self.console, "void", MISTAKE)
            await settle(floor, self.console, self._rng, round_.mine)
            return Truth({}, void=True)
        await self._showdown(floor, round_)
        counts = await settle(floor, self.console, self._rng, round_.mine)
        if counts:
            await self._jackpots(floor, round_)
            if await self._after(floor, round_, outcome):
                return Truth({}, void=True)
        return Truth(outcome, void=not counts)

    async def _after(self, floor: Floor, round_: _Round, outcome: Mapping[str, Any]) -> bool:
        """The payment key, and a supervisor's later correction; whether the round was declared void."""
        acts: Sequence[Act] = ("pay",)
        bets = self.bets.locks[-1] if self.bets.locks else frozenset()
        if self.second_looks and bets & {*round_.raised} and "hands" in outcome and len(outcome["hands"]) > 1:
            [acts] = self._supervisor.choices(list(SECOND_LOOKS), list(SECOND_LOOKS.values()))
            if acts == ("pay",) and self._supervisor.random() < self.forgets_to_pay:
                acts = ()
            if not acts:
                self.supervised["the payment key forgotten"] += 1
        name, wrong = self._other_hand(round_, sorted(bets & {*round_.raised})) if "misread" in acts else ("", ())
        for act in acts:
            if act in ACTED_ON:
                self.supervised[ACTED_ON[act]] += 1
            match act:
                case "pay":
                    floor.press(self.console, "paid")
                    if len(acts) > 1:
                        await self._pause(floor, 1.0, 3.0)
                case "void":
                    await self._until(floor, lambda: self._void(floor, round_), lambda look: _is_void(look, round_))
                case _:
                    cards = wrong if act == "misread" else round_.hands[name]
                    if act == "misread":
                        hands = {**round_.hands, name: cards}
                        shapes = {seat: compared(hands[f"seat_{seat}"])[0] for seat in round_.raised}
                        told = {seat: WINNING[shape] for seat, shape in shapes.items() if shape in WINNING}
                        round_.misread = (*round_.misread, told)
                    tell = partial(self._tell, floor, round_, {name: cards})
                    await self._until(floor, tell, partial(_shows_hand, round_=round_, name=name, cards=cards))
        return "void" in acts

    def _other_hand(self, round_: _Round, seats: Sequence[int]) -> tuple[str, tuple[str, ...]]:
        """A seat, and five cards that nobody has: often a flush, whose prize differs from that of the true hand."""
        rng = self._supervisor
        lying = {card for cards in round_.hands.values() for card in cards}
        free = [rank + suit for rank in RANKS for suit in SUITS if rank + suit not in lying]
        suit = rng.choice(SUITS)
        same = [card for card in free if card[1] == suit]
        flush = len(same) >= FIVE and rng.random() < 0.5
        return f"seat_{rng.choice(seats)}", tuple(rng.sample(same if flush else free, FIVE))

    def _void(self, floor: Floor, round_: _Round) -> None:
        """A supervisor declares the named round void with his key."""
        now = floor.pace.now()
        self.console.supervisor_key(on=True, now=now)
        self.console.press("void", now, SUPERVISORS_DECISION, round_.mine)
        self.console.supervisor_key(on=False, now=now)

    async def _betting(self, floor: Floor, round_: _Round) -> None:
        """Art. 6(2), (3). A player with a jackpot bet from a void round stays and lays an ante again."""
        rng = self._rng
        [number] = rng.choices(SEATS, PLAYERS)
        seats = sorted({*rng.sample(SEATS, number), *self._carried})
        chances = self.chances()
        [mishap] = rng.choices(("", *chances), (1000 - sum(chances.values()), *chances.values()))
        if (mishap == "no_bet" and len(seats) == len(SEATS)) or (mishap == "wrong_key" and len(seats) == 1):
            mishap = ""  # not with a full table, nor if the wrong decision would end the round
        round_.antes, round_.mishap = {seat: rng.choice(ANTES) for seat in seats}, mishap
        await self._until(
            floor,
            lambda: self.console.press("bets_opened", floor.pace.now()),
            lambda look: look.phase == "betting" and look.mine != "",
        )
        round_.mine = floor.look().round
        for seat in seats:
            await self._act(floor, round_, seat, "ante", round_.antes[seat], "antes")
            if seat in self._carried or rng.random() < 0.5:
                self.bets.place(seat, floor.pace.now())
                floor.stir("bets-1")
            await self._pause(floor, 0.5, 2.0)
        self._carried = frozenset()
        await self._pause(floor, 4.0, 8.0)
        await self._deck(floor)  # the lid may have been opened meanwhile
        if self.locks_first:
            await self._lock(floor)
        await self._until(
            floor,
            lambda: self.console.press("bell", floor.pace.now()),
            lambda look: look.phase != "betting" and look.round == round_.mine,
        )
        if not self.locks_first:
            await self._lock(floor)

    async def _lock(self, floor: Floor) -> None:
        """Lock the jackpot bets."""
        if await floor.tell("bets-1", "lock-bets", {}) != "done":
            self.bets.lock(floor.pace.now())
            floor.stir("bets-1")
        await self._pause(floor, 1.0, 2.0)

    async def _act(self, floor: Floor, round_: _Round, seat: int, action: str, amount: int, shown: str) -> None:
        """Enter a seat's action until the display has it in its list `shown`, or the round is over."""
        await self._until(
            floor,
            lambda: self.console.act(seat, action, floor.pace.now(), amount=amount),
            lambda look: _over(look, round_) or (look.round == round_.mine and seat in look.detail.get(shown, ())),
        )

    async def _deal(self, floor: Floor, round_: _Round) -> bool:
        """Deal by art. 7(2), with the mishaps of art. 11; whether the round is valid."""
        rng = self._rng
        names = [f"seat_{seat}" for seat in round_.antes]
        unbid = [seat for seat in SEATS if seat not in round_.antes]
        dead = f"seat_{rng.choice(unbid)}" if round_.mishap == "no_bet" else ""
        order = [*sorted({*names, dead} - {""}), DEALER]
        trouble = rng.randrange(len(order))
        if not await self._burn(floor, round_):
            return False
        for place, name in enumerate(order):
            if place == trouble and round_.mishap in IN_THE_SHUFFLER:
                self.shuffler.inject(IN_THE_SHUFFLER[round_.mishap], floor.pace.now())
            cards = await self._packet(floor)
            round_.hands[name] = cards
            if len(cards) != FIVE:  # 11(1), 11(4): the other players see it, too
                await self._mend(floor, round_)
                return False
            if place == trouble and round_.mishap == "wrong_order":  # 11(1)
                floor.press(self.console, "void", MISTAKE)
                return False
            if round_.mishap == "seen_dealing" and place == min(trouble, len(order) - 2):
                await self._seen(floor, round_, name, cards[0])
                return False
            if _over(floor.look(), round_):  # 11(4), if the machine may deal no more
                return self.shuffler.ready(floor.pace.now(), FIVE)
        await self._shuffle(floor)
        if dead:  # 11(3)
            await self._pause(floor, 2.0, 4.0)
            await self._until(
                floor,
                lambda: self._tell(floor, round_, {dead: ()}),
                lambda look: _over(look, round_) or (look.round == round_.mine and look.phase != "suspended"),
            )
            del round_.hands[dead]
            if _over(floor.look(), round_):
                return False
        return await self._turn_up(floor, round_)

    async def _burn(self, floor: Floor, round_: _Round) -> bool:  # noqa: ARG002 - as every table
        """Burn a card before the deal, if the article requires it; whether it came."""
        return True

    async def _seen(self, floor: Floor, round_: _Round, name: str, card: str) -> None:
        """Enter an exposed card until the display has it, or the round is over."""
        await self._until(
            floor,
            lambda: self._expose(floor, name, card),
            lambda look: _over(look, round_) or any(one["card"] == card for one in look.detail.get("exposed", ())),
        )
        await self._pause(floor, 1.0, 2.0)

    async def _turn_up(self, floor: Floor, round_: _Round) -> bool:
        """Open the dealer's last card, unless another of his was exposed (11(2)); two exposed cards void the round
        (11(1)).
        """
        rng, hands = self._rng, round_.hands
        number = {"one_seen": 1, "two_seen": 2}.get(round_.mishap, 0)
        lying = [(name, card) for name, cards in hands.items() for card in cards]
        seen = rng.sample(lying, number)
        for name, card in seen:
            await self._seen(floor, round_, name, card)
        if len(seen) > 1:
            return False
        if all(name != DEALER for name, _ in seen):
            await self._open(floor, round_)
        return True

    async def _open(self, floor: Floor, round_: _Round) -> None:
        """Open the dealer's last card."""
        last = round_.hands[DEALER][-1]
        await self._until(
            floor,
            lambda: self._tell(floor, round_, {DEALER: (last,)}),
            lambda look: _over(look, round_) or last in look.detail.get("open", ()),
        )

    def _expose(self, floor: Floor, name: str, card: str) -> None:
        self.console.expose_card(name, card, floor.pace.now())

    def _tell(self, floor: Floor, round_: _Round, hands: Mapping[str, Sequence[str]]) -> None:
        """The supervisor enters hands with his key, and names the round."""
        now = floor.pace.now()
        self.console.supervisor_key(on=True, now=now)
        self.console.correct(hands, now, named=round_.mine)
        self.console.supervisor_key(on=False, now=now)

    async def _decisions(self, floor: Floor, round_: _Round) -> None:
        """Art. 6(5) to (7), from the dealer's left. A wrong key is noticed at once and corrected."""
        for place, seat in enumerate(round_.antes):
            await self._pause(floor, 2.0, 5.0)
            if round_.mishap == "shows" and place == len(round_.antes) // 2:
                await self._show(floor, round_, seat)
                continue
            raises = self._raises(round_.hands[f"seat_{seat}"])
            if raises:
                round_.raised += (seat,)
            else:
                round_.folded += (seat,)
            if round_.mishap == "wrong_key" and place == 0:
                await floor.ready()
                self.console.act(seat, "fold" if raises else "raise", floor.pace.now())
                floor.stir("console-1")
                await self._pause(floor, 1.0, 2.0)
                if raises and self.fold_is_final:  # a supervisor reverses it, by the key
                    self.console.supervisor_key(on=True, now=floor.pace.now())
                    await self._decide(floor, round_, seat, raises=True)
                    self.console.supervisor_key(on=False, now=floor.pace.now())
                    floor.stir("console-1")
                    continue
            await self._decide(floor, round_, seat, raises=raises)

    async def _show(self, floor: Floor, round_: _Round, seat: int) -> None:
        """A player shows a card instead of deciding: the hand is lost."""
        round_.folded += (seat,)
        round_.shown = seat
        name = f"seat_{seat}"
        await self._until(
            floor,
            lambda: self._expose(floor, name, round_.hands[name][0]),
            lambda look: _over(look, round_) or (look.round == round_.mine and seat in look.detail.get("folded", ())),
        )

    async def _decide(self, floor: Floor, round_: _Round, seat: int, *, raises: bool) -> None:
        if raises:
            await self._act(floor, round_, seat, "raise", 2 * round_.antes[seat], "raised")
        else:
            await self._act(floor, round_, seat, "fold", 0, "folded")

    def _raises(self, cards: Sequence[str]) -> bool:
        """Whether the player raises: with a pair or with ace and king, and sometimes with less."""
        return opens(cards) or self._rng.random() < 0.2

    # ---- the showdown

    def _opened(self, round_: _Round) -> Hands:
        """The hands that the dealer opens, with his own; none if no player raised."""
        if not round_.raised:
            return {}
        names = [DEALER]
        if opens(round_.hands[DEALER]):
            names += [f"seat_{seat}" for seat in round_.raised]
        return {name: round_.hands[name] for name in names}

    def _outcome(self, round_: _Round) -> dict[str, Any] | None:
        """The outcome by art. 9; None if a card lies in two of the opened hands."""
        opened = self._opened(round_)
        cards = [card for hand in opened.values() for card in hand]
        if len(set(cards)) < len(cards):
            return None
        dealer = round_.hands[DEALER]
        open_ = bool(round_.raised) and opens(dealer)
        fates = {f"seat_{seat}": "forfeited" if seat == round_.shown else "folded" for seat in round_.folded}
        for seat in round_.raised:
            name = f"seat_{seat}"
            mine, his = self.compared(round_.hands[name]), self.compared(dealer)
            fate = "wins" if mine > his else "ties" if mine == his else "loses"
            fates[name] = fate if open_ else "not_opened"
        outcome: dict[str, Any] = {"opens": open_, "seats": fates}
        # A hand that wins the jackpot is shown if the sensors detected its bet, even if the dealer's hand is not.
        if open_ or not any(compared(round_.hands[f"seat_{seat}"])[0] >= FLUSH for seat in round_.raised):
            outcome["hands"] = {name: list(hand) for name, hand in opened.items()}
        return outcome

    async def _showdown(self, floor: Floor, round_: _Round) -> None:
        """Art. 6(8): enter hands until the display needs no more."""
        for _ in range(TRIES):
            await floor.ready()
            if _over(floor.look(), round_):
                return
            look = floor.look()
            if look.round != round_.mine:  # an old screen
                await self._pause(floor, 2.0, 3.0)
                continue
            untold = [seat for seat in round_.raised if seat not in look.detail.get("raised", ())]
            untold += [seat for seat in round_.folded if seat not in look.detail.get("folded", ())]
            if untold:
                for seat in untold:
                    await self._decide(floor, round_, seat, raises=seat in round_.raised)
            elif look.phase == "suspended":
                self._tell(floor, round_, self._opened(round_) or {DEALER: round_.hands[DEALER]})
            elif missing := look.detail.get("missing"):
                asked = [DEALER] if DEALER in missing else missing
                self._tell(floor, round_, {name: round_.hands[name] for name in asked})
            floor.stir("console-1")
            await self._pause(floor, 2.0, 3.0)

    async def _jackpots(self, floor: Floor, round_: _Round) -> None:
        """Art. 10, at the panel: the highest hand is the first level; the supervisor pays."""
        for seat in round_.raised:
            shape = compared(round_.hands[f"seat_{seat}"])[0]
            if shape < FLUSH or not self.bets.win(seat, ROYAL_FLUSH - shape + 1, floor.pace.now()):
                continue
            await self._pause(floor, 2.0, 4.0)
            now = floor.pace.now()
            self.bets.supervisor_key(on=True, now=now)
            self.bets.pay(now)
            self.bets.supervisor_key(on=False, now=now)
            floor.stir("bets-1")

    async def _clear(self, floor: Floor, *, void: bool) -> None:
        """Chips and cards are taken away; the jackpot bets of a void round (11(1), 11(4)) are laid again."""
        await self._pause(floor, 3.0, 5.0)
        await floor.ready()
        self._carried = self.bets.latched if void and self.carries else frozenset()
        self.bets.remove_all(floor.pace.now())
        floor.stir("bets-1")
        await self._pause(floor, 1.0, 2.0)
        if await floor.tell("bets-1", "clear-bets", {}) != "done":
            self.bets.clear(floor.pace.now())
            floor.stir("bets-1")
        self.shuffler.take(floor.pace.now())
        self.shuffler.collect(floor.pace.now())
        floor.stir("shuffler-1")
        await self._pause(floor, 4.0, 6.0)
        self.bets.remove_all(floor.pace.now())  # clear the rest of the layout
        floor.stir("bets-1")


class AngolaStudPokerTable(StudPokerTable):
    """The same by article 9 of Angola: a card is burnt, an error of the deal voids the round, a player who shows cards
    loses.
    """

    ruleset: ClassVar[str] = "angola.stud-poker"
    carries: ClassVar[bool] = False
    locks_first: ClassVar[bool] = True
    fold_is_final: ClassVar[bool] = True

    def chances(self) -> Mapping[Mishap, int]:
        """Mishaps, and in how many of a thousand rounds each happens."""
        return MISHAPS_IN_ANGOLA

    def compared(self, cards: Sequence[str]) -> tuple[int, tuple[int, ...], int]:
        """9(7), 9(9)."""
        return compared_in_angola(cards)

    async def _burn(self, floor: Floor, round_: _Round) -> bool:
        """9(19), 9(23): the machine gives out one card."""
        if await self._packet(floor, 1):
            return True
        await self._mend(floor, round_)
        return False

    async def _turn_up(self, floor: Floor, round_: _Round) -> bool:
        """9(22), 9(30): open the bank's last card, unless another of its cards was exposed before."""
        if round_.mishap == "bank_seen":
            await self._seen(floor, round_, DEALER, self._rng.choice(round_.hands[DEALER][:-1]))
        else:
            await self._open(floor, round_)
        return True


class SignedStudPokerTable(StudPokerTable):
    """The same with a sign for its jackpot, and with other players than the table without a sign."""

    def __init__(self, seed: int) -> None:
        """With another seed than the table without a sign, so that its devices behave differently, too."""
        super().__init__(seed + APART)
        self.devices["sign-1"] = Sign(random.Random(f"stud poker sign {seed}"))


class SignedAngolaStudPokerTable(AngolaStudPokerTable):
    """The same in Angola."""

    def __init__(self, seed: int) -> None:
        """With another seed than the table without a sign, so that its devices behave differently, too."""
        super().__init__(seed + APART)
        self.devices["sign-1"] = Sign(random.Random(f"stud poker sign {seed}"))


def _over(look: Look, round_: _Round) -> bool:
    """Whether the round has ended, or another one is open. An older round on the screen is outdated and does not
    count.
    """
    if look.round == round_.mine:
        return look.over
    return round_.mine in look.ended or (not look.over and look.mine != "")


def _is_void(look: Look, round_: _Round) -> bool:
    return look.ended.get(round_.mine) is False


def _shows_hand(look: Look, *, round_: _Round, name: str, cards: Sequence[str]) -> bool:
    """Whether the last result is that of this round, and has the hand."""
    last = look.last if look.last is not None and look.last.round == round_.mine else None
    return last is not None and (last.void is not None or list(last.outcome.get("hands", {}).get(name, ())) == [*cards])
