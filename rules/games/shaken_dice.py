"""Three dice shaken under a dome, for all texts with this game, which add bets and articles.

The flow, in the numbering of 57/2004 and 59/2004 (31/2003 has the same in fewer paragraphs): the croupier covers the
dice and shakes them, by three pulls of the lever or one electronic agitation, then opens the bets (2(1)); the bell
closes them (3(1)); the dome is lifted, the result read (3(2)), the prizes are paid, and only then may the dice be
covered again (4). Stacked or leaning dice make the throw void and the operation is repeated (3(3)): the bets stand on
the cloth; the players may take them back, keep or change them (3(4)), or only add to them (31/2003 art. 3(3)).

Readings, where the text says nothing:

- 2(1): a wrong number of pulls, or bets opened or laid too early, are irregular; the throw counts.
- 4: dice covered before the prizes were paid are irregular; the throw counts.
- 3(1), 3(3): the throw is void where a bet may have been made knowing the dice: the dome was lifted or the dice were
  read before the bell, or they were shaken after it.
- 2(1), 3(3): the throw is void where the dice were never shaken under the dome: everybody knows how they lie.
- 3(2): a throw that cannot be read suspends the round; the next one voids it, the bets come back.
- 3(2): a second reading that differs disputes the result until it is paid (the first stands) or declared void.
- 3(4): between a void throw and the next covering the cloth is open to what the text allows.
- 1(2)(2): an opaque dome that is part of the shaker (`dome` is fixed) is not lifted. A shake shuts it, the bell opens
  it: each shake before the bell is under the dome, and begins the next throw where none is under way.
- After a loss, 2(1): a throw whose covering was not reported is suspended, because it may not have been shaken.
- After a loss, 3(4): the bets of a void throw are given back when the bets are opened, or the dice covered once more.
  The shaking before that counts, and so do the bets that were laid since the loss.
- Where a text voids stacked dice alone, a leaning die decides nothing: its face is not safe to read by a device. That
  is noted, and the round waits until the croupier enters the three faces that lie up.

A game gives its families of bets, the facts of its own, the croupier's words and its articles.
"""

from abc import abstractmethod
from collections.abc import Iterable
from itertools import combinations_with_replacement, permutations
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    DiceAgitated,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceSeized,
    DiceUncovered,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.facts import RoundFacts, ShakenDiceFacts
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.bets import Board
from rules.engine.cloth import lying
from rules.engine.rounds import Chips, Round, resolved, terms, witness
from rules.engine.ruleset import Result, Verdict, View, Wager, Win
from rules.engine.single_outcome import Doubt, Note, Null, Rulings, bet_of, noted_on, there
from rules.engine.standing_bets import EMPTY, ClothTable, StandingBets, together

Words: TypeAlias = tuple[str, str, str]  # in Portuguese, Traditional Chinese, English
Faces: TypeAlias = tuple[int, ...]
Step: TypeAlias = tuple["ShakenState", tuple[Verdict, ...]]

PULLS: Final = 3
FACES: Final = range(1, 7)
TOTALS: Final = range(4, 18)
SMALL: Final = range(4, 11)
BIG: Final = range(11, 18)

REMEDY_LOOK: Final = say("do_look")
REMEDY: Final = say("do_cover")
CLOTH: Final = say("cloth")

# The croupier's calls at the opening, where the house allows it (2(3)), at the bell (3(1)), at a void throw (3(3)).
OPENING: Final = {"pt": "Façam as vossas apostas", "zh-Hant": "請下注", "en": "Place your bets"}
BELL: Final = {"pt": "Abertura da jogada", "zh-Hant": "開", "en": "Opening"}
VOID: Final = {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}

_SIZES: Final[dict[str, Words]] = {"small": ("pequeno", "小", "small"), "big": ("grande", "大", "big")}


# ---- winning conditions of the shared bets; `faces` are sorted


def is_triple(_: object, faces: Faces) -> bool:
    """Three equal dice."""
    return faces[0] == faces[2]


def is_small(_: object, faces: Faces) -> bool:
    """A small total that is no triple."""
    return sum(faces) in SMALL and not is_triple(_, faces)


def is_big(_: object, faces: Faces) -> bool:
    """A big total that is no triple."""
    return sum(faces) in BIG and not is_triple(_, faces)


class Articles(Struct, frozen=True):
    """The articles of a round, each as a result cites it.

    `null_bets`: what happens to the bets of a void throw. `leaning_is_null`: a leaning die makes the throw void,
    as a stacked one does. `light_opens`: the light that follows the third pull opens the bets.
    """

    null_bets: Literal["may_change", "stand_may_add"]
    mechanism: str
    shaking: str
    bell: str
    reading: str
    null: str
    bets_after_null: str
    payment: str
    bets: str
    prizes: str
    triple: str
    leaning_is_null: bool = True
    light_opens: bool = False


class Ceremony(Chips, Protocol):
    """The options of a house that shakes dice."""

    @property
    def edition(self) -> str: ...
    @property
    def agitation(self) -> Literal["lever", "electronic", "either"]: ...
    @property
    def dome(self) -> Literal["movable", "fixed"]: ...
    @property
    def panel(self) -> bool: ...
    @property
    def announces(self) -> bool: ...
    @property
    def lights(self) -> bool: ...
    @property
    def payment(self) -> Literal["implied", "console"]: ...


class ShakenState(ClothTable, frozen=True):
    """`covered`: the dome is known to be on; `pulls` and `agitations` count the shaking under it.

    `repeated`: the round took over the bets of a void throw; `locked` are those that may not be taken back.
    """

    told: tuple[DiceRead, ...] = ()
    covered: bool = False
    pulls: int = 0
    agitations: int = 0
    repeated: bool = False
    locked: tuple[Wager, ...] = ()

    @property
    def shaken(self) -> bool:
        """Whether the dice were shaken under the dome."""
        return bool(self.pulls or self.agitations)


class Throw(Struct, frozen=True):
    """All consequences of one throw, computed once."""

    winners: tuple[Win, ...]
    outcome: dict[str, Any]
    announcements: dict[str, str]
    law: tuple[str, ...]


def _rulings(at: Articles) -> Rulings:
    return Rulings(
        bets_law=at.bets,
        late_bets_law=at.bell,
        stray_bets_law=at.shaking,
        void_law=tuple(dict.fromkeys((at.null, at.bets_after_null))),
        never_ended=Null(say("never_read"), (at.reading,)),
        stray_bell=Note("bell_without_round", say("bell_no_round"), at.bell),
        stray_void=Note("void_without_round", say("void_no_round"), at.null),
        reopened=Note("bets_reopened", say("bets_reopened"), at.bell),
        missing=Doubt(say("round_events"), REMEDY),
        contradicted=Doubt(say("readings"), REMEDY_LOOK),
        declared_before=Doubt(say("declared_before"), REMEDY_LOOK),
        null_bets=at.null_bets,
    )


class ShakenDice(StandingBets[ShakenState]):
    """A game of three shaken dice. Subclasses add `_facts` and `_calls`."""

    id: ClassVar[str]
    State: ClassVar[type[ShakenState]] = ShakenState
    Facts: ClassVar[type[RoundFacts]] = ShakenDiceFacts
    outcome: ClassVar[type[DiceRead]] = DiceRead
    starts: ClassVar = (DiceCovered,)
    lasting: ClassVar[tuple[str, ...]] = ("covered",)
    bell_words: ClassVar[dict[str, str]] = BELL
    void_words: ClassVar[dict[str, str]] = VOID

    def __init__(self, options: Ceremony, board: Board, articles: Articles) -> None:
        """Compute, once, the winners of each of the 216 throws; a subclass sets its own fields before this call."""
        moved = Doubt(CLOTH, REMEDY)
        said = terms(self.id, options.edition, options, self.void_words)
        super().__init__(said, board, _rulings(articles), moved_unseen=moved)
        self._ceremony = options
        self._fixed = options.dome == "fixed"
        self._mechanisms = ("lever", "electronic") if options.agitation == "either" else (options.agitation,)
        self._at = articles
        self._throws: dict[Faces, Throw] = {}
        for faces in combinations_with_replacement(FACES, 3):
            throw = self._throw(faces)
            self._throws.update((order, throw) for order in permutations(faces))

    # ---- hooks of the engine

    @abstractmethod
    def _facts(self, faces: Faces) -> dict[str, Any]:
        """The game's own facts of this throw, beside faces, total, triple and size."""

    @abstractmethod
    def _calls(self, faces: Faces, facts: dict[str, Any]) -> tuple[Words, tuple[Words, ...]]:
        """The croupier's calls of this throw: the dice, and the words after total and size."""

    # ---- views

    def view(self, table: ShakenState) -> View:
        """Phase: idle, paying, covered, betting, closed, uncovered, suspended. `say` is what the croupier calls now."""
        round_, last = table.round, table.last
        if round_ is not None:
            return self._view_round(table, round_)
        if last is None:
            return View("", "idle", {})
        throw = self._throws[table.told[0].faces]
        if last.suspended:
            return View(last.id, "suspended", {**throw.outcome, "reason": last.suspended})
        return View(last.id, "paying", {**throw.outcome, "say": throw.announcements})

    def _view_round(self, table: ShakenState, round_: Round) -> View:
        detail: dict[str, Any] = {"pulls": table.pulls, "agitations": table.agitations}
        if self._ceremony.panel:
            detail["panel"] = not round_.closed and (table.opened if self._at.light_opens else table.shaken)
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if round_.closed:
            return View(round_.id, "closed" if table.covered else "uncovered", {**detail, "say": self.bell_words})
        if table.opened:
            return View(round_.id, "betting", {**detail, "say": OPENING} if self._ceremony.announces else detail)
        return View(round_.id, "covered", detail)

    # ---- the dice and the dome

    def play(self, table: ShakenState, seen: Envelope) -> Step:
        """The dice are covered, shaken, uncovered or touched."""
        match seen.event:
            case DiceCovered():
                return self._covered(table, seen)
            case DiceAgitated() as agitation:
                return self._agitated(table, seen, agitation)
            case DiceUncovered():
                return self._uncovered(replace(table, covered=False), seen)
            case DiceDisturbed() | DiceReplaced() | DiceSeized() if table.round is not None:
                return self._touched(self.witness(table, seen), seen)
            case _:
                return table, ()

    def begin(self, table: ShakenState, seen: Envelope) -> Step:
        """Begin the next throw. Shaking that came beside doubtful bets counts for it; locked bets stay locked."""
        begun, verdicts = super().begin(table, seen)
        round_, ended, laid = there(begun.round), table.round, begun.laid
        shaking = (0, 0)
        if ended is not None and _only_cloth(table) and not (ended.closed and self._covers(seen)):
            shaking = table.pulls, table.agitations
        if round_.suspended == CLOTH:
            laid = witness(laid or EMPTY, seen)
        whole = together(round_, laid)
        kept = (replace(one, amount=min(one.amount, lying(whole, one.seat, one.bet))) for one in table.locked)
        begun = replace(
            begun,
            pulls=shaking[0],
            agitations=shaking[1],
            repeated=table.carried is not None,
            locked=tuple(one for one in kept if one.amount),
            laid=laid,
        )
        return begun, verdicts

    def _covers(self, seen: Envelope) -> bool:
        """Whether this event shows that the dice are under the dome."""
        return isinstance(seen.event, DiceCovered) or (self._fixed and isinstance(seen.event, DiceAgitated))

    def _covered(self, table: ShakenState, seen: Envelope) -> Step:
        if table.phase in ("open", "closed"):
            table = self.witness(table, seen)
            if table.covered:
                return table, ()
            if table.phase == "open":  # opened or shaken without the dome: noted; a later shake may count
                return replace(table, covered=True), ()
            text = say("covered_before_reading")
            table = self.note(table, seen, Note("covered_before_reading", text, self._at.payment))
        unpaid = table.last if self._ceremony.payment == "console" and not table.unseen else None
        table, verdicts = self.begin(replace(table, covered=True, unheard=False), seen)
        if unpaid is not None:
            text = say("covered_before_payment", round=unpaid.id)
            table = self.note(table, seen, Note("covered_before_payment", text, self._at.payment))
        return table, verdicts

    def _agitated(self, table: ShakenState, seen: Envelope, agitation: DiceAgitated) -> Step:
        verdicts: tuple[Verdict, ...] = ()
        if self._fixed and not table.covered and table.phase != "closed":
            table, verdicts = self._covered(table, seen)
        elif table.round is None:
            table, verdicts = self.begin(table, seen)
        table = self.witness(table, seen)
        round_ = there(table.round)
        beside = _only_cloth(table) and not round_.closed
        if round_.suspended and not beside:
            return table, verdicts
        if round_.closed:
            note = Note("agitated_after_bell", say("agitated_after_bell"), self._at.bell)
            return self.void(table, seen, self._null(say("agitated_after_bell"), self._at.bell, note=note))
        shaken = witness(table.laid or EMPTY, seen) if beside else round_
        for note in self._wrong_shaking(table, agitation):
            shaken = noted_on(shaken, note, seen)
        table = replace(table, laid=shaken) if beside else replace(table, round=shaken)
        if not table.covered:
            return table, verdicts
        if agitation.mode == "lever":
            table = replace(table, pulls=table.pulls + agitation.cycles)
            return self._lit(table, seen, verdicts)
        return replace(table, agitations=table.agitations + 1), verdicts

    def _lit(self, table: ShakenState, seen: Envelope, verdicts: tuple[Verdict, ...]) -> Step:
        """Treat the light after the third pull as the opening of the bets."""
        if not self._at.light_opens or table.pulls < PULLS or table.opened:
            return table, verdicts
        if not self.opens_next(table, seen):
            return self.betting(table, seen), verdicts
        table, opened = self._open(table, seen)
        return table, verdicts + opened

    def _wrong_shaking(self, table: ShakenState, agitation: DiceAgitated) -> list[Note]:
        notes = []
        if agitation.mode not in self._mechanisms:
            text = say("wrong_mechanism", mode=agitation.mode, allowed=" or ".join(self._mechanisms))
            notes.append(Note("wrong_mechanism", text, self._at.mechanism))
        if not table.covered:
            text = say("agitated_uncovered")
            notes.append(Note("agitated_uncovered", text, self._at.shaking))
        elif table.opened:
            text = say("agitated_after_opening")
            notes.append(Note("agitated_after_opening", text, self._at.shaking))
        return notes

    def _uncovered(self, table: ShakenState, seen: Envelope) -> Step:
        if table.round is None:
            return table, ()
        table = self.witness(table, seen)
        if _waits(table):
            return replace(table, pulls=0, agitations=0), ()
        if there(table.round).closed:
            return table, ()
        note = Note("uncovered_before_bell", say("uncovered_before_bell"), self._at.bell)
        return self.void(table, seen, self._null(say("uncovered_before_bell"), self._at.bell, note=note))

    def _touched(self, table: ShakenState, seen: Envelope) -> Step:
        """Art. 2(1): only shaken dice count, as they fell. Dice touched before the bets must be shaken again."""
        if table.phase == "suspended" or not (table.opened or table.phase == "closed"):
            return replace(table, pulls=0, agitations=0), ()
        return self.hold(table, seen, Doubt(say("dice_touched"), REMEDY))

    # ---- the round

    def opens_next(self, table: ShakenState, seen: Envelope) -> bool:
        """Whether an opening belongs to the next round: where this one waits it does, unless its own may follow a loss.

        Where a light opens the bets, an opening by hand before the bell only returns doubtful bets.
        """
        own = self._at.light_opens or (table.unheard and not table.opened)
        own = own and not there(table.round).closed and not _only_cloth(table)
        return table.phase == "suspended" and not own

    def at_opening(self, table: ShakenState) -> Note | None:
        """Art. 2(1): before the bets, exactly three pulls of the lever or one electronic agitation."""
        if (table.pulls, table.agitations) in ((PULLS, 0), (0, 1)):
            return None
        if not table.shaken:
            text = say("not_shaken")
            return Note("bets_before_agitation", text, self._at.shaking)
        reason = say("wrong_agitation", pulls=table.pulls, agitations=table.agitations)
        return Note("wrong_agitation", reason, self._at.shaking)

    def at_bell(self, table: ShakenState, seen: Envelope) -> tuple[ShakenState, Null | None]:
        """Art. 2(1): check that the dice were shaken and the bets opened. Bets beside doubtful ones join them.

        From now on a fixed dome shows the dice.
        """
        if self._fixed:
            table = replace(table, covered=False)
        if table.phase == "suspended":
            return replace(table, round=together(there(table.round), table.laid), laid=None), None
        if not table.opened:
            text = say("bell_no_opening")
            table = self.note(table, seen, Note("bell_without_opening", text, self._at.shaking))
            if note := self.at_opening(table):
                table = self.note(table, seen, note)
        return table, None if table.shaken else self._null(say("not_agitated"), self._at.shaking)

    def at_loss(self, table: ShakenState) -> ShakenState:
        """After a loss it is unknown whether the dome stayed on."""
        return replace(table, covered=False, pulls=0, agitations=0)

    def _null(
        self, reason: Reason, *articles: str, note: Note | None = None, outcome: dict[str, Any] | None = None
    ) -> Null:
        """Art. 3(3): end the throw as void; the operation is repeated."""
        law = tuple(dict.fromkeys((*articles, self._at.null, self._at.bets_after_null)))
        return Null(reason, law, note, outcome)

    def void(self, table: ShakenState, seen: Envelope, null: Null) -> Step:
        """End the throw as void, including shaking and irregularities that came beside doubtful bets."""
        if null.note is not None:
            table, null = self.note(table, seen, null.note), replace(null, note=None)
        if (laid := table.laid) is not None:
            round_ = there(table.round)
            round_ = replace(round_, irregularities=(*round_.irregularities, *laid.irregularities))
            table = replace(table, round=round_, laid=Round("", wagers=laid.wagers))
        return super().void(table, seen, null)

    def after_void(self, table: ShakenState, round_: Round, **fields: Any) -> ShakenState:
        """The table after a void throw; by 31/2003 art. 3(3) its bets cannot be taken back."""
        over = super().after_void(table, round_, **fields)
        if self._at.null_bets != "stand_may_add":
            return over
        return replace(over, locked=together(there(over.carried), over.laid).wagers)

    # ---- wagers

    def at_bet(self, table: ShakenState, bet: WagerPlaced | WagerWithdrawn) -> Note | None:
        """Art. 2(1): the bets come after the shaking."""
        if table.opened or table.repeated or table.phase == "suspended":
            return None
        return Note("early_bet", say("early_bet", seat=bet.seat, bet=bet.bet), self._at.shaking)

    def bet(self, table: ShakenState, seen: Envelope) -> Step:
        if (note := self._stands(table, there(table.round), seen)) is not None:
            return self.note(table, seen, note), ()
        return super().bet(table, seen)

    def stray_bet(self, table: ShakenState, seen: Envelope) -> Step:
        if table.carried is not None and (note := self._stands(table, table.carried, seen)) is not None:
            return replace(table, carried=noted_on(table.carried, note, seen)), ()
        return super().stray_bet(table, seen)

    def _stands(self, table: ShakenState, cloth: Round, seen: Envelope) -> Note | None:
        """31/2003 art. 3(3): refuse to take back bets that lay there when the throw was void."""
        one = bet_of(seen)
        if cloth.closed or not isinstance(one, WagerWithdrawn):
            return None
        locked = sum(wager.amount for wager in table.locked if (wager.seat, wager.bet) == (one.seat, one.bet))
        if not locked:
            return None
        held = lying(together(cloth, table.laid), one.seat, one.bet)
        if held - (one.amount or held) >= locked:
            return None
        return Note("bet_stands", say("bet_stands", seat=one.seat, bet=one.bet), self._at.null)

    # ---- the reading

    def in_doubt(self, table: ShakenState, seen: Envelope) -> Step:
        """Handle a reading in doubt; where only the bets are doubtful, a reading before the bell is still too early."""
        return super().in_doubt(table, seen) if _waits(table) else self.decide(table, seen)

    def check(self, table: ShakenState, outcome: DiceRead) -> Note | Doubt | Null | None:
        """Arts. 3(1) to 3(3): three dice that lie flat, read after the bell and without the dome."""
        null_leaning = outcome.leaning and self._at.leaning_is_null
        if not there(table.round).closed:
            note = Note("read_before_bell", say("read_before_bell"), self._at.bell)
            return self._null(say("read_before_bell"), self._at.bell, note=note)
        if table.covered:
            return Doubt(say("dome"), REMEDY)
        if outcome.stacked or null_leaning:
            facts = {"faces": outcome.faces, "stacked": outcome.stacked, "leaning": outcome.leaning}
            reason = say("stacked_or_leaning") if self._at.leaning_is_null else say("stacked")
            return self._null(reason, self._at.null, outcome=facts)
        if outcome.leaning:
            return self._unsafe()
        if outcome.faces not in self._throws:
            return Doubt(say("faces", n=len(outcome.faces)), REMEDY)
        return None

    def is_outcome(self, outcome: DiceRead) -> bool:
        """Whether a reading can dispute another; a leaning die that does not void the throw gives none."""
        return self._at.leaning_is_null or bool(outcome.stacked) or not outcome.leaning

    def _unsafe(self) -> Note:
        return Note("dice_leaning", say("dice_leaning"), self._at.reading)

    def kept(self, outcome: DiceRead) -> DiceRead:
        """The reading with sorted faces, at most four of them."""
        return replace(outcome, faces=tuple(sorted(outcome.faces))[:4], overtaken=0)

    def contradiction(self, last: Round, first: DiceRead, other: DiceRead) -> Note:
        """Two readings of one throw."""
        return Note("readings_contradict", say("readings_of", round=last.id), self._at.reading)

    def stray(self, outcome: DiceRead) -> Note:
        """The note of a reading without a throw, or of an invalid one."""
        if not self.is_outcome(outcome):
            return self._unsafe()
        return Note("reading_without_round", say("read_no_round"), self._at.reading)

    def endings(self) -> Iterable[tuple[Win, ...]]:
        """What wins on each throw."""
        return (throw.winners for throw in self._throws.values())

    def result(self, round_: Round, outcome: DiceRead) -> Result:
        """Arts. 3(2), 5 to 7."""
        throw = self._throws[outcome.faces]
        return resolved(
            round_,
            self._terms,
            outcome=throw.outcome,
            winners=throw.winners,
            announcements=throw.announcements,
            law=throw.law,
        )

    def _throw(self, faces: Faces) -> Throw:
        total, triple = sum(faces), is_triple(None, faces)
        winners, _ = self._board.ending(faces)
        outcome: dict[str, Any] = {"faces": faces, "total": total, "triple": triple}
        size = "" if triple else "small" if total in SMALL else "big"
        if size:
            outcome["size"] = size
        facts = self._facts(faces)
        outcome |= facts
        if self._ceremony.lights:
            outcome["lit"] = tuple(win.bet for win in winners)
        named, more = self._calls(faces, facts)
        said = (f"total {total}", f"{total}點", f"total {total}")
        calls = (named, said, *((_SIZES[size],) if size else ()), *more)
        pt, zh, en = zip(*calls, strict=True)
        announcements = {"pt": ", ".join(pt), "zh-Hant": "，".join(zh), "en": ", ".join(en)}
        at = self._at
        law = (at.reading, at.bets, at.prizes, *((at.triple,) if triple else ()))
        return Throw(winners, outcome, announcements, law)


def _only_cloth(table: ShakenState) -> bool:
    """Whether only the bets of a void throw are doubtful, because the covering of this throw was reported."""
    return table.round is not None and table.round.suspended == CLOTH and not table.unheard


def _waits(table: ShakenState) -> bool:
    """Whether the round waits for a person, for any reading of its dice."""
    return table.phase == "suspended" and (there(table.round).closed or not _only_cloth(table))
