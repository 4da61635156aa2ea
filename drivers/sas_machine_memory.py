"""The options of a slot machine's driver, and the state that survives a session."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from drivers.faults import Standing
from protocols.contract.events import MachineIdentified, Pool

_APPROVED = "^(serial|game|paytable|return_bp|credit|max_bet|options|signature)=[ -~]{1,40}$"
_APPROVED_WORDS = "as in paytable=LUCKY: serial, game, paytable, return_bp, credit, max_bet, options, signature"


class MachineOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`address`: 1 to 127, as set in the machine's menu. `pool`: the jackpot of its prizes. `adapter`: whether its
    adapter sets the wakeup bit by itself, so that any link will do.

    `group`: of the progressive, if amounts are shown. `interval`: seconds between polls. `answer`: seconds until the
    first byte of an answer, adapter included; `gap`: the pause that ends a message. `silence`: seconds without a good
    answer after which the link counts as lost, at least five intervals. `meters`: seconds between readings;
    `records`: seconds within which bills, tickets, validations and enabled features are all read again. `broadcast`:
    seconds within which each amount is repeated, at most 5. `close_faulty`: shut the machine down when a meter runs
    backwards, memory or program fail, its plan returns too little, or it is not as approved.

    `approved`: characteristics that the machine must report, as in "paytable=LUCKY" or "return_bp=9000".
    `signature_seed`: the seed with which the signature of its program is requested; 0: it is not requested.

    `feeds`: the pools to which its bets contribute, by its coin in meter; `games`: the numbers of the games that do,
    empty for all. `jump`: credits between two readings above which a step of that meter does not count as play.
    `levels`: the pool of each level from 1 on; further levels, and level 0, belong to `pool`. `stale`: seconds after
    which an amount that was not sent again is no longer shown; 0 for never. An amount that was won is not shown again,
    either. `least_return`: percent of the bets that a machine's plan must return, 0 for no such rule.
    """

    address: Annotated[int, Meta(ge=1, le=127)] = 1
    pool: Pool = "machine"
    adapter: bool = False
    group: Annotated[int, Meta(ge=1, le=255)] = 1
    interval: Annotated[float, Meta(ge=0.04, le=2)] = 0.2
    answer: Annotated[float, Meta(ge=0.02, le=1)] = 0.1
    gap: Annotated[float, Meta(ge=0.005, le=0.5)] = 0.04
    silence: Annotated[float, Meta(ge=2, le=60)] = 5.0
    meters: Annotated[float, Meta(ge=1, le=3600)] = 5.0
    records: Annotated[float, Meta(ge=10, le=3600)] = 60.0
    broadcast: Annotated[float, Meta(ge=0.5, le=5)] = 2.0
    close_faulty: bool = False
    feeds: tuple[Pool, ...] = ()
    games: tuple[Annotated[int, Meta(ge=1, le=9999)], ...] = ()
    jump: Annotated[int, Meta(ge=1, le=50_000_000)] = 10_000_000
    levels: Annotated[tuple[Pool, ...], Meta(max_length=32)] = ()
    stale: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    least_return: Annotated[int, Meta(ge=0, le=100)] = 0
    approved: tuple[Annotated[str, Meta(pattern=_APPROVED, description=_APPROVED_WORDS)], ...] = ()
    signature_seed: Annotated[int, Meta(ge=0, le=65535)] = 0

    def pool_of(self, level: int) -> str:
        """The pool of a level's prizes."""
        return self.levels[level - 1] if 0 < level <= len(self.levels) else self.pool


class Hit(Struct, frozen=True):
    """A reported progressive win: what it was, which polls have reported it, and whether it was paid.

    A paid one is kept while another poll may still report it.
    """

    level: int
    amount: int
    seen: tuple[int, ...] = ()
    paid: bool = False


class Memory(Struct, frozen=True):
    """The state of a machine that survives a session.

    `meters`: the last good ones, in minor units by `factor`. `back`: those that ran backwards since. `cleared`: the
    machine reported a cleared memory, and no meter has confirmed it yet.

    `seen`: exceptions that were read and not reported, oldest first; the machine may have discarded them. `sure`:
    indexes in `seen` of the exceptions read while a checksum was seen, with no loop break or echo after it.

    `real_time`: the machine has sent exceptions in place of answers. `mute`: it did not answer general polls.

    `owed`: polls that an exception requires and that are not answered yet. `prizes`: (level, minor units) to be paid by
    hand, oldest first. `levels`: amounts to be shown.

    `unproved`: the last answered poll, if its acknowledgement may not have arrived. `blind`: the exception that was
    reported without that confirmation. `again`: one of these that the machine may still repeat. `doubted`: polls
    whose next answer may therefore repeat one of the `past` wins.

    `unlisted`: progressive wins that were reported and paid without poll 87: it may still list them. `unsure`: one of
    the `prizes` may be over, and it is not known which. `undescribed`: the only cause of that is a handpay without a
    description, which may still come.

    `games_from`: games played at the last reading; None if the present open faults began after it. `was_closed`:
    the machine was shut down for the open faults.

    `features`: the flags of poll A0; `status`: the content of 7B, as last reported; `has_id`: whether it has a
    validation id.

    `counted`: by game (0: the whole machine), the coin in meter in credits up to which bets were contributed.
    `uncounted`: by game, why the next step of that meter is not contributed. `sent`: by level, the last amounts that
    were sent to it.

    `identified`: its characteristics, as last reported.

    `tickets`: the machine may hold unread records of tickets. `looked`: a record was read with look-ahead and is not
    marked as read. `record`: the last reported one.
    """

    serial: str = ""
    factor: int | None = None
    meters: dict[str, int] = {}
    back: tuple[str, ...] = ()
    cleared: bool = False
    standing: Standing = Standing()
    seen: tuple[int, ...] = ()
    sure: tuple[int, ...] = ()
    real_time: bool = False
    mute: bool = False
    owed: tuple[int, ...] = ()
    prizes: tuple[tuple[int, int], ...] = ()
    hits: tuple[Hit, ...] = ()
    levels: dict[int, int] = {}
    unproved: int = 0
    blind: int = 0
    again: int = 0
    doubted: tuple[int, ...] = ()
    past: tuple[tuple[int, int], ...] = ()
    unlisted: tuple[tuple[int, int], ...] = ()
    unsure: bool = False
    undescribed: bool = False
    games_from: int | None = None
    was_closed: bool = False
    features: str = ""
    status: str = ""
    has_id: bool | None = None
    tickets: bool = False
    looked: bool = False
    record: str = ""
    counted: dict[int, int] = {}
    uncounted: dict[int, str] = {}
    sent: dict[int, tuple[int, ...]] = {}
    identified: MachineIdentified | None = None


def recalled(memory: bytes) -> Memory:
    """Decode the stored state. An earlier version stored at most one exception: a number, or null."""
    left = msgspec.json.decode(memory, type=dict[str, Any])
    if not isinstance(seen := left.get("seen"), list):
        left["seen"] = [] if seen is None else [seen]
    return msgspec.convert(left, Memory, str_keys=True)
