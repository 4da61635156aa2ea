"""The facts of a round: one struct for each game, `outcome` in a result and `detail` in `round/state`.

A ruleset names its struct (`Facts` of `rules/engine/ruleset.py`), `rules/facts.py` finds it by the ruleset's id. A game
writes its own fields only, in its own order; a reader takes the default for a missing one. A hand is named player,
banker, dealer, seat_<n> or <seat>.<hand>. The struct of a new game is defined in the file of its ruleset.
"""

from datetime import datetime
from typing import TypeVar

from msgspec import Struct, field

from protocols.contract.events import LaidBet
from protocols.contract.reasons import Reason


class Exposed(Struct, frozen=True):
    """A card that was seen while it should be face down."""

    hand: str = ""
    card: str = ""


class Due(Struct, frozen=True):
    """What a game of seats waits for: a card to a hand, or a decision of a seat and the actions it may choose."""

    kind: str = ""
    hand: str = ""
    seat: int = 0
    actions: tuple[str, ...] = ()


class DutyDue(Struct, frozen=True):
    """A duty of the house by the clock, as `value.duty_<code>` of the catalogues names it, and when it is due."""

    code: str = ""
    law: str = ""
    at: datetime | None = None


class Stated(Struct, frozen=True):
    """One supervisor's statement of a series of craps after a loss: point and all bets. `by`: the name."""

    by: str
    point: int = 0
    bets: tuple[LaidBet, ...] = ()


class RoundFacts(Struct, frozen=True):
    """The facts of a round of any game: `outcome` in a result, `detail` in `round/state`.

    Each game adds fields of its own. A hand is named player, banker, dealer, seat_<n> or <seat>.<hand>. `say`: what the
    dealer calls now, by language.
    """

    say: dict[str, str] = field(default_factory=dict)
    reason: Reason | None = None
    refused: str = ""
    demo: bool = False
    duties: tuple[DutyDue, ...] = ()


F = TypeVar("F", bound=RoundFacts)


def of_kind(kind: type[F], facts: RoundFacts) -> F:
    """The facts, if they are of this kind; otherwise an empty value of it."""
    return facts if isinstance(facts, kind) else kind()


# ---- cards


class CardFacts(RoundFacts, frozen=True):
    """The cards of a round. `burn`: cards still to be burnt; `last`: it is the last round of the shoe."""

    hands: dict[str, tuple[str, ...]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    burn: int = 0
    last: bool = False


class BaccaratFacts(CardFacts, frozen=True):
    """A coup. `next`: the hand that gets the next card, or "burn"."""

    shoe: int = 0
    winner: str = ""
    natural: bool = False
    player_pair: bool = False
    banker_pair: bool = False
    dragon_7: bool = False
    lucky_6: bool = False
    next: str = ""
    face_up: tuple[str, ...] = ()
    handles: dict[str, int] = field(default_factory=dict)


class BlackjackFacts(CardFacts, frozen=True):
    """A round of blackjack. `seats` play; `results` and `ended` are the fate of each hand.

    `insurance`: half the bet of each seat that may insure it, where the bet is known.
    """

    seats: tuple[int, ...] = ()
    results: dict[str, str] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    blackjack: bool = False
    bust: bool = False
    doubled: tuple[str, ...] = ()
    insured: tuple[int, ...] = ()
    even_money: tuple[int, ...] = ()
    insurance: dict[str, int] = field(default_factory=dict)
    discarded: tuple[str, ...] = ()
    pay_now: dict[str, str] = field(default_factory=dict)
    streaks: dict[str, int] = field(default_factory=dict)
    due: Due | None = None


class StudPokerFacts(CardFacts, frozen=True):
    """A round of stud poker. `open`: the dealer's cards that lie open; `opens`: the dealer qualifies.

    `seats`: those that play; in a result the fate of each hand.
    """

    open: tuple[str, ...] = ()
    exposed: tuple[Exposed, ...] = ()
    missing: tuple[str, ...] = ()
    dealt: int = 0
    seats: dict[str, str] | tuple[int, ...] = ()
    combinations: dict[str, str] = field(default_factory=dict)
    opens: bool = False
    players: tuple[int, ...] = ()
    antes: tuple[int, ...] = ()
    raised: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    undecided: tuple[int, ...] = ()


class Pot(Struct, frozen=True):
    """Chips that the seats `among` play for, the main pot first."""

    amount: int = 0
    among: tuple[int, ...] = ()


class UnbankedPokerFacts(RoundFacts, frozen=True):
    """A hand of poker without a bank. `hands`: those that were shown; chips by seat: `laid` in this round of bets.

    `players` in their order from the hand on. In a result `seats` has the fate of each, `rake` what the house keeps.
    """

    board: tuple[str, ...] = ()
    hands: dict[str, tuple[str, ...]] = field(default_factory=dict)
    combinations: dict[str, str] = field(default_factory=dict)
    pots: tuple[Pot, ...] = ()
    rake: int = 0
    seats: dict[str, str] = field(default_factory=dict)
    players: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    stacks: dict[str, int] = field(default_factory=dict)
    laid: dict[str, int] = field(default_factory=dict)
    pot: int = 0
    due: Due | None = None


class BankOffer(Struct, frozen=True):
    """A passed hand of chemin de fer: by whom, for how much, and who has taken it. `bids`: by seat, at an auction."""

    passer: int = 0
    level: int = 0
    auction: bool = False
    taker: int = 0
    bids: dict[str, int] = field(default_factory=dict)


class CheminFacts(CardFacts, frozen=True):
    """A coup of chemin de fer. `punter`: the seat with the cards; `claim`: banco, table or suivi, by that seat.

    `bank`: chips in play, `aside`: those laid aside; `laid`: what each seat plays for, `covered` all of them, `left`:
    what may still be laid. `won`: coups of this hand; `may`: how the bank can be reduced. In a result `percentage` is
    what the house keeps, `burnt` the cards of neither hand.
    """

    shoe: int = 0
    seated: tuple[int, ...] = ()
    banker: int = 0
    partner: int = 0
    punter: int = 0
    claim: str = ""
    bank: int = 0
    aside: int = 0
    laid: dict[str, int] = field(default_factory=dict)
    covered: int = 0
    left: int = 0
    won: int = 0
    may: tuple[str, ...] = ()
    said: str = ""
    winner: str = ""
    natural: bool = False
    percentage: int = 0
    burnt: tuple[str, ...] = ()
    offer: BankOffer | None = None
    due: Due | None = None


# ---- roulette


class RouletteFacts(RoundFacts, frozen=True):
    """A spin. `last_pocket`: the result of the spin before, while the next one has not begun."""

    pocket: str = ""
    last_pocket: str = ""
    colour: str = ""
    parity: str = ""
    half: str = ""
    dozen: int = 0
    column: int = 0


# ---- dice


class DiceFacts(RoundFacts, frozen=True):
    """A throw."""

    faces: tuple[int, ...] = ()
    total: int | None = None


class ShakenDiceFacts(DiceFacts, frozen=True):
    """A throw in a shaker: cussec, fish-prawn-crab. `lit`: the places that win, `panel`: the light is on."""

    figures: tuple[str, ...] = ()
    colours: dict[str, int] = field(default_factory=dict)
    triple: bool = False
    size: str = ""
    parity: str = ""
    stacked: int = 0
    leaning: int = 0
    lit: tuple[str, ...] = ()
    panel: bool = False
    agitations: int = 0
    pulls: int = 0


class FrenchBankFacts(DiceFacts, frozen=True):
    """`throws` and `null_throws` of the round so far; `shown`: how often its valid throws showed each face, 1 to 6.

    `disturbed`: the dealer touched the dice too early.
    """

    chance: str = ""
    throws: int = 0
    null_throws: int = 0
    shown: tuple[int, ...] = ()
    disturbed: bool = False


class CrapsFacts(DiceFacts, frozen=True):
    """The point before and after the throw (0: come-out), the seat that threw, and what became of the series."""

    point: int = 0
    next_point: int = 0
    come_out: bool = False
    shooter: int = 0
    shooters: tuple[int, ...] = ()
    stated: Stated | None = None
    series: str = ""


# ---- fantan


class FantanFacts(RoundFacts, frozen=True):
    """A heap of buttons. `number`: what was left, 1 to 4; `separated`: the heap is under its cover."""

    number: int | None = None
    count: int | None = None
    fragments: int = 0
    lamp: str = ""
    separated: bool = False
