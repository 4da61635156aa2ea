"""A SAS slot machine, simulated: games, money and doors on one side, the polls of a host on the other.

It answers 8 ms after the last byte of a poll, byte after byte at 19200 baud; keeps what happened in a queue of twenty
that no loss of power empties; says the same exception again until another poll shows that it was heard; chirps when
nobody has polled for 5 s, and then waits for a poll to somebody else before it answers again.

`truth` is what really happened, as acts told it. Meters are in credits of one minor unit's code 01 (0.01).
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

from protocols.sas import (
    METERS,
    PRIORITY,
    Ack,
    Answer,
    Bill,
    Busy,
    Chirp,
    Features,
    GameInfo,
    GameList,
    GameMeter,
    GameMeters,
    GeneralPoll,
    Handpay,
    HandpayReset,
    Happened,
    Hopper,
    Identity,
    LongPoll,
    MachineDecoder,
    Meters,
    Number,
    Poll,
    Reply,
    SelectedMeters,
    Win,
    Wins,
    encode,
    levels_of,
)
from simulators.device import Ailment

ANSWERING = 0.008
BYTE = 11 / 19200
GAP = 0.03  # a message of the host that pauses longer is dropped; the text says 5 ms, which no pseudo terminal keeps
ALONE = 5.0  # seconds without an address on the line until it chirps
CHIRPING = 0.2
AGAIN = 15.0  # seconds until a handpay that nobody read is told again
QUEUE = 20
CANCELLED_CREDITS = 0x80  # level of a handpay that is no prize
UNLOADED = 5.0  # seconds without broadcast
BROKEN, OFF, LONG, BUSY = 8.0, 7.0, 14.0, 20.0


def _stays(text: str, code: str) -> Ailment:
    return Ailment(text, (code,), "none", person=True)


_TROUBLE: dict[str, tuple[int, tuple[int, ...], Ailment]] = {
    "slot_door": (0x11, (0x12,), _stays("the slot door stands open", "machine.slot_door")),
    "drop_door": (0x13, (0x14,), _stays("the drop door stands open", "machine.drop_door")),
    "card_cage": (0x15, (0x16,), _stays("the logic cage stands open", "machine.card_cage")),
    "cashbox_door": (0x19, (0x1A,), _stays("the cashbox door stands open", "machine.cashbox_door")),
    "cashbox_removed": (0x1B, (0x1C,), _stays("the cashbox is taken out", "machine.cashbox_removed")),
    "belly_door": (0x1D, (0x1E,), _stays("the belly door stands open", "machine.belly_door")),
    "tilt": (0x20, (), _stays("the machine tilts", "machine.tilt")),
    "coin_in_tilt": (0x21, (), _stays("a coin hangs in the acceptor", "machine.coin_in_tilt")),
    "coin_out_tilt": (0x22, (), _stays("a coin hangs in the hopper's exit", "machine.coin_out_tilt")),
    "extra_coin": (0x24, (), _stays("the hopper paid a coin too many", "machine.extra_coin")),
    "diverter": (0x25, (), _stays("the diverter sticks", "machine.diverter")),
    "reverse_coin": (0x2D, (), _stays("a coin is pulled back on a string", "machine.reverse_coin")),
    "coin_lockout": (0x79, (), _stays("the coin lockout does not release", "machine.coin_lockout")),
    "hopper_empty": (0x23, (), _stays("the hopper is empty", "machine.hopper_empty")),
    "hopper_low": (0x81, (), _stays("the hopper is nearly empty", "machine.hopper_low")),
    "hopper_full": (0x80, (), _stays("the hopper is full", "machine.hopper_full")),
    "cashbox_full": (0x27, (0x1B, 0x1C), _stays("the cashbox is full", "machine.cashbox_full")),
    "cashbox_near_full": (0x2E, (0x1B, 0x1C), _stays("the cashbox is nearly full", "machine.cashbox_near_full")),
    "bill_jam": (0x28, (0x48,), _stays("a bill is jammed", "machine.bill_jam")),
    "bill_hardware": (0x29, (0x48,), _stays("the bill acceptor failed", "machine.bill_hardware")),
    "bill_reversed": (0x2A, (0x48,), _stays("a bill is pulled back on a string", "machine.bill_reversed")),
    "ram_error": (0x32, (), _stays("the memory lost its data", "machine.ram")),
    "ram_device": (0x33, (), _stays("a memory chip is broken", "machine.ram_device")),
    "eeprom": (0x34, (), _stays("the EEPROM holds wrong data", "machine.eeprom")),
    "program": (0x37, (0x15, 0x16), _stays("the program's checksum is wrong", "machine.program")),
    "low_battery": (0x3B, (0x15, 0x16), _stays("the backup battery is low", "machine.battery")),
    "reel_tilt": (0x41, (), _stays("reel 1 is blocked", "machine.reel_tilt")),
    "reel_disconnected": (0x46, (), _stays("a reel is disconnected", "machine.reel_disconnected")),
    "printer_comms": (0x60, (0x3D,), _stays("the printer does not answer", "machine.printer_comms")),
    "paper_out": (0x61, (0x3D,), _stays("the printer has no paper", "machine.paper_out")),
    "paper_low": (0x74, (0x11, 0x12), _stays("the printer's paper is low", "machine.paper_low")),
    "printer_off": (0x75, (0x76,), _stays("the printer is switched off", "machine.printer_off")),
    "printer_jam": (0x78, (0x3D,), _stays("the printer is jammed", "machine.printer_jam")),
    "out_of_service": (0x86, (), _stays("the machine is out of service", "machine.out_of_service")),
    "door_while_off": (0x99, (), _stays("the slot door was opened in the dark", "machine.opened_while_off")),
}
"""Exception that begins it, those of its repair, and what must be seen. A test game follows each repair."""

_OF_A_GAME = (0x2D, 0x2F, 0x52, 0x53, 0xA0)
_HOPPER = ("hopper_empty", "hopper_low", "hopper_full")
_NEEDS_CLEAR = ("ram_error", "ram_device", "eeprom", "meter_back")


class Machine:
    """The device."""

    name: ClassVar[str] = "sas_machine"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **{name: ailment for name, (_, _, ailment) in _TROUBLE.items()},
        "ram_recovered": Ailment("a memory error, put right by itself", ("machine.reported",), "none"),
        "counterfeit": Ailment("a false bill is given back", ("machine.reported",), "none"),
        "handpay_pending": Ailment(
            "a prize that the machine cannot pay: it is locked until it is paid by hand",
            ("jackpot.won",),
            "none",
            person=True,
        ),
        "meter_back": Ailment("the coin in meter runs backwards", ("sas.meter_back",), "none", person=True),
        "power_loss": Ailment(
            f"no power for {OFF:g} s, in the middle of an answer", ("device.offline", "machine.power_lost"), "none"
        ),
        "wrong_crc": Ailment(f"for {LONG:g} s the answers' checksums are wrong", ("sas.damaged",), "none"),
        "busy": Ailment(f"it is busy for {BUSY:g} s", ("sas.busy",), "none"),
        "deaf": Ailment(f"for {LONG:g} s it answers general polls only", ("sas.deaf",), "none"),
        "fifo_overflow": Ailment("more happens at once than its queue holds", ("sas.exceptions_lost",), "none"),
        "loop_break": Ailment(f"the wire from the host is broken for {BROKEN:g} s", ("device.offline",), "none"),
        "no_broadcast": Ailment("broadcasts do not reach it", ("sas.progressive_silent",), "none"),
    }
    line: ClassVar[Mapping[str, Ailment]] = {
        "garbage": Ailment("noise before an answer: it is asked again", (), "none"),
        "half_frame": Ailment("an answer cut in half: it is asked again", (), "none"),
        "repeated": Ailment("answers come twice: the second is nobody's", (), "none"),
        "silence": Ailment("nothing passes", ("device.offline",), "none"),
        "slow_drip": Ailment("answers drip: they come late and whole", (), "none"),
        "wrong_baud": Ailment("nothing that passes can be read", ("device.offline",), "none"),
        "unplugged": Ailment("the cable is pulled", ("device.offline",), "none"),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (
        ("insert_bill", 4.0),
        ("play", 4.0),
        ("play", 4.0),
        ("play", 4.0),
        ("win", 6.0),
    )

    def __init__(self, rng: Random, address: int = 1, serial: str = "SIM-0001", group: int = 1) -> None:
        """A machine that has been played on before, at `address`, in progressive `group`."""
        self._rng = rng
        self._address = address
        self._serial = serial
        self._group = group
        self._decoder = MachineDecoder()
        self._line: deque[tuple[float, bytes]] = deque(maxlen=4096)
        self._heard_at = 0.0
        self._addressed_at = 0.0
        self._next_chirp = float("inf")
        self._synchronised = False
        self._queue: deque[int] = deque()
        self._priority: deque[int] = deque()
        self._saying: int | None = None
        self._last_poll: Poll | None = None
        self._last_answer: Answer | None = None
        self._handpays: deque[Handpay] = deque()
        self._unread: deque[Handpay] = deque()
        self._remind_at = float("inf")
        self._hits: deque[tuple[int, int]] = deque()
        self._last_hit = (0, 0)
        self._last_bill = Bill(0, 0, 0)
        self._broadcast_at: float | None = None
        self._reset_ids = 0
        self._trouble: dict[str, None] = {}
        self._until: dict[str, float] = {}
        self._now = 0.0
        self.enabled = True
        self.levels: dict[int, int] = {}
        self.truth: list[str] = []
        self.meters: dict[str, int] = dict.fromkeys({name for names in METERS.values() for name, _ in names}, 0)
        coin_in = rng.randrange(10_000, 5_000_000)
        self.meters |= {
            "coin_in": coin_in,
            "coin_out": coin_in * 9 // 10,
            "drop": coin_in // 10,
            "games_played": coin_in // 10,
            "games_won": coin_in // 70,
            "credits": 500,
            "door_opens": 12,
            "power_resets": 3,
        }

    # ---- a hand at the machine

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What people do with it."""
        return {
            "play": self.play,
            "win": self.win,
            "insert_bill": self.insert_bill,
            "open_door": self.open_door,
            "close_door": self.close_door,
            "handpay": self.handpay,
            "hit_progressive": self.hit_progressive,
            "reset": self.reset,
            "cancel_handpay": self.cancel_handpay,
            "cash_out": self.cash_out,
        }

    @property
    def playable(self) -> bool:
        """Enabled, and nothing stands in the way."""
        return self.enabled and not self._trouble and not self._handpays and not self._off(self._now)

    def play(self, now: float, bet: int = 5) -> bool:
        """One losing game; whether it was played."""
        self._now = max(self._now, now)
        if not self.playable:
            return False
        if self.meters["credits"] < bet:
            self.insert_bill(now)
        self.meters["credits"] -= bet
        self.meters["coin_in"] += bet
        self.meters["games_played"] += 1
        self._tell(0x7E, now)
        self._tell(0x7F, now)
        self.truth.append("game")
        return True

    def win(self, now: float) -> bool:
        """One game won."""
        if not self.play(now):
            return False
        prize = self._rng.randrange(5, 200)
        self.meters["credits"] += prize
        self.meters["coin_out"] += prize
        self.meters["games_won"] += 1
        return True

    def insert_bill(self, now: float) -> None:
        """A bill of 5."""
        self.meters["credits"] += 500
        self.meters["drop"] += 500
        self.meters["bills_5"] += 1
        self.meters["bills_value"] += 5
        self.meters["bills_in_credits"] += 500
        self._last_bill = Bill(37, 1, self.meters["bills_5"])
        self._tell(0x48, now)
        self.truth.append("bill")

    def open_door(self, now: float) -> None:
        """The slot door."""
        if "slot_door" not in self._trouble:
            self._trouble["slot_door"] = None
            self.meters["door_opens"] += 1
            self._tell(0x11, now)

    def close_door(self, now: float) -> None:
        """The slot door."""
        if self._trouble.pop("slot_door", 0) is None:
            self._tell(0x12, now)

    def cash_out(self, now: float) -> None:
        """The player takes everything as a ticket."""
        if self.meters["credits"]:
            self.meters["cancelled_credits"] += self.meters["credits"]
            self.meters["credits"] = 0
            self._tell(0x66, now)
            self._tell(0x3D, now)

    def handpay(self, now: float, amount: int = 123_456, level: int = 0) -> None:
        """A prize for a person to pay."""
        self._reset_ids = self._reset_ids % 255 + 1
        prize = Handpay(self._group if level else 0, level, amount, 0, self._reset_ids)
        self.meters["jackpot"] += amount
        self._handpays.append(prize)
        self._unread.append(prize)
        self._remind_at = now + AGAIN
        self._tell(0x51, now)
        self.truth.append(f"handpay {level} {amount}")

    def hit_progressive(self, now: float, level: int = 1, *, by_hand: bool = False) -> None:
        """The jackpot of `level` falls, at the amount of the last broadcast."""
        amount = self.levels.get(level, 100_000)
        self._hits.append((level, amount))
        self._last_hit = (level, amount)
        self._tell(0x56, now)
        self.truth.append(f"hit {level} {amount}")
        if by_hand:
            self.handpay(now, amount, level)
        else:
            self.meters["credits"] += amount
            self.meters["coin_out"] += amount
            self._tell(0x54, now)

    def reset(self, now: float) -> bool:
        """The attendant turns the key: the oldest handpay was paid; whether there was one."""
        if not self._handpays:
            return False
        prize = self._handpays.popleft()
        if prize in self._unread:
            self._unread.remove(prize)
        self._tell(0x52, now)
        self.truth.append(f"paid {prize.level} {prize.amount}")
        return True

    def cancel_handpay(self, now: float) -> bool:
        """The player plays on instead: the latest request for cancelled credits is over; whether there was one."""
        asked = [prize for prize in self._handpays if prize.level == CANCELLED_CREDITS]
        if not asked:
            return False
        self._handpays.remove(asked[-1])
        if asked[-1] in self._unread:
            self._unread.remove(asked[-1])
        self._tell(0x55, now)
        return True

    # ---- trouble

    def inject(self, fault: str, now: float) -> None:
        """Begin one of `faults`. Raises ValueError for another."""
        self._now = max(self._now, now)
        if fault in _TROUBLE:
            if fault not in self._trouble:
                self._trouble[fault] = None
                self.meters["door_opens"] += fault == "slot_door"
                self._tell(_TROUBLE[fault][0], now)
            return
        match fault:
            case "ram_recovered":
                self._tell(0x31, now)
            case "counterfeit":
                self._tell(0x2C, now)
            case "handpay_pending":
                self.handpay(now)
            case "meter_back":
                self.meters["coin_in"] -= 7
                self._trouble[fault] = None
            case "power_loss":
                self._until[fault] = now + OFF
                self._tell(0x18, now)
                self._line = deque(list(self._line)[: len(self._line) // 2])
            case "wrong_crc" | "deaf":
                self._until[fault] = now + LONG
            case "busy":  # long enough for a host that asks each five seconds to lose its patience
                self._until[fault] = now + BUSY
            case "loop_break":
                self._until[fault] = now + BROKEN
            case "fifo_overflow":
                for _ in range(QUEUE + 5):
                    self._tell(0x2B, now)
            case "no_broadcast":
                self._until[fault] = now + UNLOADED + 1
                self._broadcast_at = now
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}, only {', '.join(self.faults)}")

    def repair(self, now: float) -> None:
        """An attendant puts right what stands, and plays a game to see."""
        self._now = max(self._now, now)
        for fault in list(self._trouble):
            for code in _TROUBLE[fault][1] if fault in _TROUBLE else ():
                self._tell(code, now)
            if fault in _NEEDS_CLEAR:
                self._clear_memory(now)
            del self._trouble[fault]
        while self.reset(now):
            pass
        self.enabled = True
        self.play(now)

    def _clear_memory(self, now: float) -> None:
        self.meters = dict.fromkeys(self.meters, 0)
        self._tell(0x3A, now)

    def _off(self, now: float) -> bool:
        return now < self._until.get("power_loss", 0.0)

    def _lasts(self, fault: str, now: float) -> bool:
        return now < self._until.get(fault, 0.0)

    def _tell(self, code: int, now: float) -> None:
        self._now = max(self._now, now)
        if code in PRIORITY:
            if code not in self._priority:
                self._priority.append(code)
        elif len(self._queue) >= QUEUE:
            if 0x70 not in self._priority:
                self._priority.appendleft(0x70)
        else:
            self._queue.append(code)

    # ---- the wire

    def due(self) -> float:
        """The next byte on the line, chirp, or end of something."""
        times = [self._remind_at if self._unread else float("inf"), *self._until.values()]
        if self._line:
            times.append(self._line[0][0])
        if self._decoder.waiting:
            times.append(self._heard_at + GAP)
        times.append(max(self._addressed_at + ALONE, self._next_chirp if self._next_chirp < float("inf") else 0.0))
        if self._broadcast_at is not None:
            times.append(self._broadcast_at + UNLOADED)
        return min((time for time in times if time > self._now), default=float("inf"))

    def wake(self, now: float) -> bytes:
        """What is over on the line by `now`."""
        self._now = max(self._now, now)
        if self._lasts("power_loss", now):
            return b""
        if self._until.pop("power_loss", None) is not None:
            self._power_up(now)
        self._until = {fault: until for fault, until in self._until.items() if until > now}
        if self._decoder.waiting and now - self._heard_at >= GAP:
            self._decoder.quiet()
        if self._unread and now >= self._remind_at:
            self._remind_at = now + AGAIN
            self._tell(0x51, now)
        if self._broadcast_at is not None and now - self._broadcast_at >= UNLOADED:
            self._broadcast_at = now if self._lasts("no_broadcast", now) or self.levels else None
            self._tell(0x53, now)
        said = bytearray()
        if now - self._addressed_at >= ALONE:
            self._synchronised = False
            if self._next_chirp == float("inf") or now >= self._next_chirp:
                said += encode(Chirp(self._address))
                self._next_chirp = now + CHIRPING
        while self._line and self._line[0][0] <= now:
            said += self._line.popleft()[1]
        return bytes(said)

    def _power_up(self, now: float) -> None:
        self.meters["power_resets"] += 1
        self.meters["games_since_power_up"] = 0
        self._decoder = MachineDecoder()
        self._line.clear()
        self._synchronised = False
        self._saying = None
        self._last_poll = None
        self._addressed_at = now
        self._next_chirp = float("inf")
        self._tell(0x17, now)

    def hear(self, data: bytes, now: float) -> bytes:
        """Polls; what it answers comes later."""
        self._now = max(self._now, now)
        if self._off(now) or self._lasts("loop_break", now):
            return b""
        if self._decoder.waiting and now - self._heard_at >= GAP:
            self._decoder.quiet()
        self._heard_at = now
        for poll in self._decoder.feed(data):
            if isinstance(poll, GeneralPoll | LongPoll):
                self._polled(poll, now)
        return b""

    def _polled(self, poll: Poll, now: float) -> None:
        self._addressed_at = now
        self._next_chirp = float("inf")
        mine = poll.address == self._address
        if poll != self._last_poll:  # the same poll again asks for the same answer
            self._heard_by_host()
        if not mine:
            self._synchronised = True
        if isinstance(poll, LongPoll) and poll.address == 0:
            self._listen(poll, now)
        elif mine and self._synchronised:
            if isinstance(poll, GeneralPoll):
                answer: Answer | None = self._what_happened()
            elif poll == self._last_poll and poll.command == 0x94:
                answer = self._last_answer
            else:
                answer = self._answer(poll, now)
            self._last_answer = answer
            if answer is not None:
                self._say(answer, now)
        self._last_poll = poll

    def _heard_by_host(self) -> None:
        """Another poll than the same again: what was said was heard."""
        code, self._saying = self._saying, None
        if code and code in PRIORITY:
            if code in self._priority:
                self._priority.remove(code)
        elif code and self._queue and self._queue[0] == code:
            self._queue.popleft()
        if not isinstance(self._last_poll, LongPoll) or not isinstance(self._last_answer, Reply):
            return  # who was deaf or busy has said nothing
        if self._last_poll.command == 0x1B and self._unread:
            self._unread.popleft()
            self._last_poll = None
        elif self._last_poll.command in {0x85, 0x87} and self._hits:
            if self._last_poll.command == 0x85:
                self._hits.popleft()
            else:
                self._hits.clear()
            self._last_poll = None

    def _what_happened(self) -> Answer | None:
        if self._saying is None:
            if self._priority:
                self._saying = self._priority[0]
            else:
                self._saying = self._queue[0] if self._queue else 0x00
        return Happened(self._saying)

    def _listen(self, poll: LongPoll, now: float) -> None:
        told = levels_of(poll)
        if told is not None and told[0] == self._group and not self._lasts("no_broadcast", now):
            self.levels |= told[1]
            self._broadcast_at = now

    def _answer(self, poll: LongPoll, now: float) -> Answer | None:
        me = self._address
        if self._lasts("deaf", now):
            return None
        if self._lasts("busy", now):
            return Busy(me)
        if poll.command in METERS:
            return Reply(
                me, poll.command, Meters({name: self.meters[name] % 10**8 for name, _ in METERS[poll.command]})
            )
        game = 0
        if poll.command in _OF_A_GAME:
            digits = poll.data[:2].hex()
            if not digits.isdecimal():
                return None
            game = int(digits)
        match poll.command:
            case 0x01 | 0x02:
                self.enabled = poll.command == 0x02
                return Ack(me)
            case 0x03 | 0x04 | 0x05 | 0x06 | 0x07:
                return Ack(me)
            case 0x80 | 0x86:
                self._listen(poll, now)
                return Ack(me)
            case 0x1B:
                return Reply(me, 0x1B, self._unread[0] if self._unread else Handpay(0, 0, 0))
            case 0x1F:
                return Reply(me, 0x1F, GameInfo("SI", "MUL", 0x01, 5, self._group, 0, "LUCKY1", "9000"))
            case 0x2D:
                return Reply(me, 0x2D, GameMeter(game, self.meters["cancelled_credits"]))
            case 0x2F if len(poll.data) > 2 and max(poll.data[2:]) <= 0x0C:
                codes = {0: "coin_in", 1: "coin_out", 2: "jackpot", 5: "games_played", 0x0C: "credits"}
                chosen = {code: self.meters[codes[code]] if code in codes else 0 for code in poll.data[2:]}
                return Reply(me, 0x2F, SelectedMeters(game, chosen))
            case 0x48:
                return Reply(me, 0x48, self._last_bill)
            case 0x4F:
                trouble = any(fault in self._trouble for fault in _HOPPER)
                return Reply(me, 0x4F, Hopper(1 if trouble else 0, 0 if trouble else 60, 0 if trouble else 600))
            case 0x51 | 0x55:
                return Reply(me, poll.command, Number(1))
            case 0x52:
                values = (self.meters[name] for name in ("coin_in", "coin_out", "jackpot", "games_played"))
                return Reply(me, 0x52, GameMeters(game, *values))
            case 0x53:
                return Reply(me, 0x53, GameInfo("SI", "MUL", 0x01, 5, self._group, 0, "LUCKY1", "9000", game))
            case 0x54:
                return Reply(me, 0x54, Identity("602", self._serial))
            case 0x56:
                return Reply(me, 0x56, GameList((1,)))
            case 0x84:
                return Reply(me, 0x84, Win(self._group if self._last_hit[0] else 0, *self._last_hit))
            case 0x85:
                return Reply(me, 0x85, Win(self._group, *self._hits[0]) if self._hits else Win(0, 0, 0))
            case 0x87:
                return Reply(me, 0x87, Wins(self._group, tuple(self._hits)[:32]))
            case 0x94:
                return Reply(me, 0x94, HandpayReset(self._reset_by_host(now)))
            case 0xA0:
                return Reply(me, 0xA0, Features(game, b"\x24\x00\x00"))
            case _:
                return None

    def _reset_by_host(self, now: float) -> int:
        if not self._handpays:
            return 2
        if "slot_door" in self._trouble:
            return 1
        self.reset(now)
        return 0

    def _say(self, answer: Answer, now: float) -> None:
        data = encode(answer)
        if isinstance(answer, Reply) and self._lasts("wrong_crc", now):
            data = data[:-1] + bytes((data[-1] ^ 0x5A,))
        self._line.append((now + ANSWERING + len(data) * BYTE, data))
