"""A table of chemin de fer of Angola: a reading shoe of six decks, a console, and terminals for the bets.

The dealer counts cards, bets and the bank from the text of the law; nothing here comes from the rules. Players bank,
pass, bid, make banco in all forms, bet too late and change their decisions; the banker makes mistakes.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct

from simulators.devices.bee_tek_shoe import Shoe
from simulators.devices.bet_terminals import BetTerminals
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.tables.players import Players
from simulators.tables.table import Floor, Look, ShoeTable, Truth, settle

__all__ = ["CheminTable"]

DECKS: Final = 6
LEAST: Final = 1_000
BET: Final = 100
PER_MILLE: Final = 50
CHIP: Final = 10
RICH: Final = 40_000
SEATS: Final = 9
BEHIND_WARNING: Final = 7
TRIES: Final = 60
MISTAKE: Final = 1  # the console's reason for a void: dealing error

Mishap: TypeAlias = Literal["", "false", "changed", "forgets", "turned", "two_thirds", "discards", "slow", "late"]
MISHAPS: Final[dict[Mishap, int]] = {
    "false": 40,
    "changed": 30,
    "forgets": 40,
    "turned": 30,
    "two_thirds": 20,
    "discards": 10,
    "slow": 30,
    "late": 30,
}
"""Mishaps, and in how many of a thousand coups each happens."""

# ---- the cards: 12(2), 12(9), 12(65), 12(68)

NOTHING: Final = -1
DRAWS: Final = {
    3: {0, 1, 2, 3, 4, 5, 6, 7, NOTHING},
    4: {2, 3, 4, 5, 6, 7, NOTHING},
    5: {5, 6, 7, NOTHING},
    6: {6, 7},
}
"""The banker's total against the punter's third card; with 3 against 9 and 5 against 4 he may choose."""
AS_HE_LIKES: Final = {(3, 9), (5, 4)}


def total(cards: Sequence[str]) -> int:
    """The points: ace 1, court cards and tens 0; the last digit of the sum."""
    return sum("A23456789".find(card[0]) + 1 for card in cards) % 10


def draws(banker: Sequence[str], third: str, likes: bool) -> bool:
    """Whether the banker draws against the punter's third card ("" for none)."""
    his, card = total(banker), total([third]) if third else NOTHING
    return his < 3 or card in DRAWS.get(his, ()) or ((his, card) in AS_HE_LIKES and likes)


def by_the_text(
    cards: Sequence[str],
    word: str,
    likes: bool | None,
    *,
    banco: bool = False,
    table: bool = False,
    given: bool = False,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both hands of a coup from its cards in order. Raises IndexError if a card is missing.

    `word`: the punter's decision; `given`: the banker's answer decides whether the punter has a third card. `likes`:
    the banker's decision, if he may choose; `table`: he may not.
    """
    mine, his, rest = [cards[0], cards[2]], [cards[1], cards[3]], list(cards[4:])
    if total(his) > 7 or (word == "show" and total(mine) > 7):
        return tuple(mine), tuple(his)
    asks = total(mine) < 5 or (total(mine) == 5 and word == "draw")
    if banco or given or total(mine) > 7:
        asks = word == "draw"
    third = rest.pop(0) if asks else ""
    if asks:
        mine.append(third)
    chooses = banco and total(his) > 0
    free = chooses or (total(his), total([third]) if third else NOTHING) in AS_HE_LIKES
    takes = draws(his, third, likes=True)
    if free and not table:
        if likes is None and not rest:
            raise IndexError("the banker has to choose")
        takes = likes is not False
    if takes:
        his.append(rest.pop(0))
    return tuple(mine), tuple(his)


def higher(mine: Sequence[str], his: Sequence[str], *, shown: bool) -> str:
    """Who wins; a 9 of two cards that was not shown loses to an 8 of two (12(106)(b))."""
    if len(mine) == len(his) == 2 and (total(mine), total(his)) == (9, 8) and not shown:
        return "banker"
    return "tie" if total(mine) == total(his) else "player" if total(mine) > total(his) else "banker"


# ---- the chips: 12(2), 12(31), 12(44), 12(48)


class Chips(Struct, frozen=True):
    """The chips on the table: the bank of banker and partner, and each seat's bets on "cover" and on the line.

    `back`: bets that gave way to banco.
    """

    banker: int
    partner: int
    bank: int
    bets: dict[tuple[int, str], int]
    back: dict[tuple[int, str], int] = {}

    def plays(self, where: tuple[int, str]) -> int:
        return self.bets[where] // 2 if where[1] == "half" else self.bets[where]

    def covered(self) -> int:
        return sum(self.plays(where) for where in self.bets)

    def two(self, amount: int) -> list[tuple[int, int]]:
        """`amount` divided between banker and partner; the odd unit is the banker's."""
        if not self.partner:
            return [(self.banker, amount)]
        return [(self.banker, amount - amount // 2), (self.partner, amount // 2)]


def kept_of(chips: Chips, winner: str, per_mille: int, chip: int) -> int:
    """The percentage that the house takes of the bank's win."""
    return chips.covered() * per_mille // 1000 // chip * chip if winner == "banker" else 0


def brings(chips: Chips, winner: str, per_mille: int, chip: int) -> tuple[tuple[int, int, str, int, int], ...]:
    """The settlements in order: seat, hand, bet, stake and amount returned."""
    sign = {"player": 1, "banker": -1, "tie": 0}[winner]
    lost = dict(chips.two(chips.covered()))
    found = [(seat, 0, "bank", part, part - sign * lost[seat]) for seat, part in chips.two(chips.bank)]
    found += [(*_at(where), laid, laid + sign * chips.plays(where)) for where, laid in chips.bets.items()]
    found += [(*_at(where), laid, laid) for where, laid in chips.back.items()]
    kept = kept_of(chips, winner, per_mille, chip)
    return tuple(sorted(found + [(seat, 0, "percentage", part, 0) for seat, part in chips.two(kept) if part]))


def _at(where: tuple[int, str]) -> tuple[int, int, str]:
    return where[0], 0, where[1]


class _GivenUpError(Exception):
    """The display never shows what lies on the table: the dealer gives the coup up."""


class _Coup(Struct):
    """A coup that is dealt: its round, who has the cards, and what goes wrong.

    `word`: the decision by which cards are drawn; `final`: the decision that counts, if it is another one.
    """

    mine: str
    chips: Chips
    punter: int
    banco: bool
    mishap: Mishap
    cards: list[str] = []
    word: str = ""
    final: str = ""
    given: bool = False
    likes: bool | None = None
    ended: tuple[str, tuple[str, ...], tuple[str, ...]] | None = None


class CheminTable(ShoeTable):
    """Five seated players; now and then another person stands behind one of them."""

    kind: ClassVar[str] = "chemin"
    ruleset: ClassVar[str] = "angola.chemin-de-fer"
    options: ClassVar[dict[str, Any]] = {
        "minimum_bank": LEAST,
        "minimum_bet": BET,
        "percentage": PER_MILLE,
        "smallest_chip": CHIP,
    }

    def __init__(self, seed: int) -> None:
        """Everything that chance decides comes from `seed`."""
        console = Console(random.Random(f"chemin console {seed}"), f"SIM-C{seed}", DECKS)
        shoe = Shoe(random.Random(f"chemin shoe {seed}"), DECKS, game_mode=bool(seed % 2))
        super().__init__(random.Random(f"chemin {seed}"), shoe, console)
        terminals = BetTerminals(random.Random(f"chemin terminals {seed}"), f"cf{seed}")
        self.players = Players(random.Random(f"chemin bettors {seed}"), terminals)
        self.devices: dict[str, Device] = {"shoe-1": shoe, "console-1": console, "terminals-1": terminals}
        self.mishaps: Counter[Mishap] = Counter()
        self._bank = 0
        """The bank by the dealer's count; 0 when a new hand begins or the bank is not certain."""
        self._banker = self._partner = 0
        self._takings = 0
        self._suivi = 0
        self._no_claim: set[int] = set()
        """Seats that may not make banco in the next coup: 12(58), 12(90)."""

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Shoe after shoe, coup after coup; the coup in which the warning card comes is the last."""
        for _ in range(rounds):
            await floor.ready()
            if self._cut_shown:
                await self._new_shoe(floor)
            self.truth.append(await self._round(floor))
            await self._pause(floor, 1.0, 2.0)

    async def _new_shoe(self, floor: Floor) -> None:
        """Art. 12(13)."""
        self._shuffle(floor, BEHIND_WARNING)
        await self._pause(floor, 2.0, 3.0)
        first = await self._draw(floor)
        for _ in range(0 if first[0] in "JQK" else ("A23456789T".index(first[0]))):
            await self._draw(floor)
        await self._pause(floor, 1.0, 2.0)

    # ---- what the display shows

    async def _until(self, floor: Floor, press: Callable[[], object], shown: Callable[[Look], bool]) -> None:
        """Press a key until the display shows its effect. Raises _GivenUpError if it never does."""
        for _ in range(TRIES):
            await floor.ready()
            press()
            floor.stir("console-1")
            for pause in (0.5, 0.5, 2.0, 2.0):
                await floor.pace.sleep(pause)
                if shown(floor.look()):
                    return
        raise _GivenUpError

    def _act(self, floor: Floor, seat: int, action: str, amount: int = 0) -> bool:
        return self.console.act(seat, action, floor.pace.now(), amount=amount)

    async def _pressed(self, floor: Floor, seat: int, action: str) -> None:
        """Press a key whose effect the display does not show, until the console accepts it."""
        for _ in range(TRIES):
            await floor.ready()
            if self._act(floor, seat, action):
                floor.stir("console-1")
                await self._pause(floor, 0.5, 1.0)
                return
            await self._pause(floor, 0.5, 1.0)
        raise _GivenUpError

    async def _does(
        self, floor: Floor, seat: int, action: str, shown: Callable[[dict[str, Any]], bool], amount: int = 0
    ) -> None:
        """Enter an action of the bank until the display shows it."""
        await self._until(floor, lambda: self._act(floor, seat, action, amount), lambda look: shown(look.detail))
        await self._pause(floor, 0.5, 1.0)

    # ---- before the coup

    async def _seat_players(self, floor: Floor) -> None:
        """Arts. 12(16), 12(21): players come until five sit; now and then one leaves, and another comes."""
        rng = self._rng
        sitting = {seat for seat in floor.look().detail.get("seated", ()) if seat <= SEATS}
        wanted = set(sitting)
        if len(wanted) >= 5 and rng.random() < 0.1:
            wanted.discard(rng.choice(sorted(wanted)))
        while len(wanted) < 5:
            wanted.add(rng.randint(1, SEATS))
        if not {self._banker, self._partner} <= wanted | {0}:
            self._bank = self._banker = 0  # banker or partner left: the display shows the new bank at the opening
        for seat in sorted(sitting ^ wanted):
            here = seat in wanted
            await self._until(
                floor,
                lambda: self.console.seat(seat, floor.pace.now(), on=here),  # noqa: B023 - called before the next one
                lambda look: (seat in look.detail.get("seated", ())) is here,  # noqa: B023
            )

    async def _decides(self, floor: Floor) -> None:
        """After a won or tied coup: garage, a smaller bank, or the hand is passed: 12(34), 12(47), 12(78)-(86)."""
        rng, detail = self._rng, floor.look().detail
        if self._banker != detail.get("banker") or not self._bank or self._bank != detail.get("bank"):
            return
        left = dict.fromkeys(("garage", "halve"), self._bank - self._bank // 2) | {"reduce": 2 * self._takings}
        may = [how for how in detail.get("may", ()) if left[how] >= LEAST]
        if may and rng.random() < 0.5:
            how = rng.choice(may)
            self._bank = left[how]
            await self._does(floor, self._banker, how, lambda detail: detail.get("bank") == self._bank)
        if self._bank > RICH or rng.random() < 0.12:
            await self._passes(floor)

    async def _passes(self, floor: Floor) -> None:
        passer, level = self._banker, self._bank
        await self._does(floor, passer, "pass", lambda detail: bool(detail.get("offer")))
        self._no_claim |= {passer}
        order = [seat for seat in floor.look().detail["seated"] if seat != passer and seat <= SEATS]
        order.sort(key=lambda seat: (seat - passer - 1) % SEATS)
        if level <= RICH and self._rng.random() < 0.5:
            taker = self._rng.choice(order)
            await self._does(floor, taker, "take", lambda detail: detail.get("banker") == taker)
            self._banker = taker
            return
        await self._does(floor, passer, "auction", lambda detail: bool(detail["offer"]["auction"]))
        bids = {}
        for seat in order[: self._rng.randint(0, 3)]:
            bids[seat] = LEAST + BET * self._rng.randint(0, 5)
            await self._does(
                floor,
                seat,
                "bid",
                lambda detail: f"seat_{seat}" in detail["offer"].get("bids", {}),  # noqa: B023
                bids[seat],
            )
        best = max(bids, key=lambda seat: (bids[seat], -order.index(seat)), default=order[0])
        await self._until(
            floor,
            lambda: self.console.pass_hand(best, floor.pace.now()),
            lambda look: look.detail.get("banker") == best,
        )
        self._banker, self._bank = best, bids.get(best, LEAST)

    # ---- a coup

    async def _round(self, floor: Floor) -> Truth:
        """Play a coup; its true outcome, void if the dealer gave it up."""
        if not floor.look().over:  # an outdated screen hid that the last round is still open
            await settle(floor, self.console, self._rng)
        self.players.begin()
        coup: _Coup | None = None
        try:
            await self._seat_players(floor)
            await self._decides(floor)
            coup = await self._open(floor)
            await self._dealt(floor, coup)
        except _GivenUpError:
            pass
        mine = coup.mine if coup is not None else ""
        whole = coup is not None and coup.ended is not None
        if not whole:
            floor.press(self.console, "void", MISTAKE)
        counts = await settle(floor, self.console, self._rng, mine)
        if coup is None or coup.ended is None or not counts:
            self._bank = self._banker = self._suivi = 0  # the display shows it at the next opening
            return Truth({}, void=True) if coup is None or coup.ended is None else self._truth(coup, void=True)
        floor.press(self.console, "paid")
        truth = self._truth(coup, void=False)
        winner, chips = coup.ended[0], coup.chips
        self._banker = chips.banker if winner != "player" else 0
        self._partner = chips.partner if winner != "player" else 0
        self._bank = chips.bank if winner != "player" else 0
        self._suivi = coup.punter if coup.banco and winner == "banker" else 0
        self._takings = chips.covered()
        if winner == "banker":
            self._bank += chips.covered() - kept_of(chips, winner, PER_MILLE, CHIP)
        return truth

    def _truth(self, coup: _Coup, *, void: bool) -> Truth:
        assert coup.ended is not None
        winner, mine, his = coup.ended
        told: dict[str, Any] = {"winner": winner, "banker": coup.chips.banker, "bank": coup.chips.bank}
        told |= {"covered": coup.chips.covered(), "punter": coup.punter}
        if mine:
            told["hands"] = {"player": list(mine), "banker": list(his)}
        return Truth(told, void=void, settled=brings(coup.chips, winner, PER_MILLE, CHIP))

    async def _open(self, floor: Floor) -> _Coup:
        """The bets are opened, the banker announces a new bank, and punters cover it."""
        rng = self._rng
        if not await self._press_until(floor, "bets_opened", ("betting",)):
            raise _GivenUpError
        mine = floor.claim()
        detail = floor.look().detail
        banker = detail["banker"]
        if not self._bank or banker != self._banker:
            if self._bank and self._banker:  # the hand was passed on unseen
                raise _GivenUpError
            self._banker, self._bank = banker, detail.get("bank", 0)
        if not self._bank:
            self._bank = LEAST + BET * rng.randint(0, 20)
            await self._does(floor, banker, "bank", lambda detail: detail.get("bank") == self._bank, self._bank)
        partner = detail.get("partner", 0)
        others = [seat for seat in detail["seated"] if seat <= SEATS and seat != banker]
        if not partner and not detail.get("won") and detail.get("bank", 0) == 0 and rng.random() < 0.1:
            partner = rng.choice(others)
            self._bank *= 2
            await self._does(floor, partner, "association", lambda detail: detail.get("partner") == partner)
        others = [seat for seat in others if seat != partner]
        claim = rng.choices(("", "banco", "banco_with_table"), (70, 20, 10))[0]
        able = [seat for seat in others if seat not in self._no_claim]
        punter = rng.choice(able) if claim and able else 0
        if self._suivi in others and rng.random() < 0.5:
            claim, punter = "banco_suivi", self._suivi
        claim = claim if punter else ""
        if claim:
            await self._does(floor, punter, claim, lambda detail: detail.get("punter") == punter)
        alone = claim in ("banco", "banco_suivi")
        bets = {(punter, "cover"): self._bank if alone else self._bank - self._bank // 2} if claim else {}
        if not alone:
            rest = [seat for seat in others if seat != punter]
            bets |= await self._covers(floor, mine, rest, self._bank - sum(bets.values()))
        self._no_claim = {punter} if claim == "banco_with_table" else set()
        if not bets:
            raise _GivenUpError
        chips = Chips(banker, partner, self._bank, bets)
        if not punter:
            laid = Counter[int]()
            for where in bets:
                laid[where[0]] += chips.plays(where)
            punter = min(laid, key=lambda seat: (seat > SEATS, -laid[seat], (seat % 10 - banker - 1) % SEATS, seat))
        if not await self._press_until(floor, "bell", ("closed", "dealing", "suspended")):
            raise _GivenUpError
        if not self._is(floor.look(), mine, "closed"):
            raise _GivenUpError
        [mishap] = rng.choices(("", *MISHAPS), (1000 - sum(MISHAPS.values()), *MISHAPS.values()))
        self.mishaps[mishap] += 1
        return _Coup(mine, chips, punter, alone, mishap)

    async def _covers(self, floor: Floor, mine: str, seats: Sequence[int], room: int) -> dict[tuple[int, str], int]:
        """Punters tap their bets, up to the rest of the bank; the bets are those that the terminals' answers
        confirm.
        """
        rng = self._rng
        crowd = [*seats, rng.choice(seats) + 10] if rng.random() < 0.3 else list(seats)
        for seat in rng.sample(crowd, rng.randint(1, len(crowd))):
            bet = rng.choice(("cover", "cover", "cover", "half"))
            amount = min(BET * rng.randint(1, 8), room // BET * BET)
            if amount:
                room -= amount
                self.players.place(floor, seat, bet, amount * (2 if bet == "half" else 1))
                await self._pause(floor, 0.5, 1.5)
        laid = await self.players.laid(floor, mine)
        if laid is None:
            raise _GivenUpError
        return dict(laid)

    def _is(self, look: Look, mine: str, *phases: str) -> bool:
        return look.round == mine and look.phase in phases

    # ---- cards and decisions

    async def _says(self, floor: Floor, coup: _Coup, side: str, word: str) -> None:
        """Enter a decision once it is due, until the display shows it. Raises _GivenUpError if the coup is
        suspended.
        """
        seat = coup.punter if side == "player" else coup.chips.banker

        def asked(look: Look) -> bool:
            due = look.detail.get("due") or {}
            return look.round == coup.mine and due.get("seat") == seat and word in due.get("actions", ())

        await self._shown(floor, coup, asked)
        await self._until(
            floor,
            lambda: self._act(floor, seat, word),
            lambda look: not asked(look) or look.phase == "suspended",
        )
        await self._pause(floor, 0.5, 1.0)

    async def _shown(self, floor: Floor, coup: _Coup, what: Callable[[Look], bool]) -> None:
        """Wait for the display; raises _GivenUpError if it does not follow."""
        for _ in range(20):
            look = floor.look()
            if what(look):
                return
            if look.phase == "suspended" or coup.mine in look.ended:
                break
            await floor.ready()
            await floor.pace.sleep(0.5)
        raise _GivenUpError

    async def _card(self, floor: Floor, coup: _Coup) -> None:
        if not self.shoe.left:
            raise _GivenUpError
        coup.cards.append(await self._draw(floor))

    async def _dealt(self, floor: Floor, coup: _Coup) -> None:
        """Arts. 12(63)-(72)."""
        rng, mishap = self._rng, coup.mishap
        if mishap == "late":
            self.players.place(floor, rng.randrange(1, SEATS + 1, 2), "cover", BET, late=coup.mine)
        for _ in range(4):
            await self._card(floor, coup)
        if mishap == "slow" and not coup.banco:
            await self._slow(floor, coup)
        if mishap == "turned":
            await self._pressed(floor, coup.chips.banker, "fault_105b")
        mine, his = coup.cards[0:4:2], coup.cards[1:4:2]
        if mishap == "discards":
            await self._discards(floor, coup)
            return
        coup.word = coup.final = self._word(coup, mine)
        if mishap == "changed" and coup.word != "show":
            await self._changes(floor, coup, mine, his)
        else:
            await self._says(floor, coup, "player", coup.word)
            await self._says(floor, coup, "banker", "show")
        if coup.word != "show" and total(his) < 8:
            if coup.word == "draw":
                await self._card(floor, coup)
            await self._banker_draws(floor, coup, his)
            if coup.ended is not None:
                return
        if coup.word != "show":
            await self._says(floor, coup, "player", "show")
        hands = await self._put_right(floor, coup)
        coup.ended = (higher(*hands, shown=coup.word == "show"), *hands)

    def _word(self, coup: _Coup, mine: Sequence[str]) -> str:
        """The punter's decision; now and then he plays wrongly, or forgets to show."""
        if coup.mishap == "forgets" and total(mine) > 7:
            return self._rng.choice(("stand", "draw"))
        if total(mine) > 7:
            return "show"
        right = "draw" if total(mine) < 5 else "stand"
        likes = total(mine) == 5 or (coup.banco and self._rng.random() < 0.2)
        if likes:
            return self._rng.choice(("draw", "stand"))
        return {"draw": "stand", "stand": "draw"}[right] if coup.mishap == "false" else right

    async def _changes(self, floor: Floor, coup: _Coup, mine: Sequence[str], his: Sequence[str]) -> None:
        """Art. 12(106)(c), (d): with 5 the punter's first decision counts, against a banker with 0 the last, otherwise
        the banker's answer.
        """
        first, last = coup.word, {"draw": "stand", "stand": "draw"}[coup.word]
        await self._says(floor, coup, "player", first)
        await self._until(
            floor,
            lambda: self._act(floor, coup.punter, last),
            lambda look: look.detail.get("said") == last or look.phase == "suspended",
        )
        await self._says(floor, coup, "banker", "show")
        gives = self._rng.choice(("give", "refuse"))
        await self._says(floor, coup, "banker", gives)
        coup.word = "draw" if gives == "give" else "stand"
        coup.given = total(mine) != 5 and total(his) > 0
        coup.final = coup.word if coup.given else first if total(mine) == 5 else last

    async def _banker_draws(self, floor: Floor, coup: _Coup, his: Sequence[str]) -> None:
        """Art. 12(68), by the visible cards; the banker may choose under banco, and in two cells of the table."""
        third, forced = coup.cards[4] if coup.word == "draw" else "", coup.mishap == "turned"
        free = (total(his), total([third]) if third else NOTHING) in AS_HE_LIKES or (coup.banco and total(his) > 0)
        takes = draws(his, third, likes=True)
        if free and not forced:
            takes = coup.likes = self._rng.random() < 0.5
            await self._says(floor, coup, "banker", "draw" if takes else "stand")
        if takes:
            await self._card(floor, coup)
            if coup.mishap == "two_thirds":
                await self._card(floor, coup)
                await self._two_thirds(floor, coup)

    async def _two_thirds(self, floor: Floor, coup: _Coup) -> None:
        """Art. 12(105)(e): the lowest total of three of the four; a supervisor enters the hands as they lie."""
        mine = (coup.cards[0], coup.cards[2], *([coup.cards[4]] if coup.word == "draw" else []))
        his = (coup.cards[1], coup.cards[3], *coup.cards[-2:])
        await self._pressed(floor, coup.chips.banker, "fault_105e")
        await self._until(
            floor,
            lambda: self._correct(floor, {"player": list(mine), "banker": list(his)}, coup.mine),
            lambda look: coup.mine in look.ended,
        )
        best, low = total(mine), min(total(three) for three in combinations(his, 3))
        coup.ended = ("tie" if best == low else "player" if best > low else "banker", mine, his)

    def _correct(self, floor: Floor, hands: dict[str, list[str]], mine: str) -> None:
        """The supervisor turns his key."""
        now = floor.pace.now()
        self.console.supervisor_key(on=True, now=now)
        self.console.correct(hands, now, named=mine)
        self.console.supervisor_key(on=False, now=now)

    async def _put_right(self, floor: Floor, coup: _Coup) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Art. 12(72): both hands, with the cards that the table of draws still gives."""
        table = coup.mishap == "turned"
        for _ in range(3):
            try:
                return by_the_text(coup.cards, coup.final, coup.likes, banco=coup.banco, table=table, given=coup.given)
            except IndexError:
                await self._shown(floor, coup, lambda look: (look.detail.get("due") or {}).get("kind") == "card")
                await self._card(floor, coup)
        raise _GivenUpError

    async def _slow(self, floor: Floor, coup: _Coup) -> None:
        """Art. 12(106)(e): the cards go to another bet."""
        others = [seat for seat, _ in coup.chips.bets if seat != coup.punter]
        if others:
            other = self._rng.choice(others)
            await self._until(
                floor,
                lambda: self._act(floor, other, "cards_to"),
                lambda look: look.detail.get("punter") == other or coup.mine in look.ended,
            )
            coup.punter = other

    async def _discards(self, floor: Floor, coup: _Coup) -> None:
        """Art. 12(76)."""
        side = self._rng.choice(("player", "banker"))
        seat = coup.punter if side == "player" else coup.chips.banker
        await self._until(floor, lambda: self._act(floor, seat, "discarded"), lambda look: coup.mine in look.ended)
        coup.ended = ("banker" if side == "player" else "player", (), ())
