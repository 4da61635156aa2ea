"""The commands for devices, in the casino's words and the imperative.

A closed union of frozen structs. The command's name on the wire is the struct's tag; its fields are the request's
`args`. Every request carries an expiry; an expired request is refused. The first line of each command's docstring is
also the English text in `daemon/words/orders.en.toml`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from protocols.contract.events import MOST, Turn
from protocols.contract.topics import ANY_VALUES, joined
from protocols.plain_errors import plain

Status: TypeAlias = Literal["done", "refused", "failed"]


class _Command(Struct, frozen=True, tag_field="command", forbid_unknown_fields=True):
    """`between_rounds`: refused while a round is open on the table. `of_edge`: available for every driver.

    `answered_within`: seconds that the slowest device takes to report the outcome.
    """

    between_rounds: ClassVar[bool] = False
    of_edge: ClassVar[bool] = False
    answered_within: ClassVar[float] = 20.0


# ---- any device


class SelfTest(_Command, frozen=True, tag="self-test"):
    """Run the device's self-test and report what is wrong."""

    between_rounds: ClassVar[bool] = True
    answered_within: ClassVar[float] = 310.0


class Ask(_Command, frozen=True, tag="ask"):
    """Read one value of the device. A `what` that it does not have is refused with the list of those it has."""

    what: Annotated[str, Meta(max_length=64)]


class SetParameter(_Command, frozen=True, tag="set-parameter"):
    """Change a parameter of the firmware; `store` keeps it over a loss of power.

    An unknown `name` is refused with the list of known ones.
    """

    between_rounds: ClassVar[bool] = True
    name: Annotated[str, Meta(max_length=64)]
    value: Annotated[str, Meta(max_length=200)]
    store: bool = False


class Trace(_Command, frozen=True, tag="trace"):
    """Publish for `seconds` what passes between the device and its driver, byte by byte; 0 ends it.

    Bytes that reveal cards are published when no round is open.
    """

    of_edge: ClassVar[bool] = True
    seconds: Annotated[int, Meta(ge=0, le=600)] = 300


# ---- dice


class Agitate(_Command, frozen=True, tag="agitate"):
    """Shake the dice electronically. Refused while the dome is open."""

    cycles: Annotated[int, Meta(ge=1, le=10)] = 1


class ReadDice(_Command, frozen=True, tag="read-dice"):
    """Read the dice now. `round`: a mark that differs from that of the last request."""

    round: Annotated[str, Meta(max_length=64)] = ""


# ---- roulette


class Power(_Command, frozen=True, tag="power"):
    """Switch the wheel on or off."""

    between_rounds: ClassVar[bool] = True
    on: bool


class StartSpin(_Command, frozen=True, tag="start-spin"):
    """Start a spin of a wheel that waits for this command. `rotor`: its direction, where the wheel lets us choose."""

    rotor: Turn | None = None


class LaunchBall(_Command, frozen=True, tag="launch-ball"):
    """Launch the ball."""


class RestartSpin(_Command, frozen=True, tag="restart-spin"):
    """Void the spin under way and spin again."""


# ---- cards


class Shuffle(_Command, frozen=True, tag="shuffle"):
    """Shuffle what was put in."""


class Dispense(_Command, frozen=True, tag="dispense"):
    """Give out a packet of `cards` cards."""

    cards: Annotated[int, Meta(ge=1, le=10)] = 5


class EmptyShuffler(_Command, frozen=True, tag="empty-shuffler"):
    """Give out all cards, counted, for the deck check at closing."""

    between_rounds: ClassVar[bool] = True


# ---- felt


class LockBets(_Command, frozen=True, tag="lock-bets"):
    """Latch the chips that lie on the sensors: bets are closed."""


class ClearBets(_Command, frozen=True, tag="clear-bets"):
    """The round is over: clear the latched bets."""


class Light(_Command, frozen=True, tag="light"):
    """Light these lamps, by their names on the layout, and no others."""

    lamps: tuple[Annotated[str, Meta(max_length=32)], ...] = ()


class StartTimer(_Command, frozen=True, tag="start-timer"):
    """Let the betting time run: `seconds`, after which the bets are closed."""

    seconds: Annotated[int, Meta(ge=1, le=600)]


class StopTimer(_Command, frozen=True, tag="stop-timer"):
    """Stop the betting time without closing the bets."""


# ---- jackpot


class ShowAmount(_Command, frozen=True, tag="show-amount"):
    """Show the amount of a level, in minor units."""

    amount: Annotated[int, Meta(ge=0, le=MOST)]
    level: Annotated[int, Meta(ge=1, le=32)] = 1


class Announce(_Command, frozen=True, tag="announce"):
    """Show `text` above everything else for `seconds`; an empty text ends it."""

    text: Annotated[str, Meta(max_length=100)]
    seconds: Annotated[int, Meta(ge=1, le=3600)] = 30


class EnableMachine(_Command, frozen=True, tag="enable-machine"):
    """Let the machine be played on, or not."""

    on: bool


class ReadMeters(_Command, frozen=True, tag="read-meters"):
    """Read the machine's meters now."""


class ResetHandpay(_Command, frozen=True, tag="reset-handpay"):
    """The prize was paid by hand: let the machine go on."""


Command: TypeAlias = (
    SelfTest
    | Ask
    | SetParameter
    | Trace
    | Agitate
    | ReadDice
    | Power
    | StartSpin
    | LaunchBall
    | RestartSpin
    | Shuffle
    | Dispense
    | EmptyShuffler
    | LockBets
    | ClearBets
    | Light
    | StartTimer
    | StopTimer
    | ShowAmount
    | Announce
    | EnableMachine
    | ReadMeters
    | ResetHandpay
)

COMMANDS: dict[str, type[Command]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Command)}


def name_of(command: Command | type[Command]) -> str:
    """The command's name, e.g. "start-spin"."""
    return str(command.__struct_config__.tag)


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """A command request, published under cmd/<name>."""

    id: Annotated[
        str,
        Meta(min_length=1, max_length=64, description="unique; a repeated request is executed once and answered again"),
    ]
    expires: Annotated[datetime, Meta(tz=True, description="when it expires; at most 10 minutes from now")]
    args: Annotated[Raw, Meta(description="the command's fields", extra_json_schema=ANY_VALUES)] = field(
        default_factory=lambda: Raw(b"{}")
    )
    signature: (
        Annotated[
            str,
            Meta(max_length=128, description="the signature of an order about a jackpot by the console: Ed25519, hex"),
        ]
        | UnsetType
    ) = UNSET


def signed_bytes(topic: str, request: Request) -> bytes:
    """The bytes of an order that the console signs: its topic, id, expiry and arguments."""
    return joined("feltd order", topic, request.id, request.expires.isoformat()) + bytes(request.args)


class Reply(Struct, frozen=True):
    """The outcome of a request, under cmd/<name>/result and on the MQTT 5 response topic if the request names one."""

    id: str
    command: str
    status: Status
    text: str = ""
    data: Annotated[dict[str, Any], Meta(description="the device's answer", extra_json_schema=ANY_VALUES)] = field(
        default_factory=dict
    )


class BadCommand(ValueError):
    """An unknown command or invalid arguments. The message names them."""


_DECODERS = {name: msgspec.json.Decoder(kind) for name, kind in COMMANDS.items()}


def typed(name: str, args: Mapping[str, str]) -> dict[str, Any]:
    """Typed arguments, converted to the types of the command's fields; a list is written with commas."""
    kind = COMMANDS.get(name)
    hints = get_type_hints(kind) if kind else {}
    values: dict[str, Any] = {}
    for key, text in args.items():
        hint = hints.get(key)  # without its bounds
        if hint is str:
            values[key] = text
        elif get_origin(hint) is tuple:
            values[key] = [one.strip() for one in text.split(",") if one.strip()]
        else:
            try:
                values[key] = msgspec.json.decode(text)
            except msgspec.DecodeError:
                values[key] = text
    return values


def decode_command(name: str, args: bytes | Raw) -> Command:
    """The command `name` with the fields in `args` (JSON). Raises BadCommand."""
    decoder = _DECODERS.get(name)
    if decoder is None:
        raise BadCommand(f"no command {name!r}; known: {', '.join(COMMANDS)}")
    try:
        return decoder.decode(args)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadCommand(f"{name}: {plain(error)}") from error
