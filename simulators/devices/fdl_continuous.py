"""A simulated continuous shuffler-shoe that speaks FDL: it mixes all the time, deals, and takes the cards back.

The dealer is the caller: `draw` takes a card, `return_cards` puts back what lies on the table. `drawn` are the cards
dealt since the last loading, `strays` those that left besides; the wire may differ from both.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from protocols.fdl import continuous as fdl_continuous, frame as fdl
from protocols.fdl.cards import CARDS, PLACES_OF_CARDS
from protocols.fdl.shuffler import SHOE
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, FOREVER, WARNING
from simulators.devices.fdl_shuffler import BACKING_OUT, CardMachine, tally

DOOR: Final = 0x06
JAM_INFEED, JAM_CAROUSEL, JAM_SHOE, DAMAGED, DOUBLE, UNREADABLE, LOW, FULL = range(0x40, 0x48)
BALANCE, LOADING, MOTOR, READER, SENSOR, INTERRUPTED, BACK, DECK = range(0x48, 0x50)

READING: Final = 0.08  # seconds from the card's first edge to its event
BY_HAND: Final = 0.5
PACKET: Final = 0.2
TAKING_IN: Final = 2.0
GIVING_OUT: Final = 60.0


class ContinuousShuffler(CardMachine):
    """The device, loaded. `reads`: it has a reader; `masked`: it is set to a game whose cards are dealt face down."""

    name: ClassVar[str] = "fdl_continuous"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        # At a table with a bell no card is out when a coup begins, and none is dealt before the bell.
        "power_loss": replace(COMMON_FAULTS["power_loss"], round="counts"),
        "memory_loss": replace(COMMON_FAULTS["memory_loss"], round="counts"),
        "counters_reset": replace(FIRMWARE["counters_reset"], round="counts"),
        "unreadable_card": Ailment(
            "the next card cannot be read", ("card.unreadable", "continuous.unreadable"), "suspended"
        ),
        "double_card": Ailment(
            "a second card slides out with the next one", ("card.unreadable", "continuous.double"), "suspended"
        ),
        "missing_card": Ailment(
            "the sensor misses the next card; the machine counts one less in its shoe when the one after is drawn",
            ("card.unreadable", "continuous.sensor"),
            "suspended",
        ),
        "damaged_card": Ailment(
            "the next card is bent", ("card.damaged", "continuous.damaged", "lamps.lit"), "counts", person=True
        ),
        "jam_shoe": Ailment(
            "the next card sticks and is pulled out by hand, unread, as all after it",
            ("card.jammed", "card.unreadable", "continuous.jam_shoe", "lamps.lit"),
            "suspended",
            person=True,
        ),
        "jam_retried": Ailment(
            "the next card sticks; the machine backs it out and deals it",
            ("card.jammed", "jam.cleared", "continuous.jam_shoe", "lamps.lit"),
            "counts",
        ),
        "jam_infeed": Ailment(
            "the next stack sticks in the infeed",
            ("card.jammed", "continuous.jam_infeed", "lamps.lit"),
            "counts",
            person=True,
        ),
        "jam_carousel": Ailment(
            "the next stack sticks in the carousel",
            ("card.jammed", "continuous.jam_carousel", "lamps.lit"),
            "counts",
            person=True,
        ),
        "extra_card": Ailment(
            "a foreign card goes in with the next stack",
            ("deck.miscounted", "continuous.balance"),
            "counts",
            person=True,
        ),
        "lost_card": Ailment(
            "a card of the next stack stays elsewhere", ("deck.miscounted", "continuous.balance"), "counts", person=True
        ),
        "wrong_back": Ailment(
            "a card of the next stack has another back", ("continuous.wrong_back",), "counts", person=True
        ),
        "full": Ailment("the next stack is taken in only with the one after it", ("continuous.full",), "counts"),
        "low": Ailment("fewer cards inside than must be", ("continuous.low", "lamps.lit"), "counts"),
        "one_packet": Ailment("loaded in one packet", ("continuous.loading",), "counts", person=True),
        "motor_fault": Ailment("the carousel stands still", ("continuous.motor",), "counts", person=True),
        "reader_dead": Ailment(
            "no card is read any more", ("card.unreadable", "continuous.reader"), "suspended", person=True
        ),
        "sensor_stuck": Ailment(
            "the sensor of the shoe is stuck: cards leave unread",
            ("card.unreadable", "continuous.sensor"),
            "suspended",
            person=True,
        ),
        "power_loss_drawing": Ailment(
            "no power for 1.5 s while the next card slides out",
            ("device.online", "continuous.interrupted", "card.unreadable"),
            "suspended",
        ),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (*(("draw", 1.2),) * 5, ("return_cards", 8.0))
    kind: ClassVar[int] = fdl.CONTINUOUS_SHUFFLER
    model: ClassVar[str] = "Continuous"
    stops: ClassVar[set[int]] = {JAM_INFEED, JAM_CAROUSEL, JAM_SHOE, MOTOR, LOADING}

    def __init__(
        self,
        rng: random.Random,
        serial: str = "SIM-CONTINUOUS-1",
        decks: int = 8,
        *,
        reads: bool = True,
        masked: bool = False,
    ) -> None:
        super().__init__(rng, serial)
        self._decks = decks
        self._reads = reads
        self._masked = masked
        self._free_at = 0.0
        self._untold = 0
        self._inside: list[str] = []
        self._out: list[str] = []
        self._stuck: list[str] = []
        self._lost: list[str] = []
        self._foreign: list[str] = []
        self._loaded = self._count = 0
        self._going_in = 0
        self._unseen = 0
        self._between = False
        self._emptying = False
        self.drawn: list[str] = []
        self.strays: list[str] = []
        self._fill()
        self._show(0.0)

    # ---- hands

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What the dealer does."""
        return {"draw": self.draw, "return_cards": self.return_cards, "load": self.shuffle}

    @property
    def left(self) -> int:
        """How many cards are inside."""
        return len(self._inside)

    @property
    def on_table(self) -> int:
        """How many cards lie outside."""
        return len(self._out)

    def shuffle(self, now: float) -> None:
        """The day begins: whole decks go in, one packet each and two at least."""
        self._live(now)
        self._fill()
        packets = max(self._decks, 2)
        for n in range(packets):
            # The packets add up to all cards, whatever their number.
            cards = self._loaded * (n + 1) // packets - self._loaded * n // packets
            self._say(fdl_continuous.Loaded(n + 1, cards), now, PACKET)
        self._say(fdl_continuous.Ready(self._decks, self._loaded), now, PACKET)
        self._plan(self._free_at, self._show)

    def draw(self, now: float) -> str:
        """Take the next card out of the shoe. Raises ValueError where none is inside."""
        self._live(now)
        if not self._inside:
            raise ValueError("the shuffler is empty")
        card = self._leave()
        self.drawn.append(card)
        if not self._boots(now):
            self._unseen += 1
            return card
        self._notice(now)
        fault = self._occasion(
            "unreadable_card", "double_card", "missing_card", "damaged_card", "jam_shoe", "jam_retried",
            "power_loss_drawing",
        )  # fmt: skip
        match fault:
            case "unreadable_card":
                self._tell(fdl_continuous.UNREADABLE, now)
                self._fail(UNREADABLE, WARNING, now)
            case "double_card" if self._inside:
                stray = self._leave()
                self.strays.append(stray)
                self._tell(fdl_continuous.TWO_OR_MORE, now)
                self._fail(DOUBLE, WARNING, now)
            case "missing_card":
                self._unseen += 1
            case "damaged_card":
                self._tell(self._value(card), now)
                self._say(fdl_continuous.Damaged(PLACES_OF_CARDS[card]), now, READING)
                self._fail(DAMAGED, WARNING, now, person=True)
            case "jam_shoe":
                self._jam(SHOE, JAM_SHOE, now)
                self._tell(fdl_continuous.UNREADABLE, now, BY_HAND)
            case "jam_retried":
                self._jam(SHOE, JAM_SHOE, now, person=False)
                self._free_at = max(self._free_at, now + BACKING_OUT)
                self._tell(self._value(card), now)
            case "power_loss_drawing":
                self._unseen += 1
                self._between = True
                self.power_cycle(now, lose_memory=False)
            case _:
                self._tell(self._value(card), now)
        return card

    def return_cards(self, now: float) -> int:
        """The round is over: what lies on the table goes back; how many went in."""
        self._live(now)
        stack = self._out
        if not stack:
            return 0
        fault = self._occasion("jam_infeed", "jam_carousel", "extra_card", "lost_card", "wrong_back", "full")
        if fault == "full" or self._boots_at is not None:
            self._fail(FULL, WARNING, now)
            return 0
        self._notice(now)
        match fault:
            case "jam_infeed":
                self._jam(1, JAM_INFEED, now)
            case "jam_carousel":
                self._jam(2, JAM_CAROUSEL, now)
            case "extra_card":
                self._foreign.append(self._rng.choice(CARDS))
                stack = [*stack, self._foreign[-1]]
            case "lost_card":
                self._lost.append(stack[0])
                stack = stack[1:]
            case "wrong_back":
                self._fail(BACK, ERROR, now, person=True)
            case _:
                pass
        self._out = []
        if self._stopped():  # the cards stick, or lie before a machine that is stopped
            self._stuck += stack
            return 0
        self._take_in(stack, now)
        return len(stack)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault, or await its occasion. Raises ValueError for one it does not have."""
        match fault:
            case "low":
                self._fail(LOW, WARNING, now)
            case "one_packet":
                self._fail(LOADING, ERROR, now, person=True)
            case "motor_fault":
                self._fail(MOTOR, ERROR, now, person=True)
            case "reader_dead":
                self._fail(READER, ERROR, now, person=True)
            case "sensor_stuck":
                self._fail(SENSOR, ERROR, now, person=True)
            case _ if fault in self.faults and fault not in COMMON_FAULTS and fault not in FIRMWARE:
                self._awaited.append(fault)
            case _:
                super().inject(fault, now)

    def repair(self, now: float) -> None:
        """A person frees the cards that stick, and corrects a surplus or missing card."""
        self._live(now)
        self._awaited.clear()
        if self._boots(now):
            for card in self._foreign:
                for place in (self._inside, self._stuck, self._out):
                    if card in place:
                        place.remove(card)
                        break
            self._inside += self._lost
            self._foreign, self._lost = [], []
            self._count = len(self._inside) - self._going_in
        stuck, self._stuck = self._stuck, []
        super().repair(now)
        if stuck:
            self._take_in(stuck, now)

    # ---- the host

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        """A command of the host."""
        if code != fdl_continuous.EMPTY or data:
            return super().do(code, data, now)
        if DOOR in self._standing:
            return fdl.REFUSED, 0x05, b""
        if self._stopped():
            return fdl.REFUSED, 0x02, b""
        if self._emptying:
            return fdl.REFUSED, 0x01, b""
        if self._out:
            return fdl.REFUSED, fdl_continuous.CARDS_OUTSIDE, b""
        if not self._inside:
            return fdl.REFUSED, fdl_continuous.NOTHING_INSIDE, b""
        self._emptying = True
        self._plan(now + GIVING_OUT, self._emptied)
        self._show(now)
        return fdl.DONE, 0, b""

    # ---- inside

    def _fill(self) -> None:
        self._inside = list(CARDS) * self._decks
        self._loaded = self._count = len(self._inside)
        self._going_in = 0
        self._out, self._stuck, self._lost, self._foreign = [], [], [], []
        self._unseen = 0
        self._between = self._emptying = False
        self.drawn, self.strays = [], []

    def _leave(self) -> str:
        card = self._inside.pop(self._rng.randrange(len(self._inside)))
        self._out.append(card)
        return card

    def _value(self, card: str) -> int:
        """The card's value as far as the machine may and can report it."""
        if self._masked or not self._reads:
            return fdl_continuous.NOT_TOLD
        blind = SHOE in self._jams or not {READER, SENSOR}.isdisjoint(self._standing)
        return fdl_continuous.UNREADABLE if blind else PLACES_OF_CARDS[card]

    def _tell(self, card: int, now: float, after: float = READING) -> None:
        self._untold += 1
        self._free_at = max(self._free_at, now) + after
        self._plan(self._free_at, lambda at: self._left_the_shoe(card, at))

    def _left_the_shoe(self, card: int, now: float) -> None:
        self._untold -= 1
        self._count -= 2 if card == fdl_continuous.TWO_OR_MORE else 1
        self.record(fdl_continuous.Drawn(card), now)

    def _say(self, happening: fdl.Happening, now: float, after: float) -> None:
        """Queue an event after those that wait."""
        self._free_at = max(self._free_at, now) + after
        self._plan(self._free_at, lambda at: self.record(happening, at))

    def _notice(self, now: float) -> None:
        """The number of cards in its shoe shows that some left unseen."""
        unseen, self._unseen = self._unseen, 0
        for _ in range(unseen):
            self._fail(SENSOR, WARNING, now)
            self._tell(fdl_continuous.UNREADABLE, now)

    def _take_in(self, stack: list[str], now: float) -> None:
        self._inside += stack
        self._going_in += len(stack)
        self._free_at = max(self._free_at, now) + TAKING_IN
        self._plan(self._free_at, lambda at: self._went_in(len(stack), at))

    def _went_in(self, cards: int, now: float) -> None:
        self._count += cards
        self._going_in -= cards
        self.record(fdl_continuous.Returned(cards, self._loaded, self._count), now)
        if self._count != self._loaded:
            self._fail(BALANCE, ERROR, now, person=True)

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """A card that left and is not reported yet counts as unseen."""
        self._live(now)
        self._unseen += self._untold
        self._untold = 0
        self._going_in = 0
        super().power_cycle(now, lose_memory=lose_memory)

    def _emptied(self, now: float) -> None:
        self._emptying = False
        cards, self._inside = self._inside, []
        self._count = 0
        found = tally(cards) if self._reads else None
        self.record(fdl_continuous.Emptied(self._decks, len(cards), found), now)
        wrong = found is not None and sorted(cards) != sorted(CARDS * self._decks)
        if wrong or len(cards) != 52 * self._decks:
            self._fail(DECK, ERROR, now, person=True)
        self._show(now)

    def _started(self, now: float) -> None:
        """The number of cards in its shoe shows how many left while it was off."""
        self._emptying = False
        self._free_at = now
        between, self._between = self._between, False
        if between:
            self._fail(INTERRUPTED, WARNING, now)
        self._count = len(self._inside)
        unseen, self._unseen = self._unseen, 0
        for _ in range(unseen):
            self.record(fdl_continuous.Drawn(fdl_continuous.UNREADABLE), now)
        super()._started(now)

    def _lamps(self) -> int:
        ready = bool(self._inside) and not self._stopped() and not self._emptying
        jam = not {JAM_INFEED, JAM_CAROUSEL, JAM_SHOE}.isdisjoint(self._standing)
        fill = LOW in self._standing or FULL in self._standing
        service = any(until == FOREVER for until in self._standing.values())
        return ready | jam << 1 | (DAMAGED in self._standing) << 2 | fill << 3 | service << 4

    def _does(self) -> int:
        if self._stopped():
            return fdl_continuous.STOPPED
        if self._emptying:
            return fdl_continuous.EMPTYING
        return fdl_continuous.DEALING if self._inside else fdl_continuous.EMPTY_INSIDE

    def _signs(self, lamps: int, does: int) -> tuple[fdl.Happening, fdl.Happening]:
        return fdl_continuous.Lamps(lamps), fdl_continuous.Activity(does)

    def _sticks(self, where: int) -> fdl.Happening:
        return fdl_continuous.Jammed(where)

    def _free(self, where: int) -> fdl.Happening:
        return fdl_continuous.JamCleared(where)
