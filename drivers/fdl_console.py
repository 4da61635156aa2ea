"""Driver for an FDL dealer's console: the keys of the table, the bell, and values entered by hand.

Evidence: our own document (docs/reference/protocols/fdl_console.md). The console requires each entered result twice
and accepts corrections only under the supervisor's key, so a reported value has passed these checks. An action or card
that the document does not define becomes the fault `fdl.unknown_event`; so does a statement of a series, an approval, a
count, limits, or an opening or closing by a person, if it comes from a console without sign-in: only the dealer's page,
which the kernel identifies by its user, may give names. An unknown reason is reported by its number.
"""

from typing import ClassVar, Literal

from drivers.driver import Emit, Link
from drivers.faults import Fault
from drivers.fdl_session import FdlDriver, SessionOptions
from protocols.contract.events import (
    BallChanged,
    BallLanded,
    BallLaunched,
    BallReplaced,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    CardDamaged,
    CardExposed,
    CutCardDrawn,
    DealCorrected,
    DealerRelieved,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceSeized,
    DiceThrown,
    DiceUncovered,
    Event,
    HandPassed,
    JackpotPaid,
    JackpotWon,
    LaidBet,
    LimitsChanged,
    MachineApproved,
    Pool,
    RoundDemo,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    SeriesStated,
    ShoeStarted,
    SupervisorKeyed,
    TableClosed,
    TableCounted,
    TableOpened,
    Told,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.fdl import console as fdl_console, frame as fdl
from protocols.link import LocalLink

FAULTS = {
    0x20: Fault(
        "console.key_stuck",
        "a key is stuck",
        "free the key; clean or replace the keypad",
        "by a person",
        "goes on; a stuck key counts as pressed once",
    ),
    0x21: Fault(
        "console.display",
        "the display is dark",
        "check its cable; the keys still work, values cannot be entered",
        "by a person",
        "goes on; values cannot be entered until the display works",
    ),
    0x22: Fault("console.bell", "the bell does not sound", "ring by hand; replace the bell", "by a person", "goes on"),
    0x23: Fault(
        "console.keypad",
        "the keys are not read",
        "check the keypad's cable; dry it; replace the console",
        "by a person",
        "waits for a person: pressed keys are not reported",
        "error",
    ),
    0x24: Fault(
        "console.key_switch",
        "the supervisor's key switch is neither on nor off",
        "turn the key again; replace the switch",
        "by a person",
        "goes on; corrections wait",
    ),
    0x25: Fault(
        "console.entry",
        "a value was entered three times, each time differently",
        "read the table again together, then enter the value twice",
        "by itself",
        "waits until the value is entered",
    ),
}


class ConsoleOptions(SessionOptions, frozen=True, forbid_unknown_fields=True):
    """`pool`: the jackpot of its jackpot keys."""

    pool: Pool = "table"


class FdlConsole(FdlDriver):
    """One session with a console."""

    name: ClassVar[str] = "fdl_console"
    title: ClassVar[str] = "Dealer's console, FDL"
    icon: ClassVar[str] = "console"
    emits: ClassVar[tuple[Told, ...]] = (
        BallChanged,
        BallLanded,
        BallLaunched,
        BallReplaced,
        BetsClosed,
        BetsOpened,
        ButtonsCounted,
        ButtonsSeparated,
        CardDamaged,
        CardExposed,
        CutCardDrawn,
        DealCorrected,
        DealerRelieved,
        DiceCovered,
        DiceDisturbed,
        DiceRead,
        DiceReplaced,
        DiceSeized,
        DiceThrown,
        DiceUncovered,
        HandPassed,
        JackpotPaid,
        JackpotWon,
        LimitsChanged,
        MachineApproved,
        RoundDemo,
        RoundPaid,
        RoundVoided,
        SeatActed,
        SeatClosed,
        SeatOpened,
        SeriesStated,
        ShoeStarted,
        SupervisorKeyed,
        TableClosed,
        TableCounted,
        TableOpened,
        WagerPlaced,
        WagerWithdrawn,
    )
    Options: ClassVar[type[SessionOptions]] = ConsoleOptions
    kind: ClassVar[int] = fdl.CONSOLE
    tells_cards: ClassVar[bool] = True
    codes: ClassVar = FAULTS
    happenings: ClassVar = fdl_console.HAPPENINGS
    unreadable: ClassVar = {fdl_console.CardDamaged.KIND: CardDamaged()}

    def __init__(self, options: ConsoleOptions, memory: bytes | None = None) -> None:
        """One session."""
        super().__init__(options, memory)
        self._pool = options.pool
        self._signs_in = False

    async def run(self, link: Link, emit: Emit) -> None:
        """Run the session until LinkLost or DeviceRefused."""
        self._signs_in = isinstance(link, LocalLink)
        await super().run(link, emit)

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """A console's happening in the casino's words."""
        event = self._round(happening) or self._seats(happening) or self._entered(happening) or self._floor(happening)
        return None if event is None else (event,)

    def _round(self, happening: fdl.Happening) -> Event | None:
        match happening:
            case fdl_console.BetsOpened():
                return BetsOpened()
            case fdl_console.BetsClosed():
                return BetsClosed()
            case fdl_console.RoundVoid(reason, round_):
                words = fdl_console.VOID_REASONS.get(reason, f"reason {reason} of the console")
                return RoundVoided(words, round_)
            case fdl_console.Paid(round_):
                return RoundPaid(round_)
            case fdl_console.NewShoe(decks):
                return ShoeStarted(decks)
            case fdl_console.CutCard():
                return CutCardDrawn()
            case fdl_console.DemoRound():
                return RoundDemo()
            case fdl_console.DealerRelieved():
                return DealerRelieved()
            case fdl_console.SupervisorKey(on):
                return SupervisorKeyed(on)
            case fdl_console.TableClosed():
                return TableClosed()
            case fdl_console.SeriesStated(by, point, round_, bets, part, parts) if self._signs_in:
                lie = tuple(LaidBet(seat, bet, amount) for seat, bet, amount in bets)
                return SeriesStated(by=by, point=point, bets=lie, round=round_, part=part, parts=parts)
            case fdl_console.Corrected(hands, round_):
                return DealCorrected(dict(hands), round_)
            case fdl_console.CardExposed(hand, card):
                return CardExposed(hand, card)
            case fdl_console.CardDamaged(card):
                return CardDamaged(card)
            case _:
                return None

    def _floor(self, happening: fdl.Happening) -> Event | None:
        """A decision or count of a person with a name; None from a console without sign-in."""
        match happening:
            case fdl_console.TableOpened(by, minimum, maximum) if self._signs_in:
                return TableOpened(by=by, minimum=minimum, maximum=maximum)
            case fdl_console.LimitsChanged(by, minimum, maximum) if self._signs_in:
                return LimitsChanged(by=by, minimum=minimum, maximum=maximum)
            case fdl_console.TableClosedBy(by) if self._signs_in:
                return TableClosed(by=by)
            case fdl_console.MachineApproved(by, round_) if self._signs_in:
                return MachineApproved(by=by, round=round_)
            case fdl_console.TableCounted(count, amount, entry, by, second, reverses) if self._signs_in:
                kind = fdl_console.COUNTS[count]
                return TableCounted(kind=kind, amount=amount, by=by, second=second, entry=entry, reverses=reverses)
            case _:
                return None

    def _seats(self, happening: fdl.Happening) -> Event | None:
        match happening:
            case fdl_console.SeatOpened(seat):
                return SeatOpened(seat)
            case fdl_console.SeatClosed(seat):
                return SeatClosed(seat)
            case fdl_console.SeatAction(seat, action, hand, amount):
                return SeatActed(seat, fdl_console.ACTIONS[action], hand, amount)
            case fdl_console.BetPlaced(seat, bet, amount):
                return WagerPlaced(seat, bet, amount)
            case fdl_console.BetWithdrawn(seat, bet, amount):
                return WagerWithdrawn(seat, bet, amount)
            case fdl_console.HandPassed(seat):
                return HandPassed(seat)
            case fdl_console.JackpotWon(level, seat, amount):
                return JackpotWon(self._pool, level, seat, amount)
            case fdl_console.JackpotPaid(level, seat, amount):
                return JackpotPaid(self._pool, level, seat, amount)
            case _:
                return None

    def _entered(self, happening: fdl.Happening) -> Event | None:
        match happening:
            case fdl_console.DiceEntered(faces, stacked, leaning):
                return DiceRead(faces, stacked, leaning)
            case fdl_console.DiceThrown(faces, reason):
                words = fdl_console.THROW_REASONS.get(reason, f"reason {reason} of the console")
                return DiceThrown(faces, not reason, words)
            case fdl_console.DiceCovered():
                return DiceCovered()
            case fdl_console.DiceUncovered():
                return DiceUncovered()
            case fdl_console.DiceDisturbed():
                return DiceDisturbed()
            case fdl_console.DiceReplaced():
                return DiceReplaced()
            case fdl_console.DiceSeized():
                return DiceSeized()
            case fdl_console.ButtonsSeparated():
                return ButtonsSeparated()
            case fdl_console.ButtonsCounted(count, fragments):
                return ButtonsCounted(count, fragments)
            case fdl_console.BallLaunched(ball, rotor):
                return BallLaunched(_turn(ball), _turn(rotor))
            case fdl_console.BallEntered(pocket):
                return BallLanded(pocket)
            case fdl_console.BallReplaced(pocket):
                return BallReplaced(pocket)
            case fdl_console.BallChanged():
                return BallChanged()
            case _:
                return None

    def ends_cycle(self, event: Event) -> bool:
        """Whether a round was paid."""
        return isinstance(event, RoundPaid)


def _turn(direction: int) -> Literal["clockwise", "anticlockwise"]:
    return "clockwise" if direction == fdl_console.CLOCKWISE else "anticlockwise"
