"""Angola French bank (banca francesa): Decreto Executivo 261/22, article 3.

Three dice are thrown by hand. A total of 3 pays aces, 5 to 7 small, 14 to 16 big; any other total decides nothing. A
round may therefore last many throws: it is opened, closed by the bell or by its first throw, and ends with the throw
that decides. Between the throws the view counts them; the result has their number. `games/thrown_dice` describes how
dealer and recogniser report throws, and the effect of seized dice (3(5)).

Readings:

- 3(9): "throw again" is the custom of the game and not printed: after a total that decides nothing, and after a null
  throw, the bets stand. They are neither laid, changed nor taken back before the round is decided; by the option
  `between_throws` players may move them until the next throw.
- 3(8): a null throw does not end the round. It is noted with its reason, and one that the article does not print is
  irregular. A die on the floor, off the table, with a defect or a foreign substance: the next throw is irregular unless
  another set came into play before it.
- 3(7)b: dice that are stacked or lean are a null throw.
- 3(7)d: the dealer touched the dice before he announced the chance: its winners win, all other bets come back. Entered
  before the throw it concerns the next throw; entered after the result it corrects that.
- 3(10): "segundo o número anterior" in c means a and b. A chip on the line plays for half: half of it wins as much, or
  half of it is lost. The limits of the line are twice those of the table.
- 3(11): the layout is not printed: losing bets are collected from aces, then small, then big. Then prizes are paid.
- 3(16): a chip above the maximum is refused; a bet below the minimum goes back when the bets close.
- A round declared void: no article says what becomes of its bets; they come back. Where bets stand between throws, bets
  that are opened after one show that the throw which decided was not reported: the round is void, the bets come back.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations_with_replacement
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from protocols.contract.events import (
    BetsOpened,
    DealerRelieved,
    DiceDisturbed,
    DiceReplaced,
)
from protocols.contract.facts import FrenchBankFacts, RoundFacts
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.bets import ALONE, Board, Family, check_offered, names
from rules.engine.duties import Duties, Duty
from rules.engine.limits import HouseOptions, Range
from rules.engine.money import Rounding, settle
from rules.engine.rounds import Round, resolved, terms
from rules.engine.ruleset import Corrected, Resolved, Result, Settlement, Verdict, View, Win, option
from rules.engine.single_outcome import Doubt, Note, Null, Rulings, there
from rules.games.thrown_dice import NOT_FLAT, Throw, ThrownDice, ThrownTable
from rules.needs import Needs, thrown

Step: TypeAlias = tuple[ThrownTable, tuple[Verdict, ...]]

CHANCES: Final = {3: "aces", **dict.fromkeys((5, 6, 7), "small"), **dict.fromkeys((14, 15, 16), "big")}
"""3(9): what each total decides."""
ORDER: Final = ("aces", "small", "small_line", "big", "big_line")
"""3(11): the order in which losing bets are collected and prizes are paid."""
ACES_RATIO, SIZE_RATIO = 6, 200  # 3(16)
REPLACE_AFTER: Final = frozenset(
    {"a_die_on_the_floor", "a_die_off_the_table", "a_die_with_a_defect_or_a_foreign_substance"}
)
"""3(8): the null throws after which the set must be replaced."""
PRINTED: Final = REPLACE_AFTER | {"foreign_object", "not_all_dice_in_the_cup", "a_die_stuck_in_the_cup", NOT_FLAT}
"""3(7)b, 3(8): why a throw may be null."""
LOST_LINE: Final = "-1/2"


def _on(chance: str) -> Any:
    return lambda _, faces: CHANCES.get(sum(faces)) == chance


PAYTABLE: Final = (
    Family("aces", "61", "art. 3(9)a, 3(12)a", "total 3", ALONE, _on("aces")),
    Family("small", "1", "art. 3(9)b, 3(12)b", "total 5, 6 or 7", ALONE, _on("small")),
    Family("big", "1", "art. 3(9)c, 3(12)c", "total 14, 15 or 16", ALONE, _on("big")),
    Family("small_line", "1/2", "art. 3(10)a, 3(10)c", "as small, for half of the chips", ALONE, _on("small")),
    Family("big_line", "1/2", "art. 3(10)b, 3(10)c", "as big, for half of the chips", ALONE, _on("big")),
)
FAMILIES: Final = names(PAYTABLE)

CALLS: Final = {
    "aces": {"pt": "Ases", "zh-Hant": "三么", "en": "Aces"},
    "small": {"pt": "Pequeno", "zh-Hant": "小", "en": "Small"},
    "big": {"pt": "Grande", "zh-Hant": "大", "en": "Big"},
}
VOID: Final = {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "Void"}


def _cite(paragraph: str) -> str:
    return f"Decreto Executivo 261/22 art. 3{paragraph}"


DUTIES: Final[Duties] = (
    Duty("dice_change", _cite("(4)"), (DiceReplaced,)),
    Duty("thrower_relief", _cite("(17)"), (DealerRelieved,)),
)
RULINGS: Final = Rulings(
    bets_law=_cite("(9)"),
    late_bets_law=_cite("(9)"),
    stray_bets_law=_cite("(9)"),
    void_law=(_cite("(8)"),),
    never_ended=Null(say("never_decided"), (_cite("(9)"),)),
    stray_bell=Note("bell_without_round", say("bell_no_round"), _cite("(9)")),
    stray_void=Note("void_without_round", say("void_no_round"), _cite("(8)")),
    reopened=Note("bets_reopened", say("bets_reopened"), _cite("(9)")),
    missing=Doubt(say("round_events"), say("do_void_or_open")),
    contradicted=Doubt(say("readings"), say("do_look")),
    declared_before=Doubt(say("declared_before"), say("do_look")),
)


class FrenchBankOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house."""

    minimum: Annotated[int, msgspec.Meta(ge=0), option("art. 3(16)", "smallest bet, minor units; 0: not checked")] = 0
    maximum_aces: Annotated[
        int, msgspec.Meta(ge=0), option("art. 3(16)a", "largest bet on aces, up to 6 minima; 0: 6 minima")
    ] = 0
    maximum_small_big: Annotated[
        int, msgspec.Meta(ge=0), option("art. 3(16)b", "largest bet on small or big, up to 200 minima; 0: 200 minima")
    ] = 0
    between_throws: Annotated[
        Literal["bets_stand", "bets_may_change"],
        option("art. 3(9)", "whether players may move their bets after a throw that decides nothing"),
    ] = "bets_stand"
    reading_seconds: Annotated[
        float,
        msgspec.Meta(ge=0, le=60),
        option("art. 3(7)c", "a recogniser's reading within this time of the last report is of the same throw"),
    ] = 15.0
    bets_offered: Annotated[
        tuple[str, ...], option("art. 3(9), 3(10)", f"bets offered, of {' '.join(FAMILIES)}; empty: all")
    ] = ()
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a bet that the text does not have, or limits outside its proportions."""
        check_offered(self.bets_offered, FAMILIES, "art. 3(9)")
        for name, ratio, letter in (("maximum_aces", ACES_RATIO, "a"), ("maximum_small_big", SIZE_RATIO, "b")):
            given = getattr(self, name)
            if given and not self.minimum:
                raise ValueError(f"{name}: art. 3(16){letter}: give `minimum` too, the maximum is a multiple of it")
            if given and not self.minimum <= given <= ratio * self.minimum:
                allowed = f"{self.minimum} to {ratio * self.minimum}"
                raise ValueError(f"{name}: art. 3(16){letter}: up to {ratio} times the minimum: {allowed}")

    def range_of(self, bet: str) -> tuple[int, int]:
        """Smallest and largest amount on a place: a line has twice those of its chance (3(10)c)."""
        aces = bet == "aces"
        given, ratio = (self.maximum_aces, ACES_RATIO) if aces else (self.maximum_small_big, SIZE_RATIO)
        double = 2 if bet.endswith("_line") else 1
        return double * self.minimum, double * (given or ratio * self.minimum)


class FrenchBank(ThrownDice):
    """The ruleset."""

    id: ClassVar[str] = "angola.french-bank"
    title: ClassVar[str] = "French bank, Angola"
    law: ClassVar[str] = "Decreto Executivo 261/22 art. 3"
    Options: ClassVar[type[FrenchBankOptions]] = FrenchBankOptions
    needs: ClassVar[Needs] = thrown("art. 3(9)", "art. 3(7)a-c", "")
    Facts: ClassVar[type[RoundFacts]] = FrenchBankFacts
    starts: ClassVar = (BetsOpened,)

    def __init__(self, options: FrenchBankOptions) -> None:
        self.options = options
        self._moves = options.between_throws == "bets_may_change"
        board = Board(PAYTABLE, options.bets_offered)
        super().__init__(terms(self.id, "2022", options, VOID), board, RULINGS, options.reading_seconds)

    def view(self, table: ThrownTable) -> View:
        """Phase: idle, betting, closed, suspended, paying. `say` is what the dealer calls now."""
        round_, last, throw = table.round, table.last, table.current
        if round_ is not None:
            detail: dict[str, Any] = {"throws": table.throws, "null_throws": table.nulls}
            if throw is not None:
                detail |= {"say": VOID} if throw.null else {"faces": throw.faces, "total": sum(throw.faces)}
            if round_.suspended:
                return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
            betting = table.between or not round_.closed
            return View(round_.id, "betting" if betting else "closed", detail)
        if last is None:
            return View("", "idle", {})
        facts = _facts(table.told[0])
        if last.suspended:
            return View(last.id, "suspended", {**facts, "reason": last.suspended})
        return View(last.id, "paying", {**facts, "say": CALLS[facts["chance"]]})

    # ---- the round

    def play(self, table: ThrownTable, seen: Envelope) -> Step:
        """3(7)d: the dealer touched the dice: those of the next throw, or those that decided."""
        if not isinstance(seen.event, DiceDisturbed):
            return super().play(table, seen)
        if table.round is not None:
            return replace(self.witness(table, seen), touched=True), ()
        if table.last is None or table.unseen or table.told[0].touched:
            return table, ()
        last = there(self.witness(replace(table, round=table.last), seen).round)
        table = replace(table, last=last, told=tuple(replace(one, touched=True) for one in table.told))
        if last.suspended:
            return table, ()
        return table, (Corrected(replace(self.result(last, table.told[0]), supersedes=last.id)),)

    def opens_next(self, table: ThrownTable, seen: Envelope) -> bool:
        """Bets that are opened after an undecided throw are the next round's, unless they may be moved then."""
        return table.phase == "suspended" or (table.throws > 0 and not self._moves)

    def reopened(self, table: ThrownTable, seen: Envelope) -> ThrownTable:
        """Between two throws, bets may be opened where they may be moved."""
        return table if table.between else super().reopened(table, seen)

    def bell(self, table: ThrownTable, seen: Envelope) -> Step:
        """The bell ends the moving of bets, too."""
        if table.between:
            return self._stopped(self.witness(table, seen), seen), ()
        return super().bell(table, seen)

    def close_late(self, table: ThrownTable, seen: Envelope) -> Step:
        """A throw closes what no bell has closed."""
        return super().close_late(self._stopped(table, seen) if table.between else table, seen)

    def _stopped(self, table: ThrownTable, seen: Envelope) -> ThrownTable:
        """The moving of bets ends: their limits are judged as at the bell."""
        round_ = there(table.round)
        if round_.closed:
            round_ = self.judged(table, round_, seen)
        return replace(table, round=round_, between=False)

    def bet(self, table: ThrownTable, seen: Envelope) -> Step:
        """A bet is taken between two throws as before the first one."""
        if not table.between or table.phase != "closed":
            return super().bet(table, seen)
        moved, verdicts = super().bet(replace(table, round=replace(there(table.round), closed=False)), seen)
        return replace(moved, round=replace(there(moved.round), closed=True)), verdicts

    def article_limits(self) -> Mapping[str, Range]:
        """3(10)c, 3(16): from the minimum to its ratio, on a line twice as much."""
        if not self.options.minimum:
            return {}
        law = {bet: _cite("(10)c" if bet.endswith("_line") else "(16)") for bet in FAMILIES}
        return {bet: Range(*self.options.range_of(bet), law=law[bet]) for bet in FAMILIES}

    # ---- the throws

    def counts(self, table: ThrownTable, seen: Envelope, throw: Throw) -> Step:
        """3(8), 3(9): it is null, it decides nothing, or it decides the round."""
        if table.dice_set == "to_replace":
            note = Note("set_not_replaced", say("set_not_replaced"), _cite("(8)"))
            table = replace(self.note(table, seen, note), dice_set="in_play")
        if throw.null:
            table = self.null(table, seen, throw, _cite("(7)b") if throw.null == NOT_FLAT else _cite("(8)"))
            if throw.null not in PRINTED:
                table = self.note(table, seen, Note("null_not_named", say("null_not_named"), _cite("(8)")))
            return replace(
                table, dice_set="to_replace" if throw.null in REPLACE_AFTER else "in_play", between=self._moves
            ), ()
        if sum(throw.faces) not in CHANCES:
            return replace(self.undecided(table, seen, throw), between=self._moves), ()
        decided = replace(throw, touched=table.touched, throws=table.throws, nulls=table.nulls, shown=table.shown)
        result = self.result(there(table.round), decided)
        return self.fresh(table, last=table.round, told=(decided,), told_at=seen.time), (Resolved(result),)

    def contradiction(self, last: Round, first: Throw, other: Throw) -> Note:
        """The note of two different reports of the throw that decided."""
        return Note("readings_contradict", say("readings_of", round=last.id), _cite("(7)c"))

    def stray(self, outcome: Throw) -> Note:
        """The note of a throw without bets."""
        return Note("throw_without_round", say("thrown_no_round"), _cite("(9)"))

    # ---- the result

    def endings(self) -> Iterable[tuple[Win, ...]]:
        """What wins on each throw."""
        return (self._board.ending(faces)[0] for faces in combinations_with_replacement(range(1, 7), 3))

    def result(self, round_: Round, outcome: Throw) -> Result:
        """3(7)d, 3(9) to 3(14)."""
        facts = _facts(outcome)
        winners, _ = self._board.ending(outcome.faces)
        won = {win.bet for win in winners}
        pushes = tuple(bet for bet in self.board if bet not in won) if outcome.touched else ()
        lines = any(one.bet.endswith("_line") for one in round_.wagers)
        cited = ["(7)b", *(["(7)d"] if outcome.touched else []), *(["(8)"] if outcome.nulls else []), "(9)"]
        cited += [*(["(10)"] if lines else []), "(11)", "(12)", "(13)", "(14)"]
        result = resolved(
            round_,
            self._terms,
            outcome=facts,
            winners=winners,
            pushes=pushes,
            announcements=CALLS[facts["chance"]],
            law=tuple(map(_cite, cited)),
        )
        return replace(result, settlements=self._settled(round_, winners, pushes))

    def _settled(self, round_: Round, winners: tuple[Win, ...], pushes: tuple[str, ...]) -> tuple[Settlement, ...]:
        """3(10)c, 3(11), 3(14): half of a losing line comes back. Losers first, both in the order of the cloth."""
        kept = {win.bet for win in winners} | {*pushes}
        halves = tuple(Win(bet, LOST_LINE) for bet in ORDER if bet.endswith("_line") and bet not in kept)
        chip, rounding = self._terms.chip, self._terms.rounding
        settled = settle(round_.wagers, (*winners, *halves), pushes, chip=chip, rounding=rounding)
        return tuple(sorted(settled, key=lambda one: (one.bet in kept, ORDER.index(one.bet))))


def _facts(throw: Throw) -> dict[str, Any]:
    total = sum(throw.faces)
    facts = {"faces": throw.faces, "total": total, "chance": CHANCES[total]}
    facts |= {"throws": throw.throws, "null_throws": throw.nulls, "shown": throw.shown}
    return {**facts, "disturbed": throw.touched}
