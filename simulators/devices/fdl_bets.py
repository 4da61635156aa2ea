"""Simulated bet sensors that speak FDL: seven seats with a sensor and a lamp each, and the dealer's jackpot panel."""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from protocols.fdl import bets as fdl_bets, frame as fdl
from protocols.fdl.lamps import places_from_bytes, places_to_bytes
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, WARNING
from simulators.devices.fdl_lamps import ManyPlaces

__all__ = ["BetSensors"]

BLOCKED, FLICKER, DOUBTFUL, STUCK_ON, STUCK_OFF, LATE, LAMP, PANEL = range(0x50, 0x58)
STANDING_FAULT, RANGE = 0x02, 0x04

SEATS: Final = 7
SETTLING: Final = 6.0  # seconds until a carelessly thrown chip lies still
TAKEN_AWAY: Final = 3.0  # seconds after a clear until the sensors must be free
WEAK: Final = 1  # the seat that has the faults of the electronics
KEY_LOCK: Final = 1


class BetSensors(ManyPlaces):
    """The sensors under the layout. The methods are what players and dealer do; `latched` are the bets that count."""

    name: ClassVar[str] = "fdl_bets"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        # Before the bell no card can be missing. After it the round ends with the hands, which are reported anyway.
        "power_loss": replace(COMMON_FAULTS["power_loss"], round="counts"),
        "memory_loss": replace(COMMON_FAULTS["memory_loss"], round="counts"),
        "counters_reset": replace(FIRMWARE["counters_reset"], round="counts"),
        "deaf": replace(COMMON_FAULTS["deaf"], round="counts"),
        "chip_left": Ailment("a chip stays where it lies after the next clear", ("bets.blocked",), "counts"),
        "flicker": Ailment("the next chip rocks for 6 s, then lies still", ("bets.flicker",), "counts"),
        "flicker_at_lock": Ailment(
            "the next chip rocks until it is taken away", ("bets.flicker", "bets.doubtful"), "counts"
        ),
        "stuck_on": Ailment(
            "the sensor of seat 1 always detects a chip", ("bets.stuck_on", "bets.doubtful"), "counts", person=True
        ),
        "stuck_off": Ailment(
            "the sensor of seat 1 never detects one", ("bets.stuck_off", "bets.doubtful"), "counts", person=True
        ),
        "late_chip": Ailment("somebody puts a chip down after the next lock", ("bets.late",), "counts"),
        "lamp_out": Ailment("the lamp of seat 1 burns out", ("bets.lamp",), "counts", person=True),
        "key_stuck": Ailment("the key `lock` stays down", ("bets.panel",), "counts", person=True),
        "power_loss_locked": Ailment(
            "no power for 1.5 s just after the next lock; the latched bets are kept", ("device.online",), "suspended"
        ),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (
        ("place", 4.0),
        ("place", 4.0),
        ("lock", 8.0),
        ("remove_all", 1.0),
        ("clear", 5.0),
        ("remove_all", 1.0),
    )
    kind: ClassVar[int] = fdl.BET_SENSORS
    model: ClassVar[str] = "Bets"

    def __init__(self, rng: random.Random, serial: str = "SIM-BETS-1") -> None:
        super().__init__(rng, serial)
        self.latched: frozenset[int] = frozenset()
        self.locks: list[frozenset[int]] = []
        """The seats that were latched at each lock."""
        self._chips: set[int] = set()
        self._rocking: dict[int, float] = {}
        self._locked = False
        self._won: list[tuple[int, int]] = []
        self._key = False
        self._awaited: list[str] = []
        self._looks_at: float | None = None  # when it checks for chips left after a clear
        self._left: set[int] = set()
        self._sticks: set[int] = set()
        self._lit: frozenset[int] | None = frozenset()
        self._asked: frozenset[int] = frozenset()

    # ---- Device

    def due(self) -> float:
        """When it next sends or reads its sensors."""
        due = super().due()
        if self._boots_at is not None:
            return due
        return min(due, *self._rocking.values(), due if self._looks_at is None else self._looks_at)

    def wake(self, now: float) -> bytes:
        """Simulate until `now` and return the bytes sent."""
        self._live(now)
        return super().wake(now)

    def hear(self, data: bytes, now: float) -> bytes:
        """Bytes from the host; what it answers at once."""
        self._live(now)
        return super().hear(data, now)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        self._live(now)
        match fault:
            case "chip_left" | "flicker" | "flicker_at_lock" | "late_chip" | "power_loss_locked":
                self._awaited.append(fault)
            case "stuck_on":
                self._ail(STUCK_ON, WEAK, ERROR, now)
            case "stuck_off":
                self._ail(STUCK_OFF, WEAK, ERROR, now)
            case "lamp_out":
                self._ail(LAMP, WEAK, WARNING, now)
                self._show(now)
            case "key_stuck":
                self._fail(PANEL, WARNING, now, KEY_LOCK, person=True)
            case _:
                super().inject(fault, now)

    def repair(self, now: float) -> None:
        """Parts are replaced, and overlooked chips taken away."""
        self._live(now)
        self._awaited.clear()
        self._left.clear()
        self._sticks.clear()
        if not self._locked:
            self._chips.clear()
            self._rocking.clear()
        super().repair(now)
        self._show(now)

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What players and dealer do; `place` at a random seat."""
        return {
            "place": lambda now: self.place(self._rng.randint(1, SEATS), now),
            "remove_all": self.remove_all,
            "lock": self.lock,
            "clear": self.clear,
            "win": lambda now: self.win(min(self.latched, default=1), self._rng.randint(1, 3), now),
            "pay": self.pay,
            "supervisor_key": lambda now: self.supervisor_key(on=not self._key, now=now),
            **{f"place_{seat}": partial(self.place, seat) for seat in range(1, SEATS + 1)},
        }

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        """A command of the host."""
        match code:
            case fdl_bets.LOCK if not data:
                if self._locked:
                    return fdl.REFUSED, fdl_bets.LOCKED_ALREADY, b""
                return fdl.DONE, 0, self._lock(now).to_bytes()
            case fdl_bets.CLEAR if not data:
                reason = self._clear(now)
                return (fdl.REFUSED, reason, b"") if reason else (fdl.DONE, 0, b"")
            case fdl_bets.LIGHT:
                asked = frozenset(places_from_bytes(data))
                if len(data) != 4 or any(seat > SEATS for seat in asked):
                    return fdl.REFUSED, RANGE, b""
                if self.latched - asked:
                    return fdl.REFUSED, fdl_bets.LATCHED, b""
                self._asked = asked
                self._show(now)
                return fdl.DONE, 0, places_to_bytes(self._lamps())
            case _:
                return super().do(code, data, now)

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """The latch is in its memory; the lamps go dark and the key counts as off."""
        self._live(now)
        self._key = False
        self._asked = frozenset()
        self._looks_at = None
        if lose_memory:
            self.latched = frozenset()
            self._locked = False
            self._won.clear()
        super().power_cycle(now, lose_memory=lose_memory)

    # ---- hands

    def place(self, seat: int, now: float) -> None:
        """A chip on a seat that has none."""
        self._live(now)
        if seat in self._chips:
            return
        self._chips.add(seat)
        if self._locked and seat not in self.latched and seat not in self._at(DOUBTFUL):
            self._ail(LATE, seat, WARNING, now)
        elif not self._locked and (rocks := self._occasion("flicker", "flicker_at_lock")):
            self._rocking[seat] = now + SETTLING if rocks == "flicker" else float("inf")
            self._ail(FLICKER, seat, WARNING, now)

    def remove(self, seat: int, now: float) -> None:
        """That chip is taken away. It is reported if the bet was latched."""
        self._live(now)
        if seat in self._chips and seat in self.latched and self._boots(now):
            self.record(fdl_bets.Removed(seat), now)
        self._chips.discard(seat)
        self._rocking.pop(seat, None)
        for code in (FLICKER, LATE, BLOCKED):
            self._mend(code, seat, now)

    def remove_all(self, now: float) -> None:
        """The layout is cleared; a chip may be overlooked once."""
        self._live(now)
        left = self._locked and self._chips and self._occasion("chip_left")
        overlooked = set(sorted(self._chips)[:1]) if left else set()
        for seat in sorted(self._chips - overlooked):
            self.remove(seat, now)

    def lock(self, now: float) -> bool:
        """The dealer's key. False if the bets are locked already, or the panel has no power."""
        self._live(now)
        if self._locked or not self._boots(now):
            return False
        self._lock(now)
        return True

    def clear(self, now: float) -> bool:
        """The dealer's other key. False if the bets may not be cleared."""
        self._live(now)
        return self._boots(now) and not self._clear(now)

    def win(self, seat: int, level: int, now: float) -> bool:
        """The dealer keys a win; only on a latched bet."""
        self._live(now)
        if not self._boots(now) or seat not in self.latched:
            return False
        self._won.append((seat, level))
        self.record(fdl_bets.JackpotWon(seat, level), now)
        return True

    def pay(self, now: float) -> bool:
        """The oldest win is paid, under the supervisor's key."""
        self._live(now)
        if not self._boots(now) or not self._key or not self._won:
            return False
        self.record(fdl_bets.JackpotPaid(*self._won.pop(0)), now)
        return True

    def supervisor_key(self, *, on: bool, now: float) -> None:
        """Turn the key."""
        self._live(now)
        if self._boots(now) and on != self._key:
            self._key = on
            self.record(fdl_bets.SupervisorKey(on), now)

    # ---- inside

    def _live(self, now: float) -> None:
        """Thrown chips come to rest; chips left after a clear are detected."""
        if not self._boots(now):
            return
        for seat in [seat for seat, until in self._rocking.items() if now >= until]:
            del self._rocking[seat]
            self._mend(FLICKER, seat, now)
        if self._looks_at is not None and now >= self._looks_at:
            self._looks_at = None
            for seat in sorted(self._left & self._chips):
                self._ail(BLOCKED, seat, WARNING, now)

    def _lock(self, now: float) -> fdl_bets.Locked:
        unsure = set(self._rocking) | self._at(BLOCKED) | self._at(STUCK_ON) | self._at(STUCK_OFF)
        self.latched = frozenset(self._chips - unsure)
        self.locks.append(self.latched)
        self._locked = True
        self._looks_at = None
        locked = fdl_bets.Locked(tuple(sorted(self.latched)), tuple(sorted(unsure)))
        self.record(locked, now)
        for seat in sorted(unsure):
            self._ail(DOUBTFUL, seat, ERROR, now)
        self._show(now)
        if self._occasion("power_loss_locked"):
            self.power_cycle(now, lose_memory=False)
        elif len(self._chips) < SEATS and self._occasion("late_chip"):  # a full table has no free seat
            self.place(next(seat for seat in range(SEATS, 0, -1) if seat not in self._chips), now)
        return locked

    def _clear(self, now: float) -> int:
        """The reason of a refusal; 0 if it was done."""
        if not self._locked:
            return fdl_bets.NOT_LOCKED
        if self._won and not self._key:
            return fdl_bets.NOT_PAID
        self._locked = False
        self.latched = frozenset()
        self._asked = frozenset()
        self._won.clear()
        self._heal(DOUBTFUL, now)
        self._heal(LATE, now)
        self.record(fdl_bets.Cleared(), now)
        self._left = set(self._chips)
        self._looks_at = now + TAKEN_AWAY
        self._show(now)
        return 0

    def _lamps(self) -> frozenset[int]:
        return (self._asked | self.latched) - self._at(LAMP)

    def _show(self, now: float) -> None:
        if self._boots(now) and self._lamps() != self._lit:
            self._lit = self._lamps()
            self.record(fdl_bets.Lit(tuple(sorted(self._lit))), now)

    def _started(self, now: float) -> None:
        super()._started(now)
        self._lit = None
        self._show(now)

    def _occasion(self, *faults: str) -> str:
        """Remove and return the first of these injected faults that is pending, else empty."""
        found = next((fault for fault in self._awaited if fault in faults), "")
        if found:
            self._awaited.remove(found)
        return found
