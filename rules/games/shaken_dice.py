"""Three dice shaken under a dome: the round of every game whose text describes it so, with what such games share.

The flow, in the numbering of 57/2004 and 59/2004 (31/2003 has the same in fewer paragraphs): the croupier covers the
dice and shakes them, by three pulls of the lever or one electronic agitation, then opens the bets (2(1)); the bell
closes them (3(1)); the dome is lifted, the result read (3(2)), the prizes are paid, and only then may the dice be
covered again (4). Stacked or leaning dice make the throw void and the operation is repeated (3(3)): the bets stand on
the cloth; the players may take them back, keep or change them (3(4)), or only add to them (31/2003 art. 3(3)).

Readings. Any other order is an irregularity. The texts do not say what becomes of the throw; it counts where its
result is certain and only the ceremony was off (a wrong number of pulls, bets opened too early, dice covered before
the prizes were paid). It is void, as in 3(3), where a bet may have been made knowing the dice: the dome was off or the
dice were read before the bell, they were shaken after it, or they were never shaken under the dome and still lie as
everybody last saw them. A round that cannot be read waits for a person; a new one voids it with the bets returned. A
second reading that contradicts the first puts the result in doubt until it is paid (the croupier, who sees the dice,
lets it stand) or declared void. Between a void throw and the next covering the cloth is open to what the text allows.
A chip laid before the bets were opened counts, and is noted.

- After a loss, 2(1): whether the dice were shaken is not known of a throw whose covering was not seen since: it waits.
- After a loss, 3(4): the bets of a void throw are given back when the bets are opened, or the dice covered once more.
  The shaking before that counts, and so do the bets that were laid since the loss.

A game says what its places pay on a throw, the facts of its own, the croupier's words, and its articles. It cannot
change the flow.
"""

from abc import ABC, abstractmethod
from collections import Counter
from itertools import combinations_with_replacement, permutations
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceSeized,
    DiceUncovered,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.topics import Envelope
from rules.engine.rounds import (
    Chips,
    Round,
    irregular,
    lying,
    next_number,
    noted,
    resolved,
    taken_back_before,
    terms,
    together,
    voided,
    wager,
    wager_beside,
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
    Wager,
    Win,
)

Words: TypeAlias = tuple[str, str, str]  # in Portuguese, Traditional Chinese, English
Step: TypeAlias = tuple["ShakenState", tuple[Verdict, ...]]

PULLS: Final = 3
FACES: Final = range(1, 7)
TOTALS: Final = range(4, 18)
SMALL: Final = range(4, 11)
BIG: Final = range(11, 18)

REMEDY_LOOK: Final = "look at the dice: pay, and the first result stands, or declare the round void at the console"
REMEDY: Final = "declare the round void at the console, or cover the dice again: the open round is then void"
MISSING: Final = "events of this round may be missing"
CLOTH: Final = "bets may have been moved unseen after a void throw: cover the dice again, and they are given back"

# What the croupier calls at the opening, where the house lets him (2(3)), at the bell (3(1)), of a void throw (3(3)).
OPENING: Final = {"pt": "Façam as vossas apostas", "zh-Hant": "請下注", "en": "Place your bets"}
BELL: Final = {"pt": "Abertura da jogada", "zh-Hant": "開", "en": "Opening"}
VOID: Final = {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}

_SIZES: Final[dict[str, Words]] = {"small": ("pequeno", "小", "small"), "big": ("grande", "大", "big")}


class Articles(Struct, frozen=True):
    """Where a text says what a round rests on, each as a result cites it.

    `null_bets`: what it lets become of the bets of a void throw.
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


class Ceremony(Chips, Protocol):
    """The options of a house that shakes dice."""

    @property
    def edition(self) -> str: ...
    @property
    def agitation(self) -> Literal["lever", "electronic", "either"]: ...
    @property
    def panel(self) -> bool: ...
    @property
    def announces(self) -> bool: ...
    @property
    def lights(self) -> bool: ...
    @property
    def payment(self) -> Literal["implied", "console"]: ...


class ShakenState(Struct, frozen=True):
    """Where a table stands.

    `covered`: the dome is known to be on. `pulls` and `agitations` count the shaking under it. `carried` is the cloth
    after a void throw, until the next round takes it over: that one is `repeated`, and `locked` is what may not be
    taken off it. `laid` is what is known beside a cloth in doubt: the bets laid since the loss, and the shaking. `last`
    and `reading` are the resolved round until it is paid: it can still be corrected; `unseen`: whether it was paid is
    not known. `unheard`: nor what was done under the dome, as no covering was seen since a loss.
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
    unseen: bool = False
    laid: Round | None = None
    unheard: bool = False


class Throw(Struct, frozen=True):
    """All that follows from one throw, worked out once."""

    winners: tuple[Win, ...]
    outcome: dict[str, Any]
    announcements: dict[str, str]
    law: tuple[str, ...]


class ShakenDice(ABC):
    """A game of three shaken dice: `_pays`, `_facts` and `_calls` are its own, all else is the ceremony."""

    id: ClassVar[str]
    State: ClassVar[type[ShakenState]] = ShakenState

    def __init__(
        self,
        options: Ceremony,
        bets: tuple[Bet, ...],
        board: tuple[str, ...],
        articles: Articles,
    ) -> None:
        """Work out, once, what wins on each of the 216 throws: a game calls this when it is ready to say."""
        self._terms = terms(self.id, options.edition, options, VOID)
        self._ceremony = options
        self._mechanisms = ("lever", "electronic") if options.agitation == "either" else (options.agitation,)
        self._bets = bets
        self.board = board
        self._offered = frozenset(board)
        self._at = articles
        self._throws: dict[tuple[int, ...], Throw] = {}
        for faces in combinations_with_replacement(FACES, 3):
            throw = self._throw(faces)
            self._throws.update((order, throw) for order in permutations(faces))

    # ---- what the game says

    @abstractmethod
    def _pays(self, place: str, dice: Counter[int], total: int) -> int:
        """What `place` wins on this throw, x to 1; 0 where it loses."""

    @abstractmethod
    def _facts(self, faces: tuple[int, ...]) -> dict[str, Any]:
        """The game's own facts of this throw, beside faces, total, triple and size."""

    @abstractmethod
    def _calls(self, faces: tuple[int, ...], facts: dict[str, Any]) -> tuple[Words, tuple[Words, ...]]:
        """What the croupier calls of this throw: the dice themselves, and what comes after total and size."""

    # ---- what a house offers and shows

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of art. 5."""
        return self._bets

    def start(self, table: str) -> ShakenState:
        """A table nobody has played on."""
        return ShakenState(table)

    def view(self, state: ShakenState) -> View:
        """Phase: idle, paying, covered, betting, closed, uncovered, suspended. `say` is what the croupier calls now."""
        if state.round is None:
            return self._view_between(state)
        round_ = state.round
        shaken = bool(state.pulls or state.agitations)
        detail: dict[str, Any] = {"pulls": state.pulls, "agitations": state.agitations}
        if self._ceremony.panel:
            detail["panel"] = shaken and not round_.closed
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if round_.closed:
            return View(round_.id, "closed" if state.covered else "uncovered", {**detail, "say": BELL})
        if state.opened:
            return View(round_.id, "betting", {**detail, "say": OPENING} if self._ceremony.announces else detail)
        return View(round_.id, "covered", detail)

    def _view_between(self, state: ShakenState) -> View:
        if state.last is None or state.reading is None:
            return View("", "idle", {})
        throw = self._throws[state.reading.faces]
        if state.last.suspended:
            return View(state.last.id, "suspended", {**throw.outcome, "reason": state.last.suspended})
        return View(state.last.id, "paying", {**throw.outcome, "say": throw.announcements})

    def apply(self, state: ShakenState, seen: Envelope) -> Step:
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
            case DiceDisturbed() | DiceReplaced() | DiceSeized() if state.round is not None:
                return self._touched(state, state.round, seen)
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._missed(replace(state, covered=False, pulls=0, agitations=0, unheard=True), seen)
            case _:
                return state, ()

    # ---- the flow

    def _begin(self, state: ShakenState, seen: Envelope) -> tuple[ShakenState, Round, tuple[Verdict, ...]]:
        """A new round takes over the cloth; one that waits for a person ends first, its bets returned.

        What is known beside a cloth in doubt goes on: the bets laid since, and the shaking, up to the bell.
        """
        verdicts: tuple[Verdict, ...] = ()
        ended, laid = state.round, state.laid
        pulls = agitations = 0
        if ended is not None:
            verdicts = (Voided(self._returned(ended, seen, ended.suspended or "never_read")),)
            if _only_cloth(state, ended) and not (ended.closed and isinstance(seen.event, DiceCovered)):
                pulls, agitations = state.pulls, state.agitations
            cloth, laid, repeated = laid or Round(""), None, False
        else:
            if state.last is not None and state.last.suspended:
                result = self._returned(state.last, seen, state.last.suspended)
                verdicts = (Corrected(replace(result, supersedes=result.round)),)
            cloth, repeated = state.carried or Round(""), state.carried is not None
        if state.unheard:
            cloth, laid = replace(together(cloth, laid), suspended=MISSING), None
        elif cloth.suspended:
            laid = witness(laid or Round(""), seen)
        day, count = next_number(state.day, state.count, seen)
        round_ = witness(replace(cloth, id=f"{state.table}:{day}:{count}"), seen)
        begun = ShakenState(
            state.table,
            day,
            count,
            round_,
            covered=state.covered,
            pulls=pulls,
            agitations=agitations,
            repeated=repeated,
            locked=_held(state.locked, cloth, laid),
            laid=laid,
            unheard=state.unheard,
        )
        verdicts += (Opened(round_.id),)
        if round_.suspended:
            verdicts += (Suspended(round_.id, round_.suspended, REMEDY),)
        return begun, round_, verdicts

    def _covered(self, state: ShakenState, seen: Envelope) -> Step:
        round_ = state.round
        if round_ is not None and not round_.suspended:
            if state.covered:
                return replace(state, round=witness(round_, seen)), ()
            if not round_.closed:
                # The bets were opened, or the dice shaken, without the dome: noted then. Now a shaking may count.
                return replace(state, round=witness(round_, seen), covered=True), ()
            text = "the dice were covered before they were read"
            state = replace(state, round=irregular(round_, "covered_before_reading", text, self._at.payment, seen))
        unpaid = state.last if self._ceremony.payment == "console" and not state.unseen else None
        state, round_, verdicts = self._begin(replace(state, covered=True, unheard=False), seen)
        if unpaid is not None:
            text = f"the dice were covered before {unpaid.id} was paid"
            state = replace(state, round=irregular(round_, "covered_before_payment", text, self._at.payment, seen))
        return state, verdicts

    def _agitated(self, state: ShakenState, seen: Envelope, agitation: DiceAgitated) -> Step:
        verdicts: tuple[Verdict, ...] = ()
        round_ = state.round
        if round_ is None:
            state, round_, verdicts = self._begin(state, seen)
        round_ = witness(round_, seen)
        beside = _only_cloth(state, round_) and not round_.closed
        if round_.suspended and not beside:
            return replace(state, round=round_), verdicts
        if round_.closed:
            text = "the dice were shaken after the bell"
            return self._void(
                state,
                irregular(round_, "agitated_after_bell", text, self._at.bell, seen),
                "agitated_after_bell",
                self._at.bell,
            )
        shaken = witness(state.laid or Round(""), seen) if beside else round_
        if agitation.mode not in self._mechanisms:
            text = f"the dice were shaken by {agitation.mode}, authorised is {' or '.join(self._mechanisms)}"
            shaken = irregular(shaken, "wrong_mechanism", text, self._at.mechanism, seen)
        if not state.covered:
            text = "the dice were shaken without the dome; this shaking does not count"
            shaken = irregular(shaken, "agitated_uncovered", text, self._at.shaking, seen)
        elif state.opened:
            text = "the dice were shaken after the bets were opened"
            shaken = irregular(shaken, "agitated_after_opening", text, self._at.shaking, seen)
        state = replace(state, round=round_, laid=shaken) if beside else replace(state, round=shaken)
        if not state.covered:
            return state, verdicts
        lever = agitation.mode == "lever"
        state = replace(
            state,
            pulls=state.pulls + (agitation.cycles if lever else 0),
            agitations=state.agitations + (0 if lever else 1),
        )
        return state, verdicts

    def _bets_opened(self, state: ShakenState, seen: Envelope) -> Step:
        verdicts: tuple[Verdict, ...] = ()
        round_ = state.round
        own = round_ is not None and state.unheard and not (state.opened or round_.closed)
        if round_ is None or (round_.suspended and not own):
            state, round_, verdicts = self._begin(state, seen)
        round_ = witness(round_, seen)
        if round_.closed:
            text = "bets were opened again after the bell"
            return replace(state, round=irregular(round_, "bets_reopened", text, self._at.bell, seen)), ()
        if not state.opened and not round_.suspended:
            round_ = self._check_agitation(state, round_, seen)
        return replace(state, round=round_, opened=True), verdicts

    def _check_agitation(self, state: ShakenState, round_: Round, seen: Envelope) -> Round:
        """Art. 2(1): before the bets, exactly three pulls of the lever or one electronic agitation."""
        if (state.pulls, state.agitations) in ((PULLS, 0), (0, 1)):
            return round_
        if not state.pulls and not state.agitations:
            text = "the dice were not shaken under the dome before the bets"
            return irregular(round_, "bets_before_agitation", text, self._at.shaking, seen)
        text = f"the dice were shaken by {state.pulls} pulls of the lever and {state.agitations} electronic agitations"
        return irregular(round_, "wrong_agitation", f"{text}, not by three or by one", self._at.shaking, seen)

    def _bell(self, state: ShakenState, seen: Envelope) -> Step:
        if state.round is None:
            return state, noted("bell_without_round", "the bell rang, no round is open", self._at.bell, seen)
        round_ = witness(state.round, seen)
        if round_.closed:
            return replace(state, round=round_), ()
        verdicts: tuple[Verdict, ...] = (Closed(round_.id),)
        if round_.suspended:
            round_ = replace(together(round_, state.laid), closed=True)
            return replace(state, round=round_, laid=None), verdicts
        if not state.opened:
            round_ = irregular(
                round_, "bell_without_opening", "the bell rang, but the bets were never opened", self._at.shaking, seen
            )
            round_ = self._check_agitation(state, round_, seen)
        round_ = replace(round_, closed=True)
        if not state.pulls and not state.agitations:
            state, void = self._void(state, round_, "not_agitated", self._at.shaking)
            return state, verdicts + void
        return replace(state, round=round_), verdicts

    def _uncovered(self, state: ShakenState, seen: Envelope) -> Step:
        state = replace(state, covered=False)
        if state.round is None:
            return state, ()
        round_ = witness(state.round, seen)
        if round_.suspended and (round_.closed or not _only_cloth(state, round_)):
            return replace(state, round=round_, pulls=0, agitations=0), ()
        if round_.closed:
            return replace(state, round=round_), ()
        text = "the dome was lifted before the bell"
        round_ = irregular(round_, "uncovered_before_bell", text, self._at.bell, seen)
        return self._void(state, round_, "uncovered_before_bell", self._at.bell)

    def _touched(self, state: ShakenState, round_: Round, seen: Envelope) -> Step:
        """Art. 2(1): the dice that count are those that were shaken, as they fell. Before the bets, they are again."""
        if round_.suspended or not (state.opened or round_.closed):
            return replace(state, round=witness(round_, seen), pulls=0, agitations=0), ()
        return self._suspend(state, witness(round_, seen), "the dice were touched or exchanged after they were shaken")

    def _read(self, state: ShakenState, seen: Envelope, reading: DiceRead) -> Step:
        if state.round is None:
            return self._read_again(state, seen, reading)
        round_ = witness(state.round, seen)
        if round_.suspended and (round_.closed or not _only_cloth(state, round_)):
            return replace(state, round=round_), ()
        if not round_.closed:
            text = "the dice were read before the bell"
            return self._void(
                state,
                irregular(round_, "read_before_bell", text, self._at.bell, seen),
                "read_before_bell",
                self._at.bell,
            )
        if state.covered:
            return self._suspend(state, round_, "the dice were read, but the dome was not seen to be lifted")
        if reading.stacked or reading.leaning:
            facts = {"faces": reading.faces, "stacked": reading.stacked, "leaning": reading.leaning}
            state, void = self._void(state, round_, "stacked_or_leaning", self._at.null, outcome=facts)
            return replace(state, reading=_settled(reading)), void
        if reading.faces not in self._throws:
            return self._suspend(state, round_, f"the reading of {len(reading.faces)} faces is no throw of three dice")
        result = self._resolve(round_, reading.faces)
        state = ShakenState(
            state.table, state.day, state.count, covered=state.covered, last=round_, reading=_settled(reading)
        )
        return state, (Resolved(result),)

    def _read_again(self, state: ShakenState, seen: Envelope, reading: DiceRead) -> Step:
        """The same reading changes nothing; another one, before the payment, puts the result in doubt."""
        if _settled(reading) == state.reading:
            return state, ()
        if state.last is None or state.unseen:  # after a loss it may be another throw's
            text = "the dice were read, no round is open"
            return state, noted("reading_without_round", text, self._at.reading, seen)
        if state.last.suspended:
            return replace(state, last=witness(state.last, seen)), ()
        text = f"two readings of {state.last.id} contradict each other"
        last = irregular(state.last, "readings_contradict", text, self._at.reading, seen)
        last = replace(last, suspended="two readings contradict each other")
        return replace(state, last=last), (Suspended(last.id, last.suspended, REMEDY_LOOK),)

    def _paid(self, state: ShakenState, seen: Envelope) -> Step:
        last, paid = state.last, replace(state, last=None)
        if last is None or state.reading is None or not last.suspended:
            return paid, ()
        if state.unseen or seen.event.overtaken:  # it may be of a throw that was lost, or of the one before
            return replace(state, last=witness(last, seen)), ()
        # Paid while in doubt: the croupier, who sees the dice, lets the first result stand.
        result = self._resolve(replace(witness(last, seen), suspended=""), state.reading.faces)
        return paid, (Corrected(replace(result, supersedes=result.round)),)

    def _missed(self, state: ShakenState, seen: Envelope) -> Step:
        """Nobody knows whether the dome stayed on, what was taken off the cloth, whether the prizes were paid."""
        if state.round is None:
            cloth = together(state.carried, state.laid) if state.carried is not None else None
            if cloth is not None and cloth.wagers:
                cloth = replace(witness(cloth, seen), suspended=CLOTH)
            return replace(state, carried=cloth, laid=None, unseen=True), ()
        if state.round.suspended:
            reason = CLOTH if state.round.suspended == CLOTH else MISSING
            round_ = replace(witness(together(state.round, state.laid), seen), suspended=reason)
            return replace(state, round=round_, laid=None), ()
        return self._suspend(state, witness(state.round, seen), MISSING)

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
        state: ShakenState,
        round_: Round,
        reason: str,
        *articles: str,
        outcome: dict[str, Any] | None = None,
    ) -> Step:
        """The throw does not count and the operation is repeated; the bets lie on the cloth by the text's rule."""
        if state.laid is not None:
            round_ = replace(round_, irregularities=(*round_.irregularities, *state.laid.irregularities))
        result = self._null(round_, reason, articles, outcome)
        return self._repeat(state, round_), (Voided(result),)

    def _null(
        self, round_: Round, reason: str, articles: tuple[str, ...], outcome: dict[str, Any] | None = None
    ) -> Result:
        law = dict.fromkeys((*articles, self._at.null, self._at.bets_after_null))
        return voided(round_, self._terms, Void(reason, self._at.null_bets), tuple(law), outcome)

    def _repeat(self, state: ShakenState, round_: Round) -> ShakenState:
        """The cloth for the next throw. What nobody knows of it stays unknown until its bets are returned."""
        doubt = CLOTH if round_.wagers and round_.suspended in (MISSING, CLOTH) else ""
        cloth = Round("", wagers=round_.wagers, suspended=doubt)
        laid = Round("", wagers=state.laid.wagers) if state.laid is not None else None
        whole = together(cloth, laid)
        return ShakenState(
            state.table,
            state.day,
            state.count,
            covered=state.covered,
            carried=cloth if doubt else whole,
            locked=whole.wagers if self._at.null_bets == "stand_may_add" else (),
            laid=laid if doubt else None,
            unheard=state.unheard,
        )

    def _declared_void(self, state: ShakenState, seen: Envelope, reason: str) -> Step:
        if state.round is not None:
            return self._void(state, witness(state.round, seen), reason)
        if state.last is None:
            text = "a round was declared void, none is open or unpaid"
            return state, noted("void_without_round", text, self._at.null, seen)
        if seen.event.overtaken:
            last, waits = taken_back_before(state.last, seen, REMEDY_LOOK)
            return replace(state, last=last), waits
        last = witness(state.last, seen)
        result = replace(self._null(last, reason, ()), supersedes=last.id)
        return self._repeat(state, replace(last, suspended=MISSING) if state.unseen else last), (Corrected(result),)

    def _returned(self, round_: Round, seen: Envelope, reason: str) -> Result:
        """Nobody can say how the throw ended: no article speaks of it, nothing is guessed, the bets come back."""
        return voided(witness(round_, seen), self._terms, Void(reason, "returned"), (self._at.reading,))

    def _suspend(self, state: ShakenState, round_: Round, reason: str) -> Step:
        held = replace(round_, suspended=reason)
        return replace(state, round=held), (Suspended(held.id, reason, REMEDY),)

    # ---- bets

    def _wager(self, state: ShakenState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        cloth = state.round or state.carried
        if cloth is None:
            return state, noted("bet_without_round", f"seat {one.seat} on {one.bet}", self._at.shaking, seen)
        if isinstance(one, WagerWithdrawn) and not cloth.closed and self._stands(state, cloth, one):
            text = f"seat {one.seat} on {one.bet}: bets stand after a void throw"
            cloth = irregular(cloth, "bet_stands", text, self._at.null, seen)
        elif cloth.suspended == CLOTH and not cloth.closed:
            cloth, laid = wager_beside(cloth, state.laid or Round(""), one, self._offered, self._at.bets, seen)
            over = state.round is None and not cloth.wagers  # nothing is in doubt any more
            cloth = replace(together(cloth, laid), suspended="") if over else cloth
            state = replace(state, laid=None if over else laid)
        else:
            before = cloth.wagers
            cloth = wager(cloth, one, self._offered, self._at.bell if cloth.closed else self._at.bets, seen)
            changeable = state.opened or state.repeated or state.round is None or bool(cloth.suspended)
            if isinstance(one, WagerPlaced) and cloth.wagers != before and not changeable:
                text = f"seat {one.seat} on {one.bet} before the bets were opened"
                cloth = irregular(cloth, "early_bet", text, self._at.shaking, seen)
        return (replace(state, carried=cloth) if state.round is None else replace(state, round=cloth)), ()

    def _stands(self, state: ShakenState, cloth: Round, one: WagerWithdrawn) -> bool:
        """31/2003 art. 3(3): what lay there when the throw was void cannot be taken back."""
        locked = sum(wager.amount for wager in state.locked if (wager.seat, wager.bet) == (one.seat, one.bet))
        held = lying(together(cloth, state.laid), one.seat, one.bet)
        return bool(locked) and held - (one.amount or held) < locked

    # ---- words

    def _throw(self, faces: tuple[int, ...]) -> Throw:
        dice, total = Counter(faces), sum(faces)
        triple = len(dice) == 1
        winners = tuple(Win(bet, str(pays)) for bet in self.board if (pays := self._pays(bet, dice, total)))
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


def _only_cloth(state: ShakenState, round_: Round) -> bool:
    """The bets of a void throw are all that is in doubt: the covering of this one was seen since."""
    return round_.suspended == CLOTH and not state.unheard


def _held(locked: tuple[Wager, ...], cloth: Round, laid: Round | None) -> tuple[Wager, ...]:
    """What still lies there of the bets that stand."""
    whole = together(cloth, laid)
    kept = (replace(one, amount=min(one.amount, lying(whole, one.seat, one.bet))) for one in locked)
    return tuple(one for one in kept if one.amount)


def _settled(reading: DiceRead) -> DiceRead:
    """The reading whenever and in whatever order the dice were told; more than four faces say no more than four."""
    return replace(reading, faces=tuple(sorted(reading.faces))[:4], overtaken=0)
