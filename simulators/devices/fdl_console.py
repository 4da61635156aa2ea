"""A simulated dealer's console that speaks FDL: keys, a display for entries, the supervisor's key."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from protocols.fdl import console as fdl_console, frame as fdl
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, WARNING, FdlDevice

KEY_STUCK, DISPLAY, BELL, KEYPAD, KEY_SWITCH, ENTRY = range(0x20, 0x26)
AGAIN = 30.0
TRIES = 3

KEYS = (
    "bets_opened",
    "bell",
    "void",
    "paid",
    "new_shoe",
    "cut_card",
    "demo",
    "dealer_relieved",
    "dice_covered",
    "dice_uncovered",
    "dice_disturbed",
    "dice_replaced",
    "dice_seized",
    "ball_changed",
    "table_closed",
    "buttons_separated",
)


class Console(FdlDevice):
    """The keys of a table. Keys pressed while the console is off or its keypad has failed are lost.

    A value (dice, a valid throw, buttons, a pocket) is reported when it was entered twice in a row within 30 s: those
    methods return whether it was reported. A correction, a jackpot's payment and a void by the supervisor's decision
    need the supervisor's key.
    """

    name: ClassVar[str] = "fdl_console"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        "key_stuck": Ailment("the key `paid` stays down too long", ("console.key_stuck",), "counts", person=True),
        "display_dark": Ailment("the display goes dark", ("console.display",), "counts", person=True),
        "bell_dead": Ailment("the bell does not sound", ("console.bell",), "counts", person=True),
        "keypad_dead": Ailment("no key is read", ("console.keypad",), "suspended", person=True),
        "key_switch": Ailment(
            "the supervisor's key switch has no contact", ("console.key_switch",), "counts", person=True
        ),
        "wrong_entries": Ailment(
            "the dealer enters a value three times, each time a different one", ("console.entry",), "counts"
        ),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (("bets_opened", 15.0), ("bell", 12.0), ("paid", 2.0))
    kind: ClassVar[int] = fdl.CONSOLE
    model: ClassVar[str] = "Console"

    def __init__(self, rng: random.Random, serial: str = "SIM-CONSOLE-1", decks: int = 8) -> None:
        super().__init__(rng, serial)
        self._decks = decks
        self._key = False
        self._pending: fdl.Happening | None = None
        self._pending_until = 0.0
        self._tries = 0

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "key_stuck":
                self._fail(KEY_STUCK, WARNING, now, where=KEYS.index("paid") + 1, person=True)
            case "display_dark":
                self._fail(DISPLAY, WARNING, now, person=True)
            case "bell_dead":
                self._fail(BELL, WARNING, now, person=True)
            case "keypad_dead":
                self._fail(KEYPAD, ERROR, now, person=True)
            case "key_switch":
                self.supervisor_key(on=False, now=now)
                self._fail(KEY_SWITCH, WARNING, now, person=True)
            case "wrong_entries":
                for n in range(1, TRIES + 1):
                    self.enter_dice((n,), now)
            case _:
                super().inject(fault, now)

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """Its keys, and random values that are entered twice."""

        def twice(enter: Callable[[float], bool]) -> Callable[[float], bool]:
            return lambda now: enter(now) or enter(now)

        def picked(make: Callable[[], Callable[[float], Any]]) -> Callable[[float], Any]:
            return lambda now: make()(now)

        dice = self._rng.randint
        return {
            **{key: partial(self.press, key) for key in KEYS},
            "supervisor_key": lambda now: self.supervisor_key(on=not self._key, now=now),
            "seat_opened": picked(lambda: partial(self.seat, dice(1, 7), on=True)),
            "seat_closed": picked(lambda: partial(self.seat, dice(1, 7), on=False)),
            "seat_acted": picked(lambda: partial(self.act, dice(1, 7), self._rng.choice(("stand", "hit")))),
            "hand_passed": picked(lambda: partial(self.pass_hand, dice(1, 7))),
            "enter_dice": picked(lambda: twice(partial(self.enter_dice, (dice(1, 6), dice(1, 6), dice(1, 6))))),
            "throw_dice": picked(lambda: twice(partial(self.throw_dice, (dice(1, 6), dice(1, 6))))),
            "enter_buttons": picked(lambda: twice(partial(self.enter_buttons, dice(40, 160), 0))),
            "enter_ball": picked(lambda: twice(partial(self.enter_ball, str(dice(0, 36))))),
            "ball_replaced": partial(self.replace_ball, None),
            "card_damaged": partial(self.damage_card, None),
        }

    def repair(self, now: float) -> None:
        """Its parts are replaced, and the count of different entries begins anew."""
        self._tries = 0
        super().repair(now)

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """A half-made entry is discarded, and the key must be turned again."""
        self._pending = None
        self._tries = 0
        self._key = False
        super().power_cycle(now, lose_memory=lose_memory)

    # ---- keys

    def press(self, key: str, now: float, reason: int = 0, named: str = "") -> None:
        """Press one of KEYS. `reason`: of "void"; `named`: a round's id, of "void" and "paid". Raises ValueError."""
        happenings: dict[str, fdl.Happening] = {
            "bets_opened": fdl_console.BetsOpened(),
            "bell": fdl_console.BetsClosed(),
            "void": fdl_console.RoundVoid(reason, named),
            "paid": fdl_console.Paid(named),
            "new_shoe": fdl_console.NewShoe(self._decks),
            "cut_card": fdl_console.CutCard(),
            "demo": fdl_console.DemoRound(),
            "dealer_relieved": fdl_console.DealerRelieved(),
            "dice_covered": fdl_console.DiceCovered(),
            "dice_uncovered": fdl_console.DiceUncovered(),
            "dice_disturbed": fdl_console.DiceDisturbed(),
            "dice_replaced": fdl_console.DiceReplaced(),
            "dice_seized": fdl_console.DiceSeized(),
            "ball_changed": fdl_console.BallChanged(),
            "table_closed": fdl_console.TableClosed(),
            "buttons_separated": fdl_console.ButtonsSeparated(),
        }
        if key not in happenings:
            raise ValueError(f"the console has no key {key!r}; it has: {', '.join(KEYS)}")
        if key == "void" and reason == fdl_console.SUPERVISORS_DECISION and not self._key:
            return  # the display requires the supervisor's key
        self._pressed(happenings[key], now)

    def supervisor_key(self, *, on: bool, now: float) -> None:
        """Turn the supervisor's key. Nothing is reported if it is there already, or the switch makes no contact."""
        if on != self._key and self._boots(now) and not self._ails(KEY_SWITCH, now):
            self._key = on
            self.record(fdl_console.SupervisorKey(on), now)

    def seat(self, seat: int, now: float, *, on: bool) -> None:
        """A player sits down (`on`) or leaves."""
        self._pressed(fdl_console.SeatOpened(seat) if on else fdl_console.SeatClosed(seat), now)

    def act(self, seat: int, action: str, now: float, *, hand: int = 1, amount: int = 0) -> bool:
        """A player's decision, one of fdl_console.ACTIONS; whether it was reported. ValueError for any other."""
        code = next((code for code, word in fdl_console.ACTIONS.items() if word == action), None)
        if code is None:
            raise ValueError(f"no action {action!r}; there are: {', '.join(fdl_console.ACTIONS.values())}")
        return self._pressed(fdl_console.SeatAction(seat, code, hand, amount), now)

    def bet(self, seat: int, bet: str, amount: int, now: float) -> bool:
        """The dealer enters a bet; whether it was reported."""
        return self._pressed(fdl_console.BetPlaced(seat, bet, amount), now)

    def take_back(self, seat: int, bet: str, amount: int, now: float) -> bool:
        """The dealer enters that a bet was taken back; `amount` 0: all of it."""
        return self._pressed(fdl_console.BetWithdrawn(seat, bet, amount), now)

    def pass_hand(self, seat: int, now: float) -> None:
        """The bank, the dice or the button goes to `seat`."""
        self._pressed(fdl_console.HandPassed(seat), now)

    def expose_card(self, hand: str, card: str | None, now: float) -> None:
        """A card of `hand` was seen by all."""
        self._pressed(fdl_console.CardExposed(hand, card), now)

    def damage_card(self, card: str | None, now: float) -> None:
        """A card is torn, bent or marked."""
        self._pressed(fdl_console.CardDamaged(card), now)

    def launch_ball(self, ball: int, rotor: int, now: float) -> None:
        """The dealer throws the ball: fdl_console.CLOCKWISE or ANTICLOCKWISE."""
        self._pressed(fdl_console.BallLaunched(ball, rotor), now)

    def replace_ball(self, pocket: str | None, now: float) -> None:
        """The ball is put back by hand."""
        self._pressed(fdl_console.BallReplaced(pocket), now)

    def win_jackpot(self, level: int, seat: int, now: float, *, amount: int = 0) -> None:
        """A jackpot is won."""
        self._pressed(fdl_console.JackpotWon(level, seat, amount), now)

    # ---- under the supervisor's key

    def correct(self, hands: Mapping[str, Sequence[str]], now: float, *, named: str = "") -> bool:
        """Report the hands as they lie. False, and nothing is reported, without the supervisor's key or display.

        Raises ValueError for a hand or card that does not exist.
        """
        corrected = fdl_console.Corrected(tuple((hand, tuple(cards)) for hand, cards in hands.items()), named)
        corrected.to_bytes()
        return self._key and self._sees(now) and self._pressed(corrected, now)

    def pay_jackpot(self, level: int, seat: int, now: float, *, amount: int = 0) -> bool:
        """A jackpot is handed out. False, and nothing reported, without the supervisor's key."""
        return self._key and self._pressed(fdl_console.JackpotPaid(level, seat, amount), now)

    # ---- entered twice

    def enter_dice(self, faces: Sequence[int], now: float, *, stacked: int = 0, leaning: int = 0) -> bool:
        """Faces of dice under a dome that no device reads."""
        return self._enter(fdl_console.DiceEntered(tuple(faces), stacked, leaning), now)

    def throw_dice(self, faces: Sequence[int], now: float, *, reason: int = 0) -> bool:
        """A throw by hand; with a `reason` it does not count, and one entry is enough."""
        thrown = fdl_console.DiceThrown(tuple(faces), reason)
        return self._pressed(thrown, now) if reason else self._enter(thrown, now)

    def enter_buttons(self, count: int, fragments: int, now: float) -> bool:
        """The buttons under the cover."""
        return self._enter(fdl_console.ButtonsCounted(count, fragments), now)

    def enter_ball(self, pocket: str, now: float) -> bool:
        """The pocket of a wheel without an interface."""
        return self._enter(fdl_console.BallEntered(pocket), now)

    # ---- inside

    def _sees(self, now: float) -> bool:
        """Whether the display works, so that the dealer can read his entry."""
        return self._boots(now) and not self._ails(DISPLAY, now)

    def _pressed(self, happening: fdl.Happening, now: float) -> bool:
        if not self._boots(now) or self._ails(KEYPAD, now):
            return False
        self.record(happening, now)
        return True

    def _enter(self, value: fdl.Happening, now: float) -> bool:
        """The first entry waits for the second; a different one replaces it, and the third in a row is a fault."""
        if not self._sees(now) or self._ails(KEYPAD, now):
            return False
        if self._pending is None or now > self._pending_until:
            self._tries = 0
        first, self._pending = self._pending, value
        fresh = first is None or now > self._pending_until
        self._pending_until = now + AGAIN
        if not fresh and first == value:
            self._pending = None
            self._tries = 0
            self._heal(ENTRY, now)
            return self._pressed(value, now)
        self._tries += 1
        if self._tries >= TRIES:
            self._pending = None
            self._tries = 0
            self._fail(ENTRY, WARNING, now)
        return False
