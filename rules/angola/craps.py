"""Angola craps: Decreto Executivo 261/22, article 4.

A round is one throw: the stickman opens the bets and hands the dice over, the shooter throws, the bets that the throw
decides are settled. All others stand, or travel with their total (come to come:6), and the next round takes them over.
The point lasts over rounds: a throw without a point is the first of a series (10a). `games/craps` defines what each bet
does on a throw.

Readings:

- 13(b): a bet that wins goes back to its player with the prize. A player who leaves it there bets again.
- 11(a): the odds are printed once for both sides; by the letter the don't side would favour the player by 20 to 100 %:
  the inverse by default (`dont_odds`). No bet is ever off: odds, travelled bets, numbers and hardways always work.
- 12: "9 para 15" on 4 and 10 is a misprint of 9 to 5 (`place_4_10`).
- 10(d): on the bar a don't come bet comes back, by analogy with 10(b).
- 10(c)-(d): come and don't come are taken only with a point up; a bet that travelled to a number was not laid there.
- 10(i): line bets are fixed while a point is up, come bets once they have travelled: neither taken back nor changed.
  A new line bet with a point up would change its amount from nothing: refused.
- 11(a): odds are refused above the bet that they stand beside, and above what may be paid (`maximum_payment`). They may
  be taken back from the opening of the bets until the throw, also after the bell.
- 12: of a bet on a number that is no multiple of the minimum the rest goes back when the bets close.
- 7: a null throw leaves all bets and the point as they are. A reason that 4(7) does not name is irregular.
- 5: the seats are numbered from the stickman's left; after a seven-out the order begins after the last shooter. Each
  player may decline, so a throw out of that order breaks no rule.
- 8: hands that pass, and dice that are replaced, are reported by the console or not at all (`handling`). 5: the
  shooter has a bet; irregular where the seat and any bets are known. The throw counts.
- 4: a reading that is not of two flat dice is irregular and no throw, and so is one that a recogniser makes before the
  bell: it may be of the throw before. The stickman enters it.
- 13(c)ii: the last "jogada" is a series: one that began in time is thrown to its end.
- A second throw that differs disputes the result until it is paid (the first stands, unless the other was called null),
  one is entered again (it stands) or the round is declared void.
- A round that a person declares void is no null throw: all bets go back and the series ends. After a loss of events the
  point and the bets are not known: each round waits for such a declaration, or for two supervisors.
- 10(i): line bets stay until the series ends, so a lost event must not take them away. Two supervisors may state the
  point and all bets that lie there (`series.stated`): if both statements agree they stand, and the round goes on.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import combinations_with_replacement
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    MOST,
    DiceRead,
    DiceReplaced,
    DiceThrown,
    HandPassed,
    LaidBet,
    SeriesStated,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.facts import CrapsFacts, RoundFacts, Stated
from protocols.contract.people import may_be_one_person
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.bets import ALONE, Board, Family, check_offered, names, prize
from rules.engine.cloth import amount_on, lying
from rules.engine.duties import Duties, LastRound
from rules.engine.limits import HouseOptions, Range
from rules.engine.money import Rounding, odds
from rules.engine.rounds import Round, declared, resolved, terms, undecided, voided, witness
from rules.engine.ruleset import Irregularity, Noted, Result, Verdict, View, Void, Wager, Win, option
from rules.engine.single_outcome import (
    Doubt,
    Move,
    Note,
    Null,
    Phase,
    Rulings,
    SingleOutcome,
    Table,
    bet_of,
    noted_on,
    there,
)
from rules.games.craps import (
    POINTS,
    Fate,
    Throw,
    before_seven,
    beside,
    come,
    dont_come,
    dont_pass,
    hardway,
    one_of,
    pass_line,
    seven_before,
)
from rules.needs import Needs, thrown

Step: TypeAlias = tuple["CrapsState", tuple[Verdict, ...]]
Words: TypeAlias = tuple[str, str]  # in Portuguese, in English

DICE: Final = 2
MOST_BETS: Final = 256
"""Bets that may be stated at once."""
OFF_TABLE: Final = "a_die_off_the_table"
NULL_REASONS: Final = (OFF_TABLE, "short_of_the_middle")
PLACE: Final = {5: "7/5", 6: "7/6", 8: "7/6", 9: "7/5"}
"""Each table chooses the odds on 4 and 10."""
PLACE_LOSE: Final = {4: "5/11", 5: "5/8", 6: "10/13", 8: "10/13", 9: "5/8", 10: "5/11"}
ODDS: Final = {4: "2", 5: "3/2", 6: "6/5", 8: "6/5", 9: "3/2", 10: "2"}
INVERSE: Final = {4: "1/2", 5: "2/3", 6: "5/6", 8: "5/6", 9: "2/3", 10: "1/2"}
LINES: Final = ("pass", "dont_pass")
BESIDE: Final = {"pass_odds": "pass", "dont_pass_odds": "dont_pass", "come_odds": "come", "dont_come_odds": "dont_come"}
"""Odds, and the bet that they stand beside."""
NEEDS_POINT: Final = ("come", "dont_come", "pass_odds", "dont_pass_odds")
"""Where they have not travelled to a number, they lie there with a point up only."""
VOID: Final = {"pt": "Golpe nulo", "en": "No throw"}

MISSING: Final = say("series_unknown")
REMEDY_LOOK: Final = say("do_look_throw")


def _cite(article: str) -> str:
    return f"Decreto Executivo 261/22 art. 4{article}"


def _note(reason: Reason, article: str) -> Note:
    return Note(reason.code, reason, _cite(article))


def _series_goes_on(table: "CrapsState") -> bool:
    """Whether this throw is a later one of its series; after a loss that is unknown."""
    return bool(table.point) or table.unknown


DUTIES: Final[Duties] = (LastRound("last_throw", _cite("(13)c)ii"), timedelta(minutes=5), _series_goes_on),)


# ---- the paytable


def _family(
    id_: str, pays: str | dict[int, str], article: str, text: str, fate: Fate, places: dict[str, Any] | None = None
) -> Family:
    """`pays`: what a place wins, or what it wins by its number or by the point. `places`: none for one alone."""

    def wins(covered: Any, throw: Throw) -> bool | str:
        if fate(covered, throw) != "wins":
            return False
        return True if isinstance(pays, str) else pays[covered or throw.point]

    printed = pays if isinstance(pays, str) else ", ".join(dict.fromkeys(pays.values()))
    return Family(
        *(id_, printed, f"art. 4{article}", text, dict(ALONE) if places is None else places, wins),
        returns=lambda covered, throw: fate(covered, throw) == "returns",
        stands=lambda covered, throw: fate(covered, throw) == "stands",
    )


def _field(_: object, throw: Throw) -> str:
    return "2" if throw.total in (2, 12) else prize(int(throw.total in (3, 4, 9, 10, 11)))


def families(bar: int, dont_odds: dict[int, str], place: dict[int, str]) -> tuple[Family, ...]:
    """In the order of the text."""
    numbers: dict[str, Any] = {str(n): n for n in POINTS}
    travelling = {"": 0, **numbers}
    odds_text = "up to the bet that they stand beside"
    hardways = (
        _family(f"hard_{n}", pays, "(11)c)", f"{n} as a pair before 7 or another {n}", hardway, {"": n})
        for n, pays in ((4, "7"), (6, "9"), (8, "9"), (10, "7"))
    )
    return (
        _family("pass", "1", "(10)a)", "7 or 11 on the first throw, later the point before 7", pass_line),
        _family("dont_pass", "1", "(10)b)", f"against pass; the bar {bar} comes back", dont_pass(bar)),
        _family("come:n", "1", "(10)c)", "pass that begins with this throw; travels to n", come, travelling),
        _family("dont_come:n", "1", "(10)d)", "dont_pass that begins with this throw", dont_come(bar), travelling),
        _family("big_6", "1", "(10)e)", "6 before 7", before_seven, {"": 6}),
        _family("big_8", "1", "(10)f)", "8 before 7", before_seven, {"": 8}),
        _family("under_7", "1", "(10)g)", "2 to 6", one_of(range(2, 7))),
        _family("over_7", "1", "(10)h)", "8 to 12", one_of(range(8, 13))),
        _family("pass_odds", ODDS, "(11)a)", odds_text, beside(pass_line)),
        _family("dont_pass_odds", dont_odds, "(11)a)", odds_text, beside(dont_pass(bar))),
        _family("come_odds:n", ODDS, "(11)a)", odds_text, before_seven, numbers),
        _family("dont_come_odds:n", dont_odds, "(11)a)", odds_text, seven_before, numbers),
        _family("any_craps", "7", "(11)b)", "2, 3 or 12", one_of((2, 3, 12))),
        *hardways,
        _family("seven", "4", "(11)d)", "7", one_of((7,))),
        _family("two", "30", "(11)e)", "2", one_of((2,))),
        _family("three", "15", "(11)f)", "3", one_of((3,))),
        _family("eleven", "15", "(11)g)", "11", one_of((11,))),
        _family("twelve", "30", "(11)h)", "12", one_of((12,))),
        _family("place:n", place, "(12)a)", "n before 7", before_seven, numbers),
        _family("place_lose:n", PLACE_LOSE, "(12)b)", "7 before n", seven_before, numbers),
        Family("field", "1 or 2", "art. 4(13)a)", "2, 3, 4, 9, 10, 11 or 12", ALONE, _field),
    )


FAMILIES: Final = names(families(0, INVERSE, PLACE))


# ---- calls of the stickman (13c)

_TOTALS: Final[dict[str, Words]] = {
    "natural": ("Total {total}", "Total {total}"),
    "craps": ("Total {total}, craps", "Total {total}, craps"),
    "point_set": ("Total {total}, o ponto é {total}", "Total {total}, the point is {total}"),
    "point_continues": ("Total {total}, continua o ponto {point}", "Total {total}, the point {point} goes on"),
    "point_made": ("Total {total}, saiu o ponto", "Total {total}, the point is made"),
    "seven_out": ("Total 7, perde o ponto {point}", "Total 7, the point {point} loses"),
}
_SAME_SAME: Final = ("Mesmo deitador, mesmo ponto", "Same shooter, same point")
_SAME_NEW: Final = ("Mesmo deitador, novo ponto", "Same shooter, new point")
_SHOOTERS: Final[dict[str, Words]] = {
    "point_set": _SAME_SAME,
    "point_continues": _SAME_SAME,
    "seven_out": ("Novo deitador, novo ponto", "New shooter, new point"),
}
_NAMES: Final[dict[str, Words]] = {
    "pass": ("pass-line", "pass line"),
    "dont_pass": ("don't pass-line", "don't pass line"),
    "come": ("come", "come"),
    "dont_come": ("don't come", "don't come"),
    "big_6": ("big 6", "big 6"),
    "big_8": ("big 8", "big 8"),
    "under_7": ("under seven", "under seven"),
    "over_7": ("over seven", "over seven"),
    "any_craps": ("craps", "any craps"),
    "hard_4": ("par de duques", "hard 4"),
    "hard_6": ("par de ternos", "hard 6"),
    "hard_8": ("par de quadras", "hard 8"),
    "hard_10": ("par de quinas", "hard 10"),
    "seven": ("total 7", "total 7"),
    "two": ("total 2", "total 2"),
    "three": ("total 3", "total 3"),
    "eleven": ("total 11", "total 11"),
    "twelve": ("total 12", "total 12"),
    "place": ("casa", "place"),
    "place_lose": ("casa a perder", "place to lose"),
    "field": ("field", "field"),
}


def _named(places: Iterable[str]) -> Words:
    """Chances by name, the numbers of a family together; odds share the fate of the bet that they stand beside."""
    chances: dict[str, list[str]] = defaultdict(list)
    for place in places:
        family, _, covered = place.partition(":")
        if family in _NAMES:
            chances[family] += [covered] if covered else []
    pt, en = ("; ".join(" ".join((_NAMES[name][lang], *chances[name])) for name in chances) for lang in (0, 1))
    return pt or "nenhuma", en or "none"


class Ending(Struct, frozen=True):
    """All that follows from one throw, worked out once."""

    winners: tuple[Win, ...]
    pushes: tuple[str, ...]
    stands: tuple[str, ...]
    moves: dict[str, str]
    outcome: dict[str, Any]
    announcements: dict[str, str]
    law: tuple[str, ...]


def _ending(board: Board, throw: Throw) -> Ending:
    winners, pushes = board.ending(throw)
    stands = board.standing(throw)
    travel = throw.point and throw.total in POINTS
    moves: dict[str, str] = {
        name: f"{name}:{throw.total}" for name in ("come", "dont_come") if travel and name in board.places
    }
    won = tuple(win.bet for win in winners)
    lost = (place for place in board.places if place not in {*won, *pushes, *stands, *moves})
    outcome = {
        "faces": throw.faces,
        "total": throw.total,
        "point": throw.point,
        "next_point": throw.next_point,
        "come_out": not throw.point,
        "series": throw.series,
    }
    said = _TOTALS[throw.series], _named(won), _named(lost), _SHOOTERS.get(throw.series, _SAME_NEW)
    pt, en = ([words.format_map(outcome) for words in each] for each in zip(*said, strict=True))
    announcements = {
        "pt": "{}. Ganham: {}. Perdem: {}. {}".format(*pt),
        "en": "{}. Win: {}. Lose: {}. {}".format(*en),
    }
    law = (*("(8)" for _ in range(throw.series == "seven_out")), "(10)", "(11)", "(12)", "(13)a)", "(13)c)i")
    return Ending(winners, pushes, stands, moves, outcome, announcements, tuple(map(_cite, law)))


# ---- the house's choices


class CrapsOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house, and the readings that are possible."""

    bar: Annotated[
        Literal["12", "2"], option("art. 4(10)b)", "the total on which don't pass and don't come come back")
    ] = "12"
    dont_odds: Annotated[
        Literal["inverse", "as_printed"],
        option("art. 4(11)a)", "odds of the don't side: the inverse, or the printed table, which favours the player"),
    ] = "inverse"
    place_4_10: Annotated[
        Literal["9_to_5", "as_printed"], option("art. 4(12)", "place on 4 and 10: 9 to 5, or '9 para 15' as printed")
    ] = "9_to_5"
    minimum: Annotated[
        int, msgspec.Meta(ge=1), option("art. 4(12)", "minor units; bets on a number are multiples of it")
    ] = 1
    maximum_payment: Annotated[
        int, msgspec.Meta(ge=0), option("art. 4(11)a)", "minor units that odds may win at most; 0: no limit")
    ] = 0
    handling: Annotated[
        Literal["implied", "console"],
        option("arts. 4(7), 4(8)", "whether the console reports that the dice change hands or are replaced"),
    ] = "implied"
    closes_at: Annotated[
        str, option("art. 4(13)c)ii", "when the gaming room closes, HH:MM in UTC; empty: the last throw is not checked")
    ] = ""
    bets_offered: Annotated[
        tuple[str, ...], option("arts. 4(10)-(13)", f"bet families offered, of {' '.join(FAMILIES)}; empty: all")
    ] = ()
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        check_offered(self.bets_offered, FAMILIES, "art. 4")
        for name, bet in BESIDE.items():
            if name in self.bets_offered and bet not in self.bets_offered:
                raise ValueError(f"bets_offered: art. 4(11)a): {name} stand beside {bet}, which is not offered")
        if self.closes_at and not re.fullmatch("([01][0-9]|2[0-3]):[0-5][0-9]", self.closes_at):
            raise ValueError(f"closes_at: art. 4(13)c)ii: a time is HH:MM in UTC, not {self.closes_at!r}")


class CrapsState(Table, frozen=True):
    """`point`: what the marker shows, 0 for none. `before`: what it showed before the last throw.

    `standing`: the bets that wait for the next round. `unknown`: events were lost, so neither is certain. `shooter`,
    `threw`: the seats that throw next and threw last, 0 where that is not reported. `passes`: the dice must change
    hands, `replaces`: a die must be replaced. `stated`: one supervisor's statement of the series after a loss;
    `stating`: the parts of a statement whose last part is missing.
    """

    told: tuple[DiceThrown, ...] = ()
    point: int = 0
    before: int = 0
    standing: tuple[Wager, ...] = ()
    unknown: bool = False
    shooter: int = 0
    threw: int = 0
    passes: bool = False
    replaces: bool = False
    stating: SeriesStated | None = None
    stated: SeriesStated | None = None


def _rulings() -> Rulings:
    return Rulings(
        bets_law=_cite("(9)"),
        late_bets_law=_cite("(9)"),
        stray_bets_law=_cite("(9)"),
        void_law=(_cite(""),),
        never_ended=Null(say("never_thrown"), (_cite("(6)"),)),
        stray_bell=Note("bell_without_round", say("bell_no_round"), _cite("(9)")),
        stray_void=Note("void_without_round", say("void_no_round"), _cite("(7)")),
        reopened=Note("bets_reopened", say("bets_reopened"), _cite("(9)")),
        missing=Doubt(MISSING, say("do_end_series")),
        contradicted=Doubt(say("throws"), REMEDY_LOOK),
        declared_before=Doubt(say("declared_before"), REMEDY_LOOK),
    )


class Craps(SingleOutcome[CrapsState]):
    """The ruleset."""

    id: ClassVar[str] = "angola.craps"
    title: ClassVar[str] = "Craps, Angola"
    law: ClassVar[str] = "Decreto Executivo 261/22 art. 4"
    Options: ClassVar[type[CrapsOptions]] = CrapsOptions
    needs: ClassVar[Needs] = thrown("art. 4(9)", "art. 4(4)", "arts. 4(7), 4(8)")
    State: ClassVar[type[CrapsState]] = CrapsState
    Facts: ClassVar[type[RoundFacts]] = CrapsFacts
    outcome: ClassVar[type[DiceThrown]] = DiceThrown
    lasting: ClassVar = (
        *("point", "before", "standing", "unknown", "shooter", "threw", "passes", "replaces", "stating", "stated"),
    )
    told_again_stands: ClassVar[bool] = True

    def __init__(self, options: CrapsOptions) -> None:
        """Work out, once, what each throw does from each point."""
        self.options = options
        place_4_10 = "9/5" if options.place_4_10 == "9_to_5" else "9/15"
        self._odds = {"pass_odds": ODDS, "come_odds": ODDS}
        against = INVERSE if options.dont_odds == "inverse" else ODDS
        self._odds |= {"dont_pass_odds": against, "dont_come_odds": against}
        board = Board(
            families(int(options.bar), against, {4: place_4_10, **PLACE, 10: place_4_10}), options.bets_offered
        )
        super().__init__(terms(self.id, "2022", options, VOID), board, _rulings())
        self._endings: dict[tuple[int, tuple[int, ...]], Ending] = {
            (point, faces): _ending(board, Throw(point, faces))
            for point in (0, *POINTS)
            for faces in combinations_with_replacement(range(1, 7), DICE)
        }

    def view(self, table: CrapsState) -> View:
        """Phase: idle, betting, closed, suspended, paying. `say` is what the stickman calls now."""
        round_, last = table.round, table.last
        detail: dict[str, Any] = {"point": table.point, "come_out": not table.point, "shooter": table.shooter}
        if round_ is not None and not (table.shooter or table.point or round_.suspended):
            detail["shooters"] = order_of_shooters(round_.wagers, table.threw)
        if round_ is not None:
            if round_.suspended:
                waits = {"shooter": table.shooter, "reason": round_.suspended}
                stated = {} if table.stated is None else {"stated": _facts(table.stated)}
                return View(round_.id, "suspended", waits | stated)
            return View(round_.id, "closed" if round_.closed else "betting", detail)
        if last is None:
            return View("", "idle", {} if table.unknown else detail)
        told = table.told[0]
        thrown = self._endings[table.before, told.faces].outcome if told.valid else detail
        if last.suspended:
            return View(last.id, "suspended", {**thrown, "reason": last.suspended})
        said = self._endings[table.before, told.faces].announcements if told.valid else VOID
        return View(last.id, "paying", {**thrown, "shooter": table.threw, "say": said})

    def transitions(self) -> dict[type[Any], dict[Phase, Move[CrapsState]]]:
        """A recogniser may read the dice that the stickman enters."""
        rows = super().transitions()
        return rows | {DiceRead: rows[DiceThrown]}

    # ---- the dice and the shooter

    def play(self, table: CrapsState, seen: Envelope) -> Step:
        """The dice change hands, a die is replaced, or a supervisor states the series."""
        match seen.event:
            case HandPassed(seat=seat):
                return replace(table, shooter=seat, passes=False), ()
            case DiceReplaced():
                return replace(table, replaces=False), ()
            case SeriesStated() as stated:
                return self._state(table, seen, stated)
            case _:
                return table, ()

    # ---- the series as two supervisors see it, after a loss

    def _state(self, table: CrapsState, seen: Envelope, stated: SeriesStated) -> Step:
        """Equal statements of two supervisors stand: by 4(10)i line bets stay, and only people know them after a
        loss.
        """
        waits = table.unknown and (table.round is None or table.round.suspended == MISSING)
        if not waits:
            return self._noted(table, seen, "series_is_known", say("series_is_known"))
        if stated.round and (table.round is None or stated.round != table.round.id):
            other = say("round_not_on_table", event="series.stated", round=stated.round[:80])
            return self._noted(table, seen, "round_unknown", other)
        whole = _joined(table.stating, stated)
        table = replace(table, stating=None)
        if whole is None or not self.can_stand(whole):
            return self._noted(table, seen, "series_impossible", say("series_impossible", name=stated.by))
        if table.round is not None:
            table = self.witness(table, seen)
        if whole.part < whole.parts:
            return replace(table, stating=whole), ()
        first, stated = table.stated, whole
        if first is None or may_be_one_person(first.by, stated.by):
            return replace(table, stated=stated), ()
        if not _say_the_same(first, stated):
            differs = say("series_differs", name=first.by, other=stated.by)
            return self._noted(replace(table, stated=stated), seen, "series_differs", differs)
        bets = tuple(Wager(one.seat, one.bet, one.amount) for one in stated.bets)
        text = say("series_stated", name=first.by, other=stated.by)
        table = replace(table, point=stated.point, unknown=False, stated=None)
        if table.round is None:
            return self._noted(replace(table, standing=bets), seen, "series_stated", text)
        round_ = replace(table.round, wagers=bets, refused=(), given_back=(), suspended=None)
        return self._noted(replace(table, before=stated.point, round=round_), seen, "series_stated", text)

    def _noted(self, table: CrapsState, seen: Envelope, code: str, reason: Reason) -> Step:
        """A note of the round, or of the table where no round is open."""
        note = Note(code, reason, _cite("(10)i)"))
        if table.round is None:
            return table, (Noted(Irregularity(note.code, note.reason, note.law, seen.id)),)
        return self.note(table, seen, note), ()

    def can_stand(self, stated: SeriesStated) -> bool:
        """Whether these bets can lie there at this point; judged once the statement is complete."""
        if stated.part < stated.parts:
            return True
        lie = {(one.seat, one.bet): one.amount for one in stated.bets}
        if stated.point not in (0, *POINTS) or len(lie) != len(stated.bets):
            return False
        wagers = [Wager(seat, bet, amount) for (seat, bet), amount in lie.items()]
        if self.limits.most_returned(wagers) > MOST:
            return False
        return all(self._stands_at(stated.point, one, lie) for one in stated.bets)

    def _stands_at(self, point: int, one: LaidBet, lie: dict[tuple[int, str], int]) -> bool:
        family, _, number = one.bet.partition(":")
        if one.bet not in self._offered or (not point and not number and family in NEEDS_POINT):
            return False
        return family not in BESIDE or one.amount <= lie.get((one.seat, one.bet.replace(family, BESIDE[family])), 0)

    def close_late(self, table: CrapsState, seen: Envelope) -> Step:
        """4(5), 4(7), 4(8): what was irregular about this throw."""
        round_, shooter, told = there(table.round), table.shooter, self.options.handling == "console"
        if told and table.passes:
            round_ = noted_on(round_, _note(say("dice_not_passed"), "(8)"), seen)
        if told and table.replaces:
            round_ = noted_on(round_, _note(say("die_not_replaced"), "(7)"), seen)
        if shooter and round_.wagers and all(one.seat != shooter for one in round_.wagers):
            round_ = noted_on(round_, _note(say("shooter_without_bet", seat=shooter), "(5)"), seen)
        return super().close_late(replace(table, round=round_, threw=shooter), seen)

    # ---- bets

    def cloth(self, table: CrapsState, seen: Envelope) -> tuple[Round, dict[str, Any]]:
        """The standing bets, in a round that is suspended if the series is unknown."""
        doubt = MISSING if table.unknown else None
        return Round("", wagers=table.standing, suspended=doubt), {"standing": (), "before": table.point}

    def bet(self, table: CrapsState, seen: Envelope) -> Step:
        """4(11)a): odds may be taken back after the bell."""
        if table.phase == "closed" and _takes_odds_back(bet_of(seen)):
            table, verdicts = super().bet(replace(table, round=replace(there(table.round), closed=False)), seen)
            round_ = self.judged(table, replace(there(table.round), closed=True), seen)
            return replace(table, round=round_), verdicts
        return super().bet(table, seen)

    def refused(self, table: CrapsState, round_: Round, bet: WagerPlaced | WagerWithdrawn) -> Note | None:
        """4(10), 4(11): why a bet is refused."""
        if table.phase != "open":
            return None
        placed = isinstance(bet, WagerPlaced)
        laid: dict[str, str | int] = {"seat": bet.seat, "bet": bet.bet}
        family, _, number = bet.bet.partition(":")
        travel = "(10)c)" if family == "come" else "(10)d)"
        match family:
            case "come" | "dont_come" if number and placed:
                return _note(say("bet_travels", **laid), travel)
            case "pass" | "dont_pass" | "come" | "dont_come" if number or (table.point and family in LINES):
                return _note(say("line_bet_fixed", **laid), "(10)i)")
            case "come" | "dont_come" if placed and not table.point:
                return _note(say("no_point", **laid), travel)
            case "pass_odds" | "dont_pass_odds" | "come_odds" | "dont_come_odds" if placed:
                return self._odds_refusal(table, bet, laid)
            case _:
                return None

    def _odds_refusal(
        self, table: CrapsState, bet: WagerPlaced | WagerWithdrawn, laid: dict[str, str | int]
    ) -> Note | None:
        """4(11)a): odds are limited by the bet that they stand beside, and by the maximum payment."""
        family, _, number = bet.bet.partition(":")
        stake, most = lying(there(table.round), bet.seat, bet.bet) + bet.amount, self.options.maximum_payment
        allowed = lying(there(table.round), bet.seat, bet.bet.replace(family, BESIDE[family]))
        if not (point := int(number or table.point)):
            return _note(say("no_point", **laid), "(11)a)")
        if stake > allowed:
            return _note(say("odds_over_bet", **laid, most=allowed), "(11)a)")
        if most and stake * odds(self._odds[family][point]) > most:
            return _note(say("odds_over_payment", **laid, most=most), "(11)a)")
        return None

    def held(self, table: CrapsState, seat: int, bet: str) -> int:
        """The amount of a seat's bet; between two throws, of its standing bet."""
        return super().held(table, seat, bet) + amount_on(table.standing, seat, bet)

    def article_limits(self) -> Mapping[str, Range]:
        """4(12): bets on a number are the minimum or a multiple of it."""
        least = self.options.minimum
        one = Range(least, MOST, least, law=_cite("(12)"))
        return dict.fromkeys(("place", "place_lose"), one) if least > 1 else {}

    def opens_next(self, table: CrapsState, seen: Envelope) -> bool:
        """A round that waits ends by a person's declaration alone."""
        return False

    # ---- the throw

    def check(self, table: CrapsState, outcome: DiceThrown | DiceRead) -> Note | Null | None:
        """4(4), 4(7): two dice; a throw that is null leaves the bets as they are."""
        if not self.is_outcome(outcome):
            return _note(say("throw_unreadable", n=len(outcome.faces)), "(4)")
        if isinstance(outcome, DiceRead) and not there(table.round).closed:
            return _note(say("read_before_bell"), "(4)")
        thrown = self.kept(outcome)
        if thrown.valid:
            return None
        reason = declared(thrown.reason)
        named = thrown.reason in NULL_REASONS
        note = None if named else _note(say("null_not_named"), "(7)")
        return Null(reason, (_cite("(7)"),), note, {"faces": thrown.faces, "point": table.point}, "stand")

    def is_outcome(self, outcome: DiceThrown | DiceRead) -> bool:
        """Two dice that lie flat, or a throw that is null."""
        match outcome:
            case DiceThrown(valid=False):
                return True
            case DiceRead(stacked=stacked, leaning=leaning) if stacked or leaning:
                return False
            case _:
                return len(outcome.faces) == DICE

    def kept(self, outcome: DiceThrown | DiceRead) -> DiceThrown:
        """The throw with its faces sorted: the order and the reader do not matter."""
        faces = tuple(sorted(outcome.faces))[:DICE]
        if isinstance(outcome, DiceRead) or outcome.valid:
            return DiceThrown(faces)
        return DiceThrown(faces, valid=False, reason=outcome.reason)

    def same(self, one: DiceThrown, other: DiceThrown) -> bool:
        """The same faces, or both null."""
        return one.valid == other.valid and (one.faces == other.faces or not one.valid)

    def contradiction(self, last: Round, first: DiceThrown, other: DiceThrown) -> Note:
        """The note of two different throws of one round."""
        return Note("throws_contradict", say("throws_of", round=last.id), _cite("(4)"))

    def stray(self, outcome: DiceThrown | DiceRead) -> Note:
        """The note of a throw while no bets are open."""
        return Note("throw_without_round", say("thrown_no_round"), _cite("(6)"))

    def endings(self) -> Iterable[tuple[Win, ...]]:
        """What wins on each throw from each point."""
        return (ending.winners for ending in self._endings.values())

    def result(self, round_: Round, outcome: DiceThrown) -> Result:
        """The first throw of a series."""
        return self.resolve(CrapsState(""), round_, outcome)

    def resolve(self, table: CrapsState, round_: Round, outcome: DiceThrown) -> Result:
        """4(10) to 4(13), from the point before the throw."""
        if not outcome.valid:  # entered after a throw that it disputes
            void = Void(declared(outcome.reason), "stand")
            facts = {"faces": outcome.faces, "point": table.before}
            return voided(round_, self._terms, void, (_cite("(7)"),), facts)
        ending = self._endings[table.before, outcome.faces]
        return resolved(
            round_,
            self._terms,
            outcome=ending.outcome | {"shooter": table.threw} if table.threw else ending.outcome,
            winners=ending.winners,
            pushes=ending.pushes,
            announcements=ending.announcements,
            law=ending.law,
            stands=ending.stands,
            moves=ending.moves,
        )

    def leaves(self, table: CrapsState, round_: Round, result: Result) -> dict[str, Any]:
        """The point, and the bets that the throw did not decide."""
        if result.void is not None:
            off_table = result.void.reason.code == OFF_TABLE
            return {"point": table.before, "standing": round_.wagers, "passes": False, "replaces": off_table}
        passes = result.outcome["series"] == "seven_out"
        left = {"point": result.outcome["next_point"], "standing": undecided(round_, result)}
        return left | {"passes": passes, "replaces": False, "shooter": 0 if passes else table.shooter}

    def void(self, table: CrapsState, seen: Envelope, null: Null) -> Step:
        """4(7): after a null throw all bets stand. A round that a person declares void ends the series."""
        over, verdicts = super().void(table, seen, null)
        if null.bets != "stand":
            return over, verdicts
        off_table = null.reason.code == OFF_TABLE
        kept = there(table.round).wagers
        return replace(over, point=table.point, standing=kept, replaces=off_table, passes=table.passes), verdicts

    def after_void(self, table: CrapsState, round_: Round, **fields: Any) -> CrapsState:
        """All bets went back: the next throw is the first of a series."""
        return self.fresh(
            table, point=0, standing=(), unknown=table.unseen, stating=None, stated=None, passes=False, **fields
        )

    def confirm(self, table: CrapsState, seen: Envelope) -> Step:
        """A throw that was called null since is not confirmed: the payment may be of the throw after it."""
        if all(one.valid for one in table.told[1:]):
            return super().confirm(table, seen)
        return replace(table, last=witness(there(table.last), seen)), ()

    def begin(self, table: CrapsState, seen: Envelope) -> Step:
        """A disputed throw that nobody decided: its bets go back, and the point is not known."""
        if table.phase == "disputed":
            table = replace(table, standing=(), point=0, unknown=True)
        return super().begin(table, seen)

    def lose(self, table: CrapsState, seen: Envelope) -> Step:
        """After a loss point and bets are unknown, except at a new table, and one supervisor's statement is dropped."""
        if not table.count:
            return table, ()
        first = table.stated
        table, verdicts = super().lose(
            replace(table, unknown=True, stating=None, stated=None, shooter=0, passes=False, replaces=False), seen
        )
        if first is not None:
            table, told = self._noted(table, seen, "series_forgotten", say("series_forgotten", name=first.by))
            verdicts = (*verdicts, *told)
        return replace(table, unheard=False), verdicts


def order_of_shooters(wagers: Iterable[Wager], threw: int) -> tuple[int, ...]:
    """4(5): the seats to which the stickman offers the dice, from his left or after the last shooter; pass bettors
    first.
    """
    laid = tuple(wagers)
    on_pass = {one.seat for one in laid if one.bet == "pass"}
    return tuple(sorted({one.seat for one in laid}, key=lambda seat: (seat not in on_pass, seat <= threw, seat)))


def _joined(before: SeriesStated | None, part: SeriesStated) -> SeriesStated | None:
    """A statement with the parts before it; None where it does not follow them."""
    if part.part == 1:
        return part
    follows = before is not None and replace(before, part=before.part + 1, bets=part.bets) == replace(
        part, overtaken=before.overtaken, age_ms=before.age_ms
    )
    if before is None or not follows or len(before.bets) + len(part.bets) > MOST_BETS:
        return None
    return replace(part, bets=(*before.bets, *part.bets))


def _facts(stated: SeriesStated) -> Stated:
    return Stated(stated.by, stated.point, stated.bets)


def _say_the_same(one: SeriesStated, other: SeriesStated) -> bool:
    return one.point == other.point and set(one.bets) == set(other.bets)


def _takes_odds_back(bet: WagerPlaced | WagerWithdrawn) -> bool:
    return isinstance(bet, WagerWithdrawn) and bet.bet.partition(":")[0] in BESIDE
