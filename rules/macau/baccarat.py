"""Macau baccarat: Despacho Regulamentar Externo 55/2004 as amended up to 56/2018.

The flow: the cards are shuffled, a set of them is burnt (2(1)), and coups are dealt until the cut card (3(1)): two
cards each in turn, the player's side first (7(1)), at most one more each by the table of art. 9; the higher total wins
(11), equal totals are a tie (12).

Readings, each with its article where it has one. A corrected coup goes on from the hands as they lie, or is resolved if
art. 9 gives no further card.

The beginning of a coup:

- The text has no bell; the option `opening` sets how a coup begins. `first_card`: the card after the end of the last
  coup begins the next one and closes its bets. `bell`: bets are opened and the bell closes them; an earlier card is a
  dealing error (10).
- 2(1): a new table is between two coups, after its burn. The bell ends the burn.
- 2(1): a burn that was not reported completely is over when the bell rings, when hands are entered, when a coup that
  one of its cards began is declared void, when the bets are opened while such a coup waits and has a card, or with a
  new shoe.
- 2(2): a demonstration that the article does not allow is an ordinary coup; one declared before the shoe is started is
  its first coup.

Doubts and their end:

- 10: a doubtful card, or events that may be missing, suspend the coup. It ends when the deal is corrected or the coup
  is declared void. Opened bets or a new shoe make it void.
- Bets and jackpot bets of a void coup are returned, and cards that still come from it belong to no coup. The next coup
  waits for the opening of the bets, the payment or a new shoe.
- Until the next coup begins, a resolved coup can be corrected or declared void, or is reopened if the corrected hands
  lack a card. While the next one is open, only complete hands or a void that name it change it. Once its shoe is over,
  only complete hands correct it.
- A shoe that repeats the last card, or lets another card slide out with it, begins a coup by mistake. That coup is void
  if the entered hands equal those of the coup before, or consist of its cards and the later ones without repetitions.
  It then counts neither as the last coup of its shoe nor as a demonstration. A coup opened by the bell is always valid.

Hands that are entered late may be meant for another coup:

- Hands that share no card with the coup, or more with the one before, suspend it. Entered again they count for it,
  unless they equal the hands of the coup before. If the shoe of the coup is over, they are noted and its result stands.
- A coup without a reported card takes its hands at the first entry if the coup before was paid and shares no card with
  them. If that one had no reported card either, it takes them unless most of the cards are of the coup before (by
  chance less than 1 of 100).
- A card entered by hand may still be reported: if the next coup begins with it, that coup is suspended, too (by chance
  2 of 100 for each such card).
- Hands and a void that name their coup apply to it alone. A late event with its age is inserted at its time; without an
  age it leaves a doubt that no payment ends.

Losses:

- Before the bell no card of a coup can be missing. Bets that are opened again after a loss belong to the next coup.
- Under `first_card` a loss between two coups leaves the first card of the next one unknown: the next card suspends. So
  do cards that were reported or lost while a coup waited and belong to none of its hands; the payment does not settle
  them. The card of art. 8 is settled by hands whose first card came next after it.
- Under `first_card` a start of the shoe that comes late with its age leaves a doubt about the last coup, if the shoe
  was started before the last card of that coup. Its result is in place until it is corrected by its name.
- A loss that is proved only later, such as that of the start of a shoe, is not covered: its count does not show what
  was lost. Neither is a coup before the last one. A table that must exclude both uses `bell`.
- A loss during a coup may be of a bet or of a withdrawal: the coup is resolved or void without settlements, and its
  jackpot names no seat. Corrected hands do not change that.

Bets and jackpots:

- 13: only the highest combination of a jackpot is paid ("uma das seguintes combinações"). Double pairs differ in points
  (K-K and Q-Q do not).
- 17(12) prints no prize for five of the same value in C, though 13 offers it: with `c_five_same: none` such a coup wins
  nothing there, four of the same value included.
- 13(3): a wager names a seat, so its player is seated. Where wagers are reported and none is on the jackpot, no seat
  has bet on it, also in a coup without any bet.
"""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from protocols.contract.events import Event, RoundDemo, WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import say
from rules.engine.cloth import give_back, refuse, wager
from rules.engine.facts import BESIDE, PLAIN, Effect, Fact, Frame, Note
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.rounds import Round, irregular, terms
from rules.engine.ruleset import Award, Bet, Win, option
from rules.games.baccarat import Line, banker_rule, player_draws
from rules.games.baccarat_coups import (
    BY_FIRST_CARD,
    CALLS,
    MAIN,
    VOID_WORDS,
    Articles,
    Coup,
    Coups,
    House,
    Paid,
    Position,
    Words,
)
from rules.games.cards import colour, points, rank, suit
from rules.needs import Needs, baccarat

TEXT: Final = "Despacho 55/2004"
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


# ---- art. 13(1)(4)(4): the progressive jackpots


def combination_a(cards: tuple[str, ...], double_pairs_by: str) -> str:
    """The highest combination of jackpot A, or "": on the first five cards, the first four, the first two each."""
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
    """The highest combination of jackpot B, or with `colours` of C, or "": on all cards, K Q J T differ."""
    counts = sorted(Counter(rank(card) for card in cards).values(), reverse=True)
    if counts[0] == 6:
        return "six_same_colour" if colours and len({colour(card) for card in cards}) == 1 else "six_same"
    if counts == [3, 3]:
        return "double_three"
    return {5: "five_same", 4: "four_same", 3: "three_same"}.get(counts[0], "")


# Combination, prize, item in art. 13, and paragraph of art. 17.
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


class BaccaratOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
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


DRAWS: Final[dict[tuple[Line, bool], str]] = {
    ("0 to 2", True): "9(3)(1)",
    ("3", True): "9(3)(2)",
    ("4", True): "9(3)(3)",
    ("5", True): "9(3)(4)",
    ("6", True): "9(3)(5)",
    ("no card", True): "9(3)(6)",
    ("3", False): "9(4)(1)",
    ("4", False): "9(4)(2)",
    ("5", False): "9(4)(3)",
    ("6", False): "9(4)(4)",
    ("no card", False): "9(4)(4)",
    ("7 to 9", False): "9(4)(5)",
    ("natural", False): "9(4)(6)",
}
"""The paragraphs of the drawing table, for the banker's side."""


class Baccarat(Coups):
    """The ruleset."""

    id: ClassVar[str] = "macau.baccarat"
    title: ClassVar[str] = "Baccarat, Macau"
    law: ClassVar[str] = "Despacho 55/2004 as amended up to Despacho 56/2018"
    Options: ClassVar[type[BaccaratOptions]] = BaccaratOptions
    needs: ClassVar[Needs] = baccarat("art. 2(1)", "arts. 7(1), 10", "art. 7(1)", "art. 7(2)")
    own: ClassVar[frozenset[type[Event]]] = Coups.own | {RoundDemo}
    bell_after_loss: ClassVar[bool] = False
    article_void: ClassVar[str] = "10"
    article_bets: ClassVar[str] = "13(1)"
    article_bell: ClassVar[str] = "7(1)"
    calls: ClassVar[Mapping[str, Words]] = {
        **CALLS,
        "dragon_7": ("Sete Dragão", "龍七", "Dragon 7"),
        "lucky_6": ("6 Sortudo", "幸運六", "Lucky 6"),
    }

    def __init__(self, options: BaccaratOptions) -> None:
        """The choices of the house."""
        self.options = options
        self.jackpot_bets = "returned" if options.jackpot != "none" else ""
        self._needs_main = frozenset(
            ("jackpot", "player_pair", "banker_pair", "dragon_7")
            if options.additional_bets == "with_main_bet"
            else ("jackpot",)
        )
        shoe = options.device == "shoe"
        burns = {"decks": options.decks, "first_card": BY_FIRST_CARD, "fixed": options.burn_fixed}
        house = House(
            options.decks,
            shoe,
            bell=options.opening == "bell",
            burn=burns[options.burn] if shoe else 0,
            coup_burn="always" if options.burn_each_coup else "never",
            one_more=options.cut_card == "one_more",
            handled=options.players_handle_cards,
        )
        articles = Articles(
            decks="1(1)",
            burn="2(1)",
            coup_burn="8",
            last_coup="3(1)",
            shuffler="2(3)",
            returned="7(2)",
            face_up="4" if shoe else "",
            face_down="" if shoe else "7(2)",
            error="10",
            demo="2(2)",
        )
        super().__init__(house, articles, terms(self.id, "2018", options, VOID_WORDS), _bets(options))

    def cite(self, article: str) -> str:
        """An article as results cite it."""
        return f"{TEXT} art. {article}"

    # ---- the life of a coup

    def at_bell(self, round_: Round, fact: Fact) -> Round:
        """Additional bets are returned where their seat has no main bet."""
        seated = {one.seat for one in round_.wagers if one.bet in MAIN}
        for one in round_.wagers:
            if one.bet in self._needs_main and one.seat not in seated:
                text = say("bet_without_main", seat=one.seat, bet=one.bet)
                article = "13(3)" if one.bet == "jackpot" else "13(1)(4)"
                round_ = irregular(round_, "bet_without_main_bet", text, self.cite(article), fact)
                round_ = give_back(round_, one)
        return round_

    def take_wager(self, round_: Round, one: WagerPlaced | WagerWithdrawn, fact: Fact) -> Round:
        """Art. 2(2): a demonstration has no bets."""
        if not round_.demo:
            return wager(round_, one, self.offered, self.cite("13(1)"), fact, self.limits)
        text = say("seat_bet", seat=one.seat, bet=one.bet)
        return refuse(round_, one, "bet_on_demonstration", text, self.cite("2(2)"), fact)

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """Apply one event; only this text has demonstrations."""
        if isinstance(fact.event, RoundDemo):
            return self._demo(position, fact, frame)
        return super().step(position, fact, frame)

    def _demo(self, p: Position, fact: Fact, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """Art. 2(2): declare a demonstration, at the start of a shoe and up to the limit of the house."""
        if (frame is None and p.demo_next) or (frame is not None and frame.round.demo):
            return p, BESIDE
        before = p.dealt - (frame is not None)
        limit = self.options.demonstration_rounds if self.house.shoe else 0
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
        return replace(p, demos=p.demos + 1), Effect(
            tuple(notes), round=replace(give_back(frame.round, *frame.round.wagers), demo=True)
        )

    # ---- the result

    def dealt(self, player: int, banker: int, third: int) -> tuple[str, ...]:
        """Arts. 5, 7 and 9."""
        draws, line = banker_rule(player, banker, third)
        dealt = "7(1)" if self.house.shoe else "7(2)"
        return "5", dealt, "9(1)" if player_draws(player, banker) else "9(2)", DRAWS[line, draws]

    def awards(self, cards: tuple[str, ...], known: Round, frame: Frame[Position]) -> tuple[Award, ...]:
        """Arts. 13(1)(4)(4) and 17(6)-(12)."""
        which = self.options.jackpot
        if which == "none":
            return ()
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
        if not among and frame.bets_known:
            return ()  # the bets are known, and none is on it
        law = f"{TEXT} art. 13(1)(4)(4) {which}({item}), art. 17({paragraph})"
        return (
            Award(which, combination, pays, law, share if pays == "larger_of_fixed_and_share" else "", tuple(among)),
        )

    def paid(self, coup: Coup) -> Paid:
        """Arts. 11, 12, 17 and 18."""
        winner, commission = coup.winner, self.options.commission
        dragon_7 = winner == "banker" and coup.banker == 7 and coup.drawn
        lucky_6 = winner == "banker" and coup.banker == 6
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
            ("player_pair", coup.player_pair, "11", "17(3)"),
            ("banker_pair", coup.banker_pair, "11", "17(3)"),
            ("dragon_7", dragon_7, "40", "17(4)"),
            ("lucky_6", lucky_6, "20" if coup.drawn else "12", "17(5)"),
        )
        won = [(bet, pays, article) for bet, wins_, pays, article in side if wins_ and bet in self.offered]
        wins += [Win(bet, pays) for bet, pays, _ in won]
        called = [bet for bet, _, _ in won]
        if pushes == ("banker",) and "dragon_7" not in called:
            called.append("dragon_7")  # why bets on the winner are returned
        return Paid(
            tuple(wins),
            (*articles, *(article for _, _, article in won)),
            pushes,
            tuple(called),
            {"dragon_7": dragon_7, "lucky_6": lucky_6},
        )


def _bets(options: BaccaratOptions) -> tuple[Bet, ...]:
    """The bets offered, in the order of art. 13."""
    bets = tuple(
        replace(bet, pays=BANKER_PAYS[options.commission]) if bet.id == "banker" else bet
        for bet in PAYTABLE
        if bet.id in (options.bets_offered or FAMILIES)
    )
    if options.jackpot == "none":
        return bets
    return (
        *bets,
        Bet(
            "jackpot",
            "pool, share or fixed",
            f"arts. 13(1)(4)(4), {JACKPOT_LAW[options.jackpot]}",
            f"combinations of jackpot {options.jackpot}, for seated players with a main bet",
        ),
    )
