"""Macau cussec: Despacho Regulamentar Externo 57/2004 with 69/2006 (edition 2004) and 31/2003 (edition 2003).

The flow: the croupier covers the dice and shakes them, by three pulls of the lever or one electronic agitation, then
opens the bets (2(1)); the bell closes them (3(1)); the dome is lifted, the result read (3(2)), the prizes are paid, and
only then may the dice be covered again (4). Stacked or leaning dice make the throw void and the operation is repeated
(3(3)): the bets stand on the cloth; in edition 2004 they may be taken back, kept or changed (3(4)), in edition 2003
they may only be added to (3(3)).

Readings. Any other order is an irregularity. The texts do not say what becomes of the throw; it counts where its
result is certain and only the ceremony was off (a wrong number of pulls, bets opened too early, dice covered before
the prizes were paid). It is void, as in 3(3), where a bet may have been made knowing the dice: the dome was off or the
dice were read before the bell, they were shaken after it, or they were never shaken under the dome and still lie as
everybody last saw them. A round that cannot be read waits for a person; a new one voids it with the bets returned. A
second reading that contradicts the first puts the result in doubt until it is paid (the croupier, who sees the dice,
lets it stand) or declared void. Between a void throw and the next covering the cloth is open to what the edition
allows. A chip laid before the bets were opened counts, and is noted.

`single` pays by how many dice show the number (6(3)). `double` is "combinação de dois dados": at least two by the
letter, exactly two as an option. Even and odd win on a triple, since art. 7 takes only small and big away: without a
house edge; losing on a triple is an option.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from protocols.events import (
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceUncovered,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.topics import Envelope
from rules.money import Rounding
from rules.rounds import Round, irregular, next_number, resolved, terms, voided, wager, witness
from rules.ruleset import (
    Bet,
    Closed,
    Corrected,
    Irregularity,
    Noted,
    Opened,
    Resolved,
    Result,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    Wager,
    Win,
    option,
)

PULLS = 3
FACES = range(1, 7)
TOTALS = range(4, 18)
# In the order of arts. 5 and 6 of edition 2004; edition 2003 has the first six, under the same numbers.
PAYTABLE = (
    Bet("small", "1", "arts. 5(1), 6(1), 7", "total 4 to 10; loses on a triple"),
    Bet("big", "1", "arts. 5(2), 6(2), 7", "total 11 to 17; loses on a triple"),
    Bet("single:n", "1, 2 or 3", "arts. 5(3), 6(3)", "n on one, two or three dice"),
    Bet("triple:n", "150", "arts. 5(4), 6(4)", "n on all three dice"),
    Bet("any_triple", "24", "arts. 5(5), 6(5)", "any number on all three dice"),
    Bet("total:n", "50, 18, 14, 12, 8 or 6", "arts. 5(6), 6(6)", "the sum of the dice, 4 to 17"),
    Bet("even", "1", "arts. 5(7), 6(7)", "an even total"),
    Bet("odd", "1", "arts. 5(8), 6(8)", "an odd total"),
    Bet("double_and_single:nn-m", "50", "arts. 5(9), 6(9)", "n on two dice and m on the third"),
    Bet("three_dice:l-m-n", "30", "arts. 5(10), 6(10)", "these three different numbers"),
    Bet("two_dice:m-n", "5", "arts. 5(11), 6(11)", "these two different numbers on two of the dice"),
    Bet("double:n", "8", "arts. 5(12), 6(12)", "n on two dice"),
    Bet("four_numbers:k-l-m-n", "7", "arts. 5(13), 6(13)", "three different numbers, all of them among these four"),
)
FAMILIES = tuple(bet.id.partition(":")[0] for bet in PAYTABLE)
FAMILIES_2003 = FAMILIES[:6]
# Art. 6(6): what the totals pay; 5, 16 and 6, 15 are the house's choice in edition 2004.
TOTAL_PAYS = {4: 50, 5: 18, 6: 14, 7: 12, 8: 8, 9: 6, 10: 6, 11: 6, 12: 6, 13: 8, 14: 12, 15: 14, 16: 18, 17: 50}

# What the croupier calls at the opening, where the house lets him (2(3)), at the bell (3(1)), of a void throw (3(3)).
OPENING = {"pt": "Façam as vossas apostas", "zh-Hant": "請下注", "en": "Place your bets"}
BELL = {"pt": "Abertura da jogada", "zh-Hant": "開", "en": "Opening"}
VOID = {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}


class CussecOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What the texts leave to the house (art. 8), and the readings that are possible."""

    edition: Annotated[
        Literal["2004", "2003"], option("57/2004 with 69/2006, 31/2003", "which text is in force at the table")
    ] = "2004"
    agitation: Annotated[
        Literal["lever", "electronic", "either"],
        option("arts. 1(2)(1), 2(1)", "three pulls of the lever or one electronic agitation (2003: lever only)"),
    ] = "lever"
    panel: Annotated[bool, option("art. 2(2)", "the panel lights when the dice are shaken (2003: always)")] = True
    announces: Annotated[bool, option("art. 2(3)", "the croupier also announces the opening of the bets (2004)")] = (
        False
    )
    lights: Annotated[bool, option("art. 3(2)", "the winning places light up on the board (2003: always)")] = True
    payment: Annotated[
        Literal["implied", "console"],
        option("art. 4", "whether the dealer console reports the payment before the dice may be covered again"),
    ] = "implied"
    bets_offered: Annotated[
        tuple[str, ...],
        option("arts. 5, 8", f"bet families offered, of {' '.join(FAMILIES)}; empty: all of the edition"),
    ] = ()
    total_5_16: Annotated[
        int, msgspec.Meta(ge=18, le=30), option("art. 6(6)(2)", "what the totals 5 and 16 pay (2003: 18)")
    ] = 18
    total_6_15: Annotated[
        int, msgspec.Meta(ge=14, le=18), option("art. 6(6)(3)", "what the totals 6 and 15 pay (2003: 14)")
    ] = 14
    even_odd_on_triple: Annotated[
        Literal["win", "lose"], option("arts. 5(7)-(8), 7", "even and odd on a triple: by the text they win")
    ] = "win"
    double: Annotated[
        Literal["at_least_two", "exactly_two"], option("art. 5(12)", "whether a double also wins on its triple")
    ] = "at_least_two"
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        families = FAMILIES
        if self.edition == "2003":
            families = FAMILIES_2003
            self._check_2003()
        unknown = [family for family in self.bets_offered if family not in families]
        if unknown:
            text = f"art. 5 of edition {self.edition} has no bet {unknown[0]!r}, it has {', '.join(families)}"
            raise ValueError(f"bets_offered: {text}")

    def _check_2003(self) -> None:
        if self.agitation != "lever":
            raise ValueError("agitation: 31/2003 arts. 1(2)(1), 2: the dice are shaken by the lever only")
        if not self.panel:
            raise ValueError("panel: 31/2003 art. 2: the panel always lights")
        if self.announces:
            raise ValueError("announces: 31/2003 art. 2: the panel opens the bets, nobody announces it")
        if not self.lights:
            raise ValueError("lights: 31/2003 art. 3(2): the winning places always light")
        if self.total_5_16 != 18:
            raise ValueError("total_5_16: 31/2003 art. 6(6): the totals 5 and 16 pay 18")
        if self.total_6_15 != 14:
            raise ValueError("total_6_15: 31/2003 art. 6(6): the totals 6 and 15 pay 14")
        if self.even_odd_on_triple != "win":
            raise ValueError("even_odd_on_triple: 31/2003 art. 5 has no even and odd")
        if self.double != "at_least_two":
            raise ValueError("double: 31/2003 art. 5 has no double")


class CussecState(Struct, frozen=True):
    """Where a table stands.

    `covered`: the dome is known to be on. `pulls` and `agitations` count the shaking under it. `carried` is the cloth
    after a void throw, until the next round takes it over: that one is `repeated`, and `locked` is what may not be
    taken off it. `last` and `reading` are the resolved round until it is paid: it can still be corrected.
    """

    table: str
    day: str = ""
    count: int = 0
    round: Round | None = None
    covered: bool = False
    pulls: int = 0
    agitations: int = 0
    opened: bool = False
    repeated: bool = False
    carried: Round | None = None
    locked: tuple[Wager, ...] = ()
    last: Round | None = None
    reading: DiceRead | None = None


class Throw(Struct, frozen=True):
    """All that follows from one throw, worked out once."""

    winners: tuple[Win, ...]
    outcome: dict[str, Any]
    announcements: dict[str, str]
    law: tuple[str, ...]


class Cussec:
    """The ruleset."""

    id: ClassVar[str] = "macau.cussec"
    title: ClassVar[str] = "Cussec, Macau"
    law: ClassVar[str] = "Despacho 57/2004 with 69/2006; edition 2003: Despacho 31/2003"
    Options: ClassVar[type[CussecOptions]] = CussecOptions
    State: ClassVar[type[CussecState]] = CussecState

    def __init__(self, options: CussecOptions) -> None:
        """Work out, once, what wins on each of the 216 throws."""
        self.options = options
        self._2003 = options.edition == "2003"
        self._terms = terms(self.id, options.edition, options, VOID)
        self._total_pays = {
            **TOTAL_PAYS,
            **dict.fromkeys((5, 16), options.total_5_16),
            **dict.fromkeys((6, 15), options.total_6_15),
        }
        families = options.bets_offered or (FAMILIES_2003 if self._2003 else FAMILIES)
        totals = f"50, {options.total_5_16}, {options.total_6_15}, 12, 8 or 6"
        self._bets = tuple(
            replace(bet, pays=totals) if bet.id == "total:n" else bet
            for bet in PAYTABLE
            if bet.id.partition(":")[0] in families
        )
        self._mechanisms = ("lever", "electronic") if options.agitation == "either" else (options.agitation,)
        self.board = tuple(bet for bet in places() if bet.partition(":")[0] in families)
        self._offered = frozenset(self.board)
        sorted_throws = {faces: self._throw(faces) for faces in product(FACES, repeat=3) if sorted(faces) == [*faces]}
        self._throws: dict[tuple[int, ...], Throw] = {
            (a, b, c): sorted_throws[tuple(sorted((a, b, c)))] for a, b, c in product(FACES, repeat=3)
        }

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of art. 5."""
        return self._bets

    def start(self, table: str) -> CussecState:
        """A table nobody has played on."""
        return CussecState(table)

    def view(self, state: CussecState) -> View:
        """Phase: idle, paying, covered, betting, closed, uncovered, suspended. `say` is what the croupier calls now."""
        if state.round is None:
            return self._view_between(state)
        round_ = state.round
        shaken = bool(state.pulls or state.agitations)
        detail: dict[str, Any] = {"pulls": state.pulls, "agitations": state.agitations}
        if self.options.panel:
            detail["panel"] = shaken and not round_.closed
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if round_.closed:
            return View(round_.id, "closed" if state.covered else "uncovered", {**detail, "say": BELL})
        if state.opened:
            return View(round_.id, "betting", {**detail, "say": OPENING} if self.options.announces else detail)
        return View(round_.id, "covered", detail)

    def _view_between(self, state: CussecState) -> View:
        if state.last is None or state.reading is None:
            return View("", "idle", {})
        throw = self._throws[state.reading.faces]
        if state.last.suspended:
            return View(state.last.id, "suspended", {**throw.outcome, "reason": state.last.suspended})
        return View(state.last.id, "paying", {**throw.outcome, "say": throw.announcements})

    def apply(self, state: CussecState, seen: Envelope) -> tuple[CussecState, tuple[Verdict, ...]]:
        """One event."""
        match seen.event:
            case DiceCovered():
                return self._covered(state, seen)
            case DiceAgitated() as agitation:
                return self._agitated(state, seen, agitation)
            case BetsOpened():
                return self._bets_opened(state, seen)
            case BetsClosed():
                return self._bell(state, seen)
            case DiceUncovered():
                return self._uncovered(state, seen)
            case DiceRead() as reading:
                return self._read(state, seen, reading)
            case RoundPaid():
                return self._paid(state, seen)
            case RoundVoided(reason=reason):
                return self._declared_void(state, seen, reason or "declared by the croupier")
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(state, seen, one)
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._missed(replace(state, covered=False), seen)
            case _:
                return state, ()

    # ---- the flow

    def _begin(self, state: CussecState, seen: Envelope) -> tuple[CussecState, Round, tuple[Verdict, ...]]:
        """A new round takes over the cloth; one that waits for a person ends first, its bets returned."""
        verdicts: tuple[Verdict, ...] = ()
        if state.round is not None:
            result = self._returned(state.round, seen, state.round.suspended or "never_read")
            verdicts = (Voided(result),)
        elif state.last is not None and state.last.suspended:
            result = self._returned(state.last, seen, state.last.suspended)
            verdicts = (Corrected(replace(result, supersedes=result.round)),)
        day, count = next_number(state.day, state.count, seen)
        cloth = state.carried or Round("")
        round_ = witness(replace(cloth, id=f"{state.table}:{day}:{count}"), seen)
        repeated = state.carried is not None
        locked = state.locked if repeated else ()
        begun = CussecState(state.table, day, count, round_, covered=state.covered, repeated=repeated, locked=locked)
        return begun, round_, (*verdicts, Opened(round_.id))

    def _covered(self, state: CussecState, seen: Envelope) -> tuple[CussecState, tuple[Verdict, ...]]:
        round_ = state.round
        if round_ is not None and not round_.suspended:
            if state.covered:
                return replace(state, round=witness(round_, seen)), ()
            if not round_.closed:
                # The bets were opened, or the dice shaken, without the dome: noted then. Now a shaking may count.
                return replace(state, round=witness(round_, seen), covered=True), ()
            text = "the dice were covered before they were read"
            state = replace(state, round=self._irregular(round_, "covered_before_reading", text, "4", seen))
        unpaid = state.last if self.options.payment == "console" else None
        state, round_, verdicts = self._begin(replace(state, covered=True), seen)
        if unpaid is not None:
            text = f"the dice were covered before {unpaid.id} was paid"
            state = replace(state, round=self._irregular(round_, "covered_before_payment", text, "4", seen))
        return state, verdicts

    def _agitated(
        self, state: CussecState, seen: Envelope, agitation: DiceAgitated
    ) -> tuple[CussecState, tuple[Verdict, ...]]:
        verdicts: tuple[Verdict, ...] = ()
        round_ = state.round
        if round_ is None:
            state, round_, verdicts = self._begin(state, seen)
        round_ = witness(round_, seen)
        if round_.suspended:
            return replace(state, round=round_), ()
        if round_.closed:
            text = "the dice were shaken after the bell"
            return self._void(
                state, self._irregular(round_, "agitated_after_bell", text, "3(1)", seen), "agitated_after_bell", "3(1)"
            )
        if agitation.mode not in self._mechanisms:
            text = f"the dice were shaken by {agitation.mode}, authorised is {' or '.join(self._mechanisms)}"
            round_ = self._irregular(round_, "wrong_mechanism", text, "1(2)(1)", seen)
        if not state.covered:
            text = "the dice were shaken without the dome; this shaking does not count"
            return replace(state, round=self._irregular(round_, "agitated_uncovered", text, "2(1)", seen)), verdicts
        if state.opened:
            text = "the dice were shaken after the bets were opened"
            round_ = self._irregular(round_, "agitated_after_opening", text, "2(1)", seen)
        lever = agitation.mode == "lever"
        state = replace(
            state,
            round=round_,
            pulls=state.pulls + (agitation.cycles if lever else 0),
            agitations=state.agitations + (0 if lever else 1),
        )
        return state, verdicts

    def _bets_opened(self, state: CussecState, seen: Envelope) -> tuple[CussecState, tuple[Verdict, ...]]:
        verdicts: tuple[Verdict, ...] = ()
        round_ = state.round
        if round_ is None or round_.suspended:
            state, round_, verdicts = self._begin(state, seen)
        round_ = witness(round_, seen)
        if round_.closed:
            text = "bets were opened again after the bell"
            return replace(state, round=self._irregular(round_, "bets_reopened", text, "3(1)", seen)), ()
        if not state.opened:
            round_ = self._check_agitation(state, round_, seen)
        return replace(state, round=round_, opened=True), verdicts

    def _check_agitation(self, state: CussecState, round_: Round, seen: Envelope) -> Round:
        """Art. 2(1): before the bets, exactly three pulls of the lever or one electronic agitation."""
        if (state.pulls, state.agitations) in ((PULLS, 0), (0, 1)):
            return round_
        if not state.pulls and not state.agitations:
            text = "the dice were not shaken under the dome before the bets"
            return self._irregular(round_, "bets_before_agitation", text, "2(1)", seen)
        text = f"the dice were shaken by {state.pulls} pulls of the lever and {state.agitations} electronic agitations"
        return self._irregular(round_, "wrong_agitation", f"{text}, not by three or by one", "2(1)", seen)

    def _bell(self, state: CussecState, seen: Envelope) -> tuple[CussecState, tuple[Verdict, ...]]:
        if state.round is None:
            return self._note(state, "bell_without_round", "the bell rang, no round is open", "3(1)", seen)
        round_ = witness(state.round, seen)
        if round_.closed:
            return replace(state, round=round_), ()
        verdicts: tuple[Verdict, ...] = (Closed(round_.id),)
        if round_.suspended:
            return replace(state, round=replace(round_, closed=True)), verdicts
        if not state.opened:
            round_ = self._irregular(
                round_, "bell_without_opening", "the bell rang, but the bets were never opened", "2(1)", seen
            )
            round_ = self._check_agitation(state, round_, seen)
        round_ = replace(round_, closed=True)
        if not state.pulls and not state.agitations:
            state, void = self._void(state, round_, "not_agitated", "2(1)")
            return state, verdicts + void
        return replace(state, round=round_), verdicts

    def _uncovered(self, state: CussecState, seen: Envelope) -> tuple[CussecState, tuple[Verdict, ...]]:
        state = replace(state, covered=False)
        if state.round is None:
            return state, ()
        round_ = witness(state.round, seen)
        if round_.closed or round_.suspended:
            return replace(state, round=round_), ()
        text = "the dome was lifted before the bell"
        round_ = self._irregular(round_, "uncovered_before_bell", text, "3(1)", seen)
        return self._void(state, round_, "uncovered_before_bell", "3(1)")

    def _read(self, state: CussecState, seen: Envelope, reading: DiceRead) -> tuple[CussecState, tuple[Verdict, ...]]:
        if state.round is None:
            return self._read_again(state, seen, reading)
        round_ = witness(state.round, seen)
        if round_.suspended:
            return replace(state, round=round_), ()
        if not round_.closed:
            text = "the dice were read before the bell"
            return self._void(
                state, self._irregular(round_, "read_before_bell", text, "3(1)", seen), "read_before_bell", "3(1)"
            )
        if state.covered:
            return self._suspend(state, round_, "the dice were read, but the dome was not seen to be lifted")
        if reading.stacked or reading.leaning:
            facts = {"faces": reading.faces, "stacked": reading.stacked, "leaning": reading.leaning}
            state, void = self._void(state, round_, "stacked_or_leaning", "3(3)", outcome=facts)
            return replace(state, reading=_settled(reading)), void
        if reading.faces not in self._throws:
            return self._suspend(state, round_, f"the reading of {len(reading.faces)} faces is no throw of three dice")
        result = self._resolve(round_, reading.faces)
        state = CussecState(
            state.table, state.day, state.count, covered=state.covered, last=round_, reading=_settled(reading)
        )
        return state, (Resolved(result),)

    def _read_again(
        self, state: CussecState, seen: Envelope, reading: DiceRead
    ) -> tuple[CussecState, tuple[Verdict, ...]]:
        """The same reading changes nothing; another one, before the payment, puts the result in doubt."""
        if _settled(reading) == state.reading:
            return state, ()
        if state.last is None:
            return self._note(state, "reading_without_round", "the dice were read, no round is open", "3(2)", seen)
        if state.last.suspended:
            return replace(state, last=witness(state.last, seen)), ()
        text = f"two readings of {state.last.id} contradict each other"
        last = self._irregular(state.last, "readings_contradict", text, "3(2)", seen)
        last = replace(last, suspended="two readings contradict each other")
        remedy = "look at the dice: pay, and the first result stands, or declare the round void at the console"
        return replace(state, last=last), (Suspended(last.id, last.suspended, remedy),)

    def _paid(self, state: CussecState, seen: Envelope) -> tuple[CussecState, tuple[Verdict, ...]]:
        last, paid = state.last, replace(state, last=None)
        if last is None or state.reading is None or not last.suspended:
            return paid, ()
        # Paid while in doubt: the croupier, who sees the dice, lets the first result stand.
        result = self._resolve(replace(witness(last, seen), suspended=""), state.reading.faces)
        return paid, (Corrected(replace(result, supersedes=result.round)),)

    def _missed(self, state: CussecState, seen: Envelope) -> tuple[CussecState, tuple[Verdict, ...]]:
        """Nobody knows whether the dome stayed on."""
        if state.round is None or state.round.suspended:
            return state, ()
        return self._suspend(state, witness(state.round, seen), "events of this round may be missing")

    # ---- the ends of a round

    def _resolve(self, round_: Round, faces: tuple[int, ...]) -> Result:
        throw = self._throws[faces]
        return resolved(
            round_,
            self._terms,
            outcome=throw.outcome,
            winners=throw.winners,
            announcements=throw.announcements,
            law=throw.law,
        )

    def _void(
        self,
        state: CussecState,
        round_: Round,
        reason: str,
        *articles: str,
        outcome: dict[str, Any] | None = None,
    ) -> tuple[CussecState, tuple[Verdict, ...]]:
        """The throw does not count and the operation is repeated; the bets lie on the cloth by the edition's rule."""
        result = self._null(round_, reason, articles, outcome)
        return self._repeat(state, round_), (Voided(result),)

    def _null(
        self, round_: Round, reason: str, articles: tuple[str, ...], outcome: dict[str, Any] | None = None
    ) -> Result:
        bets: Literal["may_change", "stand_may_add"] = "stand_may_add" if self._2003 else "may_change"
        law = dict.fromkeys(self._cite(article) for article in (*articles, "3(3)", "3(4)"))
        return voided(round_, self._terms, Void(reason, bets), tuple(law), outcome)

    def _repeat(self, state: CussecState, round_: Round) -> CussecState:
        return CussecState(
            state.table,
            state.day,
            state.count,
            covered=state.covered,
            carried=Round("", wagers=round_.wagers),
            locked=round_.wagers if self._2003 else (),
        )

    def _declared_void(
        self, state: CussecState, seen: Envelope, reason: str
    ) -> tuple[CussecState, tuple[Verdict, ...]]:
        if state.round is not None:
            return self._void(state, witness(state.round, seen), reason)
        if state.last is None:
            text = "a round was declared void, none is open or unpaid"
            return self._note(state, "void_without_round", text, "3(3)", seen)
        last = witness(state.last, seen)
        result = replace(self._null(last, reason, ()), supersedes=last.id)
        return self._repeat(state, last), (Corrected(result),)

    def _returned(self, round_: Round, seen: Envelope, reason: str) -> Result:
        """Nobody can say how the throw ended: no article speaks of it, nothing is guessed, the bets come back."""
        return voided(witness(round_, seen), self._terms, Void(reason, "returned"), (self._cite("3(2)"),))

    def _suspend(self, state: CussecState, round_: Round, reason: str) -> tuple[CussecState, tuple[Verdict, ...]]:
        held = replace(round_, suspended=reason)
        remedy = "declare the round void at the console, or cover the dice again: the open round is then void"
        return replace(state, round=held), (Suspended(held.id, reason, remedy),)

    # ---- bets

    def _wager(
        self, state: CussecState, seen: Envelope, one: WagerPlaced | WagerWithdrawn
    ) -> tuple[CussecState, tuple[Verdict, ...]]:
        cloth = state.round or state.carried
        if cloth is None:
            return self._note(state, "bet_without_round", f"seat {one.seat} on {one.bet}", "2(1)", seen)
        if isinstance(one, WagerWithdrawn) and not cloth.closed and self._stands(state, cloth, one):
            text = f"seat {one.seat} on {one.bet}: bets stand after a void throw"
            cloth = self._irregular(cloth, "bet_stands", text, "3(3)", seen)
        else:
            before = cloth.wagers
            cloth = wager(cloth, one, self._offered, self._cite("3(1)" if cloth.closed else "5"), seen)
            changeable = state.opened or state.repeated or state.round is None
            if isinstance(one, WagerPlaced) and cloth.wagers != before and not changeable:
                text = f"seat {one.seat} on {one.bet} before the bets were opened"
                cloth = self._irregular(cloth, "early_bet", text, "2(1)", seen)
        return (replace(state, carried=cloth) if state.round is None else replace(state, round=cloth)), ()

    def _stands(self, state: CussecState, cloth: Round, one: WagerWithdrawn) -> bool:
        """31/2003 art. 3(3): what lay there when the throw was void cannot be taken back."""
        locked = sum(wager.amount for wager in state.locked if (wager.seat, wager.bet) == (one.seat, one.bet))
        held = sum(wager.amount for wager in cloth.wagers if (wager.seat, wager.bet) == (one.seat, one.bet))
        return held - (one.amount or held) < locked

    # ---- words

    def _irregular(self, round_: Round, code: str, text: str, article: str, seen: Envelope) -> Round:
        return irregular(round_, code, text, self._cite(article), seen)

    def _note(
        self, state: CussecState, code: str, text: str, article: str, seen: Envelope
    ) -> tuple[CussecState, tuple[Verdict, ...]]:
        return state, (Noted(Irregularity(code, text, self._cite(article), seen.id)),)

    def _cite(self, article: str) -> str:
        """The article in the edition's numbering: 31/2003 has one paragraph in art. 2 and the void bets in 3(3)."""
        if self._2003:
            return f"Despacho 31/2003 art. {'2' if article == '2(1)' else '3(3)' if article == '3(4)' else article}"
        return f"Despacho 57/2004 art. {article}{' (69/2006)' if article == '3(4)' else ''}"

    def _throw(self, faces: tuple[int, ...]) -> Throw:
        dice = Counter(faces)
        total = sum(faces)
        triple = len(dice) == 1
        winners = tuple(Win(bet, str(pays)) for bet in self.board if (pays := self._pays(bet, dice, total)))
        outcome: dict[str, Any] = {"faces": faces, "total": total, "triple": triple}
        size = "" if triple else "small" if total <= 10 else "big"
        if size:
            outcome["size"] = size
        # Even and odd are named where they are bets of the edition and this throw decides them for the players.
        parity = "odd" if total % 2 else "even"
        if self._2003 or (triple and self.options.even_odd_on_triple == "lose"):
            parity = ""
        if parity:
            outcome["parity"] = parity
        if self.options.lights:
            outcome["lit"] = tuple(win.bet for win in winners)
        a, b, c = faces
        words = {
            "pt": f"Tripla de {a}" if triple else f"{a}, {b} e {c}",
            "zh-Hant": f"圍骰{a}" if triple else f"{a}、{b}、{c}",
            "en": f"Triple {a}" if triple else f"{a}, {b} and {c}",
        }
        said = (f"total {total}", f"{total}點", f"total {total}")
        calls = [said, *(_CALLS[word] for word in (size, parity) if word)]
        marks = {"pt": ", ", "zh-Hant": "，", "en": ", "}
        announcements = {
            language: marks[language].join((words[language], *(call[place] for call in calls)))
            for place, language in enumerate(words)
        }
        articles = ("3(2)", "5", "6", *(("7",) if triple else ()))
        return Throw(winners, outcome, announcements, tuple(self._cite(article) for article in articles))

    def _pays(self, bet: str, dice: Counter[int], total: int) -> int:
        """What `bet` wins on this throw, x to 1; 0 where it loses."""
        family, _, numbers = bet.partition(":")
        triple = len(dice) == 1
        match family:
            case "small":
                return int(4 <= total <= 10 and not triple)
            case "big":
                return int(11 <= total <= 17 and not triple)
            case "single":
                return dice[int(numbers)]
            case "triple":
                return 150 * (dice[int(numbers)] == 3)
            case "any_triple":
                return 24 * triple
            case "total":
                return self._total_pays[total] if total == int(numbers) else 0
            case "even" | "odd":
                wins = (total % 2 == 0) == (family == "even")
                return int(wins and not (triple and self.options.even_odd_on_triple == "lose"))
            case "double_and_single":
                pair, single = int(numbers[0]), int(numbers[3])
                return 50 * (dice[pair] == 2 and dice[single] == 1)
            case "three_dice":
                return 30 * (set(dice) == _set(numbers))
            case "two_dice":
                return 5 * (_set(numbers) <= set(dice))
            case "double":
                enough = (2,) if self.options.double == "exactly_two" else (2, 3)
                return 8 * (dice[int(numbers)] in enough)
            case _:  # four_numbers
                return 7 * (len(dice) == 3 and set(dice) <= _set(numbers))


_CALLS = {
    "small": ("pequeno", "小", "small"),
    "big": ("grande", "大", "big"),
    "even": ("par", "雙", "even"),
    "odd": ("ímpar", "單", "odd"),
}


def _set(numbers: str) -> set[int]:
    return {int(number) for number in numbers.split("-")}


def _settled(reading: DiceRead) -> DiceRead:
    """The reading whatever order the dice were told in; more than four faces say no more than four."""
    return replace(reading, faces=tuple(sorted(reading.faces))[:4])


def places() -> Iterator[str]:
    """Every place on the board, in the order of art. 5."""
    yield from ("small", "big")
    yield from (f"single:{n}" for n in FACES)
    yield from (f"triple:{n}" for n in FACES)
    yield "any_triple"
    yield from (f"total:{n}" for n in TOTALS)
    yield from ("even", "odd")
    yield from (f"double_and_single:{n}{n}-{m}" for n in FACES for m in FACES if m != n)
    yield from (f"three_dice:{a}-{b}-{c}" for a, b, c in combinations(FACES, 3))
    yield from (f"two_dice:{m}-{n}" for m, n in combinations(FACES, 2))
    yield from (f"double:{n}" for n in FACES)
    yield from (f"four_numbers:{a}-{b}-{c}-{d}" for a, b, c, d in combinations(FACES, 4))
