"""Macau baccarat: Despacho Regulamentar Externo 55/2004 as amended up to 56/2018.

The flow: the cards are shuffled, a set of them is burnt (2(1)), and coups are dealt until the cut card (3(1)): two
cards each in turn, the player's side first (7(1)), at most one more each by the table of art. 9; the higher total wins
(11), equal totals are a tie (12).

Readings. The text knows no bell. `opening` says how a coup begins: under `first_card` the card after the end of the
last coup begins the next one and closes its bets; under `bell` bets are opened, the bell closes them, and a card that
comes before it is a dealing error (10). The bell also ends the burn. A table nobody has played on stands between two
coups and past its burn.

A doubtful card, or events that may be missing, suspend the coup. It ends when the deal is corrected (10: the hands as
they lie now; it goes on from there, or is resolved if art. 9 gives nobody a card), when it is declared void, or when
the bets are opened or a new shoe starts: then it is void first. Of a void coup the text says nothing more: its bets
and jackpot bets are returned, and the cards still coming from it belong to no coup. The next one waits for the
opening of the bets, the payment or a new shoe. Until it begins, a resolved coup can still be corrected, declared void,
or taken up again where the corrected hands lack a card; once its shoe is over, only whole hands correct it. A shoe that
tells the last card again, or lets another slide out with it, begins a coup that never was: hands laid that are those of
the coup before, or its cards and those told since, less what was told again, are of that one, and the other is void:
it was not the last coup of its shoe, nor a demonstration. A coup whose bell rang first is always one.

Hands may be told late, and be meant for another coup. Those that hold no card of the coup, or more of the one before,
suspend it: said once more they are its own, which the very hands of the one before never are. Where its shoe is over,
they are noted and its result stands. A coup of which no card was told is entered with one word where the one before was
paid, if they have no card in common; and where nothing was told of that one either, unless most of the cards are its
own (by chance less than 1 of 100). A card entered by hand may be told yet: where the next coup begins with it, that
suspends too (by chance 2 of 100 for each card so entered). Hands and a void that name their coup are of no other. An
event that comes late with its age is put at its time; without an age it leaves a doubt, and a payment ends none.

Before the bell no card of a coup can be missing. Bets opened once more after a loss are those of the next coup. Under
`first_card` a card may be dealt before the bell, and a loss between two coups leaves it unknown which card is the
first: the next card suspends. So it does where cards were told or lost while a coup waited, and are none of its hands;
cards that were told so are not settled by the payment either; the card of art. 8 is settled by hands whose first card
came next after it. A burn that was not seen whole is over when the bell rings, when hands are laid, when a coup that
one of its cards began is declared void, when the bets are opened while such a coup waits and told a card, or with a new
shoe. What is lost and proved only later, such as the start of a shoe, is beyond it: a table that must never err rings
its bell.

A loss while a coup is open, before the bell or after it, may be that of a bet, or of one taken back: the coup is
resolved or void without settlements, and its jackpot names no seat. Hands that are put right say nothing of amounts.

Only the highest combination of a jackpot is paid ("uma das seguintes combinações", 13). Double pairs differ in points
(K-K and Q-Q do not). Art. 17(12) prints no prize for five of the same value in C, though 13 offers it: with
`c_five_same: none` such a coup wins nothing there, four of the same value included. A wager names a seat, so its player
is seated (13(3)). Where wagers are told and none is on the jackpot it is nobody's. A demonstration that art. 2(2) does
not allow is an ordinary coup; one declared before the shoe is started is its first coup.
"""

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    Event,
    RoundDemo,
    RoundPaid,
    RoundVoided,
    ShoeEmptied,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import Reason, say
from rules.engine.facts import BESIDE, PLAIN, Effect, Fact, Frame, Hands, Note, Table
from rules.engine.money import Rounding
from rules.engine.refold import Game
from rules.engine.rounds import Round, irregular, resolved, terms, wager
from rules.engine.ruleset import Award, Bet, Result, View, Win, option
from rules.games.baccarat import BANKER_RULES, NO_CARD, PLAYER_RULES, beyond, deal, due, hands, told_again
from rules.games.cards import PIPS, POINTS, UNKNOWN, colour, points, rank, suit

TEXT: Final = "Despacho 55/2004"
MAX_TOLD: Final = 16
MAIN: Final = ("player", "banker", "tie")
PAYTABLE: Final = (
    Bet("player", "1", "arts. 13(1)(1), 17(1)", "the player's side has the higher total; comes back on a tie"),
    Bet("banker", "1", "arts. 13(1)(2), 17(1), 18", "the banker's side has the higher total; comes back on a tie"),
    Bet("tie", "8", "arts. 13(1)(3), 17(2)", "equal totals"),
    Bet("player_pair", "11", "arts. 13(1)(4)(1), 17(3)", "the player's first two cards are of one rank"),
    Bet("banker_pair", "11", "arts. 13(1)(4)(1), 17(3)", "the banker's first two cards are of one rank"),
    Bet("dragon_7", "40", "arts. 13(1)(4)(2), 17(4)", "the banker wins with 7 on three cards"),
    Bet("lucky_6", "12 or 20", "arts. 13(1)(4)(3), 17(5)", "the banker wins with 6: on two cards 12, on three 20"),
)
FAMILIES: Final = tuple(bet.id for bet in PAYTABLE)
BANKER_PAYS: Final = {
    "5_percent": "19/20",
    "six_pays_half": "1, or 1/2 with 6",
    "dragon_7_push": "1; comes back on a dragon 7",
}

CORRECT: Final = say("do_correct_coup")
ONCE_MORE: Final = say("do_once_more")
RESHUFFLE: Final = say("do_shuffle_coup")

VOID_WORDS: Final = {"pt": "Lance nulo", "zh-Hant": "此局無效", "en": "Void"}

# No cut card yet: any number of coups may still begin.
UNLIMITED: Final = -1
# As many cards as the first one says.
BY_FIRST_CARD: Final = -1


# ---- art. 13(1)(4)(4): the progressive jackpots


def combination_a(cards: tuple[str, ...], double_pairs_by: str) -> str:
    """The highest combination of jackpot A, or nothing: on the first five cards, the first four, the first two each."""
    five, four = cards[:5], cards[:4]
    if {rank(card) for card in five} == set("AKQJT"):
        suits = {suit(card) for card in five if rank(card) != "A"}
        if len(suits) == 1:
            return "royal_flush" if {suit(card) for card in five} == suits else "paradise_straight"
    player_pair, banker_pair = rank(four[0]) == rank(four[2]), rank(four[1]) == rank(four[3])
    most = max(Counter(rank(card) for card in four).values())
    if most == 4:
        return "four_of_a_kind"
    if player_pair and banker_pair and (double_pairs_by == "rank" or points(four[0::2]) != points(four[1::2])):
        return "double_pairs"
    if most == 3:
        return "three_of_a_kind"
    return "single_pair" if player_pair or banker_pair else ""


def combination_bc(cards: tuple[str, ...], *, colours: bool) -> str:
    """The highest combination of jackpot B, or with `colours` of C, or nothing: on all cards, K Q J T differ."""
    counts = sorted(Counter(rank(card) for card in cards).values(), reverse=True)
    if counts[0] == 6:
        return "six_same_colour" if colours and len({colour(card) for card in cards}) == 1 else "six_same"
    if counts == [3, 3]:
        return "double_three"
    return {5: "five_same", 4: "four_same", 3: "three_same"}.get(counts[0], "")


# Combination, what it pays, its item in art. 13 and its paragraph of art. 17.
JACKPOTS: Final[dict[str, dict[str, tuple[Literal["pool", "fixed", "larger_of_fixed_and_share"], str, str]]]] = {
    "A": {
        "royal_flush": ("pool", "i", "6"),
        "paradise_straight": ("larger_of_fixed_and_share", "ii", "7"),
        "four_of_a_kind": ("fixed", "iii", "8"),
        "double_pairs": ("fixed", "iv", "8"),
        "three_of_a_kind": ("fixed", "v", "8"),
        "single_pair": ("fixed", "vi", "8"),
    },
    "B": {
        "six_same": ("pool", "i", "6"),
        "five_same": ("fixed", "ii", "9"),
        "double_three": ("fixed", "iii", "9"),
        "four_same": ("fixed", "iv", "9"),
        "three_same": ("fixed", "v", "9"),
    },
    "C": {
        "six_same_colour": ("pool", "i", "10"),
        "six_same": ("larger_of_fixed_and_share", "ii", "11"),
        "five_same": ("fixed", "iii", "12"),  # printed "iiii)", and missing in 17(12)
        "double_three": ("fixed", "iv", "12"),
        "four_same": ("fixed", "v", "12"),
        "three_same": ("fixed", "vi", "12"),
    },
}
JACKPOT_LAW: Final = {"A": "17(6)-(8)", "B": "17(6), 17(9)", "C": "17(10)-(12)"}
PARADISE_SHARE: Final = "1/10"


class BaccaratOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house (art. 19), and the readings that are possible."""

    decks: Annotated[int, Meta(ge=6, le=12), option("art. 1(1)", "decks of 52 cards in play")] = 8
    device: Annotated[
        Literal["shoe", "continuous"],
        option(
            "arts. 1(2)-(3), 2(3), 7(2)",
            "a shoe, or a shuffler that deals: no burn, no cut card, all cards face up and back after each coup",
        ),
    ] = "shoe"
    burn: Annotated[
        Literal["decks", "first_card", "fixed"],
        option(
            "art. 2(1)",
            "cards burnt after shuffling: as many as decks, as the value of the first (ace 1, ten and figures 10; "
            "itself counted), or `burn_fixed`",
        ),
    ] = "decks"
    burn_fixed: Annotated[int, Meta(ge=1, le=8), option("art. 2(1)(3)", "cards burnt with burn = fixed")] = 1
    burn_each_coup: Annotated[bool, option("art. 8", "one card is burnt at the beginning of each coup")] = False
    demonstration_rounds: Annotated[
        int, Meta(ge=0, le=3), option("art. 2(2)", "at most so many coups without bets at the start of a shoe")
    ] = 0
    cut_card: Annotated[
        Literal["last", "one_more"], option("art. 3(1)", "the coup under way is the last one, or one more follows")
    ] = "last"
    opening: Annotated[
        Literal["bell", "first_card"],
        option("arts. 7(1), 10", "a coup is dealt after the bell only, or its first card also opens and closes it"),
    ] = "first_card"
    commission: Annotated[
        Literal["5_percent", "six_pays_half", "dragon_7_push"],
        option(
            "art. 18",
            "on a banker's win: 5 % of it; none, but half pay with 6; none, but banker pushes on a dragon 7 while "
            "player and tie lose",
        ),
    ] = "5_percent"
    bets_offered: Annotated[
        tuple[str, ...], option("arts. 13(1), 19", f"bets offered, of {' '.join(FAMILIES)}; empty: all of them")
    ] = ()
    additional_bets: Annotated[
        Literal["free", "with_main_bet"],
        option("art. 13(1)(4)", "pairs and dragon 7 may stand alone, or only beside a bet on player, banker or tie"),
    ] = "free"
    jackpot: Annotated[
        Literal["none", "A", "B", "C"],
        option("art. 13(1)(4)(4)", "the progressive jackpot of the table, bet `jackpot`"),
    ] = "none"
    double_pairs_by: Annotated[
        Literal["points", "rank"], option("art. 13(1)(4)(4) A iv)", "what differs between the two pairs of jackpot A")
    ] = "points"
    c_five_same: Annotated[
        Literal["fixed", "none"],
        option(
            "arts. 13(1)(4)(4) C, 17(12)", "five of the same value in jackpot C: a fixed amount, or as printed none"
        ),
    ] = "fixed"
    c_six_share: Annotated[
        str,
        Meta(pattern="^[1-9][0-9]{0,8}/[1-9][0-9]{0,8}$"),
        option("art. 17(11)", "share of the pool for six of the same value in jackpot C, if above the fixed amount"),
    ] = "1/10"
    players_handle_cards: Annotated[
        bool, option("art. 16", "the seat with the highest bet of each side may look at its cards")
    ] = False
    smallest_chip: Annotated[int, Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if self.device == "continuous":
            self._check_continuous()
        if self.burn != "fixed" and self.burn_fixed != 1:
            raise ValueError("burn_fixed: art. 2(1)(3): a number of cards is set only with burn = fixed")
        unknown = [bet for bet in self.bets_offered if bet not in FAMILIES]
        if unknown:
            hint = "; the jackpot is chosen with `jackpot`" if unknown[0] == "jackpot" else ""
            raise ValueError(f"bets_offered: art. 13 has no bet {unknown[0]!r}, it has {', '.join(FAMILIES)}{hint}")
        missing = [bet for bet in MAIN if self.bets_offered and bet not in self.bets_offered]
        if missing:
            raise ValueError(f"bets_offered: arts. 13(1), 19: only the additional bets are a choice; add {missing[0]}")
        if self.double_pairs_by != "points" and self.jackpot != "A":
            raise ValueError("double_pairs_by: art. 13(1)(4)(4): only jackpot A has double pairs")
        if self.c_five_same != "fixed" and self.jackpot != "C":
            raise ValueError("c_five_same: arts. 13(1)(4)(4), 17(9): for jackpot C only; B prints its prize")
        if self.c_six_share != "1/10" and self.jackpot != "C":
            raise ValueError("c_six_share: art. 17(11): for jackpot C only")
        if Fraction(self.c_six_share) > 1:
            raise ValueError("c_six_share: art. 17(11): no share is more than the whole pool, 1/1")

    def _check_continuous(self) -> None:
        if self.burn != "decks" or self.burn_fixed != 1:
            raise ValueError("burn: art. 2(3): no cards are burnt with device = continuous; leave it out")
        if self.burn_each_coup:
            raise ValueError("burn_each_coup: art. 8: a card is taken from a shoe only, not with device = continuous")
        if self.demonstration_rounds:
            raise ValueError(
                "demonstration_rounds: art. 2(2)-(3): at the start of a shoe only, not device = continuous"
            )
        if self.cut_card != "last":
            raise ValueError("cut_card: arts. 2(3), 3(1): there is no cut card with device = continuous; leave it out")
        if self.players_handle_cards:
            raise ValueError("players_handle_cards: art. 7(2): all cards lie face up with device = continuous")


class Position(Struct, frozen=True):
    """The shoe, and the coup in it.

    `burn` counts the cards of the set still to be burnt; when it is `unsure`, the burn lasts until the bets are opened,
    or under `first_card` until somebody says that it is over. `left`: coups that may still begin in this shoe; `dealt`:
    those that began, `demos` of them demonstrations; `demo_next`: the event that declared the next one to be one.
    `spent`: the cards now coming belong to a void coup.

    Of the coup: `cards` in the order of the deal; `burnt`: the card of art. 8 is out; `told`: the cards the shoe told
    since the bell; `aside`: those of them that came while it waited for a person, and after its end those that are none
    of its hands; `entered`: those that only a correction brought, `entered_before` into the coup before: the shoe may
    tell them yet, when what held it up is over.
    """

    burn: int = 0
    unsure: bool = False
    left: int = UNLIMITED
    dealt: int = 0
    demos: int = 0
    demo_next: str = ""
    spent: bool = False
    cards: tuple[str, ...] = ()
    face_up: tuple[str, ...] = ()
    burnt: bool = False
    corrected: bool = False
    told: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    entered: tuple[str, ...] = ()
    entered_before: tuple[str, ...] = ()

    @property
    def begun(self) -> bool:
        """A card of the coup is out of the shoe."""
        return bool(self.cards) or self.burnt


NO_COUP: Final = Position()
COUP_FIELDS: Final = ("cards", "face_up", "burnt", "corrected", "told", "aside", "entered", "entered_before")


class BaccaratState(Table[Position], frozen=True):
    """Where a table stands."""


class Outcome(Struct, frozen=True):
    """All that follows from the totals and the pairs, worked out once."""

    facts: dict[str, Any]
    winners: tuple[Win, ...]
    pushes: tuple[str, ...]
    announcements: dict[str, str]
    law: tuple[str, ...]


class Baccarat(Game[Position]):
    """The ruleset."""

    id: ClassVar[str] = "macau.baccarat"
    title: ClassVar[str] = "Baccarat, Macau"
    law: ClassVar[str] = "Despacho 55/2004 as amended up to Despacho 56/2018"
    Options: ClassVar[type[BaccaratOptions]] = BaccaratOptions
    State: ClassVar[type[BaccaratState]] = BaccaratState
    own: ClassVar[frozenset[type[Event]]] = frozenset(
        (CardDrawn, CardUnreadable, CutCardDrawn, ShoeStarted, ShoeEmptied, CardsReturned, RoundDemo)
    )
    numbers_shoes: ClassVar[bool] = True
    article_void: ClassVar[str] = "10"
    article_bets: ClassVar[str] = "13(1)"
    article_bell: ClassVar[str] = "7(1)"
    remedy: ClassVar[Reason] = CORRECT

    def __init__(self, options: BaccaratOptions) -> None:
        """Work out, once, what each end of a coup wins."""
        self.options = options
        self._shoe = options.device == "shoe"
        self._bell = options.opening == "bell"
        self.waits_for_bell = self._bell
        self.jackpot_bets = "returned" if options.jackpot != "none" else ""
        self.terms = terms(self.id, "2018", options, VOID_WORDS)
        self._bets = tuple(
            replace(bet, pays=BANKER_PAYS[options.commission]) if bet.id == "banker" else bet
            for bet in PAYTABLE
            if bet.id in (options.bets_offered or FAMILIES)
        )
        if options.jackpot != "none":
            paragraphs = JACKPOT_LAW[options.jackpot]
            self._bets += (
                Bet(
                    "jackpot",
                    "pool, share or fixed",
                    f"arts. 13(1)(4)(4), {paragraphs}",
                    f"combinations of jackpot {options.jackpot}, for seated players with a main bet",
                ),
            )
        self.offered = frozenset(bet.id for bet in self._bets)
        self._needs_main = frozenset(
            ("jackpot", "player_pair", "banker_pair", "dragon_7")
            if options.additional_bets == "with_main_bet"
            else ("jackpot",)
        )
        self._outcomes = {
            (player, banker, drawn, player_pair, banker_pair): self._outcome(
                player, banker, drawn, player_pair, banker_pair
            )
            for player, banker, drawn, player_pair, banker_pair in product(
                range(10), range(10), (False, True), (False, True), (False, True)
            )
        }
        self._deal_law = {key: tuple(_cite(*articles)) for key, articles in _deal_articles(options.device).items()}

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of art. 13."""
        return self._bets

    def cite(self, article: str) -> str:
        """An article as results cite it."""
        return f"{TEXT} art. {article}"

    def view(self, state: Table[Position]) -> View:
        """Phase: idle, burning, betting, closed, dealing, suspended, resolved, ended (no further coup in this shoe)."""
        p, frame = state.position, state.open
        last = state.last if state.last is not None and state.last.counts else None
        burning = bool(p.burn) or p.unsure
        if frame is None and (last is None or burning):
            phase = "burning" if burning else "ended" if p.left == 0 else "idle"
            return View("", phase, {"shoe": state.shoe, "burn": p.burn} if p.burn > 0 else {"shoe": state.shoe})
        shown = frame or last
        assert shown is not None
        round_, cards = shown.round, p.cards if frame is not None or last is None else (last.position or p).cards
        detail: dict[str, Any] = {"demo": round_.demo, "last": p.left == 0, **self._shown(cards)}
        if frame is None:
            return View(round_.id, "resolved", detail)
        if self.options.players_handle_cards and round_.closed and not frame.lost:
            detail["handles"] = {side: seat for side in ("player", "banker") if (seat := _highest(round_, side))}
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if not round_.closed:
            return View(round_.id, "betting", detail)
        return View(round_.id, "dealing" if p.begun else "closed", {**detail, "next": due(p.cards)})

    # ---- the life of a coup

    def fresh(self) -> Position:
        """A table that was never played on stands between two coups, past its burn."""
        return NO_COUP

    def begins(self, position: Position, event: Event) -> bool:
        """A card that is neither burnt nor stray."""
        unreadable = isinstance(event, CardUnreadable) or (isinstance(event, CardDrawn) and event.card not in POINTS)
        if not (unreadable or isinstance(event, CardDrawn)):
            return False
        burning = bool(position.burn) or position.unsure
        if burning and (self._bell or not (unreadable or position.unsure)):
            return False
        if position.left == 0 or position.spent:
            return False
        return not (unreadable and self._bell)

    def begin(self, position: Position) -> tuple[Position, tuple[str, ...], bool, Effect]:
        """Another coup of the shoe."""
        p, demo = position, bool(position.demo_next)
        effect = Effect(suspend=say("last_coup"), remedy=RESHUFFLE) if p.left == 0 else PLAIN
        evidence = (p.demo_next,) if demo else ()
        p = replace(
            _with_coup(p, NO_COUP),
            dealt=p.dealt + 1,
            left=p.left - 1 if p.left > 0 else p.left,
            demos=p.demos + demo,
            demo_next="",
            spent=False,
            entered_before=p.entered if p.dealt else (),
        )
        return p, evidence, demo, effect

    def over(self, position: Position) -> bool:
        """By art. 9 nobody receives a card."""
        return due(position.cards) is None

    def end(self, position: Position, *, void: bool) -> Position:
        """The cards still coming from a void coup belong to none."""
        if not void:
            return position
        return replace(position, spent=due(position.cards) is not None or bool(position.aside), entered=())

    def resume(self, now: Position, ended: Position) -> Position:
        """The coup of then in the shoe of now."""
        return _with_coup(now, ended)

    def laid(self, position: Position) -> dict[str, Any]:
        """The hands that lie there."""
        if not position.cards:
            return {}
        player, banker = self._lie(position.cards)
        return {"hands": {"player": player, "banker": banker}}

    def missed(self, position: Position) -> Position:
        """A card of the burn may be missing."""
        return replace(position, unsure=position.unsure or bool(position.burn))

    def set_aside(self, position: Position, fact: Fact) -> Position:
        """A card that came in doubt."""
        if not isinstance(fact.event, CardDrawn):
            return position
        told, aside = (*position.told, fact.event.card), (*position.aside, fact.event.card)
        return replace(position, burn=0, told=told[-MAX_TOLD:], aside=aside[-MAX_TOLD:])

    def left_over(self, position: Position) -> Effect:
        """Without a bell nothing stands between the cards of two coups."""
        if self._bell or not position.aside:
            return PLAIN
        return Effect(next_doubt=say("told_before"))

    def at_bell(self, round_: Round, fact: Fact) -> Round:
        """What is additional to a main bet goes back where there is none."""
        seated = {one.seat for one in round_.wagers if one.bet in MAIN}
        for one in round_.wagers:
            if one.bet in self._needs_main and one.seat not in seated:
                text = say("bet_without_main", seat=one.seat, bet=one.bet)
                article = "13(3)" if one.bet == "jackpot" else "13(1)(4)"
                round_ = irregular(round_, "bet_without_main_bet", text, self.cite(article), fact)
                round_ = replace(round_, wagers=tuple(kept for kept in round_.wagers if kept != one))
        return round_

    def take_wager(self, round_: Round, one: WagerPlaced | WagerWithdrawn, fact: Fact) -> Round:
        """Art. 2(2): a demonstration has no bets."""
        if not round_.demo:
            return wager(round_, one, self.offered, self.cite("13(1)"), fact)
        text = say("seat_bet", seat=one.seat, bet=one.bet)
        return irregular(round_, "bet_on_demonstration", text, self.cite("2(2)"), fact)

    # ---- events

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """One event."""
        p = position
        match fact.event:
            case CardDrawn(card=card, face=face) if card in POINTS:
                return self._between_coups(p, card) if frame is None else self._card(p, fact, frame, card, face)
            case CardDrawn() | CardUnreadable():
                return self._unreadable(p, frame)
            case BetsClosed():
                return self._rung(p, frame)
            case BetsOpened() if frame is not None and frame.round.suspended and p.told:
                return replace(p, unsure=False), PLAIN  # else cards of the burn may come yet
            case RoundVoided() if frame is not None and frame.round.closed:
                return replace(p, unsure=False), PLAIN
            case RoundPaid():
                missing = say("paid_cards_missing")
                if frame is None:
                    return replace(p, spent=False), PLAIN
                return p, Effect(suspend=missing) if p.begun else PLAIN
            case ShoeStarted(decks=decks):
                return self._shoe_started(p, decks, frame)
            case CutCardDrawn():
                return self._cut_card(p, frame)
            case ShoeEmptied() if self._shoe:
                return self._emptied(replace(p, left=0), frame)
            case RoundDemo():
                return self._demo(p, fact, frame)
            case CardsReturned() if not self._shoe and frame is not None and p.begun:
                text = say("cards_returned_coup")
                return p, Effect((Note("cards_returned_early", text, "7(2)"),))
            case _:
                return p, BESIDE

    def _card(
        self, p: Position, fact: Fact, frame: Frame[Position], card: str, face: str | None
    ) -> tuple[Position, Effect]:
        if frame.round.suspended:
            return self.set_aside(p, fact), PLAIN
        if not frame.round.closed:
            if p.burn and not p.unsure:
                return self._burnt(p, card), BESIDE
            if self._bell or p.unsure:
                burn = say("burn_unseen")
                early = burn if p.unsure else say("before_bell")
                p = replace(p, unsure=p.unsure and not self._bell)
                return self.set_aside(p, fact), Effect(first=True, suspend=early)
        if card in p.entered or (not p.told and card in p.entered_before):
            reason = say("by_hand", card=card)
            return self.set_aside(p, fact), Effect(first=not p.told, suspend=reason)
        effect = Effect(first=not p.told)
        p = replace(p, told=(*p.told, card)[-MAX_TOLD:])
        if self.options.burn_each_coup and not p.burnt:
            return replace(p, burnt=True), effect
        if face == "down" and not self._shoe:
            effect = replace(effect, notes=(Note("card_face_down", say("card_face_down", card=card), "7(2)"),))
        face_up = (*p.face_up, card) if face == "up" and self._shoe else p.face_up
        return replace(p, cards=(*p.cards, card), face_up=face_up), effect

    def _between_coups(self, p: Position, card: str) -> tuple[Position, Effect]:
        return (self._burnt(p, card), PLAIN) if p.burn or p.unsure else (p, self._stray(p))

    def _burnt(self, p: Position, card: str) -> Position:
        """Art. 2(1)."""
        return replace(p, burn=max((PIPS[card] if p.burn == BY_FIRST_CARD else p.burn) - 1, 0))

    def _stray(self, p: Position) -> Effect:
        """A card that comes where none can begin a coup: after the last one, or left over from a void one."""
        if p.left == 0:
            return Effect((Note("card_after_last_coup", say("card_last_coup"), "3(1)"),))
        if p.spent:
            return Effect((Note("card_of_void_coup", say("card_void_coup"), "10"),))
        return Effect((Note("unreadable_between_coups", say("card_may_have_left"), "10"),))

    def _unreadable(self, p: Position, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        if frame is None:
            if not (p.burn or p.unsure):
                return p, self._stray(p)
            text = say("burn_uncertain")
            return replace(p, unsure=True), Effect((Note("burn_uncertain", text, "2(1)"),))
        if frame.round.closed:
            waits = frame.round.suspended and not self._bell  # it may be the next coup's
            return p, Effect(suspend=say("card_unreadable"), next_doubt=say("before_card") if waits else None)
        reason = say("burn_unreadable") if p.burn else say("card_unreadable")
        unsure = not self._bell and (p.unsure or bool(p.burn))
        return replace(p, burn=0, unsure=unsure), Effect(first=True, suspend=reason)

    def _rung(self, p: Position, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        assert frame is not None
        if frame.round.closed:
            during = (Note("bell_during_deal", say("bell_dealing"), "10"),)
            return p, Effect(during) if p.begun and not frame.round.suspended else PLAIN
        lacking = (Note("burn_incomplete", say("bell_burn"), "2(1)"),)
        return replace(p, burn=0, unsure=False), Effect(lacking) if p.burn and not p.unsure else PLAIN

    def _demo(self, p: Position, fact: Fact, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """Art. 2(2): at the start of a shoe, up to the limit of the house."""
        if (frame is None and p.demo_next) or (frame is not None and frame.round.demo):
            return p, BESIDE
        before = p.dealt - (frame is not None)
        limit = self.options.demonstration_rounds if self._shoe else 0
        early = frame is None or (not p.begun and not frame.round.suspended)
        if not early or before != p.demos or before >= limit:
            text = say("demonstration", coups=before, demos=p.demos, limit=limit)
            return p, Effect((Note("demonstration_not_allowed", text, "2(2)"),))
        if frame is None:
            return replace(p, demo_next=fact.id), PLAIN
        notes = []
        for one in frame.round.wagers:
            text = say("bet_demonstration", seat=one.seat, bet=one.bet)
            notes.append(Note("bet_on_demonstration", text, "2(2)"))
        return replace(p, demos=p.demos + 1), Effect(tuple(notes), round=replace(frame.round, demo=True, wagers=()))

    # ---- the shoe

    def _shoe_started(self, p: Position, decks: int, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        if frame is not None:
            return p, Effect(restart=True, void=say("never_completed") if p.begun else say("shoe_started"))
        text = say("wrong_decks", decks=decks, allowed=self.options.decks)
        wrong = (Note("wrong_number_of_decks", text, "1(1)"),) if decks not in (0, self.options.decks) else ()
        burn = {"decks": self.options.decks, "first_card": BY_FIRST_CARD, "fixed": self.options.burn_fixed}
        started = Position(burn=burn[self.options.burn] if self._shoe else 0, demo_next=p.demo_next)
        return started, Effect(wrong, restart=True)

    def _cut_card(self, p: Position, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """Art. 3(1). Where it comes before a coup's first card, the coup under way is the one before."""
        if not self._shoe:
            return p, Effect((Note("cut_card_in_shuffler", say("cut_card_shuffler"), "2(3)"),))
        if p.left != UNLIMITED:  # one of several cut cards, art. 1(2)
            return p, PLAIN
        waiting = frame is not None and not p.begun and not frame.round.suspended
        one_more = self.options.cut_card == "one_more"
        p = replace(p, left=1 if one_more and not waiting else 0)
        return p, Effect(void=say("cut_card_before_first_card"), article="3(1)") if waiting and not one_more else PLAIN

    def _emptied(self, p: Position, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        if frame is None:
            return p, PLAIN
        if not p.begun and not frame.round.suspended:
            return p, Effect(void=say("shoe_emptied"), article="3(1)")
        return p, Effect(suspend=say("shoe_empty_coup"), remedy=RESHUFFLE)

    # ---- art. 10: the hands are replaced, and the deal goes on from there

    def lay(
        self,
        position: Position,
        hands: Hands,
        frame: Frame[Position],
        before: Frame[Position] | None,
        *,
        named: bool,
        reopened: bool,
    ) -> tuple[Position, Effect]:
        """The coup with these hands, or why they are not used."""
        p, cards = position, deal(hands)
        whole = cards is not None and due(cards) is None
        if reopened and not p.dealt and not whole:  # its shoe is over: no card could be dealt to it
            text = say("corrected_not_whole", round=frame.round.id)
            return p, Effect((Note("correction_incomplete", text, "10"),))
        if cards and not named and (reopened or before is not None) and _of_another(p, frame, before, cards):
            if reopened and not p.dealt:
                text = say("corrected_another", round=frame.round.id)
                return p, Effect((Note("correction_of_another", text, "10"),))
            same = before is not None and before.position is not None and cards == before.position.cards
            return p, Effect(suspend=say("other_coup"), remedy=CORRECT if same else ONCE_MORE)
        reason = None
        if cards is None:
            reason = say("hands_by_law")
        elif not cards and frame.result is not None:
            reason = say("no_hand_told")
        elif not cards and self.options.burn_each_coup:
            reason = say("burn_unknown")
        if cards is None or reason:
            return p, Effect(suspend=reason, again=True)
        laid = replace(
            p,
            unsure=p.unsure and reopened,  # hands laid say that the burn is over
            cards=cards,
            face_up=tuple(card for card in p.face_up if card in cards),
            burnt=self.options.burn_each_coup,
            corrected=True,
            aside=self._none_of(p, cards) if whole else (),
            entered=beyond(cards, p.told),
        )
        return laid, PLAIN

    def _none_of(self, p: Position, laid: tuple[str, ...]) -> tuple[str, ...]:
        """The cards told while the coup waited that are none of its hands now, nor such as were entered before."""
        aside = p.aside
        if self.options.burn_each_coup and not p.burnt and aside[1:2] == laid[:1]:
            aside = aside[1:]  # the card of art. 8: the first one of the hands came next
        return beyond(aside, (*beyond(laid, p.cards), *p.entered, *p.entered_before))

    def never_was(self, position: Position, before: Frame[Position], frame: Frame[Position], hands: Hands) -> Effect:
        """Hands of the coup before are not dealt twice in a row; a coup whose bell rang before a card is always one."""
        cards, known = deal(hands), before.position
        begun = next((fact.event for fact in frame.facts if isinstance(fact.event, BetsClosed | CardDrawn)), None)
        if not cards or known is None or isinstance(begun, BetsClosed):
            return PLAIN
        if told_again(known.cards + position.told, cards):
            return Effect(void=say("told_twice"))
        return Effect(void=say("not_dealt") if cards == known.cards else None)

    # ---- the result

    def resolve(self, position: Position, frame: Frame[Position]) -> Result:
        """Arts. 11, 12, 17 and 18."""
        p, round_ = position, frame.round
        known = replace(round_, wagers=()) if frame.lost else round_
        player, banker = hands(p.cards)
        first = (points(player[:2]), points(banker[:2]))
        third = POINTS[player[2]] if len(player) == 3 else NO_CARD
        pairs = (player[0][0] == player[1][0], banker[0][0] == banker[1][0])
        end = self._outcomes[points(player), points(banker), len(banker) == 3, *pairs]
        law = self._deal_law[*first, third] + end.law
        if p.burnt or p.face_up or p.corrected or round_.demo:
            said = (("8", p.burnt), ("4", p.face_up), ("10", p.corrected), ("2(2)", round_.demo))
            law += _cite(*(article for article, applies in said if applies))
        outcome = {"hands": {"player": player, "banker": banker}, **end.facts, "natural": max(first) >= 8}
        if p.face_up:
            outcome["face_up"] = p.face_up
        return resolved(
            known,
            self.terms,
            outcome=outcome,
            winners=end.winners,
            pushes=end.pushes,
            jackpots=() if self.options.jackpot == "none" or round_.demo else self._awards(p.cards, known, frame),
            announcements=end.announcements,
            law=law,
        )

    def _awards(self, cards: tuple[str, ...], known: Round, frame: Frame[Position]) -> tuple[Award, ...]:
        which = self.options.jackpot
        combination = (
            combination_a(cards, self.options.double_pairs_by)
            if which == "A"
            else combination_bc(cards, colours=which == "C")
        )
        if not combination or (which == "C" and combination == "five_same" and self.options.c_five_same == "none"):
            return ()
        pays, item, paragraph = JACKPOTS[which][combination]
        share = self.options.c_six_share if which == "C" else PARADISE_SHARE
        held = {(one.seat, one.bet) for one in known.wagers}
        among = sorted(seat for seat, bet in held if bet == "jackpot" and any((seat, main) in held for main in MAIN))
        if not among and frame.wagered and not frame.lost:
            return ()  # the bets are known, and none is on it
        law = f"{TEXT} art. 13(1)(4)(4) {which}({item}), art. 17({paragraph})"
        return (
            Award(which, combination, pays, law, share if pays == "larger_of_fixed_and_share" else "", tuple(among)),
        )

    def _outcome(self, player: int, banker: int, drawn: bool, player_pair: bool, banker_pair: bool) -> Outcome:
        """What the totals decide; `drawn`: the banker's side has three cards."""
        winner = "player" if player > banker else "banker" if banker > player else "tie"
        dragon_7 = winner == "banker" and banker == 7 and drawn
        lucky_6 = winner == "banker" and banker == 6
        commission = self.options.commission
        pushes: tuple[str, ...] = ("player", "banker") if winner == "tie" else ()
        wins: list[Win] = []
        articles = ["12", "17(2)"] if winner == "tie" else ["11", "17(1)"]
        if winner == "banker":
            articles.append({"5_percent": "18(1)", "six_pays_half": "18(2)", "dragon_7_push": "18(3)"}[commission])
        if dragon_7 and commission == "dragon_7_push":
            pushes = ("banker",)
            articles = ["11", "18(3)"]
        elif winner == "banker" and commission == "5_percent":
            wins.append(Win("banker", "19/20", "1"))
        elif lucky_6 and commission == "six_pays_half":
            wins.append(Win("banker", "1/2"))
        else:
            wins.append(Win(winner, "8" if winner == "tie" else "1"))
        side = (
            ("player_pair", player_pair, "11", "17(3)"),
            ("banker_pair", banker_pair, "11", "17(3)"),
            ("dragon_7", dragon_7, "40", "17(4)"),
            ("lucky_6", lucky_6, "20" if drawn else "12", "17(5)"),
        )
        won = [(bet, pays, article) for bet, wins_, pays, article in side if wins_ and bet in self.offered]
        wins += [Win(bet, pays) for bet, pays, _ in won]
        articles += [article for _, _, article in won]
        calls = {
            "tie": (f"Empate a {player}", f"和，{player}點", f"Tie, {player} all"),
            "player": (
                f"Jogador ganha, {player} contra {banker}",
                f"閒贏，{player}點對{banker}點",
                f"Player wins, {player} to {banker}",
            ),
            "banker": (
                f"Banca ganha, {banker} contra {player}",
                f"莊贏，{banker}點對{player}點",
                f"Banker wins, {banker} to {player}",
            ),
        }
        called = [bet for bet, _, _ in won]
        if pushes == ("banker",) and "dragon_7" not in called:
            called.append("dragon_7")  # why the bets on the winner only come back
        said = (calls[winner], *(_CALLS[bet] for bet in called))
        announcements = {
            language: mark.join(words[place] for words in said)
            for place, (language, mark) in enumerate((("pt", ", "), ("zh-Hant", "，"), ("en", ", ")))
        }
        facts = {
            "totals": {"player": player, "banker": banker},
            "winner": winner,
            "player_pair": player_pair,
            "banker_pair": banker_pair,
            "dragon_7": dragon_7,
            "lucky_6": lucky_6,
        }
        return Outcome(facts, tuple(wins), pushes, announcements, _cite(*dict.fromkeys(articles)))

    # ---- what may be shown

    def _lie(self, cards: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Both hands as everybody sees them. Seats that handle cards show them once each side has two (7(1), 16)."""
        handled = self.options.players_handle_cards and len(cards) < 4
        return hands((UNKNOWN,) * len(cards) if handled else cards)

    def _shown(self, cards: tuple[str, ...]) -> dict[str, Any]:
        player, banker = self._lie(cards)
        totals = {} if UNKNOWN in player else {"player": points(player), "banker": points(banker)}
        return {"hands": {"player": player, "banker": banker}, "totals": totals}


_CALLS: Final = {
    "player_pair": ("par de jogador", "閒對", "player pair"),
    "banker_pair": ("par de banca", "莊對", "banker pair"),
    "dragon_7": ("Sete Dragão", "龍七", "Dragon 7"),
    "lucky_6": ("6 Sortudo", "幸運六", "Lucky 6"),
}


def _deal_articles(device: str) -> dict[tuple[int, int, int], tuple[str, ...]]:
    """The articles a deal rests on, by both totals of two cards and the player's third card."""
    dealt = "7(1)" if device == "shoe" else "7(2)"
    return {
        (player, banker, third): ("5", dealt, PLAYER_RULES[player, banker][1], rule)
        for (player, banker, third), (_, rule) in BANKER_RULES.items()
    }


def _highest(round_: Round, side: str) -> int:
    """Art. 16(2): the seat with the highest bet on a side, the first to place it where two are equal; 0 for none."""
    bets = [one for one in round_.wagers if one.bet == side]
    return max(bets, key=lambda one: one.amount).seat if bets else 0


def _with_coup(p: Position, coup: Position) -> Position:
    """The shoe of `p` with the coup of `coup`."""
    return replace(p, **{name: getattr(coup, name) for name in COUP_FIELDS})


def _of_another(p: Position, frame: Frame[Position], before: Frame[Position] | None, laid: tuple[str, ...]) -> bool:
    """Whether hands may be meant for another coup: they hold no card of this one, or more of the one before.

    Where it waits for a person already they are its own, unless they are the very same as those of the one before.
    Where it holds no card they cannot hold one of it: then what is known of the one before decides.
    """
    known = before.position if before is not None else None
    others = known.cards if known is not None else ()
    if laid == others or frame.round.suspended:
        return laid == others
    new = beyond(laid, p.cards)
    shared = len(laid) - len(beyond(laid, others))
    if before is not None and known is not None and not p.cards:
        if not known.told:  # nothing is told at this table: a card in common is chance, most of them are not
            return 2 * shared > len(laid)
        if any(isinstance(fact.event, RoundPaid) for fact in (*before.after, *frame.facts)):
            return shared > 0
    return len(new) == len(laid) or len(laid) - shared < len(new)


def _cite(*articles: str) -> tuple[str, ...]:
    return tuple(f"{TEXT} art. {article}" for article in articles)
