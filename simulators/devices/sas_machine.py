"""A simulated SAS slot machine: games, money, tickets and doors, and the answers to a host's polls.

Written from the public facts of SAS, as a vendor would. It encodes the bytes of its answers itself, so that a mistake
of the codec is not made at both ends. An answer comes whole, 8 ms and the time of its bytes at 19200 baud after its
poll. It keeps exceptions in a queue of twenty that survives a loss of power, and drops the oldest when it is full. It
repeats an exception until another poll implies its acknowledgement. It sends the loop break indication when it was not
polled for 5 s, and then waits for a poll to another address before it answers again. In real-time mode (poll 0E)
exceptions come in place of answers. Its texts are filled with NUL. It answers a refused poll with its address and 80
hex.

Tickets: with `validation` "secure" it computes their numbers itself, and keeps the records of the last 31, read or not.
With "standard" the last one can be read. With "system" it asks the host for each number (exception 57), waits ten
seconds and then has the money paid by hand. With `redemption` an inserted ticket waits ten seconds for the host
(exception 67) and is returned.

`truth` is what really happened, as acts reported it. Meters are in credits with denomination code 01 (0.01).
"""

from binascii import crc_hqx
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any, ClassVar, Literal

from protocols.sas.frames import (
    MachineDecoder,
    encode,
    levels_of,
)
from protocols.sas.messages import (
    Ack,
    Answer,
    Busy,
    GeneralPoll,
    Happened,
    LongPoll,
    LoopBreak,
    Nack,
    Poll,
    RealTime,
    Reply,
    Unknown,
)
from protocols.sas.tables import PRIORITY
from simulators.devices.device import Ailment
from simulators.devices.sas_machine_tables import (
    BILLS,
    BY_CODE,
    HOPPER,
    METERS,
    NEEDS_CLEAR,
    NO_RECORDS,
    OF_A_GAME,
    OF_TICKETS,
    STYLES,
    TROUBLE,
    VALIDATIONS,
)

ANSWERING = 0.008
BYTE = 11 / 19200
GAP = 0.03  # a message of the host that pauses longer is dropped; SAS allows 5 ms, which no pseudo terminal keeps
ALONE = 5.0  # seconds without a poll until the loop break indication
CHIRPING = 0.2
AGAIN = 15.0  # seconds until a handpay that the host did not read is reported again
QUEUE = 20
PAID_BY_HAND = 0x52  # the exception of each handpay
CANCELLED_CREDITS, NO_PROGRESSIVE = 0x80, 0x40  # levels of a handpay: no prize, and no progressive one
WAITS = 10.0  # seconds for a host to validate a ticket
RECORDS = 31
STARTED = datetime(2026, 11, 22, 20, 0)  # noqa: DTZ001 - a machine has no time zone
UNLOADED = 5.0  # seconds without broadcast
BROKEN, OFF, LONG, BUSY = 8.0, 7.0, 14.0, 20.0


def _bcd(value: int, width: int) -> bytes:
    return bytes.fromhex(f"{value % 100**width:0{2 * width}d}")


def _text(text: str, width: int) -> bytes:
    return text.encode().ljust(width, b"\0")


def _prize(group: int, level: int, amount: int) -> bytes:
    return bytes((group, level)) + _bcd(amount, 5)


class Handpay:
    """An amount that a person has to pay by hand; two of the same amount are two handpays."""

    def __init__(self, group: int, level: int, amount: int) -> None:
        """Nothing of it has been paid yet."""
        self.group, self.level, self.amount = group, level, amount

    def data(self) -> bytes:
        """The answer to poll 1B."""
        return _prize(self.group, self.level, self.amount) + _bcd(0, 2) + b"\0" + bytes(10)


class Machine:
    """The device."""

    name: ClassVar[str] = "sas_machine"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **{name: ailment for name, (_, _, ailment) in TROUBLE.items()},
        "ram_recovered": Ailment("a memory error, put right by itself", ("machine.reported",), "none"),
        "counterfeit": Ailment("a false bill is given back", ("machine.reported",), "none"),
        "handpay_pending": Ailment(
            "a prize that the machine cannot pay: it is locked until it is paid by hand",
            ("jackpot.won",),
            "none",
            person=True,
        ),
        "handpays_pending": Ailment(
            "three prizes at once that the machine cannot pay: it is locked until all are paid by hand",
            ("jackpot.won",),
            "none",
            person=True,
        ),
        "meter_back": Ailment("the coin in meter runs backwards", ("sas.meter_back",), "none", person=True),
        "ram_clear": Ailment("an operator clears its memory", ("machine.unreliable",), "none"),
        "other_game": Ailment("somebody sets another paytable, or back", ("machine.identified",), "none"),
        "power_loss": Ailment(
            f"no power for {OFF:g} s; an answer under way is lost", ("device.offline", "machine.power_lost"), "none"
        ),
        "wrong_crc": Ailment(f"for {LONG:g} s the answers' checksums are wrong", ("sas.damaged",), "none"),
        "busy": Ailment(f"it is busy for {BUSY:g} s", ("sas.busy",), "none"),
        "deaf": Ailment(f"for {LONG:g} s it answers general polls only", ("sas.deaf",), "none"),
        "fifo_overflow": Ailment("more happens at once than its queue holds", ("sas.exceptions_lost",), "none"),
        "loop_break": Ailment(f"the wire from the host is broken for {BROKEN:g} s", ("device.offline",), "none"),
        "no_broadcast": Ailment("broadcasts do not reach it", ("sas.progressive_silent",), "none"),
        "host_validation": Ailment(
            "it is set to ask the host for the number of each ticket, and prints none",
            ("sas.host_validation",),
            "none",
            person=True,
        ),
        "host_redemption": Ailment(
            "it is set to take tickets that the host approves, and gives them back",
            ("sas.host_redemption",),
            "none",
            person=True,
        ),
    }
    line: ClassVar[Mapping[str, Ailment]] = {
        "garbage": Ailment("noise before an answer: the host asks again", (), "none"),
        "half_frame": Ailment("an answer cut in half: the host asks again", (), "none"),
        "repeated": Ailment("answers come twice: the second answers no poll", (), "none"),
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
        self._dropped = False  # the exception being sent was the oldest, and has left the queue
        self._last_poll: Poll | None = None
        self._last_answer: Answer | None = None
        self._handpays: deque[Handpay] = deque()
        self._unread: deque[Handpay] = deque()
        self._remind_at = float("inf")
        self._hits: deque[tuple[int, int]] = deque()
        self._last_hit = (0, 0)
        self._last_bill = bytes(6)
        self._broadcast_at: float | None = None
        self._records: dict[int, bytes] = {}
        self._records_unread: deque[int] = deque()
        self._tickets = 0
        self._last_ticket = bytes(9)
        self._validation_id = (0x001234, 0x000010)
        self._status = 0x8001  # tickets are printed, with numbers of its own
        self._trouble: dict[str, None] = {}
        self._until: dict[str, float] = {}
        self._now = 0.0
        self.enabled = True
        self.denomination = 0x01
        self.paytable, self.percent = "LUCKY", "9000"
        self.validation: Literal["standard", "system", "secure"] = "secure"
        self.redemption = False
        self.real_time = False
        self.levels: dict[int, int] = {}
        self.truth: list[str] = []
        self.others: defaultdict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))  # coin in and plays of other games
        self.meters = dict.fromkeys([name for names in METERS.values() for name in names], 0)
        self.meters |= dict.fromkeys([name for name, _ in BY_CODE.values()], 0)
        self.meters |= dict.fromkeys(("games_since_power_up", "games_since_door_closed"), 0)
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
            "insert_ticket": self.insert_ticket,
        }

    @property
    def playable(self) -> bool:
        """Whether it is enabled and without a fault or handpay."""
        return self.enabled and not self._trouble and not self._handpays and not self._off(self._now)

    def play(self, now: float, bet: int = 5, game: int = 1) -> bool:
        """Play one losing game of number `game`; whether it was played."""
        self._now = max(self._now, now)
        if not self.playable:
            return False
        if self.meters["credits"] < bet:
            self.insert_bill(now)
        self.meters["credits"] -= bet
        self.meters["coin_in"] += bet
        self.meters["games_played"] += 1
        if game != 1:
            coin_in, played = self.others[game]
            self.others[game] = coin_in + bet, played + 1
        self._tell(0x7E, now)
        self._tell(0x7F, now)
        self.truth.append("game")
        return True

    def win(self, now: float) -> bool:
        """Play and win one game."""
        if not self.play(now):
            return False
        prize = self._rng.randrange(5, 200)
        self.meters["credits"] += prize
        self.meters["coin_out"] += prize
        self.meters["games_won"] += 1
        return True

    def insert_bill(self, now: float, value: int = 5) -> None:
        """Insert a bill."""
        self.meters["credits"] += value * 100
        self.meters["drop"] += value * 100
        self.meters[f"bills_{value}"] += 1
        self.meters["bills_value"] += value
        self.meters["bills_in_credits"] += value * 100
        code, denomination = BILLS[value]
        self._last_bill = bytes((0x37, denomination)) + _bcd(self.meters[f"bills_{value}"], 4)
        self._tell(0x4F if self.real_time else code, now)
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
        if self.meters["credits"] and not self._lasts("validation", now):
            self._tell(0x66, now)
            if self.validation == "system":
                self._until["validation"] = now + WAITS
                self._tell(0x57, now)
            else:
                self._print(now, self.meters["credits"])

    def _print(self, now: float, amount: int) -> None:
        self.meters["cancelled_credits"] += amount
        self.meters["credits"] -= amount
        self.meters["tickets_out"] += amount
        self.meters["tickets_out_count"] += 1
        self._tickets = self._tickets % 9999 + 1
        number = self._rng.randrange(10**15, 10**16)
        self._last_ticket = _bcd(number % 10**8, 4) + _bcd(amount, 5)
        if self.validation == "secure":
            machine, sequence = self._validation_id
            self._validation_id = machine, sequence + 1
            index = (self._tickets - 1) % RECORDS + 1
            ticket = self._tickets.to_bytes(2, "little")
            record = self._clock(now) + _bcd(number, 8) + _bcd(amount, 5) + ticket + b"\0" + _bcd(9999, 4) + b"\0\0"
            self._records[index] = bytes((0x00, index)) + record
            self._records_unread.append(index)
        self._tell(0x3D, now)
        self.truth.append(f"ticket {amount}")

    def insert_ticket(self, now: float) -> None:
        """A ticket of another machine."""
        if self.redemption and not self._lasts("redemption", now):
            self._until["redemption"] = now + WAITS
            self._tell(0x67, now)

    def handpay(self, now: float, amount: int = 123_456, level: int = 0) -> None:
        """A prize that a person has to pay; `level` 0: of no progressive."""
        self._pay_by_hand(now, amount, level or NO_PROGRESSIVE)
        self.truth.append(f"handpay {level} {amount}")

    def _pay_by_hand(self, now: float, amount: int, level: int) -> None:
        prize = Handpay(self._group if level <= 32 else 0, level, amount)
        if level != CANCELLED_CREDITS:
            self.meters["jackpot"] += amount
        self._handpays.append(prize)
        self._unread.append(prize)
        self._remind_at = now + AGAIN
        self._tell(0x51, now)

    def hit_progressive(self, now: float, level: int = 1, *, by_hand: bool = False) -> None:
        """The progressive of `level` is won, at the amount of the last broadcast."""
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
        if prize.level == CANCELLED_CREDITS:
            self.meters["hand_paid"] += prize.amount
            self.meters["credits"] = max(self.meters["credits"] - prize.amount, 0)
        self._tell(PAID_BY_HAND, now)
        self.truth.append(f"paid {0 if prize.level == NO_PROGRESSIVE else prize.level} {prize.amount}")
        return True

    def cancel_handpay(self, now: float) -> bool:
        """The player plays on: the latest request for cancelled credits ends; whether there was one."""
        asked = [prize for prize in self._handpays if prize.level == CANCELLED_CREDITS]
        if not asked:
            return False
        self._handpays.remove(asked[-1])
        if asked[-1] in self._unread:
            self._unread.remove(asked[-1])
        self._tell(0x55, now)
        return True

    # ---- faults

    def inject(self, fault: str, now: float) -> None:  # noqa: C901 - a case for each fault
        """Begin one of `faults`. Raises ValueError for another."""
        self._now = max(self._now, now)
        if fault in TROUBLE:
            if fault not in self._trouble:
                self._trouble[fault] = None
                self.meters["door_opens"] += fault == "slot_door"
                self._tell(TROUBLE[fault][0], now)
            return
        match fault:
            case "ram_recovered":
                self._tell(0x31, now)
            case "counterfeit":
                self._tell(0x2C, now)
            case "handpay_pending":
                self.handpay(now)
            case "handpays_pending":
                for amount in (123_456, 50_000, 123_456):
                    self.handpay(now, amount)
            case "meter_back":
                self.meters["coin_in"] -= 7
                self._trouble[fault] = None
            case "ram_clear":
                self._clear_memory(now)
            case "other_game":
                self._set_paytable(*(("LUCKY2", "7850") if self.paytable == "LUCKY" else ("LUCKY", "9000")), now)
            case "power_loss":
                self._until[fault] = now + OFF
                self._tell(0x18, now)
            case "wrong_crc" | "deaf":
                self._until[fault] = now + LONG
            case "busy":  # outlasts the wait of a host that polls every 5 s
                self._until[fault] = now + BUSY
            case "loop_break":
                self._until[fault] = now + BROKEN
            case "fifo_overflow":
                for _ in range(QUEUE + 5):
                    self._tell(0x2B, now)
            case "no_broadcast":
                self._until[fault] = now + UNLOADED + 1
                self._broadcast_at = now
            case "host_validation":
                self._trouble[fault] = None
                self.validation = "system"
                self._tell(0x3C, now)
                if not self.meters["credits"]:
                    self.insert_bill(now)
                self.cash_out(now)
            case "host_redemption":
                self._trouble[fault] = None
                self.redemption = True
                self._tell(0x3C, now)
                self.insert_ticket(now)
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}, only {', '.join(self.faults)}")

    def repair(self, now: float) -> None:
        """An attendant repairs all faults, and plays a test game."""
        self._now = max(self._now, now)
        for fault in list(self._trouble):
            for code in TROUBLE[fault][1] if fault in TROUBLE else ():
                self._tell(code, now)
            if fault in NEEDS_CLEAR:
                self._clear_memory(now)
            if fault in {"host_validation", "host_redemption"}:
                self.validation, self.redemption = "secure", False
                self._until = {name: at for name, at in self._until.items() if name not in {"validation", "redemption"}}
                self._tell(0x3C, now)
            del self._trouble[fault]
        while self.reset(now):
            pass
        self.enabled = True
        self.play(now)

    def _set_paytable(self, paytable: str, percent: str, now: float) -> None:
        self.paytable, self.percent = paytable, percent
        self._tell(0x3C, now)

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
            if code == PAID_BY_HAND or code not in self._priority:
                self._priority.append(code)
            return
        if len(self._queue) >= QUEUE:  # the oldest is lost
            oldest = self._queue.popleft()
            self._dropped = self._dropped or (self._saying == oldest and oldest not in PRIORITY)
            if 0x70 not in self._priority:
                self._priority.appendleft(0x70)
        self._queue.append(code)

    # ---- the wire

    def due(self) -> float:
        """The time of the next answer, of the loop break indication, or of the end of a wait."""
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
        """The bytes sent by `now`."""
        self._now = max(self._now, now)
        if self._lasts("power_loss", now):
            return b""
        if self._until.pop("power_loss", None) is not None:
            self._power_up(now)
        if self._until.get("validation", float("inf")) <= now:  # no number came: the ticket has to be paid by hand
            self._pay_by_hand(now, self.meters["credits"], CANCELLED_CREDITS)
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
                said += encode(LoopBreak(self._address))
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
        self._dropped = False
        self._last_poll = None
        self._addressed_at = now
        self._next_chirp = float("inf")
        self._tell(0x17, now)

    def hear(self, data: bytes, now: float) -> bytes:
        """Polls of the host; `wake` returns the answers later."""
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
        """A different poll implies the acknowledgement of the last answer."""
        code, self._saying = self._saying, None
        gone, self._dropped = self._dropped, False
        if code and code in PRIORITY:
            if code in self._priority:
                self._priority.remove(code)
        elif code and not gone and self._queue and self._queue[0] == code:
            self._queue.popleft()
        if not isinstance(self._last_poll, LongPoll) or not isinstance(self._last_answer, Reply | Unknown):
            return  # without an answer nothing is acknowledged
        match self._last_poll:
            case LongPoll(command=0x1B) if self._unread:
                self._unread.popleft()
                self._last_poll = None
                if self._unread:  # the next one is reported at once
                    self._tell(0x51, self._now)
            case LongPoll(command=0x85) if self._hits:
                self._hits.popleft()
                self._last_poll = None
            case LongPoll(command=0x87) if self._hits:
                self._hits.clear()
                self._last_poll = None
            case LongPoll(command=0x4D, data=b"\0") if self._records_unread:
                self._records_unread.popleft()
                self._last_poll = None

    def _next(self) -> int:
        """The exception that it sends next, 0 for none."""
        return self._priority[0] if self._priority else self._queue[0] if self._queue else 0x00

    def _what_happened(self) -> Answer | None:
        if self._saying is None:
            self._saying = self._next()
        if self.real_time:
            return self._event(self._saying) if self._saying else None
        return Happened(self._saying)

    def _event(self, code: int) -> RealTime:
        """The exception with its data: the bill, or the game's start and end."""
        data = {
            0x4F: self._last_bill,
            0x7E: _bcd(5, 2) + _bcd(self.meters["coin_in"], 4) + bytes((0, self._group)),
            0x7F: _bcd(0, 4),
        }
        return RealTime(self._address, code, data.get(code, b""))

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
        if self.real_time and (self._saying or self._next()):
            return self._what_happened()
        if poll.command in OF_A_GAME and not poll.data[:2].hex().isdecimal():
            return Nack(me)
        if poll.command in METERS:
            data: bytes | Answer | None = b"".join(_bcd(self.meters[name], 4) for name in METERS[poll.command])
        else:
            data = self._data(poll, now)
        return Unknown(me, poll.command, data) if isinstance(data, bytes) else data

    def _data(self, poll: LongPoll, now: float) -> bytes | Answer | None:  # noqa: C901 - a case for each poll
        """The data between command and checksum, or another answer; None for an unknown poll."""
        ack, nack = Ack(self._address), Nack(self._address)
        meters, game = self.meters, poll.data[:2]
        match poll.command:
            case 0x01 | 0x02:
                self.enabled = poll.command == 0x02
                return ack
            case 0x03 | 0x04 | 0x05 | 0x06 | 0x07:
                return ack
            case 0x0E:
                self.real_time = poll.data != b"\0"
                return ack
            case 0x80 | 0x86:
                self._listen(poll, now)
                return ack
            case 0x18:
                return _bcd(meters["games_since_power_up"], 2) + _bcd(meters["games_since_door_closed"], 2)
            case 0x1F:
                return self._configuration()
            case 0x21:
                seed = int.from_bytes(poll.data, "little")
                return crc_hqx(self.paytable.encode(), seed).to_bytes(2, "little")
            case 0x2D:
                return game + _bcd(meters["hand_paid"], 4)
            case 0x2F:
                return self._selected(game, poll.data[2:])
            case 0x48:
                return self._last_bill
            case 0x4F:
                trouble = any(fault in self._trouble for fault in HOPPER)
                return bytes((6, 1, 0)) + _bcd(0, 4) if trouble else bytes((6, 0, 60)) + _bcd(600, 4)
            case 0x51 | 0x55:
                return _bcd(1, 2)
            case 0x52:
                return game + b"".join(_bcd(value, 4) for value in self._game_meters(int(game.hex())))
            case 0x53:
                return game + self._configuration()
            case 0x54:
                serial = _text(self._serial, 12)
                return bytes((3 + len(serial),)) + b"602" + serial
            case 0x56:
                return bytes((3, 1)) + _bcd(1, 2)
            case 0x6F | 0xAF:
                return self._extended(game, poll.data[2:])
            case 0x7E:
                return self._clock(now)
            case 0x83:
                return game + _bcd(0, 4)
            case 0xA0:
                first = 0x10 | STYLES[self.validation] << 5 | self.redemption << 7
                return game + bytes((first, 0x08, 0x03, 0x00, 0x00, 0x00))
            case 0xB1 | 0xB3:
                return bytes((self.denomination,))
            case _:
                return self._ticket_data(poll, nack) if poll.command in OF_TICKETS else self._prize_data(poll, now)

    def _ticket_data(self, poll: LongPoll, nack: Nack) -> bytes | Answer | None:
        """Answers to polls of tickets and validations."""
        match poll.command:
            case 0x3D:
                return self._last_ticket if self.validation == "standard" else None
            case 0x4C:
                return self._identify(poll.data) if self.validation == "secure" else None
            case 0x4D:
                return self._record(poll.data[0]) if self.validation == "secure" else None
            case 0x50:
                kind = poll.data[0]
                name = VALIDATIONS.get(kind)
                if name is None:
                    return poll.data + bytes(9) if kind in NO_RECORDS else nack
                return poll.data + _bcd(self.meters[f"{name}_count"], 4) + _bcd(self.meters[name], 5)
            case 0x7B:
                return self._validation_status(poll.data)
            case _:
                return None

    def _prize_data(self, poll: LongPoll, now: float) -> bytes | None:
        """Answers to polls of handpays and progressive wins."""
        match poll.command:
            case 0x1B:
                return self._unread[0].data() if self._unread else bytes(20)
            case 0x84:
                return _prize(self._group if self._last_hit[0] else 0, *self._last_hit)
            case 0x85:
                return _prize(self._group, *self._hits[0]) if self._hits else _prize(0, 0, 0)
            case 0x87:
                hits = list(self._hits)[:32]
                wins = b"".join(bytes((level,)) + _bcd(amount, 5) for level, amount in hits)
                return bytes((2 + len(wins), self._group, len(hits))) + wins
            case 0x94:
                return bytes((self._reset_by_host(now),))
            case _:
                return None

    def _game_meters(self, game: int) -> tuple[int, ...]:
        """Coin in, coin out, jackpot and games played; all prizes are of game 1."""
        meters = [self.meters[name] for name in ("coin_in", "coin_out", "jackpot", "games_played")]
        if game == 0:
            return tuple(meters)
        if game != 1:
            coin_in, played = self.others[game]
            return coin_in, 0, 0, played
        for coin_in, played in self.others.values():
            meters[0] -= coin_in
            meters[3] -= played
        return tuple(meters)

    def _configuration(self) -> bytes:
        """Identity, denomination, highest bet, group, options (low byte first), paytable and percentage."""
        head = b"SI" + _text("ML", 3) + bytes((self.denomination, 5, self._group)) + (0x0001).to_bytes(2, "little")
        return head + _text(self.paytable, 6) + self.percent.encode()

    def _clock(self, now: float) -> bytes:
        return bytes.fromhex((STARTED + timedelta(seconds=int(now))).strftime("%m%d%Y%H%M%S"))

    def _selected(self, game: bytes, codes: bytes) -> bytes | Answer | None:
        if not 1 <= len(codes) <= 10:
            return Nack(self._address)
        known = [code for code in codes if code in BY_CODE]
        pairs = (bytes((code,)) + _bcd(self.meters[BY_CODE[code][0]], BY_CODE[code][1]) for code in known)
        data = game + b"".join(pairs)
        return bytes((len(data),)) + data if known else None

    def _extended(self, game: bytes, data: bytes) -> bytes | Answer:
        """The meters, each with its size; an unknown meter has size 0."""
        if len(data) % 2 or not 1 <= len(data) // 2 <= 12:
            return Nack(self._address)
        out = game
        for at in range(0, len(data), 2):
            name, width = BY_CODE.get(int.from_bytes(data[at : at + 2], "little"), ("", 0))
            out += data[at : at + 2] + bytes((width,)) + (_bcd(self.meters[name], width) if name else b"")
        return bytes((len(out),)) + out

    def _identify(self, data: bytes) -> bytes:
        """Machine number 0 reads the identification; another number sets it."""
        if any(data[:3]):
            self._validation_id = int.from_bytes(data[:3], "little"), int.from_bytes(data[3:], "little")
        return b"".join(part.to_bytes(3, "little") for part in self._validation_id)

    def _record(self, function: int) -> bytes | Answer:
        """The validation record at a place; 00 and FF: the oldest that was not read."""
        if RECORDS < function < 0xFF:
            return Nack(self._address)
        index = function if 0 < function < 0xFF else self._records_unread[0] if self._records_unread else 0
        return self._records.get(index, bytes(31))

    def _validation_status(self, data: bytes) -> bytes | Answer:
        """Set mask and states, low byte first. A mask of zero changes nothing; expirations are never changed."""
        if len(data) != 8 or not data[4:].hex().isdecimal():
            return Nack(self._address)
        mask, states = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:4], "little")
        self._status = (self._status & ~mask) | (states & mask)
        status = self._status & 0x803F & ~0x20 | self.redemption << 5
        return bytes((10,)) + (77).to_bytes(4, "little") + status.to_bytes(2, "little") + _bcd(9999, 2) + _bcd(30, 2)

    def _reset_by_host(self, now: float) -> int:
        if not self._handpays:
            return 2
        if "slot_door" in self._trouble:
            return 1
        self.reset(now)
        return 0

    def _say(self, answer: Answer, now: float) -> None:
        data = encode(answer)
        if isinstance(answer, Reply | Unknown) and self._lasts("wrong_crc", now):
            data = data[:-1] + bytes((data[-1] ^ 0x5A,))
        self._line.append((now + ANSWERING + len(data) * BYTE, data))
