"""Macau fantan: Despacho Regulamentar Externo 58/2004.

The flow: the croupier sets a random heap of buttons apart under a metal cover, and covers the others (2). Then bets
may be laid, until the bell and the announcement that the heap will be counted (4). The cover is lifted, the buttons
are counted off by fours, and the number that is left is called (5(1)); nothing left means four (3(2)). The buttons are
collected and the lamp of the number lights (5(2)). Fragments of broken buttons are not counted (5(3)). A prize bears
five per cent for the bank (9): `pays` is what is left of it, `gross` the printed prize.

Readings. The text has no void round:

- 2, 4: bets opened or laid before the heap was set apart are irregular and count: its number was not known.
- 4: a heap counted before the bell makes the round void, the bets come back: one may have been laid knowing the count.
- 4: no heap set apart before the bell makes the round void: every bet was laid too early.
- 4: a heap set apart again before anybody could bet is another heap; later, the first may have been seen: suspended.
- 2, 4: a cover lifted before the bell, once bets could lie, suspends the round.
- 5(1): after a loss the round is suspended and never resolved: a count that follows may be another heap's. The
  supervisor declares it void, or the next heap voids it.
- 2, 4: after a loss, bets that are opened wait until a heap is reported as set apart.
- 5(1): a round without a count waits: the dealer counts and enters it at the console. He knows the remainder, not the
  number of buttons: two counts are the same if their remainders are.
- 5(1): two counts that differ dispute the result until it is paid (the first stands), one of them is entered again
  (that one stands) or it is declared void; the next heap voids it.
- 5(2): the next heap may be set apart before the prizes are paid: an unpaid result can no longer be corrected then.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations, permutations
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    ButtonsUncovered,
    Event,
    LampsLit,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.facts import FantanFacts, RoundFacts
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.bets import Board, Family, check_offered, names, numbers
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.rounds import Round, noted, resolved, terms
from rules.engine.ruleset import Result, Verdict, View, Win, option
from rules.engine.single_outcome import Doubt, Note, Null, Rulings, SingleOutcome, Table
from rules.needs import Need, Needs, the_bell

Step: TypeAlias = tuple["FantanState", tuple[Verdict, ...]]

NUMBERS: Final = range(1, 5)
LAMPS: Final = frozenset(map(str, NUMBERS))
COMMISSION: Final = Fraction(5, 100)  # art. 9


def _family(id_: str, printed: str, article: str, text: str, covered: Any, comes_back: int = 0) -> Family:
    """Art. 9: the printed prize less the commission. Art. 8: on the last `comes_back` numbers the bet comes back."""
    net = str(Fraction(printed) * (1 - COMMISSION))
    split = -comes_back or None
    return Family(
        *(id_, net, article, text, numbers(covered)),
        wins=lambda place, number: number in place[:split],
        returns=(lambda place, number: number in place[split:]) if split else None,
        gross=printed,
    )


# Arts. 6 to 9, in the order of art. 6, with the printed prizes of art. 7.
PAYTABLE: Final = (
    _family("kuoc:a-b", "1", "arts. 6(1), 7(2), 9", "a or b is left", combinations(NUMBERS, 2)),
    _family("fan:n", "3", "arts. 6(2)(1), 7(1)(1), 9", "n is left", combinations(NUMBERS, 1)),
    _family(
        *("nim:w-p", "2", "arts. 6(2)(2), 7(1)(2), 8, 9", "w is left; on p the bet comes back"),
        *(permutations(NUMBERS, 2), 1),
    ),
    _family(
        *("nga:w1-w2-p", "1/2", "arts. 6(2)(3), 7(1)(3), 8, 9", "w1 or w2 is left; on p the bet comes back"),
        *(((v, w, p) for v, w in combinations(NUMBERS, 2) for p in NUMBERS if p not in {v, w}), 1),
    ),
    _family("sesamhong:a-b-c", "1/3", "arts. 6(2)(4), 7(1)(4), 9", "a, b or c is left", combinations(NUMBERS, 3)),
)
FAMILIES: Final = names(PAYTABLE)

# The croupier's calls at the bell (4), at the end (5(1)), and at a void round.
BELL: Final = {"pt": "Vai-se contar", "zh-Hant": "停止下注，開攤", "en": "No more bets, counting"}
CALLS: Final = {
    1: {"pt": "Número premiado: um", "zh-Hant": "開一", "en": "One wins"},
    2: {"pt": "Número premiado: dois", "zh-Hant": "開二", "en": "Two wins"},
    3: {"pt": "Número premiado: três", "zh-Hant": "開三", "en": "Three wins"},
    4: {"pt": "Número premiado: quatro", "zh-Hant": "開四", "en": "Four wins"},
}
VOID: Final = {"pt": "Lance nulo", "zh-Hant": "此局無效", "en": "Void"}

REMEDY_COUNT: Final = say("do_count")
REMEDY: Final = say("do_heap")
CONTRADICT: Final = say("counts")


def _cite(article: str) -> str:
    return f"Despacho 58/2004 art. {article}"


def _rulings() -> Rulings:
    return Rulings(
        bets_law=_cite("6"),
        late_bets_law=_cite("4"),
        stray_bets_law=_cite("4"),
        void_law=(_cite("5(1)"),),
        never_ended=Null(say("never_counted"), (_cite("5(1)"),)),
        stray_bell=Note("bell_without_round", say("bell_no_round"), _cite("4")),
        stray_void=Note("void_without_round", say("void_no_round"), _cite("5(1)")),
        reopened=Note("bets_reopened", say("bets_reopened"), _cite("4")),
        missing=Doubt(say("round_events"), REMEDY),
        contradicted=Doubt(CONTRADICT, REMEDY_COUNT),
        declared_before=Doubt(say("declared_before"), REMEDY_COUNT),
    )


class FantanOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house."""

    opening: Annotated[
        Literal["console", "implied"],
        option("arts. 2, 4", "bets begin when the console opens them, or as soon as the heap is covered"),
    ] = "console"
    bets_offered: Annotated[
        tuple[str, ...], option("art. 6", f"bet families offered, of {' '.join(FAMILIES)}; empty: all")
    ] = ()
    smallest_chip: Annotated[
        int, msgspec.Meta(ge=1), option("art. 9", "minor units that a prize less its commission can be paid in")
    ] = 1
    rounding: Annotated[Rounding, option("art. 9", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a bet that the text does not have."""
        check_offered(self.bets_offered, FAMILIES, "art. 6")


def _needs(_options: Any) -> tuple[Need, ...]:
    return (
        Need("that a heap is set apart and covered", (ButtonsSeparated,), "arts. 2, 4"),
        the_bell("arts. 4, 5(1)"),
        Need("the count of the buttons", (ButtonsCounted,), "arts. 3(1), 5(1)", decides=True),
    )


class FantanState(Table, frozen=True):
    """`separated`: a heap is under its cover."""

    told: tuple[ButtonsCounted, ...] = ()
    separated: bool = False


class Fantan(SingleOutcome[FantanState]):
    """The ruleset."""

    id: ClassVar[str] = "macau.fantan"
    title: ClassVar[str] = "Fantan, Macau"
    law: ClassVar[str] = "Despacho 58/2004"
    Options: ClassVar[type[FantanOptions]] = FantanOptions
    needs: ClassVar[Needs] = _needs
    State: ClassVar[type[FantanState]] = FantanState
    Facts: ClassVar[type[RoundFacts]] = FantanFacts
    outcome: ClassVar[type[ButtonsCounted]] = ButtonsCounted
    starts: ClassVar = (ButtonsSeparated,)
    told_again_stands: ClassVar[bool] = True

    def __init__(self, options: FantanOptions) -> None:
        """Compute, once, the winners of each number."""
        super().__init__(terms(self.id, "2004", options, VOID), Board(PAYTABLE, options.bets_offered), _rulings())
        self.options = options
        self._endings = {number: (*self._board.ending(number), self._articles(number)) for number in NUMBERS}

    @classmethod
    def whole_rounds(cls) -> Iterator[tuple[Event, ...]]:
        """One round for each remainder of a heap."""
        for count in range(61, 65):
            yield ButtonsSeparated(), BetsOpened(), BetsClosed(), ButtonsCounted(count)

    def _articles(self, number: int) -> tuple[str, ...]:
        """The articles of a result with this number; with art. 8 where a returned bet is offered."""
        comes_back = ("8",) if self._board.ending(number)[1] else ()
        return tuple(map(_cite, ("3(1)", *(("3(2)",) if number == 4 else ()), "5(1)", "6", "7", *comes_back, "9")))

    def view(self, table: FantanState) -> View:
        """Phase: idle, covered, betting, closed, suspended, paying. `say` is what the croupier calls now."""
        round_, last = table.round, table.last
        if round_ is not None:
            detail: dict[str, Any] = {"separated": table.separated}
            if round_.suspended:
                return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
            if round_.closed:
                return View(round_.id, "closed", {**detail, "say": BELL})
            return View(round_.id, "betting" if self._betting_began(table) else "covered", detail)
        if last is None:
            return View("", "idle", {})
        counted = _outcome(table.told[0])
        if last.suspended:
            return View(last.id, "suspended", {**counted, "reason": last.suspended})
        return View(last.id, "paying", {**counted, "say": CALLS[counted["number"]]})

    # ---- the heap and the lamps

    def play(self, table: FantanState, seen: Envelope) -> Step:
        """Apply the separation of the heap, the lifting of its cover, or a lamp."""
        match seen.event:
            case ButtonsSeparated():
                return self._separated(table, seen)
            case ButtonsUncovered() if table.round is not None:
                return self._uncovered(self.witness(table, seen), seen)
            case LampsLit(lamps=lamps) if table.phase == "resolved" and not table.unseen:
                return table, self._wrong_lamp(table, seen, lamps)
            case _:
                return table, ()

    def _betting_began(self, table: FantanState) -> bool:
        """Whether a bet may already lie on the table."""
        laid = table.round is not None and bool(table.round.wagers)
        return table.opened or laid or self.options.opening == "implied"

    def _separated(self, table: FantanState, seen: Envelope) -> Step:
        if table.phase == "open":
            table = self.witness(table, seen)
            if not (table.separated and self._betting_began(table)):
                return replace(table, separated=True), ()
            text = say("separated_again")
            table = self.note(table, seen, Note("separated_again", text, _cite("4")))
            return self.hold(table, seen, Doubt(say("heap_again"), REMEDY))
        if table.phase == "closed":
            text = say("separated_before_count")
            table = self.note(table, seen, Note("separated_before_count", text, _cite("5(1)")))
        table, verdicts = self.begin(table, seen)
        return replace(table, separated=True), verdicts

    def _uncovered(self, table: FantanState, seen: Envelope) -> Step:
        """Arts. 2, 4: suspend a round whose heap was seen before the bell. After the bell the dealer counts it."""
        counting = table.phase == "closed" and not seen.event.overtaken
        if table.phase == "suspended" or counting or not table.separated:
            return table, ()
        if table.phase == "open" and not self._betting_began(table):
            return replace(table, separated=False), ()
        seen_by_all = say("heap_seen")
        return self.hold(table, seen, Doubt(seen_by_all, REMEDY))

    def _wrong_lamp(self, table: FantanState, seen: Envelope, lamps: tuple[str, ...]) -> tuple[Verdict, ...]:
        """Art. 5(2): the lamp of the number lights beside a result. Other lamps of the layout are not numbers."""
        number = str(number_of(table.told[0].count))
        wrong = next((lamp for lamp in lamps if lamp in LAMPS and lamp != number), None)
        if wrong is None or table.last is None:
            return ()
        return noted(
            "wrong_lamp", say("wrong_lamp", lamp=wrong, round=table.last.id, number=number), _cite("5(2)"), seen
        )

    # ---- the round

    def at_opening(self, table: FantanState) -> Note | None:
        """Art. 4: bets come after the heap."""
        text = say("bets_before_heap")
        return None if table.separated else Note("bets_before_separation", text, _cite("4"))

    def opens_next(self, table: FantanState, seen: Envelope) -> bool:
        """Whether an opening belongs to the next round: only after the bell."""
        return table.round is not None and bool(table.round.suspended) and table.round.closed

    def at_bet(self, table: FantanState, bet: WagerPlaced | WagerWithdrawn) -> Note | None:
        """Art. 4: bets come after the heap."""
        if table.separated or table.phase == "suspended":
            return None
        return Note("early_bet", say("early_bet_heap", seat=bet.seat, bet=bet.bet), _cite("4"))

    def at_bell(self, table: FantanState, seen: Envelope) -> tuple[FantanState, Null | None]:
        """Art. 4: without a heap, every bet was laid too early."""
        if table.separated or table.phase == "suspended":
            return table, None
        note = Note("not_separated", say("bell_no_heap"), _cite("4"))
        return table, Null(say("not_separated"), (_cite("4"),), note)

    # ---- the count

    def check(self, table: FantanState, outcome: ButtonsCounted) -> Note | Null | None:
        """Arts. 2, 4: the buttons are counted after the bell, and there is at least one."""
        if table.phase == "open":
            note = Note("counted_before_bell", say("counted_before_bell"), _cite("4"))
            return Null(say("counted_before_bell"), (_cite("4"),), note)
        if self.is_outcome(outcome):
            return None
        text = say("nothing_counted")
        return Note("nothing_counted", text, _cite("2"))

    def is_outcome(self, outcome: ButtonsCounted) -> bool:
        """Art. 2: at least one button lies under the cover."""
        return outcome.count > 0

    def same(self, one: ButtonsCounted, other: ButtonsCounted) -> bool:
        """Whether the remainders are equal; a dealer may know only the remainder."""
        return number_of(one.count) == number_of(other.count)

    def contradiction(self, last: Round, first: ButtonsCounted, other: ButtonsCounted) -> Note:
        """The note of two different remainders."""
        reason = say("counts_of", round=last.id, first=number_of(first.count), second=number_of(other.count))
        return Note("counts_contradict", reason, _cite("5(1)"))

    def stray(self, outcome: ButtonsCounted) -> Note:
        """The note of a count without a heap."""
        return Note("count_without_round", say("counted_no_round"), _cite("5(1)"))

    def endings(self) -> Iterable[tuple[Win, ...]]:
        """What wins on each number."""
        return (winners for winners, _, _ in self._endings.values())

    def result(self, round_: Round, outcome: ButtonsCounted) -> Result:
        """Arts. 3, 5 to 9."""
        counted = _outcome(outcome)
        number = counted["number"]
        winners, pushes, law = self._endings[number]
        return resolved(
            round_,
            self._terms,
            outcome=counted,
            winners=winners,
            pushes=pushes,
            announcements=CALLS[number],
            law=(*law, _cite("5(3)")) if outcome.fragments else law,
        )


def number_of(count: int) -> int:
    """Arts. 3(1), 3(2): what is left when the buttons are taken away by fours; nothing left is four."""
    return count % 4 or 4


def _outcome(counted: ButtonsCounted) -> dict[str, Any]:
    """The facts; `count` is the dealer's entry, which may be the remainder only."""
    number = number_of(counted.count)
    return {"number": number, "count": counted.count, "fragments": counted.fragments, "lamp": str(number)}
