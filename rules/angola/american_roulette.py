"""Angola's American roulette: Decreto Executivo 261/22, art. 1.

Readings, besides those of `rules/angola/roulette.py`:

- 1(28), 1(30)c)-d): an announced bet is its printed number of chips on the cloth, and is settled chip by chip. On 17
  two chips of the orphans win.
- 1(11), 1(35)c): a chip is worth one of `chip_values`, the minimum where none is named, or any amount where no limits
  are watched. A series is a whole multiple of its chips, within the printed numbers of chips.
- 1(28)b), 1(35)d): neighbours are a whole multiple of their chips. On each number a player's neighbours and straights
  together stay within the largest straight.
- 1(15): a player plays from the first chips on: the seat is opened, or bets. After three spins without a bet a colour
  is forfeited if another player waits for one. No event reports who waits: the seat is named, and a person decides
  (`colours = watched`). A loss of events begins the count anew.
- 1(15), 1(16) print "n.º 15" and "n.º 9": 18 and 11 are meant.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal

from msgspec.structs import replace

from protocols.contract.events import (
    MOST,
    BallChanged,
    BallLanded,
    DealerRelieved,
    SeatClosed,
    SeatOpened,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.angola.roulette import CHANCES, AngolanRoulette, Paragraphs, TableOptions
from rules.engine.bets import Board, Family, check_offered
from rules.engine.duties import Duties, Duty
from rules.engine.limits import Refusal
from rules.engine.money import odds, settle
from rules.engine.rounds import Round, noted
from rules.engine.ruleset import Result, Settlement, Wager, Win, option
from rules.engine.single_outcome import Note, Step, there
from rules.games.alternating_roulette import AlternatingState, left_of
from rules.games.roulette_cloth import FRENCH_ORDER, SERIES, Chips, chips_win, neighbours
from rules.needs import Needs, roulette

AT: Final = Paragraphs(
    article=1,
    launch=22,
    call=23,
    direction=24,
    null=25,
    rest=26,
    bets=27,
    prizes=30,
    zero=31,
    limits=35,
)
# Pattern, paragraph of the bet, of the prize, words.
ANNOUNCED: Final = (
    ("neighbours:n-3/5/7", "28)b)", "(30)d)", "a number and its neighbours on the wheel, 3, 5 or 7 chips in all"),
    ("large_series", "28)a)i", "(30)c)", "nine chips: 0-2-3 twice, 4-7, 12-15, 18-21, 19-22, 25-26-28-29 twice, 32-35"),
    ("small_series", "28)a)ii", "(30)c)", "six chips: 5-8, 10-11, 13-16, 23-24, 27-30, 33-36"),
    ("orphans", "28)a)iii", "(30)c)", "five chips: 1, 6-9, 14-17, 17-20, 31-34"),
)
MOST_CHIPS: Final = {"large_series": 135, "small_series": 120, "orphans": 50}
CALLED: Final = tuple(id_.partition(":")[0] for id_, *_ in ANNOUNCED)
# In the order of payment: 1(32).
FAMILIES: Final = (
    *("column", "double_column", *CHANCES, "dozen", "double_dozen"),
    *(*CALLED, "line", "street", "corner", "split", "straight"),
)
IDLE_SPINS: Final = 3

DUTIES: Final[Duties] = (
    Duty("ball_change", AT.cite(20), (BallChanged,)),
    Duty("dealer_relief", AT.cite(36), (DealerRelieved,)),
)


class AmericanRouletteOptions(TableOptions, frozen=True, forbid_unknown_fields=True):
    """What the article leaves to the house."""

    at: ClassVar[Paragraphs] = AT

    order: Annotated[
        Literal["french", "american"],
        option("art. 1(2)", "the order of the pockets; announced bets need the French one"),
    ] = "french"
    chip_values: Annotated[
        tuple[int, ...], option("art. 1(11)", "what a chip may be worth, minor units; empty: the minimum")
    ] = ()
    colours: Annotated[
        Literal["unwatched", "watched"],
        option(
            "art. 1(15)", "watched: seats and bets are reported, and a colour that did not bet in three spins is named"
        ),
    ] = "unwatched"
    bets_offered: Annotated[
        tuple[str, ...],
        option("arts. 1(27)-(28)", f"bet families offered, of {' '.join(FAMILIES)}; empty: all that the order allows"),
    ] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        super().__post_init__()
        check_offered(self.bets_offered, FAMILIES, AT.cite(AT.bets))
        called = [name for name in self.bets_offered if name in CALLED]
        if called and self.order != "french":
            raise ValueError(f"{AT.cite(28)}: {', '.join(called)} need the French order of the pockets")
        if len(set(self.chip_values)) != len(self.chip_values):
            raise ValueError(f"{AT.cite(11)}: chip_values names a value twice")
        most = self.maxima().get("straight", 0)
        for value in self.chip_values:
            if not self.minimum or value % self.minimum or not 0 < value <= most:
                raise ValueError(
                    f"{AT.cite(11)}: chip_values: {value} is no whole multiple of `minimum` ({self.minimum}) "
                    f"up to the largest straight ({most})"
                )


class AmericanRoulette(AngolanRoulette):
    """The ruleset."""

    id: ClassVar[str] = "angola.american-roulette"
    title: ClassVar[str] = "American roulette, Angola"
    law: ClassVar[str] = "Decreto Executivo 261/22 art. 1"
    Options: ClassVar[type[AmericanRouletteOptions]] = AmericanRouletteOptions
    needs: ClassVar[Needs] = roulette("art. 1(23)", "art. 1(26)", "art. 1(22)")

    def __init__(self, options: AmericanRouletteOptions) -> None:
        """Lay the cloth, and the chips of the announced bets upon it."""
        printed = AT.printed(options.doubles)
        every = Board(printed.values())
        self._paid = {str(pocket): {win.bet: win for win in every.ending(pocket)[0]} for pocket in range(37)}
        called = {"neighbours": neighbours(FRENCH_ORDER)} | {name: {"": chips} for name, chips in SERIES.items()}
        families = printed | {family.name: family for family in _announced(printed.values(), called)}
        known = FAMILIES if options.order == "french" else tuple(name for name in FAMILIES if name not in CALLED)
        offered = options.bets_offered or known
        super().__init__(options, tuple(families[name] for name in FAMILIES), offered)
        self._chips: dict[str, Chips] = {
            f"{name}:{at}" if at else name: chips for name in called for at, chips in called[name].items()
        }
        self._most_straight = options.maxima().get("straight", 0)
        self._values = options.chip_values or ((options.minimum,) if options.minimum else ())
        self._watched = options.colours == "watched"

    # ---- announced bets

    def refused(
        self, table: AlternatingState, round_: Round, bet: WagerPlaced | WagerWithdrawn
    ) -> Note | Refusal | None:
        """Why an announced bet is refused: it is not whole, outside the limits, or too much on one number."""
        name, chips = bet.bet.partition(":")[0], self._chips.get(bet.bet)
        if (chips is None and not self._most_straight) or not (left := left_of(round_, bet)):
            return None
        if chips is not None and not self._whole(name, left, len(chips)):
            reason = say("not_whole_chips", seat=bet.seat, bet=bet.bet, amount=min(left, MOST), chips=len(chips))
            return Note("not_whole_chips", reason, AT.cite(35) + ("d)" if name == "neighbours" else "c)"))
        why = self.limits.refusal(round_.wagers, bet, self._rulings.bets_law)
        return why or self._over_straight(round_, Wager(bet.seat, bet.bet, left))

    def _whole(self, name: str, amount: int, chips: int) -> bool:
        """Whether the amount is an allowed number of its series, in chips of an allowed value."""
        on_each, rest = divmod(amount, chips)
        most = MOST_CHIPS.get(name, amount) // chips
        of_value = not self._values or any(not on_each % one and on_each // one <= most for one in self._values)
        return not rest and of_value

    def _over_straight(self, round_: Round, bet: Wager) -> Note | None:
        """The refusal of a bet whose neighbours and straights on one number exceed the largest straight."""
        touched, most = self._straights(bet), self._most_straight
        if not most or not touched:
            return None
        others = (one for one in round_.wagers if one.seat == bet.seat and one.bet != bet.bet)
        lie = Counter(touched)
        for one in others:
            lie.update(self._straights(one))
        number = max(touched, key=lie.__getitem__)
        if lie[number] <= most:
            return None
        reason = say("straights_together", seat=bet.seat, bet=number, amount=lie[number], most=most)
        return Note("bet_outside_limits", reason, f"{AT.cite(35)}d)")

    def _straights(self, bet: Wager) -> dict[str, int]:
        """The amount that a straight or neighbours put on each number."""
        name = bet.bet.partition(":")[0]
        chips = {"straight": (bet.bet,), "neighbours": self._chips.get(bet.bet, ())}.get(name, ())
        return {place: bet.amount // len(chips) for place in chips}

    def result(self, round_: Round, outcome: BallLanded) -> Result:
        """The result; announced bets are settled by their own paragraph."""
        result = super().result(round_, outcome)
        announced = any(one.bet in self._chips for one in round_.wagers)
        return replace(result, law=(*result.law, AT.cite(28))) if announced else result

    def settled(self, result: Result) -> tuple[Settlement, ...]:
        """The settlements; an announced bet returns the sum of its chips."""
        paid = self._paid[result.outcome["pocket"]]
        return tuple(self._by_chips(one, paid) if one.bet in self._chips else one for one in result.settlements)

    def _by_chips(self, bet: Settlement, paid: dict[str, Win]) -> Settlement:
        chips = self._chips[bet.bet]
        won = {place: paid[place] for place in chips if place in paid}
        laid = [Wager(bet.seat, place, bet.stake // len(chips)) for place in chips if place in won]
        each = settle(laid, won.values(), (), chip=self.options.smallest_chip, rounding=self.options.rounding)
        exact = str(sum(Fraction(one.exact or one.returned) for one in each)) if any(one.exact for one in each) else ""
        return Settlement(bet.seat, bet.bet, bet.stake, sum(one.returned for one in each), exact)

    # ---- colours

    def play(self, table: AlternatingState, seen: Envelope) -> Step[AlternatingState]:
        """A player takes a colour, or gives it back."""
        match seen.event:
            case SeatOpened(seat=seat) | SeatClosed(seat=seat) if self._watched:
                idle = tuple(one for one in table.idle if one[0] != seat)
                return replace(table, idle=(*idle, (seat, 0)) if isinstance(seen.event, SeatOpened) else idle), ()
            case _:
                return super().play(table, seen)

    def decide(self, table: AlternatingState, seen: Envelope) -> Step[AlternatingState]:
        """Count a valid spin for each colour that did not bet in it."""
        table, verdicts = super().decide(table, seen)
        if not self._watched or table.phase != "resolved":
            return table, verdicts
        bettors = {one.seat: -1 for one in there(table.last).wagers}
        idle = {seat: spins + 1 for seat, spins in (dict(table.idle) | bettors).items()}
        for seat in (seat for seat, spins in idle.items() if spins == IDLE_SPINS):
            verdicts += noted("colour_idle", say("colour_idle", seat=seat, spins=IDLE_SPINS), AT.cite(15), seen)
        return replace(table, idle=tuple(idle.items())), verdicts

    def take_back(self, table: AlternatingState, seen: Envelope) -> Step[AlternatingState]:
        """A spin that is declared null later does not count against a colour."""
        table, verdicts = super().take_back(table, seen)
        if table.last is not None:
            return table, verdicts
        return replace(table, idle=tuple((seat, max(spins - 1, 0)) for seat, spins in table.idle)), verdicts


def _announced(printed: Iterable[Family], called: Mapping[str, Mapping[str, Chips]]) -> Iterator[Family]:
    """The families of announced bets; each place covers the numbers of its chips."""
    lying = {place: (at, odds(family.pays)) for family in printed for place, at in family.on_board().items()}
    for id_, bet, prize, text in ANNOUNCED:
        chips = called[id_.partition(":")[0]]
        places = {at: tuple(lying[place] for place in one) for at, one in chips.items()}
        yield Family(id_, "as each chip", f"art. 1({bet}, {prize}", text, places, chips_win)
