"""What a reader of the broker receives does not depend on cards that lie face down.

Two tables play the same script. At the second one every card that lies face down is another one. Everything that a
reader may receive, the granted device events, the verdicts, `round/state`, `round/result` and the alerts, must be the
same at both, byte for byte and message for message, until the law lays the cards open. When that is, this file says by
itself and by the article; it does not ask the ruleset.

Where a person or a device states something that the cards contradict, the round waits, and that it waits is public: a
peek reader against the shoe, a split of two cards that are no pair. Both tables are told only what their cards allow.
"""

import contextlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from helpers import at_length, script
from msgspec.structs import replace
from structlog.testing import capture_logs

from daemon.broker.retained import Retained
from daemon.config.model import parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.edge.links.link import HostLink
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from daemon.read_model import SHOWN
from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    CardDrawn,
    CardUnreadable,
    DealCorrected,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    Event,
    EventsMissed,
    HandDispensed,
    HoleCardPeeked,
    RoundVoided,
    SeatActed,
    SeatOpened,
    ShoeStarted,
    WagerPlaced,
    encode_data,
    type_of,
)
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import table_topic
from protocols.hid_cards import Code, code_of, encode
from rules.engine.facts import Note
from rules.engine.refold import Engine
from rules.games.baccarat import hands
from rules.games.baccarat_coups import Coups
from rules.games.blackjack import House
from rules.games.cards import DECK, PIPS, RANKS
from rules.games.poker import CATEGORIES, strength
from rules.games.stud_poker_turns import Turn
from rules.macau.blackjack import Blackjack
from rules.macau.stud_poker import StudPoker

DEALS = at_length(200, 10_000)
SITE, TABLE = "s", "t-1"
STATE = table_topic(SITE, TABLE, "round/state")
RESULT = table_topic(SITE, TABLE, "round/result")

Message = tuple[str, bytes]
Pair = tuple[Event, Event]


# ---- what a reader receives


class _Rows:
    """A journal that keeps nothing but its numbers."""

    name = "rules-journal"
    path = "-"

    def __init__(self) -> None:
        self.head = 0
        self.written: list[Row] = []

    def memory(self, _key: str) -> None:
        return None

    def memories(self, _prefix: str) -> dict[str, bytes]:
        return {}

    def latest(self, _place: str, _types: tuple[str, ...]) -> None:
        return None

    def append(self, entries: Iterable[Entry], _memory: object) -> list[Row]:
        rows = []
        for one in entries:
            self.head += 1
            row = Row(self.head, one.place, self.head, one.device, one.type, one.time, one.data, one.wire, one.cause)
            rows.append(row)
        self.written += rows
        return rows


class Reader:
    """A reader of one table, and the rules consumer that it hears."""

    def __init__(self, ruleset: str, options: dict[str, Any]) -> None:
        lines = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in options.items()]
        head = f'[site]\nname = "{SITE}"\n[edge]\nname = "e"\n[[table]]\nname = "{TABLE}"\nruleset = "{ruleset}"\n'
        self._rows = _Rows()
        self._rules = Consumer(parse(head + "[table.options]\n" + "\n".join(lines)), cast("Journal", self._rows))
        self._table = self._rules._tables[TABLE]

    def new_table(self) -> None:
        """A table that nobody has played on."""
        self._table.state = self._table.ruleset.start(TABLE)
        self._table.alerted = False
        self._table.numbers.newest = ""
        self._rules._streams.clear()
        self._rules._unsaved.clear()
        self._rules._moved.clear()
        self._rules.retained = Retained()
        self._rules.retained.put(STATE, partial(self._rules.standing, TABLE))
        self._rows.head = 0

    def heard(self, events: Iterable[Event]) -> list[list[Message]]:
        """The messages after each event."""
        self.new_table()
        return [list(self._after(seen)) for seen in script(events, TABLE)]

    def _after(self, seen: Any) -> Iterator[Message]:
        if (kind := type_of(seen.event)) in SHOWN:
            yield f"event/{kind}", encode_data(seen.event)
        self._rows.written.clear()
        self._rules.take([replace(seen, id=f"e:{TABLE}:{seen.seq}", journal="A")])
        for row in self._rows.written:
            yield self._rules._message_of(row, False)
        retained = self._rules.retained
        for topic in retained._dirty:
            value = retained._wanted[topic]
            yield topic, value if isinstance(value, bytes) else msgspec.json.encode(value())
        retained._dirty.clear()


OF_THE_DEVICE = ("event/dice.read", "event/buttons.counted")
Deal = Callable[[random.Random], tuple[str, dict[str, Any], list[Pair]]]
_READERS: dict[tuple[str, bytes], Reader] = {}


def reader(ruleset: str, options: dict[str, Any]) -> Reader:
    """One for each set of options; it holds nothing from deal to deal."""
    key = ruleset, msgspec.json.encode(options)
    return _READERS.get(key) or _READERS.setdefault(key, Reader(ruleset, options))


def compared(ruleset: str, options: dict[str, Any], course: Sequence[Pair]) -> int:
    """Compare both tables, event by event; how many events there were whose own data differ.

    A reading of dice or a count of buttons is an event of its device, which a reader may read whenever it comes.
    """
    told = reader(ruleset, options)
    both = [told.heard(events) for events in zip(*course, strict=True)]
    for n, pair in enumerate(zip(*both, strict=True)):
        one, other = ([message for message in said if message[0] not in OF_THE_DEVICE] for said in pair)
        if one != other:
            shown = "\n".join(f"  {event}" for event, _ in course[: n + 1])
            raise AssertionError(f"{ruleset} {options} tells a card:\n{shown}\n{one}\n{other}")
    return sum(one != other for one, other in course)


def same(*events: Event) -> list[Pair]:
    """Events that are told at both tables."""
    return [(event, event) for event in events]


def plays(deal: Deal, deals: int = DEALS) -> int:
    """Many deals; how many of them had another card at the second table."""
    rng = random.Random(deal.__name__)
    different = 0
    for _ in range(deals):
        different += compared(*deal(rng)) > 0
    return different


# ---- blackjack

BOX: dict[str, Any] = {"procedure": "1", "device": "metal_box", "decks": 1}
PEEKS: dict[str, Any] = {"procedure": "3"}
BLACKJACK: tuple[dict[str, Any], ...] = (
    {"procedure": "1"},
    {"procedure": "1", "device": "continuous", "edition": "2004"},
    {"procedure": "1", "special_prize": "on_top", "surrender": "before_own_card", "bank_first_card": "last"},
    {"procedure": "1", "doubling": ["eleven"], "bank_draws": "always"},
    BOX,
    {**BOX, "doubling": ["eleven"], "surrender": "none", "special_prize": "none"},
    {**BOX, "surrender": "before_own_card", "bettors": 3, "decides": "highest"},
    PEEKS,
    {**PEEKS, "players_down": "first", "surrender": "before_own_card"},
    {**PEEKS, "players_down": "second", "doubling": ["eleven", "split_pair"]},
    {**PEEKS, "players_down": "both", "special_prize": "on_top"},
    {**PEEKS, "players_down": "both", "device": "metal_box", "decks": 1},
)


def total(cards: Sequence[str]) -> int:
    """Art. 8."""
    low = sum(PIPS[card] for card in cards)
    return low + 10 if low <= 11 and any(card[0] == "A" for card in cards) else low


def natural(cards: Sequence[str]) -> bool:
    """Art. 10(1)."""
    return len(cards) == 2 and total(cards) == 21


def special(cards: Sequence[str]) -> bool:
    """Art. 15."""
    ranks = "".join(sorted(card[0] for card in cards))
    return ranks == "777" or (ranks == "678" and len({card[1] for card in cards}) == 1)


class _Laid(Exception):
    """The law lays the cards open: what follows may differ."""


class _BlackjackDeal:
    """One round at both tables, in the words of the law. `hands` and `bank` hold what lies at either table."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.options = rng.choice(BLACKJACK)
        self.course: list[Pair] = []
        self.hole = self.options["procedure"] == "3" or self.options.get("device") == "metal_box"
        down = {"1": "both", "3": self.options.get("players_down", "none")}[self.options["procedure"]]
        self.down = {"none": (), "first": (0,), "second": (1,), "both": (0, 1)}[down]
        self.seats = sorted(rng.sample(range(1, 8), rng.choice((1, 1, 2, 3, 5))))
        self.deck = list(DECK) * self.options.get("decks", 6)
        rng.shuffle(self.deck)
        self.hands: dict[int, tuple[list[str], list[str]]] = {seat: ([], []) for seat in self.seats}
        self.bank: tuple[list[str], list[str]] = ([], [])
        self.drawn = False
        self.over: set[int] = set()

    def both(self, *events: Event) -> None:
        self.course += same(*events)

    def card(self, hidden: bool = False) -> tuple[str, str]:
        """The next card at either table."""
        one = self.deck.pop()
        # Pairs, aces and tens often: there the rules make a difference.
        other = one
        if hidden and self.rng.random() < 0.9:
            wanted = self.rng.choice(RANKS + "AAATTTKKQJ")
            fits = [n for n, card in enumerate(self.deck) if card[0] == wanted]
            other = self.deck.pop(fits[0]) if fits else self.deck.pop()
            if self.rng.random() < 0.5:
                one, other = other, one
        return one, other

    def draw(self, to: tuple[list[str], list[str]], hidden: bool = False) -> None:
        cards = self.card(hidden)
        for hand, card in zip(to, cards, strict=True):
            hand.append(card)
        one, other = cards
        self.course.append((CardDrawn(one), CardDrawn(other)))

    def play(self) -> tuple[str, dict[str, Any], list[Pair]]:
        with contextlib.suppress(_Laid):
            self.round()
        return Blackjack.id, self.options, self.course

    def round(self) -> None:
        if self.rng.random() < 0.5:
            self.both(*(SeatOpened(seat) for seat in self.seats), BetsOpened(), BetsClosed())
        else:
            bets = [WagerPlaced(seat, "main", 100) for seat in self.seats]
            self.both(BetsOpened(), *bets, BetsClosed())
        self.deal()
        self.trouble()
        self.insure()
        if self.options["procedure"] == "3" and PIPS[self.bank[0][0]] in (1, 10):
            if natural(self.bank[0]) or natural(self.bank[1]):
                raise _Laid  # 5(2)(3)(4)
            self.both(HoleCardPeeked(blackjack=False))
        for seat in self.seats:
            self.trouble()
            self.decide(seat)
        if self.hole:
            raise _Laid  # the hole card is turned
        if any(natural(self.hands[seat][n]) for n in (0, 1) for seat in self.seats):
            raise _Laid  # 6(1): whether the bank draws may rest on them
        while True:
            self.draw(self.bank)
            if total(self.bank[0]) >= 17:
                self.course.pop()
                raise _Laid

    def counts(self, seat: int, table: int) -> bool:
        """Whether the hand is compared with the bank's."""
        return seat not in self.over and not natural(self.hands[seat][table])

    def deal(self) -> None:
        """Arts. 5(1), 5(2)."""
        last = self.options.get("bank_first_card") == "last"
        for place in (0, 1):
            for seat in self.seats:
                self.draw(self.hands[seat], hidden=place in self.down)
            if place == 0 and not last:
                self.draw(self.bank)
            if place == 1 and self.hole:
                self.draw(self.bank, hidden=True)
            if place == 1 and last:
                self.draw(self.bank)
        if not self.down and any(natural(self.hands[seat][0]) for seat in self.seats):
            self.over |= {seat for seat in self.seats if natural(self.hands[seat][0])}
            if len(self.over) == len(self.seats):  # 6(4)(1): nobody decides
                self.course.pop()
                raise _Laid

    def insure(self) -> None:
        if self.bank[0][0][0] == "A" and self.rng.random() < 0.4:
            self.both(SeatActed(self.rng.choice(self.seats), "insurance", 1, 0))

    def trouble(self) -> None:
        """What stops a round, and a person who puts it right or calls it void."""
        chance = self.rng.random()
        if chance < 0.02:
            self.both(self.rng.choice((EventsMissed(1), CardUnreadable())))
            for _ in range(self.rng.randrange(3)):
                self.both(SeatActed(self.rng.choice(self.seats), self.rng.choice(("hit", "stand", "double", "split"))))
            self.both(RoundVoided("two cards fell"))
            raise _Laid
        if chance < 0.05:
            self.both(CardUnreadable())
            hands = [
                {f"{seat}.1": tuple(self.hands[seat][n]) for seat in self.seats} | {"dealer": tuple(self.bank[n])}
                for n in (0, 1)
            ]
            self.course.append((DealCorrected(hands[0]), DealCorrected(hands[1])))

    def decide(self, seat: int) -> None:
        """Arts. 6, 17, 18, 19."""
        if seat in self.over:
            return
        hands = self.hands[seat]
        up = self.bank[0][0]
        while True:
            if self.rng.random() < 0.05:  # another seat speaks before its turn
                later = [other for other in self.seats if other > seat] or [seat]
                self.both(SeatActed(self.rng.choice(later), self.rng.choice(("hit", "double", "stand")), 2))
            may = ["stand"]
            two = len(hands[0]) == 2
            if all(total(hand) < 21 for hand in hands):
                may += ["hit"] * 3
                eleven = self.options.get("doubling", [""])[0] == "eleven"
                if two and (not eleven or all(total(hand) == 11 for hand in hands)):
                    may.append("double")
                until = self.options.get("surrender", "before_any_card")
                if two and up[0] != "A" and (until == "before_own_card" or (until != "none" and not self.drawn)):
                    may.append("surrender")
            if len(hands[0]) == 5 and up[0] != "A":
                may.append("five_cards")
            action = self.rng.choice(may)
            self.both(SeatActed(seat, action))
            if action == "five_cards":
                self.course.pop()
                raise _Laid  # 19(1): it is asked for with the cards
            if action in ("stand", "surrender"):
                if action == "surrender":
                    self.over.add(seat)
                if self.done(seat):
                    self.course.pop()
                    raise _Laid
                return
            if self.rng.random() < 0.04:  # a second word before the card comes
                self.both(SeatActed(seat, self.rng.choice(("split", "stand", "surrender", "double"))))
                self.both(RoundVoided("a player changed his mind"))
                raise _Laid
            self.draw(hands)
            self.drawn = True
            if any(total(hand) > 21 for hand in hands):
                self.course.pop()
                raise _Laid  # 6(2)
            if len(hands[0]) == 3 and any(map(special, hands)) and self.options.get("special_prize") != "on_top":
                self.course.pop()
                raise _Laid  # 15
            by_itself = not self.down and total(hands[0]) == 21 and (len(hands[0]) != 5 or up[0] == "A")
            if action == "double" or by_itself:
                if self.done(seat):
                    self.course.pop()
                    raise _Laid
                return

    def done(self, seat: int) -> bool:
        """Whether this was the last decision, after which cards are laid open."""
        left = [other for other in self.seats if other > seat and other not in self.over]
        if left:
            return False
        return self.hole or any(all(not self.counts(one, n) for one in self.seats) for n in (0, 1))


def blackjack(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """A round of blackjack with cards that lie face down."""
    return _BlackjackDeal(rng).play()


# ---- stud poker


def jackpot(cards: Sequence[str]) -> bool:
    """Art. 10(2): a flush or better."""
    return strength(tuple(cards)) >> 20 >= CATEGORIES.index("flush")


def stud_poker(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """Until the showdown every card but the dealer's last lies face down."""
    seats = sorted(rng.sample(range(1, 8), rng.randint(1, 5)))
    options = {"folded_jackpot": rng.choice(("lost", "kept"))}
    decks = [rng.sample(DECK, 5 * (len(seats) + 1)) for _ in (0, 1)]
    if decks[0][-1] in decks[1]:
        decks[1][decks[1].index(decks[0][-1])] = decks[1][-1]
    decks[1][-1] = decks[0][-1]
    raised = [rng.random() < 0.5 for _ in seats]
    wagers = [WagerPlaced(seat, "ante", 100) for seat in seats]
    course = same(*(SeatOpened(seat) for seat in seats), BetsOpened(), *wagers, BetsClosed())
    course += [(CardDrawn(one), CardDrawn(other)) for one, other in zip(*decks, strict=True)]
    if rng.random() < 0.1:
        return "macau.stud-poker", options, course + same(EventsMissed(1), RoundVoided("two cards fell"))
    acts = [SeatActed(seat, "raise" if up else "fold") for seat, up in zip(seats, raised, strict=True)]
    rng.shuffle(acts)
    if any(raised):
        acts.pop()  # the last decision lays the hands open
    elif options["folded_jackpot"] == "kept" and any(
        jackpot(deck[n :: len(seats) + 1]) for deck in decks for n in range(len(seats))
    ):
        acts.pop()
    return "macau.stud-poker", options, course + same(*acts)


def folded(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """The hands of those who folded, and the ones that 9(2) leaves closed, are shown by no result either."""
    seats = sorted(rng.sample(range(1, 8), rng.randint(2, 4)))
    deck = rng.sample(DECK, 52)
    dealer, *dealt = [deck[n : n + 5] for n in range(0, 50, 5)]
    hands, others = dealt[: len(seats)], dealt[len(seats) : 2 * len(seats)]
    opens = {"A", "K"} <= {card[0] for card in dealer} or strength(tuple(dealer)) >> 20 > 0
    raised = [rng.random() < 0.5 for _ in seats]
    swapped = [
        other if not (up and opens) and not (up and (jackpot(hand) or jackpot(other))) else hand
        for hand, other, up in zip(hands, others, raised, strict=True)
    ]
    course = same(*(SeatOpened(seat) for seat in seats), BetsOpened(), BetsClosed())
    for place in range(5):
        course += [(CardDrawn(a[place]), CardDrawn(b[place])) for a, b in zip(hands, swapped, strict=True)]
        course.append((CardDrawn(dealer[place]), CardDrawn(dealer[place])))
    acts = [SeatActed(seat, "raise" if up else "fold") for seat, up in zip(seats, raised, strict=True)]
    return "macau.stud-poker", {}, course + same(*acts)


def angola_stud_poker(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """So they do in Angola, and nothing tells which card was burnt."""
    _, _, course = stud_poker(rng)
    dealt = [{event.card for event in side if isinstance(event, CardDrawn)} for side in zip(*course, strict=True)]
    one, other = (CardDrawn(rng.choice([card for card in DECK if card not in known])) for known in dealt)
    course.insert(rng.randint(0, course.index((BetsClosed(), BetsClosed())) + 1), (one, other))
    return "angola.stud-poker", {}, course


def shuffled(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """A shuffler says how many cards it gave out; the hands are told at the showdown, the dealer's last of all."""
    seats = sorted(rng.sample(range(1, 8), rng.randint(1, 4)))
    decks = [rng.sample(DECK, 52) for _ in (0, 1)]
    bets = [WagerPlaced(seat, "ante", 100) for seat in seats]
    packets = [HandDispensed(5)] * (len(seats) + 1)
    acts = [SeatActed(seat, "raise") for seat in seats]
    course = same(BetsOpened(), *bets, BetsClosed(), *packets, *acts)
    for n, seat in enumerate(seats):
        one, other = ({f"seat_{seat}": tuple(deck[5 * n : 5 * n + 5])} for deck in decks)
        course.append((DealCorrected(one), DealCorrected(other)))
    return "macau.stud-poker", {}, course


# ---- baccarat


def baccarat(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """Art. 7(1): both sides show when they have two cards each. Before that a player who handles the cards looks."""
    options: dict[str, Any] = {"opening": "bell", "players_handle_cards": True, "burn_each_coup": rng.random() < 0.3}
    course = same(BetsOpened(), WagerPlaced(1, "player", 100), WagerPlaced(2, "banker", 300), BetsClosed())
    many = rng.randint(1, 3) + options["burn_each_coup"]
    course += [(CardDrawn(rng.choice(DECK)), CardDrawn(rng.choice(DECK))) for _ in range(many)]
    ends = same(), same(RoundVoided("two cards fell")), same(CardUnreadable(), BetsOpened())
    return "macau.baccarat", options, course + rng.choice(ends)


def angola_baccarat(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """Eight cards burnt, a first coup told, then the card before the next one and up to three of its four."""
    text = rng.choice(("angola.baccarat", "angola.baccarat-macau"))
    cards = [(CardDrawn(rng.choice(DECK)), CardDrawn(rng.choice(DECK))) for _ in range(8 + 1 + rng.randint(0, 3))]
    first = same(BetsOpened(), BetsClosed(), *map(CardDrawn, ("9S", "2S", "TS", "4S")))
    lost = same(EventsMissed(1)) if rng.random() < 0.3 else []
    second = same(BetsOpened(), WagerPlaced(1, "player", 100), BetsClosed())
    ends = same(), same(RoundVoided("two cards fell")), same(CardUnreadable(), BetsOpened())
    return text, {}, [*same(ShoeStarted(8)), *cards[:8], *first, *lost, *second, *cards[8:], *rng.choice(ends)]


def burnt(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """What is burnt is seen by nobody; only the first card is, where it says how many (2(1)(2))."""
    how = rng.choice(("decks", "first_card", "fixed"))
    first = CardDrawn(rng.choice(DECK))
    many = {"decks": 8, "fixed": 1, "first_card": PIPS[first.card]}[how]
    course = [*same(ShoeStarted(8)), (first, first if how == "first_card" else CardDrawn("2C"))]
    course += [(CardDrawn(rng.choice(DECK)), CardDrawn(rng.choice(DECK))) for _ in range(many - 1)]
    return "macau.baccarat", {"opening": "bell", "burn": how}, course + same(BetsOpened())


# ---- dice under the dome, buttons under the cover


def covered_dice(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """A reading of dice that are covered says no face: the throw is void, or waits. The reading itself is an event."""
    ruleset = rng.choice(("macau.cussec", "macau.fish-prawn-crab"))
    shaken = same(DiceCovered(), DiceAgitated("electronic", 1), BetsOpened())
    if rng.random() < 0.5:
        shaken += same(BetsClosed())
    readings = [DiceRead(tuple(rng.choices(range(1, 7), k=3))) for _ in (0, 1)]
    return ruleset, {}, [*shaken, (readings[0], readings[1])]


def covered_buttons(rng: random.Random) -> tuple[str, dict[str, Any], list[Pair]]:
    """A count before the bell says no number: the round is void."""
    counts = [ButtonsCounted(rng.randint(1, 200)) for _ in (0, 1)]
    return "macau.fantan", {}, [*same(ButtonsSeparated(), BetsOpened()), (counts[0], counts[1])]


# ---- the tests

FACE_DOWN: tuple[Deal, ...] = (
    blackjack,
    stud_poker,
    angola_stud_poker,
    folded,
    shuffled,
    baccarat,
    angola_baccarat,
    burnt,
    covered_dice,
    covered_buttons,
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.mark.parametrize("deal", FACE_DOWN)
def test_published_state_does_not_depend_on_cards_face_down(deal: Deal) -> None:
    assert plays(deal) > DEALS // 2


def actions_of_the_true_cards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(House, "possible_actions", House.actions)


def twenty_one_ends_by_itself(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(House, "hides", lambda *_: False)


def surrender_of_the_true_cards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(House, "offers_surrender", lambda *a: not a[2].ended and House.may_surrender(*a))


def a_hole_card_in_the_clear(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("rules.games.blackjack.masked", lambda cards, _down: cards)


def a_reason_with_a_card(patch: pytest.MonkeyPatch) -> None:
    suspend = Engine._suspend

    def told(self: Engine[Any], table: Any, frame: Any, fact: Any, reason: Reason, *more: Reason) -> Any:
        hands = table.position.play.hands
        cards = hands[0].cards[:1] if hands else ()
        return suspend(self, table, frame, fact, Reason(reason.code, {**reason.values, "cards": str(cards)}), *more)

    patch.setattr(Engine, "_suspend", told)


def more_words_of_an_ace(patch: pytest.MonkeyPatch) -> None:
    """Not in what is said: in how often."""
    card = StudPoker._card

    def told(self: StudPoker, turn: Turn, drawn: str, face: str | None) -> Any:
        position, effect = card(self, turn, drawn, face)
        return position, replace(effect, beside=(Note("x", say("x"), "x"),)) if drawn[0] == "A" else effect

    patch.setattr(StudPoker, "_card", told)


def a_handled_card_in_the_clear(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("rules.games.baccarat_coups.UNKNOWN", "2C")
    patch.setattr(Coups, "_lie", lambda _self, cards: hands(cards))


@pytest.mark.parametrize(
    ("deal", "leak"),
    [
        (blackjack, actions_of_the_true_cards),
        (blackjack, twenty_one_ends_by_itself),
        (blackjack, surrender_of_the_true_cards),
        (blackjack, a_hole_card_in_the_clear),
        (blackjack, a_reason_with_a_card),
        (stud_poker, more_words_of_an_ace),
        (baccarat, a_handled_card_in_the_clear),
        (angola_baccarat, a_handled_card_in_the_clear),
    ],
)
def test_a_leak_is_found(
    deal: Deal, leak: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    leak(monkeypatch)
    with pytest.raises(AssertionError, match="tells a card"):
        plays(deal, 2000)


class _Counting:
    """A link that has read so many bytes."""

    tap = None
    sent_bytes = 0

    def __init__(self, received: int) -> None:
        self.received_bytes = received


def test_the_length_of_what_a_shoe_types_is_not_published(tmp_path: Path) -> None:
    """A scanner types `H10` for a ten and `HK` for a king: the bytes that came say which."""
    device = '[[table.device]]\nname = "shoe-1"\ndriver = "hid_shoe"\nurl = "usb://1/1"\n'
    config = parse(f'[site]\nname = "{SITE}"\n[edge]\nname = "e"\n[[table]]\nname = "{TABLE}"\n{device}')
    with contextlib.closing(Journal(tmp_path / "e.db")) as journal:
        (post,) = Edge(config, journal).sessions
        states = []
        for card in ("TH", "KH"):
            post.linked(cast("HostLink", _Counting(len(encode(Code(code_of(card)))))))
            states.append(msgspec.json.encode(post.state()))
    assert len(encode(Code(code_of("TH")))) != len(encode(Code(code_of("KH"))))
    assert states[0] == states[1]
