"""Gaming machines, Angola: Decreto Executivo 261/22, article 17.

A round is a period of one machine. It begins with the first reading of the meters at an open table, and ends when the
table closes, or with the first reading of another day in UTC. Its result is what the meters counted since the period
before. Where the machine may not be played, the period waits until two supervisors approve the machine, or one
declares the period void.

Readings:

- 17(2): the plan is the one that the machine reports. A plan that returns less than `least_return` cannot be approved.
  The measured return, without the jackpots, is judged after each `return_games` games: it is low where three standard
  deviations do not explain it. `deviation` is that of one game, from the sheet of the model; the largest bet bounds any
  mix of bets.
- 17(3)-(6): pools of `feltd jackpots` keep the jackpots. A prize of a level is paid by its pool, and is no return.
- 17(8): where the configuration names nothing, the first report of the machine is approved. Each change must be
  approved.
- 17(10): "contadores de apostas, prémios e arrecadação" are coin in, coin out with what was paid by hand, and drop. A
  meter that falls without wrapping around, jumps, or stands still while games are played makes the period wait. Where
  the meters begin anew, play after the last good reading counts in no period, which is noted.
- 17(14): a prize that is paid by hand is reported as won and as paid: one payment.
- 17(15): the period has the readings before and after each prize; the journal has them all.
- A loss of events loses no bet, because meters are absolute. Prizes may be missing, which is noted.
"""

from collections.abc import Mapping
from math import isqrt
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, field
from msgspec.structs import asdict, replace

from protocols.contract.events import (
    BetsOpened,
    DeviceOnline,
    EventsMissed,
    JackpotPaid,
    JackpotWon,
    MachineApproved,
    MachineIdentified,
    MachineMeters,
    MachineUnreliable,
    RoundVoided,
    TableClosed,
    TableOpened,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.facts import RoundFacts
from protocols.contract.people import may_be_one_person
from protocols.contract.reasons import Reason, say
from protocols.contract.topics import Envelope
from rules.engine.limits import HouseOptions
from rules.engine.rounds import (
    Round,
    Terms,
    declared,
    irregular,
    next_number,
    noted,
    resolved,
    suspend,
    voided,
    witness,
)
from rules.engine.ruleset import Bet, Opened, Resolved, Settlement, Verdict, View, Void, Voided, option
from rules.needs import Needs, machine

__all__ = ["GamingMachines", "MachineFacts"]

TEXT: Final = "Decreto Executivo 261/22"
BETS, PRIZES, BY_HAND, TAKINGS, GAMES = "coin_in", "coin_out", "jackpot", "drop", "games_played"
RISING: Final = (BETS, PRIZES, BY_HAND, TAKINGS, GAMES, "cancelled_credits")
JACKPOTS: Final = "jackpots"
COUNTED: Final = {
    BETS: "bets",
    PRIZES: "prizes",
    BY_HAND: "by_hand",
    JACKPOTS: JACKPOTS,
    TAKINGS: "takings",
    GAMES: "games",
}
"""The counts of a period, as its facts name them."""
NEEDED: Final = (BETS, PRIZES, TAKINGS)
KEPT: Final = (*RISING, "credits")
WRAPS: Final = 10**8
ROLLED: Final = 10**7
"""A meter that wraps around has not advanced further than this meanwhile."""
MOST_PRIZES: Final = 40
SIGMAS: Final = 3
VOID_WORDS: Final = {"pt": "Período anulado", "zh-Hant": "時段無效", "en": "Void"}
WORDS: Final = {"pt": "Período encerrado", "zh-Hant": "時段結束", "en": "End of the period"}
REMEDY: Final = say("do_approve_machine")
LAWS: Final = {
    **dict.fromkeys(("machine_changed", "machine_not_approved", "program_failed"), "8"),
    "plan_return_low": "2",
}
"""The paragraphs of what makes a period wait; of the others it is 10."""
UNRELIABLE: Final = {
    "cleared": say("meters_cleared"),
    "memory": say("memory_failed"),
    "backwards": say("meters_back"),
    "program": say("program_failed"),
}

Readings: TypeAlias = dict[str, int]


def _cite(paragraph: str) -> str:
    return f"{TEXT} art. 17({paragraph})"


class HouseMachineOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house, and values from the sheet of the model."""

    least_return: Annotated[
        int, Meta(ge=80, le=100), option("art. 17(2)", "percent of the bets that the plan must return in prizes")
    ] = 80
    return_games: Annotated[
        int, Meta(ge=1000, le=10**8), option("art. 17(2)", "games after which the measured return is judged")
    ] = 100_000
    deviation: Annotated[
        int,
        Meta(ge=0, le=100_000),
        option("art. 17(2)", "standard deviation of the prize of one game, in hundredths of the bet; 0: not judged"),
    ] = 0
    largest_bet: Annotated[
        int, Meta(ge=0), option("arts. 17(8), 17(10)", "minor units, the most of one game; 0: not checked")
    ] = 0
    largest_step: Annotated[
        int, Meta(ge=1), option("art. 17(10)", "minor units; a meter that advances further between two readings jumps")
    ] = 10**9
    free_games: Annotated[
        int, Meta(ge=0), option("art. 17(10)", "games that may be counted in a row without a bet")
    ] = 100


class Prize(Struct, frozen=True, omit_defaults=True):
    """A prize, the events that reported it won and paid, and the meters before it and after its payment."""

    level: int
    amount: int
    won: str
    before: Readings = {}
    paid: str = ""
    after: Readings = {}


class Measured(Struct, frozen=True):
    """Bets, prizes (without jackpots) and the number of games in which the return is measured."""

    bets: int = 0
    prizes: int = 0
    games: int = 0


class MachineState(Struct, frozen=True):
    """The state of a machine.

    `noted`: irregularities of the period. `told`: the machine's reported characteristics, `approved`: the approved
    ones. `doubts`: why it may not be played; `approving`: the first supervisor who approves it. `meters`: the last good
    reading, `raw`: the last one, `sums`: what it counted since the last period. `anew`: the next reading may begin
    anew. `free`: games without a bet. `window`: since the return was judged, `measured`: what was judged.
    """

    table: str
    day: str = ""
    count: int = 0
    round: Round | None = None
    closed: bool = False
    device: str = ""
    noted: tuple[str, ...] = ()
    told: MachineIdentified | None = None
    approved: MachineIdentified | None = None
    doubts: tuple[Reason, ...] = ()
    approving: str = ""
    meters: Readings = {}
    raw: Readings = {}
    sums: Readings = {}
    last_reading: str = ""
    anew: bool = False
    free: int = 0
    prizes: tuple[Prize, ...] = ()
    window: Measured = Measured()
    measured: Measured = Measured()


class MachineFacts(RoundFacts, frozen=True):
    """A period of a machine. `counted`: in minor units, and games. Returns are in hundredths of a percent.

    `bound_bp`: how far the measured return may lie below the plan's by chance. `waits`: all that must be approved.
    """

    machine: MachineIdentified | None = None
    meters: Readings = field(default_factory=dict)
    counted: Readings = field(default_factory=dict)
    prizes: tuple[Prize, ...] = ()
    return_bp: int = 0
    measured_bp: int = 0
    bound_bp: int = 0
    measured_games: int = 0
    waits: tuple[Reason, ...] = ()
    approved_by: str = ""


Step: TypeAlias = tuple[MachineState, tuple[Verdict, ...]]


class GamingMachines:
    """The ruleset."""

    id: ClassVar[str] = "angola.gaming-machines"
    title: ClassVar[str] = "Gaming machines, Angola"
    law: ClassVar[str] = TEXT
    Options: ClassVar[type[HouseMachineOptions]] = HouseMachineOptions
    State: ClassVar[type[MachineState]] = MachineState
    Facts: ClassVar[type[RoundFacts]] = MachineFacts
    needs: ClassVar[Needs] = machine("art. 17(10)", "art. 17(8)", "art. 17(10)", "arts. 17(8), 17(10)")

    def __init__(self, options: HouseMachineOptions) -> None:
        """One house's options; no state of a machine."""
        self.options = options
        self.terms = Terms(self.id, TEXT, Raw(msgspec.json.encode(options)), VOID_WORDS, 1, "down", options.limits)

    def bets(self) -> tuple[Bet, ...]:
        """None: the machine takes the bets."""
        return ()

    @property
    def limits(self) -> Any:
        """Raise ValueError: there are no bets to limit."""
        raise ValueError("a machine takes its bets itself: it has no limits here")

    def start(self, table: str) -> MachineState:
        """A machine that was never read."""
        return MachineState(table)

    def view(self, state: MachineState) -> View:
        """The period, and the machine's characteristics."""
        phase = "idle" if state.round is None else "suspended" if state.round.suspended else "betting"
        round_ = state.round.id if state.round is not None else ""
        facts = self._facts(state)
        if state.doubts:
            facts |= {"reason": msgspec.to_builtins(state.doubts[0]), "waits": msgspec.to_builtins(state.doubts)}
        return View(round_, phase, facts | ({"approved_by": state.approving} if state.approving else {}))

    def apply(self, state: MachineState, seen: Envelope) -> Step:
        """One event."""
        match seen.event:
            case MachineMeters(meters=meters):
                return self._mine(state, seen) or self._read(state, seen, meters)
            case MachineIdentified() as told:
                return self._mine(state, seen) or self._identified(state, seen, told)
            case MachineUnreliable(why=why):
                return self._mine(state, seen) or self._doubt(state, seen, UNRELIABLE[why])
            case JackpotWon(level=level, amount=amount):
                return self._won(state, seen, Prize(level, amount, seen.id, state.meters)), ()
            case JackpotPaid(level=level, amount=amount):
                return self._paid(state, seen, level, amount)
            case MachineApproved() as word:
                return self._approve(state, seen, word)
            case TableOpened() | BetsOpened():
                return replace(state, closed=False), ()
            case WagerPlaced(seat=seat, bet=bet) | WagerWithdrawn(seat=seat, bet=bet):
                return state, noted("bet_not_offered", say("seat_bet", seat=seat, bet=bet), _cite("1"), seen)
            case TableClosed():
                return self._close(state, seen)
            case RoundVoided(reason=reason, round=named):
                return self._void(state, seen, declared(reason), named)
            case EventsMissed() | DeviceOnline(continuous=False) if seen.device == state.device:
                return self._note(state, seen, "prizes_missing", say("prizes_missing"), "15")
            case _:
                return state, ()

    # ---- the machine's characteristics

    def _mine(self, state: MachineState, seen: Envelope) -> Step | None:
        """None where the event is of the machine of this table."""
        if state.device in ("", seen.device):
            return None
        return self._note(state, seen, "another_machine", say("another_machine", device=seen.device), "10")

    def _identified(self, state: MachineState, seen: Envelope, told: MachineIdentified) -> Step:
        told = replace(told, overtaken=0, age_ms=0)
        state = replace(state, device=seen.device, told=told, approving="" if told != state.told else state.approving)
        verdicts: tuple[Verdict, ...] = ()
        for reason in self._barred(told):
            state, more = self._doubt(state, seen, reason)
            verdicts += more
        if verdicts or state.doubts:
            return state, verdicts
        if state.approved is None:
            return replace(state, approved=told), ()
        names = [name for name, value in asdict(told).items() if value != getattr(state.approved, name)]
        if not names:
            return state, ()
        return self._doubt(state, seen, say("machine_changed", names=", ".join(names)))

    def _barred(self, told: MachineIdentified | None) -> tuple[Reason, ...]:
        """Why the machine's characteristics cannot be approved."""
        if told is None:
            return ()
        reasons: tuple[Reason, ...] = ()
        if told.return_bp and told.return_bp < 100 * self.options.least_return:
            reasons += (say("plan_return_low", percent=_percent(told.return_bp), least=self.options.least_return),)
        if told.differs:
            reasons += (say("machine_not_approved", names=", ".join(told.differs)),)
        return reasons

    def _doubt(self, state: MachineState, seen: Envelope, reason: Reason) -> Step:
        """The machine may not be played; an approval that has begun does not cover this doubt."""
        doubts = tuple(one for one in state.doubts if one.code != reason.code)
        state = replace(state, doubts=(*doubts, reason), approving="")
        if state.round is None:
            return state, ()
        round_ = irregular(state.round, reason.code, reason, _law(reason), seen)
        round_, verdicts = suspend(round_, seen, reason, REMEDY)
        return replace(state, round=round_), verdicts

    def _approve(self, state: MachineState, seen: Envelope, word: MachineApproved) -> Step:
        if state.round is None or not state.doubts or word.round not in ("", state.round.id):
            return state, noted("approval_not_due", say("approval_not_due", name=word.by), _cite("8"), seen)
        if barred := self._barred(state.told):
            return self._note(state, seen, "approval_refused", barred[0], _law(barred[0]).rpartition("(")[2][:-1])
        if not state.approving or may_be_one_person(state.approving, word.by):
            return replace(state, approving=word.by, round=witness(state.round, seen)), ()
        reason = say("machine_approved", name=state.approving, other=word.by)
        round_ = irregular(state.round, "machine_approved", reason, _law(state.doubts[0]), seen)
        anew = any(_law(one) == _cite("10") for one in state.doubts)
        state = replace(state, round=replace(round_, suspended=None), doubts=(), approving="", approved=state.told)
        if anew:
            state = replace(state, anew=True)
            if self._doubtful(state, state.raw) is not None:
                state = self._rebased(state, seen, state.raw)
        return self._close(state, seen) if state.closed else (state, ())

    # ---- meters

    def _read(self, state: MachineState, seen: Envelope, told: Mapping[str, int]) -> Step:
        now = {name: told[name] for name in KEPT if name in told}
        if missing := [name for name in NEEDED if name not in now]:
            return self._note(state, seen, "meter_missing", say("meter_missing", names=", ".join(missing)), "10")
        state = replace(state, device=seen.device)
        if state.round is not None and state.round.suspended:
            return self._read_while_waiting(state, seen, now)
        verdicts: tuple[Verdict, ...] = ()
        if state.round is not None and seen.time.date().isoformat() > state.day:
            state, verdicts = self._end(state)
        if state.round is None and not state.closed:
            state, more = self._begin(state, seen, now)
            verdicts += more
            if state.doubts:
                return replace(state, raw=now), verdicts
        reason = self._doubtful(state, now)
        if reason is None:
            state, more = self._judged(self._advanced(state, seen, now), seen)
        elif state.anew:
            state, more = self._rebased(state, seen, now), ()
        else:
            state, more = self._doubt(replace(state, raw=now), seen, reason)
        return state, (*verdicts, *more)

    def _read_while_waiting(self, state: MachineState, seen: Envelope, now: Readings) -> Step:
        """A reading of a machine that is played although it must be closed."""
        played = state.raw and now[BETS] > state.raw[BETS]
        state = replace(state, raw=now)
        if not played:
            return state, ()
        return self._note(state, seen, "played_while_closed", say("played_while_closed"), "10")

    def _steps(self, state: MachineState, now: Readings) -> Readings | None:
        """How far each meter advanced; None where one fell without wrapping around."""
        credit = state.told.credit if state.told is not None else 0
        steps: Readings = {}
        for name in RISING:
            if name not in now or name not in state.meters:
                continue
            step, unit = now[name] - state.meters[name], 1 if name == GAMES else credit
            if step < 0:
                step += WRAPS * unit
                if now[name] < 0 or not 0 <= step <= ROLLED * unit:
                    return None
            steps[name] = step
        return steps

    def _doubtful(self, state: MachineState, now: Readings) -> Reason | None:
        """Why these meters do not follow the last good ones."""
        steps = self._steps(state, now)
        if steps is None:
            return say("meters_back")
        games, most = steps.get(GAMES, 0), self.options.largest_bet
        for name, step in steps.items():
            if name != GAMES and step > self.options.largest_step:
                return say("meters_jumped", meter=name, amount=step)
        bets = steps.get(BETS, 0)
        if most and GAMES in steps and bets > most * (games + 1):  # a game is counted when it ends
            return say("meters_jumped", meter=BETS, amount=bets)
        if not bets and state.free + games > self.options.free_games:
            return say("meters_stuck", games=state.free + games)
        return None

    def _advanced(self, state: MachineState, seen: Envelope, now: Readings) -> MachineState:
        steps = self._steps(state, now) or {}
        window = Measured(
            state.window.bets + steps.get(BETS, 0),
            state.window.prizes + steps.get(PRIZES, 0) + steps.get(BY_HAND, 0),
            state.window.games + steps.get(GAMES, 0),
        )
        prizes = tuple(replace(one, after=now) if one.paid and not one.after else one for one in state.prizes)
        free = 0 if steps.get(BETS, 0) else state.free + steps.get(GAMES, 0)
        sums = state.sums | {name: state.sums.get(name, 0) + step for name, step in steps.items() if state.count}
        state = replace(state, meters=now, raw=now, last_reading=seen.id, anew=False, sums=sums)
        return replace(state, window=window, prizes=prizes, free=free)

    def _rebased(self, state: MachineState, seen: Envelope, now: Readings) -> MachineState:
        """The meters begin anew, as two supervisors approved: play in between counts in no period."""
        reason = say("meters_anew", before=state.meters.get(BETS, 0), now=now.get(BETS, 0))
        state, _ = self._note(state, seen, "meters_anew", reason, "10")
        return replace(state, meters=now, raw=now, last_reading=seen.id, anew=False, free=0)

    def _judged(self, state: MachineState, seen: Envelope) -> Step:
        """Judge the measured return, after `return_games` games."""
        window, options = state.window, self.options
        if window.games < options.return_games or not window.bets:
            return state, ()
        state = replace(state, window=Measured(), measured=window, noted=_without(state.noted, "return_low"))
        bound = self._bound(state)
        below = 10_000 * window.prizes < (100 * options.least_return - bound) * window.bets
        if not bound or not below:
            return state, ()
        percent, chance = _percent(_rate(window)), _percent(bound)
        reason = say("return_low", percent=percent, least=options.least_return, bound=chance, games=window.games)
        return self._note(state, seen, "return_low", reason, "2")

    def _bound(self, state: MachineState) -> int:
        """Hundredths of a percent by which chance may lower the measured return; 0: not known.

        The variance of a sum of games is at most deviation² x largest bet x all bets, whatever each bet was.
        """
        most = self.options.largest_bet or (state.told.max_bet if state.told is not None else 0)
        bets = state.measured.bets
        if not (bets and most):
            return 0
        return 100 * isqrt((SIGMAS * self.options.deviation) ** 2 * most * bets) // bets

    # ---- prizes

    def _won(self, state: MachineState, seen: Envelope, prize: Prize) -> MachineState:
        if state.round is None:
            return state
        jackpot = prize.amount if prize.level else 0
        window = replace(state.window, prizes=state.window.prizes - jackpot)
        sums = state.sums | {JACKPOTS: state.sums.get(JACKPOTS, 0) + jackpot}
        prizes = (*state.prizes, prize)[-MOST_PRIZES:]
        return replace(state, prizes=prizes, window=window, sums=sums, round=witness(state.round, seen))

    def _paid(self, state: MachineState, seen: Envelope, level: int, amount: int) -> Step:
        if state.round is None:
            return state, ()
        for n, one in enumerate(state.prizes):
            if (one.level, one.amount) == (level, amount) and not one.paid:
                prizes = (*state.prizes[:n], replace(one, paid=seen.id), *state.prizes[n + 1 :])
                return replace(state, prizes=prizes, round=witness(state.round, seen)), ()
        reason = say("prize_unknown", level=level, amount=amount)
        return replace(state, round=irregular(state.round, "prize_unknown", reason, _cite("14"), seen)), ()

    # ---- the period

    def _begin(self, state: MachineState, seen: Envelope, now: Readings) -> Step:
        day, count = next_number(state.day, state.count, seen)
        round_ = witness(Round(f"{state.table}:{day}:{count}"), seen)
        meters = state.meters or now
        state = replace(state, day=day, count=count, round=round_, meters=meters, raw=now, noted=())
        verdicts: tuple[Verdict, ...] = (Opened(round_.id),)
        if state.told is None:
            state, _ = self._note(state, seen, "machine_unknown", say("machine_unknown"), "8")
        for reason in state.doubts:
            state, more = self._doubt(state, seen, reason)
            verdicts += more
        return state, verdicts

    def _close(self, state: MachineState, seen: Envelope) -> Step:
        """A period that waits ends once it was approved."""
        state = replace(state, closed=True)
        if state.round is None or state.round.suspended:
            return state, ()
        return self._end(replace(state, round=witness(state.round, seen)))

    def _end(self, state: MachineState) -> Step:
        assert state.round is not None
        round_ = replace(state.round, evidence=tuple(dict.fromkeys((*state.round.evidence, state.last_reading))))
        counted = self._counted(state)
        returned = max(counted["prizes"] + counted["by_hand"] - counted["jackpots"], 0)
        result = resolved(
            round_,
            self.terms,
            outcome=self._facts(state),
            winners=(),
            announcements=WORDS,
            law=tuple(map(_cite, ("2", "10", "14", "15"))),
        )
        if counted["bets"]:
            result = replace(result, settlements=(Settlement(1, "play", counted["bets"], returned),))
        return self._after(state), (Resolved(result),)

    def _void(self, state: MachineState, seen: Envelope, reason: Reason, named: str) -> Step:
        if state.round is None or named not in ("", state.round.id):
            return state, noted("void_without_round", say("void_no_round"), _cite("10"), seen)
        round_ = witness(state.round, seen)
        void = Void(reason, "stand")
        result = voided(round_, self.terms, void, (_cite("10"),), self._facts(state))
        return self._after(state), (Voided(result),)

    def _after(self, state: MachineState) -> MachineState:
        """Between two periods. The next one counts from where this one ended."""
        unpaid = tuple(one for one in state.prizes if not one.paid)
        return replace(state, round=None, device="", sums={}, prizes=unpaid, approving="")

    def _note(self, state: MachineState, seen: Envelope, code: str, reason: Reason, paragraph: str) -> Step:
        """An irregularity, once in a period."""
        if code in state.noted:
            return state, ()
        state = replace(state, noted=(*state.noted, code))
        if state.round is None:
            return state, noted(code, reason, _cite(paragraph), seen)
        return replace(state, round=irregular(state.round, code, reason, _cite(paragraph), seen)), ()

    def _counted(self, state: MachineState) -> Readings:
        return {word: state.sums.get(name, 0) for name, word in COUNTED.items()}

    def _facts(self, state: MachineState) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if state.told is not None:
            told = msgspec.to_builtins(state.told)
            facts |= {"machine": told, "return_bp": state.told.return_bp}
        if state.meters:
            facts |= {"meters": state.meters}
        if state.round is not None:
            facts |= {"counted": self._counted(state), "prizes": msgspec.to_builtins(state.prizes)}
        if state.measured.games:
            measured = {"measured_bp": _rate(state.measured), "measured_games": state.measured.games}
            facts |= measured | {"bound_bp": self._bound(state)}
        return facts


def _law(reason: Reason) -> str:
    return _cite(LAWS.get(reason.code, "10"))


def _without(words: tuple[str, ...], word: str) -> tuple[str, ...]:
    return tuple(one for one in words if one != word)


def _rate(measured: Measured) -> int:
    return 10_000 * measured.prizes // measured.bets


def _percent(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02}"
