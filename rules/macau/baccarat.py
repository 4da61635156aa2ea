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
suspends too (by chance 2 of 100 for each card so entered). A payment told late was made before what was told since, and
ends no doubt.

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
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    DealCorrected,
    DeviceOnline,
    EventsMissed,
    RoundDemo,
    RoundPaid,
    RoundVoided,
    ShoeEmptied,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.topics import Envelope
from rules.engine.money import Rounding
from rules.engine.rounds import Round, irregular, noted, resolved, suspend, terms, voided, wager, witness
from rules.engine.ruleset import (
    Award,
    Bet,
    Closed,
    Corrected,
    Opened,
    Resolved,
    Result,
    Verdict,
    View,
    Void,
    Voided,
    Win,
    option,
)
from rules.games.cards import PIPS, POINTS, UNKNOWN, colour, points, rank, suit

Side: TypeAlias = Literal["player", "banker"]
Step: TypeAlias = tuple["BaccaratState", tuple[Verdict, ...]]

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

CORRECT: Final = (
    "correct the deal at the console, or declare the coup void; opening the bets or a new shoe voids it too"
)
ONCE_MORE: Final = (
    "lay the same hands once more if they are this coup's, else correct the deal, or declare the coup void; "
    "opening the bets or a new shoe voids it too"
)
RESHUFFLE: Final = "shuffle and start the shoe, the coup is void then; or correct the deal, or declare the coup void"

VOID_WORDS: Final = {"pt": "Lance nulo", "zh-Hant": "此局無效", "en": "Void"}

# No cut card yet: any number of coups may still begin.
UNLIMITED: Final = -1
# As many cards as the first one says.
BY_FIRST_CARD: Final = -1
# The player's side received no third card.
NO_CARD: Final = -1


# ---- art. 9


def player_rule(player: int, banker: int) -> tuple[bool, str]:
    """Whether the player's side receives a third card, from both totals of two cards; and the paragraph."""
    draws = player < 6 and banker < 8
    return draws, "9(1)" if draws else "9(2)"


def banker_rule(player: int, banker: int, third: int) -> tuple[bool, str]:
    """Whether the banker's side receives a third card; `third` is the player's, in points, or NO_CARD."""
    if player >= 8:
        return False, "9(4)(6)"
    if banker >= 7:
        return False, "9(4)(5)"
    if third == NO_CARD:
        return (True, "9(3)(6)") if banker < 6 else (False, "9(4)(4)")
    match banker:
        case 3:
            return (True, "9(3)(2)") if third != 8 else (False, "9(4)(1)")
        case 4:
            return (True, "9(3)(3)") if 2 <= third <= 7 else (False, "9(4)(2)")
        case 5:
            return (True, "9(3)(4)") if 4 <= third <= 7 else (False, "9(4)(3)")
        case 6:
            return (True, "9(3)(5)") if third in (6, 7) else (False, "9(4)(4)")
        case _:
            return True, "9(3)(1)"


_PLAYER = {(player, banker): player_rule(player, banker) for player in range(10) for banker in range(10)}
_BANKER = {
    (player, banker, third): banker_rule(player, banker, third)
    for player in range(10)
    for banker in range(10)
    for third in range(NO_CARD, 10)
}


def due(cards: tuple[str, ...]) -> Side | None:
    """Who receives the next card, after `cards` in the order of the deal; None when the coup is complete."""
    dealt = len(cards)
    if dealt < 4:
        return "banker" if dealt % 2 else "player"
    player = (POINTS[cards[0]] + POINTS[cards[2]]) % 10
    banker = (POINTS[cards[1]] + POINTS[cards[3]]) % 10
    draws = _PLAYER[player, banker][0]
    if dealt == 4 and draws:
        return "player"
    if dealt == 6 or (dealt == 5 and not draws):
        return None
    third = POINTS[cards[4]] if draws else NO_CARD
    return "banker" if _BANKER[player, banker, third][0] else None


def hands(cards: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The player's and the banker's cards, from the order of the deal."""
    player, banker = cards[0:4:2], cards[1:4:2]
    if len(cards) > 4 and due(cards[:4]) == "player":
        return (*player, cards[4]), banker + cards[5:]
    return player, banker + cards[4:]


def deal(laid: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Hands as they lie, in the order of the deal; None where arts. 7 and 9 do not give such hands."""
    rest = {side: list(laid.get(side, ())) for side in ("player", "banker")}
    if set(laid) - set(rest) or any(card not in POINTS for cards in laid.values() for card in cards):
        return None
    cards: tuple[str, ...] = ()
    while (side := due(cards)) is not None and rest[side]:
        cards += (rest[side].pop(0),)
    return None if rest["player"] or rest["banker"] else cards


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


class Coup(Struct, frozen=True):
    """One coup. `cards` in the order of the deal; `burnt`: the card of art. 8 is out; `reopened` after its result.

    `told` are the cards the shoe told since the bell, `aside` those of them that came while it waited for a person, and
    after its end those that are none of its hands; `entered` those that only a correction brought: the shoe may tell
    them yet, when what held it up is over. `unsure`: events are missing, so the bets are not known; `wagered`: wagers
    were told. `rung`: its bell was heard before a card. `paid`: its prizes were, after its result. A coup that never
    was gives back what it took: `left`, how many could begin when it did, and `declared`, the event that made it a
    demonstration.
    """

    round: Round
    cards: tuple[str, ...] = ()
    face_up: tuple[str, ...] = ()
    burnt: bool = False
    corrected: bool = False
    reopened: bool = False
    told: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    entered: tuple[str, ...] = ()
    unsure: bool = False
    wagered: bool = False
    rung: bool = False
    paid: bool = False
    left: int = UNLIMITED
    declared: str = ""

    @property
    def begun(self) -> bool:
        """A card of it is out of the shoe."""
        return bool(self.cards) or self.burnt


class BaccaratState(Struct, frozen=True):
    """Where a table stands.

    `last` is the resolved coup until the next begins: it can still be corrected. `before` is what it was when the open
    coup began. `burn` counts the cards of the set still to be burnt; when it is `unsure`, the burn lasts until the bets
    are opened, or under `first_card` until somebody says that it is over. `left` is the number of coups that may still
    begin in this shoe; `phantoms`, how many of those counted never were. `demo_next`: the event that declared the next
    coup a demonstration. `spent`: the cards now coming belong to a void coup. `doubt`: why the next card cannot be
    trusted to be the first of a coup, or another opening of the bets to be of the same one.
    """

    table: str
    day: str = ""
    shoe: int = 0
    count: int = 0
    coup: Coup | None = None
    last: Coup | None = None
    before: Coup | None = None
    burn: int = 0
    unsure: bool = False
    left: int = UNLIMITED
    demos: int = 0
    phantoms: int = 0
    demo_next: str = ""
    spent: bool = False
    doubt: str = ""

    @property
    def fresh(self) -> bool:
        """No coup of this shoe was dealt: the last one is of another."""
        return self.count == self.phantoms


class Outcome(Struct, frozen=True):
    """All that follows from the totals and the pairs, worked out once."""

    facts: dict[str, Any]
    winners: tuple[Win, ...]
    pushes: tuple[str, ...]
    announcements: dict[str, str]
    law: tuple[str, ...]


class Baccarat:
    """The ruleset."""

    id: ClassVar[str] = "macau.baccarat"
    title: ClassVar[str] = "Baccarat, Macau"
    law: ClassVar[str] = "Despacho 55/2004 as amended up to Despacho 56/2018"
    Options: ClassVar[type[BaccaratOptions]] = BaccaratOptions
    State: ClassVar[type[BaccaratState]] = BaccaratState

    def __init__(self, options: BaccaratOptions) -> None:
        """Work out, once, what each end of a coup wins."""
        self.options = options
        self._shoe = options.device == "shoe"
        self._bell = options.opening == "bell"
        self._terms = terms(self.id, "2018", options, VOID_WORDS)
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
        self._offered = frozenset(bet.id for bet in self._bets)
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

    def start(self, table: str) -> BaccaratState:
        """A table nobody has played on."""
        return BaccaratState(table)

    # ---- what may be shown

    def view(self, state: BaccaratState) -> View:
        """Phase: idle, burning, betting, closed, dealing, suspended, resolved, ended (no further coup in this shoe)."""
        coup = state.coup or state.last
        burning = bool(state.burn) or state.unsure
        if coup is None or (state.coup is None and burning):
            phase = "burning" if burning else "ended" if state.left == 0 else "idle"
            return View("", phase, {"shoe": state.shoe, "burn": state.burn} if state.burn > 0 else {"shoe": state.shoe})
        detail: dict[str, Any] = {"demo": coup.round.demo, "last": state.left == 0, **self._shown(coup.cards)}
        round_ = coup.round
        if state.coup is None:
            return View(round_.id, "resolved", detail)
        if self.options.players_handle_cards and round_.closed and not coup.unsure:
            detail["handles"] = {side: seat for side in ("player", "banker") if (seat := _highest(round_, side))}
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if not round_.closed:
            return View(round_.id, "betting", detail)
        return View(round_.id, "dealing" if coup.begun else "closed", {**detail, "next": due(coup.cards)})

    # ---- events

    def apply(self, state: BaccaratState, seen: Envelope) -> Step:
        """One event."""
        match seen.event:
            case CardDrawn(card=card, face=face):
                return self._card(state, seen, card, face)
            case CardUnreadable():
                return self._unreadable(state, seen)
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(state, seen, one)
            case BetsOpened():
                return self._bets_opened(state, seen)
            case BetsClosed():
                return self._bets_closed(state, seen)
            case RoundPaid():
                return self._paid(state, seen)
            case DealCorrected(hands=laid):
                return self._corrected(state, seen, laid)
            case RoundVoided(reason=reason):
                return self._declared_void(state, seen, reason or "declared by the croupier")
            case RoundDemo():
                return self._demo(state, seen)
            case ShoeStarted(decks=decks):
                return self._shoe_started(state, seen, decks)
            case CutCardDrawn():
                return self._cut_card(state, seen)
            case ShoeEmptied():
                return self._emptied(state, seen)
            case CardsReturned():
                return self._returned(state, seen)
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._missed(state, seen)
            case _:
                return state, ()

    # ---- cards

    def _card(self, state: BaccaratState, seen: Envelope, card: str, face: str | None) -> Step:
        if card not in POINTS:
            return self._unreadable(state, seen)
        coup = state.coup
        if coup is not None and coup.round.closed:
            doubt = _by_hand(state, coup, card) or ("" if coup.told else state.doubt)
            coup = replace(coup, told=(*coup.told, card)[-MAX_TOLD:])
            if coup.round.suspended or doubt:
                coup = replace(coup, aside=(*coup.aside, card)[-MAX_TOLD:])
            if coup.round.suspended:
                return self._seen(state, coup, seen), ()
            if doubt:
                return self._suspend(replace(state, doubt=""), coup, seen, doubt)
            return self._deal(state, coup, seen, card, face)
        lost = state.unsure and (coup is not None or not self._bell)
        if (state.burn or state.unsure) and not lost:
            left = PIPS[card] if state.burn == BY_FIRST_CARD else state.burn
            return replace(state, burn=max(left - 1, 0)), ()
        if coup is None and (stray := self._stray(state, seen)):
            return state, stray
        doubt = state.doubt or ("a card left the shoe before the bell" if self._bell else "")
        if lost:
            doubt = "a card left the shoe in a burn that was not seen whole"
        state, coup, verdicts = self._begin(replace(state, burn=0, unsure=lost and not self._bell), seen)
        doubt = doubt or _by_hand(state, coup, card)
        coup = replace(coup, told=(card,))
        if doubt:
            state, held = self._suspend(state, replace(coup, aside=(card,)), seen, doubt)
            return state, verdicts + held
        state, dealt = self._deal(state, coup, seen, card, face)
        return state, verdicts + dealt

    def _stray(self, state: BaccaratState, seen: Envelope) -> tuple[Verdict, ...]:
        """Cards that come where none can begin a coup: after the last one, or left over from a void one."""
        if state.left == 0:
            return _note("card_after_last_coup", "a card was drawn after the last coup of the shoe", "3(1)", seen)
        if state.spent:
            return _note("card_of_void_coup", "a card was drawn after a void coup, before the next began", "10", seen)
        return ()

    def _begin(self, state: BaccaratState, seen: Envelope) -> tuple[BaccaratState, Coup, tuple[Verdict, ...]]:
        """A card is out: the coup is open, and its bets are closed."""
        verdicts: tuple[Verdict, ...] = ()
        coup = state.coup
        if coup is None:
            state, coup = self._open(state, seen)
            verdicts = (Opened(coup.round.id),)
        coup, closed = self._close(coup, seen)
        return replace(state, coup=coup, doubt=""), coup, verdicts + closed

    def _deal(self, state: BaccaratState, coup: Coup, seen: Envelope, card: str, face: str | None) -> Step:
        round_ = witness(coup.round, seen)
        if self.options.burn_each_coup and not coup.burnt:
            return replace(state, coup=replace(coup, round=round_, burnt=True)), ()
        face_up = coup.face_up
        if face == "up" and self._shoe:
            face_up += (card,)
        elif face == "down" and not self._shoe:
            round_ = _irregular(round_, "card_face_down", f"{card} was dealt face down", "7(2)", seen)
        coup = replace(coup, round=round_, cards=(*coup.cards, card), face_up=face_up)
        if due(coup.cards) is not None:
            return replace(state, coup=coup), ()
        return self._end(state, coup)

    def _unreadable(self, state: BaccaratState, seen: Envelope) -> Step:
        coup = state.coup
        if coup is not None and coup.round.closed:
            if coup.round.suspended and not self._bell:  # it may be the next coup's
                state = replace(state, doubt="events before this card may be missing")
            return self._suspend(state, coup, seen, "a card could not be read")
        if coup is None:
            if self._bell and (state.burn or state.unsure):
                text = "a burnt card could not be read: the burn lasts until the bets are opened"
                return replace(state, unsure=True), _note("burn_uncertain", text, "2(1)", seen)
            if stray := self._stray(state, seen):
                return state, stray
            if self._bell:
                return state, _note("unreadable_between_coups", "a card may have left the shoe", "10", seen)
        reason = "a card of the burn could not be read" if state.burn else "a card could not be read"
        unsure = not self._bell and (state.unsure or bool(state.burn))
        state, coup, verdicts = self._begin(replace(state, burn=0, unsure=unsure), seen)
        state, held = self._suspend(state, coup, seen, reason)
        return state, verdicts + held

    # ---- the flow

    def _open(self, state: BaccaratState, seen: Envelope) -> tuple[BaccaratState, Coup]:
        state = _today(state, seen)
        shoe, count = max(state.shoe, 1), state.count + 1
        demo = bool(state.demo_next)
        evidence = (state.demo_next,) if demo else ()
        round_ = Round(f"{state.table}:{state.day}:{shoe}:{count}", evidence, demo=demo)
        coup = Coup(round_, left=state.left, declared=state.demo_next)
        state = replace(
            state,
            shoe=shoe,
            count=count,
            coup=coup,
            last=None,
            before=state.last,
            left=state.left - 1 if state.left > 0 else state.left,
            demos=state.demos + demo,
            demo_next="",
            spent=False,
        )
        return state, coup

    def _close(self, coup: Coup, seen: Envelope) -> tuple[Coup, tuple[Verdict, ...]]:
        """Nothing more. What is additional to a main bet goes back where there is none."""
        round_ = coup.round
        if round_.closed:
            return coup, ()
        seated = {one.seat for one in round_.wagers if one.bet in MAIN}
        for one in round_.wagers:
            if one.bet in self._needs_main and one.seat not in seated:
                text = f"seat {one.seat} on {one.bet} without a bet on player, banker or tie"
                article = "13(3)" if one.bet == "jackpot" else "13(1)(4)"
                round_ = _irregular(round_, "bet_without_main_bet", text, article, seen)
                round_ = replace(round_, wagers=tuple(kept for kept in round_.wagers if kept != one))
        return replace(coup, round=replace(round_, closed=True)), (Closed(round_.id),)

    def _bets_opened(self, state: BaccaratState, seen: Envelope) -> Step:
        coup = state.coup
        verdicts: tuple[Verdict, ...] = ()
        if coup is not None:
            if not coup.round.closed and not state.doubt:
                return self._seen(state, coup, seen), ()
            reason = coup.round.suspended or state.doubt or "never_completed"
            if coup.round.suspended and coup.told:  # else cards of the burn may come yet
                state = replace(state, unsure=False)
            state, verdicts = self._void(state, coup, seen, reason)
        ended = state.left == 0
        state, coup = self._open(replace(state, doubt=""), seen)
        verdicts += (Opened(coup.round.id),)
        if ended:
            coup, closed = self._close(coup, seen)
            state, held = self._suspend(state, coup, seen, "the last coup of the shoe is over", RESHUFFLE)
            return state, verdicts + closed + held
        return self._seen(state, coup, seen), verdicts

    def _bets_closed(self, state: BaccaratState, seen: Envelope) -> Step:
        coup = state.coup
        if coup is None:
            text = "the bell rang, no coup is open"
            return state, _note("bell_without_round", text, "7(1)", seen) if self._bell else ()
        round_ = witness(coup.round, seen)
        if round_.closed:
            if coup.begun and not round_.suspended:
                round_ = _irregular(round_, "bell_during_deal", "the bell rang while cards were dealt", "10", seen)
            rung = coup.rung or not (coup.begun or round_.suspended)
            return replace(state, coup=replace(coup, round=round_, rung=rung)), ()
        if state.burn and not state.unsure:
            text = "the bell rang before all cards of the burn were seen"
            round_ = _irregular(round_, "burn_incomplete", text, "2(1)", seen)
        coup, closed = self._close(replace(coup, round=round_, rung=True), seen)
        # Without `bell` a card may be dealt before it, and be the one that was lost.
        return replace(state, coup=coup, burn=0, unsure=False, doubt="" if self._bell else state.doubt), closed

    def _paid(self, state: BaccaratState, seen: Envelope) -> Step:
        coup, last = state.coup, state.last
        if seen.event.overtaken:  # it was made before what was told since: it ends no doubt that is younger
            return (state if coup is None or not coup.round.closed else self._seen(state, coup, seen)), ()
        if coup is None:
            # Cards of the next coup that are out already do not go back with the payment.
            doubt = state.doubt if last is not None and last.aside else ""
            return replace(state, spent=False, doubt=doubt, last=_paid(last)), ()
        if not coup.round.closed:
            return replace(state, before=_paid(state.before)), ()  # the last coup may be paid while bets are open
        if coup.reopened and coup.round.suspended and last is not None and coup.cards == last.cards:
            # Hands that art. 9 does not give were entered, then the prizes paid: the first result stands.
            round_ = replace(witness(coup.round, seen), suspended="")
            coup = replace(coup, round=round_, unsure=last.unsure, aside=self._none_of(state, coup, coup.cards))
            return self._end(replace(state, doubt=""), replace(coup, paid=True))
        if not coup.begun:
            return self._seen(state, coup, seen), ()
        return self._suspend(state, coup, seen, "the prizes were paid, but cards of the coup are missing")

    def _demo(self, state: BaccaratState, seen: Envelope) -> Step:
        """Art. 2(2): at the start of a shoe, up to the limit of the house."""
        coup = state.coup
        if (coup is None and state.demo_next) or (coup is not None and coup.round.demo):
            return state, ()
        before = state.count - state.phantoms - (coup is not None)
        early = coup is None or (not coup.begun and not coup.round.suspended)
        if not self._shoe or not early or before != state.demos or before >= self.options.demonstration_rounds:
            limit = self.options.demonstration_rounds if self._shoe else 0
            text = f"a demonstration after {before} coups of the shoe, of which {state.demos} were; allowed: {limit}"
            if coup is None:
                return state, _note("demonstration_not_allowed", text, "2(2)", seen)
            round_ = _irregular(coup.round, "demonstration_not_allowed", text, "2(2)", seen)
            return replace(state, coup=replace(coup, round=round_)), ()
        if coup is None:
            return replace(state, demo_next=seen.id), ()
        coup = replace(coup, declared=seen.id)
        round_ = replace(witness(coup.round, seen), demo=True, wagers=())
        for one in coup.round.wagers:
            text = f"seat {one.seat} on {one.bet} before it was declared a demonstration: given back"
            round_ = _irregular(round_, "bet_on_demonstration", text, "2(2)", seen)
        return replace(state, coup=replace(coup, round=round_), demos=state.demos + 1), ()

    def _wager(self, state: BaccaratState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        coup = state.coup
        if coup is None:
            return state, _note("bet_without_round", f"seat {one.seat} on {one.bet}", "13(1)", seen)
        if coup.round.demo:
            text = f"seat {one.seat} on {one.bet}"
            round_ = _irregular(coup.round, "bet_on_demonstration", text, "2(2)", seen)
        else:
            round_ = wager(coup.round, one, self._offered, f"{TEXT} art. 13(1)", seen)
        return replace(state, coup=replace(coup, round=round_, wagered=coup.wagered or not round_.closed)), ()

    # ---- the shoe

    def _shoe_started(self, state: BaccaratState, seen: Envelope, decks: int) -> Step:
        verdicts: tuple[Verdict, ...] = ()
        coup = state.coup
        if coup is not None:
            reason = "never_completed" if coup.begun else "shoe_started"
            state, verdicts = self._void(state, coup, seen, coup.round.suspended or reason)
        if decks not in (0, self.options.decks):
            text = f"{decks} decks were put in play, authorised are {self.options.decks}"
            verdicts += _note("wrong_number_of_decks", text, "1(1)", seen)
        state = _today(state, seen)
        burn = {"decks": self.options.decks, "first_card": BY_FIRST_CARD, "fixed": self.options.burn_fixed}
        started = BaccaratState(
            state.table,
            state.day,
            state.shoe + 1,
            last=state.last,
            burn=burn[self.options.burn] if self._shoe else 0,
            demo_next=state.demo_next,
        )
        return started, verdicts

    def _cut_card(self, state: BaccaratState, seen: Envelope) -> Step:
        """Art. 3(1). Where it comes before a coup's first card, the coup under way is the one before."""
        coup = state.coup
        if not self._shoe:
            text = "a cut card came out of a continuous shuffler"
            if coup is None:
                return state, _note("cut_card_in_shuffler", text, "2(3)", seen)
            round_ = _irregular(coup.round, "cut_card_in_shuffler", text, "2(3)", seen)
            return replace(state, coup=replace(coup, round=round_)), ()
        waiting = coup is not None and not coup.begun and not coup.round.suspended
        if state.left == UNLIMITED:  # else one of several cut cards, art. 1(2)
            one_more = self.options.cut_card == "one_more"
            state = replace(state, left=1 if one_more and not waiting else 0)
            if coup is not None and waiting and not one_more:
                return self._void(state, coup, seen, "cut_card_before_first_card", "3(1)")
        return (state if coup is None else self._seen(state, coup, seen)), ()

    def _emptied(self, state: BaccaratState, seen: Envelope) -> Step:
        coup = state.coup
        if not self._shoe:
            return state, ()
        state = replace(state, left=0)
        if coup is None:
            return state, ()
        if not coup.begun and not coup.round.suspended:
            return self._void(state, coup, seen, "shoe_emptied", "3(1)")
        coup = replace(coup, left=0)
        return self._suspend(state, coup, seen, "the shoe was empty before the coup ended", RESHUFFLE)

    def _returned(self, state: BaccaratState, seen: Envelope) -> Step:
        coup = state.coup
        if self._shoe or coup is None or not coup.begun:
            return state, ()
        text = "cards went back into the shuffler before the end of the coup"
        round_ = _irregular(coup.round, "cards_returned_early", text, "7(2)", seen)
        return replace(state, coup=replace(coup, round=round_)), ()

    # ---- doubt

    def _missed(self, state: BaccaratState, seen: Envelope) -> Step:
        """Events may be missing. Before the bell no card of a coup can be among them; without a bell any can."""
        coup = state.coup
        if coup is not None:
            coup = replace(coup, unsure=True)
            if coup.round.closed:
                if not self._bell:  # a card of the next one may be among them
                    state = replace(state, doubt="events before this card may be missing")
                return self._suspend(state, coup, seen, "events of this coup may be missing")
            state = self._seen(state, coup, seen)
        elif not (state.count or state.shoe or isinstance(seen.event, EventsMissed)):
            return state, ()  # a device that is met for the first time proves nothing of a table nobody has played on
        doubt = "events since the bets were opened may be missing" if coup else "events before this card may be missing"
        return replace(state, unsure=state.unsure or bool(state.burn), doubt=doubt), ()

    def _suspend(self, state: BaccaratState, coup: Coup, seen: Envelope, reason: str, remedy: str = CORRECT) -> Step:
        round_, verdicts = suspend(coup.round, seen, reason, remedy)
        return replace(state, coup=replace(coup, round=round_)), verdicts

    def _corrected(self, state: BaccaratState, seen: Envelope, laid: Mapping[str, tuple[str, ...]]) -> Step:
        """Art. 10: the hands are replaced, and the deal goes on from there."""
        coup, before = state.coup, state.before
        cards = deal(laid)
        if coup is not None and not coup.round.closed:
            text = "hands were corrected before a card was dealt"
            round_ = _irregular(coup.round, "correction_before_deal", text, "10", seen)
            return replace(state, coup=replace(coup, round=round_)), ()
        if coup is not None and before is not None and cards and (reason := _never_was(before, coup, cards)):
            state, verdicts = self._void(state, coup, seen, reason)
            left = state.left if coup.left == UNLIMITED else coup.left
            demos, phantoms = state.demos - coup.round.demo, state.phantoms + 1
            state = replace(state, last=before, before=None, left=left, demos=demos, phantoms=phantoms)
            state = replace(state, demo_next=coup.declared)
            if cards == before.cards:
                return state, verdicts
            state, more = self._corrected(state, seen, laid)
            return state, verdicts + more
        whole = cards is not None and due(cards) is None
        if coup is None:
            if state.last is None:
                return state, _note("correction_without_round", "hands were corrected, no coup is open", "10", seen)
            if state.fresh and not whole:  # its shoe is over: no card could be dealt to it
                text = f"the hands of {state.last.round.id} were not whole, and its shoe is over"
                return state, _note("correction_incomplete", text, "10", seen)
            coup = replace(state.last, reopened=True)
        if cards and (state.coup is None or before is not None) and _of_another(before, coup, cards):
            if state.coup is None and state.fresh:  # a coup that waits would take the cards of the burn
                text = f"the hands laid may not be those of {coup.round.id}, and its shoe is over"
                return state, _note("correction_of_another", text, "10", seen)
            same = before is not None and cards == before.cards
            remedy = CORRECT if same else ONCE_MORE
            return self._suspend(state, coup, seen, "the hands laid may be those of another coup", remedy)
        coup = replace(coup, round=replace(witness(coup.round, seen), suspended=""))
        if cards is None:
            return self._suspend(state, coup, seen, "the corrected hands are not such as arts. 7 and 9 give")
        if not cards and coup.reopened:
            return self._suspend(state, coup, seen, "no hand was told")
        if not cards and self.options.burn_each_coup:
            reason = "no card lies on the table: whether that of art. 8 is burnt is not known"
            return self._suspend(state, coup, seen, reason)
        if state.coup is not None:
            state = replace(state, unsure=False)  # who lays hands says that the burn is over
        coup = replace(
            coup,
            cards=cards,
            face_up=tuple(card for card in coup.face_up if card in cards),
            burnt=self.options.burn_each_coup,
            corrected=True,
            aside=self._none_of(state, coup, cards) if whole else (),
            entered=_beyond(cards, coup.told),
        )
        return self._end(state, coup) if whole else (replace(state, coup=coup, doubt=""), ())

    def _declared_void(self, state: BaccaratState, seen: Envelope, reason: str) -> Step:
        coup = state.coup
        if coup is None:
            if state.last is None:
                text = "a coup was declared void, none is open or can be corrected"
                return state, _note("void_without_round", text, "10", seen)
            coup = replace(state.last, reopened=True)
        elif coup.round.closed:
            state = replace(state, unsure=False)
        return self._void(state, coup, seen, reason)

    def _none_of(self, state: BaccaratState, coup: Coup, laid: tuple[str, ...]) -> tuple[str, ...]:
        """The cards told while the coup waited that are none of its hands now, nor such as were entered before."""
        late = state.before.entered if state.before is not None else ()
        aside = coup.aside
        if self.options.burn_each_coup and not coup.burnt and aside[1:2] == laid[:1]:
            aside = aside[1:]  # the card of art. 8: the first one of the hands came next
        return _beyond(aside, (*_beyond(laid, coup.cards), *coup.entered, *late))

    # ---- the ends of a coup

    def _end(self, state: BaccaratState, coup: Coup) -> Step:
        result = self._resolve(coup)
        state = replace(state, coup=None, last=replace(coup, reopened=False))
        if coup.aside and not self._bell:
            state = replace(state, doubt="cards that the shoe told before this one may be of the same coup")
        return state, (Corrected(replace(result, supersedes=result.round)) if coup.reopened else Resolved(result),)

    def _void(self, state: BaccaratState, coup: Coup, seen: Envelope, reason: str, article: str = "10") -> Step:
        jackpot_bets: Literal["", "returned"] = "returned" if "jackpot" in self._offered else ""
        void = Void(reason, "returned", jackpot_bets)
        result = voided(witness(_known(coup), seen), self._terms, void, _cite(article), self._laid(coup.cards))
        state = replace(state, coup=None, last=None, spent=due(coup.cards) is not None or bool(coup.aside))
        return state, (Corrected(replace(result, supersedes=result.round)) if coup.reopened else Voided(result),)

    def _resolve(self, coup: Coup) -> Result:
        player, banker = hands(coup.cards)
        first = (points(player[:2]), points(banker[:2]))
        third = POINTS[player[2]] if len(player) == 3 else NO_CARD
        pairs = (player[0][0] == player[1][0], banker[0][0] == banker[1][0])
        end = self._outcomes[points(player), points(banker), len(banker) == 3, *pairs]
        law = self._deal_law[*first, third] + end.law
        if coup.burnt or coup.face_up or coup.corrected or coup.round.demo:
            said = (("8", coup.burnt), ("4", coup.face_up), ("10", coup.corrected), ("2(2)", coup.round.demo))
            law += _cite(*(article for article, applies in said if applies))
        outcome = {"hands": {"player": player, "banker": banker}, **end.facts, "natural": max(first) >= 8}
        if coup.face_up:
            outcome["face_up"] = coup.face_up
        return resolved(
            _known(coup),
            self._terms,
            outcome=outcome,
            winners=end.winners,
            pushes=end.pushes,
            jackpots=() if self.options.jackpot == "none" or coup.round.demo else self._awards(coup),
            announcements=end.announcements,
            law=law,
        )

    def _awards(self, coup: Coup) -> tuple[Award, ...]:
        which = self.options.jackpot
        combination = (
            combination_a(coup.cards, self.options.double_pairs_by)
            if which == "A"
            else combination_bc(coup.cards, colours=which == "C")
        )
        if not combination or (which == "C" and combination == "five_same" and self.options.c_five_same == "none"):
            return ()
        pays, item, paragraph = JACKPOTS[which][combination]
        share = self.options.c_six_share if which == "C" else PARADISE_SHARE
        held = {(one.seat, one.bet) for one in _known(coup).wagers}
        among = sorted(seat for seat, bet in held if bet == "jackpot" and any((seat, main) in held for main in MAIN))
        if not among and coup.wagered and not coup.unsure:
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
        won = [(bet, pays, article) for bet, wins_, pays, article in side if wins_ and bet in self._offered]
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

    def _laid(self, cards: tuple[str, ...]) -> dict[str, Any]:
        if not cards:
            return {}
        player, banker = self._lie(cards)
        return {"hands": {"player": player, "banker": banker}}

    # ---- words

    def _seen(self, state: BaccaratState, coup: Coup, seen: Envelope) -> BaccaratState:
        """The coup rests on this event too."""
        return replace(state, coup=replace(coup, round=witness(coup.round, seen)))


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
        (player, banker, third): ("5", dealt, _PLAYER[player, banker][1], rule)
        for (player, banker, third), (_, rule) in _BANKER.items()
    }


def _today(state: BaccaratState, seen: Envelope) -> BaccaratState:
    """A shoe under way at midnight is the first of the new day; a clock set back repeats no number."""
    today = seen.time.date().isoformat()
    return replace(state, day=today, shoe=0) if today > state.day else state


def _highest(round_: Round, side: str) -> int:
    """Art. 16(2): the seat with the highest bet on a side, the first to place it where two are equal; 0 for none."""
    bets = [one for one in round_.wagers if one.bet == side]
    return max(bets, key=lambda one: one.amount).seat if bets else 0


def _known(coup: Coup) -> Round:
    """The round with the bets that are surely those told: none after a loss."""
    return replace(coup.round, wagers=()) if coup.unsure else coup.round


def _beyond(laid: tuple[str, ...], told: tuple[str, ...]) -> tuple[str, ...]:
    """The cards laid that were not told."""
    left = list(told)
    entered = []
    for card in laid:
        if card in left:
            left.remove(card)
        else:
            entered.append(card)
    return tuple(entered)


def _by_hand(state: BaccaratState, coup: Coup, card: str) -> str:
    """Why a card is doubted that the shoe may have told late: of this coup, or of the one before as its first."""
    before = state.before if state.count > 1 else None  # else it is of another shoe
    if card not in coup.entered and (before is None or coup.told or card not in before.entered):
        return ""
    return f"{card} was entered by hand, and now the shoe tells it: it may be the same card, or another"


def _paid(last: Coup | None) -> Coup | None:
    return None if last is None else replace(last, paid=True)


def _never_was(before: Coup, coup: Coup, laid: tuple[str, ...]) -> str:
    """Why the open coup is none, where hands of the one before are laid: those are not dealt twice in a row."""
    if coup.rung:  # it was not a card that began it
        return ""
    if _told_again(before.cards + coup.told, laid):
        return "told_twice"
    return "not_dealt" if laid == before.cards else ""


def _of_another(before: Coup | None, coup: Coup, laid: tuple[str, ...]) -> bool:
    """Whether hands may be meant for another coup: they hold no card of this one, or more of the one before.

    Where it waits for a person already they are its own, unless they are the very same as those of the one before.
    Where it holds no card they cannot hold one of it: then what is known of the one before decides.
    """
    others = before.cards if before is not None else ()
    if laid == others or coup.round.suspended:
        return laid == others
    new = _beyond(laid, coup.cards)
    shared = len(laid) - len(_beyond(laid, others))
    if before is not None and not coup.cards:
        if not before.told:  # nothing is told at this table: a card in common is chance, most of them are not
            return 2 * shared > len(laid)
        if before.paid:
            return shared > 0
    return len(new) == len(laid) or len(laid) - shared < len(new)


def _told_again(told: tuple[str, ...], laid: tuple[str, ...]) -> bool:
    """Whether the cards told are those laid, in the order of the deal, but for some told once more."""
    left = list(laid)
    before = ""
    for card in told:
        if left and card == left[0]:
            left.pop(0)
        elif card != before:
            return False
        before = card
    return not left


def _cite(*articles: str) -> tuple[str, ...]:
    return tuple(f"{TEXT} art. {article}" for article in articles)


def _note(code: str, text: str, article: str, seen: Envelope) -> tuple[Verdict, ...]:
    return noted(code, text, f"{TEXT} art. {article}", seen)


def _irregular(round_: Round, code: str, text: str, article: str, seen: Envelope) -> Round:
    return irregular(round_, code, text, f"{TEXT} art. {article}", seen)
