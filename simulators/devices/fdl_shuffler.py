"""A simulated batch shuffler that speaks FDL: infeed, carousel, outfeed and tray; two decks in turn.

`CardMachine` is the common part with the continuous shuffler: delayed steps, lamps and jams.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar, Final, Literal, TypeAlias

from protocols.fdl import frame as fdl, shuffler as fdl_shuffler
from protocols.fdl.cards import CARDS, PLACES_OF_CARDS
from protocols.fdl.shuffler import Tally
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, FOREVER, WARNING, FdlDevice

__all__ = ["CardMachine", "Shuffler", "tally"]

DOOR: Final = 0x06
JAM_INFEED, JAM_CAROUSEL, JAM_OUTFEED, COUNT, COMPOSITION, UNREADABLE, BACK, DAMAGED = range(0x30, 0x38)
PACKET, FULL, EMPTY, MOTOR, INTERRUPTED, SENSOR, READER, DOUBLE = range(0x38, 0x40)
STOPS: Final = {DOOR, JAM_INFEED, JAM_CAROUSEL, JAM_OUTFEED, MOTOR, INTERRUPTED, SENSOR}

SHUFFLING: Final = 45.0  # seconds for one pack, as a machine of this class takes
PER_CARD: Final = 0.3
PACKET_OF: Final = 5
BACKING_OUT: Final = 3.0
GIVING_OUT: Final = 10.0
LUCKY_PAIRS: Final = 0.3  # probability that a second packet is lucky when the first is
_RANKS: Final = "23456789TJQKA"

Where: TypeAlias = Literal["table", "infeed", "carousel", "shuffled", "outfeed"]


def tally(cards: list[str], unread: int = 0) -> Tally:
    """The count of a reader that misses the first `unread` of the cards."""
    found = Counter(cards[unread:])
    return Tally(tuple(found[card] for card in CARDS), unread)


class CardMachine(FdlDevice):
    """A machine that moves cards: a started movement goes on by itself while there is power."""

    stops: ClassVar[set[int]] = set()
    """Fault codes with which no card moves."""

    def __init__(self, rng: random.Random, serial: str) -> None:
        super().__init__(rng, serial)
        self._later: list[tuple[float, int, Callable[[float], object]]] = []
        self._order = count()
        self._awaited: list[str] = []
        self._jams: list[int] = []
        self._backing: tuple[int, int] | None = None
        self._lit = -1
        self._did = -1

    # ---- time

    def due(self) -> float:
        """When it next sends or moves."""
        if self._boots_at is not None or not self._later:
            return super().due()
        return min(super().due(), self._later[0][0])

    def wake(self, now: float) -> bytes:
        """Simulate until `now` and return the bytes sent."""
        self._live(now)
        return super().wake(now)

    def hear(self, data: bytes, now: float) -> bytes:
        """Bytes from the host; what it answers at once."""
        self._live(now)
        return super().hear(data, now)

    def _live(self, now: float) -> None:
        while self._boots(now) and self._later and self._later[0][0] <= now:
            at, _, action = heappop(self._later)
            action(at)

    def _plan(self, at: float, action: Callable[[float], object]) -> None:
        heappush(self._later, (at, next(self._order), action))

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """All movement stops."""
        self._live(now)
        self._later.clear()
        super().power_cycle(now, lose_memory=lose_memory)

    def _started(self, now: float) -> None:
        """Report its lamps and activity again; cards that it was backing out are free."""
        self._backed_out(now)
        self._lit = self._did = -1
        self._show(now)

    # ---- lamps, jams, faults that wait for their occasion

    def _lamps(self) -> int:
        """The lamps that are lit, as bits."""
        return 0

    def _does(self) -> int:
        """Its activity."""
        return 0

    def _signs(self, lamps: int, does: int) -> tuple[fdl.Happening, fdl.Happening]:
        """Lamps and activity as the device reports them."""
        raise NotImplementedError

    def _show(self, now: float) -> None:
        if self._boots_at is not None:
            return
        lamps, does = self._lamps(), self._does()
        lit, did = self._signs(lamps, does)
        if lamps != self._lit:
            self._lit = lamps
            self.record(lit, now)
        if does != self._did:
            self._did = does
            self.record(did, now)

    def _fail(self, code: int, severity: int, now: float, where: int = 0, *, person: bool = False) -> None:
        super()._fail(code, severity, now, where, person=person)
        self._show(now)

    def _heal(self, code: int, now: float) -> None:
        super()._heal(code, now)
        self._show(now)

    def _stopped(self) -> bool:
        return not self.stops.isdisjoint(self._standing)

    def _occasion(self, *faults: str) -> str:
        """Remove and return the first of these injected faults that is pending, else empty."""
        for fault in self._awaited:
            if fault in faults:
                self._awaited.remove(fault)
                return fault
        return ""

    def _jam(self, where: int, code: int, now: float, *, person: bool = True) -> None:
        if person:
            self._jams.append(where)
        self.record(self._sticks(where), now)
        self._fail(code, ERROR if person else WARNING, now, person=True)
        if not person:
            self._backing = (where, code)
            self._plan(now + BACKING_OUT, self._backed_out)

    def _backed_out(self, now: float) -> None:
        """The machine cleared a jam by itself."""
        if self._backing is not None:
            (where, code), self._backing = self._backing, None
            self.record(self._free(where), now)
            self._heal(code, now)

    def _sticks(self, where: int) -> fdl.Happening:
        raise NotImplementedError

    def _free(self, where: int) -> fdl.Happening:
        raise NotImplementedError

    def repair(self, now: float) -> None:
        """A person clears all jams and other faults."""
        self._live(now)
        for where in self._jams:
            self.record(self._free(where), now)
        self._jams.clear()
        super().repair(now)


class Shuffler(CardMachine):
    """Two decks of `decks` packs each. `packets` holds the true size of every packet it gave out.

    Only `tray` and `take` give the cards of a packet. The wire does not report them.
    """

    name: ClassVar[str] = "fdl_shuffler"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        "door_open": Ailment(
            "the lid is open: what is shuffled may not be dealt", ("fdl.door", "shuffle.failed"), "void", person=True
        ),
        "jam_infeed": Ailment(
            "cards stick in the infeed during the next shuffle",
            ("card.jammed", "shuffler.jam_infeed", "shuffle.failed"),
            "none",
            person=True,
        ),
        "jam_carousel": Ailment(
            "cards stick in the carousel during the next shuffle",
            ("card.jammed", "shuffler.jam_carousel", "shuffle.failed"),
            "none",
            person=True,
        ),
        "jam_outfeed": Ailment(
            "cards stick in the outfeed with the next packet",
            ("card.jammed", "shuffler.jam_outfeed", "shuffle.failed"),
            "void",
            person=True,
        ),
        "jam_retried": Ailment(
            "cards stick during the next shuffle; the machine backs them out",
            ("card.jammed", "jam.cleared", "shuffler.jam_infeed"),
            "none",
        ),
        "double_feed": Ailment("two cards come in at once during the next shuffle", ("shuffler.double_feed",), "none"),
        "motor_fault": Ailment(
            "the carousel's motor stops during the next shuffle", ("shuffler.motor", "shuffle.failed"), "none", True
        ),
        "sensor_stuck": Ailment(
            "a card sensor is stuck from the next shuffle on", ("shuffler.sensor", "shuffle.failed"), "none", True
        ),
        "missing_card": Ailment(
            "a card of the next deck stayed elsewhere",
            ("deck.miscounted", "shuffler.count", "shuffle.failed"),
            "none",
            person=True,
        ),
        "extra_card": Ailment(
            "the next deck has a card too many", ("deck.miscounted", "shuffler.count", "shuffle.failed"), "none", True
        ),
        "duplicate_card": Ailment(
            "the next deck has one card twice and lacks another",
            ("deck.miscounted", "shuffler.composition", "shuffle.failed"),
            "none",
            person=True,
        ),
        "false_count": Ailment(
            "the machine itself miscounts the next deck by one",
            ("deck.miscounted", "shuffler.count", "shuffle.failed"),
            "none",
            person=True,
        ),
        "unreadable_card": Ailment(
            "a card of the next deck cannot be read",
            ("deck.checked", "shuffler.unreadable", "shuffle.finished"),
            "none",
        ),
        "reader_dead": Ailment("the reader fails at the next shuffle", ("shuffler.reader",), "none", True),
        "wrong_back": Ailment(
            "a card of the next deck has another back", ("shuffler.wrong_back", "shuffle.failed"), "none", True
        ),
        "damaged_card": Ailment(
            "a card of the next deck is bent", ("card.damaged", "shuffler.damaged", "shuffle.failed"), "none", True
        ),
        "hopper_full": Ailment("more than one deck is put into the infeed", ("shuffler.hopper_full",), "none", True),
        "hopper_empty": Ailment("the key is pressed with nothing loaded", ("shuffler.hopper_empty",), "none"),
        "packet_short": Ailment(
            "a card is lacking in the next packet", ("hand.dispensed", "shuffler.packet"), "void", True
        ),
        "packet_over": Ailment(
            "two cards come as one in the next packet", ("hand.dispensed", "shuffler.packet"), "void", True
        ),
        "power_loss_shuffling": Ailment(
            "no power for 1.5 s in the middle of the next shuffle",
            ("device.online", "shuffler.interrupted", "shuffle.failed"),
            "suspended",
            person=True,
        ),
        "power_loss_dealing": Ailment(
            "no power for 1.5 s in the middle of the next packet",
            ("device.online", "shuffler.interrupted", "shuffle.failed"),
            "void",
            person=True,
        ),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (
        ("load", 2.0),
        ("shuffle", 55.0),
        ("load", 1.0),
        ("shuffle", 5.0),
        ("dispense", 4.0),
        ("take", 2.0),
        ("dispense", 4.0),
        ("take", 2.0),
        ("dispense", 4.0),
        ("take", 30.0),
        ("collect", 10.0),
    )
    kind: ClassVar[int] = fdl.SHUFFLER
    model: ClassVar[str] = "Shuffler"
    stops: ClassVar[set[int]] = STOPS

    def __init__(
        self, rng: random.Random, serial: str = "SIM-SHUFFLER-1", decks: int = 1, *, reads: bool = True
    ) -> None:
        super().__init__(rng, serial)
        self._packs = decks
        self._reads = reads
        self._cards = {1: list(CARDS) * decks, 2: list(CARDS) * decks}
        self._at: dict[int, Where] = {1: "table", 2: "table"}
        self._wrong = {1: 0, 2: 0}
        self._rejected: set[int] = set()
        self._next_deck = 1
        self._shuffling = False
        self._run = 0
        self._giving = 0
        self._coming = 0
        self._emptying = False
        self._dealt = 0
        self.pack_takes = SHUFFLING
        """Seconds in which it shuffles one pack, give or take a fifteenth."""
        self.card_takes = PER_CARD
        """Seconds in which it gives out one card of a packet."""
        self.tray: tuple[str, ...] = ()
        self.packets: list[int] = []
        self.luck = 0.0
        """Probability that the first packet of five cards is a hand that wins a jackpot."""
        self.burns = 0
        """Cards that are given out before that packet."""
        self._show(0.0)

    # ---- hands

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What the dealer does."""
        return {
            "load": self.load,
            "shuffle": self.shuffle,
            "dispense": lambda now: self.dispense(now, PACKET_OF),
            "take": self.take,
            "collect": self.collect,
        }

    def load(self, now: float) -> None:
        """Put the next deck from the table into the infeed; dealt cards are collected first."""
        self._live(now)
        if self._in("outfeed") and self._rest() < PACKET_OF:
            self.collect(now)
        if self._occasion("hopper_full"):
            self._fail(FULL, WARNING, now, person=True)
            return
        free = [deck for deck in (self._next_deck, 3 - self._next_deck) if self._at[deck] == "table"]
        free = [deck for deck in free if deck not in self._rejected]
        if not free or self._in("infeed") or FULL in self._standing:
            return
        deck = free[0]
        self._next_deck = 3 - deck
        self._at[deck] = "infeed"
        cards = self._cards[deck]
        match self._occasion("missing_card", "extra_card", "duplicate_card"):
            case "missing_card":
                cards.pop(self._rng.randrange(len(cards)))
            case "extra_card":
                cards.append(self._rng.choice(CARDS))
            case "duplicate_card":
                cards[0] = cards[1]
            case _:
                pass
        self.record(fdl_shuffler.Loaded(deck, self._packs, len(cards)), now)
        self._show(now)

    def shuffle(self, now: float) -> int:
        """Press the key: 0, or why it does not begin."""
        self._live(now)
        deck = self._in("infeed")
        if refusal := self._refusal():
            return refusal
        if self._in("carousel") or self._in("shuffled"):
            return 0x01
        if not deck:
            return fdl_shuffler.DECK_REJECTED if self._rejected else fdl_shuffler.NOTHING_LOADED
        self._at[deck] = "carousel"
        self._shuffling = True
        self._rng.shuffle(self._cards[deck])
        if self.luck and self._rng.random() < self.luck:
            self._bring_luck(self._cards[deck])
        takes = self.pack_takes * (self._packs + self._rng.uniform(-1.0, 1.0) / 15)
        fault = self._occasion(
            "jam_infeed", "jam_carousel", "jam_retried", "double_feed", "motor_fault", "sensor_stuck", "reader_dead",
            "wrong_back", "damaged_card", "power_loss_shuffling",
        )  # fmt: skip
        self.record(fdl_shuffler.ShuffleStarted(deck, self._packs, len(self._cards[deck])), now)
        self._run += 1
        run = self._run
        self._plan(now + takes / 2, lambda at: self._trouble(fault, deck, run, at))
        self._plan(now + takes, lambda at: self._shuffled(deck, run, at))
        self._show(now)
        return 0

    def ready(self, now: float, cards: int = PACKET_OF) -> bool:
        """Whether a packet of so many cards could be dealt."""
        self._live(now)
        return bool(self._in("outfeed")) and not self._refusal() and not self._giving and self._rest() >= cards

    def dispense(self, now: float, cards: int) -> int:
        """Empty the tray and press the key: how many cards the next packet will truly have, 0 for none."""
        self.take(now)
        return 0 if self._dispense(now, cards) else self._coming

    def _dispense(self, now: float, cards: int) -> int:
        """Begin to give out a packet: 0, or the reason of the refusal."""
        self._live(now)
        if refusal := self._refusal():
            return refusal
        if not self._boots(now) or not self._in("outfeed"):
            return fdl_shuffler.NOTHING_READY
        if self._giving:
            return 0x01
        if self.tray:
            return fdl_shuffler.PACKET_IN_TRAY
        if self._rest() < cards:
            return fdl_shuffler.TOO_FEW_CARDS
        self._giving, self._coming = cards, cards
        match self._occasion("power_loss_dealing", "jam_outfeed", "packet_short", "packet_over"):
            case "power_loss_dealing":
                self._coming = 0
                self._plan(now + cards * self.card_takes / 2, lambda at: self.power_cycle(at, lose_memory=False))
            case "jam_outfeed":
                self._coming = 0
            case "packet_short":
                self._coming = cards - 1
            case "packet_over":
                self._coming = cards + 1
            case _:
                pass
        self._plan(now + cards * self.card_takes, self._give)
        self._show(now)
        return 0

    def take(self, now: float) -> tuple[str, ...]:
        """Take the packet out of the tray: its cards, the lowest first."""
        self._live(now)
        cards, self.tray = self.tray, ()
        if cards:
            self.record(fdl_shuffler.PacketTaken(), now)
        return cards

    def collect(self, now: float) -> None:
        """The deal is over: its cards and the rest in the outfeed go back to the table."""
        self._live(now)
        deck = self._in("outfeed")
        if deck and not self._giving:
            self._at[deck] = "table"
            self.record(fdl_shuffler.DeckTaken(deck), now)
            self._rise(now)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault, or await its occasion. Raises ValueError for one it does not have."""
        if fault == "hopper_empty":
            self._fail(EMPTY, WARNING, now)
        elif fault in self.faults and fault not in COMMON_FAULTS and fault not in FIRMWARE:
            self._awaited.append(fault)
        else:
            super().inject(fault, now)

    def repair(self, now: float) -> None:
        """A person takes out stuck cards, and replaces a wrong deck by a new one."""
        self._live(now)
        self._awaited.clear()
        for deck in sorted(self._rejected):
            self._cards[deck] = list(CARDS) * self._packs
            self._wrong[deck] = 0
            self.record(fdl_shuffler.DeckReplaced(deck), now)
        self._rejected.clear()
        super().repair(now)

    # ---- the host

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        """A command of the host."""
        match code:
            case fdl_shuffler.SHUFFLE if not data:
                reason = self.shuffle(now)
            case fdl_shuffler.DISPENSE if len(data) == 1:
                reason = self._dispense(now, data[0]) if 1 <= data[0] <= 10 else 0x04
            case fdl_shuffler.EMPTY if not data:
                reason = self._empty(now)
            case _:
                return super().do(code, data, now)
        return (fdl.REFUSED if reason else fdl.DONE), reason, b""

    def _refusal(self) -> int:
        """Why no card may move now; 0 if it may."""
        if DOOR in self._standing:
            return 0x05
        return 0x02 if self._stopped() else 0x01 if self._emptying else 0

    def _empty(self, now: float) -> int:
        if refusal := self._refusal():
            return refusal
        if self._shuffling or self._giving:
            return 0x01
        if all(where == "table" for where in self._at.values()):
            return fdl_shuffler.NOTHING_LOADED
        self._emptying = True
        self._plan(now + GIVING_OUT, self._emptied)
        self._show(now)
        return 0

    # ---- inside

    def _in(self, where: Where) -> int:
        """The deck that is there, 0 for none."""
        return next((deck for deck, at in self._at.items() if at == where), 0)

    def _bring_luck(self, cards: list[str]) -> None:
        """Put a flush or better into the first packet, now and then into the second, too."""
        at = self.burns
        for _ in range(1 + (self._rng.random() < LUCKY_PAIRS)):
            ranks = _RANKS[start : start + PACKET_OF] if (start := self._rng.randrange(9)) else "A2345"
            one, *others = self._rng.sample(sorted({card[1] for card in CARDS}), 4)
            same, other = self._rng.sample(_RANKS, 2)
            [hand] = self._rng.choices(
                (
                    [rank + one for rank in self._rng.sample(_RANKS, PACKET_OF)],
                    [same + one, *(same + suit for suit in others[:2]), other + one, other + others[0]],
                    [same + one, *(same + suit for suit in others), other + one],
                    [rank + one for rank in ranks],
                    [rank + one for rank in "TJQKA"],
                ),
                (4, 3, 2, 2, 2),
            )
            if not set(hand) <= set(cards[at:]):  # in the packet before, or elsewhere
                return
            for place, card in enumerate(hand, at):
                there = cards.index(card, place)
                cards[place], cards[there] = card, cards[place]
            at += PACKET_OF

    def _trouble(self, fault: str, deck: int, run: int, now: float) -> None:
        """A fault begins in the middle of a shuffle."""
        if not self._shuffling or run != self._run:
            return
        match fault:
            case "jam_infeed":
                self._jam(fdl_shuffler.INFEED, JAM_INFEED, now)
                self._abort(fdl_shuffler.JAM, now)
            case "jam_carousel":
                self._jam(fdl_shuffler.CAROUSEL, JAM_CAROUSEL, now)
                self._abort(fdl_shuffler.JAM, now)
            case "jam_retried":
                self._jam(fdl_shuffler.INFEED, JAM_INFEED, now, person=False)
            case "double_feed":
                self._fail(DOUBLE, WARNING, now)
            case "motor_fault":
                self._fail(MOTOR, ERROR, now, person=True)
                self._abort(fdl_shuffler.MOTOR, now)
            case "sensor_stuck":
                self._fail(SENSOR, ERROR, now, person=True)
                self._abort(fdl_shuffler.SENSOR, now)
            case "reader_dead":
                self._fail(READER, WARNING, now, person=True)
            case "wrong_back":
                self._fail(BACK, ERROR, now, person=True)
                self._abort(fdl_shuffler.BACK, now, reject=True)
            case "damaged_card":
                self.record(fdl_shuffler.Damaged(PLACES_OF_CARDS[self._cards[deck][0]]), now)
                self._fail(DAMAGED, WARNING, now, person=True)
                self._abort(fdl_shuffler.DAMAGE, now, reject=True)
            case "power_loss_shuffling":
                self.power_cycle(now, lose_memory=False)
            case _:
                pass

    def _shuffled(self, deck: int, run: int, now: float) -> None:
        """The last card is in: the machine's count decides whether the shuffle is good."""
        if not self._shuffling or run != self._run:
            return
        cards = self._cards[deck]
        expected = 52 * self._packs
        fault = self._occasion("false_count", "unreadable_card")
        counted = len(cards) - (fault == "false_count")
        reads = self._reads and READER not in self._standing and counted == len(cards)
        unread = int(fault == "unreadable_card")
        found = tally(cards, unread) if reads else None
        composed = found is None or unread > 0 or sorted(cards) == sorted(CARDS * self._packs)
        good = counted == expected and composed
        self._wrong[deck] = min(self._wrong[deck] + (not good), 255)
        self.record(fdl_shuffler.Counted(deck, self._packs, expected, counted, self._wrong[deck], found), now)
        if unread:
            self._fail(UNREADABLE, WARNING, now)
        if not good:
            wrong_number = counted != expected
            self._fail(COUNT if wrong_number else COMPOSITION, ERROR, now, person=True)
            self._abort(fdl_shuffler.COUNT if wrong_number else fdl_shuffler.COMPOSITION, now, reject=True)
            return
        self._shuffling = False
        self._at[deck] = "shuffled"
        verified = fdl_shuffler.EVERY_CARD_READ if found and not unread else fdl_shuffler.COUNTED
        self.record(fdl_shuffler.ShuffleFinished(deck, self._packs, counted, verified), now)
        self._rise(now)

    def _rise(self, now: float) -> None:
        """A shuffled deck goes to the outfeed when that is free."""
        deck = self._in("shuffled")
        if deck and not self._in("outfeed"):
            self._at[deck] = "outfeed"
            self._dealt = 0
        self._show(now)

    def _abort(self, reason: int, now: float, *, reject: bool = False) -> None:
        """The running shuffle fails; a person takes its cards out and puts them on the table."""
        deck = self._in("carousel")
        if deck:
            self._shuffling = False
            self._at[deck] = "table"
            if reject:
                self._rejected.add(deck)
            self.record(fdl_shuffler.Failed(deck, self._packs, len(self._cards[deck]), reason), now)
        self._show(now)

    def _spoil(self, reason: int, now: float) -> None:
        """The shuffled cards may no longer be dealt."""
        self._giving = 0
        for deck in (self._in("outfeed"), self._in("shuffled")):
            if deck:
                self._at[deck] = "table"
                self.record(fdl_shuffler.Failed(deck, self._packs, len(self._cards[deck]), reason), now)
        self._show(now)

    def _give(self, now: float) -> None:
        wanted = self._giving
        if not wanted:
            return
        if not self._coming:
            self._jam(fdl_shuffler.OUTFEED, JAM_OUTFEED, now)
            self._spoil(fdl_shuffler.JAM, now)
            return
        self._giving = 0
        self.tray = tuple(self._cards[self._in("outfeed")][self._dealt : self._dealt + self._coming])
        given = len(self.tray)
        self._dealt += given
        self.packets.append(given)
        self.record(fdl_shuffler.Dispensed(wanted, given), now)
        if given != wanted:
            self._fail(PACKET, ERROR, now, person=True)
        self._show(now)

    def _rest(self) -> int:
        """How many cards are left of the deck that is dealt."""
        deck = self._in("outfeed")
        return len(self._cards[deck]) - self._dealt if deck else 0

    def _emptied(self, now: float) -> None:
        self._emptying = False
        inside = [deck for deck, where in self._at.items() if where != "table"]
        cards = sum(len(self._cards[deck]) for deck in inside) - (self._dealt if self._in("outfeed") else 0)
        for deck in inside:
            self._at[deck] = "table"
        self.record(fdl_shuffler.Emptied(cards), now)
        self._show(now)

    def _fail(self, code: int, severity: int, now: float, where: int = 0, *, person: bool = False) -> None:
        new = code not in self._standing
        super()._fail(code, severity, now, where, person=person)
        if code == DOOR and new and code in self._standing:
            self._abort(fdl_shuffler.OPENED, now)
            self._spoil(fdl_shuffler.OPENED, now)

    def _started(self, now: float) -> None:
        """Cards that moved when the power failed are in no defined order."""
        moved = self._shuffling or self._giving
        self._emptying = False
        if moved:
            self._fail(INTERRUPTED, ERROR, now, person=True)
            self._abort(fdl_shuffler.POWER, now)
            self._spoil(fdl_shuffler.POWER, now)
        super()._started(now)

    def _lamps(self) -> int:
        ready = bool(self._in("outfeed")) and not self._stopped()
        jam = not {JAM_INFEED, JAM_CAROUSEL, JAM_OUTFEED}.isdisjoint(self._standing)
        service = any(until == FOREVER for until in self._standing.values())
        return ready | jam << 1 | service << 2

    def _does(self) -> int:
        if self._stopped():
            return fdl_shuffler.PAUSED
        if self._emptying:
            return fdl_shuffler.EMPTYING
        if self._giving or (self._dealt and self._in("outfeed")):
            return fdl_shuffler.DEALING
        if self._shuffling:
            return fdl_shuffler.SHUFFLING
        if self._in("outfeed"):
            return fdl_shuffler.READY
        return fdl_shuffler.LOADING if self._in("infeed") else fdl_shuffler.IDLE_EMPTY

    def _signs(self, lamps: int, does: int) -> tuple[fdl.Happening, fdl.Happening]:
        return fdl_shuffler.Lamps(lamps), fdl_shuffler.State(does)

    def _sticks(self, where: int) -> fdl.Happening:
        return fdl_shuffler.Jammed(where)

    def _free(self, where: int) -> fdl.Happening:
        return fdl_shuffler.JamCleared(where)
