"""Angola blackjack/21: Decreto Executivo 261/22, articles 6 to 8.

The flow: bets are opened and laid; the bell ends them; two cards go to every seat with a bet and to the bank, one at a
time from seat 1, the bank's second face down (6(20)); insurance and even money against an ace (6(38), (39)); the seats
decide one after the other (6(22)); the bank turns its card and draws to 17 (6(24)); every hand is compared and the
jackpot combinations are named (7). The events are those of `macau.blackjack`, without a peek, and:

- `main:n` on a seat is the bet of the player of seat n there (6(17), (19)). Once the seat's insurance, split or double
  was entered, he follows with chips on `insurance:n`, `split:n` or `double:n`, for the last two the whole amount at
  once.
- `jackpot`: the chip of a seat; its withdrawal after the bell is the dealer's collection (7(4), 7(11)).
- `card.exposed` of "dealer" before any decision, or a second card of the bank reported face up: it was turned (6(21)).
- With `device = continuous`: `cards.loaded`, `supervisor.keyed`, `card.damaged`, `card.jammed`, `jam.cleared`,
  `cards.returned`, `table.closed`, `deck.checked` (8).

Readings:

- 6(6)(a), 6(24): the bank stands on every 17; its ace counts 11 where that makes 17 to 21.
- 6(11): the warn card may come as many cards off its place as `warn_card_within` allows. In the middle it may lie where
  one player bet in the first round of the shoe, or where that is not known.
- 6(17): on a seat with a bet of its own that bet decides; others follow its insurance only where it was made (6(18)).
- 6(17): what lies over the maximum of a seat at the bell goes back: the bet of its own player comes first, the others
  fill it up in the order in which they were begun. A bet that is no multiple of the minimum is noted and plays. A bet
  from a terminal that would cut another bet is refused.
- 6(17): without reported bets `main` of a seat means all bets on it.
- 6(22): the seats decide on two cards of 12 or more, hands of a split too; the ace counts as is best.
- 6(23): a card drawn without a request goes to the next hand that gets one; whether it was seen must be known. A
  correction that names the hands without it states that. Each of several cards is treated by itself, the unseen ones in
  the order in which they were drawn.
- 6(23), (33), (35): after a split or a double the round waits until the others with a bet on the hand have followed, or
  until another event than a bet comes.
- 6(21): a turned second card of the bank needs its key.
- 6(24), (27): the bank draws where a hand depends on it; a needless card does not count.
- 6(31), (32): a pair is two cards of one value; there is no limit on splits but nine hands, which a console can name.
- 6(31): a seat plays its split hands one after the other; 7-7-7 counts on a split hand too (6(40)).
- 6(32): aces are split once (option).
- 6(33): "n.º 26" means 31.
- 6(34), (36): on two cards, also of a split hand. The total counts an ace as one; a blackjack, and ten and ace of a
  split, are 21 and not 11.
- 6(37): it binds the ace of the first two cards only; another one counts what is best.
- 6(38): an insurance of any size up to half, before the seat decides.
- 6(39): against an ace a player with a blackjack decides at his turn: even money, or stand.
- 6(40): three cards of a hand; the prize is paid beside the result of the hand.
- 6(41): at the seat's turn, on its first two cards (option: before any further card of the round).
- 7(5): of a split the cards count in the order in which they came. 7(6): each seat wins its highest combination.
- 7(8): a seat with a bet of its own; where no bet on a hand was reported, each seat that is dealt to.
- 7(10): another amount than one chip goes back whole, and does not play.
- 8(3): "n.º 9" means 11; 8(7): "n.º 11" means 13; 8(8): "n.º 12" most likely means 14 (option `csm_burn`).
- 8(12): a correction of a round that ended is refused once cards went back, also while the next bets are laid.
- Two of these signs put the result in doubt until it is paid, because the bet of a hand may not have been reported: a
  card nobody asked for in the round (6(23)); between its end and the payment a card, a decision of a seat without a
  hand, a loss of events. A bet of the next round shows that the last one is over.
- The text has no void round: bets come back, on the jackpot too.
"""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.rounds import terms
from rules.engine.ruleset import Bet, option
from rules.games.blackjack import House
from rules.games.blackjack_decisions import Text
from rules.games.blackjack_jackpot import combinations
from rules.games.blackjack_round import VOID_WORDS
from rules.games.blackjack_watched import Stakes, WatchedBlackjack
from rules.needs import Needs, blackjack

TEXT: Final = "Decreto Executivo 261/22"
RATIO: Final = 30
SEED: Final = 10_000

PAYTABLE: Final = (
    Bet("main", "1; blackjack 3/2", "art. 6(26)-(30), (39)-(41)", "the hand against the bank; comes back on a tie"),
    Bet("main:n", "1; blackjack 3/2", "art. 6(17), (19)", "the bet of the player of seat n on another seat"),
    Bet("double", "1", "art. 6(34), (36)", "what a double adds to a hand; laid by the decision"),
    Bet("double:n", "1", "art. 6(35)", "the same, laid by the player of seat n beside the double of another seat"),
    Bet("insurance", "2", "art. 6(38)", "the bank, showing an ace, has blackjack"),
    Bet("insurance:n", "2", "art. 6(18)", "the same, laid by the player of seat n beside that of another seat"),
)
JACKPOT: Final = Bet(
    "jackpot", "pool, share or fixed", "art. 7", "the first cards of the seat, as the house lists them"
)

# The article of each rule, by its name in the round.
ARTICLES: Final = {
    "seat": "6(2)",
    "decks": "6(3)",
    "warn_card_misplaced": "6(11)",
    "bets": "6(15)",
    "not_a_multiple": "6(16)",
    "others": "6(17)",
    "follows_insurance": "6(18)",
    **dict.fromkeys(("deal", "peek"), "6(20)"),
    **dict.fromkeys(("exposed", "hole_turned"), "6(21)"),
    **dict.fromkeys(("before_deal", "decision"), "6(22)"),
    "mispulled": "6(23)",
    "bank": "6(24)",
    **dict.fromkeys(("bank_blackjack", "blackjack_beats_21"), "6(25)"),
    **dict.fromkeys(("blackjack", "both_blackjack"), "6(26)"),
    "bust": "6(27)",
    **dict.fromkeys(("total", "twenty_one"), "6(28)"),
    "tie": "6(29)",
    **dict.fromkeys(("split", "split_amount"), "6(31)"),
    "follows_split": "6(33)",
    "double": "6(34)",
    "follows_double": "6(35)",
    **dict.fromkeys(("insurance", "insurance_won", "insurance_lost"), "6(38)"),
    "even_money": "6(39)",
    "special": "6(40)",
    "surrender": "6(41)",
    "jackpot": "7(6)",
    "jackpot_without_main": "7(8)",
    "wrong_jackpot_bet": "7(10)",
    **dict.fromkeys(("card_damaged", "damaged_card_not_replaced"), "8(1)"),
    "jam_unattended": "8(2)",
    "white_card": "8(3)",
    **dict.fromkeys(("loaded_unattended", "loaded_in_one_packet", "loaded_again"), "8(5)"),
    **dict.fromkeys(("checked_before_closing", "checked_unattended", "deck_wrong", "deck_not_checked"), "8(6)"),
    "played_after_closing": "8(8)",
    **dict.fromkeys(("returned", "too_many_cards_returned"), "8(10)"),
    "claim_too_late": "8(12)",
}


class BlackjackOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house, and the readings that are possible."""

    seats: Annotated[int, Meta(ge=6, le=7), option("art. 6(2)", "seats of the table")] = 7
    decks: Annotated[int, Meta(ge=4, le=6), option("art. 6(3)", "decks of 52 cards: four or six")] = 6
    device: Annotated[
        Literal["shoe", "continuous"], option("arts. 6(4), 8", "a shoe, or an automatic shuffler that deals")
    ] = "shoe"
    csm_burn: Annotated[bool, option("arts. 6(12), 8(8)", "a card is burnt with the automatic shuffler, too")] = False
    warn_card_within: Annotated[
        int, Meta(ge=0, le=312), option("art. 6(11)", "cards that the warn card may be off its place; 0: not checked")
    ] = 10
    minimum: Annotated[
        int, Meta(ge=0), option("art. 6(16)", "minor units, the least bet; bets are its multiples; 0: not checked")
    ] = 0
    maximum: Annotated[
        int, Meta(ge=0), option("art. 6(16), (17), (42)", "minor units, the most on one seat; 0: not checked")
    ] = 0
    mispulled: Annotated[
        Literal["ask", "unseen"],
        option("art. 6(23)", "a card without a request, its face unknown: a person decides, or it counts as unseen"),
    ] = "ask"
    resplit_aces: Annotated[bool, option("art. 6(31), (32)", "aces may be split again")] = False
    surrender: Annotated[
        Literal["before_own_card", "before_any_card"],
        option("art. 6(41)", "until when a seat may give up half its bet"),
    ] = "before_own_card"
    jackpot: Annotated[
        Literal["none", "automatic", "manual"],
        option("art. 7(1), (4)", "whether there is a jackpot, and how it is marked"),
    ] = "none"
    jackpot_bet: Annotated[int, Meta(ge=0), option("art. 7(3), (10)", "minor units, the chip on the jackpot")] = 0
    jackpot_seed: Annotated[
        int, Meta(ge=0), option("art. 7(7)", "minor units that the pool starts with: at least 10 000 times its bet")
    ] = 0
    jackpot_cards: Annotated[int, Meta(ge=2, le=4), option("art. 7(5)", "how many first cards count")] = 4
    jackpot_prizes: Annotated[
        tuple[str, ...],
        option("art. 7(6)", "combinations, the highest first, as in AAAA/suit=pool, 777=1/10, AA/colour=fixed"),
    ] = ()
    smallest_chip: Annotated[int, Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if self.decks == 5:
            raise ValueError("decks: art. 6(3): four or six decks")
        if self.csm_burn and self.device == "shoe":
            raise ValueError("csm_burn: art. 8(8): of the automatic shuffler; a shoe always has its burnt card")
        if self.maximum and not self.minimum <= self.maximum <= RATIO * self.minimum:
            raise ValueError(f"maximum: art. 6(42): from the minimum to {RATIO} times the minimum")
        if self.jackpot == "none":
            if self.jackpot_bet or self.jackpot_seed or self.jackpot_prizes:
                raise ValueError("jackpot: art. 7(1): a bet, a seed or prizes are of a table with jackpot")
            return
        if not self.jackpot_bet:
            raise ValueError("jackpot_bet: art. 7(3): the amount of the bet on the jackpot is fixed")
        if self.jackpot_seed < SEED * self.jackpot_bet:
            raise ValueError("jackpot_seed: art. 7(7): at least 10 000 times jackpot_bet")
        if not self.jackpot_prizes:
            raise ValueError("jackpot_prizes: art. 7(6): the house lists its combinations")
        try:
            combinations(self.jackpot_prizes, self.jackpot_cards)
        except ValueError as error:
            raise ValueError(f"jackpot_prizes: art. 7(5), (6): {error}") from error


class Blackjack(WatchedBlackjack):
    """The ruleset."""

    id: ClassVar[str] = "angola.blackjack"
    title: ClassVar[str] = "Blackjack/21, Angola"
    law: ClassVar[str] = TEXT
    Options: ClassVar[type[BlackjackOptions]] = BlackjackOptions
    needs: ClassVar[Needs] = blackjack("art. 6(15)", "art. 6(20)", "art. 6(22)", "art. 8(10)")
    article_void: ClassVar[str] = "6(20)"
    article_bets: ClassVar[str] = "6(15)"
    article_bell: ClassVar[str] = "6(15)"

    def __init__(self, options: BlackjackOptions) -> None:
        """Apply the choices of the text and of the house."""
        self.options = options
        shoe = options.device == "shoe"
        text = Text(
            articles=ARTICLES,
            law=("6(20)", "6(22)", "6(24)", "6(6)"),
            decks=options.decks,
            burn=1 if shoe or options.csm_burn else 0,
            device=options.device,
            mispulled=options.mispulled,
            hole_replaced=True,
            bettors=options.seats,
            decides="seated_or_highest",
            free=True,
        )
        house = House(
            hole=True,
            seats=options.seats,
            soft_17="stand",
            max_hands=9,
            resplit_aces=options.resplit_aces,
            surrender=options.surrender,
            special_prize="on_top",
            split_by="value",
            passed_pair_ends=False,
            doubles_on=(9, 10, 11),
            stand_above=11,
            protected=False,
            half_for_five=False,
            even_money_against=(1,),
            asks_blackjack=True,
        )
        stakes = Stakes(
            minimum=options.minimum,
            maximum=options.maximum,
            warn_card_within=options.warn_card_within,
            jackpot_bet=options.jackpot_bet,
            combinations=combinations(options.jackpot_prizes, options.jackpot_cards),
        )
        super().__init__(text, house, stakes)
        self.terms = terms(self.id, "2022", options, VOID_WORDS)

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of the text."""
        return (*PAYTABLE, JACKPOT) if self.stakes.combinations else PAYTABLE

    def cite(self, article: str) -> str:
        """The article as results cite it."""
        return f"{TEXT} art. {article}"
