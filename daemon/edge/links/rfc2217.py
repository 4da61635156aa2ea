"""Links through a serial server whose speed and parity the host sets (RFC 2217).

    rfc2217://192.168.7.20:4001?baud=9600&parity=N      ser2net, Moxa NPort and others, in the mode of that name

Telnet with the COM-PORT option: the connection is made binary, then the port is set to 8 data bits and one stop bit at
the speed and parity of the URL, without flow control. No payload is sent before the server confirms all settings; a
server that confirms another setting, or none, is refused. Bytes are stamped when the loop receives them.

A link never reconnects; its owner opens another one.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from daemon.edge.links.link import BadUrl, StreamLink, line_settings, open_tcp, place_of, utc_now
from protocols.link import DeviceRefused

__all__ = ["Rfc2217Link", "Telnet", "TelnetCommand", "check", "open_link"]

ANSWER_TIMEOUT = 5.0
MAX_COMMAND = 64  # bytes of an unfinished telnet command; those of RFC 2217 have at most 14

IAC = b"\xff"
SE, SB, WILL, WONT, DO, DONT = 0xF0, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE
BINARY, SGA, COM_PORT = 0, 3, 44
OURS, THEIRS = (BINARY, SGA, COM_PORT), (BINARY, SGA)
NEEDED = {(DO, COM_PORT), (DO, BINARY), (WILL, BINARY)}

BAUD, DATA_BITS, PARITY, STOP_BITS, CONTROL, PURGE = 1, 2, 3, 4, 5, 12
SERVER = 100  # added to the number of a command in the server's messages
SUSPEND, RESUME = 108, 109
PARITIES = {"N": 1, "O": 2, "E": 3, "M": 4, "S": 5}
NO_FLOW_CONTROL, DTR_ON, RTS_ON, BOTH_BUFFERS = 1, 8, 11, 3

_PART = re.compile(
    rb"[^\xff]+|\xff\xff|\xff[\xfb-\xfe].|\xff\xfa(?:[^\xff]|\xff\xff)*\xff\xf0|\xff[^\xfa-\xff]", re.DOTALL
)


class _Target(Struct, frozen=True):
    host: str
    port: int
    baud: int
    parity: str

    @property
    def settings(self) -> dict[int, bytes]:
        """What the port must be set to, by the number of its command."""
        return {
            BAUD: self.baud.to_bytes(4, "big"),
            DATA_BITS: b"\x08",
            PARITY: bytes([PARITIES[self.parity]]),
            STOP_BITS: b"\x01",
        }


def _target(url: str) -> _Target:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BadUrl(f"{url}: {error}") from error
    host, port = place_of(url, parts, "rfc2217://host:port?baud=9600")
    query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
    baud, parity = line_settings(url, query)
    if query:
        raise BadUrl(f"{url}: unknown {', '.join(query)}; known: baud, parity")
    return _Target(host, port, baud, parity)


def check(url: str) -> None:
    """Raise BadUrl where `url` cannot be such a link."""
    _target(url)


class TelnetCommand(Struct, frozen=True):
    """A telnet command of the server: WILL, WONT, DO or DONT of an option, or SB with the option's bytes."""

    command: int
    option: int
    value: bytes = b""


class Telnet:
    """Splits the server's bytes into payload and commands. Holds at most MAX_COMMAND bytes."""

    def __init__(self) -> None:
        """Begin with no bytes received."""
        self._held = b""

    def feed(self, data: bytes) -> tuple[bytes, list[TelnetCommand]]:
        """The payload, and the commands in it. Raises ValueError for a command without end."""
        data = self._held + data
        payload = bytearray()
        said = []
        at = 0
        while (part := _PART.match(data, at)) is not None:
            one, at = part[0], part.end()
            if not one.startswith(IAC):
                payload += one
            elif one == IAC + IAC:
                payload += IAC
            elif one[1] == SB and len(one) > 4:
                said.append(TelnetCommand(SB, one[2], one[3:-2].replace(IAC + IAC, IAC)))
            elif one[1] in (WILL, WONT, DO, DONT):
                said.append(TelnetCommand(one[1], one[2]))
        self._held = data[at:]
        if len(self._held) > MAX_COMMAND:
            raise ValueError("a telnet command without end")
        return bytes(payload), said


def _option(command: int, option: int) -> bytes:
    return bytes([0xFF, command, option])


def _com_port(command: int, value: bytes) -> bytes:
    return bytes([0xFF, SB, COM_PORT, command]) + value.replace(IAC, IAC + IAC) + bytes([0xFF, SE])


class Rfc2217Link(StreamLink):
    """A connection to a serial server; `ready` when its port is set. Earlier bytes are dropped."""

    def __init__(self, target: _Target, now: Callable[[], datetime]) -> None:
        """Nothing is sent before the connection is made."""
        super().__init__(now)
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self.ready.add_done_callback(_retrieve)
        self._target = target
        self._telnet = Telnet()
        self._agreed: set[tuple[int, int]] = set()
        self._refused: set[tuple[int, int]] = set()
        self._unset = set(target.settings)
        self._suspended = self._full = False

    @property
    def missing(self) -> str:
        """The confirmations that the server has not sent."""
        if (DO, COM_PORT) not in self._agreed:
            return "it does not answer as an RFC 2217 server; a raw port is tcp://host:port"
        if not self._agreed >= NEEDED:
            return "it does not carry binary data"
        return "it does not confirm the port's settings"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Offer our options, and request those of the server."""
        super().connection_made(transport)
        self._send(b"".join(_option(WILL, one) for one in OURS) + b"".join(_option(DO, one) for one in THEIRS))

    def data_received(self, data: bytes) -> None:
        """Answers commands and passes payload on."""
        try:
            payload, said = self._telnet.feed(data)
        except ValueError as error:
            self._give_up(str(error))
            return
        ready = self.ready.done()
        for one in said:
            if one.command == SB and one.option == COM_PORT:
                self._receive_option(one.value[0], one.value[1:])
            elif one.command != SB:
                self._negotiate(one)
        if payload and ready:
            super().data_received(payload)

    def on_wire(self, data: bytes) -> bytes:
        """A byte FF is sent twice."""
        return data.replace(IAC, IAC + IAC)

    def pause_writing(self) -> None:
        """The server does not accept our bytes."""
        self._full = True
        super().pause_writing()

    def resume_writing(self) -> None:
        """The server accepts our bytes again, unless it requested a pause."""
        self._full = False
        if not self._suspended:
            super().resume_writing()

    def _end(self, reason: str) -> None:
        if not self.ready.done():
            self.ready.set_exception(DeviceRefused(f"{self._name}: {reason} before its port was set"))
        super()._end(reason)

    @property
    def _name(self) -> str:
        return f"{self._target.host}:{self._target.port}"

    def _send(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _give_up(self, why: str) -> None:
        if not self.ready.done():
            self.ready.set_exception(DeviceRefused(f"{self._name}: {why}"))
        self._end(why)
        if self._transport is not None:
            self._transport.abort()

    def _negotiate(self, said: TelnetCommand) -> None:
        """Answers each option at most once, so that a server that repeats itself cannot pile up answers."""
        wanted = OURS if said.command in (DO, DONT) else THEIRS
        key = said.command, said.option
        if said.option in wanted:
            if said.command in (DO, WILL):
                before = self._agreed >= NEEDED
                self._agreed.add(key)
                if not before and self._agreed >= NEEDED:
                    self._send(b"".join(_com_port(number, value) for number, value in self._target.settings.items()))
            elif said.option == COM_PORT:
                self._give_up("it refuses RFC 2217; a raw port is tcp://host:port")
            elif said.option == BINARY:
                self._give_up("it refuses to carry binary data")
        elif said.command in (DO, WILL) and key not in self._refused:
            self._refused.add(key)
            self._send(_option(WONT if said.command == DO else DONT, said.option))

    def _receive_option(self, number: int, value: bytes) -> None:
        wanted = self._target.settings.get(number - SERVER)
        if number == SUSPEND:
            self._suspended = True
            super().pause_writing()
        elif number == RESUME:
            self._suspended = False
            if not self._full:
                super().resume_writing()
        elif wanted is not None and value != wanted:
            self._give_up(_differs(number - SERVER, value))
        elif wanted is not None and self._unset:
            self._unset.discard(number - SERVER)
            if not self._unset and not self.ready.done():
                for control in (NO_FLOW_CONTROL, DTR_ON, RTS_ON):
                    self._send(_com_port(CONTROL, bytes([control])))
                self._send(_com_port(PURGE, bytes([BOTH_BUFFERS])))
                self.ready.set_result(None)


def _retrieve(ready: asyncio.Future[None]) -> None:
    """Retrieve the outcome also if the opening was given up: asyncio would log one that is not retrieved."""
    if not ready.cancelled():
        ready.exception()


def _differs(number: int, value: bytes) -> str:
    """In words, the settings that the server's port has instead."""
    match number:
        case 1:
            return f"its port runs at {int.from_bytes(value, 'big')} baud, not as in the URL"
        case 2:
            return f"its port has {int.from_bytes(value, 'big')} data bits, not 8"
        case 3:
            parity = next((name for name, one in PARITIES.items() if bytes([one]) == value), "another")
            return f"its port has parity {parity}, not as in the URL"
        case _:
            return "its port has more than one stop bit"


@contextlib.asynccontextmanager
async def open_link(url: str, now: Callable[[], datetime] = utc_now) -> AsyncIterator[Rfc2217Link]:
    """The link under `url`. Raises LinkLost if there is no server, DeviceRefused if the port cannot be set."""
    target = _target(url)
    link = await open_tcp(target.host, target.port, lambda: Rfc2217Link(target, now))
    try:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await link.ready
        except TimeoutError as error:
            raise DeviceRefused(f"{target.host}:{target.port}: {link.missing}") from error
        yield link
    finally:
        await link.close()
