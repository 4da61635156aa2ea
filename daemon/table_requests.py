"""The console's requests to `feltd table answer`, which checks, shows and makes changes of tables, and the answers.

The console may neither read keys nor write the configuration nor open a port. It asks over a Unix socket that its user
alone may open; systemd starts the command, as root, for each connection (`feltd-change.socket`). One request and one
answer, each a line of JSON.
"""

import asyncio
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

__all__ = ["MOST", "SOCKET", "CannotAsk", "Device", "Look", "Made", "Make", "Mistake", "Plan", "Planned", "Port"]
__all__ += ["Refused", "Request", "Response", "Seen", "Wanted", "ask"]

SOCKET = Path("/run/feltd/change.sock")
MOST: Final = 1 << 20
"""Bytes of a request or an answer."""
ANSWER_TIMEOUT_S: Final = 90.0


class Device(Struct, frozen=True):
    """A device of a table: its name, driver and link. `options` as the file has them: `{"shortest_spin": "0.5"}`."""

    name: str
    driver: str
    url: str
    options: dict[str, str] = {}


class Wanted(Struct, frozen=True):
    """The whole table after the change; of a removal only the name is used. Options as they were typed."""

    act: Literal["add", "change", "remove"]
    name: str
    ruleset: str = ""
    area: str = ""
    options: dict[str, str] = {}
    devices: tuple[Device, ...] = ()


class Look(Struct, frozen=True, tag="look"):
    """List the tables of the file and the ports."""


class Plan(Struct, frozen=True, tag="plan"):
    """Check a change and show what it does. `probe`: open its new devices and wait for their answers."""

    wanted: Wanted
    probe: bool = False


class Make(Struct, frozen=True, tag="make"):
    """Make a change that was planned. `digest`: that of the plan; if the plan has changed since, it is refused."""

    wanted: Wanted
    digest: str
    who: str
    why: str


class Port(Struct, frozen=True):
    """A link that is plugged in. `device`: TABLE/DEVICE that has it, or ""."""

    url: str
    what: str
    device: str


class Seen(Struct, frozen=True, tag="seen"):
    """The tables of the file, as `Wanted` without a change, and the ports."""

    tables: tuple[Wanted, ...]
    ports: tuple[Port, ...]


class Mistake(Struct, frozen=True):
    """Why a change is refused. `field`: name, ruleset, area, options, device-N, or "" for the rest."""

    field: str
    text: str


class Planned(Struct, frozen=True, tag="planned"):
    """A change as it would be made; with mistakes it cannot be.

    `lacks`: what its devices do not report. `answers`: what each new device answered. `others`: files and users that
    change, too. `terms`: the game or its options are those of no table so far, so a supervisor decides, too.
    """

    digest: str = ""
    difference: str = ""
    mistakes: tuple[Mistake, ...] = ()
    lacks: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    terms: bool = True


class Made(Struct, frozen=True, tag="made"):
    """The change is in use. `notes`: what a person must do besides."""

    version: int
    notes: tuple[str, ...] = ()


class Refused(Struct, frozen=True, tag="refused"):
    """Nothing was changed."""

    why: str


Request = Look | Plan | Make
Response = Seen | Planned | Made | Refused


class CannotAsk(Exception):
    """No answer came from the socket. After a `Make` it is unknown whether the change was made."""


async def ask(request: Request) -> Response:
    """The answer. Raises CannotAsk."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(SOCKET, limit=MOST)
            try:
                writer.write(msgspec.json.encode(request) + b"\n")
                await writer.drain()
                line = await reader.readline()
            finally:
                writer.close()
        answer: Response = msgspec.json.decode(line, type=Response)
    except (OSError, TimeoutError, ValueError, msgspec.DecodeError) as error:
        raise CannotAsk(str(error) or "no answer") from error
    return answer
