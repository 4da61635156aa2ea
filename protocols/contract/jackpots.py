"""The documents of jackpots: a pool's terms and level, the entries of its books, and what people order.

The jackpots process writes these structs. Whole amounts (`amount`, `seed`, `limit`) are minor units. An entry counts in
1/`unit` of a minor unit, as text, because a JSON reader rounds integers above 2^53.
"""

from datetime import datetime
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from protocols.contract.events import MOST
from protocols.contract.results import Award
from protocols.contract.topics import ROOT, Id, Time

RATE = r"^(0|1|0\.[0-9]{1,6}|[1-9][0-9]{0,5}/[1-9][0-9]{0,5})$(?!\n)"
Rate: TypeAlias = Annotated[str, Meta(pattern=RATE, description="an exact part of a bet: 0, 1, 0.015 or 3/200")]
Minor: TypeAlias = Annotated[int, Meta(ge=0, le=MOST, description="minor units")]
Seconds: TypeAlias = Annotated[int, Meta(ge=0, le=60)]
Person: TypeAlias = Annotated[str, Meta(min_length=1, max_length=64)]
ShortText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
Pays: TypeAlias = Literal["pool", "fixed", "larger_of_fixed_and_share"]
Account: TypeAlias = Literal["visible", "hidden", "overflow"]
Units: TypeAlias = Annotated[str, Meta(pattern="^-?[0-9]+$(?!\\n)", description="in 1/`unit` of a minor unit")]


def jackpot_topic(site: str, pool: str, leaf: str) -> str:
    """`leaf` is level, books, owner, event/<type>, cmd/<name> or cmd/<name>/result."""
    return f"{ROOT}/{site}/jackpot/{pool}/{leaf}"


class Prize(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the house set for a combination: `fixed` is its amount.

    `pays` and `share` are for a prize `level_<n>` of a device, for which no law gives them. A share alone: `pays` is
    "pool", or "larger_of_fixed_and_share" with `fixed` 0. "fixed" ignores `share`.
    """

    fixed: Minor = 0
    pays: Pays = "fixed"
    share: Rate = "0"


class PoolTerms(Struct, frozen=True, forbid_unknown_fields=True):
    """The approved terms of a pool.

    `visible` and `hidden`: the parts of each bet that go to the pool and to its reserve; the house keeps the rest.
    `seed`: with how much the pool begins. `limit`: what the pool shows at most, 0 for no limit; more goes to the
    overflow. `reseed`: when it begins again; it always does after a prize of the whole pool. `odd`: where the odd coins
    of equal shares go. `prizes` by combination, or by `<jackpot>.<combination>` if two games of the pool use one name.
    `simultaneous_s`: wins of several tables whose events are at most so far apart are ordered by the time of the events
    while all of them are pending, 0 for the order of arrival; `simultaneous`: the first takes what it wins, or rounds
    that win the whole pool have equal parts of it. `table_limit`: prizes up to this amount, of known bettors and not of
    the whole pool, are paid at the table by the dealer, whose payment key books it; 0 for none.
    """

    seed: Minor
    visible: Rate
    hidden: Rate = "0"
    limit: Minor = 0
    reseed: Literal["empty", "below_seed"] = "empty"
    odd: Literal["pool", "first"] = "pool"
    prizes: dict[Annotated[str, Meta(max_length=64)], Prize] = {}
    simultaneous_s: Seconds = 2
    simultaneous: Literal["first_by_time", "share_equally"] = "first_by_time"
    table_limit: Minor = 0

    def prize(self, jackpot: str, combination: str) -> Prize | None:
        """The prize of a combination, the game's own first."""
        return self.prizes.get(f"{jackpot}.{combination}", self.prizes.get(combination))

    def __post_init__(self) -> None:
        """Raises ValueError for rates above the bet and a limit below the seed."""
        if Fraction(self.visible) + Fraction(self.hidden) > 1:
            raise ValueError("`visible` and `hidden` together are more than the bet; they may be 1 at most")
        if self.limit and self.limit < self.seed:
            raise ValueError("`limit` is below `seed`: the pool could not begin")


WhyZero: TypeAlias = Literal["", "pool_empty", "earlier_prize", "below_a_coin", "more_seats_than_coins", "set_to_zero"]


class PoolWin(Struct, frozen=True, omit_defaults=True):
    """A jackpot that was won, its amount frozen at once.

    `shares`: seat and amount, once the seats are known. `odd`: the coins that equal shares leave over. `unpriced`: the
    terms have no fixed amount for it, or a device reported another amount. `whole`: the prize was the whole pool.
    `entry`: the number of the entry that set it aside. `at_table`: it is within the limit of what the dealer pays at
    the table; `paid_event`: the payment key that paid it there, and then `paid_by` is its device.

    `why_zero`: why a win has the amount 0. pool_empty: the pool held less than a coin, because it was paid to an
    earlier winner and begins without a seed; earlier_prize: the prizes of this round that are paid first took it;
    below_a_coin: its share is less than one minor unit; more_seats_than_coins: no seat has a whole one; set_to_zero:
    the terms, or the people who priced it, set 0.
    """

    id: str
    table: str
    round: str
    at: Time
    award: Award
    amount: Minor
    shares: tuple[tuple[int, Minor], ...] = ()
    odd: Minor = 0
    state: Literal["pending", "confirmed", "paid", "reversed", "contested"] = "pending"
    unpriced: bool = False
    whole: bool = False
    confirmed_by: str = ""
    paid_by: str = ""
    from_house: Units = "0"
    entry: int = 0
    at_table: bool = False
    paid_event: str = ""
    why_zero: WhyZero = ""


# ---- decisions of two people


class Adjust(Struct, frozen=True, tag_field="change", tag="adjust", forbid_unknown_fields=True):
    """Move `amount` between the house and an account of the pool; negative: to the house."""

    account: Account
    amount: Annotated[int, Meta(ge=-MOST, le=MOST)]
    reason: ShortText


class Reset(Struct, frozen=True, tag_field="change", tag="reset", forbid_unknown_fields=True):
    """Begin at the seed: what the pool shows above it goes to the overflow, and the next reset returns it."""

    reason: ShortText


class SetTerms(Struct, frozen=True, tag_field="change", tag="set-terms", forbid_unknown_fields=True):
    """Other terms, from now on."""

    terms: PoolTerms
    reason: ShortText


class Reject(Struct, frozen=True, tag_field="change", tag="reject", forbid_unknown_fields=True):
    """A win that is not one: its amount goes back to the pool."""

    win: ShortText
    reason: ShortText


class Price(Struct, frozen=True, tag_field="change", tag="price", forbid_unknown_fields=True):
    """The amount of a win for which the terms have no figure, or of which a device reported another amount."""

    win: ShortText
    amount: Minor
    reason: ShortText


class Transfer(Struct, frozen=True, tag_field="change", tag="transfer", forbid_unknown_fields=True):
    """All that the pool holds goes to the pool `to`, where it cannot be won for force majeure.

    `reason`: the force majeure; `authority`: the approval, or the model and bet that both groups of machines share.
    """

    to: Id
    reason: ShortText
    authority: ShortText


Change: TypeAlias = Adjust | Reset | SetTerms | Reject | Price | Transfer


class Proposal(Struct, frozen=True):
    """A change that waits for a second person."""

    id: str
    person: str
    at: Time
    change: Change


# ---- orders of people


class _Order(Struct, frozen=True, tag_field="order", forbid_unknown_fields=True):
    """`person`: who orders, as the console names the person."""

    person: Person


class Confirm(_Order, frozen=True, tag="confirm"):
    """The win is right. `seats`: where the bettors were not known, those that share it, or that each have it."""

    win: ShortText
    seats: tuple[Annotated[int, Meta(ge=1, le=99)], ...] = ()


class Pay(_Order, frozen=True, tag="pay"):
    """The win was handed out. Another person than the one who confirmed it."""

    win: ShortText


Wins: TypeAlias = Annotated[tuple[ShortText, ...], Meta(min_length=1, max_length=100)]


class ConfirmMany(_Order, frozen=True, tag="confirm-many"):
    """These wins are right, each with known bettors. All of them are confirmed, or none."""

    wins: Wins


class PayMany(_Order, frozen=True, tag="pay-many"):
    """These wins were handed out. Another person than the one who confirmed them. All of them are paid, or none."""

    wins: Wins


class Propose(_Order, frozen=True, tag="propose"):
    """Propose a change; it waits for another person."""

    change: Change


class Approve(_Order, frozen=True, tag="approve"):
    """Approve a proposal of another person: it takes effect."""

    proposal: ShortText


class Withdraw(_Order, frozen=True, tag="withdraw"):
    """Take a proposal back."""

    proposal: ShortText


Order: TypeAlias = Confirm | Pay | ConfirmMany | PayMany | Propose | Approve | Withdraw
ORDERS: dict[str, type[Order]] = {
    str(kind.__struct_config__.tag): kind for kind in (Confirm, Pay, ConfirmMany, PayMany, Propose, Approve, Withdraw)
}
_DECODERS = {name: msgspec.json.Decoder(kind) for name, kind in ORDERS.items()}


class BadOrder(ValueError):
    """An unknown order or invalid fields. The message names them."""


def decode_order(name: str, args: bytes | msgspec.Raw) -> Order:
    """The order `name` with the fields in `args` (JSON). Raises BadOrder."""
    decoder = _DECODERS.get(name)
    if decoder is None:
        raise BadOrder(f"no order {name!r}; known: {', '.join(ORDERS)}")
    try:
        return decoder.decode(args)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadOrder(f"{name}: {error}") from error


# ---- messages of the books


ENTRIES = (
    *("contributed", "returned", "carried", "won", "upheld", "reversed", "contested", "confirmed", "paid", "reset"),
    *("adjusted", "changed", "proposed", "withdrawn", "noted", "transferred"),
)
"""The types of entries, each under event/<type>."""


class ValueChange(Struct, frozen=True):
    """A value before and after. Amounts are minor units, exact (a fraction where there is one).

    `what`: an account of the pool; a term by its field (visible_rate and hidden_rate: the parts of a bet);
    prize:<combination>, whose value is pool, pool::<share>, fixed:<amount> or larger:<amount>:<share>; win_state;
    win_amount. "": it was not there.
    """

    what: str
    old: str
    new: str


class BookEntry(Struct, frozen=True, omit_defaults=True):
    """One entry of the books. `postings` sum to zero; `after`: each account that is not zero after them.

    Accounts: `players` and `house` (what they paid in, negative), `visible`, `hidden`, `overflow`, `pending`,
    `paid`, `margin` (what the house keeps of the bets), `transferred` (to other pools; negative: from them). `pending`
    is set aside for all wins that wait. `amount` in minor units; `people` who ordered it, and then `values` are what
    they changed; of a proposal what it would change.
    """

    number: int
    unit: int
    after: dict[str, Units]
    postings: dict[str, Units] = {}
    table: str = ""
    round: str = ""
    seat: int = 0
    amount: int = 0
    win: PoolWin | None = None
    people: tuple[str, ...] = ()
    change: Change | None = None
    old: PoolTerms | None = None
    text: str = ""
    values: tuple[ValueChange, ...] = ()


class PendingWin(Struct, frozen=True):
    """A win on the level of a pool, until it is paid."""

    win: str
    table: str
    round: str
    combination: str
    amount: Minor
    state: str
    shares: tuple[tuple[int, Minor], ...] = ()


class PoolOwner(Struct, frozen=True):
    """The retained `owner` of a pool: the one process that keeps its books, whose heartbeat shows that it runs.

    `journal` names the books, `epoch` counts the starts of the process with them, `boot` names this start. Edges close
    `bet` at `tables` while the heartbeat of `owner` does not come.
    """

    pool: str
    owner: str
    journal: str
    epoch: Annotated[int, Meta(ge=0, le=MOST)]
    boot: str
    tables: tuple[str, ...]
    bet: str = "jackpot"


class PoolLevel(Struct, frozen=True):
    """The retained `level` of a pool. `amount`: what a display may show, in whole minor units.

    `entry`: the number of the last entry that it includes. `waiting`: how many wins wait, and `set_aside` their sum
    in minor units; `pending`: the oldest 10 of them. `proposals`: changes that wait for a second person.
    """

    pool: str
    amount: Minor
    currency: str
    decimals: int
    entry: int
    at: datetime | None = None
    pending: tuple[PendingWin, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    waiting: int = 0
    set_aside: Units = "0"


class PoolBooks(Struct, frozen=True):
    """The retained `books` of a pool: what rarely changes. `entry`: the number of the last entry that it includes.

    `wins`: the oldest 25 of `waiting` that wait, those of proposals, and the last 25 that are over; the order `wins`
    gives the others in pages. `signs`: displays of the pool, as table/device, which report
    what they show; `machines`: slot machines that show it, which do not. Of another site as site/table/device.
    """

    pool: str
    began: Time
    entry: int
    tables: tuple[str, ...]
    terms: PoolTerms
    wins: tuple[PoolWin, ...] = ()
    signs: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    waiting: int = 0


Waits: TypeAlias = Literal["", "pending", "confirmed"]


class WinsRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Read `most` of the wins that wait, from the number `first` on (0: the oldest). `state`: only of this one."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    first: Annotated[int, Meta(ge=0, le=MOST)] = 0
    most: Annotated[int, Meta(ge=1, le=100)] = 50
    state: Waits = ""


class WinsPage(Struct, frozen=True):
    """The answer under `cmd/wins/result`: the wins from `first` on, of `total` in this state, as of `entry`."""

    id: str
    pool: str
    entry: int
    first: int
    total: int
    wins: tuple[PoolWin, ...] = ()
