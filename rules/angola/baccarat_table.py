"""The common part of articles 10 and 11 of Decreto Executivo 261/22: their paragraphs 1 to 17 are the same.

`rules/angola/baccarat.py` and `rules/angola/baccarat_macau.py` derive from it: their deductions and limits differ.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from protocols.contract.events import (
    CardDrawn,
    CardUnreadable,
    CutCardDrawn,
    Event,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from rules.engine.cloth import refuse
from rules.engine.facts import Effect, Fact, Frame, Note
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.rounds import Round, terms
from rules.engine.ruleset import Bet, Win, option
from rules.games.baccarat_coups import (
    CALLS,
    MAIN,
    UNCOUNTED,
    UNLIMITED,
    VOID_WORDS,
    Articles,
    Coup,
    Coups,
    House,
    Paid,
    Position,
    Words,
)

TEXT: Final = "Decreto Executivo 261/22"
PAIRS: Final = ("player_pair", "banker_pair")
FAMILIES: Final = (*MAIN, *PAIRS)
OTHER_SIDE: Final = {"player": "banker", "banker": "player"}
BURN: Final = 8
DECK: Final = 52
FROM_END: Final = 12
"""The approximate number of cards behind the warning card."""


class BaccaratOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What both articles leave to the house, and the readings that are possible."""

    article: ClassVar[str] = ""

    decks: Annotated[
        int,
        Meta(ge=6, le=8),
        option("arts. 10(1), 10(4)(b), 11(1), 11(4)(b)", "six: a single table or a shuffler; eight: a double table"),
    ] = 8
    device: Annotated[
        Literal["shoe", "continuous"],
        option(
            "arts. 10(4), 10(5), 11(4), 11(5)",
            "a shoe, or a shuffler that deals: no cut, no warning card, no burn",
        ),
    ] = "shoe"
    opening: Annotated[
        Literal["bell", "first_card"],
        option(
            "arts. 10(13), 11(13)",
            "a coup is dealt after the key for «Nada mais» only, or its first card also opens and closes it",
        ),
    ] = "bell"
    bets_offered: Annotated[
        tuple[str, ...], option("arts. 10(11), 11(11)", f"bets offered, of {' '.join(FAMILIES)}; empty: all of them")
    ] = ()
    handling: Annotated[
        Literal["players", "dealer"],
        option(
            "arts. 10(18)-(20), 11(18)-(22)",
            "the highest bettor of each side looks at its cards, or the dealer alone handles them",
        ),
    ] = "players"
    both_sides: Annotated[
        Literal["refused", "accepted"],
        option("arts. 10(12), 11(12)", "a bet on player at a seat that bets on banker, or on banker at one on player"),
    ] = "refused"
    warn_card_within: Annotated[
        int,
        Meta(ge=0, le=416),
        option("arts. 10(5), 11(5)", "cards that the warning card may be off its place; 0: not checked"),
    ] = 5
    smallest_chip: Annotated[int, Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for what the text excludes, naming the article."""
        article = self.article
        if self.decks == 7:
            raise ValueError(f"decks: art. {article}(1): six, or eight at a double table")
        if self.device == "continuous" and self.decks != 6:
            raise ValueError(f"decks: art. {article}(4)(b): six with device = continuous")
        if unknown := [bet for bet in self.bets_offered if bet not in FAMILIES]:
            raise ValueError(
                f"bets_offered: art. {article}(11) has no bet {unknown[0]!r}, it has {', '.join(FAMILIES)}"
            )
        if missing := [bet for bet in MAIN if self.bets_offered and bet not in self.bets_offered]:
            raise ValueError(f"bets_offered: art. {article}(11): only the pairs are a choice; add {missing[0]}")


class Deduction(Struct, frozen=True):
    """A deduction: what a win of the banker pays with it, or only a win with `total`. `paragraph`: of the deduction."""

    pays: str
    text: str
    paragraph: str
    total: int | None = None


class Ends(Struct, frozen=True):
    """The paragraphs of an article on the end of a coup."""

    wins: str
    tie: str
    pair: str


class AngolaTable(Coups):
    """One of the two articles."""

    bell_after_loss: ClassVar[bool] = False
    article: ClassVar[str]
    ends: ClassVar[Ends]
    deductions: ClassVar[Mapping[str, Deduction]]
    calls: ClassVar[Mapping[str, Words]] = {
        **CALLS,
        "player": ("Ponto ganha, {0} contra {1}", *CALLS["player"][1:]),
        "player_pair": ("par do ponto", *CALLS["player_pair"][1:]),
        "banker_pair": ("par da banca", *CALLS["banker_pair"][1:]),
    }

    def __init__(self, options: BaccaratOptions, deduction: str) -> None:
        """Six or eight decks; of a shoe eight cards are burnt, and one before each coup but its first."""
        self._deduction = self.deductions.get(deduction)
        self._both_sides = options.both_sides == "accepted"
        self._warn_card_within = options.warn_card_within if options.device == "shoe" else 0
        shoe, at = options.device == "shoe", self.article
        house = House(
            options.decks,
            shoe,
            bell=options.opening == "bell",
            burn=BURN if shoe else 0,
            coup_burn="but_first" if shoe else "never",
            cut_card_voids=False,
            handled=options.handling == "players",
            ties_by="lowest_seat",
        )
        articles = Articles(
            decks=f"{at}(1)" if shoe else f"{at}(4)(b)",
            burn=f"{at}(5)",
            coup_burn=f"{at}(15)",
            last_coup=f"{at}(6)",
            shuffler=f"{at}(4)(a)",
            returned=f"{at}(4)(c)",
            face_up=f"{at}(7)",
            face_down="",
            error=f"{at}(17)",
        )
        super().__init__(house, articles, terms(self.id, "2022", options, VOID_WORDS), self._offered(options))

    def _offered(self, options: BaccaratOptions) -> tuple[Bet, ...]:
        ends, placed, deduction = self.ends, f"{self.article}(11)", self._deduction
        banker = deduction.text if deduction else "1"
        law = f"{placed}, {ends.wins}" + (f", {deduction.paragraph}" if deduction else "")
        bets = (
            Bet("player", "1", f"arts. {placed}, {ends.wins}", "the player's side is higher; comes back on a tie"),
            Bet("banker", banker, f"arts. {law}", "the banker's side is higher; comes back on a tie"),
            Bet("tie", "8", f"arts. {placed}, {ends.tie}", "equal totals"),
            Bet("player_pair", "11", f"arts. {placed}, {ends.pair}", "the player's first two cards are of one rank"),
            Bet("banker_pair", "11", f"arts. {placed}, {ends.pair}", "the banker's first two cards are of one rank"),
        )
        return tuple(bet for bet in bets if bet.id in (options.bets_offered or FAMILIES))

    def cite(self, article: str) -> str:
        """An article as results cite it."""
        return f"{TEXT} art. {article}"

    def dealt(self, player: int, banker: int, third: int) -> tuple[str, ...]:
        """The values of the cards, the first two of each side, the table of third cards."""
        return tuple(f"{self.article}({paragraph})" for paragraph in (8, 9, 14, 16))

    def paid(self, coup: Coup) -> Paid:
        """Player and banker pay 1, the tie 8, a pair 11; a deduction may lower what the banker pays."""
        won, deduction, tie = coup.winner, self._deduction, coup.winner == "tie"
        articles = [self.ends.tie if tie else self.ends.wins]
        main = Win(won, "8" if tie else "1")
        if won == "banker" and deduction and deduction.total in (None, coup.banker):
            main = Win(won, deduction.pays, "1")
            articles.append(deduction.paragraph)
        pairs = zip(PAIRS, (coup.player_pair, coup.banker_pair), strict=True)
        paired = tuple(bet for bet, is_pair in pairs if is_pair and bet in self.offered)
        articles += [self.ends.pair] * bool(paired)
        wins = (main, *(Win(bet, "11") for bet in paired))
        return Paid(wins, tuple(articles), ("player", "banker") if tie else (), paired)

    # ---- the warning card

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """One event. Cards that left the shoe are counted, so that the place of the warning card is known."""
        p = position
        match fact.event:
            case CardDrawn() | CardUnreadable() if p.drawn != UNCOUNTED:
                p = replace(p, drawn=p.drawn + 1)
            case ShoeStarted():
                p, effect = super().step(p, fact, frame)
                return replace(p, drawn=0), effect
            case CutCardDrawn() if p.left == UNLIMITED:
                p, effect = super().step(p, fact, frame)
                return p, self._warned(p, effect)
        return super().step(p, fact, frame)

    def _warned(self, p: Position, effect: Effect) -> Effect:
        left = DECK * self.house.decks - p.drawn
        if not self._warn_card_within or p.drawn == UNCOUNTED or abs(left - FROM_END) <= self._warn_card_within:
            return effect
        note = Note("warn_card_misplaced", say("warn_card_misplaced", left=left), f"{self.article}(5)")
        return replace(effect, beside=(*effect.beside, note))

    def missed(self, position: Position, event: Event) -> Position:
        """The cards are no longer counted."""
        return replace(super().missed(position, event), drawn=UNCOUNTED)

    # ---- bets

    def take_wager(self, round_: Round, one: WagerPlaced | WagerWithdrawn, fact: Fact) -> Round:
        """Refuse a bet over its limit, or on the side opposite to another bet of its seat."""
        if isinstance(one, WagerPlaced) and not round_.closed and one.bet in self.offered:
            note = self.refusal(round_, one)
            if note is not None:
                return refuse(round_, one, note.code, note.reason, self.cite(note.article), fact)
        return super().take_wager(round_, one, fact)

    def refusal(self, round_: Round, one: WagerPlaced) -> Note | None:
        """Why a bet cannot be taken: its seat bets on the other side."""
        other = OTHER_SIDE.get(one.bet)
        if self._both_sides or other is None or not staked(round_, other, one.seat):
            return None
        return Note("against_seat", say("against_seat", seat=one.seat, bet=one.bet), f"{self.article}(12)")


def staked(round_: Round, bet: str, seat: int = 0) -> int:
    """The amount on a bet, at one seat or at all seats."""
    return sum([one.amount for one in round_.wagers if one.bet == bet and (not seat or one.seat == seat)])
