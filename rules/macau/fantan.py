"""Macau fantan: Despacho Regulamentar Externo 58/2004.

The flow: the croupier sets a random heap of buttons apart under one metal cover, and covers the others (2). Only then
may bets be laid, until the bell and the announcement that the heap will be counted (4). The cover is lifted, the
buttons are counted off by fours, and the number that is left is called (5(1)); nothing left means four (3(2)). The
buttons are collected and the lamp of the number lights (5(2)). Fragments of broken buttons are not counted (5(3)). A
prize bears five per cent for the bank (9): `pays` is what is left of it, the printed prize stands beside it as `gross`.

Readings. The text has no void round. Any other order is an irregularity; the round counts where its number is certain
and only the ceremony was off (bets opened or laid before the heap was set apart: nobody knew it). It is void, and every
bet comes back, where a bet may have been made knowing the count (the heap was counted before the bell), or where no
heap was set apart before the bell: all bets were laid before they could be (4). A heap set apart again before anybody
could bet is another heap. Once bets may lie, nobody knows whether the first was seen: the round waits for a person, as
where its cover was lifted before the bell. So
it does where events are lost. It is never resolved then: a count that follows may be another heap's. The supervisor
declares it void, or the next heap voids it.

- After a loss, 2, 4: whether a heap was set apart is not known until one is seen to be: bets that are opened then wait.


A round without a count waits for one: the dealer counts and enters it at the console. He takes the buttons away by
fours and knows what is left, not how many there were: two counts are the same where their number is, and contradict
each other where it is not. Then the result is in doubt until it is paid (the croupier, who sees the buttons, lets the
first stand), counted again (the number that is told again stands) or declared void; the next heap voids it. The text
lets the next heap be set apart before the prizes are paid: what is unpaid then can no longer be corrected.
"""

from fractions import Fraction
from itertools import combinations, permutations
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    ButtonsUncovered,
    DeviceOnline,
    EventsMissed,
    LampsLit,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.topics import Envelope
from rules.engine.money import Rounding
from rules.engine.rounds import (
    Round,
    irregular,
    next_number,
    noted,
    resolved,
    taken_back_before,
    terms,
    voided,
    wager,
    witness,
)
from rules.engine.ruleset import (
    Bet,
    Closed,
    Corrected,
    Opened,
    Resolved,
    Result,
    Suspended,
    Verdict,
    View,
    Void,
    Voided,
    Win,
    option,
)

Step: TypeAlias = tuple["FantanState", tuple[Verdict, ...]]

NUMBERS: Final = range(1, 5)
COMMISSION: Final = Fraction(5, 100)  # art. 9
# Art. 7: the printed prizes.
GROSS: Final = {"kuoc": "1", "fan": "3", "nim": "2", "nga": "1/2", "sesamhong": "1/3"}
NET: Final = {family: str(Fraction(prize) * (1 - COMMISSION)) for family, prize in GROSS.items()}
# In the order of art. 6.
PAYTABLE: Final = (
    Bet("kuoc:a-b", NET["kuoc"], "arts. 6(1), 7(2), 9", "a or b is left"),
    Bet("fan:n", NET["fan"], "arts. 6(2)(1), 7(1)(1), 9", "n is left"),
    Bet("nim:w-p", NET["nim"], "arts. 6(2)(2), 7(1)(2), 8, 9", "w is left; on p the bet comes back"),
    Bet("nga:w1-w2-p", NET["nga"], "arts. 6(2)(3), 7(1)(3), 8, 9", "w1 or w2 is left; on p the bet comes back"),
    Bet("sesamhong:a-b-c", NET["sesamhong"], "arts. 6(2)(4), 7(1)(4), 9", "a, b or c is left"),
)
FAMILIES: Final = tuple(bet.id.partition(":")[0] for bet in PAYTABLE)

# What the croupier calls at the bell (4), at the end (5(1)), and of a void round.
BELL: Final = {"pt": "Vai-se contar", "zh-Hant": "停止下注，開攤", "en": "No more bets, counting"}
CALLS: Final = {
    1: {"pt": "Número premiado: um", "zh-Hant": "開一", "en": "One wins"},
    2: {"pt": "Número premiado: dois", "zh-Hant": "開二", "en": "Two wins"},
    3: {"pt": "Número premiado: três", "zh-Hant": "開三", "en": "Three wins"},
    4: {"pt": "Número premiado: quatro", "zh-Hant": "開四", "en": "Four wins"},
}
VOID: Final = {"pt": "Lance nulo", "zh-Hant": "此局無效", "en": "Void"}

REMEDY_COUNT: Final = "count again, or pay, and the first result stands, or declare the round void at the console"
REMEDY: Final = "declare the round void at the console, or set another heap apart: the open round is then void"
MISSING: Final = "events of this round may be missing"
CONTRADICT: Final = "two counts contradict each other"


class FantanOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house."""

    opening: Annotated[
        Literal["console", "implied"],
        option("arts. 2, 4", "bets begin when the console says so, or as soon as the heap is covered"),
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
        unknown = [family for family in self.bets_offered if family not in FAMILIES]
        if unknown:
            raise ValueError(f"bets_offered: art. 6 has no bet {unknown[0]!r}, it has {', '.join(FAMILIES)}")


class FantanState(Struct, frozen=True):
    """Where a table stands.

    `separated`: a heap stands under its cover. `opened`: the console opened the bets. `last` is the resolved round
    until it is paid, `counts` what was told of its heap, one for each number, the first decided; `missed`: events were
    lost since, so that a count may be another heap's. `unheard`: a heap may have been set apart unseen.
    """

    table: str
    day: str = ""
    rounds: int = 0
    round: Round | None = None
    separated: bool = False
    opened: bool = False
    last: Round | None = None
    counts: tuple[ButtonsCounted, ...] = ()
    missed: bool = False
    unheard: bool = False


class Ending(Struct, frozen=True):
    """All that follows from one number, worked out once."""

    winners: tuple[Win, ...]
    pushes: tuple[str, ...]
    law: tuple[str, ...]


class Fantan:
    """The ruleset."""

    id: ClassVar[str] = "macau.fantan"
    title: ClassVar[str] = "Fantan, Macau"
    law: ClassVar[str] = "Despacho 58/2004"
    Options: ClassVar[type[FantanOptions]] = FantanOptions
    State: ClassVar[type[FantanState]] = FantanState

    def __init__(self, options: FantanOptions) -> None:
        """Work out, once, what each number pays."""
        self.options = options
        self._terms = terms(self.id, "2004", options, VOID)
        families = options.bets_offered or FAMILIES
        self._bets = tuple(bet for bet in PAYTABLE if bet.id.partition(":")[0] in families)
        self.board = tuple(place for place in places() if place.partition(":")[0] in families)
        self._offered = frozenset(self.board)
        self._endings = {number: self._ending(number) for number in NUMBERS}

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of art. 6."""
        return self._bets

    def start(self, table: str) -> FantanState:
        """A table nobody has played on."""
        return FantanState(table)

    def view(self, state: FantanState) -> View:
        """Phase: idle, covered, betting, closed, suspended, paying. `say` is what the croupier calls now."""
        round_ = state.round
        if round_ is None:
            return self._view_between(state)
        detail: dict[str, Any] = {"separated": state.separated}
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if round_.closed:
            return View(round_.id, "closed", {**detail, "say": BELL})
        return View(round_.id, "betting" if self._betting(state, round_) else "covered", detail)

    def _view_between(self, state: FantanState) -> View:
        if state.last is None:
            return View("", "idle", {})
        told = _outcome(state.counts[0])
        if state.last.suspended:
            return View(state.last.id, "suspended", {**told, "reason": state.last.suspended})
        return View(state.last.id, "paying", {**told, "say": CALLS[told["number"]]})

    def apply(self, state: FantanState, seen: Envelope) -> Step:
        """One event."""
        match seen.event:
            case ButtonsSeparated():
                return self._separated(state, seen)
            case ButtonsUncovered() if state.round is not None:
                return self._uncovered(state, state.round, seen)
            case BetsOpened():
                return self._bets_opened(state, seen)
            case BetsClosed():
                return self._bell(state, seen)
            case ButtonsCounted() as counted:
                return self._counted(state, seen, counted)
            case RoundPaid():
                return self._paid(state, seen)
            case RoundVoided(reason=reason):
                return self._declared_void(state, seen, reason or "declared by the croupier")
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(state, seen, one)
            case LampsLit(lamps=lamps):
                return self._lit(state, seen, lamps)
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._missed(state, seen)
            case _:
                return state, ()

    # ---- the flow

    def _betting(self, state: FantanState, round_: Round) -> bool:
        """Whether a bet may lie already."""
        return state.opened or bool(round_.wagers) or self.options.opening == "implied"

    def _begin(
        self, state: FantanState, seen: Envelope, *, separated: bool = False, opened: bool = False
    ) -> tuple[FantanState, Round, tuple[Verdict, ...]]:
        """A new round; one that waits for a person, or for its count, ends first with its bets returned."""
        verdicts: tuple[Verdict, ...] = ()
        if state.round is not None:
            verdicts = (Voided(self._returned(state.round, seen, state.round.suspended or "never_counted")),)
        elif state.last is not None and state.last.suspended:
            result = self._returned(state.last, seen, state.last.suspended)
            verdicts = (Corrected(replace(result, supersedes=result.round)),)
        day, rounds = next_number(state.day, state.rounds, seen)
        unheard = state.unheard and not separated
        round_ = Round(f"{state.table}:{day}:{rounds}", (seen.id,), suspended=MISSING if unheard else "")
        begun = FantanState(state.table, day, rounds, round_, separated, opened, unheard=unheard)
        verdicts += (Opened(round_.id),)
        if unheard:
            verdicts += (Suspended(round_.id, MISSING, REMEDY),)
        return begun, round_, verdicts

    def _separated(self, state: FantanState, seen: Envelope) -> Step:
        round_ = state.round
        if round_ is None or round_.suspended:
            state, _, verdicts = self._begin(state, seen, separated=True)
            return state, verdicts
        if round_.closed:
            text = "another heap was set apart before this one was counted"
            round_ = _irregular(round_, "separated_before_count", text, "5(1)", seen)
            state, _, verdicts = self._begin(replace(state, round=round_), seen, separated=True)
            return state, verdicts
        round_ = witness(round_, seen)
        if state.separated and self._betting(state, round_):
            text = "the heap was set apart again while bets could lie on it"
            round_ = _irregular(round_, "separated_again", text, "4", seen)
            return self._suspend(state, round_, f"{text}: it may have been seen")
        return replace(state, round=round_, separated=True), ()

    def _uncovered(self, state: FantanState, round_: Round, seen: Envelope) -> Step:
        """Arts. 2, 4: what was seen before the bell nobody may bet on. After it the dealer counts what lies there."""
        round_ = witness(round_, seen)
        if round_.suspended or (round_.closed and not seen.event.overtaken):
            return replace(state, round=round_), ()
        if not state.separated:  # another one's
            return replace(state, round=round_), ()
        if not round_.closed and not self._betting(state, round_):
            return replace(state, round=round_, separated=False), ()
        return self._suspend(state, round_, "the cover was lifted while bets could lie on the heap: it was seen")

    def _bets_opened(self, state: FantanState, seen: Envelope) -> Step:
        verdicts: tuple[Verdict, ...] = ()
        round_ = state.round
        if round_ is None or (round_.suspended and round_.closed):
            state, round_, verdicts = self._begin(state, seen, opened=True)
        else:
            round_ = witness(round_, seen)
            if round_.closed:
                text = "bets were opened again after the bell"
                return replace(state, round=_irregular(round_, "bets_reopened", text, "4", seen)), ()
            if round_.suspended or state.opened:
                return replace(state, round=round_, opened=True), ()
        if not state.separated and not round_.suspended:
            text = "bets were opened before a heap was set apart and covered"
            round_ = _irregular(round_, "bets_before_separation", text, "4", seen)
        return replace(state, round=round_, opened=True), verdicts

    def _bell(self, state: FantanState, seen: Envelope) -> Step:
        round_ = state.round
        if round_ is None:
            return _note(state, "bell_without_round", "the bell rang, no round is open", "4", seen)
        round_ = witness(round_, seen)
        if round_.closed:
            return replace(state, round=round_), ()
        verdicts: tuple[Verdict, ...] = (Closed(round_.id),)
        if not state.separated and not round_.suspended:
            text = "the bell rang before a heap was set apart and covered"
            state, void = self._void(state, _irregular(round_, "not_separated", text, "4", seen), "not_separated", "4")
            return state, verdicts + void
        return replace(state, round=replace(round_, closed=True)), verdicts

    def _counted(self, state: FantanState, seen: Envelope, counted: ButtonsCounted) -> Step:
        round_ = state.round
        if round_ is None:
            return self._counted_again(state, seen, counted)
        round_ = witness(round_, seen)
        if round_.suspended:
            return replace(state, round=round_), ()
        if not round_.closed:
            text = "the buttons were counted before the bell"
            round_ = _irregular(round_, "counted_before_bell", text, "4", seen)
            return self._void(state, round_, "counted_before_bell", "4")
        if counted.count < 1:
            text = "a count of nothing is none: at least one button lies under the cover"
            return replace(state, round=_irregular(round_, "nothing_counted", text, "2", seen)), ()
        result = self._resolve(round_, counted)
        ended = FantanState(state.table, state.day, state.rounds, last=round_, counts=(counted,))
        return ended, (Resolved(result),)

    def _counted_again(self, state: FantanState, seen: Envelope, counted: ButtonsCounted) -> Step:
        """The same number changes nothing; another one, before the payment, puts the result in doubt."""
        last, number = state.last, number_of(counted.count)
        told = next((one for one in state.counts if number_of(one.count) == number), None)
        if last is not None and last.suspended:
            return self._counted_in_doubt(state, witness(last, seen), counted, told)
        if told is not None and not state.missed:
            return state, ()
        if last is None or state.missed or counted.count < 1:
            return _note(state, "count_without_round", "buttons were counted, no round waits for it", "5(1)", seen)
        text = f"two counts of {last.id} contradict each other: {number_of(state.counts[0].count)} and {number} left"
        last = replace(_irregular(last, "counts_contradict", text, "5(1)", seen), suspended=CONTRADICT)
        doubtful = replace(state, last=last, counts=(*state.counts, counted))
        return doubtful, (Suspended(last.id, last.suspended, REMEDY_COUNT),)

    def _counted_in_doubt(
        self, state: FantanState, last: Round, counted: ButtonsCounted, told: ButtonsCounted | None
    ) -> Step:
        """The number that is told again stands."""
        if state.missed or counted.count < 1:
            return replace(state, last=last), ()
        if told is None:
            return replace(state, last=last, counts=(*state.counts, counted)), ()
        last = replace(last, suspended="")
        result = self._resolve(last, told, supersedes=last.id)
        return replace(state, last=last, counts=(told,)), (Corrected(result),)

    def _paid(self, state: FantanState, seen: Envelope) -> Step:
        last = state.last
        if last is None:
            return state, ()
        counts, missed, unheard = state.counts[:1], state.missed, state.unheard
        paid = FantanState(state.table, state.day, state.rounds, counts=counts, missed=missed, unheard=unheard)
        if not last.suspended:
            return paid, ()
        last = witness(last, seen)
        if state.missed or seen.event.overtaken:  # it may be of a heap that was lost, or of the one before
            return replace(state, last=last), ()
        result = self._resolve(replace(last, suspended=""), state.counts[0], supersedes=last.id)
        return paid, (Corrected(result),)

    def _missed(self, state: FantanState, seen: Envelope) -> Step:
        """Nobody knows whether the cover stayed on, nor which heap a later count will be of."""
        round_ = state.round
        state = replace(state, unheard=True)
        if round_ is None:
            return replace(state, missed=state.missed or bool(state.counts)), ()
        if round_.suspended:
            return state, ()
        return self._suspend(state, witness(round_, seen), MISSING)

    def _lit(self, state: FantanState, seen: Envelope, lamps: tuple[str, ...]) -> Step:
        """Art. 5(2): beside a result stands its own lamp. Other lamps of the layout are nobody's number."""
        last = state.last
        if last is None or last.suspended or state.missed:
            return state, ()
        number = str(number_of(state.counts[0].count))
        wrong = [lamp for lamp in lamps if lamp in _LAMPS and lamp != number]
        if not wrong:
            return state, ()
        text = f"the lamp {wrong[0]} is lit, {last.id} left {number}"
        return _note(state, "wrong_lamp", text, "5(2)", seen)

    # ---- the ends of a round

    def _resolve(self, round_: Round, counted: ButtonsCounted, supersedes: str = "") -> Result:
        outcome = _outcome(counted)
        ending = self._endings[outcome["number"]]
        return resolved(
            round_,
            self._terms,
            outcome=outcome,
            winners=ending.winners,
            pushes=ending.pushes,
            announcements=CALLS[outcome["number"]],
            law=(*ending.law, _cite("5(3)")) if counted.fragments else ending.law,
            supersedes=supersedes,
        )

    def _void(
        self, state: FantanState, round_: Round, reason: str, article: str = "5(1)"
    ) -> tuple[FantanState, tuple[Verdict, ...]]:
        result = voided(round_, self._terms, Void(reason, "returned"), (_cite(article),))
        return FantanState(state.table, state.day, state.rounds, unheard=state.unheard), (Voided(result),)

    def _returned(self, round_: Round, seen: Envelope, reason: str) -> Result:
        """No number was called as 5(1) wants: no article speaks of it, nothing is guessed, the bets come back."""
        return voided(witness(round_, seen), self._terms, Void(reason, "returned"), (_cite("5(1)"),))

    def _declared_void(self, state: FantanState, seen: Envelope, reason: str) -> Step:
        if state.round is not None:
            return self._void(state, witness(state.round, seen), reason)
        if state.last is None:
            text = "a round was declared void, none is open or unpaid"
            return _note(state, "void_without_round", text, "5(1)", seen)
        if seen.event.overtaken:
            last, waits = taken_back_before(state.last, seen, REMEDY_COUNT)
            return replace(state, last=last), waits
        result = self._returned(state.last, seen, reason)
        over = FantanState(state.table, state.day, state.rounds, unheard=state.unheard)
        return over, (Corrected(replace(result, supersedes=result.round)),)

    def _suspend(self, state: FantanState, round_: Round, reason: str) -> Step:
        held = replace(round_, suspended=reason)
        return replace(state, round=held), (Suspended(held.id, reason, REMEDY),)

    # ---- bets

    def _wager(self, state: FantanState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        round_ = state.round
        if round_ is None:
            return _note(state, "bet_without_round", f"seat {one.seat} on {one.bet}", "4", seen)
        laid = wager(round_, one, self._offered, _cite("4" if round_.closed else "6"), seen)
        early = not state.separated and not round_.suspended
        if isinstance(one, WagerPlaced) and early and laid.wagers != round_.wagers:
            text = f"seat {one.seat} on {one.bet} before a heap was set apart and covered"
            laid = _irregular(laid, "early_bet", text, "4", seen)
        return replace(state, round=laid), ()

    def _ending(self, number: int) -> Ending:
        winners, pushes = [], []
        for place in self.board:
            family = place.partition(":")[0]
            wins, returns = numbers_of(place)
            if number in wins:
                winners.append(Win(place, NET[family], GROSS[family]))
            elif number in returns:
                pushes.append(place)
        articles = ["3(1)", *(["3(2)"] if number == 4 else []), "5(1)", "6", "7", *(["8"] if pushes else []), "9"]
        return Ending(tuple(winners), tuple(pushes), tuple(map(_cite, articles)))


_LAMPS: Final = frozenset(map(str, NUMBERS))


def number_of(count: int) -> int:
    """Arts. 3(1), 3(2): what is left when the buttons are taken away by fours; nothing left is four."""
    return count % 4 or 4


def _outcome(counted: ButtonsCounted) -> dict[str, Any]:
    """`count` is as it was told: a dealer may know no more than what was left."""
    number = number_of(counted.count)
    return {"number": number, "count": counted.count, "fragments": counted.fragments, "lamp": str(number)}


def _cite(article: str) -> str:
    return f"Despacho 58/2004 art. {article}"


def _irregular(round_: Round, code: str, text: str, article: str, seen: Envelope) -> Round:
    return irregular(round_, code, text, _cite(article), seen)


def _note(state: FantanState, code: str, text: str, article: str, seen: Envelope) -> Step:
    return state, noted(code, text, _cite(article), seen)


def places() -> tuple[str, ...]:
    """Every place on the board, in the order of art. 6."""
    return (
        *(f"kuoc:{a}-{b}" for a, b in combinations(NUMBERS, 2)),
        *(f"fan:{n}" for n in NUMBERS),
        *(f"nim:{w}-{p}" for w, p in permutations(NUMBERS, 2)),
        *(f"nga:{v}-{w}-{p}" for v, w in combinations(NUMBERS, 2) for p in NUMBERS if p not in {v, w}),
        *(f"sesamhong:{a}-{b}-{c}" for a, b, c in combinations(NUMBERS, 3)),
    )


def numbers_of(place: str) -> tuple[frozenset[int], frozenset[int]]:
    """Art. 6: the numbers on which a place wins, and those on which its bet comes back."""
    family, _, written = place.partition(":")
    numbers = [int(number) for number in written.split("-")]
    if family in {"nim", "nga"}:
        return frozenset(numbers[:-1]), frozenset(numbers[-1:])
    return frozenset(numbers), frozenset()
